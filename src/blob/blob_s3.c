/*
 * blob/blob_s3.c: blobs as objects of S3, or of what speaks its protocol.
 *
 *     PREFIX/abcd...          a blob: its name is its digest, its time when it was put last
 *     PREFIX/trash/abcd...    one that a sweep removed, kept for a while
 *     PREFIX/part.DIGITS/     a part, with the same below it
 *
 * A put of up to a part's size is one PUT, whether it is there or not: that makes it new, and right
 * if it was damaged. A larger one is looked for first, and renewed by a copy onto itself; when it
 * is not there it is uploaded in parts, and the upload is aborted when that fails. Reads are in
 * parts, too, so that no single answer takes long, and a part that was cut off is requested again.
 *
 * S3 cannot remove something on the condition that it was not written meanwhile, and has no rename.
 * So a sweep copies what is old and unused to the trash, and removes it from its place; when it was
 * put in between, the copy is what is left of it, and is found there by readers. A later sweep
 * empties the trash of what has been there for as long as blobs have to be old, and asks again:
 * by then all that was put is committed, so what is used is moved back, and what is not goes.
 *
 * Times of objects are by the clock of S3, so ages are taken from the Date of the same answer.
 *
 * What always holds:
 *
 *  (1) From a put on, the blob is in its place or in the trash, or nobody uses it.
 *  (2) A multipart upload is completed or aborted, unless the process is killed; a sweep aborts old
 *      ones.
 */
#include "blob/private.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/kill.h"
#include "blob/s3.h"
#include "client/xml.h"

enum {
    SIDE_BY_SIDE = 8, /* blobs that are read at the same time */
    GIVE_UP_MS = 5000
};

/* ---- small calls, for s3_list.c too --------------------------------------------------------- */

enum hf_status hf__s3_key(struct hf_scope *s, struct hf_blobs *blobs, const char *folder,
                          struct hf_str name, struct hf_str *key)
{
    struct hf_str prefix = ((struct s3_blobs *)(void *)blobs)->prefix;

    *key = hf_scope_format(s, "%.*s%s%.*s", HF_FMT(prefix), folder, HF_FMT(name));
    return key->ptr ? HF_OK : hf__fail_nomem(s);
}

static struct http_field field_make(const char *name, struct hf_str value)
{
    return (struct http_field){hf_str_from(name), value};
}

static const char octets[] = "application/octet-stream";

enum hf_status hf__s3_head(struct hf_scope *s, struct s3 *s3, struct hf_str key, bool *there,
                           uint64_t *size, int64_t *age_us)
{
    struct s3_answer answer;
    enum hf_status status =
        hf__s3_call(s, s3, &(struct s3_call){.method = "HEAD", .key = key}, &answer);

    *there = status == HF_OK;
    if (status == HF_NOT_FOUND) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    TRY(status);
    *size = hf__s3_number(hf__http_answer_field(&answer.http, "content-length"));
    if (age_us) {
        int64_t now_s = hf__http_answer_date_s(&answer.http);
        struct http_field modified =
            field_make("Date", hf__http_answer_field(&answer.http, "last-modified"));
        struct http_answer as_date = {.fields = &modified, .fields_len = 1};
        int64_t then_s = modified.value.len ? hf__http_answer_date_s(&as_date) : 0;

        *age_us = !now_s || !then_s ? -1 : now_s < then_s ? 0 : (now_s - then_s) * 1000000;
    }
    return HF_OK;
}

enum hf_status hf__s3_copy(struct hf_scope *s, struct s3 *s3, struct hf_str from, struct hf_str to,
                           uint64_t size, struct s3_answer *answer)
{
    struct hf_str source = hf__s3_source(s, s3, from);
    const struct s3_call call = {.method = "PUT",
                                 .key = to,
                                 .fields = {field_make("x-amz-copy-source", source),
                                            field_make("x-amz-metadata-directive",
                                                       HF_STR("REPLACE")), /* or it refuses to copy
                                                                         onto itself */
                                            field_make("Content-Type", hf_str_from(octets))},
                                 .fields_len = 3,
                                 .expect = size < HF_BLOB_MAX ? (size_t)size : HF_BLOB_MAX,
                                 .result = "CopyObjectResult"};

    if (!source.ptr)
        return hf__fail_nomem(s);
    return hf__s3_call(s, s3, &call, answer);
}

