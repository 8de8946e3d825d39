/*
 * limit/limit_test.c: limits, one feature at a time, on every kind of database, by a virtual
 * clock. (n) is an invariant of limit/limit_item.c.
 */
#include <holdfast/engine.h>
#include <holdfast/limit.h>

#include <stdio.h>

#include "kit.h"

#define NAME HF_STR("login/ann")

static struct hf_limit_table *table_of(struct kit *k)
{
    struct hf_limit_table *limits;

    CHECK_OK(hf_limit_table_open(k->scope, k->db,
                                 HF_OPTIONS(hf_limit_table_options, .table = k->table), &limits));
    return limits;
}

static struct hf_limit_verdict taken(struct kit *k, struct hf_limit_table *limits,
                                     const struct hf_limit_rule *rule)
{
    struct hf_limit_verdict v;

    CHECK_OK(hf_limit_take(k->scope, limits, NAME, rule, NULL, &v));
    CHECK(v.allowed);
    CHECK_INT(0, v.retry_ms);
    CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    return v;
}

static struct hf_limit_verdict denied(struct kit *k, struct hf_limit_table *limits,
                                      const struct hf_limit_rule *rule)
{
    struct hf_limit_verdict v;

    CHECK_STATUS(HF_LIMIT, hf_limit_take(k->scope, limits, NAME, rule, NULL, &v));
    CHECK(!v.allowed);
    CHECK(v.retry_ms > 0);
    return v;
}

static struct hf_limit_verdict peeked(struct kit *k, struct hf_limit_table *limits,
                                      const struct hf_limit_rule *rule)
{
    struct hf_limit_verdict v;

    CHECK_OK(hf_limit_peek(k->scope, limits, NAME, rule, NULL, &v));
    return v;
}

/* ---- attempts, as the seed has them --------------------------------------------------------- */

KIT_TEST(limit, so_many_attempts_in_a_window)
{
    const struct hf_limit_rule three = {.limit = 3, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k), *ben = table_of(k);
    struct hf_limit_verdict v;

    for (int round = 0; round < 3; round++) {
        for (int i = 1; i <= 3; i++) {
            v = taken(k, i % 2 ? ann : ben, &three);
            CHECK_INT(i, v.used);
            CHECK_INT(3 - i, v.left);
            test_advance_ms(k->t, 100);
        }
        v = denied(k, ann, &three);
        CHECK_INT(700, v.retry_ms);
        CHECK_INT(3, v.used);
        CHECK_ERROR(HF_LIMIT, "limit login/ann is reached (3 in 1000 ms); try again in 700 ms",
                    k->scope);
        test_advance_ms(k->t, 699);
        (void)denied(k, ben, &three);
        test_advance_ms(k->t, 1); /* the boundary belongs to the next window */
    }
    CHECK_INT(1, taken(k, ann, &three).used);
    hf_limit_table_close(ann);
    hf_limit_table_close(ben);
}

/* One request for each, once the table has seen the name; a denial is one, too, where it brings the
 * item. */
KIT_TEST(limit, one_request_decides)
{
    uint64_t refusal = kit_refusal_has_item(k) ? 1 : 2;
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};

    for (size_t i = 0; i < 4; i++) {
        const struct hf_limit_rule two = {.kind = kinds[i], .limit = 2, .window_ms = 60000};
        struct hf_limit_table *ann = table_of(k);
        /* Of a rate it is known that there is none left, and so it is read at once. */
        uint64_t calls, denial = kinds[i] == HF_LIMIT_RATE ? 1 : refusal;
        struct hf_limit_verdict v;

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        hf_scope_count_capacity(k->scope, true);
        calls = hf_scope_capacity(k->scope).calls;
        v = taken(k, ann, &two);
        CHECK_INT(1, hf_scope_capacity(k->scope).calls - calls);
        (void)taken(k, ann, &two);
        CHECK_INT(2, hf_scope_capacity(k->scope).calls - calls);
        (void)denied(k, ann, &two);
        CHECK_INT(2 + denial, hf_scope_capacity(k->scope).calls - calls);
        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, &v));
        CHECK_INT(3 + denial, hf_scope_capacity(k->scope).calls - calls);
        hf_limit_table_close(ann);
    }
}

