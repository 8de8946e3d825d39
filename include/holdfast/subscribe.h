/*
 * Following an event store (events.h): subscriptions, projections, groups of consumers.
 *
 *     enum hf_status seen(struct hf_scope *s, const struct hf_stored_event *event, void *user);
 *
 *     struct hf_subscribe_options *options = HF_OPTIONS(hf_subscribe_options, .each = seen);
 *     struct hf_subscription *mailer;
 *
 *     if (hf_subscribe(s, store, HF_STR("mailer"), options, &mailer) != HF_OK ||
 *         hf_subscription_start(s, mailer) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_scope_timeout_ms(s, 10000); // what is in flight may finish until then
 *     if (hf_subscription_stop(s, mailer) != HF_OK)
 *         puts(hf_scope_error_text(s));
 *     hf_subscription_close(mailer);
 *
 * A subscription calls a function for events, in the global order or of one stream: first for
 * existing ones, then for new ones. Its checkpoint is stored under its name, and never passes an
 * event that was not handled: each event is handled at least once, and may come again after a
 * crash. One process at a time runs a name, by a lease; another takes over when it is silent for a
 * whole lease, by its own clock. A process that was replaced cannot move the checkpoint any more.
 *
 * A projection is a subscription whose function adds its writes to a transaction, which also moves
 * the checkpoint: each event takes effect exactly once. It can be built again from the first event.
 *
 * A group has any number of consumers, in any number of processes, that share the events: each
 * event goes to one of them, which says what became of it. It has an outbox of its own (outbox.h),
 * which a subscription feeds.
 *
 * Any thread may use what is in here, unless it says something else.
 */
#ifndef HOLDFAST_SUBSCRIBE_H
#define HOLDFAST_SUBSCRIBE_H

#include <holdfast/base.h>
#include <holdfast/events.h>
#include <holdfast/outbox.h>
#include <holdfast/scope.h>
#include <holdfast/tx.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

enum {
    HF_SUBSCRIPTION_NAME_MAX = 255, /* bytes */
    HF_SUBSCRIPTION_BATCH_MAX = 10000,
    HF_SUBSCRIPTION_CANCEL_MS = 1000 /* within which a function that was canceled has to return */
};

/* ---- subscriptions -------------------------------------------------------------------------- */

struct hf_subscription;

/* Handle one event, or events in their order. HF_OK: they were. Anything else: they come again
 * later; hf_scope_fail() says why. The scope is canceled when the subscription has to end. */
typedef enum hf_status hf_event_fn(struct hf_scope *s, const struct hf_stored_event *event,
                                   void *user);
typedef enum hf_status hf_event_batch_fn(struct hf_scope *s, const struct hf_stored_event *events,
                                         size_t len, void *user);

/* Add to `tx` what the event leads to: writes, or what joins a transaction (hf_outbox_emit_into());
 * `tx` is the scope's too. Anything but HF_OK: nothing happens, and it comes again. */
typedef enum hf_status hf_project_fn(struct hf_scope *s, struct hf_tx *tx,
                                     const struct hf_stored_event *event, void *user);

/* Remove what the projection has built: it starts over. May be called again when it failed, or when
 * the process died before that was noted. Who is stopped in here for longer than a lease, and then
 * goes on, removes what its successor has built: hf_subscription_fence() is for that. */
typedef enum hf_status hf_project_reset_fn(struct hf_scope *s, void *user);

/* An event was tried as often as it may be. That its payload is gone counts as having tried it. */
enum hf_give_up {
    HF_GIVE_UP_STOP = 1, /* the subscription stops, in front of it; the default */
    HF_GIVE_UP_PARK      /* it is parked (hf_subscription_parked()), and the next one is handled */
};

enum hf_subscription_event {
    HF_SUBSCRIPTION_FAILED = 1, /* an attempt failed, and there will be another */
    HF_SUBSCRIPTION_PARKED,
    HF_SUBSCRIPTION_STOPPED, /* an event, or the database, failed permanently */
    HF_SUBSCRIPTION_TROUBLE, /* the database cannot be reached now, say; it goes on later */
    HF_SUBSCRIPTION_TAKEN,   /* the lease is ours */
    HF_SUBSCRIPTION_LOST,    /* the lease is another's by now, or ended */
    HF_SUBSCRIPTION_STUCK    /* a function has not returned after stuck_ms; the first event of it.
                                Called by the thread that renews the lease */
};

/* Called by the thread that works. `event` is NULL when it is not about one; `error` has HF_OK when
 * there is none. */
