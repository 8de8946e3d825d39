/*
 * relay/relay_suspect.c: events that crash the process, and how they are found.
 *
 * Nothing is written when a delivery begins: that would be one more write for each event. So when a
 * process crashes, nobody knows which events it was handling. But a relay that takes over a bucket
 * from one that did not stop properly knows that there are suspects in it, and is careful with its
 * first deliveries: each is counted as a crash before it begins (hf__outbox_begin()). When it succeeds,
 * the event is removed, and the count with it; when it fails, that is an ordinary failure. When the
 * process crashes, the count stays.
 *
 *  (1) An event is given up when it has max_crashes crashes, and during the last of them it was the
 *      only one that this relay was handling, until its outcome was noted. So a healthy event is not
 *      given up because of its neighbours, however often the process crashes with both.
 *  (2) An attempt of an event with a crash is always counted before it begins, by every relay.
 *  (3) How many deliveries are careful (`window`) is in the row of the bucket, written when it is
 *      taken. A relay that takes it over from one that ended with a window doubles it, so that an
 *      event that crashes processes is counted in the end, however far behind it is.
 *  (4) A count names its relay. A relay that finds its own count lives, so it was not a crash: there
 *      was no attempt after all, as the sink could not be reached, or the answer was lost.
 *  (5) The window is removed, by one write for each bucket, when all events are delivered that were
 *      there when the bucket was taken. Without crashes there is no window, and nothing is written.
 *  (6) Counting takes time, in which the lease may end. Then the event is not sent: the new owner of
 *      the bucket delivers it, and our delivery would overtake earlier ones.
 *  (7) An event without room for a count (docs/emitting.md) is given up without another attempt.
 *
 * A process may crash again and again for other reasons: the host, another part of the program. Then
 * events that take long are counted each time, too, as the two cases look the same.
 */
#include "relay/relay.h"

enum { UNDER_WAY_MAX = 1000, UNCOUNT_PAUSE_MS = 10 };

/* ---- buckets -------------------------------------------------------------------------------- */

uint32_t hf__suspect_window(const struct hf_relay *relay, uint32_t window)
{
    uint64_t least = (uint64_t)relay->sends_max * relay->batch_max, twice = 2 * (uint64_t)window;

    least = RELAY_CAREFUL_MIN + (least < UNDER_WAY_MAX ? least : UNDER_WAY_MAX);
    twice = twice > least ? twice : least;
    return twice < RELAY_CAREFUL_MAX ? (uint32_t)twice : RELAY_CAREFUL_MAX; /* (3) */
}

void hf__suspect_begin(struct hf_relay *relay, struct relay_bucket *bucket, uint32_t window)
{
    int64_t until_ms = hf__env_wall_ms(&relay->env) + RELAY_SKEW_MS;

    ASSERT_RELAY_HELD(relay);
    bucket->window = bucket->careful = window;
    hf__outbox_seq_floor(until_ms, bucket->until[0]);
    if (until_ms >= OUTBOX_URGENT_MS) /* else all places are among those: relay_read.c */
        until_ms -= OUTBOX_URGENT_MS;
    hf__outbox_seq_floor(until_ms, bucket->until[1]);
}

/* Was it stored before the bucket was taken, judging by its place? */
static bool place_is_old(const struct relay_bucket *bucket, const char *seq)
{
    return hf__seq_compare(seq, bucket->until[is_urgent_seq(seq)]) < 0;
}

/* Does the bucket have a held event that was stored before it was taken and is not delivered? */
static bool holds_suspects(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    for (size_t i = 0; i < RELAY_SLOTS; i++)
        for (const struct held *held = relay->keys.by_seq[i]; held; held = held->chain)
            if (held->bucket == bucket && place_is_old(bucket, held->seq) &&
                (held->state == HELD_WAITS || held->state == HELD_RUNS))
                return true;
    return false;
}

