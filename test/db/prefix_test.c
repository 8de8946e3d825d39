/*
 * db/prefix_test.c: what is asked of a view with a prefix is asked of the tables with that prefix
 * and of no others, in every operation, and answers look as if there were no prefix. (n) is an
 * invariant of prefix.c.
 *
 * Three inner databases are used: the engine; the engine shared by two views, neither of which may
 * close it; and a mirror, which writes down the request that reaches it as JSON and answers with
 * the JSON that it was told, so that members which the engine never fills are seen, too.
 */
#include "world.h"

#include <holdfast/prefix.h>

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "db/db.h"
#include "wire/wire.h"

#define KEY                                                                                        \
    "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}],"                         \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'"
#define STREAM "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'}"
#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/"
#define PREFIX "dev-"

static bool has(struct hf_str text, const char *piece)
{
    return text.ptr && memmem(text.ptr, text.len, piece, strlen(piece)) != NULL;
}

/* ---- inner databases ------------------------------------------------------------------------ */

/* Lends another database; closing it closes nothing. */
struct lent {
    struct hf_db db;
    struct hf_db *inner;
};

static enum hf_status lent_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                const void *request, void *response)
{
    struct hf_db *inner = ((struct lent *)(void *)db)->inner;

    return inner->calls->call(s, inner, op, request, response);
}

static void lent_close(struct hf_db *db)
{
    (void)db;
}

static const struct db_calls lent_calls = {.call = lent_call, .close = lent_close};

struct mirror {
    struct hf_db db;
    const char *answer;   /* JSON, with ' for " */
    struct hf_str seen;   /* the request, as JSON */
    const void *request;  /* where it lay */
    const void *response; /* of the last call, as it lay in the first bytes of the answer */
    struct test *starve;  /* the scope has no memory left behind the answer */
    int calls;
    int settled;
};

static enum hf_status mirror_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                  const void *request, void *response)
{
    struct mirror *m = (struct mirror *)(void *)db;
    struct hf__buf seen = {.scope = s};
    struct hf__buf answer = {.scope = s};

    m->calls++;
    m->request = request;
    hf__wire_write(&seen, hf__op(op)->request, request);
    for (const char *c = m->answer ? m->answer : "{}"; *c; c++)
        hf__buf_put_byte(&answer, *c == '\'' ? '"' : (uint8_t)*c);
    if (seen.failed || answer.failed)
        return hf__fail_nomem(s);
    m->seen = hf_str_of((const char *)seen.ptr, seen.len);
    TRY(hf__wire_read(s, hf__op(op)->response, hf_str_of((const char *)answer.ptr, answer.len),
                      response));
    memcpy(&m->response, response, sizeof(m->response));
    if (m->starve) {
        m->starve->fail_at = -1;
        while (hf_scope_alloc(s, 1))
            ;
    }
    return HF_OK;
}

static enum hf_status mirror_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    (void)s;
    ((struct mirror *)(void *)db)->settled = (int)ticket;
    return HF_OK;
}

static enum hf_status mirror_supports(struct hf_scope *s, struct hf_db *db, enum hf_feature feature,
                                      bool *supported)
{
    (void)s;
    (void)db;
    *supported = feature == HF_FEATURE_PARTIQL;
    return HF_OK;
}

static const struct db_calls mirror_calls = {.call = mirror_call,
                                             .sync = mirror_sync,
                                             .close = lent_close,
                                             .supports = mirror_supports};

/* A view of a mirror as the world's database. */
static struct world open_mirror(struct test *t, struct mirror *m)
{
    struct world w = {.t = t, .scope = hf_scope_new(test_env(t))};

    *m = (struct mirror){.db = {.calls = &mirror_calls}};
    CHECK_OK(hf_prefix_open(w.scope, &m->db, HF_STR(PREFIX), &w.db));
    return w;
}

static void close_view(struct world *w)
{
    hf_db_close(w->db);
    hf_scope_free(w->scope);
}

/* Through the view `request` reaches the mirror as `inside`, and `answer` comes out as `outside`.
 */
static void mirrored(struct world *w, struct mirror *m, const char *op, const char *request,
                     const char *inside, const char *answer, const char *outside)
{
    struct hf_str came;

    m->answer = answer;
    came = world_ok(w, op, request);
    test_check_str(world_json(w, inside), m->seen, op, __FILE__, __LINE__);
    test_check_str(world_json(w, outside), came, op, __FILE__, __LINE__);
}

/* ---- every operation ------------------------------------------------------------------------ */

/* The text behind `mark` in an answer, up to the next quote. */
static const char *taken(struct world *w, struct hf_str answer, const char *mark)
{
    struct hf_str quoted = world_json(w, mark);
    const char *found = memmem(answer.ptr, answer.len, quoted.ptr, quoted.len);
    const char *end;

    if (!found)
        fail_msg("%.*s is not in %.*s", HF_FMT(quoted), HF_FMT(answer));
    found += quoted.len;
    end = memchr(found, '"', (size_t)(answer.ptr + answer.len - found));
    return hf_scope_format(w->scope, "%.*s", (int)(end - found), found).ptr;
}

struct script {
    struct world *w;
    struct hf_db *engine;
    bool done[HF_OP_COUNT];
};

/* The operation succeeds and nothing of the prefix comes out; gives back its answer. */
static struct hf_str step(struct script *script, const char *operation, const char *json)
{
    struct hf_str answer = world_ok(script->w, operation, json);

    for (int op = 0; op < HF_OP_COUNT; op++)
        if (hf_str_equal(hf_op_name((enum hf_op)op), hf_str_from(operation)))
            script->done[op] = true;
    if (has(answer, PREFIX))
        fail_msg("%s: %.*s", operation, HF_FMT(answer));
    return answer;
}

/* The same with one text in the request. */
static struct hf_str step_with(struct script *script, const char *operation, const char *format,
                               const char *text)
{
    struct hf__buf json = {.scope = script->w->scope};

    for (const char *c = format; *c; c++)
        if (*c == '%')
            hf__buf_put_str(&json, hf_str_from(text));
        else
            hf__buf_put_byte(&json, (uint8_t)*c);
    hf__buf_put_byte(&json, 0);
    return step(script, operation, (const char *)json.ptr);
}

