/*
 * store/store_disk.c: a store on disk. Here is what happens to a write; the parts have files of
 * their own:
 *
 *     store_space.c  when the disk is too full for a write
 *     home.c         the directory
 *     journal.c      every batch that is not in tables yet, on disk
 *     commit.c       when a batch is safe, and when files of the journal go
 *     record.c       a batch as a record of the journal, and as entries of a map
 *     front.c        the same batches in memory, and how they and the tables are read as one
 *     tables.c       everything older, in RocksDB
 *
 * A batch goes to the journal, and then to the front's active map. Tickets are the journal's
 * numbers of changes. When that map is large, or the journal is, the keeper's thread freezes it and
 * writes it as a table. Who writes faster than tables are written has to wait at some point, in
 * `stall`.
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

#include "base/kill.h"
#include "base/steady.h"

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
    return hf__front_get(s, &disk_of(store)->front, (const struct front_view *)snapshot, key,
                         value);
}

static enum hf_status disk_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                         struct hf__store_snapshot **snapshot)
{
    struct front_view *view = hf__env_alloc(&store->env, sizeof(*view));

    if (!view)
        return hf__fail_nomem(s);
    hf__front_view(&disk_of(store)->front, view);
    *snapshot = (struct hf__store_snapshot *)view;
    return HF_OK;
}

static void disk_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    struct front_view *view = (struct front_view *)snapshot;

    hf__front_view_close(view);
    hf__env_free(&store->env, view, sizeof(*view));
}

static enum hf_status disk_iter_open(struct hf_scope *s, struct hf__store *store,
                                     const struct hf__store_snapshot *snapshot,
                                     const struct store_range *range, struct hf__store_iter **iter)
{
    struct front_walk *walk;

    TRY(hf__front_walk_open(s, &disk_of(store)->front, (const struct front_view *)snapshot, range,
                            &walk));
    *iter = (struct hf__store_iter *)walk;
    (*iter)->store = store;
    return HF_OK;
}

static enum hf_status disk_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                     struct hf_bytes *key, struct hf_bytes *value)
{
    return hf__front_walk_next(s, (struct front_walk *)iter, found, key, value);
}

static void disk_iter_close(struct hf__store_iter *iter)
{
    hf__front_walk_close((struct front_walk *)iter);
}

/* ---- writing -------------------------------------------------------------------------------- */

static bool in_range(struct hf_bytes key, const struct batch_op *range)
{
    return bytes_compare(key.ptr, key.len, range->key.ptr, range->key.len) >= 0 &&
           bytes_compare(key.ptr, key.len, range->value.ptr, range->value.len) < 0;
}

/* Programs that test see to it that front.c (3) holds: nobody would notice a key that comes back.
 */
static void check_fresh(struct disk *disk, struct hf_bytes key)
{
#ifdef HF_KILL_POINTS
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_bytes value = hf_bytes_of(NULL, 0);

    assert(!s || hf__front_get(s, &disk->front, NULL, key, &value) != HF_OK || !value.ptr);
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
    const struct store_range keys = {.lower = range->key, .upper = range->value};
    const struct hf_bytes none = hf_bytes_of(NULL, 0);
    enum hf_status status = HF_OK;
    struct front_walk *walk;
    bool found = true;

    if (!range->value.len)
        return HF_OK;
    for (size_t i = 0, len = changes->len; status == HF_OK && i < len; i++) {
        struct hf_bytes key = map_key(changes->entries[i]);

        if (!changes->entries[i]->gone && in_range(key, range))
            status = hf__changes_add(changes, CHANGE_DELETE, key, none);
    }
    TRY(status);
    TRY(hf__front_walk_open(changes->s, &disk->front, NULL, &keys, &walk));
    while (status == HF_OK && found) {
        struct hf_bytes key, value;

        status = hf__front_walk_next(changes->s, walk, &found, &key, &value);
        if (status == HF_OK && found)
            status = hf__changes_add(changes, CHANGE_DELETE, key, none);
    }
    hf__front_walk_close(walk);
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
    enum hf_status status = hf__changes_begin(changes, batch->ops.len);
    struct batch_op op;

    for (size_t at = 0; status == HF_OK && hf__batch_next(batch, &at, &op);) {
        if (op.kind == BATCH_DELETE_RANGE)
            status = add_range(changes, disk, &op);
        else
            status = hf__changes_add(changes, kind_of(disk, &op), op.key, op.value);
    }
    return status;
}

