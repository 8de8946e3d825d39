/*
 * cli/lock/cmd_lock_run.c: `holdfast lock run NAME -- CMD...`: a program that runs while we hold a lock.
 *
 *     open        a directory that another process has open is waited for, too
 *     acquire     waiting as long as --wait says, in all                   ends with --busy-code
 *     run         the program, which has the fence in HOLDFAST_LOCK_TOKEN; the library renews
 *     release     whatever came out
 *     end         as the program did
 *
 * A lock that is lost while the program runs may be another's already, so the program is ended,
 * unless --keep-running says that it copes: by handing the fence to what the lock protects.
 */
#include "cli/frame/child.h"
#include "cli/frame/commands.h"
#include "cli/frame/database.h"
#include "cli/frame/json.h"

#include <holdfast/lock.h>

#include <stdatomic.h>

enum { PERMITS_MAX = 1000000 };

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str owner;
    uint64_t wait_ms;
    uint64_t lease_ms;
    uint64_t heartbeat_ms;
    bool shared;
    uint64_t permits;
    struct hf_str data;
    uint64_t skew_ms;
    uint64_t busy_code;
    bool keep_running;
    uint64_t run_timeout_ms;
    uint64_t kill_after_ms;
};

#define FIELD(member) .offset = offsetof(struct settings, member)

static const struct option_spec specs[] = {
    {.heading = "The lock",
     .kind = OPTION_DURATION,
     .letter = 'w',
     .name = "wait",
     .value = "TIME",
     .max = OPTION_WEEK_MS,
     .text = "How long to wait while others hold it, or have its directory open; 0: not at all. "
             "Without this, until it is free.",
     FIELD(wait_ms)},
    {.kind = OPTION_DURATION,
     .name = "lease",
     .value = "TIME",
     .min = 10,
     .max = OPTION_DAY_MS,
     .fallback = "20s",
     .text = "Silence after which others may take the lock over.",
     FIELD(lease_ms)},
    {.kind = OPTION_DURATION,
     .name = "heartbeat",
     .value = "TIME",
     .max = OPTION_DAY_MS,
     .text = "How often the lease is renewed, at most half of it; a quarter by default.",
     FIELD(heartbeat_ms)},
    {.kind = OPTION_FLAG,
     .letter = 's',
     .name = "shared",
     .text = "Hold it together with others that share it.",
     FIELD(shared)},
    {.kind = OPTION_NUMBER,
     .name = "permits",
     .value = "NUMBER",
     .max = PERMITS_MAX,
     .text = "Hold it together with others, so many at a time.",
     FIELD(permits)},
    {.kind = OPTION_TEXT,
     .name = "data",
     .value = "JSON",
     .text = "An object that is kept with the lock, for 'lock show'.",
     FIELD(data)},
    {.kind = OPTION_TEXT,
     .name = "owner",
     .value = "TEXT",
     .text = "Who holds it, for people who wonder; HOST/PROCESS-ID by default.",
     FIELD(owner)},
    {.kind = OPTION_DURATION,
     .name = "clock-skew",
     .value = "TIME",
     .max = OPTION_DAY_MS,
     .text = "Trust the clocks of all hosts to differ by less than this, and take over from a dead "
             "holder without watching it for a lease.",
     FIELD(skew_ms)},
    {.kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .fallback = "locks",
     .text = "The table of locks; made when it is missing.",
     FIELD(table)},
    {.heading = "The program",
     .kind = OPTION_NUMBER,
     .letter = 'E',
     .name = "busy-code",
     .value = "NUMBER",
     .max = 255,
     .fallback = "4",
     .text = "Exit code when the lock is held by others, or its directory open.",
     FIELD(busy_code)},
    {.kind = OPTION_FLAG,
     .name = "keep-running",
     .text =
         "Let the program go on when the lock is lost. Otherwise it is ended, with exit code 4.",
     FIELD(keep_running)},
    CHILD_SPECS(struct settings),
    {.kind = OPTION_FLAG,
     .letter = 'q',
     .name = "quiet",
     .text = "Say nothing when the lock is held by others.",
     FIELD(database.quiet)},
    DATABASE_SPECS(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast lock run backup -- /usr/local/bin/backup --full",
     "One backup at a time, whichever host it starts on; others wait."},
    {"holdfast lock run --wait 0 --quiet nightly -- ./nightly.sh",
     "For cron on many hosts: one runs it, the others end with code 4."},
    {"holdfast lock run deploy -- sh -c 'deploy --fence \"$HOLDFAST_LOCK_TOKEN\"'",
     "Hand the fence to what the lock protects, which refuses a lower one than it has seen."},
    {"holdfast lock run --permits 3 api -- ./crawl", "Three at a time."},
};

