/*
 * store/maintenance.c: the thread of a store on disk that works behind its writers.
 *
 *     tables      written from the frozen map, when the active one or the journal is large
 *     the journal is preallocated ahead of its end; files that tables have all of are reclaimed
 *     compaction  of tables, when next to nothing was written for a while
 *     a stop      memory falls back to what is durable
 *
 * The thread waits at the commit's condition `work`. A flush signals it when the journal needs
 * work, a stop when writes are stopped, and hf__maintenance_want_tables() when there is anything
 * else to do. What fails for lack of room, memory or descriptors is tried again every RETRY_MS.
 *
 * What always holds:
 *
 *  (1) A file of the journal is reclaimed only after the database had its changes in tables, and
 *      after that was noted durably.
 *  (2) Tables are written by one thread at a time: this one, or the one that opens
 *      or closes the store.
 *  (3) A reader of changes (hf__store_changes()) keeps files of the journal that tables have all of,
 *      up to keep_bytes; then it loses all of them at once, as one is of no use to it without the
 *      others.
 */
#include "store/disk.h"

#include <errno.h>

#include "base/assert_held.h"
#include "base/cond_monotonic.h"
#include "base/kill.h"
#include "base/sched_slice.h"

enum {
    RETRY_MS = 1000,     /* how long before what failed is tried again */
    QUIET_CHANGES = 100, /* changes per quiet_ms up to which the store counts as idle */
    /* changes that the journal alone may hold: replaying them takes about a second */
    CHANGES_KEPT = 1000000
};

/* ---- writing tables ------------------------------------------------------------------------- */

/* The mark of tables that have every change up to `last`. No other thread exists while the journal
 * is read. */
static struct tables_mark mark_now(struct disk *disk, uint64_t last)
{
    struct journal *journal = disk->commit.journal;

    return (struct tables_mark){
        .last = last,
        .id = disk->store_dir.id,
        .durable = journal ? atomic_load(&disk->commit.durable) : disk->store_dir.marks.durable,
        .segment = journal ? hf__journal_number(journal) : disk->store_dir.marks.segment,
    };
}

static void note_lack(struct disk *disk, const char *error)
{
    pthread_mutex_lock(&disk->stall_lock);
    snprintf(disk->lack, sizeof(disk->lack), "%s", error);
    pthread_mutex_unlock(&disk->stall_lock);
    hf__env_log(&disk->base.env, HF_LOG_WARNING,
                "store %s: cannot write a table file, will retry: %s", disk->store_dir.path, error);
}

static enum tables_end write_frozen(struct disk *disk, uint64_t *upto)
{
    char error[TABLES_ERROR_MAX];
    const struct map_node *root;
    struct tables_mark mark;
    enum hf_status status;
    uint64_t last;

    if (!hf__memtable_frozen(&disk->memtable, &root, &last))
        return TABLES_WRITTEN;
    if (!hf__disk_has_room_for_table(disk))
        return TABLES_NO_ROOM;
    if (hf__tables_lacks(disk->tables) && !hf__memtable_reopen(&disk->memtable, disk->tables))
        return TABLES_LACK;
    mark = mark_now(disk, last);
    status = hf__tables_add(disk->tables, root, &mark, error);
    if (status == HF_LIMIT) {
        note_lack(disk, error);
        return TABLES_LACK;
    }
    if (status == HF_NOMEM || status == HF_CANCELED)
        return TABLES_NO_MEMORY;
    if (status != HF_OK) {
        hf__commit_stop(&disk->commit, "writing a table file", error); /* the journal has it all */
        return TABLES_FAILED;
    }
    *upto = last;
    hf__memtable_flushed(&disk->memtable, hf__tables_newest(disk->tables));
    return TABLES_WRITTEN;
}

/* A map that an earlier attempt has frozen comes first. */
static enum tables_end write_all(struct disk *disk, uint64_t *upto)
{
    enum tables_end end;
    bool frozen;

    if (hf__disk_can_free(disk, 0))
        (void)hf__tables_awake(disk->tables); /* or with the next one */
    end = write_frozen(disk, upto);
    if (end != TABLES_WRITTEN)
        return end;
    if (disk->commit.journal)
        hf__journal_begin(disk->commit.journal);
    frozen = hf__memtable_freeze(&disk->memtable);
    if (disk->commit.journal)
        hf__journal_end(disk->commit.journal);
    return frozen ? write_frozen(disk, upto) : TABLES_NO_MEMORY;
}

bool hf__disk_write_tables(struct disk *disk, uint64_t *upto)
{
    enum tables_end end = write_all(disk, upto);

    pthread_mutex_lock(&disk->stall_lock);
    disk->attempts++;
    disk->tables_end = end;
    pthread_cond_broadcast(&disk->attempted);
    pthread_mutex_unlock(&disk->stall_lock);
    return end == TABLES_WRITTEN;
}

