/*
 * relay/relay_work.c: sending what was read, and noting what became of it.
 *
 * A batch takes the first event of each of several keys, whichever have waited longest; from a sink
 * that keeps order, several of a key. What was delivered is collected, and one worker notes all of
 * that at once while the others go on sending: the slower noting is, the more is noted at a time.
 * What has failed is noted by who sent it, one by one.
 *
 *  (1) No event of a key is begun while another of it runs, nor before the one ahead of it was
 *      delivered or given up. Whether that was noted is not waited for: should we die in between,
 *      both come again, in order.
 *  (2) Nothing is begun or noted when our lease has ended or the bucket was lost. What was under
 *      way then is forgotten; whoever has the bucket delivers it again.
 *  (3) When the sink says that it cannot be reached no attempt is counted, for anything.
 *  (4) Of a key's events in one batch those behind the first that failed were not delivered, and
 *      are not to blame.
 *  (5) A failure that could not be noted counts as not tried; it is tried again after a while.
 *  (6) Payloads that are in a blob store are fetched for the batch: relay_payload.c. Who cannot
 *      have one is set apart, and the others are sent.
 *  (7) What may have ended a process is counted before it begins, and in the end is tried alone:
 *      relay_suspect.c.
 *  (8) An outage lasts from the first failure of the sink as a whole until something was sent. In
 *      it one event at a time is tried, after waits that double: a sink whose probe succeeds and
 *      whose sends fail is asked as rarely as one that is away. It is reported once; another one
 *      with the same text soon after is not.
 */
#include "relay/relay.h"

#include <stdio.h>

enum { FIRST_NOTE_MS = 50, RATE_BURST_MS = 100, PROBE_TIMEOUT_MS = 10000, ASKED_MAX_MS = 600000 };

/* ---- what is sent next ---------------------------------------------------------------------- */

size_t hf__event_size(const struct hf_outbox_event *event)
{
    return (event->blob.len ? (size_t)event->blob_size : event->event.payload.len) +
           (event->event.headers.ptr ? hf_item_size(event->event.headers) : 0);
}

size_t hf__rate_allows(struct hf_relay *relay, size_t want, int64_t now_us, int64_t *next_us)
{
    double most = (double)relay->o.rate * RATE_BURST_MS / 1000;

    if (!relay->o.rate)
        return want;
    most = most < 1 ? 1 : most;
    relay->tokens += (double)(now_us - relay->tokens_us) * relay->o.rate / 1e6;
    relay->tokens = relay->tokens > most ? most : relay->tokens;
    relay->tokens_us = now_us;
    if (relay->tokens >= 1)
        return (double)want < relay->tokens ? want : (size_t)relay->tokens;
    {
        int64_t at_us = now_us + (int64_t)((1 - relay->tokens) * 1e6 / relay->o.rate) + 1;

        *next_us = at_us < *next_us ? at_us : *next_us;
    }
    return 0;
}

void hf__rate_spend(struct hf_relay *relay, size_t spent)
{
    if (relay->o.rate)
        relay->tokens -= (double)spent;
}

/* A batch that is not full may wait a little, but not what is urgent. */
static bool lingers(const struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    int64_t until_us;

    if (!relay->o.linger_ms || relay->ready.len >= relay->batch_max || relay->stopping ||
        relay->ready.first->urgent)
        return false;
    until_us = relay->ready.first->first->read_us + (int64_t)relay->o.linger_ms * 1000;
    if (until_us <= now_us)
        return false;
    *next_us = until_us < *next_us ? until_us : *next_us;
    return true;
}

/* (7) Is nothing under way beside which nothing may be, and is the next one no such beside others?
 */
static bool alone_may(const struct hf_relay *relay)
{
    return !relay->alone && (relay->sends <= relay->metrics.stuck ||
                             !hf__suspect_is_alone(relay, relay->ready.first->first));
}

