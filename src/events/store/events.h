/*
 * events/store/events.h: the table of an event store, and what its files share.
 *
 * One table, keys pk and sk, both S. STREAM is the key of domain and id (hf__pattern_key()),
 * VERSION 16 digits, DAY a UTC day as 20261115, SHARD two digits, POS a position, COMMIT the
 * position of the first event of an append.
 *
 *     pk            sk        what
 *     s.STREAM      VERSION   an event of a stream, whole
 *     s.STREAM      h         its head: version, position and hash of its last event, and what was
 *                             said about the stream (truncated, limits, archived, deleted)
 *     a.DAY.SHARD   COMMIT    the global order: events of one stream that were appended together,
 *                             whole again, in one item
 *     z.DAY.SHARD   COMMIT    the same of archived streams
 *     m.DAY.SHARD   m         up to which position that part of the order is closed
 *     d             DAY       there is something of that day; `closed` when all its parts are for
 *                             good
 *     d             closed    days before `upto` cannot come any more
 *     d             moved.N   how often commits were moved into the archive, and out of it
 *     i.ID          i         an id that a caller chose: which stream, version and position
 *     r.ID          POS       an event that ID caused, that is correlated with ID, or both
 *     t.COMMIT      NUMBER    events of an append that is larger than a transaction, in order
 *     x             COMMIT    such an append was begun, when; goes when it is visible
 *     y             COMMIT    the sweep gave it up, when; goes when nothing of it is left
 *     n.STREAM      n         a snapshot; n.NAME for that of an aggregate that has a name
 *     q.NAME        q         a subscription: its checkpoint, its holder
 *     f.NAME        f         how far a replay of flows has come, and which one has it
 *     c             config    what the table is: kind, shards, whether there is a chain
 *
 * events_item.c lists the attributes of each. Nothing is listed twice: the event itself is one map,
 * the same bytes in its stream and in the global order; where it is says the rest (stream, version,
 * position).
 *
 * Positions. 10 characters of the time in milliseconds, 4 of a count, 2 of the shard, 10 that
 * nobody else has, in Crockford's base 32, so that texts sort as positions do. An append takes a
 * position that is greater than that of the head of each stream it appends to, than any that its
 * store has made and than any that it has read: a clock that runs behind does not matter. The
 * events of one commit have positions that differ in their last two characters alone, from 00 on,
 * so an event is found by its position: its commit has the same with 00. An append to several
 * streams, or of more than an item takes, is several commits: their counts follow each other, all
 * else is the same.
 *
 * Nothing is skipped. An append is one transaction: the head moves on, on the condition that it is
 * where it was seen; the events are put under their versions, and once more as one item into the
 * global order; and a check that the marker of that day and shard is there and not closed at or
 * beyond the new position. A reader of the global order looks what there is in the shards, takes
 * the greatest position that it wants to hand out, closes all shards up to it, and reads again what
 * lies before it: whatever is committed later has a greater position, since its check would have
 * failed. An append that is refused learns from the marker up to where it is closed, and tries
 * again behind that; a day that is closed for good is closed up to the first position of the next
 * one. Markers that are closed far enough are not written again, so readers of history write
 * nothing, and idle readers neither. A reader leaves alone for a moment what is new (settle_ms), so
 * that appends beside it are not refused all the time.
 *
 * Before a reader moves on to a later day, or begins with one, it raises `upto` to that day, reads
 * the list of days before it again, and closes each for good, in their order; then `closed` is
 * noted at the day. So a day with `closed` can be read, and so can all before it, without another
 * look. A marker is made by the first append that misses it, in one transaction with d/DAY that
 * checks `upto`; or by a reader that closes a day of the list: then it is closed from the
 * beginning.
 *
 * All this rests on a query that is asked after a marker was moved seeing every transaction that
 * had passed the marker before, as a whole. Our engine's do. Amazon's service lets a transaction
 * take effect item by item: for that moment the marker may be free again, and the commit not be
 * there yet. Then the reader would miss it. There settle_ms has to be longer than such a moment: a
 * commit that is missed had its position taken longer ago than that.
 *
 * Large appends. Events are staged under t.COMMIT, after x/COMMIT says so; then one transaction
 * moves the heads, removes x/COMMIT on the condition that it is there, puts stubs (`l` = COMMIT)
 * into the global order and into each stream, under the first and under the last version of the
 * range that they stand for, so that reading from either side meets one. The sweep replaces
 * x/COMMIT of old ones by y/COMMIT first, and then removes the staged events: after that the last
 * step cannot succeed any more.
 *
 * The chain. hash = SHA-256 of the hash before (32 zero bytes for the first) and of the event,
 * each field with its length in front (events_chain.c lists them). Payloads go in by their SHA-256,
 * so that those in the blob store need not be fetched.
 */
