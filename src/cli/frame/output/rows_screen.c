/*
 * cli/frame/output/rows_screen.c: a list on a terminal: a table with a heading, as wide as the terminal at most.
 *
 * Rows wait until ROWS_HELD_MAX of them are there or the list ends; then it is known how wide their
 * columns are. A column that says nothing in any of these rows, and may be left out (`sparse`), is.
 * What is too wide for the terminal gets narrower in two steps:
 *
 *     texts that may be shortened (`cut`) are, the widest column first, down to CUT_MIN
 *     a row becomes a block of lines, a field each, with an empty line between blocks
 *
 * so ids and names can always be read and copied whole. When the next rows need other columns, the
 * heading is printed again.
 */
#include "cli/frame/output/rows.h"

#include <assert.h>
#include <string.h>

enum { GAP = 2, CUT_MIN = 12 };

/* How rows are shown. */
struct layout {
    size_t widths[ROWS_FIELDS_MAX]; /* 0: the column is left out */
    bool blocks;
};

static bool says_nothing(struct hf_str text)
{
    return hf_str_equal(text, HF_STR("-")) || hf_str_equal(text, HF_STR("0")) ||
           hf_str_equal(text, HF_STR("false"));
}

static size_t max_size(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Names may be those of attributes, which are stored data. */
static size_t name_width(const struct rows_field *field)
{
    return hf__rows_width(hf_str_from(field->name));
}

/* How wide a column has to be; 0: it is left out. */
static size_t column_width(const struct rows *rows, size_t column)
{
    const struct rows_field *field = &rows->columns[column];
    size_t width = max_size(name_width(field), 1);
    bool says = !field->sparse;

    assert(column < rows->columns_len);
    for (size_t row = 0; row < rows->held_len; row++) {
        width = max_size(width, hf__rows_width(rows->held[row][column]));
        says = says || !says_nothing(rows->held[row][column]);
    }
    return says ? width : 0;
}

static size_t whole_width(const struct rows *rows, const struct layout *layout)
{
    size_t sum = 0;

    assert(rows->columns_len <= ROWS_FIELDS_MAX);
    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i])
            sum += layout->widths[i] + (sum ? GAP : 0);
    return sum;
}

/* The widest column that may be narrower; columns_len: there is none. */
static size_t widest_to_cut(const struct rows *rows, const struct layout *layout)
{
    size_t widest = rows->columns_len;

    assert(rows->columns_len <= ROWS_FIELDS_MAX);
    for (size_t i = 0; i < rows->columns_len; i++)
        if (rows->columns[i].cut && layout->widths[i] > CUT_MIN &&
            (widest == rows->columns_len || layout->widths[i] > layout->widths[widest]))
            widest = i;
    return widest;
}

/* Is there room for these rows in the columns of the last heading? */
static bool fits_heading(const struct rows *rows, const struct layout *layout)
{
    if (!rows->widths[0])
        return false;
    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i] > rows->widths[i])
            return false;
    return true;
}

static struct layout layout_of(const struct rows *rows)
{
    struct layout layout = {.blocks = rows->cli->expanded};
    size_t screen = rows->cli->columns, whole;

    for (size_t i = 0; i < rows->columns_len; i++)
        layout.widths[i] = column_width(rows, i);
    if (fits_heading(rows, &layout))
        memcpy(layout.widths, rows->widths, sizeof(layout.widths));
    while (!layout.blocks && screen && (whole = whole_width(rows, &layout)) > screen) {
        size_t column = widest_to_cut(rows, &layout);

        assert(column <= rows->columns_len);
        if (column == rows->columns_len) {
            layout.blocks = true;
            break;
        }
        layout.widths[column] = layout.widths[column] > whole - screen + CUT_MIN
                                    ? layout.widths[column] - (whole - screen)
                                    : (size_t)CUT_MIN;
    }
    return layout;
}

static void print_cell(FILE *out, struct hf_str text, size_t width, bool last)
{
    size_t shown = hf__rows_print_cut(out, text, width);

    assert(width > 0);
    if (!last)
        fprintf(out, "%*s", (int)(GAP + (width > shown ? width - shown : 0)), "");
}

static size_t last_column(const struct rows *rows, const struct layout *layout)
{
    size_t last = 0;

    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i])
            last = i;
    return last;
}

static void print_heading(struct rows *rows, const struct layout *layout)
{
    FILE *out = rows->cli->out;
    size_t last = last_column(rows, layout);

    if (rows->headed && memcmp(rows->widths, layout->widths, sizeof(rows->widths)) == 0)
        return;
    if (rows->headed)
        fputc('\n', out);
    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i])
            print_cell(out, hf_str_from(rows->columns[i].name), layout->widths[i], i == last);
    fputc('\n', out);
    rows->headed = true;
    memcpy(rows->widths, layout->widths, sizeof(rows->widths));
}

static void print_row(struct rows *rows, const struct layout *layout, size_t row)
{
    FILE *out = rows->cli->out;
    size_t last = last_column(rows, layout);

    assert(row < rows->held_len);
    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i])
            print_cell(out, rows->held[row][i], layout->widths[i], i == last);
    fputc('\n', out);
}

static void print_block(struct rows *rows, const struct layout *layout, size_t row)
{
    FILE *out = rows->cli->out;
    size_t names = 0;

    assert(row < rows->held_len);
    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i])
            names = max_size(names, name_width(&rows->columns[i]));
    if (rows->headed)
        fputc('\n', out);
    rows->headed = true;
    for (size_t i = 0; i < rows->columns_len; i++)
        if (layout->widths[i]) {
            print_cell(out, hf_str_from(rows->columns[i].name), names, false);
            hf__rows_print(out, rows->held[row][i]);
            fputc('\n', out);
        }
}

void hf__rows_screen_print(struct rows *rows)
{
    struct layout layout;

    if (!rows->held_len)
        return;
    layout = layout_of(rows);
    if (!layout.blocks)
        print_heading(rows, &layout);
    for (size_t row = 0; row < rows->held_len; row++)
        if (layout.blocks)
            print_block(rows, &layout, row);
        else
            print_row(rows, &layout, row);
    rows->held_len = 0;
    hf_scope_reset(rows->scope);
}

bool hf__rows_screen_add(struct rows *rows, const struct rows_field *fields, size_t len)
{
    size_t column = 0;

    if (!rows->scope)
        rows->scope = hf_scope_new(hf_scope_env(rows->cli->scope));
    if (!rows->scope)
        return false;
    for (size_t i = 0; i < len; i++) {
        struct hf_str text = fields[i].text.ptr ? fields[i].text : HF_STR("-");

        if (hf__rows_is_hidden(&fields[i]))
            continue;
        text = hf_scope_copy(rows->scope, text);
        rows->held[rows->held_len][column] = text.ptr ? text : HF_STR("-");
        rows->columns[column++] = fields[i];
    }
    rows->columns_len = column;
    rows->held_len++;
    if (rows->held_len == ROWS_HELD_MAX)
        hf__rows_screen_print(rows);
    return true;
}
