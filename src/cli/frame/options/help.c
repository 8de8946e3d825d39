/*
 * cli/frame/options/help.c: the help of all commands. The first screen lists nouns, not commands, under the
 * headings of cli->groups: a hundred commands in a list are no help. See help.h.
 */
#include "cli/frame/options/help.h"

#include "cli/frame/output/text.h"

#include <assert.h>
#include <string.h>

enum { WORD_COLUMN = 16, MORE_COLUMN = 20, EXAMPLE_INDENT = 6 };

/* ---- entries -------------------------------------------------------------------------------- */

bool hf__help_is_of(const char *name, const char *word)
{
    size_t len = strlen(word);

    return strncmp(name, word, len) == 0 && name[len] == ' ';
}

static bool is_first_word(const char *name, struct hf_str word)
{
    return hf_str_equal(hf_str_of(name, strcspn(name, " ")), word);
}

static const struct cli_noun *noun_find(const struct cli *cli, const char *word)
{
    for (size_t i = 0; i < cli->nouns_len; i++)
        if (strcmp(cli->nouns[i].word, word) == 0)
            return &cli->nouns[i];
    return NULL;
}

struct hf_str hf__help_verbs(struct cli *cli, const char *word)
{
    struct hf_str verbs = HF_STR("");

    for (size_t i = 0; i < cli->commands_len; i++)
        if (cli->commands[i].summary && hf__help_is_of(cli->commands[i].name, word))
            verbs = hf_scope_format(cli->scope, "%.*s%s%s", HF_FMT(verbs), verbs.len ? ", " : "",
                                    cli->commands[i].name + strlen(word) + 1);
    return verbs;
}

/* The entry of a word, unless there is none, or it is there already. */
static void entry_add(struct cli *cli, struct hf_str word, size_t group, struct help_entry *entries,
                      size_t *len)
{
    const struct cli_command *first = NULL;
    struct help_entry entry = {.group = group};

    for (size_t i = 0; i < *len; i++)
        if (hf_str_equal(hf_str_from(entries[i].word), word))
            return;
    for (size_t i = 0; i < cli->commands_len && !first; i++)
        if (cli->commands[i].summary && is_first_word(cli->commands[i].name, word))
            first = &cli->commands[i];
    if (!first)
        return;
    entry.word = hf_scope_copy(cli->scope, word).ptr;
    if (!entry.word)
        return;
    entry.command = first;
    entry.noun = noun_find(cli, entry.word);
    if (entry.noun && entry.noun->summary)
        entry.summary = entry.noun->summary;
    else if (strcmp(first->name, entry.word) == 0)
        entry.summary = first->summary;
    else
        entry.summary = hf__help_verbs(cli, entry.word).ptr;
    if (!entry.summary)
        entry.summary = "";
    entries[(*len)++] = entry;
}

