/*
 * outbox/outbox.h: what the files of the outbox, the relay and the bus share.
 *
 * One table, keys pk and sk, both S, with these items (n is a bucket as three digits, seq the
 * event's place, see outbox_item.c). pk, sk and ttl are what they are called here and in
 * placeholders; the table may have other names for them: struct pattern_at of the outbox.
 *
 *     pk    sk        what
 *     p.n   seq       an event that waits
 *     f.n   seq       one that has failed, and was put aside
 *     h.n   seq       one that was delivered, with a time to live
 *     i.ID  i         an id that a caller chose is taken, by which seq; with a time to live
 *     c     config    how many buckets there are; ordered or competing
 *     c     m.RELAY   a relay: how often it has said that it lives, which buckets it wants
 *     c     b.n       whose the bucket is, and the fence, which grows with every new owner
 *
 * An event keeps its seq for ever, so it is found in any state: an id that we made is its seq. It
 * begins with the time when it is due, in milliseconds, followed by its bucket. That of an urgent
 * one is earlier by OUTBOX_URGENT_MS: so those are in front, whatever else waits.
 */
#ifndef HF_OUTBOX_OUTBOX_H
#define HF_OUTBOX_OUTBOX_H

#include "coord/names.h"

#include <holdfast/batch.h>
#include <holdfast/outbox.h>

#include <pthread.h>

enum {
    OUTBOX_SEQ_LEN = 26, /* 10 of the time, 2 of the bucket, 14 that nobody else has */
    OUTBOX_WAKERS_MAX = 64,
    OUTBOX_SKEW_MS = 60000, /* by how much the clock of one who emits may be ahead of ours, or step
                               back, before that delays an event or changes the order */
    OUTBOX_CAUSE_MAX = 200, /* bytes */
    OUTBOX_PAGE = 100,      /* items that lists ask for at once */
    OUTBOX_LOOK_MAX = 50,   /* buckets of one hf__outbox_look(): a statement may name no more */
    OUTBOX_LOOK_AGAIN_MS = 60000 /* after one that failed, or did not say all */
};

/* Places of urgent events are by so much earlier than their time, which is 2020, and all of them are
 * before this one: that of others who are due then. So it has to do until 2070. */
#define OUTBOX_URGENT_MS INT64_C(1577836800000)
#define OUTBOX_URGENT_END "01dxf6dt00"

/* Called after something was emitted into that bucket (UINT32_MAX: it is not known which, nor
 * whether it is urgent), among the urgent ones or not. */
typedef void outbox_wake_fn(void *user, uint32_t bucket, bool urgent);

struct outbox_waker {
    outbox_wake_fn *wake; /* NULL: the place is free, unless it is being called */
    void *user;
    uint32_t running; /* calls that are under way */
};

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
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t ended;  /* a call of a waker has ended */
    int64_t last_ms;       /* of the seq that was made last: they only grow */
    uint64_t last_count;
    struct outbox_waker wakers[OUTBOX_WAKERS_MAX];
    size_t wakers_len;     /* places that are or were in use */
    enum outbox_mode mode; /* as it was found or stamped last, */
    int64_t mode_until_us; /* and until when, by the elapsed clock, that need not be asked again */
    uint64_t unreadable;   /* items that were put aside as they are no events */
    int64_t strays_us;     /* when to look for others where nobody reads, */
    uint32_t strays_at;    /* and from which bucket that does not exist on */
    bool claims_bare;      /* the last claim saw no event in any bucket */
    int64_t look_again_us; /* not before this buckets are asked all at once */
};

/* ---- outbox_item.c: how events are stored; nothing is sent here ------------------------------ */

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

/* The time to live, in seconds since 1970. */
static inline struct hf_attr ttl_attr(const struct hf_outbox *outbox, int64_t at_s)
{
    return (struct hf_attr){.name = outbox->at.expires, .type = HF_TYPE_N, .number = at_s};
}

/* That partition of a bucket: the pk. */
struct hf_str hf__outbox_pk(struct hf_scope *s, const char *partition, uint32_t bucket);

/*
 * A stored event as it is told; its texts are those of the item. A due_us of 0 is that of one that
 * was not scheduled: hf__outbox_due_ms() is since when it is due. HF_CORRUPT: it is none; the
 * message says why. Of one that was put aside, what cannot be read is left out.
 */
enum hf_status hf__outbox_view(struct hf_scope *s, const struct hf_outbox *outbox,
                               struct hf_item item, struct hf_outbox_event *event);

