/*
 * relay/relay_key.c: keys, and the events of them that are held in memory.
 *
 * An event is held from when it was read until its delivery was noted. The number of held events of a
 * key is limited; later ones are skipped and read again later. So a key that is blocked, or has a
 * hundred thousand events, takes little memory and does not block other keys.
 *
 *  (1) An event is held once at most: it is in keys.by_seq by its place (seq), whatever its state.
 *  (2) The events of a key that wait are in order: by `sequence` where two have one, else by place,
 *      which puts urgent events in front; the `sequence` of urgent events does not count. Events of
 *      the key that are in the table and not held are behind key->after, or were not read yet; with
 *      `skips`, events behind key->after are held only by reading on from there.
 *  (3) A key is in keys.ready when its first event can begin: none of its events runs, its bucket is
 *      ours, and it does not wait for another event to be read. Keys whose first event is urgent are
 *      in front.
 *  (4) A key without events and without anything to remember is freed.
 *  (5) While a read of a bucket runs, events that have ended since are remembered, as the read may
 *      still show them, or show them as before a failure was noted. Events about which nothing was
 *      written are not remembered.
 *
 * The mutex of the relay is held in all of these.
 */
#include "relay/relay.h"

/* ---- places --------------------------------------------------------------------------------- */

int hf__seq_compare(const char *a, const char *b)
{
    return strncmp(a, b, RELAY_SEQ_SIZE);
}

/* Events with the same beginning are read twice, which changes nothing by (1). */
void hf__seq_before(char to[RELAY_SEQ_SIZE], const char *seq)
{
    size_t len = strnlen(seq, RELAY_SEQ_SIZE - 1);

    memmove(to, seq, len);
    memset(to + (len ? len - 1 : 0), 0, RELAY_SEQ_SIZE - (len ? len - 1 : 0));
}

void hf__seq_set(char to[RELAY_SEQ_SIZE], struct hf_str seq)
{
    size_t len = seq.len < RELAY_SEQ_SIZE - 1 ? seq.len : RELAY_SEQ_SIZE - 1;

    memset(to, 0, RELAY_SEQ_SIZE);
    if (len)
        memcpy(to, seq.ptr, len);
}

static uint64_t seq_hash(const char *seq)
{
    return fnv_add(FNV_BEGIN, seq, strnlen(seq, RELAY_SEQ_SIZE));
}

/* ---- held events ---------------------------------------------------------------------------- */

static struct held **slot_of(struct hf_relay *relay, const char *seq)
{
    return &relay->keys.by_seq[seq_hash(seq) & (RELAY_SLOTS - 1)];
}

struct held *hf__held_find(const struct hf_relay *relay, const char *seq)
{
    struct held *held = relay->keys.by_seq[seq_hash(seq) & (RELAY_SLOTS - 1)];

    while (held && hf__seq_compare(held->seq, seq) != 0)
        held = held->chain;
    return held;
}

static void held_unlink(struct hf_relay *relay, struct held *held)
{
    struct held **link = slot_of(relay, held->seq);

    while (*link != held)
        link = &(*link)->chain;
    *link = held->chain;
}

/* The view is stored behind the item; an event without an item has its view elsewhere. */
static size_t view_offset(size_t item_len)
{
    size_t align = _Alignof(struct hf_outbox_event);

    return (item_len + align - 1) / align * align;
}

static size_t held_size(size_t item_len)
{
    return sizeof(struct held) +
           (item_len ? view_offset(item_len) + sizeof(struct hf_outbox_event) : 0);
}

static void held_free(struct hf_relay *relay, struct held *held)
{
    assert(relay->keys.bytes >= held->item_len);
    relay->keys.bytes -= held->item_len;
    hf__env_free(&relay->env, held, held_size(held->item_len));
}

