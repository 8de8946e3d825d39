/*
 * events/json_test.c: lines of an export; (n) is of events/store/events_json.c.
 */
#include <holdfast/events.h>

#include <stdio.h>

#include "test.h"

static struct hf_stored_event plain(void)
{
    return (struct hf_stored_event){.id = HF_STR("a1"),
                                    .position = HF_STR("01HF0000000000000000000000"),
                                    .stream = {HF_STR("order"), HF_STR("7")},
                                    .version = 3,
                                    .type = HF_STR("placed"),
                                    .payload = hf_bytes_of("{\"total\": 9.50}", 15),
                                    .content_type = HF_STR("application/json"),
                                    .schema = 1,
                                    .time_us = 1794762300123456,
                                    .correlation = HF_STR("a0")};
}

static bool same_str(struct hf_str a, struct hf_str b)
{
    return hf_str_equal(a, b) && (!a.len || a.ptr);
}

static bool same_bytes(struct hf_bytes a, struct hf_bytes b)
{
    return a.len == b.len && (!a.len || memcmp(a.ptr, b.ptr, a.len) == 0);
}

static void check_same(const struct hf_stored_event *a, const struct hf_stored_event *b)
{
    CHECK(same_str(a->id, b->id));
    CHECK(same_str(a->position, b->position));
    CHECK(same_str(a->stream.domain, b->stream.domain));
    CHECK(same_str(a->stream.id, b->stream.id));
    CHECK(a->version == b->version);
    CHECK(same_str(a->type, b->type));
    CHECK(same_bytes(a->payload, b->payload));
    CHECK(same_str(a->content_type, b->content_type));
    CHECK_INT(a->schema, b->schema);
    CHECK_INT(a->time_us, b->time_us);
    CHECK(hf_item_count(a->meta) ? hf_item_equal(a->meta, b->meta) : !hf_item_count(b->meta));
    CHECK(same_str(a->causation, b->causation));
    CHECK(same_str(a->correlation, b->correlation));
    CHECK(same_str(a->compensates, b->compensates));
    CHECK(same_bytes(a->hash, b->hash));
    CHECK(same_str(a->blob, b->blob));
}

/* There and back; the line, which has no line break (1). */
static struct hf_str check_returns(struct hf_scope *s, const struct hf_stored_event *event)
{
    struct hf_stored_event back;
    struct hf_str json;

    CHECK_OK(hf_event_to_json(s, event, &json));
    CHECK(!memchr(json.ptr, '\n', json.len) && !memchr(json.ptr, '\r', json.len));
    CHECK_INT(strlen(json.ptr), json.len);
    CHECK_OK(hf_event_from_json(s, json, &back));
    check_same(event, &back);
    return json;
}

TEST(events_json, a_line)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event = plain();

    CHECK_STR("{\"domain\":\"order\",\"stream\":\"7\",\"version\":3,\"id\":\"a1\","
              "\"position\":\"01HF0000000000000000000000\",\"type\":\"placed\","
              "\"time\":\"2026-11-15T17:05:00.123456Z\",\"schema\":1,"
              "\"content_type\":\"application/json\",\"correlation\":\"a0\","
              "\"payload\":{\"total\": 9.50}}",
              check_returns(s, &event));
    hf_scope_free(s);
}

TEST(events_json, everything_comes_back)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event = plain();
    const struct hf_str set[] = {HF_STR("x"), HF_STR("y")};
    uint8_t hash[32];

    for (size_t i = 0; i < sizeof(hash); i++)
        hash[i] = (uint8_t)(i * 9 + 3);
    event.stream = (struct hf_event_stream_key){HF_STR("a/b::\"c\"\\ \xC3\xA9 \xF0\x9F\x98\x80"),
                                                HF_STR("line\nbreak\x01%2E.")};
    event.version = UINT64_MAX;
    event.schema = UINT32_MAX;
    event.causation = HF_STR("cause\r\n");
    event.compensates = HF_STR("comp");
    event.meta = HF_ITEM(s, HF_SS("set", set, 2), HF_B("bytes", hf_bytes_of(hash, 32)),
                         HF_NUM("n", HF_STR("1e100")), HF_NULL("nothing"));
    event.hash = hf_bytes_of(hash, sizeof(hash));
    event.blob = HF_STR("0123");
    event.payload = hf_bytes_of(hash, sizeof(hash));
    event.content_type = HF_STR("application/octet-stream");
    check_returns(s, &event);
    event.stream.id = hf_str_of(NULL, 0);
    event.payload = hf_bytes_of(NULL, 0);
    check_returns(s, &event);
    hf_scope_free(s);
}

