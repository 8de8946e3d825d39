/*
 * bench/events.c: what appending, replaying and following events costs, on one database.
 *
 *     bench_events [--url URL] [--sync none|full] [--seconds S] [--events N] [--only NAME]
 *                  [--json FILE]
 *
 * URL is "memory:" (the default), "embedded:PATH" or "http://HOST:PORT". Cells are named
 * database/what/how many:
 *
 *     append1/1, append1/32    hf_events_append() of one event of 250 bytes to one of 32 streams
 *                              that each thread has, by so many threads
 *     append10, append20       of so many events at once
 *     ids1/1, ids1/32          with an id that the caller chose, and an exact version expected
 *     new1/1, new1/32          to a stream that is not there yet
 *     hot1/32                  to one stream by all: they are in each other's way
 *     replay1, replay10        --events events that were appended alone, or by ten, read in the
 *                              order of all by one thread, in pages of 1000
 *     stream                   one stream of 20,000 events read whole, in pages of 1000
 *     lag/20                   twenty events a second are appended alone and handled by a
 *                              subscription; the latency is from before the append to the handler
 *     far/20                   the same, but the subscription has a store of its own, as it would
 *                              in another process
 *
 * and facts for each replay: the time from opening the reader to its first events; how much memory
 * store, reader and calls had at most; and how much the process grew.
 *
 *  (1) Options of the store are the defaults: there is a chain of hashes.
 *  (2) A replay that does not see each event once, in the order of positions, counts errors.
 *  (3) Each cell has a table of its own.
 */
#include "lib_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <holdfast/events.h>
#include <holdfast/subscribe.h>

enum {
    RECORDS_MAX = 64,
    PAYLOAD_BYTES = 250,
    STREAMS = 32, /* of each thread */
    BATCH_MAX = 20,
    FILLERS = 8,
    STREAM_EVENTS = 20000,
    PAGE = 1000,
    PER_SECOND = 20 /* of what is followed */
};

struct bench {
    struct bench_args args;
    struct hf_events *store;
    char table[48];
    unsigned tables;
    unsigned batch;         /* events of one append */
    atomic_ullong appended; /* by those who fill */
    uint64_t wanted;        /* from them */
    atomic_ullong names;    /* that nobody else has */
};

static const uint8_t payload[PAYLOAD_BYTES] = {'p'};

static void open_table(struct hf_scope *s, struct bench *b, struct hf_events **store)
{
    if (hf_events_open(s, b->args.place.db,
                       HF_OPTIONS(hf_events_options, .table = hf_str_from(b->table)),
                       store) != HF_OK)
        bench_die("hf_events_open: %s", hf_scope_error_text(s));
}

static void open_store(struct hf_scope *s, struct bench *b)
{
    hf_events_close(b->store);
    snprintf(b->table, sizeof(b->table), "events-%d-%u", (int)(bench_now_ns() / 1000 % 1000000000),
             b->tables++);
    open_table(s, b, &b->store);
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Of one thread: what it has, and had at most. */
struct meter {
    int64_t now, peak;
};

static void *metered_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    struct meter *m = user;

    m->now += (int64_t)new_size - (int64_t)old_size;
    m->peak = m->now > m->peak ? m->now : m->peak;
    if (new_size == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, new_size);
}

/* A line of /proc/self/status, in MiB. */
static double status_mib(const char *name)
{
    FILE *file = fopen("/proc/self/status", "r");
    unsigned long long kib = 0;
    char line[256];

    while (file && fgets(line, sizeof(line), file))
        if (strncmp(line, name, strlen(name)) == 0) {
            kib = strtoull(line + strlen(name), NULL, 10);
            break;
        }
    if (file)
        fclose(file);
    return (double)kib / 1024;
}

/* From here on the most that the process had is counted again. */
static void forget_peak(void)
{
    FILE *file = fopen("/proc/self/clear_refs", "w");

    if (file) {
        fputs("5", file);
        fclose(file);
    }
}

/* ---- appending ------------------------------------------------------------------------------- */

