/*
 * test/events/read_test.c: reading streams; opening and resetting a store; (n) is an invariant of
 * events_read.c.
 */
#include "events/store/events.h"
#include "events_kit.h"

static const struct hf_event_stream_key stream = {{"order", 5}, {"1", 1}};

static void check_page(struct kit *k, struct hf_events *store, struct hf_events_read_options o,
                       uint64_t first, size_t len, uint64_t next)
{
    struct hf_events_page page;

    o.size = sizeof(o);
    CHECK_OK(hf_events_read(k->scope, store, stream, &o, &page));
    CHECK_INT(len, page.events_len);
    for (size_t i = 0; i < len; i++)
        CHECK_INT(o.backward ? first - i : first + i, page.events[i].version);
    CHECK_INT(next, page.next);
}
#define READ(first, len, next, ...)                                                                \
    check_page(k, store, (struct hf_events_read_options){__VA_ARGS__}, (first), (len), (next))

/* D5.8: forwards, backwards, from a version, to a version, page by page. */
KIT_TEST_TX(read, any_part_of_a_stream)
{
    struct hf_events *store = open_store(k);
    struct hf_appended done;

    READ(0, 0, 0, .limit = 5);
    READ(0, 0, 0, .limit = 5, .backward = true);
    for (size_t i = 1; i <= 4; i++)
        CHECK_OK(append_some(k, store, stream, HF_EXPECT_ANY, 0, i, &done));
    READ(1, 10, 0, .limit = 0);
    READ(1, 10, 0, .limit = 10);
    READ(1, 9, 10, .limit = 9);
    READ(10, 1, 0, .from = 10);
    READ(11, 0, 0, .from = 11);
    READ(500, 0, 0, .from = 500);
    READ(4, 3, 0, .from = 4, .to = 6);
    READ(4, 2, 6, .from = 4, .to = 6, .limit = 2);
    READ(4, 1, 0, .from = 4, .to = 4);
    READ(0, 0, 0, .from = 5, .to = 4);
    READ(8, 3, 0, .from = 8, .to = 100);
    READ(10, 10, 0, .backward = true);
    READ(10, 10, 0, .backward = true, .limit = 10);
    READ(10, 3, 7, .backward = true, .limit = 3);
    READ(7, 3, 4, .backward = true, .from = 7, .limit = 3);
    READ(7, 3, 0, .backward = true, .from = 7, .to = 5);
    READ(10, 3, 0, .backward = true, .from = 500, .to = 8);
    READ(1, 1, 0, .backward = true, .from = 1);
    READ(0, 0, 0, .backward = true, .from = 4, .to = 5);
    CHECK_STATUS(HF_INVALID, hf_events_read(k->scope, store, stream,
                                            HF_OPTIONS(hf_events_read_options, .limit = 100001),
                                            &(struct hf_events_page){0}));
    CHECK_STATUS(HF_INVALID, hf_events_read(k->scope, store,
                                            (struct hf_event_stream_key){HF_STR(""), HF_STR("1")},
                                            NULL, &(struct hf_events_page){0}));
    hf_events_close(store);
}

/* By when they happened, which need not be the order of versions. */
KIT_TEST_TX(read, events_of_some_time)
{
    struct hf_events *store = open_store(k);
    struct hf_new_event events[300];
    struct hf_append append = {.stream = stream, .events = events, .events_len = 60};
    struct hf_events_read_options o = {.size = sizeof(o), .from_us = 200, .until_us = 210};
    struct hf_events_page page;
    size_t found = 0;

    for (size_t i = 0; i < 300; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t"), .time_us = (int64_t)(300 - i)};
    for (size_t i = 0; i < 300; i += 60, append.events += 60)
        CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_events_read(k->scope, store, stream, &o, &page));
    CHECK_INT(10, page.events_len);
    CHECK_INT(92, page.events[0].version); /* happened at 209 */
    CHECK_INT(209, page.events[0].time_us);
    CHECK_INT(200, page.events[9].time_us);
    CHECK_INT(0, page.next);
    CHECK_INT(300, page.version);
    o.limit = 4;
    do {
        CHECK_OK(hf_events_read(k->scope, store, stream, &o, &page));
        found += page.events_len;
        o.from = page.next;
    } while (page.next);
    CHECK_INT(10, found);
    o = (struct hf_events_read_options){.size = sizeof(o), .until_us = 3, .backward = true};
    CHECK_OK(hf_events_read(k->scope, store, stream, &o, &page));
    CHECK_INT(2, page.events_len);
    CHECK_INT(300, page.events[0].version);
    hf_events_close(store);
}

