/*
 * bench/outbox.c: what an event costs from emit to handler, on one database.
 *
 *     bench_outbox [--url URL] [--sync none|full] [--seconds S] [--events N] [--only NAME]
 *                  [--json FILE]
 *
 * URL is "memory:" (the default), "embedded:PATH" or "http://HOST:PORT". Cells are named
 * database/what/how many:
 *
 *     emit/1, emit/32    hf_outbox_emit() of one event, by so many threads
 *     emit25/4           of 25 events at once, by four threads
 *     drain/1, drain/4   events that wait are delivered by so many relays, in order; in `ends` a
 *                        tenth of them at the beginning and at the end of the backlog are compared
 *     compete/1, /4      the same by relays that claim each event
 *     flow/32            32 threads emit while a relay delivers: events a second that were both
 *     paced/20           twenty events a second; the latency is from before the emit to the
 *                        handler, with the commit in it; in `after`, from its return, or 0
 *
 * and facts: processor time of an idle relay; units and refused writes for each event.
 *
 *  (1) An event counts when its handler was called, and each is handled once: anything else is
 *      counted as an error, as nothing dies here.
 *  (2) Options of outbox and relay are the defaults.
 */
#include "lib_store.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include <holdfast/outbox.h>
#include <holdfast/relay.h>

enum { RECORDS_MAX = 64, PAYLOAD_BYTES = 250, KEYS = 1000, CHUNK = 25, RELAYS_MAX = 4 };

struct bench {
    struct bench_args args;
    struct hf_outbox *outbox;
    char table[32];
    unsigned tables; /* each measurement has a table of its own */
    atomic_ullong handled;
    atomic_ullong wanted; /* the handler wakes who waits for so many */
    atomic_ullong tenth;  /* of a backlog */
    int64_t first_ns, tenth_ns, last_tenth_ns, last_ns;
    bool timed;            /* payloads begin with when they were emitted, and their number */
    int64_t *handled_ns;   /* by number */
    int64_t number;        /* of the one that is being emitted */
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t reached;
    struct bench_histogram latency;
};

/* ---- events ---------------------------------------------------------------------------------- */

static struct hf_event event_of(struct hf_scope *s, uint64_t number, const uint8_t *payload)
{
    return (struct hf_event){.type = HF_STR("order.placed"),
                             .key = hf_scope_format(s, "order-%u", (unsigned)(number % KEYS)),
                             .payload = hf_bytes_of(payload, PAYLOAD_BYTES)};
}

static void open_outbox(struct hf_scope *s, struct bench *b)
{
    hf_outbox_close(b->outbox);
    snprintf(b->table, sizeof(b->table), "outbox-%d-%u", (int)(bench_now_ns() / 1000 % 1000000000),
             b->tables++);
    if (hf_outbox_open(s, b->args.place.db,
                       HF_OPTIONS(hf_outbox_options, .table = hf_str_from(b->table)),
                       &b->outbox) != HF_OK)
        bench_die("hf_outbox_open: %s", hf_scope_error_text(s));
    atomic_store(&b->handled, 0);
    b->first_ns = b->last_ns = b->tenth_ns = b->last_tenth_ns = 0;
    memset(&b->latency, 0, sizeof(b->latency));
}

