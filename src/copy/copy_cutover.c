/*
 * copy/copy_cutover.c: the end: writers of the source are fenced, what is left is applied, both are compared.
 *
 *     FOLLOWING --fence--> FENCED --caught up, equal--> CUT_OVER
 *         ^                  |                             |
 *         `------failed------'                             |
 *         `------------------abort-------------------------'
 *
 *  (1) The state says FENCED before the first fence is set, so that after a crash somebody knows of
 *      them: the next cutover goes on, and abort takes them away.
 *  (2) Between the fence and the first proof that nothing is left lies settle_ms: as long as a writer
 *      may not know of the fence. Then all shards are read to their end once more.
 *  (3) A failure takes the fences away before it is reported, whatever became of the caller's scope.
 *      If that fails as well, the message says so.
 *  (4) CUT_OVER is only stored when the comparison found nothing and there are no conflicts, unless
 *      the caller wants no comparison.
 *  (5) The time to live of the target is switched on last. (copy_schema.c, (2))
 */
#include "copy/private.h"

#include <holdfast/fence.h>

enum { SETTLE_MS = 3000, WAIT_MS = 600000, ROLLBACK_MS = 30000, ROUNDS = 5 };

static enum hf_status fences_set(struct hf_scope *s, struct hf_copy *c)
{
    for (size_t i = 0; i < c->tables_len; i++) { /* (1) */
        struct copy_table *t = &c->tables[i];

        assert(t->claimed && t->following && t->state >= HF_COPY_COPIED); /* tables_ready() */
        TRY(hf__copy_state_save(s, t, HF_COPY_FENCED));
        TRY(hf_fence_set(s, c->source, t->source, c->o.target_name));
    }
    return HF_OK;
}

static enum hf_status fences_clear(struct hf_scope *s, struct hf_copy *c)
{
    for (size_t i = 0; i < c->tables_len; i++) {
        struct copy_table *t = &c->tables[i];

        TRY(hf_fence_clear(s, c->source, t->source));
        TRY(hf__copy_state_save(s, t, HF_COPY_FOLLOWING));
    }
    return HF_OK;
}

/* (3) */
static enum hf_status cutover_undo(struct hf_scope *s, struct hf_copy *c, enum hf_status status)
{
    struct hf_scope *own = hf_scope_new(&c->env);
    enum hf_status back = own ? HF_OK : HF_NOMEM;

    if (status == HF_LOST) { /* the other one decides */
        hf_scope_free(own);
        return status;
    }
    if (own) {
        hf_scope_timeout_ms(own, ROLLBACK_MS);
        back = fences_clear(own, c);
    }
    assert(status != HF_OK);
    if (back != HF_OK)
        status = hf_scope_fail_because(
            s, status, hf_scope_error(s),
            "%s; the fences could not be removed, so the source cannot be written: undo the "
            "cutover (abort)",
            hf_scope_copy(s, hf_str_from(hf_scope_error_text(s))).ptr);
    hf_scope_free(own);
    return status;
}

static bool is_equal(const struct hf_copy_result *result)
{
    return !result->missing && !result->extra && !result->different && !result->moving &&
           !result->conflicts;
}

/* Behind the fences. */
static enum hf_status changes_end(struct hf_scope *s, struct hf_copy *c,
                                  const struct hf_copy_cutover_options *o,
                                  struct hf_copy_result *result)
{
    TRY(hf_scope_sleep_ms(s, o->settle_ms)); /* (2) */
    for (int round = 1;; round++) {
        hf_copy_difference_fn *difference = round == ROUNDS ? o->difference : NULL;

        TRY(hf__copy_catch_up(s, c, true));
        *result = (struct hf_copy_result){.tables = c->tables_len, .changes = c->progress.changes};
        if (o->unverified)
            return HF_OK;
        TRY(hf__copy_verify(s, c, difference, o->user, result));
        if (is_equal(result))
            return HF_OK;
        if (round == ROUNDS || result->conflicts)
            break;
    }
    if (result->conflicts)
        return hf_scope_fail(s, HF_CONDITION,
                             "%llu items of the target were written by somebody else since they "
                             "were copied; the source can be written again",
                             (unsigned long long)result->conflicts);
    return hf_scope_fail(s, HF_CONDITION,
                         "the target differs from the source: %llu items are missing, %llu are "
                         "extra, %llu are different; the source can be written again",
                         (unsigned long long)result->missing, (unsigned long long)result->extra,
                         (unsigned long long)(result->different + result->moving));
}

