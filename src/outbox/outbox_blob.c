/*
 * outbox/outbox_blob.c: payloads that are too large for an item.
 *
 * They are in a blob store, in the part of the table (hf_blobs_part_of()); the item has `blob`,
 * their digest, and `blob_size` instead of `payload`. Relays, lists and claims fetch a payload just
 * before they hand out the event, so events that wait in memory are small.
 *
 *  (1) A blob is put before the event is written, each time when that is tried: so an event that is
 *      there has its payload. A blob whose event was not written after all is swept.
 *  (2) An event goes from p to f or h, which is the order in which a sweep looks for those that are
 *      in use. Where one goes the other way (retried, replayed), its blob is put once more before,
 *      and counts as new; who has no blob store cannot do that. So a sweep never misses one,
 *      whatever moves while it reads, as long as it takes less time than blobs have to be old.
 *  (3) An event whose payload cannot be fetched is handed out with the reason, and is never delivered
 *      without its payload.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

enum { BARE_MAX = 64 * 1024 }; /* bytes of an event without its payload, nearly always */

/* ---- emitting ------------------------------------------------------------------------------- */

bool hf__outbox_is_large(const struct hf_outbox *outbox, const struct hf_event *event)
{
    return outbox->blobs && event->payload.len + BARE_MAX > outbox->blob_over;
}

/* ---- fetching ------------------------------------------------------------------------------- */

/* Would any other blob fail with it, too? */
static bool is_for_all(enum hf_status error)
{
    return is_blob_unavailable(error) && error != HF_DENIED && error != HF_NOMEM;
}

/* Fetch each payload for itself, to find those that fail. `none` not HF_OK: all fail with it. */
static void fetch_each(struct hf_scope *s, const struct hf_outbox *outbox,
                       struct hf_outbox_event *events, size_t len, enum hf_status none)
{
    for (size_t i = 0; i < len; i++) {
        if (!events[i].blob.len)
            continue;
        events[i].blob_error =
            none != HF_OK ? none
                          : hf_blob_get(s, outbox->blobs, events[i].blob, &events[i].event.payload);
        if (is_for_all(events[i].blob_error))
            none = events[i].blob_error;
    }
}

void hf__outbox_fetch(struct hf_scope *s, const struct hf_outbox *outbox,
                      struct hf_outbox_event *events, size_t len)
{
    struct hf_str *digests;
    struct hf_bytes *payloads;
    enum hf_status status;
    size_t wanted = 0;

    for (size_t i = 0; i < len; i++) {
        wanted += events[i].blob.len > 0;
        if (events[i].blob.len && !outbox->blobs)
            events[i].blob_error = HF_UNSUPPORTED;
    }
    if (!wanted || !outbox->blobs)
        return;
    digests = hf_scope_alloc(s, wanted * sizeof(*digests));
    payloads = hf_scope_alloc(s, wanted * sizeof(*payloads));
    wanted = 0;
    for (size_t i = 0; i < len && digests; i++)
        if (events[i].blob.len)
            digests[wanted++] = events[i].blob;
    status = digests && payloads ? hf_blob_get_many(s, outbox->blobs, digests, wanted, payloads)
                                 : HF_NOMEM;
    if (status != HF_OK) {
        fetch_each(s, outbox, events, len, is_for_all(status) ? status : HF_OK);
    } else {
        wanted = 0;
        for (size_t i = 0; i < len; i++)
            if (events[i].blob.len) {
                events[i].event.payload = payloads[wanted++];
                events[i].blob_error = HF_OK;
            }
    }
    hf_scope_ok(s);
}

struct hf_str hf__outbox_blob_text(struct hf_scope *s, const struct hf_outbox_event *event)
{
    if (event->blob_error == HF_UNSUPPORTED)
        return HF_STR("its payload is in a blob store, and this outbox was opened without one");
    if (event->blob_error == HF_INVALID)
        return HF_STR("its payload is in a blob store, under an invalid name");
    if (!is_blob_unavailable(event->blob_error))
        return hf_scope_format(s, "its payload, the blob %.*s, is %s", HF_FMT(event->blob),
                               event->blob_error == HF_CORRUPT ? "damaged"
                                                               : "not in the blob store");
    return hf_scope_format(s, "its payload, the blob %.*s, cannot be fetched: %s",
                           HF_FMT(event->blob), hf_status_text(event->blob_error));
}

