/*
 * store/store_rocksdb.c: a store on disk, in RocksDB. No other file knows it; its error strings
 * become statuses here. The directory around the database is home.c's.
 *
 * Every batch goes to our own journal first, see journal.h, and then to RocksDB's memtable, whose
 * own log is off. Tickets are the journal's numbers of changes. When a ticket is safe is commit.c's
 * business; it has us write tables when files of the journal are to go.
 *
 * Space. RocksDB on a full disk is at best stopped, and this build may abort the process, so it
 * must never find out. Before a write we ask the file system for its free space, every CHECK_BYTES
 * of writes and once per sync, and refuse below a reserve. The reserve is what RocksDB may write on
 * its own account after the last write that we let through:
 *
 *     the memtables, which are flushed                        memtable_bytes, or as large as they
 *                                                             are
 *     a compaction, which writes its output before            the tables there are, at most
 *     it drops its input                                      COMPACTION_BUFFERS write buffers
 *     logs and manifests, and writes between two checks       RESERVE_SLACK
 *
 * A batch that is larger than a write buffer becomes a memtable, and then a table, of its own size.
 * It is let through only if there is room for it in the journal, in a table, and in a compaction.
 *
 * Below it the ballast is given back as well, and counted as owed: writes go on when there is room
 * for the reserve and the ballast. Another process can still fill the disk between a check and a
 * write; the reserve is there for that too.
 *
 * Ranges are deleted key by key. RocksDB could do it with one entry, but its iterators, as long as
 * they look for such entries, forget the error when the first block of a table file is damaged, and
 * go on without the rest of that level (7.8; rocksdb pull request 11783). So no such entry is ever
 * written, and iterators are told not to look.
 *
 * RocksDB writes tables when it likes to, and so may have changes in them that the journal has lost
 * or never had on disk. Replaying older ones over those would mix two states. So every batch also
 * puts its number under the empty key, which is ours: tables say themselves how far they go.
 *
 * What always holds:
 *
 *  (1) A batch is in the journal before it is in RocksDB, and both have them in the same order.
 *  (2) What RocksDB does not have in tables is in the journal, and is replayed at the next open.
 *      What it has in tables is not.
 *  (3) Nobody sees the empty key.
 */
#include "store/commit.h"
#include "store/home.h"
#include "store/private.h"

#include "base/kill.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include <rocksdb/c.h>

enum {
    KIB = 1024,
    MIB = 1024 * KIB,
    BLOCK_BYTES = 4 * KIB, /* measured: a get verifies its block, 2 us less than with 16 KiB */
    BLOOM_BITS = 10,
    WINDOW_MS = 100,
    MEMTABLE_BYTES = 32 * MIB,
    MEMTABLE_BYTES_MIN = 256 * KIB,
    CACHE_BYTES = 8 * MIB,
    WRITE_BUFFERS = 2,  /* one is filled while the other is flushed */
    LEVEL0_COMPACT = 4, /* files in level 0 that start a compaction, */
    LEVEL0_SLOW = 16,   /* that slow writers down, */
    LEVEL0_STOP = 24,   /* and that stop them */
    LEVEL1_BUFFERS = 4, /* size of level 1, in write buffers */
    COMPACTION_BUFFERS = LEVEL0_STOP + LEVEL1_BUFFERS,
    OPEN_FILES = 512,
    BACKGROUND_JOBS = 2,
    LOG_FILES = 2,
    LOG_LEVEL = 4, /* fatal */
    RESERVE_SLACK = 16 * MIB,
    CHECK_BYTES = 256 * KIB, /* written between two looks at the free space */
    ITERS_KEPT = 32,
    BATCHES_KEPT = 32,
    BATCH_KEPT_BYTES = 256 * KIB, /* a larger batch is not kept */
    NUMBER_BYTES = 8,             /* of a change, under the empty key */
    MEMTABLE_BLOOM = 20           /* one byte of memtable in so many is its bloom filter */
};

struct rocks_iter {
    struct hf__store_iter base;
    struct rocks_iter *next;        /* in the list of spare ones */
    rocksdb_readoptions_t *options; /* points into bounds */
    rocksdb_iterator_t *it;
    struct hf__buf bounds; /* lower, upper */
    size_t lower_len;
    bool reverse;
    bool started;
    bool ended;
};

struct rocks_snapshot {
    const rocksdb_snapshot_t *snapshot;
    rocksdb_readoptions_t *options;
};

struct rocks {
    struct hf__store base;
    struct store_options options;
    struct home home; /* its ballast is guarded by space_lock */
    rocksdb_t *db;
    rocksdb_options_t *db_options;
    rocksdb_cache_t *cache;
    rocksdb_readoptions_t *read_options;
    rocksdb_writeoptions_t *write_options;

    struct commit commit;
    bool opened; /* all checks passed: a close may write */

