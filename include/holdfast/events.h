/*
 * An event store: streams of events that only grow, read by stream, in the global order, by id, by
 * what caused them.
 *
 *     struct hf_events *store;
 *     struct hf_new_event event = {.type = HF_STR("placed"), .payload = json};
 *     struct hf_append append = {.stream = {HF_STR("order"), HF_STR("7")},
 *                                .expect = HF_EXPECT_NONE, .events = &event, .events_len = 1};
 *
 *     if (hf_events_open(s, db, NULL, &store) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     if (hf_events_append(s, store, &append, 1, NULL, NULL) == HF_CONDITION)
 *         puts(hf_scope_error_text(s)); // the stream "order/7" is at version 3 already
 *
 * A stream has a domain ("order") and an id ("7", may be empty). Its events have versions from 1 on
 * without gaps. Every event also has a position: a text of HF_POSITION_LEN bytes, and the order of
 * positions is that of all events. It never contradicts the order inside of a stream, it never
 * changes, and no event shows up later before one that was read: hf_events_reader_next() ensures
 * that, whatever the clocks of the writers show. A generated id is the event's position. An id that
 * the caller sets is unique: appending the same event again changes nothing and returns its
 * version.
 *
 * One table without indexes holds it all; every read is consistent. Payloads that are too large for
 * an item go to a blob store (blob.h). Needs a database with transactions. Any thread may use a
 * store.
 *
 * subscribe.h follows streams and feeds projections and groups; aggregate.h builds state from
 * streams; flow.h runs events through a program's functions.
 */
#ifndef HOLDFAST_EVENTS_H
#define HOLDFAST_EVENTS_H

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

struct hf_events;

enum {
    HF_EVENTS_SHARDS = 4,
    HF_EVENTS_SHARDS_MAX = 64,
    HF_EVENTS_APPEND_MAX = 10000, /* events of one append */
    HF_EVENTS_STREAMS_MAX = 20,   /* streams of one append */
    HF_EVENTS_DOMAIN_MAX = 255,   /* bytes */
    HF_EVENTS_ID_MAX = 512,       /* bytes of a stream's or an event's id */
    HF_EVENTS_TYPE_MAX = 255,     /* bytes */
    HF_POSITION_LEN = 26,
    HF_EVENTS_BLOB_BYTES = 350000 /* events with larger items have their payload elsewhere */
};

/* ---- the store ------------------------------------------------------------------------------ */

struct hf_events_options {
    size_t size;            /* set by HF_OPTIONS() */
    struct hf_str table;    /* default "events"; created if missing */
    struct hf_str prefix;   /* put in front of the table's name, such as "prod-" */
    uint32_t shards;        /* of the global order; default: as the table was made, or
                               HF_EVENTS_SHARDS */
    struct hf_blobs *blobs; /* for large payloads, has to outlive the store; default: beside an
                               embedded database (hf_blobs_open_beside()), none otherwise; the part
                               with the table's name (hf_blobs_part_of()) is used */
    uint32_t blob_bytes;    /* from which size of an item on; default HF_EVENTS_BLOB_BYTES */
    bool no_chain;          /* the table is made without a chain of hashes */
    bool no_create;         /* the table has to exist */
    uint32_t read_units;    /* provisioned capacity of a table that is made; default: on demand */
    uint32_t write_units;
    uint32_t heads; /* streams whose end is remembered between appends, to save a read;
                       default 4096 */

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */
};

/*
 * A store in a table of `db`, which has to outlive it. The env is that of the scope.
 *
 * HF_INVALID      a table of that name is not an event store, or has another number of shards
 * HF_UNSUPPORTED  the database has no transactions
 * and what making a table fails with.
 */
HF_API HF_NODISCARD enum hf_status hf_events_open(struct hf_scope *s, struct hf_db *db,
                                                  const struct hf_events_options *options,
                                                  struct hf_events **store);

