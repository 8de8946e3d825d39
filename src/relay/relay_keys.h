/*
 * relay/relay_keys.h: the keys that have events, and the events that are held in memory.
 * relay_key.c has the essay.
 *
 *     by_seq    every held event, by its place
 *     by_name   every key, by its bucket and name
 *     ready     keys whose first event can be sent now, urgent ones first
 *
 * An event in memory, and what moves it:
 *
 *     HELD_WAITS      in its key           read (relay_page.c)    -> HELD_RUNS, dropped
 *     HELD_RUNS       in a worker's batch  taken (relay_send.c)   -> HELD_DELIVERED, gone, dropped
 *     HELD_DELIVERED  in relay->noter      sent (relay_send.c)    -> gone
 *     HELD_GONE       in bucket->gone      noted, or given up     -> freed when a read has ended
 *
 * An event whose bucket was lost while it runs or waits to be noted is an orphan: it is in no
 * table, its bucket and key are NULL, and whoever has it frees it.
 *
 * The mutex of the relay guards all of this. It is held in all functions below, but for
 * hf__held_view() and those of places.
 */
#ifndef HF_RELAY_RELAY_KEYS_H
#define HF_RELAY_RELAY_KEYS_H

#include "outbox/outbox.h"

struct hf_relay;
struct relay_bucket;

enum {
    RELAY_SLOTS = 8192,                 /* of each of the two tables; a power of two */
    RELAY_KEYS_MAX = 100000,            /* keys that wait or are under way */
    RELAY_HELD_BATCHES = 4,             /* so many batches of a bucket are held at most */
    RELAY_BYTES_MAX = 64 * 1024 * 1024, /* of items that are held, in all */
    RELAY_SEQ_SIZE = OUTBOX_SEQ_LEN + 1
};

_Static_assert((RELAY_SLOTS & (RELAY_SLOTS - 1)) == 0, "slots are found by a mask");

enum held_state {
    HELD_WAITS,     /* in its key */
    HELD_RUNS,      /* in the hands of a worker */
    HELD_DELIVERED, /* its delivery has to be noted */
    HELD_GONE       /* noted; remembered until a read has ended that may still show it */
};

struct held {
    struct held *chain; /* in its slot of keys.by_seq */
    struct held *next;  /* in its key, a batch, noter.first or bucket->gone */
    struct relay_key *key;
    struct relay_bucket *bucket; /* NULL: the bucket was lost meanwhile, and nothing is noted */
    enum held_state state;
    bool unsure;  /* its delivery could not be noted at first */
    bool careful; /* its attempt has to be counted before it begins: relay_suspect.c */
    bool begun;   /* its attempt was counted */
    bool alone;   /* nothing else runs beside it */
    char seq[RELAY_SEQ_SIZE];
    uint64_t sequence;
    uint32_t attempts, crashes;
    int64_t due_us;
    int64_t read_us; /* since when it is in its state, on the elapsed clock */
    size_t size;     /* as sinks count it */
    const struct hf_outbox_event
        *view; /* of `item`, behind it; NULL: call hf__outbox_view() again */
    size_t item_len;
    _Alignas(8) uint8_t item[];
};

/*
 * The events of one key; an event without a key is alone in a struct of its own. Some events of the
 * table are held, in order. With `skips` there may be more in the table, all behind `after`: they
 * are read from there on, at fetch_us.
 */
struct relay_key {
    struct relay_key *chain;                  /* in its slot of keys.by_name */
    struct relay_key *next, **link;           /* in keys.ready or bucket->back */
    struct relay_key *skip_next, **skip_link; /* in bucket->skipping */
    struct relay_bucket *bucket;
    struct held *first, *last; /* the events that wait */
    size_t len;                /* how many wait */
    uint32_t running;          /* how many run */
    bool queued;               /* the key is in keys.ready */
    bool urgent;               /* it is among the urgent ones there */
    bool skips;
    bool check;   /* failed_blocks: ask the database whether the key has a dead letter */
    bool blocked; /* it had one when that was asked last */
    char after[RELAY_SEQ_SIZE];
    int64_t fetch_us;
    uint64_t mark;     /* the page in which an event of it was skipped */
    uint32_t attempts; /* of the first event that has failed; 0: there is none */
    uint64_t sequence; /* of the same event */
    int64_t due_us;    /* of the same event */
    bool alone;
    uint64_t hash;
    size_t name_len;
    char name[];
};

