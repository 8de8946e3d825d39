/*
 * lock/lock.c: leases on names, with fences: the table of locks, and a lock that is held.
 *
 * The item of a lock names its holders (lock_item.c). A holder replaces its entry every heartbeat,
 * with the next number as its beat (lock_beat.c). A waiter notes the beat that it read and, by its
 * own clock, when; if the same beat is there a lease later, the holder is gone, and the waiter
 * takes its place with a write that is conditional on that beat (lock_wait.c, coord/watch.c).
 *
 * What always holds:
 *
 *  (1) Fences only grow. Release leaves the item, so the fence survives it. Should the item itself
 *      be removed, the first fence of its successor is the time of day in milliseconds, which is
 *      above any fence that was reached by less than a grant a millisecond.
 *  (2) A holding has an id that no other ever had, and every write for it is conditional on its id
 *      being there. So whatever arrives late or twice finds its place gone, or changes nothing.
 *  (3) We consider our lease over before a waiter may: ours runs from before the request was sent,
 *      the waiter's from after the beat was read.
 *  (4) The state of a lock is true at the moment it is asked for, and may be another a moment
 *      later: that is what fences are for.
 *
 * Why clocks are not trusted by default: with a deadline in the item, the first host whose clock
 * is wrong takes locks from those who hold them, and nothing shows it. To wait for one lease costs
 * time after a crash, and never correctness. Where clocks are known to agree, set clock_skew_ms.
 */
#include "lock/lock.h"
#include "base/assert_held.h"

#include <holdfast/table.h>

#include <stdio.h>

/* ---- the table ------------------------------------------------------------------------------ */

static enum hf_status table_ensure(struct hf_scope *s, struct hf_db *db,
                                   const struct pattern_at *at,
                                   const struct hf_lock_table_options *o)
{
    static const char *const own[] = {"data", "fence", "held", "mode", "f:", "h:", NULL};
    struct hf_attribute_definition attribute = {at->hash, HF_SCALAR_S};
    struct hf_key_element key = {at->hash, HF_KEY_HASH};
    struct hf_create_table spec = {.table = at->table,
                                   .attributes = &attribute,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};
    struct hf_table_options options = {.size = sizeof(options), .no_create = o->no_create};

    TRY(hf__pattern_names(s, at, own));
    TRY(hf__kind_keys(s, db, spec.table, KIND_LOCKS, hf_table_ensure(s, db, &spec, &options)));
    TRY(hf__kind_open_at(
        s, &(struct kind_table){.db = db, .spec = &spec, .kind = KIND_LOCKS, .adopt = o->adopt},
        at->expires));
    if (!o->forget_s)
        return HF_OK;
    options.ttl_attribute = at->expires;
    return hf_table_ensure(s, db, &spec, &options);
}

static void table_free(struct hf_lock_table *locks)
{
    struct hf_env env = locks->env;

    hf__timer_stop(locks->beater);
    hf__timer_stop(locks->watcher);
    pthread_mutex_lock(&locks->mutex);
    while (locks->locks) {
        /* What could not be released ends with its lease. */
        assert(locks->locks->dropped && "a lock was not released before its table was closed");
        hf__lock_unref(locks->locks);
    }
    pthread_mutex_unlock(&locks->mutex);
    pthread_cond_destroy(&locks->changed);
    pthread_mutex_destroy(&locks->mutex);
    hf__watch_free(&locks->watch);
    hf_scope_free(locks->work);
    hf_scope_free(locks->names);
    hf__env_free(&env, locks, sizeof(*locks));
}

static struct hf_lock_table *table_new(struct hf_scope *s, struct hf_db *db,
                                       const struct hf_lock_table_options *o)
{
    struct hf_lock_table *locks = hf__env_zalloc(hf_scope_env(s), sizeof(*locks));

    if (!locks)
        return NULL;
    locks->env = *hf_scope_env(s);
    locks->watch.env = &locks->env;
    locks->db = db;
    locks->clock_skew_ms = o->clock_skew_ms;
    locks->forget_s = o->forget_s;
    pthread_mutex_init(&locks->mutex, NULL);
    pthread_cond_init(&locks->changed, NULL);
    locks->names = hf_scope_new(&locks->env);
    locks->work = hf_scope_new(&locks->env);
    if (locks->names && locks->work) {
        locks->at.table = hf_scope_copy(locks->names, o->table.len ? o->table : HF_STR("locks"));
        locks->at.hash = name_or(locks->names, o->hash_attribute, "name");
        locks->at.expires = name_or(locks->names, o->expires_attribute, PATTERN_EXPIRES);
        locks->owner = hf__pattern_owner(locks->names, o->owner);
    }
    if (!locks->names || !locks->work || hf_scope_built(locks->names) != HF_OK) {
        table_free(locks);
        return NULL;
    }
    return locks;
}