typedef void hf_subscription_notice_fn(enum hf_subscription_event what,
                                       const struct hf_stored_event *event,
                                       const struct hf_error *error, void *user);

struct hf_subscribe_options {
    size_t size; /* set by HF_OPTIONS() */

    hf_event_fn *each;        /* one of these three: */
    hf_event_batch_fn *batch; /* the same for up to batch_max events at once, */
    hf_project_fn *project;   /* or a projection */

    struct hf_event_stream_key stream; /* only that stream; default: the global order */
    struct hf_str domain;              /* of all: only of that domain, */
    struct hf_str type;                /* and of that type, or with "*" at its end; default all */
    bool archived;                     /* of all: with events of archived streams */

    enum hf_start start; /* where there is no checkpoint yet */
    struct hf_str after; /* HF_START_AFTER: a position; of a stream the version, as digits */
    int64_t from_us;     /* HF_START_TIME: not of a single stream */

    uint32_t batch_max;      /* events that are handed over at once, or that a projection has in one
                                transaction; default 100, of a projection 1. More than one is tried
                                one by one when they do not fit together */
    uint32_t checkpoint_ms;  /* the checkpoint is written at most so often, and when there is
                                nothing to do; default 1000. Not of projections */
    uint32_t poll_ms;        /* how often it looks when nothing wakes it; default 1000 */
    uint32_t max_attempts;   /* of an event; and how often it may end its process, counted from the
                                second time on; default 10 */
    uint32_t backoff_ms;     /* before the second one, doubled then; default 100 */
    uint32_t backoff_max_ms; /* default 30000 */
    enum hf_give_up give_up;
    uint32_t timeout_ms;        /* deadline of the scope of a function; default none */
    uint32_t lease_ms;          /* silence after which others may take over; default 20000 */
    uint32_t settle_ms;         /* as of hf_events_all_options */
    struct hf_str owner;        /* our name in lists; default "HOST/PROCESS-ID" */
    hf_project_reset_fn *reset; /* of a projection; default: there is nothing to remove */
    hf_subscription_notice_fn *on_notice;
    void *user; /* handed to all functions */

    /* hf_subscription_step() is called instead of hf_subscription_start(), and the lease is renewed
     * between calls of the handler: one that takes longer than a lease loses it. */
    bool no_threads;

    bool no_payload; /* leave payloads of the blob store where they are */

    /*
     * A function that has not returned after stuck_ms is reported (HF_SUBSCRIPTION_STUCK, and the
     * log of the env), counted, and dealt with as `stuck` says. HF_STUCK_GIVE_UP parks the event
     * and gives the lease back; of several events in one call nobody knows which it is, so whoever
     * takes over hands them over one by one. What the function says later changes nothing. Not
     * without threads, where nobody could look.
     */
    uint32_t stuck_ms; /* default ten times timeout_ms, or 300000 */
    enum hf_stuck stuck;
};

/*
 * A subscription of that name; it does nothing yet. `store` has to outlive it.
 *
 * HF_INVALID  no function or several, no name or too long a one, or options that exclude each other
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_subscribe(struct hf_scope *s, struct hf_events *store,
                                                struct hf_str name,
                                                const struct hf_subscribe_options *options,
                                                struct hf_subscription **subscription);

/* Stops it first, without waiting for what is under way to succeed. NULL is accepted. */
HF_API void hf_subscription_close(struct hf_subscription *subscription);

/* Begin, with threads of its own; again after it has stopped. HF_IN_USE: it runs already. HF_LIMIT:
 * no threads. */
HF_API HF_NODISCARD enum hf_status hf_subscription_start(struct hf_scope *s,
                                                         struct hf_subscription *subscription);

/*
 * Begin no more events, let what is in flight finish until the deadline of the scope, write the
 * checkpoint, and release the lease. Without a deadline it waits forevery function.
 *
 * HF_TIMEOUT: a function had to be canceled; its events come again. It returns within four seconds
 * of the deadline, or a lease later while the database does not answer, even if a function ignores
 * the cancellation: HF_SUBSCRIPTION_CANCEL_MS after that the lease is released, what the function
 * says from then on changes nothing, and the error says so. Its thread still runs: another
 * hf_subscription_stop() waits for it again, hf_subscription_close() waits until it returns, and
 * until then hf_subscription_start() is HF_IN_USE.
 *
 * HF_INVALID: it was called by a function of the subscription.
 */
HF_API HF_NODISCARD enum hf_status hf_subscription_stop(struct hf_scope *s,
                                                        struct hf_subscription *subscription);

