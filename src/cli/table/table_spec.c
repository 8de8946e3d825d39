/*
 * cli/table/table_spec.c: a table as CreateTable has it in JSON, both ways.
 */
#include "cli/table/table_spec.h"

#include "base/base.h"

#include <string.h>

static const struct shape_member attribute_members[] = {
    {"AttributeName", SHAPE_TEXT, SHAPE_AT(hf_attribute_definition, name)},
    {"AttributeType", SHAPE_WORD, SHAPE_AT(hf_attribute_definition, type),
     .words = SHAPE_WORDS_SCALAR},
};
const struct table_shape hf__cli_shape_attribute =
    SHAPE_OF(hf_attribute_definition, attribute_members);

static const struct shape_member key_members[] = {
    {"AttributeName", SHAPE_TEXT, SHAPE_AT(hf_key_element, name)},
    {"KeyType", SHAPE_WORD, SHAPE_AT(hf_key_element, type), .words = SHAPE_WORDS_KEY},
};
const struct table_shape hf__cli_shape_key = SHAPE_OF(hf_key_element, key_members);

static const struct shape_member throughput_members[] = {
    {"ReadCapacityUnits", SHAPE_NUMBER, SHAPE_AT(hf_throughput, read_units)},
    {"WriteCapacityUnits", SHAPE_NUMBER, SHAPE_AT(hf_throughput, write_units)},
};
const struct table_shape hf__cli_shape_throughput = SHAPE_OF(hf_throughput, throughput_members);

static const struct shape_member on_demand_members[] = {
    {"MaxReadRequestUnits", SHAPE_NUMBER, SHAPE_AT(hf_on_demand_throughput, max_read_units)},
    {"MaxWriteRequestUnits", SHAPE_NUMBER, SHAPE_AT(hf_on_demand_throughput, max_write_units)},
};
const struct table_shape hf__cli_shape_on_demand =
    SHAPE_OF(hf_on_demand_throughput, on_demand_members);

static const struct shape_member warm_members[] = {
    {"ReadUnitsPerSecond", SHAPE_NUMBER, SHAPE_AT(hf_warm_throughput, read_units)},
    {"WriteUnitsPerSecond", SHAPE_NUMBER, SHAPE_AT(hf_warm_throughput, write_units)},
};
const struct table_shape hf__cli_shape_warm = SHAPE_OF(hf_warm_throughput, warm_members);

static const struct shape_member projection_members[] = {
    {"ProjectionType", SHAPE_WORD, SHAPE_AT(hf_projection, type), .words = SHAPE_WORDS_PROJECTION},
    {"NonKeyAttributes", SHAPE_TEXTS, SHAPE_LIST_AT(hf_projection, attributes)},
};
const struct table_shape hf__cli_shape_projection = SHAPE_OF(hf_projection, projection_members);

static const struct shape_member secondary_members[] = {
    SHAPE_INDEX_MEMBERS(hf__cli_shape_throughput),
    {"WarmThroughput", SHAPE_OBJECT, SHAPE_AT(hf_index, warm_throughput),
     .shape = &hf__cli_shape_warm},
};
static const struct table_shape secondary_shape = SHAPE_OF(hf_index, secondary_members);

static const struct shape_member stream_members[] = {
    {"StreamEnabled", SHAPE_FLAG, SHAPE_AT(hf_stream_spec, enabled)},
    {"StreamViewType", SHAPE_WORD, SHAPE_AT(hf_stream_spec, view), .words = SHAPE_WORDS_VIEW},
};
const struct table_shape hf__cli_shape_stream = SHAPE_OF(hf_stream_spec, stream_members);

static const struct shape_member sse_members[] = {
    {"Enabled", SHAPE_FLAG, SHAPE_AT(hf_sse_spec, enabled)},
    {"SSEType", SHAPE_WORD, SHAPE_AT(hf_sse_spec, type), .words = "AES256 KMS"},
    {"KMSMasterKeyId", SHAPE_TEXT, SHAPE_AT(hf_sse_spec, kms_key_id)},
};
static const struct table_shape sse_shape = SHAPE_OF(hf_sse_spec, sse_members);

static const struct shape_member tag_members[] = {
    {"Key", SHAPE_TEXT, SHAPE_AT(hf_tag, key)},
    {"Value", SHAPE_TEXT, SHAPE_AT(hf_tag, value)},
};
const struct table_shape hf__cli_shape_tag = SHAPE_OF(hf_tag, tag_members);

