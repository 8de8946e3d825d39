/*
 * server/metrics.c: counting, and the text that Prometheus reads.
 * Histograms and the format are db/prometheus.c's.
 */
#include "server/metrics.h"

#include <holdfast/engine.h>
#include <unistd.h>

#include "db/prometheus.h"
#include "ops/fields.h"
#include "server/private.h"

enum { CACHE_LINE = 64 };

typedef _Atomic uint64_t counter;

struct times {
    counter bucket[TIME_BUCKETS];
    counter sum_ns;
};

struct metrics {
    _Alignas(CACHE_LINE) counter accepted;
    counter turned_away;
    counter timed_out;
    counter busy;
    counter evicted;
    counter displaced;
    counter refused;
    counter bad;
    counter lengthy;
    counter bytes_in;
    counter bytes_out;
    counter commits;
    counter committed;
    struct times commit;
    struct {
        counter ok;
        counter client_errors;
        counter server_errors;
        struct times times;
    } ops[HF_OP_COUNT];
};

struct metrics *hf__metrics_new(struct hf_scope *s, size_t len)
{
    uint8_t *memory = hf__scope_array(s, len * sizeof(struct metrics) + CACHE_LINE, 1);

    if (!memory)
        return NULL;
    memory += (CACHE_LINE - (uintptr_t)memory % CACHE_LINE) % CACHE_LINE;
    return (struct metrics *)(void *)memory;
}

struct metrics *hf__metrics_thread(struct metrics *metrics, size_t number)
{
    return metrics + number;
}

/* Only its own thread adds to a counter, so this need not be one indivisible step. */
static void counter_add(counter *to, uint64_t amount)
{
    uint64_t value = atomic_load_explicit(to, memory_order_relaxed);

    atomic_store_explicit(to, value + amount, memory_order_relaxed);
}

static uint64_t counter_get(const counter *from)
{
    return atomic_load_explicit(from, memory_order_relaxed);
}

static void add_time(struct times *times, uint64_t ns)
{
    counter_add(&times->bucket[time_bucket(ns)], 1);
    counter_add(&times->sum_ns, ns);
}

void hf__metrics_call(struct metrics *metrics, enum hf_op op, int status, uint64_t ns)
{
    assert((unsigned)op < HF_OP_COUNT && status >= 200 && status < 600);
    counter_add(status < 400   ? &metrics->ops[op].ok
                : status < 500 ? &metrics->ops[op].client_errors
                               : &metrics->ops[op].server_errors,
                1);
    add_time(&metrics->ops[op].times, ns);
}

void hf__metrics_refused(struct metrics *metrics)
{
    counter_add(&metrics->refused, 1);
}

void hf__metrics_bad(struct metrics *metrics)
{
    counter_add(&metrics->bad, 1);
}

void hf__metrics_long(struct metrics *metrics)
{
    counter_add(&metrics->lengthy, 1);
}

void hf__metrics_commit(struct metrics *metrics, uint32_t answers, uint64_t ns)
{
    assert(answers > 0);
    counter_add(&metrics->commits, 1);
    counter_add(&metrics->committed, answers);
    add_time(&metrics->commit, ns);
}

void hf__metrics_accepted(struct metrics *metrics)
{
    counter_add(&metrics->accepted, 1);
}

void hf__metrics_turned_away(struct metrics *metrics)
{
    counter_add(&metrics->turned_away, 1);
}

void hf__metrics_busy(struct metrics *metrics)
{
    counter_add(&metrics->busy, 1);
}

void hf__metrics_evicted(struct metrics *metrics)
{
    counter_add(&metrics->evicted, 1);
}

void hf__metrics_displaced(struct metrics *metrics)
{
    counter_add(&metrics->displaced, 1);
}

void hf__metrics_timed_out(struct metrics *metrics)
{
    counter_add(&metrics->timed_out, 1);
}

void hf__metrics_bytes(struct metrics *metrics, size_t in, size_t out)
{
    counter_add(&metrics->bytes_in, in);
    counter_add(&metrics->bytes_out, out);
}

/* ---- sums ----------------------------------------------------------------------------------- */

_Static_assert(sizeof(struct metrics) % sizeof(counter) == 0, "it has counters only");

size_t hf__metrics_words(void)
{
    return sizeof(struct metrics) / sizeof(counter);
}

void hf__metrics_sum(const struct server *server, uint64_t *sum)
{
    memset(sum, 0, sizeof(struct metrics));
    for (size_t i = 0; i < server->loops_len + server->options.workers; i++) {
        const counter *from = (const counter *)(const void *)(server->metrics + i);

        for (size_t word = 0; word < hf__metrics_words(); word++)
            sum[word] += counter_get(from + word);
    }
}