    pthread_mutex_t space_lock;     /* held over looks at the disk, which writers may wait for */
    atomic_uint_fast64_t unchecked; /* bytes written since the last look */
    atomic_bool no_space;
    atomic_uint_fast64_t largest; /* bytes of the largest batch, if it was above a write buffer */

    pthread_mutex_t iters_lock; /* guards the next two */
    struct rocks_iter *iters;   /* spare ones */
    int iters_len;

    pthread_mutex_t batches_lock;                /* guards the next two */
    rocksdb_writebatch_t *batches[BATCHES_KEPT]; /* spare ones, with the memory they grew */
    int batches_len;
};

static struct rocks *rocks_of(struct hf__store *store)
{
    return (struct rocks *)store;
}

/*
 * RocksDB counts every comparison of keys in counters of the calling thread, which nobody here
 * reads and which cost more than the comparison. The switch belongs to the thread as well, so it
 * is turned at every door through which a thread comes in.
 */
static void count_nothing(void)
{
    rocksdb_set_perf_level(rocksdb_disable);
}

/* ---- errors --------------------------------------------------------------------------------- */

static enum hf_status status_of(const char *error)
{
    if (strstr(error, "/LOCK") && strstr(error, "lock"))
        return HF_LOCKED;
    if (strstr(error, "No space left"))
        return HF_NO_SPACE;
    if (strncmp(error, "Corruption", 10) == 0 || strstr(error, "No such file") ||
        strstr(error, "does not exist"))
        return HF_CORRUPT;
    return HF_IO;
}

/* Turn an error of a read into the scope's, and free it. */
static enum hf_status read_failed(struct hf_scope *s, struct rocks *rocks, char *error)
{
    enum hf_status status = status_of(error);

    hf__fail(s, status, "Reading the store in %s failed: %s", rocks->home.path, error);
    rocksdb_free(error);
    return status;
}

static enum hf_status may_have_happened(struct hf_scope *s, enum hf_status status)
{
    hf__scope_error_edit(s)->may_have_happened = true;
    return status;
}

/* ---- space ---------------------------------------------------------------------------------- */

static uint64_t reserve_bytes(struct rocks *rocks)
{
    uint64_t compaction = (uint64_t)COMPACTION_BUFFERS * (rocks->options.memtable_bytes / 2) +
                          2 * atomic_load(&rocks->largest);
    uint64_t memtables = 0;
    uint64_t tables = 0;

    if (rocks->options.reserve_bytes)
        return rocks->options.reserve_bytes;
    if (rocks->db) {
        rocksdb_property_int(rocks->db, "rocksdb.live-sst-files-size", &tables);
        rocksdb_property_int(rocks->db, "rocksdb.cur-size-all-mem-tables", &memtables);
    } else { /* an open: logs are replayed into tables, and compactions start at once */
        tables = hf__home_used_bytes(&rocks->home);
    }
    if (memtables < rocks->options.memtable_bytes)
        memtables = rocks->options.memtable_bytes;
    return memtables + RESERVE_SLACK + (tables < compaction ? tables : compaction);
}

/* What a batch of that size takes, now and when it is flushed and compacted. */
static uint64_t batch_room(const struct rocks *rocks, uint64_t bytes)
{
    return bytes <= rocks->options.memtable_bytes / 2 ? bytes : 3 * bytes;
}

/* Look at the disk: is there room for `bytes` more? Moves the ballast and sets no_space. */
static bool has_room(struct rocks *rocks, uint64_t bytes, uint64_t *have, uint64_t *need)
{
    bool room;

    pthread_mutex_lock(&rocks->space_lock);
    atomic_store_explicit(&rocks->unchecked, 0, memory_order_relaxed);
    *have = hf__home_free_bytes(&rocks->home);
    *need = reserve_bytes(rocks) + bytes + (rocks->home.ballast_full ? 0 : HOME_BALLAST_BYTES);
    room = *have >= *need;
    if (!room && rocks->home.ballast_full)
        hf__home_drop_ballast(&rocks->home);
    if (room && !rocks->home.ballast_full)
        hf__home_fill_ballast(&rocks->home);
    if (room == atomic_load(&rocks->no_space))
        hf__env_log(&rocks->base.env, HF_LOG_WARNING, "store %s: %s (%llu bytes are free)",
                    rocks->home.path, room ? "there is room again" : "too little space",
                    (unsigned long long)*have);
    atomic_store(&rocks->no_space, !room);
    pthread_mutex_unlock(&rocks->space_lock);
    return room;
}

static enum hf_status check_room(struct hf_scope *s, struct rocks *rocks, uint64_t bytes)
{
    uint64_t before = atomic_fetch_add_explicit(&rocks->unchecked, bytes, memory_order_relaxed);
    uint64_t have, need;

