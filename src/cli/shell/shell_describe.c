/*
 * cli/shell/shell_describe.c: what \d prints: the tables, or all that there is to know about one.
 */
#include "cli/shell/shell.h"

#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

#include <holdfast/pages.h>

#include <stdio.h>

enum { NAME_COLUMN = 12 };

struct describe_settings {
    struct database_settings database;
};

static const struct option_spec describe_specs[] = {
    DATABASE_LIST(struct describe_settings),
};

static const struct options_table describe_options = {
    .name = "shell",
    .operands = "[TABLE]",
    .about = "",
    .specs = describe_specs,
    .len = COMMAND_LEN(describe_specs),
};

/* ---- parts ---------------------------------------------------------------------------------- */

static const char *type_letter(const struct hf_table_description *table, struct hf_str name)
{
    static const char *const letters[] = {
        [HF_SCALAR_S] = "S", [HF_SCALAR_N] = "N", [HF_SCALAR_B] = "B"};

    for (size_t i = 0; i < table->attributes_len; i++)
        if (hf_str_equal(table->attributes[i].name, name))
            return letters[table->attributes[i].type];
    return "?";
}

/* "customer:S,day:N", as `table create --key` takes it. */
static struct hf_str keys_text(struct hf_scope *s, const struct hf_table_description *table,
                               const struct hf_key_element *keys, size_t len)
{
    struct hf_str text = HF_STR("");

    for (size_t i = 0; i < len; i++)
        text = hf_scope_format(s, "%.*s%s%.*s:%s", HF_FMT(text), i ? "," : "", HF_FMT(keys[i].name),
                               type_letter(table, keys[i].name));
    return text;
}

static struct hf_str projection_text(struct hf_scope *s, const struct hf_projection *projection)
{
    struct hf_str text = HF_STR("");

    if (!projection || projection->type == HF_PROJECT_ALL)
        return HF_STR("all attributes");
    if (projection->type == HF_PROJECT_KEYS_ONLY)
        return HF_STR("keys only");
    for (size_t i = 0; i < projection->attributes_len; i++)
        text = hf_scope_format(s, "%.*s%s%.*s", HF_FMT(text), i ? "," : "",
                               HF_FMT(projection->attributes[i]));
    return hf_scope_format(s, "keys and %.*s", HF_FMT(text));
}

static const char *status_text(enum hf_table_status status)
{
    static const char *const texts[] = {"", "creating", "updating", "deleting", "active"};

    return status < COMMAND_LEN(texts) ? texts[status] : "";
}

static uint64_t number_of(int64_t number)
{
    return number == HF_ZERO || number < 0 ? 0 : (uint64_t)number;
}

/* For people; programs get the bytes. */
static struct rows_field size_field(struct cli *cli, int64_t bytes)
{
    static const char *const units[] = {"bytes", "KB", "MB", "GB", "TB", "PB"};
    double size = (double)number_of(bytes);
    size_t unit = 0;

    if (!hf__cli_for_people(cli))
        return hf__rows_number(cli, "bytes", number_of(bytes));
    for (; size >= 1000 && unit + 1 < COMMAND_LEN(units); unit++)
        size /= 1000;
    return hf__rows_text("size",
                         hf_scope_format(cli->scope, "%.*f %s", unit ? 1 : 0, size, units[unit]));
}

/* ---- one table ------------------------------------------------------------------------------ */

static void indexes_print(struct command_ctx *c, const struct hf_table_description *table,
                          const char *kind, const struct hf_index_description *indexes, size_t len)
{
    FILE *out = c->cli->out;

    for (size_t i = 0; i < len; i++) {
        struct hf_str keys =
            keys_text(c->scope, table, indexes[i].key_schema, indexes[i].key_schema_len);

        fprintf(out, "%-*s ", NAME_COLUMN, kind);
        hf__rows_print(out, hf_scope_format(c->scope, "%.*s=%.*s, ", HF_FMT(indexes[i].name),
                                            HF_FMT(keys)));
        hf__rows_print(out, projection_text(c->scope, indexes[i].projection));
        if (indexes[i].status && indexes[i].status != HF_TABLE_ACTIVE)
            fprintf(out, ", %s", status_text(indexes[i].status));
        fputc('\n', out);
    }
}

/* For programs: [{"name":"by_day","key":"day:N"}] */
static struct hf_str indexes_json(struct command_ctx *c, const struct hf_table_description *table)
{
    size_t len = table->global_indexes_len + table->local_indexes_len;
    struct json_text text;

    if (!hf__cli_json_text_begin(&text))
        return (struct hf_str){0};
    fputc('[', text.out);
    for (size_t i = 0; i < len; i++) {
        const struct hf_index_description *index =
            i < table->global_indexes_len ? &table->global_indexes[i]
                                          : &table->local_indexes[i - table->global_indexes_len];

        fprintf(text.out, "%s{\"name\":", i ? "," : "");
        hf__cli_json_write_text(text.out, index->name);
        fputs(",\"key\":", text.out);
        hf__cli_json_write_text(text.out, keys_text(c->scope, table, index->key_schema,
                                                    index->key_schema_len));
        fputc('}', text.out);
    }
    fputc(']', text.out);
    return hf__cli_json_text_end(&text, c->scope);
}

