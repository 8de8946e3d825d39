/*
 * cli/shell/cmd_shell.c: statements and commands, one after the other, on a database that stays open:
 * `holdfast shell`.
 *
 * Lines come from a person, a pipe, files (-f, \i) or the command line (-c), and are cut into statements and
 * commands by shell_input.c.
 *
 * What always holds:
 *
 *  (1) For a person an error is no end: the next line is asked for. Anything else stops at the first error,
 *      unless --keep-going, and the exit code is that of the first error.
 *  (2) Nothing is written to the history but what a person typed at the prompt.
 *  (3) A directory is opened once. One that does not exist is created by the first command that would create
 *      it outside of the shell, too.
 */
#include "base/base.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/mask.h"
#include "cli/frame/process/line_reader.h"
#include "cli/shell/shell.h"
#include "cli/shell/shell_screen.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NAME_MAX_SHOWN = 24, PROMPT_COLUMNS_MIN = 40 };

#define FIELD(member) .offset = offsetof(struct shell_settings, member)

static const struct option_spec shell_specs[] = {
    {.kind = OPTION_LIST,
     .letter = 'c',
     .name = "command",
     .value = "TEXT",
     .text = "Run these statements and commands, then end. May be given several times.",
     FIELD(commands)},
    {.kind = OPTION_LIST,
     .letter = 'f',
     .name = "file",
     .value = "FILE",
     .text =
         "Run the statements and commands of a file, then end; - is standard input. May be given "
         "several times.",
     FIELD(files)},
    {.kind = OPTION_FLAG,
     .letter = 'k',
     .name = "keep-going",
     .text =
         "Do not stop at the first error. The exit code is that of the first error all the same.",
     FIELD(keep_going)},
    {.kind = OPTION_TEXT,
     .name = "history",
     .value = "FILE",
     .env = "HOLDFAST_HISTORY",
     .text =
         "Where the lines that you type are kept; 'none' keeps none. By default "
         "$XDG_STATE_HOME/holdfast/history, or ~/.local/state/holdfast/history. Lines that begin "
         "with a blank are not kept.",
     FIELD(history)},
    {.kind = OPTION_FLAG,
     .name = "no-pager",
     .text = "Print long results without stopping. Otherwise they go to $PAGER, or to less.",
     FIELD(no_pager)},
    {.kind = OPTION_FLAG,
     .name = "dynamodb",
     .text = "Print items as DynamoDB's JSON, {\"a\":{\"S\":\"x\"}}.",
     FIELD(dynamodb)},
    DATABASE_LIST(struct shell_settings),
};

static const struct option_example shell_examples[] = {
    {"holdfast shell", "On the server of this machine."},
    {"holdfast shell --db embedded:shop.db",
     "On a directory, which stays open until the shell ends."},
    {"holdfast shell -c \"SELECT * FROM orders WHERE customer = 'ann'\"",
     "One statement, and the end."},
    {"holdfast shell -f setup.sql", "A file of statements and commands."},
    {"echo 'table ls' | holdfast shell --json", "From a pipe, for a program."},
};

const struct options_table hf__shell_options = {
    .name = "shell",
    .about =
        "Run statements of PartiQL and commands of holdfast, one after the other.\n\n"
        "A statement ends with ';' and may have several lines; -- begins a comment. A command is what "
        "comes after 'holdfast' elsewhere: item get orders ann 2. Commands of the shell begin with a "
        "backslash: \\d lists the tables, \\d NAME shows one, \\watch 1s repeats the last statement, "
        "\\timing shows times, \\x prints a line for each attribute, \\? lists all of them, \\q "
        "ends.\n\n"
        "On a terminal lines can be edited. Tab completes commands, options, tables, indexes, "
        "attributes, keys and words of PartiQL; Ctrl-R searches the history. Ctrl-C ends a statement "
        "that runs, or clears the line; Ctrl-D ends the shell.\n\n"
        "With a pipe or a file as input there is no prompt, items are lines of JSON, and the shell ends "
        "at the first error.",
    COMMAND_SPECS(shell),
    .notes =
        "'serve', 'shell' and 'mcp' do not run inside of the shell. A command with --db uses that "
        "database in place of the shell's.\n\n"
        "BEGIN; ... COMMIT; sends the statements in between as one transaction: up to 100 writes, or "
        "reads, of one item each.\n\n"
        "~/.editrc assigns keys, see editrc(5). To complete keys of items the shell reads up to 100 "
        "items of the table, but never on dynamodb://, where reading costs money.",
};

