/*
 * outbox/outbox_admin.c: failed events, and the history, by hand.
 *
 *  (1) A dead letter that is retried moves from f to p, to its old place, without the attributes of
 *      its delivery except the fence; an event that is replayed is put into p and stays in h until it
 *      was delivered again.
 *  (2) An event is discarded where it was found: if it has moved meanwhile, it is looked for
 *      again.
 *  (3) Cleaning up removes only from h, so pending events and dead letters stay.
 *  (4) An event that is not found does not stop the call for the others.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

enum { ROUNDS = 3, SK_MAX = 1024 };

static struct hf_item pk_name(struct hf_scope *s, const struct hf_outbox *outbox)
{
    return HF_ITEM(s, HF_S("#pk", outbox->at.hash));
}

/* ---- retrying ------------------------------------------------------------------------------- */

/* Delete it from f, if it has not changed since it was read. */
static struct hf_delete_item failed_del(struct hf_scope *s, const struct hf_outbox *outbox,
                                        const struct hf_outbox_event *event)
{
    struct hf_delete_item del = {.table = outbox->table,
                                 .key = hf__outbox_key(s, outbox, "f", event->bucket, event->ref),
                                 .condition = HF_STR("attribute_exists(#pk) AND #ended = :ended"),
                                 .names = HF_ITEM(s, HF_S("#pk", outbox->at.hash),
                                                  HF_S("#ended", HF_STR("ended")))};

    if (event->ended_us)
        del.values = HF_ITEM(s, HF_N(":ended", event->ended_us));
    else /* the item had no room for `ended` */
        del.condition = HF_STR("attribute_exists(#pk) AND attribute_not_exists(#ended)");
    return del;
}

/* The put that lets it wait again, by `id`. */
static struct hf_put_item waiting_put(struct hf_scope *s, const struct hf_outbox *outbox,
                                      const struct hf_outbox_event *event, struct hf_str id)
{
    const struct hf_attr put[] = {HF_S("put", id)};
    struct outbox_place place;
    const struct outbox_move back = {.partition = "p",
                                     .place = &place,
                                     .more = put,
                                     .more_len = ARRAY_LEN(put)};

    if (!hf__outbox_place_read(outbox, event->ref, &place))
        return (struct hf_put_item){.table = outbox->table}; /* an event has a place */
    return (struct hf_put_item){.table = outbox->table,
                                .item = hf__outbox_moved(s, outbox, event->item, &back),
                                .condition = HF_STR("attribute_not_exists(#pk)"),
                                .names = pk_name(s, outbox)};
}

/* Without transactions: put it into p, where a crash may have left it already, then delete it from f. */
static enum hf_status event_put_back_by_steps(struct hf_scope *s, struct hf_outbox *outbox,
                                              const struct hf_put_item *put,
                                              const struct hf_delete_item *del, struct hf_item key,
                                              struct hf_str id, bool *done)
{
    struct hf_item found;
    enum hf_status status;

    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.put = put}, key, &found);
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    *done = status == HF_OK || hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("put"))), id);
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.del = del}, del->key, &found);
    *done = *done || status == HF_OK;
    return status == HF_CONDITION ? HF_OK : status;
}

/* (1) Move a dead letter back to p; not *done: it is not there any more. */
static enum hf_status event_put_back(struct hf_scope *s, struct hf_outbox *outbox,
                                     const struct hf_outbox_event *event, bool *done)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct hf_put_item put = waiting_put(s, outbox, event, id_str(&id));
    struct hf_delete_item del = failed_del(s, outbox, event);
    const struct hf_transact_write actions[] = {{.put = &put}, {.del = &del}};
    struct hf_item found, key = hf__outbox_key(s, outbox, "p", event->bucket, event->ref);
    enum hf_status status;

    *done = false;
    TRY(hf_scope_built(s));
    TRY(hf__outbox_renew(s, outbox, event));
    if (!outbox->transactions)
        return event_put_back_by_steps(s, outbox, &put, &del, key, id_str(&id), done);
    status = hf__outbox_transact(s, outbox, actions, ARRAY_LEN(actions));
    *done = status == HF_OK;
    if (status != HF_TX_CANCELED)
        return status;
    TRY(hf__pattern_read(s, outbox->db, outbox->table, key, &found));
    *done = hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("put"))), id_str(&id));
    if (!found.ptr || *done)
        return HF_OK;
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.del = &del}, del.key, &found);
    *done = status == HF_OK;
    return status == HF_CONDITION ? HF_OK : status;
}

