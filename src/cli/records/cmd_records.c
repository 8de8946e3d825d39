/*
 * cli/records/cmd_records.c: records that wait to be processed, from a shell: `holdfast records
 * put|ls|retry|adopt`. What works on them is cmd_records_process.c.
 */
#include "base/base.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"
#include "cli/records/records.h"

enum { FILE_MAX = 256 * 1024 * 1024, PAGE = 100 };

enum list_state { LIST_UNPROCESSED, LIST_PROCESSED, LIST_FAILED };

struct settings {
    struct records_settings records;
    struct hf_str file;
    bool dynamodb;
    bool only_new;
    unsigned state; /* enum list_state */
    struct hf_str of_account;
    uint64_t limit;
    bool adopt; /* also a table of another program */
    struct hf_str lines;
    uint64_t put;
};

static enum hf_status records_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_describe_table there = {.table = settings->records.table};
    struct hf_describe_table_result described;

    /* A table that is adopted gets its index and its mark, but it has to be there. */
    if (settings->adopt)
        TRY(hf_describe_table(c->scope, c->db, &there, &described));
    return hf__cli_records_open(c, (struct hf_records_options){.no_create =
                                                                   !c->makes && !settings->adopt,
                                                               .adopt = settings->adopt});
}

static const struct command_place records_place = {records_open, hf__cli_records_close,
                                                   "records put"};

/* ---- put ------------------------------------------------------------------------------------ */

static const struct option_spec put_specs[] = {
    OPT_TEXT("file", "FILE", file,
             "Read the records from this file, one per line; - is standard input.", .letter = 'f',
             .heading = "Records"),
    OPT_FLAG("dynamodb", dynamodb, "Records are in DynamoDB's JSON; plain JSON by default."),
    OPT_FLAG("only-new", only_new,
             "If the record exists, fail with exit code 4; by default it is replaced."),
    RECORDS_TABLE,
    RECORDS_ONE,
};

static const struct option_example put_examples[] = {
    {"holdfast records put '{\"AccountId\":\"ACC1\",\"RunTime\":\"2026-02-17T12:00:00Z\"}'",
     "One unprocessed record."},
    {"holdfast records put -f records.jsonl", "One record per line."},
};

const struct options_table hf__records_put_options = {
    .name = "records put",
    .operands = "[JSON...]",
    .about = "Put records into the table, which is created if missing. Each is a JSON object with "
             "AccountId, RunTime and any other members.",
    COMMAND_SPECS(put),
};

static enum hf_status record_read(struct command_ctx *c, struct hf_str text, struct hf_item *record)
{
    const struct settings *settings = c->settings;
    struct hf_str error = HF_STR("not a JSON object");
    struct hf_scope *s = c->scope;
    const struct json_node *json;

    if (settings->dynamodb) {
        if (hf_item_from_json(s, text, record) == HF_OK)
            return HF_OK;
        error = hf_scope_error(s)->message;
    } else {
        json = hf__cli_json_read(s, text, &error);
        if (json && json->kind == JSON_OBJECT) {
            *record = hf_value_item(hf__cli_json_to_value(s, json));
            if (hf_item_check(s, *record) == HF_OK)
                return HF_OK;
            error = hf_scope_error(s)->message;
        } else if (json) {
            error = HF_STR("not a JSON object");
        }
    }
    return hf__command_fail(c, CLI_USAGE, "%.*s: %.*s", text.len > 60 ? 60 : (int)text.len,
                            text.ptr, HF_FMT(error));
}

/* One, and back to where the scope was: there may be millions. */
static enum hf_status record_put(struct command_ctx *c, struct hf_str text)
{
    struct hf_scope_mark mark = hf_scope_mark(c->scope);
    struct settings *settings = c->settings;
    struct hf_item record;

    hf_scope_timeout_ms(c->scope, (uint32_t)c->database->timeout_ms);
    TRY(record_read(c, text, &record));
    TRY(hf_records_put(c->scope, c->place, record,
                       HF_OPTIONS(hf_record_put_options, .only_new = settings->only_new)));
    settings->put++;
    hf_scope_rewind(c->scope, mark);
    return HF_OK;
}

static enum hf_status records_put_all(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str lines = settings->lines, line;

    for (size_t i = 0; i < c->operands_len; i++)
        TRY(record_put(c, hf__command_operand(c, i)));
    while (hf__input_line(&lines, &line))
        if (hf__input_trim(line).len)
            TRY(record_put(c, line));
    return HF_OK;
}

static enum hf_status records_put_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str error = {0};

    if ((c->operands_len > 0) == (settings->file.ptr != NULL))
        return hf__command_fail(c, CLI_USAGE, "%s",
                                settings->file.ptr ? "records and --file cannot be combined"
                                                   : "missing argument: give records or --file");
    if (!settings->file.ptr)
        return HF_OK;
    settings->lines = hf__input_read(c->scope, settings->file.ptr, FILE_MAX, &error);
    return settings->lines.ptr ? HF_OK : hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
}

