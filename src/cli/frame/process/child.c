/*
 * cli/frame/process/child.c: a program that is run on behalf of who called us.
 *
 * Two threads know of it. One starts it and waits for its end. The guard's waits for signals, and
 * does what they, the time limit or hf__guard_stop_child() ask for. All threads have the signals
 * blocked, so only the guard's gets them; SIGCHLD is used to wake it, and says nothing else.
 *
 * A signal that the terminal sends (Ctrl-C) goes to all of its processes, so the program has it
 * already and gets it once; one that was sent to us alone is passed on.
 *
 * What always holds:
 *
 *  (1) A signal is never sent to a process that is not the program: it is reaped under the mutex,
 *      and forgotten there.
 *  (2) While the program runs, we do: no signal ends us before it has ended.
 */
#include "cli/frame/process/child.h"

#include "base/assert_held.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};

static void fill_set(sigset_t *set)
{
    sigemptyset(set);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        sigaddset(set, passed_on[i]);
    sigaddset(set, SIGCHLD);
}

/* What a program that we start shall have as usual: these, and what we ignore. */
static void fill_defaults(sigset_t *set)
{
    fill_set(set);
    sigaddset(set, SIGPIPE);
}

static int64_t now_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* Is the variable `entry` one that the program is given anew? */
static bool is_replaced(const struct child_program *program, const char *entry)
{
    size_t len = strcspn(entry, "=") + 1;

    assert(entry);
    for (size_t i = 0; i < program->variables_len; i++)
        if (program->variables[i].len >= len && memcmp(program->variables[i].ptr, entry, len) == 0)
            return true;
    return false;
}

static char **make_variables(struct hf_scope *s, const struct child_program *program)
{
    size_t len = 0;
    size_t kept = 0;
    char **all;

    while (environ[len])
        len++;
    all = hf_scope_alloc(s, (len + program->variables_len + 1) * sizeof(*all));
    if (!all)
        return NULL;
    for (size_t i = 0; i < len; i++)
        if (!is_replaced(program, environ[i]))
            all[kept++] = environ[i];
    for (size_t i = 0; i < program->variables_len; i++)
        memcpy(&all[kept++], &program->variables[i].ptr, sizeof(*all));
    assert(kept <= len + program->variables_len);
    all[kept] = NULL;
    return all;
}

/* What we have opened is not the program's. Not every library marks its sockets so. */
static void keep_files(const struct guard *guard)
{
    for (int fd = STDERR_FILENO + 1; fd < CHILD_FILES; fd++)
        if (!guard->inherited[fd])
            (void)fcntl(fd, F_SETFD, FD_CLOEXEC); /* most are not open at all */
}

/* False: no memory. */
static bool make_how(struct hf_scope *s, const struct child_program *program, int input,
                     const sigset_t *defaults, struct child_how *how)
{
    char **variables = make_variables(s, program);
    char **args = hf_scope_alloc(s, (program->args_len + 1) * sizeof(*args));

    assert(program->args_len > 0 && program->guard);
    if (!variables || !args)
        return false;
    keep_files(program->guard);
    memcpy(args, program->args, program->args_len * sizeof(*args));
    args[program->args_len] = NULL;
    *how = (struct child_how){.words = args,
                              .variables = variables,
                              .in = input >= 0 ? input : CHILD_OURS,
                              .out = program->output ? program->output : CHILD_OURS,
                              .err = CHILD_OURS,
                              .defaults = defaults};
    return true;
}

int hf__program_start(struct hf_scope *s, const struct child_program *program, int input,
                      struct child *child)
{
    struct child_how how;
    sigset_t defaults;

    fill_defaults(&defaults);
    return make_how(s, program, input, &defaults, &how) ? hf__child_open(&how, child) : ENOMEM;
}

int hf__program_code(int wait_status)
{
    assert(WIFSIGNALED(wait_status) || WIFEXITED(wait_status));
    return WIFSIGNALED(wait_status) ? CLI_SIGNAL + WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
}

enum hf_status hf__program_wait(struct hf_scope *s, struct child *child, uint64_t limit_ms,
                                uint64_t kill_after_ms)
{
    const struct hf_env *env = hf_scope_env(s);
    enum hf_status why = HF_OK;

    if (!hf__child_wait(s, env, child, limit_ms ? (int64_t)limit_ms : -1)) {
        why = hf__scope_alive(s);
        why = why == HF_OK ? HF_TIMEOUT : why;
    }
    hf__child_close(env, child, kill_after_ms);
    return why;
}

