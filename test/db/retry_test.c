/*
 * db/retry_test.c: what is tried again, when, how often, and what the caller learns of it. The
 * inner database is a script: how each attempt ends. (n) is an invariant of retry.c.
 */
#include "world.h"

#include <holdfast/faults.h>
#include <holdfast/retry.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "db/db.h"
#include "db/limiter.h"

enum { SCRIPT_MAX = 8, QUOTA = 500, ATTEMPTS = 4 };

/* How an attempt ends; a script's last line is said again and again. */
struct line {
    enum hf_status status;
    bool final; /* may_retry is false */
    bool happened;
    uint32_t retry_after_ms;
};

struct script {
    struct hf_db db;
    struct test *t;
    struct line lines[SCRIPT_MAX];
    size_t lines_len;
    size_t waste; /* bytes that each attempt takes from the scope */
    int calls;
    int64_t at_us[SCRIPT_MAX * 2]; /* when each attempt came */
    char tokens[SCRIPT_MAX * 2][64];
    bool dirty; /* an attempt got a response that was not zero */
    bool closed;
};

static struct hf_str token_of(enum hf_op op, const void *request)
{
    if (op == HF_OP_TRANSACT_WRITE_ITEMS)
        return ((const struct hf_transact_write_items *)request)->token;
    if (op == HF_OP_EXECUTE_TRANSACTION)
        return ((const struct hf_execute_transaction *)request)->token;
    return (struct hf_str){0};
}

static enum hf_status script_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct script *p = (struct script *)(void *)db;
    size_t at = (size_t)p->calls < p->lines_len ? (size_t)p->calls : p->lines_len - 1;
    const struct line *line = &p->lines[at];
    size_t size = hf__op(op)->response->size;
    struct hf_str token = token_of(op, request);

    if ((size_t)p->calls < ARRAY_LEN(p->at_us)) {
        p->at_us[p->calls] = p->t->elapsed_us;
        snprintf(p->tokens[p->calls], sizeof(p->tokens[0]), "%.*s", HF_FMT(token));
    }
    p->calls++;
    for (size_t i = 0; i < size; i++)
        p->dirty = p->dirty || ((const char *)response)[i] != 0;
    if (p->waste && !hf_scope_alloc(s, p->waste))
        return hf__fail_nomem(s);
    if (line->status == HF_OK)
        return HF_OK;
    memset(response, 0xA5, size);
    hf__fail(s, line->status, "attempt %d ended with %s", p->calls, hf_status_name(line->status));
    hf__scope_error_edit(s)->may_retry = !line->final;
    hf__scope_error_edit(s)->may_have_happened = line->happened;
    hf__scope_error_edit(s)->retry_after_ms = line->retry_after_ms;
    return line->status;
}

static void script_close(struct hf_db *db)
{
    ((struct script *)(void *)db)->closed = true;
}

static const struct db_calls script_calls = {.call = script_call, .close = script_close};

struct stage {
    struct script script;
    struct hf_scope *s;
    struct hf_db *db;
};

static void play(struct stage *g, const struct line *lines, size_t len)
{
    memcpy(g->script.lines, lines, len * sizeof(*lines));
    g->script.lines_len = len;
    g->script.calls = 0;
    g->script.dirty = false;
}

#define PLAY(stage, ...)                                                                           \
    play((stage), (const struct line[]){__VA_ARGS__},                                              \
         ARRAY_LEN(((const struct line[]){__VA_ARGS__})))

/* The stage stays where it is: the wrapper points into it. */
static void open_stage(struct test *t, struct stage *g, const struct hf_retry_options *options)
{
    memset(g, 0, sizeof(*g));
    g->script.db.calls = &script_calls;
    g->script.t = t;
    g->s = hf_scope_new(test_env(t));
    PLAY(g, {.status = HF_OK});
    CHECK_OK(hf_retry_open(g->s, &g->script.db, options, &g->db));
}

static void close_stage(struct stage *g)
{
    hf_db_close(g->db);
    CHECK(g->script.closed);
    hf_scope_free(g->s);
}

static enum hf_status get(struct stage *g)
{
    struct hf_get_item request = {.table = HF_STR("tab")};
    struct hf_get_item_result result;

    return hf_get_item(g->s, g->db, &request, &result);
}

