/*
 * patterns/outbox.h: what the files of the outbox, the relay and the bus share.
 *
 * One table, keys pk and sk, both S, with these items (n is a bucket as three digits, seq the
 * event's place, see outbox_item.c):
 *
 *     pk    sk        what
 *     p.n   seq       an event that waits
 *     f.n   seq       one that has failed, and was put aside
 *     h.n   seq       one that was delivered, with a time to live
 *     i.ID  i         an id that a caller chose is taken: by which bucket and seq; with a time to
 * live c     config    how many buckets there are; ordered or competing c     m.RELAY   a relay:
 * how often it has said that it lives, and which buckets it wants c     b.n       whose the bucket
 * is, and the fence, which grows with every new owner
 *
 * An event keeps its seq for ever, so it is found by id in any state: an id that we made is its
 * seq. It begins with the time when it is due, in milliseconds, followed by its bucket.
 */
#ifndef HF_PATTERNS_OUTBOX_H
#define HF_PATTERNS_OUTBOX_H

#include "patterns/private.h"

#include <holdfast/outbox.h>

#include <pthread.h>

enum {
    OUTBOX_SEQ_LEN = 26, /* 10 of the time, 2 of the bucket, 14 that nobody else has */
    OUTBOX_WAKERS_MAX = 64
};

/* Called after something was emitted into that bucket (UINT32_MAX: it is not known which). */
typedef void outbox_wake_fn(void *user, uint32_t bucket);

struct outbox_waker {
    outbox_wake_fn *wake;
    void *user;
};

struct hf_outbox {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* holds the texts of the options */
    struct hf_str table, source;
    uint32_t buckets, history_s, unique_s;
    bool transactions;
    pthread_mutex_t mutex; /* guards all below */
    uint64_t last_ms;      /* of the seq that was made last: they only grow */
    uint8_t last_tail[9];
    struct outbox_waker wakers[OUTBOX_WAKERS_MAX];
    size_t wakers_len;
};

/* ---- outbox_item.c: how events are stored; nothing is sent here ------------------------------ */

struct hf_item hf__outbox_key(struct hf_scope *s, const char *partition, uint32_t bucket,
                              struct hf_str seq);

/* A stored event as it is told; its texts are those of the item. HF_CORRUPT: it is none. */
enum hf_status hf__outbox_view(struct hf_scope *s, const struct hf_outbox *outbox,
                               struct hf_item item, struct hf_outbox_event *event);

/* The bucket of a key; the hash is frozen. */
uint32_t hf__outbox_bucket(const struct hf_outbox *outbox, struct hf_str key);

/* The smallest seq that is due at or after that time. */
void hf__outbox_seq_floor(int64_t due_ms, char seq[OUTBOX_SEQ_LEN + 1]);

/* ---- outbox.c -------------------------------------------------------------------------------- */

/* False: there are too many already. Not to be called inside of a wake function. */
bool hf__outbox_listen(struct hf_outbox *outbox, outbox_wake_fn *wake, void *user);
void hf__outbox_unlisten(struct hf_outbox *outbox, outbox_wake_fn *wake, void *user);

/* Stamp the table as one of ordered or competing work. HF_INVALID: it is the other one, and relays
 * of it may be alive. */
enum hf_status hf__outbox_take_mode(struct hf_scope *s, struct hf_outbox *outbox, bool competing);

/* ---- outbox_work.c: what relays do ----------------------------------------------------------- */

/*
 * Events of a bucket that wait, by a consistent read, in order, behind `after` (absent: from the
 * start) and due at now_ms: at most `limit`. *more: there may be others behind them. Items that are
 * no events are skipped and logged.
 */
enum hf_status hf__outbox_read(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                               struct hf_str after, int64_t now_ms, uint32_t limit,
                               struct hf_outbox_event **events, size_t *len, bool *more);

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
 * An attempt has failed: one more attempt is counted, and it is not tried before next_us; or it is
 * put aside (give_up). Refused, HF_LOST, unless the event is there with as many attempts as in
 * `event`, and `event->attempts` is counted up when it was done. A lost answer is recognised.
 */
enum hf_status hf__outbox_note_failure(struct hf_scope *s, struct hf_outbox *outbox,
                                       struct hf_outbox_event *event, const struct hf_error *error,
                                       int64_t next_us, bool give_up);

/* Is an event of that key put aside? For failed_blocks. */
enum hf_status hf__outbox_key_failed(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                     struct hf_str key, bool *failed);

#endif