    if (before + bytes < CHECK_BYTES && !atomic_load(&rocks->no_space))
        return HF_OK;
    if (has_room(rocks, batch_room(rocks, bytes), &have, &need)) {
        if (bytes > rocks->options.memtable_bytes / 2 && bytes > atomic_load(&rocks->largest))
            atomic_store(&rocks->largest, bytes);
        return HF_OK;
    }
    return hf__fail(s, HF_NO_SPACE,
                    "The disk of the store in %s has %llu bytes free; writing needs %llu",
                    rocks->home.path, (unsigned long long)have, (unsigned long long)need);
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status rocks_get(struct hf_scope *s, struct hf__store *store,
                                const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                                struct hf_bytes *value)
{
    struct rocks *rocks = rocks_of(store);
    const rocksdb_readoptions_t *options =
        snapshot ? ((const struct rocks_snapshot *)snapshot)->options : rocks->read_options;
    rocksdb_pinnableslice_t *pinned;
    char *error = NULL;
    const char *from;
    uint8_t *to;
    size_t len;

    count_nothing();
    pinned = rocksdb_get_pinned(rocks->db, options, (const char *)key.ptr, key.len, &error);
    if (error)
        return read_failed(s, rocks, error);
    if (!pinned)
        return HF_OK;
    from = rocksdb_pinnableslice_value(pinned, &len);
    to = hf_scope_alloc(s, len);
    if (to && len)
        memcpy(to, from, len);
    rocksdb_pinnableslice_destroy(pinned);
    if (!to)
        return hf__fail_nomem(s);
    *value = hf_bytes_of(to, len);
    return HF_OK;
}

static rocksdb_readoptions_t *new_read_options(const struct rocks *rocks)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();

    rocksdb_readoptions_set_verify_checksums(options, !rocks->options.no_verify);
    rocksdb_readoptions_set_ignore_range_deletions(options, 1);
    return options;
}

static enum hf_status rocks_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                          struct hf__store_snapshot **snapshot)
{
    struct rocks *rocks = rocks_of(store);
    struct rocks_snapshot *mine = hf__env_alloc(&store->env, sizeof(*mine));

    if (!mine)
        return hf__fail_nomem(s);
    mine->snapshot = rocksdb_create_snapshot(rocks->db);
    mine->options = new_read_options(rocks);
    rocksdb_readoptions_set_snapshot(mine->options, mine->snapshot);
    *snapshot = (struct hf__store_snapshot *)mine;
    return HF_OK;
}

static void rocks_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    struct rocks_snapshot *mine = (struct rocks_snapshot *)snapshot;

    rocksdb_readoptions_destroy(mine->options);
    rocksdb_release_snapshot(rocks_of(store)->db, mine->snapshot);
    hf__env_free(&store->env, mine, sizeof(*mine));
}

/* ---- iterators ------------------------------------------------------------------------------ */

static void iter_free(struct rocks *rocks, struct rocks_iter *iter)
{
    rocksdb_readoptions_destroy(iter->options);
    hf__buf_free(&iter->bounds);
    hf__env_free(&rocks->base.env, iter, sizeof(*iter));
}

/* A spare iterator, or a new one. */
static struct rocks_iter *iter_take(struct rocks *rocks)
{
    struct rocks_iter *iter;

    pthread_mutex_lock(&rocks->iters_lock);
    iter = rocks->iters;
    if (iter) {
        rocks->iters = iter->next;
        rocks->iters_len--;
    }
    pthread_mutex_unlock(&rocks->iters_lock);
    if (iter)
        return iter;
    iter = hf__env_alloc(&rocks->base.env, sizeof(*iter));
    if (!iter)
        return NULL;
    *iter = (struct rocks_iter){.base = {.store = &rocks->base},
                                .options = new_read_options(rocks),
                                .bounds = {.env = &rocks->base.env}};
    return iter;
}

static void iter_give(struct rocks *rocks, struct rocks_iter *iter)
{
    bool keep;

    pthread_mutex_lock(&rocks->iters_lock);
    keep = rocks->iters_len < ITERS_KEPT;
    if (keep) {
        iter->next = rocks->iters;
        rocks->iters = iter;
        rocks->iters_len++;
    }
    pthread_mutex_unlock(&rocks->iters_lock);
    if (!keep)
        iter_free(rocks, iter);
}

/* RocksDB keeps pointers to the bounds, so they are copied to where they stay. The lowest key that
 * is not empty is a zero byte. */
static bool iter_bound(struct rocks_iter *iter, const struct store_range *range)
{
    const struct hf_bytes lower = range->lower.len ? range->lower : hf_bytes_of("", 1);
    const char *bytes;

    iter->bounds.len = 0;
    hf__buf_put(&iter->bounds, lower.ptr, lower.len);
    hf__buf_put(&iter->bounds, range->upper.ptr, range->upper.len);
    if (iter->bounds.failed) {
        hf__buf_free(&iter->bounds);
        return false;
    }
    bytes = (const char *)iter->bounds.ptr;
    iter->lower_len = lower.len;
    rocksdb_readoptions_set_iterate_lower_bound(iter->options, bytes, lower.len);
    rocksdb_readoptions_set_iterate_upper_bound(iter->options,
                                                range->upper.len ? bytes + lower.len : NULL,
                                                range->upper.len);
    return true;
}

