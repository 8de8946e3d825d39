/*
 * ops/fields_services.c: the fields of operations about what other services and other regions do
 * for a table: global tables, Kinesis, contributor insights. One machine has none of it, so the answers are empty; their fields are here for clients that read the answers
 * of a service that does.
 */
#include "ops/table.h"

ENUM(insights_statuses, "[ENABLING, ENABLED, DISABLING, DISABLED, FAILED]", "ENABLING", "ENABLED",
     "DISABLING", "DISABLED", "FAILED");

ENUM(insights_actions, "[ENABLE, DISABLE]", "ENABLE", "DISABLE");
ENUM(insights_modes, "[THROTTLED_KEYS, ACCESSED_AND_THROTTLED_KEYS]", "ACCESSED_AND_THROTTLED_KEYS",
     "THROTTLED_KEYS");

enum { INSIGHTS_MAX = 100 };

/* ---- global tables -------------------------------------------------------------------------- */

#define T hf_replica
static const struct field replica_list[] = {
    STR("RegionName", region, .rules = 0),
    STR("ReplicaStatus", status, .rules = 0),
};
static TABLE(replica, "ReplicaDescription");
#undef T

#define T hf_global_table
static const struct field global_table_list[] = {
    TABLE_NAME("GlobalTableName", name, PAGE_LAST),
    STRUCTS("ReplicationGroup", replicas, replica, .rules = 0),
};
static TABLE(global_table, "GlobalTable");
#undef T

#define T hf_list_global_tables
static const struct field list_global_tables_list[] = {
    TABLE_NAME("ExclusiveStartGlobalTableName", start, PAGE_START, LENGTH(3, 255),
               .pattern = PATTERN_TABLE_NAME),
    INT("Limit", limit, PAGE_LIMIT, RANGE(1, 0)),
    STR("RegionName", region, .rules = 0),
};
OP_TABLE(list_global_tables, "ListGlobalTablesInput");
#undef T

#define T hf_list_global_tables_result
static const struct field list_global_tables_result_list[] = {
    STRUCTS("GlobalTables", tables, global_table, LISTED),
    TABLE_NAME("LastEvaluatedGlobalTableName", last, PAGE_LAST),
};
OP_TABLE(list_global_tables_result, "ListGlobalTablesOutput");
#undef T

