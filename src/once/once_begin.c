/*
 * once/once_begin.c: beginning an attempt: try, wait, do.
 *
 * The first request is the write that begins it, for nobody is there most of the time: one request.
 * If it is refused, the refusal brings the record: completed, so that is the answer; or running.
 * From then on the record is read, and a write is sent only when it should succeed: there is
 * nothing any more, or the attempt was seen with the same beat for its whole timeout. That write
 * names attempt and beat in its condition, so that of many who wait one follows, and none if the
 * attempt has come back to life.
 *
 *  (1) All writes of one call have the same id. Whichever of them is done, it is ours, and we know
 *      it by the id when we see it. Each has a beat of its own, or one who watched the first would
 *      take the second for as old.
 *  (2) Time is noted after the answer has come: that is when a beat was seen at the latest.
 *  (3) An attempt is handed out only while its timeout lasts: when answers took long, it is renewed
 *      first.
 *  (4) If a call ends without knowing whether a write was done, the attempt is given up in the
 *      background.
 */
#include "once/once.h"

enum { ROUNDS = 3, UNKNOWN_US = 0 };

enum verdict {
    FREE,   /* nothing there */
    SILENT, /* running, but silent for its timeout */
    BUSY,   /* running */
    OVER,   /* completed */
    OURS
};

/* One call of hf_once_try() or hf_once_begin(). */
struct begin_call {
    struct hf_once_table *table;
    struct hf_once *once;
    struct once_view view; /* as it was seen last, in the scope */
    bool known;            /* it was seen */
    bool doubtful;         /* a write may have been done, or may still be */
    int64_t sent_us;       /* before the latest write; UNKNOWN_US when ours was an earlier one */
    int64_t wait_us;       /* BUSY: until it would be silent */
};

/* ---- the record ----------------------------------------------------------------------------- */

/* Microseconds until the attempt has been silent for its timeout; 0: it has been. */
static int64_t silent_in(struct hf_once_table *table, const struct once_view *view)
{
    int64_t now_us, left_us, since_us;

    if (hf__pattern_is_orphan(table->db, view->opener))
        return 0;
    pthread_mutex_lock(&table->mutex);
    now_us = hf__env_elapsed_us(&table->env); /* not before what others have seen meanwhile */
    since_us = hf__watch_holder(&table->watch, view->record.attempt, view->beat, now_us);
    pthread_mutex_unlock(&table->mutex);
    left_us = hf__watch_silent_in(since_us, view->record.timeout_ms, now_us);
    if (table->clock_skew_ms) {
        int64_t trusted_us = view->record.renewed_us + (int64_t)view->record.timeout_ms * 1000 +
                             (int64_t)table->clock_skew_ms * 1000 -
                             hf__env_wall_ms(&table->env) * 1000;

        left_us = trusted_us < left_us ? trusted_us : left_us;
    }
    return left_us > 0 ? left_us : 0;
}

static enum hf_status record_judge(struct hf_scope *s, struct begin_call *call, struct hf_item item,
                                   enum verdict *verdict)
{
    struct once_view *view = &call->view;

    TRY(hf__once_view(s, &call->table->at, item, hf__env_wall_ms(&call->table->env), view));
    call->known = true;
    if (view->record.state == HF_ONCE_RUNNING &&
        hf_str_equal(view->record.attempt, once_id(call->once))) {
        call->once->tries = view->record.tries;
        *verdict = OURS;
        return HF_OK;
    }
    TRY(hf__once_hash_check(s, view, call->once->hash));
    call->wait_us = view->record.state == HF_ONCE_RUNNING ? silent_in(call->table, view) : 0;
    *verdict = view->record.state == HF_ONCE_NONE      ? FREE
               : view->record.state != HF_ONCE_RUNNING ? OVER
               : call->wait_us > 0                     ? BUSY
                                                       : SILENT;
    return HF_OK;
}

