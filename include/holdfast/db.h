/*
 * Databases and their operations.
 *
 * A database is opened by URL and used through one call, hf_db_call(): an operation, its request,
 * its response. The functions of db_ops.h are that call with types, one for each operation, and say
 * what it does and how it can fail. Requests and responses are DynamoDB's, under our names: a
 * member that is left out is zero, which is absent for a string, a list or an item, and "not given"
 * for a number, a flag or an enum (HF_ZERO and HF_NO say zero and no where that differs).
 *
 *     struct hf_get_item_result got;
 *     if (hf_get_item(s, db, &(struct hf_get_item){.table = HF_STR("users"),
 *                                                  .key = HF_ITEM(s, HF_S("id", id))}, &got))
 *         return complain(hf_scope_error_text(s));
 *     if (got.item.ptr)
 *         use(got.item);
 *
 * Results live in the scope. A result may be NULL when it does not matter; it is zeroed when the
 * call fails. A NULL database or request is HF_INVALID.
 *
 * A request struct and its function have the same name, so C++ has to say `struct hf_get_item` as C
 * does. Members that are called legacy are DynamoDB's older parameters, before expressions.
 * Times that end in _us are microseconds since 1970.
 */
#ifndef HOLDFAST_DB_H
#define HOLDFAST_DB_H

#include <holdfast/base.h>
#include <holdfast/db_ops.h>
#include <holdfast/env.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_db; /* any thread may use it */

/* ---- enums: 0 is "not given" ---------------------------------------------------------------- */

enum hf_key_type { HF_KEY_HASH = 1, HF_KEY_RANGE };
enum hf_scalar_type { HF_SCALAR_S = 1, HF_SCALAR_N, HF_SCALAR_B };
enum hf_projection_type { HF_PROJECT_ALL = 1, HF_PROJECT_KEYS_ONLY, HF_PROJECT_INCLUDE };
enum hf_billing { HF_BILLING_PROVISIONED = 1, HF_BILLING_PAY_PER_REQUEST };
enum hf_table_class { HF_TABLE_STANDARD = 1, HF_TABLE_INFREQUENT_ACCESS };
enum hf_table_status {
    HF_TABLE_CREATING = 1,
    HF_TABLE_UPDATING,
    HF_TABLE_DELETING,
    HF_TABLE_ACTIVE
};
enum hf_stream_view {
    HF_VIEW_NEW_IMAGE = 1,
    HF_VIEW_OLD_IMAGE,
    HF_VIEW_NEW_AND_OLD_IMAGES,
    HF_VIEW_KEYS_ONLY
};
enum hf_stream_status {
    HF_STREAM_ENABLING = 1,
    HF_STREAM_ENABLED,
    HF_STREAM_DISABLING,
    HF_STREAM_DISABLED
};
enum hf_ttl_status { HF_TTL_ENABLING = 1, HF_TTL_DISABLING, HF_TTL_ENABLED, HF_TTL_DISABLED };
enum hf_sse_type { HF_SSE_AES256 = 1, HF_SSE_KMS };
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
enum hf_iterator_type {
    HF_ITERATOR_TRIM_HORIZON = 1,
    HF_ITERATOR_LATEST,
    HF_ITERATOR_AT_SEQUENCE_NUMBER,
    HF_ITERATOR_AFTER_SEQUENCE_NUMBER
};
enum hf_change_kind { HF_CHANGE_INSERT = 1, HF_CHANGE_MODIFY, HF_CHANGE_REMOVE };
enum hf_shard_filter_type { HF_SHARD_FILTER_CHILD_SHARDS = 1 };
enum hf_switch { HF_SWITCH_ENABLED = 1, HF_SWITCH_DISABLED };
enum hf_backup_status { HF_BACKUP_CREATING = 1, HF_BACKUP_DELETED, HF_BACKUP_AVAILABLE };
enum hf_backup_type {
    HF_BACKUP_USER = 1,
    HF_BACKUP_SYSTEM,
    HF_BACKUP_AWS_BACKUP,
    HF_BACKUP_ALL /* as a filter */
};
enum hf_insights_action { HF_INSIGHTS_ENABLE = 1, HF_INSIGHTS_DISABLE };
enum hf_insights_mode { HF_INSIGHTS_ACCESSED_AND_THROTTLED = 1, HF_INSIGHTS_THROTTLED };
enum hf_insights_status {
    HF_INSIGHTS_ENABLING = 1,
    HF_INSIGHTS_ENABLED,
    HF_INSIGHTS_DISABLING,
    HF_INSIGHTS_DISABLED,
    HF_INSIGHTS_FAILED
};