/* Its readers, subscriptions and flows have been closed before. NULL is accepted. */
HF_API void hf_events_close(struct hf_events *store);

/* Remove all events, snapshots, checkpoints: the table is dropped and made again, empty. Blobs are
 * left to hf_events_sweep(). For tests, mostly. */
HF_API HF_NODISCARD enum hf_status hf_events_reset(struct hf_scope *s, struct hf_events *store);

/* What a store can do here; all true for now, for programs that ask before they rely on it. */
struct hf_events_abilities {
    bool append_many, streams, snapshots, by_id, by_cause, all, chain;
    bool blobs; /* a blob store is there */
    uint64_t reserved[4];
};
HF_API struct hf_events_abilities hf_events_abilities(const struct hf_events *store);

/* ---- appending ------------------------------------------------------------------------------ */

/* Which stream. A '/', '%' or any other byte of UTF-8 may be in either; no two pairs collide. */
struct hf_event_stream_key {
    struct hf_str domain; /* not empty */
    struct hf_str id;     /* may be empty */
};

struct hf_new_event {
    struct hf_str id;           /* default: its position */
    struct hf_str type;         /* required */
    struct hf_bytes payload;    /* may be empty; any bytes are kept as they are */
    struct hf_str content_type; /* default "application/json" */
    uint32_t schema;            /* version of the payload's form; default 1 */
    int64_t time_us;            /* when it happened, since 1970; default now */
    struct hf_item meta;        /* whatever else; default none */
    struct hf_str causation;    /* id of the event that led to it; default none */
    struct hf_str correlation;  /* id that all of a tree have in common; default: that of `parent`,
                                   else its own id */
    struct hf_str compensates;  /* id of the event that it takes back; default none */
    uint64_t reserved[4];
};

enum hf_expect {
    HF_EXPECT_ANY,    /* whatever is there */
    HF_EXPECT_NONE,   /* the stream has had no event yet */
    HF_EXPECT_EXISTS, /* it has had some */
    HF_EXPECT_VERSION /* it is at exactly that version; 0 is as HF_EXPECT_NONE */
};

struct hf_append {
    struct hf_event_stream_key stream; /* each stream once in a call, and in a transaction */
    enum hf_expect expect;
    uint64_t version; /* for HF_EXPECT_VERSION */
    const struct hf_new_event *events;
    size_t events_len; /* 0: the expectation is checked only */
    uint64_t reserved[4];
};

/* What became of one hf_append. */
struct hf_appended {
    uint64_t first, last;     /* versions of its events; after HF_CONDITION last is the version that
                                 the stream is at */
    const struct hf_str *ids; /* of the events, in the scope */
    struct hf_str position;   /* of the last one */
    bool repeated;            /* they were there already, by their ids: nothing was appended */
    uint64_t reserved[4];
};

struct hf_append_options {
    size_t size;                          /* set by HF_OPTIONS() */
    const struct hf_stored_event *parent; /* what led to the events: fills in causation, and
                                             correlation; default none */
    const struct hf_transact_write *with; /* to happen in the same transaction: inline projections,
                                             outbox events; in the last one, of an append that needs
                                             several */
    size_t with_len;
    uint32_t max_attempts; /* after conflicts with others; default 10 */
    bool join_tx;          /* become part of the transaction of the scope, if it has one of this
                              database: see hf_events_append_into() */
};

