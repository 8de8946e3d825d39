/*
 * relay/relay.h: what the files of the relay share. relay.c has the essay.
 */
#ifndef HF_RELAY_RELAY_H
#define HF_RELAY_RELAY_H

#include "outbox/outbox.h"

#include <holdfast/relay.h>

#include "coord/lease.h"
#include "coord/watch.h"

enum {
    RELAY_WORKERS_MAX = 1000,
    RELAY_SLOTS = 8192,                 /* of each of the two tables below; a power of two */
    RELAY_KEYS_MAX = 100000,            /* keys that wait or are under way */
    RELAY_HELD_BATCHES = 4,             /* so many batches of a bucket are held at most */
    RELAY_BYTES_MAX = 64 * 1024 * 1024, /* of items that are held, in all */
    /* of payloads in a blob store that are fetched for a batch */
    RELAY_BLOB_BYTES = 64 * 1024 * 1024,
    RELAY_NOTE_MAX = 100,    /* events of one call that notes deliveries */
    RELAY_NOTE_BEHIND = 400, /* waiting to be noted, from which on nothing else is done */
    RELAY_OVERLAP_MS = 500,  /* how much later than its place an event may appear */
    RELAY_SKEW_MS = 1000,    /* by how much clocks of those who emit are ahead, mostly */
    RELAY_FAR_MS = 5000,     /* how often is looked for those whose clocks are further ahead */
    RELAY_KNOWN = 64,        /* competing: events that wait to be tried again and are remembered */
    RELAY_SWEEP_PAGES = 4,   /* pages without news of one look from the start */
    RELAY_CAREFUL_MIN = 64,  /* deliveries of a bucket that are careful after a crash, and */
    RELAY_CAREFUL_MAX = 1 << 20, /* at most, when it goes on: relay_suspect.c */
    RELAY_TEXT_MAX = 256,        /* of a text that is kept, with its NUL */
    RELAY_SEQ_SIZE = OUTBOX_SEQ_LEN + 1
};

/* ---- events that are held ------------------------------------------------------------------- */

enum held_state {
    HELD_WAITS,     /* in its key */
    HELD_RUNS,      /* in the hands of a worker */
    HELD_DELIVERED, /* to be noted as that */
    HELD_GONE       /* remembered until a read has ended that may still show it */
};

struct held {
    struct held *chain;  /* in its slot of relay->held */
    struct held *next;   /* in its key, a batch, relay->delivered or bucket->gone */
    struct held *behind; /* a batch: the next of those whose failure is to be noted */
    struct relay_key *key;
    struct relay_bucket *bucket; /* NULL: the bucket was lost meanwhile, and nothing is noted */
    enum held_state state;
    bool unsure;  /* its delivery could not be noted at first */
    bool careful; /* to be counted before it begins: relay_suspect.c */
    bool begun;   /* it was */
    bool alone;   /* nothing else is under way with it */
    char seq[RELAY_SEQ_SIZE];
    uint64_t sequence;
    uint32_t attempts, crashes;
    int64_t due_us;
    int64_t read_us; /* since when it is in its state, on the elapsed clock */
    size_t size;     /* as sinks count it */
    size_t item_len;
    uint8_t item[];
};

/*
 * Events of one key; an event without one is alone in a key of its own. Of those in the table some
 * are held, in order. With `skips` there may be others, all behind `after`, which is where to read
 * on at fetch_us.
 */
struct relay_key {
    struct relay_key *chain;                  /* in its slot of relay->keys */
    struct relay_key *next, **link;           /* in relay->ready or bucket->back */
    struct relay_key *skip_next, **skip_link; /* in bucket->skipping */
    struct relay_bucket *bucket;
    struct held *first, *last; /* those that wait */
    size_t len;
    uint32_t running;
    bool queued; /* it is in relay->ready, */
    bool urgent; /* among the urgent ones */
    bool skips;
    bool check;   /* failed_blocks: it has to be asked for whether one of it has failed */
    bool blocked; /* the answer was yes, last time */
    char after[RELAY_SEQ_SIZE];
    int64_t fetch_us;
    uint64_t mark;     /* the page in which one was passed over */
    uint32_t attempts; /* of the one that has failed and is first in order; 0: there is none */
    uint64_t sequence; /* of that one */
    int64_t due_us;    /* of that one */
    bool alone;
    uint64_t hash;
    size_t name_len;
    char name[];
};

