/*
 * outbox/outbox.h: what the files of the outbox, the relay and the bus share.
 *
 * One table, keys pk and sk, both S, with these items (n is a bucket as three digits, seq the
 * event's place, see outbox_item.c). pk, sk and ttl are what they are called here and in
 * placeholders; the table may have other names for them: struct pattern_at of the outbox.
 *
 *     pk    sk        what
 *     p.n   seq       a pending event
 *     f.n   seq       a dead letter: an event that has failed for good
 *     h.n   seq       a delivered event of the history, with a time to live
 *     i.ID  i         the seq of the event with an id that a caller chose; with a time to live
 *     c     config    how many buckets there are; ordered or competing; `paused`: outbox_pause.c
 *     c     m.RELAY   a relay: the number of its heartbeats, which buckets it wants
 *     c     b.n       the owner of a bucket, and the fence, which grows with every new owner
 *
 * An event keeps its seq forever, so it is found in any state: an id that we made is its seq. It
 * begins with the time when it is due, in milliseconds, followed by its bucket. That of an urgent
 * one is earlier by OUTBOX_URGENT_MS: so those are in front, whatever else waits.
 */
#ifndef HF_OUTBOX_OUTBOX_H
#define HF_OUTBOX_OUTBOX_H

#include "coord/names.h"
#include "coord/wakers.h"

#include <holdfast/batch.h>
#include <holdfast/outbox.h>

#include <pthread.h>

enum {
    OUTBOX_SEQ_LEN = 26, /* 10 of the time, 2 of the bucket, 14 that nobody else has */
    OUTBOX_WAKERS_MAX = 64,
    OUTBOX_SKEW_MS = 60000, /* by how much an emitter's clock may be ahead of ours, or step back,
                               before that delays an event or changes the order */
    OUTBOX_CAUSE_MAX = 200, /* bytes */
    OUTBOX_PAGE = 100,      /* items that lists ask for at once */
    OUTBOX_LOOK_MAX = 50,   /* buckets of one hf__outbox_look(): a statement may name no more */
    OUTBOX_LOOK_AGAIN_MS = 60000 /* after a look that failed, or had an incomplete answer */
};

/* The time in the place of an urgent event is earlier by so much, the time from 1970 to 2020. So all
 * urgent events are before OUTBOX_URGENT_END, the place of other events that are due in 2020, and this
 * works until 2070. */
#define OUTBOX_URGENT_MS INT64_C(1577836800000)
#define OUTBOX_URGENT_END "01dxf6dt00"

/* The latest time that a place can have, in milliseconds since 1970. */
#define OUTBOX_DUE_MAX_MS ((INT64_C(1) << 50) - 1)

/* Called after events were emitted into that bucket, urgent ones or others. UINT32_MAX: neither the
 * bucket is known nor whether they are urgent. */
typedef void outbox_wake_fn(void *user, uint32_t bucket, bool urgent);

/* Where an event is, in any partition. */
struct outbox_place {
    uint32_t bucket;
    char seq[OUTBOX_SEQ_LEN + 1];
};

enum outbox_mode { OUTBOX_UNUSED, OUTBOX_ORDERED, OUTBOX_COMPETING };

struct hf_outbox {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* holds the texts of the options */
    struct pattern_at at;   /* what the key and the time to live are called */
    struct hf_str table, source;
    uint32_t buckets, history_s, unique_s;
    struct hf_blobs *blobs; /* a part of those of the options; NULL: none */
    size_t blob_over;
    bool transactions;
    struct wakers wakers;
    pthread_mutex_t mutex; /* guards all below */
    int64_t last_ms;       /* time of the last seq that was made */
    uint64_t last_count;
    enum outbox_mode mode; /* as it was read or stamped last */
    int64_t mode_until_us; /* until then, by the elapsed clock, the mode is not read again */
    uint64_t unreadable;   /* items that became dead letters as they are not events */
    int64_t strays_us;     /* when strays are searched next, by the elapsed clock */
    uint32_t strays_at; /* the bucket, which does not exist, with which that begins; 0: the first */
    bool claims_bare;   /* the last claim saw no event in any bucket */
    int64_t look_again_us; /* before that, by the elapsed clock, hf__outbox_look() fails at once */
};