/* More than a page of the database, and than what is asked for at once. */
KIT_TEST_TX(read, streams_longer_than_a_page)
{
    struct hf_events *store = open_store(k);
    uint8_t *bytes = hf_scope_alloc(k->scope, 40000);
    struct hf_new_event events[50];
    struct hf_append append = {.stream = stream, .events = events, .events_len = 50};

    memset(bytes, 'x', 40000);
    for (size_t i = 0; i < 50; i++)
        events[i] =
            (struct hf_new_event){.type = HF_STR("t"), .payload = hf_bytes_of(bytes, 40000)};
    append.events_len = 40;
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, NULL));
    READ(1, 80, 0, .limit = 1000);
    READ(80, 80, 0, .limit = 1000, .backward = true);
    READ(1, 50, 51, .limit = 50);
    READ(31, 40, 71, .from = 31, .limit = 40);
    hf_events_close(store);
}

/* (1): what the head forbids is not read, also when it is still there. */
KIT_TEST_TX(read, what_was_truncated_is_not_read)
{
    struct hf_events *store = open_store(k);
    struct hf_stored_event event;
    struct hf_events_page page;
    struct hf_appended done, first;

    CHECK_OK(append_some(k, store, stream, HF_EXPECT_NONE, 0, 20, &first));
    CHECK_OK(hf_events_truncate(k->scope, store, stream, 6));
    READ(6, 15, 0, .limit = 100);
    READ(6, 3, 9, .limit = 3);
    READ(6, 5, 0, .from = 2, .to = 10);
    READ(20, 15, 0, .backward = true);
    READ(8, 3, 0, .from = 8, .backward = true, .limit = 5);
    READ(0, 0, 0, .from = 3, .backward = true);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, first.ids[4], &event));
    CHECK_OK(hf_events_get(k->scope, store, first.ids[5], &event));
    CHECK_OK(hf_events_limit_stream(k->scope, store, stream, 0, 4));
    READ(17, 4, 0, .limit = 100);
    READ(20, 4, 0, .backward = true);
    CHECK_OK(append_some(k, store, stream, HF_EXPECT_VERSION, 20, 2, &done));
    READ(19, 4, 0, .limit = 100);
    CHECK_OK(hf_events_limit_stream(k->scope, store, stream, 60, 0));
    test_advance_ms(k->t, 61000);
    CHECK_OK(append_some(k, store, stream, HF_EXPECT_VERSION, 22, 2, &done));
    READ(23, 2, 0, .limit = 100);
    READ(24, 2, 0, .backward = true);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, first.ids[19], &event));
    CHECK_OK(hf_events_tombstone(k->scope, store, stream, HF_EXPECT_ANY, 0));
    CHECK_STATUS(HF_DELETED, hf_events_read(k->scope, store, stream, NULL, &page));
    CHECK_STATUS(HF_DELETED, append_some(k, store, stream, HF_EXPECT_ANY, 0, 1, &done));
    CHECK_ERROR(HF_DELETED, "stream \"order/1\" was deleted for good", k->scope);
    CHECK(!done.ids);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, first.ids[19], &event));
    hf_events_close(store);
}

