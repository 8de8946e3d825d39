/*
 * blob/blob_dir.h: what the files of the blob store in a directory share.
 */
#ifndef HF_BLOB_BLOB_DIR_H
#define HF_BLOB_BLOB_DIR_H

#include "blob/private.h"

#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#define NEW_FOLDER "new"
#define TRASH_FOLDER "trash"

enum {
    LEAVES = 256 * 256,
    NAME_MAX_LEN = HF_BLOB_DIGEST_LEN + 1,
};

struct dir {
    struct hf_blobs blobs;
    char *path;
    size_t path_size;
    int root;
    int new;
    int trash;
    bool no_sync;
    bool no_create;   /* see blob_dir_options */
    uint64_t reserve; /* bytes of the disk that stay free */
    /* leaves whose parent folders are synced, see (4) */
    atomic_uchar known_durable[LEAVES / CHAR_BIT];
};

extern const struct blob_kind hf__blob_dir_kind;

static inline struct dir *hf__blob_dir_of(struct hf_blobs *blobs)
{
    assert(blobs->kind == &hf__blob_dir_kind);
    return (struct dir *)(void *)blobs;
}

/* Fail because the system did: what, on which file, why. */
enum hf_status hf__blob_dir_fail(struct hf_scope *s, const struct dir *dir, const char *what,
                                 const char *name);

enum hf_status hf__blob_dir_sync(struct hf_scope *s, const struct dir *dir, int fd,
                                 const char *name);

/* When a file was put, or renewed. */
int64_t hf__blob_dir_time_us(const struct stat *info);

/* Open the folder of a digest. *fd is -1 when it does not exist and `make` is not set. */
enum hf_status hf__blob_dir_leaf(struct hf_scope *s, struct dir *dir, struct hf_str digest,
                                 bool make, int *fd);

/* Call `fn` with the names in a folder, but for those that begin with a dot. */
typedef enum hf_status name_fn(struct hf_scope *s, struct dir *dir, int folder, const char *name,
                               void *user);
enum hf_status hf__blob_dir_each(struct hf_scope *s, struct dir *dir, int folder, name_fn *fn,
                                 void *user);

/* The name of a blob's file. */
void hf__blob_dir_name(struct hf_str digest, char name[NAME_MAX_LEN]);

/* ---- blob_dir_sweep.c ----------------------------------------------------------------------- */

enum hf_status hf__blob_dir_list(struct hf_scope *s, struct hf_blobs *blobs, hf_blob_list_fn *fn,
                                 void *user);

enum hf_status hf__blob_dir_remove(struct hf_scope *s, struct hf_blobs *blobs,
                                   struct hf_str digest);
enum hf_status hf__blob_dir_remove_old(struct hf_scope *s, struct hf_blobs *blobs,
                                       struct hf_str digest, int64_t before_us, bool *removed);
/* (3) What is in the trash goes back to its place. */
enum hf_status hf__blob_dir_recover(struct hf_scope *s, struct dir *dir);
enum hf_status hf__blob_dir_leftovers(struct hf_scope *s, struct hf_blobs *blobs,
                                      int64_t before_us);

#endif
