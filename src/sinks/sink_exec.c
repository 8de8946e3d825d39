/*
 * sinks/sink_exec.c: a program that is run for each event.
 *
 *     exec:/usr/local/bin/on-order --verbose
 *
 * The payload is its standard input, and environment variables have the rest of the event:
 *
 *     HF_EVENT_ID TYPE SOURCE KEY SEQUENCE TIME CONTENT_TYPE SCHEMA AGGREGATE AGGREGATE_TYPE TENANT
 *     DESTINATION CORRELATION CAUSATION TRACE_PARENT TRACE_STATE URGENT  (those that the event has)
 *     HF_EVENT_HEADERS     a JSON object
 *     HF_EVENT_ATTEMPT     1, 2, ...
 *
 * and its exit code is the outcome, with the numbers of sysexits.h:
 *
 *     0                    done
 *     64, 65               this event would fail again (EX_USAGE, EX_DATAERR)
 *     69                   the program accepts no event for now (EX_UNAVAILABLE)
 *     75 and all others, and death by a signal: retry
 *
 * The command line is split into words by quotes and backslashes (hf__child_words()). No shell sees
 * it, and nothing of an event is ever part of it.
 *
 * What always holds:
 *
 *  (1) A child that was started is waited for, and is signaled only before that (base/child.c).
 *  (2) A child leads a process group of its own. A child that does not end in time is killed with
 *      all processes of its group: by SIGTERM, and after grace_ms by SIGKILL.
 *  (3) The payload is a file in memory, so nothing waits for a child that does not read it.
 */
#include "sinks/private.h"

#include <errno.h>
#include <sys/wait.h>
#include <sysexits.h>
#include <unistd.h>

#include "base/child.h"

enum {
    TIMEOUT_MS = 30000,
    GRACE_MS = 2000, /* from SIGTERM to SIGKILL */
    SAID_MAX = 512   /* bytes of its standard error that a failure shows */
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
    size_t len, room; /* the list ends with a NULL, which has its place in the room */
    enum hf_status status;
};

static void variable_set(struct variables *v, const char *name, struct hf_str value)
{
    size_t size = strlen(PREFIX) + strlen(name) + 1 + value.len + 1;
    char *text;

    if (!value.len || v->status != HF_OK)
        return;
    if (memchr(value.ptr, '\0', value.len)) {
        v->status =
            hf__fail(v->s, HF_INVALID, "the value of " PREFIX "%s contains a NUL byte", name);
        return;
    }
    text = hf_scope_alloc(v->s, size);
    if (!text) {
        v->status = hf__fail_nomem(v->s);
        return;
    }
    snprintf(text, size, PREFIX "%s=%.*s", name, HF_FMT(value));
    assert(v->len + 1 < v->room);
    v->list[v->len++] = text;
}

static void set_number(struct variables *v, const char *name, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    variable_set(v, name, hf_str_from(text));
}

static void set_headers(struct variables *v, struct hf_item headers)
{
    struct hf__buf buf = {.scope = v->s};

    if (!headers.ptr || v->status != HF_OK)
        return;
    v->status = hf_item_check(v->s, headers);
    if (v->status != HF_OK)
        return;
    hf__sink_put_plain_json(v->s, &buf, hf_item_value(headers));
    if (buf.failed)
        v->status = hf__fail_nomem(v->s);
    variable_set(v, "HEADERS", hf_str_of((const char *)buf.ptr, buf.len));
}

/* The variables of this process, without those of an event that it was started for itself, and the
 * variables of the event. */
static enum hf_status make_variables(struct hf_scope *s, const struct hf_outbox_event *stored,
                                     char ***list)
{
    enum { OWN = 20, OTHERS = 5 }; /* others: TIME, SEQUENCE, URGENT, ATTEMPT, HEADERS */
    const struct hf_event *event = &stored->event;
    const struct {
        const char *name;
        struct hf_str value;
    } texts[] = {{"ID", event->id},
                 {"TYPE", event->type},
                 {"SOURCE", event->source},
                 {"KEY", event->key},
                 {"CONTENT_TYPE", hf__sink_event_content_type(event)},
                 {"SCHEMA", event->schema},
                 {"AGGREGATE", event->aggregate},
                 {"AGGREGATE_TYPE", event->aggregate_type},
                 {"TENANT", event->tenant},
                 {"DESTINATION", event->destination},
                 {"CORRELATION", event->correlation},
                 {"CAUSATION", event->causation},
                 {"TRACE_PARENT", event->trace_parent},
                 {"TRACE_STATE", event->trace_state}};
    _Static_assert(ARRAY_LEN(texts) + OTHERS <= OWN, "there is room for all variables");
    struct variables v = {.s = s};
    char time[EVENT_TIME];
    struct hf_str rest;
    size_t count = 0;

    while (environ && environ[count])
        count++;
    v.room = count + OWN + 1;
    v.list = hf__scope_array(s, v.room, sizeof(*v.list));
    if (!v.list)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < count; i++)
        if (!str_after(hf_str_from(environ[i]), HF_STR(PREFIX), &rest))
            v.list[v.len++] = environ[i];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        variable_set(&v, texts[i].name, texts[i].value);
    if (event->time_us && hf__sink_event_time(event->time_us, time))
        variable_set(&v, "TIME", hf_str_from(time));
    if (event->sequence)
        set_number(&v, "SEQUENCE", event->sequence);
    if (event->urgent)
        set_number(&v, "URGENT", 1);
    set_number(&v, "ATTEMPT", (uint64_t)stored->attempts + 1);
    set_headers(&v, event->headers);
    assert(!v.list[v.len]);
    *list = v.list;
    return v.status;
}

