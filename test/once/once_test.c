/*
 * once/once_test.c: do-once, one feature at a time, on every kind of database, by a virtual
 * clock: no time passes unless a test lets it, or somebody waits. (n) is an invariant of
 * once/once.c.
 */
#include <holdfast/engine.h>
#include <holdfast/once.h>

#include <pthread.h>
#include <stdio.h>

#include "kit.h"
#include "once/once.h"
#include "steps.h"

#define USER HF_STR("ann")
#define KEY HF_STR("welcome")

static struct hf_once_table *table_of(struct kit *k, const char *owner)
{
    struct hf_once_table *onces;

    CHECK_OK(hf_once_table_open(k->scope, k->db,
                                HF_OPTIONS(hf_once_table_options, .table = k->table,
                                           .owner = hf_str_from(owner), .no_threads = true),
                                &onces));
    return onces;
}

static struct hf_once_options *timeout(uint32_t ms)
{
    static struct hf_once_options options;

    options = (struct hf_once_options){.size = sizeof(options), .timeout_ms = ms};
    return &options;
}

/* An attempt that has to be ours. */
static struct hf_once *begun(struct kit *k, struct hf_once_table *onces,
                             const struct hf_once_options *options)
{
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_once_try(k->scope, onces, USER, KEY, options, &once, &record));
    CHECK(once);
    CHECK_INT(HF_ONCE_RUNNING, record.state);
    CHECK_INT(HF_OK, hf_scope_error(k->scope)->status);
    return once;
}

static void refused(struct kit *k, struct hf_once_table *onces,
                    const struct hf_once_options *options)
{
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_STATUS(HF_LOCKED, hf_once_try(k->scope, onces, USER, KEY, options, &once, &record));
    CHECK(!once);
}

static struct hf_item says(struct kit *k, const char *text)
{
    return HF_ITEM(k->scope, HF_S("says", hf_str_from(text)));
}

static void check_says(const char *expected, struct hf_item result)
{
    CHECK_STR(expected, hf_value_str(hf_item_get(result, HF_STR("says"))));
}

static struct hf_once_record got(struct kit *k, struct hf_once_table *onces)
{
    struct hf_once_record record;

    CHECK_OK(hf_once_get(k->scope, onces, USER, KEY, &record));
    CHECK_STR("ann", record.user);
    CHECK_STR("welcome", record.key);
    return record;
}

/* Whoever asks is told this result, and begins nothing. */
static void check_done(struct kit *k, struct hf_once_table *onces, const char *expected)
{
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_once_try(k->scope, onces, USER, KEY, NULL, &once, &record));
    CHECK(!once);
    CHECK(!record.did);
    CHECK_INT(HF_ONCE_DONE, record.state);
    check_says(expected, record.result);
    record = got(k, onces);
    CHECK_INT(HF_ONCE_DONE, record.state);
    check_says(expected, record.result);
}

/* ---- doing it once -------------------------------------------------------------------------- */

struct deed {
    struct kit *k;
    int count;
    const char *says;
    enum hf_status status;
};

static enum hf_status deed(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                           void *user)
{
    struct deed *d = user;

    CHECK(hf_once_left_ms(once) > 0);
    CHECK(!hf_once_lost(once));
    d->count++;
    if (d->status != HF_OK)
        return hf_scope_fail(s, d->status, "the mail did not go out");
    *result = HF_ITEM(s, HF_S("says", hf_str_from(d->says)));
    return HF_OK;
}

KIT_TEST(once, the_first_does_it_and_all_see_its_result)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct deed d = {.k = k, .says = "hello"};
    struct hf_once_record first, record;

    CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    CHECK_OK(hf_once_do(k->scope, ann, USER, KEY, NULL, deed, &d, &first));
    CHECK(first.did);
    CHECK_INT(HF_ONCE_DONE, first.state);
    CHECK_INT(k->t->wall_us / 1000 * 1000, first.at_us);
    CHECK_STR("ann", first.owner);
    CHECK_INT(1, first.tries);
    check_says("hello", first.result);
    test_advance_ms(k->t, 1000000);
    d.says = "hello again";
    for (int i = 0; i < 3; i++) {
        CHECK_OK(hf_once_do(k->scope, i % 2 ? ann : ben, USER, KEY, NULL, deed, &d, &record));
        CHECK(!record.did);
        CHECK_INT(first.at_us, record.at_us);
        CHECK_STR("ann", record.owner);
        check_says("hello", record.result);
    }
    CHECK_INT(1, d.count);
    CHECK_OK(hf_once_do(k->scope, ben, HF_STR("ben"), KEY, NULL, deed, &d, &record));
    CHECK(record.did);
    CHECK_OK(hf_once_do(k->scope, ben, USER, HF_STR("other"), NULL, deed, &d, &record));
    CHECK(record.did);
    CHECK_INT(3, d.count);
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* The new case is one write, and nothing is read; asking again is one write that is refused, and
 * read only where refusals bring no item. */
