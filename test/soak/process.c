/*
 * test/soak/process.c: the server as a process.
 *
 * Its log goes to a file. At the end, and after each life, a line of the log that is worse than
 * information is a failure: a restart after a crash is nothing to warn about.
 */
#include "soak.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { LINE_ROOM = 1000, START_S = 60 };

void process_prepare(struct process *p, const char *program)
{
    const char *tmp = getenv("TMPDIR");

    *p = (struct process){.program = program, .out = -1};
    snprintf(p->dir, sizeof(p->dir), "%s/holdfast-soak-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(p->dir))
        FAIL("%s: %s", p->dir, strerror(errno));
}

static void read_port(struct process *p)
{
    char line[LINE_ROOM];
    size_t len = 0;
    const char *colon;

    while (len < sizeof(line) - 1) {
        ssize_t n = read(p->out, line + len, 1);

        if (n <= 0)
            FAIL("the server did not start; see %s/log", p->dir);
        if (line[len] == '\n')
            break;
        len++;
    }
    line[len] = '\0';
    colon = strrchr(line, ':');
    p->port = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;
    if (p->port == 0)
        FAIL("no port in '%s'", line);
}

void process_start(struct process *p)
{
    char data[PATH_ROOM + 8], log[PATH_ROOM + 8];
    /* Little memory for the newest writes, so that it is full, and flushed, every few seconds. */
    const char *args[] = {p->program,        "serve", "--port",     "0",    "--db-path", data,
                          "--sync",          "full",  "--memtable", "4MiB", "--cache",   "4MiB",
                          "--drain-timeout", "20s",   NULL};
    char *argv[sizeof(args) / sizeof(args[0])]; /* the same, as posix_spawn() wants to be told */
    posix_spawn_file_actions_t actions;
    int ends[2], error;

    memcpy(argv, args, sizeof(args));
    snprintf(data, sizeof(data), "%s/data", p->dir);
    snprintf(log, sizeof(log), "%s/log", p->dir);
    if (pipe2(ends, O_CLOEXEC))
        FAIL("pipe2: %s", strerror(errno));
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addopen(&actions, 2, log, O_WRONLY | O_CREAT | O_APPEND, 0644);
    error = posix_spawn(&p->pid, p->program, &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (error)
        FAIL("%s: %s", p->program, strerror(error));
    close(ends[1]);
    p->out = ends[0];
    read_port(p);
}

void process_signal(const struct process *p, int number)
{
    if (kill(p->pid, number))
        FAIL("kill: %s", strerror(errno));
}

static void check_log(const struct process *p)
{
    char path[PATH_ROOM + 8], line[LINE_ROOM];
    FILE *file;

    snprintf(path, sizeof(path), "%s/log", p->dir);
    file = fopen(path, "re");
    if (!file)
        FAIL("%s: %s", path, strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        if (!strstr(line, " info ") && !strstr(line, " debug "))
            FAIL("the server complained: %s", line);
    }
    fclose(file);
}

bool process_ended(struct process *p, int *status)
{
    pid_t ended = waitpid(p->pid, status, WNOHANG);

    if (ended < 0)
        FAIL("waitpid: %s", strerror(errno));
    if (ended == 0)
        return false;
    close(p->out);
    p->out = -1;
    p->pid = 0;
    check_log(p);
    return true;
}

static double anonymous_mb(pid_t pid)
{
    char path[64], line[LINE_ROOM];
    unsigned long long kb = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    file = fopen(path, "re");
    if (!file)
        FAIL("%s: %s", path, strerror(errno));
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "Anonymous: %llu kB", &kb) == 1)
            break;
    }
    fclose(file);
    return (double)kb / 1024;
}

struct usage process_usage(const struct process *p)
{
    struct usage usage = {.resident_mb = anonymous_mb(p->pid)};
    char path[64];
    DIR *dir;

    snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->pid);
    dir = opendir(path);
    if (!dir)
        FAIL("%s: %s", path, strerror(errno));
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char target[64];
        ssize_t len = readlinkat(dirfd(dir), entry->d_name, target, sizeof(target));

        if (len >= 7 && memcmp(target, "socket:", 7) == 0)
            usage.sockets++;
        else if (len > 0)
            usage.files++;
    }
    closedir(dir);
    return usage;
}

static int remove_one(const char *path, const struct stat *info, int flag, struct FTW *walk)
{
    (void)info;
    (void)flag;
    (void)walk;
    return remove(path);
}

void process_remove(struct process *p)
{
    nftw(p->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}
