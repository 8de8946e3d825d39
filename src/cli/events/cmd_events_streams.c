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
#include "cli/frame/json.h"

enum { SECOND_MS = 1000 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    uint64_t limit;
    uint64_t max_age_ms, max_count;
    uint64_t older_ms;
    struct hf_str expect;
    bool yes;
};

#define FIELD(member) .offset = offsetof(struct settings, member)
#define OUTPUT_SPECS                                                                               \
    EVENTS_SPECS(struct settings), DATABASE_JSON(struct settings),                                 \
        DATABASE_QUIET(struct settings), DATABASE_SPECS(struct settings)

static const struct option_spec plain_specs[] = {OUTPUT_SPECS};

/* ---- one stream ----------------------------------------------------------------------------- */

/* A command about one stream, which is its first operand. */
struct about {
    struct cli *cli;
    const char *command;
    struct settings settings;
    struct options options;
    struct hf_stream_key stream;
    struct events_place place;
};

/* Read the arguments and open the store. False: *ends says how to end. */
static bool begin(struct about *a, struct cli *cli, const struct options_table *table,
                  size_t args_len, const char *const *args, size_t operands, int *ends)
{
    *a = (struct about){.cli = cli, .command = table->name};
    if (!hf__cli_operands(cli, table, args_len, args, operands, operands, &a->settings, &a->options,
                          ends))
        return false;
    *ends = CLI_USAGE;
    return hf__cli_events_stream(cli, table->name, a->options.operands[0], &a->stream);
}

static bool open_store(struct about *a, int *ends)
{
    return hf__cli_events_open(a->cli, a->command, &a->settings.database, &a->settings.store, NULL,
                               &a->place, ends);
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

static void info_fields(struct cli *cli, struct hf_stream_key stream,
                        const struct hf_stream_info *info, struct rows_field fields[INFO_FIELDS])
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
        {.name = "domain", .kind = ROWS_JSON, .text = hf__json_of_text(cli->scope, stream.domain)},
        {.name = "id", .kind = ROWS_JSON, .text = hf__json_of_text(cli->scope, stream.id)},
        {.name = "hash",
         .kind = ROWS_JSON,
         .text = info->hash.len ? hf__json_of_text(cli->scope, hex_of(cli, info->hash))
                                : (struct hf_str){0}}};

    _Static_assert(COMMAND_LEN(all) == INFO_FIELDS, "each field has its place");
    memcpy(fields, all, sizeof(all));
    for (size_t i = INFO_LIMITS; i < INFO_LIMITS_END; i++)
        fields[i].sparse = true;
}

/* What the stream is like now: the answer of most commands here. */
static int tell_info(struct about *a)
{
    struct rows_field fields[INFO_FIELDS];
    struct hf_stream_info info;

    if (hf_events_stream_info(a->cli->scope, a->place.store, a->stream, &info) != HF_OK)
        return hf__database_fail(a->cli, a->command);
    info_fields(a->cli, a->stream, &info, fields);
    return hf__rows_one(a->cli, &a->settings.database, fields, INFO_FIELDS);
}

static const struct option_example info_examples[] = {
    {"holdfast events info order/7", "Its version, and what was said about it."},
};

const struct options_table hf__events_info_options = {
    .name = "events info",
    .operands = "STREAM",
    .about = "Print what a stream is like: its version, the first version that is read, the "
             "position of its last event, its limits, whether it is archived or deleted.",
    .specs = plain_specs,
    .len = COMMAND_LEN(plain_specs),
    .examples = info_examples,
    .examples_len = COMMAND_LEN(info_examples),
};

int hf__events_info_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_info_options, args_len, args, 1, &ends) ||
        !open_store(&a, &ends))
        return ends;
    ends = tell_info(&a);
    hf__cli_events_close(&a.place);
    return ends;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
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

static const struct option_example ls_examples[] = {
    {"holdfast events ls order", "The streams of a domain."},
};

const struct options_table hf__events_ls_options = {
    .name = "events ls",
    .operands = "[DOMAIN]",
    .about = "List streams, of a domain or all, in no order: stream, version, the first version "
             "that is read, the position of the last event, limits, archived, deleted. The whole "
             "table is read.",
    .specs = ls_specs,
    .len = COMMAND_LEN(ls_specs),
    .examples = ls_examples,
    .examples_len = COMMAND_LEN(ls_examples),
};

