/*
 * cli/shell/shell_run.c: running a statement or a command on the database that the shell has open.
 *
 * A statement is the command `sql` with that statement; both run as they would alone, by the frame, with
 * three differences: the database stays open (cli->shared), options that the shell was given are put in
 * front of those that were typed, and a signal ends the command and not the shell (hf__guard_aim()).
 *
 * What always holds:
 *
 *  (1) A command has a scope and a struct cli of its own, so nothing of it is left for the next.
 *  (2) Options that were typed win over those of the shell. A command with a --db of its own gets nothing
 *      of the shell's database.
 *  (3) SIGINT ends the command, and a script. Other signals end the shell in any case. Both happen as soon
 *      as the command has ended, and the program or the pager that it runs; programs and pagers get the
 *      signal, too.
 */
#include "cli/shell/shell.h"

#include "base/base.h"
#include "base/child.h"
#include "cli/shell/shell_screen.h"

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHELL_OPTIONS_MAX = 16 }; /* arguments that the shell adds */

/* A command as it runs, and the shell that runs it. */
struct shell_cli {
    struct cli cli; /* first: hf__shell_of() */
    struct shell *shell;
};

_Static_assert(offsetof(struct shell_cli, cli) == 0, "hf__shell_of() goes back from it");

struct shell *hf__shell_of(const struct command_ctx *c)
{
    const struct shell_cli *inner = (const struct shell_cli *)c->cli;

    assert(inner->shell);
    return inner->shell;
}

void hf__shell_idle(struct shell *shell)
{
    int came = hf__shell_signal(shell);

    if (came == SIGINT)
        shell->interrupted = true;
    if (came && (came != SIGINT || !shell->interactive)) { /* (3) */
        shell->quit = true;
        shell->ends = CLI_SIGNAL + came;
    }
    hf_scope_reset(shell->work);
    hf__guard_aim(shell->c->guard, shell->work);
}

void hf__shell_program_ended(struct shell *shell, int ends)
{
    if (ends == CLI_SIGNAL + SIGINT && !hf__shell_signal(shell)) {
        shell->interrupted = true;
        if (!shell->interactive) { /* (3) */
            shell->quit = true;
            shell->ends = ends;
        }
    }
}

/* ---- messages ------------------------------------------------------------------------------- */

int hf__shell_signal(struct shell *shell)
{
    return hf__guard_signal(shell->c->guard);
}

int hf__shell_fail(struct shell *shell, int ends, const char *format, ...)
{
    va_list args;
    char *message;
    int len;

    assert(ends != CLI_OK);
    va_start(args, format);
    len = vasprintf(&message, format, args);
    va_end(args);
    hf__cli_fail(shell->c->cli, "shell", ends, "%s", len < 0 ? "out of memory" : message);
    if (len >= 0)
        free(message);
    return ends;
}

void hf__shell_note(struct shell *shell, const char *format, ...)
{
    va_list args;
    char *message;
    int len;

    va_start(args, format);
    len = vasprintf(&message, format, args);
    va_end(args);
    hf__cli_notice(shell->c->cli, "shell", "%s", len < 0 ? "out of memory" : message);
    if (len >= 0)
        free(message);
}

/* ---- arguments ------------------------------------------------------------------------------ */

static bool option_exists(const struct options_table *table, const char *name)
{
    assert(name[0] != '-');
    for (size_t i = 0; i < table->len; i++)
        if (table->specs[i].name && strcmp(table->specs[i].name, name) == 0)
            return true;
    return false;
}

/* Was --db typed? (2) */
static bool names_database(const struct options_table *table, size_t len, const char *const *args)
{
    for (size_t i = 0; i < len && strcmp(args[i], "--") != 0; i++) {
        const char *value;
        bool negated;
        const struct option_spec *spec = hf__options_find(table, args[i], &value, &negated);

        if (spec && spec->name && strcmp(spec->name, "db") == 0)
            return true;
    }
    return false;
}

