/*
 * A transactional outbox: events that are stored together with what they are about, in one
 * transaction, and delivered afterwards, at least once.
 *
 *     struct hf_outbox *outbox;
 *     struct hf_transact_write actions[2] = {{.put = &order}};
 *     struct hf_event event = {.type = HF_STR("order.placed"), .key = order_id, .payload = json};
 *
 *     struct hf_transact_write_items both = {.actions = actions, .actions_len = 2};
 *
 *     if (hf_outbox_open(s, db, NULL, &outbox) != HF_OK ||
 *         hf_outbox_emit_tx(s, outbox, &event, &actions[1], NULL) != HF_OK ||
 *         hf_transact_write_items(s, db, &both, NULL) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     hf_outbox_wake(outbox);
 *
 * relay.h delivers them: to a function, to a bus (bus.h), or to a broker (sink.h). Other programs
 * may deliver them by themselves: see "competing" below.
 *
 * Order. Events with the same key are delivered one after the other, in the order in which they
 * became due. That is the order of their commits as long as those who emit for one key take turns,
 * as transactions on one item do, and their clocks differ by less than the time between two turns;
 * where they give each event of a key a sequence number, clocks do not matter as long as both wait
 * to be delivered. One that shows late, by half a second or more, as its commit took so long or its
 * host's clock is so much behind the relay's, may come after a later one of its key that the relay
 * had read by then; nothing else lets it. Events without a key are in no order.
 *
 * Urgent. An event that is urgent is delivered before all that are not, however many of those wait,
 * as soon as a relay has found it. It is due at once, so it has no due_us. Of one key the urgent
 * events are delivered in their order, and so are the others, and never two at once. But no order
 * is promised between an urgent one and one that is not: either may be first, also if the other was
 * committed before. So let events be urgent that consumers understand without those before them. As
 * long as more urgent ones are emitted than delivered, no others are. docs/outbox.md tells more.
 *
 * Layout. An event that waits is one item in one of a number of buckets, chosen by its key, sorted
 * by when it is due; it leaves when it was delivered. So finished work is never in the way, and no
 * key of an index is hot. The number of buckets is decided when the table is made, and stays.
 *
 * Works on every database; where there are no transactions, an event is emitted by itself, as one
 * item. Any thread may use an outbox.
 */
#ifndef HOLDFAST_OUTBOX_H
#define HOLDFAST_OUTBOX_H

#include <holdfast/base.h>
#include <holdfast/blob.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>
#include <holdfast/tx.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_outbox;

enum {
    HF_OUTBOX_BUCKETS = 16,
    HF_OUTBOX_BUCKETS_MAX = 1000,
    HF_OUTBOX_EMIT_MAX = HF_TX_ACTIONS_MAX, /* events of one atomic hf_outbox_emit() */
    HF_EVENT_TEXT_MAX = 1024,               /* bytes of an id, type, key and so on */
    HF_EVENT_ERROR_MAX = 2048,              /* bytes of an error's text that are kept */
    HF_EVENT_SIZE_MAX = 396 * 1024, /* bytes of an event with all its texts: as hf_item_size()
                                       counts, with room for what is noted about it */
    HF_OUTBOX_HISTORY_S = 604800,   /* seven days */
    HF_OUTBOX_BLOB_OVER = 350 * 1024,
    HF_OUTBOX_SWEEP_S = 86400 /* a day */
};

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_outbox_options {
    size_t size;          /* set by HF_OPTIONS() */
    struct hf_str table;  /* default "outbox"; created if missing */
    uint32_t buckets;     /* default: as the table was made, or HF_OUTBOX_BUCKETS */
    struct hf_str source; /* of events that have none; default "holdfast" */
    bool stream;    /* let the table have a stream when it is made, to wake relays elsewhere */
    bool no_create; /* the table has to exist */
    /*
     * Keep delivered events for so many seconds, for hf_outbox_history() and to deliver them again;
     * the database removes them then. HF_OUTBOX_HISTORY_S is what is usual. Default 0: an event
     * leaves the table when it was delivered.
     */
    uint32_t history_s;
    /* For how many seconds an id that the caller chose is not taken again, counted from when the
     * event is due; after that the event is found by its ref alone. Default seven days. */
    uint32_t unique_s;
    /*
     * Where payloads go that would make an event larger than blob_over bytes (as HF_EVENT_SIZE_MAX
     * counts): blob.h. Relays, lists and claims fetch them, so that sinks and handlers see the
     * whole payload. All who use the outbox have to be given the same store, which has to outlive
     * it; the outbox has a part of it for itself (hf_blobs_part_of()). Default: none, and such
     * events are HF_LIMIT.
     */
    struct hf_blobs *blobs;
    uint32_t blob_over; /* default HF_OUTBOX_BLOB_OVER, at most HF_EVENT_SIZE_MAX */

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */

    /*
     * Names of attributes: of the two that are the key, and of the time to live. All who use a
     * table name them alike. Defaults "pk", "sk" and "ttl".
     */
    struct hf_str hash_attribute;
    struct hf_str sort_attribute;
    struct hf_str expires_attribute;
};

