/*
 * cli/outbox/cmd_relay.c: from an outbox to a broker, a service, a program or a file: `holdfast relay`
 * until a signal, `holdfast outbox drain` until nothing is due any more.
 */
#include "cli/outbox/outbox.h"

#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/child.h"

#include <holdfast/relay.h>

#include <stdatomic.h>
#include <unistd.h>

enum { TICK_MS = 1000, LOOK_MAX_MS = 5000 };

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str blobs;
    struct hf_str to;
    unsigned preset; /* enum hf_relay_preset, less one */
    uint64_t workers, batch, attempts, rate;
    uint64_t poll_ms, wake_ms, backoff_ms, backoff_max_ms, delivery_ms, lease_ms, linger_ms,
        stop_ms, stuck_ms;
    uint64_t history_ms;
    uint64_t for_ms;
    unsigned stuck; /* enum hf_stuck, less one */
    struct hf_str only_type, only_key, only_tenant;
    bool failed_blocks;
    bool competing;
    bool dry_run;
    bool no_stream;
    struct hf_sink *sink; /* opened before the outbox, as --to may be wrong */
    int64_t began_us;     /* on the elapsed clock */
};

struct run {
    struct cli *cli;
    const char *command;
    bool drain;
    const struct settings *settings;
    struct guard *guard;
    struct hf_outbox *outbox;
    struct hf_relay *relay;
    const char *left; /* drain: is something left? as JSON */
};

#define DELIVER_SPECS                                                                              \
    OPT_TEXT("to", "URL", to,                                                                      \
             "Where to deliver: stdout:, file:PATH, exec:PROGRAM, webhook:URL, sqs:URL, sns:ARN, " \
             "eventbridge:BUS, kafka:, rabbitmq:, redis:, nats: or mqtt: as docs/relay.md "        \
             "describes them.",                                                                    \
             .letter = 't', .env = "HOLDFAST_SINK", .heading = "Sink"),                            \
        OPT_TEXT("only-type", "TEXT", only_type,                                                   \
                 "Deliver only events of this type; may end with *. Others wait."),                \
        OPT_TEXT("key", "TEXT", only_key,                                                          \
                 "Deliver only events with this order key. Others wait."),                         \
        OPT_TEXT("tenant", "TEXT", only_tenant,                                                    \
                 "Deliver only events of this tenant. Others wait. Relays that share an outbox "   \
                 "must agree on these three options, unless they compete."),                       \
        OPT_FLAG("dry-run", dry_run, "Deliver each event once, but record nothing.",               \
                 .letter = 'n'),                                                                   \
        OPT_CHOICE(                                                                                \
            "preset", "balanced throughput reliability", preset,                                   \
            "Defaults of the options below. Where three are listed, they are for balanced, "       \
            "throughput and reliability.",                                                         \
            .fallback = "balanced", .heading = "Settings"),                                        \
        OPT_NUMBER("workers", workers, 0, 256, "Batches delivered at once; 4, 8 or 1 by default.", \
                   .letter = 'j'),                                                                 \
        OPT_NUMBER("batch", batch, 0, 10000,                                                       \
                   "Events read ahead per bucket; 50, 1000 or 10 by default."),                    \
        OPT_TIME("poll", poll_ms, 0, OPTION_DAY_MS,                                                \
                 "How often an idle bucket is read; 1s, 100ms or 5s by default."),                 \
        OPT_NUMBER("attempts", attempts, 0, 1000,                                                  \
                   "Attempts before an event becomes a dead letter; 5, 3 or 10 by default."),      \
        OPT_TIME("backoff", backoff_ms, 0, OPTION_DAY_MS,                                          \
                 "Delay before the first retry, doubled for each further one; 1s by default."),    \
        OPT_TIME("backoff-max", backoff_max_ms, 0, OPTION_DAY_MS,                                  \
                 "Longest delay before a retry; 30s by default."),                                 \
        OPT_TIME("delivery-timeout", delivery_ms, 0, OPTION_DAY_MS,                                \
                 "Time limit for a delivery; 30s by default."),                                    \
        OPT_TIME("stuck", stuck_ms, 1, OPTION_DAY_MS,                                              \
                 "Report a delivery that takes longer than this as stuck; by default ten times "   \
                 "--delivery-timeout."),                                                           \
        OPT_CHOICE(                                                                                \
            "if-stuck", "leave release give-up", stuck,                                            \
            "What to do about a stuck delivery. leave: wait; release: hand its work over to "      \
            "other relays until it returns; give-up: make its events dead letters.",               \
            .fallback = "leave"),                                                                  \
        OPT_TIME(                                                                                  \
            "lease", lease_ms, 0, OPTION_DAY_MS,                                                   \
            "Lease: other relays take over from a relay that was silent for this long; 20s by "    \
            "default."),                                                                           \
        OPT_TIME("linger", linger_ms, 0, OPTION_DAY_MS,                                            \
                 "How long to wait for a batch to fill up."),                                      \
        OPT_NUMBER("rate", rate, 0, UINT32_MAX, "Largest number of events per second."),           \
        OPT_FLAG("failed-blocks", failed_blocks,                                                   \
                 "While an event of an order key is a dead letter, the later events of that key "  \
                 "wait."),                                                                         \
        OPT_FLAG("competing", competing,                                                           \
                 "Claim single events, in no order, instead of owning buckets."),                  \
        OPT_TIME(                                                                                  \
            "history", history_ms, 0, UINT32_MAX,                                                  \
            "Keep delivered events in the history for this time; by default they are deleted.")
