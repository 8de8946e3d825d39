/*
 * test/events/append_large_test.c: appends that are larger than a transaction; (n) is an invariant
 * of events_append_large.c.
 */
#include "events_kit.h"

#include <stdio.h>

#include "../db/between.h"

enum { MANY = 250 };

/* How many items there are with that partition key. */
static size_t count_items(struct kit *k, struct hf_str pk)
{
    struct hf_query query = {.table = k->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .names = HF_ITEM(k->scope, HF_S("#pk", HF_STR("pk"))),
                             .values = HF_ITEM(k->scope, HF_S(":pk", pk)),
                             .consistent = HF_YES};
    struct hf_query_result result;
    size_t count = 0;

    do {
        CHECK_OK(hf_query(k->scope, k->db, &query, &result));
        count += result.items_len;
        query.start = result.last;
    } while (query.start.ptr);
    return count;
}

/* The versions of a page are those from `first` on (or down), and so are the payloads. */
static void check_run(const struct hf_events_page *page, uint64_t first, size_t len, int step)
{
    CHECK_INT(len, page->events_len);
    for (size_t i = 0; i < len; i++) {
        char number[24];

        CHECK_INT((int64_t)first + (int64_t)i * step, page->events[i].version);
        snprintf(number, sizeof(number), "%lld", (long long)page->events[i].version);
        CHECK_STR(number, payload_of(&page->events[i]));
    }
}

static void check_read(struct kit *k, struct hf_events *store, struct hf_events_read_options o,
                       uint64_t first, size_t len, uint64_t next)
{
    struct hf_events_page page;

    o.size = sizeof(o);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), &o, &page));
    check_run(&page, first, len, o.backward ? -1 : 1);
    CHECK_INT(next, page.next);
    CHECK_INT(MANY + 4, page.version);
}

/* A service that does not heed the limit of a query. */
static enum hf_status without_limit(struct hf_scope *s, struct between *b, enum hf_op op,
                                    const void *request, void *response)
{
    struct hf_query query;

    if (op != HF_OP_QUERY)
        return between_pass(s, b, op, request, response);
    query = *(const struct hf_query *)request;
    query.limit = 0;
    return between_pass(s, b, op, &query, response);
}

/* More items than were asked for are not written beyond the array that they are for. */
KIT_TEST_TX(append_large, a_service_that_does_not_heed_limits_overwrites_nothing)
{
    struct between between = between_of(k->db);
    struct hf_events *store = open_store(k), *unlimited;
    struct hf_stored_event around[3], *event = &around[1];
    struct hf_events_reader *reader;
    const struct hf_stored_event *events;
    struct hf_appended done;
    size_t read = 0, len;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, MANY, &done));
    memset(around, 'x', sizeof(around));
    between.on_call = without_limit;
    CHECK_OK(hf_events_open(k->scope, &between.db, HF_OPTIONS(hf_events_options, .table = k->table),
                            &unlimited));
    CHECK_OK(hf_events_get(k->scope, unlimited, done.ids[77], event));
    CHECK_INT(78, event->version);
    CHECK(memcmp(&around[0], &around[2], sizeof(around[0])) == 0);
    CHECK_OK(hf_events_reader_open(k->scope, unlimited,
                                   HF_OPTIONS(hf_events_all_options, .limit = 7), &reader));
    test_advance_ms(k->t, 1000);
    for (int round = 0; round < MANY && read < MANY; round++) {
        CHECK_OK(hf_events_reader_next(k->scope, reader, &events, &len));
        CHECK(len <= 7);
        for (size_t i = 0; i < len; i++)
            CHECK_INT(++read, events[i].version);
    }
    CHECK_INT(MANY, read);
    hf_events_reader_close(reader);
    hf_events_close(unlimited);
    hf_events_close(store);
}

/* D5.5: many events are appended as a whole. Two before it, MANY, two behind it, read from all
 * sides: also from the midst of what is staged. */
