/*
 * kv/kv_blob.c: values that are too large for an item.
 *
 * They are in a blob store, in the part of the table (hf_blobs_part_of()). The item has their
 * digest as `blob`, and a NULL as its value, so that whoever asks whether there is one finds it. A
 * blob is a letter, and then: S a text, B bytes, J all else, as DynamoDB's JSON of an item with the
 * one attribute "v".
 *
 *  (1) A blob is put before the item that names it is written, each time when that is tried.
 *  (2) Items do not move, so a sweep that has read the whole table has seen all blobs that were in
 *      use all the time; and those that came into use meanwhile are new.
 *  (3) A reader who comes late, and finds that the blob was swept since it read the item, reads the
 *      item again: it names another one by then, or none.
 */
#include "kv/kv.h"

#include <holdfast/pages.h>

enum {
    SLACK = 4096, /* bytes of an item beside its value, at most */
    LOOKS = 3
};

/* ---- writing -------------------------------------------------------------------------------- */

static struct hf_bytes tagged_bytes(struct hf_scope *s, char tag, const void *bytes, size_t len)
{
    uint8_t *text = hf_scope_alloc(s, len + 1);

    if (!text)
        return hf_bytes_of(NULL, 0);
    text[0] = (uint8_t)tag;
    memcpy(text + 1, bytes, len);
    return hf_bytes_of(text, len + 1);
}

static enum hf_status value_encode(struct hf_scope *s, struct hf_value value,
                                   struct hf_bytes *bytes)
{
    struct hf_item item = HF_ITEM(s, HF_V("v", value));
    struct hf_str text = hf_value_str(value);
    struct hf_bytes binary = hf_value_bytes(value);

    TRY(hf_item_check(s, item));
    if (text.ptr) {
        *bytes = tagged_bytes(s, 'S', text.ptr, text.len);
    } else if (binary.ptr) {
        *bytes = tagged_bytes(s, 'B', binary.ptr, binary.len);
    } else {
        text = hf_item_to_json(s, item);
        *bytes = text.ptr ? tagged_bytes(s, 'J', text.ptr, text.len) : hf_bytes_of(NULL, 0);
    }
    return bytes->ptr ? HF_OK : hf_scope_built(s);
}

/* Would the item be larger than one is to be? */
static bool is_large(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                     const struct kv_content *content)
{
    struct hf_value value = content->value;

    assert(!content->blob.len);
    if (!kv->blobs || !value.ptr || value.len + SLACK <= kv->blob_over)
        return false;
    return value.len > 2 * kv->blob_over + SLACK ||
           hf_item_size(hf__kv_item(s, kv, place, content)) > kv->blob_over;
}

enum hf_status hf__kv_offload(struct hf_scope *s, const struct hf_kv *kv,
                              const struct kv_place *place, struct kv_content *content)
{
    struct hf_bytes bytes;

    if (!is_large(s, kv, place, content))
        return HF_OK;
    TRY(value_encode(s, content->value, &bytes));
    assert(bytes.len > 0);
    TRY(hf_blob_put(s, kv->blobs, bytes, &content->blob)); /* (1) */
    content->value = hf_value_make(s, (struct hf_attr)HF_NULL(""));
    return hf_scope_built(s);
}

/* ---- reading -------------------------------------------------------------------------------- */

static enum hf_status value_decode(struct hf_scope *s, const struct hf_kv *kv, struct hf_str blob,
                                   struct hf_bytes bytes, struct hf_value *value)
{
    struct hf_str text =
        bytes.len ? hf_str_of((const char *)bytes.ptr + 1, bytes.len - 1) : hf_str_of(NULL, 0);
    struct hf_item item;

    *value = (struct hf_value){0};
    switch (bytes.len ? bytes.ptr[0] : 0) {
    case 'S':
        *value = hf_value_make(s, (struct hf_attr)HF_S("", text));
        break;
    case 'B':
        *value = hf_value_make(s, (struct hf_attr)HF_B("", hf_bytes_of(text.ptr, text.len)));
        break;
    case 'J':
        TRY(hf_item_from_json(s, text, &item));
        *value = hf_item_get(item, HF_STR("v"));
        break;
    default:
        break;
    }
    TRY(hf_scope_built(s));
    return value->ptr ? HF_OK
                      : hf_scope_fail(s, HF_CORRUPT, "blob %.*s is not a value of table %.*s",
                                      HF_FMT(blob), HF_FMT(kv->table));
}

/* HF_NOT_FOUND: the blob is not there. */
static enum hf_status blob_load(struct hf_scope *s, const struct hf_kv *kv,
                                const struct kv_place *place, struct kv_view *view)
{
    struct hf_bytes bytes;

    assert(view->live && view->blob.len);
    if (!kv->blobs)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "key \"%.*s\": its value is in a blob store, and table %.*s was "
                             "opened without one",
                             KV_FMT(place->key), HF_FMT(kv->table));
    TRY(hf_blob_get(s, kv->blobs, view->blob, &bytes));
    TRY(value_decode(s, kv, view->blob, bytes, &view->value));
    view->blob = hf_str_of(NULL, 0);
    return HF_OK;
}

enum hf_status hf__kv_load(struct hf_scope *s, const struct hf_kv *kv, const struct kv_place *place,
                           struct kv_view *view)
{
    struct hf_get_item get = {.table = kv->table, .consistent = HF_YES};
    struct hf_get_item_result got;

    for (int looks = 0; view->live && view->blob.len; looks++) {
        enum hf_status status = blob_load(s, kv, place, view);
        struct hf_str missing = view->blob;

        if (status != HF_NOT_FOUND)
            return status;
        get.key = hf__kv_item_key(s, kv, place->hash, place->sort); /* (3) */
        TRY(hf_scope_built(s));
        TRY(hf_get_item(s, kv->db, &get, &got));
        TRY(hf__kv_view(s, kv, got.item, view));
        if (looks == LOOKS || (view->live && hf_str_equal(view->blob, missing)))
            return hf_scope_fail(s, HF_CORRUPT,
                                 "key \"%.*s\" of table %.*s: blob %.*s, which has its value, is "
                                 "missing",
                                 KV_FMT(place->key), HF_FMT(kv->table), HF_FMT(missing));
    }
    return HF_OK;
}

/* ---- sweeping ------------------------------------------------------------------------------- */

/* (2) */
static enum hf_status find_uses(struct hf_scope *s, struct blob_refs *refs, void *user)
{
    const struct hf_kv *kv = user;
    struct hf_scan scan = {.table = kv->table,
                           .filter = HF_STR("attribute_exists(#blob)"),
                           .projection = HF_STR("#blob"),
                           .names = HF_ITEM(s, HF_S("#blob", HF_STR(KV_BLOB))),
                           .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    TRY(hf_pages_scan(s, kv->db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        status = hf__refs_add(s, refs, hf_value_str(hf_item_get(item, HF_STR(KV_BLOB))));
        if (status != HF_OK)
            break;
    }
    hf_pages_free(pages);
    return status;
}

enum hf_status hf_kv_sweep_blobs(struct hf_scope *s, struct hf_kv *kv, uint32_t older_s,
                                 uint64_t *removed)
{
    if (removed)
        *removed = 0;
    if (!kv->blobs)
        return hf_scope_fail(s, HF_INVALID, "table %.*s was opened without a blob store",
                             HF_FMT(kv->table));
    return hf__refs_sweep(s, &kv->env, kv->blobs, older_s ? older_s : HF_KV_SWEEP_S, find_uses, kv,
                          removed);
}