/* ---- outbox_place.c, outbox_item.c: how events are stored; nothing is sent here ---------------- */

/* `partition` is "p", "f" or "h". */
struct hf_item hf__outbox_key(struct hf_scope *s, const struct hf_outbox *outbox,
                              const char *partition, uint32_t bucket, struct hf_str seq);

/* The key of anything in the table; and what an item has as its key. */
struct hf_item hf__outbox_key_of(struct hf_scope *s, const struct hf_outbox *outbox,
                                 struct hf_str pk, struct hf_str sk);

static inline struct hf_str pk_of(const struct hf_outbox *outbox, struct hf_item item)
{
    return hf_value_str(hf_item_get(item, outbox->at.hash));
}

static inline struct hf_str sk_of(const struct hf_outbox *outbox, struct hf_item item)
{
    return hf_value_str(hf_item_get(item, outbox->at.sort));
}

static inline struct hf_attr outbox_key_attr(struct hf_str name, struct hf_str text)
{
    return (struct hf_attr){.name = name, .type = HF_TYPE_S, .text = text};
}

/* The time to live, in seconds since 1970. */
static inline struct hf_attr ttl_attr(const struct hf_outbox *outbox, int64_t at_s)
{
    return (struct hf_attr){.name = outbox->at.expires, .type = HF_TYPE_N, .number = at_s};
}

/* That partition of a bucket: the pk. */
struct hf_str hf__outbox_pk(struct hf_scope *s, const char *partition, uint32_t bucket);

/*
 * Read the item of an event; the texts of the event are those of the item. An event that was not
 * scheduled has a due_us of 0: hf__outbox_due_ms() says since when it is due. HF_CORRUPT: the item is
 * not an event; the message says why. Unreadable parts of a dead letter are left out.
 */
enum hf_status hf__outbox_view(struct hf_scope *s, const struct hf_outbox *outbox,
                               struct hf_item item, struct hf_outbox_event *event);

/* Move a view to a copy of its item. False: a part of the view is not in the item, but was converted,
 * like a payload that is a map; then call hf__outbox_view() for the copy. */
bool hf__outbox_view_move(struct hf_outbox_event *event, struct hf_item copy);

/* The bucket of a key; the hash is frozen. */
uint32_t hf__outbox_bucket(const struct hf_outbox *outbox, struct hf_str key);

/* The smallest seq that is due at or after that time. */
void hf__outbox_seq_floor(int64_t due_ms, char seq[OUTBOX_SEQ_LEN + 1]);

/*
 * The place of a new event of that bucket (UINT32_MAX: any), due at that time or now if that is
 * later. Each is behind the one before, if it is due at the same time and as urgent.
 */
void hf__outbox_place_make(struct hf_outbox *outbox, int64_t due_ms, bool urgent, uint32_t bucket,
                           struct outbox_place *place);

/* The place that follows from an id alone, without transactions. */
void hf__outbox_place_of_id(const struct hf_outbox *outbox, struct hf_str id, struct hf_str key,
                            int64_t due_ms, bool urgent, struct outbox_place *place);

/* Is it the place of an urgent event, or of one that is due before 2020? An empty place is
 * OUTBOX_SEQ_LEN zeros. */
static inline bool is_urgent_seq(const char *seq)
{
    return memcmp(seq, OUTBOX_URGENT_END, sizeof(OUTBOX_URGENT_END) - 1) < 0;
}

/* The seq of the same time among the urgent ones, or among the others. */
void hf__outbox_seq_among(struct hf_str seq, bool urgent, char to[OUTBOX_SEQ_LEN + 1]);

/* The bucket that a seq names, which may be one that the outbox does not have. False: it is no seq. */
bool hf__outbox_seq_bucket(struct hf_str seq, uint32_t *bucket);

