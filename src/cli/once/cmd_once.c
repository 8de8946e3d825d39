/*
 * cli/once/cmd_once.c: `holdfast once run KEY -- CMD...`: a program that is run once, whoever asks and
 * however often; and what is known of it: `once show|ls|clear`.
 *
 *     begin       ours to do, done before, or somebody else is at it: then wait (--wait)
 *     run         the program; the library says every so often that we are alive
 *     finish      ended with 0: recorded as done. Anything else: it is not, and whoever asks next
 *                 begins anew, unless --record-failure says that a failure is final, too
 *     end         as the program did, now or when it was done
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/child.h"

#include <holdfast/once.h>

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str user;
    struct hf_str owner;
    struct hf_str payload;
    uint64_t wait_ms;
    uint64_t lease_ms;
    uint64_t keep_ms;
    uint64_t skew_ms;
    uint64_t busy_code;
    bool record_failure;
    uint64_t run_timeout_ms;
    uint64_t kill_after_ms;
    uint64_t limit;
    struct database_wait wait; /* what --wait says */
};

#define TABLE_SPECS                                                                                \
    OPT_TEXT("user", "TEXT", user, "User; each user has separate keys.", .letter = 'u',            \
             .fallback = "global"),                                                                \
        OPT_TEXT("table", "NAME", table, "The table of run-once jobs.", .fallback = "once")

/* To run something the table is made, and renewals are sent. */
static enum hf_status onces_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_once_table *onces;

    TRY(hf_once_table_open(c->scope, c->db,
                           HF_OPTIONS(hf_once_table_options, .table = settings->table,
                                      .owner = settings->owner, .no_create = !c->makes,
                                      .no_threads = !c->makes,
                                      .clock_skew_ms = (uint32_t)settings->skew_ms),
                           &onces));
    c->place = onces;
    return HF_OK;
}

static void onces_close(void *onces)
{
    hf_once_table_close(onces);
}

static const struct command_place onces_place = {onces_open, onces_close, NULL};

/* ---- run ------------------------------------------------------------------------------------ */

static const struct option_spec run_specs[] = {
    OPT_TIME("wait", wait_ms, 0, OPTION_WEEK_MS,
             "How long to wait while another attempt runs, or has the directory open; 0: do not "
             "wait. By default, until it has ended. If a server has the directory open, the exit "
             "code is 6: use its URL.",
             .letter = 'w', .heading = "Job"),
    OPT_TIME("lease", lease_ms, 10, OPTION_DAY_MS,
             "Lease: an attempt that was silent for this long is considered dead, and another may "
             "start.",
             .fallback = "20s"),
    OPT_TEXT(
        "payload", "TEXT", payload,
        "Input of the job. The same key with a different payload is refused with exit code 4."),
    OPT_TIME("keep", keep_ms, 1000, (uint64_t)UINT32_MAX * 1000,
             "How long to remember that the job is done; forever by default."),
    OPT_TIME("clock-skew", skew_ms, 0, OPTION_DAY_MS,
             "Trust that the clocks of all hosts differ by less than this, and replace a dead "
             "attempt without watching it for a lease."),
    OPT_TEXT("owner", "TEXT", owner, "Owner name shown in listings; HOST/PROCESS-ID by default."),
    TABLE_SPECS,
    OPT_FLAG(
        "record-failure", record_failure,
        "Treat a failure as final: later calls return its exit code without running the program.",
        .heading = "Program"),
    OPT_NUMBER("busy-code", busy_code, 0, 255, "Exit code if another attempt is still running.",
               .letter = 'E', .fallback = "4"),
    CHILD_SPECS(struct settings),
    OPT_FLAG("quiet", database.quiet, "Print nothing if another attempt is running.",
             .letter = 'q'),
    DATABASE_SPECS(struct settings),
};

static const struct option_example run_examples[] = {
    {"holdfast once run \"invoice-$month\" -- ./send-invoices \"$month\"",
     "Runs once, however often you start it, on however many hosts."},
    {"holdfast once run --user ann --keep 24h welcome -- ./mail-welcome ann",
     "Once a day for each user."},
};

const struct options_table hf__once_run_options = {
    .name = "once run",
    .operands = "KEY -- CMD...",
    .about =
        "Run a program unless it has already succeeded. When it ends with 0 the job is done: "
        "later calls return 0 without running it. If it fails or is killed, the next call runs "
        "it again. The program finds the key in HOLDFAST_ONCE_KEY and the number of the attempt, "
        "from 1, in HOLDFAST_ONCE_TRY.",
    COMMAND_SPECS(run),
    .notes =
        "Signals are passed on to the program. The exit code is the program's, 128 + N if signal "
        "N ended it, 126 or 127 if it cannot be started, 4 if another attempt took over "
        "meanwhile; otherwise as in holdfast(1), with an error on standard error.",
};

