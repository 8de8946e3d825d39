/*
 * cli/outbox/cmd_outbox.c: events that wait, have failed or were delivered, from a shell: `holdfast outbox
 * emit|ls|failed|retry|discard|stats|cleanup|replay|sweep`. What delivers them is cmd_relay.c.
 */
#include "cli/outbox/outbox.h"

#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/frame/json.h"
#include "cli/frame/rows.h"
#include "cli/frame/when.h"

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
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define TABLE_SPEC OUTBOX_TABLE(struct settings), OUTBOX_BLOBS(struct settings)
#define LIMIT_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_NUMBER, .name = "limit", .value = "NUMBER", .max = UINT32_MAX,              \
        .text = "At most so many.", FIELD(limit)                                                   \
    }
#define TYPE_SPEC                                                                                  \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "type", .value = "TEXT",                                      \
        .text = "Only of this type; may end with *.", FIELD(type)                                  \
    }
#define ONLY_SPECS                                                                                 \
    TYPE_SPEC,                                                                                     \
        {.kind = OPTION_TEXT,                                                                      \
         .name = "key",                                                                            \
         .value = "TEXT",                                                                          \
         .text = "Only of this key.",                                                              \
         FIELD(key)},                                                                              \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "tenant", .value = "TEXT", .text = "Only of this tenant.",    \
        FIELD(tenant)                                                                              \
    }
#define CAUSE_SPEC                                                                                 \
    {                                                                                              \
        .kind = OPTION_TEXT, .name = "cause", .value = "TEXT",                                     \
        .text = "Only with this cause, as 'outbox stats' shows them.", FIELD(cause)                \
    }

/* Nobody has emitted anything yet: what is to be said is that of an empty outbox. */
static bool open_empty(struct cli *cli, const char *command, struct outbox_place *place, int *ends)
{
    hf__outbox_close(place);
    if (hf_open(cli->scope, HF_STR("memory:"), NULL, &place->db) == HF_OK &&
        hf_outbox_open(cli->scope, place->db, NULL, &place->outbox) == HF_OK)
        return true;
    *ends = hf__database_fail(cli, command);
    hf__outbox_close(place);
    return false;
}

bool hf__outbox_open(struct cli *cli, const char *command, const struct database_settings *settings,
                     struct hf_str blobs, const struct hf_outbox_options *options,
                     struct outbox_place *place, int *ends)
{
    struct hf_outbox_options with = *options;
    struct database_settings database = *settings;

    *place = (struct outbox_place){0};
    database.create = !options->no_create;
    database.maker = "outbox emit";
    if (!hf__database_open(cli, command, &database, &place->db, ends))
        return false;
    if (blobs.ptr && hf__cli_events_open_blobs(cli, &database, blobs, &place->blobs) != HF_OK) {
        *ends = hf__database_fail(cli, command);
    } else {
        with.blobs = place->blobs;
        if (hf__outbox_open_named(cli->scope, place->db, &with, &place->outbox) == HF_OK)
            return true;
        if (options->no_create && !database.absent_ok && !database.table_needed &&
            hf__database_nothing_yet(cli))
            return open_empty(cli, command, place, ends);
        *ends = hf__database_unopened(cli, command, &database);
    }
    hf__outbox_close(place);
    return false;
}

void hf__outbox_close(struct outbox_place *place)
{
    hf_outbox_close(place->outbox);
    hf_blobs_close(place->blobs);
    hf_db_close(place->db);
    *place = (struct outbox_place){0};
}

static bool open_outbox(struct cli *cli, const char *command, const struct settings *settings,
                        struct outbox_place *place, int *ends)
{
    return hf__outbox_open(cli, command, &settings->database, settings->blobs,
                           HF_OPTIONS(hf_outbox_options, .table = settings->table,
                                      .no_create = true),
                           place, ends);
}

/* ---- emit ----------------------------------------------------------------------------------- */

