/*
 * records/processor.c: work on all records that are unprocessed: who works on them, and when all is done.
 * processor_pass.c finds them.
 *
 * Whoever runs the processor looks through the index, shard by shard and page by page, again and
 * again: a pass. What it shows is put into a short queue, from which the workers of a pump
 * (coord/pump.c) take it; each of them claims a record, works on it, and writes down how it ended (processor_claim.c,
 * processor_work.c). No worker waits for another. Records that are not to be begun yet are
 * remembered and passed over (processor_wait.c), so one that fails again and again costs others
 * nothing. It is over when a whole pass shows nothing. Before the first pass, and between others, a
 * page of the table is searched for records that other programs put, which the index does not have
 * (processor_adopt.c).
 *
 * What always holds:
 *
 *  (1) Nothing is done without a claim, so the index may be behind, and any number of processors
 *      may look through it.
 *  (2) A record is in the queue or with a worker once at most: it is in `taken` meanwhile.
 *  (3) A run ends well only after a pass from the first record of every shard to the last, during
 *      which nothing was taken, that showed nothing which this run could still do.
 *  (4) When a run is stopped nothing more is begun; what was begun is written down or given back
 *      before hf_processor_run() returns, unless a function does not return within stop_ms: then
 *      its thread is left, and joined by the next run or when the processor is closed.
 *
 * The position in the index that a checkpoint has is where the next run begins to look, so that it
 * comes to new records first. It decides nothing, by (3).
 *
 * With no_threads there is one worker without a thread, and what is found is worked on at once.
 */
#include <holdfast/pages.h>

#include <stdio.h>

#include "base/assert_held.h"
#include "records/processor.h"

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status check_options(struct hf_scope *s, const struct hf_processor_options *o)
{
    if (o->heartbeat_ms > o->lease_ms / 2)
        return hf_scope_fail(s, HF_INVALID,
                             "a heartbeat of %u ms is more than half of a lease of %u ms",
                             o->heartbeat_ms, o->lease_ms);
    if (o->workers > HF_PROCESSOR_WORKERS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_PROCESSOR_WORKERS_MAX, o->workers),
                                   "%u workers are more than %d", o->workers,
                                   HF_PROCESSOR_WORKERS_MAX);
    if (!(o->backoff_multiplier >= 1 && o->backoff_multiplier <= 1000))
        return hf_scope_fail(s, HF_INVALID, "invalid backoff_multiplier %g: it is from 1 to 1000",
                             o->backoff_multiplier);
    if (o->failed_blocks && !o->account_order)
        return hf_scope_fail(s, HF_INVALID, "failed_blocks needs account_order");
    return HF_OK;
}

static void set_defaults(struct hf_processor_options *o)
{
    o->workers = o->workers ? o->workers : WORKERS_DEFAULT;
    o->max_retries = o->max_retries ? o->max_retries : RETRIES_DEFAULT;
    o->backoff_ms = o->backoff_ms ? o->backoff_ms : BACKOFF_BASE_DEFAULT_MS;
    if (o->backoff_multiplier == 0)
        o->backoff_multiplier = 2;
    o->backoff_max_ms = o->backoff_max_ms ? o->backoff_max_ms : BACKOFF_MAX_DEFAULT_MS;
    o->max_attempts = o->max_attempts ? o->max_attempts : ATTEMPTS_DEFAULT;
    o->lease_ms = o->lease_ms ? o->lease_ms : RECORD_LEASE_DEFAULT_MS;
    o->heartbeat_ms = o->heartbeat_ms ? o->heartbeat_ms : hf__lease_heartbeat_ms(o->lease_ms);
    o->poll_ms = o->poll_ms ? o->poll_ms : RECORD_POLL_DEFAULT_MS;
    o->max_errors = o->max_errors ? o->max_errors : ERRORS_DEFAULT;
    o->progress_ms = o->progress_ms ? o->progress_ms : PROGRESS_DEFAULT_MS;
    o->adopt_ms = o->adopt_ms ? o->adopt_ms : ADOPT_DEFAULT_MS;
}

static enum hf_status make_workers(struct hf_processor *p)
{
    size_t len = p->o.no_threads ? 1 : p->o.workers;

    p->workers = hf__env_zalloc(&p->env, len * sizeof(*p->workers));
    if (!p->workers)
        return HF_NOMEM;
    p->workers_len = len;
    for (size_t i = 0; i < len; i++) {
        struct record_worker *worker = &p->workers[i];

        worker->processor = p;
        worker->io = hf_scope_new(&p->env);
        worker->work = hf_scope_new(&p->env);
        if (!worker->io || !worker->work)
            return HF_NOMEM;
    }
    return HF_OK;
}

