/*
 * copy/copy_scan.c: the items: parallel segments of a scan, each from its own position.
 *
 *     page of the source  ->  batches to the target  ->  durable there  ->  position
 *
 *  (1) A position is written when all items before it are in the target, so a copy that was killed
 *      repeats a page at most. Putting an item again gives the same item, or a newer one.
 *  (2) While items are copied no change of the stream is applied. So no item that a segment has read
 *      some time ago replaces a newer one: changes come after all of the items, from positions that
 *      were taken before the first was read (copy_stream.c, copy_apply.c).
 *  (3) Limits count what was read and written, and wait behind it: pages are so small then that one
 *      is a quarter of a second at most.
 *  (4) The first failure stops all segments; it is the one that is reported.
 */
#include "copy/private.h"

#include <holdfast/batch.h>

enum { PARTS_OF_SECOND = 4, WRITE_ATTEMPTS = 30 };

/* ---- limits --------------------------------------------------------------------------------- */

static uint32_t spend_one(int64_t *until_us, int64_t now_us, double amount, uint64_t per_s)
{
    if (!per_s)
        return 0;
    if (*until_us < now_us)
        *until_us = now_us;
    *until_us += (int64_t)(amount * 1e6 / (double)per_s);
    return (uint32_t)((*until_us - now_us + 999) / 1000);
}

/* (3) */
uint32_t hf__copy_spend(struct hf_copy *c, size_t items, double read_units, double write_units)
{
    int64_t now_us = hf__env_elapsed_us(&c->env);
    uint32_t wait_ms, other_ms;

    pthread_mutex_lock(&c->mutex);
    wait_ms = spend_one(&c->items_at_us, now_us, (double)items, c->o.items_per_s);
    other_ms = spend_one(&c->read_at_us, now_us, read_units, c->o.units_per_s);
    wait_ms = other_ms > wait_ms ? other_ms : wait_ms;
    other_ms = spend_one(&c->write_at_us, now_us, write_units, c->o.units_per_s);
    wait_ms = other_ms > wait_ms ? other_ms : wait_ms;
    pthread_mutex_unlock(&c->mutex);
    return wait_ms;
}

static int64_t page_limit(const struct copy_table *t)
{
    const struct hf_copy_options *o = &t->copy->o;
    uint64_t per_s = o->items_per_s && (!o->units_per_s || o->items_per_s < o->units_per_s)
                         ? o->items_per_s
                         : o->units_per_s;

    return per_s ? (int64_t)(per_s / PARTS_OF_SECOND / t->segments_len + 1) : 0;
}

/* ---- a page --------------------------------------------------------------------------------- */

static enum hf_status page_write(struct hf_scope *s, struct copy_table *t,
                                 const struct hf_scan_result *page)
{
    struct hf_many_options many = {.size = sizeof(many), .max_attempts = WRITE_ATTEMPTS};
    struct hf_write *writes = hf__scope_array(s, page->items_len + 1, sizeof(*writes));

    if (!writes)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < page->items_len; i++)
        writes[i] = (struct hf_write){.table = t->target, .put = page->items[i]};
    if (!page->items_len)
        return HF_OK;
    hf_scope_sync_later(s, true);
    TRY(hf_write_many(s, t->copy->target, writes, page->items_len, &many, NULL));
    TRY(hf_db_sync(s, t->copy->target));
    hf_scope_sync_later(s, false);
    return HF_OK;
}

static struct hf_scan request_of(const struct copy_segment *segment)
{
    const struct copy_table *t = segment->table;
    struct hf_scan request = {.table = t->source,
                              .start = segment->position,
                              .consistent = t->copy->o.eventual ? HF_UNSET : HF_YES,
                              .limit = page_limit(t)};

    if (t->segments_len > 1) {
        request.segment = segment->number ? segment->number : HF_ZERO;
        request.total_segments = t->segments_len;
    }
    return request;
}

static void page_count(struct copy_segment *segment, const struct hf_scan_result *page,
                       uint64_t bytes, struct hf_scope_capacity used)
{
    struct hf_copy *c = segment->table->copy;

    pthread_mutex_lock(&c->mutex);
    assert(!segment->done);
    segment->items += page->items_len;
    segment->bytes += bytes;
    c->progress.items += page->items_len;
    c->progress.items_now += page->items_len;
    c->progress.bytes += bytes;
    c->progress.read_units += used.read_units;
    c->progress.write_units += used.write_units;
    pthread_mutex_unlock(&c->mutex);
}

