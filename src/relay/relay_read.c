/*
 * relay/relay_read.c: which buckets are read, from where, and what is kept of what is there.
 *
 * A bucket has a cursor, up to which all was looked at. Reads go on from there: at once when there
 * is more, when somebody emitted something into the bucket, or when it is time to look. What is
 * before the cursor is gone as a rule, and looking through the remains of a hundred thousand events
 * is not for free; so that is done every poll_ms only (a sweep), and less often while a backlog is
 * worked off, for what was committed late or was let go on by hand. Buckets that were empty then
 * are asked together: relay_look.c. What was passed over by intention (relay_key.c) is read again
 * from where it is (a fetch).
 *
 * A read shows what is due within the next poll_ms: what is due later than now waits as a skipped
 * key, so scheduled events are in time without a query of their own. What others emit whose clocks
 * are ahead by more than RELAY_SKEW_MS is among what is scheduled for the next minute; so it is
 * looked for every RELAY_FAR_MS only, unless there was some.
 *
 *  (1) One read of a bucket runs at a time.
 *  (2) The cursor, and where keys and sweeps are to be read on, stay RELAY_OVERLAP_MS behind the
 *      clock as it was before the read: others may still come before what is newer than that.
 *  (3) Forward reading looks at each event once; sweeps without news end after a few pages, and go
 *      on where they ended the next time. So a key with many events that cannot go on costs little.
 *  (4) What a read shows that began before the bucket was taken anew means nothing.
 *  (5) No page begins behind the cursor: so what is taken of a key is the first that is there.
 *  (6) News is read first as long as there is little to do, but no two pages in a row while a key
 *      is to be read on or a sweep is under way: a bucket that is never quiet starves neither.
 *  (7) A page of a bucket that is busy passes over what was there in the last half second, most of
 *      which is gone. So the busier a bucket is the longer it rests, at most REST_MAX_US, until
 *      there is more to show for it; one that is not busy is read at once.
 *  (8) Urgent ones, whose places are before all others (OUTBOX_URGENT_END), have a cursor of their
 *      own, urgent_at, with the rules of the other one. They are read on from there when somebody
 *      emitted one, and every poll_ms while sweeps wait; also when enough others are held, of which
 *      there is room for one more batch. Pages of them are URGENT_PAUSE_US apart, unless they show
 *      news and there is little to do: so as long as all that is urgent is delivered, the others
 *      are read. A page of another kind that ends among them goes on behind them all, as what is
 *      left of them is read from urgent_at.
 *  (9) By a clock that is before 2020 all places are where urgent ones have theirs. Then there is
 *      one order for all, as if nothing were urgent.
 *
 * Order. An event has its place from before it was committed, by a clock that may differ from ours.
 * As long as the time of a commit and the difference of clocks are less than RELAY_OVERLAP_MS
 * together, what a read did not show yet has its place behind where the next one begins, by (2);
 * and a page, which is one answer of the database, that shows an event shows those of its key that
 * were committed before. So each is found no later than those that were emitted behind it. What is
 * even later is found by a sweep, and may be out of order. Urgent ones of a key have an order of
 * their own, and so have the others. Between an urgent one and another one there is none: each is
 * read by its own cursor, and of what is held of a key the urgent ones are first.
 *
 * The price is that what is newer than RELAY_OVERLAP_MS and still there is read again. So a page is
 * larger by what we hold; and by more, when it showed nothing new and the cursor could not move.
 */
#include "relay/relay.h"

enum {
    LOOK_AHEAD_MAX_MS = 1000,
    FIRST_PAUSE_MS = 100,
    STALLED_MS = 2,
    EXTRA_MAX = 4000,
    SWEEP_LATE = 10,         /* while there is more to read, it is done so many polls later */
    URGENT_PAUSE_US = 10000, /* (8) */
    REST_US = 40,            /* for each event that was new of late */
    REST_MAX_US = 25000
};

