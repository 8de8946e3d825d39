/*
 * lock/lock_wait.c: getting a lock: try, and wait.
 *
 * The first request is a write that takes the lock if it is free: one request when nobody is in the
 * way. If it is refused, the refusal shows who is. From then on the item is read, and a write is
 * sent only when it should succeed: the lock is free, or those in the way were seen with the same
 * beat for a whole lease. Such a write names their beats in its condition, so that of many waiters
 * one wins, and so that a holder who comes back to life keeps its lock.
 *
 * All writes of one call have the same id. Whichever of them is done, early, late or twice, it is
 * ours, and we know it by the id when we see it. Each has a beat of its own: should we be evicted
 * before we knew that we had it, somebody has watched the old one for a lease.
 *
 *  (1) Time is noted after the answer has come: the beat was seen at the latest then, and not
 *      before the holder had sent it.
 *  (2) A lock is handed out only while its lease lasts: when answers took long, it is renewed
 *      first.
 *  (3) If a call ends without knowing whether a write was done, the lock is released in the
 *      background.
 */
#include "base/assert_held.h"
#include "lock/lock.h"

_Static_assert((FREED_BUCKETS & (FREED_BUCKETS - 1)) == 0, "a power of two");

/* One call of hf_lock_try() or hf_lock_acquire(). */
struct acquire_call {
    struct hf_lock_table *table;
    struct hf_lock *lock; /* not in the list yet */
    struct hf_item data;
    uint32_t permits;
    struct hf_item item; /* as it was seen last, in the scope */
    bool known;          /* it was seen */
    bool doubtful;       /* a write may have been done, or may still be */
    int64_t sent_us;     /* before the latest write */
};

/* ---- who is in the way ---------------------------------------------------------------------- */

/* Microseconds until the holder is known to be gone; 0: it is. The mutex is held. */
static int64_t gone_in(struct hf_lock_table *table, const struct hf_lock_holder *holder,
                       struct hf_str opener, uint64_t beat, int64_t now_us)
{
    int64_t lease_us = (int64_t)holder->lease_ms * 1000;
    int64_t since_us = hf__watch_holder(&table->watch, holder->id, beat, now_us);
    int64_t left_us = hf__watch_silent_in(since_us, holder->lease_ms, now_us);

    ASSERT_HELD(&table->mutex);
    if (hf__pattern_is_orphan(table->db, opener))
        return 0;
    if (table->clock_skew_ms) {
        int64_t trusted_us = holder->renewed_us + lease_us + (int64_t)table->clock_skew_ms * 1000 -
                             hf__env_wall_ms(&table->env) * 1000;

        left_us = trusted_us < left_us ? trusted_us : left_us;
    }
    return left_us > 0 ? left_us : 0;
}

void hf__lock_plan(struct hf_lock_table *table, const struct lock_view *view,
                   enum hf_lock_mode mode, uint32_t permits, struct lock_plan *plan)
{
    size_t held = view->info.holders_len, gone = 0;
    int64_t now_us;

    *plan = (struct lock_plan){.wait_us = INT64_MAX};
    pthread_mutex_lock(&table->mutex);
    now_us = hf__env_elapsed_us(&table->env); /* not before what others have seen meanwhile */
    for (size_t i = 0; i < held; i++) {
        int64_t in_us =
            gone_in(table, &view->info.holders[i], view->openers[i], view->beats[i], now_us);

        if (in_us > 0) {
            plan->wait_us = in_us < plan->wait_us ? in_us : plan->wait_us;
            continue;
        }
        if (gone++ < EVICT_MAX)
            plan->evict[plan->evict_len++] =
                (struct lock_evict){.id = view->info.holders[i].id, .beat = view->beats[i]};
    }
    pthread_mutex_unlock(&table->mutex);
    assert(plan->evict_len <= gone && gone <= held);
    plan->possible = gone == held;
    if (mode == HF_LOCK_SHARED && view->info.mode == mode)
        plan->possible = true;
    if (mode == HF_LOCK_PERMIT && view->info.mode == mode && held - gone < permits)
        plan->possible = true;
    plan->more = gone > EVICT_MAX;
}

static enum hf_status holders_evict(struct hf_scope *s, struct hf_lock_table *table,
                                    struct hf_str name, const struct lock_plan *plan)
{
    struct lock_take take = {.at = &table->at,
                             .name = name,
                             .wall_ms = hf__env_wall_ms(&table->env),
                             .evict = plan->evict,
                             .evict_len = plan->evict_len};
    struct hf_update_item update = hf__lock_take_request(s, &take);
    struct hf_item item;

