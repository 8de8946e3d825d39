/*
 * ops/fields_tables.c: the fields of operations on tables and streams.
 *
 * Lengths and ranges are those of DynamoDB's model; members stand in the order in which the service
 * reports them. FIELD_NO_CHECK marks members whose absence or size the service reports in a
 * sentence of its own rather than as a constraint; prepare_*.c has those.
 */
#include "ops/table.h"

ENUM(key_types, "[HASH, RANGE]", "HASH", "RANGE");
ENUM(scalar_types, "[B, N, S]", "S", "N", "B");
ENUM(projection_types, "[ALL, INCLUDE, KEYS_ONLY]", "ALL", "KEYS_ONLY", "INCLUDE");
SHARED_ENUM(hf__billing_modes, "[PROVISIONED, PAY_PER_REQUEST]", "PROVISIONED", "PAY_PER_REQUEST");
ENUM(table_classes, "[STANDARD_INFREQUENT_ACCESS, STANDARD]", "STANDARD",
     "STANDARD_INFREQUENT_ACCESS");
SHARED_ENUM(hf__table_statuses, "[CREATING, UPDATING, DELETING, ACTIVE]", "CREATING", "UPDATING",
            "DELETING", "ACTIVE");
ENUM(stream_views, "[KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES]", "NEW_IMAGE",
     "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY");
ENUM(stream_statuses, "[ENABLING, ENABLED, DISABLING, DISABLED]", "ENABLING", "ENABLED",
     "DISABLING", "DISABLED");
ENUM(ttl_statuses, "[ENABLING, DISABLING, ENABLED, DISABLED]", "ENABLING", "DISABLING", "ENABLED",
     "DISABLED");
ENUM(sse_types, "[AES256, KMS]", "AES256", "KMS");
ENUM(iterator_types, "[AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]",
     "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER");
ENUM(event_names, "[INSERT, MODIFY, REMOVE]", "INSERT", "MODIFY", "REMOVE");
ENUM(shard_filter_types, "[CHILD_SHARDS]", "CHILD_SHARDS");

/* ---- parts ---------------------------------------------------------------------------------- */

#define T hf_attribute_definition
static const struct field hf__part_attribute_definition_list[] = {
    STR("AttributeName", name, REQUIRED, LENGTH(1, 255)),
    ENUMERATED("AttributeType", type, scalar_types, REQUIRED),
};
TABLE(hf__part_attribute_definition, "AttributeDefinition");
#undef T

#define T hf_key_element
static const struct field hf__part_key_element_list[] = {
    STR("AttributeName", name, REQUIRED, LENGTH(1, 255)),
    ENUMERATED("KeyType", type, key_types, REQUIRED),
};
TABLE(hf__part_key_element, "KeySchemaElement");
#undef T

#define T hf_throughput
static const struct field hf__part_throughput_list[] = {
    INT("ReadCapacityUnits", read_units, LONG_REQUIRED, RANGE(1, 0)),
    INT("WriteCapacityUnits", write_units, LONG_REQUIRED, RANGE(1, 0)),
};
TABLE(hf__part_throughput, "ProvisionedThroughput");
#undef T

#define T hf_on_demand_throughput
static const struct field hf__part_on_demand_throughput_list[] = {
    INT("MaxReadRequestUnits", max_read_units, LONG),
    INT("MaxWriteRequestUnits", max_write_units, LONG),
};
TABLE(hf__part_on_demand_throughput, "OnDemandThroughput");
#undef T

#define T hf_warm_throughput
static const struct field warm_throughput_list[] = {
    INT("ReadUnitsPerSecond", read_units, LONG),
    INT("WriteUnitsPerSecond", write_units, LONG),
};
static TABLE(warm_throughput, "WarmThroughput");
#undef T

#define T hf_projection
static const struct field hf__part_projection_list[] = {
    ENUMERATED("ProjectionType", type, projection_types, .rules = 0),
    STRS("NonKeyAttributes", attributes, LENGTH(1, 20), ELEMENTS(1, 255)),
};
TABLE(hf__part_projection, "Projection");
#undef T

#define T hf_index
static const struct field hf__part_local_index_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, REQUIRED, LENGTH(1, 2)),
    STRUCT("Projection", projection, hf__part_projection, REQUIRED),
};
TABLE(hf__part_local_index, "LocalSecondaryIndex");
#undef T

enum { GLOBAL_INDEX_KEYS_MAX = 8 }; /* four of HASH, four of RANGE */