/* The same, and note it for the next open. */
static bool write_and_note(struct disk *disk)
{
    struct maintenance *m = &disk->maintenance;
    /* read before, as more may be appended meanwhile */
    uint64_t last = hf__journal_last(disk->commit.journal);
    uint64_t upto = 0;
    bool done = hf__disk_write_tables(disk, &upto);

    m->can_compact |= upto > 0;
    if (done && upto < last)
        upto = last;
    if (upto <= m->tabled)
        return done;
    assert(upto <= hf__journal_last(disk->commit.journal));
    m->tabled = upto;
    if (done) /* otherwise tables may have more, and nobody knows how much */
        hf__commit_note_manifest(&disk->commit, m->tabled);
    return done;
}

/* ---- compacting ----------------------------------------------------------------------------- */

/* The disk is full of deleted data: merge all tables once they contain the deletions. */
static void make_room(struct disk *disk)
{
    if (!hf__disk_can_free(disk, 0) || !atomic_load(&disk->freed))
        return;
    if (hf__memtable_bytes(&disk->memtable) > 0) {
        hf__maintenance_want_tables(disk);
        return;
    }
    atomic_store(&disk->freed, false);
    hf__tables_compact(disk->tables);
}

/* Start a compaction: tables were written, and the store has been idle since. It needs free space.
 * False: not possible now. */
static bool compact_idle(struct disk *disk)
{
    uint64_t have, need;

    if (hf__disk_can_free(disk, 0) && !hf__tables_awake(disk->tables))
        return false;
    if (hf__disk_has_room(disk, 0, &have, &need))
        return hf__tables_compact_idle(disk->tables);
    make_room(disk);
    return false;
}

/* ---- the journal ---------------------------------------------------------------------------- */

/* Every change up to this one is in tables, and nobody reads it: (3). */
static uint64_t unneeded_changes(struct disk *disk)
{
    uint64_t tabled = disk->maintenance.tabled, released = atomic_load(&disk->released);

    if (!disk->options.keep_bytes || released >= tabled)
        return tabled;
    if (!atomic_load(&disk->no_space) &&
        hf__journal_bytes(disk->commit.journal) <= disk->options.keep_bytes)
        return released;
    if (!atomic_exchange(&disk->fell_behind, true))
        hf__env_log(
            &disk->base.env, HF_LOG_WARNING,
            "store %s: the backup is too far behind: changes from %llu to %llu are not kept "
            "for it any longer",
            disk->store_dir.path, (unsigned long long)released + 1, (unsigned long long)tabled);
    return tabled;
}

/* Reclaim files of the journal whose changes are in tables. As many as can be closed at a time
 * stay, to be reused. False: not possible now. */
static bool reclaim_files(struct disk *disk, uint64_t kept)
{
    struct journal *journal = disk->commit.journal;
    uint64_t spares = kept + 1;
    uint64_t number;

    if (!hf__journal_reclaimable(journal, unneeded_changes(disk), &number)) {
        hf__journal_reclaim(journal, number, spares);
        return true;
    }
    hf__kill_point("journal_tables");
    if (!hf__commit_note_tables(&disk->commit, disk->maintenance.tabled))
        return false;
    hf__kill_point("journal_based");
    hf__journal_reclaim(journal, number, spares);
    hf__kill_point("journal_trimmed");
    return true;
}

static bool is_journal_long(struct disk *disk, uint64_t kept)
{
    struct journal *journal = disk->commit.journal;

    return hf__journal_closed_count(journal, disk->maintenance.tabled) > kept ||
           hf__journal_last(journal) > disk->maintenance.tabled + CHANGES_KEPT;
}

/* Keep the journal from growing too long. False: not possible now. */
static bool shorten_journal(struct disk *disk)
{
    uint64_t kept = hf__disk_files_kept(disk);

    hf__commit_note_segment(&disk->commit);
    if (!reclaim_files(disk, kept))
        return false;
    if (!is_journal_long(disk, kept))
        return true;
    return !atomic_load(&disk->commit.stopped) && write_and_note(disk) && reclaim_files(disk, kept);
}

/* ---- the thread ----------------------------------------------------------------------------- */

void hf__maintenance_want_tables(struct disk *disk)
{
    struct commit *commit = &disk->commit;

    atomic_store(&disk->maintenance.wants_tables, true);
    pthread_mutex_lock(&commit->lock);
    pthread_cond_signal(&commit->work);
    pthread_mutex_unlock(&commit->lock);
}

void hf__maintenance_want_reclaim(struct disk *disk)
{
    struct commit *commit = &disk->commit;

    atomic_store(&disk->maintenance.wants_reclaim, true);
    pthread_mutex_lock(&commit->lock);
    pthread_cond_signal(&commit->work);
    pthread_mutex_unlock(&commit->lock);
}

