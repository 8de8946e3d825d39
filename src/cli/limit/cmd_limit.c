/*
 * cli/limit/cmd_limit.c: how often something may be done, from a shell: `holdfast limit
 * check|peek|reset`.
 *
 * The verdict is the exit code: 0 when it may be done, 4 when not.
 */
#include "cli/frame/commands.h"
#include "cli/frame/rows.h"

#include <holdfast/limit.h>

struct settings {
    struct database_settings database;
    struct hf_str table;
    uint64_t limit;
    uint64_t window_ms;
    unsigned kind; /* enum hf_limit_kind, less one */
    uint64_t burst;
    uint64_t lockout_ms;
    uint64_t lockout_max_ms;
    uint64_t cost;
    bool fail_open;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define TABLE_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "table", .value = "NAME", .fallback = "limits",               \
        .text = "The table of limits.", FIELD(table)                                               \
    }
#define RULE_SPECS                                                                                 \
    {.heading = "The rule",                                                                        \
     .kind = OPTION_NUMBER,                                                                        \
     .letter = 'l',                                                                                \
     .name = "limit",                                                                              \
     .value = "NUMBER",                                                                            \
     .min = 1,                                                                                     \
     .max = HF_LIMIT_MOST,                                                                         \
     .text = "How many are allowed in a window; has to be given.",                                 \
     FIELD(limit)},                                                                                \
        {.kind = OPTION_DURATION,                                                                  \
         .letter = 'w',                                                                            \
         .name = "window",                                                                         \
         .value = "TIME",                                                                          \
         .min = 1,                                                                                 \
         .max = UINT32_MAX,                                                                        \
         .fallback = "1m",                                                                         \
         .text = "How long a window is.",                                                          \
         FIELD(window_ms)},                                                                        \
        {.kind = OPTION_CHOICE,                                                                    \
         .letter = 'k',                                                                            \
         .name = "kind",                                                                           \
         .choices = "attempts fixed sliding rate",                                                 \
         .fallback = "attempts",                                                                   \
         .text = "A window begins with the first one, or with the clock; or any time of that "     \
                 "length is one; or an even rate.",                                                \
         FIELD(kind)},                                                                             \
        {.kind = OPTION_NUMBER,                                                                    \
         .name = "burst",                                                                          \
         .value = "NUMBER",                                                                        \
         .max = HF_LIMIT_MOST,                                                                     \
         .text = "With --kind rate: how many at once after a time of rest; the limit by default.", \
         FIELD(burst)},                                                                            \
        {.kind = OPTION_DURATION,                                                                  \
         .name = "lockout",                                                                        \
         .value = "TIME",                                                                          \
         .max = UINT32_MAX,                                                                        \
         .text = "One beyond the limit locks the name for so long, then for twice as long, and "   \
                 "so on.",                                                                         \
         FIELD(lockout_ms)},                                                                       \
        {.kind = OPTION_DURATION,                                                                  \
         .name = "lockout-max",                                                                    \
         .value = "TIME",                                                                          \
         .max = UINT32_MAX,                                                                        \
         .text = "No lockout is longer; 16 times --lockout by default.",                           \
         FIELD(lockout_max_ms)},                                                                   \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "cost", .value = "NUMBER", .min = 1, .max = HF_LIMIT_MOST,  \
        .fallback = "1", .text = "How many this one counts for.", FIELD(cost)                      \
    }

/* False: *ends says how to end; DATABASE_ABSENT when there is no table: nothing was counted yet. */
static bool open_limits(struct cli *cli, const char *command, const struct settings *settings,
                        bool create, struct hf_db **db, struct hf_limit_table **limits, int *ends)
{
    struct database_settings database = settings->database;

    database.create = create;
    database.absent_ok = !create;
    *limits = NULL;
    if (!hf__database_open(cli, command, &database, db, ends))
        return false;
    if (hf_limit_table_open(cli->scope, *db,
                            HF_OPTIONS(hf_limit_table_options, .table = settings->table,
                                       .no_create = !create),
                            limits) == HF_OK)
        return true;
    *ends = hf__database_unopened(cli, command, &database);
    hf_db_close(*db);
    *db = NULL;
    return false;
}

