/*
 * streams/consumer_test.c: a consumer of a stream on every kind of database, on one thread and the
 * test's clock.
 */
#include <holdfast/streams.h>

#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

enum { ITEMS = 12, WAIT_MS = 600000 };

/* What was handed over. Each change of an item sets `n` to one more than before. */
struct seen {
    struct kit *k;
    int64_t last[ITEMS]; /* the `n` of its last change; 0: none, or it was removed */
    int total, inserts, modifies, removes, batches, largest;
    int out_of_order;
    int fail; /* so many batches are not taken */
    int gaps;
    char first_shard[128], first_sequence[64], last_sequence[64], last_id[64];
    struct hf_consumer *other; /* runs in the middle of the first batch */
    struct seen *others;
    int64_t advance_ms; /* the clock jumps in the middle of the first batch */
    bool canceled;
    struct hf_scope *cancel; /* after the first batch */
};

static int64_t number_in(struct hf_item item)
{
    int64_t n = 0;

    (void)hf_value_i64(hf_item_get(item, HF_STR("n")), &n);
    return n;
}

static int item_of(struct hf_item key)
{
    struct hf_str id = hf_value_str(hf_item_get(key, HF_STR("id")));
    int item = 0;

    for (size_t i = 0; i < id.len; i++)
        item = item * 10 + id.ptr[i] - '0';
    return item;
}

static void note(struct seen *seen, const struct hf_change *change)
{
    int item = item_of(change->key);
    int64_t before = number_in(change->old_image), after = number_in(change->new_image);

    CHECK(item >= 0 && item < ITEMS);
    CHECK(change->sequence.len && change->shard.len && change->id.len);
    seen->out_of_order += before != seen->last[item];
    CHECK((change->kind == HF_CHANGE_INSERT) == !change->old_image.ptr);
    CHECK((change->kind == HF_CHANGE_REMOVE) == !change->new_image.ptr);
    seen->inserts += change->kind == HF_CHANGE_INSERT;
    seen->modifies += change->kind == HF_CHANGE_MODIFY;
    seen->removes += change->kind == HF_CHANGE_REMOVE;
    seen->last[item] = after;
    if (!seen->total++) {
        snprintf(seen->first_shard, sizeof(seen->first_shard), "%.*s", HF_FMT(change->shard));
        snprintf(seen->first_sequence, sizeof(seen->first_sequence), "%.*s",
                 HF_FMT(change->sequence));
    }
}

static enum hf_status take(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct seen *seen = user;

    CHECK(len > 0);
    if (seen->fail > 0) {
        seen->fail--;
        if (seen->advance_ms)
            test_advance_ms(seen->k->t, seen->advance_ms);
        return hf_scope_fail(s, HF_IO, "the shelf is full");
    }
    for (size_t i = 0; i < len; i++)
        note(seen, &changes[i]);
    seen->batches++;
    if ((int)len > seen->largest)
        seen->largest = (int)len;
    if (seen->other) {
        struct hf_consumer *other = seen->other;

        seen->other = NULL;
        hf_scope_timeout_ms(s, 20000); /* ours is longer over than that */
        CHECK_STATUS(HF_TIMEOUT, hf_consumer_run(s, other, take, seen->others));
    }
    if (seen->cancel)
        hf_scope_cancel(seen->cancel);
    return HF_OK;
}

static void gap(struct hf_str shard, struct hf_str sequence, void *user)
{
    struct seen *seen = user;

    CHECK(shard.len);
    seen->gaps++;
    snprintf(seen->last_sequence, sizeof(seen->last_sequence), "%.*s", HF_FMT(sequence));
}

/* ---- tables --------------------------------------------------------------------------------- */

static bool on_url(struct kit *k)
{
    return strstr(k->t->name, "_on_url") != NULL;
}

/* Is the database's clock the test's? That of a server is the system's. */
static bool has_our_clock(struct kit *k)
{
    return !on_url(k) && !strstr(k->t->name, "_on_server");
}

