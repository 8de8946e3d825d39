/*
 * relay/relay_stuck.c: deliveries that do not return.
 *
 * The sink has to heed the deadline of a delivery: one that ignores it, or a handler in an endless
 * loop, blocks its worker, and the keys of its events, while the heartbeat thread renews the lease. So
 * that thread watches how long calls of the sink take. After stuck_ms it reports the call, once, and
 * does what the option `stuck` says:
 *
 *     HF_STUCK_LEAVE    nothing; but events that a competing worker has claimed ahead are released
 *     HF_STUCK_RELEASE  the relay leaves: others get its buckets and claims, and it comes back when
 *                       the call has returned
 *     HF_STUCK_GIVE_UP  the events of the call become dead letters, and the other workers go on with
 *                       those behind them; when no worker is left the relay leaves as above
 *
 *  (1) The batch of a worker stays in its memory as long as the heartbeat thread reads it.
 *  (2) Events that were taken from a call are orphans: when the call returns, nothing is noted.
 *  (3) Without threads (no_threads) stuck deliveries are not noticed.
 */
#include "relay/relay.h"

#include <stdio.h>

enum { LINE_LEN = 600, NAME_LEN = 100 };

/* ---- the calls ------------------------------------------------------------------------------ */

void hf__relay_stuck_begin(struct relay_worker *worker, const struct hf_delivery *deliveries,
                           size_t len)
{
    ASSERT_RELAY_HELD(worker->relay);
    worker->call = (struct relay_call){.deliveries = deliveries,
                                       .len = len,
                                       .since_us = relay_now_us(worker->relay)};
}

void hf__relay_stuck_end(struct relay_worker *worker)
{
    struct hf_relay *relay = worker->relay;

    ASSERT_RELAY_HELD(relay);
    while (worker->call.looked_at) /* (1) */
        pthread_cond_wait(&relay->idle_cond, &relay->mutex);
    relay->metrics.stuck -= worker->call.stuck;
    worker->call = (struct relay_call){.len = 0};
    if (relay->sender.has_left && !hf__relay_stuck_has_to_leave(relay)) {
        relay->sender.has_left = false;
        if (relay->heartbeat.timer && !relay->ended)
            hf__timer_wake(relay->heartbeat.timer);
    }
}

bool hf__relay_stuck_has_to_leave(const struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    if (relay->o.stuck == HF_STUCK_LEAVE || relay->o.dry_run)
        return false;
    return relay->o.stuck == HF_STUCK_RELEASE ? relay->metrics.stuck > 0
                                              : relay->metrics.stuck >= relay->sends_max;
}

/* ---- telling -------------------------------------------------------------------------------- */

static int shown_len(struct hf_str text)
{
    return text.len < NAME_LEN ? (int)text.len : NAME_LEN;
}

static void stuck_report(struct hf_relay *relay, const struct hf_outbox_event *event, size_t len,
                         uint64_t for_ms)
{
    struct hf_str type = event->event.type, id = event->event.id, key = event->event.key;
    char line[LINE_LEN], others[40] = "";
    int got;

    if (relay->o.on_stuck)
        relay->o.on_stuck(event, for_ms, relay->o.user);
    if (!relay->env.log)
        return;
    if (len > 1)
        (void)snprintf(others, sizeof(others), " and %zu others", len - 1);
    got = snprintf(line, sizeof(line),
                   "the sink \"%s\" has not returned for %llu ms: event %.*s of type %.*s, key "
                   "\"%.*s\"%s; %s",
                   relay->ops->name ? relay->ops->name : "", (unsigned long long)for_ms,
                   shown_len(id), id.ptr, shown_len(type), type.ptr, shown_len(key),
                   key.len ? key.ptr : "", others,
                   relay->o.stuck == HF_STUCK_RELEASE   ? "the relay leaves it to others"
                   : relay->o.stuck == HF_STUCK_GIVE_UP ? "it becomes a dead letter"
                                                        : "nothing is done about it");
    if (got > 0)
        relay->env.log(HF_LOG_WARNING,
                       hf_str_of(line, (size_t)got < sizeof(line) ? (size_t)got : sizeof(line) - 1),
                       relay->env.user);
}

/* ---- giving up ------------------------------------------------------------------------------ */

static struct hf_error timeout_error(struct hf_scope *s, uint64_t for_ms)
{
    return (struct hf_error){.status = HF_TIMEOUT,
                             .message =
                                 hf_scope_format(s, "its handler had not returned after %llu ms",
                                                 (unsigned long long)for_ms)};
}