enum hf_status hf__s3_remove(struct hf_scope *s, struct s3 *s3, struct hf_str key)
{
    struct s3_answer answer;
    enum hf_status status =
        hf__s3_call(s, s3, &(struct s3_call){.method = "DELETE", .key = key}, &answer);

    if (status == HF_NOT_FOUND && !str_is(answer.code, "NoSuchBucket")) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    return status;
}

enum hf_status hf__s3_hand_on(struct hf_scope *s, const struct hf_scope *inner)
{
    const struct hf_error *error = hf_scope_error(inner);
    enum hf_status status = hf__fail(s, error->status, "%.*s", HF_FMT(error->message));

    hf__scope_error_edit(s)->may_retry = error->may_retry;
    hf__scope_error_edit(s)->retry_after_ms = error->retry_after_ms;
    return status;
}

/* ---- writing -------------------------------------------------------------------------------- */

static enum hf_status put_whole(struct hf_scope *s, struct s3 *s3, struct hf_str key,
                                struct hf_bytes bytes)
{
    const struct s3_call call = {.method = "PUT",
                                 .key = key,
                                 .fields = {field_make("Content-Type", hf_str_from(octets))},
                                 .fields_len = 1,
                                 .body = bytes};
    struct s3_answer answer;

    return hf__s3_call(s, s3, &call, &answer);
}

static enum hf_status begin_upload(struct hf_scope *s, struct s3 *s3, struct hf_str key,
                                   struct hf_str *id)
{
    const struct s3_call call = {.method = "POST",
                                 .key = key,
                                 .query = HF_STR("uploads="),
                                 .fields = {field_make("Content-Type", hf_str_from(octets))},
                                 .fields_len = 1,
                                 .result = "UploadId"};
    const struct xml_want want = {"InitiateMultipartUploadResult/UploadId", id};
    struct s3_answer answer;

    *id = (struct hf_str){0};
    TRY(hf__s3_call(s, s3, &call, &answer));
    if (hf__xml_read(s, hf_str_of((const char *)answer.http.body.ptr, answer.http.body.len), &want,
                     1) == HF_NOMEM)
        return hf__fail_nomem(s);
    return id->len ? HF_OK : hf__s3_unreadable(s, s3, "has no upload ID");
}

struct hf_str hf__s3_upload_query(struct hf_scope *s, size_t part, struct hf_str id)
{
    struct hf__buf buf = {.scope = s};

    if (part)
        hf__buf_format(&buf, "partNumber=%zu&", part);
    hf__buf_put_str(&buf, HF_STR("uploadId="));
    hf__buf_put_url(&buf, id, "");
    return buf.failed ? (struct hf_str){0} : hf_str_of((const char *)buf.ptr, buf.len);
}

static bool is_tag(struct hf_str tag)
{
    for (size_t i = 0; i < tag.len; i++)
        if (tag.ptr[i] <= ' ' || tag.ptr[i] >= 127 || char_in(tag.ptr[i], "<>&"))
            return false;
    return tag.len > 0;
}

/* Parts, each with its line in the document that completes the upload. */
static enum hf_status put_parts(struct hf_scope *s, struct s3 *s3, struct hf_str key,
                                struct hf_str id, struct hf_bytes bytes, struct hf__buf *document)
{
    size_t part = hf__s3_part(s3);

