/*
 * ops/fields_backups.c: the fields of operations on backups and on resource policies.
 */
#include "ops/table.h"

ENUM(switches, "[ENABLED, DISABLED]", "ENABLED", "DISABLED");
ENUM(backup_statuses, "[CREATING, DELETED, AVAILABLE]", "CREATING", "DELETED", "AVAILABLE");
ENUM(backup_types, "[USER, SYSTEM, AWS_BACKUP, ALL]", "USER", "SYSTEM", "AWS_BACKUP", "ALL");

enum { RECOVERY_DAYS_MAX = 35, LIST_BACKUPS_MAX = 100 };

/* ---- continuous backups --------------------------------------------------------------------- */

#define T hf_point_in_time_description
static const struct field point_in_time_description_list[] = {
    ENUMERATED("PointInTimeRecoveryStatus", status, switches, .rules = 0),
    TIME("EarliestRestorableDateTime", earliest_us, .rules = 0),
    TIME("LatestRestorableDateTime", latest_us, .rules = 0),
    INT("RecoveryPeriodInDays", recovery_days, .rules = 0),
};
static TABLE(point_in_time_description, "PointInTimeRecoveryDescription");
#undef T

#define T hf_continuous_backups_description
static const struct field continuous_backups_description_list[] = {
    ENUMERATED("ContinuousBackupsStatus", status, switches, .rules = 0),
    STRUCT("PointInTimeRecoveryDescription", point_in_time, point_in_time_description, .rules = 0),
};
static TABLE(continuous_backups_description, "ContinuousBackupsDescription");
#undef T

#define T hf_describe_continuous_backups
static const struct field describe_continuous_backups_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_continuous_backups, "DescribeContinuousBackupsInput");
#undef T

#define T hf_describe_continuous_backups_result
static const struct field describe_continuous_backups_result_list[] = {
    STRUCT("ContinuousBackupsDescription", description, continuous_backups_description, .rules = 0),
};
OP_TABLE(describe_continuous_backups_result, "DescribeContinuousBackupsOutput");
#undef T

#define T hf_point_in_time_spec
static const struct field point_in_time_spec_list[] = {
    FLAG("PointInTimeRecoveryEnabled", enabled, REQUIRED),
    INT("RecoveryPeriodInDays", recovery_days, RANGE(1, RECOVERY_DAYS_MAX)),
};
static TABLE(point_in_time_spec, "PointInTimeRecoverySpecification");
#undef T

#define T hf_update_continuous_backups
static const struct field update_continuous_backups_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STRUCT("PointInTimeRecoverySpecification", spec, point_in_time_spec, REQUIRED),
};
OP_TABLE(update_continuous_backups, "UpdateContinuousBackupsInput");
#undef T

#define T hf_update_continuous_backups_result
static const struct field update_continuous_backups_result_list[] = {
    STRUCT("ContinuousBackupsDescription", description, continuous_backups_description, .rules = 0),
};
OP_TABLE(update_continuous_backups_result, "UpdateContinuousBackupsOutput");
#undef T

/* ---- backups -------------------------------------------------------------------------------- */

#define T hf_backup_details
static const struct field backup_details_list[] = {
    ARN("BackupArn", arn, .rules = 0),
    STR("BackupName", name, .rules = 0),
    INT("BackupSizeBytes", size_bytes, LONG_ALWAYS),
    ENUMERATED("BackupStatus", status, backup_statuses, .rules = 0),
    ENUMERATED("BackupType", type, backup_types, .rules = 0),
    TIME("BackupCreationDateTime", created_us, .rules = 0),
    TIME("BackupExpiryDateTime", expires_us, .rules = 0),
};
static TABLE(backup_details, "BackupDetails");
#undef T

/* Units of what is billed by request are there, too, and zero. */
#define T hf_throughput
static const struct field source_throughput_list[] = {
    INT("ReadCapacityUnits", read_units, LONG_ALWAYS),
    INT("WriteCapacityUnits", write_units, LONG_ALWAYS),
};
static TABLE(source_throughput, "ProvisionedThroughput");
#undef T