static void fill(struct bench *b, uint64_t count)
{
    static const uint8_t payload[PAYLOAD_BYTES] = {'p'};
    struct hf_scope *s = hf_scope_new(&bench_env);
    struct hf_event events[CHUNK];

    if (!s)
        bench_die("out of memory");
    for (uint64_t done = 0; done < count;) {
        size_t len = count - done < CHUNK ? (size_t)(count - done) : CHUNK;

        for (size_t i = 0; i < len; i++)
            events[i] = event_of(s, done + i, payload);
        if (hf_outbox_emit(s, b->outbox, events, len,
                           HF_OPTIONS(hf_emit_options, .each_alone = true)) != HF_OK)
            bench_die("hf_outbox_emit: %s", hf_scope_error_text(s));
        done += len;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

/* ---- handling -------------------------------------------------------------------------------- */

static void note(struct bench *b, const struct hf_outbox_event *event)
{
    int64_t now = bench_now_ns(), then, at;
    uint64_t number = atomic_fetch_add(&b->handled, 1) + 1;

    if (b->timed) {
        memcpy(&then, event->event.payload.ptr, sizeof(then));
        memcpy(&at, (const char *)event->event.payload.ptr + sizeof(then), sizeof(at));
        pthread_mutex_lock(&b->mutex);
        bench_histogram_add(&b->latency, now - then);
        b->handled_ns[at] = now;
        pthread_mutex_unlock(&b->mutex);
    }
    if (number == 1)
        b->first_ns = now;
    if (number == atomic_load(&b->tenth))
        b->tenth_ns = now;
    if (number == atomic_load(&b->wanted) - atomic_load(&b->tenth))
        b->last_tenth_ns = now;
    if (number == atomic_load(&b->wanted)) {
        pthread_mutex_lock(&b->mutex);
        b->last_ns = now;
        pthread_cond_broadcast(&b->reached);
        pthread_mutex_unlock(&b->mutex);
    }
}

static enum hf_status handle(struct hf_scope *s, void *sink, struct hf_delivery *deliveries,
                             size_t len)
{
    (void)s;
    for (size_t i = 0; i < len; i++) {
        note(sink, deliveries[i].event);
        deliveries[i].status = HF_OK;
    }
    return HF_OK;
}

static bool wait_handled(struct bench *b, double seconds)
{
    struct timespec until;
    int failed = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)seconds + 1;
    pthread_mutex_lock(&b->mutex);
    while (!b->last_ns && !failed)
        failed = pthread_cond_timedwait(&b->reached, &b->mutex, &until);
    pthread_mutex_unlock(&b->mutex);
    return !failed;
}

struct fleet {
    struct hf_scope *s;
    struct hf_sink *sink;
    struct hf_relay *relays[RELAYS_MAX];
    unsigned len;
};

static void fleet_start(struct bench *b, struct fleet *f, unsigned len, bool competing)
{
    f->s = hf_scope_new(&bench_env);
    f->len = len;
    if (!f->s || hf_sink_new(f->s, HF_OPTIONS(hf_sink_ops, .name = "bench", .send = handle), b,
                             &f->sink) != HF_OK)
        bench_die("hf_sink_new failed");
    for (unsigned i = 0; i < len; i++)
        if (hf_relay_open(f->s, b->outbox, f->sink,
                          HF_OPTIONS(hf_relay_options, .competing = competing),
                          &f->relays[i]) != HF_OK ||
            hf_relay_start(f->s, f->relays[i]) != HF_OK)
            bench_die("hf_relay: %s", hf_scope_error_text(f->s));
}

static void fleet_stop(struct fleet *f, struct hf_relay_metrics *sum)
{
    *sum = (struct hf_relay_metrics){0};
    for (unsigned i = 0; i < f->len; i++) {
        struct hf_relay_metrics m;

        hf_scope_timeout_ms(f->s, 30000);
        if (hf_relay_stop(f->s, f->relays[i]) != HF_OK)
            bench_die("hf_relay_stop: %s", hf_scope_error_text(f->s));
        hf_relay_metrics(f->relays[i], &m);
        sum->delivered += m.delivered;
        sum->refused += m.refused;
        sum->writes += m.writes;
        sum->reads += m.reads;
        hf_relay_close(f->relays[i]);
    }
    hf_sink_close(f->sink);
    hf_scope_free(f->s);
}

/* ---- emitting -------------------------------------------------------------------------------- */

static enum hf_status emit_op(struct bench_worker *w)
{
    struct bench *b = w->user;
    uint8_t payload[PAYLOAD_BYTES] = {'p'};
    struct hf_event event = event_of(w->s, bench_roll(&w->dice), payload);
    enum hf_status status;

    bench_begin(w);
    if (b->timed) {
        memcpy(payload, &w->begin_ns, sizeof(w->begin_ns));
        memcpy(payload + sizeof(w->begin_ns), &b->number, sizeof(b->number));
    }
    status = hf_outbox_emit(w->s, b->outbox, &event, 1, NULL);
    bench_end(w);
    w->items++;
    return status;
}

static enum hf_status emit_many_op(struct bench_worker *w)
{
    struct bench *b = w->user;
    uint8_t payload[PAYLOAD_BYTES] = {'p'};
    struct hf_event events[CHUNK];
    enum hf_status status;

    for (size_t i = 0; i < CHUNK; i++)
        events[i] = event_of(w->s, bench_roll(&w->dice), payload);
    bench_begin(w);
    status = hf_outbox_emit(w->s, b->outbox, events, CHUNK, NULL);
    bench_end(w);
    w->items += CHUNK;
    return status;
}

/* ---- cells ----------------------------------------------------------------------------------- */

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
                        const char *unit, double value)
{
    struct bench_record *record = bench_next_record(report, RECORDS_MAX);

    record->is_cell = false;
    snprintf(record->fact.name, sizeof(record->fact.name), "%s/%s", b->args.place.label, what);
    snprintf(record->fact.unit, sizeof(record->fact.unit), "%s", unit);
    record->fact.value = value;
    bench_print(record);
    fflush(stdout);
}

