/*
 * cli/outbox/cmd_outbox.c: events that wait, have failed or were delivered, from a shell: `holdfast outbox
 * emit|ls|failed|retry|discard|stats|cleanup|replay|sweep`. What delivers them is cmd_relay.c.
 */
#include "cli/outbox/outbox.h"

#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/frame/json.h"
#include "cli/frame/time_arg.h"

#include <holdfast/engine.h>
#include <holdfast/sink.h>

enum { PAGE = 100, PAYLOAD_MAX = 16 * 1024 * 1024, HEADERS_MAX = 64 };

enum list_state { LIST_PENDING, LIST_FAILED, LIST_HISTORY };

struct settings {
    struct database_settings database;
    struct hf_str table;
    struct hf_str blobs;
    uint64_t limit;
    struct hf_str type; /* of lists */
    struct hf_str cause;
    /* emit */
    struct hf_str id, key, file, content_type, schema, source, correlation, causation;
    struct hf_str aggregate, aggregate_type, tenant, destination, trace_parent, time;
    uint64_t sequence;
    uint64_t delay_ms;
    bool urgent;
    struct option_list headers;
    uint64_t buckets;
    bool stream;
    /* lists */
    unsigned state; /* enum list_state */
    bool later;
    bool oldest_first;
    /* retry, discard */
    bool all;
    /* stats, cleanup */
    uint64_t scan;
    uint64_t older_ms;
    struct hf_event event; /* emit: what the arguments say */
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define TABLE_SPEC OUTBOX_TABLE(struct settings), OUTBOX_BLOBS(struct settings)
#define LIMIT_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "limit", .value = "NUMBER", .max = UINT32_MAX,              \
        .text = "At most this many.", FIELD(limit)                                                 \
    }
#define TYPE_SPEC                                                                                  \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "type", .value = "TEXT",                                      \
        .text = "Only events of this type; may end with *.", FIELD(type)                           \
    }
#define ONLY_SPECS                                                                                 \
    TYPE_SPEC,                                                                                     \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "key",                                                                            \
         .value = "TEXT",                                                                          \
         .text = "Only events with this order key.",                                               \
         FIELD(key)},                                                                              \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "tenant", .value = "TEXT",                                    \
        .text = "Only events of this tenant.", FIELD(tenant)                                       \
    }
#define CAUSE_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "cause", .value = "TEXT",                                     \
        .text = "Only events with this cause of failure, as 'outbox stats' shows it.",             \
        FIELD(cause)                                                                               \
    }

static enum hf_status place_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__cli_outbox_place_open(c, settings->blobs,
                                     HF_OPTIONS(hf_outbox_options, .table = settings->table,
                                                .buckets = (uint32_t)settings->buckets,
                                                .stream = settings->stream));
}

static const struct command_place outbox_place = {place_open, hf__cli_outbox_place_close,
                                                  "outbox emit"};

/* ---- emit ----------------------------------------------------------------------------------- */

