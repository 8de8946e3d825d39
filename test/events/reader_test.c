/*
 * events/reader_test.c: reading all events in their order; (n) is an invariant of events_reader.c.
 */
#include <holdfast/events.h>

#include <string.h>

#include "events/store/events.h"
#include "events_kit.h"

enum { HOUR_MS = 3600 * 1000, DAY = 24 * HOUR_MS };

static struct hf_events_reader *open_reader(struct kit *k, struct hf_events *store,
                                            struct hf_events_all_options options)
{
    struct hf_events_reader *r;

    options.size = sizeof(options);
    CHECK_OK(hf_events_reader_open(k->scope, store, &options, &r));
    return r;
}

/* The types of what it reads until there are no more, with commas. */
static struct hf_str read_types(struct kit *k, struct hf_events_reader *r)
{
    struct hf_str all = HF_STR("");
    const struct hf_stored_event *events;
    size_t len;

    do {
        CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
        for (size_t i = 0; i < len; i++)
            all = hf_scope_format(k->scope, "%.*s%s%.*s", HF_FMT(all), all.len ? "," : "",
                                  HF_FMT(events[i].type));
    } while (len);
    return all;
}

static struct hf_str types_with(struct kit *k, struct hf_events *store,
                                struct hf_events_all_options options)
{
    struct hf_events_reader *r = open_reader(k, store, options);
    struct hf_str types = read_types(k, r);

    hf_events_reader_close(r);
    return types;
}

static struct hf_appended append_one(struct kit *k, struct hf_events *store,
                                     struct hf_event_stream_key stream, const char *type)
{
    struct hf_new_event event = {.type = hf_str_from(type)};
    struct hf_append append = {.stream = stream, .events = &event, .events_len = 1};
    struct hf_appended done;

    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    return done;
}

KIT_TEST_TX(reader, in_order_whole_and_what_comes)
{
    struct hf_events *store = open_store(k);
    struct hf_events_reader *r = open_reader(k, store, (struct hf_events_all_options){.limit = 2});
    const struct hf_stored_event *events;
    size_t len;

    CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
    CHECK_INT(0, len);
    CHECK(!hf_events_reader_position(r).ptr);

    CHECK_OK(append_some(k, store, ORDER("7"), HF_EXPECT_ANY, 0, 3, NULL));
    append_one(k, store, ORDER("8"), "other");
    append_one(k, store, ORDER("7"), "last");
    CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
    CHECK_INT(2, len); /* the limit cuts an append in two */
    CHECK_STR("t1", events[0].type);
    CHECK_STR("1", payload_of(&events[0]));
    CHECK_STR("7", events[0].stream.id);
    CHECK_STR("order", events[0].stream.domain);
    CHECK_INT(1, events[0].version);
    CHECK_INT(2, events[1].version);
    CHECK_INT(32, events[1].hash.len);
    CHECK(hf_str_equal(events[1].position, hf_events_reader_position(r)));
    CHECK_STR("t3,other,last", read_types(k, r));

    append_one(k, store, ORDER("9"), "new");
    CHECK_STR("new", read_types(k, r));
    CHECK_STR("", read_types(k, r));
    hf_events_reader_close(r);
    CHECK_STR("t1,t2,t3,other,last,new", types_with(k, store, (struct hf_events_all_options){0}));
    hf_events_close(store);
}

/* A page has as many as fit, of whichever appends. */
KIT_TEST_TX(reader, a_page_has_many_appends)
{
    struct hf_events *store = open_store(k);
    struct hf_events_reader *r = open_reader(k, store, (struct hf_events_all_options){.limit = 50});
    const struct hf_stored_event *events;
    size_t len, calls = 0, all = 0;

    for (int i = 0; i < 60; i++)
        append_one(k, store, ORDER("1"), "t");
    do {
        CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
        for (size_t i = 0; i < len; i++)
            CHECK_INT(++all, events[i].version);
        calls += len > 0;
    } while (len);
    CHECK_INT(60, all);
    CHECK(calls <= 60 / 4);
    hf_events_reader_close(r);
    hf_events_close(store);
}

