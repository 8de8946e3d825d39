/*
 * lock/lock_thread_test.c: locks as programs use them: with threads, and by clocks that go on by
 * themselves. They are those of patient.h, as a holder that gets no processor for the time of its
 * lease loses it, and is not told that it is late before.
 */
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/lock.h>

#include <pthread.h>
#include <stdatomic.h>

#include "lock/lock.h"
#include "patient.h"
#include "test.h"

enum { PATIENCE_MS = 60000, THREADS = 4, ROUNDS = 25 };

struct real {
    struct hf_scope *s;
    struct hf_db *db; /* with faults when asked for */
    struct hf_lock_table *locks;
};

static struct real open_real(void)
{
    struct real r = {.s = hf_scope_new(patient_begin())};
    struct hf_db *inner;

    CHECK_OK(hf_open(r.s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &inner));
    CHECK_OK(hf_faulty_open(r.s, inner, &r.db));
    CHECK_OK(hf_lock_table_open(r.s, r.db, NULL, &r.locks));
    return r;
}

static void close_real(struct real *r)
{
    hf_lock_table_close(r->locks);
    hf_db_close(r->db);
    hf_scope_free(r->s);
    patient_end();
}

/* The beater renews: the lock lives longer than its lease. */
TEST(lock_thread, a_thread_renews)
{
    struct real r = open_real();
    struct hf_lock_info before, after;
    struct hf_lock *lock;

    CHECK_OK(
        hf_lock_acquire(r.s, r.locks, HF_STR("job"),
                        HF_OPTIONS(hf_lock_options, .lease_ms = PATIENCE_MS, .heartbeat_ms = 20),
                        &lock));
    CHECK_OK(hf_lock_inspect(r.s, r.locks, HF_STR("job"), &before));
    for (int i = 0; i < PATIENCE_MS; i++) {
        CHECK_OK(hf_lock_inspect(r.s, r.locks, HF_STR("job"), &after));
        if (after.holders[0].renewed_us > before.holders[0].renewed_us + 100000)
            break;
        CHECK_OK(hf_scope_sleep_ms(r.s, 1));
    }
    CHECK(after.holders[0].renewed_us > before.holders[0].renewed_us + 100000);
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    CHECK_OK(hf_lock_release(r.s, lock));
    close_real(&r);
}

/* One of two tables is slow and has more to renew than there is time for. */
TEST(lock_thread, a_slow_table_leaves_time_for_another)
{
    enum { SLOW = 16 };
    struct real r = open_real();
    struct hf_fault slow = {.kind = HF_FAULT_LATENCY,
                            .operation = HF_STR("UpdateItem"),
                            .table = HF_STR("slow"),
                            .latency_ms = 200};
    struct hf_lock *many[SLOW], *lock;
    struct hf_lock_table *others;

    CHECK_OK(hf_lock_table_open(r.s, r.db,
                                HF_OPTIONS(hf_lock_table_options, .table = HF_STR("slow")),
                                &others));
    for (int i = 0; i < SLOW; i++)
        CHECK_OK(
            hf_lock_acquire(r.s, others, hf_scope_format(r.s, "%d", i),
                            HF_OPTIONS(hf_lock_options, .lease_ms = 600000, .heartbeat_ms = 250),
                            &many[i]));
    CHECK_OK(hf_lock_acquire(r.s, r.locks, HF_STR("job"),
                             HF_OPTIONS(hf_lock_options, .lease_ms = 2000, .heartbeat_ms = 200),
                             &lock));
    CHECK_OK(hf_faulty_set(r.s, r.db, &slow, 1));
    patient_sleep_ms(3500);
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    CHECK_OK(hf_faulty_set(r.s, r.db, NULL, 0));
    CHECK_OK(hf_lock_release(r.s, lock));
    for (int i = 0; i < SLOW; i++)
        CHECK_OK(hf_lock_release(r.s, many[i]));
    hf_lock_table_close(others);
    close_real(&r);
}

struct heard {
    atomic_int late, lost;
    _Atomic enum hf_lock_state why;
    struct hf_scope *s; /* release in the callback, with this */
};

static void hear_late(struct hf_lock *lock, uint32_t left_ms, void *user)
{
    struct heard *heard = user;

    (void)lock;
    (void)left_ms;
    heard->late++;
}

static void hear_lost(struct hf_lock *lock, enum hf_lock_state why, void *user)
{
    struct heard *heard = user;

    heard->why = why;
    if (heard->s && hf_lock_release(heard->s, lock) != HF_LOST)
        heard->why = 0;
    heard->lost++;
}

static bool hears(struct real *r, atomic_int *what)
{
    for (int i = 0; i < PATIENCE_MS && !*what; i++)
        CHECK_OK(hf_scope_sleep_ms(r->s, 1));
    return *what;
}

