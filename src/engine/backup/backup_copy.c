/*
 * engine/backup/backup_copy.c: copying the items of a backup that is being made.
 *
 * Maintenance walks the items of the table in the snapshot that was taken with the backup, and puts
 * them as they are under the backup's copy id, a few at a time, beside all other work. The snapshot
 * does not survive the process. So when the database is opened and finds a backup that is still
 * CREATING, that backup is started over, with a new snapshot, a new copy id, and the time of now:
 * what it has is again the state of one moment, and it says which. The same happens to one that a
 * restore of the whole database (snapshot.c) brought back, and to one that the open had no room to
 * begin: they have no snapshot of the store, and maintenance begins them.
 *
 * Its table may be gone by then. The items of a deleted table are erased by maintenance, too, but
 * not before every backup that is of them is made (hf__backups_need()); nobody changes them any
 * more.
 */
#include "base/buf.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/table/catalog.h"
#include "store/store.h"

#include "base/kill.h"

enum { COPY_CHUNK = 1000, COPY_CHUNK_BYTES = 256 * 1024 };

bool hf__backups_need(struct engine *e, uint8_t space, uint32_t id)
{
    bool needed = false;

    if (space != SPACE_ITEM)
        return false;
    pthread_rwlock_rdlock(&e->schema);
    for (size_t i = 0; i < e->backups.len; i++) {
        const struct backup_record *record = &e->backups.list[i]->record;

        needed = needed || (record->creating == HF_YES && record->table_id == (int64_t)id);
    }
    pthread_rwlock_unlock(&e->schema);
    return needed;
}

/* ---- starting over -------------------------------------------------------------------------- */

/* The schema lock is held for writing, or the database is being opened. */
static enum hf_status backup_restart(struct hf_scope *s, struct engine *e, struct backup *backup)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct backup_record record = backup->record;
    enum hf_status status;

    assert(record.creating == HF_YES && !backup->snapshot);
    hf__erase_later(&batch, SPACE_COPY, (uint32_t)record.copy_id);
    record.copy_id = hf__catalog_new_id(s, e, &batch);
    record.created_us = hf__env_wall_us(&e->env) / 1000 * 1000;
    hf__backup_put_record(s, &batch, &record);
    TRY(hf__store_snapshot_open(s, e->store, &backup->snapshot));
    status = hf__catalog_commit(s, e, &batch);
    if (status != HF_OK) {
        hf__store_snapshot_close(e->store, backup->snapshot);
        backup->snapshot = NULL;
        return status;
    }
    backup->record.copy_id = record.copy_id;
    backup->record.created_us = record.created_us;
    return HF_OK;
}

/* A full disk must not keep a database from being opened: maintenance resumes them when there is
 * room. */
enum hf_status hf__backups_resume(struct hf_scope *s, struct engine *e)
{
    for (size_t i = 0; i < e->backups.len; i++) {
        enum hf_status status = HF_OK;

        if (e->backups.list[i]->record.creating == HF_YES)
            status = backup_restart(s, e, e->backups.list[i]);
        if (status == HF_NO_SPACE) {
            hf__env_log(&e->env, HF_LOG_WARNING, "unfinished backups will be resumed later: %s",
                        hf_scope_error_text(s));
            hf__scope_error_clear(s);
            return HF_OK;
        }
        TRY(status);
    }
    return HF_OK;
}

/* ---- copying -------------------------------------------------------------------------------- */

/* One chunk of copied items, until it is in the store. */
struct chunk {
    struct store_batch batch;
    struct hf__buf key; /* of the item that is being copied */
    int64_t items;
    int64_t bytes;
};

static enum hf_status add_item(struct hf_scope *s, const struct backup *backup, struct chunk *chunk,
                               struct hf_bytes key, struct hf_bytes value)
{
    struct row row;

    assert(key.len >= PREFIX_LEN && key.ptr[0] == SPACE_ITEM);
    TRY(hf__row_decode(s, value, &row)); /* a damaged item must not become part of a backup */
    chunk->key.len = 0;
    hf__stored_key_prefix(&chunk->key, SPACE_COPY, (uint32_t)backup->record.copy_id);
    hf__buf_put(&chunk->key, key.ptr + PREFIX_LEN, key.len - PREFIX_LEN);
    if (chunk->key.failed)
        return hf__fail_nomem(s);
    hf__batch_put(&chunk->batch, hf_bytes_of(chunk->key.ptr, chunk->key.len), value);
    chunk->items++;
    chunk->bytes += (int64_t)row.size;
    return HF_OK;
}

/* The next items of the snapshot, as a batch; *done when there are no more. */
static enum hf_status read_chunk(struct hf_scope *s, struct engine *e, const struct backup *backup,
                                 struct chunk *chunk, struct hf__buf *from, bool *done)
{
    struct hf__buf lower = {.scope = s};
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    bool found = true;