static const struct option_spec emit_specs[] = {
    {.heading = "The event",
     .kind = OPTION_TEXT,
     .letter = 'k',
     .name = "key",
     .value = "TEXT",
     .text = "Events with the same key are delivered in their order.",
     FIELD(key)},
    {.kind = OPTION_TEXT,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text = "The payload; - is standard input.",
     FIELD(file)},
    {.kind = OPTION_TEXT,
     .name = "id",
     .value = "TEXT",
     .text = "Its id, which is taken once; made when it is left out.",
     FIELD(id)},
    {.kind = OPTION_LIST,
     .letter = 'H',
     .name = "header",
     .value = "NAME=VALUE",
     .text = "A header; may be given several times.",
     FIELD(headers)},
    {.kind = OPTION_TEXT,
     .name = "time",
     .value = "TIME",
     .text = "When it happened, such as 2026-11-15T09:30:00Z, or how long ago, such as 15m; now by "
             "default.",
     FIELD(time)},
    {.kind = OPTION_DURATION,
     .name = "delay",
     .value = "TIME",
     .max = UINT32_MAX,
     .text = "Deliver it after so long, not at once.",
     FIELD(delay_ms)},
    {.kind = OPTION_FLAG,
     .name = "urgent",
     .text = "Deliver it before all that are not urgent, however many wait.",
     FIELD(urgent)},
    {.kind = OPTION_TEXT,
     .name = "content-type",
     .value = "TYPE",
     .fallback = "application/json",
     .text = "Of the payload. One that is not JSON is refused unless this says what it is.",
     FIELD(content_type)},
    {.kind = OPTION_TEXT,
     .name = "schema",
     .value = "TEXT",
     .text = "Which form the payload has.",
     FIELD(schema)},
    {.kind = OPTION_TEXT,
     .name = "source",
     .value = "TEXT",
     .fallback = "holdfast",
     .text = "Who emits it.",
     FIELD(source)},
    {.kind = OPTION_TEXT,
     .name = "aggregate",
     .value = "TEXT",
     .text = "The id of the thing it happened to.",
     FIELD(aggregate)},
    {.kind = OPTION_TEXT,
     .name = "aggregate-type",
     .value = "TEXT",
     .text = "What kind of thing that is.",
     FIELD(aggregate_type)},
    {.kind = OPTION_NUMBER,
     .name = "sequence",
     .value = "NUMBER",
     .max = UINT64_MAX,
     .text = "Its number among those of its key.",
     FIELD(sequence)},
    {.kind = OPTION_TEXT,
     .name = "correlation",
     .value = "ID",
     .text = "What it belongs to.",
     FIELD(correlation)},
    {.kind = OPTION_TEXT,
     .name = "causation",
     .value = "ID",
     .text = "What caused it.",
     FIELD(causation)},
    {.kind = OPTION_TEXT, .name = "tenant", .value = "TEXT", .text = "Whose it is.", FIELD(tenant)},
    {.kind = OPTION_TEXT,
     .name = "destination",
     .value = "TEXT",
     .text = "Where it is to go, for routes.",
     FIELD(destination)},
    {.kind = OPTION_TEXT,
     .name = "trace-parent",
     .value = "TEXT",
     .text = "W3C trace context.",
     FIELD(trace_parent)},
    {.heading = "The table",
     .kind = OPTION_TEXT,
     .name = "table",
     .value = "NAME",
     .fallback = "outbox",
     .text = "The table of the outbox, which is made when it is missing.",
     FIELD(table)},
    OUTBOX_BLOBS(struct settings),
    {.kind = OPTION_NUMBER,
     .name = "buckets",
     .value = "NUMBER",
     .max = HF_OUTBOX_BUCKETS_MAX,
     .text = "When the table is made: over how many buckets events are spread; 16 by default.",
     FIELD(buckets)},
    {.kind = OPTION_FLAG,
     .name = "stream",
     .text = "When the table is made: with a stream, to wake relays elsewhere.",
     FIELD(stream)},
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example emit_examples[] = {
    {"holdfast outbox emit order.placed '{\"id\":7}' --key 7", "An event of order 7."},
    {"holdfast outbox emit report.due --delay 1h", "One that is delivered in an hour."},
};

const struct options_table hf__outbox_emit_options = {
    .name = "outbox emit",
    .operands = "TYPE [PAYLOAD]",
    .about = "Store an event, to be delivered by a relay, and print its id.",
    .specs = emit_specs,
    .len = COMMAND_LEN(emit_specs),
    .examples = emit_examples,
    .examples_len = COMMAND_LEN(emit_examples),
    .notes = "An id that was emitted before changes nothing, and the exit code is 4.",
};

/* NAME=VALUE each. False: the error was shown. */
static bool read_headers(struct cli *cli, const struct settings *settings, struct hf_item *headers)
{
    struct hf_attr attrs[HEADERS_MAX];

    if (settings->headers.len > HEADERS_MAX) {
        hf__cli_fail(cli, "outbox emit", CLI_USAGE, "more than %d headers", HEADERS_MAX);
        return false;
    }
    for (size_t i = 0; i < settings->headers.len; i++) {
        struct hf_str text = settings->headers.values[i];
        const char *equals = memchr(text.ptr, '=', text.len);
        size_t len = equals ? (size_t)(equals - text.ptr) : 0;

        if (!len) {
            hf__cli_fail(cli, "outbox emit", CLI_USAGE, "--header %.*s: it is NAME=VALUE",
                         HF_FMT(text));
            return false;
        }
        attrs[i] = (struct hf_attr)HF_S("", hf_str_of(equals + 1, text.len - len - 1));
        attrs[i].name = hf_str_of(text.ptr, len);
    }
    *headers = settings->headers.len ? hf_item_make(cli->scope, attrs, settings->headers.len)
                                     : (struct hf_item){0};
    return true;
}

static int emit(struct cli *cli, const struct settings *settings, const struct hf_event *event)
{
    struct rows_field field;
    struct outbox_place place;
    struct hf_str id = {0};
    int ends;

    if (!hf__outbox_open(cli, "outbox emit", &settings->database, settings->blobs,
                         HF_OPTIONS(hf_outbox_options, .table = settings->table,
                                    .buckets = (uint32_t)settings->buckets,
                                    .stream = settings->stream),
                         &place, &ends))
        return ends;
    if (hf_outbox_emit(cli->scope, place.outbox, event, 1,
                       HF_OPTIONS(hf_emit_options, .ids = &id)) != HF_OK) {
        ends = hf__database_fail(cli, "outbox emit");
    } else {
        field = hf__rows_text("id", id);
        ends = hf__rows_one(cli, &settings->database, &field, 1);
    }
    hf__outbox_close(&place);
    return ends;
}

int hf__outbox_emit_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.all = false};
    struct hf_str payload = {0}, error = {0};
    struct options options;
    struct hf_event event;
    int ends;

    if (!hf__cli_operands(cli, &hf__outbox_emit_options, args_len, args, 1, 2, &settings, &options,
                          &ends))
        return ends;
    if (settings.file.ptr && options.operands_len == 2)
        return hf__cli_fail(cli, "outbox emit", CLI_USAGE,
                            "a payload and --file exclude each other");
    if (options.operands_len == 2)
        payload = hf_str_from(options.operands[1]);
    if (settings.file.ptr) {
        payload = hf__input_read(cli->scope, settings.file.ptr, PAYLOAD_MAX, &error);
        if (!payload.ptr)
            return hf__cli_fail(cli, "outbox emit", CLI_USAGE, "%.*s", HF_FMT(error));
    }
    event = (struct hf_event){
        .id = settings.id,
        .type = hf_str_from(options.operands[0]),
        .key = settings.key,
        .sequence = settings.sequence,
        .urgent = settings.urgent,
        .payload = hf_bytes_of(payload.ptr, payload.len),
        .content_type = settings.content_type,
        .schema = settings.schema,
        .source = settings.source,
        .correlation = settings.correlation,
        .causation = settings.causation,
        .aggregate = settings.aggregate,
        .aggregate_type = settings.aggregate_type,
        .tenant = settings.tenant,
        .destination = settings.destination,
        .trace_parent = settings.trace_parent,
    };
    if (settings.time.ptr && !hf__when(cli->scope, settings.time.ptr, &event.time_us))
        return hf__cli_fail(cli, "outbox emit", CLI_USAGE,
                            "--time %.*s: expected a time such as 2026-11-15T09:30:00Z, or how "
                            "long ago, such as 15m",
                            HF_FMT(settings.time));
    if (settings.delay_ms && settings.urgent)
        return hf__cli_fail(cli, "outbox emit", CLI_USAGE,
                            "--delay and --urgent exclude each other");
    if (settings.delay_ms) {
        const struct hf_env *env = hf_scope_env(cli->scope);

        event.due_us = env->wall_us(env->user) + (int64_t)settings.delay_ms * 1000;
    }
    if (!read_headers(cli, &settings, &event.headers) ||
        !hf__input_fits(cli, "outbox emit", settings.content_type, payload))
        return CLI_USAGE;
    return emit(cli, &settings, &event);
}

