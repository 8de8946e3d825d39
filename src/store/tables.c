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
 * pull request 11783). So no such entry is ever written, and iterators are told not to look.
 *
 * Tables are read with pread(), never through a mapping: a media error or a file that was cut under
 * us would be a signal there, which ends the process. So it is an error that names the file.
 * docs/decisions/0013 has what that costs.
 *
 * A lack of descriptors or memory that RocksDB meets in a flush or a compaction is final for it: it
 * writes nothing more until it is opened again. Nothing was lost, as what is not in tables is in
 * the journal, so it is closed and opened again, when descriptors are there and nobody reads.
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
#include "store/tables.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocksdb/c.h>

#include "base/kill.h"
#include "base/turns.h"

#define NO_THREADS "no more threads can be started; raise the limit of processes (ulimit -u)"

enum {
    KIB = 1024,
    MIB = 1024 * KIB,
    BLOCK_BYTES = 4 * KIB, /* measured: a get verifies its block, 2 us less than with 16 KiB */
    BLOOM_BITS = 10,
    BATCH_BYTES = 256 * KIB, /* handed over at once */
    LEVEL0_COMPACT = 4,      /* files in level 0 that start a compaction, */
    LEVEL0_SLOW = 16,        /* that slow down who adds tables, */
    LEVEL0_STOP = 24,        /* and that stop him */
    LEVEL1_TABLES = 4,       /* size of level 1, in tables */
    COMPACTION_TABLES = LEVEL0_STOP + LEVEL1_TABLES,
    OPEN_FILES = 512,    /* tables that are kept open, */
    OPEN_FILES_OF = 4,   /* but not more than this part of the descriptors, */
    OPEN_FILES_MIN = 20, /* and not fewer than RocksDB takes */
    REOPEN_FILES = 24,   /* descriptors that must be there before it is opened again */
    REOPEN_MS = 200,     /* how long readers may take to leave it */
    BACKGROUND_JOBS = 2,
    OWN_THREADS = BACKGROUND_JOBS + 2, /* that RocksDB keeps, with its timer, and one to spare */
    OPENING_THREADS = 16,              /* that look at tables while it is opened, at most */
    LOG_FILES = 2,
    LOG_LEVEL = 4, /* fatal */
    ITERS_KEPT = 32,
    MODE_DIRECTORY = 0700,
    NUMBER_BYTES = 8, /* of a change, under the empty key in format 2 */
    MARK_BYTES = 32   /* under the empty key: four numbers */
};

static const size_t MEMTABLE_BYTES = SIZE_MAX / 4; /* see (1) */

struct tables_state {
    struct tables *tables;
    atomic_uint refs;
    const rocksdb_snapshot_t *snapshot; /* or NULL: there is no database, and nothing in it, */
    bool is_down;                       /* or it could not be opened again */
    rocksdb_readoptions_t *options;
};

struct tables_iter {
    struct tables *tables;
    struct tables_iter *next;       /* in the list of spare ones */
    rocksdb_readoptions_t *options; /* points into bounds */
    rocksdb_iterator_t *it;
    struct hf__buf bounds; /* lower, upper */
    size_t lower_len;
    bool reverse;
    bool started;
    bool ended;
};

struct tables {
    struct hf_env env;
    struct tables_options options;
    rocksdb_t *_Atomic db; /* or NULL: there is none yet */
    rocksdb_options_t *db_options;
    rocksdb_writeoptions_t *write_options;
    rocksdb_cache_t *cache;
    struct tables_state *newest;
    atomic_uint states;      /* that somebody may use */
    pthread_rwlock_t in_use; /* held by who uses the database without a state; a reopen waits */
    uint64_t last;           /* the newest change that is known to be in tables */
    bool lacks;              /* it has to be opened again before something can be added */
    bool is_down;            /* it was closed for that, and could not be opened */
    bool tidies;             /* every file in level 0 starts a compaction */

    pthread_mutex_t iters_lock; /* guards the next two */
    struct tables_iter *iters;  /* spare ones */
    int iters_len;
};

