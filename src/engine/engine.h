/*
 * engine/engine.h: the engine: its parts, their locks, opening it.
 *
 * Locks, in the order in which they are taken:
 *
 *     maintenance_lock  by a round of maintenance, and by a restore, which takes the next two, too
 *     counting          to count a table after a crash
 *     engine.schema     read by every operation on items until its write is applied; written by
 *                       operations on tables. So the schema cannot change under a write.
 *     latches           one of LATCH_COUNT per partition; a writer holds those of all partitions
 *                       that it reads and writes, taken in ascending order. Readers take none.
 *     sequencer.lock    briefly, to assign sequence numbers
 *     transfers.lock    briefly, for the progress of exports and imports
 *
 * What always holds:
 *
 *  (1) An item, its index entries, its stream record, its expiry entry and its transaction's token
 *      are written by one batch.
 *  (2) A call returns HF_OK only after what it wrote, or what it read with consistent reads, is as
 *      durable as the sync mode says.
 *  (3) No lock is held while waiting for the disk.
 */
#ifndef HF_ENGINE_ENGINE_H
#define HF_ENGINE_ENGINE_H

#include <holdfast/engine.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/assert_held.h"
#include "base/base.h"
#include "db/db.h"
#include "expr/cache.h"
#include "store/store.h"

struct hf__shipper;
struct table;
struct stream;
struct backup;
struct transfer;

enum { LATCH_COUNT = 1024 }; /* power of two */

/* Default limit of bytes that a database and a snapshot that is restored into it hold together. */
#define SNAPSHOT_MAX (UINT64_C(256) * 1024 * 1024)

struct catalog {
    struct table **tables; /* in the order of names */
    size_t len;
    size_t cap;
};

struct streams {
    struct stream **list; /* in the order of their ids */
    size_t len;
    size_t cap;
};

struct backups {
    struct backup **list; /* by tail */
    size_t len;
    size_t cap;
};

enum { TRANSFER_THREADS = 4 };

/* Exports and imports: transfer/transfers.c. Its lock is the last one that is taken. */
struct transfers {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct transfer *
        *list; /* by tail, the oldest first; grows with the schema locked for writing */
    size_t len;
    size_t cap;
    atomic_int importing; /* imports that run */
    bool threaded;        /* no: hf_engine_upkeep() does the work */
    bool stop;
    pthread_t threads[TRANSFER_THREADS];
    struct hf_scope *scopes[TRANSFER_THREADS]; /* are canceled when the database is closed */
    size_t threads_len;
    struct hf_str buckets; /* the URL where buckets are; absent: there are none */
};

struct sequencer {
    pthread_mutex_t lock;
    uint64_t next;
    uint64_t reserved; /* numbers below this are recorded as used */
    struct sequence_use *first;
    struct sequence_use *last;
};

/* Numbers that were assigned and whose records are not in the store yet. */
struct sequence_use {
    uint64_t from;
    uint64_t count;
    bool reserves; /* its batch records the end of a new block */
    struct sequence_use *before;
    struct sequence_use *after;
};

struct latch {
    pthread_mutex_t lock;
    atomic_uint_fast64_t ticket; /* of the newest write under it; see latch.c */
};

struct engine_maintenance {
    pthread_t thread;
    bool running;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    atomic_bool stop;
    bool woken; /* guarded by lock */
};

enum { ENGINE_OPENER_LEN = 16 };

