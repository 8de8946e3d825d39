/*
 * bind/bind_test.c: calls by name and JSON: operations as the wire has them, methods of patterns,
 * what is refused and how, the functions that need no scope.
 */
#include <holdfast/bind.h>
#include <holdfast/lock.h>

#include <holdfast/faults.h>

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base.h"
#include "engine/item/latch.h"
#include "help.h"

#define USERS                                                                                      \
    "{'TableName':'users','BillingMode':'PAY_PER_REQUEST','AttributeDefinitions':[{"               \
    "'AttributeName':'id','AttributeType':'S'}],'KeySchema':[{'AttributeName':'id','KeyType':"     \
    "'HASH'}]}"

/* ---- operations ----------------------------------------------------------------------------- */

TEST(bind_json, an_operation_answers_as_the_wire_does)
{
    struct rig_bind r = bind_rig(t, false);
    struct hf_json_answer answer;
    struct hf_str put = bind_json(&r, "{'TableName':'users','Item':{'id':{'S':'7'}}}");

    CHECK_OK(hf_db_call_json(r.s, r.db, HF_STR("CreateTable"), bind_json(&r, USERS), &answer));
    CHECK_INT(200, answer.http_status);
    CHECK_OK(hf_db_call_json(r.s, r.db, HF_STR("PutItem"), put, &answer));
    CHECK_STR("{}", answer.json);
    CHECK_OK(hf_db_call_json(r.s, r.db, HF_STR("GetItem"),
                             bind_json(&r, "{'TableName':'users','Key':{'id':{'S':'7'}}}"),
                             &answer));
    CHECK_STR("{\"Item\":{\"id\":{\"S\":\"7\"}}}", answer.json);
    CHECK_OK(hf_db_call_json(r.s, r.db, HF_STR("ListStreams"), HF_STR("{}"), &answer));
    CHECK_STR("{\"Streams\":[]}", answer.json);
    bind_rig_close(&r);
}

TEST(bind_json, errors_are_those_of_the_wire)
{
    struct rig_bind r = bind_rig(t, false);
    struct hf_json_answer answer;

    CHECK_STATUS(HF_NOT_FOUND,
                 hf_db_call_json(r.s, r.db, HF_STR("GetItem"),
                                 bind_json(&r, "{'TableName':'none','Key':{'id':{'S':'7'}}}"),
                                 &answer));
    CHECK_INT(400, answer.http_status);
    CHECK_STR("{\"__type\":\"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException\","
              "\"message\":\"Requested resource not found\"}",
              answer.json);
    CHECK_STATUS(HF_SERIALIZATION,
                 hf_db_call_json(r.s, r.db, HF_STR("GetItem"), HF_STR("{\"a"), &answer));
    CHECK_STR("{\"__type\":\"com.amazon.coral.service#SerializationException\"}", answer.json);
    CHECK_STATUS(HF_SERIALIZATION,
                 hf_db_call_json(r.s, r.db, HF_STR("GetItem"), (struct hf_str){0}, &answer));
    CHECK_STATUS(HF_UNKNOWN_OPERATION,
                 hf_db_call_json(r.s, r.db, HF_STR("Get\0Item"), HF_STR("{}"), &answer));
    CHECK_STR("{\"__type\":\"com.amazon.coral.service#UnknownOperationException\"}", answer.json);
    CHECK_STATUS(HF_INVALID,
                 hf_db_call_json(r.s, NULL, HF_STR("ListTables"), HF_STR("{}"), &answer));
    bind_rig_close(&r);
}

TEST(bind_json, by_method_an_operation_also_says_whether_it_may_be_repeated)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_BIND(&r, "{'TableNames':[]}", "ListTables", "{}");
    CHECK_BIND(&r, "{'TableNames':[]}", "ListTables", "");
    CHECK_BIND_FAILS(
        &r, HF_NOT_FOUND,
        "{'__type':'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException',"
        "'message':'Requested resource not found: Table: none not found','code':'HF_NOT_FOUND',"
        "'retryable':false,'may_have_happened':false,'operation':'DescribeTable',"
        "'exception':'ResourceNotFoundException','table':'none'}",
        "DescribeTable", "{'TableName':'none'}");
    bind_rig_close(&r);
}