    assert(part >= S3_PART_MIN && bytes.len > part && id.len > 0);
    hf__buf_put_str(
        document,
        HF_STR("<CompleteMultipartUpload xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"));
    for (size_t at = 0, number = 1; at < bytes.len; at += part, number++) {
        size_t len = bytes.len - at < part ? bytes.len - at : part;
        struct s3_call call = {.method = "PUT",
                               .key = key,
                               .query = hf__s3_upload_query(s, number, id),
                               .body = hf_bytes_of(bytes.ptr + at, len)};
        struct s3_answer answer;
        struct hf_str tag;

        if (!call.query.ptr)
            return hf__fail_nomem(s);
        TRY(hf__s3_call(s, s3, &call, &answer));
        hf__kill_point("blob_part");
        tag = hf__http_answer_field(&answer.http, "etag");
        if (!is_tag(tag))
            return hf__s3_unreadable(s, s3, "has no ETag for a part");
        hf__buf_format(document, "<Part><PartNumber>%zu</PartNumber><ETag>%.*s</ETag></Part>",
                       number, HF_FMT(tag));
    }
    hf__buf_put_str(document, HF_STR("</CompleteMultipartUpload>"));
    return document->failed ? hf__fail_nomem(s) : HF_OK;
}

static enum hf_status complete_upload(struct hf_scope *s, struct s3 *s3, struct hf_str key,
                                      struct hf_str id, const struct hf__buf *document, size_t len)
{
    const struct s3_call call = {.method = "POST",
                                 .key = key,
                                 .query = hf__s3_upload_query(s, 0, id),
                                 .fields = {field_make("Content-Type", HF_STR("application/xml"))},
                                 .fields_len = 1,
                                 .body = hf_bytes_of(document->ptr, document->len),
                                 .expect = len, /* putting it together takes its time */
                                 .result = "CompleteMultipartUploadResult"};
    struct s3_answer answer;
    enum hf_status status;
    uint64_t size = 0;
    bool there;

    if (!call.query.ptr)
        return hf__fail_nomem(s);
    status = hf__s3_call(s, s3, &call, &answer);
    if (status != HF_NOT_FOUND || !str_is(answer.code, "NoSuchUpload"))
        return status;
    /* An earlier attempt, whose answer was lost, may have completed it. */
    TRY(hf__s3_head(s, s3, key, &there, &size, NULL));
    if (there && size == len)
        return HF_OK;
    return hf__fail(s, HF_IO, "S3 lost the multipart upload of %.*s", HF_FMT(key));
}

/* (2): also after the deadline of the call. */
static void give_up_upload(struct s3 *s3, const struct hf_env *env, struct hf_str key,
                           struct hf_str id)
{
    struct hf_scope *s = hf_scope_new(env);
    struct s3_call call = {.method = "DELETE", .key = key};
    struct s3_answer answer;

    if (!s)
        return;
    hf_scope_timeout_ms(s, GIVE_UP_MS);
    call.query = hf__s3_upload_query(s, 0, id);
    if (call.query.ptr && hf__s3_call(s, s3, &call, &answer) != HF_OK &&
        hf_scope_error(s)->status != HF_NOT_FOUND)
        hf__env_log(env, HF_LOG_WARNING,
                    "blobs: a multipart upload was not aborted, a sweep will remove it: %s",
                    hf_scope_error_text(s));
    hf_scope_free(s);
}

static enum hf_status put_in_parts(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                                   struct hf_bytes bytes)
{
    struct s3 *s3 = hf__s3_of(blobs);
    struct hf__buf document = {.scope = s};
    enum hf_status status;
    struct hf_str id;

    TRY(begin_upload(s, s3, key, &id));
    status = put_parts(s, s3, key, id, bytes, &document);
    if (status == HF_OK)
        status = complete_upload(s, s3, key, id, &document, bytes.len);
    if (status != HF_OK)
        give_up_upload(s3, &blobs->env, key, id);
    return status;
}

