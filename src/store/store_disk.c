/*
 * store/store_disk.c: a store on disk. Here is what happens to a write; the parts have files of
 * their own:
 *
 *     store_space.c  when the disk is too full for a write
 *     store_dir.c    the directory
 *     journal.c      every batch that is not in tables yet, on disk
 *     commit.c       when a batch is safe
 *     replay.c       the journal read into memory: by an open, and after a stop
 *     maintenance.c  the thread that writes tables, compacts them, and reclaims the journal
 *     record.c       a batch as a record of the journal, and as entries of a map
 *     memtable.c     the same batches in memory, and how they and the tables are read as one
 *     tables.c       everything older, in RocksDB
 *
 * A batch goes to the journal, and then to the memtable's active map. Tickets are the journal's
 * numbers of changes. When that map is large, or the journal is, the maintenance thread freezes
 * it and writes it as a table. When batches come faster than tables can be written, writers wait in
 * write_stall().
 *
 * A journal may be much larger than a map: what is written again and again, as counters and locks
 * are, is then written once as a table. Its size is the time that an open after a crash takes. One
 * that is synced is smaller, as its files are written twice, first with zeros; see journal.c.
 *
 * Ranges are deleted key by key, see tables.c.
 *
 * What always holds:
 *
 *  (1) A batch is in the journal before it can be read, and both have them in the same order.
 *  (2) What tables do not have is in the journal, and is replayed at the next open. What they have
 *      is not.
 */
#include "store/disk.h"
#include "store/record.h"

#include "base/cond_monotonic.h"
#include "base/kill.h"
#include "base/stdio_fds.h"

enum {
    KIB = 1024,
    MIB = 1024 * KIB,
    WINDOW_MS = 100,
    QUIET_MS = 1000,
    MEMTABLE_BYTES = 64 * MIB,
    MEMTABLE_BYTES_MIN = 256 * KIB,
    CACHE_BYTES = 32 * MIB,
    MAPS = 2,             /* one takes changes while the other is written as a table */
    OPEN_BYTES = 4 * MIB, /* manifests, and the first file of the journal */
    STALL_MS = 10         /* how long a writer sleeps before it looks again */
};

static struct disk *disk_of(struct hf__store *store)
{
    return (struct disk *)store;
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status disk_get(struct hf_scope *s, struct hf__store *store,
                               const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                               struct hf_bytes *value)
{
    return hf__memtable_get(s, &disk_of(store)->memtable, (const struct memtable_view *)snapshot,
                            key, value);
}

static enum hf_status disk_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                         struct hf__store_snapshot **snapshot)
{
    struct memtable_view *view = hf__env_alloc(&store->env, sizeof(*view));

    if (!view)
        return hf__fail_nomem(s);
    hf__memtable_view(&disk_of(store)->memtable, view);
    *snapshot = (struct hf__store_snapshot *)view;
    return HF_OK;
}

static void disk_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    struct memtable_view *view = (struct memtable_view *)snapshot;

    hf__memtable_view_close(view);
    hf__env_free(&store->env, view, sizeof(*view));
}

static enum hf_status disk_iter_open(struct hf_scope *s, struct hf__store *store,
                                     const struct hf__store_snapshot *snapshot,
                                     const struct store_range *range, struct hf__store_iter **iter)
{
    struct memtable_walk *walk;

    TRY(hf__memtable_walk_open(s, &disk_of(store)->memtable, (const struct memtable_view *)snapshot,
                               range, &walk));
    *iter = (struct hf__store_iter *)walk;
    (*iter)->store = store;
    return HF_OK;
}

static enum hf_status disk_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                     struct hf_bytes *key, struct hf_bytes *value)
{
    return hf__memtable_walk_next(s, (struct memtable_walk *)iter, found, key, value);
}

