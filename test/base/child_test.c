/* base/child_test.c: child processes; (n) is an invariant of base/child.c. */
#include "base/child.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#define SHELL(script) ((char *[]){(char[]){"/bin/sh"}, (char[]){"-c"}, (char[]){script}, NULL})

enum { LONG_MS = 20000 };

/* Children do not wait for virtual clocks. */
static const struct hf_env *real_env(void)
{
    static struct hf_env env;

    env = hf__env_fill(NULL);
    return &env;
}

static struct child_how printing(char **words, char *room, size_t len)
{
    return (struct child_how){.words = words,
                              .in = CHILD_NOTHING,
                              .out = CHILD_PIPE,
                              .err = CHILD_NOTHING,
                              .group = true,
                              .room = room,
                              .room_len = len};
}

TEST(child, what_it_prints_and_how_it_ends)
{
    struct hf_scope *s = hf_scope_new(real_env());
    struct child_how how;
    struct child child;
    char room[100];

    how = printing(SHELL("echo out; echo err >&2; read x || echo end; exit 7"), room, sizeof(room));
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(hf__child_wait(s, real_env(), &child, LONG_MS));
    CHECK(WIFEXITED(child.outcome) && WEXITSTATUS(child.outcome) == 7 && !child.unknown);
    CHECK_STR("out\nend\n", hf_str_of(room, child.said));
    CHECK(!child.full);
    hf__child_close(real_env(), &child, 0);
    how.out = CHILD_NOTHING;
    how.err = CHILD_PIPE;
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(hf__child_wait(NULL, real_env(), &child, -1));
    CHECK_STR("err\n", hf_str_of(room, child.said));
    hf__child_close(real_env(), &child, 0);
    hf_scope_free(s);
}

TEST(child, input_and_variables)
{
    char *variables[] = {(char[]){"A=one"}, NULL};
    struct child_how how;
    struct child child;
    char room[100];
    int in = hf__child_file("two\n", 4);

    CHECK(in > STDERR_FILENO);
    how = printing(SHELL("read x; echo $A $x"), room, sizeof(room));
    how.variables = variables;
    how.in = in;
    CHECK_INT(0, hf__child_open(&how, &child));
    close(in);
    CHECK(hf__child_wait(NULL, real_env(), &child, LONG_MS));
    CHECK_STR("one two\n", hf_str_of(room, child.said));
    hf__child_close(real_env(), &child, 0);
}

TEST(child, a_program_that_is_not_there)
{
    char *words[] = {(char[]){"/nowhere/program"}, NULL};
    struct child_how how = printing(words, NULL, 0);
    struct child child;
    pid_t pid;

    CHECK_INT(ENOENT, hf__child_open(&how, &child));
    how.out = CHILD_NOTHING;
    CHECK_INT(ENOENT, hf__child_start(&how, &pid));
    words[0] = (char[]){"/"};
    CHECK_INT(EACCES, hf__child_open(&how, &child));
    how.in = 1000000; /* no such descriptor */
    words[0] = (char[]){"/bin/true"};
    CHECK_INT(EBADF, hf__child_open(&how, &child));
}

/* Does that process run? One that nobody has collected yet does not. */
static bool runs(const char *pid)
{
    char path[64], state[64] = "";
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%s/stat", pid);
    file = fopen(path, "r");
    if (!file)
        return false;
    (void)!fgets(state, sizeof(state), file);
    fclose(file);
    return strstr(state, ") Z") == NULL;
}

/* (1) (2): it and what it started. */
TEST(child, one_that_does_not_end_in_time_is_killed)
{
    struct child_how how;
    struct child child;
    char room[100];
    int64_t begin;

    how = printing(SHELL("trap '' TERM; sleep 100 & echo $!; wait; wait"), room, sizeof(room));
    CHECK_INT(0, hf__child_open(&how, &child));
    while (child.said == 0)
        CHECK(!hf__child_wait(NULL, real_env(), &child, 10));
    begin = hf__env_elapsed_us(real_env());
    hf__child_close(real_env(), &child, 100);
    CHECK(child.ended && WIFSIGNALED(child.outcome) && WTERMSIG(child.outcome) == SIGKILL);
    CHECK(hf__env_elapsed_us(real_env()) - begin >= 100000);
    room[child.said - 1] = '\0';
    for (int i = 0; i < 1000 && runs(room); i++)
        usleep(10000);
    CHECK(!runs(room));
}

/* SIGTERM is enough for one that listens to it. */
TEST(child, grace)
{
    struct child_how how;
    struct child child;
    char room[100];

    how = printing(SHELL("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep 0.01; done"),
                   room, sizeof(room));
    CHECK_INT(0, hf__child_open(&how, &child));
    while (child.said == 0)
        CHECK(!hf__child_wait(NULL, real_env(), &child, 10));
    hf__child_close(real_env(), &child, LONG_MS);
    CHECK(WIFEXITED(child.outcome) && WEXITSTATUS(child.outcome) == 3);
    CHECK_STR("up\nbye\n", hf_str_of(room, child.said));
}

