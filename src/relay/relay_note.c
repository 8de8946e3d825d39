/*
 * relay/relay_note.c: noting deliveries: events are removed from the table, or move to the history.
 *
 * Delivered events are collected, and one worker notes all of them at once while the others go on
 * sending: the slower noting is, the more events are noted at a time. When many wait, more workers
 * note.
 *
 *  (1) Nothing is noted when our lease has ended or the bucket was lost; the new owner of the bucket
 *      delivers the events again.
 *  (2) A delivery that could not be noted is unsure until it is noted, and is the first to be noted
 *      again.
 */
#include "relay/relay.h"

enum { FIRST_NOTE_MS = 50, NOTE_WAIT_US = 20000 };

void hf__noter_check(const struct hf_relay *relay)
{
    const struct relay_noter *noter = &relay->noter;
    size_t len = 0;

    ASSERT_RELAY_HELD(relay);
    assert(!noter->first == !noter->len && !*noter->last);
    assert(noter->first || noter->last == &noter->first);
    assert(noter->running <= relay->workers_len);
    for (const struct held *held = noter->first; held && len <= RELAY_NOTE_BEHIND; len++) {
        assert(held->state == HELD_DELIVERED && !held->key);
        held = held->next;
    }
    assert(len == noter->len || len > RELAY_NOTE_BEHIND);
}

/* ---- what is noted next --------------------------------------------------------------------- */

void hf__note_add(struct hf_relay *relay, struct held *held)
{
    ASSERT_HELD(&relay->mutex);
    assert(held->bucket && !held->key && held->state == HELD_RUNS);
    held->state = HELD_DELIVERED;
    held->read_us = relay_now_us(relay); /* since when it is to be noted */
    held->bucket->noting++;
    held->next = NULL;
    *relay->noter.last = held;
    relay->noter.last = &held->next;
    relay->noter.len++;
}

/* A worker that notes does not send. But when many deliveries are not noted, all workers note:
 * after a crash those events would be delivered again, and until then they take the room of others.
 */
bool hf__note_may(const struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    size_t most =
        relay->noter.len < RELAY_NOTE_BEHIND ? relay->workers_len / 2 : relay->workers_len;

    ASSERT_RELAY_HELD(relay);
    if (!relay->noter.first)
        return false;
    if (relay->noter.not_before_us > now_us) {
        *next_us = relay->noter.not_before_us < *next_us ? relay->noter.not_before_us : *next_us;
        return false;
    }
    return !relay->noter.running ||
           (relay->noter.len >= RELAY_NOTE_MAX && relay->noter.running < most);
}

bool hf__note_is_pressing(const struct hf_relay *relay, int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    return relay->stopping || relay->sender.alone || relay->noter.len >= RELAY_NOTE_MAX ||
           now_us - relay->noter.first->read_us >= NOTE_WAIT_US;
}

size_t hf__note_take(struct hf_relay *relay, int64_t now_us, struct held **batch)
{
    struct held **last = batch;
    size_t len = 0;

    ASSERT_RELAY_HELD(relay);
    while (relay->noter.first && len < RELAY_NOTE_MAX) {
        struct held *held = relay->noter.first;

        relay->noter.first = held->next;
        relay->noter.len--;
        if (hf__held_is_ours(relay, held, now_us)) {
            *last = held;
            last = &held->next;
            len++;
        } else { /* (1) */
            relay->metrics.unsure += !held->unsure;
            if (held->bucket)
                held->bucket->noting--;
            hf__alone_end(relay, held);
            hf__held_end(relay, held);
        }
    }
    *last = NULL;
    if (!relay->noter.first)
        relay->noter.last = &relay->noter.first;
    if (len)
        relay->noter.running++;
    return len;
}

/* ---- noting --------------------------------------------------------------------------------- */

/* It could not be noted; it is the first that is noted again. */
static void note_again(struct hf_relay *relay, struct held *held)
{
    ASSERT_RELAY_HELD(relay);
    relay->metrics.unsure += !held->unsure;
    held->unsure = true;
    held->next = relay->noter.first;
    if (!relay->noter.first)
        relay->noter.last = &held->next;
    relay->noter.first = held;
    relay->noter.len++;
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
        hf__alone_end(relay, held);
        if (held->bucket)
            held->bucket->noting--;
        hf__held_end(relay, held);
    }
    relay->noter.failures = status == HF_OK ? 0 : relay->noter.failures + 1;
    if (status != HF_OK)
        relay->noter.not_before_us =
            now_us +
            (int64_t)hf__relay_backoff_ms(relay, FIRST_NOTE_MS, relay->noter.failures) * 1000;
    relay->noter.running--;
    relay->metrics.writes++;
    hf__relay_signal(relay);
    pthread_cond_broadcast(&relay->idle_cond);
    pthread_mutex_unlock(&relay->mutex);
}

/* Its place is enough, unless the event is reported or goes to the history. */
static enum hf_status view_to_note(struct relay_worker *worker, const struct held *held,
                                   struct hf_outbox_event *event)
{
    const struct hf_relay *relay = worker->relay;
    struct outbox_place place;

    if (relay->outbox->history_s || relay->o.on_ended ||
        !hf__outbox_place_read(relay->outbox, hf_str_from(held->seq), &place))
        return hf__held_view(worker->io, relay, held, event);
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
        hf__relay_report_error(relay, worker->io);
    for (size_t i = 0; i < len && events; i++)
        if (!unsure[i])
            hf__relay_report_event(relay, list[i],
                                   status == HF_OK ? HF_RELAY_DELIVERED : HF_RELAY_UNSURE,
                                   status == HF_OK ? NULL : hf_scope_error(worker->io));
    note_ended(relay, helds, len, status);
}