enum bucket_state { BUCKET_OTHERS, BUCKET_OURS, BUCKET_LEAVING };

struct relay_bucket {
    uint32_t number;
    enum bucket_state state;
    uint64_t fence;
    uint64_t life;               /* changes when it is taken or lost */
    char cursor[RELAY_SEQ_SIZE]; /* all up to it was looked at, and no more comes; "": nothing */
    char seen[RELAY_SEQ_SIZE];   /* all that was there up to it was looked at */
    uint32_t extra;              /* a page has to have so many more, to show anything new */
    bool more;                   /* there are others behind it */
    bool woken;                  /* there may be */
    bool forward;                /* the last page was for these */
    bool reading;
    bool urgent;                    /* there may be urgent ones behind urgent_at, */
    bool urgent_anew;               /* or before it */
    char urgent_at[RELAY_SEQ_SIZE]; /* the cursor among these */
    int64_t urgent_us;              /* while others keep from sweeping: when to look for them */
    int64_t urgent_rest_us;         /* not before */
    uint32_t urgent_extra;          /* as `extra` */
    bool urgent_whole;              /* all of them were looked at since it is ours */
    bool sweeping;                  /* looking through what is before the cursor again, */
    char sweep[RELAY_SEQ_SIZE];     /* up to here so far, */
    uint32_t sweep_left;            /* with so many pages to go without news; */
    int64_t sweep_us;               /* when to do so next, on the elapsed clock */
    int64_t far_us;                 /* when to look for what has a place far ahead */
    int64_t not_before_us;          /* a read has failed */
    uint32_t failures;
    uint64_t recent; /* events that were new of late, at recent_us */
    int64_t recent_us;
    int64_t wants_us; /* since when it wants to be read; 0: it does not */
    size_t held;      /* events in memory, in any state but gone */
    size_t ready;     /* keys of it in relay->ready */
    size_t running;
    size_t noting;                 /* delivered, not noted */
    bool whole;                    /* it was read to its end since it is ours */
    bool bare;                     /* the last sweep showed nothing: relay_look.c */
    uint32_t window;               /* so many are careful, as its row says; 0: none */
    uint32_t careful;              /* of these so many are left */
    char until[2][RELAY_SEQ_SIZE]; /* those before it may be to blame; [1]: of urgent ones */
    struct relay_key *skipping;
    int64_t fetch_us;       /* none of these is to be read on before */
    struct relay_key *back; /* keys that wait for events with a lower sequence to be read */
    struct held *gone;
};

struct key_queue {
    struct relay_key *first, **last;
    struct relay_key **urgent; /* where those that are urgent end */
    size_t len;
};

/* ---- others --------------------------------------------------------------------------------- */

struct relay_member {
    struct pattern_id id;
    bool differs;               /* it delivers another part of the events than we do: */
    char only[RELAY_TEXT_MAX];  /* this one; "": all */
    char owner[RELAY_TEXT_MAX]; /* for people */
    struct watch_sight sight;   /* of its beat */
    uint32_t lease_ms;
    bool stopped;
    bool orphaned; /* opener.c: it is gone, however long its lease */
    bool there;    /* in the last answer */
};

struct relay_row { /* b.n as it was read */
    bool there;
    struct pattern_id owner; /* empty: nobody */
    uint64_t fence;
    uint32_t window; /* relay_suspect.c */
};

/* Competing: what a worker has claimed; its memory is that of `io`. */
struct relay_claims {
    const struct hf_claimed_event *events;
    size_t first, len; /* those from `first` on are not done with */
    int64_t renew_us;
    bool keeping; /* the keeper renews them just now: they have to stay */
    bool gone;    /* they were given back while a call did not return: relay_stuck.c */
};

struct sending;

/* A call of the sink that is under way: relay_stuck.c. */
struct relay_call {
    const struct hf_delivery *deliveries; /* as the sink has them */
    size_t len;                           /* 0: none is */
    int64_t since_us;
    bool stuck, dealt_with;
    bool looked_at; /* the keeper looks at it just now: it has to stay */
};

