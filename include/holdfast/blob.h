/*
 * A blob store: values that are too large for an item, stored by their digest.
 *
 *     struct hf_blobs *blobs;
 *     struct hf_str digest;
 *
 *     if (hf_blobs_open(s, HF_STR("dir:/var/lib/app/blobs"), NULL, &blobs) != HF_OK ||
 *         hf_blob_put(s, blobs, payload, &digest) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...                                          store the digest in an item
 *     if (hf_blob_get(s, blobs, digest, &payload) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * The name of a blob is the SHA-256 of its content in hexadecimal: equal content is stored once,
 * and every read verifies it. A blob is written before the item that names it, so an item never
 * names a missing blob; if the item is then not written, or is deleted later, hf_blobs_sweep()
 * removes the blob. Blobs are never changed.
 *
 * Stores by URL:
 *
 *     memory:                     gone when it is closed
 *     dir:PATH                    files of mode 0600 in folders of 0700: written aside, synced, and
 *                                 renamed
 *     s3://BUCKET[/PREFIX]        Amazon S3, and what speaks its protocol, by ?endpoint=URL;
 *                                 ?region=NAME, ?path_style=1, ?create=1 (make the bucket when it
 *                                 is missing), ?part=BYTES (of a multipart upload, and of reads; 5
 *                                 MiB to 1 GiB, default 8 MiB). No step of PREFIX is "trash" or
 *                                 begins with "part.": stores have theirs there
 *
 * Any thread may use a store.
 */
#ifndef HOLDFAST_BLOB_H
#define HOLDFAST_BLOB_H

#include <holdfast/base.h>
#include <holdfast/client.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_blobs;

enum {
    HF_BLOB_DIGEST_LEN = 64,          /* hexadecimal digits */
    HF_BLOB_MAX = 1024 * 1024 * 1024, /* bytes of one blob */
    HF_BLOBS_NAME_MAX = 1024          /* bytes of the name of a part */
};

struct hf_blobs_options {
    size_t size;                            /* set by HF_OPTIONS() */
    const struct hf_client_options *client; /* s3: credentials, region, timeouts, retries as for
                                                hf_connect(); default: what the environment says */
    bool no_sync;                           /* dir: leave syncing to the system */
    bool lazy;                              /* dir: the first put makes the folder, not the opening;
                                               one that is missing is a store without blobs */
};

/*
 * HF_INVALID  the URL is none of the above; the message says what is wrong with it
 * HF_IO, HF_DENIED, HF_NOT_FOUND (no such bucket), HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_blobs_open(struct hf_scope *s, struct hf_str url,
                                                 const struct hf_blobs_options *options,
                                                 struct hf_blobs **blobs);

/*
 * The store that belongs to an embedded database: the folder "blobs" in its directory, or memory
 * that all who ask this database for its store have in common, whatever prefix (prefix.h) they see
 * it through: programs use parts of it. Close it before the database.
 * HF_UNSUPPORTED: it is not embedded.
 */
HF_API HF_NODISCARD enum hf_status hf_blobs_open_beside(struct hf_scope *s, struct hf_db *db,
                                                        struct hf_blobs **blobs);

/*
 * A store inside of a store, with its own blobs, for users that share one: a sweep of a part, or of
 * the whole, does not touch other parts. The same name (1 to 1024 bytes) is the same part. Close it
 * before `blobs`.
 */
HF_API HF_NODISCARD enum hf_status hf_blobs_part(struct hf_scope *s, struct hf_blobs *blobs,
                                                 struct hf_str name, struct hf_blobs **part);

/*
 * The part of a table of that database, which patterns use that are given a store: the one with
 * the table's full name, that is with the prefixes (prefix.h) through which it is seen. The names
 * of tables are all that is known of a database here: two databases that have tables of the same
 * name need stores of their own, two URLs, or two prefixes in a bucket, as a sweep of one removes
 * what the other one uses.
 */
HF_API HF_NODISCARD enum hf_status hf_blobs_part_of(struct hf_scope *s, struct hf_blobs *blobs,
                                                    struct hf_db *db, struct hf_str table,
                                                    struct hf_blobs **part);

