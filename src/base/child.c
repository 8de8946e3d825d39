/*
 * base/child.c: child processes; see the header.
 *
 * Where the system has descriptors for processes (pidfd_open(), Linux 5.3), the end of a child wakes
 * who waits for it. Elsewhere it is looked for, soon at first and then every SLICE_MS.
 *
 * What always holds:
 *
 *  (1) A child that was opened is waited for when it is closed, unless it may not be killed: then
 *      it runs with the rights of another user.
 *  (2) It is signaled only before it was waited for, so the signal cannot meet a stranger.
 *  (3) A child that prints without end is read in pieces: deadlines are looked at in between.
 *  (4) What it prints is in the room alone: there are no copies that the caller could not wipe.
 *      What does not fit is dropped.
 */
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    SLICE_MS = 20,     /* how soon a cancellation is noticed */
    READS_MAX = 64,    /* before other things are looked at (3) */
    DROPPED_MAX = 4096 /* bytes of a read that are dropped */
};

/* ---- starting ------------------------------------------------------------------------------- */

/* What becomes the child's standard file `target`; *copy is to be closed when it was started. */
static int add_file(posix_spawn_file_actions_t *files, int fd, int target, int *copy)
{
    *copy = -1;
    if (fd == CHILD_OURS)
        return 0;
    if (fd == CHILD_NOTHING)
        return posix_spawn_file_actions_addopen(files, target, "/dev/null",
                                                target == STDIN_FILENO ? O_RDONLY : O_WRONLY, 0);
    /* In a program that closed its standard files, ours may be among those that are replaced. */
    if (fd <= STDERR_FILENO) {
        fd = *copy = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (fd < 0)
            return errno;
    }
    return posix_spawn_file_actions_adddup2(files, fd, target);
}

static int start_with_files(const struct child_how *how, const posix_spawnattr_t *attributes,
                            pid_t *pid)
{
    const int fds[] = {how->in, how->out, how->err};
    int copies[] = {-1, -1, -1};
    posix_spawn_file_actions_t files;
    int error = posix_spawn_file_actions_init(&files);

    if (error)
        return error;
    for (int i = 0; i < 3 && !error; i++)
        error = add_file(&files, fds[i], i, &copies[i]);
    if (!error)
        error = posix_spawnp(pid, how->words[0], &files, attributes, how->words,
                             how->variables ? how->variables : environ);
    for (int i = 0; i < 3; i++)
        if (copies[i] >= 0)
            close(copies[i]);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

int hf__child_start(const struct child_how *how, pid_t *pid)
{
    short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int error = posix_spawnattr_init(&attributes);

    if (error)
        return error;
    if (how->group)
        flags |= POSIX_SPAWN_SETPGROUP;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, how->defaults ? how->defaults : &all);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setflags(&attributes, flags);
    error = start_with_files(how, &attributes, pid);
    posix_spawnattr_destroy(&attributes);
    return error;
}

