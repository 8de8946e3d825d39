/*
 * coord/kind_test.c: tables of ours are known by their marks, and those of others are refused
 * and stay as they are. (n) is a number of kind.c.
 */
#include <holdfast/keys.h>
#include <holdfast/prefix.h>

#include <stdlib.h>
#include <string.h>

#include "../db/between.h"
#include "kind_kit.h"

static bool has_mark(struct kit *k, const struct kind_case *c, struct hf_item *mark)
{
    struct hf_get_item get = {.table = k->table,
                              .key = key_of(k->scope, c, c->mark_hash, c->mark_range),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    *mark = got.item;
    return got.item.ptr != NULL;
}

/* ---- tables of others ----------------------------------------------------------------------- */

/* (1) */
KIT_TEST(kind, a_table_with_items_of_others_is_refused_and_untouched)
{
    struct hf_scope *s = k->scope;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kind_case *c = &cases[i];
        const struct hf_attr more[] = {HF_S("colour", HF_STR("blue")), HF_N("weight", 7)};
        struct hf_put_item put = {.table = k->table};
        struct hf_item mark;

        if (!make_bare(k, c))
            continue;
        put.item = hf_item_with(s, key_of(s, c, "x", "y"), more, 2);
        CHECK_OK(hf_put_item(s, k->db, &put, NULL));
        for (int no_create = 0; no_create < 2; no_create++) {
            CHECK_STATUS(HF_INVALID, c->open(s, k->db, k->table, (struct how){no_create, false}));
            CHECK(strstr(hf_scope_error_text(s),
                         hf_scope_format(s, "table %.*s is not %s: it has items (one has ",
                                         HF_FMT(k->table), c->what)
                             .ptr));
            CHECK(strstr(hf_scope_error_text(s), "colour"));
            CHECK(strstr(hf_scope_error_text(s), "`adopt`"));
            CHECK_INT(1, count_items(k));
        }
        CHECK_OK(c->open(s, k->db, k->table, (struct how){false, true}));
        CHECK(has_mark(k, c, &mark));
        CHECK_INT(2, count_items(k));
        CHECK_OK(c->open(s, k->db, k->table, (struct how){true, false}));
        drop_table(k);
    }
}

/* What a refused open must not change: whether items expire, the stream, the indexes. */
static struct hf_str state_of(struct kit *k)
{
    struct hf_describe_time_to_live ask = {.table = k->table};
    struct hf_describe_time_to_live_result ttl;
    struct hf_describe_table_result described;

    CHECK_OK(hf_describe_time_to_live(k->scope, k->db, &ask, &ttl));
    CHECK_OK(hf_describe_table(k->scope, k->db, &(struct hf_describe_table){.table = k->table},
                               &described));
    return hf_scope_format(k->scope, "%d %.*s %d %zu", (int)ttl.description->status,
                           HF_FMT(ttl.description->attribute), described.table->stream_arn.len > 0,
                           described.table->global_indexes_len);
}

static enum hf_status open_with_stream(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                       struct how how)
{
    struct hf_outbox *outbox;
    enum hf_status status =
        hf_outbox_open(s, db,
                       HF_OPTIONS(hf_outbox_options, .table = table, .stream = true,
                                  .no_create = how.no_create, .adopt = how.adopt),
                       &outbox);

    hf_outbox_close(outbox);
    return status;
}