const struct options_table hf__lock_run_options = {
    .name = "lock run",
    .operands = "NAME -- CMD...",
    .about = "Acquire a lock, run a program, release the lock. The lock is renewed while the "
             "program runs, and is free a lease later if this process is killed; at once in a "
             "directory (embedded:PATH), as it can be opened only then. The program has "
             "the lock's fence, a number that grows with every holder, in HOLDFAST_LOCK_TOKEN, "
             "and its name in HOLDFAST_LOCK_NAME.",
    .specs = specs,
    .len = COMMAND_LEN(specs),
    .examples = examples,
    .examples_len = COMMAND_LEN(examples),
    .notes = "Signals are passed on to the program. The exit code is the program's, 128 and the "
             "number of a signal that ended it, 126 or 127 when it cannot be run; otherwise those "
             "of holdfast(1), with an error on standard error.",
};

/* ---- running -------------------------------------------------------------------------------- */

struct run {
    struct cli *cli;
    struct settings settings;
    struct database_wait wait;
    struct guard guard;
    struct hf_lock_table *locks;
    struct hf_lock *lock;
    _Atomic int lost; /* enum hf_lock_state; 0: it was not */
};

static void on_lost(struct hf_lock *lock, enum hf_lock_state why, void *user)
{
    struct run *run = user;

    (void)lock;
    atomic_store(&run->lost, (int)why);
    if (!run->settings.keep_running)
        hf__guard_stop_child(&run->guard);
}

static bool read_data(struct run *run, struct hf_item *data, int *ends)
{
    struct hf_scope *s = run->cli->scope;
    const struct json *json;
    struct hf_str error;

    if (!run->settings.data.ptr)
        return true;
    json = hf__json_read(s, run->settings.data, &error);
    if (json && json->kind == JSON_OBJECT) {
        *data = hf_value_item(hf__json_to_value(s, json));
        if (hf_item_check(s, *data) == HF_OK)
            return true;
        error = hf_scope_error(s)->message;
    }
    *ends = hf__cli_fail(run->cli, "lock run", CLI_USAGE, "--data: %.*s",
                         HF_FMT(error.ptr ? error : HF_STR("it is no JSON object")));
    return false;
}

static int acquire(struct run *run, struct hf_str name)
{
    const struct settings *settings = &run->settings;
    const struct database_wait *wait = &run->wait;
    struct hf_scope *s = run->cli->scope;
    struct hf_lock_options options = {
        .size = sizeof(options),
        .lease_ms = (uint32_t)settings->lease_ms,
        .heartbeat_ms = (uint32_t)settings->heartbeat_ms,
        .mode = settings->permits  ? HF_LOCK_PERMIT
                : settings->shared ? HF_LOCK_SHARED
                                   : HF_LOCK_EXCLUSIVE,
        .permits = (uint32_t)settings->permits,
        .on_lost = on_lost,
        .user = run,
    };
    enum hf_status status;
    int ends;

    if (!read_data(run, &options.data, &ends))
        return ends;
    if (wait->bounded && wait->wait_ms <= wait->waited_ms) {
        status = hf_lock_try(s, run->locks, name, &options, &run->lock);
    } else {
        hf_scope_timeout_ms(s, wait->bounded ? (uint32_t)(wait->wait_ms - wait->waited_ms) : 0);
        status = hf_lock_acquire(s, run->locks, name, &options, &run->lock);
    }
    if (status == HF_OK)
        return CLI_OK;
    if (status == HF_CANCELED && hf__guard_signal(&run->guard))
        return CLI_SIGNAL + hf__guard_signal(&run->guard);
    if (status == HF_LOCKED || (status == HF_TIMEOUT && wait->bounded && wait->wait_ms)) {
        if (!settings->database.quiet)
            hf__database_fail(run->cli, "lock run");
        return (int)settings->busy_code;
    }
    return hf__database_fail(run->cli, "lock run");
}

