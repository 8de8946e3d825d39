/*
 * cli/frame/options/manual.c: the manual pages of section 1, from the tables of commands and options. The build
 * runs `holdfast manual DIR`, so no page can be stale, and nobody writes one by hand.
 *
 * holdfast.1 has the groups, the shared options and the topics. holdfast-NOUN.1 has the commands of a
 * noun: an option that all of them have is described once, under "Common options".
 *
 * The pages use the macros of man(7), which every reader of manuals has. What always holds:
 *
 *  (1) Texts are only text to roff: hf__manual_escape() writes every character that has a meaning to
 *      it as an escape, and no line of a text begins with a dot.
 *  (2) Pages depend on the tables and the version alone: no date, so builds can be repeated.
 */
#include "cli/frame/options/manual.h"

#include "cli/frame/command.h"
#include "cli/frame/options/help.h"
#include "cli/frame/output/text.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum { LINE_COLUMNS = 76, EXAMPLE_INDENT = 4 };

/* ---- roff ----------------------------------------------------------------------------------- */

static void escape_char(FILE *out, char c)
{
    switch (c) {
    case '\\':
        fputs("\\e", out);
        break;
    case '-': /* a hyphen may become another character */
        fputs("\\-", out);
        break;
    case '\'':
        fputs("\\(aq", out);
        break;
    case '"':
        fputs("\\(dq", out);
        break;
    case '`':
        fputs("\\(ga", out);
        break;
    case '^':
        fputs("\\(ha", out);
        break;
    case '~':
        fputs("\\(ti", out);
        break;
    default:
        fputc(c, out);
    }
}

void hf__manual_escape(FILE *out, struct hf_str text)
{
    if (text.len && text.ptr[0] == '.')
        fputs("\\&", out);
    for (size_t i = 0; i < text.len; i++)
        escape_char(out, text.ptr[i]);
}

static void write_escaped(FILE *out, const char *text)
{
    hf__manual_escape(out, hf_str_from(text));
}

/* In a font: 'B' or 'I'. */
static void write_font(FILE *out, char font, struct hf_str text)
{
    fprintf(out, "\\f%c", font);
    hf__manual_escape(out, text);
    fputs("\\fP", out);
}

/* How much of a word is the name of an option, such as "--port": 0, if it is none. */
static size_t option_len(struct hf_str word)
{
    size_t len = 2;

    if (word.len < 3 || word.ptr[0] != '-' || word.ptr[1] != '-')
        return 0;
    while (len < word.len &&
           (word.ptr[len] == '-' || (word.ptr[len] >= 'a' && word.ptr[len] <= 'z')))
        len++;
    return len > 2 ? len : 0;
}

/* Text that is filled: names of options in bold, lines of a readable length. */
static void write_filled(FILE *out, struct hf_str text)
{
    size_t column = 0;

    for (size_t at = 0; at < text.len;) {
        struct hf_str word = {text.ptr + at, 0};
        size_t bold;

        if (text.ptr[at] == ' ') {
            at++;
            continue;
        }
        while (at + word.len < text.len && word.ptr[word.len] != ' ')
            word.len++;
        if (column && column + 1 + word.len > LINE_COLUMNS) {
            fputc('\n', out);
            column = 0;
        } else if (column) {
            fputc(' ', out);
            column++;
        }
        bold = option_len(word);
        if (bold)
            write_font(out, 'B', hf_str_of(word.ptr, bold));
        hf__manual_escape(out, hf_str_of(word.ptr + bold, word.len - bold));
        column += word.len;
        at += word.len;
    }
    fputc('\n', out);
}

/* A text of a table. */
static void write_text(FILE *out, const char *text)
{
    struct text_block block;
    bool literal = false;

    while (hf__texts_next(&text, &block)) {
        if (literal && block.kind != TEXT_LITERAL) {
            fputs(".fi\n.RE\n", out);
            literal = false;
        }
        switch (block.kind) {
        case TEXT_PARAGRAPH:
            fputs(".PP\n", out);
            write_filled(out, block.text);
            break;
        case TEXT_ITEM:
            fputs(".TP\n", out);
            write_font(out, 'B', block.term);
            fputc('\n', out);
            write_filled(out, block.text);
            break;
        case TEXT_LITERAL:
            if (!literal)
                fprintf(out, ".PP\n.RS %d\n.nf\n", EXAMPLE_INDENT);
            literal = true;
            hf__manual_escape(out, block.text);
            fputc('\n', out);
            break;
        }
    }
    if (literal)
        fputs(".fi\n.RE\n", out);
}

static void write_reference(FILE *out, const char *noun, const char *end)
{
    fputs("\\fBholdfast", out);
    if (*noun) {
        fputs("\\-", out);
        write_escaped(out, noun);
    }
    fprintf(out, "\\fP(1)%s\n", end);
}