/* (5) */
bool hf__suspect_is_over(struct hf_relay *relay, struct relay_bucket *bucket)
{
    int64_t now_us = relay_now_us(relay);

    ASSERT_RELAY_HELD(relay);
    if (bucket->state != BUCKET_OURS || holds_suspects(relay, bucket) ||
        !hf__relay_read_is_for(relay, bucket) || !bucket->urgent.whole)
        return false;
    for (const struct relay_key *key = bucket->skipping; key; key = key->skip_next)
        if (place_is_old(bucket, key->after) &&
            (key->fetch_us <= now_us || !(key->attempts || key->blocked)))
            return false; /* but for those that are known to have failed, or to be behind one */
    return hf__seq_compare(bucket->cursor, bucket->until[0]) >= 0 ||
           hf__relay_read_is_dry(relay, bucket);
}

/* ---- events --------------------------------------------------------------------------------- */

bool hf__suspect_is_alone(const struct hf_relay *relay, const struct held *held)
{
    ASSERT_RELAY_HELD(relay);
    return (held->crashes || held->begun || held->bucket->careful) &&
           held->crashes + UINT64_C(1) == relay->o.max_crashes && !relay->o.dry_run; /* (1) */
}

/* (4) */
bool hf__suspect_read(const struct hf_relay *relay, struct hf_outbox_event *event)
{
    bool own = hf__outbox_is_begun(event, id_str(&relay->self));

    event->attempts -= own;
    event->crashes -= own;
    return own;
}

void hf__suspect_take(struct hf_relay *relay, struct held *held)
{
    ASSERT_RELAY_HELD(relay);
    held->careful =
        (held->crashes || held->begun || held->bucket->careful) && !relay->o.dry_run; /* (2) */
    held->bucket->careful -= held->bucket->careful > 0;
}

/* Count that it begins. False: it is set apart, and `delivery` says why. */
static bool count_begin(struct relay_worker *worker, struct held *held,
                        const struct hf_outbox_event *event, struct hf_delivery *delivery)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;

    if (event->crashes >= relay->o.max_crashes ||
        !hf__outbox_has_room(worker->work, worker->relay->outbox, event->item)) { /* (1) (7) */
        delivery->status = HF_TIMEOUT;
        delivery->for_good = true;
        delivery->error = event->crashes >= relay->o.max_crashes
                              ? hf__outbox_crash_error(worker->work, event->crashes).message
                              : HF_STR("its process may have ended while it was handled, and it "
                                       "is too large for that to be counted in it");
        return false;
    }
    if (held->begun) /* by an attempt of ours that was not made, and could not be taken back */
        return true;
    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    status = hf__outbox_begin(worker->io, relay->outbox, event, id_str(&relay->self));
    hf__relay_consumed(relay, worker->io);
    if (status != HF_OK && status != HF_LOST)
        hf__relay_report_error(relay, worker->io);
    pthread_mutex_lock(&relay->mutex);
    relay->metrics.writes++;
    relay->metrics.refused += status == HF_LOST;
    pthread_mutex_unlock(&relay->mutex);
    held->begun = status == HF_OK || hf_scope_error(worker->io)->may_have_happened;
    delivery->status = status;
    if (status != HF_OK)
        delivery->event = NULL;
    return status == HF_OK;
}

/* A batch whose attempts are counted. Buckets may be lost meanwhile, and the keys of their events
 * are freed. So these are the keys from before, which are only compared. */
struct counting {
    struct relay_worker *worker;
    struct sending all;
    const struct relay_key **keys;
    bool *left_out;
};

/* (6) */
static bool is_ours(struct hf_relay *relay, const struct held *held)
{
    bool ours;

    pthread_mutex_lock(&relay->mutex);
    ours = hf__held_is_ours(relay, held, relay_now_us(relay));
    pthread_mutex_unlock(&relay->mutex);
    return ours;
}

/* Is one of its key left out that is before it? */
static bool is_behind(const struct counting *c, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (c->left_out[i] && c->keys[i] == c->keys[at])
            return true;
    return false;
}