    TRY(hf_scope_built(s));
    return hf__pattern_write(s, table->db, &(struct hf_transact_write){.update = &update},
                             update.key, &item);
}

/* Nobody waits for a dead holder of a shared lock or of a permit, so such holders would
 * accumulate. */
void hf__lock_reap(struct hf_scope *s, struct hf_lock_table *table, struct hf_item item)
{
    struct lock_view view;
    struct lock_plan plan;

    if (hf__lock_view(s, &table->at, item, &view) != HF_OK || view.info.holders_len < 2)
        return;
    hf__lock_plan(table, &view, HF_LOCK_EXCLUSIVE, 0, &plan);
    if (plan.evict_len && holders_evict(s, table, view.info.name, &plan) != HF_OK)
        hf_scope_ok(s);
}

/* ---- taking it ------------------------------------------------------------------------------ */

/* The lock is ours: the item says so. */
static void grant_note(struct acquire_call *call, const struct lock_view *view, size_t at)
{
    struct hf_lock *lock = call->lock;

    lock->fence = view->info.holders[at].fence;
    lock->since_ms = view->info.holders[at].since_us / 1000;
    hf_scope_reset(lock->data_memory);
    lock->data = hf_item_copy(lock->data_memory, view->info.data);
}

/*
 * Look at the item: HF_OK when it is ours, HF_LOCKED otherwise. (1): time is asked for in
 * hf__lock_plan(), after the answer.
 */
static enum hf_status item_judge(struct hf_scope *s, struct acquire_call *call, struct hf_item item,
                                 struct lock_plan *plan)
{
    struct lock_view view;
    size_t at;

    TRY(hf__lock_view(s, &call->table->at, item, &view));
    call->item = item;
    call->known = true;
    at = hf__lock_view_find(&view, lock_id(call->lock));
    if (at != SIZE_MAX) {
        grant_note(call, &view, at);
        return HF_OK;
    }
    hf__lock_plan(call->table, &view, call->lock->mode, call->permits, plan);
    return HF_LOCKED;
}

/* Send the write that takes it: HF_OK, HF_CONDITION with a look at the item, or an error. */
static enum hf_status take_send(struct hf_scope *s, struct acquire_call *call,
                                struct lock_plan *plan)
{
    struct hf_lock_table *table = call->table;
    struct hf_lock *lock = call->lock;
    int64_t wall_ms = hf__env_wall_ms(&table->env);
    struct lock_view view = {0};
    const struct lock_holder me = {.owner = table->owner,
                                   .opener = hf_db_opener(table->db),
                                   .beat = ++lock->beat,
                                   .lease_ms = lock->lease_ms,
                                   .since_ms = wall_ms,
                                   .renewed_ms = wall_ms};
    struct lock_take take = {.at = &table->at,
                             .name = lock->name,
                             .id = lock_id(lock),
                             .entry = hf__lock_entry(s, &me),
                             .mode = lock->mode,
                             .permits = call->permits,
                             .wall_ms = wall_ms,
                             .data = call->data,
                             .evict = plan->evict,
                             .evict_len = plan->evict_len};
    struct hf_update_item update;
    struct hf_item item;
    enum hf_status status;

    if (call->known)
        TRY(hf__lock_view(s, &call->table->at, call->item, &view));
    take.of = view.info.mode;
    /* A shared lock can be taken beside holders that are gone: they need not be evicted. */
    if (lock->mode == HF_LOCK_SHARED && take.of == HF_LOCK_SHARED)
        take.evict_len = 0;
    update = hf__lock_take_request(s, &take);
    TRY(hf_scope_built(s));
    call->sent_us = hf__env_elapsed_us(&table->env);
    status = hf__pattern_write(s, table->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    call->doubtful = call->doubtful || status == HF_OK || hf_scope_error(s)->may_have_happened;
    if (status == HF_OK || status == HF_CONDITION) {
        enum hf_status seen = item_judge(s, call, item, plan);

        if (seen != HF_OK && seen != HF_LOCKED)
            return seen;
        if (status == HF_OK && lock->mode != HF_LOCK_EXCLUSIVE)
            hf__lock_reap(s, table, item);
        if (status == HF_CONDITION && seen == HF_OK)
            call->sent_us = INT64_MIN; /* one of ours was done, who knows when */
        return seen;
    }
    return status;
}

/*
 * Once: HF_OK, HF_LOCKED with plan->wait_us, or an error. Two rounds, as the first write may find
 * that there is somebody to be evicted.
 */
static enum hf_status lock_attempt(struct hf_scope *s, struct acquire_call *call,
                                   struct lock_plan *plan)
{
    struct hf_lock_table *table = call->table;
    enum hf_status status = HF_LOCKED;
    struct hf_item item;