/*
 * An outbox in a table of `db`, which has to outlive it. The env is that of the scope.
 *
 * HF_INVALID  a table of that name is not an outbox, or has another number of buckets, or other
 *             names of attributes; nothing was written into it
 * HF_FORMAT   a newer version made it
 * and what making a table fails with. Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_open(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_outbox_options *options,
                                                  struct hf_outbox **outbox);

/* Its relays and buses have been closed before. NULL is accepted. */
HF_API void hf_outbox_close(struct hf_outbox *outbox);

/* ---- emitting ------------------------------------------------------------------------------- */

struct hf_event {
    struct hf_str id;           /* default: one is made, which sorts by time */
    struct hf_str type;         /* such as "order.placed"; required */
    struct hf_str key;          /* what the order is kept for; default: aggregate, or none */
    uint64_t sequence;          /* its number among those of its key; default 0: none */
    int64_t time_us;            /* when it happened, since 1970; default now */
    int64_t due_us;             /* not to be delivered earlier; default at once */
    struct hf_bytes payload;    /* may be empty */
    struct hf_str content_type; /* default "application/json" */
    struct hf_str schema;       /* which form the payload has, such as "2"; default none */
    struct hf_item headers;     /* whatever else; default none */
    struct hf_str source;       /* default: that of the outbox */
    struct hf_str correlation;  /* ids of what it belongs to, */
    struct hf_str causation;    /* and of what caused it */
    struct hf_str aggregate;    /* the id of the thing it happened to, */
    struct hf_str aggregate_type;
    struct hf_str tenant;
    struct hf_str destination;  /* for routes: see relay.h */
    struct hf_str trace_parent; /* W3C trace context */
    struct hf_str trace_state;
    bool urgent; /* before all that are not, however many wait: see "Urgent" above */
    uint64_t reserved[4];
};

struct hf_emit_options {
    size_t size;        /* set by HF_OPTIONS() */
    bool each_alone;    /* any number, not all or nothing: on failure some may be stored */
    bool join_tx;       /* become part of the transaction of the scope, if it has one of this
                           database */
    struct hf_str *ids; /* out: as many ids as events, in the scope; default: none */
};

/*
 * Store events to be delivered, all or none, at once: one event is one put, more are one
 * transaction. With join_tx they become part of the scope's, if it has one. No events: nothing is
 * done.
 *
 * An id that the caller chose is taken once: repeating it is HF_DUPLICATE, or cancels the
 * transaction. Where there are no transactions such an event has to have its time_us, which is what
 * a repetition is recognised by, with `urgent`, as long as the event waits, has failed, or is in
 * the history.
 *
 * HF_INVALID      an event has no type, a text is too long, or one is urgent and has a due_us; the
 *                 message says which and what
 * HF_LIMIT        more than HF_OUTBOX_EMIT_MAX, or than the transaction has room for, where an id
 *                 that the caller chose takes the room of an event; or one has more than
 *                 HF_EVENT_SIZE_MAX bytes, not counting a payload in a blob store
 * HF_NO_SPACE, HF_IO and so on: a payload could not be put into the blob store; nothing is stored
 * HF_DUPLICATE    such an id was emitted before; nothing is stored
 * HF_UNSUPPORTED  several at once, but there are no transactions: see each_alone
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_emit(struct hf_scope *s, struct hf_outbox *outbox,
                                                  const struct hf_event *events, size_t len,
                                                  const struct hf_emit_options *options);

/* Add them to a transaction on this database (HF_INVALID: it is on another), whichever the scope
 * has. */
