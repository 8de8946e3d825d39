/*
 * streams/consumer_read.c: one shard, one page: from an iterator to the handler, and the position
 * behind it.
 *
 * What always holds:
 *
 *  (1) The position moves when the handler has returned HF_OK, to the last record of the page.
 *      Until then the iterator stays as it is, so that the same page comes again.
 *  (2) Nothing is handed over after our lease has ended by our own clock, unless it could be
 *      renewed.
 *  (3) Iterators expire: then a new one is made from the position.
 *  (4) Pages without records mean nothing. A shard has ended when there is no next iterator.
 *
 * A shard that is read from a time on passes over what is older; its position stays that time until
 * something was found, as records are not looked at by their time once they have a number to
 * follow.
 */
#include "streams/consumer.h"

/* ---- iterators ------------------------------------------------------------------------------ */

static enum hf_status no_memory(struct hf_scope *s)
{
    return hf_scope_fail(s, HF_NOMEM, "no memory to read a shard");
}

static enum hf_status get_iterator(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                   enum hf_iterator_type type, struct hf_str sequence)
{
    struct hf_get_shard_iterator request = {.arn = text_str(&c->arn),
                                            .shard = text_str(&shard->id),
                                            .type = type,
                                            .sequence = sequence};
    struct hf_get_shard_iterator_result result;

    TRY(hf_get_shard_iterator(s, c->db, &request, &result));
    return hf__text_set(&c->env, &shard->iterator, result.iterator) ? HF_OK : no_memory(s);
}

enum hf_status hf__shard_latest(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    shard->by_time = false;
    return get_iterator(s, c, shard, HF_ITERATOR_LATEST, hf_str_of(NULL, 0));
}

/* (3) */
static enum hf_status ensure_iterator(struct hf_scope *s, struct hf_consumer *c,
                                      struct shard *shard)
{
    if (shard->iterator.len)
        return HF_OK;
    shard->by_time = shard->place == PLACE_TIME;
    switch (shard->place) {
    case PLACE_AT:
        return get_iterator(s, c, shard, HF_ITERATOR_AT_SEQUENCE_NUMBER,
                            text_str(&shard->sequence));
    case PLACE_AFTER:
        return get_iterator(s, c, shard, HF_ITERATOR_AFTER_SEQUENCE_NUMBER,
                            text_str(&shard->sequence));
    case PLACE_HORIZON:
    case PLACE_TIME:
        break;
    }
    return get_iterator(s, c, shard, HF_ITERATOR_TRIM_HORIZON, hf_str_of(NULL, 0));
}

/* The records behind our position are gone: report a gap, and go on with the oldest that is
 * there. */
static void shard_trimmed(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    struct hf_str last = hf_str_of(NULL, 0);

    if (shard->begun)
        last = hf_scope_copy(s, text_str(&shard->sequence));
    pthread_mutex_lock(&c->mutex);
    shard->iterator.len = 0;
    shard->place = PLACE_HORIZON;
    shard->dirty = has_name(c);
    pthread_mutex_unlock(&c->mutex);
    hf__consumer_gap(c, text_str(&shard->id), last);
}

/* ---- the lease ------------------------------------------------------------------------------ */

enum { HOLD_TRIES = 3 };

/* (2) What was renewed may be over again when the answer comes. */
static enum hf_status lease_hold(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    for (int tries = 0; has_name(c); tries++) {
        int64_t until_us;
        bool owned;

        pthread_mutex_lock(&c->mutex);
        owned = shard->owned;
        until_us = shard->lease.until_us;
        pthread_mutex_unlock(&c->mutex);
        if (!owned)
            return hf_scope_fail(s, HF_LOST, "shard %.*s is lost", HF_FMT(text_str(&shard->id)));
        if (hf__env_elapsed_us(&c->env) < until_us)
            break;
        if (tries == HOLD_TRIES)
            return hf_scope_fail(s, HF_TIMEOUT,
                                 "renewing a lease of %u ms took longer than the lease",
                                 c->o.lease_ms);
        TRY(hf__shard_lease_renew(s, c, shard));
    }
    return HF_OK;
}