/* Fail an event that a worker of an ordered relay is sending. (2) */
static enum hf_status give_up_held(struct hf_relay *relay, struct held *held,
                                   const struct hf_outbox_event *sent, uint64_t for_ms)
{
    struct hf_error error = timeout_error(relay->heartbeat.scope, for_ms);
    struct hf_outbox_event event = *sent;
    bool ours, begun;
    enum hf_status status;

    pthread_mutex_lock(&relay->mutex);
    ours = held->bucket && relay_now_us(relay) < relay->members.lease.until_us;
    begun = held->begun;
    pthread_mutex_unlock(&relay->mutex);
    if (!ours)
        return HF_OK;
    status =
        hf__outbox_note_try(relay->heartbeat.scope, relay->outbox, &event,
                            &(struct outbox_attempt){.error = &error,
                                                     .tried = begun ? OUTBOX_BEGUN : OUTBOX_TRIED,
                                                     .give_up = true});
    if (status != HF_OK && status != HF_LOST)
        return status;
    if (status == HF_OK)
        hf__relay_report_event(relay, &event, HF_RELAY_GIVEN_UP, &error);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.given_up += status == HF_OK;
    relay->metrics.writes++;
    if (held->bucket)
        hf__held_orphan(relay, held);
    hf__relay_signal(relay);
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

static enum hf_status give_up_claim(struct hf_relay *relay, const struct hf_claimed_event *event,
                                    uint64_t for_ms)
{
    struct hf_error error = timeout_error(relay->heartbeat.scope, for_ms);
    const struct outbox_attempt attempt = {.error = &error, .give_up = true};
    enum hf_status status =
        hf__outbox_fail(relay->heartbeat.scope, relay->outbox, event, &attempt, NULL);

    if (status == HF_LOST)
        return HF_OK;
    if (status == HF_OK)
        hf__relay_report_event(relay, &event->event, HF_RELAY_GIVEN_UP, &error);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.given_up += status == HF_OK;
    relay->metrics.writes++;
    pthread_mutex_unlock(&relay->mutex);
    return status;
}

/* Is that one in the call? */
static bool call_has(const struct relay_call *call, const struct hf_claimed_event *claim)
{
    for (size_t i = 0; i < call->len; i++)
        if (hf_str_equal(call->deliveries[i].event->ref, claim->event.ref))
            return true;
    return false;
}

/* All that the call has. */
static enum hf_status call_give_up(struct hf_relay *relay, struct relay_worker *worker,
                                   const struct relay_call *call, uint64_t for_ms)
{
    for (size_t i = 0; i < call->len && !relay->o.competing; i++)
        TRY(give_up_held(relay, worker->sent->helds[i], call->deliveries[i].event, for_ms));
    for (size_t i = 0; i < worker->claims.len && relay->o.competing; i++)
        if (call_has(call, &worker->claims.events[i]))
            TRY(give_up_claim(relay, &worker->claims.events[i], for_ms));
    return HF_OK;
}

/* Competing: release the other claims of the worker at once, and with HF_STUCK_RELEASE those of the
 * call, too. */
static enum hf_status release_claims(struct hf_relay *relay, struct relay_worker *worker,
                                     const struct relay_call *call)
{
    pthread_mutex_lock(&relay->mutex);
    worker->claims.gone = true;
    pthread_mutex_unlock(&relay->mutex);
    for (size_t i = worker->claims.first; i < worker->claims.len; i++) {
        const struct hf_claimed_event *claim = &worker->claims.events[i];
        enum hf_status status;

        if (relay->o.stuck != HF_STUCK_RELEASE && call_has(call, claim))
            continue;
        status = hf__outbox_release(relay->heartbeat.scope, relay->outbox, claim, 0, false);
        if (status != HF_OK && status != HF_LOST)
            return status;
    }
    return HF_OK;
}

/* ---- looking -------------------------------------------------------------------------------- */

/* A call that is to be looked at; or when there may be one. */
static struct relay_worker *call_find(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    int64_t limit_us = (int64_t)relay->o.stuck_ms * 1000;

    ASSERT_RELAY_HELD(relay);
    for (size_t i = 0; i < relay->workers_len; i++) {
        struct relay_worker *worker = &relay->workers[i];

        if (!worker->call.len || worker->call.dealt_with)
            continue;
        if (now_us - worker->call.since_us >= limit_us)
            return worker;
        if (worker->call.since_us + limit_us < *next_us)
            *next_us = worker->call.since_us + limit_us;
    }
    return NULL;
}

/* HF_OK: it needs not be looked at again. */
static enum hf_status call_deal_with(struct hf_relay *relay, struct relay_worker *worker,
                                     const struct relay_call *call, bool first, uint64_t for_ms)
{
    if (first)
        stuck_report(relay, call->deliveries[0].event, call->len, for_ms);
    if (relay->o.stuck == HF_STUCK_GIVE_UP && !relay->o.dry_run)
        TRY(call_give_up(relay, worker, call, for_ms));
    return relay->o.competing ? release_claims(relay, worker, call) : HF_OK;
}

int64_t hf__relay_stuck_step(struct hf_relay *relay)
{
    for (;;) {
        int64_t now_us = relay_now_us(relay);
        int64_t next_us = now_us + (int64_t)relay->o.stuck_ms * 1000;
        struct relay_worker *worker;
        struct relay_call call;
        enum hf_status status;

        pthread_mutex_lock(&relay->mutex);
        worker = call_find(relay, now_us, &next_us);
        if (worker) {
            call = worker->call;
            worker->call.looked_at = true;
            worker->call.stuck = true;
            relay->metrics.stuck += !call.stuck;
            relay->metrics.stuck_total += !call.stuck;
            relay->sender.has_left = relay->sender.has_left ||
                                     hf__relay_stuck_has_to_leave(relay); /* nothing is begun now */
        }
        pthread_mutex_unlock(&relay->mutex);
        if (!worker)
            return next_us - now_us;
        hf__relay_begin(relay, relay->heartbeat.scope, relay->o.lease_ms / 2);
        status = call_deal_with(relay, worker, &call, !call.stuck,
                                (uint64_t)(now_us - call.since_us) / 1000);
        hf__relay_consumed(relay, relay->heartbeat.scope);
        if (status != HF_OK)
            hf__relay_report_error(relay, relay->heartbeat.scope);
        pthread_mutex_lock(&relay->mutex);
        worker->call.looked_at = false;
        worker->call.dealt_with = status == HF_OK;
        if (relay->sender.alone && relay->sender.running <= relay->metrics.stuck)
            relay->sender.alone =
                NULL; /* relay_suspect.c: it has ended nothing so far, others go on */
        pthread_cond_broadcast(&relay->idle_cond);
        hf__relay_signal(relay); /* what waited for this worker goes on without it */
        pthread_mutex_unlock(&relay->mutex);
        if (status != HF_OK)
            return (int64_t)relay->o.lease_ms * 100; /* again after a tenth of it */
    }
}
