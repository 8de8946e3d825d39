/*
 * cli/outbox/adopt_move.c: moving the rows of a pass, in their order, a batch at a time. Each batch is read
 * again, and judged again.
 *
 * In one database the events of a batch and the deletions of their rows are one transaction. So a row
 * is there, or its event is in the outbox, and never both or none.
 *
 * In two databases, and where there are no transactions, a row takes three steps. It is marked, its
 * event is emitted, it is deleted. The mark hides it from the programs of its library for good, as
 * nobody can say after a kill whether its event was emitted. The next run finds the mark, and does the
 * rest: an event whose id was taken before is not emitted again.
 *
 *  (1) A row is deleted only under the condition that it is as it was when its event was emitted, or
 *      still marked.
 *  (2) A batch that is refused is done one by one, so that the one that is at fault is found, and the
 *      others are moved.
 *  (3) When an event stays, later ones of its key stay in this pass, if its library keeps an order.
 *  (4) A row that was marked now, and whose event the outbox refuses, becomes what it was.
 */
#include "base/base.h"
#include "cli/outbox/adopt.h"

#include <holdfast/batch.h>
#include <holdfast/tx.h>

enum {
    ACTIONS_EACH = 3, /* an event, its id, its row */
    BATCH_BYTES = 1536 * 1024,
    CONFLICTS_MAX = 8,
    CONFLICT_MS = 20,
    WHY_MAX = 512
};

struct move {
    struct adopt *a;
    struct adopt_event *events;
    size_t len;
};

/* What has become of one event. */
enum moved { MOVED, MOVED_BEFORE, MOVED_NOT, MOVED_REFUSED };

/* ---- requests ------------------------------------------------------------------------------- */

static bool is_code(struct hf_str code, const char *text)
{
    return hf_str_equal(code, hf_str_from(text));
}

/* Was the transaction canceled by others who changed the same items, or by too many requests? */
static bool is_conflict(const struct hf_error *error)
{
    bool conflict = false;

    if (error->status != HF_TX_CANCELED)
        return false;
    for (size_t i = 0; i < error->reasons_len; i++) {
        struct hf_str code = error->reasons[i].code;

        if (is_code(code, "ConditionalCheckFailed"))
            return false;
        conflict = conflict || (code.len && !is_code(code, "None"));
    }
    return conflict;
}

static bool reason_is_condition(const struct hf_error *error, size_t at)
{
    return error->status == HF_TX_CANCELED && at < error->reasons_len &&
           is_code(error->reasons[at].code, "ConditionalCheckFailed");
}

static void begin_time(const struct adopt *a)
{
    hf_scope_timeout_ms(a->s, (uint32_t)a->timeout_ms);
}

static enum hf_status conflict_wait(const struct adopt *a, int attempt)
{
    return hf_scope_sleep_ms(a->s, (uint32_t)(CONFLICT_MS << attempt));
}

/* ---- one transaction ------------------------------------------------------------------------ */

/* `event_at` is where the actions of the last one begin, `row_at` where the deletion of its row is. */
static enum hf_status tx_build(const struct move *m, struct hf_tx **tx, size_t *row_at)
{
    const struct adopt *a = m->a;

    assert(m->len >= 1 && m->len <= a->batch && !a->marking);
    TRY(hf_tx_new(a->s, a->c->db, tx));
    for (size_t i = 0; i < m->len; i++) {
        struct hf_transact_write action = {.del = hf__adopt_delete(a, &m->events[i])};

        TRY(hf_outbox_emit_into(a->s, a->outbox, *tx, &m->events[i].line.event, 1, NULL));
        TRY(hf_scope_built(a->s));
        *row_at = hf_tx_len(*tx);
        TRY(hf_tx_add(a->s, *tx, &action));
    }
    return HF_OK;
}

static enum hf_status tx_move(const struct move *m, size_t *row_at)
{
    enum hf_status status = HF_OK;
    struct hf_tx *tx;

    for (int attempt = 0; attempt < CONFLICTS_MAX; attempt++) {
        begin_time(m->a);
        TRY(tx_build(m, &tx, row_at));
        status = hf_tx_commit(m->a->s, tx, NULL);
        if (status == HF_OK || !is_conflict(hf_scope_error(m->a->s)))
            return status;
        if (attempt + 1 < CONFLICTS_MAX)
            TRY(conflict_wait(m->a, attempt));
    }
    return status;
}

/* ---- three steps ---------------------------------------------------------------------------- */

enum step { STEP_MARK, STEP_DELETE };

