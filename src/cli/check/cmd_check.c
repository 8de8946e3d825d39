/*
 * cli/check/cmd_check.c: is everything in a database as it should be? `holdfast check`.
 *
 * The directory is opened to be read, so nothing in it changes and a damaged one can be looked at
 * as often as one likes. Opening reads the record of what is durable, the manifest and the journal;
 * the engine's check then reads every block of every table and compares what is stored with itself.
 *
 * The URL of a server has that do the same, beside its other work; here it is waited for. Output
 * and exit codes are the same. A signal ends the wait, not the server's check.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/process/child.h"

#include <holdfast/client.h>
#include <holdfast/engine.h>

#include <inttypes.h>
#include <string.h>

#define LEFT_MAX_MS (1e3 * 60 * 60 * 24 * 30) /* longer times left are guesses */

struct settings {
    bool json;
    bool quiet;
    bool progress;
    struct hf_str profile;
    struct hf_str region;
    struct hf_str target; /* no option: the directory or URL, with a NUL behind it */
};

static const struct option_spec specs[] = {
    OPT_FLAG("json", json, "Print the result as a JSON object, also when damage is found."),
    OPT_FLAG("quiet", quiet, "Print nothing but errors.", .letter = 'q'),
    OPT_FLAG(
        "progress", progress,
        "Print the progress to standard error, one line per second. On a terminal the progress "
        "is shown in one line by default, unless --quiet is given or the output of --json goes "
        "elsewhere."),
    OPT_TEXT(
        "profile", "NAME", profile,
        "Profile in AWS's config files. By default credentials come from where AWS's tools find "
        "them.",
        .heading = "Server"),
    OPT_TEXT("region", "NAME", region, "Region to sign requests for."),
};

static const struct option_example examples[] = {
    {"holdfast check /var/lib/holdfast", "Exit code 0: no damage found; 8: something is damaged."},
    {"holdfast check holdfast.db --json | jq .items", "The number of items."},
    {"holdfast check http://127.0.0.1:8000", "The database of a running server."},
};

const struct options_table hf__check_options = {
    .name = "check",
    .operands = "[DIR|URL|@NAME]",
    .about =
        "Read and verify everything in a data directory: the checksum of every block of every "
        "table, the journal, that durable data is complete, that index entries match their "
        "items, that streams have no gap and that backups are complete. Nothing is changed. No "
        "server may have the directory open, unless it runs with --read-only.\n\nWith the URL of "
        "a holdfast server, http://HOST:PORT or https://HOST:PORT, that server verifies its "
        "database while it serves requests; all but the journal, which it read when it started. "
        "If a check is already running there, this command waits for it. Ctrl-C ends the wait; "
        "the server's check goes on.\n\nembedded:DIR is a directory too, and @NAME a database of "
        "the config file. Without an operand the database of HOLDFAST_DB is checked.",
    COMMAND_TABLE(specs, examples),
    .notes = "Exit codes: 0 no damage found, 8 something is damaged, 3 no such database, 6 the "
             "directory is open for writing, or the server is not reachable. For others see "
             "holdfast(1).",
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
        hf__cli_json_write_text(cli->out, problem);
    }
    fputs("}\n", cli->out);
}

static void print_text(struct cli *cli, const struct hf_check_report *report)
{
    fprintf(cli->out,
            "no damage found: %" PRIu64 " tables, %" PRIu64 " items, %" PRIu64
            " index entries, %" PRIu64 " stream records, %" PRIu64 " backups\n",
            report->tables, report->items, report->index_entries, report->stream_records,
            report->backups);
}

/* ---- progress ------------------------------------------------------------------------------- */

static double bytes_to_mb(double bytes)
{
    return bytes / 1e6;
}

/* Which part of the check runs, and how long the rest may take. */
static struct hf_str part_text(struct hf_scope *s, const struct hf_check_progress *p, double rate,
                               bool done)
{
    const char *part = p->keys ? "comparing" : "checksums";
    double left_ms = rate > 0 ? (double)(p->about_bytes - p->bytes) * 1e3 / rate : -1;
    struct hf_str text;

    if (done)
        return HF_STR("done");
    if (left_ms < 0 || left_ms > LEFT_MAX_MS || p->about_bytes <= p->bytes)
        return hf_str_from(part);
    text = hf_scope_format(s, "%s, about %.*s left", part,
                           HF_FMT(hf__rows_duration(s, (uint64_t)left_ms)));
    return text.ptr ? text : hf_str_from(part);
}

static enum hf_status on_progress(const struct hf_check_progress *p, void *user)
{
    struct progress *progress = user;
    bool done = p->about_bytes > 0 && p->bytes >= p->about_bytes && p->keys > 0;

