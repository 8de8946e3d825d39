/*
 * events/subscribe/subscribe_run.c: a subscription on threads of its own: one that works, one that renews
 * the lease, and how they are started and stopped. Both are pumps (coord/pump.c). (n) is an invariant of
 * subscribe.c.
 */
#include "events/subscribe/subscribe.h"

enum { FINAL_WRITE_MS = 2000 }; /* for the checkpoint and the lease, when a deadline has passed */

static void worker_wake(void *user)
{
    struct hf_subscription *sub = user;

    hf__pump_wake(sub->worker);
}

/* A step of the subscription: a pump_step_fn. */
static int64_t worker_step(size_t worker, void *user)
{
    struct hf_subscription *sub = user;
    uint32_t wait_ms = sub->o.poll_ms;
    enum hf_status status;
    bool gave_up;

    (void)worker;
    hf_scope_reset(sub->scope);
    status = hf__sub_step_run(sub->scope, sub, &wait_ms);
    /* A database may have stopped, too; then the lease is still held. */
    gave_up = status == HF_LOST || (status == HF_STOPPED && sub->gave_up && !sub->held);
    if (status != HF_OK && status != HF_LOCKED && !gave_up && !hf__sub_stops(sub)) {
        hf__sub_notify(sub, HF_SUBSCRIPTION_TROUBLE, NULL, hf_scope_error(sub->scope));
        if (!wait_ms)
            wait_ms = sub->o.poll_ms;
    }
    if (gave_up)
        return INT64_MAX;
    return hf__env_elapsed_us(&sub->env) + (int64_t)wait_ms * 1000;
}

/* Is there a lease, and is it time to renew it? */
static bool renewal_is_due(struct hf_subscription *sub)
{
    int64_t now_us = hf__env_elapsed_us(&sub->env);
    bool due;

    pthread_mutex_lock(&sub->mutex);
    due = sub->held && !lease_is_over(&sub->lease, now_us) && now_us + 1000 >= sub->lease.due_us;
    pthread_mutex_unlock(&sub->mutex);
    return due;
}

/* Renew the lease, and look whether the function is stuck: a pump_step_fn. */
static int64_t heartbeat_step(size_t worker, void *user)
{
    struct hf_subscription *sub = user;
    int64_t every_us = (int64_t)hf__sub_terms(sub).heartbeat_ms * 1000, wait_us = every_us / 2,
            stuck_us;

    (void)worker;
    stuck_us = hf__sub_stuck_check(sub->heartbeat_scope, sub);
    hf_scope_reset(sub->heartbeat_scope);
    hf_scope_timeout_ms(sub->heartbeat_scope, sub->o.lease_ms); /* later it is of no use */
    if (renewal_is_due(sub) && hf__sub_lease_renew(sub->heartbeat_scope, sub) != HF_OK)
        wait_us = every_us / 4;
    return hf__env_elapsed_us(&sub->env) + (stuck_us < wait_us ? stuck_us : wait_us);
}

static enum hf_status pump_start(struct hf_scope *s, struct hf_subscription *sub,
                                 pump_step_fn *step, struct pump **pump)
{
    TRY(hf__pump_open(s, &(struct pump_options){.workers = 1, .step = step, .user = sub}, pump));
    return hf__pump_start(s, *pump);
}

static void close_pumps(struct hf_subscription *sub)
{
    hf__pump_close(sub->worker);
    hf__pump_close(sub->heartbeat);
    sub->worker = sub->heartbeat = NULL;
}

enum hf_status hf_subscription_start(struct hf_scope *s, struct hf_subscription *sub)
{
    enum hf_status status;

    call_begins(s);
    if (sub->o.no_threads)
        return hf_scope_fail(s, HF_INVALID, "subscription \"%.*s\" was opened with no_threads",
                             HF_FMT(sub->name));
    if (sub->worker)
        return hf_scope_fail(s, HF_IN_USE, "subscription \"%.*s\" is already running",
                             HF_FMT(sub->name));
    sub->stopping = sub->gave_up = false;
    sub->looked_us = 0;
    status = pump_start(s, sub, heartbeat_step, &sub->heartbeat);
    if (status == HF_OK)
        status = pump_start(s, sub, worker_step, &sub->worker);
    if (status == HF_OK)
        status = hf_events_listen(s, sub->store, worker_wake, sub);
    sub->listening = status == HF_OK;
    if (status != HF_OK)
        close_pumps(sub);
    assert((sub->worker != NULL) == sub->listening);
    return status;
}

