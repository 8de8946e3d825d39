/*
 * blob/blob.c: what all blob stores share: URLs, names, verification, and the rules of a sweep.
 *
 * A blob's name is the SHA-256 of its bytes, so nothing has to be trusted: what comes back from a
 * store is hashed again, whatever the disk, the network or somebody's editor did to it.
 * And as a name is 64 digits and nothing else, there is no name that leads elsewhere: it is checked
 * before a kind of store sees it.
 *
 * What always holds:
 *
 *  (1) hf_blob_get() gives the bytes that were put, or fails.
 *  (2) After hf_blob_put() the blob is there, until hf_blob_delete(), or until a sweep that found
 *      it unused and older than the limit of the sweep.
 *  (3) A sweep asks whether a blob is used after it saw how old it is, and the store looks at the
 *      age once more when it removes it. So a blob that is put again meanwhile stays: either the
 *      store sees that it is new, or the one who puts it sees that it is not there, and puts it.
 */
#include "blob/private.h"
#include "db/db.h"
#include "http/sign.h"

enum { DEFAULT_OLDER_S = 24 * 60 * 60, PART_DIGITS = 32 };

/* ---- names ---------------------------------------------------------------------------------- */

bool hf__blob_is_digest(struct hf_str text)
{
    if (text.len != HF_BLOB_DIGEST_LEN)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (!((text.ptr[i] >= '0' && text.ptr[i] <= '9') ||
              (text.ptr[i] >= 'a' && text.ptr[i] <= 'f')))
            return false;
    return true;
}

enum hf_status hf__blob_missing(struct hf_scope *s, struct hf_str digest)
{
    assert(hf__blob_is_digest(digest));
    return hf__fail(s, HF_NOT_FOUND, "there is no blob %.*s", HF_FMT(digest));
}

/* The checks that every call with a digest begins with. */
static enum hf_status check_digest(struct hf_scope *s, const struct hf_blobs *blobs,
                                   struct hf_str digest)
{
    hf__scope_error_clear(s);
    if (!blobs)
        return hf__fail(s, HF_INVALID, "the blob store is NULL");
    TRY(hf__scope_alive(s));
    if (!hf__blob_is_digest(digest)) /* the message does not quote it: it may contain anything */
        return hf__fail(s, HF_INVALID,
                        "invalid blob name: expected a SHA-256 as %d lower case hexadecimal digits",
                        HF_BLOB_DIGEST_LEN);
    return HF_OK;
}

static enum hf_status digest_of(struct hf_scope *s, struct hf_bytes bytes,
                                char hex[HF_BLOB_DIGEST_LEN + 1])
{
    struct signer *signer;

    assert(bytes.ptr || bytes.len == 0);
    TRY(hf__signer_new(s, hf__scope_env(s), &signer));
    hf__sha256_hex(signer, bytes.ptr, bytes.len, hex);
    hf__signer_free(signer);
    assert(hf__blob_is_digest(hf_str_from(hex)));
    return HF_OK;
}

/* (1) */
static enum hf_status digest_verify(struct hf_scope *s, struct hf_str digest, struct hf_bytes bytes)
{
    char hex[HF_BLOB_DIGEST_LEN + 1];

    TRY(digest_of(s, bytes, hex));
    if (memcmp(hex, digest.ptr, HF_BLOB_DIGEST_LEN) != 0)
        return hf__fail(s, HF_CORRUPT,
                        "the blob %.*s is damaged: its %zu bytes are not those that were put",
                        HF_FMT(digest), bytes.len);
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

static struct hf_blobs_options fill_options(const struct hf_blobs_options *options)
{
    struct hf_blobs_options o = {.size = sizeof(o)};

    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    return o;
}

enum hf_status hf_blobs_open(struct hf_scope *s, struct hf_str url,
                             const struct hf_blobs_options *options, struct hf_blobs **blobs)
{
    struct hf_blobs_options o = fill_options(options);
    const struct hf_env *env = hf__scope_env(s);
    struct hf_str rest;

    *blobs = NULL;
    hf__scope_error_clear(s);
    TRY(hf__scope_alive(s));
    if (hf_str_equal(url, HF_STR("memory:")))
        return hf__blobs_open_memory(s, env, blobs);
    if (str_after(url, HF_STR("dir:"), &rest)) {
        struct blob_dir_options dir = {.path = rest, .no_sync = o.no_sync};

        return o.lazy ? hf__blobs_open_lazy(s, env, &dir, blobs)
                      : hf__blobs_open_dir(s, env, &dir, blobs);
    }
    if (str_after(url, HF_STR("s3://"), &rest))
        return hf__blobs_open_s3(s, env, rest, o.client, blobs);
    return hf__fail(
        s, HF_INVALID,
        "\"%.*s\" is not the URL of a blob store; use memory:, dir:PATH or s3://BUCKET/PREFIX",
        HF_FMT(url));
}

enum hf_status hf_blobs_open_beside(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    *blobs = NULL;
    hf__scope_error_clear(s);
    if (!db)
        return hf__fail(s, HF_INVALID,
                        "hf_blobs_open_beside() was called without a database (NULL)");
    TRY(hf__scope_alive(s));
    return hf__db_blobs(s, db, blobs);
}

/* A name may have any bytes, so the folder of a part is named by the first digits of its hash. */
enum hf_status hf_blobs_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                             struct hf_blobs **part)
{
    char hex[HF_BLOB_DIGEST_LEN + 1];
    struct hf_str folder;

