/*
 * cli/table/cmd_table.c: making, listing, showing and deleting tables: `holdfast table ...`.
 */
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/frame/rows.h"
#include "cli/table/table_spec.h"

#include <holdfast/pages.h>
#include <holdfast/table.h>

struct settings {
    struct database_settings database;
    struct hf_str file;
    struct hf_str ttl;
    bool if_missing;
    bool add_indexes;
    bool yes;
    bool no_wait;
};

#define FIELD(member) .offset = offsetof(struct settings, member)

static int print_table(struct cli *cli, const struct database_settings *settings,
                       const struct hf_table_description *table);

/* The table as it is now. */
static int show(struct cli *cli, const char *command, const struct database_settings *settings,
                struct hf_db *db, struct hf_str name)
{
    struct hf_describe_table_result result;

    if (hf_describe_table(cli->scope, db, &(struct hf_describe_table){.table = name}, &result) !=
        HF_OK)
        return hf__database_fail(cli, command);
    return print_table(cli, settings, result.table);
}

/* ---- create --------------------------------------------------------------------------------- */

static const struct option_spec create_specs[] = {
    {.kind = OPTION_TEXT,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text = "The table as DynamoDB's CreateTable has it in JSON; - is standard input.",
     FIELD(file)},
    {.kind = OPTION_FLAG,
     .name = "if-missing",
     .text = "It may be there already: then it is compared with the file, and what differs is an "
             "error (exit code 2).",
     FIELD(if_missing)},
    {.kind = OPTION_FLAG,
     .name = "add-indexes",
     .text = "With --if-missing: add global indexes that the table lacks.",
     FIELD(add_indexes)},
    {.kind = OPTION_TEXT,
     .name = "ttl",
     .value = "ATTRIBUTE",
     .text = "Items expire at the time in this attribute.",
     FIELD(ttl)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example create_examples[] = {
    {"holdfast table create -f orders.json --if-missing",
     "Let the table be there and be like the file; for every start of a program."},
    {"aws dynamodb describe-table ... | jq .Table | ... | holdfast table create -f -",
     "From standard input."},
};

const struct options_table hf__table_create_options = {
    .name = "table create",
    .about = "Make a table and wait until it is active. A file without BillingMode and "
             "ProvisionedThroughput is paid per request.",
    .specs = create_specs,
    .len = COMMAND_LEN(create_specs),
    .examples = create_examples,
    .examples_len = COMMAND_LEN(create_examples),
};

static int create(struct cli *cli, const struct settings *settings, struct hf_db *db,
                  struct hf_create_table *spec)
{
    struct hf_scope *s = cli->scope;
    const struct hf_table_wait_options wait = {.size = sizeof(wait),
                                               .timeout_ms =
                                                   (uint32_t)settings->database.timeout_ms};

    if (!settings->if_missing) {
        if (!spec->billing && !spec->throughput)
            spec->billing = HF_BILLING_PAY_PER_REQUEST;
        if (hf_create_table(s, db, spec, NULL) != HF_OK)
            return hf__database_fail(cli, "table create");
    }
    /* It is there now: wait for it, and switch on what CreateTable cannot. */
    if (hf_table_ensure(s, db, spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = settings->ttl,
                                   .add_indexes = settings->add_indexes, .wait = &wait)) != HF_OK)
        return hf__database_fail(cli, "table create");
    return show(cli, "table create", &settings->database, db, spec->table);
}

int hf__table_create_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct hf_create_table spec;
    struct options options;
    struct hf_str error = {0};
    struct hf_str text;
    struct hf_db *db;
    int ends;

    if (!hf__cli_options(cli, &hf__table_create_options, args_len, args, &settings, &options,
                         &ends))
        return ends;
    if (!settings.file.ptr)
        return hf__cli_fail(cli, "table create", CLI_USAGE, "--file is missing");
    if (settings.add_indexes && !settings.if_missing)
        return hf__cli_fail(cli, "table create", CLI_USAGE, "--add-indexes needs --if-missing");
    text = hf__input_read(cli->scope, settings.file.ptr, TABLE_SPEC_MAX, &error);
    if (!text.ptr)
        return hf__cli_fail(cli, "table create", CLI_USAGE, "%.*s", HF_FMT(error));
    if (!hf__table_spec_read(cli->scope, text, &spec, &error))
        return hf__cli_fail(cli, "table create", CLI_USAGE, "%s: %.*s", settings.file.ptr,
                            HF_FMT(error));
    settings.database.create = true;
    if (!hf__database_open(cli, "table create", &settings.database, &db, &ends))
        return ends;
    ends = create(cli, &settings, db, &spec);
    hf_db_close(db);
    return ends;
}

/* ---- show ----------------------------------------------------------------------------------- */

static const struct option_spec show_specs[] = {
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example show_examples[] = {
    {"holdfast table show orders", "Its keys, indexes and size."},
    {"holdfast table show orders --json | jq .TableStatus", "In DynamoDB's words."},
};

const struct options_table hf__table_show_options = {
    .name = "table show",
    .operands = "NAME",
    .about = "Show a table. With --json it is as DynamoDB's DescribeTable has it.",
    .specs = show_specs,
    .len = COMMAND_LEN(show_specs),
    .examples = show_examples,
    .examples_len = COMMAND_LEN(show_examples),
};

static void print_indexes(struct cli *cli, const struct hf_table_description *table,
                          const char *kind, const struct hf_index_description *indexes, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct hf_str keys = hf__table_spec_keys(cli->scope, table, indexes[i].key_schema,
                                                 indexes[i].key_schema_len);

        fprintf(cli->out, "%-12s ", kind);
        hf__rows_print(cli->out, indexes[i].name);
        fputs(": ", cli->out);
        hf__rows_print(cli->out, keys);
        fprintf(cli->out, "%s%s\n", indexes[i].status ? ", " : "",
                indexes[i].status ? hf__table_spec_status(indexes[i].status) : "");
    }
}