/* NULL is accepted. */
HF_API void hf_blobs_close(struct hf_blobs *blobs);

/*
 * Store bytes durably, unless they are stored already; *digest is their name, in the scope. An
 * existing blob counts as new again for hf_blobs_sweep(). HF_LIMIT: more than HF_BLOB_MAX.
 * HF_NO_SPACE, HF_IO.
 */
HF_API HF_NODISCARD enum hf_status hf_blob_put(struct hf_scope *s, struct hf_blobs *blobs,
                                               struct hf_bytes bytes, struct hf_str *digest);

/*
 * The bytes of that name, in the scope. HF_NOT_FOUND; HF_CORRUPT: they are not those that were put;
 * HF_INVALID: it is no digest.
 */
HF_API HF_NODISCARD enum hf_status hf_blob_get(struct hf_scope *s, struct hf_blobs *blobs,
                                               struct hf_str digest, struct hf_bytes *bytes);

/* The same for many, side by side where that is faster (s3). All or the first failure. */
HF_API HF_NODISCARD enum hf_status hf_blob_get_many(struct hf_scope *s, struct hf_blobs *blobs,
                                                    const struct hf_str *digests, size_t len,
                                                    struct hf_bytes *bytes);

/* *size (may be NULL) is its number of bytes. HF_NOT_FOUND. */
HF_API HF_NODISCARD enum hf_status hf_blob_has(struct hf_scope *s, struct hf_blobs *blobs,
                                               struct hf_str digest, uint64_t *size);

/* Delete one; there may be none. Prefer a sweep. */
HF_API HF_NODISCARD enum hf_status hf_blob_delete(struct hf_scope *s, struct hf_blobs *blobs,
                                                  struct hf_str digest);

/*
 * An object of the bucket, below the prefix of an s3 store, that is no blob: by its key, as another
 * program has stored it. Nothing is verified. For moving what other libraries have put there.
 *
 * HF_NOT_FOUND    there is no such object
 * HF_INVALID      the key is empty, or has more than 1024 bytes
 * HF_LIMIT        it has more than HF_BLOB_MAX bytes
 * HF_UNSUPPORTED  the store is not one of s3
 *
 * Blocks. Since 0.1.
 */
HF_API HF_NODISCARD enum hf_status hf_blobs_read_object(struct hf_scope *s, struct hf_blobs *blobs,
                                                        struct hf_str key, struct hf_bytes *bytes);

/* Called with each blob, in no order. Anything but HF_OK ends it, and is returned. */
struct hf_blob_info {
    struct hf_str digest;
    uint64_t size;
    int64_t put_us; /* when it was put last */
    uint64_t reserved[4];
};
typedef enum hf_status hf_blob_list_fn(struct hf_scope *s, const struct hf_blob_info *blob,
                                       void *user);
HF_API HF_NODISCARD enum hf_status hf_blobs_list(struct hf_scope *s, struct hf_blobs *blobs,
                                                 hf_blob_list_fn *fn, void *user);

/*
 * Remove blobs that `used` says nobody uses, and that were put last more than `older_s` seconds ago
 * (0: a day), which has to be longer than it takes from a put to the commit of what names it. One
 * that is put again while it is being removed stays. *removed (may be NULL) is how many. S3 has no
 * way to remove something only if it was not written meanwhile: there a sweep moves blobs to a
 * trash, where they are still found, and a sweep that comes as much later removes them, or moves
 * them back when they are used by then.
 * When `used` fails, the sweep ends with its error, and that blob stays.
 */
typedef enum hf_status hf_blob_used_fn(struct hf_scope *s, struct hf_str digest, bool *used,
                                       void *user);
HF_API HF_NODISCARD enum hf_status hf_blobs_sweep(struct hf_scope *s, struct hf_blobs *blobs,
                                                  uint32_t older_s, hf_blob_used_fn *used,
                                                  void *user, uint64_t *removed);

#ifdef __cplusplus
}
#endif

#endif
