/*
 * relay/sink_exec.c: a program that is run for each event.
 *
 *     exec:/usr/local/bin/on-order --verbose
 *
 * The payload is its standard input, what else is known of the event is in its variables:
 *
 *     HF_EVENT_ID TYPE SOURCE KEY SEQUENCE TIME CONTENT_TYPE SCHEMA AGGREGATE AGGREGATE_TYPE TENANT
 *     DESTINATION CORRELATION CAUSATION TRACE_PARENT TRACE_STATE     (those that the event has)
 *     HF_EVENT_HEADERS     a JSON object
 *     HF_EVENT_ATTEMPT     1, 2, ...
 *
 * and its exit code is the outcome, with the numbers of sysexits.h:
 *
 *     0                    done
 *     64, 65               it is wrong with this event for good (EX_USAGE, EX_DATAERR)
 *     69                   no event can be taken for now (EX_UNAVAILABLE)
 *     75 and all others, and death by a signal: try again
 *
 * The command line is split into words as client/credentials_process.c does it. No shell sees it,
 * and nothing of an event is ever part of it.
 *
 * What always holds:
 *
 *  (1) A child that was started is waited for, whatever happens, and is signaled only before that.
 *  (2) It leads a process group of its own. One that does not end in time is ended with all that it
 *      started: SIGTERM, and SIGKILL when it is still there a little later.
 *  (3) The payload is a file in memory, which the child may read or leave: nobody waits for it.
 */
#include "relay/private.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "client/source.h"

enum {
    TIMEOUT_MS = 30000,
    GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
    SLICE_MS = 20,   /* how soon a cancellation, or the end of a silent child, is noticed */
    SAID_MAX = 512   /* of its standard error, for the message of a failure */
};

struct options {
    uint64_t timeout_ms;
    uint64_t grace_ms;
};

struct exec {
    struct hf_env env;
    struct options options;
    char **words;
};

static const struct sink_option options[] = {
    {"timeout_ms", SINK_NUMBER, offsetof(struct options, timeout_ms), 1, 0, NULL},
    {"grace_ms", SINK_NUMBER, offsetof(struct options, grace_ms), 0, 60000, NULL},
};

/* ---- variables ------------------------------------------------------------------------------ */

#define PREFIX "HF_EVENT_"

struct variables {
    struct hf_scope *s;
    char **list;
    size_t len;
    enum hf_status status;
};

static void set(struct variables *v, const char *name, struct hf_str value)
{
    size_t size = strlen(PREFIX) + strlen(name) + 1 + value.len + 1;
    char *text;

    if (!value.len || v->status != HF_OK)
        return;
    if (memchr(value.ptr, '\0', value.len)) {
        v->status =
            hf__fail(v->s, HF_INVALID, "there is a NUL in what " PREFIX "%s would be", name);
        return;
    }
    text = hf_scope_alloc(v->s, size);
    if (!text) {
        v->status = hf__fail_nomem(v->s);
        return;
    }
    snprintf(text, size, PREFIX "%s=%.*s", name, HF_FMT(value));
    v->list[v->len++] = text;
}

static void set_number(struct variables *v, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    set(v, name, hf_str_from(text));
}

static void set_headers(struct variables *v, struct hf_item headers)
{
    struct hf__buf buf = {.scope = v->s};

    if (!headers.ptr || v->status != HF_OK)
        return;
    v->status = hf_item_check(v->s, headers);
    if (v->status != HF_OK)
        return;
    hf__put_plain_json(v->s, &buf, hf_item_value(headers));
    if (buf.failed)
        v->status = hf__fail_nomem(v->s);
    set(v, "HEADERS", hf_str_of((const char *)buf.ptr, buf.len));
}