static void write_title(FILE *out, const char *noun, const char *summary)
{
    fputs(".\\\" Made from the tables of options, by `holdfast manual`.\n.TH HOLDFAST", out);
    if (*noun) {
        fputs("\\-", out);
        for (const char *at = noun; *at; at++)
            escape_char(out, *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A') : *at);
    }
    fprintf(out, " 1 \"\" \"holdfast %s\" \"User commands\"\n.ad l\n.nh\n.SH NAME\nholdfast",
            hf_version());
    if (*noun) {
        fputs("\\-", out);
        write_escaped(out, noun);
    }
    fputs(" \\- ", out);
    write_escaped(out, summary);
    fputc('\n', out);
}

/* ---- options -------------------------------------------------------------------------------- */

/* The value as it is written: with a choice all of them. */
static void write_value(FILE *out, const struct option_spec *spec)
{
    if (spec->kind != OPTION_CHOICE) {
        if (spec->value) {
            fputc(' ', out);
            write_font(out, 'I', hf_str_from(spec->value));
        }
        return;
    }
    fputc(' ', out);
    for (const char *at = spec->choices; *at;) {
        size_t len = strcspn(at, " ");

        write_font(out, 'B', hf_str_of(at, len));
        at += len;
        if (*at == ' ') {
            fputc('|', out);
            at++;
        }
    }
}

static void write_option(FILE *out, const struct option_spec *spec)
{
    fputs(".TP\n", out);
    if (spec->letter)
        fprintf(out, "\\fB\\-%c\\fP, ", spec->letter);
    fputs(spec->name ? "\\fB\\-\\-" : "\\fB\\-", out);
    write_escaped(out, spec->name ? spec->name : spec->local);
    fputs("\\fP", out);
    write_value(out, spec);
    fputc('\n', out);
    write_filled(out, hf_str_from(spec->text));
    if (spec->fallback) {
        fputs("Default: ", out);
        write_escaped(out, spec->fallback);
        fputs(".\n", out);
    }
    if (spec->name && spec->local) {
        fputs("Also ", out);
        fputs("\\fB\\-", out);
        write_escaped(out, spec->local);
        fputs("\\fP.\n", out);
    }
    if (spec->env) {
        fputs("Variable: ", out);
        write_escaped(out, spec->env);
        fputs(".\n", out);
    }
}

static bool is_same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool is_same_option(const struct option_spec *a, const struct option_spec *b)
{
    return a->kind == b->kind && a->letter == b->letter && is_same_text(a->name, b->name) &&
           is_same_text(a->local, b->local) && is_same_text(a->value, b->value) &&
           is_same_text(a->text, b->text) && is_same_text(a->fallback, b->fallback) &&
           is_same_text(a->env, b->env) && is_same_text(a->choices, b->choices);
}

/* ---- the page of a noun --------------------------------------------------------------------- */

/* A noun and its commands. */
struct page {
    struct cli *cli;
    FILE *out;
    const struct help_entry *entry;
    const struct cli_command **commands;
    size_t len;
    bool alone; /* one command, which has no other word */
};

/* Do all commands have it, and are there several? */
static bool is_common(const struct page *page, const struct option_spec *spec)
{
    for (size_t i = 0; i < page->len; i++) {
        const struct options_table *table = page->commands[i]->options;
        bool found = false;

        for (size_t j = 0; j < table->len && !found; j++)
            found = is_same_option(&table->specs[j], spec);
        if (!found)
            return false;
    }
    return page->len > 1;
}

/* How a command is called. */
static void write_usage(FILE *out, const struct options_table *table)
{
    fputs("\\fBholdfast ", out);
    write_escaped(out, table->name);
    fputs("\\fP", out);
    if (table->len)
        fputs(" [\\fIoptions\\fP]", out);
    if (table->operands) {
        fputc(' ', out);
        write_font(out, 'I', hf_str_from(table->operands));
    }
    fputc('\n', out);
}

static void write_synopsis(const struct page *page)
{
    fputs(".SH SYNOPSIS\n.nf\n", page->out);
    for (size_t i = 0; i < page->len; i++)
        write_usage(page->out, page->commands[i]->options);
    fputs(".fi\n", page->out);
}

/* The options of one command that others do not share, under their headings. */
static void write_options(const struct page *page, const struct options_table *table)
{
    const char *heading = page->alone ? "Options" : "", *written = heading;

    for (size_t i = 0; i < table->len; i++) {
        if (table->specs[i].heading)
            heading = table->specs[i].heading;
        if (is_common(page, &table->specs[i]))
            continue;
        if (strcmp(written, heading) != 0) {
            fputs(page->alone ? ".SS " : ".PP\n\\fI", page->out);
            write_escaped(page->out, heading);
            fputs(page->alone ? "\n" : ":\\fP\n", page->out);
            written = heading;
        }
        write_option(page->out, &table->specs[i]);
    }
}

static void write_command(const struct page *page, const struct options_table *table)
{
    if (!page->alone) {
        fputs(".SS holdfast ", page->out);
        write_escaped(page->out, table->name);
        fputc('\n', page->out);
    }
    write_text(page->out, table->about);
    if (page->alone)
        fputs(".SH OPTIONS\n", page->out);
    write_options(page, table);
    if (table->notes) {
        if (page->alone)
            fputs(".SH NOTES\n", page->out);
        write_text(page->out, table->notes);
    }
}

static void write_common(const struct page *page)
{
    const struct options_table *first = page->commands[0]->options;
    bool any = false;

    for (size_t i = 0; i < first->len; i++)
        if (is_common(page, &first->specs[i])) {
            if (!any)
                fputs(".SS Common options\n", page->out);
            any = true;
            write_option(page->out, &first->specs[i]);
        }
}

/* The variables of all options, each once. */
static void write_environment(const struct page *page)
{
    bool any = false, database = false;

    for (size_t i = 0; i < page->len; i++) {
        const struct options_table *table = page->commands[i]->options;

        database = database || page->commands[i]->command->has_database;
        for (size_t j = 0; j < table->len; j++) {
            const struct option_spec *spec = &table->specs[j];
            bool first = spec->env != NULL;

            for (size_t k = 0; k < i && first; k++)
                for (size_t l = 0; l < page->commands[k]->options->len && first; l++)
                    first = !is_same_text(page->commands[k]->options->specs[l].env, spec->env);
            if (!first)
                continue;
            if (!any)
                fputs(".SH ENVIRONMENT\n", page->out);
            any = true;
            fputs(".TP\n", page->out);
            write_font(page->out, 'B', hf_str_from(spec->env));
            fputs("\nThe same as \\fB\\-\\-", page->out);
            write_escaped(page->out, spec->name);
            fputs("\\fP, which overrides it.\n", page->out);
        }
    }
    if (any && database)
        fputs(".PP\nTo connect to a service, the command reads the same variables and files as "
              "AWS\\(aqs own tools.\n",
              page->out);
}

static void write_examples(const struct page *page)
{
    bool any = false;

    for (size_t i = 0; i < page->len; i++) {
        const struct options_table *table = page->commands[i]->options;

        for (size_t j = 0; j < table->examples_len; j++) {
            if (!any)
                fputs(".SH EXAMPLES\n", page->out);
            any = true;
            fputs(".PP\n", page->out);
            write_filled(page->out, hf_str_from(table->examples[j].text));
            fprintf(page->out, ".PP\n.RS %d\n.nf\n", EXAMPLE_INDENT);
            write_escaped(page->out, table->examples[j].command);
            fputs("\n.fi\n.RE\n", page->out);
        }
    }
}

static void write_noun_page(const struct page *page)
{
    const struct cli_noun *noun = page->entry->noun;

    write_title(page->out, page->entry->word, page->entry->summary);
    write_synopsis(page);
    fputs(".SH DESCRIPTION\n", page->out);
    if (noun && noun->about)
        write_text(page->out, noun->about);
    for (size_t i = 0; i < page->len; i++)
        write_command(page, page->commands[i]->options);
    write_common(page);
    write_environment(page);
    fputs(".SH EXIT STATUS\nThe codes of\n", page->out);
    write_reference(page->out, "", ".");
    fputs("What is special is said above.\n", page->out);
    write_examples(page);
    fputs(".SH SEE ALSO\n", page->out);
    for (const char *at = noun && noun->see ? noun->see : ""; *at;) {
        size_t len = strcspn(at, " ");

        fputs("\\fBholdfast\\-", page->out);
        hf__manual_escape(page->out, hf_str_of(at, len));
        fputs("\\fP(1),\n", page->out);
        at += len + (at[len] == ' ');
    }
    write_reference(page->out, "", "");
}

/* ---- holdfast.1 ----------------------------------------------------------------------------- */

struct shared {
    struct database_settings database;
};

static const struct option_spec shared_specs[] = {DATABASE_LIST(struct shared)};

static void write_groups(struct cli *cli, FILE *out, const struct help_entry *entries, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (i == 0 || entries[i].group != entries[i - 1].group) {
            fputs(".SS ", out);
            write_escaped(out, cli->groups[entries[i].group].heading);
            fputc('\n', out);
        }
        fputs(".TP\n", out);
        write_font(out, 'B', hf_str_from(entries[i].word));
        if (strcmp(entries[i].command->name, entries[i].word) != 0) {
            struct hf_str verbs = hf__help_verbs(cli, entries[i].word);

            fputc(' ', out);
            hf__manual_escape(out, verbs);
        }
        fputc('\n', out);
        write_escaped(out, entries[i].summary);
        fputs("; see\n", out);
        write_reference(out, entries[i].word, ".");
    }
}

