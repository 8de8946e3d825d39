/*
 * bench/partitions.c: would Amazon DynamoDB throttle the patterns? Their units are measured, its
 * partitions are simulated.
 *
 *     bench_partitions [--events N] [--rate R] [--only NAME] [--partitions P]
 *                      [--split-after S] [--svg FILE]
 *
 * First part, measured: each pattern runs on a database in memory, behind a wrapper that notes the
 * units of every call and the partition keys that it names. So units per operation, and which share
 * of them the busiest key has, come from the code and not from a document.
 *
 * Second part, simulated: the same shares at a steady rate, until N operations (a billion) have
 * been done or refused, second by second. What the simulation knows of DynamoDB:
 *
 *  (1) A partition serves 1,000 write units and 3,000 read units per second. What it did not use in
 *      the last 300 seconds may be used later, as a burst.
 *  (2) A new table on demand has four partitions, each with a range of the hashes of keys. With
 *      --partitions it begins with more, as a table that was warmed or imported.
 *  (3) Adaptive capacity gives a partition what others leave unused at once, but never beyond (1).
 *      A partition that is above nine tenths of (1) for --split-after seconds (600) is split where
 *      its traffic is halved. A key is never split: what has one key stays in one place. (DynamoDB
 *      can split the sort keys of one key; that does not help where they grow, as ours mostly do.)
 *  (4) What is throttled comes again in the next second, as clients try again, up to ten seconds'
 *      worth; beyond that it is refused for good, and counted.
 *
 * How long DynamoDB takes to split is not documented, so (3) is an assumption that can be varied.
 * What leases and heartbeats of relays cost does not grow with the events, and is not counted.
 * Indexes are not simulated: their units count as the table's, which is more than what happens to it,
 * and their keys are not looked at. Only records have an index; its keys are its shards.
 *
 * Arrivals are random (Poisson) for each partition and second. Reads are spread over the keys as
 * writes are. The dice are the same at each run: so are the figures.
 */
#include "lib.h"

#include <holdfast/counter.h>
#include <holdfast/events.h>
#include <holdfast/kv.h>
#include <holdfast/limit.h>
#include <holdfast/lock.h>
#include <holdfast/once.h>
#include <holdfast/outbox.h>
#include <holdfast/records.h>
#include <holdfast/relay.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "db/call_info.h"

enum {
    WRITES_PER_S = 1000,
    READS_PER_S = 3000,
    BURST_S = 300,
    PARTITIONS = 4, /* by default */
    PARTITIONS_MAX = 4096,
    BACKLOG_S = 10,
    KEYS_MAX = 1 << 17, /* a power of two, more than twice what a workload names */
    KEY_TEXT = 48,
    MEASURED = 40000, /* operations */
    PAYLOAD_BYTES = 250,
    PLOT_COLUMNS = 60
};

struct meter;

struct workload {
    const char *name;
    const char *hash_name; /* as in struct meter */
    const char *fixed;     /* as there */
    void (*run)(struct hf_scope *s, struct meter *m, unsigned parts);
    unsigned parts; /* buckets or shards, as the pattern has */
};

/* ---- metering -------------------------------------------------------------------------------- */

struct metered_key {
    uint64_t hash; /* where DynamoDB would have it; 0: a free place */
    double writes;
    char text[KEY_TEXT];
};

/* A database around another that notes what each partition key costs. */
struct meter {
    struct hf_db db;
    struct hf_db *inner;
    const char *hash_name; /* of the attribute that is the partition key */
    const char *fixed;     /* a key that costs so much per time, whatever is done: not counted */
    bool on;
    pthread_mutex_t mutex; /* guards what follows */
    double reads, writes;
    struct metered_key *keys; /* KEYS_MAX places */
};

static uint64_t hash_text(struct hf_str text)
{
    struct bench_dice dice = {.state = UINT64_C(14695981039346656037)};

    for (size_t i = 0; i < text.len; i++)
        dice.state = (dice.state ^ (uint8_t)text.ptr[i]) * UINT64_C(1099511628211);
    return bench_roll(&dice) | 1;
}