/*
 * Append to one stream or several, all or nothing. `results` (may be NULL) has an element for each
 * of `appends`.
 *
 * Events that do not fit into one transaction are written first, invisibly, and then made visible
 * together by one transaction: nobody sees a part of them. If a crash leaves some behind,
 * hf_events_sweep() removes them.
 *
 * Conflicts with others are tried again as long as the expectation allows it. When an answer gets
 * lost the same transaction is sent again, and does not happen twice. A failure whose error says
 * may_have_happened can be followed by the same call: events with ids are not appended twice.
 *
 * HF_CONDITION  the stream is at another version; the message says at which, and so does
 *               results[].last of each stream that is
 * HF_DUPLICATE  an id is there already, in another stream or with other content, or only some of
 *               them are; the message names it
 * HF_DELETED    the stream was deleted for good (hf_events_tombstone())
 * HF_INVALID    a text is missing or too long, a stream is named twice; the message says which
 * HF_IN_USE     the stream is archived
 * HF_LIMIT      too many events or streams; more than fit into the transaction they join, or that
 *               `with` is to be in; a payload too large without a blob store
 * HF_TX_CONFLICT  others were faster as often as options->max_attempts says
 * HF_TX_CANCELED  an action of `with` was refused: hf_scope_error() has the reasons, those of
 *               `with` first
 */
HF_API HF_NODISCARD enum hf_status hf_events_append(struct hf_scope *s, struct hf_events *store,
                                                    const struct hf_append *appends, size_t len,
                                                    const struct hf_append_options *options,
                                                    struct hf_appended *results);

/*
 * Add them to a transaction on this database. They are there once it was committed; the results
 * say what they will be, and the positions and versions are such that it is canceled if others were
 * faster, and then hf_tx_run() builds it again. HF_INVALID: the transaction is on another database,
 * or has a stream of these already. And as above. Since 0.1.
 */
HF_API HF_NODISCARD enum hf_status
hf_events_append_into(struct hf_scope *s, struct hf_events *store, struct hf_tx *tx,
                      const struct hf_append *appends, size_t len,
                      const struct hf_append_options *options, struct hf_appended *results);

/* ---- reading -------------------------------------------------------------------------------- */

struct hf_stored_event {
    struct hf_str id;
    struct hf_str position;
    struct hf_event_stream_key stream;
    uint64_t version;
    struct hf_str type;
    struct hf_bytes payload; /* fetched from the blob store, and verified, if it was there */
    struct hf_str content_type;
    uint32_t schema;
    int64_t time_us;
    struct hf_item meta;
    struct hf_str causation;   /* absent: none */
    struct hf_str correlation; /* its own id when it had none */
    struct hf_str compensates; /* absent: none */
    struct hf_bytes hash;      /* of the chain: 32 bytes; absent without one */
    struct hf_str blob;        /* the digest of a payload that is in the blob store, else absent */
    uint64_t reserved[4];
};

struct hf_events_read_options {
    size_t size;      /* set by HF_OPTIONS() */
    uint64_t from;    /* first version; default the first, or the last when backward */
    uint64_t to;      /* last version; default the end */
    int64_t from_us;  /* only events that happened then or later; 0: all */
    int64_t until_us; /* only events that happened before; 0: all */
    bool backward;    /* newest first */
    uint32_t limit;   /* at most this many; default 100, at most 100000 */
    bool no_payload;  /* leave payloads of the blob store where they are */
};

struct hf_events_page {
    const struct hf_stored_event *events;
    size_t events_len;
    uint64_t next;    /* `from` of the next page; 0: this is the end for now */
    uint64_t version; /* stream reads: the stream's version when it was read; 0: it has none */
    uint64_t reserved[4];
};

/*
 * Events of one stream, in the scope. A stream that was never written has none, which is no
 * failure; one that was deleted is HF_DELETED.
 *
 * This and all that read payloads: HF_CORRUPT, one is not in the blob store any more, or not what
 * was put there; HF_UNSUPPORTED, one is in a blob store, and there is none here. The message names
 * the event.
 */
HF_API HF_NODISCARD enum hf_status hf_events_read(struct hf_scope *s, struct hf_events *store,
                                                  struct hf_event_stream_key stream,
                                                  const struct hf_events_read_options *options,
                                                  struct hf_events_page *page);

/* By id. HF_NOT_FOUND. */
HF_API HF_NODISCARD enum hf_status hf_events_get(struct hf_scope *s, struct hf_events *store,
                                                 struct hf_str id, struct hf_stored_event *event);