struct relay_worker {
    struct hf_relay *relay;
    pthread_t thread;
    bool started;
    bool runs, over;            /* guarded by the mutex: the thread has begun, and has ended */
    pthread_t self;             /* guarded by the mutex: the thread, if it runs */
    struct hf_scope *io;        /* the database */
    struct hf_scope *work;      /* the sink */
    bool sending;               /* guarded by the mutex, so that `work` can be canceled */
    struct relay_claims claims; /* guarded by the mutex */
    struct relay_call call;     /* guarded by the mutex */
    struct sending *sent;       /* of the call, of a relay that owns buckets */
};

/* Competing: one that is due and was given back, or waits to be tried again, for the lag. */
struct relay_known {
    char seq[RELAY_SEQ_SIZE];
    int64_t due_us;   /* wall; 0: none */
    int64_t until_us; /* elapsed: somebody has dealt with it by then, if we have not */
};

/* Where the shards of the stream are to be read on; in the scope of the last round. */
struct relay_watch {
    struct hf_str arn;
    struct relay_shard *shards;
    size_t len; /* 0: there is no list */
};

struct hf_relay {
    struct hf_env env;
    struct hf_outbox *outbox;
    struct hf_sink *sink;
    const struct hf_sink_ops *ops;
    struct hf_relay_options o;
    struct hf_scope *names; /* holds the texts of the options */
    struct outbox_only only;
    struct hf_str only_text; /* absent: all */
    uint32_t only_bucket;    /* that all of these are in; UINT32_MAX: any */
    struct pattern_id self;  /* who began what: relay_suspect.c */
    size_t batch_max;        /* events of one call of the sink */
    uint32_t sends_max;      /* calls of it at once */
    struct relay_worker *workers;
    size_t workers_len;
    struct timer *keeper;
    pthread_t keeping, watching; /* the threads that are in keep() and watch(), */
    bool keeps, watches;         /* if there are some; the mutex guards these */

    /* Of the keeper alone: relay_member.c. */
    struct hf_scope *keep;
    struct pattern_id id;
    uint64_t beat;
    bool joined;
    struct relay_member *members;
    size_t members_len, members_size;
    struct relay_row *rows;
    uint32_t *plan; /* who is to have each bucket: a place in members */
    int64_t look_us, act_us;
    bool yields; /* one that delivers another part was first */
    uint32_t keep_failures;

    /* Of the watcher alone: relay_watch.c. */
    struct timer *watcher;
    struct hf_scope *watch_scopes[2];
    bool watch_turn;
    struct relay_watch watch;
    int64_t watch_us; /* when to ask next */
    uint32_t watch_failures;

    pthread_mutex_t mutex;    /* guards all below */
    pthread_cond_t work_cond; /* for workers */
    pthread_cond_t idle_cond; /* for who waits for an end */
    bool started, stopping, canceled, paused, ended;
    int64_t timed_us;   /* a worker waits until then; INT64_MAX: none does */
    size_t idle;        /* workers that wait */
    struct lease lease; /* until_us 0: we have none; due_us is the member's alone */
    bool leaving;       /* a bucket waits to be released until its work has ended */
    bool settled;       /* all buckets that are to be ours were ours when it was looked last */
    uint64_t moved;     /* pages of a backlog that were read: it is not at an end */
    struct relay_bucket *buckets;
    struct held *held[RELAY_SLOTS];
    struct relay_key *keys[RELAY_SLOTS];
    size_t keys_len;
    size_t bytes;
    struct key_queue ready;
    struct held *delivered, **delivered_last;
    size_t delivered_len;
    uint32_t noters;
    int64_t note_us; /* not before */
    uint32_t note_failures;
    uint32_t sends;
    const void *alone; /* who is under way, or not noted yet, beside which nothing may be: a held,
                          or a worker that competes; NULL: nobody. That one only ends it, or
                          relay_stuck.c, after which it may be another's */
    uint64_t page;
    double tokens; /* of the rate */
    int64_t tokens_us;
    bool outage; /* the sink could not be reached, and nothing could be sent since */
    bool open;   /* the breaker: nothing is tried before probe_us */
    bool probing;
    int64_t probe_us;
    uint32_t probe_wait_ms;
    uint64_t told_hash; /* what was reported of an outage last, and when */
    int64_t told_us;
    char sink_text[RELAY_TEXT_MAX]; /* why it could not be reached, last */
    uint32_t blob_failures;         /* the store of payloads does not answer: relay_payload.c */
    bool blob_asking;
    int64_t blob_us;
    bool looking; /* a look is under way: relay_look.c */
    int64_t look_again_us;
    bool away; /* a delivery does not return, and the relay has left: relay_stuck.c */
    bool claim_woken, claim_empty; /* competing */
    int64_t claim_us;
    uint32_t claim_failures;
    uint32_t claiming;
    struct relay_known known[RELAY_KNOWN];
    struct hf_relay_metrics metrics;
};

