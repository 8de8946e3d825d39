/*
 * lock/lock_beat.c: leases over time: renewing them, giving them back, noticing their end.
 *
 * Two threads of a table look after its locks. The beater talks to the database; it may be stuck in
 * a call while the network is away. The watcher never does, so the end of a lease is reported in
 * time whatever the beater waits for, and a callback that takes long delays no renewal.
 *
 *  (1) A lease counts from before the request that asked for it was sent, less a margin for clocks
 *      (coord/lease.c).
 *  (2) Once it was noticed that a lease has ended, the lock is lost for good, even if the item
 *      still says that it is ours: on_lost may have been called.
 *  (3) A renewal without an answer changes nothing, unless it asked for a shorter lease, which may
 *      be what others go by now.
 *  (4) One request at a time renews a lock (busy), or the last one to be answered would not be the
 *      last one to be done. A release waits for nobody: a renewal that is done after it finds
 *      nothing to renew.
 *  (5) Callbacks and requests run without the mutex, on a lock that a reference keeps.
 */
#include "base/assert_held.h"
#include "lock/lock.h"

enum { RELEASE_MS = 1000, IDLE_US = 1000000 };

/* What holds for every lock that the table has. */
static void lock_check(const struct hf_lock *lock)
{
    ASSERT_HELD(&lock->table->mutex);
    assert(lock->refs > 0 && "a lock that was freed");
    assert(!lock->unreleased || lock->dropped);
    assert(lock->fence || lock->dropped || !lock->link);
    assert(lock->state <= HF_LOCK_STOLEN);
    assert(!lock->busy || lock->refs > 1 || lock->dropped || !lock->link);
}

/* (2) */
enum hf_lock_state hf__lock_look(struct hf_lock *lock, int64_t now_us)
{
    ASSERT_HELD(&lock->table->mutex);
    if (lock->state == HF_LOCK_HELD && lease_is_over(&lock->lease, now_us))
        lock->state = HF_LOCK_EXPIRED;
    return lock->state;
}

void hf__lock_enter(struct hf_lock *lock)
{
    ASSERT_HELD(&lock->table->mutex);
    while (lock->busy)
        pthread_cond_wait(&lock->table->changed, &lock->table->mutex);
    lock->busy = true;
    lock->refs++;
}

void hf__lock_leave(struct hf_lock *lock)
{
    lock_check(lock);
    assert(lock->busy);
    lock->busy = false;
    pthread_cond_broadcast(&lock->table->changed);
    hf__lock_unref(lock);
}

void hf__lock_unref(struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;

    ASSERT_HELD(&table->mutex);
    assert(lock->refs > 0);
    if (--lock->refs)
        return;
    assert(!lock->calling && "(5) a callback uses a lock that is freed");
    if (lock->link) {
        *lock->link = lock->next;
        if (lock->next)
            lock->next->link = lock->link;
    }
    hf_scope_free(lock->data_memory);
    hf__env_free(&table->env, lock, sizeof(*lock) + lock->name.len);
}

enum hf_status hf__lock_lost(struct hf_scope *s, const struct hf_lock *lock,
                             enum hf_lock_state state)
{
    return hf_scope_fail(s, HF_LOST, "lock %.*s is lost: %s", HF_FMT(lock->name),
                         state == HF_LOCK_STOLEN ? "another took it over, or it was broken"
                                                 : "its lease has ended");
}

enum hf_status hf__lock_done(struct hf_scope *s, struct hf_scope_mark mark, enum hf_status status)
{
    if (status == HF_OK) {
        hf_scope_rewind(s, mark);
        hf_scope_ok(s);
    }
    return status;
}

void hf__lock_wake(struct hf_lock_table *table)
{
    if (table->beater) {
        hf__timer_wake(table->beater);
        hf__timer_wake(table->watcher);
    }
}

/* ---- renewing ------------------------------------------------------------------------------- */

/* The answer has come; the mutex is held. */
static void renewal_done(struct hf_lock *lock, int64_t sent_us, uint32_t lease_ms,
                         struct hf_item data)
{
    ASSERT_HELD(&lock->table->mutex);
    assert(lock->state == HF_LOCK_HELD && "(2)");
    if (lock->table->db) /* a no-op lock has no lease */
        hf__lease_take(&lock->lease, lock_terms(lock, lease_ms), sent_us); /* maybe a shorter one */
    lock->lease_ms = lease_ms;
    lock->late_reported = false;
    if (data.ptr) {
        hf_scope_reset(lock->data_memory);
        lock->data = hf_item_copy(lock->data_memory, data);
    }
}

/* No answer; the mutex is held. (3) */
static void renewal_failed(struct hf_lock *lock, int64_t sent_us, uint32_t lease_ms, bool doubtful)
{
    ASSERT_HELD(&lock->table->mutex);
    if (doubtful)
        hf__lease_doubt(&lock->lease, lease_ms, sent_us);
    hf__lease_retry(&lock->lease, lock_terms(lock, lease_ms),
                    hf__env_elapsed_us(&lock->table->env));
}

