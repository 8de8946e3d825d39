/*
 * cli/events/cmd_events_streams.c: looking after the streams of an event store: `holdfast events
 * info|ls|truncate|limit|delete|archive|unarchive|sweep`.
 *
 * What goes through a whole stream or the whole store has no deadline once the store is open: it
 * can be interrupted at any moment and called again.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/confirm.h"

enum { SECOND_MS = 1000 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    uint64_t limit;
    uint64_t max_age_ms, max_count;
    uint64_t older_ms;
    struct hf_str expect;
    bool yes;
    struct hf_event_stream_key stream; /* the first operand */
    uint64_t version;                  /* truncate, delete */
    enum hf_expect expected;
};

#define OUTPUT_SPECS                                                                               \
    EVENTS_SPECS(struct settings), DATABASE_JSON(struct settings),                                 \
        DATABASE_QUIET(struct settings), DATABASE_SPECS(struct settings)

static const struct option_spec plain_specs[] = {OUTPUT_SPECS};

/* ---- one stream ----------------------------------------------------------------------------- */

/* Of commands about one stream, which is the first operand. */
static enum hf_status stream_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    return hf__cli_events_stream(c->cli, c->name, c->operands[0], &settings->stream)
               ? HF_OK
               : hf__command_shown(c, CLI_USAGE);
}

static struct hf_str hex_of(struct cli *cli, struct hf_bytes bytes)
{
    char *text = bytes.len ? hf_scope_alloc(cli->scope, 2 * bytes.len) : NULL;

    if (!text)
        return (struct hf_str){0};
    hex_write(text, bytes.ptr, bytes.len);
    return hf_str_of(text, 2 * bytes.len);
}

enum { INFO_LIMITS = 4, INFO_LIMITS_END = 8, INFO_FIELDS = 11 };

static void info_fields(struct cli *cli, struct hf_event_stream_key stream,
                        const struct hf_event_stream_info *info,
                        struct rows_field fields[INFO_FIELDS])
{
    const struct rows_field all[] = {
        hf__rows_text("stream", hf__cli_events_stream_text(cli->scope, stream)),
        hf__rows_number(cli, "version", info->version),
        hf__rows_number(cli, "first", info->first),
        hf__rows_text("position", info->position),
        hf__rows_number(cli, "max_age_s", info->max_age_s),
        hf__rows_number(cli, "max_count", info->max_count),
        hf__rows_bool("archived", info->archived),
        hf__rows_bool("deleted", info->deleted),
        {.name = "domain",
         .kind = ROWS_JSON,
         .text = hf__cli_json_of_text(cli->scope, stream.domain)},
        {.name = "id", .kind = ROWS_JSON, .text = hf__cli_json_of_text(cli->scope, stream.id)},
        {.name = "hash",
         .kind = ROWS_JSON,
         .text = info->hash.len ? hf__cli_json_of_text(cli->scope, hex_of(cli, info->hash))
                                : (struct hf_str){0}}};

    _Static_assert(COMMAND_LEN(all) == INFO_FIELDS, "each field has its place");
    memcpy(fields, all, sizeof(all));
    for (size_t i = INFO_LIMITS; i < INFO_LIMITS_END; i++)
        fields[i].sparse = true;
}

/* What the stream is like now: the answer of most commands here. */
static enum hf_status info_print(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct rows_field fields[INFO_FIELDS];
    struct hf_event_stream_info info;

    TRY(hf_events_stream_info(c->scope, c->place, settings->stream, &info));
    info_fields(c->cli, settings->stream, &info, fields);
    return hf__command_print(c, fields, INFO_FIELDS);
}

static const struct option_example info_examples[] = {
    {"holdfast events info order/7", "Its version, limits and state."},
};

const struct options_table hf__events_info_options = {
    .name = "events info",
    .operands = "STREAM",
    .about = "Print the state of a stream: its version, the first version that can be read, the "
             "position of its last event, its limits, whether it is archived or deleted.",
    COMMAND_SPECS_OF(plain, info),
};

COMMAND_OF(events_info, info_print, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = stream_check);

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    OPT_NUMBER("limit", limit, 0, UINT32_MAX, "At most this many."),
    EVENTS_SPECS(struct settings),
    DATABASE_LIST(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast events ls order", "The streams of a domain."},
};

