/*
 * store/commit.c: group commit: one thread flushes and syncs the journal for all who wait.
 *
 * In the full mode the first thread that finds no round under way becomes the leader: it flushes
 * the journal, syncs it, and publishes how far that went; whoever came meanwhile waits, and one of
 * those leads the next round. So 32 writers share an fsync without anyone waiting for company.
 *
 * In the other modes a flush is a write() of a few microseconds, and handing over costs more than
 * that: a thread that needs a flush takes a lock and does it, for all changes that are appended by
 * then. With a leader, 32 threads on two cores spent two thirds of their time spinning: they waited
 * for a leader that the scheduler had taken off its core.
 *
 * What always holds:
 *
 *  (1) `durable` <= what was synced; `safe` <= what was flushed, and in the full mode == durable.
 *      Both only grow.
 *  (2) After a failed flush or sync `stopped` is set for good and `first_error` does not change.
 */
#include "store/commit.h"

#include <errno.h>

#include "base/assert_held.h"
#include "base/cond_monotonic.h"
#include "base/kill.h"
#include "base/spin_lock.h"

enum {
    POLL_MS = 10,             /* how long a waiter sleeps before it checks its scope again */
    PENDING_MAX = 1024 * 1024 /* unflushed bytes at which a writer flushes them itself */
};

void hf__commit_init(struct commit *commit)
{
    cond_monotonic_init(&commit->served[0]);
    cond_monotonic_init(&commit->served[1]);
    cond_monotonic_init(&commit->dirtied);
    cond_monotonic_init(&commit->work);
    pthread_mutex_init(&commit->lock, NULL);
    pthread_mutex_init(&commit->flush_lock, NULL);
    pthread_mutex_init(&commit->record_lock, NULL);
    commit->has_lock = true;
}

/* (1) and (2). The values only grow, and each is read before those that bound it from above. */
static void commit_check(struct commit *commit)
{
    uint64_t safe = atomic_load(&commit->safe);
    uint64_t durable = atomic_load(&commit->durable);
    uint64_t last = hf__journal_last(commit->journal);

    ASSERT_HELD(&commit->lock);
    assert(safe <= last && durable <= last && commit->target <= last);
    assert(commit->mode != STORE_SYNC_FULL || safe <= durable);
    assert(atomic_load(&commit->stopped) == (commit->first_error[0] != '\0'));
}

/* ---- stopping ------------------------------------------------------------------------------- */

/* After a failed write parts of what the system was handed may be gone. The record of an older
 * format stays as it is until tables have everything. */
static void note_failed(struct commit *commit)
{
    struct store_marks marks;

    pthread_mutex_lock(&commit->record_lock);
    commit->boot = 0;
    marks = commit->store_dir->marks;
    marks.boot = 0;
    if (commit->journal && commit->store_dir->format == STORE_DIR_FORMAT)
        hf__marks_note(commit->store_dir, marks);
    pthread_mutex_unlock(&commit->record_lock);
}

void hf__commit_stop(struct commit *commit, const char *what, const char *error)
{
    bool first;

    pthread_mutex_lock(&commit->lock);
    first = !atomic_load(&commit->stopped);
    if (first) {
        snprintf(commit->first_error, sizeof(commit->first_error), "%s failed: %s", what, error);
        atomic_store(&commit->stopped, true);
    }
    pthread_cond_broadcast(&commit->served[0]);
    pthread_cond_broadcast(&commit->served[1]);
    pthread_cond_signal(&commit->work);
    pthread_mutex_unlock(&commit->lock);
    if (!first)
        return;
    note_failed(commit);
    hf__env_log(commit->env, HF_LOG_ERROR, "store %s: writes are stopped: %s",
                commit->store_dir->path, commit->first_error);
}

enum hf_status hf__commit_fail(struct hf_scope *s, struct commit *commit, enum hf_status status)
{
    return hf__fail(s, status, "Writes to the store in %s are stopped until it is reopened: %s",
                    commit->store_dir->path, commit->first_error);
}

static void stop_for_errno(struct commit *commit, const char *what)
{
    int error = errno;
    char room[128];

    hf__commit_stop(commit, what, strerror_r(error, room, sizeof(room)));
}

/* ---- notes ---------------------------------------------------------------------------------- */

/* Every note also says which file of the journal is the newest. */
static bool marks_note(struct commit *commit, struct store_marks marks)
{
    uint64_t number = hf__journal_number(commit->journal);

    ASSERT_HELD(&commit->record_lock);
    if (marks.segment < number)
        marks.segment = number;
    return hf__marks_note(commit->store_dir, marks);
}

