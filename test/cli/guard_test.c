/* cli/frame/process/child.c: what the guard does with signals that come at its very end. */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/frame/process/child.h"
#include "test.h"

enum { ROUNDS = 300, ENDED = 7, NOTED = 8 };

/* As the kernel sends it for Ctrl-C, to this process. */
static void interrupt_by_terminal(void)
{
    siginfo_t info;

    memset(&info, 0, sizeof(info));
    info.si_signo = SIGINT;
    info.si_code = SI_KERNEL;
    if (syscall(SYS_rt_sigqueueinfo, getpid(), SIGINT, &info) != 0)
        _exit(1);
}

/* A process whose guard ends just when the signal comes. How it ends, as waitpid() says. */
static int end_with_signal(int number)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        struct hf_scope *scope = hf_scope_new(NULL);
        struct guard guard;

        if (!scope || !hf__guard_begin(&guard, scope))
            _exit(1);
        guard.ran = true; /* a program has run */
        if (number == SIGINT)
            interrupt_by_terminal();
        else
            kill(getpid(), number);
        hf__guard_end(&guard);
        _exit(guard.signal == SIGTERM ? NOTED : ENDED);
    }
    if (pid > 0)
        waitpid(pid, &status, 0);
    return status;
}

TEST(guard, ctrl_c_for_a_program_that_ended_does_not_end_us)
{
    for (int i = 0; i < ROUNDS; i++) {
        int status = end_with_signal(SIGINT);

        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == ENDED);
    }
}

TEST(guard, a_signal_for_us_is_not_lost_at_the_end)
{
    for (int i = 0; i < ROUNDS / 10; i++) {
        int status = end_with_signal(SIGTERM);

        CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM) ||
              (WIFEXITED(status) && WEXITSTATUS(status) == NOTED));
    }
}