static void make_table(struct kit *k, struct hf_str table)
{
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_stream_spec stream = {.enabled = HF_YES, .view = HF_VIEW_NEW_AND_OLD_IMAGES};
    struct hf_create_table spec = {.table = table,
                                   .attributes = &id,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1,
                                   .stream = &stream};

    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
}

/* False: the database has no streams, and there is nothing to test. */
static bool begin(struct kit *k)
{
    if (!kit_has(k, HF_FEATURE_STREAMS))
        return false;
    make_table(k, k->table);
    return true;
}

static void put(struct kit *k, int item, int n)
{
    struct hf_scope *s = k->scope;
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(s, HF_S("id", hf_scope_format(s, "%d", item)),
                                              HF_N("n", n))};

    CHECK_OK(hf_put_item(s, k->db, &put, NULL));
}

static void put_all(struct kit *k, int from, int to)
{
    for (int n = from; n <= to; n++)
        for (int item = 0; item < ITEMS; item++)
            put(k, item, n);
}

static void set_stream(struct kit *k, bool on)
{
    struct hf_stream_spec stream = {.enabled = on ? HF_YES : HF_NO,
                                    .view =
                                        on ? HF_VIEW_NEW_AND_OLD_IMAGES : (enum hf_stream_view)0};

    CHECK_OK(hf_update_table(k->scope, k->db,
                             &(struct hf_update_table){.table = k->table, .stream = &stream},
                             NULL));
    CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_ACTIVE, NULL));
}

/* ---- consumers ------------------------------------------------------------------------------ */

static struct hf_consumer *open_with(struct kit *k, struct hf_consumer_options o)
{
    struct hf_consumer *consumer = NULL;

    o.size = sizeof(o);
    o.no_threads = true;
    o.table = k->other;
    if (hf_consumer_open(k->scope, k->db, k->table, &o, &consumer) != HF_OK)
        fail_msg("%s", hf_scope_error_text(k->scope));
    return consumer;
}

/* A table for positions that has items of others is left alone, unless it is adopted. */
KIT_TEST(consumer, positions_are_kept_in_a_table_of_ours)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_S}};
    const struct hf_key_element key[] = {{HF_STR("pk"), HF_KEY_HASH}, {HF_STR("sk"), HF_KEY_RANGE}};
    const struct hf_create_table spec = {.table = k->other,
                                         .attributes = attributes,
                                         .attributes_len = 2,
                                         .key_schema = key,
                                         .key_schema_len = 2};
    struct hf_consumer_options o = {.size = sizeof(o),
                                    .name = HF_STR("c"),
                                    .table = k->other,
                                    .no_threads = true};
    struct hf_put_item put = {.table = k->other,
                              .item = HF_ITEM(k->scope, HF_S("pk", HF_STR("x")),
                                              HF_S("sk", HF_STR("y")))};
    struct hf_consumer *consumer;

    if (!begin(k))
        return;
    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_STATUS(HF_INVALID, hf_consumer_open(k->scope, k->db, k->table, &o, &consumer));
    CHECK(strstr(hf_scope_error_text(k->scope), "is not a table of positions in streams"));
    o.adopt = true;
    CHECK_OK(hf_consumer_open(k->scope, k->db, k->table, &o, &consumer));
    hf_consumer_close(consumer);
    o.adopt = false;
    CHECK_OK(hf_consumer_open(k->scope, k->db, k->table, &o, &consumer));
    hf_consumer_close(consumer);
}

/* Open, run, close. */
static enum hf_status consume(struct kit *k, struct seen *seen, struct hf_consumer_options o)
{
    struct hf_scope *s = hf_scope_new(test_env(k->t));
    struct hf_consumer *consumer;
    enum hf_status status;

    seen->k = k;
    o.on_gap = gap;
    o.user = seen;
    consumer = open_with(k, o);
    hf_scope_timeout_ms(s, WAIT_MS);
    status = hf_consumer_run(s, consumer, take, seen);
    if (status != HF_OK)
        CHECK(hf_scope_error(s)->message.len > 0);
    hf_consumer_close(consumer);
    hf_scope_free(s);
    return status;
}

#define CONSUME(k, seen, ...)                                                                      \
    consume((k), (seen), (struct hf_consumer_options){.until_end = true, __VA_ARGS__})

