/*
 * records/processor_pass.c: finding records: passes over the index, what they put into the queue, and how long
 * to wait between them. (n) is an invariant of processor.c.
 */
#include <holdfast/pages.h>

#include <stdio.h>

#include "base/assert_held.h"
#include "records/processor.h"

enum { TAIL_MS = 100, FIRST_PAUSE_MS = 20 };

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
        TRY(hf__processor_run_check(s, p));
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

        TRY(hf__processor_run_check(s, p));
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
    hf__processor_check(p);
    hf__pump_wake(p->pump);
}

struct todo *hf__todo_next(struct hf_processor *p)
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

    TRY(hf__processor_run_check(s, p));
    hf__processor_notify(p, false);
    if (!p->o.no_threads && !has_room(p)) {
        TRY(wait_until(s, p, has_room, INT64_MAX));
        TRY(hf__processor_run_check(s, p));
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

enum hf_status hf__processor_look(struct hf_scope *s, struct hf_processor *p)
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