/* One page, and from where it was read. */
struct page {
    enum { FORWARD, SWEEP, FETCH, URGENT } kind;
    char after[RELAY_SEQ_SIZE];
    struct hf_outbox_event *events;
    size_t len;
    bool more;
    int64_t wall_us;                  /* before it was asked for */
    char sure[RELAY_SEQ_SIZE];        /* (2): where we may go on at most, */
    char sure_urgent[RELAY_SEQ_SIZE]; /* and among the urgent ones; */
    bool lanes;                       /* (9) false: there is one order for all */
    uint32_t limit;
    bool far; /* it shows what those emit whose clocks are far ahead */
    uint64_t life;
    size_t taken; /* events of it that are held now */
    uint64_t number;
    char last[RELAY_SEQ_SIZE]; /* the last one before any that is early */
    bool early;                /* there is one */
    bool no_memory;
};

void hf__read_reset(struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us)
{
    memset(bucket->cursor, 0, sizeof(bucket->cursor));
    memset(bucket->seen, 0, sizeof(bucket->seen));
    bucket->far_us = 0;
    bucket->extra = bucket->urgent_extra = 0;
    bucket->urgent = bucket->urgent_anew = bucket->urgent_whole = false;
    memset(bucket->urgent_at, 0, sizeof(bucket->urgent_at));
    bucket->urgent_us = now_us + (int64_t)relay->o.poll_ms * 1000;
    bucket->urgent_rest_us = 0;
    bucket->more = true;
    bucket->woken = false;
    bucket->forward = false;
    bucket->whole = false;
    bucket->bare = false;
    bucket->sweeping = false;
    bucket->sweep_us = now_us + (int64_t)relay->o.poll_ms * 1000;
    bucket->not_before_us = 0;
    bucket->failures = 0;
    bucket->wants_us = 0;
    bucket->recent = 0;
    bucket->recent_us = now_us;
}

/* ---- choosing ------------------------------------------------------------------------------- */

/* Is this key to be read on now? */
static bool is_to_fetch(const struct relay_key *key, int64_t now_us, int64_t *next_us)
{
    bool kept_back = key->link && !key->queued;

    if (key->running || (key->len && !kept_back))
        return false;
    if (key->fetch_us <= now_us)
        return true;
    *next_us = key->fetch_us < *next_us ? key->fetch_us : *next_us;
    return false;
}

/* The key that is to be read on, and is first among those. */
static struct relay_key *fetch_of(struct relay_bucket *bucket, int64_t now_us, int64_t *next_us)
{
    struct relay_key *first = NULL;
    int64_t later_us = INT64_MAX;

    if (bucket->fetch_us <= now_us) {
        for (struct relay_key *key = bucket->skipping; key; key = key->skip_next)
            if (is_to_fetch(key, now_us, &later_us) &&
                (!first || hf__seq_compare(key->after, first->after) < 0))
                first = key;
        if (!first)
            bucket->fetch_us = later_us;
    }
    if (bucket->fetch_us > now_us && bucket->fetch_us < *next_us)
        *next_us = bucket->fetch_us;
    return first;
}

static bool has_room(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->held < (size_t)relay->o.batch * RELAY_HELD_BATCHES &&
           (relay->bytes < RELAY_BYTES_MAX || !bucket->held) && relay->keys_len < RELAY_KEYS_MAX;
}

/* Is there too little to do to wait with reading on? */
static bool is_short(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->ready < ((size_t)relay->o.batch + 1) / 2;
}

/* When what is before the cursor is to be looked through again: the longer a backlog is worked off
 * the more remains of it there are. */
static int64_t sweep_at(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->sweep_us + (bucket->more ? (int64_t)relay->o.poll_ms * 1000 * SWEEP_LATE : 0);
}