static enum hf_status timers_start(struct hf_scope *s, struct hf_lock_table *locks)
{
    TRY(hf__timer_join(s, locks->db, hf__lock_beats, locks, &locks->beater));
    return hf__timer_start(s, hf__lock_calls, locks, &locks->watcher);
}

enum hf_status hf_lock_table_open(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_lock_table_options *options,
                                  struct hf_lock_table **locks)
{
    struct hf_lock_table_options o;
    struct hf_lock_table *made;
    enum hf_status status;

    *locks = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_lock_table_open() was called without a database");
    made = table_new(s, db, &o);
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of locks");
    status = table_ensure(s, db, &made->at, &o);
    if (status == HF_OK && !o.no_threads)
        status = timers_start(s, made);
    if (status != HF_OK) {
        table_free(made);
        return status;
    }
    *locks = made;
    return HF_OK;
}

enum hf_status hf_lock_table_open_noop(struct hf_scope *s, bool grant, struct hf_lock_table **locks)
{
    call_begins(s);
    *locks = table_new(s, NULL, &(struct hf_lock_table_options){0});
    if (!*locks)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a table of locks");
    (*locks)->grant = grant;
    return HF_OK;
}

void hf_lock_table_close(struct hf_lock_table *locks)
{
    if (!locks)
        return;
    assert(!locks->elections && "an election was not closed before its table");
    table_free(locks);
}

static int64_t all_beats(struct hf_lock_table *locks)
{
    int64_t wait_us;

    do
        wait_us = hf__lock_beats(locks);
    while (wait_us <= 0);
    return wait_us;
}

static uint32_t lock_table_do_due(struct hf_lock_table *locks)
{
    int64_t beats_us = all_beats(locks), calls_us = hf__lock_calls(locks);
    int64_t elections_us = hf__election_runs(locks), next_us;

    if (locks->elections) { /* they may have got a lock, or lost one */
        beats_us = all_beats(locks);
        calls_us = hf__lock_calls(locks);
    }
    next_us = beats_us < calls_us ? beats_us : calls_us;
    next_us = elections_us < next_us ? elections_us : next_us;
    next_us = next_us < 0 ? 0 : next_us;
    return next_us / 1000 >= UINT32_MAX ? UINT32_MAX : (uint32_t)((next_us + 999) / 1000);
}

enum hf_status hf_lock_table_step(struct hf_scope *s, struct hf_lock_table *locks,
                                  uint32_t *next_ms)
{
    *next_ms = lock_table_do_due(locks);
    return hf_scope_ok(s);
}

/* ---- a lock --------------------------------------------------------------------------------- */

static enum hf_status lock_renew(struct hf_scope *s, struct hf_lock *lock, uint32_t lease_ms,
                                 struct hf_item data)
{
    struct hf_lock_table *table = lock->table;
    struct hf_scope_mark mark = hf_scope_mark(s);
    enum hf_lock_state state;
    enum hf_status status;

    pthread_mutex_lock(&table->mutex);
    hf__lock_enter(lock);
    state = hf__lock_look(lock, hf__env_elapsed_us(&table->env));
    lease_ms = lease_ms ? lease_ms : lock->lease_ms;
    pthread_mutex_unlock(&table->mutex);
    status = state == HF_LOCK_HELD ? hf__lock_renew(s, lock, lease_ms, data)
                                   : hf__lock_lost(s, lock, state);
    pthread_mutex_lock(&table->mutex);
    lock->touched_us = hf__env_elapsed_us(&table->env);
    hf__lock_leave(lock);
    pthread_mutex_unlock(&table->mutex);
    hf__lock_wake(table);
    return hf__lock_done(s, mark, status);
}

enum hf_status hf_lock_extend(struct hf_scope *s, struct hf_lock *lock, uint32_t lease_ms)
{
    if (lease_ms && !lock->no_heartbeats && lock->heartbeat_ms > lease_ms / 2)
        return hf_scope_fail(s, HF_INVALID,
                             "lock %.*s: a heartbeat of %u ms is more than half of a lease of %u "
                             "ms",
                             HF_FMT(lock->name), lock->heartbeat_ms, lease_ms);
    return lock_renew(s, lock, lease_ms, (struct hf_item){0});
}

enum hf_status hf_lock_set_data(struct hf_scope *s, struct hf_lock *lock, struct hf_item data)
{
    return lock_renew(s, lock, 0, data);
}

