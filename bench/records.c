/*
 * bench/records.c: what the processor of records adds to each of them, on one database.
 *
 *     bench_records [--url URL] [--sync none|full] [--workers LIST] [--seconds S] [--records N]
 *                   [--only NAME] [--json FILE]
 *
 * URL is "memory:" (the default), "embedded:PATH" or "http://HOST:PORT". Cells are named
 * DATABASE/WORK/WORKERS, and the work is:
 *
 *     bare   no processor: each thread makes two conditional writes for each record, whose keys it
 *            knows: one that claims it, and one that completes it and takes it out of the index
 *     empty  hf_processor_run() with a function that does nothing
 *     wait   the same with one that waits for a millisecond, as for somebody else's answer
 *
 * The latency of a cell is what a worker needs for a record, from the end of one to the end of the
 * next. Records that wait are topped up to --records before each cell, in which the processor is
 * stopped by its deadline.
 *
 *  (1) Records are counted when their completion was written. No attempt fails or is lost: that
 *      would be counted as an error.
 */
#include "lib_store.h"

#include <pthread.h>
#include <time.h>

#include <holdfast/batch.h>
#include <holdfast/records.h>

enum { WORKERS_MAX = 64, RECORDS_MAX = 64, CHUNK = 500, WAIT_NS = 1000000, PAYLOAD_BYTES = 250 };

/* The histogram of a thread that works on records. */
struct lane {
    int64_t last_ns;
    struct bench_histogram histogram;
};

struct bench {
    struct bench_args args;
    struct lane lanes[WORKERS_MAX];
    atomic_uint lanes_len;
    atomic_ullong errors;
    atomic_uint run; /* threads see by it that a new one has begun */
    int64_t begin_ns;
};

/* A table of records, all of the same form: number n is of account n % 100. */
struct stock {
    struct hf_records *records;
    struct hf_str table;
    uint64_t filled; /* numbers below have been put */
    uint64_t done;   /* so many of them were completed */
    atomic_ullong next;
};

/* ---- records --------------------------------------------------------------------------------- */

static struct hf_str account_of(struct hf_scope *s, uint64_t number)
{
    return hf_scope_format(s, "ACC%05u", (unsigned)(number % 100));
}

static struct hf_str time_of(struct hf_scope *s, uint64_t number)
{
    return hf_scope_format(s, "2026-02-17T12:00:00Z/%09llu", (unsigned long long)number);
}

static void fill_chunk(struct hf_scope *s, const struct bench *b, struct stock *stock, size_t len)
{
    static const char payload[PAYLOAD_BYTES] = {'p'};
    struct hf_write *writes = calloc(len, sizeof(*writes));
    struct hf_write_many_result result;

    if (!writes)
        bench_die("out of memory");
    for (size_t i = 0; i < len; i++) {
        uint64_t number = stock->filled + i;

        writes[i].table = stock->table;
        if (hf_records_item(s, stock->records,
                            HF_ITEM(s, HF_S("AccountId", account_of(s, number)),
                                    HF_S("RunTime", time_of(s, number)),
                                    HF_S("DocumentId", HF_STR("DOC67890")),
                                    HF_S("Payload", hf_str_of(payload, sizeof(payload)))),
                            &writes[i].put) != HF_OK)
            bench_die("hf_records_item: %s", hf_scope_error_text(s));
    }
    if (hf_write_many(s, b->args.place.db, writes, len, NULL, &result) != HF_OK)
        bench_die("hf_write_many: %s", hf_scope_error_text(s));
    stock->filled += len;
    free(writes);
}

