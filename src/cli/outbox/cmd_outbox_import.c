/*
 * cli/outbox/cmd_outbox_import.c: many events at once, from lines of JSON: `holdfast outbox import`.
 *
 * Lines are collected and emitted in batches, each of which is one transaction. What always holds:
 *
 *  (1) Events are emitted in the order of their lines, and at every moment all lines up to one are
 *      done and none behind it; but for a batch whose answer got lost, which the message names.
 *  (2) A line is done when its event is stored, was there before by its id, or is a row that was
 *      delivered by the library that it is from. So an import is repeated from the first line on,
 *      as long as its lines have ids.
 *  (3) When a batch is refused for what is in it, its lines are emitted one by one: those before
 *      the bad one are stored, and the message names that one.
 *  (4) The memory of an import is that of one batch.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/progress.h"
#include "cli/frame/process/child.h"
#include "cli/frame/process/line_reader.h"
#include "cli/outbox/outbox.h"
#include "cli/outbox/outbox_line.h"

#include <errno.h>

enum {
    BATCH_MAX = HF_OUTBOX_EMIT_MAX / 2, /* an event with an id is two actions */
    BATCH_BYTES = 2 * 1024 * 1024,      /* of lines; a transaction takes 4 MB */
    LINE_BYTES_MAX = 32 * 1024 * 1024,
    WHY_MAX = 2048
};

struct settings {
    struct database_settings database;
    struct hf_str table, blobs;
    unsigned from; /* enum outbox_line_form */
    bool failed;
    uint64_t batch;
    uint64_t buckets;
    bool stream;
    struct import *import;
};