static void meter_add(struct meter *m, struct hf_item item, double writes)
{
    struct hf_str text = hf_value_str(hf_item_get(item, hf_str_from(m->hash_name)));
    uint64_t hash = hash_text(text);
    size_t at = hash & (KEYS_MAX - 1);

    if (m->fixed && hf_str_equal(text, hf_str_from(m->fixed)))
        return;
    m->writes += writes;
    while (m->keys[at].hash && m->keys[at].hash != hash)
        at = (at + 1) & (KEYS_MAX - 1);
    if (!m->keys[at].hash) {
        m->keys[at].hash = hash;
        snprintf(m->keys[at].text, KEY_TEXT, "%.*s", HF_FMT(text));
    }
    m->keys[at].writes += writes;
}

static struct hf_item item_of_action(const struct hf_transact_write *action)
{
    return action->put      ? action->put->item
           : action->update ? action->update->key
           : action->del    ? action->del->key
                            : action->check->key;
}

/* Items are below 1 KB, so all of a call cost the same. */
static void meter_spread(struct meter *m, enum hf_op op, const void *request, double writes)
{
    const struct hf_transact_write_items *tx = request;
    const struct hf_batch_write_item *batch = request;

    switch (op) {
    case HF_OP_PUT_ITEM:
        meter_add(m, ((const struct hf_put_item *)request)->item, writes);
        break;
    case HF_OP_UPDATE_ITEM:
        meter_add(m, ((const struct hf_update_item *)request)->key, writes);
        break;
    case HF_OP_DELETE_ITEM:
        meter_add(m, ((const struct hf_delete_item *)request)->key, writes);
        break;
    case HF_OP_TRANSACT_WRITE_ITEMS:
        for (size_t i = 0; i < tx->actions_len; i++)
            meter_add(m, item_of_action(&tx->actions[i]), writes / (double)tx->actions_len);
        break;
    case HF_OP_BATCH_WRITE_ITEM:
        for (size_t i = 0; i < batch->tables[0].writes_len; i++) {
            const struct hf_write_request *write = &batch->tables[0].writes[i];

            meter_add(m, write->put ? write->put->item : write->del->key,
                      writes / (double)batch->tables[0].writes_len);
        }
        break;
    default:
        if (writes > 0)
            bench_die("an operation that writes is not metered: %d", (int)op);
    }
}

