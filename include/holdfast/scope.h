/*
 * A scope is one thread's piece of work: its memory, its deadline, whether it was canceled, and
 * its last error. Almost every call takes one first.
 *
 * Results of a call live in the scope until hf_scope_reset() or hf_scope_free(). Arguments of a
 * call are borrowed until it returns. There are no other rules of ownership.
 *
 *     struct hf_scope *s = hf_scope_new(NULL);
 *     while (next_job(&job)) {
 *         hf_scope_reset(s);
 *         hf_scope_timeout_ms(s, 2000);
 *         if (work(s, &job) != HF_OK)
 *             fprintf(stderr, "%s\n", hf_scope_error_text(s));
 *     }
 *     hf_scope_free(s);
 */
#ifndef HOLDFAST_SCOPE_H
#define HOLDFAST_SCOPE_H

#include <holdfast/base.h>
#include <holdfast/env.h>
#include <holdfast/item.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_scope; /* one thread at a time uses it; only hf_scope_cancel() is for other threads */

/* Why one action of a transaction did not happen; code is "None" for those that would have. */
struct hf_cancel_reason {
    struct hf_str code;
    struct hf_str message; /* absent with "None" */
    struct hf_item item;   /* the item as it is, when the action asked for it */
    uint64_t reserved[4];
};

/* A limit that was passed: HF_ERROR_LIMIT(HF_TX_ACTIONS_MAX, len). */
struct hf_error_limit {
    struct hf_str name; /* of the constant or the option; absent: none was passed */
    uint64_t max;
    uint64_t actual; /* what there was, or would have been */
};

enum { HF_ERROR_CAUSES_MAX = 8 }; /* causes that an error has at most: those below are left out */

struct hf_error {
    enum hf_status status;
    struct hf_str message;                  /* of operations in DynamoDB's words, else in ours */
    struct hf_str operation;                /* such as "PutItem"; absent outside of an operation */
    struct hf_str exception;                /* of operations, what DynamoDB calls it, such as
                                               "BackupNotFoundException"; absent where it has no name
                                               for it, as with HF_TIMEOUT */
    struct hf_str table;                    /* that the operation names, of several the one that it
                                               failed at or the first; else absent */
    bool may_retry;                         /* the same call may succeed later */
    bool may_have_happened;                 /* the effect may be there although the call failed */
    uint32_t retry_after_ms;                /* when the service said how long to wait; else 0 */
    struct hf_item item;                    /* with HF_CONDITION, when it was asked for */
    const struct hf_cancel_reason *reasons; /* with HF_TX_CANCELED, one per action, in order */
    size_t reasons_len;
    struct hf_error_limit limit;  /* that was passed, where the library itself has looked */
    const struct hf_error *cause; /* the failure that led to this one; NULL: none is known */
    uint64_t reserved[4];
};