KIT_TEST(limit, context_comes_with_the_first_one)
{
    const struct hf_limit_rule three = {.limit = 3, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k);
    struct hf_limit_verdict v;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(hf_limit_take(k->scope, ann, NAME, &three,
                               HF_OPTIONS(hf_limit_options,
                                          .context = HF_ITEM(k->scope, HF_N("code", 100 + i))),
                               &v));
        CHECK(hf_item_equal(v.context, HF_ITEM(k->scope, HF_N("code", 100))));
    }
    CHECK(hf_item_equal(denied(k, ann, &three).context, HF_ITEM(k->scope, HF_N("code", 100))));
    test_advance_ms(k->t, 1000);
    CHECK(!taken(k, ann, &three).context.ptr); /* another window, without one */
    hf_limit_table_close(ann);
}

KIT_TEST(limit, success_clears)
{
    const struct hf_limit_rule two = {.limit = 2, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k);
    struct hf_limit_verdict old, v;

    old = taken(k, ann, &two);
    v = taken(k, ann, &two);
    CHECK_OK(hf_limit_clear(k->scope, ann, NAME, &v));
    (void)taken(k, ann, &two);
    v = taken(k, ann, &two);
    (void)denied(k, ann, &two);
    CHECK_OK(hf_limit_clear(k->scope, ann, NAME, &old)); /* of a window that is no more */
    (void)denied(k, ann, &two);
    CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL)); /* an operator's */
    CHECK_INT(2, peeked(k, ann, &two).left);
    CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
    CHECK_INT(1, taken(k, ann, &two).used);
    hf_limit_table_close(ann);
}

/* ---- the other kinds ------------------------------------------------------------------------ */

KIT_TEST(limit, fixed_windows_begin_with_the_clock)
{
    const struct hf_limit_rule two = {.kind = HF_LIMIT_FIXED, .limit = 2, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k);

    test_advance_ms(k->t, 1000 - k->t->wall_us / 1000 % 1000 + 900);
    (void)taken(k, ann, &two);
    CHECK_INT(100, taken(k, ann, &two).reset_ms);
    CHECK_INT(100, denied(k, ann, &two).retry_ms);
    test_advance_ms(k->t, 99);
    (void)denied(k, ann, &two);
    test_advance_ms(k->t, 1);
    CHECK_INT(1000, taken(k, ann, &two).reset_ms);
    (void)taken(k, ann, &two);
    (void)denied(k, ann, &two);
    hf_limit_table_close(ann);
}

/* (5): whenever it is looked at, the last window_ms have no more than the limit. */
KIT_TEST(limit, a_sliding_window_slides)
{
    const struct hf_limit_rule rule = {.kind = HF_LIMIT_SLIDING, .limit = 5, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k), *ben = table_of(k);
    int64_t when[1000];
    int len = 0, refused = 0;

    for (int i = 0; i < 300; i++) {
        struct hf_limit_verdict v;
        enum hf_status status = hf_limit_take(k->scope, i % 3 ? ann : ben, NAME, &rule, NULL, &v);
        int64_t now_ms = k->t->wall_us / 1000;

        CHECK(status == HF_OK || status == HF_LIMIT);
        if (status == HF_OK) {
            when[len++] = now_ms;
            CHECK(len <= 5 || when[len - 6] <= now_ms - 1000);
        } else {
            CHECK(v.retry_ms > 0 && v.retry_ms <= 1100);
            refused++;
        }
        test_advance_ms(k->t, (int64_t)test_random_below(k->t, 150));
    }
    CHECK(refused > 20);
    CHECK(len > 60); /* and it does not err by more than a slice */
    hf_limit_table_close(ann);
    hf_limit_table_close(ben);
}