static uint64_t disk_written(struct hf__store *store)
{
    return hf__journal_last(disk_of(store)->commit.journal);
}

static uint64_t disk_durable(struct hf__store *store)
{
    return atomic_load(&disk_of(store)->commit.safe);
}

/* Log it and apply it, with nobody in between: both have their batches in one order. */
static enum hf_status log_and_apply(struct hf_scope *s, struct disk *disk, struct changes *changes,
                                    uint64_t *ticket)
{
    struct journal *journal = disk->commit.journal;
    bool prepared;

    hf__journal_begin(journal);
    if (atomic_load(&disk->commit.stopped)) { /* and what is in memory may have been taken back */
        hf__journal_end(journal);
        return hf__commit_fail(s, &disk->commit, HF_STOPPED);
    }
    prepared = hf__front_prepare(&disk->front, changes->entries, changes->len);
    if (prepared) {
        hf__changes_number(changes, hf__journal_last(journal) + 1);
        *ticket =
            hf__journal_append(journal, hf_bytes_of(changes->record.ptr, changes->record.len));
        if (*ticket)
            hf__front_apply(&disk->front, changes->entries, changes->len, *ticket);
        else
            hf__front_undo(&disk->front, changes->entries, changes->len);
        changes->len = 0;
    }
    hf__journal_end(journal);
    return *ticket ? HF_OK : hf__fail_nomem(s);
}

