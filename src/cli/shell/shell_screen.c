/*
 * cli/shell/shell_screen.c: paging. See shell_screen.h.
 *
 * What a command prints is held back until it is longer than the terminal is high, or ends. A short result
 * is written then. A long one goes to a pager: $PAGER, or less; without either the shell stops after each
 * page itself. A pager reads as fast as a person does, and its pipe is short, so a statement that reads a
 * large table goes on page by page. When the person leaves, the command is canceled.
 *
 * What always holds:
 *
 *  (1) Errors are printed behind the output that was there before them, and never into a pager.
 *  (2) A signal that ends the shell does so while it waits for a pager or a key, too: the pager is ended.
 *  (3) When the person has left, the rest of the output is dropped, and so is the error that the command
 *      was canceled.
 */
#include "cli/shell/shell_screen.h"

#include "base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

enum { HELD_MAX = 256 * 1024, ERRORS_MAX = 64 * 1024, ROWS_USUAL = 24, COLUMNS_USUAL = 80 };
enum { PAGER_LOOK_MS = 100, PAGER_KILL_MS = 5000 };

static const char more_text[] = "--more-- (space: next page, return: next line, q: quit)";

void hf__screen_size(size_t *rows, size_t *columns)
{
    struct winsize size = {.ws_row = 0};

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        size = (struct winsize){.ws_row = 0};
    *rows = size.ws_row;
    *columns = size.ws_col;
}

/* ---- writing -------------------------------------------------------------------------------- */

static void file_write(FILE *file, const char *bytes, size_t len)
{
    if (len)
        fwrite(bytes, 1, len, file);
    fflush(file);
}

/* Nobody wants the rest: the command ends as soon as it can. */
static void screen_leave(struct screen *screen)
{
    screen->state = SCREEN_CLOSED;
    hf_scope_cancel(screen->shell->work);
}

/* Count lines as a terminal does, that long ones take several of. */
static void cursor_move(struct screen *screen, char c)
{
    assert(screen->column <= screen->columns);
    if (c == '\n' || screen->column == screen->columns) {
        screen->line++;
        screen->column = 0;
    }
    if (c != '\n' && ((unsigned char)c & 0xC0) != 0x80)
        screen->column++;
}

/* Wait for a file, or for a signal. */
static void file_wait(struct screen *screen, int fd, short events)
{
    struct pollfd files[] = {{.fd = fd, .events = events},
                             {.fd = hf__guard_bell(screen->shell->c->guard), .events = POLLIN}};
    eventfd_t count;

    assert(fd >= 0);
    while (poll(files, ARRAY_LEN(files), -1) < 0 && errno == EINTR)
        ;
    if (files[1].revents && eventfd_read(files[1].fd, &count) == 0)
        screen->rung = true;
}

/* A signal came that ends the shell, which is more than a command. */
static bool is_ending(const struct screen *screen)
{
    int number = hf__shell_signal(screen->shell);

    return number && number != SIGINT;
}

/* (2) */
static void pipe_write(struct screen *screen, const char *bytes, size_t len)
{
    assert(bytes || !len);
    while (len && screen->state == SCREEN_PAGER) {
        ssize_t done = write(screen->pipe, bytes, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done < 0 && errno == EAGAIN && !hf__shell_signal(screen->shell)) {
            file_wait(screen, screen->pipe, POLLOUT);
            continue;
        }
        if (done <= 0) {
            screen_leave(screen);
            return;
        }
        bytes += done;
        len -= (size_t)done;
    }
}

/* ---- a page at a time ----------------------------------------------------------------------- */

/* A key, without waiting for the end of a line; 0: a signal came, or the terminal is gone. */
static char key_wait(struct screen *screen)
{
    struct pollfd typed = {.fd = STDIN_FILENO, .events = POLLIN};
    struct termios before, raw;
    char key = 0;

    if (tcgetattr(STDIN_FILENO, &before) != 0)
        return 0;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    do {
        file_wait(screen, STDIN_FILENO, POLLIN);
    } while (poll(&typed, 1, 0) <= 0 && !hf__shell_signal(screen->shell));
    if (!hf__shell_signal(screen->shell) && read(STDIN_FILENO, &key, 1) != 1)
        key = 0;
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    return key;
}