struct key_queue {
    struct relay_key *first, **last;
    struct relay_key **urgent; /* the end of the urgent keys */
    size_t len;
};

struct relay_keys {
    struct held *by_seq[RELAY_SLOTS];
    struct relay_key *by_name[RELAY_SLOTS];
    size_t len;   /* keys */
    size_t bytes; /* of items, those of orphans too */
    struct key_queue ready;
};

/* ---- places --------------------------------------------------------------------------------- */

int hf__seq_compare(const char *a, const char *b);
/* The largest place before it. */
void hf__seq_before(char to[RELAY_SEQ_SIZE], const char *seq);
void hf__seq_set(char to[RELAY_SEQ_SIZE], struct hf_str seq);

/* ---- events --------------------------------------------------------------------------------- */

struct held *hf__held_find(const struct hf_relay *relay, const char *seq);

/* The event as it was read. Its item is read again, in that scope, only if a part of the event is not
 * in the item. A worker that has the event in its batch does not need the mutex. */
enum hf_status hf__held_view(struct hf_scope *s, const struct hf_relay *relay,
                             const struct held *held, struct hf_outbox_event *event);

/* Free it, or remember it as gone while a read of its bucket runs. */
void hf__held_end(struct hf_relay *relay, struct held *held);

/* Make it an orphan: it runs, and we may not note its outcome; the next one of its key may begin. */
void hf__held_orphan(struct hf_relay *relay, struct held *held);

/* Free it: the event is unchanged in the table. */
void hf__held_drop(struct hf_relay *relay, struct held *held);
void hf__gone_forget(struct hf_relay *relay, struct relay_bucket *bucket);

/* Is its bucket ours, by a lease that has not ended? */
bool hf__held_is_ours(const struct hf_relay *relay, const struct held *held, int64_t now_us);

/* ---- keys ----------------------------------------------------------------------------------- */

/* NULL: no memory. */
struct relay_key *hf__relay_key_find(struct hf_relay *relay, struct relay_bucket *bucket,
                                     const struct hf_outbox_event *event, const char *seq,
                                     bool make);

/* Hold it, behind those that are before it in order. False: no memory, or no room in the key. */
bool hf__relay_key_hold(struct hf_relay *relay, struct relay_key *key,
                        const struct hf_outbox_event *event, const char *seq, int64_t now_us);

/* Take the first of what waits of the key: it runs. */
struct held *hf__relay_key_take(struct relay_key *key);

/* Read the key again from that event on, not before fetch_us; events from there on that wait in memory
 * are dropped. */
void hf__relay_key_skip(struct hf_relay *relay, struct relay_key *key, const char *seq,
                        uint64_t sequence, int64_t fetch_us);
void hf__relay_key_unskip(struct relay_key *key);

/* The key may be read at its fetch_us. */
void hf__relay_key_expect(struct relay_key *key);

/* After each change: move the key to the queue it belongs to. It is freed if it has no events left. */
void hf__relay_key_requeue(struct hf_relay *relay, struct relay_key *key);

/* Drop all events of a bucket that wait; those that run become orphans, or the bucket waits for them. */
void hf__bucket_forget(struct hf_relay *relay, struct relay_bucket *bucket, bool orphans);

/* Requeue keys that were held back, as more was read. */
void hf__bucket_advance(struct hf_relay *relay, struct relay_bucket *bucket);

/* Free all. */
void hf__relay_keys_free(struct hf_relay *relay);

/* Asserts what relay_key.c says of keys and held events. It walks both tables: DEV_CHECKS. */
void hf__relay_keys_check(const struct hf_relay *relay);

#endif
