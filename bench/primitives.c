/*
 * bench/primitives.c: what locks, counters, key-values, do-once and limits cost on one database.
 *
 *     bench_primitives [--url URL] [--sync none|full] [--threads LIST] [--seconds S] [--only NAME]
 *                      [--json FILE]
 *
 * URL is "memory:" (the default), "embedded:PATH" or "http://HOST:PORT". Cells are named
 * database/call/threads, and a call is:
 *
 *     lock          hf_lock_try() and hf_lock_release()
 *     counter-hot   hf_counter_add(), all threads on one counter
 *     counter       the same, each on counters of its own
 *     kv-set        hf_kv_set(): look, then write on condition of what was seen
 *     kv-set-blind  hf_kv_set() with `blind`: one write, as the seed's
 *     kv-get        hf_kv_get()
 *     once-new      hf_once_do() of a key that nobody has done: a write to begin, one to complete
 *     once-done     hf_once_do() of a key that was done
 *     limit         hf_limit_take(), allowed
 *
 * bench/primitives runs it on every database beside the seed's ways, and judges.
 *
 *  (1) Threads never wait for each other by what they ask for, except in counter-hot: each has
 *      KEYS names of its own, and nobody else's.
 *  (2) No call fails: limits are never reached, locks never held, do-once keys never met twice.
 */
#include "lib_store.h"

#include <unistd.h>

#include <holdfast/counter.h>
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>

enum {
    KEYS = 32, /* of a thread: with 32 threads 1024 */
    THREADS_MAX = 256,
    VALUE_BYTES = 250,
    RECORDS_MAX = 128,
    WINDOW_MS = 3600000
};

struct bench {
    struct bench_args args;
    struct hf_lock_table *locks;
    struct hf_counters *counters;
    struct hf_kv *kv;
    struct hf_once_table *onces;
    struct hf_limit_table *limits;
    char value[VALUE_BYTES];
    struct hf_str user; /* of do-once: another in every process, so that new keys are new */
    unsigned runs;      /* so far: their threads have the same numbers */
    atomic_uint callers;
};

/* ---- names ----------------------------------------------------------------------------------- */

static _Thread_local unsigned caller;    /* the number of this thread, from 1 */
static _Thread_local unsigned new_names; /* that it has used up */

static unsigned caller_of(struct bench *b)
{
    if (!caller)
        caller = atomic_fetch_add(&b->callers, 1) + 1;
    return caller;
}

/* One of the thread's own names. */
static struct hf_str any_name(struct bench_worker *w)
{
    return hf_scope_format(w->s, "name-%u-%u", (caller_of(w->user) - 1) % THREADS_MAX,
                           (unsigned)bench_below(&w->dice, KEYS));
}

/* ---- calls ----------------------------------------------------------------------------------- */

static struct hf_value value_of(struct hf_scope *s, const struct bench *b)
{
    return hf_item_get(HF_ITEM(s, HF_S("v", hf_str_of(b->value, VALUE_BYTES))), HF_STR("v"));
}

static enum hf_status op_lock(struct bench_worker *w)
{
    struct bench *b = w->user;
    struct hf_str name = any_name(w);
    struct hf_lock *lock;
    enum hf_status status;

    bench_begin(w);
    status = hf_lock_try(w->s, b->locks, name, NULL, &lock);
    if (status == HF_OK)
        status = hf_lock_release(w->s, lock);
    bench_end(w);
    return status;
}

static enum hf_status op_counter_hot(struct bench_worker *w)
{
    struct bench *b = w->user;
    enum hf_status status;
    int64_t value;

    bench_begin(w);
    status = hf_counter_add(w->s, b->counters, hf_counter_named(HF_STR("hot")), 1, NULL, &value);
    bench_end(w);
    return status;
}

static enum hf_status op_counter(struct bench_worker *w)
{
    struct bench *b = w->user;
    struct hf_str name = any_name(w);
    enum hf_status status;
    int64_t value;

    bench_begin(w);
    status = hf_counter_add(w->s, b->counters, hf_counter_named(name), 1, NULL, &value);
    bench_end(w);
    return status;
}

