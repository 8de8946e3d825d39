/*
 * store/tables.c: RocksDB, of which we use what it has below its memtable: tables, their levels,
 * caches and compactions.
 *
 * The newest changes are in a journal and in a map of our own; when that is large enough, it is
 * written as a table. RocksDB makes a table of its memtable only, so that is filled from the map,
 * in order, and flushed at once: nobody waits for it, and it is empty otherwise. (Its other way to
 * take in a table, the "ingestion" of a file, lost whole tables in our hands while compactions ran,
 * with 7.8 and dynamic levels. docs/decisions/0009 has that, and why there is a map at all.)
 *
 * So the database changes only when a table is added, and between two of those one of its
 * snapshots serves everybody: a state.
 *
 * Every table has under the empty key a mark, which is ours: u64be number of its last change, id of
 * the store, and what was durable and which file of the journal was written to at that time. So
 * tables say themselves how far they go, and what must be beside them. A table that was begun and
 * has not become one is in memory only, and adding it again writes the same once more. The database
 * itself is made with its first table.
 *
 * RocksDB's iterators, as long as they look for deletions of ranges, forget the error when the
 * first block of a table file is damaged, and go on without the rest of that level (7.8; rocksdb
 * pull request 11783). So no such entry is ever written, and iterators are set not to look for any.
 *
 * Tables are read with pread(), never through a mapping: a media error or a file that was cut under
 * us would be a signal there, which ends the process. So it is an error that names the file.
 * docs/decisions/0013 has what that costs.
 *
 * How it is opened, closed and opened again is in tables_open.c.
 *
 * What always holds:
 *
 *  (1) The tables have every change up to their last one, and none behind it. So a memtable is
 *      flushed by us only, when all of a map is in it: it is never full, and not flushed by a
 *      close. RocksDB would also flush it when it recovers from an error by itself, which it does
 *      when the disk has room for a whole memtable again: there is none of that size. And if a part
 *      became a table all the same, it would not have the number.
 *  (2) Nobody sees the empty key.
 */
#include "store/tables_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kill.h"

enum {
    KIB = 1024,
    BATCH_BYTES = 256 * KIB, /* size of the batches that are handed to RocksDB */
    ITERS_KEPT = 32,
    NUMBER_BYTES = 8, /* of a change, under the empty key in format 2 */
    MARK_BYTES = 32   /* under the empty key: four numbers */
};

_Static_assert(MARK_BYTES == 4 * 8, "last change, id, durable, segment");
_Static_assert(NUMBER_BYTES == 8 && NUMBER_BYTES < MARK_BYTES, "marks of formats 2 and 3 differ in "
                                                               "length");

/*
 * RocksDB counts every comparison of keys in counters of the calling thread, which nobody here
 * reads and which cost more than the comparison. The switch belongs to the thread as well, so it
 * is set in every function through which a thread enters.
 */
static void count_nothing(void)
{
    rocksdb_set_perf_level(rocksdb_disable);
}

/* ---- errors --------------------------------------------------------------------------------- */

enum hf_status hf__tables_status_of(const char *error)
{
    if (strstr(error, "/LOCK") && strstr(error, "lock"))
        return HF_LOCKED;
    if (strstr(error, "No space left"))
        return HF_NO_SPACE;
    if (strncmp(error, "Corruption", 10) == 0 || strstr(error, "No such file") ||
        strstr(error, "does not exist"))
        return HF_CORRUPT;
    if (strstr(error, ".sst") && strstr(error, "Invalid argument"))
        return HF_CORRUPT; /* an empty file cannot be mapped */
    return HF_IO;
}

/* Is it a lack of descriptors or memory, which may end? RocksDB's text contains the system's. */
static bool is_lack(const char *error)
{
    static const int lacks[] = {EMFILE, ENFILE, ENOMEM};
    char room[128];

    for (size_t i = 0; i < ARRAY_LEN(lacks); i++)
        if (strstr(error, strerror_r(lacks[i], room, sizeof(room))))
            return true;
    return false;
}

/* Turn an error of a read into the scope's, and free it. */
static enum hf_status read_failed(struct hf_scope *s, const struct tables *tables, char *error)
{
    enum hf_status status = hf__tables_status_of(error);