/* Ours, without those of an event that we may have been started for ourselves, and the event's. */
static enum hf_status make_variables(struct hf_scope *s, const struct hf_outbox_event *stored,
                                     char ***list)
{
    enum { OWN = 20 };
    const struct hf_event *event = &stored->event;
    const struct {
        const char *name;
        struct hf_str value;
    } texts[] = {{"ID", event->id},
                 {"TYPE", event->type},
                 {"SOURCE", event->source},
                 {"KEY", event->key},
                 {"CONTENT_TYPE", hf__event_content_type(event)},
                 {"SCHEMA", event->schema},
                 {"AGGREGATE", event->aggregate},
                 {"AGGREGATE_TYPE", event->aggregate_type},
                 {"TENANT", event->tenant},
                 {"DESTINATION", event->destination},
                 {"CORRELATION", event->correlation},
                 {"CAUSATION", event->causation},
                 {"TRACE_PARENT", event->trace_parent},
                 {"TRACE_STATE", event->trace_state}};
    struct variables v = {.s = s};
    char time[EVENT_TIME];
    struct hf_str rest;
    size_t count = 0;

    while (environ && environ[count])
        count++;
    v.list = hf__scope_array(s, count + OWN + 1, sizeof(*v.list));
    if (!v.list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < count; i++)
        if (!str_after(hf_str_from(environ[i]), HF_STR(PREFIX), &rest))
            v.list[v.len++] = environ[i];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        set(&v, texts[i].name, texts[i].value);
    if (event->time_us && hf__event_time(event->time_us, time))
        set(&v, "TIME", hf_str_from(time));
    if (event->sequence)
        set_number(&v, "SEQUENCE", event->sequence);
    set_number(&v, "ATTEMPT", (uint64_t)stored->attempts + 1);
    set_headers(&v, event->headers);
    *list = v.list;
    return v.status;
}

/* ---- the child ------------------------------------------------------------------------------ */

struct child {
    pid_t pid;
    int err;     /* we read from it */
    bool ended;  /* and was waited for */
    int outcome; /* of waitpid() */
    char said[SAID_MAX + 1];
    size_t said_len;
};

