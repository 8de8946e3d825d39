/*
 * relay/relay_page.c: the events of a page: which are held, which are skipped, and how far the bucket
 * and its keys were read then. (n) is that of relay_read.c.
 *
 * An event of a page is, in this order:
 *
 *     held already, or not one of ours        nothing is done
 *     gone since the page was requested       its key is skipped from here on
 *     behind an event its key waits for       skipped
 *     not due yet, or to be retried later     its key waits from here on (hf__relay_key_skip())
 *     else                                    held, or skipped if there is no room
 *
 * The mutex is held in all of this.
 */
#include "relay/relay.h"

enum {
    FIRST_PAUSE_MS = 100,
    STALLED_MS = 2,
    REST_US = 40, /* for each event that was new of late */
    REST_MAX_US = 25000
};

/* ---- events --------------------------------------------------------------------------------- */

/* When it may be tried, on the elapsed clock; 0: now. Never later than the longest delay from now,
 * even if clocks differ. */
static int64_t waits_until(const struct hf_relay *relay, const struct relay_page *page,
                           const struct hf_outbox_event *event, int64_t now_us)
{
    int64_t longest_us = (int64_t)relay->o.backoff_max_ms * 1100, wait_us = 0;

    if (event->next_us > page->wall_us)
        wait_us = event->next_us - page->wall_us;
    if (wait_us > longest_us)
        wait_us = longest_us;
    if (hf__outbox_is_early(event, page->wall_us) && event->event.due_us - page->wall_us > wait_us)
        wait_us = event->event.due_us - page->wall_us;
    return wait_us > 0 ? now_us + wait_us : 0;
}

/* Is it behind an event that its key waits for? Then it is skipped; the key is read on from the
 * first of these. */
static bool is_passed_over(struct relay_key *key, const struct relay_page *page,
                           const struct hf_outbox_event *event, const char *seq, int64_t now_us)
{
    bool first;

    if (!key->skips || hf__seq_compare(seq, key->after) <= 0)
        return false;
    first = key->mark != page->number && hf__seq_compare(page->after, key->after) <= 0;
    if (first && key->fetch_us > now_us && key->attempts && event->attempts != key->attempts - 1 &&
        event->next_us <= page->wall_us)
        key->fetch_us = now_us; /* it was retried or replayed */
    hf__relay_key_expect(key);
    if (!first || key->check || key->fetch_us > now_us) {
        key->mark = page->number;
        return true;
    }
    return false;
}

static void event_take(struct hf_relay *relay, struct relay_bucket *bucket, struct relay_page *page,
                       const struct hf_outbox_event *event, const char *seq, int64_t now_us)
{
    int64_t until_us = waits_until(relay, page, event, now_us);
    uint64_t sequence = event->event.urgent ? 0 : event->event.sequence;
    struct relay_key *key = hf__relay_key_find(relay, bucket, event, seq, false);
    bool is_new = !key;

    ASSERT_RELAY_HELD(relay);
    if (page->kind == PAGE_FETCH &&
        (!key || !key->skips ||
         (hf__urgent_has(page, seq) && hf__seq_compare(seq, key->after) <= 0)))
        return; /* one before it may have come late, and be before this page */
    key = key ? key : hf__relay_key_find(relay, bucket, event, seq, true);
    if (!key) {
        page->no_memory = true;
        return;
    }
    if (is_passed_over(key, page, event, seq, now_us))
        return;
    if (key->skips && key->check) { /* before what is kept waiting: it waits for the answer, too */
        hf__relay_key_skip(relay, key, seq, 0, key->fetch_us);
        key->mark = page->number;
    } else if (until_us || (is_new && relay->o.failed_blocks && !key->alone)) {
        hf__relay_key_skip(relay, key, seq, sequence, until_us);
        key->mark = page->number;
        key->check = is_new && relay->o.failed_blocks && !key->alone;
        key->attempts = event->attempts;
        key->due_us = hf__outbox_due_ms(event) * 1000;
    } else if (key->skips && key->sequence && sequence > key->sequence) {
        hf__relay_key_skip(relay, key, seq, key->sequence,
                           key->fetch_us); /* behind the one that waits */
        key->mark = page->number;
    } else if (hf__relay_key_hold(relay, key, event, seq, now_us)) {
        page->taken++;
        if (sequence && sequence <= key->sequence)
            key->sequence = 0; /* the one that waited: those behind it follow it now */
        if (key->skips && key->mark != page->number && hf__seq_compare(seq, key->after) > 0)
            hf__seq_set(key->after, hf_str_from(seq));
    } else {
        hf__relay_key_skip(relay, key, seq, 0, now_us);
        key->mark = page->number;
    }
    hf__relay_key_requeue(relay, key);
}