    hf__fail(s, status, "Reading the store in %s failed: %s", tables->options.path, error);
    if (is_lack(error))
        hf__scope_error_edit(s)->may_retry = true;
    rocksdb_free(error);
    return status;
}

/* There is nothing to read: the database does not exist yet, or could not be reopened. */
static enum hf_status read_nothing(struct hf_scope *s, const struct tables *tables, bool is_down)
{
    if (!is_down)
        return HF_OK;
    hf__fail(s, HF_IO,
             "The table files of the store in %s cannot be opened at the moment; see the log",
             tables->options.path);
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

/* ---- states --------------------------------------------------------------------------------- */

enum { CACHE_TIER = 1 }; /* RocksDB's kBlockCacheTier, which <rocksdb/c.h> has no name for */

static rocksdb_readoptions_t *new_read_options(const struct tables *tables)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();

    rocksdb_readoptions_set_verify_checksums(options, !tables->options.no_verify);
    rocksdb_readoptions_set_ignore_range_deletions(options, 1);
    return options;
}

void hf__tables_state_fill(struct tables_state *state, struct tables *tables)
{
    *state = (struct tables_state){.tables = tables, .is_down = tables->is_down};
    atomic_init(&state->refs, 1);
    if (tables->db) {
        state->snapshot = rocksdb_create_snapshot(tables->db);
        state->options = new_read_options(tables);
        rocksdb_readoptions_set_snapshot(state->options, state->snapshot);
        state->cached = new_read_options(tables);
        rocksdb_readoptions_set_snapshot(state->cached, state->snapshot);
        rocksdb_readoptions_set_read_tier(state->cached, CACHE_TIER);
    }
    atomic_fetch_add(&tables->states, 1);
}

struct tables_state *hf__tables_state_new(struct tables *tables)
{
    struct tables_state *state = hf__env_alloc(&tables->env, sizeof(*state));

    if (state)
        hf__tables_state_fill(state, tables);
    return state;
}

void hf__tables_state_empty(struct tables_state *state)
{
    if (state->snapshot) {
        rocksdb_readoptions_destroy(state->options);
        rocksdb_readoptions_destroy(state->cached);
        hf__rocksdb_release(state->tables->db, state->snapshot);
    }
    assert(atomic_load(&state->tables->states) > 0);
    atomic_fetch_sub(&state->tables->states, 1);
}

struct tables_state *hf__tables_retain(struct tables_state *state)
{
    unsigned refs = atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);

    assert(refs > 0);
    return state;
}

void hf__tables_release(struct tables_state *state)
{
    struct hf_env env;

    if (!state || atomic_fetch_sub_explicit(&state->refs, 1, memory_order_acq_rel) != 1)
        return;
    env = state->tables->env;
    hf__tables_state_empty(state);
    hf__env_free(&env, state, sizeof(*state));
}

struct tables_state *hf__tables_newest(struct tables *tables)
{
    return hf__tables_retain(tables->newest);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* RocksDB has not looked, for what it looks for is not in the cache. */
static bool is_incomplete(const char *error)
{
    return strncmp(error, "Result incomplete", 17) == 0;
}

enum hf_status hf__tables_get(struct hf_scope *s, struct tables_state *state, struct hf_bytes key,
                              struct hf_bytes *value)
{
    bool waits = hf__scope_may_wait(s);
    rocksdb_pinnableslice_t *pinned;
    char *error = NULL;
    const char *from;
    uint8_t *to;
    size_t len;

    if (!state->snapshot)
        return read_nothing(s, state->tables, state->is_down);
    count_nothing();
    pinned = rocksdb_get_pinned(state->tables->db, waits ? state->options : state->cached,
                                (const char *)key.ptr, key.len, &error);
    if (error && !waits && is_incomplete(error)) {
        rocksdb_free(error);
        return hf__scope_lose_patience(s);
    }
    if (error)
        return read_failed(s, state->tables, error);
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

void hf__tables_iter_free(struct tables *tables, struct tables_iter *iter)
{
    rocksdb_readoptions_destroy(iter->options);
    hf__buf_free(&iter->bounds);
    hf__env_free(&tables->env, iter, sizeof(*iter));
}

/* A spare iterator, or a new one. */
static struct tables_iter *iter_take(struct tables *tables)
{
    struct tables_iter *iter;

