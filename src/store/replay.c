/*
 * store/replay.c: the changes of the journal, read into memory: by an open what tables do not have,
 * and after a stop what is known to be durable.
 *
 * What always holds:
 *
 *  (1) A change is replayed after all that came before it, and wholly or not at all.
 *  (2) What is replayed may be in tables already: it says the same as they do, or something newer.
 */
#include "store/disk.h"
#include "store/record.h"

/* Changes of the journal go to the maps of `memtable`, if they are not behind `upto`. */
struct replaying {
    struct disk *disk;
    struct memtable *memtable;
    uint64_t upto;
};

static enum hf_status replay_changes(struct hf_scope *s, const struct replaying *to,
                                     struct changes *changes, struct hf_bytes record)
{
    struct disk *disk = to->disk;
    uint64_t number = 0, upto = 0;
    bool good;

    TRY(hf__changes_read(changes, record, &number, &good));
    if (!good || number <= hf__memtable_last(to->memtable))
        return hf__fail(
            s, HF_CORRUPT,
            "The journal of the store in %s is damaged: change %llu has an invalid record",
            disk->store_dir.path, (unsigned long long)number);
    if (number > to->upto) {
        hf__changes_drop(changes);
        return HF_OK;
    }
    if (!hf__memtable_prepare(to->memtable, changes->entries, changes->len))
        return hf__fail_nomem(s);
    hf__memtable_apply(to->memtable, changes->entries, changes->len, number);
    changes->len = 0;
    if (to->memtable != &disk->memtable || disk->options.read_only ||
        hf__memtable_active_bytes(to->memtable) <= disk->map_bytes)
        return HF_OK;
    if (!hf__disk_write_tables(disk, &upto) && disk->tables_end != TABLES_NO_ROOM)
        return hf__disk_fail_stalled(s, disk, disk->tables_end);
    hf__marks_based(&disk->store_dir, upto);
    return HF_OK;
}

static enum hf_status replay_to(struct hf_scope *s, void *user, struct hf_bytes record)
{
    const struct replaying *to = user;
    struct hf__mark mark = hf__scope_mark(s);
    struct changes changes;
    enum hf_status status;

    hf__changes_init(&changes, s, &to->disk->base.env);
    status = replay_changes(s, to, &changes, record);
    if (status != HF_OK)
        hf__changes_drop(&changes);
    else
        hf__scope_rewind(s, mark);
    return status;
}

enum hf_status hf__disk_replay(struct hf_scope *s, void *user, struct hf_bytes record)
{
    struct disk *disk = user;
    struct replaying to = {.disk = disk, .memtable = &disk->memtable, .upto = UINT64_MAX};

    return replay_to(s, &to, record);
}

/* ---- after a stop --------------------------------------------------------------------------- */

/*
 * Memory has changes that a crash may take back, as they can no longer be made durable; consistent
 * reads would have to fail from then on. So memory is filled again, from tables and from the
 * durable part of the journal, as an open would do it. Threads that waited for one of the other
 * changes have got an error, which says that it may have happened.
 */
static enum hf_status take_back(struct hf_scope *s, struct disk *disk)
{
    struct memtable fresh = {.env = NULL};
    struct replaying to = {.disk = disk,
                           .memtable = &fresh,
                           .upto = atomic_load(&disk->commit.safe)};
    struct tables_mark mark;
    enum hf_status status;

    TRY(hf__tables_mark(s, disk->tables, &mark));
    status = hf__memtable_open(s, &fresh, &disk->base.env, hf__tables_newest(disk->tables));
    if (status == HF_OK && to.upto > mark.last)
        status = hf__journal_replay(s, disk->commit.journal, mark.last, to.upto, replay_to, &to);
    if (status != HF_OK) {
        hf__memtable_close(&fresh);
        return status;
    }
    hf__journal_begin(disk->commit.journal); /* waits for a thread that is appending */
    hf__memtable_replace(&disk->memtable, &fresh);
    hf__journal_end(disk->commit.journal);
    return HF_OK;
}

void hf__disk_fall_back(struct disk *disk)
{
    struct hf_scope *s = hf_scope_new(&disk->base.env);
    enum hf_status status = s ? take_back(s, disk) : HF_NOMEM;

    if (status == HF_OK)
        atomic_store(&disk->base.rolled_back, true);
    else
        hf__env_log(&disk->base.env, HF_LOG_ERROR,
                    "store %s: consistent reads fail until it is reopened: %s",
                    disk->store_dir.path, s ? hf_scope_error_text(s) : hf_status_text(status));
    hf_scope_free(s);
}