bool hf__send_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    if (!relay->ready.first || relay->paused || relay->away || relay->stopping || relay->open ||
        relay->sends >= relay->sends_max || !alone_may(relay))
        return false;
    if (relay->outage && relay->sends > relay->metrics.stuck)
        return false; /* (8) */
    if (!relay->o.dry_run && now_us >= relay->lease.until_us)
        return false; /* (2) */
    return hf__rate_allows(relay, 1, now_us, next_us) && !lingers(relay, now_us, next_us);
}

/* Take the first of what waits of the key. */
static struct held *begin(struct relay_key *key)
{
    struct held *held = key->first;

    key->first = held->next;
    if (!key->first)
        key->last = NULL;
    key->len--;
    key->running++;
    key->bucket->running++;
    held->state = HELD_RUNS;
    held->next = NULL;
    held->behind = NULL;
    return held;
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

    *batch = NULL;
    max = hf__rate_allows(relay, max, now_us, &unused);
    if (!relay->ready.first || !alone_may(relay))
        max = 0;
    alone = max && hf__suspect_is_alone(relay, relay->ready.first->first);
    max = max && (alone || relay->outage) ? 1 : max;
    while (len < max && relay->ready.first) {
        struct relay_key *key = relay->ready.first;

        if (len && hf__suspect_is_alone(relay, key->first))
            break;
        if (len && bytes_max && bytes + key->first->size > bytes_max)
            break;
        if (len && blobs + blob_bytes(key->first) > RELAY_BLOB_BYTES)
            break;
        do {
            bytes += key->first->size;
            blobs += blob_bytes(key->first);
            *last = begin(key);
            hf__suspect_take(relay, *last);
            last = &(*last)->next;
            len++;
        } while (relay->ops->keeps_order && key->first && len < max &&
                 !hf__suspect_is_alone(relay, key->first) &&
                 blobs + blob_bytes(key->first) <= RELAY_BLOB_BYTES &&
                 (!bytes_max || bytes + key->first->size <= bytes_max));
        hf__key_settle(relay, key);
    }
    if (alone) {
        relay->alone = *batch;
        (*batch)->alone = true;
    }
    hf__rate_spend(relay, len);
    relay->sends++;
    relay->metrics.running += len;
    return len;
}

/* ---- the breaker ---------------------------------------------------------------------------- */

/* Is it to be reported? Not the same again within the longest wait. */
static bool is_news(struct hf_relay *relay, struct hf_str text, int64_t now_us)
{
    uint64_t hash = fnv(FNV_BEGIN, text.ptr, text.len);
    bool news = !relay->told_us || hash != relay->told_hash ||
                now_us - relay->told_us > (int64_t)relay->o.backoff_max_ms * 1000;

    if (news) {
        relay->told_hash = hash;
        relay->told_us = now_us;
    }
    return news;
}

void hf__breaker_failed(struct hf_relay *relay, bool was_probe, const struct hf_error *error,
                        bool *tell)
{
    uint32_t wait_ms, asked_ms = error->retry_after_ms;
    int64_t now_us = relay_now_us(relay);

    *tell = false;
    if (relay->open && !was_probe)
        return;
    if (!relay->outage) {
        relay->outage = true;
        relay->metrics.outages++;
        relay->probe_wait_ms = relay->o.breaker_ms;
        *tell = is_news(relay, error->message, now_us);
    } else if (relay->probe_wait_ms < relay->o.backoff_max_ms) {
        relay->probe_wait_ms *= 2; /* (8) */
    }
    relay->open = true;
    if (relay->probe_wait_ms > relay->o.backoff_max_ms)
        relay->probe_wait_ms = relay->o.backoff_max_ms;
    wait_ms = hf__relay_backoff_ms(relay, relay->probe_wait_ms, 1);
    asked_ms = asked_ms > ASKED_MAX_MS ? ASKED_MAX_MS : asked_ms;
    wait_ms = asked_ms > wait_ms ? asked_ms : wait_ms; /* it said how long */
    relay->probe_us = now_us + (int64_t)wait_ms * 1000;
    snprintf(relay->sink_text, sizeof(relay->sink_text), "%.*s", HF_FMT(error->message));
}