KIT_TEST(once, one_request_begins_and_one_ends_it)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once_record record;
    uint64_t calls, refusal = kit_refusal_has_item(k) ? 1 : 2;
    struct hf_once *once;

    hf_scope_count_capacity(k->scope, true);
    calls = hf_scope_capacity(k->scope).calls;
    once = begun(k, ann, NULL);
    CHECK_INT(1, hf_scope_capacity(k->scope).calls - calls);
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "x")));
    CHECK_INT(2, hf_scope_capacity(k->scope).calls - calls);
    hf_once_close(once);
    CHECK_OK(hf_once_try(k->scope, ann, USER, KEY, NULL, &once, &record));
    CHECK_INT(2 + refusal, hf_scope_capacity(k->scope).calls - calls);
    check_says("x", record.result);
    hf_once_table_close(ann);
}

KIT_TEST(once, a_failed_action_is_done_again)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct deed d = {.k = k, .says = "hello", .status = HF_IO};
    struct hf_once_record record;

    CHECK_STATUS(HF_IO, hf_once_do(k->scope, ann, USER, KEY, NULL, deed, &d, &record));
    CHECK_ERROR(HF_IO, "the mail did not go out", k->scope);
    CHECK(!record.did);
    CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    d.status = HF_OK;
    CHECK_OK(hf_once_do(k->scope, ann, USER, KEY, NULL, deed, &d, &record));
    CHECK(record.did);
    CHECK_INT(2, d.count);
    hf_once_table_close(ann);
}

static enum hf_status final_failure(struct hf_scope *s, struct hf_once *once,
                                    struct hf_item *result, void *user)
{
    (void)result;
    ++*(int *)user;
    return hf_once_fail(s, once, HF_ITEM(s, HF_S("says", HF_STR("no such address"))));
}

KIT_TEST(once, a_final_failure_is_kept)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once_record record;
    int count = 0;

    for (int i = 0; i < 3; i++) {
        CHECK_OK(hf_once_do(k->scope, ann, USER, KEY, NULL, final_failure, &count, &record));
        CHECK_INT(HF_ONCE_FAILED, record.state);
        CHECK(record.did == (i == 0));
        check_says("no such address", record.result);
    }
    CHECK_INT(1, count);
    hf_once_table_close(ann);
}

KIT_TEST(once, no_result_is_one_too)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once *once = begun(k, ann, NULL);
    struct hf_once_record record;

    CHECK_OK(hf_once_finish(k->scope, once, (struct hf_item){0}));
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "late"))); /* the first one counts */
    hf_once_close(once);
    CHECK_OK(hf_once_try(k->scope, ann, USER, KEY, NULL, &once, &record));
    CHECK(!once);
    CHECK_INT(HF_ONCE_DONE, record.state);
    CHECK(!record.result.ptr);
    hf_once_close(NULL);
    hf_once_table_close(ann);
}

/* ---- attempts that run ---------------------------------------------------------------------- */

