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
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" does not exist", k->scope);
    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, 5, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" is empty, expected version 5", k->scope);
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, 0, 30, &done));
    CHECK_INT(30, done.last);
    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" already exists (version 30)", k->scope);
    CHECK_INT(30, done.last);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_VERSION, 30, 1, &done));
    CHECK_INT(31, done.first);
    /* This store still remembers 30, and learns otherwise (4). */
    CHECK_STATUS(HF_CONDITION, append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, 30, 1, &done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/1\" is at version 31, expected version 30", k->scope);
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

/* D5.7: no two pairs of domain and id are the same stream. */
KIT_TEST_TX(append, streams_of_any_name_are_apart)
{
    static const struct {
        const char *domain, *id;
    } names[] = {{"a", ""},      {"a::b", "c"},     {"a", "b::c"}, {"a.b", "c"}, {"a", "b.c"},
                 {"a%2Eb", "c"}, {"a", "%"},        {"a", "%25"},  {"a/b", "c"}, {"a", "b/c"},
                 {"h", "h"},     {"\xC3\xA9", "x"}, {"a", " "}};
    struct hf_events *store = open_store(k);
    struct hf_events_page page;
    struct hf_appended done;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct hf_event_stream_key key = {hf_str_from(names[i].domain), hf_str_from(names[i].id)};

        CHECK_OK(append_some(k, store, key, HF_EXPECT_NONE, 0, i + 1, &done));
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct hf_event_stream_key key = {hf_str_from(names[i].domain), hf_str_from(names[i].id)};
        struct hf_stored_event event;

        CHECK_OK(hf_events_read(k->scope, store, key, NULL, &page));
        CHECK_INT(i + 1, page.version);
        CHECK_OK(hf_events_get(k->scope, store, page.events[i].id, &event));
        CHECK_STR(names[i].domain, event.stream.domain);
        CHECK_STR(names[i].id, event.stream.id);
    }
    hf_events_close(store);
}

/* D5.10: payloads come back as they are: whatever looks like something else, or like nothing. */
KIT_TEST_TX(append, payloads_are_bytes)
{
    static const struct hf_bytes payloads[] = {PAYLOAD("0"),
                                               PAYLOAD("false"),
                                               PAYLOAD(""),
                                               PAYLOAD("null"),
                                               PAYLOAD("\"{\\\"a\\\":1}\""),
                                               PAYLOAD("{\"a\":1}"),
                                               PAYLOAD("\0\xFF\xFE"),
                                               PAYLOAD(" ")};
    enum { COUNT = sizeof(payloads) / sizeof(payloads[0]) };
    struct hf_events *store = open_store(k);
    struct hf_new_event events[COUNT];
    struct hf_append append = {.stream = ORDER("1"), .events = events, .events_len = COUNT};
    struct hf_events_page page;

    for (size_t i = 0; i < COUNT; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t"), .payload = payloads[i]};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    for (size_t i = 0; i < COUNT; i++) {
        CHECK_INT(payloads[i].len, page.events[i].payload.len);
        CHECK(page.events[i].payload.ptr != NULL);
        CHECK(memcmp(payloads[i].ptr, page.events[i].payload.ptr, payloads[i].len) == 0);
    }
    hf_events_close(store);
}

static struct hf_append one_with_id(struct kit *k, struct hf_event_stream_key stream,
                                    const char *id, const char *payload)
{
    struct hf_new_event *event = hf_scope_alloc(k->scope, sizeof(*event));

    *event = (struct hf_new_event){.type = HF_STR("t"),
                                   .id = hf_str_from(id),
                                   .payload = hf_bytes_of(payload, strlen(payload))};
    return (struct hf_append){.stream = stream, .events = event, .events_len = 1};
}