struct call_args {
    const struct options_table *table;
    const char **list;
    size_t len;
};

static void flag_add(struct call_args *args, const char *option)
{
    assert(option[0] == '-' && option[1] == '-');
    if (option_exists(args->table, option + 2))
        args->list[args->len++] = option;
}

static void text_add(struct call_args *args, const char *option, struct hf_str value)
{
    assert(option[0] == '-' && option[1] == '-');
    if (!value.ptr || !option_exists(args->table, option + 2))
        return;
    args->list[args->len++] = option;
    args->list[args->len++] = value.ptr;
}

/* How the shell prints. */
static void format_add(struct shell *shell, struct call_args *args)
{
    const struct database_settings *settings = &shell->settings->database;
    bool lines = settings->jsonl || (shell->interactive && shell->format == SHELL_JSON);

    if (settings->json || (lines && !option_exists(args->table, "jsonl")))
        flag_add(args, "--json");
    else if (lines)
        flag_add(args, "--jsonl");
    if (settings->quiet)
        flag_add(args, "--quiet");
    if (shell->format == SHELL_DYNAMODB)
        flag_add(args, "--dynamodb");
    if (shell->timing)
        flag_add(args, "--capacity");
}

/* What was typed, with the options of the shell in front; NULL: no memory. */
static const char *const *args_make(struct shell *shell, const struct options_table *table,
                                    size_t len, const char *const *typed, size_t *made)
{
    const struct database_settings *settings = &shell->shared.settings;
    struct hf_scope *s = shell->work;
    struct call_args args = {.table = table,
                             .list =
                                 hf_scope_alloc(s, (len + SHELL_OPTIONS_MAX) * sizeof(*args.list))};

    if (!args.list)
        return NULL;
    if (!names_database(table, len, typed)) {
        text_add(&args, "--db", settings->url);
        text_add(&args, "--prefix", settings->prefix);
        text_add(&args, "--profile", settings->profile);
        text_add(&args, "--region", settings->region);
    }
    text_add(&args, "--timeout",
             hf_scope_format(s, "%llums", (unsigned long long)settings->timeout_ms));
    format_add(shell, &args);
    assert(args.len <= SHELL_OPTIONS_MAX);
    if (len)
        memcpy(args.list + args.len, typed, len * sizeof(*typed));
    *made = args.len + len;
    return args.list;
}

/* ---- running -------------------------------------------------------------------------------- */

static void item_note(void *user, struct hf_item item)
{
    struct shell *shell = user;
    struct hf_item_walk walk = {.next = 0};

    while (shell->table.ptr && hf_item_next(item, &walk))
        hf__shell_known_add(shell->known, shell->table, walk.name);
}

static int64_t shell_now_us(const struct shell *shell)
{
    const struct hf_env *env = hf_scope_env(shell->work);

    return env->elapsed_us(env->user);
}

/* The command's view of the world. (1) */
static void cli_make(struct shell *shell, struct shell_cli *inner, struct cli_outcome *outcome)
{
    size_t rows;

    hf__shell_idle(shell);
    inner->cli = *shell->c->cli;
    inner->shell = shell;
    inner->cli.scope = shell->work;
    inner->cli.guard = shell->c->guard;
    inner->cli.shared = &shell->shared;
    inner->cli.outcome = outcome;
    inner->cli.expanded = shell->expanded;
    inner->cli.table_named = false;
    inner->cli.json = shell->settings->database.json || shell->settings->database.jsonl;
    if (inner->cli.terminal)
        hf__screen_size(&rows, &inner->cli.columns);
    if (shell->file) {
        inner->cli.out = shell->file;
        inner->cli.out_name = shell->file_name;
        inner->cli.terminal = inner->cli.styled = false;
    }
    *outcome = (struct cli_outcome){.on_item = item_note, .user = shell};
}

static bool is_paged(const struct shell *shell, const struct shell_cli *inner,
                     const struct command *command)
{
    return shell->interactive && shell->editing && inner->cli.terminal &&
           !(command && (command->guarded || command->run));
}