/* ---- the database --------------------------------------------------------------------------- */

/* Is it a directory that does not exist? (3) */
static bool is_missing(struct hf_scope *s, struct hf_str url)
{
    const struct hf_str kind = HF_STR("embedded:");
    const char *query = memchr(url.ptr, '?', url.len);
    size_t len = query ? (size_t)(query - url.ptr) : url.len;
    struct stat about;
    struct hf_str path;

    if (len <= kind.len || memcmp(url.ptr, kind.ptr, kind.len) != 0)
        return false;
    path = hf_scope_copy(s, hf_str_of(url.ptr + kind.len, len - kind.len));
    return path.ptr && stat(path.ptr, &about) != 0 && errno == ENOENT;
}

static enum hf_status connect_body(struct command_ctx *c)
{
    (void)c;
    return HF_OK;
}

static const struct command connect_command = {COMMAND_SETTINGS(struct shell_settings),
                                               .body = connect_body};

int hf__shell_connect(struct shell *shell)
{
    struct hf_str url = shell->shared.settings.url;

    hf__shell_idle(shell);
    if (!is_missing(shell->work, url))
        return hf__shell_call(shell, &connect_command, &hf__shell_options, 0, NULL);
    if (shell->interactive)
        hf__shell_note(shell, "%.*s does not exist yet: 'table create' creates it", HF_FMT(url));
    return CLI_OK;
}

/* ---- units ---------------------------------------------------------------------------------- */

/* Where lines come from, for errors. */
struct shell_source {
    struct shell_input input;
    const char *path; /* NULL: a person, or -c */
    uint64_t failed;  /* the line that failed first; 0: none */
};

/* After a unit of a script has failed. True: go on. (1) */
static bool failure_note(struct shell *shell, struct shell_source *source,
                         const struct shell_unit *unit, int ends)
{
    if (ends == CLI_OK)
        return true;
    if (shell->ends == CLI_OK)
        shell->ends = ends;
    if (shell->quit || shell->interrupted)
        return false;
    if (source->path && !source->failed)
        hf__shell_note(shell, "%s: line %llu failed%s", source->path,
                       (unsigned long long)unit->line,
                       shell->settings->keep_going
                           ? ""
                           : "; what follows was not run: --keep-going would");
    else if (source->path)
        hf__shell_note(shell, "%s: line %llu failed", source->path, (unsigned long long)unit->line);
    source->failed = unit->line;
    return shell->settings->keep_going;
}

/* Run what is whole. False: stop. */
static bool units_run(struct shell *shell, struct shell_source *source, bool typed)
{
    struct shell_unit unit;

    while (!shell->quit && !shell->interrupted && hf__shell_input_next(&source->input, &unit)) {
        int ends = hf__shell_run(shell, unit.kind, unit.text);

        if (!typed && !failure_note(shell, source, &unit, ends))
            return false;
    }
    return !shell->quit;
}

/* At the end of a script. */
static void last_run(struct shell *shell, struct shell_source *source)
{
    struct shell_unit unit;
    bool open;
    int ends;

    if (shell->quit || shell->interrupted || !hf__shell_input_last(&source->input, &unit, &open))
        return;
    ends =
        open ? hf__shell_fail(shell, CLI_USAGE,
                              "a quote or comment does not end; it is in what begins at line %llu",
                              (unsigned long long)unit.line)
             : hf__shell_run(shell, unit.kind, unit.text);
    (void)failure_note(shell, source, &unit, ends);
}

/* ---- scripts -------------------------------------------------------------------------------- */