static enum hf_status append(struct bench_worker *w, struct hf_str stream, unsigned count)
{
    struct bench *b = w->user;
    struct hf_new_event events[BATCH_MAX];
    struct hf_append append = {.stream = {HF_STR("order"), stream},
                               .events = events,
                               .events_len = count};
    enum hf_status status;

    for (unsigned i = 0; i < count; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("placed"),
                                          .payload = hf_bytes_of(payload, sizeof(payload))};
    bench_begin(w);
    status = hf_events_append(w->s, b->store, &append, 1, NULL, NULL);
    bench_end(w);
    w->items += count;
    return status;
}

/* Threads are told apart by their scopes. */
static struct hf_str own_stream(struct bench_worker *w, unsigned number)
{
    return hf_scope_format(w->s, "%llx-%u", (unsigned long long)(uintptr_t)w->s, number);
}

static enum hf_status append_op(struct bench_worker *w)
{
    struct bench *b = w->user;

    return append(w, own_stream(w, (unsigned)bench_below(&w->dice, STREAMS)), b->batch);
}

static struct hf_str new_name(struct bench_worker *w)
{
    struct bench *b = w->user;

    return hf_scope_format(w->s, "new-%llu", (unsigned long long)atomic_fetch_add(&b->names, 1));
}

static enum hf_status new_op(struct bench_worker *w)
{
    return append(w, new_name(w), 1);
}

/* Who was too slow as often as a call allows for calls again, and all of that is its time. */
static enum hf_status hot_op(struct bench_worker *w)
{
    int64_t begin_ns = bench_now_ns();
    enum hf_status status;

    do {
        status = append(w, HF_STR("hot"), 1);
        w->items -= status != HF_OK;
    } while (status == HF_TX_CONFLICT);
    w->begin_ns = begin_ns;
    return status;
}

/* One stream for each thread, whose version it knows from the last append. */
static enum hf_status ids_op(struct bench_worker *w)
{
    static _Thread_local struct {
        unsigned table;
        uint64_t version;
    } known;
    struct bench *b = w->user;
    struct hf_new_event event = {.type = HF_STR("placed"),
                                 .id = new_name(w),
                                 .payload = hf_bytes_of(payload, sizeof(payload))};
    struct hf_append append = {.stream = {HF_STR("order"), own_stream(w, 0)},
                               .expect = HF_EXPECT_VERSION,
                               .events = &event,
                               .events_len = 1};
    struct hf_appended result;
    enum hf_status status;

    append.version = known.table == b->tables ? known.version : 0;
    bench_begin(w);
    status = hf_events_append(w->s, b->store, &append, 1, NULL, &result);
    bench_end(w);
    known.table = b->tables;
    known.version = status == HF_OK ? result.last : append.version;
    w->items++;
    return status;
}

/* ---- filling --------------------------------------------------------------------------------- */

static void *fill_main(void *user)
{
    struct bench *b = user;
    struct bench_worker w = {.s = hf_scope_new(&bench_env), .user = b};

    if (!w.s)
        bench_die("out of memory");
    w.dice.state = (uint64_t)(uintptr_t)w.s;
    for (;;) {
        uint64_t from = atomic_fetch_add(&b->appended, b->batch);
        uint64_t left = from < b->wanted ? b->wanted - from : 0;

        if (left == 0)
            break;
        if (append(&w, own_stream(&w, (unsigned)bench_below(&w.dice, STREAMS)),
                   left < b->batch ? (unsigned)left : b->batch) != HF_OK)
            bench_die("hf_events_append: %s", hf_scope_error_text(w.s));
        hf_scope_reset(w.s);
    }
    hf_scope_free(w.s);
    return NULL;
}

static void fill(struct bench *b, uint64_t events, unsigned batch)
{
    pthread_t threads[FILLERS];

    b->batch = batch;
    b->wanted = events;
    atomic_store(&b->appended, 0);
    for (int i = 0; i < FILLERS; i++)
        if (pthread_create(&threads[i], NULL, fill_main, b) != 0)
            bench_die("cannot start a thread");
    for (int i = 0; i < FILLERS; i++)
        pthread_join(threads[i], NULL);
}