/* At the end of a page. */
static void page_turn(struct screen *screen)
{
    size_t len = strlen(more_text);
    char key;

    assert(screen->state == SCREEN_MORE && screen->rows >= 2);
    if (len >= screen->columns)
        len = strlen("--more--");
    fprintf(stdout, "%.*s", (int)len, more_text);
    fflush(stdout);
    key = key_wait(screen);
    fprintf(stdout, "\r%*s\r", (int)len, "");
    fflush(stdout);
    screen->column = 0;
    if (key == ' ' || key == 'f')
        screen->line = 0;
    else if (key == '\n' || key == '\r' || key == 'j')
        screen->line = screen->rows - 2;
    else
        screen_leave(screen);
}

static void more_write(struct screen *screen, const char *bytes, size_t len)
{
    assert(screen->columns > 0);
    for (size_t i = 0; i < len; i++) {
        if (screen->line + 1 >= screen->rows && screen->column == 0)
            page_turn(screen);
        if (screen->state != SCREEN_MORE)
            break;
        cursor_move(screen, bytes[i]);
        fputc(bytes[i], stdout);
    }
    fflush(stdout);
}

/* ---- the pager ------------------------------------------------------------------------------ */

/* Start a program with our pipe as its input. False: there is no such program. */
static bool program_open(struct screen *screen, char **words)
{
    int ends[2];
    struct child_how how = {.words = words, .out = CHILD_OURS, .err = CHILD_OURS};
    int error;

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    how.in = ends[0];
    error = hf__child_open(&how, &screen->pager);
    close(ends[0]);
    if (error) {
        close(ends[1]);
        return false;
    }
    (void)fcntl(ends[1], F_SETFL, O_NONBLOCK);
    screen->pipe = ends[1];
    return true;
}

static enum screen_state pager_open(struct screen *screen)
{
    struct hf_scope *s = screen->shell->c->scope;
    struct hf_scope_mark mark = hf_scope_mark(s);
    const char *named = screen->shell->c->cli->env("PAGER");
    char *usual[] = {(char[]){"less"}, (char[]){"-FRX"}, NULL};
    char **words = usual;
    enum screen_state state = SCREEN_MORE;

    if (named && hf__child_words(s, hf_str_from(named), &words) != HF_OK)
        state = SCREEN_WHOLE; /* it is empty: no paging is wanted */
    else if (strcmp(words[0], "cat") == 0)
        state = SCREEN_WHOLE;
    else if (program_open(screen, words))
        state = SCREEN_PAGER;
    hf_scope_rewind(s, mark);
    return state;
}

/* What was held back is too long, or all there is. */
static void held_write(struct screen *screen)
{
    size_t len = screen->held_len;

    screen->held_len = 0;
    if (screen->state == SCREEN_PAGER)
        pipe_write(screen, screen->held, len);
    else if (screen->state == SCREEN_MORE) {
        screen->line = screen->column = 0;
        more_write(screen, screen->held, len);
    } else if (screen->state != SCREEN_CLOSED)
        file_write(stdout, screen->held, len);
}

static bool held_add(struct screen *screen, const char *bytes, size_t len)
{
    if (screen->held_len + len > screen->held_cap) {
        size_t cap = (screen->held_len + len) * 2;
        char *held = realloc(screen->held, cap);

        if (!held)
            return false;
        screen->held = held;
        screen->held_cap = cap;
    }
    assert(screen->held_len + len <= screen->held_cap);
    memcpy(screen->held + screen->held_len, bytes, len);
    screen->held_len += len;
    return true;
}

