/*
 * cli/events/cmd_events_names.c: what is stored about subscriptions, by their names: `holdfast events
 * subscription|rebuild|forget|parked|replay|discard`.
 */
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/json.h"

enum { PAGE = 200 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct hf_str after;
    uint64_t limit;
    bool all;
    bool yes;
    bool group;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define OUTPUT_SPECS                                                                               \
    EVENTS_SPECS(struct settings), DATABASE_JSON(struct settings),                                 \
        DATABASE_QUIET(struct settings), DATABASE_SPECS(struct settings)

#define GROUP_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_FLAG, .letter = 'g', .name = "group",                                       \
        .text = "NAME is that of a group of consumers ('events consume').", FIELD(group)           \
    }

/* A command about one subscription or group, which is its first operand. */
struct about {
    struct cli *cli;
    const char *command;
    struct settings settings;
    struct options options;
    struct hf_str name;
    struct events_place place;
    struct hf_group *group; /* NULL: it is about a subscription */
};

/* Read the arguments. False: *ends says how to end. */
static bool begin(struct about *a, struct cli *cli, const struct options_table *table,
                  size_t args_len, const char *const *args, size_t operands_max, int *ends)
{
    *a = (struct about){.cli = cli, .command = table->name};
    if (!hf__cli_operands(cli, table, args_len, args, 1, operands_max, &a->settings, &a->options,
                          ends))
        return false;
    a->name = hf_str_from(a->options.operands[0]);
    return true;
}

static void close_store(struct about *a)
{
    hf_group_close(a->group);
    hf__cli_events_close(&a->place);
}

static bool open_store(struct about *a, int *ends)
{
    if (!hf__cli_events_open(a->cli, a->command, &a->settings.database, &a->settings.store, NULL,
                             &a->place, ends))
        return false;
    if (!a->settings.group ||
        hf__cli_events_group(a->cli, a->command, a->place.store, a->name, &a->group, ends))
        return true;
    close_store(a);
    return false;
}

/* ---- subscription --------------------------------------------------------------------------- */

static const struct option_spec plain_specs[] = {OUTPUT_SPECS};

static const struct option_example subscription_examples[] = {
    {"holdfast events subscription mailer", "How far it is, and who has it."},
};

const struct options_table hf__events_subscription_options = {
    .name = "events subscription",
    .operands = "NAME",
    .about = "Print what is stored about a subscription: its checkpoint, how many events it has "
             "handled, who runs it, how many are put aside, and why it gave up, if it did.",
    .specs = plain_specs,
    .len = COMMAND_LEN(plain_specs),
    .examples = subscription_examples,
    .examples_len = COMMAND_LEN(subscription_examples),
};

int hf__events_subscription_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct hf_subscription_info info;
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_subscription_options, args_len, args, 1, &ends) ||
        !open_store(&a, &ends))
        return ends;
    if (hf_subscription_info(cli->scope, a.place.store, a.name, &info) != HF_OK) {
        ends = hf__database_fail(cli, a.command);
    } else {
        struct rows_field fields[] = {hf__rows_text("name", a.name),
                                      hf__rows_text("checkpoint", info.checkpoint),
                                      hf__rows_number(cli, "handled", info.handled),
                                      hf__rows_time(cli, "moved", info.moved_us),
                                      hf__rows_text("owner", info.owner),
                                      hf__rows_number(cli, "fence", info.fence),
                                      hf__rows_number(cli, "parked", info.parked),
                                      hf__rows_bool("rebuild", info.rebuild),
                                      hf__rows_text("failure", info.failure)};

        ends = hf__rows_one(cli, &a.settings.database, fields, COMMAND_LEN(fields));
    }
    hf__cli_events_close(&a.place);
    return ends;
}

/* ---- rebuild, forget ------------------------------------------------------------------------ */

static const struct option_spec rebuild_specs[] = {
    {.kind = OPTION_TEXT,
     .name = "after",
     .value = "POSITION",
     .text = "Behind this position; by default from the first event on.",
     FIELD(after)},
    OUTPUT_SPECS,
};

static const struct option_example rebuild_examples[] = {
    {"holdfast events rebuild totals", "All events once more, for a projection that has changed."},
};

const struct options_table hf__events_rebuild_options = {
    .name = "events rebuild",
    .operands = "NAME",
    .about = "Let a subscription begin anew: whoever runs it, or does so next, forgets the "
             "checkpoint and what was put aside. A projection empties what it has built.",
    .specs = rebuild_specs,
    .len = COMMAND_LEN(rebuild_specs),
    .examples = rebuild_examples,
    .examples_len = COMMAND_LEN(rebuild_examples),
};