#define T hf_index
static const struct field hf__part_global_index_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, REQUIRED,
            LENGTH(1, GLOBAL_INDEX_KEYS_MAX)),
    STRUCT("Projection", projection, hf__part_projection, REQUIRED),
    STRUCT("ProvisionedThroughput", throughput, hf__part_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    STRUCT("WarmThroughput", warm_throughput, warm_throughput, .rules = 0),
};
TABLE(hf__part_global_index, "GlobalSecondaryIndex");
#undef T

#define T hf_stream_spec
static const struct field hf__part_stream_spec_list[] = {
    FLAG("StreamEnabled", enabled, REQUIRED),
    ENUMERATED("StreamViewType", view, stream_views, .rules = 0),
};
TABLE(hf__part_stream_spec, "StreamSpecification");
#undef T

#define T hf_sse_spec
static const struct field hf__part_sse_spec_list[] = {
    FLAG("Enabled", enabled, .rules = 0),
    ENUMERATED("SSEType", type, sse_types, .rules = 0),
    STR("KMSMasterKeyId", kms_key_id, LENGTH(1, 2048)),
};
TABLE(hf__part_sse_spec, "SSESpecification");
#undef T

#define T hf_tag
static const struct field tag_list[] = {
    STR("Key", key, .rules = 0),
    STR("Value", value, .rules = 0),
};
static TABLE(tag, "Tag");
#undef T

#define T hf_throughput_description
static const struct field throughput_description_list[] = {
    TIME("LastIncreaseDateTime", last_increase_us, .rules = 0),
    TIME("LastDecreaseDateTime", last_decrease_us, .rules = 0),
    INT("NumberOfDecreasesToday", decreases_today, LONG_ALWAYS),
    INT("ReadCapacityUnits", read_units, LONG_ALWAYS),
    INT("WriteCapacityUnits", write_units, LONG_ALWAYS),
};
static TABLE(throughput_description, "ProvisionedThroughputDescription");
#undef T

#define T hf_warm_throughput_description
static const struct field warm_description_list[] = {
    INT("ReadUnitsPerSecond", read_units, LONG_ALWAYS),
    INT("WriteUnitsPerSecond", write_units, LONG_ALWAYS),
    ENUMERATED("Status", status, hf__table_statuses, .rules = 0),
};
static TABLE(warm_description, "TableWarmThroughputDescription");
#undef T

#define T hf_billing_summary
static const struct field billing_summary_list[] = {
    ENUMERATED("BillingMode", billing, hf__billing_modes, .rules = 0),
    TIME("LastUpdateToPayPerRequestDateTime", last_to_pay_per_request_us, .rules = 0),
};
static TABLE(billing_summary, "BillingModeSummary");
#undef T

#define T hf_table_class_summary
static const struct field table_class_summary_list[] = {
    ENUMERATED("TableClass", table_class, table_classes, .rules = 0),
    TIME("LastUpdateDateTime", last_update_us, .rules = 0),
};
static TABLE(table_class_summary, "TableClassSummary");
#undef T

#define T hf_sse_description
static const struct field hf__part_sse_description_list[] = {
    STR("Status", status, .rules = 0),
    ENUMERATED("SSEType", type, sse_types, .rules = 0),
    STR("KMSMasterKeyArn", kms_key_arn, .rules = 0),
};
TABLE(hf__part_sse_description, "SSEDescription");
#undef T

#define T hf_index_description
static const struct field index_description_list[] = {
    STR("IndexName", name, .rules = 0),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, .rules = 0),
    STRUCT("Projection", projection, hf__part_projection, .rules = 0),
    ENUMERATED("IndexStatus", status, hf__table_statuses, .rules = 0),
    FLAG("Backfilling", backfilling, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, throughput_description, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    INT("IndexSizeBytes", size_bytes, LONG_ALWAYS),
    INT("ItemCount", item_count, LONG_ALWAYS),
    ARN("IndexArn", arn, .rules = 0),
    STRUCT("WarmThroughput", warm_throughput, warm_description, .rules = 0),
};
static TABLE(index_description, "IndexDescription");
#undef T

#define T hf_restore_summary
static const struct field restore_summary_list[] = {
    ARN("SourceBackupArn", backup_arn, .rules = 0),
    ARN("SourceTableArn", table_arn, .rules = 0),
    TIME("RestoreDateTime", restored_us, .rules = 0),
    FLAG("RestoreInProgress", in_progress, .rules = 0),
};
static TABLE(restore_summary, "RestoreSummary");
#undef T

