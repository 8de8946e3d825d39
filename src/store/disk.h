/*
 * store/disk.h: a store on disk, as its files share it: store_disk.c, store_space.c, replay.c and
 * maintenance.c.
 */
#ifndef HF_STORE_DISK_H
#define HF_STORE_DISK_H

#include <stdatomic.h>

#include "store/commit.h"
#include "store/memtable.h"
#include "store/private.h"
#include "store/store_dir.h"
#include "store/tables.h"

/* How an attempt to write tables ended. After TABLES_FAILED there is no other one. */
enum tables_end { TABLES_WRITTEN, TABLES_NO_ROOM, TABLES_NO_MEMORY, TABLES_LACK, TABLES_FAILED };

/* The state of maintenance.c. Only its thread uses members that are not said to be guarded. */
struct maintenance {
    pthread_t thread;
    bool has_thread;
    bool closing;              /* guarded by the commit's lock */
    atomic_bool wants_tables;  /* too much is in memory */
    atomic_bool wants_reclaim; /* changes were released */
    uint64_t tabled;           /* every change up to here is in tables */
    bool can_compact;          /* tables were written, maybe by a process before this one */
    bool fell_back;            /* writes were stopped, and memory has what is durable */
};

struct disk {
    struct hf__store base;
    struct store_options options;
    size_t map_bytes;           /* size up to which a map may grow */
    struct store_dir store_dir; /* its ballast is guarded by space_lock */
    struct tables *tables;
    struct memtable memtable;
    struct commit commit;
    struct maintenance maintenance;
    atomic_bool opened; /* all checks passed: a close may write */

    /* held while the free space is checked; writers may wait for it */
    pthread_mutex_t space_lock;
    atomic_uint_fast64_t unchecked; /* bytes written since the free space was last checked */
    atomic_uint_fast64_t looked;    /* number of syncs of the journal at that check */
    atomic_bool no_space;
    atomic_bool freed;            /* something was deleted since all tables were merged */
    atomic_uint_fast64_t largest; /* bytes of the largest batch that was larger than a table */

    atomic_uint_fast64_t released; /* no reader needs changes up to this one */
    atomic_bool fell_behind;       /* changes that were not released were given up, and noted */

    pthread_mutex_t stall_lock;
    pthread_cond_t attempted; /* signaled when an attempt to write tables ended */
    uint64_t attempts;
    enum tables_end tables_end;
    char lack[TABLES_ERROR_MAX]; /* what was lacking when an attempt ended in TABLES_LACK */
};

static inline bool disk_is_synced(const struct disk *disk)
{
    return disk->options.sync == STORE_SYNC_FULL || disk->options.sync == STORE_SYNC_BATCH;
}

/* Size of a file of the journal. */
static inline size_t disk_segment_bytes(const struct disk *disk)
{
    return disk->map_bytes / 5 * 2;
}

/* ---- store_space.c -------------------------------------------------------------------------- */

/* Check the free space: is there room for `bytes` more? Moves the ballast and sets no_space. */
bool hf__disk_has_room(struct disk *disk, uint64_t bytes, uint64_t *have, uint64_t *need);

/* Is there room for a batch of `bytes` that frees space in the end? */
bool hf__disk_can_free(struct disk *disk, uint64_t bytes);

/* Called before a batch of that size is written; `frees`: it frees space in the end. HF_NO_SPACE */
enum hf_status hf__disk_check_room(struct hf_scope *s, struct disk *disk, uint64_t bytes,
                                   bool frees);

/* Is there room for a table of the frozen map? A map takes more bytes than its table will. */
bool hf__disk_has_room_for_table(struct disk *disk);

/* One of the threads that wait for a sync checks the free space, so that files of the journal are
 * reclaimed in time. */
void hf__disk_look_between_syncs(struct disk *disk);

/* How many closed files of the journal may be kept. */
uint64_t hf__disk_files_kept(struct disk *disk);

/* ---- store_disk.c --------------------------------------------------------------------------- */

/* The error of a writer that has to wait for tables that cannot be written. */
enum hf_status hf__disk_fail_stalled(struct hf_scope *s, struct disk *disk, enum tables_end end);

/* ---- replay.c ------------------------------------------------------------------------------- */

/* A journal_replay_fn of an open: `user` is the struct disk. */
enum hf_status hf__disk_replay(struct hf_scope *s, void *user, struct hf_bytes record);

/* Writes are stopped: make memory what the next open will find. Called once. */
void hf__disk_fall_back(struct disk *disk);

/* ---- maintenance.c -------------------------------------------------------------------------- */

/* The journal is open: bring a store of an older format to this one, note that it is open, and
 * start the thread. */
enum hf_status hf__maintenance_start(struct hf_scope *s, struct disk *disk);
void hf__maintenance_stop(struct disk *disk);

/* Have tables written soon; failed attempts are repeated. */
void hf__maintenance_want_tables(struct disk *disk);

/* Changes were released: have files of the journal reclaimed soon. */
void hf__maintenance_want_reclaim(struct disk *disk);

/* Write everything that was applied so far to tables; false: not possible now. Called by the
 * maintenance thread, or while the store is opened or closed. If a table was added, *upto is the
 * newest change in tables, even when not everything was written. */
bool hf__disk_write_tables(struct disk *disk, uint64_t *upto);

#endif
