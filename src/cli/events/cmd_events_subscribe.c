/*
 * cli/events/cmd_events_subscribe.c: `holdfast events subscribe`: events as they come, as lines of JSON or
 * each to a program.
 *
 * With --name a subscription of the library has the checkpoint: an event counts when its line was
 * written, or its program has ended with 0. Without one nothing is kept, and a failure is the end;
 * there we read by ourselves, and look again after a while.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/events/events_program.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/child.h"

#include <holdfast/subscribe.h>

#include <errno.h>
#include <stdatomic.h>

enum { LOOK_MS = 50, PAGE = 500, CLOCKS_US = 60 * 1000000 /* by which clocks may differ */ };

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct events_program_settings program;
    struct hf_str name, stream, domain, type, after, since;
    uint64_t count, poll_ms, lease_ms, attempts, backoff_ms, stop_ms, stuck_ms;
    unsigned stuck; /* enum hf_stuck, less one */
    bool latest, archived, until_end, park;
    struct run *run;
};

#define COMMAND "events subscribe"

static const struct option_spec specs[] = {
    OPT_TEXT("stream", "STREAM", stream,
             "Only events of this stream, by version; by default all streams in the global order.",
             .letter = 's', .heading = "Events"),
    EVENTS_WALK_SPECS(struct settings),
    OPT_FLAG("archived", archived, "Include events of archived streams."),
    OPT_NUMBER("count", count, 0, UINT32_MAX, "Stop after this many events.", .letter = 'c'),
    OPT_FLAG("until-end", until_end,
             "End when all stored events are handled; by default wait for new ones."),
    OPT_TIME("poll", poll_ms, 1, OPTION_DAY_MS, "How often to look for new events.",
             .fallback = "500ms"),

    OPT_TEXT(
        "name", "NAME", name,
        "Store the checkpoint under this name: the next run continues there, whatever the start "
        "options say. If several processes use the same name, one works and the others wait to "
        "take over.",
        .letter = 'n', .heading = "Named subscriptions"),
    OPT_TIME(
        "lease", lease_ms, 100, OPTION_DAY_MS,
        "Lease: another process of this name takes over from one that was silent for this long.",
        .fallback = "20s"),
    OPT_NUMBER("attempts", attempts, 1, 1000000,
               "With --name: attempts before an event is given up.", .fallback = "10"),
    OPT_TIME("backoff", backoff_ms, 1, OPTION_DAY_MS,
             "Delay before the first retry, doubled for each further one.", .fallback = "100ms"),
    OPT_TIME("stuck", stuck_ms, 1, OPTION_DAY_MS,
             "With --name: report a program that runs longer than this as stuck.",
             .fallback = "5m"),
    OPT_CHOICE(
        "if-stuck", "leave release give-up", stuck,
        "What to do about a stuck program. leave: wait; release: let another process of this "
        "name take over; give-up: park the event.",
        .fallback = "leave"),
    OPT_FLAG("park", park,
             "Park an event that is given up, and continue; by default the command ends with exit "
             "code 1."),
    OPT_TIME("stop-timeout", stop_ms, 1, OPTION_DAY_MS,
             "With --name: how long the event in progress may take after a signal.",
             .fallback = "30s"),
    EVENTS_PROGRAM_SPECS(struct settings, "Program"),
    EVENTS_SPECS(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast events subscribe", "All events as they are appended, one JSON object per line."},
    {"holdfast events subscribe --name mailer --domain order --exec ./mail.sh",
     "Run a program for each event of orders, without gaps, from where the last run ended."},
    {"holdfast events subscribe --name audit --until-end >> audit.jsonl",
     "All events since the last run."},
};

const struct options_table hf__events_subscribe_options = {
    .name = COMMAND,
    .operands = "[-- CMD...]",
    .about =
        "Print events in order as JSON lines, as 'events export' writes them, or run a program "
        "for each: first the stored events, then new ones, until a signal comes. The program "
        "gets the line on its standard input, and the variables HOLDFAST_EVENT_ID, "
        "HOLDFAST_EVENT_TYPE, HOLDFAST_EVENT_STREAM, HOLDFAST_EVENT_VERSION and "
        "HOLDFAST_EVENT_POSITION. Exit code 0 means that the event is handled.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "With --name each event is delivered at least once: again after a crash, or when the "
        "program has failed. SIGTERM and SIGINT let the event in progress finish; then the exit "
        "code is 0.",
};

/* ---- one event ------------------------------------------------------------------------------ */

struct run {
    struct cli *cli;
    const struct settings *settings;
    struct hf_event_stream_key stream;
    int64_t since_us;
    uint64_t behind; /* of a stream: the version before the first */
    struct events_program program;
    struct hf_scope *work; /* without a name: that of programs, which a signal lets finish */
    struct guard *guard;
    atomic_bool enough; /* as many as were asked for */
    atomic_bool broken; /* nobody reads what we print */
    uint64_t handled;   /* only who handles events uses it: one at a time */
};

static enum hf_status event_handle(struct hf_scope *s, const struct hf_stored_event *event,
                                   void *user)
{
    struct run *run = user;
    enum hf_status status;

    if (atomic_load(&run->enough) || atomic_load(&run->broken))
        return hf_scope_fail(s, HF_CANCELED, "the command is stopping");
    status = run->program.args_len ? hf__cli_events_program_run(s, &run->program, event, NULL)
                                   : hf__cli_events_print(s, run->cli, event, &run->broken);
    if (status != HF_OK)
        return status;
    run->handled++;
    if (run->settings->count && run->handled >= run->settings->count)
        atomic_store(&run->enough, true);
    return HF_OK;
}

static bool has_ended(struct run *run)
{
    return atomic_load(&run->enough) || atomic_load(&run->broken);
}

/* The exit code after the library was stopped, or has failed. */
static int end_of(struct run *run, enum hf_status status)
{
    if (atomic_load(&run->broken))
        return hf__cli_flushed(run->cli, CLI_FAILED);
    if (status == HF_OK || atomic_load(&run->enough) || hf__guard_signal(run->guard))
        return CLI_OK;
    return hf__database_fail(run->cli, COMMAND);
}

/* ---- without a name ------------------------------------------------------------------------- */

static enum hf_status handle_page(struct run *run, const struct hf_stored_event *events, size_t len)
{
    for (size_t i = 0; i < len && !has_ended(run) && !hf__guard_signal(run->guard); i++) {
        enum hf_status status = event_handle(run->work, &events[i], run);

        if (status != HF_OK)
            return hf_scope_fail_from(run->cli->scope, status, run->work);
        hf_scope_reset(run->work);
    }
    return HF_OK;
}

/* Nothing is there now. False: it was the end. */
static bool wait_for_more(struct run *run)
{
    return !run->settings->until_end && !has_ended(run) &&
           hf_scope_sleep_ms(run->cli->scope, (uint32_t)run->settings->poll_ms) == HF_OK;
}

static enum hf_status follow_stream(struct run *run, struct hf_events *store)
{
    struct hf_scope *s = run->cli->scope;
    struct hf_events_read_options o = {.size = sizeof(o), .from = run->behind + 1, .limit = PAGE};
    struct hf_events_page page;
    enum hf_status status = HF_OK;

    if (run->settings->latest) {
        status = hf_events_read(s, store, run->stream, &o, &page);
        o.from = page.version + 1;
    }
    while (status == HF_OK && !has_ended(run)) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = hf_events_read(s, store, run->stream, &o, &page);
        if (status != HF_OK)
            break;
        if (page.events_len)
            o.from = page.events[page.events_len - 1].version + 1;
        status = handle_page(run, page.events, page.events_len);
        if (status == HF_OK && !page.events_len && !wait_for_more(run))
            break;
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    }
    return status;
}