/* An operation about what the engine has none of; only its error says the name. */
static void refused(struct script *script, const char *operation, const char *exception,
                    const char *json)
{
    CHECK(has(world_call(script->w, operation, json), exception));
    for (int op = 0; op < HF_OP_COUNT; op++)
        if (hf_str_equal(hf_op_name((enum hf_op)op), hf_str_from(operation)))
            script->done[op] = true;
}

static void do_items(struct script *s)
{
    struct hf_str answer;

    CHECK(has(step(s, "PutItem",
                   "{'TableName':'tab','Item':{'pk':{'S':'a'}},'ReturnConsumedCapacity':'TOTAL'}"),
              "\"TableName\":\"tab\""));
    step(s, "UpdateItem",
         "{'TableName':'tab','Key':{'pk':{'S':'a'}},'UpdateExpression':'ADD n :n',"
         "'ExpressionAttributeValues':{':n':{'N':'1'}},'ReturnConsumedCapacity':'INDEXES'}");
    CHECK(has(step(s, "GetItem", "{'TableName':'" ARN "tab','Key':{'pk':{'S':'a'}}}"),
              "\"n\":{\"N\":\"1\"}"));
    CHECK(has(step(s, "Query",
                   "{'TableName':'tab','KeyConditionExpression':'pk = :a',"
                   "'ExpressionAttributeValues':{':a':{'S':'a'}}}"),
              "\"Count\":1"));
    CHECK(has(step(s, "Scan", "{'TableName':'tab','ReturnConsumedCapacity':'TOTAL'}"),
              "\"Count\":1"));
    step(s, "BatchWriteItem",
         "{'RequestItems':{'tab':[{'PutRequest':{'Item':{'pk':{'S':'b'}}}}]},"
         "'ReturnConsumedCapacity':'TOTAL','ReturnItemCollectionMetrics':'SIZE'}");
    CHECK(has(step(s, "BatchGetItem", "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'b'}}]}}}"),
              "{\"tab\":[{\"pk\":{\"S\":\"b\"}}]}"));
    step(s, "TransactWriteItems",
         "{'TransactItems':[{'Put':{'TableName':'tab','Item':{'pk':{'S':'c'}}}},"
         "{'Update':{'TableName':'tab','Key':{'pk':{'S':'d'}},'UpdateExpression':'SET x = :x',"
         "'ExpressionAttributeValues':{':x':{'N':'1'}}}},"
         "{'Delete':{'TableName':'tab','Key':{'pk':{'S':'e'}}}},"
         "{'ConditionCheck':{'TableName':'tab','Key':{'pk':{'S':'a'}},"
         "'ConditionExpression':'attribute_exists(pk)'}}],'ReturnConsumedCapacity':'TOTAL'}");
    CHECK(has(step(s, "TransactGetItems",
                   "{'TransactItems':[{'Get':{'TableName':'tab','Key':{'pk':{'S':'c'}}}}],"
                   "'ReturnConsumedCapacity':'TOTAL'}"),
              "\"Item\""));
    step(s, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'c'}}}");
    answer = step(s, "ExecuteStatement", "{'Statement':'SELECT * FROM tab'}");
    CHECK(has(answer, "\"pk\":{\"S\":\"d\"}"));
    CHECK(!has(step(s, "BatchExecuteStatement",
                    "{'Statements':[{'Statement':'UPDATE tab SET x=1 WHERE pk=?','Parameters':[{"
                    "'S':'a'}]},{'Statement':'DELETE FROM tab WHERE pk=?','Parameters':[{'S':'q'}]"
                    "}]}"),
               "Error"));
    CHECK(
        has(step(s, "ExecuteTransaction",
                 "{'TransactStatements':[{'Statement':'SELECT * FROM tab WHERE pk=?','Parameters':["
                 "{'S':'d'}]}]}"),
            "\"x\""));
}

static void do_streams(struct script *s)
{
    struct hf_scope *scope = s->w->scope;
    const char *arn, *shard, *json, *iterator;

    arn = taken(s->w, step(s, "ListStreams", "{'TableName':'tab'}"), "'StreamArn':'");
    CHECK(has(hf_str_from(arn), ":table/tab/stream/"));
    shard = taken(s->w, step_with(s, "DescribeStream", "{'StreamArn':'%'}", arn), "[{'ShardId':'");
    json = hf_scope_format(scope,
                           "{'StreamArn':'%s','ShardIteratorType':'TRIM_HORIZON','ShardId':'%s'}",
                           arn, shard)
               .ptr;
    /* An iterator is opaque; it may well hold the name as the account has it. */
    iterator = taken(s->w, world_ok(s->w, "GetShardIterator", json), "'ShardIterator':'");
    json = hf_scope_format(scope, "{'ShardIterator':'%s'}", iterator).ptr;
    CHECK(has(world_ok(s->w, "GetRecords", json), "Records"));
    s->done[HF_OP_GET_SHARD_ITERATOR] = true;
    s->done[HF_OP_GET_RECORDS] = true;
}

static void do_tables(struct script *s)
{
    CHECK(has(step(s, "DescribeTable", "{'TableName':'tab'}"), "\"TableArn\":\"" ARN "tab\""));
    CHECK(has(step(s, "ListTables", "{}"), "[\"tab\"]"));
    step(s, "UpdateTable", "{'TableName':'tab','DeletionProtectionEnabled':false}");
    step(s, "UpdateTimeToLive",
         "{'TableName':'tab','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'x'}}");
    step(s, "DescribeTimeToLive", "{'TableName':'tab'}");
    step(s, "TagResource", "{'ResourceArn':'" ARN "tab','Tags':[{'Key':'k','Value':'v'}]}");
    CHECK(has(step(s, "ListTagsOfResource", "{'ResourceArn':'" ARN "tab'}"), "\"k\""));
    step(s, "UntagResource", "{'ResourceArn':'" ARN "tab','TagKeys':['k']}");
    step(s, "DescribeLimits", "{}");
    step(s, "DescribeEndpoints", "{}");
    step(s, "PutResourcePolicy", "{'ResourceArn':'" ARN "tab','Policy':'{}'}");
    step(s, "GetResourcePolicy", "{'ResourceArn':'" ARN "tab'}");
    step(s, "DeleteResourcePolicy", "{'ResourceArn':'" ARN "tab'}");
}