#ifndef HF_EVENTS_STORE_EVENTS_H
#define HF_EVENTS_STORE_EVENTS_H

#include "coord/pattern.h"
#include "coord/wakers.h"

#include <holdfast/events.h>
#include <holdfast/pages.h>

#include <stdatomic.h>

enum {
    EVENTS_VERSION_LEN = 16,        /* digits of a sort key */
    EVENTS_NUMBER_LEN = 6,          /* of t.COMMIT */
    EVENTS_DAY_LEN = 8,             /* 20261115 */
    EVENTS_PART_LEN = 13,           /* "a.20261115.03" */
    EVENTS_COMMIT_MAX = 1024,       /* events of one commit: two characters of a position */
    EVENTS_ITEM_BYTES = 370 * 1000, /* of one event; DynamoDB's limit is 400 KB */
    EVENTS_COMMIT_BYTES = 380 * 1000,
    EVENTS_TX_BYTES = 3900 * 1000, /* of one transaction; DynamoDB's limit is 4 MB */
    EVENTS_PK_MAX = 2048,          /* bytes of a partition key */
    EVENTS_HASH = 32,
    EVENTS_WAKERS_MAX = 256
};

/* The greatest version that has a sort key. */
#define EVENTS_VERSION_MAX UINT64_C(9999999999999999)

_Static_assert(EVENTS_PART_LEN == 2 + EVENTS_DAY_LEN + 1 + 2, "a.DAY.SHARD");
_Static_assert(HF_EVENTS_SHARDS_MAX <= 100, "a shard has two digits in a key");
_Static_assert(HF_BLOB_DIGEST_LEN == 2 * EVENTS_HASH, "a blob is named by its SHA-256");
_Static_assert(HF_EVENTS_APPEND_MAX <= 999999, "NUMBER has six digits");
_Static_assert(EVENTS_VERSION_MAX < INT64_MAX - HF_EVENTS_APPEND_MAX, "versions do not overflow");

/* A position, with a NUL behind it; "" is none, and before all others. */
struct events_position {
    char text[HF_POSITION_LEN + 1];
};
_Static_assert(sizeof(struct events_position) == HF_POSITION_LEN + 1, "compared by memcmp()");

static inline struct hf_str position_str(const struct events_position *position)
{
    return hf_str_of(position->text, position->text[0] ? HF_POSITION_LEN : 0);
}

/* ---- events.c: the store -------------------------------------------------------------------- */

struct events_heads; /* events_heads.c */
struct events_gates;

struct hf_events {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *kept; /* what lives as long as the store does */
    struct hf_str table;
    uint32_t shards;
    bool chain;
    uint32_t blob_bytes;
    uint32_t read_units, write_units;
    struct hf_blobs *blobs;  /* a part of a blob store that is the table's alone; NULL: none */
    struct hf_blobs *beside; /* the blob store beside the database, when `blobs` is a part of it */
    struct hf_item names_head, names_pk,
        names_marker; /* placeholders that requests have in common */
    struct events_heads *heads;
    struct events_gates *gates;
    _Atomic uint32_t marked[HF_EVENTS_SHARDS_MAX]; /* the last day of which there is a marker */
    _Atomic uint64_t clock;      /* the last time and count that were given out or seen */
    _Atomic uint64_t busy;       /* shards that somebody here is appending to, a bit each */
    _Atomic uint32_t next_shard; /* where to look for a free one next */
    struct wakers wakers;
};