    pthread_mutex_lock(&tables->iters_lock);
    iter = tables->iters;
    if (iter) {
        tables->iters = iter->next;
        tables->iters_len--;
    }
    pthread_mutex_unlock(&tables->iters_lock);
    if (iter)
        return iter;
    iter = hf__env_alloc(&tables->env, sizeof(*iter));
    if (!iter)
        return NULL;
    *iter = (struct tables_iter){.tables = tables,
                                 .options = new_read_options(tables),
                                 .bounds = {.env = &tables->env}};
    return iter;
}

static void iter_give(struct tables *tables, struct tables_iter *iter)
{
    bool keep;

    pthread_mutex_lock(&tables->iters_lock);
    keep = tables->iters_len < ITERS_KEPT;
    if (keep) {
        iter->next = tables->iters;
        tables->iters = iter;
        tables->iters_len++;
    }
    pthread_mutex_unlock(&tables->iters_lock);
    if (!keep)
        hf__tables_iter_free(tables, iter);
}

/* RocksDB keeps pointers to the bounds, so the iterator has copies. The lowest key that is not
 * empty is a zero byte. */
static bool iter_bound(struct tables_iter *iter, const struct store_range *range)
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

enum hf_status hf__tables_iter_open(struct hf_scope *s, struct tables_state *state,
                                    const struct store_range *range, struct tables_iter **iter)
{
    struct tables *tables = state->tables;
    struct tables_iter *mine;

    *iter = NULL;
    if (!state->snapshot)
        return read_nothing(s, state->tables, state->is_down);
    mine = iter_take(tables);
    if (!mine)
        return hf__fail_nomem(s);
    count_nothing();
    if (!iter_bound(mine, range)) {
        iter_give(tables, mine);
        return hf__fail_nomem(s);
    }
    /* RocksDB asserts that bounds are in order. */
    if (range->upper.len &&
        bytes_compare(mine->bounds.ptr, mine->lower_len, range->upper.ptr, range->upper.len) >= 0) {
        iter_give(tables, mine);
        return HF_OK;
    }
    mine->reverse = range->reverse;
    mine->started = mine->ended = false;
    rocksdb_readoptions_set_fill_cache(mine->options, range->fill_cache);
    rocksdb_readoptions_set_snapshot(mine->options, state->snapshot);
    mine->it = rocksdb_create_iterator(tables->db, mine->options);
    *iter = mine;
    return HF_OK;
}

static void iter_step(struct tables_iter *iter)
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

enum hf_status hf__tables_iter_next(struct hf_scope *s, struct tables_iter *iter, bool *found,
                                    struct hf_bytes *key, struct hf_bytes *value)
{
    char *error = NULL;
    const char *ptr;
    size_t len;

