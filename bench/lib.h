/*
 * bench/lib.h: what benchmarks are made of: clocks and dice, counts of allocations, threads that
 * start together, and results that can be added up, printed and written as JSON.
 *
 * How a figure comes about: every thread reads the clock before and after each call, and what lies
 * between goes into a histogram of its own; nothing is subtracted. Building a request is outside of
 * that, but inside of the operations per second, the processor time and the allocations. Threads
 * warm up, meet, and start together; what they counted is merged afterwards.
 */
#ifndef HF_BENCH_LIB_H
#define HF_BENCH_LIB_H

#include "base/base.h"

#include <holdfast/engine.h>

#include <stdatomic.h>
#include <stdio.h>

/* ---- clocks and dice ----------------------------------------------------------------------- */

int64_t bench_now_ns(void);

/* Processor time of the whole process so far. */
double bench_cpu_us(void);

/* splitmix64: small, fast, and good enough to pick keys. */
struct bench_dice {
    uint64_t state;
};
uint64_t bench_roll(struct bench_dice *dice);
uint64_t bench_below(struct bench_dice *dice, uint64_t limit);

/* ---- allocations and memory ---------------------------------------------------------------- */

struct bench_allocs {
    uint64_t calls;     /* of malloc, calloc and realloc, by anybody: holdfast, RocksDB, us */
    uint64_t bytes;     /* asked for by those */
    uint64_t our_calls; /* through the env, so holdfast's alone */
    uint64_t our_bytes;
};

/* False in a build with a sanitizer, where only holdfast's own are counted. */
bool bench_counts_malloc(void);

/* What the calling thread did since it began. */
struct bench_allocs bench_allocs_now(void);

/* An env that counts; everything else in it is the system's. */
extern const struct hf_env bench_env;

struct bench_memory {
    uint64_t rss;  /* resident, mapped files included */
    uint64_t anon; /* what is really ours: heap and stacks */
};
struct bench_memory bench_memory_now(void);

/* ---- histograms ---------------------------------------------------------------------------- */

enum {
    HISTOGRAM_SUB = 64, /* steps per power of two: within 1.6 % */
    HISTOGRAM_OCTAVES = 36,
    HISTOGRAM_LEN = HISTOGRAM_SUB * HISTOGRAM_OCTAVES
};
struct bench_histogram {
    uint64_t count;
    int64_t sum_ns;
    int64_t max_ns;
    uint64_t steps[HISTOGRAM_LEN];
};
void bench_histogram_add(struct bench_histogram *h, int64_t ns);
void bench_histogram_merge(struct bench_histogram *h, const struct bench_histogram *other);
double bench_histogram_us(const struct bench_histogram *h, double quantile);

/* ---- running ------------------------------------------------------------------------------- */

struct bench_worker;

/* Build a request, bench_begin(), call, bench_end(). Errors are counted and the first is shown. */
typedef enum hf_status bench_op_fn(struct bench_worker *w);

struct bench_worker {
    struct hf_scope *s; /* reset before every operation */
    void *user;         /* what the run was given */
    struct bench_dice dice;
    uint64_t items; /* the operation adds the items that it wrote or read */
    int64_t begin_ns, end_ns;
};

static inline void bench_begin(struct bench_worker *w)
{
    w->begin_ns = bench_now_ns();
}

static inline void bench_end(struct bench_worker *w)
{
    w->end_ns = bench_now_ns();
}

/* What runs of one kind amounted to; zeroed by the caller, who may run several times into it. */
struct bench_tally {
    unsigned threads;
    uint64_t ops;
    uint64_t items;
    uint64_t errors;
    double seconds; /* from the common start to the end of the last thread */
    double cpu_us;  /* of the whole process, RocksDB's own threads included */
    struct bench_allocs allocs;
    struct bench_histogram histogram;
};
void bench_run(struct bench_tally *tally, bench_op_fn *op, void *user, unsigned threads,
               double seconds);

/* Wait until the process is idle, as after a load, when RocksDB tidies up. */
void bench_settle(double max_seconds);

/* ---- results ------------------------------------------------------------------------------- */

enum { BENCH_NAME_MAX = 64, BENCH_TEXT_MAX = 200, BENCH_GOALS_MAX = 16 };

/* A line of the table: one operation in one setting. */
struct bench_cell {
    char name[BENCH_NAME_MAX];
    unsigned threads;
    uint64_t ops, errors;
    double ops_per_s, items_per_s;
    double p50_us, p99_us, max_us;
    double cpu_us;                               /* per operation, as all below */
    double mallocs, malloc_bytes;                /* by the threads that call */
    double our_mallocs, our_bytes, items_per_op; /* holdfast's part of those */
};

/* A single figure. */
struct bench_fact {
    char name[BENCH_NAME_MAX];
    char unit[16];
    double value;
};

struct bench_record {
    bool is_cell;
    struct bench_cell cell;
    struct bench_fact fact;
};

struct bench_goal {
    char name[BENCH_TEXT_MAX];
    char measured[BENCH_TEXT_MAX];
    int met; /* 1, 0; -1: not measured */
};

struct bench_report {
    struct bench_record *records;
    size_t len;
    struct bench_goal *goals;
    size_t goals_len;
};

struct bench_cell bench_cell_of(const char *name, const struct bench_tally *tally);
void bench_print_head(void);
void bench_print(const struct bench_record *record);
const struct bench_cell *bench_find_cell(const struct bench_report *report, const char *name);
const struct bench_fact *bench_find_fact(const struct bench_report *report, const char *name);

/* Add the goals of the engine, judged by what was recorded; print all goals. */
void bench_judge_engine(struct bench_report *report);
void bench_print_goals(const struct bench_report *report);

bool bench_write_json(const struct bench_report *report, const char *path, const char *about);

/* Print a message and end the process: benchmarks have nobody to hand an error to. */
_Noreturn void bench_die(const char *format, ...) HF_PRINTF(1, 2);

#endif