/* Remove the delay of an event that waits for a retry. */
static enum hf_status event_retry_now(struct hf_scope *s, struct hf_outbox *outbox,
                                      const struct hf_outbox_event *event, bool *done)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_update_item update = {.table = outbox->table,
                                    .key =
                                        hf__outbox_key(s, outbox, "p", event->bucket, event->ref),
                                    .update = HF_STR("REMOVE #next"),
                                    .condition = HF_STR("attribute_exists(#pk) AND #next = :next"),
                                    .values = HF_ITEM(s, HF_N(":next", event->next_us))};
    struct hf_item found;
    enum hf_status status;

    NAMES(&h, "#pk", "#next");
    update.names = hf_item_make(s, h.names, h.names_len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                               update.key, &found);
    *done = status == HF_OK ||
            (status == HF_CONDITION && found.ptr && !hf_item_get(found, HF_STR("next")).ptr);
    return status == HF_CONDITION ? HF_OK : status;
}

/* ---- discarding ----------------------------------------------------------------------------- */

static enum hf_status remove_from(struct hf_scope *s, struct hf_outbox *outbox,
                                  const char *partition, const struct hf_outbox_event *event,
                                  bool *done)
{
    struct hf_delete_item del = {.table = outbox->table,
                                 .key = hf__outbox_key(s, outbox, partition, event->bucket,
                                                       event->ref),
                                 .condition = HF_STR("attribute_exists(#pk)"),
                                 .names = pk_name(s, outbox)};
    struct hf_item found;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.del = &del}, del.key, &found);
    *done = status == HF_OK;
    return status == HF_CONDITION ? HF_OK : status;
}

/* ---- by ids --------------------------------------------------------------------------------- */

enum admin_job { JOB_RETRY, JOB_DISCARD };

/* *known: there is such an event, and it is not published. *done: it was changed. */
static enum hf_status job_run_one(struct hf_scope *s, struct hf_outbox *outbox, enum admin_job job,
                                  struct hf_str id, bool *known, bool *done)
{
    *known = *done = false;
    for (int round = 0; round < ROUNDS && !*done; round++) { /* (2) */
        struct hf_outbox_event event;
        enum hf_status status = hf__outbox_get(s, outbox, id, &event);

        if (status != HF_OK && status != HF_NOT_FOUND)
            return status;
        /* It was there, and is gone: by a request of ours that arrived twice, or by another's. */
        *done = *known && status == HF_NOT_FOUND && job == JOB_DISCARD;
        *known = *done || (status == HF_OK && event.state != HF_OUTBOX_PUBLISHED);
        if (!*known || *done)
            return HF_OK;
        if (job == JOB_DISCARD) {
            TRY(remove_from(s, outbox, event.state == HF_OUTBOX_FAILED ? "f" : "p", &event, done));
        } else if (event.state == HF_OUTBOX_FAILED) {
            TRY(event_put_back(s, outbox, &event, done));
        } else {
            if (event.next_us <= outbox->env.wall_us(outbox->env.user))
                return HF_OK; /* it is due anyway */
            TRY(event_retry_now(s, outbox, &event, done));
        }
    }
    return HF_OK;
}

static enum hf_status job_run(struct hf_scope *s, struct hf_outbox *outbox, enum admin_job job,
                              const struct hf_str *ids, size_t len, uint64_t *done)
{
    struct hf_str missing = {NULL, 0};
    uint64_t count = 0;

    if (done)
        *done = 0;
    for (size_t i = 0; i < len; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        bool known, changed;

        TRY(job_run_one(s, outbox, job, ids[i], &known, &changed));
        hf_scope_rewind(s, mark);
        if (!known && !changed && !missing.ptr)
            missing = ids[i]; /* (4) */
        count += changed;
        if (done)
            *done = count;
    }
    if (count && job == JOB_RETRY)
        hf_outbox_wake(outbox);
    if (missing.ptr)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no pending or failed event %.*s in %.*s",
                             HF_FMT(missing), HF_FMT(outbox->table));
    return hf_scope_ok(s);
}

enum hf_status hf_outbox_retry(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_str *ids, size_t len, uint64_t *done)
{
    return job_run(s, outbox, JOB_RETRY, ids, len, done);
}

enum hf_status hf_outbox_discard(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_str *ids, size_t len, uint64_t *done)
{
    return job_run(s, outbox, JOB_DISCARD, ids, len, done);
}

/* ---- all of a list -------------------------------------------------------------------------- */

typedef enum hf_status list_fn(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_event_list_options *options,
                               struct hf_event_list *list);
typedef enum hf_status change_fn(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_outbox_event *event, bool *done);

/* Change all that is listed, oldest first, page by page; at most options->limit: of those that are
 * changed, or `of_seen` of those that are listed. */
