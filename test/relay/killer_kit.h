/*
 * relay/killer_kit.h: children that may end in the middle of their work.
 *
 * A child is this program again, with its orders in the environment: before main() it does what it
 * is told and ends with 0, or is ended by a handler with KILLED.
 */
#ifndef HF_TEST_PATTERNS_KILLER_KIT_H
#define HF_TEST_PATTERNS_KILLER_KIT_H

#include <holdfast/engine.h>

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "test.h"

enum { KILLED = 9, KILLER_LEASE_MS = 150 };

static inline void killer_sleep_ms(uint32_t ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

static inline struct hf_db *killer_db(struct hf_scope *s, const char *url)
{
    struct hf_db *db;

    if (hf_open(s, hf_str_from(url), HF_OPTIONS(hf_engine_options, .sync = HF_SYNC_NONE), &db) ==
        HF_OK)
        return db;
    fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
    _exit(2);
}

/* Let a child do that, and wait for its end. True: it was killed by what it did. */
static inline bool killer_run(const char *variable, const char *mode, struct hf_str url)
{
    extern char **environ;
    char program[] = "/proc/self/exe", name[] = "child";
    char *argv[] = {name, NULL};
    int status;
    pid_t pid;

    CHECK_INT(0, setenv(variable, mode, 1));
    CHECK_INT(0, setenv("HF_KILLER_URL", url.ptr, 1));
    CHECK_INT(0, posix_spawn(&pid, program, NULL, NULL, argv, environ));
    CHECK_INT(0, unsetenv(variable));
    CHECK_INT(pid, waitpid(pid, &status, 0));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
    return WEXITSTATUS(status) == KILLED;
}

#endif