/*
 * RocksDB counts every comparison of keys in counters of the calling thread, which nobody here
 * reads and which cost more than the comparison. The switch belongs to the thread as well, so it
 * is turned at every door through which a thread comes in.
 */
static void count_nothing(void)
{
    rocksdb_set_perf_level(rocksdb_disable);
}

/* ---- the end of a program ------------------------------------------------------------------- */

/*
 * RocksDB has objects that are made with its first options, others with its first database, and
 * that end when the program calls exit(). What a program registered for its exit before that, it is
 * called for after that. If it closes a store then, RocksDB must not be called any more: it would
 * abort. Nothing is lost without it, as the journal has what tables have not.
 *
 * The same goes for a thread that is in there when another one calls exit(), so the end waits for
 * it. It can wait only if it was registered behind those objects; for those of the first database
 * that is before it is opened, as they are made by an attempt that cannot succeed, too.
 */
static pthread_once_t options_made = PTHREAD_ONCE_INIT;
static pthread_once_t database_made = PTHREAD_ONCE_INIT;
/* Readers go first, so that who has it may take it again, as a failed make_database() does. */
static pthread_rwlock_t rocksdb_in_use = PTHREAD_RWLOCK_INITIALIZER;
static atomic_bool has_ended;        /* nothing in there is changed any more */
static rocksdb_t *_Atomic left_open; /* so that nobody takes these for leaks */
static const rocksdb_snapshot_t *_Atomic left_snapshot;

static void note_end(void)
{
    atomic_store(&has_ended, true); /* first: who comes from now on does not begin */
    pthread_rwlock_wrlock(&rocksdb_in_use);
    pthread_rwlock_unlock(&rocksdb_in_use);
}

static void note_end_at_exit(void)
{
    (void)atexit(note_end); /* the last one to register is the first to be called */
}

static void make_objects(void)
{
    rocksdb_options_t *options = rocksdb_options_create();
    char *error = NULL;

    rocksdb_options_set_info_log_level(options, LOG_LEVEL);
    (void)rocksdb_open(options, "/dev/null/none", &error);
    rocksdb_free(error);
    rocksdb_options_destroy(options);
    note_end_at_exit();
}

/* RocksDB makes its files, and its folder, for everybody to read. So the folder is ours to make. */
static bool shut_away(const char *path)
{
    struct stat info;

    if (mkdir(path, MODE_DIRECTORY) == 0)
        return true;
    if (errno != EEXIST || stat(path, &info))
        return false;
    return (info.st_mode & 077) == 0 || chmod(path, MODE_DIRECTORY) == 0;
}

/* RocksDB ends the process when it cannot start a thread. Where there are few, it opens its tables
 * one after the other; false: there are too few. */
static bool has_threads(const struct tables *tables)
{
    unsigned threads = hf__threads_possible(OWN_THREADS + OPENING_THREADS);

    if (threads < OWN_THREADS)
        return false;
    rocksdb_options_set_max_file_opening_threads(
        tables->db_options, threads == OWN_THREADS ? 1 : (int)(threads - OWN_THREADS));
    return true;
}

/* With the lock, and before the end: that may have begun since, and waits. */
static rocksdb_t *open_rocksdb(const struct tables *tables, char **error)
{
    rocksdb_t *db = NULL;
    uint64_t turns;

    if (!has_threads(tables)) {
        *error = strdup(NO_THREADS);
        return NULL;
    }
    turns = take_turns(SHORT_TURN_NS); /* for RocksDB's threads */
    pthread_once(&database_made, make_objects);
    if (tables->options.read_only)
        db = rocksdb_open_for_read_only(tables->db_options, tables->options.db_path, 0, error);
    else if (!shut_away(tables->options.db_path))
        *error = strdup("its folder cannot be made for its owner alone");
    else
        db = rocksdb_open(tables->db_options, tables->options.db_path, error);
    if (turns)
        (void)take_turns(turns);
    return db;
}

