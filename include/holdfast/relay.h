/*
 * A relay delivers the events of an outbox to a function, a bus, or a sink.
 *
 *     struct hf_relay *relay;
 *     if (hf_relay_open(s, outbox, sink, HF_OPTIONS(hf_relay_options, .workers = 8), &relay) ||
 *         hf_relay_start(s, relay) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_scope_timeout_ms(s, 30000); // what is in flight may finish until then
 *     if (hf_relay_stop(s, relay) != HF_OK)
 *         puts(hf_scope_error_text(s));
 *     hf_relay_close(relay);
 *
 * Any number of relays may work on one outbox. Each owns some of its buckets by a lease; one write
 * of a relay renews all its leases. All relays compute the same fair share from the same items, and
 * each writes only its own item, so writes do not conflict in normal operation. A relay that stops
 * releases its buckets at once; one that is silent for a lease, by the others' clocks, is replaced.
 * Inside of a bucket events of different keys are delivered side by side, and those of one key one
 * after the other.
 *
 * An event is delivered at least once. It is delivered again, with the same id, when a relay dies
 * before it has recorded the delivery, or was suspended for longer than its lease.
 *
 * An event whose delivery crashes the process becomes a dead letter, too, after max_crashes
 * crashes. To count them, a relay that takes over from one that crashed records its first
 * deliveries before they begin.
 *
 * An event that fails is retried after growing delays; in the end it is a dead letter
 * (hf_outbox_failed()). Meanwhile later events of its key wait. When the sink is unreachable no
 * attempt is counted: a breaker opens, and the relay waits until the sink answers again.
 */
#ifndef HOLDFAST_RELAY_H
#define HOLDFAST_RELAY_H

#include <holdfast/base.h>
#include <holdfast/outbox.h>
#include <holdfast/scope.h>
#include <holdfast/sink.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_relay;

enum { HF_RELAY_CANCEL_MS = 1000 }; /* a canceled sink has to return within this time */

/* Sets of options. */
enum hf_relay_preset {
    HF_RELAY_BALANCED = 1, /* the defaults below */
    HF_RELAY_THROUGHPUT,   /* batch 1000, poll 100 ms, 3 attempts, 8 workers */
    HF_RELAY_RELIABILITY   /* batch 10, poll 5000 ms, 10 attempts, one worker */
};

enum hf_relay_outcome {
    HF_RELAY_DELIVERED = 1,
    HF_RELAY_RETRY,    /* failed, and will be retried */
    HF_RELAY_GIVEN_UP, /* failed permanently: a dead letter */
    HF_RELAY_UNSURE    /* delivered, but not recorded yet; that is retried */
};

/* An attempt has ended; called by several threads at once. */
typedef void hf_relay_ended_fn(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                               const struct hf_error *error, void *user);

/* A failure that no event caused: the database or the sink is unreachable, buckets were lost.
 * Called by several threads at once. */
typedef void hf_relay_error_fn(const struct hf_error *error, void *user);

/* A call of the sink has lasted for stuck_ms and has not returned: the first event of it, and for
 * how long. Called by a thread of the relay, once for each call; has to return soon. */
typedef void hf_relay_stuck_fn(const struct hf_outbox_event *event, uint64_t for_ms, void *user);

struct hf_relay_options {
    size_t size;                 /* set by HF_OPTIONS() */
    enum hf_relay_preset preset; /* what the defaults of some are; default HF_RELAY_BALANCED */
    uint32_t workers;            /* batches in flight at once; default 4 */
    uint32_t batch;              /* events that are read ahead for each bucket; default 50 */
    uint32_t poll_ms;            /* how often an idle bucket is looked at; default 1000 */
    uint32_t max_attempts;       /* of an event in all; default 5 */
    uint32_t backoff_ms;         /* before the second attempt, half of it at random; doubled for
                                    each further one; default 1000 */
    uint32_t backoff_max_ms;     /* default 30000 */
    uint32_t timeout_ms;         /* deadline of the scope of a delivery, and before it of fetching
                                    payloads from a blob store; default 30000 */
    uint32_t lease_ms;           /* silence after which others may take over; default 20000 */
    uint32_t heartbeat_ms;       /* at most half of it; default a quarter */
    uint32_t linger_ms;          /* wait so long for a batch to fill up; default 0: do not */
    uint32_t batch_max;          /* events in one call of the sink; default: what it takes */
    uint32_t rate;               /* events a second at most; default no cap */
    uint32_t breaker_ms;         /* first wait for a sink that is unreachable, doubled up to
                                    backoff_max_ms; default 1000 */
    struct hf_str owner;         /* our name in lists; default "HOST/PROCESS-ID" */
    bool failed_blocks;          /* while a key has a dead letter, its later events wait */
    bool competing;              /* claim each event (outbox.h) instead of owning buckets */
    bool dry_run;            /* deliver, but note nothing: each event once in the relay's life */
    bool no_threads;         /* hf_relay_step() is called instead */
    struct hf_str only_type; /* deliver these only, with "*" at the end; others wait. Default all */
    hf_relay_ended_fn *on_ended;
    hf_relay_error_fn *on_error;
    void *user; /* handed to both */

    /*
     * Learn from the stream of the outbox's table that others have emitted something, where it has
     * one: for relays in another process than who emits (hf_outbox_options.stream). Without it they
     * find out within poll_ms, which stays the safety net. Every relay asks each shard, every
     * wake_ms: DynamoDB allows five such calls a second and shard, of all who ask together.
     */
    bool wake_by_stream;
    uint32_t wake_ms; /* default 200 */

    /* How often an event may end the process that handles it; then it is a dead letter as if it had
     * failed for good. Counted from the second time on, and the last time it is the only one that
     * its relay has under way. Default max_attempts. */
    uint32_t max_crashes;