/* The verdict to those who want it; the exit code to all. */
static int print_verdict(struct cli *cli, const struct settings *settings, const char *command,
                         const char *name, const struct hf_limit_verdict *verdict)
{
    struct rows_field fields[] = {hf__rows_text("name", hf_str_from(name)),
                                  hf__rows_bool("allowed", verdict->allowed),
                                  hf__rows_number(cli, "used", verdict->used),
                                  hf__rows_number(cli, "left", verdict->left),
                                  hf__rows_number(cli, "retry_ms", verdict->retry_ms),
                                  hf__rows_number(cli, "reset_ms", verdict->reset_ms),
                                  hf__rows_bool("locked", verdict->locked),
                                  hf__rows_number(cli, "lockouts", verdict->lockouts),
                                  hf__rows_bool("unreached", verdict->unreached)};
    int ends = verdict->allowed ? CLI_OK : CLI_CONDITION;

    if (settings->database.json) {
        int told = hf__rows_one(cli, &settings->database, fields, COMMAND_LEN(fields));

        return told == CLI_OK ? ends : told;
    }
    if (verdict->allowed || settings->database.quiet)
        return ends;
    return hf__cli_fail(cli, command, ends, "'%s' has reached its limit%s; again in %.*s", name,
                        verdict->locked ? " and is locked" : "",
                        HF_FMT(hf__rows_duration(cli->scope, verdict->retry_ms)));
}

static bool has_limit(struct cli *cli, const char *command, const struct settings *settings,
                      int *ends)
{
    if (settings->limit)
        return true;
    *ends = hf__cli_fail(cli, command, CLI_USAGE,
                         "--limit is missing: how many are allowed in a window (--window)");
    return false;
}

static struct hf_limit_rule rule_of(const struct settings *settings)
{
    return (struct hf_limit_rule){.kind = (enum hf_limit_kind)(settings->kind + 1),
                                  .limit = (uint32_t)settings->limit,
                                  .window_ms = (uint32_t)settings->window_ms,
                                  .burst = (uint32_t)settings->burst,
                                  .lockout_ms = (uint32_t)settings->lockout_ms,
                                  .lockout_max_ms = (uint32_t)settings->lockout_max_ms};
}

/* ---- check, peek ---------------------------------------------------------------------------- */

static const struct option_spec check_specs[] = {
    RULE_SPECS,
    {.kind = OPTION_FLAG,
     .name = "fail-open",
     .text = "Allow it when the database cannot be asked in time.",
     FIELD(fail_open)},
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example check_examples[] = {
    {"holdfast limit check \"login/$user\" --limit 5 --window 15m --lockout 1m || exit 1",
     "Five attempts in a quarter of an hour, then a pause that grows."},
    {"holdfast limit check api --kind rate --limit 100 --window 1s --burst 20 --quiet && call_api",
     "An even rate for all hosts together."},
};

const struct options_table hf__limit_check_options = {
    .name = "limit check",
    .operands = "NAME",
    .about = "Count one, if the rule allows it: exit code 0. If not: exit code 4, and nothing is "
             "counted; the message, or --json, says when to try again.",
    .specs = check_specs,
    .len = COMMAND_LEN(check_specs),
    .examples = check_examples,
    .examples_len = COMMAND_LEN(check_examples),
};

static int ask(struct cli *cli, const struct settings *settings, const char *command,
               struct hf_limit_table *limits, const char *name, bool take)
{
    const struct hf_limit_rule rule = rule_of(settings);
    const struct hf_limit_options options = {.size = sizeof(options),
                                             .cost = (uint32_t)settings->cost,
                                             .fail_open = settings->fail_open};
    struct hf_limit_verdict verdict = {.allowed = false};
    enum hf_status status =
        take ? hf_limit_take(cli->scope, limits, hf_str_from(name), &rule, &options, &verdict)
             : hf_limit_peek(cli->scope, limits, hf_str_from(name), &rule, &options, &verdict);

    if (status != HF_OK && status != HF_LIMIT)
        return hf__database_fail(cli, command);
    return print_verdict(cli, settings, command, name, &verdict);
}

int hf__limit_check_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.kind = 0};
    struct hf_limit_table *limits;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__limit_check_options, args_len, args, 1, 1, &settings, &options,
                          &ends) ||
        !has_limit(cli, "limit check", &settings, &ends))
        return ends;
    if (!open_limits(cli, "limit check", &settings, true, &db, &limits, &ends)) {
        /* The error was shown; what it was told to do then is to go on. */
        bool unreached = ends == CLI_UNAVAILABLE || ends == CLI_TIMEOUT;

        return settings.fail_open && unreached
                   ? print_verdict(cli, &settings, "limit check", options.operands[0],
                                   &(struct hf_limit_verdict){.allowed = true, .unreached = true})
                   : ends;
    }
    ends = ask(cli, &settings, "limit check", limits, options.operands[0], true);
    hf_limit_table_close(limits);
    hf_db_close(db);
    return ends;
}