static enum hf_status put(struct stage *g)
{
    struct hf_put_item request = {.table = HF_STR("tab")};
    struct hf_put_item_result result;

    return hf_put_item(g->s, g->db, &request, &result);
}

/* Milliseconds between attempts n and n + 1, from 0. */
static int64_t gap_ms(const struct stage *g, int n)
{
    int64_t us = g->script.at_us[n + 1] - g->script.at_us[n];

    CHECK_INT(0, us % 1000);
    return us / 1000;
}

/* ---- how often ------------------------------------------------------------------------------ */

TEST(retry, success_is_one_attempt)
{
    struct stage g;

    open_stage(t, &g, NULL);
    CHECK_OK(get(&g));
    CHECK_INT(1, g.script.calls);
    close_stage(&g);
}

TEST(retry, four_attempts_then_the_last_error)
{
    struct stage g;

    open_stage(t, &g, NULL);
    PLAY(&g, {.status = HF_IO}, {.status = HF_THROTTLED}, {.status = HF_INTERNAL},
         {.status = HF_TX_IN_PROGRESS});
    CHECK_STATUS(HF_TX_IN_PROGRESS, get(&g));
    CHECK_INT(4, g.script.calls);
    CHECK_ERROR(HF_TX_IN_PROGRESS, "attempt 4 ended with HF_TX_IN_PROGRESS", g.s);
    CHECK_STR("GetItem", hf_scope_error(g.s)->operation);
    close_stage(&g);
}

TEST(retry, a_later_attempt_may_succeed)
{
    struct stage g;

    open_stage(t, &g, NULL);
    PLAY(&g, {.status = HF_IO}, {.status = HF_IO}, {.status = HF_OK});
    CHECK_OK(get(&g));
    CHECK_INT(3, g.script.calls);
    CHECK_STATUS(HF_OK, hf_scope_error(g.s)->status);
    CHECK(!g.script.dirty); /* (3) */
    close_stage(&g);
}

/* Every status, once with may_retry and once without. */
TEST(retry, only_passing_failures_are_tried_again)
{
    static const enum hf_status passing[] = {HF_THROTTLED, HF_TX_IN_PROGRESS, HF_LIMIT,
                                             HF_IO,        HF_INTERNAL,       HF_TX_CONFLICT};
    static const enum hf_status all[] = {
#define STATUS(name, number, wire, text) HF_##name,
        HF_STATUS_MAP(STATUS)
#undef STATUS
    };

    for (size_t i = 1; i < ARRAY_LEN(all); i++) {
        struct stage g;
        bool passes = false;

        for (size_t j = 0; j < ARRAY_LEN(passing); j++)
            passes = passes || passing[j] == all[i];
        open_stage(t, &g, NULL);
        PLAY(&g, {.status = all[i]});
        CHECK_STATUS(all[i], get(&g));
        CHECK_INT(passes ? ATTEMPTS : 1, g.script.calls);
        PLAY(&g, {.status = all[i], .final = true});
        CHECK_STATUS(all[i], get(&g));
        CHECK_INT(1, g.script.calls);
        close_stage(&g);
    }
}

/* (1) for every operation of ops.def. */
static void check_repeats(struct test *t, enum hf_op op, bool happened, bool repeat_writes)
{
    const struct op *entry = hf__op(op);
    bool again = !happened || entry->repeat != OP_REPEAT_NO || repeat_writes;
    void *request = calloc(1, entry->request->size);
    void *before = calloc(1, entry->request->size);
    void *response = malloc(entry->response->size);
    struct stage g;

    open_stage(t, &g, HF_OPTIONS(hf_retry_options, .repeat_writes = repeat_writes));
    PLAY(&g, {.status = HF_IO, .happened = happened});
    CHECK_STATUS(HF_IO, hf_db_call(g.s, g.db, op, request, response));
    CHECK_INT(again ? ATTEMPTS : 1, g.script.calls);
    CHECK_INT(happened, hf_scope_error(g.s)->may_have_happened); /* (2) */
    CHECK(!g.script.dirty);
    CHECK(memcmp(request, before, entry->request->size) == 0);
    for (int i = 0; i < g.script.calls; i++) {
        CHECK_INT(entry->repeat == OP_REPEAT_TOKEN ? 36 : 0, strlen(g.script.tokens[i]));
        CHECK_STR(g.script.tokens[0], hf_str_from(g.script.tokens[i]));
    }
    close_stage(&g);
    free(request);
    free(before);
    free(response);
}

