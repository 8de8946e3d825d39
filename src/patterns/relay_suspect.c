/*
 * patterns/relay_suspect.c: events whose handler ends the process, and how they are found out.
 *
 * Nothing is written when a delivery begins: that would be one more write for each event. So when a
 * process ends, nobody knows which events it had under way. But who takes a bucket over from one
 * that ended without a word knows that there are suspects in it, and is careful with its first
 * deliveries: each is counted as a crash before it begins (hf__outbox_begin()). When it ends well
 * the event is gone and the count with it; when it fails, that is an ordinary failure. When the
 * process ends, the count stays.
 *
 *  (1) An event is given up when it has max_crashes crashes, and with the last of them it was the
 *      only one that this relay had under way, until what became of it was noted. So a healthy
 *      event is not given up for its neighbours, however often it dies with them.
 *  (2) An event that has a crash is always counted before it begins, whoever has its bucket.
 *  (3) How many deliveries are careful (`window`) is in the row of the bucket, written when it is
 *      taken. Whoever takes it over from one who ended with a window doubles it, so that one that
 *      ends processes is counted in the end, however far behind it is.
 *  (4) A count says who made it. Whoever finds one of its own lives, so it was no crash: the
 * attempt was not made after all, as the sink could not be reached, or the answer was lost. (5) The
 * window is forgotten, by one write for each bucket, when nothing is left in it of what was there
 * when it was taken. Where nobody dies there is none, and nothing is written.
 *
 * A process may end for other reasons, again and again: the host, another part of the program. Then
 * what is under way long enough is counted each time, too. That cannot be told apart.
 */
#include "patterns/relay.h"

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
    bucket->window = bucket->careful = window;
    hf__outbox_seq_floor(env_wall_ms(&relay->env) + RELAY_SKEW_MS, bucket->until);
}

/* Is something held of that bucket that was there when it was taken, and is not delivered? */
static bool holds_suspects(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    for (size_t i = 0; i < RELAY_SLOTS; i++)
        for (const struct held *held = relay->held[i]; held; held = held->chain)
            if (held->bucket == bucket && hf__seq_compare(held->seq, bucket->until) < 0 &&
                (held->state == HELD_WAITS || held->state == HELD_RUNS))
                return true;
    return false;
}

/* (5) */
bool hf__suspect_is_over(struct hf_relay *relay, struct relay_bucket *bucket)
{
    int64_t now_us = relay_now_us(relay);

    if (bucket->state != BUCKET_OURS || holds_suspects(relay, bucket))
        return false;
    for (const struct relay_key *key = bucket->skipping; key; key = key->skip_next)
        if (hf__seq_compare(key->after, bucket->until) < 0 &&
            (key->fetch_us <= now_us || !(key->attempts || key->blocked)))
            return false; /* but for those that are known to have failed, or to be behind one */
    return hf__seq_compare(bucket->cursor, bucket->until) >= 0 || hf__read_is_dry(relay, bucket);
}

/* ---- events --------------------------------------------------------------------------------- */

bool hf__suspect_is_alone(const struct hf_relay *relay, const struct held *held)
{
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
    held->careful =
        (held->crashes || held->begun || held->bucket->careful) && !relay->o.dry_run; /* (2) */
    held->bucket->careful -= held->bucket->careful > 0;
}

/* Count that it begins. False: it is set apart, and `delivery` says why. */
static bool begin(struct relay_worker *worker, struct held *held,
                  const struct hf_outbox_event *event, struct hf_delivery *delivery)
{
    struct hf_relay *relay = worker->relay;
    enum hf_status status;

    if (event->crashes >= relay->o.max_crashes) { /* (1) */
        delivery->status = HF_TIMEOUT;
        delivery->for_good = true;
        delivery->error = hf__outbox_crash_error(worker->work, event->crashes).message;
        return false;
    }
    if (held->begun) /* by an attempt of ours that was not made, and could not be taken back */
        return true;
    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    status = hf__outbox_begin(worker->io, relay->outbox, event, id_str(&relay->self));
    hf__relay_consumed(relay, worker->io);
    if (status != HF_OK && status != HF_LOST)
        hf__relay_trouble(relay, worker->io);
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

/* Is one of its key among those that are set apart? */
static bool is_behind(const struct sending *apart, const struct held *held)
{
    for (size_t i = 0; i < apart->len; i++)
        if (held->key && apart->helds[i]->key == held->key)
            return true;
    return false;
}

enum hf_status hf__suspect_count(struct relay_worker *worker, struct sending *to,
                                 struct sending *apart)
{
    struct sending all = *to;
    bool none = true;

    *apart = (struct sending){.len = 0};
    for (size_t i = 0; i < all.len; i++)
        none = none && !all.helds[i]->careful;
    if (none)
        return HF_OK;
    TRY(hf__sending_room(worker->work, all.len, to));
    TRY(hf__sending_room(worker->work, all.len, apart));
    for (size_t i = 0; i < all.len; i++) {
        struct hf_delivery why = {.event = &all.events[i]};
        bool behind = is_behind(apart, all.helds[i]);

        if (!behind &&
            (!all.helds[i]->careful || begin(worker, all.helds[i], &all.events[i], &why))) {
            hf__sending_add(to, all.helds[i], &all.events[i]);
            continue;
        }
        hf__sending_add(apart, all.helds[i], &all.events[i]);
        apart->deliveries[apart->len - 1].status = behind ? HF_INTERNAL : why.status;
        apart->deliveries[apart->len - 1].for_good = why.for_good;
        apart->deliveries[apart->len - 1].error = why.error;
        if (behind || !why.event)
            apart->deliveries[apart->len - 1].event = NULL;
    }
    return HF_OK;
}

/*
 * It has to be sure before anything else begins that ends the process: so it is tried until half of
 * the lease is over. HF_LOST: it was not counted, or is another's.
 */
static void uncount(struct relay_worker *worker, const struct hf_outbox_event *event)
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
        uncount(worker, &sent->events[i]);
        held->begun = false;
        pthread_mutex_lock(&relay->mutex);
        relay->metrics.writes++;
        if (held->bucket && held->bucket->window)
            held->bucket->careful++;
        pthread_mutex_unlock(&relay->mutex);
    }
}