/* ---- arguments ------------------------------------------------------------------------------ */

TEST(bind_arguments, what_is_no_argument_is_refused_by_name)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_BIND_REFUSES(&r,
                       "lock.list: unknown member \"prefx\"; there are table, prefix, free_too, "
                       "limit, after",
                       "lock.list", "{'prefx':'a'}");
    CHECK_BIND_REFUSES(&r, "bind.version: unknown member \"x\"; it has none", "bind.version",
                       "{'x':1}");
    CHECK_BIND_REFUSES(&r, "lock.inspect: \"name\" is missing", "lock.inspect", "{}");
    CHECK_BIND_REFUSES(&r, "lock.inspect: \"name\" is missing", "lock.inspect", "{'name':null}");
    CHECK_BIND_REFUSES(&r, "lock.inspect: \"name\": expected a string, got 7", "lock.inspect",
                       "{'name': 7}");
    CHECK_BIND_REFUSES(&r, "lock.inspect: \"name\" is there twice", "lock.inspect",
                       "{'name':'a','name':'b'}");
    CHECK_BIND_REFUSES(&r,
                       "lock.list: \"limit\": expected a whole number from 0 to 4294967295, "
                       "got 4294967296",
                       "lock.list", "{'limit':4294967296}");
    CHECK_BIND_REFUSES(&r,
                       "lock.list: \"limit\": expected a whole number from 0 to 4294967295, got -1",
                       "lock.list", "{'limit':-1}");
    CHECK_BIND_REFUSES(
        &r, "lock.list: \"limit\": expected a whole number from 0 to 4294967295, got 1.5",
        "lock.list", "{'limit':1.5}");
    CHECK_BIND_REFUSES(&r, "lock.list: \"free_too\": expected true or false, got \"yes\"",
                       "lock.list", "{'free_too':'yes'}");
    CHECK_BIND_REFUSES(&r,
                       "lock.list: the arguments are not valid JSON: expected an object at byte 1",
                       "lock.list", "[]");
    CHECK_BIND_REFUSES(&r, "\"table\" is empty", "lock.list", "{'table':''}");
    CHECK_STATUS(HF_INVALID, bind_call(&r, "lock.list", "{'limit':1"));
    CHECK_STATUS(HF_INVALID, bind_call(&r, "lock.list", "{} {}"));
    CHECK_STATUS(HF_UNKNOWN_OPERATION, bind_call(&r, "lock.lost", "{}"));
    CHECK_STATUS(HF_UNKNOWN_OPERATION, bind_call(&r, "", "{}"));
    bind_rig_close(&r);
}

TEST(bind_methods, are_listed_with_what_they_take_and_give)
{
    struct rig_bind r = bind_rig(t, false);
    const char *expected = "{\"name\":\"lock.break\",\"writes\":true,\"what\":\"Take a lock away "
                           "from one holder, or from all.\",\"arguments\":[{\"name\":\"table\","
                           "\"type\":\"text\"},{\"name\":\"name\",\"type\":\"text\","
                           "\"required\":true},{\"name\":\"id\",\"type\":\"text\"}],\"result\":[{"
                           "\"name\":\"broken\",\"type\":\"u64\"}]}";

    CHECK_OK(bind_call(&r, "bind.methods", ""));
    CHECK(strstr(r.result.ptr, expected) != NULL);
    CHECK_BIND(&r, hf_scope_format(r.s, "{'version':'%s'}", hf_version()).ptr, "bind.version",
               "{}");
    bind_rig_close(&r);
}

/* ---- locks ---------------------------------------------------------------------------------- */