#define T hf_table_description
static const struct field hf__table_description_fields_list[] = {
    STRUCTS("AttributeDefinitions", attributes, hf__part_attribute_definition, .rules = 0),
    TABLE_NAME("TableName", name, .rules = 0),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, .rules = 0),
    ENUMERATED("TableStatus", status, hf__table_statuses, .rules = 0),
    TIME("CreationDateTime", created_us, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, throughput_description, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    INT("TableSizeBytes", size_bytes, LONG_ALWAYS),
    INT("ItemCount", item_count, LONG_ALWAYS),
    ARN("TableArn", arn, .rules = 0),
    STR("TableId", id, .rules = 0),
    STRUCT("BillingModeSummary", billing, billing_summary, .rules = 0),
    STRUCTS("LocalSecondaryIndexes", local_indexes, index_description, .rules = 0),
    STRUCTS("GlobalSecondaryIndexes", global_indexes, index_description, .rules = 0),
    STRUCT("StreamSpecification", stream, hf__part_stream_spec, .rules = 0),
    STR("LatestStreamLabel", stream_label, .rules = 0),
    ARN("LatestStreamArn", stream_arn, .rules = 0),
    STRUCT("SSEDescription", sse, hf__part_sse_description, .rules = 0),
    STRUCT("TableClassSummary", table_class, table_class_summary, .rules = 0),
    FLAG("DeletionProtectionEnabled", deletion_protection, .rules = 0),
    STRUCT("RestoreSummary", restore, restore_summary, .rules = 0),
    STRUCT("WarmThroughput", warm_throughput, warm_description, .rules = 0),
};
TABLE(hf__table_description_fields, "TableDescription");
#undef T

/* ---- tables --------------------------------------------------------------------------------- */

#define T hf_create_table
static const struct field create_table_list[] = {
    STRUCTS("AttributeDefinitions", attributes, hf__part_attribute_definition, REQUIRED),
    TABLE_NAME("TableName", table, .rules = FIELD_NO_CHECK, LENGTH(3, 255),
               .pattern = PATTERN_TABLE_NAME),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, REQUIRED, LENGTH(1, 2)),
    STRUCTS("GlobalSecondaryIndexes", global_indexes, hf__part_global_index, .rules = 0),
    STRUCTS("LocalSecondaryIndexes", local_indexes, hf__part_local_index, .rules = 0),
    ENUMERATED("BillingMode", billing, hf__billing_modes, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, hf__part_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    STRUCT("StreamSpecification", stream, hf__part_stream_spec, .rules = 0),
    STRUCT("SSESpecification", sse, hf__part_sse_spec, .rules = 0),
    STRUCTS("Tags", tags, tag, .rules = 0),
    ENUMERATED("TableClass", table_class, table_classes, .rules = 0),
    FLAG("DeletionProtectionEnabled", deletion_protection, .rules = 0),
    STR("ResourcePolicy", resource_policy, .rules = 0),
    STRUCT("WarmThroughput", warm_throughput, warm_throughput, .rules = 0),
};
OP_TABLE(create_table, "CreateTableInput");
#undef T

#define T hf_create_table_result
static const struct field create_table_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, REQUIRED),
};
OP_TABLE(create_table_result, "CreateTableOutput");
#undef T

#define T hf_delete_table
static const struct field delete_table_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(delete_table, "DeleteTableInput");
#undef T

#define T hf_delete_table_result
static const struct field delete_table_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, REQUIRED),
};
OP_TABLE(delete_table_result, "DeleteTableOutput");
#undef T

#define T hf_describe_table
static const struct field describe_table_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_table, "DescribeTableInput");
#undef T

#define T hf_describe_table_result
static const struct field describe_table_result_list[] = {
    STRUCT("Table", table, hf__table_description_fields, REQUIRED),
};
OP_TABLE(describe_table_result, "DescribeTableOutput");
#undef T

#define T hf_list_tables
static const struct field list_tables_list[] = {
    TABLE_NAME("ExclusiveStartTableName", start, PAGE_START, LENGTH(3, 255),
               .pattern = PATTERN_TABLE_NAME),
    INT("Limit", limit, PAGE_LIMIT, RANGE(1, 100)),
};
OP_TABLE(list_tables, "ListTablesInput");
#undef T