/* ---- ls, failed ----------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    {.heading = "Which events",
     .kind = OPTION_CHOICE,
     .letter = 's',
     .name = "state",
     .choices = "pending failed history",
     .fallback = "pending",
     .text = "Those that wait, those that were put aside, or those that were delivered as far as "
             "they are kept.",
     FIELD(state)},
    {.kind = OPTION_FLAG,
     .name = "later",
     .text = "Pending: also those that are due later, or wait to be tried again.",
     FIELD(later)},
    {.kind = OPTION_FLAG,
     .name = "oldest-first",
     .text = "Failed and history: newest first by default.",
     FIELD(oldest_first)},
    ONLY_SPECS,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast outbox ls", "What waits to be delivered now."},
    {"holdfast outbox ls --later --jsonl", "All that waits, with payloads."},
};

const struct options_table hf__outbox_ls_options = {
    .name = "outbox ls",
    .about = "List events: id, type, key, state, whether they are urgent, when they happened, "
             "attempts, the last error; with --json all of each.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

static const struct option_spec failed_specs[] = {
    CAUSE_SPEC,
    {.kind = OPTION_FLAG,
     .name = "oldest-first",
     .text = "Newest first by default.",
     FIELD(oldest_first)},
    ONLY_SPECS,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example failed_examples[] = {
    {"holdfast outbox failed", "What was put aside, and why."},
};

const struct options_table hf__outbox_failed_options = {
    .name = "outbox failed",
    .about = "List events that failed too often or for good. 'outbox retry' lets them be delivered "
             "again, 'outbox discard' deletes them.",
    .specs = failed_specs,
    .len = COMMAND_LEN(failed_specs),
    .examples = failed_examples,
    .examples_len = COMMAND_LEN(failed_examples),
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
        {.name = "cause", .kind = ROWS_JSON, .text = hf__json_of_text(cli->scope, stored->cause)},
        {.name = "blob", .kind = ROWS_JSON, .text = hf__json_of_text(cli->scope, stored->blob)},
        {.name = "blob_error",
         .kind = ROWS_JSON,
         .text =
             hf__json_of_text(cli->scope, stored->blob_error == HF_OK
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

static int list(struct cli *cli, const char *command, const struct settings *settings,
                struct hf_outbox *outbox)
{
    struct rows *rows = hf_scope_alloc(cli->scope, sizeof(*rows));
    struct hf_event_list_options o = {.size = sizeof(o),
                                      .not_due_too = settings->later,
                                      .oldest_first = settings->oldest_first,
                                      .type = settings->type,
                                      .key = settings->key,
                                      .tenant = settings->tenant,
                                      .cause = settings->cause,
                                      .no_payload =
                                          !settings->database.json && !settings->database.jsonl};
    struct hf_event_list page;
    int ends = CLI_OK;

    if (!rows)
        return hf__cli_fail(cli, command, CLI_FAILED, "out of memory");
    hf__rows_begin(rows, cli, &settings->database, "events");
    do {
        uint64_t left = settings->limit ? settings->limit - rows->count : PAGE;

        o.limit = (uint32_t)(left < PAGE ? left : PAGE);
        if (next_page(cli, settings, outbox, &o, &page) != HF_OK) {
            ends = hf__database_fail(cli, command);
            break;
        }
        for (size_t i = 0; i < page.events_len; i++)
            add_event(rows, cli, &page.events[i]);
        o.after = page.next;
    } while (o.after.ptr && (!settings->limit || rows->count < settings->limit) &&
             !ferror(cli->out));
    return hf__rows_end(rows, (struct hf_str){0}, ends);
}

static int open_and_list(struct cli *cli, const struct options_table *table, size_t args_len,
                         const char *const *args, struct settings *settings)
{
    struct outbox_place place;
    struct options options;
    int ends;

    if (!hf__cli_options(cli, table, args_len, args, settings, &options, &ends))
        return ends;
    settings->database.absent_ok = true;
    if (!open_outbox(cli, table->name, settings, &place, &ends))
        return hf__rows_none(cli, &settings->database, "events", ends);
    ends = list(cli, table->name, settings, place.outbox);
    hf__outbox_close(&place);
    return ends;
}

int hf__outbox_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.all = false};

    return open_and_list(cli, &hf__outbox_ls_options, args_len, args, &settings);
}

int hf__outbox_failed_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.state = LIST_FAILED};

    return open_and_list(cli, &hf__outbox_failed_options, args_len, args, &settings);
}

/* ---- retry, discard ------------------------------------------------------------------------- */