/* (1) */
static enum hf_status segment_step(struct hf_scope *s, struct copy_segment *segment)
{
    struct copy_table *t = segment->table;
    struct hf_scan request = request_of(segment);
    struct hf_scan_result page;
    struct hf_scope_capacity used;
    uint64_t bytes = 0;
    uint32_t wait_ms;

    assert(!segment->done && segment->number < t->segments_len);
    hf_scope_count_capacity(s, true);
    TRY(hf_scan(s, t->copy->source, &request, &page));
    TRY(page_write(s, t, &page));
    used = hf_scope_capacity(s);
    for (size_t i = 0; i < page.items_len; i++)
        bytes += hf_item_size(page.items[i]);
    page_count(segment, &page, bytes, used);
    TRY(hf__copy_item_set(s, t->copy, &segment->position, page.last));
    segment->done = !page.last.ptr;
    TRY(hf__copy_segment_save(s, segment));
    wait_ms = hf__copy_spend(t->copy, page.items_len, used.read_units, used.write_units);
    return wait_ms && !segment->done ? hf_scope_sleep_ms(s, wait_ms) : HF_OK;
}

/* ---- threads -------------------------------------------------------------------------------- */

struct scan_thread {
    struct copy_segment *segment;
    const struct hf_scope *outer; /* its deadline and cancellation hold here, too */
    struct scan_thread *all;      /* of the table */
    struct hf_scope *s;           /* while it runs; the copy's mutex guards it */
    pthread_t thread;
    bool started;
};

static bool copy_stopping(struct hf_copy *c)
{
    bool stop;

    pthread_mutex_lock(&c->mutex);
    stop = c->stop;
    pthread_mutex_unlock(&c->mutex);
    return stop;
}

/* (4) Others may wait long for a database that is away: they are woken. */
static void failure_note(struct scan_thread *thread, enum hf_status status)
{
    struct hf_copy *c = thread->segment->table->copy;
    size_t len = thread->segment->table->segments_len;

    pthread_mutex_lock(&c->mutex);
    assert(status != HF_OK);
    c->stop = true;
    if (c->failure == HF_OK) {
        c->failure = status;
        if (thread->s)
            (void)!hf_scope_fail_from(c->failed, status, thread->s);
        for (size_t i = 0; i < len; i++)
            if (thread->all[i].s && &thread->all[i] != thread)
                hf_scope_cancel(thread->all[i].s);
    }
    pthread_mutex_unlock(&c->mutex);
}

static void thread_scope_set(struct scan_thread *thread, struct hf_scope *s)
{
    struct hf_copy *c = thread->segment->table->copy;

    pthread_mutex_lock(&c->mutex);
    thread->s = s;
    pthread_mutex_unlock(&c->mutex);
}

static void *segment_run(void *user)
{
    struct scan_thread *thread = user;
    struct hf_copy *c = thread->segment->table->copy;
    struct hf_scope *s = hf_scope_new(&c->env);
    enum hf_status status = s ? HF_OK : HF_NOMEM;

    thread_scope_set(thread, s);
    while (status == HF_OK && !thread->segment->done) {
        hf_scope_reset(s);
        hf__scope_follow(s, thread->outer);
        if (copy_stopping(c)) /* behind the reset, which would take a cancellation away */
            break;
        status = segment_step(s, thread->segment);
    }
    if (status != HF_OK)
        failure_note(thread, status);
    thread_scope_set(thread, NULL);
    hf_scope_free(s);
    return NULL;
}

static void threads_run(struct hf_scope *s, struct copy_table *t, struct scan_thread *threads)
{
    for (size_t i = 0; i < t->segments_len; i++)
        threads[i] = (struct scan_thread){.segment = &t->segments[i], .outer = s, .all = threads};
    for (size_t i = 0; i < t->segments_len; i++) {
        struct scan_thread *thread = &threads[i];

        if (thread->segment->done)
            continue;
        thread->started =
            t->segments_len > 1 && pthread_create(&thread->thread, NULL, segment_run, thread) == 0;
        if (!thread->started)
            segment_run(thread);
    }
    for (size_t i = 0; i < t->segments_len; i++)
        if (threads[i].started)
            pthread_join(threads[i].thread, NULL);
}

enum hf_status hf__copy_scan(struct hf_scope *s, struct copy_table *t)
{
    struct hf_copy *c = t->copy;
    struct scan_thread *threads = hf__scope_array(s, t->segments_len, sizeof(*threads));
    enum hf_status status;

    if (!threads)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    hf_scope_reset(c->failed);
    c->stop = false;
    c->failure = HF_OK;
    threads_run(s, t, threads);
    status = c->failure;
    return status == HF_OK ? HF_OK : hf_scope_fail_from(s, status, c->failed);
}
