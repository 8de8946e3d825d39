/*
 * Records that wait to be processed, in a table, and a processor that works on all of them.
 *
 *     enum hf_status bill(struct hf_scope *s, const struct hf_record_info *record, void *user)
 *     {
 *         if (!send_bill(record->account, record->item))
 *             return hf_scope_fail(s, HF_IO, "the printer is busy"); // retried, later
 *         return HF_OK;                                              // processed
 *     }
 *     ...
 *     struct hf_records *records;
 *     struct hf_processor *processor;
 *     struct hf_processor_report report;
 *
 *     if (hf_records_open(s, db, NULL, &records) != HF_OK ||
 *         hf_records_put(s, records, HF_ITEM(s, HF_S("AccountId", HF_STR("ACC12345")),
 *                                            HF_S("RunTime", HF_STR("2026-02-17T12:00:00Z")),
 *                                            HF_S("DocumentId", HF_STR("DOC67890"))), NULL) ||
 *         hf_processor_open(s, records, NULL, &processor) != HF_OK ||
 *         hf_processor_run(s, processor, bill, NULL, &report) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     for (size_t i = 0; i < report.errors_len; i++)
 *         printf("%.*s: %.*s\n", HF_FMT(report.errors[i].account), HF_FMT(report.errors[i].text));
 *
 * A record is an item with the keys AccountId and RunTime and any other attributes. It has
 * Processed = 0 until it was processed, and 1 from then on. Only pending records are in the index
 * "Processed", spread over a number of shards, so neither finished records nor a hot key slow it
 * down.
 *
 * Any number of processors may work on one table, on any number of hosts. One conditional write
 * claims a record before it is processed, and another one, which only the owner of the claim can
 * do, completes it. So a record is completed once. A processor that dies leaves claims behind;
 * another takes them over when their owner was silent for a whole lease, by its own clock. So
 * around a crash a record may be processed twice: make your function idempotent, or write in one
 * transaction with hf_record_complete_tx(), or use hf_record_info.fence, which grows with every
 * claim.
 *
 * Works on every database, as each step is one conditional write on one item.
 */
#ifndef HOLDFAST_RECORDS_H
#define HOLDFAST_RECORDS_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_records;   /* a table of records; any thread may use it */
struct hf_processor; /* one thread at a time runs it; any thread may ask how far it is */

/* ---- the table ------------------------------------------------------------------------------ */

enum { HF_RECORDS_SHARDS = 16, HF_RECORDS_SHARDS_MAX = 1000 };

struct hf_records_options {
    size_t size;             /* set by HF_OPTIONS() */
    struct hf_str table;     /* default "Records"; created if missing */
    struct hf_str account;   /* the attribute that is the hash key, S; default "AccountId" */
    struct hf_str run_time;  /* the attribute that is the range key, S; default "RunTime" */
    struct hf_str processed; /* the attribute that is 0 or 1; default "Processed" */
    struct hf_str index;     /* the name of the index; default "Processed" */
    struct hf_str shard;     /* the attribute that is its hash key, S; default "ProcessedShard" */
    /*
     * Over how many index keys waiting records are spread, at most HF_RECORDS_SHARDS_MAX. Decided
     * when the table is made and kept in it; default: as it was made, or HF_RECORDS_SHARDS.
     */
    uint32_t shards;
    bool index_processed; /* keep processed records in the index, too: see hf_records_processed() */
    bool no_create;       /* the table has to exist */

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */
};

/*
 * Records in a table of `db`, which has to outlive them. The env is that of the scope.
 *
 * HF_INVALID  a table of that name is not one of records, or has another number of shards; two
 *             attributes have one name
 * and what making a table fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_records_open(struct hf_scope *s, struct hf_db *db,
                                                   const struct hf_records_options *options,
                                                   struct hf_records **records);

/* Its processors have been closed before. NULL is accepted. */
HF_API void hf_records_close(struct hf_records *records);

/* ---- records -------------------------------------------------------------------------------- */

enum hf_record_state {
    HF_RECORD_UNPROCESSED = 1,
    HF_RECORD_PROCESSED,
    HF_RECORD_FAILED /* failed too often, or for good; not processed */
};