/* What a denial says about when to come again is right: not before, but then. */
KIT_TEST(limit, retry_is_when_it_says)
{
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};
    struct hf_limit_table *ann = table_of(k);

    for (size_t i = 0; i < 4; i++) {
        const struct hf_limit_rule rule = {.kind = kinds[i], .limit = 3, .window_ms = 999};
        struct hf_limit_verdict v;

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        for (int j = 0; j < 20; j++) {
            while (hf_limit_take(k->scope, ann, NAME, &rule, NULL, &v) == HF_OK)
                test_advance_ms(k->t, (int64_t)test_random_below(k->t, 50));
            v = denied(k, ann, &rule);
            CHECK(!peeked(k, ann, &rule).allowed);
            test_advance_ms(k->t, v.retry_ms - 1);
            CHECK_INT(1, denied(k, ann, &rule).retry_ms);
            test_advance_ms(k->t, 1);
            CHECK(peeked(k, ann, &rule).allowed);
            (void)taken(k, ann, &rule);
        }
        test_advance_ms(k->t, peeked(k, ann, &rule).reset_ms);
        CHECK_INT(3, peeked(k, ann, &rule).left);
        CHECK_INT(0, peeked(k, ann, &rule).used);
    }
    hf_limit_table_close(ann);
}

KIT_TEST(limit, a_rate_is_even_behind_its_burst)
{
    const struct hf_limit_rule rule = {.kind = HF_LIMIT_RATE,
                                       .limit = 10,
                                       .window_ms = 1000,
                                       .burst = 3};
    struct hf_limit_table *ann = table_of(k);

    for (int i = 1; i <= 3; i++)
        CHECK_INT(i, taken(k, ann, &rule).used);
    CHECK_INT(100, denied(k, ann, &rule).retry_ms);
    for (int i = 0; i < 20; i++) {
        test_advance_ms(k->t, 99);
        CHECK_INT(1, denied(k, ann, &rule).retry_ms);
        test_advance_ms(k->t, 1);
        CHECK_INT(0, taken(k, ann, &rule).left);
    }
    test_advance_ms(k->t, 250);
    (void)taken(k, ann, &rule);
    (void)taken(k, ann, &rule);
    CHECK_INT(50, denied(k, ann, &rule).retry_ms);
    test_advance_ms(k->t, 100000);
    CHECK_INT(2, taken(k, ann, &rule).left); /* no more than the burst is saved up */
    hf_limit_table_close(ann);
}

KIT_TEST(limit, a_cost_of_many)
{
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};
    struct hf_limit_table *ann = table_of(k);

    for (size_t i = 0; i < 4; i++) {
        const struct hf_limit_rule rule = {.kind = kinds[i], .limit = 10, .window_ms = 600000};
        struct hf_limit_options *seven = HF_OPTIONS(hf_limit_options, .cost = 7);
        struct hf_limit_verdict v;

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        CHECK_OK(hf_limit_take(k->scope, ann, NAME, &rule, seven, &v));
        CHECK_INT(7, v.used);
        CHECK_INT(3, v.left);
        CHECK_STATUS(HF_LIMIT, hf_limit_take(k->scope, ann, NAME, &rule, seven, &v));
        CHECK_OK(
            hf_limit_take(k->scope, ann, NAME, &rule, HF_OPTIONS(hf_limit_options, .cost = 3), &v));
        CHECK_INT(0, v.left);
        (void)denied(k, ann, &rule);
    }
    hf_limit_table_close(ann);
}

/* ---- giving back ---------------------------------------------------------------------------- */

KIT_TEST(limit, a_refund_counts_once)
{
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};
    struct hf_limit_table *ann = table_of(k);

    for (size_t i = 0; i < 4; i++) {
        const struct hf_limit_rule rule = {.kind = kinds[i], .limit = 3, .window_ms = 600000};
        struct hf_limit_verdict first, second, no;

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        first = taken(k, ann, &rule);
        second = taken(k, ann, &rule);
        (void)taken(k, ann, &rule);
        no = denied(k, ann, &rule);
        kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
        CHECK_OK(hf_limit_refund(k->scope, ann, NAME, &rule, &first));
        CHECK_OK(hf_limit_refund(k->scope, ann, NAME, &rule, &first));
        CHECK_INT(1, peeked(k, ann, &rule).left);
        (void)taken(k, ann, &rule);
        CHECK_OK(hf_limit_refund(k->scope, ann, NAME, &rule, &first));
        (void)denied(k, ann, &rule);
        CHECK_STATUS(HF_INVALID, hf_limit_refund(k->scope, ann, NAME, &rule, &no));
        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        CHECK_STATUS(HF_EXPIRED, hf_limit_refund(k->scope, ann, NAME, &rule, &second));
        (void)taken(k, ann, &rule);
        CHECK_STATUS(HF_EXPIRED, hf_limit_refund(k->scope, ann, NAME, &rule, &second));
        CHECK_INT(2, peeked(k, ann, &rule).left);
    }
    hf_limit_table_close(ann);
}