/* The same view, of a copy of its item. False: a part of it is not in the item, but was made of what
 * is there, as a payload that is a map; then the copy has to be viewed. */
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

/* Is it a place of urgent ones? What was emitted with a time before 2020 has one, too. An empty one
 * is OUTBOX_SEQ_LEN zeros. */
static inline bool is_urgent_seq(const char *seq)
{
    return memcmp(seq, OUTBOX_URGENT_END, sizeof(OUTBOX_URGENT_END) - 1) < 0;
}

/* The seq of the same time among the urgent ones, or among the others. */
void hf__outbox_seq_among(struct hf_str seq, bool urgent, char to[OUTBOX_SEQ_LEN + 1]);

/* False: it is no seq of this outbox. */
bool hf__outbox_place_read(const struct hf_outbox *outbox, struct hf_str seq,
                           struct outbox_place *place);

static inline struct hf_str place_seq(const struct outbox_place *place)
{
    return hf_str_of(place->seq, OUTBOX_SEQ_LEN);
}

/* Since when an event is due, or from when on. */
int64_t hf__outbox_due_ms(const struct hf_outbox_event *event);

/* Not due yet? That of one which was not scheduled is a matter of clocks: see OUTBOX_SKEW_MS. */
bool hf__outbox_is_early(const struct hf_outbox_event *event, int64_t now_us);

/* HF_INVALID: the event cannot be one; it is the number-th of those that are emitted. */
enum hf_status hf__outbox_check(struct hf_scope *s, const struct hf_event *event, size_t number);

/* Is the place that was made for an event still the right one, after it was changed? */
bool hf__outbox_place_fits(const struct hf_outbox *outbox, const struct outbox_place *place,
                           const struct hf_event *event);

/* The key that its order is kept for; absent: none. */
struct hf_str hf__outbox_event_key(const struct hf_event *event);

/* The item of an event that waits, with these attributes too, and with this blob (absent: none)
 * instead of the payload. HF_INVALID, HF_LIMIT. */
enum hf_status hf__outbox_image(struct hf_scope *s, const struct hf_outbox *outbox,
                                const struct hf_event *event, size_t number,
                                const struct outbox_place *place, struct hf_str blob,
                                const struct hf_attr *more, size_t more_len, struct hf_item *item);

/* The same event in that partition, with these attributes instead of all that says how it fared: as
 * many as there is room for, so the ones that matter most come first. */
struct hf_item hf__outbox_moved(struct hf_scope *s, const struct hf_outbox *outbox,
                                struct hf_item item, const char *partition,
                                const struct outbox_place *place, const struct hf_attr *more,
                                size_t more_len);

/* Can all that happens to an event that waits be noted in its item? */
bool hf__outbox_has_room(struct hf_scope *s, const struct hf_outbox *outbox, struct hf_item item);

/* A failure as it is kept: its text cut, and what failures of its kind have in common. */
struct outbox_failure {
    enum hf_status status;
    struct hf_str name; /* of the status */
    struct hf_str text;
    struct hf_str cause;
};
struct outbox_failure hf__outbox_failure(struct hf_scope *s, const struct hf_error *error);

/* ---- outbox_only.c: a part of the events ----------------------------------------------------- */

struct holders;

/* What is absent is not asked for. A type may end with "*". */
struct outbox_only {
    struct hf_str type, key, tenant;
};

/* HF_INVALID: no event has such a text. */
enum hf_status hf__outbox_only_check(struct hf_scope *s, const struct outbox_only *only);

bool hf__outbox_only_has(const struct outbox_only *only, const struct hf_event *event);

/* The same as a filter of a request; absent: all. hf__outbox_and() joins two of those. */
struct hf_str hf__outbox_only_filter(struct holders *h, const struct outbox_only *only);
struct hf_str hf__outbox_and(struct hf_scope *s, struct hf_str one, struct hf_str other);

/* The bucket that they are in; UINT32_MAX: any. */
uint32_t hf__outbox_only_bucket(const struct hf_outbox *outbox, const struct outbox_only *only);

/* For people, and to compare; absent: all. */
struct hf_str hf__outbox_only_text(struct hf_scope *s, const struct outbox_only *only);

/* ---- outbox_emit.c ---------------------------------------------------------------------------- */

/* The id that the event, which has none, gets when it is stored; in the scope. */
struct hf_str hf__outbox_reserve(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_event *event);