/* (1): nothing is written, and nothing is switched on. `c` says which keys the table has. */
static void check_unchanged(struct kit *k, const struct kind_case *c, open_fn *open)
{
    struct hf_attribute_definition attributes[] = {{hf_str_from(c->hash), HF_SCALAR_S},
                                                   {HF_STR(""), HF_SCALAR_S}};
    struct hf_key_element keys[] = {{hf_str_from(c->hash), HF_KEY_HASH},
                                    {HF_STR(""), HF_KEY_RANGE}};
    struct hf_create_table spec = {.table = k->table,
                                   .attributes = attributes,
                                   .attributes_len = c->range ? 2 : 1,
                                   .key_schema = keys,
                                   .key_schema_len = c->range ? 2 : 1};
    struct hf_put_item put = {.table = k->table, .item = key_of(k->scope, c, "x", "y")};
    struct hf_str before;

    if (c->range)
        attributes[1].name = keys[1].name = hf_str_from(c->range);
    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    before = state_of(k);
    CHECK_STATUS(HF_INVALID, open(k->scope, k->db, k->table, (struct how){false, false}));
    CHECK(strstr(hf_scope_error_text(k->scope), "it has items"));
    CHECK_STR(before.ptr, state_of(k));
    CHECK_INT(1, count_items(k));
    if (open != open_records) /* whose index takes real time */
        CHECK_OK(open(k->scope, k->db, k->table, (struct how){false, true})); /* adopted */
    drop_table(k);
}

KIT_TEST(kind, a_table_of_others_is_not_changed)
{
    if (getenv("HF_KIT_URL")) /* not all have all of it */
        return;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_unchanged(k, &cases[i], cases[i].open);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        if (cases[i].open == open_outbox)
            check_unchanged(k, &cases[i], open_with_stream);
}

/* Nor is one of ours that is another's. */
KIT_TEST_TX(kind, a_table_of_another_pattern_is_not_changed)
{
    struct hf_str before;

    if (getenv("HF_KIT_URL"))
        return;
    CHECK_OK(open_events(k->scope, k->db, k->table, (struct how){false, false}));
    before = state_of(k);
    for (int adopt = 0; adopt < 2; adopt++) {
        CHECK_STATUS(HF_INVALID,
                     open_with_stream(k->scope, k->db, k->table, (struct how){false, adopt}));
        CHECK(strstr(hf_scope_error_text(k->scope), "is not an outbox: it is an event store"));
        CHECK_STR(before.ptr, state_of(k));
    }
}

/* (1): made by others for us, empty. */
KIT_TEST(kind, an_empty_table_gets_the_mark)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_item mark;

        for (int no_create = 0; no_create < 2; no_create++) {
            if (!make_bare(k, &cases[i]))
                break;
            CHECK_OK(cases[i].open(k->scope, k->db, k->table, (struct how){no_create, false}));
            CHECK(has_mark(k, &cases[i], &mark));
            CHECK_INT(1, count_items(k));
            drop_table(k);
        }
    }
}

/* A table that is not there is not made, and the error names it. */
KIT_TEST(kind, no_create_makes_nothing)
{
    struct hf_describe_table describe = {.table = k->table};
    struct hf_describe_table_result described;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int adopt = 0; adopt < 2; adopt++) {
            enum hf_status status =
                cases[i].open(k->scope, k->db, k->table, (struct how){true, adopt});

            if (status == HF_UNSUPPORTED)
                continue;
            CHECK_STATUS(HF_NOT_FOUND, status);
            CHECK(strstr(hf_scope_error_text(k->scope),
                         hf_scope_format(k->scope, "%.*s", HF_FMT(k->table)).ptr));
            CHECK_STATUS(HF_NOT_FOUND, hf_describe_table(k->scope, k->db, &describe, &described));
        }
}

static void close_nothing(struct hf_db *db)
{
    (void)db;
}

/* Behind a prefix the table has its mark as any other; the name without the prefix is another one.
 */
