/*
 * cli/events/events.c: what the commands about an event store share. See events.h.
 *
 * What always holds:
 *
 *  (1) A stream that was printed can be typed: hf__cli_events_stream() reads what
 *      hf__cli_events_stream_text() writes, and gives back the same two texts.
 *  (2) A store is made by commands that append, and by no others.
 */
#include "cli/events/events.h"

#include "base/base.h"
#include "cli/frame/options/time_arg.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { PAYLOAD_SHOWN = 100 };

/* ---- opening -------------------------------------------------------------------------------- */

enum hf_status hf__cli_events_place_open(struct command_ctx *c,
                                         const struct hf_events_options *make)
{
    /* Where it is in the settings of every command: EVENTS_SETTINGS(). */
    const struct events_settings *settings =
        (const void *)((const char *)c->settings + offsetof(struct events_common, store));
    struct hf_events_options options = *make;
    struct hf_events *store;

    TRY(hf__command_open_blobs(c, settings->blobs));
    options.table = settings->table;
    options.no_create = !c->makes;
    options.blobs = c->blobs;
    TRY(hf_events_open(c->scope, c->db, &options, &store));
    c->place = store;
    return HF_OK;
}

void hf__cli_events_place_close(void *place)
{
    hf_events_close(place);
}

static enum hf_status place_open(struct command_ctx *c)
{
    return hf__cli_events_place_open(c, HF_OPTIONS(hf_events_options, .no_create = true));
}

const struct command_place hf__cli_events_place = {place_open, hf__cli_events_place_close,
                                                   "events append"};

/* ---- names ---------------------------------------------------------------------------------- */

