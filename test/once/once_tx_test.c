/*
 * once/once_tx_test.c: do-once in transactions; marking, clearing, listing; limits. On every kind of
 * database, by a virtual clock.
 */
#include "once_stage.h"

/* ---- transactions --------------------------------------------------------------------------- */

static struct hf_put_item row(struct kit *k, const char *id)
{
    return (struct hf_put_item){.table = k->table,
                                .item = HF_ITEM(k->scope, HF_S("user", HF_STR("-rows")),
                                                HF_S("key", hf_str_from(id))),
                                .condition = HF_STR("attribute_not_exists(#k)"),
                                .names = HF_ITEM(k->scope, HF_S("#k", HF_STR("key")))};
}

static bool row_there(struct kit *k, const char *id)
{
    struct hf_get_item get = {.table = k->table, .key = row(k, id).item, .consistent = HF_YES};
    struct hf_get_item_result result;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &result));
    return result.item.ptr != NULL;
}

KIT_TEST(once, completion_is_part_of_a_transaction)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_put_item first = row(k, "1"), second = row(k, "2");
    struct hf_transact_write actions[2] = {{.put = &first}, {.put = &second}};
    struct hf_once *once = begun(k, ann, NULL);

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) { /* the attempt can go on without */
        CHECK_STATUS(HF_UNSUPPORTED, hf_once_commit(k->scope, once, says(k, "x"), actions, 2));
        CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
        CHECK_OK(hf_once_finish(k->scope, once, says(k, "y")));
        hf_once_close(once);
        check_done(k, ann, "y");
        CHECK(!row_there(k, "1"));
        hf_once_table_close(ann);
        return;
    }
    CHECK_OK(hf_once_commit(k->scope, once, says(k, "x"), actions, 2));
    hf_once_close(once);
    check_done(k, ann, "x");
    CHECK(row_there(k, "1") && row_there(k, "2"));

    /* An action that cannot be done: nothing is, and the attempt goes on. */
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    once = begun(k, ann, NULL);
    first = row(k, "3");
    CHECK_STATUS(HF_TX_CANCELED, hf_once_commit(k->scope, once, says(k, "y"), actions, 2));
    CHECK_INT(3, hf_scope_error(k->scope)->reasons_len);
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);
    CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
    CHECK(!row_there(k, "3"));
    CHECK_OK(hf_once_commit(k->scope, once, says(k, "z"), actions, 1));
    CHECK(row_there(k, "3"));
    hf_once_close(once);
    check_done(k, ann, "z");
    hf_once_table_close(ann);
}

KIT_TEST_TX(once, completion_is_added_to_a_transaction)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_put_item first = row(k, "1");
    struct hf_once *once = begun(k, ann, NULL);
    struct hf_tx *tx;

    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_OK(hf_tx_add(k->scope, tx, &(struct hf_transact_write){.put = &first}));
    CHECK_OK(hf_once_finish_into(k->scope, once, tx, says(k, "x")));
    CHECK_INT(2, hf_tx_len(tx));
    CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
    CHECK_OK(hf_tx_commit(k->scope, tx, NULL));
    hf_once_close(once); /* it knows that it was finished, so it gives nothing up */
    check_done(k, ann, "x");
    CHECK(row_there(k, "1"));

    /* Lost: nothing is done. */
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    once = begun(k, ann, NULL);
    first = row(k, "2");
    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_OK(hf_tx_add(k->scope, tx, &(struct hf_transact_write){.put = &first}));
    CHECK_OK(hf_once_finish_into(k->scope, once, tx, says(k, "y")));
    CHECK_OK(hf_once_mark_done(k->scope, ann, USER, KEY, NULL, says(k, "m"), NULL));
    CHECK_STATUS(HF_TX_CANCELED, hf_tx_commit(k->scope, tx, NULL));
    CHECK_STR("ConditionalCheckFailed", hf_scope_error(k->scope)->reasons[1].code);
    CHECK(!row_there(k, "2"));
    hf_once_close(once);
    check_done(k, ann, "m");
    hf_once_table_close(ann);
}