struct engine {
    struct hf_db db;
    struct hf_env env;
    struct hf__store *store;
    enum hf__wording wording;
    struct hf_str region;
    struct hf_str account;
    uint32_t stream_shards;
    uint32_t max_tables;
    uint8_t secret[16];             /* of this database: signs stream iterators */
    char opener[ENGINE_OPENER_LEN]; /* of this opening: hf_db_opener() */
    struct hf_scope *memory;        /* region, account */
    pthread_rwlock_t schema;        /* to write: hf__schema_lock() */
    struct catalog catalog;         /* guarded by schema */
    struct streams streams;         /* guarded by schema */
    struct backups backups;         /* guarded by schema */
    struct transfers transfers;     /* see transfer/transfers.h */
    atomic_ullong restores;         /* how often it was set to a snapshot */
    uint32_t next_id; /* of tables, indexes, streams, backups; guarded by schema (write) */
    struct sequencer sequencer;
    struct latch latches[LATCH_COUNT];
    struct hf__expr_cache *cache;
    struct engine_maintenance maintenance;
    pthread_mutex_t maintenance_lock; /* held during a round of maintenance */
    pthread_mutex_t counting;
    struct hf__store_snapshot
        *opened;           /* after a crash, until all is counted; guarded by counting */
    uint64_t snapshot_max; /* bytes that a restore may replace and put, together */
    atomic_bool lost;      /* a failed restore left it unknown which tables exist; see snapshot.c */
    atomic_ullong fence_changes; /* how often an item of the table of fences was written, */
    atomic_ullong fence_seen;    /* and as of which of them tables are asked anew: write/fence.c */
    size_t key_filter_bytes;     /* of a table, at most: key_filter.h */
    struct hf__shipper *shipper; /* of the continuous backup; NULL: there is none */
    bool no_sync;
    bool in_memory; /* the store is */
    bool read_only; /* nothing is written: calls that would write end in HF_DENIED */
    pthread_mutex_t blobs_lock;
    struct hf_blobs
        *blobs; /* of a database in memory, once somebody asked; guarded by blobs_lock */
};

/* The engine behind a database; NULL when it is another kind of database. */
struct engine *hf__engine_of(struct hf_db *db);

/* HF_STOPPED when it is lost. */
enum hf_status hf__engine_fit(struct hf_scope *s, struct engine *e);

/* HF_DENIED when the database was opened read-only; the message says that `what` is refused. */
enum hf_status hf__engine_writable(struct hf_scope *s, const struct engine *e, struct hf_str what);

/*
 * Open the database in `store`, which is closed with it, also when this fails. For tests, which
 * have kinds of store that hf_open() does not make.
 */
enum hf_status hf__engine_open_on(struct hf_scope *s, struct hf__store *store,
                                  const struct hf_engine_options *options, struct hf_db **db);

/* ---- the schema lock ------------------------------------------------------------------------ */

/* Lock the schema to change it, without keeping readers out for long. */
void hf__schema_lock(struct engine *e);

/* Lock it for reading. It fails only for a caller that has no time to wait: hf__scope_may_wait(). */
enum hf_status hf__schema_read(struct hf_scope *s, struct engine *e);

/* Does any thread hold the schema lock, or hold it for writing? Which one is unknown. */
static inline bool schema_is_held(struct engine *e)
{
    if (pthread_rwlock_trywrlock(&e->schema) != 0)
        return true;
    pthread_rwlock_unlock(&e->schema);
    return false;
}

static inline bool schema_is_written(struct engine *e)
{
    if (pthread_rwlock_tryrdlock(&e->schema) != 0)
        return true;
    pthread_rwlock_unlock(&e->schema);
    return false;
}

#if DEV_CHECKS
#define ASSERT_SCHEMA_HELD(e) assert(schema_is_held(e))
#define ASSERT_SCHEMA_WRITTEN(e) assert(schema_is_written(e))
#else
#define ASSERT_SCHEMA_HELD(e) ((void)(e))
#define ASSERT_SCHEMA_WRITTEN(e) ((void)(e))
#endif

/* ---- durability, rows.c --------------------------------------------------------------------- */

/* Wait until the ticket is durable; a failure says that it may have happened. */
enum hf_status hf__engine_wait_durable(struct hf_scope *s, struct engine *e, uint64_t ticket);

/* Wait until a ticket of others, whose effect this call has seen, is durable. */
enum hf_status hf__engine_wait_durable_seen(struct hf_scope *s, struct engine *e, uint64_t ticket);

/* Wait until what a consistent read under that latch may have seen is durable. */
enum hf_status hf__engine_wait_durable_read(struct hf_scope *s, struct engine *e, size_t latch);

#endif