    *found = false;
    if (iter->ended)
        return HF_OK;
    assert(iter->it);
    iter_step(iter);
    if (!rocksdb_iter_valid(iter->it)) {
        iter->ended = true;
        rocksdb_iter_get_error(iter->it, &error);
        return error ? read_failed(s, iter->tables, error) : HF_OK;
    }
    ptr = rocksdb_iter_key(iter->it, &len);
    assert(len > 0); /* (2) */
    *key = hf_bytes_of(ptr, len);
    ptr = rocksdb_iter_value(iter->it, &len);
    *value = hf_bytes_of(ptr, len);
    *found = true;
    return HF_OK;
}

void hf__tables_iter_close(struct tables_iter *iter)
{
    if (!iter)
        return;
    rocksdb_iter_destroy(iter->it);
    iter_give(iter->tables, iter);
}

/* ---- adding --------------------------------------------------------------------------------- */

static uint64_t property_read(struct tables *tables, const char *name)
{
    uint64_t value = 0;

    pthread_rwlock_rdlock(&tables->in_use);
    if (tables->db)
        rocksdb_property_int(tables->db, name, &value);
    pthread_rwlock_unlock(&tables->in_use);
    return value;
}

/* Write the batch to RocksDB's memtable, and clear it. NULL: success. */
static char *write_batch(struct tables *tables, rocksdb_writebatch_t *batch)
{
    char *error = NULL;

    rocksdb_write(tables->db, tables->write_options, batch, &error);
    rocksdb_writebatch_clear(batch);
    return error;
}

static char *fill_memtable(struct tables *tables, const struct map_node *root,
                           const struct tables_mark *mark)
{
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    const struct map_entry *entry;
    struct map_cursor cursor;
    uint8_t value[MARK_BYTES];
    char *error = NULL;
    size_t bytes = 0;

    hf__map_seek(&cursor, root, hf_bytes_of(NULL, 0));
    while (!error && (entry = hf__map_next(&cursor))) {
        const char *key = (const char *)entry->bytes;

        if (entry->gone)
            rocksdb_writebatch_delete(batch, key, entry->key_len);
        else
            rocksdb_writebatch_put(batch, key, entry->key_len, key + entry->key_len,
                                   entry->value_len);
        bytes += entry->key_len + entry->value_len;
        if (bytes >= BATCH_BYTES) {
            error = write_batch(tables, batch);
            bytes = 0;
        }
    }
    store_u64be(value, mark->last);
    store_u64be(value + 8, mark->id);
    store_u64be(value + 16, mark->durable);
    store_u64be(value + 24, mark->segment);
    /* The mark comes last, so that an incomplete memtable has none. */
    rocksdb_writebatch_put(batch, "", 0, (const char *)value, sizeof(value));
    if (!error)
        error = write_batch(tables, batch);
    rocksdb_writebatch_destroy(batch);
    return error;
}

/* Write RocksDB's memtable as a table, synced, and in the manifest. NULL: success. */
static char *flush_memtable(struct tables *tables)
{
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    char *error = NULL;

    rocksdb_flushoptions_set_wait(options, 1);
    rocksdb_flush(tables->db, options, &error);
    rocksdb_flushoptions_destroy(options);
    return error;
}

/* False: errno says why. */
static bool sync_directory(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool done = fd >= 0 && fsync(fd) == 0;
    int error = errno;

    if (fd >= 0)
        close(fd);
    errno = error;
    return done;
}

/* Create the database if there is none, with a durable name. NULL: it exists. */
static char *make_database(struct tables *tables)
{
    rocksdb_t *made;
    char *error = NULL;

    if (tables->db)
        return NULL;
    made = hf__rocksdb_open(tables, &error);
    if (error)
        return error;
    if (!sync_directory(tables->options.path)) {
        char room[128];

        error = strdup(strerror_r(errno, room, sizeof(room)));
        hf__rocksdb_close(made);
        return error;
    }
    tables->db = made;
    return NULL;
}

/* Set how many files in level 0 start a compaction. While tables are being added, merging every
 * single one would cost too much; but reads have to look at each of them. */
static bool set_eager(struct tables *tables, bool eager)
{
    const char *name = "level0_file_num_compaction_trigger";
    const char *text;
    char *error = NULL;
    char files[8];

    if (tables->eager == eager)
        return true;
    tables->eager = true; /* to be set back: RocksDB may have it although it says that it failed */
    snprintf(files, sizeof(files), "%d",
             eager                  ? 1
             : tables->options.bulk ? BULK_COMPACT
                                    : LEVEL0_COMPACT);
    text = files;
    rocksdb_set_options(tables->db, 1, &name, &text, &error);
    if (!error)
        tables->eager = eager;
    rocksdb_free(error);
    return !error;
}

static bool has_level0(struct tables *tables)
{
    char *files = rocksdb_property_value(tables->db, "rocksdb.num-files-at-level0");
    bool some = files && strcmp(files, "0") != 0;

    rocksdb_free(files);
    return some;
}

bool hf__tables_compact_idle(struct tables *tables)
{
    bool done = true;

    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    if (!atomic_load(&hf__rocksdb_ended) && tables->db && has_level0(tables))
        done = set_eager(tables, true);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
    return done;
}

bool hf__tables_awake(struct tables *tables)
{
    const char *name = "disable_auto_compactions";
    const char *text = "false";
    char *error = NULL;

    if (!tables->options.resting)
        return true;
    rocksdb_options_set_disable_auto_compactions(tables->db_options, 0);
    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    if (!atomic_load(&hf__rocksdb_ended) && tables->db)
        rocksdb_set_options(tables->db, 1, &name, &text, &error);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
    tables->options.resting = error != NULL;
    rocksdb_free(error);
    return !tables->options.resting;
}

void hf__tables_compact(struct tables *tables)
{
    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    if (!atomic_load(&hf__rocksdb_ended) && tables->db && !tables->lacks)
        rocksdb_compact_range(tables->db, NULL, 0, NULL, 0);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
}

void hf__tables_hurry(struct tables *tables)
{
    pthread_rwlock_rdlock(&tables->in_use); /* this one first, as a reopen does */
    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    if (!atomic_load(&hf__rocksdb_ended) && tables->db && !tables->options.read_only)
        rocksdb_disable_manual_compaction(tables->db);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
    pthread_rwlock_unlock(&tables->in_use);
}

/* Write a map and its mark as a table. NULL: success. */
static char *table_add(struct tables *tables, const struct map_node *root,
                       const struct tables_mark *mark)
{
    char *failed = make_database(tables);

    assert(mark->last && mark->id);
    if (!failed) {
        (void)set_eager(tables, false); /* or it is merged at once, which does no harm */
        failed = fill_memtable(tables, root, mark);
    }
    hf__kill_point("table_begun");
    if (!failed)
        failed = flush_memtable(tables);
    hf__kill_point("table_written");
    return failed;
}

enum hf_status hf__tables_add(struct tables *tables, const struct map_node *root,
                              const struct tables_mark *mark, char error[TABLES_ERROR_MAX])
{
    struct tables_state *state;
    char *failed = NULL;
    bool ended;

    count_nothing();
    assert(!tables->lacks);
    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    ended = atomic_load(&hf__rocksdb_ended);
    if (!ended)
        failed = table_add(tables, root, mark);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
    if (ended)
        return HF_CANCELED;
    if (failed) {
        bool lack = is_lack(failed);

        tables->lacks = lack && tables->db;
        snprintf(error, TABLES_ERROR_MAX, "%s", failed);
        rocksdb_free(failed);
        return lack ? HF_LIMIT : HF_IO;
    }
    tables->last = mark->last;
    state = hf__tables_state_new(tables);
    if (!state) /* the table is there: adding the same once more does no harm */
        return HF_NOMEM;
    hf__tables_release(tables->newest);
    tables->newest = state;
    return HF_OK;
}

/* ---- care ----------------------------------------------------------------------------------- */

uint64_t hf__tables_compaction(size_t table_bytes, bool bulk)
{
    return (uint64_t)(bulk ? BULK_STOP + BULK_COMPACT : LEVEL0_STOP + LEVEL0_COMPACT) * table_bytes;
}

uint64_t hf__tables_bytes(struct tables *tables)
{
    return property_read(tables, "rocksdb.live-sst-files-size");
}

uint64_t hf__tables_memory(struct tables *tables)
{
    return property_read(tables, "rocksdb.estimate-table-readers-mem") +
           property_read(tables, "rocksdb.block-cache-usage");
}

static enum hf_status verify_listed(struct hf_scope *s, struct tables *tables)
{
    const rocksdb_livefiles_t *files = rocksdb_livefiles(tables->db);
    enum hf_status status = HF_OK;

