/*
 * cli/limit/cmd_limit.c: how often something may be done, from a shell: `holdfast limit
 * check|peek|reset`.
 *
 * The verdict is the exit code: 0 when it may be done, 4 when not.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

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

#define TABLE_SPEC OPT_TEXT("table", "NAME", table, "The table of limits.", .fallback = "limits")
#define RULE_SPECS                                                                                 \
    OPT_NUMBER("limit", limit, 1, HF_LIMIT_MOST, "Number of calls allowed per window; required.",  \
               .letter = 'l', .heading = "Rule"),                                                  \
        OPT_TIME("window", window_ms, 1, UINT32_MAX, "Length of a window.", .letter = 'w',         \
                 .fallback = "1m"),                                                                \
        OPT_CHOICE(                                                                                \
            "kind", "attempts fixed sliding rate", kind,                                           \
            "attempts: a window starts with the first call; fixed: windows are aligned to the "    \
            "clock; sliding: any interval of that length counts; rate: an even rate (token "       \
            "bucket).",                                                                            \
            .letter = 'k', .fallback = "attempts"),                                                \
        OPT_NUMBER(                                                                                \
            "burst", burst, 0, HF_LIMIT_MOST,                                                      \
            "With --kind rate: how many calls may come at once after a pause; by default the "     \
            "limit."),                                                                             \
        OPT_TIME("lockout", lockout_ms, 0, UINT32_MAX,                                             \
                 "A call beyond the limit locks the name for this time, then for twice as long, "  \
                 "and so on."),                                                                    \
        OPT_TIME("lockout-max", lockout_max_ms, 0, UINT32_MAX,                                     \
                 "Longest lockout; by default 16 times --lockout."),                               \
        OPT_NUMBER("cost", cost, 1, HF_LIMIT_MOST, "How many calls this one counts as.",           \
                   .fallback = "1")

static enum hf_status limits_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_limit_table *limits;

    TRY(hf_limit_table_open(c->scope, c->db,
                            HF_OPTIONS(hf_limit_table_options, .table = settings->table,
                                       .no_create = !c->makes),
                            &limits));
    c->place = limits;
    return HF_OK;
}

static void limits_close(void *limits)
{
    hf_limit_table_close(limits);
}

static const struct command_place limits_place = {limits_open, limits_close, NULL};

/* The verdict to those who want it; the exit code to all. */
static enum hf_status verdict_print(struct command_ctx *c, const struct hf_limit_verdict *verdict)
{
    int ends = verdict->allowed ? CLI_OK : CLI_CONDITION;

    if (c->database->json) {
        TRY(COMMAND_PRINT(c, hf__rows_text("name", hf__command_operand(c, 0)),
                          hf__rows_bool("allowed", verdict->allowed),
                          hf__rows_number(c->cli, "used", verdict->used),
                          hf__rows_number(c->cli, "left", verdict->left),
                          hf__rows_number(c->cli, "retry_ms", verdict->retry_ms),
                          hf__rows_number(c->cli, "reset_ms", verdict->reset_ms),
                          hf__rows_bool("locked", verdict->locked),
                          hf__rows_number(c->cli, "lockouts", verdict->lockouts),
                          hf__rows_bool("unreached", verdict->unreached)));
        return hf__command_end(c, ends);
    }
    if (verdict->allowed || c->database->quiet)
        return hf__command_end(c, ends);
    return hf__command_fail(c, ends, "limit reached for '%s'%s; try again in %.*s", c->operands[0],
                            verdict->locked ? ", which is locked" : "",
                            HF_FMT(hf__rows_duration(c->scope, verdict->retry_ms)));
}

static enum hf_status rule_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->limit)
        return HF_OK;
    return hf__command_fail(
        c, CLI_USAGE, "missing option --limit: the number of calls allowed per window (--window)");
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
    OPT_FLAG("fail-open", fail_open, "Allow the call if the database does not answer in time."),
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example check_examples[] = {
    {"holdfast limit check \"login/$user\" --limit 5 --window 15m --lockout 1m || exit 1",
     "Five attempts in 15 minutes, then a lockout that grows."},
    {"holdfast limit check api --kind rate --limit 100 --window 1s --burst 20 --quiet && call_api",
     "An even rate for all hosts together."},
};

const struct options_table hf__limit_check_options = {
    .name = "limit check",
    .operands = "NAME",
    .about =
        "Count one call if the rule allows it: exit code 0. Otherwise nothing is counted and the "
        "exit code is 4; the message, or --json, says when to try again.",
    COMMAND_SPECS(check),
};

static enum hf_status verdict_ask(struct command_ctx *c, bool take)
{
    const struct settings *settings = c->settings;
    const struct hf_limit_rule rule = rule_of(settings);
    const struct hf_limit_options options = {.size = sizeof(options),
                                             .cost = (uint32_t)settings->cost,
                                             .fail_open = settings->fail_open};
    struct hf_limit_verdict verdict = {.allowed = false};
    struct hf_str name = hf__command_operand(c, 0);
    enum hf_status status =
        take ? hf_limit_take(c->scope, c->place, name, &rule, &options, &verdict)
             : hf_limit_peek(c->scope, c->place, name, &rule, &options, &verdict);

    if (status != HF_LIMIT)
        TRY(status);
    return verdict_print(c, &verdict);
}

static enum hf_status limit_check(struct command_ctx *c)
{
    return verdict_ask(c, true);
}

/* The error was shown; with --fail-open the call is allowed all the same. */
static void limit_check_unopened(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->fail_open && (c->ends == CLI_UNAVAILABLE || c->ends == CLI_TIMEOUT))
        (void)verdict_print(c, &(struct hf_limit_verdict){.allowed = true, .unreached = true});
}

COMMAND_OF(limit_check, limit_check, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &limits_place, .table = COMMAND_MAKES, .check = rule_check,
           .unopened = limit_check_unopened);

static const struct option_spec peek_specs[] = {
    RULE_SPECS,
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example peek_examples[] = {
    {"holdfast limit peek login/ann --limit 5 --window 15m --json | jq .left",
     "The number of attempts left."},
};

const struct options_table hf__limit_peek_options = {
    .name = "limit peek",
    .operands = "NAME",
    .about = "Show whether 'limit check' with this rule would be allowed. Nothing is counted.",
    COMMAND_SPECS(peek),
};

static enum hf_status limit_peek(struct command_ctx *c)
{
    return verdict_ask(c, false);
}

COMMAND_OF(limit_peek, limit_peek, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &limits_place, .table = COMMAND_EMPTY, .check = rule_check);

/* ---- reset ---------------------------------------------------------------------------------- */

static const struct option_spec reset_specs[] = {
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example reset_examples[] = {
    {"holdfast limit reset login/ann", "Let ann try again."},
};

const struct options_table hf__limit_reset_options = {
    .name = "limit reset",
    .operands = "NAME",
    .about = "Reset the count and the lockouts of a name.",
    COMMAND_SPECS(reset),
};

static enum hf_status limit_reset(struct command_ctx *c)
{
    struct hf_str name = hf__command_operand(c, 0);

    if (c->place)
        TRY(hf_limit_clear(c->scope, c->place, name, NULL));
    return COMMAND_JSON(c, hf__rows_text("name", name));
}

COMMAND_OF(limit_reset, limit_reset, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &limits_place, .table = COMMAND_LOOKS);
