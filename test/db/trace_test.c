/*
 * db/trace_test.c: what is told of calls, and what is not. (n) is an invariant of trace.c.
 */
#include "world.h"

#include <holdfast/faults.h>
#include <holdfast/retry.h>
#include <holdfast/trace.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/base.h"
#include "db/call_info.h"

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"      \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}"

enum { TOLD_MAX = 64 };

struct diary {
    struct hf_trace_call before[TOLD_MAX], after[TOLD_MAX];
    int before_len, after_len;
    char lines[8][256];
    int lines_len;
    struct test *t;
};

static void note_before(struct hf_trace_call *call, void *user)
{
    struct diary *d = user;

    d->before[d->before_len++ % TOLD_MAX] = *call;
    CHECK(call->note == NULL);
    call->note = &d->before[d->before_len];
}

static void note_after(struct hf_trace_call *call, void *user)
{
    struct diary *d = user;

    d->after[d->after_len++ % TOLD_MAX] = *call;
}

static struct world open_traced(struct test *t, struct diary *d, struct hf_db **faulty)
{
    struct world w = world_open(t, "memory:");

    memset(d, 0, sizeof(*d));
    world_ok(&w, "CreateTable", TABLE);
    CHECK_OK(hf_faulty_open(w.scope, w.db, faulty));
    CHECK_OK(hf_trace_open(w.scope, *faulty,
                           HF_OPTIONS(hf_trace_options, .before = note_before, .after = note_after,
                                      .user = d),
                           &w.db));
    return w;
}

static void close_traced(struct world *w)
{
    hf_db_close(w->db);
    hf_scope_free(w->scope);
}

static const struct hf_trace_call *last(const struct diary *d)
{
    return &d->after[d->after_len - 1];
}

TEST(trace, a_call_is_told_before_and_after)
{
    struct diary d;
    struct hf_db *faulty;
    struct world w = open_traced(t, &d, &faulty);
    struct hf_fault slow = {.kind = HF_FAULT_LATENCY, .latency_ms = 250};

    CHECK_OK(hf_faulty_set(w.scope, faulty, &slow, 1));
    world_ok(&w, "PutItem",
             "{'TableName':'tab','Item':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}");
    CHECK_INT(1, d.before_len);
    CHECK_INT(1, d.after_len);
    CHECK_INT(1, d.before[0].number);
    CHECK_STR("PutItem", d.before[0].operation);
    CHECK_STR("tab", d.before[0].table);
    CHECK_INT(1, d.before[0].items_sent);
    CHECK_INT(0, d.before[0].duration_us);
    CHECK_INT(1, last(&d)->number); /* (2) */
    CHECK(last(&d)->note == &d.before[1]);
    CHECK_INT(HF_OP_PUT_ITEM, last(&d)->op);
    CHECK_STATUS(HF_OK, last(&d)->status);
    CHECK_INT(250000, last(&d)->duration_us);
    CHECK(last(&d)->write_units == 1 && last(&d)->read_units == 0);
    world_ok(&w, "GetItem",
             "{'TableName':'tab','Key':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}");
    CHECK_INT(2, last(&d)->number);
    CHECK_INT(1, last(&d)->items_returned);
    CHECK(last(&d)->write_units == 0 && last(&d)->read_units == 0.5);
    close_traced(&w);
}

