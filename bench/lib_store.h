/*
 * bench/lib_store.h: what the benchmarks of patterns have in common: the database that they run on,
 * named by a URL, and their options.
 */
#ifndef HF_BENCH_LIB_STORE_H
#define HF_BENCH_LIB_STORE_H

#include "lib.h"

enum { BENCH_COUNTS_MAX = 8 };

struct bench_place {
    const char *url;   /* "memory:", "embedded:PATH", "http://HOST:PORT" */
    enum hf_sync sync; /* of "embedded:" */
    const char *label; /* memory, none, full or http: begins the names of cells */
    struct hf_db *db;
};

/* Open what `url` names; ends the process when that cannot be. */
void bench_place_open(struct hf_scope *s, struct bench_place *place);

/* What such a benchmark is told: --url URL, --sync none|full, --seconds S, --only NAME, --json
 * FILE, and what it names itself. */
struct bench_args {
    struct bench_place place;
    double seconds; /* of each cell */
    const char *only;
    const char *json;
    const char *counts_name; /* such as "threads", whose default and maximum are given */
    const char *counts_text;
    unsigned counts_most;
    unsigned counts[BENCH_COUNTS_MAX];
    size_t counts_len;
    const char *number_name; /* such as "events", whose default and minimum are given */
    uint64_t number;
    uint64_t number_least;
};

/* Zero in `args` are those that have no default of the program's own. Ends the process when they
 * are wrong. */
void bench_read_args(struct bench_args *args, int argc, char **argv);

/* Write the report to the file that was asked for, if one was. */
void bench_finish(const struct bench_args *args, const struct bench_report *report);

/* Is this cell asked for? A pattern, or a part of the name; NULL: all are. */
bool bench_wanted(const char *only, const char *name);

/* The next record of the report, which has `max`. */
struct bench_record *bench_next_record(struct bench_report *report, size_t max);

#endif
