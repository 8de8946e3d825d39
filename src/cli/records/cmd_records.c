/*
 * cli/records/cmd_records.c: records that wait to be processed, from a shell: `holdfast records
 * put|ls|retry|adopt`. What works on them is cmd_records_process.c.
 */
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/frame/json.h"
#include "cli/frame/rows.h"

#include <holdfast/records.h>

enum { FILE_MAX = 256 * 1024 * 1024, PAGE = 100 };

enum list_state { LIST_UNPROCESSED, LIST_PROCESSED, LIST_FAILED };

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str account;
    struct hf_str run_time;
    struct hf_str processed;
    struct hf_str index;
    struct hf_str file;
    bool dynamodb;
    bool only_new;
    unsigned state; /* enum list_state */
    struct hf_str of_account;
    uint64_t limit;
    bool adopt; /* also a table of another program */
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define TABLE_SPECS                                                                                \
    {.heading = "The table",                                                                       \
     .kind = OPTION_TEXT,                                                                          \
     .name = "table",                                                                              \
     .value = "NAME",                                                                              \
     .fallback = "Records",                                                                        \
     .text = "The table of records.",                                                              \
     FIELD(table)},                                                                                \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "account",                                                                        \
         .value = "NAME",                                                                          \
         .fallback = "AccountId",                                                                  \
         .text = "The attribute that is its hash key.",                                            \
         FIELD(account)},                                                                          \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "run-time",                                                                       \
         .value = "NAME",                                                                          \
         .fallback = "RunTime",                                                                    \
         .text = "The attribute that is its range key.",                                           \
         FIELD(run_time)},                                                                         \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "processed",                                                                      \
         .value = "NAME",                                                                          \
         .fallback = "Processed",                                                                  \
         .text = "The attribute that is 0 or 1.",                                                  \
         FIELD(processed)},                                                                        \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "index", .value = "NAME", .fallback = "Processed",            \
        .text = "Its index of records that wait.", FIELD(index)                                    \
    }

static bool open_records(struct cli *cli, const char *command, const struct settings *settings,
                         bool create, struct hf_db **db, struct hf_records **records, int *ends)
{
    struct database_settings database = settings->database;
    struct hf_describe_table there = {.table = settings->table};
    struct hf_describe_table_result described;

    *records = NULL;
    database.create = create && !settings->adopt;
    database.maker = "records put";
    if (!hf__database_open(cli, command, &database, db, ends))
        return false;
    /* A table that is adopted gets its index and its mark, but it has to be there. */
    if ((!settings->adopt || hf_describe_table(cli->scope, *db, &there, &described) == HF_OK) &&
        hf_records_open(cli->scope, *db,
                        HF_OPTIONS(hf_records_options, .table = settings->table,
                                   .account = settings->account, .run_time = settings->run_time,
                                   .processed = settings->processed, .index = settings->index,
                                   .no_create = !create, .adopt = settings->adopt),
                        records) == HF_OK)
        return true;
    *ends = hf__database_unopened(cli, command, &database);
    hf_db_close(*db);
    *db = NULL;
    return false;
}

/* ---- put ------------------------------------------------------------------------------------ */

