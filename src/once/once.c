/*
 * once/once.c: what is done once: the table of records, and an attempt that is ours.
 *
 * A record is nothing, running, or completed (once_item.c). Whoever finds nothing begins an attempt
 * with one write; whoever finds it running waits, and watches (once_begin.c, coord/watch.c); whoever
 * finds it completed takes the result from the refusal of that same write. An attempt that runs
 * sends heartbeats (once_beat.c).
 *
 *     nothing --begin--> running --finish--> done --its time is over--> nothing
 *        ^                |  |
 *        `---- give up ---'  `-- silent for a timeout, seen by another --> running (another's)
 *
 * What always holds:
 *
 *  (1) Between two times of nothing there is one completion at most: it needs "running" and the
 *      attempt's own id, and ends both.
 *  (2) An attempt that was replaced, cleared or marked over cannot complete, beat or be given up
 *      any more, however late its requests arrive.
 *  (3) We consider our timeout over before a watcher may: ours runs from before the heartbeat was
 *      sent, the watcher's from after it was seen. Unlike a lock, an attempt is not lost by that:
 *      it completes if nobody came. Its id decides, and no clock.
 *  (4) If the completion of an attempt, or that it was given up, could not be written when it was
 *      closed, the table writes it later.
 */
#include "once/once.h"
#include "base/assert_held.h"

_Static_assert((ONCE_ENDED_BUCKETS & (ONCE_ENDED_BUCKETS - 1)) == 0, "a power of two");

/* ---- the table ------------------------------------------------------------------------------ */

static enum hf_status table_ensure(struct hf_scope *s, struct hf_db *db,
                                   const struct pattern_at *at,
                                   const struct hf_once_table_options *o)
{
    static const char *const own[] = {"attempt", "beat",       "began_ms",   "done_ms", "hash",
                                      "opener",  "owner",      "renewed_ms", "result",  "state",
                                      "tries",   "timeout_ms", "until_ms",   NULL};
    struct hf_attribute_definition attributes[] = {{at->hash, HF_SCALAR_S},
                                                   {at->sort, HF_SCALAR_S}};
    struct hf_key_element keys[] = {{at->hash, HF_KEY_HASH}, {at->sort, HF_KEY_RANGE}};
    struct hf_create_table spec = {.table = at->table,
                                   .attributes = attributes,
                                   .attributes_len = 2,
                                   .key_schema = keys,
                                   .key_schema_len = 2};
    struct pattern_open how = {KIND_ONCE, .no_create = o->no_create, .adopt = o->adopt};

    TRY(hf__pattern_names(s, at, own));
    TRY(hf__pattern_table_begin(s, db, &spec, at->expires, &how));
    TRY(hf__kind_open_at(
        s, &(struct kind_table){.db = db, .spec = &spec, .kind = KIND_ONCE, .adopt = o->adopt},
        at->expires));
    return hf__pattern_table_end(s, db, &spec, at->expires, &how);
}

static void table_free(struct hf_once_table *onces)
{
    struct hf_env env = onces->env;

    hf__timer_stop(onces->beater);
    pthread_mutex_lock(&onces->mutex);
    while (onces->attempts) {
        assert(onces->attempts->dropped && "an attempt was not closed before its table");
        hf__once_unref(onces->attempts);
    }
    pthread_mutex_unlock(&onces->mutex);
    pthread_cond_destroy(&onces->changed);
    pthread_mutex_destroy(&onces->mutex);
    hf_scope_free(onces->work);
    hf_scope_free(onces->names);
    hf__watch_free(&onces->watch);
    hf__env_free(&env, onces, sizeof(*onces));
}

static struct hf_once_table *table_new(struct hf_scope *s, struct hf_db *db,
                                       const struct hf_once_table_options *o)
{
    struct hf_once_table *onces = hf__env_zalloc(hf_scope_env(s), sizeof(*onces));

    if (!onces)
        return NULL;
    onces->env = *hf_scope_env(s);
    onces->watch.env = &onces->env;
    onces->db = db;
    onces->clock_skew_ms = o->clock_skew_ms;
    pthread_mutex_init(&onces->mutex, NULL);
    pthread_cond_init(&onces->changed, NULL);
    onces->names = hf_scope_new(&onces->env);
    onces->work = hf_scope_new(&onces->env);
    if (onces->names && onces->work) {
        onces->at.table = hf_scope_copy(onces->names, o->table.len ? o->table : HF_STR("once"));
        onces->at.hash = name_or(onces->names, o->hash_attribute, "user");
        onces->at.sort = name_or(onces->names, o->sort_attribute, "key");
        onces->at.expires = name_or(onces->names, o->expires_attribute, PATTERN_EXPIRES);
        onces->owner = hf__pattern_owner(onces->names, o->owner);
    }
    if (!onces->names || !onces->work || hf_scope_built(onces->names) != HF_OK) {
        table_free(onces);
        return NULL;
    }
    return onces;
}