static enum hf_status rocks_iter_open(struct hf_scope *s, struct hf__store *store,
                                      const struct hf__store_snapshot *snapshot,
                                      const struct store_range *range, struct hf__store_iter **iter)
{
    struct rocks *rocks = rocks_of(store);
    struct rocks_iter *mine = iter_take(rocks);

    if (!mine)
        return hf__fail_nomem(s);
    count_nothing();
    if (!iter_bound(mine, range)) {
        iter_give(rocks, mine);
        return hf__fail_nomem(s);
    }
    mine->reverse = range->reverse;
    mine->started = false;
    /* RocksDB asserts that bounds are in order. */
    mine->ended = range->upper.len && bytes_compare(mine->bounds.ptr, mine->lower_len,
                                                    range->upper.ptr, range->upper.len) >= 0;
    mine->it = NULL;
    if (!mine->ended) {
        rocksdb_readoptions_set_fill_cache(mine->options, range->fill_cache);
        rocksdb_readoptions_set_snapshot(
            mine->options, snapshot ? ((const struct rocks_snapshot *)snapshot)->snapshot : NULL);
        mine->it = rocksdb_create_iterator(rocks->db, mine->options);
    }
    *iter = &mine->base;
    return HF_OK;
}

static void iter_step(struct rocks_iter *iter)
{
    if (iter->started && iter->reverse)
        rocksdb_iter_prev(iter->it);
    else if (iter->started)
        rocksdb_iter_next(iter->it);
    else if (iter->reverse)
        rocksdb_iter_seek_to_last(iter->it);
    else
        rocksdb_iter_seek(iter->it, (const char *)iter->bounds.ptr, iter->lower_len);
    iter->started = true;
}

static enum hf_status rocks_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                      struct hf_bytes *key, struct hf_bytes *value)
{
    struct rocks_iter *mine = (struct rocks_iter *)iter;
    char *error = NULL;
    const char *ptr;
    size_t len;

    if (mine->ended)
        return HF_OK;
    iter_step(mine);
    if (!rocksdb_iter_valid(mine->it)) {
        mine->ended = true;
        rocksdb_iter_get_error(mine->it, &error);
        return error ? read_failed(s, rocks_of(iter->store), error) : HF_OK;
    }
    ptr = rocksdb_iter_key(mine->it, &len);
    *key = hf_bytes_of(ptr, len);
    ptr = rocksdb_iter_value(mine->it, &len);
    *value = hf_bytes_of(ptr, len);
    *found = true;
    return HF_OK;
}

static void rocks_iter_close(struct hf__store_iter *iter)
{
    struct rocks_iter *mine = (struct rocks_iter *)iter;

    if (mine->it)
        rocksdb_iter_destroy(mine->it);
    iter_give(rocks_of(iter->store), mine);
}

/* ---- writing -------------------------------------------------------------------------------- */

static uint64_t rocks_written(struct hf__store *store)
{
    return hf__journal_last(rocks_of(store)->commit.journal);
}

static uint64_t rocks_durable(struct hf__store *store)
{
    return atomic_load(&rocks_of(store)->commit.safe);
}

/* A batch that grew to the size of a write once does not have to grow again. */
static rocksdb_writebatch_t *batch_take(struct rocks *rocks)
{
    rocksdb_writebatch_t *batch = NULL;

    pthread_mutex_lock(&rocks->batches_lock);
    if (rocks->batches_len)
        batch = rocks->batches[--rocks->batches_len];
    pthread_mutex_unlock(&rocks->batches_lock);
    return batch ? batch : rocksdb_writebatch_create();
}

static void batch_give(struct rocks *rocks, rocksdb_writebatch_t *batch, size_t bytes)
{
    rocksdb_writebatch_clear(batch);
    pthread_mutex_lock(&rocks->batches_lock);
    if (bytes <= BATCH_KEPT_BYTES && rocks->batches_len < BATCHES_KEPT) {
        rocks->batches[rocks->batches_len++] = batch;
        batch = NULL;
    }
    pthread_mutex_unlock(&rocks->batches_lock);
    if (batch)
        rocksdb_writebatch_destroy(batch);
}

static bool in_range(struct hf_bytes key, const struct batch_op *range)
{
    return bytes_compare(key.ptr, key.len, range->key.ptr, range->key.len) >= 0 &&
           bytes_compare(key.ptr, key.len, range->value.ptr, range->value.len) < 0;
}