KIT_TEST_TX(append_large, events_are_read_as_if_they_were_in_their_stream)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event *events = hf_scope_alloc(k->scope, (MANY + 4) * sizeof(*events));
    struct hf_append append = {.stream = ORDER("1"), .expect = HF_EXPECT_NONE, .events = events};
    struct hf_stored_event event;
    struct hf_events_page page;
    struct hf_appended done;

    for (size_t i = 0; i < MANY + 4; i++) {
        struct hf_str number = hf_scope_format(k->scope, "%zu", i + 1);

        events[i] = (struct hf_new_event){.type = HF_STR("t"),
                                          .payload = hf_bytes_of(number.ptr, number.len)};
    }
    append.events_len = 2;
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    append = (struct hf_append){.stream = ORDER("1"),
                                .expect = HF_EXPECT_VERSION,
                                .version = 2,
                                .events = events + 2,
                                .events_len = MANY};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_INT(3, done.first);
    CHECK_INT(MANY + 2, done.last);
    append = (struct hf_append){.stream = ORDER("1"), .events = events + MANY + 2, .events_len = 2};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_INT(0, count_items(k, HF_STR("x")));

    check_read(k, store, (struct hf_events_read_options){.limit = 1000}, 1, MANY + 4, 0);
    check_read(k, store, (struct hf_events_read_options){.limit = 10}, 1, 10, 11);
    check_read(k, store, (struct hf_events_read_options){.from = 11, .limit = 10}, 11, 10, 21);
    check_read(k, store, (struct hf_events_read_options){.from = 40, .to = 44}, 40, 5, 0);
    check_read(k, store, (struct hf_events_read_options){.from = 3, .limit = 1}, 3, 1, 4);
    check_read(k, store, (struct hf_events_read_options){.from = MANY + 2, .limit = 2}, MANY + 2, 2,
               MANY + 4);
    check_read(k, store, (struct hf_events_read_options){.limit = 1000, .backward = true}, MANY + 4,
               MANY + 4, 0);
    check_read(k, store, (struct hf_events_read_options){.limit = 5, .backward = true}, MANY + 4, 5,
               MANY - 1);
    check_read(k, store,
               (struct hf_events_read_options){.from = 100, .to = 90, .limit = 5, .backward = true},
               100, 5, 95);
    check_read(k, store, (struct hf_events_read_options){.from = 4, .backward = true}, 4, 4, 0);
    check_read(k, store, (struct hf_events_read_options){.from = 100, .to = 99, .backward = true},
               100, 2, 0);

    CHECK_OK(hf_events_get(k->scope, store, done.ids[77], &event));
    CHECK_INT(80, event.version);
    CHECK_STR("80", payload_of(&event));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
    for (size_t i = 1; i < page.events_len; i++)
        CHECK(memcmp(page.events[i - 1].position.ptr, page.events[i].position.ptr,
                     HF_POSITION_LEN) < 0);
    hf_events_close(store);
}

/* The most there may be, to as many streams as there may be; and one more of each. */
KIT_TEST_TX(append_large, limits_hold_at_and_past)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_new_event *events =
        hf_scope_alloc(k->scope, (HF_EVENTS_APPEND_MAX + 1) * sizeof(*events));
    struct hf_append appends[HF_EVENTS_STREAMS_MAX + 1];
    struct hf_appended done[HF_EVENTS_STREAMS_MAX];
    struct hf_events_page page;

    for (size_t i = 0; i <= HF_EVENTS_APPEND_MAX; i++)
        events[i] = event;
    for (size_t i = 0; i <= HF_EVENTS_STREAMS_MAX; i++)
        appends[i] =
            (struct hf_append){.stream = {HF_STR("order"), hf_scope_format(k->scope, "%zu", i)},
                               .events = events,
                               .events_len = HF_EVENTS_APPEND_MAX / HF_EVENTS_STREAMS_MAX};
    CHECK_STATUS(HF_LIMIT,
                 hf_events_append(k->scope, store, appends, HF_EVENTS_STREAMS_MAX + 1, NULL, NULL));
    CHECK_ERROR(HF_LIMIT, "an append to 21 streams: 1 to 20 are allowed", k->scope);
    appends[0].events_len++;
    CHECK_STATUS(HF_LIMIT,
                 hf_events_append(k->scope, store, appends, HF_EVENTS_STREAMS_MAX, NULL, NULL));
    CHECK_ERROR(HF_LIMIT, "an append of more than 10000 events", k->scope);
    appends[0].events_len--;
    CHECK_OK(hf_events_append(k->scope, store, appends, HF_EVENTS_STREAMS_MAX, NULL, done));
    for (size_t i = 0; i < HF_EVENTS_STREAMS_MAX; i++) {
        CHECK_INT(500, done[i].last);
        CHECK_OK(hf_events_read(k->scope, store, appends[i].stream,
                                HF_OPTIONS(hf_events_read_options, .limit = 1000), &page));
        CHECK_INT(500, page.events_len);
    }
    appends[0].events_len = HF_EVENTS_APPEND_MAX;
    appends[0].stream = ORDER("all");
    CHECK_OK(hf_events_append(k->scope, store, appends, 1, NULL, done));
    CHECK_INT(HF_EVENTS_APPEND_MAX, done[0].last);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("all"),
                            HF_OPTIONS(hf_events_read_options, .limit = 5, .backward = true),
                            &page));
    CHECK_INT(HF_EVENTS_APPEND_MAX, page.events[0].version);
    CHECK(hf_str_equal(done[0].position, page.events[0].position));
    hf_events_close(store);
}