enum hf_status hf_once_table_open(struct hf_scope *s, struct hf_db *db,
                                  const struct hf_once_table_options *options,
                                  struct hf_once_table **onces)
{
    struct hf_once_table_options o;
    struct hf_once_table *made;
    enum hf_status status;

    *onces = NULL;
    OPTIONS_COPY(&o, options);
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_once_table_open() was called without a database");
    made = table_new(s, db, &o);
    if (!made)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a do-once table");
    status = table_ensure(s, db, &made->at, &o);
    if (status == HF_OK && !o.no_threads)
        status = hf__timer_join(s, db, hf__once_beats, made, &made->beater);
    if (status != HF_OK) {
        table_free(made);
        return status;
    }
    *onces = made;
    return HF_OK;
}

void hf_once_table_close(struct hf_once_table *onces)
{
    if (onces)
        table_free(onces);
}

static uint32_t once_table_do_due(struct hf_once_table *onces)
{
    int64_t next_us;

    do
        next_us = hf__once_beats(onces);
    while (next_us <= 0);
    return next_us / 1000 >= UINT32_MAX ? UINT32_MAX : (uint32_t)((next_us + 999) / 1000);
}

enum hf_status hf_once_table_step(struct hf_scope *s, struct hf_once_table *onces,
                                  uint32_t *next_ms)
{
    *next_ms = once_table_do_due(onces);
    return hf_scope_ok(s);
}

/* ---- what is asked for ---------------------------------------------------------------------- */

enum hf_status hf__once_options(struct hf_scope *s, const struct once_name *name,
                                const struct hf_once_options *options, struct hf_once_options *o)
{
    OPTIONS_COPY(o, options);
    TRY(hf__once_name_check(s, name));
    o->timeout_ms = o->timeout_ms ? o->timeout_ms : ONCE_TIMEOUT_MS;
    o->heartbeat_ms = o->heartbeat_ms ? o->heartbeat_ms : hf__lease_heartbeat_ms(o->timeout_ms);
    o->poll_ms = o->poll_ms ? o->poll_ms : ONCE_POLL_MS;
    if (o->heartbeat_ms > o->timeout_ms / 2)
        return hf_scope_fail(s, HF_INVALID,
                             "once %.*s/%.*s: a heartbeat of %u ms is more than half of a timeout "
                             "of %u ms",
                             HF_FMT(name->user), HF_FMT(name->key), o->heartbeat_ms, o->timeout_ms);
    return HF_OK;
}

enum hf_status hf__once_result_check(struct hf_scope *s, const struct once_name *name,
                                     struct hf_item result)
{
    if (!result.ptr)
        return HF_OK;
    TRY(hf_item_check(s, result));
    if (hf_item_size(result) > HF_ONCE_RESULT_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_ONCE_RESULT_MAX, hf_item_size(result)),
                                   "once %.*s/%.*s: a result of %zu bytes is larger than %d",
                                   HF_FMT(name->user), HF_FMT(name->key), hf_item_size(result),
                                   HF_ONCE_RESULT_MAX);
    return HF_OK;
}

enum hf_status hf__once_hash_check(struct hf_scope *s, const struct once_view *view,
                                   struct hf_str hash)
{
    if (!hash.ptr || !view->hash.ptr || hf_str_equal(hash, view->hash))
        return HF_OK;
    return hf_scope_fail(s, HF_TOKEN_MISMATCH, "once %.*s/%.*s was begun with another payload",
                         HF_FMT(view->record.user), HF_FMT(view->record.key));
}

atomic_uint *hf__once_ended(struct hf_once_table *table, struct hf_str key)
{
    return &table->ended[fnv_fold(fnv_add(FNV_BEGIN, key.ptr, key.len)) & (ONCE_ENDED_BUCKETS - 1)];
}

/* ---- an attempt ----------------------------------------------------------------------------- */

struct hf_once *hf__once_new(struct hf_once_table *table, const struct once_name *name,
                             struct hf_str hash, const struct hf_once_options *o)
{
    struct hf_once *once = hf__env_zalloc(&table->env, sizeof(*once));
    struct hf_scope *memory;