/* D5.3: nor is an id free at another time, which was a part of the key. */
KIT_TEST_TX(append, an_id_is_taken_at_any_time)
{
    struct hf_events *store = open_store(k);
    struct hf_append one = one_with_id(k, ORDER("1"), "e1", "x");
    struct hf_new_event event = one.events[0];
    struct hf_appended again;
    struct hf_events_page page;

    event.time_us = INT64_C(1700000000000000);
    one.events = &event;
    CHECK_OK(hf_events_append(k->scope, store, &one, 1, NULL, &again));
    CHECK_OK(hf_events_append(k->scope, store, &one, 1, NULL, &again));
    CHECK(again.repeated);
    event.time_us += 1000; /* who tries again may have another clock: it is the same event */
    CHECK_OK(hf_events_append(k->scope, store, &one, 1, NULL, &again));
    CHECK(again.repeated);
    test_advance_ms(k->t, 40 * 24 * 3600 * INT64_C(1000));
    event.time_us = 0; /* now */
    CHECK_OK(hf_events_append(k->scope, store, &one, 1, NULL, &again));
    CHECK(again.repeated);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(1, page.version);
    CHECK_INT(INT64_C(1700000000000000), page.events[0].time_us);
    hf_events_close(store);
}

/* D5.3, H23: an id is taken once. The same events again are answered as they were, whatever version
 * is expected now; anything else with such an id is refused, and says why. (5) */
KIT_TEST_TX(append, the_same_events_again_change_nothing)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_append one = one_with_id(k, ORDER("1"), "e1", "x"), two;
    struct hf_new_event events[3] = {one.events[0], one.events[0], one.events[0]};
    struct hf_append three = {.stream = ORDER("1"), .events = events, .events_len = 3};
    struct hf_events_page page;
    struct hf_stored_event event;
    struct hf_appended done, again;

    one.expect = HF_EXPECT_NONE;
    CHECK_OK(hf_events_append(k->scope, store, &one, 1, NULL, &done));
    CHECK(!done.repeated);
    CHECK_STR("e1", done.ids[0]);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 2, &again));
    CHECK_OK(hf_events_append(k->scope, store, &one, 1, NULL, &again));
    CHECK(again.repeated);
    CHECK_INT(1, again.first);
    CHECK_INT(1, again.last);
    CHECK_STR("e1", again.ids[0]);
    CHECK(hf_str_equal(done.position, again.position));
    one.expect = HF_EXPECT_ANY;
    CHECK_OK(hf_events_append(k->scope, other, &one, 1, NULL, &again));
    CHECK(again.repeated);
    CHECK_OK(hf_events_get(k->scope, other, HF_STR("e1"), &event));
    CHECK_INT(1, event.version);

    two = one_with_id(k, ORDER("1"), "e1", "y");
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &two, 1, NULL, &again));
    CHECK_ERROR(
        HF_DUPLICATE,
        "id \"e1\" is already used by version 1 of stream \"order/1\", with different content",
        k->scope);
    two = one_with_id(k, ORDER("2"), "e1", "x");
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &two, 1, NULL, &again));
    CHECK_ERROR(
        HF_DUPLICATE,
        "id \"e1\" is already used by version 1 of stream \"order/1\", which is another stream",
        k->scope);
    events[1].id = HF_STR("e2");
    events[2].id = HF_STR("e3");
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &three, 1, NULL, &again));
    CHECK_ERROR(
        HF_DUPLICATE,
        "id \"e1\" is already used by version 1 of stream \"order/1\", but not all of these "
        "events exist",
        k->scope);
    events[0].id = HF_STR("e4");
    CHECK_OK(hf_events_append(k->scope, store, &three, 1, NULL, &done));
    CHECK_INT(4, done.first);
    CHECK_OK(hf_events_append(k->scope, store, &three, 1, NULL, &again));
    CHECK(again.repeated);
    CHECK_INT(4, again.first);
    CHECK_INT(6, again.last);
    events[2].id = (struct hf_str){NULL, 0};
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &three, 1, NULL, &again));
    CHECK_ERROR(
        HF_DUPLICATE,
        "id \"e4\" is already used by version 4 of stream \"order/1\", and other events of this "
        "append have no id",
        k->scope);
    events[2].id = HF_STR("e2"); /* e2 twice */
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &three, 1, NULL, &again));
    CHECK_ERROR(HF_DUPLICATE, "events 2 and 3 have the same id, \"e2\"", k->scope);
    events[1].id = HF_STR("e3"); /* the order is another one */
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &three, 1, NULL, &again));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(6, page.version);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("2"), NULL, &page));
    CHECK_INT(0, page.version);
    hf_events_close(store);
    hf_events_close(other);
}