/* ---- (2) ------------------------------------------------------------------------------------ */

enum hf_status hf__outbox_renew(struct hf_scope *s, const struct hf_outbox *outbox,
                                const struct hf_outbox_event *event)
{
    struct hf_bytes payload;
    struct hf_str digest;
    enum hf_status status;

    if (!event->blob.len)
        return HF_OK;
    if (!outbox->blobs)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "event %.*s has its payload in a blob store, and outbox %.*s was "
                             "opened without one",
                             HF_FMT(event->event.id), HF_FMT(outbox->table));
    status = hf_blob_get(s, outbox->blobs, event->blob, &payload);
    if (status == HF_NOT_FOUND || status == HF_CORRUPT)
        return hf_scope_ok(s); /* there is nothing to keep */
    TRY(status);
    return hf_blob_put(s, outbox->blobs, payload, &digest);
}

/* ---- sweeping ------------------------------------------------------------------------------- */

/* A page of those in a partition that have a blob. */
static struct hf_query use_query(struct hf_scope *s, const struct hf_outbox *outbox,
                                 const char *partition, uint32_t bucket)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_query query = {.table = outbox->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .filter = HF_STR("attribute_exists(#blob)"),
                             .projection = HF_STR("#sk, #blob"),
                             .consistent = HF_YES};

    NAMES(&h, "#pk", "#sk", "#blob");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, partition, bucket)));
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    return query;
}

static enum hf_status find_in(struct hf_scope *s, const struct hf_outbox *outbox,
                              struct blob_refs *uses, const char *partition, uint32_t bucket)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    char after[OUTBOX_SEQ_LEN];
    size_t after_len = 0;

    do {
        struct hf_query query = use_query(s, outbox, partition, bucket);
        struct hf_query_result page;
        struct hf_str last;

        if (after_len)
            query.start = hf__outbox_key(s, outbox, partition, bucket, hf_str_of(after, after_len));
        TRY(hf_scope_built(s));
        TRY(hf_query(s, outbox->db, &query, &page));
        for (size_t i = 0; i < page.items_len; i++)
            TRY(hf__refs_add(s, uses, hf_value_str(hf_item_get(page.items[i], HF_STR("blob")))));
        last = sk_of(outbox, page.last);
        if (last.len > sizeof(after))
            return hf_scope_fail(s, HF_CORRUPT, "table %.*s has an item that is not an event",
                                 HF_FMT(outbox->table));
        after_len = page.last.ptr ? last.len : 0;
        if (after_len)
            memcpy(after, last.ptr, after_len);
        hf_scope_rewind(s, mark);
    } while (after_len);
    return HF_OK;
}

/* (2): in this order. */
static enum hf_status find_uses(struct hf_scope *s, struct blob_refs *uses, void *user)
{
    const struct hf_outbox *outbox = user;
    static const char *const partitions[] = {"p", "f", "h"};

    for (size_t i = 0; i < ARRAY_LEN(partitions); i++)
        for (uint32_t bucket = 0; bucket < outbox->buckets; bucket++)
            TRY(find_in(s, outbox, uses, partitions[i], bucket));
    return HF_OK;
}

enum hf_status hf_outbox_sweep_blobs(struct hf_scope *s, struct hf_outbox *outbox, uint32_t older_s,
                                     uint64_t *removed)
{
    if (removed)
        *removed = 0;
    if (!outbox->blobs)
        return hf_scope_fail(s, HF_INVALID, "outbox %.*s was opened without a blob store",
                             HF_FMT(outbox->table));
    return hf__refs_sweep(s, &outbox->env, outbox->blobs, older_s ? older_s : HF_OUTBOX_SWEEP_S,
                          find_uses, outbox, removed);
}