static void held_set_item(struct held *held, const struct hf_outbox_event *event)
{
    struct hf_item copy = {.ptr = held->item, .len = event->item.len};
    struct hf_outbox_event *view;

    held->item_len = event->item.len;
    memcpy(held->item, event->item.ptr, event->item.len);
    view = (void *)(held->item + view_offset(held->item_len));
    *view = *event;
    held->view = hf__outbox_view_move(view, copy) ? view : NULL;
}

enum hf_status hf__held_view(struct hf_scope *s, const struct hf_relay *relay,
                             const struct held *held, struct hf_outbox_event *event)
{
    struct hf_item item = {.ptr = held->item, .len = held->item_len};

    assert(held->item_len);
    if (!held->view)
        return hf__outbox_view(s, relay->outbox, item, event);
    *event = *held->view;
    return HF_OK;
}

/* A dry run remembers all events that it has delivered, by their places. */
static struct held *held_shrink(struct hf_relay *relay, struct held *held)
{
    struct held *less = hf__env_zalloc(&relay->env, sizeof(*less)),
                **slot = slot_of(relay, held->seq);

    if (!less)
        return held;
    held_unlink(relay, held);
    *less = *held;
    less->item_len = 0;
    less->view = NULL;
    less->chain = *slot;
    *slot = less;
    held_free(relay, held);
    return less;
}

/* (5) */
void hf__held_end(struct hf_relay *relay, struct held *held)
{
    struct relay_bucket *bucket = held->bucket;

    ASSERT_RELAY_HELD(relay);
    if (!bucket) {
        held_free(relay, held);
        return;
    }
    bucket->held--;
    held->key = NULL;
    if (relay->o.dry_run)
        held = held_shrink(relay, held);
    if (bucket->reading || relay->o.dry_run) {
        held->state = HELD_GONE;
        held->next = bucket->gone;
        bucket->gone = held;
        return;
    }
    held_unlink(relay, held);
    held_free(relay, held);
}

void hf__held_drop(struct hf_relay *relay, struct held *held)
{
    ASSERT_RELAY_HELD(relay);
    if (held->bucket) {
        held->bucket->held--;
        held_unlink(relay, held);
    }
    held_free(relay, held);
}

bool hf__held_is_ours(const struct hf_relay *relay, const struct held *held, int64_t now_us)
{
    ASSERT_RELAY_HELD(relay);
    return held->bucket && (relay->o.dry_run || now_us < relay->members.lease.until_us);
}

void hf__gone_forget(struct hf_relay *relay, struct relay_bucket *bucket)
{
    ASSERT_RELAY_HELD(relay);
    while (bucket->gone) {
        struct held *held = bucket->gone;

        bucket->gone = held->next;
        held_unlink(relay, held);
        held_free(relay, held);
    }
}

/* ---- lists of keys -------------------------------------------------------------------------- */

static void key_unlink(struct hf_relay *relay, struct relay_key *key)
{
    ASSERT_RELAY_HELD(relay);
    if (!key->link)
        return;
    *key->link = key->next;
    if (key->next)
        key->next->link = key->link;
    else if (key->queued)
        relay->keys.ready.last = key->link;
    if (key->queued && relay->keys.ready.urgent == &key->next)
        relay->keys.ready.urgent = key->link;
    if (key->queued) {
        relay->keys.ready.len--;
        key->bucket->ready--;
    }
    key->queued = false;
    key->urgent = false;
    key->link = NULL;
    key->next = NULL;
}

/* Behind those that are as urgent. */
static void key_enqueue(struct hf_relay *relay, struct relay_key *key)
{
    struct key_queue *ready = &relay->keys.ready;

    key_unlink(relay, key);
    key->urgent = is_urgent_seq(key->first->seq);
    key->link = key->urgent ? ready->urgent : ready->last;
    key->next = *key->link;
    *key->link = key;
    if (key->next)
        key->next->link = &key->next;
    else
        ready->last = &key->next;
    if (key->urgent)
        ready->urgent = &key->next;
    relay->keys.ready.len++;
    key->bucket->ready++;
    key->queued = true;
}

