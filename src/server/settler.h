/*
 * server/settler.h: waiting for the disk on a thread of its own, while the loops go on.
 *
 *     hf__settler_start(s, &settler, env, db, done, user)
 *     hf__settler_ask(&settler, ticket)      a loop: false when there is nothing to wait for
 *     done(user)                             the settler: look at `tried` and `paid` again
 *     hf__settler_stop(&settler)
 *
 * What is asked for while a wait for the disk is under way is the next one, all of it: many loops
 * and many turns share a sync, and nobody waits for company.
 *
 * Tickets of a database only grow, and who has waited for one has waited for all before it.
 *
 *  (1) For every ask() that returned true there is a done() after it, with the ticket tried.
 *  (2) What is paid is as durable as the database promises. What was tried and is not paid failed;
 *      who asked for it finds out why by asking the database itself.
 */
#ifndef HF_SERVER_SETTLER_H
#define HF_SERVER_SETTLER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "db/db.h"

struct settler {
    struct hf_db *db;
    struct hf_scope *scope;
    void (*done)(void *user);
    void *user;
    pthread_t thread;
    bool runs;            /* the thread is there */
    pthread_mutex_t lock; /* guards the rest; the last two are read without it */
    pthread_cond_t asked;
    bool sleeps;
    bool stops;
    uint64_t wanted;        /* the highest ticket that was asked for, */
    _Atomic uint64_t tried; /* that a wait for the disk was over for, */
    _Atomic uint64_t paid;  /* and that one went well for */
};

/* HF_NOMEM or HF_IO: there is none, and hf__settler_stop() is not called. */
enum hf_status hf__settler_start(struct hf_scope *s, struct settler *settler,
                                 const struct hf_env *env, struct hf_db *db,
                                 void (*done)(void *user), void *user);

/* Any thread. */
bool hf__settler_ask(struct settler *settler, uint64_t ticket);

/* Nobody asks any more. */
void hf__settler_stop(struct settler *settler);

#endif