const struct options_table hf__events_ls_options = {
    .name = "events ls",
    .operands = "[DOMAIN]",
    .about = "List the streams of a domain, or all, in no particular order: stream, version, the "
             "first version that can be read, the position of the last event, limits, archived, "
             "deleted. Reads the whole table.",
    COMMAND_SPECS(ls),
};

static enum hf_status stream_add(struct hf_scope *s, struct hf_event_stream_key stream,
                                 const struct hf_event_stream_info *info, void *user)
{
    struct command_ctx *c = user;
    const struct settings *settings = c->settings;
    struct rows_field fields[INFO_FIELDS];
    struct hf_scope_mark mark = hf_scope_mark(c->scope);

    if ((settings->limit && c->rows->count == settings->limit) || ferror(c->cli->out))
        return HF_CANCELED;
    info_fields(c->cli, stream, info, fields);
    hf__rows_add(c->rows, fields, INFO_FIELDS);
    hf_scope_rewind(c->scope, mark);
    hf_scope_timeout_ms(s, (uint32_t)c->database->timeout_ms);
    return HF_OK;
}

static enum hf_status streams_list(struct command_ctx *c)
{
    enum hf_status status;

    (void)hf__command_rows(c, "streams");
    status = hf_events_streams(c->scope, c->place, hf__command_operand(c, 0), stream_add, c);
    return status == HF_CANCELED ? HF_OK : status;
}

COMMAND_OF(events_ls, streams_list, EVENTS_SETTINGS(struct settings), .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_LOOKS, .list = "streams");

/* ---- truncate ------------------------------------------------------------------------------- */

static const struct option_example truncate_examples[] = {
    {"holdfast events truncate order/7 100", "Hide versions 1 to 99."},
};

const struct options_table hf__events_truncate_options = {
    .name = "events truncate",
    .operands = "STREAM VERSION",
    .about =
        "Hide the events of a stream before this version. This cannot be undone; 'events sweep' "
        "deletes them.",
    COMMAND_SPECS_OF(plain, truncate),
};

static enum hf_status truncate_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    TRY(stream_check(c));
    if (hf__options_number(c->operands[1], &settings->version) && settings->version != 0)
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "'%s' is not a version (a number)", c->operands[1]);
}

static enum hf_status stream_truncate(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    TRY(hf_events_truncate(c->scope, c->place, settings->stream, settings->version));
    return info_print(c);
}

COMMAND_OF(events_truncate, stream_truncate, EVENTS_SETTINGS(struct settings), .min = 2, .max = 2,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = truncate_check);

/* ---- limit ---------------------------------------------------------------------------------- */

static const struct option_spec limit_specs[] = {
    OPT_TIME("max-age", max_age_ms, 0, (uint64_t)UINT32_MAX *SECOND_MS,
             "Hide events older than this; 0: no limit.", .heading = "Limits"),
    OPT_NUMBER("max-count", max_count, 0, UINT64_MAX,
               "Keep only this many events, the newest; 0: no limit."),
    OUTPUT_SPECS,
};

static const struct option_example limit_examples[] = {
    {"holdfast events limit meter/kitchen --max-age 720h --max-count 10000",
     "Keep a month, and no more than 10000."},
};

const struct options_table hf__events_limit_options = {
    .name = "events limit",
    .operands = "STREAM",
    .about = "Limit a stream by age or by number of events, also for future events. 'events sweep' "
             "deletes what is beyond the limits. A limit that you do not give stays as it is.",
    COMMAND_SPECS(limit),
};

static bool is_given(const struct command_ctx *c, const char *option)
{
    return hf__options_source(c->table, &c->options, option) == OPTION_GIVEN;
}

static enum hf_status limit_check(struct command_ctx *c)
{
    TRY(stream_check(c));
    if (is_given(c, "max-age") || is_given(c, "max-count"))
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "missing option: give --max-age or --max-count");
}

static enum hf_status stream_limit(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    uint32_t max_age_s = (uint32_t)((settings->max_age_ms + SECOND_MS - 1) / SECOND_MS);
    struct hf_event_stream_info info;

    TRY(hf_events_stream_info(c->scope, c->place, settings->stream, &info));
    TRY(hf_events_limit_stream(c->scope, c->place, settings->stream,
                               is_given(c, "max-age") ? max_age_s : info.max_age_s,
                               is_given(c, "max-count") ? settings->max_count : info.max_count));
    return info_print(c);
}