KIT_TEST_TX(reader, from_where_and_up_to_where)
{
    struct hf_events *store = open_store(k);
    struct hf_events_all_options all = {0};
    struct hf_stored_event second;
    struct hf_appended one, three;
    struct hf_events_page page;
    int64_t from_us;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, &one));
    test_advance_ms(k->t, 1000);
    from_us = k->t->wall_us;
    append_one(k, store, ORDER("2"), "a");
    test_advance_ms(k->t, 3 * DAY);
    three = append_one(k, store, ORDER("1"), "b");
    append_one(k, store, ORDER("1"), "c");
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    second = page.events[1];

    all.after = second.position; /* in the middle of an append */
    CHECK_STR("t3,a,b,c", types_with(k, store, all));
    all.until = three.position;
    CHECK_STR("t3,a,b", types_with(k, store, all));
    all.after = three.position;
    CHECK_STR("", types_with(k, store, all));
    all.after = (struct hf_str){0};
    all.until = second.position;
    CHECK_STR("t1,t2", types_with(k, store, all));
    all = (struct hf_events_all_options){.from_us = from_us};
    CHECK_STR("a,b,c", types_with(k, store, all));
    all.from_us = from_us + 1000;
    CHECK_STR("b,c", types_with(k, store, all));
    all.from_us = 1; /* 1970 */
    CHECK_STR("t1,t2,t3,a,b,c", types_with(k, store, all));
    all.from_us = from_us + INT64_C(1000) * 30 * DAY;
    CHECK_STR("", types_with(k, store, all));
    hf_events_close(store);
}

/* Also when all up to there is closed already. */
KIT_TEST_TX(reader, from_the_midst_of_the_last_append)
{
    struct hf_events *store = open_store(k);
    struct hf_events_all_options all = {0};
    struct hf_events_page page;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, NULL));
    CHECK_STR("t1,t2,t3", types_with(k, store, all));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    all.after = page.events[0].position;
    CHECK_STR("t2,t3", types_with(k, store, all));
    all.after = page.events[2].position;
    CHECK_STR("", types_with(k, store, all));
    hf_events_close(store);
}

KIT_TEST_TX(reader, only_some)
{
    struct hf_events *store = open_store(k);
    struct hf_event_stream_key item = {HF_STR("item"), HF_STR("")};
    struct hf_events_reader *r;
    struct hf_str end;

    append_one(k, store, ORDER("1"), "order.placed");
    append_one(k, store, item, "item.made");
    append_one(k, store, ORDER("1"), "order.paid");
    end = append_one(k, store, item, "item.gone").position;

    CHECK_STR("item.made,item.gone",
              types_with(k, store, (struct hf_events_all_options){.domain = HF_STR("item")}));
    CHECK_STR("order.paid",
              types_with(k, store, (struct hf_events_all_options){.type = HF_STR("order.paid")}));
    CHECK_STR("order.placed,order.paid",
              types_with(k, store, (struct hf_events_all_options){.type = HF_STR("order.p*")}));
    CHECK_STR("", types_with(k, store, (struct hf_events_all_options){.type = HF_STR("order.p")}));
    CHECK_STR("", types_with(k, store, (struct hf_events_all_options){.domain = HF_STR("ite")}));
    CHECK_STR("", types_with(k, store, (struct hf_events_all_options){.type = HF_STR("*gone")}));

    /* Where it is moves past what is left out. */
    r = open_reader(k, store, (struct hf_events_all_options){.type = HF_STR("nothing")});
    CHECK_STR("", read_types(k, r));
    CHECK(hf_str_equal(end, hf_events_reader_position(r)));
    hf_events_reader_close(r);
    hf_events_close(store);
}

