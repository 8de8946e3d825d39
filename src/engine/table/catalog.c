/*
 * engine/table/catalog.c: which tables exist.
 *
 * A table in memory is one version of its schema, made from its record and never changed. An
 * operation on tables makes the next version, stores its record, and puts it in the old one's
 * place while it holds the schema lock; so whoever reads under that lock has a schema that stays.
 * Counts are the exception: they live on from version to version.
 */
#include "engine/table/catalog.h"

#include "base/buf.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/key_filter.h"
#include "engine/layout.h"
#include "engine/setting.h"
#include "engine/stream/streams.h"
#include "engine/table/schema.h"
#include "engine/transfer/transfers.h"
#include "ops/prepare.h"
#include "store/store.h"
#include <holdfast/fence.h>

#include "base/kill.h"
#include "wire/wire.h"

/* ---- one version of a table ----------------------------------------------------------------- */

static enum hf_type type_of(const struct hf_table_description *d, struct hf_str name)
{
    for (size_t i = 0; i < d->attributes_len; i++)
        if (hf_str_equal(d->attributes[i].name, name))
            return (enum hf_type)d->attributes[i].type; /* the two enums agree */
    return HF_TYPE_NONE;
}

_Static_assert((int)HF_SCALAR_S == HF_TYPE_S && (int)HF_SCALAR_N == HF_TYPE_N &&
                   (int)HF_SCALAR_B == HF_TYPE_B,
               "scalar types are types");

/* Is the record valid? If not, it is damaged. */
static bool fill_key(const struct hf_table_description *d, const struct hf_key_element *elements,
                     size_t len, struct key_schema *key)
{
    for (size_t i = 0; i < len; i++) {
        struct key_attr attr = {elements[i].name, type_of(d, elements[i].name)};
        bool hash = elements[i].type == HF_KEY_HASH;
        size_t *count = hash ? &key->hash_len : &key->range_len;

        if (*count == KEY_ATTRS_MAX || attr.type == HF_TYPE_NONE || attr.name.len == 0)
            return false;
        (hash ? key->hash : key->range)[(*count)++] = attr;
    }
    return key->hash_len > 0;
}

/* The counts of the index `id`; a free place if it has none yet. */
static struct counts *index_counts(struct table_counts *counts, uint32_t id)
{
    assert(id > 0);
    for (size_t i = 0; i < INDEXES_MAX; i++)
        if (counts->ids[i] == id)
            return &counts->indexes[i];
    for (size_t i = 0; i < INDEXES_MAX; i++) {
        if (counts->ids[i] == 0) {
            counts->ids[i] = id;
            atomic_store(&counts->indexes[i].items, 0);
            atomic_store(&counts->indexes[i].bytes, 0);
            return &counts->indexes[i];
        }
    }
    return NULL;
}

/* Ids are four bytes on disk. */
static bool is_id(int64_t id)
{
    return id > 0 && id < UINT32_MAX;
}

static bool fill_index(struct table *table, const struct hf_index_description *d, bool local)
{
    const struct table_record *record = &table->record;
    struct index *index = &table->indexes[table->indexes_len];

    if (table->indexes_len == INDEXES_MAX || !d->projection)
        return false;
    *index = (struct index){.name = d->name,
                            .local = local,
                            .projection = d->projection->type,
                            .included = d->projection->attributes,
                            .included_len = d->projection->attributes_len};
    for (size_t i = 0; i < record->indexes_len; i++) {
        if (hf_str_equal(record->indexes[i].name, d->name) && is_id(record->indexes[i].id)) {
            index->id = (uint32_t)record->indexes[i].id;
            index->building = record->indexes[i].building == HF_YES;
        }
    }
    if (index->id == 0 || index->id == table->id || d->name.len == 0 ||
        (local && index->building) ||
        !fill_key(record->description, d->key_schema, d->key_schema_len, &index->key))
        return false;
    index->counts = index_counts(table->counts, index->id);
    table->indexes_len++;
    return index->counts != NULL;
}

