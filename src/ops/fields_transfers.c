/*
 * ops/fields_transfers.c: the fields of operations that export tables and import into new ones.
 *
 * The table that an import creates is described by the members of CreateTable, of which it has a
 * part: no stream, no tags, no local indexes.
 */
#include "ops/table.h"

ENUM(export_formats, "[DYNAMODB_JSON, ION]", "DYNAMODB_JSON", "ION");
ENUM(export_types, "[INCREMENTAL_EXPORT, FULL_EXPORT]", "FULL_EXPORT", "INCREMENTAL_EXPORT");
ENUM(export_views, "[NEW_AND_OLD_IMAGES, NEW_IMAGE]", "NEW_IMAGE", "NEW_AND_OLD_IMAGES");
ENUM(export_statuses, "[COMPLETED, FAILED, IN_PROGRESS]", "IN_PROGRESS", "COMPLETED", "FAILED");
ENUM(s3_sse, "[AES256, KMS]", "AES256", "KMS");
ENUM(import_formats, "[ION, DYNAMODB_JSON, CSV]", "DYNAMODB_JSON", "ION", "CSV");
ENUM(compressions, "[ZSTD, NONE, GZIP]", "GZIP", "ZSTD", "NONE");
ENUM(import_statuses, "[COMPLETED, CANCELLED, FAILED, CANCELLING, IN_PROGRESS]", "IN_PROGRESS",
     "COMPLETED", "CANCELLING", "CANCELLED", "FAILED");

enum {
    LISTED_MAX = 25,
    BUCKET_MAX = 255,
    PREFIX_MAX = 1024,
    KMS_KEY_MAX = 2048,
    HEADERS_MAX = 255
};

/* ---- exports -------------------------------------------------------------------------------- */

#define T hf_incremental_export
static const struct field incremental_export_list[] = {
    TIME("ExportFromTime", from_us, .rules = 0),
    TIME("ExportToTime", to_us, .rules = 0),
    ENUMERATED("ExportViewType", view, export_views, .rules = 0),
};
static TABLE(incremental_export, "IncrementalExportSpecification");
#undef T

#define T hf_export_table_to_point_in_time
static const struct field export_table_to_point_in_time_list[] = {
    ARN("TableArn", table_arn, REQUIRED, LENGTH(1, 1024)),
    TIME("ExportTime", export_time_us, .rules = 0),
    STR("ClientToken", client_token, .pattern = PATTERN_CLIENT_TOKEN),
    STR("S3Bucket", bucket, REQUIRED, LENGTH(0, BUCKET_MAX), .pattern = PATTERN_BUCKET),
    STR("S3BucketOwner", bucket_owner, .pattern = PATTERN_ACCOUNT),
    STR("S3Prefix", prefix, LENGTH(0, PREFIX_MAX)),
    ENUMERATED("S3SseAlgorithm", sse, s3_sse, .rules = 0),
    STR("S3SseKmsKeyId", sse_kms_key_id, LENGTH(1, KMS_KEY_MAX)),
    ENUMERATED("ExportFormat", format, export_formats, .rules = 0),
    ENUMERATED("ExportType", type, export_types, .rules = 0),
    STRUCT("IncrementalExportSpecification", incremental, incremental_export, .rules = 0),
};
OP_TABLE(export_table_to_point_in_time, "ExportTableToPointInTimeInput");
#undef T

#define T hf_export_description
static const struct field export_description_list[] = {
    ARN("ExportArn", arn, .rules = 0),
    ENUMERATED("ExportStatus", status, export_statuses, .rules = 0),
    TIME("StartTime", started_us, .rules = 0),
    TIME("EndTime", ended_us, .rules = 0),
    STR("ExportManifest", manifest, .rules = 0),
    ARN("TableArn", table_arn, .rules = 0),
    STR("TableId", table_id, .rules = 0),
    TIME("ExportTime", export_time_us, .rules = 0),
    STR("ClientToken", client_token, .rules = 0),
    STR("S3Bucket", bucket, .rules = 0),
    STR("S3BucketOwner", bucket_owner, .rules = 0),
    STR("S3Prefix", prefix, .rules = 0),
    ENUMERATED("S3SseAlgorithm", sse, s3_sse, .rules = 0),
    STR("S3SseKmsKeyId", sse_kms_key_id, .rules = 0),
    STR("FailureCode", failure_code, .rules = 0),
    STR("FailureMessage", failure_message, .rules = 0),
    ENUMERATED("ExportFormat", format, export_formats, .rules = 0),
    INT("BilledSizeBytes", billed_bytes, LONG_ALWAYS),
    INT("ItemCount", item_count, LONG_ALWAYS),
    ENUMERATED("ExportType", type, export_types, .rules = 0),
    STRUCT("IncrementalExportSpecification", incremental, incremental_export, .rules = 0),
};
static TABLE(export_description, "ExportDescription");
#undef T