TEST(retry, what_may_be_done_is_repeated_only_if_twice_is_once)
{
    for (int op = 0; op < HF_OP_COUNT; op++)
        for (int i = 0; i < 4; i++)
            check_repeats(t, (enum hf_op)op, i & 1, i & 2);
}

TEST(retry, a_token_of_the_caller_is_kept_and_ours_are_new)
{
    struct hf_transact_write_items mine = {.token = HF_STR("mine")}, none = {.token = {0}};
    struct stage g;
    char first[64];

    open_stage(t, &g, NULL);
    CHECK_OK(hf_transact_write_items(g.s, g.db, &mine, NULL));
    CHECK_STR("mine", hf_str_from(g.script.tokens[0]));
    PLAY(&g, {.status = HF_OK});
    CHECK_OK(hf_transact_write_items(g.s, g.db, &none, NULL));
    snprintf(first, sizeof(first), "%s", g.script.tokens[0]);
    CHECK(first[14] == '4' && strchr("89ab", first[19]) && first[8] == '-' && first[23] == '-');
    PLAY(&g, {.status = HF_OK});
    CHECK_OK(hf_transact_write_items(g.s, g.db, &none, NULL));
    CHECK(strcmp(first, g.script.tokens[0]) != 0);
    close_stage(&g);
}

/* (2) */
TEST(retry, a_later_answer_does_not_hide_that_it_may_have_happened)
{
    struct stage g;

    open_stage(t, &g, HF_OPTIONS(hf_retry_options, .repeat_writes = true));
    PLAY(&g, {.status = HF_IO, .happened = true}, {.status = HF_CONDITION, .final = true});
    CHECK_STATUS(HF_CONDITION, put(&g));
    CHECK(hf_scope_error(g.s)->may_have_happened);
    PLAY(&g, {.status = HF_IO}, {.status = HF_CONDITION, .final = true});
    CHECK_STATUS(HF_CONDITION, put(&g));
    CHECK(!hf_scope_error(g.s)->may_have_happened);
    PLAY(&g, {.status = HF_IO, .happened = true}, {.status = HF_THROTTLED}, {.status = HF_OK});
    CHECK_OK(put(&g));
    close_stage(&g);
}

/* ---- when ----------------------------------------------------------------------------------- */

/* Of many calls that fail with `status`: the shortest and the longest delay before retry n. */
static void survey(struct test *t, const struct hf_retry_options *options, struct line line,
                   int64_t least[3], int64_t most[3])
{
    for (int n = 0; n < 3; n++) {
        least[n] = INT64_MAX;
        most[n] = -1;
    }
    for (int round = 0; round < 2000; round++) {
        struct stage g;

        open_stage(t, &g, options);
        play(&g, &line, 1);
        CHECK_STATUS(line.status, get(&g));
        for (int n = 0; n < 3; n++) {
            int64_t gap = gap_ms(&g, n);

            least[n] = gap < least[n] ? gap : least[n];
            most[n] = gap > most[n] ? gap : most[n];
        }
        close_stage(&g);
    }
}

/* Each bound is met, or nearly where the range is wide, and never passed. */
TEST(retry, delays_double_and_are_random_from_zero)
{
    int64_t least[3], most[3];

    survey(t, NULL, (struct line){.status = HF_IO}, least, most);
    for (int n = 0; n < 3; n++) {
        CHECK(least[n] <= 2);
        CHECK(most[n] <= 25 << n && most[n] >= (25 << n) - 2);
    }
    survey(t, NULL, (struct line){.status = HF_THROTTLED}, least, most);
    for (int n = 0; n < 3; n++) {
        CHECK(least[n] <= 20 << n);
        CHECK(most[n] <= 1000 << n && most[n] >= 980 << n);
    }
    survey(t, HF_OPTIONS(hf_retry_options, .backoff_ms = 10, .backoff_max_ms = 15),
           (struct line){.status = HF_IO}, least, most);
    CHECK_INT(10, most[0]);
    CHECK_INT(15, most[1]);
    CHECK_INT(15, most[2]);
}

