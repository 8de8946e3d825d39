/*
 * coord/timer.c: functions that are called when they are due, by a thread.
 *
 * Each call says when the next one is due. The wait is by the system's clock, which may stand still
 * while the machine is suspended, so no wait is longer than a second: whoever measures by the
 * elapsed clock is called soon after it has jumped.
 *
 * A timer has a thread of its own, or shares that of its database: the heartbeats of locks and of
 * what is done once do, as they talk to the same database anyway. A call of these is one request,
 * for a part of its lease, and returns 0 when there may be more: so one table does not wait for a
 * round of another. Consumers and processors have their own: they renew what has long leases, and
 * may wait for a throttled table for longer than others have. So has what calls into the user's
 * program.
 *
 *  (1) A wake is never lost: one that comes while the function runs leads to another call.
 *  (2) The function is never called by two threads, nor after hf__timer_stop() has returned.
 *  (3) The mutex is not held during the call.
 *  (4) Of timers that are due the one that is so for longest is next, so none starves another.
 */
#include "base/assert_held.h"
#include "coord/pattern.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>

enum { LONGEST_WAIT_US = 1000000 };

struct timer {
    struct timer *next;
    struct timer_thread *thread;
    struct hf_db *db; /* whose thread it is; NULL: our own */
    struct hf_env env;
    timer_fn *run;
    void *user;
    int64_t due_us; /* on the system's clock; INT64_MAX: when it is woken */
    bool woken;     /* it was woken while its function ran */
};

