/*
 * streams/consumer.h: what the files of the consumer of streams share. consumer.c has the essay.
 */
#ifndef HF_STREAMS_CONSUMER_H
#define HF_STREAMS_CONSUMER_H

#include <holdfast/streams.h>

#include <pthread.h>

#include "coord/lease.h"
#include "coord/pattern.h"
#include "coord/pump.h"
#include "coord/watch.h"

enum {
    CONSUMER_BATCH_DEFAULT = 100,
    CONSUMER_BATCH_MAX = 1000, /* of GetRecords */
    CONSUMER_POLL_DEFAULT_MS = 1000,
    CONSUMER_LEASE_DEFAULT_MS = 20000,
    CONSUMER_LEASE_MIN_MS = 20,
    CONSUMER_CHECKPOINT_DEFAULT_MS = 1000,
    CONSUMER_BACKOFF_DEFAULT_MS = 1000,
    CONSUMER_STUCK_DEFAULT_MS = 300000,
    CONSUMER_BACKOFF_MAX_MS = 30000,
    CONSUMER_THREADS_MAX = 256,
    CONSUMER_LOOK_MS = 10000, /* how often new shards are looked for, without news */
    CONSUMER_RETRY_MS = 50,   /* the first pause after a failure of the database; doubled */
    CONSUMER_RETRY_MAX_MS = 5000,
    CONSUMER_END_PAGES = 3,      /* so many empty pages of an open shard are its end, for now */
    CONSUMER_END_PAUSE_MS = 200, /* between these; a shard may be asked five times a second */
    CONSUMER_KEEP_S = 7 * 86400, /* how long it is kept that a shard was read to its end */
    CONSUMER_NAME_MAX = 255
};

/* Bytes that are replaced now and then; from the env. */
struct text {
    char *ptr;
    size_t len;
    size_t size;
};

static inline struct hf_str text_str(const struct text *text)
{
    return hf_str_of(text->ptr, text->len);
}

/* False: no memory, and it is as it was. */
bool hf__text_set(const struct hf_env *env, struct text *text, struct hf_str to);
void hf__text_free(const struct hf_env *env, struct text *text);

/* ---- a shard -------------------------------------------------------------------------------- */

/* From where it is read. */
enum place {
    PLACE_HORIZON = 0, /* the oldest record that is there */
    PLACE_TIME,        /* the oldest, but what is older than from_us is passed over */
    PLACE_AT,          /* the record with this number and what follows it */
    PLACE_AFTER        /* what follows the record with this number */
};

struct shard {
    struct shard *next;
    struct text id;
    struct text parent;

    /* The consumer's mutex guards all below. What is said to be the reader's is only changed by
     * who has set `busy`. */
    uint64_t listed; /* the look in which the database last had it */
    bool decided;    /* it is known from where it is to be read, if nobody has begun */
    bool ignored;    /* it is none of ours: with HF_START_AFTER, all that do not follow that one */
    bool done;       /* it was read to its end */
    bool busy;       /* somebody reads it */
    bool beating;    /* it is being renewed */

    /* where we are */
    enum place place;
    struct text sequence;
    int64_t from_us;
    bool dirty; /* it is not written yet */
    bool begun; /* something was handed over: `sequence` is what a gap follows */

    /* the lease, while owned; with a name */
    bool owned;
    uint64_t fence;
    uint64_t beat;
    struct lease lease;
    int64_t saved_us;                /* the position was written */
    char wanted[PATTERN_ID_LEN + 1]; /* who asks for it; "": nobody */

    /* the lease of another, as it was seen last */
    bool there;                      /* it has an item */
    char holder[PATTERN_ID_LEN + 1]; /* "": nobody */
    uint64_t seen_fence;
    uint64_t seen_beat;
    int64_t seen_us; /* since when it is so, by our clock */
    uint32_t seen_lease_ms;
    bool asked; /* somebody asks for it */

    /* the reader's */
    struct text iterator; /* empty: none */
    bool by_time;         /* it was made for PLACE_TIME: what is too old is passed over */
    int64_t due_us;       /* when to read again */
    uint32_t failures;    /* of the handler in a row, with this batch */
    uint32_t db_failures; /* of the database, since something went well */
    uint32_t empty;       /* pages in a row without records */
    bool at_end;          /* with until_end: all that was there was handed over */
    int64_t call_us;      /* since when the handler has changes of it; 0: it has not */
    bool stuck;           /* it has not returned for too long, and that was reported */
};

/* ---- the consumer --------------------------------------------------------------------------- */

struct consumer_worker {
    struct hf_consumer *consumer;
    struct hf_scope *io;   /* for the database */
    struct hf_scope *own;  /* what io is, when it is not the caller's scope */
    struct hf_scope *work; /* handed to the handler */
    struct shard *shard;   /* it reads; the consumer's mutex guards it */
};

struct hf_consumer {
    struct hf_env env;
    struct hf_db *db;
    struct hf_scope *names; /* texts of the options */
    struct hf_consumer_options o;
    struct hf_str table;
    struct hf_str pk; /* of the positions */
    struct pattern_id id;
    struct hf_scope *beat_scope;
    struct timer *beater;
    struct pump *pump; /* reads shards that are due */
    struct consumer_worker *workers;
    size_t workers_len;
    struct waiters looker; /* who runs it, and looks */
    hf_change_fn *handle;
    void *user;
    int64_t deadline_us; /* of the run; 0: none */