/* ---- relay.c -------------------------------------------------------------------------------- */

enum task_kind { TASK_NONE, TASK_READ, TASK_LOOK, TASK_SEND, TASK_NOTE, TASK_PROBE, TASK_CLAIM };

struct task {
    enum task_kind kind;
    struct relay_bucket *bucket; /* of TASK_READ */
    struct held *batch;          /* of TASK_SEND and TASK_NOTE, by `next` */
    size_t len;
    bool probe; /* TASK_SEND: it is sent to find out whether the sink can be reached */
};

static inline int64_t relay_now_us(const struct hf_relay *relay)
{
    return hf__env_elapsed_us(&relay->env);
}

/* There may be something new in that bucket; UINT32_MAX: in any. */
void hf__relay_wake(struct hf_relay *relay, uint32_t bucket, bool urgent);

/* Let a worker look for something to do. The mutex is held. */
void hf__relay_signal(struct hf_relay *relay);

/* The scope `s` (io or keep) is to be used for the next call; and what it has consumed. */
void hf__relay_begin(struct hf_relay *relay, struct hf_scope *s, uint32_t timeout_ms);
void hf__relay_consumed(struct hf_relay *relay, struct hf_scope *s); /* takes the mutex */

/* What is to be done next; *next_us: if nothing, when there may be. The mutex is held. */
struct task hf__relay_next(struct hf_relay *relay, int64_t now_us, int64_t *next_us);
void hf__relay_do(struct relay_worker *worker, const struct task *task);

/* Tell on_trouble of the scope's error. The mutex is not held. */
void hf__relay_trouble(struct hf_relay *relay, struct hf_scope *s);

/* The wait before the next try, after so many failures (from 1): doubled, capped, +-10 %. */
uint32_t hf__relay_backoff_ms(const struct hf_relay *relay, uint32_t first_ms, uint32_t failures);

/* ---- relay_run.c: threads, turns, stopping --------------------------------------------------- */

void hf__relay_end(struct hf_relay *relay); /* stop, without waiting for a success */

/* ---- relay_key.c: keys and what is held of them; the mutex is held --------------------------- */

int hf__seq_compare(const char *a, const char *b);
/* The largest place before it that is told apart. */
void hf__seq_before(char to[RELAY_SEQ_SIZE], const char *seq);
void hf__seq_set(char to[RELAY_SEQ_SIZE], struct hf_str seq);

struct held *hf__held_find(struct hf_relay *relay, const char *seq);

/* Out of the memory, or remembered while a read of its bucket runs. */
void hf__held_end(struct hf_relay *relay, struct held *held);

/* It runs, and is not ours to note any more; the next one of its key may begin. */
void hf__held_orphan(struct hf_relay *relay, struct held *held);

/* Out of the memory: it is in the table as it was. */
void hf__held_drop(struct hf_relay *relay, struct held *held);
void hf__gone_forget(struct hf_relay *relay, struct relay_bucket *bucket);

/* NULL: no memory. */
struct relay_key *hf__key_find(struct hf_relay *relay, struct relay_bucket *bucket,
                               const struct hf_outbox_event *event, const char *seq, bool make);

/* Hold it, behind those that are before it in order. False: no memory, or no room in the key. */
bool hf__key_hold(struct hf_relay *relay, struct relay_key *key,
                  const struct hf_outbox_event *event, const char *seq, int64_t now_us);

/* All of it from that event on is to be read again, not before fetch_us; what is held of that and
 * waits is forgotten. */
void hf__key_skip(struct hf_relay *relay, struct relay_key *key, const char *seq, uint64_t sequence,
                  int64_t fetch_us);
void hf__key_unskip(struct relay_key *key);

/* It may be read on at its fetch_us. */
void hf__key_expect(struct relay_key *key);

/* See whether it can be begun, or has ended. It may be freed. */
void hf__key_settle(struct hf_relay *relay, struct relay_key *key);

/* Forget all that waits of a bucket; what runs is not noted when it ends (orphans), or is waited
 * for. */
