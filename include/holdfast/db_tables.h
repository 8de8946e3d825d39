/*
 * Requests and results of operations on tables: creating, changing, describing, listing and deleting
 * them; indexes, throughput, time to live, tags, limits. The functions are in db_ops.h; db.h
 * includes both, and says what holds for all requests.
 *
 * Times that end in _us are microseconds since 1970.
 */
#ifndef HOLDFAST_DB_TABLES_H
#define HOLDFAST_DB_TABLES_H

#include <holdfast/base.h>
#include <holdfast/item.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- enums: 0 is "not given" ----------------------------------------------------------------- */

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
enum hf_ttl_status { HF_TTL_ENABLING = 1, HF_TTL_DISABLING, HF_TTL_ENABLED, HF_TTL_DISABLED };
enum hf_sse_type { HF_SSE_AES256 = 1, HF_SSE_KMS };

/* ---- parts of requests and results ----------------------------------------------------------- */

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

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
