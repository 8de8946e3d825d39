/*
 * once/once_beat.c: what an attempt says to the database while it runs and at its end, and the
 * thread that says it.
 *
 *  (1) A timeout is a lease (coord/lease.c): the attempt counts on it for less long than others do.
 *  (2) A heartbeat without an answer changes nothing: the next one has a higher beat.
 *  (3) One heartbeat at a time (busy). A completion waits for nobody: a heartbeat that arrives
 *      after it is refused, and the refusal shows that the record is ours.
 *  (4) The holder is told of a loss once, as a lost attempt has no more heartbeats, and never once it
 *      closes the attempt, which waits for who is telling it.
 */
#include "base/assert_held.h"
#include "once/once.h"

enum { IDLE_US = 1000000 };

/* What holds for every attempt that the table has. */
static void once_check(const struct hf_once *once)
{
    ASSERT_HELD(&once->table->mutex);
    assert(once->refs > 0 && "an attempt that was freed");
    assert(once->wanted == HF_ONCE_NONE || once->wanted == HF_ONCE_DONE ||
           once->wanted == HF_ONCE_FAILED);
    assert((once->wanted || !once->result.ptr) && "a result of nothing");
}

void hf__once_enter(struct hf_once *once)
{
    once_check(once);
    while (once->busy)
        pthread_cond_wait(&once->table->changed, &once->table->mutex);
    once->busy = true;
    once->refs++;
}

void hf__once_leave(struct hf_once *once)
{
    once_check(once);
    assert(once->busy && once->refs > 0);
    once->busy = false;
    pthread_cond_broadcast(&once->table->changed);
    hf__once_unref(once);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* A refused heartbeat: is the record ours all the same? */
static enum hf_status beat_refused(struct hf_scope *s, struct hf_once *once, uint64_t beat,
                                   struct hf_item item)
{
    struct once_view view;

    TRY(hf__once_view(s, &once->table->at, item, hf__env_wall_ms(&once->table->env), &view));
    if (view.there && hf_str_equal(view.record.attempt, once_id(once)) &&
        (view.record.state != HF_ONCE_RUNNING || view.beat >= beat))
        return hf_scope_ok(s);
    return hf__once_over(s, once, true);
}

enum hf_status hf__once_beat(struct hf_scope *s, struct hf_once *once)
{
    struct hf_once_table *table = once->table;
    int64_t sent_us = hf__env_elapsed_us(&table->env), now_ms = hf__env_wall_ms(&table->env);
    struct hf_update_item update;
    struct hf_item item;
    enum hf_status status;
    uint64_t beat;

    pthread_mutex_lock(&table->mutex);
    beat = ++once->beat;
    pthread_mutex_unlock(&table->mutex);
    update = hf__once_beat_request(s, &once->name, once_id(once), beat, now_ms,
                                   hf__once_orphan_s(now_ms, once->timeout_ms, once->keep_s));
    status = hf_scope_built(s);
    if (status == HF_OK)
        status = hf__pattern_write(s, table->db, &(struct hf_transact_write){.update = &update},
                                   update.key, &item);
    if (status == HF_CONDITION)
        status = beat_refused(s, once, beat, item);
    pthread_mutex_lock(&table->mutex);
    if (status == HF_OK)
        hf__lease_renew(&once->lease, once_terms(once), sent_us);
    else
        hf__lease_retry(&once->lease, once_terms(once), hf__env_elapsed_us(&table->env));
    pthread_mutex_unlock(&table->mutex);
    return status;
}

enum hf_status hf_once_renew(struct hf_scope *s, struct hf_once *once)
{
    struct hf_once_table *table = once->table;
    enum hf_status status;
    bool lost;

    pthread_mutex_lock(&table->mutex);
    hf__once_enter(once);
    lost = once->lost;
    pthread_mutex_unlock(&table->mutex);
    status = lost ? hf__once_over(s, once, true) : hf__once_beat(s, once);
    pthread_mutex_lock(&table->mutex);
    hf__once_leave(once);
    pthread_mutex_unlock(&table->mutex);
    return status;
}

enum hf_status hf__once_end_send(struct hf_scope *s, struct hf_once *once)
{
    struct hf_update_item update;
    struct hf_item item;
    struct once_end end;
    enum hf_status status;

    TRY(hf__once_want(s, once, HF_ONCE_DONE, (struct hf_item){0}, &end));
    update = hf__once_end_request(s, &end);
    update.returns = HF_RETURN_NONE;
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, once->table->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status == HF_CONDITION)
        return hf__once_refused(s, once, item);
    return status == HF_OK ? hf__once_over(s, once, false) : status;
}

