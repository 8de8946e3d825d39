/*
 * cli/table/cmd_table_create.c: `holdfast table create`: a table from words of the command line, or the tables
 * of a file (table_file.h).
 *
 * Everything is read and checked before the database is opened: a file with a mistake creates no table.
 */
#include "base/base.h"
#include "cli/frame/options/nearest.h"
#include "cli/frame/process/input.h"
#include "cli/table/table.h"
#include "cli/table/table_file.h"
#include "cli/table/table_words.h"

#include <holdfast/table.h>

#include <string.h>

struct settings {
    struct database_settings database;
    struct hf_str file;
    struct option_list only;
    struct option_list parameters;
    struct table_words words;
    unsigned stream;
    bool protect;
    struct hf_str ttl;
    bool if_missing;
    bool add_indexes;
    bool dry_run;
    struct table_file tables; /* what to create */
};

static const struct option_spec create_specs[] = {
    OPT_TEXT("key", "KEY", words.key,
             "The attributes of the key and their types, S, N or B: customer:S,day:N.",
             .letter = 'k'),
    OPT_LIST("index", "NAME=KEY", words.indexes,
             "A global index: by_day=day:N. It contains all attributes; by_day=day:N/keys has the "
             "keys alone, by_day=day:N/status,total these two as well. May be given several times.",
             .letter = 'i'),
    OPT_LIST("local-index", "NAME=KEY", words.local_indexes,
             "A local index, by its range key: by_total=total:N."),
    OPT_CHOICE("stream", TABLE_STREAM_WORDS, stream,
               "Give the table a stream of its changes, with these images of the items.",
               .fallback = "none"),
    OPT_FLAG("protect", protect, "Refuse to delete the table until that is switched off."),
    OPT_TEXT("ttl", "ATTRIBUTE", ttl,
             "Enable expiry: the attribute that holds the time at which an item expires."),
    OPT_FLAG(
        "if-missing", if_missing,
        "If the table exists, compare it with the definition; a difference is an error (exit code "
        "2). A stream or expiry that the definition has and the table has not is switched on."),
    OPT_FLAG("add-indexes", add_indexes,
             "With --if-missing: add the global indexes that the table lacks."),
    OPT_FLAG("dry-run", dry_run,
             "Create nothing: print the request of CreateTable for each table."),
    OPT_TEXT("file", "FILE", file,
             "A definition as JSON; - is standard input. See below for the formats.", .letter = 'f',
             .heading = "Files"),
    OPT_LIST("only", "TABLE", only,
             "Create this table of the file: its name, or what the file calls it. May be given "
             "several times."),
    OPT_LIST(
        "parameter", "NAME=VALUE", parameters,
        "The value of a parameter or variable in the file: Stage=dev, AWS::Region=eu-west-1. May "
        "be given several times."),
    DATABASE_ONE(struct settings),
};

static const struct option_example create_examples[] = {
    {"holdfast table create orders --key customer:S,day:N --index by_day=day:N --stream new-and-old "
     "--ttl expires",
     "Without a file."},
    {"holdfast table create -f orders.json --if-missing",
     "Create the table if missing, and verify that it matches the file. Safe to run at every "
     "start."},
    {"holdfast table create -f cdk.out/Shop.template.json --parameter Stage=dev",
     "All tables of a CloudFormation template, as the CDK makes it."},
    {"terraform show -json | holdfast table create -f - --only aws_dynamodb_table.orders",
     "One of Terraform's tables."},
};

const struct options_table hf__table_create_options = {
    .name = "table create",
    .operands = "[NAME]",
    .about = "Create a table, or the tables of a file, and wait until they are active. Without "
             "BillingMode and ProvisionedThroughput in the file, a table is billed per request.",
    COMMAND_SPECS(create),
    .notes =
        "A file is the request of DynamoDB's CreateTable; a CloudFormation template in JSON, also "
        "as 'cdk synth' writes it; or Terraform's tables: what 'terraform show -json' prints of a "
        "plan or a state, a state file, or a configuration in *.tf.json.\n\n"
        "Of templates all tables are created, with their indexes, stream, expiry, tags and "
        "protection. Ref, Fn::Sub, Fn::Join, Fn::If, Fn::Select, Fn::Split and Fn::FindInMap are "
        "resolved by the template, the defaults of its parameters and --parameter. A table without "
        "a name gets its logical ID. What holdfast does not use, such as backups, encryption and "
        "replicas, is listed on standard error. With NAME, the one table of the file gets that "
        "name.\n\n"
        "The tables of a template are printed as a list.",
};

/* ---- checking ------------------------------------------------------------------------------- */

