/*
 * db/metrics_test.c: calls are counted once each, where they belong. (n) is an invariant of
 * metrics.c.
 */
#include "world.h"

#include <holdfast/faults.h>
#include <holdfast/metrics.h>

#include <pthread.h>
#include <string.h>

#include "base/base.h"
#include "db/db.h"
#include "db/prometheus.h"

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"      \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}"
#define PUT "{'TableName':'tab','Item':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}"
#define GET "{'TableName':'tab','Key':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}"

static struct world open_counted(struct test *t, struct hf_db **faulty, struct hf_str name)
{
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", TABLE);
    CHECK_OK(hf_faulty_open(w.scope, w.db, faulty));
    CHECK_OK(
        hf_metrics_open(w.scope, *faulty, HF_OPTIONS(hf_metrics_options, .name = name), &w.db));
    return w;
}

static void close_counted(struct world *w)
{
    hf_db_close(w->db);
    hf_scope_free(w->scope);
}

static void set(struct world *w, struct hf_db *faulty, struct hf_fault fault)
{
    CHECK_OK(hf_faulty_set(w->scope, faulty, &fault, 1));
}

/* What is told of that operation; zero when nothing is. */
static struct hf_metrics_op told(struct world *w, enum hf_op op)
{
    struct hf_metrics metrics;

    CHECK_OK(hf_metrics_get(w->scope, w->db, &metrics));
    for (size_t i = 0; i < metrics.ops_len; i++)
        if (metrics.ops[i].op == op)
            return metrics.ops[i];
    return (struct hf_metrics_op){.op = op};
}

TEST(metrics, nothing_is_told_before_the_first_call)
{
    struct hf_db *faulty;
    struct world w = open_counted(t, &faulty, HF_STR(""));
    struct hf_metrics metrics;

    CHECK_OK(hf_metrics_get(w.scope, w.db, &metrics));
    CHECK_INT(0, metrics.ops_len);
    close_counted(&w);
}

/* (1) */
TEST(metrics, calls_are_counted_by_operation_and_status)
{
    struct hf_db *faulty;
    struct world w = open_counted(t, &faulty, HF_STR(""));
    struct hf_metrics_op op;

    for (int i = 0; i < 3; i++)
        world_ok(&w, "PutItem", PUT);
    for (int i = 0; i < 3; i++)
        world_ok(&w, "GetItem", GET);
    world_call(&w, "GetItem", "{'TableName':'nope','Key':{'pk':{'S':'a'}}}");
    set(&w, faulty, (struct hf_fault){.kind = HF_FAULT_LOST_ANSWER, .count = 2});
    world_call(&w, "PutItem", PUT);
    world_call(&w, "GetItem", GET);
    op = told(&w, HF_OP_PUT_ITEM);
    CHECK_STR("PutItem", op.operation);
    CHECK_INT(4, op.calls);
    CHECK_INT(1, op.errors);
    CHECK_INT(1, op.maybe);
    CHECK_INT(2, op.statuses_len);
    CHECK(op.statuses[0].status == HF_OK && op.statuses[0].calls == 3);
    CHECK(op.statuses[1].status == HF_INTERNAL && op.statuses[1].calls == 1);
    CHECK(op.write_units == 3 && op.read_units == 0);
    op = told(&w, HF_OP_GET_ITEM);
    CHECK_INT(5, op.calls);
    CHECK_INT(2, op.errors);
    CHECK_INT(0, op.maybe);
    CHECK(op.statuses[1].status == HF_NOT_FOUND && op.statuses[1].calls == 1);
    CHECK(op.write_units == 0 && op.read_units == 1.5);
    CHECK_INT(0, told(&w, HF_OP_SCAN).calls);
    close_counted(&w);
}