KIT_TEST(consumer, every_change_once_and_in_order)
{
    struct seen seen = {.total = 0};

    if (!begin(k))
        return;
    put_all(k, 1, 4);
    for (int i = 0; i < 3; i++)
        CHECK_OK(hf_delete_item(k->scope, k->db,
                                &(struct hf_delete_item){
                                    .table = k->table,
                                    .key = HF_ITEM(k->scope,
                                                   HF_S("id", hf_scope_format(k->scope, "%d", i)))},
                                NULL));
    CHECK_OK(CONSUME(k, &seen, .batch = 5));
    CHECK_INT(0, seen.out_of_order);
    CHECK_INT(4 * ITEMS + 3, seen.total);
    CHECK_INT(ITEMS, seen.inserts);
    CHECK_INT(3 * ITEMS, seen.modifies);
    CHECK_INT(3, seen.removes);
    CHECK(seen.largest <= 5);
    CHECK_INT(0, seen.gaps);
}

KIT_TEST(consumer, an_empty_table_is_no_trouble)
{
    struct seen seen = {.total = 0};

    if (!begin(k))
        return;
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(0, seen.total);
    put(k, 3, 1);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(1, seen.total);
}

KIT_TEST(consumer, goes_on_where_it_was)
{
    struct seen seen = {.total = 0}, other = {.total = 0}, none = {.total = 0};

    if (!begin(k))
        return;
    put_all(k, 1, 2);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(2 * ITEMS, seen.total);
    put_all(k, 3, 3);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(3 * ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(3 * ITEMS, seen.total);
    CHECK_OK(CONSUME(k, &other, .name = HF_STR("b"))); /* another name has its own position */
    CHECK_INT(3 * ITEMS, other.total);
    CHECK_OK(CONSUME(k, &none, .poll_ms = 1)); /* and without a name there is none */
    CHECK_INT(3 * ITEMS, none.total);
}

/* What a run does that is ended in the middle of it is not lost and does not come twice. */
KIT_TEST(consumer, a_canceled_run_writes_its_positions)
{
    struct seen seen = {.k = k};
    struct hf_scope *s;
    struct hf_consumer *consumer;

    if (!begin(k))
        return;
    put_all(k, 1, 3);
    s = kit_scope(k);
    consumer = open_with(k, (struct hf_consumer_options){.name = HF_STR("a"), .batch = 4});
    for (int i = 0; i < 100 && seen.total < 3 * ITEMS; i++) {
        hf_scope_reset(s);
        seen.cancel = s;
        CHECK_STATUS(HF_CANCELED, hf_consumer_run(s, consumer, take, &seen));
    }
    hf_consumer_close(consumer);
    CHECK_INT(3 * ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
    seen.cancel = NULL;
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(3 * ITEMS, seen.total);
}

KIT_TEST(consumer, a_deadline_ends_the_run)
{
    struct seen seen = {.k = k};
    struct hf_consumer *consumer;

    if (!begin(k))
        return;
    put_all(k, 1, 1);
    consumer = open_with(k, (struct hf_consumer_options){.name = HF_STR("a")});
    hf_scope_timeout_ms(k->scope, 20000);
    CHECK_STATUS(HF_TIMEOUT, hf_consumer_run(k->scope, consumer, take, &seen));
    hf_scope_timeout_ms(k->scope, 0);
    CHECK_INT(ITEMS, seen.total);
    hf_consumer_close(consumer);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(ITEMS, seen.total);
}

/* ---- starts --------------------------------------------------------------------------------- */

KIT_TEST(consumer, latest_is_what_comes_from_then_on)
{
    struct seen seen = {.total = 0};

    if (!begin(k) || !has_our_clock(k))
        return;
    put_all(k, 1, 1);
    test_advance_ms(k->t, 5000);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .start = HF_START_END));
    CHECK_INT(0, seen.total);
    put_all(k, 2, 2);
    for (int i = 0; i < ITEMS; i++)
        seen.last[i] = 1;
    /* Nothing was read so far, but the name began then. */
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .start = HF_START_END));
    CHECK_INT(ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
}