/* Delete what the database has in the range, and what the batch put there before `end`. */
static enum hf_status translate_range(struct hf_scope *s, struct rocks *rocks,
                                      const struct store_batch *batch, size_t end,
                                      const struct batch_op *range, rocksdb_writebatch_t *out)
{
    const struct store_range keys = {.lower = range->key, .upper = range->value};
    struct hf__store_iter *iter;
    enum hf_status status;
    bool found = true;

    if (!range->value.len)
        return HF_OK;
    for (size_t at = 0; at < end;) {
        struct batch_op op;

        hf__batch_next(batch, &at, &op);
        if (op.kind == BATCH_PUT && in_range(op.key, range))
            rocksdb_writebatch_delete(out, (const char *)op.key.ptr, op.key.len);
    }
    TRY(rocks_iter_open(s, &rocks->base, NULL, &keys, &iter));
    do {
        struct hf_bytes key, value;

        found = false;
        status = rocks_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            rocksdb_writebatch_delete(out, (const char *)key.ptr, key.len);
    } while (status == HF_OK && found);
    rocks_iter_close(iter);
    return status;
}

static enum hf_status translate(struct hf_scope *s, struct rocks *rocks,
                                const struct store_batch *batch, rocksdb_writebatch_t *out)
{
    enum hf_status status = HF_OK;
    struct batch_op op;
    size_t begin = 0;

    for (size_t at = 0; status == HF_OK && hf__batch_next(batch, &at, &op); begin = at) {
        const char *key = (const char *)op.key.ptr;

        if (op.kind == BATCH_PUT)
            rocksdb_writebatch_put(out, key, op.key.len, (const char *)op.value.ptr, op.value.len);
        else if (op.kind == BATCH_DELETE)
            rocksdb_writebatch_delete(out, key, op.key.len);
        else
            status = translate_range(s, rocks, batch, begin, &op, out);
    }
    return status;
}

/* Log it and apply it, with nobody in between: both have their batches in one order. */
static enum hf_status log_and_apply(struct hf_scope *s, struct rocks *rocks,
                                    rocksdb_writebatch_t *changes, uint64_t *ticket)
{
    struct journal *journal = rocks->commit.journal;
    char number[NUMBER_BYTES];
    char *error = NULL;
    const char *bytes;
    size_t size;

    hf__journal_begin(journal);
    store_u64be((uint8_t *)number, hf__journal_last(journal) + 1);
    rocksdb_writebatch_put(changes, "", 0, number, sizeof(number));
    bytes = rocksdb_writebatch_data(changes, &size);
    *ticket = hf__journal_append(journal, hf_bytes_of(bytes, size));
    if (*ticket)
        rocksdb_write(rocks->db, rocks->write_options, changes, &error);
    hf__journal_end(journal);
    if (!*ticket)
        return hf__fail_nomem(s);
    if (error) {
        hf__commit_stop(&rocks->commit, "a write", error);
        rocksdb_free(error);
        return may_have_happened(s, hf__commit_fail(s, &rocks->commit, HF_IO));
    }
    return HF_OK;
}

static enum hf_status rocks_write(struct hf_scope *s, struct hf__store *store,
                                  const struct store_batch *batch, uint64_t *ticket)
{
    struct rocks *rocks = rocks_of(store);
    rocksdb_writebatch_t *changes;
    enum hf_status status;
    size_t size;

    if (atomic_load(&rocks->commit.stopped))
        return hf__commit_fail(s, &rocks->commit, HF_STOPPED);
    count_nothing();
    changes = batch_take(rocks);
    status = translate(s, rocks, batch, changes);
    rocksdb_writebatch_data(changes, &size);
    if (status == HF_OK)
        status = check_room(s, rocks, size);
    if (status == HF_OK) {
        hf__kill_point("before_write");
        status = log_and_apply(s, rocks, changes, ticket);
        hf__kill_point("after_write");
    }
    batch_give(rocks, changes, size);
    if (status == HF_OK)
        hf__commit_appended(&rocks->commit);
    return status;
}

static enum hf_status rocks_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    return hf__commit_wait(s, &rocks_of(store)->commit, ticket);
}

static void look_at_space(void *user)
{
    uint64_t have, need;

    has_room(user, 0, &have, &need);
}

/* ---- tables --------------------------------------------------------------------------------- */

/* Have everything that was written so far in tables, if there is room for them. */
static bool write_tables(void *user)
{
    struct rocks *rocks = user;
    rocksdb_flushoptions_t *options;
    char *error = NULL;

    if (hf__home_free_bytes(&rocks->home) < rocks->options.memtable_bytes + RESERVE_SLACK / 2)
        return false;
    options = rocksdb_flushoptions_create();
    rocksdb_flushoptions_set_wait(options, 1);
    rocksdb_flush(rocks->db, options, &error);
    rocksdb_flushoptions_destroy(options);
    if (!error)
        return true;
    hf__env_log(&rocks->base.env, HF_LOG_WARNING, "store %s: writing tables failed: %s",
                rocks->home.path, error); /* the journal has it all */
    rocksdb_free(error);
    return false;
}

static enum hf_status replay(struct hf_scope *s, void *user, struct hf_bytes record)
{
    struct rocks *rocks = user;
    rocksdb_writebatch_t *changes =
        rocksdb_writebatch_create_from((const char *)record.ptr, record.len);
    char *error = NULL;