static enum hf_status counting_begin(struct counting *c)
{
    struct hf_relay *relay = c->worker->relay;
    size_t len = c->all.len;

    c->keys = hf_scope_alloc(c->worker->work, len * sizeof(*c->keys));
    c->left_out = hf_scope_alloc(c->worker->work, len * sizeof(*c->left_out));
    TRY(hf_scope_built(c->worker->work));
    pthread_mutex_lock(&relay->mutex);
    for (size_t i = 0; i < len; i++) {
        c->keys[i] = c->all.helds[i]->key;
        c->left_out[i] = false;
    }
    pthread_mutex_unlock(&relay->mutex);
    return HF_OK;
}

static void leave_out(struct counting *c, size_t at, const struct hf_delivery *why,
                      struct sending *apart)
{
    struct hf_delivery *delivery;

    c->left_out[at] = true;
    hf__sending_add(apart, c->all.helds[at], &c->all.events[at]);
    delivery = &apart->deliveries[apart->len - 1];
    delivery->status = why->status;
    delivery->for_good = why->for_good;
    delivery->error = why->error;
    if (!why->event)
        delivery->event = NULL;
}

enum hf_status hf__suspect_count(struct relay_worker *worker, struct sending *to,
                                 struct sending *apart)
{
    static const struct hf_delivery not_tried = {.status = HF_INTERNAL};
    struct hf_relay *relay = worker->relay;
    struct counting c = {.worker = worker, .all = *to};
    bool none = true;

    *apart = (struct sending){.len = 0};
    for (size_t i = 0; i < c.all.len; i++)
        none = none && !c.all.helds[i]->careful;
    if (none)
        return HF_OK;
    TRY(hf__sending_room(worker->work, c.all.len, to));
    TRY(hf__sending_room(worker->work, c.all.len, apart));
    TRY(counting_begin(&c));
    for (size_t i = 0; i < c.all.len; i++) {
        struct held *held = c.all.helds[i];
        struct hf_delivery why = {.event = &c.all.events[i]};

        if (is_behind(&c, i) || !is_ours(relay, held))
            leave_out(&c, i, &not_tried, apart);
        else if (held->careful && !count_begin(worker, held, &c.all.events[i], &why))
            leave_out(&c, i, &why, apart);
    }
    for (size_t i = 0; i < c.all.len; i++) {
        if (c.left_out[i])
            continue;
        if (is_behind(&c, i) || !is_ours(relay, c.all.helds[i]))
            leave_out(&c, i, &not_tried, apart);
        else
            hf__sending_add(to, c.all.helds[i], &c.all.events[i]);
    }
    return HF_OK;
}

/*
 * The count has to be right before another event begins that may crash the process, so it is tried
 * until half of the lease is over. HF_LOST: it was not counted, or the event is another relay's.
 */
static void event_uncount(struct relay_worker *worker, const struct hf_outbox_event *event)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;
    uint32_t tries = 0;

    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    do {
        status = hf__outbox_unbegin(worker->io, relay->outbox, event, id_str(&relay->self));
    } while (status != HF_OK && status != HF_LOST &&
             hf_scope_sleep_ms(worker->io,
                               hf__relay_backoff_ms(relay, UNCOUNT_PAUSE_MS, ++tries)) == HF_OK);
    hf__relay_consumed(relay, worker->io);
}

void hf__suspect_uncount(struct relay_worker *worker, const struct sending *sent)
{
    struct hf_relay *relay = worker->relay;

    for (size_t i = 0; i < sent->len; i++) {
        struct held *held = sent->helds[i];

        if (!held->begun || sent->deliveries[i].event || sent->deliveries[i].status == HF_OK)
            continue;
        event_uncount(worker, &sent->events[i]);
        held->begun = false;
        pthread_mutex_lock(&relay->mutex);
        relay->metrics.writes++;
        if (held->bucket && held->bucket->window)
            held->bucket->careful++;
        pthread_mutex_unlock(&relay->mutex);
    }
}
