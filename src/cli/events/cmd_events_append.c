/*
 * cli/events/cmd_events_append.c: `holdfast events append`: one event from the command line, or many from
 * lines of JSON, which may belong to several streams: all or nothing.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/events/events_line.h"
#include "cli/frame/commands.h"
#include "cli/frame/input.h"
#include "cli/frame/json.h"

enum { INPUT_MAX = 256 * 1024 * 1024, META_MAX = 64 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct hf_str expect, file, lines;
    struct hf_str id, content_type, time, cause, correlation, compensates;
    struct option_list meta;
    uint64_t schema;
    uint64_t shards;
    uint64_t blob_bytes;
    bool no_chain;
    struct batch *batch; /* what is to be appended */
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define COMMAND "events append"

static const struct option_spec specs[] = {
    {.heading = "The stream",
     .kind = OPTION_TEXT,
     .letter = 'e',
     .name = "expect",
     .value = "WHAT",
     .fallback = "any",
     .text = "Append only if the stream is as expected: any; none, it has had no event; exists, it "
             "has had some; or a version, that of its last event. Otherwise the exit code is 4.",
     FIELD(expect)},
    {.heading = "The event",
     .kind = OPTION_TEXT,
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
    {.kind = OPTION_TEXT,
     .name = "content-type",
     .value = "TYPE",
     .fallback = "application/json",
     .text = "Of the payload. One that is not JSON is refused unless this says what it is.",
     FIELD(content_type)},
    {.kind = OPTION_NUMBER,
     .name = "schema",
     .value = "NUMBER",
     .min = 1,
     .max = UINT32_MAX,
     .fallback = "1",
     .text = "Which version of its form the payload has.",
     FIELD(schema)},
    {.kind = OPTION_TEXT,
     .name = "time",
     .value = "WHEN",
     .text = "When it happened: a time such as 2026-11-15T09:30:00Z, or how long ago; now by "
             "default.",
     FIELD(time)},
    {.kind = OPTION_LIST,
     .letter = 'm',
     .name = "meta",
     .value = "NAME=VALUE",
     .text = "Whatever else; may be given several times.",
     FIELD(meta)},
    {.kind = OPTION_TEXT,
     .name = "compensates",
     .value = "ID",
     .text = "The event that it takes back.",
     FIELD(compensates)},
    {.heading = "Many events",
     .kind = OPTION_TEXT,
     .letter = 'l',
     .name = "lines",
     .value = "FILE",
     .text = "Append the events of a file, a JSON object per line, all or nothing; - is standard "
             "input.",
     FIELD(lines)},
    {.heading = "Where they come from",
     .kind = OPTION_TEXT,
     .letter = 'c',
     .name = "cause",
     .value = "ID",
     .text = "The event that led to them, which has to be there; they have its correlation, too.",
     FIELD(cause)},
    {.kind = OPTION_TEXT,
     .name = "correlation",
     .value = "ID",
     .text = "What they belong to; by default that of the cause, else each its own id.",
     FIELD(correlation)},
    EVENTS_SPECS(struct settings),
    {.kind = OPTION_SIZE,
     .name = "blob-bytes",
     .value = "SIZE",
     .max = HF_EVENTS_BLOB_BYTES,
     .text =
         "Payloads of events that would be larger than this go to the blob store; 350 KB, which "
         "is the most, by default.",
     FIELD(blob_bytes)},
    {.kind = OPTION_NUMBER,
     .name = "shards",
     .value = "NUMBER",
     .max = HF_EVENTS_SHARDS_MAX,
     .text = "When the table is made: over how many parts the order of all is spread; 4 by "
             "default.",
     FIELD(shards)},
    {.kind = OPTION_FLAG,
     .name = "no-chain",
     .text = "When the table is made: without the chain of hashes that 'events verify' needs.",
     FIELD(no_chain)},
    DATABASE_ONE(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast events append order/7 placed '{\"pieces\":2}' --expect none",
     "The first event of a stream; nothing if it has one."},
    {"holdfast events append order/7 paid -f - --expect 1 < paid.json",
     "Only if nobody has appended meanwhile."},
    {"holdfast events append order/7 --lines events.jsonl",
     "Many: {\"type\":\"paid\",\"payload\":{...}} per line."},
};

const struct options_table hf__events_append_options = {
    .name = COMMAND,
    .operands = "STREAM TYPE [PAYLOAD]",
    .about =
        "Append an event to a stream, and print its id, version and position. A stream is "
        "DOMAIN/ID; a '/' in the domain is written %2F. The table is made when it is "
        "missing.\n\n"
        "With --lines there is no TYPE. A line is one of 'events export' of which all but "
        "\"type\" can be left out: \"payload\" (any JSON, stored as it is written) or "
        "\"payload_base64\", \"id\", \"content_type\", \"schema\", \"time\", \"meta\" (in "
        "DynamoDB's JSON), \"causation\", \"correlation\", \"compensates\", and \"domain\" and "
        "\"stream\" for another stream than STREAM, which is not needed then. --expect "
        "holds for each stream.",
    .specs = specs,
    .len = COMMAND_LEN(specs),
    .examples = examples,
    .examples_len = COMMAND_LEN(examples),
    .notes = "Appending an event again that is there, by its id, changes nothing and succeeds; an "
             "id that another event has is exit code 4. So is a stream that was deleted.",
};

/* ---- what is appended ----------------------------------------------------------------------- */

/* The events of each stream. */
struct batch {
    struct hf_append appends[HF_EVENTS_STREAMS_MAX];
    struct hf_new_event *events[HF_EVENTS_STREAMS_MAX]; /* of each; the same as in it */
    struct hf_appended appended[HF_EVENTS_STREAMS_MAX];
    size_t len;
};

/* NAME=VALUE each. False: the error was shown. */
static bool read_meta(struct cli *cli, const struct settings *settings, struct hf_item *meta)
{
    struct hf_attr attrs[META_MAX];

    if (settings->meta.len > META_MAX) {
        hf__cli_fail(cli, COMMAND, CLI_USAGE, "more than %d of --meta", META_MAX);
        return false;
    }
    for (size_t i = 0; i < settings->meta.len; i++) {
        struct hf_str text = settings->meta.values[i];
        const char *equals = memchr(text.ptr, '=', text.len);
        size_t len = equals ? (size_t)(equals - text.ptr) : 0;

        if (!len) {
            hf__cli_fail(cli, COMMAND, CLI_USAGE, "--meta %.*s: it is NAME=VALUE", HF_FMT(text));
            return false;
        }
        attrs[i] = (struct hf_attr)HF_S("", hf_str_of(equals + 1, text.len - len - 1));
        attrs[i].name = hf_str_of(text.ptr, len);
    }
    if (settings->meta.len)
        *meta = hf_item_make(cli->scope, attrs, settings->meta.len);
    return true;
}

static bool same_stream(struct hf_stream_key a, struct hf_stream_key b)
{
    return hf_str_equal(a.domain, b.domain) && hf_str_equal(a.id, b.id);
}

/* Put an event behind those of its stream. False: the error was shown. */
static bool batch_add_event(struct cli *cli, const struct settings *settings, struct batch *batch,
                            struct hf_stream_key stream, const struct hf_new_event *event,
                            size_t events_max)
{
    struct hf_append *append = batch->appends;

    while (append < batch->appends + batch->len && !same_stream(append->stream, stream))
        append++;
    if (append == batch->appends + batch->len) {
        struct hf_new_event *events =
            hf_scope_alloc(cli->scope, events_max * sizeof(struct hf_new_event));

        if (batch->len == HF_EVENTS_STREAMS_MAX || !events) {
            hf__cli_fail(cli, COMMAND, CLI_USAGE, "%s",
                         events ? "the events are of more streams than one append can have"
                                : "out of memory");
            return false;
        }
        *append = (struct hf_append){.stream = stream, .events = events};
        if (!hf__cli_events_expect(cli, COMMAND, settings->expect, &append->expect,
                                   &append->version))
            return false;
        batch->events[batch->len++] = events;
    }
    batch->events[append - batch->appends][append->events_len++] = *event;
    return true;
}

static bool add_lines(struct cli *cli, const struct settings *settings, const char *name,
                      struct batch *batch)
{
    struct hf_stream_key stream = {.domain = {0}};
    struct hf_str error = {0};
    struct events_line *lines;
    struct hf_str text;
    size_t len;

    if (name && !hf__cli_events_stream(cli, COMMAND, name, &stream))
        return false;
    text = hf__input_read(cli->scope, settings->lines.ptr, INPUT_MAX, &error);
    if (!text.ptr || !hf__cli_events_lines(cli->scope, text, stream, &lines, &len, &error)) {
        hf__cli_fail(cli, COMMAND, CLI_USAGE, "%.*s", HF_FMT(error));
        return false;
    }
    if (!len)
        hf__cli_fail(cli, COMMAND, CLI_USAGE, "%s has no events", settings->lines.ptr);
    for (size_t i = 0; i < len; i++) {
        if (!lines[i].event.correlation.ptr)
            lines[i].event.correlation = settings->correlation;
        if (!batch_add_event(cli, settings, batch, lines[i].stream, &lines[i].event, len))
            return false;
    }
    return len > 0;
}

static bool add_one(struct cli *cli, const struct settings *settings, const struct options *options,
                    struct batch *batch)
{
    struct hf_str payload = {0}, error = {0};
    struct hf_new_event event = {.id = settings->id,
                                 .type = hf_str_from(options->operands[1]),
                                 .content_type = settings->content_type,
                                 .schema = (uint32_t)settings->schema,
                                 .correlation = settings->correlation,
                                 .compensates = settings->compensates};
    struct hf_stream_key stream;

    if (options->operands_len == 3)
        payload = hf_str_from(options->operands[2]);
    if (settings->file.ptr) {
        payload = hf__input_read(cli->scope, settings->file.ptr, INPUT_MAX, &error);
        if (!payload.ptr) {
            hf__cli_fail(cli, COMMAND, CLI_USAGE, "%.*s", HF_FMT(error));
            return false;
        }
    }
    event.payload = hf_bytes_of(payload.ptr, payload.len);
    if (!hf__input_fits(cli, COMMAND, settings->content_type, payload) ||
        !hf__cli_events_when(cli, COMMAND, "--time", settings->time, &event.time_us) ||
        !read_meta(cli, settings, &event.meta))
        return false;
    return hf__cli_events_stream(cli, COMMAND, options->operands[0], &stream) &&
           batch_add_event(cli, settings, batch, stream, &event, 1);
}

/* ---- the run -------------------------------------------------------------------------------- */

static struct hf_str ids_json(struct cli *cli, const struct hf_str *ids, size_t len)
{
    struct json_text text;

    if (!hf__cli_json_text_begin(&text))
        return (struct hf_str){0};
    fputc('[', text.out);
    for (size_t i = 0; i < len; i++) {
        if (i)
            fputc(',', text.out);
        hf__cli_json_write_text(text.out, ids[i]);
    }
    fputc(']', text.out);
    return hf__cli_json_text_end(&text, cli->scope);
}

static enum hf_status batch_print(struct command_ctx *c, const struct batch *batch)
{
    struct rows *rows = batch->len > 1 ? hf__command_rows(c, "appended") : NULL;
    struct cli *cli = c->cli;

    for (size_t i = 0; i < batch->len; i++) {
        const struct hf_append *append = &batch->appends[i];
        const struct hf_appended *appended = &batch->appended[i];
        struct rows_field fields[] = {
            hf__rows_text("stream", hf__cli_events_stream_text(cli->scope, append->stream)),
            hf__rows_number(cli, "first", appended->first),
            hf__rows_number(cli, "version", appended->last),
            hf__rows_text("position", appended->position),
            hf__rows_bool("repeated", appended->repeated),
            {.name = "ids",
             .kind = ROWS_RAW,
             .text = ids_json(cli, appended->ids, append->events_len)}};

        if (!rows)
            return hf__command_print(c, fields, COMMAND_LEN(fields));
        hf__rows_add(rows, fields, COMMAND_LEN(fields));
    }
    return HF_OK;
}

static enum hf_status events_append(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_append_options options = {.size = sizeof(options)};
    struct batch *batch = settings->batch;
    struct hf_stored_event cause;

    if (settings->cause.ptr) {
        TRY(hf_events_get(c->scope, c->place, settings->cause, &cause));
        options.parent = &cause;
    }
    TRY(hf_events_append(c->scope, c->place, batch->appends, batch->len, &options,
                         batch->appended));
    return batch_print(c, batch);
}

/* What excludes each other. NULL: nothing. */
static const char *find_conflict(const struct settings *settings, const struct options *options)
{
    if (settings->lines.ptr && options->operands_len > 1)
        return "TYPE and --lines exclude each other";
    if (settings->lines.ptr && (settings->file.ptr || settings->id.ptr || settings->time.ptr ||
                                settings->meta.len || settings->compensates.ptr))
        return "--file, --id, --time, --meta and --compensates are of one event: with --lines they "
               "stand in the lines";
    if (!settings->lines.ptr && options->operands_len < 2)
        return "an argument is missing: holdfast events append STREAM TYPE [PAYLOAD]";
    if (settings->file.ptr && options->operands_len == 3)
        return "a payload and --file exclude each other";
    return NULL;
}

static enum hf_status append_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    const char *wrong = find_conflict(settings, &c->options);
    struct batch *batch;

    if (wrong)
        return hf__command_fail(c, CLI_USAGE, "%s", wrong);
    batch = hf_scope_alloc(c->scope, sizeof(*batch));
    if (!batch)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    memset(batch, 0, sizeof(*batch));
    settings->batch = batch;
    return (settings->lines.ptr
                ? add_lines(c->cli, settings, c->operands_len ? c->operands[0] : NULL, batch)
                : add_one(c->cli, settings, &c->options, batch))
               ? HF_OK
               : hf__command_shown(c, CLI_USAGE);
}

static enum hf_status append_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__cli_events_place_open(c, HF_OPTIONS(hf_events_options,
                                                   .shards = (uint32_t)settings->shards,
                                                   .blob_bytes = (uint32_t)settings->blob_bytes,
                                                   .no_chain = settings->no_chain));
}

static const struct command_place append_place = {append_open, hf__cli_events_place_close,
                                                  "events append"};

const struct command hf__events_append_command = {EVENTS_SETTINGS(struct settings),
                                                  .max = 3,
                                                  .place = &append_place,
                                                  .table = COMMAND_MAKES,
                                                  .check = append_check,
                                                  .body = events_append};
