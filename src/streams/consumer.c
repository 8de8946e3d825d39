/*
 * streams/consumer.c: the changes of a table's items, from its stream to a function.
 *
 * A stream has shards; a change of an item is in one of them, and all later changes of that item
 * are in the same or in those that follow it. The thread that runs the consumer looks for shards
 * periodically (consumer_shard.c); workers read those that we have, page by page, each shard by one
 * worker at a time, and hand over what they find (consumer_read.c). With a name, what we have is
 * leased in a table, and how far we are is written there with every heartbeat (consumer_lease.c).
 *
 * What always holds:
 *
 *  (1) A change is handed over at least once, or it is reported that it is gone.
 *  (2) Changes of one item are handed over in order. Those of a batch that failed come again, and
 *      nothing that is behind them in the shard, or in its children, before they were taken.
 *  (3) Among consumers of a name a shard is read by its owner alone, as long as that one is not
 *      stopped for a whole lease in the middle of a batch.
 *  (4) When a run ends, positions are written and leases given back before it returns. A handler
 *      that does not return within stop_ms is left: its shard is given back as one that is stuck,
 *      its thread is joined by the next run, or when the consumer is closed.
 *
 * Workers are those of a pump (coord/pump.c): they wait until a shard is due, by the env's clock,
 * or until one becomes ours. The thread that runs the consumer waits until it is time for the next
 * look, or until it is woken for one. Nobody polls.
 */
#include "streams/consumer.h"

#include <stdio.h>

#include "base/assert_held.h"

enum { GOODBYE_MS = 10000 };

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status check_options(struct hf_scope *s, const struct hf_consumer_options *o)
{
    if (o->start < HF_START_FIRST || o->start > HF_START_TIME)
        return hf_scope_fail(s, HF_INVALID, "invalid start %d", (int)o->start);
    if (o->start == HF_START_AFTER && (!o->shard.len || !o->sequence.len))
        return hf_scope_fail(s, HF_INVALID, "HF_START_AFTER needs a shard and a sequence number");
    if (o->start == HF_START_TIME && o->from_us <= 0)
        return hf_scope_fail(s, HF_INVALID, "HF_START_TIME needs a time");
    if (o->name.len > CONSUMER_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   hf_error_limit_of("name", CONSUMER_NAME_MAX, o->name.len),
                                   "a consumer's name of %zu bytes is longer than %d", o->name.len,
                                   CONSUMER_NAME_MAX);
    if (o->lease_ms < CONSUMER_LEASE_MIN_MS)
        return hf_scope_fail(s, HF_INVALID, "a lease of %u ms is shorter than %d ms", o->lease_ms,
                             CONSUMER_LEASE_MIN_MS);
    if (o->workers > CONSUMER_THREADS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   hf_error_limit_of("workers", CONSUMER_THREADS_MAX, o->workers),
                                   "%u threads are more than %d", o->workers, CONSUMER_THREADS_MAX);
    if (o->stuck != HF_STUCK_LEAVE && o->stuck != HF_STUCK_RELEASE)
        return hf_scope_fail(s, HF_INVALID, "invalid value for hf_consumer_options.stuck");
    if (o->stuck == HF_STUCK_RELEASE && !o->name.len)
        return hf_scope_fail(s, HF_INVALID,
                             "HF_STUCK_RELEASE needs a name: without one, a consumer has no leases "
                             "to release");
    return HF_OK;
}

static void set_defaults(struct hf_consumer_options *o)
{
    o->start = o->start ? o->start : HF_START_FIRST;
    o->batch = o->batch ? o->batch : CONSUMER_BATCH_DEFAULT;
    o->batch = o->batch < CONSUMER_BATCH_MAX ? o->batch : CONSUMER_BATCH_MAX;
    o->poll_ms = o->poll_ms ? o->poll_ms : CONSUMER_POLL_DEFAULT_MS;
    o->workers = o->workers ? o->workers : 1;
    o->lease_ms = o->lease_ms ? o->lease_ms : CONSUMER_LEASE_DEFAULT_MS;
    o->checkpoint_ms = o->checkpoint_ms ? o->checkpoint_ms : CONSUMER_CHECKPOINT_DEFAULT_MS;
    o->backoff_ms = o->backoff_ms ? o->backoff_ms : CONSUMER_BACKOFF_DEFAULT_MS;
    o->stuck_ms = o->stuck_ms ? o->stuck_ms : CONSUMER_STUCK_DEFAULT_MS;
    o->stuck = o->stuck ? o->stuck : HF_STUCK_LEAVE;
    o->table = o->table.len ? o->table : HF_STR("checkpoints");
}