#define T hf_list_tables_result
static const struct field list_tables_result_list[] = {
    STRS("TableNames", tables, .holds = HOLDS_TABLE, LISTED),
    TABLE_NAME("LastEvaluatedTableName", last, PAGE_LAST),
};
OP_TABLE(list_tables_result, "ListTablesOutput");
#undef T

#define T hf_index_update
static const struct field index_update_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCT("ProvisionedThroughput", throughput, hf__part_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    STRUCT("WarmThroughput", warm_throughput, warm_throughput, .rules = 0),
};
static TABLE(index_update, "UpdateGlobalSecondaryIndexAction");
#undef T

#define T hf_index_delete
static const struct field index_delete_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
static TABLE(index_delete, "DeleteGlobalSecondaryIndexAction");
#undef T

/* What CreateTable calls a GlobalSecondaryIndex. */
static const struct fields index_create = {"CreateGlobalSecondaryIndexAction",
                                           hf__part_global_index_list,
                                           ARRAY_LEN(hf__part_global_index_list),
                                           sizeof(struct hf_index)};

#define T hf_index_change
static const struct field index_change_list[] = {
    STRUCT("Update", update, index_update, .rules = 0),
    STRUCT("Create", create, index_create, .rules = 0),
    STRUCT("Delete", del, index_delete, .rules = 0),
};
static TABLE(index_change, "GlobalSecondaryIndexUpdate");
#undef T

#define T hf_replica_update
static const struct field replica_update_list[] = {
    STR("RegionName", region, .rules = 0),
};
static TABLE(replica_update, "ReplicationGroupUpdate");
#undef T

#define T hf_update_table
static const struct field update_table_list[] = {
    STRUCTS("AttributeDefinitions", attributes, hf__part_attribute_definition, .rules = 0),
    TABLE_NAME("TableName", table, .rules = FIELD_NO_CHECK, LENGTH(3, 1024),
               .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("BillingMode", billing, hf__billing_modes, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, hf__part_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    STRUCTS("GlobalSecondaryIndexUpdates", index_changes, index_change, .rules = 0),
    STRUCT("StreamSpecification", stream, hf__part_stream_spec, .rules = 0),
    STRUCT("SSESpecification", sse, hf__part_sse_spec, .rules = 0),
    STRUCTS("ReplicaUpdates", replicas, replica_update, LENGTH(1, 0)),
    ENUMERATED("TableClass", table_class, table_classes, .rules = 0),
    FLAG("DeletionProtectionEnabled", deletion_protection, .rules = 0),
    STRUCT("WarmThroughput", warm_throughput, warm_throughput, .rules = 0),
};
OP_TABLE(update_table, "UpdateTableInput");
#undef T

#define T hf_update_table_result
static const struct field update_table_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, REQUIRED),
};
OP_TABLE(update_table_result, "UpdateTableOutput");
#undef T

#define T hf_ttl_spec
static const struct field ttl_spec_list[] = {
    FLAG("Enabled", enabled, REQUIRED),
    STR("AttributeName", attribute, REQUIRED, LENGTH(1, 255)),
};
static TABLE(ttl_spec, "TimeToLiveSpecification");
#undef T

#define T hf_update_time_to_live
static const struct field update_time_to_live_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
    STRUCT("TimeToLiveSpecification", spec, ttl_spec, REQUIRED),
};
OP_TABLE(update_time_to_live, "UpdateTimeToLiveInput");
#undef T

#define T hf_update_time_to_live_result
static const struct field update_time_to_live_result_list[] = {
    STRUCT("TimeToLiveSpecification", spec, ttl_spec, .rules = 0),
};
OP_TABLE(update_time_to_live_result, "UpdateTimeToLiveOutput");
#undef T

#define T hf_describe_time_to_live
static const struct field describe_time_to_live_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 1024), .pattern = PATTERN_TABLE_NAME),
};
OP_TABLE(describe_time_to_live, "DescribeTimeToLiveInput");
#undef T

#define T hf_ttl_description
static const struct field hf__part_ttl_description_list[] = {
    ENUMERATED("TimeToLiveStatus", status, ttl_statuses, .rules = 0),
    STR("AttributeName", attribute, .rules = 0),
};
TABLE(hf__part_ttl_description, "TimeToLiveDescription");
#undef T

#define T hf_describe_time_to_live_result
static const struct field describe_time_to_live_result_list[] = {
    STRUCT("TimeToLiveDescription", description, hf__part_ttl_description, .rules = 0),
};
OP_TABLE(describe_time_to_live_result, "DescribeTimeToLiveOutput");
#undef T