static const struct option_spec chosen_specs[] = {
    {.heading = "Which events",
     .kind = OPTION_FLAG,
     .name = "all",
     .text = "All that have failed, or all of a type, key, tenant or cause.",
     FIELD(all)},
    ONLY_SPECS,
    CAUSE_SPEC,
    LIMIT_SPEC,
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example retry_examples[] = {
    {"holdfast outbox retry --all", "After the reason is gone: deliver what was put aside."},
    {"holdfast outbox retry 01k3x5", "One of them."},
};

const struct options_table hf__outbox_retry_options = {
    .name = "outbox retry",
    .operands = "[ID...]",
    .about = "Let events that have failed be delivered again, as if they had never been tried; and "
             "those that wait to be tried again at once.",
    .specs = chosen_specs,
    .len = COMMAND_LEN(chosen_specs),
    .examples = retry_examples,
    .examples_len = COMMAND_LEN(retry_examples),
};

static const struct option_example discard_examples[] = {
    {"holdfast outbox discard --all --type test.ping", "Failed events of a type."},
};

const struct options_table hf__outbox_discard_options = {
    .name = "outbox discard",
    .operands = "[ID...]",
    .about = "Delete events that have failed, or by their ids also those that wait, for good.",
    .specs = chosen_specs,
    .len = COMMAND_LEN(chosen_specs),
    .examples = discard_examples,
    .examples_len = COMMAND_LEN(discard_examples),
};

typedef enum hf_status chosen_fn(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_str *ids, size_t len, uint64_t *done);
typedef enum hf_status all_fn(struct hf_scope *s, struct hf_outbox *outbox,
                              const struct hf_event_list_options *options, uint64_t *done);

static int for_chosen(struct cli *cli, const struct options_table *table, size_t args_len,
                      const char *const *args, chosen_fn *chosen, all_fn *all, const char *told)
{
    struct settings settings = {.all = false};
    struct outbox_place place;
    struct rows_field field;
    struct options options;
    enum hf_status status;
    struct hf_str *ids;
    uint64_t done = 0;
    int ends;

    if (!hf__cli_options(cli, table, args_len, args, &settings, &options, &ends))
        return ends;
    if ((options.operands_len > 0) == settings.all)
        return hf__cli_fail(cli, table->name, CLI_USAGE, "%s",
                            settings.all ? "ids and --all exclude each other"
                                         : "an id, or --all, is missing");
    if (!settings.all && (settings.type.ptr || settings.key.ptr || settings.tenant.ptr ||
                          settings.cause.ptr || settings.limit))
        return hf__cli_fail(cli, table->name, CLI_USAGE,
                            "--type, --key, --tenant, --cause and --limit go with --all, not with "
                            "ids");
    ids = hf_scope_alloc(cli->scope, (options.operands_len + 1) * sizeof(*ids));
    if (!ids)
        return hf__cli_fail(cli, table->name, CLI_FAILED, "out of memory");
    for (size_t i = 0; i < options.operands_len; i++)
        ids[i] = hf_str_from(options.operands[i]);
    if (!open_outbox(cli, table->name, &settings, &place, &ends))
        return ends;
    status = settings.all ? all(cli->scope, place.outbox,
                                HF_OPTIONS(hf_event_list_options, .limit = (uint32_t)settings.limit,
                                           .type = settings.type, .key = settings.key,
                                           .tenant = settings.tenant, .cause = settings.cause),
                                &done)
                          : chosen(cli->scope, place.outbox, ids, options.operands_len, &done);
    ends = status == HF_OK ? CLI_OK : hf__database_fail(cli, table->name);
    field = hf__rows_number(cli, told, done);
    if (status == HF_OK || done)
        hf__rows_one(cli, &settings.database, &field, 1);
    hf__outbox_close(&place);
    return hf__cli_flushed(cli, ends);
}

int hf__outbox_retry_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return for_chosen(cli, &hf__outbox_retry_options, args_len, args, hf_outbox_retry,
                      hf_outbox_retry_all, "waiting");
}

