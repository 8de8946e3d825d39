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

/* Items that change while an index is being built are counted once. */
TEST(found, counts_of_an_index_are_right_when_items_change_while_it_is_built)
{
    struct world w = world_open(t, "memory:");
    struct hf_upkeep_report report;
    struct hf_describe_table_result result;

    world_ok(&w, "CreateTable", LOCAL);
    world_ok(&w, "PutItem",
             "{'TableName':'lists','Item':{'pk':{'S':'moved'},'sk':{'S':'b'},'g':{'S':'c'}}}");
    world_ok(&w, "PutItem",
             "{'TableName':'lists','Item':{'pk':{'S':'gone'},'sk':{'S':'b'},'g':{'S':'c'}}}");
    world_ok(&w, "PutItem",
             "{'TableName':'lists','Item':{'pk':{'S':'grown'},'sk':{'S':'b'},'g':{'S':'c'}}}");
    world_ok(&w, "UpdateTable",
             "{'TableName':'lists','AttributeDefinitions':[{'AttributeName':'g','AttributeType':"
             "'S'}],'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'late','KeySchema':[{"
             "'AttributeName':'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}");
    world_ok(&w, "PutItem",
             "{'TableName':'lists','Item':{'pk':{'S':'moved'},'sk':{'S':'b'},'g':{'S':'d'}}}");
    world_ok(&w, "DeleteItem", "{'TableName':'lists','Key':{'pk':{'S':'gone'},'sk':{'S':'b'}}}");
    world_ok(&w, "PutItem",
             "{'TableName':'lists','Item':{'pk':{'S':'grown'},'sk':{'S':'b'},'g':{'S':'c'},"
             "'x':{'S':'more'}}}");
    CHECK_OK(hf_engine_upkeep(w.scope, w.db, &report));
    CHECK_OK(hf_describe_table(w.scope, w.db, &(struct hf_describe_table){.table = HF_STR("lists")},
                               &result));
    CHECK_INT(2, result.table->global_indexes[0].item_count);
    CHECK_INT(result.table->size_bytes, result.table->global_indexes[0].size_bytes);
    world_close(&w);
}
