/*
 * engine/maintenance/backfill.c: maintenance adds the entries of items that existed before their
 * index, or before time to live was switched on, a few items at a time, while other work goes on.
 *
 * Writers maintain the new index from the moment it is in the schema. Backfilling walks the table
 * once; under the latch of each item it reads the item again and adds the entry if it is missing.
 * When the walk is done the index stops "building". A crash in between starts the walk again, which
 * adds nothing twice. Expiry can be switched off and on again during a walk, which removes what the
 * walk added; so each time it is switched on the walk has a new id, and an old walk ends.
 */
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/layout.h"
#include "engine/maintenance/maintenance.h"
#include "engine/maintenance/ttl.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "store/store.h"

#include "base/kill.h"

enum { BACKFILL_CHUNK = 100 };

/* One walk over a table. */
struct filling {
    struct hf_str table; /* its name, as the table may be replaced meanwhile */
    uint32_t table_id;
    uint32_t index_id;   /* 0: expiry entries */
    uint32_t ttl_id;     /* the id of the expiry entries */
    struct hf__buf from; /* the stored key to go on from */
    bool done;
};

static struct index *find_index(struct table *table, uint32_t id)
{
    for (size_t i = 0; i < table->indexes_len; i++)
        if (table->indexes[i].id == id)
            return &table->indexes[i];
    return NULL;
}

/* A walk belongs to one table, and either to one index or to expiry. */
static void filling_check(const struct filling *f)
{
    assert(f->table.len > 0 && f->table_id > 0 && (f->index_id || f->ttl_id) && !f->done);
    assert(f->from.len >= PREFIX_LEN && !f->from.failed);
    assert(f->from.ptr[0] == SPACE_ITEM && load_u32be(f->from.ptr + 1) == f->table_id);
}

/* The table, if the walk is still needed; otherwise NULL. The schema lock is held. */
static struct table *still_wanted(struct engine *e, const struct filling *f)
{
    struct table *table = hf__catalog_find(e, f->table);
    struct index *index;

    ASSERT_SCHEMA_HELD(e);
    if (!table || table->id != f->table_id)
        return NULL;
    if (f->index_id == 0)
        return table->ttl_id == f->ttl_id && table->record.ttl_building == HF_YES ? table : NULL;
    index = find_index(table, f->index_id);
    return index && index->building ? table : NULL;
}

/* ---- one chunk ------------------------------------------------------------------------------ */

static enum hf_status next_keys(struct hf_scope *s, struct engine *e, struct filling *f,
                                struct hf_bytes *keys, size_t *len)
{
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status = HF_OK;
    bool found = true;

    hf__stored_key_prefix(&upper, SPACE_ITEM, f->table_id + 1);
    if (upper.failed)
        return hf__fail_nomem(s);
    range =
        (struct store_range){.lower = {f->from.ptr, f->from.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    while (*len < BACKFILL_CHUNK) {
        struct hf_bytes key, value;
        struct hf_str copy;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status != HF_OK || !found)
            break;
        copy = hf_scope_copy(s, hf_str_of((const char *)key.ptr, key.len));
        if (!copy.ptr) {
            status = hf__fail_nomem(s);
            break;
        }
        keys[(*len)++] = hf_bytes_of(copy.ptr, copy.len);
    }
    hf__store_iter_close(iter);
    f->done = status == HF_OK && !found;
    return status;
}

/* Put the entry that the item should have into the batch, if it is not there. */
static enum hf_status add_entry(struct hf_scope *s, struct engine *e, struct table *table,
                                const struct filling *f, const struct row *row)
{
    struct index *index = f->index_id ? find_index(table, f->index_id) : NULL;
    struct store_batch batch = {.ops = {.scope = s}};
    struct hf__buf key = {.scope = s};
    struct hf__buf value = {.scope = s};
    struct row entry = *row;
    struct hf_bytes there;
    uint64_t expiry;
    uint64_t ticket;

    assert(row->item.ptr && !index == (f->index_id == 0));
    ASSERT_HELD(&e->latches[hf__row_latch(table, row->item)].lock);
    if (index) {
        if (!hf__index_key(&key, table, index, row->item))
            return HF_OK;
        entry.item = hf__index_project(s, table, index, row->item);
        TRY(hf_item_check(s, entry.item));
        entry.size = hf_item_size(entry.item);
        hf__row_encode(&value, &entry);
    } else {
        if (!hf__ttl_expiry(table->ttl_attribute, row->item, &expiry))
            return HF_OK;
        hf__ttl_key(&key, table, expiry, row->item);
    }
    if (key.failed || value.failed)
        return hf__fail_nomem(s);
    TRY(hf__store_get(s, e->store, NULL, hf_bytes_of(key.ptr, key.len), &there));
    if (there.ptr)
        return HF_OK;
    hf__batch_put(&batch, hf_bytes_of(key.ptr, key.len), hf_bytes_of(value.ptr, value.len));
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    hf__kill_point("before_backfill_entry");
    TRY(hf__store_write(s, e->store, &batch, &ticket));
    if (index) {
        atomic_fetch_add(&index->counts->items, 1);
        atomic_fetch_add(&index->counts->bytes, (long long)entry.size);
    }
    return HF_OK;
}

static enum hf_status fill_one(struct hf_scope *s, struct engine *e, struct table *table,
                               const struct filling *f, struct hf_bytes key)
{
    struct row row;
    enum hf_status status;
    size_t latch;

    TRY(hf__row_read(s, e, NULL, key, &row));
    if (!row.item.ptr)
        return HF_OK;
    latch = hf__row_latch(table, row.item);
    hf__latch(e, latch);
    status = hf__row_read(s, e, NULL, key, &row);
    if (status == HF_OK && row.item.ptr)
        status = add_entry(s, e, table, f, &row);
    hf__unlatch(e, latch, 0);
    return status;
}

static enum hf_status fill_chunk(struct hf_scope *s, struct engine *e, struct filling *f,
                                 uint64_t *looked_at)
{
    struct hf_bytes *keys = hf__scope_array(s, BACKFILL_CHUNK, sizeof(*keys));
    struct table *table = still_wanted(e, f);
    size_t len = 0;

    if (DEV_CHECKS)
        filling_check(f);
    if (!keys)
        return hf__fail_nomem(s);
    if (!table) {
        f->done = true;
        return HF_OK;
    }
    TRY(next_keys(s, e, f, keys, &len));
    for (size_t i = 0; i < len; i++) {
        struct hf__mark mark = hf__scope_mark(s);

        TRY(fill_one(s, e, table, f, keys[i]));
        hf__scope_rewind(s, mark);
    }
    *looked_at += len;
    if (len == 0)
        return HF_OK;
    f->from.len = 0;
    hf__buf_put(&f->from, keys[len - 1].ptr, keys[len - 1].len);
    hf__buf_put_byte(&f->from, 0);
    return f->from.failed ? hf__fail_nomem(s) : HF_OK;
}

/* ---- the end of a walk ---------------------------------------------------------------------- */

static enum hf_status finish_filling(struct hf_scope *s, struct engine *e, const struct filling *f)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct table *table = still_wanted(e, f);
    struct table_record record;
    struct index_record *indexes;
    enum hf_status status;