static int64_t work_on_next(size_t number, void *processor);

static enum hf_status processor_fill(struct hf_scope *s, struct hf_processor *p)
{
    struct pump_options pump = {.workers = p->o.no_threads ? 0 : p->o.workers,
                                .step = work_on_next,
                                .user = p};

    p->names = hf_scope_new(&p->env);
    p->beat_scope = hf_scope_new(&p->env);
    p->cursor = hf_scope_new(&p->env);
    p->adopting.memory = hf_scope_new(&p->env);
    p->why = hf_scope_new(&p->env);
    if (!p->names || !p->beat_scope || !p->cursor || !p->adopting.memory || !p->why ||
        make_workers(p) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a processor of records");
    p->o.owner = hf__pattern_owner(p->names, p->o.owner);
    if (hf_scope_built(p->names) != HF_OK)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a processor of records");
    TRY(hf__pump_open(s, &pump, &p->pump));
    if (p->o.resume.len)
        return hf__processor_resume(s, p, p->o.resume);
    return HF_OK;
}

enum hf_status hf_processor_open(struct hf_scope *s, struct hf_records *records,
                                 const struct hf_processor_options *options,
                                 struct hf_processor **processor)
{
    struct hf_processor_options o;
    struct hf_processor *p;
    enum hf_status status;

    call_begins(s);
    *processor = NULL;
    OPTIONS_COPY(&o, options);
    if (!records)
        return hf_scope_fail(s, HF_INVALID, "hf_processor_open() was called without records");
    set_defaults(&o);
    TRY(check_options(s, &o));
    p = hf__env_zalloc(hf_scope_env(s), sizeof(*p));
    if (!p)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a processor of records");
    p->env = *hf_scope_env(s);
    p->records = records;
    p->o = o;
    p->retries = o.no_retries ? 0 : o.max_retries;
    p->waits.env = &p->env;
    p->errors_last = &p->errors;
    p->last = &p->first;
    pthread_mutex_init(&p->mutex, NULL);
    hf__waiters_init(&p->changed);
    status = processor_fill(s, p);
    if (status != HF_OK) {
        hf_processor_close(p);
        return status;
    }
    *processor = p;
    return HF_OK;
}

void hf_processor_close(struct hf_processor *p)
{
    struct hf_env env;

    if (!p)
        return;
    assert(!p->running && "a processor was closed while it was running");
    hf__pump_close(p->pump);
    env = p->env;
    for (size_t i = 0; i < p->workers_len; i++) {
        hf_scope_free(p->workers[i].io);
        hf_scope_free(p->workers[i].work);
    }
    hf__env_free(&env, p->workers, p->workers_len * sizeof(*p->workers));
    hf__waits_free(&p->waits);
    hf__processor_free_errors(p);
    hf_scope_free(p->names);
    hf_scope_free(p->beat_scope);
    hf_scope_free(p->cursor);
    hf_scope_free(p->why);
    hf_scope_free(p->adopting.memory);
    hf__waiters_free(&p->changed);
    pthread_mutex_destroy(&p->mutex);
    hf__env_free(&env, p, sizeof(*p));
}

void hf__processor_check(struct hf_processor *p)
{
    size_t taken = 0, queued = 0;

    ASSERT_HELD(&p->mutex);
    assert(p->queue_len <= p->taken_len && "a record in the queue is taken");
    assert((p->first != NULL) == (p->queue_len > 0));
    assert(p->waits.len <= WAITS_MAX);
    if (!DEV_CHECKS)
        return;
    for (const struct todo *todo = p->taken; todo; todo = todo->after, taken++)
        assert(*todo->link == todo);
    for (const struct todo *todo = p->first; todo; todo = todo->next)
        queued++;
    assert(taken == p->taken_len && queued == p->queue_len);
}

/* ---- what is taken -------------------------------------------------------------------------- */

static size_t todo_size(const struct todo *todo)
{
    return sizeof(*todo) + todo->account_len + todo->run_time_len;
}

struct todo *hf__todo_take(struct hf_processor *p, struct record_key key)
{
    struct todo *todo = hf__env_zalloc(&p->env, sizeof(*todo) + key.account.len + key.run_time.len);

