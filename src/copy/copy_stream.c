/*
 * copy/copy_stream.c: the source's stream: positions, shards, pages of records.
 *
 *  (1) Positions are taken before the first item is read (hf__copy_stream_begin()). A shard that has
 *      ended by then is passed over: all of its records are older. An open one is read towards its end,
 *      and what comes is thrown away. Wherever that stops, the position is older than the first
 *      item; the nearer to the end, the less is applied again later. No clock decides what is
 *      applied: the time of a record only says when to stop reading.
 *  (2) A shard is read after its parent was read to its end, so changes of one item stay in order.
 *  (3) A position is written when the changes before it are in the target. What is repeated after a
 *      crash changes nothing: copy_apply.c.
 *  (4) Records that were removed before they were read are a gap: the table has to be copied again.
 *      We notice it when a position is refused (TrimmedDataAccessException), when a shard that was
 *      not read to its end is gone, when there is another stream than before, or when a shard from
 *      whose beginning we wanted to read was not read for nearly as long as a stream keeps records.
 *  (5) Caught up: every shard was read to its end, or gave several pages without records, since
 *      hf__copy_stream_again(). Where writers make no pause that never comes, so there is a weaker
 *      form: current. Then a shard may also have given a record that is newer than that call, by
 *      the clocks of both hosts. What has to be certain, as behind a fence, asks for the first.
 */
#include "copy/private.h"

#include <holdfast/pages.h>

enum {
    LOOK_US = 10 * 1000 * 1000,
    QUIET_MS = 50, /* between the pages without records that prove the end */
    NEAR_END_US = 10 * 1000 * 1000,
    NEWER_US = 1000 * 1000, /* records have whole seconds */
    BEGIN_PAGES = 20000,
    RESAVE_US = 600 * 1000 * 1000
};

static int64_t now_us(const struct copy_table *t)
{
    return hf__env_elapsed_us(&t->copy->env);
}

static struct copy_shard *shard_find(struct copy_table *t, struct hf_str id)
{
    for (size_t i = 0; i < t->shards_len; i++)
        if (hf_str_equal(t->shards[i].id, id))
            return &t->shards[i];
    return NULL;
}

/* (4) */
static enum hf_status gap_found(struct copy_table *t, const char *why)
{
    if (!t->gap)
        hf__copy_note(t, "changes of the source were removed before they were read: %s", why);
    t->gap = true;
    t->caught_up = t->current = false;
    return HF_OK;
}

/* ---- shards --------------------------------------------------------------------------------- */

/* All shards of the stream. `first`: before items are read. */
static enum hf_status shards_list(struct hf_scope *s, struct copy_table *t, bool first)
{
    struct hf_describe_stream request = {.arn = t->stream};
    struct hf_pages *pages;
    struct hf_shard shard = {.id = t->stream};
    enum hf_status status;

    for (size_t i = 0; i < t->shards_len; i++)
        t->shards[i].listed = false;
    TRY(hf_pages_describe_stream(s, t->copy->source, &request, NULL, &pages));
    while ((status = hf_pages_next_shard(s, pages, &shard)) == HF_OK && shard.id.ptr) {
        struct copy_shard *known = shard_find(t, shard.id);

        if (!known) {
            status = hf__copy_shard_take(s, t, shard.id, shard.parent);
            known = status == HF_OK ? shard_find(t, shard.id) : NULL;
            if (!known)
                break;
            if (first && shard.range && shard.range->last.len && !known->done) { /* (1) */
                known->done = true;
                status = hf__copy_shard_save(s, t, known);
                if (status != HF_OK)
                    break;
            }
        }
        known->listed = true;
    }
    hf_pages_free(pages);
    return status;
}

/* (2) */
static bool may_read(struct copy_table *t, const struct copy_shard *shard)
{
    const struct copy_shard *parent;

    if (shard->done)
        return false;
    parent = shard->parent.ptr ? shard_find(t, shard->parent) : NULL;
    return !parent || parent->done || !parent->listed;
}

/* (4) */
static enum hf_status lineage_check(struct hf_scope *s, struct copy_table *t)
{
    struct hf_describe_table_result is;
    int64_t wall_ms = hf__env_wall_ms(&t->copy->env);

    TRY(hf_describe_table(s, t->copy->source, &(struct hf_describe_table){.table = t->source},
                          &is));
    if (!hf_str_equal(is.table->stream_arn, t->stream))
        return gap_found(t, "the stream was switched off");
    for (size_t i = 0; i < t->shards_len; i++) {
        const struct copy_shard *shard = &t->shards[i];

        if (!shard->done && !shard->listed)
            return gap_found(t, "a shard is gone");
        if (!shard->done && !shard->sequence.ptr && wall_ms - shard->read_ms > COPY_STREAM_KEEPS_MS)
            return gap_found(t, "the stream was not read for a day");
    }
    return HF_OK;
}

