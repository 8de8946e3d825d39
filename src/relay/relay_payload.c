/*
 * relay/relay_payload.c: payloads that are in a blob store, fetched for a batch before it is
 * sent; what becomes of those that are not available.
 *
 *  (1) A payload that is lost, or damaged, fails its event by itself, as if the sink had said so.
 *  (2) When the store does not answer, no event is to blame: events with a payload there wait, no
 *      attempt is counted, and all others go on, except those behind one of the same key.
 *  (3) While it does not answer, one batch at a time asks for payloads, after delays that double; the
 *      events of all other batches wait without a request.
 *  (4) Fetching has the time of a delivery, and sending has it again. A stop can cancel both.
 *  (5) An event that is no longer ours when its payload has come is not sent, nor are later events of
 *      its key: they would overtake those that the new owner of the bucket sends.
 */
#include "relay/relay.h"

/* Ask the store for this batch (3). */
static bool store_may_ask(struct hf_relay *relay)
{
    bool may;

    pthread_mutex_lock(&relay->mutex);
    may =
        !relay->sender.payloads.failures ||
        (!relay->sender.payloads.asking && relay_now_us(relay) >= relay->sender.payloads.retry_us);
    relay->sender.payloads.asking =
        relay->sender.payloads.asking || (may && relay->sender.payloads.failures);
    pthread_mutex_unlock(&relay->mutex);
    return may;
}

/* (4) False: all is canceled. */
static bool fetch_may_begin(struct relay_worker *worker)
{
    struct hf_relay *relay = worker->relay;
    bool canceled;

    pthread_mutex_lock(&relay->mutex);
    canceled = relay->canceled;
    worker->sending = !canceled;
    pthread_mutex_unlock(&relay->mutex);
    return !canceled;
}

/* Somebody was asked, and answered, or nobody did. */
static void fetch_end(struct relay_worker *worker, bool answered, bool away)
{
    struct hf_relay *relay = worker->relay;

    pthread_mutex_lock(&relay->mutex);
    worker->sending = false;
    if (answered) {
        relay->sender.payloads.failures = 0;
    } else if (away && !relay->canceled) {
        uint32_t wait_ms =
            hf__relay_backoff_ms(relay, relay->o.breaker_ms, ++relay->sender.payloads.failures);

        relay->sender.payloads.retry_us = relay_now_us(relay) + (int64_t)wait_ms * 1000;
    }
    relay->sender.payloads.asking = false;
    pthread_mutex_unlock(&relay->mutex);
}

/* Report the first that is not available now. */
static void trouble_report(struct relay_worker *worker, const struct hf_outbox_event *events,
                           size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (is_blob_unavailable(events[i].blob_error) && events[i].blob_error != HF_CANCELED) {
            (void)hf_scope_fail(worker->work, events[i].blob_error, "event %.*s: %.*s",
                                HF_FMT(events[i].event.id),
                                HF_FMT(hf__outbox_blob_text(worker->work, &events[i])));
            hf__relay_report_error(worker->relay, worker->work);
            return;
        }
}

void hf__payload_fetch(struct relay_worker *worker, struct hf_outbox_event *events, size_t len)
{
    struct hf_relay *relay = worker->relay;
    bool answered = false, away = false, asks = false;
    enum hf_status instead = HF_OK;

    for (size_t i = 0; i < len; i++)
        asks = asks || events[i].blob.len;
    if (!asks)
        return;
    if (!store_may_ask(relay))
        instead = HF_IO;
    else if (!fetch_may_begin(worker))
        instead = HF_CANCELED;
    for (size_t i = 0; i < len && instead != HF_OK; i++)
        if (events[i].blob.len)
            events[i].blob_error = instead;
    if (instead == HF_IO)
        return; /* it was reported already */
    if (instead == HF_OK)
        hf__outbox_fetch(worker->work, relay->outbox, events, len);
    for (size_t i = 0; i < len; i++) {
        away = away || is_blob_unavailable(events[i].blob_error);
        answered = answered || (events[i].blob.len && !is_blob_unavailable(events[i].blob_error));
    }
    fetch_end(worker, answered, away);
    trouble_report(worker, events, len);
    hf_scope_timeout_ms(worker->work, relay->o.timeout_ms);
}