/* If the object exists, renew its time. */
static enum hf_status object_renew(struct hf_scope *s, struct s3 *s3, struct hf_str key, size_t len,
                                   bool *there)
{
    struct s3_answer answer;
    enum hf_status status;
    uint64_t size = 0;

    TRY(hf__s3_head(s, s3, key, there, &size, NULL));
    *there = *there && size == len;
    if (!*there)
        return HF_OK;
    status = hf__s3_copy(s, s3, key, key, size, &answer);
    *there = status == HF_OK;
    if (status == HF_NOT_FOUND || status == HF_UNSUPPORTED || status == HF_INVALID) {
        hf__scope_error_clear(s); /* swept a moment ago, or the service has no copy: upload it */
        return HF_OK;
    }
    return status;
}

static enum hf_status s3_put(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                             struct hf_bytes bytes)
{
    struct s3 *s3 = hf__s3_of(blobs);
    struct hf_str key;
    bool there;

    TRY(hf__s3_key(s, blobs, "", digest, &key));
    if (bytes.len <= hf__s3_part(s3))
        return put_whole(s, s3, key, bytes);
    TRY(object_renew(s, s3, key, bytes.len, &there));
    return there ? HF_OK : put_in_parts(s, blobs, key, bytes);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Reads "bytes 0-99/1234": is it this range, and how many bytes are there in all? */
static bool read_range(struct hf_scope *s, const struct http_answer *http, uint64_t from,
                       uint64_t *total)
{
    struct hf_str text = hf_scope_copy(s, hf__http_answer_field(http, "content-range"));
    const char *copy = text.ptr; /* which ends with a NUL */
    unsigned long long first, last, all;
    int used = 0;

    if (!copy || sscanf(copy, "bytes %20llu-%20llu/%20llu%n", &first, &last, &all, &used) != 3)
        return false;
    *total = all;
    return (size_t)used == text.len && first == from && last >= first && last < all &&
           last - first + 1 == http->body.len;
}

static enum hf_status get_range(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                                uint64_t from, size_t len, struct s3_answer *answer)
{
    const struct s3_call call = {
        .method = "GET",
        .key = key,
        .fields = {field_make("Range",
                              hf_scope_format(s, "bytes=%llu-%llu", (unsigned long long)from,
                                              (unsigned long long)from + len - 1))},
        .fields_len = len ? 1 : 0,
        .expect = len,
        .answer_max = blobs->max + 1};

    if (len && !call.fields[0].value.ptr)
        return hf__fail_nomem(s);
    return hf__s3_call(s, hf__s3_of(blobs), &call, answer);
}

/* Read the rest, behind the first part. */
static enum hf_status get_rest(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                               struct hf_bytes first, uint64_t total, struct hf_bytes *bytes)
{
    size_t part = hf__s3_part(hf__s3_of(blobs));
    uint8_t *all;

    if (total > blobs->max)
        return hf__fail(s, HF_CORRUPT, "the blob %.*s is damaged: it has %llu bytes", HF_FMT(key),
                        (unsigned long long)total);
    all = hf_scope_alloc(s, (size_t)total);
    if (!all)
        return hf__fail_nomem(s);
    memcpy(all, first.ptr, first.len);
    for (size_t at = first.len; at < total;) {
        struct hf__mark mark = hf__scope_mark(s);
        size_t len = total - at < part ? (size_t)total - at : part;
        struct s3_answer answer;
        uint64_t now_total = 0;

        TRY(get_range(s, blobs, key, at, len, &answer));
        if (answer.http.status != 206 || !read_range(s, &answer.http, at, &now_total) ||
            now_total != total || answer.http.body.len > len)
            return hf__s3_unreadable(s, hf__s3_of(blobs), "is not the requested range");
        memcpy(all + at, answer.http.body.ptr, answer.http.body.len);
        at += answer.http.body.len;
        hf__scope_rewind(s, mark);
    }
    *bytes = hf_bytes_of(all, (size_t)total);
    return HF_OK;
}

/* An empty object has no range, and servers differ in how they answer a request for one. */
static bool is_nothing(struct hf_str key)
{
    static const char digest[] = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    return key.len >= HF_BLOB_DIGEST_LEN &&
           memcmp(key.ptr + key.len - HF_BLOB_DIGEST_LEN, digest, HF_BLOB_DIGEST_LEN) == 0;
}

/* Read an object. *there is false, and HF_OK, when it does not exist. */
static enum hf_status get_object(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                                 bool *there, struct hf_bytes *bytes)
{
    struct s3 *s3 = hf__s3_of(blobs);
    struct s3_answer answer;
    uint64_t total = 0;
    size_t first = is_nothing(key) ? 0 : hf__s3_part(s3);
    enum hf_status status = get_range(s, blobs, key, 0, first, &answer);