static void copy_texts(struct hf_consumer *c, struct hf_str table)
{
    struct hf_scope *s = c->names;

    c->table = hf_scope_copy(s, table);
    c->o.name = hf_scope_copy(s, c->o.name);
    c->o.table = hf_scope_copy(s, c->o.table);
    c->o.owner = hf__pattern_owner(s, c->o.owner);
    c->o.shard = hf_scope_copy(s, c->o.shard);
    c->o.sequence = hf_scope_copy(s, c->o.sequence);
    c->o.partition = hf_scope_copy(s, c->o.partition);
    c->pk = PATTERN_KEY(s, c->o.name, c->table);
}

static enum hf_status make_workers(struct hf_consumer *c)
{
    size_t len = c->o.no_threads ? 1 : c->o.workers;

    c->workers = hf__env_zalloc(&c->env, len * sizeof(*c->workers));
    if (!c->workers)
        return HF_NOMEM;
    c->workers_len = len;
    for (size_t i = 0; i < len; i++) {
        struct consumer_worker *worker = &c->workers[i];

        worker->consumer = c;
        worker->work = hf_scope_new(&c->env);
        worker->own = c->o.no_threads ? NULL : hf_scope_new(&c->env);
        if (!worker->work || (!worker->own && !c->o.no_threads))
            return HF_NOMEM;
        worker->io = worker->own;
    }
    return HF_OK;
}

static int64_t serve_due(size_t number, void *consumer);

static enum hf_status consumer_fill(struct hf_scope *s, struct hf_consumer *c, struct hf_str table)
{
    struct pump_options pump = {.workers = c->o.no_threads ? 0 : c->o.workers,
                                .step = serve_due,
                                .user = c};
    struct hf_str arn;