/* (1): who is behind by its clock is told so by the markers, and comes later. */
KIT_TEST_TX(reader, nothing_comes_in_front)
{
    struct hf_events *ahead = open_store(k), *behind = open_store(k);
    struct hf_events_reader *r;

    test_advance_ms(k->t, 5 * DAY);
    append_one(k, ahead, ORDER("1"), "future");
    r = open_reader(k, ahead, (struct hf_events_all_options){0});
    CHECK_STR("future", read_types(k, r));
    k->t->wall_us -= INT64_C(1000) * (5 * DAY - HOUR_MS);
    append_one(k, behind, ORDER("2"), "late");
    CHECK_STR("late", read_types(k, r));
    k->t->wall_us -= INT64_C(1000) * 60000;
    append_one(k, behind, ORDER("3"), "later");
    CHECK_STR("later", read_types(k, r));
    hf_events_reader_close(r);
    CHECK_STR("future,late,later", types_with(k, ahead, (struct hf_events_all_options){0}));
    hf_events_close(ahead);
    hf_events_close(behind);
}

/* A history of days: who reads it again writes nothing, also when it may not. */
KIT_TEST_TX(reader, history_is_read_without_a_write)
{
    struct hf_events *store = open_store(k);

    for (int i = 0; i < 4; i++) {
        append_one(k, store, ORDER("1"), "a");
        append_one(k, store, ORDER("2"), "b");
        test_advance_ms(k->t, DAY);
    }
    CHECK_STR("a,b,a,b,a,b,a,b", types_with(k, store, (struct hf_events_all_options){0}));
    kit_fault(k, HF_FAULT_THROTTLE, "UpdateItem", 0);
    kit_fault(k, HF_FAULT_THROTTLE, "TransactWriteItems", 0);
    kit_fault(k, HF_FAULT_THROTTLE, "PutItem", 0);
    CHECK_STR("a,b,a,b,a,b,a,b", types_with(k, store, (struct hf_events_all_options){0}));
    kit_no_faults(k);
    hf_events_close(store);
}

/* (2) */
KIT_TEST_TX(reader, goes_on_after_a_failure)
{
    static const char *const operations[] = {"Query", "BatchGetItem", "TransactWriteItems",
                                             "UpdateItem", "GetItem"};
    struct hf_events *store = open_store(k);

    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        for (uint32_t count = 1; count < 6; count++) {
            struct hf_events_reader *r =
                open_reader(k, store, (struct hf_events_all_options){.limit = 3});
            struct hf_str first = read_types(k, r);
            const struct hf_stored_event *events;
            size_t len, seen = 0, failures = 0;

            (void)first;
            CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 4, NULL));
            test_advance_ms(k->t, DAY);
            CHECK_OK(append_some(k, store, ORDER("2"), HF_EXPECT_ANY, 0, 3, NULL));
            kit_fault(k, HF_FAULT_THROTTLE, operations[i], count);
            while (seen < 7 && failures < 200) {
                if (hf_events_reader_next(k->scope, r, &events, &len) != HF_OK) {
                    failures++;
                    if (failures == count)
                        kit_no_faults(k);
                    continue;
                }
                for (size_t j = 0; j < len; j++)
                    CHECK_STR(((const char *[]){"t1", "t2", "t3", "t4", "t1", "t2",
                                                "t3"})[seen + j],
                              events[j].type);
                seen += len;
            }
            kit_no_faults(k);
            CHECK_INT(7, seen);
            hf_events_reader_close(r);
        }
    }
    hf_events_close(store);
}

