/*
 * store/store_dir.h: the directory of a store on disk, as far as it is ours: its format, its
 * ballast, the space around it. Where it stands is noted by marks.c; the database inside is
 * tables.c's.
 */
#ifndef HF_STORE_STORE_DIR_H
#define HF_STORE_STORE_DIR_H

#include "store/manifest.h"
#include "store/marks.h"

enum { STORE_DIR_FORMAT = 3, STORE_DIR_BALLAST_BYTES = 16 * 1024 * 1024 };

/* The end of every message about damage. */
#define STORE_DIR_DAMAGED ". Nothing was changed; restore the whole directory from one copy"

struct store_dir {
    struct hf_env env;
    char *path;         /* with a NUL */
    char *db_path;      /* where the database goes */
    char *journal_path; /* where the journal goes */
    size_t path_size, db_path_size, journal_path_size;
    int fd; /* file descriptors, or -1 */
    int record;
    int ballast;
    bool fresh;        /* the store is being made */
    bool read_only;    /* nothing is made or written */
    bool no_create;    /* a store that is not there is not made */
    int format;        /* of its record: 1 had no journal, in 2 its files and tables have no id */
    bool sealed;       /* HOLDFAST has the number of our format */
    bool has_database; /* which is made when it gets its first table */
    bool ballast_full; /* the ballast holds its space */
    uint64_t id;       /* of the store, also in the marks; stays what it is */
    struct store_marks marks;
    bool unnoted;      /* the record on disk may not have the newest marks */
    uint64_t sequence; /* of the newest record; odd ones are in one slot, even ones in the other */
    struct manifest_sum manifest; /* used by the thread that notes the manifest */
};

/*
 * Find the directory, or create its last component, lock it, and read its format. `read_only`: it
 * is not created, and other processes may have it open read-only at the same time.
 *
 * HF_LOCKED   somebody has it open
 * HF_NOT_FOUND  there is none, and none is made
 * HF_INVALID  it holds something that is not a store
 * HF_FORMAT   it was made by a newer version
 * HF_CORRUPT  it is a store, and a file that must be there is not
 */
enum hf_status hf__store_dir_open(struct hf_scope *s, const struct hf_env *env, struct hf_str path,
                                  bool read_only, bool no_create, struct store_dir *store_dir);

/* Every other file exists: make the directory a store. */
enum hf_status hf__store_dir_seal(struct hf_scope *s, struct store_dir *store_dir);

/* Bytes that this user may still write; UINT64_MAX when the system does not say. */
uint64_t hf__store_dir_free_bytes(const struct store_dir *store_dir);

/* Fill the ballast, if there is room, or empty it. */
void hf__store_dir_fill_ballast(struct store_dir *store_dir);
void hf__store_dir_drop_ballast(struct store_dir *store_dir);

/* The bytes of all files of the database. */
uint64_t hf__store_dir_used_bytes(const struct store_dir *store_dir);

void hf__store_dir_close(struct store_dir *store_dir);

#endif
