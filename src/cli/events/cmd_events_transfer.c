/*
 * cli/events/cmd_events_transfer.c: the whole of an event store: `holdfast events export|import|verify`.
 *
 * What goes out or comes in is never in memory as a whole, and the time of --timeout is that of a
 * batch. Signals are the guard's, so nothing here may wait for long without looking at the scope.
 */
#include "base/base.h"
#include "cli/events/events.h"
#include "cli/frame/commands.h"
#include "cli/frame/process/confirm.h"
#include "cli/frame/process/input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILE_MODE = 0600, FILE_MODES = 0777 };

struct settings {
    struct database_settings database;
    struct events_settings store;
    struct hf_str file;
    struct hf_str domain, after, until;
    uint64_t batch;
    bool replace, renumber, yes;
    int input;                         /* import: where from */
    struct hf_event_stream_key stream; /* verify: the operand */
};

/* A transfer under way. */
struct transfer {
    struct command_ctx *c;
    struct cli *cli;
    const struct settings *settings;
    struct events_progress progress;
    const char *path;
    FILE *file;  /* where to */
    bool failed; /* the file did: `error` has the errno */
    int error;
};

/* What comes next has the whole time again: the database is waited for, not who is at the other end
 * of a pipe. */
static void begin_time(struct transfer *t)
{
    hf_scope_timeout_ms(t->cli->scope, (uint32_t)t->settings->database.timeout_ms);
}

static enum hf_status on_progress(uint64_t done, uint64_t total, void *user)
{
    struct transfer *t = user;

    begin_time(t);
    return hf__cli_events_progress(done, total, &t->progress);
}

/* How a transfer ends that did not succeed. */
static int transfer_fail(struct transfer *t)
{
    if (t->failed)
        return hf__cli_fail(t->cli, t->c->name, CLI_FAILED, "%s: %s", t->path, strerror(t->error));
    return hf__database_fail(t->cli, t->c->name);
}

static struct transfer transfer_of(struct command_ctx *c)
{
    return (struct transfer){.c = c, .cli = c->cli, .settings = c->settings};
}

/* ---- export --------------------------------------------------------------------------------- */