static void key_hold_back(struct hf_relay *relay, struct relay_key *key)
{
    key_unlink(relay, key);
    key->next = key->bucket->back;
    key->link = &key->bucket->back;
    if (key->next)
        key->next->link = &key->next;
    key->bucket->back = key;
}

/* ---- keys ----------------------------------------------------------------------------------- */

static uint64_t key_hash(const struct relay_bucket *bucket, bool alone, struct hf_str name)
{
    const char head[3] = {(char)(bucket->number & 0xff), (char)(bucket->number >> 8), (char)alone};

    return fnv_add(fnv_add(FNV_BEGIN, head, sizeof(head)), name.ptr, name.len);
}

struct relay_key *hf__relay_key_find(struct hf_relay *relay, struct relay_bucket *bucket,
                                     const struct hf_outbox_event *event, const char *seq,
                                     bool make)
{
    bool alone = !event->event.key.len;
    struct hf_str name = alone ? hf_str_of(seq, strnlen(seq, RELAY_SEQ_SIZE)) : event->event.key;
    uint64_t hash = key_hash(bucket, alone, name);
    struct relay_key **slot = &relay->keys.by_name[hash & (RELAY_SLOTS - 1)], *key;

    ASSERT_RELAY_HELD(relay);
    for (key = *slot; key; key = key->chain)
        if (key->hash == hash && key->bucket == bucket && key->alone == alone &&
            hf_str_equal(hf_str_of(key->name, key->name_len), name))
            return key;
    if (!make)
        return NULL;
    key = hf__env_zalloc(&relay->env, sizeof(*key) + name.len);
    if (!key)
        return NULL;
    key->bucket = bucket;
    key->alone = alone;
    key->hash = hash;
    key->name_len = name.len;
    memcpy(key->name, name.ptr, name.len);
    key->chain = *slot;
    *slot = key;
    relay->keys.len++;
    return key;
}

static void key_free(struct hf_relay *relay, struct relay_key *key)
{
    struct relay_key **link = &relay->keys.by_name[key->hash & (RELAY_SLOTS - 1)];

    assert(!key->first && !key->running);
    hf__relay_key_unskip(key);
    key_unlink(relay, key);
    while (*link != key)
        link = &(*link)->chain;
    *link = key->chain;
    relay->keys.len--;
    hf__env_free(&relay->env, key, sizeof(*key) + key->name_len);
}

/* How many events of one key may wait in memory: one if the bucket has many already, unless the
 * event is urgent. */
static size_t key_room(const struct hf_relay *relay, const struct relay_bucket *bucket,
                       const char *seq)
{
    size_t batch = relay->o.batch;

    if (!is_urgent_seq(seq) && bucket->held - bucket->noting >= batch * RELAY_HELD_BATCHES / 2)
        return 1;
    return relay->ops->keeps_order && relay->batch_max > batch ? relay->batch_max : batch;
}

/* (2) */
static bool is_before(const struct held *a, const struct held *b)
{
    if (a->sequence && b->sequence && a->sequence != b->sequence)
        return a->sequence < b->sequence;
    return hf__seq_compare(a->seq, b->seq) < 0;
}

static void key_insert(struct relay_key *key, struct held *held)
{
    struct held **link = &key->first;

    if (key->last && is_before(key->last, held))
        link = &key->last->next;
    while (*link && is_before(*link, held))
        link = &(*link)->next;
    held->next = *link;
    *link = held;
    if (!held->next)
        key->last = held;
    key->len++;
}

/* Forget those that wait from this place on; all with NULL. */
static void key_forget(struct hf_relay *relay, struct relay_key *key, const char *seq)
{
    struct held **link = &key->first;

    key->last = NULL;
    while (*link) {
        struct held *held = *link;

        if (seq && hf__seq_compare(held->seq, seq) < 0) {
            key->last = held;
            link = &held->next;
            continue;
        }
        *link = held->next;
        key->len--;
        held->bucket->held--;
        held_unlink(relay, held);
        held_free(relay, held);
    }
}

