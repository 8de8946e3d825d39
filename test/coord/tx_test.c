/*
 * coord/tx_test.c: transactions that are put together step by step, on every kind of database.
 * (n) is an invariant of coord/tx.c.
 */
#include <holdfast/engine.h>
#include <holdfast/tx.h>

#include <stdio.h>
#include <string.h>

#include "../db/between.h"
#include "kit.h"

/* The thread sanitizer cannot follow who holds more than 64 locks, as 100 items are. */
#ifdef __has_feature
#define MANY_LOCKS (!__has_feature(thread_sanitizer))
#else
#define MANY_LOCKS true
#endif

#define TEST_TRY(expr)                                                                             \
    do {                                                                                           \
        enum hf_status try_status_ = (expr);                                                       \
        if (try_status_ != HF_OK)                                                                  \
            return try_status_;                                                                    \
    } while (0)

/* ---- helpers -------------------------------------------------------------------------------- */

/* A counter is what shows how often something happened. */
static enum hf_status add_one(struct hf_scope *s, struct hf_tx *tx, struct hf_str table,
                              const char *id)
{
    struct hf_update_item update = {.table = table,
                                    .key = HF_ITEM(s, HF_S("id", hf_str_from(id))),
                                    .update = HF_STR("ADD n :one"),
                                    .values = HF_ITEM(s, HF_N(":one", 1))};

    return hf_tx_add(s, tx, &(struct hf_transact_write){.update = &update});
}

static enum hf_status put_new(struct hf_scope *s, struct hf_tx *tx, struct hf_str table,
                              const char *id)
{
    struct hf_put_item put = {.table = table,
                              .item = HF_ITEM(s, HF_S("id", hf_str_from(id)), HF_N("n", 1)),
                              .condition = HF_STR("attribute_not_exists(id)")};

    return hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put});
}

/* What the counter shows; -1: there is none. */
static int64_t count_of(struct kit *k, struct hf_str table, const char *id)
{
    struct hf_get_item get = {.table = table,
                              .key = HF_ITEM(k->scope, HF_S("id", hf_str_from(id))),
                              .consistent = HF_YES};
    struct hf_get_item_result got;
    int64_t n = 0;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
    if (!got.item.ptr)
        return -1;
    CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("n")), &n));
    return n;
}

static bool begin(struct kit *k)
{
    kit_make_table(k, k->table);
    return kit_has(k, HF_FEATURE_TRANSACTIONS);
}

static struct hf_tx *made(struct kit *k)
{
    struct hf_tx *tx;

    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    return tx;
}

/* Who was told of the commit, in order. */
struct told {
    char names[32];
    size_t len;
};

struct teller {
    struct told *told;
    char name;
};

static void tell(void *user)
{
    struct teller *teller = user;

    CHECK(teller->told->len < sizeof(teller->told->names) - 1);
    teller->told->names[teller->told->len++] = teller->name;
}

/* ---- putting it together -------------------------------------------------------------------- */

KIT_TEST(tx, what_was_added_happens_together)
{
    struct hf_scope *s = k->scope;
    struct hf_update_item raise = {.table = k->table,
                                   .update = HF_STR("ADD n :one"),
                                   .values = HF_ITEM(s, HF_N(":one", 1))};
    struct hf_condition_check check = {.table = k->table,
                                       .key = HF_ITEM(s, HF_S("id", HF_STR("nobody"))),
                                       .condition = HF_STR("attribute_not_exists(id)")};
    struct hf_delete_item del = {.table = k->table, .key = HF_ITEM(s, HF_S("id", HF_STR("old")))};
    struct hf_tx *tx;

    if (!begin(k))
        return;
    tx = made(k);
    CHECK_OK(put_new(s, tx, k->table, "old"));
    CHECK_OK(hf_tx_commit(s, tx, NULL));

    tx = made(k);
    CHECK(hf_tx_db(tx) == k->db);
    CHECK_INT(0, hf_tx_len(tx));
    CHECK_INT(100, hf_tx_room(tx));
    for (int i = 0; i < 7; i++) { /* the request is copied: one struct does for all of them */
        raise.key = HF_ITEM(s, HF_S("id", hf_scope_format(s, "c%d", i)));
        CHECK_OK(hf_tx_add(s, tx, &(struct hf_transact_write){.update = &raise}));
    }
    memset(&raise, 0x5a, sizeof(raise));
    CHECK_OK(hf_tx_add(s, tx, &(struct hf_transact_write){.check = &check}));
    memset(&check, 0x5a, sizeof(check));
    CHECK_OK(hf_tx_add(s, tx, &(struct hf_transact_write){.del = &del}));
    memset(&del, 0x5a, sizeof(del));
    CHECK_OK(put_new(s, tx, k->table, "new"));
    CHECK_INT(10, hf_tx_len(tx));
    CHECK_INT(90, hf_tx_room(tx));
    CHECK_INT(-1, count_of(k, k->table, "new")); /* nothing is sent before */
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    for (int i = 0; i < 7; i++)
        CHECK_INT(1, count_of(k, k->table, hf_scope_format(s, "c%d", i).ptr));
    CHECK_INT(-1, count_of(k, k->table, "old"));
    CHECK_INT(1, count_of(k, k->table, "new"));
}

