/*
 * client/credentials_process.c: keys that a program prints.
 *
 * The command line of a profile is split into words as a shell does it, quotes and backslashes and
 * nothing else, and the program is started directly: no shell sees it, so no variable, pipe or
 * semicolon in it means anything. It prints JSON. What it writes to its standard error goes
 * nowhere, as that may have secrets in it too.
 *
 * The program leads a process group of its own. One that does not end in time is killed with all it
 * started; one that ends while something it started still holds the pipe has said what it had to.
 *
 * What always holds:
 *
 *  (1) A child that was started is waited for, unless it hangs and may not be killed: then it runs
 *      with the rights of another user.
 *  (2) It is signaled only before it was waited for, so the signal cannot meet a stranger.
 *  (3) What it printed is wiped when it is no longer needed, but for what is handed on.
 */
#include "client/source.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/crypto.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    PROCESS_MS = 30000,
    SLICE_MS = 20 /* how soon a cancellation, or the end of a silent child, is noticed */
};

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

enum hf_status hf__source_words(struct hf_scope *s, struct hf_str command, char ***words)
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

/* ---- the child ------------------------------------------------------------------------------ */

struct child {
    pid_t pid;
    int out;     /* we read from it */
    bool ended;  /* and was waited for */
    int outcome; /* of waitpid() */
};

static int start(char **words, int out, pid_t *pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    sigset_t none, all;
    int error;

    error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error = posix_spawnattr_init(&how);
    if (error) {
        posix_spawn_file_actions_destroy(&files);
        return error;
    }
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    error = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&files, out, STDOUT_FILENO);
    if (!error)
        error = posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = posix_spawnp(pid, words[0], &files, &how, words, environ);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static enum hf_status child_open(struct hf_scope *s, struct hf_str profile, char **words,
                                 struct child *child)
{
    int ends[2], in, error;

    *child = (struct child){.out = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return hf__fail(s, HF_IO, "credential_process of profile \"%.*s\": no pipe: %s",
                        HF_FMT(profile), strerror(errno));
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    /* In a program that closed its standard files, the pipe may be what they are replaced by. */
    in = fcntl(ends[1], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    error = in < 0 ? errno : start(words, in, &child->pid);
    if (in >= 0)
        close(in);
    close(ends[1]);
    if (error) {
        close(ends[0]);
        return hf__fail(s, error == ENOENT || error == EACCES ? HF_INVALID : HF_IO,
                        "credential_process of profile \"%.*s\" cannot be started: %s",
                        HF_FMT(profile), strerror(error));
    }
    child->out = ends[0];
    return HF_OK;
}

/* Has it ended? Where the program lets the system collect its children there is nothing to learn,
 * and what was printed decides. */
static bool child_ended(struct child *child, int flags)
{
    pid_t got;

    if (child->ended)
        return true;
    do {
        got = waitpid(child->pid, &child->outcome, flags);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        child->outcome = 0;
    child->ended = got != 0;
    return child->ended;
}

/* (1) (2) */
static void child_close(struct child *child)
{
    if (!child_ended(child, WNOHANG)) {
        kill(-child->pid, SIGKILL);
        if (kill(child->pid, SIGKILL) == 0) /* it may have left its group */
            child_ended(child, 0);
    }
    close(child->out);
}

/* What is there to read now; false at its end, or when it is too much. */
static bool child_read(struct child *child, char *room, size_t *len)
{
    for (;;) {
        ssize_t got = read(child->out, room + *len, SOURCE_TEXT_MAX + 1 - *len);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        *len += (size_t)got;
        if (got == 0 || *len > SOURCE_TEXT_MAX)
            return false;
    }
}

/* Read until it has ended. */
static enum hf_status child_listen(struct hf_scope *s, struct source *source, struct hf_str profile,
                                   struct child *child, char *room, size_t *len)
{
    int64_t until_us =
        hf__env_elapsed_us(source->env) + hf__source_left_ms(s, source, PROCESS_MS) * 1000;
    int slice_ms = SLICE_MS;
    bool open = true;

    while (!child->ended) {
        struct pollfd wait = {.fd = open ? child->out : -1, .events = POLLIN};

        poll(&wait, 1, slice_ms);
        child_ended(child, WNOHANG); /* before reading: then nothing of it is missed */
        if (open) {
            open = child_read(child, room, len);
            slice_ms = open ? SLICE_MS : 1; /* who has closed the pipe is about to end */
        } else {
            slice_ms = slice_ms * 2 < SLICE_MS ? slice_ms * 2 : SLICE_MS;
        }
        if (*len > SOURCE_TEXT_MAX)
            return hf__fail(s, HF_INVALID,
                            "credential_process of profile \"%.*s\" prints more than %d bytes",
                            HF_FMT(profile), SOURCE_TEXT_MAX);
        if (child->ended)
            break;
        TRY(hf__scope_alive(s));
        if (hf__env_elapsed_us(source->env) >= until_us)
            return hf__fail(s, HF_IO,
                            "credential_process of profile \"%.*s\" did not end in time and was "
                            "killed",
                            HF_FMT(profile));
    }
    if (WIFSIGNALED(child->outcome))
        return hf__fail(s, HF_IO, "credential_process of profile \"%.*s\" was killed by signal %d",
                        HF_FMT(profile), WTERMSIG(child->outcome));
    if (WEXITSTATUS(child->outcome) != 0)
        return hf__fail(s, HF_DENIED,
                        "credential_process of profile \"%.*s\" failed with exit status %d",
                        HF_FMT(profile), WEXITSTATUS(child->outcome));
    return HF_OK;
}

enum hf_status hf__source_process(struct hf_scope *s, struct source *source, struct hf_str profile,
                                  struct hf_str command, struct source_keys *keys)
{
    char *room = hf_scope_alloc(s, SOURCE_TEXT_MAX + 1);
    struct child child;
    enum hf_status status;
    char **words;
    size_t len = 0;

    if (!room)
        return hf__fail_nomem(s);
    status = hf__source_words(s, command, &words);
    if (status == HF_INVALID)
        return hf_scope_fail_because(s, HF_INVALID, hf_scope_error(s),
                                     "credential_process of profile \"%.*s\" cannot be run: %s",
                                     HF_FMT(profile), hf_scope_error_text(s));
    TRY(status);
    TRY(child_open(s, profile, words, &child));
    status = child_listen(s, source, profile, &child, room, &len);
    child_close(&child);
    *keys = (struct source_keys){.origin = "credential_process"};
    if (status == HF_OK)
        status = hf__source_read_keys(s, SOURCE_PROCESS, hf_str_of(room, len), keys);
    if (status != HF_OK)
        OPENSSL_cleanse(room, len);
    return status;
}