static const struct option_spec put_specs[] = {
    {.heading = "The records",
     .kind = OPTION_TEXT,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text = "A record per line; - is standard input.",
     FIELD(file)},
    {.kind = OPTION_FLAG,
     .name = "dynamodb",
     .text = "They are in DynamoDB's JSON; plain by default.",
     FIELD(dynamodb)},
    {.kind = OPTION_FLAG,
     .name = "only-new",
     .text = "A record that is there already is an error (exit code 4); replaced by default.",
     FIELD(only_new)},
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example put_examples[] = {
    {"holdfast records put '{\"AccountId\":\"ACC1\",\"RunTime\":\"2026-02-17T12:00:00Z\"}'",
     "One record, unprocessed."},
    {"holdfast records put -f records.jsonl", "A record per line."},
};

const struct options_table hf__records_put_options = {
    .name = "records put",
    .operands = "[JSON...]",
    .about = "Put records into the table, which is made when it is missing. Each is a JSON object "
             "with AccountId, RunTime and whatever else.",
    .specs = put_specs,
    .len = COMMAND_LEN(put_specs),
    .examples = put_examples,
    .examples_len = COMMAND_LEN(put_examples),
};

static bool read_record(struct cli *cli, const struct settings *settings, struct hf_str text,
                        struct hf_item *record)
{
    struct hf_scope *s = cli->scope;
    struct hf_str error = HF_STR("it is no JSON object");
    const struct json *json;

    if (settings->dynamodb) {
        if (hf_item_from_json(s, text, record) == HF_OK)
            return true;
        error = hf_scope_error(s)->message;
    } else {
        json = hf__json_read(s, text, &error);
        if (json && json->kind == JSON_OBJECT) {
            *record = hf_value_item(hf__json_to_value(s, json));
            if (hf_item_check(s, *record) == HF_OK)
                return true;
            error = hf_scope_error(s)->message;
        } else if (json) {
            error = HF_STR("it is no JSON object");
        }
    }
    hf__cli_fail(cli, "records put", CLI_USAGE, "%.*s: %.*s", text.len > 60 ? 60 : (int)text.len,
                 text.ptr, HF_FMT(error));
    return false;
}

/* One, and back to where the scope was: there may be millions. */
static int put_one(struct cli *cli, const struct settings *settings, struct hf_records *records,
                   struct hf_str text)
{
    struct hf_scope_mark mark = hf_scope_mark(cli->scope);
    struct hf_item record;
    int ends = CLI_OK;

    hf_scope_timeout_ms(cli->scope, (uint32_t)settings->database.timeout_ms);
    if (!read_record(cli, settings, text, &record))
        ends = CLI_USAGE;
    else if (hf_records_put(cli->scope, records, record,
                            HF_OPTIONS(hf_record_put_options, .only_new = settings->only_new)) !=
             HF_OK)
        ends = hf__database_fail(cli, "records put");
    hf_scope_rewind(cli->scope, mark);
    return ends;
}

static bool is_blank(struct hf_str line)
{
    static const char blanks[] = {' ', '\t', '\r'};

    for (size_t i = 0; i < line.len; i++)
        if (!memchr(blanks, line.ptr[i], sizeof(blanks)))
            return false;
    return true;
}

static int put_all(struct cli *cli, const struct settings *settings, struct hf_records *records,
                   const struct options *options, struct hf_str lines, uint64_t *count)
{
    int ends = CLI_OK;

    for (size_t i = 0; ends == CLI_OK && i < options->operands_len; i++) {
        ends = put_one(cli, settings, records, hf_str_from(options->operands[i]));
        *count += ends == CLI_OK;
    }
    for (size_t at = 0; ends == CLI_OK && at < lines.len;) {
        const char *end = memchr(lines.ptr + at, '\n', lines.len - at);
        size_t len = end ? (size_t)(end - lines.ptr) - at : lines.len - at;

        if (!is_blank(hf_str_of(lines.ptr + at, len))) {
            ends = put_one(cli, settings, records, hf_str_of(lines.ptr + at, len));
            *count += ends == CLI_OK;
        }
        at += len + 1;
    }
    return ends;
}

int hf__records_put_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.dynamodb = false};
    struct hf_records *records;
    struct rows_field field;
    struct hf_str lines = {0};
    struct options options;
    struct hf_str error = {0};
    uint64_t count = 0;
    struct hf_db *db;
    int ends;

    if (!hf__cli_options(cli, &hf__records_put_options, args_len, args, &settings, &options, &ends))
        return ends;
    if ((options.operands_len > 0) == (settings.file.ptr != NULL))
        return hf__cli_fail(cli, "records put", CLI_USAGE, "%s",
                            settings.file.ptr ? "records and --file exclude each other"
                                              : "a record, or --file, is missing");
    if (settings.file.ptr) {
        lines = hf__input_read(cli->scope, settings.file.ptr, FILE_MAX, &error);
        if (!lines.ptr)
            return hf__cli_fail(cli, "records put", CLI_USAGE, "%.*s", HF_FMT(error));
    }
    if (!open_records(cli, "records put", &settings, true, &db, &records, &ends))
        return ends;
    ends = put_all(cli, &settings, records, &options, lines, &count);
    field = hf__rows_number(cli, "put", count);
    if (settings.database.json)
        hf__rows_one(cli, &settings.database, &field, 1);
    hf_records_close(records);
    hf_db_close(db);
    return hf__cli_flushed(cli, ends);
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    {.heading = "Which records",
     .kind = OPTION_CHOICE,
     .letter = 's',
     .name = "state",
     .choices = "unprocessed processed failed",
     .fallback = "unprocessed",
     .text = "Those that wait, those that are done (the whole table is read), or those that were "
             "put aside.",
     FIELD(state)},
    {.kind = OPTION_TEXT,
     .letter = 'a',
     .name = "of-account",
     .value = "TEXT",
     .text = "All of one account, by their run times, whatever their state.",
     FIELD(of_account)},
    {.kind = OPTION_NUMBER,
     .name = "limit",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "At most so many.",
     FIELD(limit)},
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast records ls", "Those that wait."},
    {"holdfast records ls --state failed --jsonl", "Those that were put aside, with the error."},
};

