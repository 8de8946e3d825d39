/*
 * db/metrics.c: a database around a database that counts its calls.
 *
 * Counters are kept SHARDS times, and a thread adds to those that its number falls on, so that two
 * threads seldom write to the same cache line; who asks adds them up. A count is one atomic
 * addition without order, since no reader draws conclusions from one counter about another.
 *
 *  (1) A call is counted once, after it ended, under its operation and its status.
 *  (2) Counters only grow.
 *  (3) Units are kept in thousandths, as there is no atomic addition of doubles.
 */
#include <holdfast/metrics.h>

#include <pthread.h>
#include <stdatomic.h>

#include "base/utf8.h"
#include "db/call_info.h"
#include "db/prometheus.h"

#define COUNT_STATUS(name, number, wire, text) +1
enum {
    STATUSES = 0 HF_STATUS_MAP(COUNT_STATUS),
    SHARD_BITS = 3,
    SHARDS = 1 << SHARD_BITS,
    CACHE_LINE = 64,
    NAME_MAX_BYTES = 256
};
#undef COUNT_STATUS

#define CHECK_STATUS(name, number, wire, text)                                                     \
    _Static_assert((number) < STATUSES, "statuses are numbered without gaps");
HF_STATUS_MAP(CHECK_STATUS)
#undef CHECK_STATUS

_Static_assert((int)HF_METRICS_BUCKETS == (int)TIME_BUCKETS &&
                   HF_METRICS_BUCKET_FIRST_US * 1000 == (int)TIME_BUCKET_FIRST_NS,
               "the public buckets are those of the histogram");

typedef _Atomic uint64_t counter;

struct op_counters {
    counter statuses[STATUSES];
    counter buckets[TIME_BUCKETS];
    counter duration_us;
    counter maybe;
    counter read_milliunits;
    counter write_milliunits;
};

struct shard {
    _Alignas(CACHE_LINE) struct op_counters ops[HF_OP_COUNT];
};

struct metrics {
    struct hf_db db;
    struct hf_env env;
    struct hf_db *inner;
    char name[NAME_MAX_BYTES];
    size_t name_len;
    void *memory; /* of the shards, which begin at the first cache line in it */
    struct shard *shards;
};

enum { SHARDS_BYTES = SHARDS * sizeof(struct shard) + CACHE_LINE };

/* ---- counting ------------------------------------------------------------------------------- */

/* Threads' numbers are addresses far apart: mixed, their upper bits differ. */
static struct shard *my_shard(struct metrics *m)
{
    uint64_t mixed = (uint64_t)(uintptr_t)pthread_self() * UINT64_C(0x9E3779B97F4A7C15);

    return &m->shards[mixed >> (64 - SHARD_BITS)];
}

static void counter_add(counter *to, uint64_t amount)
{
    atomic_fetch_add_explicit(to, amount, memory_order_relaxed);
}

static void add_units(counter *to, double units)
{
    if (units > 0)
        counter_add(to, (uint64_t)(units * 1000 + 0.5));
}

static enum hf_status metrics_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                   const void *request, void *response)
{
    struct metrics *m = (struct metrics *)(void *)db;
    struct op_counters *c = &my_shard(m)->ops[op];
    int64_t start_us = hf__env_elapsed_us(&m->env);
    enum hf_status status = m->inner->calls->call(s, m->inner, op, request, response);
    int64_t us = hf__env_elapsed_us(&m->env) - start_us;

    if (us < 0) /* a clock of the caller's may do what it likes */
        us = 0;
    counter_add(&c->statuses[(unsigned)status < STATUSES ? status : HF_INTERNAL], 1);
    counter_add(&c->buckets[time_bucket((uint64_t)us * 1000)], 1);
    counter_add(&c->duration_us, (uint64_t)us);
    if (status == HF_OK) {
        struct call_units units = hf__db_call_units(op, request, response);

        add_units(&c->read_milliunits, units.read);
        add_units(&c->write_milliunits, units.write);
    } else if (hf_scope_error(s)->may_have_happened) {
        counter_add(&c->maybe, 1);
    }
    return status;
}

/* ---- telling -------------------------------------------------------------------------------- */

/* The sum over all shards of the counter that lies `offset` bytes into those of the operation. */
static uint64_t counter_total(const struct metrics *m, enum hf_op op, size_t offset)
{
    uint64_t sum = 0;

    for (size_t i = 0; i < SHARDS; i++) {
        const char *at = (const char *)&m->shards[i].ops[op] + offset;

        sum += atomic_load_explicit((const counter *)(const void *)at, memory_order_relaxed);
    }
    return sum;
}

/* False: no memory. */
static bool read_op(struct hf_scope *s, const struct metrics *m, enum hf_op op,
                    struct hf_metrics_op *sums)
{
    struct hf_metrics_status found[STATUSES], *statuses;
    size_t len = 0;