/* Events caused by that one, directly; those of a correlation, that with the id itself first. All
 * of them, whole, in the global order. */
HF_API HF_NODISCARD enum hf_status hf_events_caused_by(struct hf_scope *s, struct hf_events *store,
                                                       struct hf_str id,
                                                       const struct hf_stored_event **events,
                                                       size_t *len);
HF_API HF_NODISCARD enum hf_status hf_events_correlated(struct hf_scope *s, struct hf_events *store,
                                                        struct hf_str correlation,
                                                        const struct hf_stored_event **events,
                                                        size_t *len);

/* An event and all that follows from it. */
struct hf_event_tree {
    struct hf_stored_event event;
    const struct hf_event_tree *children; /* in the global order */
    size_t children_len;
    uint64_t reserved[4];
};

/* HF_NOT_FOUND; HF_LIMIT: deeper than depth_max (0: 100), as in a circle. */
HF_API HF_NODISCARD enum hf_status hf_events_tree(struct hf_scope *s, struct hf_events *store,
                                                  struct hf_str id, uint32_t depth_max,
                                                  struct hf_event_tree *tree);

/* ---- reading all ---------------------------------------------------------------------------- */

struct hf_events_reader;

struct hf_events_all_options {
    size_t size;          /* set by HF_OPTIONS() */
    struct hf_str after;  /* behind that position; default from the first event */
    int64_t from_us;      /* from events on that were appended at that time, by the clocks of those
                             who appended; 0: all. Not with `after` */
    struct hf_str until;  /* up to that position, and with it; default none: what is there, and what
                             comes, call by call */
    struct hf_str domain; /* only of that domain; default all */
    struct hf_str type;   /* only of that type, or with "*" at its end; default all */
    uint32_t limit;       /* events of one page at most; default 1000 */
    bool archived;        /* with events of archived streams */
    bool no_payload;      /* leave payloads of the blob store where they are */
    uint32_t settle_ms;   /* events are left alone for so long after they were appended, so that
                             those who append at the same time are not refused and have to try
                             again; default 5. Where a query may see a part of a transaction, as at
                             Amazon's service, this has to be longer than it takes one to show as a
                             whole: some hundred */
};

/* `store` has to outlive the reader; one thread at a time uses it. */
HF_API HF_NODISCARD enum hf_status
hf_events_reader_open(struct hf_scope *s, struct hf_events *store,
                      const struct hf_events_all_options *options,
                      struct hf_events_reader **reader);
HF_API void hf_events_reader_close(struct hf_events_reader *reader);

/*
 * The next events in the global order, which live until the next call for this reader. None: there
 * are no more for now; the next call looks again. Before events are returned the order is closed up
 * to them, so that none can be appended before them any more. The memory of a reader does not grow
 * with the number of events.
 */
HF_API HF_NODISCARD enum hf_status hf_events_reader_next(struct hf_scope *s,
                                                         struct hf_events_reader *reader,
                                                         const struct hf_stored_event **events,
                                                         size_t *len);

/* Where it is: a new reader that is opened behind it goes on from there. Moves also past events
 * that the options leave out. Absent: at the start. */
HF_API struct hf_str hf_events_reader_position(const struct hf_events_reader *reader);

/* Call this after something was appended by this process through this store, or stop to. Not to be
 * called inside of such a function. HF_LIMIT: there are too many. */
typedef void hf_events_wake_fn(void *user);
HF_API HF_NODISCARD enum hf_status hf_events_listen(struct hf_scope *s, struct hf_events *store,
                                                    hf_events_wake_fn *wake, void *user);
HF_API void hf_events_unlisten(struct hf_events *store, hf_events_wake_fn *wake, void *user);

/* ---- streams -------------------------------------------------------------------------------- */