KIT_TEST(tx, a_hundred_actions_and_not_one_more)
{
    struct hf_scope *s = k->scope;
    struct hf_tx *tx;

    if (!begin(k))
        return;
    tx = made(k);
    for (int i = 0; i < HF_TX_ACTIONS_MAX; i++)
        CHECK_OK(add_one(s, tx, k->table, hf_scope_format(s, "%d", i).ptr));
    CHECK_INT(0, hf_tx_room(tx));
    CHECK_STATUS(HF_LIMIT, add_one(s, tx, k->table, "one too many"));
    CHECK_ERROR(HF_LIMIT, "a transaction has at most 100 actions", s);
    CHECK_INT(100, hf_tx_len(tx));
    if (!MANY_LOCKS)
        return;
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    for (int i = 0; i < HF_TX_ACTIONS_MAX; i += 33)
        CHECK_INT(1, count_of(k, k->table, hf_scope_format(s, "%d", i).ptr));
    CHECK_INT(-1, count_of(k, k->table, "one too many"));
}

KIT_TEST(tx, what_makes_no_sense_is_told)
{
    struct hf_scope *s = k->scope;
    struct hf_put_item put = {.table = k->table};
    struct hf_delete_item del = {.table = k->table};
    struct told told = {0};
    struct teller a = {&told, 'a'};
    struct hf_tx *tx;

    CHECK_STATUS(HF_INVALID, hf_tx_new(s, NULL, &tx));
    CHECK(!tx);
    (void)begin(k);
    tx = made(k);
    CHECK_STATUS(HF_INVALID, hf_tx_add(s, tx, &(struct hf_transact_write){.put = NULL}));
    CHECK_STATUS(HF_INVALID,
                 hf_tx_add(s, tx, &(struct hf_transact_write){.put = &put, .del = &del}));
    CHECK_INT(0, hf_tx_len(tx));
    CHECK_OK(add_one(s, tx, k->table, "a"));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_STATUS(HF_INVALID, hf_tx_commit(s, tx, NULL));
    CHECK_STATUS(HF_INVALID, add_one(s, tx, k->table, "a"));
    CHECK_STATUS(HF_INVALID, hf_tx_on_commit(s, tx, tell, &a));
    CHECK_INT(1, count_of(k, k->table, "a"));
    CHECK_INT(0, told.len);
}

TEST(tx, nothing_is_sent_when_there_is_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct told told = {0};
    struct teller a = {&told, 'a'};
    struct between b = between_of(NULL); /* nobody behind it */
    struct hf_tx *tx;

    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(hf_tx_on_commit(s, tx, tell, &a));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_STR("a", hf_str_of(told.names, told.len));
    CHECK_INT(0, b.all_calls);
    hf_scope_free(s);
}

/* ---- letting it happen ---------------------------------------------------------------------- */