TEST(lock_thread, loss_is_told_by_a_thread)
{
    struct real r = open_real();
    struct heard stolen = {.s = hf_scope_new(NULL)}, expired = {0};
    struct hf_lock *first, *second;

    CHECK_OK(hf_lock_acquire(r.s, r.locks, HF_STR("one"),
                             HF_OPTIONS(hf_lock_options, .lease_ms = PATIENCE_MS,
                                        .heartbeat_ms = 20, .on_lost = hear_lost, .user = &stolen),
                             &first));
    CHECK_OK(hf_lock_break(r.s, r.locks, HF_STR("one"), hf_str_of(NULL, 0), NULL));
    CHECK(hears(&r, &stolen.lost)); /* and it was released in there */
    CHECK_INT(HF_LOCK_STOLEN, stolen.why);
    CHECK_OK(hf_lock_acquire(r.s, r.locks, HF_STR("two"),
                             HF_OPTIONS(hf_lock_options, .lease_ms = 400, .on_late = hear_late,
                                        .on_lost = hear_lost, .user = &expired),
                             &second));
    CHECK_OK(hf_faulty_set(r.s, r.db, &(struct hf_fault){.kind = HF_FAULT_ERROR}, 1));
    CHECK(hears(&r, &expired.late));
    CHECK(hears(&r, &expired.lost));
    CHECK_INT(HF_LOCK_EXPIRED, expired.why);
    CHECK_STATUS(HF_LOST, hf_lock_release(r.s, second));
    hf_scope_free(stolen.s);
    close_real(&r);
}

struct crowd {
    struct real r;
    int inside, most, total; /* no mutex: the lock protects them */
    uint64_t fence;
};

static void *join_in(void *user)
{
    struct crowd *crowd = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < ROUNDS; i++) {
        struct hf_lock *lock;

        hf_scope_reset(s);
        if (hf_lock_acquire(s, crowd->r.locks, HF_STR("room"), NULL, &lock) != HF_OK)
            break;
        /* Memory is handed over by the database's own synchronisation. */
        if (++crowd->inside > crowd->most)
            crowd->most = crowd->inside;
        if (hf_lock_fence(lock) > crowd->fence)
            crowd->total++;
        crowd->fence = hf_lock_fence(lock);
        crowd->inside--;
        if (hf_lock_release(s, lock) != HF_OK)
            break;
    }
    hf_scope_free(s);
    return NULL;
}

/* Threads of one process exclude each other, fences grow from one to the next. */
TEST(lock_thread, a_crowd_takes_turns)
{
    struct crowd crowd = {.r = open_real()};
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, join_in, &crowd);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(1, crowd.most);
    CHECK_INT(THREADS * ROUNDS, crowd.total);
    close_real(&crowd.r);
}

/* ---- looks at the same time ----------------------------------------------------------------- */

/*
 * The moment between reading the clock and taking the mutex of the table: in it the holder renews,
 * and another thread looks. What that one has seen is newer than the time that was read.
 */
static struct {
    struct hf_env env;           /* the system's */
    struct hf_lock_table *locks; /* NULL: nothing happens */
    struct hf_lock *held;
    struct hf_scope *s;
    int looks;
    bool inside;
} meanwhile;

static int64_t clock_of_who_is_late(void *user)
{
    int64_t now_us = meanwhile.env.elapsed_us(user);
    struct hf_lock *lock;

    if (!meanwhile.locks || meanwhile.inside || pthread_mutex_trylock(&meanwhile.locks->mutex) != 0)
        return now_us;
    pthread_mutex_unlock(&meanwhile.locks->mutex);
    meanwhile.inside = true;
    meanwhile.looks++;
    CHECK_OK(hf_scope_sleep_ms(meanwhile.s, 2));
    CHECK_OK(hf_lock_extend(meanwhile.s, meanwhile.held, 0));
    CHECK_STATUS(HF_LOCKED, hf_lock_try(meanwhile.s, meanwhile.locks, HF_STR("job"), NULL, &lock));
    meanwhile.inside = false;
    return now_us;
}

TEST(lock_thread, a_look_that_is_late_does_not_meet_a_newer_one)
{
    struct real r = open_real();
    struct hf_env env = *hf_scope_env(r.s);
    struct hf_lock_table *locks;
    struct hf_lock *held, *lock;
    struct hf_scope *s;

    meanwhile.env = env;
    env.elapsed_us = clock_of_who_is_late;
    s = hf_scope_new(&env);
    CHECK_OK(hf_lock_acquire(r.s, r.locks, HF_STR("job"), NULL, &held));
    CHECK_OK(
        hf_lock_table_open(s, r.db, HF_OPTIONS(hf_lock_table_options, .no_threads = true), &locks));
    meanwhile.s = hf_scope_new(NULL);
    meanwhile.held = held;
    meanwhile.locks = locks;
    CHECK_STATUS(HF_LOCKED, hf_lock_try(s, locks, HF_STR("job"), NULL, &lock));
    meanwhile.locks = NULL;
    CHECK(meanwhile.looks > 0);
    CHECK_OK(hf_lock_release(r.s, held));
    hf_lock_table_close(locks);
    hf_scope_free(meanwhile.s);
    hf_scope_free(s);
    close_real(&r);
}
