/*
 * cli/frame/output/rows_text.c: text as a terminal shows it, and how many columns that takes.
 *
 * What always holds:
 *
 *  (1) What is stored cannot write to the terminal: control characters are shown, not sent.
 *  (2) hf__rows_width() is what hf__rows_print() takes: both walk over the same pieces. East Asian
 *      characters and emoji take two columns, marks that combine with the one before take none.
 */
#include "cli/frame/output/rows.h"

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
    /* Marks of the larger scripts, joiners, and characters that only change direction. */
    static const struct span none[] = {
        {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x05BF, 0x05BF},  {0x05C1, 0x05C2},
        {0x05C4, 0x05C5}, {0x05C7, 0x05C7}, {0x0610, 0x061A},   {0x061C, 0x061C},  {0x064B, 0x065F},
        {0x0670, 0x0670}, {0x06D6, 0x06DC}, {0x06DF, 0x06E4},   {0x06E7, 0x06E8},  {0x06EA, 0x06ED},
        {0x0900, 0x0902}, {0x093A, 0x093A}, {0x093C, 0x093C},   {0x0941, 0x0948},  {0x094D, 0x094D},
        {0x0951, 0x0957}, {0x0962, 0x0963}, {0x0981, 0x0981},   {0x09BC, 0x09BC},  {0x09C1, 0x09C4},
        {0x09CD, 0x09CD}, {0x0B82, 0x0B82}, {0x0BC0, 0x0BC0},   {0x0BCD, 0x0BCD},  {0x0E31, 0x0E31},
        {0x0E34, 0x0E3A}, {0x0E47, 0x0E4E}, {0x0EB1, 0x0EB1},   {0x0EB4, 0x0EBC},  {0x0EC8, 0x0ECD},
        {0x1160, 0x11FF}, {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF},   {0x200B, 0x200F},  {0x202A, 0x202E},
        {0x2060, 0x206F}, {0x20D0, 0x20FF}, {0x302A, 0x302D},   {0x3099, 0x309A},  {0xFE00, 0xFE0F},
        {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0x1F3FB, 0x1F3FF}, {0xE0100, 0xE01EF}};
    static const struct span two[] = {
        {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},  {0x23E9, 0x23EC},
        {0x23F0, 0x23F0},   {0x23F3, 0x23F3},   {0x25FD, 0x25FE},  {0x2614, 0x2615},
        {0x2648, 0x2653},   {0x267F, 0x267F},   {0x2693, 0x2693},  {0x26A1, 0x26A1},
        {0x26AA, 0x26AB},   {0x26BD, 0x26BE},   {0x26C4, 0x26C5},  {0x26D4, 0x26D4},
        {0x26EA, 0x26EA},   {0x26F2, 0x26F3},   {0x26F5, 0x26F5},  {0x26FA, 0x26FA},
        {0x26FD, 0x26FD},   {0x2705, 0x2705},   {0x270A, 0x270B},  {0x2728, 0x2728},
        {0x274C, 0x274C},   {0x274E, 0x274E},   {0x2753, 0x2757},  {0x2795, 0x2797},
        {0x2B1B, 0x2B1C},   {0x2B50, 0x2B50},   {0x2B55, 0x2B55},  {0x2E80, 0x303E},
        {0x3041, 0xA4CF},   {0xA960, 0xA97F},   {0xAC00, 0xD7A3},  {0xF900, 0xFAFF},
        {0xFE30, 0xFE6F},   {0xFF00, 0xFF60},   {0xFFE0, 0xFFE6},  {0x1F300, 0x1F64F},
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