TEST(bind_lock, looking_makes_no_table)
{
    struct rig_bind r = bind_rig(t, false);

    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "lock.list", "{}"));
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "lock.break", "{'name':'a'}"));
    CHECK_BIND(&r, "{'TableNames':[]}", "ListTables", "{}");
    bind_rig_close(&r);
}

TEST(bind_lock, is_listed_and_broken)
{
    struct rig_bind r = bind_rig(t, false);
    struct hf_lock_table *locks;
    struct hf_lock *lock;

    CHECK_OK(hf_lock_table_open(r.s, r.db,
                                HF_OPTIONS(hf_lock_table_options, .owner = HF_STR("ann"),
                                           .no_threads = true),
                                &locks));
    CHECK_OK(hf_lock_try(r.s, locks, HF_STR("job"),
                         HF_OPTIONS(hf_lock_options, .data = HF_ITEM(r.s, HF_N("n", 1))), &lock));
    CHECK_OK(bind_call(&r, "lock.list", "{'prefix':'j'}"));
    CHECK(strstr(r.result.ptr, "\"name\":\"job\",\"mode\":\"exclusive\",\"fence\":1767225600001,"
                               "\"holders\":[{\"id\":\"") != NULL);
    CHECK(strstr(r.result.ptr, "\"owner\":\"ann\"") != NULL);
    CHECK(strstr(r.result.ptr, "\"data\":{\"n\":{\"N\":\"1\"}}") != NULL);
    CHECK_BIND(&r, "{'locks':[]}", "lock.list", "{'prefix':'k'}");
    CHECK_BIND(&r, "{'broken':1}", "lock.break", "{'name':'job'}");
    CHECK_BIND(&r, "{'name':'job','fence':1767225600002,'holders':[],'data':{'n':{'N':'1'}}}",
               "lock.inspect", "{'name':'job'}");
    CHECK_STATUS(HF_LOST, hf_lock_release(r.s, lock));
    hf_lock_table_close(locks);
    bind_rig_close(&r);
}

TEST(bind_read_only, refuses_what_writes)
{
    struct rig_bind r = bind_rig(t, true);

    CHECK_STATUS(HF_DENIED, bind_call(&r, "lock.break", "{'name':'job'}"));
    CHECK_STATUS(HF_DENIED, bind_call(&r, "PutItem", "{'TableName':'a','Item':{}}"));
    CHECK_STATUS(HF_DENIED,
                 bind_call(&r, "ExecuteStatement", "{'Statement':'DELETE FROM a WHERE b = 1'}"));
    CHECK_STATUS(HF_NOT_FOUND,
                 bind_call(&r, "ExecuteStatement", "{'Statement':' select * from abc'}"));
    CHECK_STATUS(HF_NOT_FOUND, bind_call(&r, "lock.list", "{}"));
    bind_rig_close(&r);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(bind_memory, any_failed_allocation_is_an_error)
{
    struct rig_bind r = bind_rig(t, false);
    struct hf_lock_table *locks;

    CHECK_OK(hf_lock_table_open(r.s, r.db, HF_OPTIONS(hf_lock_table_options, .no_threads = true),
                                &locks));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_bind *bind = NULL;
        struct hf_str result = {0};
        enum hf_status status = s ? hf_bind_open(s, r.db, NULL, &bind) : HF_NOMEM;

        if (status == HF_OK)
            status =
                hf_bind_call(s, bind, HF_STR("lock.list"), HF_STR("{\"free_too\":true}"), &result);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        CHECK(status != HF_OK || hf_str_equal(result, HF_STR("{\"locks\":[]}")));
        hf_bind_close(bind);
        hf_scope_free(s);
    }
    hf_lock_table_close(locks);
    bind_rig_close(&r);
}

/* ---- without a scope ------------------------------------------------------------------------ */

