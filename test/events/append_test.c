/*
 * test/events/append_test.c: appending; (n) is an invariant of events_append.c.
 */
#include "events_kit.h"

/* A stream begins, goes on, and is read as it was written. */
KIT_TEST_TX(append, events_come_back_as_they_were_written)
{
    struct hf_events *store = open_store(k);
    struct hf_item meta = HF_ITEM(k->scope, HF_S("who", HF_STR("ann")), HF_N("n", 7));
    struct hf_new_event events[] = {{.type = HF_STR("placed"),
                                     .payload = PAYLOAD("{\"a\":1}"),
                                     .meta = meta},
                                    {.type = HF_STR("paid"),
                                     .payload = PAYLOAD(""),
                                     .content_type = HF_STR("text/plain"),
                                     .schema = 3,
                                     .time_us = 1234567890123456,
                                     .causation = HF_STR("cause"),
                                     .correlation = HF_STR("tree"),
                                     .compensates = HF_STR("other")}};
    struct hf_append append = {.stream = ORDER("7"),
                               .expect = HF_EXPECT_NONE,
                               .events = events,
                               .events_len = 2};
    struct hf_events_page page;
    struct hf_stored_event one;
    struct hf_appended done;

    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_INT(1, done.first);
    CHECK_INT(2, done.last);
    CHECK(!done.repeated);
    CHECK_INT(HF_POSITION_LEN, done.position.len);
    CHECK(hf_str_equal(done.ids[1], done.position));

    CHECK_OK(hf_events_read(k->scope, store, ORDER("7"), NULL, &page));
    CHECK_INT(2, page.events_len);
    CHECK_INT(2, page.version);
    CHECK_INT(0, page.next);
    CHECK(hf_str_equal(done.ids[0], page.events[0].id));
    CHECK_STR("placed", page.events[0].type);
    CHECK_STR("{\"a\":1}", payload_of(&page.events[0]));
    CHECK_STR("application/json", page.events[0].content_type);
    CHECK_INT(1, page.events[0].schema);
    CHECK_INT(1, page.events[0].version);
    CHECK(hf_item_equal(meta, page.events[0].meta));
    CHECK(!page.events[0].causation.ptr);
    CHECK(hf_str_equal(page.events[0].id, page.events[0].correlation));
    CHECK_INT(32, page.events[0].hash.len);
    CHECK(page.events[0].time_us > 0);

    CHECK_STR("", payload_of(&page.events[1]));
    CHECK(page.events[1].payload.ptr != NULL);
    CHECK_STR("text/plain", page.events[1].content_type);
    CHECK_INT(3, page.events[1].schema);
    CHECK_INT(1234567890123456, page.events[1].time_us);
    CHECK_STR("cause", page.events[1].causation);
    CHECK_STR("tree", page.events[1].correlation);
    CHECK_STR("other", page.events[1].compensates);
    CHECK_STR("order", page.events[1].stream.domain);
    CHECK_STR("7", page.events[1].stream.id);

    CHECK_OK(hf_events_get(k->scope, store, done.ids[1], &one));
    CHECK_INT(2, one.version);
    CHECK_STR("paid", one.type);
    CHECK_STR("order", one.stream.domain);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, HF_STR("nothing"), &one));
    hf_events_close(store);
}

/* D5.4: the first append with an expected version of 0, and of more than 25 events. D5.6: each
 * refusal says at which version the stream is. */
KIT_TEST_TX(append, expectations_are_held_against_the_stream_as_it_is)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_appended done;

    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_EXISTS, 0, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" has no event, but there was to be one", k->scope);
    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, 5, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" has no event, but it was to be at 5", k->scope);
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, 0, 30, &done));
    CHECK_INT(30, done.last);
    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" is at version 30, but there was to be none",
                k->scope);
    CHECK_INT(30, done.last);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_VERSION, 30, 1, &done));
    CHECK_INT(31, done.first);
    /* This store still remembers 30, and learns otherwise (4). */
    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, 30, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" is at version 31, but it was to be at 30",
                k->scope);
    CHECK_INT(31, done.last);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 2, &done));
    CHECK_INT(34, done.last);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_EXISTS, 0, 1, &done));
    CHECK_INT(35, done.last);
    /* Without events the expectation is checked only. */
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_VERSION, 35, 0, &done));
    CHECK_STATUS(HF_CONDITION, append_some(k, other, ORDER("1"), HF_EXPECT_VERSION, 34, 0, &done));
    CHECK_STATUS(HF_CONDITION, append_some(k, other, ORDER("2"), HF_EXPECT_EXISTS, 0, 0, &done));
    CHECK_OK(append_some(k, other, ORDER("2"), HF_EXPECT_NONE, 0, 0, &done));
    hf_events_close(store);
    hf_events_close(other);
}