/* What was done to it is its name. */
static int done(struct about *a, enum hf_status status)
{
    struct rows_field field = hf__rows_text("name", a->name);
    int ends = status == HF_OK ? (int)CLI_OK : hf__database_fail(a->cli, a->command);

    if (ends == CLI_OK && a->settings.database.json)
        ends = hf__rows_one(a->cli, &a->settings.database, &field, 1);
    close_store(a);
    return ends;
}

int hf__events_rebuild_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_rebuild_options, args_len, args, 1, &ends) ||
        !open_store(&a, &ends))
        return ends;
    return done(&a, hf_subscription_rebuild(cli->scope, a.place.store, a.name, a.settings.after));
}

static const struct option_spec forget_specs[] = {
    {.kind = OPTION_FLAG,
     .letter = 'y',
     .name = "yes",
     .text = "Yes, forget it. Without this nothing is done.",
     FIELD(yes)},
    GROUP_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example forget_examples[] = {
    {"holdfast events forget mailer --yes", "It is not used any more."},
};

const struct options_table hf__events_forget_options = {
    .name = "events forget",
    .operands = "NAME",
    .about = "Forget a subscription that is not running: its checkpoint, and what was put aside; "
             "or a group of consumers, with what waits for them and its table. The next one of "
             "that name begins as if there had been none.",
    .specs = forget_specs,
    .len = COMMAND_LEN(forget_specs),
    .examples = forget_examples,
    .examples_len = COMMAND_LEN(forget_examples),
};

/* The table goes last: as long as it is there this can be called again. */
static enum hf_status forget(struct about *a)
{
    struct hf_scope *s = a->cli->scope;
    enum hf_status status = hf_subscription_forget(s, a->place.store, a->name);
    struct hf_delete_table del;

    if (!a->group || (status != HF_OK && status != HF_NOT_FOUND))
        return status;
    del.table = hf_scope_format(s, "%.*s-%.*s", HF_FMT(a->settings.store.table), HF_FMT(a->name));
    return hf_delete_table(s, a->place.db, &del, NULL);
}

int hf__events_forget_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_forget_options, args_len, args, 1, &ends))
        return ends;
    if (!a.settings.yes)
        return hf__cli_fail(cli, a.command, CLI_USAGE,
                            "%s '%s', for good: add --yes if that is meant",
                            a.settings.group ? "group" : "subscription", a.name.ptr);
    if (!open_store(&a, &ends))
        return ends;
    return done(&a, forget(&a));
}

/* ---- parked --------------------------------------------------------------------------------- */

static const struct option_spec parked_specs[] = {
    GROUP_SPEC,
    {.kind = OPTION_NUMBER,
     .name = "limit",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "At most so many.",
     FIELD(limit)},
    EVENTS_SPECS(struct settings),
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example parked_examples[] = {
    {"holdfast events parked mailer", "What failed too often, and why."},
    {"holdfast events parked --group mailers", "The same of a group of consumers."},
};

const struct options_table hf__events_parked_options = {
    .name = "events parked",
    .operands = "NAME",
    .about = "List the events that a subscription or a group has put aside, and their last "
             "failure. 'events replay' lets them be handled again, 'events discard' does away with "
             "that.",
    .specs = parked_specs,
    .len = COMMAND_LEN(parked_specs),
    .examples = parked_examples,
    .examples_len = COMMAND_LEN(parked_examples),
};

static void add_parked(struct rows *rows, const struct hf_parked *parked)
{
    struct cli *cli = rows->cli;
    struct rows_field fields[] = {
        hf__rows_text("position", parked->position),
        hf__rows_text("stream", hf__cli_events_stream_text(cli->scope, parked->stream)),
        hf__rows_number(cli, "version", parked->version),
        hf__rows_text("type", parked->type),
        hf__rows_number(cli, "attempts", parked->attempts),
        hf__rows_time(cli, "parked", parked->parked_us),
        hf__rows_bool("replay", parked->replay),
        hf__rows_text("error", parked->error_text)};

    fields[7].cut = true;
    hf__rows_add(rows, fields, COMMAND_LEN(fields));
}

static enum hf_status read_parked(struct about *a, struct hf_str after, uint32_t limit,
                                  struct hf_parked_list *page)
{
    struct hf_scope *s = a->cli->scope;

    return a->group ? hf_group_parked(s, a->group, after, limit, page)
                    : hf_subscription_parked(s, a->place.store, a->name, after, limit, page);
}

static int list_parked(struct about *a)
{
    struct cli *cli = a->cli;
    struct rows *rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    struct hf_parked_list page = {.events_len = 0};
    int ends = CLI_OK;

    if (!rows)
        return hf__cli_fail(cli, a->command, CLI_FAILED, "out of memory");
    hf__rows_begin(rows, cli, &a->settings.database, "events");
    do {
        uint64_t left = a->settings.limit ? a->settings.limit - rows->count : PAGE;

        if (read_parked(a, page.next, (uint32_t)(left < PAGE ? left : PAGE), &page) != HF_OK) {
            ends = hf__database_fail(cli, a->command);
            break;
        }
        for (size_t i = 0; i < page.events_len; i++)
            add_parked(rows, &page.events[i]);
    } while (page.next.ptr && (!a->settings.limit || rows->count < a->settings.limit) &&
             !ferror(cli->out));
    return hf__rows_end(rows, (struct hf_str){0}, ends);
}

int hf__events_parked_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_parked_options, args_len, args, 1, &ends))
        return ends;
    a.settings.database.absent_ok = !a.settings.group;
    if (!open_store(&a, &ends))
        return hf__rows_none(cli, &a.settings.database, "events", ends);
    ends = list_parked(&a);
    close_store(&a);
    return ends;
}

