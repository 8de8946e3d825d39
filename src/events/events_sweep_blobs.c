/*
 * events/events_sweep_blobs.c: blobs that no event has any more.
 *
 * Blobs do not know who names them. All items are read, and every text that may be the name of a
 * blob is noted; what is not named goes, by hf_blobs_sweep(). That is asked of each blob that it
 * comes by, in lists or in a trash, so nothing may be concluded from what a list has.
 *
 *  (1) A blob is put before what names it is written, and put again by whoever comes to name it
 *      again. So one that was put last before the time `older_s` ago, when we began, is named by
 *      something that was there when we began, if that takes less than `older_s`; and the store
 *      looks at its age, counted from before we began, when it removes it.
 *  (2) The blobs are those of the table alone (hf_blobs_part_of()), whoever else uses the blob
 *      store.
 *  (3) Any text that is a blob's name keeps the blob, wherever it stands in an item: too much may
 *      be kept, never too little. Items that move while we read (archives move theirs) are why
 *      the table is read twice before anything goes.
 *
 * Costs two Scans of the table, and 32 bytes of memory for each name.
 */
#include "events/events.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64, DIGEST = HF_BLOB_DIGEST_LEN / 2, PASSES = 2 };

struct uses {
    struct hf_events *store;
    uint8_t (*list)[DIGEST];
    size_t len, cap;
    size_t sorted; /* so many of them, in front */
};

/* ---- a set of names ------------------------------------------------------------------------- */

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
    return memcmp(one, other, DIGEST);
}

static bool is_known(const struct uses *uses, const uint8_t digest[DIGEST])
{
    return uses->sorted && bsearch(digest, uses->list, uses->sorted, DIGEST, by_digest);
}

static enum hf_status add(struct hf_scope *s, struct uses *uses, struct hf_str text)
{
    const struct hf_env *env = &uses->store->env;
    uint8_t digest[DIGEST];

    if (!read_digest(text, digest) || is_known(uses, digest))
        return HF_OK;
    if (uses->len == uses->cap) {
        size_t cap = uses->cap ? uses->cap * 2 : FIRST_ROOM;
        void *list = env->alloc(env->user, uses->list, uses->cap * DIGEST, cap * DIGEST);

        if (!list)
            return hf_scope_fail(s, HF_NOMEM, "no memory for the names of %zu blobs", cap);
        uses->list = list;
        uses->cap = cap;
    }
    memcpy(uses->list[uses->len++], digest, DIGEST);
    return HF_OK;
}

static void sort(struct uses *uses)
{
    if (uses->len)
        qsort(uses->list, uses->len, DIGEST, by_digest);
    uses->sorted = uses->len;
}

/* ---- who names them (3) --------------------------------------------------------------------- */

/* Items are at most 32 levels deep. */
static enum hf_status note_value(struct hf_scope *s, struct uses *uses, struct hf_value value)
{
    enum hf_type type = hf_value_type(value);

    if (type == HF_TYPE_S)
        return add(s, uses, hf_value_str(value));
    if (type == HF_TYPE_M) {
        struct hf_item_walk walk = {0};

        while (hf_item_next(hf_value_item(value), &walk))
            TRY(note_value(s, uses, walk.value));
    } else if (type == HF_TYPE_L || type == HF_TYPE_SS) {
        for (size_t i = 0; i < hf_value_count(value); i++)
            TRY(note_value(s, uses, hf_value_at(s, value, i)));
    }
    return HF_OK;
}

static enum hf_status note_all(struct hf_scope *s, struct uses *uses)
{
    struct hf_scan scan = {.table = uses->store->table, .consistent = HF_YES};
    struct hf_pages *pages;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_pages_scan(s, uses->store->db, &scan, NULL, &pages));
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
    sort(uses);
    return status;
}

static enum hf_status is_used(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    uint8_t key[DIGEST];

    (void)s;
    *used = !read_digest(digest, key) || is_known(user, key);
    return HF_OK;
}

static enum hf_status sweep(struct hf_scope *s, struct uses *uses, uint32_t older_s,
                            uint64_t *removed)
{
    const struct hf_env *env = &uses->store->env;
    int64_t began_us = env->wall_us(env->user), took_s;

    for (int pass = 0; pass < PASSES; pass++)
        TRY(note_all(s, uses));
    took_s = (env->wall_us(env->user) - began_us + 999999) / 1000000; /* (1) */
    if (took_s < 0 || took_s > UINT32_MAX - (int64_t)older_s)
        return hf_scope_fail(s, HF_TIMEOUT, "the clock was set while blobs were looked for");
    return hf_blobs_sweep(s, uses->store->blobs, older_s + (uint32_t)took_s, is_used, uses,
                          removed);
}

enum hf_status hf__events_sweep_blobs(struct hf_scope *s, struct hf_events *store, uint32_t older_s,
                                      uint64_t *removed)
{
    struct uses uses = {.store = store};
    enum hf_status status;

    *removed = 0;
    if (!store->blobs)
        return HF_OK;
    status = sweep(s, &uses, older_s, removed);
    env_free(&store->env, uses.list, uses.cap * DIGEST);
    return status;
}