#define TABLE_SPECS                                                                                \
    OUTBOX_TABLE(struct settings), OUTBOX_BLOBS(struct settings), DATABASE_JSON(struct settings),  \
        DATABASE_QUIET(struct settings)

static const struct option_spec relay_specs[] = {
    DELIVER_SPECS,
    OPT_TIME(
        "wake", wake_ms, 0, OPTION_DAY_MS,
        "How often to poll the table's stream, if it has one; 200ms by default. DynamoDB allows "
        "five polls per second for all relays together."),
    OPT_FLAG("no-stream", no_stream, "Do not poll the stream: find new events by --poll only."),
    OPT_TIME("stop-timeout", stop_ms, 1, OPTION_DAY_MS,
             "How long open deliveries may take when the relay stops.", .fallback = "30s"),
    TABLE_SPECS,
    DATABASE_SPECS(struct settings),
};

static const struct option_spec drain_specs[] = {
    DELIVER_SPECS,
    OPT_TIME("for", for_ms, 1, OPTION_DAY_MS,
             "Stop after this time, even if events are left; then the exit code is 7."),
    TABLE_SPECS,
    DATABASE_SPECS_WITH(
        struct settings,
        "Give up if nothing could be delivered for this time because of the database, the sink "
        "or another relay; then the exit code is 7."),
};

static const struct option_example relay_examples[] = {
    {"holdfast relay --to stdout:", "See what is emitted, as JSON lines."},
    {"holdfast relay --to redis://127.0.0.1:6379/orders", "Into a Redis stream."},
    {"holdfast relay --to 'webhook:https://example.com/hook?secret_env=HOOK' -j 8",
     "Signed POST requests."},
};

const struct options_table hf__relay_options = {
    .name = "relay",
    .about =
        "Deliver the events of an outbox until a signal comes: at least once, and in the order "
        "of their order keys. Any number of relays share the work.\n\nFailed deliveries are "
        "retried; after --attempts the event becomes a dead letter: see 'outbox failed'. If the "
        "sink is not reachable, the relay waits for it.",
    COMMAND_SPECS(relay),
    .notes = "SIGTERM and SIGINT let open deliveries finish; then the exit code is 0.",
};

static const struct option_example drain_examples[] = {
    {"holdfast outbox drain --to file:events.jsonl", "All events that are due now."},
    {"holdfast outbox drain --to redis://127.0.0.1:6379/orders --for 50s",
     "As many as possible in 50 seconds, from cron."},
};

const struct options_table hf__outbox_drain_options = {
    .name = "outbox drain",
    .about = "Deliver all events of an outbox that are due, then end. Events that wait for a retry "
             "are left.",
    COMMAND_SPECS(drain),
    .notes =
        "Exit codes: 0 no due event is left; 1 an event became a dead letter; 4 events are left "
        "that wait for a retry or belong to other relays; 7 the time was over. With --json, "
        "\"left\" says whether events are left.",
};

/* ---- what happens --------------------------------------------------------------------------- */

static void on_ended(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                     const struct hf_error *error, void *user)
{
    static const char *const texts[] = {"", "", "will be retried", "is a dead letter now",
                                        "was delivered, but that is not recorded yet"};
    struct run *run = user;

    if (outcome == HF_RELAY_DELIVERED || run->settings->database.quiet)
        return;
    hf__cli_notice(run->cli, run->command, "event %.*s (%.*s) %s: %.*s", HF_FMT(event->event.id),
                   HF_FMT(event->event.type), texts[outcome], HF_FMT(error->message));
}

static void on_error(const struct hf_error *error, void *user)
{
    struct run *run = user;

    hf__cli_notice(run->cli, run->command, "%.*s", HF_FMT(error->message));
}

static void on_stuck(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    struct run *run = user;

    hf__cli_notice(run->cli, run->command,
                   "event %.*s (%.*s) is stuck: its delivery has taken %llu ms",
                   HF_FMT(event->event.id), HF_FMT(event->event.type), (unsigned long long)for_ms);
}