/*
 * It was sent while the page was read. If it failed it is still in the table, with one more
 * attempt, and its key is read again from it on. So the later events of its key in this page are
 * skipped.
 */
static void event_pass_over(struct hf_relay *relay, struct relay_bucket *bucket,
                            const struct relay_page *page, const struct hf_outbox_event *event,
                            const char *seq)
{
    struct relay_key *key = hf__relay_key_find(relay, bucket, event, seq, false);

    if (key && key->skips && hf__seq_compare(seq, key->after) > 0)
        key->mark = page->number;
}

/* ---- how far it was read -------------------------------------------------------------------- */

/* (2) Where the page ended, or as far as is sure. */
static void place_advance(char to[RELAY_SEQ_SIZE], const struct relay_page *page)
{
    static const char behind[RELAY_SEQ_SIZE] = OUTBOX_URGENT_END;
    const char *end = hf__urgent_ends(page)                         ? behind
                      : hf__seq_compare(page->last, page->sure) < 0 ? page->last
                                                                    : page->sure;

    if (hf__seq_compare(end, to) > 0)
        memcpy(to, end, RELAY_SEQ_SIZE);
}

/* The same for a key: it is never read on from behind the end of the page. A key that cannot be
 * read on because of many urgent events that are too new waits a little. */
static void key_advance(struct relay_key *key, const struct relay_page *page, int64_t now_us)
{
    bool in_lane = hf__urgent_has(page, page->last);
    const char *sure = in_lane ? page->sure_urgent : page->sure, *end = page->last;

    if (hf__seq_compare(end, sure) > 0)
        end = sure;
    if (hf__seq_compare(end, key->after) > 0)
        memcpy(key->after, end, RELAY_SEQ_SIZE);
    else if (in_lane && end == sure && page->kind == PAGE_FETCH)
        key->fetch_us = hf__urgent_pause_until(now_us);
}

/* If the page begins where a key was to be read on, the key has no other events up to the end of
 * the page. */
static void keys_cover(struct hf_relay *relay, struct relay_bucket *bucket,
                       const struct relay_page *page, bool at_end, int64_t now_us)
{
    struct relay_key *key = bucket->skipping;

    while (key) {
        struct relay_key *next = key->skip_next;

        if (key->mark != page->number && key->fetch_us <= now_us && !key->check &&
            hf__seq_compare(page->after, key->after) <= 0) {
            if (at_end)
                hf__relay_key_unskip(key);
            else
                key_advance(key, page, now_us);
            hf__relay_key_requeue(relay, key);
        }
        key = next;
    }
}

/*
 * (7) The next page has to pass over about as many events as were new within RELAY_OVERLAP_MS;
 * older counts fade. At the end of a bucket nothing is read before new events may have come.
 */
static void bucket_rest(struct relay_bucket *bucket, size_t taken, bool more, int64_t now_us)
{
    int64_t window_us = (int64_t)RELAY_OVERLAP_MS * 1000;
    int64_t since_us = now_us - bucket->recent_us, rest_us;

    since_us = since_us < window_us ? since_us : window_us;
    bucket->recent -= bucket->recent * (uint64_t)since_us / (uint64_t)window_us;
    bucket->recent += taken;
    bucket->recent_us = now_us;
    rest_us =
        bucket->recent < REST_MAX_US / REST_US ? (int64_t)bucket->recent * REST_US : REST_MAX_US;
    if (!more && taken)
        bucket->not_before_us = now_us + rest_us;
}

/* If all events of a page were known, the next page of that size shows nothing new: it has to be
 * larger. */