/* Call all listeners: something was appended. */
void hf__events_wake(struct hf_events *store);

/* ---- events_position.c: positions, days, shards, markers ------------------------------------ */

/* The next position of this store in that shard, greater than all that it has made or observed; the
 * `count` - 1 that follow it with a greater count are the caller's too. Its number is 00. */
struct events_position hf__events_position_make(struct hf_events *store, uint32_t shard,
                                                uint32_t count);

/* The same, but at least `ahead_ms` ahead of the time of day, and of `after` (may be absent); the
 * clock of the store stays where it is. */
struct events_position hf__events_position_ahead(struct hf_events *store, uint32_t shard,
                                                 uint32_t count, uint32_t ahead_ms,
                                                 struct hf_str after);

/* The one with a count that is greater by `more`; or with another number of an event in its
 * commit. */
struct events_position hf__events_position_later(const struct events_position *base, uint32_t more);
void hf__events_position_number(struct events_position *position, uint32_t number);

/* Later positions of this store are greater than that one. What is no position is ignored. */
void hf__events_observe(struct hf_events *store, struct hf_str position);

/* The parts of a position; false: it is none. Any may be NULL. */
bool hf__events_position_read(struct hf_str position, int64_t *ms, uint32_t *shard,
                              uint32_t *number);
static inline bool is_position(struct hf_str text)
{
    return hf__events_position_read(text, NULL, NULL, NULL);
}

/* The least position of that time, whatever the shard: greater than all that come before it. */
struct events_position hf__events_position_floor(int64_t ms);

/* Days as in keys, from and to the time at which they begin; false: it is no day. */
void hf__events_day(int64_t ms, char day[EVENTS_DAY_LEN + 1]);
bool hf__events_day_begin(struct hf_str day, int64_t *ms);
bool hf__events_is_day(struct hf_str day);

/* HF_CORRUPT: the list of days has something that is no day. */
enum hf_status hf__events_fail_day(struct hf_scope *s, const struct hf_events *store,
                                   struct hf_str day);

/* "a.DAY.SHARD", with kind 'a', 'z' or 'm', of that day or of the day and shard of that position;
 * in the scope, absent without memory. */
struct hf_str hf__events_part(struct hf_scope *s, char kind, struct hf_str day, uint32_t shard);
struct hf_str hf__events_part_of(struct hf_scope *s, char kind, struct hf_str position);

/* A shard to append to that no other thread uses right now, if there is one; to be given back. */
uint32_t hf__events_shard_take(struct hf_events *store);
void hf__events_shard_give(struct hf_events *store, uint32_t shard);

/*
 * Markers: m.DAY.SHARD/m has `c`, the position up to which (with it) that part is closed, "0" when
 * it is new. d/DAY is there when any marker of the day is. d/closed has `u`, a day.
 *
 * The check of an append: the marker is there, and open at that position.
 */
struct hf_condition_check hf__events_marker_check(struct hf_scope *s, struct hf_events *store,
                                                  struct hf_str position);

/* Is it known that the marker of that position's day and shard is there? A store that has appended
 * there knows. */
bool hf__events_marked(const struct hf_events *store, struct hf_str position);
void hf__events_mark(struct hf_events *store, struct hf_str position, bool there);

/* Make the marker of that position's day and shard, unless it is there. *over: that day is, so
 * there will be none; the clock is moved to the first day that is not, so the next position is one
 * of that. */
enum hf_status hf__events_marker_make(struct hf_scope *s, struct hf_events *store,
                                      struct hf_str position, bool *over);