    *plan = (struct lock_plan){.possible = true};
    if (call->known) {
        TRY(hf__pattern_read(s, table->db, table->at.table,
                             hf__lock_key(s, &table->at, call->lock->name), &item));
        status = item_judge(s, call, item, plan);
        if (status == HF_OK)
            call->sent_us = INT64_MIN;
    }
    for (int round = 0; round < 2 && status == HF_LOCKED && plan->possible; round++) {
        if (plan->more) {
            status = holders_evict(s, table, call->lock->name, plan);
            plan->wait_us = 0;
            return status == HF_OK || status == HF_CONDITION ? HF_LOCKED : status;
        }
        status = take_send(s, call, plan);
    }
    return status;
}

/* (2) The lease of what was granted: true when there is one. */
static bool lease_begins(struct hf_scope *s, struct acquire_call *call)
{
    struct hf_lock *lock = call->lock;
    int64_t now_us = hf__env_elapsed_us(&call->table->env);

    assert(!lock->link && "nobody else knows it yet");
    lock->state = HF_LOCK_HELD;
    lock->touched_us = now_us;
    if (call->sent_us == INT64_MIN) /* one of ours was done, who knows when */
        lock->lease = (struct lease){.until_us = now_us, .due_us = now_us};
    else
        hf__lease_take(&lock->lease, lock_terms(lock, lock->lease_ms), call->sent_us);
    if (!lease_is_over(&lock->lease, now_us))
        return true;
    return hf__lock_renew(s, lock, lock->lease_ms, (struct hf_item){0}) == HF_OK &&
           !lease_is_over(&lock->lease, hf__env_elapsed_us(&call->table->env));
}

/* ---- options -------------------------------------------------------------------------------- */

static enum hf_status check_options(struct hf_scope *s, struct hf_str name,
                                    struct hf_lock_options *o)
{
    if (name.len == 0)
        return hf_scope_fail(s, HF_INVALID, "a lock needs a name");
    if (hf__kind_is_mark(name))
        return hf_scope_fail(s, HF_INVALID,
                             "a lock cannot be named \"%.*s\": the table's mark has that name",
                             HF_FMT(name));
    o->lease_ms = o->lease_ms ? o->lease_ms : LEASE_DEFAULT_MS;
    o->heartbeat_ms = o->heartbeat_ms ? o->heartbeat_ms : hf__lease_heartbeat_ms(o->lease_ms);
    o->late_ms = o->late_ms ? o->late_ms : o->lease_ms / 3;
    o->poll_ms = o->poll_ms ? o->poll_ms : POLL_DEFAULT_MS;
    o->mode = o->mode ? o->mode : HF_LOCK_EXCLUSIVE;
    if (o->heartbeat_ms > o->lease_ms / 2)
        return hf_scope_fail(s, HF_INVALID,
                             "lock %.*s: a heartbeat of %u ms is more than half of a lease of %u "
                             "ms",
                             HF_FMT(name), o->heartbeat_ms, o->lease_ms);
    if (o->mode > HF_LOCK_PERMIT)
        return hf_scope_fail(s, HF_INVALID, "lock %.*s: invalid mode %d", HF_FMT(name),
                             (int)o->mode);
    if ((o->mode == HF_LOCK_PERMIT) != (o->permits > 0))
        return hf_scope_fail(s, HF_INVALID, "lock %.*s: %s", HF_FMT(name),
                             o->permits ? "permits need the mode HF_LOCK_PERMIT"
                                        : "HF_LOCK_PERMIT needs permits");
    return HF_OK;
}

static struct hf_lock *lock_new(struct hf_lock_table *table, struct hf_str name,
                                const struct hf_lock_options *o)
{
    struct hf_lock *lock = hf__env_zalloc(&table->env, sizeof(*lock) + name.len);

    if (!lock)
        return NULL;
    *lock = (struct hf_lock){.table = table,
                             .name = hf_str_of(lock->text, name.len),
                             .data_memory = hf_scope_new(&table->env),
                             .id = hf__pattern_id_make(&table->env),
                             .mode = o->mode,
                             .heartbeat_ms = o->heartbeat_ms,
                             .stuck_ms = o->stuck_ms,
                             .late_ms = o->late_ms,
                             .no_heartbeats = o->no_heartbeats,
                             .on_late = o->on_late,
                             .on_lost = o->on_lost,
                             .user = o->user,
                             .refs = 1,
                             .lease_ms = o->lease_ms};
    memcpy(lock->text, name.ptr, name.len);
    if (!lock->data_memory) {
        pthread_mutex_lock(&table->mutex);
        hf__lock_unref(lock);
        pthread_mutex_unlock(&table->mutex);
        return NULL;
    }
    return lock;
}

/* From now on the table's threads look after it. */
static void table_add_lock(struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;

    pthread_mutex_lock(&table->mutex);
    assert(!lock->link && lock->refs == 1 && "a lock is in the list once");
    lock->next = table->locks;
    lock->link = &table->locks;
    if (lock->next)
        lock->next->link = &lock->next;
    table->locks = lock;
    table->busy_beater = table->busy_watcher = table->beater != NULL;
    pthread_mutex_unlock(&table->mutex);
    if (table->beater) {
        int64_t lease_us = (int64_t)lock->lease_ms * 1000;
        int64_t early_us = lock->on_late ? (int64_t)lock->late_ms * 1000 : 0;

        hf__timer_wake_in(table->beater, lock->unreleased ? 0 : (int64_t)lock->heartbeat_ms * 1000);
        hf__timer_wake_in(table->watcher, lease_us - early_us - lease_us / 10);
    }
}

/* (3) Nobody has it: it is forgotten, or released as soon as that can be done. */
static void lock_abandon(struct hf_lock *lock, bool doubtful)
{
    struct hf_lock_table *table = lock->table;

    if (doubtful) {
        lock->lease.due_us = hf__env_elapsed_us(&table->env);
        lock->lease.until_us = lock->lease.due_us + (int64_t)lock->lease_ms * 1000;
        lock->fence = 0; /* whichever it got */
        lock->dropped = lock->unreleased = true;
        table_add_lock(lock);
        return;
    }
    pthread_mutex_lock(&table->mutex);
    hf__lock_unref(lock);
    pthread_mutex_unlock(&table->mutex);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* Fail with `status` and the name of the holder. */
static enum hf_status held_by(struct hf_scope *s, struct acquire_call *call, enum hf_status status)
{
    struct lock_view view = {0};
    struct hf_str name = call->lock->name;

    if (call->known && hf__lock_view(s, &call->table->at, call->item, &view) != HF_OK)
        return hf_scope_error(s)->status;
    if (view.info.holders_len == 0)
        return hf_scope_fail(s, status, "lock %.*s could not be acquired in time", HF_FMT(name));
    if (view.info.holders_len > 1)
        return hf_scope_fail(s, status, "lock %.*s is held by %.*s and %zu others", HF_FMT(name),
                             HF_FMT(view.info.holders[0].owner), view.info.holders_len - 1);
    return hf_scope_fail(s, status, "lock %.*s is held by %.*s", HF_FMT(name),
                         HF_FMT(view.info.holders[0].owner));
}

static atomic_uint *freed_of(struct hf_lock_table *table, struct hf_str name)
{
    return &table->freed[fnv_fold(fnv_add(FNV_BEGIN, name.ptr, name.len)) & (FREED_BUCKETS - 1)];
}

void hf__lock_freed(struct hf_lock_table *table, struct hf_str name)
{
    atomic_fetch_add_explicit(freed_of(table, name), 1, memory_order_relaxed);
}

/* Sleep, but not longer than until somebody on this table releases a lock of that name. */
static enum hf_status sleep_until_freed(struct hf_scope *s, struct acquire_call *call, uint32_t ms)
{
    enum { SLICE_MS = 5 };
    atomic_uint *freed = freed_of(call->table, call->lock->name);
    unsigned before = atomic_load_explicit(freed, memory_order_relaxed);

    while (ms > 0 && atomic_load_explicit(freed, memory_order_relaxed) == before) {
        uint32_t slice = ms < SLICE_MS ? ms : SLICE_MS;

        TRY(hf_scope_sleep_ms(s, slice));
        ms -= slice;
    }
    return HF_OK;
}

/* How long to wait before the next look: a random part of a growing time, but not beyond the moment
 * in which a holder is known to be gone. */
static uint32_t next_look_ms(struct acquire_call *call, const struct lock_plan *plan,
                             uint32_t *poll_ms, uint32_t most_ms)
{
    const struct hf_env *env = &call->table->env;
    uint32_t ms = hf__backoff_jitter_ms(env, *poll_ms);

    if (plan->wait_us / 1000 < ms)
        ms = (uint32_t)((plan->wait_us + 999) / 1000);
    *poll_ms = *poll_ms > most_ms / 2 ? most_ms : *poll_ms * 2;
    return ms;
}

/* Is it a failure that may pass? */
static bool is_passing(const struct hf_scope *s, enum hf_status status)
{
    return status != HF_CANCELED && status != HF_NOMEM &&
           (status == HF_TIMEOUT || hf_scope_error(s)->may_retry);
}

static enum hf_status wait_for(struct hf_scope *s, struct acquire_call *call, uint32_t most_ms)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint32_t poll_ms = POLL_FIRST_MS < most_ms ? POLL_FIRST_MS : most_ms;
    struct lock_plan plan;

    for (;;) {
        enum hf_status status = lock_attempt(s, call, &plan);
        uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX), ms;

        if (status == HF_OK && lease_begins(s, call))
            return HF_OK;
        if (status != HF_OK && status != HF_LOCKED && !is_passing(s, status))
            return status;
        if (left_ms <= 1)
            return held_by(s, call, HF_TIMEOUT);
        if (status != HF_LOCKED)
            plan.wait_us = INT64_MAX;
        ms = next_look_ms(call, &plan, &poll_ms, most_ms);
        status = sleep_until_freed(s, call, ms < left_ms ? ms : left_ms - 1);
        if (status == HF_TIMEOUT) /* sleep may take longer than it was asked to */
            return held_by(s, call, HF_TIMEOUT);
        TRY(status);
        call->item = (struct hf_item){0}; /* it is read again before it is used */
        hf_scope_rewind(s, mark);
    }
}