static const struct option_spec specs[] = {
    OPT_CHOICE(
        "from", "lines cloudevents outbox-event-bus excalibur excalibur-data", from,
        "Format of a line. lines: an event as described above; cloudevents: an event as sinks "
        "write it; the others: an item of that library's table, as 'aws dynamodb scan' prints "
        "it.",
        .fallback = "lines", .heading = "Lines"),
    OPT_FLAG("failed", failed,
             "With --from outbox-event-bus or excalibur-data: include events that failed there. "
             "Delivered events are always skipped."),
    OPT_NUMBER("batch", batch, 1, BATCH_MAX,
               "Number of events per transaction: all of them are stored, or none.",
               .fallback = "50"),
    OUTBOX_TABLE_MADE(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example examples[] = {
    {"holdfast outbox import events.jsonl", "One event per line."},
    {"aws dynamodb scan --table-name old | jq -c '.Items[]' | holdfast outbox import --from "
     "outbox-event-bus",
     "Events that another library has not delivered."},
};

const struct options_table hf__outbox_import_options = {
    .name = "outbox import",
    .operands = "[FILE]",
    .about =
        "Store the events of a file or of standard input, one JSON object per line, for delivery "
        "by a relay, in the order of their lines. It prints how many were imported, were duplicates "
        "(ids that were emitted before) and were skipped (events that another library has "
        "delivered). A line needs \"type\"; optional are \"id\", \"key\", "
        "\"sequence\", \"time\", \"due\", \"urgent\", \"payload\" (JSON, kept byte for byte) or "
        "\"payload_base64\", \"content_type\", \"schema\", \"headers\" (an object), \"source\", \"correlation\", \"causation\", "
        "\"aggregate\", \"aggregate_type\", \"tenant\", \"destination\", \"trace_parent\" and "
        "\"trace_state\". Any other member is an error.",
    COMMAND_TABLE(specs, examples),
    .notes =
        "Ids that were emitted before are skipped: run it again after an interruption. Lines "
        "without an id are emitted each time. An invalid line ends the import with exit code 2: "
        "the message names it, the lines before it are stored, those after it are not.",
};

/* An import under way. */
struct import {
    struct cli *cli;
    const struct settings *settings;
    struct line_reader reader;
    struct progress progress;
    struct hf_outbox *outbox;
    struct hf_scope_mark mark; /* before the first line of the batch */
    struct hf_event events[BATCH_MAX];
    uint64_t lines[BATCH_MAX]; /* their numbers */
    size_t len, bytes;
    bool alone;     /* there are no transactions */
    uint64_t taken; /* lines up to this one were collected, or need nothing */
    uint64_t done;  /* lines up to this one are, (1) */
    uint64_t imported, duplicates, skipped;
};

/* ---- how it ends ---------------------------------------------------------------------------- */

static int print_counts(struct import *import)
{
    struct cli *cli = import->cli;
    struct rows_field fields[] = {hf__rows_number(cli, "imported", import->imported),
                                  hf__rows_number(cli, "duplicates", import->duplicates),
                                  hf__rows_number(cli, "skipped", import->skipped)};

    return hf__rows_one(cli, &import->settings->database, fields, COMMAND_LEN(fields));
}

/* What is stored and what is not, (1). Lines up to `doubt_to` may be stored; 0: none is in doubt. */
static struct hf_str written_text(struct import *import, uint64_t doubt_to)
{
    struct hf_scope *s = import->cli->scope;
    struct hf_str done = HF_STR("");

    if (import->done)
        done =
            hf_scope_format(s, "lines 1 to %llu are done: %llu imported, %llu duplicates, ",
                            (unsigned long long)import->done, (unsigned long long)import->imported,
                            (unsigned long long)import->duplicates);
    if (doubt_to)
        return hf_scope_format(s, "%.*slines %llu to %llu may be stored, later lines are not",
                               HF_FMT(done), (unsigned long long)import->done + 1,
                               (unsigned long long)doubt_to);
    return hf_scope_format(s, "%.*s%s stored", HF_FMT(done),
                           import->done ? "later lines are not" : "nothing is");
}

/* Show the error of the scope. `number` is that of the line that caused it; 0: none did. */
static int import_fail(struct import *import, uint64_t number, uint64_t doubt_to)
{
    struct hf_scope *s = import->cli->scope;
    const struct hf_error *error = hf_scope_error(s);
    enum hf_status status = error->status;
    bool doubt = error->may_have_happened;
    int ends = hf__database_exit(error);
    struct hf_str stored = written_text(import, doubt_to), line = HF_STR(""), text;

    hf__progress_end(&import->progress);
    if (number)
        line = hf_scope_format(s, "line %llu: ", (unsigned long long)number);
    text = hf_scope_format(s, "%.*s%s; %.*s", HF_FMT(line), hf_scope_error_text(s), HF_FMT(stored));
    (void)hf_scope_fail(s, status, "%.*s", HF_FMT(text));
    if (doubt)
        (void)hf_scope_doubt(s);
    (void)hf__database_fail(import->cli, "outbox import");
    return ends;
}

/* ---- batches -------------------------------------------------------------------------------- */

static enum hf_status events_emit(struct import *import, const struct hf_event *events, size_t len)
{
    hf_scope_timeout_ms(import->cli->scope, (uint32_t)import->settings->database.timeout_ms);
    return hf_outbox_emit(import->cli->scope, import->outbox, events, len, NULL);
}

static void show_progress(struct import *import, bool done)
{
    uint64_t count = import->imported + import->duplicates + import->skipped;

    if (hf__progress_due(&import->progress, done))
        hf__progress_print(&import->progress, "%llu lines done, %.0f per second",
                           (unsigned long long)count, hf__progress_rate(&import->progress, count));
}

/* (3) */
static bool emit_each(struct import *import, int *ends)
{
    for (size_t i = 0; i < import->len; i++) {
        enum hf_status status = events_emit(import, &import->events[i], 1);

        if (status == HF_DUPLICATE) {
            import->duplicates++;
        } else if (status == HF_OK) {
            import->imported++;
        } else {
            bool doubt = hf_scope_error(import->cli->scope)->may_have_happened;

            *ends = import_fail(import, import->lines[i], doubt ? import->lines[i] : 0);
            if (status == HF_LIMIT) /* it is too large: no event, as one that cannot be read */
                *ends = CLI_USAGE;
            return false;
        }
        import->done = import->lines[i];
        show_progress(import, false);
    }
    import->done = import->taken;
    return true;
}

/* Is it about what is in the batch? Then one by one says which of them it is about. */
static bool is_about_events(enum hf_status status)
{
    return status == HF_DUPLICATE || status == HF_INVALID || status == HF_LIMIT;
}

/* Emit what was collected. False: *ends says how to end. */
static bool batch_flush(struct import *import, int *ends)
{
    enum hf_status status = HF_OK;

    if (!import->len)
        return true;
    if (!import->alone) {
        status = events_emit(import, import->events, import->len);
        import->alone = status == HF_UNSUPPORTED && import->len > 1;
    }
    if (import->alone || is_about_events(status)) {
        if (!emit_each(import, ends))
            return false;
    } else if (status != HF_OK) {
        bool doubt = hf_scope_error(import->cli->scope)->may_have_happened;

        *ends = import_fail(import, 0, doubt ? import->lines[import->len - 1] : 0);
        return false;
    } else {
        import->imported += import->len;
        import->done = import->taken;
    }
    show_progress(import, false);
    import->len = import->bytes = 0;
    hf_scope_rewind(import->cli->scope, import->mark); /* (4) */
    return true;
}

/* One batch has every id once. */
static bool has_id(const struct import *import, struct hf_str id)
{
    for (size_t i = 0; id.len && i < import->len; i++)
        if (hf_str_equal(import->events[i].id, id))
            return true;
    return false;
}

/* ---- lines ---------------------------------------------------------------------------------- */

static bool is_blank(struct hf_str line)
{
    for (size_t i = 0; i < line.len; i++)
        if (line.ptr[i] != ' ' && line.ptr[i] != '\t')
            return false;
    return true;
}

/* It ends with this line: what was collected before it is stored, (1). False. */
static bool line_refuse(struct import *import, uint64_t number, enum hf_status status,
                        struct hf_str why, int *ends)
{
    char kept[WHY_MAX]; /* a flush gives back the memory of the scope */

    snprintf(kept, sizeof(kept), "%.*s", HF_FMT(why));
    if (batch_flush(import, ends)) {
        (void)hf_scope_fail(import->cli->scope, status, "%s", kept);
        *ends = import_fail(import, number, 0);
    }
    return false;
}

/* `text` is the reader's, and good until the next line. */
static bool take_line(struct import *import, struct hf_str text, int *ends)
{
    struct hf_scope *s = import->cli->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);
    uint64_t number = import->reader.number;
    struct hf_str copy = hf_scope_copy(s, text), error;
    struct outbox_line line;

    if (!copy.ptr)
        return line_refuse(import, number, HF_NOMEM, HF_STR("out of memory"), ends);
    if (!hf__cli_outbox_line_read(s, (enum outbox_line_form)import->settings->from, copy, &line,
                                  &error))
        return line_refuse(import, number, HF_INVALID, error, ends);
    if (line.done || (line.failed && !import->settings->failed)) {
        hf_scope_rewind(s, mark);
        import->skipped++;
        return true;
    }
    if (has_id(import, line.event.id))
        return batch_flush(import, ends) && take_line(import, text, ends);
    if (!import->len)
        import->mark = mark;
    import->events[import->len] = line.event;
    import->lines[import->len++] = number;
    import->bytes += text.len;
    return true;
}

/* True: all lines are done. */
static bool take_lines(struct import *import, int *ends)
{
    struct hf_scope *s = import->cli->scope;
    struct hf_str text;

    for (;;) {
        enum hf_status status = hf__line_reader_next(s, &import->reader, &text);

        if (status == HF_CANCELED)
            *ends = import_fail(import, 0, 0);
        else if (status != HF_OK)
            line_refuse(import, status == HF_LIMIT ? import->reader.number + 1 : 0,
                        status == HF_LIMIT ? HF_INVALID : status,
                        hf_str_from(hf_scope_error_text(s)), ends);
        if (status != HF_OK)
            return false;
        if (!text.ptr)
            return batch_flush(import, ends);
        if (import->bytes + text.len > BATCH_BYTES && !batch_flush(import, ends))
            return false;
        if (!is_blank(text) && !take_line(import, text, ends))
            return false;
        import->taken = import->reader.number;
        if (!import->len)
            import->done = import->taken;
        /* What has come through a pipe does not wait for what has not. */
        if (import->len == import->settings->batch || !hf__line_reader_ready(&import->reader))
            if (!batch_flush(import, ends))
                return false;
    }
}

/* ---- the command ---------------------------------------------------------------------------- */

static enum hf_status import_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    const char *path = c->operands_len ? c->operands[0] : "-";
    struct import *import;

    if (settings->failed && settings->from != OUTBOX_LINE_EVENT_BUS &&
        settings->from != OUTBOX_LINE_EXCALIBUR_DATA)
        return hf__command_fail(c, CLI_USAGE,
                                "--failed needs --from outbox-event-bus or --from excalibur-data");
    import = hf_scope_alloc(c->scope, sizeof(*import));
    if (!import)
        return hf__command_fail(c, CLI_FAILED, "out of memory");
    *import = (struct import){.cli = c->cli, .settings = settings};
    if (!hf__line_reader_open(&import->reader, path, LINE_BYTES_MAX))
        return hf__command_fail(c, CLI_USAGE, "%s: %s", path, strerror(errno));
    settings->import = import;
    return HF_OK;
}