static void disk_iter_close(struct hf__store_iter *iter)
{
    hf__memtable_walk_close((struct memtable_walk *)iter);
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool in_range(struct hf_bytes key, const struct batch_op *range)
{
    return bytes_compare(key.ptr, key.len, range->key.ptr, range->key.len) >= 0 &&
           bytes_compare(key.ptr, key.len, range->body.ptr, range->body.len) < 0;
}

/* In builds for tests, check memtable.c (3): nothing else would notice a violation. */
static void check_fresh(struct disk *disk, struct hf_bytes key)
{
#ifdef HF_KILL_POINTS
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_bytes value = hf_bytes_of(NULL, 0);

    assert(!s || hf__memtable_get(s, &disk->memtable, NULL, key, &value) != HF_OK || !value.ptr);
    hf_scope_free(s);
#else
    (void)disk;
    (void)key;
#endif
}

/* Delete what the store has in the range, and what the batch put there before. */
static enum hf_status add_range(struct changes *changes, struct disk *disk,
                                const struct batch_op *range)
{
    const struct store_range keys = {.lower = range->key, .upper = range->body};
    const struct hf_bytes none = hf_bytes_of(NULL, 0);
    enum hf_status status = HF_OK;
    struct memtable_walk *walk;
    bool found = true;

    if (!range->body.len)
        return HF_OK;
    for (size_t i = 0, len = changes->len; status == HF_OK && i < len; i++) {
        struct hf_bytes key = map_key(changes->entries[i]);

        if (!changes->entries[i]->gone && in_range(key, range))
            status = hf__changes_add(changes, CHANGE_DELETE, key, none, none);
    }
    TRY(status);
    TRY(hf__memtable_walk_open(changes->s, &disk->memtable, NULL, &keys, &walk));
    while (status == HF_OK && found) {
        struct hf_bytes key, value;

        status = hf__memtable_walk_next(changes->s, walk, &found, &key, &value);
        if (status == HF_OK && found)
            status = hf__changes_add(changes, CHANGE_DELETE, key, none, none);
    }
    hf__memtable_walk_close(walk);
    return status;
}

static enum change_kind kind_of(struct disk *disk, const struct batch_op *op)
{
    if (op->kind == BATCH_DELETE)
        return CHANGE_DELETE;
    if (!op->fresh)
        return CHANGE_PUT;
    check_fresh(disk, op->key);
    return CHANGE_INSERT;
}

static enum hf_status add_batch(struct changes *changes, struct disk *disk,
                                const struct store_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct batch_op *op = batch_at(batch, i);

        if (op->kind == BATCH_DELETE_RANGE)
            TRY(add_range(changes, disk, op));
        else
            TRY(hf__changes_add(changes, kind_of(disk, op), op->key, batch_head(op), op->body));
    }
    return HF_OK;
}

static uint64_t disk_written(struct hf__store *store)
{
    return hf__journal_last(disk_of(store)->commit.journal);
}

static uint64_t disk_durable(struct hf__store *store)
{
    return atomic_load(&disk_of(store)->commit.safe);
}

/* Append the changes to the journal and apply them to memory, as one step: both have all batches in
 * the same order. Everything that can fail comes before. */
static enum hf_status append_and_apply(struct hf_scope *s, struct disk *disk,
                                       struct changes *changes, uint64_t *ticket)
{
    struct journal *journal = disk->commit.journal;
    uint8_t *to;

    hf__journal_begin(journal);
    if (atomic_load(&disk->commit.stopped)) { /* and changes in memory may have been taken back */
        hf__journal_end(journal);
        return hf__commit_fail(s, &disk->commit, HF_STOPPED);
    }
    to = hf__journal_reserve(journal, changes->record_len);
    if (to)
        hf__changes_write(changes, hf__journal_last(journal) + 1, to);
    if (to && hf__memtable_prepare(&disk->memtable, changes->entries, changes->len)) {
        *ticket = hf__journal_append(journal, changes->record_len);
        assert(*ticket > atomic_load(&disk->commit.safe));
        hf__memtable_apply(&disk->memtable, changes->entries, changes->len, *ticket);
        changes->len = 0;
    }
    hf__journal_end(journal);
    return *ticket ? HF_OK : hf__fail_nomem(s);
}

