/*
 * cli/table/cmd_table.c: making, listing, showing and deleting tables: `holdfast table ...`.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/table/table_spec.h"
#include "cli/table/table_words.h"

#include <holdfast/pages.h>
#include <holdfast/table.h>

struct settings {
    struct database_settings database;
    struct hf_str file;
    struct table_words words;
    unsigned stream;
    bool protect;
    struct hf_str ttl;
    bool if_missing;
    bool add_indexes;
    bool yes;
    bool no_wait;
    struct hf_create_table spec; /* what the file says */
};

#define FIELD(member) .offset = offsetof(struct settings, member)

static enum hf_status table_print(struct command_ctx *c, const struct hf_table_description *table);

/* The table as it is now. */
static enum hf_status table_describe(struct command_ctx *c, struct hf_str name)
{
    struct hf_describe_table_result result;

    TRY(hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = name}, &result));
    return table_print(c, result.table);
}

/* ---- create --------------------------------------------------------------------------------- */

enum { STREAM_NONE, STREAM_NEW_AND_OLD, STREAM_NEW, STREAM_OLD, STREAM_KEYS };

static const struct option_spec create_specs[] = {
    {.kind = OPTION_TEXT,
     .letter = 'k',
     .name = "key",
     .value = "KEY",
     .text = "The attributes of the key and their types, S, N or B: customer:S,day:N.",
     FIELD(words.key)},
    {.kind = OPTION_LIST,
     .letter = 'i',
     .name = "index",
     .value = "NAME=KEY",
     .text = "A global index: by_day=day:N. It contains all attributes; by_day=day:N/keys has the "
             "keys alone, by_day=day:N/status,total these two as well. May be given several times.",
     FIELD(words.indexes)},
    {.kind = OPTION_LIST,
     .name = "local-index",
     .value = "NAME=KEY",
     .text = "A local index, by its range key: by_total=total:N.",
     FIELD(words.local_indexes)},
    {.kind = OPTION_CHOICE,
     .name = "stream",
     .value = "VIEW",
     .choices = "none new-and-old new old keys",
     .fallback = "none",
     .text = "Give the table a stream of its changes, with these images of the items.",
     FIELD(stream)},
    {.kind = OPTION_FLAG,
     .name = "protect",
     .text = "Refuse to delete the table until that is switched off.",
     FIELD(protect)},
    {.kind = OPTION_TEXT,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text = "The request of DynamoDB's CreateTable as JSON; - is standard input.",
     FIELD(file)},
    {.kind = OPTION_FLAG,
     .name = "if-missing",
     .text =
         "If the table exists, compare it with the file; a difference is an error (exit code 2).",
     FIELD(if_missing)},
    {.kind = OPTION_FLAG,
     .name = "add-indexes",
     .text = "With --if-missing: add the global indexes that the table lacks.",
     FIELD(add_indexes)},
    {.kind = OPTION_TEXT,
     .name = "ttl",
     .value = "ATTRIBUTE",
     .text = "Enable expiry: the attribute that holds the time at which an item expires.",
     FIELD(ttl)},
    DATABASE_ONE(struct settings),
};

static const struct option_example create_examples[] = {
    {"holdfast table create orders --key customer:S,day:N --index by_day=day:N --stream new-and-old "
     "--ttl expires",
     "Without a file."},
    {"holdfast table create -f orders.json --if-missing",
     "Create the table if missing, and verify that it matches the file. Safe to run at every "
     "start."},
    {"aws dynamodb describe-table ... | jq .Table | ... | holdfast table create -f -",
     "From standard input."},
};

const struct options_table hf__table_create_options = {
    .name = "table create",
    .operands = "[NAME]",
    .about = "Create a table and wait until it is active. Without BillingMode and "
             "ProvisionedThroughput in the file, the table is billed per request.",
    COMMAND_SPECS(create),
};

static enum hf_status table_from_words(struct command_ctx *c)
{
    static const enum hf_stream_view views[] = {[STREAM_NEW_AND_OLD] = HF_VIEW_NEW_AND_OLD_IMAGES,
                                                [STREAM_NEW] = HF_VIEW_NEW_IMAGE,
                                                [STREAM_OLD] = HF_VIEW_OLD_IMAGE,
                                                [STREAM_KEYS] = HF_VIEW_KEYS_ONLY};
    struct settings *settings = c->settings;
    struct hf_create_table *spec = &settings->spec;
    struct hf_stream_spec *stream = hf_scope_alloc(c->scope, sizeof(*stream));
    struct hf_str error = {0};

    if (!stream)
        return HF_NOMEM;
    *stream = (struct hf_stream_spec){.enabled = HF_YES, .view = views[settings->stream]};
    spec->table = hf__command_operand(c, 0);
    spec->billing = HF_BILLING_PAY_PER_REQUEST;
    spec->stream = settings->stream ? stream : NULL;
    spec->deletion_protection = settings->protect ? HF_YES : HF_UNSET;
    if (!hf__cli_table_words_read(c->scope, &settings->words, spec, &error))
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    return HF_OK;
}