/* ---- parts of requests and responses -------------------------------------------------------- */

struct hf_attribute_definition {
    struct hf_str name;
    enum hf_scalar_type type;
};

struct hf_key_element {
    struct hf_str name;
    enum hf_key_type type;
};

struct hf_throughput {
    int64_t read_units;
    int64_t write_units;
};

struct hf_on_demand_throughput {
    int64_t max_read_units;
    int64_t max_write_units;
};

/* The throughput that a table supports at once. It is stored and described, and never decreases. */
struct hf_warm_throughput {
    int64_t read_units; /* per second */
    int64_t write_units;
};

struct hf_projection {
    enum hf_projection_type type;
    const struct hf_str *attributes; /* with HF_PROJECT_INCLUDE */
    size_t attributes_len;
};

/* A local or global secondary index to create. */
struct hf_index {
    struct hf_str name;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_projection *projection;
    const struct hf_throughput *throughput;                     /* global only */
    const struct hf_on_demand_throughput *on_demand_throughput; /* global only */
    const struct hf_warm_throughput *warm_throughput;           /* global only */
    uint64_t reserved[4];
};

struct hf_stream_spec {
    enum hf_flag enabled;
    enum hf_stream_view view;
};

struct hf_sse_spec {
    enum hf_flag enabled;
    enum hf_sse_type type;
    struct hf_str kms_key_id;
    uint64_t reserved[4];
};

struct hf_tag {
    struct hf_str key;
    struct hf_str value;
};

struct hf_throughput_description {
    int64_t last_increase_us;
    int64_t last_decrease_us;
    int64_t decreases_today;
    int64_t read_units;
    int64_t write_units;
    uint64_t reserved[4];
};

struct hf_warm_throughput_description {
    int64_t read_units; /* per second */
    int64_t write_units;
    enum hf_table_status status;
    uint64_t reserved[4];
};

struct hf_billing_summary {
    enum hf_billing billing;
    int64_t last_to_pay_per_request_us;
    uint64_t reserved[4];
};

struct hf_table_class_summary {
    enum hf_table_class table_class;
    int64_t last_update_us;
    uint64_t reserved[4];
};

struct hf_sse_description {
    struct hf_str status;
    enum hf_sse_type type;
    struct hf_str kms_key_arn;
    uint64_t reserved[4];
};

struct hf_index_description {
    struct hf_str name;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_projection *projection;
    enum hf_table_status status; /* global only */
    enum hf_flag backfilling;    /* global only, while it is being made */
    const struct hf_throughput_description *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    int64_t size_bytes;
    int64_t item_count;
    struct hf_str arn;
    const struct hf_warm_throughput_description *warm_throughput; /* global only */
    uint64_t reserved[4];
};

/* Of a table that is being restored. */
struct hf_restore_summary {
    struct hf_str backup_arn;
    struct hf_str table_arn;
    int64_t restored_us;
    enum hf_flag in_progress;
    uint64_t reserved[4];
};

