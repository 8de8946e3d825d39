/*
 * store/tables_open.c: opening, closing and reopening RocksDB; and what happens when the program
 * ends before the store is closed. tables.c has the rest.
 *
 * A lack of descriptors or memory that RocksDB meets in a flush or a compaction is final for it: it
 * writes nothing more until it is opened again. Nothing was lost, as what is not in tables is in
 * the journal, so it is closed and opened again, when descriptors are there and nobody reads.
 */
#include "store/tables_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sched_slice.h"

#define NO_THREADS "no more threads can be started; raise the limit of processes (ulimit -u)"

enum {
    KIB = 1024,
    BLOCK_BYTES = 16 * KIB, /* a query looks up a fourth of the blocks of 4 KiB: decision 0013 */
    BLOOM_BITS = 10,
    OPEN_FILES = 512,    /* table files that RocksDB keeps open */
    OPEN_FILES_OF = 4,   /* but at most this fraction (1/n) of the limit of descriptors */
    OPEN_FILES_MIN = 20, /* and at least the minimum of RocksDB */
    REOPEN_FILES = 24,   /* descriptors that must be available for a reopen */
    REOPEN_MS = 200,     /* how long a reopen waits for readers to leave */
    BACKGROUND_JOBS = 2,
    /* threads that RocksDB keeps: jobs, its timer, and one to spare */
    OWN_THREADS = BACKGROUND_JOBS + 2,
    /* threads that RocksDB starts while it opens tables, at most */
    OPENING_THREADS = 16,
    LOG_FILES = 2,
    LOG_LEVEL = 4, /* fatal */
    MODE_DIRECTORY = 0700
};

static const size_t MEMTABLE_BYTES = SIZE_MAX / 4; /* see (1) of tables.c */

/* ---- the end of a program ------------------------------------------------------------------- */

/*
 * RocksDB has objects that are made with its first options, others with its first database, and
 * that end when the program calls exit(). A function that the program registered with atexit()
 * before them is called after their end. If it closes a store, RocksDB must not be called any more:
 * it would abort. Nothing is lost by that, as the journal has what tables lack.
 *
 * The same goes for a thread that is inside RocksDB when another one calls exit(), so our exit
 * function waits for it. It has to be registered after those objects are made. Those of the first
 * database are made even by an open that fails, so such an open comes before the real one.
 */
static pthread_once_t options_made = PTHREAD_ONCE_INIT;
static pthread_once_t database_made = PTHREAD_ONCE_INIT;
/* Prefers readers, so that a thread that holds it may take it again, as a failed make_database()
 * does. */
pthread_rwlock_t hf__rocksdb_in_use = PTHREAD_RWLOCK_INITIALIZER;
atomic_bool hf__rocksdb_ended;       /* RocksDB must not be called any more */
enum { LEFT_MAX = 64 };              /* threads that work at the exit leave one or two each */
static rocksdb_t *_Atomic left_open; /* so that leak checkers find these */
static const rocksdb_snapshot_t *_Atomic left_snapshots[LEFT_MAX];
static atomic_uint left_len;