void hf__bucket_forget(struct hf_relay *relay, struct relay_bucket *bucket, bool orphans);

/* Keys that were kept back go on: more was read. */
void hf__bucket_advance(struct hf_relay *relay, struct relay_bucket *bucket);

/* Free all. */
void hf__keys_free(struct hf_relay *relay);

/* ---- relay_read.c --------------------------------------------------------------------------- */

/* The bucket that has waited longest to be read and can be; NULL: none. *next_us: when one will
 * want to be. The mutex is held. */
struct relay_bucket *hf__read_choose(struct hf_relay *relay, int64_t now_us, int64_t *next_us);
void hf__read_run(struct relay_worker *worker, struct relay_bucket *bucket);

/* The bucket is ours, and nothing is known of it. The mutex is held. */
void hf__read_reset(struct hf_relay *relay, struct relay_bucket *bucket, int64_t now_us);

/* Are urgent ones of it to be looked for now? The mutex is held. */
bool hf__read_is_urgent(const struct hf_relay *relay, const struct relay_bucket *bucket,
                        int64_t now_us);

/* By how much reads are ahead of the clock. */
uint32_t hf__read_ahead_ms(const struct hf_relay *relay);

/* Nothing is due in it, as far as we know. The mutex is held. */
bool hf__read_is_dry(const struct hf_relay *relay, struct relay_bucket *bucket);

/* May there be something in it that is for us? */
static inline bool is_read_by(const struct hf_relay *relay, const struct relay_bucket *bucket)
{
    return relay->only_bucket == UINT32_MAX || relay->only_bucket == bucket->number;
}

/* ---- relay_look.c ---------------------------------------------------------------------------- */

/* Is nothing expected in it, so that a look will do? The mutex is held. */
bool hf__look_is_for(const struct hf_relay *relay, const struct relay_bucket *bucket,
                     int64_t now_us);

/* Is a look to be taken, instead of reading that one? The mutex is held. */
bool hf__look_may(const struct hf_relay *relay, const struct relay_bucket *bucket, int64_t now_us);
void hf__look_run(struct relay_worker *worker);

/* ---- relay_payload.c ------------------------------------------------------------------------- */

/* A batch as the sink is to have it, and what belongs to each of it. */
struct sending {
    struct held **helds;
    struct hf_outbox_event *events;
    struct hf_delivery *deliveries;
    size_t len;
};

enum hf_status hf__sending_room(struct hf_scope *s, size_t len, struct sending *to);
void hf__sending_add(struct sending *to, struct held *held, const struct hf_outbox_event *event);

/* Fetch the payloads that are in a blob store, in `work`, whose deadline begins anew; blob_error
 * says which could not be had. */
void hf__payload_fetch(struct relay_worker *worker, struct hf_outbox_event *events, size_t len);

/* When those whose store does not answer are to be tried again. Takes the mutex. */
int64_t hf__payload_again_us(struct hf_relay *relay);

/* Fetch, and take those away that have no payload then, or are not ours any more, and of their keys
 * those behind them. The deliveries of `apart` have the errors, or no event when it is not theirs.
 * In `work`. */
enum hf_status hf__payload_prepare(struct relay_worker *worker, struct sending *to,
                                   struct sending *apart);

/* ---- relay_work.c --------------------------------------------------------------------------- */

/* May something be sent now? *next_us: if not, when. The mutex is held. */
bool hf__send_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us);

/* Take what can be sent at once, up to `max`. The mutex is held. */
size_t hf__send_take(struct hf_relay *relay, size_t max, int64_t now_us, struct held **batch);
void hf__send_run(struct relay_worker *worker, struct held *batch, size_t len, bool was_probe);

/* Events that may be spent now, of `want`, by the rate. The mutex is held. */
size_t hf__rate_allows(struct hf_relay *relay, size_t want, int64_t now_us, int64_t *next_us);
void hf__rate_spend(struct hf_relay *relay, size_t spent);

/* What has to be noted, as far as it is still ours. The mutex is held. */
size_t hf__note_take(struct hf_relay *relay, int64_t now_us, struct held **batch);
void hf__note_run(struct relay_worker *worker, struct held *batch, size_t len);

/* The sink failed as a whole (*tell: that is to be reported), or something was sent. The mutex is
 * held. */
void hf__breaker_failed(struct hf_relay *relay, bool was_probe, const struct hf_error *error,
                        bool *tell);