/* At their limit and past it; on memory, as a thousand are many for a disk. */
TEST(limit, refunds_at_their_limit)
{
    const struct hf_limit_rule rule = {.limit = 5, .window_ms = 600000};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_limit_table *limits;
    struct hf_limit_verdict v;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf_limit_table_open(s, db, NULL, &limits));
    for (int i = 0; i < HF_LIMIT_REFUNDS_MAX; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        CHECK_OK(hf_limit_take(s, limits, NAME, &rule, NULL, &v));
        CHECK_OK(hf_limit_refund(s, limits, NAME, &rule, &v));
        hf_scope_rewind(s, mark);
    }
    CHECK_OK(hf_limit_take(s, limits, NAME, &rule, NULL, &v));
    CHECK_STATUS(HF_LIMIT, hf_limit_refund(s, limits, NAME, &rule, &v));
    CHECK_ERROR(HF_LIMIT, "limit login/ann: there were 1000 refunds already", s);
    hf_limit_table_close(limits);
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- lockouts ------------------------------------------------------------------------------- */

KIT_TEST(limit, lockouts_grow_and_are_forgiven)
{
    const struct hf_limit_rule rule = {.limit = 2,
                                       .window_ms = 1000,
                                       .lockout_ms = 5000,
                                       .lockout_max_ms = 15000};
    static const uint32_t locks[] = {5000, 10000, 15000, 15000};
    struct hf_limit_table *ann = table_of(k), *ben = table_of(k);
    struct hf_limit_verdict v;

    for (int i = 0; i < 4; i++) {
        (void)taken(k, ann, &rule);
        v = taken(k, ben, &rule);
        CHECK(!v.locked);
        v = denied(k, ann, &rule);
        CHECK(v.locked);
        CHECK_INT(locks[i], v.retry_ms);
        CHECK_INT(i + 1, v.lockouts);
        test_advance_ms(k->t, locks[i] - 1);
        v = denied(k, ben, &rule); /* which does not make it longer */
        CHECK_INT(1, v.retry_ms);
        CHECK_ERROR(HF_LIMIT, "limit login/ann is locked out; try again in 1 ms", k->scope);
        test_advance_ms(k->t, 1);
    }
    test_advance_ms(k->t, 14999); /* good behaviour, but not for long enough */
    (void)taken(k, ann, &rule);
    (void)taken(k, ann, &rule);
    CHECK_INT(5, denied(k, ann, &rule).lockouts);
    test_advance_ms(k->t, 15000 + 15000);
    (void)taken(k, ann, &rule);
    (void)taken(k, ann, &rule);
    CHECK_INT(1, denied(k, ann, &rule).lockouts);
    CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
    v = taken(k, ann, &rule);
    CHECK_INT(0, v.lockouts);
    hf_limit_table_close(ann);
    hf_limit_table_close(ben);
}

/* ---- when the database cannot be reached ---------------------------------------------------- */

KIT_TEST(limit, open_or_closed_as_it_was_told)
{
    const struct hf_limit_rule two = {.limit = 2, .window_ms = 1000};
    struct hf_limit_options *open = HF_OPTIONS(hf_limit_options, .fail_open = true);
    struct hf_limit_table *ann = table_of(k);
    struct hf_limit_verdict v;

    kit_fault(k, HF_FAULT_ERROR, "UpdateItem", 0);
    CHECK_STATUS(HF_INTERNAL, hf_limit_take(k->scope, ann, NAME, &two, NULL, &v));
    CHECK(!v.allowed);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(hf_limit_take(k->scope, ann, NAME, &two, open, &v));
        CHECK(v.allowed && v.unreached);
        CHECK_STATUS(HF_INVALID, hf_limit_refund(k->scope, ann, NAME, &two, &v));
        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, &v));
    }
    kit_no_faults(k);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_limit_take(k->scope, ann, NAME, &two, open, &v));
        CHECK(v.allowed && !v.unreached);
    }
    CHECK_STATUS(HF_LIMIT, hf_limit_take(k->scope, ann, NAME, &two, open, &v));
    CHECK_STATUS(HF_INVALID, hf_limit_take(k->scope, ann, HF_STR(""), &two, open, &v));
    hf_limit_table_close(ann);
}

