/*
 * events/sweep/events_sweep_blobs.c: blobs that no event has any more.
 *
 * uses.c has how; here all items are read, and every text that may be the name of a blob is noted.
 *
 *  (1) The blobs are those of the table alone (hf_blobs_part_of()), whoever else uses the blob
 *      store.
 *  (2) Any text that is a blob's name keeps the blob, wherever it stands in an item: too much may
 *      be kept, never too little. Items that move while we read (archives move theirs) are why
 *      the table is read twice before anything goes.
 *
 * Costs two Scans of the table.
 */
#include "events/store/events.h"

enum { PASSES = 2 };

/* Items are at most 32 levels deep. */
static enum hf_status note_value(struct hf_scope *s, struct blob_refs *uses, struct hf_value value)
{
    enum hf_type type = hf_value_type(value);

    if (type == HF_TYPE_S)
        return hf__refs_add(s, uses, hf_value_str(value));
    if (type == HF_TYPE_M) {
        struct hf_item_walk walk = {0};

        while (hf_item_next(hf_value_item(value), &walk))
            TRY(note_value(s, uses, walk.value));
    } else if (type == HF_TYPE_L || type == HF_TYPE_SS) {
        struct hf_value_walk walk = {.index = 0};

        while (hf_value_next(s, value, &walk))
            TRY(note_value(s, uses, walk.value));
    }
    return HF_OK;
}

static enum hf_status note_all(struct hf_scope *s, struct blob_refs *uses, struct hf_events *store)
{
    struct hf_scan scan = {.table = store->table, .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_pages_scan(s, store->db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = note_value(s, uses, hf_item_value(item));
        if (status == HF_OK)
            status = hf_scope_built(s);
        if (status != HF_OK)
            break;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    hf__refs_sort(uses); /* what the next pass finds again is not noted again */
    return status;
}

/* (2) */
static enum hf_status find_uses(struct hf_scope *s, struct blob_refs *uses, void *user)
{
    for (int pass = 0; pass < PASSES; pass++)
        TRY(note_all(s, uses, user));
    return HF_OK;
}

enum hf_status hf__events_sweep_blobs(struct hf_scope *s, struct hf_events *store, uint32_t older_s,
                                      uint64_t *removed)
{
    *removed = 0;
    return store->blobs
               ? hf__refs_sweep(s, &store->env, store->blobs, older_s, find_uses, store, removed)
               : HF_OK;
}