KIT_TEST_TX(once, a_lost_attempt_commits_nothing)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_put_item first = row(k, "1");
    struct hf_transact_write actions[2] = {{.put = &first}};
    struct hf_once *once = begun(k, ann, NULL);

    CHECK_OK(hf_once_finish_tx(k->scope, once, says(k, "x"), &actions[1]));
    CHECK_OK(hf_once_mark_done(k->scope, ann, USER, KEY, NULL, says(k, "m"), NULL));
    CHECK_STATUS(HF_TX_CANCELED,
                 hf_transact_write_items(k->scope, k->db,
                                         &(struct hf_transact_write_items){.actions = actions,
                                                                           .actions_len = 2},
                                         NULL));
    CHECK_STATUS(HF_LOST, hf_once_commit(k->scope, once, says(k, "x"), actions, 1));
    CHECK(!row_there(k, "1"));
    hf_once_close(once);
    check_done(k, ann, "m");
    hf_once_table_close(ann);
}

KIT_TEST_TX(once, a_transaction_of_the_caller_completes)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_put_item first = row(k, "1");
    struct hf_transact_write actions[2] = {{.put = &first}};
    struct hf_transact_write_items tx = {.actions = actions, .actions_len = 2};
    struct hf_once *once = begun(k, ann, NULL);

    CHECK_OK(hf_once_finish_tx(k->scope, once, says(k, "x"), &actions[1]));
    CHECK_OK(hf_transact_write_items(k->scope, k->db, &tx, NULL));
    hf_once_committed(once);
    hf_once_close(once);
    check_done(k, ann, "x");
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));

    /* Given up: what arrives later is refused. */
    once = begun(k, ann, NULL);
    first = row(k, "2");
    CHECK_OK(hf_once_finish_tx(k->scope, once, says(k, "y"), &actions[1]));
    hf_once_close(once);
    CHECK_STATUS(HF_TX_CANCELED, hf_transact_write_items(k->scope, k->db, &tx, NULL));
    CHECK(!row_there(k, "2"));
    CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    hf_once_table_close(ann);
}

KIT_TEST(once, a_transaction_is_done_once)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once_record record;
    struct hf_once *once;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        CHECK_STATUS(HF_UNSUPPORTED, hf_once_transact(k->scope, ann, USER, KEY, NULL, says(k, "x"),
                                                      NULL, 0, &record));
        CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
        hf_once_table_close(ann);
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        struct hf_put_item first = row(k, i ? "1" : "0");
        struct hf_transact_write action = {.put = &first};

        kit_fault(k, kinds[i], "TransactWriteItems", 1);
        CHECK_OK(hf_once_transact(k->scope, ann, USER, KEY, payload("p"), says(k, "x"), &action, 1,
                                  &record));
        CHECK(record.did);
        CHECK(row_there(k, i ? "1" : "0"));
        test_advance_ms(k->t, 5000);
        CHECK_OK(hf_once_transact(k->scope, ann, USER, KEY, payload("p"), says(k, "y"), &action, 1,
                                  &record));
        CHECK(!record.did);
        check_says("x", record.result);
        CHECK_STATUS(HF_TOKEN_MISMATCH, hf_once_transact(k->scope, ann, USER, KEY, payload("q"),
                                                         says(k, "y"), &action, 1, &record));
        CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
        CHECK_STATUS(HF_TX_CANCELED, hf_once_transact(k->scope, ann, USER, KEY, NULL, says(k, "y"),
                                                      &action, 1, &record));
        CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    }
    once = begun(k, ann, NULL);
    CHECK_STATUS(HF_LOCKED,
                 hf_once_transact(k->scope, ann, USER, KEY, NULL, says(k, "y"), NULL, 0, &record));
    hf_once_close(once);
    hf_once_table_close(ann);
}

/* ---- marking, clearing, listing ------------------------------------------------------------- */