/* An outage that ends before reach_ms, or before the deadline, is waited for; nothing is counted
 * twice. Without either it is not waited for. */
KIT_TEST(limit, an_outage_is_waited_for)
{
    const struct hf_limit_rule two = {.limit = 2, .window_ms = 60000};
    struct hf_limit_options *reach = HF_OPTIONS(hf_limit_options, .reach_ms = 60000);
    static const enum hf_fault_kind faults[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_limit_table *ann = table_of(k);
    struct hf_limit_verdict v;

    for (size_t i = 0; i < 2; i++) {
        kit_fault(k, faults[i], "UpdateItem", 12);
        CHECK_OK(hf_limit_take(k->scope, ann, NAME, &two, reach, &v));
        CHECK(v.allowed && !v.unreached && v.used == 1);
        kit_fault(k, faults[i], "UpdateItem", 12);
        hf_scope_timeout_ms(k->scope, 60000);
        CHECK_OK(hf_limit_take(k->scope, ann, NAME, &two, NULL, &v));
        CHECK(v.allowed && v.used == 2);
        kit_fault(k, HF_FAULT_LOST_REQUEST, "GetItem", 12);
        CHECK_STATUS(HF_LIMIT, hf_limit_take(k->scope, ann, NAME, &two, reach, &v));
        hf_scope_timeout_ms(k->scope, 0);
        kit_no_faults(k);
        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        kit_fault(k, HF_FAULT_LOST_REQUEST, "UpdateItem", 12);
        CHECK_STATUS(HF_IO, hf_limit_take(k->scope, ann, NAME, &two, NULL, &v));
        kit_no_faults(k);
        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
    }
    hf_limit_table_close(ann);
}

/* It is tried for reach_ms, and the deadline of the scope is what it was. */
KIT_TEST(limit, reaching_takes_its_time_and_no_more)
{
    const struct hf_limit_rule two = {.limit = 2, .window_ms = 1000};
    struct hf_limit_options *open =
        HF_OPTIONS(hf_limit_options, .fail_open = true, .reach_ms = 100);
    struct hf_limit_table *ann = table_of(k);
    int64_t before = k->t->elapsed_us;
    struct hf_limit_verdict v;

    kit_fault(k, HF_FAULT_LOST_REQUEST, "UpdateItem", 0);
    hf_scope_timeout_ms(k->scope, 5000);
    CHECK_OK(hf_limit_take(k->scope, ann, NAME, &two, open, &v));
    CHECK(v.unreached);
    CHECK(k->t->elapsed_us - before <= 100000);
    CHECK(k->t->elapsed_us - before >= 90000);
    CHECK_INT(5000 - (k->t->elapsed_us - before) / 1000, hf_scope_left_ms(k->scope, UINT32_MAX));
    hf_scope_timeout_ms(k->scope, 0);
    CHECK_OK(hf_limit_take(k->scope, ann, NAME, &two, open, &v));
    CHECK(hf_scope_left_ms(k->scope, UINT32_MAX) == UINT32_MAX);
    hf_limit_table_close(ann);
}

/* The same for those that only look. A transaction's action cannot be made up: there is no fail_open
 * for it. */
KIT_TEST(limit, looking_takes_its_time_and_no_more)
{
    const struct hf_limit_rule two = {.limit = 2, .window_ms = 60000};
    struct hf_limit_options *reach = HF_OPTIONS(hf_limit_options, .reach_ms = 100);
    struct hf_limit_options *open =
        HF_OPTIONS(hf_limit_options, .fail_open = true, .reach_ms = 100);
    struct hf_limit_table *ann = table_of(k);
    struct hf_transact_write action;
    struct hf_limit_verdict v;

    for (int tx = 0; tx < 2; tx++) {
        int64_t before = k->t->elapsed_us;

        kit_fault(k, HF_FAULT_LOST_REQUEST, "GetItem", 0);
        hf_scope_timeout_ms(k->scope, 5000);
        CHECK(tx ? hf_limit_take_tx(k->scope, ann, NAME, &two, reach, &action, &v)
                 : hf_limit_peek(k->scope, ann, NAME, &two, reach, &v));
        CHECK(k->t->elapsed_us - before <= 100000);
        CHECK(k->t->elapsed_us - before >= 90000);
        CHECK_INT(5000 - (k->t->elapsed_us - before) / 1000,
                  hf_scope_left_ms(k->scope, UINT32_MAX));
        hf_scope_timeout_ms(k->scope, 0);
        if (tx) {
            CHECK(hf_limit_take_tx(k->scope, ann, NAME, &two, open, &action, &v));
            CHECK(!action.update && !v.allowed);
        } else {
            CHECK_OK(hf_limit_peek(k->scope, ann, NAME, &two, open, &v));
            CHECK(v.allowed && v.unreached);
        }
        CHECK(hf_scope_left_ms(k->scope, UINT32_MAX) == UINT32_MAX);

        /* An outage that ends in time is waited for. */
        kit_no_faults(k);
        kit_fault(k, HF_FAULT_LOST_REQUEST, "GetItem", 12);
        reach->reach_ms = 60000;
        CHECK_OK(tx ? hf_limit_take_tx(k->scope, ann, NAME, &two, reach, &action, &v)
                    : hf_limit_peek(k->scope, ann, NAME, &two, reach, &v));
        CHECK(v.allowed && !v.unreached);
        kit_no_faults(k);
        reach->reach_ms = 100;
    }
    hf_limit_table_close(ann);
}

/* (4): alone, a lost answer costs nothing; nothing is counted twice. */
KIT_TEST(limit, lost_answers_count_once)
{
    static const enum hf_fault_kind faults[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};
    struct hf_limit_table *ann = table_of(k);

    for (size_t i = 0; i < 8; i++) {
        const struct hf_limit_rule rule = {.kind = kinds[i / 2], .limit = 3, .window_ms = 600000};

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        for (int j = 1; j <= 3; j++) {
            kit_fault(k, faults[i % 2], "UpdateItem", 1);
            CHECK_INT(j, taken(k, ann, &rule).used);
        }
        kit_no_faults(k);
        (void)denied(k, ann, &rule);
    }
    hf_limit_table_close(ann);
}

/* ---- transactions --------------------------------------------------------------------------- */

KIT_TEST(limit, counted_with_the_rest_or_not_at_all)
{
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};
    struct hf_limit_table *ann = table_of(k);

    for (size_t i = 0; i < 4; i++) {
        const struct hf_limit_rule rule = {.kind = kinds[i], .limit = 3, .window_ms = 600000};
        struct hf_put_item no = {.table = k->table,
                                 .item = HF_ITEM(k->scope, HF_S("name", HF_STR("-row"))),
                                 .condition = HF_STR("attribute_exists(nowhere_x)")};
        struct hf_transact_write actions[2] = {{0}, {.put = &no}};
        struct hf_transact_write_items tx = {.actions = actions, .actions_len = 1};
        struct hf_limit_verdict v;

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        for (int j = 1; j <= 3; j++) {
            CHECK_OK(hf_limit_take_tx(k->scope, ann, NAME, &rule, NULL, &actions[0], &v));
            CHECK(v.allowed);
            CHECK_INT(j, v.used);
            CHECK_INT(3 - j, v.left);
            tx.actions_len = 2;
            if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
                CHECK_STATUS(HF_UNSUPPORTED, hf_transact_write_items(k->scope, k->db, &tx, NULL));
                CHECK_INT(3, peeked(k, ann, &rule).left);
                hf_limit_table_close(ann);
                return;
            }
            CHECK_STATUS(HF_TX_CANCELED, hf_transact_write_items(k->scope, k->db, &tx, NULL));

            CHECK_INT(4 - j, peeked(k, ann, &rule).left);
            tx.actions_len = 1;
            CHECK_OK(hf_transact_write_items(k->scope, k->db, &tx, NULL));
            CHECK_INT(3 - j, peeked(k, ann, &rule).left);
        }
        CHECK_OK(hf_limit_refund(k->scope, ann, NAME, &rule, &v));
        CHECK_INT(1, peeked(k, ann, &rule).left);
        (void)taken(k, ann, &rule);
        CHECK_STATUS(HF_LIMIT, hf_limit_take_tx(k->scope, ann, NAME, &rule, NULL, &actions[0], &v));
    }
    hf_limit_table_close(ann);
}

