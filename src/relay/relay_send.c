/*
 * relay/relay_send.c: sending events, and the outcome of each.
 *
 * A batch takes the first event of each of several keys, those that have waited longest; for a sink
 * that keeps order, several events of a key. relay_note.c notes deliveries. The worker that sent the
 * batch notes failures, one by one.
 *
 *  (1) No event of a key begins while another one of it runs, nor before the one ahead of it was
 *      delivered or given up. It need not be noted yet: if we crash in between, both come again, in
 *      order.
 *  (2) Nothing begins or is noted when our lease has ended or the bucket was lost. Events that ran
 *      then are dropped; the new owner of the bucket delivers them again.
 *  (3) When the sink as a whole fails, no attempt is counted for any event.
 *  (4) Of a key's events in one batch, those behind the first that failed were not delivered, and no
 *      attempt of theirs is counted.
 *  (5) A failure that could not be noted is not counted; the event is retried after a delay.
 *  (6) Payloads that are in a blob store are fetched for the batch: relay_payload.c. Events without
 *      their payload are set apart, and the others are sent.
 *  (7) The attempt of an event that may have crashed a process is counted before it begins, and in
 *      the end the event runs alone: relay_suspect.c.
 *  (8) In an outage one event at a time is sent: relay_breaker.c.
 */
#include "relay/relay.h"

void hf__sender_check(const struct hf_relay *relay)
{
    const struct relay_sender *sender = &relay->sender;

    ASSERT_RELAY_HELD(relay);
    assert(sender->running <= relay->workers_len);
    assert(relay->metrics.stuck <= sender->running);
    assert(sender->breaker.state <= BREAKER_HALF_OPEN);
    assert(!breaker_has_outage(sender) || sender->breaker.probe_wait_ms <= relay->o.backoff_max_ms);
    assert(!sender->payloads.asking || sender->payloads.failures);
    assert(!sender->has_left || relay->o.stuck != HF_STUCK_LEAVE);
}

/* ---- what is sent next ---------------------------------------------------------------------- */

size_t hf__relay_event_size(const struct hf_outbox_event *event)
{
    return (event->blob.len ? (size_t)event->blob_size : event->event.payload.len) +
           (event->event.headers.ptr ? hf_item_size(event->event.headers) : 0);
}

/* A batch that is not full may wait a little, but not what is urgent. */
static bool batch_lingers(const struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    int64_t until_us;

    if (!relay->o.linger_ms || relay->keys.ready.len >= relay->batch_max || relay->stopping ||
        relay->keys.ready.first->urgent)
        return false;
    until_us = relay->keys.ready.first->first->read_us + (int64_t)relay->o.linger_ms * 1000;
    if (until_us <= now_us)
        return false;
    *next_us = until_us < *next_us ? until_us : *next_us;
    return true;
}

/* (7) May the next one begin? Not beside an event that has to run alone; and if it has to run
 * alone, not beside any other. */
static bool alone_may(const struct hf_relay *relay)
{
    return !relay->sender.alone && (relay->sender.running <= relay->metrics.stuck ||
                                    !hf__suspect_is_alone(relay, relay->keys.ready.first->first));
}

bool hf__send_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    ASSERT_RELAY_HELD(relay);
    if (!relay->keys.ready.first || relay_is_paused(relay) || relay->sender.has_left ||
        relay->stopping || breaker_is_open(&relay->sender) ||
        relay->sender.running >= relay->sends_max || !alone_may(relay))
        return false;
    if (breaker_has_outage(&relay->sender) && relay->sender.running > relay->metrics.stuck)
        return false; /* (8) */
    if (!relay->o.dry_run && now_us >= relay->members.lease.until_us)
        return false; /* (2) */
    return hf__rate_allows(relay, 1, now_us, next_us) && !batch_lingers(relay, now_us, next_us);
}

/* What is not in its item will have to be fetched. */
static size_t blob_bytes(const struct held *held)
{
    return held->size > held->item_len ? held->size : 0;
}

