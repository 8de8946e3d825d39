/*
 * Metrics: a wrapper for a database that counts its calls by operation: results, durations,
 * consumed capacity.
 *
 *     struct hf_db *db;
 *     struct hf_str text;
 *     if (hf_metrics_open(s, inner, NULL, &db) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     if (hf_metrics_text(s, db, &text) == HF_OK)
 *         printf("%.*s", HF_FMT(text)); // for Prometheus
 *     hf_db_close(db);                  // closes the inner one too
 *
 * Counting takes some 50 ns more than reading the clock twice, and no lock. Around a database with
 * retries (retry.h) it counts calls; inside of one it counts attempts.
 */
#ifndef HOLDFAST_METRICS_H
#define HOLDFAST_METRICS_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bucket n has the calls that took less than 8 us * 2^n and were in none before; the last one all
 * that took longer. */
enum { HF_METRICS_BUCKETS = 22, HF_METRICS_BUCKET_FIRST_US = 8 };

struct hf_metrics_status {
    enum hf_status status;
    uint64_t calls;
};

struct hf_metrics_op {
    enum hf_op op;
    struct hf_str operation; /* such as "PutItem" */
    uint64_t calls;
    uint64_t errors;                          /* calls that did not end with HF_OK */
    uint64_t maybe;                           /* errors of which the effect may be there */
    const struct hf_metrics_status *statuses; /* how calls ended, HF_OK too, only what occurred */
    size_t statuses_len;
    uint64_t duration_us; /* of all calls together */
    uint64_t buckets[HF_METRICS_BUCKETS];
    double read_units; /* consumed by calls that asked for capacity, to a thousandth of one each */
    double write_units;
    uint64_t reserved[4];
};

struct hf_metrics {
    const struct hf_metrics_op *ops; /* those that were called */
    size_t ops_len;
    uint64_t reserved[8];
};

struct hf_metrics_options {
    size_t size; /* set by HF_OPTIONS() */
    const struct hf_env *env;
    struct hf_str name; /* every line of hf_metrics_text() gets the label database="name" */
};

/*
 * A database that does what `inner` does, and counts. It closes the inner one when it is closed; on
 * failure the inner one stays open and *db is NULL.
 *
 * HF_INVALID  `inner` is NULL, or the name is no UTF-8 or longer than 256 bytes
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_metrics_open(struct hf_scope *s, struct hf_db *inner,
                                                   const struct hf_metrics_options *options,
                                                   struct hf_db **db);

/*
 * The counts up to now, in the scope. A call that ends meanwhile may be in one count and not yet in
 * another. Any thread. HF_INVALID: not opened by hf_metrics_open().
 */
HF_API HF_NODISCARD enum hf_status hf_metrics_get(struct hf_scope *s, struct hf_db *db,
                                                  struct hf_metrics *metrics);

/*
 * The same in Prometheus' text format 0.0.4, in the scope:
 *
 *     holdfast_calls_total{operation,status}
 *     holdfast_calls_maybe_done_total{operation}
 *     holdfast_call_seconds{operation}, a histogram
 *     holdfast_read_units_total{operation}
 *     holdfast_write_units_total{operation}
 *
 * HF_INVALID: not opened by hf_metrics_open().
 */
HF_API HF_NODISCARD enum hf_status hf_metrics_text(struct hf_scope *s, struct hf_db *db,
                                                   struct hf_str *text);

#ifdef __cplusplus
}
#endif

#endif