static enum hf_status records_put(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    enum hf_status status = records_put_all(c);

    if (status != HF_OK && c->ends == CLI_OK)
        hf__command_failed(c);
    TRY(COMMAND_JSON(c, hf__rows_number(c->cli, "put", settings->put)));
    return status;
}

COMMAND_OF(records_put, records_put, RECORDS_SETTINGS(struct settings), .max = COMMAND_MANY,
           .place = &records_place, .table = COMMAND_MAKES, .check = records_put_check);

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    OPT_CHOICE("state", "unprocessed processed failed", state,
               "State of the records; to list the processed ones the whole table is read.",
               .letter = 's', .fallback = "unprocessed", .heading = "Records"),
    OPT_TEXT("of-account", "TEXT", of_account,
             "All records of this account in any state, ordered by run time.", .letter = 'a'),
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    RECORDS_TABLE,
    RECORDS_LIST,
};

static const struct option_example ls_examples[] = {
    {"holdfast records ls", "Unprocessed records."},
    {"holdfast records ls --state failed --jsonl", "Failed records, with the error."},
};

const struct options_table hf__records_ls_options = {
    .name = "records ls",
    .about =
        "List records: account, run time, state, attempts, last error; with --json the whole item.",
    COMMAND_SPECS(ls),
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
    _Static_assert(ARRAY_LEN(states) == HF_RECORD_FAILED + 1, "every one has a name");
    struct rows_field fields[] = {
        hf__rows_text("account", record->account),
        hf__rows_text("run_time", record->run_time),
        hf__rows_text("state", hf_str_from(states[record->state])),
        hf__rows_number(cli, "attempts", record->attempts),
        hf__rows_text("error", record->error == HF_OK ? (struct hf_str){0} : record->error_text),
        {.name = "item",
         .kind = ROWS_JSON,
         .text = hf__cli_json_of_value(cli->scope, hf_item_value(record->item))}};

    fields[4].cut = true;
    hf__rows_add(rows, fields, COMMAND_LEN(fields));
}

static enum hf_status records_list(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct rows *rows = hf__command_rows(c, "records");
    struct hf_record_list page = {.records_len = 0};
    struct hf_str after = {0};

    do {
        uint64_t left = settings->limit ? settings->limit - rows->count : PAGE;

        TRY(next_page(c->cli, settings, c->place,
                      HF_OPTIONS(hf_record_list_options, .limit = left < PAGE ? left : PAGE,
                                 .after = after),
                      &page));
        for (size_t i = 0; i < page.records_len; i++)
            add_record(rows, c->cli, &page.records[i]);
        after = page.next;
    } while (after.ptr && (!settings->limit || rows->count < settings->limit) &&
             !ferror(c->cli->out));
    return HF_OK;
}

COMMAND_OF(records_ls, records_list, RECORDS_SETTINGS(struct settings), .place = &records_place,
           .table = COMMAND_LOOKS, .list = "records");

/* ---- retry ---------------------------------------------------------------------------------- */

static const struct option_spec retry_specs[] = {
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    RECORDS_TABLE,
    RECORDS_ONE,
};

static const struct option_example retry_examples[] = {
    {"holdfast records retry", "After the problem is solved: process all failed records again."},
};

const struct options_table hf__records_retry_options = {
    .name = "records retry",
    .about = "Process failed records again, with their attempts reset.",
    COMMAND_SPECS(retry),
};

static enum hf_status records_retry(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint64_t count = 0;

    if (c->place)
        TRY(hf_records_retry_failed(c->scope, c->place, settings->limit, &count));
    return hf__command_count(c, "waiting", count);
}

COMMAND_OF(records_retry, records_retry, RECORDS_SETTINGS(struct settings), .place = &records_place,
           .table = COMMAND_LOOKS);

/* ---- adopt ---------------------------------------------------------------------------------- */

static const struct option_spec adopt_specs[] = {
    RECORDS_TABLE,
    RECORDS_ONE,
};

static const struct option_example adopt_examples[] = {
    {"holdfast records adopt", "After another program has put many records."},
    {"holdfast records adopt --table Jobs --index Waiting",
     "A table of another program that already has an index called Processed."},
};

const struct options_table hf__records_adopt_options = {
    .name = "records adopt",
    .about =
        "Find records that other programs put with Processed 0, so that they are processed soon. "
        "Reads the whole table. 'records process' finds such records, too, but reads only a page "
        "of the table at a time. A table of another program gets the index, and the mark that it "
        "holds records.",
    COMMAND_SPECS(adopt),
};

static enum hf_status records_adopt_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->adopt = true;
    return HF_OK;
}

static enum hf_status records_adopt(struct command_ctx *c)
{
    uint64_t count = 0;

    TRY(hf_records_adopt(c->scope, c->place, &count));
    return hf__command_count(c, "adopted", count);
}

COMMAND_OF(records_adopt, records_adopt, RECORDS_SETTINGS(struct settings), .place = &records_place,
           .table = COMMAND_NEEDS, .check = records_adopt_check);