/* After a command has ended. (3) */
static void signal_take(struct shell *shell, bool left)
{
    if (hf__shell_signal(shell) == SIGINT && shell->interactive && !left)
        fputs("canceled\n", stderr);
    hf__shell_idle(shell);
}

/* Run it, with its output on a page. `command` NULL: all of it is for the frame, as `help`. */
static int call_run(struct shell *shell, struct shell_cli *inner, const struct cli_command *command,
                    size_t len, const char *const *args)
{
    struct screen screen;
    bool paged = is_paged(shell, inner, command ? command->command : NULL), left = false;
    int ends;

    if (!shell->file && !hf__screen_begin(&screen, shell, paged))
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    if (!shell->file) {
        inner->cli.out = screen.out;
        inner->cli.err = screen.err;
    }
    ends = command ? hf__command_run(&inner->cli, command->command, command->options, len, args)
                   : hf__cli_run(&inner->cli, len, args);
    shell->ended_us = shell_now_us(shell);
    if (!shell->file)
        left = hf__screen_end(&screen);
    if (left) /* nobody has seen them all */
        inner->cli.outcome->listed = false;
    if (shell->interactive && ends > CLI_SIGNAL)
        fputc('\n', stderr); /* behind the ^C of the terminal */
    if (command && command->command->guarded)
        hf__shell_program_ended(shell, ends);
    signal_take(shell, left);
    return left ? (int)CLI_OK : ends;
}

static bool is_outside(const struct cli_command *command)
{
    static const char *const names[] = {"serve", "shell", "mcp"};

    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (strcmp(command->name, names[i]) == 0)
            return true;
    return command->command->run != NULL;
}

static void time_print(const struct shell *shell, int64_t began_us,
                       const struct cli_outcome *outcome)
{
    double ms = (double)(shell->ended_us - began_us) / 1000.0;

    if (!shell->timing || shell->ended_us < began_us)
        return;
    if (outcome->counted)
        fprintf(stderr, "time: %.3f ms, %g read units, %g write units\n", ms,
                outcome->consumed.read_units, outcome->consumed.write_units);
    else
        fprintf(stderr, "time: %.3f ms\n", ms);
}

/* "(3 items)", for a person. */
static void count_print(const struct shell *shell, const struct cli_outcome *outcome)
{
    if (!shell->interactive || shell->file || shell->settings->database.quiet)
        return;
    if (!outcome->listed)
        return;
    printf("(%llu item%s%s)\n", (unsigned long long)outcome->items, outcome->items == 1 ? "" : "s",
           outcome->more ? "; \\limit 0 shows all" : "");
    fflush(stdout);
}

/* Run a command by its words; *outcome is what it told. */
static int words_run(struct shell *shell, size_t len, const char *const *words,
                     struct cli_outcome *outcome)
{
    struct shell_cli inner;
    const struct cli_command *command;
    const char *const *args;
    size_t name_len, args_len, leading = hf__cli_leading(len, words);

    if (shell->tx)
        return hf__shell_tx_refuse(shell, "commands do not run inside of a transaction");
    cli_make(shell, &inner, outcome);
    if (leading) {
        words = hf__cli_options_moved(&inner.cli, len, words, leading);
        if (!words)
            return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    }
    command = hf__cli_find(shell->c->cli, len, words, &name_len);
    if (command && is_outside(command))
        return hf__shell_fail(shell, CLI_USAGE,
                              "'%s' does not run inside of the shell: start it from another "
                              "terminal",
                              command->name);
    if (!command) {
        int ends = call_run(shell, &inner, NULL, len, words);

        if (ends == CLI_USAGE && shell->interactive)
            hf__shell_note(shell, "\\? shows what you can type");
        return ends;
    }
    args = args_make(shell, command->options, len - name_len, words + name_len, &args_len);
    if (!args)
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    if (!shell->table.ptr && len > name_len && command->options->operands &&
        strncmp(command->options->operands, "TABLE", strlen("TABLE")) == 0)
        shell->table = hf_str_from(words[name_len]);
    return call_run(shell, &inner, command, args_len, args);
}