size_t hf__send_take(struct hf_relay *relay, size_t max, int64_t now_us, struct held **batch)
{
    size_t bytes = 0, blobs = 0, len = 0, bytes_max = relay->ops->batch_bytes_max;
    int64_t unused = INT64_MAX;
    struct held **last = batch;
    bool alone;

    ASSERT_RELAY_HELD(relay);
    *batch = NULL;
    max = hf__rate_allows(relay, max, now_us, &unused);
    if (!relay->keys.ready.first || !alone_may(relay))
        max = 0;
    alone = max && hf__suspect_is_alone(relay, relay->keys.ready.first->first);
    max = max && (alone || breaker_has_outage(&relay->sender)) ? 1 : max;
    while (len < max && relay->keys.ready.first) {
        struct relay_key *key = relay->keys.ready.first;

        if (len && hf__suspect_is_alone(relay, key->first))
            break;
        if (len && bytes_max && bytes + key->first->size > bytes_max)
            break;
        if (len && blobs + blob_bytes(key->first) > RELAY_BLOB_BYTES)
            break;
        do {
            bytes += key->first->size;
            blobs += blob_bytes(key->first);
            *last = hf__relay_key_take(key);
            hf__suspect_take(relay, *last);
            last = &(*last)->next;
            len++;
        } while (relay->ops->keeps_order && key->first && len < max &&
                 !hf__suspect_is_alone(relay, key->first) &&
                 blobs + blob_bytes(key->first) <= RELAY_BLOB_BYTES &&
                 (!bytes_max || bytes + key->first->size <= bytes_max));
        hf__relay_key_requeue(relay, key);
    }
    if (alone) {
        relay->sender.alone = *batch;
        (*batch)->alone = true;
    }
    hf__rate_spend(relay, len);
    relay->sender.running++;
    relay->metrics.running += len;
    return len;
}

/* ---- the call ------------------------------------------------------------------------------- */

void hf__relay_report_event(struct hf_relay *relay, const struct hf_outbox_event *event,
                            enum hf_relay_outcome outcome, const struct hf_error *error)
{
    if (relay->o.on_ended)
        relay->o.on_ended(event, outcome, error, relay->o.user);
}

enum hf_status hf__relay_sink_call(struct relay_worker *worker, struct hf_delivery *deliveries,
                                   size_t len)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;
    bool canceled;

    for (size_t i = 0; i < len; i++) {
        deliveries[i].status = HF_INTERNAL;
        deliveries[i].for_good = false;
        deliveries[i].error = (struct hf_str){0};
    }
    pthread_mutex_lock(&relay->mutex);
    canceled = relay->canceled;
    worker->sending = !canceled;
    relay->metrics.batches += !canceled;
    if (!canceled)
        hf__relay_stuck_begin(worker, deliveries, len);
    pthread_mutex_unlock(&relay->mutex);
    if (canceled)
        return hf_scope_fail(worker->work, HF_CANCELED, "the relay is stopped");
    hf_scope_ok(worker->work);
    status = hf_sink_send(worker->work, relay->sink, deliveries, len);
    pthread_mutex_lock(&relay->mutex);
    worker->sending = false;
    hf__relay_stuck_end(worker);
    pthread_mutex_unlock(&relay->mutex);
    return status;
}

/* In the scope of the worker. */
static enum hf_status batch_prepare(struct relay_worker *worker, struct held *batch, size_t len,
                                    struct sending *to, struct sending *apart)
{
    struct hf_relay *relay = worker->relay;
    struct hf_scope *s = worker->work;

    TRY(hf__sending_room(s, len, to));
    for (struct held *held = batch; held; held = held->next) {
        struct hf_outbox_event event;

        TRY(hf__held_view(s, relay, held, &event));
        (void)hf__suspect_read(relay, &event);
        hf__sending_add(to, held, &event);
    }
    return hf__payload_prepare(worker, to, apart);
}

/* ---- outcomes ------------------------------------------------------------------------------- */

/* (7) What was alone is done with: others may begin. */
void hf__alone_end(struct hf_relay *relay, struct held *held)
{
    ASSERT_RELAY_HELD(relay);
    if (relay->sender.alone == held)
        relay->sender.alone = NULL;
    held->alone = false;
}

/* It runs no more. */
static void run_ended(struct hf_relay *relay, struct held *held)
{
    ASSERT_RELAY_HELD(relay);
    relay->metrics.running--;
    hf__alone_end(relay, held);
    if (!held->bucket)
        return;
    held->bucket->running--;
    held->key->running--;
}

/* To be tried again from this one on, at that time. */
static void put_back(struct hf_relay *relay, struct held *held, int64_t fetch_us)
{
    struct relay_key *key = held->key;

    ASSERT_RELAY_HELD(relay);
    run_ended(relay, held);
    if (held->bucket) {
        if (key->bucket->state == BUCKET_OURS)
            hf__relay_key_skip(relay, key, held->seq, held->sequence, fetch_us);
        hf__held_drop(relay, held);
        hf__relay_key_requeue(relay, key);
    } else {
        hf__held_drop(relay, held);
    }
}

static void held_delivered(struct hf_relay *relay, struct held *held)
{
    struct relay_key *key = held->key;
    bool alone = held->alone;

    ASSERT_RELAY_HELD(relay);
    run_ended(relay, held);
    if (!held->bucket) {
        relay->metrics.unsure++; /* (2) */
        hf__held_end(relay, held);
        return;
    }
    held->key = NULL;
    if (relay->o.dry_run) {
        relay->metrics.delivered++;
        hf__held_end(relay, held);
    } else {
        held->alone = alone; /* until that is noted */
        relay->sender.alone = alone && !relay->sender.alone ? held : relay->sender.alone;
        hf__note_add(relay, held);
    }
    hf__relay_key_requeue(relay, key);
}

