/*
 * relay/relay_claim.c: competing relays: each event is claimed, and nothing is in order.
 *
 * A worker claims a few events, sends them, notes each, and claims again. While it does, the
 * heartbeat thread renews its claims when a third of the lease is over. When the sink cannot be
 * reached, or the relay is stopped, events that were not sent are released.
 *
 *  (1) The claims of a worker stay in its memory as long as the heartbeat thread uses them.
 *  (2) When there was nothing to claim, one worker at a time tries again: at the next poll, or when
 *      the relay is woken.
 *  (3) A payload that is lost in the blob store fails its event. When the store does not answer,
 *      its events are released for later, without an attempt, and the others are sent:
 *      relay_payload.c.
 *  (4) An event that was claimed by a relay that ended is sent by itself, and its attempt is counted
 *      before it begins; when this may be its last attempt, nothing else is sent meanwhile:
 *      relay_suspect.c.
 */
#include "relay/relay.h"

enum { FIRST_PAUSE_MS = 100, RENEW_SHARE = 3, RELEASE_TRIES = 6, RELEASE_PAUSE_MS = 10 };

static size_t claim_size(const struct hf_relay *relay)
{
    size_t each = relay->o.batch / (relay->o.workers ? relay->o.workers : 1);

    each = each ? each : 1;
    return relay->batch_max > each ? relay->batch_max : each;
}

void hf__relay_claims_check(const struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    assert(relay->claims.running <= relay->workers_len);
    assert(relay->o.competing || !relay->claims.running);
    for (size_t i = 0; i < relay->workers_len; i++) {
        const struct worker_claims *claims = &relay->workers[i].claims;

        assert(claims->first <= claims->len);
        assert(!claims->len || (claims->events && relay->o.competing));
        assert(!claims->renewing || claims->len);
    }
}

bool hf__relay_claim_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    ASSERT_RELAY_HELD(relay);
    if (relay_is_paused(relay) || relay->sender.has_left || breaker_is_open(&relay->sender) ||
        relay->claims.running >= relay->sends_max)
        return false;
    if (breaker_has_outage(&relay->sender) && relay->claims.running > relay->metrics.stuck)
        return false; /* one finds out whether it is over: relay_breaker.c */
    if (relay->claims.empty && relay->claims.running > relay->metrics.stuck) /* (2) */
        return false;
    if (relay->claims.next_us > now_us && (!relay->claims.woken || relay->claims.failures)) {
        *next_us = relay->claims.next_us < *next_us ? relay->claims.next_us : *next_us;
        return false;
    }
    if (!hf__rate_allows(relay, 1, now_us, next_us))
        return false;
    relay->claims.running++;
    relay->claims.woken = false;
    return true;
}

static struct hf_claim_options options_of(const struct hf_relay *relay, size_t limit)
{
    return (struct hf_claim_options){.size = sizeof(struct hf_claim_options),
                                     .limit = (uint32_t)limit,
                                     .lease_ms = relay->o.lease_ms,
                                     .skew_ms =
                                         relay->o.lease_ms > 4000 ? 1000 : relay->o.lease_ms / 4,
                                     .owner = relay->o.owner,
                                     .max_attempts = relay->o.max_attempts,
                                     .backoff_ms = relay->o.backoff_ms,
                                     .backoff_max_ms = relay->o.backoff_max_ms,
                                     .type = relay->only.type,
                                     .key = relay->only.key,
                                     .tenant = relay->only.tenant};
}

/* ---- the lag -------------------------------------------------------------------------------- */

/* Remember an event that waits and is due, for the lag; with until_us 0 forget it. If there is no
 * room, it is not remembered. */
static void known_update(struct hf_relay *relay, const struct hf_outbox_event *event,
                         int64_t until_us)
{
    struct relay_known *room = NULL;
    char seq[RELAY_SEQ_SIZE];
    int64_t now_us = relay_now_us(relay);

    hf__seq_set(seq, event->ref);
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < RELAY_KNOWN; i++) {
        struct relay_known *known = &relay->claims.known[i];

        if (known->due_us && known->until_us > now_us && hf__seq_compare(known->seq, seq) != 0)
            continue;
        if (known->due_us && hf__seq_compare(known->seq, seq) == 0) {
            room = known;
            break;
        }
        room = room ? room : known;
    }
    if (room && until_us) {
        memcpy(room->seq, seq, sizeof(seq));
        room->due_us = hf__outbox_due_ms(event) * 1000;
        room->until_us = until_us;
    } else if (room && hf__seq_compare(room->seq, seq) == 0) {
        room->due_us = 0;
    }
    pthread_mutex_unlock(&relay->mutex);
}

