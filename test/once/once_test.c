/*
 * once/once_test.c: do-once, one feature at a time, on every kind of database, by a virtual
 * clock: no time passes unless a test lets it, or somebody waits. (n) is an invariant of
 * once/once.c.
 */
#include "once_stage.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/base.h"

/* ---- doing it once -------------------------------------------------------------------------- */

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

/* Threads of one process, by the system's clock: all wait for the one that does it, whose heartbeats come
 * from the table's thread. That these keep it for longer than its timeout is shown above, by a clock that
 * does not depend on how busy the machine is: here a heartbeat may be as late as it likes. */
enum { CROWD = 8, CROWD_HEARTBEATS = 3, CROWD_PATIENCE_MS = 60000 };

struct crowd {
    struct hf_once_table *onces;
    atomic_int here; /* threads that ask for it */
    int count;       /* of actions; guarded by the mutex */
    int did;
    pthread_mutex_t mutex;
};

static enum hf_status slow_deed(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                void *user)
{
    struct crowd *c = user;

    int64_t renewed_us = 0;

    pthread_mutex_lock(&c->mutex);
    c->count++;
    pthread_mutex_unlock(&c->mutex);
    for (int beats = -1; beats < CROWD_HEARTBEATS || atomic_load(&c->here) < CROWD;) {
        struct hf_once_record record;

        TRY(hf_scope_sleep_ms(s, 5));
        TRY(hf_once_get(s, c->onces, USER, KEY, &record));
        beats += record.renewed_us != renewed_us; /* the first is its beginning */
        renewed_us = record.renewed_us;
    }
    if (hf_once_lost(once))
        return hf_scope_fail(s, HF_LOST, "it was lost while its heartbeats came");
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

    hf_scope_timeout_ms(s, CROWD_PATIENCE_MS);
    atomic_fetch_add(&c->here, 1);
    status = hf_once_do(s, c->onces, USER, KEY,
                        HF_OPTIONS(hf_once_options, .timeout_ms = 2 * CROWD_PATIENCE_MS,
                                   .heartbeat_ms = 20, .poll_ms = 20),
                        slow_deed, c, &record);
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

static void count_lost(struct hf_once *once, void *user)
{
    CHECK(hf_once_lost(once));
    ++*(int *)user;
}

/* once_beat.c (4) */
KIT_TEST(once, its_holder_is_told_of_a_loss_once)
{
    struct hf_once_table *ann = table_of(k, "ann");
    int told = 0;
    struct hf_once *once =
        begun(k, ann, HF_OPTIONS(hf_once_options, .on_lost = count_lost, .user = &told));

    test_advance_ms(k->t, 5000);
    (void)onces_step(ann);
    CHECK_INT(0, told);
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    for (int i = 0; i < 4; i++) {
        test_advance_ms(k->t, 5000);
        (void)onces_step(ann);
        CHECK_INT(1, told);
    }
    CHECK_STATUS(HF_LOST, hf_once_renew(k->scope, once));
    hf_once_close(once);
    once = begun(k, ann, HF_OPTIONS(hf_once_options, .on_lost = count_lost, .user = &told));
    CHECK_OK(hf_once_clear(k->scope, ann, USER, KEY, NULL));
    hf_once_close(once);
    test_advance_ms(k->t, 10000);
    (void)onces_step(ann);
    CHECK_INT(1, told);
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
