/* engine/items_test.c: single items, on memory and on disk. */
#include <stdio.h>

#include "world.h"

#define USERS                                                                                      \
    "{'TableName':'users','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"     \
    "{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'city','AttributeType':'S'}],"    \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk','KeyType':"        \
    "'RANGE'}],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'by_city',"  \
    "'KeySchema':[{'AttributeName':'city','KeyType':'HASH'}],'Projection':{'ProjectionType':"      \
    "'ALL'}}]}"

static void put_get_update_delete(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);

    world_ok(&w, "CreateTable", USERS);
    CHECK_JSON(&w, "{}", "PutItem",
               "{'TableName':'users','Item':{'pk':{'S':'a'},'sk':{'N':'1'},'city':{'S':'x'}}}");
    CHECK_JSON(&w, "{'Item':{'city':{'S':'x'},'pk':{'S':'a'},'sk':{'N':'1'}}}", "GetItem",
               "{'TableName':'users','Key':{'pk':{'S':'a'},'sk':{'N':'1.0'}}}");
    CHECK_JSON(&w, "{'Attributes':{'n':{'N':'5'}}}", "UpdateItem",
               "{'TableName':'users','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'UpdateExpression':"
               "'ADD n :five','ExpressionAttributeValues':{':five':{'N':'5'}},'ReturnValues':"
               "'UPDATED_NEW'}");
    CHECK_JSON(&w,
               "{'Items':[{'city':{'S':'x'},'n':{'N':'5'},'pk':{'S':'a'},'sk':{'N':'1'}}],"
               "'Count':1,'ScannedCount':1}",
               "Query",
               "{'TableName':'users','IndexName':'by_city','KeyConditionExpression':'city = :c',"
               "'ExpressionAttributeValues':{':c':{'S':'x'}}}");
    CHECK_FAILS(&w, "ConditionalCheckFailedException", "The conditional request failed",
                "DeleteItem",
                "{'TableName':'users','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},"
                "'ConditionExpression':'n = :six','ExpressionAttributeValues':{':six':{'N':'6'}}}");
    CHECK_JSON(&w, "{'Attributes':{'city':{'S':'x'},'n':{'N':'5'},'pk':{'S':'a'},'sk':{'N':'1'}}}",
               "DeleteItem",
               "{'TableName':'users','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},"
               "'ReturnValues':'ALL_OLD'}");
    CHECK_JSON(&w, "{}", "GetItem", "{'TableName':'users','Key':{'pk':{'S':'a'},'sk':{'N':'1'}}}");
    world_close(&w);
}

TEST(items, put_get_update_delete_in_memory)
{
    put_get_update_delete(t, "memory:");
}

TEST(items, put_get_update_delete_on_disk)
{
    put_get_update_delete(t, "disk:");
}

/* The answer must not lean on the request: it is overwritten here before the answer is looked at.
 */
TEST(items, what_a_batch_left_lives_in_the_scope)
{
    enum { ITEMS = 42, BYTES = 400000 };
    struct world w = world_open(t, "memory:");
    char *filled = hf_scope_alloc(w.scope, BYTES);
    char name[] = "big";
    char names[ITEMS][8];
    struct hf_item keys[ITEMS];
    struct hf_str wanted[] = {HF_STR("pk")};
    struct hf_table_gets gets = {.table = hf_str_of(name, 3),
                                 .keys = keys,
                                 .keys_len = ITEMS,
                                 .attributes_to_get = wanted,
                                 .attributes_to_get_len = 1};
    struct hf_batch_get_item request = {.tables = &gets, .tables_len = 1};
    struct hf_batch_get_item_result result = {.tables = NULL};
    const struct hf_table_gets *left;

    CHECK(filled != NULL);
    memset(filled, 'x', BYTES);
    world_ok(&w, "CreateTable",
             "{'TableName':'big','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':"
             "'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':"
             "'PAY_PER_REQUEST'}");
    for (size_t i = 0; i < ITEMS; i++) {
        struct hf_put_item put = {.table = HF_STR("big")};
        struct hf_put_item_result none = {.capacity = NULL};

        snprintf(names[i], sizeof(names[i]), "k%02zu", i);
        keys[i] = HF_ITEM(w.scope, HF_S("pk", hf_str_from(names[i])));
        put.item = HF_ITEM(w.scope, HF_S("pk", hf_str_from(names[i])),
                           HF_S("v", hf_str_of(filled, BYTES)));
        CHECK_OK(hf_put_item(w.scope, w.db, &put, &none));
    }
    CHECK_OK(hf_batch_get_item(w.scope, w.db, &request, &result));
    memset(name, '?', sizeof(name) - 1);
    for (size_t i = 0; i < ITEMS; i++)
        memset((void *)(uintptr_t)keys[i].ptr, 0, keys[i].len);
    memset(keys, 0, sizeof(keys));
    wanted[0] = HF_STR("??");
    CHECK(result.tables_len == 1 && result.tables[0].items_len < ITEMS);
    CHECK(result.unprocessed_len == 1);
    left = &result.unprocessed[0];
    CHECK_STR("big", left->table);
    CHECK_INT(ITEMS, result.tables[0].items_len + left->keys_len);
    CHECK(hf_item_equal(left->keys[left->keys_len - 1],
                        HF_ITEM(w.scope, HF_S("pk", hf_str_from(names[ITEMS - 1])))));
    CHECK_STR("pk", left->attributes_to_get[0]);
    CHECK(!left->projection.ptr && !left->names.ptr);
    world_close(&w);
}

#define BAD_VALUES "One or more parameter values were invalid: "

/* The engine's wording reaches what the decoder refused, for the operations that have moved. */
TEST(items, duplicates_are_worded_as_the_engine_is_told)
{
    struct world w = world_open(t, "memory:");
    const char *put = "{'TableName':'users','Item':{'pk':{'S':'a'},'s':{'SS':['b','a','b']}}}";
    const char *batch = "{'RequestItems':{'users':[{'PutRequest':{'Item':{'pk':{'S':'a'},"
                        "'s':{'SS':['b','a','b']}}}}]}}";

    CHECK_FAILS(&w, "ValidationException",
                BAD_VALUES "Input collection [b, a, b] contains duplicates.", "PutItem", put);
    w.options.wording = HF_WORDING_2026;
    world_reopen(&w);
    CHECK_FAILS(&w, "ValidationException",
                "1 validation error detected: " BAD_VALUES
                "Input collection [\"a\", \"b\", \"b\"] contains duplicates.",
                "PutItem", put);
    CHECK_FAILS(&w, "ValidationException",
                BAD_VALUES "Input collection [b, a, b] contains duplicates.", "BatchWriteItem",
                batch);
    world_close(&w);
}