int64_t hf__relay_claim_oldest_us(const struct hf_relay *relay, int64_t now_us, uint64_t *waiting)
{
    int64_t oldest_us = now_us, elapsed_us = relay_now_us(relay);

    ASSERT_RELAY_HELD(relay);
    for (size_t i = 0; i < relay->workers_len; i++) {
        const struct worker_claims *claims = &relay->workers[i].claims;

        for (size_t k = claims->first; k < claims->len; k++) {
            int64_t due_us = hf__outbox_due_ms(&claims->events[k].event) * 1000;

            oldest_us = due_us < oldest_us ? due_us : oldest_us;
        }
        *waiting += claims->len - claims->first;
    }
    *waiting -= *waiting < relay->metrics.running ? *waiting : relay->metrics.running;
    for (size_t i = 0; i < RELAY_KNOWN; i++)
        if (relay->claims.known[i].due_us && relay->claims.known[i].until_us > elapsed_us &&
            relay->claims.known[i].due_us < oldest_us)
            oldest_us = relay->claims.known[i].due_us;
    return oldest_us;
}

/* When one that waits so long will have been claimed by somebody. */
static int64_t known_until(const struct hf_relay *relay, uint32_t wait_ms)
{
    return relay_now_us(relay) +
           ((int64_t)wait_ms + relay->o.poll_ms + relay->o.lease_ms) * INT64_C(1000);
}

/* ---- one batch ------------------------------------------------------------------------------ */

static void metric_add(struct hf_relay *relay, uint64_t *counter, uint64_t more)
{
    pthread_mutex_lock(&relay->mutex);
    *counter += more;
    pthread_mutex_unlock(&relay->mutex);
}

/* What became of a note; HF_LOST: another has the event now. */
static void outcome_report(struct relay_worker *worker, const struct hf_claimed_event *event,
                           enum hf_status status, uint64_t *counter, enum hf_relay_outcome outcome,
                           const struct hf_error *error)
{
    struct hf_relay *relay = worker->relay;

    metric_add(relay, &relay->metrics.writes, 1);
    if (status == HF_OK) {
        metric_add(relay, counter, 1);
        hf__relay_report_event(relay, &event->event, outcome, error);
        known_update(relay, &event->event,
                     outcome == HF_RELAY_RETRY ? known_until(relay, relay->o.backoff_max_ms) : 0);
        return;
    }
    if (status == HF_LOST)
        metric_add(relay, &relay->metrics.refused, 1);
    else
        hf__relay_report_error(relay, worker->io);
    if (outcome == HF_RELAY_DELIVERED) {
        metric_add(relay, &relay->metrics.unsure, 1);
        hf__relay_report_event(relay, &event->event, HF_RELAY_UNSURE, hf_scope_error(worker->io));
    }
}

static void note_failed(struct relay_worker *worker, const struct hf_claimed_event *event,
                        const struct hf_delivery *delivery, enum outbox_try tried)
{
    struct hf_relay *relay = worker->relay;
    struct hf_claim_options options = options_of(relay, 1);
    struct hf_error error = {.status = delivery->status,
                             .message = delivery->error.len
                                            ? delivery->error
                                            : hf_str_from(hf_status_text(delivery->status)),
                             .may_retry = !delivery->for_good};
    bool gives_up = delivery->for_good ||
                    event->event.attempts - event->event.crashes + 1 >= relay->o.max_attempts;
    struct outbox_attempt attempt = {.error = &error,
                                     .tried = tried,
                                     .give_up = delivery->for_good};
    enum hf_status status = hf__outbox_fail(worker->io, relay->outbox, event, &attempt, &options);

    outcome_report(worker, event, status,
                   gives_up ? &relay->metrics.given_up : &relay->metrics.retried,
                   gives_up ? HF_RELAY_GIVEN_UP : HF_RELAY_RETRY, &error);
}