static void hold_write(struct screen *screen, const char *bytes, size_t len)
{
    bool held = held_add(screen, bytes, len);

    for (size_t i = 0; held && i < len; i++)
        cursor_move(screen, bytes[i]);
    if (held && screen->line < screen->rows && screen->held_len < HELD_MAX)
        return;
    screen->state = held ? pager_open(screen) : SCREEN_WHOLE;
    held_write(screen);
    if (!held)
        file_write(stdout, bytes, len);
}

/* ---- the two files -------------------------------------------------------------------------- */

static ssize_t screen_write(void *user, const char *bytes, size_t len)
{
    struct screen *screen = user;

    switch (screen->state) {
    case SCREEN_HELD:
        hold_write(screen, bytes, len);
        break;
    case SCREEN_PAGER:
        pipe_write(screen, bytes, len);
        break;
    case SCREEN_MORE:
        more_write(screen, bytes, len);
        break;
    case SCREEN_WHOLE:
        file_write(stdout, bytes, len);
        break;
    case SCREEN_CLOSED: /* (3) */
        break;
    }
    return (ssize_t)len;
}

/* (1) */
static ssize_t errors_write(void *user, const char *bytes, size_t len)
{
    struct screen *screen = user;

    if (screen->state == SCREEN_CLOSED)
        return (ssize_t)len;
    if (screen->state != SCREEN_PAGER) {
        held_write(screen);
        fwrite(bytes, 1, len, stderr);
        return (ssize_t)len;
    }
    assert(screen->errors_len <= ERRORS_MAX);
    if (len > ERRORS_MAX - screen->errors_len)
        len = ERRORS_MAX - screen->errors_len;
    if (!screen->errors)
        screen->errors = malloc(ERRORS_MAX);
    if (screen->errors && len) {
        memcpy(screen->errors + screen->errors_len, bytes, len);
        screen->errors_len += len;
    }
    return (ssize_t)len;
}

bool hf__screen_begin(struct screen *screen, struct shell *shell, bool paged)
{
    *screen = (struct screen){.shell = shell, .state = SCREEN_WHOLE, .pipe = -1};
    if (!paged || shell->settings->no_pager) {
        screen->out = stdout;
        screen->err = stderr;
        return true;
    }
    hf__screen_size(&screen->rows, &screen->columns);
    if (screen->rows < 3)
        screen->rows = ROWS_USUAL;
    if (!screen->columns)
        screen->columns = COLUMNS_USUAL;
    screen->state = SCREEN_HELD;
    screen->out = fopencookie(screen, "w", (cookie_io_functions_t){.write = screen_write});
    screen->err = fopencookie(screen, "w", (cookie_io_functions_t){.write = errors_write});
    if (screen->out && screen->err)
        return true;
    hf__screen_end(screen);
    return false;
}

/* All is written: the person reads on, and ends the pager. (2) */
static void pager_close(struct screen *screen)
{
    const struct hf_env *env = hf_scope_env(screen->shell->work);

    close(screen->pipe);
    screen->pipe = -1;
    while (!hf__child_wait(NULL, env, &screen->pager, PAGER_LOOK_MS) && !is_ending(screen))
        ;
    hf__child_close(env, &screen->pager, PAGER_KILL_MS);
}

bool hf__screen_end(struct screen *screen)
{
    bool left;

    if (screen->out == stdout) {
        fflush(stdout);
        return false;
    }
    if (screen->out)
        fclose(screen->out);
    if (screen->err)
        fclose(screen->err);
    held_write(screen);
    if (screen->pipe >= 0)
        pager_close(screen);
    if (screen->rung) /* the editor wants to know, too */
        (void)eventfd_write(hf__guard_bell(screen->shell->c->guard), 1);
    left = screen->state == SCREEN_CLOSED;
    if (!left && screen->errors_len)
        file_write(stderr, screen->errors, screen->errors_len);
    free(screen->held);
    free(screen->errors);
    return left;
}