static enum hf_status try_once(struct hf_scope *s, struct acquire_call *call)
{
    struct lock_plan plan;
    enum hf_status status = lock_attempt(s, call, &plan);

    if (status == HF_LOCKED)
        return held_by(s, call, HF_LOCKED);
    TRY(status);
    if (lease_begins(s, call))
        return HF_OK;
    (void)hf_scope_fail(s, HF_TIMEOUT, "lock %.*s was granted too late", HF_FMT(call->lock->name));
    return hf_scope_doubt(s);
}

static enum hf_status noop_acquire(struct hf_scope *s, struct acquire_call *call)
{
    struct hf_lock_table *table = call->table;
    struct hf_lock *lock = call->lock;

    if (!table->grant)
        return hf_scope_fail(s, HF_LOCKED, "lock %.*s: this no-op table grants no locks",
                             HF_FMT(lock->name));
    lock->data = hf_item_copy(lock->data_memory, call->data);
    lock->since_ms = hf__env_wall_ms(&table->env);
    lock->state = HF_LOCK_HELD;
    lock->lease.until_us = INT64_MAX;
    lock->no_heartbeats = true;
    pthread_mutex_lock(&table->mutex);
    lock->fence = ++table->noop_fence;
    pthread_mutex_unlock(&table->mutex);
    return HF_OK;
}