static const struct option_spec emit_specs[] = {
    {.heading = "Event",
     .kind = OPTION_TEXT,
     .letter = 'k',
     .name = "key",
     .value = "TEXT",
     .text = "Order key: events with the same key are delivered in order.",
     FIELD(key)},
    {.kind = OPTION_TEXT,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text = "Read the payload from this file; - is standard input.",
     FIELD(file)},
    {.kind = OPTION_TEXT,
     .name = "id",
     .value = "TEXT",
     .text =
         "Id of the event; a second event with the same id is not stored. Generated by default.",
     FIELD(id)},
    {.kind = OPTION_LIST,
     .letter = 'H',
     .name = "header",
     .value = "NAME=VALUE",
     .text = "Header; can be repeated.",
     FIELD(headers)},
    {.kind = OPTION_TEXT,
     .name = "time",
     .value = "TIME",
     .text = "When it happened: a time such as 2026-11-15T09:30:00Z, or how long ago, such as 15m; "
             "now by default.",
     FIELD(time)},
    {.kind = OPTION_DURATION,
     .name = "delay",
     .value = "TIME",
     .max = UINT32_MAX,
     .text = "Deliver it after this time, not at once.",
     FIELD(delay_ms)},
    {.kind = OPTION_FLAG,
     .name = "urgent",
     .text = "Deliver it before all events that are not urgent.",
     FIELD(urgent)},
    {.kind = OPTION_TEXT,
     .name = "content-type",
     .value = "TYPE",
     .fallback = "application/json",
     .text =
         "Content type of the payload. A payload that is not JSON is refused unless you set this.",
     FIELD(content_type)},
    {.kind = OPTION_TEXT,
     .name = "schema",
     .value = "TEXT",
     .text = "Schema of the payload.",
     FIELD(schema)},
    {.kind = OPTION_TEXT,
     .name = "source",
     .value = "TEXT",
     .fallback = "holdfast",
     .text = "Source: who emits the event.",
     FIELD(source)},
    {.kind = OPTION_TEXT,
     .name = "aggregate",
     .value = "TEXT",
     .text = "Id of the aggregate that the event is about.",
     FIELD(aggregate)},
    {.kind = OPTION_TEXT,
     .name = "aggregate-type",
     .value = "TEXT",
     .text = "Type of the aggregate.",
     FIELD(aggregate_type)},
    {.kind = OPTION_NUMBER,
     .name = "sequence",
     .value = "NUMBER",
     .max = UINT64_MAX,
     .text = "Sequence number of the event within its order key.",
     FIELD(sequence)},
    {.kind = OPTION_TEXT,
     .name = "correlation",
     .value = "ID",
     .text = "Correlation id: what the event belongs to.",
     FIELD(correlation)},
    {.kind = OPTION_TEXT,
     .name = "causation",
     .value = "ID",
     .text = "Causation id: what caused the event.",
     FIELD(causation)},
    {.kind = OPTION_TEXT,
     .name = "tenant",
     .value = "TEXT",
     .text = "Tenant of the event.",
     FIELD(tenant)},
    {.kind = OPTION_TEXT,
     .name = "destination",
     .value = "TEXT",
     .text = "Destination, for routing.",
     FIELD(destination)},
    {.kind = OPTION_TEXT,
     .name = "trace-parent",
     .value = "TEXT",
     .text = "W3C trace context.",
     FIELD(trace_parent)},
    {.heading = "Table",
     .kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .fallback = "outbox",
     .text = "The table of the outbox; created if missing.",
     FIELD(table)},
    OUTBOX_BLOBS(struct settings),
    {.kind = OPTION_NUMBER,
     .name = "buckets",
     .value = "NUMBER",
     .max = HF_OUTBOX_BUCKETS_MAX,
     .text =
         "If the table is created: number of buckets that events are spread over; 16 by default.",
     FIELD(buckets)},
    {.kind = OPTION_FLAG,
     .name = "stream",
     .text = "If the table is created: enable its stream, which wakes relays in other processes.",
     FIELD(stream)},
    DATABASE_ONE(struct settings),
};

static const struct option_example emit_examples[] = {
    {"holdfast outbox emit order.placed '{\"id\":7}' --key 7", "An event of order 7."},
    {"holdfast outbox emit report.due --delay 1h", "Delivered in an hour."},
};

const struct options_table hf__outbox_emit_options = {
    .name = "outbox emit",
    .operands = "TYPE [PAYLOAD]",
    .about = "Store an event for delivery by a relay, and print its id.",
    COMMAND_SPECS(emit),
    .notes = "If the id was emitted before, nothing is stored and the exit code is 4.",
};

/* NAME=VALUE each. */
static enum hf_status headers_read(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_attr attrs[HEADERS_MAX];

    if (settings->headers.len > HEADERS_MAX)
        return hf__command_fail(c, CLI_USAGE, "more than %d headers", HEADERS_MAX);
    for (size_t i = 0; i < settings->headers.len; i++) {
        struct hf_str text = settings->headers.values[i];
        const char *equals = memchr(text.ptr, '=', text.len);
        size_t len = equals ? (size_t)(equals - text.ptr) : 0;

        if (!len)
            return hf__command_fail(c, CLI_USAGE, "--header %.*s: write NAME=VALUE", HF_FMT(text));
        attrs[i] = (struct hf_attr)HF_S("", hf_str_of(equals + 1, text.len - len - 1));
        attrs[i].name = hf_str_of(text.ptr, len);
    }
    if (settings->headers.len)
        settings->event.headers = hf_item_make(c->scope, attrs, settings->headers.len);
    return HF_OK;
}

