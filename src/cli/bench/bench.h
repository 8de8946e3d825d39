/*
 * cli/bench/bench.h: what the files of `holdfast bench` share: histograms, operations, runs.
 */
#ifndef HF_CLI_BENCH_BENCH_H
#define HF_CLI_BENCH_BENCH_H

#include "cli/frame/commands.h"

#include <pthread.h>
#include <stdatomic.h>

/* ---- bench_times.c: histograms -------------------------------------------------------------- */

/*
 * Durations in nanoseconds. Buckets are at most 1/32 of their value wide, so a percentile is exact
 * to about 3 %. One thread adds; any thread may read meanwhile.
 */
enum { TIMES_SUB_BITS = 5, TIMES_SUBS = 1 << TIMES_SUB_BITS };
enum { TIMES_BUCKETS = (64 - TIMES_SUB_BITS + 1) * TIMES_SUBS };

struct bench_times {
    _Atomic uint32_t buckets[TIMES_BUCKETS];
    _Atomic uint64_t max_ns;
};

void hf__bench_times_add(struct bench_times *times, uint64_t ns);

/* The sum of several, to be asked. */
struct bench_summary {
    uint64_t counts[TIMES_BUCKETS];
    uint64_t count;
    uint64_t max_ns;
};

void hf__bench_times_sum(struct bench_summary *summary, const struct bench_times *times);

/* The duration that `share` (0.5: the median) of all are not longer than; 0: there are none. */
uint64_t hf__bench_percentile(const struct bench_summary *summary, double share);

/* Which bucket, and the largest duration in it: for tests. */
size_t hf__bench_bucket(uint64_t ns);
uint64_t hf__bench_bucket_max(size_t bucket);

/* ---- operations ----------------------------------------------------------------------------- */

enum bench_op { BENCH_GET, BENCH_PUT, BENCH_UPDATE, BENCH_QUERY, BENCH_TRANSACT, BENCH_OPS };
enum { BENCH_MIXED = BENCH_OPS, BENCH_KINDS }; /* what can be run: an operation, or a mixture */

enum {
    BENCH_CONNECTIONS_MAX = 1024,
    BENCH_ITEMS_MAX = 10 * 1000 * 1000,
    BENCH_SIZE_MAX = 390 * 1024,  /* an item has 400 KiB at most, with names and key */
    BENCH_RATE_MAX = 1000 * 1000, /* requests a second */
    BENCH_SECONDS_MAX = 24 * 60 * 60,
    BENCH_PARTITION = 10, /* items with the same hash key: what a query reads */
    BENCH_ERROR_MAX = 256
};

extern const char *const hf__bench_names[BENCH_KINDS];

/* What one worker counted. Only its thread adds. */
struct bench_counts {
    struct bench_times times;
    _Atomic uint64_t errors;
    _Atomic uint64_t throttles;
};

struct bench_worker {
    struct bench_run *run;
    pthread_t thread;
    struct hf_scope *scope;
    uint64_t random;
    size_t number;
    _Atomic uint64_t done; /* requests that ended, in the warm-up, too */
    uint64_t missed;       /* with a rate: due and not sent when the time was over */
    struct bench_counts ops[BENCH_OPS];
};

/* One kind, run for its time by all workers. */
struct bench_run {
    struct hf_db *db;
    struct hf_str table;
    int kind; /* enum bench_op, or BENCH_MIXED */
    uint64_t items;
    struct hf_str data; /* of `size` bytes */
    uint64_t rate;      /* requests a second of all workers; 0: each as fast as it can */
    uint32_t timeout_ms;
    size_t connections; /* workers that there are to be */
    size_t workers_len; /* that run */
    struct bench_worker *workers;
    uint64_t from_ns; /* by CLOCK_MONOTONIC: measured from here on, */
    uint64_t until_ns;
    uint64_t start_ns; /* the warm-up begins */
    _Atomic bool stop;
    pthread_mutex_t lock;        /* guards what follows */
    char error[BENCH_ERROR_MAX]; /* the first one; empty: none */
};

uint64_t hf__bench_now_ns(void);

/* Start the threads; HF_NOMEM when not all could be, and none runs then. */
enum hf_status hf__bench_start(struct hf_scope *s, struct bench_run *run);

/* Let them end soon, or wait until their time is over. */
void hf__bench_stop(struct bench_run *run);
void hf__bench_join(struct bench_run *run);

/* The item with that number, without and with its data. */
struct hf_item hf__bench_key(struct hf_scope *s, uint64_t number);
struct hf_item hf__bench_item(struct hf_scope *s, uint64_t number, int64_t n, struct hf_str data);

#endif