/* (2) */
static uint64_t sequence_of(const struct relay_key *key, const struct hf_outbox_event *event)
{
    return key->alone || event->event.urgent ? 0 : event->event.sequence;
}

/* One that comes before the last in order takes its place. */
static bool key_make_room(struct hf_relay *relay, struct relay_key *key,
                          const struct hf_outbox_event *event, const char *seq, int64_t now_us)
{
    struct held one = {.sequence = sequence_of(key, event)};
    char last[RELAY_SEQ_SIZE];

    hf__seq_set(one.seq, hf_str_from(seq));
    if (!key->last || !is_before(&one, key->last))
        return false;
    memcpy(last, key->last->seq, sizeof(last));
    hf__relay_key_skip(relay, key, last, 0, now_us);
    key->mark = relay->reader.page; /* of the page that is looked at */
    return true;
}

bool hf__relay_key_hold(struct hf_relay *relay, struct relay_key *key,
                        const struct hf_outbox_event *event, const char *seq, int64_t now_us)
{
    struct hf_outbox_event counted = *event;
    struct held *held, **slot = slot_of(relay, seq);

    ASSERT_RELAY_HELD(relay);
    if (key->len >= key_room(relay, key->bucket, seq) &&
        !key_make_room(relay, key, event, seq, now_us))
        return false;
    held = hf__env_zalloc(&relay->env, held_size(event->item.len));
    if (!held)
        return false;
    held->key = key;
    held->bucket = key->bucket;
    held->state = HELD_WAITS;
    hf__seq_set(held->seq, hf_str_from(seq));
    held->sequence = sequence_of(key, event);
    held->begun = hf__suspect_read(relay, &counted);
    held->attempts = counted.attempts;
    held->crashes = counted.crashes;
    held->due_us = hf__outbox_due_ms(event) * 1000;
    held->read_us = now_us;
    held->size = hf__relay_event_size(event);
    held_set_item(held, event);
    held->chain = *slot;
    *slot = held;
    relay->keys.bytes += held->item_len;
    key->bucket->held++;
    key_insert(key, held);
    return true;
}

struct held *hf__relay_key_take(struct relay_key *key)
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
    return held;
}

void hf__relay_key_skip(struct hf_relay *relay, struct relay_key *key, const char *seq,
                        uint64_t sequence, int64_t fetch_us)
{
    char from[RELAY_SEQ_SIZE], after[RELAY_SEQ_SIZE];

    ASSERT_RELAY_HELD(relay);
    hf__seq_set(from, hf_str_from(seq));
    for (const struct held *held = key->first; held && sequence; held = held->next)
        if (held->sequence > sequence && hf__seq_compare(held->seq, from) < 0)
            memcpy(from, held->seq, sizeof(from));
    key_forget(relay, key, from);
    hf__seq_before(after, from);
    if (key->skips && hf__seq_compare(after, key->after) > 0) {
        key->fetch_us = fetch_us > key->fetch_us ? fetch_us : key->fetch_us;
        hf__relay_key_expect(key);
        return; /* it is behind one that is waited for already */
    }
    if (!key->skips) {
        key->skips = true;
        key->skip_next = key->bucket->skipping;
        key->skip_link = &key->bucket->skipping;
        if (key->skip_next)
            key->skip_next->skip_link = &key->skip_next;
        key->bucket->skipping = key;
    }
    memcpy(key->after, after, sizeof(after));
    key->sequence = sequence;
    key->fetch_us = fetch_us;
    hf__relay_key_expect(key);
}

void hf__relay_key_expect(struct relay_key *key)
{
    if (key->skips && key->fetch_us < key->bucket->fetch_us)
        key->bucket->fetch_us = key->fetch_us;
}