    for (int i = 0; status == HF_OK && i < rocksdb_livefiles_count(files); i++) {
        struct hf_str path =
            hf_scope_format(s, "%s%s", tables->options.db_path, rocksdb_livefiles_name(files, i));
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
 * Check that every table file of the database exists and has its size. A compaction that ends
 * meanwhile must not remove the files it replaced before we have checked them.
 */
static enum hf_status verify_files(struct hf_scope *s, struct tables *tables)
{
    enum hf_status status;
    char *error = NULL;

    if (tables->options.read_only) /* there are no compactions, and RocksDB refuses that */
        return verify_listed(s, tables);
    rocksdb_disable_file_deletions(tables->db, &error);
    if (error)
        return read_failed(s, tables, error);
    status = verify_listed(s, tables);
    rocksdb_enable_file_deletions(tables->db, 0, &error);
    if (error && status == HF_OK)
        return read_failed(s, tables, error);
    rocksdb_free(error);
    return status;
}

/* Read to the end, so that all blocks are verified. */
static enum hf_status iterator_walk(struct hf_scope *s, rocksdb_iterator_t *it,
                                    const struct store_watch *watch)
{
    enum hf_status status = HF_OK;
    size_t key_len, value_len;
    uint64_t bytes = 0;
    unsigned keys = 0;

    for (rocksdb_iter_seek_to_first(it); status == HF_OK && rocksdb_iter_valid(it);
         rocksdb_iter_next(it)) {
        rocksdb_iter_key(it, &key_len);
        rocksdb_iter_value(it, &value_len);
        bytes += key_len + value_len;
        if (++keys < STORE_WATCH_KEYS && bytes < STORE_WATCH_BYTES)
            continue;
        status = hf__scope_alive(s);
        if (status == HF_OK && watch)
            status = watch->on_bytes(s, bytes, watch->user);
        keys = 0;
        bytes = 0;
    }
    return status == HF_OK && watch ? watch->on_bytes(s, bytes, watch->user) : status;
}

/* Blocks in the cache say nothing about the files. Reads fill the cache again. */
static void drop_cached(struct tables *tables)
{
    rocksdb_cache_set_capacity(tables->cache, 0);
    rocksdb_cache_set_capacity(tables->cache, tables->options.cache_bytes);
}

static enum hf_status tables_scan(struct hf_scope *s, struct tables *tables,
                                  const struct store_watch *watch)
{
    rocksdb_readoptions_t *options;
    enum hf_status status;
    rocksdb_iterator_t *it;
    char *error = NULL;

    if (!tables->db)
        return read_nothing(s, tables, tables->is_down);
    TRY(verify_files(s, tables));
    drop_cached(tables);
    options = new_read_options(tables);
    rocksdb_readoptions_set_verify_checksums(options, 1);
    rocksdb_readoptions_set_fill_cache(options, 0);
    it = rocksdb_create_iterator(tables->db, options);
    status = iterator_walk(s, it, watch);
    rocksdb_iter_get_error(it, &error);
    rocksdb_iter_destroy(it);
    rocksdb_readoptions_destroy(options);
    return error ? read_failed(s, tables, error) : status;
}

enum hf_status hf__tables_verify(struct hf_scope *s, struct tables *tables,
                                 const struct store_watch *watch)
{
    enum hf_status status;

    pthread_rwlock_rdlock(&tables->in_use);
    status = tables_scan(s, tables, watch);
    pthread_rwlock_unlock(&tables->in_use);
    return status;
}

/* ---- the mark ------------------------------------------------------------------------------- */

enum hf_status hf__tables_mark(struct hf_scope *s, struct tables *tables, struct tables_mark *mark)
{
    char *error = NULL;
    char *value = NULL;
    size_t len = 0;

    *mark = (struct tables_mark){0};
    if (!tables->db)
        return HF_OK;
    mark->sequence = rocksdb_get_latest_sequence_number(tables->db);
    if (tables->newest->snapshot) /* a database that has just been made has none yet */
        value = rocksdb_get(tables->db, tables->newest->options, "", 0, &len, &error);
    if (value && len >= NUMBER_BYTES)
        mark->last = load_u64be((const uint8_t *)value);
    if (value && len == MARK_BYTES) {
        mark->whole = true;
        mark->id = load_u64be((const uint8_t *)value + 8);
        mark->durable = load_u64be((const uint8_t *)value + 16);
        mark->segment = load_u64be((const uint8_t *)value + 24);
    }
    rocksdb_free(value);
    if (!error)
        tables->last = mark->last;
    return error ? read_failed(s, tables, error) : HF_OK;
}

enum hf_status hf__tables_look(struct hf_scope *s, const struct tables_options *options,
                               struct tables_mark *mark)
{
    struct tables_options look = *options;
    struct tables *tables;
    enum hf_status status;

    look.read_only = true;
    TRY(hf__tables_open(s, &look, &tables));
    status = hf__tables_mark(s, tables, mark);
    hf__tables_close(tables);
    return status;
}