#define T hf_describe_global_table
static const struct field describe_global_table_list[] = {
    TABLE_NAME("GlobalTableName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_global_table, "DescribeGlobalTableInput");
#undef T

#define T hf_global_table_description
static const struct field global_table_description_list[] = {
    TABLE_NAME("GlobalTableName", name, .rules = 0),
    ARN("GlobalTableArn", arn, .rules = 0),
    TIME("CreationDateTime", created_us, .rules = 0),
    ENUMERATED("GlobalTableStatus", status, hf__table_statuses, .rules = 0),
    STRUCTS("ReplicationGroup", replicas, replica, .rules = 0),
};
static TABLE(global_table_description, "GlobalTableDescription");
#undef T

#define T hf_describe_global_table_result
static const struct field describe_global_table_result_list[] = {
    STRUCT("GlobalTableDescription", table, global_table_description, .rules = 0),
};
OP_TABLE(describe_global_table_result, "DescribeGlobalTableOutput");
#undef T

/* Of what is always refused, whatever else it says, only what the refusal names is read. */

#define T hf_create_global_table
static const struct field create_global_table_list[] = {
    TABLE_NAME("GlobalTableName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("ReplicationGroup", replicas, replica, REQUIRED),
};
OP_TABLE(create_global_table, "CreateGlobalTableInput");
#undef T

#define T hf_create_global_table_result
static const struct field create_global_table_result_list[] = {
    STRUCT("GlobalTableDescription", table, global_table_description, .rules = 0),
};
OP_TABLE(create_global_table_result, "CreateGlobalTableOutput");
#undef T

#define T hf_update_global_table
static const struct field update_global_table_list[] = {
    TABLE_NAME("GlobalTableName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(update_global_table, "UpdateGlobalTableInput");
#undef T

#define T hf_update_global_table_result
static const struct field update_global_table_result_list[] = {
    STRUCT("GlobalTableDescription", table, global_table_description, .rules = 0),
};
OP_TABLE(update_global_table_result, "UpdateGlobalTableOutput");
#undef T

#define T hf_describe_global_table_settings
static const struct field describe_global_table_settings_list[] = {
    TABLE_NAME("GlobalTableName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_global_table_settings, "DescribeGlobalTableSettingsInput");
#undef T

#define T hf_describe_global_table_settings_result
static const struct field describe_global_table_settings_result_list[] = {
    TABLE_NAME("GlobalTableName", name, .rules = 0),
    STRUCTS("ReplicaSettings", replicas, replica, .rules = 0),
};
OP_TABLE(describe_global_table_settings_result, "DescribeGlobalTableSettingsOutput");
#undef T

#define T hf_update_global_table_settings
static const struct field update_global_table_settings_list[] = {
    TABLE_NAME("GlobalTableName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(update_global_table_settings, "UpdateGlobalTableSettingsInput");
#undef T

#define T hf_update_global_table_settings_result
static const struct field update_global_table_settings_result_list[] = {
    TABLE_NAME("GlobalTableName", name, .rules = 0),
    STRUCTS("ReplicaSettings", replicas, replica, .rules = 0),
};
OP_TABLE(update_global_table_settings_result, "UpdateGlobalTableSettingsOutput");
#undef T

#define T hf_describe_table_replica_auto_scaling
static const struct field describe_table_replica_auto_scaling_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_table_replica_auto_scaling, "DescribeTableReplicaAutoScalingInput");
#undef T

#define T hf_auto_scaling_description
static const struct field auto_scaling_description_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    ENUMERATED("TableStatus", status, hf__table_statuses, .rules = 0),
    STRUCTS("Replicas", replicas, replica, .rules = 0),
};
static TABLE(auto_scaling_description, "TableAutoScalingDescription");
#undef T

#define T hf_describe_table_replica_auto_scaling_result
static const struct field describe_table_replica_auto_scaling_result_list[] = {
    STRUCT("TableAutoScalingDescription", table, auto_scaling_description, .rules = 0),
};
OP_TABLE(describe_table_replica_auto_scaling_result, "DescribeTableReplicaAutoScalingOutput");
#undef T

#define T hf_update_table_replica_auto_scaling
static const struct field update_table_replica_auto_scaling_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(update_table_replica_auto_scaling, "UpdateTableReplicaAutoScalingInput");
#undef T

#define T hf_update_table_replica_auto_scaling_result
static const struct field update_table_replica_auto_scaling_result_list[] = {
    STRUCT("TableAutoScalingDescription", table, auto_scaling_description, .rules = 0),
};
OP_TABLE(update_table_replica_auto_scaling_result, "UpdateTableReplicaAutoScalingOutput");
#undef T

/* ---- Kinesis and contributor insights ------------------------------------------------------- */

#define T hf_disable_kinesis_streaming_destination
static const struct field disable_kinesis_streaming_destination_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("StreamArn", stream_arn, REQUIRED, LENGTH(37, 1024)),
};
OP_TABLE(disable_kinesis_streaming_destination, "KinesisStreamingDestinationInput");
#undef T

#define T hf_disable_kinesis_streaming_destination_result
static const struct field disable_kinesis_streaming_destination_result_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    STR("StreamArn", stream_arn, .rules = 0),
    STR("DestinationStatus", status, .rules = 0),
};
OP_TABLE(disable_kinesis_streaming_destination_result, "KinesisStreamingDestinationOutput");
#undef T

#define T hf_describe_kinesis_streaming_destination
static const struct field describe_kinesis_streaming_destination_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_kinesis_streaming_destination, "DescribeKinesisStreamingDestinationInput");
#undef T

#define T hf_kinesis_destination
static const struct field kinesis_destination_list[] = {
    STR("StreamArn", stream_arn, .rules = 0),
    STR("DestinationStatus", status, .rules = 0),
    STR("DestinationStatusDescription", status_description, .rules = 0),
};
static TABLE(kinesis_destination, "KinesisDataStreamDestination");
#undef T

#define T hf_describe_kinesis_streaming_destination_result
static const struct field describe_kinesis_streaming_destination_result_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    STRUCTS("KinesisDataStreamDestinations", destinations, kinesis_destination, ALWAYS),
};
OP_TABLE(describe_kinesis_streaming_destination_result,
         "DescribeKinesisStreamingDestinationOutput");
#undef T

#define T hf_describe_contributor_insights
static const struct field describe_contributor_insights_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("IndexName", index, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_contributor_insights, "DescribeContributorInsightsInput");
#undef T

#define T hf_describe_contributor_insights_result
static const struct field describe_contributor_insights_result_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    STR("IndexName", index, .rules = 0),
    STRS("ContributorInsightsRuleList", rules, .rules = 0),
    ENUMERATED("ContributorInsightsStatus", status, insights_statuses, .rules = 0),
    TIME("LastUpdateDateTime", updated_us, .rules = 0),
};
OP_TABLE(describe_contributor_insights_result, "DescribeContributorInsightsOutput");
#undef T

#define T hf_update_contributor_insights
static const struct field update_contributor_insights_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("IndexName", index, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ContributorInsightsAction", action, insights_actions, REQUIRED),
    ENUMERATED("ContributorInsightsMode", mode, insights_modes, .rules = 0),
};
OP_TABLE(update_contributor_insights, "UpdateContributorInsightsInput");
#undef T

#define T hf_update_contributor_insights_result
static const struct field update_contributor_insights_result_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    STR("IndexName", index, .rules = 0),
    ENUMERATED("ContributorInsightsStatus", status, insights_statuses, .rules = 0),
    ENUMERATED("ContributorInsightsMode", mode, insights_modes, .rules = 0),
};
OP_TABLE(update_contributor_insights_result, "UpdateContributorInsightsOutput");
#undef T

#define T hf_list_contributor_insights
static const struct field list_contributor_insights_list[] = {
    TABLE_NAME("TableName", table, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("NextToken", next_token, .rules = 0),
    INT("MaxResults", limit, RANGE(0, INSIGHTS_MAX)),
};
OP_TABLE(list_contributor_insights, "ListContributorInsightsInput");
#undef T

#define T hf_insights_summary
static const struct field insights_summary_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    STR("IndexName", index, .rules = 0),
    ENUMERATED("ContributorInsightsStatus", status, insights_statuses, .rules = 0),
};
static TABLE(insights_summary, "ContributorInsightsSummary");
#undef T

#define T hf_list_contributor_insights_result
static const struct field list_contributor_insights_result_list[] = {
    STRUCTS("ContributorInsightsSummaries", summaries, insights_summary, LISTED),
    STR("NextToken", next_token, .rules = 0),
};
OP_TABLE(list_contributor_insights_result, "ListContributorInsightsOutput");
#undef T