/* ---- results --------------------------------------------------------------------------------- */

static bool wanted(const struct bench *b, const char *what)
{
    char name[BENCH_NAME_MAX];

    snprintf(name, sizeof(name), "%s/%s", b->args.place.label, what);
    return bench_wanted(b->args.only, name);
}

static void report_cell(struct bench *b, struct bench_report *report, const char *what,
                        const struct bench_tally *tally)
{
    struct bench_record *record = bench_next_record(report, RECORDS_MAX);
    char name[BENCH_NAME_MAX];

    snprintf(name, sizeof(name), "%s/%s", b->args.place.label, what);
    record->is_cell = true;
    record->cell = bench_cell_of(name, tally);
    bench_print(record);
    fflush(stdout);
}

static void report_fact(struct bench *b, struct bench_report *report, const char *what,
                        const char *which, const char *unit, double value)
{
    struct bench_record *record = bench_next_record(report, RECORDS_MAX);

    record->is_cell = false;
    snprintf(record->fact.name, sizeof(record->fact.name), "%s/%s/%s", b->args.place.label, what,
             which);
    snprintf(record->fact.unit, sizeof(record->fact.unit), "%s", unit);
    record->fact.value = value;
    bench_print(record);
    fflush(stdout);
}

/* ---- cells ----------------------------------------------------------------------------------- */

static void measure_append(struct hf_scope *s, struct bench *b, struct bench_report *report,
                           const char *what, bench_op_fn *op, unsigned batch, unsigned threads)
{
    static struct bench_tally tally; /* large, for its histogram */

    if (!wanted(b, what))
        return;
    memset(&tally, 0, sizeof(tally));
    open_store(s, b);
    b->batch = batch;
    bench_run(&tally, op, b, threads, b->args.seconds);
    report_cell(b, report, what, &tally);
    hf_scope_reset(s);
}

/* What one reader saw. */
struct replayed {
    uint64_t events, errors;
    int64_t begin_ns, first_ns, end_ns;
    double cpu_us;
};

static void replay(struct hf_scope *s, struct hf_events *store, struct replayed *r)
{
    char last[HF_POSITION_LEN] = {0};
    const struct hf_stored_event *events;
    struct hf_events_reader *reader;
    size_t len;

    r->cpu_us = bench_cpu_us();
    r->begin_ns = bench_now_ns();
    if (hf_events_reader_open(s, store, HF_OPTIONS(hf_events_all_options, .limit = PAGE),
                              &reader) != HF_OK)
        bench_die("hf_events_reader_open: %s", hf_scope_error_text(s));
    do {
        hf_scope_reset(s);
        if (hf_events_reader_next(s, reader, &events, &len) != HF_OK)
            bench_die("hf_events_reader_next: %s", hf_scope_error_text(s));
        r->first_ns = r->first_ns ? r->first_ns : bench_now_ns();
        for (size_t i = 0; i < len; i++) { /* (2) */
            r->errors += events[i].payload.len != PAYLOAD_BYTES ||
                         memcmp(last, events[i].position.ptr, sizeof(last)) >= 0;
            memcpy(last, events[i].position.ptr, sizeof(last));
        }
        r->events += len;
    } while (len > 0);
    r->end_ns = bench_now_ns();
    r->cpu_us = bench_cpu_us() - r->cpu_us;
    hf_events_reader_close(reader);
}