static void do_backups(struct script *s)
{
    const char *arn;

    step(s, "DescribeContinuousBackups", "{'TableName':'tab'}");
    step(s, "UpdateContinuousBackups",
         "{'TableName':'tab','PointInTimeRecoverySpecification':{'PointInTimeRecoveryEnabled':"
         "false}}");
    arn = taken(s->w, step(s, "CreateBackup", "{'TableName':'tab','BackupName':'back'}"),
                "'BackupArn':'");
    CHECK(has(hf_str_from(arn), ":table/tab/backup/"));
    test_advance_ms(s->w->t, 1000);
    CHECK_OK(hf_engine_upkeep(s->w->scope, s->engine, NULL)); /* which makes the backup */
    CHECK(has(step_with(s, "DescribeBackup", "{'BackupArn':'%'}", arn), "\"TableName\":\"tab\""));
    CHECK(has(step(s, "ListBackups", "{}"), "\"TableName\":\"tab\""));
    CHECK(has(step_with(s, "RestoreTableFromBackup", "{'TargetTableName':'copy','BackupArn':'%'}",
                        arn),
              "\"TableName\":\"copy\""));
    CHECK_OK(hf_engine_upkeep(s->w->scope, s->engine, NULL)); /* which restores it */
    step_with(s, "DeleteBackup", "{'BackupArn':'%'}", arn);
}

static void do_services(struct script *s)
{
    step(s, "DescribeContributorInsights", "{'TableName':'tab'}");
    step(s, "ListContributorInsights", "{}");
    step(s, "DescribeKinesisStreamingDestination", "{'TableName':'tab'}");
    step(s, "ListExports", "{}");
    step(s, "ListImports", "{}");
    step(s, "ListGlobalTables", "{}");
    refused(s, "DescribeGlobalTable", "GlobalTableNotFound", "{'GlobalTableName':'tab'}");
    refused(s, "DescribeTableReplicaAutoScaling", "ResourceNotFound", "{'TableName':'tab'}");
    step(s, "UpdateContributorInsights",
         "{'TableName':'tab','ContributorInsightsAction':'DISABLE'}");
    refused(s, "CreateGlobalTable", "Validation",
            "{'GlobalTableName':'tab','ReplicationGroup':[{'RegionName':'us-east-1'}]}");
    refused(s, "UpdateGlobalTable", "GlobalTableNotFound", "{'GlobalTableName':'tab'}");
    refused(s, "DescribeGlobalTableSettings", "GlobalTableNotFound", "{'GlobalTableName':'tab'}");
    refused(s, "UpdateGlobalTableSettings", "GlobalTableNotFound", "{'GlobalTableName':'tab'}");
    refused(s, "UpdateTableReplicaAutoScaling", "ResourceNotFound", "{'TableName':'tab'}");
    refused(s, "DisableKinesisStreamingDestination", "Validation",
            "{'TableName':'tab','StreamArn':'arn:aws:kinesis:us-east-1:123456789012:stream/s'}");
    refused(s, "ExportTableToPointInTime", "this database has no buckets",
            "{'TableArn':'" ARN "tab','S3Bucket':'bucket'}");
    refused(s, "RestoreTableToPointInTime", "PointInTimeRecoveryUnavailable",
            "{'SourceTableName':'tab','TargetTableName':'copy'}");
    refused(s, "ImportTable", "this database has no buckets",
            "{'S3BucketSource':{'S3Bucket':'bucket'},'InputFormat':'CSV','TableCreationParameters':"
            "{'TableName':'imported','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':"
            "'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
            "'BillingMode':'PAY_PER_REQUEST'}}");
    refused(s, "DescribeExport", "ExportNotFound",
            "{'ExportArn':'" ARN "tab/export/01234567890123456'}");
    refused(s, "DescribeImport", "ImportNotFound",
            "{'ImportArn':'" ARN "tab/import/01234567890123456'}");
}

TEST(prefix, every_operation_does_its_work_on_the_table_with_the_prefix)
{
    struct world w = world_open(t, "memory:");
    struct hf_db *engine = w.db;
    struct script script = {.w = &w, .engine = engine};
    struct hf_list_tables_result tables;

    CHECK_OK(hf_prefix_open(w.scope, engine, HF_STR(PREFIX), &w.db));
    CHECK(has(step(&script, "CreateTable", "{'TableName':'tab'," KEY "," STREAM "}"),
              "\"TableName\":\"tab\""));
    do_tables(&script);
    do_items(&script);
    do_streams(&script);
    do_backups(&script);
    do_services(&script);
    CHECK_OK(hf_list_tables(w.scope, engine, &(struct hf_list_tables){.limit = 0}, &tables));
    CHECK_INT(2, tables.tables_len);
    CHECK_STR("dev-copy", tables.tables[0]);
    CHECK_STR("dev-tab", tables.tables[1]);
    step(&script, "DeleteTable", "{'TableName':'tab'}");
    for (int op = 0; op < HF_OP_COUNT; op++)
        if (!script.done[op])
            fail_msg("%.*s was not tried", HF_FMT(hf_op_name((enum hf_op)op)));
    CHECK_OK(hf_engine_check(w.scope, engine, NULL));
    close_view(&w);
}

/* ---- the rules of fields -------------------------------------------------------------------- */

static bool ends_with(const char *name, const char *end)
{
    return strlen(name) >= strlen(end) && strcmp(name + strlen(name) - strlen(end), end) == 0;
}

