/*
 * engine/honest_test.c: a call that fails for lack of memory says whether it may have happened.
 *
 * A scope takes memory in large pieces, so the place at which a call runs out is moved by what is
 * in the scope before: for each of many fillings every allocation of the call fails in turn. When
 * the error says "not done", nothing may be done.
 */
#include "world.h"

#include "ops/fields.h"
#include "wire/wire.h"

#define TABLE                                                                                      \
    "{'TableName':'users','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"     \
    "{'AttributeName':'city','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':"  \
    "'HASH'}],'BillingMode':'PAY_PER_REQUEST','StreamSpecification':{'StreamEnabled':true,"        \
    "'StreamViewType':'NEW_AND_OLD_IMAGES'},'GlobalSecondaryIndexes':[{'IndexName':'by_city',"     \
    "'KeySchema':[{'AttributeName':'city','KeyType':'HASH'}],'Projection':{'ProjectionType':"      \
    "'ALL'}}]}"

enum { FILL_STEP = 48, FILL_MAX = 8 * 1024, NTH_MAX = 60 };

/* One call, in a scope of its own with `fill` bytes in it; the nth allocation fails. */
static enum hf_status call_failing(struct world *w, const char *operation, const char *json,
                                   size_t fill, int nth, bool *may_have_happened)
{
    const struct op *op = hf__op_of_name(OP_DYNAMODB, hf_str_from(operation));
    void *request = hf__scope_array(w->scope, 1, op->request->size);
    void *response = hf__scope_array(w->scope, 1, op->response->size);
    struct hf_scope *s = hf_scope_new(test_env(w->t));
    enum hf_status status;

    CHECK_OK(hf__wire_read(w->scope, op->request, world_json(w, json), request));
    hf_scope_alloc(s, fill);
    w->t->alloc_failed = false;
    w->t->fail_at = (int64_t)w->t->allocs + nth;
    status = hf_db_call(s, w->db, op->op, request, response);
    w->t->fail_at = 0;
    *may_have_happened = hf_scope_error(s)->may_have_happened;
    hf_scope_free(s);
    return status;
}

/* What `look` gives before and after a call that did not happen is the same. */
static void must_be_honest(struct test *t, const char *operation, const char *json,
                           const char *look, const char *look_json)
{
    unsigned not_done = 0;

    for (size_t fill = 0; fill < FILL_MAX; fill += FILL_STEP) {
        for (int nth = 1; nth < NTH_MAX; nth++) {
            struct world w = world_open(t, "memory:");
            struct hf_str before, after;
            enum hf_status status;
            bool may;

            world_ok(&w, "CreateTable", TABLE);
            world_ok(&w, "PutItem",
                     "{'TableName':'users','Item':{'pk':{'S':'ann'},'city':{'S':'Bern'}}}");
            before = world_call(&w, look, look_json);
            status = call_failing(&w, operation, json, fill, nth, &may);
            after = world_call(&w, look, look_json);
            if (status != HF_OK) {
                CHECK_STATUS(HF_NOMEM, status);
                if (!may && !hf_str_equal(before, after))
                    fail_msg("%s, fill %zu, allocation %d: \"not done\", but there is %.*s",
                             operation, fill, nth, HF_FMT(after));
                not_done += !may;
            }
            world_close(&w);
            if (!t->alloc_failed)
                break;
        }
    }
    CHECK(not_done > 0);
}

#define USERS "{'TableName':'users'}"

TEST(honest, put_item)
{
    must_be_honest(t, "PutItem",
                   "{'TableName':'users','Item':{'pk':{'S':'ben'},'city':{'S':'Rome'}},"
                   "'ReturnValues':'ALL_OLD','ReturnConsumedCapacity':'INDEXES'}",
                   "Scan", USERS);
}

TEST(honest, update_item)
{
    must_be_honest(t, "UpdateItem",
                   "{'TableName':'users','Key':{'pk':{'S':'ann'}},'UpdateExpression':'SET n = :n',"
                   "'ExpressionAttributeValues':{':n':{'N':'1'}},'ReturnValues':'ALL_NEW',"
                   "'ReturnConsumedCapacity':'INDEXES'}",
                   "Scan", USERS);
}

TEST(honest, delete_item)
{
    must_be_honest(t, "DeleteItem",
                   "{'TableName':'users','Key':{'pk':{'S':'ann'}},'ReturnValues':'ALL_OLD',"
                   "'ReturnConsumedCapacity':'INDEXES'}",
                   "Scan", USERS);
}

TEST(honest, batch_write_item)
{
    must_be_honest(t, "BatchWriteItem",
                   "{'RequestItems':{'users':[{'PutRequest':{'Item':{'pk':{'S':'x'}}}},"
                   "{'DeleteRequest':{'Key':{'pk':{'S':'ann'}}}}]},'ReturnConsumedCapacity':"
                   "'INDEXES','ReturnItemCollectionMetrics':'SIZE'}",
                   "Scan", USERS);
}

TEST(honest, transact_write_items)
{
    must_be_honest(t, "TransactWriteItems",
                   "{'ClientRequestToken':'t','TransactItems':[{'Put':{'TableName':'users','Item':"
                   "{'pk':{'S':'x'}}}},{'Delete':{'TableName':'users','Key':{'pk':{'S':'ann'}}}}],"
                   "'ReturnConsumedCapacity':'INDEXES','ReturnItemCollectionMetrics':'SIZE'}",
                   "Scan", USERS);
}

TEST(honest, create_table)
{
    must_be_honest(t, "CreateTable",
                   "{'TableName':'more','AttributeDefinitions':[{'AttributeName':'pk',"
                   "'AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
                   "'BillingMode':'PAY_PER_REQUEST'}",
                   "ListTables", "{}");
}

TEST(honest, delete_table)
{
    must_be_honest(t, "DeleteTable", USERS, "ListTables", "{}");
}

TEST(honest, update_table)
{
    must_be_honest(t, "UpdateTable",
                   "{'TableName':'users','StreamSpecification':{'StreamEnabled':false}}",
                   "DescribeTable", USERS);
}
