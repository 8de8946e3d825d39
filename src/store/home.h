/*
 * store/home.h: the directory of a store on disk, as far as it is ours: its format, its ballast,
 * its record of what is durable, the space around it. The database inside is tables.c's.
 */
#ifndef HF_STORE_HOME_H
#define HF_STORE_HOME_H

#include "base/base.h"

enum { HOME_FORMAT = 2, HOME_BALLAST_BYTES = 16 * 1024 * 1024 };

/* Where the store stands, see home.c. */
struct home_marks {
    uint64_t durable; /* every change up to here is */
    uint64_t based;   /* every change up to here is in tables of the database */
    uint64_t clean;   /* the store was closed with this change as its last; 0: it was not */
};

struct home {
    struct hf_env env;
    char *path;         /* with a NUL */
    char *db_path;      /* where the database goes */
    char *journal_path; /* where the journal goes */
    size_t path_size, db_path_size, journal_path_size;
    int dir; /* file descriptors, or -1 */
    int record;
    int ballast;
    bool fresh;          /* the store is being made */
    bool has_no_journal; /* it is fresh, or of format 1, where the database had the log */
    bool has_database;   /* which is made when it gets its first table */
    bool ballast_full;   /* the ballast holds its space */
    struct home_marks marks;
    bool unnoted;  /* what is on disk is not known to hold them */
    uint64_t turn; /* of the record that holds them; odd ones are in one slot, even in the other */
};

/*
 * Find the directory, or make its last component, lock it, and read its format.
 *
 * HF_LOCKED   somebody has it open
 * HF_INVALID  it holds something that is not a store
 * HF_FORMAT   it was made by a newer version
 * HF_CORRUPT  it is a store, and a file that must be there is not
 */
enum hf_status hf__home_open(struct hf_scope *s, const struct hf_env *env, struct hf_str path,
                             struct home *home);

/* Read the record into home->marks; make it in a fresh store, where it is not synced yet. */
enum hf_status hf__home_open_record(struct hf_scope *s, struct home *home);

/* Note where the store stands. One thread at a time. False: an older note is there. */
bool hf__home_record(struct home *home, struct home_marks marks);

/* Make the newest note durable. False when that failed. */
bool hf__home_sync_record(struct home *home);

/* All else is there: from now on this is a store. */
enum hf_status hf__home_seal(struct hf_scope *s, struct home *home);

/* Bytes that this user may still write; UINT64_MAX when the system does not say. */
uint64_t hf__home_free_bytes(const struct home *home);

/* Take the space of the ballast, when it can be had, or give it back. */
void hf__home_fill_ballast(struct home *home);
void hf__home_drop_ballast(struct home *home);

/* The bytes of all files of the database. */
uint64_t hf__home_used_bytes(const struct home *home);

void hf__home_close(struct home *home);

#endif