int hf__outbox_discard_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return for_chosen(cli, &hf__outbox_discard_options, args_len, args, hf_outbox_discard,
                      hf_outbox_discard_all, "discarded");
}

/* ---- stats ---------------------------------------------------------------------------------- */

static const struct option_spec stats_specs[] = {
    {.kind = OPTION_NUMBER,
     .name = "scan",
     .value = "NUMBER",
     .max = UINT32_MAX,
     .text = "Read at most so many events; all by default.",
     FIELD(scan)},
    ONLY_SPECS,
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example stats_examples[] = {
    {"holdfast outbox stats --json", "For a monitor: oldest_due_ms is how far relays are behind."},
    {"holdfast outbox stats --tenant acme", "Of one tenant."},
};

const struct options_table hf__outbox_stats_options = {
    .name = "outbox stats",
    .about = "How many events wait, have failed and were delivered, for how long the oldest ones "
             "do, and the causes of failures.",
    .specs = stats_specs,
    .len = COMMAND_LEN(stats_specs),
    .examples = stats_examples,
    .examples_len = COMMAND_LEN(stats_examples),
};

static struct hf_str causes_json(struct cli *cli, const struct hf_outbox_stats *stats)
{
    struct json_text text;
    FILE *out;

    if (!hf__json_text_begin(&text))
        return (struct hf_str){0};
    out = text.out;
    fputc('[', out);
    for (size_t i = 0; i < stats->causes_len; i++) {
        fprintf(out, "%s{\"count\":%llu,\"cause\":", i ? "," : "",
                (unsigned long long)stats->causes[i].count);
        hf__json_write_text(out, stats->causes[i].cause);
        fputs(",\"example\":", out);
        hf__json_write_text(out, stats->causes[i].example);
        fputc('}', out);
    }
    fputc(']', out);
    return hf__json_text_end(&text, cli->scope);
}

int hf__outbox_stats_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.all = false};
    struct hf_outbox_stats stats = {.whole = true};
    struct outbox_place place;
    struct options options;
    int ends;

    if (!hf__cli_options(cli, &hf__outbox_stats_options, args_len, args, &settings, &options,
                         &ends))
        return ends;
    settings.database.absent_ok = true;
    if (!open_outbox(cli, "outbox stats", &settings, &place, &ends) && ends != DATABASE_ABSENT)
        return ends;
    if (place.outbox &&
        hf_outbox_stats_of(cli->scope, place.outbox,
                           HF_OPTIONS(hf_event_list_options, .limit = (uint32_t)settings.scan,
                                      .type = settings.type, .key = settings.key,
                                      .tenant = settings.tenant),
                           &stats) != HF_OK) {
        ends = hf__database_fail(cli, "outbox stats");
    } else {
        struct rows_field fields[] = {hf__rows_number(cli, "pending", stats.pending),
                                      hf__rows_number(cli, "due", stats.due),
                                      hf__rows_number(cli, "scheduled", stats.scheduled),
                                      hf__rows_number(cli, "retrying", stats.retrying),
                                      hf__rows_number(cli, "urgent", stats.urgent),
                                      hf__rows_number(cli, "failed", stats.failed),
                                      hf__rows_number(cli, "published", stats.published),
                                      hf__rows_ms(cli, "oldest_due_ms", stats.oldest_due_ms),
                                      hf__rows_ms(cli, "oldest_failed_ms", stats.oldest_failed_ms),
                                      hf__rows_number(cli, "fullest_bucket", stats.fullest),
                                      hf__rows_number(cli, "unreadable", stats.unreadable),
                                      hf__rows_bool("whole", stats.whole),
                                      {.name = "causes",
                                       .kind = ROWS_RAW,
                                       .text = causes_json(cli, &stats)}};

        ends = hf__rows_one(cli, &settings.database, fields, COMMAND_LEN(fields));
    }
    hf__outbox_close(&place);
    return ends;
}

