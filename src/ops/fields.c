/*
 * ops/fields.c: the tables that fields.h describes, and the table of operations.
 *
 * Lengths and ranges are DynamoDB's model; members stand in the order in which the service reports
 * them. FIELD_NO_CHECK marks members whose absence or size the
 * service reports in a sentence of its own rather than as a constraint; ops/validate_*.c has those.
 */
#include "ops/fields.h"

/* ---- enums: `printed` is the order in which messages list the members -------------------------
 */

#define ENUM(name, printed_set, ...)                                                               \
    static const char *const name##_names[] = {__VA_ARGS__};                                       \
    static const struct field_enum name = {name##_names, ARRAY_LEN(name##_names), printed_set}

ENUM(key_types, "[HASH, RANGE]", "HASH", "RANGE");
ENUM(scalar_types, "[B, N, S]", "S", "N", "B");
ENUM(projection_types, "[ALL, INCLUDE, KEYS_ONLY]", "ALL", "KEYS_ONLY", "INCLUDE");
ENUM(billing_modes, "[PROVISIONED, PAY_PER_REQUEST]", "PROVISIONED", "PAY_PER_REQUEST");
ENUM(table_classes, "[STANDARD_INFREQUENT_ACCESS, STANDARD]", "STANDARD",
     "STANDARD_INFREQUENT_ACCESS");
ENUM(table_statuses, "[CREATING, UPDATING, DELETING, ACTIVE]", "CREATING", "UPDATING", "DELETING",
     "ACTIVE");
ENUM(stream_views, "[KEYS_ONLY, NEW_IMAGE, OLD_IMAGE, NEW_AND_OLD_IMAGES]", "NEW_IMAGE",
     "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY");
ENUM(stream_statuses, "[ENABLING, ENABLED, DISABLING, DISABLED]", "ENABLING", "ENABLED",
     "DISABLING", "DISABLED");
ENUM(ttl_statuses, "[ENABLING, DISABLING, ENABLED, DISABLED]", "ENABLING", "DISABLING", "ENABLED",
     "DISABLED");
ENUM(sse_types, "[AES256, KMS]", "AES256", "KMS");
ENUM(return_values, "[ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW]", "NONE", "ALL_OLD",
     "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW");
ENUM(return_on_failure, "[ALL_OLD, NONE]", "ALL_OLD", "NONE");
ENUM(return_capacity, "[INDEXES, TOTAL, NONE]", "INDEXES", "TOTAL", "NONE");
ENUM(return_metrics, "[SIZE, NONE]", "SIZE", "NONE");
ENUM(selects, "[SPECIFIC_ATTRIBUTES, COUNT, ALL_ATTRIBUTES, ALL_PROJECTED_ATTRIBUTES]",
     "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES", "SPECIFIC_ATTRIBUTES", "COUNT");
ENUM(conditional_operators, "[OR, AND]", "AND", "OR");
ENUM(comparisons,
     "[IN, NULL, BETWEEN, LT, NOT_CONTAINS, EQ, GT, NOT_NULL, NE, LE, BEGINS_WITH, GE, CONTAINS]",
     "EQ", "NE", "IN", "LE", "LT", "GE", "GT", "BETWEEN", "NOT_NULL", "NULL", "CONTAINS",
     "NOT_CONTAINS", "BEGINS_WITH");
ENUM(update_actions, "[ADD, PUT, DELETE]", "ADD", "PUT", "DELETE");
ENUM(iterator_types, "[AFTER_SEQUENCE_NUMBER, LATEST, AT_SEQUENCE_NUMBER, TRIM_HORIZON]",
     "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER");
ENUM(event_names, "[INSERT, MODIFY, REMOVE]", "INSERT", "MODIFY", "REMOVE");
ENUM(shard_filter_types, "[CHILD_SHARDS]", "CHILD_SHARDS");

/* ---- how a line of a table is written ------------------------------------------------------- */

#define AT(member) (uint16_t) offsetof(struct T, member)
#define COUNT_AT(member) (uint16_t) offsetof(struct T, member##_len)
#define STR(wire, member, ...)                                                                     \
    {                                                                                              \
        .name = wire, .kind = FIELD_STR, .at = AT(member), __VA_ARGS__                             \
    }
#define INT(wire, member, ...)                                                                     \
    {                                                                                              \
        .name = wire, .kind = FIELD_INT, .at = AT(member), __VA_ARGS__                             \
    }
#define DOUBLE(wire, member, ...)                                                                  \
    {                                                                                              \
        .name = wire, .kind = FIELD_DOUBLE, .at = AT(member), __VA_ARGS__                          \
    }
#define FLAG(wire, member, ...)                                                                    \
    {                                                                                              \
        .name = wire, .kind = FIELD_FLAG, .at = AT(member), __VA_ARGS__                            \
    }
#define ENUMERATED(wire, member, set, ...)                                                         \
    {                                                                                              \
        .name = wire, .kind = FIELD_ENUM, .at = AT(member), .members = &(set), __VA_ARGS__         \
    }
#define TIME(wire, member, ...)                                                                    \
    {                                                                                              \
        .name = wire, .kind = FIELD_TIME, .at = AT(member), __VA_ARGS__                            \
    }
#define ITEM(wire, member, ...)                                                                    \
    {                                                                                              \
        .name = wire, .kind = FIELD_ITEM, .at = AT(member), __VA_ARGS__                            \
    }
#define NAMES(wire, member, ...)                                                                   \
    {                                                                                              \
        .name = wire, .kind = FIELD_NAMES, .at = AT(member), __VA_ARGS__                           \
    }
#define VALUE(wire, member, ...)                                                                   \
    {                                                                                              \
        .name = wire, .kind = FIELD_VALUE, .at = AT(member), __VA_ARGS__                           \
    }
#define STRUCT(wire, member, table, ...)                                                           \
    {                                                                                              \
        .name = wire, .kind = FIELD_STRUCT, .at = AT(member), .sub = &(table), __VA_ARGS__         \
    }
#define LIST(kind_, wire, member, ...)                                                             \
    {                                                                                              \
        .name = wire, .kind = kind_, .at = AT(member), .count_at = COUNT_AT(member), __VA_ARGS__   \
    }
#define STRS(wire, member, ...) LIST(FIELD_STRS, wire, member, __VA_ARGS__)
#define DOUBLES(wire, member, ...) LIST(FIELD_DOUBLES, wire, member, __VA_ARGS__)
#define ITEMS(wire, member, ...) LIST(FIELD_ITEMS, wire, member, __VA_ARGS__)
#define VALUES(wire, member, ...) LIST(FIELD_VALUES, wire, member, __VA_ARGS__)
#define STRUCTS(wire, member, table, ...)                                                          \
    LIST(FIELD_STRUCTS, wire, member, .sub = &(table), __VA_ARGS__)
#define MAP(wire, member, table, ...) LIST(FIELD_MAP, wire, member, .sub = &(table), __VA_ARGS__)

#define REQUIRED .rules = FIELD_REQUIRED
#define ALWAYS .rules = FIELD_ALWAYS
#define LONG .rules = FIELD_LONG
#define LONG_ALWAYS .rules = FIELD_LONG | FIELD_ALWAYS
#define LONG_REQUIRED .rules = FIELD_LONG | FIELD_REQUIRED
#define LENGTH(shortest, longest) .min = (shortest), .max = (longest)
#define RANGE(least, most) .min = (least), .max = (most)
#define ELEMENTS(shortest, longest) .element_min = (shortest), .element_max = (longest)

/* `T` names the struct of the table that follows; each table ends its own. */
#define TABLE(name_, wire_)                                                                        \
    const struct fields name_ = {wire_, name_##_list, ARRAY_LEN(name_##_list), sizeof(struct T)}

/* ---- parts ---------------------------------------------------------------------------------- */

#define T hf_attribute_definition
static const struct field attribute_definition_list[] = {
    STR("AttributeName", name, REQUIRED, LENGTH(1, 255)),
    ENUMERATED("AttributeType", type, scalar_types, REQUIRED),
};
static TABLE(attribute_definition, "AttributeDefinition");
#undef T

#define T hf_key_element
static const struct field key_element_list[] = {
    STR("AttributeName", name, REQUIRED, LENGTH(1, 255)),
    ENUMERATED("KeyType", type, key_types, REQUIRED),
};
static TABLE(key_element, "KeySchemaElement");
#undef T

#define T hf_throughput
static const struct field throughput_list[] = {
    INT("ReadCapacityUnits", read_units, LONG_REQUIRED, RANGE(1, 0)),
    INT("WriteCapacityUnits", write_units, LONG_REQUIRED, RANGE(1, 0)),
};
static TABLE(throughput, "ProvisionedThroughput");
#undef T

#define T hf_on_demand_throughput
static const struct field on_demand_throughput_list[] = {
    INT("MaxReadRequestUnits", max_read_units, LONG),
    INT("MaxWriteRequestUnits", max_write_units, LONG),
};
static TABLE(on_demand_throughput, "OnDemandThroughput");
#undef T

#define T hf_projection
static const struct field projection_list[] = {
    ENUMERATED("ProjectionType", type, projection_types, .rules = 0),
    STRS("NonKeyAttributes", attributes, LENGTH(1, 20), ELEMENTS(1, 255)),
};
static TABLE(projection, "Projection");
#undef T

#define T hf_index
static const struct field local_index_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("KeySchema", key_schema, key_element, REQUIRED, LENGTH(1, 2)),
    STRUCT("Projection", projection, projection, REQUIRED),
};
static TABLE(local_index, "LocalSecondaryIndex");
#undef T

enum { GLOBAL_INDEX_KEYS_MAX = 8 }; /* four of HASH, four of RANGE */

#define T hf_index
static const struct field global_index_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("KeySchema", key_schema, key_element, REQUIRED, LENGTH(1, GLOBAL_INDEX_KEYS_MAX)),
    STRUCT("Projection", projection, projection, REQUIRED),
    STRUCT("ProvisionedThroughput", throughput, throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, on_demand_throughput, .rules = 0),
};
static TABLE(global_index, "GlobalSecondaryIndex");
#undef T