/* (2): byte for byte, whichever way. D5.10: what is false, 0, empty, null or a text is kept. */
TEST(events_json, payloads_come_back_byte_for_byte)
{
    static const struct {
        const char *type, *payload;
        bool is_plain;
    } cases[] = {
        {"application/json", "{\"a\":1, \"b\" : [ 1.0,1e2,-0 ]}", true},
        {"application/json", "null", true},
        {"application/json", "false", true},
        {"application/json", "0", true},
        {"application/json", "\"\"", true},
        {"application/json", "\"{\\\"looks\\\":\\\"like JSON\\\"}\"", true},
        {"application/json", "\"\\ud800 \\u00e9 \\/\"", true},
        {"application/json", "{\"b\":1,\"a\":2,\"b\":3}", true},
        {"application/json", "[\t1]", true},
        {"application/json; charset=utf-8", "{}", true},
        {"application/vnd.x+JSON ;v=1", "{}", true},
        {"application/json", " {}", false},
        {"application/json", "{} ", false},
        {"application/json", "{\n}", false},
        {"application/json", "{}\r", false},
        {"application/json", "{} {}", false},
        {"application/json", "{\"a\":01}", false},
        {"application/json", "NaN", false},
        {"application/json", "nullx", false},
        {"application/json", "\"\xFF\"", false},
        {"application/json", "\"\xED\xA0\x80\"", false},
        {"text/plain", "{}", false},
        {"application/jsonl", "{}", false},
        {"text/plain", "caf\xC3\xA9\n", false},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event = plain();

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_str json;

        event.content_type = hf_str_from(cases[i].type);
        event.payload = hf_bytes_of(cases[i].payload, strlen(cases[i].payload));
        json = check_returns(s, &event);
        CHECK(!strstr(json.ptr, cases[i].is_plain ? "\"payload_base64\"" : "\"payload\":"));
        CHECK(strstr(json.ptr, cases[i].is_plain ? "\"payload\":" : "\"payload_base64\""));
    }
    event.payload = hf_bytes_of("a\0b", 3);
    check_returns(s, &event);
    event.payload = hf_bytes_of("", 0);
    CHECK(!strstr(check_returns(s, &event).ptr, "\"payload")); /* (3) */
    hf_scope_free(s);
}

/* At the limit of levels, and one past it. */
TEST(events_json, deep_payloads)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event = plain();
    char deep[256];

    for (size_t levels = 100; levels <= 101; levels++) {
        memset(deep, '[', levels);
        memset(deep + levels, ']', levels);
        event.payload = hf_bytes_of(deep, levels * 2);
        CHECK((strstr(check_returns(s, &event).ptr, "\"payload\":") != NULL) == (levels <= 100));
    }
    hf_scope_free(s);
}

TEST(events_json, times)
{
    static const struct {
        const char *text;
        int64_t us;
    } good[] = {
        {"1970-01-01T00:00:00Z", 0},
        {"1970-01-01T00:00:00.000001Z", 1},
        {"1969-12-31T23:59:59.999999Z", -1},
        {"2000-02-29T12:00:00Z", 951825600000000},
        {"2026-11-15T18:05:00.5+01:00", 1794762300500000},
        {"2026-11-15t12:05:00.5000000-05:00", 1794762300500000},
        {"0000-01-01T00:00:00.000000Z", -62167219200000000},
        {"9999-12-31T23:59:59.999999Z", 253402300799999999},
    };
    static const char *const bad[] = {"",
                                      "2026",
                                      "2026-11-15",
                                      "2026-11-15T17:05:00",
                                      "2026-02-29T00:00:00Z",
                                      "2026-13-01T00:00:00Z",
                                      "2026-00-01T00:00:00Z",
                                      "2026-01-00T00:00:00Z",
                                      "2026-01-01T24:00:00Z",
                                      "2026-01-01T00:60:00Z",
                                      "2026-01-01T00:00:60Z",
                                      "2026-01-01T00:00:00.Z",
                                      "2026-01-01T00:00:00.0000001Z",
                                      "2026-01-01T00:00:00Zz",
                                      "2026-01-01T00:00:00+1:00",
                                      "2026-01-01T00:00:00+24:00",
                                      "-026-01-01T00:00:00Z"};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event;

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        CHECK_OK(hf_event_from_json(
            s,
            hf_scope_format(s, "{\"domain\":\"d\",\"type\":\"t\",\"time\":\"%s\"}", good[i].text),
            &event));
        CHECK_INT(good[i].us, event.time_us);
        check_returns(s, &event);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_STATUS(HF_SERIALIZATION,
                     hf_event_from_json(s,
                                        hf_scope_format(s,
                                                        "{\"domain\":\"d\",\"type\":\"t\","
                                                        "\"time\":\"%s\"}",
                                                        bad[i]),
                                        &event));
        CHECK_ERROR(HF_SERIALIZATION, "the event's \"time\" is not a time", s);
    }
    event = plain();
    for (int i = 0; i < 200; i++) { /* also beyond what RFC 3339 can say */
        event.time_us = (int64_t)(test_random(t) >> (i % 64));
        if (i % 2 && event.time_us != INT64_MIN)
            event.time_us = -event.time_us;
        check_returns(s, &event);
    }
    event.time_us = INT64_MIN;
    check_returns(s, &event);
    event.time_us = INT64_MAX;
    check_returns(s, &event);
    event.time_us = 253402300800000000; /* the year 10000 */
    CHECK(strstr(check_returns(s, &event).ptr, "\"time_us\":253402300800000000"));
    hf_scope_free(s);
}