/* A stream that lost an event, or has one that is no event, says so. */
KIT_TEST_TX(read, damage_is_told)
{
    struct hf_events *store = open_store(k);
    struct hf_item key =
        HF_ITEM(k->scope, HF_S("pk", HF_STR("s.order.1")), HF_S("sk", HF_STR("0000000000000003")));
    struct hf_events_page page;
    struct hf_appended done;

    CHECK_OK(append_some(k, store, stream, HF_EXPECT_NONE, 0, 5, &done));
    CHECK_OK(hf_delete_item(k->scope, k->db,
                            &(struct hf_delete_item){.table = k->table, .key = key}, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_events_read(k->scope, store, stream, NULL, &page));
    CHECK_ERROR(HF_CORRUPT, "stream \"order/1\": version 3 is missing", k->scope);
    CHECK_STATUS(HF_CORRUPT,
                 hf_events_read(k->scope, store, stream,
                                HF_OPTIONS(hf_events_read_options, .backward = true), &page));
    CHECK_OK(
        hf_put_item(k->scope, k->db, &(struct hf_put_item){.table = k->table, .item = key}, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_events_read(k->scope, store, stream, NULL, &page));
    hf_events_close(store);
}

/* D5.10, H24: payloads beyond the limit go elsewhere and come back whole, with version and all. */
/* More events than a page are hidden, and those behind them fill several. */
KIT_TEST_TX(read, behind_many_that_are_hidden)
{
    struct hf_events *store = open_store(k);
    struct hf_events_page page;
    uint8_t *after;

    for (uint64_t i = 0; i < 5; i++)
        CHECK_OK(append_some(k, store, ORDER("1"), HF_EXPECT_VERSION, i * 40, 40, NULL));
    CHECK_OK(hf_events_truncate(k->scope, store, ORDER("1"), 101));
    CHECK_OK(hf_events_read(k->scope, store, ORDER("1"),
                            HF_OPTIONS(hf_events_read_options, .limit = 90), &page));
    after = hf_scope_alloc(k->scope, 100000); /* takes what is not ours */
    CHECK(after != NULL);
    memset(after, 0xff, 100000);
    CHECK_INT(90, page.events_len);
    for (size_t i = 0; i < page.events_len; i++)
        CHECK_INT(101 + i, page.events[i].version);
    CHECK_INT(191, page.next);
    hf_events_close(store);
}

KIT_TEST_TX(read, payloads_from_the_blob_store)
{
    struct hf_blobs *blobs;
    struct hf_events *store, *without;
    uint8_t *bytes = hf_scope_alloc(k->scope, 1000000);
    struct hf_new_event events[3];
    struct hf_append append = {.stream = stream, .events = events, .events_len = 3};
    struct hf_stored_event event;
    struct hf_events_page page;
    struct hf_appended done;

    memset(bytes, 'x', 1000000);
    for (size_t i = 0; i < 3; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t"),
                                          .payload = hf_bytes_of(bytes, i == 1 ? 10 : 1000000)};
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs});
    CHECK(hf_events_abilities(store).blobs);
    CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
    CHECK_OK(hf_events_read(k->scope, store, stream, NULL, &page));
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(i + 1, page.events[i].version);
        CHECK_INT(events[i].payload.len, page.events[i].payload.len);
        CHECK(memcmp(page.events[i].payload.ptr, bytes, events[i].payload.len) == 0);
        CHECK((page.events[i].blob.len > 0) == (i != 1));
    }
    CHECK_OK(hf_events_get(k->scope, store, done.ids[2], &event));
    CHECK_INT(1000000, event.payload.len);
    CHECK_OK(hf_events_read(k->scope, store, stream,
                            HF_OPTIONS(hf_events_read_options, .no_payload = true), &page));
    CHECK(!page.events[0].payload.ptr);
    CHECK_INT(HF_BLOB_DIGEST_LEN, page.events[0].blob.len);
    /* An expectation that does not hold is told before anything is put anywhere. */
    append.expect = HF_EXPECT_NONE;
    bytes[0] = 'y';
    CHECK_STATUS(HF_CONDITION, hf_events_append(k->scope, store, &append, 1, NULL, NULL));

    CHECK_OK(hf_blob_delete(k->scope, store->blobs, page.events[0].blob));
    CHECK_STATUS(HF_CORRUPT, hf_events_read(k->scope, store, stream, NULL, &page));
    CHECK(strstr(hf_scope_error_text(k->scope), " is missing: there is no blob "));
    without = open_store(k);
    if (!hf_events_abilities(without).blobs) {
        CHECK_STATUS(HF_LIMIT, hf_events_append(k->scope, without, &append, 1, NULL, NULL));
        CHECK_STATUS(HF_UNSUPPORTED, hf_events_get(k->scope, without, done.ids[2], &event));
    }
    hf_events_close(without);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* The limit of an item is that of its bytes as they are stored, at it and one past it. */
