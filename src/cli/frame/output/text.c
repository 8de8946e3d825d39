/*
 * cli/frame/output/text.c: texts on a terminal. See text.h for how they are written.
 */
#include "cli/frame/output/text.h"

#include <assert.h>
#include <string.h>

enum { ITEM_INDENT = 2, ITEM_COLUMN_MAX = 27, LITERAL_INDENT = 2 };

/* ---- wrapping ------------------------------------------------------------------------------- */

static size_t indent_to(FILE *out, size_t indent)
{
    fprintf(out, "%*s", (int)indent, "");
    return indent;
}

/* What stands in brackets stays on one line. */
static size_t word_len(const char *text)
{
    size_t len = strcspn(text, text[0] == '[' ? "]\n" : " \n");

    return text[len] == ']' ? len + 1 : len;
}

/* One paragraph; returns where the next one starts, or its end. */
static const char *wrap_paragraph(FILE *out, const char *text, size_t indent, size_t column,
                                  size_t width)
{
    bool line_is_empty = true;

    assert(indent < width);
    while (*text && *text != '\n') {
        size_t word = word_len(text);

        if (word == 0) {
            text++;
            continue;
        }
        if (!line_is_empty && column + 1 + word > width) {
            fputc('\n', out);
            column = indent_to(out, indent);
            line_is_empty = true;
        }
        if (!line_is_empty)
            column += (size_t)fprintf(out, " ");
        column += (size_t)fprintf(out, "%.*s", (int)word, text);
        line_is_empty = false;
        text += word;
    }
    fputc('\n', out);
    return *text ? text + 1 : text;
}

void hf__texts_wrap(FILE *out, const char *text, size_t indent, size_t column, size_t width)
{
    assert(width > 0);
    while (*text) {
        text = wrap_paragraph(out, text, indent, column, width);
        if (*text && *text != '\n')
            column = indent_to(out, indent);
        else if (*text) {
            fputc('\n', out);
            text++;
            column = indent_to(out, indent);
        }
    }
}

/* `text` is one paragraph. */
static void print_columns(FILE *out, struct hf_str left, const char *text, size_t column,
                          size_t width)
{
    size_t at = (size_t)fprintf(out, "  %.*s", HF_FMT(left));

    assert(column < width);
    if (at + 2 > column) {
        fputc('\n', out);
        at = 0;
    }
    assert(at <= column);
    at += indent_to(out, column - at);
    (void)wrap_paragraph(out, text, column, at, width);
}

void hf__texts_columns(FILE *out, const char *left, const char *text, size_t column, size_t width)
{
    print_columns(out, hf_str_from(left), text, column, width);
}

void hf__texts_heading(FILE *out, const char *heading, bool bold)
{
    assert(heading[0]);
    fprintf(out, "%s%s:%s\n", bold ? "\033[1m" : "", heading, bold ? "\033[0m" : "");
}

/* ---- blocks --------------------------------------------------------------------------------- */

bool hf__texts_next(const char **at, struct text_block *block)
{
    const char *line = *at, *tab;
    size_t len;

    *block = (struct text_block){.kind = TEXT_PARAGRAPH};
    for (; *line == '\n'; line++)
        block->apart = true;
    if (*line == '\0')
        return false;
    len = strcspn(line, "\n");
    *at = line + len + (line[len] == '\n');
    block->text = hf_str_of(line, len);
    if (len < 2 || line[0] != ' ' || line[1] != ' ')
        return true;
    block->kind = TEXT_LITERAL;
    block->text = hf_str_of(line + 2, len - 2);
    tab = memchr(line, '\t', len);
    if (tab) {
        block->kind = TEXT_ITEM;
        block->term = hf_str_of(line + 2, (size_t)(tab - line) - 2);
        block->text = hf_str_of(tab + 1, (size_t)(line + len - tab) - 1);
    }
    return true;
}

/* Where the texts of all items begin: behind the longest term that is not too long. */
static size_t item_column(const char *text)
{
    struct text_block block;
    size_t column = 0;

    while (hf__texts_next(&text, &block)) {
        size_t needed = ITEM_INDENT + block.term.len + 2;

        if (block.kind == TEXT_ITEM && needed > column && needed <= ITEM_COLUMN_MAX)
            column = needed;
    }
    return column ? column : ITEM_INDENT + 2;
}

static void print_block(FILE *out, const struct text_block *block, size_t column, size_t width)
{
    switch (block->kind) {
    case TEXT_PARAGRAPH:
        (void)wrap_paragraph(out, block->text.ptr, 0, 0, width);
        break;
    case TEXT_ITEM:
        print_columns(out, block->term, block->text.ptr, column, width);
        break;
    case TEXT_LITERAL:
        fprintf(out, "%*s%.*s\n", LITERAL_INDENT, "", HF_FMT(block->text));
        break;
    }
}

void hf__texts_print(FILE *out, const char *text, size_t width)
{
    size_t column = item_column(text);
    struct text_block block;

    while (hf__texts_next(&text, &block)) {
        if (block.apart)
            fputc('\n', out);
        print_block(out, &block, column, width);
    }
}
