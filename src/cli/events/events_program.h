/*
 * cli/events/events_program.h: a program that is run for an event: the event is on its standard input, a
 * line of JSON as an export has it, and in variables; its exit code says whether it has handled it.
 */
#ifndef HF_CLI_EVENTS_EVENTS_PROGRAM_H
#define HF_CLI_EVENTS_EVENTS_PROGRAM_H

#include "cli/events/events.h"
#include "cli/frame/process/child.h"

struct events_program_settings {
    struct hf_str exec;
    uint64_t run_timeout_ms;
    uint64_t kill_after_ms;
};

/* Its options, for a struct whose member `program` is the settings. */
#define EVENTS_PROGRAM_SPECS(type, title)                                                          \
    OPT_TEXT_IN(type, "exec", "CMD", program.exec,                                                 \
                "Shell command (sh -c) to run for each event. Or give a program after --.",        \
                .letter = 'x', .heading = title),                                                  \
        OPT_TIME_IN(type, "run-timeout", program.run_timeout_ms, 0, OPTION_DAY_MS,                 \
                    "Stop a program after this time; it has failed then."),                        \
        OPT_TIME_IN(type, "kill-after", program.kill_after_ms, 0, OPTION_DAY_MS,                   \
                    "How long to wait between SIGTERM and SIGKILL when a program is stopped.",     \
                    .fallback = "10s")

struct events_program {
    const char *const *args;
    size_t args_len; /* 0: there is none */
    const char *shell[3];
    uint64_t run_timeout_ms;
    uint64_t kill_after_ms;
    struct guard *guard;
};

/* The program that was named by --exec or behind --. False: both were, which was shown. */
bool hf__cli_events_program(struct cli *cli, const char *command,
                            const struct events_program_settings *settings,
                            const struct options *options, struct events_program *program);

/*
 * Run it for an event, and wait for its end. *output is what it has printed, in the scope; NULL: it
 * has our standard output. HF_IO with a message when it could not be run or ended with another code
 * than 0; HF_CANCELED, HF_TIMEOUT.
 */
enum hf_status hf__cli_events_program_run(struct hf_scope *s, const struct events_program *program,
                                          const struct hf_stored_event *event,
                                          struct hf_str *output);

#endif