/* The consumer that goes on: what is written between two runs comes, what was before does not. */
KIT_TEST(consumer, latest_without_a_name)
{
    struct seen seen = {.k = k};
    struct hf_consumer *consumer;

    if (!begin(k))
        return;
    put_all(k, 1, 1);
    consumer = open_with(k, (struct hf_consumer_options){.start = HF_START_END, .until_end = true});
    CHECK_OK(hf_consumer_run(k->scope, consumer, take, &seen));
    CHECK_INT(0, seen.total);
    put(k, 4, 2);
    seen.last[4] = 1;
    CHECK_OK(hf_consumer_run(k->scope, consumer, take, &seen));
    CHECK_INT(1, seen.total);
    CHECK_INT(0, seen.out_of_order);
    hf_consumer_close(consumer);
}

KIT_TEST(consumer, starts_at_a_time)
{
    struct seen seen = {.total = 0};
    int64_t from_us;

    if (!begin(k) || !has_our_clock(k))
        return;
    put_all(k, 1, 3);
    test_advance_ms(k->t, 5000);
    from_us = k->t->wall_us;
    put_all(k, 4, 4);
    for (int i = 0; i < ITEMS; i++)
        seen.last[i] = 3;
    CHECK_OK(CONSUME(k, &seen, .start = HF_START_TIME, .from_us = from_us, .batch = 2));
    CHECK_INT(ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
}

/* A first batch after a time that fails comes again, however long that takes. */
KIT_TEST(consumer, starts_at_a_time_and_fails)
{
    struct seen seen = {.fail = 3, .advance_ms = 16 * 60 * 1000};
    int64_t from_us;

    if (!begin(k) || !has_our_clock(k))
        return;
    put_all(k, 1, 1);
    test_advance_ms(k->t, 5000);
    from_us = k->t->wall_us;
    put_all(k, 2, 2);
    for (int i = 0; i < ITEMS; i++)
        seen.last[i] = 1;
    for (int i = 0; i < 10 && seen.total < ITEMS; i++)
        (void)!CONSUME(k, &seen, .name = HF_STR("a"), .start = HF_START_TIME, .from_us = from_us);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
}

KIT_TEST(consumer, starts_after_a_record)
{
    struct seen all = {.total = 0}, rest = {.total = 0};

    if (!begin(k))
        return;
    for (int n = 1; n <= 5; n++)
        put(k, 7, n); /* one item is in one shard */
    CHECK_OK(CONSUME(k, &all));
    CHECK_INT(5, all.total);
    rest.last[7] = 1;
    CHECK_OK(CONSUME(k, &rest, .name = HF_STR("a"), .start = HF_START_AFTER,
                     .shard = hf_str_from(all.first_shard),
                     .sequence = hf_str_from(all.first_sequence)));
    CHECK_INT(4, rest.total);
    CHECK_INT(0, rest.out_of_order);
    CHECK_STATUS(HF_NOT_FOUND, CONSUME(k, &rest, .start = HF_START_AFTER,
                                       .shard = HF_STR("shardId-none-at-all-00000"),
                                       .sequence = hf_str_from(all.first_sequence)));
}

KIT_TEST(consumer, one_partition)
{
    struct seen seen = {.total = 0};

    if (!begin(k))
        return;
    put_all(k, 1, 3);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .partition = HF_STR("5")));
    CHECK_INT(3, seen.total);
    CHECK_INT(3, seen.last[5]);
    put_all(k, 4, 4);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .partition = HF_STR("5")));
    CHECK_INT(4, seen.total);
    CHECK_INT(0, seen.out_of_order);
}

/* ---- failures ------------------------------------------------------------------------------- */

KIT_TEST(consumer, what_is_not_taken_comes_again)
{
    struct seen seen = {.fail = 6};
    int64_t before_us;

    if (!begin(k))
        return;
    put_all(k, 1, 2);
    before_us = k->t->elapsed_us;
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .backoff_ms = 100));
    CHECK_INT(2 * ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
    CHECK(k->t->elapsed_us - before_us >= 100000); /* not at once */
}