void hf__breaker_passed(struct hf_relay *relay, bool was_probe)
{
    if (!relay->outage || (relay->open && !was_probe))
        return;
    relay->outage = relay->open = false;
    hf__relay_signal(relay);
}

/* The sink has a way to be asked. */
void hf__probe_run(struct relay_worker *worker)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;
    bool tell;

    hf_scope_reset(worker->work);
    hf_scope_timeout_ms(worker->work, relay->o.timeout_ms < PROBE_TIMEOUT_MS ? relay->o.timeout_ms
                                                                             : PROBE_TIMEOUT_MS);
    pthread_mutex_lock(&relay->mutex);
    worker->sending = true;
    pthread_mutex_unlock(&relay->mutex);
    status = hf_sink_probe(worker->work, relay->sink);
    pthread_mutex_lock(&relay->mutex);
    worker->sending = false;
    relay->probing = false;
    if (status == HF_OK)
        relay->open = false; /* one event may find out whether the outage is over (8) */
    else
        hf__breaker_failed(relay, true, hf_scope_error(worker->work), &tell);
    hf__relay_signal(relay);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}

/* ---- sending -------------------------------------------------------------------------------- */

void hf__relay_tell(struct hf_relay *relay, const struct hf_outbox_event *event,
                    enum hf_relay_outcome outcome, const struct hf_error *error)
{
    if (relay->o.on_ended)
        relay->o.on_ended(event, outcome, error, relay->o.user);
}

enum hf_status hf__sink_call(struct relay_worker *worker, struct hf_delivery *deliveries,
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
        hf__stuck_begin(worker, deliveries, len);
    pthread_mutex_unlock(&relay->mutex);
    if (canceled)
        return hf_scope_fail(worker->work, HF_CANCELED, "the relay is stopped");
    hf_scope_ok(worker->work);
    status = hf_sink_send(worker->work, relay->sink, deliveries, len);
    pthread_mutex_lock(&relay->mutex);
    worker->sending = false;
    hf__stuck_end(worker);
    pthread_mutex_unlock(&relay->mutex);
    return status;
}

/* In the scope of the worker. */
static enum hf_status prepare(struct relay_worker *worker, struct held *batch, size_t len,
                              struct sending *to, struct sending *apart)
{
    struct hf_relay *relay = worker->relay;
    struct hf_scope *s = worker->work;

    TRY(hf__sending_room(s, len, to));
    for (struct held *held = batch; held; held = held->next) {
        struct hf_item item = {.ptr = held->item, .len = held->item_len};
        struct hf_outbox_event event;

        TRY(hf__outbox_view(s, relay->outbox, item, &event));
        (void)hf__suspect_read(relay, &event);
        hf__sending_add(to, held, &event);
    }
    return hf__payload_prepare(worker, to, apart);
}

/* (7) What was alone is done with: others may begin. The mutex is held. */
static void alone_ended(struct hf_relay *relay, struct held *held)
{
    if (relay->alone == held)
        relay->alone = NULL;
    held->alone = false;
}

/* It runs no more. The mutex is held. */
static void run_ended(struct hf_relay *relay, struct held *held)
{
    relay->metrics.running--;
    alone_ended(relay, held);
    if (!held->bucket)
        return;
    held->bucket->running--;
    held->key->running--;
}

/* (2) */
bool hf__held_is_ours(const struct hf_relay *relay, const struct held *held, int64_t now_us)
{
    return held->bucket && (relay->o.dry_run || now_us < relay->lease.until_us);
}

/* To be tried again from this one on, at that time. The mutex is held. */
static void put_back(struct hf_relay *relay, struct held *held, int64_t fetch_us)
{
    struct relay_key *key = held->key;

    run_ended(relay, held);
    if (held->bucket) {
        if (key->bucket->state == BUCKET_OURS)
            hf__key_skip(relay, key, held->seq, held->sequence, fetch_us);
        hf__held_drop(relay, held);
        hf__key_settle(relay, key);
    } else {
        hf__held_drop(relay, held);
    }
}

