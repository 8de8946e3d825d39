/*
 * engine/sweep_operations.h: what sweep_test.c does while one thing after the other fails: an example, or
 * several, of every operation, and the table that they are about.
 */
#ifndef HF_TEST_SWEEP_OPERATIONS_H
#define HF_TEST_SWEEP_OPERATIONS_H

#include "base/base.h"

#define TABLE                                                                                      \
    "{'TableName':'all','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'},"       \
    "{'AttributeName':'sk','AttributeType':'N'},{'AttributeName':'g','AttributeType':'S'},"        \
    "{'AttributeName':'k','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk','KeyType':"     \
    "'HASH'},{'AttributeName':'sk','KeyType':'RANGE'}],'BillingMode':'PAY_PER_REQUEST',"           \
    "'GlobalSecondaryIndexes':[{'IndexName':'global','KeySchema':[{'AttributeName':'g','KeyType':" \
    "'HASH'}],'Projection':{'ProjectionType':'INCLUDE','NonKeyAttributes':['x']}}],"               \
    "'LocalSecondaryIndexes':[{'IndexName':'local','KeySchema':[{'AttributeName':'pk','KeyType':"  \
    "'HASH'},{'AttributeName':'k','KeyType':'RANGE'}],'Projection':{'ProjectionType':'ALL'}}],"    \
    "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_AND_OLD_IMAGES'},"          \
    "'Tags':[{'Key':'owner','Value':'ann'}]}"
#define LATE_INDEX                                                                                 \
    "{'TableName':'all','AttributeDefinitions':[{'AttributeName':'x','AttributeType':'S'}],"       \
    "'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'late','KeySchema':[{'AttributeName':"  \
    "'x','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}"
#define ARN_OF "arn:aws:dynamodb:us-east-1:123456789012:table/%.*s"
#define ARN "arn:aws:dynamodb:us-east-1:123456789012:table/all"

struct operation {
    const char *name;   /* "Upkeep" is one too */
    const char *json;   /* %A, %S, %I: the stream's ARN, its shard, an iterator; %B: a backup */
    const char *before; /* an operation to be done first, "UpdateTable" */
    const char *then;   /* and one after that, with a request of its own */
    const char *then_json;
    int64_t wait_ms;      /* before it */
    enum hf_status fails; /* how it ends without a fault: an error is an answer too */
};

/* Statements; a quotation mark of theirs is written as its number. */
#define BATCH_STATEMENTS_1                                                                         \
    "{'Statements':[{'Statement':'SELECT * FROM \\u0022all\\u0022 WHERE pk = \\u0027a\\u0027 "     \
    "AND sk = 1'},{'Statement':'SELECT pk, l[0] FROM \\u0022all\\u0022 WHERE pk = ? AND sk = "     \
    "?','Parameters':[{'S':'b'},{'N':'1'}],'ConsistentRead':true},{'Statement':'SELECT * FROM"     \
    " gone WHERE a = 1'},{'Statement':'no'}],'ReturnConsumedCapacity':'INDEXES'}"
#define BATCH_STATEMENTS_2                                                                         \
    "{'Statements':[{'Statement':'UPDATE \\u0022all\\u0022 SET g = ?, n = n + 1 WHERE pk = ? "     \
    "AND sk = 1 RETURNING ALL NEW *','Parameters':[{'S':'z'},{'S':'a'}]},{'Statement':'UPDATE"     \
    " \\u0022all\\u0022 SET g = ?','Parameters':[{'S':'z'}]}],'ReturnConsumedCapacity':'INDEX"     \
    "ES'}"
#define STATEMENT_1                                                                                \
    "{'Statement':'SELECT pk, l[0], x FROM \\u0022all\\u0022 WHERE pk IN [?, ?] AND sk >= 1 A"     \
    "ND (attribute_exists(x) = true OR n IN [1, 2]) ORDER BY pk DESC, sk DESC','Parameters':["     \
    "{'S':'a'},{'S':'b'}],'Limit':2,'ConsistentRead':true,'ReturnConsumedCapacity':'INDEXES'}"
#define STATEMENT_2                                                                                \
    "{'Statement':'SELECT pk FROM \\u0022all\\u0022.\\u0022global\\u0022 WHERE x = ?','Parame"     \
    "ters':[{'S':'x'}]}"