TEST(events_json, what_is_left_out)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event;

    CHECK_OK(hf_event_from_json(s, HF_STR(" { \"type\" : \"t\" , \"domain\":\"d\", \"id\":null} "),
                                &event));
    CHECK_STR("d", event.stream.domain);
    CHECK(!event.stream.id.len && !event.id.len && !event.causation.ptr && !event.payload.len);
    CHECK_INT(0, event.version);
    CHECK_INT(1, event.schema);
    CHECK(!event.hash.ptr && !event.blob.ptr && !event.meta.ptr);
    hf_scope_free(s);
}

/* (4), and every other way to be wrong. */
TEST(events_json, says_what_is_wrong)
{
#define EVENT "{\"domain\":\"d\",\"type\":\"t\","
    static const struct {
        const char *json, *message;
    } cases[] = {
        {"", "the event is not valid JSON: expected an object at byte 1"},
        {"[]", "the event is not valid JSON: expected an object at byte 1"},
        {"{\"domain\":\"d\"", "the event is not valid JSON: expected ',' or '}' at byte 14"},
        {"{\"domain\":\"d\"}", "the event has no \"type\""},
        {"{\"type\":\"d\"}", "the event has no \"domain\""},
        {"{\"domain\":\"\",\"type\":\"d\"}", "the event has no \"domain\""},
        {"{\"domain\":\"d\",\"type\":7}", "the event's \"type\" is not a string"},
        {EVENT "\"typo\":1}", "the event has an unknown member \"typo\""},
        {EVENT "\"type\":\"t\"}", "the event has \"type\" twice, at byte 33"},
        {EVENT "\"version\":-1}", "the event's \"version\" is not a whole number"},
        {EVENT "\"version\":1.0}", "the event's \"version\" is not a whole number"},
        {EVENT "\"version\":\"1\"}", "the event's \"version\" is not a whole number"},
        {EVENT "\"version\":18446744073709551616}", "the event's \"version\" is too large"},
        {EVENT "\"schema\":4294967296}", "the event's \"schema\" is too large"},
        {EVENT "\"time_us\":9223372036854775808}", "the event's \"time_us\" is too large"},
        {EVENT "\"time\":\"2026-01-01T00:00:00Z\",\"time_us\":1}",
         "the event has \"time\" and \"time_us\""},
        {EVENT "\"payload\":1,\"payload_base64\":\"AA==\"}",
         "the event has \"payload\" and \"payload_base64\""},
        {EVENT "\"payload_base64\":\"A\"}", "the event's \"payload_base64\" is not base64"},
        {EVENT "\"payload_base64\":null}", "the event's \"payload_base64\" is not a string"},
        {EVENT "\"hash\":\"00\"}", "the event's \"hash\" is not 64 hexadecimal digits"},
        {EVENT "\"id\":\"\xC0\x80\"}",
         "the event is not valid JSON: invalid UTF-8 in a string at byte 32"},
        {EVENT "\"payload\":{]}}",
         "the event is not valid JSON: expected a name in quotes at byte 37"},
        {EVENT "\"id\":\"a\"} x",
         "the event is not valid JSON: something follows the value at byte 36"},
    };
#undef EVENT
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        CHECK_STATUS(HF_SERIALIZATION, hf_event_from_json(s, hf_str_from(cases[i].json), &event));
        CHECK_ERROR(HF_SERIALIZATION, cases[i].message, s);
    }
    CHECK_STATUS(HF_SERIALIZATION,
                 hf_event_from_json(s,
                                    HF_STR("{\"domain\":\"d\",\"type\":\"t\",\"meta\":{\"a\":1}}"),
                                    &event));
    CHECK(strstr(hf_scope_error_text(s), "the event's \"meta\": "));
    hf_scope_free(s);
}

TEST(events_json, an_event_that_is_none)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_stored_event event = plain();
    struct hf_str json;

    event.type = hf_str_of(NULL, 0);
    CHECK_STATUS(HF_INVALID, hf_event_to_json(s, &event, &json));
    event = plain();
    event.causation = HF_STR("\xFF");
    CHECK_STATUS(HF_INVALID, hf_event_to_json(s, &event, &json));
    CHECK_ERROR(HF_INVALID, "event \"a1\" has text that is not valid UTF-8", s);
    CHECK(!json.ptr);
    hf_scope_free(s);
}

TEST(events_json, any_allocation_may_fail)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_stored_event event = plain(), back;
        enum hf_status status = HF_NOMEM;
        struct hf_str json;
        uint8_t large[5000] = {0};

        event.payload = hf_bytes_of(large, sizeof(large));
        if (s)
            status = hf_event_to_json(s, &event, &json);
        if (status == HF_OK)
            status = hf_event_from_json(s, json, &back);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        if (status == HF_OK)
            check_same(&event, &back);
        hf_scope_free(s);
    }
}