    if (!once)
        return NULL;
    *once = (struct hf_once){.table = table,
                             .memory = hf_scope_new(&table->env),
                             .id = hf__pattern_id_make(&table->env),
                             .timeout_ms = o->timeout_ms,
                             .heartbeat_ms = o->heartbeat_ms,
                             .stuck_ms = o->stuck_ms,
                             .keep_s = o->keep_s,
                             .no_heartbeats = o->no_heartbeats,
                             .on_lost = o->on_lost,
                             .user = o->user,
                             .refs = 1};
    memory = once->memory;
    if (memory) {
        once->name = (struct once_name){.at = &table->at,
                                        .user = hf_scope_copy(memory, name->user),
                                        .key = hf_scope_copy(memory, name->key)};
        if (hash.ptr)
            once->hash = hf_scope_copy(memory, hash);
    }
    if (!memory || hf_scope_built(memory) != HF_OK) {
        hf__once_forget(once, false);
        return NULL;
    }
    return once;
}

void hf__once_list_add(struct hf_once *once)
{
    struct hf_once_table *table = once->table;
    int64_t due_us = once->lease.due_us;

    pthread_mutex_lock(&table->mutex);
    assert(!once->link && once->refs == 1 && "an attempt is in the list once");
    table->busy_beater = table->beater != NULL;
    once->next = table->attempts;
    once->link = &table->attempts;
    if (once->next)
        once->next->link = &once->next;
    table->attempts = once;
    pthread_mutex_unlock(&table->mutex);
    if (table->beater)
        hf__timer_wake_in(table->beater, due_us - hf__env_elapsed_us(&table->env));
}

void hf__once_unref(struct hf_once *once)
{
    struct hf_once_table *table = once->table;

    ASSERT_HELD(&table->mutex);
    assert(once->refs > 0);
    if (--once->refs)
        return;
    if (once->link) {
        *once->link = once->next;
        if (once->next)
            once->next->link = once->link;
    }
    hf_scope_free(once->memory);
    hf__env_free(&table->env, once, sizeof(*once));
}

/* The table writes what is left to write, and owns our reference. The mutex is held. */
static void leave_behind(struct hf_once *once)
{
    int64_t now_us = hf__env_elapsed_us(&once->table->env);

    assert(!once->dropped && !once->ended);
    once->dropped = true;
    once->lease.due_us = now_us;
    once->lease.until_us = now_us + (int64_t)once->timeout_ms * 1000;
}

void hf__once_forget(struct hf_once *once, bool doubtful)
{
    struct hf_once_table *table = once->table;

    if (doubtful) {
        leave_behind(once); /* nobody else knows it yet */
        hf__once_list_add(once);
        return;
    }
    pthread_mutex_lock(&table->mutex);
    hf__once_unref(once);
    pthread_mutex_unlock(&table->mutex);
}

/* ---- ending it ------------------------------------------------------------------------------ */

enum hf_status hf__once_over(struct hf_scope *s, struct hf_once *once, bool lost)
{
    struct hf_once_table *table = once->table;

    pthread_mutex_lock(&table->mutex);
    once->lost = once->lost || lost;
    once->ended = once->ended || !lost;
    pthread_mutex_unlock(&table->mutex);
    atomic_fetch_add_explicit(hf__once_ended(table, once->name.key), 1, memory_order_relaxed);
    if (!lost)
        return hf_scope_ok(s);
    return hf_scope_fail(s, HF_LOST,
                         "once %.*s/%.*s: another attempt took over, or it was cleared or marked",
                         HF_FMT(once->name.user), HF_FMT(once->name.key));
}

enum hf_status hf__once_refused(struct hf_scope *s, struct hf_once *once, struct hf_item item)
{
    bool doubtful = hf_scope_error(s)->may_have_happened;
    struct once_view view;
    enum hf_status status;

    TRY(hf__once_view(s, &once->table->at, item, hf__env_wall_ms(&once->table->env), &view));
    if (view.there && view.record.state != HF_ONCE_RUNNING &&
        hf_str_equal(view.record.attempt, once_id(once)))
        return hf__once_over(s, once, false);
    status = hf__once_over(s, once, true);
    /* It may have been recorded, and cleared since. */
    return doubtful ? hf_scope_doubt(s) : status;
}

enum hf_status hf__once_want(struct hf_scope *s, struct hf_once *once, enum hf_once_state state,
                             struct hf_item result, struct once_end *end)
{
    struct hf_once_table *table = once->table;
    struct hf_item kept = {0};
    enum hf_status status = HF_OK;