struct timer_thread {
    struct hf_env env;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards all below, and what changes of the timers */
    pthread_cond_t changed;
    pthread_cond_t ended; /* a call has ended */
    struct timer *timers;
    struct timer *running; /* its function is being called; NULL: none */
    pthread_t runner;      /* the thread that calls it, if one is running */
    bool stopping;
};

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static struct timespec time_at(int64_t us)
{
    return (struct timespec){.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
}

/* ---- the thread ----------------------------------------------------------------------------- */

/* The timer that is due first; NULL: there are none. */
static struct timer *first_due(const struct timer_thread *thread)
{
    struct timer *first = thread->timers;

    for (struct timer *timer = first; timer; timer = timer->next)
        if (timer->due_us < first->due_us)
            first = timer;
    return first;
}

/* Wait until something changes or the time has come. The mutex is held. */
static void wait_until(struct timer_thread *thread, int64_t until_us)
{
    struct timespec until = time_at(until_us);

    ASSERT_HELD(&thread->mutex);
    if (until_us == INT64_MAX)
        pthread_cond_wait(&thread->changed, &thread->mutex);
    else
        pthread_cond_timedwait(&thread->changed, &thread->mutex, &until);
}

/* Call its function. The mutex is held, but not during the call (3). */
static void timer_call(struct timer_thread *thread, struct timer *timer)
{
    int64_t wait;

    ASSERT_HELD(&thread->mutex);
    assert(!thread->running && timer->thread == thread && "(2)");
    timer->woken = false;
    thread->running = timer;
    thread->runner = pthread_self();
    pthread_mutex_unlock(&thread->mutex);
    wait = timer->run(timer->user);
    pthread_mutex_lock(&thread->mutex);
    thread->running = NULL;
    if (wait < 0 || timer->woken)
        wait = 0;
    timer->due_us = wait == INT64_MAX
                        ? INT64_MAX
                        : now_us() + (wait < LONGEST_WAIT_US ? wait : LONGEST_WAIT_US);
    pthread_cond_broadcast(&thread->ended);
}

static void *thread_run(void *user)
{
    struct timer_thread *thread = user;

    pthread_mutex_lock(&thread->mutex);
    while (!thread->stopping) {
        struct timer *timer = first_due(thread);
        int64_t due = timer ? timer->due_us : INT64_MAX;

        if (due <= now_us()) {
            timer_call(thread, timer);
            pthread_mutex_unlock(&thread->mutex); /* other threads get it, however much is due */
            sched_yield();
            pthread_mutex_lock(&thread->mutex);
        } else {
            wait_until(thread, due);
        }
    }
    pthread_mutex_unlock(&thread->mutex);
    return NULL;
}

static void thread_free(struct timer_thread *thread)
{
    struct hf_env env = thread->env;

    assert(!thread->timers && !thread->running);
    pthread_cond_destroy(&thread->changed);
    pthread_cond_destroy(&thread->ended);
    pthread_mutex_destroy(&thread->mutex);
    hf__env_free(&env, thread, sizeof(*thread));
}

static enum hf_status thread_make(struct hf_scope *s, void **object)
{
    struct timer_thread *thread = hf__env_zalloc(hf_scope_env(s), sizeof(*thread));

    if (!thread)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a timer");
    thread->env = *hf_scope_env(s);
    pthread_mutex_init(&thread->mutex, NULL);
    cond_monotonic_init(&thread->changed);
    pthread_cond_init(&thread->ended, NULL);
    if (pthread_create(&thread->thread, NULL, thread_run, thread) != 0) {
        thread_free(thread);
        return hf_scope_fail(s, HF_LIMIT, "cannot start a thread for a timer");
    }
    *object = thread;
    return HF_OK;
}

static void thread_end(void *object)
{
    struct timer_thread *thread = object;

    pthread_mutex_lock(&thread->mutex);
    thread->stopping = true;
    pthread_cond_signal(&thread->changed);
    pthread_mutex_unlock(&thread->mutex);
    pthread_join(thread->thread, NULL);
    thread_free(thread);
}

static const struct hf_shared_kind beats = {thread_make, thread_end};

/* ---- timers --------------------------------------------------------------------------------- */

/* On the thread that `db` has for it, or one of its own. */
static enum hf_status timer_new(struct hf_scope *s, struct hf_db *db, timer_fn *run, void *user,
                                struct timer **out)
{
    const struct hf_env *env = hf_scope_env(s);
    struct timer *timer = hf__env_zalloc(env, sizeof(*timer));
    enum hf_status status;
    void *thread = NULL;

    *out = NULL;
    if (!timer)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a timer");
    status = db ? hf_db_share(s, db, &beats, &thread) : thread_make(s, &thread);
    if (status != HF_OK) {
        hf__env_free(env, timer, sizeof(*timer));
        return status;
    }
    timer->env = *env;
    timer->db = db;
    timer->run = run;
    timer->user = user;
    timer->thread = thread;
    pthread_mutex_lock(&timer->thread->mutex);
    timer->due_us = now_us();
    timer->next = timer->thread->timers;
    timer->thread->timers = timer;
    pthread_cond_signal(&timer->thread->changed);
    pthread_mutex_unlock(&timer->thread->mutex);
    *out = timer;
    return HF_OK;
}

enum hf_status hf__timer_start(struct hf_scope *s, timer_fn *run, void *user, struct timer **timer)
{
    return timer_new(s, NULL, run, user, timer);
}

enum hf_status hf__timer_join(struct hf_scope *s, struct hf_db *db, timer_fn *run, void *user,
                              struct timer **timer)
{
    return timer_new(s, db, run, user, timer);
}

/* The mutex is held. (4): it is due from now on, unless it is already. */
static void timer_make_due(struct timer *timer)
{
    int64_t now = now_us();

    ASSERT_HELD(&timer->thread->mutex);
    timer->woken = true;
    timer->due_us = timer->due_us < now ? timer->due_us : now;
    pthread_cond_signal(&timer->thread->changed);
}

void hf__timer_wake(struct timer *timer)
{
    pthread_mutex_lock(&timer->thread->mutex);
    timer_make_due(timer);
    pthread_mutex_unlock(&timer->thread->mutex);
}

void hf__timer_wake_in(struct timer *timer, int64_t us)
{
    pthread_mutex_lock(&timer->thread->mutex);
    if (timer->thread->running == timer || timer->due_us > now_us() + us)
        timer_make_due(timer);
    pthread_mutex_unlock(&timer->thread->mutex);
}

/* The mutex is held. */
static bool is_inside(const struct timer_thread *thread, const struct timer *timer)
{
    return thread->running == timer && pthread_equal(thread->runner, pthread_self());
}

void hf__timer_stop(struct timer *timer)
{
    struct timer_thread *thread;
    struct timer **at;
    struct hf_env env;

    if (!timer)
        return;
    env = timer->env;
    thread = timer->thread;
    pthread_mutex_lock(&thread->mutex);
    assert(!is_inside(thread, timer) && "a function stops or closes what has called it");
    while (thread->running == timer)
        pthread_cond_wait(&thread->ended, &thread->mutex);
    for (at = &thread->timers; *at != timer; at = &(*at)->next)
        assert(*at && "a timer is in the list of its thread");
    *at = timer->next;
    pthread_mutex_unlock(&thread->mutex);
    if (timer->db)
        hf_db_unshare(timer->db, &beats);
    else
        thread_end(thread);
    hf__env_free(&env, timer, sizeof(*timer));
}