/* (2) */
KIT_TEST(tx, who_waits_is_told_in_order_once_and_only_of_success)
{
    struct hf_scope *s = k->scope;
    struct told told = {0};
    struct teller a = {&told, 'a'}, b = {&told, 'b'}, c = {&told, 'c'};
    struct hf_tx *tx;

    if (!begin(k))
        return;
    tx = made(k);
    CHECK_OK(hf_tx_on_commit(s, tx, tell, &a));
    CHECK_OK(put_new(s, tx, k->table, "x"));
    CHECK_OK(hf_tx_on_commit(s, tx, tell, &b));
    CHECK_OK(hf_tx_on_commit(s, tx, tell, &c));
    kit_fault(k, HF_FAULT_THROTTLE, "TransactWriteItems", 0);
    CHECK_STATUS(HF_THROTTLED, hf_tx_commit(s, tx, NULL));
    CHECK(!hf_scope_error(s)->may_have_happened);
    kit_no_faults(k);
    CHECK_INT(0, told.len);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 2);
    CHECK_OK(hf_tx_commit(s, tx, NULL)); /* and again, after a failure */
    kit_no_faults(k);
    CHECK_STR("abc", hf_str_of(told.names, told.len));

    tx = made(k);
    CHECK_OK(hf_tx_on_commit(s, tx, tell, &a));
    CHECK_OK(put_new(s, tx, k->table, "x"));
    CHECK_OK(add_one(s, tx, k->table, "y"));
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_commit(s, tx, NULL));
    CHECK_INT(2, hf_scope_error(s)->reasons_len);
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(s)->reasons[0].code);
    CHECK_STR("None", hf_scope_error(s)->reasons[1].code);
    CHECK(!hf_scope_error(s)->may_have_happened);
    CHECK_INT(-1, count_of(k, k->table, "y"));
    CHECK_INT(3, told.len);
}

/* (1) A commit survives lost answers by itself, and what is too bad even for that can be committed
 * again. */
KIT_TEST(tx, lost_answers_do_not_let_it_happen_twice_or_never)
{
    const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_scope *s = k->scope;

    if (!begin(k))
        return;
    for (int kind = 0; kind < 2; kind++)
        for (uint32_t count = 1; count <= 4; count++) {
            const char *id = hf_scope_format(s, "%d-%u", kind, count).ptr;
            struct hf_tx *tx = made(k);

            CHECK_OK(add_one(s, tx, k->table, id));
            CHECK_OK(put_new(s, tx, k->table, hf_scope_format(s, "%s-new", id).ptr));
            kit_fault(k, kinds[kind], "TransactWriteItems", count);
            CHECK_OK(hf_tx_commit(s, tx, NULL));
            kit_no_faults(k);
            CHECK_INT(1, count_of(k, k->table, id));
        }
    for (int kind = 0; kind < 2; kind++) {
        const char *id = kind ? "request" : "answer";
        struct hf_tx *tx = made(k);

        CHECK_OK(add_one(s, tx, k->table, id));
        CHECK_OK(put_new(s, tx, k->table, hf_scope_format(s, "%s-new", id).ptr));
        kit_fault(k, kinds[kind], "TransactWriteItems", 0);
        CHECK(hf_tx_commit(s, tx, NULL) != HF_OK);
        CHECK(hf_scope_error(s)->may_have_happened);
        kit_fault(k, HF_FAULT_THROTTLE, "TransactWriteItems", 0);
        CHECK_STATUS(HF_THROTTLED, hf_tx_commit(s, tx, NULL));
        CHECK(hf_scope_error(s)->may_have_happened); /* (4) */
        kit_no_faults(k);
        CHECK_STATUS(HF_INVALID,
                     hf_tx_commit(s, tx, HF_OPTIONS(hf_tx_options, .token = HF_STR("another"))));
        CHECK(hf_scope_error(s)->may_have_happened);
        CHECK_OK(hf_tx_commit(s, tx, NULL));
        CHECK_INT(1, count_of(k, k->table, id));
    }
}

/* (4): the deadline ends it in doubt, not with a plain failure. */
KIT_TEST(tx, a_deadline_among_lost_answers_leaves_a_doubt)
{
    struct hf_scope *s = kit_scope(k);
    struct hf_tx *tx;

    if (!begin(k))
        return;
    CHECK_OK(hf_tx_new(s, k->db, &tx));
    CHECK_OK(add_one(s, tx, k->table, "a"));
    CHECK_OK(add_one(s, tx, k->table, "b"));
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 0);
    hf_scope_timeout_ms(s, 5);
    CHECK_STATUS(HF_TIMEOUT, hf_tx_commit(s, tx, NULL));
    CHECK(hf_scope_error(s)->may_have_happened);
    kit_no_faults(k);
    hf_scope_timeout_ms(s, 0);
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_INT(1, count_of(k, k->table, "a"));
}