static bool is_asked_for(struct hf_consumer *c, const struct shard *shard)
{
    bool asked;

    pthread_mutex_lock(&c->mutex);
    asked = shard->wanted[0] != '\0';
    pthread_mutex_unlock(&c->mutex);
    return asked;
}

/* Write the position, if it is time to. */
static enum hf_status position_save(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    int64_t now_us = hf__env_elapsed_us(&c->env);
    bool due;

    pthread_mutex_lock(&c->mutex);
    due = shard->owned && shard->dirty &&
          now_us - shard->saved_us >= (int64_t)c->o.checkpoint_ms * 1000;
    pthread_mutex_unlock(&c->mutex);
    return due ? hf__shard_lease_renew(s, c, shard) : HF_OK;
}

/* ---- changes -------------------------------------------------------------------------------- */

struct page {
    const struct hf_record *records;
    size_t len;
    struct hf_str next;
    struct hf_change *changes; /* those that are wanted */
    size_t changes_len;
    bool passed; /* a record was found that is not too old */
};

static enum hf_change_kind kind_of(enum hf_change_kind event)
{
    return event == HF_CHANGE_INSERT   ? HF_CHANGE_INSERT
           : event == HF_CHANGE_REMOVE ? HF_CHANGE_REMOVE
                                       : HF_CHANGE_MODIFY;
}

static bool is_wanted(const struct hf_consumer *c, const struct hf_record *record)
{
    if (!c->o.partition.len)
        return true;
    return hf_str_equal(hf_value_str(hf_item_get(record->change->keys, text_str(&c->hash))),
                        c->o.partition);
}

static struct hf_change change_of(const struct shard *shard, const struct hf_record *record)
{
    return (struct hf_change){
        .kind = kind_of(record->event),
        .key = record->change->keys,
        .old_image = record->change->old_image,
        .new_image = record->change->new_image,
        .sequence = record->change->sequence,
        .shard = text_str(&shard->id),
        .id = record->id,
        .time_us = record->change->created_us,
        .expired = record->identity && hf_str_equal(record->identity->type, HF_STR("Service")) &&
                   hf_str_equal(record->identity->principal, HF_STR("dynamodb.amazonaws.com")),
    };
}

static enum hf_status select_changes(struct hf_scope *s, const struct hf_consumer *c,
                                     const struct shard *shard, struct page *page)
{
    if (!page->len)
        return HF_OK;
    page->changes = hf_scope_alloc(s, page->len * sizeof(*page->changes));
    if (!page->changes)
        return hf_scope_built(s);
    page->passed = !shard->by_time;
    for (size_t i = 0; i < page->len; i++) {
        const struct hf_record *record = &page->records[i];

        if (!record->change || !record->change->sequence.len)
            return hf_scope_fail(s, HF_CORRUPT, "a record of shard %.*s has no sequence number",
                                 HF_FMT(text_str(&shard->id)));
        if (!page->passed && record->change->created_us < shard->from_us)
            continue;
        page->passed = true;
        if (is_wanted(c, record))
            page->changes[page->changes_len++] = change_of(shard, record);
    }
    assert(page->changes_len <= page->len);
    return HF_OK;
}

/* ---- handing over --------------------------------------------------------------------------- */

/* (1) */
static enum hf_status position_move(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    const struct page *page)
{
    bool good = true;

    pthread_mutex_lock(&c->mutex);
    if (page->len && page->passed) {
        good =
            hf__text_set(&c->env, &shard->sequence, page->records[page->len - 1].change->sequence);
        if (good) {
            shard->place = PLACE_AFTER;
            shard->begun = true;
            shard->by_time = false;
            shard->dirty = has_name(c);
        }
    }
    if (good)
        good = hf__text_set(&c->env, &shard->iterator, page->next);
    pthread_mutex_unlock(&c->mutex);
    return good ? HF_OK : no_memory(s);
}