TEST(bind_flat, opens_calls_and_frees)
{
    struct hf_bind *bind;
    char *answer;
    size_t len;

    CHECK_INT(HF_INVALID, hf_bind_open_url("nowhere", 7, NULL, 0, &bind, &answer, &len));
    CHECK(bind == NULL && strstr(answer, "\"code\":\"HF_INVALID\"") != NULL);
    hf_bind_free(answer);
    CHECK_INT(HF_INVALID, hf_bind_open_url("memory:", 7, "{\"sink\":1}", 10, &bind, &answer, &len));
    CHECK(strstr(answer, "there are read_only, no_create, sync, region, owner") != NULL);
    hf_bind_free(answer);
    CHECK_INT(HF_OK,
              hf_bind_open_url("memory:", 7, "{\"sync\":\"none\"}", 15, &bind, &answer, &len));
    CHECK_STR("{}", hf_str_of(answer, len));
    hf_bind_free(answer);
    CHECK_INT(HF_OK, hf_bind_request(bind, "ListTables", 10, "{}", 2, &answer, &len));
    CHECK_STR("{\"TableNames\":[]}", hf_str_of(answer, len));
    CHECK_INT(0, hf_bind_cancel(bind, 1));
    hf_bind_close(bind);
    CHECK_INT('\0', answer[len]);
    hf_bind_free(answer); /* also after the bind is gone */
    CHECK_INT(HF_INVALID, hf_bind_request(NULL, "ListTables", 10, "{}", 2, &answer, &len));
    CHECK_INT(HF_INVALID, hf_bind_connect("memory:", 7, "", 0, &bind, &answer, &len));
    hf_bind_free(answer);
}

/* ---- calls that take long ------------------------------------------------------------------- */

/* A database where whatever names the table "slow" takes as long as it likes. */
static struct rig_bind slow_rig(struct test *t)
{
    const struct hf_fault slow = {.kind = HF_FAULT_LATENCY,
                                  .table = HF_STR("slow"),
                                  .latency_ms = 600000};
    struct rig_bind r = {.t = t, .s = hf_scope_new(NULL)};
    struct hf_db *inner;

    CHECK(r.s != NULL);
    CHECK_OK(hf_open(r.s, HF_STR("memory:"), NULL, &inner));
    CHECK_OK(hf_faulty_open(r.s, inner, &r.db));
    CHECK_OK(hf_faulty_set(r.s, r.db, &slow, 1));
    CHECK_OK(hf_bind_open(r.s, r.db, NULL, &r.bind));
    return r;
}

struct slow_call {
    struct hf_bind *bind;
    const char *method, *json;
    pthread_t thread;
    int status;
};

static void *call_slowly(void *user)
{
    struct slow_call *call = user;
    size_t len;
    char *answer;

    call->status = hf_bind_request(call->bind, call->method, strlen(call->method), call->json,
                                   strlen(call->json), &answer, &len);
    hf_bind_free(answer);
    return NULL;
}

static void slow_begin(struct slow_call *call)
{
    CHECK_INT(0, pthread_create(&call->thread, NULL, call_slowly, call));
}

static int slow_cancel(struct slow_call *call, uint64_t number)
{
    while (hf_bind_cancel(call->bind, number) == 0)
        usleep(1000);
    CHECK_INT(0, pthread_join(call->thread, NULL));
    return call->status;
}

static void wait_for_slow(struct rig_bind *r)
{
    const struct hf_fault *faults;
    size_t len;

    do {
        usleep(1000);
        CHECK_OK(hf_faulty_get(r->s, r->db, &faults, &len));
    } while (!faults[0].struck);
}

static int request(struct rig_bind *r, const char *method, const char *json)
{
    struct hf_str text = bind_json(r, json);
    char *answer;
    size_t len;
    int status =
        hf_bind_request(r->bind, method, strlen(method), text.ptr, text.len, &answer, &len);

    r->result = hf_scope_copy(r->s, hf_str_of(answer, len));
    hf_bind_free(answer);
    return status;
}