KIT_TEST(once, marking_is_for_the_first)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once_record record;
    struct hf_once *once;
    int64_t at_us;

    CHECK_OK(hf_once_mark_done(k->scope, ann, USER, KEY, NULL, says(k, "by hand"), &record));
    CHECK(record.did);
    CHECK_INT(0, record.tries);
    at_us = record.at_us;
    CHECK_INT(k->t->wall_us / 1000 * 1000, at_us);
    test_advance_ms(k->t, 1000);
    CHECK_OK(hf_once_mark_done(k->scope, ben, USER, KEY, NULL, says(k, "again"), &record));
    CHECK(!record.did);
    CHECK_INT(at_us, record.at_us);
    CHECK_STR("ann", record.owner);
    check_says("by hand", record.result);
    check_done(k, ben, "by hand");
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));

    /* Over one that runs, which has lost then. */
    once = begun(k, ann, NULL);
    CHECK_OK(hf_once_mark_done(k->scope, ben, USER, KEY, NULL, says(k, "over"), &record));
    CHECK(record.did);
    CHECK_STATUS(HF_LOST, hf_once_renew(k->scope, once));
    CHECK(hf_once_lost(once));
    CHECK_STATUS(HF_LOST, hf_once_finish(k->scope, once, says(k, "late")));
    hf_once_close(once);
    check_done(k, ann, "over");
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

KIT_TEST(once, a_cleared_key_can_be_done_again)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct deed d = {.k = k, .says = "hello"};
    struct hf_once_record record;
    struct hf_once *once;
    bool cleared = true;

    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, &cleared));
    CHECK(!cleared);
    for (int i = 1; i <= 3; i++) {
        CHECK_OK(hf_once_do(k->scope, ann, USER, KEY, NULL, deed, &d, &record));
        CHECK(record.did);
        CHECK_INT(i, d.count);
        CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, &cleared));
        CHECK(cleared);
    }
    once = begun(k, ann, NULL);
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, &cleared));
    CHECK(cleared);
    CHECK_STATUS(HF_LOST, hf_once_finish(k->scope, once, says(k, "late")));
    hf_once_close(once);
    CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    hf_once_table_close(ann);
}

KIT_TEST(once, all_of_a_user_in_the_order_of_keys)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once_list list;
    struct hf_str after = {0};
    int seen = 0;

    for (int i = 0; i < 12; i++)
        CHECK_OK(hf_once_mark_done(k->scope, ann, USER, hf_scope_format(k->scope, "k%02d", i),
                                   HF_OPTIONS(hf_once_options, .keep_s = i == 5 ? 1 : 0),
                                   (struct hf_item){0}, NULL));
    CHECK_OK(hf_once_mark_done(k->scope, ann, USER, HF_STR("x"), NULL, says(k, "x"), NULL));
    CHECK_OK(hf_once_mark_done(k->scope, ann, HF_STR("ben"), KEY, NULL, says(k, "x"), NULL));
    test_advance_ms(k->t, 1000); /* the sixth is forgotten */
    CHECK_OK(hf_once_list(k->scope, ann, USER, NULL, &list));
    CHECK_INT(12, list.records_len);
    CHECK_STR("x", list.records[11].key);
    check_says("x", list.records[11].result);
    CHECK(!list.next.ptr);
    do {
        CHECK_OK(hf_once_list(k->scope, ann, USER,
                              HF_OPTIONS(hf_once_list_options, .prefix = HF_STR("k"), .limit = 4,
                                         .after = after),
                              &list));
        CHECK(list.records_len <= 4);
        for (size_t i = 0; i < list.records_len; i++, seen++) {
            char expected[16];

            snprintf(expected, sizeof(expected), "k%02d", seen < 5 ? seen : seen + 1);
            CHECK_STR(expected, list.records[i].key);
        }
        after = list.next;
    } while (after.ptr);
    CHECK_INT(11, seen);
    CHECK_OK(hf_once_list(k->scope, ann, HF_STR("nobody"), NULL, &list));
    CHECK_INT(0, list.records_len);
    hf_once_table_close(ann);
}

/* ---- limits --------------------------------------------------------------------------------- */

static struct hf_str long_text(struct kit *k, size_t len)
{
    char *text = hf_scope_alloc(k->scope, len);

    memset(text, 'x', len);
    return hf_str_of(text, len);
}