KIT_TEST(kind, behind_a_prefix)
{
    struct hf_describe_table describe = {.table = {NULL, 0}};
    struct hf_describe_table_result described;
    struct hf_str whole = k->table, rest;
    struct between b = between_of(k->db);
    struct db_calls calls = *b.db.calls;
    struct hf_item mark;
    struct hf_db *db;

    calls.close = close_nothing; /* a prefix closes what is below it */
    b.db.calls = &calls;
    rest = hf_str_of(whole.ptr + 4, whole.len - 4); /* "kit." is the prefix */
    describe.table = rest;
    CHECK_OK(hf_prefix_open(k->scope, &b.db, hf_str_of(whole.ptr, 4), &db));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum hf_status status = cases[i].open(k->scope, db, rest, (struct how){false, false});

        if (status == HF_UNSUPPORTED)
            continue;
        CHECK_OK(status);
        CHECK(has_mark(k, &cases[i], &mark));
        CHECK_INT(1, count_items(k));
        CHECK_STATUS(HF_NOT_FOUND, hf_describe_table(k->scope, k->db, &describe, &described));
        CHECK_OK(cases[i].open(k->scope, db, rest, (struct how){true, false}));
        CHECK_OK(cases[i].open(k->scope, k->db, whole, (struct how){true, false}));
        drop_table(k);
    }
    hf_db_close(db);
}

/* The item that is where the mark would be is another's. */
KIT_TEST(kind, an_item_in_the_place_of_the_mark)
{
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kind_case *c = &cases[i];
        struct hf_attr other = HF_S("colour", HF_STR("blue"));
        struct hf_put_item put = {.table = k->table};
        enum hf_status status;

        if (!make_bare(k, c))
            continue;
        put.item =
            hf_item_with(k->scope, key_of(k->scope, c, c->mark_hash, c->mark_range), &other, 1);
        CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
        status = c->open(k->scope, k->db, k->table, (struct how){false, false});
        CHECK(status == HF_INVALID || status == HF_CORRUPT);
        CHECK(strstr(hf_scope_error_text(k->scope), "table "));
        CHECK_INT(1, count_items(k));
        drop_table(k);
    }
}

/* The table of another library of the same purpose: the same default name, keys and time to live.
 */
KIT_TEST(kind, an_outbox_of_another_library)
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
                              .item = HF_ITEM(k->scope, HF_S("pk", HF_STR("orders")),
                                              HF_S("sk", HF_STR("0001#a")),
                                              HF_S("messageId", HF_STR("a")),
                                              HF_BOOL("isPublished", false),
                                              HF_S("payload", HF_STR("{}")))};

    CHECK_OK(hf_table_ensure(k->scope, k->db, &spec, NULL));
    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    for (int no_create = 0; no_create < 2; no_create++)
        CHECK_STATUS(HF_INVALID,
                     open_outbox(k->scope, k->db, k->table, (struct how){no_create, false}));
    CHECK(strstr(hf_scope_error_text(k->scope), "isPublished"));
    CHECK_INT(1, count_items(k));
}

/* ---- tables of ours ------------------------------------------------------------------------- */

/* Counters of another library under other keys: ours never begin at 0 beside them. */
KIT_TEST(kind, no_counter_begins_beside_those_of_another_library)
{
    const struct hf_attribute_definition attribute = {HF_STR("key"), HF_SCALAR_S};
    const struct hf_key_element key = {HF_STR("key"), HF_KEY_HASH};
    const struct hf_create_table spec = {.table = k->table,
                                         .attributes = &attribute,
                                         .attributes_len = 1,
                                         .key_schema = &key,
                                         .key_schema_len = 1};
    struct hf_counters_options *o = HF_OPTIONS(hf_counters_options, .table = k->table);
    struct hf_scope *s = k->scope;
    struct hf_counters *counters;
    struct hf_kv *kv;

    CHECK_OK(hf_table_ensure(s, k->db, &spec, NULL));
    CHECK_OK(hf_put_item(s, k->db,
                         &(struct hf_put_item){.table = k->table,
                                               .item = HF_ITEM(s, HF_S("key", HF_STR("global.n")),
                                                               HF_N("count", 42))},
                         NULL));
    for (int adopt = 0; adopt < 2; adopt++) {
        o->adopt = adopt;
        CHECK_STATUS(HF_INVALID, hf_counters_open(s, k->db, o, &counters));
        CHECK(strstr(hf_scope_error_text(s), "holdfast counter import --from"));
    }
    CHECK_OK(
        hf_kv_open(s, k->db,
                   HF_OPTIONS(hf_kv_options, .table = k->table, .adopt = true, .any_ttl = true),
                   &kv));
    hf_kv_close(kv);
    o->adopt = false;
    CHECK_STATUS(HF_INVALID, hf_counters_open(s, k->db, o, &counters));
    CHECK(strstr(hf_scope_error_text(s), "would begin at 0"));
}