HF_API HF_NODISCARD enum hf_status hf_outbox_emit_into(struct hf_scope *s, struct hf_outbox *outbox,
                                                       struct hf_tx *tx,
                                                       const struct hf_event *events, size_t len,
                                                       const struct hf_emit_options *options);

/*
 * The same for one event without an id, as an action for a transaction of the caller's own, who may
 * call hf_outbox_wake() when it was committed. *id (may be NULL) is which it got.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_emit_tx(struct hf_scope *s, struct hf_outbox *outbox,
                                                     const struct hf_event *event,
                                                     struct hf_transact_write *action,
                                                     struct hf_str *id);

/* Wake relays of this outbox in this process: there is something new. Without it they find it
 * at their next poll. */
HF_API void hf_outbox_wake(struct hf_outbox *outbox);

/* ---- looking -------------------------------------------------------------------------------- */

enum hf_outbox_state {
    HF_OUTBOX_PENDING = 1, /* waits to be due or delivered, or to be tried again */
    HF_OUTBOX_FAILED,      /* a dead letter: it failed too often or for good */
    HF_OUTBOX_PUBLISHED    /* delivered, and in the history */
};

/* An event as it is stored. */
struct hf_outbox_event {
    struct hf_event event;
    enum hf_outbox_state state;
    struct hf_str ref; /* where it is: names it in calls of this outbox, as its id does, and
                          is found without a look-up */
    uint32_t bucket;
    uint32_t attempts;    /* deliveries that were begun and failed, or ended their process */
    enum hf_status error; /* of the last failure; HF_OK: there was none */
    struct hf_str error_text;
    struct hf_str cause; /* the same for failures of one kind, to group them by */
    int64_t tried_us;    /* the last attempt; 0: none */
    int64_t next_us;     /* not tried again before; 0: no failure */
    int64_t ended_us;    /* failed or published: when */
    struct hf_str owner; /* competing: who has claimed it; absent: nobody */
    int64_t lease_us;    /* competing: until when, by the owner's clock */
    struct hf_item item; /* all of it */
    struct hf_str blob;  /* the payload is this one of the blob store; absent: it is in the item */
    uint64_t blob_size;  /* its bytes */
    enum hf_status blob_error; /* why it could not be fetched, and event.payload is empty: it is not
                                  there or damaged (HF_NOT_FOUND, HF_CORRUPT), the store cannot be
                                  reached, or the outbox was opened without one (HF_UNSUPPORTED) */
    uint32_t crashes; /* of the attempts, those after which nobody could say how they ended */
    uint64_t reserved[4];
};

struct hf_event_list_options {
    size_t size;          /* set by HF_OPTIONS() */
    uint32_t limit;       /* at most this many; default 100 */
    struct hf_str after;  /* `next` of an earlier call */
    bool not_due_too;     /* pending: with those that are due later, or wait to be tried again */
    bool oldest_first;    /* failed and history: default newest first */
    struct hf_str type;   /* only of this type, or, with "*" at the end, of those that begin so;
                            default all */
    struct hf_str cause;  /* failed: only with this cause; default all */
    int64_t from_us;      /* history: published since */
    int64_t to_us;        /* history: published before */
    bool no_payload;      /* leave payloads of the blob store where they are */
    bool retrying_too;    /* pending: with those that wait to be tried again */
    struct hf_str key;    /* only of this key: one bucket is read; default all */
    struct hf_str tenant; /* only of this tenant: all are read; default all */
};