void hf__breaker_passed(struct hf_relay *relay, bool was_probe);
void hf__probe_run(struct relay_worker *worker);

/* One call of the sink, with the deadline of a delivery; can be canceled. */
enum hf_status hf__sink_call(struct relay_worker *worker, struct hf_delivery *deliveries,
                             size_t len);
size_t hf__event_size(const struct hf_outbox_event *event);

void hf__relay_tell(struct hf_relay *relay, const struct hf_outbox_event *event,
                    enum hf_relay_outcome outcome, const struct hf_error *error);

/* Has it to do with a bucket that is ours, by a lease that has not ended? The mutex is held. */
bool hf__held_is_ours(const struct hf_relay *relay, const struct held *held, int64_t now_us);

/* ---- relay_suspect.c: what may have ended a process ------------------------------------------ */

/* How many deliveries of a bucket are careful, after its owner ended who had begun with `window`.
 */
uint32_t hf__suspect_window(const struct hf_relay *relay, uint32_t window);

/* The bucket was taken, and so many of its deliveries are to be careful. The mutex is held. */
void hf__suspect_begin(struct hf_relay *relay, struct relay_bucket *bucket, uint32_t window);

/* All that may have been to blame when it was taken is done with. The mutex is held. */
bool hf__suspect_is_over(struct hf_relay *relay, struct relay_bucket *bucket);

/* Has it to be the only one that is under way? */
bool hf__suspect_is_alone(const struct hf_relay *relay, const struct held *held);

/* As it was read, without what this relay has counted itself: it lives. True: there was some. */
bool hf__suspect_read(const struct hf_relay *relay, struct hf_outbox_event *event);

/* It is taken from its key, to be sent. The mutex is held. */
void hf__suspect_take(struct hf_relay *relay, struct held *held);

/* Count those that are careful before they begin. Those that cannot be, or are to be given up, are
 * set apart, as hf__payload_prepare() does it. */
enum hf_status hf__suspect_count(struct relay_worker *worker, struct sending *to,
                                 struct sending *apart);

/* They were counted, and are put back now without having been tried. */
void hf__suspect_uncount(struct relay_worker *worker, const struct sending *sent);

/* ---- relay_claim.c: competing --------------------------------------------------------------- */

bool hf__claim_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us); /* mutex held */
void hf__claim_run(struct relay_worker *worker, bool was_probe);
int64_t hf__claim_keep(struct hf_relay *relay); /* the keeper: renew what is under way */

/* When the oldest that we know of was due, or now_us; and how many were claimed and not sent. The
 * mutex is held. */
int64_t hf__claim_oldest_us(const struct hf_relay *relay, int64_t now_us, uint64_t *waiting);

/* ---- relay_stuck.c: deliveries that do not return -------------------------------------------- */

/* The worker calls the sink with these; the call has returned. The mutex is held. */
void hf__stuck_begin(struct relay_worker *worker, const struct hf_delivery *deliveries, size_t len);
void hf__stuck_end(struct relay_worker *worker);

/* Is this relay to leave its work to others for now? The mutex is held. */
bool hf__stuck_has_to_leave(const struct hf_relay *relay);

/* Look whether a call does not return, and deal with it. Returns in how many microseconds to look
 * again. */
int64_t hf__stuck_keep(struct hf_relay *relay);

/* ---- relay_watch.c: news by the stream of the table ------------------------------------------ */

/* Ask what is new. Returns in how many microseconds to ask again. */
int64_t hf__watch_keep(struct hf_relay *relay);

/* ---- relay_member.c ------------------------------------------------------------------------- */

/* Do what is due: renew, look, take, release. Returns in how many microseconds there is more. */
int64_t hf__member_keep(struct hf_relay *relay);

/* Release all, and be a member no more. HF_OK, or what could not be done: the others find out. */
enum hf_status hf__member_leave(struct hf_relay *relay, uint32_t timeout_ms);

/* The lease has ended: all buckets are others' now. The mutex is held. */
void hf__member_drop(struct hf_relay *relay);

/* Who is to have which bucket: plan[bucket] is a place in ids (sorted), the same for all who know
 * the same ids; all get as many, or one more. */
void hf__member_plan(const struct pattern_id *ids, size_t ids_len, uint32_t *plan, uint32_t buckets,
                     uint32_t *loads);

#endif
