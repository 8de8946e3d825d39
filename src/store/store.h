/*
 * store/store.h: ordered bytes. The one seam between the engine and what keeps its data: a store on
 * disk, which is a journal, a memtable and tables of RocksDB; a store in memory, which is a map;
 * and a wrapper that makes either fail on demand.
 *
 * A store maps keys to values, both plain bytes, in the order of memcmp(). A key is not empty.
 * Reads are of the newest state or of a snapshot. Writes are batches that happen wholly or not at
 * all.
 *
 * A write has two steps, so that writers who wait for the disk hold nothing while they do:
 *
 *     hf__store_write(s, store, &batch, &ticket);   applied: every later read sees it
 *     hf__store_sync(s, store, ticket);             durable, as the store's sync mode says
 *
 * Threads that wait in hf__store_sync() at the same time are served by one fsync (the first of them
 * does it for all whose tickets it covers). Tickets grow in the order in which batches were
 * applied, so what is durable is always a prefix of what was applied.
 *
 * What always holds:
 *
 *  (1) With STORE_SYNC_FULL, hf__store_sync() returning HF_OK means: this batch and all before it
 *      survive kill -9 and power loss.
 *  (2) After the first failed write or fsync, of a batch or of a table that is written behind it,
 *      the store refuses every write with HF_STOPPED; reads go on, soon of what is durable alone.
 *      The write that failed reports `may_have_happened`.
 *  (3) RocksDB never meets a full disk: below the reserve, writes end in HF_NO_SPACE before
 *      anything was written, and work again once there is room. Those that make room are taken
 *      below it, too, out of a part that is kept for them.
 *  (4) Any thread may call anything here at any time, except that an iterator or a batch belongs
 *      to one thread.
 *  (5) A lack of descriptors or memory stops nothing for good: the write ends in HF_IO or HF_NOMEM
 *      with `may_retry`, nothing is written, and writes work again when the lack is over.
 */
#ifndef HF_STORE_STORE_H
#define HF_STORE_STORE_H

#include "base/base.h"
#include "base/buf.h"

struct hf__store;          /* an open store */
struct hf__store_snapshot; /* a state that stays as it is */
struct hf__store_iter;     /* a walk over a range */

enum store_sync {
    STORE_SYNC_FULL,  /* a ticket is durable when hf__store_sync() returns */
    STORE_SYNC_BATCH, /* durable within window_ms; hf__store_sync() does not wait */
    STORE_SYNC_NONE   /* whenever the system writes it out; a clean close makes it durable */
};

struct store_options {
    enum store_sync sync;
    uint32_t window_ms;     /* for STORE_SYNC_BATCH; default 100 */
    uint32_t quiet_ms;      /* tables are compacted after so long without writes; default 1000 */
    size_t memtable_bytes;  /* bytes of newest writes kept in memory; default 64 MiB */
    size_t cache_bytes;     /* cache of blocks that were read; default 32 MiB */
    uint64_t reserve_bytes; /* free space that is never written into; default from memtables */
    bool no_verify;         /* do not verify block checksums on reads */
    bool compress;          /* lz4 for what is flushed */
    bool bulk;              /* tables are merged less often; needs more room, or is not done */
    bool read_only;         /* nothing on disk is changed; writes end in HF_DENIED */
    bool no_create;         /* a store that does not exist is not created */
    uint64_t keep_bytes;    /* of the journal, for hf__store_changes(); 0: none is kept for that */
};

/* ---- opening -------------------------------------------------------------------------------- */

enum hf_status hf__store_open_memory(struct hf_scope *s, const struct hf_env *env,
                                     struct hf__store **store);

/*
 * Open or create the store in the directory `path`.
 *
 * HF_LOCKED   another process, or this one, has it open
 * HF_FORMAT   it was written by a newer version; the message has both numbers
 * HF_CORRUPT  it is damaged: a file is missing or broken; the message names it
 * HF_NO_SPACE the disk has less room than an open takes
 * HF_NOT_FOUND  there is none, with read_only or no_create
 * HF_INVALID  the directory holds something else
 */
enum hf_status hf__store_open_disk(struct hf_scope *s, const struct hf_env *env, struct hf_str path,
                                   const struct store_options *options, struct hf__store **store);

/* Flush, make durable, close. NULL is accepted. No iterator or snapshot may be open. */
void hf__store_close(struct hf__store *store);

/* ---- reading -------------------------------------------------------------------------------- */

/*
 * The value of `key`, copied into the scope; value->ptr is NULL when there is none. `snapshot`
 * NULL reads the newest state.
 */