static void close_rocksdb(rocksdb_t *db)
{
    pthread_rwlock_rdlock(&rocksdb_in_use);
    if (atomic_load(&has_ended))
        atomic_store(&left_open, db);
    else if (db)
        rocksdb_close(db);
    pthread_rwlock_unlock(&rocksdb_in_use);
}

static void release_snapshot(rocksdb_t *db, const rocksdb_snapshot_t *snapshot)
{
    pthread_rwlock_rdlock(&rocksdb_in_use);
    if (atomic_load(&has_ended)) /* releasing one may start a compaction */
        atomic_store(&left_snapshot, snapshot);
    else
        rocksdb_release_snapshot(db, snapshot);
    pthread_rwlock_unlock(&rocksdb_in_use);
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
    if (strstr(error, ".sst") && strstr(error, "Invalid argument"))
        return HF_CORRUPT; /* an empty file cannot be mapped */
    return HF_IO;
}

/* Is it a lack of descriptors or memory, which ends? RocksDB has the system's own words for it. */
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
    enum hf_status status = status_of(error);

    hf__fail(s, status, "Reading the store in %s failed: %s", tables->options.path, error);
    if (is_lack(error))
        hf__scope_error_edit(s)->may_retry = true;
    rocksdb_free(error);
    return status;
}

/* There is nothing to read: because there is no database yet, or because of a lack. */
static enum hf_status read_nothing(struct hf_scope *s, const struct tables *tables, bool is_down)
{
    if (!is_down)
        return HF_OK;
    hf__fail(s, HF_IO, "The tables of the store in %s cannot be opened now; see the log",
             tables->options.path);
    hf__scope_error_edit(s)->may_retry = true;
    return HF_IO;
}

/* ---- states --------------------------------------------------------------------------------- */

static rocksdb_readoptions_t *new_read_options(const struct tables *tables)
{
    rocksdb_readoptions_t *options = rocksdb_readoptions_create();

    rocksdb_readoptions_set_verify_checksums(options, !tables->options.no_verify);
    rocksdb_readoptions_set_ignore_range_deletions(options, 1);
    return options;
}

static void state_fill(struct tables_state *state, struct tables *tables)
{
    *state = (struct tables_state){.tables = tables, .is_down = tables->is_down};
    atomic_init(&state->refs, 1);
    if (tables->db) {
        state->snapshot = rocksdb_create_snapshot(tables->db);
        state->options = new_read_options(tables);
        rocksdb_readoptions_set_snapshot(state->options, state->snapshot);
    }
    atomic_fetch_add(&tables->states, 1);
}

static struct tables_state *state_new(struct tables *tables)
{
    struct tables_state *state = hf__env_alloc(&tables->env, sizeof(*state));

    if (state)
        state_fill(state, tables);
    return state;
}

static void state_empty(struct tables_state *state)
{
    if (state->snapshot) {
        rocksdb_readoptions_destroy(state->options);
        release_snapshot(state->tables->db, state->snapshot);
    }
    atomic_fetch_sub(&state->tables->states, 1);
}

struct tables_state *hf__tables_retain(struct tables_state *state)
{
    atomic_fetch_add_explicit(&state->refs, 1, memory_order_relaxed);
    return state;
}

void hf__tables_release(struct tables_state *state)
{
    struct hf_env env;

    if (!state || atomic_fetch_sub_explicit(&state->refs, 1, memory_order_acq_rel) != 1)
        return;
    env = state->tables->env;
    state_empty(state);
    hf__env_free(&env, state, sizeof(*state));
}

struct tables_state *hf__tables_newest(struct tables *tables)
{
    return hf__tables_retain(tables->newest);
}

/* ---- reading -------------------------------------------------------------------------------- */

enum hf_status hf__tables_get(struct hf_scope *s, struct tables_state *state, struct hf_bytes key,
                              struct hf_bytes *value)
{
    rocksdb_pinnableslice_t *pinned;
    char *error = NULL;
    const char *from;
    uint8_t *to;
    size_t len;

    if (!state->snapshot)
        return read_nothing(s, state->tables, state->is_down);
    count_nothing();
    pinned = rocksdb_get_pinned(state->tables->db, state->options, (const char *)key.ptr, key.len,
                                &error);
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

static void iter_free(struct tables *tables, struct tables_iter *iter)
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
        iter_free(tables, iter);
}