/* (5) The lease is others', and what the function says later changes nothing. */
static void worker_abandon(struct hf_subscription *sub)
{
    struct pattern_id token;
    bool held;

    hf__pump_close(sub->heartbeat);
    sub->heartbeat = NULL;
    pthread_mutex_lock(&sub->mutex);
    held = sub->held && sub->lease.until_us;
    sub->lease.until_us = 0;
    token = sub->token;
    pthread_mutex_unlock(&sub->mutex);
    hf_scope_reset(sub->heartbeat_scope);
    hf_scope_timeout_ms(sub->heartbeat_scope, FINAL_WRITE_MS);
    if (held) /* if that cannot be done, it ends */
        (void)!hf__sub_release(sub->heartbeat_scope, sub->store, sub->pk, id_str(&token),
                               (struct hf_str){0});
}

enum hf_status hf__sub_threads_stop(struct hf_scope *s, struct hf_subscription *sub, bool *left)
{
    enum hf_status status;

    *left = false;
    if (!sub->worker)
        return HF_OK;
    if (sub->listening)
        hf_events_unlisten(sub->store, worker_wake, sub);
    sub->listening = false;
    pthread_mutex_lock(&sub->mutex);
    sub->stopping = true;
    pthread_mutex_unlock(&sub->mutex);
    hf__pump_end(sub->worker);
    status = s ? hf__pump_let_end(s, sub->worker) : HF_TIMEOUT;
    if (status != HF_OK) {
        hf_scope_cancel(sub->scope);
        hf_scope_cancel(sub->work);
        *left = hf__pump_stop(sub->worker,
                              s ? INT64_C(1000) * HF_SUBSCRIPTION_CANCEL_MS : INT64_MAX) > 0;
    }
    if (*left)
        worker_abandon(sub);
    else
        close_pumps(sub);
    return status;
}

/* (3) */
enum hf_status hf__sub_final_write(struct hf_subscription *sub)
{
    enum hf_status status = HF_OK;

    assert(!sub->worker && !sub->heartbeat); /* nobody else is at it any more */
    hf_scope_reset(sub->scope);
    hf_scope_timeout_ms(sub->scope, FINAL_WRITE_MS);
    if (sub->held) {
        status = hf__sub_holds(sub) ? hf__sub_checkpoint(sub->scope, sub) : HF_OK;
        if (status == HF_OK && hf__sub_holds(sub))
            status = hf__suspects_failed(sub->scope, sub);
        if (status == HF_OK || status == HF_LOST || status == HF_IN_USE)
            status = hf__sub_release(sub->scope, sub->store, sub->pk, id_str(&sub->token),
                                     (struct hf_str){0});
    }
    hf__sub_source_close(sub);
    sub->held = false;
    sub->rebuild = false;
    sub->gave_up = false;
    sub->stopping = false;
    sub->sight.seen = false;
    sub->metrics.fence = 0;
    sub->metrics.state = HF_SUBSCRIPTION_IDLE;
    return status;
}

enum hf_status hf_subscription_stop(struct hf_scope *s, struct hf_subscription *sub)
{
    enum hf_status status, last;
    bool left;

    call_begins(s);
    if (hf__pump_is_inside(sub->worker) || hf__pump_is_inside(sub->heartbeat))
        return hf_scope_fail(
            s, HF_INVALID,
            "hf_subscription_stop() was called by a handler of \"%.*s\": it would wait for "
            "itself; call it on another thread",
            HF_FMT(sub->name));
    status = hf__sub_threads_stop(s, sub, &left);
    if (left)
        return hf_scope_fail(
            s, HF_TIMEOUT,
            "a handler of \"%.*s\" has not returned %d ms after it was canceled: its events are "
            "left to others; stop the subscription again, or close it, which waits for the handler",
            HF_FMT(sub->name), HF_SUBSCRIPTION_CANCEL_MS);
    last = hf__sub_final_write(sub);
    if (status != HF_OK)
        return hf_scope_fail(s, status, "a handler of \"%.*s\" had to be canceled",
                             HF_FMT(sub->name));
    if (last != HF_OK)
        return hf_scope_fail_from(s, last, sub->scope);
    return HF_OK;
}
