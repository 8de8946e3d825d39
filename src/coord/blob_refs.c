/*
 * coord/blob_refs.c: which blobs of a table are in use, and removing the others.
 *
 * Blobs do not know who names them. Whoever has a table finds the names in it and notes them here;
 * what was not noted goes, by hf_blobs_sweep(). That asks of each blob that it comes by, in lists
 * or in a trash, so nothing may be concluded from what a list has.
 *
 * A blob is put before what names it is written. So one that was put last before the time `older_s`
 * ago, when we began, is named by something that was there then, if finding takes less than that;
 * and its age is counted from before we began when it is removed: what was put since may be named
 * by what we did not see.
 *
 * Names take 32 bytes of memory each.
 */
#include "coord/pattern.h"

#include <stdlib.h>

enum { FIRST_ROOM = 64 };

static int lower_hex_value(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool read_digest(struct hf_str text, uint8_t digest[USES_DIGEST])
{
    if (text.len != HF_BLOB_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < USES_DIGEST; i++) {
        int high = lower_hex_value(text.ptr[2 * i]), low = lower_hex_value(text.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int by_digest(const void *one, const void *other)
{
    return memcmp(one, other, USES_DIGEST);
}

static bool is_known(const struct uses *uses, const uint8_t digest[USES_DIGEST])
{
    return uses->sorted && bsearch(digest, uses->list, uses->sorted, USES_DIGEST, by_digest);
}

enum hf_status hf__uses_add(struct hf_scope *s, struct uses *uses, struct hf_str text)
{
    const struct hf_env *env = uses->env;
    uint8_t digest[USES_DIGEST];

    if (!read_digest(text, digest) || is_known(uses, digest))
        return HF_OK;
    if (uses->len == uses->cap) {
        size_t cap = uses->cap ? uses->cap * 2 : FIRST_ROOM;
        void *list = env->alloc(uses->list, uses->cap * USES_DIGEST, cap * USES_DIGEST, env->user);

        if (!list)
            return hf_scope_fail(s, HF_NOMEM, "no memory for the names of %zu blobs", cap);
        uses->list = list;
        uses->cap = cap;
    }
    memcpy(uses->list[uses->len++], digest, USES_DIGEST);
    return HF_OK;
}

void hf__uses_sort(struct uses *uses)
{
    if (uses->len)
        qsort(uses->list, uses->len, USES_DIGEST, by_digest);
    uses->sorted = uses->len;
}

static enum hf_status is_used(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    uint8_t key[USES_DIGEST];

    (void)s;
    *used = !read_digest(digest, key) || is_known(user, key);
    return HF_OK;
}

static enum hf_status refs_sweep(struct hf_scope *s, struct uses *uses, struct hf_blobs *blobs,
                                 uint32_t older_s, uses_find_fn *find, void *user,
                                 uint64_t *removed)
{
    const struct hf_env *env = uses->env;
    int64_t began_us = env->wall_us(env->user), took_s;

    TRY(find(s, uses, user));
    hf__uses_sort(uses);
    took_s = (env->wall_us(env->user) - began_us + 999999) / 1000000;
    if (took_s < 0 || took_s > UINT32_MAX - (int64_t)older_s)
        return hf_scope_fail(s, HF_TIMEOUT, "the clock was set while blobs were looked for");
    return hf_blobs_sweep(s, blobs, older_s + (uint32_t)took_s, is_used, uses, removed);
}

enum hf_status hf__uses_sweep(struct hf_scope *s, const struct hf_env *env, struct hf_blobs *blobs,
                              uint32_t older_s, uses_find_fn *find, void *user, uint64_t *removed)
{
    struct uses uses = {.env = env};
    enum hf_status status = refs_sweep(s, &uses, blobs, older_s, find, user, removed);

    hf__env_free(env, uses.list, uses.cap * USES_DIGEST);
    return status;
}