KIT_TEST(tx, a_token_makes_one_of_two_transactions)
{
    struct hf_tx_options *token = HF_OPTIONS(hf_tx_options, .token = HF_STR("order-17"));
    struct hf_scope *s = k->scope;
    struct hf_tx *tx;

    if (!begin(k))
        return;
    for (int i = 0; i < 2; i++) {
        tx = made(k);
        CHECK_OK(add_one(s, tx, k->table, "a"));
        CHECK_OK(hf_tx_commit(s, tx, token));
    }
    CHECK_INT(1, count_of(k, k->table, "a"));
    tx = made(k);
    CHECK_OK(add_one(s, tx, k->table, "b"));
    CHECK_STATUS(HF_TOKEN_MISMATCH, hf_tx_commit(s, tx, token));
    CHECK(!hf_scope_error(s)->may_have_happened);
    CHECK_INT(-1, count_of(k, k->table, "b"));
    for (int i = 0; i < 2; i++) { /* and without one, they are two */
        tx = made(k);
        CHECK_OK(add_one(s, tx, k->table, "c"));
        CHECK_OK(hf_tx_commit(s, tx, NULL));
    }
    CHECK_INT(2, count_of(k, k->table, "c"));
}

/* ---- where there are no transactions -------------------------------------------------------- */

KIT_TEST(tx, one_write_needs_no_transactions)
{
    struct between b = between_of(k->db);
    struct hf_scope *s = k->scope;
    struct hf_delete_item del = {.table = k->table, .key = HF_ITEM(s, HF_S("id", HF_STR("a")))};
    struct hf_condition_check check = {.table = k->table,
                                       .key = del.key,
                                       .condition = HF_STR("attribute_exists(id)")};
    struct hf_tx *tx;

    (void)begin(k);
    b.no_transactions = true;
    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(put_new(s, tx, k->table, "a"));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(add_one(s, tx, k->table, "a"));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_INT(2, count_of(k, k->table, "a"));
    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(put_new(s, tx, k->table, "a"));
    CHECK_STATUS(HF_CONDITION, hf_tx_commit(s, tx, NULL));
    CHECK(!hf_scope_error(s)->may_have_happened);
    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(hf_tx_add(s, tx, &(struct hf_transact_write){.del = &del}));
    CHECK_STATUS(HF_UNSUPPORTED,
                 hf_tx_commit(s, tx, HF_OPTIONS(hf_tx_options, .token = HF_STR("t"))));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_INT(-1, count_of(k, k->table, "a"));

    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(hf_tx_add(s, tx, &(struct hf_transact_write){.check = &check}));
    CHECK_STATUS(HF_UNSUPPORTED, hf_tx_commit(s, tx, NULL));
    CHECK_OK(hf_tx_new(s, &b.db, &tx));
    CHECK_OK(add_one(s, tx, k->table, "a"));
    CHECK_OK(add_one(s, tx, k->table, "b"));
    CHECK_STATUS(HF_UNSUPPORTED, hf_tx_commit(s, tx, NULL));
    CHECK_ERROR(HF_UNSUPPORTED,
                "this database has no transactions, so 2 actions cannot be committed together", s);
    CHECK_INT(-1, count_of(k, k->table, "a"));
    CHECK_INT(0, b.calls[HF_OP_TRANSACT_WRITE_ITEMS]);
}