/* What is archived is elsewhere, under the same key. */
KIT_TEST_TX(reader, archived_ones_when_asked)
{
    struct hf_events *store = open_store(k);
    struct hf_str position;
    struct hf_get_item get = {.table = k->table};
    struct hf_get_item_result got;
    struct hf_put_item put = {.table = k->table};
    struct hf_put_item_result put_done;
    struct hf_delete_item del = {.table = k->table};
    struct hf_delete_item_result del_done;
    struct hf_attr to;

    append_one(k, store, ORDER("1"), "a");
    position = append_one(k, store, ORDER("2"), "b").position;
    append_one(k, store, ORDER("1"), "c");
    get.key = HF_ITEM(k->scope, HF_S("pk", hf__events_part_of(k->scope, 'a', position)),
                      HF_S("sk", position));
    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    to = (struct hf_attr)HF_S("pk", hf__events_part_of(k->scope, 'z', position));
    put.item = hf_item_with(k->scope, got.item, &to, 1);
    CHECK_OK(hf_put_item(k->scope, k->db, &put, &put_done));
    /* For a moment it may be seen in both. */
    CHECK_STR("a,b,c", types_with(k, store, (struct hf_events_all_options){.archived = true}));
    del.key = get.key;
    CHECK_OK(hf_delete_item(k->scope, k->db, &del, &del_done));
    CHECK_STR("a,c", types_with(k, store, (struct hf_events_all_options){0}));
    CHECK_STR("a,b,c", types_with(k, store, (struct hf_events_all_options){.archived = true}));
    hf_events_close(store);
}

/* A page of the database is much shorter than what there is; all parts are followed. */
KIT_TEST_TX(reader, many_pages)
{
    enum { APPENDS = 60, EACH = 20 };
    struct hf_events *store = open_store(k);
    struct hf_events_reader *r;
    const struct hf_stored_event *events;
    char last[HF_POSITION_LEN] = {0};
    static const char large[4000] = {1};
    struct hf_new_event new_events[EACH];
    uint64_t versions[7] = {0};
    size_t len, seen = 0;

    for (size_t i = 0; i < EACH; i++)
        new_events[i] = (struct hf_new_event){.type = HF_STR("t"),
                                              .payload = hf_bytes_of(large, sizeof(large))};
    for (int i = 0; i < APPENDS; i++) {
        struct hf_append append = {.stream = {HF_STR("order"),
                                              hf_scope_format(k->scope, "%d", i % 7)},
                                   .events = new_events,
                                   .events_len = EACH};

        CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    }
    r = open_reader(k, store, (struct hf_events_all_options){.limit = 100});
    do {
        CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
        CHECK(len <= 100);
        for (size_t i = 0; i < len; i++) {
            CHECK(memcmp(last, events[i].position.ptr, HF_POSITION_LEN) < 0);
            memcpy(last, events[i].position.ptr, HF_POSITION_LEN);
            CHECK_INT(++versions[events[i].stream.id.ptr[0] - '0'], events[i].version);
            CHECK_INT(sizeof(large), events[i].payload.len);
        }
        seen += len;
    } while (len);
    CHECK_INT(APPENDS * EACH, seen);
    hf_events_reader_close(r);
    hf_events_close(store);
}

/* An append that is larger than a transaction: it is there as a whole, in pages. Its place is some
 * time ahead, so one of another stream that was appended later may come before it. */
KIT_TEST_TX(reader, large_appends)
{
    enum { MANY = 2500 };
    struct hf_events *store = open_store(k);
    struct hf_new_event *new_events = hf_scope_alloc(k->scope, MANY * sizeof(*new_events));
    struct hf_append append = {.stream = ORDER("2"), .events = new_events, .events_len = MANY};
    struct hf_events_reader *r;
    const struct hf_stored_event *events;
    char last[HF_POSITION_LEN] = {0};
    struct hf_str middle = HF_STR("");
    uint64_t versions[3] = {0};
    size_t len;

    for (size_t i = 0; i < MANY; i++)
        new_events[i] = (struct hf_new_event){.type = HF_STR("many")};
    append_one(k, store, ORDER("1"), "before");
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    append_one(k, store, ORDER("1"), "other");
    append_one(k, store, ORDER("2"), "behind");
    r = open_reader(k, store, (struct hf_events_all_options){.limit = 300});
    do {
        CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
        CHECK(len <= 300);
        for (size_t i = 0; i < len; i++) {
            int stream = events[i].stream.id.ptr[0] - '0';

            CHECK(memcmp(last, events[i].position.ptr, HF_POSITION_LEN) < 0);
            memcpy(last, events[i].position.ptr, HF_POSITION_LEN);
            CHECK_INT(++versions[stream], events[i].version);
            if (stream == 2 && versions[2] == 1500)
                middle = hf_scope_copy(k->scope, events[i].position);
        }
    } while (len);
    CHECK_INT(2, versions[1]);
    CHECK_INT(MANY + 1, versions[2]);
    hf_events_reader_close(r);

    r = open_reader(k, store, (struct hf_events_all_options){.after = middle});
    CHECK_OK(hf_events_reader_next(k->scope, r, &events, &len));
    CHECK(len > 0);
    CHECK_INT(1501, events[0].version);
    hf_events_reader_close(r);
    hf_events_close(store);
}