static void show_progress(struct run *run)
{
    struct hf_relay_metrics m;

    hf_relay_metrics(run->relay, &m);
    fprintf(run->cli->err, "\r%llu delivered, %llu dead letters, lag %lld ms, %u buckets%s%*s",
            (unsigned long long)m.delivered, (unsigned long long)m.given_up, (long long)m.lag_ms,
            (unsigned)m.buckets, m.breaker_open ? ", waiting for the sink" : "", 8, "");
    fflush(run->cli->err);
}

static int print_metrics(struct run *run, int ends)
{
    struct cli *cli = run->cli;
    struct hf_relay_metrics m;

    hf_relay_metrics(run->relay, &m);
    if (!run->settings->database.json)
        return hf__cli_flushed(cli, ends);
    {
        struct rows_field fields[] = {hf__rows_number(cli, "delivered", m.delivered),
                                      hf__rows_number(cli, "retried", m.retried),
                                      hf__rows_number(cli, "given_up", m.given_up),
                                      hf__rows_number(cli, "unsure", m.unsure),
                                      hf__rows_number(cli, "batches", m.batches),
                                      hf__rows_number(cli, "outages", m.outages),
                                      hf__rows_number(cli, "reads", m.reads),
                                      hf__rows_number(cli, "writes", m.writes),
                                      hf__rows_number(cli, "refused", m.refused),
                                      hf__rows_number(cli, "taken_over", m.taken_over),
                                      hf__rows_number(cli, "stream_reads", m.stream_reads),
                                      {.name = "left",
                                       .text = hf_str_from(run->left),
                                       .kind = ROWS_RAW}};
        size_t len = COMMAND_LEN(fields) - (run->drain ? 0 : 1);
        int printed = hf__rows_one(cli, &run->settings->database, fields, len);

        return ends == CLI_OK ? printed : ends;
    }
}

/* ---- the run -------------------------------------------------------------------------------- */

/* The scope of the run may have been canceled: the end has one of its own. */
static int relay_stop(struct run *run, int ends)
{
    struct hf_scope *s = hf_scope_new(NULL);

    if (!s)
        return hf__cli_fail(run->cli, run->command, CLI_FAILED, "out of memory");
    hf_scope_timeout_ms(s, (uint32_t)run->settings->stop_ms);
    if (hf_relay_stop(s, run->relay) != HF_OK)
        ends = hf__database_fail_of(run->cli, run->command, s, NULL);
    hf_scope_free(s);
    return ends;
}

static int run_until_signal(struct run *run)
{
    bool shown = isatty(STDERR_FILENO) && !run->settings->database.quiet;
    struct hf_scope *s = run->cli->scope;
    struct hf_scope_mark mark;

    hf_scope_timeout_ms(s, 0);
    if (hf_relay_start(s, run->relay) != HF_OK)
        return hf__database_fail(run->cli, run->command);
    mark = hf_scope_mark(s);
    while (hf_scope_sleep_ms(s, TICK_MS) == HF_OK) {
        hf_scope_rewind(s, mark);
        if (shown)
            show_progress(run);
    }
    if (shown)
        fputc('\n', run->cli->err);
    return relay_stop(run, CLI_OK);
}

static int64_t elapsed_us(const struct cli *cli)
{
    const struct hf_env *env = hf_scope_env(cli->scope);

    return env->elapsed_us(env->user);
}

/* What is left of --for, in milliseconds, and at least one; 0: it was not given. */
static uint32_t time_left(const struct run *run)
{
    int64_t left_ms =
        (int64_t)run->settings->for_ms - (elapsed_us(run->cli) - run->settings->began_us) / 1000;

    return !run->settings->for_ms ? 0 : left_ms > 1 ? (uint32_t)left_ms : 1;
}

/* Is something left that is due, in the table as it is now? Not known: the database does not say.
 */
static void look_what_is_left(struct run *run)
{
    const struct settings *o = run->settings;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str after = {0};
    struct hf_event_list list;
    enum hf_status status;

    if (!s)
        return;
    hf_scope_timeout_ms(s, (uint32_t)(o->database.timeout_ms < LOOK_MAX_MS ? o->database.timeout_ms
                                                                           : LOOK_MAX_MS));
    do {
        status = hf_outbox_pending(s, run->outbox,
                                   HF_OPTIONS(hf_event_list_options, .limit = 1, .after = after,
                                              .retrying_too = true, .no_payload = true,
                                              .type = o->only_type, .key = o->only_key,
                                              .tenant = o->only_tenant),
                                   &list);
        after = list.next;
    } while (status == HF_OK && !list.events_len && after.len);
    if (status == HF_OK)
        run->left = list.events_len ? "true" : "false";
    hf_scope_free(s);
}