static int print_table(struct cli *cli, const struct database_settings *settings,
                       const struct hf_table_description *table)
{
    struct rows_field fields[7];

    if (settings->quiet)
        return CLI_OK;
    if (settings->json) {
        struct hf_str json = hf__table_spec_json(cli->scope, table);

        if (!json.ptr)
            return hf__cli_fail(cli, "table", CLI_FAILED, "out of memory");
        fprintf(cli->out, "%.*s\n", HF_FMT(json));
        return hf__cli_flushed(cli, CLI_OK);
    }
    fields[0] = hf__rows_text("name", table->name);
    fields[1] = hf__rows_text("status", hf_str_from(hf__table_spec_status(table->status)));
    fields[2] = hf__rows_text("keys", hf__table_spec_keys(cli->scope, table, table->key_schema,
                                                          table->key_schema_len));
    fields[3] = hf__rows_signed(cli, "items", table->item_count == HF_ZERO ? 0 : table->item_count);
    fields[4] = hf__rows_signed(cli, "bytes", table->size_bytes == HF_ZERO ? 0 : table->size_bytes);
    fields[5] = hf__rows_time(cli, "created", table->created_us);
    fields[6] = hf__rows_text("stream", table->stream_arn);
    hf__rows_one(cli, settings, fields, COMMAND_LEN(fields));
    print_indexes(cli, table, "local index", table->local_indexes, table->local_indexes_len);
    print_indexes(cli, table, "index", table->global_indexes, table->global_indexes_len);
    return hf__cli_flushed(cli, CLI_OK);
}

int hf__table_show_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__table_show_options, args_len, args, 1, 1, &settings, &options,
                          &ends) ||
        !hf__database_open(cli, "table show", &settings.database, &db, &ends))
        return ends;
    ends = show(cli, "table show", &settings.database, db, hf_str_from(options.operands[0]));
    hf_db_close(db);
    return ends;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast table ls", "Names, a line each."},
    {"holdfast table ls --db dynamodb://eu-central-1 --profile work", "Of an account at Amazon."},
};

const struct options_table hf__table_ls_options = {
    .name = "table ls",
    .about = "List the tables.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

static int list(struct cli *cli, const struct settings *settings, struct hf_db *db)
{
    struct hf_scope *s = cli->scope;
    struct rows *rows = hf_scope_alloc(s, sizeof(*rows));
    enum hf_status status = rows ? HF_OK : HF_NOMEM;
    struct hf_pages *pages = NULL;
    struct hf_str name = {0};

    if (rows)
        status = hf_pages_list_tables(s, db, &(struct hf_list_tables){.limit = 0}, NULL, &pages);
    if (status != HF_OK)
        return hf__database_fail(cli, "table ls");
    hf__rows_begin(rows, cli, &settings->database, "tables");
    while ((status = hf_pages_next_table(s, pages, &name)) == HF_OK && name.ptr) {
        struct rows_field field = hf__rows_text("name", name);

        hf__rows_add(rows, &field, 1);
    }
    hf_pages_free(pages);
    return hf__rows_end(rows, (struct hf_str){0},
                        status == HF_OK ? (int)CLI_OK : hf__database_fail(cli, "table ls"));
}

int hf__table_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_options(cli, &hf__table_ls_options, args_len, args, &settings, &options, &ends) ||
        !hf__database_open(cli, "table ls", &settings.database, &db, &ends))
        return ends;
    ends = list(cli, &settings, db);
    hf_db_close(db);
    return ends;
}

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    {.kind = OPTION_FLAG,
     .letter = 'y',
     .name = "yes",
     .text = "Yes, delete the table and all that is in it.",
     FIELD(yes)},
    {.kind = OPTION_FLAG,
     .name = "no-wait",
     .text = "Do not wait until it is gone.",
     FIELD(no_wait)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example delete_examples[] = {
    {"holdfast table delete orders --yes", "Without --yes nothing is done."},
};

const struct options_table hf__table_delete_options = {
    .name = "table delete",
    .operands = "NAME",
    .about = "Delete a table with all that is in it, and wait until it is gone.",
    .specs = delete_specs,
    .len = COMMAND_LEN(delete_specs),
    .examples = delete_examples,
    .examples_len = COMMAND_LEN(delete_examples),
};

int hf__table_delete_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.yes = false};
    struct options options;
    struct hf_str name;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__table_delete_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    name = hf_str_from(options.operands[0]);
    if (!settings.yes)
        return hf__cli_fail(cli, "table delete", CLI_USAGE,
                            "table '%s' and all that is in it: add --yes if that is meant",
                            name.ptr);
    if (!hf__database_open(cli, "table delete", &settings.database, &db, &ends))
        return ends;
    if (hf_delete_table(cli->scope, db, &(struct hf_delete_table){.table = name}, NULL) != HF_OK ||
        (!settings.no_wait &&
         hf_table_wait(cli->scope, db, name, HF_TABLE_UNTIL_GONE, NULL) != HF_OK)) {
        ends = hf__database_fail(cli, "table delete");
    } else if (settings.database.json) {
        struct rows_field field = hf__rows_text("name", name);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    } else {
        ends = CLI_OK;
    }
    hf_db_close(db);
    return ends;
}
