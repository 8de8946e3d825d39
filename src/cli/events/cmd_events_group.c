/*
 * cli/events/cmd_events_group.c: groups of consumers: `holdfast events consume|group`.
 *
 * Whoever consumes also feeds the group, unless another does; the library sees to it that one feeds
 * at a time, and that each event goes to one consumer. Handlers run on threads of the library,
 * several at once: what they print is written a whole line at a time.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/events/events_program.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/child.h"

#include <stdatomic.h>

enum { LOOK_MS = 100 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct events_program_settings program;
    struct hf_str stream, domain, type, after, since;
    uint64_t workers, poll_ms, lease_ms, attempts, backoff_ms, stop_ms, stuck_ms;
    unsigned stuck; /* enum hf_stuck, less one */
    bool latest, ordered, until_end;
    struct run *run;
};

#define CONSUME "events consume"

/* ---- consume -------------------------------------------------------------------------------- */

static const struct option_spec consume_specs[] = {
    OPT_TEXT("stream", "STREAM", stream, "Only events of this stream; all streams by default.",
             .letter = 's', .heading = "Events, when the group is new"),
    EVENTS_WALK_SPECS(struct settings),

    OPT_FLAG("ordered", ordered,
             "Handle the events of one stream one after the other, in order. All consumers of a "
             "group must agree on this. By default events are handled independently, in no order.",
             .heading = "Settings"),
    OPT_NUMBER("workers", workers, 1, 256, "Number of events that are handled at once.",
               .letter = 'w', .fallback = "4"),
    OPT_FLAG("until-end", until_end,
             "End when all stored events are handled or parked; by default wait for new ones."),
    OPT_NUMBER("attempts", attempts, 1, 1000000, "Attempts before an event is parked.",
               .fallback = "10"),
    OPT_TIME("backoff", backoff_ms, 1, OPTION_DAY_MS,
             "Delay before the first retry, doubled for each further one.", .fallback = "1s"),
    OPT_TIME("stuck", stuck_ms, 1, OPTION_DAY_MS,
             "Report a program that runs longer than this as stuck.", .fallback = "5m"),
    OPT_CHOICE("if-stuck", "leave release give-up", stuck,
               "What to do about a stuck program. leave: wait; release: let other consumers of the "
               "group take over; give-up: park the event.",
               .fallback = "leave"),
    OPT_TIME("poll", poll_ms, 1, OPTION_DAY_MS, "How often to look for new events.",
             .fallback = "500ms"),
    OPT_TIME("lease", lease_ms, 100, OPTION_DAY_MS,
             "Lease: others take over from a consumer that was silent for this long.",
             .fallback = "30s"),
    OPT_TIME("stop-timeout", stop_ms, 1, OPTION_DAY_MS,
             "How long events in progress may take after a signal.", .fallback = "30s"),
    EVENTS_PROGRAM_SPECS(struct settings, "Program"),
    EVENTS_SPECS(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example consume_examples[] = {
    {"holdfast events consume mailers --domain order -x ./mail.sh",
     "Start it on as many hosts as you like: each event goes to one of them."},
    {"holdfast events consume billing --ordered --workers 16 -- ./bill",
     "Events of one stream in order, different streams in parallel."},
};

const struct options_table hf__events_consume_options = {
    .name = CONSUME,
    .operands = "GROUP [-- CMD...]",
    .about =
        "Run a consumer of a group. The consumers of a group share the events: each event goes "
        "to one of them. It is printed as a JSON line, or a program is run for it, as by 'events "
        "subscribe'; exit code 0 means that the event is handled. Failed events are retried "
        "later by any consumer, and finally parked: see 'events parked --group'.",
    COMMAND_SPECS(consume),
    .notes =
        "Each event is delivered at least once. The group has a table of its own, named like the "
        "store's table with the group's name appended. SIGTERM and SIGINT let events in progress "
        "finish; then the exit code is 0.",
};

struct run {
    struct cli *cli;
    const struct settings *settings;
    struct hf_str name;
    struct hf_event_stream_key stream;
    int64_t since_us;
    struct events_program program;
    struct guard *guard;
    atomic_bool broken; /* nobody reads what we print */
};

static void report_failure(struct hf_scope *s, struct run *run, const struct hf_stored_event *event)
{
    if (run->settings->database.quiet || atomic_load(&run->broken))
        return;
    hf__cli_notice(run->cli, CONSUME, "event %.*s (%.*s): %s", HF_FMT(event->id),
                   HF_FMT(event->type), hf_scope_error_text(s));
}

static void on_stuck(const struct hf_stored_event *event, uint64_t for_ms, void *user)
{
    struct run *run = user;

    hf__cli_notice(run->cli, CONSUME,
                   "version %llu of %.*s/%.*s (%.*s) is stuck: its program has run for %llu ms",
                   (unsigned long long)event->version, HF_FMT(event->stream.domain),
                   HF_FMT(event->stream.id), HF_FMT(event->type), (unsigned long long)for_ms);
}

static enum hf_status event_handle(struct hf_scope *s, const struct hf_stored_event *event,
                                   void *user)
{
    struct run *run = user;
    enum hf_status status;

    if (atomic_load(&run->broken))
        return hf_scope_fail(s, HF_CANCELED, "the command is stopping");
    status = run->program.args_len ? hf__cli_events_program_run(s, &run->program, event, NULL)
                                   : hf__cli_events_print(s, run->cli, event, &run->broken);
    if (status != HF_OK)
        report_failure(s, run, event);
    return status;
}

/* All that was there is in the group, and none of it waits or is being handled. While another feeds
 * we do not know. */
static enum hf_status is_done(struct run *run, struct hf_group *group, bool *done)
{
    struct hf_group_metrics m;
    enum hf_status status = hf_group_metrics(run->cli->scope, group, &m);

    *done = status == HF_OK && m.feeder.state == HF_SUBSCRIPTION_LIVE && !m.pending;
    return status;
}

/* Until the end; *ends is how. */
static void wait_for_end(struct run *run, struct hf_group *group, int *ends)
{
    struct hf_scope *s = run->cli->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);
    bool done = false;

    while (!done && !atomic_load(&run->broken) && hf_scope_sleep_ms(s, LOOK_MS) == HF_OK) {
        if (run->settings->until_end && is_done(run, group, &done) != HF_OK) {
            *ends = hf__database_fail(run->cli, CONSUME);
            return;
        }
        hf_scope_rewind(s, mark);
    }
}

/* The scope of the run may have been canceled: the end has one of its own. */
static int group_stop(struct run *run, struct hf_group *group, int ends)
{
    struct hf_scope *s = hf_scope_new(NULL);

    if (!s)
        return hf__cli_fail(run->cli, CONSUME, CLI_FAILED, "out of memory");
    hf_scope_timeout_ms(s, (uint32_t)run->settings->stop_ms);
    if (hf_group_stop(s, group) != HF_OK && ends == CLI_OK)
        ends = hf__database_fail_of(run->cli, CONSUME, s, NULL);
    hf_scope_free(s);
    return ends;
}

static int group_consume(struct run *run, struct hf_events *store)
{
    const struct settings *o = run->settings;
    struct hf_scope *s = run->cli->scope;
    struct hf_group *group;
    int ends = CLI_OK;

    hf_scope_timeout_ms(s, 0);
    if (hf_group_open(
            s, store, run->name,
            HF_OPTIONS(hf_group_options, .ordered = o->ordered, .stream = run->stream,
                       .domain = o->domain, .type = o->type,
                       .start = hf__cli_events_start(o->after, o->since, o->latest),
                       .after = o->after, .from_us = run->since_us, .workers = (uint32_t)o->workers,
                       .max_attempts = (uint32_t)o->attempts, .backoff_ms = (uint32_t)o->backoff_ms,
                       .lease_ms = (uint32_t)o->lease_ms,
                       .timeout_ms = OPTION_DAY_MS, /* --run-timeout is the program's own */
                       .poll_ms = (uint32_t)o->poll_ms, .handle = event_handle, .user = run,
                       .stuck_ms = (uint32_t)o->stuck_ms, .stuck = (enum hf_stuck)(o->stuck + 1),
                       .on_stuck = on_stuck),
            &group) != HF_OK)
        return hf__database_fail(run->cli, CONSUME);
    if (hf_group_start(s, group) != HF_OK) {
        ends = hf__database_fail(run->cli, CONSUME);
    } else {
        wait_for_end(run, group, &ends);
        ends = group_stop(run, group, ends);
        if (atomic_load(&run->broken))
            ends = hf__cli_flushed(run->cli, CLI_FAILED);
    }
    hf_group_close(group);
    return ends;
}

/* What excludes each other. NULL: nothing. */
static const char *find_conflict(const struct settings *o)
{
    uint64_t version;

    if ((o->after.ptr != NULL) + (o->since.ptr != NULL) + o->latest > 1)
        return "--after, --since and --latest cannot be combined";
    if (o->stream.ptr && (o->domain.ptr || o->type.ptr || o->since.ptr))
        return "--domain, --type and --since cannot be combined with --stream";
    if (o->stream.ptr && o->after.ptr && !hf__options_number(o->after.ptr, &version))
        return "--after: with --stream it must be a version (a number)";
    return NULL;
}

/* The group is the first operand, the program the rest. */
static enum hf_status consume_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    const char *wrong = find_conflict(settings);
    struct options rest = c->options;
    struct run *run;

    if (wrong)
        return hf__command_fail(c, CLI_USAGE, "%s", wrong);
    run = hf_scope_alloc(c->scope, sizeof(*run));
    if (!run)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    *run = (struct run){.cli = c->cli,
                        .settings = settings,
                        .guard = c->guard,
                        .name = hf__command_operand(c, 0)};
    rest.operands++;
    rest.operands_len--;
    if (!hf__cli_events_when(c->cli, CONSUME, "--since", settings->since, &run->since_us) ||
        (settings->stream.ptr &&
         !hf__cli_events_stream(c->cli, CONSUME, settings->stream.ptr, &run->stream)) ||
        !hf__cli_events_program(c->cli, CONSUME, &settings->program, &rest, &run->program))
        return hf__command_shown(c, CLI_USAGE);
    run->program.guard = c->guard;
    settings->run = run;
    return HF_OK;
}