KIT_TEST(kind, a_newer_format_is_refused_with_both_numbers)
{
    struct hf_scope *s = k->scope;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kind_case *c = &cases[i];
        struct hf_update_item update = {
            .table = k->table,
            .key = key_of(s, c, c->mark_hash, c->mark_range),
            .update = c->format ? HF_STR("SET #a = :n") : HF_STR("SET #a.#b = :n"),
            .names = c->format ? HF_ITEM(s, HF_S("#a", hf_str_from(c->format)))
                               : HF_ITEM(s, HF_S("#a", HF_STR("holdfast")),
                                         HF_S("#b", hf_str_from(c->name))),
            .values = HF_ITEM(s, HF_N(":n", 7))};
        enum hf_status status = c->open(s, k->db, k->table, (struct how){false, false});

        if (status == HF_UNSUPPORTED)
            continue;
        CHECK_OK(status);
        CHECK_OK(hf_update_item(s, k->db, &update, NULL));
        for (int adopt = 0; adopt < 2; adopt++) {
            CHECK_STATUS(HF_FORMAT, c->open(s, k->db, k->table, (struct how){false, adopt}));
            CHECK(
                strstr(hf_scope_error_text(s),
                       hf_scope_format(s,
                                       "is %s in format 7, and this version of holdfast "
                                       "knows formats up to %d",
                                       c->what,
                                       hf_str_equal(hf_str_from(c->name), HF_STR("values")) ? 3 : 1)
                           .ptr));
        }
        drop_table(k);
    }
}

KIT_TEST_TX(kind, an_outbox_and_an_event_store_are_two_tables)
{
    CHECK_OK(open_events(k->scope, k->db, k->table, (struct how){false, false}));
    CHECK_STATUS(HF_INVALID, open_outbox(k->scope, k->db, k->table, (struct how){false, true}));
    CHECK(strstr(hf_scope_error_text(k->scope), "is not an outbox: it is an event store"));
    CHECK_INT(1, count_items(k));
    drop_table(k);
    CHECK_OK(open_outbox(k->scope, k->db, k->table, (struct how){false, false}));
    CHECK_STATUS(HF_INVALID, open_events(k->scope, k->db, k->table, (struct how){false, true}));
    CHECK(strstr(hf_scope_error_text(k->scope), "is not an event store: it is an outbox"));
    CHECK_INT(1, count_items(k));
}

/* (3): patterns with the same keys share a table, whoever comes first. */
KIT_TEST(kind, patterns_share_a_table)
{
    struct hf_scope *s = k->scope;
    struct hf_item mark;
    struct hf_keys keys;

    CHECK_OK(open_counters(s, k->db, k->table, (struct how){false, false}));
    CHECK_OK(open_partitions(s, k->db, k->table, (struct how){false, false}));
    CHECK_OK(open_counters(s, k->db, k->table, (struct how){false, false}));
    CHECK(has_mark(k, &cases[4], &mark));
    CHECK_INT(2, hf_item_count(hf_value_item(hf_item_get(mark, HF_STR("holdfast")))));
    CHECK_INT(1, count_items(k));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_keys_open(s, k->db, HF_OPTIONS(hf_keys_options, .table = k->other), &keys));
        CHECK_OK(hf_keys_set_value(s, &keys, hf_kv_in(HF_STR("p"), HF_STR("s"), HF_STR("k")),
                                   hf_value_make(s, (struct hf_attr)HF_N("", 1))));
        hf_keys_close(&keys);
    }
}

