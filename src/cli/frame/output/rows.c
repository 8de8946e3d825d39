/*
 * cli/frame/output/rows.c: things and lists of things, for people or for programs. See rows.h; rows_screen.c has
 * the table on a terminal.
 *
 * What always holds:
 *
 *  (1) A row is a line, whatever is in it; on a terminal that is too narrow, a block of lines.
 *  (2) With --quiet nothing is printed.
 *  (3) People get local times and times such as 15m; programs get UTC and milliseconds, and always
 *      the same columns.
 */
#include "cli/frame/output/rows.h"

#include "cli/frame/output/json.h"

#include <assert.h>
#include <string.h>
#include <time.h>

enum { NAME_WIDTH = 12, TIME_MAX = 40, OFFSET_MAX = 16 };

/* ---- fields --------------------------------------------------------------------------------- */

struct rows_field hf__rows_text(const char *name, struct hf_str text)
{
    assert(name);
    return (struct rows_field){.name = name, .text = text};
}

struct rows_field hf__rows_number(struct cli *cli, const char *name, uint64_t number)
{
    return (struct rows_field){.name = name,
                               .kind = ROWS_RAW,
                               .text =
                                   hf_scope_format(cli->scope, "%llu", (unsigned long long)number)};
}

struct rows_field hf__rows_signed(struct cli *cli, const char *name, int64_t number)
{
    return (struct rows_field){.name = name,
                               .kind = ROWS_RAW,
                               .text = hf_scope_format(cli->scope, "%lld", (long long)number)};
}

struct rows_field hf__rows_bool(const char *name, bool truth)
{
    return (struct rows_field){.name = name,
                               .kind = ROWS_RAW,
                               .text = truth ? HF_STR("true") : HF_STR("false")};
}

/* "+01:00" */
static void write_offset(char room[OFFSET_MAX], long east_s)
{
    long minutes = (east_s < 0 ? -east_s : east_s) / 60;

    assert(east_s > -100 * 3600 && east_s < 100 * 3600);
    if (minutes == 0)
        snprintf(room, OFFSET_MAX, "Z");
    else
        snprintf(room, OFFSET_MAX, "%c%02ld:%02ld", east_s < 0 ? '-' : '+', minutes / 60 % 100,
                 minutes % 60);
}