#define STATEMENT_3                                                                                \
    "{'Statement':'INSERT INTO \\u0022all\\u0022 VALUE {\\u0027pk\\u0027: ?, \\u0027sk"            \
    "\\u0027: 7, \\u0027l\\u0027: [1, {\\u0027x\\u0027: <<1, 2>>}]}','Parameters':[{'S':'new'"     \
    "}],'ReturnConsumedCapacity':'INDEXES'}"
#define STATEMENT_4                                                                                \
    "{'Statement':'UPDATE \\u0022all\\u0022 SET l = list_append(l, [5]), g = ?, n = n + 1 - 2"     \
    " SET s = set_add(s, <<1>>) REMOVE x WHERE pk = ? AND sk = 1 AND n = 1 RETURNING MODIFIED"     \
    " NEW *','Parameters':[{'S':'h'},{'S':'a'}],'ReturnConsumedCapacity':'INDEXES'}"
#define TRANSACTION_STATEMENTS_1                                                                   \
    "{'TransactStatements':[{'Statement':'INSERT INTO \\u0022all\\u0022 VALUE {\\u0027pk"          \
    "\\u0027: ?, \\u0027sk\\u0027: 1}','Parameters':[{'S':'tx'}]},{'Statement':'UPDATE "           \
    "\\u0022all\\u0022 SET g = ? WHERE pk = ? AND sk = 1','Parameters':[{'S':'tx'},{'S':'a'}]"     \
    "},{'Statement':'DELETE FROM \\u0022all\\u0022 WHERE pk = ? AND sk = 1','Parameters':[{'S"     \
    "':'b'}]},{'Statement':'EXISTS(SELECT * FROM \\u0022all\\u0022 WHERE pk = ? AND sk = 2 AN"     \
    "D n IS MISSING)','Parameters':[{'S':'a'}]}],'ClientRequestToken':'fresh','ReturnConsumed"     \
    "Capacity':'INDEXES'}"
#define TRANSACTION_STATEMENTS_2                                                                   \
    "{'TransactStatements':[{'Statement':'SELECT l[0] FROM \\u0022all\\u0022 WHERE pk = ? AND"     \
    " sk = 1','Parameters':[{'S':'a'}]},{'Statement':'SELECT * FROM \\u0022all\\u0022 WHERE p"     \
    "k = ? AND sk = 9','Parameters':[{'S':'a'}]}],'ReturnConsumedCapacity':'TOTAL'}"
#define STATEMENT_5                                                                                \
    "{'Statement':'INSERT INTO \\u0022all\\u0022 VALUE {\\u0027pk\\u0027: ?, \\u0027sk"            \
    "\\u0027: 1}','Parameters':[{'S':'a'}]}"
#define TRANSACTION_STATEMENTS_3                                                                   \
    "{'TransactStatements':[{'Statement':'INSERT INTO \\u0022all\\u0022 VALUE {\\u0027pk"          \
    "\\u0027: ?, \\u0027sk\\u0027: 1}','Parameters':[{'S':'a'}]},{'Statement':'UPDATE "            \
    "\\u0022all\\u0022 SET x = 1 WHERE pk = ? AND sk = 2 AND n = 9','Parameters':[{'S':'a'}],"     \
    "'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}]}"

