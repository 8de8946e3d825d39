/*
 * relay/relay_urgent.c: urgent events: a cursor of their own, and when they are read.
 *
 * Places of urgent events are before all others (OUTBOX_URGENT_END), so one query shows them alone.
 *
 *  (1) urgent.cursor has the rules of the bucket's cursor: relay_read.c (2), with a `sure` of its
 *      own. Urgent events are read from there when one was emitted, and every poll_ms while sweeps
 *      wait; also when enough other events are held: there is room for one more batch of urgent ones.
 *  (2) Pages of urgent events are URGENT_PAUSE_US apart, unless they show new events and few wait in
 *      memory: so other events are read as long as urgent ones do not pile up.
 *  (3) A page of another kind that ends among urgent events goes on behind them all, as the rest of
 *      them is read from urgent.cursor.
 *  (4) If the clock is before 2020, all places are among those of urgent events. Then there is one
 *      order for all events, as if none were urgent.
 *
 * The mutex is held in all of this.
 */
#include "relay/relay.h"

enum { URGENT_PAUSE_US = 10000 /* (2) */ };

void hf__urgent_reset(const struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us)
{
    bucket->urgent = (struct urgent_progress){.poll_us = now_us + (int64_t)relay->o.poll_ms * 1000};
}

int64_t hf__urgent_pause_until(int64_t now_us)
{
    return now_us + URGENT_PAUSE_US;
}

/* ---- when ----------------------------------------------------------------------------------- */

/* (1) */
int64_t hf__urgent_when(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    bool polls = bucket->more || !hf__relay_read_has_room(relay, bucket);
    int64_t from_us = bucket->urgent.woken ? 0 : polls ? bucket->urgent.poll_us : INT64_MAX;

    ASSERT_RELAY_HELD(relay);
    if (bucket->held >= (size_t)relay->o.batch * (RELAY_HELD_BATCHES + 1) ||
        (relay->keys.bytes >= RELAY_BYTES_MAX + RELAY_BYTES_MAX / RELAY_HELD_BATCHES &&
         bucket->held) ||
        relay->keys.len >= RELAY_KEYS_MAX)
        return INT64_MAX;
    return from_us > bucket->urgent.not_before_us ? from_us : bucket->urgent.not_before_us;
}

bool hf__urgent_is_due(const struct hf_relay *relay, const struct relay_bucket *bucket,
                       int64_t now_us)
{
    return hf__relay_read_may(relay, bucket) && bucket->not_before_us <= now_us &&
           hf__urgent_when(relay, bucket) <= now_us;
}

/* ---- pages ---------------------------------------------------------------------------------- */

/* (4) What was woken in a lane that is none is read forward. */
void hf__urgent_bound(struct relay_bucket *bucket, struct relay_page *page)
{
    page->two_orders = !is_urgent_seq(page->sure);
    if (hf__seq_compare(bucket->urgent.cursor, page->sure_urgent) > 0)
        memcpy(bucket->urgent.cursor, page->sure_urgent, sizeof(page->sure_urgent));
    if (!page->two_orders && bucket->urgent.woken) {
        bucket->urgent.woken = bucket->urgent.from_start = false;
        bucket->woken = true;
    }
}

void hf__urgent_plan(struct relay_bucket *bucket, struct relay_page *page)
{
    assert(page->two_orders);
    page->kind = PAGE_URGENT;
    page->limit += (uint32_t)bucket->held + bucket->urgent.extra;
    if (bucket->urgent.from_start)
        memset(bucket->urgent.cursor, 0, sizeof(bucket->urgent.cursor));
    memcpy(page->after, bucket->urgent.cursor, sizeof(page->after));
    bucket->urgent.woken = bucket->urgent.from_start = false;
}

bool hf__urgent_has(const struct relay_page *page, const char *seq)
{
    return page->two_orders && is_urgent_seq(seq);
}

/* (3) */
bool hf__urgent_ends(const struct relay_page *page)
{
    return page->last[0] && hf__urgent_has(page, page->last) &&
           (page->kind == PAGE_FORWARD || hf__seq_compare(page->last, page->sure_urgent) > 0);
}

/* A page of urgent ones was taken. (2) */
static void lane_advance(const struct hf_relay *relay, struct relay_bucket *bucket,
                         const struct relay_page *page, int64_t now_us)
{
    bool stalled = page->more && !page->taken && hf__seq_compare(page->last, page->sure_urgent) > 0;
    const char *end = page->sure_urgent;

    if (page->more && hf__seq_compare(page->last, end) < 0)
        end = page->last;
    if (hf__seq_compare(end, bucket->urgent.cursor) > 0)
        memcpy(bucket->urgent.cursor, end, RELAY_SEQ_SIZE);
    bucket->urgent.extra = stalled ? 2 * bucket->urgent.extra + relay->o.batch : 0;
    if (bucket->urgent.extra > RELAY_EXTRA_MAX)
        bucket->urgent.extra = RELAY_EXTRA_MAX;
    bucket->urgent.woken = bucket->urgent.woken || page->more;
    bucket->urgent.whole = bucket->urgent.whole || !page->more;
    bucket->urgent.not_before_us =
        page->more && page->taken && hf__relay_read_is_short(relay, bucket)
            ? 0
            : now_us + URGENT_PAUSE_US;
}

void hf__urgent_advance(const struct hf_relay *relay, struct relay_bucket *bucket,
                        const struct relay_page *page, int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    if (page->kind == PAGE_URGENT)
        lane_advance(relay, bucket, page, now_us);
    else if (hf__urgent_ends(page) && page->more)
        bucket->urgent.woken = true; /* the rest of these */
    else if (!page->after[0])
        bucket->urgent.whole =
            bucket->urgent.whole || !hf__urgent_has(page, page->last) || !page->more;
}
