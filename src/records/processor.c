/*
 * records/processor.c: work on all records that are unprocessed: who finds them, who works on
 * them, and when all is done.
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

enum { TAIL_MS = 100, FIRST_PAUSE_MS = 20 };

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

/* (2), and what always holds of the queue and of what is taken. */
static void processor_check(struct hf_processor *p)
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
    processor_check(p);
    return todo;
}

void hf__todo_drop(struct hf_processor *p, struct todo *todo)
{
    processor_check(p);
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

/* HF_OK: the run goes on. Otherwise why it ends. */
static enum hf_status run_check(struct hf_scope *s, struct hf_processor *p)
{
    TRY(hf_scope_sleep_ms(s, 0));
    if (hf__processor_stopping(p))
        return hf_scope_fail_from(s, p->stop_status, p->why);
    return HF_OK;
}

/* ---- waiting -------------------------------------------------------------------------------- */

static int64_t earlier_of(int64_t one_us, int64_t other_us)
{
    return one_us < other_us ? one_us : other_us;
}

static bool is_stopping(void *processor)
{
    return hf__processor_stopping(processor);
}

/* Is nothing taken? */
static bool is_idle(void *processor)
{
    struct hf_processor *p = processor;
    bool idle;

    pthread_mutex_lock(&p->mutex);
    idle = !p->taken_len || p->stopping;
    pthread_mutex_unlock(&p->mutex);
    return idle;
}

static bool has_room(void *processor)
{
    struct hf_processor *p = processor;
    bool room;

    pthread_mutex_lock(&p->mutex);
    room = p->queue_len < 2 * p->workers_len || p->stopping;
    pthread_mutex_unlock(&p->mutex);
    return room;
}

/* Wait until that holds among the workers, or until that time; on_progress is called meanwhile. */
static enum hf_status wait_until(struct hf_scope *s, struct hf_processor *p, waiters_fn *holds,
                                 int64_t until_us)
{
    do {
        TRY(run_check(s, p));
        hf__processor_notify(p, false);
        TRY(hf__waiters_wait(s, &p->changed, holds, p,
                             earlier_of(until_us, hf__processor_notify_due_us(p))));
    } while (!holds(p) && hf__env_elapsed_us(&p->env) < until_us);
    return HF_OK;
}

enum hf_status hf__processor_pause(struct hf_scope *s, struct hf_processor *p, int64_t us)
{
    return hf__waiters_pause(s, &p->changed, is_stopping, p, hf__env_elapsed_us(&p->env) + us);
}

/* While nothing is taken: on the clock of the env. */
static enum hf_status pause_us(struct hf_scope *s, struct hf_processor *p, int64_t us)
{
    for (int64_t end_us = hf__env_elapsed_us(&p->env) + us;;) {
        int64_t now_us = hf__env_elapsed_us(&p->env);

        TRY(run_check(s, p));
        hf__processor_notify(p, false);
        if (now_us >= end_us)
            return HF_OK;
        TRY(hf__processor_pause(s, p, earlier_of(end_us, hf__processor_notify_due_us(p)) - now_us));
    }
}

/* ---- passes --------------------------------------------------------------------------------- */

/* Is it to be handed to a worker now? The mutex is held. */
static bool is_wanted(struct hf_processor *p, struct record_key key)
{
    int64_t due_us = hf__waits_due_us(&p->waits, key, p->pass.number);
    struct wait_seen seen;

    ASSERT_HELD(&p->mutex);
    if (hf__todo_is_taken(p, key)) {
        p->pass.skipped++;
        return false;
    }
    if (due_us > hf__env_elapsed_us(&p->env)) {
        hf__waits_seen(&p->waits, key, &seen);
        *(seen.id.text[0] ? &p->pass.held : &p->pass.waiting) += 1;
        return false;
    }
    return true;
}

static void queue_add(struct hf_processor *p, struct todo *todo)
{
    ASSERT_HELD(&p->mutex);
    *p->last = todo;
    p->last = &todo->next;
    p->queue_len++;
    processor_check(p);
    hf__pump_wake(p->pump);
}

/* The first of the queue; NULL: it is empty. */
static struct todo *queue_take(struct hf_processor *p)
{
    struct todo *todo = p->first;

    ASSERT_HELD(&p->mutex);
    assert((todo != NULL) == (p->queue_len > 0));
    if (!todo)
        return NULL;
    p->first = todo->next;
    if (!p->first)
        p->last = &p->first;
    if (--p->queue_len == p->workers_len) /* not at each: who looks fills it again */
        hf__waiters_notify(&p->changed);
    return todo;
}

static enum hf_status hand_out(struct hf_scope *s, struct hf_processor *p, struct record_key key)
{
    struct todo *todo = NULL;
    bool want;

    TRY(run_check(s, p));
    hf__processor_notify(p, false);
    if (!p->o.no_threads && !has_room(p)) {
        TRY(wait_until(s, p, has_room, INT64_MAX));
        TRY(run_check(s, p));
    }
    pthread_mutex_lock(&p->mutex);
    want = is_wanted(p, key);
    if (want)
        todo = hf__todo_take(p, key);
    p->pass.found += want;
    if (todo && !p->o.no_threads)
        queue_add(p, todo);
    pthread_mutex_unlock(&p->mutex);
    if (want && !todo)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a record in the queue");
    if (todo && p->o.no_threads)
        hf__processor_work(&p->workers[0], todo);
    return HF_OK;
}

static bool is_limited(struct hf_processor *p)
{
    bool limited;

    pthread_mutex_lock(&p->mutex);
    limited = p->limited;
    pthread_mutex_unlock(&p->mutex);
    return limited;
}

/* The next entry of the index; failures that may pass are tried again. */
static enum hf_status next_entry(struct hf_scope *s, struct hf_processor *p, struct hf_pages *pages,
                                 struct hf_item *item)
{
    for (uint32_t tries = 0;; tries++) {
        enum hf_status status = hf_pages_next_item(s, pages, item);

        if (status == HF_OK || !error_is_transient(hf_scope_error(s)) ||
            (tries >= p->retries && !p->o.forever))
            return status;
        pthread_mutex_lock(&p->mutex);
        p->metrics.trouble++;
        pthread_mutex_unlock(&p->mutex);
        TRY(pause_us(s, p, (int64_t)hf__processor_backoff_ms(p, tries) * 1000));
    }
}

static void cursor_save(struct hf_processor *p, uint32_t shard, struct record_key key)
{
    pthread_mutex_lock(&p->mutex);
    hf_scope_reset(p->cursor);
    p->shard = shard;
    p->at = NO_KEY;
    if (key.account.len) {
        p->at.account = hf_scope_copy(p->cursor, key.account);
        p->at.run_time = hf_scope_copy(p->cursor, key.run_time);
    }
    pthread_mutex_unlock(&p->mutex);
}

static enum hf_status pass_shard(struct hf_scope *s, struct hf_processor *p, uint32_t shard,
                                 struct record_key behind)
{
    const struct hf_attr place[] = {
        {.name = p->records->shard,
         .type = HF_TYPE_S,
         .text = hf__records_shard_text(s, HF_RECORD_UNPROCESSED, shard)}};
    struct hf_item start = {0}, item;
    struct hf_pages *pages;
    struct hf_query query;
    enum hf_status status;

    if (behind.account.len)
        start = hf_item_with(s, hf__records_key(s, p->records, behind), place, 1);
    query = hf__records_shard_query(s, p->records, HF_RECORD_UNPROCESSED, shard, start);
    TRY(hf_scope_built(s));
    TRY(hf_pages_query(s, p->records->db, &query, NULL, &pages));
    while ((status = next_entry(s, p, pages, &item)) == HF_OK && item.ptr && !is_limited(p)) {
        struct record_key key = hf__records_key_of(p->records, item);

        status = hand_out(s, p, key);
        if (status != HF_OK)
            break;
        cursor_save(p, shard, key);
    }
    hf_pages_free(pages);
    return status;
}

static enum hf_status pass_run(struct hf_scope *s, struct hf_processor *p)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct record_key behind;
    uint32_t first;

    pthread_mutex_lock(&p->mutex);
    behind = (struct record_key){hf_scope_copy(s, p->at.account), hf_scope_copy(s, p->at.run_time)};
    first = p->shard % p->records->shards;
    p->pass = (struct pass){.number = p->pass.number + 1, .whole = !behind.account.len};
    pthread_mutex_unlock(&p->mutex);
    TRY(hf_scope_built(s));
    for (uint32_t i = 0; i < p->records->shards && !is_limited(p); i++) {
        uint32_t shard = (first + i) % p->records->shards;

        cursor_save(p, shard, behind);
        TRY(pass_shard(s, p, shard, behind));
        behind = NO_KEY;
    }
    hf_scope_rewind(s, mark);
    if (!is_limited(p))
        cursor_save(p, first, NO_KEY);
    return HF_OK;
}