COMMAND_OF(events_limit, stream_limit, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = limit_check);

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    OPT_FLAG("yes", yes,
             "Do not ask. Where there is no terminal to ask on, nothing is deleted without it.",
             .letter = 'y'),
    OPT_TEXT("expect", "WHAT", expect,
             "Only if the stream is as expected: any, none, exists, or its version. Otherwise the "
             "exit code is 4.",
             .letter = 'e', .fallback = "any"),
    OUTPUT_SPECS,
};

static const struct option_example delete_examples[] = {
    {"holdfast events delete order/7 --yes",
     "Without --yes a terminal asks, and a script is refused."},
};

const struct options_table hf__events_delete_options = {
    .name = "events delete",
    .operands = "STREAM",
    .about =
        "Delete a stream permanently: its events cannot be read, and nothing can be appended to "
        "it ever again. 'events sweep' deletes its events.",
    COMMAND_SPECS(delete),
};

static enum hf_status delete_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    TRY(stream_check(c));
    if (!hf__cli_events_expect(c->cli, c->name, settings->expect, &settings->expected,
                               &settings->version))
        return hf__command_shown(c, CLI_USAGE);
    return hf__command_confirm_now(c, settings->yes, "deletes stream '%s' permanently",
                                   c->operands[0]);
}

static enum hf_status stream_delete(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    TRY(hf_events_tombstone(c->scope, c->place, settings->stream, settings->expected,
                            settings->version));
    return info_print(c);
}

/* It needs the table: what is deleted stays so. */
COMMAND_OF(events_delete, stream_delete, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_NEEDS, .check = delete_check);

/* ---- archive, unarchive --------------------------------------------------------------------- */

static const struct option_example archive_examples[] = {
    {"holdfast events archive order/7", "Readers of all streams skip it from now on."},
};

const struct options_table hf__events_archive_options = {
    .name = "events archive",
    .operands = "STREAM",
    .about =
        "Remove a stream from the global order; 'events all --archived' and 'events read' still "
        "print it. While it is archived nothing can be appended to it. After a failure, run it "
        "again.",
    COMMAND_SPECS_OF(plain, archive),
};

static const struct option_example unarchive_examples[] = {
    {"holdfast events unarchive order/7", "Each event is back at its old position."},
};

const struct options_table hf__events_unarchive_options = {
    .name = "events unarchive",
    .operands = "STREAM",
    .about = "Put an archived stream back into the global order, at its old positions.",
    COMMAND_SPECS_OF(plain, unarchive),
};

static enum hf_status stream_archive(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    hf_scope_timeout_ms(c->scope, 0);
    TRY(hf_events_archive(c->scope, c->place, settings->stream));
    return info_print(c);
}

COMMAND_OF(events_archive, stream_archive, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = stream_check);

static enum hf_status stream_unarchive(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    hf_scope_timeout_ms(c->scope, 0);
    TRY(hf_events_unarchive(c->scope, c->place, settings->stream));
    return info_print(c);
}

COMMAND_OF(events_unarchive, stream_unarchive, EVENTS_SETTINGS(struct settings), .min = 1, .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = stream_check);

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    OPT_TIME("older", older_ms, SECOND_MS, (uint64_t)UINT32_MAX *SECOND_MS,
             "Keep data younger than this: it may belong to an append in progress.",
             .fallback = "24h"),
    OUTPUT_SPECS,
};

static const struct option_example sweep_examples[] = {
    {"holdfast events sweep", "Run it once a night, for example."},
};

const struct options_table hf__events_sweep_options = {
    .name = "events sweep",
    .about =
        "Delete data that nobody can read: events that were truncated, are beyond a limit or "
        "belong to deleted streams, leftovers of appends that did not complete, and blobs that "
        "no event references. Other processes can go on working.",
    COMMAND_SPECS(sweep),
};

static enum hf_status events_sweep(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_events_swept swept;

    hf_scope_timeout_ms(c->scope, 0);
    TRY(hf_events_sweep(c->scope, c->place, (uint32_t)(settings->older_ms / SECOND_MS), &swept));
    return COMMAND_PRINT(c, hf__rows_number(c->cli, "events", swept.events),
                         hf__rows_number(c->cli, "aside", swept.aside),
                         hf__rows_number(c->cli, "blobs", swept.blobs));
}

COMMAND_OF(events_sweep, events_sweep, EVENTS_SETTINGS(struct settings),
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY);
