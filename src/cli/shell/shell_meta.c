/*
 * cli/shell/shell_meta.c: the commands of the shell itself, which begin with a backslash as those of psql.
 *
 * A command is a line in the table below: its names, its arguments as the help shows them, a sentence, and
 * a function. Arguments are words with quotes as in a shell.
 */
#include "cli/shell/shell.h"

#include "base/base.h"
#include "base/child.h"
#include "cli/frame/output/mask.h"
#include "cli/frame/output/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { META_WORDS_MAX = 32, WATCH_MIN_MS = 10, DEPTH_MAX = 16, KILL_AFTER_MS = 10000 };

/* A command with its arguments. */
struct meta_call {
    struct shell *shell;
    const char *name;
    const char *args[META_WORDS_MAX]; /* NULL: not given */
};

struct meta {
    const char *names; /* with a blank between them; the first is the one that the help shows */
    const char *args;  /* "[TIME [COUNT]]" */
    size_t args_max;
    const char *text;
    int (*run)(struct meta_call *call);
};

static int meta_misuse(struct meta_call *call, const char *what)
{
    return hf__shell_fail(call->shell, CLI_USAGE, "%s: %s; \\? shows how to use it", call->name,
                          what);
}

/* ---- switches ------------------------------------------------------------------------------- */

/* "on", "off", or the other way round. */
static int switch_set(struct meta_call *call, bool *value, const char *what)
{
    const char *word = call->args[0];

    if (word && strcmp(word, "on") != 0 && strcmp(word, "off") != 0)
        return meta_misuse(call, "expected on or off");
    *value = word ? strcmp(word, "on") == 0 : !*value;
    if (call->shell->interactive)
        printf("%s is %s\n", what, *value ? "on" : "off");
    return CLI_OK;
}

static int format_set(struct meta_call *call, enum shell_format format, const char *what)
{
    bool on = call->shell->format == format;
    int ends = switch_set(call, &on, what);

    if (ends == CLI_OK)
        call->shell->format = on ? format : SHELL_TABLE;
    return ends;
}

static int meta_timing(struct meta_call *call)
{
    return switch_set(call, &call->shell->timing, "timing");
}

static int meta_expanded(struct meta_call *call)
{
    return switch_set(call, &call->shell->expanded, "expanded output");
}

static int meta_json(struct meta_call *call)
{
    return format_set(call, SHELL_JSON, "JSON output");
}

static int meta_dynamodb(struct meta_call *call)
{
    return format_set(call, SHELL_DYNAMODB, "output as DynamoDB's JSON");
}

static int meta_limit(struct meta_call *call)
{
    struct shell *shell = call->shell;
    uint64_t limit;

    if (call->args[0] && (!hf__options_number(call->args[0], &limit) || limit > UINT32_MAX))
        return meta_misuse(call, "expected a number of items");
    if (call->args[0])
        shell->limit = limit;
    if (shell->interactive && shell->limit)
        printf("statements print at most %llu items\n", (unsigned long long)shell->limit);
    else if (shell->interactive)
        printf("statements print all items\n");
    return CLI_OK;
}

/* ---- the database --------------------------------------------------------------------------- */

static int meta_describe(struct meta_call *call)
{
    return hf__shell_describe(call->shell, call->args[0]);
}

/* What the database that was used before brought with it does not count for another one. */
static void settings_forget(struct shell *shell, struct database_settings *settings)
{
    const struct command_ctx *c = shell->c;
    const struct {
        const char *option;
        struct hf_str *value;
    } own[] = {{"prefix", &settings->prefix},
               {"profile", &settings->profile},
               {"region", &settings->region}};

    for (size_t i = 0; i < ARRAY_LEN(own); i++)
        if (hf__options_source(c->table, &c->options, own[i].option) == OPTION_DEFAULT)
            *own[i].value = (struct hf_str){0};
}

/* The settings of a URL or of @NAME, with texts that stay. */
static bool settings_make(struct shell *shell, const char *url, struct database_settings *settings,
                          int *ends)
{
    struct hf_str *texts[] = {&settings->url, &settings->prefix, &settings->profile,
                              &settings->region};

    settings->url = hf_str_from(url);
    settings_forget(shell, settings);
    if (!hf__database_resolve(shell->c->cli, shell->c->name, settings, ends))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        if (texts[i]->ptr) {
            *texts[i] = hf_scope_copy(shell->kept, *texts[i]);
            if (!texts[i]->ptr) {
                *ends = hf__shell_fail(shell, CLI_FAILED, "out of memory");
                return false;
            }
        }
    return true;
}

