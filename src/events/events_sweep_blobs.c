/*
 * events/events_sweep_blobs.c: blobs that no event has any more.
 *
 * Blobs do not know who names them. Those that are old enough are listed; then all items that may
 * name one are read; what was not named by then goes, by hf_blobs_sweep().
 *
 *  (1) A blob is put before what names it is written, and put again by whoever comes to name it
 *      again. So one that was put last before the time `older_s` ago, when we began, is named by
 *      something that was there when we began, if that takes less than `older_s`; and the store
 *      looks at its age once more, now counted from before we began, when it removes it.
 *  (2) The blobs are those of the table alone (hf_blobs_part_of()), whoever else uses the blob
 * store. (3) Any text that is a blob's name keeps the blob, wherever it stands in an item: too much
 * may be kept, never too little. Items that move while we read (archives move theirs) are why the
 * table is read twice before anything goes.
 *
 * Costs nothing when there are no old blobs, and else two Scans of the table.
 */
#include "events/events.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64, DIGEST = HF_BLOB_DIGEST_LEN / 2, PASSES = 2 };

struct candidate {
    uint8_t digest[DIGEST];
    bool used;
};

struct blobs {
    struct hf_events *store;
    int64_t before_us;
    struct candidate *list; /* sorted, once all are there */
    size_t len, cap;
};

/* ---- candidates ----------------------------------------------------------------------------- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digest(struct hf_str text, uint8_t digest[DIGEST])
{
    if (text.len != HF_BLOB_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < DIGEST; i++) {
        int high = hex(text.ptr[2 * i]), low = hex(text.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int by_digest(const void *one, const void *other)
{
    return memcmp(one, other, DIGEST); /* it is their first member */
}

static struct candidate *find(const struct blobs *b, struct hf_str text)
{
    struct candidate key;

    if (!b->len || !read_digest(text, key.digest))
        return NULL;
    return bsearch(&key, b->list, b->len, sizeof(*b->list), by_digest);
}

static enum hf_status add_old(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    struct blobs *b = user;
    const struct hf_env *env = &b->store->env;

    if (blob->put_us >= b->before_us)
        return HF_OK;
    if (b->len == b->cap) {
        size_t cap = b->cap ? b->cap * 2 : FIRST_ROOM;
        struct candidate *list =
            env->alloc(env->user, b->list, b->cap * sizeof(*list), cap * sizeof(*list));

        if (!list)
            return hf_scope_fail(s, HF_NOMEM, "no memory for the names of %zu blobs", cap);
        b->list = list;
        b->cap = cap;
    }
    b->list[b->len].used = false;
    b->len += read_digest(blob->digest, b->list[b->len].digest);
    return HF_OK;
}

/* ---- who names them (3) --------------------------------------------------------------------- */

/* Items are at most 32 levels deep. */
static void note_value(struct hf_scope *s, const struct blobs *b, struct hf_value value)
{
    enum hf_type type = hf_value_type(value);
    struct candidate *found;

    if (type == HF_TYPE_S) {
        found = find(b, hf_value_str(value));
        if (found)
            found->used = true;
    } else if (type == HF_TYPE_M) {
        struct hf_item_walk walk = {0};

        while (hf_item_next(hf_value_item(value), &walk))
            note_value(s, b, walk.value);
    } else if (type == HF_TYPE_L || type == HF_TYPE_SS) {
        for (size_t i = 0; i < hf_value_count(value); i++)
            note_value(s, b, hf_value_at(s, value, i));
    }
}

static enum hf_status note_all(struct hf_scope *s, const struct blobs *b)
{
    struct hf_scan scan = {.table = b->store->table, .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_pages_scan(s, b->store->db, &scan, NULL, &pages));
    while ((status = hf_pages_next_item(s, pages, &item)) == HF_OK && item.ptr) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        note_value(s, b, hf_item_value(item));
        status = hf_scope_built(s);
        if (status != HF_OK)
            break;
        hf_scope_rewind(s, mark);
    }
    hf_pages_free(pages);
    return status;
}

/* What was no candidate is none of our business. */
static enum hf_status is_used(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    const struct candidate *found = find(user, digest);

    (void)s;
    *used = !found || found->used;
    return HF_OK;
}

static enum hf_status sweep(struct hf_scope *s, struct blobs *b, uint32_t older_s,
                            uint64_t *removed)
{
    int64_t began_us = b->store->env.wall_us(b->store->env.user), took_s;

    b->before_us = began_us - (int64_t)older_s * 1000000;
    TRY(hf_blobs_list(s, b->store->blobs, add_old, b));
    if (!b->len)
        return HF_OK;
    qsort(b->list, b->len, sizeof(*b->list), by_digest);
    for (int pass = 0; pass < PASSES; pass++)
        TRY(note_all(s, b));
    took_s = (b->store->env.wall_us(b->store->env.user) - began_us) / 1000000; /* (1) */
    if (took_s < 0 || took_s > UINT32_MAX - (int64_t)older_s)
        return hf_scope_fail(s, HF_TIMEOUT, "the clock was set while blobs were looked for");
    return hf_blobs_sweep(s, b->store->blobs, older_s + (uint32_t)took_s, is_used, b, removed);
}

enum hf_status hf__events_sweep_blobs(struct hf_scope *s, struct hf_events *store, uint32_t older_s,
                                      uint64_t *removed)
{
    struct blobs b = {.store = store};
    enum hf_status status;

    *removed = 0;
    if (!store->blobs)
        return HF_OK;
    status = sweep(s, &b, older_s, removed);
    env_free(&store->env, b.list, b.cap * sizeof(*b.list));
    return status;
}