void hf__relay_key_unskip(struct relay_key *key)
{
    if (!key->skips)
        return;
    *key->skip_link = key->skip_next;
    if (key->skip_next)
        key->skip_next->skip_link = key->skip_link;
    key->skips = false;
    key->check = false;
    key->blocked = false;
    key->attempts = 0;
    key->sequence = 0;
    key->fetch_us = 0;
}

/* An event with a lower sequence may have a slightly later place, and not be read yet. */
static bool waits_for_more(const struct hf_relay *relay, const struct relay_key *key)
{
    const struct relay_bucket *bucket = key->bucket;
    char far[RELAY_SEQ_SIZE] = {0};

    if (!key->first->sequence || key->len >= key_room(relay, bucket, key->first->seq))
        return false;
    hf__outbox_seq_floor(key->first->due_us / 1000 + RELAY_SKEW_MS, far);
    if (key->skips && key->fetch_us <= relay_now_us(relay) && hf__seq_compare(key->after, far) < 0)
        return true;
    return bucket->more && hf__seq_compare(bucket->seen, far) < 0;
}

/* (3) (4) */
void hf__relay_key_requeue(struct hf_relay *relay, struct relay_key *key)
{
    ASSERT_RELAY_HELD(relay);
    if (key->bucket->state != BUCKET_OURS) {
        key_forget(relay, key, NULL);
        hf__relay_key_unskip(key);
    }
    if (!key->first && !key->running && !key->skips) {
        key_free(relay, key);
        return;
    }
    if (!key->first || key->running)
        key_unlink(relay, key);
    else if (waits_for_more(relay, key))
        key_hold_back(relay, key);
    else if (!key->queued || (!key->urgent && is_urgent_seq(key->first->seq)))
        key_enqueue(relay, key);
    hf__relay_key_expect(key);
}

void hf__bucket_advance(struct hf_relay *relay, struct relay_bucket *bucket)
{
    struct relay_key *key = bucket->back;

    ASSERT_RELAY_HELD(relay);
    while (key) {
        struct relay_key *next = key->next;

        hf__relay_key_requeue(relay, key);
        key = next;
    }
}

/* ---- all of a bucket ------------------------------------------------------------------------ */

/* Events that run or were delivered become orphans; the worker that has one frees it. */
static void held_detach(struct hf_relay *relay, struct held *held)
{
    struct relay_bucket *bucket = held->bucket;

    held_unlink(relay, held);
    bucket->held--;
    if (held->state == HELD_RUNS)
        bucket->running--;
    else
        bucket->noting--;
    held->bucket = NULL;
    held->key = NULL;
}

static void bucket_detach_held(struct hf_relay *relay, struct relay_bucket *bucket)
{
    for (size_t i = 0; i < RELAY_SLOTS; i++) {
        struct held *held = relay->keys.by_seq[i];

        while (held) {
            struct held *next = held->chain;

            if (held->bucket == bucket &&
                (held->state == HELD_RUNS || held->state == HELD_DELIVERED)) {
                if (held->key)
                    held->key->running = 0;
                held_detach(relay, held);
            }
            held = next;
        }
    }
}

void hf__held_orphan(struct hf_relay *relay, struct held *held)
{
    struct relay_key *key = held->key;

    ASSERT_RELAY_HELD(relay);
    assert(held->state == HELD_RUNS);
    if (relay->sender.alone == held)
        relay->sender.alone = NULL;
    held->alone = false;
    held_detach(relay, held);
    key->running--;
    hf__relay_key_requeue(relay, key);
}

void hf__bucket_forget(struct hf_relay *relay, struct relay_bucket *bucket, bool orphans)
{
    ASSERT_RELAY_HELD(relay);
    if (orphans)
        bucket_detach_held(relay, bucket);
    for (size_t i = 0; i < RELAY_SLOTS; i++) {
        struct relay_key *key = relay->keys.by_name[i];

        while (key) {
            struct relay_key *next = key->chain;

            if (key->bucket == bucket) {
                key_forget(relay, key, NULL);
                hf__relay_key_unskip(key);
                key_unlink(relay, key);
                if (!key->running)
                    key_free(relay, key);
            }
            key = next;
        }
    }
    if (!bucket->reading)
        hf__gone_forget(relay, bucket);
}

