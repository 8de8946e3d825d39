/*
 * cli/table/table_spec_json.c: the description of a table as DynamoDB has it in JSON, for scripts that
 * know it from there.
 */
#include "cli/frame/output/json.h"
#include "cli/table/table_spec.h"

const char *hf__cli_table_spec_status(enum hf_table_status status)
{
    static const char *const names[] = {"", "CREATING", "UPDATING", "DELETING", "ACTIVE"};

    return (size_t)status < sizeof(names) / sizeof(names[0]) ? names[status] : "";
}

static const char *type_of(const struct hf_table_description *table, struct hf_str name)
{
    static const char *const names[] = {"?", "S", "N", "B"};

    for (size_t i = 0; i < table->attributes_len; i++)
        if (hf_str_equal(table->attributes[i].name, name) &&
            (size_t)table->attributes[i].type < sizeof(names) / sizeof(names[0]))
            return names[table->attributes[i].type];
    return "?";
}

struct hf_str hf__cli_table_spec_keys(struct hf_scope *s, const struct hf_table_description *table,
                                      const struct hf_key_element *keys, size_t len)
{
    struct hf_str text = HF_STR("");

    for (size_t i = 0; i < len && text.ptr; i++)
        text = hf_scope_format(s, "%.*s%s%.*s %s", HF_FMT(text), i ? ", " : "",
                               HF_FMT(keys[i].name), type_of(table, keys[i].name));
    return text;
}

static void write_member(FILE *out, const char *name, struct hf_str text)
{
    if (!text.ptr)
        return;
    fprintf(out, ",\"%s\":", name);
    hf__cli_json_write_text(out, text);
}

static void write_keys(FILE *out, const struct hf_key_element *keys, size_t len)
{
    fputs(",\"KeySchema\":[", out);
    for (size_t i = 0; i < len; i++) {
        fputs(i ? ",{\"AttributeName\":" : "{\"AttributeName\":", out);
        hf__cli_json_write_text(out, keys[i].name);
        fprintf(out, ",\"KeyType\":\"%s\"}", keys[i].type == HF_KEY_HASH ? "HASH" : "RANGE");
    }
    fputc(']', out);
}

static void write_throughput(FILE *out, const struct hf_throughput_description *throughput)
{
    if (throughput)
        fprintf(out,
                ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%lld,"
                "\"WriteCapacityUnits\":%lld}",
                (long long)(throughput->read_units == HF_ZERO ? 0 : throughput->read_units),
                (long long)(throughput->write_units == HF_ZERO ? 0 : throughput->write_units));
}

static void write_warm(FILE *out, const struct hf_warm_throughput_description *warm)
{
    if (warm)
        fprintf(out,
                ",\"WarmThroughput\":{\"ReadUnitsPerSecond\":%lld,\"WriteUnitsPerSecond\":%lld}",
                (long long)warm->read_units, (long long)warm->write_units);
}

static void write_projection(FILE *out, const struct hf_projection *projection)
{
    static const char *const names[] = {"", "ALL", "KEYS_ONLY", "INCLUDE"};

    if (!projection || (size_t)projection->type >= sizeof(names) / sizeof(names[0]))
        return;
    fprintf(out, ",\"Projection\":{\"ProjectionType\":\"%s\"", names[projection->type]);
    if (projection->attributes_len) {
        fputs(",\"NonKeyAttributes\":[", out);
        for (size_t i = 0; i < projection->attributes_len; i++) {
            if (i)
                fputc(',', out);
            hf__cli_json_write_text(out, projection->attributes[i]);
        }
        fputc(']', out);
    }
    fputc('}', out);
}

static void write_indexes(FILE *out, const char *name, const struct hf_index_description *indexes,
                          size_t len)
{
    if (!len)
        return;
    fprintf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < len; i++) {
        fputs(i ? ",{\"IndexName\":" : "{\"IndexName\":", out);
        hf__cli_json_write_text(out, indexes[i].name);
        write_keys(out, indexes[i].key_schema, indexes[i].key_schema_len);
        write_projection(out, indexes[i].projection);
        if (indexes[i].status)
            write_member(out, "IndexStatus",
                         hf_str_from(hf__cli_table_spec_status(indexes[i].status)));
        write_throughput(out, indexes[i].throughput);
        write_warm(out, indexes[i].warm_throughput);
        fprintf(out, ",\"ItemCount\":%lld,\"IndexSizeBytes\":%lld}",
                (long long)(indexes[i].item_count == HF_ZERO ? 0 : indexes[i].item_count),
                (long long)(indexes[i].size_bytes == HF_ZERO ? 0 : indexes[i].size_bytes));
    }
    fputc(']', out);
}

static void write_stream(FILE *out, const struct hf_table_description *table)
{
    static const char *const views[] = {"", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES",
                                        "KEYS_ONLY"};

    if (!table->stream)
        return;
    fprintf(out, ",\"StreamSpecification\":{\"StreamEnabled\":%s",
            table->stream->enabled == HF_YES ? "true" : "false");
    if (table->stream->view && (size_t)table->stream->view < sizeof(views) / sizeof(views[0]))
        write_member(out, "StreamViewType", hf_str_from(views[table->stream->view]));
    fputc('}', out);
    write_member(out, "LatestStreamArn", table->stream_arn);
}

static void write_table(FILE *out, const struct hf_table_description *table)
{
    fputs("{\"TableName\":", out);
    hf__cli_json_write_text(out, table->name);
    write_member(out, "TableStatus", hf_str_from(hf__cli_table_spec_status(table->status)));
    write_member(out, "TableArn", table->arn);
    fprintf(out, ",\"CreationDateTime\":%lld.%03d", (long long)(table->created_us / 1000000),
            (int)(table->created_us / 1000 % 1000));
    fputs(",\"AttributeDefinitions\":[", out);
    for (size_t i = 0; i < table->attributes_len; i++) {
        fputs(i ? ",{\"AttributeName\":" : "{\"AttributeName\":", out);
        hf__cli_json_write_text(out, table->attributes[i].name);
        fprintf(out, ",\"AttributeType\":\"%s\"}", type_of(table, table->attributes[i].name));
    }
    fputc(']', out);
    write_keys(out, table->key_schema, table->key_schema_len);
    write_throughput(out, table->throughput);
    write_warm(out, table->warm_throughput);
    if (table->billing)
        fprintf(out, ",\"BillingModeSummary\":{\"BillingMode\":\"%s\"}",
                table->billing->billing == HF_BILLING_PAY_PER_REQUEST ? "PAY_PER_REQUEST"
                                                                      : "PROVISIONED");
    fprintf(out, ",\"ItemCount\":%lld,\"TableSizeBytes\":%lld",
            (long long)(table->item_count == HF_ZERO ? 0 : table->item_count),
            (long long)(table->size_bytes == HF_ZERO ? 0 : table->size_bytes));
    write_indexes(out, "LocalSecondaryIndexes", table->local_indexes, table->local_indexes_len);
    write_indexes(out, "GlobalSecondaryIndexes", table->global_indexes, table->global_indexes_len);
    write_stream(out, table);
    if (table->deletion_protection)
        fprintf(out, ",\"DeletionProtectionEnabled\":%s",
                table->deletion_protection == HF_YES ? "true" : "false");
    fputc('}', out);
}

struct hf_str hf__cli_table_spec_json(struct hf_scope *s, const struct hf_table_description *table)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text))
        write_table(text.out, table);
    return hf__cli_json_text_end(&text, s);
}