/* ---- cleanup, replay ------------------------------------------------------------------------ */

static const struct option_spec cleanup_specs[] = {
    {.kind = OPTION_DURATION,
     .name = "older",
     .value = "TIME",
     .max = UINT64_MAX / 1000,
     .fallback = "168h",
     .text = "Delivered longer ago than this.",
     FIELD(older_ms)},
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example cleanup_examples[] = {
    {"holdfast outbox cleanup --older 24h", "Keep a day of history."},
};

const struct options_table hf__outbox_cleanup_options = {
    .name = "outbox cleanup",
    .about = "Delete delivered events from the history. Nothing that waits or has failed.",
    .specs = cleanup_specs,
    .len = COMMAND_LEN(cleanup_specs),
    .examples = cleanup_examples,
    .examples_len = COMMAND_LEN(cleanup_examples),
};

int hf__outbox_cleanup_run(struct cli *cli, size_t args_len, const char *const *args)
{
    const struct hf_env *env = hf_scope_env(cli->scope);
    struct settings settings = {.all = false};
    struct outbox_place place;
    struct rows_field field;
    struct options options;
    uint64_t done = 0;
    int ends;

    if (!hf__cli_options(cli, &hf__outbox_cleanup_options, args_len, args, &settings, &options,
                         &ends) ||
        !open_outbox(cli, "outbox cleanup", &settings, &place, &ends))
        return ends;
    ends = CLI_OK;
    if (hf_outbox_cleanup(cli->scope, place.outbox,
                          env->wall_us(env->user) - (int64_t)settings.older_ms * 1000,
                          &done) != HF_OK)
        ends = hf__database_fail(cli, "outbox cleanup");
    field = hf__rows_number(cli, "deleted", done);
    if (ends == CLI_OK)
        ends = hf__rows_one(cli, &settings.database, &field, 1);
    hf__outbox_close(&place);
    return ends;
}

static const struct option_spec replay_specs[] = {
    ONLY_SPECS,
    LIMIT_SPEC,
    {.kind = OPTION_DURATION,
     .name = "newer",
     .value = "TIME",
     .max = UINT64_MAX / 1000,
     .text = "Delivered within this time; all of the history by default.",
     FIELD(older_ms)},
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example replay_examples[] = {
    {"holdfast outbox replay --newer 1h", "Deliver the last hour once more."},
};

const struct options_table hf__outbox_replay_options = {
    .name = "outbox replay",
    .about = "Let events of the history be delivered once more, with the ids they had.",
    .specs = replay_specs,
    .len = COMMAND_LEN(replay_specs),
    .examples = replay_examples,
    .examples_len = COMMAND_LEN(replay_examples),
};

int hf__outbox_replay_run(struct cli *cli, size_t args_len, const char *const *args)
{
    const struct hf_env *env = hf_scope_env(cli->scope);
    struct hf_event_list_options o = {.size = sizeof(o)};
    struct settings settings = {.all = false};
    struct outbox_place place;
    struct rows_field field;
    struct options options;
    uint64_t done = 0;
    int ends;

    if (!hf__cli_options(cli, &hf__outbox_replay_options, args_len, args, &settings, &options,
                         &ends) ||
        !open_outbox(cli, "outbox replay", &settings, &place, &ends))
        return ends;
    ends = CLI_OK;
    o.limit = (uint32_t)settings.limit;
    o.type = settings.type;
    o.key = settings.key;
    o.tenant = settings.tenant;
    if (settings.older_ms)
        o.from_us = env->wall_us(env->user) - (int64_t)settings.older_ms * 1000;
    if (hf_outbox_replay(cli->scope, place.outbox, &o, &done) != HF_OK)
        ends = hf__database_fail(cli, "outbox replay");
    field = hf__rows_number(cli, "waiting", done);
    if (ends == CLI_OK)
        ends = hf__rows_one(cli, &settings.database, &field, 1);
    hf__outbox_close(&place);
    return ends;
}

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    {.kind = OPTION_DURATION,
     .name = "older",
     .value = "TIME",
     .min = 1000,
     .max = (uint64_t)UINT32_MAX * 1000,
     .fallback = "24h",
     .text =
         "Nothing that is younger than this, as it may belong to an event that is being stored.",
     FIELD(older_ms)},
    TABLE_SPEC,
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
    DATABASE_SPECS(struct settings),
};

static const struct option_example sweep_examples[] = {
    {"holdfast outbox sweep --blobs s3://payloads", "Once a night, say."},
};

const struct options_table hf__outbox_sweep_options = {
    .name = "outbox sweep",
    .about = "Remove the payloads of the blob store that no event of the outbox has any more: it "
             "waits, has failed, or is in the history. The whole table is read.",
    .specs = sweep_specs,
    .len = COMMAND_LEN(sweep_specs),
    .examples = sweep_examples,
    .examples_len = COMMAND_LEN(sweep_examples),
};

int hf__outbox_sweep_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.all = false};
    struct outbox_place place;
    struct options options;
    uint64_t removed = 0;
    int ends;

    if (!hf__cli_options(cli, &hf__outbox_sweep_options, args_len, args, &settings, &options,
                         &ends))
        return ends;
    if (!settings.blobs.ptr)
        return hf__cli_fail(cli, "outbox sweep", CLI_USAGE, "--blobs is missing");
    settings.database.table_needed = true; /* an empty one would use none of the blobs */
    if (!open_outbox(cli, "outbox sweep", &settings, &place, &ends))
        return ends;
    hf_scope_timeout_ms(cli->scope, 0); /* it can be interrupted, and called again */
    if (hf_outbox_sweep_blobs(cli->scope, place.outbox, (uint32_t)(settings.older_ms / 1000),
                              &removed) != HF_OK) {
        ends = hf__database_fail(cli, "outbox sweep");
    } else {
        struct rows_field field = hf__rows_number(cli, "blobs", removed);

        ends = hf__rows_one(cli, &settings.database, &field, 1);
    }
    hf__outbox_close(&place);
    return ends;
}