/* What is to be done after a pass in which nothing was begun, and nothing is taken. */
enum next_step { GO_ON, PAUSE, ALL_DONE };

static enum next_step step_decide(const struct hf_processor *p, const struct pass *pass)
{
    bool any = pass->found || pass->waiting || pass->held;

    /* What was passed over as one of us was at it has ended since. */
    assert(!p->taken_len && "(3) something is worked on");
    if (pass->moved || pass->skipped || !pass->whole)
        return GO_ON;
    if (!any)
        return ALL_DONE; /* (3) */
    if (pass->waiting || pass->stale)
        return PAUSE;
    if (pass->held ? p->o.leave_claimed : pass->blocked > 0)
        return ALL_DONE; /* what is left is left to others, or to people */
    return PAUSE;
}

/* Until something may have changed. What is only the index being behind is soon over. */
static enum hf_status pause_pass(struct hf_scope *s, struct hf_processor *p,
                                 const struct pass *pass, uint32_t *pause_ms)
{
    int64_t first_us, us = (int64_t)p->o.poll_ms * 1000;

    pthread_mutex_lock(&p->mutex);
    first_us = hf__waits_first_us(&p->waits) - hf__env_elapsed_us(&p->env);
    pthread_mutex_unlock(&p->mutex);
    if (first_us < us)
        us = first_us > 0 ? first_us : 0;
    if ((pass->stale || pass->behind || !us) && *pause_ms * 1000 < us + 1)
        us = (int64_t)*pause_ms * 1000;
    *pause_ms = *pause_ms * 2 < p->o.poll_ms ? *pause_ms * 2 : p->o.poll_ms;
    return pause_us(s, p, us);
}