/* Send the write that begins it, and look at what is there then. */
static enum hf_status attempt_take(struct hf_scope *s, struct begin_call *call,
                                   enum verdict *verdict)
{
    struct hf_once_table *table = call->table;
    struct hf_once *once = call->once;
    struct once_take take = {.name = once->name,
                             .id = once_id(once),
                             .owner = table->owner,
                             .opener = hf_db_opener(table->db),
                             .hash = once->hash,
                             .timeout_ms = once->timeout_ms,
                             .keep_s = once->keep_s,
                             .beat = ++once->beat,
                             .now_ms = hf__env_wall_ms(&table->env)};
    struct hf_update_item update;
    struct hf_item item;
    enum hf_status status;

    assert(*verdict == FREE || *verdict == SILENT);
    assert((call->known || *verdict == FREE) && "nobody was seen to be silent");
    if (*verdict == SILENT) {
        take.follows = call->view.record.attempt;
        take.follows_beat = call->view.beat;
    }
    update = hf__once_take_request(s, &take);
    TRY(hf_scope_built(s));
    call->sent_us = hf__env_elapsed_us(&table->env);
    status = hf__pattern_write(s, table->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    call->doubtful = call->doubtful || status == HF_OK || hf_scope_error(s)->may_have_happened;
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    TRY(record_judge(s, call, item, verdict));
    if (status == HF_CONDITION && *verdict == OURS)
        call->sent_us = UNKNOWN_US; /* one of ours was done, who knows when */
    return HF_OK;
}

/* Try once to begin the attempt. *verdict: what was found. */
static enum hf_status begin_once(struct hf_scope *s, struct begin_call *call, enum verdict *verdict)
{
    struct hf_once_table *table = call->table;

    *verdict = FREE;
    if (call->known) {
        struct hf_item item;

        TRY(hf__pattern_read(s, table->db, table->at.table, hf__once_key(s, &call->once->name),
                             &item));
        TRY(record_judge(s, call, item, verdict));
        call->sent_us = UNKNOWN_US;
    }
    for (int round = 0; round < ROUNDS && (*verdict == FREE || *verdict == SILENT); round++)
        TRY(attempt_take(s, call, verdict));
    if (*verdict == FREE || *verdict == SILENT) {
        *verdict = BUSY;
        call->wait_us = 0;
    }
    assert((*verdict != BUSY || call->known) && call->wait_us >= 0);
    return HF_OK;
}

/* (3) The timeout of what was granted: HF_OK when it lasts, HF_LOST when it is over already. */
static enum hf_status timeout_start(struct hf_scope *s, struct begin_call *call)
{
    struct hf_once *once = call->once;
    int64_t now_us = hf__env_elapsed_us(&call->table->env);

    assert(!once->link && !once->ended && !once->dropped);
    once->lost = false;
    once->touched_us = now_us;
    if (call->sent_us != UNKNOWN_US) {
        hf__lease_take(&once->lease, once_terms(once), call->sent_us);
        if (!lease_is_over(&once->lease, now_us))
            return HF_OK;
    }
    TRY(hf__once_beat(s, once));
    return lease_is_over(&once->lease, hf__env_elapsed_us(&call->table->env)) ? HF_LOST : HF_OK;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static enum hf_status fail_busy(struct hf_scope *s, const struct begin_call *call,
                                enum hf_status status)
{
    const struct once_name *name = &call->once->name;

    if (!call->known || call->view.record.state != HF_ONCE_RUNNING)
        return hf_scope_fail(s, status, "once %.*s/%.*s could not be begun in time",
                             HF_FMT(name->user), HF_FMT(name->key));
    return hf_scope_fail(s, status, "once %.*s/%.*s is being done by %.*s", HF_FMT(name->user),
                         HF_FMT(name->key), HF_FMT(call->view.record.owner));
}

/* Is it a failure that may pass? */
static bool is_passing(const struct hf_scope *s, enum hf_status status)
{
    return status != HF_CANCELED && status != HF_NOMEM &&
           (status == HF_TIMEOUT || hf_scope_error(s)->may_retry);
}

/* Sleep, but not longer than until somebody on this table ends an attempt at that key. */
static enum hf_status sleep_until_ended(struct hf_scope *s, struct begin_call *call, uint32_t ms)
{
    enum { SLICE_MS = 5 };
    atomic_uint *ended = hf__once_ended(call->table, call->once->name.key);
    unsigned before = atomic_load_explicit(ended, memory_order_relaxed);