KIT_TEST(once, one_attempt_at_a_time)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *once = begun(k, ann, NULL);
    struct hf_once_record record = got(k, ben);

    CHECK_INT(HF_ONCE_RUNNING, record.state);
    CHECK_STR("ann", record.owner);
    CHECK_INT(20000, record.timeout_ms);
    CHECK_INT(k->t->wall_us / 1000 * 1000, record.began_us);
    refused(k, ben, NULL);
    CHECK_ERROR(HF_LOCKED, "once ann/welcome is being done by ann", k->scope);
    refused(k, ann, NULL);
    hf_once_close(once); /* given up: the next begins at once */
    CHECK_INT(HF_ONCE_NONE, got(k, ben).state);
    once = begun(k, ben, NULL);
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "ben")));
    hf_once_close(once);
    check_done(k, ann, "ben");
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* (1) (2) (3): a silent attempt is followed after its timeout, not before, and cannot complete. */
KIT_TEST(once, a_late_finisher_is_fenced)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *late = begun(k, ann, timeout(1000)), *next;
    struct hf_once_record record;

    CHECK_INT(990, hf_once_left_ms(late));
    refused(k, ben, timeout(5000));
    test_advance_ms(k->t, 999);
    refused(k, ben, timeout(5000));
    CHECK_INT(0, hf_once_left_ms(late));
    test_advance_ms(k->t, 1);
    next = begun(k, ben, timeout(5000));
    CHECK_INT(2, hf_once_tries(next));
    CHECK_INT(1, hf_once_tries(late));
    CHECK(!hf_once_lost(late));
    CHECK_STATUS(HF_LOST, hf_once_finish(k->scope, late, says(k, "late")));
    CHECK_ERROR(HF_LOST, "once ann/welcome: another attempt took over, or it was cleared or marked",
                k->scope);
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    CHECK(hf_once_lost(late));
    CHECK_INT(0, hf_once_left_ms(late));
    CHECK_STATUS(HF_LOST, hf_once_renew(k->scope, late));
    CHECK_STATUS(HF_LOST, hf_once_finish(k->scope, late, says(k, "late")));
    hf_once_close(late);
    record = got(k, ann);
    CHECK_INT(HF_ONCE_RUNNING, record.state);
    CHECK_STR("ben", record.owner);
    CHECK_OK(hf_once_finish(k->scope, next, says(k, "ben")));
    hf_once_close(next);
    check_done(k, ann, "ben");
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* Closing a lost attempt does not give up the one that follows it. */
KIT_TEST(once, a_lost_attempt_gives_up_nothing)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *late = begun(k, ann, timeout(1000)), *next;

    refused(k, ben, NULL);
    test_advance_ms(k->t, 1000);
    next = begun(k, ben, NULL);
    hf_once_close(late);
    CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
    CHECK_OK(hf_once_finish(k->scope, next, says(k, "ben")));
    hf_once_close(next);
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* (3) Nobody came: a late attempt completes all the same. */
KIT_TEST(once, late_is_not_lost)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once *late = begun(k, ann, timeout(1000));

    test_advance_ms(k->t, 100000);
    CHECK_OK(hf_once_finish(k->scope, late, says(k, "late")));
    hf_once_close(late);
    check_done(k, ann, "late");
    hf_once_table_close(ann);
}

KIT_TEST(once, heartbeats_keep_it)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *once = begun(k, ann, timeout(1000));

    CHECK_INT(250, onces_step(ann));
    for (int i = 0; i < 100; i++) {
        test_advance_ms(k->t, 50);
        CHECK(onces_step(ann) <= 250);
        refused(k, ben, NULL);
    }
    CHECK_OK(hf_once_renew(k->scope, once));
    CHECK_INT(990, hf_once_left_ms(once));
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "ann")));
    CHECK(onces_step(ann) == UINT32_MAX);
    hf_once_close(once);
    check_done(k, ben, "ann");
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* H8: a thread that speaks for work that is stuck falls silent. */
KIT_TEST(once, stuck_work_falls_silent)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *once = begun(k, ann,
                                 HF_OPTIONS(hf_once_options, .timeout_ms = 1000, .stuck_ms = 600)),
                   *next;

    for (int i = 0; i < 20; i++) {
        test_advance_ms(k->t, 500);
        hf_once_touch(once);
        (void)onces_step(ann);
        refused(k, ben, NULL);
    }
    for (int i = 0; i < 3; i++) {
        test_advance_ms(k->t, 600);
        (void)onces_step(ann);
    }
    next = begun(k, ben, NULL);
    CHECK_STATUS(HF_LOST, hf_once_finish(k->scope, once, says(k, "ann")));
    hf_once_close(once);
    hf_once_close(next);
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* Programs that live too briefly to watch can trust clocks instead. */
KIT_TEST(once, trusted_clocks_follow_at_once)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben;
    struct hf_once *late = begun(k, ann, timeout(1000)), *next;

    CHECK_OK(hf_once_table_open(k->scope, k->db,
                                HF_OPTIONS(hf_once_table_options, .table = k->table,
                                           .no_threads = true, .clock_skew_ms = 500),
                                &ben));
    test_advance_ms(k->t, 1499);
    refused(k, ben, NULL);
    test_advance_ms(k->t, 1);
    next = begun(k, ben, NULL);
    CHECK_STATUS(HF_LOST, hf_once_renew(k->scope, late));
    hf_once_close(late);
    hf_once_close(next);
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* ---- waiting -------------------------------------------------------------------------------- */

