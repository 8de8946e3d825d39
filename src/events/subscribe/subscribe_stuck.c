/*
 * events/subscribe/subscribe_stuck.c: functions that do not return.
 *
 * The thread that renews the lease looks at how long a call of the function is under way. At
 * stuck_ms it says so, once for each call, and does what the option `stuck` asks for:
 *
 *     HF_STUCK_LEAVE    nothing
 *     HF_STUCK_RELEASE  the lease is given back, so that another process takes over
 *     HF_STUCK_GIVE_UP  the event is parked, and the lease given back. Of several events in one
 *                       call nobody knows which it is: then the lease is left to end, and whoever
 *                       takes over hands them over one by one (subscribe_suspect.c)
 *
 *  (1) What the function has stays in memory as long as it is looked at.
 *  (2) The lease is not ours any more then: what the function says later changes nothing.
 *  (3) Without threads nothing can look.
 */
#include "events/subscribe/subscribe.h"

#include <stdio.h>

enum { LINE_LEN = 400, NAME_LEN = 100 };

void hf__sub_call_begin(struct hf_subscription *sub, const struct hf_stored_event *events,
                        size_t len, bool replay)
{
    pthread_mutex_lock(&sub->mutex);
    assert(len > 0 && !sub->call.len); /* one call at a time */
    sub->call = (struct sub_call){.events = events,
                                  .len = len,
                                  .replay = replay,
                                  .since_us = hf__env_elapsed_us(&sub->env)};
    pthread_mutex_unlock(&sub->mutex);
}

void hf__sub_call_end(struct hf_subscription *sub)
{
    pthread_mutex_lock(&sub->mutex);
    assert(sub->call.len);
    while (sub->call.looked_at) /* (1) */
        pthread_cond_wait(&sub->looked, &sub->mutex);
    sub->metrics.stuck = 0;
    sub->call = (struct sub_call){.len = 0};
    pthread_mutex_unlock(&sub->mutex);
}

static void report_stuck(struct hf_scope *s, struct hf_subscription *sub,
                         const struct hf_stored_event *event, uint64_t for_ms,
                         struct hf_error *error)
{
    char line[LINE_LEN];
    int len;

    *error = (struct hf_error){.status = HF_TIMEOUT,
                               .message =
                                   hf_scope_format(s, "its handler had not returned after %llu ms",
                                                   (unsigned long long)for_ms)};
    hf__sub_notify(sub, HF_SUBSCRIPTION_STUCK, event, error);
    if (!sub->env.log)
        return;
    len = snprintf(
        line, sizeof(line),
        "the handler of subscription \"%.*s\" has not returned for %llu ms: event %.*s of type "
        "%.*s",
        (int)(sub->name.len < NAME_LEN ? sub->name.len : NAME_LEN), sub->name.ptr,
        (unsigned long long)for_ms, HF_FMT(event->position),
        (int)(event->type.len < NAME_LEN ? event->type.len : NAME_LEN), event->type.ptr);
    if (len > 0)
        sub->env.log(HF_LOG_WARNING,
                     hf_str_of(line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1),
                     sub->env.user);
}

/* HF_OK: it needs not be looked at again. */
static enum hf_status call_resolve(struct hf_scope *s, struct hf_subscription *sub,
                                   const struct sub_call *call, struct hf_str token,
                                   uint64_t for_ms)
{
    struct sub_move move;
    struct hf_error error;
    bool one = call->len == 1 && !call->replay;

    assert(call->len && call->events && !call->dealt_with);
    if (!call->stuck)
        report_stuck(s, sub, call->events, for_ms, &error);
    if (sub->o.stuck == HF_STUCK_LEAVE)
        return HF_OK;
    error = (struct hf_error){.status = HF_TIMEOUT,
                              .message =
                                  hf_scope_format(s, "its handler had not returned after %llu ms",
                                                  (unsigned long long)for_ms)};
    /* The thread that works waits for the function, so what is its own does not change. */
    if (sub->o.stuck == HF_STUCK_GIVE_UP && one)
        TRY(hf__sub_park(s, sub, token, call->events, &error, sub->attempts + 1, &move));
    if (sub->o.stuck == HF_STUCK_RELEASE || one || call->replay)
        TRY(hf__sub_release(s, sub->store, sub->pk, token, (struct hf_str){0}));
    pthread_mutex_lock(&sub->mutex);
    sub->lease.until_us = 0; /* (2) */
    pthread_mutex_unlock(&sub->mutex);
    return HF_OK;
}

int64_t hf__sub_stuck_check(struct hf_scope *s, struct hf_subscription *sub)
{
    int64_t now_us = hf__env_elapsed_us(&sub->env), limit_us = (int64_t)sub->o.stuck_ms * 1000;
    struct pattern_id token;
    struct sub_call call;
    enum hf_status status;
    bool due;

    pthread_mutex_lock(&sub->mutex);
    call = sub->call;
    token = sub->token;
    due = call.len && !call.dealt_with && now_us - call.since_us >= limit_us;
    if (due) {
        sub->call.looked_at = sub->call.stuck = true;
        sub->metrics.stuck = 1;
        sub->metrics.stuck_total += !call.stuck;
    }
    pthread_mutex_unlock(&sub->mutex);
    if (!due)
        return call.len && !call.dealt_with ? call.since_us + limit_us - now_us : limit_us;
    hf_scope_reset(s);
    status = call_resolve(s, sub, &call, id_str(&token), (uint64_t)(now_us - call.since_us) / 1000);
    pthread_mutex_lock(&sub->mutex);
    assert(sub->call.looked_at && sub->call.len == call.len); /* (1) */
    sub->call.looked_at = false;
    sub->call.dealt_with = status == HF_OK || status == HF_LOST;
    pthread_cond_broadcast(&sub->looked);
    pthread_mutex_unlock(&sub->mutex);
    return status == HF_OK ? limit_us : (int64_t)sub->o.lease_ms * 100;
}