    rocksdb_write(rocks->db, rocks->write_options, changes, &error);
    rocksdb_writebatch_destroy(changes);
    if (!error)
        return HF_OK;
    hf__fail(s, HF_IO, "Replaying the journal of the store in %s failed: %s", rocks->home.path,
             error);
    rocksdb_free(error);
    return HF_IO;
}

/* ---- care ----------------------------------------------------------------------------------- */

static uint64_t property(struct rocks *rocks, const char *name)
{
    uint64_t value = 0;

    rocksdb_property_int(rocks->db, name, &value);
    return value;
}

static void rocks_stats(struct hf__store *store, struct store_stats *stats)
{
    struct rocks *rocks = rocks_of(store);
    uint64_t have, need;

    /* Writes look at the disk, too, but who asks first whether they are possible may send none. */
    has_room(rocks, 0, &have, &need);
    pthread_mutex_lock(&rocks->commit.lock);
    stats->syncs = rocks->commit.syncs;
    stats->sync_waits = rocks->commit.waits;
    pthread_mutex_unlock(&rocks->commit.lock);
    stats->disk_bytes =
        hf__home_used_bytes(&rocks->home) + hf__journal_bytes(rocks->commit.journal);
    stats->memory_bytes = property(rocks, "rocksdb.cur-size-all-mem-tables") +
                          property(rocks, "rocksdb.estimate-table-readers-mem") +
                          property(rocks, "rocksdb.block-cache-usage");
    stats->stopped = atomic_load(&rocks->commit.stopped);
    stats->no_space = atomic_load(&rocks->no_space);
    stats->path = hf_str_from(rocks->home.path);
    stats->kept_free = need;
}

static enum hf_status verify_listed(struct hf_scope *s, struct rocks *rocks)
{
    const rocksdb_livefiles_t *files = rocksdb_livefiles(rocks->db);
    enum hf_status status = HF_OK;

    for (int i = 0; status == HF_OK && i < rocksdb_livefiles_count(files); i++) {
        struct hf_str path =
            hf_scope_format(s, "%s%s", rocks->home.db_path, rocksdb_livefiles_name(files, i));
        struct stat info;

        if (!path.ptr)
            status = hf__fail_nomem(s);
        else if (stat(path.ptr, &info) ||
                 (uint64_t)info.st_size != rocksdb_livefiles_size(files, i))
            status = hf__fail(s, HF_CORRUPT, "%s is missing or has the wrong size", path.ptr);
    }
    rocksdb_livefiles_destroy(files);
    return status;
}

/*
 * Every table that the database needs is there and has its size. A compaction that ends meanwhile
 * must not take away what it replaced before we have looked at it.
 */
static enum hf_status verify_files(struct hf_scope *s, struct rocks *rocks)
{
    enum hf_status status;
    char *error = NULL;

    rocksdb_disable_file_deletions(rocks->db, &error);
    if (error)
        return read_failed(s, rocks, error);
    status = verify_listed(s, rocks);
    rocksdb_enable_file_deletions(rocks->db, 0, &error);
    if (error && status == HF_OK)
        return read_failed(s, rocks, error);
    rocksdb_free(error);
    return status;
}

static enum hf_status rocks_verify(struct hf_scope *s, struct hf__store *store)
{
    struct rocks *rocks = rocks_of(store);
    rocksdb_readoptions_t *options;
    rocksdb_iterator_t *it;
    char *error = NULL;