static bool is_too_long(struct shell *shell, const struct shell_input *input, struct hf_str line)
{
    if (hf__shell_input_pending(input).len + line.len <= SHELL_UNIT_MAX)
        return false;
    hf__shell_fail(shell, CLI_USAGE,
                   "what begins at line %llu is longer than %d bytes: a ; is missing",
                   (unsigned long long)input->line, SHELL_UNIT_MAX);
    return true;
}

/* The lines of a file, until one fails. Returns an exit code, of which nothing was kept. */
static int lines_run(struct shell *shell, struct line_reader *reader, struct shell_source *source)
{
    for (;;) {
        struct hf_str line;
        enum hf_status status;

        hf__shell_idle(shell);
        if (shell->quit || shell->interrupted)
            return shell->quit ? (int)CLI_OK : CLI_SIGNAL + SIGINT;
        status = hf__line_reader_next(shell->work, reader, &line);
        if (hf__shell_signal(shell))
            return CLI_SIGNAL + hf__shell_signal(shell);
        if (status != HF_OK)
            return hf__shell_fail(shell, CLI_USAGE, "%s: line %llu: %s", source->path,
                                  (unsigned long long)reader->number + 1,
                                  hf_scope_error_text(shell->work));
        if (!line.ptr)
            break;
        if (is_too_long(shell, &source->input, line))
            return CLI_USAGE;
        if (!hf__shell_input_add(&source->input, line))
            return hf__shell_fail(shell, CLI_FAILED, "out of memory");
        if (!units_run(shell, source, false))
            return CLI_OK;
    }
    last_run(shell, source);
    return CLI_OK;
}

int hf__shell_read_file(struct shell *shell, const char *path)
{
    struct shell_source source = {.path = path};
    int before = shell->ends, ends;
    struct line_reader reader;

    if (!hf__line_reader_open(&reader, path, SHELL_UNIT_MAX))
        return hf__shell_fail(shell, CLI_USAGE, "%s: %s", path, strerror(errno));
    source.path = reader.path;
    shell->ends = CLI_OK;
    ends = lines_run(shell, &reader, &source);
    if (ends == CLI_OK)
        ends = shell->ends;
    if (!shell->quit) /* whoever asked for the file keeps its code */
        shell->ends = before;
    hf__line_reader_close(&reader);
    hf__shell_input_free(&source.input);
    return ends;
}

static int text_run(struct shell *shell, struct hf_str text)
{
    struct shell_source source = {.path = NULL};

    if (text.len > SHELL_UNIT_MAX)
        return hf__shell_fail(shell, CLI_USAGE, "-c: longer than %d bytes", SHELL_UNIT_MAX);
    if (!hf__shell_input_add(&source.input, text))
        return hf__shell_fail(shell, CLI_FAILED, "out of memory");
    if (units_run(shell, &source, false))
        last_run(shell, &source);
    hf__shell_input_free(&source.input);
    return shell->ends;
}

/* -c, -f or a pipe. (1) */
static void script_run(struct shell *shell)
{
    const struct shell_settings *settings = shell->settings;
    size_t len = settings->commands.len + settings->files.len;
    int ends = CLI_OK, first = CLI_OK;

    for (size_t i = 0; i < len && !shell->quit && (ends == CLI_OK || settings->keep_going); i++) {
        shell->ends = CLI_OK;
        ends = i < settings->commands.len
                   ? text_run(shell, settings->commands.values[i])
                   : hf__shell_read_file(shell,
                                         settings->files.values[i - settings->commands.len].ptr);
        if (first == CLI_OK)
            first = ends;
    }
    if (!len)
        first = hf__shell_read_file(shell, "-");
    if (shell->ends == CLI_OK || !shell->quit)
        shell->ends = first;
}

/* ---- a person ------------------------------------------------------------------------------- */

/* What the prompt calls the database: its last folder, or its host. */
static struct hf_str short_name(struct hf_str url)
{
    const char *colon = memchr(url.ptr, ':', url.len);
    struct hf_str name = url;
    size_t len;