const struct help_entry *hf__help_entries(struct cli *cli, size_t *len)
{
    struct help_entry *entries =
        hf_scope_alloc(cli->scope, (cli->commands_len + 1) * sizeof(*entries));

    *len = 0;
    if (!entries)
        return NULL;
    for (size_t group = 0; group < cli->groups_len; group++)
        for (const char *at = cli->groups[group].nouns; *at;) {
            size_t word = strcspn(at, " ");

            entry_add(cli, hf_str_of(at, word), group, entries, len);
            at += word + (at[word] == ' ');
        }
    for (size_t i = 0; i < cli->commands_len; i++)
        if (cli->commands[i].summary)
            entry_add(cli, hf_str_of(cli->commands[i].name, strcspn(cli->commands[i].name, " ")),
                      cli->groups_len - 1, entries, len);
    assert(*len <= cli->commands_len);
    return entries;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void print_heading(struct cli *cli, const char *heading)
{
    fputc('\n', cli->out);
    hf__texts_heading(cli->out, heading, cli->styled);
}

/* Where summaries begin: behind the longest name of these commands; "" is all of them. */
static size_t name_column(const struct cli *cli, const char *noun)
{
    size_t column = WORD_COLUMN;

    for (size_t i = 0; i < cli->commands_len; i++) {
        const struct cli_command *command = &cli->commands[i];

        if (command->summary && (!*noun || hf__help_is_of(command->name, noun)) &&
            strlen(command->name) + 4 > column)
            column = strlen(command->name) + 4;
    }
    return column;
}

int hf__help_print_noun(struct cli *cli, const char *noun)
{
    const struct cli_noun *known = noun_find(cli, noun);
    size_t column = name_column(cli, noun);

    fprintf(cli->out, "Usage: holdfast %s COMMAND [options]\n", noun);
    if (known && known->about) {
        fputc('\n', cli->out);
        hf__texts_print(cli->out, known->about, cli->width);
    }
    print_heading(cli, "Commands");
    for (size_t i = 0; i < cli->commands_len; i++)
        if (cli->commands[i].summary && hf__help_is_of(cli->commands[i].name, noun))
            hf__texts_columns(cli->out, cli->commands[i].name, cli->commands[i].summary, column,
                              cli->width);
    print_heading(cli, "Examples");
    for (size_t i = 0; i < cli->commands_len; i++) {
        const struct cli_command *command = &cli->commands[i];

        if (!command->summary || !hf__help_is_of(command->name, noun) || !command->options ||
            !command->options->examples_len)
            continue;
        fprintf(cli->out, "  %s\n%*s", command->options->examples[0].command, EXAMPLE_INDENT, "");
        hf__texts_wrap(cli->out, command->options->examples[0].text, EXAMPLE_INDENT, EXAMPLE_INDENT,
                       cli->width);
    }
    fprintf(cli->out, "\nRun 'holdfast %s COMMAND --help' for the options of a command.\n", noun);
    return hf__cli_flushed(cli, CLI_OK);
}

/* `holdfast help commands`: all of them. */
static int print_commands(struct cli *cli)
{
    size_t column = name_column(cli, ""), len, group = SIZE_MAX;
    const struct help_entry *entries = hf__help_entries(cli, &len);

    if (!entries)
        return hf__cli_fail(cli, "", CLI_FAILED, "out of memory");
    for (size_t i = 0; i < len; i++) {
        if (entries[i].group != group) {
            if (group != SIZE_MAX)
                fputc('\n', cli->out);
            group = entries[i].group;
            hf__texts_heading(cli->out, cli->groups[group].heading, cli->styled);
        }
        for (size_t j = 0; j < cli->commands_len; j++)
            if (cli->commands[j].summary &&
                is_first_word(cli->commands[j].name, hf_str_from(entries[i].word)))
                hf__texts_columns(cli->out, cli->commands[j].name, cli->commands[j].summary, column,
                                  cli->width);
    }
    return hf__cli_flushed(cli, CLI_OK);
}

static void print_more(struct cli *cli, const char *left, const char *summary)
{
    hf__texts_columns(cli->out, left, summary, MORE_COLUMN, cli->width);
}

int hf__help_print(struct cli *cli)
{
    size_t len, next = 0;
    const struct help_entry *entries = hf__help_entries(cli, &len);

    if (!entries)
        return hf__cli_fail(cli, "", CLI_FAILED, "out of memory");
    fprintf(cli->out, "Usage: holdfast COMMAND [options]\n\n");
    hf__texts_print(cli->out, hf__help_about, cli->width);
    fputc('\n', cli->out);
    hf__texts_print(cli->out,
                    "Commands use the database at http://127.0.0.1:8000, which 'holdfast serve' "
                    "starts. To use another one, set --db or HOLDFAST_DB to http://HOST:PORT, "
                    "dynamodb://REGION or embedded:DIR (a directory).",
                    cli->width);
    for (size_t group = 0; group < cli->groups_len; group++) {
        print_heading(cli, cli->groups[group].heading);
        for (; next < len && entries[next].group == group; next++)
            hf__texts_columns(cli->out, entries[next].word, entries[next].summary, WORD_COLUMN,
                              cli->width);
    }
    assert(next == len);
    hf__texts_columns(cli->out, "version", "show the version and the build options", WORD_COLUMN,
                      cli->width);
    print_heading(cli, "More");
    print_more(cli, "COMMAND --help", "the options of a command, or the commands of a noun");
    print_more(cli, "help commands", "all commands");
    for (size_t i = 0; i < hf__help_topics_len; i++) {
        struct hf_str left = hf_scope_format(cli->scope, "help %s", hf__help_topics[i].word);

        print_more(cli, left.ptr ? left.ptr : "", hf__help_topics[i].summary);
    }
    return hf__cli_flushed(cli, CLI_OK);
}

bool hf__help_find(struct cli *cli, const char *word, int *ends)
{
    if (strcmp(word, "commands") == 0) {
        *ends = print_commands(cli);
        return true;
    }
    for (size_t i = 0; i < hf__help_topics_len; i++)
        if (strcmp(hf__help_topics[i].word, word) == 0) {
            hf__texts_print(cli->out, hf__help_topics[i].text, cli->width);
            *ends = hf__cli_flushed(cli, CLI_OK);
            return true;
        }
    return false;
}