/* False: it is no seq of this outbox. */
bool hf__outbox_place_read(const struct hf_outbox *outbox, struct hf_str seq,
                           struct outbox_place *place);

static inline struct hf_str place_seq(const struct outbox_place *place)
{
    return hf_str_of(place->seq, OUTBOX_SEQ_LEN);
}

/* Since when an event is due, or from when on. */
int64_t hf__outbox_due_ms(const struct hf_outbox_event *event);

/* Is it not due yet? For an event that was not scheduled see OUTBOX_SKEW_MS. */
bool hf__outbox_is_early(const struct hf_outbox_event *event, int64_t now_us);

/* HF_INVALID: the event is invalid; it is the number-th of those that are emitted. */
enum hf_status hf__outbox_check(struct hf_scope *s, const struct hf_event *event, size_t number);

/* Is the place that was made for an event still right after the event was changed? */
bool hf__outbox_place_fits(const struct hf_outbox *outbox, const struct outbox_place *place,
                           const struct hf_event *event);

/* The key that its order is kept for; absent: none. */
struct hf_str hf__outbox_event_key(const struct hf_event *event);

/* An event that is emitted: what its item is made from. */
struct outbox_draft {
    const struct hf_event *event;
    size_t number; /* it is the number-th of those that are emitted, for messages */
    const struct outbox_place *place;
    struct hf_str blob; /* instead of the payload; absent: none */
    struct hf_str put;  /* who writes it, by which a lost answer is recognised; absent: nobody */
};

/* The item of an event that waits. HF_INVALID, HF_LIMIT. */
enum hf_status hf__outbox_image(struct hf_scope *s, const struct hf_outbox *outbox,
                                const struct outbox_draft *draft, struct hf_item *item);

/* Where an event is moved to, and the attributes that it has there instead of those of its delivery:
 * as many as there is room for, so put the most important ones first. */
struct outbox_move {
    const char *partition;
    const struct outbox_place *place;
    const struct hf_attr *more;
    size_t more_len;
};

/* The item of the same event there. */
struct hf_item hf__outbox_moved(struct hf_scope *s, const struct hf_outbox *outbox,
                                struct hf_item item, const struct outbox_move *to);

/* Has the item of a pending event room for everything that may be noted in it? */
bool hf__outbox_has_room(struct hf_scope *s, const struct hf_outbox *outbox, struct hf_item item);

/* A failure as it is stored: its text, cut, and the cause, which failures of one kind share. */
struct outbox_failure {
    enum hf_status status;
    struct hf_str name; /* of the status */
    struct hf_str text;
    struct hf_str cause;
};
struct outbox_failure hf__outbox_failure(struct hf_scope *s, const struct hf_error *error);

/* ---- outbox_only.c: a part of the events ----------------------------------------------------- */

struct holders;

/* A text that is absent selects all events. A type may end with "*". */
struct outbox_only {
    struct hf_str type, key, tenant;
};

/* HF_INVALID: a text is longer than that of any event. */
enum hf_status hf__outbox_only_check(struct hf_scope *s, const struct outbox_only *only);

bool hf__outbox_only_has(const struct outbox_only *only, const struct hf_event *event);

/* The same as a filter of a request; absent: all. hf__outbox_and() joins two of those. */
struct hf_str hf__outbox_only_filter(struct holders *h, const struct outbox_only *only);
struct hf_str hf__outbox_and(struct hf_scope *s, struct hf_str one, struct hf_str other);

/* The bucket that these events are in; UINT32_MAX: any. */
uint32_t hf__outbox_only_bucket(const struct hf_outbox *outbox, const struct outbox_only *only);

/* For people, and to compare; absent: all. */
struct hf_str hf__outbox_only_text(struct hf_scope *s, const struct outbox_only *only);

/* ---- outbox_emit.c ---------------------------------------------------------------------------- */

