/*
 * coord/pump.c: worker threads that do what is due.
 *
 * A pump has some workers, all alike, and one function: the step. A step does one thing that is due,
 * if there is one, and says when the next one is. Its owner wakes the pump when something is due
 * earlier than the steps have said. Without threads the owner calls hf__pump_step() himself: that is
 * how simulations run.
 *
 * The pump knows one time, the earliest at which a step should begin. It is the least of what steps
 * returned and of what hf__pump_wake_at() named since a step began at the last such time. A step looks
 * at everything, so what another one said before is found again. A step that begins something long
 * calls hf__pump_wake_at() for what is due beside that, and another worker takes it.
 *
 *  (1) A wake is never lost: a step begins after it, unless the pump ends first. One that comes while
 *      all workers are in a step leads to another.
 *  (2) Nobody polls. Of the workers that rest, one waits until the earliest time, the others until
 *      they are woken. A worker that leaves its rest lets another one wait in its place.
 *  (3) No step begins before all threads are there, nor after hf__pump_end().
 *  (4) The mutex is not held during a step, nor while an owner's function is called. So an owner may
 *      hold his own mutex when he wakes: his comes first, then ours.
 *  (5) hf__pump_stop() waits for the time that it was given. A worker that is in its step then is left:
 *      the step goes on, no other follows. hf__pump_start() refuses to begin before it has returned,
 *      and hf__pump_close() waits for it, as it uses what is freed then.
 *  (6) Waits are on the system's clock, which stands still while the machine is suspended. So one that
 *      has an end lasts a second at most, and the elapsed clock is looked at again.
 *
 * Threads wait for what a pump does by a scope, which is canceled or has a deadline: they are
 * waiters. The owner notifies them when something has changed.
 */
#include "coord/pump.h"

#include <assert.h>

#include "base/assert_held.h"
#include "base/base.h"
#include "base/cond_monotonic.h"
#include "base/wait.h"

enum { LONGEST_WAIT_US = 1000000, SLEEP_SLICE_US = 20000 };

struct pump_worker {
    struct pump *pump;
    pthread_t thread; /* if `started` */
    pthread_t inside; /* who is in its step, if `busy` */
    bool started;     /* the thread is to be joined */
    bool busy;
    bool over; /* the thread has ended, or is about to */
};

struct pump {
    struct hf_env env;
    struct pump_options o;
    struct pump_worker *workers;
    size_t workers_len; /* one at least: without threads it is the caller's */
    struct waiters waiters;

    pthread_mutex_t mutex; /* guards all below, and what changes of the workers */
    pthread_cond_t work;   /* a step may be due, or the end has come */
    pthread_cond_t ended;  /* a thread has ended */
    bool begun;            /* all threads are there */
    bool ending;
    size_t resting;
    size_t busy;
    size_t calls;     /* steps that were asked for by wakes; at most one per worker */
    int64_t due_us;   /* the earliest time that was named */
    int64_t timed_us; /* somebody who rests waits until then; INT64_MAX: nobody does */
};

/* ---- waiters -------------------------------------------------------------------------------- */

void hf__waiters_init(struct waiters *waiters)
{
    pthread_mutex_init(&waiters->mutex, NULL);
    waiters->first = NULL;
}

void hf__waiters_free(struct waiters *waiters)
{
    assert(!waiters->first && "somebody waits for what is closed");
    pthread_mutex_destroy(&waiters->mutex);
}

void hf__waiters_notify(struct waiters *waiters)
{
    pthread_mutex_lock(&waiters->mutex);
    for (struct waiter *waiter = waiters->first; waiter; waiter = waiter->next)
        hf__scope_wake(waiter->s);
    pthread_mutex_unlock(&waiters->mutex);
}

static void waiter_add(struct waiters *waiters, struct waiter *waiter)
{
    pthread_mutex_lock(&waiters->mutex);
    waiter->next = waiters->first;
    waiters->first = waiter;
    pthread_mutex_unlock(&waiters->mutex);
}

static void waiter_remove(struct waiters *waiters, const struct waiter *waiter)
{
    struct waiter **at = &waiters->first;

    pthread_mutex_lock(&waiters->mutex);
    while (*at != waiter) {
        assert(*at && "a waiter is in its list until it leaves");
        at = &(*at)->next;
    }
    *at = waiter->next;
    pthread_mutex_unlock(&waiters->mutex);
}