TEST(metrics, times_fall_into_buckets)
{
    struct hf_db *faulty;
    struct world w = open_counted(t, &faulty, HF_STR(""));
    struct hf_metrics_op op;

    world_ok(&w, "GetItem", GET); /* 0 us */
    set(&w, faulty, (struct hf_fault){.kind = HF_FAULT_LATENCY, .latency_ms = 1});
    world_ok(&w, "GetItem", GET);
    set(&w, faulty, (struct hf_fault){.kind = HF_FAULT_LATENCY, .latency_ms = 60000});
    world_ok(&w, "GetItem", GET);
    op = told(&w, HF_OP_GET_ITEM);
    CHECK_INT(60001000, op.duration_us);
    for (size_t i = 0; i < HF_METRICS_BUCKETS; i++) /* 512 us <= 1 ms < 1024 us = 8 us * 2^7 */
        CHECK_INT(i == 0 || i == 7 || i == HF_METRICS_BUCKETS - 1, op.buckets[i]);
    close_counted(&w);
}

/* A bound is in the next bucket: "less than". */
TEST(metrics, buckets_double)
{
    CHECK_INT(0, time_bucket(0));
    CHECK_INT(0, time_bucket(7999));
    for (size_t i = 0; i < TIME_BUCKETS - 1; i++) {
        uint64_t bound = (uint64_t)TIME_BUCKET_FIRST_NS << i;

        CHECK_INT(i, time_bucket(bound - 1));
        CHECK_INT(i + 1, time_bucket(bound));
    }
    CHECK_INT(TIME_BUCKETS - 1, time_bucket(UINT64_MAX));
}

TEST(metrics, the_text_is_as_prometheus_reads_it)
{
    static const char *const lines[] = {
        "# HELP holdfast_calls_total Calls by how they ended.\n# TYPE holdfast_calls_total "
        "counter\nholdfast_calls_total{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\",status="
        "\"HF_OK\"} 2\nholdfast_calls_total{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\","
        "status=\"HF_NOT_FOUND\"} 1\n# HELP holdfast_calls_maybe",
        "holdfast_calls_maybe_done_total{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\"} 0\n",
        "# TYPE holdfast_call_seconds histogram\n",
        ",operation=\"GetItem\",le=\"0.000008\"} 2\n",
        ",operation=\"GetItem\",le=\"0.000512\"} 2\n",
        ",operation=\"GetItem\",le=\"0.001024\"} 3\n",
        ",operation=\"GetItem\",le=\"8.388608\"} 3\n",
        ",operation=\"GetItem\",le=\"+Inf\"} 3\n",
        "_sum{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\"} 0.001000000\n",
        "holdfast_call_seconds_count{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\"} 3\n",
        "holdfast_read_units_total{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\"} 1.000\n",
        "holdfast_write_units_total{database=\"a\\\"b\\\\c\\nd\",operation=\"GetItem\"} 0.000\n",
    };
    struct hf_db *faulty;
    struct world w = open_counted(t, &faulty, HF_STR("a\"b\\c\nd"));
    struct hf_str text;

    world_ok(&w, "GetItem", GET);
    world_call(&w, "GetItem", "{'TableName':'nope','Key':{'pk':{'S':'a'}}}");
    set(&w, faulty, (struct hf_fault){.kind = HF_FAULT_LATENCY, .latency_ms = 1});
    world_ok(&w, "GetItem", GET);
    CHECK_OK(hf_metrics_text(w.scope, w.db, &text));
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        if (!memmem(text.ptr, text.len, lines[i], strlen(lines[i])))
            print_error("not in the text: %s\n", lines[i]);
        CHECK(memmem(text.ptr, text.len, lines[i], strlen(lines[i])) != NULL);
    }
    CHECK(text.ptr[text.len - 1] == '\n');
    close_counted(&w);
}

TEST(metrics, without_a_name_there_is_no_label_for_it)
{
    static const char line[] = "holdfast_read_units_total{operation=\"GetItem\"} 0.500\n";
    struct hf_db *faulty;
    struct world w = open_counted(t, &faulty, HF_STR(""));
    struct hf_str text;

    world_ok(&w, "GetItem", GET);
    CHECK_OK(hf_metrics_text(w.scope, w.db, &text));
    CHECK(memmem(text.ptr, text.len, line, strlen(line)) != NULL);
    CHECK(memmem(text.ptr, text.len, "database", 8) == NULL);
    close_counted(&w);
}

