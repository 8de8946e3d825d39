/*
 * cli/frame/process/child.h: running a program: signals go on to it, and its end is ours.
 *
 *     hf__guard_begin(&guard, cli->scope);            from here on signals are the guard's
 *     ... wait for something: a signal cancels the scope ...
 *     ends = hf__guard_run(&guard, cli, "lock run", &program);
 *     hf__guard_end(&guard);
 */
#ifndef HF_CLI_FRAME_CHILD_H
#define HF_CLI_FRAME_CHILD_H

#include "base/child.h"
#include "cli/frame/cli.h"

#include <pthread.h>

enum { CHILD_FILES = 256 }; /* descriptors that are looked after */

struct guard;

/* When a program that is run is ended, for settings with these two members. */
#define CHILD_SPECS(type)                                                                          \
    OPT_TIME_IN(type, "run-timeout", run_timeout_ms, 0, OPTION_WEEK_MS,                            \
                "Stop the program after this time; then the exit code is 124."),                   \
        OPT_TIME_IN(type, "kill-after", kill_after_ms, 0, OPTION_DAY_MS,                           \
                    "How long to wait between SIGTERM and SIGKILL when the program is stopped.",   \
                    .fallback = "10s")

/* A program to be run; what it inherits is our standard streams and variables, and these. */
struct child_program {
    const char *const *args; /* the first is found as a shell finds it */
    size_t args_len;
    const struct hf_str *variables; /* "NAME=value", each with a NUL behind it */
    size_t variables_len;
    uint64_t limit_ms;         /* then it is ended, and CLI_TOO_LONG comes out; 0: no limit */
    uint64_t kill_after_ms;    /* from SIGTERM to SIGKILL when it is ended */
    const struct guard *guard; /* knows which files are not ours, and go on to the program */
    int output;                /* becomes its standard output; 0: it has ours */
};

struct guard {
    pthread_t thread;
    bool watching;
    sigset_t before;
    bool inherited[CHILD_FILES]; /* descriptors that we were started with */
    pthread_mutex_t mutex;       /* guards what follows */
    struct hf_scope *scope;
    int bell;     /* hf__guard_bell(); -1: there is none */
    pid_t child;  /* 0: none */
    int signal;   /* hf__guard_signal() */
    bool stop;    /* the child is to end */
    bool stopped; /* we stopped it */
    bool too_long;
    bool ran;         /* there was a child */
    bool notes;       /* hf__guard_notes() */
    bool finish;      /* the thread is to end */
    int64_t limit_us; /* by the monotonic clock; 0: none */
    int64_t kill_us;
    uint64_t kill_after_ms;
};

/*
 * Take over the signals that would end us; a thread waits for them. One that comes while no program
 * runs cancels `scope`. Begin before any other thread is there, so that none has them unblocked.
 * False when there is no thread to be had.
 */
bool hf__guard_begin(struct guard *guard, struct hf_scope *scope);
void hf__guard_end(struct guard *guard);

/* The same around all that a command does: a call that is canceled because a signal came ends it
 * without an error, and with 128 and the number of the signal, or with 0 if that is how it is meant
 * to end. False: *ends says how to end. Both ends are to be called in any case. */
bool hf__guard_command(struct cli *cli, const char *command, bool ends_by_signal,
                       struct guard *guard, int *ends);
void hf__guard_command_end(struct cli *cli, struct guard *guard);

/* From now on a signal cancels `scope`. A SIGINT that came before is forgotten; any other one has canceled it
 * already. For the shell, whose guard serves one command after the other. */
void hf__guard_aim(struct guard *guard, struct hf_scope *scope);

/* From now on the guard also notes signals that it passes on to a program, without canceling anything: who ran
 * the program ends after it. SIGINT and SIGQUIT of the terminal are not noted, for they are the program's. For
 * the shell. */
void hf__guard_notes(struct guard *guard);

/* A descriptor, an eventfd, that can be read when a signal came while no program was running. It is the
 * guard's. -1: there is none to be had. */
int hf__guard_bell(struct guard *guard);

/* Which signal came while no program was running, or was noted; 0: none. One that is not SIGINT replaces it. */
int hf__guard_signal(struct guard *guard);

/*
 * Run it to its end. Returns its exit code, 128 and the number of the signal that ended it, or an
 * enum cli_exit when it could not be run, which was shown then.
 */
int hf__guard_run(struct guard *guard, struct cli *cli, const char *command,
                  const struct child_program *program);

/* Let the program that runs end: SIGTERM, and SIGKILL later. Any thread. */
void hf__guard_stop_child(struct guard *guard);

/*
 * Start a program that the guard does not know of: there may be several. Signals are as they were
 * before us. `input` becomes its standard input unless it is -1. Returns 0 or an errno.
 */
int hf__program_start(struct hf_scope *s, const struct child_program *program, int input,
                      struct child *child);

/*
 * Wait for its end. A scope that is canceled, its deadline, or `limit_ms` (0: none) ends it; SIGKILL
 * comes `kill_after_ms` behind SIGTERM. Returns HF_OK, HF_CANCELED or HF_TIMEOUT when it has ended
 * in any case, and child->outcome says how.
 */
enum hf_status hf__program_wait(struct hf_scope *s, struct child *child, uint64_t limit_ms,
                                uint64_t kill_after_ms);

/* The exit code that stands for the end of a process. */
int hf__program_code(int wait_status);

#endif
