/*
 * engine/item/rows.c: reading items, and changing them together with all that depends on them.
 *
 * A change is an item before and after. Everything else follows from those two: which index entries
 * are removed and added, whether there is a stream record, when the item expires, what it costs. So
 * PutItem, UpdateItem, DeleteItem, batches, transactions, expiry and index building all end here,
 * and engine.h (1) is kept in one place.
 *
 *  (1) A change that leaves the item as it was writes nothing: no row, no entry, no record.
 *  (2) Counts move only after the batch was applied.
 *  (3) While an index is being built an item may not have its entry yet: then the entry is not
 *      counted as one that goes, and one that comes is counted as new.
 */
#include <holdfast/fence.h>

#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/item/key_filter.h"
#include "engine/item/latch.h"
#include "engine/layout.h"
#include "engine/maintenance/ttl.h"
#include "engine/stream/streams.h"
#include "engine/table/schema.h"
#include "model/value.h"
#include "store/store.h"

#include "base/kill.h"

/* ---- rows ----------------------------------------------------------------------------------- */

enum hf_status hf__row_decode(struct hf_scope *s, struct hf_bytes stored, struct row *row)
{
    const uint8_t *item = stored.ptr + ROW_HEAD;

    if (stored.len < ROW_HEAD + VALUE_HEAD || item[0] != HF_TYPE_M ||
        (size_t)load_u32le(item + 1) + 5 != stored.len - ROW_HEAD)
        return hf__fail(s, HF_CORRUPT, "A stored item is damaged; run a check of the database");
    row->size = load_u32le(stored.ptr);
    row->item = (struct hf_item){item, stored.len - ROW_HEAD};
    return HF_OK;
}

void hf__row_encode(struct hf__buf *buf, const struct row *row)
{
    uint8_t head[ROW_HEAD];

    assert(row->item.ptr && row->size <= UINT32_MAX);
    store_u32le(head, (uint32_t)row->size);
    hf__buf_put(buf, head, sizeof(head));
    hf__buf_put(buf, row->item.ptr, row->item.len);
}

enum hf_status hf__row_read(struct hf_scope *s, struct engine *e,
                            const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                            struct row *row)
{
    struct hf_bytes stored;

    assert(key.len > PREFIX_LEN && key.ptr[0] == SPACE_ITEM);
    *row = (struct row){{NULL, 0}, 0};
    TRY(hf__store_get(s, e->store, snapshot, key, &stored));
    return stored.ptr ? hf__row_decode(s, stored, row) : HF_OK;
}

/* ---- changes -------------------------------------------------------------------------------- */

enum hf_status hf__change_set(struct hf_scope *s, size_t cap, struct change_set *set)
{
    assert(cap > 0);
    *set = (struct change_set){.batch = {.ops = {.scope = s}}, .cap = cap, .records = {.scope = s}};
    set->changes = hf__scope_array(s, cap, sizeof(struct change *));
    return set->changes ? HF_OK : hf__fail_nomem(s);
}

static struct hf_bytes buf_bytes(const struct hf__buf *buf)
{
    return hf_bytes_of(buf->ptr, buf->len);
}

enum hf_status hf__change_key(struct hf_scope *s, struct change *change, struct hf_item item)
{
    struct hf__buf stored = {.scope = s};

    assert(change->table && item.ptr);
    hf__row_key(&stored, change->table, item);
    change->key = buf_bytes(&stored);
    return stored.failed ? hf__fail_nomem(s) : HF_OK;
}

enum hf_status hf__change_read(struct hf_scope *s, struct engine *e, struct change *change)
{
    assert(change->key.len > PREFIX_LEN && !change->before.item.ptr);
    ASSERT_HELD(&e->latches[hf__stored_latch(change->key)].lock);
    if (change->table->counts->keys &&
        !hf__row_filter_has(change->table->counts->keys, change->key))
        return HF_OK; /* the put says that it is fresh, which stores of tests verify */
    return hf__row_read(s, e, NULL, change->key, &change->before);
}

_Static_assert(ROW_HEAD == 4 && BATCH_HEAD_MAX >= 4, "u32le size, copied into the batch");

/* `fresh`: the key has no row yet. The caller keeps key and item until the set is applied. */
static void put_row(struct change_set *set, struct hf_bytes key, const struct row *row, bool fresh)
{
    uint8_t head[ROW_HEAD];

    assert(key.len > PREFIX_LEN && row->item.ptr && row->size <= ITEM_SIZE_MAX);
    store_u32le(head, (uint32_t)row->size);
    hf__batch_put_parts(&set->batch, key, hf_bytes_of(head, sizeof(head)),
                        hf_bytes_of(row->item.ptr, row->item.len), fresh);
}