/* ---- pages ---------------------------------------------------------------------------------- */

static enum hf_status iterator_get(struct hf_scope *s, struct copy_table *t,
                                   struct copy_shard *shard)
{
    struct hf_get_shard_iterator request = {.arn = t->stream,
                                            .shard = shard->id,
                                            .type = shard->sequence.ptr
                                                        ? HF_ITERATOR_AFTER_SEQUENCE_NUMBER
                                                        : HF_ITERATOR_TRIM_HORIZON,
                                            .sequence = shard->sequence};
    struct hf_get_shard_iterator_result result;

    if (shard->iterator.ptr)
        return HF_OK;
    TRY(hf_get_shard_iterator(s, t->copy->source, &request, &result));
    return hf__copy_text_set(s, t->copy, &shard->iterator, result.iterator);
}

/* A page of records; `page` is empty when the shard could not be read now, or there is a gap. */
static enum hf_status page_read(struct hf_scope *s, struct copy_table *t, struct copy_shard *shard,
                                struct hf_get_records_result *page, bool *read)
{
    enum hf_status status = iterator_get(s, t, shard);

    *page = (struct hf_get_records_result){.records_len = 0};
    *read = false;
    if (status == HF_OK)
        status = hf_get_records(s, t->copy->source,
                                &(struct hf_get_records){.iterator = shard->iterator}, page);
    if (status == HF_TRIMMED) {
        hf_scope_ok(s);
        return gap_found(t, "a position is older than the stream");
    }
    if (status == HF_NOT_FOUND) {
        hf_scope_ok(s);
        t->look_us = 0; /* the next look says what became of it */
        shard->due_us = now_us(t) + 1000 * (int64_t)t->copy->o.poll_ms;
        return hf__copy_text_set(s, t->copy, &shard->iterator, (struct hf_str){0});
    }
    if (status == HF_EXPIRED) {
        hf_scope_ok(s);
        return hf__copy_text_set(s, t->copy, &shard->iterator, (struct hf_str){0});
    }
    *read = status == HF_OK;
    return status;
}

/* Behind a page, whose changes are in the target. (3) */
static enum hf_status shard_move(struct hf_scope *s, struct copy_table *t, struct copy_shard *shard,
                                 const struct hf_get_records_result *page)
{
    if (page->records_len) {
        const struct hf_record *last = &page->records[page->records_len - 1];

        if (!last->change || !last->change->sequence.len)
            return hf_scope_fail(s, HF_CORRUPT, "a record of shard %.*s has no sequence number",
                                 HF_FMT(shard->id));
        TRY(hf__copy_text_set(s, t->copy, &shard->sequence, last->change->sequence));
    }
    shard->read_ms = hf__env_wall_ms(&t->copy->env);
    shard->dirty = shard->dirty || page->records_len > 0;
    shard->empty = page->records_len ? 0 : shard->empty + 1;
    shard->done = !page->next.ptr;
    shard->current =
        shard->current || shard->done || shard->empty >= COPY_EMPTY_PAGES ||
        (page->records_len && t->again_us &&
         page->records[page->records_len - 1].change->created_us > t->again_us + NEWER_US);
    shard->dirty = shard->dirty || shard->done;
    if (shard->done)
        t->look_us = 0; /* for its children */
    return hf__copy_text_set(s, t->copy, &shard->iterator, page->next);
}

/* ---- before the items ----------------------------------------------------------------------- */

static bool near_end(const struct copy_table *t, const struct hf_get_records_result *page)
{
    const struct hf_record *last = &page->records[page->records_len - 1];

    return last->change && hf__env_wall_us(&t->copy->env) - last->change->created_us < NEAR_END_US;
}

/* (1) */
static enum hf_status shard_skip(struct hf_scope *s, struct copy_table *t, struct copy_shard *shard)
{
    for (int i = 0; i < BEGIN_PAGES && !shard->done && !t->gap; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        struct hf_get_records_result page;
        bool read, end;

        TRY(page_read(s, t, shard, &page, &read));
        if (!read)
            continue;
        end = page.records_len ? near_end(t, &page) : shard->empty + 1 >= COPY_EMPTY_PAGES;
        TRY(shard_move(s, t, shard, &page));
        hf_scope_rewind(s, mark);
        if (end)
            break;
    }
    return hf__copy_shard_save(s, t, shard);
}