static void delivered(struct hf_relay *relay, struct held *held)
{
    struct relay_key *key = held->key;
    bool alone = held->alone;

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
        relay->alone = alone && !relay->alone ? held : relay->alone;
        held->state = HELD_DELIVERED;
        held->read_us = relay_now_us(relay); /* since when it is to be noted */
        held->bucket->noting++;
        held->next = NULL;
        *relay->delivered_last = held;
        relay->delivered_last = &held->next;
        relay->delivered_len++;
    }
    hf__key_settle(relay, key);
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

/* What is known of the key of an event that has failed. The mutex is held. */
static void failure_noted(struct hf_relay *relay, struct held *held,
                          const struct hf_outbox_event *event, enum hf_status status, bool gave_up,
                          int64_t fetch_us, int64_t now_us)
{
    struct relay_key *key = held->key;
    bool blocks = gave_up && relay->o.failed_blocks && held->bucket && !key->alone;

    if (status == HF_LOST)
        relay->metrics.refused++;
    if (status == HF_OK)
        *(gave_up ? &relay->metrics.given_up : &relay->metrics.retried) += 1;
    if (!held->bucket || status != HF_OK || !gave_up || blocks) {
        if (held->bucket && key->bucket->state == BUCKET_OURS) {
            /* it may be freed in the next call, but not while it skips */
            hf__key_skip(relay, key, held->seq, held->sequence, fetch_us);
            key->attempts = status == HF_OK ? event->attempts : 0;
            key->due_us = held->due_us;
            key->check = key->blocked = blocks && status == HF_OK;
            if (key->check)
                key->fetch_us = now_us + (int64_t)relay->o.poll_ms * 1000;
            run_ended(relay, held);
            hf__held_end(relay, held);
            hf__key_settle(relay, key);
        } else {
            put_back(relay, held, fetch_us);
        }
        return;
    }
    run_ended(relay, held); /* given up: the next one may go on */
    hf__held_end(relay, held);
    hf__key_settle(relay, key);
}

/* It is not ours to note any more, or this is a dry run, which does not try again. */
static void forget_failure(struct hf_relay *relay, struct held *held)
{
    struct relay_key *key;

    pthread_mutex_lock(&relay->mutex);
    key = held->key;
    if (relay->o.dry_run && held->bucket) {
        relay->metrics.given_up++;
        run_ended(relay, held);
        hf__held_end(relay, held);
        hf__key_settle(relay, key);
    } else {
        put_back(relay, held, 0);
    }
    pthread_mutex_unlock(&relay->mutex);
}

/* Note that it has failed. What is told of the event is told while it is still in memory. */
static void note_failure(struct relay_worker *worker, struct held *held,
                         struct hf_outbox_event *event, const struct hf_delivery *delivery)
{
    struct hf_relay *relay = worker->relay;
    struct hf_error error = error_of(delivery);
    uint32_t failures = event->attempts - event->crashes + 1;
    bool give_up = delivery->for_good || failures >= relay->o.max_attempts ||
                   !hf__outbox_has_room(worker->io, worker->relay->outbox, event->item);
    enum outbox_try tried = held->begun                              ? OUTBOX_BEGUN
                            : event->crashes >= relay->o.max_crashes ? OUTBOX_NOT_TRIED
                                                                     : OUTBOX_TRIED;
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
            hf__relay_tell(relay, event, HF_RELAY_GIVEN_UP, &error);
        forget_failure(relay, held);
        return;
    }
    status = hf__outbox_note_try(worker->io, relay->outbox, event, &error,
                                 relay->env.wall_us(relay->env.user) + (int64_t)wait_ms * 1000,
                                 give_up, tried);
    hf__relay_consumed(relay, worker->io);
    if (status == HF_OK)
        hf__relay_tell(relay, event, give_up ? HF_RELAY_GIVEN_UP : HF_RELAY_RETRY, &error);
    else if (status != HF_LOST)
        hf__relay_trouble(relay, worker->io);
    now_us = relay_now_us(relay);
    pthread_mutex_lock(&relay->mutex);
    failure_noted(relay, held, event, status, give_up,
                  status == HF_LOST ? now_us : now_us + (int64_t)wait_ms * 1000, now_us);
    pthread_mutex_unlock(&relay->mutex);
}