    *sums = (struct hf_metrics_op){.op = op, .operation = hf__op(op)->name};
    for (size_t i = 0; i < STATUSES; i++) {
        uint64_t calls =
            counter_total(m, op, offsetof(struct op_counters, statuses) + i * sizeof(counter));

        if (calls == 0)
            continue;
        found[len++] = (struct hf_metrics_status){(enum hf_status)i, calls};
        sums->calls += calls;
        sums->errors += i == HF_OK ? 0 : calls;
    }
    if (len == 0)
        return true;
    statuses = hf__scope_array(s, len, sizeof(*statuses));
    if (!statuses)
        return false;
    memcpy(statuses, found, len * sizeof(*statuses));
    sums->statuses = statuses;
    sums->statuses_len = len;
    for (size_t i = 0; i < TIME_BUCKETS; i++)
        sums->buckets[i] =
            counter_total(m, op, offsetof(struct op_counters, buckets) + i * sizeof(counter));
    sums->maybe = counter_total(m, op, offsetof(struct op_counters, maybe));
    sums->duration_us = counter_total(m, op, offsetof(struct op_counters, duration_us));
    sums->read_units =
        (double)counter_total(m, op, offsetof(struct op_counters, read_milliunits)) / 1000;
    sums->write_units =
        (double)counter_total(m, op, offsetof(struct op_counters, write_milliunits)) / 1000;
    return true;
}

static const struct db_calls metrics_calls;

static struct metrics *metrics_of(struct hf_db *db)
{
    return db && db->calls == &metrics_calls ? (struct metrics *)(void *)db : NULL;
}

enum hf_status hf_metrics_get(struct hf_scope *s, struct hf_db *db, struct hf_metrics *metrics)
{
    struct metrics *m = metrics_of(db);
    struct hf_metrics_op *ops;
    size_t len = 0;

    *metrics = (struct hf_metrics){0};
    hf__scope_error_clear(s);
    if (!m)
        return hf__fail(s, HF_INVALID, "the database was not opened by hf_metrics_open()");
    ops = hf__scope_array(s, HF_OP_COUNT, sizeof(*ops));
    if (!ops)
        return hf__fail_nomem(s);
    for (int op = 0; op < HF_OP_COUNT; op++) {
        if (!read_op(s, m, (enum hf_op)op, &ops[len]))
            return hf__fail_nomem(s);
        len += ops[len].calls > 0;
    }
    *metrics = (struct hf_metrics){.ops = ops, .ops_len = len};
    return HF_OK;
}

/* ---- Prometheus ----------------------------------------------------------------------------- */

/* `database="name",operation="PutItem"`, with a NUL. */
static void put_labels(struct hf__buf *buf, const struct metrics *m, const struct hf_metrics_op *op)
{
    if (m->name_len) {
        hf__buf_put_str(buf, HF_STR("database="));
        hf__prometheus_quote(buf, hf_str_of(m->name, m->name_len));
        hf__buf_put_byte(buf, ',');
    }
    hf__buf_format(buf, "operation=\"%.*s\"", HF_FMT(op->operation));
}

/* A line for each operation, of the units or of what is in doubt. */
static void write_sums(struct hf__buf *buf, const struct hf_metrics *metrics,
                       const char *const *labels, const char *name, const char *help, size_t offset,
                       bool units)
{
    hf__prometheus_head(buf, name, "counter", help);
    for (size_t i = 0; i < metrics->ops_len; i++) {
        const void *at = (const char *)&metrics->ops[i] + offset;

        if (units)
            hf__buf_format(buf, "%s{%s} %.3f\n", name, labels[i], *(const double *)at);
        else
            hf__buf_format(buf, "%s{%s} %llu\n", name, labels[i],
                           (unsigned long long)*(const uint64_t *)at);
    }
}

static void write_all(struct hf__buf *buf, const struct hf_metrics *metrics,
                      const char *const *labels)
{
    hf__prometheus_head(buf, "holdfast_calls_total", "counter", "Calls by how they ended.");
    for (size_t i = 0; i < metrics->ops_len; i++) {
        const struct hf_metrics_op *op = &metrics->ops[i];

        for (size_t j = 0; j < op->statuses_len; j++)
            hf__buf_format(buf, "holdfast_calls_total{%s,status=\"%s\"} %llu\n", labels[i],
                           hf_status_name(op->statuses[j].status),
                           (unsigned long long)op->statuses[j].calls);
    }
    write_sums(buf, metrics, labels, "holdfast_calls_maybe_done_total",
               "Failed calls whose effect may be there.", offsetof(struct hf_metrics_op, maybe),
               false);
    hf__prometheus_head(buf, "holdfast_call_seconds", "histogram", "How long calls took.");
    for (size_t i = 0; i < metrics->ops_len; i++)
        hf__prometheus_times(buf, "holdfast_call_seconds", labels[i], metrics->ops[i].buckets,
                             metrics->ops[i].duration_us * 1000);
    write_sums(buf, metrics, labels, "holdfast_read_units_total",
               "Read units that answers said were consumed.",
               offsetof(struct hf_metrics_op, read_units), true);
    write_sums(buf, metrics, labels, "holdfast_write_units_total",
               "Write units that answers said were consumed.",
               offsetof(struct hf_metrics_op, write_units), true);
}