    if (status == HF_INVALID && answer.http.status == 416) /* damaged: it has no bytes */
        status = get_range(s, blobs, key, 0, 0, &answer);
    *there = status == HF_OK;
    if (status == HF_NOT_FOUND && !str_is(answer.code, "NoSuchBucket")) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    if (status == HF_NOT_FOUND) /* the blob may exist, wherever the bucket is now */
        return hf__fail(s, HF_IO, "bucket %.*s no longer exists", HF_FMT(hf__s3_bucket(s3)));
    if (status == HF_LIMIT)
        return hf__fail(s, HF_CORRUPT, "the blob %.*s is damaged: it has more than %zu bytes",
                        HF_FMT(key), blobs->max);
    TRY(status);
    *bytes = answer.http.body;
    if (!bytes->ptr)
        *bytes = hf_bytes_of("", 0);
    if (answer.http.status != 206)
        return HF_OK;
    if (!read_range(s, &answer.http, 0, &total))
        return hf__s3_unreadable(s, s3, "is not the requested range");
    return total > bytes->len ? get_rest(s, blobs, key, *bytes, total, bytes) : HF_OK;
}

/* Where a blob may be, in this order: a sweep may move it back while we search. */
static const char *const places[] = {"", S3_TRASH, ""};

static enum hf_status s3_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                             struct hf_bytes *bytes)
{
    bool there = false;

    for (size_t i = 0; i < ARRAY_LEN(places) && !there; i++) {
        struct hf_str key;

        TRY(hf__s3_key(s, blobs, places[i], digest, &key));
        TRY(get_object(s, blobs, key, &there, bytes));
    }
    return there ? HF_OK : hf__blob_missing(s, digest);
}

/* What another program has put. It is not in the trash. */
static enum hf_status s3_read_object(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                                     struct hf_bytes *bytes)
{
    struct hf_str whole;
    enum hf_status status;
    bool there;

    TRY(hf__s3_key(s, blobs, "", key, &whole));
    status = get_object(s, blobs, whole, &there, bytes);
    if (status == HF_CORRUPT)
        return hf__fail(s, HF_LIMIT, "object %.*s has more than %zu bytes", HF_FMT(whole),
                        blobs->max);
    TRY(status);
    if (there)
        return HF_OK;
    return hf__fail(s, HF_NOT_FOUND, "bucket %.*s has no object %.*s",
                    HF_FMT(hf__s3_bucket(hf__s3_of(blobs))), HF_FMT(whole));
}

static enum hf_status s3_has(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                             uint64_t *size)
{
    bool there = false;

    for (size_t i = 0; i < ARRAY_LEN(places) && !there; i++) {
        struct hf_str key;

        TRY(hf__s3_key(s, blobs, places[i], digest, &key));
        TRY(hf__s3_head(s, hf__s3_of(blobs), key, &there, size, NULL));
    }
    return there ? HF_OK : hf__blob_missing(s, digest);
}

static enum hf_status s3_remove(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest)
{
    struct hf_str key;

    TRY(hf__s3_key(s, blobs, S3_TRASH, digest, &key));
    TRY(hf__s3_remove(s, hf__s3_of(blobs), key));
    TRY(hf__s3_key(s, blobs, "", digest, &key));
    return hf__s3_remove(s, hf__s3_of(blobs), key);
}

/* ---- many at a time ------------------------------------------------------------------------- */

struct fetch {
    struct hf_blobs *blobs;
    const struct hf_scope *outer;
    const struct hf_str *digests;
    size_t len;
    atomic_size_t next;
    atomic_bool failed;
};