#define WORD(field) (offsetof(struct metrics, field) / sizeof(counter))

static uint64_t change_of(const uint64_t *before, const uint64_t *now, size_t word)
{
    return now[word] - before[word];
}

/* The time below which a share of them lies, between the ends of its bucket as if evenly spread. */
static double quantile_us(const uint64_t buckets[TIME_BUCKETS], uint64_t count, double share)
{
    double rank = (double)count * share, below = 0, from = 0, to = TIME_BUCKET_FIRST_NS / 1e3;

    for (size_t i = 0; i < TIME_BUCKETS && count > 0; i++) {
        double here = (double)buckets[i];

        if (here > 0 && below + here >= rank)
            return from + (to - from) * (rank > below ? (rank - below) / here : 0);
        below += here;
        from = to;
        to *= 2;
    }
    return 0;
}

static struct metrics_times times_of(const uint64_t buckets[TIME_BUCKETS], uint64_t errors)
{
    struct metrics_times times = {.errors = errors};

    for (size_t i = 0; i < TIME_BUCKETS; i++)
        times.count += buckets[i];
    times.p50_us = quantile_us(buckets, times.count, 0.5);
    times.p99_us = quantile_us(buckets, times.count, 0.99);
    return times;
}

static bool op_is_of(int op, int of)
{
    return of == op ||
           (of < 0 && (of == METRICS_WRITES) == (hf__op((enum hf_op)op)->access == OP_WRITE));
}

struct metrics_times hf__metrics_between(const uint64_t *before, const uint64_t *now, int of)
{
    const size_t op_words = sizeof(((struct metrics *)0)->ops[0]) / sizeof(counter);
    uint64_t buckets[TIME_BUCKETS] = {0}, errors = 0;

    for (int op = of < 0 ? 0 : of; op < (of < 0 ? HF_OP_COUNT : of + 1); op++) {
        size_t at = (size_t)op * op_words;

        if (!op_is_of(op, of))
            continue;
        errors += change_of(before, now, at + WORD(ops[0].client_errors)) +
                  change_of(before, now, at + WORD(ops[0].server_errors));
        for (size_t i = 0; i < TIME_BUCKETS; i++)
            buckets[i] += change_of(before, now, at + WORD(ops[0].times.bucket[0]) + i);
    }
    return times_of(buckets, errors);
}

struct metrics_times hf__metrics_commits(const uint64_t *before, const uint64_t *now)
{
    uint64_t buckets[TIME_BUCKETS];

    for (size_t i = 0; i < TIME_BUCKETS; i++)
        buckets[i] = change_of(before, now, WORD(commit.bucket[0]) + i);
    return times_of(buckets, change_of(before, now, WORD(committed)));
}

struct metrics_events hf__metrics_events(const uint64_t *before, const uint64_t *now)
{
    return (struct metrics_events){
        .bytes_in = change_of(before, now, WORD(bytes_in)),
        .bytes_out = change_of(before, now, WORD(bytes_out)),
        .turned_away = change_of(before, now, WORD(turned_away)),
        .busy = change_of(before, now, WORD(busy)),
        .evicted = change_of(before, now, WORD(evicted)),
        .lengthy = change_of(before, now, WORD(lengthy)),
        .refused = change_of(before, now, WORD(refused)),
    };
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The sum over all loops and workers of the counter that lies `offset` bytes into their metrics. */
static uint64_t total_of(const struct server *server, size_t offset)
{
    uint64_t sum = 0;

    assert(offset <= sizeof(struct metrics) - sizeof(counter) && offset % sizeof(counter) == 0);
    for (size_t i = 0; i < server->loops_len + server->options.workers; i++)
        sum += counter_get(
            (const counter *)(const void *)((const char *)(server->metrics + i) + offset));
    return sum;
}

static void write_counters(struct hf__buf *buf, const struct server *server)
{
    static const struct {
        size_t offset;
        const char *name;
        const char *help;
    } counters[] = {
        {offsetof(struct metrics, accepted), "holdfast_connections_total", "Connections taken."},
        {offsetof(struct metrics, turned_away), "holdfast_connections_refused_total",
         "Connections refused because there were too many."},
        {offsetof(struct metrics, timed_out), "holdfast_connections_timed_out_total",
         "Connections closed because a time limit passed."},
        {offsetof(struct metrics, busy), "holdfast_requests_refused_total",
         "Requests refused because there was no memory for their answers in time."},
        {offsetof(struct metrics, evicted), "holdfast_connections_evicted_total",
         "Connections closed because others needed the memory of an answer that was not read."},
        {offsetof(struct metrics, displaced), "holdfast_connections_displaced_total",
         "Idle connections closed for new ones, because there were too many."},
        {offsetof(struct metrics, refused), "holdfast_signatures_refused_total",
         "Requests refused for their signature."},
        {offsetof(struct metrics, bad), "holdfast_requests_malformed_total",
         "Requests that were not valid HTTP."},
        {offsetof(struct metrics, lengthy), "holdfast_requests_long_total",
         "Requests that blocked an event loop, and all its connections, for more than 50 ms."},
        {offsetof(struct metrics, bytes_in), "holdfast_bytes_received_total", "Bytes read."},
        {offsetof(struct metrics, bytes_out), "holdfast_bytes_sent_total", "Bytes sent."},
        {offsetof(struct metrics, commits), "holdfast_commits_total",
         "Groups of answers that waited together until they were durable."},
        {offsetof(struct metrics, committed), "holdfast_answers_committed_total",
         "Answers in those groups."},
    };

    for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
        hf__prometheus_head(buf, counters[i].name, "counter", counters[i].help);
        hf__buf_format(buf, "%s %llu\n", counters[i].name,
                       (unsigned long long)total_of(server, counters[i].offset));
    }
}