/* No wrap-around where the doubling has no end. */
TEST(retry, no_delay_is_longer_than_the_longest)
{
    struct stage g;

    for (int round = 0; round < 20; round++) {
        int64_t start;

        open_stage(t, &g, HF_OPTIONS(hf_retry_options, .max_attempts = 100));
        PLAY(&g, {.status = HF_THROTTLED});
        start = t->elapsed_us;
        CHECK_STATUS(HF_THROTTLED, get(&g));
        CHECK_INT(100, g.script.calls);
        CHECK(t->elapsed_us - start < (int64_t)100 * 20000 * 1000);
        CHECK(t->elapsed_us - start > (int64_t)100 * 4000 * 1000); /* 10 s each, mostly */
        close_stage(&g);
    }
}

TEST(retry, a_service_that_asks_for_time_gets_it_within_bounds)
{
    int64_t least[3], most[3];

    survey(t, HF_OPTIONS(hf_retry_options, .backoff_max_ms = 100),
           (struct line){.status = HF_IO, .retry_after_ms = 3000}, least, most);
    CHECK(least[0] == 3000 && most[2] == 3000); /* the longest delay does not bound it */
    survey(t, NULL, (struct line){.status = HF_IO, .retry_after_ms = 60000}, least, most);
    CHECK(least[0] >= 5000 && most[0] <= 5025 && most[0] > 5020);
    survey(t, NULL, (struct line){.status = HF_IO, .retry_after_ms = 10}, least, most);
    CHECK(least[0] == 10 && most[0] >= 23 && most[0] <= 25);
}

/* (4) */
TEST(retry, a_delay_beyond_the_deadline_returns_the_error_at_once)
{
    struct stage g;
    int64_t start;

    open_stage(t, &g, NULL);
    PLAY(&g, {.status = HF_THROTTLED, .retry_after_ms = 4000});
    hf_scope_timeout_ms(g.s, 3000);
    start = t->elapsed_us;
    for (int i = 0; i < 3; i++) { /* whatever the random delay is, 4000 to 5000 are too many */
        g.script.calls = 0;
        CHECK_STATUS(HF_THROTTLED, get(&g));
        CHECK_INT(1, g.script.calls);
        CHECK_ERROR(HF_THROTTLED, "attempt 1 ended with HF_THROTTLED", g.s);
        CHECK_INT(start, t->elapsed_us);
    }
    close_stage(&g);
}

/* (4): to the millisecond. */
TEST(retry, a_delay_that_ends_at_the_deadline_is_not_begun)
{
    for (uint32_t left = 4999; left <= 5001; left++) {
        struct stage g;
        int64_t start;

        open_stage(t, &g, HF_OPTIONS(hf_retry_options, .backoff_ms = 1, .backoff_max_ms = 1));
        PLAY(&g, {.status = HF_IO, .retry_after_ms = 5000}, {.status = HF_OK});
        hf_scope_timeout_ms(g.s, left);
        start = t->elapsed_us;
        CHECK_STATUS(left > 5000 ? HF_OK : HF_IO, get(&g));
        CHECK_INT(left > 5000 ? 2 : 1, g.script.calls);
        CHECK_INT(left > 5000 ? 5000000 : 0, t->elapsed_us - start);
        close_stage(&g);
    }
}

/* Longer than it was asked to, as on a busy machine. */
static void late_sleep(int64_t us, void *user)
{
    test_advance_ms(user, us / 1000 + 700);
}

/* (4): the time ran out in the delay; what is told is still why the call failed. */
TEST(retry, a_deadline_that_passes_in_a_delay_returns_the_error)
{
    struct hf_env env = *test_env(t);
    struct stage g;

    env.sleep = late_sleep;
    open_stage(t, &g, NULL);
    hf_scope_free(g.s);
    g.s = hf_scope_new(&env);
    hf_scope_timeout_ms(g.s, 600);
    PLAY(&g, {.status = HF_IO, .retry_after_ms = 500});
    CHECK_STATUS(HF_IO, get(&g));
    CHECK_INT(1, g.script.calls);
    CHECK_ERROR(HF_IO, "attempt 1 ended with HF_IO", g.s);
    close_stage(&g);
}

static struct hf_scope *to_cancel;

