/*
 * bulk/bucket_s3.c: a bucket of S3, or what is below a prefix in one.
 *
 * Calls, their signatures and what is tried again are those of blob stores (blob/s3.h). An object is put
 * by one call, so it is there whole or not at all: what exports write is a few megabytes at most.
 */
#include "bulk/private.h"

#include "blob/s3.h"
#include "client/xml.h"

#include <stdio.h>

enum {
    BUCKET_NAME_MIN = 3,
    BUCKET_NAME_MAX = 63,
    REFUSAL_MAX = 64 * 1024 /* bytes of an answer that is no object */
};

struct s3_bucket {
    struct bucket bucket;
    struct s3 *s3;
    struct hf_scope *memory;
    struct hf_str above; /* before all keys: empty, or ends with a slash */
};

/* The rules of S3 are narrower than those of DynamoDB's requests. */
static bool is_bucket(struct hf_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'))
            return false;
    }
    return name.len >= BUCKET_NAME_MIN && name.len <= BUCKET_NAME_MAX;
}

/* Call; and remember whether it was the bucket that is missing. */
static enum hf_status bucket_call(struct hf_scope *s, struct s3_bucket *b,
                                  const struct s3_call *what, struct s3_answer *answer)
{
    enum hf_status status = hf__s3_call(s, b->s3, what, answer);

    b->bucket.no_bucket = status == HF_NOT_FOUND && str_is(answer->code, "NoSuchBucket");
    return status;
}

static enum hf_status whole_key(struct hf_scope *s, const struct s3_bucket *b, struct hf_str key,
                                struct hf_str *whole)
{
    *whole = hf_scope_format(s, "%.*s%.*s", HF_FMT(b->above), HF_FMT(key));
    return whole->ptr ? HF_OK : hf__fail_nomem(s);
}

/* ---- lists ---------------------------------------------------------------------------------- */

struct page {
    struct hf_scope *s;
    struct s3_bucket *bucket;
    struct bucket_list *list;
    size_t *cap;
    struct hf_str key;
    uint64_t size;
    struct hf_str next;
    bool more;
    enum hf_status status;
};

static bool read_element(void *user, struct hf_str path, struct hf_str text)
{
    struct page *page = user;
    struct hf_str key;

    if (str_is(path, "ListBucketResult/Contents/Key")) {
        page->key = text;
    } else if (str_is(path, "ListBucketResult/Contents/Size")) {
        page->size = hf__s3_number(text);
    } else if (str_is(path, "ListBucketResult/Contents")) {
        if (str_after(page->key, page->bucket->above, &key) && key.len)
            page->status =
                hf__bulk_bucket_list_add(page->s, page->list, page->cap, key, page->size);
        page->key = (struct hf_str){NULL, 0};
        page->size = 0;
    } else if (str_is(path, "ListBucketResult/IsTruncated")) {
        page->more = str_is(text, "true");
    } else if (str_is(path, "ListBucketResult/NextContinuationToken")) {
        page->next = text;
    }
    return page->status == HF_OK;
}

static enum hf_status read_page(struct hf_scope *s, struct s3_bucket *b, struct hf_str prefix,
                                struct page *page)
{
    struct hf__buf query = {.scope = s};
    struct s3_call list = {.method = "GET", .result = "ListBucketResult"};
    struct s3_answer answer;
    enum hf_status status;

    hf__buf_put_str(&query, HF_STR("list-type=2&prefix="));
    hf__buf_put_url(&query, prefix, "");
    if (page->next.len) { /* in the order of their names, as the signature has them */
        struct hf__buf first = {.scope = s};

        hf__buf_put_str(&first, HF_STR("continuation-token="));
        hf__buf_put_url(&first, page->next, "");
        hf__buf_put_byte(&first, '&');
        hf__buf_put(&first, query.ptr, query.len);
        query = first;
    }
    if (query.failed)
        return hf__fail_nomem(s);
    list.query = hf_str_of((const char *)query.ptr, query.len);
    TRY(bucket_call(s, b, &list, &answer));
    page->more = false;
    page->next = (struct hf_str){NULL, 0};
    status = hf__xml_walk(s, hf_str_of((const char *)answer.http.body.ptr, answer.http.body.len),
                          read_element, page);
    if (page->status != HF_OK)
        return page->status;
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    if (status != HF_OK || (page->more && !page->next.len))
        return hf__s3_unreadable(s, b->s3, "is not a valid list");
    return HF_OK;
}

