/*
 * store/store_space.c: when the disk of a store is too full for a write.
 *
 * RocksDB on a full disk stops at best, and Debian's build may abort the process, so it must never
 * meet one. Before a write we ask the file system for its free space, every CHECK_BYTES of writes
 * and once per sync, and refuse below a reserve. The reserve is what may be written after the
 * last write that we let through:
 *
 *     the maps, which become tables                           memtable_bytes, or as large as they
 *                                                             are
 *     a compaction, which writes its output before            the tables there are, or what
 *     it drops its input                                      hf__tables_compaction() says
 *     logs and manifests, and writes between two checks       RESERVE_SLACK
 *
 * A batch that is larger than a table becomes a table of its own size. It is let through only if
 * there is room for it in the journal, in a table, and in a compaction.
 *
 * Batches that make room in the end, as deletes do, are taken below the reserve: they are let
 * through as long as there is room for the maps as large as they are, for a compaction, and for
 * half of RESERVE_SLACK. That is less than other batches need, by the other half and the ballast at
 * least. When the store is idle after that, all tables are merged, so that deleted data is removed
 * from the disk.
 *
 * An open takes next to nothing, OPEN_BYTES of store_disk.c. If there is less than the reserve, no
 * compaction starts, and what is replayed stays in memory; so a store that was killed opens, with
 * no_space.
 *
 * Below the reserve the ballast is emptied as well, and its space is still required: writes go on
 * when there is room for the reserve and the ballast. Another process can still fill the disk
 * between a check and a write; the reserve is there for that too.
 */
#include "store/disk.h"

enum {
    KIB = 1024,
    MIB = 1024 * KIB,
    RESERVE_SLACK = 16 * MIB,
    CHECK_BYTES = 256 * KIB,  /* bytes written between two checks of the free space */
    JOURNAL_TIMES = 4,        /* a journal may be this many times as large as memtable_bytes */
    JOURNAL_TIMES_SYNCED = 1, /* the same for a journal that is synced */
    JOURNAL_OF_FREE = 8       /* a journal may take at most this fraction (1/n) of the free space */
};

/* `frees`: the reserve for a batch that frees space in the end. */
static uint64_t reserve_bytes(struct disk *disk, bool frees)
{
    uint64_t compaction = hf__tables_compaction(disk->map_bytes, disk->options.bulk) +
                          2 * atomic_load(&disk->largest);
    uint64_t maps = 0;
    uint64_t tables;

    if (disk->options.reserve_bytes)
        return frees ? disk->options.reserve_bytes / 2 : disk->options.reserve_bytes;
    if (atomic_load(&disk->opened)) {
        tables = hf__tables_bytes(disk->tables);
        maps = hf__memtable_bytes(&disk->memtable);
    } else { /* an open: a journal is replayed into tables, and compactions start at once */
        tables = hf__store_dir_used_bytes(&disk->store_dir);
    }
    if (!frees && maps < disk->options.memtable_bytes)
        maps = disk->options.memtable_bytes;
    return maps + RESERVE_SLACK / (frees ? 2 : 1) + (tables < compaction ? tables : compaction);
}

/* Space that a batch of that size takes, now and when it is flushed and compacted. */
static uint64_t batch_room(const struct disk *disk, uint64_t bytes)
{
    return bytes <= disk->map_bytes ? bytes : 3 * bytes;
}

bool hf__disk_has_room(struct disk *disk, uint64_t bytes, uint64_t *have, uint64_t *need)
{
    bool room;

    assert(!disk->options.read_only);
    pthread_mutex_lock(&disk->space_lock);
    atomic_store_explicit(&disk->unchecked, 0, memory_order_relaxed);
    *have = hf__store_dir_free_bytes(&disk->store_dir);
    *need = reserve_bytes(disk, false) + bytes +
            (disk->store_dir.ballast_full ? 0 : STORE_DIR_BALLAST_BYTES);
    room = *have >= *need;
    if (!room && disk->store_dir.ballast_full)
        hf__store_dir_drop_ballast(&disk->store_dir);
    if (room && !disk->store_dir.ballast_full)
        hf__store_dir_fill_ballast(&disk->store_dir);
    if (!room && !atomic_load(&disk->no_space))
        hf__maintenance_want_tables(disk); /* after that, files of the journal can be reclaimed */
    if (room == atomic_load(&disk->no_space))
        hf__env_log(&disk->base.env, HF_LOG_WARNING, "store %s: %s (%llu bytes are free)",
                    disk->store_dir.path,
                    room ? "enough disk space again, writes are accepted"
                         : "too little disk space, writes are refused",
                    (unsigned long long)*have);
    atomic_store(&disk->no_space, !room);
    pthread_mutex_unlock(&disk->space_lock);
    return room;
}

bool hf__disk_can_free(struct disk *disk, uint64_t bytes)
{
    return hf__store_dir_free_bytes(&disk->store_dir) >=
           reserve_bytes(disk, true) + batch_room(disk, bytes);
}

void hf__disk_look_between_syncs(struct disk *disk)
{
    uint_fast64_t looked = atomic_load_explicit(&disk->looked, memory_order_relaxed);
    uint64_t syncs = atomic_load_explicit(&disk->commit.syncs, memory_order_relaxed);
    uint64_t have, need;

    if (looked != syncs && atomic_compare_exchange_strong(&disk->looked, &looked, syncs))
        hf__disk_has_room(disk, 0, &have, &need);
}

enum hf_status hf__disk_check_room(struct hf_scope *s, struct disk *disk, uint64_t bytes,
                                   bool frees)
{
    uint64_t before = atomic_fetch_add_explicit(&disk->unchecked, bytes, memory_order_relaxed);
    uint64_t have, need;

    assert(!disk->options.read_only);
    if (before + bytes < CHECK_BYTES && !atomic_load(&disk->no_space))
        return HF_OK;
    if (hf__disk_has_room(disk, batch_room(disk, bytes), &have, &need)) {
        if (bytes > disk->map_bytes && bytes > atomic_load(&disk->largest))
            atomic_store(&disk->largest, bytes);
        return HF_OK;
    }
    if (frees && hf__disk_can_free(disk, bytes)) {
        atomic_store(&disk->freed, true);
        return HF_OK;
    }
    return hf__fail(s, HF_NO_SPACE,
                    "The disk of the store in %s has %llu bytes free; writing needs %llu",
                    disk->store_dir.path, (unsigned long long)have, (unsigned long long)need);
}

bool hf__disk_has_room_for_table(struct disk *disk)
{
    uint64_t slack = RESERVE_SLACK / 2;

    if (disk->options.reserve_bytes && disk->options.reserve_bytes < slack)
        slack = disk->options.reserve_bytes;
    return hf__store_dir_free_bytes(&disk->store_dir) >=
           hf__memtable_frozen_bytes(&disk->memtable) + slack;
}

uint64_t hf__disk_files_kept(struct disk *disk)
{
    uint64_t times = disk_is_synced(disk) ? JOURNAL_TIMES_SYNCED : JOURNAL_TIMES;
    uint64_t bytes = times * disk->options.memtable_bytes;
    uint64_t free = hf__store_dir_free_bytes(&disk->store_dir) / JOURNAL_OF_FREE;

    if (atomic_load(&disk->no_space))
        return 0;
    return (bytes < free ? bytes : free) / disk_segment_bytes(disk);
}