struct rows_field hf__rows_time(struct cli *cli, const char *name, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[TIME_MAX], offset[OFFSET_MAX] = "Z";
    bool local = hf__cli_for_people(cli);
    struct tm parts;

    if (local)
        tzset();
    if (us <= 0 || !(local ? localtime_r(&seconds, &parts) : gmtime_r(&seconds, &parts)) ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        return hf__rows_text(name, (struct hf_str){0});
    if (local)
        write_offset(offset, parts.tm_gmtoff);
    return hf__rows_text(name, hf_scope_format(cli->scope, "%s.%03d%s", text,
                                               (int)(us / 1000 % 1000), offset));
}

struct hf_str hf__rows_duration(struct hf_scope *s, uint64_t ms)
{
    static const struct {
        uint64_t seconds;
        const char *name;
    } units[] = {{24 * 60 * 60, "d"}, {60 * 60, "h"}, {60, "m"}, {1, "s"}};
    uint64_t seconds = ms / 1000 + (ms % 1000 != 0);
    size_t i = 0;

    if (ms < 1000)
        return hf_scope_format(s, "%llums", (unsigned long long)ms);
    assert(seconds > 0);
    while (seconds < units[i].seconds)
        i++;
    assert(i < 4);
    if (i == 3 || seconds % units[i].seconds / units[i + 1].seconds == 0)
        return hf_scope_format(s, "%llu%s", (unsigned long long)(seconds / units[i].seconds),
                               units[i].name);
    return hf_scope_format(s, "%llu%s %llu%s", (unsigned long long)(seconds / units[i].seconds),
                           units[i].name,
                           (unsigned long long)(seconds % units[i].seconds / units[i + 1].seconds),
                           units[i + 1].name);
}

struct rows_field hf__rows_ms(struct cli *cli, const char *name, int64_t ms)
{
    size_t len = strlen(name) - strlen("_ms");
    struct hf_str shown;

    assert(strlen(name) > 3 && strcmp(name + len, "_ms") == 0);
    if (!hf__cli_for_people(cli) || ms < 0)
        return hf__rows_signed(cli, name, ms);
    shown = hf_scope_copy(cli->scope, hf_str_of(name, len));
    return (struct rows_field){.name = shown.ptr ? shown.ptr : name,
                               .kind = ROWS_RAW,
                               .text = hf__rows_duration(cli->scope, (uint64_t)ms)};
}

/* ---- printing ------------------------------------------------------------------------------- */

bool hf__rows_is_hidden(const struct rows_field *field)
{
    return field->kind == ROWS_JSON || field->kind == ROWS_WHOLE;
}

static void print_object(FILE *out, const struct rows_field *fields, size_t len)
{
    assert(len <= ROWS_FIELDS_MAX);
    for (size_t i = 0; i < len; i++)
        if (fields[i].kind == ROWS_WHOLE) {
            struct hf_str whole = fields[i].text.ptr ? fields[i].text : HF_STR("null");

            fwrite(whole.ptr, 1, whole.len, out);
            return;
        }
    fputc('{', out);
    for (size_t i = 0; i < len; i++) {
        fprintf(out, "%s\"%s\":", i ? "," : "", fields[i].name);
        if (!fields[i].text.ptr)
            fputs("null", out);
        else if (fields[i].kind == ROWS_TEXT)
            hf__cli_json_write_text(out, fields[i].text);
        else
            fprintf(out, "%.*s", HF_FMT(fields[i].text));
    }
    fputc('}', out);
}

struct rows_field hf__rows_array(struct cli *cli, const char *name, const void *all, size_t len,
                                 rows_fields_fn *fields)
{
    struct rows_field array = {.name = name, .kind = ROWS_JSON}, one[ROWS_FIELDS_MAX];
    struct json_text text;

    assert(name && fields && (all || !len));
    if (!hf__cli_json_text_begin(&text))
        return array;
    for (size_t i = 0; i < len; i++) {
        fputc(i ? ',' : '[', text.out);
        print_object(text.out, one, fields(cli, all, i, one));
    }
    fputs(len ? "]" : "[]", text.out);
    array.text = hf__cli_json_text_end(&text, cli->scope);
    return array;
}

static bool is_shown(const struct rows_field *field)
{
    return !hf__rows_is_hidden(field) && field->text.ptr;
}

int hf__rows_one(struct cli *cli, const struct database_settings *settings,
                 const struct rows_field *fields, size_t len)
{
    size_t width = NAME_WIDTH;

    assert(len <= ROWS_FIELDS_MAX);
    if (settings->quiet)
        return CLI_OK;
    if (settings->json || settings->jsonl) {
        print_object(cli->out, fields, len);
        fputc('\n', cli->out);
        return hf__cli_flushed(cli, CLI_OK);
    }
    for (size_t i = 0; i < len; i++)
        if (is_shown(&fields[i]) && strlen(fields[i].name) > width)
            width = strlen(fields[i].name);
    for (size_t i = 0; i < len; i++) {
        if (!is_shown(&fields[i]))
            continue;
        fprintf(cli->out, "%-*s ", (int)width, fields[i].name);
        hf__rows_print(cli->out, fields[i].text);
        fputc('\n', cli->out);
    }
    return hf__cli_flushed(cli, CLI_OK);
}

/* ---- lists ---------------------------------------------------------------------------------- */

void hf__rows_begin(struct rows *rows, struct cli *cli, const struct database_settings *settings,
                    const char *list)
{
    assert(list && list[0]);
    memset(rows, 0, sizeof(*rows));
    rows->cli = cli;
    rows->settings = settings;
    rows->list = list;
    if (settings->json && !settings->quiet)
        fprintf(cli->out, "{\"%s\":[", list);
}

static void print_line(FILE *out, const struct rows_field *fields, size_t len)
{
    bool more = false;

    assert(len > 0);
    for (size_t i = 0; i < len; i++) {
        if (hf__rows_is_hidden(&fields[i]))
            continue;
        if (more)
            fputc('\t', out);
        hf__rows_print(out, fields[i].text.ptr ? fields[i].text : HF_STR("-"));
        more = true;
    }
    fputc('\n', out);
}

void hf__rows_add(struct rows *rows, const struct rows_field *fields, size_t len)
{
    FILE *out = rows->cli->out;

    assert(rows->list && len > 0 && len <= ROWS_FIELDS_MAX);
    if (rows->settings->quiet) {
        rows->count++;
        return;
    }
    if (rows->settings->json && rows->count)
        fputc(',', out);
    rows->count++;
    if (rows->settings->json || rows->settings->jsonl)
        print_object(out, fields, len);
    else if (!rows->cli->terminal || !hf__rows_screen_add(rows, fields, len))
        print_line(out, fields, len);
    if (rows->settings->jsonl && !rows->settings->json)
        fputc('\n', out);
}

int hf__rows_end(struct rows *rows, struct hf_str next, int ends)
{
    FILE *out = rows->cli->out;

    hf__rows_screen_print(rows);
    assert(!rows->held_len); /* all of them are out */
    hf_scope_free(rows->scope);
    rows->scope = NULL;
    if (rows->settings->json && !rows->settings->quiet) {
        fputc(']', out);
        if (next.ptr) {
            fputs(",\"next\":", out);
            hf__cli_json_write_text(out, next);
        }
        fputs("}\n", out);
    }
    return hf__cli_flushed(rows->cli, ends);
}

int hf__rows_none(struct cli *cli, const struct database_settings *settings, const char *list,
                  int ends)
{
    if (ends != DATABASE_ABSENT)
        return ends;
    if (settings->json && !settings->quiet)
        fprintf(cli->out, "{\"%s\":[]}\n", list);
    return hf__cli_flushed(cli, CLI_OK);
}