/* By the names that DynamoDB's model has, every member that names a table says so. */
static void check_rules(const struct fields *fields)
{
    for (size_t i = 0; i < fields->len; i++) {
        const struct field *field = &fields->list[i];
        const char *name = field->name ? field->name : "";
        bool other = strcmp(name, "KMSMasterKeyArn") == 0 ||
                     strcmp(fields->name, "KinesisDataStreamDestination") == 0 ||
                     strncmp(fields->name, "KinesisStreamingDestination", 27) == 0;
        enum field_holds holds = ends_with(name, "TableName") || ends_with(name, "TableNames")
                                     ? HOLDS_TABLE
                                 : ends_with(name, "Arn") && !other ? HOLDS_ARN
                                 : strcmp(name, "Statement") == 0   ? HOLDS_STATEMENT
                                                                    : HOLDS_NO_NAME;

        if (field->kind == FIELD_MAP && /* of tables, in batches and in transactions */
            (strncmp(fields->name, "Batch", 5) == 0 || strncmp(fields->name, "Transact", 8) == 0))
            holds = HOLDS_TABLE;
        if (holds != field->holds)
            fail_msg("%s.%s holds %d", fields->name, name, (int)field->holds);
        if (field->sub)
            check_rules(field->sub);
    }
}

TEST(prefix, every_member_that_names_a_table_says_so)
{
    for (int op = 0; op < HF_OP_COUNT; op++) {
        check_rules(hf__op((enum hf_op)op)->request);
        check_rules(hf__op((enum hf_op)op)->response);
    }
}

/* ---- two views ------------------------------------------------------------------------------ */

struct two {
    struct world w;
    struct lent lent;
    struct hf_db *one;
    struct hf_db *other;
    struct hf_db *engine;
};

static void open_two(struct test *t, struct two *two)
{
    two->w = world_open(t, "memory:");
    two->engine = two->w.db;
    two->lent = (struct lent){.db = {.calls = &lent_calls}, .inner = two->engine};
    CHECK_OK(hf_prefix_open(two->w.scope, &two->lent.db, HF_STR("one."), &two->one));
    CHECK_OK(hf_prefix_open(two->w.scope, &two->lent.db, HF_STR("other_"), &two->other));
}

static void close_two(struct two *two)
{
    hf_db_close(two->one);
    hf_db_close(two->other);
    two->w.db = two->engine;
    world_close(&two->w);
}

static void as(struct two *two, struct hf_db *db)
{
    two->w.db = db;
}

TEST(prefix, two_views_do_not_see_each_other)
{
    static const char *const create = "{'TableName':'tab'," KEY "," STREAM "}";
    struct two two;
    struct world *w = &two.w;
    struct hf_str streams;

    open_two(t, &two);
    as(&two, two.one);
    world_ok(w, "CreateTable", create);
    world_ok(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'mine'}}}");
    world_ok(w, "CreateBackup", "{'TableName':'tab','BackupName':'back'}");

    as(&two, two.other);
    CHECK_JSON(w, "{'TableNames':[]}", "ListTables", "{}");
    CHECK_JSON(w, "{'Streams':[]}", "ListStreams", "{}");
    CHECK_JSON(w, "{'BackupSummaries':[]}", "ListBackups", "{}");
    CHECK_JSON(w, "{'ContributorInsightsSummaries':[]}", "ListContributorInsights", "{}");
    CHECK_FAILS(w, "ResourceNotFoundException",
                "Requested resource not found: Table: other_tab not found", "DescribeTable",
                "{'TableName':'tab'}");
    world_ok(w, "CreateTable", create);
    CHECK_JSON(w, "{'Items':[],'Count':0,'ScannedCount':0}", "Scan", "{'TableName':'tab'}");
    CHECK_JSON(w, "{'Items':[]}", "ExecuteStatement", "{'Statement':'SELECT * FROM tab'}");
    CHECK_JSON(w, "{'TableNames':['tab']}", "ListTables", "{}");
    streams = world_ok(w, "ListStreams", "{}");
    CHECK(has(streams, "\"StreamArn\":\"" ARN "tab/stream/"));
    CHECK(!has(streams, "one.") && !has(streams, "other_"));

    as(&two, two.one);
    CHECK_JSON(w, "{'TableNames':['tab']}", "ListTables", "{}");
    CHECK_JSON(w, "{'Items':[{'pk':{'S':'mine'}}],'Count':1,'ScannedCount':1}", "Scan",
               "{'TableName':'tab'}");
    CHECK(has(world_ok(w, "ListBackups", "{}"), "\"BackupName\":\"back\""));
    close_two(&two);
}

/* (1): whatever is written where a name or an ARN stands, the other's table is out of reach. */
TEST(prefix, no_way_of_naming_it_reaches_another_table)
{
    static const char *const names[] = {
        "other_tab",
        ARN "other_tab",
        "arn:table/:dynamodb:us-east-1:123456789012:table/other_tab",
        "arn:aws:dynamodb:us-east-1:123456789012:x:table/other_tab",
        "arn:aws:dynamodb:us-east-1:123456789012/:table/other_tab",
        "arn:aws:dynamodb:us-east-1:table/one.:table/other_tab",
        "arn:aws:dynamodb:us-east-1:123456789012:global-table/other_tab",
        "arn:",
        "arn:aws:dynamodb:us-east-1:123456789012:table/",
    };
    static const char *const statements[] = {
        "SELECT * FROM other_tab",
        "SELECT * FROM \\\"other_tab\\\"",
        "SELECT * FROM \\\"" ARN "other_tab\\\"",
        "SELECT * FROM (other_tab)",
        "SELECT * FROM nothing, other_tab",
        "SELECT * FROM nothing WHERE EXISTS(SELECT * FROM other_tab)",
        "SELECT * FROM /* nothing */ other_tab -- FROM tab",
        "FROM other_tab WHERE pk='mine' SET x=1",
        "UPDATE other_tab SET x=1 WHERE pk='mine'",
        "DELETE FROM other_tab WHERE pk='mine'",
        "INSERT INTO other_tab VALUE {'pk':'new'}",
    };
    struct two two;
    struct world *w = &two.w;

    open_two(t, &two);
    as(&two, two.other);
    world_ok(w, "CreateTable", "{'TableName':'tab'," KEY "}");
    world_ok(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'mine'}}}");
    as(&two, two.one);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const struct hf_str name = hf_str_from(names[i]);
        struct hf_scope *s = w->scope;

        CHECK(hf_scan(s, two.one, &(struct hf_scan){.table = name}, NULL) != HF_OK);
        CHECK(hf_describe_table(s, two.one, &(struct hf_describe_table){.table = name}, NULL) !=
              HF_OK);
        CHECK(hf_delete_table(s, two.one, &(struct hf_delete_table){.table = name}, NULL) != HF_OK);
        CHECK(hf_put_resource_policy(s, two.one,
                                     &(struct hf_put_resource_policy){.arn = name,
                                                                      .policy = HF_STR("{}")},
                                     NULL) != HF_OK);
        CHECK(hf_list_tags_of_resource(s, two.one, &(struct hf_list_tags_of_resource){.arn = name},
                                       NULL) != HF_OK);
    }
    for (size_t i = 0; i < sizeof(statements) / sizeof(statements[0]); i++) {
        struct hf__buf body = {.scope = w->scope};
        struct hf_str answer;

        hf__buf_format(&body, "{\"Statement\":\"%s\"}", statements[i]);
        if (world_exchange(w, "ExecuteStatement", hf_str_of((const char *)body.ptr, body.len),
                           &answer) == HF_OK)
            fail_msg("%s gave %.*s", statements[i], HF_FMT(answer));
    }
    as(&two, two.other);
    CHECK_JSON(w, "{'Items':[{'pk':{'S':'mine'}}],'Count':1,'ScannedCount':1}", "Scan",
               "{'TableName':'tab'}");
    close_two(&two);
}

