/*
 * server/conn/syncer.c: one thread, one sync after the other.
 */
#include "server/conn/syncer.h"

#include <sched.h>
#include <string.h>

#include "base/assert_held.h"
#include "base/base.h"
#include "base/sched_slice.h"

/* Called and left with the lock held, which is free meanwhile. */
static void sync_requested(struct syncer *syncer)
{
    uint64_t upto = syncer->requested;
    bool durable;

    ASSERT_HELD(&syncer->lock);
    assert(upto > syncer->finished);
    pthread_mutex_unlock(&syncer->lock);
    hf_scope_reset(syncer->scope);
    durable = hf__db_sync(syncer->scope, syncer->db, upto) == HF_OK;
    pthread_mutex_lock(&syncer->lock);
    assert(upto <= syncer->requested && upto > syncer->finished && syncer->runs);
    if (durable)
        syncer->durable = upto;
    syncer->finished = upto;
    assert(syncer->durable <= syncer->finished); /* (2) */
    pthread_mutex_unlock(&syncer->lock);
    syncer->on_synced(syncer->user);
    sched_yield(); /* where loops wait for a core, what they do with it is in the next sync */
    pthread_mutex_lock(&syncer->lock);
}

static void *run_syncer(void *user)
{
    struct syncer *syncer = user;

    (void)sched_slice_set(SHORT_SLICE_NS);
    pthread_mutex_lock(&syncer->lock);
    for (;;) {
        if (syncer->requested > syncer->finished) {
            sync_requested(syncer);
            continue;
        }
        if (syncer->stops)
            break;
        syncer->sleeps = true;
        pthread_cond_wait(&syncer->changed, &syncer->lock);
        syncer->sleeps = false;
    }
    pthread_mutex_unlock(&syncer->lock);
    return NULL;
}

enum hf_status hf__syncer_start(struct hf_scope *s, struct syncer *syncer, const struct hf_env *env,
                                struct hf_db *db, void (*on_synced)(void *user), void *user)
{
    bool started;

    memset(syncer, 0, sizeof(*syncer));
    syncer->db = db;
    syncer->on_synced = on_synced;
    syncer->user = user;
    syncer->scope = hf_scope_new(env);
    if (!syncer->scope)
        return hf__fail_nomem(s);
    pthread_mutex_init(&syncer->lock, NULL);
    pthread_cond_init(&syncer->changed, NULL);
    syncer->runs = true; /* before the thread is there, which reads it */
    started = pthread_create(&syncer->thread, NULL, run_syncer, syncer) == 0;
    if (started)
        return HF_OK;
    syncer->runs = false;
    pthread_cond_destroy(&syncer->changed);
    pthread_mutex_destroy(&syncer->lock);
    hf_scope_free(syncer->scope);
    return hf__fail(s, HF_LIMIT, "cannot start a thread: is the limit of processes reached?");
}

bool hf__syncer_request(struct syncer *syncer, uint64_t ticket)
{
    bool unfinished, wake = false;

    assert(ticket > 0 && syncer->runs);
    pthread_mutex_lock(&syncer->lock);
    assert(!syncer->stops);
    unfinished = ticket > syncer->finished;
    if (ticket > syncer->requested) {
        syncer->requested = ticket;
        wake = syncer->sleeps;
    }
    pthread_mutex_unlock(&syncer->lock);
    if (wake)
        pthread_cond_signal(&syncer->changed);
    return unfinished;
}

void hf__syncer_stop(struct syncer *syncer)
{
    assert(syncer->runs);
    pthread_mutex_lock(&syncer->lock);
    assert(!syncer->stops);
    syncer->stops = true;
    pthread_cond_signal(&syncer->changed);
    pthread_mutex_unlock(&syncer->lock);
    pthread_join(syncer->thread, NULL);
    assert(syncer->finished == syncer->requested); /* (1) */
    pthread_cond_destroy(&syncer->changed);
    pthread_mutex_destroy(&syncer->lock);
    hf_scope_free(syncer->scope);
    syncer->runs = false;
}