/* The id that the event, which has none, gets when it is stored; in the scope. */
struct hf_str hf__outbox_reserve(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event *event);

/* hf_outbox_emit(), or hf_outbox_emit_into() if `tx` is not NULL, of events for which places were reserved in their order, whether or not the places
 * became their ids. If an event's key or time was changed meanwhile, it and all events behind it get
 * new places, as the order of the places is that of the events. */
enum hf_status hf__outbox_emit_reserved(struct hf_scope *s, struct hf_outbox *outbox,
                                        struct hf_tx *tx, const struct hf_event *events,
                                        const struct hf_str *places, size_t len);

/* ---- outbox.c -------------------------------------------------------------------------------- */

/* False: there are too many already. Not to be called inside of a wake function. */
bool hf__outbox_listen(struct hf_outbox *outbox, outbox_wake_fn *wake, void *user);
void hf__outbox_unlisten(struct hf_outbox *outbox, outbox_wake_fn *wake, void *user);

/*
 * Stamp the table as one of ordered or competing work. HF_INVALID: it is the other one, and relays
 * of it may be alive: there is an item m.RELAY, or one has called this within ten minutes. To be
 * called before each round of work; it asks the database once a minute at most.
 */
enum hf_status hf__outbox_take_mode(struct hf_scope *s, struct hf_outbox *outbox, bool competing);

/* ---- outbox_pause.c ------------------------------------------------------------------------- */

/* What the item c/config says about a pause; its texts are those of the item. */
bool hf__outbox_config_paused(struct hf_item config, struct hf_outbox_pause *pause);

/* ---- outbox.c, again ------------------------------------------------------------------------ */

/* Call all wakers. UINT32_MAX: any bucket. */
void hf__outbox_wake(struct hf_outbox *outbox, uint32_t bucket, bool urgent);

/*
 * Write these actions in one transaction, with a token; it is sent again after an ambiguous failure or
 * a conflict. The error says whether it may have happened.
 */
enum hf_status hf__outbox_transact(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_transact_write *actions, size_t len);

/* hf_write_many(), sent again after an ambiguous failure. */
enum hf_status hf__outbox_write_many(struct hf_scope *s, struct hf_outbox *outbox,
                                     const struct hf_write *writes, size_t len);

/* ---- outbox_blob.c --------------------------------------------------------------------------- */

/* May its payload have to go to the blob store? */
bool hf__outbox_is_large(const struct hf_outbox *outbox, const struct hf_event *event);

/* Fetch the payloads that are in the blob store, or set blob_error. */
void hf__outbox_fetch(struct hf_scope *s, const struct hf_outbox *outbox,
                      struct hf_outbox_event *events, size_t len);

/* Could the payload not be fetched for a reason that may pass: it is neither missing nor damaged? */
static inline bool is_blob_unavailable(enum hf_status blob_error)
{
    return blob_error != HF_OK && blob_error != HF_NOT_FOUND && blob_error != HF_CORRUPT &&
           blob_error != HF_INVALID;
}
struct hf_str hf__outbox_blob_text(struct hf_scope *s, const struct hf_outbox_event *event);

/* Make its blob new, so that a sweep that runs while the event moves does not remove it. */
enum hf_status hf__outbox_renew(struct hf_scope *s, const struct hf_outbox *outbox,
                                const struct hf_outbox_event *event);

/* ---- outbox_list.c --------------------------------------------------------------------------- */

/* As hf_outbox_failed(), hf_outbox_history() and hf_outbox_get(), without payloads of the blob
 * store. */
enum hf_status hf__outbox_failed(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event_list_options *options,
                                 struct hf_event_list *list);
enum hf_status hf__outbox_history(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_event_list_options *options,
                                  struct hf_event_list *list);
enum hf_status hf__outbox_get(struct hf_scope *s, struct hf_outbox *outbox, struct hf_str id,
                              struct hf_outbox_event *event);

/* Log that an item was skipped, with the error of the scope. */
void hf__outbox_log_skipped(struct hf_scope *s, const struct hf_outbox *outbox);

