/*
 * Flows: what a program does with its events, one description for each kind (domain and type) of
 * them, and a runtime that takes events through these functions and into an event store.
 *
 *     static const struct hf_flow flows[] = {
 *         {.domain = HF_STR_INIT("order"), .type = HF_STR_INIT("placed"), .validate = has_lines,
 *          .apply = add_to_list, .consequents = reserve_stock, .side_effect = send_mail,
 *          .effect_retries = 3, .compensate = cancel_order},
 *         {.domain = HF_STR_INIT("stock"), .type = HF_STR_INIT("reserved"), .aggregate = &stock,
 *          .validate = is_there, .compensate = give_back}};
 *     ...
 *     struct hf_flow_event placed = {.stream = {HF_STR("order"), HF_STR("7")},
 *                                    .event = {.type = HF_STR("placed"), .payload = json}};
 *
 *     if (hf_flows_open(s, store, outbox, flows, 2, NULL, 0, NULL, &runtime) != HF_OK ||
 *         hf_flows_submit(s, runtime, &placed, NULL, &result) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * The way of an event, which is the root of a tree:
 *
 *     created       an id, a time, its cause and correlation, the schema of its flow
 *     upcast        when it came in an older form
 *     validate      may refuse it, and with it the tree
 *     pre_apply     may change it
 *     apply         what is to change together with it, see below
 *     consequents   events that follow from it: each goes this way, before the next one does
 *     -- the tree is complete, and is stored with one append, all or nothing
 *     observers     are called, one after the other
 *     side_effect   once for each event, by whichever process has a relay for the outbox
 *
 * Apply and the stored events. `apply` passes its database writes to hf_flow_write(): they are part
 * of the transaction that stores the tree, so a crash cannot separate the two. Changes in memory
 * are undone by `cancel_apply`, the last one first, when a later event of the tree is refused or
 * the tree could not be stored. Changes elsewhere, such as in another service, belong into
 * `side_effect`, which runs for stored events only; or into a projection (subscribe.h).
 *
 * Races. The tree is stored on the condition that the aggregates that were used, by flows or with
 * hf_flow_load(), have not changed: if any of their streams has a new event, from this process or
 * another, everything is canceled and done again. So the functions up to `consequents` may be
 * called several times for one submit, and each apply is canceled before the next.
 *
 * Side effects are events of the outbox, stored by the same transaction, so they survive a crash.
 * They run at least once, are retried after growing delays, and become dead letters in the end
 * (hf_outbox_failed(), hf_outbox_retry()). Events that they cause are stored once, however often
 * they run.
 *
 * A process handles trees with the same shard key one after the other, others in parallel.
 *
 * In the global order the events of a tree are next to each other, stream by stream, and those of a
 * stream in the order in which they were created.
 */
#ifndef HOLDFAST_FLOW_H
#define HOLDFAST_FLOW_H

#include <holdfast/aggregate.h>
#include <holdfast/base.h>
#include <holdfast/events.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_flows;     /* the runtime; any thread may use it */
struct hf_flow_call; /* one call of a function of a flow */

enum {
    HF_FLOW_DEPTH_MAX = 10,      /* levels of a tree, by default */
    HF_FLOW_DEPTH_LIMIT = 100,   /* and at most */
    HF_FLOW_EVENTS_MAX = 1000,   /* of one tree */
    HF_FLOW_PARTITIONS_MAX = 64, /* queues */
    HF_FLOW_ATTEMPTS = 10,       /* at a tree, when others are faster */
    HF_FLOW_CRASHES = 5,         /* of a side effect that ends its process */
    HF_FLOW_SHUTDOWN_MS = 5000,
    HF_FLOW_PAGE = 200 /* events that a replay reads at once */
};

/* ---- events --------------------------------------------------------------------------------- */

/*
 * An event that is to be. What is left out: the id of the stream is that of the parent; the id is
 * made (of consequents and of side effects' events: ID.1, ID.2 and so on after their parent's, so
 * doing it again gives the same ones); the schema is that of the flow; causation is the parent;
 * correlation that of the parent.
 */
struct hf_flow_event {
    struct hf_event_stream_key stream; /* the domain is required */
    struct hf_new_event event;         /* the type is required */
    uint64_t reserved[4];
};

/* ---- flows ---------------------------------------------------------------------------------- */

/* Anything but HF_OK is a failure, which hf_scope_fail() may explain. */
typedef enum hf_status hf_flow_fn(struct hf_scope *s, struct hf_flow_call *call,
                                  const struct hf_stored_event *event, void *user);