/* hf_outbox_emit(), or hf_outbox_emit_into() if `tx` is not NULL, of events for which places were
 * reserved in their order, whether or not they became their ids. That costs no more than making one, unless an event's key or time was changed
 * meanwhile: it and all behind it get new ones, as their order is that of the events. */
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

/* Tell those who listen. UINT32_MAX: any bucket. */
void hf__outbox_wake(struct hf_outbox *outbox, uint32_t bucket, bool urgent);

/*
 * Let these actions happen together, with a token; sent again in doubt and after conflicts. What
 * fails in doubt says so.
 */
enum hf_status hf__outbox_transact(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_transact_write *actions, size_t len);

/* hf_write_many(), sent again in doubt. */
enum hf_status hf__outbox_write_many(struct hf_scope *s, struct hf_outbox *outbox,
                                     const struct hf_write *writes, size_t len);

/* ---- outbox_blob.c --------------------------------------------------------------------------- */

/* May its payload have to go to the blob store? */
bool hf__outbox_is_large(const struct hf_outbox *outbox, const struct hf_event *event);

/* Fetch the payloads of those that have them in the blob store, or say why not: blob_error. */
void hf__outbox_fetch(struct hf_scope *s, const struct hf_outbox *outbox,
                      struct hf_outbox_event *events, size_t len);

/* Whether it may be there, and another time will do: neither had, nor lost, nor damaged. */
static inline bool is_blob_away(enum hf_status blob_error)
{
    return blob_error != HF_OK && blob_error != HF_NOT_FOUND && blob_error != HF_CORRUPT &&
           blob_error != HF_INVALID;
}
struct hf_str hf__outbox_blob_text(struct hf_scope *s, const struct hf_outbox_event *event);

/* Its blob is new from now on, for a sweep that runs while the event moves. */
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

/* An item was passed over, for the reason that the scope has. */
void hf__outbox_log_skipped(struct hf_scope *s, const struct hf_outbox *outbox);

/* ---- outbox_reject.c ------------------------------------------------------------------------- */

/* Put an item aside that waits and that hf__outbox_view() could not read: the scope says why. It is
 * logged and counted; what comes of it does not matter to those who read others. */
void hf__outbox_reject(struct hf_scope *s, struct hf_outbox *outbox, struct hf_item item);

/* How many that were, by this handle. */
uint64_t hf__outbox_unreadable(struct hf_outbox *outbox);

/* Look for such items where nobody reads, once a minute. */
void hf__outbox_find_strays(struct hf_scope *s, struct hf_outbox *outbox);

/* ---- outbox_claim.c -------------------------------------------------------------------------- */

/* What is known of an attempt that has failed. */
enum outbox_try {
    OUTBOX_TRIED,    /* it is to be counted */
    OUTBOX_BEGUN,    /* it was counted by hf__outbox_begin() or hf__outbox_claim_begin() */
    OUTBOX_NOT_TRIED /* there was none: it is given up for those before */
};

/* hf_outbox_claim() without payloads of the blob store, by one who counts himself what he begins of
 * what may have ended a process; and whether an event is such. */
enum hf_status hf__outbox_claim(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_claim_options *options, struct hf_claim_list *list);

bool hf__outbox_is_suspect(const struct hf_outbox_event *event);

/* As hf__outbox_begin(), of a claimed one. HF_LOST: the claim is lost. */
enum hf_status hf__outbox_claim_begin(struct hf_scope *s, struct hf_outbox *outbox,
                                      const struct hf_claimed_event *event, struct hf_str by);

/* hf_outbox_fail(), with what is known of the attempt. */
enum hf_status hf__outbox_fail(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_claimed_event *event, const struct hf_error *error,
                               bool for_good, const struct hf_claim_options *options,
                               enum outbox_try tried);

/* hf_outbox_release(), not to be claimed before next_us; 0: at once. `begun`: it was counted, and
 * did not begin. */
enum hf_status hf__outbox_release(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_claimed_event *event, int64_t next_us,
                                  bool begun);

/* ---- outbox_work.c: what relays do ----------------------------------------------------------- */

/*
 * Events of a bucket that wait, by a consistent read, in order, behind `after` (absent: from the
 * start) and due at now_ms: at most `limit`. Those of emitters whose clocks are ahead are among
 * them up to skew_ms (OUTBOX_SKEW_MS at most): all that is scheduled for that time is read to find
 * them. Those that wait to be tried again are among them (next_us), as those behind them may have
 * to wait for them. They are of one answer of the database, so whoever was committed before one of
 * them is there, too. *more: there may be others behind them. Items that are no events are put
 * aside (`aside`), or logged. Others may emit, late, in front of what was read: look from the start
 * now and then.
 */
