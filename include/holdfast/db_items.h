/*
 * Requests and results of operations on items: reads and writes of one item, queries and scans,
 * batches, transactions, statements. The functions are in db_ops.h; db.h includes both, and says
 * what holds for all requests.
 *
 * Members that are called legacy are DynamoDB's older parameters, before expressions.
 */
#ifndef HOLDFAST_DB_ITEMS_H
#define HOLDFAST_DB_ITEMS_H

#include <holdfast/base.h>
#include <holdfast/item.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- enums: 0 is "not given" ----------------------------------------------------------------- */

enum hf_return_values {
    HF_RETURN_NONE = 1,
    HF_RETURN_ALL_OLD,
    HF_RETURN_UPDATED_OLD,
    HF_RETURN_ALL_NEW,
    HF_RETURN_UPDATED_NEW
};
enum hf_return_on_failure { HF_ON_FAILURE_ALL_OLD = 1, HF_ON_FAILURE_NONE };
enum hf_return_capacity { HF_CAPACITY_INDEXES = 1, HF_CAPACITY_TOTAL, HF_CAPACITY_NONE };
enum hf_return_metrics { HF_METRICS_SIZE = 1, HF_METRICS_NONE };
enum hf_select {
    HF_SELECT_ALL_ATTRIBUTES = 1,
    HF_SELECT_ALL_PROJECTED_ATTRIBUTES,
    HF_SELECT_SPECIFIC_ATTRIBUTES,
    HF_SELECT_COUNT
};
enum hf_conditional_operator { HF_AND = 1, HF_OR };
enum hf_comparison {
    HF_EQ = 1,
    HF_NE,
    HF_IN,
    HF_LE,
    HF_LT,
    HF_GE,
    HF_GT,
    HF_BETWEEN,
    HF_NOT_NULL,
    HF_IS_NULL,
    HF_CONTAINS,
    HF_NOT_CONTAINS,
    HF_BEGINS_WITH
};
enum hf_update_action { HF_ACTION_ADD = 1, HF_ACTION_PUT, HF_ACTION_DELETE };

/* ---- parts of requests and results ----------------------------------------------------------- */

/* A legacy condition of Expected, and of KeyConditions, QueryFilter, ScanFilter. */
struct hf_expected {
    struct hf_str name;
    struct hf_value value;
    enum hf_flag exists;
    enum hf_comparison comparison;
    const struct hf_value *values;
    size_t values_len;
};

struct hf_condition {
    struct hf_str name;
    const struct hf_value *values;
    size_t values_len;
    enum hf_comparison comparison;
};

struct hf_attribute_update {
    struct hf_str name;
    struct hf_value value;
    enum hf_update_action action;
};

struct hf_capacity_part {
    struct hf_str name; /* of the index; absent for the table's part */
    double units;
    double read_units;
    double write_units;
    uint64_t reserved[4];
};

struct hf_capacity {
    struct hf_str table;
    double units;
    double read_units;  /* in transactions */
    double write_units; /* in transactions */
    const struct hf_capacity_part *table_part;
    const struct hf_capacity_part *local_indexes;
    size_t local_indexes_len;
    const struct hf_capacity_part *global_indexes;
    size_t global_indexes_len;
    uint64_t reserved[4];
};

struct hf_collection_metrics {
    struct hf_item key;
    const double *size_range_gb;
    size_t size_range_gb_len;
    uint64_t reserved[8];
};

struct hf_table_metrics {
    struct hf_str table;
    const struct hf_collection_metrics *metrics;
    size_t metrics_len;
    uint64_t reserved[8];
};

/* ---- items ---------------------------------------------------------------------------------- */

struct hf_put_item {
    struct hf_str table;
    struct hf_item item;
    struct hf_str condition;
    struct hf_item names;  /* "#n" -> S */
    struct hf_item values; /* ":v" -> any value */
    enum hf_return_values returns;
    enum hf_return_on_failure returns_on_failure;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    const struct hf_expected *expected; /* legacy */
    size_t expected_len;
    enum hf_conditional_operator conditional_operator; /* legacy */
    uint64_t reserved[4];
};

struct hf_put_item_result {
    struct hf_item attributes;
    const struct hf_capacity *capacity;
    const struct hf_collection_metrics *metrics;
    uint64_t reserved[4];
};

struct hf_get_item {
    struct hf_str table;
    struct hf_item key;
    struct hf_str projection;
    struct hf_item names;
    enum hf_flag consistent;
    enum hf_return_capacity return_capacity;
    const struct hf_str *attributes_to_get; /* legacy */
    size_t attributes_to_get_len;
    uint64_t reserved[4];
};

struct hf_get_item_result {
    struct hf_item item; /* absent when there is none */
    const struct hf_capacity *capacity;
    uint64_t reserved[4];
};

