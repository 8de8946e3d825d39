/*
 * blob/private.h: what a kind of store is to blob.c, which has all that kinds share: URLs, digests
 * and their verification, limits, and the rules of a sweep.
 */
#ifndef HF_BLOB_PRIVATE_H
#define HF_BLOB_PRIVATE_H

#include <holdfast/blob.h>

#include "base/base.h"
#include "blob/blob.h"

struct blob_sweep {
    int64_t before_us; /* blobs that were put earlier may be removed */
    hf_blob_used_fn *used;
    void *user;
};

/* Digests are checked before they come here: 64 digits, in lower case. */
struct blob_kind {
    /* Store it durably, with the present time. A blob that exists and differs is replaced. */
    enum hf_status (*put)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                          struct hf_bytes bytes);
    /* The bytes as they are stored: blob.c verifies them. HF_NOT_FOUND by hf__blob_missing(). */
    enum hf_status (*get)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                          struct hf_bytes *bytes);
    /* NULL: one after the other. */
    enum hf_status (*get_many)(struct hf_scope *s, struct hf_blobs *blobs,
                               const struct hf_str *digests, size_t len, struct hf_bytes *bytes);
    enum hf_status (*has)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                          uint64_t *size);
    enum hf_status (*remove)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest);
    /* No lock is held while `fn` runs, which may do anything with the store. */
    enum hf_status (*list)(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                           void *user);
    /* Remove it unless it was put after `before_us`; *removed says whether it was. A blob that is
     * put again meanwhile exists when this returns, or is found again when it is read. */
    enum hf_status (*remove_old)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                 int64_t before_us, bool *removed);
    /* A whole sweep, for kinds that do it in their own way; NULL: list() and remove_old(). */
    enum hf_status (*sweep)(struct hf_scope *s, struct hf_blobs *blobs,
                            const struct blob_sweep *how, uint64_t *removed);
    /* The start of a sweep: remove what killed processes left behind. NULL: nothing. */
    enum hf_status (*remove_leftovers)(struct hf_scope *s, struct hf_blobs *blobs,
                                       int64_t before_us);
    /* A store of its own below this one; `name` is part.DIGITS. */
    enum hf_status (*part)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                           struct hf_blobs **part);
    /* An object that is no blob. HF_NOT_FOUND. NULL: there are none. */
    enum hf_status (*read_object)(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str key,
                                  struct hf_bytes *bytes);
    void (*close)(struct hf_blobs *blobs);
};

/* The first member of every store. */
struct hf_blobs {
    const struct blob_kind *kind;
    struct hf_env env; /* whole */
    size_t max;        /* HF_BLOB_MAX, but for tests */
};

enum hf_status hf__blobs_open_s3(struct hf_scope *s, const struct hf_env *env, struct hf_str rest,
                                 const struct hf_client_options *options, struct hf_blobs **blobs);

/* A part of a store in a folder; with no_create *part is NULL, and HF_OK, when it is not there. */
enum hf_status hf__blobs_dir_part(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str name,
                                  bool no_create, struct hf_blobs **part);

/* ---- for kinds ------------------------------------------------------------------------------ */

enum hf_status hf__blob_missing(struct hf_scope *s, struct hf_str digest);

/* 64 hexadecimal digits in lower case? */
bool hf__blob_is_digest(struct hf_str text);

#endif
