/*
 * engine/stream/stream_records.c: the stream records of changes, and their sequence numbers.
 *
 * A record goes into the same batch as its change, with room in its key for its sequence number;
 * hf__sequence_begin() fills the numbers in just before the batch is applied. Numbers are reserved
 * in blocks: the end of the block is stored with the first batch that uses it, and a restart goes
 * on behind it, so that a number is never used twice even when its record was trimmed.
 */
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/layout.h"
#include "engine/setting.h"
#include "engine/stream/streams.h"
#include "engine/table/schema.h"
#include "model/key.h"
#include "model/value.h"

#include "store/store.h"

enum { SEQUENCE_BLOCK = 1 << 20 };

/* ---- the form of a record ------------------------------------------------------------------- */

_Static_assert(RECORD_KEY == 15, "space, stream, shard, sequence number");
_Static_assert(RECORD_HEAD == 4 + 8 + 4 * 4, "four bytes, when, three lengths, size");

void hf__stream_record_key(uint8_t key[RECORD_KEY], uint32_t stream, uint16_t shard,
                           uint64_t sequence)
{
    assert(stream > 0 && shard < SHARDS_MAX);
    key[0] = SPACE_RECORD;
    store_u32be(key + 1, stream);
    store_u16be(key + 5, shard);
    store_u64be(key + 7, sequence);
}

void hf__stream_record_head_put(uint8_t *to, const struct record_head *head)
{
    assert(head->event >= HF_CHANGE_INSERT && head->event <= HF_CHANGE_REMOVE);
    assert(head->view >= HF_VIEW_NEW_IMAGE && head->view <= HF_VIEW_KEYS_ONLY);
    to[0] = head->event;
    to[1] = head->by_service;
    to[2] = head->view;
    to[3] = 0;
    store_u64be(to + 4, head->created_us);
    store_u32le(to + 12, head->keys_len);
    store_u32le(to + 16, head->new_len);
    store_u32le(to + 20, head->old_len);
    store_u32le(to + 24, head->size);
}

bool hf__stream_record_head_get(struct hf_bytes stored, struct record_head *head)
{
    const uint8_t *p = stored.ptr;

    if (stored.len < RECORD_HEAD)
        return false;
    *head = (struct record_head){.event = p[0],
                                 .by_service = p[1],
                                 .view = p[2],
                                 .created_us = load_u64be(p + 4),
                                 .keys_len = load_u32le(p + 12),
                                 .new_len = load_u32le(p + 16),
                                 .old_len = load_u32le(p + 20),
                                 .size = load_u32le(p + 24)};
    return head->event >= HF_CHANGE_INSERT && head->event <= HF_CHANGE_REMOVE &&
           (uint64_t)RECORD_HEAD + head->keys_len + head->new_len + head->old_len == stored.len;
}

/* ---- adding --------------------------------------------------------------------------------- */

static uint16_t shard_of(const struct table *table, struct hf_item item)
{
    struct hf_value hash = hf_item_get(item, table->key.hash[0].name);
    __extension__ unsigned __int128 wide = hf__key_hash(&hash, 1);

    assert(table->stream->record.shards_len > 0);
    return (uint16_t)((wide * table->stream->record.shards_len) >> 64);
}

void hf__stream_add(struct hf_scope *s, struct engine *e, struct change_set *set,
                    const struct change *change)
{
    const struct table *table = change->table;
    const struct stream *stream = table->stream;
    struct hf_item there = change->after.item.ptr ? change->after.item : change->before.item;
    struct hf_item keys = hf__schema_key_item(s, &table->key, there);
    enum hf_stream_view view = (enum hf_stream_view)stream->record.view;
    bool with_new = view == HF_VIEW_NEW_IMAGE || view == HF_VIEW_NEW_AND_OLD_IMAGES;
    bool with_old = view == HF_VIEW_OLD_IMAGE || view == HF_VIEW_NEW_AND_OLD_IMAGES;
    struct record_head head = {.by_service = change->by_service, .view = (uint8_t)view};
    struct hf__buf value = {.scope = s};
    uint8_t head_bytes[RECORD_HEAD];
    uint8_t *key = hf_scope_alloc(s, RECORD_KEY);
    uint8_t *number;

    assert(stream->listed && !stream->record.disabled_us && there.ptr);
    if (!key || hf__item_poisoned(keys)) {
        set->batch.ops.failed = true;
        return;
    }
    head.event = !change->before.item.ptr  ? HF_CHANGE_INSERT
                 : !change->after.item.ptr ? HF_CHANGE_REMOVE
                                           : HF_CHANGE_MODIFY;
    head.created_us = (uint64_t)hf__env_wall_us(&e->env);
    head.keys_len = (uint32_t)keys.len;
    head.size = (uint32_t)hf_item_size(keys);
    if (with_new) {
        head.new_len = (uint32_t)change->after.item.len;
        head.size += (uint32_t)change->after.size;
    }
    if (with_old) {
        head.old_len = (uint32_t)change->before.item.len;
        head.size += (uint32_t)change->before.size;
    }
    hf__stream_record_head_put(head_bytes, &head);
    hf__buf_put(&value, head_bytes, sizeof(head_bytes));
    hf__buf_put(&value, keys.ptr, keys.len);
    hf__buf_put(&value, change->after.item.ptr, head.new_len);
    hf__buf_put(&value, change->before.item.ptr, head.old_len);
    if (value.failed) {
        set->batch.ops.failed = true;
        return;
    }
    hf__stream_record_key(key, hf__stream_id(stream), shard_of(table, there), 0);
    hf__batch_put_parts(&set->batch, hf_bytes_of(key, RECORD_KEY), hf_bytes_of(NULL, 0),
                        hf_bytes_of(value.ptr, value.len), false);
    number = key + RECORD_KEY - 8;
    hf__buf_put(&set->records, &number, sizeof(number));
}