/* An id that looks like a position is found, and so is the event at that position. */
/* No two events have one id, also when the first was given it by us. */
KIT_TEST_TX(append, an_id_that_is_a_position_is_taken)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event events[2] = {{.type = HF_STR("t2"), .payload = PAYLOAD("2")},
                                     {.type = HF_STR("t3"), .payload = PAYLOAD("3")}};
    struct hf_append append = {.stream = ORDER("1"), .events = events, .events_len = 1};
    struct hf_event_stream_info info;
    struct hf_appended first, done;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, &first));
    for (int archived = 0; archived < 2; archived++) {
        append.stream = ORDER("2");
        events[0].id = first.ids[1];
        CHECK_STATUS(HF_DUPLICATE,
                     hf_events_append(k->scope, store, &append, 1, NULL, &done)); /* where */
        append.stream = ORDER("1");
        CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
        CHECK(done.repeated);
        CHECK_INT(2, done.first);
        CHECK_INT(2, done.last);
        CHECK_STR(first.ids[1].ptr, done.ids[0]);
        events[0].id = first.ids[0];
        CHECK_STATUS(HF_DUPLICATE,
                     hf_events_append(k->scope, store, &append, 1, NULL, &done)); /* what */
        CHECK_OK(hf_events_stream_info(k->scope, store, ORDER("1"), &info));
        CHECK_INT(3, info.version);
        CHECK_STATUS(HF_NOT_FOUND, hf_events_stream_info(k->scope, store, ORDER("2"), &info));
        CHECK_OK(hf_events_archive(k->scope, store, ORDER("1")));
    }
    CHECK_OK(hf_events_unarchive(k->scope, store, ORDER("1")));

    /* Some of them; all of them, one behind the other. */
    events[0].id = first.ids[1];
    append.events_len = 2;
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &append, 1, NULL, &done));
    events[1].id = first.ids[2];
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK(done.repeated);
    CHECK_INT(2, done.first);
    CHECK_INT(3, done.last);
    hf_events_close(store);
}

KIT_TEST_TX(append, ids_that_look_like_positions_are_found)
{
    struct hf_events *store = open_store(k);
    struct hf_append append;
    struct hf_stored_event event;
    struct hf_appended done;
    char looks[HF_POSITION_LEN + 1];

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    memcpy(looks, done.ids[0].ptr, HF_POSITION_LEN);
    looks[HF_POSITION_LEN] = '\0';
    looks[HF_POSITION_LEN - 1] = '1';
    append = one_with_id(k, ORDER("2"), looks, "x");
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    append = one_with_id(k, ORDER("3"), "01ARZ3NDEKTSV4RRFFQ69G5FAV", "x");
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_OK(hf_events_get(k->scope, store, hf_str_from(looks), &event));
    CHECK_STR("2", event.stream.id);
    CHECK_OK(hf_events_get(k->scope, store, HF_STR("01ARZ3NDEKTSV4RRFFQ69G5FAV"), &event));
    CHECK_STR("3", event.stream.id);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, done.position, &event));
    hf_events_close(store);
}