int64_t hf__payload_again_us(struct hf_relay *relay)
{
    int64_t soon_us = relay_now_us(relay) + (int64_t)relay->o.breaker_ms * 1000, again_us;

    pthread_mutex_lock(&relay->mutex);
    again_us =
        relay->sender.payloads.retry_us > soon_us ? relay->sender.payloads.retry_us : soon_us;
    pthread_mutex_unlock(&relay->mutex);
    return again_us;
}

/* ---- batches -------------------------------------------------------------------------------- */

enum hf_status hf__sending_room(struct hf_scope *s, size_t len, struct sending *to)
{
    to->len = 0;
    to->helds = hf_scope_alloc(s, len * sizeof(*to->helds));
    to->events = hf_scope_alloc(s, len * sizeof(*to->events));
    to->deliveries = hf_scope_alloc(s, len * sizeof(*to->deliveries));
    return hf_scope_built(s);
}

void hf__sending_add(struct sending *to, struct held *held, const struct hf_outbox_event *event)
{
    to->events[to->len] = *event;
    to->deliveries[to->len] = (struct hf_delivery){.event = &to->events[to->len]};
    to->helds[to->len++] = held;
}

/* Buckets may be lost while payloads are fetched, and the keys of their events are freed. So these
 * are the keys from before, which are only compared. */
struct fetching {
    struct sending all;
    const struct relay_key **keys;
    bool *apart, *ours;
};

static enum hf_status fetching_begin(struct relay_worker *worker, struct fetching *f)
{
    struct hf_relay *relay = worker->relay;
    size_t len = f->all.len;

    f->keys = hf_scope_alloc(worker->work, len * sizeof(*f->keys));
    f->apart = hf_scope_alloc(worker->work, len * sizeof(*f->apart));
    f->ours = hf_scope_alloc(worker->work, len * sizeof(*f->ours));
    TRY(hf_scope_built(worker->work));
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < len; i++)
        f->keys[i] = f->all.helds[i]->key;
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

/* (5) Which are still ours. */
static void fetching_end(struct relay_worker *worker, struct fetching *f)
{
    struct hf_relay *relay = worker->relay;
    int64_t now_us = relay_now_us(relay);

    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < f->all.len; i++)
        f->ours[i] = hf__held_is_ours(relay, f->all.helds[i], now_us);
    pthread_mutex_unlock(&relay->mutex);
}

/* Is an earlier event of its key set apart? An event whose bucket was lost has no key. */
static bool is_behind(const struct fetching *f, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (f->apart[i] && f->keys[i] && f->keys[i] == f->keys[at])
            return true;
    return false;
}

static void set_apart(struct hf_scope *s, const struct fetching *f, size_t at,
                      struct sending *apart)
{
    enum hf_status error = f->all.events[at].blob_error;
    struct hf_delivery *delivery;

    f->apart[at] = true;
    hf__sending_add(apart, f->all.helds[at], &f->all.events[at]);
    delivery = &apart->deliveries[apart->len - 1];
    delivery->status = error != HF_OK ? error : HF_INTERNAL;
    if (error == HF_OK || is_blob_unavailable(error))
        delivery->event = NULL; /* (2) (5) */
    else
        delivery->error = hf__outbox_blob_text(s, &f->all.events[at]);
}

enum hf_status hf__payload_prepare(struct relay_worker *worker, struct sending *to,
                                   struct sending *apart)
{
    struct fetching f = {.all = *to};
    bool none = true;

    *apart = (struct sending){.len = 0};
    for (size_t i = 0; i < f.all.len; i++)
        none = none && !f.all.events[i].blob.len;
    if (none)
        return HF_OK;
    TRY(fetching_begin(worker, &f));
    hf__payload_fetch(worker, f.all.events, f.all.len);
    fetching_end(worker, &f);
    TRY(hf__sending_room(worker->work, f.all.len, to));
    TRY(hf__sending_room(worker->work, f.all.len, apart));
    for (size_t i = 0; i < f.all.len; i++) {
        f.apart[i] = false;
        if (f.all.events[i].blob_error != HF_OK || !f.ours[i] || is_behind(&f, i))
            set_apart(worker->work, &f, i, apart);
        else
            hf__sending_add(to, f.all.helds[i], &f.all.events[i]);
    }
    return hf_scope_built(worker->work);
}
