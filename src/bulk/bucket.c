/*
 * bulk/bucket.c: what all kinds of buckets share: their URLs, and lists of what is in them.
 *
 * What always holds: keys of a list are in the order of their bytes, and none comes twice.
 */
#include "bulk/private.h"

#include <stdlib.h>

enum { LIST_FIRST = 64 };

static const struct {
    const char *scheme;
    enum hf_status (*open)(struct hf_scope *s, const struct hf_env *env, struct hf_str rest,
                           struct hf_str name, struct bucket **bucket);
} kinds[] = {
    {"dir:", hf__bulk_bucket_dir_open},
    {"s3://", hf__bulk_bucket_s3_open},
};

/* The number of the kind, and what is behind the scheme. ARRAY_LEN(kinds): none. */
static size_t kind_of(struct hf_str url, struct hf_str *rest)
{
    size_t i = 0;

    while (i < ARRAY_LEN(kinds) && !str_after(url, hf_str_from(kinds[i].scheme), rest))
        i++;
    return i;
}

enum hf_status hf__bulk_bucket_check(struct hf_scope *s, struct hf_str url)
{
    struct hf_str rest;
    size_t kind = kind_of(url, &rest);

    if (kind == ARRAY_LEN(kinds))
        return hf__fail(s, HF_INVALID,
                        "\"%.*s\" is no place for buckets: use dir:PATH or s3://?endpoint=URL",
                        HF_FMT(url));
    if (rest.len == 0 && kind == 0)
        return hf__fail(s, HF_INVALID, "dir: must be followed by the path of a folder");
    return HF_OK;
}

enum hf_status hf__bulk_bucket_open(struct hf_scope *s, const struct hf_env *env, struct hf_str url,
                                    struct hf_str name, struct bucket **bucket)
{
    struct hf_str rest;
    size_t kind = kind_of(url, &rest);

    *bucket = NULL;
    TRY(hf__bulk_bucket_check(s, url));
    return kinds[kind].open(s, env, rest, name, bucket);
}

void hf__bulk_bucket_close(struct bucket *bucket)
{
    if (bucket)
        bucket->kind->close(bucket);
}

enum hf_status hf__bulk_bucket_list_add(struct hf_scope *s, struct bucket_list *list, size_t *cap,
                                        struct hf_str key, uint64_t size)
{
    struct hf_str copy = hf_scope_copy(s, key);

    if (list->len >= BUCKET_OBJECTS_MAX)
        return hf__fail(s, HF_LIMIT, "There are more than %d objects with this prefix",
                        BUCKET_OBJECTS_MAX);
    if (list->len == *cap) {
        size_t more = *cap ? *cap * 2 : LIST_FIRST;
        struct bucket_object *objects = hf_scope_alloc(s, more * sizeof(*objects));

        if (!objects)
            return hf__fail_nomem(s);
        if (list->len)
            memcpy(objects, list->objects, list->len * sizeof(*objects));
        list->objects = objects;
        *cap = more;
    }
    if (!copy.ptr)
        return hf__fail_nomem(s);
    list->objects[list->len++] = (struct bucket_object){.key = copy, .size = size};
    return HF_OK;
}

static int object_compare(const void *a, const void *b)
{
    const struct bucket_object *first = a, *second = b;

    return bytes_compare(first->key.ptr, first->key.len, second->key.ptr, second->key.len);
}

enum hf_status hf__bulk_bucket_list(struct hf_scope *s, struct bucket *bucket, struct hf_str prefix,
                                    struct bucket_list *list)
{
    *list = (struct bucket_list){.len = 0};
    bucket->no_bucket = false;
    TRY(bucket->kind->list(s, bucket, prefix, list));
    if (list->len)
        qsort(list->objects, list->len, sizeof(*list->objects), object_compare);
    for (size_t i = 1; i < list->len; i++)
        assert(object_compare(&list->objects[i - 1], &list->objects[i]) < 0);
    return HF_OK;
}

enum hf_status hf__bulk_bucket_read(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                                    uint64_t from, size_t len, struct hf_bytes *bytes)
{
    assert(len > 0);
    *bytes = (struct hf_bytes){NULL, 0};
    bucket->no_bucket = false;
    TRY(bucket->kind->read(s, bucket, key, from, len, bytes));
    assert(bytes->len <= len);
    return HF_OK;
}

enum hf_status hf__bulk_bucket_put(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                                   struct hf_bytes bytes)
{
    assert(key.len > 0);
    bucket->no_bucket = false;
    return bucket->kind->put(s, bucket, key, bytes);
}

const char *hf__bulk_bucket_code(const struct bucket *bucket, enum hf_status status)
{
    if ((!bucket || bucket->no_bucket) && status == HF_NOT_FOUND)
        return "S3NoSuchBucket";
    switch (status) {
    case HF_NOT_FOUND:
        return "S3NoSuchKey";
    case HF_DENIED:
        return "S3AccessDenied";
    case HF_THROTTLED:
        return "S3SlowDown";
    default:
        return "S3InternalError";
    }
}