/* D5.5: several streams, all or none, each with an expectation of its own. */
KIT_TEST_TX(append, several_streams_are_appended_to_as_a_whole)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_append appends[] = {
        {.stream = ORDER("1"), .expect = HF_EXPECT_NONE, .events = &event, .events_len = 1},
        {.stream = ORDER("2"),
         .expect = HF_EXPECT_VERSION,
         .version = 2,
         .events = &event,
         .events_len = 1},
        {.stream = ORDER("3"), .expect = HF_EXPECT_VERSION, .version = 1}};
    struct hf_events_page page;
    struct hf_appended done[3], some;

    CHECK_OK(append_some(k, other, ORDER("2"), HF_EXPECT_NONE, 0, 3, &some));
    CHECK_OK(append_some(k, other, ORDER("3"), HF_EXPECT_NONE, 0, 1, &some));
    CHECK_STATUS(HF_CONDITION, hf_events_append(k->scope, store, appends, 3, NULL, done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/2\" is at version 3, expected version 2", k->scope);
    CHECK_INT(3, done[1].last);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(0, page.version);
    appends[1].version = 3;
    appends[2].version = 2;
    CHECK_STATUS(HF_CONDITION, hf_events_append(k->scope, store, appends, 3, NULL, done));
    CHECK_ERROR(HF_CONDITION, "stream \"order/3\" is at version 1, expected version 2", k->scope);
    appends[2].version = 1;
    CHECK_OK(hf_events_append(k->scope, store, appends, 3, NULL, done));
    CHECK_INT(1, done[0].last);
    CHECK_INT(4, done[1].last);
    CHECK_INT(1, done[2].last);
    CHECK(memcmp(done[0].position.ptr, done[1].position.ptr, HF_POSITION_LEN) < 0);
    appends[1].stream = ORDER("1");
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, appends, 3, NULL, done));
    CHECK_ERROR(HF_INVALID, "stream \"order/1\" is named twice", k->scope);
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, appends, 0, NULL, done));
    hf_events_close(store);
    hf_events_close(other);
}

/* What is to happen together with an append does, or neither does; and its own refusal is told by
 * the reasons, those of `with` first. */
KIT_TEST_TX(append, something_else_happens_together_with_it)
{
    struct hf_events *store = open_store(k);
    struct hf_put_item put = {.table = k->other,
                              .item = HF_ITEM(k->scope, HF_S("id", HF_STR("p"))),
                              .condition = HF_STR("attribute_not_exists(id)")};
    struct hf_transact_write with = {.put = &put};
    struct hf_append_options options = {.size = sizeof(options), .with = &with, .with_len = 1};
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_append append = {.stream = ORDER("1"),
                               .expect = HF_EXPECT_EXISTS,
                               .events = &event,
                               .events_len = 1};
    struct hf_events_page page;

    kit_make_table(k, k->other);
    CHECK_STATUS(HF_CONDITION, hf_events_append(k->scope, store, &append, 1, &options, NULL));
    append.expect = HF_EXPECT_ANY;
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, &options, NULL));
    CHECK_STATUS(HF_TX_CANCELED, hf_events_append(k->scope, store, &append, 1, &options, NULL));
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[0].code);
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(1, page.version);
    hf_events_close(store);
}

/* What goes with an append that has no events happens once, too. */
KIT_TEST_TX(append, lost_answers_let_nothing_that_goes_with_it_happen_twice)
{
    struct hf_events *store = open_store(k);
    struct hf_append none = {.stream = ORDER("1"), .expect = HF_EXPECT_VERSION, .version = 1};
    struct hf_item key = HF_ITEM(k->scope, HF_S("pk", HF_STR("mine")), HF_S("sk", HF_STR("n")));
    struct hf_update_item add = {.table = k->table,
                                 .key = key,
                                 .update = HF_STR("ADD n :one"),
                                 .values = HF_ITEM(k->scope, HF_N(":one", 1))};
    struct hf_transact_write with = {.update = &add};
    struct hf_get_item get = {.table = k->table, .key = key, .consistent = HF_YES};
    struct hf_get_item_result got;
    int64_t n;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, NULL));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 1);
    CHECK_OK(hf_events_append(k->scope, store, &none, 1,
                              HF_OPTIONS(hf_append_options, .with = &with, .with_len = 1), NULL));
    kit_no_faults(k);
    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("n")), &n));
    CHECK_INT(1, n);
    hf_events_close(store);
}