static bool fill_table(struct engine *e, struct table *table)
{
    const struct hf_table_description *d = table->record.description;

    if (!d || d->name.len == 0 || !is_id(table->record.id) || table->record.ttl_id < 0 ||
        table->record.ttl_id > UINT32_MAX)
        return false;
    table->name = d->name;
    table->id = (uint32_t)table->record.id;
    table->ttl_attribute = table->record.ttl_attribute;
    table->ttl_id = (uint32_t)table->record.ttl_id;
    if (table->record.stream_id)
        table->stream = hf__stream_by_id(e, (uint32_t)table->record.stream_id);
    if (!fill_key(d, d->key_schema, d->key_schema_len, &table->key) || table->key.hash_len != 1 ||
        table->key.range_len > 1)
        return false;
    for (size_t i = 0; i < d->local_indexes_len; i++)
        if (!fill_index(table, &d->local_indexes[i], true))
            return false;
    for (size_t i = 0; i < d->global_indexes_len; i++)
        if (!fill_index(table, &d->global_indexes[i], false))
            return false;
    return true;
}

/* Copy a record by encoding and decoding it, so that no new member can be forgotten. */
static enum hf_status copy_record(struct hf_scope *s, const struct table_record *record,
                                  struct table *table)
{
    struct hf__buf json = {.scope = table->memory};

    hf__wire_write(&json, &hf__table_record_fields, record);
    if (json.failed)
        return hf__fail_nomem(s);
    if (hf__wire_read(table->memory, &hf__table_record_fields,
                      hf_str_of((const char *)json.ptr, json.len), &table->record) != HF_OK)
        return hf_scope_fail_because(s, hf_scope_error(table->memory)->status,
                                     hf_scope_error(table->memory), "The record of a table: %s",
                                     hf_scope_error_text(table->memory));
    return HF_OK;
}

enum hf_status hf__table_new(struct hf_scope *s, struct engine *e,
                             const struct table_record *record, struct table_counts *counts,
                             struct table **out)
{
    struct hf_scope *memory = hf_scope_new(&e->env);
    struct table *table = memory ? hf__scope_array(memory, 1, sizeof(*table)) : NULL;
    enum hf_status status = HF_NOMEM;

    if (!table)
        goto failed;
    table->memory = memory;
    table->counts = counts;
    if (!counts) {
        table->counts = hf__env_alloc(&e->env, sizeof(*table->counts));
        if (!table->counts)
            goto failed;
        memset(table->counts, 0, sizeof(*table->counts));
    }
    status = copy_record(s, record, table);
    if (status == HF_OK && !fill_table(e, table))
        status = hf__fail(s, HF_CORRUPT, "The record of a table is damaged");
    if (status == HF_OK) {
        if (DEV_CHECKS)
            hf__table_check(table);
        *out = table;
        return HF_OK;
    }
    if (!counts)
        hf__env_free(&e->env, table->counts, sizeof(*table->counts));
failed:
    hf_scope_free(memory);
    return status == HF_NOMEM ? hf__fail_nomem(s) : status;
}

void hf__table_free(struct engine *e, struct table *table, bool with_counts)
{
    if (!table)
        return;
    if (with_counts) {
        hf__row_filter_free(&e->env, table->counts->keys);
        hf__env_free(&e->env, table->counts, sizeof(*table->counts));
    }
    hf_scope_free(table->memory);
}

struct index *hf__table_index(struct table *table, struct hf_str name)
{
    for (size_t i = 0; i < table->indexes_len; i++)
        if (hf_str_equal(table->indexes[i].name, name))
            return &table->indexes[i];
    return NULL;
}

struct hf_str hf__table_arn(struct hf_scope *s, struct engine *e, struct hf_str name)
{
    return hf_scope_format(s, "arn:aws:dynamodb:%.*s:%.*s:table/%.*s", HF_FMT(e->region),
                           HF_FMT(e->account), HF_FMT(name));
}

/* ---- finding -------------------------------------------------------------------------------- */

