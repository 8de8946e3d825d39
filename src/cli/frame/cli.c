/*
 * cli/frame/cli.c: finding the command that is meant, and what all of them need.
 *
 * Four commands are here because they are about the others: `help`, `version`, and two that are not
 * listed: `complete`, which shells call with the words of the line so far, and `manual`, by which the
 * build makes the manual pages.
 */
#include "cli/frame/cli.h"

#include "cli/frame/command.h"
#include "cli/frame/options/complete.h"
#include "cli/frame/options/env_file.h"
#include "cli/frame/options/help.h"
#include "cli/frame/options/manual.h"
#include "cli/frame/options/nearest.h"
#include "cli/frame/output/json.h"
#include "cli/frame/output/mask.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- shared by commands --------------------------------------------------------------------- */

/* What an exit code is called in JSON. */
static const char *code_of(int ends)
{
    switch ((enum cli_exit)ends) {
    case CLI_USAGE:
        return "invalid";
    case CLI_NOT_FOUND:
        return "not_found";
    case CLI_CONDITION:
        return "condition";
    case CLI_DENIED:
        return "denied";
    case CLI_UNAVAILABLE:
        return "unavailable";
    case CLI_TIMEOUT:
        return "timeout";
    case CLI_CORRUPT:
        return "corrupt";
    case CLI_TOO_LONG:
        return "too_long";
    case CLI_NO_EXEC:
        return "no_exec";
    case CLI_NO_PROGRAM:
        return "no_program";
    case CLI_OK:
    case CLI_FAILED:
        break;
    }
    return ends > CLI_SIGNAL ? "signal" : "failed";
}

/* "HF_NOT_FOUND" as "not_found". */
static void write_code(FILE *out, enum hf_status status)
{
    for (const char *at = hf_status_name(status) + strlen("HF_"); *at; at++)
        fputc(tolower((unsigned char)*at), out);
}

/* What an error says besides: the limit that was passed, and its causes, one in the other. */
static void write_more(FILE *out, const struct hf_error *error)
{
    int depth = 0;

    for (;; depth++) {
        if (error->limit.name.len) {
            fputs(",\"limit\":{\"name\":", out);
            hf__cli_json_write_text(out, error->limit.name);
            fprintf(out, ",\"max\":%llu,\"actual\":%llu}", (unsigned long long)error->limit.max,
                    (unsigned long long)error->limit.actual);
        }
        error = error->cause;
        if (!error || depth == HF_ERROR_CAUSES_MAX)
            break;
        fputs(",\"cause\":{\"code\":\"", out);
        write_code(out, error->status);
        fputs("\",\"message\":", out);
        hf__cli_json_write_text(out, error->message);
        fprintf(out, ",\"may_have_happened\":%s", error->may_have_happened ? "true" : "false");
    }
    while (depth-- > 0)
        fputc('}', out);
}

/* `error` NULL: the command has found it itself. `hint` says what to do, in a line or a member of
 * its own; NULL: it is clear. */
/* Text without characters that a terminal obeys: those of C0, and those of C1 in UTF-8. */
static void write_clean(FILE *out, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == 0xC2 && at[1] >= 0x80 && at[1] < 0xA0)
            at++;
        else if (!iscntrl(*at)) {
            fputc(*at, out);
            continue;
        }
        fputc(' ', out);
    }
}

static void report_failure(struct cli *cli, const char *command, int ends,
                           const struct hf_error *error, const char *message, const char *hint)
{
    bool doubt = error && error->may_have_happened;
    struct hf_str shown = hf__cli_mask(cli->scope, hf_str_from(message)); /* it may have a URL */

    /* First what was written to stdout, so that the two do not change places in a file. */
    fflush(cli->out);
    if (cli->json) {
        fputs("{\"error\":{\"code\":\"", cli->err);
        if (error)
            write_code(cli->err, error->status);
        else
            fputs(code_of(ends), cli->err);
        fputs("\",\"message\":", cli->err);
        hf__cli_json_write_text(cli->err, shown);
        fprintf(cli->err, ",\"may_have_happened\":%s,\"command\":", doubt ? "true" : "false");
        hf__cli_json_write_text(cli->err, hf_str_from(command));
        if (hint) {
            fputs(",\"hint\":", cli->err);
            hf__cli_json_write_text(cli->err, hf_str_from(hint));
        }
        if (error)
            write_more(cli->err, error);
        fputs("}}\n", cli->err);
    } else {
        fprintf(cli->err, "holdfast%s%s: ", *command ? " " : "", command);
        write_clean(cli->err, shown.ptr);
        fprintf(cli->err, "%s\n", doubt ? " (the change may have been made anyway)" : "");
        if (hint)
            fprintf(cli->err, "%s\n", hint);
    }
    fflush(cli->err);
}