static enum hf_status payload_read(struct command_ctx *c, struct hf_str *payload)
{
    const struct settings *settings = c->settings;
    struct hf_str error = {0};

    *payload = hf__command_operand(c, 1);
    if (settings->file.ptr && payload->ptr)
        return hf__command_fail(c, CLI_USAGE, "a payload and --file cannot be combined");
    if (!settings->file.ptr)
        return HF_OK;
    *payload = hf__input_read(c->scope, settings->file.ptr, PAYLOAD_MAX, &error);
    return payload->ptr ? HF_OK : hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
}

/* When it happened, and when it is due. */
static enum hf_status times_read(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    if (settings->time.ptr &&
        !hf__time_arg_parse(c->scope, settings->time.ptr, &settings->event.time_us))
        return hf__command_fail(
            c, CLI_USAGE,
            "--time %.*s: use a time such as 2026-11-15T09:30:00Z, or how long ago, such as 15m",
            HF_FMT(settings->time));
    if (settings->delay_ms && settings->urgent)
        return hf__command_fail(c, CLI_USAGE, "--delay and --urgent cannot be combined");
    if (settings->delay_ms) {
        const struct hf_env *env = hf_scope_env(c->scope);

        settings->event.due_us = env->wall_us(env->user) + (int64_t)settings->delay_ms * 1000;
    }
    return HF_OK;
}

static enum hf_status emit_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str payload;

    TRY(payload_read(c, &payload));
    settings->event = (struct hf_event){
        .id = settings->id,
        .type = hf__command_operand(c, 0),
        .key = settings->key,
        .sequence = settings->sequence,
        .urgent = settings->urgent,
        .payload = hf_bytes_of(payload.ptr, payload.len),
        .content_type = settings->content_type,
        .schema = settings->schema,
        .source = settings->source,
        .correlation = settings->correlation,
        .causation = settings->causation,
        .aggregate = settings->aggregate,
        .aggregate_type = settings->aggregate_type,
        .tenant = settings->tenant,
        .destination = settings->destination,
        .trace_parent = settings->trace_parent,
    };
    TRY(times_read(c));
    TRY(headers_read(c));
    return hf__input_fits(c->cli, c->name, settings->content_type, payload)
               ? HF_OK
               : hf__command_shown(c, CLI_USAGE);
}

static enum hf_status outbox_emit(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str id = {0};

    TRY(hf_outbox_emit(c->scope, c->place, &settings->event, 1,
                       HF_OPTIONS(hf_emit_options, .ids = &id)));
    return COMMAND_PRINT(c, hf__rows_text("id", id));
}

const struct command hf__outbox_emit_command = {COMMAND_SETTINGS(struct settings),
                                                .min = 1,
                                                .max = 2,
                                                .place = &outbox_place,
                                                .table = COMMAND_MAKES,
                                                .check = emit_check,
                                                .body = outbox_emit};