static void write_times(struct hf__buf *buf, const struct server *server, const char *name,
                        const char *label, size_t offset)
{
    uint64_t buckets[TIME_BUCKETS];

    for (size_t i = 0; i < TIME_BUCKETS; i++)
        buckets[i] =
            total_of(server, offset + offsetof(struct times, bucket) + i * sizeof(counter));
    hf__prometheus_times(buf, name, label, buckets,
                         total_of(server, offset + offsetof(struct times, sum_ns)));
}

static size_t op_offset(enum hf_op op)
{
    return offsetof(struct metrics, ops) + (size_t)op * sizeof(((struct metrics *)0)->ops[0]);
}

enum { OK_AT, CLIENT_AT, SERVER_AT, OUTCOMES }; /* the order of the counters of an operation */

static uint64_t op_count(const struct server *server, enum hf_op op, size_t outcome)
{
    return total_of(server, op_offset(op) + outcome * sizeof(counter));
}

static bool op_used(const struct server *server, enum hf_op op)
{
    for (size_t i = 0; i < OUTCOMES; i++) {
        if (op_count(server, op, i))
            return true;
    }
    return false;
}

static void write_ops(struct hf__buf *buf, const struct server *server)
{
    static const char *const names[OUTCOMES] = {"ok", "client_error", "server_error"};
    char label[96];

    hf__prometheus_head(buf, "holdfast_requests_total", "counter", "Operations by outcome.");
    for (int op = 0; op < HF_OP_COUNT; op++) {
        for (size_t i = 0; i < OUTCOMES && op_used(server, (enum hf_op)op); i++)
            hf__buf_format(buf, "holdfast_requests_total{operation=\"%.*s\",outcome=\"%s\"} %llu\n",
                           HF_FMT(hf__op((enum hf_op)op)->name), names[i],
                           (unsigned long long)op_count(server, (enum hf_op)op, i));
    }
    hf__prometheus_head(
        buf, "holdfast_request_seconds", "histogram",
        "Time from a complete request to its answer, without the wait for the disk.");
    for (int op = 0; op < HF_OP_COUNT; op++) {
        if (!op_used(server, (enum hf_op)op))
            continue;
        snprintf(label, sizeof(label), "operation=\"%.*s\"", HF_FMT(hf__op((enum hf_op)op)->name));
        write_times(buf, server, "holdfast_request_seconds", label,
                    op_offset((enum hf_op)op) + OUTCOMES * sizeof(counter));
    }
}