#define T hf_export_table_to_point_in_time_result
static const struct field export_table_to_point_in_time_result_list[] = {
    STRUCT("ExportDescription", description, export_description, .rules = 0),
};
OP_TABLE(export_table_to_point_in_time_result, "ExportTableToPointInTimeOutput");
#undef T

#define T hf_describe_export
static const struct field describe_export_list[] = {
    ARN("ExportArn", arn, REQUIRED, LENGTH(37, 1024)),
};
OP_TABLE(describe_export, "DescribeExportInput");
#undef T

#define T hf_describe_export_result
static const struct field describe_export_result_list[] = {
    STRUCT("ExportDescription", description, export_description, .rules = 0),
};
OP_TABLE(describe_export_result, "DescribeExportOutput");
#undef T

#define T hf_list_exports
static const struct field list_exports_list[] = {
    ARN("TableArn", table_arn, LENGTH(1, 1024)),
    INT("MaxResults", limit, RANGE(1, LISTED_MAX)),
    STR("NextToken", next_token, .rules = 0),
};
OP_TABLE(list_exports, "ListExportsInput");
#undef T

#define T hf_export_summary
static const struct field export_summary_list[] = {
    ARN("ExportArn", arn, .rules = 0),
    ENUMERATED("ExportStatus", status, export_statuses, .rules = 0),
    ENUMERATED("ExportType", type, export_types, .rules = 0),
};
static TABLE(export_summary, "ExportSummary");
#undef T

#define T hf_list_exports_result
static const struct field list_exports_result_list[] = {
    STRUCTS("ExportSummaries", exports, export_summary, LISTED),
    STR("NextToken", next_token, .rules = 0),
};
OP_TABLE(list_exports_result, "ListExportsOutput");
#undef T

/* ---- imports -------------------------------------------------------------------------------- */

#define T hf_s3_source
static const struct field s3_source_list[] = {
    STR("S3BucketOwner", bucket_owner, .pattern = PATTERN_ACCOUNT),
    STR("S3Bucket", bucket, REQUIRED, LENGTH(0, BUCKET_MAX), .pattern = PATTERN_BUCKET),
    STR("S3KeyPrefix", key_prefix, LENGTH(0, PREFIX_MAX)),
};
static TABLE(s3_source, "S3BucketSource");
#undef T

#define T hf_csv_options
static const struct field csv_options_list[] = {
    STR("Delimiter", delimiter, LENGTH(1, 1), .pattern = PATTERN_DELIMITER),
    STRS("HeaderList", headers, LENGTH(1, HEADERS_MAX), ELEMENTS(1, 65536)),
};
static TABLE(csv_options, "CsvOptions");
#undef T

#define T hf_input_format_options
static const struct field input_format_options_list[] = {
    STRUCT("Csv", csv, csv_options, .rules = 0),
};
static TABLE(input_format_options, "InputFormatOptions");
#undef T

#define T hf_create_table
static const struct field new_table_list[] = {
    TABLE_NAME("TableName", table, REQUIRED, LENGTH(3, 255), .pattern = PATTERN_TABLE_NAME),
    STRUCTS("AttributeDefinitions", attributes, hf__part_attribute_definition, REQUIRED),
    STRUCTS("KeySchema", key_schema, hf__part_key_element, REQUIRED, LENGTH(1, 2)),
    ENUMERATED("BillingMode", billing, hf__billing_modes, .rules = 0),
    STRUCT("ProvisionedThroughput", throughput, hf__part_throughput, .rules = 0),
    STRUCT("OnDemandThroughput", on_demand_throughput, hf__part_on_demand_throughput, .rules = 0),
    STRUCT("SSESpecification", sse, hf__part_sse_spec, .rules = 0),
    STRUCTS("GlobalSecondaryIndexes", global_indexes, hf__part_global_index, .rules = 0),
};
static TABLE(new_table, "TableCreationParameters");
#undef T