static struct hf_transact_write step_action(const struct adopt *a, enum step step,
                                            const struct adopt_event *event)
{
    if (step == STEP_MARK)
        return (struct hf_transact_write){.update = hf__adopt_mark(a, event)};
    return (struct hf_transact_write){.del = hf__adopt_delete(a, event)};
}

/* HF_CONDITION: its row is not as it was. */
static enum hf_status step_one(const struct adopt *a, enum step step,
                               const struct adopt_event *event)
{
    struct hf_transact_write action = step_action(a, step, event);

    TRY(hf_scope_built(a->s));
    begin_time(a);
    return step == STEP_MARK ? hf_update_item(a->s, a->from, action.update, NULL)
                             : hf_delete_item(a->s, a->from, action.del, NULL);
}

static enum hf_status step_all(struct adopt *a, enum step step, const struct adopt_event *events,
                               size_t len)
{
    struct hf_transact_write *actions = hf_scope_alloc(a->s, (len + 1) * sizeof(*actions));
    struct hf_transact_write_items request = {.actions = actions, .actions_len = len};

    if (!actions)
        return hf_scope_built(a->s);
    for (size_t i = 0; i < len; i++)
        actions[i] = step_action(a, step, &events[i]);
    TRY(hf_scope_built(a->s));
    begin_time(a);
    return hf_transact_write_items(a->s, a->from, &request, NULL);
}

/* Mark or delete; *done[i]: it was. Rows that others have changed are not. */
static enum hf_status step_do(struct adopt *a, enum step step, const struct adopt_event *events,
                              size_t len, bool *done)
{
    enum hf_status status = HF_UNSUPPORTED;

    if (len > 1 && !a->from_single)
        status = step_all(a, step, events, len);
    for (size_t i = 0; status == HF_OK && i < len; i++)
        done[i] = true;
    a->from_single = a->from_single || (len > 1 && status == HF_UNSUPPORTED);
    if (status != HF_TX_CANCELED && status != HF_UNSUPPORTED)
        return status;
    for (size_t i = 0; i < len; i++) { /* (2) */
        status = step_one(a, step, &events[i]);
        done[i] = status == HF_OK;
        if (status != HF_OK && status != HF_CONDITION)
            return status;
    }
    return hf_scope_ok(a->s);
}

/* (4) */
static enum hf_status row_restore(const struct adopt *a, const struct adopt_event *event)
{
    struct hf_put_item *put = hf__adopt_restore(a, event);
    enum hf_status status;

    TRY(hf_scope_built(a->s));
    begin_time(a);
    status = hf_put_item(a->s, a->from, put, NULL);
    return status == HF_CONDITION ? hf_scope_ok(a->s) : status;
}

/* ---- one by one ----------------------------------------------------------------------------- */

/* An id that was emitted before: by an event that is not this one? Nobody can say it of one that was
 * delivered since. */
static enum hf_status is_another(const struct adopt *a, const struct hf_event *event, bool *another)
{
    struct hf_outbox_event other;
    enum hf_status status;

    begin_time(a);
    status = hf_outbox_get(a->s, a->outbox, event->id, &other);
    *another = status == HF_OK &&
               (!hf_str_equal(event->type, other.event.type) ||
                !hf_str_equal(event->key, other.event.key) ||
                (other.blob_error == HF_OK &&
                 (event->payload.len != other.event.payload.len ||
                  (event->payload.len &&
                   memcmp(event->payload.ptr, other.event.payload.ptr, event->payload.len) != 0))));
    return status == HF_NOT_FOUND ? hf_scope_ok(a->s) : status;
}

/* Its id was taken before; `why` says if it is by another event. */
static enum hf_status one_before(struct adopt *a, const struct adopt_event *event,
                                 enum moved *moved, char why[WHY_MAX])
{
    bool another, done = false;

    TRY(is_another(a, &event->line.event, &another));
    *moved = MOVED_REFUSED;
    snprintf(why, WHY_MAX, "another event in the outbox has its id");
    if (another)
        return HF_OK;
    *moved = MOVED_BEFORE;
    return step_do(a, STEP_DELETE, event, 1, &done);
}

/* Is it the event that the outbox does not take? */
static bool is_refusal(enum hf_status status)
{
    return status == HF_INVALID || status == HF_LIMIT;
}

