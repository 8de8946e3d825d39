/*
 * cli/events/cmd_events_names.c: what is stored about subscriptions, by their names: `holdfast events
 * subscription|rebuild|forget|parked|replay|discard`.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/confirm.h"

enum { PAGE = 200 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct hf_str after;
    uint64_t limit;
    bool all;
    bool yes;
    bool group;
    struct hf_group *opened; /* NULL: it is about a subscription */
};

#define OUTPUT_SPECS                                                                               \
    EVENTS_SPECS(struct settings), DATABASE_JSON(struct settings),                                 \
        DATABASE_QUIET(struct settings), DATABASE_SPECS(struct settings)

#define GROUP_SPEC                                                                                 \
    OPT_FLAG("group", group, "NAME is a consumer group ('events consume').", .letter = 'g')

/* The group that is meant with --group; group_end() closes it. */
static enum hf_status group_open(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    return settings->group ? hf__cli_events_group(c, &settings->opened) : HF_OK;
}

static void group_close(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    hf_group_close(settings->opened);
    settings->opened = NULL;
}

/* ---- subscription --------------------------------------------------------------------------- */

static const struct option_spec plain_specs[] = {OUTPUT_SPECS};

static const struct option_example subscription_examples[] = {
    {"holdfast events subscription mailer", "Its checkpoint and who runs it."},
};

const struct options_table hf__events_subscription_options = {
    .name = "events subscription",
    .operands = "NAME",
    .about =
        "Print the state of a subscription: its checkpoint, how many events it has handled, who "
        "runs it, how many are parked, and why it gave up, if it did.",
    COMMAND_SPECS_OF(plain, subscription),
};

static enum hf_status subscription_print(struct command_ctx *c)
{
    struct hf_str name = hf__command_operand(c, 0);
    struct hf_subscription_info info;
    struct cli *cli = c->cli;

    TRY(hf_subscription_info(c->scope, c->place, name, &info));
    return COMMAND_PRINT(
        c, hf__rows_text("name", name), hf__rows_text("checkpoint", info.checkpoint),
        hf__rows_number(cli, "handled", info.handled), hf__rows_time(cli, "moved", info.moved_us),
        hf__rows_text("owner", info.owner), hf__rows_number(cli, "fence", info.fence),
        hf__rows_number(cli, "parked", info.parked), hf__rows_bool("rebuild", info.rebuild),
        hf__rows_text("failure", info.failure));
}

COMMAND_OF(events_subscription, subscription_print, EVENTS_SETTINGS(struct settings), .min = 1,
           .max = 1, .place = &hf__cli_events_place, .table = COMMAND_EMPTY);

/* ---- rebuild, forget ------------------------------------------------------------------------ */

static const struct option_spec rebuild_specs[] = {
    OPT_TEXT("after", "POSITION", after,
             "Start after this position; by default with the first event."),
    OUTPUT_SPECS,
};

static const struct option_example rebuild_examples[] = {
    {"holdfast events rebuild totals", "All events again, for a projection that has changed."},
};

const struct options_table hf__events_rebuild_options = {
    .name = "events rebuild",
    .operands = "NAME",
    .about = "Restart a subscription: its checkpoint and its parked events are forgotten by the "
             "process that runs it now or next. A projection deletes what it has built.",
    COMMAND_SPECS(rebuild),
};

static enum hf_status subscription_rebuild(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str name = hf__command_operand(c, 0);

    TRY(hf_subscription_rebuild(c->scope, c->place, name, settings->after));
    return COMMAND_JSON(c, hf__rows_text("name", name));
}

COMMAND_OF(events_rebuild, subscription_rebuild, EVENTS_SETTINGS(struct settings), .min = 1,
           .max = 1, .place = &hf__cli_events_place, .table = COMMAND_EMPTY);

static const struct option_spec forget_specs[] = {
    OPT_FLAG("yes", yes,
             "Do not ask. Where there is no terminal to ask on, nothing is done without it.",
             .letter = 'y'),
    GROUP_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example forget_examples[] = {
    {"holdfast events forget mailer --yes", "Remove a subscription that is no longer used."},
};

const struct options_table hf__events_forget_options = {
    .name = "events forget",
    .operands = "NAME",
    .about =
        "Delete a subscription that is not running: its checkpoint and its parked events; or a "
        "consumer group, with its backlog and its table. A new one of the same name starts from "
        "the beginning.",
    COMMAND_SPECS(forget),
};

/* The table goes last: as long as it is there this can be called again. */
static enum hf_status name_forget(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str name = hf__command_operand(c, 0);
    enum hf_status status = hf_subscription_forget(c->scope, c->place, name);
    struct hf_delete_table del = {.table = {0}};

    if (!settings->opened || (status != HF_OK && status != HF_NOT_FOUND))
        return status;
    del.table = hf_scope_format(c->scope, "%.*s-%.*s", HF_FMT(settings->store.table), HF_FMT(name));
    return hf_delete_table(c->scope, c->db, &del, NULL);
}

static enum hf_status forget_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__command_confirm_now(c, settings->yes, "deletes %s '%s' permanently",
                                   settings->group ? "group" : "subscription", c->operands[0]);
}

static enum hf_status events_forget(struct command_ctx *c)
{
    enum hf_status status = group_open(c);

    if (status == HF_OK)
        status = name_forget(c);
    group_close(c);
    TRY(status);
    return COMMAND_JSON(c, hf__rows_text("name", hf__command_operand(c, 0)));
}

COMMAND_OF(events_forget, events_forget, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = forget_check);