int hf__cli_fail_with(struct cli *cli, const char *command, int ends, const struct hf_error *error,
                      const char *message)
{
    report_failure(cli, command, ends, error, message, NULL);
    return ends;
}

/* To be freed; NULL: there is no memory. */
static char *format_message(const char *format, va_list args)
{
    char *message;

    return vasprintf(&message, format, args) < 0 ? NULL : message;
}

int hf__cli_fail(struct cli *cli, const char *command, int ends, const char *format, ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    message = format_message(format, args);
    va_end(args);
    hf__cli_fail_with(cli, command, ends, NULL, message ? message : "out of memory");
    free(message);
    return ends;
}

/* Show invalid arguments, and a hint on what to do: see report_failure(). Returns CLI_USAGE. */
static int show_misuse(struct cli *cli, const char *command, struct hf_str hint, const char *format,
                       ...) HF_PRINTF(4, 5);

static int show_misuse(struct cli *cli, const char *command, struct hf_str hint, const char *format,
                       ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    message = format_message(format, args);
    va_end(args);
    report_failure(cli, command, CLI_USAGE, NULL, message ? message : "out of memory", hint.ptr);
    free(message);
    return CLI_USAGE;
}

/* Where the options of a command are. */
static struct hf_str try_help(struct cli *cli, const char *command)
{
    return hf_scope_format(cli->scope, "Try 'holdfast %s --help'.", command);
}

void hf__cli_notice(struct cli *cli, const char *command, const char *format, ...)
{
    va_list args;
    char *message;

    va_start(args, format);
    message = format_message(format, args);
    va_end(args);
    fflush(cli->out); /* so that the two do not change places */
    flockfile(cli->err);
    if (cli->json) {
        fputs("{\"notice\":{\"message\":", cli->err);
        hf__cli_json_write_text(cli->err, hf_str_from(message ? message : "out of memory"));
        fputs(",\"command\":", cli->err);
        hf__cli_json_write_text(cli->err, hf_str_from(command));
        fputs("}}\n", cli->err);
    } else {
        fprintf(cli->err, "holdfast %s: ", command);
        write_clean(cli->err, message ? message : "out of memory");
        fputc('\n', cli->err);
    }
    fflush(cli->err);
    funlockfile(cli->err);
    free(message);
}

bool hf__cli_is_dumb(const struct cli *cli)
{
    const char *term = cli->env("TERM");

    return !term || !*term || strcmp(term, "dumb") == 0;
}

bool hf__cli_is_styled(const struct cli *cli)
{
    const char *none = cli->env("NO_COLOR");

    return cli->terminal && !hf__cli_is_dumb(cli) && !(none && *none);
}

bool hf__cli_for_people(const struct cli *cli)
{
    return cli->terminal && !cli->json;
}

const char *hf__cli_out_name(const struct cli *cli)
{
    return cli->out_name ? cli->out_name : "standard output";
}

int hf__cli_flushed(struct cli *cli, int ends)
{
    int error;

    errno = 0;
    if ((!fflush(cli->out) && !ferror(cli->out)) || ends != CLI_OK)
        return ends;
    error = errno; /* 0: an earlier write has failed */
    return hf__cli_fail(cli, "", CLI_FAILED, "cannot write to %s%s%s", hf__cli_out_name(cli),
                        error ? ": " : "", error ? strerror(error) : "");
}