static enum hf_status table_from_words(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct table_definition *table =
        hf__cli_table_file_add(&settings->tables, hf__command_operand(c, 0));
    struct hf_stream_spec *stream = hf_scope_alloc(c->scope, sizeof(*stream));
    struct hf_str error = {0};
    struct hf_create_table *spec;

    if (!stream || !table)
        return HF_NOMEM;
    *stream =
        (struct hf_stream_spec){.enabled = HF_YES, .view = hf__cli_table_view(settings->stream)};
    spec = &table->spec;
    spec->table = hf__command_operand(c, 0);
    spec->billing = HF_BILLING_PAY_PER_REQUEST;
    spec->stream = settings->stream ? stream : NULL;
    spec->deletion_protection = settings->protect ? HF_YES : HF_UNSET;
    table->ttl = settings->ttl;
    if (!hf__cli_table_words_read(c->scope, &settings->words, spec, &error))
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    return HF_OK;
}

static bool table_is_called(const struct table_definition *table, struct hf_str word)
{
    return hf_str_equal(table->label, word) || hf_str_equal(table->spec.table, word);
}

static enum hf_status only_fail(struct command_ctx *c, struct hf_str word)
{
    const struct settings *settings = c->settings;
    struct nearest nearest = {.word = word.ptr};

    for (size_t i = 0; i < settings->tables.tables_len; i++) {
        struct hf_str label = hf_scope_copy(c->scope, settings->tables.tables[i].label);
        struct hf_str name = hf_scope_copy(c->scope, settings->tables.tables[i].spec.table);

        if (!label.ptr || !name.ptr)
            return HF_NOMEM;
        hf__nearest_offer(&nearest, label.ptr);
        hf__nearest_offer(&nearest, name.ptr);
    }
    return hf__command_fail(c, CLI_USAGE, "--only: %s has no table '%.*s'%s%s%s",
                            settings->file.ptr, HF_FMT(word),
                            nearest.best ? "; did you mean '" : "",
                            nearest.best ? nearest.best : "", nearest.best ? "'?" : "");
}

/* Leave the tables that --only names. */
static enum hf_status tables_choose(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct table_file *file = &settings->tables;
    size_t kept = 0;

    for (size_t i = 0; i < settings->only.len; i++) {
        bool found = false;

        for (size_t j = 0; j < file->tables_len; j++)
            found |= table_is_called(&file->tables[j], settings->only.values[i]);
        if (!found)
            return only_fail(c, settings->only.values[i]);
    }
    for (size_t i = 0; i < file->tables_len && settings->only.len; i++)
        for (size_t j = 0; j < settings->only.len; j++)
            if (table_is_called(&file->tables[i], settings->only.values[j])) {
                file->tables[kept++] = file->tables[i];
                break;
            }
    if (settings->only.len)
        file->tables_len = kept;
    return HF_OK;
}

static enum hf_status tables_name(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct table_file *file = &settings->tables;

    if (!c->operands_len)
        return HF_OK;
    if (file->tables_len != 1)
        return hf__command_fail(
            c, CLI_USAGE,
            "%s has %zu tables, so '%s' cannot name one of them: choose it with "
            "--only",
            settings->file.ptr, file->tables_len, c->operands[0]);
    file->tables[0].spec.table = hf__command_operand(c, 0);
    return HF_OK;
}

static enum hf_status table_from_file(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct table_file *file = &settings->tables;
    struct hf_str error = {0};
    struct hf_str text = hf__input_read(c->scope, settings->file.ptr, TABLE_FILE_MAX, &error);

    if (!text.ptr)
        return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    if (!hf__cli_table_file_read(file, text))
        return hf__command_fail(c, CLI_USAGE, "%s: %.*s", settings->file.ptr, HF_FMT(file->error));
    TRY(tables_choose(c));
    TRY(tables_name(c));
    if (settings->ttl.ptr && file->tables_len == 1)
        file->tables[0].ttl = settings->ttl;
    else if (settings->ttl.ptr)
        return hf__command_fail(c, CLI_USAGE, "--ttl is for one table, and %s has %zu",
                                settings->file.ptr, file->tables_len);
    if (file->ignored.len && !c->database->quiet)
        hf__cli_notice(c->cli, c->name, "%s: not used: %.*s", settings->file.ptr,
                       HF_FMT(file->ignored));
    if (file->unnamed.len && !c->operands_len && !c->database->quiet)
        hf__cli_notice(c->cli, c->name, "%s: no TableName, so the logical ID is the name: %.*s",
                       settings->file.ptr, HF_FMT(file->unnamed));
    return HF_OK;
}