struct hf_event_list {
    const struct hf_outbox_event *events; /* in the scope */
    size_t events_len;
    struct hf_str next; /* absent at the end; a page may be empty and not the last */
    uint64_t reserved[4];
};

/*
 * Events that wait, bucket by bucket, in the order of delivery; those that have failed, by when
 * they were due; those that were delivered, as far as a history is kept. Urgent ones come first,
 * except newest first: then they are where they belong by their time. Consistent reads; every page
 * of the database is followed.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_pending(struct hf_scope *s, struct hf_outbox *outbox,
                                                     const struct hf_event_list_options *options,
                                                     struct hf_event_list *list);
HF_API HF_NODISCARD enum hf_status hf_outbox_failed(struct hf_scope *s, struct hf_outbox *outbox,
                                                    const struct hf_event_list_options *options,
                                                    struct hf_event_list *list);
HF_API HF_NODISCARD enum hf_status hf_outbox_history(struct hf_scope *s, struct hf_outbox *outbox,
                                                     const struct hf_event_list_options *options,
                                                     struct hf_event_list *list);

/* By id or ref, in whichever state. HF_NOT_FOUND. */
HF_API HF_NODISCARD enum hf_status hf_outbox_get(struct hf_scope *s, struct hf_outbox *outbox,
                                                 struct hf_str id, struct hf_outbox_event *event);

struct hf_outbox_cause {
    struct hf_str cause;
    struct hf_str example; /* an error's text */
    uint64_t count;
    uint64_t reserved[4];
};

struct hf_outbox_stats {
    uint64_t pending;         /* all that wait */
    uint64_t due;             /* of these: due now */
    uint64_t scheduled;       /* of these: due later */
    uint64_t retrying;        /* of these: have failed before */
    uint64_t failed;          /* dead letters */
    uint64_t published;       /* in the history */
    int64_t oldest_due_ms;    /* how long the oldest due one waits; 0: none does */
    int64_t oldest_failed_ms; /* how long ago the oldest of them failed permanently; 0: none */
    uint64_t fullest;         /* how many wait in the fullest bucket */
    const struct hf_outbox_cause *causes; /* of the failed, most frequent first */
    size_t causes_len;
    bool whole;          /* false: counting ended at `limit` for some figure */
    uint64_t unreadable; /* invalid items among the pending ones, which relays make dead letters;
                            not in `pending`, and after that in `failed` */
    uint64_t urgent;     /* of those that wait */
    uint64_t reserved[8];
};

/* Counts by reading. `limit`: read at most this many items; 0: all. */
HF_API HF_NODISCARD enum hf_status hf_outbox_stats(struct hf_scope *s, struct hf_outbox *outbox,
                                                   uint64_t limit, struct hf_outbox_stats *stats);

/*
 * The same of a part: of options only type, key and tenant, and limit, which is how many items are
 * read at most (0: all). With a key one bucket is read. What is unreadable is not counted, as
 * nobody knows whose it is.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_stats_of(struct hf_scope *s, struct hf_outbox *outbox,
                                                      const struct hf_event_list_options *options,
                                                      struct hf_outbox_stats *stats);

/* ---- pausing -------------------------------------------------------------------------------- */

/*
 * Let all relays of this outbox pause, in whatever process they are: they finish what is in flight,
 * and deliver nothing more until hf_outbox_resume(). They notice it at their next look at the table,
 * within their heartbeat_ms; one that starts meanwhile waits, too. Buckets stay theirs, and events
 * are emitted as before. `why` (may be absent) is kept for people, as is the time of the first call;
 * pausing again changes nothing. hf_outbox_claim() goes on. HF_INVALID: `why` is longer than
 * HF_EVENT_TEXT_MAX bytes. Since 0.1.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_pause(struct hf_scope *s, struct hf_outbox *outbox,
                                                   struct hf_str why);

/* Let them go on. HF_OK also if they were not paused. Since 0.1. */
HF_API HF_NODISCARD enum hf_status hf_outbox_resume(struct hf_scope *s, struct hf_outbox *outbox);