/* The place of a name in the catalog, or where it would be inserted. */
static size_t catalog_find_place(const struct catalog *catalog, struct hf_str name)
{
    size_t low = 0;
    size_t high = catalog->len;

    while (low < high) {
        size_t middle = (low + high) / 2;
        struct hf_str there = catalog->tables[middle]->name;

        if (bytes_compare(there.ptr, there.len, name.ptr, name.len) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct table *hf__catalog_find(struct engine *e, struct hf_str name)
{
    size_t at = catalog_find_place(&e->catalog, name);

    ASSERT_SCHEMA_HELD(e);
    if (at == e->catalog.len || !hf_str_equal(e->catalog.tables[at]->name, name))
        return NULL;
    return e->catalog.tables[at];
}

/* *table stays NULL when there is none. */
static enum hf_status look_up_any(struct hf_scope *s, struct engine *e, struct hf_str name_or_arn,
                                  struct table **table)
{
    struct table_arn parts;

    *table = NULL;
    TRY(hf__engine_fit(s, e)); /* this call may have waited for a restore that failed */
    if (!hf__arn_is(name_or_arn)) {
        *table = hf__catalog_find(e, name_or_arn);
    } else if (hf__arn_split(name_or_arn, &parts)) {
        TRY(hf__arn_check_account(s, e, parts.account, name_or_arn));
        if (hf_str_equal(parts.region, e->region))
            *table = hf__catalog_find(e, parts.name);
    }
    return HF_OK;
}

bool hf__table_filling(struct engine *e, const struct table *table)
{
    return table->record.restore_from || hf__transfers_fill(e, table);
}

/* A table that is still being filled cannot be used, as if it did not exist. */
static enum hf_status look_up(struct hf_scope *s, struct engine *e, struct hf_str name,
                              struct table **table)
{
    TRY(look_up_any(s, e, name, table));
    if (*table && hf__table_filling(e, *table))
        *table = NULL;
    return HF_OK;
}

enum hf_status hf__catalog_item_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                      struct table **table)
{
    TRY(look_up(s, e, name, table));
    return *table ? HF_OK : hf__fail(s, HF_NOT_FOUND, "Requested resource not found");
}

/* Operations on tables have an error of their own for another region. */
static enum hf_status check_region(struct hf_scope *s, const struct engine *e, struct hf_str name)
{
    struct table_arn parts;

    if (!hf__arn_is(name) || !hf__arn_split(name, &parts) || hf_str_equal(parts.region, e->region))
        return HF_OK;
    return hf__fail(s, HF_INVALID, "1 validation error detected: Invalid AWS region in '%.*s'",
                    HF_FMT(name));
}

static enum hf_status found_or_fail(struct hf_scope *s, const struct engine *e, struct hf_str name,
                                    const struct table *table)
{
    if (table)
        return HF_OK;
    TRY(check_region(s, e, name));
    return hf__fail(s, HF_NOT_FOUND, "Requested resource not found: Table: %.*s not found",
                    HF_FMT(hf__ops_table_name(name)));
}

enum hf_status hf__catalog_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                 struct table **table)
{
    TRY(look_up(s, e, name, table));
    return found_or_fail(s, e, name, *table);
}

enum hf_status hf__catalog_any_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                     struct table **table)
{
    TRY(look_up_any(s, e, name, table));
    return found_or_fail(s, e, name, *table);
}

enum hf_status hf__catalog_backup_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                        struct table **table)
{
    TRY(look_up(s, e, name, table));
    if (*table)
        return HF_OK;
    TRY(check_region(s, e, name));
    return hf__fail_as(s, HF_NOT_FOUND, "TableNotFoundException", "Table not found: %.*s",
                       HF_FMT(hf__ops_table_name(name)));
}

/* The catalog is in the order of names, each once, and every table in it is valid. */
void hf__catalog_check(const struct engine *e)
{
    const struct catalog *catalog = &e->catalog;

    assert(catalog->len <= catalog->cap && (catalog->tables || catalog->cap == 0));
    for (size_t i = 0; i < catalog->len; i++)
        hf__table_check(catalog->tables[i]);
    for (size_t i = 1; i < catalog->len; i++) {
        struct hf_str a = catalog->tables[i - 1]->name;
        struct hf_str b = catalog->tables[i]->name;

        assert(bytes_compare(a.ptr, a.len, b.ptr, b.len) < 0);
    }
}

/* ---- changing ------------------------------------------------------------------------------- */

void hf__catalog_forget_fences(struct engine *e)
{
    for (size_t i = 0; i < e->catalog.len; i++)
        atomic_store(&e->catalog.tables[i]->counts->fence, FENCE_UNKNOWN);
}

