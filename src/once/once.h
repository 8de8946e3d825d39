/*
 * once/once.h: what the files of do-once share. once.c has the essay.
 */
#ifndef HF_ONCE_ONCE_H
#define HF_ONCE_ONCE_H

#include <holdfast/once.h>

#include <pthread.h>
#include <stdatomic.h>

#include "coord/lease.h"
#include "coord/names.h"
#include "coord/watch.h"

enum {
    ONCE_TIMEOUT_MS = 20000,
    ONCE_POLL_MS = 1000,
    ONCE_POLL_FIRST_MS = 5,
    ONCE_CALL_MS = 5000,       /* for a request of the background */
    ONCE_ORPHAN_S = 24 * 3600, /* what nobody completes is removed so much later, if results are */
    ONCE_ENDED_BUCKETS = 64,   /* a power of two */
    ONCE_HASH_LEN = 64         /* SHA-256 in hexadecimal */
};

/* ---- once_item.c: the item, and the requests that change it --------------------------------- */

/* A record as it was read. */
struct once_view {
    struct hf_once_record record;
    uint64_t beat;
    struct hf_str hash;   /* absent: it has none */
    struct hf_str opener; /* likewise */
    bool there;           /* there is an item, whatever it says */
};

/* HF_CORRUPT when it cannot be one. A result whose time is over at now_ms is none. */
enum hf_status hf__once_view(struct hf_scope *s, const struct pattern_at *at, struct hf_item item,
                             int64_t now_ms, struct once_view *view);

/* Everything that requests about one user and key have in common. */
struct once_name {
    const struct pattern_at *at;
    struct hf_str user;
    struct hf_str key;
};
struct hf_item hf__once_key(struct hf_scope *s, const struct once_name *name);

/* HF_INVALID when there can be no such user or key. */
enum hf_status hf__once_name_check(struct hf_scope *s, const struct once_name *name);

/* SHA-256 of the payload in hexadecimal, in the scope; absent when there is no payload. */
enum hf_status hf__once_hash(struct hf_scope *s, struct hf_bytes payload, struct hf_str *hash);

struct once_take {
    struct once_name name;
    struct hf_str id;
    struct hf_str owner;
    struct hf_str opener; /* absent: none */
    struct hf_str hash;   /* likewise */
    uint32_t timeout_ms;
    uint32_t keep_s;
    uint64_t beat;
    int64_t now_ms;
    struct hf_str follows; /* the id of the attempt that is silent; absent: nobody has begun */
    uint64_t follows_beat;
};

/* The request that begins an attempt. */
struct hf_update_item hf__once_take_request(struct hf_scope *s, const struct once_take *take);

/* The request that renews it. */
struct hf_update_item hf__once_beat_request(struct hf_scope *s, const struct once_name *name,
                                            struct hf_str id, uint64_t beat, int64_t now_ms,
                                            int64_t expires_s);

struct once_end {
    struct once_name name;
    struct hf_str id;
    enum hf_once_state state; /* HF_ONCE_DONE or HF_ONCE_FAILED */
    struct hf_item result;
    uint32_t keep_s;
    int64_t now_ms;
};

/* The request that completes it. */
struct hf_update_item hf__once_end_request(struct hf_scope *s, const struct once_end *end);

/* The request that marks it as done without an attempt; also over one that runs, with
 * over_running. */
struct hf_update_item hf__once_mark_request(struct hf_scope *s, const struct once_end *mark,
                                            struct hf_str owner, struct hf_str hash,
                                            bool over_running);

/* The request that removes it, if it is this attempt's: only while it runs, or always. */
struct hf_delete_item hf__once_remove_request(struct hf_scope *s, const struct once_name *name,
                                              struct hf_str id, bool only_running);

/* When the database may remove the item of an attempt that runs; 0: never. */
int64_t hf__once_orphan_s(int64_t now_ms, uint32_t timeout_ms, uint32_t keep_s);

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_once_table {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* the next two live here */
    struct pattern_at at;
    struct hf_str owner;
    uint32_t clock_skew_ms;
    struct hf_scope *work;  /* of whoever runs hf__once_beats() */
    struct timer *beater;   /* NULL: without threads */
    pthread_mutex_t mutex;  /* guards all below, and what attempts say it does */
    pthread_cond_t changed; /* an attempt has stopped being busy */
    struct hf_once *attempts;
    bool busy_beater; /* there were new attempts since it looked last */
    struct watch watch;
    atomic_uint ended[ONCE_ENDED_BUCKETS]; /* by key: how often one of ours ended; no mutex */
};

