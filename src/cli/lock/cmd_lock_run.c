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
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/database.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/child.h"

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
    struct database_wait wait; /* what --wait says */
    struct hf_item held;       /* what --data says */
};

static const struct option_spec specs[] = {
    OPT_TIME("wait", wait_ms, 0, OPTION_WEEK_MS,
             "How long to wait while others hold the lock, or have its directory open; 0: do not "
             "wait. By default, until it is free. If a server has the directory open, the exit "
             "code is 6: use its URL.",
             .letter = 'w', .heading = "Lock"),
    OPT_TIME("lease", lease_ms, 10, OPTION_DAY_MS,
             "Lease: others may take over a lock that was not renewed for this long.",
             .fallback = "20s"),
    OPT_TIME("heartbeat", heartbeat_ms, 0, OPTION_DAY_MS,
             "How often the lease is renewed: at most half of the lease, by default a quarter."),
    OPT_FLAG("shared", shared, "Shared lock: hold it together with others that share it.",
             .letter = 's'),
    OPT_NUMBER("permits", permits, 0, PERMITS_MAX,
               "Semaphore: this many can hold the lock at a time."),
    OPT_TEXT("data", "JSON", data, "JSON object to store with the lock; 'lock show' prints it."),
    OPT_TEXT("owner", "TEXT", owner, "Owner name shown in listings; HOST/PROCESS-ID by default."),
    OPT_TIME(
        "clock-skew", skew_ms, 0, OPTION_DAY_MS,
        "Trust that the clocks of all hosts differ by less than this, and take over from a dead "
        "holder without watching it for a lease."),
    OPT_TEXT("table", "NAME", table, "The table of locks; created if missing.",
             .fallback = "locks"),
    OPT_NUMBER("busy-code", busy_code, 0, 255,
               "Exit code if others hold the lock, or have its directory open.", .letter = 'E',
               .fallback = "4", .heading = "Program"),
    OPT_FLAG(
        "keep-running", keep_running,
        "Let the program run on if the lock is lost. By default it is stopped, with exit code 4."),
    CHILD_SPECS(struct settings),
    OPT_FLAG("quiet", database.quiet, "Print nothing if others hold the lock.", .letter = 'q'),
    DATABASE_SPECS(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast lock run backup -- /usr/local/bin/backup --full",
     "One backup at a time, on any host; others wait."},
    {"holdfast lock run --wait 0 --quiet nightly -- ./nightly.sh",
     "For cron on many hosts: one runs it, the others end with exit code 4."},
    {"holdfast lock run deploy -- sh -c 'deploy --fence \"$HOLDFAST_LOCK_TOKEN\"'",
     "Pass the fence to what the lock protects; it must refuse fences lower than the highest it "
     "has seen."},
    {"holdfast lock run --permits 3 api -- ./crawl", "At most three at a time."},
};

const struct options_table hf__lock_run_options = {
    .name = "lock run",
    .operands = "NAME -- CMD...",
    .about =
        "Acquire a lock, run a program, release the lock. The lock is renewed while the program "
        "runs. If this process is killed, the lock becomes free after a lease; on a directory "
        "(embedded:PATH) at once. The program finds the lock's fence, a number that grows with "
        "every holder, in HOLDFAST_LOCK_TOKEN, and the name of the lock in HOLDFAST_LOCK_NAME.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "Signals are passed on to the program. The exit code is the program's, 128 + N if signal "
        "N ended it, 126 or 127 if it cannot be started; otherwise as in holdfast(1), with an "
        "error on standard error.",
};

/* ---- running -------------------------------------------------------------------------------- */

struct run {
    struct command_ctx *c;
    const struct settings *settings;
    struct hf_lock *lock;
    _Atomic int lost; /* enum hf_lock_state; 0: it was not */
};

static void on_lost(struct hf_lock *lock, enum hf_lock_state why, void *user)
{
    struct run *run = user;

    (void)lock;
    atomic_store(&run->lost, (int)why);
    if (!run->settings->keep_running)
        hf__guard_stop_child(run->c->guard);
}

static enum hf_status data_read(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_scope *s = c->scope;
    const struct json_node *json;
    struct hf_str error;

    if (!settings->data.ptr)
        return HF_OK;
    json = hf__cli_json_read(s, settings->data, &error);
    if (json && json->kind == JSON_OBJECT) {
        settings->held = hf_value_item(hf__cli_json_to_value(s, json));
        if (hf_item_check(s, settings->held) == HF_OK)
            return HF_OK;
        error = hf_scope_error(s)->message;
    }
    return hf__command_fail(c, CLI_USAGE, "--data: %.*s",
                            HF_FMT(error.ptr ? error : HF_STR("not a JSON object")));
}