TEST(bind_slow, an_operation_ends_at_its_deadline)
{
    struct rig_bind r = slow_rig(t);

    CHECK_INT(HF_TIMEOUT, request(&r, "GetItem",
                                  "{'TableName':'slow','Key':{'id':{'S':'7'}},'deadline_ms':30}"));
    CHECK(strstr(r.result.ptr, "\"code\":\"HF_TIMEOUT\"") != NULL);
    CHECK_INT(HF_TIMEOUT, request(&r, "DescribeTable", "{'deadline_ms':'30','TableName':'slow'}"));
    CHECK_INT(HF_OK, request(&r, "ListTables", "{'deadline_ms':60000,'cancel':7,'Limit':5}"));
    CHECK_STR("{\"TableNames\":[]}", r.result);
    CHECK_INT(HF_OK, request(&r, "ListTables", "{'deadline_ms':null}"));
    CHECK_INT(HF_INVALID, request(&r, "ListTables", "{'deadline_ms':-1}"));
    CHECK_STR(
        "{\"__type\":\"com.amazon.coral.validate#ValidationException\",\"message\":"
        "\"ListTables: \\\"deadline_ms\\\": expected a whole number from 0 to 4294967295, got "
        "-1\",\"code\":\"HF_INVALID\",\"retryable\":false,\"may_have_happened\":false}",
        r.result);
    CHECK_INT(HF_INVALID, request(&r, "ListTables", "{'cancel':{'x':1}}"));
    CHECK_INT(HF_SERIALIZATION, request(&r, "ListTables", "{'deadline_ms':3"));
    /* Only of the call itself, not of what is in its items. */
    CHECK_STATUS(HF_NOT_FOUND,
                 request(&r, "PutItem",
                         "{'TableName':'none','Item':{'cancel':{'S':'x'},'deadline_ms':{'S':"
                         "'x'}}}"));
    bind_rig_close(&r);
}

TEST(bind_slow, an_operation_is_canceled_by_its_number)
{
    struct rig_bind r = slow_rig(t);
    struct slow_call call = {
        .bind = r.bind,
        .method = "GetItem",
        .json = "{\"cancel\":7,\"TableName\":\"slow\",\"Key\":{\"id\":{\"S\":\"7\"}}}"};

    slow_begin(&call);
    CHECK_INT(HF_CANCELED, slow_cancel(&call, 7));
    CHECK_INT(HF_OK, request(&r, "ListTables", "{'cancel':7}"));
    bind_rig_close(&r);
}

TEST(bind_slow, who_opens_a_slow_table_keeps_nobody_else_waiting)
{
    struct rig_bind r = slow_rig(t);
    struct slow_call first = {.bind = r.bind,
                              .method = "lock.list",
                              .json = "{\"table\":\"slow\",\"cancel\":1}"};
    struct slow_call second = first;

    second.json = "{\"table\":\"slow\",\"cancel\":2,\"prefix\":\"a\"}";
    slow_begin(&first);
    wait_for_slow(&r); /* the first one is asking for its table */
    /* Other tables, other kinds, operations. */
    CHECK_INT(HF_OK, request(&r, "lock.try", "{'name':'a','table':'fast','deadline_ms':60000}"));
    CHECK_INT(HF_OK, request(&r, "counter.add", "{'id':'a','by':1,'deadline_ms':60000}"));
    CHECK_INT(HF_OK, request(&r, "ListTables", "{}"));
    /* Who needs the same table waits for it, as long as it likes. */
    CHECK_INT(HF_TIMEOUT, request(&r, "lock.list", "{'table':'slow','deadline_ms':30}"));
    slow_begin(&second);
    CHECK_INT(HF_CANCELED, slow_cancel(&second, 2));
    /* And opens it when the first one could not. */
    slow_begin(&second);
    CHECK_INT(HF_CANCELED, slow_cancel(&first, 1));
    CHECK_OK(hf_faulty_set(r.s, r.db, NULL, 0));
    (void)hf_bind_cancel(r.bind, 2);
    CHECK_INT(0, pthread_join(second.thread, NULL));
    CHECK(second.status == HF_NOT_FOUND || second.status == HF_CANCELED);
    CHECK_INT(HF_OK, request(&r, "lock.try", "{'name':'a','table':'slow','deadline_ms':60000}"));
    bind_rig_close(&r);
}