/* (3), and what the error says is told. */
TEST(trace, failures_are_told_and_stay_the_scopes)
{
    struct diary d;
    struct hf_db *faulty;
    struct world w = open_traced(t, &d, &faulty);
    struct hf_fault lost = {.kind = HF_FAULT_LOST_REQUEST};

    world_call(&w, "GetItem", "{'TableName':'nope','Key':{'pk':{'S':'a'}}}");
    CHECK_STATUS(HF_NOT_FOUND, last(&d)->status);
    CHECK(!last(&d)->may_retry && !last(&d)->may_have_happened);
    CHECK_STATUS(HF_NOT_FOUND, hf_scope_error(w.scope)->status);
    CHECK_OK(hf_faulty_set(w.scope, faulty, &lost, 1));
    world_call(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    CHECK_STATUS(HF_IO, last(&d)->status);
    CHECK(last(&d)->may_retry && last(&d)->may_have_happened);
    CHECK(hf_scope_error(w.scope)->may_have_happened);
    close_traced(&w);
}

/* Counts, tables and units of the operations that have them. */
TEST(trace, operations_are_told_by_their_counts)
{
    static const struct {
        const char *operation, *request;
        const char *table;
        size_t sent, returned;
        double read, write;
    } calls[] = {
        {"BatchWriteItem",
         "{'RequestItems':{'tab':[{'PutRequest':{'Item':{'pk':{'S':'a'}}}},"
         "{'PutRequest':{'Item':{'pk':{'S':'b'}}}}]},'ReturnConsumedCapacity':'TOTAL'}",
         "tab", 2, 0, 0, 2},
        {"UpdateItem",
         "{'TableName':'tab','Key':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'INDEXES'}", "tab", 1,
         0, 0, 1},
        {"BatchGetItem",
         "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'a'}},{'pk':{'S':'b'}},{'pk':{'S':'x'}}]}},"
         "'ReturnConsumedCapacity':'TOTAL'}",
         "tab", 3, 2, 1.5, 0},
        {"Query",
         "{'TableName':'tab','KeyConditionExpression':'pk = :p','ExpressionAttributeValues':"
         "{':p':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}",
         "tab", 0, 1, 0.5, 0},
        {"Scan", "{'TableName':'tab','ReturnConsumedCapacity':'TOTAL'}", "tab", 0, 2, 0.5, 0},
        {"Scan", "{'TableName':'tab'}", "tab", 0, 2, 0, 0},
        {"TransactWriteItems",
         "{'TransactItems':[{'Delete':{'TableName':'tab','Key':{'pk':{'S':'b'}}}}],"
         "'ReturnConsumedCapacity':'TOTAL'}",
         "tab", 1, 0, 0, 2},
        {"TransactGetItems",
         "{'TransactItems':[{'Get':{'TableName':'tab','Key':{'pk':{'S':'a'}}}},"
         "{'Get':{'TableName':'tab','Key':{'pk':{'S':'b'}}}}],'ReturnConsumedCapacity':'TOTAL'}",
         "tab", 2, 1, 4, 0},
        {"ExecuteStatement",
         "{'Statement':'\\n SeLeCT * FROM tab','ReturnConsumedCapacity':'TOTAL'}", NULL, 1, 1, 0.5,
         0},
        {"ExecuteTransaction",
         "{'TransactStatements':[{'Statement':'DELETE FROM tab WHERE pk=?','Parameters':"
         "[{'S':'z'}]}],'ReturnConsumedCapacity':'TOTAL'}",
         NULL, 1, 0, 0, 2},
        {"ExecuteTransaction",
         "{'TransactStatements':[{'Statement':'SELECT * FROM tab WHERE pk=?','Parameters':"
         "[{'S':'a'}]}],'ReturnConsumedCapacity':'TOTAL'}",
         NULL, 1, 1, 2, 0},
        {"BatchExecuteStatement",
         "{'Statements':[{'Statement':'SELECT * FROM tab WHERE pk=?','Parameters':[{'S':'a'}]}],"
         "'ReturnConsumedCapacity':'TOTAL'}",
         NULL, 1, 1, 0.5, 0},
        {"DeleteItem",
         "{'TableName':'tab','Key':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}", "tab", 1, 0,
         0, 1},
        {"ListTables", "{}", NULL, 0, 0, 0, 0},
    };
    struct diary d;
    struct hf_db *faulty;
    struct world w = open_traced(t, &d, &faulty);

    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        world_ok(&w, calls[i].operation, calls[i].request);
        CHECK_STR(calls[i].operation, last(&d)->operation);
        CHECK_STR(calls[i].table, last(&d)->table);
        CHECK_INT(calls[i].sent, last(&d)->items_sent);
        CHECK_INT(calls[i].returned, last(&d)->items_returned);
        CHECK_INT(calls[i].read * 1000, last(&d)->read_units * 1000);
        CHECK_INT(calls[i].write * 1000, last(&d)->write_units * 1000);
    }
    close_traced(&w);
}

/* An empty request of every operation, to the table and the counts, is no mistake. */
TEST(trace, requests_without_anything_have_no_table)
{
    static const char zeros[4096];

    for (int op = 0; op < HF_OP_COUNT; op++) {
        CHECK(hf__op((enum hf_op)op)->request->size <= sizeof(zeros));
        CHECK(hf__db_call_table((enum hf_op)op, zeros).ptr == NULL);
        CHECK(!hf__db_call_names((enum hf_op)op, zeros, HF_STR("")));
        CHECK(hf__db_call_sent((enum hf_op)op, zeros) <= 1);
        CHECK_INT(0, hf__db_call_returned((enum hf_op)op, zeros));
        CHECK(hf__db_call_units((enum hf_op)op, zeros, zeros).read == 0);
    }
}

/* Inside of a retry every attempt is told, around one every call. */
TEST(trace, attempts_inside_and_calls_outside)
{
    struct diary inside = {0}, outside = {0};
    struct hf_fault error = {.kind = HF_FAULT_ERROR, .count = 2};
    struct world w = world_open(t, "memory:");
    struct hf_db *faulty;

    CHECK_OK(hf_faulty_open(w.scope, w.db, &faulty));
    CHECK_OK(hf_faulty_set(w.scope, faulty, &error, 1));
    CHECK_OK(hf_trace_open(w.scope, faulty,
                           HF_OPTIONS(hf_trace_options, .after = note_after, .user = &inside),
                           &w.db));
    CHECK_OK(hf_retry_open(w.scope, w.db, NULL, &w.db));
    CHECK_OK(hf_trace_open(w.scope, w.db,
                           HF_OPTIONS(hf_trace_options, .after = note_after, .user = &outside),
                           &w.db));
    world_ok(&w, "ListTables", "{}");
    CHECK_INT(3, inside.after_len);
    CHECK_STATUS(HF_INTERNAL, inside.after[1].status);
    CHECK_STATUS(HF_OK, inside.after[2].status);
    CHECK_INT(1, outside.after_len);
    CHECK_STATUS(HF_OK, outside.after[0].status);
    close_traced(&w);
}