static void canceling_sleep(int64_t us, void *user)
{
    test_advance_ms(user, us / 1000);
    hf_scope_cancel(to_cancel);
}

TEST(retry, cancellation_ends_a_delay)
{
    struct hf_env env = *test_env(t);
    struct hf_batch_write_item request = {0};
    struct stage g;

    env.sleep = canceling_sleep;
    open_stage(t, &g, NULL);
    hf_scope_free(g.s);
    g.s = to_cancel = hf_scope_new(&env);
    PLAY(&g, {.status = HF_IO, .happened = true, .retry_after_ms = 1000});
    CHECK_STATUS(HF_CANCELED, hf_batch_write_item(g.s, g.db, &request, NULL));
    CHECK_INT(1, g.script.calls);
    CHECK(hf_scope_error(g.s)->may_have_happened); /* (2) */
    close_stage(&g);
}

/* ---- the quota ------------------------------------------------------------------------------ */

/* How many retries one failing call was allowed. */
static int retries(struct stage *g, enum hf_status status)
{
    PLAY(g, {.status = status});
    CHECK_STATUS(status, get(g));
    return g->script.calls - 1;
}

static int drain(struct stage *g, enum hf_status status)
{
    int sum = 0, now;

    do
        sum += now = retries(g, status);
    while (now);
    return sum;
}

TEST(retry, the_quota_bounds_all_calls_together)
{
    struct stage g;

    open_stage(t, &g, NULL);
    CHECK_INT(QUOTA / 14, drain(&g, HF_IO)); /* 10 are left: two throttled retries */
    CHECK_INT(2, drain(&g, HF_THROTTLED));
    close_stage(&g);
    open_stage(t, &g, NULL);
    CHECK_INT(QUOTA / 5, drain(&g, HF_THROTTLED));
    close_stage(&g);
}

TEST(retry, success_fills_the_quota)
{
    struct stage g;

    open_stage(t, &g, NULL);
    CHECK_INT(35, drain(&g, HF_IO));
    for (int i = 0; i < 3; i++) { /* 10 + 3 are too few */
        PLAY(&g, {.status = HF_OK});
        CHECK_OK(get(&g));
    }
    CHECK_INT(0, retries(&g, HF_IO));
    PLAY(&g, {.status = HF_OK});
    CHECK_OK(get(&g));
    for (int i = 0; i < 3; i++) { /* takes 14 and puts them back */
        PLAY(&g, {.status = HF_IO}, {.status = HF_OK});
        CHECK_OK(get(&g));
        CHECK_INT(2, g.script.calls);
    }
    PLAY(&g, {.status = HF_THROTTLED}, {.status = HF_THROTTLED}, {.status = HF_OK});
    CHECK_OK(get(&g)); /* takes 5 twice, puts back 5: 9 are left */
    CHECK_INT(0, retries(&g, HF_IO));
    CHECK_INT(1, drain(&g, HF_THROTTLED));
    close_stage(&g);
}

