/*
 * cli/table/table.c: what the commands for tables share. See table.h.
 */
#include "cli/table/table.h"

#include "base/base.h"

/* ---- streams -------------------------------------------------------------------------------- */

static const struct {
    enum hf_stream_view view;
    const char *word;
} views[] = {{0, "none"},
             {HF_VIEW_NEW_AND_OLD_IMAGES, "new-and-old"},
             {HF_VIEW_NEW_IMAGE, "new"},
             {HF_VIEW_OLD_IMAGE, "old"},
             {HF_VIEW_KEYS_ONLY, "keys"}};

enum hf_stream_view hf__cli_table_view(unsigned word)
{
    assert(word < ARRAY_LEN(views));
    return views[word].view;
}

const char *hf__cli_table_view_word(enum hf_stream_view view)
{
    for (size_t i = 0; i < ARRAY_LEN(views); i++)
        if (views[i].view == view)
            return views[i].word;
    return "?";
}

/* ---- asking the database -------------------------------------------------------------------- */

enum hf_status hf__cli_table_describe(struct command_ctx *c, struct hf_str name,
                                      const struct hf_table_description **table)
{
    struct hf_describe_table_result result;

    TRY(hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = name}, &result));
    *table = result.table;
    return HF_OK;
}

enum hf_status hf__cli_table_ttl(struct command_ctx *c, struct hf_db *db, struct hf_str name,
                                 struct hf_str *attribute)
{
    struct hf_describe_time_to_live_result result;

    *attribute = (struct hf_str){0};
    TRY(hf_describe_time_to_live(c->scope, db, &(struct hf_describe_time_to_live){.table = name},
                                 &result));
    if (result.description && (result.description->status == HF_TTL_ENABLED ||
                               result.description->status == HF_TTL_ENABLING))
        *attribute = result.description->attribute;
    return HF_OK;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_indexes(struct cli *cli, const struct hf_table_description *table,
                          const char *kind, const struct hf_index_description *indexes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct hf_str keys = hf__cli_table_spec_keys(cli->scope, table, indexes[i].key_schema,
                                                     indexes[i].key_schema_len);

        fprintf(cli->out, "%-12s ", kind);
        hf__rows_print(cli->out, indexes[i].name);
        fputs(": ", cli->out);
        hf__rows_print(cli->out, keys);
        fprintf(cli->out, "%s%s\n", indexes[i].status ? ", " : "",
                indexes[i].status ? hf__cli_table_spec_status(indexes[i].status) : "");
    }
}

enum hf_status hf__cli_table_print(struct command_ctx *c, const struct hf_table_description *table)
{
    struct cli *cli = c->cli;

    if (c->database->quiet)
        return HF_OK;
    if (c->database->json) {
        struct hf_str json = hf__cli_table_spec_json(c->scope, table);

        if (!json.ptr)
            return hf__command_fail(c, CLI_FAILED, "out of memory");
        fprintf(cli->out, "%.*s\n", HF_FMT(json));
        return HF_OK;
    }
    TRY(COMMAND_PRINT(
        c, hf__rows_text("name", table->name),
        hf__rows_text("status", hf_str_from(hf__cli_table_spec_status(table->status))),
        hf__rows_text("keys", hf__cli_table_spec_keys(c->scope, table, table->key_schema,
                                                      table->key_schema_len)),
        hf__rows_signed(cli, "items", table->item_count == HF_ZERO ? 0 : table->item_count),
        hf__rows_signed(cli, "bytes", table->size_bytes == HF_ZERO ? 0 : table->size_bytes),
        hf__rows_time(cli, "created", table->created_us),
        hf__rows_text("stream", table->stream_arn)));
    print_indexes(cli, table, "local index", table->local_indexes, table->local_indexes_len);
    print_indexes(cli, table, "index", table->global_indexes, table->global_indexes_len);
    return HF_OK;
}
