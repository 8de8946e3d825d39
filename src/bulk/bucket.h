/*
 * bulk/bucket.h: buckets of files, for exports of tables and imports into them.
 *
 * Requests of DynamoDB name buckets of S3. Where those are here is said by one URL:
 *
 *     dir:PATH                            the folder BUCKET in that folder, which has to exist
 *     s3://?endpoint=URL&region=NAME      the bucket BUCKET of that service, of Amazon without endpoint
 *     s3://OUTER/PREFIX?...               what is below PREFIX/BUCKET/ in the bucket OUTER
 *
 * (the parameters are those of blob stores: <holdfast/blob.h>.) Failures have a code of S3 as their
 * exception, in bucket_failure.
 */
#ifndef HF_BULK_BUCKET_H
#define HF_BULK_BUCKET_H

#include "base/base.h"

enum {
    BUCKET_OBJECTS_MAX = 50000, /* of one import, as DynamoDB has it */
    BUCKET_READ = 4 * 1024 * 1024
};

struct bucket;

/* Is it one of the URLs above? HF_INVALID says what is wrong with it. Nothing is opened. */
enum hf_status hf__bulk_bucket_check(struct hf_scope *s, struct hf_str url);

/*
 * The bucket of that name. `env` is copied. HF_NOT_FOUND: it does not exist, as far as that can be
 * seen without a call; HF_INVALID, HF_DENIED, HF_IO.
 */
enum hf_status hf__bulk_bucket_open(struct hf_scope *s, const struct hf_env *env, struct hf_str url,
                                    struct hf_str name, struct bucket **bucket);
void hf__bulk_bucket_close(struct bucket *bucket);

struct bucket_object {
    struct hf_str key;
    uint64_t size;
};

struct bucket_list {
    struct bucket_object *objects; /* in the order of their keys */
    size_t len;
};

/* The objects whose key begins with `prefix`. HF_LIMIT: more than BUCKET_OBJECTS_MAX. */
enum hf_status hf__bulk_bucket_list(struct hf_scope *s, struct bucket *bucket, struct hf_str prefix,
                                    struct bucket_list *list);

/* Up to `len` bytes of an object from `from` on; fewer only at its end. In the scope. */
enum hf_status hf__bulk_bucket_read(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                                    uint64_t from, size_t len, struct hf_bytes *bytes);

/* Store an object, durably, in place of one that is there. It is there whole or not at all. */
enum hf_status hf__bulk_bucket_put(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                                   struct hf_bytes bytes);

/* The code that S3, and so DynamoDB, has for the failure of one of these calls: "S3NoSuchBucket",
 * "S3AccessDenied", or another. */
const char *hf__bulk_bucket_code(const struct bucket *bucket, enum hf_status status);

#endif