static enum hf_status lock_acquire(struct run *run)
{
    const struct settings *settings = run->settings;
    const struct database_wait *wait = &settings->wait;
    struct command_ctx *c = run->c;
    struct hf_str name = hf__command_operand(c, 0);
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
        .data = settings->held,
    };
    enum hf_status status;

    if (wait->bounded && wait->wait_ms <= wait->waited_ms) {
        status = hf_lock_try(c->scope, c->place, name, &options, &run->lock);
    } else {
        hf_scope_timeout_ms(c->scope,
                            wait->bounded ? (uint32_t)(wait->wait_ms - wait->waited_ms) : 0);
        status = hf_lock_acquire(c->scope, c->place, name, &options, &run->lock);
    }
    return hf__command_waited(c, status);
}

static int run_program(struct run *run)
{
    struct command_ctx *c = run->c;
    const struct hf_str variables[] = {
        hf_scope_format(c->scope, "HOLDFAST_LOCK_TOKEN=%llu",
                        (unsigned long long)hf_lock_fence(run->lock)),
        hf_scope_format(c->scope, "HOLDFAST_LOCK_NAME=%s", c->operands[0])};
    const struct child_program program = {.args = c->operands + 1,
                                          .args_len = c->operands_len - 1,
                                          .variables = variables,
                                          .variables_len = COMMAND_LEN(variables),
                                          .guard = c->guard,
                                          .limit_ms = run->settings->run_timeout_ms,
                                          .kill_after_ms = run->settings->kill_after_ms};

    if (!variables[0].ptr || !variables[1].ptr)
        return hf__cli_fail(c->cli, c->name, CLI_FAILED, "out of memory");
    return hf__guard_run(c->guard, c->cli, c->name, &program);
}

/* Give the lock back by a scope of its own: the command's may be canceled. */
static void lock_release(struct run *run)
{
    struct command_ctx *c = run->c;
    struct hf_scope *s = hf_scope_new(NULL);
    enum hf_status status;

    hf_scope_timeout_ms(s, (uint32_t)c->database->timeout_ms);
    status = hf_lock_release(s, run->lock);
    if (status == HF_LOST || atomic_load(&run->lost))
        hf__cli_fail(c->cli, c->name, 0, "lost lock '%s' while the program was running: %s",
                     c->operands[0],
                     atomic_load(&run->lost) == HF_LOCK_EXPIRED
                         ? "it was not renewed in time"
                         : "another owner took it over or broke it");
    else if (status != HF_OK)
        hf__database_fail_of(c->cli, c->name, s, "cannot release the lock");
    hf_scope_free(s);
}

static enum hf_status locks_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_lock_table *locks;

    TRY(hf_lock_table_open(c->scope, c->db,
                           HF_OPTIONS(hf_lock_table_options, .table = settings->table,
                                      .owner = settings->owner,
                                      .clock_skew_ms = (uint32_t)settings->skew_ms),
                           &locks));
    c->place = locks;
    return HF_OK;
}

static void locks_close(void *locks)
{
    hf_lock_table_close(locks);
}

static const struct command_place locks_place = {locks_open, locks_close, NULL};

static enum hf_status lock_run_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    hf__command_wait(c, &settings->wait, settings->wait_ms, settings->busy_code);
    if (settings->shared && settings->permits)
        return hf__command_fail(c, CLI_USAGE, "--shared and --permits cannot be combined");
    return data_read(c);
}

static enum hf_status lock_run(struct command_ctx *c)
{
    struct run run = {.c = c, .settings = c->settings};

    TRY(lock_acquire(&run));
    if (!run.lock)
        return HF_OK;
    c->ends = run_program(&run);
    lock_release(&run);
    if (atomic_load(&run.lost) && c->guard->stopped && !c->guard->too_long)
        c->ends = CLI_CONDITION;
    return HF_OK;
}

COMMAND_OF(lock_run, lock_run, COMMAND_SETTINGS(struct settings), .min = 2, .max = COMMAND_MANY,
           .guarded = true, .place = &locks_place, .table = COMMAND_MAKES, .check = lock_run_check);