/* May change payload, content_type, meta, schema and time of the event, to what lives in the
 * scope. Changing anything else is HF_INVALID. */
typedef enum hf_status hf_flow_replace_fn(struct hf_scope *s, struct hf_flow_call *call,
                                          struct hf_stored_event *event, void *user);
/* The key of the queue in which a tree with this root is taken; absent or empty: the first one. */
typedef struct hf_str hf_flow_key_fn(const struct hf_flow_event *event, void *user);

/* What is done with events of one kind; everything but domain and type may be left out. */
struct hf_flow {
    struct hf_str domain, type;
    uint32_t schema;                      /* of its events now; default 1 */
    hf_upcast_fn *upcast;                 /* for stored events with a lower one: see aggregate.h */
    const struct hf_aggregate *aggregate; /* of its stream: hf_flow_state(); has to outlive the
                                             flows, and to be of this domain */
    hf_flow_fn *validate;                 /* the state is that in front of the event */
    hf_flow_replace_fn *pre_apply;        /* the same */
    hf_flow_fn *apply;                    /* the state is that with the event; hf_flow_write() */
    hf_flow_fn *cancel_apply;             /* undo an apply that has succeeded; cannot fail */
    hf_flow_fn *consequents;              /* hf_flow_emit() for each event that follows */
    hf_flow_fn *side_effect;              /* hf_flow_emit() for each event that it leads to */
    uint32_t effect_retries;              /* attempts after the first; default 0: none */
    hf_flow_fn *compensate;               /* hf_flow_emit() for each event that reverts it */
    hf_flow_key_fn *shard_key;            /* default: the id of the stream */
    void *user;                           /* handed to all of these */
    uint64_t reserved[4];
};

/*
 * Add an event: in `consequents`, `side_effect` and `compensate`; HF_INVALID elsewhere. What it
 * points to has to live in the scope. An event that reverts another is in the same stream by
 * default. HF_LIMIT: HF_FLOW_EVENTS_MAX.
 */
HF_API HF_NODISCARD enum hf_status hf_flow_emit(struct hf_scope *s, struct hf_flow_call *call,
                                                const struct hf_flow_event *event);

/*
 * Let something happen in the transaction that stores the tree: in `apply`; HF_INVALID elsewhere.
 * Copied as hf_tx_add() does; on the database of the store. All that the events of a tree write, and an
 * action for each of their side effects, goes into one transaction, which takes each item once and a
 * hundred actions: HF_LIMIT when the tree is stored. The one that makes the tree visible needs six of
 * them, and four more for each further stream. When a condition of such an action does not hold the
 * tree is canceled, with HF_TX_CANCELED.
 */
HF_API HF_NODISCARD enum hf_status hf_flow_write(struct hf_scope *s, struct hf_flow_call *call,
                                                 const struct hf_transact_write *action);

/* The state of the event's aggregate, and the version that it is at; NULL and 0 where the flow has
 * none, or in cancel_apply, side_effect and compensate. */
HF_API const void *hf_flow_state(const struct hf_flow_call *call);
HF_API uint64_t hf_flow_version(const struct hf_flow_call *call);

/*
 * The state of any aggregate, with what the tree has in store for it so far; the tree is stored on
 * the condition that nobody else changes it meanwhile. In a side effect, just as it is stored now.
 * Not in cancel_apply.
 */
HF_API HF_NODISCARD enum hf_status hf_flow_load(struct hf_scope *s, struct hf_flow_call *call,
                                                const struct hf_aggregate *aggregate,
                                                struct hf_str id,
                                                struct hf_aggregate_state *loaded);

/* From 1 on: which attempt of the side effect, or of the tree, this is. */
HF_API uint32_t hf_flow_attempt(const struct hf_flow_call *call);

/* Is this a replay (hf_flows_replay())? */
HF_API bool hf_flow_replaying(const struct hf_flow_call *call);

/* ---- observers ------------------------------------------------------------------------------ */

struct hf_flow_filter {
    struct hf_str domain; /* default any */
    struct hf_str type;   /* with "*" at its end: all that begin so; default any */
};

typedef enum hf_status hf_flow_observe_fn(struct hf_scope *s, const struct hf_stored_event *event,
                                          void *user);
typedef void hf_flow_observer_error_fn(const struct hf_stored_event *event,
                                       const struct hf_error *error, void *user);

/*
 * Called with every event that fits one of its filters, after it was stored. If it fails, on_error
 * is called; the events stay stored, and the result of hf_flows_submit() does not change. It is not
 * called for events that were stored before a crash: use subscriptions (subscribe.h) for that.
 */