/* ---- events_heads.c: heads of streams ------------------------------------------------------- */

enum events_state { EVENTS_LIVE, EVENTS_ARCHIVED, EVENTS_DELETED };

struct events_head {
    uint64_t version; /* 0: it has had no event */
    struct events_position position;
    uint8_t hash[EVENTS_HASH]; /* zero without a chain, and before the first event */
    uint64_t truncated;        /* versions before this one are not read; 0: none is hidden */
    uint64_t swept;            /* versions before this one are removed; 0: none is */
    uint64_t max_count;        /* so many versions are read; 0: no limit */
    uint32_t max_age_s;        /* older events are not read; 0: no limit */
    enum events_state state;
};

/* "s.STREAM" or another letter, in the scope. HF_INVALID: there is no domain, or one of the two is
 * too long; the message says which. HF_NOMEM. */
enum hf_status hf__events_stream_pk(struct hf_scope *s, char kind,
                                    struct hf_event_stream_key stream, struct hf_str *pk);

/* The stream of such a key; in the scope. */
enum hf_status hf__events_stream_of(struct hf_scope *s, struct hf_str pk,
                                    struct hf_event_stream_key *stream);

/* For messages: "order/7". */
struct hf_str hf__events_stream_text(struct hf_scope *s, struct hf_event_stream_key stream);

/* What the item of a head says; an absent item gives a head of version 0. HF_CORRUPT. */
enum hf_status hf__events_head_view(struct hf_scope *s, struct hf_item item,
                                    struct events_head *head);

/* Read it, consistently. */
enum hf_status hf__events_head_read(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                    struct events_head *head);

/* The oldest version that may be read, by its number: truncation and max_count. One past the
 * version when there is none. And whether an event of that position is too old by max_age_s. */
uint64_t hf__events_head_first(const struct events_head *head);
bool hf__events_head_expired(const struct hf_events *store, const struct events_head *head,
                             struct hf_str position);

/* Remembered heads: version, position and hash of live streams, as of some time. */
enum hf_status hf__events_heads_new(struct hf_scope *s, struct hf_events *store, uint32_t slots);
void hf__events_heads_free(struct hf_events *store);
bool hf__events_heads_find(struct hf_events *store, struct hf_str pk, struct events_head *head);
void hf__events_heads_keep(struct hf_events *store, struct hf_str pk,
                           const struct events_head *head);
void hf__events_heads_drop(struct hf_events *store, struct hf_str pk);
void hf__events_heads_clear(struct hf_events *store);

/* Gates: of the threads of this process that append to one stream one is let in at a time. A thread
 * that has waited for long goes on all the same: gates save attempts, nothing rests on them. */
enum hf_status hf__events_gates_new(struct hf_scope *s, struct hf_events *store);
void hf__events_gates_free(struct hf_events *store);
void hf__events_gate_enter(struct hf_scope *s, struct hf_events *store, struct hf_str pk);
void hf__events_gate_leave(struct hf_events *store, struct hf_str pk);

/* ---- events_chain.c: hashes ----------------------------------------------------------------- */

/* SHA-256 of what the event says: all but where it is and when it happened. */
void hf__events_content(const struct hf_stored_event *event, uint8_t digest[EVENTS_HASH]);

/* The hash of the event, given the content's and the hash before it in the stream. */
void hf__events_chain(const struct hf_stored_event *event, const uint8_t content[EVENTS_HASH],
                      const uint8_t before[EVENTS_HASH], uint8_t hash[EVENTS_HASH]);

/* ---- events_item.c: how events are stored --------------------------------------------------- */

/* A version as a sort key. One that is too large has the key of the greatest: a read from there
 * finds nothing behind it. */
void hf__events_version_text(uint64_t version, char text[EVENTS_VERSION_LEN + 1]);