/* With the mutex held. */
static void guard_check(struct guard *guard)
{
    ASSERT_HELD(&guard->mutex);
    assert(guard->child >= 0);
    assert(!guard->kill_us || guard->stopped); /* first asked, then killed */
    assert(!guard->stopped || guard->stop);
    assert(!(guard->limit_us && guard->kill_us));
}

/* ---- the guard ------------------------------------------------------------------------------ */

static bool is_from_terminal(const siginfo_t *info)
{
    return info->si_code == SI_KERNEL;
}

/* These two are for programs that know them. */
static bool is_for_programs(int number)
{
    return number == SIGUSR1 || number == SIGUSR2;
}

/* SIGINT ends a command, the others whoever ran it. */
static void signal_note(struct guard *guard, int number)
{
    assert(number > 0);
    if (!guard->signal || guard->signal == SIGINT)
        guard->signal = number;
}

/* A signal that came while a program runs. */
static void child_signal(struct guard *guard, int number, const siginfo_t *info)
{
    bool is_ours = !is_from_terminal(info) || number == SIGHUP || number == SIGTERM;

    assert(guard->child > 0);
    if (!is_from_terminal(info))
        kill(guard->child, number);
    if (guard->notes && is_ours && !is_for_programs(number))
        signal_note(guard, number);
}

static void take_signal(struct guard *guard, int number, const siginfo_t *info)
{
    ASSERT_HELD(&guard->mutex);
    if (number == SIGCHLD)
        return;
    if (guard->child) {
        child_signal(guard, number, info);
        return;
    }
    if (is_for_programs(number))
        return;
    signal_note(guard, number);
    hf_scope_cancel(guard->scope);
    if (guard->bell >= 0)
        (void)eventfd_write(guard->bell, 1);
}

/* What is due now. Returns when there is more to do, 0 for never. */
static int64_t take_time(struct guard *guard)
{
    int64_t now = now_us();

    if (!guard->child)
        return 0;
    if (guard->limit_us && now >= guard->limit_us) {
        guard->limit_us = 0;
        guard->too_long = true;
        guard->stop = true;
    }
    if (guard->stop && !guard->stopped) {
        guard->stopped = true;
        guard->limit_us = 0;
        guard->kill_us = now + (int64_t)guard->kill_after_ms * 1000;
        kill(guard->child, SIGTERM);
        kill(guard->child, SIGCONT);
    }
    if (guard->kill_us && now >= guard->kill_us) {
        guard->kill_us = 0;
        kill(guard->child, SIGKILL);
    }
    guard_check(guard);
    return guard->kill_us ? guard->kill_us : guard->limit_us;
}

static void *guard_watch(void *user)
{
    struct guard *guard = user;
    int64_t due_us = 0;
    bool finish = false;
    sigset_t set;

    fill_set(&set);
    while (!finish) {
        int64_t left_us = due_us ? due_us - now_us() : 60 * 1000000;
        struct timespec left = {.tv_sec = 0};
        siginfo_t info;
        int number;

        if (left_us > 0) {
            left.tv_sec = (time_t)(left_us / 1000000);
            left.tv_nsec = (long)(left_us % 1000000) * 1000;
        }
        number = sigtimedwait(&set, &info, &left);
        pthread_mutex_lock(&guard->mutex);
        if (number > 0)
            take_signal(guard, number, &info);
        due_us = take_time(guard);
        finish = guard->finish;
        pthread_mutex_unlock(&guard->mutex);
    }
    return NULL;
}

static void guard_wake(struct guard *guard)
{
    if (guard->watching)
        pthread_kill(guard->thread, SIGCHLD);
}

bool hf__guard_begin(struct guard *guard, struct hf_scope *scope)
{
    assert(scope);
    sigset_t set;

    memset(guard, 0, sizeof(*guard));
    guard->scope = scope;
    guard->bell = -1;
    pthread_mutex_init(&guard->mutex, NULL);
    for (int fd = 0; fd < CHILD_FILES; fd++)
        guard->inherited[fd] = fcntl(fd, F_GETFD) >= 0;
    fill_set(&set);
    pthread_sigmask(SIG_BLOCK, &set, &guard->before);
    /* A connection that breaks is an error; the program gets the usual effect back. */
    signal(SIGPIPE, SIG_IGN);
    guard->watching = pthread_create(&guard->thread, NULL, guard_watch, guard) == 0;
    return guard->watching;
}

/*
 * What the terminal sent to a program that ran, and that the thread has not taken: it gets what is for
 * itself, the wake-up, before what is for the process. Ctrl-C would end us else, where the program's end
 * is what we end with. Others take effect when they are not blocked any more.
 */