/* The store is opened again with memory that is counted, so that it remembers nothing. */
static void measure_replay(struct hf_scope *s, struct bench *b, struct bench_report *report,
                           const char *what, unsigned batch)
{
    static struct bench_tally tally;
    struct meter meter = {0};
    struct hf_env env = {.size = sizeof(env), .user = &meter, .alloc = metered_alloc};
    struct replayed r = {0};
    struct hf_scope *metered;
    struct hf_events *store;
    double before;

    if (!wanted(b, what))
        return;
    memset(&tally, 0, sizeof(tally));
    open_store(s, b);
    fill(b, b->args.number, batch);
    bench_settle(2);
    metered = hf_scope_new(&env);
    if (!metered)
        bench_die("out of memory");
    open_table(metered, b, &store);
    forget_peak();
    before = status_mib("VmRSS:");
    replay(metered, store, &r);
    tally.ops = tally.items = r.events;
    tally.errors = r.errors + (r.events != b->args.number);
    tally.seconds = (double)(r.end_ns - r.begin_ns) / 1e9;
    tally.cpu_us = r.cpu_us;
    tally.threads = 1;
    report_cell(b, report, what, &tally);
    report_fact(b, report, what, "first", "us", (double)(r.first_ns - r.begin_ns) / 1e3);
    report_fact(b, report, what, "memory", "MiB", (double)meter.peak / 1048576);
    report_fact(b, report, what, "process", "MiB", status_mib("VmHWM:"));
    report_fact(b, report, what, "process-grew", "MiB", status_mib("VmHWM:") - before);
    hf_events_close(store);
    hf_scope_free(metered);
    hf_scope_reset(s);
}

static void measure_stream(struct hf_scope *s, struct bench *b, struct bench_report *report)
{
    static struct bench_tally tally;
    struct bench_worker w = {.s = s, .user = b};
    struct hf_events_page page = {.next = 1};
    struct hf_event_stream_key stream = {HF_STR("order"), HF_STR("long")};
    uint64_t version = 0;
    int64_t begin_ns;

    if (!wanted(b, "stream"))
        return;
    memset(&tally, 0, sizeof(tally));
    open_store(s, b);
    for (int i = 0; i < STREAM_EVENTS; i += BATCH_MAX) {
        if (append(&w, stream.id, BATCH_MAX) != HF_OK)
            bench_die("hf_events_append: %s", hf_scope_error_text(s));
        hf_scope_reset(s);
    }
    tally.cpu_us = bench_cpu_us();
    begin_ns = bench_now_ns();
    while (page.next) {
        hf_scope_reset(s);
        if (hf_events_read(s, b->store, stream,
                           HF_OPTIONS(hf_events_read_options, .from = page.next, .limit = PAGE),
                           &page) != HF_OK)
            bench_die("hf_events_read: %s", hf_scope_error_text(s));
        for (size_t i = 0; i < page.events_len; i++)
            tally.errors += page.events[i].version != ++version;
        tally.items += page.events_len;
    }
    tally.cpu_us = bench_cpu_us() - tally.cpu_us;
    tally.seconds = (double)(bench_now_ns() - begin_ns) / 1e9;
    tally.errors += tally.items != STREAM_EVENTS;
    tally.ops = tally.items;
    tally.threads = 1;
    report_cell(b, report, "stream", &tally);
    hf_scope_reset(s);
}

/* ---- following ------------------------------------------------------------------------------- */

struct lag {
    pthread_mutex_t mutex; /* guards what follows */
    struct bench_histogram latency;
};

/* Payloads begin with when they were appended. */
static enum hf_status note_lag(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    int64_t now = bench_now_ns(), then;
    struct lag *lag = user;

    (void)s;
    memcpy(&then, event->payload.ptr, sizeof(then));
    pthread_mutex_lock(&lag->mutex);
    bench_histogram_add(&lag->latency, now - then);
    pthread_mutex_unlock(&lag->mutex);
    return HF_OK;
}

static uint64_t lag_count(struct lag *lag)
{
    uint64_t count;

    pthread_mutex_lock(&lag->mutex);
    count = lag->latency.count;
    pthread_mutex_unlock(&lag->mutex);
    return count;
}

static void append_timed(struct hf_scope *s, struct bench *b)
{
    uint8_t timed[PAYLOAD_BYTES] = {0};
    struct hf_new_event event = {.type = HF_STR("placed"),
                                 .payload = hf_bytes_of(timed, sizeof(timed))};
    struct hf_append append = {.stream = {HF_STR("order"), HF_STR("7")},
                               .events = &event,
                               .events_len = 1};
    int64_t now = bench_now_ns();

    memcpy(timed, &now, sizeof(now));
    if (hf_events_append(s, b->store, &append, 1, NULL, NULL) != HF_OK)
        bench_die("hf_events_append: %s", hf_scope_error_text(s));
    hf_scope_reset(s);
}

