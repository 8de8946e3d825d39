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
#include "cli/frame/child.h"
#include "cli/frame/commands.h"
#include "cli/frame/rows.h"

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
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define TABLE_SPECS                                                                                \
    {.kind = OPTION_TEXT,                                                                          \
     .letter = 'u',                                                                                \
     .name = "user",                                                                               \
     .value = "TEXT",                                                                              \
     .fallback = "global",                                                                         \
     .text = "For whom it is done: each user has keys of his own.",                                \
     FIELD(user)},                                                                                 \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "table", .value = "NAME", .fallback = "once",                 \
        .text = "The table of records.", FIELD(table)                                              \
    }

/*
 * With `wait` the table is made when it is missing, and a directory is waited for. False: *ends says
 * how to end; DATABASE_ABSENT when there is no table, and so no record.
 */
static bool open_onces(struct cli *cli, const char *command, const struct settings *settings,
                       struct database_wait *wait, struct hf_db **db, struct hf_once_table **onces,
                       int *ends)
{
    struct database_settings database = settings->database;

    database.create = wait != NULL;
    database.absent_ok = !wait;
    if (!(wait ? hf__database_open_waiting(cli, command, &database, wait, db, ends)
               : hf__database_open(cli, command, &database, db, ends)))
        return false;
    if (hf_once_table_open(cli->scope, *db,
                           HF_OPTIONS(hf_once_table_options, .table = settings->table,
                                      .owner = settings->owner, .no_create = !wait,
                                      .no_threads = !wait,
                                      .clock_skew_ms = (uint32_t)settings->skew_ms),
                           onces) == HF_OK)
        return true;
    *ends = hf__database_unopened(cli, command, &database);
    hf_db_close(*db);
    return false;
}

/* ---- run ------------------------------------------------------------------------------------ */

static const struct option_spec run_specs[] = {
    {.heading = "What is done once",
     .kind = OPTION_DURATION,
     .letter = 'w',
     .name = "wait",
     .value = "TIME",
     .max = OPTION_WEEK_MS,
     .text = "How long to wait while another attempt runs, or has the directory open; 0: not at "
             "all. Without this, until it has ended.",
     FIELD(wait_ms)},
    {.kind = OPTION_DURATION,
     .name = "lease",
     .value = "TIME",
     .min = 10,
     .max = OPTION_DAY_MS,
     .fallback = "20s",
     .text = "Silence after which another attempt may follow.",
     FIELD(lease_ms)},
    {.kind = OPTION_TEXT,
     .name = "payload",
     .value = "TEXT",
     .text = "What is to be done. The same key with another payload is refused, with exit code 4.",
     FIELD(payload)},
    {.kind = OPTION_DURATION,
     .name = "keep",
     .value = "TIME",
     .min = 1000,
     .max = (uint64_t)UINT32_MAX * 1000,
     .text = "How long it is known that it was done; for ever by default.",
     FIELD(keep_ms)},
    {.kind = OPTION_DURATION,
     .name = "clock-skew",
     .value = "TIME",
     .max = OPTION_DAY_MS,
     .text = "Trust the clocks of all hosts to differ by less than this, and follow a dead attempt "
             "without watching it for a lease.",
     FIELD(skew_ms)},
    {.kind = OPTION_TEXT,
     .name = "owner",
     .value = "TEXT",
     .text = "Who does it, for people who wonder; HOST/PROCESS-ID by default.",
     FIELD(owner)},
    TABLE_SPECS,
    {.heading = "The program",
     .kind = OPTION_FLAG,
     .name = "record-failure",
     .text = "Done is also what failed: it is not tried again, and who asks gets its exit code.",
     FIELD(record_failure)},
    {.kind = OPTION_NUMBER,
     .letter = 'E',
     .name = "busy-code",
     .value = "NUMBER",
     .max = 255,
     .fallback = "4",
     .text = "Exit code when another attempt was still running.",
     FIELD(busy_code)},
    CHILD_SPECS(struct settings),
    {.kind = OPTION_FLAG,
     .letter = 'q',
     .name = "quiet",
     .text = "Say nothing when another attempt is running.",
     FIELD(database.quiet)},
    DATABASE_SPECS(struct settings),
};