static bool wanted(const struct bench *b, const char *what)
{
    char name[BENCH_NAME_MAX];

    snprintf(name, sizeof(name), "%s/%s", b->args.place.label, what);
    return bench_wanted(b->args.only, name);
}

static void measure_emit(struct hf_scope *s, struct bench *b, struct bench_report *report,
                         const char *what, bench_op_fn *op, unsigned threads)
{
    static struct bench_tally tally; /* large, for its histogram */

    if (!wanted(b, what))
        return;
    memset(&tally, 0, sizeof(tally));
    open_outbox(s, b);
    bench_run(&tally, op, b, threads, b->args.seconds);
    report_cell(b, report, what, &tally);
}

static void measure_drain(struct hf_scope *s, struct bench *b, struct bench_report *report,
                          const char *what, unsigned relays, bool competing)
{
    static struct bench_tally tally;
    struct hf_relay_metrics sum;
    struct fleet fleet;
    char name[BENCH_NAME_MAX];
    double cpu;
    int64_t begin_ns;

    if (!wanted(b, what))
        return;
    memset(&tally, 0, sizeof(tally));
    open_outbox(s, b);
    atomic_store(&b->wanted, b->args.number);
    atomic_store(&b->tenth, b->args.number / 10);
    fill(b, b->args.number);
    bench_settle(1);
    cpu = bench_cpu_us();
    begin_ns = bench_now_ns();
    fleet_start(b, &fleet, relays, competing);
    if (!wait_handled(b, 120))
        bench_die("%s: only %llu of %llu events were delivered", what,
                  (unsigned long long)atomic_load(&b->handled), (unsigned long long)b->args.number);
    tally.cpu_us = bench_cpu_us() - cpu;
    tally.ops = tally.items = b->args.number;
    tally.seconds = (double)(b->last_ns - begin_ns) / 1e9;
    tally.threads = relays;
    fleet_stop(&fleet, &sum);
    tally.errors = atomic_load(&b->handled) - b->args.number; /* (1) */
    report_cell(b, report, what, &tally);
    snprintf(name, sizeof(name), "%s/ends", what);
    report_fact(b, report, name, "of the first",
                (double)(b->tenth_ns - b->first_ns) / (double)(b->last_ns - b->last_tenth_ns));
    snprintf(name, sizeof(name), "%s/refused", what);
    report_fact(b, report, name, "writes", (double)sum.refused);
    snprintf(name, sizeof(name), "%s/requests", what);
    report_fact(b, report, name, "per event",
                (double)(sum.writes + sum.reads) / (double)b->args.number);
}