    ASSERT_HELD(&p->mutex);
    assert(!hf__todo_is_taken(p, key) && "(2)");
    if (!todo)
        return NULL;
    todo->account_len = key.account.len;
    todo->run_time_len = key.run_time.len;
    memcpy(todo->text, key.account.ptr, key.account.len);
    memcpy(todo->text + key.account.len, key.run_time.ptr, key.run_time.len);
    todo->hash = hf__record_hash(key);
    todo->after = p->taken;
    todo->link = &p->taken;
    if (p->taken)
        p->taken->link = &todo->after;
    p->taken = todo;
    p->taken_len++;
    hf__processor_check(p);
    return todo;
}

void hf__todo_drop(struct hf_processor *p, struct todo *todo)
{
    hf__processor_check(p);
    assert(p->taken_len > 0);
    *todo->link = todo->after;
    if (todo->after)
        todo->after->link = todo->link;
    p->taken_len--;
    if (!p->taken_len)
        hf__waiters_notify(&p->changed);
    hf__env_free(&p->env, todo, todo_size(todo));
}

bool hf__todo_is_taken(const struct hf_processor *p, struct record_key key)
{
    uint64_t hash = hf__record_hash(key);

    for (const struct todo *todo = p->taken; todo; todo = todo->after)
        if (todo->hash == hash && hf_str_equal(todo_key(todo).account, key.account) &&
            hf_str_equal(todo_key(todo).run_time, key.run_time))
            return true;
    return false;
}

/* ---- stopping ------------------------------------------------------------------------------- */

/* The mutex is held. False: it stops already, for another reason. */
static bool stop_begins(struct hf_processor *p, enum hf_status status)
{
    ASSERT_HELD(&p->mutex);
    if (p->stopping)
        return false;
    p->stopping = true;
    hf__waiters_notify(&p->changed);
    p->stop_status = status;
    for (size_t i = 0; i < p->workers_len; i++)
        if (p->workers[i].claim.active)
            hf_scope_cancel(p->workers[i].work);
    return true;
}

void hf__processor_stop(struct hf_processor *p, enum hf_status status, const struct hf_scope *why)
{
    pthread_mutex_lock(&p->mutex);
    if (stop_begins(p, status))
        (void)hf_scope_fail_from(p->why, status, why);
    pthread_mutex_unlock(&p->mutex);
}

void hf__processor_stop_because(struct hf_processor *p, enum hf_status status,
                                const struct hf_error *cause, struct hf_str text)
{
    pthread_mutex_lock(&p->mutex);
    if (stop_begins(p, status))
        (void)hf_scope_fail_because(p->why, status, cause, "%.*s", HF_FMT(text));
    pthread_mutex_unlock(&p->mutex);
}

bool hf__processor_stopping(struct hf_processor *p)
{
    bool stopping;

    pthread_mutex_lock(&p->mutex);
    stopping = p->stopping;
    pthread_mutex_unlock(&p->mutex);
    return stopping;
}

uint32_t hf__processor_backoff_ms(struct hf_processor *p, uint32_t failures)
{
    double ms = p->o.backoff_ms;

    for (uint32_t i = 0; i < failures && i < 64 && ms < p->o.backoff_max_ms; i++)
        ms *= p->o.backoff_multiplier;
    if (ms > p->o.backoff_max_ms)
        ms = p->o.backoff_max_ms;
    return hf__backoff_jitter_ms(&p->env, (uint32_t)ms);
}

enum hf_status hf__processor_run_check(struct hf_scope *s, struct hf_processor *p)
{
    TRY(hf_scope_sleep_ms(s, 0));
    if (hf__processor_stopping(p))
        return hf_scope_fail_from(s, p->stop_status, p->why);
    return HF_OK;
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Work on the first of the queue: a pump_step_fn. */
static int64_t work_on_next(size_t number, void *processor)
{
    struct hf_processor *p = processor;
    struct todo *todo;

    pthread_mutex_lock(&p->mutex);
    todo = hf__todo_next(p);
    pthread_mutex_unlock(&p->mutex);
    if (!todo)
        return INT64_MAX;
    hf__processor_work(&p->workers[number], todo);
    return 0;
}

static enum hf_status workers_start(struct hf_scope *s, struct hf_processor *p)
{
    if (!p->o.no_threads)
        TRY(hf__timer_start(s, hf__processor_beats, p, &p->beater));
    return hf__pump_start(s, p->pump);
}

/* (4) Claims are renewed until their functions have returned or are left behind: returns how many
 * are. */
static size_t workers_stop(struct hf_processor *p)
{
    size_t left = hf__pump_stop(p->pump, p->o.stop_ms ? (int64_t)p->o.stop_ms * 1000 : INT64_MAX);
    struct todo *todo;

    pthread_mutex_lock(&p->mutex);
    assert(p->stopping || !p->first);
    while ((todo = hf__todo_next(p)) != NULL) /* nobody has begun it */
        hf__todo_drop(p, todo);
    pthread_mutex_unlock(&p->mutex);
    hf__timer_stop(p->beater);
    p->beater = NULL;
    return left;
}

/* ---- a run ---------------------------------------------------------------------------------- */

static enum hf_status run_enter(struct hf_scope *s, struct hf_processor *p, hf_record_fn *fn,
                                void *user)
{
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);
    bool free;