TEST(retry, the_quota_is_never_more_than_it_was)
{
    struct stage g;

    open_stage(t, &g, NULL);
    for (int i = 0; i < 100; i++)
        CHECK_OK(get(&g));
    CHECK_INT(QUOTA / 14, drain(&g, HF_IO));
    close_stage(&g);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* (3): eight failed attempts of a megabyte each do not leave eight. */
TEST(retry, memory_of_failed_attempts_is_given_back)
{
    struct stage g;
    size_t before;

    open_stage(t, &g, HF_OPTIONS(hf_retry_options, .max_attempts = 8));
    g.script.waste = 1 << 20;
    before = t->live_bytes;
    PLAY(&g, {.status = HF_IO});
    CHECK_STATUS(HF_IO, get(&g));
    CHECK_INT(8, g.script.calls);
    CHECK(t->live_bytes - before < 4 << 20);
    CHECK_ERROR(HF_IO, "attempt 8 ended with HF_IO", g.s);
    close_stage(&g);
}

TEST(retry, any_failing_allocation_is_an_error_and_no_leak)
{
    ALLOC_SWEEP (t, nth) {
        struct script script = {.db.calls = &script_calls, .t = t, .lines_len = 3, .waste = 10000};
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_transact_write_items request = {.token = {0}};
        struct hf_db *db = NULL;
        enum hf_status status = s ? hf_retry_open(s, &script.db, NULL, &db) : HF_NOMEM;

        CHECK((status == HF_OK) == (db != NULL));
        script.lines[0].status = script.lines[1].status = HF_IO;
        if (status == HF_OK)
            status = hf_transact_write_items(s, db, &request, NULL);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        hf_db_close(db);
        hf_scope_free(s);
    }
}

/* ---- options -------------------------------------------------------------------------------- */

TEST(retry, off_is_one_attempt_and_no_token)
{
    struct hf_transact_write_items request = {.token = {0}};
    struct stage g;

    open_stage(t, &g, HF_OPTIONS(hf_retry_options, .mode = HF_RETRY_OFF, .max_attempts = 9));
    PLAY(&g, {.status = HF_IO, .happened = true});
    CHECK_STATUS(HF_IO, hf_transact_write_items(g.s, g.db, &request, NULL));
    CHECK_INT(1, g.script.calls);
    CHECK_STR("", hf_str_from(g.script.tokens[0]));
    CHECK(hf_scope_error(g.s)->may_have_happened);
    close_stage(&g);
}

TEST(retry, options_that_cannot_be)
{
    struct script script = {.db.calls = &script_calls};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_db *db = &script.db;

    CHECK_STATUS(HF_INVALID,
                 hf_retry_open(s, &script.db, HF_OPTIONS(hf_retry_options, .mode = 4), &db));
    CHECK(db == NULL);
    CHECK_STATUS(HF_INVALID,
                 hf_retry_open(s, &script.db, HF_OPTIONS(hf_retry_options, .max_attempts = 1001),
                               &db));
    CHECK_STATUS(HF_INVALID,
                 hf_retry_open(s, &script.db,
                               HF_OPTIONS(hf_retry_options, .backoff_max_ms = 3600001), &db));
    CHECK_STATUS(HF_INVALID, hf_retry_open(s, NULL, NULL, &db));
    CHECK(!script.closed);
    hf_scope_free(s);
}

/* A program of an older header has a shorter struct; one inside another struct has no size. */
TEST(retry, options_may_be_shorter_or_without_a_size)
{
    struct hf_retry_options options = {.size = offsetof(struct hf_retry_options, max_attempts),
                                       .max_attempts = 2};
    struct stage g;

    open_stage(t, &g, &options);
    CHECK_INT(3, retries(&g, HF_IO));
    close_stage(&g);
    options.size = 0;
    open_stage(t, &g, &options);
    CHECK_INT(1, retries(&g, HF_IO));
    close_stage(&g);
}

/* ---- adaptive ------------------------------------------------------------------------------- */

static double near(double a, double b)
{
    return a > b ? a - b : b - a;
}

/* 10 calls a second for 4 seconds, throttled: 7 a second at once, 10 again after the plateau. */
TEST(retry, the_limiter_follows_the_cubic_curve)
{
    struct limiter l;
    int64_t now = 0, throttled;

    hf__limiter_init(&l, now);
    for (int i = 0; i < 40; i++, now += 100000) {
        CHECK_INT(0, hf__limiter_take(&l, now)); /* (1) of limiter.c */
        hf__limiter_note(&l, now, false);
    }
    CHECK(near(l.measured, 10) < 0.1);
    throttled = now;
    hf__limiter_note(&l, now, true);
    CHECK(near(l.rate, 7) < 0.1);
    CHECK(near(l.plateau, 1.957) < 0.01); /* cube root of 7.5 */
    for (; now < throttled + 1957000; now += 100000)
        hf__limiter_note(&l, now, false);
    CHECK(near(l.rate, 10) < 0.1);
    for (; now < throttled + 4000000; now += 100000)
        hf__limiter_note(&l, now, false);
    CHECK(near(l.rate, 13.1) < 0.6); /* 0.4 * 2.0^3 more */
    for (; now < throttled + 20000000; now += 100000)
        hf__limiter_note(&l, now, false);
    CHECK(near(l.rate, 20) < 0.2); /* twice what is sent, no more */
}

/* (2) of limiter.c */
TEST(retry, turns_queue_up)
{
    struct limiter l;

    hf__limiter_init(&l, 0);
    hf__limiter_note(&l, 0, true);
    CHECK(near(l.rate, 0.5) < 0.001); /* nothing was measured yet: the slowest */
    CHECK_INT(2, hf__limiter_take(&l, 0) / 1000000);
    CHECK_INT(4, hf__limiter_take(&l, 0) / 1000000);
    hf__limiter_return(&l);
    CHECK_INT(3, hf__limiter_take(&l, 1000000) / 1000000);
    CHECK_INT(0, hf__limiter_take(&l, 100000000) / 1000000); /* one collects, not 50 */
    CHECK_INT(2, hf__limiter_take(&l, 100000000) / 1000000);
}

TEST(retry, adaptive_delays_first_attempts_after_throttling)
{
    struct stage g;
    int64_t start;

    open_stage(t, &g, HF_OPTIONS(hf_retry_options, .mode = HF_RETRY_ADAPTIVE, .max_attempts = 1));
    start = t->elapsed_us;
    for (int i = 0; i < 20; i++)
        CHECK_OK(get(&g));
    CHECK_INT(start, t->elapsed_us);
    PLAY(&g, {.status = HF_THROTTLED}, {.status = HF_OK});
    CHECK_STATUS(HF_THROTTLED, get(&g));
    start = t->elapsed_us;
    CHECK_OK(get(&g));
    CHECK_INT(2001, (t->elapsed_us - start) / 1000);
    PLAY(&g, {.status = HF_OK});
    hf_scope_timeout_ms(g.s, 100);
    start = t->elapsed_us;
    CHECK_STATUS(HF_THROTTLED, get(&g)); /* it fails at once, and nothing is sent */
    CHECK_INT(0, g.script.calls);
    CHECK_INT(start, t->elapsed_us);
    CHECK(hf_scope_error(g.s)->may_retry && !hf_scope_error(g.s)->may_have_happened);
    hf_scope_timeout_ms(g.s, 0);
    CHECK_OK(get(&g));                     /* the reserved call was returned */
    CHECK(t->elapsed_us - start < 400000); /* at 3.2 a second by now */
    close_stage(&g);
}

/* ---- around the engine ---------------------------------------------------------------------- */

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"      \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}"
#define ADD                                                                                        \
    "'TableName':'tab','Key':{'pk':{'S':'a'}},'UpdateExpression':'ADD n :one',"                    \
    "'ExpressionAttributeValues':{':one':{'N':'1'}}"
#define GET "{'TableName':'tab','Key':{'pk':{'S':'a'}}}"

static struct world open_around_engine(struct test *t, struct hf_db **faulty)
{
    struct world w = world_open(t, "memory:");

    CHECK_OK(hf_faulty_open(w.scope, w.db, faulty));
    CHECK_OK(hf_retry_open(w.scope, *faulty, NULL, &w.db));
    world_ok(&w, "CreateTable", TABLE);
    return w;
}

static void lose_answers(struct world *w, struct hf_db *faulty, uint32_t count)
{
    struct hf_fault fault = {.kind = HF_FAULT_LOST_ANSWER, .count = count};

    CHECK_OK(hf_faulty_set(w->scope, faulty, &fault, 1));
}

TEST(retry, a_transaction_whose_answers_are_lost_happens_once)
{
    struct hf_db *faulty;
    struct world w = open_around_engine(t, &faulty);

    lose_answers(&w, faulty, 3);
    CHECK_JSON(&w, "{}", "TransactWriteItems", "{'TransactItems':[{'Update':{" ADD "}}]}");
    CHECK_JSON(&w, "{'Item':{'n':{'N':'1'},'pk':{'S':'a'}}}", "GetItem", GET);
    hf_db_close(w.db);
    hf_scope_free(w.scope);
}

TEST(retry, an_update_whose_answer_is_lost_is_not_repeated)
{
    struct hf_db *faulty;
    struct world w = open_around_engine(t, &faulty);

    lose_answers(&w, faulty, 1);
    world_call(&w, "UpdateItem", "{" ADD "}");
    CHECK_STATUS(HF_INTERNAL, hf_scope_error(w.scope)->status);
    CHECK(hf_scope_error(w.scope)->may_have_happened);
    CHECK_JSON(&w, "{'Item':{'n':{'N':'1'},'pk':{'S':'a'}}}", "GetItem", GET);
    hf_db_close(w.db);
    hf_scope_free(w.scope);
}

TEST(retry, features_are_those_of_the_inner_database)
{
    struct hf_db *faulty;
    struct world w = open_around_engine(t, &faulty);
    bool supported = false;

    CHECK_OK(hf_db_supports(w.scope, w.db, HF_FEATURE_TRANSACTIONS, &supported));
    CHECK(supported);
    hf_db_close(w.db);
    hf_scope_free(w.scope);
}

struct asked {
    struct hf_db db;
    int calls;
    int failures; /* that come first */
};

static enum hf_status asked_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                     bool *supported)
{
    struct asked *asked = (struct asked *)(void *)db;