static enum hf_status s3_list(struct hf_scope *s, struct bucket *bucket, struct hf_str prefix,
                              struct bucket_list *list)
{
    struct s3_bucket *b = (struct s3_bucket *)(void *)bucket;
    size_t cap = 0;
    struct page page = {.s = s, .bucket = b, .list = list, .cap = &cap};
    struct hf_str whole;

    TRY(whole_key(s, b, prefix, &whole));
    do
        TRY(read_page(s, b, whole, &page));
    while (page.more);
    return HF_OK;
}

/* ---- reading and writing -------------------------------------------------------------------- */

static enum hf_status s3_read(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                              uint64_t from, size_t len, struct hf_bytes *bytes)
{
    struct s3_bucket *b = (struct s3_bucket *)(void *)bucket;
    struct hf_str range = hf_scope_format(s, "bytes=%llu-%llu", (unsigned long long)from,
                                          (unsigned long long)(from + len - 1));
    struct s3_call get = {.method = "GET",
                          .fields = {{HF_STR("Range"), range}},
                          .fields_len = 1,
                          .expect = len,
                          .answer_max = len + REFUSAL_MAX};
    struct s3_answer answer;
    enum hf_status status;

    if (!range.ptr)
        return hf__fail_nomem(s);
    TRY(whole_key(s, b, key, &get.key));
    status = bucket_call(s, b, &get, &answer);
    if (status == HF_INVALID && answer.http.status == 416) { /* at its end */
        hf__scope_error_clear(s);
        *bytes = hf_bytes_of("", 0);
        return HF_OK;
    }
    TRY(status);
    if ((answer.http.status != 206 && !(from == 0 && answer.http.status == 200)) ||
        answer.http.body.len > len)
        return hf__s3_unreadable(s, b->s3, "is not the requested range");
    *bytes = answer.http.body;
    return HF_OK;
}

static enum hf_status s3_put(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                             struct hf_bytes bytes)
{
    struct s3_bucket *b = (struct s3_bucket *)(void *)bucket;
    struct s3_call put = {.method = "PUT",
                          .fields = {{HF_STR("Content-Type"), HF_STR("application/octet-stream")}},
                          .fields_len = 1,
                          .body = bytes};
    struct s3_answer answer;

    TRY(whole_key(s, b, key, &put.key));
    return bucket_call(s, b, &put, &answer);
}

/* ---- opening -------------------------------------------------------------------------------- */

static void s3_close(struct bucket *bucket)
{
    struct s3_bucket *b = (struct s3_bucket *)(void *)bucket;
    struct hf_env env = bucket->env;

    hf__s3_close(b->s3);
    hf_scope_free(b->memory);
    hf__env_free(&env, b, sizeof(*b));
}

static const struct bucket_kind s3_kind = {
    .list = s3_list,
    .read = s3_read,
    .put = s3_put,
    .close = s3_close,
};

static enum hf_status open_s3(struct hf_scope *s, struct s3_bucket *b, struct hf_str rest,
                              struct hf_str name)
{
    bool own = rest.len == 0 || rest.ptr[0] == '?';

    if (!own) {
        TRY(hf__s3_open(s, &b->bucket.env, rest, NULL, &b->s3));
        b->above =
            hf_scope_format(b->memory, "%.*s%.*s/", HF_FMT(hf__s3_prefix(b->s3)), HF_FMT(name));
        return b->above.ptr ? HF_OK : hf__fail_nomem(s);
    }
    if (!is_bucket(name)) {
        b->bucket.no_bucket = true;
        return hf__fail(s, HF_NOT_FOUND, "The specified bucket does not exist: %.*s", HF_FMT(name));
    }
    rest = hf_scope_format(b->memory, "%.*s%.*s", HF_FMT(name), HF_FMT(rest));
    if (!rest.ptr)
        return hf__fail_nomem(s);
    return hf__s3_open(s, &b->bucket.env, rest, NULL, &b->s3);
}

enum hf_status hf__bulk_bucket_s3_open(struct hf_scope *s, const struct hf_env *env,
                                       struct hf_str rest, struct hf_str name,
                                       struct bucket **bucket)
{
    struct hf_env whole = hf__env_fill(env);
    struct s3_bucket *b = hf__env_zalloc(&whole, sizeof(*b));
    enum hf_status status;

    if (!b)
        return hf__fail_nomem(s);
    b->bucket = (struct bucket){.kind = &s3_kind, .env = whole};
    b->memory = hf_scope_new(&whole);
    status = b->memory ? open_s3(s, b, rest, name) : hf__fail_nomem(s);
    if (status != HF_OK) {
        s3_close(&b->bucket);
        return status;
    }
    *bucket = &b->bucket;
    return HF_OK;
}