KIT_TEST_TX(reader, options_that_cannot_be)
{
    struct hf_events *store = open_store(k);
    struct hf_events_reader *r;
    struct hf_events_position_test {
        struct hf_events_all_options options;
        const char *message;
    } cases[] = {
        {{.after = HF_STR("x")}, "\"x\" (after) is not a position"},
        {{.until = HF_STR("01KFH2J5M0000000000000000U")},
         "\"01KFH2J5M0000000000000000U\" (until) is not a position"},
        {{.after = HF_STR("01KFH2J5M00000000000000000"), .from_us = 1},
         "a reader begins behind a position (after) or at a time (from_us), not both"},
        {{.from_us = -1}, "a reader cannot begin before 1970"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        cases[i].options.size = sizeof(cases[i].options);
        CHECK_STATUS(HF_INVALID, hf_events_reader_open(k->scope, store, &cases[i].options, &r));
        CHECK_ERROR(HF_INVALID, cases[i].message, k->scope);
        CHECK(!r);
    }
    hf_events_reader_close(NULL);
    hf_events_close(store);
}

/* Everything that is behind `end` came after it was asked for. */
KIT_TEST_TX(reader, the_end_is_closed)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct events_position end;
    struct hf_str after;

    CHECK_OK(hf__events_end(k->scope, store, &end));
    CHECK_STR("", position_str(&end));
    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_ANY, 0, 3, NULL));
    test_advance_ms(k->t, DAY);
    CHECK_OK(hf__events_end(k->scope, store, &end));
    k->t->wall_us -= INT64_C(2000) * DAY; /* two days ago, by the clock of the other one */
    append_one(k, other, ORDER("2"), "new");
    after = position_str(&end);
    CHECK_STR("new", types_with(k, store, (struct hf_events_all_options){.after = after}));
    hf_events_close(store);
    hf_events_close(other);
}

/* Any piece of memory may be missing: what was read is right, or there is an error. */
static void sweep(struct kit *k)
{
    struct hf_events *store = open_store(k);

    append_one(k, store, ORDER("1"), "a");
    test_advance_ms(k->t, DAY);
    append_one(k, store, ORDER("1"), "b");
    CHECK_STR("a,b", types_with(k, store, (struct hf_events_all_options){.archived = true}));
    ALLOC_SWEEP (k->t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(k->t));
        struct hf_events_reader *r = NULL;
        const struct hf_stored_event *events;
        size_t len = 0, seen = 0;
        enum hf_status status = s ? hf_events_reader_open(s, store,
                                                          HF_OPTIONS(hf_events_all_options,
                                                                     .archived = true, .limit = 1),
                                                          &r)
                                  : HF_NOMEM;

        while (status == HF_OK) {
            status = hf_events_reader_next(s, r, &events, &len);
            seen += status == HF_OK ? len : 0;
            if (!len)
                break;
        }
        ALLOC_SWEEP_STOP(k->t);
        CHECK(status == HF_NOMEM || (status == HF_OK && seen == 2));
        CHECK((status == HF_NOMEM) == k->t->alloc_failed);
        hf_events_reader_close(r);
        hf_scope_free(s);
    }
    hf_events_close(store);
}

TEST(reader, any_allocation_may_fail)
{
    kit_run(t, "memory:", sweep);
}