/* The table of fences has come, changed or gone. */
static void note_fences(struct engine *e, struct hf_str changed)
{
    if (hf_str_equal(changed, HF_FENCE_TABLE))
        hf__catalog_forget_fences(e);
}

enum hf_status hf__catalog_reserve(struct hf_scope *s, struct engine *e)
{
    struct catalog *catalog = &e->catalog;
    size_t cap = catalog->cap ? catalog->cap * 2 : 16;
    struct table **tables;

    if (catalog->len < catalog->cap)
        return HF_OK;
    tables = hf__env_resize(&e->env, catalog->tables, catalog->cap * sizeof(*tables),
                            cap * sizeof(*tables));
    if (!tables)
        return hf__fail_nomem(s);
    catalog->tables = tables;
    catalog->cap = cap;
    return HF_OK;
}

void hf__catalog_add(struct engine *e, struct table *table)
{
    struct catalog *catalog = &e->catalog;
    size_t at = catalog_find_place(catalog, table->name);

    assert(catalog->len < catalog->cap);
    assert(at == catalog->len || !hf_str_equal(catalog->tables[at]->name, table->name));
    memmove(catalog->tables + at + 1, catalog->tables + at,
            (catalog->len - at) * sizeof(*catalog->tables));
    catalog->tables[at] = table;
    catalog->len++;
    note_fences(e, table->name);
    if (DEV_CHECKS)
        hf__catalog_check(e);
}

void hf__catalog_replace(struct engine *e, struct table *from, struct table *to)
{
    size_t at = catalog_find_place(&e->catalog, from->name);

    ASSERT_SCHEMA_WRITTEN(e);
    assert(at < e->catalog.len && from->counts == to->counts);
    assert(from->id == to->id && hf_str_equal(from->name, to->name));
    assert(e->catalog.tables[at] == from);
    e->catalog.tables[at] = to;
    note_fences(e, to->name);
    hf__table_free(e, from, false);
    if (DEV_CHECKS)
        hf__catalog_check(e);
}

void hf__catalog_remove(struct engine *e, struct table *table)
{
    struct catalog *catalog = &e->catalog;
    size_t at = catalog_find_place(catalog, table->name);

    ASSERT_SCHEMA_WRITTEN(e);
    assert(at < catalog->len);
    assert(catalog->tables[at] == table);
    memmove(catalog->tables + at, catalog->tables + at + 1,
            (catalog->len - at - 1) * sizeof(*catalog->tables));
    catalog->len--;
    note_fences(e, table->name);
    hf__table_free(e, table, true);
    if (DEV_CHECKS)
        hf__catalog_check(e);
}

static struct hf_bytes record_key(struct hf_scope *s, struct hf_str name, struct hf__buf *key)
{
    *key = (struct hf__buf){.scope = s};
    hf__buf_put_byte(key, SPACE_TABLE);
    hf__buf_put_str(key, name);
    return hf_bytes_of(key->ptr, key->len);
}

void hf__catalog_put_record(struct hf_scope *s, struct store_batch *batch,
                            const struct table_record *record)
{
    struct hf__buf key;
    struct hf__buf json = {.scope = s};
    struct hf_bytes name = record_key(s, record->description->name, &key);

    hf__wire_write(&json, &hf__table_record_fields, record);
    if (key.failed || json.failed)
        batch->ops.failed = true;
    else
        hf__batch_put(batch, name, hf_bytes_of(json.ptr, json.len));
}

void hf__catalog_delete_record(struct hf_scope *s, struct store_batch *batch, struct hf_str name)
{
    struct hf__buf key;
    struct hf_bytes bytes = record_key(s, name, &key);

    if (key.failed)
        batch->ops.failed = true;
    else
        hf__batch_delete(batch, bytes);
}