KIT_TEST_TX(read, the_limit_of_an_item_is_that_of_its_bytes)
{
    struct hf_blobs *blobs;
    struct hf_events *store;
    uint8_t *bytes = hf_scope_alloc(k->scope, HF_EVENTS_BLOB_BYTES);
    struct hf_new_event event = {.type = HF_STR("t")};
    struct hf_append append = {.stream = stream, .events = &event, .events_len = 1};
    size_t low = HF_EVENTS_BLOB_BYTES - 1000, high = HF_EVENTS_BLOB_BYTES;
    struct hf_get_item_result got;

    memset(bytes, 'x', HF_EVENTS_BLOB_BYTES);
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs});
    while (high - low > 1) { /* the largest payload that stays in its item */
        size_t size = (low + high) / 2;
        struct hf_stored_event found;
        struct hf_appended done;

        event.payload = hf_bytes_of(bytes, size);
        CHECK_OK(hf_events_append(k->scope, store, &append, 1, NULL, &done));
        CHECK_OK(hf_events_get(k->scope, store, done.ids[0], &found));
        CHECK_INT(size, found.payload.len);
        if (found.blob.len) {
            high = size;
            continue;
        }
        low = size;
        CHECK_OK(hf_get_item(
            k->scope, k->db,
            &(struct hf_get_item){
                .table = k->table,
                .key = HF_ITEM(k->scope, HF_S("pk", HF_STR("s.order.1")),
                               HF_S("sk", hf_scope_format(k->scope, "%016llu",
                                                          (unsigned long long)found.version)))},
            &got));
        CHECK(hf_item_size(got.item) <= HF_EVENTS_BLOB_BYTES);
    }
    CHECK(low > HF_EVENTS_BLOB_BYTES - 300);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

/* ---- the store ------------------------------------------------------------------------------ */

/* D5.11: a store that is reset is empty, and works at once; who remembers it learns of it. */
KIT_TEST_TX(store, reset_leaves_nothing)
{
    struct hf_events *store = open_store(k), *other = open_store(k);
    struct hf_stored_event event;
    struct hf_events_page page;
    struct hf_appended done, old;

    CHECK_OK(append_some(k, store, stream, HF_EXPECT_NONE, 0, 3, &old));
    CHECK_OK(append_some(k, other, stream, HF_EXPECT_ANY, 0, 1, &done));
    CHECK_OK(hf_events_reset(k->scope, store));
    CHECK_OK(hf_events_read(k->scope, store, stream, NULL, &page));
    CHECK_INT(0, page.version);
    CHECK_STATUS(HF_NOT_FOUND, hf_events_get(k->scope, store, old.ids[0], &event));
    CHECK_OK(append_some(k, other, stream, HF_EXPECT_ANY, 0, 1, &done));
    CHECK_INT(1, done.last);
    CHECK(memcmp(old.position.ptr, done.position.ptr, HF_POSITION_LEN) < 0);
    CHECK_OK(hf_events_reset(k->scope, store));
    CHECK_OK(append_some(k, store, stream, HF_EXPECT_NONE, 0, 2, &done));
    hf_events_close(store);
    hf_events_close(other);
}

/* The prefix is a part of the table's name, and what is provisioned is that table's. */
KIT_TEST_TX(store, a_prefix_and_provisioned_capacity)
{
    struct hf_str prefix = hf_scope_format(k->scope, "%.*s", (int)k->table.len - 4, k->table.ptr);
    struct hf_events_options o = {.size = sizeof(o),
                                  .prefix = prefix,
                                  .table = hf_str_of(k->table.ptr + prefix.len, 4),
                                  .read_units = 7,
                                  .write_units = 9};
    struct hf_describe_table_result table;
    struct hf_events *store, *same;
    struct hf_events_page page;

    CHECK_OK(hf_events_open(k->scope, k->db, &o, &store));
    CHECK_OK(append_some(k, store, stream, HF_EXPECT_NONE, 0, 2, NULL));
    CHECK_OK(
        hf_describe_table(k->scope, k->db, &(struct hf_describe_table){.table = k->table}, &table));
    CHECK_INT(7, table.table->throughput->read_units);
    CHECK_INT(9, table.table->throughput->write_units);
    same = open_store(k); /* by its whole name */
    CHECK_OK(hf_events_read(k->scope, same, stream, NULL, &page));
    CHECK_INT(2, page.events_len);
    hf_events_close(same);
    CHECK_OK(hf_events_reset(k->scope, store)); /* and it is made again as it was */
    CHECK_OK(
        hf_describe_table(k->scope, k->db, &(struct hf_describe_table){.table = k->table}, &table));
    CHECK_INT(9, table.table->throughput->write_units);
    hf_events_close(store);
}

/* What a store says that it can do is what it can. */
KIT_TEST_TX(store, abilities_are_declared)
{
    struct hf_blobs *blobs;
    struct hf_events *store;
    struct hf_events_abilities can;

    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &blobs));
    store = open_store_with(k, (struct hf_events_options){.blobs = blobs, .no_chain = true});
    can = hf_events_abilities(store);
    CHECK(can.append_many && can.streams && can.snapshots && can.by_id && can.by_cause && can.all);
    CHECK(can.blobs && !can.chain);
    hf_events_close(store);
    hf_blobs_close(blobs);
}