TEST(bind_slow, a_bind_ends_while_tables_are_being_opened)
{
    enum { CALLS = 4 };
    struct rig_bind r = slow_rig(t);
    struct slow_call calls[CALLS];

    for (int i = 0; i < CALLS; i++) {
        calls[i] = (struct slow_call){.bind = r.bind,
                                      .method = "lock.list",
                                      .json = "{\"table\":\"slow\"}"};
        slow_begin(&calls[i]);
    }
    wait_for_slow(&r);
    usleep(20000); /* most likely the others wait by now; whether they do must not matter */
    hf_bind_close(r.bind);
    r.bind = NULL;
    for (int i = 0; i < CALLS; i++) {
        CHECK_INT(0, pthread_join(calls[i].thread, NULL));
        CHECK(calls[i].status == HF_CANCELED || calls[i].status == HF_STOPPED);
    }
    bind_rig_close(&r);
}

/* ---- without waiting ------------------------------------------------------------------------ */

static const char thing_get[] = "{'TableName':'things','Key':{'id':{'S':'7'}}}";
static const char thing_get_newest[] =
    "{'TableName':'things','Key':{'id':{'S':'7'}},'ConsistentRead':true}";
static const char thing_put[] = "{'TableName':'things','Item':{'id':{'S':'7'}}}";
static const char thing_update[] =
    "{'TableName':'things','Key':{'id':{'S':'7'}},'UpdateExpression':'SET n = :n',"
    "'ExpressionAttributeValues':{':n':{'N':'1'}}}";
static const char thing_refused[] =
    "{'TableName':'things','Item':{'id':{'S':'7'}},'ConditionExpression':"
    "'attribute_not_exists(id)'}";

static bool try_call(struct rig_bind *r, enum hf_status expected, const char *method,
                     const char *json)
{
    bool done;
    enum hf_status status =
        hf_bind_try(r->s, r->bind, hf_str_from(method), bind_json(r, json), &done, &r->result);

    CHECK_INT(expected, status);
    CHECK(done == (r->result.ptr != NULL));
    CHECK(done || hf_scope_error(r->s)->status == HF_OK);
    return done;
}

static void make_things(struct rig_bind *r)
{
    CHECK_OK(bind_call(r, "CreateTable",
                       "{'TableName':'things','BillingMode':'PAY_PER_REQUEST','KeySchema':[{"
                       "'AttributeName':'id','KeyType':'HASH'}],'AttributeDefinitions':[{"
                       "'AttributeName':'id','AttributeType':'S'}]}"));
}

TEST(bind_try, one_item_in_memory_is_done_at_once)
{
    struct rig_bind r = bind_rig(t, false);

    make_things(&r);
    CHECK(try_call(&r, HF_OK, "PutItem", thing_put));
    CHECK(try_call(&r, HF_OK, "UpdateItem", thing_update));
    CHECK(try_call(&r, HF_OK, "GetItem", thing_get));
    CHECK_STR("{\"Item\":{\"id\":{\"S\":\"7\"},\"n\":{\"N\":\"1\"}}}", r.result);
    CHECK(try_call(&r, HF_OK, "GetItem", thing_get_newest));
    CHECK(try_call(&r, HF_CONDITION, "PutItem", thing_refused));
    CHECK(strstr(r.result.ptr, "ConditionalCheckFailedException") != NULL);
    CHECK(try_call(&r, HF_SERIALIZATION, "GetItem", "{"));
    CHECK(try_call(&r, HF_OK, "DeleteItem", thing_get));
    CHECK_BIND(&r, "{}", "GetItem", thing_get);
    bind_rig_close(&r);
}

enum { LATCHES_HELD = 32 };

_Static_assert(LATCH_COUNT % LATCHES_HELD == 0, "each latch is held once");