/* Was an earlier one of its key in this batch not delivered? (4) */
static bool is_behind(const struct sending *sent, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (sent->helds[i]->key && sent->helds[i]->key == sent->helds[at]->key &&
            sent->deliveries[i].status != HF_OK)
            return true;
    return false;
}

static struct hf_error error_of(const struct hf_delivery *delivery)
{
    return (struct hf_error){.status = delivery->status,
                             .message = delivery->error.len
                                            ? delivery->error
                                            : hf_str_from(hf_status_text(delivery->status)),
                             .may_retry = !delivery->for_good};
}

/* What is known of the key of an event that has failed. */
static void failure_noted(struct hf_relay *relay, struct held *held,
                          const struct hf_outbox_event *event, enum hf_status status, bool gave_up,
                          int64_t fetch_us, int64_t now_us)
{
    struct relay_key *key = held->key;
    bool blocks = gave_up && relay->o.failed_blocks && held->bucket && !key->alone;

    ASSERT_RELAY_HELD(relay);
    if (status == HF_LOST)
        relay->metrics.refused++;
    if (status == HF_OK)
        *(gave_up ? &relay->metrics.given_up : &relay->metrics.retried) += 1;
    if (!held->bucket || status != HF_OK || !gave_up || blocks) {
        if (held->bucket && key->bucket->state == BUCKET_OURS) {
            /* it may be freed in the next call, but not while it skips */
            hf__relay_key_skip(relay, key, held->seq, held->sequence, fetch_us);
            key->attempts = status == HF_OK ? event->attempts : 0;
            key->due_us = held->due_us;
            key->check = key->blocked = blocks && status == HF_OK;
            if (key->check)
                key->fetch_us = now_us + (int64_t)relay->o.poll_ms * 1000;
            run_ended(relay, held);
            hf__held_end(relay, held);
            hf__relay_key_requeue(relay, key);
        } else {
            put_back(relay, held, fetch_us);
        }
        return;
    }
    run_ended(relay, held); /* given up: the next one may go on */
    hf__held_end(relay, held);
    hf__relay_key_requeue(relay, key);
}

/* We may not note it any more, or this is a dry run, which does not retry. */
static void forget_failure(struct hf_relay *relay, struct held *held)
{
    struct relay_key *key;

    pthread_mutex_lock(&relay->mutex);
    key = held->key;
    if (relay->o.dry_run && held->bucket) {
        relay->metrics.given_up++;
        run_ended(relay, held);
        hf__held_end(relay, held);
        hf__relay_key_requeue(relay, key);
    } else {
        put_back(relay, held, 0);
    }
    pthread_mutex_unlock(&relay->mutex);
}

/* Note that it has failed. Callbacks are called while the event is still in memory. */
static void note_failure(struct relay_worker *worker, struct held *held,
                         struct hf_outbox_event *event, const struct hf_delivery *delivery)
{
    struct hf_relay *relay = worker->relay;
    struct hf_error error = error_of(delivery);
    uint32_t failures = event->attempts - event->crashes + 1;
    bool give_up = delivery->for_good || failures >= relay->o.max_attempts ||
                   !hf__outbox_has_room(worker->io, worker->relay->outbox, event->item);
    struct outbox_attempt attempt = {.error = &error,
                                     .tried = held->begun ? OUTBOX_BEGUN
                                              : event->crashes >= relay->o.max_crashes
                                                  ? OUTBOX_NOT_TRIED
                                                  : OUTBOX_TRIED,
                                     .give_up = give_up};
    uint32_t wait_ms = hf__relay_backoff_ms(relay, relay->o.backoff_ms, failures);
    enum hf_status status;
    int64_t now_us;
    bool ours;

    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    pthread_mutex_lock(&relay->mutex);
    ours = hf__held_is_ours(relay, held, relay_now_us(relay)) && !relay->o.dry_run;
    relay->metrics.writes += ours;
    pthread_mutex_unlock(&relay->mutex);
    if (!ours) {
        if (relay->o.dry_run)
            hf__relay_report_event(relay, event, HF_RELAY_GIVEN_UP, &error);
        forget_failure(relay, held);
        return;
    }
    attempt.next_us = relay->env.wall_us(relay->env.user) + (int64_t)wait_ms * 1000;
    status = hf__outbox_note_try(worker->io, relay->outbox, event, &attempt);
    hf__relay_consumed(relay, worker->io);
    if (status == HF_OK)
        hf__relay_report_event(relay, event, give_up ? HF_RELAY_GIVEN_UP : HF_RELAY_RETRY, &error);
    else if (status != HF_LOST)
        hf__relay_report_error(relay, worker->io);
    now_us = relay_now_us(relay);
    pthread_mutex_lock(&relay->mutex);
    failure_noted(relay, held, event, status, give_up,
                  status == HF_LOST ? now_us : now_us + (int64_t)wait_ms * 1000, now_us);
    pthread_mutex_unlock(&relay->mutex);
}

