/*
 * Tracing: a wrapper for a database that reports every call, before and after.
 *
 *     static void print_call(struct hf_trace_call *call, void *user)
 *     {
 *         printf("%.*s took %lld us\n", HF_FMT(call->operation), (long long)call->duration_us);
 *     }
 *     ...
 *     struct hf_db *db;
 *     if (hf_trace_open(s, inner, HF_OPTIONS(hf_trace_options, .after = print_call), &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_db_close(db); // closes the inner one too
 *
 * A report never has a key, an attribute or a message in it, as these may be secret. Around a
 * database that tries again (retry.h) a call is reported once, with its retries in its duration;
 * inside of one every attempt is reported.
 */
#ifndef HOLDFAST_TRACE_H
#define HOLDFAST_TRACE_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_trace_call {
    uint64_t number;         /* 1 for the first call of this database, and so on */
    enum hf_op op;           /* the operation, */
    struct hf_str operation; /* such as "PutItem" */
    struct hf_str table;     /* of several the first; absent when no field names one */
    size_t items_sent;       /* items, keys or statements in the request */
    void *note;              /* NULL before; what `before` leaves here `after` finds again */
    /* the rest is 0 before the call */
    enum hf_status status;
    bool may_retry;         /* as in hf_error */
    bool may_have_happened; /* as in hf_error */
    int64_t duration_us;
    size_t items_returned; /* items or records in the answer */
    double read_units;     /* consumed, when the request asked for capacity */
    double write_units;
    uint64_t reserved[4];
};

/* Called on the thread of the call, which waits for it. It must not use the scope of the call. */
typedef void hf_trace_fn(struct hf_trace_call *call, void *user);

struct hf_trace_options {
    size_t size; /* set by HF_OPTIONS() */
    const struct hf_env *env;
    hf_trace_fn *before; /* default none */
    hf_trace_fn *after;  /* default none */
    void *user;          /* handed to both */
    enum hf_log_level
        log; /* a line for each call goes to the env's log at this level; default none */
};

/*
 * A database that does what `inner` does, and reports it. It closes the inner one when it is
 * closed; on failure the inner one stays open and *db is NULL.
 *
 * HF_INVALID  `inner` is NULL, or `log` is no level
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_trace_open(struct hf_scope *s, struct hf_db *inner,
                                                 const struct hf_trace_options *options,
                                                 struct hf_db **db);

#ifdef __cplusplus
}
#endif

#endif
