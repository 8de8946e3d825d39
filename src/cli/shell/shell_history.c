/*
 * cli/shell/shell_history.c: what was typed, in a file of the user's. See shell.h.
 *
 * The file has a line for each entry, oldest first. In an entry of several lines each line end is written
 * as \n, and each backslash as \\, so that it is one line.
 *
 * What always holds:
 *
 *  (1) An entry is in the file when it was typed: a shell that is killed loses none, and several shells
 *      may use one file. It is appended by one write() under a lock.
 *  (2) The file is made with mode 0600, in a directory with mode 0700, when there is a first entry.
 *  (3) A shell that finds more than SHELL_HISTORY_BYTES_MAX, or twice SHELL_HISTORY_MAX entries, at its start
 *      replaces the file by one with the last SHELL_HISTORY_MAX.
 *  (4) A file that cannot be used is reported once, and then there is no history.
 */
#include "cli/shell/shell.h"

#include "base/base.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { REPLACE_TRIES = 8 };

struct shell_history {
    struct shell *shell;
    struct hf_scope *s;
    const char *path;
    const char *entries[SHELL_HISTORY_MAX];
    size_t len;
    char *last; /* the entry before; NULL: none */
    bool broken;
};

/* ---- the file ------------------------------------------------------------------------------- */

/* The usual file; absent: there is no home. */
static struct hf_str usual_path(struct hf_scope *s, options_env_fn *env)
{
    const char *state = env("XDG_STATE_HOME"), *home = env("HOME");

    if (state && state[0] == '/')
        return hf_scope_format(s, "%s/holdfast/history", state);
    if (home && home[0])
        return hf_scope_format(s, "%s/.local/state/holdfast/history", home);
    return (struct hf_str){0};
}

static void history_break(struct shell_history *history, const char *what)
{
    if (!history->broken)
        hf__shell_note(history->shell, "no history is kept: %s: %s", history->path, what);
    history->broken = true;
}

/* The directories above the file. */
static void folders_make(const char *path)
{
    char *copy = strdup(path);

    for (char *at = copy ? copy + 1 : NULL; at && (at = strchr(at, '/')); at++) {
        *at = '\0';
        (void)mkdir(copy, 0700); /* the file cannot be opened then */
        *at = '/';
    }
    free(copy);
}

