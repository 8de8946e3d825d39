/*
 * cli/records/cmd_records_process.c: `holdfast records process`: a program for each record that waits.
 *
 * The library claims records and decides what comes after a failure; here a record becomes a
 * process: the record on its standard input, its keys in variables, and its exit code the outcome.
 *
 *     0      processed
 *     65     failed for good: put aside (EX_DATAERR of sysexits.h)
 *     other  failed: tried again, --retries times
 *
 * Workers wait for their programs by looking again and again, as they have to see a scope that was
 * canceled, too: by a signal, or as the claim was lost. Then the program gets SIGTERM, and SIGKILL
 * when it has not ended in time.
 */
#include "base/base.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/child.h"
#include "cli/records/records.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FAILED_FOR_GOOD = 65 };

struct settings {
    struct records_settings records;
    struct hf_str exec;
    uint64_t workers;
    uint64_t retries;
    uint64_t backoff_ms;
    uint64_t multiplier;
    uint64_t lease_ms;
    uint64_t run_timeout_ms;
    uint64_t kill_after_ms;
    uint64_t limit;
    uint64_t max_failures;
    bool account_order;
    bool forever;
    bool dry_run;
    bool plain;
    struct hf_str resume;
};

static const struct option_spec specs[] = {
    OPT_TEXT("exec", "CMD", exec,
             "Shell command (sh -c) to run for each record. Or give a program after --.",
             .letter = 'e', .heading = "Program"),
    OPT_FLAG("plain", plain, "Pass the record as plain JSON; DynamoDB's JSON by default."),
    OPT_NUMBER("workers", workers, 1, HF_PROCESSOR_WORKERS_MAX,
               "Number of records that are processed at once.", .letter = 'j', .fallback = "5"),
    OPT_TIME("run-timeout", run_timeout_ms, 0, OPTION_DAY_MS,
             "Stop a program after this time; it has failed then."),
    OPT_TIME("kill-after", kill_after_ms, 0, OPTION_DAY_MS,
             "How long to wait between SIGTERM and SIGKILL when a program is stopped.",
             .fallback = "10s"),

    OPT_NUMBER("retries", retries, 0, 1000, "Number of retries before a record is failed.",
               .fallback = "3", .heading = "Failures"),
    OPT_TIME("backoff", backoff_ms, 1, OPTION_DAY_MS, "Delay before the first retry.",
             .fallback = "100ms"),
    OPT_NUMBER("multiplier", multiplier, 1, 100,
               "Multiply the delay by this for each further retry.", .fallback = "2"),
    OPT_NUMBER("max-failures", max_failures, 0, UINT32_MAX, "Stop after this many failed records."),

    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "Start at most this many attempts.",
               .heading = "Run"),
    OPT_FLAG("account-order", account_order,
             "Process the records of an account one after the other, ordered by run time."),
    OPT_FLAG("forever", forever, "Wait for new records when all are processed."),
    OPT_FLAG("dry-run", dry_run, "Only count the unprocessed records."),
    OPT_TEXT("resume", "CHECKPOINT", resume,
             "Continue the statistics of an earlier run: its \"checkpoint\"."),
    OPT_TIME("lease", lease_ms, 10, OPTION_DAY_MS,
             "Lease: others take over a record whose processor was silent for this long.",
             .fallback = "20s"),

    RECORDS_TABLE,
    RECORDS_ONE,
};

static const struct option_example examples[] = {
    {"holdfast records process --exec './bill.sh'",
     "Run a script for each unprocessed record, five at a time; the record is on its standard "
     "input."},
    {"holdfast records process -j 32 --json -- python3 bill.py",
     "A program, and a report as JSON."},
    {"holdfast records process --dry-run", "Count the unprocessed records."},
};

const struct options_table hf__records_process_options = {
    .name = "records process",
    .operands = "[-- CMD...]",
    .about = "Run a program for each unprocessed record, until none is left. Any number of these "
             "commands can run on one table: each record is claimed before it is processed, and "
             "completed once. The program gets the record on its standard input, and the variables "
             "HOLDFAST_RECORD_ACCOUNT, HOLDFAST_RECORD_RUN_TIME, HOLDFAST_RECORD_ATTEMPT and "
             "HOLDFAST_RECORD_FENCE.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "If the program ends with 0 its record is processed; with 65 the record is failed; with "
        "any other code it is retried.\n\nExit codes: 0 all records are processed, 1 some "
        "failed, 128 + N stopped by signal N: records in progress are given back. For others see "
        "holdfast(1).",
};