/* Nothing was written, as something is lacking that others may give back. */
static enum hf_status fail_for_now(struct hf_scope *s, struct disk *disk, const char *what,
                                   const char *error)
{
    hf__fail(s, HF_IO, "The store in %s cannot %s now: %s", disk->home.path, what, error);
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

/* Too much is in memory, and an attempt to write it as a table has failed. With stall_lock held. */
static enum hf_status fail_stalled(struct hf_scope *s, struct disk *disk, enum tables_end end)
{
    if (end == TABLES_NO_ROOM)
        return hf__fail(s, HF_NO_SPACE,
                        "The disk of the store in %s has no room for a table of what is in memory",
                        disk->home.path);
    if (end == TABLES_NO_MEMORY)
        return hf__fail_nomem(s);
    if (end == TABLES_LACK)
        return fail_for_now(s, disk, "write a table of what is in memory", disk->lack);
    return hf__commit_fail(s, &disk->commit, HF_STOPPED);
}

static bool is_overfull(struct disk *disk)
{
    size_t active = hf__front_active_bytes(&disk->front);

    return active > disk->map_bytes &&
           (active > 2 * disk->map_bytes || hf__front_is_frozen(&disk->front));
}

/* The active map is full: wait until the frozen one is written, or until it is frozen itself if it
 * has got too large. Only attempts that end from now on say that this cannot be. */
static enum hf_status stall(struct hf_scope *s, struct disk *disk)
{
    enum hf_status status = HF_OK;
    uint64_t before;

    pthread_mutex_lock(&disk->stall_lock);
    before = disk->attempts;
    while (status == HF_OK && is_overfull(disk)) {
        if (atomic_load(&disk->commit.stopped))
            status = fail_stalled(s, disk, TABLES_FAILED);
        else if (disk->attempts > before && disk->tables_end != TABLES_WRITTEN)
            status = fail_stalled(s, disk, disk->tables_end);
        else
            status = hf__scope_alive(s);
        if (status == HF_OK)
            steady_wait_ms(&disk->settled, &disk->stall_lock, STALL_MS);
    }
    pthread_mutex_unlock(&disk->stall_lock);
    return status;
}

static enum hf_status write_changes(struct hf_scope *s, struct disk *disk,
                                    const struct store_batch *batch, struct changes *changes,
                                    uint64_t *ticket)
{
    TRY(add_batch(changes, disk, batch));
    if (changes->len == 0) { /* nothing to log: what tables would have would be nothing */
        *ticket = hf__journal_last(disk->commit.journal);
        return HF_OK;
    }
    TRY(hf__changes_end(changes));
    if (!batch->opens)
        TRY(hf__disk_check_room(s, disk, changes->record.len, batch->frees));
    hf__kill_point("before_write");
    TRY(log_and_apply(s, disk, changes, ticket));
    hf__kill_point("after_write");
    return HF_OK;
}

static enum hf_status disk_write(struct hf_scope *s, struct hf__store *store,
                                 const struct store_batch *batch, uint64_t *ticket)
{
    struct disk *disk = disk_of(store);
    struct hf__mark mark = hf__scope_mark(s);
    struct changes changes;
    enum hf_status status;
    bool full = hf__front_active_bytes(&disk->front) > disk->map_bytes;

    if (disk->options.read_only)
        return hf__fail(s, HF_DENIED, "The database was opened read-only: this write is refused");
    if (atomic_load(&disk->commit.stopped))
        return hf__commit_fail(s, &disk->commit, HF_STOPPED);
    if (full) {
        hf__commit_want_tables(&disk->commit);
        TRY(stall(s, disk));
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
    return hf__commit_wait(s, &disk_of(store)->commit, ticket);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* What tables say that have every change up to `last`. While the journal is read nobody else is
 * there. */
static struct tables_mark mark_now(struct disk *disk, uint64_t last)
{
    struct journal *journal = disk->commit.journal;

    return (struct tables_mark){
        .last = last,
        .id = disk->home.id,
        .durable = journal ? atomic_load(&disk->commit.durable) : disk->home.marks.durable,
        .segment = journal ? hf__journal_number(journal) : disk->home.marks.segment,
    };
}

static void note_lack(struct disk *disk, const char *error)
{
    pthread_mutex_lock(&disk->stall_lock);
    snprintf(disk->lack, sizeof(disk->lack), "%s", error);
    pthread_mutex_unlock(&disk->stall_lock);
    hf__env_log(&disk->base.env, HF_LOG_WARNING,
                "store %s: a table cannot be written for now, and will be: %s", disk->home.path,
                error);
}

static enum tables_end write_frozen(struct disk *disk, uint64_t *upto)
{
    char error[TABLES_ERROR_MAX];
    const struct map_node *root;
    struct tables_mark mark;
    enum hf_status status;
    uint64_t last;

    if (!hf__front_frozen(&disk->front, &root, &last))
        return TABLES_WRITTEN;
    if (!hf__disk_has_room_for_table(disk))
        return TABLES_NO_ROOM;
    if (hf__tables_lacks(disk->tables) && !hf__front_reopen(&disk->front, disk->tables))
        return TABLES_LACK;
    mark = mark_now(disk, last);
    status = hf__tables_add(disk->tables, root, &mark, error);
    if (status == HF_LIMIT) {
        note_lack(disk, error);
        return TABLES_LACK;
    }
    if (status == HF_NOMEM || status == HF_CANCELED)
        return TABLES_NO_MEMORY;
    if (status != HF_OK) {
        hf__commit_stop(&disk->commit, "writing a table", error); /* the journal has it all */
        return TABLES_FAILED;
    }
    *upto = last;
    hf__front_settle(&disk->front, hf__tables_newest(disk->tables));
    return TABLES_WRITTEN;
}

/* What an attempt before this one had frozen comes first. */
static enum tables_end write_all(struct disk *disk, uint64_t *upto)
{
    enum tables_end end;
    bool frozen;

    if (hf__disk_can_free(disk, 0))
        (void)hf__tables_awake(disk->tables); /* or with the next one */
    end = write_frozen(disk, upto);
    if (end != TABLES_WRITTEN)
        return end;
    if (disk->commit.journal)
        hf__journal_begin(disk->commit.journal);
    frozen = hf__front_freeze(&disk->front);
    if (disk->commit.journal)
        hf__journal_end(disk->commit.journal);
    return frozen ? write_frozen(disk, upto) : TABLES_NO_MEMORY;
}

/* Have everything that was written so far in tables, if there is room for them. */
static bool write_tables(void *user, uint64_t *upto)
{
    struct disk *disk = user;
    enum tables_end end = write_all(disk, upto);

    pthread_mutex_lock(&disk->stall_lock);
    disk->attempts++;
    disk->tables_end = end;
    pthread_cond_broadcast(&disk->settled);
    pthread_mutex_unlock(&disk->stall_lock);
    return end == TABLES_WRITTEN;
}

/* The disk is full, and what was deleted is still there: have it gone, when tables know of it. */
static void make_room(struct disk *disk)
{
    if (!hf__disk_can_free(disk, 0) || !atomic_load(&disk->freed))
        return;
    if (hf__front_bytes(&disk->front) > 0) {
        hf__commit_want_tables(&disk->commit);
        return;
    }
    atomic_store(&disk->freed, false);
    hf__tables_compact(disk->tables);
}

/* A compaction needs room. */
static bool tidy(void *user)
{
    struct disk *disk = user;
    uint64_t have, need;

    if (hf__disk_can_free(disk, 0) && !hf__tables_awake(disk->tables))
        return false;
    if (hf__disk_has_room(disk, 0, &have, &need))
        return hf__tables_tidy(disk->tables);
    make_room(disk);
    return false;
}

/* A store of an older format: its tables get a mark, and have what is in its journal. */
static enum hf_status settle(struct hf_scope *s, void *user, uint64_t last)
{
    struct disk *disk = user;
    const struct tables_mark mark = mark_now(disk, last);
    char error[TABLES_ERROR_MAX] = "";
    uint64_t upto = 0;

    if (!write_tables(disk, &upto))
        return fail_stalled(s, disk, disk->tables_end);
    if (upto == last || !disk->home.has_database)
        return HF_OK;
    if (hf__tables_add(disk->tables, NULL, &mark, error) != HF_OK)
        return hf__fail(s, HF_IO, "The store in %s cannot be brought to format %d: %s",
                        disk->home.path, HOME_FORMAT, error);
    hf__front_settle(&disk->front, hf__tables_newest(disk->tables));
    return HF_OK;
}

/* ---- replaying ------------------------------------------------------------------------------ */

/* Changes of the journal go to the maps of `front`, if they are not behind `upto`. */
struct replaying {
    struct disk *disk;
    struct front *front;
    uint64_t upto;
};

static enum hf_status replay_changes(struct hf_scope *s, const struct replaying *to,
                                     struct changes *changes, struct hf_bytes record)
{
    struct disk *disk = to->disk;
    uint64_t number = 0, upto = 0;
    bool good;

    TRY(hf__changes_read(changes, record, &number, &good));
    if (!good)
        return hf__fail(s, HF_CORRUPT,
                        "A record of the journal of the store in %s is not one: change %llu",
                        disk->home.path, (unsigned long long)number);
    if (number > to->upto) {
        hf__changes_drop(changes);
        return HF_OK;
    }
    if (!hf__front_prepare(to->front, changes->entries, changes->len))
        return hf__fail_nomem(s);
    hf__front_apply(to->front, changes->entries, changes->len, number);
    changes->len = 0;
    if (to->front != &disk->front || disk->options.read_only ||
        hf__front_active_bytes(to->front) <= disk->map_bytes)
        return HF_OK;
    if (!write_tables(disk, &upto) && disk->tables_end != TABLES_NO_ROOM)
        return fail_stalled(s, disk, disk->tables_end);
    hf__marks_based(&disk->home, upto);
    return HF_OK;
}

static enum hf_status replay_to(struct hf_scope *s, void *user, struct hf_bytes record)
{
    const struct replaying *to = user;
    struct hf__mark mark = hf__scope_mark(s);
    struct changes changes;
    enum hf_status status;

    hf__changes_init(&changes, s, &to->disk->base.env);
    status = replay_changes(s, to, &changes, record);
    if (status != HF_OK)
        hf__changes_drop(&changes);
    else
        hf__scope_rewind(s, mark);
    return status;
}

static enum hf_status replay(struct hf_scope *s, void *user, struct hf_bytes record)
{
    struct disk *disk = user;
    struct replaying to = {.disk = disk, .front = &disk->front, .upto = UINT64_MAX};

    return replay_to(s, &to, record);
}

/* ---- after a stop --------------------------------------------------------------------------- */

/*
 * What is in memory has changes that a crash may take back, as nobody can make them durable any
 * more; consistent reads would have to fail for ever. So memory is filled again, from tables and
 * from what the journal is known to have, as an open would do it. Who waits for one of the others
 * has got its error, which says that it may have happened.
 */
static enum hf_status take_back(struct hf_scope *s, struct disk *disk)
{
    struct front fresh = {.env = NULL};
    struct replaying to = {.disk = disk, .front = &fresh, .upto = disk_durable(&disk->base)};
    struct tables_mark mark;
    enum hf_status status;

    TRY(hf__tables_mark(s, disk->tables, &mark));
    status = hf__front_open(s, &fresh, &disk->base.env, hf__tables_newest(disk->tables));
    if (status == HF_OK && to.upto > mark.last)
        status = hf__journal_replay(s, disk->commit.journal, mark.last, to.upto, replay_to, &to);
    if (status != HF_OK) {
        hf__front_close(&fresh);
        return status;
    }
    hf__journal_begin(disk->commit.journal); /* who had begun to append has done it */
    hf__front_replace(&disk->front, &fresh);
    hf__journal_end(disk->commit.journal);
    return HF_OK;
}

static void fall_back(void *user)
{
    struct disk *disk = user;
    struct hf_scope *s = hf_scope_new(&disk->base.env);
    enum hf_status status = s ? take_back(s, disk) : HF_NOMEM;

    if (status == HF_OK)
        atomic_store(&disk->base.settled, true);
    else
        hf__env_log(&disk->base.env, HF_LOG_ERROR,
                    "store %s: consistent reads fail until it is reopened: %s", disk->home.path,
                    s ? hf_scope_error_text(s) : hf_status_text(status));
    hf_scope_free(s);
}

/* ---- care ----------------------------------------------------------------------------------- */

static void disk_stats(struct hf__store *store, struct store_stats *stats)
{
    struct disk *disk = disk_of(store);
    uint64_t have, need = 0;

    /* Writes look at the disk, too, but who asks first whether they are possible may send none. */
    if (!disk->options.read_only)
        hf__disk_has_room(disk, 0, &have, &need);
    pthread_mutex_lock(&disk->commit.lock);
    stats->syncs = disk->commit.syncs;
    stats->sync_waits = disk->commit.waits;
    pthread_mutex_unlock(&disk->commit.lock);
    stats->disk_bytes = hf__home_used_bytes(&disk->home) + hf__journal_bytes(disk->commit.journal);
    stats->memory_bytes = hf__front_bytes(&disk->front) + hf__tables_memory(disk->tables);
    stats->stopped = atomic_load(&disk->commit.stopped);
    stats->no_space = atomic_load(&disk->no_space);
    stats->read_only = disk->options.read_only;
    stats->path = hf_str_from(disk->home.path);
    stats->kept_free = need;
    stats->table_bytes = hf__tables_bytes(disk->tables);
    stats->data_bytes = stats->table_bytes + hf__front_bytes(&disk->front);
}

static enum hf_status disk_verify(struct hf_scope *s, struct hf__store *store,
                                  const struct store_watch *watch)
{
    struct disk *disk = disk_of(store);

    if (!hf__front_check(&disk->front))
        return hf__fail(s, HF_CORRUPT, "What the store in %s has in memory is damaged",
                        disk->home.path);
    return hf__tables_verify(s, disk->tables, watch);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void set_locks(struct disk *disk)
{
    steady_cond_init(&disk->settled);
    pthread_mutex_init(&disk->stall_lock, NULL);
    pthread_mutex_init(&disk->space_lock, NULL);
    disk->commit.env = &disk->base.env;
    disk->commit.home = &disk->home;
    disk->commit.mode = disk->options.sync;
    disk->commit.window_ms = disk->options.window_ms;
    disk->commit.quiet_ms = disk->options.quiet_ms;
    disk->commit.user = disk;
    disk->commit.before_sync = hf__disk_look;
    disk->commit.files_kept = hf__disk_files_kept;
    disk->commit.write_tables = write_tables;
    disk->commit.settle = settle;
    disk->commit.tidy = tidy;
    disk->commit.fall_back = fall_back;
    hf__commit_init(&disk->commit);
}

/* Make everything durable: in tables, so that the next open has nothing to replay and the journal
 * need not be synced, or else in the journal. True: it is in tables. */
static bool finish(struct disk *disk)
{
    uint64_t upto;
    bool clean;

    if (disk->tables)
        hf__tables_hurry(disk->tables);
    hf__commit_rest(&disk->commit);
    if (!atomic_load(&disk->opened) || atomic_load(&disk->commit.stopped))
        return false;
    hf__kill_point("before_close_flush");
    /* Tables that could not be opened again may lack something: the next open has to ask them. */
    clean = write_tables(disk, &upto) && !hf__tables_lacks(disk->tables);
    if (!clean)
        hf__commit_finish(&disk->commit);
    hf__kill_point("after_close_flush");
    return clean;
}

static void disk_close(struct hf__store *store)
{
    struct disk *disk = disk_of(store);
    struct hf_env env = store->env;
    bool clean = finish(disk);

    hf__front_close(&disk->front);
    hf__tables_close(disk->tables);
    if (clean) /* what is noted of the manifest is all there is, when the tables are closed */
        hf__commit_clean(&disk->commit);
    hf__kill_point("after_clean_note");
    hf__commit_close(&disk->commit);
    hf__home_close(&disk->home);
    pthread_mutex_destroy(&disk->space_lock);
    pthread_mutex_destroy(&disk->stall_lock);
    pthread_cond_destroy(&disk->settled);
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
};

static struct tables_options tables_options(struct disk *disk)
{
    return (struct tables_options){.env = &disk->base.env,
                                   .path = disk->home.path,
                                   .db_path = disk->home.db_path,
                                   .table_bytes = disk->map_bytes,
                                   .cache_bytes = disk->options.cache_bytes,
                                   .missing = !disk->home.has_database,
                                   .read_only = disk->options.read_only,
                                   .resting = atomic_load(&disk->no_space),
                                   .no_verify = disk->options.no_verify,
                                   .compress = disk->options.compress};
}

static struct journal_marks journal_marks(struct disk *disk)
{
    const struct home_marks *marks = &disk->home.marks;

    return (struct journal_marks){.fresh = disk->home.fresh || disk->home.format == 1,
                                  .old_form = disk->home.format == 2,
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
    return hf__front_open(s, &disk->front, &disk->base.env, hf__tables_newest(disk->tables));
}

static enum hf_status open_log(struct hf_scope *s, struct disk *disk)
{
    const struct journal_options options = {.env = &disk->base.env,
                                            .path = disk->home.journal_path,
                                            .segment_bytes = disk_segment_bytes(disk),
                                            .syncs = disk_is_synced(disk),
                                            .read_only = disk->options.read_only};
    const struct journal_marks marks = journal_marks(disk);

    return hf__commit_open(s, &disk->commit, &options, &marks, replay);
}

/* The parts are of one store and of one time, and nothing is missing. Nothing is changed: RocksDB
 * has not been asked yet, or only to look. */
static enum hf_status check_parts(struct hf_scope *s, struct disk *disk)
{
    const struct tables_options options = tables_options(disk);
    struct journal_marks marks;
    struct tables_mark mark;
    bool noted;

    TRY(hf__marks_open(s, &disk->home));
    if (disk->home.fresh)
        return HF_OK;
    TRY(hf__manifest_check(s, &disk->home, &noted));
    if (disk->home.has_database && !noted) {
        TRY(hf__tables_look(s, &options, &mark));
        TRY(hf__marks_compare(s, &disk->home, &mark));
    }
    if (disk->home.format == 1)
        return HF_OK;
    marks = journal_marks(disk);
    return hf__journal_check(s, &disk->base.env, disk->home.journal_path, &marks);
}

/* As after a crash, but that everything stays as it is: what tables have not is in memory, all of
 * it. So there are neither threads nor anything to be done at a close. */
static enum hf_status open_to_read(struct hf_scope *s, struct disk *disk)
{
    TRY(check_parts(s, disk));
    TRY(open_tables(s, disk));
    return open_log(s, disk);
}

static enum hf_status open_inside(struct hf_scope *s, struct disk *disk)
{
    uint64_t have, need;

    TRY(check_parts(s, disk));
    /* The ballast of the last run, if it is there, is not owed again. */
    hf__home_fill_ballast(&disk->home);
    if (!hf__disk_has_room(disk, 0, &have, &need)) {
        have = hf__home_free_bytes(&disk->home); /* with the ballast */
        need = disk->options.reserve_bytes && disk->options.reserve_bytes < OPEN_BYTES
                   ? disk->options.reserve_bytes
                   : OPEN_BYTES;
        if (have < need)
            return hf__fail(s, HF_NO_SPACE,
                            "The disk of the store in %s has %llu bytes free; opening needs %llu: "
                            "free some, set a smaller reserve (reserve_bytes, --reserve), or open "
                            "it to be read (read_only, --read-only)",
                            disk->home.path, (unsigned long long)have, (unsigned long long)need);
    }
    TRY(open_tables(s, disk));
    TRY(open_log(s, disk));
    TRY(hf__home_seal(s, &disk->home));
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

enum hf_status hf__store_open_rocksdb(struct hf_scope *s, const struct hf_env *env,
                                      struct hf_str path, const struct store_options *options,
                                      struct hf__store **store)
{
    struct hf_env whole = hf__env_fill(env);
    struct disk *disk = hf__env_alloc(&whole, sizeof(*disk));
    enum hf_status status;

    *store = NULL;
    if (!disk)
        return hf__fail_nomem(s);
    memset(disk, 0, sizeof(*disk));
    disk->base = (struct hf__store){.kind = &disk_kind, .env = whole};
    disk->options = whole_options(options);
    disk->map_bytes = disk->options.memtable_bytes / MAPS;
    status = hf__home_open(s, &disk->base.env, path, disk->options.read_only,
                           disk->options.no_create, &disk->home);
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