struct hf_event_stream_info {
    uint64_t version;       /* of its last event; 0: it has had none */
    uint64_t first;         /* the oldest version that is read */
    struct hf_str position; /* of its last event */
    struct hf_bytes hash;   /* of its last event; absent without a chain */
    uint32_t max_age_s;     /* 0: none */
    uint64_t max_count;     /* 0: none */
    bool archived, deleted;
    uint64_t reserved[4];
};

/* HF_NOT_FOUND: it has never had an event. */
HF_API HF_NODISCARD enum hf_status hf_events_stream_info(struct hf_scope *s,
                                                         struct hf_events *store,
                                                         struct hf_event_stream_key stream,
                                                         struct hf_event_stream_info *info);

/* Events before that version are not read any more; hf_events_sweep() removes them. It cannot be
 * undone. HF_INVALID: beyond its end. */
HF_API HF_NODISCARD enum hf_status hf_events_truncate(struct hf_scope *s, struct hf_events *store,
                                                      struct hf_event_stream_key stream,
                                                      uint64_t before);

/* The same by age and number, from now on, as they come; 0: no such limit. */
HF_API HF_NODISCARD enum hf_status hf_events_limit_stream(struct hf_scope *s,
                                                          struct hf_events *store,
                                                          struct hf_event_stream_key stream,
                                                          uint32_t max_age_s, uint64_t max_count);

/* Delete a stream for good: nothing is read, nothing can be appended ever again (HF_DELETED). `expect`
 * and `version` as in hf_append. Again is no failure. The order of all shows its events, as it does
 * with truncated ones, until hf_events_sweep() has removed them. */
HF_API HF_NODISCARD enum hf_status hf_events_tombstone(struct hf_scope *s, struct hf_events *store,
                                                       struct hf_event_stream_key stream,
                                                       enum hf_expect expect, uint64_t version);

/* Take a stream out of the global order, unless it is asked for, or back into it, at its old
 * places. Nothing can be appended to it meanwhile (HF_IN_USE). Can be called again when it was
 * interrupted. */
HF_API HF_NODISCARD enum hf_status hf_events_archive(struct hf_scope *s, struct hf_events *store,
                                                     struct hf_event_stream_key stream);
HF_API HF_NODISCARD enum hf_status hf_events_unarchive(struct hf_scope *s, struct hf_events *store,
                                                       struct hf_event_stream_key stream);

/*
 * Call this with each stream (of that domain; absent: of all), deleted ones too, in no order.
 * Anything but HF_OK ends it, and is returned. There is no list of streams: this is a Scan of the
 * table, which costs as much as reading all events.
 */
typedef enum hf_status hf_events_stream_fn(struct hf_scope *s, struct hf_event_stream_key stream,
                                           const struct hf_event_stream_info *info, void *user);
HF_API HF_NODISCARD enum hf_status hf_events_streams(struct hf_scope *s, struct hf_events *store,
                                                     struct hf_str domain, hf_events_stream_fn *fn,
                                                     void *user);

struct hf_events_swept {
    uint64_t events; /* that were truncated or of deleted streams */
    uint64_t aside;  /* left by appends that did not come to their end */
    uint64_t blobs;  /* that no event has */
    uint64_t reserved[4];
};

/*
 * Remove what nobody reads any more: truncated events, those of deleted streams, what crashed
 * appends have left, and blobs without an event, all older than `older_s` seconds (0: a day), which
 * has to be longer than an append takes. Others may work meanwhile. It can be interrupted and
 * called again. Chosen ids of events that went are free again.
 *
 * A Scan of the table; two more when there is a blob store.
 */
HF_API HF_NODISCARD enum hf_status hf_events_sweep(struct hf_scope *s, struct hf_events *store,
                                                   uint32_t older_s, struct hf_events_swept *swept);

/* How far long work is: called after each batch; `total` is 0 when it is not known. Anything but
 * HF_OK ends it, and is returned. */
typedef enum hf_status hf_events_progress_fn(uint64_t done, uint64_t total, void *user);

/* ---- the chain ------------------------------------------------------------------------------ */

