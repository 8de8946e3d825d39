/*
 * engine/tables_test.c: operations on tables beside other work: nothing that several threads do to
 * one table at once is lost, and writers never see half of a change.
 */
#include "help.h"

/* ---- tags ----------------------------------------------------------------------------------- */

#define TAB_ARN "arn:aws:dynamodb:us-east-1:123456789012:table/tab"

static void *tag(void *arg)
{
    struct worker *worker = arg;

    for (unsigned i = 0; i < worker->rounds; i++) {
        worker->wrong +=
            is_error(callf(&worker->w, "TagResource",
                           "{'ResourceArn':'" TAB_ARN "','Tags':[{'Key':'t%u-%u','Value':'v'}]}",
                           worker->number, i));
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

TEST(tables, tags_of_several_threads_all_stay)
{
    struct world w = world_open(t, "memory:");
    struct worker workers[WORKERS_MAX];
    struct hf_str rest;
    unsigned count = 0;

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    workers_start(&w, workers, WORKERS_MAX, 6, tag, NULL);
    CHECK_INT(0, workers_join(workers, WORKERS_MAX));
    rest = world_ok(&w, "ListTagsOfResource", "{'ResourceArn':'" TAB_ARN "'}");
    while (next_text(&rest, "Key").ptr)
        count++;
    CHECK_INT(48, count);
    world_close(&w);
}

/* ---- creating and deleting ------------------------------------------------------------------ */

static void *create_same(void *arg)
{
    struct worker *worker = arg;
    struct hf_str answer = world_call(&worker->w, "CreateTable", PK_TABLE("tab", ""));

    worker->wrong = is_error(answer);
    return NULL;
}

TEST(tables, of_eight_who_create_one_table_one_does)
{
    struct world w = world_open(t, "memory:");
    struct worker workers[WORKERS_MAX];

    for (int i = 0; i < 20; i++) {
        workers_start(&w, workers, WORKERS_MAX, 1, create_same, NULL);
        CHECK_INT(WORKERS_MAX - 1, workers_join(workers, WORKERS_MAX));
        world_ok(&w, "DeleteTable", "{'TableName':'tab'}");
    }
    world_close(&w);
}

static atomic_bool stop_writing;

/* Write all sorts of things; a table that is not there is no mistake of the writer's. */
static void *write_on(void *arg)
{
    struct worker *worker = arg;
    unsigned i = worker->number;

    while (!atomic_load(&stop_writing)) {
        struct hf_str answer;

        i = i * 1664525 + 1013904223;
        if (i >> 31)
            answer = callf(&worker->w, "PutItem",
                           "{'TableName':'tab','Item':{'pk':{'S':'p%u'},'g':{'S':'g%u'},'ttl':"
                           "{'N':'%u'}}}",
                           (i >> 8) % 50, (i >> 16) % 5, 1767225000 + (i >> 20) % 1200);
        else
            answer = callf(&worker->w, "TransactWriteItems",
                           "{'TransactItems':[{'Delete':{'TableName':'tab','Key':{'pk':{'S':'p%u'}}"
                           "}},{'Update':{'TableName':'tab','Key':{'pk':{'S':'q%u'}},"
                           "'UpdateExpression':'SET g = :g','ExpressionAttributeValues':{':g':"
                           "{'S':'g%u'}}}}]}",
                           (i >> 8) % 50, (i >> 8) % 50, (i >> 16) % 5);
        if (is_error(answer) && !after(&answer, "ResourceNotFoundException").ptr)
            worker->wrong++;
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

static void call_any(struct world *w, const char *operation, const char *json)
{
    CHECK(!is_error(world_call(w, operation, json)));
    hf_scope_reset(w->scope);
}

/* Indexes, streams and expiry come and go, the table too, and after each the database is sound. */
TEST(tables, change_under_four_writers)
{
    struct world w = world_open(t, "memory:");
    struct worker workers[4];

    atomic_store(&stop_writing, false);
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    workers_start(&w, workers, 4, 0, write_on, NULL);
    for (int i = 0; i < 40; i++) {
        call_any(
            &w, "UpdateTable",
            "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'g','AttributeType':"
            "'S'}],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'by_g','KeySchema':[{"
            "'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}");
        call_any(&w, "UpdateTable", "{'TableName':'tab'" STREAM_OF("NEW_AND_OLD_IMAGES") "}");
        upkeep(&w);
        call_any(&w, "UpdateTimeToLive",
                 "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':true,'AttributeName':"
                 "'ttl'}}");
        upkeep(&w);
        CHECK_OK(hf_engine_check(w.scope, w.db, NULL)); /* beside the writers */
        call_any(&w, "UpdateTable",
                 "{'TableName':'tab','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'by_g'}}"
                 "]}");
        call_any(&w, "UpdateTable",
                 "{'TableName':'tab','StreamSpecification':{'StreamEnabled':false}}");
        call_any(&w, "UpdateTimeToLive",
                 "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':false,'AttributeName':"
                 "'ttl'}}");
        if (i % 5 == 4) {
            call_any(&w, "DeleteTable", "{'TableName':'tab'}");
            CHECK_OK(hf_engine_check(w.scope, w.db, NULL));
            call_any(&w, "CreateTable", PK_TABLE("tab", ""));
        }
    }
    atomic_store(&stop_writing, true);
    CHECK_INT(0, workers_join(workers, 4));
    world_close(&w);
}

/* A region and an account can be parts of ARNs, or there is no database. */
TEST(tables, regions_and_accounts_are_parts_of_arns)
{
    static const char too_long[] = "r23456789-123456789-123456789-123456789-123456789-123456789-"
                                   "12345";
    static const char *const bad[] = {"a b", "a:table/b", "\xff", "quo\"te", too_long};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_engine_options options = {.env = test_env(t), .no_upkeep_thread = true};
    struct hf_db *db;

    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        options.region = hf_str_from(bad[i]);
        options.account = hf_str_of(NULL, 0);
        CHECK_STATUS(HF_INVALID, hf_open(s, HF_STR("memory:"), &options, &db));
        CHECK(!db);
        options.account = options.region;
        options.region = HF_STR("local");
        CHECK_STATUS(HF_INVALID, hf_open(s, HF_STR("memory:"), &options, &db));
    }
    options.account = HF_STR(""); /* as if it were not there */
    CHECK_OK(hf_open(s, HF_STR("memory:"), &options, &db));
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- how many ------------------------------------------------------------------------------- */

#define TOO_MANY(count)                                                                            \
    "Subscriber limit exceeded: There is a limit of " #count " tables per subscriber"

TEST(tables, there_are_as_many_as_the_option_says)
{
    struct world w = world_open(t, "memory:");

    w.options.max_tables = 2;
    world_reopen(&w);
    world_ok(&w, "CreateTable", PK_TABLE("aaa", ""));
    world_ok(&w, "CreateTable", PK_TABLE("bbb", ""));
    CHECK_FAILS(&w, "LimitExceededException", TOO_MANY(2), "CreateTable", PK_TABLE("ccc", ""));
    CHECK_FAILS(&w, "ResourceInUseException", "Table already exists: aaa", "CreateTable",
                PK_TABLE("aaa", ""));
    world_ok(&w, "DeleteTable", "{'TableName':'aaa'}");
    world_ok(&w, "CreateTable", PK_TABLE("ccc", ""));
    world_close(&w);
}

/* A database that has more than it may have is opened, and none is lost. */
TEST(tables, more_than_the_option_says_stay)
{
    struct world w = world_open(t, "disk:");

    for (int i = 0; i < 4; i++)
        callf(&w, "CreateTable", PK_TABLE("tab%d", ""), i);
    w.options.max_tables = 3;
    world_reopen(&w);
    CHECK_JSON(&w, "{'TableNames':['tab0','tab1','tab2','tab3']}", "ListTables", "{}");
    CHECK_FAILS(&w, "LimitExceededException", TOO_MANY(3), "CreateTable", PK_TABLE("tab4", ""));
    world_ok(&w, "DeleteTable", "{'TableName':'tab0'}");
    CHECK_FAILS(&w, "LimitExceededException", TOO_MANY(3), "CreateTable", PK_TABLE("tab4", ""));
    world_ok(&w, "DeleteTable", "{'TableName':'tab1'}");
    world_ok(&w, "CreateTable", PK_TABLE("tab4", ""));
    world_close(&w);
}

TEST(tables, there_are_2500_of_them_by_default)
{
    struct world w = world_open(t, "memory:");

    for (int i = 0; i < 2500; i++) {
        if (is_error(callf(&w, "CreateTable", PK_TABLE("tab%d", ""), i)))
            fail_msg("table %d", i);
        hf_scope_reset(w.scope);
    }
    CHECK_FAILS(&w, "LimitExceededException", TOO_MANY(2500), "CreateTable", PK_TABLE("more", ""));
    world_close(&w);
}