static enum hf_status table_create_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str error = {0};
    struct hf_str text;
    bool words = settings->words.key.ptr || settings->words.indexes.len ||
                 settings->words.local_indexes.len || settings->stream || settings->protect;

    if (settings->file.ptr && (words || c->operands_len))
        return hf__command_fail(c, CLI_USAGE,
                                "--file says all about the table: give it, or a name "
                                "and --key");
    if (!settings->file.ptr && (!c->operands_len || !settings->words.key.ptr))
        return hf__command_fail(c, CLI_USAGE,
                                "give a name and --key, such as customer:S,day:N; or "
                                "--file");
    if (settings->add_indexes && !settings->if_missing)
        return hf__command_fail(c, CLI_USAGE, "--add-indexes needs --if-missing");
    if (!settings->file.ptr)
        return table_from_words(c);
    text = hf__input_read(c->scope, settings->file.ptr, TABLE_SPEC_MAX, &error);
    if (!text.ptr)
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    if (!hf__cli_table_spec_read(c->scope, text, &settings->spec, &error))
        return hf__command_fail(c, CLI_USAGE, "%s: %.*s", settings->file.ptr, HF_FMT(error));
    return HF_OK;
}

static enum hf_status table_create(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_create_table *spec = &settings->spec;
    const struct hf_table_wait_options wait = {.size = sizeof(wait),
                                               .timeout_ms = (uint32_t)c->database->timeout_ms};
    struct hf_describe_table_result result;

    if (!settings->if_missing) {
        if (!spec->billing && !spec->throughput)
            spec->billing = HF_BILLING_PAY_PER_REQUEST;
        TRY(hf_create_table(c->scope, c->db, spec, NULL));
    }
    /* It is there now: wait for it, and switch on what CreateTable cannot. */
    TRY(hf_table_ensure(c->scope, c->db, spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = settings->ttl,
                                   .add_indexes = settings->add_indexes, .wait = &wait)));
    TRY(hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = spec->table},
                          &result));
    if (spec->deletion_protection == HF_YES && result.table->deletion_protection != HF_YES)
        return hf__command_fail(c, CLI_CONDITION, "table '%.*s' exists and is not protected",
                                HF_FMT(spec->table));
    return table_print(c, result.table);
}

const struct command hf__table_create_command = {COMMAND_SETTINGS(struct settings), .max = 1,
                                                 .table = COMMAND_MAKES,
                                                 .check = table_create_check, .body = table_create};

/* ---- show ----------------------------------------------------------------------------------- */

static const struct option_spec show_specs[] = {
    DATABASE_ONE(struct settings),
};

static const struct option_example show_examples[] = {
    {"holdfast table show orders", "Its keys, indexes and size."},
    {"holdfast table show orders --json | jq .TableStatus",
     "As DynamoDB's DescribeTable names it."},
};

const struct options_table hf__table_show_options = {
    .name = "table show",
    .operands = "TABLE",
    .about = "Show a table. With --json the output is that of DynamoDB's DescribeTable.",
    COMMAND_SPECS(show),
};

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

static enum hf_status table_print(struct command_ctx *c, const struct hf_table_description *table)
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

static enum hf_status table_show(struct command_ctx *c)
{
    return table_describe(c, hf__command_operand(c, 0));
}

const struct command hf__table_show_command = {COMMAND_SETTINGS(struct settings), .min = 1,
                                               .max = 1, .body = table_show};

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast table ls", "Names, one per line."},
    {"holdfast table ls --db dynamodb://eu-central-1 --profile work",
     "The tables of an AWS account."},
};

const struct options_table hf__table_ls_options = {
    .name = "table ls",
    .about = "List the tables.",
    COMMAND_SPECS(ls),
};

static enum hf_status tables_list(struct command_ctx *c)
{
    struct hf_list_tables request = {.limit = 0};
    struct hf_pages *pages = NULL;
    struct hf_str name = {0};
    enum hf_status status;
    struct rows *rows;

    TRY(hf_pages_list_tables(c->scope, c->db, &request, NULL, &pages));
    rows = hf__command_rows(c, "tables");
    while ((status = hf_pages_next_table(c->scope, pages, &name)) == HF_OK && name.ptr)
        COMMAND_ROW(rows, hf__rows_text("name", name));
    hf_pages_free(pages);
    return status;
}

const struct command hf__table_ls_command = {COMMAND_SETTINGS(struct settings),
                                             .body = tables_list};

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    {.kind = OPTION_FLAG,
     .letter = 'y',
     .name = "yes",
     .text = "Confirm that the table and everything in it is deleted.",
     FIELD(yes)},
    {.kind = OPTION_FLAG,
     .name = "no-wait",
     .text = "Do not wait until the table is deleted.",
     FIELD(no_wait)},
    DATABASE_ONE(struct settings),
};

static const struct option_example delete_examples[] = {
    {"holdfast table delete orders --yes", "Without --yes nothing is deleted."},
};

const struct options_table hf__table_delete_options = {
    .name = "table delete",
    .operands = "TABLE",
    .about = "Delete a table and everything in it, and wait until it is deleted.",
    COMMAND_SPECS(delete),
};

static enum hf_status table_delete_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->yes)
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE,
                            "this deletes table '%s' and everything in it: add --yes to confirm",
                            c->operands[0]);
}

static enum hf_status table_delete(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str name = hf__command_operand(c, 0);

    TRY(hf_delete_table(c->scope, c->db, &(struct hf_delete_table){.table = name}, NULL));
    if (!settings->no_wait)
        TRY(hf_table_wait(c->scope, c->db, name, HF_TABLE_UNTIL_GONE, NULL));
    return COMMAND_JSON(c, hf__rows_text("name", name));
}

const struct command hf__table_delete_command = {COMMAND_SETTINGS(struct settings), .min = 1,
                                                 .max = 1, .check = table_delete_check,
                                                 .body = table_delete};