KIT_TEST(once, names_at_their_limits_and_past_them)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_str user = long_text(k, HF_ONCE_USER_MAX + 1);
    struct hf_str key = long_text(k, HF_ONCE_KEY_MAX + 1);
    struct hf_once_record record;
    struct hf_once *once;

    user.len--;
    key.len--;
    CHECK_OK(hf_once_try(k->scope, ann, user, key, NULL, &once, &record));
    CHECK_OK(hf_once_finish(k->scope, once,
                            HF_ITEM(k->scope, HF_S("r", long_text(k, HF_ONCE_RESULT_MAX - 1)))));
    hf_once_close(once);
    CHECK_OK(hf_once_get(k->scope, ann, user, key, &record));
    CHECK_INT(HF_ONCE_DONE, record.state);
    CHECK_INT(HF_ONCE_RESULT_MAX, hf_item_size(record.result));
    user.len++;
    CHECK_STATUS(HF_INVALID, hf_once_try(k->scope, ann, user, key, NULL, &once, &record));
    CHECK(!once);
    user.len--;
    key.len++;
    CHECK_STATUS(HF_INVALID, hf_once_get(k->scope, ann, user, key, &record));
    CHECK_STATUS(HF_INVALID, hf_once_try(k->scope, ann, HF_STR(""), KEY, NULL, &once, &record));
    CHECK_STATUS(HF_INVALID, hf_once_clear(k->scope, ann, USER, HF_STR(""), NULL));
    CHECK_ERROR(HF_INVALID, "a do-once record needs a user and a key", k->scope);
    CHECK_STATUS(HF_INVALID,
                 hf_once_try(k->scope, ann, USER, KEY,
                             HF_OPTIONS(hf_once_options, .timeout_ms = 99, .heartbeat_ms = 50),
                             &once, &record));
    CHECK_ERROR(HF_INVALID,
                "once ann/welcome: a heartbeat of 50 ms is more than half of a timeout of 99 ms",
                k->scope);
    hf_once_table_close(ann);
}

static enum hf_status large_deed(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                 void *user)
{
    (void)once;
    *result = HF_ITEM(s, HF_S("r", long_text(user, HF_ONCE_RESULT_MAX)));
    return HF_OK;
}

/* What was done is not done again because its result is too large. */
KIT_TEST(once, a_result_past_its_limit)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once *once = begun(k, ann, NULL);
    struct hf_once_record record;

    CHECK_STATUS(HF_INVALID,
                 hf_once_finish(k->scope, once,
                                HF_ITEM(k->scope, HF_S("r", long_text(k, HF_ONCE_RESULT_MAX)))));
    CHECK_ERROR(HF_INVALID, "once ann/welcome: a result of 400001 bytes is larger than 400000",
                k->scope);
    CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
    CHECK_STATUS(HF_INVALID,
                 hf_once_commit(k->scope, once, says(k, "x"),
                                (struct hf_transact_write[HF_ONCE_ACTIONS_MAX + 1]){{0}},
                                HF_ONCE_ACTIONS_MAX + 1));
    CHECK_ERROR(HF_INVALID, "once ann/welcome: 100 actions are more than 99", k->scope);
    hf_once_close(once);
    CHECK_STATUS(HF_INVALID, hf_once_do(k->scope, ann, USER, KEY, NULL, large_deed, k, &record));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    CHECK_ERROR(HF_INVALID,
                "once ann/welcome: a result of 400001 bytes is larger than 400000; it was recorded "
                "as done without one",
                k->scope);
    CHECK_INT(HF_ONCE_DONE, got(k, ann).state);
    hf_once_table_close(ann);
}

KIT_TEST(once, an_item_that_is_no_record)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(k->scope, HF_S("user", USER), HF_S("key", KEY),
                                              HF_S("state", HF_STR("odd")))};
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_once_try(k->scope, ann, USER, KEY, NULL, &once, &record));
    CHECK(!once);
    CHECK_STATUS(HF_CORRUPT, hf_once_get(k->scope, ann, USER, KEY, &record));
    CHECK_ERROR(HF_CORRUPT,
                hf_scope_format(k->scope, "item ann/welcome of table %.*s is not a do-once record",
                                HF_FMT(k->table))
                    .ptr,
                k->scope);
    CHECK_STATUS(HF_CORRUPT, hf_once_clear(k->scope, ann, USER, KEY, NULL));
    hf_once_table_close(ann);
}

static enum hf_status plain_deed(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                 void *user)
{
    (void)once;
    ++*(int *)user;
    *result = HF_ITEM(s, HF_S("says", HF_STR("x")));
    return hf_item_check(s, *result);
}

/* Any allocation may fail: then it is said, nothing leaks, nothing is left running, and what was
 * said to be done is. */