/* Refused: does the item say that this beat is there already? Its answer got lost, then. */
static bool has_beat(struct hf_scope *s, const struct hf_lock *lock, struct hf_item item,
                     uint64_t beat)
{
    struct lock_view view;
    size_t at;

    if (hf__lock_view(s, &lock->table->at, item, &view) != HF_OK)
        return false;
    at = hf__lock_view_find(&view, lock_id(lock));
    return at != SIZE_MAX && view.info.holders[at].fence == lock->fence && view.beats[at] == beat;
}

static struct lock_own own_of(const struct hf_lock *lock)
{
    return (struct lock_own){.at = &lock->table->at,
                             .name = lock->name,
                             .id = lock_id(lock),
                             .fence = lock->fence};
}

static enum hf_status renew_send(struct hf_scope *s, struct hf_lock *lock, uint32_t lease_ms,
                                 struct hf_item data)
{
    struct hf_lock_table *table = lock->table;
    uint64_t beat = ++lock->beat;
    const struct lock_own own = own_of(lock);
    const struct lock_holder me = {.owner = table->owner,
                                   .opener = hf_db_opener(table->db),
                                   .beat = beat,
                                   .lease_ms = lease_ms,
                                   .since_ms = lock->since_ms,
                                   .renewed_ms = hf__env_wall_ms(&table->env)};
    struct hf_update_item update =
        hf__lock_beat_request(s, &own, beat, hf__lock_entry(s, &me), data);
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, table->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status == HF_CONDITION && has_beat(s, lock, item, beat))
        status = HF_OK;
    TRY(status);
    if (lock->mode != HF_LOCK_EXCLUSIVE)
        hf__lock_reap(s, table, item);
    return HF_OK;
}

enum hf_status hf__lock_renew(struct hf_scope *s, struct hf_lock *lock, uint32_t lease_ms,
                              struct hf_item data)
{
    struct hf_lock_table *table = lock->table;
    int64_t sent_us = hf__env_elapsed_us(&table->env);
    enum hf_status status = table->db ? renew_send(s, lock, lease_ms, data) : HF_OK;
    bool doubtful = status != HF_OK && hf_scope_error(s)->may_have_happened;
    enum hf_lock_state state;

    pthread_mutex_lock(&table->mutex);
    if (status == HF_CONDITION && lock->state == HF_LOCK_HELD)
        lock->state = HF_LOCK_STOLEN;
    else if (status == HF_OK && lock->state == HF_LOCK_HELD)
        renewal_done(lock, sent_us, lease_ms, data);
    else if (status != HF_OK)
        renewal_failed(lock, sent_us, lease_ms, doubtful);
    state = lock->state;
    pthread_mutex_unlock(&table->mutex);
    if (state != HF_LOCK_HELD) {
        hf__lock_wake(table);
        return hf__lock_lost(s, lock, state);
    }
    return status;
}

/* ---- giving back ---------------------------------------------------------------------------- */

enum hf_status hf__lock_free_send(struct hf_scope *s, struct hf_lock *lock, struct hf_item data,
                                  struct hf_item *item)
{
    struct hf_lock_table *table = lock->table;
    bool forget = table->forget_s && lock->mode == HF_LOCK_EXCLUSIVE;
    int64_t expires_s = forget ? hf__env_wall_ms(&table->env) / 1000 + table->forget_s : 0;
    const struct lock_own own = own_of(lock);
    struct hf_update_item update = hf__lock_free_request(s, &own, data, expires_s);

    TRY(hf_scope_built(s));
    return hf__pattern_write(s, table->db, &(struct hf_transact_write){.update = &update},
                             update.key, item);
}

/* Once more; the lease's end ends it, too, as others do not need it then. */
static void release_again(struct hf_scope *s, struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;
    struct hf_item item;
    enum hf_status status = hf__lock_free_send(s, lock, (struct hf_item){0}, &item);
    int64_t now_us = hf__env_elapsed_us(&table->env);

    pthread_mutex_lock(&table->mutex);
    lock->lease.due_us = now_us + (int64_t)LEASE_RETRY_MAX_MS * 1000;
    if (status == HF_OK || status == HF_CONDITION || lease_is_over(&lock->lease, now_us)) {
        lock->unreleased = false;
        hf__lock_unref(lock);
    }
    pthread_mutex_unlock(&table->mutex);
}

/* Nothing is due. If new locks were taken since the last look, look again in a second: that costs
 * less than to wake the thread for each short-lived lock. The mutex is held. */
static int64_t idle_us(bool *busy)
{
    bool was = *busy;

    *busy = false;
    return was ? IDLE_US : INT64_MAX;
}

/* ---- what is due ---------------------------------------------------------------------------- */

static bool is_stuck(const struct hf_lock *lock, int64_t now_us)
{
    return lock->stuck_ms && now_us - lock->touched_us >= (int64_t)lock->stuck_ms * 1000;
}