    c->names = hf_scope_new(&c->env);
    c->beat_scope = hf_scope_new(&c->env);
    c->why = hf_scope_new(&c->env);
    if (!c->names || !c->beat_scope || !c->why || make_workers(c) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a consumer");
    copy_texts(c, table);
    if (hf_scope_built(c->names) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a consumer");
    TRY(hf__pump_open(s, &pump, &c->pump));
    TRY(hf__consumer_stream(s, c, &arn));
    if (!arn.len)
        return hf_scope_fail(s, HF_INVALID, "table %.*s has no stream", HF_FMT(table));
    if (!hf__text_set(&c->env, &c->arn, arn))
        return hf_scope_fail(s, HF_NOMEM, "no memory for a consumer");
    return has_name(c) ? hf__shard_lease_table(s, c) : HF_OK;
}

enum hf_status hf_consumer_open(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                const struct hf_consumer_options *options,
                                struct hf_consumer **consumer)
{
    struct hf_consumer_options o;
    struct hf_consumer *c;
    enum hf_status status;

    *consumer = NULL;
    OPTIONS_COPY(&o, options);
    if (!db || !table.len)
        return hf_scope_fail(s, HF_INVALID, "a consumer needs a database and a table");
    set_defaults(&o);
    TRY(check_options(s, &o));
    c = hf__env_zalloc(hf_scope_env(s), sizeof(*c));
    if (!c)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a consumer");
    c->env = *hf_scope_env(s);
    c->db = db;
    c->o = o;
    c->id = hf__pattern_id_make(&c->env);
    pthread_mutex_init(&c->mutex, NULL);
    hf__waiters_init(&c->looker);
    status = consumer_fill(s, c, table);
    if (status != HF_OK) {
        hf_consumer_close(c);
        return status;
    }
    *consumer = c;
    return HF_OK;
}

void hf_consumer_close(struct hf_consumer *c)
{
    struct hf_env env;

    if (!c)
        return;
    assert(!c->running && "a consumer was closed while it was running");
    hf__pump_close(c->pump);
    env = c->env;
    for (size_t i = 0; i < c->workers_len; i++) {
        hf_scope_free(c->workers[i].own);
        hf_scope_free(c->workers[i].work);
    }
    hf__env_free(&env, c->workers, c->workers_len * sizeof(*c->workers));
    hf__shards_free(c);
    hf__text_free(&env, &c->arn);
    hf__text_free(&env, &c->hash);
    hf__text_free(&env, &c->shard);
    hf__text_free(&env, &c->number);
    hf_scope_free(c->names);
    hf_scope_free(c->beat_scope);
    hf_scope_free(c->why);
    hf__waiters_free(&c->looker);
    pthread_mutex_destroy(&c->mutex);
    hf__env_free(&env, c, sizeof(*c));
}

void hf_consumer_metrics(struct hf_consumer *c, struct hf_consumer_metrics *metrics)
{
    pthread_mutex_lock(&c->mutex);
    *metrics = c->metrics;
    pthread_mutex_unlock(&c->mutex);
}

/* ---- what the files share ------------------------------------------------------------------- */

void hf__consumer_check(struct hf_consumer *c)
{
    size_t owned = 0, busy = 0;

    ASSERT_HELD(&c->mutex);
    if (!DEV_CHECKS)
        return;
    for (const struct shard *shard = c->shards; shard; shard = shard->next) {
        owned += shard->owned;
        busy += shard->busy;
        assert(!(shard->owned && shard->done) && "a shard that was read to its end is nobody's");
        assert((!shard->owned || shard->decided) && "nobody said from where it is read");
    }
    assert(owned == c->metrics.shards);
    assert(busy <= c->workers_len && "a worker reads one shard at a time");
}

void hf__consumer_stop(struct hf_consumer *c, enum hf_status status, const struct hf_scope *why)
{
    pthread_mutex_lock(&c->mutex);
    if (!c->stopping) {
        c->stopping = true;
        c->stop_status = status;
        (void)hf_scope_fail_from(c->why, status, why);
        for (size_t i = 0; i < c->workers_len; i++) {
            if (!c->workers[i].shard)
                continue;
            hf_scope_cancel(c->workers[i].work);
            if (c->workers[i].own)
                hf_scope_cancel(c->workers[i].own);
        }
    }
    hf__waiters_notify(&c->looker);
    pthread_mutex_unlock(&c->mutex);
}

bool hf__consumer_stopping(struct hf_consumer *c)
{
    bool stopping;

    pthread_mutex_lock(&c->mutex);
    stopping = c->stopping;
    pthread_mutex_unlock(&c->mutex);
    return stopping;
}

void hf__consumer_gap(struct hf_consumer *c, struct hf_str shard, struct hf_str sequence)
{
    pthread_mutex_lock(&c->mutex);
    c->metrics.gaps++;
    pthread_mutex_unlock(&c->mutex);
    if (c->o.on_gap)
        c->o.on_gap(shard, sequence, c->o.user);
}

uint32_t hf__consumer_retry_ms(const struct hf_consumer *c, uint32_t tries)
{
    return hf__backoff_ms(&c->env, CONSUMER_RETRY_MS, CONSUMER_RETRY_MAX_MS, tries + UINT64_C(1));
}

/* ---- workers -------------------------------------------------------------------------------- */

/* The shard that is due longest; with the mutex. *next_us: when the first of the others is. */
static struct shard *shard_pick(struct hf_consumer *c, int64_t now_us, int64_t *next_us)
{
    struct shard *best = NULL;

    ASSERT_HELD(&c->mutex);
    *next_us = INT64_MAX;
    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        if (!shard->owned || shard->busy || shard->done || (shard->at_end && !shard->wanted[0]))
            continue;
        if (shard->due_us <= now_us && (!best || shard->due_us < best->due_us)) {
            if (best)
                *next_us = best->due_us < *next_us ? best->due_us : *next_us;
            best = shard;
        } else if (shard->due_us < *next_us) {
            *next_us = shard->due_us;
        }
    }
    return best;
}

/* A shard was read: wake the thread that looks, if it has to look or may end. */
static void shard_served(struct consumer_worker *worker, struct shard *shard)
{
    struct hf_consumer *c = worker->consumer;

    pthread_mutex_lock(&c->mutex);
    assert(shard->busy && worker->shard == shard);
    shard->busy = false;
    worker->shard = NULL;
    if (c->look_now || c->o.until_end)
        hf__waiters_notify(&c->looker);
    pthread_mutex_unlock(&c->mutex);
}

/* Read one shard if one is due: a pump_step_fn. */
static int64_t serve_due(size_t number, void *consumer)
{
    struct hf_consumer *c = consumer;
    struct consumer_worker *worker = &c->workers[number];
    struct shard *shard = NULL;
    int64_t next_us = INT64_MAX;

    hf_scope_reset(worker->work);
    if (worker->own)
        hf_scope_reset(worker->own);
    pthread_mutex_lock(&c->mutex);
    if (!c->stopping)
        shard = shard_pick(c, hf__env_elapsed_us(&c->env), &next_us);
    assert(!shard || (shard->owned && !shard->busy && !shard->done));
    if (shard)
        shard->busy = true;
    assert(!worker->shard);
    worker->shard = shard;
    pthread_mutex_unlock(&c->mutex);
    if (!shard)
        return next_us;
    hf__pump_wake_at(c->pump, next_us); /* for another worker */
    hf__consumer_serve(worker, shard);
    shard_served(worker, shard);
    return 0;
}

/* ---- looking for shards --------------------------------------------------------------------- */

/* HF_OK: the run goes on. Otherwise why it ends. */
static enum hf_status run_check(struct hf_scope *s, struct hf_consumer *c)
{
    TRY(hf_scope_sleep_ms(s, 0));
    if (hf__consumer_stopping(c))
        return hf_scope_fail_from(s, c->stop_status, c->why);
    return HF_OK;
}

static int64_t look_every_us(const struct hf_consumer *c)
{
    int64_t ms = has_name(c) ? hf__lease_heartbeat_ms(c->o.lease_ms) : CONSUMER_LOOK_MS;

    return (ms < CONSUMER_LOOK_MS ? ms : CONSUMER_LOOK_MS) * 1000;
}

/* Look, if it is time to; failures that may pass are tried again later. */
static enum hf_status look_if_due(struct hf_scope *s, struct hf_consumer *c, bool *ended)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    int64_t now_us = hf__env_elapsed_us(&c->env);
    enum hf_status status;
    bool now;