/* RocksDB keeps pointers to the bounds, so they are copied to where they stay. The lowest key that
 * is not empty is a zero byte. */
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
    iter_step(iter);
    if (!rocksdb_iter_valid(iter->it)) {
        iter->ended = true;
        rocksdb_iter_get_error(iter->it, &error);
        return error ? read_failed(s, iter->tables, error) : HF_OK;
    }
    ptr = rocksdb_iter_key(iter->it, &len);
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

static uint64_t property(struct tables *tables, const char *name)
{
    uint64_t value = 0;

    pthread_rwlock_rdlock(&tables->in_use);
    if (tables->db)
        rocksdb_property_int(tables->db, name, &value);
    pthread_rwlock_unlock(&tables->in_use);
    return value;
}

/* Writes what is in the batch, and empties it. NULL: it is in the memtable. */
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
    /* At the end: a part does not say that it is whole. */
    rocksdb_writebatch_put(batch, "", 0, (const char *)value, sizeof(value));
    if (!error)
        error = write_batch(tables, batch);
    rocksdb_writebatch_destroy(batch);
    return error;
}

/* NULL: the memtable is a table now, which is synced and noted. */
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

/* Make the database, if there is none, with a name that lasts. NULL: it is there. */
static char *make_database(struct tables *tables)
{
    rocksdb_t *made;
    char *error = NULL;

    if (tables->db)
        return NULL;
    made = open_rocksdb(tables, &error);
    if (error)
        return error;
    if (!sync_directory(tables->options.path)) {
        char room[128];

        error = strdup(strerror_r(errno, room, sizeof(room)));
        close_rocksdb(made);
        return error;
    }
    tables->db = made;
    return NULL;
}

/* How many files in level 0 start a compaction. Who adds tables has better things to do than to
 * merge every single one; who reads looks at each of them. */
static bool set_tidies(struct tables *tables, bool tidies)
{
    const char *name = "level0_file_num_compaction_trigger";
    const char *text;
    char *error = NULL;
    char files[8];

    if (tables->tidies == tidies)
        return true;
    tables->tidies = true; /* to be set back: RocksDB may have it although it says that it failed */
    snprintf(files, sizeof(files), "%d", tidies ? 1 : LEVEL0_COMPACT);
    text = files;
    rocksdb_set_options(tables->db, 1, &name, &text, &error);
    if (!error)
        tables->tidies = tidies;
    rocksdb_free(error);
    return !error;
}

static bool has_untidy(struct tables *tables)
{
    char *files = rocksdb_property_value(tables->db, "rocksdb.num-files-at-level0");
    bool untidy = files && strcmp(files, "0") != 0;

    rocksdb_free(files);
    return untidy;
}

bool hf__tables_tidy(struct tables *tables)
{
    bool done = true;

    pthread_rwlock_rdlock(&rocksdb_in_use);
    if (!atomic_load(&has_ended) && tables->db && has_untidy(tables))
        done = set_tidies(tables, true);
    pthread_rwlock_unlock(&rocksdb_in_use);
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
    pthread_rwlock_rdlock(&rocksdb_in_use);
    if (!atomic_load(&has_ended) && tables->db)
        rocksdb_set_options(tables->db, 1, &name, &text, &error);
    pthread_rwlock_unlock(&rocksdb_in_use);
    tables->options.resting = error != NULL;
    rocksdb_free(error);
    return !tables->options.resting;
}

void hf__tables_compact(struct tables *tables)
{
    pthread_rwlock_rdlock(&rocksdb_in_use);
    if (!atomic_load(&has_ended) && tables->db && !tables->lacks)
        rocksdb_compact_range(tables->db, NULL, 0, NULL, 0);
    pthread_rwlock_unlock(&rocksdb_in_use);
}

