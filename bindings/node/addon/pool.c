/*
 * pool.c: threads for calls that may block; see the header.
 *
 * What always holds, under the mutex:
 *
 *  (1) `idle` threads wait for `wake`; a task in the queue has an idle thread that was woken for it, a
 *      thread that was started for it, or all `max` threads are at work.
 *  (2) A thread is counted in `threads` from before it is started until it touches the pool no more
 *      but for its unlock.
 */
#include "pool.h"

#include <assert.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

enum { IDLE_S = 5 }; /* after which a thread without a task ends */

struct pool {
    pthread_mutex_t mutex;
    pthread_cond_t wake;  /* a task, or the end */
    pthread_cond_t ended; /* of a thread */
    pthread_attr_t attr;
    struct task *first, **last;
    unsigned queued;
    unsigned idle;
    unsigned threads;
    unsigned max;
    bool stop;
};

struct pool *pool_new(unsigned max_threads)
{
    struct pool *pool = calloc(1, sizeof(*pool));
    pthread_condattr_t clock;

    if (!pool)
        return NULL;
    pool->max = max_threads;
    pool->last = &pool->first;
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&pool->wake, &clock);
    pthread_condattr_destroy(&clock);
    pthread_cond_init(&pool->ended, NULL);
    pthread_attr_init(&pool->attr);
    pthread_attr_setdetachstate(&pool->attr, PTHREAD_CREATE_DETACHED);
    return pool;
}

/* Wait for a task. NULL: the thread is to end. Call and return with the mutex held. */
static struct task *next_task(struct pool *pool)
{
    struct timespec until;
    struct task *task;
    int late = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += IDLE_S;
    pool->idle++;
    while (!pool->first && !pool->stop && late == 0)
        late = pthread_cond_timedwait(&pool->wake, &pool->mutex, &until);
    pool->idle--;
    task = pool->first;
    if (task) {
        pool->first = task->next;
        if (!pool->first)
            pool->last = &pool->first;
        pool->queued--;
    }
    return task;
}

static void *work(void *arg)
{
    struct pool *pool = arg;
    struct task *task;

    pthread_mutex_lock(&pool->mutex);
    while ((task = next_task(pool)) != NULL) {
        pthread_mutex_unlock(&pool->mutex);
        task->run(task);
        pthread_mutex_lock(&pool->mutex);
    }
    pool->threads--; /* (2) */
    pthread_cond_signal(&pool->ended);
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* Signals are for the threads of node. */
static bool start_thread(struct pool *pool)
{
    sigset_t all, before;
    pthread_t thread;
    int failed;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    failed = pthread_create(&thread, &pool->attr, work, pool);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return failed == 0;
}

bool pool_submit(struct pool *pool, struct task *task)
{
    bool ok = true;

    pthread_mutex_lock(&pool->mutex);
    assert(!pool->stop);
    if (pool->queued >= pool->idle && pool->threads < pool->max) { /* (1) */
        pool->threads++;
        if (!start_thread(pool)) {
            pool->threads--;
            ok = pool->threads > 0;
        }
    }
    if (ok) {
        task->next = NULL;
        *pool->last = task;
        pool->last = &task->next;
        pool->queued++;
        pthread_cond_signal(&pool->wake);
    }
    pthread_mutex_unlock(&pool->mutex);
    return ok;
}

void pool_free(struct pool *pool)
{
    if (!pool)
        return;
    pthread_mutex_lock(&pool->mutex);
    pool->stop = true;
    pthread_cond_broadcast(&pool->wake);
    while (pool->threads > 0)
        pthread_cond_wait(&pool->ended, &pool->mutex);
    pthread_mutex_unlock(&pool->mutex);
    assert(!pool->first);
    pthread_attr_destroy(&pool->attr);
    pthread_cond_destroy(&pool->ended);
    pthread_cond_destroy(&pool->wake);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}