/* ---- what cannot be ------------------------------------------------------------------------- */

static struct hf_str long_text(struct kit *k, size_t len)
{
    char *text = hf_scope_alloc(k->scope, len);

    memset(text, 'x', len);
    return hf_str_of(text, len);
}

KIT_TEST(limit, names_contexts_and_rules_at_their_limits)
{
    const struct hf_limit_rule ok = {.limit = 2, .window_ms = 1000};
    const struct hf_limit_rule bad[] = {
        {.window_ms = 1000},
        {.limit = 1},
        {.limit = HF_LIMIT_MOST + 1u, .window_ms = 1},
        {.kind = (enum hf_limit_kind)9, .limit = 1, .window_ms = 1},
        {.kind = HF_LIMIT_SLIDING, .limit = 1, .window_ms = 1000, .slices = 101},
        {.kind = HF_LIMIT_SLIDING, .limit = 1, .window_ms = 10, .slices = 11},
        {.kind = HF_LIMIT_RATE, .limit = 1, .window_ms = 10, .lockout_ms = 5},
        {.limit = 1, .window_ms = 10, .lockout_ms = 5, .lockout_max_ms = 4},
        {.kind = HF_LIMIT_RATE, .limit = 1, .window_ms = UINT32_MAX, .burst = HF_LIMIT_MOST}};
    struct hf_str name = long_text(k, HF_LIMIT_NAME_MAX + 1);
    struct hf_limit_table *ann = table_of(k);
    struct hf_limit_options o = {.size = sizeof(o)};
    struct hf_limit_verdict v;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        CHECK_STATUS(HF_INVALID, hf_limit_take(k->scope, ann, NAME, &bad[i], NULL, &v));
    CHECK_STATUS(HF_INVALID, hf_limit_take(k->scope, ann, name, &ok, NULL, &v));
    name.len--;
    o.context = HF_ITEM(k->scope, HF_S("c", long_text(k, HF_LIMIT_CONTEXT_MAX)));
    CHECK_STATUS(HF_INVALID, hf_limit_take(k->scope, ann, name, &ok, &o, &v));
    o.context = HF_ITEM(k->scope, HF_S("c", long_text(k, HF_LIMIT_CONTEXT_MAX - 1)));
    CHECK_OK(hf_limit_take(k->scope, ann, name, &ok, &o, &v));
    CHECK_INT(HF_LIMIT_CONTEXT_MAX, hf_item_size(v.context));
    CHECK_STATUS(HF_INVALID, hf_limit_take(k->scope, ann, NAME, &ok,
                                           HF_OPTIONS(hf_limit_options, .cost = 3), &v));
    CHECK_ERROR(HF_INVALID, "limit login/ann: a cost of 3 is more than 2", k->scope);
    CHECK_OK(hf_limit_take(k->scope, ann, NAME,
                           &(struct hf_limit_rule){.limit = HF_LIMIT_MOST, .window_ms = UINT32_MAX},
                           HF_OPTIONS(hf_limit_options, .cost = HF_LIMIT_MOST), &v));
    CHECK_INT(0, v.left);
    CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
    CHECK_OK(
        hf_limit_take(k->scope, ann, NAME,
                      &(struct hf_limit_rule){.kind = HF_LIMIT_SLIDING, .limit = 1, .window_ms = 1},
                      NULL, &v));
    CHECK_OK(hf_limit_take(k->scope, ann, NAME,
                           &(struct hf_limit_rule){.kind = HF_LIMIT_RATE,
                                                   .limit = HF_LIMIT_MOST,
                                                   .window_ms = UINT32_MAX,
                                                   .burst = HF_LIMIT_MOST},
                           HF_OPTIONS(hf_limit_options, .cost = HF_LIMIT_MOST), &v));
    CHECK_INT(0, v.left);
    hf_limit_table_close(ann);
}