uint64_t hf__metrics_resident(void)
{
    FILE *file = fopen("/proc/self/statm", "re");
    unsigned long long pages = 0;
    int found = file ? fscanf(file, "%*u %llu", &pages) : 0;

    if (file)
        fclose(file);
    return found == 1 ? pages * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

static void write_gauge(struct hf__buf *buf, const char *name, const char *help, uint64_t value)
{
    hf__prometheus_head(buf, name, "gauge", help);
    hf__buf_format(buf, "%s %llu\n", name, (unsigned long long)value);
}

static void write_engine(struct hf__buf *buf, struct server *server)
{
    struct hf_engine_stats stats;

    hf_engine_stats(server->engine, &stats);
    hf__prometheus_head(buf, "holdfast_log_syncs_total", "counter",
                        "Times the journal was synced to disk.");
    hf__buf_format(buf, "holdfast_log_syncs_total %llu\n", (unsigned long long)stats.syncs);
    write_gauge(buf, "holdfast_disk_bytes", "Size of the database on disk.", stats.disk_bytes);
    write_gauge(buf, "holdfast_store_memory_bytes", "Memory that the store uses.",
                stats.memory_bytes);
    write_gauge(buf, "holdfast_writes_stopped", "1 after a failed sync: restart.", stats.stopped);
    write_gauge(buf, "holdfast_no_space", "1 while the disk is too full to write.", stats.no_space);
}

/* Nothing is written without a continuous backup. */
static void write_backup(struct hf__buf *buf, struct server *server)
{
    struct hf_backup_health health;

    hf_backup_health(server->engine, &health);
    if (health.state == HF_BACKUP_OFF)
        return;
    hf__prometheus_head(buf, "holdfast_backup_state", "gauge",
                        "1 for the state that the continuous backup is in.");
    for (enum hf_backup_state state = HF_BACKUP_STARTING; state <= HF_BACKUP_REFUSED; state++)
        hf__buf_format(buf, "holdfast_backup_state{state=\"%s\"} %d\n", hf_backup_state_name(state),
                       state == health.state);
    write_gauge(buf, "holdfast_backup_lag_milliseconds",
                "Age of the oldest change that is not in the backup.", health.lag_ms);
    write_gauge(buf, "holdfast_backup_lag_changes", "Changes that are not in the backup.",
                health.lag_changes);
    write_gauge(buf, "holdfast_backup_journal_bytes", "Journal, with what is kept for the backup.",
                health.journal_bytes);
    write_gauge(buf, "holdfast_backup_snapshots", "Snapshots that can be restored from.",
                health.snapshots);
    write_gauge(buf, "holdfast_backup_newest_timestamp_seconds",
                "The newest moment that can be restored, since 1970.",
                (uint64_t)health.newest_us / 1000000);
    hf__prometheus_head(buf, "holdfast_backup_put_objects_total", "counter",
                        "Objects that were put.");
    hf__buf_format(buf, "holdfast_backup_put_objects_total %llu\n",
                   (unsigned long long)health.objects);
    hf__prometheus_head(buf, "holdfast_backup_put_bytes_total", "counter",
                        "Bytes of objects that were put.");
    hf__buf_format(buf, "holdfast_backup_put_bytes_total %llu\n", (unsigned long long)health.bytes);
    hf__prometheus_head(buf, "holdfast_backup_failures_total", "counter",
                        "Requests for the backup that failed.");
    hf__buf_format(buf, "holdfast_backup_failures_total %llu\n",
                   (unsigned long long)health.failures);
}

void hf__metrics_write(struct hf__buf *buf, struct server *server)
{
    _Static_assert(offsetof(struct metrics, ops[0].times) ==
                       offsetof(struct metrics, ops[0].ok) + OUTCOMES * sizeof(counter),
                   "the counters of an operation lie side by side");

    write_gauge(buf, "holdfast_connections", "Open connections.", atomic_load(&server->conns_len));
    write_gauge(buf, "holdfast_loops", "Threads that serve requests.", server->loops_len);
    write_gauge(buf, "holdfast_connections_limit", "Connections that may be open.",
                server->options.connections_max);
    write_gauge(buf, "holdfast_workers", "Threads that serve long requests.",
                server->options.workers);
    write_gauge(buf, "holdfast_work_waiting", "Long requests that wait for a worker or for memory.",
                atomic_load(&server->work.waiting));
    write_gauge(buf, "holdfast_work_running", "Long requests that are being processed.",
                atomic_load(&server->work.running));
    write_gauge(buf, "holdfast_input_bytes", "Memory used by requests that wait or are incomplete.",
                atomic_load(&server->budget.input));
    write_gauge(buf, "holdfast_input_limit_bytes", "Limit of holdfast_input_bytes.",
                server->budget.input_max);
    write_gauge(buf, "holdfast_output_bytes",
                "Memory used by answers that are being made or have not been read.",
                atomic_load(&server->budget.output));
    write_gauge(buf, "holdfast_output_limit_bytes", "Limit of holdfast_output_bytes.",
                server->budget.output_max);
    write_gauge(buf, "process_resident_memory_bytes", "Memory in use.", hf__metrics_resident());
    write_counters(buf, server);
    hf__prometheus_head(buf, "holdfast_commit_seconds", "histogram",
                        "Time that a group waited until it was durable.");
    write_times(buf, server, "holdfast_commit_seconds", "", offsetof(struct metrics, commit));
    write_ops(buf, server);
    write_engine(buf, server);
    write_backup(buf, server);
}
