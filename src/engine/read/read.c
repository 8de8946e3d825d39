/*
 * engine/read/read.c: GetItem and BatchGetItem. Readers take no latch; a consistent read waits
 * until what it may have seen is durable.
 */
#include "engine/read/read.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "expr/expr.h"
#include "ops/prepare.h"
#include "store/store.h"

enum {
    BATCH_BYTES_MAX = 16 * 1024 * 1024 /* of items in one answer; the rest is unprocessed */
};

enum hf_status hf__read_project(struct hf_scope *s, const struct prepared_read *read,
                                struct hf_item *item)
{
    if (!read->projection || !item->ptr)
        return HF_OK;
    return hf__expr_project(s, read->projection, *item, item);
}

/* Read one item by a key that was checked against the schema. */
enum hf_status hf__read_key(struct hf_scope *s, struct engine *e, const struct table *table,
                            const struct hf__store_snapshot *snapshot, struct hf_item key,
                            struct row *row)
{
    struct hf__buf stored = {.scope = s};

    hf__row_key(&stored, table, key);
    if (stored.failed)
        return hf__fail_nomem(s);
    return hf__row_read(s, e, snapshot, hf_bytes_of(stored.ptr, stored.len), row);
}

static enum hf_status get_locked(struct hf_scope *s, struct engine *e, struct hf_item key,
                                 const struct prepared_read *read, size_t *latch,
                                 struct hf_get_item_result *result)
{
    struct hf__buf stored = {.scope = s};
    struct usage usage;
    struct table *table;
    struct row row;

    ASSERT_SCHEMA_HELD(e);
    TRY(hf__catalog_item_table(s, e, read->table, &table));
    TRY(hf__schema_check_key(s, table, key));
    TRY(hf__schema_check_paths(s, table, read->projection));
    hf__row_key(&stored, table, key);
    if (stored.failed)
        return hf__fail_nomem(s);
    *latch = hf__stored_latch(hf_bytes_of(stored.ptr, stored.len));
    TRY(hf__row_read(s, e, NULL, hf_bytes_of(stored.ptr, stored.len), &row));
    result->item = row.item;
    TRY(hf__read_project(s, read, &result->item));
    if (read->return_capacity == 0)
        return HF_OK;
    usage = (struct usage){.table = table,
                           .named = read->table,
                           .table_units = hf__read_units(row.size, read->consistent)};
    result->capacity = hf__usage_capacity(s, &usage, read->return_capacity);
    return HF_OK;
}

enum hf_status hf__get_one(struct hf_scope *s, struct engine *e, struct hf_item key,
                           const struct prepared_read *read, struct hf_get_item_result *result)
{
    enum hf_status status;
    size_t latch = 0;

    TRY(hf__schema_read(s, e));
    status = get_locked(s, e, key, read, &latch, result);
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK || !read->consistent)
        return status;
    return hf__engine_wait_durable_read(s, e, latch);
}

enum hf_status hf__engine_get_item(struct hf_scope *s, struct engine *e,
                                   const struct hf_get_item *request,
                                   struct hf_get_item_result *result)
{
    struct prepared_read read;

    TRY(hf__prepare_get_item(s, e->cache, request, &read));
    return hf__get_one(s, e, request->key, &read, result);
}

/* ---- BatchGetItem --------------------------------------------------------------------------- */

struct batch_get {
    const struct hf_batch_get_item *request;
    const struct prepared_read *reads; /* one per table of the request */
    struct table **tables;
    struct hf_batch_get_item_result *result;
    struct hf_table_items *items;      /* what result->tables will be */
    struct hf_table_gets *unprocessed; /* what result->unprocessed will be */
    struct hf_capacity *capacity;      /* what result->capacity will be */
    size_t bytes;                      /* of the items so far */
    bool full;                         /* the next item did not fit */
    bool consistent;                   /* any of the tables is read consistently */
};