static int64_t scope_now_us(const struct hf_scope *s)
{
    return hf__env_elapsed_us(hf_scope_env(s));
}

enum hf_status hf__waiters_wait(struct hf_scope *s, struct waiters *waiters, waiters_fn *holds,
                                void *user, int64_t until_us)
{
    struct waiter waiter = {.s = s};
    enum hf_status status = HF_OK;

    waiter_add(waiters, &waiter);
    while (status == HF_OK) {
        uint32_t wakes = hf__scope_wakes(s);

        if (holds(user) || scope_now_us(s) >= until_us)
            break;
        status = hf__scope_wait(s, wakes, until_us);
    }
    waiter_remove(waiters, &waiter);
    return status;
}

enum hf_status hf__waiters_pause(struct hf_scope *s, struct waiters *waiters, waiters_fn *holds,
                                 void *user, int64_t until_us)
{
    if (!hf__env_has_own_sleep(hf_scope_env(s)))
        return hf__waiters_wait(s, waiters, holds, user, until_us);
    for (;;) {
        int64_t left_us = until_us - scope_now_us(s);

        if (holds(user) || left_us <= 0)
            return HF_OK;
        left_us = left_us < SLEEP_SLICE_US ? left_us : SLEEP_SLICE_US;
        TRY(hf_scope_sleep_ms(s, (uint32_t)((left_us + 999) / 1000)));
    }
}

/* ---- workers -------------------------------------------------------------------------------- */

static void pump_check(struct pump *pump)
{
    size_t busy = 0;

    ASSERT_HELD(&pump->mutex);
    if (!DEV_CHECKS)
        return;
    for (size_t i = 0; i < pump->workers_len; i++) {
        const struct pump_worker *worker = &pump->workers[i];

        busy += worker->busy;
        assert(!(worker->busy && worker->over) && "a worker is in a step after its end");
        assert(!worker->over || worker->started);
    }
    assert(busy == pump->busy);
    assert(pump->resting + pump->busy <= pump->workers_len);
    assert(pump->calls <= pump->workers_len);
    assert((pump->timed_us == INT64_MAX || pump->resting > 0) && "nobody waits until timed_us");
}

static bool is_due(const struct pump *pump, int64_t now_us)
{
    return pump->calls > 0 || pump->due_us <= now_us;
}

/* Does nobody wait until the earliest time? */
static bool lacks_timing(const struct pump *pump)
{
    return pump->calls > 0 || pump->due_us < pump->timed_us;
}

/* Wait until a step may be due: (2), (6). */
static void worker_rest(struct pump *pump, int64_t now_us)
{
    ASSERT_HELD(&pump->mutex);
    pump->resting++;
    if (pump->begun && pump->due_us < pump->timed_us) {
        int64_t until_us = pump->due_us, left_us = until_us - now_us;

        pump->timed_us = until_us;
        cond_wait_us(&pump->work, &pump->mutex,
                     left_us < LONGEST_WAIT_US ? left_us : LONGEST_WAIT_US);
        if (pump->timed_us == until_us)
            pump->timed_us = INT64_MAX;
    } else {
        pthread_cond_wait(&pump->work, &pump->mutex);
    }
    pump->resting--;
}

/* One step, on this thread. (4) */
static int64_t worker_step(struct pump *pump, struct pump_worker *worker, int64_t now_us)
{
    int64_t next_us;

    ASSERT_HELD(&pump->mutex);
    assert(!pump->ending && !worker->busy);
    pump->calls -= pump->calls > 0;
    if (pump->due_us <= now_us)
        pump->due_us = INT64_MAX;
    if (pump->resting && lacks_timing(pump)) /* (2) */
        pthread_cond_signal(&pump->work);
    worker->busy = true;
    worker->inside = pthread_self();
    pump->busy++;
    pump_check(pump);
    pthread_mutex_unlock(&pump->mutex);
    next_us = pump->o.step((size_t)(worker - pump->workers), pump->o.user);
    pthread_mutex_lock(&pump->mutex);
    worker->busy = false;
    pump->busy--;
    if (next_us < pump->due_us)
        pump->due_us = next_us;
    pump_check(pump);
    return next_us;
}