KIT_TEST(once, waiting_ends_at_the_deadline_or_when_it_is_ours)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *held = begun(k, ann, timeout(1000)), *next;
    int64_t before = k->t->elapsed_us;
    struct hf_once_record record;

    hf_scope_timeout_ms(k->scope, 900);
    CHECK_STATUS(HF_TIMEOUT, hf_once_begin(k->scope, ben, USER, KEY, NULL, &next, &record));
    CHECK_ERROR(HF_TIMEOUT, "once ann/welcome is being done by ann", k->scope);
    CHECK(!next);
    CHECK(k->t->elapsed_us - before <= 900000 && k->t->elapsed_us - before >= 899000);
    hf_scope_timeout_ms(k->scope, 200);
    CHECK_OK(hf_once_begin(k->scope, ben, USER, KEY, NULL, &next, &record));
    CHECK(next);
    CHECK(k->t->elapsed_us - before >= 1000000);
    hf_scope_timeout_ms(k->scope, 0);
    CHECK_STATUS(HF_LOST, hf_once_finish(k->scope, held, says(k, "ann")));
    hf_once_close(held);
    hf_once_close(next);
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

KIT_TEST(once, no_wait_fails_instead)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *held = begun(k, ann, NULL);
    struct deed d = {.k = k, .says = "hello"};
    struct hf_once_record record;

    CHECK_STATUS(HF_LOCKED,
                 hf_once_do(k->scope, ben, USER, KEY, HF_OPTIONS(hf_once_options, .no_wait = true),
                            deed, &d, &record));
    CHECK_INT(0, d.count);
    hf_once_close(held);
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* Threads of one process, by the system's clock: all wait for the one that does it. */
struct crowd {
    struct hf_once_table *onces;
    struct hf_env env;
    int count; /* of actions; guarded by the mutex */
    int did;
    pthread_mutex_t mutex;
};

static enum hf_status slow_deed(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                void *user)
{
    struct crowd *c = user;

    pthread_mutex_lock(&c->mutex);
    c->count++;
    pthread_mutex_unlock(&c->mutex);
    CHECK_OK(hf_scope_sleep_ms(s, 300)); /* three timeouts: heartbeats keep it */
    CHECK(!hf_once_lost(once));
    *result = HF_ITEM(s, HF_N("count", c->count));
    return HF_OK;
}

static void *one_of_the_crowd(void *user)
{
    struct crowd *c = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_once_record record;
    int64_t count = 0;
    enum hf_status status;

    hf_scope_timeout_ms(s, 60000);
    status = hf_once_do(s, c->onces, USER, KEY,
                        HF_OPTIONS(hf_once_options, .timeout_ms = 100, .poll_ms = 20), slow_deed, c,
                        &record);
    pthread_mutex_lock(&c->mutex);
    if (status == HF_OK && hf_value_i64(hf_item_get(record.result, HF_STR("count")), &count) &&
        count == 1)
        c->did += record.did ? 1 : 100;
    pthread_mutex_unlock(&c->mutex);
    hf_scope_free(s);
    return NULL;
}

KIT_TEST(once, threads_wait_for_the_one_that_does_it)
{
    enum { CROWD = 8 };
    struct crowd c = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    struct hf_scope *s = hf_scope_new(NULL);
    pthread_t threads[CROWD];

    CHECK_OK(hf_once_table_open(s, k->db, HF_OPTIONS(hf_once_table_options, .table = k->table),
                                &c.onces));
    for (int i = 0; i < CROWD; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, one_of_the_crowd, &c));
    for (int i = 0; i < CROWD; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
    CHECK_INT(1, c.count);
    CHECK_INT(1 + 100 * (CROWD - 1), c.did);
    hf_once_table_close(c.onces);
    hf_scope_free(s);
}

/* ---- payloads ------------------------------------------------------------------------------- */

static struct hf_once_options *payload(const char *text)
{
    static struct hf_once_options options;

    options = (struct hf_once_options){.size = sizeof(options),
                                       .payload = hf_bytes_of(text, text ? strlen(text) : 0)};
    return &options;
}

