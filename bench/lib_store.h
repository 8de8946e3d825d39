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

/* "1,8,32", at most `most` each; ends the process when it is something else. */
size_t bench_read_counts(const char *text, unsigned most, unsigned counts[BENCH_COUNTS_MAX]);

/* Is this cell asked for? A pattern, or a part of the name; NULL: all are. */
bool bench_wanted(const char *only, const char *name);

/* The next record of the report, which has `max`. */
struct bench_record *bench_next_record(struct bench_report *report, size_t max);

#endif