/* ---- lists ---------------------------------------------------------------------------------- */

/* All names in pages of `limit`, each page within it. */
static struct hf_str all_tables(struct two *two, struct hf_db *db, int64_t limit)
{
    struct hf_scope *s = two->w.scope;
    struct hf_list_tables request = {.limit = limit};
    struct hf__buf names = {.scope = s};
    struct hf_list_tables_result page;

    do {
        CHECK_OK(hf_list_tables(s, db, &request, &page));
        CHECK(limit == 0 || page.tables_len <= (size_t)limit);
        for (size_t i = 0; i < page.tables_len; i++)
            hf__buf_format(&names, "%.*s ", HF_FMT(page.tables[i]));
        request.start = page.last;
        if (page.last.ptr)
            hf__buf_put_str(&names, HF_STR("| "));
    } while (page.last.ptr);
    return hf_str_of((const char *)names.ptr, names.len);
}

static void make_tables(struct two *two)
{
    static const char *const names[] = {"aaa",   "bbb", "one.",       "one.a1", "one.a2",
                                        "one.b", "onf", "other_only", "zzz",    "zzz2"};

    as(two, two->engine);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        struct hf__buf json = {.scope = two->w.scope};

        hf__buf_format(&json, "{'TableName':'%s'," KEY "," STREAM "}%c", names[i], 0);
        world_ok(&two->w, "CreateTable", (const char *)json.ptr);
        json.len = 0;
        hf__buf_format(&json, "{'TableName':'%s','BackupName':'back'}%c", names[i], 0);
        world_ok(&two->w, "CreateBackup", (const char *)json.ptr);
        test_advance_ms(two->w.t, 1000);
    }
}

/* (3): a table whose whole name is the prefix ("one.") would have none, and is not shown. */
TEST(prefix, lists_go_on_behind_what_is_not_ours)
{
    struct two two;

    open_two(t, &two);
    make_tables(&two);
    CHECK_STR("a1 a2 b ", all_tables(&two, two.one, 0));
    CHECK_STR("a1 | a2 | b | ", all_tables(&two, two.one, 1));
    CHECK_STR("a1 a2 | b ", all_tables(&two, two.one, 2));
    CHECK_STR("a1 a2 b ", all_tables(&two, two.one, 3));
    CHECK_STR("a1 a2 b ", all_tables(&two, two.one, 100));
    CHECK_STR("only ", all_tables(&two, two.other, 100));
    CHECK_STR("only ", all_tables(&two, two.other, 1));
    as(&two, two.one);
    CHECK_JSON(&two.w, "{'TableNames':['b']}", "ListTables", "{'ExclusiveStartTableName':'a2'}");
    CHECK_FAILS(&two.w, "ValidationException",
                "1 validation error detected: Value '101' at 'limit' failed to satisfy constraint: "
                "Member must have value less than or equal to 100",
                "ListTables", "{'Limit':101}");
    close_two(&two);
}

TEST(prefix, streams_and_backups_are_listed_by_pages_too)
{
    struct two two;
    struct hf_list_streams streams = {.limit = 2};
    struct hf_list_streams_result some;
    struct hf_list_backups backups = {.limit = 1};
    struct hf_list_backups_result back;
    struct hf_scope *s;
    size_t seen = 0;

    open_two(t, &two);
    make_tables(&two);
    s = two.w.scope;
    do {
        CHECK_OK(hf_list_streams(s, two.one, &streams, &some));
        CHECK(some.streams_len <= 2);
        for (size_t i = 0; i < some.streams_len; i++, seen++)
            CHECK(has(some.streams[i].arn,
                      hf_scope_format(s, "/%.*s/", HF_FMT(some.streams[i].table)).ptr));
        streams.start_arn = some.last_arn;
    } while (some.last_arn.ptr);
    CHECK_INT(3, seen);
    do {
        CHECK_OK(hf_list_backups(s, two.one, &backups, &back));
        CHECK(back.backups_len <= 1);
        for (size_t i = 0; i < back.backups_len; i++, seen++)
            CHECK(has(HF_STR("a1 a2 b"),
                      hf_scope_format(s, "%.*s", HF_FMT(back.backups[i].table)).ptr));
        backups.start_arn = back.last_arn;
    } while (back.last_arn.ptr);
    CHECK_INT(6, seen);
    close_two(&two);
}

TEST(prefix, a_list_that_does_not_go_on_is_an_error)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);

    m.answer = "{'TableNames':['x'],'LastEvaluatedTableName':'x'}";
    CHECK(has(world_call(&w, "ListTables", "{}"), "does not continue after x"));
    CHECK_INT(2, m.calls);
    close_view(&w);
}

/* ---- requests and responses, member by member ----------------------------------------------- */

