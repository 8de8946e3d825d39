/*
 * store/tables_private.h: what the files that know RocksDB share: tables.c, tables_open.c and
 * tables_look.c.
 */
#ifndef HF_STORE_TABLES_PRIVATE_H
#define HF_STORE_TABLES_PRIVATE_H

#include "store/tables.h"

#include <pthread.h>
#include <stdatomic.h>

#include <rocksdb/c.h>

enum {
    LEVEL0_COMPACT = 4, /* number of files in level 0 at which a compaction starts */
    LEVEL0_SLOW = 16,   /* at which adding a table is slowed down */
    LEVEL0_STOP = 24,   /* at which adding a table waits */
    /* The same with `bulk`: the next level is written again by each compaction, so fewer write less. While one runs,
     * tables come as before; if they had to wait for it, a processor would do nothing. */
    BULK_COMPACT = 12,
    BULK_SLOW = 32,
    BULK_STOP = 36
};

struct tables_state {
    struct tables *tables;
    atomic_uint refs;
    const rocksdb_snapshot_t *snapshot; /* NULL: there is no database yet, or is_down */
    bool is_down;                       /* the database could not be reopened */
    rocksdb_readoptions_t *options;
    rocksdb_readoptions_t *cached; /* the same for what is in the cache */
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
    atomic_uint states; /* number of states that are in use */
    /* held for reading while the database is used without a state; a reopen waits */
    pthread_rwlock_t in_use;
    uint64_t last; /* the newest change that is known to be in tables */
    bool lacks;    /* it has to be opened again before something can be added */
    bool is_down;  /* it was closed for a reopen, and could not be opened */
    bool eager;    /* every file in level 0 starts a compaction */

    pthread_mutex_t iters_lock; /* guards the next two */
    struct tables_iter *iters;  /* spare ones */
    int iters_len;
};

/* ---- tables.c ------------------------------------------------------------------------------- */

/* Fill in a state of the database as it is now; and release what a state has of RocksDB. */
void hf__tables_state_fill(struct tables_state *state, struct tables *tables);
void hf__tables_state_empty(struct tables_state *state);

/* NULL: out of memory. */
struct tables_state *hf__tables_state_new(struct tables *tables);

void hf__tables_iter_free(struct tables *tables, struct tables_iter *iter);

/* The status for an error text of RocksDB. */
enum hf_status hf__tables_status_of(const char *error);

/* ---- tables_look.c -------------------------------------------------------------------------- */

/* Check the table files of that directory for damage on which RocksDB would end the process.
 * Returns an error text as RocksDB would write it, to be freed; NULL: none was found. */
char *hf__rocksdb_flaw(const char *path);

/* ---- tables_open.c -------------------------------------------------------------------------- */

/* Held for reading by a thread that is inside RocksDB. */
extern pthread_rwlock_t hf__rocksdb_in_use;
extern atomic_bool hf__rocksdb_ended; /* RocksDB must not be called any more */

/* Called with hf__rocksdb_in_use, and before hf__rocksdb_ended: an exit that begins meanwhile
 * waits. */
rocksdb_t *hf__rocksdb_open(const struct tables *tables, char **error);
void hf__rocksdb_close(rocksdb_t *db);
void hf__rocksdb_release(rocksdb_t *db, const rocksdb_snapshot_t *snapshot);

#endif