/* ---- the log -------------------------------------------------------------------------------- */

static struct diary *logged;

static void keep_line(enum hf_log_level level, struct hf_str line, void *user)
{
    (void)user;
    snprintf(logged->lines[logged->lines_len++ % 8], sizeof(logged->lines[0]), "%d %.*s",
             (int)level, HF_FMT(line));
}

/* (1): the key, the value and the message of the error are nowhere in the lines. */
TEST(trace, a_line_for_each_call_has_no_secrets)
{
    struct diary d = {0};
    struct hf_env env = *test_env(t);
    struct world w = world_open(t, "memory:");
    struct hf_fault lost = {.kind = HF_FAULT_LOST_ANSWER, .count = 1};
    struct hf_db *faulty;

    logged = &d;
    env.log = keep_line;
    CHECK_OK(hf_faulty_open(w.scope, w.db, &faulty));
    CHECK_OK(hf_trace_open(w.scope, faulty,
                           HF_OPTIONS(hf_trace_options, .env = &env, .log = HF_LOG_DEBUG), &w.db));
    world_ok(&w, "CreateTable", TABLE);
    world_ok(&w, "PutItem",
             "{'TableName':'tab','Item':{'pk':{'S':'hush'}},'ReturnConsumedCapacity':'TOTAL'}");
    CHECK_OK(hf_faulty_set(w.scope, faulty, &lost, 1));
    world_call(&w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'hush'}}}");
    world_call(&w, "GetItem", "{'TableName':'tab','Key':{'hush':{'S':'hush'}}}");
    CHECK_INT(4, d.lines_len);
    CHECK_STR("7 call=2 operation=PutItem table=tab status=HF_OK us=0 sent=1 returned=0 read=0 "
              "write=1",
              hf_str_from(d.lines[1]));
    CHECK_STR("7 call=3 operation=DeleteItem table=tab status=HF_INTERNAL us=0 sent=1 returned=0 "
              "read=0 write=0 maybe=done",
              hf_str_from(d.lines[2]));
    for (int i = 0; i < d.lines_len; i++)
        CHECK(strstr(d.lines[i], "hush") == NULL);
    close_traced(&w);
}

/* ---- opening -------------------------------------------------------------------------------- */

TEST(trace, options_that_cannot_be)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_db none = {0}, *db = &none;

    CHECK_STATUS(HF_INVALID, hf_trace_open(s, NULL, NULL, &db));
    CHECK(db == NULL);
    CHECK_STATUS(HF_INVALID, hf_trace_open(s, &none, HF_OPTIONS(hf_trace_options, .log = 5), &db));
    hf_scope_free(s);
}

static void not_closed(struct hf_db *db)
{
    (void)db;
}

TEST(trace, opening_without_memory_leaves_the_inner_one_open)
{
    static const struct db_calls calls = {.close = not_closed};
    struct hf_db innermost = {.calls = &calls};

    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_db *inner = NULL, *db = NULL;
        enum hf_status status = s ? hf_faulty_open(s, &innermost, &inner) : HF_NOMEM;

        if (status == HF_OK)
            status = hf_trace_open(s, inner, NULL, &db);
        ALLOC_SWEEP_STOP(t);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK((status == HF_OK) == (db != NULL));
        hf_db_close(db ? db : inner);
        hf_scope_free(s);
    }
}

struct worker {
    struct test *t;
    struct hf_db *db;
    pthread_t thread;
};

static void *work(void *user)
{
    struct worker *me = user;
    struct hf_scope *s = hf_scope_new(test_env(me->t));

    for (int i = 0; i < 200; i++) {
        if (hf_list_tables(s, me->db, &(struct hf_list_tables){0}, NULL) != HF_OK)
            break;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

static void count(struct hf_trace_call *call, void *user)
{
    (void)call;
    __atomic_add_fetch((int *)user, 1, __ATOMIC_RELAXED);
}

TEST(trace, threads_share_one)
{
    struct world w = world_open(t, "memory:");
    struct worker workers[2] = {{.t = t}, {.t = t}};
    int calls = 0;

    CHECK_OK(hf_trace_open(w.scope, w.db,
                           HF_OPTIONS(hf_trace_options, .after = count, .user = &calls), &w.db));
    for (size_t i = 0; i < ARRAY_LEN(workers); i++) {
        workers[i].db = w.db;
        CHECK_INT(0, pthread_create(&workers[i].thread, NULL, work, &workers[i]));
    }
    for (size_t i = 0; i < ARRAY_LEN(workers); i++)
        pthread_join(workers[i].thread, NULL);
    CHECK_INT(400, calls);
    close_traced(&w);
}
