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

static bool read_digest(struct hf_str text, uint8_t digest[BLOB_REF_LEN])
{
    if (text.len != HF_BLOB_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < BLOB_REF_LEN; i++) {
        int high = lower_hex_value(text.ptr[2 * i]), low = lower_hex_value(text.ptr[2 * i + 1]);

        if (high < 0 || low < 0)
            return false;
        digest[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

static int by_digest(const void *one, const void *other)
{
    return memcmp(one, other, BLOB_REF_LEN);
}

static bool is_known(const struct blob_refs *refs, const uint8_t digest[BLOB_REF_LEN])
{
    return refs->sorted && bsearch(digest, refs->list, refs->sorted, BLOB_REF_LEN, by_digest);
}

enum hf_status hf__refs_add(struct hf_scope *s, struct blob_refs *refs, struct hf_str text)
{
    const struct hf_env *env = refs->env;
    uint8_t digest[BLOB_REF_LEN];

    if (!read_digest(text, digest) || is_known(refs, digest))
        return HF_OK;
    if (refs->len == refs->cap) {
        size_t cap = refs->cap ? refs->cap * 2 : FIRST_ROOM;
        void *list =
            env->alloc(refs->list, refs->cap * BLOB_REF_LEN, cap * BLOB_REF_LEN, env->user);

        if (!list)
            return hf_scope_fail(s, HF_NOMEM, "no memory for the names of %zu blobs", cap);
        refs->list = list;
        refs->cap = cap;
    }
    assert(refs->len < refs->cap && refs->sorted <= refs->len);
    memcpy(refs->list[refs->len++], digest, BLOB_REF_LEN);
    return HF_OK;
}

void hf__refs_sort(struct blob_refs *refs)
{
    if (refs->len)
        qsort(refs->list, refs->len, BLOB_REF_LEN, by_digest);
    refs->sorted = refs->len;
}

static enum hf_status is_used(struct hf_scope *s, struct hf_str digest, bool *used, void *user)
{
    uint8_t key[BLOB_REF_LEN];

    (void)s;
    *used = !read_digest(digest, key) || is_known(user, key);
    return HF_OK;
}

static enum hf_status refs_sweep(struct hf_scope *s, struct blob_refs *refs, struct hf_blobs *blobs,
                                 uint32_t older_s, blob_refs_find_fn *find, void *user,
                                 uint64_t *removed)
{
    const struct hf_env *env = refs->env;
    int64_t began_us = env->wall_us(env->user), took_s;

    TRY(find(s, refs, user));
    hf__refs_sort(refs);
    took_s = (env->wall_us(env->user) - began_us + 999999) / 1000000;
    if (took_s < 0 || took_s > UINT32_MAX - (int64_t)older_s)
        return hf_scope_fail(
            s, HF_TIMEOUT, "the system clock was changed during a sweep of blobs; start it again");
    return hf_blobs_sweep(s, blobs, older_s + (uint32_t)took_s, is_used, refs, removed);
}

enum hf_status hf__refs_sweep(struct hf_scope *s, const struct hf_env *env, struct hf_blobs *blobs,
                              uint32_t older_s, blob_refs_find_fn *find, void *user,
                              uint64_t *removed)
{
    struct blob_refs refs = {.env = env};
    enum hf_status status = refs_sweep(s, &refs, blobs, older_s, find, user, removed);

    hf__env_free(env, refs.list, refs.cap * BLOB_REF_LEN);
    return status;
}