/* ---- ls, failed ----------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    {.heading = "Events",
     .kind = OPTION_CHOICE,
     .letter = 's',
     .name = "state",
     .choices = "pending failed history",
     .fallback = "pending",
     .text =
         "pending: events to be delivered; failed: dead letters; history: delivered events that "
         "are still stored.",
     FIELD(state)},
    {.kind = OPTION_FLAG,
     .name = "later",
     .text = "With pending: include events that are due later or wait for a retry.",
     FIELD(later)},
    {.kind = OPTION_FLAG,
     .name = "oldest-first",
     .text = "Oldest first; with failed and history the newest are first by default.",
     FIELD(oldest_first)},
    ONLY_SPECS,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast outbox ls", "Events that are due now."},
    {"holdfast outbox ls --later --jsonl", "All pending events, with payloads."},
};

const struct options_table hf__outbox_ls_options = {
    .name = "outbox ls",
    .about = "List events: id, type, key, state, whether they are urgent, when they happened, "
             "attempts, last error; with --json all fields.",
    COMMAND_SPECS(ls),
};

static const struct option_spec failed_specs[] = {
    CAUSE_SPEC,
    {.kind = OPTION_FLAG,
     .name = "oldest-first",
     .text = "Oldest first; the newest are first by default.",
     FIELD(oldest_first)},
    ONLY_SPECS,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_LIST(struct settings),
};

static const struct option_example failed_examples[] = {
    {"holdfast outbox failed", "Dead letters, and why they failed."},
};

const struct options_table hf__outbox_failed_options = {
    .name = "outbox failed",
    .about = "List dead letters: events that failed too often, or permanently. 'outbox retry' "
             "delivers them again, 'outbox discard' deletes them.",
    COMMAND_SPECS(failed),
};

static struct hf_str event_json(struct cli *cli, const struct hf_event *event)
{
    struct hf_str json;

    return hf_event_json(cli->scope, event, &json) == HF_OK ? json : (struct hf_str){0};
}

static void add_event(struct rows *rows, struct cli *cli, const struct hf_outbox_event *stored)
{
    static const char *const states[] = {"", "pending", "failed", "published"};
    const struct hf_event *event = &stored->event;
    struct rows_field fields[] = {
        hf__rows_text("id", event->id),
        hf__rows_text("type", event->type),
        hf__rows_text("key", event->key),
        hf__rows_text("state", hf_str_from(states[stored->state])),
        hf__rows_bool("urgent", event->urgent),
        hf__rows_time(cli, "time", event->time_us),
        hf__rows_number(cli, "attempts", stored->attempts),
        hf__rows_text("error", stored->error == HF_OK ? (struct hf_str){0} : stored->error_text),
        {.name = "cause",
         .kind = ROWS_JSON,
         .text = hf__cli_json_of_text(cli->scope, stored->cause)},
        {.name = "blob", .kind = ROWS_JSON, .text = hf__cli_json_of_text(cli->scope, stored->blob)},
        {.name = "blob_error",
         .kind = ROWS_JSON,
         .text = hf__cli_json_of_text(cli->scope,
                                      stored->blob_error == HF_OK
                                          ? (struct hf_str){0}
                                          : hf_str_from(hf_status_name(stored->blob_error)))},
        {.name = "event", .kind = ROWS_JSON, .text = event_json(cli, event)}};

    hf__rows_add(rows, fields, COMMAND_LEN(fields));
}

static enum hf_status next_page(struct cli *cli, const struct settings *settings,
                                struct hf_outbox *outbox,
                                const struct hf_event_list_options *options,
                                struct hf_event_list *list)
{
    switch ((enum list_state)settings->state) {
    case LIST_FAILED:
        return hf_outbox_failed(cli->scope, outbox, options, list);
    case LIST_HISTORY:
        return hf_outbox_history(cli->scope, outbox, options, list);
    case LIST_PENDING:
        break;
    }
    return hf_outbox_pending(cli->scope, outbox, options, list);
}

static enum hf_status outbox_list(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_event_list_options o = {.size = sizeof(o),
                                      .not_due_too = settings->later,
                                      .oldest_first = settings->oldest_first,
                                      .type = settings->type,
                                      .key = settings->key,
                                      .tenant = settings->tenant,
                                      .cause = settings->cause,
                                      .no_payload = !c->database->json && !c->database->jsonl};
    struct rows *rows = hf__command_rows(c, "events");
    struct hf_event_list page;

    do {
        uint64_t left = settings->limit ? settings->limit - rows->count : PAGE;

        o.limit = (uint32_t)(left < PAGE ? left : PAGE);
        TRY(next_page(c->cli, settings, c->place, &o, &page));
        for (size_t i = 0; i < page.events_len; i++)
            add_event(rows, c->cli, &page.events[i]);
        o.after = page.next;
    } while (o.after.ptr && (!settings->limit || rows->count < settings->limit) &&
             !ferror(c->cli->out));
    return HF_OK;
}

const struct command hf__outbox_ls_command = {COMMAND_SETTINGS(struct settings),
                                              .place = &outbox_place, .table = COMMAND_LOOKS,
                                              .list = "events", .body = outbox_list};

static enum hf_status failed_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    settings->state = LIST_FAILED;
    return HF_OK;
}

const struct command hf__outbox_failed_command = {COMMAND_SETTINGS(struct settings),
                                                  .place = &outbox_place,
                                                  .table = COMMAND_LOOKS,
                                                  .list = "events",
                                                  .check = failed_check,
                                                  .body = outbox_list};

/* ---- retry, discard ------------------------------------------------------------------------- */