static void note_end(void)
{
    atomic_store(&hf__rocksdb_ended, true); /* first, so that no thread enters from now on */
    pthread_rwlock_wrlock(&hf__rocksdb_in_use);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
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

/* RocksDB makes files and directories that everybody may read. So we make its directory ourselves.
 */
static bool shut_away(const char *path)
{
    struct stat info;

    if (mkdir(path, MODE_DIRECTORY) == 0)
        return true;
    if (errno != EEXIST || stat(path, &info))
        return false;
    return (info.st_mode & 077) == 0 || chmod(path, MODE_DIRECTORY) == 0;
}

/* RocksDB ends the process when it cannot start a thread. If few can be started, let it open its
 * table files one after the other; false: there are too few even for that. */
static bool has_threads(const struct tables *tables)
{
    unsigned threads = hf__threads_possible(OWN_THREADS + OPENING_THREADS);

    if (threads < OWN_THREADS)
        return false;
    rocksdb_options_set_max_file_opening_threads(
        tables->db_options, threads == OWN_THREADS ? 1 : (int)(threads - OWN_THREADS));
    return true;
}

rocksdb_t *hf__rocksdb_open(const struct tables *tables, char **error)
{
    rocksdb_t *db = NULL;
    uint64_t slice_ns;

    if (!has_threads(tables)) {
        *error = strdup(NO_THREADS);
        return NULL;
    }
    *error = hf__rocksdb_flaw(tables->options.db_path);
    if (*error)
        return NULL;
    slice_ns = sched_slice_set(SHORT_SLICE_NS); /* for RocksDB's threads */
    pthread_once(&database_made, make_objects);
    if (tables->options.read_only)
        db = rocksdb_open_for_read_only(tables->db_options, tables->options.db_path, 0, error);
    else if (!shut_away(tables->options.db_path))
        *error = strdup("cannot set the mode of its directory");
    else
        db = rocksdb_open(tables->db_options, tables->options.db_path, error);
    if (slice_ns)
        (void)sched_slice_set(slice_ns);
    return db;
}

void hf__rocksdb_close(rocksdb_t *db)
{
    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    if (atomic_load(&hf__rocksdb_ended))
        atomic_store(&left_open, db);
    else if (db)
        rocksdb_close(db);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
}

void hf__rocksdb_release(rocksdb_t *db, const rocksdb_snapshot_t *snapshot)
{
    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    if (atomic_load(&hf__rocksdb_ended)) /* releasing one may start a compaction */
        atomic_store(&left_snapshots[atomic_fetch_add(&left_len, 1) % LEFT_MAX], snapshot);
    else
        rocksdb_release_snapshot(db, snapshot);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
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

/* RocksDB's C functions have no setter for this option: a close must not flush an incomplete
 * memtable. */
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
    bool bulk = tables->options.bulk;
    int level0 = bulk ? BULK_COMPACT : LEVEL0_COMPACT; /* level 1 takes as many */
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
    rocksdb_options_set_level0_file_num_compaction_trigger(o, level0);
    rocksdb_options_set_level0_slowdown_writes_trigger(o, bulk ? BULK_SLOW : LEVEL0_SLOW);
    rocksdb_options_set_level0_stop_writes_trigger(o, bulk ? BULK_STOP : LEVEL0_STOP);
    rocksdb_options_set_max_bytes_for_level_base(o, (uint64_t)level0 * table_bytes);
    rocksdb_options_set_target_file_size_base(o, table_bytes);
    rocksdb_options_set_max_compaction_bytes(o, hf__tables_compaction(table_bytes, bulk));
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

    pthread_rwlock_rdlock(&hf__rocksdb_in_use);
    ended = atomic_load(&hf__rocksdb_ended);
    if (!ended)
        tables->db = hf__rocksdb_open(tables, &error);
    pthread_rwlock_unlock(&hf__rocksdb_in_use);
    if (ended)
        return hf__fail(s, HF_CANCELED, "The store in %s cannot be opened while the program exits",
                        tables->options.path);
    if (!error)
        return HF_OK;
    status = strcmp(error, NO_THREADS) == 0 ? HF_LIMIT : hf__tables_status_of(error);
    if (status == HF_LOCKED)
        hf__fail(s, status, "The store in %s is already open in this or another process",
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
    /* it is made later, by the first write of a table */
    if (tables->options.missing && !has_threads(tables))
        return hf__fail(s, HF_LIMIT, "The store in %s cannot be opened: " NO_THREADS,
                        tables->options.path);
    pthread_once(&options_made, note_end_at_exit);
    if (!tables->options.missing)
        TRY(open_database(s, tables));
    tables->newest = hf__tables_state_new(tables);
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
    hf__rocksdb_close(tables->db);
    while (tables->iters) {
        struct tables_iter *iter = tables->iters;

        tables->iters = iter->next;
        hf__tables_iter_free(tables, iter);
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

/* ---- opening again -------------------------------------------------------------------------- */

bool hf__tables_lacks(const struct tables *tables)
{
    return tables->lacks;
}

/* Are there enough descriptors for an open? Other threads may still take them. */
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

/* Keep new readers out, and wait a while for those that are inside. */
static bool wait_alone(struct tables *tables)
{
    for (int ms = 0; ms < REOPEN_MS; ms++) {
        if (atomic_load(&tables->states) == 1 && atomic_load(&tables->newest->refs) == 1)
            return true;
        usleep(1000);
    }
    return false;
}

/* Open the database, if its tables have every change that they had. */
static enum hf_status open_whole(struct hf_scope *s, struct tables *tables)
{
    uint64_t known = tables->last;
    struct tables_mark mark;

    TRY(open_database(s, tables));
    tables->is_down = false;
    hf__tables_state_fill(tables->newest, tables);
    TRY(hf__tables_mark(s, tables, &mark));
    if (mark.last >= known)
        return HF_OK;
    tables->last = known;
    return hf__fail(s, HF_CORRUPT, "they end at change %llu, expected %llu",
                    (unsigned long long)mark.last, (unsigned long long)known);
}

/* Close the database, if it is open, and open it. False: it is closed, and the log says why. */
static bool reopen_database(struct tables *tables)
{
    struct hf_scope *s = hf_scope_new(&tables->env);
    enum hf_status status = s ? HF_OK : HF_NOMEM;

    if (s) {
        hf__tables_state_empty(tables->newest);
        hf__rocksdb_close(tables->db);
        tables->db = NULL;
        tables->is_down = true;
        tables->eager = false;
        rocksdb_options_set_create_if_missing(tables->db_options, 0);
        status = open_whole(s, tables);
    }
    if (status != HF_OK)
        hf__env_log(&tables->env, HF_LOG_ERROR, "store %s: cannot reopen the table files: %s",
                    tables->options.path, s ? hf_scope_error_text(s) : hf_status_text(status));
    if (s && status != HF_OK) {
        if (tables->db)
            hf__tables_state_empty(tables->newest);
        hf__rocksdb_close(tables->db);
        tables->db = NULL;
        tables->is_down = true;
        hf__tables_state_fill(tables->newest, tables);
    }
    hf_scope_free(s);
    return status == HF_OK;
}

bool hf__tables_reopen(struct tables *tables)
{
    if (!has_descriptors() || pthread_rwlock_trywrlock(&tables->in_use))
        return false;
    if (wait_alone(tables) && reopen_database(tables)) {
        tables->lacks = false;
        hf__env_log(&tables->env, HF_LOG_WARNING,
                    "store %s: reopened the table files after running out of descriptors or memory",
                    tables->options.path);
    }
    pthread_rwlock_unlock(&tables->in_use);
    return !tables->lacks;
}