static struct hf_str copy_if_any(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

/* Return keys `from` and later of one table as unprocessed, copied, as the request may be freed. */
static enum hf_status leave_unprocessed(struct hf_scope *s, struct batch_get *b, size_t table,
                                        size_t from)
{
    const struct hf_table_gets *gets = &b->request->tables[table];
    struct hf_table_gets *left = &b->unprocessed[b->result->unprocessed_len++];
    struct hf_item *keys = hf__scope_array(s, gets->keys_len - from, sizeof(*keys));
    struct hf_str *names = hf__scope_array(s, gets->attributes_to_get_len, sizeof(*names));

    assert(from < gets->keys_len && b->result->unprocessed_len <= b->request->tables_len);
    if (!keys || (!names && gets->attributes_to_get_len))
        return hf__fail_nomem(s);
    for (size_t i = from; i < gets->keys_len; i++)
        keys[i - from] = hf_item_copy(s, gets->keys[i]);
    for (size_t i = 0; i < gets->attributes_to_get_len; i++)
        names[i] = hf_scope_copy(s, gets->attributes_to_get[i]);
    *left = (struct hf_table_gets){
        .table = hf_scope_copy(s, gets->table),
        .keys = keys,
        .keys_len = gets->keys_len - from,
        .projection = copy_if_any(s, gets->projection),
        .names = gets->names.ptr ? hf_item_copy(s, gets->names) : gets->names,
        .consistent = gets->consistent,
        .attributes_to_get = gets->attributes_to_get ? names : NULL,
        .attributes_to_get_len = gets->attributes_to_get_len,
    };
    return hf__scope_alloc_failed(s) ? hf__fail_nomem(s) : HF_OK;
}

static enum hf_status get_from_table(struct hf_scope *s, struct engine *e, struct batch_get *b,
                                     size_t at)
{
    const struct hf_table_gets *gets = &b->request->tables[at];
    const struct prepared_read *read = &b->reads[at];
    struct usage usage = {.table = b->tables[at], .named = gets->table};
    struct hf_item *items = hf__scope_array(s, gets->keys_len, sizeof(*items));
    const struct hf_capacity *used;
    size_t len = 0;

    if (!items)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < gets->keys_len; i++) {
        struct row row;

        TRY(hf__read_key(s, e, b->tables[at], NULL, gets->keys[i], &row));
        if (b->bytes + row.size > BATCH_BYTES_MAX) {
            b->full = true;
            TRY(leave_unprocessed(s, b, at, i));
            break;
        }
        usage.table_units += hf__read_units(row.size, read->consistent);
        if (!row.item.ptr)
            continue;
        b->bytes += row.size;
        TRY(hf__scope_patient(s, row.size));
        TRY(hf__read_project(s, read, &row.item));
        items[len++] = row.item;
    }
    assert(len <= gets->keys_len && b->bytes <= BATCH_BYTES_MAX);
    assert(b->result->tables_len < b->request->tables_len);
    b->items[b->result->tables_len++] =
        (struct hf_table_items){hf_scope_copy(s, gets->table), items, len};
    used = hf__usage_capacity(s, &usage, b->request->return_capacity);
    if (used)
        b->capacity[b->result->capacity_len++] = *used;
    return HF_OK;
}

static enum hf_status batch_get_locked(struct hf_scope *s, struct engine *e, struct batch_get *b)
{
    size_t tables = b->request->tables_len;

    b->tables = hf__scope_array(s, tables, sizeof(*b->tables));
    b->items = hf__scope_array(s, tables, sizeof(*b->items));
    b->unprocessed = hf__scope_array(s, tables, sizeof(*b->unprocessed));
    b->capacity = hf__scope_array(s, tables, sizeof(*b->capacity));
    if (!b->tables || !b->items || !b->unprocessed || !b->capacity)
        return hf__fail_nomem(s);
    b->result->tables = b->items;
    b->result->unprocessed = b->unprocessed;
    for (size_t i = 0; i < tables; i++) {
        TRY(hf__catalog_item_table(s, e, b->reads[i].table, &b->tables[i]));
        for (size_t j = 0; j < b->request->tables[i].keys_len; j++)
            TRY(hf__schema_check_key(s, b->tables[i], b->request->tables[i].keys[j]));
        TRY(hf__schema_check_paths(s, b->tables[i], b->reads[i].projection));
        b->consistent = b->consistent || b->reads[i].consistent;
    }
    for (size_t i = 0; i < tables; i++) {
        if (b->full)
            TRY(leave_unprocessed(s, b, i, 0));
        else
            TRY(get_from_table(s, e, b, i));
    }
    b->result->capacity = b->result->capacity_len ? b->capacity : NULL;
    return HF_OK;
}

enum hf_status hf__engine_batch_get_item(struct hf_scope *s, struct engine *e,
                                         const struct hf_batch_get_item *request,
                                         struct hf_batch_get_item_result *result)
{
    struct batch_get b = {.request = request, .result = result};
    struct prepared_read *reads;
    enum hf_status status;

    TRY(hf__prepare_batch_get_item(s, e->cache, request, &reads));
    b.reads = reads;
    pthread_rwlock_rdlock(&e->schema);
    status = batch_get_locked(s, e, &b);
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK || !b.consistent)
        return status;
    return hf__engine_wait_durable_seen(s, e, hf__store_written(e->store));
}