static enum hf_status events_consume(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__command_end(c, group_consume(settings->run, c->place));
}

/* It needs the table: it would wait in vain. */
COMMAND_OF(events_consume, events_consume, EVENTS_SETTINGS(struct settings), .min = 1,
           .max = COMMAND_MANY, .guarded = true, .ends_by_signal = true,
           .place = &hf__cli_events_place, .table = COMMAND_NEEDS, .check = consume_check);

/* ---- group ---------------------------------------------------------------------------------- */

static const struct option_spec group_specs[] = {
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example group_examples[] = {
    {"holdfast events group mailers",
     "The backlog, the age of the oldest event, and the member that feeds the group."},
};

const struct options_table hf__events_group_options = {
    .name = "events group",
    .operands = "GROUP",
    .about =
        "Print the state of a consumer group: how many events wait or are in progress, how many "
        "are parked (at most 10000 of each are counted), the age of the oldest, and the position "
        "up to which events were added to the group.",
    COMMAND_SPECS(group),
    .notes = "'events rebuild' with the name of the group delivers all events again.",
};

enum hf_status hf__cli_events_group(struct command_ctx *c, struct hf_group **group)
{
    struct hf_str name = hf__command_operand(c, 0);
    enum hf_status status =
        hf_group_open(c->scope, c->place, name,
                      HF_OPTIONS(hf_group_options, .no_feed = true, .no_create = true), group);

    if (status != HF_NOT_FOUND)
        return status;
    return hf__command_fail(c, CLI_NOT_FOUND, "group '%.*s' does not exist", HF_FMT(name));
}

static enum hf_status group_print(struct command_ctx *c, struct hf_group *group)
{
    struct hf_subscription_info info = {.fence = 0};
    struct hf_str name = hf__command_operand(c, 0);
    struct hf_group_metrics m;
    struct cli *cli = c->cli;
    enum hf_status status;

    /* Fed first: what has been fed by then and is not handled is among those that wait. */
    status = hf_subscription_info(c->scope, c->place, name, &info);
    if (status != HF_NOT_FOUND) /* otherwise nobody has fed it yet */
        TRY(status);
    TRY(hf_group_metrics(c->scope, group, &m));
    return COMMAND_PRINT(c, hf__rows_text("name", name), hf__rows_number(cli, "pending", m.pending),
                         hf__rows_number(cli, "parked", m.parked),
                         hf__rows_signed(cli, "oldest_ms", m.oldest_ms),
                         hf__rows_number(cli, "fed", info.handled),
                         hf__rows_text("checkpoint", info.checkpoint),
                         hf__rows_time(cli, "moved", info.moved_us),
                         hf__rows_text("owner", info.owner),
                         hf__rows_bool("rebuild", info.rebuild));
}

static enum hf_status events_group(struct command_ctx *c)
{
    struct hf_group *group;
    enum hf_status status;

    TRY(hf__cli_events_group(c, &group));
    status = group_print(c, group);
    hf_group_close(group);
    return status;
}

COMMAND_OF(events_group, events_group, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY);