    /* Only who looks for shards uses these. */
    struct text arn;
    struct text hash; /* the name of the hash key */
    enum hf_start start;
    int64_t since_us;   /* from when on, with LATEST and TIME */
    struct text shard;  /* with AFTER */
    struct text number; /* with AFTER */
    bool headed;        /* the above are known */
    bool fresh;         /* we were the first, and have not looked yet */
    int64_t look_us;    /* when to look again */
    uint32_t look_failures;

    pthread_mutex_t mutex; /* guards all below, and shards */
    struct shard *shards;
    uint64_t looks;
    bool look_now;
    bool running;
    bool stopping;
    enum hf_status stop_status;
    struct hf_scope *why; /* its error: why the run stops */
    struct hf_consumer_metrics metrics;
};

static inline bool has_name(const struct hf_consumer *c)
{
    return c->o.name.len > 0;
}

static inline bool error_is_transient(const struct hf_error *error)
{
    return error->may_retry || error->may_have_happened;
}

/* Let the run end with the error of that scope, in which a call returned `status`; the first one
 * counts. */
void hf__consumer_stop(struct hf_consumer *c, enum hf_status status, const struct hf_scope *why);
bool hf__consumer_stopping(struct hf_consumer *c);

/* What always holds of its shards; with the mutex. */
void hf__consumer_check(struct hf_consumer *c);

/* Records are gone behind `sequence` (absent: none was handed over). Not with the mutex. */
void hf__consumer_gap(struct hf_consumer *c, struct hf_str shard, struct hf_str sequence);

/* How long to wait after so many failures of the database in a row. */
uint32_t hf__consumer_retry_ms(const struct hf_consumer *c, uint32_t tries);

/* ---- consumer_shard.c: lineage -------------------------------------------------------------- */

/* The stream that the table has now; absent: it has none, and never had. */
enum hf_status hf__consumer_stream(struct hf_scope *s, struct hf_consumer *c, struct hf_str *arn);

/*
 * Find out which shards there are and who has which, and take those that are available. HF_OK also
 * if nothing has changed; *ended: nothing is left to do, ever, or with until_end.
 */
enum hf_status hf__consumer_look(struct hf_scope *s, struct hf_consumer *c, bool *ended);

/* With until_end: was all that was there handed over, as far as it is ours? With the mutex. */
bool hf__consumer_at_end(struct hf_consumer *c);

void hf__shards_free(struct hf_consumer *c);

/* ---- consumer_read.c: one shard, one page --------------------------------------------------- */

/* Read it and hand over what there is; the worker has set `busy`. */
void hf__consumer_serve(struct consumer_worker *worker, struct shard *shard);

/* An iterator for changes from now on, for a shard that nobody has begun. */
enum hf_status hf__shard_latest(struct hf_scope *s, struct hf_consumer *c, struct shard *shard);

/* ---- consumer_lease.c: positions and leases ------------------------------------------------- */

enum hf_status hf__shard_lease_table(struct hf_scope *s, struct hf_consumer *c);

/* What a name began with: which stream, from where. */
struct head {
    struct hf_str arn;
    enum hf_start start;
    int64_t since_us;
    struct hf_str shard, number;
};

/* Read it, or be the first to write it (*fresh). */
enum hf_status hf__head_begin(struct hf_scope *s, struct hf_consumer *c, struct head *head,
                              bool *fresh);

/* From one stream to the one that followed it; HF_OK as well when another has done so. */
enum hf_status hf__head_move(struct hf_scope *s, struct hf_consumer *c, struct hf_str to);

/* An item of the table as it is. */
struct shard_lease_view {
    struct hf_str sk;
    bool is_head;
    struct hf_str arn;   /* of its stream */
    struct hf_str shard; /* absent in a head */
    struct hf_str holder, opener, wanted;
    uint64_t fence, beat;
    uint32_t lease_ms;
    bool done;
    enum place place;
    struct hf_str sequence;
    int64_t from_us;
    struct head head;
};
enum hf_status hf__shard_lease_view(struct hf_scope *s, struct hf_item item,
                                    struct shard_lease_view *view);

/* What the item says of a shard that is not ours; with the mutex. */
void hf__shard_lease_see(struct hf_consumer *c, struct shard *shard,
                         const struct shard_lease_view *view);

/* All items of the name: the request. */
struct hf_query hf__shard_lease_query(struct hf_scope *s, const struct hf_consumer *c);

/* Write from where a shard is to be read, or that it is not, unless it has an item already. */
enum hf_status hf__shard_lease_plan(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    bool done);

/* Take it, as it was seen. *taken; its position is that of the item then, if it had one. */
enum hf_status hf__shard_lease_take(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    bool *taken);

/* Write the beat and the position: HF_OK, HF_LOST, or it could not be done now. */
enum hf_status hf__shard_lease_renew(struct hf_scope *s, struct hf_consumer *c,
                                     struct shard *shard);

/* Give it back, or to who asks for it. */
enum hf_status hf__shard_lease_release(struct hf_scope *s, struct hf_consumer *c,
                                       struct shard *shard);

/* It was read to its end. HF_LOST: another has it. */
enum hf_status hf__shard_lease_finish(struct hf_scope *s, struct hf_consumer *c,
                                      struct shard *shard);

/* It is gone with all that was in it: mark it as done. *ours: it was us. */
enum hf_status hf__shard_lease_bury(struct hf_scope *s, struct hf_consumer *c, struct shard *shard,
                                    bool *ours);

/* Ask its holder for it. */
enum hf_status hf__shard_lease_ask(struct hf_scope *s, struct hf_consumer *c, struct shard *shard);

/* It is not ours any more; with the mutex. */
void hf__shard_lease_lost(struct hf_consumer *c, struct shard *shard);

/* Renew all that is due; microseconds until there is more. */
int64_t hf__consumer_beats(void *consumer);

#endif
