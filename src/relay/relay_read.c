/*
 * relay/relay_read.c: which buckets are read, when, and from where. What a page shows is up to
 * relay_page.c, and relay_urgent.c has the cursor of urgent events.
 *
 * A bucket has a cursor, up to which all was looked at. There are four kinds of pages:
 *
 *     kind     when                                   from               moves
 *     FORWARD  there is more, or it was woken         cursor             cursor and seen
 *     SWEEP    every poll_ms; ten times later while   sweep; first ""    sweep, up to `sure`
 *              a backlog is worked off
 *     FETCH    a key is to be read on: it was passed  key->after of the  nothing
 *              over, and its fetch_us is here         first such key
 *     URGENT   an urgent event was emitted, or every  urgent.cursor      urgent.cursor
 *              poll_ms while sweeps wait
 *
 * Any page moves `after` of all keys whose next events it had to show. The first kind that applies
 * is read, in this order: URGENT, FETCH, SWEEP, FORWARD; but see (6). In a picture, where # are
 * events that are there, and + those that are newer than RELAY_OVERLAP_MS:
 *
 *      urgent ones       | all others, by when they are due
 *     ---###--####+++----|---#----------##-----##---------###########-----++++++++--------> place
 *           |            |        |            |       |             |           |   |
 *       urgent.cursor    |      sweep     key->after  cursor       sure        seen  clock
 *
 * Events before the cursor are usually delivered, and reading through the remains of a hundred
 * thousand events is expensive; so that is done only every poll_ms (a sweep), for events that were
 * committed late, retried or replayed. Buckets that were empty then are asked for together:
 * relay_look.c. Events that were skipped (relay_key.c) are read again from their place (a fetch).
 *
 * A read shows the events that are due within the next poll_ms: those that are not due yet wait as a
 * skipped key, so scheduled events are in time without a query of their own. Events of emitters whose
 * clocks are ahead by more than RELAY_SKEW_MS are among those that are scheduled for the next minute;
 * so they are looked for only every RELAY_FAR_MS, unless there were some.
 *
 *  (1) One read of a bucket runs at a time.
 *  (2) The cursor, and where keys and sweeps are to be read on, stay RELAY_OVERLAP_MS behind the
 *      clock as it was before the read (`sure`): others may still come before what is newer.
 *  (3) Forward reading looks at each event once; sweeps without news end after a few pages, and go
 *      on where they ended the next time. So a key with many events that cannot go on costs little.
 *  (4) The result of a read is ignored if the bucket was taken again after the read began.
 *  (5) No page begins behind the cursor: so the first event that is taken of a key is the first that
 *      is there.
 *  (6) New events are read first as long as few wait in memory, but not two pages in a row while a
 *      fetch or a sweep waits: so a bucket that always has new events starves neither.
 *  (7) A page of a busy bucket shows the events of the last half second again, most of which are
 *      delivered. So the busier a bucket is, the longer it rests, at most REST_MAX_US, until there
 *      are more new events; a bucket that is not busy is read at once.
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
    SWEEP_LATE = 10 /* while there is more to read, it is done so many polls later */
};

void hf__relay_read_reset(struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    memset(bucket->cursor, 0, sizeof(bucket->cursor));
    memset(bucket->seen, 0, sizeof(bucket->seen));
    bucket->far_us = 0;
    bucket->extra = 0;
    hf__urgent_reset(relay, bucket, now_us);
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

/* ---- what holds ----------------------------------------------------------------------------- */

static void bucket_check(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    size_t waiting = bucket->held - bucket->running - bucket->noting;

    assert(bucket->held >= bucket->running + bucket->noting);
    assert(bucket->state == BUCKET_OURS || !waiting);
    assert(bucket->state == BUCKET_OURS || (!bucket->ready && !bucket->back && !bucket->skipping));
    assert(bucket->state != BUCKET_OTHERS || !bucket->held);
    assert(bucket->ready <= waiting);
    assert(!bucket->back || waiting);
    assert(!bucket->gone || bucket->reading || relay->o.dry_run);
    assert(bucket->extra <= RELAY_EXTRA_MAX && bucket->urgent.extra <= RELAY_EXTRA_MAX);
    assert(bucket->sweep_left <= RELAY_SWEEP_PAGES);
}

void hf__reader_check(const struct hf_relay *relay)
{
    size_t ready = 0;

    ASSERT_RELAY_HELD(relay);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        assert(relay->reader.buckets[i].number == i);
        bucket_check(relay, &relay->reader.buckets[i]);
        ready += relay->reader.buckets[i].ready;
    }
    assert(ready == relay->keys.ready.len);
}

/* ---- choosing ------------------------------------------------------------------------------- */

bool hf__relay_read_is_for(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return relay->only_bucket == UINT32_MAX || relay->only_bucket == bucket->number;
}

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