static enum hf_status cutover_finish(struct hf_scope *s, struct hf_copy *c)
{
    for (size_t i = 0; i < c->tables_len; i++)
        assert(c->tables[i].state >= HF_COPY_FENCED); /* (1) */
    for (size_t i = 0; i < c->tables_len; i++)
        TRY(hf__copy_state_save(s, &c->tables[i], HF_COPY_CUT_OVER));
    for (size_t i = 0; i < c->tables_len; i++)
        TRY(hf__copy_ttl_enable(s, &c->tables[i])); /* (5) */
    return HF_OK;
}

/* *done: it was cut over before. */
static enum hf_status tables_ready(struct hf_scope *s, struct hf_copy *c, bool *done)
{
    *done = c->tables_len > 0;
    for (size_t i = 0; i < c->tables_len; i++) {
        struct copy_table *t = &c->tables[i];

        TRY(hf__copy_state_claim(s, t));
        if (!t->following || t->state < HF_COPY_COPIED)
            return hf_scope_fail(s, HF_INVALID, "table %.*s is not ready to be cut over: %s",
                                 HF_FMT(t->source),
                                 t->following ? "its items are not copied yet"
                                              : "it is copied without following its changes");
        *done = *done && t->state == HF_COPY_CUT_OVER;
    }
    return HF_OK;
}

/* The caller's own deadline holds again. */
static void deadline_restore(struct hf_scope *s, const struct hf_copy *c, int64_t begin_us,
                             uint32_t left_ms)
{
    int64_t took_ms = (hf__env_elapsed_us(&c->env) - begin_us) / 1000;

    hf_scope_timeout_ms(s, left_ms == UINT32_MAX            ? 0
                           : took_ms + 1 < (int64_t)left_ms ? left_ms - (uint32_t)took_ms
                                                            : 1);
}

enum hf_status hf_copy_cutover(struct hf_scope *s, struct hf_copy *copy,
                               const struct hf_copy_cutover_options *options,
                               struct hf_copy_result *result)
{
    struct hf_copy_cutover_options o;
    struct hf_copy_result own;
    enum hf_status status;
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);
    int64_t begin_us = hf__env_elapsed_us(&copy->env);
    bool done;

    call_begins(s);
    OPTIONS_COPY(&o, options);
    result = result ? result : &own;
    *result = (struct hf_copy_result){.tables = 0};
    o.settle_ms = o.settle_ms ? o.settle_ms : SETTLE_MS;
    o.wait_ms = o.wait_ms ? o.wait_ms : WAIT_MS;
    TRY(tables_ready(s, copy, &done));
    if (done) /* (5) may be left to do */
        return call_ends(s, cutover_finish(s, copy));
    TRY(hf__copy_catch_up(s, copy, false)); /* most of it, while writers go on */
    hf_scope_timeout_ms(s, hf_scope_left_ms(s, o.wait_ms) ? hf_scope_left_ms(s, o.wait_ms) : 1);
    status = fences_set(s, copy);
    if (status == HF_OK)
        status = changes_end(s, copy, &o, result);
    if (status == HF_OK)
        status = cutover_finish(s, copy);
    deadline_restore(s, copy, begin_us, left_ms);
    return status == HF_OK ? call_ends(s, status) : cutover_undo(s, copy, status);
}

enum hf_status hf_copy_abort(struct hf_scope *s, struct hf_copy *copy)
{
    call_begins(s);
    for (size_t i = 0; i < copy->tables_len; i++) {
        struct copy_table *t = &copy->tables[i];

        if (!t->begun)
            return hf_scope_fail(s, HF_INVALID, "table %.*s is not being copied",
                                 HF_FMT(t->source));
        TRY(hf__copy_state_claim(s, t));
        TRY(hf_fence_clear(s, copy->source, t->source));
        if (t->state >= HF_COPY_FENCED)
            TRY(hf__copy_state_save(s, t, HF_COPY_FOLLOWING));
    }
    return call_ends(s, HF_OK);
}