enum hf_status hf__copy_stream_begin(struct hf_scope *s, struct copy_table *t)
{
    hf__copy_shards_free(t);
    t->gap = false;
    TRY(shards_list(s, t, true));
    for (size_t i = 0; i < t->shards_len; i++)
        if (!t->shards[i].done)
            TRY(shard_skip(s, t, &t->shards[i]));
    if (t->gap)
        return hf_scope_fail(s, HF_TRIMMED,
                             "the stream of table %.*s lost records while it was read; start again",
                             HF_FMT(t->source));
    t->positioned = true;
    return HF_OK;
}

/* ---- changes -------------------------------------------------------------------------------- */

static void applied_count(struct copy_table *t, const struct hf_get_records_result *page,
                          double units)
{
    struct hf_copy *c = t->copy;
    int64_t age_ms = 0;

    if (page->records_len && page->records[page->records_len - 1].change)
        age_ms = hf__env_wall_ms(&c->env) -
                 page->records[page->records_len - 1].change->created_us / 1000;
    pthread_mutex_lock(&c->mutex);
    c->progress.changes += page->records_len;
    c->progress.write_units += units;
    if (page->records_len)
        c->progress.lag_ms = age_ms > 0 ? age_ms : 0;
    pthread_mutex_unlock(&c->mutex);
}

static enum hf_status shard_step(struct hf_scope *s, struct copy_table *t, struct copy_shard *shard)
{
    struct hf_get_records_result page;
    double units = 0;
    uint32_t wait_ms;
    bool read;

    TRY(page_read(s, t, shard, &page, &read));
    if (!read)
        return HF_OK;
    if (page.records_len)
        TRY(hf__copy_apply(s, t, page.records, page.records_len, &units));
    applied_count(t, &page, units);
    TRY(shard_move(s, t, shard, &page));
    if (!page.records_len)
        shard->due_us =
            now_us(t) +
            1000 * (int64_t)(shard->empty < COPY_EMPTY_PAGES ? QUIET_MS : t->copy->o.poll_ms);
    if (shard->done || (shard->dirty && now_us(t) - shard->saved_us >= 1000 * COPY_SAVE_MS) ||
        now_us(t) - shard->saved_us >= RESAVE_US) {
        TRY(hf__copy_suspects_store(s, t));
        TRY(hf__copy_shard_save(s, t, shard));
    }
    wait_ms = hf__copy_spend(t->copy, page.records_len, 0, units);
    return wait_ms ? hf_scope_sleep_ms(s, wait_ms) : HF_OK;
}

static enum hf_status stream_look(struct hf_scope *s, struct copy_table *t)
{
    enum hf_status status;

    if (now_us(t) < t->look_us)
        return HF_OK;
    t->look_us = now_us(t) + LOOK_US;
    status = shards_list(s, t, false);
    if (status == HF_NOT_FOUND) {
        hf_scope_ok(s);
        return gap_found(t, "the stream is gone");
    }
    TRY(status);
    return lineage_check(s, t);
}

enum hf_status hf__copy_stream_step(struct hf_scope *s, struct copy_table *t, int64_t *due_us)
{
    bool all = true, current = true;

    TRY(stream_look(s, t));
    for (size_t i = 0; i < t->shards_len && !t->gap; i++) {
        struct copy_shard *shard = &t->shards[i];
        struct hf_scope_mark mark = hf_scope_mark(s);

        if (may_read(t, shard) && now_us(t) >= shard->due_us) {
            TRY(shard_step(s, t, shard));
            hf_scope_rewind(s, mark);
        }
        all = all && (shard->done || shard->empty >= COPY_EMPTY_PAGES);
        current = current && (shard->done || shard->current);
        if (may_read(t, shard) && shard->due_us < *due_us)
            *due_us = shard->due_us;
    }
    if (!t->look_us) /* a shard has ended: its children are to be looked for */
        all = current = false;
    if (!t->look_us && now_us(t) < *due_us)
        *due_us = now_us(t);
    t->caught_up = all && !t->gap; /* (5) */
    t->current = current && !t->gap;
    return HF_OK;
}

void hf__copy_stream_again(struct copy_table *t)
{
    t->caught_up = t->current = false;
    t->look_us = 0;
    t->again_us = hf__env_wall_us(&t->copy->env);
    for (size_t i = 0; i < t->shards_len; i++) {
        t->shards[i].empty = 0;
        t->shards[i].current = false;
        t->shards[i].due_us = 0;
    }
}

enum hf_status hf__copy_stream_save(struct hf_scope *s, struct copy_table *t)
{
    TRY(hf__copy_suspects_store(s, t));
    for (size_t i = 0; i < t->shards_len; i++)
        if (t->shards[i].dirty)
            TRY(hf__copy_shard_save(s, t, &t->shards[i]));
    return HF_OK;
}