/* Nothing was written, for lack of something that may be available later. */
static enum hf_status fail_for_now(struct hf_scope *s, struct disk *disk, const char *what,
                                   const char *error)
{
    hf__fail(s, HF_IO, "The store in %s cannot %s at the moment: %s", disk->store_dir.path, what,
             error);
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

enum hf_status hf__disk_fail_stalled(struct hf_scope *s, struct disk *disk, enum tables_end end)
{
    if (end == TABLES_NO_ROOM)
        return hf__fail(
            s, HF_NO_SPACE,
            "The disk of the store in %s is too full to write the memtable to a table file",
            disk->store_dir.path);
    if (end == TABLES_NO_MEMORY)
        return hf__fail_nomem(s);
    if (end == TABLES_LACK)
        return fail_for_now(s, disk, "write the memtable to a table file", disk->lack);
    return hf__commit_fail(s, &disk->commit, HF_STOPPED);
}

static bool is_overfull(struct disk *disk)
{
    size_t active = hf__memtable_active_bytes(&disk->memtable);

    return active > disk->map_bytes &&
           (active > 2 * disk->map_bytes || hf__memtable_is_frozen(&disk->memtable));
}

/* The active map is full: wait until the frozen map is written, or until the active one is frozen
 * if it has grown too large. Fails when an attempt to write tables that ends from now on fails. */
static enum hf_status write_stall(struct hf_scope *s, struct disk *disk)
{
    enum hf_status status = HF_OK;
    uint64_t before;

    assert(!disk->options.read_only);
    pthread_mutex_lock(&disk->stall_lock);
    before = disk->attempts;
    while (status == HF_OK && is_overfull(disk)) {
        if (atomic_load(&disk->commit.stopped))
            status = hf__disk_fail_stalled(s, disk, TABLES_FAILED);
        else if (disk->attempts > before && disk->tables_end != TABLES_WRITTEN)
            status = hf__disk_fail_stalled(s, disk, disk->tables_end);
        else
            status = hf__scope_alive(s);
        if (status == HF_OK)
            cond_wait_ms(&disk->attempted, &disk->stall_lock, STALL_MS);
    }
    pthread_mutex_unlock(&disk->stall_lock);
    return status;
}

static enum hf_status write_changes(struct hf_scope *s, struct disk *disk,
                                    const struct store_batch *batch, struct changes *changes,
                                    uint64_t *ticket)
{
    TRY(add_batch(changes, disk, batch));
    if (changes->len == 0) { /* nothing to append: a table of it would be empty */
        *ticket = hf__journal_last(disk->commit.journal);
        return HF_OK;
    }
    if (!batch->opens)
        TRY(hf__disk_check_room(s, disk, changes->record_len, batch->frees));
    hf__kill_point("before_write");
    TRY(append_and_apply(s, disk, changes, ticket));
    hf__kill_point("after_write");
    return HF_OK;
}

static enum hf_status disk_write(struct hf_scope *s, struct hf__store *store,
                                 const struct store_batch *batch, uint64_t *ticket)
{
    struct disk *disk = disk_of(store);
    struct hf__mark mark = hf__scope_mark(s); /* the batch is before it */
    struct changes changes;
    enum hf_status status;
    bool full = hf__memtable_active_bytes(&disk->memtable) > disk->map_bytes;

    if (disk->options.read_only)
        return hf__fail(s, HF_DENIED, "The database was opened read-only: this write is refused");
    if (atomic_load(&disk->commit.stopped))
        return hf__commit_fail(s, &disk->commit, HF_STOPPED);
    if (full) {
        hf__maintenance_want_tables(disk);
        TRY(write_stall(s, disk));
    }
    if (hf__journal_is_stretched(disk->commit.journal))
        return fail_for_now(s, disk, "write", "the journal cannot open its next file");
    hf__changes_init(&changes, s, &store->env);
    status = write_changes(s, disk, batch, &changes, ticket);
    if (status != HF_OK) {
        hf__changes_drop(&changes);
        return status;
    }
    hf__scope_rewind(s, mark);
    hf__commit_appended(&disk->commit);
    return HF_OK;
}

static enum hf_status disk_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    hf__disk_look_between_syncs(disk_of(store));
    return hf__commit_wait(s, &disk_of(store)->commit, ticket);
}

/* ---- changes -------------------------------------------------------------------------------- */

static enum hf_status disk_changes(struct hf_scope *s, struct hf__store *store,
                                   struct store_changes *changes, uint64_t upto, size_t bytes,
                                   store_change_fn *fn, void *user)
{
    return hf__journal_tail(s, disk_of(store)->commit.journal, changes, upto, bytes, fn, user);
}