struct listing {
    struct cli *cli;
    const struct settings *settings;
    struct rows *rows;
};

static enum hf_status add_stream(struct hf_scope *s, struct hf_stream_key stream,
                                 const struct hf_stream_info *info, void *user)
{
    struct listing *l = user;
    struct rows_field fields[INFO_FIELDS];
    struct hf_scope_mark mark = hf_scope_mark(l->cli->scope);

    if ((l->settings->limit && l->rows->count == l->settings->limit) || ferror(l->cli->out))
        return HF_CANCELED;
    info_fields(l->cli, stream, info, fields);
    hf__rows_add(l->rows, fields, INFO_FIELDS);
    hf_scope_rewind(l->cli->scope, mark);
    hf_scope_timeout_ms(s, (uint32_t)l->settings->database.timeout_ms);
    return HF_OK;
}

int hf__events_ls_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct listing l = {.cli = cli, .settings = &settings};
    struct events_place place;
    struct options options;
    struct hf_str domain;
    enum hf_status status;
    int ends;

    if (!hf__cli_operands(cli, &hf__events_ls_options, args_len, args, 0, 1, &settings, &options,
                          &ends))
        return ends;
    domain = hf_str_from(options.operands_len ? options.operands[0] : NULL);
    l.rows = hf_scope_alloc(cli->scope, sizeof(*l.rows));
    if (!l.rows)
        return hf__cli_fail(cli, "events ls", CLI_FAILED, "out of memory");
    settings.database.absent_ok = true;
    if (!hf__cli_events_open(cli, "events ls", &settings.database, &settings.store, NULL, &place,
                             &ends))
        return hf__rows_none(cli, &settings.database, "streams", ends);
    hf__rows_begin(l.rows, cli, &settings.database, "streams");
    status = hf_events_streams(cli->scope, place.store, domain, add_stream, &l);
    ends = status == HF_OK || status == HF_CANCELED ? (int)CLI_OK
                                                    : hf__database_fail(cli, "events ls");
    ends = hf__rows_end(l.rows, (struct hf_str){0}, ends);
    hf__cli_events_close(&place);
    return ends;
}

/* ---- truncate ------------------------------------------------------------------------------- */

static const struct option_example truncate_examples[] = {
    {"holdfast events truncate order/7 100", "Versions 1 to 99 are not read any more."},
};

const struct options_table hf__events_truncate_options = {
    .name = "events truncate",
    .operands = "STREAM VERSION",
    .about = "Do not read the events of a stream before this version any more, which cannot be "
             "taken back; 'events sweep' removes them.",
    .specs = plain_specs,
    .len = COMMAND_LEN(plain_specs),
    .examples = truncate_examples,
    .examples_len = COMMAND_LEN(truncate_examples),
};

int hf__events_truncate_run(struct cli *cli, size_t args_len, const char *const *args)
{
    uint64_t version;
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_truncate_options, args_len, args, 2, &ends))
        return ends;
    if (!hf__options_number(a.options.operands[1], &version) || version == 0)
        return hf__cli_fail(cli, a.command, CLI_USAGE, "'%s' is no version", a.options.operands[1]);
    if (!open_store(&a, &ends))
        return ends;
    if (hf_events_truncate(cli->scope, a.place.store, a.stream, version) != HF_OK)
        ends = hf__database_fail(cli, a.command);
    else
        ends = tell_info(&a);
    hf__cli_events_close(&a.place);
    return ends;
}

/* ---- limit ---------------------------------------------------------------------------------- */

static const struct option_spec limit_specs[] = {
    {.heading = "Limits",
     .kind = OPTION_DURATION,
     .name = "max-age",
     .value = "TIME",
     .max = (uint64_t)UINT32_MAX * SECOND_MS,
     .text = "Events that are older are not read any more; 0: none is too old.",
     FIELD(max_age_ms)},
    {.kind = OPTION_NUMBER,
     .name = "max-count",
     .value = "NUMBER",
     .max = UINT64_MAX,
     .text = "Only so many, the newest, are read; 0: all.",
     FIELD(max_count)},
    OUTPUT_SPECS,
};