    while (ms > 0 && atomic_load_explicit(ended, memory_order_relaxed) == before) {
        uint32_t slice = ms < SLICE_MS ? ms : SLICE_MS;

        TRY(hf_scope_sleep_ms(s, slice));
        ms -= slice;
    }
    return HF_OK;
}

static enum hf_status wait_for(struct hf_scope *s, struct begin_call *call, uint32_t most_ms,
                               enum verdict *verdict)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint32_t poll_ms = ONCE_POLL_FIRST_MS < most_ms ? ONCE_POLL_FIRST_MS : most_ms;

    for (;;) {
        enum hf_status status = begin_once(s, call, verdict);
        uint32_t left_ms, ms;

        if (status == HF_OK && *verdict == OVER)
            return HF_OK;
        if (status == HF_OK && *verdict == OURS) {
            status = timeout_start(s, call);
            if (status == HF_OK)
                return HF_OK;
        }
        if (status != HF_OK && status != HF_LOST && !is_passing(s, status))
            return status;
        left_ms = hf_scope_left_ms(s, UINT32_MAX);
        if (left_ms <= 1)
            return fail_busy(s, call, HF_TIMEOUT);
        ms = hf__backoff_jitter_ms(&call->table->env, poll_ms);
        poll_ms = poll_ms > most_ms / 2 ? most_ms : poll_ms * 2;
        if (status == HF_OK && call->wait_us / 1000 < ms)
            ms = (uint32_t)((call->wait_us + 999) / 1000);
        status = sleep_until_ended(s, call, ms < left_ms ? ms : left_ms - 1);
        if (status == HF_TIMEOUT) /* sleep may take longer than it was asked to */
            return fail_busy(s, call, HF_TIMEOUT);
        TRY(status);
        hf_scope_rewind(s, mark); /* the record is read again before it is used */
    }
}

static enum hf_status try_once(struct hf_scope *s, struct begin_call *call, enum verdict *verdict)
{
    TRY(begin_once(s, call, verdict));
    if (*verdict == BUSY)
        return fail_busy(s, call, HF_LOCKED);
    if (*verdict == OURS) {
        enum hf_status status = timeout_start(s, call);

        if (status == HF_LOST)
            status = hf_scope_fail(s, HF_LOCKED, "once %.*s/%.*s was begun too late",
                                   HF_FMT(call->once->name.user), HF_FMT(call->once->name.key));
        return status;
    }
    return HF_OK;
}

/* An attempt that a caller asks for. */
struct asked {
    struct hf_str user, key;
    const struct hf_once_options *options;
    bool wait; /* while another has begun it */
};

static enum hf_status attempt_begin(struct hf_scope *s, struct hf_once_table *onces,
                                    const struct asked *asked, struct hf_once **once,
                                    struct hf_once_record *record)
{
    struct once_name name = {.at = &onces->at, .user = asked->user, .key = asked->key};
    struct begin_call call = {.table = onces};
    enum verdict verdict = FREE;
    struct hf_once_options o;
    enum hf_status status;
    struct hf_str hash;

