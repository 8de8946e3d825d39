/*
 * cli/table/table_described.c: reading what DescribeTable answers, as `aws dynamodb describe-table` prints it, to
 * make the same table elsewhere. What Amazon says of that very table, such as its size and its ARNs, is skipped.
 */
#include "cli/table/table_spec.h"

#include <string.h>

static const struct shape_member described_throughput_members[] = {
    {"ReadCapacityUnits", SHAPE_NUMBER, SHAPE_AT(hf_throughput, read_units)},
    {"WriteCapacityUnits", SHAPE_NUMBER, SHAPE_AT(hf_throughput, write_units)},
    {.name = "LastIncreaseDateTime", .kind = SHAPE_SKIPPED},
    {.name = "LastDecreaseDateTime", .kind = SHAPE_SKIPPED},
    {.name = "NumberOfDecreasesToday", .kind = SHAPE_SKIPPED},
};
static const struct table_shape described_throughput =
    SHAPE_OF(hf_throughput, described_throughput_members);

static const struct shape_member described_index_members[] = {
    SHAPE_INDEX_MEMBERS(described_throughput),
    {.name = "WarmThroughput", .kind = SHAPE_SKIPPED},
    {.name = "IndexStatus", .kind = SHAPE_SKIPPED},
    {.name = "Backfilling", .kind = SHAPE_SKIPPED},
    {.name = "IndexSizeBytes", .kind = SHAPE_SKIPPED},
    {.name = "ItemCount", .kind = SHAPE_SKIPPED},
    {.name = "IndexArn", .kind = SHAPE_SKIPPED},
};
static const struct table_shape described_index = SHAPE_OF(hf_index, described_index_members);

static const struct shape_member billing_members[] = {
    {"BillingMode", SHAPE_WORD, SHAPE_AT(hf_create_table, billing), .words = SHAPE_WORDS_BILLING},
    {.name = "LastUpdateToPayPerRequestDateTime", .kind = SHAPE_SKIPPED},
};
static const struct table_shape billing_shape = SHAPE_OF(hf_create_table, billing_members);

static const struct shape_member class_members[] = {
    {"TableClass", SHAPE_WORD, SHAPE_AT(hf_create_table, table_class), .words = SHAPE_WORDS_CLASS},
    {.name = "LastUpdateDateTime", .kind = SHAPE_SKIPPED},
};
static const struct table_shape class_shape = SHAPE_OF(hf_create_table, class_members);

struct table_described {
    struct hf_create_table spec; /* first: members of hf_create_table are at their places */
    const struct hf_create_table *billing; /* with `billing` alone; NULL: it has no such summary */
    const struct hf_create_table *table_class; /* likewise */
};
_Static_assert(offsetof(struct table_described, spec) == 0, "see there");

static const struct shape_member described_members[] = {
    SHAPE_TABLE_MEMBERS(described_index),
    {"BillingModeSummary", SHAPE_OBJECT, SHAPE_AT(table_described, billing),
     .shape = &billing_shape},
    SHAPE_CAPACITY_MEMBERS(described_throughput),
    {"StreamSpecification", SHAPE_OBJECT, SHAPE_AT(hf_create_table, stream),
     .shape = &hf__cli_shape_stream},
    {"TableClassSummary", SHAPE_OBJECT, SHAPE_AT(table_described, table_class),
     .shape = &class_shape},
    {"DeletionProtectionEnabled", SHAPE_FLAG, SHAPE_AT(hf_create_table, deletion_protection)},
    {.name = "TableStatus", .kind = SHAPE_SKIPPED},
    {.name = "CreationDateTime", .kind = SHAPE_SKIPPED},
    {.name = "TableSizeBytes", .kind = SHAPE_SKIPPED},
    {.name = "ItemCount", .kind = SHAPE_SKIPPED},
    {.name = "TableArn", .kind = SHAPE_SKIPPED},
    {.name = "TableId", .kind = SHAPE_SKIPPED},
    {.name = "LatestStreamLabel", .kind = SHAPE_SKIPPED},
    {.name = "LatestStreamArn", .kind = SHAPE_SKIPPED},
    {.name = "WarmThroughput", .kind = SHAPE_SKIPPED},
    {.name = "SSEDescription", .kind = SHAPE_SKIPPED},
    {.name = "RestoreSummary", .kind = SHAPE_SKIPPED},
    {.name = "ArchivalSummary", .kind = SHAPE_SKIPPED},
    {.name = "GlobalTableVersion", .kind = SHAPE_SKIPPED},
    {.name = "MultiRegionConsistency", .kind = SHAPE_SKIPPED},
    {.name = "Replicas", .kind = SHAPE_SKIPPED},
};
static const struct table_shape described_shape = SHAPE_OF(table_described, described_members);

/* A table that is billed per request is described with throughputs of 0, which no request may have. */
static bool throughputs_drop(struct hf_scope *s, struct hf_create_table *spec, struct hf_str *error)
{
    struct hf_index *indexes = NULL;

    spec->throughput = NULL;
    if (!spec->global_indexes_len)
        return true;
    indexes = hf_scope_alloc(s, spec->global_indexes_len * sizeof(*indexes));
    if (!indexes) {
        *error = HF_STR("out of memory");
        return false;
    }
    memcpy(indexes, spec->global_indexes, spec->global_indexes_len * sizeof(*indexes));
    for (size_t i = 0; i < spec->global_indexes_len; i++)
        indexes[i].throughput = NULL;
    spec->global_indexes = indexes;
    return true;
}

bool hf__cli_table_spec_read_described(struct hf_scope *s, const struct json_node *json,
                                       struct hf_create_table *spec, struct hf_str *error)
{
    struct shape_reader r = {.s = s, .what = "DescribeTable"};
    struct table_described described;

    memset(&described, 0, sizeof(described));
    memset(spec, 0, sizeof(*spec));
    if (!hf__cli_shape_read(&r, "", &described_shape, json, &described) ||
        (!described.spec.table.len && !hf__cli_shape_fail(&r, "TableName: missing", "", ""))) {
        *error = r.error;
        return false;
    }
    *spec = described.spec;
    if (described.table_class)
        spec->table_class = described.table_class->table_class;
    if (spec->stream && spec->stream->enabled != HF_YES)
        spec->stream = NULL;
    /* The summary is there when the table was ever billed per request. */
    spec->billing = described.billing ? described.billing->billing : HF_BILLING_PROVISIONED;
    return spec->billing == HF_BILLING_PROVISIONED || throughputs_drop(s, spec, error);
}
