/*
 * engine/stopped_test.c: a database whose sync has failed. Every read goes on, and shows what is
 * durable; no write is taken. fdatasync() of this program is our own, so that it can fail.
 */
#include "help.h"

#include <errno.h>
#include <sys/syscall.h>

enum { SOON_STEPS = 500, STEP_US = 10000 };

static atomic_bool sync_fails;

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    if (atomic_load(&sync_fails)) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, fd);
}

/* Reads go on soon after the failure: memory is filled again first. */
static struct hf_str soon(struct world *w, const char *operation, const char *json)
{
    struct hf_str answer = world_call(w, operation, json);

    for (int i = 0; is_error(answer) && i < SOON_STEPS; i++) {
        usleep(STEP_US);
        answer = world_call(w, operation, json);
    }
    CHECK(!is_error(answer));
    return answer;
}

static bool has(struct hf_str answer, const char *text)
{
    return memmem(answer.ptr, answer.len, text, strlen(text)) != NULL;
}

static const char *iterator_of(struct world *w)
{
    struct hf_str answer = world_ok(w, "DescribeTable", "{'TableName':'tab'}");
    struct hf_str arn = next_text(&answer, "LatestStreamArn"), shards, iterator;
    struct hf_str whole = callf(w, "DescribeStream", "{'StreamArn':'%.*s'}", HF_FMT(arn));

    shards = next_text(&whole, "ShardId");
    iterator = callf(w, "GetShardIterator",
                     "{'StreamArn':'%.*s','ShardId':'%.*s','ShardIteratorType':'TRIM_HORIZON'}",
                     HF_FMT(arn), HF_FMT(shards));
    iterator = next_text(&iterator, "ShardIterator");
    return hf_scope_format(w->scope, "{'ShardIterator':'%.*s'}", HF_FMT(iterator)).ptr;
}

static void fail_a_put(struct world *w)
{
    atomic_store(&sync_fails, true);
    CHECK(is_error(
        world_call(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'b'},'v':{'S':'lost'}}}")));
    CHECK(hf_scope_error(w->scope)->may_have_happened);
    CHECK(is_error(world_call(w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}")));
    atomic_store(&sync_fails, false);
}

/* P5, S6: of each kind of read one. P3: none shows what a crash could take back. */
TEST(stopped, every_read_goes_on)
{
    struct world w = world_open(t, "memory:");
    char url[256];
    const char *records;
    struct hf_str answer;

    snprintf(url, sizeof(url), "embedded:%s/store", test_directory(t));
    w.url = url;
    w.options.sync = HF_SYNC_FULL;
    w.options.stream_shards = 1;
    world_reopen(&w);
    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_AND_OLD_IMAGES")));
    world_ok(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'},'v':{'S':'kept'}}}");
    world_ok(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'b'},'v':{'S':'kept'}}}");
    records = iterator_of(&w);
    fail_a_put(&w);

    answer = soon(&w, "Scan", "{'TableName':'tab','ConsistentRead':true}");
    CHECK(has(answer, "\"Count\":2") && !has(answer, "lost"));
    answer = soon(&w, "BatchGetItem",
                  "{'RequestItems':{'tab':{'ConsistentRead':true,'Keys':[{'pk':{'S':'a'}},"
                  "{'pk':{'S':'b'}}]}}}");
    CHECK(has(answer, "kept") && !has(answer, "lost"));
    answer = soon(&w, "GetRecords", records);
    CHECK(has(answer, "kept") && !has(answer, "lost"));
    answer =
        soon(&w, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'b'}},'ConsistentRead':true}");
    CHECK(has(answer, "kept"));
    answer = soon(&w, "Query",
                  "{'TableName':'tab','KeyConditionExpression':'pk = :a','ConsistentRead':true,"
                  "'ExpressionAttributeValues':{':a':{'S':'b'}}}");
    CHECK(has(answer, "kept"));
    answer = soon(&w, "TransactGetItems",
                  "{'TransactItems':[{'Get':{'TableName':'tab','Key':{'pk':{'S':'b'}}}}]}");
    CHECK(has(answer, "kept"));
    answer =
        soon(&w, "ExecuteStatement", "{'Statement':'SELECT * FROM tab','ConsistentRead':true}");
    CHECK(has(answer, "kept") && !has(answer, "lost"));

    CHECK(is_error(world_call(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'c'}}}")));
    CHECK_STATUS(HF_STOPPED, hf_scope_error(w.scope)->status);
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));
    world_reopen(&w);
    world_ok(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'c'}}}");
    world_close(&w);
}