static enum hf_status meter_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct meter *m = (struct meter *)(void *)db;
    struct hf_scope_capacity before, after;
    enum hf_status status;

    hf_scope_count_capacity(s, true);
    before = hf_scope_capacity(s);
    status = hf_db_call(s, m->inner, op, request, response);
    after = hf_scope_capacity(s);
    pthread_mutex_lock(&m->mutex);
    if (m->on && status == HF_OK) {
        m->reads += after.read_units - before.read_units;
        meter_spread(m, op, request, after.write_units - before.write_units);
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static void meter_close(struct hf_db *db)
{
    struct meter *m = (struct meter *)(void *)db;

    hf_db_close(m->inner);
    pthread_mutex_destroy(&m->mutex);
    free(m->keys);
    free(m);
}

static const struct db_calls meter_calls = {.call = meter_call, .close = meter_close};

static struct meter *meter_open(struct hf_scope *s, const struct workload *w)
{
    struct meter *m = calloc(1, sizeof(*m));

    if (!m || !(m->keys = calloc(KEYS_MAX, sizeof(*m->keys))))
        bench_die("out of memory");
    m->db.calls = &meter_calls;
    m->hash_name = w->hash_name;
    m->fixed = w->fixed;
    pthread_mutex_init(&m->mutex, NULL);
    if (hf_open(s, HF_STR("memory:"), NULL, &m->inner) != HF_OK)
        bench_die("%s", hf_scope_error_text(s));
    return m;
}

/* ---- workloads ------------------------------------------------------------------------------- */

/* What a workload costs: the result of the first part. */
struct cost {
    double reads, writes; /* units per operation */
    size_t keys;
    double *shares;   /* of the writes, by key, */
    uint64_t *hashes; /* in the order of these */
    double busiest;   /* share of the busiest key, */
    char text[KEY_TEXT];
};

static void must(struct hf_scope *s, enum hf_status status)
{
    if (status != HF_OK)
        bench_die("%s", hf_scope_error_text(s));
}

/* Tables and marks are made before anything is counted. */
static void meter_begin(struct hf_scope *s, struct meter *m)
{
    pthread_mutex_lock(&m->mutex);
    m->on = true;
    pthread_mutex_unlock(&m->mutex);
    hf_scope_reset(s);
}

static const uint8_t payload[PAYLOAD_BYTES] = {'"'};

static enum hf_status deliver_all(struct hf_scope *s, void *user, struct hf_delivery *deliveries,
                                  size_t len)
{
    (void)s;
    for (size_t i = 0; i < len; i++)
        deliveries[i].status = HF_OK;
    atomic_fetch_add((atomic_ulong *)user, len);
    return HF_OK;
}

/* Emitted one by one, delivered by one relay: both are part of an event's cost. */
static void run_outbox(struct hf_scope *s, struct meter *m, unsigned parts)
{
    static const struct hf_sink_ops ops = {.size = sizeof(ops),
                                           .name = "bench",
                                           .send = deliver_all};
    atomic_ulong delivered = 0;
    struct hf_outbox *outbox;
    struct hf_relay *relay;
    struct hf_sink *sink;

    must(s, hf_outbox_open(s, &m->db, HF_OPTIONS(hf_outbox_options, .buckets = parts), &outbox));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s)) {
        struct hf_event event = {.type = HF_STR("order.placed"),
                                 .key = hf_scope_format(s, "order-%u", n),
                                 .payload = hf_bytes_of(payload, sizeof(payload))};

        must(s, hf_outbox_emit(s, outbox, &event, 1, NULL));
    }
    must(s, hf_sink_new(s, &ops, &delivered, &sink));
    must(s, hf_relay_open(s, outbox, sink, NULL, &relay));
    must(s, hf_relay_start(s, relay));
    while (atomic_load(&delivered) < MEASURED)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    must(s, hf_relay_stop(s, relay));
    hf_relay_close(relay);
    hf_sink_close(sink);
    hf_outbox_close(outbox);
}

static void run_events(struct hf_scope *s, struct meter *m, unsigned parts)
{
    struct hf_events *store;

    must(s, hf_events_open(s, &m->db, HF_OPTIONS(hf_events_options, .shards = parts), &store));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s)) {
        struct hf_new_event event = {.type = HF_STR("placed"),
                                     .payload = hf_bytes_of(payload, sizeof(payload))};
        struct hf_append append = {.stream = {HF_STR("order"),
                                              hf_scope_format(s, "%u", n % (MEASURED / 4))},
                                   .events = &event,
                                   .events_len = 1};

        must(s, hf_events_append(s, store, &append, 1, NULL, NULL));
    }
    hf_events_close(store);
}

static void count_up(struct hf_scope *s, struct meter *m, unsigned shards, unsigned counters_len)
{
    struct hf_counters *counters;

    must(s,
         hf_counters_open(s, &m->db, HF_OPTIONS(hf_counters_options, .shards = shards), &counters));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s)) {
        struct hf_counter_key key =
            hf_counter_named(hf_scope_format(s, "visits-%u", n % counters_len));

        must(s, hf_counter_add(s, counters, key, 1, NULL, NULL));
    }
    hf_counters_close(counters);
}

static void run_hot_counter(struct hf_scope *s, struct meter *m, unsigned parts)
{
    count_up(s, m, parts, 1);
}

static void run_counters(struct hf_scope *s, struct meter *m, unsigned parts)
{
    count_up(s, m, 1, parts);
}

static void run_locks(struct hf_scope *s, struct meter *m, unsigned parts)
{
    struct hf_lock_table *locks;
    struct hf_lock *lock;

    must(s, hf_lock_table_open(s, &m->db, NULL, &locks));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s)) {
        must(s, hf_lock_acquire(s, locks, hf_scope_format(s, "job-%u", n % parts), NULL, &lock));
        must(s, hf_lock_release(s, lock));
    }
    hf_lock_table_close(locks);
}