static const struct option_example run_examples[] = {
    {"holdfast once run \"invoice-$month\" -- ./send-invoices \"$month\"",
     "However often it is started, on however many hosts."},
    {"holdfast once run --user ann --keep 24h welcome -- ./mail-welcome ann",
     "Once a day for each user."},
};

const struct options_table hf__once_run_options = {
    .name = "once run",
    .operands = "KEY -- CMD...",
    .about = "Run a program unless it has been done. It is done when it ended with 0; then later "
             "calls end with 0 without running it. If it fails, or is killed, whoever asks next "
             "runs it again. The program has the key in HOLDFAST_ONCE_KEY and the number of the "
             "attempt, from 1, in HOLDFAST_ONCE_TRY.",
    .specs = run_specs,
    .len = COMMAND_LEN(run_specs),
    .examples = run_examples,
    .examples_len = COMMAND_LEN(run_examples),
    .notes = "Signals are passed on to the program. The exit code is the program's, 128 and the "
             "number of a signal that ended it, 126 or 127 when it cannot be run, 4 when another "
             "attempt took over meanwhile; otherwise those of holdfast(1), with an error on "
             "standard error.",
};

struct run {
    struct cli *cli;
    struct settings settings;
    struct database_wait wait;
    struct guard guard;
    const struct options *options;
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

static int begin(struct run *run, struct hf_once_table *onces, struct hf_once **once,
                 struct hf_once_record *record)
{
    const struct settings *settings = &run->settings;
    const struct database_wait *wait = &run->wait;
    struct hf_scope *s = run->cli->scope;
    struct hf_str key = hf_str_from(run->options->operands[0]);
    struct hf_once_options options = {.size = sizeof(options),
                                      .timeout_ms = (uint32_t)settings->lease_ms,
                                      .keep_s = (uint32_t)(settings->keep_ms / 1000),
                                      .payload = hf_bytes_of(settings->payload.ptr,
                                                             settings->payload.len)};
    enum hf_status status;

