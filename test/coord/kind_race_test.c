/*
 * coord/kind_race_test.c: tables that several open for the first time at the same moment. (n) is
 * a number of kind.c.
 */
#include <holdfast/engine.h>

#include <pthread.h>
#include <string.h>

#include "../db/between.h"
#include "kind_kit.h"

/* ---- an event store shares its table with nobody (5) ---------------------------------------- */

static enum hf_status open_values_there(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                        struct how how)
{
    struct hf_kv *kv;
    enum hf_status status =
        hf_kv_open(s, db,
                   HF_OPTIONS(hf_kv_options, .table = table, .partitioned = true,
                              .hash_attribute = HF_STR("pk"), .sort_attribute = HF_STR("sk"),
                              .no_create = how.no_create, .adopt = how.adopt),
                   &kv);

    hf_kv_close(kv);
    return status;
}

static enum hf_status open_records_there(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                         struct how how)
{
    struct hf_records *records;
    enum hf_status status =
        hf_records_open(s, db,
                        HF_OPTIONS(hf_records_options, .table = table, .account = HF_STR("pk"),
                                   .run_time = HF_STR("sk"), .no_create = how.no_create,
                                   .adopt = how.adopt),
                        &records);

    hf_records_close(records);
    return status;
}

/* Patterns whose tables can have the keys of an event store. */
static const struct kind_case others[] = {
    {"a table of values", open_values_there, "pk", "sk", "holdfast:table", "holdfast:table", NULL,
     "values"},
    {"a table of records", open_records_there, "pk", "sk", "holdfast:records", "shards", "Format",
     NULL},
    {"an outbox", open_outbox, "pk", "sk", "c", "config", "format", NULL},
};

static void check_refused(struct kit *k, const char *what, const char *is)
{
    struct hf_str text = hf_scope_format(k->scope, "is not %s: it is %s. Use another", what, is);

    CHECK(strstr(hf_scope_error_text(k->scope), text.ptr));
    CHECK_INT(1, count_items(k));
}

KIT_TEST_TX(kind, an_event_store_shares_its_table_with_nobody)
{
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        const struct kind_case *c = &others[i];

        for (int adopt = 0; adopt < 2; adopt++) {
            CHECK(make_bare(k, c));
            CHECK_OK(open_events(k->scope, k->db, k->table, (struct how){false, false}));
            CHECK_STATUS(HF_INVALID,
                         c->open(k->scope, k->db, k->table, (struct how){false, adopt}));
            check_refused(k, c->what, "an event store");
            drop_table(k);
            CHECK_OK(c->open(k->scope, k->db, k->table, (struct how){false, false}));
            CHECK_STATUS(HF_INVALID,
                         open_events(k->scope, k->db, k->table, (struct how){false, adopt}));
            check_refused(k, "an event store", c->what);
            drop_table(k);
        }
    }
}

static struct race {
    struct hf_str table;
    open_fn *open;
    int at, calls; /* it is opened before this call of ours; calls so far */
    enum hf_status status;
} race;

static enum hf_status open_before(struct hf_scope *s, struct between *b, enum hf_op op,
                                  const void *request, void *response)
{
    if (race.calls++ == race.at)
        race.status = race.open(b->own, b->inner, race.table, (struct how){false, false});
    return between_pass(s, b, op, request, response);
}

/* As Terraform makes it, say: without a time to live. */
static void make_plain(struct kit *k)
{
    const struct hf_attribute_definition attributes[] = {{HF_STR("pk"), HF_SCALAR_S},
                                                         {HF_STR("sk"), HF_SCALAR_S}};
    const struct hf_key_element keys[] = {{HF_STR("pk"), HF_KEY_HASH},
                                          {HF_STR("sk"), HF_KEY_RANGE}};
    const struct hf_create_table spec = {.table = k->table,
                                         .attributes = attributes,
                                         .attributes_len = 2,
                                         .key_schema = keys,
                                         .key_schema_len = 2};

    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
}

/* Open `one` in an empty table, and the other before each of its calls in turn: one is refused, and
 * leaves nothing behind that is in the way of the other. `made` has made the table; NULL: nobody of
 * ours has. */
static void open_both(struct kit *k, struct hf_scope *own, const struct kind_case *made,
                      open_fn *one, open_fn *other)
{
    bool between_calls = true;

    for (int at = 0; between_calls; at++) {
        struct between b = between_of(k->db);
        enum hf_status status;

        b.on_call = open_before;
        b.own = own;
        if (made)
            CHECK(make_bare(k, made));
        else
            make_plain(k);
        race = (struct race){.table = k->table, .open = other, .at = at, .status = HF_INTERNAL};
        status = one(k->scope, &b.db, k->table, (struct how){false, false});
        between_calls = race.calls > at;
        if (!between_calls)
            race.status = other(own, k->db, k->table, (struct how){false, false});
        if (status != HF_OK)
            CHECK_STATUS(HF_INVALID, status);
        CHECK_STATUS(status == HF_OK ? HF_INVALID : HF_OK, race.status);
        CHECK_INT(1, count_items(k));
        CHECK_OK(
            (status == HF_OK ? one : other)(k->scope, k->db, k->table, (struct how){true, false}));
        drop_table(k);
    }
}

KIT_TEST_TX(kind, an_event_store_and_another_are_opened_at_once)
{
    struct hf_scope *own = hf_scope_new(test_env(k->t));

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        open_both(k, own, &others[i], others[i].open, open_events);
        open_both(k, own, &others[i], open_events, others[i].open);
    }
    hf_scope_free(own);
}