TEST(once, any_allocation_may_fail)
{
    struct hf_scope *outer = hf_scope_new(NULL);
    struct hf_once_table *sound;
    struct hf_db *db;

    CHECK_OK(hf_open(outer, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    CHECK_OK(hf_once_table_open(outer, db, HF_OPTIONS(hf_once_table_options, .no_threads = true),
                                &sound));
    ALLOC_SWEEP (t, nth) {
        struct hf_str key = hf_scope_format(outer, "k%lld", (long long)nth);
        struct hf_once_options o = {.size = sizeof(o),
                                    .payload = hf_bytes_of("p", 1),
                                    .keep_s = 1000000000};
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_once_table *onces = NULL;
        struct hf_once_record record = {0};
        enum hf_status status = HF_NOMEM;
        int count = 0;

        if (s)
            status =
                hf_once_table_open(s, db, HF_OPTIONS(hf_once_table_options, .no_threads = true),
                                   &onces);
        if (status == HF_OK)
            status = hf_once_do(s, onces, USER, key, &o, plain_deed, &count, &record);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        if (onces)
            (void)onces_step(onces);
        CHECK_OK(hf_once_get(outer, sound, USER, key, &record));
        CHECK(record.state == HF_ONCE_NONE || record.state == HF_ONCE_DONE);
        CHECK(status != HF_OK || record.state == HF_ONCE_DONE);
        CHECK(record.state != HF_ONCE_DONE || count == 1);
        hf_once_table_close(onces);
        hf_scope_free(s);
    }
    hf_once_table_close(sound);
    hf_db_close(db);
    hf_scope_free(outer);
}

/* ---- looks at the same time ----------------------------------------------------------------- */

/*
 * The moment between reading the clock and taking the mutex of the table: in it the attempt is
 * renewed, and another thread looks. What that one has seen is newer than the time that was read.
 */
static struct {
    struct hf_env env;           /* the system's */
    struct hf_once_table *onces; /* NULL: nothing happens */
    struct hf_once *running;
    struct hf_scope *s;
    int looks;
    bool inside;
} meanwhile;

static int64_t clock_of_who_is_late(void *user)
{
    int64_t now_us = meanwhile.env.elapsed_us(user);
    struct hf_once_record record;
    struct hf_once *once;

    if (!meanwhile.onces || meanwhile.inside || pthread_mutex_trylock(&meanwhile.onces->mutex) != 0)
        return now_us;
    pthread_mutex_unlock(&meanwhile.onces->mutex);
    meanwhile.inside = true;
    meanwhile.looks++;
    CHECK_OK(hf_scope_sleep_ms(meanwhile.s, 2));
    CHECK_OK(hf_once_renew(meanwhile.s, meanwhile.running));
    CHECK_STATUS(HF_LOCKED,
                 hf_once_try(meanwhile.s, meanwhile.onces, USER, KEY, NULL, &once, &record));
    meanwhile.inside = false;
    return now_us;
}

TEST(once, a_look_that_is_late_does_not_meet_a_newer_one)
{
    struct hf_scope *s = hf_scope_new(NULL), *late;
    struct hf_env env = *hf_scope_env(s);
    struct hf_once_table *onces, *ours;
    struct hf_once_record record;
    struct hf_once *running, *once;
    struct hf_db *db;

    meanwhile.env = env;
    env.elapsed_us = clock_of_who_is_late;
    late = hf_scope_new(&env);
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    CHECK_OK(hf_once_table_open(s, db, NULL, &ours));
    CHECK_OK(hf_once_table_open(late, db, HF_OPTIONS(hf_once_table_options, .no_threads = true),
                                &onces));
    CHECK_OK(hf_once_try(s, ours, USER, KEY, NULL, &running, &record));
    meanwhile.s = hf_scope_new(NULL);
    meanwhile.running = running;
    meanwhile.onces = onces;
    CHECK_STATUS(HF_LOCKED, hf_once_try(late, onces, USER, KEY, NULL, &once, &record));
    meanwhile.onces = NULL;
    CHECK(meanwhile.looks > 0);
    CHECK_OK(hf_once_finish(s, running, (struct hf_item){0}));
    hf_once_close(running);
    hf_once_table_close(onces);
    hf_once_table_close(ours);
    hf_db_close(db);
    hf_scope_free(meanwhile.s);
    hf_scope_free(late);
    hf_scope_free(s);
}