struct hf_outbox_pause {
    bool paused;
    int64_t since_us; /* by the clock of who paused them */
    struct hf_str why;
    uint64_t reserved[4];
};

/* Whether they are to pause. A consistent read. Since 0.1. */
HF_API HF_NODISCARD enum hf_status hf_outbox_paused(struct hf_scope *s, struct hf_outbox *outbox,
                                                    struct hf_outbox_pause *pause);

/* ---- failed ones, and the history ----------------------------------------------------------- */

/*
 * Let failed events be delivered again, from attempt 0, in their old place. Pending ones that wait
 * to be tried again are due at once. By ids or refs; *done (may be NULL) is how many. An id that is
 * not there, or was published, changes nothing, and makes it HF_NOT_FOUND when the others are done:
 * the message names it. HF_UNSUPPORTED: the payload of the event that the message names is in a
 * blob store, and this outbox was opened without one.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_retry(struct hf_scope *s, struct hf_outbox *outbox,
                                                   const struct hf_str *ids, size_t len,
                                                   uint64_t *done);

/* The same for all failed ones, or all of a type or cause; options->limit of them (0: all). */
HF_API HF_NODISCARD enum hf_status hf_outbox_retry_all(struct hf_scope *s, struct hf_outbox *outbox,
                                                       const struct hf_event_list_options *options,
                                                       uint64_t *done);

/* Delete failed events, or pending ones, for good. As hf_outbox_retry(). */
HF_API HF_NODISCARD enum hf_status hf_outbox_discard(struct hf_scope *s, struct hf_outbox *outbox,
                                                     const struct hf_str *ids, size_t len,
                                                     uint64_t *done);
HF_API HF_NODISCARD enum hf_status
hf_outbox_discard_all(struct hf_scope *s, struct hf_outbox *outbox,
                      const struct hf_event_list_options *options, uint64_t *done);

/* Delete from the history what was published before; where there is no time to live, or sooner than
 * that. Nothing that waits or has failed. *done (may be NULL) is how many. */
HF_API HF_NODISCARD enum hf_status hf_outbox_cleanup(struct hf_scope *s, struct hf_outbox *outbox,
                                                     int64_t before_us, uint64_t *done);

/*
 * Remove blobs of this outbox that no event has, waiting, failed or in the history, and that were
 * put last more than older_s seconds ago (0: HF_OUTBOX_SWEEP_S). That has to be longer than it
 * takes from hf_outbox_emit_tx() to the commit, and than this call takes. *removed (may be NULL) is
 * how many. Reads the whole table; now and then is enough. HF_INVALID: there is no blob store.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_sweep_blobs(struct hf_scope *s,
                                                         struct hf_outbox *outbox, uint32_t older_s,
                                                         uint64_t *removed);

/* Emit events of the history again, as they were, with their ids; options as for the history, oldest
 * first, but all without a limit. They stay in the history meanwhile. *done (may be NULL) is how
 * many; those that wait to be delivered already do not count, but for the limit they do. So pages
 * of hf_outbox_history() can be emitted one after the other, each with its own `after` and as limit
 * its length; with to_us, what is delivered meanwhile is not in them again. HF_UNSUPPORTED as for
 * hf_outbox_retry(). */
HF_API HF_NODISCARD enum hf_status hf_outbox_replay(struct hf_scope *s, struct hf_outbox *outbox,
                                                    const struct hf_event_list_options *options,
                                                    uint64_t *done);

/* ---- competing ------------------------------------------------------------------------------ */

/*
 * For short-lived workers, such as function runtimes: each event is claimed by a write of its own,
 * and there is no order. A claim is a lease by the wall clock, from the time of its write. To
 * complete, fail, extend or release an event you must still have the claim: HF_LOST otherwise, and
 * nothing is changed. An event whose lease ended more than skew_ms ago may be claimed again.
 *
 * Not together with ordered relays (relay.h) on one outbox: the second to start gets HF_INVALID.
 */