static enum hf_status do_nothing(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                 void *user)
{
    (void)s, (void)once, (void)result, (void)user;
    return HF_OK;
}

static void run_once(struct hf_scope *s, struct meter *m, unsigned parts)
{
    struct hf_once_table *onces;
    struct hf_once_record record;

    must(s, hf_once_table_open(s, &m->db, NULL, &onces));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s))
        must(s, hf_once_do(s, onces, hf_scope_format(s, "user-%u", n % parts),
                           hf_scope_format(s, "invoice-%u", n), NULL, do_nothing, NULL, &record));
    hf_once_table_close(onces);
}

/* Set once and read once. */
static void run_values(struct hf_scope *s, struct meter *m, unsigned parts)
{
    struct hf_kv *kv;
    struct hf_kv_entry entry;

    must(s, hf_kv_open(s, &m->db, NULL, &kv));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s)) {
        struct hf_kv_key key = hf_kv_id(hf_scope_format(s, "session-%u", n % parts));
        struct hf_value value = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("login")));

        must(s, hf_kv_set(s, kv, key, value, NULL, NULL));
        must(s, hf_kv_get(s, kv, key, NULL, &entry));
    }
    hf_kv_close(kv);
}

static void run_limits(struct hf_scope *s, struct meter *m, unsigned parts)
{
    struct hf_limit_rule rule = {.limit = MEASURED, .window_ms = 60000};
    struct hf_limit_table *limits;
    struct hf_limit_verdict verdict;

    must(s, hf_limit_table_open(s, &m->db, NULL, &limits));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s))
        must(s, hf_limit_take(s, limits, hf_scope_format(s, "login-%u", n % parts), &rule, NULL,
                              &verdict));
    hf_limit_table_close(limits);
}

static enum hf_status process_nothing(struct hf_scope *s, const struct hf_record_info *record,
                                      void *user)
{
    (void)s, (void)record, (void)user;
    return HF_OK;
}

/* Put, then all processed. */
static void run_records(struct hf_scope *s, struct meter *m, unsigned parts)
{
    struct hf_records *records;
    struct hf_processor *processor;
    struct hf_processor_report report;

    must(s, hf_records_open(s, &m->db, NULL, &records));
    meter_begin(s, m);
    for (unsigned n = 0; n < MEASURED; n++, hf_scope_reset(s))
        must(s,
             hf_records_put(s, records,
                            HF_ITEM(s,
                                    HF_S("AccountId", hf_scope_format(s, "account-%u", n % parts)),
                                    HF_S("RunTime", hf_scope_format(s, "2026-11-19T%06u", n)),
                                    HF_B("Body", hf_bytes_of(payload, sizeof(payload)))),
                            NULL));
    must(s, hf_processor_open(s, records, NULL, &processor));
    must(s, hf_processor_run(s, processor, process_nothing, NULL, &report));
    hf_processor_close(processor);
    hf_records_close(records);
}

static const struct workload workloads[] = {
    {"outbox, 16 buckets", "pk", "c", run_outbox, 16},
    {"outbox, 128 buckets", "pk", "c", run_outbox, 128},
    {"outbox, 1000 buckets", "pk", "c", run_outbox, 1000},
    {"events, 4 shards", "pk", NULL, run_events, 4},
    {"events, 16 shards", "pk", NULL, run_events, 16},
    {"events, 64 shards", "pk", NULL, run_events, 64},
    {"one counter", "key", NULL, run_hot_counter, 1},
    {"one counter, 64 shards", "key", NULL, run_hot_counter, 64},
    {"10,000 counters", "key", NULL, run_counters, 10000},
    {"10,000 locks", "name", NULL, run_locks, 10000},
    {"do-once, 10,000 users", "user", NULL, run_once, 10000},
    {"10,000 values, set and read", "key", NULL, run_values, 10000},
    {"10,000 limits", "name", NULL, run_limits, 10000},
    {"records of 10,000 accounts", "AccountId", NULL, run_records, 10000},
};

static int key_order(const void *a, const void *b)
{
    uint64_t x = ((const struct metered_key *)a)->hash, y = ((const struct metered_key *)b)->hash;

    return x < y ? -1 : x > y;
}