static int meta_use(struct meta_call *call)
{
    struct shell *shell = call->shell;
    struct database_settings before = shell->shared.settings, after = before;
    struct hf_db *db = shell->shared.db;
    int ends = CLI_OK;

    if (!call->args[0]) {
        before.url = hf__cli_mask(shell->work, before.url);
        printf("%.*s%s\n", HF_FMT(before.url), db ? "" : " (not opened yet)");
        return CLI_OK;
    }
    if (shell->tx)
        return hf__shell_tx_refuse(shell, "a transaction has one database");
    if (!settings_make(shell, call->args[0], &after, &ends))
        return ends;
    if (db && hf_str_equal(after.url, before.url) && hf_str_equal(after.prefix, before.prefix))
        return CLI_OK;
    shell->shared.settings = after;
    shell->shared.db = NULL;
    ends = hf__shell_connect(shell);
    if (ends != CLI_OK) { /* nothing has changed */
        shell->shared.settings = before;
        shell->shared.db = db;
        return ends;
    }
    hf_db_close(db);
    hf__shell_known_clear(shell->known);
    if (shell->interactive) {
        struct hf_str url = hf__cli_mask(shell->work, after.url);

        printf("now on %.*s\n", HF_FMT(url));
    }
    return CLI_OK;
}

/* ---- files ---------------------------------------------------------------------------------- */

static int meta_include(struct meta_call *call)
{
    struct shell *shell = call->shell;
    int ends;

    if (!call->args[0])
        return meta_misuse(call, "missing FILE");
    if (shell->depth == DEPTH_MAX)
        return hf__shell_fail(shell, CLI_USAGE, "more than %d files include each other", DEPTH_MAX);
    shell->depth++;
    ends = hf__shell_read_file(shell, call->args[0]);
    shell->depth--;
    return ends;
}

static int meta_output(struct meta_call *call)
{
    struct shell *shell = call->shell;
    FILE *file = NULL;
    char *name = NULL;
    int ends = CLI_OK;

    if (call->args[0]) {
        name = strdup(call->args[0]);
        if (!name)
            return hf__shell_fail(shell, CLI_FAILED, "out of memory");
        file = fopen(name, "we");
        if (!file) {
            ends = hf__shell_fail(shell, CLI_USAGE, "%s: %s", name, strerror(errno));
            free(name);
            return ends;
        }
    }
    if (shell->file && fclose(shell->file) != 0)
        ends = hf__shell_fail(shell, CLI_FAILED, "%s was not written whole: %s", shell->file_name,
                              strerror(errno));
    free(shell->file_name);
    shell->file = file;
    shell->file_name = name;
    return ends;
}

static int meta_echo(struct meta_call *call)
{
    struct shell *shell = call->shell;
    FILE *out = shell->file ? shell->file : stdout;

    for (size_t i = 0; i < META_WORDS_MAX && call->args[i]; i++) {
        if (i)
            fputc(' ', out);
        hf__rows_print(out, hf_str_from(call->args[i]));
    }
    fputc('\n', out);
    if (fflush(out) != 0 && shell->file)
        return hf__shell_fail(shell, CLI_FAILED, "cannot write to %s: %s", shell->file_name,
                              strerror(errno));
    return CLI_OK;
}

/* ---- programs ------------------------------------------------------------------------------- */

/* The rest of the line is for the shell of the system. */
static int line_execute(struct shell *shell, struct hf_scope *s, struct hf_str text)
{
    struct hf_str line = hf_scope_copy(s, text);
    const char *const args[] = {"/bin/sh", "-c", line.ptr};
    struct child_program program = {.args = args,
                                    .args_len = ARRAY_LEN(args),
                                    .guard = shell->c->guard,
                                    .kill_after_ms = KILL_AFTER_MS};
    int ends;

    if (!line.ptr)
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    hf__shell_idle(shell);
    fflush(stdout);
    ends = hf__guard_run(shell->c->guard, shell->c->cli, "shell", &program);
    hf__shell_program_ended(shell, ends);
    hf__shell_idle(shell);
    return ends;
}

static int meta_execute(struct meta_call *call)
{
    return meta_misuse(call, "missing COMMAND");
}

/* ---- others --------------------------------------------------------------------------------- */

static int meta_watch(struct meta_call *call)
{
    uint64_t ms = 2000, count = 0;

    /* psql has seconds without a unit */
    if (call->args[0] && !hf__options_duration(call->args[0], &ms)) {
        if (!hf__options_number(call->args[0], &ms) || ms > OPTION_DAY_MS / 1000)
            return meta_misuse(call, "expected a time such as 1s or 500ms");
        ms *= 1000;
    }
    if (ms < WATCH_MIN_MS || ms > OPTION_DAY_MS)
        return meta_misuse(call, "the time has to be from 10ms to 24h");
    if (call->args[1] && (!hf__options_number(call->args[1], &count) || !count))
        return meta_misuse(call, "expected how many times");
    return hf__shell_watch(call->shell, ms, count);
}

static int meta_quit(struct meta_call *call)
{
    call->shell->quit = true;
    return CLI_OK;
}

static int meta_help(struct meta_call *call);

/* ---- the table ------------------------------------------------------------------------------ */