    if (wait->bounded && wait->wait_ms <= wait->waited_ms) {
        status = hf_once_try(s, onces, settings->user, key, &options, once, record);
    } else {
        hf_scope_timeout_ms(s, wait->bounded ? (uint32_t)(wait->wait_ms - wait->waited_ms) : 0);
        status = hf_once_begin(s, onces, settings->user, key, &options, once, record);
    }
    if (status == HF_OK)
        return CLI_OK;
    if (status == HF_CANCELED && hf__guard_signal(&run->guard))
        return CLI_SIGNAL + hf__guard_signal(&run->guard);
    if (status == HF_LOCKED || (status == HF_TIMEOUT && wait->bounded && wait->wait_ms)) {
        if (!settings->database.quiet)
            hf__database_fail(run->cli, "once run");
        return (int)settings->busy_code;
    }
    return hf__database_fail(run->cli, "once run");
}

static int run_program(struct run *run, struct hf_once *once)
{
    struct hf_scope *s = run->cli->scope;
    const struct options *options = run->options;
    const struct hf_str variables[] = {hf_scope_format(s, "HOLDFAST_ONCE_KEY=%s",
                                                       options->operands[0]),
                                       hf_scope_format(s, "HOLDFAST_ONCE_TRY=%llu",
                                                       (unsigned long long)hf_once_tries(once))};
    const struct child_program program = {.args = options->operands + 1,
                                          .args_len = options->operands_len - 1,
                                          .variables = variables,
                                          .variables_len = COMMAND_LEN(variables),
                                          .guard = &run->guard,
                                          .limit_ms = run->settings.run_timeout_ms,
                                          .kill_after_ms = run->settings.kill_after_ms};

    if (!variables[0].ptr || !variables[1].ptr)
        return hf__cli_fail(run->cli, "once run", CLI_FAILED, "out of memory");
    return hf__guard_run(&run->guard, run->cli, "once run", &program);
}

/* Record it by a scope of its own: the command's has another deadline, and may be canceled. */
static int finish(struct run *run, struct hf_once *once, int code)
{
    struct hf_scope *s = hf_scope_new(NULL);
    bool final =
        code == CLI_OK || (run->settings.record_failure && code < CLI_SIGNAL &&
                           code != CLI_TOO_LONG && code != CLI_NO_EXEC && code != CLI_NO_PROGRAM);
    enum hf_status status = HF_OK;

    if (!s) {
        hf_once_close(once);
        return hf__cli_fail(run->cli, "once run", CLI_FAILED, "out of memory");
    }
    hf_scope_timeout_ms(s, (uint32_t)run->settings.database.timeout_ms);
    if (final) {
        struct hf_item result = HF_ITEM(s, HF_N("code", code));

        status = code == CLI_OK ? hf_once_finish(s, once, result) : hf_once_fail(s, once, result);
    }
    if (status != HF_OK)
        code = hf__database_fail_of(run->cli, "once run", s,
                                    "the program ended, but that could not be recorded");
    hf_once_close(once);
    hf_scope_free(s);
    return code;
}

int hf__once_run_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct run run = {.cli = cli};
    struct hf_once_table *onces;
    struct hf_once_record record;
    struct hf_once *once = NULL;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__once_run_options, args_len, args, 2, SIZE_MAX, &run.settings,
                          &options, &ends))
        return ends;
    run.options = &options;
    run.wait = (struct database_wait){.bounded = hf__options_source(&hf__once_run_options, &options,
                                                                    "wait") != OPTION_DEFAULT,
                                      .wait_ms = run.settings.wait_ms,
                                      .busy_code = (int)run.settings.busy_code};
    if (!hf__guard_begin(&run.guard, cli->scope)) {
        ends = hf__cli_fail(cli, "once run", CLI_FAILED, "no thread can be started");
    } else if (open_onces(cli, "once run", &run.settings, &run.wait, &db, &onces, &ends)) {
        ends = begin(&run, onces, &once, &record);
        if (once)
            ends = finish(&run, once, run_program(&run, once));
        else if (ends == CLI_OK)
            ends = recorded_code(&record);
        hf_once_table_close(onces);
        hf_db_close(db);
    } else if (hf__guard_signal(&run.guard)) {
        ends = CLI_SIGNAL + hf__guard_signal(&run.guard);
    }
    hf__guard_end(&run.guard);
    return ends;
}

/* ---- show, ls ------------------------------------------------------------------------------- */