KIT_TEST(consumer, a_batch_that_is_never_taken_ends_the_run)
{
    struct seen seen = {.k = k, .fail = 1000};
    struct hf_consumer_metrics metrics;
    struct hf_consumer *consumer;

    if (!begin(k))
        return;
    put(k, 1, 1);
    consumer = open_with(k, (struct hf_consumer_options){.name = HF_STR("a"), .max_attempts = 4});
    CHECK_STATUS(HF_IO, hf_consumer_run(k->scope, consumer, take, &seen));
    CHECK_STR("the shelf is full", hf_scope_error(k->scope)->message);
    hf_consumer_metrics(consumer, &metrics);
    CHECK_INT(4, metrics.failures);
    CHECK_INT(0, metrics.changes);
    CHECK_INT(0, metrics.shards);
    CHECK(metrics.calls >= 4);
    hf_consumer_close(consumer);
    seen.fail = 0;
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(1, seen.total);
}

/* Iterators are good for a quarter of an hour. */
KIT_TEST(consumer, expired_iterators_are_renewed)
{
    struct seen seen = {.fail = 2, .advance_ms = 16 * 60 * 1000};
    struct hf_consumer *consumer;

    if (!begin(k))
        return;
    put_all(k, 1, 2);
    seen.k = k;
    consumer =
        open_with(k,
                  (struct hf_consumer_options){.name = HF_STR("a"), .until_end = true, .batch = 3});
    CHECK_OK(hf_consumer_run(k->scope, consumer, take, &seen));
    hf_consumer_close(consumer);
    CHECK_INT(2 * ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
}

static void with_faults(struct kit *k, enum hf_fault_kind kind)
{
    static const char *const operations[] = {"GetRecords",     "GetShardIterator",
                                             "DescribeStream", "UpdateItem",
                                             "Query",          "PutItem",
                                             "DescribeTable",  "GetItem"};
    struct hf_fault faults[8];

    for (size_t i = 0; i < 8; i++)
        faults[i] = (struct hf_fault){.kind = kind,
                                      .operation = hf_str_from(operations[i]),
                                      .skip = (uint32_t)i % 3,
                                      .count = 3};
    CHECK_OK(hf_faulty_set(k->scope, k->db, faults, 8));
}

KIT_TEST(consumer, a_database_with_trouble_is_waited_for)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_THROTTLE, HF_FAULT_ERROR,
                                               HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct seen seen = {.k = k};

    if (!begin(k))
        return;
    for (int i = 0; i < 4; i++) {
        struct hf_consumer *consumer =
            open_with(k, (struct hf_consumer_options){.name = HF_STR("a"), .until_end = true});
        enum hf_status status;

        put_all(k, i + 1, i + 1);
        with_faults(k, kinds[i]);
        hf_scope_timeout_ms(k->scope, WAIT_MS);
        status = hf_consumer_run(k->scope, consumer, take, &seen);
        if (status != HF_OK)
            fail_msg("fault %d: %s", kinds[i], hf_scope_error_text(k->scope));
        hf_scope_timeout_ms(k->scope, 0);
        kit_no_faults(k);
        hf_consumer_close(consumer);
        CHECK_INT((i + 1) * ITEMS, seen.total);
    }
    CHECK_INT(0, seen.out_of_order);
}

KIT_TEST(consumer, says_what_cannot_be)
{
    struct hf_consumer *c;
    struct hf_scope *s = k->scope;

    CHECK_STATUS(HF_NOT_FOUND, hf_consumer_open(s, k->db, k->table, NULL, &c));
    CHECK(c == NULL);
    kit_make_table(k, k->table);
    CHECK_STATUS(HF_INVALID, hf_consumer_open(s, k->db, k->table, NULL, &c));
    CHECK(strstr(hf_scope_error_text(s), "has no stream"));
    CHECK_STATUS(HF_INVALID,
                 hf_consumer_open(s, k->db, k->table,
                                  HF_OPTIONS(hf_consumer_options, .start = HF_START_AFTER), &c));
    CHECK_STATUS(HF_INVALID,
                 hf_consumer_open(s, k->db, k->table,
                                  HF_OPTIONS(hf_consumer_options, .start = HF_START_TIME), &c));
    CHECK_STATUS(HF_INVALID, hf_consumer_open(s, k->db, k->table,
                                              HF_OPTIONS(hf_consumer_options, .workers = 257), &c));
    CHECK_STATUS(HF_INVALID, hf_consumer_open(s, k->db, k->table,
                                              HF_OPTIONS(hf_consumer_options, .name = HF_STR("a"),
                                                         .lease_ms = 19),
                                              &c));
    CHECK_STATUS(HF_INVALID, hf_consumer_open(s, NULL, k->table, NULL, &c));
    hf_consumer_close(NULL);
}