struct hf_record_claim; /* while it is being worked on */

struct hf_record_info {
    struct hf_str account;
    struct hf_str run_time;
    struct hf_item item; /* all of it, with what the table keeps there */
    enum hf_record_state state;
    uint64_t fence;        /* grows with every claim, forever */
    uint32_t attempts;     /* how often it was begun, this time included */
    uint32_t failures;     /* how often that failed */
    struct hf_str owner;   /* who works on it, or did; absent: nobody */
    struct hf_str token;   /* of that claim */
    struct hf_str done_by; /* the token of the claim that completed it; absent: none */
    enum hf_status error;  /* of the last failure; HF_OK: there was none */
    struct hf_str error_text;
    struct hf_record_claim *claim; /* inside of hf_record_fn; otherwise NULL */
    uint64_t reserved[4];
};

struct hf_record_put_options {
    size_t size;   /* set by HF_OPTIONS() */
    bool only_new; /* HF_DUPLICATE if a record with that key exists; default: replace it */
};

/*
 * Put a record: unprocessed, unless its Processed is 1. An existing record is replaced, also while
 * it is being processed: its claim cannot complete the new one. CreatedAt is set when it is absent,
 * and kept; UpdatedAt is set. An answer that gets lost does not put it twice.
 *
 * HF_INVALID    no account or run time, or Processed is neither 0 nor 1
 * HF_DUPLICATE  it exists, with only_new
 * HF_CONDITION  others change that record all the time
 * HF_IO         with may_have_happened: an answer got lost, and others have replaced or deleted the
 *               record since
 */
HF_API HF_NODISCARD enum hf_status hf_records_put(struct hf_scope *s, struct hf_records *records,
                                                  struct hf_item record,
                                                  const struct hf_record_put_options *options);

/* The same as an action for a transaction, which is canceled if the record exists. */
HF_API HF_NODISCARD enum hf_status hf_records_put_tx(struct hf_scope *s, struct hf_records *records,
                                                     struct hf_item record,
                                                     struct hf_transact_write *action);

/*
 * The record as an item to be put by other means, such as hf_write_many(): then nothing is checked,
 * and an existing record is replaced with its attempts and errors.
 */
HF_API HF_NODISCARD enum hf_status hf_records_item(struct hf_scope *s, struct hf_records *records,
                                                   struct hf_item record, struct hf_item *item);

/* By a consistent read. HF_NOT_FOUND when there is none. */
HF_API HF_NODISCARD enum hf_status hf_records_get(struct hf_scope *s, struct hf_records *records,
                                                  struct hf_str account, struct hf_str run_time,
                                                  struct hf_record_info *record);

/*
 * Mark a record as processed, also while it is claimed, and also if it had failed; a processed one
 * stays as it is. HF_NOT_FOUND if there is none; none is created.
 */
HF_API HF_NODISCARD enum hf_status hf_records_mark(struct hf_scope *s, struct hf_records *records,
                                                   struct hf_str account, struct hf_str run_time);

/* The same as an action for a transaction, which is refused when it is processed. */
HF_API HF_NODISCARD enum hf_status hf_records_mark_tx(struct hf_scope *s,
                                                      struct hf_records *records,
                                                      struct hf_str account, struct hf_str run_time,
                                                      struct hf_transact_write *action);

/*
 * Make a record unprocessed, whatever it was: its attempts count from 0 again, and a present claim
 * cannot complete it. Works also on items that other programs put into the table. HF_NOT_FOUND when
 * there is none.
 */
HF_API HF_NODISCARD enum hf_status hf_records_reset(struct hf_scope *s, struct hf_records *records,
                                                    struct hf_str account, struct hf_str run_time);

/*
 * Find records that other programs put, which have Processed 0 and no place in the index, and make
 * them wait like all others; with index_processed also those with Processed 1, which stay as they
 * are. Reads the whole table. A processor does the same a page at a time: see
 * hf_processor_options.adopt_ms. *count (may be NULL) is how many.
 */
HF_API HF_NODISCARD enum hf_status hf_records_adopt(struct hf_scope *s, struct hf_records *records,
                                                    uint64_t *count);