    TRY(verify_files(s, rocks));
    options = new_read_options(rocks);
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    it = rocksdb_create_iterator(rocks->db, options);
    for (rocksdb_iter_seek_to_first(it); rocksdb_iter_valid(it); rocksdb_iter_next(it))
        continue;
    rocksdb_iter_get_error(it, &error);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(options);
    return error ? read_failed(s, rocks, error) : HF_OK;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void set_table_options(struct rocks *rocks)
{
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();

    rocks->cache = rocksdb_cache_create_lru(rocks->options.cache_bytes);
    rocksdb_block_based_options_set_block_size(table, BLOCK_BYTES);
    rocksdb_block_based_options_set_block_cache(table, rocks->cache);
    rocksdb_block_based_options_set_filter_policy(table, rocksdb_filterpolicy_create_bloom_full(
                                                             BLOOM_BITS));
    rocksdb_block_based_options_set_whole_key_filtering(table, 1);
    rocksdb_options_set_block_based_table_factory(rocks->db_options, table);
    rocksdb_block_based_options_destroy(table);
}

/* RocksDB's C functions do not know this one by itself: what it must not write when there is no
 * room, it must not write when it is closed either. */
static void leave_shutdown_to_us(struct rocks *rocks)
{
    rocksdb_options_t *more = rocksdb_options_create();
    char *error = NULL;

    rocksdb_get_options_from_string(rocks->db_options, "avoid_flush_during_shutdown=true", more,
                                    &error);
    assert(!error);
    rocksdb_free(error);
    rocksdb_options_destroy(rocks->db_options);
    rocks->db_options = more;
}

static void set_options(struct rocks *rocks)
{
    size_t buffer = rocks->options.memtable_bytes / WRITE_BUFFERS;
    rocksdb_options_t *o = rocks->db_options = rocksdb_options_create();

    rocksdb_options_set_create_if_missing(o, rocks->home.fresh);
    rocksdb_options_set_paranoid_checks(o, 1);
    /* Of stores of format 1. 0: a torn end of the log is forgiven, damage before it is not. */
    rocksdb_options_set_wal_recovery_mode(o, 0);
    rocksdb_options_set_allow_mmap_reads(o, 1);
    rocksdb_options_set_max_open_files(o, OPEN_FILES);
    rocksdb_options_set_max_background_jobs(o, BACKGROUND_JOBS);
    /* Writers that wait for each other sleep: spinning is paid for by the program around us. */
    rocksdb_options_set_enable_write_thread_adaptive_yield(o, 0);
    rocksdb_options_set_write_buffer_size(o, buffer);
    rocksdb_options_set_max_write_buffer_number(o, WRITE_BUFFERS);
    /* Most reads of a writer are for keys that the memtable does not have. */
    rocksdb_options_set_memtable_whole_key_filtering(o, 1);
    rocksdb_options_set_memtable_prefix_bloom_size_ratio(o, 1.0 / MEMTABLE_BLOOM);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb_options_set_level0_file_num_compaction_trigger(o, LEVEL0_COMPACT);
    rocksdb_options_set_level0_slowdown_writes_trigger(o, LEVEL0_SLOW);
    rocksdb_options_set_level0_stop_writes_trigger(o, LEVEL0_STOP);
    rocksdb_options_set_max_bytes_for_level_base(o, LEVEL1_BUFFERS * buffer);
    rocksdb_options_set_target_file_size_base(o, buffer);
    rocksdb_options_set_max_compaction_bytes(o, COMPACTION_BUFFERS * buffer);
    rocksdb_options_set_compression(o, rocks->options.compress ? rocksdb_lz4_compression
                                                               : rocksdb_no_compression);
    rocksdb_options_set_keep_log_file_num(o, LOG_FILES);
    /*
     * RocksDB's file of messages is a hazard: in this build the second failed write to it aborts
     * the process, and errors elsewhere make it write. So it gets next to none.
     */
    rocksdb_options_set_info_log_level(o, LOG_LEVEL);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_stats_persist_period_sec(o, 0);
    set_table_options(rocks);
    leave_shutdown_to_us(rocks);
    rocks->read_options = new_read_options(rocks);
    rocks->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(rocks->write_options, 1);
}

static void set_locks(struct rocks *rocks)
{
    pthread_mutex_init(&rocks->space_lock, NULL);
    pthread_mutex_init(&rocks->iters_lock, NULL);
    pthread_mutex_init(&rocks->batches_lock, NULL);
    rocks->commit.env = &rocks->base.env;
    rocks->commit.home = &rocks->home;
    rocks->commit.mode = rocks->options.sync;
    rocks->commit.window_ms = rocks->options.window_ms;
    rocks->commit.user = rocks;
    rocks->commit.before_sync = look_at_space;
    rocks->commit.write_tables = write_tables;
    hf__commit_init(&rocks->commit);
}

/* Make everything durable; with all of it in tables, the next open has nothing to replay. */
static void finish(struct rocks *rocks)
{
    hf__commit_rest(&rocks->commit);
    if (!rocks->opened || !hf__commit_finish(&rocks->commit))
        return;
    hf__kill_point("before_close_flush");
    if (write_tables(rocks))
        hf__commit_clean(&rocks->commit);
    hf__kill_point("after_close_flush");
}

static void rocks_close(struct hf__store *store)
{
    struct rocks *rocks = rocks_of(store);
    struct hf_env env = store->env;

    finish(rocks);
    if (rocks->db)
        rocksdb_close(rocks->db);
    while (rocks->iters) {
        struct rocks_iter *iter = rocks->iters;

        rocks->iters = iter->next;
        iter_free(rocks, iter);
    }
    while (rocks->batches_len)
        rocksdb_writebatch_destroy(rocks->batches[--rocks->batches_len]);
    rocksdb_readoptions_destroy(rocks->read_options);
    rocksdb_writeoptions_destroy(rocks->write_options);
    rocksdb_options_destroy(rocks->db_options);
    rocksdb_cache_destroy(rocks->cache);
    hf__commit_close(&rocks->commit);
    hf__home_close(&rocks->home);
    pthread_mutex_destroy(&rocks->space_lock);
    pthread_mutex_destroy(&rocks->iters_lock);
    pthread_mutex_destroy(&rocks->batches_lock);
    hf__env_free(&env, rocks, sizeof(*rocks));
}

static const struct store_kind rocks_kind = {
    .close = rocks_close,
    .get = rocks_get,
    .snapshot_open = rocks_snapshot_open,
    .snapshot_close = rocks_snapshot_close,
    .iter_open = rocks_iter_open,
    .iter_next = rocks_iter_next,
    .iter_close = rocks_iter_close,
    .write = rocks_write,
    .sync = rocks_sync,
    .written = rocks_written,
    .durable = rocks_durable,
    .stats = rocks_stats,
    .verify = rocks_verify,
};

/* A store of format 1 had RocksDB's log, which RocksDB has replayed; ours goes on from there. */
static enum hf_status take_over(struct hf_scope *s, struct rocks *rocks,
                                struct journal_marks *marks)
{
    uint64_t newest = rocksdb_get_latest_sequence_number(rocks->db);

