/*
 * cli/cmd_check.c: is everything in a directory as it should be? `holdfast check`.
 *
 * The directory is opened to be read, so nothing in it changes and a damaged one can be looked at
 * as often as one likes. Opening reads the record of what is durable, the manifest and the journal;
 * the engine's check then reads every block of every table and compares what is stored with itself.
 */
#include "cli/commands.h"
#include "cli/database.h"
#include "cli/json.h"

#include <holdfast/engine.h>

#include <inttypes.h>
#include <string.h>

struct settings {
    bool json;
};

#define FIELD(member) .offset = offsetof(struct settings, member)

static const struct option_spec specs[] = {
    {.kind = OPTION_FLAG,
     .name = "json",
     .text = "Print what was looked at as a JSON object, also when something is wrong.",
     FIELD(json)},
};

static const struct option_example examples[] = {
    {"holdfast check /var/lib/holdfast", "Exit code 0: all is well; 8: something is damaged."},
    {"holdfast check holdfast.db --json | jq .items", "How many items there are."},
};

const struct options_table hf__check_options = {
    .name = "check",
    .operands = "DIR",
    .about = "Read everything in the directory of a database and verify it: the checksum of every "
             "block of every table, the journal, what must be durable, that index entries and "
             "items agree, that streams have no gap and backups all their items. Nothing is "
             "changed. No server may have the directory open, but with --read-only.",
    .specs = specs,
    .len = COMMAND_LEN(specs),
    .examples = examples,
    .examples_len = COMMAND_LEN(examples),
    .notes = "Exit codes: 0 all is well, 8 something is damaged, 3 there is no database, 6 it is "
             "open for writing. Others as in holdfast(1).",
};

static void print_json(struct cli *cli, struct hf_str problem, const struct hf_check_report *report)
{
    const struct {
        const char *name;
        uint64_t count;
    } counts[] = {
        {"tables", report->tables},
        {"items", report->items},
        {"index_entries", report->index_entries},
        {"stream_records", report->stream_records},
        {"expiry_entries", report->expiry_entries},
        {"tokens", report->tokens},
        {"backups", report->backups},
        {"backup_items", report->backup_items},
        {"problems", report->problems},
    };

    fprintf(cli->out, "{\"sound\":%s", problem.ptr ? "false" : "true");
    for (size_t i = 0; i < COMMAND_LEN(counts); i++)
        fprintf(cli->out, ",\"%s\":%" PRIu64, counts[i].name, counts[i].count);
    if (problem.ptr) {
        fputs(",\"problem\":", cli->out);
        hf__json_write_text(cli->out, problem);
    }
    fputs("}\n", cli->out);
}

static void print_text(struct cli *cli, const struct hf_check_report *report)
{
    fprintf(cli->out,
            "sound: %" PRIu64 " tables, %" PRIu64 " items, %" PRIu64 " index entries, %" PRIu64
            " stream records, %" PRIu64 " backups\n",
            report->tables, report->items, report->index_entries, report->stream_records,
            report->backups);
}

static enum hf_status check(struct hf_scope *s, struct hf_str url, struct hf_check_report *report)
{
    struct hf_db *db;
    enum hf_status status = hf_open(s, url, HF_OPTIONS(hf_engine_options, .read_only = true), &db);

    if (status != HF_OK)
        return status;
    status = hf_engine_check(s, db, report);
    hf_db_close(db);
    return status;
}

int hf__check_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {0};
    struct hf_check_report report = {0};
    struct hf_str problem = {0};
    struct options options;
    enum hf_status status;
    struct hf_str url;
    int ends;

    if (!hf__cli_operands(cli, &hf__check_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    if (strstr(options.operands[0], "://"))
        return hf__cli_fail(cli, "check", CLI_USAGE,
                            "%s is not a directory: a database is checked where it is stored",
                            options.operands[0]);
    url = hf_scope_format(cli->scope, "embedded:%s", options.operands[0]);
    if (!url.ptr)
        return hf__cli_fail(cli, "check", CLI_FAILED, "out of memory");
    status = check(cli->scope, url, &report);
    if (status == HF_CORRUPT || status == HF_IO)
        problem = hf_scope_error(cli->scope)->message;
    if (settings.json && (status == HF_OK || problem.ptr))
        print_json(cli, problem, &report);
    else if (status == HF_OK)
        print_text(cli, &report);
    if (status == HF_LOCKED) /* a directory that is, not a lock */
        return hf__cli_fail(cli, "check", CLI_UNAVAILABLE, "%s", hf_scope_error_text(cli->scope));
    if (status != HF_OK)
        return hf__database_fail(cli, "check");
    return hf__cli_flushed(cli, CLI_OK);
}
