/*
 * test/sinks/brokers/kit.h: brokers as processes of our own on free ports of this machine, batches
 * of events, and a ledger that compares what a sink said with what its broker has.
 */
#ifndef HF_TEST_RELAY_BROKERS_KIT_H
#define HF_TEST_RELAY_BROKERS_KIT_H

#include <holdfast/sink.h>

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "test.h"

/* ---- processes ------------------------------------------------------------------------------ */

struct broker {
    struct test *t;
    const char *dir; /* for its files */
    int port;        /* where it listens */
    const char *const *argv;
    const char *const *env; /* what is set for it besides ours; "NAME=value", NULL at the end */
    _Atomic pid_t pid;      /* 0: it does not run */
    int ready_ms;           /* how long it may take to listen */
};

/* A port of 127.0.0.1 that nobody listened on a moment ago. */
int free_port(void);

/* Start it and wait until it listens. It dies with the thread that starts it. */
void broker_start(struct broker *broker);
/* SIGKILL, to it and its children. Any thread. */
void broker_kill(struct broker *broker);
/* The same, and wait for its end. */
void broker_stop(struct broker *broker);

/* Kill it from another thread, `us` microseconds from now. */
struct killer {
    struct broker *broker;
    int64_t us;
    pthread_t thread;
};
void killer_start(struct killer *killer, struct broker *broker, int64_t us);
void killer_join(struct killer *killer);

/* Kills a broker again and again while a ledger is sent; `storm_again` starts it again. */
struct storm {
    struct broker *broker;
    struct killer killer;
    int rounds; /* that are left */
    int64_t us; /* between the start and the end of a broker */
};
void storm_start(struct storm *storm, struct broker *broker, int rounds, int64_t us);
void storm_again(void *storm);
/* The broker runs, and nobody is after it. */
void storm_end(struct storm *storm);

/* ---- events --------------------------------------------------------------------------------- */

enum { KEYS = 8, PAYLOAD_MAX = 300 };

/* Event `n` of key `key`: the same whenever it is made. Its id is "KEY-N". */
void make_event(struct hf_scope *s, int key, int n, struct hf_outbox_event *event);

/* The payload that it has: all bytes, NUL among them. */
struct hf_bytes event_payload(struct hf_scope *s, int key, int n);

/* Send one event, with defaults where the options are NULL; its outcome. */
struct hf_delivery send_one(struct hf_scope *s, struct hf_sink *sink,
                            const struct hf_outbox_event *event, enum hf_status *status);

/* A scope on the real clock with a deadline. */
struct hf_scope *real_scope(uint32_t timeout_ms);

/* ---- certificates --------------------------------------------------------------------------- */

/* DIR/NAME.pem, for "localhost", signed by itself, and its key in DIR/NAME.key. */
void make_certificate(const char *dir, const char *name);

/*
 * A server of that certificate listens for TLS: who trusts it gets through, who trusts another, or
 * calls it by a name that it does not have, does not. `url` is up to the host, `rest` behind the
 * port; options are added to it.
 */
void check_tls(struct test *t, const char *url, int port, const char *rest, const char *dir);

/* ---- ledger --------------------------------------------------------------------------------- */

enum { LEDGER_EVENTS = 400 }; /* of each key, at most */

struct ledger {
    struct test *t;
    int events;                      /* of each key */
    bool acked[KEYS][LEDGER_EVENTS]; /* the sink said that it has it */
    int seen[KEYS][LEDGER_EVENTS];   /* how often the broker had it */
    int last[KEYS];                  /* the last one that was new, as the broker tells them */
    int sent[KEYS];                  /* what is delivered of each key, in order */
    int batches, failures, duplicates, disorder, damaged;
};

/*
 * Send events of all keys until all are acked, `per_key` of each in a batch; what fails is sent
 * again. `again` is called after a call failed as a whole: to bring the broker back.
 */
typedef void ledger_again_fn(void *user);
void ledger_send(struct ledger *ledger, struct hf_sink *sink, int events, int per_key,
                 ledger_again_fn *again, void *user);

/* The same by threads, each with keys of its own, at once; all has to be taken. */
void ledger_send_threads(struct ledger *ledger, struct hf_sink *sink, int events);

/* The broker has this message. */
void ledger_see(struct ledger *ledger, struct hf_str id, struct hf_bytes payload);

/* All is there, in order, and as it was sent. */
void ledger_check(const struct ledger *ledger, bool once);

#endif
