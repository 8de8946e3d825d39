/*
 * cli/transfer/cmd_export.c: `holdfast export`: which tables, in which format, to where. export_table.c does the
 * work.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/transfer/export_table.h"

#include <holdfast/pages.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

struct settings {
    struct database_settings database;
    struct hf_str to;
    unsigned format; /* enum transfer_format */
    bool gzip;
    bool all;
    bool to_dir; /* `to` ended with a slash, which is taken off */
    struct hf_str columns;
    bool no_schema;
    bool consistent;
    uint64_t parallel;
    uint64_t rate;
    bool resume;
    bool overwrite;
    bool dry_run;
    bool progress;
    struct transfer_columns columns_read;
};

static const struct option_spec export_specs[] = {
    OPT_TEXT(
        "to", "PATH", to,
        "Where to write: a file; a directory, in which each table gets a file of its name; or - "
        "for standard output.",
        .letter = 'o', .fallback = "-"),
    OPT_CHOICE(
        "format", TRANSFER_FORMATS, format,
        "jsonl: a line of plain JSON for each item. dynamodb: a line of DynamoDB's JSON. csv: a "
        "header such as name:S,age:N and a record for each item. aws: the folder that "
        "DynamoDB's export to S3 makes. auto: what the end of the file's name says, or jsonl.",
        .letter = 'f', .fallback = "auto"),
    OPT_FLAG("gzip", gzip, "Compress with gzip; so do names that end with .gz, and the format aws.",
             .letter = 'z'),
    OPT_FLAG("all", all, "Export all tables."),
    OPT_TEXT("columns", "LIST", columns,
             "With csv: only these attributes, NAME:TYPE with commas between them. Otherwise the "
             "table is read twice, the first time to find them all."),
    OPT_FLAG("no-schema", no_schema,
             "Do not write the definition of the table beside the data (TABLE" TRANSFER_SCHEMA_END
             ")."),
    OPT_FLAG("resume", resume,
             "Continue an export that was interrupted. Tables that are complete are left as they "
             "are; with the format aws, those of which a complete export is in the directory."),
    OPT_FLAG("overwrite", overwrite,
             "Replace files that exist. They stay as they are until the new ones are complete."),
    OPT_FLAG(
        "dry-run", dry_run,
        "Write nothing; print which tables would be exported to where, and about how large they "
        "are."),
    OPT_NUMBER(
        "parallel", parallel, 1, TRANSFER_PARALLEL_MAX,
        "Read a table in so many segments at the same time. The format aws has a file for each "
        "of them.",
        .letter = 'p', .fallback = "1", .heading = "Speed"),
    OPT_NUMBER(
        "rate", rate, 1, UINT32_MAX,
        "Read at most so many items a second, on average, to spare the capacity of a table that "
        "is in use."),
    OPT_FLAG("consistent", consistent,
             "Read strongly consistent; a service charges twice as much for that."),
    OPT_FLAG("json", database.json, "Print the result as a JSON object.", .heading = "Output"),
    OPT_FLAG("progress", progress,
             "Print progress on standard error, a line a second, also if it is no terminal."),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS_WITH(
        struct settings,
        "Time limit for the database, for each page that is read; then the exit code "
        "is 7."),
};

static const struct option_example export_examples[] = {
    {"holdfast export orders > orders.jsonl", "Plain JSON, a line for each item."},
    {"holdfast export orders --to orders.csv", "A table for spreadsheets, with types."},
    {"holdfast export --all --to backup/ --gzip", "Every table, with its definition."},
    {"holdfast export orders --to backup --format aws --parallel 4",
     "As DynamoDB's export to S3 makes it, in four files."},
    {"holdfast export orders --to orders.jsonl.gz --resume", "Continue after an interruption."},
    {"holdfast export orders --db http://127.0.0.1:8000 | holdfast import - --table orders --db "
     "embedded:copy.db",
     "From one database to another."},
};