/* An update that is sent twice counts twice, so it is sent once, and the doubt is told. */
KIT_TEST(tx, without_transactions_a_lost_answer_is_told_and_not_repeated)
{
    const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_scope *s = k->scope;

    (void)begin(k);
    for (int kind = 0; kind < 2; kind++) {
        struct between b = between_of(k->db);
        const char *id = kind ? "request" : "answer";
        struct told told = {0};
        struct teller a = {&told, 'a'};
        struct hf_tx *tx;

        b.no_transactions = true;
        CHECK_OK(hf_tx_new(s, &b.db, &tx));
        CHECK_OK(put_new(s, tx, k->table, id));
        CHECK_OK(hf_tx_on_commit(s, tx, tell, &a));
        kit_fault(k, kinds[kind], "PutItem", 1);
        CHECK(hf_tx_commit(s, tx, NULL) != HF_OK);
        CHECK(hf_scope_error(s)->may_have_happened);
        kit_no_faults(k);
        CHECK_INT(1, b.all_calls);
        CHECK_INT(kind ? -1 : 1, count_of(k, k->table, id));
        CHECK_INT(0, told.len);
        if (kind) {
            CHECK_OK(hf_tx_commit(s, tx, NULL));
            CHECK_INT(1, told.len);
        } else { /* refused by its own doing, perhaps: that is for the caller to find out (4) */
            CHECK_STATUS(HF_CONDITION, hf_tx_commit(s, tx, NULL));
            CHECK(hf_scope_error(s)->may_have_happened);
        }
    }
}

/* ---- hf_tx_run() ---------------------------------------------------------------------------- */

struct builder {
    struct kit *k;
    int built;
    enum hf_status fails;   /* in the end, without a word */
    const char *id;         /* a new item */
    const char *count;      /* and one that is counted up; NULL: "count" */
    struct builder *inner;  /* in a transaction of its own */
    struct hf_db *inner_db; /* of it; NULL: the same */
    bool ignore_inner;      /* go on when it fails */
    struct told told;
    struct teller teller;
};

static enum hf_status build(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct builder *b = user;

    b->built++;
    CHECK(hf_scope_tx(s) == tx);
    if (hf_tx_add(s, tx, &(struct hf_transact_write){0}) != HF_INVALID)
        return HF_INTERNAL;
    b->teller = (struct teller){&b->told, '!'};
    if (add_one(s, tx, b->k->table, b->count ? b->count : "count") != HF_OK ||
        hf_tx_on_commit(s, tx, tell, &b->teller) != HF_OK ||
        put_new(s, tx, b->k->table, b->id) != HF_OK)
        return hf_scope_error(s)->status;
    return b->fails;
}

KIT_TEST(tx, a_run_commits_what_was_built_or_nothing)
{
    struct builder b = {.k = k, .id = "a"};

    if (!begin(k))
        return;
    CHECK_OK(hf_tx_run(k->scope, k->db, build, &b, NULL));
    CHECK(!hf_scope_tx(k->scope));
    CHECK_INT(1, b.told.len);
    CHECK_INT(1, count_of(k, k->table, "a"));
    CHECK_INT(1, count_of(k, k->table, "count"));
    b = (struct builder){.k = k, .id = "b", .fails = HF_DENIED};
    CHECK_STATUS(HF_DENIED, hf_tx_run(k->scope, k->db, build, &b, NULL));
    CHECK(!hf_scope_tx(k->scope));
    CHECK_INT(0, b.told.len);
    CHECK_INT(1, b.built);
    CHECK_INT(-1, count_of(k, k->table, "b"));
}

/* (3) */
KIT_TEST(tx, a_conflict_lets_it_be_built_anew)
{
    struct hf_scope *s = k->scope;
    struct builder b = {.k = k, .id = "a"};

    if (!begin(k))
        return;
    kit_fault(k, HF_FAULT_CONFLICT, "TransactWriteItems", 4);
    CHECK_OK(hf_tx_run(s, k->db, build, &b, NULL));
    CHECK_INT(5, b.built);
    CHECK_INT(1, b.told.len);
    CHECK_INT(1, count_of(k, k->table, "count"));
    b = (struct builder){.k = k, .id = "b"};
    kit_fault(k, HF_FAULT_CONFLICT, "TransactWriteItems", 5);
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_run(s, k->db, build, &b, NULL));
    CHECK_STR("TransactionConflict", hf_scope_error(s)->reasons[0].code);
    CHECK_INT(5, b.built);
    CHECK_INT(0, b.told.len);
    b.built = 0;
    kit_fault(k, HF_FAULT_CONFLICT, "TransactWriteItems", 40);
    CHECK_OK(hf_tx_run(s, k->db, build, &b, HF_OPTIONS(hf_tx_options, .max_attempts = 41)));
    CHECK_INT(41, b.built);
    kit_no_faults(k);
    b.built = 0; /* there already: that is no conflict */
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_run(s, k->db, build, &b, NULL));
    CHECK_INT(1, b.built);
}