static int run_drain(struct run *run)
{
    struct hf_scope *s = run->cli->scope;
    struct hf_relay_metrics m;
    enum hf_status status;
    uint64_t count;

    hf_scope_timeout_ms(s, time_left(run));
    status = hf_relay_drain(s, run->relay, &count);
    if (status == HF_CANCELED && hf__guard_signal(run->guard))
        return CLI_SIGNAL + hf__guard_signal(run->guard);
    if (!run->settings->dry_run)
        look_what_is_left(run);
    if (status != HF_OK)
        return hf__database_fail(run->cli, run->command);
    hf_relay_metrics(run->relay, &m);
    if (m.given_up)
        return CLI_FAILED;
    if (strcmp(run->left, "true") == 0)
        return hf__cli_fail(run->cli, run->command, CLI_CONDITION,
                            "events are left that wait for a retry or belong to other relays");
    return CLI_OK;
}

static int open_and_run(struct run *run)
{
    const struct settings *o = run->settings;
    int ends;

    if (hf_relay_open(
            run->cli->scope, run->outbox, o->sink,
            HF_OPTIONS(hf_relay_options, .preset = (enum hf_relay_preset)(o->preset + 1),
                       .workers = (uint32_t)o->workers, .batch = (uint32_t)o->batch,
                       .poll_ms = (uint32_t)o->poll_ms, .max_attempts = (uint32_t)o->attempts,
                       .backoff_ms = (uint32_t)o->backoff_ms,
                       .backoff_max_ms = (uint32_t)o->backoff_max_ms,
                       .timeout_ms = (uint32_t)o->delivery_ms, .lease_ms = (uint32_t)o->lease_ms,
                       .linger_ms = (uint32_t)o->linger_ms, .rate = (uint32_t)o->rate,
                       .failed_blocks = o->failed_blocks, .competing = o->competing,
                       .dry_run = o->dry_run, .only_type = o->only_type,
                       .wake_by_stream = !run->drain && !o->no_stream,
                       .wake_ms = (uint32_t)o->wake_ms, .on_ended = on_ended, .on_error = on_error,
                       .user = run, .stuck_ms = (uint32_t)o->stuck_ms,
                       .stuck = (enum hf_stuck)(o->stuck + 1), .on_stuck = on_stuck,
                       .only_key = o->only_key, .only_tenant = o->only_tenant,
                       .stall_ms = (uint32_t)o->database.timeout_ms),
            &run->relay) != HF_OK)
        return hf__database_fail(run->cli, run->command);
    ends = run->drain ? run_drain(run) : run_until_signal(run);
    ends = print_metrics(run, ends);
    hf_relay_close(run->relay);
    return ends;
}

/* ---- the commands --------------------------------------------------------------------------- */

static enum hf_status relay_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->began_us = elapsed_us(c->cli);
    if (!settings->to.ptr)
        return hf__command_missing(c, "--to");
    if (settings->for_ms && settings->for_ms < c->database->timeout_ms)
        c->database->timeout_ms = settings->for_ms;
    if (hf_sink_open(c->scope, settings->to, &settings->sink) != HF_OK)
        return hf__command_fail(c, CLI_USAGE, "%s", hf_scope_error_text(c->scope));
    return HF_OK;
}

static void relay_end(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    hf_sink_close(settings->sink);
}

static enum hf_status place_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__cli_outbox_place_open(
        c, settings->blobs,
        HF_OPTIONS(hf_outbox_options, .table = settings->table,
                   .history_s = (uint32_t)((settings->history_ms + 999) / 1000)));
}

static const struct command_place outbox_place = {place_open, hf__cli_outbox_place_close,
                                                  "outbox emit"};

static enum hf_status relay_command(struct command_ctx *c)
{
    struct run run = {.cli = c->cli,
                      .command = c->name,
                      .drain = c->command == &hf__outbox_drain_command,
                      .settings = c->settings,
                      .guard = c->guard,
                      .outbox = c->place,
                      .left = "null"};

    return hf__command_end(c, open_and_run(&run));
}

/* It needs the outbox: it would wait in vain. */
COMMAND_OF(relay, relay_command, COMMAND_SETTINGS(struct settings), .guarded = true,
           .ends_by_signal = true, .place = &outbox_place, .table = COMMAND_NEEDS,
           .check = relay_check, .end = relay_end);

COMMAND_OF(outbox_drain, relay_command, COMMAND_SETTINGS(struct settings), .guarded = true,
           .place = &outbox_place, .table = COMMAND_EMPTY, .check = relay_check, .end = relay_end);