int hf__shell_run_words(struct shell *shell, size_t len, const char *const *words)
{
    struct cli_outcome outcome = {.listed = false};
    int64_t began_us = shell_now_us(shell);
    int ends;

    shell->table = (struct hf_str){0};
    ends = words_run(shell, len, words, &outcome);
    shell->table = (struct hf_str){0};
    if (ends == CLI_OK)
        count_print(shell, &outcome);
    time_print(shell, began_us, &outcome);
    return ends;
}

int hf__shell_call(struct shell *shell, const struct command *command,
                   const struct options_table *table, size_t operands_len,
                   const char *const *operands)
{
    const struct cli_command call = {.name = table->name, .options = table, .command = command};
    struct shell_cli inner;
    struct cli_outcome outcome;
    const char *const *args;
    size_t args_len;

    cli_make(shell, &inner, &outcome);
    args = args_make(shell, table, operands_len, operands, &args_len);
    if (!args)
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    return call_run(shell, &inner, &call, args_len, args);
}

/* ---- units ---------------------------------------------------------------------------------- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The name that a text begins with, behind blanks; with quotes around it or not. */
static struct hf_str name_read(struct hf_scope *s, struct hf_str text)
{
    size_t at = 0, end;
    bool quoted;

    while (at < text.len && is_space(text.ptr[at]))
        at++;
    quoted = at < text.len && text.ptr[at] == '"';
    at += quoted;
    for (end = at; end < text.len; end++) {
        char c = text.ptr[end];

        if (quoted ? c == '"' : is_space(c) || c == '.' || c == ';' || c == ',' || c == '(')
            break;
    }
    return hf_scope_copy(s, hf_str_of(text.ptr + at, end - at));
}

/* The word behind FROM, INTO or UPDATE, which is the table; absent: there is none. */
static struct hf_str statement_table(struct hf_scope *s, struct hf_str text)
{
    static const char *const words[] = {"FROM", "INTO", "UPDATE"};

    for (size_t at = 0; at < text.len; at++)
        for (size_t i = 0; i < ARRAY_LEN(words) && (at == 0 || is_space(text.ptr[at - 1])); i++) {
            struct hf_str rest = hf_str_of(text.ptr + at, text.len - at);
            size_t len = strlen(words[i]);

            if (hf__shell_input_begins(rest, words[i]))
                return name_read(s, hf_str_of(rest.ptr + len, rest.len - len));
        }
    return (struct hf_str){0};
}

static int statement_run(struct shell *shell, struct hf_str text)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str statement = {0}, limit = {0};
    struct cli_outcome outcome = {.listed = false};
    int64_t began_us = shell_now_us(shell);
    int ends;

    if (s) {
        statement = hf_scope_copy(s, text);
        limit = shell->limit ? hf_scope_format(s, "--limit=%llu", (unsigned long long)shell->limit)
                             : HF_STR("--all");
        shell->table = statement_table(s, text);
    }
    if (!statement.ptr || !limit.ptr) {
        hf_scope_free(s);
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    }
    ends =
        words_run(shell, 4, (const char *const[]){"sql", limit.ptr, "--", statement.ptr}, &outcome);
    if (ends == CLI_OK && (outcome.items || hf__shell_input_begins(text, "SELECT")))
        count_print(shell, &outcome);
    else if (ends == CLI_OK && shell->interactive && !shell->depth && !shell->file &&
             !shell->settings->database.quiet)
        puts("ok");
    else if (ends == CLI_NOT_FOUND && shell->interactive && shell->table.len)
        hf__shell_note(shell, "there is no table or index '%.*s'; \\d lists the tables",
                       HF_FMT(shell->table));
    time_print(shell, began_us, &outcome);
    shell->table = (struct hf_str){0};
    hf_scope_free(s);
    return ends;
}