/* (7): a lock and a limit of one name would be one item. */
KIT_TEST(kind, locks_and_limits_share_no_table)
{
    static const struct {
        open_fn *first, *second;
        const char *error;
    } orders[] = {{open_locks, open_limits, "is not a table of limits: it is a table of locks"},
                  {open_limits, open_locks, "is not a table of locks: it is a table of limits"}};
    struct hf_update_item both = {.table = k->table,
                                  .update = HF_STR("SET #marks.#locks = :one"),
                                  .names = HF_ITEM(k->scope, HF_S("#marks", HF_STR("holdfast")),
                                                   HF_S("#locks", HF_STR("locks"))),
                                  .values = HF_ITEM(k->scope, HF_N(":one", 1))};

    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        CHECK_OK(orders[i].first(k->scope, k->db, k->table, (struct how){false, false}));
        for (int adopt = 0; adopt < 2; adopt++) {
            CHECK_STATUS(HF_INVALID,
                         orders[i].second(k->scope, k->db, k->table, (struct how){false, adopt}));
            CHECK(strstr(hf_scope_error_text(k->scope), orders[i].error));
        }
        CHECK_INT(1, count_items(k));
        if (!i)
            drop_table(k);
    }
    /* One that has both marks from before is opened as both. */
    both.key = key_of(k->scope, &cases[0], "holdfast:table", NULL);
    CHECK_OK(hf_update_item(k->scope, k->db, &both, NULL));
    for (size_t i = 0; i < ARRAY_LEN(orders); i++)
        CHECK_OK(orders[i].first(k->scope, k->db, k->table, (struct how){false, false}));
}

/* (2) */
KIT_TEST(kind, no_user_has_the_key_of_a_mark)
{
    struct hf_scope *s = k->scope;
    const struct hf_limit_rule rule = {.kind = HF_LIMIT_FIXED, .limit = 1, .window_ms = 1000};
    struct hf_lock_table *locks;
    struct hf_limit_verdict verdict;
    struct hf_limit_table *limits;
    struct hf_once_table *onces;
    struct hf_once_record record;
    struct hf_lock_list list;
    struct hf_lock *lock;
    struct hf_once *once;

    CHECK_OK(
        hf_lock_table_open(s, k->db,
                           HF_OPTIONS(hf_lock_table_options, .table = k->table, .no_threads = true),
                           &locks));
    CHECK_OK(hf_limit_table_open(s, k->db, HF_OPTIONS(hf_limit_table_options, .table = k->other),
                                 &limits));
    CHECK_STATUS(HF_INVALID,
                 hf_limit_take(s, limits, HF_STR("holdfast:table"), &rule, NULL, &verdict));
    hf_limit_table_close(limits);
    CHECK_OK(hf_delete_table(s, k->db, &(struct hf_delete_table){.table = k->other}, NULL));
    CHECK_OK(hf_table_wait(s, k->db, k->other, HF_TABLE_UNTIL_GONE, NULL));
    CHECK_OK(
        hf_once_table_open(s, k->db,
                           HF_OPTIONS(hf_once_table_options, .table = k->other, .no_threads = true),
                           &onces));
    CHECK_STATUS(HF_INVALID, hf_lock_try(s, locks, HF_STR("holdfast:table"), NULL, &lock));
    CHECK_STATUS(HF_INVALID, hf_once_try(s, onces, HF_STR("holdfast:table"), HF_STR("k"), NULL,
                                         &once, &record));
    CHECK_OK(hf_lock_try(s, locks, HF_STR("job"), NULL, &lock));
    CHECK_OK(hf_lock_list(s, locks, HF_OPTIONS(hf_lock_list_options, .free_too = true), &list));
    CHECK_INT(1, list.locks_len);
    CHECK_OK(hf_lock_release(s, lock));
    hf_once_table_close(onces);
    hf_lock_table_close(locks);
}

