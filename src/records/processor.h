/*
 * records/processor.h: what the files of the processor share. processor.c has the essay.
 */
#ifndef HF_RECORDS_PROCESSOR_H
#define HF_RECORDS_PROCESSOR_H

#include "coord/lease.h"
#include "coord/pump.h"
#include "records/records.h"

enum {
    WORKERS_DEFAULT = 5,
    RETRIES_DEFAULT = 3,
    BACKOFF_BASE_DEFAULT_MS = 100,
    BACKOFF_MAX_DEFAULT_MS = 20000,
    ATTEMPTS_DEFAULT = 100,
    RECORD_LEASE_DEFAULT_MS = 20000,
    RECORD_POLL_DEFAULT_MS = 1000,
    PROGRESS_DEFAULT_MS = 1000,
    ADOPT_DEFAULT_MS = 10000,
    ERRORS_DEFAULT = 1000,
    WAITS_MAX = 10000,   /* records that are remembered as not to be begun yet */
    WAITS_BUCKETS = 256, /* a power of two */
    SAMPLES = 16
};

/* ---- processor_wait.c: records that are not to be begun yet --------------------------------- */

/* Why not, as it was seen first at first_us. */
struct wait_seen {
    struct pattern_id id; /* of a claim; empty: it has a time before which it is not to be begun */
    uint64_t beat;        /* of that claim; or that time */
    int64_t first_us;
};

struct wait_entry;

struct waits {
    const struct hf_env *env;
    struct wait_entry *buckets[WAITS_BUCKETS];
    size_t len;
};

/* When to look at it again, on the elapsed clock; 0: it is not waiting. Marks it as seen in this
 * pass. */
int64_t hf__waits_due_us(struct waits *waits, struct record_key key, uint64_t pass);

/* What was seen of it, if anything. */
bool hf__waits_seen(const struct waits *waits, struct record_key key, struct wait_seen *seen);

/*
 * It was found to be as `id` and `beat` say. Returns since when it is, by our clock: `now_us`,
 * unless it was the same before. It is to be looked at again at due_us at the latest.
 */
int64_t hf__waits_note(struct waits *waits, struct record_key key, struct hf_str id, uint64_t beat,
                       int64_t now_us, uint64_t pass);
void hf__waits_until(struct waits *waits, struct record_key key, int64_t due_us);

void hf__waits_forget(struct waits *waits, struct record_key key);

/* Forget what was not seen since that pass. */
void hf__waits_sweep(struct waits *waits, uint64_t pass);

/* When the first of them is due; INT64_MAX: there are none. */
int64_t hf__waits_first_us(const struct waits *waits);
void hf__waits_free(struct waits *waits);

/* ---- the processor -------------------------------------------------------------------------- */

/* A record to be worked on: queued, or in the hands of a worker. */
struct todo {
    struct todo *next;          /* in the queue */
    struct todo *after, **link; /* in processor->taken */
    uint64_t hash;
    size_t account_len;
    size_t run_time_len;
    char text[]; /* the account, then the run time */
};

static inline struct record_key todo_key(const struct todo *todo)
{
    return (struct record_key){
        hf_str_of(todo->text, todo->account_len),
        hf_str_of(todo->text + todo->account_len, todo->run_time_len),
    };
}

struct hf_record_claim {
    struct record_worker *worker;
    struct pattern_id id;
    uint64_t fence;
    struct record_key key; /* lives as long as the attempt */

    /* processor->mutex guards all below. */
    bool active; /* the work is going on */
    bool lost;
    uint64_t beat;
    struct lease lease;
    int64_t begun_us;
};

struct record_worker {
    struct hf_processor *processor;
    struct hf_scope *io;   /* for claims, and how attempts end */
    struct hf_scope *work; /* handed to the user's function */
    bool run_deadline;     /* that of `work` is the run's */
    struct hf_record_claim claim;
};

struct error_entry {
    struct error_entry *next;
    size_t size;
    enum hf_status status;
    uint32_t attempts;
    struct hf_str account, run_time, text; /* in `bytes` */
    char bytes[];
};

/* What became of the records of one look at the whole index. */
struct pass {
    uint64_t number;
    bool whole;       /* it began at the beginning */
    uint64_t found;   /* handed to workers */
    uint64_t skipped; /* queued or with a worker already */
    uint64_t waiting; /* to be tried again, but not yet */
    uint64_t held;    /* others work on them */
    uint64_t stale;   /* the index shows them, but they are in no such state any more */
    uint64_t behind;  /* a record before them in their account is unprocessed */
    uint64_t blocked; /* the record before them is a failed record, and those block */
    uint64_t moved;   /* begun, or made failed records */
};

/* How far the search for records of other programs is. */
struct adopting {
    struct hf_scope *memory; /* of `next` */
    struct hf_item next;     /* absent: from the beginning */
    int64_t due_us;          /* INT64_MAX: never again */
};

struct hf_processor {
    struct hf_env env;
    struct hf_records *records;
    struct hf_scope *names; /* texts of the options */
    struct hf_processor_options o;
    uint32_t retries;
    struct timer *beater;
    struct hf_scope *beat_scope; /* for the requests of hf__processor_beats() */
    struct pump *pump;           /* works on what is in the queue */
    struct record_worker *workers;
    size_t workers_len;     /* with no_threads, one that has no thread */
    struct waiters changed; /* who runs it, and workers that pause */
    hf_record_fn *fn;
    void *user;
    int64_t deadline_us; /* of the run; 0: none */