struct hf_table_description {
    struct hf_str name;
    enum hf_table_status status;
    int64_t created_us; /* since 1970 */
    const struct hf_attribute_definition *attributes;
    size_t attributes_len;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_throughput_description *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    int64_t size_bytes;
    int64_t item_count;
    struct hf_str arn;
    struct hf_str id;
    const struct hf_billing_summary *billing;
    const struct hf_index_description *local_indexes;
    size_t local_indexes_len;
    const struct hf_index_description *global_indexes;
    size_t global_indexes_len;
    const struct hf_stream_spec *stream;
    struct hf_str stream_label;
    struct hf_str stream_arn;
    const struct hf_sse_description *sse;
    const struct hf_table_class_summary *table_class;
    enum hf_flag deletion_protection;
    const struct hf_restore_summary *restore; /* only while it is being restored */
    const struct hf_warm_throughput_description *warm_throughput;
    uint64_t reserved[4];
};

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

/* ---- tables --------------------------------------------------------------------------------- */

/*
 * As with DynamoDB, the default of `billing` is HF_BILLING_PROVISIONED, which needs a `throughput`.
 * hf_table_ensure() (table.h) takes the same struct, makes HF_BILLING_PAY_PER_REQUEST the default,
 * waits until the table can be used, and accepts an existing table.
 */
struct hf_create_table {
    struct hf_str table;
    const struct hf_attribute_definition *attributes;
    size_t attributes_len;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_index *local_indexes;
    size_t local_indexes_len;
    const struct hf_index *global_indexes;
    size_t global_indexes_len;
    enum hf_billing billing;
    const struct hf_throughput *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    const struct hf_stream_spec *stream;
    const struct hf_sse_spec *sse;
    const struct hf_tag *tags;
    size_t tags_len;
    enum hf_table_class table_class;
    enum hf_flag deletion_protection;
    struct hf_str resource_policy;
    const struct hf_warm_throughput *warm_throughput;
    uint64_t reserved[4];
};

struct hf_create_table_result {
    const struct hf_table_description *table;
    uint64_t reserved[4];
};