    *ended = false;
    pthread_mutex_lock(&c->mutex);
    now = c->look_now && !c->look_failures;
    pthread_mutex_unlock(&c->mutex);
    if (!now && now_us < c->look_us)
        return HF_OK;
    status = hf__consumer_look(s, c, ended);
    now_us = hf__env_elapsed_us(&c->env);
    if (status == HF_OK) {
        c->look_failures = 0;
        c->look_us = now_us + look_every_us(c);
        return HF_OK;
    }
    TRY(run_check(s, c));
    if (status != HF_TIMEOUT && !error_is_transient(hf_scope_error(s)))
        return status;
    hf_scope_rewind(s, mark);
    c->look_us = now_us + (int64_t)hf__consumer_retry_ms(c, c->look_failures++) * 1000;
    return HF_OK;
}

/* With until_end: is all that was there handed over? */
static bool is_over(struct hf_consumer *c)
{
    bool over;

    pthread_mutex_lock(&c->mutex);
    over = c->o.until_end && c->looks && c->headed && !c->fresh && !c->look_now &&
           !c->look_failures && hf__consumer_at_end(c);
    pthread_mutex_unlock(&c->mutex);
    return over;
}

/* Is there a reason to look, or to end, before it is time? */
static bool has_news(void *consumer)
{
    struct hf_consumer *c = consumer;
    bool news;

    pthread_mutex_lock(&c->mutex);
    news = c->stopping || (c->look_now && !c->look_failures);
    pthread_mutex_unlock(&c->mutex);
    return news || is_over(c);
}

/* With threads: the workers read, we look. */
static enum hf_status look_on(struct hf_scope *s, struct hf_consumer *c)
{
    for (;;) {
        bool ended;

        TRY(run_check(s, c));
        TRY(look_if_due(s, c, &ended));
        if (ended || is_over(c))
            return HF_OK;
        TRY(hf__waiters_wait(s, &c->looker, has_news, c, c->look_us));
    }
}

/* Without: all of it, one after the other. */
static enum hf_status do_alone(struct hf_scope *s, struct hf_consumer *c)
{
    c->workers[0].io = s;
    for (;;) {
        int64_t next_us, beat_us, now_us;
        bool ended;

        TRY(run_check(s, c));
        TRY(look_if_due(s, c, &ended));
        if (ended || is_over(c))
            return HF_OK;
        beat_us = has_name(c) ? hf__consumer_beats(c) : INT64_MAX / 2;
        next_us = hf__pump_step(c->pump);
        if (next_us == 0)
            continue;
        now_us = hf__env_elapsed_us(&c->env);
        if (c->look_us < next_us)
            next_us = c->look_us;
        if (now_us + beat_us < next_us)
            next_us = now_us + beat_us;
        if (c->look_now && !c->look_failures)
            continue;
        if (next_us > now_us)
            TRY(hf_scope_sleep_ms(s, (uint32_t)((next_us - now_us + 999) / 1000)));
    }
}

/* ---- a run ---------------------------------------------------------------------------------- */

/* What the next run reads from is made again, but for a place in time that nothing else remembers. */
static void forget_iterator(const struct hf_consumer *c, struct shard *shard)
{
    if (shard->place != PLACE_TIME || has_name(c))
        shard->iterator.len = 0;
}