/* Let all failed records be retried, or the first `limit` of them (0: all). *count (may be
 * NULL) is how many. */
HF_API HF_NODISCARD enum hf_status hf_records_retry_failed(struct hf_scope *s,
                                                           struct hf_records *records,
                                                           uint64_t limit, uint64_t *count);

/* Delete a record; there may be none. */
HF_API HF_NODISCARD enum hf_status hf_records_delete(struct hf_scope *s, struct hf_records *records,
                                                     struct hf_str account, struct hf_str run_time);

/* ---- lists ---------------------------------------------------------------------------------- */

struct hf_record_list_options {
    size_t size;         /* set by HF_OPTIONS() */
    uint64_t limit;      /* at most this many; default all, so mind the memory */
    struct hf_str after; /* `next` of an earlier call */
    struct hf_str from;  /* by account: run times from this one on */
    struct hf_str to;    /* by account: run times up to this one */
    bool newest_first;   /* by account: from the latest run time down */
};

struct hf_record_list {
    const struct hf_record_info *records; /* in the scope */
    size_t records_len;
    struct hf_str next; /* absent at the end; a page may be empty and not the last */
    uint64_t reserved[4];
};

/* The records of an account in the order of their run times, by consistent reads. */
HF_API HF_NODISCARD enum hf_status
hf_records_by_account(struct hf_scope *s, struct hf_records *records, struct hf_str account,
                      const struct hf_record_list_options *options, struct hf_record_list *list);

/*
 * Records in a state, shard by shard, each shard in the order of run times. The index says which,
 * and may be a little behind; then they are read as they are, and those in another state are left
 * out. Without index_processed, processed records are found by reading the whole table.
 */
HF_API HF_NODISCARD enum hf_status
hf_records_unprocessed(struct hf_scope *s, struct hf_records *records,
                       const struct hf_record_list_options *options, struct hf_record_list *list);
HF_API HF_NODISCARD enum hf_status
hf_records_processed(struct hf_scope *s, struct hf_records *records,
                     const struct hf_record_list_options *options, struct hf_record_list *list);
HF_API HF_NODISCARD enum hf_status hf_records_failed(struct hf_scope *s, struct hf_records *records,
                                                     const struct hf_record_list_options *options,
                                                     struct hf_record_list *list);

/* How many the index has in that state. HF_INVALID for processed ones without index_processed. */
HF_API HF_NODISCARD enum hf_status hf_records_count(struct hf_scope *s, struct hf_records *records,
                                                    enum hf_record_state state, uint64_t *count);

/* ---- the processor -------------------------------------------------------------------------- */

/*
 * Work on one record. HF_OK: it is processed. Anything else failed, as hf_scope_fail() or a call on
 * `s` says: it is retried later if that may help, or marked as failed. When the processor is
 * stopped, or the claim is lost, `s` is canceled; what returns HF_CANCELED then has not failed.
 * Called by several threads at once.
 */
typedef enum hf_status hf_record_fn(struct hf_scope *s, const struct hf_record_info *record,
                                    void *user);

/* How an attempt ended. */
enum hf_record_outcome {
    HF_RECORD_DONE = 1, /* processed */
    HF_RECORD_RETRY,    /* failed, and will be retried */
    HF_RECORD_GIVEN_UP, /* failed permanently */
    HF_RECORD_LOST,     /* another took it over, or it was replaced, marked or deleted meanwhile */
    HF_RECORD_RELEASED, /* given back, as the processor was stopped */
    HF_RECORD_UNSURE,   /* the database was unreachable, so its end was not written */
    HF_RECORD_EXHAUSTED /* not begun: it was begun max_attempts times, and has failed */
};

/* May it be retried? The default goes by the error: may_retry, or a status that may pass. */
typedef bool hf_record_may_retry_fn(const struct hf_error *error,
                                    const struct hf_record_info *record, void *user);

/* An attempt has ended. Called by several threads at once. */
typedef void hf_record_ended_fn(const struct hf_record_info *record, enum hf_record_outcome outcome,
                                const struct hf_error *error, void *user);