static void cursor_advance(struct hf_relay *relay, struct relay_bucket *bucket,
                           const struct relay_page *page, bool due_more, int64_t now_us)
{
    relay->reader.moved += due_more && hf__seq_compare(page->last, bucket->cursor) > 0;
    place_advance(bucket->cursor, page);
    if (hf__seq_compare(page->last, bucket->seen) > 0)
        memcpy(bucket->seen, hf__urgent_ends(page) ? bucket->cursor : page->last,
               sizeof(bucket->seen));
    bucket->more = due_more;
    bucket->whole = bucket->whole || !due_more;
    bucket_rest(bucket, page->taken, due_more, now_us);
    if (!due_more || page->taken || hf__seq_compare(page->last, page->sure) <= 0) {
        if (hf__seq_compare(page->last, page->sure) <= 0)
            bucket->extra = 0;
        else if (page->len <= page->limit / 2)
            bucket->extra /= 2;
        return;
    }
    bucket->extra = bucket->extra ? bucket->extra * 2 : relay->o.batch;
    bucket->extra = bucket->extra < RELAY_EXTRA_MAX ? bucket->extra : RELAY_EXTRA_MAX;
    bucket->not_before_us = now_us + STALLED_MS * 1000;
}

/* When to look again for events of clocks that are far ahead: soon, if there are any. */
static void far_schedule(struct relay_bucket *bucket, const struct relay_page *page, int64_t now_us)
{
    const struct hf_outbox_event *last = page->len ? &page->events[page->len - 1] : NULL;

    if (last && !last->event.due_us &&
        hf__outbox_due_ms(last) > page->wall_us / 1000 + RELAY_SKEW_MS)
        return;
    bucket->far_us = now_us + RELAY_FAR_MS * 1000;
}

/* Where we are now. */
static void page_advance(struct hf_relay *relay, struct relay_bucket *bucket,
                         struct relay_page *page, int64_t now_us)
{
    bool due_more = page->more && page->last[0] && !page->early;
    bool at_end = !due_more || (!hf__urgent_has(page, page->last) &&
                                hf__seq_compare(page->last, bucket->seen) >= 0);

    ASSERT_RELAY_HELD(relay);
    keys_cover(relay, bucket, page,
               page->kind == PAGE_FORWARD ? !due_more : page->kind != PAGE_URGENT && at_end,
               now_us);
    hf__urgent_advance(relay, bucket, page, now_us);
    if (page->kind == PAGE_FORWARD) {
        cursor_advance(relay, bucket, page, due_more, now_us);
    } else if (page->kind == PAGE_SWEEP) {
        place_advance(bucket->sweep, page);
        if (!page->taken)
            bucket->sweep_left--;
        if (at_end || hf__seq_compare(page->last, page->sure) > 0) {
            bucket->sweeping = false; /* the rest is for reading forward */
            bucket->more = bucket->more || due_more;
        }
    }
    if ((page->kind == PAGE_FORWARD || page->kind == PAGE_SWEEP) && !page->after[0])
        bucket->bare = !page->len && !page->more;
    if (page->far && !page->more)
        far_schedule(bucket, page, now_us);
    hf__bucket_advance(relay, bucket);
}

void hf__relay_page_take(struct hf_relay *relay, struct relay_bucket *bucket,
                         struct relay_page *page, int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    page->number = ++relay->reader.page;
    for (size_t i = 0; i < page->len && !page->no_memory; i++) {
        const struct hf_outbox_event *event = &page->events[i];
        const struct held *held;
        char seq[RELAY_SEQ_SIZE];

        hf__seq_set(seq, sk_of(relay->outbox, event->item));
        held = hf__held_find(relay, seq);
        if (held && held->state == HELD_GONE)
            event_pass_over(relay, bucket, page, event, seq);
        else if (!held && hf__outbox_only_has(&relay->only, &event->event))
            event_take(relay, bucket, page, event, seq, now_us);
        page->early = page->early || hf__outbox_is_early(event, page->wall_us);
        if (!page->no_memory && !page->early)
            memcpy(page->last, seq, sizeof(seq)); /* (2) */
    }
    if (!page->no_memory) {
        page_advance(relay, bucket, page, now_us);
        return;
    }
    bucket->not_before_us = now_us + FIRST_PAUSE_MS * 1000;
    bucket->urgent.woken = bucket->urgent.woken || page->kind == PAGE_URGENT;
}