/* One of the threads that read: its blobs are in its scope. */
struct fetcher {
    struct fetch *fetch;
    struct hf_scope *scope;
    struct hf_bytes *bytes; /* of all; each fetcher fills in what it read */
    enum hf_status status;
    size_t failed_at;
    pthread_t thread;
    bool started;
};

static void *fetcher_run(void *user)
{
    struct fetcher *fetcher = user;
    struct fetch *fetch = fetcher->fetch;

    for (;;) {
        size_t at = atomic_fetch_add(&fetch->next, 1);

        assert(fetcher->status == HF_OK);
        if (at >= fetch->len || atomic_load(&fetch->failed))
            return NULL;
        fetcher->status =
            s3_get(fetcher->scope, fetch->blobs, fetch->digests[at], &fetcher->bytes[at]);
        if (fetcher->status != HF_OK) {
            fetcher->failed_at = at;
            atomic_store(&fetch->failed, true);
            return NULL;
        }
    }
}

/* Copy what was read to the caller's scope, or the first failure. */
static enum hf_status fetchers_gather(struct hf_scope *s, const struct fetcher *fetchers,
                                      size_t fetchers_len, struct hf_bytes *bytes, size_t len)
{
    const struct fetcher *failed = NULL;

    for (size_t i = 0; i < fetchers_len; i++)
        if (fetchers[i].status != HF_OK && (!failed || fetchers[i].failed_at < failed->failed_at))
            failed = &fetchers[i];
    if (failed)
        return hf__s3_hand_on(s, failed->scope);
    for (size_t i = 0; i < len; i++) {
        uint8_t *to = hf_scope_alloc(s, bytes[i].len ? bytes[i].len : 1);

        if (!to)
            return hf__fail_nomem(s);
        memcpy(to, bytes[i].ptr, bytes[i].len);
        bytes[i].ptr = to;
    }
    return HF_OK;
}

static enum hf_status s3_get_many(struct hf_scope *s, struct hf_blobs *blobs,
                                  const struct hf_str *digests, size_t len, struct hf_bytes *bytes)
{
    struct fetch fetch = {.blobs = blobs, .outer = s, .digests = digests, .len = len};
    size_t fetchers_len = len < SIDE_BY_SIDE ? len : SIDE_BY_SIDE;
    struct fetcher fetchers[SIDE_BY_SIDE] = {{0}};
    enum hf_status status = HF_OK;

    assert(len > 1); /* a single blob needs no threads */

    for (size_t i = 0; i < fetchers_len; i++) {
        fetchers[i] =
            (struct fetcher){.fetch = &fetch, .bytes = bytes, .scope = hf_scope_new(&blobs->env)};
        if (!fetchers[i].scope)
            status = HF_NOMEM;
        else
            hf__scope_follow(fetchers[i].scope, s);
    }
    for (size_t i = 1; i < fetchers_len && status == HF_OK; i++)
        fetchers[i].started =
            pthread_create(&fetchers[i].thread, NULL, fetcher_run, &fetchers[i]) == 0;
    if (status == HF_OK)
        fetcher_run(&fetchers[0]); /* this thread reads, too, alone if no other could be started */
    for (size_t i = 1; i < fetchers_len; i++)
        if (fetchers[i].started)
            pthread_join(fetchers[i].thread, NULL);
    status = status == HF_OK ? fetchers_gather(s, fetchers, fetchers_len, bytes, len)
                             : hf__fail_nomem(s);
    for (size_t i = 0; i < fetchers_len; i++)
        hf_scope_free(fetchers[i].scope);
    return status;
}

/* ---- opening and closing -------------------------------------------------------------------- */

static void s3_close(struct hf_blobs *blobs)
{
    struct hf_env env = blobs->env;
    struct s3_blobs *store = (struct s3_blobs *)(void *)blobs;

    if (store->memory)
        hf_scope_free(store->memory);
    else
        hf__s3_close(store->s3);
    hf__env_free(&env, store, sizeof(*store));
}

