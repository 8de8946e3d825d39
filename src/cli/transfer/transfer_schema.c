/*
 * cli/transfer/transfer_schema.c: the table of an export as JSON, so that an import can make it again.
 *
 * It is the request of CreateTable, as `holdfast table create --file` and aws dynamodb create-table
 * take it, and one member more, TimeToLiveSpecification, under the name that CloudFormation has for it.
 */
#include "cli/transfer/transfer.h"

#include "cli/frame/json.h"
#include "cli/table/table_spec.h"

#include <string.h>

static const char ttl_member[] = "TimeToLiveSpecification";

/* ---- writing -------------------------------------------------------------------------------- */

static void keys_write(FILE *out, const struct hf_key_element *keys, size_t len)
{
    fputs("\"KeySchema\":[", out);
    for (size_t i = 0; i < len; i++) {
        fputs(i ? ",{\"AttributeName\":" : "{\"AttributeName\":", out);
        hf__cli_json_write_text(out, keys[i].name);
        fprintf(out, ",\"KeyType\":\"%s\"}", keys[i].type == HF_KEY_HASH ? "HASH" : "RANGE");
    }
    fputc(']', out);
}

static void attributes_write(FILE *out, const struct hf_table_description *table)
{
    static const char *const types[] = {"S", "S", "N", "B"};

    fputs(",\n \"AttributeDefinitions\":[", out);
    for (size_t i = 0; i < table->attributes_len; i++) {
        fputs(i ? ",{\"AttributeName\":" : "{\"AttributeName\":", out);
        hf__cli_json_write_text(out, table->attributes[i].name);
        fprintf(out, ",\"AttributeType\":\"%s\"}", types[table->attributes[i].type & 3]);
    }
    fputc(']', out);
}

static void projection_write(FILE *out, const struct hf_projection *projection)
{
    static const char *const types[] = {"ALL", "ALL", "KEYS_ONLY", "INCLUDE"};

    fprintf(out, ",\"Projection\":{\"ProjectionType\":\"%s\"",
            types[projection ? projection->type & 3 : 1]);
    if (projection && projection->attributes_len) {
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

/* Of tables that are billed per request all numbers are 0, and there is no such member then. */
static void throughput_write(FILE *out, const struct hf_throughput_description *throughput)
{
    if (throughput && throughput->read_units > 0 && throughput->write_units > 0)
        fprintf(out,
                ",\"ProvisionedThroughput\":{\"ReadCapacityUnits\":%lld,"
                "\"WriteCapacityUnits\":%lld}",
                (long long)throughput->read_units, (long long)throughput->write_units);
}

static void indexes_write(FILE *out, const char *name, const struct hf_index_description *indexes,
                          size_t len)
{
    if (!len)
        return;
    fprintf(out, ",\n \"%s\":[", name);
    for (size_t i = 0; i < len; i++) {
        fputs(i ? ",\n  {\"IndexName\":" : "\n  {\"IndexName\":", out);
        hf__cli_json_write_text(out, indexes[i].name);
        fputc(',', out);
        keys_write(out, indexes[i].key_schema, indexes[i].key_schema_len);
        projection_write(out, indexes[i].projection);
        throughput_write(out, indexes[i].throughput);
        fputc('}', out);
    }
    fputc(']', out);
}

static void billing_write(FILE *out, const struct hf_table_description *table)
{
    bool provisioned = table->throughput && table->throughput->read_units > 0 &&
                       table->throughput->write_units > 0;

    fprintf(out, ",\n \"BillingMode\":\"%s\"", provisioned ? "PROVISIONED" : "PAY_PER_REQUEST");
    throughput_write(out, table->throughput);
}

static void stream_write(FILE *out, const struct hf_table_description *table)
{
    static const char *const views[] = {"", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES",
                                        "KEYS_ONLY"};

    if (!table->stream || table->stream->enabled != HF_YES || !table->stream->view ||
        (size_t)table->stream->view >= sizeof(views) / sizeof(views[0]))
        return;
    fprintf(out, ",\n \"StreamSpecification\":{\"StreamEnabled\":true,\"StreamViewType\":\"%s\"}",
            views[table->stream->view]);
}

struct hf_str hf__transfer_schema_json(struct hf_scope *s, const struct hf_table_description *table,
                                       struct hf_str ttl)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text)) {
        FILE *out = text.out;

        fputs("{\"TableName\":", out);
        hf__cli_json_write_text(out, table->name);
        attributes_write(out, table);
        fputs(",\n ", out);
        keys_write(out, table->key_schema, table->key_schema_len);
        indexes_write(out, "LocalSecondaryIndexes", table->local_indexes, table->local_indexes_len);
        indexes_write(out, "GlobalSecondaryIndexes", table->global_indexes,
                      table->global_indexes_len);
        billing_write(out, table);
        stream_write(out, table);
        if (table->deletion_protection == HF_YES)
            fputs(",\n \"DeletionProtectionEnabled\":true", out);
        if (ttl.ptr) {
            fprintf(out, ",\n \"%s\":{\"AttributeName\":", ttl_member);
            hf__cli_json_write_text(out, ttl);
            fputs(",\"Enabled\":true}", out);
        }
        fputs("}\n", out);
    }
    return hf__cli_json_text_end(&text, s);
}

/* ---- reading -------------------------------------------------------------------------------- */

/* The members of the object that CreateTable knows, as an object again. */
static struct hf_str request_text(struct hf_scope *s, const struct json_node *json)
{
    struct json_text text;
    bool more = false;

    if (hf__cli_json_text_begin(&text)) {
        fputc('{', text.out);
        for (const struct json_node *at = json->first; at; at = at->next) {
            if (hf_str_equal(at->name, hf_str_from(ttl_member)))
                continue;
            if (more)
                fputc(',', text.out);
            hf__cli_json_write_text(text.out, at->name);
            fprintf(text.out, ":%.*s", HF_FMT(at->raw));
            more = true;
        }
        fputc('}', text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

bool hf__transfer_schema_read(struct hf_scope *s, struct hf_str text, struct hf_create_table *spec,
                              struct hf_str *ttl, struct hf_str *error)
{
    const struct json_node *json = hf__cli_json_read(s, text, error);
    const struct json_node *expiry, *enabled;

    *ttl = (struct hf_str){0};
    if (!json)
        return false;
    if (json->kind != JSON_OBJECT) {
        *error = HF_STR("expected the request of CreateTable as an object");
        return false;
    }
    expiry = hf__cli_json_member(json, ttl_member);
    if (expiry) {
        enabled = hf__cli_json_member(expiry, "Enabled");
        if (enabled && enabled->kind == JSON_TRUE)
            *ttl = hf__transfer_state_text(expiry, "AttributeName");
    }
    text = request_text(s, json);
    if (!text.ptr) {
        *error = HF_STR("out of memory");
        return false;
    }
    json = hf__cli_json_read(s, text, error);
    return json && hf__cli_table_spec_read(s, json, spec, error);
}

struct hf_str hf__transfer_schema_path(struct hf_scope *s, const char *data_path)
{
    const char *slash = strrchr(data_path, '/');
    size_t len = slash ? (size_t)(slash - data_path) + 1 : 0;
    struct hf_str stem = hf__transfer_stem(s, data_path);

    return hf_scope_format(s, "%.*s%.*s%s", (int)len, data_path, HF_FMT(stem), TRANSFER_SCHEMA_END);
}