/* (8) When urgent ones are to be looked for. */
static int64_t urgent_when(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    bool polls = bucket->more || !has_room(relay, bucket);
    int64_t from_us = bucket->urgent ? 0 : polls ? bucket->urgent_us : INT64_MAX;

    if (bucket->held >= (size_t)relay->o.batch * (RELAY_HELD_BATCHES + 1) ||
        (relay->bytes >= RELAY_BYTES_MAX + RELAY_BYTES_MAX / RELAY_HELD_BATCHES && bucket->held) ||
        relay->keys_len >= RELAY_KEYS_MAX)
        return INT64_MAX;
    return from_us > bucket->urgent_rest_us ? from_us : bucket->urgent_rest_us;
}

static bool may_read(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->state == BUCKET_OURS && !bucket->reading && is_read_by(relay, bucket);
}

bool hf__read_is_urgent(const struct hf_relay *relay, const struct relay_bucket *bucket,
                        int64_t now_us)
{
    return may_read(relay, bucket) && bucket->not_before_us <= now_us &&
           urgent_when(relay, bucket) <= now_us;
}

static bool wants(const struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us,
                  int64_t *next_us)
{
    int64_t sweep_us = sweep_at(relay, bucket), urgent_us = urgent_when(relay, bucket);

    if (!may_read(relay, bucket) || (urgent_us == INT64_MAX && !has_room(relay, bucket)))
        return false;
    if (bucket->not_before_us > now_us) {
        *next_us = bucket->not_before_us < *next_us ? bucket->not_before_us : *next_us;
        return false;
    }
    if (urgent_us <= now_us)
        return true;
    *next_us = urgent_us < *next_us ? urgent_us : *next_us;
    if (!has_room(relay, bucket))
        return false;
    if (sweep_us <= now_us || (bucket->sweeping && bucket->sweep_left))
        return true;
    if ((bucket->woken || bucket->more) && is_short(relay, bucket))
        return true; /* else there is enough to do, and more will have come by then */
    *next_us = sweep_us < *next_us ? sweep_us : *next_us;
    return fetch_of(bucket, now_us, next_us) != NULL;
}

struct relay_bucket *hf__read_choose(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    struct relay_bucket *oldest = NULL;
    bool oldest_urgent = false;

    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->buckets[i];
        bool urgent;

        if ((relay->looking && hf__look_is_for(relay, bucket, now_us)) ||
            !wants(relay, bucket, now_us, next_us)) {
            bucket->wants_us = 0;
            continue;
        }
        if (!bucket->wants_us)
            bucket->wants_us = now_us;
        urgent = hf__read_is_urgent(relay, bucket, now_us);
        if (!oldest || urgent > oldest_urgent ||
            (urgent == oldest_urgent && bucket->wants_us < oldest->wants_us)) {
            oldest = bucket;
            oldest_urgent = urgent;
        }
    }
    return oldest;
}

uint32_t hf__read_ahead_ms(const struct hf_relay *relay)
{
    return relay->o.poll_ms < LOOK_AHEAD_MAX_MS ? relay->o.poll_ms : LOOK_AHEAD_MAX_MS;
}

bool hf__read_is_dry(const struct hf_relay *relay, struct relay_bucket *bucket)
{
    int64_t now_us = relay_now_us(relay), next_us = INT64_MAX;

    if (!is_read_by(relay, bucket))
        return true;
    return bucket->whole && !bucket->more && !bucket->woken && !bucket->urgent &&
           !bucket->reading && !bucket->held && !fetch_of(bucket, now_us, &next_us);
}

/* ---- what is there -------------------------------------------------------------------------- */

/* When it may be tried, on the elapsed clock; 0: now. Clocks that differ do not make it later than
 * the longest wait there is. */