const struct options_table hf__records_ls_options = {
    .name = "records ls",
    .about = "List records: account, run time, state, attempts, the last error; with --json the "
             "whole item.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

static enum hf_status next_page(struct cli *cli, const struct settings *settings,
                                struct hf_records *records,
                                const struct hf_record_list_options *options,
                                struct hf_record_list *list)
{
    struct hf_scope *s = cli->scope;

    if (settings->of_account.ptr)
        return hf_records_by_account(s, records, settings->of_account, options, list);
    switch ((enum list_state)settings->state) {
    case LIST_PROCESSED:
        return hf_records_processed(s, records, options, list);
    case LIST_FAILED:
        return hf_records_failed(s, records, options, list);
    case LIST_UNPROCESSED:
        break;
    }
    return hf_records_unprocessed(s, records, options, list);
}

static void add_record(struct rows *rows, struct cli *cli, const struct hf_record_info *record)
{
    static const char *const states[] = {"", "unprocessed", "processed", "failed"};
    struct rows_field fields[] = {
        hf__rows_text("account", record->account),
        hf__rows_text("run_time", record->run_time),
        hf__rows_text("state", hf_str_from(states[record->state])),
        hf__rows_number(cli, "attempts", record->attempts),
        hf__rows_text("error", record->error == HF_OK ? (struct hf_str){0} : record->error_text),
        {.name = "item",
         .kind = ROWS_JSON,
         .text = hf__json_of_value(cli->scope, hf_item_value(record->item))}};

    fields[4].cut = true;
    hf__rows_add(rows, fields, COMMAND_LEN(fields));
}

static int list(struct cli *cli, const struct settings *settings, struct hf_records *records)
{
    struct rows *rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    struct hf_record_list page = {.records_len = 0};
    struct hf_str after = {0};
    int ends = CLI_OK;

    if (!rows)
        return hf__cli_fail(cli, "records ls", CLI_FAILED, "out of memory");
    hf__rows_begin(rows, cli, &settings->database, "records");
    do {
        uint64_t left = settings->limit ? settings->limit - rows->count : PAGE;

        if (next_page(cli, settings, records,
                      HF_OPTIONS(hf_record_list_options, .limit = left < PAGE ? left : PAGE,
                                 .after = after),
                      &page) != HF_OK) {
            ends = hf__database_fail(cli, "records ls");
            break;
        }
        for (size_t i = 0; i < page.records_len; i++)
            add_record(rows, cli, &page.records[i]);
        after = page.next;
    } while (after.ptr && (!settings->limit || rows->count < settings->limit) && !ferror(cli->out));
    return hf__rows_end(rows, (struct hf_str){0}, ends);
}

int hf__records_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.dynamodb = false};
    struct hf_records *records;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_options(cli, &hf__records_ls_options, args_len, args, &settings, &options, &ends))
        return ends;
    settings.database.absent_ok = true;
    if (!open_records(cli, "records ls", &settings, false, &db, &records, &ends))
        return hf__rows_none(cli, &settings.database, "records", ends);
    ends = list(cli, &settings, records);
    hf_records_close(records);
    hf_db_close(db);
    return ends;
}