const struct options_table hf__export_options = {
    .name = "export",
    .operands = "[TABLE...]",
    .about =
        "Write the items of tables to files or to standard output. A file gets its name when all of "
        "it is written; until then it is called NAME.part. Beside it goes the definition of the "
        "table, from which 'holdfast import' makes the table again: keys, indexes, stream and "
        "expiry.\n\nNo format loses anything: numbers keep all their digits, sets, bytes and empty "
        "strings stay what they are.",
    COMMAND_SPECS(export),
    .notes =
        "A service is read by a scan, which is not a snapshot: an item that changes during the "
        "export is there once, as before or as after the change, and one that is stored or deleted "
        "meanwhile is there or not. A directory (embedded:DIR) cannot "
        "change meanwhile, so its export is exactly what it holds.\n\nIn CSV an empty cell is an "
        "attribute that the item does not have, and \"\" is an empty string. Sets, lists and maps "
        "are JSON. An attribute with several types has several columns.\n\nCtrl-C, a crash or a "
        "full disk leave NAME.part and NAME.export-state; --resume continues there. Exit codes: 0 "
        "all was exported, 3 no such table, 4 the file exists or its state does not fit. For others "
        "see holdfast(1).",
};

/* ---- where to ------------------------------------------------------------------------------- */

static bool is_directory(const char *path)
{
    struct stat about;

    return stat(path, &about) == 0 && S_ISDIR(about.st_mode);
}

static bool to_stdout(const struct settings *settings)
{
    return hf_str_equal(settings->to, HF_STR("-"));
}

static bool to_directory(const struct command_ctx *c, const struct settings *settings)
{
    return settings->all || c->operands_len > 1 || settings->format == TRANSFER_AWS ||
           settings->to_dir || is_directory(settings->to.ptr);
}

static enum hf_status export_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str error = {0};

    if (!settings->all && !c->operands_len)
        return hf__command_fail(c, CLI_USAGE, "name a table, or give --all");
    if (settings->all && c->operands_len)
        return hf__command_fail(c, CLI_USAGE, "give names of tables, or --all");
    while (settings->to.len > 1 && hf__transfer_ends_with(settings->to.ptr, "/")) {
        settings->to_dir = true;
        settings->to = hf_scope_copy(c->scope, hf_str_of(settings->to.ptr, settings->to.len - 1));
        if (!settings->to.ptr)
            return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    }
    if (settings->format == TRANSFER_AUTO) {
        settings->format = hf__transfer_format_of(settings->to.ptr);
        if (settings->format == TRANSFER_AUTO)
            settings->format = TRANSFER_JSONL;
    }
    if (to_stdout(settings) &&
        (settings->all || c->operands_len > 1 || settings->format == TRANSFER_AWS))
        return hf__command_fail(c, CLI_USAGE, "%s needs a directory: --to DIR",
                                settings->format == TRANSFER_AWS ? "the format aws"
                                                                 : "an export of several tables");
    if (to_stdout(settings) && (settings->resume || settings->overwrite))
        return hf__command_fail(c, CLI_USAGE, "--%s needs a file: --to FILE",
                                settings->resume ? "resume" : "overwrite");
    settings->gzip = settings->gzip || settings->format == TRANSFER_AWS ||
                     hf__transfer_ends_with(settings->to.ptr, ".gz");
    if (to_stdout(settings) && settings->gzip && c->cli->terminal)
        return hf__command_fail(c, CLI_USAGE,
                                "compressed data is not for a terminal: give --to FILE");
    if (settings->columns.ptr && settings->format != TRANSFER_CSV)
        return hf__command_fail(c, CLI_USAGE, "--columns needs --format csv");
    if (settings->columns.ptr &&
        !hf__transfer_columns_read(c->scope, settings->columns, &settings->columns_read, &error))
        return hf__command_fail(c, CLI_USAGE, "--columns: %.*s", HF_FMT(error));
    c->database->read_only = true;
    return HF_OK;
}

/* The file of a table in a directory: its name, and an end that says the format. */
static struct hf_str target_of(struct command_ctx *c, const struct settings *settings,
                               struct hf_str table)
{
    static const char *const ends[] = {"", ".jsonl", ".jsonl", ".csv", ""};

    if (to_stdout(settings) || settings->format == TRANSFER_AWS || !to_directory(c, settings))
        return settings->to;
    return hf_scope_format(c->scope, "%.*s/%.*s%s%s", HF_FMT(settings->to), HF_FMT(table),
                           ends[settings->format], settings->gzip ? ".gz" : "");
}

/* ---- the tables ----------------------------------------------------------------------------- */

/* The names of all tables, or those that were given. */
static enum hf_status tables_find(struct command_ctx *c, struct hf_str **names, size_t *len)
{
    const struct settings *settings = c->settings;
    struct hf_list_tables request = {.limit = 0};
    struct hf_pages *pages = NULL;
    struct hf_str name = {0};
    enum hf_status status;
    size_t cap = c->operands_len;