static const struct operation operations[] = {
    {.name = "BatchExecuteStatement", .json = BATCH_STATEMENTS_1},
    {.name = "BatchExecuteStatement", .json = BATCH_STATEMENTS_2},
    {.name = "BatchGetItem",
     .json =
         "{'RequestItems':{'all':{'Keys':[{'pk':{'S':'a'},'sk':{'N':'1'}},{'pk':{'S':'b'},'sk':{'N':"
         "'1'}}],'ProjectionExpression':'pk, l[0], g','ConsistentRead':true}},"
         "'ReturnConsumedCapacity':'INDEXES'}"},
    {.name = "BatchWriteItem",
     .json =
         "{'RequestItems':{'all':[{'PutRequest':{'Item':{'pk':{'S':'a'},'sk':{'N':'1'},'g':{'S':'z'}}"
         "}},{'DeleteRequest':{'Key':{'pk':{'S':'a'},'sk':{'N':'2'}}}},{'PutRequest':{'Item':{'pk':{"
         "'S':'new'},'sk':{'N':'1'},'t':{'N':'99999999999'}}}}]},'ReturnConsumedCapacity':'INDEXES',"
         "'ReturnItemCollectionMetrics':'SIZE'}"},
    {.name = "CreateTable",
     .json =
         "{'TableName':'more','AttributeDefinitions':[{'AttributeName':'p','AttributeType':'B'},{"
         "'AttributeName':'q','AttributeType':'S'}],'KeySchema':[{'AttributeName':'p','KeyType':'HASH'"
         "}],'BillingMode':'PAY_PER_REQUEST','GlobalSecondaryIndexes':[{'IndexName':'byq','KeySchema'"
         ":[{'AttributeName':'q','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}],"
         "'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'NEW_IMAGE'},'Tags':[{'Key':"
         "'a','Value':'b'}]}"},
    {.name = "DeleteItem",
     .json =
         "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'ConditionExpression':'n = :one',"
         "'ExpressionAttributeValues':{':one':{'N':'1'}},'ReturnValues':'ALL_OLD',"
         "'ReturnConsumedCapacity':'INDEXES','ReturnItemCollectionMetrics':'SIZE'}"},
    {.name = "DeleteTable", .json = "{'TableName':'all'}"},
    {.name = "DescribeEndpoints", .json = "{}"},
    {.name = "DescribeLimits", .json = "{}"},
    {.name = "DescribeStream", .json = "{'StreamArn':'%A'}"},
    {.name = "DescribeTable", .json = "{'TableName':'all'}"},
    {.name = "DescribeTimeToLive", .json = "{'TableName':'all'}"},
    {.name = "ExecuteStatement", .json = STATEMENT_1},
    {.name = "ExecuteStatement", .json = STATEMENT_2},
    {.name = "ExecuteStatement", .json = STATEMENT_3},
    {.name = "ExecuteStatement", .json = STATEMENT_4},
    {.name = "ExecuteTransaction", .json = TRANSACTION_STATEMENTS_1},
    {.name = "ExecuteTransaction", .json = TRANSACTION_STATEMENTS_2},
    {.name = "GetItem",
     .json = "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'ConsistentRead':true,"
             "'ProjectionExpression':'l[0], x','ReturnConsumedCapacity':'TOTAL'}"},
    {.name = "GetRecords", .json = "{'ShardIterator':'%I','Limit':10}"},
    {.name = "GetShardIterator",
     .json = "{'StreamArn':'%A','ShardId':'%S','ShardIteratorType':'LATEST'}"},
    {.name = "ListStreams", .json = "{'TableName':'all'}"},
    {.name = "ListTables", .json = "{}"},
    {.name = "ListTagsOfResource", .json = "{'ResourceArn':'" ARN "'}"},
    {.name = "PutItem",
     .json =
         "{'TableName':'all','Item':{'pk':{'S':'a'},'sk':{'N':'1'},'g':{'S':'moved'},'k':{'S':'kk'},"
         "'t':{'N':'99999999999'}},'ConditionExpression':'n < :two','ExpressionAttributeValues':{':two'"
         ":{'N':'2'}},'ReturnValues':'ALL_OLD','ReturnConsumedCapacity':'INDEXES',"
         "'ReturnItemCollectionMetrics':'SIZE'}"},
    {.name = "Query",
     .json =
         "{'TableName':'all','IndexName':'local','KeyConditionExpression':'pk = :a AND "
         "begins_with(k, :k)','FilterExpression':'contains(x, :x)','ExpressionAttributeValues':{':a':{"
         "'S':'a'},':k':{'S':'k'},':x':{'S':'x'}},'ProjectionExpression':'pk, l[0]','Limit':1,"
         "'ConsistentRead':true,'ReturnConsumedCapacity':'INDEXES'}"},
    {.name = "Scan",
     .json =
         "{'TableName':'all','Segment':0,'TotalSegments':1,'FilterExpression':'attribute_exists(pk)',"
         "'ConsistentRead':true,'ReturnConsumedCapacity':'TOTAL'}"},
    {.name = "TagResource",
     .json = "{'ResourceArn':'" ARN "','Tags':[{'Key':'new','Value':'tag'}]}"},
    {.name = "TransactGetItems",
     .json =
         "{'TransactItems':[{'Get':{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}}}},{'Get':{"
         "'TableName':'all','Key':{'pk':{'S':'none'},'sk':{'N':'1'}}}}],'ReturnConsumedCapacity':"
         "'TOTAL'}"},
    {.name = "TransactWriteItems",
     .json =
         "{'TransactItems':[{'Put':{'TableName':'all','Item':{'pk':{'S':'tx'},'sk':{'N':'1'},'g':{'S':"
         "'g'},'t':{'N':'99999999999'}}}},{'Update':{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N'"
         ":'1'}},'UpdateExpression':'SET l = list_append(l, :l), g = :g ADD n :one','ConditionExpression"
         "':'n = :one','ExpressionAttributeValues':{':l':{'L':[{'N':'1'}]},':g':{'S':'tx'},':one':{'N':"
         "'1'}}}},{'Delete':{'TableName':'all','Key':{'pk':{'S':'b'},'sk':{'N':'1'}}}},"
         "{'ConditionCheck':{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'2'}},"
         "'ConditionExpression':'attribute_exists(pk)'}}],'ClientRequestToken':'fresh',"
         "'ReturnConsumedCapacity':'INDEXES','ReturnItemCollectionMetrics':'SIZE'}"},
    {.name = "UntagResource", .json = "{'ResourceArn':'" ARN "','TagKeys':['owner']}"},
    {.name = "UpdateItem",
     .json =
         "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'UpdateExpression':'SET l = "
         "list_append(l, :l), g = :g ADD n :n REMOVE x','ExpressionAttributeValues':{':l':{'L':[{'S':"
         "'tail'}]},':n':{'N':'5'},':g':{'S':'else'}},'ReturnValues':'ALL_NEW',"
         "'ReturnConsumedCapacity':'INDEXES','ReturnItemCollectionMetrics':'SIZE'}"},
    {.name = "UpdateTable", .json = LATE_INDEX},
    {.name = "UpdateTable",
     .json =
         "{'TableName':'all','GlobalSecondaryIndexUpdates':[{'Delete':{'IndexName':'global'}}]}"},
    {.name = "UpdateTable",
     .json = "{'TableName':'all','StreamSpecification':{'StreamEnabled':false}}"},
    {.name = "UpdateTimeToLive",
     .json = "{'TableName':'all','TimeToLiveSpecification':{'Enabled':false,'AttributeName':'t'}}",
     .wait_ms = 2 * 3600 * 1000},
    {.name = "Upkeep", .json = LATE_INDEX, .before = "UpdateTable", .wait_ms = 25 * 3600 * 1000},
    {.name = "UpdateItem",
     .json =
         "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'UpdateExpression':'SET x = :x',"
         "'ConditionExpression':'n > :two','ExpressionAttributeValues':{':x':{'S':'x'},':two':{'N':'2'}"
         "},'ReturnValuesOnConditionCheckFailure':'ALL_OLD'}",
     .fails = HF_CONDITION},
    {.name = "UpdateItem",
     .json =
         "{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'UpdateExpression':'SET x = l + :x',"
         "'ExpressionAttributeValues':{':x':{'N':'1'}}}",
     .fails = HF_INVALID},
    {.name = "TransactWriteItems",
     .json =
         "{'TransactItems':[{'Put':{'TableName':'all','Item':{'pk':{'S':'tx'},'sk':{'N':'1'}}}},"
         "{'Delete':{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}},'ConditionExpression':"
         "'attribute_not_exists(pk)','ReturnValuesOnConditionCheckFailure':'ALL_OLD'}},{'Update':{"
         "'TableName':'all','Key':{'pk':{'S':'b'},'sk':{'N':'1'}},'UpdateExpression':'SET g = :n',"
         "'ExpressionAttributeValues':{':n':{'N':'1'}}}}]}",
     .fails = HF_TX_CANCELED},
    {.name = "TransactWriteItems",
     .json =
         "{'TransactItems':[{'Delete':{'TableName':'all','Key':{'pk':{'S':'a'},'sk':{'N':'1'}}}}],"
         "'ClientRequestToken':'seen'}",
     .fails = HF_TOKEN_MISMATCH},
    {.name = "PutItem",
     .json = "{'TableName':'none','Item':{'pk':{'S':'a'}}}",
     .fails = HF_NOT_FOUND},
    {.name = "ExecuteStatement", .json = STATEMENT_5, .fails = HF_DUPLICATE},
    {.name = "ExecuteTransaction", .json = TRANSACTION_STATEMENTS_3, .fails = HF_TX_CANCELED},
    {.name = "CreateTable", .json = TABLE, .fails = HF_IN_USE},
    {.name = "DescribeContinuousBackups", .json = "{'TableName':'all'}"},
    {.name = "UpdateContinuousBackups",
     .json = "{'TableName':'all','PointInTimeRecoverySpecification':{'PointInTimeRecoveryEnabled':"
             "true}}",
     .fails = HF_UNSUPPORTED},
    {.name = "PutResourcePolicy",
     .json = "{'ResourceArn':'" ARN "','Policy':'{}','ExpectedRevisionId':'NO_POLICY'}"},
    {.name = "DeleteResourcePolicy",
     .json = "{'ResourceArn':'" ARN "','Policy':'{}'}",
     .before = "PutResourcePolicy"},
    {.name = "GetResourcePolicy",
     .json = "{'ResourceArn':'" ARN "','Policy':'{}'}",
     .before = "PutResourcePolicy"},
    {.name = "DescribeContributorInsights", .json = "{'TableName':'all','IndexName':'global'}"},
    {.name = "DescribeKinesisStreamingDestination", .json = "{'TableName':'all'}"},
    {.name = "UpdateContributorInsights",
     .json = "{'TableName':'all','IndexName':'global','ContributorInsightsAction':'DISABLE'}"},
    {.name = "DisableKinesisStreamingDestination",
     .json = "{'TableName':'all','StreamArn':'arn:aws:kinesis:us-east-1:123456789012:stream/s'}",
     .fails = HF_INVALID},
    {.name = "CreateGlobalTable",
     .json = "{'GlobalTableName':'all','ReplicationGroup':[{'RegionName':'us-east-1'}]}",
     .fails = HF_INVALID},
    {.name = "UpdateGlobalTable", .json = "{'GlobalTableName':'all'}", .fails = HF_NOT_FOUND},
    {.name = "DescribeGlobalTableSettings",
     .json = "{'GlobalTableName':'all'}",
     .fails = HF_NOT_FOUND},
    {.name = "UpdateGlobalTableSettings",
     .json = "{'GlobalTableName':'all'}",
     .fails = HF_NOT_FOUND},
    {.name = "UpdateTableReplicaAutoScaling", .json = "{'TableName':'all'}", .fails = HF_NOT_FOUND},
    {.name = "ExportTableToPointInTime",
     .json = "{'TableArn':'" ARN "','S3Bucket':'bucket','ClientToken':'once'}"},
    {.name = "ImportTable",
     .json = "{'S3BucketSource':{'S3Bucket':'bucket'},'InputFormat':'CSV','ClientToken':'once',"
             "'TableCreationParameters':{'TableName':'new','AttributeDefinitions':[{"
             "'AttributeName':'pk','AttributeType':'S'}],'KeySchema':[{'AttributeName':'pk',"
             "'KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'}}"},
    {.name = "RestoreTableToPointInTime",
     .json = "{'SourceTableName':'all','TargetTableName':'new'}",
     .fails = HF_UNSUPPORTED},
    {.name = "UpdateTable",
     .json = "{'TableName':'all','GlobalSecondaryIndexUpdates':[{'Update':{'IndexName':'global',"
             "'WarmThroughput':{'ReadUnitsPerSecond':13000}}}]}"},
    {.name = "UpdateTable",
     .json = "{'TableName':'all','OnDemandThroughput':{'MaxReadRequestUnits':5}}"},
    {.name = "CreateBackup", .json = "{'TableName':'all','BackupName':'more'}"},
    {.name = "DescribeBackup", .json = "{'BackupArn':'%B'}"},
    {.name = "ListBackups", .json = "{'TableName':'all'}"},
    {.name = "DeleteBackup", .json = "{'BackupArn':'%B'}"},
    {.name = "RestoreTableFromBackup", .json = "{'TargetTableName':'again','BackupArn':'%B'}"},
    {.name = "RestoreTableFromBackup",
     .json = "{'TargetTableName':'all','BackupArn':'%B'}",
     .fails = HF_IN_USE},
    {.name = "Upkeep",
     .json = "{'TableName':'all','BackupName':'more'}",
     .before = "CreateBackup",
     .then = "DeleteTable",
     .then_json = "{'TableName':'all'}"},
    {.name = "Upkeep",
     .json = "{'TargetTableName':'again','BackupArn':'%B'}",
     .before = "RestoreTableFromBackup"},
    {.name = "Upkeep",
     .json = "{'BackupArn':'%B'}",
     .before = "DeleteBackup",
     .then = "CreateBackup",
     .then_json = "{'TableName':'all','BackupName':'more'}"},
};

/* What an opening has most to do with: a backup that is not made, of a table that is gone. */
static const struct operation unfinished = {.name = "Upkeep",
                                            .json = "{'TableName':'all','BackupName':'more'}",
                                            .before = "CreateBackup",
                                            .then = "DeleteTable",
                                            .then_json = "{'TableName':'all'}"};

#endif