/* ---- several, one after the other ----------------------------------------------------------- */

/* A first consumer is stopped in the middle of a batch for longer than a lease. Another takes over
 * and does everything; the position that the first one would write is refused. */
KIT_TEST(consumer, a_stale_position_is_refused)
{
    struct seen stale = {.k = k}, other = {.k = k}, again = {.k = k};
    struct hf_consumer_options options = {.name = HF_STR("a"),
                                          .batch = 2,
                                          .lease_ms = 2000,
                                          .until_end = true};
    struct hf_consumer *first, *second;

    if (!begin(k))
        return;
    for (int n = 1; n <= 10; n++)
        put(k, 7, n);
    first = open_with(k, options);
    options.until_end = false;
    second = open_with(k, options);
    stale.other = second;
    stale.others = &other;
    CHECK_OK(hf_consumer_run(k->scope, first, take, &stale));
    CHECK_INT(10, other.total); /* all, from the position before the batch */
    CHECK_INT(0, other.out_of_order);
    CHECK_INT(2, stale.total);
    hf_consumer_close(first);
    hf_consumer_close(second);
    CHECK_OK(CONSUME(k, &again, .name = HF_STR("a")));
    CHECK_INT(0, again.total);
}

/* A consumer that was closed in the middle of nothing leaves its shards free at once. */
KIT_TEST(consumer, shards_are_handed_over_at_the_end)
{
    struct seen seen = {.k = k};
    int64_t before_us;

    if (!begin(k))
        return;
    put_all(k, 1, 1);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .lease_ms = 3600000));
    put_all(k, 2, 2);
    before_us = k->t->elapsed_us;
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a"), .lease_ms = 3600000));
    CHECK_INT(2 * ITEMS, seen.total);
    CHECK(k->t->elapsed_us - before_us < 60000000);
}

/* ---- other streams of the table ------------------------------------------------------------- */

KIT_TEST(consumer, a_stream_that_is_enabled_again)
{
    struct seen seen = {.k = k};

    if (!begin(k))
        return;
    put_all(k, 1, 1);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    put_all(k, 2, 2);
    set_stream(k, false);
    if (!on_url(k))
        test_advance_ms(k->t, 1000); /* a stream is called after its time */
    set_stream(k, true);
    put_all(k, 3, 3);
    set_stream(k, false);
    if (!on_url(k))
        test_advance_ms(k->t, 1000);
    set_stream(k, true);
    put_all(k, 4, 4);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(4 * ITEMS, seen.total); /* also of the stream between */
    CHECK_INT(0, seen.out_of_order);
    put_all(k, 5, 5);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(5 * ITEMS, seen.total);
}

