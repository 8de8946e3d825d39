/*
 * db/faults_test.c: faults strike whom they are meant for, as often as they are meant to, and what
 * they say about "done" and "not done" is true.
 */
#include "world.h"

#include <holdfast/faults.h>

#include <string.h>

#include "base/base.h"

#define TABLE                                                                                      \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"      \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}"
#define PUT "{'TableName':'tab','Item':{'pk':{'S':'a'},'n':{'N':'1'}}}"
#define GET "{'TableName':'tab','Key':{'pk':{'S':'a'}}}"
#define GOT "{'Item':{'n':{'N':'1'},'pk':{'S':'a'}}}"

/* The world's database becomes the faulty one; the engine stays inside of it. */
static struct world open_faulty(struct test *t, struct hf_db **engine)
{
    struct world w = world_open(t, "memory:");

    *engine = w.db;
    CHECK_OK(hf_faulty_open(w.scope, *engine, &w.db));
    world_ok(&w, "CreateTable", TABLE);
    return w;
}

static void close_faulty(struct world *w, struct hf_db *engine)
{
    CHECK_OK(hf_engine_check(w->scope, engine, NULL));
    hf_db_close(w->db);
    hf_scope_free(w->scope);
}

static void set(struct world *w, struct hf_fault fault)
{
    CHECK_OK(hf_faulty_set(w->scope, w->db, &fault, 1));
}

static void fails(struct world *w, const char *operation, const char *json, const char *exception)
{
    struct hf_str answer = world_call(w, operation, json);

    CHECK(answer.len > 0 && memmem(answer.ptr, answer.len, exception, strlen(exception)) != NULL);
}

TEST(faulty, without_faults_it_is_the_inner_database)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    CHECK_JSON(&w, "{}", "PutItem", PUT);
    CHECK_JSON(&w, GOT, "GetItem", GET);
    close_faulty(&w, engine);
}

TEST(faulty, needs_a_database)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_db *db;

    CHECK_STATUS(HF_INVALID, hf_faulty_open(s, NULL, &db));
    CHECK(!db);
    hf_scope_free(s);
}

TEST(faulty, a_throttled_call_does_nothing)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w,
        (struct hf_fault){.kind = HF_FAULT_THROTTLE, .operation = HF_STR("PutItem"), .count = 1});
    fails(&w, "PutItem", PUT, "#ProvisionedThroughputExceededException");
    CHECK(hf_scope_error(w.scope)->may_retry);
    CHECK(!hf_scope_error(w.scope)->may_have_happened);
    CHECK_JSON(&w, "{}", "GetItem", GET);
    CHECK_JSON(&w, "{}", "PutItem", PUT); /* the count is used up */
    close_faulty(&w, engine);
}

TEST(faulty, a_lost_answer_is_of_a_call_that_was_done)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_LOST_ANSWER,
                              .operation = HF_STR("PutItem"),
                              .count = 1});
    fails(&w, "PutItem", PUT, "#InternalServerError");
    CHECK(hf_scope_error(w.scope)->may_have_happened);
    CHECK_JSON(&w, GOT, "GetItem", GET);
    set(&w, (struct hf_fault){.kind = HF_FAULT_LOST_ANSWER});
    fails(&w, "GetItem", GET, "#InternalServerError");
    CHECK(!hf_scope_error(w.scope)->may_have_happened); /* a read changes nothing */
    close_faulty(&w, engine);
}

/* The other half: the same doubt, but it was not done. */
TEST(faulty, a_lost_request_is_of_a_call_that_was_not_done)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_LOST_REQUEST, .count = 2});
    fails(&w, "PutItem", PUT, "#InternalServerError");
    CHECK_STATUS(HF_IO, hf_scope_error(w.scope)->status);
    CHECK(hf_scope_error(w.scope)->may_retry);
    CHECK(hf_scope_error(w.scope)->may_have_happened);
    fails(&w, "GetItem", GET, "#InternalServerError");
    CHECK(!hf_scope_error(w.scope)->may_have_happened); /* a read changes nothing */
    CHECK_JSON(&w, "{}", "GetItem", GET);
    close_faulty(&w, engine);
}