/* Done before: with what came out. */
static int recorded_code(const struct hf_once_record *record)
{
    int64_t code = 0;

    if (record->result.ptr && hf_value_i64(hf_item_get(record->result, HF_STR("code")), &code) &&
        code >= 0 && code <= 255)
        return (int)code;
    return record->state == HF_ONCE_FAILED ? CLI_FAILED : CLI_OK;
}

/* *once is NULL when it is not ours to do. */
static enum hf_status once_begin(struct command_ctx *c, struct hf_once **once,
                                 struct hf_once_record *record)
{
    const struct settings *settings = c->settings;
    const struct database_wait *wait = &settings->wait;
    struct hf_str key = hf__command_operand(c, 0);
    struct hf_once_options options = {.size = sizeof(options),
                                      .timeout_ms = (uint32_t)settings->lease_ms,
                                      .keep_s = (uint32_t)(settings->keep_ms / 1000),
                                      .payload = hf_bytes_of(settings->payload.ptr,
                                                             settings->payload.len)};
    enum hf_status status;

    if (wait->bounded && wait->wait_ms <= wait->waited_ms) {
        status = hf_once_try(c->scope, c->place, settings->user, key, &options, once, record);
    } else {
        hf_scope_timeout_ms(c->scope,
                            wait->bounded ? (uint32_t)(wait->wait_ms - wait->waited_ms) : 0);
        status = hf_once_begin(c->scope, c->place, settings->user, key, &options, once, record);
    }
    return hf__command_waited(c, status);
}

static int run_program(struct command_ctx *c, struct hf_once *once)
{
    const struct settings *settings = c->settings;
    const struct hf_str variables[] = {hf_scope_format(c->scope, "HOLDFAST_ONCE_KEY=%s",
                                                       c->operands[0]),
                                       hf_scope_format(c->scope, "HOLDFAST_ONCE_TRY=%llu",
                                                       (unsigned long long)hf_once_tries(once))};
    const struct child_program program = {.args = c->operands + 1,
                                          .args_len = c->operands_len - 1,
                                          .variables = variables,
                                          .variables_len = COMMAND_LEN(variables),
                                          .guard = c->guard,
                                          .limit_ms = settings->run_timeout_ms,
                                          .kill_after_ms = settings->kill_after_ms};

    if (!variables[0].ptr || !variables[1].ptr)
        return hf__cli_fail(c->cli, c->name, CLI_FAILED, "out of memory");
    return hf__guard_run(c->guard, c->cli, c->name, &program);
}

/* Record it by a scope of its own: the command's has another deadline, and may be canceled. */
static int once_finish(struct command_ctx *c, struct hf_once *once, int code)
{
    const struct settings *settings = c->settings;
    struct hf_scope *s = hf_scope_new(NULL);
    bool final =
        code == CLI_OK || (settings->record_failure && code < CLI_SIGNAL && code != CLI_TOO_LONG &&
                           code != CLI_NO_EXEC && code != CLI_NO_PROGRAM);
    enum hf_status status = HF_OK;

    if (!s) {
        hf_once_close(once);
        return hf__cli_fail(c->cli, c->name, CLI_FAILED, "out of memory");
    }
    hf_scope_timeout_ms(s, (uint32_t)c->database->timeout_ms);
    if (final) {
        struct hf_item result = HF_ITEM(s, HF_N("code", code));

        status = code == CLI_OK ? hf_once_finish(s, once, result) : hf_once_fail(s, once, result);
    }
    if (status != HF_OK)
        code = hf__database_fail_of(c->cli, c->name, s,
                                    "the program ended, but its result could not be recorded");
    hf_once_close(once);
    hf_scope_free(s);
    return code;
}

static enum hf_status once_run_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    hf__command_wait(c, &settings->wait, settings->wait_ms, settings->busy_code);
    return HF_OK;
}

static enum hf_status once_run(struct command_ctx *c)
{
    struct hf_once_record record = {.state = HF_ONCE_NONE};
    struct hf_once *once = NULL;

    TRY(once_begin(c, &once, &record));
    if (once)
        c->ends = once_finish(c, once, run_program(c, once));
    else if (c->ends == CLI_OK)
        c->ends = recorded_code(&record);
    return HF_OK;
}

COMMAND_OF(once_run, once_run, COMMAND_SETTINGS(struct settings), .min = 2, .max = COMMAND_MANY,
           .guarded = true, .place = &onces_place, .table = COMMAND_MAKES, .check = once_run_check);

/* ---- show, ls ------------------------------------------------------------------------------- */