/* Let `waiting` records wait. */
static void top_up(const struct bench *b, struct stock *stock, uint64_t waiting)
{
    struct hf_scope *s = hf_scope_new(&bench_env);

    if (!s)
        bench_die("out of memory");
    while (stock->filled - stock->done < waiting) {
        uint64_t missing = waiting - (stock->filled - stock->done);

        fill_chunk(s, b, stock, missing < CHUNK ? (size_t)missing : CHUNK);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

static struct stock open_stock(struct hf_scope *s, const struct bench *b, struct hf_str table)
{
    struct stock stock = {.table = table};

    if (hf_records_open(s, b->args.place.db, HF_OPTIONS(hf_records_options, .table = table),
                        &stock.records) != HF_OK)
        bench_die("hf_records_open: %s", hf_scope_error_text(s));
    return stock;
}

/* ---- measuring ------------------------------------------------------------------------------- */

static _Thread_local struct lane *my_lane;
static _Thread_local unsigned my_run;

/* A record was completed by this thread. */
static void note_end(struct bench *b)
{
    int64_t now = bench_now_ns();

    if (my_run != atomic_load(&b->run)) {
        unsigned number = atomic_fetch_add(&b->lanes_len, 1);

        assert(number < WORKERS_MAX);
        my_run = atomic_load(&b->run);
        my_lane = &b->lanes[number];
        my_lane->last_ns = b->begin_ns;
    }
    bench_histogram_add(&my_lane->histogram, now - my_lane->last_ns);
    my_lane->last_ns = now;
}

static void begin(struct bench *b)
{
    memset(b->lanes, 0, sizeof(b->lanes));
    atomic_store(&b->lanes_len, 0);
    atomic_store(&b->errors, 0);
    atomic_fetch_add(&b->run, 1);
    b->begin_ns = bench_now_ns();
}

/* What came out since begin(). */
static void end(struct bench *b, unsigned workers, double cpu_us, struct bench_tally *tally)
{
    int64_t last_ns = b->begin_ns + 1;

    *tally = (struct bench_tally){.threads = workers, .cpu_us = cpu_us};
    for (unsigned i = 0; i < atomic_load(&b->lanes_len); i++) {
        bench_histogram_merge(&tally->histogram, &b->lanes[i].histogram);
        last_ns = b->lanes[i].last_ns > last_ns ? b->lanes[i].last_ns : last_ns;
    }
    tally->ops = tally->items = tally->histogram.count;
    tally->errors = atomic_load(&b->errors);
    tally->seconds = (double)(last_ns - b->begin_ns) / 1e9;
}

/* ---- with the processor ---------------------------------------------------------------------- */

static enum hf_status work_empty(struct hf_scope *s, const struct hf_record_info *record,
                                 void *user)
{
    (void)s, (void)record, (void)user;
    return HF_OK;
}

static enum hf_status work_wait(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    (void)s, (void)record, (void)user;
    nanosleep(&(struct timespec){.tv_nsec = WAIT_NS}, NULL);
    return HF_OK;
}

static void ended(const struct hf_record_info *record, enum hf_record_outcome outcome,
                  const struct hf_error *error, void *user)
{
    struct bench *b = user;

    (void)error;
    if (outcome == HF_RECORD_DONE)
        note_end(b);
    else if (outcome != HF_RECORD_RELEASED && atomic_fetch_add(&b->errors, 1) == 0)
        fprintf(stderr, "bench: %.*s ended with outcome %d\n", (int)record->run_time.len,
                record->run_time.ptr, (int)outcome);
}

static void run_processor(struct bench *b, struct stock *stock, hf_record_fn *work,
                          unsigned workers, struct bench_tally *tally)
{
    struct hf_scope *s = hf_scope_new(&bench_env);
    struct hf_processor *processor;
    enum hf_status status;
    double cpu;

    if (!s || hf_processor_open(s, stock->records,
                                HF_OPTIONS(hf_processor_options, .workers = workers,
                                           .on_ended = ended, .user = b),
                                &processor) != HF_OK)
        bench_die("hf_processor_open: %s", s ? hf_scope_error_text(s) : "out of memory");
    begin(b);
    cpu = bench_cpu_us();
    hf_scope_timeout_ms(s, (uint32_t)(b->args.seconds * 1000));
    status = hf_processor_run(s, processor, work, NULL, NULL);
    if (status != HF_OK && status != HF_TIMEOUT)
        bench_die("hf_processor_run: %s", hf_scope_error_text(s));
    end(b, workers, bench_cpu_us() - cpu, tally);
    if (status == HF_OK)
        fprintf(stderr, "bench: all records were done before the time was over\n");
    stock->done += tally->ops;
    hf_processor_close(processor);
    hf_scope_free(s);
}

/* ---- without --------------------------------------------------------------------------------- */

struct bare {
    struct bench *b;
    struct stock *stock;
    int64_t until_ns;
};

static enum hf_status bare_writes(struct hf_scope *s, const struct bare *bare, uint64_t number)
{
    struct hf_item key =
        HF_ITEM(s, HF_S("AccountId", account_of(s, number)), HF_S("RunTime", time_of(s, number)));
    struct hf_update_item claim = {
        .table = bare->stock->table,
        .key = key,
        .update = HF_STR("SET #o = :me ADD #f :one"),
        .condition = HF_STR("#p = :zero AND attribute_not_exists(#o)"),
        .names = HF_ITEM(s, HF_S("#o", HF_STR("Owner")), HF_S("#f", HF_STR("Fence")),
                         HF_S("#p", HF_STR("Processed"))),
        .values = HF_ITEM(s, HF_S(":me", HF_STR("0123456789abcdef0123456789abcdef")),
                          HF_N(":zero", 0), HF_N(":one", 1)),
        .returns = HF_RETURN_ALL_NEW};
    struct hf_update_item complete = {.table = bare->stock->table,
                                      .key = key,
                                      .update = HF_STR("SET #p = :one REMOVE #s"),
                                      .condition = HF_STR("#p = :zero AND #o = :me"),
                                      .names = HF_ITEM(s, HF_S("#o", HF_STR("Owner")),
                                                       HF_S("#p", HF_STR("Processed")),
                                                       HF_S("#s", HF_STR("ProcessedShard"))),
                                      .values = claim.values};
    struct hf_update_item_result result;
    enum hf_status status = hf_update_item(s, bare->b->args.place.db, &claim, &result);

    return status != HF_OK ? status : hf_update_item(s, bare->b->args.place.db, &complete, &result);
}

static void *bare_main(void *user)
{
    struct bare *bare = user;
    struct hf_scope *s = hf_scope_new(&bench_env);

    if (!s)
        bench_die("out of memory");
    while (bench_now_ns() < bare->until_ns) {
        uint64_t number = atomic_fetch_add(&bare->stock->next, 1);

        if (number >= bare->stock->filled)
            bench_die("--records is too small");
        if (bare_writes(s, bare, number) != HF_OK)
            bench_die("bare: %s", hf_scope_error_text(s));
        hf_scope_reset(s);
        note_end(bare->b);
    }
    hf_scope_free(s);
    return NULL;
}

static void run_bare(struct bench *b, struct stock *stock, unsigned workers,
                     struct bench_tally *tally)
{
    struct bare bare = {.b = b, .stock = stock};
    pthread_t threads[WORKERS_MAX];
    double cpu;

    atomic_store(&stock->next, stock->done);
    begin(b);
    bare.until_ns = b->begin_ns + (int64_t)(b->args.seconds * 1e9);
    cpu = bench_cpu_us();
    for (unsigned i = 0; i < workers; i++)
        if (pthread_create(&threads[i], NULL, bare_main, &bare))
            bench_die("cannot start thread %u", i);
    for (unsigned i = 0; i < workers; i++)
        pthread_join(threads[i], NULL);
    end(b, workers, bench_cpu_us() - cpu, tally);
    stock->done += tally->ops;
}

/* ---- the run --------------------------------------------------------------------------------- */

static void measure(struct bench *b, struct bench_report *report, struct stock *stock,
                    hf_record_fn *work, const char *work_name, unsigned workers)
{
    static struct bench_tally tally; /* large, for its histogram */
    char name[BENCH_NAME_MAX];
    struct bench_record *record;

    snprintf(name, sizeof(name), "%s/%s/%u", b->args.place.label, work_name, workers);
    if (!bench_wanted(b->args.only, name))
        return;
    top_up(b, stock, b->args.number);
    bench_settle(1);
    if (work)
        run_processor(b, stock, work, workers, &tally);
    else
        run_bare(b, stock, workers, &tally);
    record = bench_next_record(report, RECORDS_MAX);
    record->is_cell = true;
    record->cell = bench_cell_of(name, &tally);
    bench_print(record);
    fflush(stdout);
}

static void measure_all(struct hf_scope *s, struct bench *b, struct bench_report *report)
{
    struct stock plain = open_stock(s, b, HF_STR("Bare"));
    struct stock stock = open_stock(s, b, HF_STR("Records"));

    for (size_t i = 0; i < b->args.counts_len; i++) {
        measure(b, report, &plain, NULL, "bare", b->args.counts[i]);
        measure(b, report, &stock, work_empty, "empty", b->args.counts[i]);
        measure(b, report, &stock, work_wait, "wait", b->args.counts[i]);
    }
    hf_records_close(stock.records);
    hf_records_close(plain.records);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.args = {.counts_name = "workers",
                                          .counts_text = "1,5,32",
                                          .counts_most = WORKERS_MAX,
                                          .number_name = "records",
                                          .number = 100000,
                                          .number_least = 1}};
    static struct bench_record records[RECORDS_MAX];
    struct bench_report report = {.records = records};
    struct hf_scope *s = hf_scope_new(&bench_env);

    bench_read_args(&bench.args, argc, argv);
    if (!s)
        bench_die("out of memory");
    bench_place_open(s, &bench.args.place);
    bench_print_head();
    measure_all(s, &bench, &report);
    bench_finish(&bench.args, &report);
    hf_db_close(bench.args.place.db);
    hf_scope_free(s);
    return 0;
}