static const struct option_spec peek_specs[] = {
    RULE_SPECS,
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example peek_examples[] = {
    {"holdfast limit peek login/ann --limit 5 --window 15m --json | jq .left",
     "How many attempts are left."},
};

const struct options_table hf__limit_peek_options = {
    .name = "limit peek",
    .operands = "NAME",
    .about = "Would 'limit check' with this rule be allowed? Nothing is counted.",
    .specs = peek_specs,
    .len = COMMAND_LEN(peek_specs),
    .examples = peek_examples,
    .examples_len = COMMAND_LEN(peek_examples),
};

/* Nothing was counted yet: the same verdict as of a table without names, which is in memory. */
static bool open_unused(struct cli *cli, const struct settings *settings, struct hf_db **db,
                        struct hf_limit_table **limits, int *ends)
{
    struct settings unused = *settings;

    unused.database = (struct database_settings){.url = HF_STR("memory:"),
                                                 .timeout_ms = settings->database.timeout_ms};
    return open_limits(cli, "limit peek", &unused, true, db, limits, ends);
}

int hf__limit_peek_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.kind = 0};
    struct hf_limit_table *limits;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__limit_peek_options, args_len, args, 1, 1, &settings, &options,
                          &ends) ||
        !has_limit(cli, "limit peek", &settings, &ends))
        return ends;
    if (!open_limits(cli, "limit peek", &settings, false, &db, &limits, &ends) &&
        (ends != DATABASE_ABSENT || !open_unused(cli, &settings, &db, &limits, &ends)))
        return ends;
    ends = ask(cli, &settings, "limit peek", limits, options.operands[0], false);
    hf_limit_table_close(limits);
    hf_db_close(db);
    return ends;
}

/* ---- reset ---------------------------------------------------------------------------------- */

static const struct option_spec reset_specs[] = {
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example reset_examples[] = {
    {"holdfast limit reset login/ann", "Let ann try again."},
};

const struct options_table hf__limit_reset_options = {
    .name = "limit reset",
    .operands = "NAME",
    .about = "Forget all that was counted under a name, and its lockouts.",
    .specs = reset_specs,
    .len = COMMAND_LEN(reset_specs),
    .examples = reset_examples,
    .examples_len = COMMAND_LEN(reset_examples),
};

int hf__limit_reset_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.kind = 0};
    struct hf_limit_table *limits;
    struct options options;
    struct hf_db *db;
    int ends;

    if (!hf__cli_operands(cli, &hf__limit_reset_options, args_len, args, 1, 1, &settings, &options,
                          &ends) ||
        (!open_limits(cli, "limit reset", &settings, false, &db, &limits, &ends) &&
         ends != DATABASE_ABSENT))
        return ends;
    ends = CLI_OK;
    if (limits &&
        hf_limit_clear(cli->scope, limits, hf_str_from(options.operands[0]), NULL) != HF_OK) {
        ends = hf__database_fail(cli, "limit reset");
    } else if (settings.database.json) {
        struct rows_field field = hf__rows_text("name", hf_str_from(options.operands[0]));

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    hf_limit_table_close(limits);
    hf_db_close(db);
    return ends;
}