/* The map of an event: what is the same in its stream and in the global order. Absent fields of the
 * event, and such with their default, are left out; so are stream, version and position. Poisoned
 * when it cannot be. */
struct hf_item hf__events_map(struct hf_scope *s, const struct hf_stored_event *event);

/* The item of an event in its stream, or in t.COMMIT: `e` the map, `p` the position. */
struct hf_item hf__events_item(struct hf_scope *s, struct hf_str pk, struct hf_str sk,
                               struct hf_str position, struct hf_item map);

/* What such a map says. The event has its stream, version and position already. Texts and payload
 * point into the map. The payload of one that is in the blob store is absent. HF_CORRUPT. */
enum hf_status hf__events_map_view(struct hf_scope *s, struct hf_value map,
                                   struct hf_stored_event *event);

/* The same of an event's item in its stream or in t.COMMIT, whose stream and version are given. */
enum hf_status hf__events_item_view(struct hf_scope *s, struct hf_item item,
                                    struct hf_event_stream_key stream, uint64_t version,
                                    struct hf_stored_event *event);

/*
 * A commit: an item of the global order (a.DAY.SHARD or z.DAY.SHARD).
 *
 *     pk, sk   sk is the position of its first event
 *     d, i     domain, id of the stream (left out when empty)
 *     v        version of its first event
 *     xNN      the event with that number: its position ends with NN, its version is v + NN
 *     l        instead of events: COMMIT of a large append; then
 *     o, n     which events of t.COMMIT: the NUMBER of the first, and how many
 *
 * Single events may be gone (swept), and then the others keep their numbers.
 */
struct events_commit {
    struct hf_str position;
    struct hf_event_stream_key stream;
    uint64_t version;
    struct hf_str large; /* absent: the events are in the item */
    uint32_t large_from;
    uint32_t count;      /* events that it has */
    struct hf_item item; /* as it was given */
};
enum hf_status hf__events_commit_view(struct hf_scope *s, struct hf_item item,
                                      struct events_commit *commit);

/* Some events of a commit: which are asked for, and which there are. */
struct events_run {
    uint32_t from; /* from that number on; 0: from the first */
    struct hf_stored_event *events;
    size_t cap; /* elements of `events` */
    /* found: */
    size_t len;    /* in order */
    uint32_t next; /* the number to go on from, 0 at the end */
};

/* Its events. Those of large ones are read. Payloads in the blob store are not:
 * hf__events_payloads(). */
enum hf_status hf__events_commit_events(struct hf_scope *s, struct hf_events *store,
                                        const struct events_commit *commit, struct events_run *run);

/* ---- events_blob.c -------------------------------------------------------------------------- */

/* The store of blobs: what the caller gave, else that beside the database, else none. */
enum hf_status hf__events_blobs_open(struct hf_scope *s, struct hf_events *store,
                                     struct hf_blobs *given);
void hf__events_blobs_close(struct hf_events *store);

/* Fetch payloads from the blob store for those events that have theirs there. HF_CORRUPT: one is
 * gone. HF_UNSUPPORTED: there is no blob store. */
enum hf_status hf__events_payloads(struct hf_scope *s, struct hf_events *store,
                                   struct hf_stored_event *events, size_t len);

/* ---- events_append_large.c ------------------------------------------------------------------ */

/* What stands in a stream for a part of a large append: see events_item.c. False: the item is none
 * of these. */
struct events_stub {
    struct hf_str large; /* COMMIT */
    uint64_t first;      /* version */
    uint64_t count;
    uint32_t number; /* of the first in t.COMMIT */
};
bool hf__events_stub_view(struct hf_item item, struct events_stub *stub);

/* The items t.COMMIT/`from` to `to`, or backward from `to` to `from`. */
struct events_large_range {
    struct hf_str large; /* COMMIT */
    uint32_t from, to;
    bool backward;
    size_t limit; /* at most so many */
};
enum hf_status hf__events_large_page(struct hf_scope *s, struct hf_events *store,
                                     const struct events_large_range *range,
                                     struct hf_query_result *page);

