/*
 * ops/fields_items.c: the fields of operations on items: single ones, pages, batches, transactions.
 *
 * Lengths and ranges are those of DynamoDB's model; members stand in the order in which the service
 * reports them. FIELD_NO_CHECK marks members whose absence or size the service reports in a
 * sentence of its own rather than as a constraint; prepare_*.c has those.
 */
#include "ops/table.h"

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

/* ---- parts ---------------------------------------------------------------------------------- */

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
    DOUBLE("CapacityUnits", units, ALWAYS),
    DOUBLE("ReadCapacityUnits", read_units, .rules = 0),
    DOUBLE("WriteCapacityUnits", write_units, .rules = 0),
};
static TABLE(capacity_part, "Capacity");
#undef T

#define T hf_capacity
static const struct field capacity_list[] = {
    TABLE_NAME("TableName", table, .rules = 0),
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
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(put_item, "PutItemInput");
#undef T

#define T hf_put_item_result
static const struct field put_item_result_list[] = {
    ITEM("Attributes", attributes, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCT("ItemCollectionMetrics", metrics, collection_metrics, .rules = 0),
};
OP_TABLE(put_item_result, "PutItemOutput");
#undef T

#define T hf_get_item
static const struct field get_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    STRS("AttributesToGet", attributes_to_get, LENGTH(1, 0), ELEMENTS(0, 65535)),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
    ITEM("Key", key, REQUIRED),
    FLAG("ConsistentRead", consistent, .rules = 0),
    STR("ProjectionExpression", projection, .rules = 0),
    NAMES("ExpressionAttributeNames", names, .rules = 0),
};
OP_TABLE(get_item, "GetItemInput");
#undef T

#define T hf_get_item_result
static const struct field get_item_result_list[] = {
    ITEM("Item", item, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(get_item_result, "GetItemOutput");
#undef T

#define T hf_update_item
static const struct field update_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(update_item, "UpdateItemInput");
#undef T

#define T hf_update_item_result
static const struct field update_item_result_list[] = {
    ITEM("Attributes", attributes, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCT("ItemCollectionMetrics", metrics, collection_metrics, .rules = 0),
};
OP_TABLE(update_item_result, "UpdateItemOutput");
#undef T

#define T hf_delete_item
static const struct field delete_item_list[] = {
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(delete_item, "DeleteItemInput");
#undef T

#define T hf_delete_item_result
static const struct field delete_item_result_list[] = {
    ITEM("Attributes", attributes, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    STRUCT("ItemCollectionMetrics", metrics, collection_metrics, .rules = 0),
};
OP_TABLE(delete_item_result, "DeleteItemOutput");
#undef T

#define T hf_query
static const struct field query_list[] = {
    ENUMERATED("Select", select, selects, .rules = 0),
    STR("IndexName", index, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    MAP("QueryFilter", query_filter, condition, .rules = 0),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(query, "QueryInput");
#undef T

#define T hf_query_result
static const struct field query_result_list[] = {
    ITEMS("Items", items, .rules = 0),
    INT("Count", count, ALWAYS),
    INT("ScannedCount", scanned_count, ALWAYS),
    ITEM("LastEvaluatedKey", last, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(query_result, "QueryOutput");
#undef T

#define T hf_scan
static const struct field scan_list[] = {
    ENUMERATED("Select", select, selects, .rules = 0),
    STR("IndexName", index, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    INT("TotalSegments", total_segments, RANGE(1, 1000000)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(scan, "ScanInput");
#undef T

#define T hf_scan_result
static const struct field scan_result_list[] = {
    ITEMS("Items", items, .rules = 0),
    INT("Count", count, ALWAYS),
    INT("ScannedCount", scanned_count, ALWAYS),
    ITEM("LastEvaluatedKey", last, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(scan_result, "ScanOutput");
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
    MAP("RequestItems", tables, table_gets, .holds = HOLDS_TABLE,
        .rules = FIELD_REQUIRED | FIELD_NO_CHECK),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
};
OP_TABLE(batch_get_item, "BatchGetItemInput");
#undef T

#define T hf_batch_get_item_result
static const struct field batch_get_item_result_list[] = {
    MAP("Responses", tables, table_items, .holds = HOLDS_TABLE, ALWAYS),
    MAP("UnprocessedKeys", unprocessed, table_gets, .holds = HOLDS_TABLE, ALWAYS),
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(batch_get_item_result, "BatchGetItemOutput");
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
    MAP("RequestItems", tables, table_writes, .holds = HOLDS_TABLE,
        .rules = FIELD_REQUIRED | FIELD_NO_CHECK),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    ENUMERATED("ReturnItemCollectionMetrics", return_metrics, return_metrics, .rules = 0),
};
OP_TABLE(batch_write_item, "BatchWriteItemInput");
#undef T

#define T hf_batch_write_item_result
static const struct field batch_write_item_result_list[] = {
    MAP("UnprocessedItems", unprocessed, table_writes, .holds = HOLDS_TABLE, ALWAYS),
    MAP("ItemCollectionMetrics", metrics, table_metrics, .holds = HOLDS_TABLE, .rules = 0),
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(batch_write_item_result, "BatchWriteItemOutput");
#undef T

#define T hf_condition_check
static const struct field condition_check_list[] = {
    ITEM("Key", key, REQUIRED),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(transact_write_items, "TransactWriteItemsInput");
#undef T

#define T hf_transact_write_items_result
static const struct field transact_write_items_result_list[] = {
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
    MAP("ItemCollectionMetrics", metrics, table_metrics, .holds = HOLDS_TABLE, .rules = 0),
};
OP_TABLE(transact_write_items_result, "TransactWriteItemsOutput");
#undef T

#define T hf_get_item
static const struct field transact_get_get_list[] = {
    ITEM("Key", key, REQUIRED),
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(1, 1024), .pattern = PATTERN_TABLE_NAME),
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
OP_TABLE(transact_get_items, "TransactGetItemsInput");
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
OP_TABLE(transact_get_items_result, "TransactGetItemsOutput");
#undef T

/* ---- statements ----------------------------------------------------------------------------- */

#define T hf_execute_statement
static const struct field execute_statement_list[] = {
    STATEMENT("Statement", statement, REQUIRED, LENGTH(1, 8192)),
    VALUES("Parameters", parameters, LENGTH(1, 0)),
    FLAG("ConsistentRead", consistent, .rules = 0),
    STR("NextToken", next_token, LENGTH(1, 32768)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
    INT("Limit", limit, RANGE(1, 0)),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
OP_TABLE(execute_statement, "ExecuteStatementInput");
#undef T

#define T hf_execute_statement_result
static const struct field execute_statement_result_list[] = {
    ITEMS("Items", items, ALWAYS),
    STR("NextToken", next_token, .rules = 0),
    STRUCT("ConsumedCapacity", capacity, capacity, .rules = 0),
    ITEM("LastEvaluatedKey", last, .rules = 0),
};
OP_TABLE(execute_statement_result, "ExecuteStatementOutput");
#undef T

#define T hf_batch_statement
static const struct field batch_statement_list[] = {
    STATEMENT("Statement", statement, REQUIRED, LENGTH(1, 8192)),
    VALUES("Parameters", parameters, LENGTH(1, 0)),
    FLAG("ConsistentRead", consistent, .rules = 0),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(batch_statement, "BatchStatementRequest");
#undef T

#define T hf_batch_execute_statement
static const struct field batch_execute_statement_list[] = {
    STRUCTS("Statements", statements, batch_statement, REQUIRED, LENGTH(1, 25)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
};
OP_TABLE(batch_execute_statement, "BatchExecuteStatementInput");
#undef T

#define T hf_statement_error
static const struct field statement_error_list[] = {
    STR("Code", code, .rules = 0),
    STR("Message", message, .rules = 0),
    ITEM("Item", item, .rules = 0),
};
static TABLE(statement_error, "BatchStatementError");
#undef T

#define T hf_batch_statement_response
static const struct field batch_statement_response_list[] = {
    STRUCT("Error", error, statement_error, .rules = 0),
    TABLE_NAME("TableName", table, .rules = 0),
    ITEM("Item", item, .rules = 0),
};
static TABLE(batch_statement_response, "BatchStatementResponse");
#undef T

#define T hf_batch_execute_statement_result
static const struct field batch_execute_statement_result_list[] = {
    STRUCTS("Responses", responses, batch_statement_response, ALWAYS),
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(batch_execute_statement_result, "BatchExecuteStatementOutput");
#undef T

#define T hf_transact_statement
static const struct field transact_statement_list[] = {
    STATEMENT("Statement", statement, REQUIRED, LENGTH(1, 8192)),
    VALUES("Parameters", parameters, LENGTH(1, 0)),
    ENUMERATED("ReturnValuesOnConditionCheckFailure", returns_on_failure, return_on_failure,
               .rules = 0),
};
static TABLE(transact_statement, "ParameterizedStatement");
#undef T

#define T hf_execute_transaction
static const struct field execute_transaction_list[] = {
    STRUCTS("TransactStatements", statements, transact_statement, REQUIRED, LENGTH(1, 100)),
    STR("ClientRequestToken", token, LENGTH(1, 36)),
    ENUMERATED("ReturnConsumedCapacity", return_capacity, return_capacity, .rules = 0),
};
OP_TABLE(execute_transaction, "ExecuteTransactionInput");
#undef T

#define T hf_execute_transaction_result
static const struct field execute_transaction_result_list[] = {
    STRUCTS("Responses", items, item_response, ALWAYS),
    STRUCTS("ConsumedCapacity", capacity, capacity, .rules = 0),
};
OP_TABLE(execute_transaction_result, "ExecuteTransactionOutput");
#undef T