    if (newest < marks->durable)
        return hf__fail(s, HF_CORRUPT,
                        "The store in %s is damaged: a log file is missing or cut short (it ends "
                        "at change %llu, and %llu were made durable)",
                        rocks->home.path, (unsigned long long)newest,
                        (unsigned long long)marks->durable);
    marks->fresh = true;
    marks->durable = newest;
    return HF_OK;
}

/* The newest change that is in tables. Nothing is in a memtable yet. */
static enum hf_status read_number(struct hf_scope *s, struct rocks *rocks, uint64_t *number)
{
    char *error = NULL;
    size_t len;
    char *value = rocksdb_get(rocks->db, rocks->read_options, "", 0, &len, &error);

    *number = value && len == NUMBER_BYTES ? load_u64be((const uint8_t *)value) : 0;
    rocksdb_free(value);
    return error ? read_failed(s, rocks, error) : HF_OK;
}

static enum hf_status open_log(struct hf_scope *s, struct rocks *rocks)
{
    size_t buffer = rocks->options.memtable_bytes / WRITE_BUFFERS;
    const struct journal_options options = {.env = &rocks->base.env,
                                            .path = rocks->home.journal_path,
                                            .segment_bytes = buffer / 5 * 4,
                                            .syncs = rocks->options.sync == STORE_SYNC_FULL ||
                                                     rocks->options.sync == STORE_SYNC_BATCH};
    struct journal_marks marks;
    uint64_t in_tables;

    TRY(hf__home_open_record(s, &rocks->home));
    TRY(read_number(s, rocks, &in_tables));
    marks = (struct journal_marks){.durable = rocks->home.marks.durable,
                                   .based = rocks->home.marks.based,
                                   .clean = rocks->home.marks.clean};
    if (rocks->home.has_no_journal)
        TRY(take_over(s, rocks, &marks));
    else if (marks.based < in_tables)
        marks.based = in_tables;
    return hf__commit_open(s, &rocks->commit, &options, &marks, replay);
}

static enum hf_status open_database(struct hf_scope *s, struct rocks *rocks)
{
    char *error = NULL;
    enum hf_status status;

    rocks->db = rocksdb_open(rocks->db_options, rocks->home.db_path, &error);
    if (!error)
        return HF_OK;
    status = status_of(error);
    if (status == HF_LOCKED)
        hf__fail(s, status, "The store in %s is open already, in this or in another process",
                 rocks->home.path);
    else
        hf__fail(s, status, "The store in %s cannot be opened: %s", rocks->home.path, error);
    rocksdb_free(error);
    rocks->db = NULL;
    return status;
}

static enum hf_status open_inside(struct hf_scope *s, struct rocks *rocks)
{
    uint64_t have, need;

    /* The ballast of the last run, if it is there, is not owed again. */
    hf__home_fill_ballast(&rocks->home);
    if (!has_room(rocks, 0, &have, &need))
        return hf__fail(s, HF_NO_SPACE,
                        "The disk of the store in %s has %llu bytes free; opening needs %llu",
                        rocks->home.path, (unsigned long long)have, (unsigned long long)need);
    TRY(open_database(s, rocks));
    TRY(open_log(s, rocks));
    TRY(hf__home_seal(s, &rocks->home));
    rocks->opened = true;
    return HF_OK;
}

static struct store_options whole_options(const struct store_options *options)
{
    struct store_options whole = options ? *options : (struct store_options){0};

    if (!whole.window_ms)
        whole.window_ms = WINDOW_MS;
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
    struct rocks *rocks = hf__env_alloc(&whole, sizeof(*rocks));
    enum hf_status status;

    *store = NULL;
    if (!rocks)
        return hf__fail_nomem(s);
    memset(rocks, 0, sizeof(*rocks));
    rocks->base = (struct hf__store){.kind = &rocks_kind, .env = whole};
    rocks->options = whole_options(options);
    status = hf__home_open(s, &rocks->base.env, path, &rocks->home);
    if (status != HF_OK) {
        hf__env_free(&whole, rocks, sizeof(*rocks));
        return status;
    }
    set_locks(rocks);
    set_options(rocks);
    status = open_inside(s, rocks);
    if (status != HF_OK)
        rocks_close(&rocks->base);
    else
        *store = &rocks->base;
    return status;
}
