/*
 * server/settler.c: one thread, one wait after the other.
 */
#include "server/settler.h"

#include <sched.h>
#include <string.h>

#include "base/base.h"
#include "base/turns.h"

/* Called and left with lock held, which is free meanwhile. */
static void settle(struct settler *settler)
{
    uint64_t upto = settler->wanted;
    bool paid;

    pthread_mutex_unlock(&settler->lock);
    hf_scope_reset(settler->scope);
    paid = hf__db_settle(settler->scope, settler->db, upto) == HF_OK;
    pthread_mutex_lock(&settler->lock);
    if (paid)
        settler->paid = upto;
    settler->tried = upto;
    pthread_mutex_unlock(&settler->lock);
    settler->done(settler->user);
    sched_yield(); /* where loops wait for a core, what they do with it is in the next sync */
    pthread_mutex_lock(&settler->lock);
}

static void *run(void *user)
{
    struct settler *settler = user;

    (void)take_turns(SHORT_TURN_NS);
    pthread_mutex_lock(&settler->lock);
    for (;;) {
        if (settler->wanted > settler->tried) {
            settle(settler);
            continue;
        }
        if (settler->stops)
            break;
        settler->sleeps = true;
        pthread_cond_wait(&settler->asked, &settler->lock);
        settler->sleeps = false;
    }
    pthread_mutex_unlock(&settler->lock);
    return NULL;
}

enum hf_status hf__settler_start(struct hf_scope *s, struct settler *settler,
                                 const struct hf_env *env, struct hf_db *db,
                                 void (*done)(void *user), void *user)
{
    memset(settler, 0, sizeof(*settler));
    settler->db = db;
    settler->done = done;
    settler->user = user;
    settler->scope = hf_scope_new(env);
    if (!settler->scope)
        return hf__fail_nomem(s);
    pthread_mutex_init(&settler->lock, NULL);
    pthread_cond_init(&settler->asked, NULL);
    settler->runs = pthread_create(&settler->thread, NULL, run, settler) == 0;
    if (settler->runs)
        return HF_OK;
    pthread_cond_destroy(&settler->asked);
    pthread_mutex_destroy(&settler->lock);
    hf_scope_free(settler->scope);
    return hf__fail(s, HF_IO, "cannot start a thread");
}

bool hf__settler_ask(struct settler *settler, uint64_t ticket)
{
    bool wait, wake = false;

    pthread_mutex_lock(&settler->lock);
    wait = ticket > settler->tried;
    if (ticket > settler->wanted) {
        settler->wanted = ticket;
        wake = settler->sleeps;
    }
    pthread_mutex_unlock(&settler->lock);
    if (wake)
        pthread_cond_signal(&settler->asked);
    return wait;
}

void hf__settler_stop(struct settler *settler)
{
    pthread_mutex_lock(&settler->lock);
    settler->stops = true;
    pthread_cond_signal(&settler->asked);
    pthread_mutex_unlock(&settler->lock);
    pthread_join(settler->thread, NULL);
    pthread_cond_destroy(&settler->asked);
    pthread_mutex_destroy(&settler->lock);
    hf_scope_free(settler->scope);
    settler->runs = false;
}