static enum hf_status build_and_fail_anew(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct builder *b = user;

    if (b->built++ > 0)
        return HF_NOT_FOUND; /* without a word: the scope has the conflict's error still */
    return put_new(s, tx, b->k->table, b->id);
}

KIT_TEST(tx, an_older_error_in_the_scope_is_not_taken_for_this_one)
{
    struct builder b = {.k = k, .id = "a"};

    if (!begin(k))
        return;
    kit_fault(k, HF_FAULT_CONFLICT, "TransactWriteItems", 1);
    CHECK_STATUS(HF_NOT_FOUND, hf_tx_run(k->scope, k->db, build_and_fail_anew, &b, NULL));
    CHECK_INT(2, b.built);
}

/* (3) (4): the conflict may be with its own former self. */
KIT_TEST(tx, nothing_is_built_anew_once_it_may_have_happened)
{
    const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_scope *s = k->scope;

    if (!begin(k))
        return;
    for (int kind = 0; kind < 2; kind++) {
        struct hf_fault faults[] = {
            {.kind = kinds[kind], .operation = HF_STR("TransactWriteItems"), .count = 1},
            {.kind = HF_FAULT_CONFLICT, .operation = HF_STR("TransactWriteItems"), .count = 2},
        };
        struct builder b = {.k = k, .id = kind ? "a" : "b", .count = kind ? "na" : "nb"};

        CHECK_OK(hf_faulty_set(s, k->db, faults, 2));
        CHECK_OK(hf_tx_run(s, k->db, build, &b, NULL));
        CHECK_INT(1, b.built);
        CHECK_INT(1, b.told.len);
        CHECK_INT(1, count_of(k, k->table, b.count));
        b = (struct builder){.k = k, .id = kind ? "c" : "d"};
        faults[1].count = 0;
        CHECK_OK(hf_faulty_set(s, k->db, faults, 2));
        CHECK_STATUS(HF_TX_CANCELED, hf_tx_run(s, k->db, build, &b, NULL));
        CHECK(hf_scope_error(s)->may_have_happened);
        CHECK_INT(1, b.built);
        kit_no_faults(k);
    }
}

static enum hf_status outer_and_inner(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct builder *b = user;
    enum hf_status status;

    TEST_TRY(put_new(s, tx, b->k->table, "outer"));
    status = hf_tx_run(s, b->inner_db ? b->inner_db : b->k->db, build, b->inner, NULL);
    CHECK(hf_scope_tx(s) == tx);
    CHECK(b->inner_db || status != HF_OK || count_of(b->k, b->k->table, b->inner->id) == -1);
    if (status != HF_OK && !b->ignore_inner)
        return status;
    TEST_TRY(put_new(s, tx, b->k->table, "outer too"));
    return b->fails;
}

/* (5) */
KIT_TEST(tx, a_run_inside_of_another_is_part_of_it)
{
    struct builder inner = {.k = k, .id = "inner"};
    struct builder outer = {.k = k, .inner = &inner};
    struct hf_scope *s = k->scope;

    if (!begin(k))
        return;
    outer.fails = HF_DENIED;
    CHECK_STATUS(HF_DENIED, hf_tx_run(s, k->db, outer_and_inner, &outer, NULL));
    CHECK_INT(-1, count_of(k, k->table, "outer"));
    CHECK_INT(-1, count_of(k, k->table, "inner"));
    CHECK_INT(0, inner.told.len);

    outer.fails = HF_OK;
    inner.fails = HF_DENIED; /* after it has added all it has */
    CHECK_STATUS(HF_DENIED, hf_tx_run(s, k->db, outer_and_inner, &outer, NULL));
    CHECK_INT(-1, count_of(k, k->table, "outer"));

    outer.ignore_inner = true;
    CHECK_OK(hf_tx_run(s, k->db, outer_and_inner, &outer, NULL));
    CHECK_INT(1, count_of(k, k->table, "outer"));
    CHECK_INT(1, count_of(k, k->table, "outer too"));
    CHECK_INT(-1, count_of(k, k->table, "inner"));
    CHECK_INT(-1, count_of(k, k->table, "count"));
    CHECK_INT(0, inner.told.len);
}

