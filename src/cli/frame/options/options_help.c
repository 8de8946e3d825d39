/*
 * cli/frame/options/options_help.c: the help of a command, and what a shell may complete, from its table.
 *
 * The help has two columns: how an option is written, and what it does with, in brackets, its
 * default, its name in DynamoDB Local and its variable. A left side that is too long stands on a
 * line of its own.
 */
#include "cli/frame/options/options.h"

#include "cli/frame/output/text.h"

#include <string.h>

enum { LEFT_MAX = 160, CHOICES_MAX = 64, TEXT_MAX = 1024, TEXT_COLUMN = 27 };

/* ---- help ----------------------------------------------------------------------------------- */

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

void hf__options_help(FILE *out, const struct options_table *table, size_t width, bool bold)
{
    fprintf(out, "Usage: holdfast %s%s%s%s\n\n", table->name, table->len ? " [options]" : "",
            table->operands ? " " : "", table->operands ? table->operands : "");
    hf__texts_print(out, table->about, width);
    for (size_t i = 0; i < table->len; i++) {
        char left[LEFT_MAX];
        char text[TEXT_MAX];

        if (i == 0 || table->specs[i].heading) {
            fputc('\n', out);
            hf__texts_heading(out, table->specs[i].heading ? table->specs[i].heading : "Options",
                              bold);
        }
        write_left(left, &table->specs[i]);
        write_text(text, &table->specs[i]);
        hf__texts_columns(out, left, text, TEXT_COLUMN, width);
    }
    fputc('\n', out);
    hf__texts_heading(out, "Help", bold);
    hf__texts_columns(out, "-h, --help", "Show this help. [also: -help]", TEXT_COLUMN, width);
    if (table->examples_len) {
        fputc('\n', out);
        hf__texts_heading(out, "Examples", bold);
    }
    for (size_t i = 0; i < table->examples_len; i++) {
        fprintf(out, "  %s\n      ", table->examples[i].command);
        hf__texts_wrap(out, table->examples[i].text, 6, 6, width);
    }
    if (table->notes) {
        fputc('\n', out);
        hf__texts_print(out, table->notes, width);
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
    if (spec->name && strcmp(spec->name, "table") == 0)
        fprintf(out, ":table\n");
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

/* How many of the words are neither options nor their values. */
static size_t count_operands(const struct options_table *table, size_t words_len,
                             const char *const *words)
{
    size_t count = 0;

    for (size_t i = 0; i < words_len; i++) {
        const char *value;
        bool negated;
        const struct option_spec *spec = hf__options_find(table, words[i], &value, &negated);

        if (spec)
            i += !value && hf__options_takes_value(spec);
        else if (words[i][0] != '-')
            count++;
    }
    return count;
}

/* The operand at `place` of "TABLE KEY [RANGE-KEY]", without brackets; one with dots is repeated. */
static struct hf_str operand_at(const char *operands, size_t place)
{
    struct hf_str found = {0};

    for (const char *at = operands ? operands : ""; *at;) {
        size_t len = strcspn(at, " ");
        struct hf_str word = {at, len};

        while (word.len && (word.ptr[0] == '[' || word.ptr[word.len - 1] == ']')) {
            word.ptr += word.ptr[0] == '[';
            word.len--;
        }
        if (hf_str_equal(word, HF_STR("--")))
            break;
        found = word;
        if (place-- == 0 || (len > 3 && memcmp(word.ptr + word.len - 3, "...", 3) == 0))
            return found;
        at += len + (at[len] == ' ');
    }
    return (struct hf_str){0};
}

/* An operand in small letters is a choice, as "bash|zsh|fish". */
static void offer_operand(FILE *out, const struct options_table *table, size_t place,
                          const char *so_far)
{
    struct hf_str operand = operand_at(table->operands, place);

    for (size_t at = 0; at < operand.len;) {
        char word[CHOICES_MAX];
        size_t len = 0;

        while (at + len < operand.len && operand.ptr[at + len] != '|')
            len++;
        snprintf(word, sizeof(word), "%.*s", (int)len, operand.ptr + at);
        if (strncmp(word, "FILE", 4) == 0)
            fprintf(out, ":file\n");
        else if (strcmp(word, "DIR") == 0)
            fprintf(out, ":dir\n");
        else if (strcmp(word, "TABLE") == 0)
            fprintf(out, ":table\n");
        else if (word[0] >= 'a' && word[0] <= 'z')
            completion_offer(out, so_far, "", word);
        at += len + 1;
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
        offer_operand(out, table, count_operands(table, words_len ? words_len - 1 : 0, words),
                      last);
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
