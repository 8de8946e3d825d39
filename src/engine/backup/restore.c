/*
 * engine/backup/restore.c: a new table from a backup.
 *
 * The table is there at once and CREATING; maintenance puts the items of the backup into it, with
 * their index entries, a few at a time, and then it is ACTIVE. Until then nobody can use it, so no
 * latch is needed. A crash in between restarts the walk, which writes the same again; the backup
 * cannot change and, meanwhile, cannot be deleted.
 *
 * Counts are those of the last, whole walk. While it is being filled a table has none.
 */
#include "base/buf.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/layout.h"
#include "engine/maintenance/maintenance.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/table/tables.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "base/kill.h"

enum { RESTORE_CHUNK = 500, RESTORE_CHUNK_BYTES = 256 * 1024 };

/* ---- the operation -------------------------------------------------------------------------- */

static enum hf_status check_target(struct hf_scope *s, struct engine *e, struct hf_str name,
                                   struct hf_str arn)
{
    const struct table *there = hf__catalog_find(e, name);

    if (!there)
        return HF_OK;
    if (there->record.restore_from)
        return hf__fail_as(s, HF_IN_USE, "TableInUseException",
                           "Table: %.*s is already being restored from backup: %.*s", HF_FMT(name),
                           HF_FMT(arn));
    return hf__fail_as(s, HF_IN_USE, "TableAlreadyExistsException", "Table already exists: %.*s",
                       HF_FMT(name));
}

static enum hf_status restore_locked(struct hf_scope *s, struct engine *e,
                                     const struct hf_restore_table_from_backup *request,
                                     struct hf_restore_table_from_backup_result *result)
{
    struct hf_create_table table;
    struct backup *backup;

    ASSERT_SCHEMA_WRITTEN(e);
    TRY(hf__backup_find(s, e, request->backup_arn, &backup));
    TRY(check_target(s, e, request->table, request->backup_arn));
    if (backup->record.creating == HF_YES)
        return hf__fail_as(s, HF_IN_USE, "BackupInUseException", "Backup is being created: %.*s",
                           HF_FMT(request->backup_arn));
    if (hf__backup_target(e, backup))
        return hf__fail_as(s, HF_IN_USE, "BackupInUseException",
                           "Backup is being used to restore another table: %.*s",
                           HF_FMT(request->backup_arn));
    TRY(hf__prepare_restore(s, request, backup->record.table, &table));
    return hf__table_create(s, e, &table, &(struct table_origin){.backup = backup}, &result->table);
}

enum hf_status
hf__engine_restore_table_from_backup(struct hf_scope *s, struct engine *e,
                                     const struct hf_restore_table_from_backup *request,
                                     struct hf_restore_table_from_backup_result *result)
{
    enum hf_status status;

    TRY(hf__prepare_plain(s, HF_OP_RESTORE_TABLE_FROM_BACKUP, request));
    hf__schema_lock(e);
    status = restore_locked(s, e, request, result);
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK)
        return status;
    hf__engine_maintenance_wake(e);
    return hf__engine_wait_durable(s, e, hf__store_written(e->store));
}

/* ---- filling -------------------------------------------------------------------------------- */

struct sum {
    int64_t items;
    int64_t bytes;
};

/* One walk over a backup. A table that is being filled cannot be replaced or deleted. */
struct filling {
    struct table *table;
    uint32_t copy_id;
    struct hf__buf from; /* the key of the copy to go on from */
    struct sum sum;
    struct sum indexes[INDEXES_MAX];
    bool done;
};

static void add_to_sum(struct sum *sum, size_t size)
{
    sum->items++;
    sum->bytes += (int64_t)size;
}

static enum hf_status put_entry(struct hf_scope *s, struct filling *f, size_t number,
                                const struct row *row, struct store_batch *batch)
{
    const struct index *index = &f->table->indexes[number];
    struct hf__buf key = {.scope = s};
    struct hf__buf value = {.scope = s};
    struct row entry = *row;

    assert(number < f->table->indexes_len);
    if (!hf__index_key(&key, f->table, index, row->item))
        return HF_OK;
    entry.item = hf__index_project(s, f->table, index, row->item);
    TRY(hf_item_check(s, entry.item));
    entry.size = hf_item_size(entry.item);
    hf__row_encode(&value, &entry);
    if (key.failed || value.failed)
        return hf__fail_nomem(s);
    hf__batch_put(batch, hf_bytes_of(key.ptr, key.len), hf_bytes_of(value.ptr, value.len));
    add_to_sum(&f->indexes[number], entry.size);
    return HF_OK;
}

static enum hf_status put_item(struct hf_scope *s, struct filling *f, struct hf_bytes key,
                               struct hf_bytes value, struct store_batch *batch)
{
    struct hf__buf own = {.scope = s};
    struct row row;

    assert(key.len >= PREFIX_LEN && key.ptr[0] == SPACE_COPY);
    TRY(hf__row_decode(s, value, &row));
    hf__stored_key_prefix(&own, SPACE_ITEM, f->table->id);
    hf__buf_put(&own, key.ptr + PREFIX_LEN, key.len - PREFIX_LEN);
    if (own.failed)
        return hf__fail_nomem(s);
    hf__batch_put(batch, hf_bytes_of(own.ptr, own.len), value);
    add_to_sum(&f->sum, row.size);
    for (size_t i = 0; i < f->table->indexes_len; i++)
        TRY(put_entry(s, f, i, &row, batch));
    return HF_OK;
}