    asked->calls++;
    *supported = feature == HF_FEATURE_STREAMS;
    if (asked->calls > asked->failures)
        return HF_OK;
    hf__fail(s, HF_IO, "the connection broke");
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

static void asked_close(struct hf_db *db)
{
    (void)db;
}

static const struct db_calls asked_calls = {.supports = asked_supports, .close = asked_close};

/* It is a call over the network, too, where the inner database is there. */
TEST(retry, the_question_for_features_is_asked_again)
{
    for (int failures = 0; failures < 6; failures++) {
        struct asked asked = {.db.calls = &asked_calls, .failures = failures};
        struct hf_scope *s = hf_scope_new(test_env(t));
        bool supported = true;
        struct hf_db *db;

        CHECK_OK(hf_retry_open(s, &asked.db, NULL, &db));
        CHECK_STATUS(failures < 4 ? HF_OK : HF_IO,
                     hf_db_supports(s, db, HF_FEATURE_PARTIQL, &supported));
        CHECK_INT(failures < 4 ? failures + 1 : 4, asked.calls);
        CHECK(!supported);
        hf_db_close(db);
        hf_scope_free(s);
    }
}

struct worker {
    struct test *t;
    struct hf_db *db;
    pthread_t thread;
    int done;
    bool bad;
};

static void *work(void *user)
{
    struct worker *me = user;
    struct hf_scope *s = hf_scope_new(test_env(me->t));

    for (int i = 0; i < 300; i++) {
        struct hf_transact_write write = {
            .update = &(struct hf_update_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(s, HF_S("pk", HF_STR("a"))),
                                               .update = HF_STR("ADD n :one"),
                                               .values = HF_ITEM(s, HF_N(":one", 1))}};
        struct hf_transact_write_items request = {.actions = &write, .actions_len = 1};
        enum hf_status status = hf_transact_write_items(s, me->db, &request, NULL);

        if (status == HF_OK)
            me->done++;
        else if (hf_scope_error(s)->may_have_happened)
            me->bad = true;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* Two threads, one quota, adaptive: every success counted once, every failure not at all. */
TEST(retry, threads_share_one)
{
    struct world w = world_open(t, "memory:");
    struct hf_fault faults[] = {{.kind = HF_FAULT_ERROR, .probability = 0.2},
                                {.kind = HF_FAULT_THROTTLE, .probability = 0.02}};
    struct worker workers[2] = {{.t = t}, {.t = t}};
    struct hf_db *faulty;
    struct hf_str item;
    char expected[64];

    world_ok(&w, "CreateTable", TABLE);
    CHECK_OK(hf_faulty_open(w.scope, w.db, &faulty));
    CHECK_OK(hf_retry_open(w.scope, faulty, HF_OPTIONS(hf_retry_options, .mode = HF_RETRY_ADAPTIVE),
                           &w.db));
    CHECK_OK(hf_faulty_set(w.scope, faulty, faults, ARRAY_LEN(faults)));
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].db = w.db;
        CHECK_INT(0, pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(workers); i++)
        pthread_join(workers[i].thread, NULL);
    CHECK(!workers[0].bad && !workers[1].bad);
    CHECK(workers[0].done + workers[1].done > 300);
    CHECK_OK(hf_faulty_set(w.scope, faulty, NULL, 0));
    item = world_call(&w, "GetItem", GET);
    snprintf(expected, sizeof(expected), "{\"N\":\"%d\"}", workers[0].done + workers[1].done);
    CHECK(memmem(item.ptr, item.len, expected, strlen(expected)) != NULL);
    hf_db_close(w.db);
    hf_scope_free(w.scope);
}