static struct cost measure(const struct workload *w)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct meter *m = meter_open(s, w);
    struct cost cost = {.reads = 0};
    double sum = 0;

    w->run(s, m, w->parts);
    cost.reads = m->reads / MEASURED;
    cost.writes = m->writes / MEASURED;
    for (size_t i = 0; i < KEYS_MAX; i++) {
        if (m->keys[i].hash)
            m->keys[cost.keys++] = m->keys[i];
    }
    qsort(m->keys, cost.keys, sizeof(*m->keys), key_order);
    cost.shares = calloc(cost.keys, sizeof(*cost.shares));
    cost.hashes = calloc(cost.keys, sizeof(*cost.hashes));
    if (!cost.shares || !cost.hashes)
        bench_die("out of memory");
    for (size_t i = 0; i < cost.keys; i++) {
        cost.hashes[i] = m->keys[i].hash;
        cost.shares[i] = m->keys[i].writes / m->writes;
        sum += cost.shares[i];
        if (cost.shares[i] > cost.busiest) {
            cost.busiest = cost.shares[i];
            memcpy(cost.text, m->keys[i].text, KEY_TEXT);
        }
    }
    assert(fabs(sum - 1) < 1e-6); /* every unit has a key */
    hf_db_close(&m->db);
    hf_scope_free(s);
    return cost;
}

/* ---- partitions ------------------------------------------------------------------------------ */

struct partition {
    size_t first, last;   /* keys, `last` excluded */
    double share;         /* of all writes */
    double writes, reads; /* units to spend: (1) */
    double waiting;       /* operations that come again: (4) */
    unsigned hot_s;       /* for how long it has been busy: (3) */
};

struct table_run {
    const struct cost *cost;
    double rate; /* operations per second */
    double operations;
    unsigned split_after_s, first_len;
    struct partition parts[PARTITIONS_MAX];
    size_t parts_len;
    struct bench_dice dice;
    double done, throttled, refused; /* operations; one that is throttled twice counts twice */
    double throttled_at[PLOT_COLUMNS], offered_at[PLOT_COLUMNS];
    int64_t last_throttled_s;
};

static double roll_unit(struct bench_dice *dice)
{
    return ((double)(bench_roll(dice) >> 11) + 0.5) / 9007199254740992.0;
}

static double roll_poisson(struct bench_dice *dice, double mean)
{
    double limit, product, n = 0;

    if (mean > 30) {
        n = floor(mean +
                  sqrt(mean) * sqrt(-2 * log(roll_unit(dice))) *
                      cos(6.283185307179586 * roll_unit(dice)) +
                  0.5);
        return n < 0 ? 0 : n;
    }
    limit = exp(-mean);
    for (product = roll_unit(dice); product > limit; product *= roll_unit(dice))
        n++;
    return n;
}

static void partition_set(struct partition *p, const struct cost *cost, size_t first, size_t last)
{
    *p = (struct partition){.first = first,
                            .last = last,
                            .writes = WRITES_PER_S,
                            .reads = READS_PER_S};
    for (size_t i = first; i < last; i++)
        p->share += cost->shares[i];
}

/* (2) */
static void table_begin(struct table_run *run)
{
    size_t key = 0;

    for (unsigned n = 1; n <= run->first_len; n++) {
        size_t first = key;

        while (key < run->cost->keys &&
               (n == run->first_len || run->cost->hashes[key] < UINT64_MAX / run->first_len * n))
            key++;
        partition_set(&run->parts[run->parts_len++], run->cost, first, key);
    }
}

/* (3) */
static void partition_split(struct table_run *run, size_t at)
{
    struct partition old = run->parts[at];
    double half = 0;
    size_t key = old.first;

    while (key < old.last - 1 && half + run->cost->shares[key] / 2 < old.share / 2)
        half += run->cost->shares[key++];
    if (key == old.first)
        key++;
    if (old.last - old.first < 2 || run->parts_len == PARTITIONS_MAX)
        return;
    partition_set(&run->parts[at], run->cost, old.first, key);
    partition_set(&run->parts[run->parts_len], run->cost, key, old.last);
    run->parts[at].waiting = old.waiting * run->parts[at].share / old.share;
    run->parts[run->parts_len++].waiting = old.waiting - run->parts[at].waiting;
}