static enum hf_status run_enter(struct hf_scope *s, struct hf_consumer *c, hf_change_fn *handle,
                                void *user)
{
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);
    bool free;

    pthread_mutex_lock(&c->mutex);
    free = !c->running;
    c->running = true;
    pthread_mutex_unlock(&c->mutex);
    if (!free)
        return hf_scope_fail(s, HF_IN_USE, "the consumer is already running");
    free = hf__pump_left(c->pump) == 0;
    pthread_mutex_lock(&c->mutex);
    c->running = free;
    if (free) {
        for (struct shard *shard = c->shards; shard; shard = shard->next)
            forget_iterator(c, shard); /* of those that were left */
        c->stopping = false;
        c->stop_status = HF_OK;
        hf_scope_reset(c->why);
        c->handle = handle;
        c->user = user;
        c->deadline_us =
            left_ms < UINT32_MAX ? hf__env_elapsed_us(&c->env) + (int64_t)left_ms * 1000 : 0;
        c->look_us = hf__env_elapsed_us(&c->env);
        c->look_failures = 0;
        c->look_now = true;
        c->looks++; /* what an earlier run has seen is not seen now */
    }
    pthread_mutex_unlock(&c->mutex);
    if (!free)
        return hf_scope_fail(
            s, HF_IN_USE,
            "a handler of the previous run has not returned; the consumer cannot run "
            "again until it has");
    return HF_OK;
}

static enum hf_status workers_start(struct hf_scope *s, struct hf_consumer *c)
{
    if (!c->o.no_threads)
        TRY(hf__timer_start(s, hf__consumer_beats, c, &c->beater));
    return hf__pump_start(s, c->pump);
}

static bool is_owned(struct hf_consumer *c, const struct shard *shard)
{
    bool owned;

    pthread_mutex_lock(&c->mutex);
    owned = shard->owned;
    pthread_mutex_unlock(&c->mutex);
    return owned;
}

/* (4) What cannot be given back now is taken over when its lease has ended. */
static void give_back(struct hf_consumer *c)
{
    struct hf_scope *s = c->beat_scope;
    int64_t end_us = hf__env_elapsed_us(&c->env) + (int64_t)GOODBYE_MS * 1000;

    for (struct shard *shard = c->shards; shard; shard = shard->next) {
        uint32_t tries = 0;

        while (has_name(c) && is_owned(c, shard)) {
            int64_t left_us = end_us - hf__env_elapsed_us(&c->env);

            if (left_us <= 0)
                break;
            hf_scope_reset(s);
            hf_scope_timeout_ms(s, (uint32_t)(left_us / 1000 + 1));
            if (hf__shard_lease_release(s, c, shard) == HF_OK ||
                !error_is_transient(hf_scope_error(s)) ||
                hf_scope_sleep_ms(s, hf__consumer_retry_ms(c, tries++)) != HF_OK)
                break;
        }
        pthread_mutex_lock(&c->mutex);
        c->metrics.shards -= shard->owned;
        shard->owned = false;
        shard->dirty = false;
        pthread_mutex_unlock(&c->mutex);
    }
    pthread_mutex_lock(&c->mutex);
    hf__consumer_check(c);
    assert(c->metrics.shards == 0 && "(4)");
    pthread_mutex_unlock(&c->mutex);
}

/* How many handlers were left. */
static size_t workers_stop(struct hf_consumer *c)
{
    size_t left = hf__pump_stop(c->pump, c->o.stop_ms ? (int64_t)c->o.stop_ms * 1000 : INT64_MAX);

    hf__timer_stop(c->beater);
    c->beater = NULL;
    give_back(c);
    return left;
}

enum hf_status hf_consumer_run(struct hf_scope *s, struct hf_consumer *c, hf_change_fn *handle,
                               void *user)
{
    enum hf_status status;
    size_t left;

    if (!handle)
        return hf_scope_fail(s, HF_INVALID, "a consumer needs a function to hand changes to");
    TRY(run_enter(s, c, handle, user));
    status = workers_start(s, c);
    if (status == HF_OK)
        status = c->o.no_threads ? do_alone(s, c) : look_on(s, c);
    hf__consumer_stop(c, status, s);
    left = workers_stop(c);
    pthread_mutex_lock(&c->mutex);
    c->running = false;
    status = c->stop_status;
    pthread_mutex_unlock(&c->mutex);
    if (left)
        return hf_scope_fail(s, HF_TIMEOUT,
                             "the run was stopped (%s), and after %u ms %zu handlers have not "
                             "returned: their shards are left to others; hf_consumer_close() waits "
                             "for the handlers",
                             hf_status_text(status), c->o.stop_ms, left);
    return hf_scope_fail_from(s, status, c->why);
}