#define T hf_tag_resource
static const struct field tag_resource_list[] = {
    ARN("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STRUCTS("Tags", tags, tag, REQUIRED),
};
OP_TABLE(tag_resource, "TagResourceInput");
#undef T

const struct fields hf__fields_tag_resource_result = {"TagResourceOutput", NULL, 0,
                                                      sizeof(struct hf_tag_resource_result)};

#define T hf_untag_resource
static const struct field untag_resource_list[] = {
    ARN("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STRS("TagKeys", keys, REQUIRED),
};
OP_TABLE(untag_resource, "UntagResourceInput");
#undef T

const struct fields hf__fields_untag_resource_result = {"UntagResourceOutput", NULL, 0,
                                                        sizeof(struct hf_untag_resource_result)};

#define T hf_list_tags_of_resource
static const struct field list_tags_of_resource_list[] = {
    ARN("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STR("NextToken", next_token, .rules = 0),
};
OP_TABLE(list_tags_of_resource, "ListTagsOfResourceInput");
#undef T

#define T hf_list_tags_of_resource_result
static const struct field list_tags_of_resource_result_list[] = {
    STRUCTS("Tags", tags, tag, ALWAYS),
    STR("NextToken", next_token, .rules = 0),
};
OP_TABLE(list_tags_of_resource_result, "ListTagsOfResourceOutput");
#undef T

const struct fields hf__fields_describe_limits = {"DescribeLimitsInput", NULL, 0,
                                                  sizeof(struct hf_describe_limits)};

#define T hf_describe_limits_result
static const struct field describe_limits_result_list[] = {
    INT("AccountMaxReadCapacityUnits", account_max_read_units, LONG_ALWAYS),
    INT("AccountMaxWriteCapacityUnits", account_max_write_units, LONG_ALWAYS),
    INT("TableMaxReadCapacityUnits", table_max_read_units, LONG_ALWAYS),
    INT("TableMaxWriteCapacityUnits", table_max_write_units, LONG_ALWAYS),
};
OP_TABLE(describe_limits_result, "DescribeLimitsOutput");
#undef T

const struct fields hf__fields_describe_endpoints = {"DescribeEndpointsRequest", NULL, 0,
                                                     sizeof(struct hf_describe_endpoints)};

#define T hf_endpoint
static const struct field endpoint_list[] = {
    STR("Address", address, ALWAYS),
    INT("CachePeriodInMinutes", cache_minutes, LONG_ALWAYS),
};
static TABLE(endpoint, "Endpoint");
#undef T

#define T hf_describe_endpoints_result
static const struct field describe_endpoints_result_list[] = {
    STRUCTS("Endpoints", endpoints, endpoint, ALWAYS),
};
OP_TABLE(describe_endpoints_result, "DescribeEndpointsResponse");
#undef T
/* ---- streams -------------------------------------------------------------------------------- */

#define T hf_list_streams
static const struct field list_streams_list[] = {
    TABLE_NAME("TableName", table, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    INT("Limit", limit, PAGE_LIMIT, RANGE(1, 100)),
    ARN("ExclusiveStartStreamArn", start_arn, PAGE_START, LENGTH(37, 1024)),
};
OP_TABLE(list_streams, "ListStreamsInput");
#undef T

#define T hf_stream_name
static const struct field stream_name_list[] = {
    ARN("StreamArn", arn, PAGE_LAST),
    TABLE_NAME("TableName", table, .rules = 0),
    STR("StreamLabel", label, .rules = 0),
};
static TABLE(stream_name, "Stream");
#undef T

#define T hf_list_streams_result
static const struct field list_streams_result_list[] = {
    STRUCTS("Streams", streams, stream_name, LISTED),
    ARN("LastEvaluatedStreamArn", last_arn, PAGE_LAST),
};
OP_TABLE(list_streams_result, "ListStreamsOutput");
#undef T

#define T hf_shard_filter
static const struct field shard_filter_list[] = {
    ENUMERATED("Type", type, shard_filter_types, .rules = 0),
    STR("ShardId", shard, LENGTH(28, 65)),
};
static TABLE(shard_filter, "ShardFilter");
#undef T

#define T hf_describe_stream
static const struct field describe_stream_list[] = {
    ARN("StreamArn", arn, REQUIRED, LENGTH(37, 1024)),
    INT("Limit", limit, RANGE(1, 100)),
    STR("ExclusiveStartShardId", start_shard, LENGTH(28, 65)),
    STRUCT("ShardFilter", filter, shard_filter, .rules = 0),
};
OP_TABLE(describe_stream, "DescribeStreamInput");
#undef T

#define T hf_sequence_range
static const struct field sequence_range_list[] = {
    STR("StartingSequenceNumber", first, .rules = 0),
    STR("EndingSequenceNumber", last, .rules = 0),
};
static TABLE(sequence_range, "SequenceNumberRange");
#undef T

#define T hf_shard
static const struct field shard_list[] = {
    STR("ShardId", id, .rules = 0),
    STRUCT("SequenceNumberRange", range, sequence_range, .rules = 0),
    STR("ParentShardId", parent, .rules = 0),
};
static TABLE(shard, "Shard");
#undef T

#define T hf_stream_description
static const struct field stream_description_list[] = {
    ARN("StreamArn", arn, .rules = 0),
    STR("StreamLabel", label, .rules = 0),
    ENUMERATED("StreamStatus", status, stream_statuses, .rules = 0),
    ENUMERATED("StreamViewType", view, stream_views, .rules = 0),
    TIME("CreationRequestDateTime", created_us, .rules = 0),
    TABLE_NAME("TableName", table, .rules = 0),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, .rules = 0),
    STRUCTS("Shards", shards, shard, ALWAYS),
    STR("LastEvaluatedShardId", last_shard, .rules = 0),
};
static TABLE(stream_description, "StreamDescription");
#undef T

#define T hf_describe_stream_result
static const struct field describe_stream_result_list[] = {
    STRUCT("StreamDescription", stream, stream_description, REQUIRED),
};
OP_TABLE(describe_stream_result, "DescribeStreamOutput");
#undef T

#define T hf_get_shard_iterator
static const struct field get_shard_iterator_list[] = {
    ARN("StreamArn", arn, REQUIRED, LENGTH(37, 1024)),
    STR("ShardId", shard, REQUIRED, LENGTH(28, 65)),
    ENUMERATED("ShardIteratorType", type, iterator_types, REQUIRED),
    STR("SequenceNumber", sequence, LENGTH(21, 40)),
};
OP_TABLE(get_shard_iterator, "GetShardIteratorInput");
#undef T

#define T hf_get_shard_iterator_result
static const struct field get_shard_iterator_result_list[] = {
    STR("ShardIterator", iterator, .rules = 0),
};
OP_TABLE(get_shard_iterator_result, "GetShardIteratorOutput");
#undef T

#define T hf_get_records
static const struct field get_records_list[] = {
    STR("ShardIterator", iterator, REQUIRED, LENGTH(1, 2048)),
    INT("Limit", limit, RANGE(1, 1000)),
};
OP_TABLE(get_records, "GetRecordsInput");
#undef T

#define T hf_stream_change
static const struct field stream_change_list[] = {
    TIME("ApproximateCreationDateTime", created_us, .rules = 0),
    ITEM("Keys", keys, .rules = 0),
    ITEM("NewImage", new_image, .rules = 0),
    ITEM("OldImage", old_image, .rules = 0),
    STR("SequenceNumber", sequence, .rules = 0),
    INT("SizeBytes", size_bytes, LONG_ALWAYS),
    ENUMERATED("StreamViewType", view, stream_views, .rules = 0),
};
static TABLE(stream_change, "StreamRecord");
#undef T

#define T hf_stream_identity
static const struct field stream_identity_list[] = {
    STR("PrincipalId", principal, .rules = 0),
    STR("Type", type, .rules = 0),
};
static TABLE(stream_identity, "Identity");
#undef T

#define T hf_record
static const struct field record_list[] = {
    STR("eventID", id, .rules = 0),
    ENUMERATED("eventName", event, event_names, .rules = 0),
    STR("eventVersion", version, .rules = 0),
    STR("eventSource", source, .rules = 0),
    STR("awsRegion", region, .rules = 0),
    STRUCT("dynamodb", change, stream_change, REQUIRED),
    STRUCT("userIdentity", identity, stream_identity, .rules = 0),
};
static TABLE(record, "Record");
#undef T

#define T hf_get_records_result
static const struct field get_records_result_list[] = {
    STRUCTS("Records", records, record, ALWAYS),
    STR("NextShardIterator", next, .rules = 0),
};
OP_TABLE(get_records_result, "GetRecordsOutput");
#undef T