static enum hf_status one_in_tx(struct adopt *a, struct adopt_event *event, enum moved *moved,
                                char why[WHY_MAX])
{
    const struct move m = {.a = a, .events = event, .len = 1};
    size_t row_at = 0;
    enum hf_status status = tx_move(&m, &row_at);
    const struct hf_error *error = hf_scope_error(a->s);

    *moved = MOVED;
    if (status == HF_OK)
        return HF_OK;
    if (is_refusal(status)) {
        *moved = MOVED_REFUSED;
        snprintf(why, WHY_MAX, "%s", hf_scope_error_text(a->s));
        return hf_scope_ok(a->s);
    }
    if (reason_is_condition(error, row_at) || is_conflict(error)) {
        *moved = MOVED_NOT;
        return hf_scope_ok(a->s);
    }
    if (status == HF_TX_CANCELED || status == HF_DUPLICATE)
        return one_before(a, event, moved, why);
    return status;
}

static enum hf_status events_emit(const struct adopt *a, const struct hf_event *events, size_t len)
{
    assert(a->marking && a->outbox); /* otherwise it is in the transaction that deletes the row */
    begin_time(a);
    return hf_outbox_emit(a->s, a->outbox, events, len, NULL);
}

/* It is marked. */
static enum hf_status one_in_steps(struct adopt *a, struct adopt_event *event, enum moved *moved,
                                   char why[WHY_MAX])
{
    enum hf_status status = events_emit(a, &event->line.event, 1);
    bool done = false;

    *moved = MOVED;
    if (status == HF_OK)
        return step_do(a, STEP_DELETE, event, 1, &done);
    if (status == HF_DUPLICATE)
        TRY(one_before(a, event, moved, why));
    else if (!is_refusal(status))
        return status;
    else
        snprintf(why, WHY_MAX, "%s", hf_scope_error_text(a->s));
    if (status == HF_DUPLICATE && *moved == MOVED_BEFORE)
        return HF_OK;
    *moved = MOVED_REFUSED;
    return event->marked ? row_restore(a, event) : HF_OK;
}

/* ---- a batch -------------------------------------------------------------------------------- */

/* (3) */
static enum hf_status event_stays(struct adopt *a, const struct adopt_event *event)
{
    if (a->library->keyed && !hf__cli_text_map_add(&a->blocked, event->hash))
        return hf_scope_fail(a->s, HF_NOMEM, "out of memory");
    return HF_OK;
}

static bool is_blocked(const struct adopt *a, struct hf_str hash)
{
    return a->library->keyed && hf__cli_text_map_find(&a->blocked, hash);
}

static enum hf_status move_each(const struct move *m)
{
    struct adopt *a = m->a;

    for (size_t i = 0; i < m->len; i++) {
        struct adopt_event *event = &m->events[i];
        enum moved moved = MOVED_NOT;
        char why[WHY_MAX] = "";

        if (is_blocked(a, event->hash)) {
            a->behind++;
            if (event->marked)
                TRY(row_restore(a, event));
            continue;
        }
        if (a->marking)
            TRY(one_in_steps(a, event, &moved, why));
        else
            TRY(one_in_tx(a, event, &moved, why));
        a->moved += moved == MOVED;
        a->duplicates += moved == MOVED_BEFORE;
        a->claimed += moved == MOVED_NOT;
        if (moved == MOVED_NOT)
            TRY(event_stays(a, event));
        if (moved == MOVED_REFUSED)
            TRY(hf__adopt_report(a, event->hash, event->sort, why));
    }
    return HF_OK;
}

/* Is it about what is in the batch? */
static bool is_about_events(enum hf_status status)
{
    return status == HF_DUPLICATE || status == HF_TX_CANCELED || is_refusal(status);
}

static enum hf_status move_in_tx(const struct move *m)
{
    size_t row_at;
    enum hf_status status = tx_move(m, &row_at);

    if (is_about_events(status))
        return move_each(m);
    TRY(status);
    m->a->moved += m->len;
    return HF_OK;
}

/* Mark them; those that others have changed leave the batch. */
static enum hf_status move_mark(struct move *m)
{
    struct adopt *a = m->a;
    bool *done = hf_scope_alloc(a->s, (m->len + 1) * sizeof(*done));
    struct adopt_event *fresh = hf_scope_alloc(a->s, (m->len + 1) * sizeof(*fresh));
    size_t len = 0, at = 0;

    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < m->len; i++)
        if (!m->events[i].line.adopting)
            fresh[len++] = m->events[i];
    if (len)
        TRY(step_do(a, STEP_MARK, fresh, len, done));
    len = 0;
    for (size_t i = 0; i < m->len; i++) {
        struct adopt_event event = m->events[i];

        if (!event.line.adopting) {
            event.marked = done[at++];
            if (!event.marked) {
                a->claimed++;
                TRY(event_stays(a, &event));
                continue;
            }
        }
        m->events[len++] = event;
    }
    m->len = len;
    return HF_OK;
}