static void write_main_page(struct cli *cli, FILE *out, const struct help_entry *entries,
                            size_t len)
{
    write_title(out, "", "a DynamoDB-compatible database and durable building blocks");
    fputs(".SH SYNOPSIS\n.nf\n"
          "\\fBholdfast\\fP [\\fB\\-\\-env\\-file\\fP \\fIFILE\\fP] \\fICOMMAND\\fP "
          "[\\fIoptions\\fP]\n"
          "\\fBholdfast help\\fP [\\fICOMMAND\\fP|\\fITOPIC\\fP]\n"
          "\\fBholdfast \\-\\-help\\fP|\\fB\\-\\-version\\fP\n"
          ".fi\n.SH DESCRIPTION\n",
          out);
    write_text(out, hf__help_about);
    fputs(".SH COMMANDS\n", out);
    write_groups(cli, out, entries, len);
    for (size_t i = 0; i < hf__help_topics_len; i++) {
        fputs(".SH ", out);
        write_escaped(out, hf__help_topics[i].title);
        fputc('\n', out);
        write_text(out, hf__help_topics[i].text);
        if (strcmp(hf__help_topics[i].word, "options") != 0)
            continue;
        fputs(".SS Shared options\n", out);
        for (size_t j = 0; j < sizeof(shared_specs) / sizeof(shared_specs[0]); j++)
            write_option(out, &shared_specs[j]);
    }
    fputs(".SH SEE ALSO\n", out);
    for (size_t i = 0; i < len; i++)
        write_reference(out, entries[i].word, i + 1 < len ? "," : "");
}