/* When it is to be worked on, INT64_MAX: never; the mutex is held. */
static int64_t due_at(struct hf_lock *lock, int64_t now_us)
{
    bool renew = !lock->dropped && !lock->no_heartbeats && !is_stuck(lock, now_us) &&
                 hf__lock_look(lock, now_us) == HF_LOCK_HELD;

    if (lock->busy || !(renew || lock->unreleased))
        return INT64_MAX;
    return lock->lease.due_us;
}

/* What is to be done for one lock, as it was when it became busy. */
struct job {
    struct hf_lock *lock; /* NULL: nothing is due */
    bool release;
    uint32_t lease_ms;
    uint32_t time_ms; /* for the request */
};

/* The first that is due, busy now; or how long there is time. */
static struct job next_due(struct hf_lock_table *table, int64_t *wait_us)
{
    int64_t now_us = hf__env_elapsed_us(&table->env), first = INT64_MAX;
    struct hf_lock *found = NULL;
    struct job job = {0};

    pthread_mutex_lock(&table->mutex);
    for (struct hf_lock *lock = table->locks; lock; lock = lock->next) {
        int64_t due_us = due_at(lock, now_us);

        if (due_us < first) {
            first = due_us;
            found = lock;
        }
    }
    *wait_us = first == INT64_MAX ? idle_us(&table->busy_beater) : first - now_us;
    if (first <= now_us) {
        int64_t left_ms = (found->lease.until_us - now_us) / 1000 + 1;

        assert(!found->busy && "(4)");
        hf__lock_enter(found);
        job = (struct job){.lock = found,
                           .release = found->unreleased,
                           .lease_ms = found->lease_ms,
                           .time_ms = found->unreleased               ? RELEASE_MS
                                      : left_ms < found->heartbeat_ms ? (uint32_t)left_ms
                                                                      : found->heartbeat_ms};
    }
    pthread_mutex_unlock(&table->mutex);
    return job;
}

int64_t hf__lock_beats(void *user)
{
    struct hf_lock_table *table = user;
    int64_t wait_us;
    struct job job = next_due(table, &wait_us);

    if (!job.lock)
        return wait_us;
    hf_scope_reset(table->work);
    hf_scope_timeout_ms(table->work, job.time_ms);
    if (job.release)
        release_again(table->work, job.lock);
    else
        (void)!hf__lock_renew(table->work, job.lock, job.lease_ms, (struct hf_item){0});
    pthread_mutex_lock(&table->mutex);
    hf__lock_leave(job.lock);
    pthread_mutex_unlock(&table->mutex);
    return 0;
}

/* ---- calling -------------------------------------------------------------------------------- */

/* (5) The mutex is held, and given up for the time of the call. */
static void callback_run(struct hf_lock *lock, bool lost, int64_t left_us)
{
    struct hf_lock_table *table = lock->table;
    enum hf_lock_state state = lock->state;

    ASSERT_HELD(&table->mutex);
    assert(!lock->dropped && (lost ? lock->lost_reported : lock->late_reported));
    assert(lost == (state != HF_LOCK_HELD));
    lock->refs++;
    lock->calling = true;
    lock->caller = pthread_self();
    pthread_mutex_unlock(&table->mutex);
    if (lost)
        lock->on_lost(lock, state, lock->user);
    else
        lock->on_late(lock, (uint32_t)(left_us / 1000), lock->user);
    pthread_mutex_lock(&table->mutex);
    lock->calling = false;
    pthread_cond_broadcast(&table->changed);
    hf__lock_unref(lock);
}

/* Makes the call that is due, if one is. Otherwise *wait_us is when one may be. */
static bool call_if_due(struct hf_lock *lock, int64_t now_us, int64_t *wait_us)
{
    int64_t left_us;

    lock_check(lock);
    if (lock->dropped)
        return false;
    if (hf__lock_look(lock, now_us) != HF_LOCK_HELD) {
        bool due = !lock->lost_reported && lock->on_lost;

        lock->lost_reported = true;
        if (due)
            callback_run(lock, true, 0);
        return due;
    }
    left_us = lock->lease.until_us - now_us;
    if (lock->on_late && !lock->late_reported) {
        int64_t early_us = left_us - (int64_t)lock->late_ms * 1000;

        if (early_us <= 0) {
            lock->late_reported = true;
            callback_run(lock, false, left_us);
            return true;
        }
        left_us = early_us;
    }
    if (left_us < *wait_us)
        *wait_us = left_us;
    return false;
}

int64_t hf__lock_calls(void *user)
{
    struct hf_lock_table *table = user;
    int64_t wait_us;
    bool again;

    pthread_mutex_lock(&table->mutex);
    do {
        int64_t now_us = hf__env_elapsed_us(&table->env);

        again = false;
        wait_us = INT64_MAX;
        for (struct hf_lock *lock = table->locks; lock; lock = lock->next) {
            again = call_if_due(lock, now_us, &wait_us);
            if (again) /* the list may have changed, and the lock be gone */
                break;
        }
    } while (again);
    if (wait_us == INT64_MAX)
        wait_us = idle_us(&table->busy_watcher);
    pthread_mutex_unlock(&table->mutex);
    return wait_us;
}
