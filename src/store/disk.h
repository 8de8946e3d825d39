/*
 * store/disk.h: a store on disk, as its files share it: store_disk.c and store_space.c.
 */
#ifndef HF_STORE_DISK_H
#define HF_STORE_DISK_H

#include <stdatomic.h>

#include "store/commit.h"
#include "store/front.h"
#include "store/home.h"
#include "store/private.h"
#include "store/tables.h"

/* How an attempt to write tables ended. After TABLES_FAILED there is no other one. */
enum tables_end { TABLES_WRITTEN, TABLES_NO_ROOM, TABLES_NO_MEMORY, TABLES_LACK, TABLES_FAILED };

struct disk {
    struct hf__store base;
    struct store_options options;
    size_t map_bytes; /* that a map may grow to */
    struct home home; /* its ballast is guarded by space_lock */
    struct tables *tables;
    struct front front;
    struct commit commit;
    atomic_bool opened; /* all checks passed: a close may write */

    pthread_mutex_t space_lock;     /* held over looks at the disk, which writers may wait for */
    atomic_uint_fast64_t unchecked; /* bytes written since the last look */
    atomic_bool no_space;
    atomic_bool freed;            /* something was, since all tables were merged */
    atomic_uint_fast64_t largest; /* bytes of the largest batch, if it was above a table */

    pthread_mutex_t stall_lock;
    pthread_cond_t settled; /* an attempt to write tables ended: the next two changed */
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

/* What commit.h asks for: a look before a sync, and how many files of the journal may stay. */
void hf__disk_look(void *user);
uint64_t hf__disk_files_kept(void *user);

#endif