#define T hf_stream_spec
static const struct field stream_spec_list[] = {
    FLAG("StreamEnabled", enabled, REQUIRED),
    ENUMERATED("StreamViewType", view, stream_views, .rules = 0),
};
static TABLE(stream_spec, "StreamSpecification");
#undef T

#define T hf_sse_spec
static const struct field sse_spec_list[] = {
    FLAG("Enabled", enabled, .rules = 0),
    ENUMERATED("SSEType", type, sse_types, .rules = 0),
    STR("KMSMasterKeyId", kms_key_id, .rules = 0),
};
static TABLE(sse_spec, "SSESpecification");
#undef T

#define T hf_tag
static const struct field tag_list[] = {
    STR("Key", key, ALWAYS),
    STR("Value", value, ALWAYS),
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

#define T hf_billing_summary
static const struct field billing_summary_list[] = {
    ENUMERATED("BillingMode", billing, billing_modes, .rules = 0),
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
static const struct field sse_description_list[] = {
    STR("Status", status, .rules = 0),
    ENUMERATED("SSEType", type, sse_types, .rules = 0),
    STR("KMSMasterKeyArn", kms_key_arn, .rules = 0),
};
static TABLE(sse_description, "SSEDescription");
#undef T

#define T hf_index_description
static const struct field index_description_list[] = {
    STR("IndexName", name, .rules = 0),
    STRUCTS("KeySchema", key_schema, key_element, .rules = 0),
    STRUCT("Projection", projection, projection, .rules = 0),
    ENUMERATED("IndexStatus", status, table_statuses, .rules = 0),
    FLAG("Backfilling", backfilling, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, throughput_description, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, on_demand_throughput, .rules = 0),
    INT("IndexSizeBytes", size_bytes, LONG_ALWAYS),
    INT("ItemCount", item_count, LONG_ALWAYS),
    STR("IndexArn", arn, .rules = 0),
};
static TABLE(index_description, "IndexDescription");
#undef T

#define T hf_table_description
static const struct field hf__table_description_fields_list[] = {
    STRUCTS("AttributeDefinitions", attributes, attribute_definition, .rules = 0),
    STR("TableName", name, .rules = 0),
    STRUCTS("KeySchema", key_schema, key_element, .rules = 0),
    ENUMERATED("TableStatus", status, table_statuses, .rules = 0),
    TIME("CreationDateTime", created_us, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, throughput_description, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, on_demand_throughput, .rules = 0),
    INT("TableSizeBytes", size_bytes, LONG_ALWAYS),
    INT("ItemCount", item_count, LONG_ALWAYS),
    STR("TableArn", arn, .rules = 0),
    STR("TableId", id, .rules = 0),
    STRUCT("BillingModeSummary", billing, billing_summary, .rules = 0),
    STRUCTS("LocalSecondaryIndexes", local_indexes, index_description, .rules = 0),
    STRUCTS("GlobalSecondaryIndexes", global_indexes, index_description, .rules = 0),
    STRUCT("StreamSpecification", stream, stream_spec, .rules = 0),
    STR("LatestStreamLabel", stream_label, .rules = 0),
    STR("LatestStreamArn", stream_arn, .rules = 0),
    STRUCT("SSEDescription", sse, sse_description, .rules = 0),
    STRUCT("TableClassSummary", table_class, table_class_summary, .rules = 0),
    FLAG("DeletionProtectionEnabled", deletion_protection, .rules = 0),
};
TABLE(hf__table_description_fields, "TableDescription");
#undef T

#define T hf_expected
static const struct field expected_list[] = {
    VALUE("Value", value, .rules = 0),
    FLAG("Exists", exists, .rules = 0),
    ENUMERATED("ComparisonOperator", comparison, comparisons, .rules = 0),
    VALUES("AttributeValueList", values, .rules = 0),
};
static TABLE(expected, "ExpectedAttributeValue");
#undef T

#define T hf_condition
static const struct field condition_list[] = {
    VALUES("AttributeValueList", values, .rules = 0),
    ENUMERATED("ComparisonOperator", comparison, comparisons, REQUIRED),
};
static TABLE(condition, "Condition");
#undef T

#define T hf_attribute_update
static const struct field attribute_update_list[] = {
    VALUE("Value", value, .rules = 0),
    ENUMERATED("Action", action, update_actions, .rules = 0),
};
static TABLE(attribute_update, "AttributeValueUpdate");
#undef T

#define T hf_capacity_part
static const struct field capacity_part_list[] = {
    DOUBLE("CapacityUnits", units, .rules = 0),
    DOUBLE("ReadCapacityUnits", read_units, .rules = 0),
    DOUBLE("WriteCapacityUnits", write_units, .rules = 0),
};
static TABLE(capacity_part, "Capacity");
#undef T

#define T hf_capacity
static const struct field capacity_list[] = {
    STR("TableName", table, .rules = 0),
    DOUBLE("CapacityUnits", units, ALWAYS),
    DOUBLE("ReadCapacityUnits", read_units, .rules = 0),
    DOUBLE("WriteCapacityUnits", write_units, .rules = 0),
    STRUCT("Table", table_part, capacity_part, .rules = 0),
    MAP("LocalSecondaryIndexes", local_indexes, capacity_part, .rules = 0),
    MAP("GlobalSecondaryIndexes", global_indexes, capacity_part, .rules = 0),
};
static TABLE(capacity, "ConsumedCapacity");
#undef T

#define T hf_collection_metrics
static const struct field collection_metrics_list[] = {
    ITEM("ItemCollectionKey", key, .rules = 0),
    DOUBLES("SizeEstimateRangeGB", size_range_gb, .rules = 0),
};
static TABLE(collection_metrics, "ItemCollectionMetrics");
#undef T

#define T hf_table_metrics
static const struct field table_metrics_list[] = {
    STRUCTS(NULL, metrics, collection_metrics, .rules = 0),
};
static TABLE(table_metrics, "ItemCollectionMetricsPerTable");
#undef T

/* ---- items ---------------------------------------------------------------------------------- */

#define T hf_put_item
static const struct field put_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ITEM("Item", item, REQUIRED),
    ENUMERATED("ConditionalOperator", conditional_operator, conditional_operators, .rules = 0),
    MAP("Expected", expected, expected, .rules = 0),
    ENUMERATED("ReturnValues", returns, return_values, .rules = 0),
    ENUMERATED("ReturnItemCollectionMetrics", return_metrics, return_metrics, .rules = 0),
    STR("ConditionExpression", condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(put_item, "PutItemInput");
#undef T

#define T hf_put_item_result
static const struct field put_item_result_list[] = {
    ITEM("Attributes", attributes, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCT("ItemCollectionMetrics", metrics, collection_metrics, .rules = 0),
};
static TABLE(put_item_result, "PutItemOutput");
#undef T

#define T hf_get_item
static const struct field get_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    STRS("AttributesToGet", attributes_to_get, LENGTH(1, 0), ELEMENTS(0, 65535)),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ITEM("Key", key, REQUIRED),
    FLAG("ConsistentRead", consistent, .rules = 0),
    STR("ProjectionExpression", projection, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
};
static TABLE(get_item, "GetItemInput");
#undef T

#define T hf_get_item_result
static const struct field get_item_result_list[] = {
    ITEM("Item", item, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
};
static TABLE(get_item_result, "GetItemOutput");
#undef T

#define T hf_update_item
static const struct field update_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ReturnItemCollectionMetrics", return_metrics, return_metrics, .rules = 0),
    ENUMERATED("ConditionalOperator", conditional_operator, conditional_operators, .rules = 0),
    ENUMERATED("ReturnValues", returns, return_values, .rules = 0),
    ITEM("Key", key, REQUIRED),
    MAP("Expected", expected, expected, .rules = 0),
    MAP("AttributeUpdates", updates, attribute_update, .rules = 0),
    STR("UpdateExpression", update, .rules = 0),
    STR("ConditionExpression", condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(update_item, "UpdateItemInput");
#undef T

#define T hf_update_item_result
static const struct field update_item_result_list[] = {
    ITEM("Attributes", attributes, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCT("ItemCollectionMetrics", metrics, collection_metrics, .rules = 0),
};
static TABLE(update_item_result, "UpdateItemOutput");
#undef T

#define T hf_delete_item
static const struct field delete_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ReturnValues", returns, return_values, .rules = 0),
    ENUMERATED("ReturnItemCollectionMetrics", return_metrics, return_metrics, .rules = 0),
    ITEM("Key", key, REQUIRED),
    ENUMERATED("ConditionalOperator", conditional_operator, conditional_operators, .rules = 0),
    MAP("Expected", expected, expected, .rules = 0),
    STR("ConditionExpression", condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(delete_item, "DeleteItemInput");
#undef T

#define T hf_delete_item_result
static const struct field delete_item_result_list[] = {
    ITEM("Attributes", attributes, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCT("ItemCollectionMetrics", metrics, collection_metrics, .rules = 0),
};
static TABLE(delete_item_result, "DeleteItemOutput");
#undef T

#define T hf_query
static const struct field query_list[] = {
    ENUMERATED("Select", select, selects, .rules = 0),
    STR("IndexName", index, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    MAP("QueryFilter", query_filter, condition, .rules = 0),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ConditionalOperator", conditional_operator, conditional_operators, .rules = 0),
    STRS("AttributesToGet", attributes_to_get, LENGTH(1, 0), ELEMENTS(0, 65535)),
    INT("Limit", limit, .rules = FIELD_NEWER, RANGE(1, 0)),
    MAP("KeyConditions", key_conditions, condition, .rules = 0),
    FLAG("ConsistentRead", consistent, .rules = 0),
    FLAG("ScanIndexForward", forward, .rules = 0),
    ITEM("ExclusiveStartKey", start, .rules = 0),
    STR("ProjectionExpression", projection, .rules = 0),
    STR("FilterExpression", filter, .rules = 0),
    STR("KeyConditionExpression", key_condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
};
static TABLE(query, "QueryInput");
#undef T

#define T hf_query_result
static const struct field query_result_list[] = {
    ITEMS("Items", items, .rules = 0),
    INT("Count", count, ALWAYS),
    INT("ScannedCount", scanned_count, ALWAYS),
    ITEM("LastEvaluatedKey", last, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
};
static TABLE(query_result, "QueryOutput");
#undef T

#define T hf_scan
static const struct field scan_list[] = {
    ENUMERATED("Select", select, selects, .rules = 0),
    STR("IndexName", index, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    INT("TotalSegments", total_segments, RANGE(1, 1000000)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ConditionalOperator", conditional_operator, conditional_operators, .rules = 0),
    MAP("ScanFilter", scan_filter, condition, .rules = 0),
    INT("Segment", segment, .rules = FIELD_FROM_ZERO, RANGE(0, 999999)),
    INT("Limit", limit, RANGE(1, 0)),
    STRS("AttributesToGet", attributes_to_get, LENGTH(1, 0), ELEMENTS(0, 65535)),
    ITEM("ExclusiveStartKey", start, .rules = 0),
    STR("ProjectionExpression", projection, .rules = 0),
    STR("FilterExpression", filter, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    FLAG("ConsistentRead", consistent, .rules = 0),
};
static TABLE(scan, "ScanInput");
#undef T

#define T hf_scan_result
static const struct field scan_result_list[] = {
    ITEMS("Items", items, .rules = 0),
    INT("Count", count, ALWAYS),
    INT("ScannedCount", scanned_count, ALWAYS),
    ITEM("LastEvaluatedKey", last, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
};
static TABLE(scan_result, "ScanOutput");
#undef T

/* ---- batches and transactions --------------------------------------------------------------- */

#define T hf_table_gets
static const struct field table_gets_list[] = {
    ITEMS("Keys", keys, .rules = FIELD_REQUIRED | FIELD_NEWER, LENGTH(1, 100)),
    STRS("AttributesToGet", attributes_to_get, LENGTH(1, 0), ELEMENTS(0, 65535)),
    FLAG("ConsistentRead", consistent, .rules = 0),
    STR("ProjectionExpression", projection, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
};
static TABLE(table_gets, "KeysAndAttributes");
#undef T

#define T hf_table_items
static const struct field table_items_list[] = {
    ITEMS(NULL, items, .rules = 0),
};
static TABLE(table_items, "ItemList");
#undef T

#define T hf_batch_get_item
static const struct field batch_get_item_list[] = {
    MAP("RequestItems", tables, table_gets, .rules = FIELD_REQUIRED | FIELD_NO_CHECK),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
};
static TABLE(batch_get_item, "BatchGetItemInput");
#undef T

#define T hf_batch_get_item_result
static const struct field batch_get_item_result_list[] = {
    MAP("Responses", tables, table_items, ALWAYS),
    MAP("UnprocessedKeys", unprocessed, table_gets, ALWAYS),
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
};
static TABLE(batch_get_item_result, "BatchGetItemOutput");
#undef T

#define T hf_put_request
static const struct field put_request_list[] = {
    ITEM("Item", item, REQUIRED),
};
static TABLE(put_request, "PutRequest");
#undef T

#define T hf_delete_request
static const struct field delete_request_list[] = {
    ITEM("Key", key, REQUIRED),
};
static TABLE(delete_request, "DeleteRequest");
#undef T

#define T hf_write_request
static const struct field write_request_list[] = {
    STRUCT("PutRequest", put, put_request, .rules = 0),
    STRUCT("DeleteRequest", del, delete_request, .rules = 0),
};
static TABLE(write_request, "WriteRequest");
#undef T

#define T hf_table_writes
static const struct field table_writes_list[] = {
    STRUCTS(NULL, writes, write_request, .rules = FIELD_NO_CHECK, LENGTH(1, 25)),
};
static TABLE(table_writes, "WriteRequests");
#undef T

#define T hf_batch_write_item
static const struct field batch_write_item_list[] = {
    MAP("RequestItems", tables, table_writes, .rules = FIELD_REQUIRED | FIELD_NO_CHECK),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    ENUMERATED("ReturnItemCollectionMetrics", return_metrics, return_metrics, .rules = 0),
};
static TABLE(batch_write_item, "BatchWriteItemInput");
#undef T

#define T hf_batch_write_item_result
static const struct field batch_write_item_result_list[] = {
    MAP("UnprocessedItems", unprocessed, table_writes, ALWAYS),
    MAP("ItemCollectionMetrics", metrics, table_metrics, .rules = 0),
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
};
static TABLE(batch_write_item_result, "BatchWriteItemOutput");
#undef T

#define T hf_condition_check
static const struct field condition_check_list[] = {
    ITEM("Key", key, REQUIRED),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("ConditionExpression", condition, REQUIRED),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(condition_check, "ConditionCheck");
#undef T

#define T hf_put_item
static const struct field transact_put_list[] = {
    ITEM("Item", item, REQUIRED),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("ConditionExpression", condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(transact_put, "Put");
#undef T

#define T hf_delete_item
static const struct field transact_delete_list[] = {
    ITEM("Key", key, REQUIRED),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("ConditionExpression", condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(transact_delete, "Delete");
#undef T

#define T hf_update_item
static const struct field transact_update_list[] = {
    ITEM("Key", key, REQUIRED),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("UpdateExpression", update, REQUIRED),
    STR("ConditionExpression", condition, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
    ITEM("ExpressionAttributeValues", values, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(transact_update, "Update");
#undef T

#define T hf_transact_write
static const struct field transact_write_list[] = {
    STRUCT("ConditionCheck", check, condition_check, .rules = 0),
    STRUCT("Put", put, transact_put, .rules = 0),
    STRUCT("Delete", del, transact_delete, .rules = 0),
    STRUCT("Update", update, transact_update, .rules = 0),
};
static TABLE(transact_write, "TransactWriteItem");
#undef T

#define T hf_transact_write_items
static const struct field transact_write_items_list[] = {
    STR("ClientRequestToken", token, LENGTH(1, 36)),
    STRUCTS("TransactItems", actions, transact_write, REQUIRED, LENGTH(1, 100)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    ENUMERATED("ReturnItemCollectionMetrics", return_metrics, return_metrics, .rules = 0),
};
static TABLE(transact_write_items, "TransactWriteItemsInput");
#undef T

#define T hf_transact_write_items_result
static const struct field transact_write_items_result_list[] = {
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
    MAP("ItemCollectionMetrics", metrics, table_metrics, .rules = 0),
};
static TABLE(transact_write_items_result, "TransactWriteItemsOutput");
#undef T

#define T hf_get_item
static const struct field transact_get_get_list[] = {
    ITEM("Key", key, REQUIRED),
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    STR("ProjectionExpression", projection, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
};
static TABLE(transact_get_get, "Get");
#undef T

#define T hf_transact_get
static const struct field transact_get_list[] = {
    STRUCT("Get", get, transact_get_get, REQUIRED),
};
static TABLE(transact_get, "TransactGetItem");
#undef T

#define T hf_transact_get_items
static const struct field transact_get_items_list[] = {
    STRUCTS("TransactItems", actions, transact_get, REQUIRED, LENGTH(1, 100)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
};
static TABLE(transact_get_items, "TransactGetItemsInput");
#undef T

#define T hf_item_response
static const struct field item_response_list[] = {
    ITEM("Item", item, .rules = 0),
};
static TABLE(item_response, "ItemResponse");
#undef T

#define T hf_transact_get_items_result
static const struct field transact_get_items_result_list[] = {
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCTS("Responses", items, item_response, ALWAYS),
};
static TABLE(transact_get_items_result, "TransactGetItemsOutput");
#undef T

/* ---- tables --------------------------------------------------------------------------------- */

#define T hf_create_table
static const struct field create_table_list[] = {
    STRUCTS("AttributeDefinitions", attributes, attribute_definition, REQUIRED),
    STR("TableName", table, .rules = FIELD_NO_CHECK, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("KeySchema", key_schema, key_element, REQUIRED, LENGTH(1, 2)),
    STRUCTS("GlobalSecondaryIndexes", global_indexes, global_index, .rules = 0),
    STRUCTS("LocalSecondaryIndexes", local_indexes, local_index, .rules = 0),
    ENUMERATED("BillingMode", billing, billing_modes, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, on_demand_throughput, .rules = 0),
    STRUCT("StreamSpecification", stream, stream_spec, .rules = 0),
    STRUCT("SSESpecification", sse, sse_spec, .rules = 0),
    STRUCTS("Tags", tags, tag, .rules = 0),
    ENUMERATED("TableClass", table_class, table_classes, .rules = 0),
    FLAG("DeletionProtectionEnabled", deletion_protection, .rules = 0),
    STR("ResourcePolicy", resource_policy, .rules = 0),
};
static TABLE(create_table, "CreateTableInput");
#undef T

#define T hf_create_table_result
static const struct field create_table_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, .rules = 0),
};
static TABLE(create_table_result, "CreateTableOutput");
#undef T

#define T hf_delete_table
static const struct field delete_table_list[] = {
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
};
static TABLE(delete_table, "DeleteTableInput");
#undef T

#define T hf_delete_table_result
static const struct field delete_table_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, .rules = 0),
};
static TABLE(delete_table_result, "DeleteTableOutput");
#undef T

#define T hf_describe_table
static const struct field describe_table_list[] = {
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
};
static TABLE(describe_table, "DescribeTableInput");
#undef T

#define T hf_describe_table_result
static const struct field describe_table_result_list[] = {
    STRUCT("Table", table, hf__table_description_fields, .rules = 0),
};
static TABLE(describe_table_result, "DescribeTableOutput");
#undef T

#define T hf_list_tables
static const struct field list_tables_list[] = {
    STR("ExclusiveStartTableName", start, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    INT("Limit", limit, RANGE(1, 100)),
};
static TABLE(list_tables, "ListTablesInput");
#undef T

#define T hf_list_tables_result
static const struct field list_tables_result_list[] = {
    STRS("TableNames", tables, ALWAYS),
    STR("LastEvaluatedTableName", last, .rules = 0),
};
static TABLE(list_tables_result, "ListTablesOutput");
#undef T

#define T hf_index_update
static const struct field index_update_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCT("ProvisionedThroughput", throughput, throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, on_demand_throughput, .rules = 0),
};
static TABLE(index_update, "UpdateGlobalSecondaryIndexAction");
#undef T

#define T hf_index_delete
static const struct field index_delete_list[] = {
    STR("IndexName", name, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
};
static TABLE(index_delete, "DeleteGlobalSecondaryIndexAction");
#undef T

#define T hf_index_change
static const struct field index_change_list[] = {
    STRUCT("Update", update, index_update, .rules = 0),
    STRUCT("Create", create, global_index, .rules = 0),
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
    STRUCTS("AttributeDefinitions", attributes, attribute_definition, .rules = 0),
    STR("TableName", table, .rules = FIELD_NO_CHECK, LENGTH(1, 1024),
        .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("BillingMode", billing, billing_modes, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, on_demand_throughput, .rules = 0),
    STRUCTS("GlobalSecondaryIndexUpdates", index_changes, index_change, .rules = 0),
    STRUCT("StreamSpecification", stream, stream_spec, .rules = 0),
    STRUCT("SSESpecification", sse, sse_spec, .rules = 0),
    STRUCTS("ReplicaUpdates", replicas, replica_update, LENGTH(1, 0)),
    ENUMERATED("TableClass", table_class, table_classes, .rules = 0),
    FLAG("DeletionProtectionEnabled", deletion_protection, .rules = 0),
};
static TABLE(update_table, "UpdateTableInput");
#undef T

#define T hf_update_table_result
static const struct field update_table_result_list[] = {
    STRUCT("TableDescription", table, hf__table_description_fields, .rules = 0),
};
static TABLE(update_table_result, "UpdateTableOutput");
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
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    STRUCT("TimeToLiveSpecification", spec, ttl_spec, REQUIRED),
};
static TABLE(update_time_to_live, "UpdateTimeToLiveInput");
#undef T

#define T hf_update_time_to_live_result
static const struct field update_time_to_live_result_list[] = {
    STRUCT("TimeToLiveSpecification", spec, ttl_spec, .rules = 0),
};
static TABLE(update_time_to_live_result, "UpdateTimeToLiveOutput");
#undef T

#define T hf_describe_time_to_live
static const struct field describe_time_to_live_list[] = {
    STR("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
};
static TABLE(describe_time_to_live, "DescribeTimeToLiveInput");
#undef T

#define T hf_ttl_description
static const struct field ttl_description_list[] = {
    ENUMERATED("TimeToLiveStatus", status, ttl_statuses, .rules = 0),
    STR("AttributeName", attribute, .rules = 0),
};
static TABLE(ttl_description, "TimeToLiveDescription");
#undef T

#define T hf_describe_time_to_live_result
static const struct field describe_time_to_live_result_list[] = {
    STRUCT("TimeToLiveDescription", description, ttl_description, .rules = 0),
};
static TABLE(describe_time_to_live_result, "DescribeTimeToLiveOutput");
#undef T

#define T hf_tag_resource
static const struct field tag_resource_list[] = {
    STR("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STRUCTS("Tags", tags, tag, REQUIRED),
};
static TABLE(tag_resource, "TagResourceInput");
#undef T

static const struct fields tag_resource_result = {"TagResourceOutput", NULL, 0,
                                                  sizeof(struct hf_tag_resource_result)};

#define T hf_untag_resource
static const struct field untag_resource_list[] = {
    STR("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STRS("TagKeys", keys, REQUIRED),
};
static TABLE(untag_resource, "UntagResourceInput");
#undef T

static const struct fields untag_resource_result = {"UntagResourceOutput", NULL, 0,
                                                    sizeof(struct hf_untag_resource_result)};

#define T hf_list_tags_of_resource
static const struct field list_tags_of_resource_list[] = {
    STR("ResourceArn", arn, REQUIRED, LENGTH(1, 1283)),
    STR("NextToken", next_token, .rules = 0),
};
static TABLE(list_tags_of_resource, "ListTagsOfResourceInput");
#undef T

#define T hf_list_tags_of_resource_result
static const struct field list_tags_of_resource_result_list[] = {
    STRUCTS("Tags", tags, tag, ALWAYS),
    STR("NextToken", next_token, .rules = 0),
};
static TABLE(list_tags_of_resource_result, "ListTagsOfResourceOutput");
#undef T

static const struct fields describe_limits = {"DescribeLimitsInput", NULL, 0,
                                              sizeof(struct hf_describe_limits)};

#define T hf_describe_limits_result
static const struct field describe_limits_result_list[] = {
    INT("AccountMaxReadCapacityUnits", account_max_read_units, LONG_ALWAYS),
    INT("AccountMaxWriteCapacityUnits", account_max_write_units, LONG_ALWAYS),
    INT("TableMaxReadCapacityUnits", table_max_read_units, LONG_ALWAYS),
    INT("TableMaxWriteCapacityUnits", table_max_write_units, LONG_ALWAYS),
};
static TABLE(describe_limits_result, "DescribeLimitsOutput");
#undef T

static const struct fields describe_endpoints = {"DescribeEndpointsRequest", NULL, 0,
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
static TABLE(describe_endpoints_result, "DescribeEndpointsResponse");
#undef T

/* ---- streams -------------------------------------------------------------------------------- */

#define T hf_list_streams
static const struct field list_streams_list[] = {
    STR("TableName", table, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    INT("Limit", limit, RANGE(1, 100)),
    STR("ExclusiveStartStreamArn", start_arn, LENGTH(37, 1024)),
};
static TABLE(list_streams, "ListStreamsInput");
#undef T

#define T hf_stream_name
static const struct field stream_name_list[] = {
    STR("StreamArn", arn, .rules = 0),
    STR("TableName", table, .rules = 0),
    STR("StreamLabel", label, .rules = 0),
};
static TABLE(stream_name, "Stream");
#undef T

#define T hf_list_streams_result
static const struct field list_streams_result_list[] = {
    STRUCTS("Streams", streams, stream_name, ALWAYS),
    STR("LastEvaluatedStreamArn", last_arn, .rules = 0),
};
static TABLE(list_streams_result, "ListStreamsOutput");
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
    STR("StreamArn", arn, REQUIRED, LENGTH(37, 1024)),
    INT("Limit", limit, RANGE(1, 100)),
    STR("ExclusiveStartShardId", start_shard, LENGTH(28, 65)),
    STRUCT("ShardFilter", filter, shard_filter, .rules = 0),
};
static TABLE(describe_stream, "DescribeStreamInput");
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
    STR("StreamArn", arn, .rules = 0),
    STR("StreamLabel", label, .rules = 0),
    ENUMERATED("StreamStatus", status, stream_statuses, .rules = 0),
    ENUMERATED("StreamViewType", view, stream_views, .rules = 0),
    TIME("CreationRequestDateTime", created_us, .rules = 0),
    STR("TableName", table, .rules = 0),
    STRUCTS("KeySchema", key_schema, key_element, .rules = 0),
    STRUCTS("Shards", shards, shard, ALWAYS),
    STR("LastEvaluatedShardId", last_shard, .rules = 0),
};
static TABLE(stream_description, "StreamDescription");
#undef T

#define T hf_describe_stream_result
static const struct field describe_stream_result_list[] = {
    STRUCT("StreamDescription", stream, stream_description, .rules = 0),
};
static TABLE(describe_stream_result, "DescribeStreamOutput");
#undef T

#define T hf_get_shard_iterator
static const struct field get_shard_iterator_list[] = {
    STR("StreamArn", arn, REQUIRED, LENGTH(37, 1024)),
    STR("ShardId", shard, REQUIRED, LENGTH(28, 65)),
    ENUMERATED("ShardIteratorType", type, iterator_types, REQUIRED),
    STR("SequenceNumber", sequence, LENGTH(21, 40)),
};
static TABLE(get_shard_iterator, "GetShardIteratorInput");
#undef T

#define T hf_get_shard_iterator_result
static const struct field get_shard_iterator_result_list[] = {
    STR("ShardIterator", iterator, .rules = 0),
};
static TABLE(get_shard_iterator_result, "GetShardIteratorOutput");
#undef T

#define T hf_get_records
static const struct field get_records_list[] = {
    STR("ShardIterator", iterator, REQUIRED, LENGTH(1, 2048)),
    INT("Limit", limit, RANGE(1, 1000)),
};
static TABLE(get_records, "GetRecordsInput");
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
    STRUCT("dynamodb", change, stream_change, .rules = 0),
    STRUCT("userIdentity", identity, stream_identity, .rules = 0),
};
static TABLE(record, "Record");
#undef T

#define T hf_get_records_result
static const struct field get_records_result_list[] = {
    STRUCTS("Records", records, record, ALWAYS),
    STR("NextShardIterator", next, .rules = 0),
};
static TABLE(get_records_result, "GetRecordsOutput");
#undef T

/* ---- operations ----------------------------------------------------------------------------- */

#define OP(name_, constant, struct_, service_, access_, repeat_)                                   \
    [HF_OP_##constant] = {.name = {#name_, sizeof(#name_) - 1},                                    \
                          .op = HF_OP_##constant,                                                  \
                          .service = OP_##service_,                                                \
                          .access = OP_##access_,                                                  \
                          .repeat = OP_REPEAT_##repeat_,                                           \
                          .request = &(struct_),                                                   \
                          .response = &struct_##_result},
static const struct op ops[] = {
#include "ops/ops.def"
};
#undef OP

_Static_assert(ARRAY_LEN(ops) == HF_OP_COUNT, "ops.def has a line for every operation");

const struct op *hf__op(enum hf_op op)
{
    assert(op >= 0 && op < HF_OP_COUNT);
    return &ops[op];
}

const struct op *hf__op_of_name(enum op_service service, struct hf_str name)
{
    for (size_t i = 0; i < ARRAY_LEN(ops); i++)
        if (ops[i].service == service && hf_str_equal(ops[i].name, name))
            return &ops[i];
    return NULL;
}

struct hf_str hf_op_name(enum hf_op op)
{
    return hf__op(op)->name;
}

int hf__enum_of_name(const struct field_enum *members, struct hf_str name)
{
    for (size_t i = 0; i < members->len; i++)
        if (hf_str_equal(hf_str_from(members->names[i]), name))
            return (int)i + 1;
    return 0;
}