/* Exact: begun = completed + retried + failed + lost + released + unsure + running. */
struct hf_processor_metrics {
    uint64_t begun;     /* attempts: claims that were won */
    uint64_t completed; /* processed, and that was written */
    uint64_t retried;   /* failed attempts after which another may come */
    uint64_t failed;    /* attempts after which the record has failed permanently */
    uint64_t lost;
    uint64_t released;
    uint64_t unsure;
    uint64_t running;    /* being worked on now */
    uint64_t exhausted;  /* records that failed permanently without another attempt */
    uint64_t taken_over; /* of the begun: from others that were silent for a lease */
    uint64_t refused;    /* claims that failed: others were first */
    uint64_t trouble;    /* calls of the database that failed and were retried */
    uint64_t adopted;    /* records of other programs that were found */
    uint64_t reserved[8];
};

struct hf_processor_progress {
    struct hf_processor_metrics metrics;
    uint64_t total;     /* records to do, as counted when the run began; 0: not counted */
    double rate;        /* records completed or failed per second, lately */
    int64_t eta_ms;     /* until total is reached at that rate; -1: not known */
    int64_t elapsed_ms; /* with resume: of all runs together */
    uint64_t reserved[4];
};

/* Called every progress_ms and at the end, by the thread that runs the processor. */
typedef void hf_processor_progress_fn(const struct hf_processor_progress *progress, void *user);

enum { HF_PROCESSOR_WORKERS_MAX = 256, HF_PROCESSOR_ADOPT_PAGE = 500 /* items */ };

struct hf_processor_options {
    size_t size;               /* set by HF_OPTIONS() */
    uint32_t workers;          /* records that are worked on at once; default 5 */
    uint32_t max_retries;      /* after a failed attempt; and of calls of the database; default 3 */
    uint32_t backoff_ms;       /* before the first retry; default 100 */
    double backoff_multiplier; /* each further delay is this many times longer; default 2 */
    uint32_t backoff_max_ms;   /* but not longer than this; default 20000 */
    bool no_retries;           /* max_retries is 0 */
    /*
     * How often a record is begun in all, by whomever, before it is marked as failed: what kills
     * its processor never gets to fail. Default 100.
     */
    uint32_t max_attempts;
    uint32_t lease_ms;     /* silence after which others may take over; default 20000 */
    uint32_t heartbeat_ms; /* how often claims are renewed, at most half of it; default a quarter */
    uint32_t stuck_ms;     /* stop renewing when an attempt lasts this long; default: always renew
                              */
    uint32_t timeout_ms;   /* deadline of the scope of each attempt; default: that of the run */
    uint32_t poll_ms;      /* how often others' claims, and an empty table, are looked at; 1000 */
    uint64_t limit;        /* begin at most this many attempts in a run; default all */
    uint64_t max_failures; /* stop when this many have failed; default never */
    uint32_t max_errors;   /* keep this many for the report; default 1000 */
    struct hf_str owner;   /* our name in lists; default "HOST/PROCESS-ID" */
    struct hf_str resume; /* `checkpoint` of an earlier run: go on where it was, with its figures */

    /*
     * The records of an account one after the other, in the order of their run times: none is begun
     * before the one before it was processed or has failed for good.
     */
    bool account_order;
    bool failed_blocks;   /* with account_order: nor while the one before it is marked as failed */
    bool leave_claimed;   /* do not wait for records that others work on */
    bool forever;         /* when all is done wait for more; also wait for an unreachable database
                             */
    bool dry_run;         /* only count */
    bool no_count;        /* with on_progress: do not count first; total and eta_ms are unknown */
    bool no_threads;      /* work on the thread that runs it, on one record at a time */
    uint32_t progress_ms; /* default 1000 */
    /*
     * Records that other programs put without their place in the index (hf_records_adopt()) are
     * looked for: among the first HF_PROCESSOR_ADOPT_PAGE items of the table when a run begins, and
     * among as many others every adopt_ms, until all was read, and from the beginning again.
     * Default 10000; UINT32_MAX: never. A database that does not allow to Scan is not asked again.
     */
    uint32_t adopt_ms;
    hf_record_may_retry_fn *may_retry;
    hf_record_ended_fn *on_ended;
    hf_processor_progress_fn *on_progress;
    void *user; /* handed to these three */