static uint32_t backoff_ms(const struct hf_consumer *c, uint32_t failures)
{
    return hf__backoff_ms(&c->env, c->o.backoff_ms, CONSUMER_BACKOFF_MAX_MS, failures);
}

/* The handler failed. The same batch comes again, from its first record on, also after a
 * restart. */
static enum hf_status batch_refused(struct consumer_worker *worker, struct shard *shard,
                                    const struct page *page, enum hf_status status)
{
    struct hf_consumer *c = worker->consumer;
    bool good = true, too_often, stopping;

    assert(page->changes_len > 0 && status != HF_OK);
    pthread_mutex_lock(&c->mutex);
    stopping = c->stopping;
    if (!stopping) {
        shard->failures++;
        c->metrics.failures++;
    }
    if (shard->place == PLACE_TIME) {
        good = hf__text_set(&c->env, &shard->sequence, page->changes[0].sequence);
        if (good) {
            shard->place = PLACE_AT;
            shard->by_time = false;
            shard->iterator.len = 0;
            shard->dirty = has_name(c);
        }
    }
    too_often = !stopping && c->o.max_attempts && shard->failures >= c->o.max_attempts;
    shard->due_us = hf__env_elapsed_us(&c->env) +
                    (int64_t)backoff_ms(c, shard->failures ? shard->failures : 1) * 1000;
    pthread_mutex_unlock(&c->mutex);
    if (!good)
        return no_memory(worker->io);
    if (too_often)
        hf__consumer_stop(c, status, worker->work);
    return HF_OK;
}

static void count_batch(struct hf_consumer *c, const struct page *page)
{
    int64_t age_ms = hf__env_wall_ms(&c->env) - page->changes[page->changes_len - 1].time_us / 1000;

    pthread_mutex_lock(&c->mutex);
    c->metrics.batches++;
    c->metrics.changes += page->changes_len;
    c->metrics.lag_ms = age_ms > 0 ? age_ms : 0;
    pthread_mutex_unlock(&c->mutex);
}

/* The handler has changes of it since then; 0: it has returned. */
static void call_note(struct hf_consumer *c, struct shard *shard, int64_t now_us)
{
    pthread_mutex_lock(&c->mutex);
    shard->call_us = now_us;
    shard->stuck = false;
    pthread_mutex_unlock(&c->mutex);
}

/* *again: it was not taken, and comes again later. */
static enum hf_status hand_over(struct consumer_worker *worker, struct shard *shard,
                                const struct page *page, bool *again)
{
    struct hf_consumer *c = worker->consumer;
    enum hf_status status;

    *again = false;
    if (!page->changes_len)
        return HF_OK;
    if (c->deadline_us) {
        int64_t left_us = c->deadline_us - hf__env_elapsed_us(&c->env);

        hf_scope_timeout_ms(worker->work, left_us > 1000 ? (uint32_t)(left_us / 1000) : 1);
    }
    call_note(c, shard, hf__env_elapsed_us(&c->env));
    status = c->handle(worker->work, page->changes, page->changes_len, c->user);
    call_note(c, shard, 0);
    TRY(lease_hold(worker->io, c, shard)); /* if it was lost meanwhile, another has the position */
    if (status != HF_OK) {
        *again = true;
        return batch_refused(worker, shard, page, status);
    }
    count_batch(c, page);
    pthread_mutex_lock(&c->mutex);
    shard->failures = 0;
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}

/* ---- a page --------------------------------------------------------------------------------- */

static enum hf_status shard_finish(struct hf_scope *s, struct hf_consumer *c, struct shard *shard)
{
    if (has_name(c))
        TRY(hf__shard_lease_finish(s, c, shard));
    pthread_mutex_lock(&c->mutex);
    shard->done = true;
    if (shard->owned) {
        shard->owned = false;
        c->metrics.shards--;
    }
    hf__consumer_check(c);
    c->look_now = true; /* for its children */
    hf__waiters_notify(&c->looker);
    pthread_mutex_unlock(&c->mutex);
    return HF_OK;
}