static double least(double a, double b)
{
    return a < b ? a : b;
}

/* One second of one partition. */
static void partition_serve(struct table_run *run, struct partition *p, int64_t second, int column)
{
    const struct cost *cost = run->cost;
    double offered, served, most, kept;

    p->writes = least(p->writes + WRITES_PER_S, WRITES_PER_S * (1.0 + BURST_S));
    p->reads = least(p->reads + READS_PER_S, READS_PER_S * (1.0 + BURST_S));
    offered = roll_poisson(&run->dice, run->rate * p->share) + p->waiting;
    served = cost->writes > 0 ? least(offered, p->writes / cost->writes) : offered;
    if (cost->reads > 0)
        served = least(served, p->reads / cost->reads);
    p->writes -= served * cost->writes;
    p->reads -= served * cost->reads;
    most = BACKLOG_S * WRITES_PER_S / cost->writes;
    kept = least(offered - served, most);
    run->refused += offered - served - kept;
    run->throttled += offered - served;
    run->done += served;
    run->offered_at[column] += offered;
    run->throttled_at[column] += offered - served;
    if (offered - served >= 1)
        run->last_throttled_s = second;
    p->waiting = kept;
    p->hot_s =
        offered * cost->writes > 0.9 * WRITES_PER_S || offered * cost->reads > 0.9 * READS_PER_S
            ? p->hot_s + 1
            : 0;
}

static void table_simulate(struct table_run *run)
{
    int64_t seconds = (int64_t)(run->operations / run->rate);

    table_begin(run);
    for (int64_t second = 0; second < seconds; second++) {
        size_t len = run->parts_len;
        int column = (int)(second * PLOT_COLUMNS / seconds);

        for (size_t i = 0; i < len; i++) {
            partition_serve(run, &run->parts[i], second, column);
            if (run->parts[i].hot_s >= run->split_after_s) {
                run->parts[i].hot_s = 0;
                partition_split(run, i);
            }
        }
    }
}

/* ---- output ---------------------------------------------------------------------------------- */

struct bench {
    double events;
    double rate; /* 0: all of `rates` */
    const char *only;
    unsigned split_after_s, partitions;
    FILE *svg;
    int plots;
};

static const double rates[] = {1000, 5000, 10000, 25000, 50000};

enum { PLOT_WIDTH = 300, PLOT_HEIGHT = 60, PLOT_LEFT = 190, PLOT_ROW = 84 };

static double throttled_part(const struct table_run *run, int column)
{
    double offered = run->offered_at[column];

    return offered > 0 ? run->throttled_at[column] / offered : 0;
}

static void plot_print(const struct table_run *run)
{
    static const char *const steps[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};

    for (int i = 0; i < PLOT_COLUMNS; i++) {
        double part = throttled_part(run, i);

        fputs(part <= 0 ? "·" : steps[(int)least(7, part * 8)], stdout);
    }
    putchar('\n');
}

static void plot_svg(struct bench *b, const char *name, const struct table_run *run)
{
    int y = b->plots++ * PLOT_ROW + 20;

    if (!b->svg)
        return;
    fprintf(
        b->svg,
        "<text x=\"4\" y=\"%d\">%s</text><text x=\"4\" y=\"%d\" fill=\"#666\">%.0f/s, throttled "
        "%.2f %%</text>\n<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" fill=\"#f2f5f5\"/>"
        "<polyline fill=\"none\" stroke=\"#0b6b63\" stroke-width=\"1.5\" points=\"",
        y + 24, name, y + 42, run->rate, 100 * run->throttled / (run->throttled + run->done),
        PLOT_LEFT, y, PLOT_WIDTH, PLOT_HEIGHT);
    for (int i = 0; i < PLOT_COLUMNS; i++) {
        double part = throttled_part(run, i);

        fprintf(b->svg, "%.1f,%.1f ", PLOT_LEFT + (i + 0.5) * PLOT_WIDTH / PLOT_COLUMNS,
                y + PLOT_HEIGHT * (1 - part));
    }
    fputs("\"/>\n", b->svg);
}