KIT_TEST(tx, a_run_inside_of_another_happens_with_it)
{
    struct builder inner = {.k = k, .id = "inner"};
    struct builder outer = {.k = k, .inner = &inner};

    if (!begin(k))
        return;
    CHECK_OK(hf_tx_run(k->scope, k->db, outer_and_inner, &outer, NULL));
    CHECK_INT(1, count_of(k, k->table, "outer"));
    CHECK_INT(1, count_of(k, k->table, "inner"));
    CHECK_INT(1, count_of(k, k->table, "count"));
    CHECK_INT(1, inner.told.len);
    CHECK(!hf_scope_tx(k->scope));
}

KIT_TEST(tx, a_run_on_another_database_is_one_of_its_own)
{
    struct between other = between_of(k->db);
    struct builder inner = {.k = k, .id = "inner"};
    struct builder outer = {.k = k, .inner = &inner, .inner_db = &other.db, .fails = HF_DENIED};

    if (!begin(k))
        return;
    CHECK_STATUS(HF_DENIED, hf_tx_run(k->scope, k->db, outer_and_inner, &outer, NULL));
    CHECK_INT(1, other.calls[HF_OP_TRANSACT_WRITE_ITEMS]);
    CHECK_INT(1, inner.told.len);
    CHECK_INT(1, count_of(k, k->table, "inner"));
    CHECK_INT(-1, count_of(k, k->table, "outer"));
}

/* One that was put together by hand is joined too, when it is made the scope's. */
KIT_TEST(tx, the_transaction_of_the_scope_may_be_made_by_hand)
{
    struct builder b = {.k = k, .id = "a"};
    struct hf_scope *s = k->scope;
    struct hf_tx *tx;

    if (!begin(k))
        return;
    tx = made(k);
    CHECK(!hf_scope_set_tx(s, tx));
    CHECK_OK(hf_tx_run(s, k->db, build, &b, NULL));
    CHECK_INT(2, hf_tx_len(tx));
    CHECK_INT(-1, count_of(k, k->table, "a"));
    CHECK_OK(hf_tx_commit(s, tx, NULL));
    CHECK_INT(1, count_of(k, k->table, "a"));
    CHECK_INT(1, b.told.len);
    b.id = "b"; /* it was committed: another one is needed */
    CHECK_OK(hf_tx_run(s, k->db, build, &b, NULL));
    CHECK_INT(1, count_of(k, k->table, "b"));
    CHECK(hf_scope_set_tx(s, NULL) == tx);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status build_many(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    struct builder *b = user;

    b->teller = (struct teller){&b->told, '!'};
    for (int i = 0; i < 10; i++) {
        struct hf_str id = hf_scope_format(s, "%d", i);

        if (!id.ptr)
            return HF_NOMEM;
        TEST_TRY(add_one(s, tx, b->k->table, id.ptr));
    }
    TEST_TRY(hf_tx_on_commit(s, tx, tell, &b->teller));
    return hf_scope_built(s);
}

TEST(tx, without_memory_all_of_it_happens_or_nothing)
{
    struct kit k = {.t = t, .table = HF_STR("counts"), .scope = hf_scope_new(NULL)};
    int64_t happened = 0;

    CHECK_OK(hf_open(k.scope, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &k.db));
    kit_make_table(&k, k.table);
    ALLOC_SWEEP (t, nth) {
        struct hf_tx_options *token =
            HF_OPTIONS(hf_tx_options, .token = hf_scope_format(k.scope, "t%lld", (long long)nth));
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct builder b = {.k = &k};
        enum hf_status status = s ? hf_tx_run(s, k.db, build_many, &b, token) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        CHECK_INT(status == HF_OK, b.told.len);
        happened += status == HF_OK;
        if (s && status != HF_OK && hf_scope_error(s)->may_have_happened)
            happened = count_of(&k, k.table, "0") < 0 ? 0 : count_of(&k, k.table, "0");
        hf_scope_free(s);
        for (int i = 0; i < 10; i++)
            CHECK_INT(happened ? happened : -1,
                      count_of(&k, k.table, hf_scope_format(k.scope, "%d", i).ptr));
    }
    CHECK_INT(1, happened);
    hf_db_close(k.db);
    hf_scope_free(k.scope);
}