/* ---- the child ------------------------------------------------------------------------------ */

/* One run of the program. */
struct run {
    struct child child;
    char said[SAID_MAX + 1]; /* the beginning of its standard error */
};

/* Returns 0 or an errno. (3) */
static int run_begin(const struct exec *exec, char **variables, struct hf_bytes payload,
                     struct run *run)
{
    int in = hf__child_file(payload.ptr, payload.len);
    int error = in < 0 ? errno : 0;

    if (!error)
        error = hf__child_open(&(struct child_how){.words = exec->words,
                                                   .variables = variables,
                                                   .in = in,
                                                   .out = CHILD_NOTHING,
                                                   .err = CHILD_PIPE,
                                                   .group = true,
                                                   .room = run->said,
                                                   .room_len = SAID_MAX},
                               &run->child);
    if (in >= 0)
        close(in);
    return error;
}

/* ---- outcomes ------------------------------------------------------------------------------- */

/* The beginning of its standard error, on one line; *colon is ": ", or "" when there is nothing. */
static const char *stderr_text(struct run *run, const char **colon)
{
    size_t len = run->child.said;

    assert(len <= SAID_MAX);
    while (len && (unsigned char)run->said[len - 1] <= ' ')
        len--;
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)run->said[i] < ' ' || (unsigned char)run->said[i] >= 127)
            run->said[i] = run->said[i] == '\n' ? ' ' : '?';
    run->said[len] = '\0';
    *colon = len ? ": " : "";
    return run->said;
}

static enum hf_status outcome_report(struct hf_scope *s, const struct exec *exec, struct run *run,
                                     struct hf_delivery *delivery)
{
    const char *colon, *said = stderr_text(run, &colon);
    int outcome = run->child.outcome;
    /* The outcome is unknown if this process lets the system collect its children: then retry. */
    int code = run->child.unknown ? EX_TEMPFAIL : WEXITSTATUS(outcome);

    assert(WIFSIGNALED(outcome) || WIFEXITED(outcome));
    if (WIFSIGNALED(outcome)) {
        hf__delivery_fail(s, delivery, HF_IO, false, "%s was killed by signal %d%s%s",
                          exec->words[0], WTERMSIG(outcome), colon, said);
        return HF_OK;
    }
    if (code == 0) {
        hf__delivery_done(delivery);
        return HF_OK;
    }
    if (code == EX_UNAVAILABLE)
        return hf__fail(s, HF_IO, "%s is not accepting events%s%s", exec->words[0], colon, said);
    hf__delivery_fail(s, delivery, code == EX_USAGE || code == EX_DATAERR ? HF_INVALID : HF_IO,
                      code == EX_USAGE || code == EX_DATAERR, "%s ended with exit code %d%s%s",
                      exec->words[0], code, colon, said);
    return HF_OK;
}

static enum hf_status run_once(struct hf_scope *s, const struct exec *exec, char **variables,
                               struct hf_delivery *delivery)
{
    struct run run;
    enum hf_status status;
    int error = run_begin(exec, variables, delivery->event->event.payload, &run);
    bool ended;

    if (error == E2BIG) {
        hf__delivery_fail(s, delivery, HF_LIMIT, true,
                          "its headers and texts are too large for environment variables");
        return HF_OK;
    }
    if (error)
        return hf__fail(s, HF_IO, "%s cannot be started: %s", exec->words[0], strerror(error));
    ended = hf__child_wait(s, &exec->env, &run.child, (int64_t)exec->options.timeout_ms);
    status = ended ? HF_OK : hf__scope_alive(s);
    hf__child_close(&exec->env, &run.child, exec->options.grace_ms);
    if (ended)
        return outcome_report(s, exec, &run, delivery);
    if (status == HF_CANCELED)
        return hf__scope_alive(s);
    hf__scope_error_clear(s);
    if (status == HF_OK)
        hf__delivery_fail(s, delivery, HF_IO, false,
                          "%s did not end within %llu ms, and was killed", exec->words[0],
                          (unsigned long long)exec->options.timeout_ms);
    else /* perhaps because of this event: others may succeed */
        hf__delivery_fail(s, delivery, HF_TIMEOUT, false,
                          "%s did not end before the deadline, and was killed", exec->words[0]);
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
        TRY(run_once(s, exec, variables, &deliveries[i]));
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
    status = hf__child_words(url->memory, command, &exec->words);
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    if (status != HF_OK)
        return hf_scope_fail_because(s, HF_INVALID, hf_scope_error(url->memory),
                                     "the URL of an exec sink has an invalid command: %s",
                                     hf_scope_error_text(url->memory));
    assert(exec->words[0]);
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
