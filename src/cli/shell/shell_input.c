/*
 * cli/shell/shell_input.c: where a statement or a command ends. See shell_input.h.
 *
 * The first word decides what a unit is:
 *
 *     SELECT, INSERT, ...   PartiQL, up to a ; that is in no string, quoted name or comment
 *     \                     a command of the shell, up to the end of the line
 *     any other             a command of holdfast, up to the end of the line or a ; that is not quoted
 *
 * What always holds:
 *
 *  (1) Each byte is looked at once, however many lines a unit has: `scanned` and `state` say where the
 *      scanner was.
 *  (2) Between units there are blanks, empty statements and comments; none of them is kept.
 */
#include "cli/shell/shell_input.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_BYTES = 4096 };

static const char *const statement_words[] = {"SELECT", "INSERT", "UPDATE", "DELETE",
                                              "EXISTS", "BEGIN",  "COMMIT", "ROLLBACK"};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n' || c == '\f' || c == '\v';
}

char *hf__shell_input_copy(struct hf_str text)
{
    char *copy = malloc(text.len + 1);

    if (!copy)
        return NULL;
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    return copy;
}

bool hf__shell_input_same(struct hf_str text, const char *word)
{
    assert(word);
    if (text.len != strlen(word))
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (tolower((unsigned char)text.ptr[i]) != tolower((unsigned char)word[i]))
            return false;
    return true;
}

bool hf__shell_input_begins(struct hf_str text, const char *word)
{
    size_t len = strlen(word);

    if (text.len < len || !hf__shell_input_same(hf_str_of(text.ptr, len), word))
        return false;
    return text.len == len ||
           !(isalnum((unsigned char)text.ptr[len]) || text.ptr[len] == '_' || text.ptr[len] == '-');
}

bool hf__shell_input_is_statement(struct hf_str text)
{
    for (size_t i = 0; i < sizeof(statement_words) / sizeof(statement_words[0]); i++)
        if (hf__shell_input_begins(text, statement_words[i]))
            return true;
    return false;
}

/* What was scanned is a beginning of what is pending. */
static void input_check(const struct shell_input *input)
{
    assert(input->from <= input->to && input->to <= input->cap);
    assert(input->scanned >= input->from && input->scanned <= input->to);
    assert(input->ptr || !input->cap);
    assert(input->line > 0 || input->to == 0);
}

/* ---- the text ------------------------------------------------------------------------------- */

bool hf__shell_input_add(struct shell_input *input, struct hf_str line)
{
    size_t len = input->to - input->from, need = len + line.len + 1;

    if (input->from) {
        memmove(input->ptr, input->ptr + input->from, len);
        input->scanned -= input->from;
        input->from = 0;
        input->to = len;
    }
    if (need > input->cap) {
        size_t cap = need * 2 > FIRST_BYTES ? need * 2 : (size_t)FIRST_BYTES;
        char *ptr = realloc(input->ptr, cap);

        if (!ptr)
            return false;
        input->ptr = ptr;
        input->cap = cap;
    }
    assert(input->to + line.len + 1 <= input->cap && input->scanned <= input->to);
    if (line.len)
        memcpy(input->ptr + input->to, line.ptr, line.len);
    input->to += line.len;
    input->ptr[input->to++] = '\n';
    if (!input->line)
        input->line = 1;
    input_check(input);
    return true;
}

struct hf_str hf__shell_input_pending(const struct shell_input *input)
{
    return hf_str_of(input->ptr ? input->ptr + input->from : "", input->to - input->from);
}

/* What is before `at` was taken. */
static void input_advance(struct shell_input *input, size_t at)
{
    assert(at >= input->from && at <= input->to);
    for (; input->from < at; input->from++)
        input->line += input->ptr[input->from] == '\n';
    input->scanned = at;
    input->state = SCAN_PLAIN;
    input_check(input);
}

void hf__shell_input_clear(struct shell_input *input)
{
    input_advance(input, input->to);
}

void hf__shell_input_free(struct shell_input *input)
{
    free(input->ptr);
    *input = (struct shell_input){0};
}

/* ---- the scanner ---------------------------------------------------------------------------- */

static bool pair_at(const struct shell_input *input, size_t at, const char *pair)
{
    assert(pair[0] && pair[1] && !pair[2]);
    return at + 1 < input->to && input->ptr[at] == pair[0] && input->ptr[at + 1] == pair[1];
}

/* Go past one byte of a statement, or two. Quotes are doubled inside of strings, which needs no care: the
 * string ends and begins again. */