/* Wait until there is work; after enough idle time that is a compaction. */
static void wait_for_work(struct disk *disk)
{
    struct commit *commit = &disk->commit;
    struct maintenance *m = &disk->maintenance;
    uint64_t last = hf__journal_last(commit->journal);

    ASSERT_HELD(&commit->lock);
    assert(m->tabled <= last);
    if (!m->can_compact) {
        pthread_cond_wait(&commit->work, &commit->lock);
        return;
    }
    if (cond_wait_ms(&commit->work, &commit->lock, disk->options.quiet_ms) != ETIMEDOUT ||
        m->closing || hf__journal_last(commit->journal) > last + QUIET_CHANGES)
        return;
    pthread_mutex_unlock(&commit->lock);
    m->can_compact = !atomic_load(&commit->stopped) && !compact_idle(disk);
    pthread_mutex_lock(&commit->lock);
}

/* Do all work that is due. False: some of it has to be tried again. */
static bool work_once(struct disk *disk)
{
    struct maintenance *m = &disk->maintenance;
    bool done = hf__journal_preallocate(disk->commit.journal);

    atomic_store(&m->wants_reclaim, false);
    if (atomic_exchange(&m->wants_tables, false) && !atomic_load(&disk->commit.stopped) &&
        !write_and_note(disk)) {
        atomic_store(&m->wants_tables, true);
        done = false;
    }
    return shorten_journal(disk) && done;
}

static bool is_work_due(struct disk *disk)
{
    return hf__journal_needs_work(disk->commit.journal) ||
           atomic_load(&disk->maintenance.wants_tables) ||
           atomic_load(&disk->maintenance.wants_reclaim);
}

/* Called once, when writes are stopped. The lock is released meanwhile. */
static void fall_back(struct disk *disk)
{
    ASSERT_HELD(&disk->commit.lock);
    assert(!disk->maintenance.fell_back);
    disk->maintenance.fell_back = true;
    pthread_mutex_unlock(&disk->commit.lock);
    hf__commit_quiesce(&disk->commit);
    hf__disk_fall_back(disk);
    pthread_mutex_lock(&disk->commit.lock);
}

static void *maintenance_thread(void *user)
{
    struct disk *disk = user;
    struct commit *commit = &disk->commit;
    struct maintenance *m = &disk->maintenance;
    bool done = false; /* an open may have left files behind */

    (void)sched_slice_set(SHORT_SLICE_NS);
    m->can_compact = true;
    pthread_mutex_lock(&commit->lock);
    while (!m->closing) {
        if (atomic_load(&commit->stopped) && !m->fell_back) {
            fall_back(disk);
            continue;
        }
        if (done && !is_work_due(disk)) {
            wait_for_work(disk);
            continue;
        }
        pthread_mutex_unlock(&commit->lock);
        done = work_once(disk);
        pthread_mutex_lock(&commit->lock);
        if (!done && !m->closing)
            cond_wait_ms(&commit->work, &commit->lock, RETRY_MS);
    }
    pthread_mutex_unlock(&commit->lock);
    return NULL;
}

/* ---- starting and stopping ------------------------------------------------------------------ */

/* Upgrade a store of an older format: its tables get a mark and everything from its journal. */
static enum hf_status upgrade_format(struct hf_scope *s, struct disk *disk, uint64_t last)
{
    const struct tables_mark mark = mark_now(disk, last);
    char error[TABLES_ERROR_MAX] = "";
    uint64_t upto = 0;

    if (!hf__disk_write_tables(disk, &upto))
        return hf__disk_fail_stalled(s, disk, disk->tables_end);
    if (upto == last || !disk->store_dir.has_database)
        return HF_OK;
    if (hf__tables_add(disk->tables, NULL, &mark, error) != HF_OK)
        return hf__fail(s, HF_IO, "Cannot upgrade the store in %s to format %d: %s",
                        disk->store_dir.path, STORE_DIR_FORMAT, error);
    hf__memtable_flushed(&disk->memtable, hf__tables_newest(disk->tables));
    return HF_OK;
}

enum hf_status hf__maintenance_start(struct hf_scope *s, struct disk *disk)
{
    struct maintenance *m = &disk->maintenance;
    uint64_t last = hf__journal_last(disk->commit.journal);

    m->tabled = disk->store_dir.marks.based; /* replaying may have written tables */
    if (disk->store_dir.format != STORE_DIR_FORMAT) {
        TRY(upgrade_format(s, disk, last));
        m->tabled = last;
    }
    TRY(hf__commit_start(s, &disk->commit, m->tabled));
    m->has_thread = !pthread_create(&m->thread, NULL, maintenance_thread, disk);
    return m->has_thread
               ? HF_OK
               : hf__fail(s, HF_LIMIT,
                          "Cannot start a thread for the store in %s; raise the limit of processes "
                          "(ulimit -u)",
                          disk->store_dir.path);
}

void hf__maintenance_stop(struct disk *disk)
{
    struct commit *commit = &disk->commit;
    struct maintenance *m = &disk->maintenance;

    if (!m->has_thread)
        return;
    pthread_mutex_lock(&commit->lock);
    m->closing = true;
    pthread_cond_signal(&commit->work);
    pthread_mutex_unlock(&commit->lock);
    pthread_join(m->thread, NULL);
    m->has_thread = false;
}