enum hf_status hf__outbox_read(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                               struct hf_str after, int64_t now_ms, uint32_t skew_ms,
                               uint32_t limit, bool aside, struct hf_outbox_event **events,
                               size_t *len, bool *more);

/*
 * Which of these buckets have something that hf__outbox_read() would look at, from the start: one
 * request for all, by a consistent read. Not *whole: it did not say, and all are shown. What it
 * fails with where there are no statements, or they are not allowed, is no trouble: read each. Then
 * it fails at once for OUTBOX_LOOK_AGAIN_MS.
 */
enum hf_status hf__outbox_look(struct hf_scope *s, struct hf_outbox *outbox,
                               const uint32_t *buckets, size_t len, int64_t now_ms,
                               uint32_t skew_ms, bool *shown, bool *whole);

/* The same for whatever has that sort key or a greater one. */
enum hf_status hf__outbox_look_behind(struct hf_scope *s, struct hf_outbox *outbox,
                                      const uint32_t *buckets, size_t len, struct hf_str from,
                                      bool *shown);

/* When the next event of the bucket is due that is not due now; INT64_MAX: none is stored. */
enum hf_status hf__outbox_next_due(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                   int64_t now_ms, int64_t *due_ms);

/*
 * They were delivered: they leave, in as few requests as can be, or go to the history. Removing
 * what is gone already is no failure. On failure some may have left; it can be called again.
 */
enum hf_status hf__outbox_done(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_outbox_event *const *events, size_t len);

/*
 * An attempt is about to begin that may end its process: it is counted now, as a crash, so that it
 * is known afterwards; and who made it, as while that one lives it is none. hf__outbox_unbegin():
 * it did not begin after all. `event` has the attempts and crashes of before. Refused, HF_LOST, as
 * below.
 */
enum hf_status hf__outbox_begin(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_outbox_event *event, struct hf_str by);
enum hf_status hf__outbox_unbegin(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_outbox_event *event, struct hf_str by);

/* Was its last attempt counted by that one? */
bool hf__outbox_is_begun(const struct hf_outbox_event *event, struct hf_str by);

/* What is said of an event whose attempts ended their process so often, or may have. */
struct hf_error hf__outbox_crash_error(struct hf_scope *s, uint32_t crashes);

/*
 * An attempt has failed: one more attempt is counted, and it is not tried before next_us; or it is
 * put aside (give_up), as event->item says what it is. Refused, HF_LOST, unless the event is there
 * with as many attempts as in `event`. When it was done event->attempts is counted up, and the
 * state, error and times in it are as they are now; its texts and its item are not. A lost answer
 * is recognised.
 */
enum hf_status hf__outbox_note_try(struct hf_scope *s, struct hf_outbox *outbox,
                                   struct hf_outbox_event *event, const struct hf_error *error,
                                   int64_t next_us, bool give_up, enum outbox_try tried);

static inline enum hf_status hf__outbox_note_failure(struct hf_scope *s, struct hf_outbox *outbox,
                                                     struct hf_outbox_event *event,
                                                     const struct hf_error *error, int64_t next_us,
                                                     bool give_up)
{
    return hf__outbox_note_try(s, outbox, event, error, next_us, give_up, OUTBOX_TRIED);
}

/* The items of an event that was delivered, by the claim `done` if any, or put aside, by `try_id`
 * and with so many attempts; absent when there is no memory. */
struct hf_item hf__outbox_history_item(struct hf_scope *s, const struct hf_outbox *outbox,
                                       const struct hf_outbox_event *event, struct hf_str done);
struct hf_item hf__outbox_failed_item(struct hf_scope *s, const struct hf_outbox *outbox,
                                      const struct hf_outbox_event *event, uint64_t attempts,
                                      const struct outbox_failure *failure, struct hf_str try_id,
                                      int64_t now_us);

/* Move an event to those that are put aside: `del` takes it from where it waits, on its condition.
 * HF_CONDITION: that did not hold. */
enum hf_status hf__outbox_put_aside(struct hf_scope *s, struct hf_outbox *outbox,
                                    const struct hf_delete_item *del, struct hf_item failed,
                                    struct hf_str try_id);

/* Is an event of that key put aside? For failed_blocks. */
enum hf_status hf__outbox_key_failed(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                     struct hf_str key, bool *failed);

#endif