static enum hf_status table_create_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    bool words = settings->words.key.ptr || settings->words.indexes.len ||
                 settings->words.local_indexes.len || settings->stream || settings->protect;

    settings->tables.s = c->scope;
    settings->tables.parameters = &settings->parameters;
    settings->tables.only = &settings->only;
    if (settings->file.ptr && words)
        return hf__command_fail(c, CLI_USAGE,
                                "--file says all about the table: give it, or a name "
                                "and --key");
    if (!settings->file.ptr && (!c->operands_len || !settings->words.key.ptr))
        return hf__command_fail(c, CLI_USAGE,
                                "give a name and --key, such as customer:S,day:N; or "
                                "--file");
    if (!settings->file.ptr && (settings->only.len || settings->parameters.len))
        return hf__command_fail(c, CLI_USAGE, "%s needs --file",
                                settings->only.len ? "--only" : "--parameter");
    for (size_t i = 0; i < settings->parameters.len; i++)
        if (!memchr(settings->parameters.values[i].ptr, '=', settings->parameters.values[i].len))
            return hf__command_fail(c, CLI_USAGE, "--parameter: '%.*s' is not NAME=VALUE",
                                    HF_FMT(settings->parameters.values[i]));
    if (settings->add_indexes && !settings->if_missing)
        return hf__command_fail(c, CLI_USAGE, "--add-indexes needs --if-missing");
    c->without_db = settings->dry_run;
    return settings->file.ptr ? table_from_file(c) : table_from_words(c);
}

/* ---- creating ------------------------------------------------------------------------------- */

static enum hf_status definition_create(struct command_ctx *c, struct table_definition *table,
                                        const struct hf_table_description **made)
{
    const struct settings *settings = c->settings;
    const struct hf_table_wait_options wait = {.size = sizeof(wait),
                                               .timeout_ms = (uint32_t)c->database->timeout_ms};
    struct hf_create_table *spec = &table->spec;

    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    if (!spec->billing && !spec->throughput)
        spec->billing = HF_BILLING_PAY_PER_REQUEST;
    if (!settings->if_missing)
        TRY(hf_create_table(c->scope, c->db, spec, NULL));
    /* It is there now: wait for it, and switch on what CreateTable cannot. */
    TRY(hf_table_ensure(c->scope, c->db, spec,
                        HF_OPTIONS(hf_table_options, .ttl_attribute = table->ttl,
                                   .add_indexes = settings->add_indexes, .wait = &wait)));
    TRY(hf__cli_table_describe(c, spec->table, made));
    if (spec->deletion_protection == HF_YES && (*made)->deletion_protection != HF_YES)
        return hf__command_fail(c, CLI_CONDITION, "table '%.*s' exists and is not protected",
                                HF_FMT(spec->table));
    return HF_OK;
}

static enum hf_status requests_print(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct table_file *file = &settings->tables;

    for (size_t i = 0; i < file->tables_len; i++) {
        struct table_definition table = file->tables[i];
        struct hf_str json;

        if (!table.spec.billing && !table.spec.throughput)
            table.spec.billing = HF_BILLING_PAY_PER_REQUEST;
        json = hf__cli_table_spec_request(c->scope, &table.spec);
        if (!json.ptr)
            return HF_NOMEM;
        fprintf(c->cli->out, "%.*s\n", HF_FMT(json));
        if (table.ttl.ptr && !c->database->quiet)
            hf__cli_notice(c->cli, c->name, "then, items of '%.*s' expire by attribute '%.*s'",
                           HF_FMT(table.spec.table), HF_FMT(table.ttl));
    }
    return HF_OK;
}

static void row_add(struct command_ctx *c, struct rows *rows,
                    const struct hf_table_description *table)
{
    if (c->database->json || c->database->jsonl) {
        COMMAND_ROW(rows, (struct rows_field){.name = "table",
                                              .text = hf__cli_table_spec_json(c->scope, table),
                                              .kind = ROWS_WHOLE});
        return;
    }
    COMMAND_ROW(rows, hf__rows_text("name", table->name),
                hf__rows_text("status", hf_str_from(hf__cli_table_spec_status(table->status))),
                hf__rows_text("keys", hf__cli_table_spec_keys(c->scope, table, table->key_schema,
                                                              table->key_schema_len)),
                hf__rows_number(c->cli, "indexes",
                                table->global_indexes_len + table->local_indexes_len));
}

static enum hf_status table_create(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct table_file *file = &settings->tables;
    const struct hf_table_description *made = NULL;
    struct rows *rows;

    assert(file->tables_len);
    if (settings->dry_run)
        return requests_print(c);
    if (!file->is_template) {
        TRY(definition_create(c, &file->tables[0], &made));
        return hf__cli_table_print(c, made);
    }
    rows = hf__command_rows(c, "tables");
    for (size_t i = 0; i < file->tables_len; i++) {
        enum hf_status status = definition_create(c, &file->tables[i], &made);

        if (status != HF_OK && i > 0 && !c->database->quiet)
            hf__cli_notice(c->cli, c->name, "%zu of %zu tables were created before this error", i,
                           file->tables_len);
        TRY(status);
        row_add(c, rows, made);
    }
    return HF_OK;
}

const struct command hf__table_create_command = {COMMAND_SETTINGS(struct settings), .max = 1,
                                                 .table = COMMAND_MAKES,
                                                 .check = table_create_check, .body = table_create};