static void *run_worker(void *user)
{
    struct pump_worker *worker = user;
    struct pump *pump = worker->pump;

    pthread_mutex_lock(&pump->mutex);
    while (!pump->ending) {
        int64_t now_us = hf__env_elapsed_us(&pump->env);

        if (pump->begun && is_due(pump, now_us)) /* (3) */
            (void)worker_step(pump, worker, now_us);
        else
            worker_rest(pump, now_us);
    }
    assert(!worker->busy && worker->started);
    worker->over = true;
    pthread_cond_broadcast(&pump->ended);
    hf__waiters_notify(&pump->waiters);
    pthread_mutex_unlock(&pump->mutex); /* joined before anything is freed */
    return NULL;
}

/* ---- waking --------------------------------------------------------------------------------- */

void hf__pump_wake(struct pump *pump)
{
    pthread_mutex_lock(&pump->mutex);
    if (pump->calls < pump->workers_len)
        pump->calls++;
    if (pump->resting)
        pthread_cond_signal(&pump->work);
    pthread_mutex_unlock(&pump->mutex);
}

void hf__pump_wake_all(struct pump *pump)
{
    pthread_mutex_lock(&pump->mutex);
    pump->calls = pump->workers_len;
    pthread_cond_broadcast(&pump->work);
    pthread_mutex_unlock(&pump->mutex);
}

void hf__pump_wake_at(struct pump *pump, int64_t at_us)
{
    pthread_mutex_lock(&pump->mutex);
    if (at_us < pump->due_us)
        pump->due_us = at_us;
    if (pump->resting && pump->due_us < pump->timed_us)
        pthread_cond_signal(&pump->work);
    pthread_mutex_unlock(&pump->mutex);
}

int64_t hf__pump_step(struct pump *pump)
{
    int64_t next_us = INT64_MAX;

    assert(!pump->o.workers && "a pump with threads was called");
    pthread_mutex_lock(&pump->mutex);
    if (!pump->ending) {
        next_us = worker_step(pump, &pump->workers[0], hf__env_elapsed_us(&pump->env));
        pump->due_us = INT64_MAX; /* the caller knows */
    }
    pthread_mutex_unlock(&pump->mutex);
    return next_us;
}

bool hf__pump_is_inside(struct pump *pump)
{
    bool inside = false;

    if (!pump)
        return false;
    pthread_mutex_lock(&pump->mutex);
    for (size_t i = 0; i < pump->workers_len; i++)
        inside = inside ||
                 (pump->workers[i].busy && pthread_equal(pump->workers[i].inside, pthread_self()));
    pthread_mutex_unlock(&pump->mutex);
    return inside;
}

/* ---- the end -------------------------------------------------------------------------------- */

void hf__pump_end(struct pump *pump)
{
    pthread_mutex_lock(&pump->mutex);
    pump->ending = true;
    pthread_cond_broadcast(&pump->work);
    pthread_mutex_unlock(&pump->mutex);
}

/* How many threads have not ended. */
static size_t count_running(const struct pump *pump)
{
    size_t running = 0;

    for (size_t i = 0; i < pump->workers_len; i++)
        running += pump->workers[i].started && !pump->workers[i].over;
    return running;
}

/* Join those that have ended; how many have not. */
static size_t join_ended(struct pump *pump)
{
    size_t left = 0;

    for (size_t i = 0; i < pump->workers_len; i++) {
        struct pump_worker *worker = &pump->workers[i];
        bool over;

        pthread_mutex_lock(&pump->mutex);
        over = worker->started && worker->over;
        left += worker->started && !worker->over;
        pthread_mutex_unlock(&pump->mutex);
        if (!over)
            continue;
        pthread_join(worker->thread, NULL);
        pthread_mutex_lock(&pump->mutex);
        worker->started = worker->over = false;
        pthread_mutex_unlock(&pump->mutex);
    }
    return left;
}