bool hf__relay_read_has_room(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->held < (size_t)relay->o.batch * RELAY_HELD_BATCHES &&
           (relay->keys.bytes < RELAY_BYTES_MAX || !bucket->held) &&
           relay->keys.len < RELAY_KEYS_MAX;
}

bool hf__relay_read_is_short(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->ready < ((size_t)relay->o.batch + 1) / 2;
}

/* When to sweep the part before the cursor again. During a long backlog more events are left behind
 * there. */
static int64_t sweep_at(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->sweep_us + (bucket->more ? (int64_t)relay->o.poll_ms * 1000 * SWEEP_LATE : 0);
}

bool hf__relay_read_may(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return bucket->state == BUCKET_OURS && !bucket->reading && hf__relay_read_is_for(relay, bucket);
}

static bool bucket_wants_read(const struct hf_relay *relay, struct relay_bucket *bucket,
                              int64_t now_us, int64_t *next_us)
{
    int64_t sweep_us = sweep_at(relay, bucket), urgent_us = hf__urgent_when(relay, bucket);

    ASSERT_RELAY_HELD(relay);
    if (!hf__relay_read_may(relay, bucket) ||
        (urgent_us == INT64_MAX && !hf__relay_read_has_room(relay, bucket)))
        return false;
    if (bucket->not_before_us > now_us) {
        *next_us = bucket->not_before_us < *next_us ? bucket->not_before_us : *next_us;
        return false;
    }
    if (urgent_us <= now_us)
        return true;
    *next_us = urgent_us < *next_us ? urgent_us : *next_us;
    if (!hf__relay_read_has_room(relay, bucket))
        return false;
    if (sweep_us <= now_us || (bucket->sweeping && bucket->sweep_left))
        return true;
    if ((bucket->woken || bucket->more) && hf__relay_read_is_short(relay, bucket))
        return true; /* else there is enough to do, and more will have come by then */
    *next_us = sweep_us < *next_us ? sweep_us : *next_us;
    return fetch_of(bucket, now_us, next_us) != NULL;
}

struct relay_bucket *hf__relay_read_choose(struct hf_relay *relay, int64_t now_us, int64_t *next_us)
{
    struct relay_bucket *oldest = NULL;
    bool oldest_urgent = false;

    ASSERT_RELAY_HELD(relay);
    for (uint32_t i = 0; i < relay->outbox->buckets; i++) {
        struct relay_bucket *bucket = &relay->reader.buckets[i];
        bool urgent;

        if ((relay->reader.looking && hf__look_is_for(relay, bucket, now_us)) ||
            !bucket_wants_read(relay, bucket, now_us, next_us)) {
            bucket->wants_us = 0;
            continue;
        }
        if (!bucket->wants_us)
            bucket->wants_us = now_us;
        urgent = hf__urgent_is_due(relay, bucket, now_us);
        if (!oldest || urgent > oldest_urgent ||
            (urgent == oldest_urgent && bucket->wants_us < oldest->wants_us)) {
            oldest = bucket;
            oldest_urgent = urgent;
        }
    }
    return oldest;
}

uint32_t hf__relay_read_ahead_ms(const struct hf_relay *relay)
{
    return relay->o.poll_ms < LOOK_AHEAD_MAX_MS ? relay->o.poll_ms : LOOK_AHEAD_MAX_MS;
}

