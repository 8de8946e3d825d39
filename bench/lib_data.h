/*
 * bench/lib_data.h: the table that benchmarks work on, and the operations on it.
 *
 * Item number n of a table:
 *
 *     pk       S   partition n / 100, or always the same in a table of one partition
 *     sk       N   n % 100, or n
 *     owner    S   hash key of the index; a put chooses another, so that its entry moves
 *     created  N   range key of the index
 *     name, email, active, score, visits, tags, body: what makes 1 KiB and eleven attributes
 */
#ifndef HF_BENCH_LIB_DATA_H
#define HF_BENCH_LIB_DATA_H

#include "lib.h"

enum {
    ITEM_BYTES = 1024, /* as DynamoDB counts */
    PARTITION_ITEMS = 100,
    TEXT_BYTES = 64 * 1024,
    BATCH_ITEMS = 25,
    QUERY_ITEMS = 50
};

struct bench_data {
    struct hf_db *db;
    bool indexed;       /* has the index "by-owner", projection ALL */
    bool one_partition; /* all items under one pk */
    uint64_t items;     /* numbered below this */
    uint64_t step;      /* the i-th item that was loaded is i * step % items */
    uint64_t loaded;
    uint64_t query_items; /* asked for by bench_op_query() */
    size_t body_bytes;
    char text[TEXT_BYTES]; /* random letters that strings are cut from */
};

/* Make data for `items`; the database is the caller's to open. NULL is never returned. */
struct bench_data *bench_data_new(uint64_t items, bool indexed, bool one_partition);

/* Close the database and forget the data. */
void bench_data_free(struct bench_data *data);

void bench_create_table(struct bench_data *data);

/* Load in batches from two threads, in scattered order, for at most `max_seconds`. */
struct bench_load {
    double seconds;
    uint64_t peak_anon; /* looked at every 20 ms */
};
struct bench_load bench_load(struct bench_data *data, double max_seconds);

/* Operations on a `struct bench_data`; keys are random among what was loaded. */
bench_op_fn bench_op_get, bench_op_put, bench_op_update, bench_op_query, bench_op_transact,
    bench_op_batch;

/* ---- without an engine --------------------------------------------------------------------- */

/*
 * The loop that the engine is compared with: keys and values of the size that a PutItem stores,
 * through store.h's write and sync, and straight through RocksDB's synced writes.
 */
struct bench_bare;
struct bench_bare *bench_bare_open_store(const char *path, uint64_t items);
struct bench_bare *bench_bare_open_rocksdb(const char *path, uint64_t items);
void bench_bare_close(struct bench_bare *bare);
bench_op_fn bench_op_bare_store, bench_op_bare_rocksdb;

#endif