struct hf_update_item {
    struct hf_str table;
    struct hf_item key;
    struct hf_str update;
    struct hf_str condition;
    struct hf_item names;
    struct hf_item values;
    enum hf_return_values returns;
    enum hf_return_on_failure returns_on_failure;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    const struct hf_attribute_update *updates; /* legacy */
    size_t updates_len;
    const struct hf_expected *expected; /* legacy */
    size_t expected_len;
    enum hf_conditional_operator conditional_operator; /* legacy */
    uint64_t reserved[4];
};

struct hf_update_item_result {
    struct hf_item attributes;
    const struct hf_capacity *capacity;
    const struct hf_collection_metrics *metrics;
    uint64_t reserved[4];
};

struct hf_delete_item {
    struct hf_str table;
    struct hf_item key;
    struct hf_str condition;
    struct hf_item names;
    struct hf_item values;
    enum hf_return_values returns;
    enum hf_return_on_failure returns_on_failure;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    const struct hf_expected *expected; /* legacy */
    size_t expected_len;
    enum hf_conditional_operator conditional_operator; /* legacy */
    uint64_t reserved[4];
};

struct hf_delete_item_result {
    struct hf_item attributes;
    const struct hf_capacity *capacity;
    const struct hf_collection_metrics *metrics;
    uint64_t reserved[4];
};

struct hf_query {
    struct hf_str table;
    struct hf_str index;
    struct hf_str key_condition;
    struct hf_str filter;
    struct hf_str projection;
    struct hf_item names;
    struct hf_item values;
    enum hf_flag forward; /* HF_NO: from the largest sort key down */
    int64_t limit;        /* items to look at, before the filter */
    struct hf_item start; /* where the last page ended */
    enum hf_flag consistent;
    enum hf_select select;
    enum hf_return_capacity return_capacity;
    const struct hf_condition *key_conditions; /* legacy */
    size_t key_conditions_len;
    const struct hf_condition *query_filter; /* legacy */
    size_t query_filter_len;
    enum hf_conditional_operator conditional_operator; /* legacy */
    const struct hf_str *attributes_to_get;            /* legacy */
    size_t attributes_to_get_len;
    uint64_t reserved[4];
};

struct hf_query_result {
    const struct hf_item *items; /* NULL with HF_SELECT_COUNT */
    size_t items_len;
    int64_t count;
    int64_t scanned_count;
    struct hf_item last; /* hand it to the next call as `start`; absent at the end */
    const struct hf_capacity *capacity;
    uint64_t reserved[4];
};

struct hf_scan {
    struct hf_str table;
    struct hf_str index;
    struct hf_str filter;
    struct hf_str projection;
    struct hf_item names;
    struct hf_item values;
    int64_t limit;
    struct hf_item start;
    int64_t segment; /* from 0 on */
    int64_t total_segments;
    enum hf_flag consistent;
    enum hf_select select;
    enum hf_return_capacity return_capacity;
    const struct hf_condition *scan_filter; /* legacy */
    size_t scan_filter_len;
    enum hf_conditional_operator conditional_operator; /* legacy */
    const struct hf_str *attributes_to_get;            /* legacy */
    size_t attributes_to_get_len;
    uint64_t reserved[4];
};

struct hf_scan_result {
    const struct hf_item *items;
    size_t items_len;
    int64_t count;
    int64_t scanned_count;
    struct hf_item last;
    const struct hf_capacity *capacity;
    uint64_t reserved[4];
};

/* ---- batches and transactions --------------------------------------------------------------- */

struct hf_table_gets {
    struct hf_str table;
    const struct hf_item *keys;
    size_t keys_len;
    struct hf_str projection;
    struct hf_item names;
    enum hf_flag consistent;
    const struct hf_str *attributes_to_get; /* legacy */
    size_t attributes_to_get_len;
    uint64_t reserved[4];
};

struct hf_table_items {
    struct hf_str table;
    const struct hf_item *items;
    size_t items_len;
};

struct hf_batch_get_item {
    const struct hf_table_gets *tables;
    size_t tables_len;
    enum hf_return_capacity return_capacity;
    uint64_t reserved[4];
};

struct hf_batch_get_item_result {
    const struct hf_table_items *tables;
    size_t tables_len;
    const struct hf_table_gets *unprocessed;
    size_t unprocessed_len;
    const struct hf_capacity *capacity;
    size_t capacity_len;
    uint64_t reserved[4];
};

struct hf_put_request {
    struct hf_item item;
};

struct hf_delete_request {
    struct hf_item key;
};

struct hf_write_request {
    const struct hf_put_request *put; /* one of the two */
    const struct hf_delete_request *del;
};

struct hf_table_writes {
    struct hf_str table;
    const struct hf_write_request *writes;
    size_t writes_len;
};

