/*
 * cli/streams/cmd_streams.c: `holdfast streams tail`: the changes of a table's items, a line of JSON each.
 *
 * Without --name nothing is written anywhere. With it the position is kept, and several of these
 * share the shards; a change counts as printed when its line has been written.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/options/time_arg.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/child.h"

#include <holdfast/streams.h>

#include <time.h>

struct settings {
    struct database_settings database;
    struct hf_str from;
    struct hf_str name;
    struct hf_str positions;
    struct hf_str partition;
    uint64_t count;
    bool images;
    bool dynamodb;
    bool follow;
    struct hf_consumer_options options; /* what they say */
};

static const struct option_spec specs[] = {
    OPT_TEXT(
        "from", "WHERE", from,
        "Where to start: horizon (the oldest stored change), latest (only new changes), a time "
        "such as 2026-11-15T09:30:00Z (UTC), or how long ago, such as 15m.",
        .fallback = "horizon", .heading = "Changes"),
    OPT_TEXT("partition", "TEXT", partition, "Only changes of items with this hash key (a string).",
             .letter = 'p'),
    OPT_NUMBER("count", count, 0, UINT32_MAX, "Stop after this many changes.", .letter = 'c'),
    OPT_FLAG("follow", follow,
             "Wait for new changes; by default the command ends after the last stored change.",
             .letter = 'f'),

    OPT_TEXT("name", "NAME", name,
             "Store the position under this name: the next run continues there, whatever --from "
             "says, and several processes with the same name share the work.",
             .letter = 'n', .heading = "Position"),
    OPT_TEXT("positions", "NAME", positions, "The table of positions; created if missing.",
             .fallback = "checkpoints"),

    OPT_FLAG("images", images,
             "Print the item before and after the change, if the stream has them.", .letter = 'i',
             .heading = "Output"),
    OPT_FLAG("dynamodb", dynamodb,
             "Print items in DynamoDB's JSON, which distinguishes sets from lists; plain JSON by "
             "default."),
    DATABASE_SPECS(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast streams tail orders --follow --images", "Watch changes of orders live."},
    {"holdfast streams tail orders --from 15m | jq -r .key.id",
     "Keys that changed in the last 15 minutes."},
    {"holdfast streams tail orders --name audit >> audit.jsonl",
     "All changes since the last run; none is missed if you run it at least once a day."},
};

const struct options_table hf__streams_tail_options = {
    .name = "streams tail",
    .operands = "TABLE",
    .about =
        "Print the changes of a table's items, one JSON object per line:\n"
        "  kind\tINSERT, MODIFY or REMOVE\n"
        "  time\tapproximate time, in whole seconds\n"
        "  key\tthe key of the item\n"
        "  old, new\tthe item before and after, with --images; null if there is none, or if the "
        "stream does not have it\n"
        "  expired\ttrue if the item was deleted because its time to live ended\n"
        "  sequence, shard\tthe position in the stream\n"
        "  id\tid of the change: the same if it is printed again\n\n"
        "Changes of one item are in order. The table must have a stream, which keeps changes for "
        "24 hours.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "Changes that were removed before they were read are reported on standard error. If the "
        "stream is disabled and enabled again, or the table is deleted and created again, the "
        "command continues with the new stream after the old one. With --name, a change is printed "
        "again if the command is killed after it printed it and before it stored the "
        "position.\n\nExit codes: 2 the table has no stream, 3 no such table, 128 + N stopped by signal N. For "
        "others see holdfast(1).",
};

/* ---- where it begins ------------------------------------------------------------------------ */

static enum hf_status tail_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_consumer_options *o = &settings->options;

    if (hf_str_equal(settings->from, HF_STR("horizon"))) {
        o->start = HF_START_FIRST;
    } else if (hf_str_equal(settings->from, HF_STR("latest"))) {
        o->start = HF_START_END;
    } else {
        o->start = HF_START_TIME;
        if (!hf__time_arg_parse(c->scope, settings->from.ptr, &o->from_us))
            return hf__command_fail(
                c, CLI_USAGE,
                "--from: '%s' is invalid: use horizon, latest, a time or how long ago",
                settings->from.ptr);
    }
    return HF_OK;
}

/* ---- lines ---------------------------------------------------------------------------------- */

struct run {
    struct cli *cli;
    const struct settings *settings;
    uint64_t printed; /* only who is called by the consumer uses these; it has one thread */
    bool enough;
    bool broken; /* nobody reads what we print */
};