/* ---- one record ----------------------------------------------------------------------------- */

struct run {
    struct cli *cli;
    const struct settings *settings;
    const char *const *args;
    size_t args_len;
    struct guard *guard;
};

/* The record where a process can read it. */
static int record_file(struct hf_scope *s, const struct run *run,
                       const struct hf_record_info *record)
{
    struct hf_str text = run->settings->plain
                             ? hf__cli_json_of_value(s, hf_item_value(record->item))
                             : hf_item_to_json(s, record->item);
    struct hf_str line = hf_scope_format(s, "%.*s\n", HF_FMT(text));

    return text.ptr && line.ptr ? hf__child_file(line.ptr, line.len) : -1;
}

static enum hf_status program_outcome(struct hf_scope *s, const struct run *run,
                                      enum hf_status waited, int status)
{
    int code = hf__program_code(status);

    if (WIFEXITED(status) && code == 0)
        return HF_OK;
    if (waited == HF_TIMEOUT)
        return hf_scope_fail(s, HF_IO, "%s took longer than %llu ms", run->args[0],
                             (unsigned long long)run->settings->run_timeout_ms);
    if (waited == HF_CANCELED)
        return hf_scope_fail(s, HF_CANCELED, "%s was stopped", run->args[0]);
    if (WIFSIGNALED(status))
        return hf_scope_fail(s, HF_IO, "%s was ended by signal %d", run->args[0], WTERMSIG(status));
    return hf_scope_fail(s, code == FAILED_FOR_GOOD ? HF_INVALID : HF_IO, "%s ended with code %d",
                         run->args[0], code);
}

static enum hf_status record_work(struct hf_scope *s, const struct hf_record_info *record,
                                  void *user)
{
    const struct run *run = user;
    const struct hf_str variables[] = {
        hf_scope_format(s, "HOLDFAST_RECORD_ACCOUNT=%.*s", HF_FMT(record->account)),
        hf_scope_format(s, "HOLDFAST_RECORD_RUN_TIME=%.*s", HF_FMT(record->run_time)),
        hf_scope_format(s, "HOLDFAST_RECORD_ATTEMPT=%lu", (unsigned long)record->attempts),
        hf_scope_format(s, "HOLDFAST_RECORD_FENCE=%llu", (unsigned long long)record->fence)};
    const struct child_program program = {.args = run->args,
                                          .args_len = run->args_len,
                                          .variables = variables,
                                          .variables_len = COMMAND_LEN(variables),
                                          .guard = run->guard};
    int input = record_file(s, run, record);
    struct child child;
    enum hf_status waited;
    int error;

    if (hf_scope_built(s) != HF_OK)
        error = ENOMEM;
    else
        error = input < 0 ? EIO : hf__program_start(s, &program, input, &child);
    if (input >= 0)
        close(input);
    if (error)
        return hf_scope_fail(s, HF_IO, "%s: %s", run->args[0], strerror(error));
    waited = hf__program_wait(s, &child, 0, run->settings->kill_after_ms);
    return program_outcome(s, run, waited, child.outcome);
}

/* ---- the run -------------------------------------------------------------------------------- */

static void on_progress(const struct hf_processor_progress *progress, void *user)
{
    struct run *run = user;

    fprintf(run->cli->err, "\r%llu of %llu, %llu failed, %.1f per second%*s",
            (unsigned long long)progress->metrics.completed, (unsigned long long)progress->total,
            (unsigned long long)progress->metrics.failed, progress->rate, 8, "");
    fflush(run->cli->err);
}

static size_t error_fields(struct cli *cli, const void *all, size_t at, struct rows_field *fields)
{
    const struct hf_processor_error *error = &((const struct hf_processor_report *)all)->errors[at];

    fields[0] = hf__rows_text("account", error->account);
    fields[1] = hf__rows_text("run_time", error->run_time);
    fields[2] = hf__rows_number(cli, "attempts", error->attempts);
    fields[3] = hf__rows_text("error", error->text);
    return 4;
}