/* Open it to be appended to, and lock it. Another shell may put a new file in its place meanwhile. */
static int file_lock(const char *path)
{
    for (int i = 0; i < REPLACE_TRIES; i++) {
        int fd = open(path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        struct stat ours, there;

        if (fd < 0)
            return -1;
        if (flock(fd, LOCK_EX) != 0 || fstat(fd, &ours) != 0 || stat(path, &there) != 0 ||
            (ours.st_ino == there.st_ino && ours.st_dev == there.st_dev))
            return fd;
        close(fd);
    }
    errno = EBUSY;
    return -1;
}

static bool all_written(int fd, const char *bytes, size_t len)
{
    while (len) {
        ssize_t done = write(fd, bytes, len);

        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return false;
        bytes += done;
        len -= (size_t)done;
    }
    return true;
}

/* ---- entries as lines ----------------------------------------------------------------------- */

/* To be freed; NULL: no memory. */
static char *line_make(struct hf_str text, size_t *len)
{
    char *line = malloc(text.len * 2 + 2);

    *len = 0;
    for (size_t i = 0; line && i < text.len; i++) {
        char c = text.ptr[i];

        if (c == '\n' || c == '\\')
            line[(*len)++] = '\\';
        line[(*len)++] = (char)(c == '\n' ? 'n' : c);
    }
    assert(*len <= text.len * 2); /* each byte is at most two */
    if (line) {
        line[(*len)++] = '\n';
        line[*len] = '\0';
    }
    return line;
}

/* The entry of a line, in its place. */
static void line_read(char *line)
{
    char *to = line;

    for (const char *at = line; *at; at++) {
        if (*at == '\\' && at[1]) {
            at++;
            *to++ = (char)(*at == 'n' ? '\n' : *at);
        } else {
            *to++ = *at;
        }
    }
    *to = '\0';
}

/* ---- reading -------------------------------------------------------------------------------- */

/* Replace the file by what is kept. (3) */
static void file_replace(struct shell_history *history)
{
    char *path = realpath(history->path, NULL); /* a link stays one */
    struct hf_str made =
        path ? hf_scope_format(history->s, "%s.%ld", path, (long)getpid()) : (struct hf_str){0};
    int fd = made.ptr ? open(made.ptr, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    bool whole = fd >= 0;

    assert(history->len <= SHELL_HISTORY_MAX);
    for (size_t i = 0; whole && i < history->len; i++) {
        size_t len;
        char *line = line_make(hf_str_from(history->entries[i]), &len);

        whole = line && all_written(fd, line, len);
        free(line);
    }
    if (fd >= 0 && (close(fd) != 0 || !whole || rename(made.ptr, path) != 0))
        unlink(made.ptr);
    free(path);
}

/* Keep the last entries of a text. Returns how many it has. */
static size_t entries_read(struct shell_history *history, char *text)
{
    size_t count = 0, skip;
    char *at = text, *end;

    for (const char *c = text; *c; c++)
        count += *c == '\n';
    skip = count > SHELL_HISTORY_MAX ? count - SHELL_HISTORY_MAX : 0;
    history->len = 0;
    for (; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        if (skip) {
            skip--;
            continue;
        }
        line_read(at);
        if (*at)
            history->entries[history->len++] = at;
    }
    assert(history->len <= SHELL_HISTORY_MAX);
    return count;
}

/* Read the end of a file. *excess: it has more than it should. */
static void file_read(struct shell_history *history, int fd, off_t size, bool *excess)
{
    off_t from = size > SHELL_HISTORY_BYTES_MAX ? size - SHELL_HISTORY_BYTES_MAX : 0;
    char *text = hf_scope_alloc(history->s, SHELL_HISTORY_BYTES_MAX + 1);
    size_t len = 0;
    ssize_t got;

    *excess = false;
    while (text && len < SHELL_HISTORY_BYTES_MAX &&
           (got = pread(fd, text + len, SHELL_HISTORY_BYTES_MAX - len, from + (off_t)len)) > 0)
        len += (size_t)got;
    if (!text || memchr(text, '\0', len)) /* no file of ours */
        return;
    text[len] = '\0';
    if (from) /* the first line may be a part of one */
        text = strchr(text, '\n') ? strchr(text, '\n') + 1 : text + len;
    *excess = entries_read(history, text) > 2 * SHELL_HISTORY_MAX || from;
}

static void history_read(struct shell_history *history)
{
    int fd = open(history->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about = {.st_size = 0};
    bool excess = false;

    if (fd < 0) {
        if (errno != ENOENT)
            history_break(history, strerror(errno));
        return;
    }
    if (fstat(fd, &about) == 0 && S_ISREG(about.st_mode))
        file_read(history, fd, about.st_size, &excess);
    else if (S_ISDIR(about.st_mode))
        history_break(history, strerror(EISDIR));
    close(fd);
    if (!excess)
        return;
    /* Again, while nobody appends. (1) */
    fd = file_lock(history->path);
    if (fd >= 0 && fstat(fd, &about) == 0) {
        file_read(history, fd, about.st_size, &excess);
        if (excess)
            file_replace(history);
    }
    if (fd >= 0)
        close(fd);
}

struct shell_history *hf__shell_history_open(struct shell *shell, struct hf_str path)
{
    struct shell_history *history;

    if (hf_str_equal(path, HF_STR("none")))
        return NULL;
    history = calloc(1, sizeof(*history));
    if (!history)
        return NULL;
    history->shell = shell;
    history->s = hf_scope_new(NULL);
    if (history->s && !path.ptr)
        path = usual_path(history->s, shell->c->cli->env);
    if (!history->s || !path.ptr) {
        hf__shell_history_close(history);
        return NULL;
    }
    history->path = path.ptr;
    history_read(history);
    return history;
}

void hf__shell_history_close(struct shell_history *history)
{
    if (!history)
        return;
    hf_scope_free(history->s);
    free(history->last);
    free(history);
}

size_t hf__shell_history_len(const struct shell_history *history)
{
    return history ? history->len : 0;
}

const char *hf__shell_history_at(const struct shell_history *history, size_t at)
{
    assert(at < history->len);
    return history->entries[at];
}

/* ---- writing -------------------------------------------------------------------------------- */

/* (1) */
static bool file_append(struct shell_history *history, struct hf_str text)
{
    size_t len;
    char *line = line_make(text, &len);
    bool done = false;
    int fd;

    if (!line)
        return false;
    folders_make(history->path);
    fd = file_lock(history->path);
    if (fd >= 0) {
        done = all_written(fd, line, len);
        if (!done)
            history_break(history, strerror(errno));
        close(fd);
    } else {
        history_break(history, strerror(errno));
    }
    free(line);
    return done;
}

bool hf__shell_history_add(struct shell_history *history, struct hf_str text)
{
    if (!text.len || text.ptr[0] == ' ' || text.ptr[0] == '\t' || text.len > SHELL_HISTORY_LINE_MAX)
        return false;
    if (!history || history->broken)
        return true; /* for the keys that go back, at least */
    if (history->last && hf_str_equal(hf_str_from(history->last), text))
        return false;
    free(history->last);
    history->last = hf__shell_input_copy(text);
    (void)file_append(history, text);
    return true;
}