static const struct meta metas[] = {
    {"\\d \\dt", "[TABLE]", 1, "list the tables, or show the keys, indexes and size of one",
     meta_describe},
    {"\\watch", "[TIME [COUNT]]", 2,
     "repeat the last statement or command every TIME, such as 1s, until Ctrl-C", meta_watch},
    {"\\timing", "[on|off]", 1, "show the time and the capacity that each statement takes",
     meta_timing},
    {"\\x", "[on|off]", 1, "a line for each attribute, in place of a table", meta_expanded},
    {"\\json", "[on|off]", 1, "items as plain JSON, one per line", meta_json},
    {"\\dynamodb", "[on|off]", 1, "items as DynamoDB's JSON, one per line", meta_dynamodb},
    {"\\limit", "[N]", 1, "print at most N items of a statement; 0: all", meta_limit},
    {"\\i \\include", "FILE", 1, "run the statements and commands of a file", meta_include},
    {"\\o \\out", "[FILE]", 1, "write results to a file, as JSON; without FILE to the terminal",
     meta_output},
    {"\\!", "COMMAND", 0, "run a command of the system's shell", meta_execute},
    {"\\use \\c \\connect", "[URL]", 1, "use another database, or show which one is in use",
     meta_use},
    {"\\echo", "[TEXT]", META_WORDS_MAX, "print a text", meta_echo},
    {"\\? \\h \\help", "", 1, "show this help", meta_help},
    {"\\q \\quit", "", 0, "end the shell, as Ctrl-D does", meta_quit},
};

const char *hf__shell_meta_next(size_t *at)
{
    return *at < ARRAY_LEN(metas) ? metas[(*at)++].names : NULL;
}

static bool has_name(const char *names, const char *name)
{
    size_t len = strlen(name);

    while (*names) {
        size_t word = strcspn(names, " ");

        if (word == len && memcmp(names, name, len) == 0)
            return true;
        names += word + (names[word] == ' ');
    }
    return false;
}

static enum hf_status help_print(struct command_ctx *c)
{
    struct cli *cli = c->cli;

    hf__texts_wrap(cli->out, "Statements of PartiQL end with ';' and may have several lines:", 0, 0,
                   cli->width);
    fputs("  SELECT * FROM orders WHERE customer = 'ann';\n", cli->out);
    hf__texts_wrap(cli->out,
                   "BEGIN; ... COMMIT; makes one transaction of statements; ROLLBACK; drops them. "
                   "Every command of holdfast works without its first word:",
                   0, 0, cli->width);
    fputs("  item get orders ann 2\n  table create orders --key customer:S,day:N\n", cli->out);
    hf__texts_wrap(cli->out, "'help COMMAND' shows its options. Commands of the shell:", 0, 0,
                   cli->width);
    for (size_t i = 0; i < ARRAY_LEN(metas); i++) {
        int len = fprintf(cli->out, "  %.*s %s", (int)strcspn(metas[i].names, " "), metas[i].names,
                          metas[i].args);

        fprintf(cli->out, "%*s", len < 26 ? 26 - len : 1, "");
        hf__texts_wrap(cli->out, metas[i].text, 26, len < 26 ? 26 : (size_t)len + 1, cli->width);
    }
    hf__texts_wrap(cli->out,
                   "Tab completes, Ctrl-R searches the history, Ctrl-C ends a statement or "
                   "clears the line.",
                   0, 0, cli->width);
    return HF_OK;
}

static const struct options_table help_options = {.name = "shell", .about = ""};
static const struct command help_command = {.settings_size = 1, .body = help_print};

static int meta_help(struct meta_call *call)
{
    return hf__shell_call(call->shell, &help_command, &help_options, 0, NULL);
}

static int meta_run(struct shell *shell, const struct meta *meta, char **words)
{
    struct meta_call call = {.shell = shell, .name = words[0]};
    size_t len = 0;

    while (words[len + 1]) {
        if (len == meta->args_max)
            return meta_misuse(&call, "too many words");
        call.args[len] = words[len + 1];
        len++;
    }
    return meta->run(&call);
}

int hf__shell_meta(struct shell *shell, struct hf_str text)
{
    struct hf_scope *s = hf_scope_new(NULL);
    /* the backslash is no escape here: it would be taken off */
    struct hf_str line = s ? hf_scope_format(s, "\\%.*s", HF_FMT(text)) : (struct hf_str){0};
    char **words = NULL;
    int ends;

    while (line.len && line.ptr[line.len - 1] == ';') /* a habit */
        line.len--;
    if (!line.ptr)
        ends = hf__shell_fail(shell, CLI_FAILED, "out of memory");
    else if (text.len > 2 && text.ptr[1] == '!')
        ends = line_execute(shell, s, hf_str_of(text.ptr + 2, text.len - 2));
    else if (hf__child_words(s, line, &words) != HF_OK)
        ends = hf__shell_fail(shell, CLI_USAGE, "the command cannot be read: %s",
                              hf_scope_error_text(s));
    else {
        size_t i = 0;

        while (i < ARRAY_LEN(metas) && !has_name(metas[i].names, words[0]))
            i++;
        ends = i < ARRAY_LEN(metas)
                   ? meta_run(shell, &metas[i], words)
                   : hf__shell_fail(shell, CLI_USAGE,
                                    "unknown command '%s'; \\? lists those of the shell", words[0]);
    }
    hf_scope_free(s);
    return ends;
}