TEST(prefix, names_are_changed_at_any_depth)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);

    mirrored(&w, &m, "BatchGetItem",
             "{'RequestItems':{'a':{'Keys':[{'pk':{'S':'dev-'}}]},'" ARN "b':{'Keys':[]}}}",
             "{'RequestItems':{'dev-a':{'Keys':[{'pk':{'S':'dev-'}}]},'" ARN "dev-b':{'Keys':[]}}}",
             "{'Responses':{'dev-a':[{'pk':{'S':'dev-'}}]},'UnprocessedKeys':{'dev-b':{'Keys':[]}},"
             "'ConsumedCapacity':[{'TableName':'dev-a','CapacityUnits':1},"
             "{'TableName':'" ARN "dev-b','CapacityUnits':1}]}",
             "{'Responses':{'a':[{'pk':{'S':'dev-'}}]},'UnprocessedKeys':{'b':{'Keys':[]}},"
             "'ConsumedCapacity':[{'TableName':'a','CapacityUnits':1},"
             "{'TableName':'" ARN "b','CapacityUnits':1}]}");
    mirrored(&w, &m, "BatchWriteItem", "{'RequestItems':{'a':[]}}", "{'RequestItems':{'dev-a':[]}}",
             "{'UnprocessedItems':{'dev-a':[]},'ItemCollectionMetrics':{'dev-a':[]}}",
             "{'UnprocessedItems':{'a':[]},'ItemCollectionMetrics':{'a':[]}}");
    mirrored(&w, &m, "TransactWriteItems",
             "{'TransactItems':[{},{'Delete':{'Key':{},'TableName':'a'}}]}",
             "{'TransactItems':[{},{'Delete':{'Key':{},'TableName':'dev-a'}}]}",
             "{'ItemCollectionMetrics':{'dev-a':[],'dev-b':[]}}",
             "{'ItemCollectionMetrics':{'a':[],'b':[]}}");
    mirrored(&w, &m, "DescribeTable", "{'TableName':'a'}", "{'TableName':'dev-a'}",
             "{'Table':{'TableName':'dev-a','TableArn':'" ARN "dev-a',"
             "'GlobalSecondaryIndexes':[{'IndexName':'dev-i','IndexArn':'" ARN "dev-a/index/dev-i'"
             "}],'LatestStreamArn':'" ARN "dev-a/stream/1','RestoreSummary':{"
             "'SourceBackupArn':'" ARN "dev-b/backup/1','SourceTableArn':'" ARN "dev-b'}}}",
             "{'Table':{'TableName':'a','TableSizeBytes':0,'ItemCount':0,'TableArn':'" ARN "a',"
             "'GlobalSecondaryIndexes':[{'IndexName':'dev-i','IndexSizeBytes':0,'ItemCount':0,"
             "'IndexArn':'" ARN "a/index/dev-i'}],'LatestStreamArn':'" ARN "a/stream/1',"
             "'RestoreSummary':{'SourceBackupArn':'" ARN "b/backup/1','SourceTableArn':'" ARN
             "b'}}}");
    mirrored(&w, &m, "RestoreTableFromBackup",
             "{'TargetTableName':'a','BackupArn':'" ARN "b/backup/1'}",
             "{'TargetTableName':'dev-a','BackupArn':'" ARN "dev-b/backup/1'}", "{}", "{}");
    mirrored(&w, &m, "BatchExecuteStatement", "{'Statements':[{'Statement':'SELECT * FROM a'}]}",
             "{'Statements':[{'Statement':'SELECT * FROM \\'dev-a\\''}]}",
             "{'Responses':[{'TableName':'dev-a'},{'TableName':'else'},{}]}",
             "{'Responses':[{'TableName':'a'},{'TableName':'else'},{}]}");
    close_view(&w);
}

TEST(prefix, what_other_services_do_is_renamed_too)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);

    mirrored(&w, &m, "DescribeGlobalTable", "{'GlobalTableName':'a'}",
             "{'GlobalTableName':'dev-a'}",
             "{'GlobalTableDescription':{'GlobalTableName':'dev-a','GlobalTableArn':"
             "'arn:aws:dynamodb::123456789012:global-table/dev-a'}}",
             "{'GlobalTableDescription':{'GlobalTableName':'a','GlobalTableArn':"
             "'arn:aws:dynamodb::123456789012:global-table/a'}}");
    mirrored(&w, &m, "ListGlobalTables", "{'ExclusiveStartGlobalTableName':'a'}",
             "{'ExclusiveStartGlobalTableName':'dev-a'}",
             "{'GlobalTables':[{'GlobalTableName':'dev-b'},{'GlobalTableName':'b'}],"
             "'LastEvaluatedGlobalTableName':'dev-c'}",
             "{'GlobalTables':[{'GlobalTableName':'b'}],'LastEvaluatedGlobalTableName':'c'}");
    mirrored(&w, &m, "ListContributorInsights", "{'TableName':'a','NextToken':'dev-t'}",
             "{'TableName':'dev-a','NextToken':'dev-t'}",
             "{'ContributorInsightsSummaries':[{'TableName':'x'},{'TableName':'dev-a'}],"
             "'NextToken':'dev-u'}",
             "{'ContributorInsightsSummaries':[{'TableName':'a'}],'NextToken':'dev-u'}");
    mirrored(&w, &m, "ListExports", "{'TableArn':'" ARN "a'}", "{'TableArn':'" ARN "dev-a'}",
             "{'ExportSummaries':[{'ExportArn':'" ARN "x/export/1'},"
             "{'ExportArn':'" ARN "dev-a/export/1'},{'ExportArn':'" ARN "dev-/export/1'}]}",
             "{'ExportSummaries':[{'ExportArn':'" ARN "a/export/1'}]}");
    mirrored(&w, &m, "DescribeImport", "{'ImportArn':'" ARN "a/import/1'}",
             "{'ImportArn':'" ARN "dev-a/import/1'}",
             "{'ImportTableDescription':{'ImportArn':'" ARN "dev-a/import/1','TableArn':'" ARN
             "dev-a'}}",
             "{'ImportTableDescription':{'ImportArn':'" ARN "a/import/1','TableArn':'" ARN "a',"
             "'ErrorCount':0,'ProcessedSizeBytes':0,'ProcessedItemCount':0,"
             "'ImportedItemCount':0}}");
    mirrored(&w, &m, "DescribeKinesisStreamingDestination", "{'TableName':'a'}",
             "{'TableName':'dev-a'}",
             "{'TableName':'dev-a','KinesisDataStreamDestinations':[{'StreamArn':"
             "'arn:aws:kinesis:us-east-1:1:stream/dev-s'}]}",
             "{'TableName':'a','KinesisDataStreamDestinations':[{'StreamArn':"
             "'arn:aws:kinesis:us-east-1:1:stream/dev-s'}]}");
    close_view(&w);
}

