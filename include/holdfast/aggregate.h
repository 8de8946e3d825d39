/*
 * Aggregates: state that is built from the events of a stream, and commands that are decided on it.
 *
 *     struct account { int64_t cents; };
 *
 *     static enum hf_status evolve(struct hf_scope *s, void *state,
 *                                  const struct hf_stored_event *event, void *user)
 *     {
 *         ((struct account *)state)->cents += amount_of(event);
 *         return HF_OK;
 *     }
 *     static const struct hf_aggregate accounts = {.domain = HF_STR_INIT("account"),
 *                                                  .state_size = sizeof(struct account),
 *                                                  .evolve = evolve};
 *
 *     static enum hf_status withdraw(struct hf_scope *s, const void *state,
 *                                    struct hf_decision *decision, void *user)
 *     {
 *         struct hf_new_event event = {.type = HF_STR("withdrawn")};
 *
 *         if (((const struct account *)state)->cents < 500)
 *             return hf_scope_fail(s, HF_CONDITION, "there is not enough");
 *         return hf_decision_emit(s, decision, &event);
 *     }
 *     ...
 *     if (hf_aggregate_handle(s, store, &accounts, HF_STR("7"),
 *                             &(struct hf_command){.decide = withdraw}, NULL, &handled) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * The events of a command are appended on the condition that the stream is still at the version
 * that was read. So two commands never decide on the same state: the second one reads and decides
 * again.
 *
 * Snapshots save reading. They are made now and then, at best effort, after the events are stored;
 * a snapshot of another form, or of another stream of that name, is passed over, and an older one
 * never replaces a newer one.
 *
 * All functions of an aggregate are called on the caller's thread with the caller's scope: what the
 * state is to keep is copied into that (hf_scope_copy()), as events are gone after the call.
 */
#ifndef HOLDFAST_AGGREGATE_H
#define HOLDFAST_AGGREGATE_H

#include <holdfast/base.h>
#include <holdfast/events.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HF_AGGREGATE_SNAPSHOT_EVERY = 100, /* events */
    HF_AGGREGATE_ATTEMPTS = 10,
    HF_AGGREGATE_EVENTS_MAX = 1000, /* of one command */
    HF_AGGREGATE_NAME_MAX = 255,    /* bytes */
    HF_UPCAST_STEPS_MAX = 1000      /* that one event is brought up by */
};

/* ---- upcasting ------------------------------------------------------------------------------ */

/*
 * Bring an event, as it was stored with schema `from`, to the form of from + 1, in place; what it
 * points to then lives in the scope. To go further in one step, set event->schema to what it is
 * then. Doing nothing is fine too: it counts as from + 1. A type that has been renamed is brought
 * on by the function of its new type. The stored event stays as it is.
 */
typedef enum hf_status hf_upcast_fn(struct hf_scope *s, struct hf_stored_event *event,
                                    uint32_t from, void *user);

/* For events of one type whose schema is lower than the current one. */
struct hf_upcast {
    struct hf_str type;
    uint32_t schema; /* the current one */
    hf_upcast_fn *upcast;
    void *user; /* handed to it */
    uint64_t reserved[4];
};

/*
 * The event in its current form: one step after the other while there is a function for its type
 * and its schema is lower. HF_LIMIT: that does not come to an end; the message names the event. And
 * what such a function fails with.
 */
HF_API HF_NODISCARD enum hf_status hf_event_upcast(struct hf_scope *s,
                                                   const struct hf_upcast *upcasts, size_t len,
                                                   struct hf_stored_event *event);

/* ---- aggregates ----------------------------------------------------------------------------- */

/* Any failure ends the call that it happens in, and is what that returns. */
typedef enum hf_status hf_aggregate_init_fn(struct hf_scope *s, void *state,
                                            struct hf_event_stream_key stream, void *user);
typedef enum hf_status hf_aggregate_evolve_fn(struct hf_scope *s, void *state,
                                              const struct hf_stored_event *event, void *user);