static void nap_ms(int64_t ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Append at a steady pace, and wait until all were handled; processor time of that. */
static double follow(struct hf_scope *s, struct bench *b, struct lag *lag, unsigned count)
{
    double cpu = bench_cpu_us();

    for (unsigned i = 0; i < count; i++) {
        append_timed(s, b);
        nap_ms(1000 / PER_SECOND);
    }
    for (int patience = 300; lag_count(lag) < count && patience > 0; patience--)
        nap_ms(100);
    return bench_cpu_us() - cpu;
}

static void measure_lag(struct hf_scope *s, struct bench *b, struct bench_report *report,
                        const char *what, bool far)
{
    static struct lag lag;
    static struct bench_tally tally;
    unsigned count = (unsigned)(b->args.seconds * 4 * PER_SECOND) + 1;
    struct hf_subscription *subscription;
    struct hf_events *other = NULL;
    double cpu;

    if (!wanted(b, what))
        return;
    memset(&lag, 0, sizeof(lag));
    memset(&tally, 0, sizeof(tally));
    pthread_mutex_init(&lag.mutex, NULL);
    open_store(s, b);
    if (far)
        open_table(s, b, &other);
    if (hf_subscribe(s, far ? other : b->store, HF_STR("bench"),
                     HF_OPTIONS(hf_subscribe_options, .each = note_lag, .user = &lag),
                     &subscription) != HF_OK ||
        hf_subscription_start(s, subscription) != HF_OK)
        bench_die("hf_subscribe: %s", hf_scope_error_text(s));
    nap_ms(1000);
    cpu = bench_cpu_us();
    nap_ms(2000);
    report_fact(b, report, what, "idle", "% CPU", (bench_cpu_us() - cpu) / 2e6 * 100);
    tally.cpu_us = follow(s, b, &lag, count);
    tally.ops = tally.items = lag_count(&lag);
    tally.errors = tally.ops != count;
    tally.threads = 1;
    tally.seconds = (double)count / PER_SECOND;
    hf_scope_timeout_ms(s, 30000);
    if (hf_subscription_stop(s, subscription) != HF_OK)
        bench_die("hf_subscription_stop: %s", hf_scope_error_text(s));
    hf_subscription_close(subscription);
    hf_events_close(other);
    hf_scope_reset(s);
    tally.histogram = lag.latency;
    report_cell(b, report, what, &tally);
    pthread_mutex_destroy(&lag.mutex);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void measure_all(struct hf_scope *s, struct bench *b, struct bench_report *report)
{
    static const struct {
        const char *what;
        bench_op_fn *op;
        unsigned batch, threads;
    } appends[] = {
        {"append1/1", append_op, 1, 1},   {"append1/32", append_op, 1, 32},
        {"append10/1", append_op, 10, 1}, {"append10/32", append_op, 10, 32},
        {"append20/1", append_op, 20, 1}, {"append20/32", append_op, 20, 32},
        {"ids1/1", ids_op, 1, 1},         {"ids1/32", ids_op, 1, 32},
        {"new1/1", new_op, 1, 1},         {"new1/32", new_op, 1, 32},
        {"hot1/32", hot_op, 1, 32},
    };

    for (size_t i = 0; i < sizeof(appends) / sizeof(appends[0]); i++)
        measure_append(s, b, report, appends[i].what, appends[i].op, appends[i].batch,
                       appends[i].threads);
    measure_replay(s, b, report, "replay1", 1);
    measure_replay(s, b, report, "replay10", 10);
    measure_stream(s, b, report);
    measure_lag(s, b, report, "lag/20", false);
    measure_lag(s, b, report, "far/20", true);
}

int main(int argc, char **argv)
{
    static struct bench bench = {
        .args = {.number_name = "events", .number = 100000, .number_least = 1}};
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
    hf_events_close(bench.store);
    hf_db_close(bench.args.place.db);
    hf_scope_free(s);
    return 0;
}