static const struct option_spec show_specs[] = {
    TABLE_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example show_examples[] = {
    {"holdfast once show invoice-2026-11", "Is it done, since when, by whom?"},
};

const struct options_table hf__once_show_options = {
    .name = "once show",
    .operands = "KEY",
    .about = "Show the state of a job: running, done or failed. If it was never started, the exit "
             "code is 3.",
    COMMAND_SPECS(show),
};

enum { RECORD_FIELDS = 8 };

static void make_fields(struct cli *cli, const struct hf_once_record *record,
                        struct rows_field fields[RECORD_FIELDS])
{
    static const char *const states[] = {"none", "running", "done", "failed"};

    _Static_assert(ARRAY_LEN(states) == HF_ONCE_FAILED + 1, "every state has a name");
    assert(record->state < ARRAY_LEN(states));
    fields[0] = hf__rows_text("user", record->user);
    fields[1] = hf__rows_text("key", record->key);
    fields[2] = hf__rows_text("state", hf_str_from(states[record->state]));
    fields[3] = hf__rows_signed(cli, "code", recorded_code(record));
    if (record->state != HF_ONCE_DONE && record->state != HF_ONCE_FAILED)
        fields[3].text = (struct hf_str){0};
    fields[4] = hf__rows_number(cli, "tries", record->tries);
    fields[5] = hf__rows_text("owner", record->owner);
    fields[6] = hf__rows_time(cli, "began", record->began_us);
    fields[7] = hf__rows_time(cli, "done", record->at_us);
}

/* There is no record of it, or none of anything. */
static enum hf_status not_begun(struct command_ctx *c)
{
    return hf__command_fail(c, CLI_NOT_FOUND, "job '%s' was never started", c->operands[0]);
}

static enum hf_status once_show(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_once_record record = {.state = HF_ONCE_NONE};
    struct rows_field fields[RECORD_FIELDS];

    if (c->place)
        TRY(hf_once_get(c->scope, c->place, settings->user, hf__command_operand(c, 0), &record));
    if (record.state == HF_ONCE_NONE)
        return not_begun(c);
    make_fields(c->cli, &record, fields);
    return hf__command_print(c, fields, RECORD_FIELDS);
}

COMMAND_OF(once_show, once_show, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &onces_place, .table = COMMAND_LOOKS);

static const struct option_spec ls_specs[] = {
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    TABLE_SPECS,
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast once ls invoice-", "Jobs whose keys begin with \"invoice-\"."},
};

const struct options_table hf__once_ls_options = {
    .name = "once ls",
    .operands = "[PREFIX]",
    .about =
        "List a user's jobs, or those whose keys begin with PREFIX, in the order of their keys.",
    COMMAND_SPECS(ls),
};

static enum hf_status once_ls(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_once_list list;
    struct rows *rows;

    TRY(hf_once_list(c->scope, c->place, settings->user,
                     HF_OPTIONS(hf_once_list_options, .limit = (uint32_t)settings->limit,
                                .prefix = hf__command_operand(c, 0)),
                     &list));
    rows = hf__command_rows(c, "records");
    for (size_t i = 0; i < list.records_len; i++) {
        struct rows_field fields[RECORD_FIELDS];

        make_fields(c->cli, &list.records[i], fields);
        hf__rows_add(rows, fields, RECORD_FIELDS);
    }
    return HF_OK;
}

COMMAND_OF(once_ls, once_ls, COMMAND_SETTINGS(struct settings), .max = 1, .place = &onces_place,
           .table = COMMAND_LOOKS, .list = "records");

/* ---- clear ---------------------------------------------------------------------------------- */

static const struct option_spec clear_specs[] = {
    TABLE_SPECS,
    DATABASE_ONE(struct settings),
};

static const struct option_example clear_examples[] = {
    {"holdfast once clear invoice-2026-11", "The next 'once run' runs it again."},
};

const struct options_table hf__once_clear_options = {
    .name = "once clear",
    .operands = "KEY",
    .about =
        "Forget that a job is done, so that it can run again. The result of an attempt that is "
        "running is not recorded any more. If there is nothing to forget, the exit code is 3.",
    COMMAND_SPECS(clear),
};

static enum hf_status once_clear(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    bool cleared = false;

    if (c->place)
        TRY(hf_once_clear(c->scope, c->place, settings->user, hf__command_operand(c, 0), &cleared));
    if (!cleared)
        return not_begun(c);
    return COMMAND_JSON(c, hf__rows_text("user", settings->user),
                        hf__rows_text("key", hf__command_operand(c, 0)),
                        hf__rows_bool("cleared", true));
}

COMMAND_OF(once_clear, once_clear, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &onces_place, .table = COMMAND_LOOKS);