static int run_program(struct run *run, const struct options *options)
{
    struct hf_scope *s = run->cli->scope;
    const struct hf_str variables[] = {
        hf_scope_format(s, "HOLDFAST_LOCK_TOKEN=%llu",
                        (unsigned long long)hf_lock_fence(run->lock)),
        hf_scope_format(s, "HOLDFAST_LOCK_NAME=%s", options->operands[0])};
    const struct child_program program = {.args = options->operands + 1,
                                          .args_len = options->operands_len - 1,
                                          .variables = variables,
                                          .variables_len = COMMAND_LEN(variables),
                                          .guard = &run->guard,
                                          .limit_ms = run->settings.run_timeout_ms,
                                          .kill_after_ms = run->settings.kill_after_ms};

    if (!variables[0].ptr || !variables[1].ptr)
        return hf__cli_fail(run->cli, "lock run", CLI_FAILED, "out of memory");
    return hf__guard_run(&run->guard, run->cli, "lock run", &program);
}

/* Give the lock back by a scope of its own: the command's may be canceled. */
static void release(struct run *run, const char *name)
{
    struct hf_scope *s = hf_scope_new(NULL);
    enum hf_status status;

    hf_scope_timeout_ms(s, (uint32_t)run->settings.database.timeout_ms);
    status = hf_lock_release(s, run->lock);
    if (status == HF_LOST || atomic_load(&run->lost))
        hf__cli_fail(run->cli, "lock run", 0, "lock '%s' was lost while the program ran: %s", name,
                     atomic_load(&run->lost) == HF_LOCK_EXPIRED ? "it could not be renewed in time"
                                                                : "another took it, or broke it");
    else if (status != HF_OK)
        hf__database_fail_of(run->cli, "lock run", s, "the lock could not be released");
    hf_scope_free(s);
}

static int run_locked(struct run *run, struct hf_db *db, const struct options *options)
{
    const struct settings *settings = &run->settings;
    struct hf_scope *s = run->cli->scope;
    int ends;

    if (hf_lock_table_open(s, db,
                           HF_OPTIONS(hf_lock_table_options, .table = settings->table,
                                      .owner = settings->owner,
                                      .clock_skew_ms = (uint32_t)settings->skew_ms),
                           &run->locks) != HF_OK) {
        if (hf__guard_signal(&run->guard))
            return CLI_SIGNAL + hf__guard_signal(&run->guard);
        return hf__database_fail(run->cli, "lock run");
    }
    ends = acquire(run, hf_str_from(options->operands[0]));
    if (run->lock) {
        ends = run_program(run, options);
        release(run, options->operands[0]);
        if (atomic_load(&run->lost) && run->guard.stopped && !run->guard.too_long)
            ends = CLI_CONDITION;
    }
    hf_lock_table_close(run->locks);
    return ends;
}

int hf__lock_run_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct run run = {.cli = cli};
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__lock_run_options, args_len, args, 2, SIZE_MAX, &run.settings,
                          &options, &ends))
        return ends;
    run.settings.database.create = true;
    run.wait = (struct database_wait){.bounded = hf__options_source(&hf__lock_run_options, &options,
                                                                    "wait") != OPTION_DEFAULT,
                                      .wait_ms = run.settings.wait_ms,
                                      .busy_code = (int)run.settings.busy_code};
    if (run.settings.shared && run.settings.permits)
        return hf__cli_fail(cli, "lock run", CLI_USAGE,
                            "--shared and --permits exclude each other");
    if (!hf__guard_begin(&run.guard, cli->scope)) {
        ends = hf__cli_fail(cli, "lock run", CLI_FAILED, "no thread can be started");
    } else if (hf__database_open_waiting(cli, "lock run", &run.settings.database, &run.wait, &db,
                                         &ends)) {
        ends = run_locked(&run, db, &options);
        hf_db_close(db);
    } else if (hf__guard_signal(&run.guard)) {
        ends = CLI_SIGNAL + hf__guard_signal(&run.guard);
    }
    hf__guard_end(&run.guard);
    return ends;
}
