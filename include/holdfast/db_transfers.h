/*
 * Requests and results of exports of tables and imports into new ones. The files are in buckets: of
 * S3 for Amazon DynamoDB, for the embedded engine those of hf_engine_options.buckets. The functions
 * are in db_ops.h; db.h includes both, and says what holds for all requests.
 *
 * They run in the background. The call answers at once, with an ARN by which the work can be
 * described; it survives a restart.
 */
#ifndef HOLDFAST_DB_TRANSFERS_H
#define HOLDFAST_DB_TRANSFERS_H

#include <holdfast/base.h>
#include <holdfast/db_tables.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

/* ---- enums: 0 is "not given" ----------------------------------------------------------------- */

enum hf_export_format { HF_EXPORT_DYNAMODB_JSON = 1, HF_EXPORT_ION };
enum hf_export_type { HF_EXPORT_FULL = 1, HF_EXPORT_INCREMENTAL };
enum hf_export_view { HF_EXPORT_NEW_IMAGE = 1, HF_EXPORT_NEW_AND_OLD_IMAGES };
enum hf_export_status { HF_EXPORT_IN_PROGRESS = 1, HF_EXPORT_COMPLETED, HF_EXPORT_FAILED };
enum hf_s3_sse { HF_S3_SSE_AES256 = 1, HF_S3_SSE_KMS };

enum hf_import_format { HF_IMPORT_DYNAMODB_JSON = 1, HF_IMPORT_ION, HF_IMPORT_CSV };
enum hf_import_compression {
    HF_IMPORT_COMPRESSION_GZIP = 1,
    HF_IMPORT_COMPRESSION_ZSTD,
    HF_IMPORT_COMPRESSION_NONE
};
enum hf_import_status {
    HF_IMPORT_IN_PROGRESS = 1,
    HF_IMPORT_COMPLETED,
    HF_IMPORT_CANCELLING,
    HF_IMPORT_CANCELLED,
    HF_IMPORT_FAILED
};

/* ---- exports -------------------------------------------------------------------------------- */

/* What changed in a period. The embedded engine does not export that. */
struct hf_incremental_export {
    int64_t from_us;
    int64_t to_us;
    enum hf_export_view view;
    uint64_t reserved[4];
};

struct hf_export_table_to_point_in_time {
    struct hf_str table_arn;
    int64_t export_time_us;     /* 0: now, which is all that the embedded engine exports */
    struct hf_str client_token; /* the same request with it is the same export, for eight hours */
    struct hf_str bucket;
    struct hf_str bucket_owner;
    struct hf_str prefix; /* of the keys of all files */
    enum hf_s3_sse sse;
    struct hf_str sse_kms_key_id;
    enum hf_export_format format; /* default HF_EXPORT_DYNAMODB_JSON */
    enum hf_export_type type;     /* default HF_EXPORT_FULL */
    const struct hf_incremental_export *incremental;
    uint64_t reserved[8];
};

struct hf_export_description {
    struct hf_str arn;
    enum hf_export_status status;
    int64_t started_us;
    int64_t ended_us;
    struct hf_str manifest; /* the key of manifest-summary.json */
    struct hf_str table_arn;
    struct hf_str table_id;
    int64_t export_time_us; /* the moment whose state the files have */
    struct hf_str client_token;
    struct hf_str bucket;
    struct hf_str bucket_owner;
    struct hf_str prefix;
    enum hf_s3_sse sse;
    struct hf_str sse_kms_key_id;
    struct hf_str failure_code;
    struct hf_str failure_message;
    enum hf_export_format format;
    int64_t billed_bytes;
    int64_t item_count;
    enum hf_export_type type;
    const struct hf_incremental_export *incremental;
    uint64_t reserved[8];
};

struct hf_export_table_to_point_in_time_result {
    const struct hf_export_description *description;
    uint64_t reserved[4];
};

struct hf_describe_export {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_describe_export_result {
    const struct hf_export_description *description;
    uint64_t reserved[4];
};

struct hf_list_exports {
    struct hf_str table_arn; /* absent: of all tables */
    int64_t limit;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_export_summary {
    struct hf_str arn;
    enum hf_export_status status;
    enum hf_export_type type;
    uint64_t reserved[4];
};

struct hf_list_exports_result {
    const struct hf_export_summary *exports;
    size_t exports_len;
    struct hf_str next_token;
    uint64_t reserved[4];
};

/* ---- imports -------------------------------------------------------------------------------- */

/* Every object whose key begins with the prefix. */
struct hf_s3_source {
    struct hf_str bucket_owner;
    struct hf_str bucket;
    struct hf_str key_prefix; /* absent: all objects of the bucket */
    uint64_t reserved[4];
};

struct hf_csv_options {
    struct hf_str delimiter;      /* one of , ; : | tab and space; default , */
    const struct hf_str *headers; /* names of columns; NULL: the first line of each file has them */
    size_t headers_len;
    uint64_t reserved[4];
};

struct hf_input_format_options {
    const struct hf_csv_options *csv;
    uint64_t reserved[4];
};

struct hf_import_table {
    struct hf_str client_token; /* the same request with it is the same import, for eight hours */
    const struct hf_s3_source *source;
    enum hf_import_format format;
    const struct hf_input_format_options *format_options;
    enum hf_import_compression compression; /* default HF_IMPORT_COMPRESSION_NONE */
    /* The new table: keys, attributes, billing, encryption and global indexes; no other member. */
    const struct hf_create_table *table;
    uint64_t reserved[8];
};

struct hf_import_description {
    struct hf_str arn;
    enum hf_import_status status;
    struct hf_str table_arn;
    struct hf_str table_id;
    struct hf_str client_token;
    const struct hf_s3_source *source;
    int64_t error_count; /* records that no item was made of */
    struct hf_str log_group_arn;
    enum hf_import_format format;
    const struct hf_input_format_options *format_options;
    enum hf_import_compression compression;
    const struct hf_create_table *table;
    int64_t started_us;
    int64_t ended_us;
    int64_t processed_bytes; /* of the files, when they are decompressed */
    int64_t processed_count; /* records */
    int64_t imported_count;  /* items that were put */
    struct hf_str failure_code;
    struct hf_str failure_message;
    uint64_t reserved[8];
};

struct hf_import_table_result {
    const struct hf_import_description *description;
    uint64_t reserved[4];
};

struct hf_describe_import {
    struct hf_str arn;
    uint64_t reserved[4];
};

struct hf_describe_import_result {
    const struct hf_import_description *description;
    uint64_t reserved[4];
};

struct hf_list_imports {
    struct hf_str table_arn; /* absent: of all tables */
    int64_t limit;
    struct hf_str next_token;
    uint64_t reserved[4];
};

struct hf_import_summary {
    struct hf_str arn;
    enum hf_import_status status;
    struct hf_str table_arn;
    const struct hf_s3_source *source;
    struct hf_str log_group_arn;
    enum hf_import_format format;
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

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