/* ---- what always holds ---------------------------------------------------------------------- */

/* (1) An event that is in the table. */
static void held_check(const struct hf_relay *relay, const struct held *held)
{
    bool has_key = held->state == HELD_WAITS || held->state == HELD_RUNS;

    assert(held->bucket && held->state <= HELD_GONE);
    assert(has_key == (held->key != NULL));
    assert(!has_key || held->key->bucket == held->bucket);
    assert(held->bucket->state != BUCKET_OTHERS || held->state == HELD_GONE);
    assert(held->state != HELD_WAITS || held->bucket->state == BUCKET_OURS);
    assert(!held->unsure || held->state == HELD_DELIVERED || held->state == HELD_GONE);
    assert(hf__held_find(relay, held->seq) == held);
}

/* (3) (4) */
static void key_check(const struct relay_key *key)
{
    const struct held *last = NULL;
    size_t len = 0;

    for (const struct held *held = key->first; held; held = held->next, len++) {
        assert(held->state == HELD_WAITS && held->key == key);
        last = held;
    }
    assert(len == key->len && last == key->last);
    assert(key->first || key->running || key->skips);
    assert(!key->queued || (key->link && key->first && !key->running));
    assert(!key->link || *key->link == key);
    assert(!key->queued || key->bucket->state == BUCKET_OURS);
    assert(!key->skips || *key->skip_link == key);
    assert(!key->check || key->skips);
}

/* Urgent keys are first, and both ends of the list are right. */
static void queue_check(const struct key_queue *ready)
{
    struct relay_key *const *link = &ready->first;
    bool urgent = true;
    size_t len = 0;

    for (const struct relay_key *key = ready->first; key; key = key->next, len++) {
        assert(key->queued && (urgent || !key->urgent));
        if (urgent && !key->urgent)
            assert(ready->urgent == link);
        urgent = key->urgent;
        link = &key->next;
    }
    assert(len == ready->len && ready->last == link);
    assert(!urgent || ready->urgent == link);
}

void hf__relay_keys_check(const struct hf_relay *relay)
{
    size_t held_len = 0, expected = 0, bytes = 0, keys = 0, running = 0, key_running = 0;

    ASSERT_RELAY_HELD(relay);
    for (size_t i = 0; i < RELAY_SLOTS; i++) {
        for (const struct held *held = relay->keys.by_seq[i]; held; held = held->chain) {
            held_check(relay, held);
            held_len += held->state != HELD_GONE;
            running += held->state == HELD_RUNS;
            bytes += held->item_len;
        }
        for (const struct relay_key *key = relay->keys.by_name[i]; key; key = key->chain) {
            key_check(key);
            key_running += key->running;
            keys++;
        }
    }
    for (uint32_t i = 0; i < relay->outbox->buckets; i++)
        expected += relay->reader.buckets[i].held;
    queue_check(&relay->keys.ready);
    assert(held_len == expected);
    assert(running == key_running);
    assert(keys == relay->keys.len);
    assert(bytes <= relay->keys.bytes);
}

/* ---- the end -------------------------------------------------------------------------------- */

void hf__relay_keys_free(struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    for (uint32_t i = 0; relay->reader.buckets && i < relay->outbox->buckets; i++) {
        hf__bucket_forget(relay, &relay->reader.buckets[i], true);
        hf__gone_forget(relay, &relay->reader.buckets[i]);
    }
    while (relay->noter.first) {
        struct held *held = relay->noter.first;

        relay->noter.first = held->next;
        held_free(relay, held);
    }
}
