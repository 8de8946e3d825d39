/*
 * cli/outbox/adopt_rows.c: the rows of a pass of `outbox adopt`: the whole table is read, with consistent
 * reads, and the keys of what is to be moved are sorted. The rows themselves are read again when they
 * are moved: by then they may be claimed, or delivered.
 *
 *  (1) Memory is for the keys of rows that wait, about 200 bytes each, not for their events.
 *  (2) A row that cannot be read is left alone and reported, once in a run.
 */
#include "base/base.h"
#include "cli/frame/foreign_table.h"
#include "cli/outbox/adopt.h"

#include <stdlib.h>

enum { ROWS_FIRST = 256 };

/* ---- a row ---------------------------------------------------------------------------------- */

static enum hf_status no_memory(struct adopt *a)
{
    return hf_scope_fail(a->s, HF_NOMEM, "out of memory");
}

enum hf_status hf__adopt_report(struct adopt *a, struct hf_str hash, struct hf_str sort,
                                const char *why)
{
    struct hf_str name = sort.ptr ? hf_scope_format(a->s, "%.*s/%.*s", HF_FMT(hash), HF_FMT(sort))
                                  : hf_scope_format(a->s, "%.*s", HF_FMT(hash));

    a->unreadable++;
    if (!name.ptr)
        return no_memory(a);
    if (hf__cli_text_map_find(&a->reported, name)) /* (2) */
        return HF_OK;
    if (!hf__cli_text_map_add(&a->reported, name))
        return no_memory(a);
    hf__progress_end(&a->progress);
    hf__cli_notice(a->c->cli, a->c->name, "left \"%.*s\" in its table: %s", HF_FMT(name), why);
    return HF_OK;
}

enum hf_status hf__adopt_read(struct adopt *a, struct hf_item item, struct adopt_event *event,
                              bool *readable)
{
    struct hf_str error = {0};

    *event = (struct adopt_event){.item = item,
                                  .hash = hf_value_str(hf_item_get(item, a->hash)),
                                  .sort = a->sort.ptr ? hf_value_str(hf_item_get(item, a->sort))
                                                      : (struct hf_str){0}};
    assert(event->hash.ptr && (event->sort.ptr || !a->sort.ptr)); /* they are strings: the schema */
    *readable = hf__cli_outbox_row_read(a->s, a->library->form, item, a->hash, a->sort,
                                        &event->line, &error);
    if (!hf_item_get(item, hf_str_from(a->library->state)).ptr) { /* it may be of any table */
        *readable = false;
        error = hf_scope_format(a->s, "\"%s\" is missing", a->library->state);
        if (!error.ptr)
            return no_memory(a);
    } else if (event->line.done) {
        *readable = true; /* all but empty, where a program of theirs has recreated a deleted one */
    } else if (*readable && !event->line.event.time_us) {
        *readable = false;
        error = HF_STR("it does not say when it happened");
    }
    if (*readable)
        return HF_OK;
    return hf__adopt_report(a, event->hash, event->sort, error.ptr);
}

enum adopt_verdict hf__adopt_judge(const struct adopt *a, const struct outbox_line *line)
{
    const struct hf_env *env = hf_scope_env(a->s);
    int64_t end_us = line->claim_us;

    if (line->done)
        return ADOPT_DELIVERED;
    if (line->adopting)
        return ADOPT_MOVE;
    if (line->failed)
        return a->failed_too ? ADOPT_MOVE : ADOPT_FAILED;
    if (!line->claimed)
        return ADOPT_MOVE;
    if (a->library->form != OUTBOX_LINE_EVENT_BUS)
        end_us += a->lease_us;
    return line->claim_us && env->wall_us(env->user) > end_us + a->grace_us ? ADOPT_MOVE
                                                                            : ADOPT_CLAIMED;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static enum hf_status rows_make_room(struct adopt *a)
{
    size_t cap = a->rows_cap ? a->rows_cap * 2 : ROWS_FIRST;
    struct adopt_row *rows;

    if (a->rows_len < a->rows_cap)
        return HF_OK;
    rows = hf__scope_grow(a->pass, a->rows, a->rows_cap * sizeof(*rows), cap * sizeof(*rows));
    if (!rows)
        return no_memory(a);
    a->rows = rows;
    a->rows_cap = cap;
    return HF_OK;
}

static enum hf_status rows_add(struct adopt *a, const struct adopt_event *event, bool claimed)
{
    struct adopt_row row = {.claimed = claimed};