/* The statement that reaches the inner database; \` in both stands for a double quote. */
static void check_statement(struct world *w, struct mirror *m, const char *text,
                            const char *expected)
{
    struct hf_str parts[2] = {hf_str_from(text), hf_str_from(expected)};
    struct hf__buf want = {.scope = w->scope};
    const struct hf_execute_statement request = {.statement = parts[0]};
    const struct hf_execute_statement again = {.statement = parts[1]};

    CHECK_OK(hf_execute_statement(w->scope, w->db, &request, NULL));
    hf__wire_write(&want, hf__op(HF_OP_EXECUTE_STATEMENT)->request, &again);
    test_check_str(hf_str_of((const char *)want.ptr, want.len), m->seen, text, __FILE__, __LINE__);
}

TEST(prefix, a_statement_is_changed_at_its_table_alone)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);

    check_statement(&w, &m, "SELECT * FROM tab", "SELECT * FROM \"dev-tab\"");
    check_statement(&w, &m, "select tab.a, \"tab\" from tab where tab=1",
                    "select tab.a, \"tab\" from \"dev-tab\" where tab=1");
    check_statement(&w, &m, "SELECT * FROM \"t-a.b\".\"index\" WHERE a = ' FROM x'",
                    "SELECT * FROM \"dev-t-a.b\".\"index\" WHERE a = ' FROM x'");
    check_statement(&w, &m, "SELECT \"\xc3\xa4\"\n, b /* \xc3\xa4 */ FROM\n  tab;",
                    "SELECT \"\xc3\xa4\"\n, b /* \xc3\xa4 */ FROM\n  \"dev-tab\";");
    check_statement(&w, &m, "SELECT * FROM \"a\"\"b\"", "SELECT * FROM \"dev-a\"\"b\"");
    check_statement(&w, &m, "SELECT * FROM \"" ARN "tab\"", "SELECT * FROM \"" ARN "dev-tab\"");
    check_statement(&w, &m, "INSERT INTO tab VALUE {'tab': 'tab'}",
                    "INSERT INTO \"dev-tab\" VALUE {'tab': 'tab'}");
    check_statement(&w, &m, "UPDATE \"tab\" SET tab = 1 WHERE pk = ?",
                    "UPDATE \"dev-tab\" SET tab = 1 WHERE pk = ?");
    check_statement(&w, &m, "DELETE FROM tab WHERE pk = ? RETURNING ALL OLD *",
                    "DELETE FROM \"dev-tab\" WHERE pk = ? RETURNING ALL OLD *");
    check_statement(&w, &m, "FROM tab WHERE pk = 1 REMOVE x",
                    "FROM \"dev-tab\" WHERE pk = 1 REMOVE x");
    check_statement(&w, &m, "EXISTS(SELECT * FROM tab WHERE pk = 1)",
                    "EXISTS(SELECT * FROM \"dev-tab\" WHERE pk = 1)");
    close_view(&w);
}

TEST(prefix, a_statement_that_cannot_be_read_is_refused_in_the_usual_words)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);
    struct hf__buf longest = {.scope = w.scope};

    CHECK_FAILS(&w, "ValidationException",
                "Statement wasn't well formed, can't be processed: Expected FROM after SELECT list",
                "ExecuteStatement", "{'Statement':'SELECT a'}");
    CHECK_FAILS(&w, "ValidationException", "Unsupported operation: DropTable", "ExecuteStatement",
                "{'Statement':'DROP TABLE a'}");
    hf__buf_put_str(&longest, HF_STR("SELECT * FROM tab --"));
    for (int i = 0; i < 40000; i++)
        hf__buf_put_byte(&longest, '-');
    CHECK_STATUS(HF_INVALID,
                 hf_execute_statement(w.scope, w.db,
                                      &(struct hf_execute_statement){
                                          .statement =
                                              hf_str_of((const char *)longest.ptr, longest.len)},
                                      NULL));
    CHECK(strstr(hf_scope_error_text(w.scope), "Member must have length less than or equal to"));
    CHECK_INT(0, m.calls);
    close_view(&w);
}

/* ---- what is not copied --------------------------------------------------------------------- */

/* (2) */
TEST(prefix, what_has_no_names_is_shared)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);
    const struct hf_describe_limits none = {0};
    const struct hf_put_request put = {HF_ITEM(w.scope, HF_S("pk", HF_STR("a")))};
    const struct hf_write_request writes[] = {{.put = &put}};
    const struct hf_table_writes tables[] = {{HF_STR("tab"), writes, 1}};
    const struct hf_batch_write_item request = {.tables = tables, .tables_len = 1};
    struct hf_get_item_result got;

    CHECK_OK(hf_describe_limits(w.scope, w.db, &none, NULL));
    CHECK(m.request == &none);
    CHECK_OK(hf_batch_write_item(w.scope, w.db, &request, NULL));
    CHECK(m.request != &request);
    CHECK(((const struct hf_batch_write_item *)m.request)->tables[0].writes == writes);
    CHECK_STR("tab", tables[0].table);
    m.answer = "{'Item':{'pk':{'S':'a'}}}";
    CHECK_OK(hf_get_item(w.scope, w.db,
                         &(struct hf_get_item){.table = HF_STR("tab"), .key = put.item}, &got));
    CHECK((const void *)got.item.ptr == m.response);
    close_view(&w);
}

TEST(prefix, an_empty_prefix_changes_nothing)
{
    struct mirror m = {.db = {.calls = &mirror_calls}};
    struct world w = {.t = t, .scope = hf_scope_new(test_env(t))};
    const struct hf_get_item request = {.table = HF_STR("tab")};

    CHECK_OK(hf_prefix_open(w.scope, &m.db, HF_STR(""), &w.db));
    CHECK_OK(hf_get_item(w.scope, w.db, &request, NULL));
    CHECK(m.request == &request);
    close_view(&w);
}

