/*
 * blob/objects.h: objects under names that the caller chooses, in a folder or in a bucket of S3.
 * Blobs have their digests as names and never change; these may be replaced.
 *
 *     dir:PATH                   files of mode 0600: written aside, synced, renamed
 *     s3://BUCKET[/PREFIX]?...   as in <holdfast/blob.h>
 *
 * A name is FILE or FOLDER/FILE of letters in lower case, digits, "-", "." and "_"; it begins with
 * a letter or digit. "new" is no folder of the caller's.
 *
 * What always holds:
 *
 *  (1) A put that returned HF_OK is durable. One that failed left the old object, the new one, or
 *      none where there was none; never a part of one.
 *  (2) Of two puts with `once` of the same name one wins, as far as the service can tell: one that
 *      knows no If-None-Match lets both.
 */
#ifndef HF_BLOB_OBJECTS_H
#define HF_BLOB_OBJECTS_H

#include <holdfast/client.h>

#include "base/base.h"

struct hf__objects;

enum { OBJECT_NAME_MAX = 200, OBJECT_MAX = 1024 * 1024 * 1024 /* bytes of one */ };

/* What is wrong with the URL is HF_INVALID. Nothing is read, made or sent yet. */
enum hf_status hf__objects_open(struct hf_scope *s, const struct hf_env *env, struct hf_str url,
                                const struct hf_client_options *client,
                                struct hf__objects **objects);
void hf__objects_close(struct hf__objects *objects);

/* The URL, without what is behind a question mark; for messages. As long as it is open. */
struct hf_str hf__objects_url(const struct hf__objects *objects);

/*
 * Is the place there? A folder is made with `make` (not those above it), a bucket if its URL says so.
 *
 * HF_NOT_FOUND, HF_DENIED, HF_IO and what S3 refuses
 */
enum hf_status hf__objects_reach(struct hf_scope *s, struct hf__objects *objects, bool make);

/* `once`: do not replace one that is there; *made (which may be NULL) says whether it was put. */
enum hf_status hf__objects_put(struct hf_scope *s, struct hf__objects *objects, struct hf_str name,
                               struct hf_bytes bytes, bool once, bool *made);

/* `size` is roughly what it has, as a list says; 0: not known. HF_NOT_FOUND. */
enum hf_status hf__objects_get(struct hf_scope *s, struct hf__objects *objects, struct hf_str name,
                               uint64_t size, struct hf_bytes *bytes);

/* Those whose names begin with `prefix`, which is FOLDER/ or FOLDER/ and a beginning of files; in S3 in
 * the order of their names, in a folder in any. `name` lives during the call. */
typedef enum hf_status objects_fn(struct hf_scope *s, struct hf_str name, uint64_t size,
                                  void *user);
enum hf_status hf__objects_list(struct hf_scope *s, struct hf__objects *objects, const char *prefix,
                                objects_fn *fn, void *user);
bool hf__objects_are_ordered(const struct hf__objects *objects);

/* HF_OK also when there is none. */
enum hf_status hf__objects_remove(struct hf_scope *s, struct hf__objects *objects,
                                  struct hf_str name);

/* Remove what killed processes have left behind. Puts of others that are under way fail. */
enum hf_status hf__objects_clean(struct hf_scope *s, struct hf__objects *objects);

#endif