KIT_TEST(once, another_payload_is_refused)
{
    struct hf_once_table *ann = table_of(k, "ann"), *ben = table_of(k, "ben");
    struct hf_once *once = begun(k, ann, payload("10 euros")), *none;
    struct hf_once_record record;

    for (int done = 0; done < 2; done++) {
        CHECK_STATUS(HF_TOKEN_MISMATCH,
                     hf_once_try(k->scope, ben, USER, KEY, payload("20 euros"), &none, &record));
        CHECK_ERROR(HF_TOKEN_MISMATCH, "once ann/welcome was begun with another payload", k->scope);
        CHECK(!none);
        CHECK_STATUS(HF_TOKEN_MISMATCH,
                     hf_once_begin(k->scope, ben, USER, KEY, payload(""), &none, &record));
        CHECK_STATUS(HF_TOKEN_MISMATCH,
                     hf_once_mark_done(k->scope, ben, USER, KEY, payload("20 euros"),
                                       (struct hf_item){0}, &record));
        if (!done) {
            refused(k, ben, payload("10 euros"));
            refused(k, ben, NULL);
            CHECK_OK(hf_once_finish(k->scope, once, says(k, "paid")));
            hf_once_close(once);
        }
    }
    CHECK_OK(hf_once_try(k->scope, ben, USER, KEY, payload("10 euros"), &none, &record));
    check_says("paid", record.result);
    check_done(k, ben, "paid");
    hf_once_table_close(ann);
    hf_once_table_close(ben);
}

/* The hash is SHA-256, so that other programs can compare: this is that of "abc". */
KIT_TEST(once, the_hash_is_sha_256)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once *once = begun(k, ann, payload("abc"));
    struct hf_get_item get = {.table = k->table,
                              .key = HF_ITEM(k->scope, HF_S("user", USER), HF_S("key", KEY)),
                              .consistent = HF_YES};
    struct hf_get_item_result result;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &result));
    CHECK_STR("ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
              hf_value_str(hf_item_get(result.item, HF_STR("hash"))));
    hf_once_close(once);
    hf_once_table_close(ann);
}

/* ---- how long a result is kept -------------------------------------------------------------- */

KIT_TEST(once, a_result_is_kept_for_its_time)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once_options o = {.size = sizeof(o), .timeout_ms = 1000, .keep_s = 60};
    struct hf_once *once;

    o.payload = hf_bytes_of("a", 1);
    once = begun(k, ann, &o);
    test_advance_ms(k->t, 50000); /* the attempt's timeout is another matter */
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "first")));
    hf_once_close(once);
    test_advance_ms(k->t, 59999);
    check_done(k, ann, "first");
    CHECK_INT(got(k, ann).at_us + 60000000, got(k, ann).until_us);
    test_advance_ms(k->t, 1);
    CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    o.payload = hf_bytes_of("b", 1); /* nobody remembers the old one */
    o.keep_s = 0;
    once = begun(k, ann, &o);
    CHECK(!got(k, ann).result.ptr);
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "second")));
    hf_once_close(once);
    test_advance_ms(k->t, (int64_t)1000 * 86400 * 3650);
    check_done(k, ann, "second");
    CHECK_INT(0, got(k, ann).until_us);
    hf_once_table_close(ann);
}

static int64_t expires_s(struct kit *k)
{
    struct hf_get_item get = {.table = k->table,
                              .key = HF_ITEM(k->scope, HF_S("user", USER), HF_S("key", KEY)),
                              .consistent = HF_YES};
    struct hf_get_item_result result;
    int64_t expires = 0;

    CHECK_OK(hf_get_item(k->scope, k->db, &get, &result));
    CHECK(result.item.ptr);
    (void)hf_value_i64(hf_item_get(result.item, HF_STR("expires")), &expires);
    return expires;
}

/* H6: the database removes neither what runs nor what is kept. */
KIT_TEST(once, the_time_to_live_is_never_too_early)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once *once = begun(k, ann, HF_OPTIONS(hf_once_options, .keep_s = 10));
    int64_t begun_s = k->t->wall_us / 1000000;

    CHECK_INT(begun_s + 20 + 86400, expires_s(k)); /* an orphan's */
    test_advance_ms(k->t, 5000);
    (void)onces_step(ann);
    CHECK_INT(begun_s + 5 + 20 + 86400, expires_s(k));
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "x")));
    hf_once_close(once);
    CHECK_INT(got(k, ann).until_us / 1000000 + 1, expires_s(k));
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    once = begun(k, ann, NULL);
    CHECK_INT(0, expires_s(k));
    CHECK_OK(hf_once_finish(k->scope, once, says(k, "x")));
    CHECK_INT(0, expires_s(k));
    hf_once_close(once);
    hf_once_table_close(ann);
}