/* Put the next items and their index entries. */
static enum hf_status read_chunk(struct hf_scope *s, struct engine *e, struct filling *f,
                                 struct store_batch *batch, uint64_t *count)
{
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    bool found = true;

    hf__stored_key_prefix(&upper, SPACE_COPY, f->copy_id + 1);
    if (upper.failed)
        return hf__fail_nomem(s);
    range =
        (struct store_range){.lower = {f->from.ptr, f->from.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found) {
            status = put_item(s, f, key, value, batch);
            f->from.len = 0;
            hf__buf_put(&f->from, key.ptr, key.len);
            hf__buf_put_byte(&f->from, 0);
            ++*count;
        }
    } while (status == HF_OK && found && *count < RESTORE_CHUNK &&
             batch->bytes < RESTORE_CHUNK_BYTES);
    hf__store_iter_close(iter);
    f->done = !found;
    return status;
}

static enum hf_status fill_chunk(struct hf_scope *s, struct engine *e, struct filling *f,
                                 uint64_t *restored)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint64_t ticket;
    uint64_t count = 0;

    assert(f->table && f->table->record.restore_from && f->copy_id > 0 && !f->done);
    ASSERT_HELD(&e->maintenance_lock);
    TRY(read_chunk(s, e, f, &batch, &count));
    if (batch.ops.failed || f->from.failed)
        return hf__fail_nomem(s);
    if (count == 0)
        return HF_OK;
    hf__kill_point("before_restore_chunk");
    TRY(hf__store_write(s, e->store, &batch, &ticket));
    TRY(hf__store_sync(s, e->store, ticket));
    hf__kill_point("after_restore_chunk");
    *restored += count;
    return HF_OK;
}

static void set_counts(struct counts *counts, const struct sum *sum)
{
    atomic_store(&counts->items, sum->items);
    atomic_store(&counts->bytes, sum->bytes);
}

/* The table is complete. The schema lock is held for writing. */
static enum hf_status finish_table(struct hf_scope *s, struct engine *e, struct filling *f)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct table_record record = f->table->record;
    struct hf_table_description description = *record.description;
    struct hf_str name = hf_scope_copy(s, f->table->name);
    struct table *table;

    assert(f->done);
    ASSERT_SCHEMA_WRITTEN(e);
    if (!name.ptr)
        return hf__fail_nomem(s);
    description.restore = NULL;
    record.description = &description;
    record.restore_from = 0;
    hf__kill_point("before_restore_end");
    TRY(hf__catalog_update(s, e, &batch, f->table, &record));
    hf__kill_point("after_restore_end");
    table = hf__catalog_find(e, name); /* the next version, with the same indexes */
    assert(table && table->record.restore_from == 0);
    set_counts(&table->counts->table, &f->sum);
    for (size_t i = 0; i < table->indexes_len; i++)
        set_counts(table->indexes[i].counts, &f->indexes[i]);
    return HF_OK;
}

static enum hf_status fill_table(struct hf_scope *s, struct engine *e, struct filling *f,
                                 uint64_t *restored)
{
    struct hf_scope *own = hf_scope_new(&e->env);
    enum hf_status status = HF_OK;

    if (!own)
        return hf__fail_nomem(s);
    while (status == HF_OK && !f->done && !atomic_load(&e->maintenance.stop)) {
        status = hf__scope_alive(s);
        if (status != HF_OK)
            break;
        status = fill_chunk(own, e, f, restored);
        if (status != HF_OK)
            (void)hf_scope_fail_from(s, status, own);
        hf_scope_reset(own);
    }
    hf_scope_free(own);
    if (status != HF_OK || !f->done)
        return status;
    hf__schema_lock(e);
    status = finish_table(s, e, f);
    pthread_rwlock_unlock(&e->schema);
    return status;
}

/* The next table that waits to be filled; false when there is none. */
static bool next_restoring(struct engine *e, struct filling *f)
{
    struct backup *backup = NULL;

    *f = (struct filling){.from = {.env = &e->env}};
    pthread_rwlock_rdlock(&e->schema);
    for (size_t i = 0; i < e->catalog.len && !f->table; i++)
        if (e->catalog.tables[i]->record.restore_from)
            f->table = e->catalog.tables[i];
    if (f->table)
        backup = hf__backup_by_id(e, f->table->record.restore_from);
    if (backup)
        f->copy_id = (uint32_t)backup->record.copy_id;
    pthread_rwlock_unlock(&e->schema);
    return f->table != NULL;
}

enum hf_status hf__restore(struct hf_scope *s, struct engine *e, uint64_t *restored)
{
    struct filling f;
    enum hf_status status = HF_OK;

    while (status == HF_OK && !atomic_load(&e->maintenance.stop) && next_restoring(e, &f)) {
        hf__stored_key_prefix(&f.from, SPACE_COPY, f.copy_id);
        if (f.copy_id == 0)
            status = hf__fail(s, HF_CORRUPT,
                              "The backup that a table is being restored from no longer exists");
        else if (f.from.failed)
            status = hf__fail_nomem(s);
        else
            status = fill_table(s, e, &f, restored);
        hf__buf_free(&f.from);
    }
    return status;
}