/* --json without a command, whose options would have it. */
static void note_json(struct cli *cli, size_t args_len, const char *const *args)
{
    for (size_t i = 0; i < args_len && strcmp(args[i], "--") != 0; i++)
        if (strcmp(args[i], "--json") == 0 || strcmp(args[i], "--jsonl") == 0)
            cli->json = true;
}

/* Options of all commands, looked at before any error: they decide how errors are shown. */
static void note_options(struct cli *cli, const struct options_table *table, size_t args_len,
                         const char *const *args)
{
    for (size_t i = 0; i < args_len && strcmp(args[i], "--") != 0; i++) {
        const char *value;
        bool negated;
        const struct option_spec *spec = hf__options_find(table, args[i], &value, &negated);

        if (hf__options_is_json(table, args[i]))
            cli->json = true;
        if (!spec || !spec->name)
            continue;
        if (strcmp(spec->name, "json") == 0 || strcmp(spec->name, "jsonl") == 0)
            cli->json = !negated;
        if (strcmp(spec->name, "table") == 0)
            cli->table_named = true;
    }
}

bool hf__cli_options(struct cli *cli, const struct options_table *table, size_t args_len,
                     const char *const *args, void *fields, struct options *options, int *ends)
{
    note_options(cli, table, args_len, args);
    switch (hf__options_parse(cli->scope, table, args_len, args, cli->env, fields, options)) {
    case OPTIONS_OK:
        return true;
    case OPTIONS_HELP:
        hf__options_help(cli->out, table, cli->width, cli->styled);
        *ends = hf__cli_flushed(cli, CLI_OK);
        return false;
    case OPTIONS_BAD:
        break;
    }
    *ends =
        show_misuse(cli, table->name, try_help(cli, table->name), "%.*s", HF_FMT(options->error));
    return false;
}

bool hf__cli_operands(struct cli *cli, const struct options_table *table, size_t args_len,
                      const char *const *args, size_t min, size_t max, void *fields,
                      struct options *options, int *ends)
{
    if (!hf__cli_options(cli, table, args_len, args, fields, options, ends))
        return false;
    if (options->operands_len >= min && options->operands_len <= max)
        return true;
    if (options->operands_len > max)
        *ends = show_misuse(cli, table->name, try_help(cli, table->name),
                            "unexpected argument '%s'", options->operands[max]);
    else
        *ends = hf__cli_fail(cli, table->name, CLI_USAGE,
                             "missing argument; usage: holdfast %s [options] %s", table->name,
                             table->operands);
    return false;
}

/* ---- finding -------------------------------------------------------------------------------- */

/* How many of the arguments are the command's name; 0: it is another. */
static size_t name_words(const char *name, size_t args_len, const char *const *args)
{
    for (size_t words = 0; words < args_len; words++) {
        size_t len = strcspn(name, " ");

        if (strlen(args[words]) != len || memcmp(args[words], name, len) != 0)
            return 0;
        name += len;
        if (*name == '\0')
            return words + 1;
        name++;
    }
    return 0;
}

const struct cli_command *hf__cli_find(const struct cli *cli, size_t args_len,
                                       const char *const *args, size_t *words)
{
    const struct cli_command *found = NULL;

    *words = 0;
    for (size_t i = 0; i < cli->commands_len; i++) {
        size_t len = name_words(cli->commands[i].name, args_len, args);

        if (len > *words) {
            found = &cli->commands[i];
            *words = len;
        }
    }
    return found;
}

/* Is `word` the noun of commands that have two words? */
static bool is_group(const struct cli *cli, const char *word)
{
    for (size_t i = 0; i < cli->commands_len; i++)
        if (cli->commands[i].summary && hf__help_is_of(cli->commands[i].name, word))
            return true;
    return false;
}