    TRY(rows_make_room(a));
    a->library->orders(event, &row.order_us, &row.order);
    row.order = hf_scope_copy(a->pass, row.order.ptr ? row.order : HF_STR(""));
    row.hash = hf_scope_copy(a->pass, event->hash);
    if (a->sort.ptr)
        row.sort = hf_scope_copy(a->pass, event->sort);
    row.key = a->library->keyed ? row.hash : (struct hf_str){0};
    if (!row.order.ptr || !row.hash.ptr || (a->sort.ptr && !row.sort.ptr))
        return no_memory(a);
    assert(a->rows_len < a->rows_cap);
    a->rows[a->rows_len++] = row;
    return HF_OK;
}

static enum hf_status row_take(struct adopt *a, struct hf_item item)
{
    struct adopt_event event;
    enum adopt_verdict verdict;
    bool readable;

    TRY(hf__adopt_read(a, item, &event, &readable));
    if (!readable)
        return HF_OK;
    verdict = hf__adopt_judge(a, &event.line);
    a->delivered += verdict == ADOPT_DELIVERED;
    a->failed += verdict == ADOPT_FAILED;
    a->claimed += verdict == ADOPT_CLAIMED;
    if (verdict == ADOPT_MOVE || (verdict == ADOPT_CLAIMED && a->library->keyed))
        return rows_add(a, &event, verdict == ADOPT_CLAIMED);
    return HF_OK;
}

static int compare_rows(const void *one, const void *other)
{
    const struct adopt_row *a = one, *b = other;
    int order = (a->order_us > b->order_us) - (a->order_us < b->order_us);

    if (!order)
        order = bytes_compare(a->order.ptr, a->order.len, b->order.ptr, b->order.len);
    if (!order)
        order = bytes_compare(a->hash.ptr, a->hash.len, b->hash.ptr, b->hash.len);
    return order ? order : bytes_compare(a->sort.ptr, a->sort.len, b->sort.ptr, b->sort.len);
}

/* Events of a key wait for those before them that are claimed. */
static enum hf_status rows_block(struct adopt *a)
{
    size_t len = 0;

    for (size_t i = 0; i < a->rows_len; i++) {
        struct adopt_row row = a->rows[i];

        if (row.claimed && !hf__cli_text_map_add(&a->blocked, row.key))
            return no_memory(a);
        if (row.claimed)
            continue;
        if (row.key.ptr && hf__cli_text_map_find(&a->blocked, row.key))
            a->behind++;
        else
            a->rows[len++] = row;
    }
    a->rows_len = len;
    a->blocked = (struct text_map){.s = a->pass}; /* of those that are left none waits yet */
    return HF_OK;
}

static enum hf_status row_scanned(struct hf_item item, void *user)
{
    struct adopt *a = user;

    TRY(row_take(a, item));
    a->rows_read++;
    if (hf__progress_due(&a->progress, false))
        hf__progress_print(&a->progress, "%llu rows read", (unsigned long long)a->rows_read);
    return HF_OK;
}

static enum hf_status rows_read(struct adopt *a)
{
    struct hf_scan scan = {.table = a->table, .consistent = HF_YES};

    a->rows_read = 0;
    return hf__foreign_table_scan(a->c, a->from, &scan, row_scanned, a);
}

enum hf_status hf__adopt_rows(struct adopt *a)
{
    hf_scope_reset(a->pass);
    a->rows = NULL;
    a->rows_len = a->rows_cap = 0;
    a->blocked = (struct text_map){.s = a->pass};
    a->delivered = a->failed = a->claimed = a->behind = a->unreadable = 0;
    TRY(rows_read(a));
    if (a->rows_len)
        qsort(a->rows, a->rows_len, sizeof(*a->rows), compare_rows);
    return rows_block(a);
}