static void print_report(struct run *run, const struct hf_processor_report *report)
{
    struct cli *cli = run->cli;
    const struct hf_processor_metrics *metrics = &report->metrics;
    struct rows_field fields[] = {hf__rows_number(cli, "total", report->total),
                                  hf__rows_number(cli, "begun", metrics->begun),
                                  hf__rows_number(cli, "completed", metrics->completed),
                                  hf__rows_number(cli, "retried", metrics->retried),
                                  hf__rows_number(cli, "failed",
                                                  metrics->failed + metrics->exhausted),
                                  hf__rows_number(cli, "lost", metrics->lost),
                                  hf__rows_number(cli, "released", metrics->released),
                                  hf__rows_number(cli, "unsure", metrics->unsure),
                                  hf__rows_number(cli, "adopted", metrics->adopted),
                                  hf__rows_signed(cli, "elapsed_ms", report->elapsed_ms),
                                  hf__rows_text("checkpoint", report->checkpoint),
                                  hf__rows_array(cli, "errors", report, report->errors_len,
                                                 error_fields)};

    if (!run->settings->records.database.json)
        for (size_t i = 0; i < report->errors_len; i++)
            fprintf(cli->err, "holdfast records process: record %.*s %.*s: %.*s\n",
                    HF_FMT(report->errors[i].account), HF_FMT(report->errors[i].run_time),
                    HF_FMT(report->errors[i].text));
    hf__rows_one(cli, &run->settings->records.database, fields, COMMAND_LEN(fields));
}

static int process_records(struct run *run, struct hf_records *records)
{
    const struct settings *settings = run->settings;
    struct hf_scope *s = run->cli->scope;
    bool shown = run->cli->terminal && isatty(STDERR_FILENO) && !settings->records.database.quiet;
    struct hf_processor_report report = {.total = 0};
    struct hf_processor *processor;
    enum hf_status status;
    int ends = CLI_OK;

    if (hf_processor_open(s, records,
                          HF_OPTIONS(hf_processor_options, .workers = (uint32_t)settings->workers,
                                     .max_retries = (uint32_t)settings->retries,
                                     .no_retries = settings->retries == 0,
                                     .backoff_ms = (uint32_t)settings->backoff_ms,
                                     .backoff_multiplier = (double)settings->multiplier,
                                     .lease_ms = (uint32_t)settings->lease_ms,
                                     .timeout_ms = (uint32_t)settings->run_timeout_ms,
                                     .limit = settings->limit,
                                     .max_failures = settings->max_failures,
                                     .resume = settings->resume,
                                     .account_order = settings->account_order,
                                     .forever = settings->forever, .dry_run = settings->dry_run,
                                     .on_progress = shown ? on_progress : NULL, .user = run),
                          &processor) != HF_OK)
        return hf__database_fail(run->cli, "records process");
    hf_scope_timeout_ms(s, 0);
    status = hf_processor_run(s, processor, record_work, run, &report);
    if (shown)
        fputc('\n', run->cli->err);
    if (status == HF_CANCELED && hf__guard_signal(run->guard))
        ends = CLI_SIGNAL + hf__guard_signal(run->guard);
    else if (status != HF_OK)
        ends = hf__database_fail(run->cli, "records process");
    else if (report.metrics.failed || report.metrics.exhausted)
        ends = CLI_FAILED;
    print_report(run, &report);
    hf_processor_close(processor);
    return hf__cli_flushed(run->cli, ends);
}

static enum hf_status records_open(struct command_ctx *c)
{
    return hf__cli_records_open(c, (struct hf_records_options){.no_create = true});
}

static const struct command_place records_place = {records_open, hf__cli_records_close,
                                                   "records put"};

static enum hf_status process_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->exec.ptr && c->operands_len)
        return hf__command_fail(c, CLI_USAGE, "--exec and a program after -- cannot be combined");
    if (!settings->exec.ptr && !c->operands_len && !settings->dry_run)
        return hf__command_missing(c, "--exec");
    return HF_OK;
}

static enum hf_status records_process(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const char *const shell[] = {"sh", "-c", settings->exec.ptr};
    struct run run = {.cli = c->cli,
                      .settings = settings,
                      .guard = c->guard,
                      .args = settings->exec.ptr ? shell : c->operands,
                      .args_len = settings->exec.ptr ? COMMAND_LEN(shell) : c->operands_len};

    return hf__command_end(c, process_records(&run, c->place));
}

COMMAND_OF(records_process, records_process, RECORDS_SETTINGS(struct settings), .max = COMMAND_MANY,
           .guarded = true, .place = &records_place, .table = COMMAND_NEEDS,
           .check = process_check);