static void disk_changes_release(struct hf__store *store, uint64_t upto)
{
    struct disk *disk = disk_of(store);

    assert(upto <= hf__journal_last(disk->commit.journal));
    atomic_store(&disk->released, upto);
    atomic_store(&disk->fell_behind, false);
    if (hf__journal_closed_count(disk->commit.journal, 0) > hf__disk_files_kept(disk))
        hf__maintenance_want_reclaim(disk);
}

/* A batch is appended and applied under the journal's order, so the two agree. */
static enum hf_status disk_snapshot_at(struct hf_scope *s, struct hf__store *store,
                                       struct hf__store_snapshot **snapshot, uint64_t *ticket)
{
    struct journal *journal = disk_of(store)->commit.journal;
    enum hf_status status;

    hf__journal_begin(journal);
    status = disk_snapshot_open(s, store, snapshot);
    *ticket = hf__journal_last(journal);
    hf__journal_end(journal);
    return status;
}

static uint64_t disk_id(struct hf__store *store)
{
    return disk_of(store)->store_dir.id;
}

/* ---- care ----------------------------------------------------------------------------------- */

static void disk_stats(struct hf__store *store, struct store_stats *stats)
{
    struct disk *disk = disk_of(store);
    uint64_t have, need = 0;

    /* Writes check the disk, too, but a caller that asks whether writes are possible may send none.
     */
    if (!disk->options.read_only)
        hf__disk_has_room(disk, 0, &have, &need);
    stats->syncs = atomic_load(&disk->commit.syncs);
    pthread_mutex_lock(&disk->commit.lock);
    stats->sync_waits = disk->commit.waits;
    pthread_mutex_unlock(&disk->commit.lock);
    stats->kept_bytes = hf__journal_bytes(disk->commit.journal);
    stats->disk_bytes = hf__store_dir_used_bytes(&disk->store_dir) + stats->kept_bytes;
    stats->memory_bytes = hf__memtable_bytes(&disk->memtable) + hf__tables_memory(disk->tables);
    stats->stopped = atomic_load(&disk->commit.stopped);
    stats->no_space = atomic_load(&disk->no_space);
    stats->read_only = disk->options.read_only;
    stats->path = hf_str_from(disk->store_dir.path);
    stats->kept_free = need;
    stats->table_bytes = hf__tables_bytes(disk->tables);
    stats->data_bytes = stats->table_bytes + hf__memtable_bytes(&disk->memtable);
}