static int digit_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)tolower((unsigned char)c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Without its %XX. Absent: one of them is none. */
static struct hf_str percent_decode(struct hf_scope *s, const char *text, size_t len)
{
    char *plain = hf_scope_alloc(s, len + 1);
    size_t out = 0;

    for (size_t i = 0; plain && i < len; i++) {
        if (text[i] != '%') {
            plain[out++] = text[i];
            continue;
        }
        if (i + 2 >= len || digit_of(text[i + 1]) < 0 || digit_of(text[i + 2]) < 0)
            return (struct hf_str){0};
        plain[out++] = (char)(digit_of(text[i + 1]) << 4 | digit_of(text[i + 2]));
        i += 2;
    }
    return plain ? hf_str_of(plain, out) : (struct hf_str){0};
}

bool hf__cli_events_stream(struct cli *cli, const char *command, const char *text,
                           struct hf_event_stream_key *stream)
{
    const char *slash = strchr(text, '/');
    size_t len = slash ? (size_t)(slash - text) : strlen(text);

    stream->domain = percent_decode(cli->scope, text, len);
    stream->id = slash ? hf_str_from(slash + 1) : (struct hf_str){0};
    if (stream->domain.len)
        return true;
    hf__cli_fail(cli, command, CLI_USAGE,
                 len ? "stream '%s': a %% in the domain needs two hex digits, as in %%25"
                     : "stream '%s': no domain; write DOMAIN/ID",
                 text);
    return false;
}

struct hf_str hf__cli_events_stream_text(struct hf_scope *s, struct hf_event_stream_key stream)
{
    char *domain = hf_scope_alloc(s, stream.domain.len * 3 + 1);
    size_t len = 0;

    if (!domain)
        return (struct hf_str){0};
    for (size_t i = 0; i < stream.domain.len; i++) {
        char c = stream.domain.ptr[i];
        bool escaped = c == '/' || c == '%';

        if (escaped) {
            domain[len++] = '%';
            domain[len++] = '2';
        }
        domain[len++] = (char)(!escaped ? c : c == '/' ? 'F' : '5');
    }
    return hf_scope_format(s, "%.*s%s%.*s", (int)len, domain, stream.id.len ? "/" : "",
                           HF_FMT(stream.id));
}

bool hf__cli_events_expect(struct cli *cli, const char *command, struct hf_str text,
                           enum hf_expect *expect, uint64_t *version)
{
    *expect = HF_EXPECT_ANY;
    *version = 0;
    if (!text.ptr || hf_str_equal(text, HF_STR("any")))
        return true;
    if (hf_str_equal(text, HF_STR("none")))
        *expect = HF_EXPECT_NONE;
    else if (hf_str_equal(text, HF_STR("exists")))
        *expect = HF_EXPECT_EXISTS;
    else if (hf__options_number(text.ptr, version))
        *expect = HF_EXPECT_VERSION;
    else
        hf__cli_fail(cli, command, CLI_USAGE,
                     "--expect: '%s' is invalid: use any, none, exists or a version", text.ptr);
    return *expect != HF_EXPECT_ANY;
}

bool hf__cli_events_when(struct cli *cli, const char *command, const char *option,
                         struct hf_str text, int64_t *us)
{
    if (!text.ptr || hf__time_arg_parse(cli->scope, text.ptr, us))
        return true;
    hf__cli_fail(cli, command, CLI_USAGE,
                 "%s: '%s' is not a time or how long ago; use 2026-11-15T09:30:00Z or 15m", option,
                 text.ptr);
    return false;
}

/* ---- events --------------------------------------------------------------------------------- */

static struct rows_field payload_field(struct cli *cli, const struct hf_stored_event *event)
{
    struct hf_str text = hf_str_of((const char *)event->payload.ptr, event->payload.len);
    size_t len = PAYLOAD_SHOWN;

    if (!event->payload.len)
        return hf__rows_text("payload", (struct hf_str){0});
    if (memchr(text.ptr, 0, text.len < len ? text.len : len))
        return hf__rows_text("payload", hf_scope_format(cli->scope, "(%zu bytes)", text.len));
    if (text.len <= len)
        return hf__rows_text("payload", text);
    while (len && ((unsigned char)text.ptr[len] & 0xC0) == 0x80) /* whole characters */
        len--;
    return hf__rows_text("payload", hf_scope_format(cli->scope, "%.*s...", (int)len, text.ptr));
}

/* With --json as it is exported. Absent: there is no memory for it. */
static struct rows_field whole_field(struct cli *cli, const struct database_settings *settings,
                                     const struct hf_stored_event *event)
{
    struct hf_str json = {0};

    if ((settings->json || settings->jsonl) && hf_event_to_json(cli->scope, event, &json) != HF_OK)
        json = (struct hf_str){0};
    return (struct rows_field){.name = "event", .kind = ROWS_WHOLE, .text = json};
}

void hf__cli_events_add(struct rows *rows, const struct hf_stored_event *event)
{
    struct cli *cli = rows->cli;
    struct rows_field fields[] = {
        hf__rows_text("stream", hf__cli_events_stream_text(cli->scope, event->stream)),
        hf__rows_number(cli, "version", event->version),
        hf__rows_text("type", event->type),
        hf__rows_time(cli, "time", event->time_us),
        hf__rows_text("id", event->id),
        payload_field(cli, event),
        whole_field(cli, rows->settings, event)};

    fields[5].cut = true;
    hf__rows_add(rows, fields, sizeof(fields) / sizeof(fields[0]));
}

enum hf_status hf__cli_events_one(struct command_ctx *c, const struct hf_stored_event *event)
{
    struct cli *cli = c->cli;
    struct hf_str own = event->correlation;
    struct rows_field fields[] = {
        hf__rows_text("id", event->id),
        hf__rows_text("position", event->position),
        hf__rows_text("stream", hf__cli_events_stream_text(cli->scope, event->stream)),
        hf__rows_number(cli, "version", event->version),
        hf__rows_text("type", event->type),
        hf__rows_time(cli, "time", event->time_us),
        hf__rows_number(cli, "schema", event->schema),
        hf__rows_text("causation", event->causation),
        hf__rows_text("correlation", hf_str_equal(own, event->id) ? (struct hf_str){0} : own),
        hf__rows_text("compensates", event->compensates),
        hf__rows_text("blob", event->blob),
        payload_field(cli, event),
        whole_field(cli, c->database, event)};

    return hf__command_print(c, fields, sizeof(fields) / sizeof(fields[0]));
}

/* ---- long work ------------------------------------------------------------------------------ */

void hf__cli_events_progress_begin(struct events_progress *progress, struct cli *cli,
                                   const struct database_settings *settings, const char *what)
{
    progress->what = what;
    hf__progress_begin(&progress->progress, cli, settings->quiet, false);
}

enum hf_status hf__cli_events_progress(uint64_t done, uint64_t total, void *user)
{
    struct events_progress *progress = user;
    char of[32] = "";

    if (!hf__progress_due(&progress->progress, false))
        return HF_OK;
    if (total)
        snprintf(of, sizeof(of), " of %llu", (unsigned long long)total);
    hf__progress_print(&progress->progress, "%llu%s events %s, %.0f per second",
                       (unsigned long long)done, of, progress->what,
                       hf__progress_rate(&progress->progress, done));
    return HF_OK;
}

void hf__cli_events_progress_end(struct events_progress *progress)
{
    hf__progress_end(&progress->progress);
}

enum hf_start hf__cli_events_start(struct hf_str after, struct hf_str since, bool latest)
{
    if (after.ptr)
        return HF_START_AFTER;
    if (since.ptr)
        return HF_START_TIME;
    return latest ? HF_START_END : HF_START_FIRST;
}

enum hf_status hf__cli_events_print(struct hf_scope *s, struct cli *cli,
                                    const struct hf_stored_event *event, atomic_bool *broken)
{
    struct hf_str json;
    enum hf_status status = hf_event_to_json(s, event, &json);
    bool failed;

    if (status != HF_OK)
        return status;
    flockfile(cli->out);
    fwrite(json.ptr, 1, json.len, cli->out);
    fputc('\n', cli->out);
    failed = fflush(cli->out) != 0 || ferror(cli->out);
    funlockfile(cli->out);
    if (!failed)
        return HF_OK;
    atomic_store(broken, true);
    return hf_scope_fail(s, HF_CANCELED, "cannot write to %s", hf__cli_out_name(cli));
}