typedef enum hf_status hf_aggregate_validate_fn(struct hf_scope *s, const void *state,
                                                const struct hf_stored_event *event, void *user);
/* State as an item in the scope, and back. `state` was initialised. */
typedef enum hf_status hf_aggregate_save_fn(struct hf_scope *s, const void *state,
                                            struct hf_item *item, void *user);
typedef enum hf_status hf_aggregate_restore_fn(struct hf_scope *s, struct hf_item item, void *state,
                                               void *user);

/* Lives as long as it is used; the library keeps nothing of it. */
struct hf_aggregate {
    struct hf_str domain;            /* of its streams; required */
    struct hf_str name;              /* for snapshots, where several aggregates have one domain;
                                        default none */
    size_t state_size;               /* bytes of a state; required */
    hf_aggregate_init_fn *init;      /* default: all bytes are 0 */
    hf_aggregate_evolve_fn *evolve;  /* required */
    hf_aggregate_validate_fn *check; /* of each event that a command decides on, with the state in
                                        front of it; default: all are fine */
    hf_aggregate_save_fn *save;      /* both or none; default: no snapshots */
    hf_aggregate_restore_fn *restore;
    uint32_t snapshot_schema;        /* of what `save` makes: another one does not fit; default 1 */
    uint32_t snapshot_every;         /* events from one to the next; default
                                        HF_AGGREGATE_SNAPSHOT_EVERY */
    const struct hf_upcast *upcasts; /* default none */
    size_t upcasts_len;
    void *user; /* handed to all of these */
    uint64_t reserved[4];
};

struct hf_aggregate_state {
    void *state;       /* state_size bytes, in the scope */
    uint64_t version;  /* of the last event in it; 0: the stream has none */
    uint64_t snapshot; /* version of the snapshot that it was begun with; 0: none */
    uint64_t read;     /* events that were read */
    uint64_t reserved[4];
};

/*
 * The state as it is now, or as it was at `version` (0: now). A stream without events gives what
 * `init` makes, at version 0.
 *
 * HF_INVALID    the description lacks something; the message says what
 * HF_NOT_FOUND  the stream has not got to that version yet
 * HF_TRIMMED    events were truncated that no snapshot stands for
 * HF_DELETED       the stream was deleted
 * and what its functions fail with.
 */
HF_API HF_NODISCARD enum hf_status hf_aggregate_load(struct hf_scope *s, struct hf_events *store,
                                                     const struct hf_aggregate *aggregate,
                                                     struct hf_str id, uint64_t version,
                                                     struct hf_aggregate_state *loaded);

/* ---- commands ------------------------------------------------------------------------------- */

struct hf_decision; /* what a command has decided so far */

/* An event of the aggregate's stream. What it points to has to live until the command was handled:
 * as it does in the scope. HF_LIMIT: more than HF_AGGREGATE_EVENTS_MAX. */
HF_API HF_NODISCARD enum hf_status hf_decision_emit(struct hf_scope *s,
                                                    struct hf_decision *decision,
                                                    const struct hf_new_event *event);

/* Something that happens in the same transaction: an inline projection, an event of an outbox.
 * Copied as hf_tx_add() does. HF_LIMIT: more than a transaction holds. */
HF_API HF_NODISCARD enum hf_status hf_decision_write(struct hf_scope *s,
                                                     struct hf_decision *decision,
                                                     const struct hf_transact_write *action);

/* The version that it decides on. */
HF_API uint64_t hf_decision_version(const struct hf_decision *decision);

/* May the command be decided at all? Anything but HF_OK is what handling it returns. */
typedef enum hf_status hf_precondition_fn(struct hf_scope *s, const void *state, uint64_t version,
                                          void *user);
/* Which events follow? None is fine. Called again, with another state, when others were faster. */
typedef enum hf_status hf_decide_fn(struct hf_scope *s, const void *state,
                                    struct hf_decision *decision, void *user);