static enum hf_status disk_verify(struct hf_scope *s, struct hf__store *store,
                                  const struct store_watch *watch)
{
    struct disk *disk = disk_of(store);

    if (!hf__memtable_check(&disk->memtable))
        return hf__fail(s, HF_CORRUPT, "The memtable of the store in %s is damaged",
                        disk->store_dir.path);
    return hf__tables_verify(s, disk->tables, watch);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void set_locks(struct disk *disk)
{
    cond_monotonic_init(&disk->attempted);
    pthread_mutex_init(&disk->stall_lock, NULL);
    pthread_mutex_init(&disk->space_lock, NULL);
    disk->commit.env = &disk->base.env;
    disk->commit.store_dir = &disk->store_dir;
    disk->commit.mode = disk->options.sync;
    disk->commit.window_ms = disk->options.window_ms;
    hf__commit_init(&disk->commit);
}

/* Make everything durable: in tables, so that the next open has nothing to replay and the journal
 * need not be synced, or else in the journal. True: it is in tables. */
static bool disk_finish(struct disk *disk)
{
    uint64_t upto;
    bool clean;

    if (disk->tables)
        hf__tables_hurry(disk->tables);
    hf__maintenance_stop(disk);
    hf__commit_stop_threads(&disk->commit);
    if (!atomic_load(&disk->opened) || atomic_load(&disk->commit.stopped))
        return false;
    hf__kill_point("before_close_flush");
    /* Tables that could not be reopened may lack something: the next open has to ask them. */
    clean = hf__disk_write_tables(disk, &upto) && !hf__tables_lacks(disk->tables);
    if (!clean)
        hf__commit_finish(&disk->commit);
    hf__kill_point("after_close_flush");
    return clean;
}

static void disk_close(struct hf__store *store)
{
    struct disk *disk = disk_of(store);
    struct hf_env env = store->env;
    bool clean = disk_finish(disk);

    hf__memtable_close(&disk->memtable);
    hf__tables_close(disk->tables);
    if (clean) /* the noted manifest is complete once the tables are closed */
        hf__commit_clean(&disk->commit);
    hf__kill_point("after_clean_note");
    hf__commit_close(&disk->commit);
    hf__store_dir_close(&disk->store_dir);
    pthread_mutex_destroy(&disk->space_lock);
    pthread_mutex_destroy(&disk->stall_lock);
    pthread_cond_destroy(&disk->attempted);
    hf__env_free(&env, disk, sizeof(*disk));
}

static const struct store_kind disk_kind = {
    .close = disk_close,
    .get = disk_get,
    .snapshot_open = disk_snapshot_open,
    .snapshot_close = disk_snapshot_close,
    .iter_open = disk_iter_open,
    .iter_next = disk_iter_next,
    .iter_close = disk_iter_close,
    .write = disk_write,
    .sync = disk_sync,
    .written = disk_written,
    .durable = disk_durable,
    .stats = disk_stats,
    .verify = disk_verify,
    .changes = disk_changes,
    .changes_release = disk_changes_release,
    .snapshot_at = disk_snapshot_at,
    .id = disk_id,
};

static struct tables_options tables_options(struct disk *disk)
{
    return (struct tables_options){.env = &disk->base.env,
                                   .path = disk->store_dir.path,
                                   .db_path = disk->store_dir.db_path,
                                   .table_bytes = disk->map_bytes,
                                   .cache_bytes = disk->options.cache_bytes,
                                   .missing = !disk->store_dir.has_database,
                                   .read_only = disk->options.read_only,
                                   .resting = atomic_load(&disk->no_space),
                                   .no_verify = disk->options.no_verify,
                                   .compress = disk->options.compress,
                                   .bulk = disk->options.bulk};
}

static struct journal_marks journal_marks(struct disk *disk)
{
    const struct store_marks *marks = &disk->store_dir.marks;

    return (struct journal_marks){.fresh = disk->store_dir.fresh || disk->store_dir.format == 1,
                                  .old_form = disk->store_dir.format == 2,
                                  .whole = marks->boot && marks->boot == hf__marks_boot(),
                                  .id = marks->id,
                                  .durable = marks->durable,
                                  .based = marks->based,
                                  .clean = marks->clean,
                                  .segment = marks->segment};
}

static enum hf_status open_tables(struct hf_scope *s, struct disk *disk)
{
    const struct tables_options options = tables_options(disk);

    TRY(hf__tables_open(s, &options, &disk->tables));
    return hf__memtable_open(s, &disk->memtable, &disk->base.env, hf__tables_newest(disk->tables));
}

static enum hf_status open_journal(struct hf_scope *s, struct disk *disk)
{
    const struct journal_options options = {.env = &disk->base.env,
                                            .path = disk->store_dir.journal_path,
                                            .segment_bytes = disk_segment_bytes(disk),
                                            .syncs = disk_is_synced(disk),
                                            .read_only = disk->options.read_only};
    const struct journal_marks marks = journal_marks(disk);

    TRY(hf__commit_open(s, &disk->commit, &options, &marks, hf__disk_replay, disk));
    return disk->options.read_only ? HF_OK : hf__maintenance_start(s, disk);
}

/* Check that all parts belong to one store and one point in time, and that nothing is missing.
 * Nothing is changed: RocksDB is not open yet, or was opened read-only. */
static enum hf_status check_parts(struct hf_scope *s, struct disk *disk)
{
    const struct tables_options options = tables_options(disk);
    struct journal_marks marks;
    struct tables_mark mark;
    bool noted;

    TRY(hf__marks_open(s, &disk->store_dir));
    if (disk->store_dir.fresh)
        return HF_OK;
    TRY(hf__manifest_check(s, &disk->store_dir, &noted));
    if (disk->store_dir.has_database && !noted) {
        TRY(hf__tables_look(s, &options, &mark));
        TRY(hf__marks_compare(s, &disk->store_dir, &mark));
    }
    if (disk->store_dir.format == 1)
        return HF_OK;
    marks = journal_marks(disk);
    return hf__journal_check(s, &disk->base.env, disk->store_dir.journal_path, &marks);
}

/* Open as after a crash, but without changing anything: everything that tables lack is in memory.
 * So there are no threads, and a close has nothing to do. */
static enum hf_status open_to_read(struct hf_scope *s, struct disk *disk)
{
    TRY(check_parts(s, disk));
    TRY(open_tables(s, disk));
    return open_journal(s, disk);
}

static enum hf_status open_inside(struct hf_scope *s, struct disk *disk)
{
    uint64_t have, need;

    TRY(check_parts(s, disk));
    /* A ballast that is left from the last run needs no space again. */
    hf__store_dir_fill_ballast(&disk->store_dir);
    /* It needs a larger reserve. Where that might be missed later, nothing is merged later than usual. */
    if (disk->options.bulk &&
        !hf__disk_has_room(disk, hf__tables_compaction(disk->map_bytes, true), &have, &need))
        disk->options.bulk = false;
    if (!hf__disk_has_room(disk, 0, &have, &need)) {
        have = hf__store_dir_free_bytes(&disk->store_dir); /* with the ballast */
        need = disk->options.reserve_bytes && disk->options.reserve_bytes < OPEN_BYTES
                   ? disk->options.reserve_bytes
                   : OPEN_BYTES;
        if (have < need)
            return hf__fail(
                s, HF_NO_SPACE,
                "The disk of the store in %s has %llu bytes free; opening needs %llu: free some, "
                "set a smaller reserve (reserve_bytes, --reserve), or open it read-only "
                "(read_only, --read-only)",
                disk->store_dir.path, (unsigned long long)have, (unsigned long long)need);
    }
    TRY(open_tables(s, disk));
    TRY(open_journal(s, disk));
    TRY(hf__store_dir_seal(s, &disk->store_dir));
    atomic_store(&disk->opened, true);
    return HF_OK;
}

static struct store_options whole_options(const struct store_options *options)
{
    struct store_options whole = options ? *options : (struct store_options){0};

    if (!whole.window_ms)
        whole.window_ms = WINDOW_MS;
    if (!whole.quiet_ms)
        whole.quiet_ms = QUIET_MS;
    if (!whole.memtable_bytes)
        whole.memtable_bytes = MEMTABLE_BYTES;
    if (whole.memtable_bytes < MEMTABLE_BYTES_MIN)
        whole.memtable_bytes = MEMTABLE_BYTES_MIN;
    if (!whole.cache_bytes)
        whole.cache_bytes = CACHE_BYTES;
    return whole;
}

enum hf_status hf__store_open_disk(struct hf_scope *s, const struct hf_env *env, struct hf_str path,
                                   const struct store_options *options, struct hf__store **store)
{
    struct hf_env whole = hf__env_fill(env);
    struct disk *disk = hf__env_alloc(&whole, sizeof(*disk));
    enum hf_status status;

    *store = NULL;
    if (!disk)
        return hf__fail_nomem(s);
    if (!stdio_fds_fill()) {
        hf__env_free(&whole, disk, sizeof(*disk));
        return hf__fail(s, HF_IO,
                        "standard input, output or error is closed, and /dev/null cannot "
                        "be opened in its place");
    }
    memset(disk, 0, sizeof(*disk));
    disk->base = (struct hf__store){.kind = &disk_kind, .env = whole};
    disk->options = whole_options(options);
    disk->map_bytes = disk->options.memtable_bytes / MAPS;
    status = hf__store_dir_open(s, &disk->base.env, path, disk->options.read_only,
                                disk->options.no_create, &disk->store_dir);
    if (status != HF_OK) {
        hf__env_free(&whole, disk, sizeof(*disk));
        return status;
    }
    set_locks(disk);
    status = disk->options.read_only ? open_to_read(s, disk) : open_inside(s, disk);
    if (status != HF_OK)
        disk_close(&disk->base);
    else
        *store = &disk->base;
    return status;
}