static enum hf_status list_change(struct hf_scope *s, struct hf_outbox *outbox, list_fn *list,
                                  change_fn *change, const struct hf_event_list_options *options,
                                  bool of_seen, uint64_t *done)
{
    struct hf_scope_mark mark;
    struct hf_event_list_options o;
    char after[OUTBOX_SEQ_LEN];
    uint64_t count = 0, used = 0, limit;

    if (done)
        *done = 0;
    OPTIONS_COPY(&o, options);
    limit = o.limit;
    o.size = sizeof(o);
    o.oldest_first = true;
    mark = hf_scope_mark(s);
    do {
        struct hf_event_list events;

        o.limit = limit && limit - used < OUTBOX_PAGE ? (uint32_t)(limit - used) : OUTBOX_PAGE;
        TRY(list(s, outbox, &o, &events));
        for (size_t i = 0; i < events.events_len; i++) {
            struct hf_scope_mark inner = hf_scope_mark(s);
            bool changed;

            TRY(change(s, outbox, &events.events[i], &changed));
            hf_scope_rewind(s, inner);
            count += changed;
            used += changed || of_seen;
            if (done)
                *done = count;
        }
        o.after = hf_str_of(NULL, 0);
        if (events.next.len) {
            memcpy(after, events.next.ptr, OUTBOX_SEQ_LEN);
            o.after = hf_str_of(after, OUTBOX_SEQ_LEN);
        }
        hf_scope_rewind(s, mark);
    } while (o.after.len && (!limit || used < limit));
    return hf_scope_ok(s);
}

enum hf_status hf_outbox_retry_all(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_event_list_options *options, uint64_t *done)
{
    enum hf_status status =
        list_change(s, outbox, hf__outbox_failed, event_put_back, options, false, done);

    hf_outbox_wake(outbox);
    return status;
}

static enum hf_status discard_failed(struct hf_scope *s, struct hf_outbox *outbox,
                                     const struct hf_outbox_event *event, bool *done)
{
    return remove_from(s, outbox, "f", event, done);
}

enum hf_status hf_outbox_discard_all(struct hf_scope *s, struct hf_outbox *outbox,
                                     const struct hf_event_list_options *options, uint64_t *done)
{
    return list_change(s, outbox, hf__outbox_failed, discard_failed, options, false, done);
}

/* ---- the history ---------------------------------------------------------------------------- */

/* (1) */
static enum hf_status replay_one(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_outbox_event *event, bool *done)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct hf_put_item put = waiting_put(s, outbox, event, id_str(&id));
    struct hf_item found, key = hf__outbox_key(s, outbox, "p", event->bucket, event->ref);
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf__outbox_renew(s, outbox, event));
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.put = &put}, key, &found);
    *done = status == HF_OK ||
            (status == HF_CONDITION &&
             hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("put"))), id_str(&id)));
    return status == HF_CONDITION ? HF_OK : status;
}

enum hf_status hf_outbox_replay(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_event_list_options *options, uint64_t *done)
{
    enum hf_status status =
        list_change(s, outbox, hf__outbox_history, replay_one, options, true, done);

    hf_outbox_wake(outbox);
    return status;
}

/* What was published before, of one bucket: a page, behind `after`. */
static struct hf_query old_query(struct hf_scope *s, const struct hf_outbox *outbox,
                                 uint32_t bucket, int64_t before_us, struct hf_str after)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_query query = {.table = outbox->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .filter = HF_STR("#ended < :before"),
                             .projection = HF_STR("#pk, #sk"),
                             .consistent = HF_YES};

    NAMES(&h, "#pk", "#sk", "#ended");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, "h", bucket))); /* (3) */
    VALUE(&h, HF_N(":before", before_us));
    if (after.len)
        query.start = hf__outbox_key(s, outbox, "h", bucket, after);
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    return query;
}

static enum hf_status clean_bucket(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                   int64_t before_us, uint64_t *done)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    char after[SK_MAX];
    size_t after_len = 0;

    do {
        struct hf_query query =
            old_query(s, outbox, bucket, before_us, hf_str_of(after, after_len));
        struct hf_query_result page;
        struct hf_write *writes;
        struct hf_str last;

        TRY(hf_scope_built(s));
        TRY(hf_query(s, outbox->db, &query, &page));
        writes = hf_scope_alloc(s, (page.items_len + 1) * sizeof(*writes));
        TRY(hf_scope_built(s));
        for (size_t i = 0; i < page.items_len; i++)
            writes[i] = (struct hf_write){.table = outbox->table, .del = page.items[i]};
        if (page.items_len)
            TRY(hf__outbox_write_many(s, outbox, writes, page.items_len));
        *done += page.items_len;
        last = sk_of(outbox, page.last);
        after_len = last.len < SK_MAX ? last.len : SK_MAX;
        if (after_len)
            memcpy(after, last.ptr, after_len);
        hf_scope_rewind(s, mark);
    } while (after_len);
    return HF_OK;
}

enum hf_status hf_outbox_cleanup(struct hf_scope *s, struct hf_outbox *outbox, int64_t before_us,
                                 uint64_t *done)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < outbox->buckets; i++) {
        enum hf_status status = clean_bucket(s, outbox, i, before_us, &count);

        if (done)
            *done = count;
        TRY(status);
    }
    return hf_scope_ok(s);
}
