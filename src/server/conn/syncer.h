/*
 * server/conn/syncer.h: a thread that syncs the database to disk, while the event loops go on.
 *
 *     hf__syncer_start(s, &syncer, env, db, on_synced, user)
 *     hf__syncer_request(&syncer, ticket)    a loop: false when that sync is over already
 *     on_synced(user)                        the syncer: look at `finished` and `durable` again
 *     hf__syncer_stop(&syncer)
 *
 * What is requested while a sync runs is the next one, all of it: many loops and many of their
 * iterations share a sync, and nobody waits for company.
 *
 * Tickets of a database only grow, and a sync for one is a sync for all before it.
 *
 *  (1) For every request that returned true there is an on_synced() after it, with the ticket
 *      finished.
 *  (2) durable <= finished <= requested. What is durable is as durable as the database promises.
 *      For what is finished and not durable the sync failed; the loop asks the database itself for
 *      the reason.
 */
#ifndef HF_SERVER_SYNCER_H
#define HF_SERVER_SYNCER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "db/db.h"

struct syncer {
    struct hf_db *db;
    struct hf_scope *scope;
    void (*on_synced)(void *user);
    void *user;
    pthread_t thread;
    bool runs;            /* the thread is there */
    pthread_mutex_t lock; /* guards the rest; `finished` and `durable` are also read without it */
    pthread_cond_t changed;
    bool sleeps;
    bool stops;
    uint64_t requested;        /* the highest ticket that a loop asked for */
    _Atomic uint64_t finished; /* the highest ticket of a sync that is over, well or not */
    _Atomic uint64_t durable;  /* the highest ticket of a sync that went well */
};

/* HF_NOMEM or HF_IO: there is none, and hf__syncer_stop() is not called. */
enum hf_status hf__syncer_start(struct hf_scope *s, struct syncer *syncer, const struct hf_env *env,
                                struct hf_db *db, void (*on_synced)(void *user), void *user);

/* Any thread. */
bool hf__syncer_request(struct syncer *syncer, uint64_t ticket);

/* Nobody requests anything any more. */
void hf__syncer_stop(struct syncer *syncer);

#endif
