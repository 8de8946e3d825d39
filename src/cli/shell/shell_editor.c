/*
 * cli/shell/shell_editor.c: a line from a person: with libedit, or as the terminal has it.
 *
 * libedit is loaded when the shell starts to read from a terminal (base/library.h): no other command needs
 * it, and a container that serves has none. Without it, or on a terminal that cannot move its cursor, lines
 * are read as they come, and the shell says so once.
 *
 * Keys are read here, not by libedit: the guard's thread has the signals (frame/child.h), so the one that
 * waits for a key waits for the guard's bell, too. The handler of SIGWINCH and SIGCONT rings the same bell.
 *
 * What always holds:
 *
 *  (1) The terminal is in libedit's mode while a line is read, and in its usual one otherwise.
 *  (2) What completion prints cannot send control characters: it is printed by hf__rows_print(), and words
 *      with such characters are not offered.
 */
#include "cli/shell/shell.h"

#include "base/base.h"
#include "base/library.h"
#include "base/utf8.h"
#include "cli/frame/process/line_reader.h"
#include "cli/shell/shell_screen.h"

#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#ifdef HF_WITH_LIBEDIT
#include <histedit.h>

/* clang-format off */
#define EDIT_FUNCTIONS(X) \
    X(el_init) X(el_end) X(el_set) X(el_gets) X(el_line) X(el_insertstr) X(el_resize) X(el_source) \
    X(history_init) X(history_end) X(history)
/* clang-format on */