TEST(metrics, what_cannot_be)
{
    struct hf_db *faulty;
    struct world w = open_counted(t, &faulty, HF_STR(""));
    struct hf_metrics metrics;
    struct hf_db *db = faulty;
    struct hf_str text;
    char name[257];

    memset(name, 'x', sizeof(name));
    CHECK_STATUS(HF_INVALID, hf_metrics_get(w.scope, faulty, &metrics));
    CHECK_STATUS(HF_INVALID, hf_metrics_get(w.scope, NULL, &metrics));
    CHECK_STATUS(HF_INVALID, hf_metrics_text(w.scope, faulty, &text));
    CHECK_STATUS(HF_INVALID, hf_metrics_open(w.scope, NULL, NULL, &db));
    CHECK(db == NULL);
    CHECK_STATUS(HF_INVALID,
                 hf_metrics_open(w.scope, faulty,
                                 HF_OPTIONS(hf_metrics_options, .name = hf_str_of(name, 257)),
                                 &db));
    CHECK_STATUS(HF_INVALID,
                 hf_metrics_open(w.scope, faulty,
                                 HF_OPTIONS(hf_metrics_options, .name = HF_STR("\xFF")), &db));
    close_counted(&w);
}

/* ---- threads, memory, cost ------------------------------------------------------------------ */

static enum hf_status idle_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                const void *request, void *response)
{
    (void)s, (void)db, (void)op, (void)request, (void)response;
    return HF_OK;
}

static void idle_close(struct hf_db *db)
{
    (void)db;
}

static const struct db_calls idle_calls = {.call = idle_call, .close = idle_close};

TEST(metrics, any_failing_allocation_is_an_error_and_no_leak)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_db idle = {.calls = &idle_calls}, *db = NULL;
        struct hf_scope *s = hf_scope_new(test_env(t));
        enum hf_status status =
            s ? hf_metrics_open(s, &idle, HF_OPTIONS(hf_metrics_options, .name = HF_STR("x")), &db)
              : HF_NOMEM;
        struct hf_str text;

        CHECK((status == HF_OK) == (db != NULL));
        if (status == HF_OK)
            status = hf_list_tables(s, db, &(struct hf_list_tables){0}, NULL);
        if (status == HF_OK) {
            status = hf_metrics_text(s, db, &text);
            CHECK((status == HF_OK) == (text.ptr != NULL));
        }
        ALLOC_SWEEP_STOP(t);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_db_close(db);
        hf_scope_free(s);
    }
}

enum { THREADS = 4, CALLS = 20000 };

struct worker {
    struct test *t;
    struct hf_db *db;
    pthread_t thread;
};

static void *work(void *user)
{
    struct worker *me = user;
    struct hf_scope *s = hf_scope_new(test_env(me->t));
    struct hf_get_item request = {0};
    struct hf_get_item_result result;

    for (int i = 0; i < CALLS; i++)
        if (hf_get_item(s, me->db, &request, &result) != HF_OK)
            break;
    hf_scope_free(s);
    return NULL;
}

/* No count is lost, and (2) while they are counted. */
TEST(metrics, threads_lose_no_count)
{
    struct hf_db idle = {.calls = &idle_calls}, *db;
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct worker workers[THREADS];
    struct hf_metrics metrics;
    uint64_t seen = 0;

    CHECK_OK(hf_metrics_open(s, &idle, NULL, &db));
    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.t = t, .db = db};
        CHECK_INT(0, pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    for (int i = 0; i < 20; i++) {
        CHECK_OK(hf_metrics_get(s, db, &metrics));
        CHECK(metrics.ops_len == 0 || metrics.ops[0].calls >= seen);
        seen = metrics.ops_len ? metrics.ops[0].calls : 0;
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].thread, NULL);
    CHECK_OK(hf_metrics_get(s, db, &metrics));
    CHECK_INT(1, metrics.ops_len);
    CHECK_INT(THREADS * CALLS, metrics.ops[0].calls);
    CHECK_INT(THREADS * CALLS, metrics.ops[0].buckets[0]);
    hf_db_close(db);
    hf_scope_free(s);
}