    hf__stored_key_prefix(&lower, SPACE_ITEM, (uint32_t)backup->record.table_id);
    hf__stored_key_prefix(&upper, SPACE_ITEM, (uint32_t)backup->record.table_id + 1);
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    if (backup->from.len)
        range.lower = hf_bytes_of(backup->from.ptr, backup->from.len);
    TRY(hf__store_iter_open(s, e->store, backup->snapshot, &range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found) {
            status = add_item(s, backup, chunk, key, value);
            from->len = 0;
            hf__buf_put(from, key.ptr, key.len);
            hf__buf_put_byte(from, 0);
        }
    } while (status == HF_OK && found && chunk->items < COPY_CHUNK &&
             chunk->batch.bytes < COPY_CHUNK_BYTES);
    hf__store_iter_close(iter);
    *done = !found;
    return status;
}

static enum hf_status copy_chunk(struct hf_scope *s, struct engine *e, struct backup *backup,
                                 uint64_t *copied, bool *done)
{
    struct chunk chunk = {.batch = {.ops = {.scope = s}}, .key = {.scope = s}};
    struct hf__buf from = {.scope = s};
    uint64_t ticket;

    assert(backup->snapshot && backup->record.creating == HF_YES);
    ASSERT_HELD(&e->maintenance_lock);
    TRY(read_chunk(s, e, backup, &chunk, &from, done));
    if (chunk.items == 0)
        return HF_OK;
    if (chunk.batch.ops.failed || from.failed)
        return hf__fail_nomem(s);
    hf__kill_point("before_backup_chunk");
    TRY(hf__store_write(s, e->store, &chunk.batch, &ticket));
    TRY(hf__store_sync(s, e->store, ticket));
    hf__kill_point("after_backup_chunk");
    backup->items += chunk.items;
    backup->bytes += chunk.bytes;
    *copied += (uint64_t)chunk.items;
    backup->from.len = 0;
    hf__buf_put(&backup->from, from.ptr, from.len);
    if (!backup->from.failed)
        return HF_OK;
    hf__buf_free(&backup->from); /* start from the first key again, which does no harm */
    backup->items = 0;
    backup->bytes = 0;
    return hf__fail_nomem(s);
}

/* Everything is copied: make that durable, and only then show the backup as AVAILABLE. */
static enum hf_status backup_finish(struct hf_scope *s, struct engine *e, struct backup *backup)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct backup_record record = backup->record;
    struct hf__store_snapshot *snapshot = backup->snapshot;
    uint64_t ticket;

    assert(snapshot && record.creating == HF_YES && backup->items >= 0);
    record.creating = HF_UNSET;
    record.items = backup->items;
    record.bytes = backup->bytes;
    hf__backup_put_record(s, &batch, &record);
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    hf__kill_point("before_backup_end");
    TRY(hf__store_write(s, e->store, &batch, &ticket));
    hf__kill_point("after_backup_end");
    TRY(hf__engine_wait_durable(s, e, ticket));
    hf__schema_lock(e);
    backup->record.creating = HF_UNSET;
    backup->record.items = record.items;
    backup->record.bytes = record.bytes;
    backup->snapshot = NULL;
    pthread_rwlock_unlock(&e->schema);
    hf__store_snapshot_close(e->store, snapshot);
    hf__buf_free(&backup->from);
    return HF_OK;
}

static enum hf_status backup_copy_all(struct hf_scope *s, struct engine *e, struct backup *backup,
                                      uint64_t *copied)
{
    struct hf_scope *own = hf_scope_new(&e->env);
    enum hf_status status = HF_OK;
    bool done = false;

    if (!own)
        return hf__fail_nomem(s);
    while (status == HF_OK && !done && !atomic_load(&e->maintenance.stop)) {
        status = hf__scope_alive(s);
        if (status != HF_OK)
            break;
        status = copy_chunk(own, e, backup, copied, &done);
        if (status != HF_OK)
            (void)hf_scope_fail_from(s, status, own);
        hf_scope_reset(own);
    }
    hf_scope_free(own);
    return status == HF_OK && done ? backup_finish(s, e, backup) : status;
}

/* A backup that is CREATING cannot be deleted, so the pointer stays valid without the lock. */
static struct backup *next_creating(struct engine *e)
{
    struct backup *backup = NULL;

    pthread_rwlock_rdlock(&e->schema);
    for (size_t i = 0; i < e->backups.len && !backup; i++)
        if (e->backups.list[i]->record.creating == HF_YES)
            backup = e->backups.list[i];
    pthread_rwlock_unlock(&e->schema);
    return backup;
}

enum hf_status hf__backups_copy(struct hf_scope *s, struct engine *e, uint64_t *copied)
{
    struct backup *backup;

    while ((backup = next_creating(e)) != NULL && !atomic_load(&e->maintenance.stop)) {
        if (!backup->snapshot) {
            enum hf_status status;

            hf__schema_lock(e);
            status = backup_restart(s, e, backup);
            pthread_rwlock_unlock(&e->schema);
            TRY(status);
        }
        TRY(backup_copy_all(s, e, backup, copied));
    }
    return HF_OK;
}