KIT_TEST_TX(store, options_are_held_against_the_table)
{
    struct hf_events *store, *other;
    struct hf_events_options o = {.size = sizeof(o), .table = k->table, .no_create = true};

    CHECK(hf_events_open(k->scope, k->db, &o, &store) != HF_OK);
    CHECK(store == NULL);
    o = (struct hf_events_options){.size = sizeof(o), .table = k->table, .shards = 65};
    CHECK_STATUS(HF_INVALID, hf_events_open(k->scope, k->db, &o, &store));
    CHECK_ERROR(HF_INVALID, "shards is 65, at most 64 are allowed", k->scope);
    o.shards = 64;
    CHECK_OK(hf_events_open(k->scope, k->db, &o, &store));
    o.shards = 4;
    CHECK_STATUS(HF_INVALID, hf_events_open(k->scope, k->db, &o, &other));
    CHECK(other == NULL);
    o.shards = 0;
    o.no_create = true;
    CHECK_OK(hf_events_open(k->scope, k->db, &o, &other));
    CHECK(hf_events_abilities(other).chain);
    hf_events_close(other);
    hf_events_close(store);
    hf_events_close(NULL);
    kit_make_table(k, k->other); /* a table of something else */
    o = (struct hf_events_options){.size = sizeof(o), .table = k->other};
    CHECK_STATUS(HF_INVALID, hf_events_open(k->scope, k->db, &o, &store));
    CHECK_STATUS(HF_INVALID, hf_events_open(k->scope, NULL, &o, &store));
}

/* A table with the same keys that is another pattern's. */
KIT_TEST_TX(store, the_table_of_something_else_is_left_alone)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_S}};
    const struct hf_key_element key[] = {{HF_STR("pk"), HF_KEY_HASH}, {HF_STR("sk"), HF_KEY_RANGE}};
    const struct hf_create_table spec = {.table = k->table,
                                         .attributes = attributes,
                                         .attributes_len = 2,
                                         .key_schema = key,
                                         .key_schema_len = 2,
                                         .billing = HF_BILLING_PAY_PER_REQUEST};
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(k->scope, HF_S("pk", HF_STR("p.001")),
                                              HF_S("sk", HF_STR("x")))};
    struct hf_events_options o = {.size = sizeof(o), .table = k->table};
    struct hf_events *store;

    CHECK_OK(hf_create_table(k->scope, k->db, &spec, NULL));
    test_advance_ms(k->t, 10000);
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_STATUS(HF_INVALID, hf_events_open(k->scope, k->db, &o, &store));
    CHECK(strstr(hf_scope_error_text(k->scope), "is not an event store: it has items (one has pk, "
                                                "sk) and no mark of holdfast"));
}

static void count_wake(void *user)
{
    ++*(int *)user;
}

KIT_TEST_TX(store, who_listens_is_told)
{
    struct hf_events *store = open_store(k);
    struct hf_appended done;
    int one = 0, other = 0;

    CHECK_OK(hf_events_listen(k->scope, store, count_wake, &one));
    CHECK_OK(hf_events_listen(k->scope, store, count_wake, &other));
    CHECK_OK(append_some(k, store, stream, HF_EXPECT_NONE, 0, 3, &done));
    CHECK_INT(1, one);
    CHECK_INT(1, other);
    CHECK_STATUS(HF_CONDITION, append_some(k, store, stream, HF_EXPECT_NONE, 0, 3, &done));
    CHECK_INT(1, one);
    hf_events_unlisten(store, count_wake, &one);
    CHECK_OK(append_some(k, store, stream, HF_EXPECT_ANY, 0, 200, &done));
    CHECK_INT(1, one);
    CHECK_INT(2, other);
    hf_events_unlisten(store, count_wake, &other);
    for (int i = 0; i < EVENTS_WAKERS_MAX; i++)
        CHECK_OK(hf_events_listen(k->scope, store, count_wake, &one));
    CHECK_STATUS(HF_LIMIT, hf_events_listen(k->scope, store, count_wake, &one));
    for (int i = 0; i < EVENTS_WAKERS_MAX; i++)
        hf_events_unlisten(store, count_wake, &one);
    CHECK_OK(hf_events_listen(k->scope, store, count_wake, &one));
    hf_events_unlisten(store, count_wake, &one);
    hf_events_close(store);
}