struct hf_claim_options {
    size_t size;             /* set by HF_OPTIONS() */
    uint32_t limit;          /* at most this many; default 50 */
    uint32_t lease_ms;       /* default 30000 */
    uint32_t skew_ms;        /* by how much clocks may differ, less than the lease; default 1000,
                                or half of a lease that is shorter */
    struct hf_str owner;     /* our name in lists; default "HOST/PROCESS-ID" */
    uint32_t max_attempts;   /* hf_outbox_fail(): how often an event is tried in all; default 5 */
    uint32_t backoff_ms;     /* before the second attempt; doubled for each further; default 1000 */
    uint32_t backoff_max_ms; /* default 30000 */
    struct hf_str type;      /* claim only these, as in hf_event_list_options; default all */
    struct hf_str key;
    struct hf_str tenant;
};

struct hf_claimed_event {
    struct hf_outbox_event event;
    struct hf_str token; /* of this claim */
    uint64_t fence;      /* higher with every claim of this event */
    uint64_t reserved[4];
};

struct hf_claim_list {
    const struct hf_claimed_event *events; /* in the scope */
    size_t events_len;
    uint64_t refused; /* others were first */
    uint64_t unsure;  /* not among these, but perhaps claimed by us until their leases end: neither
                         the answer came, nor could they be given back */
    uint64_t reserved[4];
};

/*
 * Claim events that are due. None is HF_OK, with events_len 0; so is a failure after some were
 * claimed. What was claimed without an answer is given back, or counted in list->unsure, with an
 * error as with none. A claim that nobody completed in time counts as an attempt when another takes
 * it over; after options->max_attempts of those the event is a dead letter.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_claim(struct hf_scope *s, struct hf_outbox *outbox,
                                                   const struct hf_claim_options *options,
                                                   struct hf_claim_list *list);

/* Claim one event by its id or ref. HF_LOCKED: another has it. HF_CONDITION: it is not
 * due yet. HF_NOT_FOUND: it is not pending. */
HF_API HF_NODISCARD enum hf_status hf_outbox_claim_one(struct hf_scope *s, struct hf_outbox *outbox,
                                                       struct hf_str id,
                                                       const struct hf_claim_options *options,
                                                       struct hf_claimed_event *event);

/* It was delivered. HF_LOST when the claim is another's by now; or the event is gone, and the lease
 * is over: then hf_error.may_have_happened. Repeating it during the lease is no failure.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_published(struct hf_scope *s, struct hf_outbox *outbox,
                                                       const struct hf_claimed_event *event);

/* The same for many, each for itself; results (as many, in order) may be NULL. The first failure is
 * returned after all were tried. */
HF_API HF_NODISCARD enum hf_status hf_outbox_published_many(struct hf_scope *s,
                                                            struct hf_outbox *outbox,
                                                            const struct hf_claimed_event *events,
                                                            size_t len, enum hf_status *results);

/* The same as an action for a transaction of what the event led to. The event leaves; as this is
 * one action, it does not go to the history. */
HF_API HF_NODISCARD enum hf_status hf_outbox_published_tx(struct hf_scope *s,
                                                          struct hf_outbox *outbox,
                                                          const struct hf_claimed_event *event,
                                                          struct hf_transact_write *action);

/*
 * It could not be delivered, for this reason (NULL: unknown): it is retried later, or becomes a
 * dead letter after options->max_attempts attempts, or at once with for_good. HF_LOST as above.
 */
HF_API HF_NODISCARD enum hf_status hf_outbox_fail(struct hf_scope *s, struct hf_outbox *outbox,
                                                  const struct hf_claimed_event *event,
                                                  const struct hf_error *error, bool for_good,
                                                  const struct hf_claim_options *options);

/* More time for it, lease_ms (0: 30000) from now; or give it back untried, for others at once.
 * HF_LOST as above. */
HF_API HF_NODISCARD enum hf_status hf_outbox_extend(struct hf_scope *s, struct hf_outbox *outbox,
                                                    const struct hf_claimed_event *event,
                                                    uint32_t lease_ms);
HF_API HF_NODISCARD enum hf_status hf_outbox_release(struct hf_scope *s, struct hf_outbox *outbox,
                                                     const struct hf_claimed_event *event);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