enum hf_status hf__once_remove_send(struct hf_scope *s, struct hf_once *once)
{
    struct hf_delete_item del = hf__once_remove_request(s, &once->name, once_id(once), true);
    struct hf_item item;

    TRY(hf_scope_built(s));
    return hf__pattern_write(s, once->table->db, &(struct hf_transact_write){.del = &del}, del.key,
                             &item);
}

/* ---- what is due ---------------------------------------------------------------------------- */

/* When it is to be worked on, INT64_MAX: never; the mutex is held. */
static int64_t due_at(const struct hf_once *once, int64_t now_us)
{
    bool stuck = once->stuck_ms && now_us - once->touched_us >= (int64_t)once->stuck_ms * 1000;

    once_check(once);
    if (once->busy)
        return INT64_MAX;
    if (once->dropped)
        return once->lease.due_us;
    if (once->closing || once->ended || once->lost || once->no_heartbeats || stuck)
        return INT64_MAX;
    return once->lease.due_us;
}

/* Nothing is due. Most attempts end before their first heartbeat, and a thread that wakes once a
 * second costs less than to wake it for each of them. The mutex is held. */
static int64_t idle_us(struct hf_once_table *table)
{
    bool was = table->busy_beater;

    ASSERT_HELD(&table->mutex);
    table->busy_beater = false;
    return was ? IDLE_US : INT64_MAX;
}

/* The first that is due, busy now; or NULL and how long there is time. */
static struct hf_once *next_due(struct hf_once_table *table, int64_t *wait_us, uint32_t *time_ms)
{
    int64_t now_us = hf__env_elapsed_us(&table->env), first = INT64_MAX;
    struct hf_once *found = NULL;

    pthread_mutex_lock(&table->mutex);
    for (struct hf_once *once = table->attempts; once; once = once->next) {
        int64_t due_us = due_at(once, now_us);

        if (due_us < first) {
            first = due_us;
            found = once;
        }
    }
    *wait_us = first == INT64_MAX ? idle_us(table) : first - now_us;
    if (first <= now_us) {
        assert(!found->busy && "(3)");
        hf__once_enter(found);
        *time_ms = found->dropped ? ONCE_CALL_MS : (found->timeout_ms + 3) / 4;
    } else {
        found = NULL;
    }
    pthread_mutex_unlock(&table->mutex);
    return found;
}

/* An attempt that its holder has closed: write its completion, or that it was given up. */
static void leftover_send(struct hf_scope *s, struct hf_once *once)
{
    struct hf_once_table *table = once->table;
    enum hf_status status =
        once->wanted ? hf__once_end_send(s, once) : hf__once_remove_send(s, once);
    int64_t now_us = hf__env_elapsed_us(&table->env);

    pthread_mutex_lock(&table->mutex);
    once->lease.due_us = now_us + (int64_t)LEASE_RETRY_MAX_MS * 1000;
    if (status == HF_OK || status == HF_CONDITION || status == HF_LOST ||
        lease_is_over(&once->lease, now_us))
        hf__once_unref(once); /* the table's; we have one more */
    pthread_mutex_unlock(&table->mutex);
}

/* (4) */
static void tell_lost(struct hf_once *once)
{
    struct hf_once_table *table = once->table;
    bool tell;

    pthread_mutex_lock(&table->mutex);
    tell = once->on_lost && once->lost && !once->ended && !once->closing;
    once->telling = tell;
    pthread_mutex_unlock(&table->mutex);
    if (!tell)
        return;
    once->on_lost(once, once->user);
    pthread_mutex_lock(&table->mutex);
    once->telling = false;
    pthread_cond_broadcast(&table->changed);
    pthread_mutex_unlock(&table->mutex);
}

int64_t hf__once_beats(void *user)
{
    struct hf_once_table *table = user;
    uint32_t time_ms = 0;
    int64_t wait_us;
    struct hf_once *once = next_due(table, &wait_us, &time_ms);
    bool dropped;

    if (!once)
        return wait_us;
    hf_scope_reset(table->work);
    hf_scope_timeout_ms(table->work, time_ms);
    pthread_mutex_lock(&table->mutex);
    dropped = once->dropped;
    pthread_mutex_unlock(&table->mutex);
    if (dropped)
        leftover_send(table->work, once);
    else if (hf__once_beat(table->work, once) == HF_LOST)
        tell_lost(once);
    pthread_mutex_lock(&table->mutex);
    hf__once_leave(once);
    pthread_mutex_unlock(&table->mutex);
    return 0;
}