/* D5.5: bytes are counted, not only events: what is larger than an item, and than a transaction. */
KIT_TEST_TX(append_large, sizes_are_divided_among_items_and_transactions)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event events[30];
    struct hf_append append = {.stream = ORDER("1"), .events = events};
    size_t size = 150 * 1000;
    uint8_t *bytes = hf_scope_alloc(k->scope, size);
    struct hf_events_page page;
    struct hf_stored_event event;
    struct hf_appended done;

    memset(bytes, 'x', size);
    for (size_t i = 0; i < 30; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t"), .payload = hf_bytes_of(bytes, size)};
    append.events_len = 5; /* three items in the global order */
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_INT(5, done.last);
    for (size_t i = 0; i < 5; i++) {
        CHECK_OK(hf_events_get(k->scope, store, done.ids[i], &event));
        CHECK_INT(i + 1, event.version);
        CHECK_INT(size, event.payload.len);
    }
    append.events_len = 30; /* nine megabytes */
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_INT(35, done.last);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(35, page.events_len);
    CHECK_OK(hf_events_get(k->scope, store, done.ids[29], &event));
    CHECK_INT(35, event.version);
    hf_events_close(store);
}

static struct hf_append many_with_ids(struct kit *k, const char *prefix)
{
    struct hf_new_event *events = hf_scope_alloc(k->scope, MANY * sizeof(*events));

    for (size_t i = 0; i < MANY; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t"),
                                          .id = hf_scope_format(k->scope, "%s%zu", prefix, i),
                                          .correlation = HF_STR("tree")};
    return (struct hf_append){.stream = ORDER("1"),
                              .expect = HF_EXPECT_NONE,
                              .events = events,
                              .events_len = MANY};
}

/* From the call after so many on the database does not answer: as if the process had died there. */
static void die_after(struct kit *k, enum hf_fault_kind kind, uint32_t calls)
{
    struct hf_fault fault = {.kind = kind, .skip = calls};

    CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
}

/* (1) (2): an append that breaks off at any call leaves nothing to be seen, or all of it, and what was to
 * happen with it; and its repetition, at once, appends all of it, once, ids and all; and then it is told
 * that it is there. */
static void break_off(struct kit *k, enum hf_fault_kind kind, uint32_t step)
{
    enum hf_status status = HF_IO;

    for (uint32_t calls = 0; status != HF_OK; calls += step) {
        struct hf_scope *s = hf_scope_new(test_env(k->t));
        struct kit mine = *k;
        struct hf_events *store;
        struct hf_append append;
        struct hf_put_item put;
        struct hf_transact_write with = {.put = &put};
        struct hf_append_options *options =
            HF_OPTIONS(hf_append_options, .with = &with, .with_len = 1);
        struct hf_str n;
        struct hf_stored_event event;
        struct hf_events_page page;
        struct hf_appended done;
        bool visible;

        mine.scope = s;
        store = open_store(&mine);
        append = many_with_ids(&mine, hf_scope_format(s, "r%u-", (unsigned)calls).ptr);
        append.stream.id = hf_scope_format(s, "%u", (unsigned)calls);
        n = hf_scope_format(s, "n.%u", (unsigned)calls);
        put = (struct hf_put_item){.table = k->table,
                                   .item = HF_ITEM(s, HF_S("pk", n), HF_S("sk", n))};
        die_after(&mine, kind, calls);
        status = hf_events_append(s, store, &append, 1, options, &done);
        kit_no_faults(&mine);
        CHECK_OK(hf_events_read(s, store, append.stream, NULL, &page));
        CHECK(page.version == 0 || page.version == MANY);
        visible = page.version > 0;
        CHECK(status != HF_OK || visible);
        CHECK_INT(visible, count_items(&mine, n));
        CHECK_STATUS(visible ? HF_OK : HF_NOT_FOUND,
                     hf_events_get(s, store, append.events[5].id, &event));
        CHECK_OK(hf_events_append(s, store, &append, 1, options, &done));
        CHECK_INT(1, done.first);
        CHECK_INT(MANY, done.last);
        CHECK(done.repeated == visible);
        CHECK_INT(1, count_items(&mine, n));
        CHECK_OK(hf_events_append(s, store, &append, 1, NULL, &done));
        CHECK(done.repeated);
        CHECK_OK(hf_events_get(s, store, append.events[MANY - 1].id, &event));
        CHECK_INT(MANY, event.version);
        hf_events_close(store);
        hf_scope_free(s);
    }
}

KIT_TEST_TX(append_large, what_breaks_off_is_seen_as_a_whole_or_not_at_all)
{
    break_off(k, HF_FAULT_LOST_REQUEST, 1);
}

