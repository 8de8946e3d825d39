/*
 * store/commit.h: when a change is safe. A store that has a journal hands its changes to it and
 * asks here to wait for them; who waits at the same time is served together.
 *
 * How safe depends on the mode. Full: a change is on the disk. Otherwise the system has it, so that
 * it survives the end of the process, and in the batch mode a thread syncs it within the window.
 *
 * A second thread tends the journal: it drops files whose changes are all in the database's tables,
 * and has tables written when too many others are kept. When next to nothing was written for a
 * while, it has the tables tidied.
 */
#ifndef HF_STORE_COMMIT_H
#define HF_STORE_COMMIT_H

#include <pthread.h>
#include <stdatomic.h>

#include "store/home.h"
#include "store/journal.h"
#include "store/store.h"

enum { COMMIT_ERROR_MAX = 400 };

struct commit {
    const struct hf_env *env;
    struct home *home;
    struct journal *journal;
    enum store_sync mode;
    uint32_t window_ms;
    uint32_t quiet_ms;
    void *user; /* of the next five */
    void (*before_sync)(void *user);
    /* How many files of the journal may be kept although nothing is written to them any more. */
    uint64_t (*files_kept)(void *user);
    /* Everything that was applied so far, or false: not now. Sets *upto to the newest change that
     * is in tables, if one was added; also when not everything is. */
    bool (*write_tables)(void *user, uint64_t *upto);
    /* Of a store of an older format: have everything in tables, up to `last`, with our mark. */
    enum hf_status (*settle)(struct hf_scope *s, void *user, uint64_t last);
    /* Tables were written, and then next to nothing for a while. False: not now. */
    bool (*tidy)(void *user);
    /* Writes are stopped, and `safe` stays as it is. Once. */
    void (*fall_back)(void *user);

    pthread_mutex_t lock;     /* guards the next eight, and changes of the atomics */
    pthread_cond_t served[2]; /* a round is over: even ones, odd ones */
    pthread_cond_t dirtied;
    pthread_cond_t wanted;
    uint64_t round;  /* the newest that began */
    uint64_t target; /* what it makes safe */
    bool closing;
    uint64_t syncs;
    uint64_t waits;
    char first_error[COMMIT_ERROR_MAX];
    atomic_bool leading;          /* a round is under way */
    atomic_uint_fast64_t safe;    /* every change up to here is as safe as the mode says */
    atomic_uint_fast64_t durable; /* every change up to here is on the disk */
    atomic_bool stopped;
    atomic_bool dirty;        /* appended since the window's thread last synced */
    atomic_bool wants_tables; /* too much is in memory */
    bool has_lock, has_window, has_keeper;
    pthread_t window, keeper;
    uint64_t tabled; /* the keeper's: every change up to here is in tables */
    bool untidy;     /* the keeper's: tables were written, maybe by a process before this one */
    bool fell_back;  /* the keeper's */

    pthread_mutex_t flush_lock;  /* over flushes, in all modes but full */
    pthread_mutex_t record_lock; /* over notes in the home, and changes of the next */
    uint64_t boot; /* what was flushed since this start of the machine is there; or 0 */
};

/* What the caller sets: env, home, mode, window_ms, quiet_ms, user, before_sync, files_kept,
 * write_tables, settle, tidy, fall_back; the rest is 0. */
void hf__commit_init(struct commit *commit);

/* Open the journal, replay it, and start the threads. The home has its record. Fails as
 * hf__journal_open() does; close it all the same. */
enum hf_status hf__commit_open(struct hf_scope *s, struct commit *commit,
                               const struct journal_options *options,
                               const struct journal_marks *marks, journal_replay_fn *replay);

/* A change was appended, and the journal's order is free again. */
void hf__commit_appended(struct commit *commit);

/* Have tables written soon; when that fails, again and again. */
void hf__commit_want_tables(struct commit *commit);

/* Wait until the change is as safe as the mode says. HF_IO: it may be lost. */
enum hf_status hf__commit_wait(struct hf_scope *s, struct commit *commit, uint64_t change);

/* Stop all writes for good; the first reason stays. */
void hf__commit_stop(struct commit *commit, const char *what, const char *error);

/* The scope's error for a write that is refused or may be lost since then. */
enum hf_status hf__commit_fail(struct hf_scope *s, struct commit *commit, enum hf_status status);

/* End the threads. */
void hf__commit_rest(struct commit *commit);

/* Without threads: make everything durable, unless writes are stopped. */
void hf__commit_finish(struct commit *commit);

/* Without threads, and with everything in the database's tables, which are closed: note that. */
void hf__commit_clean(struct commit *commit);

void hf__commit_close(struct commit *commit);

#endif
