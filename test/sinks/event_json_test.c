/*
 * sinks/event_json_test.c: CloudEvents 1.0; (n) is of event_json.c. A JSON reader that is not ours
 * judges what comes out.
 */
#include "help.h"

#include <jansson.h>
#include <string.h>

static void check_json(struct desk *d, const struct hf_event *event, const char *expected)
{
    struct hf_str json;
    json_t *read;

    CHECK_OK(hf_event_json(d->s, event, &json));
    CHECK_STR(expected, json);
    CHECK_INT(0, json.ptr[json.len]);
    CHECK(!memchr(json.ptr, '\n', json.len));
    read = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    CHECK(read != NULL);
    json_decref(read);
}

TEST(event_json, has_the_least_that_there_is)
{
    struct hf_event event = {.id = HF_STR("1"), .type = HF_STR("t")};
    struct desk d;

    desk_open(t, &d);
    check_json(&d, &event,
               "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"holdfast\",\"type\":\"t\","
               "\"datacontenttype\":\"application/json\"}");
    desk_close(&d);
}

TEST(event_json, has_everything_that_there_is)
{
    struct hf_event event = {.id = HF_STR("1"),
                             .type = HF_STR("t"),
                             .source = HF_STR("/s"),
                             .key = HF_STR("k"),
                             .sequence = UINT64_MAX,
                             .time_us = INT64_C(1769904000123456),
                             .payload = hf_bytes_of(" { \"a b\" : [ 1 ,\n\"\\\" \\\\\" ] }\n", 29),
                             .schema = HF_STR("https://example.com/s"),
                             .correlation = HF_STR("cor"),
                             .causation = HF_STR("cau"),
                             .aggregate = HF_STR("agg"),
                             .aggregate_type = HF_STR("aggt"),
                             .tenant = HF_STR("ten"),
                             .destination = HF_STR("des"),
                             .trace_parent = HF_STR("00-a-b-01"),
                             .trace_state = HF_STR("x=y"),
                             .urgent = true};
    struct desk d;

    desk_open(t, &d);
    event.headers = HF_ITEM(d.keep, HF_S("plain1", HF_STR("v\n\"\x01\xc3\xa4")),
                            HF_BOOL("truth", false), HF_N("whole", INT32_MIN),
                            HF_N("large", INT64_C(2147483648)), HF_NUM("real", HF_STR("1.5")),
                            HF_S("X-Odd", HF_STR("o")), HF_S("type", HF_STR("not the type")),
                            HF_S("empty", HF_STR("")), HF_NULL("nothing"), HF_BOOL("urgent", false),
                            HF_L("list", HF_LIST(d.keep, HF_N("", 1), HF_S("", HF_STR("x")))),
                            HF_M("map", HF_ITEM(d.keep, HF_B("b", hf_bytes_of("\xff", 1)))));
    check_json(
        &d, &event,
        "{\"specversion\":\"1.0\",\"id\":\"1\",\"source\":\"/s\",\"type\":\"t\","
        "\"time\":\"2026-02-01T00:00:00.123456Z\",\"datacontenttype\":\"application/json\","
        "\"dataschema\":\"https://example.com/s\",\"subject\":\"agg\","
        "\"aggregatetype\":\"aggt\",\"partitionkey\":\"k\","
        "\"sequence\":\"18446744073709551615\",\"correlationid\":\"cor\","
        "\"causationid\":\"cau\",\"tenant\":\"ten\",\"destination\":\"des\","
        "\"traceparent\":\"00-a-b-01\",\"tracestate\":\"x=y\",\"urgent\":true,\"large\":\"2147483648\","
        "\"plain1\":\"v\\n\\\"\\u0001\xc3\xa4\",\"real\":\"1.5\",\"truth\":false,"
        "\"whole\":-2147483648,"
        "\"headersjson\":\"{\\\"X-Odd\\\":\\\"o\\\",\\\"empty\\\":\\\"\\\","
        "\\\"list\\\":[1,\\\"x\\\"],\\\"map\\\":{\\\"b\\\":\\\"/w==\\\"},"
        "\\\"nothing\\\":null,\\\"type\\\":\\\"not the type\\\",\\\"urgent\\\":false}\","
        "\"data\":{\"a b\":[1,\"\\\" \\\\\"]}}");
    desk_close(&d);
}

