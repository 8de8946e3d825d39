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

/* What maintenance.c keeps. Its thread alone uses what is not said to be guarded. */
struct maintenance {
    pthread_t thread;
    bool has_thread;
    bool closing;             /* guarded by the commit's lock */
    atomic_bool wants_tables; /* too much is in memory */
    uint64_t tabled;          /* every change up to here is in tables */
    bool can_compact;         /* tables were written, maybe by a process before this one */
    bool fell_back;           /* writes were stopped, and memory has what is durable */
};

struct disk {
    struct hf__store base;
    struct store_options options;
    size_t map_bytes;           /* that a map may grow to */
    struct store_dir store_dir; /* its ballast is guarded by space_lock */
    struct tables *tables;
    struct memtable memtable;
    struct commit commit;
    struct maintenance maintenance;
    atomic_bool opened; /* all checks passed: a close may write */

    pthread_mutex_t space_lock;     /* held over looks at the disk, which writers may wait for */
    atomic_uint_fast64_t unchecked; /* bytes written since the last look, */
    atomic_uint_fast64_t looked;    /* when the journal had been synced so many times */
    atomic_bool no_space;
    atomic_bool freed;            /* something was, since all tables were merged */
    atomic_uint_fast64_t largest; /* bytes of the largest batch, if it was above a table */

    pthread_mutex_t stall_lock;
    pthread_cond_t attempted; /* an attempt to write tables ended: the next two changed */
    uint64_t attempts;
    enum tables_end tables_end;
    char lack[TABLES_ERROR_MAX]; /* what TABLES_LACK was for */
};

static inline bool disk_is_synced(const struct disk *disk)
{
    return disk->options.sync == STORE_SYNC_FULL || disk->options.sync == STORE_SYNC_BATCH;
}

/* Of a file of the journal. */
static inline size_t disk_segment_bytes(const struct disk *disk)
{
    return disk->map_bytes / 5 * 2;
}

/* ---- store_space.c -------------------------------------------------------------------------- */

/* Look at the disk: is there room for `bytes` more? Moves the ballast and sets no_space. */
bool hf__disk_has_room(struct disk *disk, uint64_t bytes, uint64_t *have, uint64_t *need);

/* Is there room for `bytes` of what makes room? */
bool hf__disk_can_free(struct disk *disk, uint64_t bytes);

/* Before a batch of that size is written; `frees`: it makes room in the end. HF_NO_SPACE */
enum hf_status hf__disk_check_room(struct hf_scope *s, struct disk *disk, uint64_t bytes,
                                   bool frees);

/* Is there room for a table of what is frozen? A map takes more than its table will. */
bool hf__disk_has_room_for_table(struct disk *disk);

/* Of those who wait for a sync one looks, so that what can be reclaimed is when it is needed. */
void hf__disk_look_between_syncs(struct disk *disk);

/* How many files of the journal may be kept although nothing is written to them any more. */
uint64_t hf__disk_files_kept(struct disk *disk);

/* ---- store_disk.c --------------------------------------------------------------------------- */

/* The error of who has to wait for tables that cannot be written. */
enum hf_status hf__disk_fail_stalled(struct hf_scope *s, struct disk *disk, enum tables_end end);

/* ---- replay.c ------------------------------------------------------------------------------- */

/* A journal_replay_fn of an open: `user` is the struct disk. */
enum hf_status hf__disk_replay(struct hf_scope *s, void *user, struct hf_bytes record);

/* Writes are stopped: have memory as it is after the next open. Once. */
void hf__disk_fall_back(struct disk *disk);

/* ---- maintenance.c -------------------------------------------------------------------------- */

/* The journal is open: bring a store of an older format to this one, note that it is open, and
 * start the thread. */
enum hf_status hf__maintenance_start(struct hf_scope *s, struct disk *disk);
void hf__maintenance_stop(struct disk *disk);

/* Have tables written soon; when that fails, again and again. */
void hf__maintenance_want_tables(struct disk *disk);

/* Have everything that was applied so far in tables, or false: not now. By the thread, or by who
 * opens or closes. Sets *upto to the newest change that is in tables, if one was added; also when
 * not everything is. */
bool hf__disk_write_tables(struct disk *disk, uint64_t *upto);

#endif