/* What the sink said of each. `whole`: it could be reached. What is nobody's fault, or has no event
 * any more, is tried again at `again_us`. */
static void settle(struct relay_worker *worker, struct sending *sent, bool whole, int64_t again_us)
{
    struct hf_relay *relay = worker->relay;
    size_t failures = 0;

    for (size_t i = 0; i < sent->len && relay->o.dry_run; i++)
        if (sent->deliveries[i].status == HF_OK)
            hf__relay_tell(relay, &sent->events[i], HF_RELAY_DELIVERED, NULL);
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < sent->len; i++) /* (4), while all still have their keys */
        if (sent->deliveries[i].status != HF_OK && (!whole || is_behind(sent, i)))
            sent->deliveries[i].event = NULL;
    pthread_mutex_unlock(&relay->mutex);
    hf__suspect_uncount(worker, sent);
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < sent->len; i++) {
        if (sent->deliveries[i].status == HF_OK)
            delivered(relay, sent->helds[i]);
        else if (!sent->deliveries[i].event) /* (3) (4) */
            put_back(relay, sent->helds[i], again_us);
        else
            failures++;
    }
    if (relay->delivered_len)
        hf__relay_signal(relay);
    pthread_mutex_unlock(&relay->mutex);
    for (size_t i = 0; i < sent->len && failures; i++)
        if (sent->deliveries[i].status != HF_OK && sent->deliveries[i].event)
            note_failure(worker, sent->helds[i], &sent->events[i], &sent->deliveries[i]);
}

/* The sink was called, or could not be: does it answer? */
static bool judge(struct relay_worker *worker, enum hf_status status, bool was_probe)
{
    struct hf_relay *relay = worker->relay;
    bool tell = false, canceled;

    pthread_mutex_lock(&relay->mutex);
    canceled = relay->canceled;
    if (was_probe)
        relay->probing = false;
    if (status == HF_OK)
        hf__breaker_passed(relay, was_probe);
    else if (!canceled)
        hf__breaker_failed(relay, was_probe, hf_scope_error(worker->work), &tell);
    pthread_mutex_unlock(&relay->mutex);
    if (tell)
        hf__relay_trouble(relay, worker->work);
    return status == HF_OK;
}

static void send_ended(struct hf_relay *relay)
{
    pthread_mutex_lock(&relay->mutex);
    relay->sends--;
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
    status = prepare(worker, batch, len, &sent, &apart);
    if (status == HF_OK)
        status = hf__suspect_count(worker, &sent, &suspects);
    if (status != HF_OK) {
        pthread_mutex_lock(&relay->mutex);
        while (batch) {
            struct held *held = batch;

            batch = held->next;
            put_back(relay, held, relay_now_us(relay) + (int64_t)relay->o.backoff_ms * 1000);
        }
        relay->probing = relay->probing && !was_probe;
        pthread_mutex_unlock(&relay->mutex);
        hf__relay_trouble(relay, worker->work);
        send_ended(relay);
        return;
    }
    if (apart.len)
        settle(worker, &apart, true, hf__payload_again_us(relay));
    if (suspects.len)
        settle(worker, &suspects, true, relay_now_us(relay) + (int64_t)relay->o.backoff_ms * 1000);
    if (sent.len) {
        worker->sent = &sent;
        status = hf__sink_call(worker, sent.deliveries, sent.len);
        worker->sent = NULL;
        reached = judge(worker, status, was_probe);
        settle(worker, &sent, reached, relay_now_us(relay));
    } else { /* nobody was asked */
        pthread_mutex_lock(&relay->mutex);
        relay->probing = relay->probing && !was_probe;
        pthread_mutex_unlock(&relay->mutex);
    }
    send_ended(relay);
}

/* ---- noting --------------------------------------------------------------------------------- */