static int command_run(struct shell *shell, struct hf_str text)
{
    struct hf_scope *s = hf_scope_new(NULL);
    char **words = NULL;
    size_t len = 0;
    int ends;

    if (!s)
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    if (hf__child_words(s, text, &words) != HF_OK) {
        ends = hf__shell_fail(shell, CLI_USAGE, "the command cannot be read: %s",
                              hf_scope_error_text(s));
        hf_scope_free(s);
        return ends;
    }
    while (words[len])
        len++;
    if (strcmp(words[0], "holdfast") == 0 && len > 1) { /* as it is written elsewhere */
        words++;
        len--;
    }
    if (len == 1 && (strcmp(words[0], "exit") == 0 || strcmp(words[0], "quit") == 0)) {
        shell->quit = true;
        ends = CLI_OK;
    } else if (len == 1 && strcmp(words[0], "help") == 0) {
        ends = hf__shell_meta(shell, HF_STR("\\?"));
    } else {
        ends = hf__shell_run_words(shell, len, (const char *const *)words);
    }
    hf_scope_free(s);
    return ends;
}

static void last_keep(struct shell *shell, enum shell_unit_kind kind, struct hf_str text)
{
    char *copy = hf__shell_input_copy(text);

    free(shell->last);
    shell->last = copy;
    shell->last_kind = kind;
}

int hf__shell_run(struct shell *shell, enum shell_unit_kind kind, struct hf_str text)
{
    int ends;

    if (text.len > SHELL_UNIT_MAX)
        return hf__shell_fail(shell, CLI_USAGE, "longer than %d bytes", SHELL_UNIT_MAX);
    if (memchr(text.ptr, '\0', text.len))
        return hf__shell_fail(shell, CLI_USAGE, "there is a NUL in it");
    if (kind == SHELL_META)
        return hf__shell_meta(shell, text);
    if (text.ptr != shell->last)
        last_keep(shell, kind, text);
    if (kind == SHELL_COMMAND)
        return command_run(shell, text);
    return hf__shell_tx_run(shell, text, &ends) ? ends : statement_run(shell, text);
}

/* ---- again and again ------------------------------------------------------------------------ */

static void watch_heading(const struct shell *shell, uint64_t ms)
{
    char now[32] = "";
    time_t seconds = time(NULL);
    struct tm parts;

    if (!shell->interactive)
        return;
    if (localtime_r(&seconds, &parts))
        strftime(now, sizeof(now), "%H:%M:%S", &parts);
    printf("%s, every %gs\n", now, (double)ms / 1000.0);
    fflush(stdout);
}

/* Wait for the next round. False: a signal came, now or while the last one ran. */
static bool watch_sleep(struct shell *shell, uint64_t ms)
{
    enum hf_status slept;

    hf__shell_idle(shell);
    if (shell->interrupted || shell->quit)
        return false;
    slept = hf_scope_sleep_ms(shell->work, (uint32_t)ms);
    hf__shell_idle(shell);
    return slept == HF_OK && !shell->interrupted;
}

int hf__shell_watch(struct shell *shell, uint64_t ms, uint64_t count)
{
    bool no_pager = shell->settings->no_pager;
    int ends = CLI_OK;

    if (!shell->last)
        return hf__shell_fail(shell, CLI_USAGE,
                              "\\watch repeats the last statement, and there is none yet");
    shell->settings->no_pager = true; /* it would wait for a person each time */
    for (uint64_t i = 0; (!count || i < count) && ends == CLI_OK && !shell->quit; i++) {
        if (i && !watch_sleep(shell, ms))
            break;
        watch_heading(shell, ms);
        ends = hf__shell_run(shell, shell->last_kind, hf_str_from(shell->last));
        if (shell->interactive && (!count || i + 1 < count))
            putchar('\n');
        fflush(stdout);
    }
    shell->settings->no_pager = no_pager;
    return ends;
}