    /*
     * With threads: how long a run that is stopped waits for functions that do not return although
     * their scopes were canceled. Then it ends without them, HF_TIMEOUT: nothing of them is renewed
     * any more, so that others take their records over after a lease, and what they return later is
     * written down if the claim is still theirs. They use `user` and the processor meanwhile:
     * hf_processor_close() waits for them, and until they have returned hf_processor_run() is
     * HF_IN_USE. Default 0: a run waits until they return.
     */
    uint32_t stop_ms;
};

/* One that has failed permanently. */
struct hf_processor_error {
    struct hf_str account;
    struct hf_str run_time;
    enum hf_status status;
    struct hf_str text;
    uint32_t attempts;
    uint64_t reserved[4];
};

struct hf_processor_report {
    struct hf_processor_metrics metrics;
    const struct hf_processor_error *errors; /* in the scope; the first max_errors */
    size_t errors_len;
    uint64_t total; /* records to do: as counted when it began, where they were counted, or those
                       that came to an end, if these are more; with dry_run, all there is to say */
    int64_t elapsed_ms;
    struct hf_str checkpoint; /* for `resume`; absent when nothing is left */
    uint64_t reserved[8];
};

/*
 * A processor of these records, which have to outlive it.
 *
 * HF_INVALID  heartbeat_ms exceeds half of lease_ms, more than HF_PROCESSOR_WORKERS_MAX workers, a
 *             multiplier below 1, failed_blocks without account_order, or `resume` is no checkpoint
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_processor_open(struct hf_scope *s, struct hf_records *records,
                                                     const struct hf_processor_options *options,
                                                     struct hf_processor **processor);

/* It is not running. NULL is accepted. */
HF_API void hf_processor_close(struct hf_processor *processor);

/*
 * Work on all unprocessed records, until the index shows none. Records that fail do not stop it:
 * they are retried while others go on, and in the end are marked as failed and listed in the
 * report, which is filled in whatever comes out. `report` may be NULL.
 *
 * When the scope is canceled, or its deadline comes, no record is begun any more, the scopes of
 * those that are being worked on are canceled, and what was not finished is given back. (With
 * no_threads, when the record that is being worked on has ended; its scope has the deadline, too.)
 *
 * HF_CANCELED  hf_scope_cancel() was called
 * HF_TIMEOUT   the deadline of the scope came first; or functions did not return within stop_ms
 * HF_LIMIT     max_failures have failed, or the system has no thread
 * HF_IN_USE    it is running already, or a function of the run before has not returned
 * and what the database fails with, after max_retries.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_processor_run(struct hf_scope *s,
                                                    struct hf_processor *processor,
                                                    hf_record_fn *work, void *user,
                                                    struct hf_processor_report *report);

/* How far it is, or was at the end of its last run. Any thread. */
HF_API void hf_processor_progress(struct hf_processor *processor,
                                  struct hf_processor_progress *progress);

/* ---- while a record is being worked on ------------------------------------------------------ */

/*
 * The action that completes the record, for a transaction with what the work does: both happen, or
 * neither, and once. It is refused, HF_TX_CANCELED, when the claim was lost. Return HF_OK after it
 * was done.
 *
 * HF_INVALID  `record` is not being worked on
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_record_complete_tx(struct hf_scope *s,
                                                         const struct hf_record_info *record,
                                                         struct hf_transact_write *action);

/*
 * Renew the claim now, which with no_threads nobody else does.
 *
 * HF_LOST     another has taken it over, or the record was replaced, marked or deleted
 * HF_INVALID  `record` is not being worked on
 * others      it could not be renewed now; it is ours until hf_record_left_ms() is 0
 */
HF_API HF_NODISCARD enum hf_status hf_record_extend(struct hf_scope *s,
                                                    const struct hf_record_info *record);

/* How much of the lease is left, by our clock; 0 when it was lost or is not being worked on. */
HF_API uint32_t hf_record_left_ms(const struct hf_record_info *record);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