/* (3) */
static int payload_file(struct hf_bytes payload)
{
    int fd = memfd_create("payload", MFD_CLOEXEC);
    size_t written = 0;

    while (fd >= 0 && written < payload.len) {
        ssize_t put = write(fd, payload.ptr + written, payload.len - written);

        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            close(fd);
            return -1;
        }
        written += (size_t)put;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

static int start_with(char **words, char **variables, int in, int err, const posix_spawnattr_t *how,
                      pid_t *pid)
{
    posix_spawn_file_actions_t files;
    int error = posix_spawn_file_actions_init(&files);

    if (error)
        return error;
    error = posix_spawn_file_actions_adddup2(&files, in, STDIN_FILENO);
    if (!error)
        error = posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    if (!error)
        error = posix_spawn_file_actions_adddup2(&files, err, STDERR_FILENO);
    if (!error)
        error = posix_spawnp(pid, words[0], &files, how, words, variables);
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static int start(char **words, char **variables, int in, int err, pid_t *pid)
{
    posix_spawnattr_t how;
    sigset_t none, all;
    int error = posix_spawnattr_init(&how);

    if (error)
        return error;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setsigmask(&how, &none);
    posix_spawnattr_setsigdefault(&how, &all);
    posix_spawnattr_setpgroup(&how, 0);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
                                       POSIX_SPAWN_SETPGROUP);
    error = start_with(words, variables, in, err, &how, pid);
    posix_spawnattr_destroy(&how);
    return error;
}

/* A copy of a descriptor that is not one of the three that the child's are put in the place of. */
static int away_from_standard(int fd)
{
    int copy = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

    if (fd >= 0)
        close(fd);
    return copy;
}

/* Returns 0 or an errno. */
static int child_open(const struct exec *exec, char **variables, struct hf_bytes payload,
                      struct child *child)
{
    int ends[2], in, err, error;

    *child = (struct child){.err = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    in = away_from_standard(payload_file(payload));
    err = away_from_standard(ends[1]);
    error = in < 0 || err < 0 ? errno : start(exec->words, variables, in, err, &child->pid);
    if (in >= 0)
        close(in);
    if (err >= 0)
        close(err);
    if (error) {
        close(ends[0]);
        return error;
    }
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    child->err = ends[0];
    return 0;
}

static bool child_ended(struct child *child, int flags)
{
    pid_t got;

    if (child->ended)
        return true;
    do {
        got = waitpid(child->pid, &child->outcome, flags);
    } while (got < 0 && errno == EINTR);
    if (got < 0) /* the program lets the system collect its children: nothing is known */
        child->outcome = W_EXITCODE(EX_TEMPFAIL, 0);
    child->ended = got != 0;
    return child->ended;
}

/* What is there to read; the beginning is kept. False at its end. */
static bool child_hear(struct child *child)
{
    char more[1024];

    for (;;) {
        ssize_t got = read(child->err, more, sizeof(more));
        size_t room = SAID_MAX - child->said_len;

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return errno == EAGAIN || errno == EWOULDBLOCK;
        if (got == 0)
            return false;
        if ((size_t)got < room)
            room = (size_t)got;
        memcpy(child->said + child->said_len, more, room);
        child->said_len += room;
    }
}

/* Wait until it has ended, or `ms` are over; true when it has. */
static bool child_wait(struct hf_scope *s, const struct exec *exec, struct child *child,
                       uint64_t ms, bool heed_scope)
{
    int64_t until_us = hf__env_elapsed_us(&exec->env) + (int64_t)ms * 1000;
    bool open = true;
    int slice_ms = SLICE_MS;

    for (;;) {
        struct pollfd wait = {.fd = open ? child->err : -1, .events = POLLIN};

        poll(&wait, 1, slice_ms);
        child_ended(child, WNOHANG); /* before reading: then nothing of it is missed */
        if (open) {
            open = child_hear(child);
            slice_ms = open ? SLICE_MS : 1; /* who has closed the pipe is about to end */
        } else {
            slice_ms = slice_ms * 2 < SLICE_MS ? slice_ms * 2 : SLICE_MS;
        }
        if (child->ended)
            return true;
        if (hf__env_elapsed_us(&exec->env) >= until_us ||
            (heed_scope && hf__scope_alive(s) != HF_OK))
            return false;
    }
}

/* (1) (2) */
static void child_end(struct hf_scope *s, const struct exec *exec, struct child *child)
{
    if (!child->ended) {
        kill(-child->pid, SIGTERM);
        child_wait(s, exec, child, exec->options.grace_ms, false);
    }
    if (!child->ended) {
        kill(-child->pid, SIGKILL);
        child_ended(child, 0);
    }
    close(child->err);
}

/* ---- outcomes ------------------------------------------------------------------------------- */

/* ": " and what it said, on one line; or nothing. */
static const char *what_it_said(struct child *child, const char **colon)
{
    while (child->said_len && (unsigned char)child->said[child->said_len - 1] <= ' ')
        child->said_len--;
    for (size_t i = 0; i < child->said_len; i++)
        if ((unsigned char)child->said[i] < ' ' || (unsigned char)child->said[i] >= 127)
            child->said[i] = child->said[i] == '\n' ? ' ' : '?';
    child->said[child->said_len] = '\0';
    *colon = child->said_len ? ": " : "";
    return child->said;
}

static enum hf_status judge(struct hf_scope *s, const struct exec *exec, struct child *child,
                            struct hf_delivery *delivery)
{
    const char *colon, *said = what_it_said(child, &colon);
    int code = WEXITSTATUS(child->outcome);

    if (WIFSIGNALED(child->outcome)) {
        hf__delivery_fail(s, delivery, HF_IO, false, "%s was ended by signal %d%s%s",
                          exec->words[0], WTERMSIG(child->outcome), colon, said);
        return HF_OK;
    }
    if (code == 0) {
        hf__delivery_done(delivery);
        return HF_OK;
    }
    if (code == EX_UNAVAILABLE)
        return hf__fail(s, HF_IO, "%s takes nothing for now%s%s", exec->words[0], colon, said);
    hf__delivery_fail(s, delivery, code == EX_USAGE || code == EX_DATAERR ? HF_INVALID : HF_IO,
                      code == EX_USAGE || code == EX_DATAERR, "%s ended with exit code %d%s%s",
                      exec->words[0], code, colon, said);
    return HF_OK;
}

static enum hf_status run(struct hf_scope *s, const struct exec *exec, char **variables,
                          struct hf_delivery *delivery)
{
    struct child child;
    enum hf_status status;
    int error = child_open(exec, variables, delivery->event->event.payload, &child);

    if (error == E2BIG) {
        hf__delivery_fail(s, delivery, HF_LIMIT, true,
                          "its headers and texts are more than variables can have");
        return HF_OK;
    }
    if (error)
        return hf__fail(s, HF_IO, "%s cannot be started: %s", exec->words[0], strerror(error));
    if (child_wait(s, exec, &child, exec->options.timeout_ms, true)) {
        child_end(s, exec, &child);
        return judge(s, exec, &child, delivery);
    }
    status = hf__scope_alive(s);
    child_end(s, exec, &child);
    if (status == HF_CANCELED)
        return hf__scope_alive(s);
    hf__scope_error_clear(s);
    if (status == HF_OK)
        hf__delivery_fail(s, delivery, HF_IO, false,
                          "%s did not end within %llu ms, and was killed", exec->words[0],
                          (unsigned long long)exec->options.timeout_ms);
    else /* perhaps because of this event: others may go better */
        hf__delivery_fail(s, delivery, HF_TIMEOUT, false,
                          "%s did not end until the deadline, and was killed", exec->words[0]);
    return HF_OK;
}

/* ---- the sink ------------------------------------------------------------------------------- */

static enum hf_status exec_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    const struct exec *exec = self;

    for (size_t i = 0; i < len; i++) {
        char **variables;
        enum hf_status status = make_variables(s, deliveries[i].event, &variables);

        if (status == HF_NOMEM)
            return status;
        if (status != HF_OK) {
            hf__delivery_fail_with(s, &deliveries[i], true);
            hf__scope_error_clear(s);
            continue;
        }
        TRY(run(s, exec, variables, &deliveries[i]));
    }
    return HF_OK;
}

static void exec_close(void *self)
{
    struct exec *exec = self;
    struct hf_env env = exec->env;

    hf__env_free(&env, exec, sizeof(*exec));
}

static enum hf_status open_parts(struct hf_scope *s, const struct sink_url *url, struct exec *exec)
{
    struct hf_str command;
    enum hf_status status;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), &exec->options));
    TRY(hf__sink_decode(s, url->memory, "the command", url->rest, &command));
    status = hf__source_words(url->memory, command, &exec->words);
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    if (status != HF_OK)
        return hf_scope_fail_because(s, HF_INVALID, hf_scope_error(url->memory),
                                     "the command of an exec sink cannot be run: %s",
                                     hf_scope_error_text(url->memory));
    return HF_OK;
}

enum hf_status hf__sink_exec_open(struct hf_scope *s, const struct sink_url *url,
                                  struct hf_sink **sink)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "exec",
                                    .batch_max = 1,
                                    .keeps_order = true,
                                    .send = exec_send,
                                    .close = exec_close};
    struct exec *exec = hf__env_alloc(hf_scope_env(s), sizeof(*exec));
    enum hf_status status;

    if (!exec)
        return hf__fail_nomem(s);
    *exec = (struct exec){.env = *hf_scope_env(s),
                          .options = {.timeout_ms = TIMEOUT_MS, .grace_ms = GRACE_MS}};
    status = open_parts(s, url, exec);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, exec, sink);
    if (status != HF_OK)
        exec_close(exec);
    return status;
}