/* ---- writing -------------------------------------------------------------------------------- */

/* The file of a page; NULL: the error was shown. */
static FILE *page_open(struct cli *cli, const char *dir, const char *noun)
{
    struct hf_str path =
        hf_scope_format(cli->scope, "%s/holdfast%s%s.1", dir, *noun ? "-" : "", noun);
    FILE *out = path.ptr ? fopen(path.ptr, "we") : NULL;

    if (!out)
        hf__cli_fail(cli, "manual", CLI_FAILED, "cannot write %s: %s",
                     path.ptr ? path.ptr : "the page", strerror(errno));
    return out;
}

static bool page_close(struct cli *cli, FILE *out)
{
    bool failed = ferror(out);

    if (fclose(out) == 0 && !failed)
        return true;
    hf__cli_fail(cli, "manual", CLI_FAILED, "cannot write a page: %s", strerror(errno));
    return false;
}

static bool noun_page_make(struct cli *cli, const char *dir, const struct help_entry *entry)
{
    struct page page = {.cli = cli, .entry = entry};

    page.commands = hf_scope_alloc(cli->scope, cli->commands_len * sizeof(*page.commands));
    page.out = page.commands ? page_open(cli, dir, entry->word) : NULL;
    if (!page.out)
        return false;
    for (size_t i = 0; i < cli->commands_len; i++)
        if (cli->commands[i].summary && (strcmp(cli->commands[i].name, entry->word) == 0 ||
                                         hf__help_is_of(cli->commands[i].name, entry->word)))
            page.commands[page.len++] = &cli->commands[i];
    page.alone = page.len == 1 && strcmp(page.commands[0]->name, entry->word) == 0;
    write_noun_page(&page);
    return page_close(cli, page.out);
}

int hf__manual_run(struct cli *cli, size_t args_len, const char *const *args)
{
    const struct help_entry *entries;
    size_t len;
    FILE *out;

    if (args_len != 1)
        return hf__cli_fail(cli, "manual", CLI_USAGE, "usage: holdfast manual DIR");
    if (mkdir(args[0], 0777) && errno != EEXIST)
        return hf__cli_fail(cli, "manual", CLI_FAILED, "cannot create %s: %s", args[0],
                            strerror(errno));
    entries = hf__help_entries(cli, &len);
    out = entries ? page_open(cli, args[0], "") : NULL;
    if (!out)
        return CLI_FAILED;
    write_main_page(cli, out, entries, len);
    if (!page_close(cli, out))
        return CLI_FAILED;
    for (size_t i = 0; i < len; i++)
        if (!noun_page_make(cli, args[0], &entries[i]))
            return CLI_FAILED;
    return CLI_OK;
}