/* ---- parked --------------------------------------------------------------------------------- */

static const struct option_spec parked_specs[] = {
    GROUP_SPEC,
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    EVENTS_SPECS(struct settings),
    DATABASE_LIST(struct settings),
};

static const struct option_example parked_examples[] = {
    {"holdfast events parked mailer", "Events that failed too often, and why."},
    {"holdfast events parked --group mailers", "The same for a consumer group."},
};

const struct options_table hf__events_parked_options = {
    .name = "events parked",
    .operands = "NAME",
    .about = "List the parked events of a subscription or a group, with their last error. 'events "
             "replay' handles them again, 'events discard' drops them.",
    COMMAND_SPECS(parked),
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

static enum hf_status parked_read(struct command_ctx *c, struct hf_str after, uint32_t limit,
                                  struct hf_parked_list *page)
{
    const struct settings *settings = c->settings;

    return settings->opened ? hf_group_parked(c->scope, settings->opened, after, limit, page)
                            : hf_subscription_parked(c->scope, c->place, hf__command_operand(c, 0),
                                                     after, limit, page);
}

static enum hf_status parked_list(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct rows *rows = hf__command_rows(c, "events");
    struct hf_parked_list page = {.events_len = 0};

    do {
        uint64_t left = settings->limit ? settings->limit - rows->count : PAGE;

        TRY(parked_read(c, page.next, (uint32_t)(left < PAGE ? left : PAGE), &page));
        for (size_t i = 0; i < page.events_len; i++)
            add_parked(rows, &page.events[i]);
    } while (page.next.ptr && (!settings->limit || rows->count < settings->limit) &&
             !ferror(c->cli->out));
    return HF_OK;
}

/* A subscription without a table has parked nothing; a group without one is none. */
static enum hf_status events_parked(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    enum hf_status status;

    if (c->empty && !settings->group) {
        (void)hf__command_rows(c, "events");
        return HF_OK;
    }
    status = group_open(c);
    if (status == HF_OK)
        status = parked_list(c);
    group_close(c);
    return status;
}

COMMAND_OF(events_parked, events_parked, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY);

/* ---- replay, discard ------------------------------------------------------------------------ */

static const struct option_spec chosen_specs[] = {
    OPT_FLAG("all", all, "All parked events."),
    GROUP_SPEC,
    OUTPUT_SPECS,
};

static const struct option_example replay_examples[] = {
    {"holdfast events replay mailer --all", "After the problem is solved."},
};

const struct options_table hf__events_replay_options = {
    .name = "events replay",
    .operands = "NAME [POSITION...]",
    .about =
        "Handle parked events of a subscription or a group again, by the process that runs it. "
        "Name them as 'events parked' prints them.",
    COMMAND_SPECS_OF(chosen, replay),
};

static const struct option_example discard_examples[] = {
    {"holdfast events discard mailer --all", "They need not be handled."},
};

const struct options_table hf__events_discard_options = {
    .name = "events discard",
    .operands = "NAME [POSITION...]",
    .about = "Drop parked events of a subscription or a group: they are not handled any more. The "
             "events themselves stay in the store.",
    COMMAND_SPECS_OF(chosen, discard),
};

/* What is to be done with those that were chosen: one of these two. */
typedef enum hf_status of_subscription_fn(struct hf_scope *s, struct hf_events *store,
                                          struct hf_str name, const struct hf_str *positions,
                                          size_t len, uint64_t *done);
typedef enum hf_status of_group_fn(struct hf_scope *s, struct hf_group *group,
                                   const struct hf_str *refs, size_t len, uint64_t *done);

struct choice {
    of_subscription_fn *of_subscription;
    of_group_fn *of_group;
    const char *count_name;
};

static enum hf_status choice_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if ((c->operands_len > 1) != settings->all)
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "%s",
                            c->operands_len > 1 ? "positions and --all cannot be combined"
                                                : "missing argument: give positions or --all");
}

static enum hf_status choice_do(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct choice *choice = c->command->data;
    size_t len = c->operands_len - 1;
    struct hf_str *positions = hf_scope_alloc(c->scope, (len + 1) * sizeof(*positions));
    enum hf_status status;
    uint64_t count = 0;

    if (!positions)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < len; i++)
        positions[i] = hf__command_operand(c, i + 1);
    TRY(group_open(c));
    status = settings->opened
                 ? choice->of_group(c->scope, settings->opened, len ? positions : NULL, len, &count)
                 : choice->of_subscription(c->scope, c->place, hf__command_operand(c, 0),
                                           len ? positions : NULL, len, &count);
    group_close(c);
    if (status != HF_OK)
        hf__command_failed(c);
    if (status == HF_OK || count)
        TRY(hf__command_count(c, choice->count_name, count));
    return status;
}

#define CHOICE_COMMAND(choice)                                                                     \
    {                                                                                              \
        EVENTS_SETTINGS(struct settings),                                                          \
            .min = 1, .max = COMMAND_MANY, .place = &hf__cli_events_place, .table = COMMAND_EMPTY, \
            .check = choice_check, .body = choice_do, .data = &(choice)                            \
    }

static const struct choice replay_choice = {hf_subscription_replay, hf_group_replay, "waiting"};

const struct command hf__events_replay_command = CHOICE_COMMAND(replay_choice);

static const struct choice discard_choice = {hf_subscription_discard, hf_group_discard,
                                             "discarded"};

const struct command hf__events_discard_command = CHOICE_COMMAND(discard_choice);
