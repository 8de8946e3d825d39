/*
 * blob/blob.h: what a database needs to have a blob store of its own, see db_calls.blobs.
 */
#ifndef HF_BLOB_BLOB_H
#define HF_BLOB_BLOB_H

#include <holdfast/blob.h>

#include "base/base.h"

struct blob_dir_options {
    struct hf_str path;
    bool no_sync;
    bool no_create;   /* *blobs is NULL, and HF_OK, when there is no folder of blobs yet */
    uint64_t reserve; /* bytes of the disk that stay free, for other files there */
};
enum hf_status hf__blobs_open_dir(struct hf_scope *s, const struct hf_env *env,
                                  const struct blob_dir_options *options, struct hf_blobs **blobs);

/* The same, but the first put creates the folder: until then there are no blobs. */
enum hf_status hf__blobs_open_lazy(struct hf_scope *s, const struct hf_env *env,
                                   const struct blob_dir_options *options, struct hf_blobs **blobs);

enum hf_status hf__blobs_open_memory(struct hf_scope *s, const struct hf_env *env,
                                     struct hf_blobs **blobs);

/* Another handle on a store in memory: what is put by one is found by the other. The blobs are
 * freed with the last handle. HF_NOMEM. */
enum hf_status hf__blobs_share(struct hf_scope *s, struct hf_blobs *blobs,
                               struct hf_blobs **another);

#endif