/* When to read again. */
static void plan_next(struct hf_consumer *c, struct shard *shard, const struct page *page)
{
    int64_t wait_ms = page->len ? 0 : c->o.poll_ms;

    shard->empty = page->len ? 0 : shard->empty + 1;
    pthread_mutex_lock(&c->mutex);
    if (c->o.until_end) {
        if (shard->empty >= CONSUMER_END_PAGES)
            shard->at_end = true;
        if (wait_ms > CONSUMER_END_PAUSE_MS)
            wait_ms = CONSUMER_END_PAUSE_MS;
    }
    shard->due_us = hf__env_elapsed_us(&c->env) + wait_ms * 1000;
    pthread_mutex_unlock(&c->mutex);
}

static enum hf_status read_page(struct consumer_worker *worker, struct shard *shard)
{
    struct hf_consumer *c = worker->consumer;
    struct hf_scope *s = worker->io;
    struct hf_get_records request = {.limit = c->o.batch};
    struct hf_get_records_result result;
    struct page page = {.len = 0};
    bool again;

    TRY(lease_hold(s, c, shard));
    if (is_asked_for(c, shard))
        return hf__shard_lease_release(s, c, shard);
    TRY(ensure_iterator(s, c, shard));
    request.iterator = text_str(&shard->iterator);
    pthread_mutex_lock(&c->mutex);
    c->metrics.calls++;
    pthread_mutex_unlock(&c->mutex);
    TRY(hf_get_records(s, c->db, &request, &result));
    page.records = result.records;
    page.len = result.records_len;
    page.next = result.next;
    TRY(select_changes(s, c, shard, &page));
    TRY(lease_hold(s, c, shard));
    TRY(hand_over(worker, shard, &page, &again));
    if (again)
        return HF_OK;
    TRY(position_move(s, c, shard, &page));
    shard->db_failures = 0;
    if (!page.next.len)
        return shard_finish(s, c, shard);
    plan_next(c, shard, &page);
    return has_name(c) ? position_save(s, c, shard) : HF_OK;
}

/* Reading failed: when to try again, or why the run ends. */
static void read_failed(struct consumer_worker *worker, struct shard *shard, enum hf_status status)
{
    struct hf_consumer *c = worker->consumer;
    uint32_t wait_ms = 0;

    switch ((int)status) {
    case HF_LOST:
        return; /* it is not ours any more */
    case HF_EXPIRED:
        shard->iterator.len = 0; /* (3) */
        break;
    case HF_TRIMMED:
        shard_trimmed(worker->io, c, shard);
        break;
    case HF_NOT_FOUND: /* the shard, or the whole stream: the next look finds out */
        shard->iterator.len = 0;
        wait_ms = hf__consumer_retry_ms(c, shard->db_failures++);
        break;
    case HF_TIMEOUT:
    case HF_CANCELED: /* if it is the run's, the run sees it */
        wait_ms = hf__consumer_retry_ms(c, shard->db_failures++);
        break;
    default:
        if (!error_is_transient(hf_scope_error(worker->io))) {
            hf__consumer_stop(c, status, worker->io);
            return;
        }
        wait_ms = hf__consumer_retry_ms(c, shard->db_failures++);
        break;
    }
    pthread_mutex_lock(&c->mutex);
    c->look_now = c->look_now || status == HF_NOT_FOUND;
    shard->due_us = hf__env_elapsed_us(&c->env) + (int64_t)wait_ms * 1000;
    pthread_mutex_unlock(&c->mutex);
}

void hf__consumer_serve(struct consumer_worker *worker, struct shard *shard)
{
    struct hf_scope_mark mark = hf_scope_mark(worker->io);
    enum hf_status status;

    assert(worker->shard == shard && shard->busy);
    status = read_page(worker, shard);
    if (status != HF_OK)
        read_failed(worker, shard, status);
    hf_scope_rewind(worker->io, mark);
}