/*
 * With no_threads: do what is to be done now, a batch at most; *next_ms is after how long there may
 * be more.
 *
 * HF_LOCKED   another has the lease; it is tried again by the next call
 * HF_IN_USE   it has threads of its own
 * HF_STOPPED  it stopped, as an event was given up: the message has its last failure
 *
 * Others are what the database fails with; the next call tries again.
 */
HF_API HF_NODISCARD enum hf_status
hf_subscription_step(struct hf_scope *s, struct hf_subscription *subscription, uint32_t *next_ms);

/* For one that was not started: handle all there is, waiting for attempts that are due later, until
 * it has caught up, or the deadline. The lease is kept. *handled (may be NULL) is how many.
 * HF_LOCKED, HF_IN_USE and HF_STOPPED as above. */
HF_API HF_NODISCARD enum hf_status
hf_subscription_drain(struct hf_scope *s, struct hf_subscription *subscription, uint64_t *handled);

/* Higher than that of every earlier holder of the lease, for what refuses a lower one than it has
 * seen; 0 when the lease is not ours. */
HF_API uint64_t hf_subscription_fence(struct hf_subscription *subscription);

enum hf_subscription_state {
    HF_SUBSCRIPTION_IDLE = 1, /* was not started, or was stopped */
    HF_SUBSCRIPTION_WAITING,  /* another has the lease */
    HF_SUBSCRIPTION_CATCHING_UP,
    HF_SUBSCRIPTION_LIVE,   /* all there was has been handled */
    HF_SUBSCRIPTION_GAVE_UP /* an event failed too often */
};

struct hf_subscription_metrics {
    enum hf_subscription_state state;
    uint64_t handled;     /* events that were */
    uint64_t failures;    /* calls of a function that failed, and transactions */
    uint64_t parked;      /* events */
    uint64_t replayed;    /* parked events that were handled in the end */
    uint64_t checkpoints; /* that were written, or moved by transactions */
    uint64_t lost;        /* how often another took the lease over */
    uint64_t fence;       /* 0: the lease is not ours */
    int64_t lag_ms;       /* how long ago the last event that was handled had been appended, when it
                             was; 0: has caught up. By our clock and that of who appended */
    uint64_t stuck;       /* calls of a function that have not returned for stuck_ms, now */
    uint64_t stuck_total; /* and ever */
    uint64_t reserved[8];
};

/* Any thread. Does not fail. */
HF_API void hf_subscription_metrics(struct hf_subscription *subscription,
                                    struct hf_subscription_metrics *metrics);

/* ---- what is stored about them -------------------------------------------------------------- */

struct hf_subscription_info {
    struct hf_str name;
    struct hf_str checkpoint; /* absent: at the start. Of a stream the version, as digits */
    struct hf_str owner;      /* who has the lease; absent: nobody. May be gone */
    uint64_t fence;
    uint64_t handled;      /* by all who ever had it, up to the checkpoint */
    int64_t moved_us;      /* when the checkpoint was written, by the owner's clock */
    bool rebuild;          /* it has to be rebuilt, and has not begun yet */
    uint64_t parked;       /* parked events */
    struct hf_str failure; /* why it gave up; absent: it did not */
    uint64_t reserved[4];
};

/* HF_NOT_FOUND: nobody ever ran it. */
HF_API HF_NODISCARD enum hf_status hf_subscription_info(struct hf_scope *s, struct hf_events *store,
                                                        struct hf_str name,
                                                        struct hf_subscription_info *info);

/*
 * Let it start over: whoever has its lease, here or elsewhere, or takes it next, calls the reset
 * function, if there is one, forgets the checkpoint and what was parked, and starts from the first
 * event (`after` absent) or behind that position; of a stream, that version. Nothing of before
 * counts then. HF_NOT_FOUND: as above. HF_INVALID: `after` is the wrong one of the two; when it has
 * no checkpoint yet that is not known here, and whoever has its lease fails with it, with nothing
 * done, until this is called once more.
 */
HF_API HF_NODISCARD enum hf_status hf_subscription_rebuild(struct hf_scope *s,
                                                           struct hf_events *store,
                                                           struct hf_str name, struct hf_str after);

/* Forget it: its checkpoint, its lease, what was parked. It is not running. */
HF_API HF_NODISCARD enum hf_status
hf_subscription_forget(struct hf_scope *s, struct hf_events *store, struct hf_str name);

struct hf_parked {
    struct hf_str position; /* names it */
    struct hf_event_stream_key stream;
    uint64_t version;
    struct hf_str type;
    enum hf_status error; /* of its last attempt */
    struct hf_str error_text;
    uint32_t attempts;
    int64_t parked_us;
    bool replay; /* it was asked to be handled again, and waits for that */
    uint64_t reserved[4];
};