TEST(faulty, an_error_is_of_a_call_that_was_not_done)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_ERROR, .operation = HF_STR("PutItem"), .count = 1});
    fails(&w, "PutItem", PUT, "#InternalServerError");
    CHECK(!hf_scope_error(w.scope)->may_have_happened);
    CHECK_JSON(&w, "{}", "GetItem", GET);
    close_faulty(&w, engine);
}

/* A call that fails by itself says why, and not that its answer was lost. */
TEST(faulty, a_lost_answer_needs_an_answer)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_LOST_ANSWER});
    fails(&w, "GetItem", "{'TableName':'nope','Key':{'pk':{'S':'a'}}}",
          "#ResourceNotFoundException");
    close_faulty(&w, engine);
}

TEST(faulty, a_conflict_is_for_writes_and_transactions)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_CONFLICT});
    fails(&w, "PutItem", PUT, "#TransactionConflictException");
    CHECK_JSON(&w, "{}", "GetItem", GET);
    CHECK_JSON(&w,
               "{'__type':'com.amazonaws.dynamodb.v20120810#TransactionCanceledException',"
               "'message':'Transaction cancelled, please refer cancellation reasons for specific "
               "reasons [TransactionConflict, None]','CancellationReasons':[{'Code':"
               "'TransactionConflict','Message':'Transaction is ongoing for the item'},{'Code':"
               "'None'}]}",
               "TransactWriteItems",
               "{'TransactItems':[{'Put':" PUT "},{'Delete':{'TableName':'tab','Key':{'pk':{'S':"
               "'b'}}}}]}");
    close_faulty(&w, engine);
}

TEST(faulty, half_of_a_batch_is_handed_back)
{
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_UNPROCESSED, .count = 3});
    CHECK_JSON(&w,
               "{'UnprocessedItems':{'tab':[{'PutRequest':{'Item':{'pk':{'S':'b'}}}},"
               "{'DeleteRequest':{'Key':{'pk':{'S':'c'}}}}]}}",
               "BatchWriteItem",
               "{'RequestItems':{'tab':[{'PutRequest':{'Item':{'pk':{'S':'a'}}}},{'PutRequest':"
               "{'Item':{'pk':{'S':'b'}}}},{'DeleteRequest':{'Key':{'pk':{'S':'c'}}}}]}}");
    CHECK_JSON(&w, "{'Responses':{},'UnprocessedKeys':{'tab':{'Keys':[{'pk':{'S':'a'}}]}}}",
               "BatchGetItem", "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'a'}}]}}}");
    CHECK_JSON(&w,
               "{'Responses':{'tab':[{'pk':{'S':'a'}}]},'UnprocessedKeys':{'tab':{'Keys':[{'pk':"
               "{'S':'b'}}]}}}",
               "BatchGetItem",
               "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'a'}},{'pk':{'S':'b'}}]}}}");
    CHECK_JSON(&w, "{'Responses':{'tab':[]},'UnprocessedKeys':{}}", "BatchGetItem",
               "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'b'}}]}}}");
    close_faulty(&w, engine);
}

TEST(faulty, tables_operations_skips_and_counts_are_kept_to)
{
    const struct hf_fault *faults;
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);
    size_t len;

    set(&w, (struct hf_fault){.kind = HF_FAULT_ERROR,
                              .table = HF_STR("tab"),
                              .operation = HF_STR("TransactWriteItems"),
                              .skip = 1,
                              .count = 1});
    CHECK_JSON(&w, "{}", "PutItem", PUT);
    CHECK_JSON(&w, "{}", "TransactWriteItems", "{'TransactItems':[{'Put':" PUT "}]}");
    fails(&w, "TransactWriteItems", "{'TransactItems':[{'Put':" PUT "}]}", "#InternalServerError");
    CHECK_JSON(&w, "{}", "TransactWriteItems", "{'TransactItems':[{'Put':" PUT "}]}");
    CHECK_OK(hf_faulty_get(w.scope, w.db, &faults, &len));
    CHECK_INT(1, len);
    CHECK_INT(1, faults[0].struck);
    CHECK(hf_str_equal(faults[0].table, HF_STR("tab")));
    set(&w, (struct hf_fault){.kind = HF_FAULT_ERROR, .table = HF_STR("other")});
    CHECK_JSON(&w, GOT, "GetItem", GET);
    CHECK_OK(hf_faulty_set(w.scope, w.db, NULL, 0));
    CHECK_OK(hf_faulty_get(w.scope, w.db, &faults, &len));
    CHECK_INT(0, len);
    close_faulty(&w, engine);
}