KIT_TEST(consumer, a_table_that_is_made_anew)
{
    struct seen seen = {.k = k};
    struct hf_consumer *consumer;

    if (!begin(k) || on_url(k)) /* others throw the stream away with the table */
        return;
    put_all(k, 1, 2);
    consumer = open_with(k, (struct hf_consumer_options){.until_end = true, .name = HF_STR("a")});
    CHECK_OK(hf_consumer_run(k->scope, consumer, take, &seen));
    CHECK_INT(2 * ITEMS, seen.total);
    put_all(k, 3, 3);
    CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
    CHECK_OK(hf_table_wait(k->scope, k->db, k->table, HF_TABLE_UNTIL_GONE, NULL));
    CHECK_OK(hf_consumer_run(k->scope, consumer, take, &seen));
    CHECK_INT(3 * ITEMS, seen.total); /* the stream is there when the table is not */
    test_advance_ms(k->t, 1000);
    make_table(k, k->table);
    memset(seen.last, 0, sizeof(seen.last));
    put_all(k, 1, 1);
    CHECK_OK(hf_consumer_run(k->scope, consumer, take, &seen));
    hf_consumer_close(consumer);
    CHECK_INT(4 * ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
    CHECK_INT(0, seen.gaps);
}

KIT_TEST(consumer, names_and_tables_do_not_mix)
{
    struct seen seen = {.k = k}, other = {.k = k};

    if (!begin(k))
        return;
    put_all(k, 1, 1);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a.b")));
    CHECK_OK(CONSUME(k, &other, .name = HF_STR("a")));
    CHECK_INT(ITEMS, seen.total);
    CHECK_INT(ITEMS, other.total);
}

/* ---- what is gone --------------------------------------------------------------------------- */

struct trimmed {
    struct kit kit;
};

static void trimmed_open(struct test *t, struct trimmed *w, const struct hf_env *env)
{
    w->kit = (struct kit){.t = t,
                          .scope = hf_scope_new(test_env(t)),
                          .table = HF_STR("tab"),
                          .other = HF_STR("positions")};
    CHECK_OK(hf_open(w->kit.scope, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = env, .no_upkeep_thread = true),
                     &w->kit.db));
    make_table(&w->kit, w->kit.table);
}

static void trimmed_close(struct trimmed *w)
{
    hf_db_close(w->kit.db);
    hf_scope_free(w->kit.scope);
}

static void a_day_later(struct trimmed *w)
{
    test_advance_ms(w->kit.t, 25 * 60 * 60 * 1000);
    CHECK_OK(hf_engine_upkeep(w->kit.scope, w->kit.db, NULL));
}

TEST(consumer, gaps_are_reported_and_passed)
{
    struct trimmed w;
    struct seen seen = {.total = 0};
    struct kit *k = &w.kit;

    trimmed_open(t, &w, test_env(t));
    put(k, 7, 1);
    put(k, 7, 2);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(2, seen.total);
    snprintf(seen.last_id, sizeof(seen.last_id), "%s", seen.first_sequence);
    put(k, 7, 3);
    put(k, 7, 4);
    a_day_later(&w);
    put(k, 7, 5);
    seen.last[7] = 4; /* 3 and 4 are gone */
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(1, seen.gaps);
    CHECK(strcmp(seen.last_sequence, seen.last_id) > 0); /* the one behind the first */
    CHECK_INT(3, seen.total);
    CHECK_INT(0, seen.out_of_order);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(1, seen.gaps);
    CHECK_INT(3, seen.total);
    trimmed_close(&w);
}

/* A table that nobody writes to for days has no gap: its last record was read before it went. */
TEST(consumer, what_was_read_and_is_gone_is_no_gap)
{
    struct trimmed w;
    struct seen seen = {.total = 0};
    struct kit *k = &w.kit;

    trimmed_open(t, &w, test_env(t));
    put(k, 7, 1);
    put(k, 8, 1);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    a_day_later(&w);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(0, seen.gaps);
    put(k, 7, 2);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK_INT(0, seen.gaps);
    CHECK_INT(3, seen.total);
    trimmed_close(&w);
}

/* A table that is gone ends the run, but not before its stream was read. */
TEST(consumer, a_table_that_is_gone)
{
    struct hf_consumer *consumer;
    struct trimmed w;
    struct seen seen = {.total = 0};
    struct kit *k = &w.kit;

    trimmed_open(t, &w, test_env(t));
    seen.k = k;
    put_all(k, 1, 2);
    consumer = open_with(k, (struct hf_consumer_options){.name = HF_STR("a"), .batch = 5});
    CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table}, NULL));
    hf_scope_timeout_ms(k->scope, WAIT_MS);
    CHECK_STATUS(HF_NOT_FOUND, hf_consumer_run(k->scope, consumer, take, &seen));
    hf_scope_timeout_ms(k->scope, 0);
    hf_consumer_close(consumer);
    CHECK_INT(2 * ITEMS, seen.total);
    CHECK_INT(0, seen.out_of_order);
    trimmed_close(&w);
}

