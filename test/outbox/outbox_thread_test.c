/*
 * outbox/outbox_thread_test.c: an outbox used by many threads, by the system's clock, on a
 * database in memory; and with failing allocations.
 */
#include <holdfast/outbox.h>

#include <holdfast/engine.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "test.h"

#include "outbox/outbox.h"

enum { THREADS = 4, EVENTS = 100, ALL = THREADS * EVENTS };

struct stage {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_outbox *outbox;
    atomic_int claimed[ALL];
    atomic_int published, woken, number;
    atomic_bool stop;
};

static void stage_open(struct stage *stage)
{
    memset(stage, 0, sizeof(*stage));
    stage->s = hf_scope_new(NULL);
    CHECK_OK(hf_open(stage->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &stage->db));
    CHECK_OK(hf_outbox_open(stage->s, stage->db, HF_OPTIONS(hf_outbox_options, .buckets = 4),
                            &stage->outbox));
}

static void stage_close(struct stage *stage)
{
    hf_outbox_close(stage->outbox);
    hf_db_close(stage->db);
    hf_scope_free(stage->s);
}

static void run_threads(struct stage *stage, void *(*run)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, run, stage));
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
}

/* Its events have one key, and numbers that grow. */
static void *emit_some(void *user)
{
    struct stage *stage = user;
    struct hf_scope *s = hf_scope_new(NULL);
    int thread = atomic_fetch_add(&stage->number, 1);
    char key[16];

    snprintf(key, sizeof(key), "key-%d", thread);
    for (int i = 0; i < EVENTS; i++) {
        struct hf_event event = {.type = HF_STR("t"),
                                 .key = hf_str_from(key),
                                 .sequence = (uint64_t)(thread * EVENTS + i + 1)};

        CHECK_OK(hf_outbox_emit(s, stage->outbox, &event, 1, NULL));
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

static void *claim_some(void *user)
{
    struct stage *stage = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_claim_list list;

    do {
        hf_scope_reset(s);
        CHECK_OK(hf_outbox_claim(s, stage->outbox,
                                 HF_OPTIONS(hf_claim_options, .limit = 9, .lease_ms = 600000),
                                 &list));
        for (size_t i = 0; i < list.events_len; i++) {
            atomic_fetch_add(&stage->claimed[list.events[i].event.event.sequence - 1], 1);
            CHECK_OK(hf_outbox_published(s, stage->outbox, &list.events[i]));
            atomic_fetch_add(&stage->published, 1);
        }
    } while (list.events_len || list.refused);
    hf_scope_free(s);
    return NULL;
}

TEST(outbox_thread, each_event_goes_to_one_worker)
{
    struct stage *stage = malloc(sizeof(*stage));
    struct hf_outbox_stats stats;

    stage_open(stage);
    run_threads(stage, emit_some);
    CHECK_OK(hf_outbox_stats(stage->s, stage->outbox, 0, &stats));
    CHECK_INT(ALL, stats.pending);
    CHECK_INT(ALL, stats.due);
    run_threads(stage, claim_some);
    CHECK_INT(ALL, stage->published);
    for (int i = 0; i < ALL; i++)
        CHECK_INT(1, stage->claimed[i]);
    stage_close(stage);
    free(stage);
}

TEST(outbox_thread, the_order_of_a_key_is_that_of_its_emitter)
{
    struct stage *stage = malloc(sizeof(*stage));
    uint64_t last[THREADS] = {0};

    stage_open(stage);
    run_threads(stage, emit_some);
    for (uint32_t bucket = 0; bucket < 4; bucket++) {
        struct outbox_reading r = {.bucket = bucket,
                                   .now_ms = hf__env_wall_ms(&stage->outbox->env),
                                   .skew_ms = OUTBOX_SKEW_MS,
                                   .limit = ALL};

        CHECK_OK(hf__outbox_read(stage->s, stage->outbox, &r));
        for (size_t i = 0; i < r.len; i++) {
            uint64_t number = r.events[i].event.sequence, thread = (number - 1) / EVENTS;

            CHECK(number > last[thread]);
            last[thread] = number;
        }
    }
    for (uint64_t i = 0; i < THREADS; i++)
        CHECK_INT((i + 1) * EVENTS, last[i]);
    stage_close(stage);
    free(stage);
}

/* Who has left is not called any more, whatever the others do. */
struct guest {
    struct stage *stage;
    atomic_bool here;
};

static void called(void *user, uint32_t bucket, bool urgent)
{
    struct guest *guest = user;

    (void)bucket;
    (void)urgent;
    CHECK(atomic_load(&guest->here));
    atomic_fetch_add(&guest->stage->woken, 1);
}

static void *wake_all_the_time(void *user)
{
    struct stage *stage = user;

    while (!atomic_load(&stage->stop))
        hf_outbox_wake(stage->outbox);
    return NULL;
}

TEST(outbox_thread, who_has_left_is_not_called)
{
    struct stage *stage = malloc(sizeof(*stage));
    pthread_t waker;

    stage_open(stage);
    CHECK_INT(0, pthread_create(&waker, NULL, wake_all_the_time, stage));
    for (int i = 0; i < 1000 || !atomic_load(&stage->woken); i++) {
        struct guest *guest = malloc(sizeof(*guest));

        guest->stage = stage;
        atomic_store(&guest->here, true);
        CHECK(hf__outbox_listen(stage->outbox, called, guest));
        hf__outbox_unlisten(stage->outbox, called, guest);
        atomic_store(&guest->here, false);
        free(guest);
    }
    atomic_store(&stage->stop, true);
    CHECK_INT(0, pthread_join(waker, NULL));
    stage_close(stage);
    free(stage);
}

/* ---- without memory ------------------------------------------------------------------------- */

struct round {
    struct test *t;
    struct hf_db *db;
    struct hf_outbox *outbox;
    struct hf_scope *s;
    int number;
};

static enum hf_status emit_all_ways(struct round *r)
{
    struct hf_event events[3] = {{.type = HF_STR("a"), .key = HF_STR("k")},
                                 {.type = HF_STR("b"), .payload = hf_bytes_of("x", 1)},
                                 {.type = HF_STR("c")}};
    struct hf_tx *tx;

    TRY(hf_outbox_emit(r->s, r->outbox, events, 1, NULL));
    TRY(hf_outbox_emit(r->s, r->outbox, events, 3, NULL));
    TRY(hf_outbox_emit(r->s, r->outbox, events, 3,
                       HF_OPTIONS(hf_emit_options, .each_alone = true)));
    TRY(hf_tx_new(r->s, r->db, &tx));
    TRY(hf_outbox_emit_into(r->s, r->outbox, tx, events, 2, NULL));
    TRY(hf_tx_commit(r->s, tx, NULL));
    events[0].id = hf_scope_format(r->s, "id-%d", r->number);
    TRY(hf_scope_built(r->s));
    return hf_outbox_emit(r->s, r->outbox, events, 1, NULL);
}

static enum hf_status work_all_ways(struct round *r)
{
    const struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_claim_list claims;
    struct hf_event_list list;
    struct hf_outbox_stats stats;

    TRY(hf_outbox_claim(r->s, r->outbox, HF_OPTIONS(hf_claim_options, .limit = 5), &claims));
    if (claims.events_len < 5)
        return HF_NOMEM; /* a failure after some were claimed hands those out */
    TRY(hf_outbox_published(r->s, r->outbox, &claims.events[0]));
    TRY(hf_outbox_fail(r->s, r->outbox, &claims.events[1], &error, false, NULL));
    TRY(hf_outbox_fail(r->s, r->outbox, &claims.events[2], &error, true, NULL));
    TRY(hf_outbox_extend(r->s, r->outbox, &claims.events[3], 50000));
    TRY(hf_outbox_release(r->s, r->outbox, &claims.events[3]));
    TRY(hf_outbox_pending(r->s, r->outbox, NULL, &list));
    TRY(hf_outbox_failed(r->s, r->outbox, NULL, &list));
    TRY(hf_outbox_stats(r->s, r->outbox, 0, &stats));
    TRY(hf_outbox_retry_all(r->s, r->outbox, NULL, NULL));
    TRY(hf_outbox_discard(r->s, r->outbox, &claims.events[4].event.ref, 1, NULL));
    TRY(hf_outbox_replay(r->s, r->outbox, HF_OPTIONS(hf_event_list_options, .limit = 1), NULL));
    return hf_outbox_cleanup(r->s, r->outbox, r->t->wall_us + 1, NULL);
}

TEST(outbox_thread, no_memory_is_an_error_like_others)
{
    struct hf_scope *outer = hf_scope_new(NULL);
    struct round r = {.t = t};
    struct hf_outbox *made;

    CHECK_OK(hf_open(outer, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &r.db));
    CHECK_OK(hf_outbox_open(outer, r.db, HF_OPTIONS(hf_outbox_options, .buckets = 2), &made));
    hf_outbox_close(made);
    ALLOC_SWEEP (t, nth) {
        enum hf_status status;

        r.s = hf_scope_new(test_env(t));
        r.number++;
        r.outbox = NULL;
        status = r.s ? HF_OK : HF_NOMEM;
        if (status == HF_OK)
            status = hf_outbox_open(r.s, r.db, HF_OPTIONS(hf_outbox_options, .history_s = 3600),
                                    &r.outbox);
        if (status == HF_OK)
            status = emit_all_ways(&r);
        if (status == HF_OK)
            status = work_all_ways(&r);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        hf_outbox_close(r.outbox);
        hf_scope_free(r.s);
    }
    hf_db_close(r.db);
    hf_scope_free(outer);
}
