/*
 * test/crash/crash.h: a workload that is killed, the log of what it was told, and the judge.
 *
 * The workload (workload.c) is a process that works on one directory until it is killed. Every
 * writer thread owns its keys. Around each call it appends two entries to the expected-state log,
 * a file outside of the database: the intent before the call, the outcome after it. What was
 * written with write(2) survives the death of the process, so the log always knows more than the
 * client of a database ever could.
 *
 * The log (expected.c) is read back into a model: the exact state of every key, and for each writer
 * at most one call whose outcome nobody knows.
 *
 * The judge (verify.c) opens the directory, decides from what is there whether the open calls
 * happened, and compares everything with the model. Its decisions are entries of the log too, so
 * that the next round builds on them.
 *
 * The tables:
 *
 *     crash_a   what writers put, change and delete: w/THREAD/KEY, and x/THREAD, which expires at
 *               once; two global indexes, a stream with both images, time to live
 *     crash_b   written in transactions only: w/THREAD/KEY
 *     crash_c   counters: own/THREAD, in transactions; shared, by everybody
 *     scratch   made, filled, backed up, given an index and a stream, and deleted, over and over
 *     again     restored from the backup of scratch
 */
#ifndef HF_TEST_CRASH_H
#define HF_TEST_CRASH_H

#include <holdfast/db.h>
#include <holdfast/engine.h>

#include <stdbool.h>
#include <stdint.h>

enum { WRITERS = 4, KEYS = 6, SCRATCH_ITEMS = 30, GROUPS = 5 };

/* What a call was for; key is the writer's key, or the step of DO_SCHEMA. */
enum what {
    DO_PUT = 1,
    DO_UPDATE,   /* its condition holds */
    DO_REFUSED,  /* its condition does not hold */
    DO_DELETE,   /* the item may be there or not */
    DO_TRANSACT, /* three tables and a token */
    DO_DOOMED,   /* a transaction whose last condition does not hold */
    DO_COUNT,    /* add one to the shared counter */
    DO_BATCH,    /* BatchWriteItem of this key and the next */
    DO_EXPIRING, /* an item whose time is over */
    DO_SCHEMA
};

enum phase {
    INTENT = 1,
    DONE,
    NOT_DONE,    /* refused as it had to be */
    SETTLED_YES, /* the judge: an open call happened, */
    SETTLED_NO,  /* did not, */
    OBSERVED     /* and the shared counter stood at n */
};

enum step {
    STEP_CREATE,
    STEP_FILL,
    STEP_BACK_UP, /* it is full: every backup has all SCRATCH_ITEMS */
    STEP_ADD_INDEX,
    STEP_BUILD,
    STEP_STREAM_OFF,
    STEP_RESTORE, /* again, from the newest backup */
    STEP_CLEAN,   /* no more backups */
    STEP_DELETE,
    STEPS
};

/* One entry of the log, as it lies in the file. */
struct entry {
    uint8_t phase;
    uint8_t what;
    uint16_t thread;
    uint32_t key;
    uint64_t n;    /* number of the call, of its thread; what it writes follows from it */
    uint64_t prev; /* DO_UPDATE: the n that the item must have */
};

/* ---- the log and the model (expected.c) ------------------------------------------------------ */

struct key_state {
    bool there;
    uint64_t n; /* the call that wrote it last */
    int64_t c;  /* how often it was updated since it was put */
    /* Every state that it went through, for the stream: n, or 0 for deleted. */
    uint64_t *history;
    size_t history_len;
    size_t history_cap;
};

struct thread_state {
    struct key_state keys[KEYS]; /* in crash_a */
    struct key_state expiring;   /* there: at least once, it may be gone by now */
    uint64_t in_b[KEYS];         /* n, or 0 */
    int64_t own;
    uint64_t next; /* number of the next call */
    struct entry open;
    bool has_open;
    struct entry last_tx; /* the last transaction that happened, to be sent again */
    bool has_last_tx;
};

struct model {
    struct thread_state threads[WRITERS];
    int64_t shared_low; /* the shared counter is in [low, high] */
    int64_t shared_high;
    struct entry schema; /* the last entry of DO_SCHEMA */
    bool has_schema;
    uint64_t acked; /* calls that were answered */
    uint64_t open;
    uint64_t refused;
};

int log_open(const char *path);
/* Append an entry; ends the process when it cannot. */
void log_add(int fd, struct entry entry);
/* The model of all entries. */
void model_read(const char *path, struct model *model);
void model_free(struct model *model);
/* What the call does when it happens, to its key (DO_BATCH: to the key with that number). */
void model_apply(struct model *model, const struct entry *entry, uint32_t key);

/* ---- items and requests, from the numbers in an entry (workload.c) --------------------------- */

struct hf_str key_name(struct hf_scope *s, unsigned thread, uint32_t key);
struct hf_item item_a(struct hf_scope *s, unsigned thread, uint32_t key, uint64_t n, int64_t c);
struct hf_item item_expiring(struct hf_scope *s, unsigned thread, uint64_t n);
struct hf_item item_b(struct hf_scope *s, unsigned thread, uint32_t key, uint64_t n);
enum hf_status send_transaction(struct hf_scope *s, struct hf_db *db, const struct entry *entry);

/* NULL, and a message on stderr, when it cannot be opened. */
struct hf_db *open_database(struct hf_scope *s, const char *dir, bool upkeep);

/* The child processes; their results are exit codes. */
enum { EXIT_GOOD = 0, EXIT_BAD = 10 };
int work(const char *dir, const char *log, uint64_t seed, uint64_t calls);
int reopen(const char *dir);
int verify(const char *dir, const char *log, bool quiet);

/* A small generator; every thread has its own. */
uint64_t next_random(uint64_t *state);

#endif