/* (2) */
TEST(event_json, has_data_when_it_is_json_and_base64_otherwise)
{
    static const struct {
        const char *type, *payload, *data;
    } cases[] = {
        {NULL, "7", ",\"data\":7}"},
        {"application/JSON", "null", ",\"data\":null}"},
        {"application/vnd.x+json; charset=utf-8", "\"s\"", ",\"data\":\"s\"}"},
        {"text/json ;a", "[]", ",\"data\":[]}"},
        {NULL, "{\"a\":1", ",\"data_base64\":\"eyJhIjox\"}"},
        {NULL, "1 2", ",\"data_base64\":\"MSAy\"}"},
        {NULL, "\"a\nb\"", ",\"data_base64\":\"ImEKYiI=\"}"},
        {"text/plain", "7", ",\"data_base64\":\"Nw==\"}"},
        {"json", "7", ",\"data_base64\":\"Nw==\"}"},
        {"application/jsonx", "7", ",\"data_base64\":\"Nw==\"}"},
    };
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_event event = {.id = HF_STR("1"),
                                 .type = HF_STR("t"),
                                 .content_type = str_of(cases[i].type)};
        struct hf_str json;

        event.payload = hf_bytes_of(cases[i].payload, strlen(cases[i].payload));
        CHECK_OK(hf_event_json(d.s, &event, &json));
        CHECK_HAS(cases[i].data, json);
    }
    desk_close(&d);
}

TEST(event_json, refuses_what_is_no_event)
{
    struct desk d;
    struct hf_str json;
    struct hf_event event = {.type = HF_STR("t")};

    desk_open(t, &d);
    CHECK_STATUS(HF_INVALID, hf_event_json(d.s, &event, &json));
    CHECK_ERROR(HF_INVALID, "the event has no id", d.s);
    CHECK(!json.ptr);
    event = (struct hf_event){.id = HF_STR("1")};
    CHECK_STATUS(HF_INVALID, hf_event_json(d.s, &event, &json));
    CHECK_ERROR(HF_INVALID, "the event has no type", d.s);
    event = (struct hf_event){.id = HF_STR("1"), .type = HF_STR("\xff")};
    CHECK_STATUS(HF_INVALID, hf_event_json(d.s, &event, &json));
    CHECK_ERROR(HF_INVALID, "the event's type is not UTF-8", d.s);
    event = (struct hf_event){.id = HF_STR("1"), .type = HF_STR("t"), .time_us = INT64_MAX};
    CHECK_STATUS(HF_INVALID, hf_event_json(d.s, &event, &json));
    CHECK_ERROR(HF_INVALID, "the event's time is beyond the years 0 to 9999", d.s);
    event = (struct hf_event){.id = HF_STR("1"), .type = HF_STR("t")};
    event.headers = HF_ITEM(d.s, HF_NUM("n", HF_STR("x")));
    CHECK(hf_event_json(d.s, &event, &json) != HF_OK);
    desk_close(&d);
}

TEST(event_json, tells_times_before_1970_and_whole_seconds)
{
    char text[EVENT_TIME];

    CHECK(hf__sink_event_time(-1, text));
    CHECK_STR("1969-12-31T23:59:59.999999Z", str_of(text));
    CHECK(hf__sink_event_time(INT64_C(951782400000000), text));
    CHECK_STR("2000-02-29T00:00:00Z", str_of(text));
    CHECK(hf__sink_event_time(INT64_C(253402300799999999), text));
    CHECK_STR("9999-12-31T23:59:59.999999Z", str_of(text));
    CHECK(!hf__sink_event_time(INT64_C(253402300800000000), text));
    CHECK(!hf__sink_event_time(INT64_MIN, text));
}

TEST(event_json, schemas_that_are_no_uri_are_versions)
{
    static const struct {
        const char *schema, *name;
    } cases[] = {{"2", "schemaversion"},     {"a:", "schemaversion"},   {":a", "schemaversion"},
                 {"urn:x", "dataschema"},    {"1a:b", "schemaversion"}, {"a/b:c", "schemaversion"},
                 {"a+b-c.1:d", "dataschema"}};
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_event event = {.id = HF_STR("1"),
                                 .type = HF_STR("t"),
                                 .schema = str_of(cases[i].schema)};
        const struct event_attribute *list;
        size_t len;

        CHECK_OK(hf__sink_event_attributes(d.s, &event, &list, &len));
        CHECK(hf__sink_event_attribute(list, len, cases[i].name) != NULL);
        CHECK(!hf__sink_event_attribute(list, len, "nothing"));
    }
    desk_close(&d);
}

TEST(event_json, fails_cleanly_without_memory)
{
    struct desk d;
    struct hf_item headers;

    desk_open(t, &d);
    headers = HF_ITEM(d.keep, HF_S("a", HF_STR("b")), HF_NUM("X", HF_STR("1.5")),
                      HF_L("l", HF_LIST(d.keep, HF_N("", 1))));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(&d.env);
        struct hf_event event = {.id = HF_STR("1"),
                                 .type = HF_STR("t"),
                                 .sequence = 1,
                                 .time_us = 1,
                                 .payload = hf_bytes_of("{ }", 3),
                                 .headers = headers};
        struct hf_str json = {NULL, 0};
        enum hf_status status = s ? hf_event_json(s, &event, &json) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK((status == HF_OK) == (json.ptr != NULL));
        hf_scope_free(s);
    }
    desk_close(&d);
}