    if (colon)
        name = hf_str_of(colon + 1, url.len - (size_t)(colon + 1 - url.ptr));
    while (name.len && name.ptr[0] == '/' && url.ptr[0] != 'e') {
        name.ptr++;
        name.len--;
    }
    for (len = 0; len < name.len && name.ptr[len] != '?'; len++)
        ;
    name.len = len;
    while (name.len && name.ptr[name.len - 1] == '/')
        name.len--;
    for (size_t i = name.len; i-- > 0;)
        if (name.ptr[i] == '/')
            return hf_str_of(name.ptr + i + 1, name.len - i - 1);
    return name.len ? name : HF_STR("memory");
}

/* "shop.db> ", and as wide for the lines that go on. */
static void prompt_make(const struct shell *shell, bool goes_on, char prompt[SHELL_PROMPT_MAX])
{
    struct hf_scope_mark mark = hf_scope_mark(shell->work);
    struct hf_str name = short_name(hf__cli_mask(shell->work, shell->shared.settings.url));
    size_t rows, columns, len = 0;

    hf__screen_size(&rows, &columns);
    if (name.len <= NAME_MAX_SHOWN && (!columns || columns >= PROMPT_COLUMNS_MIN))
        len = name.len;
    if (goes_on)
        snprintf(prompt, SHELL_PROMPT_MAX, "%*s> ", (int)(len ? len : 1), "..");
    else
        snprintf(prompt, SHELL_PROMPT_MAX, "%.*s%s> ", (int)len, name.ptr, shell->tx ? "*" : "");
    for (char *at = prompt; *at; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7F)
            *at = '?';
    hf_scope_rewind(shell->work, mark);
}

static void greeting_print(const struct shell *shell)
{
    if (shell->settings->database.quiet)
        return;
    printf("holdfast %s on ", hf_version());
    hf__rows_print(stdout, hf__cli_mask(shell->work, shell->shared.settings.url));
    puts("\n\\? shows help, Tab completes, \\q ends.");
    fflush(stdout);
}

/* A line that begins with a backslash is for the shell, also in the middle of a statement. False: it is
 * none. */
static bool meta_inside(struct shell *shell, struct shell_input *input, struct hf_str line)
{
    struct shell_unit unit;
    bool open;

    if (!hf__shell_input_pending(input).len || input->state != SCAN_PLAIN || !line.len ||
        line.ptr[0] != '\\')
        return false;
    if (line.len >= 2 && line.ptr[1] == 'r' && line.len == 2) {
        hf__shell_input_clear(input);
        return true;
    }
    if (line.len >= 6 && memcmp(line.ptr, "\\watch", 6) == 0 &&
        hf__shell_input_last(input, &unit, &open)) {
        /* the statement so far is the one to be repeated */
        free(shell->last);
        shell->last = hf__shell_input_copy(unit.text);
        shell->last_kind = unit.kind;
    }
    (void)hf__shell_run(shell, SHELL_META, line);
    return true;
}

/* Add to what was typed since the last unit was run, for the history. False: no memory. */
static bool typed_add(struct shell_input *typed, struct hf_str line)
{
    if (hf__shell_input_pending(typed).len + line.len > SHELL_UNIT_MAX)
        return true;
    return hf__shell_input_add(typed, line);
}

static void typed_keep(struct shell_editor *editor, struct shell_input *typed)
{
    struct hf_str text = hf__shell_input_pending(typed);

    while (text.len && text.ptr[text.len - 1] == '\n')
        text.len--;
    hf__shell_editor_remember(editor, text);
    hf__shell_input_clear(typed);
}

/* Take a line that was typed. */
static void line_take(struct shell *shell, struct shell_editor *editor, struct shell_source *source,
                      struct shell_input *typed, struct hf_str line)
{
    shell->interrupted = false;
    if (meta_inside(shell, &source->input, line))
        return;
    if (is_too_long(shell, &source->input, line)) {
        hf__shell_input_clear(&source->input);
        hf__shell_input_clear(typed);
        return;
    }
    if (!typed_add(typed, line) || !hf__shell_input_add(&source->input, line)) {
        hf__shell_fail(shell, CLI_FAILED, "out of memory");
        return;
    }
    /* Before it is run: a statement that ends the program is the one to look at later. */
    if (hf__shell_input_whole(&source->input))
        typed_keep(editor, typed);
    (void)units_run(shell, source, true);
    if (shell->interrupted)
        hf__shell_input_clear(&source->input);
}