static void drop_pending(const struct guard *guard)
{
    static const struct timespec at_once = {.tv_sec = 0};
    sigset_t set, others;
    siginfo_t info;
    int number;

    fill_set(&set);
    sigemptyset(&others);
    while ((number = sigtimedwait(&set, &info, &at_once)) > 0)
        if (number != SIGCHLD && !(guard->ran && is_from_terminal(&info) && number != SIGHUP))
            sigaddset(&others, number);
    for (size_t i = 0; i < sizeof(passed_on) / sizeof(passed_on[0]); i++)
        if (sigismember(&others, passed_on[i]))
            kill(getpid(), passed_on[i]);
}

void hf__guard_end(struct guard *guard)
{
    pthread_mutex_lock(&guard->mutex);
    guard->finish = true;
    pthread_mutex_unlock(&guard->mutex);
    if (guard->watching) {
        guard_wake(guard);
        pthread_join(guard->thread, NULL);
    }
    drop_pending(guard);
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
    if (guard->bell >= 0)
        close(guard->bell);
    pthread_mutex_destroy(&guard->mutex);
}

void hf__guard_aim(struct guard *guard, struct hf_scope *scope)
{
    pthread_mutex_lock(&guard->mutex);
    guard->scope = scope;
    if (guard->signal == SIGINT)
        guard->signal = 0;
    if (guard->signal)
        hf_scope_cancel(scope);
    guard->stop = guard->stopped = guard->too_long = false;
    guard->limit_us = guard->kill_us = 0;
    pthread_mutex_unlock(&guard->mutex);
}

void hf__guard_notes(struct guard *guard)
{
    pthread_mutex_lock(&guard->mutex);
    guard->notes = true;
    pthread_mutex_unlock(&guard->mutex);
}

int hf__guard_bell(struct guard *guard)
{
    int bell;

    pthread_mutex_lock(&guard->mutex);
    if (guard->bell < 0)
        guard->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    bell = guard->bell;
    pthread_mutex_unlock(&guard->mutex);
    return bell;
}

int hf__guard_signal(struct guard *guard)
{
    int number;

    pthread_mutex_lock(&guard->mutex);
    number = guard->signal;
    pthread_mutex_unlock(&guard->mutex);
    return number;
}

void hf__guard_stop_child(struct guard *guard)
{
    pthread_mutex_lock(&guard->mutex);
    guard->stop = true;
    pthread_mutex_unlock(&guard->mutex);
    guard_wake(guard);
}

/* ---- running -------------------------------------------------------------------------------- */

/* Wait for its end, then take it from the guard before its number can be another's. */
static int child_reap(struct guard *guard, pid_t pid)
{
    siginfo_t info;
    int status = 0;

    while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0 && errno == EINTR)
        ;
    pthread_mutex_lock(&guard->mutex);
    guard->child = 0;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    pthread_mutex_unlock(&guard->mutex);
    return status;
}

int hf__guard_run(struct guard *guard, struct cli *cli, const char *command,
                  const struct child_program *program)
{
    struct child_how how;
    sigset_t defaults;
    pid_t pid = 0;
    int error = 0;
    int number;
    bool stop;
    int status;

    fill_defaults(&defaults);
    fflush(cli->out);
    pthread_mutex_lock(&guard->mutex);
    number = guard->signal;
    stop = guard->stop;
    if (!number && !stop)
        error = make_how(cli->scope, program, -1, &defaults, &how) ? hf__child_start(&how, &pid)
                                                                   : ENOMEM;
    if (!number && !stop && !error) {
        guard->child = pid;
        guard->ran = true;
        guard->kill_after_ms = program->kill_after_ms;
        guard->limit_us = program->limit_ms ? now_us() + (int64_t)program->limit_ms * 1000 : 0;
    }
    pthread_mutex_unlock(&guard->mutex);
    if (number)
        return CLI_SIGNAL + number;
    if (stop)
        return CLI_SIGNAL + SIGTERM;
    if (error)
        return hf__cli_fail(cli, command, error == ENOENT ? CLI_NO_PROGRAM : CLI_NO_EXEC, "%s: %s",
                            program->args[0], strerror(error));
    guard_wake(guard);
    status = child_reap(guard, pid);
    return guard->too_long ? (int)CLI_TOO_LONG : hf__program_code(status);
}

bool hf__guard_command(struct cli *cli, const char *command, bool ends_by_signal,
                       struct guard *guard, int *ends)
{
    if (!hf__guard_begin(guard, cli->scope)) {
        *ends = hf__cli_fail(cli, command, CLI_FAILED, "cannot start a thread");
        return false;
    }
    cli->guard = guard;
    cli->ends_by_signal = ends_by_signal;
    return true;
}

void hf__guard_command_end(struct cli *cli, struct guard *guard)
{
    cli->guard = NULL;
    hf__guard_end(guard);
}