static enum hf_status move_in_steps(struct move *m)
{
    struct adopt *a = m->a;
    struct hf_event *events;
    enum hf_status status;
    bool *done;

    TRY(move_mark(m));
    events = hf_scope_alloc(a->s, (m->len + 1) * sizeof(*events));
    done = hf_scope_alloc(a->s, (m->len + 1) * sizeof(*done));
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < m->len; i++) {
        events[i] = m->events[i].line.event;
        if (is_blocked(a, m->events[i].hash)) /* since the batch was begun */
            return move_each(m);
    }
    if (!m->len)
        return HF_OK;
    status = events_emit(a, events, m->len);
    if (is_about_events(status) || status == HF_UNSUPPORTED)
        return move_each(m);
    TRY(status);
    TRY(step_do(a, STEP_DELETE, m->events, m->len, done));
    a->moved += m->len;
    return HF_OK;
}

static enum hf_status move_batch(struct move *m)
{
    struct adopt *a = m->a;
    enum hf_status status;

    if (!m->len)
        return HF_OK;
    if (!a->marking) {
        status = move_in_tx(m);
        if (status != HF_UNSUPPORTED)
            return status;
        a->marking = true; /* there are no transactions */
    }
    return move_in_steps(m);
}

/* Read the rows again; those that may be moved are in `m`, and *taken is how many were looked at. */
static enum hf_status batch_read(struct adopt *a, const struct adopt_row *rows, size_t len,
                                 struct move *m, size_t *taken)
{
    struct hf_get *gets = hf_scope_alloc(a->s, (len + 1) * sizeof(*gets));
    struct hf_get_many_result got;
    size_t bytes = 0;

    m->events = hf_scope_alloc(a->s, (len + 1) * sizeof(*m->events));
    TRY(hf_scope_built(a->s));
    for (size_t i = 0; i < len; i++)
        gets[i] = (struct hf_get){a->table, hf__adopt_key(a, rows[i].hash, rows[i].sort)};
    begin_time(a);
    TRY(hf_get_many(a->s, a->from, gets, len, HF_OPTIONS(hf_many_options, .consistent = true),
                    &got));
    for (*taken = 0; *taken < len; ++*taken) {
        struct hf_item item = got.items[*taken];
        struct adopt_event event;
        bool readable;

        if (!item.ptr)
            continue; /* another run has moved it */
        if (m->len && bytes + hf_item_size(item) > BATCH_BYTES)
            break;
        if (is_blocked(a, rows[*taken].hash)) {
            a->behind++;
            continue;
        }
        TRY(hf__adopt_read(a, item, &event, &readable));
        if (!readable)
            continue;
        switch (hf__adopt_judge(a, &event.line)) {
        case ADOPT_MOVE:
            bytes += hf_item_size(item);
            m->events[m->len++] = event;
            break;
        case ADOPT_DELIVERED:
            a->delivered++;
            break;
        case ADOPT_FAILED:
            a->failed++;
            break;
        case ADOPT_CLAIMED:
            a->claimed++;
            TRY(event_stays(a, &event));
            break;
        }
    }
    return HF_OK;
}

static void show_progress(struct adopt *a, size_t at, bool done)
{
    if (hf__progress_due(&a->progress, done))
        hf__progress_print(&a->progress, "%zu of %zu events, %llu moved, %.0f per second", at,
                           a->rows_len, (unsigned long long)a->moved,
                           hf__progress_rate(&a->progress, a->moved));
}

enum hf_status hf__adopt_move(struct adopt *a)
{
    size_t at = 0;

    assert(a->outbox && a->batch >= 1 && a->batch * ACTIONS_EACH <= HF_TX_ACTIONS_MAX);
    while (at < a->rows_len) {
        struct hf_scope_mark mark = hf_scope_mark(a->s);
        size_t len = a->rows_len - at < a->batch ? a->rows_len - at : a->batch, taken = 0;
        struct move m = {.a = a};

        TRY(batch_read(a, a->rows + at, len, &m, &taken));
        assert(taken >= 1 && taken <= len);
        TRY(move_batch(&m));
        at += taken;
        hf_scope_rewind(a->s, mark);
        show_progress(a, at, at == a->rows_len);
    }
    return HF_OK;
}