static int64_t waits_until(const struct hf_relay *relay, const struct page *page,
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

/* Is it behind what its key has to wait for? Then it is not for this page, or the first of what is
 * to be read on. */
static bool is_passed_over(struct relay_key *key, const struct page *page,
                           const struct hf_outbox_event *event, const char *seq, int64_t now_us)
{
    bool first;

    if (!key->skips || hf__seq_compare(seq, key->after) <= 0)
        return false;
    first = key->mark != page->number && hf__seq_compare(page->after, key->after) <= 0;
    if (first && key->fetch_us > now_us && key->attempts && event->attempts != key->attempts - 1 &&
        event->next_us <= page->wall_us)
        key->fetch_us = now_us; /* let go on by hand */
    hf__key_expect(key);
    if (!first || key->check || key->fetch_us > now_us) {
        key->mark = page->number;
        return true;
    }
    return false;
}

/* (8) Is it a place among the urgent ones? */
static bool is_in_lane(const struct page *page, const char *seq)
{
    return page->lanes && is_urgent_seq(seq);
}

static void look_at(struct hf_relay *relay, struct relay_bucket *bucket, struct page *page,
                    const struct hf_outbox_event *event, const char *seq, int64_t now_us)
{
    int64_t until_us = waits_until(relay, page, event, now_us);
    uint64_t sequence = event->event.urgent ? 0 : event->event.sequence;
    struct relay_key *key = hf__key_find(relay, bucket, event, seq, false);
    bool is_new = !key;

    if (page->kind == FETCH &&
        (!key || !key->skips || (is_in_lane(page, seq) && hf__seq_compare(seq, key->after) <= 0)))
        return; /* one before it may have come late, and be before this page */
    key = key ? key : hf__key_find(relay, bucket, event, seq, true);
    if (!key) {
        page->no_memory = true;
        return;
    }
    if (is_passed_over(key, page, event, seq, now_us))
        return;
    if (key->skips && key->check) { /* before what is kept waiting: it waits for the answer, too */
        hf__key_skip(relay, key, seq, 0, key->fetch_us);
        key->mark = page->number;
    } else if (until_us || (is_new && relay->o.failed_blocks && !key->alone)) {
        hf__key_skip(relay, key, seq, sequence, until_us);
        key->mark = page->number;
        key->check = is_new && relay->o.failed_blocks && !key->alone;
        key->attempts = event->attempts;
        key->due_us = hf__outbox_due_ms(event) * 1000;
    } else if (key->skips && key->sequence && sequence > key->sequence) {
        hf__key_skip(relay, key, seq, key->sequence, key->fetch_us); /* behind the one that waits */
        key->mark = page->number;
    } else if (hf__key_hold(relay, key, event, seq, now_us)) {
        page->taken++;
        if (sequence && sequence <= key->sequence)
            key->sequence = 0; /* the one that waited: those behind it follow it now */
        if (key->skips && key->mark != page->number && hf__seq_compare(seq, key->after) > 0)
            hf__seq_set(key->after, hf_str_from(seq));
    } else {
        hf__key_skip(relay, key, seq, 0, now_us);
        key->mark = page->number;
    }
    hf__key_settle(relay, key);
}

/*
 * It was sent while the page was read. When it failed it is still there, with one more attempt, for
 * its key to be read on from it; so those behind it in this page are not for now.
 */
static void pass_over(struct hf_relay *relay, struct relay_bucket *bucket, const struct page *page,
                      const struct hf_outbox_event *event, const char *seq)
{
    struct relay_key *key = hf__key_find(relay, bucket, event, seq, false);

    if (key && key->skips && hf__seq_compare(seq, key->after) > 0)
        key->mark = page->number;
}

/* (8) Does it end among urgent ones where none may go on? */
static bool ends_urgent(const struct page *page)
{
    return page->last[0] && is_in_lane(page, page->last) &&
           (page->kind == FORWARD || hf__seq_compare(page->last, page->sure_urgent) > 0);
}

/* (2) Where the page ended, or as far as is sure. */
static void move_on(char to[RELAY_SEQ_SIZE], const struct page *page)
{
    static const char behind[RELAY_SEQ_SIZE] = OUTBOX_URGENT_END;
    const char *end = ends_urgent(page)                             ? behind
                      : hf__seq_compare(page->last, page->sure) < 0 ? page->last
                                                                    : page->sure;

    if (hf__seq_compare(end, to) > 0)
        memcpy(to, end, RELAY_SEQ_SIZE);
}

/* The same for a key, which is never read on behind what the page did not show. One that is kept
 * from reading on by urgent ones that are too new, of which there are many, rests a little. */
static void key_on(struct relay_key *key, const struct page *page, int64_t now_us)
{
    bool in_lane = is_in_lane(page, page->last);
    const char *sure = in_lane ? page->sure_urgent : page->sure, *end = page->last;

    if (hf__seq_compare(end, sure) > 0)
        end = sure;
    if (hf__seq_compare(end, key->after) > 0)
        memcpy(key->after, end, RELAY_SEQ_SIZE);
    else if (in_lane && end == sure && page->kind == FETCH)
        key->fetch_us = now_us + URGENT_PAUSE_US;
}

/* Keys whose events were all in the page, from where they were to be read on, have no others up to
 * its end. */
static void cover(struct hf_relay *relay, struct relay_bucket *bucket, const struct page *page,
                  bool at_end, int64_t now_us)
{
    struct relay_key *key = bucket->skipping;

    while (key) {
        struct relay_key *next = key->skip_next;

        if (key->mark != page->number && key->fetch_us <= now_us && !key->check &&
            hf__seq_compare(page->after, key->after) <= 0) {
            if (at_end)
                hf__key_unskip(key);
            else
                key_on(key, page, now_us);
            hf__key_settle(relay, key);
        }
        key = next;
    }
}

/*
 * (7) What was new within RELAY_OVERLAP_MS, fading, is about what the next page has to pass over.
 * At the end of a bucket nothing is read again before some more may have come.
 */
static void rest(struct relay_bucket *bucket, size_t taken, bool more, int64_t now_us)
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

/* A page in which all was known shows nothing new the next time either, unless it is larger. */
static void forward(struct hf_relay *relay, struct relay_bucket *bucket, const struct page *page,
                    bool due_more, int64_t now_us)
{
    relay->moved += due_more && hf__seq_compare(page->last, bucket->cursor) > 0;
    move_on(bucket->cursor, page);
    if (hf__seq_compare(page->last, bucket->seen) > 0)
        memcpy(bucket->seen, ends_urgent(page) ? bucket->cursor : page->last, sizeof(bucket->seen));
    bucket->more = due_more;
    bucket->whole = bucket->whole || !due_more;
    rest(bucket, page->taken, due_more, now_us);
    if (!due_more || page->taken || hf__seq_compare(page->last, page->sure) <= 0) {
        if (hf__seq_compare(page->last, page->sure) <= 0)
            bucket->extra = 0;
        else if (page->len <= page->limit / 2)
            bucket->extra /= 2;
        return;
    }
    bucket->extra = bucket->extra ? bucket->extra * 2 : relay->o.batch;
    bucket->extra = bucket->extra < EXTRA_MAX ? bucket->extra : EXTRA_MAX;
    bucket->not_before_us = now_us + STALLED_MS * 1000;
}

/* When to look for the far ahead again: soon, if there is something. */
static void look_far(struct relay_bucket *bucket, const struct page *page, int64_t now_us)
{
    const struct hf_outbox_event *last = page->len ? &page->events[page->len - 1] : NULL;

    if (last && !last->event.due_us &&
        hf__outbox_due_ms(last) > page->wall_us / 1000 + RELAY_SKEW_MS)
        return;
    bucket->far_us = now_us + RELAY_FAR_MS * 1000;
}

/* (8) As forward() and rest(). */
static void look_urgent(const struct hf_relay *relay, struct relay_bucket *bucket,
                        const struct page *page, int64_t now_us)
{
    bool stalled = page->more && !page->taken && hf__seq_compare(page->last, page->sure_urgent) > 0;
    const char *end = page->sure_urgent;

    if (page->more && hf__seq_compare(page->last, end) < 0)
        end = page->last;
    if (hf__seq_compare(end, bucket->urgent_at) > 0)
        memcpy(bucket->urgent_at, end, RELAY_SEQ_SIZE);
    bucket->urgent_extra = stalled ? 2 * bucket->urgent_extra + relay->o.batch : 0;
    if (bucket->urgent_extra > EXTRA_MAX)
        bucket->urgent_extra = EXTRA_MAX;
    bucket->urgent = bucket->urgent || page->more;
    bucket->urgent_whole = bucket->urgent_whole || !page->more;
    bucket->urgent_rest_us =
        page->more && page->taken && is_short(relay, bucket) ? 0 : now_us + URGENT_PAUSE_US;
}

/* Where we are now. The mutex is held. */
static void advance(struct hf_relay *relay, struct relay_bucket *bucket, struct page *page,
                    int64_t now_us)
{
    bool due_more = page->more && page->last[0] && !page->early;
    bool at_end = !due_more ||
                  (!is_in_lane(page, page->last) && hf__seq_compare(page->last, bucket->seen) >= 0);

    cover(relay, bucket, page, page->kind == FORWARD ? !due_more : page->kind != URGENT && at_end,
          now_us);
    if (page->kind == URGENT)
        look_urgent(relay, bucket, page, now_us);
    else if (ends_urgent(page) && page->more)
        bucket->urgent = true; /* the rest of these */
    else if (!page->after[0])
        bucket->urgent_whole = bucket->urgent_whole || !is_in_lane(page, page->last) || !page->more;
    if (page->kind == FORWARD) {
        forward(relay, bucket, page, due_more, now_us);
    } else if (page->kind == SWEEP) {
        move_on(bucket->sweep, page);
        if (!page->taken)
            bucket->sweep_left--;
        if (at_end || hf__seq_compare(page->last, page->sure) > 0) {
            bucket->sweeping = false; /* the rest is for reading forward */
            bucket->more = bucket->more || due_more;
        }
    }
    if ((page->kind == FORWARD || page->kind == SWEEP) && !page->after[0])
        bucket->bare = !page->len && !page->more;
    if (page->far && !page->more)
        look_far(bucket, page, now_us);
    hf__bucket_advance(relay, bucket);
}

static void take_page(struct hf_relay *relay, struct relay_bucket *bucket, struct page *page,
                      int64_t now_us)
{
    page->number = ++relay->page;
    for (size_t i = 0; i < page->len && !page->no_memory; i++) {
        const struct hf_outbox_event *event = &page->events[i];
        const struct held *held;
        char seq[RELAY_SEQ_SIZE];

        hf__seq_set(seq, sk_of(relay->outbox, event->item));
        held = hf__held_find(relay, seq);
        if (held && held->state == HELD_GONE)
            pass_over(relay, bucket, page, event, seq);
        else if (!held && hf__outbox_only_has(&relay->only, &event->event))
            look_at(relay, bucket, page, event, seq, now_us);
        page->early = page->early || hf__outbox_is_early(event, page->wall_us);
        if (!page->no_memory && !page->early)
            memcpy(page->last, seq, sizeof(seq)); /* (2) */
    }
    if (!page->no_memory) {
        advance(relay, bucket, page, now_us);
        return;
    }
    bucket->not_before_us = now_us + FIRST_PAUSE_MS * 1000;
    bucket->urgent = bucket->urgent || page->kind == URGENT;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* (2) No cursor is behind what is sure, also when the clock was set back. */
static void bound_page(struct relay_bucket *bucket, struct page *page)
{
    int64_t sure_ms = page->wall_us / 1000 - RELAY_OVERLAP_MS;

    hf__outbox_seq_floor(sure_ms, page->sure);
    hf__outbox_seq_floor(sure_ms - OUTBOX_URGENT_MS, page->sure_urgent);
    page->lanes = !is_urgent_seq(page->sure); /* (9) */
    if (hf__seq_compare(bucket->cursor, page->sure) > 0)
        memcpy(bucket->cursor, page->sure, sizeof(page->sure));
    if (hf__seq_compare(bucket->urgent_at, page->sure_urgent) > 0)
        memcpy(bucket->urgent_at, page->sure_urgent, sizeof(page->sure_urgent));
    if (!page->lanes && bucket->urgent) {
        bucket->urgent = bucket->urgent_anew = false;
        bucket->woken = true;
    }
}

/* What to read of it now. The mutex is held. */
static void plan_page(struct hf_relay *relay, struct relay_bucket *bucket, struct page *page,
                      int64_t now_us)
{
    int64_t next_us = INT64_MAX;
    struct relay_key *key = fetch_of(bucket, now_us, &next_us);
    bool urgent = urgent_when(relay, bucket) <= now_us;
    bool news = bucket->woken && is_short(relay, bucket) && !bucket->forward; /* (6) */

    bound_page(bucket, page);
    if (urgent)
        bucket->urgent_us = now_us + (int64_t)relay->o.poll_ms * 1000;
    urgent = urgent && page->lanes;
    if (!urgent && sweep_at(relay, bucket) <= now_us) {
        if (!bucket->sweeping)
            memset(bucket->sweep, 0, sizeof(bucket->sweep));
        bucket->sweeping = true;
        bucket->sweep_left = RELAY_SWEEP_PAGES;
        bucket->sweep_us = now_us + (int64_t)relay->o.poll_ms * 1000;
    }
    page->life = bucket->life;
    page->limit = relay->o.batch;
    page->far = !urgent && bucket->far_us <= now_us;
    if (urgent) {
        page->kind = URGENT;
        page->limit += (uint32_t)bucket->held + bucket->urgent_extra;
        if (bucket->urgent_anew)
            memset(bucket->urgent_at, 0, sizeof(bucket->urgent_at));
        memcpy(page->after, bucket->urgent_at, sizeof(page->after));
        bucket->urgent = bucket->urgent_anew = false;
    } else if (key && key->check) {
        page->kind = FETCH;
    } else if (key && !news && hf__seq_compare(key->after, bucket->cursor) <= 0) {
        page->kind = FETCH; /* (5) */
        memcpy(page->after, key->after, sizeof(page->after));
    } else if (bucket->sweeping && bucket->sweep_left && !news) {
        page->kind = SWEEP;
        memcpy(page->after, bucket->sweep, sizeof(page->after));
    } else {
        page->kind = FORWARD;
        page->limit += bucket->extra;
        if (hf__seq_compare(bucket->cursor, bucket->seen) < 0)
            page->limit += (uint32_t)bucket->held;
        memcpy(page->after, bucket->cursor, sizeof(page->after));
        bucket->woken = false;
    }
    bucket->forward = page->kind == FORWARD || (urgent && bucket->forward);
    bucket->reading = true;
    bucket->wants_us = 0;
}

/* The read has ended, well or not. The mutex is held. */
static void ended(struct hf_relay *relay, struct relay_bucket *bucket, enum hf_status status,
                  const struct page *page, int64_t now_us)
{
    bucket->reading = false;
    if (!relay->o.dry_run)
        hf__gone_forget(relay, bucket);
    if (status == HF_OK) {
        bucket->failures = 0;
    } else if (page->life == bucket->life) {
        bucket->not_before_us =
            now_us +
            (int64_t)hf__relay_backoff_ms(relay, FIRST_PAUSE_MS, ++bucket->failures) * 1000;
        bucket->woken = bucket->woken || page->kind == FORWARD;
        bucket->urgent = bucket->urgent || page->kind == URGENT;
    }
    relay->metrics.reads++;
    pthread_cond_broadcast(&relay->idle_cond);
    hf__relay_signal(relay);
}

/* failed_blocks: has one of the key failed? */
static void check_key(struct relay_worker *worker, struct relay_bucket *bucket, struct hf_str name,
                      uint64_t hash, uint64_t life)
{
    struct hf_relay *relay = worker->relay;
    bool failed = true;
    enum hf_status status =
        hf__outbox_key_failed(worker->io, relay->outbox, bucket->number, name, &failed);
    struct page none = {.kind = FETCH, .life = life};
    int64_t now_us = relay_now_us(relay);
    struct relay_key *key;

    hf__relay_consumed(relay, worker->io);
    if (status != HF_OK)
        hf__relay_trouble(relay, worker->io);
    pthread_mutex_lock(&relay->mutex);
    for (key = bucket->skipping; key; key = key->skip_next)
        if (key->hash == hash && hf_str_equal(hf_str_of(key->name, key->name_len), name))
            break;
    if (key && bucket->life == life && status == HF_OK) {
        if (failed) {
            key->blocked = true;
            key->fetch_us = now_us + (int64_t)relay->o.poll_ms * 1000;
        } else {
            key->check = false;
            if (key->blocked) /* it may be back in its old place, before all of these */
                memset(key->after, 0, sizeof(key->after));
            key->blocked = false;
            key->fetch_us = now_us;
        }
        hf__key_expect(key);
    }
    ended(relay, bucket, status, &none, now_us);
    pthread_mutex_unlock(&relay->mutex);
}

static enum hf_status read_page(struct relay_worker *worker, struct relay_bucket *bucket,
                                struct page *page)
{
    struct hf_relay *relay = worker->relay;
    struct hf_str after = page->after[0] ? hf_str_from(page->after) : hf_str_of(NULL, 0);

    if (page->kind == URGENT)
        return hf__outbox_read(worker->io, relay->outbox, bucket->number, after,
                               OUTBOX_URGENT_MS - 1, 0, page->limit, !relay->o.dry_run,
                               &page->events, &page->len, &page->more);
    return hf__outbox_read(worker->io, relay->outbox, bucket->number, after,
                           page->wall_us / 1000 + hf__read_ahead_ms(relay),
                           page->far ? OUTBOX_SKEW_MS : RELAY_SKEW_MS, page->limit,
                           !relay->o.dry_run, &page->events, &page->len, &page->more);
}

void hf__read_run(struct relay_worker *worker, struct relay_bucket *bucket)
{
    struct hf_relay *relay = worker->relay;
    struct page page = {.wall_us = relay->env.wall_us(relay->env.user)};
    int64_t now_us = relay_now_us(relay), next_us = INT64_MAX;
    struct relay_key *key;
    enum hf_status status;

    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    pthread_mutex_lock(&relay->mutex);
    key = fetch_of(bucket, now_us, &next_us);
    plan_page(relay, bucket, &page, now_us);
    if (page.kind == FETCH && key && key->check) {
        struct hf_str name = hf_scope_copy(worker->io, hf_str_of(key->name, key->name_len));
        uint64_t hash = key->hash;

        pthread_mutex_unlock(&relay->mutex);
        check_key(worker, bucket, name, hash, page.life);
        return;
    }
    pthread_mutex_unlock(&relay->mutex);
    status = read_page(worker, bucket, &page);
    hf__relay_consumed(relay, worker->io);
    if (status != HF_OK)
        hf__relay_trouble(relay, worker->io);
    now_us = relay_now_us(relay);
    pthread_mutex_lock(&relay->mutex);
    if (status == HF_OK && bucket->life == page.life && bucket->state == BUCKET_OURS) /* (4) */
        take_page(relay, bucket, &page, now_us);
    ended(relay, bucket, status, &page, now_us);
    pthread_mutex_unlock(&relay->mutex);
}