static void simulate(struct bench *b, const struct workload *w, const struct cost *cost,
                     double rate)
{
    struct table_run *run = calloc(1, sizeof(*run));
    char until[32] = "never";

    if (!run)
        bench_die("out of memory");
    run->cost = cost;
    run->rate = rate;
    run->operations = b->events;
    run->split_after_s = b->split_after_s;
    run->first_len = b->partitions;
    run->dice.state = 1;
    run->last_throttled_s = -1;
    table_simulate(run);
    assert(run->parts_len >= run->first_len);
    if (run->last_throttled_s >= 0)
        snprintf(until, sizeof(until), "until %lld s", (long long)run->last_throttled_s);
    printf("  %7.0f/s  %5zu partitions  %6.2f %% throttled %-14s %6.2f %% refused  ", rate,
           run->parts_len, 100 * run->throttled / (run->throttled + run->done), until,
           100 * run->refused / (run->refused + run->done));
    plot_print(run);
    plot_svg(b, w->name, run);
    free(run);
}

static void report(struct bench *b, const struct workload *w)
{
    struct cost cost = measure(w);

    printf(
        "%s\n  measured: %.2f write units and %.2f read units per operation; %zu keys, the busiest "
        "(%s) has %.2f %%: at most %.0f/s\n",
        w->name, cost.writes, cost.reads, cost.keys, cost.text, 100 * cost.busiest,
        WRITES_PER_S / (cost.writes * cost.busiest));
    if (b->rate > 0)
        simulate(b, w, &cost, b->rate);
    else
        for (size_t i = 0; i < sizeof(rates) / sizeof(*rates); i++)
            simulate(b, w, &cost, rates[i]);
    fflush(stdout);
    free(cost.shares);
    free(cost.hashes);
}

static double read_number(const char *name, const char *text, double low, double high)
{
    char *end;
    double number = text ? strtod(text, &end) : 0;

    if (!text || *end || !(number >= low && number <= high))
        bench_die("%s takes a number from %.0f to %.0f", name, low, high);
    return number;
}

static void read_args(struct bench *b, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = argv[i + 1]; /* NULL behind the last */

        if (strcmp(argv[i], "--events") == 0)
            b->events = read_number("--events", value, 1000, 1e12);
        else if (strcmp(argv[i], "--rate") == 0)
            b->rate = read_number("--rate", value, 1, 1e9);
        else if (strcmp(argv[i], "--split-after") == 0)
            b->split_after_s = (unsigned)read_number("--split-after", value, 1, 1e6);
        else if (strcmp(argv[i], "--partitions") == 0)
            b->partitions = (unsigned)read_number("--partitions", value, 1, PARTITIONS_MAX);
        else if (strcmp(argv[i], "--only") == 0 && value)
            b->only = value;
        else if (strcmp(argv[i], "--svg") == 0 && value && !(b->svg = fopen(value, "w")))
            bench_die("cannot write %s", value);
        else if (strcmp(argv[i], "--svg") != 0 || !value)
            bench_die("unknown argument %s; see the top of bench/partitions.c", argv[i]);
    }
}

int main(int argc, char **argv)
{
    struct bench b = {.events = 1e9, .split_after_s = 600, .partitions = PARTITIONS};

    read_args(&b, argc, argv);
    if (b.svg)
        fprintf(b.svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n",
                PLOT_LEFT + PLOT_WIDTH + 10,
                (int)(sizeof(workloads) / sizeof(*workloads) * sizeof(rates) / sizeof(*rates)) *
                    PLOT_ROW);
    for (size_t i = 0; i < sizeof(workloads) / sizeof(*workloads); i++) {
        if (!b.only || strstr(workloads[i].name, b.only))
            report(&b, &workloads[i]);
    }
    if (b.svg && (fputs("</svg>\n", b.svg) < 0 || fclose(b.svg) != 0))
        bench_die("cannot write the plot");
    return 0;
}