#define T hf_source_table
static const struct field source_table_list[] = {
    TABLE_NAME("TableName", name, .rules = 0),
    STR("TableId", id, .rules = 0),
    ARN("TableArn", arn, .rules = 0),
    INT("TableSizeBytes", size_bytes, LONG_ALWAYS),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, .rules = 0),
    TIME("TableCreationDateTime", created_us, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, source_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    INT("ItemCount", item_count, LONG_ALWAYS),
    ENUMERATED("BillingMode", billing, hf__billing_modes, .rules = 0),
};
static TABLE(source_table, "SourceTableDetails");
#undef T

#define T hf_source_index
static const struct field source_index_list[] = {
    STR("IndexName", name, .rules = 0),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, .rules = 0),
    STRUCT("Projection", projection, hf__part_projection, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, source_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
};
static TABLE(source_index, "GlobalSecondaryIndexInfo");
#undef T

#define T hf_source_features
static const struct field source_features_list[] = {
    STRUCTS("LocalSecondaryIndexes", local_indexes, source_index, .rules = 0),
    STRUCTS("GlobalSecondaryIndexes", global_indexes, source_index, .rules = 0),
    STRUCT("StreamDescription", stream, hf__part_stream_spec, .rules = 0),
    STRUCT("TimeToLiveDescription", ttl, hf__part_ttl_description, .rules = 0),
    STRUCT("SSEDescription", sse, hf__part_sse_description, .rules = 0),
};
static TABLE(source_features, "SourceTableFeatureDetails");
#undef T

#define T hf_backup_description
static const struct field backup_description_list[] = {
    STRUCT("BackupDetails", details, backup_details, .rules = 0),
    STRUCT("SourceTableDetails", table, source_table, .rules = 0),
    STRUCT("SourceTableFeatureDetails", features, source_features, .rules = 0),
};
static TABLE(backup_description, "BackupDescription");
#undef T

#define T hf_create_backup
static const struct field create_backup_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("BackupName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(create_backup, "CreateBackupInput");
#undef T

#define T hf_create_backup_result
static const struct field create_backup_result_list[] = {
    STRUCT("BackupDetails", details, backup_details, .rules = 0),
};
OP_TABLE(create_backup_result, "CreateBackupOutput");
#undef T

#define T hf_describe_backup
static const struct field describe_backup_list[] = {
    ARN("BackupArn", arn, REQUIRED, LENGTH(37, 1024)),
};
OP_TABLE(describe_backup, "DescribeBackupInput");
#undef T

#define T hf_describe_backup_result
static const struct field describe_backup_result_list[] = {
    STRUCT("BackupDescription", backup, backup_description, .rules = 0),
};
OP_TABLE(describe_backup_result, "DescribeBackupOutput");
#undef T

#define T hf_delete_backup
static const struct field delete_backup_list[] = {
    ARN("BackupArn", arn, REQUIRED, LENGTH(37, 1024)),
};
OP_TABLE(delete_backup, "DeleteBackupInput");
#undef T

#define T hf_delete_backup_result
static const struct field delete_backup_result_list[] = {
    STRUCT("BackupDescription", backup, backup_description, .rules = 0),
};
OP_TABLE(delete_backup_result, "DeleteBackupOutput");
#undef T

#define T hf_list_backups
static const struct field list_backups_list[] = {
    TABLE_NAME("TableName", table, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    INT("Limit", limit, PAGE_LIMIT, RANGE(1, LIST_BACKUPS_MAX)),
    TIME("TimeRangeLowerBound", from_us, .rules = 0),
    TIME("TimeRangeUpperBound", until_us, .rules = 0),
    ARN("ExclusiveStartBackupArn", start_arn, PAGE_START, LENGTH(37, 1024)),
    ENUMERATED("BackupType", type, backup_types, .rules = 0),
};
OP_TABLE(list_backups, "ListBackupsInput");
#undef T

#define T hf_backup_summary
static const struct field backup_summary_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
    STR("TableId", table_id, .rules = 0),
    ARN("TableArn", table_arn, .rules = 0),
    ARN("BackupArn", arn, PAGE_LAST),
    STR("BackupName", name, .rules = 0),
    TIME("BackupCreationDateTime", created_us, .rules = 0),
    TIME("BackupExpiryDateTime", expires_us, .rules = 0),
    ENUMERATED("BackupStatus", status, backup_statuses, .rules = 0),
    ENUMERATED("BackupType", type, backup_types, .rules = 0),
    INT("BackupSizeBytes", size_bytes, LONG_ALWAYS),
};
static TABLE(backup_summary, "BackupSummary");
#undef T

#define T hf_list_backups_result
static const struct field list_backups_result_list[] = {
    STRUCTS("BackupSummaries", backups, backup_summary, LISTED),
    ARN("LastEvaluatedBackupArn", last_arn, PAGE_LAST),
};
OP_TABLE(list_backups_result, "ListBackupsOutput");
#undef T

#define T hf_restore_table_from_backup
static const struct field restore_table_from_backup_list[] = {
    TABLE_NAME("TargetTableName", table, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    ARN("BackupArn", backup_arn, REQUIRED, LENGTH(37, 1024)),
    ENUMERATED("BillingModeOverride", billing, hf__billing_modes, .rules = 0),
    STRUCTS("GlobalSecondaryIndexOverride", global_indexes, hf__part_global_index, .rules = 0),
    STRUCTS("LocalSecondaryIndexOverride", local_indexes, hf__part_local_index, .rules = 0),
    STRUCT("ProvisionedThroughputOverride", throughput, hf__part_throughput, .rules = 0),
    STRUCT("OnDemandThroughputOverride", on_demand_throughput, hf__part_on_demand_throughput,
           .rules = 0),
    STRUCT("SSESpecificationOverride", sse, hf__part_sse_spec, .rules = 0),
};
OP_TABLE(restore_table_from_backup, "RestoreTableFromBackupInput");
#undef T

#define T hf_restore_table_from_backup_result
static const struct field restore_table_from_backup_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, REQUIRED),
};
OP_TABLE(restore_table_from_backup_result, "RestoreTableFromBackupOutput");
#undef T