static void note_durable(struct commit *commit, uint64_t change)
{
    struct store_marks marks;

    pthread_mutex_lock(&commit->record_lock);
    marks = commit->store_dir->marks;
    if (change > marks.durable) {
        marks.durable = change;
        marks_note(commit, marks);
    }
    pthread_mutex_unlock(&commit->record_lock);
}

/*
 * The database has everything up to `tabled` in tables. With `manifest`: and nothing else, and what
 * its manifest says is noted as well.
 */
static bool note_tables(struct commit *commit, uint64_t tabled,
                        const struct manifest_mark *manifest, uint64_t clean, bool sync)
{
    struct store_marks marks;
    bool done, grew;

    pthread_mutex_lock(&commit->record_lock);
    assert(tabled <= hf__journal_last(commit->journal));
    marks = commit->store_dir->marks;
    grew = tabled > marks.based;
    if (tabled > marks.durable)
        marks.durable = tabled;
    if (tabled > marks.based)
        marks.based = tabled;
    marks.clean = clean;
    if (manifest)
        marks.manifest = *manifest;
    else if (grew) /* marks.c (4) */
        marks.manifest = hf__manifest_any(marks.manifest.number);
    marks.boot = commit->boot;
    done = marks_note(commit, marks) && (!sync || hf__marks_sync(commit->store_dir));
    pthread_mutex_unlock(&commit->record_lock);
    return done;
}

static bool note_manifest(struct commit *commit, uint64_t tabled, uint64_t clean, bool sync)
{
    struct manifest_mark manifest;

    return hf__manifest_note(commit->store_dir, &manifest) &&
           note_tables(commit, tabled, &manifest, clean, sync);
}

void hf__commit_note_manifest(struct commit *commit, uint64_t tabled)
{
    (void)note_manifest(commit, tabled, 0, false);
}

bool hf__commit_note_tables(struct commit *commit, uint64_t tabled)
{
    return note_tables(commit, tabled, NULL, 0, true);
}

/* In the full mode this is optional: the next sync notes it, too. */
void hf__commit_note_segment(struct commit *commit)
{
    pthread_mutex_lock(&commit->record_lock);
    marks_note(commit, commit->store_dir->marks);
    pthread_mutex_unlock(&commit->record_lock);
}

/* ---- rounds --------------------------------------------------------------------------------- */

/* Changes of `safe` and `durable`: they only grow, whoever is first. */
static void mark_raise(atomic_uint_fast64_t *mark, uint64_t change)
{
    uint_fast64_t was = atomic_load(mark);

    while (was < change && !atomic_compare_exchange_weak(mark, &was, change))
        ;
}

/* Flush the journal. The caller leads a round, or is the only thread that is left. */
static bool journal_flush(struct commit *commit, bool sync)
{
    uint64_t upto;

    if (sync)
        hf__kill_point("before_sync");
    if (!hf__journal_flush(commit->journal, atomic_load(&commit->durable), sync, &upto)) {
        stop_for_errno(commit, "writing the journal");
        return false;
    }
    if (sync) {
        hf__kill_point("after_sync");
        note_durable(commit, upto);
        hf__kill_point("after_record");
        mark_raise(&commit->durable, upto);
    }
    if (sync || commit->mode != STORE_SYNC_FULL)
        mark_raise(&commit->safe, upto);
    return true;
}

/* Wake the maintenance thread if the journal needs work. */
static void signal_work(struct commit *commit)
{
    ASSERT_HELD(&commit->lock);
    if (hf__journal_needs_work(commit->journal))
        pthread_cond_signal(&commit->work);
}

/* ---- rounds of a write() -------------------------------------------------------------------- */

/* The caller holds flush_lock, which is released here. */
static void flush_and_unlock(struct commit *commit, uint64_t change)
{
    ASSERT_HELD(&commit->flush_lock);
    assert(commit->mode != STORE_SYNC_FULL);
    if (atomic_load(&commit->safe) < change && !atomic_load(&commit->stopped))
        journal_flush(commit, false);
    pthread_mutex_unlock(&commit->flush_lock);
    if (hf__journal_needs_work(commit->journal)) {
        pthread_mutex_lock(&commit->lock);
        signal_work(commit);
        pthread_mutex_unlock(&commit->lock);
    }
}

static enum hf_status wait_flushed(struct hf_scope *s, struct commit *commit, uint64_t change)
{
    struct timespec until;