static int unknown_command(struct cli *cli, size_t args_len, const char *const *args)
{
    struct nearest one = {.word = args[0]};
    struct hf_str pair = {0};
    struct nearest two = {.word = ""};

    if (args_len > 1 && args[1][0] != '-') {
        pair = hf_scope_format(cli->scope, "%s %s", args[0], args[1]);
        if (pair.ptr)
            two.word = pair.ptr;
    }
    for (size_t i = 0; i < cli->commands_len; i++) {
        if (!cli->commands[i].summary)
            continue;
        if (strchr(cli->commands[i].name, ' '))
            hf__nearest_offer(&two, cli->commands[i].name);
        else
            hf__nearest_offer(&one, cli->commands[i].name);
    }
    if (is_group(cli, args[0]) && pair.ptr) {
        if (two.best)
            return hf__cli_fail(cli, "", CLI_USAGE, "unknown command '%s'; did you mean '%s'?",
                                pair.ptr, two.best);
        return show_misuse(cli, "",
                           hf_scope_format(cli->scope, "Try 'holdfast %s --help' for a list.",
                                           args[0]),
                           "unknown command '%s'", pair.ptr);
    }
    if (one.best || two.best)
        return hf__cli_fail(cli, "", CLI_USAGE, "unknown command '%s'; did you mean '%s'?", args[0],
                            one.best ? one.best : two.best);
    return show_misuse(cli, "", HF_STR("Try 'holdfast --help' for a list."), "unknown command '%s'",
                       args[0]);
}

/* ---- help, version --------------------------------------------------------------------------- */

/* "holdfast kv --json": its commands, as `holdfast kv` has them, or for a program their names. */
static int missing_command(struct cli *cli, const char *noun)
{
    struct hf_str verbs = hf__help_verbs(cli, noun);

    hf__cli_fail(cli, noun, CLI_USAGE, "missing command: use one of %.*s", HF_FMT(verbs));
    if (!cli->json)
        hf__help_print_noun(cli, noun);
    return CLI_USAGE;
}

#ifndef HF_BROKERS /* the build says which ones it has */
#define HF_BROKERS ""
#endif

#ifndef HF_ROCKSDB
#define HF_ROCKSDB "unknown"
#endif

const char *hf__cli_rocksdb(void)
{
    return HF_ROCKSDB;
}

/* The option prints one line, for scripts; the command also prints what the build has. */
static int print_version(struct cli *cli, bool is_command)
{
    fprintf(cli->out, "holdfast %s\n", hf_version());
    if (is_command) {
        fprintf(cli->out, "broker sinks: %s\n", HF_BROKERS[0] ? HF_BROKERS : "none");
        fprintf(cli->out, "built with RocksDB: %s\n", HF_ROCKSDB);
    }
    return hf__cli_flushed(cli, CLI_OK);
}

static bool is_about_commands(const char *word)
{
    return strcmp(word, "help") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
           strcmp(word, "version") == 0 || strcmp(word, "--version") == 0 ||
           strcmp(word, "-V") == 0 || strcmp(word, "complete") == 0 || strcmp(word, "manual") == 0;
}

static int run_help(struct cli *cli, size_t args_len, const char *const *args)
{
    const struct cli_command *command;
    size_t words;
    int ends;

    if (args_len == 0 || (args_len == 1 && is_about_commands(args[0])))
        return hf__help_print(cli);
    command = hf__cli_find(cli, args_len, args, &words);
    if (!command && args_len == 1 && is_group(cli, args[0]))
        return hf__help_print_noun(cli, args[0]);
    if (!command && args_len == 1 && hf__help_find(cli, args[0], &ends))
        return ends;
    if (!command)
        return unknown_command(cli, args_len, args);
    if (!command->options)
        return hf__help_print(cli);
    hf__options_help(cli->out, command->options, cli->width, cli->styled);
    return hf__cli_flushed(cli, CLI_OK);
}

/* ---- options before the command ------------------------------------------------------------- */

/* How many arguments an option of all commands takes, with itself; 0: it is none of them. */
static size_t shared_option_len(const char *arg)
{
    static const char *const with_value[] = {"--db",     "--prefix",  "--profile",
                                             "--region", "--timeout", NULL};
    static const char *const flags[] = {"--json", "--jsonl", "--quiet", "-q", NULL};

    for (size_t i = 0; with_value[i]; i++) {
        size_t len = strlen(with_value[i]);

        if (strncmp(arg, with_value[i], len) == 0 && (arg[len] == '\0' || arg[len] == '='))
            return arg[len] ? 1 : 2;
    }
    for (size_t i = 0; flags[i]; i++)
        if (strcmp(arg, flags[i]) == 0)
            return 1;
    return 0;
}