struct hf_flow_observer {
    struct hf_str name;                   /* for messages; default none */
    const struct hf_flow_filter *filters; /* default: all events */
    size_t filters_len;
    int priority;         /* lower ones first, those of the same in their order; default 0 */
    bool fire_and_forget; /* nobody waits for it: by a thread of the flows, in the order of all that
                             it is called */
    hf_flow_observe_fn *observe;         /* required */
    hf_flow_observer_error_fn *on_error; /* default: the log of the env */
    void *user;                          /* handed to both */
    uint64_t reserved[4];
};

/* ---- what becomes of events ----------------------------------------------------------------- */

enum hf_flow_outcome {
    HF_FLOW_SUCCESS = 1,   /* stored */
    HF_FLOW_INVALID,       /* its validate, or an earlier step, has refused it */
    HF_FLOW_CANCELED,      /* not stored, as another event of its tree was refused, or storing
                              failed */
    HF_FLOW_REVERTED,      /* by hf_flows_revert() */
    HF_FLOW_REVERT_FAILED, /* reported for the root */
    HF_FLOW_EFFECT_DONE,
    HF_FLOW_EFFECT_RETRY,   /* failed, and will be retried */
    HF_FLOW_EFFECT_FAILED,  /* failed permanently: a dead letter */
    HF_FLOW_OBSERVED,       /* an observer has seen it */
    HF_FLOW_OBSERVER_FAILED /* an observer has failed at it */
};

struct hf_flow_output {
    enum hf_flow_outcome outcome;
    const struct hf_stored_event *event; /* as far as it has come: without version when it was not
                                            stored, without position and hash in any case */
    const struct hf_error *error;        /* of a failure; else NULL */
    uint32_t attempt;                    /* of the tree, or of the side effect */
    struct hf_str observer;              /* its name */
    uint64_t reserved[4];
};

/* Called by several threads at once, also while others wait: return soon. Attempts at
 * a tree that are repeated are not reported. */
typedef void hf_flow_output_fn(const struct hf_flow_output *output, void *user);

/* ---- the runtime ---------------------------------------------------------------------------- */

struct hf_flows_options {
    size_t size;                  /* set by HF_OPTIONS() */
    uint32_t partitions;          /* queues; default 1 */
    uint32_t depth_max;           /* levels of a tree; default HF_FLOW_DEPTH_MAX */
    uint32_t max_attempts;        /* at a tree, when others are faster; default HF_FLOW_ATTEMPTS */
    uint32_t shutdown_ms;         /* hf_flows_close(); default HF_FLOW_SHUTDOWN_MS */
    bool no_threads;              /* hf_flows_step() is called instead */
    bool no_effects;              /* side effects are stored here, and run by other processes */
    bool no_snapshots;            /* make none of the aggregates */
    hf_flow_output_fn *on_output; /* default: failures in the background go to the log of the env */
    void *user;                   /* handed to it */
    const struct hf_relay_options *relay; /* how side effects are run: workers, backoff, lease,
                                             max_crashes (default HF_FLOW_CRASHES: one that ends
                                             its process is a dead letter then) and so on, without
                                             max_attempts, on_ended, on_error,
                                             dry_run, only_type, only_key, only_tenant and
                                             no_threads, which are the flows' own */
};

/*
 * Flows over that store, with side effects in that outbox, which is on the same database, has no
 * other use, and may be NULL when no flow has a side effect; both have to outlive the flows.
 * Descriptions and their texts are copied.
 *
 * HF_INVALID      a flow has no domain or type, an aggregate of another domain, or a side effect
 *                 without an outbox; an observer has no function; an option is invalid. The message
 *                 names it
 * HF_DUPLICATE    two flows are for the same domain and type
 * HF_UNSUPPORTED  the store lacks an ability that a flow needs; the message says which
 * HF_LIMIT        the system has no threads
 */
HF_API HF_NODISCARD enum hf_status
hf_flows_open(struct hf_scope *s, struct hf_events *store, struct hf_outbox *outbox,
              const struct hf_flow *flows, size_t flows_len,
              const struct hf_flow_observer *observers, size_t observers_len,
              const struct hf_flows_options *options, struct hf_flows **out);

/*
 * Accept no more events (HF_CANCELED), finish those that wait or are in flight, then running side
 * effects, then observers; within timeout_ms (0: HF_FLOW_SHUTDOWN_MS) and the deadline of the
 * scope. HF_TIMEOUT: not all have ended; posted events that were not begun are reported as
 * HF_CANCELED, and others run the side effects again. Can be called again.
 */
HF_API HF_NODISCARD enum hf_status hf_flows_shutdown(struct hf_scope *s, struct hf_flows *flows,
                                                     uint32_t timeout_ms);