/* The index entry of one side of a change. */
struct entry {
    bool there;
    struct hf__buf key;
    struct row row;
};

static struct entry entry_of(struct hf_scope *s, const struct table *table,
                             const struct index *index, const struct row *row)
{
    struct entry entry = {.key = {.scope = s}};

    assert(index->counts && index->id > 0);
    entry.there = hf__index_key(&entry.key, table, index, row->item);
    if (!entry.there)
        return entry;
    entry.row = *row;
    if (index->projection != HF_PROJECT_ALL) {
        entry.row.item = hf__index_project(s, table, index, row->item);
        entry.row.size = hf__item_poisoned(entry.row.item) ? 0 : hf_item_size(entry.row.item);
    }
    return entry;
}

/* (3): is the entry of the old item stored? */
static enum hf_status look_for(struct hf_scope *s, struct engine *e, const struct index *index,
                               struct entry *before)
{
    struct hf_bytes stored;

    if (!index->building || !before->there)
        return HF_OK;
    TRY(hf__store_get(s, e->store, NULL, buf_bytes(&before->key), &stored));
    before->there = stored.ptr != NULL;
    return HF_OK;
}

static enum hf_status change_index(struct hf_scope *s, struct engine *e, struct change_set *set,
                                   const struct change *change, const struct index *index,
                                   struct index_effect *effect)
{
    struct entry before = entry_of(s, change->table, index, &change->before);
    struct entry after = entry_of(s, change->table, index, &change->after);
    bool moved;

    if (!before.there && !after.there)
        return HF_OK;
    if (before.key.failed || after.key.failed || hf__item_poisoned(before.row.item) ||
        hf__item_poisoned(after.row.item))
        return hf__fail_nomem(s);
    TRY(look_for(s, e, index, &before));
    moved = bytes_compare(before.key.ptr, before.key.len, after.key.ptr, after.key.len) != 0;
    if (before.there && after.there && !moved) {
        if (hf_item_equal(before.row.item, after.row.item))
            return HF_OK;
        put_row(set, buf_bytes(&after.key), &after.row, false);
        effect->units = hf__write_units(before.row.size, after.row.size);
        effect->bytes = (int64_t)after.row.size - (int64_t)before.row.size;
        return HF_OK;
    }
    if (before.there) {
        hf__batch_delete(&set->batch, buf_bytes(&before.key));
        effect->units += hf__write_units(before.row.size, 0);
        effect->items--;
        effect->bytes -= (int64_t)before.row.size;
    }
    if (after.there) {
        put_row(set, buf_bytes(&after.key), &after.row, !index->building);
        effect->units += hf__write_units(0, after.row.size);
        effect->items++;
        effect->bytes += (int64_t)after.row.size;
    }
    return HF_OK;
}

/* Both sides of a change that is added have its key. */
static void change_check(struct engine *e, const struct change *change)
{
    const struct row *sides[] = {&change->before, &change->after};
    size_t latch = hf__stored_latch(change->key);

    ASSERT_HELD(&e->latches[latch].lock);
    hf__table_check(change->table);
    assert(change->key.ptr[0] == SPACE_ITEM &&
           load_u32be(change->key.ptr + 1) == change->table->id);
    for (size_t i = 0; i < ARRAY_LEN(sides); i++) {
        assert(!sides[i]->item.ptr == (sides[i]->size == 0));
        assert(!sides[i]->item.ptr || hf__row_latch(change->table, sides[i]->item) == latch);
    }
}

enum hf_status hf__change_add(struct hf_scope *s, struct engine *e, struct change_set *set,
                              struct change *change)
{
    struct table *table = change->table;

    assert(set->len < set->cap && change->key.ptr);
    assert(!change->indexes && !change->same);
    if (DEV_CHECKS)
        change_check(e, change);
    set->changes[set->len++] = change;
    change->units = hf__write_units(change->before.size, change->after.size);
    change->same = hf_item_equal(change->before.item, change->after.item);
    if (change->same)
        return HF_OK;
    if (change->after.item.ptr)
        put_row(set, change->key, &change->after, !change->before.item.ptr);
    else
        hf__batch_delete(&set->batch, change->key);
    if (table->indexes_len) {
        change->indexes = hf__scope_array(s, table->indexes_len, sizeof(*change->indexes));
        if (!change->indexes)
            return hf__fail_nomem(s);
    }
    for (size_t i = 0; i < table->indexes_len; i++)
        TRY(change_index(s, e, set, change, &table->indexes[i], &change->indexes[i]));
    if (table->ttl_attribute.ptr)
        hf__ttl_change(s, set, change);
    if (table->stream)
        hf__stream_add(s, e, set, change);
    return set->batch.ops.failed || set->records.failed ? hf__fail_nomem(s) : HF_OK;
}