    pthread_mutex_lock(&p->mutex);
    free = !p->running;
    p->running = true;
    pthread_mutex_unlock(&p->mutex);
    if (!free)
        return hf_scope_fail(s, HF_IN_USE, "the processor is already running");
    free = hf__pump_left(p->pump) == 0;
    pthread_mutex_lock(&p->mutex);
    p->running = free;
    if (free) {
        p->stopping = p->limited = false;
        p->stop_status = HF_OK;
        hf_scope_reset(p->why);
        p->fn = fn;
        p->user = user;
        p->started_us = hf__env_elapsed_us(&p->env);
        p->deadline_us = left_ms < UINT32_MAX ? p->started_us + (int64_t)left_ms * 1000 : 0;
        p->ended_us = 0;
        p->notified_us = p->started_us;
        p->samples_len = 0;
        hf__processor_free_errors(p);
        if (!p->o.resume.len) {
            uint32_t bits;

            p->env.random(&bits, sizeof(bits), p->env.user);
            p->metrics = (struct hf_processor_metrics){.begun = 0};
            p->elapsed_ms = 0;
            p->shard = bits % p->records->shards; /* several of us begin at different places */
            p->at = NO_KEY;
        }
        p->o.resume = hf_str_of(NULL, 0); /* for one run */
        p->begun_before = p->metrics.begun;
        hf__processor_sample(p);
    }
    pthread_mutex_unlock(&p->mutex);
    if (!free)
        return hf_scope_fail(
            s, HF_IN_USE,
            "a function of the previous run has not returned; the processor cannot "
            "run again until it has");
    return HF_OK;
}

static enum hf_status count_first(struct hf_scope *s, struct hf_processor *p)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint64_t count = 0;

    if (p->o.dry_run || (p->o.on_progress && !p->o.no_count)) {
        TRY(hf_records_count(s, p->records, HF_RECORD_UNPROCESSED, &count));
        count += p->metrics.completed + p->metrics.failed + p->metrics.exhausted;
    }
    hf_scope_rewind(s, mark);
    pthread_mutex_lock(&p->mutex);
    p->total = count;
    pthread_mutex_unlock(&p->mutex);
    return HF_OK;
}

enum hf_status hf_processor_run(struct hf_scope *s, struct hf_processor *p, hf_record_fn *work,
                                void *user, struct hf_processor_report *report)
{
    enum hf_status status;
    size_t working;
    bool left;

    if (report)
        *report = (struct hf_processor_report){.total = 0};
    TRY(run_enter(s, p, work, user));
    status = count_first(s, p);
    if (status == HF_OK && !p->o.dry_run) {
        status = workers_start(s, p);
        if (status == HF_OK)
            status = hf__processor_look(s, p);
    }
    if (status != HF_OK)
        hf__processor_stop(p, status, s);
    working = workers_stop(p);
    pthread_mutex_lock(&p->mutex);
    p->ended_us = hf__env_elapsed_us(&p->env);
    p->running = false;
    status = p->stop_status;
    left = status != HF_OK || p->limited || p->o.dry_run;
    pthread_mutex_unlock(&p->mutex);
    hf__processor_notify(p, true);
    if (report && hf__processor_report(s, p, left, report) != HF_OK && status == HF_OK)
        return HF_NOMEM;
    if (working)
        return hf_scope_fail(s, HF_TIMEOUT,
                             "the run was stopped (%s), and after %u ms functions for %zu records "
                             "have not returned: the claims end with their leases; "
                             "hf_processor_close() waits for the functions",
                             hf_status_text(status), p->o.stop_ms, working);
    return hf_scope_fail_from(s, status, p->why);
}
