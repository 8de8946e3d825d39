/*
 * cli/table/cmd_table.c: listing, showing and deleting tables: `holdfast table ...`.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/confirm.h"
#include "cli/table/table.h"

#include <holdfast/pages.h>
#include <holdfast/table.h>

struct settings {
    struct database_settings database;
    bool yes;
    bool no_wait;
};

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

static enum hf_status table_show(struct command_ctx *c)
{
    const struct hf_table_description *table;

    TRY(hf__cli_table_describe(c, hf__command_operand(c, 0), &table));
    return hf__cli_table_print(c, table);
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
    OPT_FLAG("yes", yes,
             "Do not ask. Where there is no terminal to ask on, nothing is deleted without it.",
             .letter = 'y'),
    OPT_FLAG("no-wait", no_wait, "Do not wait until the table is deleted."),
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

    return hf__command_confirm_now(c, settings->yes, "deletes table '%s' and everything in it",
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