    if (!spin_trylock(&commit->flush_lock)) {
        do { /* a canceled scope and a virtual clock wake nobody: look again now and then */
            TRY(hf__scope_alive(s));
            until = monotonic_in_ms(hf__scope_left_ms(s, POLL_MS));
        } while (pthread_mutex_clocklock(&commit->flush_lock, CLOCK_MONOTONIC, &until));
    }
    flush_and_unlock(commit, change);
    return atomic_load(&commit->safe) >= change ? HF_OK : hf__commit_fail(s, commit, HF_IO);
}

/* ---- rounds with a sync --------------------------------------------------------------------- */

/*
 * Lead a round, without the lock meanwhile. Threads that this round serves wait at its condition;
 * those that came too late wait at the other one, and a single one of them is woken, to lead the
 * next round: a thread that is woken for nothing costs as much as a write.
 */
static void round_lead(struct commit *commit, bool sync)
{
    ASSERT_HELD(&commit->lock);
    assert(commit->mode == STORE_SYNC_FULL && !atomic_load(&commit->leading));
    atomic_store(&commit->leading, true);
    commit->round++;
    commit->target = hf__journal_last(commit->journal);
    pthread_mutex_unlock(&commit->lock);
    journal_flush(commit, sync);
    pthread_mutex_lock(&commit->lock);
    commit_check(commit);
    atomic_store(&commit->leading, false);
    atomic_fetch_add(&commit->syncs, sync);
    pthread_cond_broadcast(&commit->served[commit->round % 2]);
    pthread_cond_signal(&commit->served[(commit->round + 1) % 2]);
    signal_work(commit);
}

/* Wait until the change is safe, writes are stopped, or the scope has ended. */
static enum hf_status wait_safe(struct hf_scope *s, struct commit *commit, uint64_t change)
{
    enum hf_status status = HF_OK;

    commit_check(commit);
    assert(change <= hf__journal_last(commit->journal));
    commit->waits++;
    while (status == HF_OK && atomic_load(&commit->safe) < change) {
        uint64_t round = commit->round + (change > commit->target);

        if (atomic_load(&commit->stopped))
            return hf__commit_fail(s, commit, HF_IO);
        if (!atomic_load(&commit->leading)) {
            round_lead(commit, true);
            continue;
        }
        status = hf__scope_alive(s);
        /* A canceled scope and a virtual clock wake nobody: look again now and then. */
        if (status == HF_OK)
            cond_wait_ms(&commit->served[round % 2], &commit->lock, hf__scope_left_ms(s, POLL_MS));
    }
    return status;
}

enum hf_status hf__commit_wait(struct hf_scope *s, struct commit *commit, uint64_t change)
{
    enum hf_status status;

    if (atomic_load(&commit->safe) >= change)
        return HF_OK;
    if (commit->mode != STORE_SYNC_FULL) {
        status = wait_flushed(s, commit, change);
    } else {
        pthread_mutex_lock(&commit->lock);
        status = wait_safe(s, commit, change);
        pthread_mutex_unlock(&commit->lock);
    }
    if (status != HF_OK)
        hf__scope_error_edit(s)->may_have_happened = true;
    return status;
}

/* Flush changes that nobody waits for, such as those of a long copy, before they fill the memory.
 */
static void buffer_push(struct commit *commit)
{
    if (commit->mode != STORE_SYNC_FULL) {
        if (pthread_mutex_trylock(&commit->flush_lock) == 0)
            flush_and_unlock(commit, UINT64_MAX);
        return;
    }
    pthread_mutex_lock(&commit->lock);
    if (!atomic_load(&commit->leading) && !atomic_load(&commit->stopped))
        round_lead(commit, false);
    pthread_mutex_unlock(&commit->lock);
}

void hf__commit_appended(struct commit *commit)
{
    if (hf__journal_pending(commit->journal) > PENDING_MAX)
        buffer_push(commit);
    if (commit->mode != STORE_SYNC_BATCH || atomic_exchange(&commit->dirty, true))
        return;
    pthread_mutex_lock(&commit->lock);
    pthread_cond_signal(&commit->dirtied);
    pthread_mutex_unlock(&commit->lock);
}

/* ---- the thread of the batch mode ----------------------------------------------------------- */

/* Sync while other threads flush, without the lock meanwhile. */
static void sync_window(struct commit *commit)
{
    uint64_t change;

    ASSERT_HELD(&commit->lock);
    assert(commit->mode == STORE_SYNC_BATCH);
    atomic_fetch_add(&commit->syncs, 1);
    pthread_mutex_unlock(&commit->lock);
    pthread_mutex_lock(&commit->flush_lock);
    flush_and_unlock(commit, UINT64_MAX);
    change = atomic_load(&commit->safe);
    if (!atomic_load(&commit->stopped)) {
        hf__kill_point("before_sync");
        if (hf__journal_sync(commit->journal)) {
            hf__kill_point("after_sync");
            note_durable(commit, change);
            mark_raise(&commit->durable, change);
        } else {
            stop_for_errno(commit, "syncing the journal");
        }
    }
    pthread_mutex_lock(&commit->lock);
}