    *once = NULL;
    *record = (struct hf_once_record){0};
    TRY(hf__once_options(s, &name, asked->options, &o));
    TRY(hf__once_hash(s, o.payload, &hash));
    call.once = hf__once_new(onces, &name, hash, &o);
    if (!call.once)
        return hf_scope_fail(s, HF_NOMEM, "no memory for an attempt at once %.*s/%.*s",
                             HF_FMT(asked->user), HF_FMT(asked->key));
    status = asked->wait ? wait_for(s, &call, o.poll_ms, &verdict) : try_once(s, &call, &verdict);
    if (status != HF_OK || verdict == OVER) {
        /* Ours is not the one that completed it, or we would not have come here: if it may have
         * been begun, that was refused or has been replaced, unless we know nothing. */
        hf__once_forget(call.once, call.doubtful);
        if (status != HF_OK)
            return status;
    } else {
        hf__once_list_add(call.once);
        *once = call.once;
    }
    *record = call.view.record;
    return hf_scope_ok(s);
}

enum hf_status hf_once_try(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                           struct hf_str key, const struct hf_once_options *options,
                           struct hf_once **once, struct hf_once_record *record)
{
    return attempt_begin(s, onces, &(struct asked){.user = user, .key = key, .options = options},
                         once, record);
}

enum hf_status hf_once_begin(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                             struct hf_str key, const struct hf_once_options *options,
                             struct hf_once **once, struct hf_once_record *record)
{
    return attempt_begin(
        s, onces, &(struct asked){.user = user, .key = key, .options = options, .wait = true}, once,
        record);
}

/* ---- doing ---------------------------------------------------------------------------------- */

/* Record what came out, for as long as our timeout: a heartbeat keeps it ours meanwhile. */
static enum hf_status result_record(struct hf_scope *s, struct hf_once *once, struct hf_item result)
{
    const struct hf_env *env = &once->table->env;
    int64_t until_us = hf__env_elapsed_us(env) + (int64_t)once->timeout_ms * 1000;
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct backoff backoff = {.first_ms = ONCE_POLL_FIRST_MS, .max_ms = ONCE_POLL_MS};

    for (;;) {
        enum hf_status status = hf_once_finish(s, once, result);

        if (status == HF_OK || status == HF_LOST || !is_passing(s, status) ||
            hf__env_elapsed_us(env) >= until_us)
            return status;
        if (hf_scope_left_ms(s, UINT32_MAX) <= hf__backoff_next_ms(&backoff))
            return status;
        TRY(hf__backoff_sleep(s, &backoff));
        hf_scope_rewind(s, mark);
    }
}

static enum hf_status action_run(struct hf_scope *s, struct hf_once *once, hf_once_fn *action,
                                 void *user, struct hf_once_record *record)
{
    struct hf_once_table *table = once->table;
    struct hf_item result = {0};
    enum hf_status status = action(s, once, &result, user);
    bool ended;

    if (status != HF_OK)
        return hf_scope_error(s)->status == status
                   ? status
                   : hf_scope_fail(s, status, "once %.*s/%.*s: the action failed",
                                   HF_FMT(once->name.user), HF_FMT(once->name.key));
    pthread_mutex_lock(&table->mutex);
    ended = once->ended;
    pthread_mutex_unlock(&table->mutex);
    if (ended) /* in the action, which knows best what was recorded */
        return hf_once_get(s, table, once->name.user, once->name.key, record);
    if (hf__once_result_check(s, &once->name, result) != HF_OK) {
        struct hf_str why = hf_scope_error(s)->message;

        TRY(result_record(s, once, (struct hf_item){0}));
        (void)hf_scope_fail(s, HF_INVALID, "%.*s; it was recorded as done without one",
                            HF_FMT(why));
        return hf_scope_doubt(s);
    }
    TRY(result_record(s, once, result));
    record->state = HF_ONCE_DONE;
    record->result = result;
    record->at_us = once->at_ms * 1000;
    record->until_us = once->keep_s ? (once->at_ms + (int64_t)once->keep_s * 1000) * 1000 : 0;
    record->timeout_ms = 0;
    record->renewed_us = 0;
    return HF_OK;
}

enum hf_status hf_once_do(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                          struct hf_str key, const struct hf_once_options *options,
                          hf_once_fn *action, void *action_user, struct hf_once_record *record)
{
    struct asked asked = {.user = user, .key = key, .options = options};
    struct hf_once_options o;
    struct hf_once *once;
    enum hf_status status;

    OPTIONS_COPY(&o, options);
    asked.wait = !o.no_wait;
    TRY(attempt_begin(s, onces, &asked, &once, record));
    if (!once)
        return HF_OK;
    status = action_run(s, once, action, action_user, record);
    record->did = status == HF_OK && hf_str_equal(record->attempt, once_id(once));
    hf_once_close(once);
    return status;
}