static struct hf_str stream_text(const struct hf_stream_spec *stream)
{
    static const char *const views[] = {"", "new", "old", "new-and-old", "keys"};

    if (!stream || stream->enabled != HF_YES || stream->view >= COMMAND_LEN(views))
        return (struct hf_str){0};
    return hf_str_from(views[stream->view]);
}

/* The attribute that lets items expire; absent: there is none, or nobody may ask. */
static struct hf_str ttl_text(struct command_ctx *c, struct hf_str table)
{
    struct hf_describe_time_to_live_result ttl = {0};

    if (hf_describe_time_to_live(c->scope, c->db,
                                 &(struct hf_describe_time_to_live){.table = table},
                                 &ttl) != HF_OK) {
        hf_scope_ok(c->scope);
        return (struct hf_str){0};
    }
    if (!ttl.description || ttl.description->status == HF_TTL_DISABLED)
        return (struct hf_str){0};
    return ttl.description->attribute;
}

static enum hf_status table_print(struct command_ctx *c, struct hf_str name)
{
    struct hf_describe_table_result result;
    const struct hf_table_description *table;

    TRY(hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = name}, &result));
    table = result.table;
    TRY(COMMAND_PRINT(
        c, hf__rows_text("table", table->name),
        hf__rows_text("key", keys_text(c->scope, table, table->key_schema, table->key_schema_len)),
        hf__rows_text("status", hf_str_from(status_text(table->status))),
        hf__rows_number(c->cli, "items", number_of(table->item_count)),
        size_field(c->cli, table->size_bytes), hf__rows_time(c->cli, "created", table->created_us),
        hf__rows_text("stream", stream_text(table->stream)),
        hf__rows_text("ttl", ttl_text(c, name)),
        (struct rows_field){.name = "indexes", .kind = ROWS_JSON, .text = indexes_json(c, table)},
        hf__rows_text("protected",
                      table->deletion_protection == HF_YES ? HF_STR("yes") : (struct hf_str){0})));
    if (c->database->json || c->database->jsonl)
        return HF_OK;
    indexes_print(c, table, "index", table->global_indexes, table->global_indexes_len);
    indexes_print(c, table, "local index", table->local_indexes, table->local_indexes_len);
    return HF_OK;
}

/* ---- all of them ---------------------------------------------------------------------------- */

static enum hf_status row_print(struct command_ctx *c, struct rows *rows, struct hf_str name)
{
    struct hf_describe_table_result result;
    const struct hf_table_description *table;
    enum hf_status status;

    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    status =
        hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = name}, &result);
    if (status == HF_NOT_FOUND) /* deleted meanwhile */
        return hf_scope_ok(c->scope);
    TRY(status);
    table = result.table;
    COMMAND_ROW(rows, hf__rows_text("table", name),
                hf__rows_text("key",
                              keys_text(c->scope, table, table->key_schema, table->key_schema_len)),
                hf__rows_number(c->cli, "indexes",
                                table->global_indexes_len + table->local_indexes_len),
                hf__rows_number(c->cli, "items", number_of(table->item_count)),
                size_field(c->cli, table->size_bytes));
    return HF_OK;
}

static enum hf_status tables_print(struct command_ctx *c)
{
    struct hf_list_tables request = {.limit = 0};
    struct hf_scope *names = hf_scope_new(NULL);
    struct hf_pages *pages = NULL;
    struct hf_str name = {0};
    enum hf_status status = names ? HF_OK : HF_NOMEM;
    struct rows *rows;

    if (status == HF_OK)
        status = hf_pages_list_tables(c->scope, c->db, &request, NULL, &pages);
    if (status == HF_OK) {
        hf__scope_follow(names, c->scope); /* a signal ends it */
        hf_scope_timeout_ms(names, (uint32_t)c->database->timeout_ms);
        rows = hf__command_rows(c, "tables");
        while ((status = hf_pages_next_table(names, pages, &name)) == HF_OK && name.ptr) {
            struct hf_scope_mark mark = hf_scope_mark(c->scope);

            status = row_print(c, rows, name);
            if (status != HF_OK)
                break;
            hf_scope_rewind(c->scope, mark);
        }
    }
    hf_pages_free(pages);
    if (status != HF_OK && names && hf_scope_error(names)->status != HF_OK)
        status = hf_scope_fail_from(c->scope, status, names);
    hf_scope_free(names);
    return status;
}

static enum hf_status describe_body(struct command_ctx *c)
{
    return c->operands_len ? table_print(c, hf__command_operand(c, 0)) : tables_print(c);
}

static const struct command describe_command = {COMMAND_SETTINGS(struct describe_settings),
                                                .max = 1, .body = describe_body};

int hf__shell_describe(struct shell *shell, const char *table)
{
    const char *const operands[] = {"--", table};

    return hf__shell_call(shell, &describe_command, &describe_options, table ? 2 : 0, operands);
}