enum hf_status hf__store_get(struct hf_scope *s, struct hf__store *store,
                             const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                             struct hf_bytes *value);

enum hf_status hf__store_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                       struct hf__store_snapshot **snapshot);
void hf__store_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot);

/*
 * Walk the keys in [lower, upper), forward or in reverse. An upper of length 0 is the end of all.
 * The walk sees one state: that of the snapshot, or of the moment it was opened. No lock is held
 * between calls: any thread may write meanwhile, the one that walks included. What an iterator or
 * a snapshot keeps from being freed grows with what is written while it is open, so neither should
 * stay open for long.
 */
struct store_range {
    struct hf_bytes lower;
    struct hf_bytes upper;
    bool reverse;
    bool fill_cache; /* keep what is read in the cache; false for long scans */
};
enum hf_status hf__store_iter_open(struct hf_scope *s, struct hf__store *store,
                                   const struct hf__store_snapshot *snapshot,
                                   const struct store_range *range, struct hf__store_iter **iter);

/*
 * Step to the next entry. *found is false at the end. Key and value are valid until the next step
 * or the close.
 */
enum hf_status hf__store_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                   struct hf_bytes *key, struct hf_bytes *value);
void hf__store_iter_close(struct hf__store_iter *iter);

/* ---- writing -------------------------------------------------------------------------------- */

/*
 * A batch is a list of changes in a scope; later ones win over earlier ones on the same key. Begin
 * with {.ops = {.scope = s}}. What does not fit is remembered in ops.failed.
 */
struct store_batch {
    struct hf__buf ops; /* struct batch_op of private.h */
    size_t count;       /* of the changes */
    size_t bytes;       /* of their keys and values */
    bool frees; /* it frees space in the end, so it may use the part of the reserve for that */
    bool opens; /* a few bytes that an open needs: the space was checked before */
};

enum { BATCH_HEAD_MAX = 4 }; /* bytes of a value's head */

/* Key and value are copied, as with the deletes below. */
void hf__batch_put(struct store_batch *batch, struct hf_bytes key, struct hf_bytes value);
/*
 * The value is head and body. The head is copied. Key and body are not: the caller keeps them until
 * the batch is written or dropped. `fresh`: the caller knows that the key has no value in the
 * newest state, and that it gets none before the batch is applied. A delete that follows soon
 * leaves no trace of such a key.
 */
void hf__batch_put_parts(struct store_batch *batch, struct hf_bytes key, struct hf_bytes head,
                         struct hf_bytes body, bool fresh);
void hf__batch_delete(struct store_batch *batch, struct hf_bytes key);
/* The keys in [lower, upper); nothing when lower >= upper, so an empty upper is not "the end". The
 * caller sees to it that nobody else writes to the range meanwhile. */
void hf__batch_delete_range(struct store_batch *batch, struct hf_bytes lower,
                            struct hf_bytes upper);

/*
 * Apply the batch. On success *ticket is what hf__store_sync() wants.
 *
 * HF_NO_SPACE  nothing was written; the disk is below the reserve
 * HF_DENIED    nothing was written; the store was opened read-only
 * HF_STOPPED   nothing was written; an earlier write or fsync failed
 * HF_IO        nothing was written; try again: see (5)
 * HF_NOMEM     nothing was written
 */
enum hf_status hf__store_write(struct hf_scope *s, struct hf__store *store,
                               const struct store_batch *batch, uint64_t *ticket);

/* Wait until `ticket` is as durable as the sync mode promises. HF_IO: it may be lost. */
enum hf_status hf__store_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket);

/* The newest ticket given out, and the newest that is durable. */
uint64_t hf__store_written(struct hf__store *store);
uint64_t hf__store_durable(struct hf__store *store);

/*
 * Is everything that is read from now on durable, whatever tickets say? That is so soon after (2):
 * changes that were applied and could not be made durable are taken back in memory, so that all
 * reads can go on. They may be there again after the next open.
 */
bool hf__store_is_rolled_back(const struct hf__store *store);

/* ---- changes, for backups ------------------------------------------------------------------- */

/*
 * Every batch is a change: a record of the journal, with its ticket as its number. A store that was
 * opened with keep_bytes keeps changes in files until hf__store_changes_release(), but never more
 * than keep_bytes of them, and none on a disk that is full: then those are gone that tables have.
 * Writers never wait for a reader.
 */