    pthread_mutex_t mutex; /* guards all below, and what claims say it does */
    bool running;
    bool stopping; /* nothing is begun any more */
    bool limited;  /* records were left, as o.limit is reached */
    enum hf_status stop_status;
    struct hf_scope *why;       /* its error: why the run stops */
    struct todo *first, **last; /* the queue */
    size_t queue_len;
    struct todo *taken;
    size_t taken_len;
    struct waits waits;
    struct pass pass;
    uint64_t claiming;     /* attempts that are about to begin */
    uint64_t begun_before; /* metrics.begun when the run began */
    struct hf_processor_metrics metrics;
    uint64_t total;
    int64_t started_us;
    int64_t ended_us;   /* 0 while it runs */
    int64_t elapsed_ms; /* of the runs before */
    struct {
        int64_t us;
        uint64_t done;
    } samples[SAMPLES];
    size_t samples_len;
    int64_t notified_us; /* when on_progress was called last */
    struct error_entry *errors, **errors_last;
    size_t errors_len;
    uint32_t shard;           /* the shard that the pass is in */
    struct record_key at;     /* the last key of it that was looked at */
    struct hf_scope *cursor;  /* the memory of `at` */
    struct adopting adopting; /* of the thread that runs it */
};

/* ---- processor_work.c: one attempt ---------------------------------------------------------- */

/* Claim it and work on it, then on those that follow it in its account. Frees it. */
void hf__processor_work(struct record_worker *worker, struct todo *todo);

/* ---- processor_claim.c: leases -------------------------------------------------------------- */

enum begun {
    BEGUN,         /* the claim is ours */
    NOT_BEGUN,     /* it cannot be claimed now; the pass knows why */
    MARKED_FAILED, /* it was begun too often, or cannot be read: it is a failed record now */
    BEGIN_FAILED   /* the database failed; the error is in worker->io */
};

/* One try to claim the record. With BEGUN and MARKED_FAILED, *info is the record. */
enum begun hf__claim_begin(struct record_worker *worker, struct record_key key,
                           struct hf_record_info *info);

/* Renew it with one write: HF_OK, HF_LOST, or it could not be done. */
enum hf_status hf__claim_renew(struct hf_scope *s, struct hf_processor *processor,
                               struct hf_record_claim *claim);

/* What ends a claim names it. */
#define CLAIM_VALUES(claim) HF_S(":id", id_str(&(claim)->id)), HF_N(":fence", (claim)->fence)

/* The request that completes it. */
struct hf_update_item hf__claim_complete_request(struct hf_scope *s,
                                                 const struct hf_record_claim *claim);

/* Renew all that is due; microseconds until there is more. */
int64_t hf__processor_beats(void *processor);

/* ---- processor.c ---------------------------------------------------------------------------- */

/* From now on the record is queued or with a worker. NULL: no memory. The mutex is held. */
struct todo *hf__todo_take(struct hf_processor *processor, struct record_key key);
void hf__todo_drop(struct hf_processor *processor, struct todo *todo);
bool hf__todo_is_taken(const struct hf_processor *processor, struct record_key key);

/* Let the run end with the error of that scope, in which a call returned `status`, or with that
 * text and that cause (NULL: none); the first one counts. Any thread. */
void hf__processor_stop(struct hf_processor *processor, enum hf_status status,
                        const struct hf_scope *why);
void hf__processor_stop_because(struct hf_processor *processor, enum hf_status status,
                                const struct hf_error *cause, struct hf_str text);
bool hf__processor_stopping(struct hf_processor *processor);

/* (2) of processor.c, and what always holds of the queue and of what is taken. The mutex is held. */
void hf__processor_check(struct hf_processor *processor);

/* HF_OK: the run goes on. Otherwise why it ends. */
enum hf_status hf__processor_run_check(struct hf_scope *s, struct hf_processor *processor);

/* How long to wait after that many failures. */
uint32_t hf__processor_backoff_ms(struct hf_processor *processor, uint32_t failures);

/* ---- processor_pass.c ----------------------------------------------------------------------- */

/* Look through the index, pass after pass, until nothing is left or the run ends. */
enum hf_status hf__processor_look(struct hf_scope *s, struct hf_processor *processor);

/* The first record of the queue; NULL: it is empty. The mutex is held. */
struct todo *hf__todo_next(struct hf_processor *processor);

/* Sleep by the env's clock, but not on when the run is being stopped. */
enum hf_status hf__processor_pause(struct hf_scope *s, struct hf_processor *processor, int64_t us);

/* May the same request succeed later? */
static inline bool error_is_transient(const struct hf_error *error)
{
    return error->may_retry || error->may_have_happened;
}

/* ---- processor_adopt.c ---------------------------------------------------------------------- */

/* Look for records of other programs, if it is time, or as a run begins. */
void hf__processor_adopt(struct hf_scope *s, struct hf_processor *processor, bool first);

/* ---- processor_progress.c ------------------------------------------------------------------- */

/* Call on_progress if it is due, or with `now` in any case. */
void hf__processor_notify(struct hf_processor *processor, bool now);
/* When on_progress is due next, on the elapsed clock; INT64_MAX: never. */
int64_t hf__processor_notify_due_us(struct hf_processor *processor);
void hf__processor_sample(struct hf_processor *processor); /* the mutex is held */

/* Keep the error for the report; the mutex is held. */
void hf__processor_keep_error(struct hf_processor *processor, const struct hf_record_info *info,
                              enum hf_status status, struct hf_str text);
void hf__processor_free_errors(struct hf_processor *processor);

/* Where it is and what it did, as a text; and back. */
struct hf_str hf__processor_checkpoint(struct hf_scope *s, struct hf_processor *processor);
enum hf_status hf__processor_resume(struct hf_scope *s, struct hf_processor *processor,
                                    struct hf_str text);

enum hf_status hf__processor_report(struct hf_scope *s, struct hf_processor *processor, bool left,
                                    struct hf_processor_report *report);

#endif