static enum hf_status look_on(struct hf_scope *s, struct hf_processor *p)
{
    uint32_t pause_ms = FIRST_PAUSE_MS;

    hf__processor_adopt(s, p, true);
    for (;;) {
        struct pass done;
        bool idle, limited;
        enum next_step next;

        hf__processor_adopt(s, p, false);
        TRY(pass_run(s, p));
        limited = is_limited(p);
        TRY(wait_until(s, p, is_idle,
                       limited ? INT64_MAX
                               : hf__env_elapsed_us(&p->env) + (int64_t)TAIL_MS * 1000));
        pthread_mutex_lock(&p->mutex);
        done = p->pass;
        idle = !p->taken_len;
        if (done.whole && !limited)
            hf__waits_sweep(&p->waits, done.number);
        limited = p->limited;
        pthread_mutex_unlock(&p->mutex);
        if (limited && idle)
            return HF_OK;
        if (!idle || limited)
            continue;
        next = step_decide(p, &done);
        if (next == ALL_DONE && !p->o.forever)
            return HF_OK;
        if (next == GO_ON) {
            pause_ms = FIRST_PAUSE_MS;
            continue;
        }
        TRY(next == ALL_DONE ? pause_us(s, p, (int64_t)p->o.poll_ms * 1000)
                             : pause_pass(s, p, &done, &pause_ms));
    }
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Work on the first of the queue: a pump_step_fn. */
static int64_t work_on_next(size_t number, void *processor)
{
    struct hf_processor *p = processor;
    struct todo *todo;

    pthread_mutex_lock(&p->mutex);
    todo = queue_take(p);
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
    while ((todo = queue_take(p)) != NULL) /* nobody has begun it */
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
            status = look_on(s, p);
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