/* ---- retry ---------------------------------------------------------------------------------- */

static const struct option_spec retry_specs[] = {
    {.kind = OPTION_NUMBER,
     .name = "limit",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "At most so many.",
     FIELD(limit)},
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example retry_examples[] = {
    {"holdfast records retry", "After the reason is gone: let all that failed be tried again."},
};

const struct options_table hf__records_retry_options = {
    .name = "records retry",
    .about = "Let records that were put aside wait again, as if they had never been begun.",
    .specs = retry_specs,
    .len = COMMAND_LEN(retry_specs),
    .examples = retry_examples,
    .examples_len = COMMAND_LEN(retry_examples),
};

int hf__records_retry_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.dynamodb = false};
    struct hf_records *records;
    struct options options;
    uint64_t count = 0;
    struct hf_db *db;
    int ends;

    if (!hf__cli_options(cli, &hf__records_retry_options, args_len, args, &settings, &options,
                         &ends))
        return ends;
    settings.database.absent_ok = true;
    if (!open_records(cli, "records retry", &settings, false, &db, &records, &ends) &&
        ends != DATABASE_ABSENT)
        return ends;
    if (records && hf_records_retry_failed(cli->scope, records, settings.limit, &count) != HF_OK) {
        ends = hf__database_fail(cli, "records retry");
    } else {
        struct rows_field field = hf__rows_number(cli, "waiting", count);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    hf_records_close(records);
    hf_db_close(db);
    return ends;
}

/* ---- adopt ---------------------------------------------------------------------------------- */

static const struct option_spec adopt_specs[] = {
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example adopt_examples[] = {
    {"holdfast records adopt", "After another program has put many."},
    {"holdfast records adopt --table Jobs --index Waiting",
     "A table of another program, which has an index of its own called Processed."},
};

const struct options_table hf__records_adopt_options = {
    .name = "records adopt",
    .about = "Find records that other programs put with Processed 0, and let them wait like all "
             "others. Reads the whole table. 'records process' finds such records, too, but only a "
             "page of the table at a time. A table of another program becomes one of ours: it gets "
             "the index and the mark.",
    .specs = adopt_specs,
    .len = COMMAND_LEN(adopt_specs),
    .examples = adopt_examples,
    .examples_len = COMMAND_LEN(adopt_examples),
};

int hf__records_adopt_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.adopt = true};
    struct hf_records *records;
    struct options options;
    uint64_t count = 0;
    struct hf_db *db;
    int ends;

    if (!hf__cli_options(cli, &hf__records_adopt_options, args_len, args, &settings, &options,
                         &ends) ||
        !open_records(cli, "records adopt", &settings, true, &db, &records, &ends))
        return ends;
    if (hf_records_adopt(cli->scope, records, &count) != HF_OK) {
        ends = hf__database_fail(cli, "records adopt");
    } else {
        struct rows_field field = hf__rows_number(cli, "adopted", count);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    hf_records_close(records);
    hf_db_close(db);
    return ends;
}