static enum hf_status lock_acquire(struct hf_scope *s, struct hf_lock_table *table,
                                   struct hf_str name, const struct hf_lock_options *options,
                                   bool wait, struct hf_lock **lock)
{
    struct hf_lock_options o;
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct acquire_call call = {.table = table};
    enum hf_status status;

    *lock = NULL;
    OPTIONS_COPY(&o, options);
    TRY(check_options(s, name, &o));
    call.permits = o.permits;
    call.data = o.data;
    call.lock = lock_new(table, name, &o);
    if (!call.lock)
        return hf_scope_fail(s, HF_NOMEM, "no memory for lock %.*s", HF_FMT(name));
    status = !table->db ? noop_acquire(s, &call)
             : wait     ? wait_for(s, &call, o.poll_ms)
                        : try_once(s, &call);
    if (status == HF_OK) {
        table_add_lock(call.lock);
        *lock = call.lock;
        return hf__lock_done(s, mark, HF_OK);
    }
    lock_abandon(call.lock, call.doubtful);
    return status;
}

enum hf_status hf_lock_try(struct hf_scope *s, struct hf_lock_table *locks, struct hf_str name,
                           const struct hf_lock_options *options, struct hf_lock **lock)
{
    return lock_acquire(s, locks, name, options, false, lock);
}

enum hf_status hf_lock_acquire(struct hf_scope *s, struct hf_lock_table *locks, struct hf_str name,
                               const struct hf_lock_options *options, struct hf_lock **lock)
{
    return lock_acquire(s, locks, name, options, true, lock);
}