#define HF_ERROR_LIMIT(constant, actual)                                                           \
    hf_error_limit_of(#constant, (uint64_t)(constant), (uint64_t)(actual))

static inline struct hf_error_limit hf_error_limit_of(const char *name, uint64_t max,
                                                      uint64_t actual)
{
    struct hf_error_limit limit;

    limit.name = hf_str_from(name);
    limit.max = max;
    limit.actual = actual;
    return limit;
}

/* A new scope in `env` (NULL: the system's), or NULL when there is no memory. */
HF_API HF_NODISCARD struct hf_scope *hf_scope_new(const struct hf_env *env);

/* Free the scope and all that lives in it. NULL is accepted. */
HF_API void hf_scope_free(struct hf_scope *s);

/*
 * Forget everything that lives in the scope, its deadline, its cancellation and its error. Keeps
 * memory for the next round, so that steady work does not allocate.
 */
HF_API void hf_scope_reset(struct hf_scope *s);

/*
 * `size` bytes that live in the scope, aligned for any type; NULL when there is no memory.
 */
HF_API void *hf_scope_alloc(struct hf_scope *s, size_t size);

/*
 * A copy that lives in the scope and is followed by a NUL; absent when there is no memory. A copy
 * of the absent string is empty.
 */
HF_API struct hf_str hf_scope_copy(struct hf_scope *s, struct hf_str text);

/* Formatted text in memory of the scope, followed by a NUL; absent when there is no memory. */
HF_API struct hf_str hf_scope_format(struct hf_scope *s, const char *format, ...) HF_PRINTF(2, 3);

/*
 * Let calls on this scope end with HF_TIMEOUT from `ms` milliseconds on, by the elapsed clock of
 * the scope's env; 0 for never. A write that timed out may have happened all the same: see
 * hf_error.may_have_happened.
 */
HF_API void hf_scope_timeout_ms(struct hf_scope *s, uint32_t ms);

/*
 * Let calls on this scope end with HF_CANCELED as soon as they can, until hf_scope_reset(). Any
 * thread.
 */
HF_API void hf_scope_cancel(struct hf_scope *s);

/*
 * Sleep `ms` milliseconds by the env of the scope. HF_TIMEOUT, without sleeping on, when the
 * deadline comes first; HF_CANCELED soon after hf_scope_cancel().
 */
HF_API HF_NODISCARD enum hf_status hf_scope_sleep_ms(struct hf_scope *s, uint32_t ms);

/*
 * Many writes, one sync. While it is on, an embedded database does not wait until what a call on this
 * scope wrote is durable; hf_db_sync() waits for all of it. Each call stays atomic, with its index
 * entries and stream records. If the machine or the process fails before the sync, the last of these
 * writes may be lost, never one of the middle: what is left was written before everything that is
 * missing. Services are not affected: their writes are durable when they answer.
 *
 * Off for a new scope and after hf_scope_reset(), so sync first. Switching it off does not sync.
 */
HF_API void hf_scope_sync_later(struct hf_scope *s, bool on);

/* What operations consumed, in capacity units, as the database tells it. */
struct hf_scope_capacity {
    double read_units;
    double write_units;
    uint64_t calls; /* operations, with those that failed or consume nothing */
    uint64_t reserved[4];
};

/*
 * Add up what operations on this scope consume, or stop to; what was added up stays. Off for a new
 * scope and after hf_scope_reset(). While it is on, operations ask for their consumption, so the
 * `capacity` of a result is there unasked; a request that says HF_CAPACITY_NONE is left alone and
 * counts as a call. A failure has no consumption, although DynamoDB bills a condition that
 * did not hold.
 */
HF_API void hf_scope_count_capacity(struct hf_scope *s, bool on);

/* The sums since the scope was made or reset. */
HF_API struct hf_scope_capacity hf_scope_capacity(const struct hf_scope *s);

/*
 * Make `tx` (tx.h) the transaction of the scope, or have none (NULL). Calls with the option join_tx
 * become part of it; all others act at once. Returns the former one, to be put back.
 * hf_scope_reset() takes it away.
 */
struct hf_tx;
HF_API struct hf_tx *hf_scope_set_tx(struct hf_scope *s, struct hf_tx *tx);

/* The transaction of the scope, or NULL. */
HF_API struct hf_tx *hf_scope_tx(const struct hf_scope *s);

/*
 * Milliseconds until the deadline, at most `cap`; `cap` when there is no deadline, 0 when it has
 * passed.
 */
HF_API uint32_t hf_scope_left_ms(const struct hf_scope *s, uint32_t cap);

/* The env of the scope, whole: what was left out is the system's. Only `log` may be NULL. */
HF_API const struct hf_env *hf_scope_env(const struct hf_scope *s);

/*
 * HF_NOMEM when an allocation in the scope failed since an operation or this function was called
 * last. Ask it before a request is sent that has formatted texts: a condition for which there was
 * no memory is an absent string, and so a write without a condition.
 */
HF_API HF_NODISCARD enum hf_status hf_scope_built(struct hf_scope *s);

/*
 * A position in the scope's memory, and back to it: what was taken since is given back, results and
 * the texts of errors among it. For loops that run long on one scope.
 */
struct hf_scope_mark {
    void *chunk; /* holdfast's own */
    size_t used;
};
HF_API struct hf_scope_mark hf_scope_mark(struct hf_scope *s);
HF_API void hf_scope_rewind(struct hf_scope *s, struct hf_scope_mark mark);

/*
 * The error of the last call; its status is HF_OK when there was none. Every call that takes a
 * scope and returns HF_OK leaves none, whatever was there before it. The texts of an error live as
 * long as the scope's data.
 */
HF_API const struct hf_error *hf_scope_error(const struct hf_scope *s);

/*
 * That error's message with a NUL at its end, for printf; "" when there was none. Where DynamoDB's
 * words do not say which table is missing, this does.
 */
HF_API const char *hf_scope_error_text(const struct hf_scope *s);

/*
 * Set the error of the scope and return its status, so that a failure of who builds on the library
 * is one statement: `return hf_scope_fail(s, HF_INVALID, "job %d has no owner", job)`. With HF_OK
 * the scope has no error then.
 */
HF_API enum hf_status hf_scope_fail(struct hf_scope *s, enum hf_status status, const char *format,
                                    ...) HF_PRINTF(3, 4);

/*
 * The same, and the error says which limit was passed, if `actual` is more than `max`:
 * `return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(JOBS_MAX, jobs), "%zu jobs", jobs)`.
 */
HF_API enum hf_status hf_scope_fail_limit(struct hf_scope *s, enum hf_status status,
                                          struct hf_error_limit limit, const char *format, ...)
    HF_PRINTF(4, 5);

/*
 * The same, and the error has a copy of `cause`, with the causes of that one: the error of this
 * scope so far, or of another. NULL, or an error that is HF_OK, is no cause. What may have happened
 * below may have happened here; with the status of the cause, the error also says as it does
 * whether and when the call may be repeated.
 */
HF_API enum hf_status hf_scope_fail_because(struct hf_scope *s, enum hf_status status,
                                            const struct hf_error *cause, const char *format, ...)
    HF_PRINTF(4, 5);

/*
 * Fail as a call on another scope did, which returned `status`: that scope's error becomes the one
 * of this scope, whole, in memory of this one. If that error has another status, as a function
 * returned one that it did not set, it is the cause.
 */
HF_API enum hf_status hf_scope_fail_from(struct hf_scope *s, enum hf_status status,
                                         const struct hf_scope *other);

/*
 * Clear the error of the scope and return HF_OK, for who takes a failure for no failure:
 * `return status == HF_NOT_FOUND ? hf_scope_ok(s) : status`. Data in the scope stays.
 */
HF_API enum hf_status hf_scope_ok(struct hf_scope *s);

/*
 * Let the scope's error say that the effect may be there although the call failed, and return its
 * status.
 */
HF_API enum hf_status hf_scope_doubt(struct hf_scope *s);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