KIT_TEST_TX(append_large, what_loses_its_answers_is_seen_as_a_whole_or_not_at_all)
{
    break_off(k, HF_FAULT_LOST_ANSWER, 1);
}

/* (2): what was given up by others cannot become visible. */
KIT_TEST_TX(append_large, who_takes_over_ids_ends_the_one_who_had_them)
{
    struct hf_events *store = open_store(k);
    struct hf_append append = many_with_ids(k, "id");
    struct hf_new_event one = {.type = HF_STR("t"), .id = HF_STR("id7")};
    struct hf_append other = {.stream = ORDER("2"), .events = &one, .events_len = 1};
    struct hf_events_page page;
    struct hf_appended done;

    /* The last step is lost, with all that follows: all of it is staged, ids and all. */
    CHECK_OK(hf_faulty_set(
        k->scope, k->db,
        (struct hf_fault[]){
            {.kind = HF_FAULT_LOST_REQUEST, .operation = HF_STR("TransactWriteItems"), .skip = 4},
            {.kind = HF_FAULT_LOST_REQUEST, .operation = HF_STR("BatchWriteItem"), .skip = 20}},
        2));
    CHECK(hf_events_append(k->scope, store, &append, 1, NULL, &done) != HF_OK);
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    kit_no_faults(k);
    CHECK_INT(1, count_items(k, HF_STR("x")));
    CHECK_OK(hf_events_append(k->scope, store, &other, 1, NULL, &done));
    CHECK_INT(1, done.last);
    CHECK_INT(0, count_items(k, HF_STR("x")));
    CHECK_STATUS(HF_DUPLICATE, hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_ERROR(
        HF_DUPLICATE,
        "id \"id7\" is already used by version 1 of stream \"order/2\", which is another stream",
        k->scope);
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(0, page.version);
    hf_events_close(store);
}

/* A transaction that makes a stream of MANY events visible has six actions of its own: x/COMMIT, head, two
 * stubs, commit, marker. */
enum { LAST_ACTIONS = 6 };

/* Other actions are in the transaction that makes it visible, as far as they fit, and their conditions
 * count. */
KIT_TEST_TX(append_large, other_actions_happen_together_with_it)
{
    struct hf_events *store = open_store(k);
    struct hf_put_item puts[HF_TX_ACTIONS_MAX];
    struct hf_transact_write with[HF_TX_ACTIONS_MAX];
    struct hf_append append = many_with_ids(k, "id");
    size_t fit = HF_TX_ACTIONS_MAX - LAST_ACTIONS;
    struct hf_append_options *options = HF_OPTIONS(hf_append_options, .with = with);
    struct hf_events_page page;
    struct hf_appended done;

    for (size_t i = 0; i < HF_TX_ACTIONS_MAX; i++) {
        struct hf_str pk = hf_scope_format(k->scope, "n.%zu", i);

        puts[i] = (struct hf_put_item){.table = k->table,
                                       .item = HF_ITEM(k->scope, HF_S("pk", pk), HF_S("sk", pk))};
        with[i] = (struct hf_transact_write){.put = &puts[i]};
    }
    options->with_len = fit + 1;
    CHECK_STATUS(HF_LIMIT, hf_events_append(k->scope, store, &append, 1, options, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope),
                 "takes 6 actions, so of the other 95 at most 94 can be part of the append"));
    options->with_len = fit;
    puts[7].condition = HF_STR("attribute_exists(pk)");
    CHECK_STATUS(HF_TX_CANCELED, hf_events_append(k->scope, store, &append, 1, options, NULL));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"), NULL, &page));
    CHECK_INT(0, page.version);
    CHECK_INT(0, count_items(k, HF_STR("n.0")));
    CHECK_INT(0, count_items(k, HF_STR("x"))); /* it was given up */
    puts[7].condition = (struct hf_str){0};
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, options, &done));
    CHECK_INT(MANY, done.last);
    CHECK_INT(1, count_items(k, HF_STR("n.0")));
    CHECK_INT(1, count_items(k, hf_scope_format(k->scope, "n.%zu", fit - 1)));
    hf_events_close(store);
}

/* (3): readers who close the order meanwhile; others who append meanwhile. */
KIT_TEST_TX(append_large, others_who_append_meanwhile_do_not_refuse_it)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_append append = many_with_ids(k, "id");
    struct hf_appended done;

    CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_NONE, 0, 1, &done));
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    append.expect = HF_EXPECT_ANY; /* behind the one that this store does not know of */
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_INT(3, done.first);
    CHECK_INT(MANY + 2, done.last);
    CHECK_OK(append_some(k, other, ORDER("1"), HF_EXPECT_ANY, 0, 1, &done));
    CHECK_INT(MANY + 3, done.last);
    hf_events_close(store);
    hf_events_close(other);
}
