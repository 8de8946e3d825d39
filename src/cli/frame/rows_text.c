/*
 * cli/frame/rows_text.c: text as a terminal shows it, and how many columns that takes.
 *
 * What always holds:
 *
 *  (1) What is stored cannot write to the terminal: control characters are shown, not sent.
 *  (2) hf__rows_width() is what hf__rows_print() takes: both walk over the same pieces. East Asian
 *      characters and emoji take two columns, marks that combine with the one before take none.
 */
#include "cli/frame/rows.h"

#include <string.h>

enum { CUT_MARK = 3 }; /* "..." */

/* A character, or a byte that is none. */
struct piece {
    size_t len;     /* in bytes */
    size_t columns; /* as it is shown */
};

static size_t sequence_len(unsigned char first)
{
    return first < 0x80 ? 1 : first < 0xC2 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

struct span {
    uint32_t first, last;
};

static bool is_in(uint32_t code, const struct span *spans, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (code >= spans[i].first && code <= spans[i].last)
            return true;
    return false;
}

static size_t columns_of(uint32_t code)
{
    static const struct span none[] = {{0x0300, 0x036F},
                                       {0x200B, 0x200F},
                                       {0x20D0, 0x20FF},
                                       {0xFE00, 0xFE0F}};
    static const struct span two[] = {{0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},
                                      {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},   {0xFE30, 0xFE6F},
                                      {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},   {0x1F300, 0x1F64F},
                                      {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD}};

    if (code < 0x0300)
        return 1;
    if (is_in(code, none, sizeof(none) / sizeof(none[0])))
        return 0;
    return is_in(code, two, sizeof(two) / sizeof(two[0])) ? 2 : 1;
}

static bool is_control(unsigned char byte)
{
    return byte < 0x20 || byte == 0x7F;
}

/* Is it one of U+0080 to U+009F, which terminals obey, too? */
static bool is_high_control(struct hf_str text, size_t at)
{
    return (unsigned char)text.ptr[at] == 0xC2 && at + 1 < text.len &&
           (unsigned char)text.ptr[at + 1] < 0xA0;
}

static struct piece piece_at(struct hf_str text, size_t at)
{
    unsigned char first = (unsigned char)text.ptr[at];
    size_t len = sequence_len(first);
    uint32_t code = len == 1 ? first : first & (0x7FU >> len);

    if (first == '\n' || first == '\t' || first == '\\')
        return (struct piece){.len = 1, .columns = strlen("\\n")};
    if (is_control(first))
        return (struct piece){.len = 1, .columns = strlen("\\x1b")};
    if (is_high_control(text, at))
        return (struct piece){.len = 2, .columns = strlen("\\xc2\\x80")};
    if (len > text.len - at)
        return (struct piece){.len = 1, .columns = 1};
    for (size_t i = 1; i < len; i++) {
        unsigned char byte = (unsigned char)text.ptr[at + i];

        if ((byte & 0xC0) != 0x80)
            return (struct piece){.len = 1, .columns = 1};
        code = code << 6 | (byte & 0x3F);
    }
    return (struct piece){.len = len, .columns = columns_of(code)};
}

static void print_piece(FILE *out, const char *at, size_t len)
{
    unsigned char first = (unsigned char)*at;

    if (first == '\n')
        fputs("\\n", out);
    else if (first == '\t')
        fputs("\\t", out);
    else if (first == '\\')
        fputs("\\\\", out);
    else if (is_control(first))
        fprintf(out, "\\x%02x", first);
    else if (len == 2 && is_high_control(hf_str_of(at, len), 0))
        fprintf(out, "\\xc2\\x%02x", (unsigned char)at[1]);
    else
        fwrite(at, 1, len, out);
}

void hf__rows_print(FILE *out, struct hf_str text)
{
    for (size_t at = 0; at < text.len;) {
        struct piece piece = piece_at(text, at);

        print_piece(out, text.ptr + at, piece.len);
        at += piece.len;
    }
}

size_t hf__rows_width(struct hf_str text)
{
    size_t width = 0;

    for (size_t at = 0; at < text.len;) {
        struct piece piece = piece_at(text, at);

        width += piece.columns;
        at += piece.len;
    }
    return width;
}

size_t hf__rows_print_cut(FILE *out, struct hf_str text, size_t width)
{
    size_t shown = 0, at = 0;

    if (hf__rows_width(text) <= width) {
        hf__rows_print(out, text);
        return hf__rows_width(text);
    }
    while (at < text.len) {
        struct piece piece = piece_at(text, at);

        if (shown + piece.columns + CUT_MARK > width)
            break;
        print_piece(out, text.ptr + at, piece.len);
        shown += piece.columns;
        at += piece.len;
    }
    fputs("...", out);
    return shown + CUT_MARK;
}