/* ---- outbox_reject.c ------------------------------------------------------------------------- */

/* Make a dead letter of a pending item that hf__outbox_view() could not read; the scope has the error.
 * It is logged and counted; a failure is logged, as the caller goes on with other items. */
void hf__outbox_reject(struct hf_scope *s, struct hf_outbox *outbox, struct hf_item item);

/* How many items this handle has rejected. */
uint64_t hf__outbox_unreadable(struct hf_outbox *outbox);

/* Search such items where relays do not read, once a minute. */
void hf__outbox_find_strays(struct hf_scope *s, struct hf_outbox *outbox);

/* ---- outbox_claim.c, outbox_claimed.c -------------------------------------------------------- */

/* How an attempt that has failed is counted. */
enum outbox_try {
    OUTBOX_TRIED,    /* it has to be counted */
    OUTBOX_BEGUN,    /* hf__outbox_begin() or hf__outbox_claim_begin() has counted it */
    OUTBOX_NOT_TRIED /* there was no attempt: the event is given up because of earlier ones */
};

/* An attempt that has failed, and what comes of it. */
struct outbox_attempt {
    const struct hf_error *error; /* may be the scope's */
    enum outbox_try tried;
    bool give_up; /* it was the last one: the event becomes a dead letter */
    int64_t
        next_us; /* otherwise there is none before that time; not for claims, which have options */
};

/* hf_outbox_claim() without payloads of the blob store, for relays, which count attempts of suspects
 * themselves; and whether an event is a suspect. */
enum hf_status hf__outbox_claim(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_claim_options *options, struct hf_claim_list *list);

bool hf__outbox_is_suspect(const struct hf_outbox_event *event);

/* hf__outbox_begin() for a claimed event. HF_LOST: the claim is lost. */
enum hf_status hf__outbox_claim_begin(struct hf_scope *s, struct hf_outbox *outbox,
                                      const struct hf_claimed_event *event, struct hf_str by);

/* hf_outbox_fail(), with how the attempt is counted. */
enum hf_status hf__outbox_fail(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_claimed_event *event,
                               const struct outbox_attempt *attempt,
                               const struct hf_claim_options *options);

/* hf_outbox_release(); the event is not claimed before next_us (0: at once). `begun`: an attempt was
 * counted, but did not begin. */
enum hf_status hf__outbox_release(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_claimed_event *event, int64_t next_us,
                                  bool begun);

/* ---- outbox_work.c: what relays do ----------------------------------------------------------- */

/* Which events of a bucket are to be read, and those that were found. */
struct outbox_reading {
    uint32_t bucket;
    struct hf_str after; /* behind that seq; absent: from the start */
    int64_t now_ms;      /* due at that time */
    uint32_t skew_ms;    /* or a little later, as clocks of emitters may be ahead; OUTBOX_SKEW_MS at
                            most. All that is scheduled for that time is read, too */
    uint32_t limit;
    bool reject; /* items that are not events become dead letters; otherwise they are logged */
    /* found: */
    struct hf_outbox_event *events; /* in the scope */
    size_t len;
    bool more; /* there may be others behind them */
};

/*
 * Read events that wait, by a consistent read, in order. Events that wait for a retry are among them
 * (next_us), as those behind them may have to wait for them. All are of one answer of the database, so
 * events that were committed before one of them are there, too. Late emitters may add events in front
 * of those that were read: read from the start now and then.
 */
enum hf_status hf__outbox_read(struct hf_scope *s, struct hf_outbox *outbox,
                               struct outbox_reading *r);

/* Buckets that are asked for at once, and which of them have what is looked for. */
struct outbox_looking {
    const uint32_t *buckets;
    size_t len;  /* up to OUTBOX_LOOK_MAX */
    bool *shown; /* of each bucket */
    bool whole;  /* false: the answer is incomplete, and all are shown */
};

