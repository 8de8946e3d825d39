/*
 * store/tables.h: sorted tables on disk, in RocksDB. Only tables.c and tables_open.c know it; its
 * error strings become statuses there.
 *
 * Tables are never changed: a whole one, made from a map, is added, and from then on the tables as
 * a whole have every change up to its last. What they hold at one moment is a state, which stays
 * readable as long as somebody keeps it.
 */
#ifndef HF_STORE_TABLES_H
#define HF_STORE_TABLES_H

#include "store/map.h"
#include "store/store.h"

struct tables;       /* an open database */
struct tables_state; /* what it held at one moment */
struct tables_iter;  /* a walk over a range of a state */

struct tables_options {
    const struct hf_env *env; /* all of these outlive the tables */
    const char *path;         /* of the store */
    const char *db_path;      /* of the database */
    size_t table_bytes;       /* of a table, about */
    size_t cache_bytes;
    bool missing; /* there is no database yet: it is made with its first table */
    bool read_only;
    bool resting; /* no compactions before hf__tables_awake(), for lack of space */
    bool no_verify;
    bool compress;
    bool bulk; /* merged less often */
};

/* The mark of the tables: how far they go, and the state of the store when the newest was written.
 */
struct tables_mark {
    bool whole;        /* false: the id and all behind it are not there: format 2 had only `last` */
    uint64_t last;     /* the newest change that is in them; 0: there is none */
    uint64_t id;       /* of the store */
    uint64_t durable;  /* every change up to here was durable */
    uint64_t segment;  /* the file of the journal that was written to */
    uint64_t sequence; /* RocksDB's own count of changes, which was that of stores of format 1 */
};

/*
 * Read the mark and nothing else, and change nothing: RocksDB opens the database as one that cannot
 * be written to, so that it removes no file that it takes for an obsolete one.
 */
enum hf_status hf__tables_look(struct hf_scope *s, const struct tables_options *options,
                               struct tables_mark *mark);

/* The most bytes that a compaction writes before it frees any. */
uint64_t hf__tables_compaction(size_t table_bytes, bool bulk);

/* HF_LOCKED, HF_CORRUPT, HF_NO_SPACE, HF_IO, HF_NOMEM */
enum hf_status hf__tables_open(struct hf_scope *s, const struct tables_options *options,
                               struct tables **tables);

/* All states but the newest were released. NULL is accepted. */
void hf__tables_close(struct tables *tables);

/* All 0: there is none. */
enum hf_status hf__tables_mark(struct hf_scope *s, struct tables *tables, struct tables_mark *mark);

/*
 * Add a table with everything in the map, whose newest change is the mark's. Entries that are gone
 * hide older ones. One thread at a time.
 *
 * HF_OK     it is durable, and in the newest state
 * HF_NOMEM  it is not in the newest state; add it again
 * HF_CANCELED  the program is ending, and RocksDB has ended before us
 * HF_LIMIT  there was a lack of descriptors or memory, as `error` says; see below, and add it again
 * HF_IO     RocksDB has failed, and writes nothing more until it is opened again; `error` says how
 */
enum { TABLES_ERROR_MAX = 300 };
enum hf_status hf__tables_add(struct tables *tables, const struct map_node *root,
                              const struct tables_mark *mark, char error[TABLES_ERROR_MAX]);

/* There is enough space: allow compactions. False: that failed. */
bool hf__tables_awake(struct tables *tables);

/* Has HF_LIMIT left RocksDB unusable? Then nothing may be added before hf__tables_reopen(). */
bool hf__tables_lacks(const struct tables *tables);

/* Reopen RocksDB. Nobody takes a state meanwhile, and the caller has none. False: not possible now;
 * the newest state may be one that cannot be read. */
bool hf__tables_reopen(struct tables *tables);

/* Merge all tables, so that deleted data is removed from the disk. Blocks until it is done or
 * hf__tables_hurry() is called. */
void hf__tables_compact(struct tables *tables);

/* Stop a merge of all tables that runs, and all later ones. Any thread may call this. */
void hf__tables_hurry(struct tables *tables);

/* The store is idle: merge recently added tables with the rest, in the background, so that reads
 * have fewer files to look at. Called only by the thread that calls hf__tables_add(). False: that
 * failed. */
bool hf__tables_compact_idle(struct tables *tables);

/* ---- reading -------------------------------------------------------------------------------- */

/* The newest state, to be released by the caller. Not while another thread is in hf__tables_add().
 */
struct tables_state *hf__tables_newest(struct tables *tables);
struct tables_state *hf__tables_retain(struct tables_state *state);
void hf__tables_release(struct tables_state *state);

/* The value in the scope; value->ptr stays as it is when there is none. */
enum hf_status hf__tables_get(struct hf_scope *s, struct tables_state *state, struct hf_bytes key,
                              struct hf_bytes *value);

/* A walk as in store.h. *iter is NULL when the range is certainly empty. The caller keeps the state
 * meanwhile. */
enum hf_status hf__tables_iter_open(struct hf_scope *s, struct tables_state *state,
                                    const struct store_range *range, struct tables_iter **iter);
enum hf_status hf__tables_iter_next(struct hf_scope *s, struct tables_iter *iter, bool *found,
                                    struct hf_bytes *key, struct hf_bytes *value);
void hf__tables_iter_close(struct tables_iter *iter); /* NULL is accepted */

/* ---- threads.c ------------------------------------------------------------------------------ */

enum { THREADS_TRIED_MAX = 32 };

/* How many threads can be started at once, of so many and THREADS_TRIED_MAX at most. */
unsigned hf__threads_possible(unsigned wanted);

/* ---- care ----------------------------------------------------------------------------------- */

uint64_t hf__tables_bytes(struct tables *tables);  /* on disk */
uint64_t hf__tables_memory(struct tables *tables); /* of caches and indexes */

/* Read and verify every block and file, as in store.h. */
enum hf_status hf__tables_verify(struct hf_scope *s, struct tables *tables,
                                 const struct store_watch *watch);

#endif