static const struct shape_member table_members[] = {
    SHAPE_TABLE_MEMBERS(secondary_shape),
    {"BillingMode", SHAPE_WORD, SHAPE_AT(hf_create_table, billing), .words = SHAPE_WORDS_BILLING},
    SHAPE_CAPACITY_MEMBERS(hf__cli_shape_throughput),
    {"WarmThroughput", SHAPE_OBJECT, SHAPE_AT(hf_create_table, warm_throughput),
     .shape = &hf__cli_shape_warm},
    {"StreamSpecification", SHAPE_OBJECT, SHAPE_AT(hf_create_table, stream),
     .shape = &hf__cli_shape_stream},
    {"SSESpecification", SHAPE_OBJECT, SHAPE_AT(hf_create_table, sse), .shape = &sse_shape},
    {"Tags", SHAPE_LIST, SHAPE_LIST_AT(hf_create_table, tags), .shape = &hf__cli_shape_tag},
    {"TableClass", SHAPE_WORD, SHAPE_AT(hf_create_table, table_class), .words = SHAPE_WORDS_CLASS},
    {"DeletionProtectionEnabled", SHAPE_FLAG, SHAPE_AT(hf_create_table, deletion_protection)},
    {"ResourcePolicy", SHAPE_TEXT, SHAPE_AT(hf_create_table, resource_policy)},
};
static const struct table_shape table_shape = SHAPE_OF(hf_create_table, table_members);

bool hf__cli_table_spec_read(struct hf_scope *s, const struct json_node *json,
                             struct hf_create_table *spec, struct hf_str *error)
{
    struct shape_reader r = {.s = s, .what = "CreateTable"};

    memset(spec, 0, sizeof(*spec));
    if (hf__cli_shape_read(&r, "", &table_shape, json, spec) &&
        (spec->table.len || hf__cli_shape_fail(&r, "TableName: missing", "", "")))
        return true;
    *error = r.error;
    return false;
}

struct hf_str hf__cli_table_spec_request(struct hf_scope *s, const struct hf_create_table *spec)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text))
        hf__cli_shape_write(text.out, &table_shape, spec);
    return hf__cli_json_text_end(&text, s);
}

/* ---- from a description --------------------------------------------------------------------- */

/* What DescribeTable says of throughput; NULL: none was provisioned. */
static enum hf_status throughput_make(struct hf_scope *s,
                                      const struct hf_throughput_description *from,
                                      const struct hf_throughput **made)
{
    struct hf_throughput *throughput;

    *made = NULL;
    if (!from || from->read_units <= 0 || from->write_units <= 0)
        return HF_OK;
    throughput = hf_scope_alloc(s, sizeof(*throughput));
    if (!throughput)
        return HF_NOMEM;
    *throughput =
        (struct hf_throughput){.read_units = from->read_units, .write_units = from->write_units};
    *made = throughput;
    return HF_OK;
}

static enum hf_status indexes_make(struct hf_scope *s, const struct hf_index_description *from,
                                   size_t len, bool provisioned, const struct hf_index **made)
{
    struct hf_index *indexes = hf_scope_alloc(s, (len + 1) * sizeof(*indexes));

    *made = len ? indexes : NULL;
    if (!indexes)
        return HF_NOMEM;
    for (size_t i = 0; i < len; i++) {
        indexes[i] = (struct hf_index){.name = from[i].name,
                                       .key_schema = from[i].key_schema,
                                       .key_schema_len = from[i].key_schema_len,
                                       .projection = from[i].projection,
                                       .on_demand_throughput = from[i].on_demand_throughput};
        if (provisioned)
            TRY(throughput_make(s, from[i].throughput, &indexes[i].throughput));
    }
    return HF_OK;
}

enum hf_status hf__cli_table_spec_of(struct hf_scope *s, const struct hf_table_description *table,
                                     struct hf_create_table *spec)
{
    bool provisioned = !table->billing || table->billing->billing == HF_BILLING_PROVISIONED;

    *spec = (struct hf_create_table){
        .table = table->name,
        .attributes = table->attributes,
        .attributes_len = table->attributes_len,
        .key_schema = table->key_schema,
        .key_schema_len = table->key_schema_len,
        .local_indexes_len = table->local_indexes_len,
        .global_indexes_len = table->global_indexes_len,
        .on_demand_throughput = table->on_demand_throughput,
        .stream = table->stream && table->stream->enabled == HF_YES ? table->stream : NULL,
        .table_class = table->table_class ? table->table_class->table_class : 0,
        .deletion_protection = table->deletion_protection == HF_YES ? HF_YES : HF_UNSET};
    if (provisioned)
        TRY(throughput_make(s, table->throughput, &spec->throughput));
    provisioned = spec->throughput != NULL;
    spec->billing = provisioned ? HF_BILLING_PROVISIONED : HF_BILLING_PAY_PER_REQUEST;
    TRY(indexes_make(s, table->local_indexes, table->local_indexes_len, false,
                     &spec->local_indexes));
    return indexes_make(s, table->global_indexes, table->global_indexes_len, provisioned,
                        &spec->global_indexes);
}
