/*
 * sinks/bus_message_test.c: events as the publishers of outbox-event-bus write them. What is
 * expected here is what JSON.stringify() of its event gives.
 */
#include "help.h"

#include <jansson.h>
#include <string.h>

static void check_json(struct desk *d, const struct hf_event *event, const char *expected)
{
    struct hf_str json;
    json_t *read;

    CHECK_OK(hf__sink_bus_message_json(d->s, event, &json));
    CHECK_STR(expected, json);
    CHECK_INT(0, json.ptr[json.len]);
    read = json_loadb(json.ptr, json.len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
    CHECK(read != NULL);
    json_decref(read);
}

TEST(bus_message, is_the_event_of_the_other_library)
{
    struct hf_event event = {.id = HF_STR("1"), .type = HF_STR("t")};
    struct desk d;

    desk_open(t, &d);
    check_json(&d, &event,
               "{\"id\":\"1\",\"type\":\"t\",\"occurredAt\":\"1970-01-01T00:00:00.000Z\"}");
    event.payload = hf_bytes_of(" { \"a b\" : [ 1 ,\n\"\\\" \\\\\" ] }\n", 29);
    event.time_us = INT64_C(1769904000123999);
    check_json(&d, &event,
               "{\"id\":\"1\",\"type\":\"t\",\"payload\":{\"a b\":[1,\"\\\" \\\\\"]},"
               "\"occurredAt\":\"2026-02-01T00:00:00.123Z\"}");
    event.payload = hf_bytes_of("null", 4);
    event.time_us = -1;
    event.correlation = HF_STR("c");
    event.causation = HF_STR("b");
    event.source = event.key = event.tenant = event.schema = HF_STR("not there");
    check_json(&d, &event,
               "{\"id\":\"1\",\"type\":\"t\",\"payload\":null,"
               "\"occurredAt\":\"1969-12-31T23:59:59.999Z\","
               "\"metadata\":{\"correlationId\":\"c\",\"causationId\":\"b\"}}");
    event.time_us = 0;
    event.headers = HF_ITEM(d.keep, HF_S("correlationId", HF_STR("theirs")), HF_N("n", 7),
                            HF_L("l", HF_LIST(d.keep, HF_BOOL("", true))));
    check_json(&d, &event,
               "{\"id\":\"1\",\"type\":\"t\",\"payload\":null,"
               "\"occurredAt\":\"1970-01-01T00:00:00.000Z\",\"metadata\":{"
               "\"correlationId\":\"theirs\",\"l\":[true],\"n\":7,\"causationId\":\"b\"}}");
    desk_close(&d);
}

TEST(bus_message, refuses_what_it_cannot_be)
{
    static const struct hf_event wrong[] = {
        {.type = {"t", 1}},
        {.id = {"1", 1}},
        {.id = {"\xff", 1}, .type = {"t", 1}},
        {.id = {"1", 1}, .type = {"\xff", 1}},
        {.id = {"1", 1}, .type = {"t", 1}, .correlation = {"\xff", 1}},
        {.id = {"1", 1}, .type = {"t", 1}, .payload = {(const uint8_t *)"{", 1}},
        {.id = {"1", 1},
         .type = {"t", 1},
         .payload = {(const uint8_t *)"1", 1},
         .content_type = {"text/plain", 10}},
        {.id = {"1", 1}, .type = {"t", 1}, .time_us = INT64_MAX},
    };
    struct hf_str json;
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_STATUS(HF_INVALID, hf__sink_bus_message_json(d.s, &wrong[i], &json));
        CHECK(!json.ptr);
    }
    desk_close(&d);
}

TEST(bus_message, fails_cleanly_without_memory)
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
                                 .time_us = 1,
                                 .payload = hf_bytes_of("{ }", 3),
                                 .headers = headers};
        struct hf_str json = {NULL, 0};
        enum hf_status status = s ? hf__sink_bus_message_json(s, &event, &json) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK((status == HF_OK) == (json.ptr != NULL));
        hf_scope_free(s);
    }
    desk_close(&d);
}