struct hf_parked_list {
    const struct hf_parked *events; /* in the order of positions, in the scope */
    size_t events_len;
    struct hf_str next; /* `after` of the next call; absent at the end */
    uint64_t reserved[4];
};

/* Parked events. limit 0: 100. */
HF_API HF_NODISCARD enum hf_status
hf_subscription_parked(struct hf_scope *s, struct hf_events *store, struct hf_str name,
                       struct hf_str after, uint32_t limit, struct hf_parked_list *list);

/* Let these (NULL: all) be handled again by the process that runs it, once: what fails then is
 * parked again. The checkpoint stays where it is. *done (may be NULL) is how many. HF_NOT_FOUND:
 * one is not there; the message names it, and the others are done. */
HF_API HF_NODISCARD enum hf_status
hf_subscription_replay(struct hf_scope *s, struct hf_events *store, struct hf_str name,
                       const struct hf_str *positions, size_t len, uint64_t *done);

/* Do not handle these (NULL: all) at all. As above. */
HF_API HF_NODISCARD enum hf_status
hf_subscription_discard(struct hf_scope *s, struct hf_events *store, struct hf_str name,
                        const struct hf_str *positions, size_t len, uint64_t *done);

/* ---- projections inside of an append -------------------------------------------------------- */

/*
 * Add to a transaction what `project` adds for events that are to be appended in it: the projection
 * changes with the append, or not at all. `project` gets the events as they will be; positions are
 * not known yet, and absent; so are versions (0) unless HF_EXPECT_VERSION or HF_EXPECT_NONE says
 * them; ids, times and correlations are what the caller gave.
 *
 *     if (hf_project_into(s, store, tx, totals, NULL, &append, 1) != HF_OK ||
 *         hf_events_append_into(s, store, tx, &append, 1, NULL, NULL) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * HF_LIMIT: there is too much for a transaction. HF_INVALID: it is on another database. And what
 * `project` fails with; nothing is added then.
 */
HF_API HF_NODISCARD enum hf_status hf_project_into(struct hf_scope *s, struct hf_events *store,
                                                   struct hf_tx *tx, hf_project_fn *project,
                                                   void *user, const struct hf_append *appends,
                                                   size_t len);

/* ---- groups of consumers -------------------------------------------------------------------- */

struct hf_group;

/* A handler has not returned after stuck_ms: the stream, version and type of the event that it has,
 * and for how long. On a thread of the library. */
typedef void hf_group_stuck_fn(const struct hf_stored_event *event, uint64_t for_ms, void *user);

struct hf_group_options {
    size_t size; /* set by HF_OPTIONS() */
    /*
     * Events of one stream are handled one after the other, those of different streams side by
     * side; by a handler only. Default: each event for itself, in no order. All consumers of a
     * group say the same.
     */
    bool ordered;
    struct hf_str table; /* of its outbox; default that of the store with "-NAME" behind it */
    uint32_t buckets;    /* of its outbox; as of hf_outbox_options */

    struct hf_event_stream_key stream; /* as of hf_subscribe_options, up to from_us */
    struct hf_str domain;
    struct hf_str type;
    enum hf_start start;
    struct hf_str after;
    int64_t from_us;

    uint32_t workers;        /* events handled at once by this process; default 4 */
    uint32_t max_attempts;   /* of an event, then it is parked; default 10 */
    uint32_t backoff_ms;     /* before the second attempt; doubled then; default 1000 */
    uint32_t backoff_max_ms; /* default 30000 */
    uint32_t timeout_ms;     /* deadline of the scope of a handler; default 30000 */
    uint32_t lease_ms;       /* of what is being handled, and of who feeds; default 30000 */
    uint32_t poll_ms;        /* default 1000 */
    struct hf_str owner;     /* our name in lists; default "HOST/PROCESS-ID" */
    bool no_feed;            /* others feed it: handle only */
    bool no_threads;         /* hf_group_step() is called instead of hf_group_start() */

    hf_event_fn *handle; /* default none: hf_group_fetch() */
    void *user;          /* handed to it */
    bool no_create;      /* the table of its outbox has to be there */

    /*
     * With threads: a handler that has not returned after stuck_ms is reported to on_stuck and to
     * the env's log, counted (hf_group_metrics), and dealt with as `stuck` says. HF_STUCK_RELEASE:
     * others handle the event, and this process none until the handler has returned.
     * HF_STUCK_GIVE_UP: the event is parked. What the handler says later changes nothing.
     */
    uint32_t stuck_ms; /* default ten times timeout_ms */
    enum hf_stuck stuck;
    hf_group_stuck_fn *on_stuck;
};