    assert(state == HF_ONCE_DONE || state == HF_ONCE_FAILED);
    pthread_mutex_lock(&table->mutex);
    if (!once->wanted) {
        if (result.ptr)
            kept = hf_item_copy(once->memory, result);
        status = hf_scope_built(once->memory);
        if (status == HF_OK) {
            once->wanted = state;
            once->result = kept;
            once->at_ms = hf__env_wall_ms(&table->env);
        }
    }
    *end = (struct once_end){.name = once->name,
                             .id = once_id(once),
                             .state = once->wanted,
                             .result = once->result,
                             .keep_s = once->keep_s,
                             .now_ms = once->at_ms};
    pthread_mutex_unlock(&table->mutex);
    return status == HF_OK ? HF_OK : hf_scope_fail(s, status, "no memory for a result");
}

static enum hf_status attempt_end(struct hf_scope *s, struct hf_once *once,
                                  enum hf_once_state state, struct hf_item result)
{
    struct hf_once_table *table = once->table;
    struct once_end ignored;
    bool lost, ended;

    pthread_mutex_lock(&table->mutex);
    lost = once->lost;
    ended = once->ended;
    pthread_mutex_unlock(&table->mutex);
    if (lost || ended)
        return hf__once_over(s, once, lost && !ended);
    TRY(hf__once_result_check(s, &once->name, result));
    TRY(hf__once_want(s, once, state, result, &ignored));
    return hf__once_end_send(s, once);
}

enum hf_status hf_once_finish(struct hf_scope *s, struct hf_once *once, struct hf_item result)
{
    return attempt_end(s, once, HF_ONCE_DONE, result);
}

enum hf_status hf_once_fail(struct hf_scope *s, struct hf_once *once, struct hf_item result)
{
    return attempt_end(s, once, HF_ONCE_FAILED, result);
}

void hf_once_committed(struct hf_once *once)
{
    pthread_mutex_lock(&once->table->mutex);
    once->ended = true;
    pthread_mutex_unlock(&once->table->mutex);
    atomic_fetch_add_explicit(hf__once_ended(once->table, once->name.key), 1, memory_order_relaxed);
}

/* Write that the attempt was given up. True: that is done, or the attempt is not ours any more. */
static bool give_up(struct hf_once *once)
{
    struct hf_scope *s = hf_scope_new(&once->table->env);
    enum hf_status status = HF_NOMEM;

    if (s) {
        hf_scope_timeout_ms(s, ONCE_CALL_MS);
        status = hf__once_remove_send(s, once);
    }
    hf_scope_free(s);
    return status == HF_OK || status == HF_CONDITION;
}

void hf_once_close(struct hf_once *once)
{
    struct hf_once_table *table;
    bool resolved, finish;

    if (!once)
        return;
    table = once->table;
    pthread_mutex_lock(&table->mutex);
    resolved = once->ended || once->lost;
    finish = once->wanted != HF_ONCE_NONE;
    once->closing = true;
    while (once->telling)
        pthread_cond_wait(&table->changed, &table->mutex);
    pthread_mutex_unlock(&table->mutex);
    if (!resolved && !finish)
        resolved = give_up(once);
    atomic_fetch_add_explicit(hf__once_ended(table, once->name.key), 1, memory_order_relaxed);
    pthread_mutex_lock(&table->mutex);
    if (resolved)
        hf__once_unref(once);
    else
        leave_behind(once);
    pthread_mutex_unlock(&table->mutex);
    if (!resolved && table->beater)
        hf__timer_wake(table->beater);
}

/* ---- asking it ------------------------------------------------------------------------------ */

bool hf_once_lost(struct hf_once *once)
{
    bool lost;

    pthread_mutex_lock(&once->table->mutex);
    lost = once->lost;
    pthread_mutex_unlock(&once->table->mutex);
    return lost;
}

uint32_t hf_once_left_ms(struct hf_once *once)
{
    struct hf_once_table *table = once->table;
    int64_t left_ms = 0;

    pthread_mutex_lock(&table->mutex);
    if (!once->lost)
        left_ms = (once->lease.until_us - hf__env_elapsed_us(&table->env)) / 1000;
    pthread_mutex_unlock(&table->mutex);
    return left_ms <= 0 ? 0 : left_ms > UINT32_MAX ? UINT32_MAX : (uint32_t)left_ms;
}

void hf_once_touch(struct hf_once *once)
{
    struct hf_once_table *table = once->table;

    pthread_mutex_lock(&table->mutex);
    once->touched_us = hf__env_elapsed_us(&table->env);
    pthread_mutex_unlock(&table->mutex);
    if (table->beater)
        hf__timer_wake(table->beater);
}

uint64_t hf_once_tries(const struct hf_once *once)
{
    return once->tries;
}
