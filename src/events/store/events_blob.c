/*
 * events/store/events_blob.c: payloads that are too large for an item.
 *
 * They are put into the blob store before the event that names them is written, and after it is
 * known that the streams are as they were expected. When the event is not written after all the
 * blob is left behind, and the sweep removes it. What is read back is verified by the blob store;
 * that it cannot be read is never HF_NOT_FOUND, which is what events are that were truncated.
 */
#include "events/store/append.h"

enum { BLOB_SIZE = HF_BLOB_DIGEST_LEN + 16 }; /* of an item that names one: digest, size */

/* ---- the store of blobs --------------------------------------------------------------------- */

enum hf_status hf__events_blobs_open(struct hf_scope *s, struct hf_events *store,
                                     struct hf_blobs *given)
{
    enum hf_status status;

    if (!given) {
        status = hf_blobs_open_beside(s, store->db, &store->beside);
        if (status == HF_UNSUPPORTED || status == HF_DENIED) /* read-only */
            return hf_scope_ok(s);
        TRY(status);
        given = store->beside;
    }
    return hf_blobs_part_of(s, given, store->db, store->table, &store->blobs);
}

void hf__events_blobs_close(struct hf_events *store)
{
    hf_blobs_close(store->blobs);
    hf_blobs_close(store->beside);
    store->blobs = store->beside = NULL;
}

/* ---- writing -------------------------------------------------------------------------------- */

enum hf_status hf__append_measure(struct appending *a, struct append_event *p)
{
    const struct hf_stored_event *e = &p->event;
    size_t number = (size_t)(p - a->events) + 1;

    assert(!p->in_blob && p->size >= e->payload.len);
    if (p->size <= a->store->blob_bytes)
        return HF_OK;
    if (e->payload.len > BLOB_SIZE && p->size - e->payload.len + BLOB_SIZE <= EVENTS_ITEM_BYTES) {
        if (!a->store->blobs)
            return hf_scope_fail_limit(
                a->s, HF_LIMIT, hf_error_limit_of("blob_bytes", a->store->blob_bytes, p->size),
                "event %zu (%.*s) has %zu bytes, %zu of them payload: an item holds at most %u, "
                "and there is no blob store",
                number, HF_FMT(e->type), p->size, e->payload.len, a->store->blob_bytes);
        p->in_blob = true;
        p->size = p->size - e->payload.len + BLOB_SIZE;
        return HF_OK;
    }
    if (p->size <= EVENTS_ITEM_BYTES)
        return HF_OK; /* not for its payload */
    return hf_scope_fail(
        a->s, HF_LIMIT,
        "event %zu (%.*s) has %zu bytes without its payload, an item holds at most %d", number,
        HF_FMT(e->type), p->size - e->payload.len, EVENTS_ITEM_BYTES);
}

enum hf_status hf__append_blobs(struct appending *a)
{
    for (size_t i = 0; i < a->events_len; i++) {
        struct append_event *p = &a->events[i];
        struct hf_str digest;

        if (!p->in_blob || p->event.blob.len)
            continue;
        assert(a->store->blobs);
        TRY(hf_blob_put(a->s, a->store->blobs, p->event.payload, &digest));
        assert(digest.len == HF_BLOB_DIGEST_LEN);
        memcpy(p->blob, digest.ptr, HF_BLOB_DIGEST_LEN);
        p->event.blob = hf_str_of(p->blob, HF_BLOB_DIGEST_LEN);
    }
    return HF_OK;
}

/* ---- reading -------------------------------------------------------------------------------- */

/*
 * One of these is not in the blob store: an event without its payload is damaged, not absent, and
 * is not to be taken for one that was truncated.
 */
static enum hf_status fail_gone(struct hf_scope *s, struct hf_events *store,
                                const struct hf_stored_event *events, size_t len)
{
    struct hf_str why = hf_scope_copy(s, hf_scope_error(s)->message);
    const struct hf_stored_event *event = NULL;

    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        enum hf_status status;

        if (!events[i].blob.len)
            continue;
        event = &events[i];
        status = hf_blob_has(s, store->blobs, event->blob, NULL);
        if (status == HF_NOT_FOUND)
            break;
        if (status != HF_OK)
            return status;
    }
    assert(event);
    return hf_scope_fail(s, HF_CORRUPT, "the payload of event %.*s, blob %.*s, is missing: %.*s",
                         HF_FMT(event->id), HF_FMT(event->blob), HF_FMT(why));
}

enum hf_status hf__events_payloads(struct hf_scope *s, struct hf_events *store,
                                   struct hf_stored_event *events, size_t len)
{
    struct hf_bytes *bytes;
    struct hf_str *digests;
    size_t count = 0, last = 0;
    enum hf_status status;

    for (size_t i = 0; i < len; i++)
        if (events[i].blob.len) {
            count++;
            last = i;
        }
    if (!count)
        return HF_OK;
    if (!store->blobs)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "event %.*s has its payload in a blob store, and event store %.*s was "
                             "opened without one",
                             HF_FMT(events[last].id), HF_FMT(store->table));
    digests = hf_scope_alloc(s, count * sizeof(*digests));
    bytes = hf_scope_alloc(s, count * sizeof(*bytes));
    TRY(hf_scope_built(s));
    count = 0;
    for (size_t i = 0; i < len; i++)
        if (events[i].blob.len)
            digests[count++] = events[i].blob;
    status = hf_blob_get_many(s, store->blobs, digests, count, bytes);
    if (status == HF_NOT_FOUND)
        return fail_gone(s, store, events, len);
    TRY(status);
    count = 0;
    for (size_t i = 0; i < len; i++)
        if (events[i].blob.len)
            events[i].payload = bytes[count++];
    return HF_OK;
}
