/*
 * Requests and results of operations on backups: of a table, on request; restoring them into a new
 * table. Continuous backups can be described and not switched on. The functions are in db_ops.h;
 * db.h includes both, and says what holds for all requests.
 */
#ifndef HOLDFAST_DB_BACKUPS_H
#define HOLDFAST_DB_BACKUPS_H

#include <holdfast/base.h>
#include <holdfast/db_tables.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- enums: 0 is "not given" ----------------------------------------------------------------- */

enum hf_switch { HF_SWITCH_ENABLED = 1, HF_SWITCH_DISABLED };
enum hf_backup_status { HF_BACKUP_CREATING = 1, HF_BACKUP_DELETED, HF_BACKUP_AVAILABLE };
enum hf_backup_type {
    HF_BACKUP_USER = 1,
    HF_BACKUP_SYSTEM,
    HF_BACKUP_AWS_BACKUP,
    HF_BACKUP_ALL /* as a filter */
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

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