/* H23, (2): whatever answer gets lost, events are appended once. */
KIT_TEST_TX(append, lost_answers_append_nothing_twice)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST,
                                               HF_FAULT_CONFLICT, HF_FAULT_THROTTLE,
                                               HF_FAULT_ERROR};
    struct hf_events *store = open_store(k);
    struct hf_events_page page;
    struct hf_appended done;
    uint64_t version = 0;

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        for (uint32_t count = 1; count <= 3; count++) {
            kit_fault(k, kinds[i], "TransactWriteItems", count);
            CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, version, 2, &done));
            CHECK_INT(version + 1, done.first);
            version += 2;
            kit_fault(k, kinds[i], "TransactWriteItems", count);
            CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
            CHECK_INT(++version, done.last);
        }
    kit_no_faults(k);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
    CHECK_INT(version, page.events_len);
    hf_events_close(store);
}

/* When no answer comes at all it is said that it may have happened, and the repetition of events
 * with ids settles it. D5.6: a conflict that does not end is not called anything else. */
KIT_TEST_TX(append, what_may_have_happened_is_said)
{
    struct hf_events *store = open_store(k);
    struct hf_append append;
    struct hf_appended done;

    CHECK_OK(append_some(k, store, ORDER("0"), HF_EXPECT_NONE, 0, 1, &done));
    for (int happens = 0; happens < 2; happens++) {
        append = one_with_id(k, ORDER("1"), happens ? "e2" : "e1", "x");
        CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
        kit_fault(k, happens ? HF_FAULT_LOST_ANSWER : HF_FAULT_LOST_REQUEST, "TransactWriteItems",
                  1);
        CHECK(hf_events_append(k->scope, store, &append, 1,
                               HF_OPTIONS(hf_append_options, .max_attempts = 1), &done) != HF_OK);
        CHECK(hf_scope_error(k->scope)->may_have_happened);
        kit_no_faults(k);
        CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
        CHECK_INT(happens, done.repeated);
        CHECK_INT(2 * happens + 2, done.last);
    }
    kit_fault(k, HF_FAULT_CONFLICT, "TransactWriteItems", 0);
    CHECK_STATUS(HF_TX_CONFLICT, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    kit_fault(k, HF_FAULT_THROTTLE, "TransactWriteItems", 0);
    CHECK_STATUS(HF_THROTTLED, append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    kit_no_faults(k);
    hf_events_close(store);
}

/* Texts at their limits, and one byte more. */
KIT_TEST_TX(append, texts_are_limited)
{
    struct hf_events *store = open_store(k);
    char *text = hf_scope_alloc(k->scope, HF_EVENTS_ID_MAX + 1);
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_append append = {.events = &event, .events_len = 1};
    struct hf_stored_event found;

    memset(text, 'x', HF_EVENTS_ID_MAX + 1);
    append.stream = (struct hf_event_stream_key){hf_str_of(text, HF_EVENTS_DOMAIN_MAX),
                                                 hf_str_of(text, HF_EVENTS_ID_MAX)};
    event = (struct hf_new_event){.type = hf_str_of(text, HF_EVENTS_TYPE_MAX),
                                  .id = hf_str_of(text, HF_EVENTS_ID_MAX),
                                  .content_type = hf_str_of(text, HF_EVENTS_TYPE_MAX),
                                  .causation = hf_str_of(text, HF_EVENTS_ID_MAX),
                                  .correlation = hf_str_of(text, HF_EVENTS_ID_MAX - 1),
                                  .compensates = hf_str_of(text, HF_EVENTS_ID_MAX)};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_events_get(k->scope, store, event.id, &found));
    CHECK(hf_str_equal(event.correlation, found.correlation));
    event.id = hf_str_of(NULL, 0);
#define PAST(field, max, message)                                                                  \
    do {                                                                                           \
        struct hf_str was = field;                                                                 \
        field = hf_str_of(text, (max) + 1);                                                        \
        CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, &append, 1, NULL, NULL));       \
        CHECK_ERROR(HF_INVALID, message, k->scope);                                                \
        field = was;                                                                               \
    } while (0)
    PAST(append.stream.domain, HF_EVENTS_DOMAIN_MAX,
         "the domain has 256 bytes, at most 255 are allowed");
    PAST(append.stream.id, HF_EVENTS_ID_MAX,
         "the stream id has 513 bytes, at most 512 are allowed");
    PAST(event.type, HF_EVENTS_TYPE_MAX,
         "event 1: its type has 256 bytes, at most 255 are allowed");
    PAST(event.id, HF_EVENTS_ID_MAX, "event 1: its id has 513 bytes, at most 512 are allowed");
    PAST(event.content_type, HF_EVENTS_TYPE_MAX,
         "event 1: its content type has 256 bytes, at most 255 are allowed");
    PAST(event.causation, HF_EVENTS_ID_MAX,
         "event 1: its causation has 513 bytes, at most 512 are allowed");
    PAST(event.correlation, HF_EVENTS_ID_MAX,
         "event 1: its correlation has 513 bytes, at most 512 are allowed");
    PAST(event.compensates, HF_EVENTS_ID_MAX,
         "event 1: its compensates has 513 bytes, at most 512 are allowed");