/* ---- several at once ------------------------------------------------------------------------ */

static struct opened_between {
    struct hf_str table;
    const struct kind_case *same;
    int at, reads; /* the read after which the table is opened by somebody else, and reads so far */
} meanwhile;

static enum hf_status open_meanwhile(struct hf_scope *s, struct between *b, enum hf_op op,
                                     const void *request, void *response)
{
    enum hf_status status = between_pass(s, b, op, request, response);

    if ((op == HF_OP_GET_ITEM || op == HF_OP_SCAN) && meanwhile.reads++ == meanwhile.at)
        CHECK_OK(
            meanwhile.same->open(b->own, b->inner, meanwhile.table, (struct how){false, false}));
    return status;
}

/* (3): whoever opens the same pattern between our looks at an empty table does not make it
 * another's; after each look. */
KIT_TEST(kind, the_same_is_opened_by_another_meanwhile)
{
    struct hf_scope *own = hf_scope_new(test_env(k->t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int at = 0; at < 4; at++) {
            struct between b = between_of(k->db);

            b.on_call = open_meanwhile;
            b.own = own;
            meanwhile = (struct opened_between){k->table, &cases[i], at, 0};
            if (!make_bare(k, &cases[i]))
                continue;
            CHECK_OK(cases[i].open(k->scope, &b.db, k->table, (struct how){false, false}));
            CHECK(meanwhile.reads > 0);
            CHECK_INT(1, count_items(k));
            drop_table(k);
        }
    hf_scope_free(own);
}

/* ---- what it costs -------------------------------------------------------------------------- */

static enum hf_status deny_scans(struct hf_scope *s, struct between *b, enum hf_op op,
                                 const void *request, void *response)
{
    if (op == HF_OP_SCAN)
        return hf_scope_fail(s, HF_DENIED, "User is not authorized to perform: dynamodb:Scan");
    return between_pass(s, b, op, request, response);
}

/* (4): a policy that allows no Scan is enough. Not on others' databases: they count items late. */
KIT_TEST(kind, nobody_needs_to_scan)
{
    if (getenv("HF_KIT_URL"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct kind_case *c = &cases[i];
        struct between b = between_of(k->db);
        struct hf_put_item put = {.table = k->table};
        struct hf_item mark;

        b.on_call = deny_scans;
        if (!make_bare(k, c))
            continue;
        CHECK_OK(c->open(k->scope, &b.db, k->table, (struct how){false, false}));
        CHECK(has_mark(k, c, &mark));
        drop_table(k);
        CHECK(make_bare(k, c));
        put.item = key_of(k->scope, c, "x", "y");
        CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
        CHECK_STATUS(HF_INVALID, c->open(k->scope, &b.db, k->table, (struct how){false, false}));
        CHECK(strstr(hf_scope_error_text(k->scope), "it has items (1 of them)"));
        drop_table(k);
    }
}

/* (1): a table that is known costs one read more than to look whether it is there. */
KIT_TEST(kind, a_marked_table_is_opened_with_one_read)
{
    if (getenv("HF_KIT_URL"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct between b = between_of(k->db);

        if (cases[i].open(k->scope, k->db, k->table, (struct how){false, false}) == HF_UNSUPPORTED)
            continue;
        CHECK_OK(cases[i].open(k->scope, &b.db, k->table, (struct how){false, false}));
        CHECK_INT(1, b.calls[HF_OP_GET_ITEM]);
        CHECK_INT(b.all_calls, b.calls[HF_OP_GET_ITEM] + b.calls[HF_OP_DESCRIBE_TABLE] +
                                   b.calls[HF_OP_DESCRIBE_TIME_TO_LIVE]);
        drop_table(k);
    }
}