static enum hf_status kv_set(struct bench_worker *w, const struct hf_kv_set_options *options)
{
    struct bench *b = w->user;
    struct hf_str name = any_name(w);
    struct hf_value value = value_of(w->s, b);
    enum hf_status status;

    bench_begin(w);
    status = hf_kv_set(w->s, b->kv, hf_kv_id(name), value, options, NULL);
    bench_end(w);
    return status;
}

static enum hf_status op_kv_set(struct bench_worker *w)
{
    return kv_set(w, NULL);
}

static enum hf_status op_kv_set_blind(struct bench_worker *w)
{
    return kv_set(w, HF_OPTIONS(hf_kv_set_options, .blind = true));
}

static enum hf_status op_kv_get(struct bench_worker *w)
{
    struct bench *b = w->user;
    struct hf_str name = any_name(w);
    struct hf_kv_entry entry;
    enum hf_status status;

    bench_begin(w);
    status = hf_kv_get(w->s, b->kv, hf_kv_id(name), NULL, &entry);
    bench_end(w);
    if (status == HF_OK && hf_value_str(entry.value).len != VALUE_BYTES)
        bench_die("kv-get: %.*s has not the value that was set", (int)name.len, name.ptr);
    return status;
}

static enum hf_status do_nothing(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                 void *user)
{
    (void)s, (void)once, (void)user, (void)result;
    return HF_OK;
}

static enum hf_status once(struct bench_worker *w, struct hf_str key, bool is_new)
{
    struct bench *b = w->user;
    struct hf_once_record record;
    enum hf_status status;

    bench_begin(w);
    status = hf_once_do(w->s, b->onces, b->user, key, NULL, do_nothing, NULL, &record);
    bench_end(w);
    if (status == HF_OK && record.did != is_new)
        bench_die("%.*s was %s", (int)key.len, key.ptr,
                  is_new ? "done before" : "to be done before, and was not");
    return status;
}

static enum hf_status op_once_new(struct bench_worker *w)
{
    struct bench *b = w->user;
    unsigned number = caller_of(b);

    return once(w, hf_scope_format(w->s, "new-%u-%u-%u", b->runs, number, new_names++), true);
}

static enum hf_status op_once_done(struct bench_worker *w)
{
    return once(w, any_name(w), false);
}

static enum hf_status op_limit(struct bench_worker *w)
{
    static const struct hf_limit_rule rule = {.limit = HF_LIMIT_MOST, .window_ms = WINDOW_MS};
    struct bench *b = w->user;
    struct hf_str name = any_name(w);
    struct hf_limit_verdict verdict;
    enum hf_status status;

    bench_begin(w);
    status = hf_limit_take(w->s, b->limits, name, &rule, NULL, &verdict);
    bench_end(w);
    return status;
}

/* What has to be there first: all names of `count` threads. */
static void fill_kv(struct hf_scope *s, struct bench *b, unsigned count)
{
    struct hf_kv_pair *pairs = calloc((size_t)count * KEYS, sizeof(*pairs));
    struct hf_write_many_result result;

    if (!pairs)
        bench_die("out of memory");
    for (unsigned i = 0; i < count * KEYS; i++)
        pairs[i] = (struct hf_kv_pair){.key = hf_kv_id(
                                           hf_scope_format(s, "name-%u-%u", i / KEYS, i % KEYS)),
                                       .value = value_of(s, b)};
    if (hf_kv_set_many(s, b->kv, pairs, (size_t)count * KEYS, NULL, &result) != HF_OK)
        bench_die("hf_kv_set_many: %s", hf_scope_error_text(s));
    free(pairs);
}

static void fill_once(struct hf_scope *s, struct bench *b, unsigned count)
{
    for (unsigned i = 0; i < count * KEYS; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        if (hf_once_mark_done(s, b->onces, b->user,
                              hf_scope_format(s, "name-%u-%u", i / KEYS, i % KEYS), NULL,
                              (struct hf_item){.ptr = NULL}, NULL) != HF_OK)
            bench_die("hf_once_mark_done: %s", hf_scope_error_text(s));
        hf_scope_rewind(s, mark);
    }
}