/* Release it. An attempt that was counted in advance is subtracted again: relay_suspect.c. */
static void claim_release(struct relay_worker *worker, const struct hf_claimed_event *event,
                          int64_t next_us, bool begun)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;
    uint32_t tries = 0;

    known_update(relay, &event->event, known_until(relay, relay->o.backoff_max_ms));
    do {
        status = hf__outbox_release(worker->io, relay->outbox, event, next_us, begun);
    } while (begun && status != HF_OK && status != HF_LOST && ++tries < RELEASE_TRIES &&
             hf_scope_sleep_ms(worker->io, hf__relay_backoff_ms(relay, RELEASE_PAUSE_MS, tries)) ==
                 HF_OK);
}

/* (3) For later, unless it is we who did not wait for the store. */
static void claim_give_back(struct relay_worker *worker, const struct hf_claimed_event *event,
                            enum hf_status error, bool begun)
{
    struct hf_relay *relay = worker->relay;
    int64_t wait_us = hf__payload_again_us(relay) - relay_now_us(relay);
    int64_t next_us = relay->env.wall_us(relay->env.user) + wait_us;

    claim_release(worker, event, error == HF_CANCELED ? 0 : next_us, begun);
}

/* All that was delivered at once, the others one by one. */
static void outcomes_note(struct relay_worker *worker, const struct hf_claimed_event *events,
                          const struct hf_delivery *deliveries, size_t len, bool reached,
                          bool begun)
{
    struct hf_relay *relay = worker->relay;
    struct hf_claimed_event *done = hf_scope_alloc(worker->io, len * sizeof(*done));
    enum hf_status *results = hf_scope_alloc(worker->io, len * sizeof(*results));
    size_t done_len = 0;

    for (size_t i = 0; i < len; i++) {
        if (!deliveries[i].event)
            claim_give_back(worker, &events[i], deliveries[i].status, begun);
        else if (deliveries[i].status == HF_OK && done && results)
            done[done_len++] = events[i];
        else if (reached && deliveries[i].status != HF_OK)
            note_failed(worker, &events[i], &deliveries[i], begun ? OUTBOX_BEGUN : OUTBOX_TRIED);
        else
            claim_release(worker, &events[i], 0, begun);
    }
    if (done_len)
        (void)!hf_outbox_published_many(worker->io, relay->outbox, done, done_len, results);
    for (size_t i = 0; i < done_len; i++)
        outcome_report(worker, &done[i], results[i], &relay->metrics.delivered, HF_RELAY_DELIVERED,
                       NULL);
}

/* Fetch payloads from the blob store, and send the events that have theirs (3). *asked: the sink
 * was called. */
static enum hf_status fetch_and_send(struct relay_worker *worker,
                                     const struct hf_claimed_event *events, size_t len,
                                     struct hf_delivery *deliveries, bool *asked)
{
    struct hf_scope *s = worker->work;
    struct hf_outbox_event *whole = hf_scope_alloc(s, len * sizeof(*whole));
    struct hf_delivery *sent = hf_scope_alloc(s, len * sizeof(*sent));
    enum hf_status status = HF_OK;
    size_t sent_len = 0;

    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++)
        whole[i] = events[i].event;
    hf__payload_fetch(worker, whole, len);
    for (size_t i = 0; i < len; i++) {
        enum hf_status error = whole[i].blob_error;

        deliveries[i] = (struct hf_delivery){.event = is_blob_unavailable(error) ? NULL : &whole[i],
                                             .status = error};
        if (error == HF_OK)
            sent[sent_len++] = deliveries[i];
        else if (!is_blob_unavailable(error))
            deliveries[i].error = hf__outbox_blob_text(s, &whole[i]);
    }
    *asked = sent_len > 0;
    if (sent_len)
        status = hf__relay_sink_call(worker, sent, sent_len);
    for (size_t i = 0, at = 0; i < len; i++)
        if (whole[i].blob_error == HF_OK)
            deliveries[i] = sent[at++];
    return status;
}