static const struct option_example limit_examples[] = {
    {"holdfast events limit meter/kitchen --max-age 720h --max-count 10000",
     "Keep a month, and no more than 10000."},
};

const struct options_table hf__events_limit_options = {
    .name = "events limit",
    .operands = "STREAM",
    .about = "Limit a stream by age or by number, from now on, as events come; 'events sweep' "
             "removes what is beyond. A limit that is not named stays as it is.",
    .specs = limit_specs,
    .len = COMMAND_LEN(limit_specs),
    .examples = limit_examples,
    .examples_len = COMMAND_LEN(limit_examples),
};

int hf__events_limit_run(struct cli *cli, size_t args_len, const char *const *args)
{
    const struct options_table *table = &hf__events_limit_options;
    struct hf_stream_info info;
    uint64_t max_count;
    uint32_t max_age_s;
    struct about a;
    bool age, count;
    int ends;

    if (!begin(&a, cli, table, args_len, args, 1, &ends))
        return ends;
    age = hf__options_source(table, &a.options, "max-age") == OPTION_GIVEN;
    count = hf__options_source(table, &a.options, "max-count") == OPTION_GIVEN;
    if (!age && !count)
        return hf__cli_fail(cli, a.command, CLI_USAGE, "--max-age or --max-count is missing");
    if (!open_store(&a, &ends))
        return ends;
    max_age_s = (uint32_t)((a.settings.max_age_ms + SECOND_MS - 1) / SECOND_MS);
    max_count = a.settings.max_count;
    if (hf_events_stream_info(cli->scope, a.place.store, a.stream, &info) != HF_OK ||
        hf_events_limit_stream(cli->scope, a.place.store, a.stream,
                               age ? max_age_s : info.max_age_s,
                               count ? max_count : info.max_count) != HF_OK)
        ends = hf__database_fail(cli, a.command);
    else
        ends = tell_info(&a);
    hf__cli_events_close(&a.place);
    return ends;
}

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    {.kind = OPTION_FLAG,
     .letter = 'y',
     .name = "yes",
     .text = "Yes, delete it. Without this nothing is done.",
     FIELD(yes)},
    {.kind = OPTION_TEXT,
     .letter = 'e',
     .name = "expect",
     .value = "WHAT",
     .fallback = "any",
     .text = "Only if the stream is as expected: any, none, exists, or at this version. Otherwise "
             "the exit code is 4.",
     FIELD(expect)},
    OUTPUT_SPECS,
};

static const struct option_example delete_examples[] = {
    {"holdfast events delete order/7 --yes", "Without --yes nothing is done."},
};

const struct options_table hf__events_delete_options = {
    .name = "events delete",
    .operands = "STREAM",
    .about = "Delete a stream for good: nothing of it is read, and nothing can be appended to it "
             "ever again. 'events sweep' removes its events.",
    .specs = delete_specs,
    .len = COMMAND_LEN(delete_specs),
    .examples = delete_examples,
    .examples_len = COMMAND_LEN(delete_examples),
};

int hf__events_delete_run(struct cli *cli, size_t args_len, const char *const *args)
{
    enum hf_expect expect;
    uint64_t version;
    struct about a;
    int ends;

    if (!begin(&a, cli, &hf__events_delete_options, args_len, args, 1, &ends))
        return ends;
    if (!hf__cli_events_expect(cli, a.command, a.settings.expect, &expect, &version))
        return CLI_USAGE;
    if (!a.settings.yes)
        return hf__cli_fail(cli, a.command, CLI_USAGE,
                            "stream '%s', for good: add --yes if that is meant",
                            a.options.operands[0]);
    a.settings.database.table_needed = true; /* what is deleted stays so */
    if (!open_store(&a, &ends))
        return ends;
    if (hf_events_tombstone(cli->scope, a.place.store, a.stream, expect, version) != HF_OK)
        ends = hf__database_fail(cli, a.command);
    else
        ends = tell_info(&a);
    hf__cli_events_close(&a.place);
    return ends;
}

/* ---- archive, unarchive --------------------------------------------------------------------- */

