/*
 * store/tree.h: all files of a store in memory, to be written out, damaged, mixed with those of
 * other moments or other stores, and compared with what is there after an open.
 */
#ifndef HF_TEST_STORE_TREE_H
#define HF_TEST_STORE_TREE_H

#include "image.h"

enum { TREE_FILES = 64, TREE_NAME = 64 };

struct tree_file {
    char name[TREE_NAME]; /* "db/CURRENT" */
    uint8_t *bytes;
    size_t len;
};

struct tree {
    struct tree_file files[TREE_FILES];
    size_t len;
    uint64_t digest; /* of all keys and values, by who made the tree */
};

/* Read what is below a directory, but for the ballast. Zeros at the end of files of the journal,
 * which are many and say nothing, are left out. */
void tree_read(struct hf_scope *s, const char *path, struct tree *tree);
void tree_free(struct tree *tree);

/* Make the directory hold the files of the tree, and nothing else. */
void tree_write(struct hf_scope *s, const struct tree *tree, const char *path);
/* One of them. */
void tree_write_file(struct hf_scope *s, const struct tree_file *file, const char *path);

/* The name of a file that is not in the directory as it is in the tree, or is only in one of them;
 * NULL: all are the same. RocksDB's LOCK and LOG files, and the ballast, do not count. */
const char *tree_difference(struct hf_scope *s, const struct tree *tree, const char *path);

/* The file of that name, or whose name begins so; NULL: there is none. */
const struct tree_file *tree_find(const struct tree *tree, const char *name);

/* Take all files of a part, "db", "journal", "durable" or "HOLDFAST", from another tree. The bytes
 * are still the other's. */
void tree_take(struct tree *tree, const struct tree *other, const char *part);

/* A digest of all keys and values; false: reading failed. */
bool store_digest(struct hf_scope *s, struct hf__store *store, uint64_t *digest);

#endif