size_t hf__pump_stop(struct pump *pump, int64_t for_us)
{
    int64_t began_us = hf__env_elapsed_us(&pump->env);

    assert(!hf__pump_is_inside(pump) && "a step waits for its own end");
    hf__pump_end(pump);
    pthread_mutex_lock(&pump->mutex);
    while (count_running(pump)) {
        int64_t left_us = for_us - (hf__env_elapsed_us(&pump->env) - began_us);

        if (left_us <= 0)
            break;
        cond_wait_us(&pump->ended, &pump->mutex,
                     left_us < LONGEST_WAIT_US ? left_us : LONGEST_WAIT_US);
    }
    pthread_mutex_unlock(&pump->mutex);
    return join_ended(pump);
}

static bool has_ended(void *user)
{
    struct pump *pump = user;
    bool ended;

    pthread_mutex_lock(&pump->mutex);
    ended = !count_running(pump);
    pthread_mutex_unlock(&pump->mutex);
    return ended;
}

enum hf_status hf__pump_let_end(struct hf_scope *s, struct pump *pump)
{
    assert(!hf__pump_is_inside(pump) && "a step waits for its own end");
    return hf__waiters_wait(s, &pump->waiters, has_ended, pump, INT64_MAX);
}

size_t hf__pump_left(struct pump *pump)
{
    return join_ended(pump);
}

/* ---- the beginning -------------------------------------------------------------------------- */

enum hf_status hf__pump_open(struct hf_scope *s, const struct pump_options *options,
                             struct pump **out)
{
    const struct hf_env *env = hf_scope_env(s);
    size_t len = options->workers ? options->workers : 1;
    struct pump *pump = hf__env_zalloc(env, sizeof(*pump));

    *out = NULL;
    if (pump)
        pump->workers = hf__env_zalloc(env, len * sizeof(*pump->workers));
    if (!pump || !pump->workers) {
        hf__env_free(env, pump, sizeof(*pump));
        return hf_scope_fail(s, HF_NOMEM, "no memory for workers");
    }
    pump->env = *env;
    pump->o = *options;
    pump->workers_len = len;
    pump->due_us = pump->timed_us = INT64_MAX;
    for (size_t i = 0; i < len; i++)
        pump->workers[i].pump = pump;
    pthread_mutex_init(&pump->mutex, NULL);
    cond_monotonic_init(&pump->work);
    cond_monotonic_init(&pump->ended);
    hf__waiters_init(&pump->waiters);
    *out = pump;
    return HF_OK;
}

void hf__pump_close(struct pump *pump)
{
    struct hf_env env;

    if (!pump)
        return;
    (void)hf__pump_stop(pump, INT64_MAX);
    env = pump->env;
    hf__waiters_free(&pump->waiters);
    pthread_cond_destroy(&pump->ended);
    pthread_cond_destroy(&pump->work);
    pthread_mutex_destroy(&pump->mutex);
    hf__env_free(&env, pump->workers, pump->workers_len * sizeof(*pump->workers));
    hf__env_free(&env, pump, sizeof(*pump));
}

static void set_begun(struct pump *pump, bool begun)
{
    pthread_mutex_lock(&pump->mutex);
    assert(!pump->busy && "(5) a step goes on");
    pump->begun = begun;
    pump->ending = false;
    pump->due_us = begun ? 0 : INT64_MAX;
    pthread_cond_signal(&pump->work);
    pthread_mutex_unlock(&pump->mutex);
}

enum hf_status hf__pump_start(struct hf_scope *s, struct pump *pump)
{
    if (join_ended(pump))
        return hf_scope_fail(s, HF_IN_USE, "a step from before the last stop has not returned");
    set_begun(pump, false);
    for (size_t i = 0; i < pump->o.workers; i++) {
        struct pump_worker *worker = &pump->workers[i];
        bool started;

        pthread_mutex_lock(&pump->mutex);
        started = pthread_create(&worker->thread, NULL, run_worker, worker) == 0;
        worker->started = started;
        pthread_mutex_unlock(&pump->mutex);
        if (!started) {
            (void)hf__pump_stop(pump, INT64_MAX);
            return hf_scope_fail(s, HF_LIMIT, "cannot start a thread for worker %zu", i + 1);
        }
    }
    set_begun(pump, true);
    return HF_OK;
}
