/*
 * patterns/timer.c: a thread that calls a function when it is due.
 *
 * Each call says when the next one is due. The wait is by the system's clock, which may stand still
 * while the machine is suspended, so no wait is longer than a second: whoever measures by the
 * elapsed clock is called soon after it has jumped.
 *
 *  (1) A wake is never lost: one that comes while the function runs leads to another call.
 *  (2) The function is never called by two threads, nor after hf__timer_stop() has returned.
 *  (3) The mutex is not held during the call.
 */
#include "patterns/private.h"

#include <pthread.h>
#include <time.h>

enum { LONGEST_WAIT_US = 1000000 };

struct timer {
    struct hf_env env;
    timer_fn *run;
    void *user;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t changed;
    bool woken;
    bool stopping;
    int64_t until_us; /* how long the thread waits, on the system's clock; INT64_MAX: it runs, or
                         waits for ever */
};

void hf__pattern_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t monotonic;

    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &monotonic);
    pthread_condattr_destroy(&monotonic);
}

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* Until somebody wakes us or the time has come; the mutex is held. */
static void wait_us(struct timer *timer, int64_t us)
{
    struct timespec until;

    if (us != INT64_MAX)
        timer->until_us = now_us() + (us < LONGEST_WAIT_US ? us : LONGEST_WAIT_US);
    until = (struct timespec){.tv_sec = timer->until_us / 1000000,
                              .tv_nsec = timer->until_us % 1000000 * 1000};
    while (!timer->woken && !timer->stopping) {
        if (us == INT64_MAX)
            pthread_cond_wait(&timer->changed, &timer->mutex);
        else if (pthread_cond_timedwait(&timer->changed, &timer->mutex, &until) != 0)
            break;
    }
    timer->until_us = INT64_MAX;
}

static void *loop(void *user)
{
    struct timer *timer = user;

    pthread_mutex_lock(&timer->mutex);
    while (!timer->stopping) {
        int64_t wait;

        timer->woken = false;
        pthread_mutex_unlock(&timer->mutex);
        wait = timer->run(timer->user);
        pthread_mutex_lock(&timer->mutex);
        if (wait > 0)
            wait_us(timer, wait);
    }
    pthread_mutex_unlock(&timer->mutex);
    return NULL;
}

static void timer_free(struct timer *timer)
{
    struct hf_env env = timer->env;

    pthread_cond_destroy(&timer->changed);
    pthread_mutex_destroy(&timer->mutex);
    env_free(&env, timer, sizeof(*timer));
}

enum hf_status hf__timer_start(struct hf_scope *s, timer_fn *run, void *user, struct timer **out)
{
    struct timer *timer = env_alloc(hf_scope_env(s), sizeof(*timer));

    *out = NULL;
    if (!timer)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a timer");
    timer->env = *hf_scope_env(s);
    timer->run = run;
    timer->user = user;
    timer->until_us = INT64_MAX;
    pthread_mutex_init(&timer->mutex, NULL);
    hf__pattern_cond_init(&timer->changed);
    if (pthread_create(&timer->thread, NULL, loop, timer) != 0) {
        timer_free(timer);
        return hf_scope_fail(s, HF_LIMIT, "the system has no thread for a timer");
    }
    *out = timer;
    return HF_OK;
}

void hf__timer_wake(struct timer *timer)
{
    pthread_mutex_lock(&timer->mutex);
    timer->woken = true;
    pthread_cond_signal(&timer->changed);
    pthread_mutex_unlock(&timer->mutex);
}

void hf__timer_wake_in(struct timer *timer, int64_t us)
{
    pthread_mutex_lock(&timer->mutex);
    if (timer->until_us > now_us() + us) {
        timer->woken = true;
        pthread_cond_signal(&timer->changed);
    }
    pthread_mutex_unlock(&timer->mutex);
}

void hf__timer_stop(struct timer *timer)
{
    if (!timer)
        return;
    pthread_mutex_lock(&timer->mutex);
    timer->stopping = true;
    pthread_cond_signal(&timer->changed);
    pthread_mutex_unlock(&timer->mutex);
    pthread_join(timer->thread, NULL);
    timer_free(timer);
}