static void counts_add(struct counts *counts, int64_t items, int64_t bytes)
{
    if (items)
        atomic_fetch_add_explicit(&counts->items, items, memory_order_relaxed);
    if (bytes)
        atomic_fetch_add_explicit(&counts->bytes, bytes, memory_order_relaxed);
}

static void count_change(const struct change *change)
{
    struct table *table = change->table;

    assert(change->same || change->indexes || table->indexes_len == 0);
    if (change->same)
        return;
    atomic_fetch_add_explicit(&table->counts->changes, 1, memory_order_relaxed);
    counts_add(&table->counts->table,
               (change->after.item.ptr != NULL) - (change->before.item.ptr != NULL),
               (int64_t)change->after.size - (int64_t)change->before.size);
    for (size_t i = 0; i < table->indexes_len; i++)
        counts_add(table->indexes[i].counts, change->indexes[i].items, change->indexes[i].bytes);
}

/* Does the change free space in the end? Stream records and tokens do not count. */
static bool only_deletes(const struct change_set *set)
{
    for (size_t i = 0; i < set->len; i++)
        if (set->changes[i]->after.item.ptr)
            return false;
    return true;
}

/* Before they are written; those of a write that fails do no harm. */
static void remember_keys(struct engine *e, const struct change_set *set)
{
    for (size_t i = 0; i < set->len; i++) {
        const struct change *change = set->changes[i];

        if (change->after.item.ptr && !change->before.item.ptr && change->table->counts->keys)
            hf__row_filter_add(&e->env, change->table->counts->keys, change->key);
    }
}

enum hf_status hf__change_apply(struct hf_scope *s, struct engine *e, struct change_set *set,
                                uint64_t *ticket)
{
    enum hf_status status;

    *ticket = 0;
    if (set->batch.count == 0)
        return HF_OK;
    if (hf__scope_alloc_failed(s))
        return hf__fail_nomem(s);
    assert(!set->batch.ops.failed && !set->records.failed);
    remember_keys(e, set);
    TRY(hf__sequence_begin(s, e, set));
    set->batch.frees = only_deletes(set);
    hf__kill_point("before_apply");
    status = hf__store_write(s, e->store, &set->batch, ticket);
    hf__sequence_end(e, set, status == HF_OK);
    if (status != HF_OK)
        return status;
    hf__kill_point("after_apply");
    assert(*ticket > 0);
    for (size_t i = 0; i < set->len; i++) {
        count_change(set->changes[i]);
        if (hf_str_equal(set->changes[i]->table->name, HF_FENCE_TABLE))
            atomic_fetch_add(&e->fence_changes, 1);
    }
    return HF_OK;
}

/* ---- durability ----------------------------------------------------------------------------- */

enum hf_status hf__engine_wait_durable(struct hf_scope *s, struct engine *e, uint64_t ticket)
{
    enum hf_status status;

    if (ticket <= hf__store_durable(e->store) || hf__scope_defer_sync(s, ticket))
        return HF_OK;
    status = hf__store_sync(s, e->store, ticket);
    if (status != HF_OK)
        hf__scope_error_edit(s)->may_have_happened = true;
    hf__kill_point("before_answer");
    return status;
}

enum hf_status hf__engine_wait_durable_seen(struct hf_scope *s, struct engine *e, uint64_t ticket)
{
    enum hf_status status;

    if (ticket <= hf__store_durable(e->store) || hf__scope_reads_durable(s) ||
        hf__scope_defer_sync(s, ticket))
        return HF_OK;
    if (!hf__scope_may_wait(s))
        return hf__scope_lose_patience(s);
    status = hf__store_sync(s, e->store, ticket);
    if (status != HF_OK) /* the write that may be lost is not of this call */
        hf__scope_error_edit(s)->may_have_happened = false;
    return status;
}

enum hf_status hf__engine_wait_durable_read(struct hf_scope *s, struct engine *e, size_t latch)
{
    return hf__engine_wait_durable_seen(s, e, hf__latch_ticket(e, latch));
}