struct hf_delete_table {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_delete_table_result {
    const struct hf_table_description *table;
    uint64_t reserved[4];
};

struct hf_describe_table {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_describe_table_result {
    const struct hf_table_description *table;
    uint64_t reserved[4];
};

struct hf_list_tables {
    struct hf_str start;
    int64_t limit;
    uint64_t reserved[4];
};

struct hf_list_tables_result {
    const struct hf_str *tables;
    size_t tables_len;
    struct hf_str last;
    uint64_t reserved[4];
};

struct hf_index_update {
    struct hf_str name;
    const struct hf_throughput *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    const struct hf_warm_throughput *warm_throughput;
    uint64_t reserved[4];
};

struct hf_index_delete {
    struct hf_str name;
};

/* One change of the global indexes: one of the three. */
struct hf_index_change {
    const struct hf_index *create;
    const struct hf_index_update *update;
    const struct hf_index_delete *del;
    uint64_t reserved[4];
};

struct hf_replica_update {
    struct hf_str region;
    uint64_t reserved[4];
};

struct hf_update_table {
    struct hf_str table;
    const struct hf_attribute_definition *attributes;
    size_t attributes_len;
    enum hf_billing billing;
    const struct hf_throughput *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    const struct hf_index_change *index_changes;
    size_t index_changes_len;
    const struct hf_stream_spec *stream;
    const struct hf_sse_spec *sse;
    const struct hf_replica_update *replicas; /* refused: one machine has none */
    size_t replicas_len;
    enum hf_table_class table_class;
    enum hf_flag deletion_protection;
    const struct hf_warm_throughput *warm_throughput;
    uint64_t reserved[4];
};

struct hf_update_table_result {
    const struct hf_table_description *table;
    uint64_t reserved[4];
};

struct hf_ttl_spec {
    enum hf_flag enabled;
    struct hf_str attribute;
};

struct hf_update_time_to_live {
    struct hf_str table;
    const struct hf_ttl_spec *spec;
    uint64_t reserved[4];
};

struct hf_update_time_to_live_result {
    const struct hf_ttl_spec *spec;
    uint64_t reserved[4];
};

struct hf_describe_time_to_live {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_ttl_description {
    enum hf_ttl_status status;
    struct hf_str attribute;
    uint64_t reserved[4];
};

struct hf_describe_time_to_live_result {
    const struct hf_ttl_description *description;
    uint64_t reserved[4];
};

struct hf_tag_resource {
    struct hf_str arn;
    const struct hf_tag *tags;
    size_t tags_len;
    uint64_t reserved[4];
};

struct hf_tag_resource_result {
    char nothing;
    uint64_t reserved[4];
};

struct hf_untag_resource {
    struct hf_str arn;
    const struct hf_str *keys;
    size_t keys_len;
    uint64_t reserved[4];
};

struct hf_untag_resource_result {
    char nothing;
    uint64_t reserved[4];
};

struct hf_list_tags_of_resource {
    struct hf_str arn;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_list_tags_of_resource_result {
    const struct hf_tag *tags;
    size_t tags_len;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_describe_limits {
    char nothing;
    uint64_t reserved[4];
};

struct hf_describe_limits_result {
    int64_t account_max_read_units;
    int64_t account_max_write_units;
    int64_t table_max_read_units;
    int64_t table_max_write_units;
    uint64_t reserved[4];
};

struct hf_describe_endpoints {
    char nothing;
    uint64_t reserved[4];
};

struct hf_endpoint {
    struct hf_str address;
    int64_t cache_minutes;
    uint64_t reserved[4];
};

struct hf_describe_endpoints_result {
    const struct hf_endpoint *endpoints;
    size_t endpoints_len;
    uint64_t reserved[4];
};

/* ---- streams -------------------------------------------------------------------------------- */

struct hf_list_streams {
    struct hf_str table; /* absent: of all tables */
    int64_t limit;
    struct hf_str start_arn;
    uint64_t reserved[4];
};

struct hf_stream_name {
    struct hf_str arn;
    struct hf_str table;
    struct hf_str label;
    uint64_t reserved[4];
};

struct hf_list_streams_result {
    const struct hf_stream_name *streams;
    size_t streams_len;
    struct hf_str last_arn;
    uint64_t reserved[4];
};

struct hf_shard_filter {
    enum hf_shard_filter_type type;
    struct hf_str shard;
    uint64_t reserved[4];
};

struct hf_describe_stream {
    struct hf_str arn;
    int64_t limit;
    struct hf_str start_shard;
    const struct hf_shard_filter *filter;
    uint64_t reserved[4];
};

struct hf_sequence_range {
    struct hf_str first;
    struct hf_str last; /* only of a closed shard */
};

struct hf_shard {
    struct hf_str id;
    const struct hf_sequence_range *range;
    struct hf_str parent;
    uint64_t reserved[4];
};

struct hf_stream_description {
    struct hf_str arn;
    struct hf_str label;
    enum hf_stream_status status;
    enum hf_stream_view view;
    int64_t created_us;
    struct hf_str table;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_shard *shards;
    size_t shards_len;
    struct hf_str last_shard;
    uint64_t reserved[4];
};

struct hf_describe_stream_result {
    const struct hf_stream_description *stream;
    uint64_t reserved[4];
};

struct hf_get_shard_iterator {
    struct hf_str arn;
    struct hf_str shard;
    enum hf_iterator_type type;
    struct hf_str sequence;
    uint64_t reserved[4];
};

struct hf_get_shard_iterator_result {
    struct hf_str iterator;
    uint64_t reserved[4];
};

struct hf_get_records {
    struct hf_str iterator;
    int64_t limit;
    uint64_t reserved[4];
};

struct hf_stream_change {
    int64_t created_us;
    struct hf_item keys;
    struct hf_item new_image;
    struct hf_item old_image;
    struct hf_str sequence;
    int64_t size_bytes;
    enum hf_stream_view view;
    uint64_t reserved[4];
};

struct hf_stream_identity {
    struct hf_str principal;
    struct hf_str type;
};

struct hf_record {
    struct hf_str id;
    enum hf_change_kind event;
    struct hf_str version;
    struct hf_str source;
    struct hf_str region;
    const struct hf_stream_change *change;
    const struct hf_stream_identity *identity; /* of the service, for what TTL removed */
    uint64_t reserved[4];
};

struct hf_get_records_result {
    const struct hf_record *records;
    size_t records_len;
    struct hf_str next; /* absent when a closed shard is read to its end */
    uint64_t reserved[4];
};

/* ---- backups -------------------------------------------------------------------------------- */

struct hf_point_in_time_description {
    enum hf_switch status;
    int64_t earliest_us;
    int64_t latest_us;
    int64_t recovery_days;
    uint64_t reserved[4];
};

struct hf_continuous_backups_description {
    enum hf_switch status;
    const struct hf_point_in_time_description *point_in_time;
    uint64_t reserved[4];
};

struct hf_describe_continuous_backups {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_describe_continuous_backups_result {
    const struct hf_continuous_backups_description *description;
    uint64_t reserved[4];
};

struct hf_point_in_time_spec {
    enum hf_flag enabled;
    int64_t recovery_days;
    uint64_t reserved[4];
};

struct hf_update_continuous_backups {
    struct hf_str table;
    const struct hf_point_in_time_spec *spec; /* enabling is refused */
    uint64_t reserved[4];
};

struct hf_update_continuous_backups_result {
    const struct hf_continuous_backups_description *description;
    uint64_t reserved[4];
};

struct hf_backup_details {
    struct hf_str arn;
    struct hf_str name;
    int64_t size_bytes;
    enum hf_backup_status status;
    enum hf_backup_type type;
    int64_t created_us; /* the state that it holds is of this moment */
    int64_t expires_us;
    uint64_t reserved[4];
};

/* The table that was backed up, as it was. */
struct hf_source_table {
    struct hf_str name;
    struct hf_str id;
    struct hf_str arn;
    int64_t size_bytes;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    int64_t created_us;
    const struct hf_throughput *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    int64_t item_count;
    enum hf_billing billing;
    uint64_t reserved[4];
};

struct hf_source_index {
    struct hf_str name;
    const struct hf_key_element *key_schema;
    size_t key_schema_len;
    const struct hf_projection *projection;
    const struct hf_throughput *throughput; /* global only */
    const struct hf_on_demand_throughput *on_demand_throughput;
    uint64_t reserved[4];
};

struct hf_source_features {
    const struct hf_source_index *local_indexes;
    size_t local_indexes_len;
    const struct hf_source_index *global_indexes;
    size_t global_indexes_len;
    const struct hf_stream_spec *stream;
    const struct hf_ttl_description *ttl;
    const struct hf_sse_description *sse;
    uint64_t reserved[4];
};

struct hf_backup_description {
    const struct hf_backup_details *details;
    const struct hf_source_table *table;
    const struct hf_source_features *features;
    uint64_t reserved[4];
};

struct hf_create_backup {
    struct hf_str table;
    struct hf_str name; /* need not be unique */
    uint64_t reserved[4];
};

struct hf_create_backup_result {
    const struct hf_backup_details *details;
    uint64_t reserved[4];
};

struct hf_describe_backup {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_describe_backup_result {
    const struct hf_backup_description *backup;
    uint64_t reserved[4];
};

struct hf_delete_backup {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_delete_backup_result {
    const struct hf_backup_description *backup;
    uint64_t reserved[4];
};

struct hf_list_backups {
    struct hf_str table;
    int64_t limit;
    int64_t from_us;  /* made at this time or later */
    int64_t until_us; /* made before this time */
    struct hf_str start_arn;
    enum hf_backup_type type; /* default HF_BACKUP_USER */
    uint64_t reserved[4];
};

struct hf_backup_summary {
    struct hf_str table;
    struct hf_str table_id;
    struct hf_str table_arn;
    struct hf_str arn;
    struct hf_str name;
    int64_t created_us;
    int64_t expires_us;
    enum hf_backup_status status;
    enum hf_backup_type type;
    int64_t size_bytes;
    uint64_t reserved[4];
};

struct hf_list_backups_result {
    const struct hf_backup_summary *backups; /* the oldest first */
    size_t backups_len;
    struct hf_str last_arn;
    uint64_t reserved[4];
};

/* Overrides that are left out keep what the table had; an empty list of indexes is none. */
struct hf_restore_table_from_backup {
    struct hf_str table;
    struct hf_str backup_arn;
    enum hf_billing billing;
    const struct hf_index *global_indexes; /* of those that it had, perhaps under new names */
    size_t global_indexes_len;
    const struct hf_index *local_indexes;
    size_t local_indexes_len;
    const struct hf_throughput *throughput;
    const struct hf_on_demand_throughput *on_demand_throughput;
    const struct hf_sse_spec *sse;
    uint64_t reserved[4];
};

struct hf_restore_table_from_backup_result {
    const struct hf_table_description *table;
    uint64_t reserved[4];
};

/* Refused: no table has point-in-time recovery. */
struct hf_restore_table_to_point_in_time {
    struct hf_str source_arn; /* this or source */
    struct hf_str source;
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_restore_table_to_point_in_time_result {
    const struct hf_table_description *table;
    uint64_t reserved[4];
};

/* ---- resource policies: kept and given back, not enforced ----------------------------------- */

struct hf_put_resource_policy {
    struct hf_str arn;
    struct hf_str policy;            /* JSON, up to 20480 bytes */
    struct hf_str expected_revision; /* "NO_POLICY": only if there is none */
    enum hf_flag confirm_remove_self;
    uint64_t reserved[4];
};

struct hf_put_resource_policy_result {
    struct hf_str revision;
    uint64_t reserved[4];
};

struct hf_get_resource_policy {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_get_resource_policy_result {
    struct hf_str policy;
    struct hf_str revision;
    uint64_t reserved[4];
};

struct hf_delete_resource_policy {
    struct hf_str arn;
    struct hf_str expected_revision;
    uint64_t reserved[4];
};

struct hf_delete_resource_policy_result {
    struct hf_str revision; /* of the policy that went; absent when there was none */
    uint64_t reserved[4];
};

/* ---- what other services and regions do for a table: here, nothing -------------------------- */

struct hf_replica {
    struct hf_str region;
    struct hf_str status;
    uint64_t reserved[4];
};

struct hf_global_table {
    struct hf_str name;
    const struct hf_replica *replicas;
    size_t replicas_len;
    uint64_t reserved[4];
};

struct hf_list_global_tables {
    struct hf_str start;
    int64_t limit;
    struct hf_str region;
    uint64_t reserved[4];
};

struct hf_list_global_tables_result {
    const struct hf_global_table *tables;
    size_t tables_len;
    struct hf_str last;
    uint64_t reserved[4];
};

struct hf_describe_global_table {
    struct hf_str name;
    uint64_t reserved[4];
};

struct hf_global_table_description {
    struct hf_str name;
    struct hf_str arn;
    int64_t created_us;
    enum hf_table_status status;
    const struct hf_replica *replicas;
    size_t replicas_len;
    uint64_t reserved[4];
};

struct hf_describe_global_table_result {
    const struct hf_global_table_description *table;
    uint64_t reserved[4];
};

/* Refused: the service no longer creates these. */
struct hf_create_global_table {
    struct hf_str name;
    const struct hf_replica *replicas;
    size_t replicas_len;
    uint64_t reserved[4];
};

struct hf_create_global_table_result {
    const struct hf_global_table_description *table;
    uint64_t reserved[4];
};

/* Always refused, as there is none. */
struct hf_update_global_table {
    struct hf_str name;
    uint64_t reserved[4];
};

struct hf_update_global_table_result {
    const struct hf_global_table_description *table;
    uint64_t reserved[4];
};

struct hf_describe_global_table_settings {
    struct hf_str name;
    uint64_t reserved[4];
};

struct hf_describe_global_table_settings_result {
    struct hf_str name;
    const struct hf_replica *replicas;
    size_t replicas_len;
    uint64_t reserved[4];
};

struct hf_update_global_table_settings {
    struct hf_str name;
    uint64_t reserved[4];
};

struct hf_update_global_table_settings_result {
    struct hf_str name;
    const struct hf_replica *replicas;
    size_t replicas_len;
    uint64_t reserved[4];
};

struct hf_describe_table_replica_auto_scaling {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_auto_scaling_description {
    struct hf_str table;
    enum hf_table_status status;
    const struct hf_replica *replicas;
    size_t replicas_len;
    uint64_t reserved[4];
};

struct hf_describe_table_replica_auto_scaling_result {
    const struct hf_auto_scaling_description *table;
    uint64_t reserved[4];
};

struct hf_update_table_replica_auto_scaling {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_update_table_replica_auto_scaling_result {
    const struct hf_auto_scaling_description *table;
    uint64_t reserved[4];
};

struct hf_disable_kinesis_streaming_destination {
    struct hf_str table;
    struct hf_str stream_arn;
    uint64_t reserved[4];
};

struct hf_disable_kinesis_streaming_destination_result {
    struct hf_str table;
    struct hf_str stream_arn;
    struct hf_str status;
    uint64_t reserved[4];
};

struct hf_describe_kinesis_streaming_destination {
    struct hf_str table;
    uint64_t reserved[4];
};

struct hf_kinesis_destination {
    struct hf_str stream_arn;
    struct hf_str status;
    struct hf_str status_description;
    uint64_t reserved[4];
};

struct hf_describe_kinesis_streaming_destination_result {
    struct hf_str table;
    const struct hf_kinesis_destination *destinations;
    size_t destinations_len;
    uint64_t reserved[4];
};

struct hf_describe_contributor_insights {
    struct hf_str table;
    struct hf_str index;
    uint64_t reserved[4];
};

struct hf_describe_contributor_insights_result {
    struct hf_str table;
    struct hf_str index;
    const struct hf_str *rules;
    size_t rules_len;
    enum hf_insights_status status;
    int64_t updated_us;
    uint64_t reserved[4];
};

/* HF_INSIGHTS_DISABLE changes nothing; HF_INSIGHTS_ENABLE is refused. */
struct hf_update_contributor_insights {
    struct hf_str table;
    struct hf_str index; /* absent: of the table */
    enum hf_insights_action action;
    enum hf_insights_mode mode;
    uint64_t reserved[4];
};

struct hf_update_contributor_insights_result {
    struct hf_str table;
    struct hf_str index;
    enum hf_insights_status status;
    enum hf_insights_mode mode;
    uint64_t reserved[4];
};

struct hf_list_contributor_insights {
    struct hf_str table; /* absent: of all tables */
    struct hf_str next_token;
    int64_t limit;
    uint64_t reserved[4];
};

struct hf_insights_summary {
    struct hf_str table;
    struct hf_str index;
    enum hf_insights_status status;
    uint64_t reserved[4];
};

struct hf_list_contributor_insights_result {
    const struct hf_insights_summary *summaries;
    size_t summaries_len;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_list_exports {
    struct hf_str table_arn;
    int64_t limit;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_export_summary {
    struct hf_str arn;
    struct hf_str status;
    struct hf_str type;
    uint64_t reserved[4];
};

struct hf_list_exports_result {
    const struct hf_export_summary *exports;
    size_t exports_len;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_describe_export {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_export_description {
    struct hf_str arn;
    struct hf_str status;
    int64_t started_us;
    int64_t ended_us;
    struct hf_str table_arn;
    struct hf_str table_id;
    struct hf_str bucket;
    struct hf_str prefix;
    struct hf_str format;
    int64_t item_count;
    uint64_t reserved[4];
};

struct hf_describe_export_result {
    const struct hf_export_description *description;
    uint64_t reserved[4];
};

/* Refused: an export needs point-in-time recovery, which no table has. */
struct hf_export_table_to_point_in_time {
    struct hf_str table_arn;
    struct hf_str bucket;
    uint64_t reserved[4];
};

struct hf_export_table_to_point_in_time_result {
    const struct hf_export_description *description;
    uint64_t reserved[4];
};

struct hf_list_imports {
    struct hf_str table_arn;
    int64_t limit;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_import_summary {
    struct hf_str arn;
    struct hf_str status;
    struct hf_str table_arn;
    struct hf_str format;
    int64_t started_us;
    int64_t ended_us;
    uint64_t reserved[4];
};

struct hf_list_imports_result {
    const struct hf_import_summary *imports;
    size_t imports_len;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_describe_import {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_import_description {
    struct hf_str arn;
    struct hf_str status;
    struct hf_str table_arn;
    struct hf_str table_id;
    struct hf_str format;
    int64_t started_us;
    int64_t ended_us;
    int64_t imported_count;
    int64_t error_count;
    uint64_t reserved[4];
};

struct hf_describe_import_result {
    const struct hf_import_description *description;
    uint64_t reserved[4];
};

/* ---- the one call --------------------------------------------------------------------------- */

/* The operation's name on the wire, such as "PutItem"; absent for any other number. */
HF_API struct hf_str hf_op_name(enum hf_op op);

/*
 * Do `op`. `request` is a struct of the operation's name, `response` its _result, zeroed by the
 * call; NULL when it does not matter.
 */
HF_API HF_NODISCARD enum hf_status hf_db_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                              const void *request, void *response);

/* Close the database. NULL is accepted. No call may be in flight. */
HF_API void hf_db_close(struct hf_db *db);

/*
 * A random text that identifies this opening of a database, on disk or in memory. One process at a
 * time has a directory open, and each opening gets a new text. So a lease with another text belongs
 * to a process that has ended, and patterns take it over at once. Absent for databases over the
 * network, which several processes use at the same time. It lives as long as `db`. Any thread.
 */
HF_API struct hf_str hf_db_opener(struct hf_db *db);

/*
 * An object that users of one database share, such as a thread. `make` is called for the first
 * user, `end` when the last one has released it; a kind is identified by the address of the struct.
 */
struct hf_shared_kind {
    enum hf_status (*make)(struct hf_scope *s, void **object);
    void (*end)(void *object);
};

/* Fails as `make` does, and with HF_NOMEM. Each one is given back, before the database is closed.
 * Any thread. */
HF_API HF_NODISCARD enum hf_status hf_db_share(struct hf_scope *s, struct hf_db *db,
                                               const struct hf_shared_kind *kind, void **object);
HF_API void hf_db_unshare(struct hf_db *db, const struct hf_shared_kind *kind);

/*
 * Wait until everything that calls on this scope wrote since hf_scope_sync_later() is durable, and with
 * it everything that other scopes wrote before. At once if nothing waits for a sync, and on services.
 *
 * HF_IO       the sync failed: what was written may be lost
 * HF_STOPPED  an earlier one failed
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_db_sync(struct hf_scope *s, struct hf_db *db);

/* Features that not every service has. */
enum hf_feature {
    HF_FEATURE_TRANSACTIONS = 1, /* TransactWriteItems, TransactGetItems; ScyllaDB has none */
    HF_FEATURE_PARTIQL,          /* statements; ScyllaDB has none */
    HF_FEATURE_STREAMS,          /* DescribeStream, GetRecords and kin */
    HF_FEATURE_TIME_TO_LIVE,     /* UpdateTimeToLive */
    HF_FEATURE_BACKUPS           /* CreateBackup and kin */
};

/*
 * Whether the database has a feature. A service is asked once, with a request that changes nothing,
 * and the answer is kept. The embedded engine has all of them. Fails as any operation does.
 */
HF_API HF_NODISCARD enum hf_status hf_db_supports(struct hf_scope *s, struct hf_db *db,
                                                  enum hf_feature feature, bool *supported);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
