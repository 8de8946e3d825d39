/*
 * cli/top/top_screen.c: the terminal of `holdfast top`: a screen of its own, keys without Enter.
 *
 * The other screen (1049) leaves what was on the terminal as it was. Keys are not echoed and come at
 * once. Ctrl-C stays a signal, which the guard of the command takes; Ctrl-Z is off, as a stopped
 * program would leave the terminal in this state.
 *
 * What always holds: from hf__top_screen_begin() on, the terminal is restored by
 * hf__top_screen_end(), or by a handler when a fault of ours ends the process. What restores it is
 * safe in handlers: tcsetattr() and write().
 */
#include "cli/top/top.h"

#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define SCREEN_ENTER "\033[?1049h\033[?25l\033[H\033[2J"
#define SCREEN_LEAVE "\033[?25h\033[?1049l"

enum { COLUMNS_USUAL = 80, ROWS_USUAL = 24, KEYS_MAX = 64, ESCAPE = 27 };

static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};

/* What was typed and not yet asked for. */
struct keys_read {
    char bytes[KEYS_MAX];
    size_t at, len;
};

static struct termios before;
static atomic_bool taken;

static void text_write(const char *text)
{
    size_t len = strlen(text);
    ssize_t wrote;

    while (len > 0 && (wrote = write(STDOUT_FILENO, text, len)) > 0) {
        text += wrote;
        len -= (size_t)wrote;
    }
}

void hf__top_screen_end(void)
{
    if (!atomic_exchange(&taken, false))
        return;
    text_write(SCREEN_LEAVE);
    tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

static void on_fault(int number)
{
    hf__top_screen_end();
    signal(number, SIG_DFL);
    raise(number);
}

bool hf__top_screen_begin(void)
{
    struct termios raw;

    if (isatty(STDOUT_FILENO) != 1 || tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VMIN] = 0;
    raw.c_cc[VTIME] = 0;
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    atomic_store(&taken, true);
    for (size_t i = 0; i < COMMAND_LEN(faults); i++)
        signal(faults[i], on_fault);
    if (tcsetattr(STDIN_FILENO, TCSANOW, &raw) != 0) {
        atomic_store(&taken, false);
        return false;
    }
    text_write(SCREEN_ENTER);
    return true;
}

void hf__top_screen_size(size_t *columns, size_t *rows)
{
    struct winsize size = {.ws_row = 0};

    *columns = COLUMNS_USUAL;
    *rows = ROWS_USUAL;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
        return;
    if (size.ws_col)
        *columns = size.ws_col;
    if (size.ws_row)
        *rows = size.ws_row;
}

/* Take a key off the bytes that were read; 0: none is left. An arrow or a function key is an escape,
 * '[' or 'O', and bytes up to a letter or '~': none of our keys. */
static char key_take(struct keys_read *keys)
{
    while (keys->at < keys->len) {
        char key = keys->bytes[keys->at++];

        if (key != ESCAPE)
            return key;
        if (keys->at < keys->len && (keys->bytes[keys->at] == '[' || keys->bytes[keys->at] == 'O'))
            keys->at++;
        while (keys->at < keys->len && (keys->bytes[keys->at] < '@' || keys->bytes[keys->at] > '~'))
            keys->at++;
        keys->at += keys->at < keys->len;
    }
    return 0;
}

char hf__top_screen_key(int ms)
{
    static struct keys_read keys;
    struct pollfd wait = {.fd = STDIN_FILENO, .events = POLLIN};
    ssize_t len;
    char key = key_take(&keys);

    if (key || poll(&wait, 1, ms) <= 0)
        return key;
    len = read(STDIN_FILENO, keys.bytes, sizeof(keys.bytes));
    if (len <= 0)
        return 'q';
    keys.at = 0;
    keys.len = (size_t)len;
    return key_take(&keys);
}