/* Its events come from `store`, which has to outlive it. Fails as hf_outbox_open() and
 * hf_subscribe() do. */
HF_API HF_NODISCARD enum hf_status hf_group_open(struct hf_scope *s, struct hf_events *store,
                                                 struct hf_str name,
                                                 const struct hf_group_options *options,
                                                 struct hf_group **group);
HF_API void hf_group_close(struct hf_group *group);

/* Begin to feed it (one process at a time does), and to handle events if there is a handler; and
 * the end of that, as hf_subscription_stop() and hf_relay_stop() are. */
HF_API HF_NODISCARD enum hf_status hf_group_start(struct hf_scope *s, struct hf_group *group);
HF_API HF_NODISCARD enum hf_status hf_group_stop(struct hf_scope *s, struct hf_group *group);

/* With no_threads: do what is to be done now; *next_ms is after how long there may be more. That
 * another feeds it is no failure. */
HF_API HF_NODISCARD enum hf_status hf_group_step(struct hf_scope *s, struct hf_group *group,
                                                 uint32_t *next_ms);

/* An event that we have fetched. A consumer that is silent about it for a lease loses it to
 * others. */
struct hf_group_event {
    struct hf_stored_event event; /* type and stream only, and no position, when it is not there any
                                     more: it was truncated, or its stream deleted */
    uint32_t attempts;            /* that failed before */
    struct hf_claimed_event claim; /* holdfast's own */
    uint64_t reserved[4];
};

struct hf_group_list {
    const struct hf_group_event *events; /* in the scope */
    size_t events_len;
    uint64_t reserved[4];
};

/* Up to `limit` (0: 10) events for us; none is HF_OK. Those that cannot be read, as their payload
 * is gone, are left out: they count as hf_group_nack(). After a failure all go back to the others.
 * Not of ordered groups (HF_INVALID). */
HF_API HF_NODISCARD enum hf_status hf_group_fetch(struct hf_scope *s, struct hf_group *group,
                                                  uint32_t limit, struct hf_group_list *list);

/*
 * It was handled; it was not, for this reason (may be absent), and is tried again later, or parked
 * when it was tried often enough; it is to be parked at once; we need more time, another lease.
 * HF_LOST: it is another's by now.
 */
HF_API HF_NODISCARD enum hf_status hf_group_ack(struct hf_scope *s, struct hf_group *group,
                                                const struct hf_group_event *event);
HF_API HF_NODISCARD enum hf_status hf_group_nack(struct hf_scope *s, struct hf_group *group,
                                                 const struct hf_group_event *event,
                                                 struct hf_str reason);
HF_API HF_NODISCARD enum hf_status hf_group_park(struct hf_scope *s, struct hf_group *group,
                                                 const struct hf_group_event *event,
                                                 struct hf_str reason);
HF_API HF_NODISCARD enum hf_status hf_group_extend(struct hf_scope *s, struct hf_group *group,
                                                   const struct hf_group_event *event);

/* Events that were parked, oldest first; `position` of each is a ref of the outbox. As
 * hf_subscription_parked() and its kin. */
HF_API HF_NODISCARD enum hf_status hf_group_parked(struct hf_scope *s, struct hf_group *group,
                                                   struct hf_str after, uint32_t limit,
                                                   struct hf_parked_list *list);
HF_API HF_NODISCARD enum hf_status hf_group_replay(struct hf_scope *s, struct hf_group *group,
                                                   const struct hf_str *refs, size_t len,
                                                   uint64_t *done);
HF_API HF_NODISCARD enum hf_status hf_group_discard(struct hf_scope *s, struct hf_group *group,
                                                    const struct hf_str *refs, size_t len,
                                                    uint64_t *done);

struct hf_group_metrics {
    struct hf_subscription_metrics feeder;
    uint64_t pending;     /* that wait or are being handled, up to 10000 */
    uint64_t parked;      /* up to 10000 */
    int64_t oldest_ms;    /* how long the oldest waits */
    uint64_t stuck;       /* handlers of this process that have not returned for stuck_ms, now */
    uint64_t stuck_total; /* and ever */
    uint64_t reserved[8];
};

/* Counts by reading. */
HF_API HF_NODISCARD enum hf_status hf_group_metrics(struct hf_scope *s, struct hf_group *group,
                                                    struct hf_group_metrics *metrics);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