void hf__tables_hurry(struct tables *tables)
{
    pthread_rwlock_rdlock(&tables->in_use); /* this one first, as a reopen does */
    pthread_rwlock_rdlock(&rocksdb_in_use);
    if (!atomic_load(&has_ended) && tables->db && !tables->options.read_only)
        rocksdb_disable_manual_compaction(tables->db);
    pthread_rwlock_unlock(&rocksdb_in_use);
    pthread_rwlock_unlock(&tables->in_use);
}

/* NULL: it is in a table. */
static char *add(struct tables *tables, const struct map_node *root, const struct tables_mark *mark)
{
    char *failed = make_database(tables);

    if (!failed) {
        (void)set_tidies(tables, false); /* or it is merged at once, which does no harm */
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
    pthread_rwlock_rdlock(&rocksdb_in_use);
    ended = atomic_load(&has_ended);
    if (!ended)
        failed = add(tables, root, mark);
    pthread_rwlock_unlock(&rocksdb_in_use);
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
    state = state_new(tables);
    if (!state) /* it is in there: adding the same once more does no harm */
        return HF_NOMEM;
    hf__tables_release(tables->newest);
    tables->newest = state;
    return HF_OK;
}

/* ---- care ----------------------------------------------------------------------------------- */

uint64_t hf__tables_compaction(size_t table_bytes)
{
    return (uint64_t)COMPACTION_TABLES * table_bytes;
}

uint64_t hf__tables_bytes(struct tables *tables)
{
    return property(tables, "rocksdb.live-sst-files-size");
}

uint64_t hf__tables_memory(struct tables *tables)
{
    return property(tables, "rocksdb.estimate-table-readers-mem") +
           property(tables, "rocksdb.block-cache-usage");
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
 * Every table that the database needs is there and has its size. A compaction that ends meanwhile
 * must not take away what it replaced before we have looked at it.
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

/* Go to the end; blocks are verified on the way. */
static enum hf_status walk(struct hf_scope *s, rocksdb_iterator_t *it,
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

/* Blocks in the cache say nothing about the files. It fills again as others read. */
static void drop_cached(struct tables *tables)
{
    rocksdb_cache_set_capacity(tables->cache, 0);
    rocksdb_cache_set_capacity(tables->cache, tables->options.cache_bytes);
}

static enum hf_status verify(struct hf_scope *s, struct tables *tables,
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
    status = walk(s, it, watch);
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
    status = verify(s, tables, watch);
    pthread_rwlock_unlock(&tables->in_use);
    return status;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static int open_files(void)
{
    struct rlimit limit;
    rlim_t files = OPEN_FILES;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur / OPEN_FILES_OF < files)
        files = limit.rlim_cur / OPEN_FILES_OF;
    return files < OPEN_FILES_MIN ? OPEN_FILES_MIN : (int)files;
}

static void set_block_options(struct tables *tables)
{
    rocksdb_block_based_table_options_t *blocks = rocksdb_block_based_options_create();

    tables->cache = rocksdb_cache_create_lru(tables->options.cache_bytes);
    rocksdb_block_based_options_set_block_size(blocks, BLOCK_BYTES);
    rocksdb_block_based_options_set_block_cache(blocks, tables->cache);
    rocksdb_block_based_options_set_filter_policy(blocks, rocksdb_filterpolicy_create_bloom_full(
                                                              BLOOM_BITS));
    rocksdb_block_based_options_set_whole_key_filtering(blocks, 1);
    rocksdb_options_set_block_based_table_factory(tables->db_options, blocks);
    rocksdb_block_based_options_destroy(blocks);
}

/* RocksDB's C functions do not know this one by itself: a part of a table must not be written when
 * it is closed. */
static void leave_shutdown_to_us(struct tables *tables)
{
    rocksdb_options_t *more = rocksdb_options_create();
    char *error = NULL;

    rocksdb_get_options_from_string(tables->db_options, "avoid_flush_during_shutdown=true", more,
                                    &error);
    assert(!error);
    rocksdb_free(error);
    rocksdb_options_destroy(tables->db_options);
    tables->db_options = more;
}

static void set_options(struct tables *tables)
{
    size_t table_bytes = tables->options.table_bytes;
    rocksdb_options_t *o = tables->db_options = rocksdb_options_create();

    rocksdb_options_set_create_if_missing(o, tables->options.missing);
    rocksdb_options_set_paranoid_checks(o, 1);
    /* Of stores of format 1. 0: a torn end of the log is forgiven, damage before it is not. */
    rocksdb_options_set_wal_recovery_mode(o, 0);
    rocksdb_options_set_write_buffer_size(o, MEMTABLE_BYTES);
    rocksdb_options_set_max_open_files(o, open_files());
    rocksdb_options_set_max_background_jobs(o, BACKGROUND_JOBS);
    rocksdb_options_set_disable_auto_compactions(o, tables->options.resting);
    rocksdb_options_set_level_compaction_dynamic_level_bytes(o, 1);
    rocksdb_options_set_level0_file_num_compaction_trigger(o, LEVEL0_COMPACT);
    rocksdb_options_set_level0_slowdown_writes_trigger(o, LEVEL0_SLOW);
    rocksdb_options_set_level0_stop_writes_trigger(o, LEVEL0_STOP);
    rocksdb_options_set_max_bytes_for_level_base(o, LEVEL1_TABLES * table_bytes);
    rocksdb_options_set_target_file_size_base(o, table_bytes);
    rocksdb_options_set_max_compaction_bytes(o, COMPACTION_TABLES * table_bytes);
    rocksdb_options_set_compression(o, tables->options.compress ? rocksdb_lz4_compression
                                                                : rocksdb_no_compression);
    rocksdb_options_set_keep_log_file_num(o, LOG_FILES);
    /*
     * RocksDB's file of messages is a hazard: in this build the second failed write to it aborts
     * the process, and errors elsewhere make it write. So it gets next to none.
     */
    rocksdb_options_set_info_log_level(o, LOG_LEVEL);
    rocksdb_options_set_stats_dump_period_sec(o, 0);
    rocksdb_options_set_stats_persist_period_sec(o, 0);
    set_block_options(tables);
    leave_shutdown_to_us(tables);
    tables->write_options = rocksdb_writeoptions_create();
    rocksdb_writeoptions_disable_WAL(tables->write_options, 1);
}

static enum hf_status open_database(struct hf_scope *s, struct tables *tables)
{
    char *error = NULL;
    enum hf_status status;
    bool ended;

    pthread_rwlock_rdlock(&rocksdb_in_use);
    ended = atomic_load(&has_ended);
    if (!ended)
        tables->db = open_rocksdb(tables, &error);
    pthread_rwlock_unlock(&rocksdb_in_use);
    if (ended)
        return hf__fail(s, HF_CANCELED, "The store in %s cannot be opened while the program ends",
                        tables->options.path);
    if (!error)
        return HF_OK;
    status = strcmp(error, NO_THREADS) == 0 ? HF_NOMEM : status_of(error);
    if (status == HF_LOCKED)
        hf__fail(s, status, "The store in %s is open already, in this or in another process",
                 tables->options.path);
    else
        hf__fail(s, status, "The store in %s cannot be opened: %s", tables->options.path, error);
    rocksdb_free(error);
    tables->db = NULL;
    return status;
}

static enum hf_status open_inside(struct hf_scope *s, struct tables *tables)
{
    set_options(tables);
    if (tables->options.missing && !has_threads(tables)) /* it is made later, by who writes */
        return hf__fail(s, HF_NOMEM, "The store in %s cannot be opened: " NO_THREADS,
                        tables->options.path);
    pthread_once(&options_made, note_end_at_exit);
    if (!tables->options.missing)
        TRY(open_database(s, tables));
    tables->newest = state_new(tables);
    return tables->newest ? HF_OK : hf__fail_nomem(s);
}

enum hf_status hf__tables_open(struct hf_scope *s, const struct tables_options *options,
                               struct tables **tables)
{
    struct tables *made = hf__env_alloc(options->env, sizeof(*made));
    enum hf_status status;

    *tables = NULL;
    if (!made)
        return hf__fail_nomem(s);
    *made = (struct tables){.env = *options->env, .options = *options};
    pthread_mutex_init(&made->iters_lock, NULL);
    pthread_rwlock_init(&made->in_use, NULL);
    status = open_inside(s, made);
    if (status != HF_OK)
        hf__tables_close(made);
    else
        *tables = made;
    return status;
}

void hf__tables_close(struct tables *tables)
{
    struct hf_env env;

    if (!tables)
        return;
    env = tables->env;
    hf__tables_release(tables->newest);
    close_rocksdb(tables->db);
    while (tables->iters) {
        struct tables_iter *iter = tables->iters;

        tables->iters = iter->next;
        iter_free(tables, iter);
    }
    if (tables->db_options) {
        rocksdb_options_destroy(tables->db_options);
        rocksdb_cache_destroy(tables->cache);
        rocksdb_writeoptions_destroy(tables->write_options);
    }
    pthread_mutex_destroy(&tables->iters_lock);
    pthread_rwlock_destroy(&tables->in_use);
    hf__env_free(&env, tables, sizeof(*tables));
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

/* ---- opening again -------------------------------------------------------------------------- */

bool hf__tables_lacks(const struct tables *tables)
{
    return tables->lacks;
}

/* Are there descriptors enough for an open? Others may take them meanwhile, of course. */
static bool has_descriptors(void)
{
    int fds[REOPEN_FILES];
    int len = 0;

    while (len < REOPEN_FILES && (fds[len] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0)
        len++;
    for (int i = 0; i < len; i++)
        close(fds[i]);
    return len == REOPEN_FILES;
}

/* Nobody comes, and who is there has some time to go. */
static bool wait_alone(struct tables *tables)
{
    for (int ms = 0; ms < REOPEN_MS; ms++) {
        if (atomic_load(&tables->states) == 1 && atomic_load(&tables->newest->refs) == 1)
            return true;
        usleep(1000);
    }
    return false;
}

/* Open the database, if it has what it had. */
static enum hf_status open_whole(struct hf_scope *s, struct tables *tables)
{
    uint64_t known = tables->last;
    struct tables_mark mark;

    TRY(open_database(s, tables));
    tables->is_down = false;
    state_fill(tables->newest, tables);
    TRY(hf__tables_mark(s, tables, &mark));
    if (mark.last >= known)
        return HF_OK;
    tables->last = known;
    return hf__fail(s, HF_CORRUPT, "they end at change %llu, and had %llu",
                    (unsigned long long)mark.last, (unsigned long long)known);
}

/* Close the database, if it is open, and open it. False: it is closed, and the log says why. */
static bool turn_over(struct tables *tables)
{
    struct hf_scope *s = hf_scope_new(&tables->env);
    enum hf_status status = s ? HF_OK : HF_NOMEM;

    if (s) {
        state_empty(tables->newest);
        close_rocksdb(tables->db);
        tables->db = NULL;
        tables->is_down = true;
        tables->tidies = false;
        rocksdb_options_set_create_if_missing(tables->db_options, 0);
        status = open_whole(s, tables);
    }
    if (status != HF_OK)
        hf__env_log(&tables->env, HF_LOG_ERROR, "store %s: the tables cannot be opened again: %s",
                    tables->options.path, s ? hf_scope_error_text(s) : hf_status_text(status));
    if (s && status != HF_OK) {
        if (tables->db)
            state_empty(tables->newest);
        close_rocksdb(tables->db);
        tables->db = NULL;
        tables->is_down = true;
        state_fill(tables->newest, tables);
    }
    hf_scope_free(s);
    return status == HF_OK;
}

bool hf__tables_reopen(struct tables *tables)
{
    if (!has_descriptors() || pthread_rwlock_trywrlock(&tables->in_use))
        return false;
    if (wait_alone(tables) && turn_over(tables)) {
        tables->lacks = false;
        hf__env_log(&tables->env, HF_LOG_WARNING,
                    "store %s: the tables were opened again, after a lack of descriptors or memory",
                    tables->options.path);
    }
    pthread_rwlock_unlock(&tables->in_use);
    return !tables->lacks;
}