    /*
     * A delivery that has not returned after stuck_ms is reported to on_stuck and to the env's
     * log, counted (hf_relay_metrics), and dealt with as `stuck` says. HF_STUCK_RELEASE: the relay
     * hands all its buckets over, and comes back when the delivery has returned. HF_STUCK_GIVE_UP:
     * the events of the call become dead letters; when no worker is left, as HF_STUCK_RELEASE. What
     * the delivery says later is not noted. Not without threads, where nobody could look.
     */
    uint32_t stuck_ms; /* default ten times timeout_ms */
    enum hf_stuck stuck;
    hf_relay_stuck_fn *on_stuck;

    /*
     * Deliver those of this key or tenant only, as only_type; others wait. Ordered relays that work
     * on one outbox at the same time have to deliver the same: one with another choice than those
     * who are at work reports HF_LOCKED and waits until they have ended. Competing relays may each
     * have their own. The order is that of what is delivered.
     */
    struct hf_str only_key;
    struct hf_str only_tenant;

    /* hf_relay_drain(): give up when it made no progress for so long: no event was delivered or
     * failed. A delivery in flight has its timeout_ms on top. Default: only the deadline of the
     * scope ends a drain. */
    uint32_t stall_ms;
};

/*
 * A relay of that outbox to that sink, both of which have to outlive it. It does nothing yet.
 *
 * HF_INVALID  heartbeat_ms exceeds half of lease_ms, or relays of the other kind (competing or not)
 *             work on this outbox
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_relay_open(struct hf_scope *s, struct hf_outbox *outbox,
                                                 struct hf_sink *sink,
                                                 const struct hf_relay_options *options,
                                                 struct hf_relay **relay);

/* Stops it first, as hf_relay_stop() without waiting for what is under way to succeed: it is
 * canceled, and a sink that ignores that is waited for without a limit, as it uses the relay. A
 * process that has to end meanwhile calls exit() without closing. NULL is accepted. */
HF_API void hf_relay_close(struct hf_relay *relay);

/* Begin, with threads of its own. HF_IN_USE: it runs already. HF_LIMIT: no threads. */
HF_API HF_NODISCARD enum hf_status hf_relay_start(struct hf_scope *s, struct hf_relay *relay);

/*
 * Begin no more deliveries, let those in flight finish until the deadline of the scope, note their
 * outcome, and release the buckets. Without a deadline it waits forevery sink.
 *
 * HF_TIMEOUT: deliveries had to be canceled; others deliver these events again. It returns within
 * five seconds of the deadline, or half a lease later while the database does not answer, even if
 * a sink ignores the cancellation: HF_RELAY_CANCEL_MS after that the relay releases its buckets,
 * notes nothing of what the sink does from then on, and the error says so. The thread of that sink
 * still runs: another hf_relay_stop() waits for it again, hf_relay_close() waits until it returns,
 * and until then hf_relay_start() is HF_IN_USE.
 *
 * HF_INVALID: it was called by the sink, by on_stuck or by another function that the relay calls.
 */
HF_API HF_NODISCARD enum hf_status hf_relay_stop(struct hf_scope *s, struct hf_relay *relay);

/*
 * Deliver until nothing is due any more that is not waiting to be retried, for a relay that was
 * not started. *delivered (may be NULL) is how many, also when it fails. HF_TIMEOUT: the deadline
 * of the scope, or stall_ms, came first; deliveries in flight were canceled, and the message says
 * what it waited for. HF_CANCELED.
 */
HF_API HF_NODISCARD enum hf_status hf_relay_drain(struct hf_scope *s, struct hf_relay *relay,
                                                  uint64_t *delivered);

/* With no_threads: do what is to be done now; *next_ms is after how long there may be more. */
HF_API HF_NODISCARD enum hf_status hf_relay_step(struct hf_scope *s, struct hf_relay *relay,
                                                 uint32_t *next_ms);

/* Deliver nothing until it is resumed; the buckets stay ours. Any thread. All relays of an outbox at
 * once, in other processes too: hf_outbox_pause(). */
HF_API void hf_relay_pause(struct hf_relay *relay);
HF_API void hf_relay_resume(struct hf_relay *relay);

struct hf_relay_metrics {
    uint64_t delivered;
    uint64_t retried;    /* attempts that failed, with another to come */
    uint64_t given_up;   /* events that became dead letters */
    uint64_t unsure;     /* delivered, not noted */
    uint64_t batches;    /* calls of the sink */
    uint64_t outages;    /* of the sink, each until something could be sent again */
    uint64_t reads;      /* queries for events */
    uint64_t writes;     /* requests that noted outcomes */
    uint64_t refused;    /* conditional writes that others were faster with */
    uint64_t taken_over; /* buckets of relays that were silent */
    uint64_t running;    /* deliveries in flight */
    uint64_t waiting;    /* events read and not delivered yet */
    uint32_t buckets;    /* ours now */
    bool breaker_open;
    bool paused;       /* by hf_relay_pause(), or with all of the outbox */
    int64_t lag_ms;    /* how long the oldest event that we know of is due; 0: none is */
    double read_units; /* capacity consumed, as far as the database reports */
    double write_units;
    uint64_t stream_reads; /* how often the stream was asked, with wake_by_stream */
    bool watching;         /* there is a stream, and it answers */
    uint64_t unreadable;   /* items of others that are no events, and are dead letters; of all who
                              use this outbox handle */
    uint64_t stuck;        /* deliveries in flight for longer than stuck_ms, now */
    uint64_t stuck_total;  /* and ever */
    uint64_t reserved[8];
};

/* Any thread. */
HF_API void hf_relay_metrics(struct hf_relay *relay, struct hf_relay_metrics *metrics);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
