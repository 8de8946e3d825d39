/*
 * cli/frame/options_help.c: the help of a command, and what a shell may complete, from its table.
 *
 * The help has two columns: how an option is written, and what it does with, in brackets, its
 * default, its name in DynamoDB Local and its variable. A left side that is too long stands on a
 * line of its own.
 */
#include "cli/frame/options.h"

#include <string.h>

enum { LEFT_MAX = 160, CHOICES_MAX = 64, TEXT_MAX = 1024, TEXT_COLUMN = 27 };

/* ---- help ----------------------------------------------------------------------------------- */

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

void hf__options_wrap(FILE *out, const char *text, size_t indent, size_t column, size_t width)
{
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

static void write_left(char room[LEFT_MAX], const struct option_spec *spec)
{
    char letter[8] = "    ";
    char choices[CHOICES_MAX] = "";
    const char *value = spec->value;

    if (spec->letter)
        snprintf(letter, sizeof(letter), "-%c, ", spec->letter);
    if (spec->kind == OPTION_CHOICE) {
        snprintf(choices, sizeof(choices), "%s", spec->choices);
        for (char *at = choices; *at; at++)
            if (*at == ' ')
                *at = '|';
        value = choices;
    }
    snprintf(room, LEFT_MAX, "%s%s%s%s%s", letter, spec->name ? "--" : "-",
             spec->name ? spec->name : spec->local, value ? " " : "", value ? value : "");
}

static void write_text(char room[TEXT_MAX], const struct option_spec *spec)
{
    size_t len = (size_t)snprintf(room, TEXT_MAX, "%s", spec->text);

    if (spec->fallback && len < TEXT_MAX)
        len += (size_t)snprintf(room + len, TEXT_MAX - len, " [default: %s]", spec->fallback);
    if (spec->name && spec->local && len < TEXT_MAX)
        len += (size_t)snprintf(room + len, TEXT_MAX - len, " [also: -%s]", spec->local);
    if (spec->env && len < TEXT_MAX)
        snprintf(room + len, TEXT_MAX - len, " [variable: %s]", spec->env);
}

static void print_option(FILE *out, const char *left, const char *text, size_t width)
{
    size_t column = (size_t)fprintf(out, "  %s", left);

    if (column + 2 > TEXT_COLUMN) {
        fputc('\n', out);
        column = 0;
    }
    column += indent_to(out, TEXT_COLUMN - column);
    hf__options_wrap(out, text, TEXT_COLUMN, column, width);
}

void hf__options_help(FILE *out, const struct options_table *table, size_t width)
{
    fprintf(out, "Usage: holdfast %s%s%s%s\n\n", table->name, table->len ? " [options]" : "",
            table->operands ? " " : "", table->operands ? table->operands : "");
    hf__options_wrap(out, table->about, 0, 0, width);
    for (size_t i = 0; i < table->len; i++) {
        char left[LEFT_MAX];
        char text[TEXT_MAX];

        if (i == 0 || table->specs[i].heading)
            fprintf(out, "\n%s:\n", table->specs[i].heading ? table->specs[i].heading : "Options");
        write_left(left, &table->specs[i]);
        write_text(text, &table->specs[i]);
        print_option(out, left, text, width);
    }
    fprintf(out, "\nHelp:\n");
    print_option(out, "-h, --help", "Show this help. [also: -help]", width);
    if (table->examples_len)
        fprintf(out, "\nExamples:\n");
    for (size_t i = 0; i < table->examples_len; i++) {
        fprintf(out, "  %s\n      ", table->examples[i].command);
        hf__options_wrap(out, table->examples[i].text, 6, 6, width);
    }
    if (table->notes) {
        fputc('\n', out);
        hf__options_wrap(out, table->notes, 0, 0, width);
    }
}

/* ---- completion ----------------------------------------------------------------------------- */

static void completion_offer(FILE *out, const char *so_far, const char *dashes, const char *name)
{
    size_t dashes_len = strlen(dashes);
    size_t len = strlen(so_far);

    if (len < dashes_len ? strncmp(dashes, so_far, len) == 0
                         : strncmp(so_far, dashes, dashes_len) == 0 &&
                               strncmp(name, so_far + dashes_len, len - dashes_len) == 0)
        fprintf(out, "%s%s\n", dashes, name);
}

static void offer_values(FILE *out, const struct option_spec *spec, const char *so_far)
{
    if (spec->value && strcmp(spec->value, "FILE") == 0)
        fprintf(out, ":file\n");
    if (spec->value && strcmp(spec->value, "DIR") == 0)
        fprintf(out, ":dir\n");
    if (spec->kind != OPTION_CHOICE)
        return;
    for (const char *word = spec->choices; *word;) {
        size_t len = strcspn(word, " ");
        char choice[CHOICES_MAX];

        snprintf(choice, sizeof(choice), "%.*s", (int)len, word);
        completion_offer(out, so_far, "", choice);
        word += len;
        word += *word == ' ';
    }
}

void hf__options_complete(FILE *out, const struct options_table *table, size_t words_len,
                          const char *const *words)
{
    const char *last = words_len ? words[words_len - 1] : "";
    const struct option_spec *spec = NULL;
    const char *value = NULL;
    bool negated;

    for (size_t i = 0; i + 1 < words_len; i++)
        if (strcmp(words[i], "--") == 0) {
            if (table->operands && strstr(table->operands, "CMD"))
                fprintf(out, ":file\n");
            return;
        }
    if (words_len > 1)
        spec = hf__options_find(table, words[words_len - 2], &value, &negated);
    if (spec && !value && hf__options_takes_value(spec)) {
        offer_values(out, spec, last);
        return;
    }
    spec = hf__options_find(table, last, &value, &negated);
    if (spec && value) {
        offer_values(out, spec, value);
        return;
    }
    if (last[0] != '-') {
        if (table->operands && strstr(table->operands, "FILE"))
            fprintf(out, ":file\n");
        return;
    }
    for (size_t i = 0; i < table->len; i++) {
        if (table->specs[i].name)
            completion_offer(out, last, "--", table->specs[i].name);
        if (table->specs[i].local && last[1] != '\0')
            completion_offer(out, last, "-", table->specs[i].local);
    }
    completion_offer(out, last, "--", "help");
}