TEST(bind_try, what_may_take_long_is_left_alone)
{
    struct rig_bind r = bind_rig(t, false);
    struct engine *e = hf__engine_of(r.db);
    bool done = true;
    int refused = 0;

    make_things(&r);
    CHECK(!try_call(&r, HF_OK, "Scan", "{'TableName':'things'}"));
    CHECK(!try_call(&r, HF_OK, "CreateTable", "{}"));
    CHECK(!try_call(&r, HF_OK, "lock.list", "{}"));
    CHECK(!try_call(&r, HF_OK, "nothing", "{}"));
    CHECK_OK(hf_bind_try(r.s, NULL, HF_STR("GetItem"), HF_STR("{}"), &done, &r.result));
    CHECK(!done);
    CHECK_INT(0, pthread_rwlock_wrlock(&e->schema)); /* as somebody who makes a table has it */
    CHECK(!try_call(&r, HF_OK, "PutItem", thing_put));
    CHECK(!try_call(&r, HF_OK, "GetItem", thing_get));
    pthread_rwlock_unlock(&e->schema);
    /* The latch of the item, as a transaction that writes has it, is one of these; a few at a time, as
     * the search for deadlocks of the thread sanitizer ends at 64. */
    for (size_t first = 0; first < LATCH_COUNT; first += LATCHES_HELD) {
        for (size_t i = first; i < first + LATCHES_HELD; i++)
            hf__latch(e, i);
        refused += !try_call(&r, HF_OK, "PutItem", thing_put);
        CHECK(try_call(&r, HF_OK, "GetItem", thing_get));
        for (size_t i = first; i < first + LATCHES_HELD; i++)
            hf__unlatch(e, i, 0);
    }
    CHECK_INT(1, refused);
    CHECK(try_call(&r, HF_OK, "PutItem", thing_put));
    bind_rig_close(&r);
}

enum { LARGE = 60000 };

static void put_large(struct rig_bind *r, int id)
{
    char *pad = hf_scope_alloc(r->s, LARGE);
    struct hf_str json;

    CHECK(pad != NULL);
    memset(pad, 'x', LARGE);
    json =
        hf_scope_format(r->s, "{'TableName':'things','Item':{'id':{'S':'%d'},'pad':{'S':'%.*s'}}}",
                        id, LARGE, pad);
    CHECK_OK(bind_call(r, "PutItem", json.ptr));
}

TEST(bind_try, of_a_directory_only_reads_of_what_is_in_memory)
{
    struct rig_bind r;
    char url[PATH_MAX];

    (void)snprintf(url, sizeof(url), "embedded:%s/db", test_directory(t));
    r = bind_rig_real(t, url);

    make_things(&r);
    CHECK(!try_call(&r, HF_OK, "PutItem", thing_put));
    CHECK_BIND(&r, "{}", "GetItem", thing_get); /* it was not done */
    CHECK_OK(bind_call(&r, "PutItem", thing_put));
    for (int i = 0; i < 10; i++) /* what an open reads is in other blocks */
        put_large(&r, i);
    CHECK(try_call(&r, HF_OK, "GetItem", thing_get));
    CHECK(try_call(&r, HF_OK, "GetItem", thing_get_newest));
    bind_rig_close(&r);
    r = bind_rig_real(t, url);
    CHECK(!try_call(&r, HF_OK, "GetItem", thing_get));
    CHECK_OK(bind_call(&r, "GetItem", thing_get));
    CHECK(try_call(&r, HF_OK, "GetItem", thing_get));
    CHECK(strstr(r.result.ptr, "{\"Item\":{\"id\":{\"S\":\"7\"}") == r.result.ptr);
    bind_rig_close(&r);
}

/* A client waits for a network, whatever it is asked for. */
TEST(bind_try, of_a_service_nothing)
{
    struct rig_bind r = bind_rig_real(t, "http://127.0.0.1:1");

    CHECK(!try_call(&r, HF_OK, "GetItem", thing_get));
    bind_rig_close(&r);
}