/* The thread of the batch mode: it syncs changes one window after they were appended. */
static void *window_thread(void *user)
{
    struct commit *commit = user;

    pthread_mutex_lock(&commit->lock);
    while (!commit->closing) {
        if (!atomic_load(&commit->dirty)) {
            pthread_cond_wait(&commit->dirtied, &commit->lock);
            continue;
        }
        cond_wait_ms(&commit->dirtied, &commit->lock, commit->window_ms);
        if (commit->closing || atomic_load(&commit->stopped))
            break;
        atomic_store(&commit->dirty, false);
        sync_window(commit);
    }
    pthread_mutex_unlock(&commit->lock);
    return NULL;
}

/* ---- opening and closing -------------------------------------------------------------------- */

enum hf_status hf__commit_open(struct hf_scope *s, struct commit *commit,
                               const struct journal_options *options,
                               const struct journal_marks *marks, journal_replay_fn *replay,
                               void *user)
{
    uint64_t last;

    TRY(hf__journal_open(s, options, marks, replay, user, &commit->journal));
    last = hf__journal_last(commit->journal);
    atomic_store(&commit->safe, last);
    atomic_store(&commit->durable,
                 options->syncs || marks->fresh || marks->clean ? last : marks->durable);
    if (!options->read_only && commit->mode != STORE_SYNC_FULL)
        commit->boot = hf__marks_boot();
    return HF_OK;
}

enum hf_status hf__commit_start(struct hf_scope *s, struct commit *commit, uint64_t tabled)
{
    hf__kill_point("before_first_note");
    if (!note_manifest(commit, tabled, 0, true))
        return hf__fail(s, HF_IO, "Cannot write %s/durable", commit->store_dir->path);
    commit->store_dir->format = STORE_DIR_FORMAT;
    hf__kill_point("after_first_note");
    if (commit->mode != STORE_SYNC_BATCH)
        return HF_OK;
    commit->has_window = !pthread_create(&commit->window, NULL, window_thread, commit);
    return commit->has_window
               ? HF_OK
               : hf__fail(s, HF_LIMIT,
                          "Cannot start a thread for the store in %s; raise the limit of processes "
                          "(ulimit -u)",
                          commit->store_dir->path);
}

void hf__commit_stop_threads(struct commit *commit)
{
    pthread_mutex_lock(&commit->lock);
    commit->closing = true;
    pthread_cond_broadcast(&commit->dirtied);
    pthread_mutex_unlock(&commit->lock);
    if (commit->has_window)
        pthread_join(commit->window, NULL);
    commit->has_window = false;
}

void hf__commit_quiesce(struct commit *commit)
{
    assert(atomic_load(&commit->stopped));
    pthread_mutex_lock(&commit->lock);
    while (atomic_load(&commit->leading))
        cond_wait_ms(&commit->served[0], &commit->lock, POLL_MS);
    pthread_mutex_unlock(&commit->lock);
    pthread_mutex_lock(&commit->flush_lock);
    pthread_mutex_unlock(&commit->flush_lock);
}

void hf__commit_finish(struct commit *commit)
{
    assert(!commit->has_window && commit->closing);
    if (!atomic_load(&commit->stopped))
        (void)journal_flush(commit, true);
}

void hf__commit_clean(struct commit *commit)
{
    uint64_t last = hf__journal_last(commit->journal);

    assert(!commit->has_window && !atomic_load(&commit->stopped));
    if (last && !note_manifest(commit, last, last, true))
        hf__env_log(commit->env, HF_LOG_WARNING, "store %s: cannot sync the durable record",
                    commit->store_dir->path);
}

void hf__commit_close(struct commit *commit)
{
    if (!commit->has_lock)
        return;
    hf__journal_close(commit->journal);
    pthread_mutex_destroy(&commit->lock);
    pthread_mutex_destroy(&commit->flush_lock);
    pthread_mutex_destroy(&commit->record_lock);
    pthread_cond_destroy(&commit->served[0]);
    pthread_cond_destroy(&commit->served[1]);
    pthread_cond_destroy(&commit->dirtied);
    pthread_cond_destroy(&commit->work);
}