    *part = NULL;
    hf__scope_error_clear(s);
    if (!blobs)
        return hf__fail(s, HF_INVALID, "the blob store is NULL");
    if (name.len == 0 || name.len > HF_BLOBS_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_BLOBS_NAME_MAX, name.len),
                                   "the name of a part has 1 to %d bytes, not %zu",
                                   HF_BLOBS_NAME_MAX, name.len);
    TRY(hf__scope_alive(s));
    TRY(digest_of(s, hf_bytes_of(name.ptr, name.len), hex));
    folder = hf_scope_format(s, "part.%.*s", PART_DIGITS, hex);
    return folder.ptr ? blobs->kind->part(s, blobs, folder, part) : hf__fail_nomem(s);
}

enum hf_status hf_blobs_part_of(struct hf_scope *s, struct hf_blobs *blobs, struct hf_db *db,
                                struct hf_str table, struct hf_blobs **part)
{
    struct hf_str full;

    *part = NULL;
    hf__scope_error_clear(s);
    if (!db || table.len == 0)
        return hf__fail(s, HF_INVALID, "hf_blobs_part_of() was called without a %s",
                        db ? "table" : "database (NULL)");
    TRY(hf__db_full_name(s, db, table, &full));
    return hf_blobs_part(s, blobs, full, part);
}

void hf_blobs_close(struct hf_blobs *blobs)
{
    if (blobs)
        blobs->kind->close(blobs);
}

/* ---- one blob ------------------------------------------------------------------------------- */

enum hf_status hf_blob_put(struct hf_scope *s, struct hf_blobs *blobs, struct hf_bytes bytes,
                           struct hf_str *digest)
{
    char hex[HF_BLOB_DIGEST_LEN + 1];
    struct hf_str name;

    *digest = (struct hf_str){0};
    hf__scope_error_clear(s);
    if (!blobs)
        return hf__fail(s, HF_INVALID, "the blob store is NULL");
    TRY(hf__scope_alive(s));
    if (bytes.len > blobs->max)
        return hf_scope_fail_limit(s, HF_LIMIT,
                                   hf_error_limit_of("HF_BLOB_MAX", blobs->max, bytes.len),
                                   "the blob has %zu bytes; the limit is %zu", bytes.len,
                                   blobs->max);
    TRY(digest_of(s, bytes, hex));
    name = hf_scope_copy(s, hf_str_of(hex, HF_BLOB_DIGEST_LEN));
    if (!name.ptr)
        return hf__fail_nomem(s);
    TRY(blobs->kind->put(s, blobs, name, bytes));
    *digest = name;
    return HF_OK;
}

enum hf_status hf_blob_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                           struct hf_bytes *bytes)
{
    struct hf_bytes found;

    *bytes = (struct hf_bytes){0};
    TRY(check_digest(s, blobs, digest));
    TRY(blobs->kind->get(s, blobs, digest, &found));
    TRY(digest_verify(s, digest, found));
    *bytes = found;
    return HF_OK;
}

