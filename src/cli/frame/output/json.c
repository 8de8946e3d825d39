/*
 * cli/frame/output/json.c: JSON as scripts read it. See json.h; json_read.c is the other way.
 *
 * What always holds:
 *
 *  (1) What is written is UTF-8 and has no control characters, so that a line is one line.
 *  (2) No number loses a digit.
 */
#include "cli/frame/output/json.h"

#include "base/base64.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

void hf__cli_json_write_text(FILE *out, struct hf_str text)
{
    assert(text.ptr || !text.len);
    fputc('"', out);
    for (size_t i = 0; i < text.len;) {
        const unsigned char *at = (const unsigned char *)text.ptr + i;
        size_t len = *at < 0x80 ? 1 : hf__utf8_length(at, text.len - i);

        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at == '\n')
            fputs("\\n", out);
        else if (*at == '\t')
            fputs("\\t", out);
        else if (*at < 0x20 || *at == 0x7F)
            fprintf(out, "\\u%04x", *at);
        else if (len == 2 && at[0] == 0xC2 && at[1] < 0xA0) /* what a terminal may obey, too */
            fprintf(out, "\\u%04x", at[1]);
        else if (len == 0)
            fputs("\xEF\xBF\xBD", out);
        else
            fwrite(at, 1, len, out);
        i += len ? len : 1;
    }
    fputc('"', out);
}

static void write_base64(FILE *out, struct hf_bytes bytes)
{
    assert(bytes.ptr || !bytes.len);
    fputc('"', out);
    for (size_t i = 0; i < bytes.len; i += 3) {
        struct hf_bytes group = {bytes.ptr + i, bytes.len - i < 3 ? bytes.len - i : 3};
        char digits[4];

        fwrite(digits, 1, hf__base64_encode(group, digits), out);
    }
    fputc('"', out);
}

void hf__cli_json_write_members(FILE *out, struct hf_scope *s, struct hf_item item,
                                json_write_fn *write)
{
    struct hf_item_walk walk = {.next = 0};
    bool more = false;

    assert(write);
    fputc('{', out);
    while (hf_item_next(item, &walk)) {
        if (more)
            fputc(',', out);
        hf__cli_json_write_text(out, walk.name);
        fputc(':', out);
        write(out, s, walk.value);
        more = true;
    }
    fputc('}', out);
}

void hf__cli_json_write_elements(FILE *out, struct hf_scope *s, struct hf_value value,
                                 json_write_fn *write)
{
    struct hf_value_walk walk = {.index = 0};

    assert(write);
    fputc('[', out);
    while (hf_value_next(s, value, &walk)) {
        if (walk.index)
            fputc(',', out);
        write(out, s, walk.value);
    }
    fputc(']', out);
}

void hf__cli_json_write_value(FILE *out, struct hf_scope *s, struct hf_value value)
{
    struct hf_str number;

    switch (hf_value_type(value)) {
    case HF_TYPE_S:
        hf__cli_json_write_text(out, hf_value_str(value));
        return;
    case HF_TYPE_N:
        number = hf_value_number(s, value);
        fprintf(out, "%.*s", HF_FMT(number));
        return;
    case HF_TYPE_B:
        write_base64(out, hf_value_bytes(value));
        return;
    case HF_TYPE_BOOL:
        fputs(hf_value_true(value) ? "true" : "false", out);
        return;
    case HF_TYPE_M:
        hf__cli_json_write_members(out, s, hf_value_item(value), hf__cli_json_write_value);
        return;
    case HF_TYPE_L:
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        hf__cli_json_write_elements(out, s, value, hf__cli_json_write_value);
        return;
    case HF_TYPE_NULL:
    default:
        fputs("null", out);
        return;
    }
}

/* ---- as texts ------------------------------------------------------------------------------- */

bool hf__cli_json_text_begin(struct json_text *text)
{
    *text = (struct json_text){0};
    text->out = open_memstream(&text->ptr, &text->len);
    return text->out != NULL;
}

struct hf_str hf__cli_json_text_end(struct json_text *text, struct hf_scope *s)
{
    struct hf_str copy = {0};

    if (text->out && fclose(text->out) == 0)
        copy = hf_scope_copy(s, hf_str_of(text->ptr, text->len));
    free(text->ptr);
    return copy;
}

struct hf_str hf__cli_json_of(struct hf_scope *s, struct hf_value value, json_write_fn *write)
{
    struct json_text text;

    assert(write);
    if (hf__cli_json_text_begin(&text))
        write(text.out, s, value);
    return hf__cli_json_text_end(&text, s);
}

struct hf_str hf__cli_json_of_value(struct hf_scope *s, struct hf_value value)
{
    return hf__cli_json_of(s, value, hf__cli_json_write_value);
}

struct hf_str hf__cli_json_of_text(struct hf_scope *s, struct hf_str str)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text))
        hf__cli_json_write_text(text.out, str);
    return hf__cli_json_text_end(&text, s);
}