/* Where a reader of changes is. Begin with {.after = TICKET}. */
struct store_changes {
    uint64_t after; /* changes up to this one were read */
    uint64_t file;  /* the file that the next one is in, and where; 0: not known */
    uint64_t at;
};

/* Called with each change. The record lives until it returns. */
typedef enum hf_status store_change_fn(struct hf_scope *s, uint64_t ticket, struct hf_bytes record,
                                       void *user);

/*
 * Read changes behind changes->after in their order, up to `upto` at most, which is not above
 * hf__store_durable(), until `bytes` were read; a single one may be larger. changes->after moves on
 * with each.
 *
 * HF_NOT_FOUND    the next one is not there any more
 * HF_UNSUPPORTED  a store in memory has no journal
 * HF_IO, HF_NOMEM, and what `fn` returns
 */
enum hf_status hf__store_changes(struct hf_scope *s, struct hf__store *store,
                                 struct store_changes *changes, uint64_t upto, size_t bytes,
                                 store_change_fn *fn, void *user);

/* Nobody will read changes up to this one. */
void hf__store_changes_release(struct hf__store *store, uint64_t upto);

/* A snapshot, and the newest change in it. It may not be durable yet. */
enum hf_status hf__store_snapshot_at(struct hf_scope *s, struct hf__store *store,
                                     struct hf__store_snapshot **snapshot, uint64_t *ticket);

/* An id that no other store has; 0: a store in memory. */
uint64_t hf__store_id(struct hf__store *store);

/* Add what is in the record of a change, of whatever store, to a batch. The record is kept until the
 * batch is written. HF_CORRUPT: it is not one, or that of another change. HF_NOMEM. */
enum hf_status hf__batch_add_change(struct hf_scope *s, struct store_batch *batch, uint64_t ticket,
                                    struct hf_bytes record);

/* ---- care ----------------------------------------------------------------------------------- */

struct store_stats {
    uint64_t syncs;        /* fsyncs of the journal */
    uint64_t sync_waits;   /* tickets that waited for one */
    uint64_t disk_bytes;   /* 0 for memory */
    uint64_t memory_bytes; /* what the store itself holds: memtables, caches, or the whole map */
    bool stopped;          /* writes are refused for good */
    bool no_space;         /* writes are refused until there is room */
    bool read_only;        /* writes are refused */
    struct hf_str path;    /* of the directory, as long as the store is open; absent for memory */
    uint64_t kept_free;    /* bytes of its disk; 0 for memory */
    uint64_t table_bytes;  /* bytes of keys and values that hf__store_verify() reads, roughly */
    uint64_t data_bytes;   /* the same, with those that are in memory only */
    uint64_t kept_bytes;   /* files of the journal, with those that are kept for a reader */
};
void hf__store_stats(struct hf__store *store, struct store_stats *stats);

/* Reports the progress of long work: called now and then, with the bytes of keys and values that
 * were read since the last call. Anything but HF_OK ends the work, and is returned. */
struct store_watch {
    enum hf_status (*on_bytes)(struct hf_scope *s, uint64_t bytes, void *user);
    void *user;
};

enum { STORE_WATCH_KEYS = 256, STORE_WATCH_BYTES = 1024 * 1024 }; /* between two of its calls */

/*
 * Read and verify every block and file; `watch` may be NULL. The cache is emptied first, so that
 * blocks are read from the files.
 *
 * HF_CORRUPT  the message names what is damaged
 * HF_CANCELED, HF_TIMEOUT  by the scope
 */
enum hf_status hf__store_verify(struct hf_scope *s, struct hf__store *store,
                                const struct store_watch *watch);

/* ---- faults, for tests ---------------------------------------------------------------------- */

struct store_faults {
    uint64_t calls;        /* gets, snapshots, iterators, steps, writes and syncs so far */
    uint64_t fail_at;      /* the call that fails, from 1; 0: none */
    enum hf_status status; /* how: HF_IO (default), HF_NO_SPACE, HF_NOMEM */
    bool after;            /* a failing write takes effect all the same */
    const char *struck;    /* set to what failed: "get", "snapshot", "iterator", "step", ... */
};                         /* HF_IO from a write or sync also stops later writes, as (2) says */

/* Wrap `inner`, which is closed with it; `faults` is read at every call and may change. Nothing
 * counts as durable before it was synced, even if the inner store is one in memory. */
enum hf_status hf__store_open_with_faults(struct hf_scope *s, const struct hf_env *env,
                                          struct hf__store *inner, struct store_faults *faults,
                                          struct hf__store **store);

#endif
