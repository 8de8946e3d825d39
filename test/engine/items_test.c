/* engine/items_test.c: single items, on memory and on disk. */
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