/* Send some, note them. False: the sink cannot be reached. */
static bool send_some(struct relay_worker *worker, const struct hf_claimed_event *events,
                      size_t len, bool was_probe, bool begun)
{
    struct hf_relay *relay = worker->relay;
    struct hf_delivery *deliveries;
    enum hf_status status;
    bool report = false, asked = false;

    hf_scope_reset(worker->work);
    hf_scope_timeout_ms(worker->work, relay->o.timeout_ms);
    deliveries = hf_scope_alloc(worker->work, len * sizeof(*deliveries));
    if (!deliveries) {
        for (size_t i = 0; i < len; i++)
            claim_release(worker, &events[i], 0, begun);
        return false;
    }
    for (size_t i = 0; i < len; i++)
        deliveries[i] = (struct hf_delivery){.event = &events[i].event, .status = HF_INTERNAL};
    metric_add(relay, &relay->metrics.running, len);
    status = fetch_and_send(worker, events, len, deliveries, &asked);
    pthread_mutex_lock(&relay->mutex);
    if (was_probe)
        relay->sender.breaker.probing = false;
    if (status == HF_OK && asked)
        hf__breaker_passed(relay, was_probe);
    else if (status != HF_OK && !relay->canceled)
        hf__breaker_failed(relay, was_probe, hf_scope_error(worker->work), &report);
    pthread_mutex_unlock(&relay->mutex);
    if (report)
        hf__relay_report_error(relay, worker->work);
    outcomes_note(worker, events, deliveries, len, status == HF_OK, begun);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.running -= len;
    pthread_mutex_unlock(&relay->mutex);
    return status == HF_OK;
}

static bool is_stopping(struct hf_relay *relay)
{
    bool stopping;

    pthread_mutex_lock(&relay->mutex);
    stopping = relay->stopping || relay_is_paused(relay) || relay->sender.has_left;
    pthread_mutex_unlock(&relay->mutex);
    return stopping;
}

/* As many as the sink takes at once, from `at` on. */
static size_t chunk_len(const struct hf_relay *relay, const struct hf_claim_list *list, size_t at)
{
    size_t len = 0, bytes = 0, blobs = 0, most = relay->ops->batch_bytes_max;

    while (at + len < list->events_len && len < relay->batch_max) {
        const struct hf_outbox_event *event = &list->events[at + len].event;

        if (len && hf__outbox_is_suspect(event))
            break;
        bytes += hf__relay_event_size(event);
        blobs += event->blob.len ? (size_t)event->blob_size : 0;
        if (len && ((most && bytes > most) || blobs > RELAY_BLOB_BYTES))
            break;
        len++;
        if (hf__outbox_is_suspect(event)) /* (4) */
            break;
    }
    return len;
}

/* Wait until it may begin: an event that has to run alone waits for all others, all others wait for
 * it. False: the relay stops. (4) */
static bool sender_enter(struct relay_worker *worker, bool alone)
{
    struct hf_relay *relay = worker->relay;
    bool may;

    pthread_mutex_lock(&relay->mutex);
    while ((relay->sender.alone || (alone && relay->sender.running > relay->metrics.stuck)) &&
           !relay->stopping)
        pthread_cond_wait(&relay->idle_cond, &relay->mutex);
    may = !relay->sender.alone && !(alone && relay->sender.running > relay->metrics.stuck);
    relay->sender.running += may;
    relay->sender.alone = alone && may ? worker : relay->sender.alone;
    pthread_mutex_unlock(&relay->mutex);
    return may;
}

/* If it was stuck, another may be alone by now. */
static void sender_leave(struct relay_worker *worker)
{
    struct hf_relay *relay = worker->relay;

    pthread_mutex_lock(&relay->mutex);
    relay->sender.running--;
    relay->sender.alone = relay->sender.alone == worker ? NULL : relay->sender.alone;
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}

/* Send some beside others. As send_some(). */
static bool send_counted(struct relay_worker *worker, const struct hf_claimed_event *events,
                         size_t len, bool was_probe, bool begun)
{
    bool reached;

    if (!sender_enter(worker, false)) {
        for (size_t i = 0; i < len; i++)
            claim_release(worker, &events[i], 0, begun);
        return true;
    }
    reached = send_some(worker, events, len, was_probe, begun);
    sender_leave(worker);
    return reached;
}