/* ---- nor does do-once (5) (7) --------------------------------------------------------------- */

static enum hf_status open_once_there(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                      struct how how)
{
    struct hf_once_table *onces;
    enum hf_status status =
        hf_once_table_open(s, db,
                           HF_OPTIONS(hf_once_table_options, .table = table, .no_threads = true,
                                      .hash_attribute = HF_STR("pk"),
                                      .sort_attribute = HF_STR("sk"), .no_create = how.no_create,
                                      .adopt = how.adopt),
                           &onces);

    hf_once_table_close(onces);
    return status;
}

KIT_TEST_TX(kind, do_once_and_another_are_opened_at_once)
{
    struct hf_scope *own = hf_scope_new(test_env(k->t));

    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        open_both(k, own, &others[i], others[i].open, open_once_there);
        open_both(k, own, &others[i], open_once_there, others[i].open);
        if (others[i].open == open_records_there) /* whose index takes real time */
            continue;
        open_both(k, own, NULL, others[i].open, open_once_there);
        open_both(k, own, NULL, open_once_there, others[i].open);
    }
    hf_scope_free(own);
}

/* Where there are no transactions there is no event store, and all others open. */
KIT_TEST(kind, no_transactions_are_needed_for_marks)
{
    for (size_t i = 0; i < ARRAY_LEN(others); i++) {
        struct between b = between_of(k->db);

        b.no_transactions = true;
        CHECK_OK(others[i].open(k->scope, &b.db, k->table, (struct how){false, false}));
        CHECK_INT(0, b.calls[HF_OP_TRANSACT_WRITE_ITEMS]);
        CHECK_INT(1, count_items(k));
        drop_table(k);
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { OPENERS = 8, THREAD_ROUNDS = 6 };

struct opener {
    struct hf_db *db;
    struct hf_str table;
    open_fn *open;
    pthread_barrier_t *begin;
    enum hf_status status;
    char error[200];
};

static void *open_it(void *user)
{
    struct opener *o = user;
    struct hf_scope *s = hf_scope_new(NULL);

    pthread_barrier_wait(o->begin);
    o->status = o->open(s, o->db, o->table, (struct how){false, false});
    snprintf(o->error, sizeof(o->error), "%s", hf_scope_error_text(s));
    hf_scope_free(s);
    return NULL;
}

/* Even ones open the one, odd ones the other. How many of each could. */
static void open_by_threads(struct hf_scope *s, struct hf_db *db, open_fn *one, open_fn *other,
                            int could[2])
{
    struct hf_scan scan = {.table = HF_STR("table"), .consistent = HF_YES};
    struct opener openers[OPENERS];
    pthread_t threads[OPENERS];
    struct hf_scan_result items;
    pthread_barrier_t begin;

    could[0] = could[1] = 0;
    CHECK_INT(0, pthread_barrier_init(&begin, NULL, OPENERS));
    for (size_t i = 0; i < OPENERS; i++) {
        openers[i] = (struct opener){.db = db,
                                     .table = HF_STR("table"),
                                     .open = i % 2 ? other : one,
                                     .begin = &begin};
        CHECK_INT(0, pthread_create(&threads[i], NULL, open_it, &openers[i]));
    }
    for (size_t i = 0; i < OPENERS; i++) {
        CHECK_INT(0, pthread_join(threads[i], NULL));
        if (openers[i].status == HF_OK)
            could[i % 2]++;
        else if (openers[i].status != HF_INVALID)
            fail_msg("%s", openers[i].error);
    }
    pthread_barrier_destroy(&begin);
    CHECK_OK(hf_scan(s, db, &scan, &items));
    CHECK_INT(1, items.items_len);
    CHECK_OK(hf_delete_table(s, db, &(struct hf_delete_table){.table = HF_STR("table")}, NULL));
    CHECK_OK(hf_table_wait(s, db, HF_STR("table"), HF_TABLE_UNTIL_GONE, NULL));
}

/* (3) */
TEST(kind_threads, all_open_the_same)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    int could[2];

    (void)t;
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int round = 0; round < THREAD_ROUNDS; round++) {
            open_by_threads(s, db, cases[i].open, cases[i].open, could);
            CHECK_INT(OPENERS, could[0] + could[1]);
            hf_scope_reset(s);
        }
    hf_db_close(db);
    hf_scope_free(s);
}

/* (3): two that share a table. */
TEST(kind_threads, two_patterns_open_one_table)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    int could[2];

    (void)t;
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    for (int round = 0; round < THREAD_ROUNDS; round++) {
        open_by_threads(s, db, open_partitions, open_counters, could);
        CHECK_INT(OPENERS, could[0] + could[1]);
        hf_scope_reset(s);
    }
    hf_db_close(db);
    hf_scope_free(s);
}

/* (5): the others are refused, all of them. */
TEST(kind_threads, those_that_share_with_nobody)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    int could[2];

    (void)t;
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    for (int round = 0; round < 4 * THREAD_ROUNDS; round++) {
        open_by_threads(s, db, round % 2 ? open_values_there : open_outbox,
                        round % 4 < 2 ? open_events : open_once_there, could);
        CHECK((could[0] == OPENERS / 2 && could[1] == 0) ||
              (could[0] == 0 && could[1] == OPENERS / 2));
        hf_scope_reset(s);
    }
    hf_db_close(db);
    hf_scope_free(s);
}