/* A whole stream that is gone before it was read. */
TEST(consumer, a_stream_that_is_gone_is_a_gap)
{
    struct trimmed w;
    struct seen seen = {.total = 0};
    struct kit *k = &w.kit;

    trimmed_open(t, &w, test_env(t));
    put(k, 7, 1);
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    put(k, 7, 2);
    set_stream(k, false);
    a_day_later(&w);
    set_stream(k, true);
    put(k, 7, 3);
    seen.last[7] = 2;
    CHECK_OK(CONSUME(k, &seen, .name = HF_STR("a")));
    CHECK(seen.gaps > 0);
    CHECK_INT(2, seen.total);
    CHECK_INT(0, seen.out_of_order);
    trimmed_close(&w);
}

/* ---- what the database itself removes ------------------------------------------------------- */

static enum hf_status count_expired(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                    void *user)
{
    int *counts = user;

    (void)s;
    for (size_t i = 0; i < len; i++) {
        counts[0] += changes[i].kind == HF_CHANGE_REMOVE;
        counts[1] += changes[i].expired;
    }
    return HF_OK;
}

TEST(consumer, removed_by_hand_or_by_time)
{
    struct hf_ttl_spec ttl = {.enabled = HF_YES, .attribute = HF_STR("n")};
    struct hf_consumer_metrics metrics;
    struct hf_consumer *consumer;
    struct trimmed w;
    struct kit *k = &w.kit;
    int counts[2] = {0, 0};

    trimmed_open(t, &w, test_env(t));
    CHECK_OK(hf_update_time_to_live(
        k->scope, k->db, &(struct hf_update_time_to_live){.table = k->table, .spec = &ttl}, NULL));
    put(k, 1, (int)(t->wall_us / 1000000) + 5);
    put(k, 2, (int)(t->wall_us / 1000000) + 5000);
    test_advance_ms(t, 10000);
    CHECK_OK(hf_engine_upkeep(k->scope, k->db, NULL));
    CHECK_OK(
        hf_delete_item(k->scope, k->db,
                       &(struct hf_delete_item){.table = k->table,
                                                .key = HF_ITEM(k->scope, HF_S("id", HF_STR("2")))},
                       NULL));
    test_advance_ms(t, 3000);
    consumer = open_with(k, (struct hf_consumer_options){.until_end = true});
    CHECK_OK(hf_consumer_run(k->scope, consumer, count_expired, counts));
    hf_consumer_metrics(consumer, &metrics);
    CHECK_INT(4, metrics.changes);
    CHECK(metrics.lag_ms >= 3000 && metrics.lag_ms < 20000);
    hf_consumer_close(consumer);
    CHECK_INT(2, counts[0]);
    CHECK_INT(1, counts[1]);
    trimmed_close(&w);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status count_only(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                 void *user)
{
    (void)s, (void)changes;
    *(int *)user += (int)len;
    return HF_OK;
}

TEST(consumer, any_allocation_may_fail)
{
    struct trimmed w;
    struct kit *k = &w.kit;
    int round = 0;

    trimmed_open(t, &w, NULL); /* what the engine keeps does not count */
    put_all(k, 1, 1);
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_consumer *consumer = NULL;
        enum hf_status status = HF_NOMEM;
        char name[32];
        int changes = 0;

        snprintf(name, sizeof(name), "sweep%d", round++);
        if (s)
            status = hf_consumer_open(s, k->db, k->table,
                                      HF_OPTIONS(hf_consumer_options, .name = hf_str_from(name),
                                                 .no_threads = true, .until_end = true, .batch = 4,
                                                 .partition = HF_STR("3"), .table = k->other),
                                      &consumer);
        if (status == HF_OK)
            status = hf_consumer_run(s, consumer, count_only, &changes);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_NOMEM || changes == 1);
        CHECK(status == HF_OK || t->alloc_failed);
        hf_consumer_close(consumer);
        hf_scope_free(s);
    }
    CHECK(round > 20);
    trimmed_close(&w);
}