TEST(child, a_scope_that_is_canceled_or_over)
{
    struct hf_scope *s = hf_scope_new(real_env());
    char *words[] = {(char[]){"sleep"}, (char[]){"100"}, NULL};
    struct child_how how = printing(words, NULL, 0);
    struct child child;

    CHECK_INT(0, hf__child_open(&how, &child));
    hf_scope_timeout_ms(s, 30);
    CHECK(!hf__child_wait(s, real_env(), &child, LONG_MS));
    CHECK_STATUS(HF_TIMEOUT, hf_scope_error(s)->status);
    hf_scope_reset(s);
    hf_scope_cancel(s);
    CHECK(!hf__child_wait(s, real_env(), &child, LONG_MS));
    CHECK_STATUS(HF_CANCELED, hf_scope_error(s)->status);
    hf__child_close(real_env(), &child, 0);
    CHECK(WIFSIGNALED(child.outcome));
    hf_scope_free(s);
}

/* (3) (4) */
TEST(child, one_that_prints_without_end)
{
    char *words[] = {(char[]){"yes"}, NULL};
    struct child_how how;
    struct child child;
    char room[100];

    how = printing(words, room, 4);
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(!hf__child_wait(NULL, real_env(), &child, 50)); /* for all the bytes there is an end */
    CHECK(child.full && !child.ended);
    CHECK_STR("y\ny\n", hf_str_of(room, child.said));
    hf__child_close(real_env(), &child, 0);
    how.full_ends = true;
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(!hf__child_wait(NULL, real_env(), &child, -1));
    CHECK(child.full);
    hf__child_close(real_env(), &child, 0);
}

/* Exactly as much as there is room for is not too much. */
TEST(child, a_room_that_is_just_large_enough)
{
    struct child_how how;
    struct child child;
    char room[4];

    how = printing(SHELL("printf 1234"), room, sizeof(room));
    how.full_ends = true;
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(hf__child_wait(NULL, real_env(), &child, LONG_MS));
    CHECK(!child.full);
    CHECK_STR("1234", hf_str_of(room, child.said));
    hf__child_close(real_env(), &child, 0);
    how.words = SHELL("printf 12345");
    CHECK_INT(0, hf__child_open(&how, &child));
    (void)hf__child_wait(NULL, real_env(), &child, LONG_MS);
    CHECK(child.full);
    hf__child_close(real_env(), &child, 0);
}

/* Something that it started holds the pipe: it has said what it had to all the same. */
TEST(child, the_pipe_outlives_it)
{
    struct child_how how;
    struct child child;
    char room[100];

    how = printing(SHELL("sleep 100 & echo $!"), room, sizeof(room));
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(hf__child_wait(NULL, real_env(), &child, LONG_MS));
    CHECK(child.said > 0);
    room[child.said - 1] = '\0';
    hf__child_close(real_env(), &child, 0);
    CHECK_INT(0, kill((pid_t)strtol(room, NULL, 10), SIGKILL));
}

/* No descriptor of ours is the child's, and none is left over. */
TEST(child, descriptors)
{
    int before = dup(0), after;
    size_t expected = 1, found = 0; /* ls has one more: the directory that it reads */
    struct child_how how;
    struct child child;
    char room[2000];

    close(before);
    for (int fd = 0; fd < 1024; fd++) /* whoever started the tests may have left some open */
        expected += fcntl(fd, F_GETFD) >= 0 && !(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    how = printing(SHELL("ls /proc/self/fd"), room, sizeof(room));
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(hf__child_wait(NULL, real_env(), &child, LONG_MS));
    for (size_t i = 0; i < child.said; i++)
        found += room[i] == '\n';
    CHECK_INT(expected, found);
    hf__child_close(real_env(), &child, 0);
    after = dup(0);
    CHECK_INT(before, after);
    close(after);
}

/* The program has the system collect its children. */
TEST(child, an_end_that_nobody_may_know)
{
    void (*usual)(int) = signal(SIGCHLD, SIG_IGN);
    struct child_how how;
    struct child child;
    char room[100];

    how = printing(SHELL("echo out; exit 7"), room, sizeof(room));
    CHECK_INT(0, hf__child_open(&how, &child));
    CHECK(hf__child_wait(NULL, real_env(), &child, LONG_MS));
    CHECK(child.unknown && child.outcome == 0);
    hf__child_close(real_env(), &child, 0);
    signal(SIGCHLD, usual);
}