bool hf__relay_read_is_dry(const struct hf_relay *relay, struct relay_bucket *bucket)
{
    int64_t now_us = relay_now_us(relay), next_us = INT64_MAX;

    ASSERT_RELAY_HELD(relay);
    if (!hf__relay_read_is_for(relay, bucket))
        return true;
    return bucket->whole && !bucket->more && !bucket->woken && !bucket->urgent.woken &&
           !bucket->reading && !bucket->held && !fetch_of(bucket, now_us, &next_us);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* (2) No cursor is beyond `sure`, even if the clock was set back. */
static void bound_page(struct relay_bucket *bucket, struct relay_page *page)
{
    int64_t sure_ms = page->wall_us / 1000 - RELAY_OVERLAP_MS;

    hf__outbox_seq_floor(sure_ms, page->sure);
    hf__outbox_seq_floor(sure_ms - OUTBOX_URGENT_MS, page->sure_urgent);
    if (hf__seq_compare(bucket->cursor, page->sure) > 0)
        memcpy(bucket->cursor, page->sure, sizeof(page->sure));
    hf__urgent_bound(bucket, page);
}

/* What to read of it now. */
static void plan_page(struct hf_relay *relay, struct relay_bucket *bucket, struct relay_page *page,
                      int64_t now_us)
{
    int64_t next_us = INT64_MAX;
    struct relay_key *key = fetch_of(bucket, now_us, &next_us);
    bool urgent = hf__urgent_when(relay, bucket) <= now_us;
    bool news =
        bucket->woken && hf__relay_read_is_short(relay, bucket) && !bucket->forward; /* (6) */

    ASSERT_RELAY_HELD(relay);
    bound_page(bucket, page);
    if (urgent)
        bucket->urgent.poll_us = now_us + (int64_t)relay->o.poll_ms * 1000;
    urgent = urgent && page->two_orders;
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
        hf__urgent_plan(bucket, page);
    } else if (key && key->check) {
        page->kind = PAGE_FETCH;
    } else if (key && !news && hf__seq_compare(key->after, bucket->cursor) <= 0) {
        page->kind = PAGE_FETCH; /* (5) */
        memcpy(page->after, key->after, sizeof(page->after));
    } else if (bucket->sweeping && bucket->sweep_left && !news) {
        page->kind = PAGE_SWEEP;
        memcpy(page->after, bucket->sweep, sizeof(page->after));
    } else {
        page->kind = PAGE_FORWARD;
        page->limit += bucket->extra;
        if (hf__seq_compare(bucket->cursor, bucket->seen) < 0)
            page->limit += (uint32_t)bucket->held;
        memcpy(page->after, bucket->cursor, sizeof(page->after));
        bucket->woken = false;
    }
    bucket->forward = page->kind == PAGE_FORWARD || (urgent && bucket->forward);
    bucket->reading = true;
    bucket->wants_us = 0;
}

/* The read has ended, well or not. */
static void read_end(struct hf_relay *relay, struct relay_bucket *bucket, enum hf_status status,
                     const struct relay_page *page, int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    bucket->reading = false;
    if (!relay->o.dry_run)
        hf__gone_forget(relay, bucket);
    if (status == HF_OK) {
        bucket->failures = 0;
    } else if (page->life == bucket->life) {
        bucket->not_before_us =
            now_us +
            (int64_t)hf__relay_backoff_ms(relay, FIRST_PAUSE_MS, ++bucket->failures) * 1000;
        bucket->woken = bucket->woken || page->kind == PAGE_FORWARD;
        bucket->urgent.woken = bucket->urgent.woken || page->kind == PAGE_URGENT;
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
    struct relay_page none = {.kind = PAGE_FETCH, .life = life};
    int64_t now_us = relay_now_us(relay);
    struct relay_key *key;

    hf__relay_consumed(relay, worker->io);
    if (status != HF_OK)
        hf__relay_report_error(relay, worker->io);
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
        hf__relay_key_expect(key);
    }
    read_end(relay, bucket, status, &none, now_us);
    pthread_mutex_unlock(&relay->mutex);
}

static enum hf_status read_page(struct relay_worker *worker, struct relay_bucket *bucket,
                                struct relay_page *page)
{
    struct hf_relay *relay = worker->relay;
    struct outbox_reading r = {.bucket = bucket->number,
                               .after =
                                   page->after[0] ? hf_str_from(page->after) : hf_str_of(NULL, 0),
                               .limit = page->limit,
                               .reject = !relay->o.dry_run};
    enum hf_status status;

    if (page->kind == PAGE_URGENT) {
        r.now_ms = OUTBOX_URGENT_MS - 1;
    } else {
        r.now_ms = page->wall_us / 1000 + hf__relay_read_ahead_ms(relay);
        r.skew_ms = page->far ? OUTBOX_SKEW_MS : RELAY_SKEW_MS;
    }
    status = hf__outbox_read(worker->io, relay->outbox, &r);
    page->events = r.events;
    page->len = r.len;
    page->more = r.more;
    return status;
}

void hf__relay_read_run(struct relay_worker *worker, struct relay_bucket *bucket)
{
    struct hf_relay *relay = worker->relay;
    struct relay_page page = {.wall_us = relay->env.wall_us(relay->env.user)};
    int64_t now_us = relay_now_us(relay), next_us = INT64_MAX;
    struct relay_key *key;
    enum hf_status status;

    hf__relay_begin(relay, worker->io, relay->o.lease_ms / 2);
    pthread_mutex_lock(&relay->mutex);
    key = fetch_of(bucket, now_us, &next_us);
    plan_page(relay, bucket, &page, now_us);
    if (page.kind == PAGE_FETCH && key && key->check) {
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
        hf__relay_report_error(relay, worker->io);
    now_us = relay_now_us(relay);
    pthread_mutex_lock(&relay->mutex);
    if (status == HF_OK && bucket->life == page.life && bucket->state == BUCKET_OURS) /* (4) */
        hf__relay_page_take(relay, bucket, &page, now_us);
    read_end(relay, bucket, status, &page, now_us);
    pthread_mutex_unlock(&relay->mutex);
}