struct hf_events_verify_options {
    size_t size;                        /* set by HF_OPTIONS() */
    hf_events_progress_fn *on_progress; /* with how many events were looked at; those of all streams
                                           are looked at twice, in their stream and then in the
                                           order of all, and from there on the total is known;
                                           default none */
    void *user;                         /* handed to it */
};

struct hf_events_verified {
    uint64_t streams, events;       /* that were looked at */
    struct hf_event_stream_key bad; /* the first damaged stream; no domain: there is none */
    uint64_t bad_version;
    uint64_t reserved[4];
};

/*
 * Compute the hashes of a stream again (NULL: of all streams, with the global order against them,
 * and with blobs) and compare. Each event's hash covers its content and the hash before it, so an
 * event that was changed, left out, put in or moved shows. HF_CORRUPT: it does; the message says
 * where. HF_UNSUPPORTED: the store has no chain.
 */
HF_API HF_NODISCARD enum hf_status hf_events_verify(struct hf_scope *s, struct hf_events *store,
                                                    const struct hf_event_stream_key *stream,
                                                    const struct hf_events_verify_options *options,
                                                    struct hf_events_verified *verified);

/* ---- out and in ----------------------------------------------------------------------------- */

/* Takes a piece of the text; anything but HF_OK ends the export. */
typedef enum hf_status hf_events_write_fn(struct hf_scope *s, const void *bytes, size_t len,
                                          void *user);
/* Gives at most `cap` bytes; *len 0: the end. */
typedef enum hf_status hf_events_read_fn(struct hf_scope *s, void *bytes, size_t cap, size_t *len,
                                         void *user);

struct hf_events_transfer {
    size_t size;                        /* set by HF_OPTIONS() */
    uint32_t batch;                     /* events; default 200 out; in: at most as many as go into
                                           a transaction, 24 */
    struct hf_str domain;               /* out: only of that domain; default all */
    struct hf_str after, until;         /* out: positions; default all */
    bool replace;                       /* in: hf_events_reset() first, once there is an event */
    bool renumber;                      /* in: append behind what is there, instead of failing when
                                           a version is not the next of its stream */
    hf_events_progress_fn *on_progress; /* default none */
    void *user;                         /* handed to it */
};

/*
 * All events that are read in their order, archived ones too, as JSON lines (src/events/
 * events_json.c and docs/events.md describe them), payloads of the blob store among them. *count
 * (may be NULL) is how many. What is said of streams (limits, tombstones, the archive) is not in
 * it, but for versions that are not there any more, so that a stream begins where it did.
 *
 * Import appends them: ids, times, versions and all else are kept, positions are new, in the same
 * order. An interrupted import can be repeated, from the beginning: what is there is not appended
 * again. *count (may be NULL) is how many were appended.
 *
 * HF_SERIALIZATION  a line is no event; the message says which line and why; those before it are in
 * HF_CONDITION      its version is not the next of its stream; the message says which line
 * HF_DUPLICATE      its id is there, of another event
 * HF_IN_USE, HF_IN_USE  its stream is archived, was deleted
 */
HF_API HF_NODISCARD enum hf_status hf_events_export(struct hf_scope *s, struct hf_events *store,
                                                    const struct hf_events_transfer *options,
                                                    hf_events_write_fn *write, void *user,
                                                    uint64_t *count);
HF_API HF_NODISCARD enum hf_status hf_events_import(struct hf_scope *s, struct hf_events *store,
                                                    const struct hf_events_transfer *options,
                                                    hf_events_read_fn *read, void *user,
                                                    uint64_t *count);

/* One event as a line of such an export, without the newline; and back. In the scope. */
HF_API HF_NODISCARD enum hf_status
hf_event_to_json(struct hf_scope *s, const struct hf_stored_event *event, struct hf_str *json);
HF_API HF_NODISCARD enum hf_status hf_event_from_json(struct hf_scope *s, struct hf_str json,
                                                      struct hf_stored_event *event);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
