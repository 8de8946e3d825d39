/*
 * cli/rows.c: things and lists of things, for people or for programs. See rows.h.
 *
 * What always holds:
 *
 *  (1) What is stored cannot write to the terminal: control characters are shown, not sent.
 *  (2) A row is a line, whatever is in it.
 *  (3) With --quiet nothing is printed.
 */
#include "cli/rows.h"

#include "cli/json.h"

#include <assert.h>
#include <string.h>
#include <time.h>

enum { GAP = 2, NAME_WIDTH = 12, TIME_MAX = 40 };

/* ---- fields --------------------------------------------------------------------------------- */

struct rows_field hf__rows_text(const char *name, struct hf_str text)
{
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

struct rows_field hf__rows_time(struct cli *cli, const char *name, int64_t us)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[TIME_MAX];
    struct tm parts;

    if (us <= 0 || !gmtime_r(&seconds, &parts) ||
        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &parts) == 0)
        return hf__rows_text(name, (struct hf_str){0});
    return hf__rows_text(name,
                         hf_scope_format(cli->scope, "%s.%03dZ", text, (int)(us / 1000 % 1000)));
}

/* ---- printing ------------------------------------------------------------------------------- */

void hf__rows_print(FILE *out, struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];

        if (byte == '\n')
            fputs("\\n", out);
        else if (byte == '\t')
            fputs("\\t", out);
        else if (byte == '\\')
            fputs("\\\\", out);
        else if (byte < 0x20 || byte == 0x7F)
            fprintf(out, "\\x%02x", byte);
        else if (byte == 0xC2 && i + 1 < text.len && (unsigned char)text.ptr[i + 1] < 0xA0)
            fprintf(out, "\\xc2\\x%02x", (unsigned char)text.ptr[++i]); /* U+0080 to U+009F */
        else
            fputc(byte, out);
    }
}

/* How many columns it takes: characters of UTF-8, and what escapes add. */
static size_t shown_width(struct hf_str text)
{
    size_t width = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char byte = (unsigned char)text.ptr[i];

        if (byte == '\n' || byte == '\t' || byte == '\\')
            width += 2;
        else if (byte < 0x20 || byte == 0x7F)
            width += 4;
        else if ((byte & 0xC0) != 0x80)
            width++;
    }
    return width;
}

/* Only for programs: no column, and no line. */
static bool is_hidden(const struct rows_field *field)
{
    return field->kind == ROWS_JSON || field->kind == ROWS_WHOLE;
}

static void print_object(FILE *out, const struct rows_field *fields, size_t len)
{
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
            hf__json_write_text(out, fields[i].text);
        else
            fprintf(out, "%.*s", HF_FMT(fields[i].text));
    }
    fputc('}', out);
}

int hf__rows_one(struct cli *cli, const struct database_settings *settings,
                 const struct rows_field *fields, size_t len)
{
    if (settings->quiet)
        return CLI_OK;
    if (settings->json || settings->jsonl) {
        print_object(cli->out, fields, len);
        fputc('\n', cli->out);
        return hf__cli_flushed(cli, CLI_OK);
    }
    for (size_t i = 0; i < len; i++) {
        if (is_hidden(&fields[i]) || !fields[i].text.ptr)
            continue;
        fprintf(cli->out, "%-*s ", NAME_WIDTH, fields[i].name);
        hf__rows_print(cli->out, fields[i].text);
        fputc('\n', cli->out);
    }
    return hf__cli_flushed(cli, CLI_OK);
}

/* ---- lists ---------------------------------------------------------------------------------- */

void hf__rows_begin(struct rows *rows, struct cli *cli, const struct database_settings *settings,
                    const char *list)
{
    memset(rows, 0, sizeof(*rows));
    rows->cli = cli;
    rows->settings = settings;
    rows->list = list;
    if (settings->json && !settings->quiet)
        fprintf(cli->out, "{\"%s\":[", list);
}

bool hf__rows_holds(const struct rows *rows)
{
    return rows->cli->terminal && !rows->settings->json && !rows->settings->jsonl;
}

static void print_padded(FILE *out, struct hf_str text, size_t width, bool last)
{
    size_t shown = shown_width(text);

    hf__rows_print(out, text);
    if (!last)
        fprintf(out, "%*s", (int)(GAP + (width > shown ? width - shown : 0)), "");
}

static void print_held(struct rows *rows)
{
    FILE *out = rows->cli->out;

    if (!rows->headed && rows->held_len) {
        for (size_t i = 0; i < rows->columns; i++)
            print_padded(out, hf_str_from(rows->names[i]), rows->widths[i], i + 1 == rows->columns);
        fputc('\n', out);
        rows->headed = true;
    }
    for (size_t row = 0; row < rows->held_len; row++) {
        for (size_t i = 0; i < rows->columns; i++)
            print_padded(out, rows->held[row][i], rows->widths[i], i + 1 == rows->columns);
        fputc('\n', out);
    }
    rows->held_len = 0;
}

static void hold(struct rows *rows, const struct rows_field *fields, size_t len)
{
    size_t column = 0;

    for (size_t i = 0; i < len; i++) {
        struct hf_str text = fields[i].text.ptr ? fields[i].text : HF_STR("-");

        if (is_hidden(&fields[i]))
            continue;
        rows->held[rows->held_len][column] = text;
        if (rows->widths[column] < strlen(fields[i].name))
            rows->widths[column] = strlen(fields[i].name);
        if (rows->widths[column] < shown_width(text))
            rows->widths[column] = shown_width(text);
        rows->names[column] = fields[i].name;
        column++;
    }
    rows->columns = column;
    rows->held_len++;
    if (rows->held_len == ROWS_HELD_MAX)
        print_held(rows);
}

static void print_line(FILE *out, const struct rows_field *fields, size_t len)
{
    bool more = false;

    for (size_t i = 0; i < len; i++) {
        if (is_hidden(&fields[i]))
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

    assert(len <= ROWS_FIELDS_MAX);
    if (rows->settings->quiet) {
        rows->count++;
        return;
    }
    if (rows->settings->json && rows->count)
        fputc(',', out);
    rows->count++;
    if (rows->settings->json || rows->settings->jsonl)
        print_object(out, fields, len);
    else if (rows->cli->terminal)
        hold(rows, fields, len);
    else
        print_line(out, fields, len);
    if (rows->settings->jsonl && !rows->settings->json)
        fputc('\n', out);
}

int hf__rows_end(struct rows *rows, struct hf_str next, int ends)
{
    FILE *out = rows->cli->out;

    print_held(rows);
    if (rows->settings->json && !rows->settings->quiet) {
        fputc(']', out);
        if (next.ptr) {
            fputs(",\"next\":", out);
            hf__json_write_text(out, next);
        }
        fputs("}\n", out);
    }
    return hf__cli_flushed(rows->cli, ends);
}