size_t hf__cli_leading(size_t args_len, const char *const *args)
{
    size_t len = 0, more;

    while (len < args_len && (more = shared_option_len(args[len])) && len + more < args_len)
        len += more;
    return len;
}

const char *const *hf__cli_options_moved(struct cli *cli, size_t args_len, const char *const *args,
                                         size_t leading)
{
    const char **moved = hf_scope_alloc(cli->scope, args_len * sizeof(*moved));
    size_t words;

    (void)hf__cli_find(cli, args_len - leading, args + leading, &words);
    if (!words) /* a noun and what is no verb of it, or what is no command */
        words = leading + 1 < args_len && args[leading + 1][0] != '-' ? 2 : 1;
    assert(leading + words <= args_len);
    if (!moved)
        return NULL;
    memcpy(moved, args + leading, words * sizeof(*moved));
    memcpy(moved + words, args, leading * sizeof(*moved));
    memcpy(moved + words + leading, args + leading + words,
           (args_len - leading - words) * sizeof(*moved));
    return moved;
}

/* ---- the whole ------------------------------------------------------------------------------ */

static int command_run(struct cli *cli, size_t args_len, const char *const *args);

int hf__cli_run(struct cli *cli, size_t args_len, const char *const *args)
{
    size_t words, leading;
    int ends;

    if (!hf__cli_env_files(cli, args_len, args, &words, &ends))
        return ends;
    if (words) { /* there may be no arguments at all, and no array then */
        args += words;
        args_len -= words;
    }
    leading = hf__cli_leading(args_len, args);
    if (leading && is_about_commands(args[leading])) {
        args += leading; /* they have no meaning there */
        args_len -= leading;
        leading = 0;
    }
    if (leading)
        args = hf__cli_options_moved(cli, args_len, args, leading);
    if (args_len && !args)
        return hf__cli_fail(cli, "", CLI_FAILED, "out of memory");
    return command_run(cli, args_len, args);
}

static int command_run(struct cli *cli, size_t args_len, const char *const *args)
{
    const struct cli_command *command;
    size_t words;

    if (args_len == 0) {
        hf__help_print(cli);
        return CLI_USAGE;
    }
    if (strcmp(args[0], "--help") == 0 || strcmp(args[0], "-h") == 0)
        return hf__help_print(cli);
    if (strcmp(args[0], "--version") == 0 || strcmp(args[0], "-V") == 0 ||
        strcmp(args[0], "version") == 0)
        return print_version(cli, args[0][0] != '-');
    if (strcmp(args[0], "help") == 0)
        return run_help(cli, args_len - 1, args + 1);
    if (strcmp(args[0], "complete") == 0)
        return hf__complete_run(cli, args_len - 1, args + 1);
    if (strcmp(args[0], "manual") == 0)
        return hf__manual_run(cli, args_len - 1, args + 1);
    command = hf__cli_find(cli, args_len, args, &words);
    if (!command)
        note_json(cli, args_len, args);
    if (shared_option_len(args[0]))
        return show_misuse(cli, "", HF_STR("Try 'holdfast --help' for a list."), "missing command");
    if (args[0][0] == '-')
        return show_misuse(
            cli, "",
            hf_scope_format(cli->scope,
                            "Options of a command come after it: 'holdfast COMMAND %s'.", args[0]),
            "unknown option '%s'", args[0]);
    if (!command && is_group(cli, args[0])) {
        if (args_len == 1) {
            hf__help_print_noun(cli, args[0]);
            return CLI_USAGE;
        }
        for (size_t i = 1; i < args_len; i++)
            if (strcmp(args[i], "--help") == 0 || strcmp(args[i], "-h") == 0)
                return hf__help_print_noun(cli, args[0]);
        if (args[1][0] == '-')
            return missing_command(cli, args[0]);
    }
    if (!command)
        return unknown_command(cli, args_len, args);
    return hf__command_run(cli, command->command, command->options, args_len - words, args + words);
}
