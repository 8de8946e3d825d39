/*
 * bind/bind_blob.c: methods of blob stores, which are named by URL; by default the one beside an
 * embedded database.
 */
#include <holdfast/blob.h>

#include "bind/table.h"

static enum hf_status open_blobs(struct hf_scope *s, struct hf_bind *bind, struct hf_str url,
                                 bool create, const void *options, void **object)
{
    struct hf_blobs *blobs;

    (void)create;
    (void)options;
    if (str_is(url, "beside"))
        TRY(hf_blobs_open_beside(s, hf__bind_db(bind), &blobs));
    else
        TRY(hf_blobs_open(s, url, NULL, &blobs));
    *object = blobs;
    return HF_OK;
}

static void close_blobs(void *object)
{
    hf_blobs_close(object);
}

static const struct bind_opener blob_kind = {.table = "beside",
                                             .open = open_blobs,
                                             .close = close_blobs};

struct blob_args {
    struct hf_str store, digest;
    struct hf_bytes bytes;
};
struct blob_result {
    struct hf_str digest;
    struct hf_bytes bytes;
    uint64_t size;
};

#define T blob_args
ARGUMENTS(blob_put, TEXT("store", store), BYTES("bytes", bytes, REQUIRED));
ARGUMENTS(blob_get, TEXT("store", store), TEXT("digest", digest, REQUIRED));
ARGUMENTS(blob_has, TEXT("store", store), TEXT("digest", digest, REQUIRED));
ARGUMENTS(blob_delete, TEXT("store", store), TEXT("digest", digest, REQUIRED));
#undef T
#define T blob_result
RESULT(blob_put, TEXT("digest", digest));
RESULT(blob_get, BYTES("bytes", bytes));
RESULT(blob_has, U64("size", size));
#undef T
NO_RESULT(blob_delete);

static enum hf_status find_blobs(struct hf_scope *s, struct hf_bind *bind, struct hf_str store,
                                 struct hf_blobs **blobs)
{
    void *object;

    TRY(hf__bind_open_object(s, bind, &blob_kind, store, true, &object));
    *blobs = object;
    return HF_OK;
}

BIND_FUNCTION(blob_put)
{
    struct blob_result *result = result_out;
    struct blob_args *args = args_in;
    struct hf_blobs *blobs;

    TRY(find_blobs(s, bind, args->store, &blobs));
    return hf_blob_put(s, blobs, args->bytes, &result->digest);
}

BIND_FUNCTION(blob_get)
{
    struct blob_result *result = result_out;
    struct blob_args *args = args_in;
    struct hf_blobs *blobs;

    TRY(find_blobs(s, bind, args->store, &blobs));
    TRY(hf_blob_get(s, blobs, args->digest, &result->bytes));
    if (!result->bytes.ptr)
        result->bytes = hf_bytes_of("", 0);
    return HF_OK;
}

BIND_FUNCTION(blob_has)
{
    struct blob_result *result = result_out;
    struct blob_args *args = args_in;
    struct hf_blobs *blobs;

    TRY(find_blobs(s, bind, args->store, &blobs));
    return hf_blob_has(s, blobs, args->digest, &result->size);
}

BIND_FUNCTION(blob_delete)
{
    struct blob_args *args = args_in;
    struct hf_blobs *blobs;

    (void)result_out;
    TRY(find_blobs(s, bind, args->store, &blobs));
    return hf_blob_delete(s, blobs, args->digest);
}