static void print_item(const struct run *run, struct hf_scope *s, const char *name,
                       struct hf_item item)
{
    FILE *out = run->cli->out;
    struct hf_str json;

    fprintf(out, ",\"%s\":", name);
    if (!item.ptr) {
        fputs("null", out);
    } else if (run->settings->dynamodb) {
        json = hf_item_to_json(s, item);
        fwrite(json.ptr, 1, json.len, out);
    } else {
        hf__cli_json_write_value(out, s, hf_item_value(item));
    }
}

static void print_time(FILE *out, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[32];
    struct tm parts;

    if (us > 0 && gmtime_r(&seconds, &parts) &&
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts))
        fprintf(out, ",\"time\":\"%s\"", text);
}

static void print_change(const struct run *run, struct hf_scope *s, const struct hf_change *change)
{
    static const char *const kinds[] = {"", "INSERT", "MODIFY", "REMOVE"};
    _Static_assert(ARRAY_LEN(kinds) == HF_CHANGE_REMOVE + 1, "every one has a name");
    FILE *out = run->cli->out;

    assert(change->kind >= HF_CHANGE_INSERT && change->kind <= HF_CHANGE_REMOVE);
    fprintf(out, "{\"kind\":\"%s\"", kinds[change->kind]);
    print_time(out, change->time_us);
    print_item(run, s, "key", change->key);
    if (run->settings->images) {
        print_item(run, s, "old", change->old_image);
        print_item(run, s, "new", change->new_image);
    }
    if (change->expired)
        fputs(",\"expired\":true", out);
    fputs(",\"sequence\":", out);
    hf__cli_json_write_text(out, change->sequence);
    fputs(",\"shard\":", out);
    hf__cli_json_write_text(out, change->shard);
    fputs(",\"id\":", out);
    hf__cli_json_write_text(out, change->id);
    fputs("}\n", out);
}

static enum hf_status changes_print(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                    void *user)
{
    struct run *run = user;

    for (size_t i = 0; i < len && !run->enough && !run->broken; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        print_change(run, s, &changes[i]);
        hf_scope_rewind(s, mark);
        run->printed++;
        run->enough = run->settings->count && run->printed >= run->settings->count;
    }
    run->broken = run->broken || fflush(run->cli->out) != 0 || ferror(run->cli->out);
    if (!run->enough && !run->broken)
        return HF_OK;
    hf_scope_cancel(run->cli->scope);
    /* With a name pages have one change, if it is to be counted: it was printed, or it was not. */
    return run->broken || len > 1 ? HF_CANCELED : HF_OK;
}

static enum hf_status print_until_enough(struct hf_scope *s, const struct hf_change *changes,
                                         size_t len, void *user)
{
    const struct run *run = user;

    return run->enough || run->broken ? HF_CANCELED : changes_print(s, changes, len, user);
}

static void report_gap(struct hf_str shard, struct hf_str sequence, void *user)
{
    struct run *run = user;

    fprintf(
        run->cli->err,
        "holdfast streams tail: changes of shard %.*s were removed before they were read%s%.*s\n",
        HF_FMT(shard), sequence.len ? ", after " : "", HF_FMT(sequence));
}

/* ---- the run -------------------------------------------------------------------------------- */

static enum hf_status stream_tail(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_consumer_options *options = &settings->options;
    struct run run = {.cli = c->cli, .settings = settings};
    struct hf_consumer *consumer;
    enum hf_status status;

    options->size = sizeof(*options);
    options->name = settings->name;
    options->table = settings->positions;
    options->partition = settings->partition;
    options->until_end = !settings->follow;
    options->batch = settings->name.len && settings->count ? 1 : 0;
    options->on_gap = report_gap;
    options->user = &run;
    TRY(hf_consumer_open(c->scope, c->db, hf__command_operand(c, 0), options, &consumer));
    hf_scope_timeout_ms(c->scope, 0);
    status = hf_consumer_run(c->scope, consumer, print_until_enough, &run);
    hf_consumer_close(consumer);
    if (status == HF_CANCELED && hf__guard_signal(c->guard))
        return hf__command_end(c, CLI_SIGNAL + hf__guard_signal(c->guard));
    return run.enough || run.broken ? HF_OK : status;
}

COMMAND_OF(streams_tail, stream_tail, COMMAND_SETTINGS(struct settings), .min = 1, .max = 1,
           .guarded = true, .check = tail_check);