/* Shuts it down first, and waits for running functions as long as that takes. NULL is
 * accepted. */
HF_API void hf_flows_close(struct hf_flows *flows);

struct hf_submit_options {
    size_t size;                          /* set by HF_OPTIONS() */
    const struct hf_stored_event *parent; /* what led to it: causation and correlation; default none
                                           */
};

struct hf_flow_result {
    const struct hf_stored_event *events; /* the tree, root first, in the order in which they were
                                             created; without position and hash */
    size_t events_len;
    uint32_t attempts;
    bool repeated; /* an event with that id was stored before: these are its tree as it was stored
                      then, as far as it has the ids that were made, and nothing was done */
    uint64_t reserved[4];
};

/*
 * Take an event and all that follows from it through the flows, and store them. Waits until those
 * before it are done, on the caller's thread. An event that has an id is stored once: after a
 * failure that may have happened, the same call finds out. Not inside of functions of flows
 * (hf_flow_emit() is for these), or of observers that are waited for: HF_INVALID. Not in a
 * transaction of the scope, as it is one by itself: HF_INVALID.
 *
 * HF_NOT_FOUND  there is no flow for that domain and type
 * HF_LIMIT      the tree is too deep, as in a circle, or has too many events, streams or writes
 * HF_CONDITION  others were faster each time
 * HF_CANCELED   the flows are shut down
 * HF_TIMEOUT    those before it were not done in time
 * and what its functions and hf_events_append() fail with: then nothing was stored. `result` may be
 * NULL.
 */
HF_API HF_NODISCARD enum hf_status hf_flows_submit(struct hf_scope *s, struct hf_flows *flows,
                                                   const struct hf_flow_event *event,
                                                   const struct hf_submit_options *options,
                                                   struct hf_flow_result *result);

/* The result of a posted event; called on the thread of its queue, which waits. */
typedef void hf_flow_posted_fn(const struct hf_flow_result *result, const struct hf_error *error,
                               void *user);

/*
 * The same without waiting: the event is copied, and a thread handles it after those before it.
 * Events of one queue are handled in the order in which they were submitted and posted. `done` may
 * be NULL. Posted events that were not begun are lost when the process ends. Any thread, and also
 * functions of flows. HF_CANCELED, HF_LIMIT: no thread.
 */
HF_API HF_NODISCARD enum hf_status hf_flows_post(struct hf_scope *s, struct hf_flows *flows,
                                                 const struct hf_flow_event *event,
                                                 hf_flow_posted_fn *done, void *user);

/* With no_threads: do what was posted, the calls of observers, and what the relay has to do;
 * *next_ms is after how long there may be more. */
HF_API HF_NODISCARD enum hf_status hf_flows_step(struct hf_scope *s, struct hf_flows *flows,
                                                 uint32_t *next_ms);

/* The queue of that shard key, from 0 on. The hash does not change. */
HF_API uint32_t hf_flows_partition(const struct hf_flows *flows, struct hf_str key);

/* Its relay, for metrics, pause and resume; NULL: it has none. */
HF_API struct hf_relay *hf_flows_relay(struct hf_flows *flows);

/* ---- reading -------------------------------------------------------------------------------- */

/* As hf_events_read() and hf_events_get(), with events in their current form. */
HF_API HF_NODISCARD enum hf_status hf_flows_read(struct hf_scope *s, struct hf_flows *flows,
                                                 struct hf_event_stream_key stream,
                                                 const struct hf_events_read_options *options,
                                                 struct hf_events_page *page);
HF_API HF_NODISCARD enum hf_status hf_flows_get(struct hf_scope *s, struct hf_flows *flows,
                                                struct hf_str id, struct hf_stored_event *event);

/* ---- replay --------------------------------------------------------------------------------- */

/* Called once before the first event of all, not when a replay goes on: empty what is rebuilt. */
typedef enum hf_status hf_replay_reset_fn(struct hf_scope *s, void *user);
/* An apply has failed. HF_OK: go on behind it. */
typedef enum hf_status hf_replay_error_fn(struct hf_scope *s, const struct hf_stored_event *event,
                                          const struct hf_error *error, void *user);