static enum hf_status s3_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                              struct hf_blobs **part);

static const struct blob_kind s3_kind = {.part = s3_part,
                                         .read_object = s3_read_object,
                                         .put = s3_put,
                                         .get = s3_get,
                                         .get_many = s3_get_many,
                                         .has = s3_has,
                                         .remove = s3_remove,
                                         .list = hf__s3_list,
                                         .sweep = hf__s3_sweep,
                                         .remove_leftovers = hf__s3_remove_leftovers,
                                         .close = s3_close};

static enum hf_status s3_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                              struct hf_blobs **part)
{
    const struct s3_blobs *whole = (struct s3_blobs *)(void *)blobs;
    struct s3_blobs *made = hf__env_alloc(&blobs->env, sizeof(*made));

    assert(name.len > 0 && !memchr(name.ptr, '/', name.len));
    if (!made)
        return hf__fail_nomem(s);
    *made = *whole;
    made->memory = hf_scope_new(&blobs->env);
    if (made->memory)
        made->prefix =
            hf_scope_format(made->memory, "%.*s%.*s/", HF_FMT(whole->prefix), HF_FMT(name));
    if (!made->memory || !made->prefix.ptr) {
        hf_scope_free(made->memory);
        hf__env_free(&blobs->env, made, sizeof(*made));
        return hf__fail_nomem(s);
    }
    *part = &made->blobs;
    return HF_OK;
}

static enum hf_status make_bucket(struct hf_scope *s, struct s3 *s3)
{
    struct s3_call call = {.method = "PUT"};
    struct s3_answer answer;
    enum hf_status status;
    struct hf_str body = HF_STR("");

    if (!str_is(hf__s3_region(s3), "us-east-1")) /* which may not be named here */
        body = hf_scope_format(
            s,
            "<CreateBucketConfiguration xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">"
            "<LocationConstraint>%.*s</LocationConstraint></CreateBucketConfiguration>",
            HF_FMT(hf__s3_region(s3)));
    if (!body.ptr)
        return hf__fail_nomem(s);
    call.body = hf_bytes_of(body.ptr, body.len);
    status = hf__s3_call(s, s3, &call, &answer);
    if (status != HF_OK && str_is(answer.code, "BucketAlreadyOwnedByYou")) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    return status;
}

/* Check that the bucket exists. Create it only if it does not and ?create=1 was given: a bucket
 * that we may not see is an error. */
enum hf_status hf__s3_find_bucket(struct hf_scope *s, struct s3 *s3)
{
    struct s3_answer answer;
    enum hf_status status = hf__s3_call(s, s3, &(struct s3_call){.method = "HEAD"}, &answer);

    if (status != HF_NOT_FOUND)
        return status;
    if (hf__s3_create(s3))
        return make_bucket(s, s3);
    return hf__fail(s, HF_NOT_FOUND,
                    "bucket %.*s does not exist; add ?create=1 to the URL to create it",
                    HF_FMT(hf__s3_bucket(s3)));
}

enum hf_status hf__blobs_open_s3(struct hf_scope *s, const struct hf_env *env, struct hf_str rest,
                                 const struct hf_client_options *options, struct hf_blobs **blobs)
{
    struct s3_blobs *made;
    enum hf_status status;
    struct s3 *s3;

    *blobs = NULL;
    TRY(hf__s3_open(s, env, rest, options, &s3));
    status = hf__s3_find_bucket(s, s3);
    made = status == HF_OK ? hf__env_alloc(env, sizeof(*made)) : NULL;
    if (status == HF_OK && !made)
        status = hf__fail_nomem(s);
    if (status != HF_OK) {
        hf__s3_close(s3);
        return status;
    }
    *made = (struct s3_blobs){.blobs = {.kind = &s3_kind, .env = *env, .max = HF_BLOB_MAX},
                              .s3 = s3,
                              .prefix = hf__s3_prefix(s3)};
    *blobs = &made->blobs;
    return HF_OK;
}