/* Rules and kinds may change from call to call; what was counted is not forgotten early. */
KIT_TEST(limit, another_rule_for_the_same_name)
{
    struct hf_limit_rule rule = {.kind = HF_LIMIT_SLIDING, .limit = 10, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k);

    for (int i = 0; i < 6; i++)
        (void)taken(k, ann, &rule);
    rule.window_ms = 2000;
    rule.limit = 7;
    CHECK_INT(7, taken(k, ann, &rule).used);
    rule.window_ms = 4000;
    rule.limit = 5;
    (void)denied(k, ann, &rule);
    test_advance_ms(k->t, 8000);
    CHECK_INT(1, taken(k, ann, &rule).used);
    rule.kind = HF_LIMIT_RATE;
    CHECK_INT(1, taken(k, ann, &rule).used);
    rule.kind = HF_LIMIT_FIXED;
    CHECK_INT(1, taken(k, ann, &rule).used);
    hf_limit_table_close(ann);
}

KIT_TEST(limit, an_item_that_is_no_limit)
{
    const struct hf_limit_rule two = {.limit = 2, .window_ms = 1000};
    struct hf_limit_table *ann = table_of(k);
    struct hf_put_item put = {.table = k->table,
                              .item = HF_ITEM(k->scope, HF_S("name", NAME),
                                              HF_S("start_ms", HF_STR("odd")))};
    struct hf_limit_verdict v;

    CHECK_OK(hf_put_item(k->scope, k->db, &put, NULL));
    CHECK_STATUS(HF_CORRUPT, hf_limit_take(k->scope, ann, NAME, &two, NULL, &v));
    CHECK_ERROR(HF_CORRUPT,
                hf_scope_format(k->scope, "item login/ann of table %.*s is not a limit",
                                HF_FMT(k->table))
                    .ptr,
                k->scope);
    CHECK_STATUS(HF_CORRUPT, hf_limit_peek(k->scope, ann, NAME, &two, NULL, &v));
    hf_limit_table_close(ann);
}