static size_t statement_step(struct shell_input *input, size_t at)
{
    char c = input->ptr[at];

    assert(at >= input->from && at < input->to);
    switch (input->state) {
    case SCAN_SINGLE:
    case SCAN_DOUBLE:
        if (c == (input->state == SCAN_SINGLE ? '\'' : '"'))
            input->state = SCAN_PLAIN;
        return 1;
    case SCAN_COMMENT:
        if (c == '\n')
            input->state = SCAN_PLAIN;
        return 1;
    case SCAN_BLOCK:
        if (!pair_at(input, at, "*/"))
            return 1;
        input->state = SCAN_PLAIN;
        return 2;
    case SCAN_PLAIN:
        break;
    }
    if (c == '\'')
        input->state = SCAN_SINGLE;
    else if (c == '"')
        input->state = SCAN_DOUBLE;
    else if (pair_at(input, at, "--") || pair_at(input, at, "/*")) {
        input->state = c == '-' ? SCAN_COMMENT : SCAN_BLOCK;
        return 2;
    }
    return 1;
}

/* The same for a command, whose quotes are those of a shell. */
static size_t command_step(struct shell_input *input, size_t at)
{
    char c = input->ptr[at];
    bool escapes = c == '\\' && input->state != SCAN_SINGLE && at + 1 < input->to;

    assert(at >= input->from && at < input->to);
    assert(input->state <= SCAN_DOUBLE);
    if (escapes)
        return 2;
    if (c == '\'' && input->state != SCAN_DOUBLE)
        input->state = input->state == SCAN_PLAIN ? SCAN_SINGLE : SCAN_PLAIN;
    else if (c == '"' && input->state != SCAN_SINGLE)
        input->state = input->state == SCAN_PLAIN ? SCAN_DOUBLE : SCAN_PLAIN;
    return 1;
}

static bool ends_unit(const struct shell_input *input, enum shell_unit_kind kind, size_t at)
{
    char c = input->ptr[at];

    if (kind == SHELL_META)
        return c == '\n';
    return input->state == SCAN_PLAIN && (c == ';' || (kind == SHELL_COMMAND && c == '\n'));
}

/* Go on to the end of the unit: false when it is not there yet. (1) */
static bool unit_scan(struct shell_input *input, enum shell_unit_kind kind, size_t *end)
{
    while (input->scanned < input->to) {
        if (ends_unit(input, kind, input->scanned)) {
            *end = input->scanned;
            return true;
        }
        if (kind == SHELL_META)
            input->scanned++;
        else
            input->scanned += kind == SHELL_STATEMENT ? statement_step(input, input->scanned)
                                                      : command_step(input, input->scanned);
    }
    return false;
}

/* Drop what is between units. False: nothing is left, or a comment that does not end. (2) */
static bool blank_skip(struct shell_input *input)
{
    while (input->from < input->to) {
        size_t at = input->from;

        if (is_blank(input->ptr[at]) || input->ptr[at] == ';') {
            input_advance(input, at + 1);
        } else if (pair_at(input, at, "--") || pair_at(input, at, "/*")) {
            const char *mark = input->ptr[at] == '-' ? "\n" : "*/";
            const char *end = memmem(input->ptr + at + 2, input->to - at - 2, mark, strlen(mark));

            if (!end)
                return false;
            input_advance(input, (size_t)(end - input->ptr) + strlen(mark));
        } else {
            return true;
        }
    }
    return false;
}

static enum shell_unit_kind unit_kind(const struct shell_input *input)
{
    if (input->ptr[input->from] == '\\')
        return SHELL_META;
    return hf__shell_input_is_statement(hf__shell_input_pending(input)) ? SHELL_STATEMENT
                                                                        : SHELL_COMMAND;
}

static struct hf_str text_trim(struct hf_str text)
{
    while (text.len && is_blank(text.ptr[text.len - 1]))
        text.len--;
    return text;
}

bool hf__shell_input_next(struct shell_input *input, struct shell_unit *unit)
{
    size_t end;

    /* (1) in the middle of a unit there is nothing to skip */
    if (input->scanned == input->from && !blank_skip(input))
        return false;
    unit->kind = unit_kind(input);
    if (!unit_scan(input, unit->kind, &end))
        return false;
    unit->line = input->line;
    unit->text = text_trim(hf_str_of(input->ptr + input->from, end - input->from));
    input_advance(input, end + 1);
    return true;
}

bool hf__shell_input_whole(const struct shell_input *input)
{
    struct shell_input copy = *input;
    struct shell_unit unit;

    while (hf__shell_input_next(&copy, &unit))
        ;
    return copy.from == copy.to;
}

bool hf__shell_input_last(struct shell_input *input, struct shell_unit *unit, bool *open)
{
    *open = false;
    if (input->from == input->to)
        return false;
    unit->kind = unit_kind(input);
    unit->line = input->line;
    unit->text = text_trim(hf__shell_input_pending(input));
    /* The comment of a last line has its end: each line has one. */
    *open = input->state != SCAN_PLAIN || pair_at(input, input->from, "/*");
    input_advance(input, input->to);
    return true;
}