static const struct call {
    const char *name;
    bench_op_fn *op;
    void (*fill)(struct hf_scope *s, struct bench *b, unsigned count);
} calls[] = {
    {"lock", op_lock, NULL},
    {"counter-hot", op_counter_hot, NULL},
    {"counter", op_counter, NULL},
    {"kv-set", op_kv_set, fill_kv},
    {"kv-set-blind", op_kv_set_blind, fill_kv},
    {"kv-get", op_kv_get, fill_kv},
    {"once-new", op_once_new, NULL},
    {"once-done", op_once_done, fill_once},
    {"limit", op_limit, NULL},
};

/* ---- the run --------------------------------------------------------------------------------- */

static void must(struct hf_scope *s, enum hf_status status, const char *what)
{
    if (status != HF_OK)
        bench_die("%s: %s", what, hf_scope_error_text(s));
}

static void open_all(struct hf_scope *s, struct bench *b)
{
    struct hf_db *db;
    unsigned char noise[4];

    bench_place_open(s, &b->args.place);
    db = b->args.place.db;
    memset(b->value, 'v', sizeof(b->value));
    must(s, hf_lock_table_open(s, db, NULL, &b->locks), "locks");
    must(s,
         hf_counters_open(s, db, HF_OPTIONS(hf_counters_options, .table = HF_STR("counters")),
                          &b->counters),
         "counters");
    must(s, hf_kv_open(s, db, NULL, &b->kv), "key-values");
    must(s, hf_once_table_open(s, db, NULL, &b->onces), "do-once");
    must(s, hf_limit_table_open(s, db, NULL, &b->limits), "limits");
    memcpy(noise, &(uint32_t){(uint32_t)bench_now_ns()}, sizeof(noise));
    b->user = hf_scope_format(s, "user-%ld-%02x%02x%02x%02x", (long)getpid(), noise[0], noise[1],
                              noise[2], noise[3]);
    must(s, hf_scope_built(s), "names");
}

static void close_all(struct bench *b)
{
    hf_limit_table_close(b->limits);
    hf_once_table_close(b->onces);
    hf_kv_close(b->kv);
    hf_counters_close(b->counters);
    hf_lock_table_close(b->locks);
    hf_db_close(b->args.place.db);
}

static void measure(struct bench *b, struct bench_report *report, const struct call *call,
                    unsigned threads, const char *name)
{
    static struct bench_tally tally; /* large, for its histogram */
    struct hf_scope *s = hf_scope_new(&bench_env);
    struct bench_record *record;

    if (!s)
        bench_die("out of memory");
    if (call->fill)
        call->fill(s, b, threads);
    hf_scope_free(s);
    tally = (struct bench_tally){.threads = 0};
    atomic_store(&b->callers, 0);
    b->runs++;
    bench_run(&tally, call->op, b, threads, b->args.seconds);
    record = bench_next_record(report, RECORDS_MAX);
    record->is_cell = true;
    record->cell = bench_cell_of(name, &tally);
    bench_print(record);
    fflush(stdout);
}

static void measure_all(struct bench *b, struct bench_report *report)
{
    char name[BENCH_NAME_MAX];

    for (size_t i = 0; i < ARRAY_LEN(calls); i++)
        for (size_t j = 0; j < b->args.counts_len; j++) {
            snprintf(name, sizeof(name), "%s/%s/%u", b->args.place.label, calls[i].name,
                     b->args.counts[j]);
            if (bench_wanted(b->args.only, name))
                measure(b, report, &calls[i], b->args.counts[j], name);
        }
}

int main(int argc, char **argv)
{
    static struct bench bench = {
        .args = {.counts_name = "threads", .counts_text = "1,8,32", .counts_most = THREADS_MAX}};
    static struct bench_record records[RECORDS_MAX];
    struct bench_report report = {.records = records};
    struct hf_scope *s = hf_scope_new(&bench_env);

    bench_read_args(&bench.args, argc, argv);
    if (!s)
        bench_die("out of memory");
    open_all(s, &bench);
    bench_print_head();
    measure_all(&bench, &report);
    bench_finish(&bench.args, &report);
    close_all(&bench);
    hf_scope_free(s);
    return 0;
}
