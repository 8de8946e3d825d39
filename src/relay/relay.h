/*
 * relay/relay.h: a relay and its parts. relay.c has the essay; each part has a header of its own
 * that says what it has and which mutex guards that:
 *
 *     reader    relay_reader.h   buckets, and how far each was read
 *     keys      relay_keys.h     keys and the events that are held of them, in order
 *     sender    relay_sender.h   batches under way, the circuit breaker, the rate
 *     noter     relay_noter.h    delivered events that have to leave the table
 *     members   relay_members.h  the other relays, the lease, whose each bucket is
 *     watch     relay_watch.h    news by the stream of the table
 *     claims    relay_claims.h   competing relays
 */
#ifndef HF_RELAY_RELAY_H
#define HF_RELAY_RELAY_H

#include "relay/relay_claims.h"
#include "relay/relay_keys.h"
#include "relay/relay_members.h"
#include "relay/relay_noter.h"
#include "relay/relay_reader.h"
#include "relay/relay_sender.h"
#include "relay/relay_watch.h"

#include <holdfast/relay.h>

#include "base/assert_held.h"

enum { RELAY_WORKERS_MAX = 1000 };

struct relay_worker {
    struct hf_relay *relay;
    pthread_t thread;
    bool started;
    struct hf_scope *io;   /* the database */
    struct hf_scope *work; /* the sink */
    struct sending *sent;  /* of the call, of a relay that owns buckets */

    /* the mutex guards these */
    bool runs, over; /* the thread has begun, and has ended */
    pthread_t self;  /* the thread, if it runs */
    bool sending;    /* `work` can be canceled */
    struct worker_claims claims;
    struct relay_call call;
};

/* The thread that renews leases and claims, and looks at deliveries that do not return. */
struct relay_heartbeat {
    struct hf_scope *scope; /* of that thread alone */
    int64_t pause_us;       /* so is this: when relay_pause.c looks next */

    /* the mutex guards these */
    struct timer *timer;
    pthread_t thread; /* the thread that is inside, if there is one */
    bool inside;      /* a thread does it at this moment */
};

struct hf_relay {
    /* since it was opened */
    struct hf_env env;
    struct hf_outbox *outbox;
    struct hf_sink *sink;
    const struct hf_sink_ops *ops;
    struct hf_relay_options o;
    struct hf_scope *names; /* holds the texts of the options */
    struct outbox_only only;
    struct hf_str only_text; /* absent: all */
    uint32_t only_bucket;    /* the bucket of all events of `only`; UINT32_MAX: any */
    struct pattern_id self;  /* the name by which it counts attempts: relay_suspect.c */
    size_t batch_max;        /* events of one call of the sink */
    uint32_t sends_max;      /* calls of it at once */
    struct relay_worker *workers;
    size_t workers_len;

    pthread_mutex_t mutex;    /* guards these, and what the headers of the parts say */
    pthread_cond_t work_cond; /* for workers */
    pthread_cond_t idle_cond; /* for those who wait until the relay has ended or is idle */
    bool started, stopping, canceled, paused, ended;
    bool all_paused, unasked; /* relay_pause.c */
    int64_t timed_us;         /* a worker waits until then; INT64_MAX: none does */
    size_t idle;              /* workers that wait */
    struct hf_relay_metrics metrics;

    struct relay_reader reader;
    struct relay_keys keys;
    struct relay_sender sender;
    struct relay_noter noter;
    struct relay_claims claims;
    struct relay_members members;
    struct relay_watch watch;
    struct relay_heartbeat heartbeat;
    uint64_t checks; /* DEV_CHECKS: how often hf__relay_check() was called */
};

/* Functions that only look at a relay have to hold its mutex, too. */
static inline pthread_mutex_t *relay_mutex(const struct hf_relay *relay)
{
    return (pthread_mutex_t *)(uintptr_t)&relay->mutex;
}

#define ASSERT_RELAY_HELD(relay) ASSERT_HELD(relay_mutex(relay))

/* ---- relay.c -------------------------------------------------------------------------------- */

enum task_kind { TASK_NONE, TASK_READ, TASK_LOOK, TASK_SEND, TASK_NOTE, TASK_PROBE, TASK_CLAIM };

struct task {
    enum task_kind kind;
    struct relay_bucket *bucket; /* of TASK_READ */
    struct held *batch;          /* of TASK_SEND and TASK_NOTE, by `next` */
    size_t len;
    bool probe; /* TASK_SEND: it is sent to find out whether the sink can be reached */
};

static inline int64_t relay_now_us(const struct hf_relay *relay)
{
    return hf__env_elapsed_us(&relay->env);
}

/* There may be new events in that bucket; UINT32_MAX: in any. */
void hf__relay_wake(struct hf_relay *relay, uint32_t bucket, bool urgent);

/* Wake a worker, so that it looks for a task. The mutex is held. */
void hf__relay_signal(struct hf_relay *relay);

/* Prepare the scope `s` (of a worker or the heartbeat thread) for the next call; and add the capacity
 * that it has consumed to the metrics. */
void hf__relay_begin(struct hf_relay *relay, struct hf_scope *s, uint32_t timeout_ms);
void hf__relay_consumed(struct hf_relay *relay, struct hf_scope *s); /* takes the mutex */

/* ---- relay_pause.c -------------------------------------------------------------------------- */

static inline bool relay_is_paused(const struct hf_relay *relay)
{
    ASSERT_RELAY_HELD(relay);
    return relay->paused || relay->all_paused || relay->unasked;
}

/* All relays of the outbox are to pause, or not any more. Takes the mutex. */
void hf__relay_pause_all(struct hf_relay *relay, bool paused);

/* For competing relays: find that out, if it is time. Returns in how many microseconds it is again. */
int64_t hf__relay_pause_look(struct hf_relay *relay);

/* The next task; *next_us: if there is none, when there may be one. The mutex is held. */
struct task hf__relay_next(struct hf_relay *relay, int64_t now_us, int64_t *next_us);
void hf__relay_do(struct relay_worker *worker, const struct task *task);

/* Call on_error with the scope's error. The mutex is not held. */
void hf__relay_report_error(struct hf_relay *relay, struct hf_scope *s);

/* The delay before the next attempt, after so many failures (from 1): doubled, capped, +-10 %. */
uint32_t hf__relay_backoff_ms(const struct hf_relay *relay, uint32_t first_ms, uint32_t failures);

/* Assert that the parts are as their headers say. It is called when a task is chosen: all of the
 * small things each time, the two tables of relay_keys.h now and then. DEV_CHECKS. The mutex is
 * held. */
void hf__relay_check(struct hf_relay *relay);

/* ---- relay_run.c: threads, steps, stopping -------------------------------------------------- */

void hf__relay_end(struct hf_relay *relay); /* stop, without waiting for a success */

#endif