    if (!table)
        return HF_OK;
    assert(f->done);
    ASSERT_SCHEMA_WRITTEN(e);
    record = table->record;
    indexes = hf__scope_array(s, record.indexes_len, sizeof(*indexes));
    if (!indexes)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < record.indexes_len; i++) {
        indexes[i] = record.indexes[i];
        if ((uint32_t)indexes[i].id == f->index_id)
            indexes[i].building = HF_UNSET;
    }
    record.indexes = indexes;
    if (f->index_id == 0)
        record.ttl_building = HF_UNSET;
    hf__kill_point("before_backfill_end");
    status = hf__catalog_update(s, e, &batch, table, &record);
    hf__kill_point("after_backfill_end");
    return status;
}

/* ---- all walks ------------------------------------------------------------------------------ */

/* The next index, or time to live, that waits to be filled; *found: there is one. */
static enum hf_status next_filling(struct hf_scope *s, struct engine *e, struct filling *f,
                                   bool *found)
{
    *found = false;
    ASSERT_SCHEMA_HELD(e);
    for (size_t i = 0; i < e->catalog.len; i++) {
        struct table *table = e->catalog.tables[i];

        *f = (struct filling){.table_id = table->id,
                              .ttl_id = table->record.ttl_building == HF_YES ? table->ttl_id : 0,
                              .from = {.scope = s}};
        for (size_t j = 0; j < table->indexes_len; j++)
            if (table->indexes[j].building)
                f->index_id = table->indexes[j].id;
        if (f->index_id == 0 && f->ttl_id == 0)
            continue;
        f->table = hf_scope_copy(s, table->name);
        hf__stored_key_prefix(&f->from, SPACE_ITEM, table->id);
        *found = true;
        return f->table.ptr && !f->from.failed ? HF_OK : hf__fail_nomem(s);
    }
    return HF_OK;
}

static enum hf_status fill_all(struct hf_scope *s, struct engine *e, struct filling *f,
                               uint64_t *looked_at)
{
    enum hf_status status = HF_OK;
    struct hf_scope *chunk = hf_scope_new(&e->env);

    if (!chunk)
        return hf__fail_nomem(s);
    while (status == HF_OK && !f->done && !atomic_load(&e->maintenance.stop)) {
        pthread_rwlock_rdlock(&e->schema);
        status = fill_chunk(chunk, e, f, looked_at);
        pthread_rwlock_unlock(&e->schema);
        if (status != HF_OK)
            (void)hf_scope_fail_from(s, status, chunk);
        hf_scope_reset(chunk);
    }
    hf_scope_free(chunk);
    if (status != HF_OK || !f->done)
        return status;
    hf__schema_lock(e);
    status = finish_filling(s, e, f);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

enum hf_status hf__backfill(struct hf_scope *s, struct engine *e, uint64_t *looked_at)
{
    for (;;) {
        struct filling f;
        enum hf_status status;
        bool found;

        pthread_rwlock_rdlock(&e->schema);
        status = next_filling(s, e, &f, &found);
        pthread_rwlock_unlock(&e->schema);
        TRY(status);
        if (!found || atomic_load(&e->maintenance.stop))
            return HF_OK;
        TRY(fill_all(s, e, &f, looked_at));
    }
}