static void measure_flow(struct hf_scope *s, struct bench *b, struct bench_report *report)
{
    static struct bench_tally tally;
    struct hf_relay_metrics sum;
    struct fleet fleet;
    int64_t begin_ns;

    if (!wanted(b, "flow/32"))
        return;
    memset(&tally, 0, sizeof(tally));
    open_outbox(s, b);
    atomic_store(&b->wanted, UINT64_MAX);
    atomic_store(&b->tenth, UINT64_MAX / 2);
    fleet_start(b, &fleet, 1, false);
    begin_ns = bench_now_ns();
    bench_run(&tally, emit_op, b, 32, b->args.seconds);
    /* The warm-up was emitted as well: wait until what is handled does not grow any more. */
    for (uint64_t last = 0, now; (now = atomic_load(&b->handled)) != last || now < tally.ops;) {
        last = now;
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    }
    tally.seconds = (double)(bench_now_ns() - begin_ns) / 1e9 - 0.1;
    tally.items = tally.ops = atomic_load(&b->handled);
    fleet_stop(&fleet, &sum);
    report_cell(b, report, "flow/32", &tally);
    report_fact(b, report, "flow/32/requests", "per event",
                (double)(sum.writes + sum.reads) / (double)tally.ops);
}

static void measure_paced(struct hf_scope *s, struct bench *b, struct bench_report *report)
{
    static struct bench_tally tally;
    struct hf_relay_metrics sum;
    struct bench_worker w = {.s = s, .user = b};
    unsigned count = (unsigned)(b->args.seconds * 4 * 20);
    static struct bench_histogram after; /* large */
    int64_t *ended_ns;
    struct fleet fleet;
    double cpu;

    if (!wanted(b, "paced/20"))
        return;
    memset(&after, 0, sizeof(after));
    ended_ns = calloc(count, sizeof(*ended_ns));
    b->handled_ns = calloc(count, sizeof(*b->handled_ns));
    if (!ended_ns || !b->handled_ns)
        bench_die("out of memory");
    memset(&tally, 0, sizeof(tally));
    open_outbox(s, b);
    b->timed = true;
    atomic_store(&b->wanted, count);
    atomic_store(&b->tenth, count);
    fleet_start(b, &fleet, 1, false);
    nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
    cpu = bench_cpu_us();
    nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    report_fact(b, report, "idle", "% CPU", (bench_cpu_us() - cpu) / 2e6 * 100);
    cpu = bench_cpu_us();
    for (unsigned i = 0; i < count; i++) {
        b->number = i;
        if (emit_op(&w) != HF_OK)
            bench_die("hf_outbox_emit: %s", hf_scope_error_text(s));
        ended_ns[i] = bench_now_ns();
        hf_scope_reset(s);
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    }
    if (!wait_handled(b, 30))
        bench_die("paced: not all events were delivered");
    tally.ops = tally.items = count;
    tally.threads = 1;
    tally.seconds = (double)count / 20;
    tally.cpu_us = bench_cpu_us() - cpu;
    tally.histogram = b->latency;
    b->timed = false;
    fleet_stop(&fleet, &sum);
    report_cell(b, report, "paced/20", &tally);
    for (unsigned i = 0; i < count; i++)
        bench_histogram_add(&after,
                            b->handled_ns[i] > ended_ns[i] ? b->handled_ns[i] - ended_ns[i] : 0);
    report_fact(b, report, "paced/20/after/p50", "us", bench_histogram_us(&after, 0.5));
    report_fact(b, report, "paced/20/after/p99", "us", bench_histogram_us(&after, 0.99));
    free(ended_ns);
    free(b->handled_ns);
}

static void measure_all(struct hf_scope *s, struct bench *b, struct bench_report *report)
{
    measure_emit(s, b, report, "emit/1", emit_op, 1);
    measure_emit(s, b, report, "emit/32", emit_op, 32);
    measure_emit(s, b, report, "emit25/4", emit_many_op, 4);
    measure_drain(s, b, report, "drain/1", 1, false);
    measure_drain(s, b, report, "drain/4", 4, false);
    measure_drain(s, b, report, "compete/1", 1, true);
    measure_drain(s, b, report, "compete/4", 4, true);
    measure_flow(s, b, report);
    measure_paced(s, b, report);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.args = {.number_name = "events",
                                          .number = 20000,
                                          .number_least = 100},
                                 .mutex = PTHREAD_MUTEX_INITIALIZER,
                                 .reached = PTHREAD_COND_INITIALIZER};
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
    hf_outbox_close(bench.outbox);
    hf_db_close(bench.args.place.db);
    hf_scope_free(s);
    return 0;
}
