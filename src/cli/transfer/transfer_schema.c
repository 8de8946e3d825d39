/*
 * cli/transfer/transfer_schema.c: the table of an export as JSON, so that an import can make it again.
 *
 * It is the request of CreateTable, as aws dynamodb create-table takes it, and one member more,
 * TimeToLiveSpecification, under the name that CloudFormation has for it. `holdfast table create --file`
 * takes it, too; and an import takes all that it takes, if that is one table.
 */
#include "cli/transfer/transfer.h"

#include "cli/frame/output/json.h"
#include "cli/table/table_file.h"

#include <assert.h>
#include <string.h>

struct hf_str hf__transfer_schema_json(struct hf_scope *s, const struct hf_table_description *table,
                                       struct hf_str ttl)
{
    struct hf_create_table spec;
    struct hf_str request = {0};
    struct json_text text;

    if (hf__cli_table_spec_of(s, table, &spec) == HF_OK)
        request = hf__cli_table_spec_request(s, &spec);
    if (!request.ptr)
        return request;
    assert(request.len > 2 && request.ptr[request.len - 1] == '}');
    if (hf__cli_json_text_begin(&text)) {
        fprintf(text.out, "%.*s", (int)request.len - 1, request.ptr);
        if (ttl.ptr) {
            fputs(",\"" TABLE_TTL_MEMBER "\":{\"AttributeName\":", text.out);
            hf__cli_json_write_text(text.out, ttl);
            fputs(",\"Enabled\":true}", text.out);
        }
        fputs("}\n", text.out);
    }
    return hf__cli_json_text_end(&text, s);
}

bool hf__transfer_schema_read(struct hf_scope *s, struct hf_str text, struct hf_create_table *spec,
                              struct hf_str *ttl, struct hf_str *error)
{
    struct table_file file = {.s = s};

    if (!hf__cli_table_file_read(&file, text)) {
        *error = file.error;
        return false;
    }
    if (file.tables_len != 1) {
        *error = hf_scope_format(s, "expected one table, and there are %zu", file.tables_len);
        return false;
    }
    *spec = file.tables[0].spec;
    *ttl = file.tables[0].ttl;
    return true;
}

struct hf_str hf__transfer_schema_path(struct hf_scope *s, const char *data_path)
{
    const char *slash = strrchr(data_path, '/');
    size_t len = slash ? (size_t)(slash - data_path) + 1 : 0;
    struct hf_str stem = hf__transfer_stem(s, data_path);

    return hf_scope_format(s, "%.*s%.*s%s", (int)len, data_path, HF_FMT(stem), TRANSFER_SCHEMA_END);
}
