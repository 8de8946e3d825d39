/*
 * blob/s3.h: one bucket of S3, or of what speaks its protocol, and calls to it. See s3.c.
 */
#ifndef HF_BLOB_S3_H
#define HF_BLOB_S3_H

#include <holdfast/blob.h>

#include "base/base.h"
#include "base/buf.h"
#include "blob/private.h"
#include "http/transport.h"

struct s3;

enum {
    S3_PART_MIN = 5 * 1024 * 1024, /* bytes of a part but the last, as S3 has it */
    S3_PART = 8 * 1024 * 1024,
    S3_LIST_MAX = 8 * 1024 * 1024, /* bytes of an answer that is a document */
    S3_FIELDS = 3
};

/* Of s3://BUCKET/PREFIX?...: `rest` is what is behind the scheme. HF_INVALID names what is wrong.
 * Nothing is sent. */
enum hf_status hf__s3_open(struct hf_scope *s, const struct hf_env *env, struct hf_str rest,
                           const struct hf_client_options *options, struct s3 **s3);
void hf__s3_close(struct s3 *s3);

size_t hf__s3_part(const struct s3 *s3);
bool hf__s3_create(const struct s3 *s3); /* was it asked for? */
struct hf_str hf__s3_bucket(const struct s3 *s3);
struct hf_str hf__s3_region(const struct s3 *s3);

/* Where calls go: "https://bucket.s3.eu-central-1.amazonaws.com", and what is before all keys. */
struct hf_str hf__s3_origin(const struct s3 *s3);
struct hf_str hf__s3_path(const struct s3 *s3);

/* As the URL has it, with a slash behind; or empty. */
struct hf_str hf__s3_prefix(const struct s3 *s3);

/* "/bucket/key", as a header wants it. Absent when there is no memory. */
struct hf_str hf__s3_source(struct hf_scope *s, const struct s3 *s3, struct hf_str key);

struct s3_call {
    const char *method;
    struct hf_str key;   /* absent: the bucket itself */
    struct hf_str query; /* "uploads", "partNumber=1&uploadId=x"; encoded; absent: none */
    struct http_field fields[S3_FIELDS];
    size_t fields_len;
    struct hf_bytes body;
    /* bytes that are likely to be transferred or copied: the call may take longer */
    size_t expect;
    size_t answer_max;  /* bytes that it has at most; 0: S3_LIST_MAX */
    const char *result; /* the element that a 200 must contain, as some are errors; NULL: any */
};

struct s3_answer {
    struct http_answer http;
    struct hf_str code; /* S3's, when it refused; may be empty */
};

/*
 * Call, and call again where that may help: every call of ours may be done twice. HF_OK is a 2xx;
 * otherwise the message has S3's code, and answer->code too. Lives in the scope.
 *
 * HF_NOT_FOUND  no such object, upload or bucket: see the code; to a HEAD there is none
 * HF_DENIED, HF_THROTTLED, HF_NO_SPACE, HF_INVALID, HF_LIMIT (the answer), HF_IO, HF_TIMEOUT,
 * HF_CANCELED, HF_NOMEM
 */
enum hf_status hf__s3_call(struct hf_scope *s, struct s3 *s3, const struct s3_call *call,
                           struct s3_answer *answer);

/* HF_IO: the answer is not what it should be: `what` says how. */
enum hf_status hf__s3_unreadable(struct hf_scope *s, const struct s3 *s3, const char *why);

/* The number that a text begins with; 0: none. */
uint64_t hf__s3_number(struct hf_str text);

/* Reads 2026-11-15T10:30:00.000Z; false: it has another form. */
bool hf__s3_time(struct hf_str text, int64_t *us);

/* ---- blob_s3.c ------------------------------------------------------------------------------ */

#define S3_TRASH "trash/"

struct s3_blobs {
    struct hf_blobs blobs;
    struct s3 *s3;
    struct hf_scope *memory; /* has the prefix of a part, whose s3 is that of the whole; or NULL */
    struct hf_str prefix;    /* with a slash behind, or empty */
};

static inline struct s3 *hf__s3_of(struct hf_blobs *blobs)
{
    struct s3_blobs *store = (struct s3_blobs *)(void *)blobs;

    assert(store->s3);
    assert(store->prefix.len == 0 || store->prefix.ptr[store->prefix.len - 1] == '/');
    return store->s3;
}

/* The name of an object: prefix, `folder` (may be ""), name. In the scope. HF_NOMEM. */
enum hf_status hf__s3_key(struct hf_scope *s, struct hf_blobs *blobs, const char *folder,
                          struct hf_str name, struct hf_str *key);

/* Does an object exist? If not, *there is false, and HF_OK. *age_us (may be NULL) is by the clock
 * of S3, 0 when it was put in the future; -1: unknown. */
enum hf_status hf__s3_head(struct hf_scope *s, struct s3 *s3, struct hf_str key, bool *there,
                           uint64_t *size, int64_t *age_us);
/* `size` is that of the object: the larger, the longer it may take. */
enum hf_status hf__s3_copy(struct hf_scope *s, struct s3 *s3, struct hf_str from, struct hf_str to,
                           uint64_t size, struct s3_answer *answer);
/* HF_OK also when there is no such object. */
enum hf_status hf__s3_remove(struct hf_scope *s, struct s3 *s3, struct hf_str key);

/* The query of a multipart upload, or of one of its parts (0: none). Absent when out of memory. */
struct hf_str hf__s3_upload_query(struct hf_scope *s, size_t part, struct hf_str id);

/* Copy an error from a scope that will be freed, and return its status. */
enum hf_status hf__s3_hand_on(struct hf_scope *s, const struct hf_scope *inner);

/* Is the bucket there? It is made if the URL says so. HF_NOT_FOUND */
enum hf_status hf__s3_find_bucket(struct hf_scope *s, struct s3 *s3);

/* ---- s3_list.c ------------------------------------------------------------------------------ */

enum hf_status hf__s3_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                           void *user);
/* Call `fn` with all objects whose names begin with the prefix of the store and `folder`, which is
 * a folder with a slash, and perhaps a beginning of names; with what is behind the prefix of the store.
 * In the order of their names. */
typedef enum hf_status s3_name_fn(struct hf_scope *s, struct hf_str name, uint64_t size,
                                  void *user);
enum hf_status hf__s3_names(struct hf_scope *s, struct hf_blobs *blobs, const char *folder,
                            s3_name_fn *fn, void *user);
enum hf_status hf__s3_sweep(struct hf_scope *s, struct hf_blobs *blobs,
                            const struct blob_sweep *how, uint64_t *removed);
enum hf_status hf__s3_remove_leftovers(struct hf_scope *s, struct hf_blobs *blobs,
                                       int64_t before_us);

#endif