/* It has ended too many processes. */
static void claim_give_up(struct relay_worker *worker, const struct hf_claimed_event *event)
{
    struct hf_delivery delivery = {
        .status = HF_TIMEOUT,
        .error = hf__outbox_crash_error(worker->io, event->event.crashes).message,
        .for_good = true};

    note_failed(worker, event, &delivery, OUTBOX_NOT_TRIED);
}

/* Count one before it is sent. As send_some(). (4) */
static bool send_suspect(struct relay_worker *worker, struct hf_claimed_event event, bool was_probe)
{
    struct hf_relay *relay = worker->relay;
    bool begun = hf__suspect_read(relay, &event.event), reached = true;
    bool alone = event.event.crashes + UINT64_C(1) == relay->o.max_crashes;
    enum hf_status status = HF_OK;

    if (event.event.crashes >= relay->o.max_crashes) {
        claim_give_up(worker, &event);
        return true;
    }
    if (!sender_enter(worker, alone)) {
        claim_release(worker, &event, 0, begun);
        return true;
    }
    if (!begun) {
        status = hf__outbox_claim_begin(worker->io, relay->outbox, &event, id_str(&relay->self));
        begun = status == HF_OK || hf_scope_error(worker->io)->may_have_happened;
        metric_add(relay, &relay->metrics.writes, 1);
    }
    if (status == HF_OK) {
        reached = send_some(worker, &event, 1, was_probe, begun);
    } else if (status == HF_LOST) {
        metric_add(relay, &relay->metrics.refused, 1);
    } else {
        hf__relay_report_error(relay, worker->io);
        claim_release(worker, &event, 0, begun);
    }
    sender_leave(worker);
    return reached;
}

/* Were the claims given back meanwhile? */
static bool are_gone(struct relay_worker *worker)
{
    bool gone;

    pthread_mutex_lock(&worker->relay->mutex);
    gone = worker->claims.gone;
    pthread_mutex_unlock(&worker->relay->mutex);
    return gone;
}

static void claims_send(struct relay_worker *worker, const struct hf_claim_list *list,
                        bool was_probe)
{
    struct hf_relay *relay = worker->relay;
    bool reached = true;
    size_t at = 0;

    while (at < list->events_len && !are_gone(worker)) {
        size_t len = chunk_len(relay, list, at);

        if (!reached || is_stopping(relay)) {
            claim_release(worker, &list->events[at++], 0, false);
            continue;
        }
        reached = hf__outbox_is_suspect(&list->events[at].event)
                      ? send_suspect(worker, list->events[at], was_probe)
                      : send_counted(worker, &list->events[at], len, was_probe, false);
        was_probe = was_probe && !reached;
        at += len;
        pthread_mutex_lock(&relay->mutex);
        worker->claims.first += len;
        pthread_mutex_unlock(&relay->mutex);
    }
}

/* ---- claiming ------------------------------------------------------------------------------- */

/* Give the claims of the list to the worker; without a list, it has none any more. (1) */
static void claims_set(struct relay_worker *worker, const struct hf_claim_list *list,
                       int64_t claimed_us)
{
    struct hf_relay *relay = worker->relay;

    pthread_mutex_lock(&relay->mutex);
    while (worker->claims.renewing)
        pthread_cond_wait(&relay->idle_cond, &relay->mutex);
    worker->claims = (struct worker_claims){.events = list ? list->events : NULL,
                                            .len = list ? list->events_len : 0,
                                            .renew_us = claimed_us + (int64_t)relay->o.lease_ms *
                                                                         1000 / RENEW_SHARE};
    if (list && relay->heartbeat.timer && !relay->ended)
        hf__timer_wake(relay->heartbeat.timer);
    pthread_mutex_unlock(&relay->mutex);
}