struct edit_library {
    EDIT_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE edit_library
static const struct library_symbol edit_symbols[] = {EDIT_FUNCTIONS(LIBRARY_SYMBOL)};
#endif

enum { UTF8_BYTES_MAX = 4, GAP = 2, CTRL_D = 4 };

struct shell_editor {
    struct shell *shell;
    const char *prompt;
    struct hf_str pending;
    bool interrupted;
    int held;     /* a byte that was read and belongs to the next key; -1: none */
    bool begun;   /* a key of this line was read */
    bool handles; /* signals of the terminal */
    struct sigaction winch, cont;
    struct line_reader lines; /* without libedit */
#ifdef HF_WITH_LIBEDIT
    struct edit_library lib;
    EditLine *el;
    History *history;
#endif
};

/* ---- signals of the terminal ---------------------------------------------------------------- */

static volatile sig_atomic_t terminal_changed;
static volatile sig_atomic_t terminal_bell = -1;

static void terminal_signal(int number)
{
    int before = errno;

    (void)number;
    terminal_changed = 1;
    if (terminal_bell >= 0)
        (void)eventfd_write(terminal_bell, 1);
    errno = before;
}

static void signals_begin(struct shell_editor *editor)
{
    struct sigaction action = {.sa_handler = terminal_signal, .sa_flags = SA_RESTART};

    terminal_bell = hf__guard_bell(editor->shell->c->guard);
    sigemptyset(&action.sa_mask);
    sigaction(SIGWINCH, &action, &editor->winch);
    sigaction(SIGCONT, &action, &editor->cont);
    editor->handles = true;
}

static void signals_end(struct shell_editor *editor)
{
    if (!editor->handles)
        return;
    sigaction(SIGWINCH, &editor->winch, NULL);
    sigaction(SIGCONT, &editor->cont, NULL);
    terminal_bell = -1;
}

/* ---- with libedit --------------------------------------------------------------------------- */

#ifdef HF_WITH_LIBEDIT

/* libedit's callbacks have no argument for this. There is one editor in a process. */
static struct shell_editor *the_editor;

static char *prompt_text(EditLine *el)
{
    static char room[SHELL_PROMPT_MAX];

    (void)el;
    snprintf(room, sizeof(room), "%s", the_editor->prompt);
    return room;
}

/* The bell has rung. True: a signal came that ends the line. */
static bool bell_answer(struct shell_editor *editor, EditLine *el, int bell)
{
    eventfd_t count;

    (void)eventfd_read(bell, &count);
    if (terminal_changed) {
        terminal_changed = 0;
        editor->lib.el_set(el, EL_PREP_TERM, 1); /* after SIGCONT it may be in any mode */
        editor->lib.el_resize(el);
        editor->lib.el_set(el, EL_REFRESH);
    }
    return hf__shell_signal(editor->shell) != 0;
}

/* One byte of standard input: 1, 0 at its end, -1 when it fails or a signal came. */
static int byte_read(struct shell_editor *editor, EditLine *el, unsigned char *byte)
{
    struct pollfd files[] = {{.fd = STDIN_FILENO, .events = POLLIN},
                             {.fd = hf__guard_bell(editor->shell->c->guard), .events = POLLIN}};

    if (editor->held >= 0) {
        *byte = (unsigned char)editor->held;
        editor->held = -1;
        return 1;
    }
    for (;;) {
        ssize_t got;

        if (poll(files, ARRAY_LEN(files), -1) < 0 && errno != EINTR)
            return -1;
        if (files[1].revents && bell_answer(editor, el, files[1].fd)) {
            editor->interrupted = true;
            return -1;
        }
        if (!files[0].revents)
            continue;
        got = read(STDIN_FILENO, byte, 1);
        if (got >= 0)
            return (int)got;
        if (errno != EINTR && errno != EAGAIN)
            return -1;
    }
}

/* How many bytes a character has that begins so; 1 also for bytes that begin none. */
static size_t key_len(unsigned char first)
{
    if (first < 0xC2 || first > 0xF4)
        return 1;
    return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

/* A character. Bytes that are no UTF-8 become U+FFFD. */
static int key_read(EditLine *el, wchar_t *key)
{
    struct shell_editor *editor = the_editor;
    unsigned char bytes[UTF8_BYTES_MAX];
    int got = byte_read(editor, el, bytes);
    size_t len = 1;

    if (got != 1)
        return got;
    /* Ctrl-D that was typed while a statement ran: a terminal that changes its mode then has a NUL. */
    if (!editor->begun && bytes[0] == '\0')
        bytes[0] = CTRL_D;
    editor->begun = true;
    for (; len < key_len(bytes[0]); len++) {
        got = byte_read(editor, el, &bytes[len]);
        if (got != 1)
            return got;
        if ((bytes[len] & 0xC0) != 0x80) {
            editor->held = bytes[len];
            break;
        }
    }
    if (bytes[0] < 0x80) {
        *key = bytes[0];
    } else if (hf__utf8_length(bytes, len) != len) {
        *key = 0xFFFD;
    } else {
        *key = bytes[0] & (0x7F >> len);
        for (size_t i = 1; i < len; i++)
            *key = *key << 6 | (bytes[i] & 0x3F);
    }
    return 1;
}

/* ---- completion ----------------------------------------------------------------------------- */

static void offers_print(const struct shell_offers *offers)
{
    size_t rows, columns, width = 0, across;

    hf__screen_size(&rows, &columns);
    for (size_t i = 0; i < offers->len; i++)
        if (hf__rows_width(offers->words[i]) > width)
            width = hf__rows_width(offers->words[i]);
    across = columns / (width + GAP) ? columns / (width + GAP) : 1;
    for (size_t i = 0; i < offers->len; i++) {
        bool ends = (i + 1) % across == 0 || i + 1 == offers->len;

        if (i % across == 0)
            fputc('\n', stdout);
        hf__rows_print(stdout, offers->words[i]); /* (2) */
        if (!ends)
            fprintf(stdout, "%*s", (int)(width + GAP - hf__rows_width(offers->words[i])), "");
    }
    if (offers->more)
        fputs("\n...", stdout);
    fputc('\n', stdout);
    fflush(stdout);
}

/* How many bytes all words have in common: whole characters. */
static size_t common_len(const struct shell_offers *offers)
{
    struct hf_str first = offers->words[0];
    size_t len = first.len;

    for (size_t i = 1; i < offers->len; i++) {
        size_t same = 0;

        while (same < len && same < offers->words[i].len &&
               offers->words[i].ptr[same] == first.ptr[same])
            same++;
        len = same;
    }
    while (len && len < first.len && ((unsigned char)first.ptr[len] & 0xC0) == 0x80)
        len--;
    return len;
}

/* Put in what is known of the word. False: nothing is, or there is no room for it. */
static bool offers_insert(struct shell_editor *editor, EditLine *el,
                          const struct shell_offers *offers, size_t typed_len)
{
    size_t len = common_len(offers);
    struct hf_str more = hf_scope_format(offers->s, "%.*s%s", (int)(len - typed_len),
                                         offers->words[0].ptr + typed_len,
                                         offers->len == 1 && !offers->more ? offers->behind : "");

    return more.len && editor->lib.el_insertstr(el, more.ptr) == 0;
}

static unsigned char tab_press(EditLine *el, int key)
{
    struct shell_editor *editor = the_editor;
    const LineInfo *info = editor->lib.el_line(el);
    struct shell_offers offers = {.s = hf_scope_new(NULL), .behind = " "};
    struct hf_str line;
    unsigned char result = CC_ERROR;

    (void)key;
    if (!offers.s)
        return CC_ERROR;
    line = hf_scope_copy(offers.s, hf_str_of(info->buffer, (size_t)(info->cursor - info->buffer)));
    if (line.ptr)
        hf__shell_complete(editor->shell, editor->pending, line, &offers);
    if (offers.len && offers_insert(editor, el, &offers, line.len - offers.start)) {
        result = CC_REFRESH;
    } else if (offers.len > 1) {
        offers_print(&offers);
        result = CC_REDISPLAY;
    }
    hf_scope_free(offers.s);
    return result;
}

/* ---- its life ------------------------------------------------------------------------------- */

static void history_enter(struct shell_editor *editor, const char *text)
{
    HistEvent event;

    editor->lib.history(editor->history, &event, H_ENTER, text);
}

/* Characters beyond ASCII are shown by the locale. */
static void locale_begin(void)
{
    if (!setlocale(LC_CTYPE, "") || MB_CUR_MAX == 1)
        (void)setlocale(LC_CTYPE, "C.UTF-8");
}

/* False: `why`. */
static bool edit_begin(struct shell_editor *editor, char why[LIBRARY_WHY])
{
    struct edit_library *lib = &editor->lib;
    HistEvent event;

    if (!hf__library_find(HF_LIBEDIT_LIBRARY, NULL, edit_symbols, ARRAY_LEN(edit_symbols), lib,
                          why))
        return false;
    locale_begin();
    the_editor = editor;
    editor->el = lib->el_init("holdfast", stdin, stdout, stderr);
    editor->history = lib->history_init();
    if (!editor->el || !editor->history) {
        snprintf(why, LIBRARY_WHY, "libedit does not work on this terminal");
        return false;
    }
    lib->history(editor->history, &event, H_SETSIZE, SHELL_HISTORY_MAX);
    for (size_t i = 0; i < hf__shell_history_len(editor->shell->history); i++)
        history_enter(editor, hf__shell_history_at(editor->shell->history, i));
    lib->el_set(editor->el, EL_PROMPT, prompt_text);
    lib->el_set(editor->el, EL_HIST, lib->history, editor->history);
    lib->el_set(editor->el, EL_EDITOR, "emacs");
    lib->el_set(editor->el, EL_GETCFN, key_read);
    lib->el_set(editor->el, EL_ADDFN, "holdfast-complete", "Complete the word", tab_press);
    lib->el_set(editor->el, EL_BIND, "^I", "holdfast-complete", NULL);
    lib->el_set(editor->el, EL_BIND, "^R", "em-inc-search-prev", NULL);
    lib->el_set(editor->el, EL_BIND, "^W", "ed-delete-prev-word", NULL);
    lib->el_set(editor->el, EL_BIND, "\\e[3~", "ed-delete-next-char", NULL);
    lib->el_set(editor->el, EL_BIND, "\\e[1;5C", "em-next-word", NULL);
    lib->el_set(editor->el, EL_BIND, "\\e[1;5D", "ed-prev-word", NULL);
    lib->el_source(editor->el, NULL); /* ~/.editrc */
    return true;
}

static void edit_end(struct shell_editor *editor)
{
    if (editor->history)
        editor->lib.history_end(editor->history);
    if (editor->el)
        editor->lib.el_end(editor->el);
    editor->el = NULL;
    editor->history = NULL;
    the_editor = NULL;
}

static enum shell_read edit_read(struct shell_editor *editor, struct hf_str *line)
{
    int count = 0;
    const char *text;

    /* Before the prompt is there: keys that come at once would be read in the other mode. */
    editor->lib.el_set(editor->el, EL_PREP_TERM, 1);
    text = editor->lib.el_gets(editor->el, &count);
    if (editor->interrupted) {
        fputs("^C\n", stdout);
        fflush(stdout);
        return SHELL_READ_INTERRUPTED;
    }
    if (!text || count <= 0) {
        fputc('\n', stdout);
        return SHELL_READ_END;
    }
    *line = hf_str_from(text);
    if (line->len && text[line->len - 1] == '\n')
        line->len--;
    return SHELL_READ_LINE;
}

#else /* the build has no libedit */

static bool edit_begin(struct shell_editor *editor, char why[LIBRARY_WHY])
{
    (void)editor;
    snprintf(why, LIBRARY_WHY, "this holdfast was built without libedit");
    return false;
}

static void edit_end(struct shell_editor *editor)
{
    (void)editor;
}

static enum shell_read edit_read(struct shell_editor *editor, struct hf_str *line)
{
    (void)editor;
    (void)line;
    return SHELL_READ_FAILED;
}

static void history_enter(struct shell_editor *editor, const char *text)
{
    (void)editor;
    (void)text;
}

#endif

/* ---- without -------------------------------------------------------------------------------- */

static enum shell_read plain_read(struct shell_editor *editor, struct hf_str *line)
{
    struct shell *shell = editor->shell;
    enum hf_status status;

    if (shell->interactive) {
        fputs(editor->prompt, stdout);
        fflush(stdout);
    }
    status = hf__line_reader_next(shell->work, &editor->lines, line);
    if (hf__shell_signal(shell)) {
        if (shell->interactive)
            fputc('\n', stdout);
        return SHELL_READ_INTERRUPTED;
    }
    if (status != HF_OK) {
        hf__shell_fail(shell, CLI_USAGE, "line %llu: %s",
                       (unsigned long long)editor->lines.number + 1,
                       hf_scope_error_text(shell->work));
        return SHELL_READ_FAILED;
    }
    if (!line->ptr && shell->interactive)
        fputc('\n', stdout);
    return line->ptr ? SHELL_READ_LINE : SHELL_READ_END;
}

/* ---- both ----------------------------------------------------------------------------------- */

struct shell_editor *hf__shell_editor_open(struct shell *shell)
{
    struct shell_editor *editor = calloc(1, sizeof(*editor));
    char why[LIBRARY_WHY] = "";

    if (!editor)
        return NULL;
    editor->shell = shell;
    editor->held = -1;
    (void)hf__line_reader_open(&editor->lines, "-", SHELL_UNIT_MAX);
    if (!shell->interactive)
        return editor;
    signals_begin(editor);
    if (hf__cli_is_dumb(shell->c->cli))
        return editor;
    if (edit_begin(editor, why)) {
        shell->editing = true;
        return editor;
    }
    edit_end(editor);
    hf__shell_note(shell, "lines cannot be edited: %s", why);
    return editor;
}

void hf__shell_editor_close(struct shell_editor *editor)
{
    if (!editor)
        return;
    edit_end(editor);
    signals_end(editor);
    hf__line_reader_close(&editor->lines);
    free(editor);
}

enum shell_read hf__shell_editor_read(struct shell_editor *editor, const char *prompt,
                                      struct hf_str pending, struct hf_str *line)
{
    *line = (struct hf_str){0};
    editor->prompt = prompt;
    editor->pending = pending;
    editor->interrupted = editor->begun = false;
    hf__shell_idle(editor->shell);
    return editor->shell->editing ? edit_read(editor, line) : plain_read(editor, line);
}

void hf__shell_editor_remember(struct shell_editor *editor, struct hf_str text)
{
    char *copy;

    if (!hf__shell_history_add(editor->shell->history, text) || !editor->shell->editing)
        return;
    copy = hf__shell_input_copy(text);
    if (copy)
        history_enter(editor, copy);
    free(copy);
}