struct hf_once {
    struct hf_once_table *table;
    struct hf_once *next, **link; /* table->mutex */
    struct hf_scope *memory;      /* the names live here, and the result to be recorded */
    struct once_name name;
    struct pattern_id id;
    struct hf_str hash;
    uint64_t tries;
    uint32_t timeout_ms;
    uint32_t heartbeat_ms;
    uint32_t stuck_ms;
    uint32_t keep_s;
    bool no_heartbeats;
    hf_once_lost_fn *on_lost;
    void *user; /* of on_lost */

    /* table->mutex guards all below. */
    uint32_t refs;      /* the holder's, and one for each who works on it without the mutex */
    uint64_t beat;      /* the latest that was sent */
    struct lease lease; /* due: the next heartbeat, or the next try to complete what was left */
    int64_t touched_us;
    enum hf_once_state wanted; /* DONE or FAILED: how it is to be recorded; NONE: not known yet */
    struct hf_item result;     /* if `wanted`: what is to be recorded */
    int64_t at_ms;             /* if `wanted`: when it ended */
    bool ended;                /* it was recorded, or given up */
    bool lost;                 /* to another */
    bool busy;                 /* one request at a time */
    bool closing;              /* its holder is closing it, or has */
    bool telling;              /* on_lost is running */
    bool dropped; /* the holder's reference is the table's, which writes what is left */
};

static inline struct lease_terms once_terms(const struct hf_once *once)
{
    return (struct lease_terms){.lease_ms = once->timeout_ms, .heartbeat_ms = once->heartbeat_ms};
}

static inline struct hf_str once_id(const struct hf_once *once)
{
    return id_str(&once->id);
}

/* ---- once.c --------------------------------------------------------------------------------- */

/* A new attempt, not in the list yet; NULL when there is no memory. */
struct hf_once *hf__once_new(struct hf_once_table *table, const struct once_name *name,
                             struct hf_str hash, const struct hf_once_options *o);

/* From now on the table looks after it. */
void hf__once_list_add(struct hf_once *once);

/* One reference less; the last one frees it. The mutex is held. */
void hf__once_unref(struct hf_once *once);

/* Nobody has it: forgotten, or given up in the background if it may have been begun. */
void hf__once_forget(struct hf_once *once, bool doubtful);

/* The options with their defaults. */
enum hf_status hf__once_options(struct hf_scope *s, const struct once_name *name,
                                const struct hf_once_options *options, struct hf_once_options *o);

/* HF_INVALID when it cannot be stored. */
enum hf_status hf__once_result_check(struct hf_scope *s, const struct once_name *name,
                                     struct hf_item result);

/* HF_TOKEN_MISMATCH when the record was made for another payload. */
enum hf_status hf__once_hash_check(struct hf_scope *s, const struct once_view *view,
                                   struct hf_str hash);

/* The attempt is over: recorded (lost = false) or not. HF_LOST, or HF_OK without an error. */
enum hf_status hf__once_over(struct hf_scope *s, struct hf_once *once, bool lost);

/* What the refusal of its completion means: HF_OK when it is recorded already, or HF_LOST. */
enum hf_status hf__once_refused(struct hf_scope *s, struct hf_once *once, struct hf_item item);

/* What is to be recorded: the first result counts. */
enum hf_status hf__once_want(struct hf_scope *s, struct hf_once *once, enum hf_once_state state,
                             struct hf_item result, struct once_end *end);

/* The counter of those of a key that ended on this table. */
atomic_uint *hf__once_ended(struct hf_once_table *table, struct hf_str key);

/* ---- once_beat.c ---------------------------------------------------------------------------- */

/* Make it busy, waiting until nobody else is; and the reverse. The mutex is held. */
void hf__once_enter(struct hf_once *once);
void hf__once_leave(struct hf_once *once);

/* Send a heartbeat: HF_OK, HF_LOST, or it could not be reached. It is busy, or nobody knows it. */
enum hf_status hf__once_beat(struct hf_scope *s, struct hf_once *once);

/* Send its completion; it is busy. */
enum hf_status hf__once_end_send(struct hf_scope *s, struct hf_once *once);

/* Send that it is given up; it is busy. */
enum hf_status hf__once_remove_send(struct hf_scope *s, struct hf_once *once);

/* Do the one thing that is due first; microseconds until there is more, 0: there may be now. */
int64_t hf__once_beats(void *table);

#endif