/* ---- replay, discard ------------------------------------------------------------------------ */

static const struct option_spec chosen_specs[] = {
    {.kind = OPTION_FLAG, .name = "all", .text = "All that were put aside.", FIELD(all)},
    GROUP_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example replay_examples[] = {
    {"holdfast events replay mailer --all", "After the reason is gone."},
};

const struct options_table hf__events_replay_options = {
    .name = "events replay",
    .operands = "NAME [POSITION...]",
    .about = "Let events that a subscription or a group has put aside be handled again by whoever "
             "runs it. They are named as 'events parked' names them.",
    .specs = chosen_specs,
    .len = COMMAND_LEN(chosen_specs),
    .examples = replay_examples,
    .examples_len = COMMAND_LEN(replay_examples),
};

static const struct option_example discard_examples[] = {
    {"holdfast events discard mailer --all", "They need not be handled."},
};

const struct options_table hf__events_discard_options = {
    .name = "events discard",
    .operands = "NAME [POSITION...]",
    .about = "Forget that a subscription or a group has put events aside. The events stay.",
    .specs = chosen_specs,
    .len = COMMAND_LEN(chosen_specs),
    .examples = discard_examples,
    .examples_len = COMMAND_LEN(discard_examples),
};

/* What is to be done with those that were chosen: one of these two. */
typedef enum hf_status of_subscription_fn(struct hf_scope *s, struct hf_events *store,
                                          struct hf_str name, const struct hf_str *positions,
                                          size_t len, uint64_t *done);
typedef enum hf_status of_group_fn(struct hf_scope *s, struct hf_group *group,
                                   const struct hf_str *refs, size_t len, uint64_t *done);

static int for_chosen(struct cli *cli, const struct options_table *table, size_t args_len,
                      const char *const *args, const char *told, of_subscription_fn *act,
                      of_group_fn *act_of_group)
{
    struct hf_str *positions;
    struct rows_field field;
    enum hf_status status;
    uint64_t count = 0;
    struct about a;
    size_t len;
    int ends;

    if (!begin(&a, cli, table, args_len, args, SIZE_MAX, &ends))
        return ends;
    len = a.options.operands_len - 1;
    if ((len > 0) == a.settings.all)
        return hf__cli_fail(cli, a.command, CLI_USAGE, "%s",
                            len ? "positions and --all exclude each other"
                                : "a position, or --all, is missing");
    positions = hf_scope_alloc(cli->scope, (len + 1) * sizeof(*positions));
    if (!positions)
        return hf__cli_fail(cli, a.command, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < len; i++)
        positions[i] = hf_str_from(a.options.operands[i + 1]);
    if (!open_store(&a, &ends))
        return ends;
    status = a.group ? act_of_group(cli->scope, a.group, len ? positions : NULL, len, &count)
                     : act(cli->scope, a.place.store, a.name, len ? positions : NULL, len, &count);
    ends = status == HF_OK ? (int)CLI_OK : hf__database_fail(cli, a.command);
    field = hf__rows_number(cli, told, count);
    if (status == HF_OK || count)
        hf__rows_one(cli, &a.settings.database, &field, 1);
    close_store(&a);
    return hf__cli_flushed(cli, ends);
}

int hf__events_replay_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return for_chosen(cli, &hf__events_replay_options, args_len, args, "waiting",
                      hf_subscription_replay, hf_group_replay);
}

int hf__events_discard_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return for_chosen(cli, &hf__events_discard_options, args_len, args, "discarded",
                      hf_subscription_discard, hf_group_discard);
}
