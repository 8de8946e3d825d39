/*
 * engine/snapshot_states.h: a database with something of everything, and what changes all of it, for tests of
 * snapshots.
 */
#ifndef HF_TEST_SNAPSHOT_STATES_H
#define HF_TEST_SNAPSHOT_STATES_H

#include "dump.h"

#define TABLE                                                                                      \
    "{'TableName':'all','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'g','AttributeType':'S'},"        \
    "{'AttributeName':'k','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':"     \
    "'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],'BillingMode':'PAY_PER_REQUEST',"           \
    "'GlobalSecondaryIndexes':[{'IndexName':'global','KeySchema':[{'AttributeName':'g','KeyType':" \
    "'HASH'}],'Projection':{'ProjectionType':'ALL'}}],"                                            \
    "'LocalSecondaryIndexes':[{'IndexName':'local','KeySchema':[{'AttributeName':'pk','KeyType':"  \
    "'HASH'},{'AttributeName':'k','KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],"    \
    "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'},"          \
    "'Tags':[{'Key':'owner','Value':'ann'}]}"
#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/all"
#define TRANSACTION(pk)                                                                            \
    "{'TransactItems':[{'Put':{'TableName':'all','Item':{'pk':{'S':'" pk                           \
    "'},'sk':{'N':'1'}}}}],'ClientRequestToken':'token-of-" pk "'}"

/* A table with everything, and one that will go. */
static inline void fill(struct world *w)
{
    world_ok(w, "CreateTable", TABLE);
    world_ok(w, "CreateTable", PK_TABLE("goes", STREAM_OF("KEYS_ONLY")));
    world_ok(w, "UpdateTimeToLive",
             "{'TableName':'all','TimeToLiveSpecification':{'Enabled':true,'AttributeName':'t'}}");
    upkeep(w);
    for (int i = 0; i < 5; i++)
        CHECK(!is_error(callf(w, "PutItem",
                              "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'%d'},'g':{'S':"
                              "'g'},'k':{'S':'k%d'},'t':{'N':'1999999999'}}}",
                              i, i)));
    world_ok(w, "PutItem", "{'TableName':'goes','Item':{'pk':{'S':'a'}}}");
    world_ok(w, "TransactWriteItems", TRANSACTION("before"));
}

/* Change all there is to change; what erasing and building is due stays due. */
static inline void mess_up(struct world *w)
{
    world_ok(w, "DeleteTable", "{'TableName':'goes'}");
    world_ok(w, "CreateTable", PK_TABLE("came", STREAM_OF("NEW_IMAGE")));
    world_ok(w, "PutItem", "{'TableName':'came','Item':{'pk':{'S':'a'}}}");
    world_ok(w, "PutItem",
             "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'0'},'g':{'S':'moved'},'t':{'N':"
             "'1888888888'}}}");
    world_ok(w, "DeleteItem", "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}}}");
    world_ok(w, "TransactWriteItems", TRANSACTION("after"));
    world_ok(w, "TagResource", "{'ResourceArn':'" ARN "','Tags':[{'Key':'new','Value':'tag'}]}");
    world_ok(w, "UpdateTable",
             "{'TableName':'all','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'global'}}]"
             "}");
    world_ok(w, "UpdateTable", "{'TableName':'all','StreamSpecification':{'StreamEnabled':false}}");
}

static inline struct hf_engine_snapshot *take(struct world *w)
{
    struct hf_engine_snapshot *snapshot;

    CHECK_OK(hf_engine_snapshot_take(w->scope, w->db, &snapshot));
    return snapshot;
}

static inline void restore(struct world *w, const struct hf_engine_snapshot *snapshot)
{
    if (hf_engine_snapshot_restore(w->scope, w->db, snapshot) != HF_OK)
        fail_msg("restore: %s", hf_scope_error_text(w->scope));
}

#endif
