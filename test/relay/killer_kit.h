/*
 * relay/killer_kit.h: children that may end in the middle of their work.
 *
 * A child, CHILD() of test.h, gets a mode and the URL of a database. It does what it is told and ends
 * with 0, or is ended by a handler with KILLED.
 */
#ifndef HF_TEST_PATTERNS_KILLER_KIT_H
#define HF_TEST_PATTERNS_KILLER_KIT_H

#include <holdfast/engine.h>

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

/* Let that child do that, and wait for its end. True: it was killed by what it did. */
static inline bool killer_run(const char *child, const char *mode, struct hf_str url)
{
    pid_t pid = test_child(child, (const char *[]){mode, url.ptr, NULL}, NULL);
    int status;

    CHECK_INT(pid, waitpid(pid, &status, 0));
    CHECK(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == KILLED);
    return WEXITSTATUS(status) == KILLED;
}

#endif