/* The number of such an item. */
bool hf__events_large_number(struct hf_item item, uint32_t *number);

/* hf__events_commit_events() of a commit that is large. */
enum hf_status hf__events_large_events(struct hf_scope *s, struct hf_events *store,
                                       const struct events_commit *commit, struct events_run *run);

/* The keys of t.COMMIT/NUMBER and of x/COMMIT. */
struct hf_item hf__events_large_key(struct hf_scope *s, struct hf_str large, uint32_t number);
struct hf_item hf__events_begun_key(struct hf_scope *s, struct hf_str large);

/* ---- events_read.c -------------------------------------------------------------------------- */

/* Is the commit of the event with that position there, in the global order or archived? The events
 * of a large append are visible exactly then. The sweep asks this, of COMMIT itself, after
 * x/COMMIT was removed and before t.COMMIT is. */
enum hf_status hf__events_is_there(struct hf_scope *s, struct hf_events *store,
                                   struct hf_str position, bool *there);

/*
 * Where an event is: as i.ID and r.ID say it (attributes s, v, p; l and n for one of a large
 * append), and how it is read: absent (no id) when it is not there or not visible. Whether the
 * stream lets it be read (truncated, deleted) is not looked at.
 */
struct events_place {
    struct hf_str stream; /* STREAM, as in s.STREAM */
    uint64_t version;
    struct hf_str position;
    struct hf_str large; /* COMMIT, absent when it was not large */
    uint32_t number;     /* in t.COMMIT */
};
enum hf_status hf__events_place_view(struct hf_scope *s, struct hf_item item,
                                     struct events_place *place);
enum hf_status hf__events_places_read(struct hf_scope *s, struct hf_events *store,
                                      const struct events_place *places, size_t len,
                                      struct hf_stored_event *events);

/* Find an event by id, as hf_events_get(), without fetching its payload from the blob store, and
 * without looking whether the stream lets it be read. HF_NOT_FOUND. */
enum hf_status hf__events_find(struct hf_scope *s, struct hf_events *store, struct hf_str id,
                               struct hf_stored_event *event);

/* ---- events_causality.c --------------------------------------------------------------------- */

/* `w` of an item of r.ID: what the event has to do with ID. */
enum { EVENTS_CAUSED = 1, EVENTS_CORRELATED = 2 };

/* Which of the events their streams let be read, by the heads as they are now: not truncated, not
 * too old, of no deleted stream. Of an event its stream, version and position are looked at. */
enum hf_status hf__events_readable(struct hf_scope *s, struct hf_events *store,
                                   const struct hf_stored_event *events, size_t len,
                                   bool *readable);

/* ---- events_streams.c ----------------------------------------------------------------------- */

/* What is physically there of a stream, and the hash before it. */
struct events_swept {
    uint64_t first;
    uint8_t hash[EVENTS_HASH];
    struct hf_str unfinished; /* COMMIT of a large append that the sweep is about to remove */
};
enum hf_status hf__events_swept_view(struct hf_scope *s, struct hf_item head,
                                     struct events_swept *swept);

/* The oldest version that may be read, by number and by age; one past the version when there is
 * none. Reads events only when the stream has a limit by age. */
enum hf_status hf__events_first_readable(struct hf_scope *s, struct hf_events *store,
                                         struct hf_str pk, const struct events_head *head,
                                         uint64_t *first);

/* Let a stream that is not there begin with that version, as if what was before had been truncated.
 * Nothing is changed when it is there. */
enum hf_status hf__events_begin_at(struct hf_scope *s, struct hf_events *store,
                                   struct hf_event_stream_key stream, uint64_t first);

/* The version in a sort key; false: it has none. */
bool hf__events_version_read(struct hf_str sk, uint64_t *version);

/* One item of a stream: an event, or what stands for the events of a large append. Nothing in it is
 * hidden: truncated events are met as long as they are there. */
