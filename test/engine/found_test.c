/* engine/found_test.c: what test/oracle and the sweeps found, each as small as it can be told. */
#include "world.h"

#define LOCAL                                                                                      \
    "{'TableName':'lists','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"     \
    "{'AttributeName':'sk','AttributeType':'S'},{'AttributeName':'by','AttributeType':'S'}],"      \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'sk','KeyType':"        \
    "'RANGE'}],'BillingMode':'PAY_PER_REQUEST','LocalSecondaryIndexes':[{'IndexName':'local',"     \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'},{'AttributeName':'by','KeyType':"        \
    "'RANGE'}],'Projection':{'ProjectionType':'KEYS_ONLY'}}]}"

/* A filter may look at what a local index lacks; the answer still has what the index projects. */
TEST(found, a_filter_does_not_widen_what_a_local_index_shows)
{
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", LOCAL);
    world_ok(&w, "PutItem",
             "{'TableName':'lists','Item':{'pk':{'S':'a'},'sk':{'S':'b'},'by':{'S':'c'},"
             "'more':{'N':'1'}}}");
    CHECK_JSON(&w,
               "{'Items':[{'by':{'S':'c'},'pk':{'S':'a'},'sk':{'S':'b'}}],'Count':1,"
               "'ScannedCount':1}",
               "Scan",
               "{'TableName':'lists','IndexName':'local','FilterExpression':'more = :one',"
               "'ExpressionAttributeValues':{':one':{'N':'1'}}}");
    world_close(&w);
}