/* Always refused: only what the refusal names is read. */
#define T hf_restore_table_to_point_in_time
static const struct field restore_table_to_point_in_time_list[] = {
    ARN("SourceTableArn", source_arn, LENGTH(1, 1024)),
    TABLE_NAME("SourceTableName", source, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    TABLE_NAME("TargetTableName", table, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(restore_table_to_point_in_time, "RestoreTableToPointInTimeInput");
#undef T

#define T hf_restore_table_to_point_in_time_result
static const struct field restore_table_to_point_in_time_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, REQUIRED),
};
OP_TABLE(restore_table_to_point_in_time_result, "RestoreTableToPointInTimeOutput");
#undef T

/* ---- resource policies ---------------------------------------------------------------------- */

#define T hf_put_resource_policy
static const struct field put_resource_policy_list[] = {
    ARN("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STR("Policy", policy, REQUIRED),
    STR("ExpectedRevisionId", expected_revision, LENGTH(1, 255)),
    FLAG("ConfirmRemoveSelfResourceAccess", confirm_remove_self, .rules = 0),
};
OP_TABLE(put_resource_policy, "PutResourcePolicyInput");
#undef T

#define T hf_put_resource_policy_result
static const struct field put_resource_policy_result_list[] = {
    STR("RevisionId", revision, .rules = 0),
};
OP_TABLE(put_resource_policy_result, "PutResourcePolicyOutput");
#undef T

#define T hf_get_resource_policy
static const struct field get_resource_policy_list[] = {
    ARN("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
};
OP_TABLE(get_resource_policy, "GetResourcePolicyInput");
#undef T

#define T hf_get_resource_policy_result
static const struct field get_resource_policy_result_list[] = {
    STR("Policy", policy, .rules = 0),
    STR("RevisionId", revision, .rules = 0),
};
OP_TABLE(get_resource_policy_result, "GetResourcePolicyOutput");
#undef T

#define T hf_delete_resource_policy
static const struct field delete_resource_policy_list[] = {
    ARN("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STR("ExpectedRevisionId", expected_revision, LENGTH(1, 255)),
};
OP_TABLE(delete_resource_policy, "DeleteResourcePolicyInput");
#undef T

#define T hf_delete_resource_policy_result
static const struct field delete_resource_policy_result_list[] = {
    STR("RevisionId", revision, .rules = 0),
};
OP_TABLE(delete_resource_policy_result, "DeleteResourcePolicyOutput");
#undef T