#undef PAST
    event.type = HF_STR("");
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_ERROR(HF_INVALID, "event 1 has no type", k->scope);
    event.type = HF_STR("\xFF");
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_ERROR(HF_INVALID, "event 1: its type is not valid UTF-8", k->scope);
    event.type = HF_STR("t");
    append.stream.domain = HF_STR("");
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_ERROR(HF_INVALID, "the stream has no domain", k->scope);
    memset(text, '.', HF_EVENTS_ID_MAX);
    append.stream.domain = hf_str_of(text, HF_EVENTS_DOMAIN_MAX);
    append.stream.id = hf_str_of(text, HF_EVENTS_ID_MAX);
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    append.stream.domain = HF_STR("d\xFF");
    append.stream.id = HF_STR("");
    CHECK_STATUS(HF_INVALID, hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    hf_events_close(store);
}

/* What led to events fills in their causation and correlation; what they say themselves counts. */
KIT_TEST_TX(append, a_parent_gives_causation_and_correlation)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event events[] = {{.type = HF_STR("t")},
                                    {.type = HF_STR("t"),
                                     .causation = HF_STR("c"),
                                     .correlation = HF_STR("o")}};
    struct hf_append append = {.stream = ORDER("2"), .events = events, .events_len = 2};
    struct hf_stored_event parent, child;
    struct hf_appended done;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[0], &parent));
    CHECK_OK(hf_events_append(k->scope, store, &append, 1,
                              HF_OPTIONS(hf_append_options, .parent = &parent), &done));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[0], &child));
    CHECK(hf_str_equal(parent.id, child.causation));
    CHECK(hf_str_equal(parent.id, child.correlation));
    CHECK_OK(hf_events_append(k->scope, store, &append, 1,
                              HF_OPTIONS(hf_append_options, .parent = &child), &done));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[0], &parent));
    CHECK(hf_str_equal(child.id, parent.causation));
    CHECK(hf_str_equal(child.correlation, parent.correlation));
    CHECK_OK(hf_events_get(k->scope, store, done.ids[1], &parent));
    CHECK_STR("c", parent.causation);
    CHECK_STR("o", parent.correlation);
    hf_events_close(store);
}