/* A NULL or empty name is as wrong as ever; a long one is too long with its prefix. */
TEST(prefix, wrong_names_stay_wrong)
{
    struct world w = world_open(t, "memory:");
    char name[256];
    struct hf_scope *s = w.scope;

    memset(name, 'x', sizeof(name));
    CHECK_OK(hf_prefix_open(s, w.db, HF_STR(PREFIX), &w.db));
    CHECK_STATUS(HF_INVALID, hf_scan(s, w.db, &(struct hf_scan){.limit = 1}, NULL));
    CHECK_STATUS(HF_INVALID, hf_scan(s, w.db, &(struct hf_scan){.table = HF_STR("")}, NULL));
    CHECK_STATUS(HF_NOT_FOUND,
                 hf_scan(s, w.db, &(struct hf_scan){.table = hf_str_of(name, 251)}, NULL));
    CHECK_STATUS(HF_INVALID,
                 hf_scan(s, w.db, &(struct hf_scan){.table = hf_str_of(name, 252)}, NULL));
    CHECK(strstr(hf_scope_error_text(s), "Member must have length less than or equal to 255"));
    CHECK_STATUS(HF_INVALID, hf_scan(s, w.db, &(struct hf_scan){.table = HF_STR("a b")}, NULL));
    close_view(&w);
}

TEST(prefix, only_characters_of_names_make_a_prefix)
{
    static const char *const wrong[] = {"a b", "a/", "arn:", "\xc3\xa4", "\"", "'"};
    struct mirror m = {.db = {.calls = &mirror_calls}};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_db *db;
    char prefix[HF_PREFIX_MAX + 1];

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK_STATUS(HF_INVALID, hf_prefix_open(s, &m.db, hf_str_from(wrong[i]), &db));
        CHECK(!db);
    }
    CHECK_STATUS(HF_INVALID, hf_prefix_open(s, NULL, HF_STR("a"), &db));
    CHECK(!db);
    memset(prefix, '.', sizeof(prefix));
    CHECK_STATUS(HF_INVALID, hf_prefix_open(s, &m.db, hf_str_of(prefix, sizeof(prefix)), &db));
    CHECK_OK(hf_prefix_open(s, &m.db, hf_str_of(prefix, HF_PREFIX_MAX), &db));
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(prefix, features_and_syncs_are_the_inner_ones)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);
    bool supported;

    CHECK_OK(hf_db_supports(w.scope, w.db, HF_FEATURE_PARTIQL, &supported));
    CHECK(supported);
    CHECK_OK(hf_db_supports(w.scope, w.db, HF_FEATURE_BACKUPS, &supported));
    CHECK(!supported);
    CHECK_OK(hf__db_sync(w.scope, w.db, 7));
    CHECK_INT(7, m.settled);
    close_view(&w);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status many_calls(struct hf_scope *s, struct hf_db *db, struct mirror *m)
{
    const struct hf_table_gets gets[] = {{.table = HF_STR("a")}, {.table = HF_STR(ARN "b")}};
    struct hf_batch_get_item_result got;
    struct hf_list_tables_result listed;
    struct hf_create_table_result made;

    m->answer = "{'Responses':{'dev-a':[]},'UnprocessedKeys':{'" ARN "dev-b':{'Keys':[]}}}";
    TRY(hf_batch_get_item(s, db, &(struct hf_batch_get_item){.tables = gets, .tables_len = 2},
                          &got));
    CHECK_STR("a", got.tables[0].table);
    CHECK_STR(ARN "b", got.unprocessed[0].table);
    m->answer = "{'TableNames':['dev-a','x'],'LastEvaluatedTableName':'dev-x'}";
    TRY(hf_list_tables(s, db, &(struct hf_list_tables){.limit = 5}, &listed));
    CHECK_INT(1, listed.tables_len);
    CHECK_STR("x", listed.last);
    m->answer = "{}";
    TRY(hf_execute_statement(s, db,
                             &(struct hf_execute_statement){.statement = HF_STR("SELECT * FROM a")},
                             NULL));
    m->answer = "{'TableDescription':{'TableName':'dev-a','TableArn':'" ARN "dev-a'}}";
    TRY(hf_create_table(s, db, &(struct hf_create_table){.table = HF_STR("a")}, &made));
    CHECK_STR(ARN "a", made.table->arn);
    return HF_OK;
}

TEST(prefix, without_memory_a_call_fails_and_nothing_leaks)
{
    ALLOC_SWEEP (t, nth) {
        struct mirror m = {.db = {.calls = &mirror_calls}};
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_db *db = NULL;
        enum hf_status status = s ? hf_prefix_open(s, &m.db, HF_STR(PREFIX), &db) : HF_NOMEM;

        if (status == HF_OK)
            status = many_calls(s, db, &m);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_db_close(db);
        hf_scope_free(s);
    }
}

/* The table is there, and only its name could not be told: it may have happened. */
TEST(prefix, a_write_whose_answer_has_no_memory_may_have_happened)
{
    struct mirror m;
    struct world w = open_mirror(t, &m);
    struct hf_create_table_result made = {0};
    struct hf_describe_table_result told = {0};

    m.starve = t;
    m.answer = "{'TableDescription':{'TableArn':'" ARN "dev-a'}}";
    CHECK_STATUS(HF_NOMEM, hf_create_table(w.scope, w.db,
                                           &(struct hf_create_table){.table = HF_STR("a")}, &made));
    CHECK(m.response && !made.table);
    CHECK(hf_scope_error(w.scope)->may_have_happened);
    t->fail_at = 0;
    m.answer = "{'Table':{'TableArn':'" ARN "dev-a'}}";
    CHECK_STATUS(HF_NOMEM,
                 hf_describe_table(w.scope, w.db, &(struct hf_describe_table){.table = HF_STR("a")},
                                   &told));
    CHECK(!told.table);
    CHECK(!hf_scope_error(w.scope)->may_have_happened); /* a read changes nothing */
    t->fail_at = 0;
    close_view(&w);
}