/* From now on: all that is there now is passed by. */
static enum hf_status pass_by(struct run *run, struct hf_events_reader *reader)
{
    const struct hf_stored_event *events;
    enum hf_status status;
    size_t len;

    do
        status = hf_events_reader_next(run->cli->scope, reader, &events, &len);
    while (status == HF_OK && len);
    return status;
}

static enum hf_status follow_all(struct run *run, struct hf_events *store)
{
    const struct settings *settings = run->settings;
    struct hf_scope *s = run->cli->scope;
    const struct hf_env *env = hf_scope_env(s);
    struct hf_events_all_options o = {.size = sizeof(o),
                                      .after = settings->after,
                                      .from_us = run->since_us,
                                      .domain = settings->domain,
                                      .type = settings->type,
                                      .archived = settings->archived,
                                      .limit = PAGE};
    const struct hf_stored_event *events;
    struct hf_events_reader *reader;
    enum hf_status status;
    size_t len;

    if (settings->latest)
        o.from_us = env->wall_us(env->user) - CLOCKS_US;
    status = hf_events_reader_open(s, store, &o, &reader);
    if (status != HF_OK)
        return status;
    if (settings->latest)
        status = pass_by(run, reader);
    while (status == HF_OK && !has_ended(run)) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        status = hf_events_reader_next(s, reader, &events, &len);
        if (status == HF_OK)
            status = handle_page(run, events, len);
        if (status == HF_OK && !len && !wait_for_more(run))
            break;
        if (status == HF_OK)
            hf_scope_rewind(s, mark);
    }
    hf_events_reader_close(reader);
    return status;
}

