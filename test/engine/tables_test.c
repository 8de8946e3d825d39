/*
 * engine/tables_test.c: operations on tables beside other work: nothing that several threads do to
 * one table at once is lost, and writers never see half of a change.
 */
#include "help.h"

#include <sched.h>

#include "engine/engine.h"

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

/* ---- the lock of the schema ----------------------------------------------------------------- */

enum {
    PATIENCE_MS = 20000,
    READ_MS = 50 /* much longer than a change waits for readers at once */
};

static int64_t steady_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct changer {
    struct engine *e;
    atomic_bool has;
    atomic_bool lets_go;
};

static void *change_schema(void *arg)
{
    struct changer *changer = arg;

    hf__schema_lock(changer->e);
    atomic_store(&changer->has, true);
    while (!atomic_load(&changer->lets_go))
        sched_yield();
    pthread_rwlock_unlock(&changer->e->schema);
    return NULL;
}

/* During a read that takes long, a change waits. Is a second read, which found the change at the
 * lock, let in before the first has ended? */
static bool is_let_in(struct engine *e)
{
    struct changer changer = {.e = e};
    int64_t until = steady_ms() + PATIENCE_MS / 5;
    bool found = false, in = false;
    pthread_t thread;

    CHECK_INT(0, pthread_rwlock_rdlock(&e->schema));
    CHECK_INT(0, pthread_create(&thread, NULL, change_schema, &changer));
    while (!in && steady_ms() < until) {
        bool refused = pthread_rwlock_tryrdlock(&e->schema) != 0;

        if (!refused)
            pthread_rwlock_unlock(&e->schema);
        in = found && !refused;
        found = found || refused;
        sched_yield();
    }
    CHECK(!atomic_load(&changer.has));
    CHECK_INT(0, pthread_rwlock_unlock(&e->schema));
    while (!atomic_load(&changer.has))
        sched_yield();
    CHECK(pthread_rwlock_tryrdlock(&e->schema) != 0);
    atomic_store(&changer.lets_go, true);
    pthread_join(thread, NULL);
    return in;
}

/* A change of tables does not make short reads wait for the longest one. */
TEST(tables, a_change_that_waits_lets_reads_in)
{
    struct world w = world_open(t, "memory:");
    bool in = false;

    for (int i = 0; i < 5 && !in;
         i++) /* after a second it waits for good: a slow machine misses that */
        in = is_let_in(hf__engine_of(w.db));
    CHECK(in);
    world_close(&w);
}

struct overlap {
    struct engine *e;
    atomic_uint entries[2];
    atomic_bool stop;
};

/* Each read ends when the other one has begun, or after READ_MS when that cannot. */
static void read_on(struct overlap *overlap, int mine)
{
    while (!atomic_load(&overlap->stop)) {
        unsigned others;
        int64_t until;

        pthread_rwlock_rdlock(&overlap->e->schema);
        atomic_fetch_add(&overlap->entries[mine], 1);
        others = atomic_load(&overlap->entries[1 - mine]);
        until = steady_ms() + READ_MS;
        while (atomic_load(&overlap->entries[1 - mine]) == others && steady_ms() < until)
            sched_yield();
        pthread_rwlock_unlock(&overlap->e->schema);
    }
}

static void *read_first(void *arg)
{
    read_on(arg, 0);
    return NULL;
}

static void *read_second(void *arg)
{
    read_on(arg, 1);
    return NULL;
}

/* Reads of which there is always one do not keep a change out. */
TEST(tables, a_change_gets_its_turn_behind_reads_that_overlap)
{
    struct world w = world_open(t, "memory:");
    struct overlap overlap = {.e = hf__engine_of(w.db)};
    struct changer changer = {.e = overlap.e, .lets_go = true};
    int64_t until = steady_ms() + PATIENCE_MS;
    pthread_t first, second, thread;

    CHECK_INT(0, pthread_create(&first, NULL, read_first, &overlap));
    CHECK_INT(0, pthread_create(&second, NULL, read_second, &overlap));
    while (!atomic_load(&overlap.entries[0]) || !atomic_load(&overlap.entries[1]))
        sched_yield();
    CHECK_INT(0, pthread_create(&thread, NULL, change_schema, &changer));
    while (!atomic_load(&changer.has) && steady_ms() < until)
        sched_yield();
    CHECK(atomic_load(&changer.has));
    atomic_store(&overlap.stop, true);
    pthread_join(thread, NULL);
    pthread_join(first, NULL);
    pthread_join(second, NULL);
    world_close(&w);
}
