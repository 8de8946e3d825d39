/*
 * bulk/private.h: what a kind of bucket is to bucket.c.
 */
#ifndef HF_BULK_PRIVATE_H
#define HF_BULK_PRIVATE_H

#include "bulk/bucket.h"

struct bucket_kind {
    enum hf_status (*list)(struct hf_scope *s, struct bucket *bucket, struct hf_str prefix,
                           struct bucket_list *list);
    enum hf_status (*read)(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                           uint64_t from, size_t len, struct hf_bytes *bytes);
    enum hf_status (*put)(struct hf_scope *s, struct bucket *bucket, struct hf_str key,
                          struct hf_bytes bytes);
    void (*close)(struct bucket *bucket);
};

/* The first member of every kind. */
struct bucket {
    const struct bucket_kind *kind;
    struct hf_env env;
    bool no_bucket; /* the last call failed because there is no such bucket */
};

/* Add an object to a list in the scope. */
enum hf_status hf__bulk_bucket_list_add(struct hf_scope *s, struct bucket_list *list, size_t *cap,
                                        struct hf_str key, uint64_t size);

enum hf_status hf__bulk_bucket_dir_open(struct hf_scope *s, const struct hf_env *env,
                                        struct hf_str path, struct hf_str name,
                                        struct bucket **bucket);
enum hf_status hf__bulk_bucket_s3_open(struct hf_scope *s, const struct hf_env *env,
                                       struct hf_str rest, struct hf_str name,
                                       struct bucket **bucket);

#endif