int hf__child_open(const struct child_how *how, struct child *child)
{
    struct child_how with = *how;
    int ends[2] = {-1, -1};
    int error;

    assert(how->out != CHILD_PIPE || how->err != CHILD_PIPE);
    *child = (struct child){.group = how->group,
                            .watch = -1,
                            .room = how->room,
                            .room_len = how->room_len,
                            .full_ends = how->full_ends};
    if (how->out == CHILD_PIPE || how->err == CHILD_PIPE) {
        if (pipe2(ends, O_CLOEXEC) != 0)
            return errno;
        *(how->out == CHILD_PIPE ? &with.out : &with.err) = ends[1];
        (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    }
    error = hf__child_start(&with, &child->pid);
    if (ends[1] >= 0)
        close(ends[1]);
    if (error && ends[0] >= 0)
        close(ends[0]);
    child->from = error ? -1 : ends[0];
#ifdef SYS_pidfd_open
    if (!error)
        child->watch = (int)syscall(SYS_pidfd_open, child->pid, 0); /* it is close-on-exec */
#endif
    return error;
}

int hf__child_file(const void *bytes, size_t len)
{
    int fd = memfd_create("holdfast", MFD_CLOEXEC);
    size_t done = 0;

    while (fd >= 0 && done < len) {
        ssize_t put = write(fd, (const char *)bytes + done, len - done);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            close(fd);
            return -1;
        }
        done += (size_t)put;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

/* ---- its end -------------------------------------------------------------------------------- */

/* Has it ended? */
static bool child_reap(struct child *child, int flags)
{
    pid_t got;

    if (child->ended)
        return true;
    do {
        got = waitpid(child->pid, &child->outcome, flags);
    } while (got < 0 && errno == EINTR);
    child->unknown = got < 0;
    if (got < 0)
        child->outcome = 0;
    child->ended = got != 0;
    return child->ended;
}

/* What is there to read now. (3) (4) */
static void child_read(struct child *child)
{
    char dropped[DROPPED_MAX];

    for (int i = 0; i < READS_MAX && child->from >= 0; i++) {
        size_t left = child->room_len - child->said;
        ssize_t got = left ? read(child->from, child->room + child->said, left)
                           : read(child->from, dropped, sizeof(dropped));

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return;
        if (got <= 0) {
            close(child->from);
            child->from = -1;
        } else if (left) {
            child->said += (size_t)got;
        } else {
            child->full = true;
        }
    }
}

/* How long to sleep before the next look. */
static int slice_of(const struct child *child, int *slice_ms, int64_t left_us)
{
    int64_t left_ms = left_us / 1000 + 1;
    int slice = SLICE_MS;

    if (child->watch < 0 &&
        child->from < 0) { /* nothing wakes us; who is done printing ends soon */
        slice = *slice_ms;
        *slice_ms = slice * 2 < SLICE_MS ? slice * 2 : SLICE_MS;
    }
    return left_ms < slice ? (int)left_ms : slice;
}

bool hf__child_wait(struct hf_scope *s, const struct hf_env *env, struct child *child, int64_t ms)
{
    int64_t now_us = hf__env_elapsed_us(env);
    int64_t until_us = ms < 0 ? INT64_MAX : now_us + ms * 1000;
    int slice_ms = 1;

    for (;;) {
        struct pollfd waits[] = {{.fd = child->from, .events = POLLIN},
                                 {.fd = child->watch, .events = POLLIN}};

        if (!child->ended)
            poll(waits, ARRAY_LEN(waits), slice_of(child, &slice_ms, until_us - now_us));
        child_reap(child, WNOHANG); /* before reading: then nothing of it is missed */
        child_read(child);
        if (child->ended)
            return true;
        if ((child->full && child->full_ends) || (s && hf__scope_alive(s) != HF_OK))
            return false;
        now_us = hf__env_elapsed_us(env);
        if (now_us >= until_us)
            return false;
    }
}

/* (1) (2) */
void hf__child_close(const struct hf_env *env, struct child *child, uint64_t grace_ms)
{
    if (!child_reap(child, WNOHANG) && grace_ms) {
        kill(child->group ? -child->pid : child->pid, SIGTERM);
        (void)hf__child_wait(NULL, env, child, (int64_t)grace_ms);
    }
    if (!child->ended) {
        if (child->group)
            kill(-child->pid, SIGKILL);
        if (kill(child->pid, SIGKILL) == 0) /* it may have left its group */
            child_reap(child, 0);
    }
    if (child->from >= 0)
        close(child->from);
    if (child->watch >= 0)
        close(child->watch);
    child->from = child->watch = -1;
}

/* ---- words ---------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* The word at *at, its quotes gone, to *to; false when a quote or backslash has no end. */
static bool take_word(const char **at, const char *end, char **to)
{
    char quote = 0;

    for (; *at < end && (quote || !is_blank(**at)); (*at)++) {
        char c = **at;

        if (quote ? c == quote : c == '"' || c == '\'') {
            quote = quote ? 0 : c;
            continue;
        }
        /* Between double quotes a backslash stands for itself, but before these two. */
        if (c == '\\' &&
            (!quote || (quote == '"' && *at + 1 < end && ((*at)[1] == '"' || (*at)[1] == '\\')))) {
            (*at)++;
            if (*at == end)
                return false;
            c = **at;
        }
        *(*to)++ = c;
    }
    *(*to)++ = '\0';
    return quote == 0;
}

enum hf_status hf__child_words(struct hf_scope *s, struct hf_str command, char ***words)
{
    const char *at = command.ptr, *end = command.ptr + command.len;
    /* A word has a character of the command at least, and a NUL for the blank behind it. */
    char *to = hf_scope_alloc(s, command.len + 2);
    char **list = hf__scope_array(s, command.len / 2 + 2, sizeof(*list));
    size_t len = 0;

    if (!to || !list)
        return hf__fail_nomem(s);
    if (command.len && memchr(command.ptr, '\0', command.len))
        return hf__fail(s, HF_INVALID, "it has a NUL in it");
    for (;;) {
        while (at < end && is_blank(*at))
            at++;
        if (at == end)
            break;
        list[len++] = to;
        if (!take_word(&at, end, &to))
            return hf__fail(s, HF_INVALID, "a quote in it is not closed");
    }
    if (!len || !*list[0])
        return hf__fail(s, HF_INVALID, "it has no words");
    *words = list;
    return HF_OK;
}