/* ---- with a name ---------------------------------------------------------------------------- */

static void on_notice(enum hf_subscription_event what, const struct hf_stored_event *event,
                      const struct hf_error *error, void *user)
{
    struct run *run = user;

    if (run->settings->database.quiet || has_ended(run) || hf__guard_signal(run->guard))
        return;
    switch (what) {
    case HF_SUBSCRIPTION_FAILED:
    case HF_SUBSCRIPTION_PARKED:
        hf__cli_notice(run->cli, COMMAND, "event %.*s (%.*s) %s: %.*s", HF_FMT(event->id),
                       HF_FMT(event->type),
                       what == HF_SUBSCRIPTION_PARKED ? "was parked" : "will be retried",
                       HF_FMT(error->message));
        break;
    case HF_SUBSCRIPTION_STUCK:
        hf__cli_notice(run->cli, COMMAND, "event %.*s (%.*s): %.*s", HF_FMT(event->id),
                       HF_FMT(event->type), HF_FMT(error->message));
        break;
    case HF_SUBSCRIPTION_LOST:
        hf__cli_notice(run->cli, COMMAND, "another process has taken over subscription '%.*s'",
                       HF_FMT(run->settings->name));
        break;
    case HF_SUBSCRIPTION_TROUBLE:
        hf__cli_notice(run->cli, COMMAND, "%.*s", HF_FMT(error->message));
        break;
    case HF_SUBSCRIPTION_STOPPED:
    case HF_SUBSCRIPTION_TAKEN:
        break;
    }
}

/* The scope of the run may have been canceled: the end has one of its own. */
static int subscription_stop(struct run *run, struct hf_subscription *subscription, int ends)
{
    struct hf_scope *s = hf_scope_new(NULL);

    if (!s)
        return hf__cli_fail(run->cli, COMMAND, CLI_FAILED, "out of memory");
    hf_scope_timeout_ms(s, (uint32_t)run->settings->stop_ms);
    if (hf_subscription_stop(s, subscription) != HF_OK && ends == CLI_OK)
        ends = hf__database_fail_of(run->cli, COMMAND, s, NULL);
    hf_scope_free(s);
    return ends;
}

/* An event was given up, which is in the way of all others. */
static int report_why(struct run *run, struct hf_events *store)
{
    struct hf_scope *s = run->cli->scope;
    struct hf_subscription_info info;

    hf_scope_timeout_ms(s, (uint32_t)run->settings->database.timeout_ms);
    if (hf_subscription_info(s, store, run->settings->name, &info) != HF_OK)
        return hf__database_fail(run->cli, COMMAND);
    return hf__cli_fail(run->cli, COMMAND, CLI_FAILED, "gave up on an event: %.*s",
                        HF_FMT(info.failure));
}

static int run_named(struct run *run, struct hf_events *store, struct hf_subscription *subscription)
{
    struct hf_scope *s = run->cli->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_subscription_metrics m = {.state = HF_SUBSCRIPTION_IDLE};
    bool done = false;
    int ends;

    if (hf_subscription_start(s, subscription) != HF_OK)
        return end_of(run, hf_scope_error(s)->status);
    while (!done && !has_ended(run) && hf_scope_sleep_ms(s, LOOK_MS) == HF_OK) {
        hf_scope_rewind(s, mark);
        hf_subscription_metrics(subscription, &m);
        done = m.state == HF_SUBSCRIPTION_GAVE_UP ||
               (run->settings->until_end && m.state == HF_SUBSCRIPTION_LIVE);
    }
    ends = subscription_stop(run, subscription, CLI_OK);
    if (atomic_load(&run->broken))
        return hf__cli_flushed(run->cli, CLI_FAILED);
    return m.state == HF_SUBSCRIPTION_GAVE_UP && ends == CLI_OK ? report_why(run, store) : ends;
}