/* The release was refused because our entry is gone. Was it removed by an earlier release of ours
 * whose answer got lost? */
static bool was_ours(struct hf_scope *s, const struct hf_lock *lock, struct hf_item item)
{
    bool doubtful = hf_scope_error(s)->may_have_happened;
    struct lock_view view;

    if (hf__lock_view(s, &lock->table->at, item, &view) != HF_OK)
        return false;
    /* Nobody was granted it after us, and to be broken costs a fence, too. Otherwise: when it was
     * released it was ours by the clock, and somebody removed it after that. */
    return view.info.fence == lock->fence || doubtful;
}

/* The mutex is held; nobody calls for it or works on it from now on but us. */
static enum hf_lock_state lock_drop(struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;

    ASSERT_HELD(&table->mutex);
    while (lock->calling && !pthread_equal(lock->caller, pthread_self()))
        pthread_cond_wait(&table->changed, &table->mutex);
    lock->dropped = true;
    return hf__lock_look(lock, hf__env_elapsed_us(&table->env));
}

enum hf_status hf_lock_release_data(struct hf_scope *s, struct hf_lock *lock, struct hf_item data)
{
    struct hf_scope_mark mark;
    struct hf_lock_table *table;
    enum hf_status status = HF_OK;
    enum hf_lock_state state;
    struct hf_item item;

    if (!lock)
        return HF_OK;
    mark = hf_scope_mark(s);
    table = lock->table;
    pthread_mutex_lock(&table->mutex);
    state = lock_drop(lock);
    pthread_mutex_unlock(&table->mutex);
    if (table->db && state != HF_LOCK_STOLEN)
        status = hf__lock_free_send(s, lock, data, &item);
    if (status == HF_CONDITION && state == HF_LOCK_HELD)
        status = was_ours(s, lock, item) ? HF_OK : hf__lock_lost(s, lock, HF_LOCK_STOLEN);
    hf__lock_freed(table, lock->name);
    if (state != HF_LOCK_HELD)
        status = hf__lock_lost(s, lock, state);
    pthread_mutex_lock(&table->mutex);
    if (status == HF_OK || status == HF_LOST) {
        hf__lock_unref(lock);
    } else {
        lock->unreleased = true; /* our reference is the table's now */
        lock->lease.due_us = hf__env_elapsed_us(&table->env);
    }
    pthread_mutex_unlock(&table->mutex);
    if (status != HF_OK && status != HF_LOST)
        hf__lock_wake(table);
    return hf__lock_done(s, mark, status);
}

enum hf_status hf_lock_release(struct hf_scope *s, struct hf_lock *lock)
{
    call_begins(s);
    return hf_lock_release_data(s, lock, (struct hf_item){0});
}

void hf_lock_leave(struct hf_lock *lock)
{
    struct hf_lock_table *table;

    if (!lock)
        return;
    table = lock->table;
    pthread_mutex_lock(&table->mutex);
    (void)lock_drop(lock);
    hf__lock_unref(lock);
    pthread_mutex_unlock(&table->mutex);
}

uint64_t hf_lock_fence(const struct hf_lock *lock)
{
    return lock->fence;
}

struct hf_str hf_lock_name(const struct hf_lock *lock)
{
    return lock->name;
}

enum hf_lock_state hf_lock_state(struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;
    enum hf_lock_state state;

    pthread_mutex_lock(&table->mutex);
    state = hf__lock_look(lock, hf__env_elapsed_us(&table->env));
    pthread_mutex_unlock(&table->mutex);
    return state;
}

uint32_t hf_lock_left_ms(struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;
    int64_t now_us = hf__env_elapsed_us(&table->env), left_ms = 0;

    pthread_mutex_lock(&table->mutex);
    if (hf__lock_look(lock, now_us) == HF_LOCK_HELD)
        left_ms = (lock->lease.until_us - now_us) / 1000;
    pthread_mutex_unlock(&table->mutex);
    return left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

void hf_lock_touch(struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;

    pthread_mutex_lock(&table->mutex);
    lock->touched_us = hf__env_elapsed_us(&table->env);
    pthread_mutex_unlock(&table->mutex);
    hf__lock_wake(table);
}

struct hf_item hf_lock_data(struct hf_scope *s, struct hf_lock *lock)
{
    struct hf_lock_table *table = lock->table;
    struct hf_item data;

    pthread_mutex_lock(&table->mutex);
    data = hf_item_copy(s, lock->data);
    pthread_mutex_unlock(&table->mutex);
    return data;
}