static const struct option_spec chosen_specs[] = {
    {.heading = "Events",
     .kind = OPTION_FLAG,
     .name = "all",
     .text = "All dead letters, or all of a type, key, tenant or cause.",
     FIELD(all)},
    ONLY_SPECS,
    CAUSE_SPEC,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example retry_examples[] = {
    {"holdfast outbox retry --all", "After the problem is solved: deliver the dead letters."},
    {"holdfast outbox retry 01k3x5", "One of them."},
};

const struct options_table hf__outbox_retry_options = {
    .name = "outbox retry",
    .operands = "[ID...]",
    .about = "Deliver dead letters again, with their attempts reset. Given by id, events that wait "
             "for a retry are retried at once.",
    COMMAND_SPECS_OF(chosen, retry),
};

static const struct option_example discard_examples[] = {
    {"holdfast outbox discard --all --type test.ping", "Dead letters of a type."},
};

const struct options_table hf__outbox_discard_options = {
    .name = "outbox discard",
    .operands = "[ID...]",
    .about = "Delete dead letters; given by id, also pending events. They cannot be restored.",
    COMMAND_SPECS_OF(chosen, discard),
};

typedef enum hf_status chosen_fn(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_str *ids, size_t len, uint64_t *done);
typedef enum hf_status all_fn(struct hf_scope *s, struct hf_outbox *outbox,
                              const struct hf_event_list_options *options, uint64_t *done);

/* What is done to chosen events. */
struct choice {
    chosen_fn *chosen;
    all_fn *all;
    const char *count_name;
};

static enum hf_status choice_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if ((c->operands_len > 0) == settings->all)
        return hf__command_fail(c, CLI_USAGE, "%s",
                                settings->all ? "ids and --all cannot be combined"
                                              : "missing argument: give ids or --all");
    if (!settings->all && (settings->type.ptr || settings->key.ptr || settings->tenant.ptr ||
                           settings->cause.ptr || settings->limit))
        return hf__command_fail(
            c, CLI_USAGE,
            "--type, --key, --tenant, --cause and --limit need --all and cannot be combined with "
            "ids");
    return HF_OK;
}

static enum hf_status choice_do(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct choice *choice = c->command->data;
    struct hf_str *ids = hf_scope_alloc(c->scope, (c->operands_len + 1) * sizeof(*ids));
    enum hf_status status;
    uint64_t done = 0;

    if (!ids)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < c->operands_len; i++)
        ids[i] = hf__command_operand(c, i);
    if (settings->all)
        status = choice->all(c->scope, c->place,
                             HF_OPTIONS(hf_event_list_options, .limit = (uint32_t)settings->limit,
                                        .type = settings->type, .key = settings->key,
                                        .tenant = settings->tenant, .cause = settings->cause),
                             &done);
    else
        status = choice->chosen(c->scope, c->place, ids, c->operands_len, &done);
    if (status != HF_OK)
        hf__command_failed(c);
    if (status == HF_OK || done)
        TRY(hf__command_count(c, choice->count_name, done));
    return status;
}

