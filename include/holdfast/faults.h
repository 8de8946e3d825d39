/*
 * Injected faults: a wrapper for a database that makes calls fail as DynamoDB's may. For tests of
 * programs that have to survive throttling, lost answers and conflicts.
 *
 *     struct hf_db *db;
 *     const struct hf_fault faults[] = {
 *         {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("PutItem"), .count = 1},
 *         {.kind = HF_FAULT_THROTTLE, .probability = 0.1}};
 *     if (hf_faulty_open(s, inner, &db) != HF_OK || hf_faulty_set(s, db, faults, 2) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db); // closes the inner one too
 */
#ifndef HOLDFAST_FAULTS_H
#define HOLDFAST_FAULTS_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Of a write, HF_FAULT_LOST_ANSWER and HF_FAULT_LOST_REQUEST are the two halves of one uncertainty:
 * both say may_have_happened, and it has, or has not. A program that is right with both is right
 * with a network. The others that fail say that nothing was done, and that is so.
 */
enum hf_fault_kind {
    HF_FAULT_THROTTLE = 1, /* ProvisionedThroughputExceededException; nothing is done */
    HF_FAULT_CONFLICT,     /* writes: another transaction holds the item; nothing is done */
    HF_FAULT_UNPROCESSED,  /* batches: the second half of the entries is handed back */
    HF_FAULT_ERROR,        /* InternalServerError; nothing is done */
    HF_FAULT_LOST_ANSWER,  /* it is done, and then InternalServerError */
    HF_FAULT_LATENCY,      /* it is done, and the answer takes latency_ms longer, or until the scope
                              ends: HF_TIMEOUT, HF_CANCELED */
    HF_FAULT_LOST_REQUEST  /* nothing is done, and HF_IO */
};

/* Which calls it strikes, and how often. What is left out strikes all. */
struct hf_fault {
    enum hf_fault_kind kind;
    struct hf_str operation; /* such as "PutItem" */
    struct hf_str table;     /* calls that name this table, among others or alone */
    double probability;      /* of a call that matches; 0 is 1, so always */
    uint32_t skip;           /* this many matching calls go through first */
    uint32_t count;          /* then it strikes this often and is over; 0: forever */
    uint32_t latency_ms;     /* with HF_FAULT_LATENCY */
    uint64_t struck;         /* of hf_faulty_get(): how often so far */
    uint64_t reserved[4];
};

enum { HF_FAULTS_MAX = 100 };

/*
 * A database that does what `inner` does, until faults are set. It closes the inner one when it is
 * closed; on failure the inner one stays open and *db is NULL.
 *
 * HF_INVALID  `inner` is NULL
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_faulty_open(struct hf_scope *s, struct hf_db *inner,
                                                  struct hf_db **db);

/*
 * Replace the faults; none to be well again. The first that matches and strikes decides, but
 * latencies add up with what comes behind them. Any thread.
 *
 * HF_INVALID  a kind, operation, probability or latency is none, or there are more than
 *             HF_FAULTS_MAX; `db` was not opened by hf_faulty_open()
 */
HF_API HF_NODISCARD enum hf_status hf_faulty_set(struct hf_scope *s, struct hf_db *db,
                                                 const struct hf_fault *faults, size_t len);

/* The faults as they are now, in the scope. HF_INVALID: not opened by hf_faulty_open(). */
HF_API HF_NODISCARD enum hf_status hf_faulty_get(struct hf_scope *s, struct hf_db *db,
                                                 const struct hf_fault **faults, size_t *len);

#ifdef __cplusplus
}
#endif

#endif