struct events_step {
    uint64_t version;       /* its key */
    uint64_t first, count;  /* the versions it is about */
    struct hf_str position; /* absent for large ones */
    struct hf_str large;    /* COMMIT, absent for others */
    uint32_t number;        /* in t.COMMIT, of the first */
    struct hf_item item;
};
enum hf_status hf__events_step_view(struct hf_scope *s, struct hf_item item,
                                    struct events_step *step);

/* Call it with each step from that version on, each large append once; what it takes of the scope
 * is given back. `fn` may end it with EVENTS_STEP_ENOUGH, which is no failure. */
enum { EVENTS_STEP_ENOUGH = -1 };
typedef enum hf_status events_step_fn(struct hf_scope *s, struct hf_events *store,
                                      const struct events_step *step, void *user);
enum hf_status hf__events_steps(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                uint64_t from, events_step_fn *fn, void *user);

/* The items of t.COMMIT that a step stands for. */
enum hf_status hf__events_large_pages(struct hf_scope *s, struct hf_events *store,
                                      const struct events_step *step, struct hf_pages **pages);

/* A stream as its head says it. */
struct events_found {
    struct hf_event_stream_key stream;
    struct hf_str pk;
    struct events_head head;
    struct hf_item item; /* the head, as it is stored */
};

/* Call it with each head, in no order; a Scan of the table. */
typedef enum hf_status events_head_fn(struct hf_scope *s, struct hf_events *store,
                                      const struct events_found *found, void *user);
enum hf_status hf__events_each_head(struct hf_scope *s, struct hf_events *store, events_head_fn *fn,
                                    void *user);

/* HF_CONDITION: the stream is at version `actual` (0: it has no event), which is not what was
 * expected. */
enum hf_status hf__events_unexpected(struct hf_scope *s, struct hf_event_stream_key stream,
                                     enum hf_expect expect, uint64_t version, uint64_t actual);

/* ---- events_archive.c ----------------------------------------------------------------------- */

/* The name of the first event in a commit, or "l". As events leave a commit from its first one on,
 * one that still has it is as it was. */
struct hf_str hf__events_commit_mark(struct hf_item commit);

/* How often commits were moved into the archive, and out of it, ever. When one of these is the same
 * before and after something was read, nothing was moved that way meanwhile. */
struct events_moves {
    uint64_t in, out;
};
enum hf_status hf__events_moves(struct hf_scope *s, struct hf_events *store,
                                struct events_moves *moves);

/* ---- events_sweep_large.c ------------------------------------------------------------------- */

/* Abandon a large append, so that it cannot become visible any more, unless it has. The events that
 * it has staged are left to the sweep, which finds them by y/COMMIT. */
enum hf_status hf__events_give_up(struct hf_scope *s, struct hf_events *store, struct hf_str large);

/* ---- events_sweep_blobs.c ------------------------------------------------------------------- */

/* Remove blobs that were put last more than `older_s` seconds ago and that nobody names. */
enum hf_status hf__events_sweep_blobs(struct hf_scope *s, struct hf_events *store, uint32_t older_s,
                                      uint64_t *removed);
/* ---- events_reader.c: the global order ------------------------------------------------------ */

/* As hf_events_reader_next(), but of what is at hand: without any event it may be that there are
 * more, or that only others than the options ask for were met (*more). */
enum hf_status hf__events_reader_step(struct hf_scope *s, struct hf_events_reader *reader,
                                      const struct hf_stored_event **events, size_t *len,
                                      bool *more);

/* Let a reader fetch payloads of the blob store, or not. */
void hf__events_reader_payloads(struct hf_events_reader *reader, bool fetch);

/* A position behind all events, closed: whatever is appended from now on lies behind it. "": there
 * are none. */
enum hf_status hf__events_end(struct hf_scope *s, struct hf_events *store,
                              struct events_position *end);

#endif