TEST(faulty, a_probability_strikes_about_so_often)
{
    unsigned struck = 0;
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);

    set(&w, (struct hf_fault){.kind = HF_FAULT_THROTTLE, .probability = 0.25});
    for (int i = 0; i < 2000; i++) {
        hf_scope_reset(w.scope);
        struck += hf_list_tables(w.scope, w.db, &(struct hf_list_tables){0}, NULL) != HF_OK;
    }
    CHECK(struck > 400 && struck < 600);
    close_faulty(&w, engine);
}

/* A latency goes with what strikes behind it; and where the sync is pending, so is the latency. */
TEST(faulty, latencies_add_up_and_may_be_owed)
{
    struct hf_fault faults[] = {{.kind = HF_FAULT_LATENCY, .latency_ms = 300000},
                                {.kind = HF_FAULT_LATENCY, .latency_ms = 1},
                                {.kind = HF_FAULT_THROTTLE}};
    struct hf__pending_sync pending = {0};
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);
    int64_t start;

    CHECK_OK(hf_faulty_set(w.scope, w.db, faults, 3));
    hf__scope_set_pending_sync(w.scope, &pending);
    CHECK_STATUS(HF_THROTTLED, hf_list_tables(w.scope, w.db, &(struct hf_list_tables){0}, NULL));
    CHECK_INT(300001, pending.delay_ms);
    hf__scope_set_pending_sync(w.scope, NULL);
    set(&w, (struct hf_fault){.kind = HF_FAULT_LATENCY, .latency_ms = 60000});
    start = t->elapsed_us;
    CHECK_OK(hf_list_tables(w.scope, w.db, &(struct hf_list_tables){0}, NULL));
    CHECK_INT(60000000, t->elapsed_us - start); /* by the env's sleep */
    close_faulty(&w, engine);
}

TEST(faulty, what_is_no_fault_is_refused_and_the_old_ones_stay)
{
    static const struct {
        struct hf_fault fault;
        const char *says;
    } bad[] = {
        {{.kind = 0}, "unknown kind of fault 0"},
        {{.kind = HF_FAULT_LOST_REQUEST + 1}, "unknown kind of fault 8"},
        {{.kind = HF_FAULT_ERROR, .operation = {"PutItems", 8}}, "unknown operation PutItems"},
        {{.kind = HF_FAULT_ERROR, .probability = 1.01}, "between 0 and 1"},
        {{.kind = HF_FAULT_ERROR, .probability = -0.1}, "between 0 and 1"},
        {{.kind = HF_FAULT_LATENCY}, "from 1 to 600000"},
        {{.kind = HF_FAULT_LATENCY, .latency_ms = 600001}, "from 1 to 600000"},
    };
    static struct hf_fault many[HF_FAULTS_MAX + 1];
    const struct hf_fault *faults;
    struct hf_db *engine;
    struct world w = open_faulty(t, &engine);
    size_t len;

    for (size_t i = 0; i < HF_FAULTS_MAX + 1; i++)
        many[i].kind = HF_FAULT_THROTTLE;
    CHECK_OK(hf_faulty_set(w.scope, w.db, many, HF_FAULTS_MAX));
    CHECK_STATUS(HF_INVALID, hf_faulty_set(w.scope, w.db, many, HF_FAULTS_MAX + 1));
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        CHECK_STATUS(HF_INVALID, hf_faulty_set(w.scope, w.db, &bad[i].fault, 1));
        CHECK(strstr(hf_scope_error_text(w.scope), bad[i].says) != NULL);
    }
    CHECK_OK(hf_faulty_get(w.scope, w.db, &faults, &len));
    CHECK_INT(HF_FAULTS_MAX, len);
    CHECK_STATUS(HF_INVALID, hf_faulty_set(w.scope, engine, many, 1));
    CHECK_STATUS(HF_INVALID, hf_faulty_get(w.scope, engine, &faults, &len));
    close_faulty(&w, engine);
}
