/*
 * store/commit.h: when a change is safe. A store that has a journal hands its changes to it and
 * asks here to wait for them; threads that wait at the same time are served by one sync.
 *
 * How safe depends on the mode. Full: a change is on the disk. Otherwise the system has it, so that
 * it survives the end of the process, and in the batch mode a thread syncs it within the window.
 */
#ifndef HF_STORE_COMMIT_H
#define HF_STORE_COMMIT_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/journal.h"
#include "store/store.h"
#include "store/store_dir.h"

enum { COMMIT_ERROR_MAX = 400 };

struct commit {
    const struct hf_env *env;
    struct store_dir *store_dir;
    struct journal *journal;
    enum store_sync mode;
    uint32_t window_ms;

    pthread_mutex_t lock;     /* guards the next eight, and changes of the atomics */
    pthread_cond_t served[2]; /* a round is over: even ones, odd ones */
    pthread_cond_t dirtied;
    pthread_cond_t work; /* the journal needs work, or writes are stopped */
    uint64_t round;      /* number of the newest round that began */
    uint64_t target;     /* the newest change that this round makes safe */
    bool closing;
    uint64_t waits;
    char first_error[COMMIT_ERROR_MAX];
    atomic_uint_fast64_t syncs;
    atomic_bool leading;          /* a round is under way */
    atomic_uint_fast64_t safe;    /* every change up to here is as safe as the mode says */
    atomic_uint_fast64_t durable; /* every change up to here is on the disk */
    atomic_bool stopped;
    atomic_bool dirty; /* appended since the window's thread last synced */
    bool has_lock, has_window;
    pthread_t window;

    pthread_mutex_t flush_lock;  /* held while flushing, in all modes but full */
    pthread_mutex_t record_lock; /* held while noting in the record; guards boot */
    uint64_t boot; /* this start of the machine: what was flushed since then exists; or 0 */
};

/* What the caller sets: env, store_dir, mode, window_ms; the rest is 0. */
void hf__commit_init(struct commit *commit);

/* Open the journal and replay it. The directory has its record. Fails as hf__journal_open() does;
 * close it all the same. */
enum hf_status hf__commit_open(struct hf_scope *s, struct commit *commit,
                               const struct journal_options *options,
                               const struct journal_marks *marks, journal_replay_fn *replay,
                               void *user);

/* Note that the store is open, with every change up to `tabled` in tables, and start the thread. */
enum hf_status hf__commit_start(struct hf_scope *s, struct commit *commit, uint64_t tabled);

/* A change was appended, and the journal's order is free again. */
void hf__commit_appended(struct commit *commit);

/* Wait until the change is as safe as the mode says. HF_IO: it may be lost. */
enum hf_status hf__commit_wait(struct hf_scope *s, struct commit *commit, uint64_t change);

/* Stop all writes for good; the first reason stays. */
void hf__commit_stop(struct commit *commit, const char *what, const char *error);

/* The scope's error for a write that is refused or may be lost since then. */
enum hf_status hf__commit_fail(struct hf_scope *s, struct commit *commit, enum hf_status status);

/*
 * Notes for the next open, by one thread at a time. The database has everything up to `tabled` in
 * tables: with what its manifest says, which may fail; or without, durably, false: that failed. And
 * which file of the journal is the newest.
 */
void hf__commit_note_manifest(struct commit *commit, uint64_t tabled);
bool hf__commit_note_tables(struct commit *commit, uint64_t tabled);
void hf__commit_note_segment(struct commit *commit);

/* Writes are stopped: wait until the last round is over. No other one begins. */
void hf__commit_quiesce(struct commit *commit);

/* End the thread. */
void hf__commit_stop_threads(struct commit *commit);

/* Without threads: make everything durable, unless writes are stopped. */
void hf__commit_finish(struct commit *commit);

/* Without threads, and with everything in the database's tables, which are closed: note that. */
void hf__commit_clean(struct commit *commit);

void hf__commit_close(struct commit *commit);

#endif
