/*
 * Requests and results of operations on what surrounds a table: resource policies, which are stored
 * and not enforced; global tables, auto scaling, Kinesis, contributor insights, of which the embedded
 * engine has none. The functions are in db_ops.h; db.h includes both, and says
 * what holds for all requests.
 */
#ifndef HOLDFAST_DB_SERVICES_H
#define HOLDFAST_DB_SERVICES_H

#include <holdfast/base.h>
#include <holdfast/db_tables.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- enums: 0 is "not given" ----------------------------------------------------------------- */

enum hf_insights_action { HF_INSIGHTS_ENABLE = 1, HF_INSIGHTS_DISABLE };
enum hf_insights_mode { HF_INSIGHTS_ACCESSED_AND_THROTTLED = 1, HF_INSIGHTS_THROTTLED };
enum hf_insights_status {
    HF_INSIGHTS_ENABLING = 1,
    HF_INSIGHTS_ENABLED,
    HF_INSIGHTS_DISABLING,
    HF_INSIGHTS_DISABLED,
    HF_INSIGHTS_FAILED
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

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