/* ---- numbers -------------------------------------------------------------------------------- */

static const char reserved_setting[] = "sequence";

/* Numbers in use are below the next one, in order, and do not overlap. */
static void sequencer_check(struct sequencer *q)
{
    const struct sequence_use *before = NULL;

    ASSERT_HELD(&q->lock);
    assert(q->next > 0 && q->next <= SEQUENCE_MAX && !q->first == !q->last);
    for (const struct sequence_use *use = q->first; use; use = use->after) {
        assert(use->count > 0 && use->before == before);
        assert(!before || before->from + before->count <= use->from);
        assert(use->from + use->count <= q->next);
        before = use;
    }
    assert(before == q->last);
}

enum hf_status hf__sequence_begin(struct hf_scope *s, struct engine *e, struct change_set *set)
{
    struct sequencer *q = &e->sequencer;
    size_t count = set->records.len / sizeof(uint8_t *);
    uint8_t limit[8];

    assert(set->records.len % sizeof(uint8_t *) == 0 && !set->use.count);
    set->use = (struct sequence_use){.count = count};
    if (count == 0)
        return HF_OK;
    pthread_mutex_lock(&q->lock);
    set->use.from = q->next;
    q->next += count;
    if (q->next > q->reserved) {
        q->reserved = q->next + SEQUENCE_BLOCK;
        set->use.reserves = true;
        store_u64be(limit, q->reserved);
        hf__setting_put(s, &set->batch, reserved_setting, hf_bytes_of(limit, sizeof(limit)));
    }
    set->use.before = q->last;
    if (q->last)
        q->last->after = &set->use;
    else
        q->first = &set->use;
    q->last = &set->use;
    if (DEV_CHECKS)
        sequencer_check(q);
    pthread_mutex_unlock(&q->lock);
    if (set->batch.ops.failed) {
        hf__sequence_end(e, set, false);
        return hf__fail_nomem(s);
    }
    for (size_t i = 0; i < count; i++) {
        uint8_t *number;

        memcpy(&number, set->records.ptr + i * sizeof(number), sizeof(number));
        store_u64be(number, set->use.from + i);
    }
    return HF_OK;
}

void hf__sequence_end(struct engine *e, struct change_set *set, bool done)
{
    struct sequencer *q = &e->sequencer;
    struct sequence_use *use = &set->use;

    if (use->count == 0)
        return;
    pthread_mutex_lock(&q->lock);
    if (DEV_CHECKS)
        sequencer_check(q);
    if (use->reserves && !done)
        q->reserved = 0; /* the next one records it */
    if (use->before)
        use->before->after = use->after;
    else
        q->first = use->after;
    if (use->after)
        use->after->before = use->before;
    else
        q->last = use->before;
    pthread_mutex_unlock(&q->lock);
}

uint64_t hf__sequence_visible(struct engine *e)
{
    struct sequencer *q = &e->sequencer;
    uint64_t visible;

    pthread_mutex_lock(&q->lock);
    visible = q->first ? q->first->from : q->next;
    assert(visible <= q->next);
    pthread_mutex_unlock(&q->lock);
    return visible;
}

/* The highest number that any record of the shard has; 0 when it has none. */
static enum hf_status find_highest(struct hf_scope *s, struct engine *e, uint32_t stream,
                                   uint16_t shard, uint64_t *number)
{
    uint8_t lower[RECORD_KEY];
    uint8_t upper[RECORD_KEY];
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    struct store_range range;
    enum hf_status status;
    bool found;

    hf__stream_record_key(lower, stream, shard, 0);
    hf__stream_record_key(upper, stream, shard, UINT64_MAX);
    range = (struct store_range){.lower = {lower, sizeof(lower)},
                                 .upper = {upper, sizeof(upper)},
                                 .reverse = true};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    status = hf__store_iter_next(s, iter, &found, &key, &value);
    if (status == HF_OK && found && key.len != RECORD_KEY)
        status = hf__fail(s, HF_CORRUPT, "The key of a stream record is damaged");
    *number = status == HF_OK && found ? load_u64be(key.ptr + 7) : 0;
    hf__store_iter_close(iter);
    return status;
}

enum hf_status hf__sequencer_load(struct hf_scope *s, struct engine *e)
{
    struct hf_bytes stored;
    uint64_t next = 1;

    TRY(hf__setting_get(s, e, reserved_setting, &stored));
    if (stored.len == 8)
        next = load_u64be(stored.ptr);
    for (size_t i = 0; i < e->streams.len; i++) {
        const struct stream_record *record = &e->streams.list[i]->record;

        for (size_t j = 0; j < record->shards_len; j++) {
            uint64_t number;

            TRY(find_highest(s, e, (uint32_t)record->id, (uint16_t)j, &number));
            if (number >= next)
                next = number + 1;
        }
    }
    if (next == 0 || next >= SEQUENCE_MAX)
        return hf__fail(s, HF_CORRUPT, "The next sequence number is damaged");
    e->sequencer.next = next;
    e->sequencer.reserved = stored.len == 8 ? next : 0;
    return HF_OK;
}