struct hf_replay_options {
    size_t size;              /* set by HF_OPTIONS() */
    struct hf_str checkpoint; /* a name: how far it has come is kept, together with what `apply`
                                 writes, and the next replay of that name goes on behind it.
                                 Default none */
    bool restart;             /* from the first event on, whatever the checkpoint says */
    struct hf_str after;      /* without a checkpoint: behind that position */
    struct hf_str until;      /* up to that position; default the last one */
    struct hf_str domain;     /* only of that domain; default all */
    bool no_apply;
    bool no_observers;
    uint32_t page;                      /* events that are read at once; default HF_FLOW_PAGE */
    hf_replay_reset_fn *reset;          /* default none */
    hf_replay_error_fn *on_error;       /* default: the replay ends, in front of that event */
    hf_events_progress_fn *on_progress; /* after each page; default none */
    void *user;                         /* handed to these */
};

struct hf_replayed {
    uint64_t events;        /* that were read */
    uint64_t applied;       /* whose apply was called, */
    uint64_t failed;        /* and has failed */
    uint64_t observed;      /* calls of observers */
    struct hf_str position; /* behind which it would go on; absent: there was nothing */
    uint64_t reserved[4];
};

/*
 * Take stored events, in the global order, through upcast, apply and observers, which are waited
 * for all of them. Nothing is validated, nothing is appended, no side effects are run; events
 * without a flow go to observers. With a checkpoint each event's writes are done once, however
 * often the replay is interrupted; without, an event whose writes were done may be replayed again.
 * Failures of observers are reported, and change nothing. *replayed (may be NULL) is set also when
 * it fails.
 *
 * HF_LOST    another replay has taken that checkpoint over
 * HF_IN_USE  other replays take it all the time
 * and what `apply`, `reset` and reading fail with.
 */
HF_API HF_NODISCARD enum hf_status hf_flows_replay(struct hf_scope *s, struct hf_flows *flows,
                                                   const struct hf_replay_options *options,
                                                   struct hf_replayed *replayed);

/* ---- revert --------------------------------------------------------------------------------- */

/* An event that prevents the revert. */
struct hf_revert_obstacle {
    struct hf_stored_event event;
    struct hf_str why; /* such as "the flow order/placed has no compensate" */
    uint64_t reserved[4];
};

struct hf_revert_check {
    bool can;
    const struct hf_revert_obstacle *obstacles; /* in the order of the tree */
    size_t obstacles_len;
    uint64_t reserved[4];
};

/*
 * Can the tree of that event be reverted? It has to be a root (no event has caused it), and each
 * event of the tree needs a flow with `compensate`. HF_NOT_FOUND: there is no such event.
 */
HF_API HF_NODISCARD enum hf_status hf_flows_can_revert(struct hf_scope *s, struct hf_flows *flows,
                                                       struct hf_str id,
                                                       struct hf_revert_check *check);

struct hf_revert_preview {
    struct hf_stored_event root;
    const struct hf_stored_event *descendants; /* in the order of the tree */
    size_t descendants_len;
    size_t count;    /* of events that would be reverted now, with the root */
    size_t reverted; /* of those that were reverted already */
    uint64_t reserved[4];
};

/* What would be reverted; events that revert others are not part of it. HF_INVALID: it is no
 * root. HF_NOT_FOUND. */
HF_API HF_NODISCARD enum hf_status hf_flows_preview_revert(struct hf_scope *s,
                                                           struct hf_flows *flows, struct hf_str id,
                                                           struct hf_revert_preview *preview);

/* The events that revert an event, and those of its children. */
struct hf_reverted {
    struct hf_str id;                     /* of the event that was reverted */
    const struct hf_stored_event *events; /* that revert it */
    size_t events_len;
    const struct hf_reverted *children; /* newest first */
    size_t children_len;
    bool repeated; /* it was reverted before */
    uint64_t reserved[4];
};

/*
 * Revert a tree: `compensate` is called for its events, newest first and children before their
 * parents, and all events that it emits are appended, in that order in each stream, all or nothing.
 * They have `compensates` and causation = the id of the reverted event, its correlation, and ids
 * derived from it (ID.r1, ID.r2). So a second call, or one at the same time, returns the result of
 * the first; it also reverts events that have joined the tree meanwhile. Where they have a flow its
 * apply is called, with hf_flow_write(), and observers are called; they are not validated, and have
 * no consequents and no side effects.
 *
 * HF_UNSUPPORTED  it cannot be reverted: hf_flows_can_revert() lists why
 * HF_INVALID      it is no root
 * HF_NOT_FOUND    there is no such event
 * and what `compensate`, `apply` and hf_events_append() fail with: then nothing was stored.
 * `reverted` may be NULL.
 */
HF_API HF_NODISCARD enum hf_status hf_flows_revert(struct hf_scope *s, struct hf_flows *flows,
                                                   struct hf_str id, struct hf_reverted *reverted);

#ifdef __cplusplus
}
#endif

#endif