/*
 * Which of these buckets have events that hf__outbox_read() would read from the start: one request for
 * all, by a consistent read. If it fails, as there are no statements or they are not allowed, read
 * each bucket. It fails at once for the next OUTBOX_LOOK_AGAIN_MS.
 */
enum hf_status hf__outbox_look(struct hf_scope *s, struct hf_outbox *outbox,
                               struct outbox_looking *l, int64_t now_ms, uint32_t skew_ms);

/* The same for items with that sort key or a greater one. */
enum hf_status hf__outbox_look_behind(struct hf_scope *s, struct hf_outbox *outbox,
                                      struct outbox_looking *l, struct hf_str from);

/* When the next event of the bucket is due that is not due now; INT64_MAX: none is stored. */
enum hf_status hf__outbox_next_due(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                   int64_t now_ms, int64_t *due_ms);

/*
 * Remove delivered events, in as few requests as possible, or move them to the history. It is not a
 * failure if an event was removed already. On failure some may be removed; call it again.
 */
enum hf_status hf__outbox_done(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_outbox_event *const *events, size_t len);

/*
 * Count an attempt that may crash its process before it begins, as a crash, so that it is known
 * afterwards; and by whom, as it is not a crash while that process lives. hf__outbox_unbegin(): it did
 * not begin after all. `event` has the attempts and crashes before this one. HF_LOST as below.
 */
enum hf_status hf__outbox_begin(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_outbox_event *event, struct hf_str by);
enum hf_status hf__outbox_unbegin(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_outbox_event *event, struct hf_str by);

/* Did that relay count its last attempt? */
bool hf__outbox_is_begun(const struct hf_outbox_event *event, struct hf_str by);

/* The error of an event with so many attempts whose process ended, or may have ended. */
struct hf_error hf__outbox_crash_error(struct hf_scope *s, uint32_t crashes);

/*
 * Note that an attempt has failed: count it; a dead letter is made of event->item. HF_LOST: the event is not there any more with as many attempts as in `event`.
 * On success event->attempts is counted up, and its state, error and times are updated; its texts and
 * its item are not. A lost answer is recognised.
 */
enum hf_status hf__outbox_note_try(struct hf_scope *s, struct hf_outbox *outbox,
                                   struct hf_outbox_event *event,
                                   const struct outbox_attempt *attempt);

static inline enum hf_status hf__outbox_note_failure(struct hf_scope *s, struct hf_outbox *outbox,
                                                     struct hf_outbox_event *event,
                                                     const struct hf_error *error, int64_t next_us,
                                                     bool give_up)
{
    return hf__outbox_note_try(s, outbox, event,
                               &(struct outbox_attempt){.error = error,
                                                        .give_up = give_up,
                                                        .next_us = next_us});
}

/* The attempt after which an event becomes a dead letter. */
struct outbox_last_try {
    struct hf_str id;  /* by which a lost answer is recognised */
    uint64_t attempts; /* with this one */
    const struct outbox_failure *failure;
    int64_t now_us;
};

/* The items of an event that was delivered, by the claim `done` if any; and of a dead letter. Absent
 * when there is no memory. */
struct hf_item hf__outbox_history_item(struct hf_scope *s, const struct hf_outbox *outbox,
                                       const struct hf_outbox_event *event, struct hf_str done);
struct hf_item hf__outbox_failed_item(struct hf_scope *s, const struct hf_outbox *outbox,
                                      const struct hf_outbox_event *event,
                                      const struct outbox_last_try *last);

/* Make a dead letter: put `failed`, and delete the pending event by `del`, on its condition.
 * HF_CONDITION: that did not hold. */
enum hf_status hf__outbox_make_dead_letter(struct hf_scope *s, struct hf_outbox *outbox,
                                           const struct hf_delete_item *del, struct hf_item failed,
                                           struct hf_str try_id);

/* Is there a dead letter with that key? For failed_blocks. */
enum hf_status hf__outbox_key_failed(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                     struct hf_str key, bool *failed);

#endif
