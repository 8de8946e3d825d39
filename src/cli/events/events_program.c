/*
 * cli/events/events_program.c: a program that is run for an event. See events_program.h.
 *
 * Its input and its output are files in memory: no program can block on a pipe that we do not
 * read, or get half of an event.
 */
#include "cli/events/events_program.h"

#include "cli/frame/commands.h"

#include <errno.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 256 * 1024 * 1024 };

bool hf__cli_events_program(struct cli *cli, const char *command,
                            const struct events_program_settings *settings,
                            const struct options *options, struct events_program *program)
{
    *program = (struct events_program){.args = options->operands,
                                       .args_len = options->operands_len,
                                       .shell = {"sh", "-c", settings->exec.ptr},
                                       .run_timeout_ms = settings->run_timeout_ms,
                                       .kill_after_ms = settings->kill_after_ms};
    if (settings->exec.ptr && options->operands_len) {
        hf__cli_fail(cli, command, CLI_USAGE, "--exec and a program after -- cannot be combined");
        return false;
    }
    if (settings->exec.ptr) {
        program->args = program->shell;
        program->args_len = COMMAND_LEN(program->shell);
    }
    return true;
}

/* What it has printed. */
static enum hf_status read_output(struct hf_scope *s, const char *name, int fd,
                                  struct hf_str *output)
{
    off_t len = lseek(fd, 0, SEEK_END);
    char *text;

    if (len < 0 || len > OUTPUT_MAX)
        return hf_scope_fail(s, HF_LIMIT, "%s printed too much", name);
    text = hf_scope_alloc(s, (size_t)len + 1);
    if (!text)
        return hf_scope_built(s);
    for (off_t done = 0; done < len;) {
        ssize_t got = pread(fd, text + done, (size_t)(len - done), done);

        if (got <= 0)
            return hf_scope_fail(s, HF_IO, "%s: %s", name, strerror(errno));
        done += got;
    }
    text[len] = '\0';
    *output = hf_str_of(text, (size_t)len);
    return HF_OK;
}

static enum hf_status program_outcome(struct hf_scope *s, const char *name, enum hf_status waited,
                                      int status)
{
    int code = hf__program_code(status);

    if (WIFEXITED(status) && code == 0)
        return HF_OK;
    if (waited == HF_TIMEOUT)
        return hf_scope_fail(s, HF_IO, "%s took too long", name);
    if (waited == HF_CANCELED)
        return hf_scope_fail(s, HF_CANCELED, "%s was stopped", name);
    if (WIFSIGNALED(status))
        return hf_scope_fail(s, HF_IO, "%s was ended by signal %d", name, WTERMSIG(status));
    return hf_scope_fail(s, HF_IO, "%s ended with code %d", name, code);
}

static enum hf_status program_run(struct hf_scope *s, const struct events_program *program,
                                  const struct hf_stored_event *event, int input, int output)
{
    const char *name = program->shell[2] ? program->shell[2] : program->args[0];
    const struct hf_str variables[] = {
        hf_scope_format(s, "HOLDFAST_EVENT_ID=%.*s", HF_FMT(event->id)),
        hf_scope_format(s, "HOLDFAST_EVENT_TYPE=%.*s", HF_FMT(event->type)),
        hf_scope_format(s, "HOLDFAST_EVENT_STREAM=%.*s",
                        HF_FMT(hf__cli_events_stream_text(s, event->stream))),
        hf_scope_format(s, "HOLDFAST_EVENT_VERSION=%llu", (unsigned long long)event->version),
        hf_scope_format(s, "HOLDFAST_EVENT_POSITION=%.*s", HF_FMT(event->position))};
    const struct child_program how = {.args = program->args,
                                      .args_len = program->args_len,
                                      .variables = variables,
                                      .variables_len = COMMAND_LEN(variables),
                                      .guard = program->guard,
                                      .output = output > 0 ? output : 0};
    enum hf_status waited = hf_scope_built(s);
    struct child child;
    int error;

    if (waited != HF_OK)
        return waited;
    error = hf__program_start(s, &how, input, &child);
    if (error)
        return hf_scope_fail(s, HF_IO, "%s: %s", name, strerror(error));
    waited = hf__program_wait(s, &child, program->run_timeout_ms, program->kill_after_ms);
    return program_outcome(s, name, waited, child.outcome);
}

enum hf_status hf__cli_events_program_run(struct hf_scope *s, const struct events_program *program,
                                          const struct hf_stored_event *event,
                                          struct hf_str *output)
{
    struct hf_str json, line;
    enum hf_status status = hf_event_to_json(s, event, &json);
    int files[2] = {-1, -1};

    if (status != HF_OK)
        return status;
    line = hf_scope_format(s, "%.*s\n", HF_FMT(json));
    files[0] = line.ptr ? hf__child_file(line.ptr, line.len) : -1;
    files[1] = output ? hf__child_file(NULL, 0) : -1;
    if (files[0] < 0 || (output && files[1] < 0))
        status =
            hf_scope_fail(s, HF_IO, "cannot pass the event to the program: %s", strerror(errno));
    else
        status = program_run(s, program, event, files[0], files[1]);
    if (status == HF_OK && output)
        status = read_output(s, program->args[0], files[1], output);
    for (size_t i = 0; i < COMMAND_LEN(files); i++)
        if (files[i] >= 0)
            close(files[i]);
    return status;
}