enum hf_status hf_metrics_text(struct hf_scope *s, struct hf_db *db, struct hf_str *text)
{
    struct metrics *m = metrics_of(db);
    struct hf__buf buf = {.scope = s};
    struct hf_metrics metrics;
    const char **labels;

    *text = hf_str_of(NULL, 0);
    TRY(hf_metrics_get(s, db, &metrics));
    labels = hf__scope_array(s, metrics.ops_len + 1, sizeof(*labels));
    if (!labels)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < metrics.ops_len; i++) {
        struct hf__buf label = {.scope = s};

        put_labels(&label, m, &metrics.ops[i]);
        if (label.failed)
            return hf__fail_nomem(s);
        labels[i] = (const char *)label.ptr;
    }
    write_all(&buf, &metrics, labels);
    if (buf.failed)
        return hf__fail_nomem(s);
    *text = hf_str_of((const char *)buf.ptr, buf.len);
    return HF_OK;
}

/* ---- the database --------------------------------------------------------------------------- */

static enum hf_status metrics_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct metrics *m = (struct metrics *)(void *)db;

    return hf__db_sync(s, m->inner, ticket);
}

static void metrics_free(struct metrics *m)
{
    struct hf_env env = m->env;

    if (m->memory)
        hf__env_free(&env, m->memory, SHARDS_BYTES);
    hf__env_free(&env, m, sizeof(*m));
}

static void metrics_close(struct hf_db *db)
{
    struct metrics *m = (struct metrics *)(void *)db;

    hf_db_close(m->inner);
    metrics_free(m);
}

static enum hf_status metrics_supports(struct hf_scope *s, struct hf_db *db,
                                       enum hf_feature feature, bool *supported)
{
    struct metrics *m = (struct metrics *)(void *)db;

    return hf_db_supports(s, m->inner, feature, supported);
}

static enum hf_status metrics_blobs(struct hf_scope *s, struct hf_db *db, struct hf_blobs **blobs)
{
    return hf__db_blobs(s, ((struct metrics *)(void *)db)->inner, blobs);
}

static enum hf_status metrics_full_name(struct hf_scope *s, struct hf_db *db, struct hf_str table,
                                        struct hf_str *full)
{
    return hf__db_full_name(s, ((struct metrics *)(void *)db)->inner, table, full);
}

static struct hf_str metrics_opener(struct hf_db *db)
{
    return hf_db_opener(((struct metrics *)(void *)db)->inner);
}

static const struct db_calls metrics_calls = {.call = metrics_call,
                                              .sync = metrics_sync,
                                              .close = metrics_close,
                                              .supports = metrics_supports,
                                              .blobs = metrics_blobs,
                                              .full_name = metrics_full_name,
                                              .opener = metrics_opener};

/* Zeroed counters at the start of a cache line. */
static bool make_shards(struct metrics *m)
{
    uint8_t *memory = hf__env_alloc(&m->env, SHARDS_BYTES);

    if (!memory)
        return false;
    memset(memory, 0, SHARDS_BYTES);
    m->memory = memory;
    memory += (CACHE_LINE - (uintptr_t)memory % CACHE_LINE) % CACHE_LINE;
    m->shards = (struct shard *)(void *)memory;
    return true;
}

enum hf_status hf_metrics_open(struct hf_scope *s, struct hf_db *inner,
                               const struct hf_metrics_options *options, struct hf_db **db)
{
    struct hf_metrics_options o = {0};
    struct hf_env env;
    struct metrics *m;

    *db = NULL;
    hf__scope_error_clear(s);
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    if (!inner)
        return hf__fail(s, HF_INVALID, "hf_metrics_open() was called without a database (NULL)");
    if (o.name.len > NAME_MAX_BYTES || !hf__utf8_valid(o.name))
        return hf__fail(s, HF_INVALID, "a name in metrics is UTF-8 of at most %d bytes",
                        NAME_MAX_BYTES);
    env = o.env ? hf__env_fill(o.env) : *hf__scope_env(s);
    m = hf__env_alloc(&env, sizeof(*m));
    if (!m)
        return hf__fail_nomem(s);
    memset(m, 0, sizeof(*m));
    m->db.calls = &metrics_calls;
    m->env = env;
    m->inner = inner;
    m->name_len = o.name.len;
    if (o.name.len)
        memcpy(m->name, o.name.ptr, o.name.len);
    if (!make_shards(m)) {
        metrics_free(m);
        return hf__fail_nomem(s);
    }
    *db = &m->db;
    return HF_OK;
}