struct hf_batch_write_item {
    const struct hf_table_writes *tables;
    size_t tables_len;
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    uint64_t reserved[4];
};

struct hf_batch_write_item_result {
    const struct hf_table_writes *unprocessed;
    size_t unprocessed_len;
    const struct hf_table_metrics *metrics;
    size_t metrics_len;
    const struct hf_capacity *capacity;
    size_t capacity_len;
    uint64_t reserved[4];
};

struct hf_condition_check {
    struct hf_str table;
    struct hf_item key;
    struct hf_str condition;
    struct hf_item names;
    struct hf_item values;
    enum hf_return_on_failure returns_on_failure;
    uint64_t reserved[4];
};

/* One action of a transaction: one of the four. Of the requests only what DynamoDB's transactions
 * know is used: table, key or item, update, condition, names, values, returns_on_failure. */
struct hf_transact_write {
    const struct hf_condition_check *check;
    const struct hf_put_item *put;
    const struct hf_delete_item *del;
    const struct hf_update_item *update;
    uint64_t reserved[4];
};

struct hf_transact_write_items {
    const struct hf_transact_write *actions;
    size_t actions_len;
    struct hf_str token; /* the same token and request within ten minutes happen once */
    enum hf_return_capacity return_capacity;
    enum hf_return_metrics return_metrics;
    uint64_t reserved[4];
};

struct hf_transact_write_items_result {
    const struct hf_capacity *capacity;
    size_t capacity_len;
    const struct hf_table_metrics *metrics;
    size_t metrics_len;
    uint64_t reserved[4];
};

struct hf_transact_get {
    const struct hf_get_item *get; /* table, key, projection and names of it */
};

struct hf_transact_get_items {
    const struct hf_transact_get *actions;
    size_t actions_len;
    enum hf_return_capacity return_capacity;
    uint64_t reserved[4];
};

struct hf_item_response {
    struct hf_item item;
};

struct hf_transact_get_items_result {
    const struct hf_item_response *items; /* in the order of the actions */
    size_t items_len;
    const struct hf_capacity *capacity;
    size_t capacity_len;
    uint64_t reserved[4];
};

/* ---- statements ----------------------------------------------------------------------------- */

/* A statement of PartiQL; `parameters` are the values of its question marks, in their order. */
struct hf_execute_statement {
    struct hf_str statement;
    const struct hf_value *parameters;
    size_t parameters_len;
    enum hf_flag consistent;
    struct hf_str next_token; /* of the page before, with the same statement and parameters */
    enum hf_return_capacity return_capacity;
    int64_t limit; /* items to look at, before the WHERE clause */
    enum hf_return_on_failure returns_on_failure;
    uint64_t reserved[4];
};

struct hf_execute_statement_result {
    const struct hf_item *items; /* of a SELECT, or of a RETURNING clause */
    size_t items_len;
    struct hf_str next_token; /* hand it to the next call; absent at the end */
    const struct hf_capacity *capacity;
    struct hf_item last;
    uint64_t reserved[4];
};

struct hf_batch_statement {
    struct hf_str statement;
    const struct hf_value *parameters;
    size_t parameters_len;
    enum hf_flag consistent;
    enum hf_return_on_failure returns_on_failure;
    uint64_t reserved[4];
};

struct hf_batch_execute_statement {
    const struct hf_batch_statement *statements; /* reads or writes, each of one item */
    size_t statements_len;
    enum hf_return_capacity return_capacity;
    uint64_t reserved[4];
};

struct hf_statement_error {
    struct hf_str code; /* such as "ConditionalCheckFailed" */
    struct hf_str message;
    struct hf_item item;
    uint64_t reserved[4];
};

struct hf_batch_statement_response {
    const struct hf_statement_error *error; /* NULL: it was done */
    struct hf_str table;
    struct hf_item item;
    uint64_t reserved[4];
};

struct hf_batch_execute_statement_result {
    const struct hf_batch_statement_response *responses; /* in the order of the statements */
    size_t responses_len;
    const struct hf_capacity *capacity;
    size_t capacity_len;
    uint64_t reserved[4];
};

struct hf_transact_statement {
    struct hf_str statement;
    const struct hf_value *parameters;
    size_t parameters_len;
    enum hf_return_on_failure returns_on_failure;
    uint64_t reserved[4];
};

struct hf_execute_transaction {
    const struct hf_transact_statement *statements; /* reads or writes, each of one item */
    size_t statements_len;
    struct hf_str token; /* the same token and request within ten minutes happen once */
    enum hf_return_capacity return_capacity;
    uint64_t reserved[4];
};

struct hf_execute_transaction_result {
    const struct hf_item_response *items; /* of reads, in the order of the statements */
    size_t items_len;
    const struct hf_capacity *capacity;
    size_t capacity_len;
    uint64_t reserved[4];
};

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