    double rate = hf__progress_rate(progress, p->bytes);
    struct hf_scope *s = progress->cli->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);

    if (!hf__progress_due(progress, done))
        return HF_OK;
    hf__progress_print(progress,
                       "about %.0f %%: %.1f of about %.1f MB read, %" PRIu64
                       " keys compared, %.1f MB/s, %.*s",
                       p->about_bytes ? 100.0 * (double)p->bytes / (double)p->about_bytes : 0.0,
                       bytes_to_mb((double)p->bytes), bytes_to_mb((double)p->about_bytes), p->keys,
                       bytes_to_mb(rate), HF_FMT(part_text(s, p, rate, done)));
    hf_scope_rewind(s, mark);
    return HF_OK;
}

/* ---- the check ------------------------------------------------------------------------------ */

struct run {
    struct cli *cli;
    const struct settings *settings;
    const char *operand;
    bool online;
    struct progress progress;
    struct hf_check_report report;
};

static enum hf_status check_directory(struct run *run, const struct hf_check_options *options)
{
    struct hf_scope *s = run->cli->scope;
    struct hf_str url = hf_scope_format(s, "embedded:%s", run->operand);
    enum hf_status status;
    struct hf_db *db;

    if (!url.ptr)
        return hf_scope_fail(s, HF_NOMEM, "out of memory");
    status = hf_open(s, url, HF_OPTIONS(hf_engine_options, .read_only = true), &db);
    if (status != HF_OK)
        return status;
    status = hf_engine_check_with(s, db, options, &run->report);
    hf_db_close(db);
    return status;
}

static enum hf_status check_run(struct run *run)
{
    const struct settings *settings = run->settings;
    struct hf_check_options options = {.size = sizeof(options),
                                       .on_progress = on_progress,
                                       .user = &run->progress};
    bool quiet = settings->quiet || (settings->json && !run->cli->terminal);
    enum hf_status status;

    hf__progress_begin(&run->progress, run->cli, quiet, settings->progress);
    if (run->online)
        status = hf_server_check(run->cli->scope, hf_str_from(run->operand),
                                 HF_OPTIONS(hf_client_options, .profile = settings->profile,
                                            .region = settings->region),
                                 &options, &run->report);
    else
        status = check_directory(run, &options);
    hf__progress_end(&run->progress);
    return status;
}

static enum hf_status result_print(struct command_ctx *c, struct run *run, enum hf_status status)
{
    int came = hf__guard_signal(c->guard);
    struct hf_str problem = {0};

    if (status == HF_CANCELED && came)
        return hf__command_fail(
            c, CLI_SIGNAL + came, "%s",
            run->online
                ? "interrupted; the server's check goes on: run the same command again to wait "
                  "for it"
                : "interrupted");
    if (status == HF_CORRUPT || (status == HF_IO && !hf_scope_error(c->scope)->may_retry))
        problem = hf_scope_error(c->scope)->message;
    if (run->settings->json && (status == HF_OK || problem.ptr))
        print_json(c->cli, problem, &run->report);
    else if (status == HF_OK && !run->settings->quiet)
        print_text(c->cli, &run->report);
    if (status == HF_LOCKED) /* a directory that is, not a lock */
        return hf__command_shown(c, hf__database_taken(c->cli, c->name, run->operand));
    return status;
}

static bool is_server(const char *operand)
{
    return strncmp(operand, "http://", 7) == 0 || strncmp(operand, "https://", 8) == 0;
}

/* Which database: the operand, or that of HOLDFAST_DB, as a directory or the URL of a server. */
static enum hf_status target_find(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    const char *text = c->operands_len ? c->operands[0] : c->cli->env("HOLDFAST_DB");
    struct database_settings named = {.profile = settings->profile, .region = settings->region};

    if (!text || !*text)
        return hf__command_fail(c, CLI_USAGE,
                                "missing argument; usage: holdfast check [options] DIR|URL|@NAME, "
                                "or set HOLDFAST_DB");
    named.url = hf_str_from(text);
    if (!hf__database_resolve(c->cli, c->name, &named, &c->ends))
        return hf__command_shown(c, c->ends);
    if (is_server(named.url.ptr)) {
        settings->profile = named.profile;
        settings->region = named.region;
    }
    if (!str_after(named.url, HF_STR("embedded:"), &settings->target))
        settings->target = named.url;
    return HF_OK;
}

static enum hf_status check_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const char *operand;

    TRY(target_find(c));
    operand = settings->target.ptr;
    if (is_server(operand))
        return HF_OK;
    if (strstr(operand, "://"))
        return hf__command_fail(
            c, CLI_USAGE,
            "%s is neither a directory nor the URL of a holdfast server (http://HOST:PORT)",
            operand);
    if (settings->profile.ptr || settings->region.ptr)
        return hf__command_fail(c, CLI_USAGE,
                                "--profile and --region need the URL of a server; '%s' is not one",
                                operand);
    return HF_OK;
}

static enum hf_status check_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct run run = {.cli = c->cli,
                      .settings = settings,
                      .operand = settings->target.ptr,
                      .online = is_server(settings->target.ptr)};

    return result_print(c, &run, check_run(&run));
}

/* What it looks at is its operand or HOLDFAST_DB: there is no --db. */
COMMAND_OF(check, check_body, .settings_size = sizeof(struct settings), .max = 1, .guarded = true,
           .reports_signal = true, .check = check_check);