static const struct option_spec export_specs[] = {
    OPT_TEXT("domain", "TEXT", domain, "Only events of this domain.", .letter = 'd',
             .heading = "Events"),
    OPT_TEXT("after", "POSITION", after, "Only events after this position."),
    OPT_TEXT("until", "POSITION", until, "Last position, included."),
    OPT_TEXT("file", "FILE", file,
             "File to write; - is standard output. An existing file is replaced when the export is "
             "complete, and keeps its mode; a new one is readable by its owner only.",
             .letter = 'f', .fallback = "-", .heading = "Settings"),
    OPT_NUMBER("batch", batch, 1, 10000, "Number of events that are read at a time.",
               .fallback = "200"),
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example export_examples[] = {
    {"holdfast events export -f events.jsonl", "All events in their global order, with payloads."},
    {"holdfast events export | holdfast events import --db embedded:copy",
     "Copy all events to another database."},
};

const struct options_table hf__events_export_options = {
    .name = "events export",
    .about =
        "Write all events in their global order, one JSON object per line, with payloads from "
        "the blob store. docs/events.md describes the lines. With --file the number of events is "
        "printed.",
    COMMAND_SPECS(export),
};

static enum hf_status write_piece(struct hf_scope *s, const void *bytes, size_t len, void *user)
{
    struct transfer *t = user;

    if (fwrite(bytes, 1, len, t->file) == len) {
        begin_time(t);
        return HF_OK;
    }
    t->failed = true;
    t->error = errno;
    return hf_scope_fail(s, HF_IO, "%s: %s", t->path, strerror(errno));
}

/*
 * A temporary file that replaces the real one when it is complete. *temporary is absent for
 * a device or a pipe, which is written directly. A new file is readable by its owner only; one that
 * replaces another gets the mode of that one.
 */
static int open_temporary(struct transfer *t, struct hf_str *temporary)
{
    struct stat before;
    bool was_there = stat(t->path, &before) == 0;
    int fd;

    if (was_there && !S_ISREG(before.st_mode))
        return open(t->path, O_WRONLY | O_CLOEXEC);
    *temporary = hf_scope_format(t->cli->scope, "%s.%ld.part", t->path, (long)getpid());
    if (!temporary->ptr) {
        errno = ENOMEM;
        return -1;
    }
    fd = open(temporary->ptr, O_WRONLY | O_CLOEXEC | O_CREAT | O_EXCL, FILE_MODE);
    if (fd >= 0 && was_there && fchmod(fd, before.st_mode & FILE_MODES) != 0) {
        int error = errno;

        close(fd);
        unlink(temporary->ptr);
        errno = error;
        return -1;
    }
    return fd;
}

static bool open_output(struct transfer *t, struct hf_str *temporary)
{
    int fd;

    *temporary = (struct hf_str){0};
    t->path = "standard output";
    t->file = t->cli->out;
    if (hf_str_equal(t->settings->file, HF_STR("-")))
        return true;
    t->path = t->settings->file.ptr;
    fd = open_temporary(t, temporary);
    t->file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (t->file)
        return true;
    hf__cli_fail(t->cli, t->c->name, CLI_USAGE, "%s: %s", t->path, strerror(errno));
    if (fd >= 0)
        close(fd);
    return false;
}

/* Whole and in its place, or gone. */
static int close_output(struct transfer *t, struct hf_str temporary, int ends)
{
    if (t->file == t->cli->out)
        return hf__cli_flushed(t->cli, ends);
    if (ends == CLI_OK &&
        (fflush(t->file) != 0 || (temporary.ptr && fsync(fileno(t->file)) != 0))) {
        t->failed = true;
        t->error = errno;
        ends = transfer_fail(t);
    }
    fclose(t->file);
    if (ends == CLI_OK && temporary.ptr && rename(temporary.ptr, t->path) != 0)
        ends = hf__cli_fail(t->cli, t->c->name, CLI_FAILED, "%s: %s", t->path, strerror(errno));
    if (ends != CLI_OK && temporary.ptr)
        unlink(temporary.ptr);
    return ends;
}

static enum hf_status events_export(struct command_ctx *c)
{
    struct transfer t = transfer_of(c);
    uint64_t count = 0;
    struct hf_str temporary;
    bool done;

    if (!open_output(&t, &temporary))
        return hf__command_shown(c, CLI_USAGE);
    hf__cli_events_progress_begin(&t.progress, c->cli, c->database, "exported");
    done = hf_events_export(c->scope, c->place,
                            HF_OPTIONS(hf_events_transfer, .batch = (uint32_t)t.settings->batch,
                                       .domain = t.settings->domain, .after = t.settings->after,
                                       .until = t.settings->until, .on_progress = on_progress,
                                       .user = &t),
                            write_piece, &t, &count) == HF_OK;
    hf__cli_events_progress_end(&t.progress);
    c->ends = close_output(&t, temporary, done ? (int)CLI_OK : transfer_fail(&t));
    return c->ends == CLI_OK && t.file != c->cli->out ? hf__command_count(c, "exported", count)
                                                      : HF_OK;
}

COMMAND_OF(events_export, events_export, EVENTS_SETTINGS(struct settings), .guarded = true,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY);

/* ---- import --------------------------------------------------------------------------------- */

static const struct option_spec import_specs[] = {
    OPT_FLAG("replace", replace, "First delete everything in the table.", .heading = "Settings"),
    OPT_FLAG("yes", yes,
             "With --replace: do not ask. Where there is no terminal to ask on, it is needed.",
             .letter = 'y'),
    OPT_FLAG(
        "renumber", renumber,
        "Append after the existing events of a stream, instead of failing when a version is not "
        "the next one."),
    OPT_NUMBER("batch", batch, 1, 10000, "Number of events per transaction; at most 24.",
               .fallback = "24"),
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example import_examples[] = {
    {"holdfast events import events.jsonl", "Events whose ids exist are skipped."},
};

const struct options_table hf__events_import_options = {
    .name = "events import",
    .operands = "[FILE]",
    .about =
        "Append the events of an export, from a file or standard input, and print how many. Ids, "
        "times, versions and all other fields are kept; positions are new, in the same order. "
        "The table is created if missing.",
    COMMAND_SPECS(import),
    .notes =
        "After an interruption, run it again. An invalid line ends the import with exit code 2; "
        "the events before it are stored.",
};

/* Waits for input as long as no signal comes. */
static enum hf_status read_piece(struct hf_scope *s, void *bytes, size_t cap, size_t *len,
                                 void *user)
{
    struct transfer *t = user;
    enum hf_status status = hf__input_piece(s, t->settings->input, t->path, bytes, cap, len);

    t->error = errno;
    t->failed = status == HF_IO;
    begin_time(t);
    return status;
}

static const char *input_path(const struct command_ctx *c)
{
    return c->operands_len && strcmp(c->operands[0], "-") != 0 ? c->operands[0] : NULL;
}

static enum hf_status import_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    const char *path = input_path(c);

    settings->input = STDIN_FILENO;
    if (settings->replace)
        TRY(hf__command_confirm_now(c, settings->yes, "deletes all events of table '%s' first",
                                    settings->store.table.ptr));
    if (!path)
        return HF_OK;
    settings->input = open(path, O_RDONLY | O_CLOEXEC);
    return settings->input >= 0 ? HF_OK
                                : hf__command_fail(c, CLI_USAGE, "%s: %s", path, strerror(errno));
}

static void import_end(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    if (settings->input > STDIN_FILENO)
        close(settings->input);
}

static enum hf_status events_import(struct command_ctx *c)
{
    struct transfer t = transfer_of(c);
    uint64_t count = 0;
    enum hf_status status;

    t.path = input_path(c) ? input_path(c) : "standard input";
    hf__cli_events_progress_begin(&t.progress, c->cli, c->database, "imported");
    status = hf_events_import(c->scope, c->place,
                              HF_OPTIONS(hf_events_transfer, .batch = (uint32_t)t.settings->batch,
                                         .replace = t.settings->replace,
                                         .renumber = t.settings->renumber,
                                         .on_progress = on_progress, .user = &t),
                              read_piece, &t, &count);
    hf__cli_events_progress_end(&t.progress);
    if (status == HF_OK)
        return hf__command_count(c, "imported", count);
    return hf__command_end(c, transfer_fail(&t));
}

static enum hf_status import_open(struct command_ctx *c)
{
    return hf__cli_events_place_open(c, HF_OPTIONS(hf_events_options, .no_create = false));
}

static const struct command_place import_place = {import_open, hf__cli_events_place_close,
                                                  "events append"};

COMMAND_OF(events_import, events_import, EVENTS_SETTINGS(struct settings), .max = 1,
           .guarded = true, .place = &import_place, .table = COMMAND_MAKES, .check = import_check,
           .end = import_end);

/* ---- verify --------------------------------------------------------------------------------- */

static const struct option_spec verify_specs[] = {
    EVENTS_SPECS(struct settings),
    DATABASE_ONE(struct settings),
};

static const struct option_example verify_examples[] = {
    {"holdfast events verify", "All streams, the global order, and blobs."},
    {"holdfast events verify order/7", "One stream."},
};

const struct options_table hf__events_verify_options = {
    .name = "events verify",
    .operands = "[STREAM]",
    .about =
        "Compute the hashes of the events of a stream, or of all, and compare them with the "
        "stored hash chain: this detects events that were changed, removed, inserted or moved. "
        "Prints how many streams and events were verified.",
    COMMAND_SPECS(verify),
    .notes =
        "If something is not as it was written, the exit code is 8; the error, and with --json "
        "\"bad_stream\" and \"bad_version\", say where.",
};

/* Tells also where it is damaged, for programs. */
static enum hf_status verified_print(struct command_ctx *c,
                                     const struct hf_events_verified *verified)
{
    struct cli *cli = c->cli;
    struct rows_field fields[] = {hf__rows_number(cli, "streams", verified->streams),
                                  hf__rows_number(cli, "events", verified->events),
                                  {.name = "bad_stream",
                                   .text =
                                       verified->bad.domain.len
                                           ? hf__cli_events_stream_text(cli->scope, verified->bad)
                                           : (struct hf_str){0}},
                                  hf__rows_number(cli, "bad_version", verified->bad_version)};
    size_t len = COMMAND_LEN(fields) - (verified->bad.domain.len ? 0 : 2);

    return hf__command_print(c, fields, len);
}

static enum hf_status verify_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    return !c->operands_len ||
                   hf__cli_events_stream(c->cli, c->name, c->operands[0], &settings->stream)
               ? HF_OK
               : hf__command_shown(c, CLI_USAGE);
}

static enum hf_status events_verify(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_events_verified verified = {.streams = 0};
    struct transfer t = transfer_of(c);
    enum hf_status status;

    hf_scope_timeout_ms(c->scope, 0);
    hf__cli_events_progress_begin(&t.progress, c->cli, c->database, "verified");
    status =
        hf_events_verify(c->scope, c->place, c->operands_len ? &settings->stream : NULL,
                         HF_OPTIONS(hf_events_verify_options,
                                    .on_progress = hf__cli_events_progress, .user = &t.progress),
                         &verified);
    hf__cli_events_progress_end(&t.progress);
    if (status != HF_OK)
        hf__command_failed(c);
    if (c->ends == CLI_OK || (c->ends == CLI_CORRUPT && verified.bad.domain.len))
        TRY(verified_print(c, &verified));
    return status;
}

COMMAND_OF(events_verify, events_verify, EVENTS_SETTINGS(struct settings), .max = 1,
           .place = &hf__cli_events_place, .table = COMMAND_EMPTY, .check = verify_check);