static int follow_named(struct run *run, struct hf_events *store)
{
    const struct settings *o = run->settings;
    struct hf_subscription *subscription;
    int ends;

    if (hf_subscribe(
            run->cli->scope, store, o->name,
            HF_OPTIONS(hf_subscribe_options, .each = event_handle, .stream = run->stream,
                       .domain = o->domain, .type = o->type, .archived = o->archived,
                       .start = hf__cli_events_start(o->after, o->since, o->latest),
                       .after = o->after, .from_us = run->since_us, .poll_ms = (uint32_t)o->poll_ms,
                       .max_attempts = (uint32_t)o->attempts, .backoff_ms = (uint32_t)o->backoff_ms,
                       .give_up = o->park ? HF_GIVE_UP_PARK : HF_GIVE_UP_STOP,
                       .lease_ms = (uint32_t)o->lease_ms, .on_notice = on_notice, .user = run,
                       .stuck_ms = (uint32_t)o->stuck_ms, .stuck = (enum hf_stuck)(o->stuck + 1)),
            &subscription) != HF_OK)
        return end_of(run, hf_scope_error(run->cli->scope)->status);
    ends = run_named(run, store, subscription);
    hf_subscription_close(subscription);
    return ends;
}

/* ---- the run -------------------------------------------------------------------------------- */

static int events_follow(struct run *run, struct hf_events *store)
{
    enum hf_status status;

    hf_scope_timeout_ms(run->cli->scope, 0);
    if (run->settings->name.ptr)
        return follow_named(run, store);
    run->work = hf_scope_new(NULL);
    if (!run->work)
        return hf__cli_fail(run->cli, COMMAND, CLI_FAILED, "out of memory");
    status = run->stream.domain.len ? follow_stream(run, store) : follow_all(run, store);
    hf_scope_free(run->work);
    return end_of(run, status);
}

/* What excludes each other. NULL: nothing. */
static const char *find_conflict(struct run *run)
{
    const struct settings *o = run->settings;

    if ((o->after.ptr != NULL) + (o->since.ptr != NULL) + o->latest > 1)
        return "--after, --since and --latest cannot be combined";
    if (o->stream.ptr && (o->domain.ptr || o->type.ptr || o->since.ptr || o->archived))
        return "--domain, --type, --since and --archived cannot be combined with --stream";
    if (o->stream.ptr && o->after.ptr && !hf__options_number(o->after.ptr, &run->behind))
        return "--after: with --stream it must be a version (a number)";
    if (o->park && !o->name.ptr)
        return "--park needs --name";
    return NULL;
}

static enum hf_status subscribe_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct run *run = hf_scope_alloc(c->scope, sizeof(*run));
    const char *wrong;

    if (!run)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    *run = (struct run){.cli = c->cli, .settings = settings, .guard = c->guard};
    wrong = find_conflict(run);
    if (wrong)
        return hf__command_fail(c, CLI_USAGE, "%s", wrong);
    if (!hf__cli_events_when(c->cli, COMMAND, "--since", settings->since, &run->since_us) ||
        (settings->stream.ptr &&
         !hf__cli_events_stream(c->cli, COMMAND, settings->stream.ptr, &run->stream)) ||
        !hf__cli_events_program(c->cli, COMMAND, &settings->program, &c->options, &run->program))
        return hf__command_shown(c, CLI_USAGE);
    run->program.guard = c->guard;
    settings->run = run;
    return HF_OK;
}

static enum hf_status events_subscribe(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__command_end(c, events_follow(settings->run, c->place));
}

/* It needs the table: it would wait in vain. */
COMMAND_OF(events_subscribe, events_subscribe, EVENTS_SETTINGS(struct settings),
           .max = COMMAND_MANY, .guarded = true, .ends_by_signal = true,
           .place = &hf__cli_events_place, .table = COMMAND_NEEDS, .check = subscribe_check);