size_t hf__note_take(struct hf_relay *relay, int64_t now_us, struct held **batch)
{
    struct held **last = batch;
    size_t len = 0;

    while (relay->delivered && len < RELAY_NOTE_MAX) {
        struct held *held = relay->delivered;

        relay->delivered = held->next;
        relay->delivered_len--;
        if (hf__held_is_ours(relay, held, now_us)) {
            *last = held;
            last = &held->next;
            len++;
        } else { /* (2) */
            relay->metrics.unsure += !held->unsure;
            if (held->bucket)
                held->bucket->noting--;
            alone_ended(relay, held);
            hf__held_end(relay, held);
        }
    }
    *last = NULL;
    if (!relay->delivered)
        relay->delivered_last = &relay->delivered;
    if (len)
        relay->noters++;
    return len;
}

/* It could not be noted; it is the first to be tried again. The mutex is held. */
static void note_again(struct hf_relay *relay, struct held *held)
{
    relay->metrics.unsure += !held->unsure;
    held->unsure = true;
    held->next = relay->delivered;
    if (!relay->delivered)
        relay->delivered_last = &held->next;
    relay->delivered = held;
    relay->delivered_len++;
}

static void note_ended(struct hf_relay *relay, struct held **helds, size_t len,
                       enum hf_status status)
{
    int64_t now_us = relay_now_us(relay);

    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < len; i++) {
        struct held *held = helds[len - 1 - i];

        if (status != HF_OK) {
            note_again(relay, held);
            continue;
        }
        relay->metrics.delivered++;
        relay->metrics.unsure -= held->unsure;
        alone_ended(relay, held);
        if (held->bucket)
            held->bucket->noting--;
        hf__held_end(relay, held);
    }
    relay->note_failures = status == HF_OK ? 0 : relay->note_failures + 1;
    if (status != HF_OK)
        relay->note_us =
            now_us +
            (int64_t)hf__relay_backoff_ms(relay, FIRST_NOTE_MS, relay->note_failures) * 1000;
    relay->noters--;
    relay->metrics.writes++;
    hf__relay_signal(relay);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}

/* Where it is will do, unless it is to be told of or goes to the history. */
static enum hf_status view_to_note(struct relay_worker *worker, const struct held *held,
                                   struct hf_outbox_event *event)
{
    const struct hf_relay *relay = worker->relay;
    struct hf_item item = {.ptr = held->item, .len = held->item_len};
    struct outbox_place place;

    if (relay->outbox->history_s || relay->o.on_ended ||
        !hf__outbox_place_read(relay->outbox, hf_str_from(held->seq), &place))
        return hf__outbox_view(worker->io, relay->outbox, item, event);
    *event = (struct hf_outbox_event){.ref = hf_str_from(held->seq), .bucket = place.bucket};
    return HF_OK;
}

void hf__note_run(struct relay_worker *worker, struct held *batch, size_t len)
{
    struct hf_relay *relay = worker->relay;
    struct held *helds[RELAY_NOTE_MAX];
    const struct hf_outbox_event *list[RELAY_NOTE_MAX];
    struct hf_outbox_event *events;
    enum hf_status status = HF_OK;
    bool unsure[RELAY_NOTE_MAX];

    assert(len <= RELAY_NOTE_MAX);
    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    events = hf_scope_alloc(worker->io, len * sizeof(*events));
    len = 0;
    for (struct held *held = batch; held; held = held->next) {
        if (status == HF_OK)
            status = events ? view_to_note(worker, held, &events[len]) : HF_NOMEM;
        list[len] = events ? &events[len] : NULL;
        unsure[len] = held->unsure;
        helds[len++] = held;
    }
    if (status == HF_OK)
        status = hf__outbox_done(worker->io, relay->outbox, list, len);
    hf__relay_consumed(relay, worker->io);
    if (status != HF_OK)
        hf__relay_trouble(relay, worker->io);
    for (size_t i = 0; i < len && events; i++)
        if (!unsure[i])
            hf__relay_tell(relay, list[i], status == HF_OK ? HF_RELAY_DELIVERED : HF_RELAY_UNSURE,
                           status == HF_OK ? NULL : hf_scope_error(worker->io));
    note_ended(relay, helds, len, status);
}