static const struct option_spec show_specs[] = {
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example show_examples[] = {
    {"holdfast once show invoice-2026-11", "Has it been done, when, by whom?"},
};

const struct options_table hf__once_show_options = {
    .name = "once show",
    .operands = "KEY",
    .about = "Show what is known of a key: running, done or failed. Exit code 3 when nobody has "
             "begun it.",
    .specs = show_specs,
    .len = COMMAND_LEN(show_specs),
    .examples = show_examples,
    .examples_len = COMMAND_LEN(show_examples),
};

enum { RECORD_FIELDS = 8 };

static void make_fields(struct cli *cli, const struct hf_once_record *record,
                        struct rows_field fields[RECORD_FIELDS])
{
    static const char *const states[] = {"none", "running", "done", "failed"};

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

/* There is no record of it, or, with DATABASE_ABSENT, none of anything. */
static int not_begun(struct cli *cli, const char *command, const char *key, int ends)
{
    return ends != DATABASE_ABSENT
               ? ends
               : hf__cli_fail(cli, command, CLI_NOT_FOUND, "nobody has begun '%s'", key);
}

int hf__once_show_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct rows_field fields[RECORD_FIELDS];
    struct hf_once_table *onces;
    struct hf_once_record record;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__once_show_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    if (!open_onces(cli, "once show", &settings, NULL, &db, &onces, &ends))
        return not_begun(cli, "once show", options.operands[0], ends);
    if (hf_once_get(cli->scope, onces, settings.user, hf_str_from(options.operands[0]), &record) !=
        HF_OK) {
        ends = hf__database_fail(cli, "once show");
    } else if (record.state == HF_ONCE_NONE) {
        ends = not_begun(cli, "once show", options.operands[0], DATABASE_ABSENT);
    } else {
        make_fields(cli, &record, fields);
        ends = hf__rows_one(cli, &settings.database, fields, RECORD_FIELDS);
    }
    hf_once_table_close(onces);
    hf_db_close(db);
    return ends;
}

static const struct option_spec ls_specs[] = {
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
    {"holdfast once ls invoice-", "What is known of a user's keys that begin so."},
};

const struct options_table hf__once_ls_options = {
    .name = "once ls",
    .operands = "[PREFIX]",
    .about = "List what is known of a user's keys, or of those that begin with PREFIX, in their "
             "order.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

int hf__once_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct hf_once_table *onces;
    struct hf_once_list list;
    struct options options;
    struct hf_db *db;
    struct rows *rows;
    int ends;

    if (!hf__cli_operands(cli, &hf__once_ls_options, args_len, args, 0, 1, &settings, &options,
                          &ends))
        return ends;
    rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    if (!rows)
        return hf__cli_fail(cli, "once ls", CLI_FAILED, "out of memory");
    if (!open_onces(cli, "once ls", &settings, NULL, &db, &onces, &ends))
        return hf__rows_none(cli, &settings.database, "records", ends);
    if (hf_once_list(cli->scope, onces, settings.user,
                     HF_OPTIONS(hf_once_list_options, .limit = (uint32_t)settings.limit,
                                .prefix =
                                    hf_str_from(options.operands_len ? options.operands[0] : NULL)),
                     &list) != HF_OK) {
        ends = hf__database_fail(cli, "once ls");
    } else {
        hf__rows_begin(rows, cli, &settings.database, "records");
        for (size_t i = 0; i < list.records_len; i++) {
            struct rows_field fields[RECORD_FIELDS];

            make_fields(cli, &list.records[i], fields);
            hf__rows_add(rows, fields, RECORD_FIELDS);
        }
        ends = hf__rows_end(rows, (struct hf_str){0}, CLI_OK);
    }
    hf_once_table_close(onces);
    hf_db_close(db);
    return ends;
}

/* ---- clear ---------------------------------------------------------------------------------- */

static const struct option_spec clear_specs[] = {
    TABLE_SPECS,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example clear_examples[] = {
    {"holdfast once clear invoice-2026-11", "The next 'once run' does it again."},
};

const struct options_table hf__once_clear_options = {
    .name = "once clear",
    .operands = "KEY",
    .about = "Forget that it was done, so that it can be done again. An attempt that runs is not "
             "recorded any more. Exit code 3 when there was nothing to forget.",
    .specs = clear_specs,
    .len = COMMAND_LEN(clear_specs),
    .examples = clear_examples,
    .examples_len = COMMAND_LEN(clear_examples),
};

static int print_cleared(struct cli *cli, const struct settings *settings, const char *key)
{
    struct rows_field fields[] = {hf__rows_text("user", settings->user),
                                  hf__rows_text("key", hf_str_from(key)),
                                  hf__rows_bool("cleared", true)};

    if (!settings->database.json)
        return CLI_OK;
    return hf__rows_one(cli, &settings->database, fields, COMMAND_LEN(fields));
}

int hf__once_clear_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct hf_once_table *onces;
    struct options options;
    bool cleared = false;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__once_clear_options, args_len, args, 1, 1, &settings, &options,
                          &ends))
        return ends;
    if (!open_onces(cli, "once clear", &settings, NULL, &db, &onces, &ends))
        return not_begun(cli, "once clear", options.operands[0], ends);
    if (hf_once_clear(cli->scope, onces, settings.user, hf_str_from(options.operands[0]),
                      &cleared) != HF_OK)
        ends = hf__database_fail(cli, "once clear");
    else if (!cleared)
        ends = not_begun(cli, "once clear", options.operands[0], DATABASE_ABSENT);
    else
        ends = print_cleared(cli, &settings, options.operands[0]);
    hf_once_table_close(onces);
    hf_db_close(db);
    return ends;
}