#define CHOICE_COMMAND(choice)                                                                     \
    {                                                                                              \
        COMMAND_SETTINGS(struct settings), .max = COMMAND_MANY, .place = &outbox_place,            \
                                           .table = COMMAND_EMPTY, .check = choice_check,          \
                                           .body = choice_do, .data = &(choice)                    \
    }

static const struct choice retry_choice = {hf_outbox_retry, hf_outbox_retry_all, "waiting"};

const struct command hf__outbox_retry_command = CHOICE_COMMAND(retry_choice);

static const struct choice discard_choice = {hf_outbox_discard, hf_outbox_discard_all, "discarded"};

const struct command hf__outbox_discard_command = CHOICE_COMMAND(discard_choice);

/* ---- stats ---------------------------------------------------------------------------------- */

static const struct option_spec stats_specs[] = {
    {.kind = OPTION_NUMBER,
     .name = "scan",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "Read at most this many events; all by default.",
     FIELD(scan)},
    ONLY_SPECS,
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example stats_examples[] = {
    {"holdfast outbox stats --json", "For monitoring: oldest_due_ms is the lag of the relays."},
    {"holdfast outbox stats --tenant acme", "Of one tenant."},
};

const struct options_table hf__outbox_stats_options = {
    .name = "outbox stats",
    .about = "Print how many events are pending, dead letters or delivered, the age of the oldest, "
             "and the causes of failures.",
    COMMAND_SPECS(stats),
};

static struct hf_str causes_json(struct cli *cli, const struct hf_outbox_stats *stats)
{
    struct json_text text;
    FILE *out;

    if (!hf__cli_json_text_begin(&text))
        return (struct hf_str){0};
    out = text.out;
    fputc('[', out);
    for (size_t i = 0; i < stats->causes_len; i++) {
        fprintf(out, "%s{\"count\":%llu,\"cause\":", i ? "," : "",
                (unsigned long long)stats->causes[i].count);
        hf__cli_json_write_text(out, stats->causes[i].cause);
        fputs(",\"example\":", out);
        hf__cli_json_write_text(out, stats->causes[i].example);
        fputc('}', out);
    }
    fputc(']', out);
    return hf__cli_json_text_end(&text, cli->scope);
}

static enum hf_status outbox_stats(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_outbox_stats stats = {.whole = true};

    if (c->place)
        TRY(hf_outbox_stats_of(c->scope, c->place,
                               HF_OPTIONS(hf_event_list_options, .limit = (uint32_t)settings->scan,
                                          .type = settings->type, .key = settings->key,
                                          .tenant = settings->tenant),
                               &stats));
    struct rows_field fields[] = {hf__rows_number(c->cli, "pending", stats.pending),
                                  hf__rows_number(c->cli, "due", stats.due),
                                  hf__rows_number(c->cli, "scheduled", stats.scheduled),
                                  hf__rows_number(c->cli, "retrying", stats.retrying),
                                  hf__rows_number(c->cli, "urgent", stats.urgent),
                                  hf__rows_number(c->cli, "failed", stats.failed),
                                  hf__rows_number(c->cli, "published", stats.published),
                                  hf__rows_ms(c->cli, "oldest_due_ms", stats.oldest_due_ms),
                                  hf__rows_ms(c->cli, "oldest_failed_ms", stats.oldest_failed_ms),
                                  hf__rows_number(c->cli, "fullest_bucket", stats.fullest),
                                  hf__rows_number(c->cli, "unreadable", stats.unreadable),
                                  hf__rows_bool("whole", stats.whole),
                                  {.name = "causes",
                                   .kind = ROWS_RAW,
                                   .text = causes_json(c->cli, &stats)}};

    return hf__command_print(c, fields, COMMAND_LEN(fields));
}

const struct command hf__outbox_stats_command = {COMMAND_SETTINGS(struct settings),
                                                 .place = &outbox_place, .table = COMMAND_LOOKS,
                                                 .body = outbox_stats};

/* ---- cleanup, replay ------------------------------------------------------------------------ */

static const struct option_spec cleanup_specs[] = {
    {.kind = OPTION_DURATION,
     .name = "older",
     .value = "TIME",
     .max = UINT64_MAX / 1000,
     .fallback = "168h",
     .text = "Only events that were delivered longer ago than this.",
     FIELD(older_ms)},
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example cleanup_examples[] = {
    {"holdfast outbox cleanup --older 24h", "Keep one day of history."},
};

const struct options_table hf__outbox_cleanup_options = {
    .name = "outbox cleanup",
    .about = "Delete delivered events from the history. Pending events and dead letters are kept.",
    COMMAND_SPECS(cleanup),
};

static enum hf_status outbox_cleanup(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct hf_env *env = hf_scope_env(c->scope);
    uint64_t done = 0;

    TRY(hf_outbox_cleanup(c->scope, c->place,
                          env->wall_us(env->user) - (int64_t)settings->older_ms * 1000, &done));
    return hf__command_count(c, "deleted", done);
}

const struct command hf__outbox_cleanup_command = {COMMAND_SETTINGS(struct settings),
                                                   .place = &outbox_place, .table = COMMAND_EMPTY,
                                                   .body = outbox_cleanup};

static const struct option_spec replay_specs[] = {
    ONLY_SPECS,
    LIMIT_SPEC,
    {.kind = OPTION_DURATION,
     .name = "newer",
     .value = "TIME",
     .max = UINT64_MAX / 1000,
     .text = "Only events that were delivered within this time; the whole history by default.",
     FIELD(older_ms)},
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example replay_examples[] = {
    {"holdfast outbox replay --newer 1h", "Deliver the events of the last hour again."},
};

const struct options_table hf__outbox_replay_options = {
    .name = "outbox replay",
    .about = "Deliver events of the history again, with the same ids.",
    COMMAND_SPECS(replay),
};

static enum hf_status outbox_replay(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct hf_env *env = hf_scope_env(c->scope);
    struct hf_event_list_options o = {.size = sizeof(o),
                                      .limit = (uint32_t)settings->limit,
                                      .type = settings->type,
                                      .key = settings->key,
                                      .tenant = settings->tenant};
    uint64_t done = 0;

    if (settings->older_ms)
        o.from_us = env->wall_us(env->user) - (int64_t)settings->older_ms * 1000;
    TRY(hf_outbox_replay(c->scope, c->place, &o, &done));
    return hf__command_count(c, "waiting", done);
}

const struct command hf__outbox_replay_command = {COMMAND_SETTINGS(struct settings),
                                                  .place = &outbox_place, .table = COMMAND_EMPTY,
                                                  .body = outbox_replay};

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    {.kind = OPTION_DURATION,
     .name = "older",
     .value = "TIME",
     .min = 1000,
     .max = (uint64_t)UINT32_MAX * 1000,
     .fallback = "24h",
     .text = "Keep payloads younger than this: they may belong to an event that is being stored.",
     FIELD(older_ms)},
    TABLE_SPEC,
    DATABASE_ONE(struct settings),
};

static const struct option_example sweep_examples[] = {
    {"holdfast outbox sweep --blobs s3://payloads", "Run it once a night, for example."},
};

const struct options_table hf__outbox_sweep_options = {
    .name = "outbox sweep",
    .about =
        "Delete payloads from the blob store that no pending event, dead letter or event of the "
        "history references. Reads the whole table.",
    COMMAND_SPECS(sweep),
};

static enum hf_status sweep_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return settings->blobs.ptr ? HF_OK : hf__command_missing(c, "--blobs");
}

static enum hf_status outbox_sweep(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint64_t removed = 0;

    hf_scope_timeout_ms(c->scope, 0); /* it can be interrupted, and called again */
    TRY(hf_outbox_sweep_blobs(c->scope, c->place, (uint32_t)(settings->older_ms / 1000), &removed));
    return hf__command_count(c, "blobs", removed);
}

/* It needs the table: an empty one would use none of the blobs. */
const struct command hf__outbox_sweep_command = {COMMAND_SETTINGS(struct settings),
                                                 .place = &outbox_place, .table = COMMAND_NEEDS,
                                                 .check = sweep_check, .body = outbox_sweep};