/* ---- lost answers --------------------------------------------------------------------------- */

KIT_TEST(once, lost_answers_lose_nothing)
{
    static const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST};
    struct hf_once_table *ann = table_of(k, "ann");

    for (size_t i = 0; i < 2; i++) {
        struct hf_once_record record;
        struct hf_once *once;

        kit_fault(k, kinds[i], "UpdateItem", 1);
        once = begun(k, ann, timeout(100000));
        CHECK(hf_once_left_ms(once) > 0);
        kit_fault(k, kinds[i], "UpdateItem", 2);
        CHECK_OK(hf_once_renew(k->scope, once));
        CHECK(!hf_once_lost(once));
        kit_fault(k, kinds[i], "UpdateItem", 1);
        CHECK_OK(hf_once_finish(k->scope, once, says(k, "x")));
        hf_once_close(once);
        check_done(k, ann, "x");
        kit_fault(k, kinds[i], "DeleteItem", 1);
        CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
        CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
        once = begun(k, ann, NULL);
        kit_fault(k, kinds[i], "DeleteItem", 1);
        hf_once_close(once);
        CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
        kit_fault(k, kinds[i], "UpdateItem", 1);
        CHECK_OK(hf_once_mark_done(k->scope, ann, USER, KEY, NULL, says(k, "m"), &record));
        CHECK(record.did);
        CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    }
    hf_once_table_close(ann);
}

/* (4) What could not be recorded is recorded later, also when its holder is done with it. */
KIT_TEST(once, what_could_not_be_recorded_is_recorded_later)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once *once = begun(k, ann, NULL);

    kit_fault(k, HF_FAULT_ERROR, "UpdateItem", 0);
    CHECK_STATUS(HF_INTERNAL, hf_once_finish(k->scope, once, says(k, "x")));
    CHECK(!hf_scope_error(k->scope)->may_have_happened);
    hf_once_close(once);
    CHECK(onces_step(ann) <= 1000);
    CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
    kit_no_faults(k);
    test_advance_ms(k->t, 1000);
    CHECK(onces_step(ann) == UINT32_MAX);
    check_done(k, ann, "x");
    hf_once_table_close(ann);
}

KIT_TEST(once, a_doubtful_beginning_is_given_up)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct hf_once_record record;
    struct hf_once *once;

    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           (struct hf_fault[]){{.kind = HF_FAULT_LOST_ANSWER,
                                                .operation = HF_STR("UpdateItem"),
                                                .count = 1},
                                               {.kind = HF_FAULT_ERROR,
                                                .operation = HF_STR("UpdateItem")}},
                           2));
    CHECK_STATUS(HF_INTERNAL, hf_once_try(k->scope, ann, USER, KEY, NULL, &once, &record));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    CHECK(!once);
    CHECK_INT(HF_ONCE_RUNNING, got(k, ann).state);
    kit_no_faults(k);
    (void)onces_step(ann);
    CHECK_INT(HF_ONCE_NONE, got(k, ann).state);
    CHECK(onces_step(ann) == UINT32_MAX);
    hf_once_table_close(ann);
}

KIT_TEST(once, waiting_and_recording_outlast_failures)
{
    struct hf_once_table *ann = table_of(k, "ann");
    struct deed d = {.k = k, .says = "hello"};
    struct hf_once_record record;

    hf_scope_timeout_ms(k->scope, 60000);
    kit_fault(k, HF_FAULT_THROTTLE, "UpdateItem", 3);
    CHECK_OK(hf_once_do(k->scope, ann, USER, KEY, NULL, deed, &d, &record));
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    CHECK_OK(hf_faulty_set(k->scope, k->db,
                           &(struct hf_fault){.kind = HF_FAULT_THROTTLE,
                                              .operation = HF_STR("UpdateItem"),
                                              .skip = 1,
                                              .count = 3},
                           1));
    CHECK_OK(hf_once_do(k->scope, ann, USER, KEY, NULL, deed, &d, &record));
    CHECK(record.did);
    CHECK_INT(2, d.count);
    check_done(k, ann, "hello");
    hf_once_table_close(ann);
}

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
