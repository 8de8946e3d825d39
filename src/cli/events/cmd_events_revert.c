/*
 * cli/events/cmd_events_revert.c: `holdfast events revert`: an event and everything that it caused are
 * reverted by compensating events, which a program makes.
 *
 * The library reverts trees by flows, one for each type of event. Here every type in the tree gets a
 * flow that has nothing but a compensation: running the program.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/events/events_line.h"
#include "cli/events/events_program.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"

#include <holdfast/flow.h>

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct events_program_settings program;
    bool preview;
    struct events_program started; /* what they say of the program */
};

#define COMMAND "events revert"

static const struct option_spec specs[] = {
    OPT_FLAG("preview", preview, "Only show which events would be reverted.", .letter = 'p',
             .heading = "Settings"),
    EVENTS_PROGRAM_SPECS(struct settings, "Program"),
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast events revert 01K3X5 --preview", "Show what would be reverted."},
    {"holdfast events revert 01K3X5 --exec ./undo.sh",
     "The script reads an event and prints the events that revert it."},
};

const struct options_table hf__events_revert_options = {
    .name = COMMAND,
    .operands = "ID [-- CMD...]",
    .about =
        "Revert an event and everything it caused, by appending compensating events, all or "
        "none. The event itself must not have a cause. Your program makes the compensating "
        "events. It runs once per event, newest first and children before their parents. It gets "
        "the event on its standard input as a line of JSON, and in HOLDFAST_EVENT_ID, "
        "HOLDFAST_EVENT_TYPE, HOLDFAST_EVENT_STREAM, HOLDFAST_EVENT_VERSION and "
        "HOLDFAST_EVENT_POSITION. It prints lines as 'events append --lines' reads them, such as "
        "{\"type\":\"canceled\"}. They go to the stream of the event unless they name another.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "Running it again changes nothing, and shows what was done. If the program does not end "
        "with 0, nothing is appended and the exit code is 1.",
};

/* ---- flows ---------------------------------------------------------------------------------- */

/* The program's lines are the events that take this one back. */
static enum hf_status event_compensate(struct hf_scope *s, struct hf_flow_call *call,
                                       const struct hf_stored_event *event, void *user)
{
    const struct events_program *program = user;
    struct hf_str output, error = {0};
    struct events_line *lines;
    size_t len;
    enum hf_status status = hf__cli_events_program_run(s, program, event, &output);

    if (status != HF_OK)
        return status;
    if (!hf__cli_events_lines(s, output, event->stream, &lines, &len, &error))
        return hf_scope_fail(s, HF_IO, "%s, for event %.*s: %.*s", program->args[0],
                             HF_FMT(event->id), HF_FMT(error));
    for (size_t i = 0; i < len && status == HF_OK; i++)
        status = hf_flow_emit(s, call,
                              &(struct hf_flow_event){.stream = lines[i].stream,
                                                      .event = lines[i].event});
    return status;
}

static size_t count_events(const struct hf_event_tree *tree)
{
    size_t count = 1;

    for (size_t i = 0; i < tree->children_len; i++)
        count += count_events(&tree->children[i]);
    return count;
}

/* A flow for each kind of event, once. */
static size_t add_flows(const struct hf_event_tree *tree, struct events_program *program,
                        struct hf_flow *flows, size_t len)
{
    size_t i = 0;

    while (i < len && !(hf_str_equal(flows[i].domain, tree->event.stream.domain) &&
                        hf_str_equal(flows[i].type, tree->event.type)))
        i++;
    if (i == len)
        flows[len++] = (struct hf_flow){.domain = tree->event.stream.domain,
                                        .type = tree->event.type,
                                        .compensate = event_compensate,
                                        .user = program};
    for (size_t child = 0; child < tree->children_len; child++)
        len = add_flows(&tree->children[child], program, flows, len);
    return len;
}

static enum hf_status open_flows(struct hf_scope *s, struct hf_events *store, const char *id,
                                 struct events_program *program, struct hf_flows **flows)
{
    struct hf_event_tree tree;
    struct hf_flow *kinds;
    enum hf_status status = hf_events_tree(s, store, hf_str_from(id), 0, &tree);

    *flows = NULL;
    if (status != HF_OK)
        return status;
    kinds = hf_scope_alloc(s, count_events(&tree) * sizeof(*kinds));
    if (!kinds)
        return hf_scope_built(s);
    return hf_flows_open(s, store, NULL, kinds, add_flows(&tree, program, kinds, 0), NULL, 0,
                         HF_OPTIONS(hf_flows_options, .no_threads = true), flows);
}

/* ---- the output ----------------------------------------------------------------------------- */

static enum hf_status preview_print(struct command_ctx *c, const struct hf_revert_preview *preview)
{
    struct rows *rows = hf__command_rows(c, "events");

    hf__cli_events_add(rows, &preview->root);
    for (size_t i = 0; i < preview->descendants_len; i++)
        hf__cli_events_add(rows, &preview->descendants[i]);
    return HF_OK;
}

static void add_reverted(struct rows *rows, const struct hf_reverted *reverted)
{
    struct cli *cli = rows->cli;

    for (size_t i = 0; i < reverted->children_len; i++)
        add_reverted(rows, &reverted->children[i]);
    for (size_t i = 0; i < reverted->events_len; i++) {
        const struct hf_stored_event *event = &reverted->events[i];
        struct rows_field fields[] = {
            hf__rows_text("reverted", reverted->id),
            hf__rows_text("stream", hf__cli_events_stream_text(cli->scope, event->stream)),
            hf__rows_number(cli, "version", event->version),
            hf__rows_text("type", event->type),
            hf__rows_text("id", event->id),
            hf__rows_bool("repeated", reverted->repeated)};

        hf__rows_add(rows, fields, COMMAND_LEN(fields));
    }
}

/* ---- the run -------------------------------------------------------------------------------- */

static enum hf_status flows_revert(struct command_ctx *c, struct hf_flows *flows)
{
    const struct settings *settings = c->settings;
    struct hf_str id = hf__command_operand(c, 0);
    struct hf_revert_preview preview;
    struct hf_reverted reverted;

    if (settings->preview) {
        TRY(hf_flows_preview_revert(c->scope, flows, id, &preview));
        return preview_print(c, &preview);
    }
    hf_scope_timeout_ms(c->scope, 0); /* programs take their time */
    TRY(hf_flows_revert(c->scope, flows, id, &reverted));
    add_reverted(hf__command_rows(c, "compensations"), &reverted);
    return HF_OK;
}

static enum hf_status revert_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct options rest = c->options;

    rest.operands++;
    rest.operands_len--;
    if (!hf__cli_events_program(c->cli, COMMAND, &settings->program, &rest, &settings->started))
        return hf__command_shown(c, CLI_USAGE);
    if ((settings->started.args_len > 0) == settings->preview)
        return hf__command_fail(c, CLI_USAGE, "%s",
                                settings->preview ? "--preview and a program cannot be combined"
                                                  : "missing option: give --exec or --preview");
    settings->started.guard = c->guard;
    return HF_OK;
}

static enum hf_status events_revert(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_flows *flows = NULL;
    enum hf_status status =
        open_flows(c->scope, c->place, c->operands[0], &settings->started, &flows);

    if (status == HF_OK)
        status = flows_revert(c, flows);
    hf_flows_close(flows);
    return status;
}

COMMAND_OF(events_revert, events_revert, EVENTS_SETTINGS(struct settings), .min = 1,
           .max = COMMAND_MANY, .guarded = true, .place = &hf__cli_events_place,
           .table = COMMAND_EMPTY, .check = revert_check);