static void claim_ended(struct hf_relay *relay, enum hf_status status, bool was_probe)
{
    int64_t now_us = relay_now_us(relay);

    pthread_mutex_lock(&relay->mutex);
    relay->claims.running--;
    if (was_probe)
        relay->sender.breaker.probing = false;
    relay->claims.failures = status == HF_OK ? 0 : relay->claims.failures + 1;
    if (status != HF_OK)
        relay->claims.next_us =
            now_us +
            (int64_t)hf__relay_backoff_ms(relay, FIRST_PAUSE_MS, relay->claims.failures) * 1000;
    hf__relay_signal(relay);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}

void hf__relay_claim_run(struct relay_worker *worker, bool was_probe)
{
    struct hf_relay *relay = worker->relay;
    int64_t now_us = relay_now_us(relay), unused = INT64_MAX;
    struct hf_claim_options options;
    struct hf_claim_list list = {0};
    enum hf_status status;
    size_t limit;

    pthread_mutex_lock(&relay->mutex);
    limit = was_probe || breaker_has_outage(&relay->sender)
                ? 1
                : hf__rate_allows(relay, claim_size(relay), now_us, &unused);
    pthread_mutex_unlock(&relay->mutex);
    options = options_of(relay, limit ? limit : 1);
    hf__relay_begin(relay, worker->io, relay->o.lease_ms);
    status = hf__outbox_claim(worker->io, relay->outbox, &options, &list);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.reads++;
    relay->metrics.refused += list.refused;
    relay->metrics.writes += status == HF_OK && list.events_len;
    if (status == HF_OK) {
        relay->claims.empty = !list.events_len;
        relay->claims.next_us =
            list.events_len ? now_us : relay_now_us(relay) + (int64_t)relay->o.poll_ms * 1000;
        hf__rate_spend(relay, list.events_len);
        hf__relay_signal(relay);
    }
    pthread_mutex_unlock(&relay->mutex);
    if (status != HF_OK)
        hf__relay_report_error(relay, worker->io);
    if (status == HF_OK && list.events_len) {
        hf_scope_timeout_ms(worker->io, 0);
        claims_set(worker, &list, now_us);
        claims_send(worker, &list, was_probe);
        claims_set(worker, NULL, now_us);
    }
    hf__relay_consumed(relay, worker->io);
    claim_ended(relay, status, was_probe);
}

/* ---- renewing ------------------------------------------------------------------------------- */

/* A worker whose claims are due; or when the next ones are. */
static struct relay_worker *worker_due(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    ASSERT_RELAY_HELD(relay);
    for (size_t i = 0; i < relay->workers_len; i++) {
        struct relay_worker *worker = &relay->workers[i];

        if (worker->claims.first >= worker->claims.len ||
            (worker->call.stuck && relay->o.stuck != HF_STUCK_LEAVE))
            continue;
        if (worker->claims.renew_us <= now_us)
            return worker;
        if (worker->claims.renew_us < *next_us)
            *next_us = worker->claims.renew_us;
    }
    return NULL;
}

int64_t hf__relay_claim_renew(struct hf_relay *relay)
{
    for (;;) {
        int64_t now_us = relay_now_us(relay), next_us = INT64_MAX;
        struct relay_worker *worker;
        struct worker_claims claims;

        pthread_mutex_lock(&relay->mutex);
        worker = worker_due(relay, now_us, &next_us);
        if (worker) {
            worker->claims.renewing = true;
            worker->claims.renew_us = now_us + (int64_t)relay->o.lease_ms * 1000 / RENEW_SHARE;
            claims = worker->claims;
        }
        pthread_mutex_unlock(&relay->mutex);
        if (!worker)
            return next_us == INT64_MAX ? INT64_MAX : next_us - now_us;
        hf__relay_begin(relay, relay->heartbeat.scope, relay->o.lease_ms / RENEW_SHARE);
        for (size_t i = claims.first; i < claims.len; i++)
            if (hf_outbox_extend(relay->heartbeat.scope, relay->outbox, &claims.events[i],
                                 relay->o.lease_ms) == HF_OK)
                metric_add(relay, &relay->metrics.writes, 1);
        hf__relay_consumed(relay, relay->heartbeat.scope);
        pthread_mutex_lock(&relay->mutex);
        worker->claims.renewing = false;
        pthread_cond_broadcast(&relay->idle_cond);
        pthread_mutex_unlock(&relay->mutex);
    }
}