enum hf_status hf_blob_get_many(struct hf_scope *s, struct hf_blobs *blobs,
                                const struct hf_str *digests, size_t len, struct hf_bytes *bytes)
{
    enum hf_status status = HF_OK;

    hf__scope_error_clear(s);
    for (size_t i = 0; i < len; i++)
        bytes[i] = (struct hf_bytes){0};
    for (size_t i = 0; i < len; i++)
        TRY(check_digest(s, blobs, digests[i]));
    if (len > 1 && blobs->kind->get_many)
        status = blobs->kind->get_many(s, blobs, digests, len, bytes);
    for (size_t i = 0; i < len && status == HF_OK; i++) {
        if (len <= 1 || !blobs->kind->get_many)
            status = blobs->kind->get(s, blobs, digests[i], &bytes[i]);
        if (status == HF_OK)
            status = digest_verify(s, digests[i], bytes[i]);
    }
    for (size_t i = 0; i < len && status != HF_OK; i++) /* all or nothing */
        bytes[i] = (struct hf_bytes){0};
    return status;
}

enum hf_status hf_blob_has(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                           uint64_t *size)
{
    uint64_t found = 0;

    if (size)
        *size = 0;
    TRY(check_digest(s, blobs, digest));
    TRY(blobs->kind->has(s, blobs, digest, &found));
    if (size)
        *size = found;
    return HF_OK;
}

enum hf_status hf_blob_delete(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest)
{
    TRY(check_digest(s, blobs, digest));
    return blobs->kind->remove(s, blobs, digest);
}

enum hf_status hf_blobs_read_object(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                                    struct hf_bytes *bytes)
{
    *bytes = (struct hf_bytes){0};
    hf__scope_error_clear(s);
    if (!key.len || key.len > HF_BLOBS_NAME_MAX)
        return hf__fail(s, HF_INVALID, "the key of an object has %zu bytes, not 1 to %d", key.len,
                        HF_BLOBS_NAME_MAX);
    if (!blobs->kind->read_object)
        return hf__fail(s, HF_UNSUPPORTED, "only stores of s3 have objects that are no blobs");
    return blobs->kind->read_object(s, blobs, key, bytes);
}

/* ---- all of them ---------------------------------------------------------------------------- */

enum hf_status hf_blobs_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                             void *user)
{
    hf__scope_error_clear(s);
    if (!blobs || !fn)
        return hf__fail(s, HF_INVALID, "hf_blobs_list() was called without a %s (NULL)",
                        blobs ? "function" : "blob store");
    TRY(hf__scope_alive(s));
    return blobs->kind->list(s, blobs, fn, user);
}

struct sweep {
    struct hf_blobs *blobs;
    struct blob_sweep how;
    uint64_t removed;
};

/* (3) */
static enum hf_status sweep_one(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    struct sweep *sweep = user;
    bool used = true;
    bool removed = false;

    assert(hf__blob_is_digest(blob->digest));
    TRY(hf__scope_alive(s));
    if (blob->put_us >= sweep->how.before_us)
        return HF_OK;
    TRY(sweep->how.used(s, blob->digest, &used, sweep->how.user)); /* after the age: (3) */
    if (used)
        return HF_OK;
    TRY(sweep->blobs->kind->remove_old(s, sweep->blobs, blob->digest, sweep->how.before_us,
                                       &removed));
    sweep->removed += removed;
    return HF_OK;
}

enum hf_status hf_blobs_sweep(struct hf_scope *s, struct hf_blobs *blobs, uint32_t older_s,
                              hf_blob_used_fn *used, void *user, uint64_t *removed)
{
    struct sweep sweep = {.blobs = blobs, .how = {.used = used, .user = user}};
    enum hf_status status;

    if (removed)
        *removed = 0;
    hf__scope_error_clear(s);
    if (!blobs || !used)
        return hf__fail(s, HF_INVALID, "hf_blobs_sweep() was called without a %s (NULL)",
                        blobs ? "function that knows what is used" : "blob store");
    TRY(hf__scope_alive(s));
    sweep.how.before_us =
        hf__env_wall_us(&blobs->env) - (int64_t)(older_s ? older_s : DEFAULT_OLDER_S) * 1000 * 1000;
    if (blobs->kind->remove_leftovers)
        TRY(blobs->kind->remove_leftovers(s, blobs, sweep.how.before_us));
    status = blobs->kind->sweep ? blobs->kind->sweep(s, blobs, &sweep.how, &sweep.removed)
                                : blobs->kind->list(s, blobs, sweep_one, &sweep);
    if (removed)
        *removed = sweep.removed;
    return status;
}