#define T hf_import_table
static const struct field import_table_list[] = {
    STR("ClientToken", client_token, .pattern = PATTERN_CLIENT_TOKEN),
    STRUCT("S3BucketSource", source, s3_source, REQUIRED),
    ENUMERATED("InputFormat", format, import_formats, REQUIRED),
    STRUCT("InputFormatOptions", format_options, input_format_options, .rules = 0),
    ENUMERATED("InputCompressionType", compression, compressions, .rules = 0),
    STRUCT("TableCreationParameters", table, new_table, REQUIRED),
};
OP_TABLE(import_table, "ImportTableInput");
#undef T

#define T hf_import_description
static const struct field import_description_list[] = {
    ARN("ImportArn", arn, .rules = 0),
    ENUMERATED("ImportStatus", status, import_statuses, .rules = 0),
    ARN("TableArn", table_arn, .rules = 0),
    STR("TableId", table_id, .rules = 0),
    STR("ClientToken", client_token, .rules = 0),
    STRUCT("S3BucketSource", source, s3_source, .rules = 0),
    INT("ErrorCount", error_count, LONG_ALWAYS),
    ARN("CloudWatchLogGroupArn", log_group_arn, .rules = 0),
    ENUMERATED("InputFormat", format, import_formats, .rules = 0),
    STRUCT("InputFormatOptions", format_options, input_format_options, .rules = 0),
    ENUMERATED("InputCompressionType", compression, compressions, .rules = 0),
    STRUCT("TableCreationParameters", table, new_table, .rules = 0),
    TIME("StartTime", started_us, .rules = 0),
    TIME("EndTime", ended_us, .rules = 0),
    INT("ProcessedSizeBytes", processed_bytes, LONG_ALWAYS),
    INT("ProcessedItemCount", processed_count, LONG_ALWAYS),
    INT("ImportedItemCount", imported_count, LONG_ALWAYS),
    STR("FailureCode", failure_code, .rules = 0),
    STR("FailureMessage", failure_message, .rules = 0),
};
static TABLE(import_description, "ImportTableDescription");
#undef T

#define T hf_import_table_result
static const struct field import_table_result_list[] = {
    STRUCT("ImportTableDescription", description, import_description, REQUIRED),
};
OP_TABLE(import_table_result, "ImportTableOutput");
#undef T

#define T hf_describe_import
static const struct field describe_import_list[] = {
    ARN("ImportArn", arn, REQUIRED, LENGTH(37, 1024)),
};
OP_TABLE(describe_import, "DescribeImportInput");
#undef T

#define T hf_describe_import_result
static const struct field describe_import_result_list[] = {
    STRUCT("ImportTableDescription", description, import_description, REQUIRED),
};
OP_TABLE(describe_import_result, "DescribeImportOutput");
#undef T

#define T hf_list_imports
static const struct field list_imports_list[] = {
    ARN("TableArn", table_arn, LENGTH(1, 1024)),
    INT("PageSize", limit, RANGE(1, LISTED_MAX)),
    STR("NextToken", next_token, LENGTH(112, 1024), .pattern = PATTERN_HEX16),
};
OP_TABLE(list_imports, "ListImportsInput");
#undef T

#define T hf_import_summary
static const struct field import_summary_list[] = {
    ARN("ImportArn", arn, .rules = 0),
    ENUMERATED("ImportStatus", status, import_statuses, .rules = 0),
    ARN("TableArn", table_arn, .rules = 0),
    STRUCT("S3BucketSource", source, s3_source, .rules = 0),
    ARN("CloudWatchLogGroupArn", log_group_arn, .rules = 0),
    ENUMERATED("InputFormat", format, import_formats, .rules = 0),
    TIME("StartTime", started_us, .rules = 0),
    TIME("EndTime", ended_us, .rules = 0),
};
static TABLE(import_summary, "ImportSummary");
#undef T

#define T hf_list_imports_result
static const struct field list_imports_result_list[] = {
    STRUCTS("ImportSummaryList", imports, import_summary, LISTED),
    STR("NextToken", next_token, .rules = 0),
};
OP_TABLE(list_imports_result, "ListImportsOutput");
#undef T