    *len = 0;
    *names = hf_scope_alloc(c->scope, (cap + 1) * sizeof(**names));
    if (!*names)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    for (; *len < c->operands_len; (*len)++)
        (*names)[*len] = hf__command_operand(c, *len);
    if (!settings->all)
        return HF_OK;
    TRY(hf_pages_list_tables(c->scope, c->db, &request, NULL, &pages));
    while ((status = hf_pages_next_table(c->scope, pages, &name)) == HF_OK && name.ptr) {
        if (*len >= cap) {
            struct hf_str *more = hf_scope_alloc(c->scope, (cap * 2 + 16) * sizeof(*more));

            if (!more)
                break;
            memcpy(more, *names, *len * sizeof(*more));
            *names = more;
            cap = cap * 2 + 16;
        }
        (*names)[(*len)++] = hf_scope_copy(c->scope, name);
    }
    hf_pages_free(pages);
    TRY(status);
    return hf_scope_built(c->scope);
}

static enum hf_status export_plan(struct command_ctx *c, const struct export_task *task)
{
    struct hf_describe_table_result described;
    const struct hf_table_description *table;

    TRY(hf_describe_table(c->scope, c->db, &(struct hf_describe_table){.table = task->table},
                          &described));
    table = described.table;
    COMMAND_ROW(c->rows, hf__rows_text("table", task->table),
                hf__rows_signed(c->cli, "items",
                                table->item_count == HF_ZERO ? 0 : table->item_count),
                hf__rows_signed(c->cli, "bytes",
                                table->size_bytes == HF_ZERO ? 0 : table->size_bytes),
                hf__rows_text("to", task->to));
    return HF_OK;
}

static enum hf_status export_one(struct command_ctx *c, const struct export_options *options,
                                 const struct export_task *task)
{
    const struct settings *settings = c->settings;
    struct export_result result;

    TRY(hf__transfer_export(c, options, task, &result));
    if (to_stdout(settings) || c->database->quiet)
        return HF_OK;
    if (result.skipped) {
        hf__cli_notice(c->cli, c->name, "%.*s is complete", HF_FMT(result.to));
        return HF_OK;
    }
    if (!c->listing)
        hf__command_rows(c, "tables");
    COMMAND_ROW(c->rows, hf__rows_text("table", task->table),
                hf__rows_number(c->cli, "items", result.items),
                hf__rows_number(c->cli, "bytes", result.bytes), hf__rows_text("to", result.to));
    return HF_OK;
}

static enum hf_status directory_make(struct command_ctx *c, const struct settings *settings)
{
    if (to_stdout(settings) || !to_directory(c, settings))
        return HF_OK;
    return hf__transfer_make_dir(c->scope, settings->to.ptr);
}

static enum hf_status export_tables(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct export_options options = {.format = (enum transfer_format)settings->format,
                                     .gzip = settings->gzip,
                                     .consistent = settings->consistent,
                                     .resume = settings->resume,
                                     .overwrite = settings->overwrite,
                                     .schema = !settings->no_schema && !to_stdout(settings),
                                     .progress = settings->progress,
                                     .parallel = (size_t)settings->parallel,
                                     .per_second = settings->rate,
                                     .columns = &settings->columns_read};
    struct export_task *tasks;
    struct hf_str *names;
    size_t len;

    TRY(tables_find(c, &names, &len));
    tasks = hf_scope_alloc(c->scope, (len + 1) * sizeof(*tasks));
    if (!tasks)
        return hf_scope_fail(c->scope, HF_NOMEM, "out of memory");
    for (size_t i = 0; i < len; i++) {
        struct hf_describe_table request = {.table = names[i]};

        tasks[i] = (struct export_task){.table = names[i], .to = target_of(c, settings, names[i])};
        TRY(hf_describe_table(c->scope, c->db, &request, NULL)); /* before anything is written */
        if (!settings->dry_run && !hf__transfer_export_free(c, &options, &tasks[i]))
            return HF_INVALID;
    }
    if (settings->dry_run)
        hf__command_rows(c, "tables");
    else
        TRY(directory_make(c, settings));
    for (size_t i = 0; i < len; i++)
        TRY(settings->dry_run ? export_plan(c, &tasks[i]) : export_one(c, &options, &tasks[i]));
    return HF_OK;
}

const struct command hf__export_command = {COMMAND_SETTINGS(struct settings), .max = COMMAND_MANY,
                                           .guarded = true, .check = export_check,
                                           .body = export_tables};