static int64_t id_max(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

enum hf_status hf__catalog_check_ids(struct hf_scope *s, const struct engine *e, uint32_t next_id)
{
    int64_t last = 0;

    for (size_t i = 0; i < e->catalog.len; i++) {
        const struct table *table = e->catalog.tables[i];

        last = id_max(last, id_max(table->id, table->ttl_id));
        for (size_t j = 0; j < table->indexes_len; j++)
            last = id_max(last, table->indexes[j].id);
    }
    for (size_t i = 0; i < e->streams.len; i++)
        last = id_max(last, e->streams.list[i]->record.id);
    for (size_t i = 0; i < e->backups.len; i++)
        last =
            id_max(last, id_max(e->backups.list[i]->record.id, e->backups.list[i]->record.copy_id));
    if (last < next_id && next_id < UINT32_MAX)
        return HF_OK;
    return hf__fail(
        s, HF_CORRUPT,
        "The record of the next id is damaged: it says %u, but id %lld is in use. Restore a copy "
        "of the database",
        next_id, (long long)last);
}

uint32_t hf__catalog_new_id(struct hf_scope *s, struct engine *e, struct store_batch *batch)
{
    uint32_t id = e->next_id++;
    uint8_t next[4];

    assert(id > 0 && e->next_id > id); /* ids are never used again */
    store_u32be(next, e->next_id);
    hf__setting_put(s, batch, "next_id", hf_bytes_of(next, sizeof(next)));
    return id;
}

enum hf_status hf__catalog_commit(struct hf_scope *s, struct engine *e,
                                  const struct store_batch *batch)
{
    uint64_t ticket;

    if (batch->ops.failed || hf__scope_alloc_failed(s))
        return hf__fail_nomem(s);
    assert(batch->count > 0);
    hf__kill_point("before_catalog");
    TRY(hf__store_write(s, e->store, batch, &ticket));
    hf__kill_point("after_catalog");
    return HF_OK;
}

enum hf_status hf__catalog_update(struct hf_scope *s, struct engine *e, struct store_batch *batch,
                                  struct table *table, const struct table_record *record)
{
    struct table *next;
    enum hf_status status;

    ASSERT_SCHEMA_WRITTEN(e);
    assert(record->id == table->record.id);
    hf__catalog_put_record(s, batch, record);
    TRY(hf__table_new(s, e, record, table->counts, &next));
    status = hf__catalog_commit(s, e, batch);
    if (status == HF_OK)
        hf__catalog_replace(e, table, next);
    else
        hf__table_free(e, next, false);
    return status;
}

/* ---- loading -------------------------------------------------------------------------------- */

/* `name` is from the stored key, so no two tables have the same. */
static enum hf_status load_table(struct hf_scope *s, struct engine *e, struct hf_str name,
                                 struct hf_bytes json)
{
    struct table_record record = {.id = 0};
    struct table *table;
    struct hf_str text = hf_scope_copy(s, hf_str_of((const char *)json.ptr, json.len));

    if (!text.ptr)
        return hf__fail_nomem(s);
    if (hf__wire_read(s, &hf__table_record_fields, text, &record) != HF_OK || !record.description ||
        !hf_str_equal(record.description->name, name))
        return hf__fail(s, HF_CORRUPT, "The record of a table is damaged");
    TRY(hf__catalog_reserve(s, e));
    TRY(hf__table_new(s, e, &record, NULL, &table));
    hf__catalog_add(e, table);
    return HF_OK;
}

enum hf_status hf__catalog_load(struct hf_scope *s, struct engine *e)
{
    static const uint8_t lower[] = {SPACE_TABLE};
    static const uint8_t upper[] = {SPACE_TABLE + 1};
    const struct store_range range = {.lower = {lower, 1}, .upper = {upper, 1}};
    struct hf__store_iter *iter;
    struct hf_bytes key, value, next;
    enum hf_status status;
    bool found = true;

    TRY(hf__setting_get(s, e, "next_id", &next));
    e->next_id = next.len == 4 ? load_u32be(next.ptr) : 1;
    TRY(hf__store_iter_open(s, e->store, e->opened, &range, &iter));
    do {
        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            status = load_table(s, e, hf_str_of((const char *)key.ptr + 1, key.len - 1), value);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    return status;
}

void hf__catalog_free(struct engine *e)
{
    struct catalog *catalog = &e->catalog;

    for (size_t i = 0; i < catalog->len; i++)
        hf__table_free(e, catalog->tables[i], true);
    hf__env_free(&e->env, catalog->tables, catalog->cap * sizeof(*catalog->tables));
}