struct hf_command {
    hf_precondition_fn *precondition; /* default: it may */
    hf_decide_fn *decide;             /* required */
    void *user;                       /* handed to both */
    uint64_t reserved[4];
};

/* A snapshot could not be made; the events are stored all the same. */
typedef void hf_snapshot_error_fn(const struct hf_error *error, struct hf_event_stream_key stream,
                                  void *user);

struct hf_handle_options {
    size_t size;      /* set by HF_OPTIONS() */
    struct hf_str id; /* of the command: its events are ID.1, ID.2 and so on, unless they have ids,
                          and a command that was handled before is not repeated; default none */
    uint32_t max_attempts; /* at deciding, when others are faster; default HF_AGGREGATE_ATTEMPTS */
    const struct hf_stored_event *parent; /* what led to it: see hf_append_options */
    hf_snapshot_error_fn *on_error;       /* default: the log of the env */
    void *user;                           /* handed to it */
    bool no_snapshot;                     /* make none */
    bool join_tx;                         /* become part of the transaction of the scope, if it has
                                             one of this database */
};

struct hf_handled {
    void *state;                          /* with the new events; in the scope */
    uint64_t version;                     /* of the stream */
    const struct hf_stored_event *events; /* that were appended; without position and hash */
    size_t events_len;
    uint32_t attempts; /* how often it was decided */
    bool repeated;     /* it was handled before: `events` are those of then, and nothing was done */
    bool snapshot;     /* one was made */
    uint64_t reserved[4];
};

/*
 * Load the state, ask the precondition, decide, check each event and let the state evolve, append
 * them all or none with the exact version, make a snapshot when it is time. When others have
 * appended meanwhile all of it is done again, after a little while.
 *
 * With join_tx, when the scope has a transaction on this database, the events are added to that
 * one: it is canceled at its commit if others are faster, and no snapshot is made.
 *
 * HF_CONDITION  others were faster each time; the message says so. And the usual answer of a
 *               precondition that does not hold
 * HF_INVALID    the id of the stream is empty; the description lacks something
 * and what the functions, hf_aggregate_load() and hf_events_append() fail with. `handled` may be
 * NULL.
 */
HF_API HF_NODISCARD enum hf_status hf_aggregate_handle(struct hf_scope *s, struct hf_events *store,
                                                       const struct hf_aggregate *aggregate,
                                                       struct hf_str id,
                                                       const struct hf_command *command,
                                                       const struct hf_handle_options *options,
                                                       struct hf_handled *handled);

/* ---- snapshots ------------------------------------------------------------------------------ */

struct hf_snapshot {
    uint64_t version;    /* of the stream */
    uint32_t schema;     /* of the state's form; default 1 */
    struct hf_item item; /* the state */
    int64_t time_us;     /* when it was made; saving: now */
    uint64_t reserved[4];
};

/*
 * Snapshots by hand; `name` is that of the aggregate (absent: none). Saving one that is older than
 * what is there (a lower version, or the same and not a higher schema) changes nothing: *saved
 * (may be NULL) is false then. HF_NOT_FOUND: there is none. Deleting one that is not there is no
 * failure. HF_INVALID: version 0, no item.
 */
HF_API HF_NODISCARD enum hf_status
hf_snapshot_save(struct hf_scope *s, struct hf_events *store, struct hf_event_stream_key stream,
                 struct hf_str name, const struct hf_snapshot *snapshot, bool *saved);
HF_API HF_NODISCARD enum hf_status hf_snapshot_get(struct hf_scope *s, struct hf_events *store,
                                                   struct hf_event_stream_key stream,
                                                   struct hf_str name,
                                                   struct hf_snapshot *snapshot);
HF_API HF_NODISCARD enum hf_status hf_snapshot_delete(struct hf_scope *s, struct hf_events *store,
                                                      struct hf_event_stream_key stream,
                                                      struct hf_str name);

#ifdef __cplusplus
}
#endif

#endif
