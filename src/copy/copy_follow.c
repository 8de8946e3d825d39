/*
 * copy/copy_follow.c: applying changes, table by table, until there are none or somebody says stop.
 *
 *  (1) A table that has a gap (copy_stream.c) is copied again from its beginning: its items are removed
 *      from the target first, as those that were deleted in the source meanwhile would stay. The
 *      new positions are older than the new items, as always.
 *  (2) Positions are written before this returns, as far as the target can be written.
 *  (3) What may succeed later, such as a call that was throttled, is tried again, after growing delays. A page
 *      that failed in its middle comes again, which does no harm (copy_apply.c).
 */
#include "copy/private.h"

enum { IDLE_MS = 20, TRIES = 20, FIRST_DELAY_MS = 50, MAX_DELAY_MS = 5000 };

static enum hf_status table_again(struct hf_scope *s, struct copy_table *t)
{
    hf__copy_note(t, "the table is copied again from its beginning");
    TRY(hf__copy_state_forget(s, t));
    t->claimed = false;
    t->restart = true;
    TRY(hf__copy_table_look(s, t)); /* the stream may be another one */
    return hf_copy_run(s, t->copy);
}

static enum hf_status table_step(struct hf_scope *s, struct copy_table *t, int64_t *due_us)
{
    struct hf_scope_mark mark = hf_scope_mark(s);

    TRY(hf__copy_stream_step(s, t, due_us));
    if (t->gap) {
        TRY(table_again(s, t));
        TRY(hf__copy_state_save(s, t, HF_COPY_FOLLOWING));
        hf__copy_stream_again(t);
        *due_us = 0;
    }
    if (t->current) /* what is a suspect now has no record that would meet it */
        TRY(hf__copy_suspects_settle(s, t));
    hf_scope_rewind(s, mark);
    return HF_OK;
}

static void caught_up_show(struct hf_copy *c, bool caught_up)
{
    uint64_t conflicts = 0;

    for (size_t i = 0; i < c->tables_len; i++)
        conflicts += c->tables[i].conflicts;
    pthread_mutex_lock(&c->mutex);
    c->progress.caught_up = caught_up;
    c->progress.conflicts = conflicts;
    if (caught_up)
        c->progress.lag_ms = 0;
    pthread_mutex_unlock(&c->mutex);
}

static enum hf_status round_step(struct hf_scope *s, struct hf_copy *c, bool all, bool *caught_up)
{
    int64_t due_us = INT64_MAX, wait_us;

    *caught_up = true;
    for (size_t i = 0; i < c->tables_len; i++) {
        TRY(table_step(s, &c->tables[i], &due_us));
        *caught_up = *caught_up && (all ? c->tables[i].caught_up : c->tables[i].current);
    }
    caught_up_show(c, *caught_up);
    wait_us = due_us - hf__env_elapsed_us(&c->env);
    if (*caught_up || wait_us <= 0)
        return HF_OK;
    return hf_scope_sleep_ms(s, wait_us > 1000 * IDLE_MS ? IDLE_MS
                                                         : (uint32_t)((wait_us + 999) / 1000));
}

static enum hf_status follow_begin(struct hf_scope *s, struct hf_copy *c)
{
    for (size_t i = 0; i < c->tables_len; i++) {
        struct copy_table *t = &c->tables[i];

        TRY(hf__copy_state_claim(s, t));
        if (!t->following)
            return hf_scope_fail(s, HF_INVALID,
                                 "the copy of table %.*s was begun without following",
                                 HF_FMT(t->source));
        if (t->state < HF_COPY_COPIED)
            return hf_scope_fail(s, HF_INVALID,
                                 "the items of table %.*s are not copied yet; run the copy first",
                                 HF_FMT(t->source));
        if (t->state == HF_COPY_CUT_OVER)
            return hf_scope_fail(s, HF_INVALID,
                                 "table %.*s was cut over: the target has taken over, and changes "
                                 "are not applied any more",
                                 HF_FMT(t->source));
        if (t->state == HF_COPY_COPIED)
            TRY(hf__copy_state_save(s, t, HF_COPY_FOLLOWING));
    }
    return HF_OK;
}

/* (2) On a scope of its own: that of the caller may be canceled. */
static enum hf_status positions_save(struct hf_scope *s, struct hf_copy *c)
{
    struct hf_scope *own = hf_scope_new(&c->env);
    enum hf_status status = own ? HF_OK : hf_scope_fail(s, HF_NOMEM, "out of memory");

    if (own)
        hf_scope_timeout_ms(own, 5000);
    for (size_t i = 0; status == HF_OK && i < c->tables_len; i++)
        status = hf__copy_stream_save(own, &c->tables[i]);
    if (status != HF_OK && own)
        status = hf_scope_fail_from(s, status, own);
    hf_scope_free(own);
    return status;
}

/* (3) *failures: in a row. */
static enum hf_status failure_wait(struct hf_scope *s, struct hf_copy *c, enum hf_status status,
                                   uint32_t *failures)
{
    if (status == HF_OK) {
        *failures = 0;
        return HF_OK;
    }
    if (!hf_scope_error(s)->may_retry || status == HF_CANCELED || status == HF_TIMEOUT ||
        status == HF_LOST || ++*failures >= TRIES)
        return status;
    TRY(hf_scope_sleep_ms(s, hf__backoff_ms(&c->env, FIRST_DELAY_MS, MAX_DELAY_MS, *failures)));
    return hf_scope_ok(s);
}

static enum hf_status follow_until(struct hf_scope *s, struct hf_copy *c, bool ends, bool all)
{
    enum hf_status status = HF_OK;
    uint32_t failures = 0;
    bool caught_up = false;

    for (size_t i = 0; i < c->tables_len; i++)
        hf__copy_stream_again(&c->tables[i]);
    while (status == HF_OK) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = hf__scope_alive(s);
        if (status == HF_OK)
            status = failure_wait(s, c, round_step(s, c, all, &caught_up), &failures);
        if (status == HF_OK && caught_up && ends && !failures)
            break;
        if (status == HF_OK && caught_up && !failures)
            status = hf_scope_sleep_ms(s, IDLE_MS);
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    }
    if (status == HF_OK || status == HF_CANCELED || status == HF_TIMEOUT) {
        enum hf_status saved = positions_save(s, c);

        if (status == HF_OK)
            status = saved;
        else
            (void)!hf_scope_fail(s, status, status == HF_CANCELED ? "canceled" : "timed out");
    }
    return status;
}

enum hf_status hf__copy_catch_up(struct hf_scope *s, struct hf_copy *c, bool all)
{
    return follow_until(s, c, true, all);
}

enum hf_status hf_copy_follow(struct hf_scope *s, struct hf_copy *copy, bool until_caught_up)
{
    call_begins(s);
    TRY(follow_begin(s, copy));
    return call_ends(s, follow_until(s, copy, until_caught_up, false));
}
