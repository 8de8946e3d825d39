/*
 * server/gate.h: a database with a gate in front of every sync. A test closes the gate, sees what
 * is answered meanwhile, and opens it.
 */
#ifndef TEST_SERVER_GATE_H
#define TEST_SERVER_GATE_H

#include "help.h"

#include "db/db.h"
#include "engine/engine.h"
#include "store/store.h"

struct gated {
    struct hf_db db;
    struct hf_db *inner;
    struct store_faults faults;
    struct hf__store *store;
    pthread_mutex_t lock; /* guards the next four */
    pthread_cond_t moved;
    bool closed;
    unsigned passes;   /* syncs that a closed gate lets through */
    unsigned waiting;  /* syncs at the gate now */
    atomic_uint syncs; /* syncs asked for so far */
    atomic_uint calls;
    atomic_bool fails;    /* the next syncs fail */
    atomic_uint sync_us;  /* so long a sync takes at most, each its own time */
    atomic_uint delay_ms; /* a fault: so long answers are kept back */
    atomic_bool held;     /* calls wait */
};

/* A server in front of it, with the table "tab", in which is "old"; the gate is open. */
void gate_site(struct test *t, struct gated *gated, struct site *site,
               const struct server_options *options);
void gate_close(struct gated *gated, struct site *site);

void gate_set(struct gated *gated, bool closed);
void gate_let_one_pass(struct gated *gated);
/* Wait until that many syncs stand at the gate. */
void gate_wait(struct gated *gated, unsigned count);

#define PUT_A "{'TableName':'tab','Item':{'pk':{'S':'a'}}}"

void send_put(struct line *c, const char *pk);
void send_get(struct line *c, const char *pk);
/* Nothing comes for a while. */
bool is_silent(struct line *c);

#endif