/* Take the outcome of each delivery. `whole`: the sink could be reached. Events that are not to
 * blame, or were set apart, are retried at `again_us`. */
static void outcomes_apply(struct relay_worker *worker, struct sending *sent, bool whole,
                           int64_t again_us)
{
    struct hf_relay *relay = worker->relay;
    size_t failures = 0;

    for (size_t i = 0; i < sent->len && relay->o.dry_run; i++)
        if (sent->deliveries[i].status == HF_OK)
            hf__relay_report_event(relay, &sent->events[i], HF_RELAY_DELIVERED, NULL);
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < sent->len; i++) /* (4), while all still have their keys */
        if (sent->deliveries[i].status != HF_OK && (!whole || is_behind(sent, i)))
            sent->deliveries[i].event = NULL;
    pthread_mutex_unlock(&relay->mutex);
    hf__suspect_uncount(worker, sent);
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < sent->len; i++) {
        if (sent->deliveries[i].status == HF_OK)
            held_delivered(relay, sent->helds[i]);
        else if (!sent->deliveries[i].event) /* (3) (4) */
            put_back(relay, sent->helds[i], again_us);
        else
            failures++;
    }
    if (relay->noter.len)
        hf__relay_signal(relay);
    pthread_mutex_unlock(&relay->mutex);
    for (size_t i = 0; i < sent->len && failures; i++)
        if (sent->deliveries[i].status != HF_OK && sent->deliveries[i].event)
            note_failure(worker, sent->helds[i], &sent->events[i], &sent->deliveries[i]);
}

/* ---- a batch -------------------------------------------------------------------------------- */

/* The sink was called, or could not be: does it answer? */
static bool breaker_judge(struct relay_worker *worker, enum hf_status status, bool was_probe)
{
    struct hf_relay *relay = worker->relay;
    bool report = false, canceled;

    pthread_mutex_lock(&relay->mutex);
    canceled = relay->canceled;
    if (was_probe)
        relay->sender.breaker.probing = false;
    if (status == HF_OK)
        hf__breaker_passed(relay, was_probe);
    else if (!canceled)
        hf__breaker_failed(relay, was_probe, hf_scope_error(worker->work), &report);
    pthread_mutex_unlock(&relay->mutex);
    if (report)
        hf__relay_report_error(relay, worker->work);
    return status == HF_OK;
}

static void send_ended(struct hf_relay *relay)
{
    pthread_mutex_lock(&relay->mutex);
    relay->sender.running--;
    hf__relay_signal(relay);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}

void hf__send_run(struct relay_worker *worker, struct held *batch, size_t len, bool was_probe)
{
    struct hf_relay *relay = worker->relay;
    struct sending sent, apart, suspects;
    bool reached;
    enum hf_status status;

    hf_scope_reset(worker->work);
    hf_scope_timeout_ms(worker->work, relay->o.timeout_ms);
    status = batch_prepare(worker, batch, len, &sent, &apart);
    if (status == HF_OK)
        status = hf__suspect_count(worker, &sent, &suspects);
    if (status != HF_OK) {
        pthread_mutex_lock(&relay->mutex);
        while (batch) {
            struct held *held = batch;

            batch = held->next;
            put_back(relay, held, relay_now_us(relay) + (int64_t)relay->o.backoff_ms * 1000);
        }
        relay->sender.breaker.probing = relay->sender.breaker.probing && !was_probe;
        pthread_mutex_unlock(&relay->mutex);
        hf__relay_report_error(relay, worker->work);
        send_ended(relay);
        return;
    }
    if (apart.len)
        outcomes_apply(worker, &apart, true, hf__payload_again_us(relay));
    if (suspects.len)
        outcomes_apply(worker, &suspects, true,
                       relay_now_us(relay) + (int64_t)relay->o.backoff_ms * 1000);
    if (sent.len) {
        worker->sent = &sent;
        status = hf__relay_sink_call(worker, sent.deliveries, sent.len);
        worker->sent = NULL;
        reached = breaker_judge(worker, status, was_probe);
        outcomes_apply(worker, &sent, reached, relay_now_us(relay));
    } else { /* nobody was asked */
        pthread_mutex_lock(&relay->mutex);
        relay->sender.breaker.probing = relay->sender.breaker.probing && !was_probe;
        pthread_mutex_unlock(&relay->mutex);
    }
    send_ended(relay);
}