static void import_end(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->import)
        hf__line_reader_close(&settings->import->reader);
}

static enum hf_status place_open(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return hf__cli_outbox_place_open(c, settings->blobs,
                                     HF_OPTIONS(hf_outbox_options, .table = settings->table,
                                                .buckets = (uint32_t)settings->buckets,
                                                .stream = settings->stream));
}

static const struct command_place outbox_place = {place_open, hf__cli_outbox_place_close, NULL};

/* After a signal: show what is stored; the exit code is that of the signal. */
static void import_signal(struct command_ctx *c)
{
    if (hf_scope_error(c->scope)->status == HF_CANCELED && hf__guard_signal(c->guard))
        c->ends = CLI_SIGNAL + hf__guard_signal(c->guard);
}

static enum hf_status import_body(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct import *import = settings->import;
    int ends = CLI_OK;

    import->outbox = c->place;
    hf__progress_begin(&import->progress, c->cli, c->database->quiet, false);
    if (take_lines(import, &ends)) {
        show_progress(import, true);
        hf__progress_end(&import->progress);
        ends = print_counts(import);
    }
    c->ends = ends;
    import_signal(c);
    return HF_OK;
}

COMMAND_OF(outbox_import, import_body, COMMAND_SETTINGS(struct settings), .max = 1, .guarded = true,
           .reports_signal = true, .place = &outbox_place, .table = COMMAND_MAKES,
           .check = import_check, .unopened = import_signal, .end = import_end);