static void person_serve(struct shell *shell, struct shell_editor *editor)
{
    struct shell_source source = {.path = NULL};
    struct shell_input typed = {.ptr = NULL};
    char prompt[SHELL_PROMPT_MAX];

    while (!shell->quit) {
        struct hf_str pending = hf__shell_input_pending(&source.input), line;

        prompt_make(shell, pending.len > 0, prompt);
        switch (hf__shell_editor_read(editor, prompt, pending, &line)) {
        case SHELL_READ_LINE:
            line_take(shell, editor, &source, &typed, line);
            break;
        case SHELL_READ_INTERRUPTED:
            hf__shell_idle(shell);
            hf__shell_input_clear(&source.input);
            hf__shell_input_clear(&typed);
            break;
        case SHELL_READ_FAILED:
            shell->ends = CLI_FAILED;
            shell->quit = true;
            break;
        case SHELL_READ_END:
            shell->quit = true;
            break;
        }
    }
    hf__shell_input_free(&source.input);
    hf__shell_input_free(&typed);
}

static void interactive_run(struct shell *shell)
{
    struct shell_editor *editor;

    shell->history = hf__shell_history_open(shell, shell->settings->history);
    editor = hf__shell_editor_open(shell);
    if (!editor) {
        shell->ends = hf__shell_fail(shell, CLI_FAILED, "out of memory");
        return;
    }
    greeting_print(shell);
    shell->ends = hf__shell_connect(shell);
    if (shell->ends == CLI_OK)
        person_serve(shell, editor);
    hf__shell_editor_close(editor);
}

/* ---- the command ---------------------------------------------------------------------------- */

static enum hf_status shell_check(struct command_ctx *c)
{
    const struct shell_settings *settings = c->settings;

    c->without_db = true; /* (3) */
    if (settings->commands.len && settings->files.len)
        return hf__command_fail(c, CLI_USAGE, "give -c or -f, not both");
    return HF_OK;
}

static void shell_close(struct shell *shell)
{
    int dropped;

    hf__guard_aim(shell->c->guard, shell->c->scope);
    dropped = hf__shell_tx_end(shell);
    if (shell->ends == CLI_OK)
        shell->ends = dropped;
    if (shell->file && fclose(shell->file) != 0 && shell->ends == CLI_OK)
        shell->ends = hf__shell_fail(shell, CLI_FAILED, "%s was not written whole: %s",
                                     shell->file_name, strerror(errno));
    free(shell->file_name);
    hf__shell_history_close(shell->history);
    hf__shell_known_free(shell->known);
    hf_db_close(shell->shared.db);
    hf_scope_free(shell->work);
    hf_scope_free(shell->kept);
    free(shell->last);
}

static enum hf_status shell_run(struct command_ctx *c)
{
    struct shell_settings *settings = c->settings;
    struct shell shell = {.c = c,
                          .settings = settings,
                          .kept = hf_scope_new(NULL),
                          .work = hf_scope_new(NULL),
                          .known = hf__shell_known_new(),
                          .shared = {.settings = settings->database},
                          .format = settings->dynamodb ? SHELL_DYNAMODB : SHELL_TABLE};
    bool script = settings->commands.len || settings->files.len;

    if (!shell.kept || !shell.work || !shell.known) {
        shell.ends = hf__shell_fail(&shell, CLI_FAILED, "out of memory");
    } else {
        hf__guard_notes(c->guard);
        shell.interactive = !script && isatty(STDIN_FILENO) == 1 && c->cli->terminal;
        if (shell.interactive)
            interactive_run(&shell);
        else
            script_run(&shell);
    }
    shell_close(&shell);
    return hf__command_end(c, shell.ends);
}

const struct command hf__shell_command = {COMMAND_SETTINGS(struct shell_settings), .guarded = true,
                                          .check = shell_check, .body = shell_run};