static const struct option_example archive_examples[] = {
    {"holdfast events archive order/7", "Readers of all pass it by from now on."},
};

const struct options_table hf__events_archive_options = {
    .name = "events archive",
    .operands = "STREAM",
    .about = "Take a stream out of the order of all; 'events all --archived' has it still, and so "
             "has 'events read'. Nothing can be appended to it meanwhile. After a failure, call it "
             "again.",
    .specs = plain_specs,
    .len = COMMAND_LEN(plain_specs),
    .examples = archive_examples,
    .examples_len = COMMAND_LEN(archive_examples),
};

static const struct option_example unarchive_examples[] = {
    {"holdfast events unarchive order/7", "Back, each event at its old place."},
};

const struct options_table hf__events_unarchive_options = {
    .name = "events unarchive",
    .operands = "STREAM",
    .about = "Put a stream that was archived back into the order of all, at its old places.",
    .specs = plain_specs,
    .len = COMMAND_LEN(plain_specs),
    .examples = unarchive_examples,
    .examples_len = COMMAND_LEN(unarchive_examples),
};

static int move(struct cli *cli, const struct options_table *table, size_t args_len,
                const char *const *args,
                enum hf_status (*move_stream)(struct hf_scope *s, struct hf_events *store,
                                              struct hf_stream_key stream))
{
    struct about a;
    int ends;

    if (!begin(&a, cli, table, args_len, args, 1, &ends) || !open_store(&a, &ends))
        return ends;
    hf_scope_timeout_ms(cli->scope, 0);
    if (move_stream(cli->scope, a.place.store, a.stream) != HF_OK)
        ends = hf__database_fail(cli, a.command);
    else
        ends = tell_info(&a);
    hf__cli_events_close(&a.place);
    return ends;
}

int hf__events_archive_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return move(cli, &hf__events_archive_options, args_len, args, hf_events_archive);
}

int hf__events_unarchive_run(struct cli *cli, size_t args_len, const char *const *args)
{
    return move(cli, &hf__events_unarchive_options, args_len, args, hf_events_unarchive);
}

/* ---- sweep ---------------------------------------------------------------------------------- */

static const struct option_spec sweep_specs[] = {
    {.kind = OPTION_DURATION,
     .name = "older",
     .value = "TIME",
     .min = SECOND_MS,
     .max = (uint64_t)UINT32_MAX * SECOND_MS,
     .fallback = "24h",
     .text = "Nothing that is younger than this, as it may belong to an append that is under way.",
     FIELD(older_ms)},
    OUTPUT_SPECS,
};

static const struct option_example sweep_examples[] = {
    {"holdfast events sweep", "Once a night, say."},
};

const struct options_table hf__events_sweep_options = {
    .name = "events sweep",
    .about = "Remove what nobody reads any more: events that were truncated, are beyond a limit or "
             "of deleted streams, what appends have left that did not come to their end, and blobs "
             "that no event has. Others may work meanwhile.",
    .specs = sweep_specs,
    .len = COMMAND_LEN(sweep_specs),
    .examples = sweep_examples,
    .examples_len = COMMAND_LEN(sweep_examples),
};

int hf__events_sweep_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct settings settings = {.limit = 0};
    struct hf_events_swept swept;
    struct events_place place;
    struct options options;
    int ends;

    if (!hf__cli_options(cli, &hf__events_sweep_options, args_len, args, &settings, &options,
                         &ends) ||
        !hf__cli_events_open(cli, "events sweep", &settings.database, &settings.store, NULL, &place,
                             &ends))
        return ends;
    hf_scope_timeout_ms(cli->scope, 0);
    if (hf_events_sweep(cli->scope, place.store, (uint32_t)(settings.older_ms / SECOND_MS),
                        &swept) != HF_OK) {
        ends = hf__database_fail(cli, "events sweep");
    } else {
        struct rows_field fields[] = {hf__rows_number(cli, "events", swept.events),
                                      hf__rows_number(cli, "aside", swept.aside),
                                      hf__rows_number(cli, "blobs", swept.blobs)};

        ends = hf__rows_one(cli, &settings.database, fields, COMMAND_LEN(fields));
    }
    hf__cli_events_close(&place);
    return ends;
}