/* The time to live is always there, and never early. */
KIT_TEST(limit, every_kind_has_a_time_to_live)
{
    static const enum hf_limit_kind kinds[] = {HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED, HF_LIMIT_SLIDING,
                                               HF_LIMIT_RATE};
    struct hf_limit_table *ann = table_of(k);

    for (size_t i = 0; i < 4; i++) {
        const struct hf_limit_rule rule = {.kind = kinds[i], .limit = 9, .window_ms = 60000};
        struct hf_get_item get = {.table = k->table,
                                  .key = HF_ITEM(k->scope, HF_S("name", NAME)),
                                  .consistent = HF_YES};
        struct hf_get_item_result got;
        int64_t expires;

        CHECK_OK(hf_limit_clear(k->scope, ann, NAME, NULL));
        for (int j = 0; j < 5; j++) {
            uint32_t reset_ms = taken(k, ann, &rule).reset_ms;

            CHECK_OK(hf_get_item(k->scope, k->db, &get, &got));
            CHECK(hf_value_i64(hf_item_get(got.item, HF_STR("expires")), &expires));
            CHECK(expires >= (k->t->wall_us / 1000 + reset_ms) / 1000 + 3600);
            CHECK(expires <= (k->t->wall_us / 1000 + reset_ms) / 1000 + 3600 + 120);
            test_advance_ms(k->t, 5000);
        }
    }
    hf_limit_table_close(ann);
}

/* Any allocation may fail: then it is said, nothing leaks, and nothing more is let through. */
TEST(limit, any_allocation_may_fail)
{
    const struct hf_limit_rule rule = {.kind = HF_LIMIT_SLIDING, .limit = 2, .window_ms = 600000};
    struct hf_scope *outer = hf_scope_new(NULL);
    struct hf_db *db;

    CHECK_OK(hf_open(outer, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    ALLOC_SWEEP (t, nth) {
        struct hf_str name = hf_scope_format(outer, "n%lld", (long long)nth);
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_limit_table *limits = NULL;
        struct hf_limit_verdict v;
        int allowed = 0;

        if (s && hf_limit_table_open(s, db, NULL, &limits) == HF_OK)
            for (int i = 0; i < 4; i++) {
                enum hf_status status = hf_limit_take(s, limits, name, &rule, NULL, &v);

                CHECK(status == HF_OK || status == HF_LIMIT ||
                      (status == HF_NOMEM && t->alloc_failed));
                allowed += status == HF_OK;
            }
        ALLOC_SWEEP_STOP(t);
        CHECK(allowed <= 2);
        CHECK(allowed == 2 || t->alloc_failed);
        hf_limit_table_close(limits);
        hf_scope_free(s);
    }
    hf_db_close(db);
    hf_scope_free(outer);
}
