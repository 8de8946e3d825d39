/*
 * engine/help.h: what tests of the engine share: formatted calls, looking into answers, threads
 * that each have a scope of their own.
 */
#ifndef HF_TEST_ENGINE_HELP_H
#define HF_TEST_ENGINE_HELP_H

#include "world.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A table with the hash key pk, and a comma and more members of the request behind it. */
#define PK_TABLE(name, more)                                                                       \
    "{'TableName':'" name "','AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}]," \
    "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],'BillingMode':'PAY_PER_REQUEST'" more   \
    "}"

#define STREAM_OF(view) ",'StreamSpecification':{'StreamEnabled':true,'StreamViewType':'" view "'}"

/* As world_call(), with the request as a printf() format. */
__attribute__((unused, format(printf, 3, 4))) static struct hf_str
callf(struct world *w, const char *operation, const char *format, ...)
{
    va_list args;
    char *text;
    int len;

    va_start(args, format);
    len = vsnprintf(NULL, 0, format, args);
    va_end(args);
    text = hf_scope_alloc(w->scope, (size_t)len + 1);
    va_start(args, format);
    vsnprintf(text, (size_t)len + 1, format, args);
    va_end(args);
    return world_call(w, operation, text);
}

__attribute__((unused)) static bool is_error(struct hf_str answer)
{
    return answer.len > 9 && memcmp(answer.ptr, "{\"__type\"", 9) == 0;
}

/* What follows the next `mark` in *rest, which moves on; absent when there is none. */
__attribute__((unused)) static struct hf_str after(struct hf_str *rest, const char *mark)
{
    const char *at = rest->len ? memmem(rest->ptr, rest->len, mark, strlen(mark)) : NULL;

    if (!at)
        return hf_str_of(NULL, 0);
    at += strlen(mark);
    rest->len -= (size_t)(at - rest->ptr);
    rest->ptr = at;
    return *rest;
}

/* The next string member `name` of the JSON in *rest; absent when there is none. */
__attribute__((unused)) static struct hf_str next_text(struct hf_str *rest, const char *name)
{
    char mark[64];
    struct hf_str text;
    const char *end;

    snprintf(mark, sizeof(mark), "\"%s\":\"", name);
    text = after(rest, mark);
    end = text.ptr ? memchr(text.ptr, '"', text.len) : NULL;
    if (end)
        text.len = (size_t)(end - text.ptr);
    return text;
}

/* The number behind the next `mark` of the JSON in *rest; -1 when there is none. */
__attribute__((unused)) static long long next_number(struct hf_str *rest, const char *mark)
{
    struct hf_str text = after(rest, mark);

    return text.ptr ? strtoll(text.ptr, NULL, 10) : -1;
}

__attribute__((unused)) static struct hf_upkeep_report upkeep(struct world *w)
{
    struct hf_upkeep_report report;

    CHECK_OK(hf_engine_upkeep(w->scope, w->db, &report));
    return report;
}

/*
 * A process that ends without closing its database. It is this program once more, with the running
 * test as its argument and the database in its environment: a test that wants one begins with
 * crash_here(), which in that process does the work and ends it, and comes to crash_after() later.
 * (Only forking is not enough: RocksDB's threads would be missing.)
 */
static const char crash_variable[] = "HF_TEST_CRASH_URL";

typedef int work_fn(struct world *w); /* how many things went wrong */

__attribute__((unused)) static void crash_here(struct test *t, work_fn *work)
{
    const char *url = getenv(crash_variable);
    struct world w;

    if (!url)
        return;
    w = world_open(t, url);
    _exit(work(&w));
}

/* Close, let that process work until it ends, or is killed at that point ("name:1"; NULL: none),
 * and open again. False when it was not killed. */
__attribute__((unused)) static bool crash_at(struct world *w, const char *point)
{
    int status = -1;
    char name[256];
    pid_t pid;

    snprintf(name, sizeof(name), "%s.%s", w->t->group, w->t->name);
    hf_db_close(w->db);
    w->db = NULL;
    pid = fork();
    if (pid == 0) {
        setenv(crash_variable, w->url, 1);
        if (point)
            setenv("HF_KILL_AT", point, 1);
        if (freopen("/dev/null", "w", stdout))
            execl("/proc/self/exe", "test_engine", name, (char *)NULL);
        _exit(127);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
    CHECK((WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) ||
          (WIFEXITED(status) && WEXITSTATUS(status) == 0));
    world_reopen(w);
    return WIFSIGNALED(status);
}

/* The same for a process that ends by itself. */
__attribute__((unused)) static void crash_after(struct world *w)
{
    CHECK(!crash_at(w, NULL));
}

/* One of several threads on one database. A check that fails would end the wrong thread: what a
 * thread sees goes into `wrong`, and the test looks at it after joining. */
struct worker {
    struct world w; /* with a scope of its own */
    unsigned number;
    unsigned rounds;
    unsigned wrong;
    pthread_t thread;
    void *user;
};

enum { WORKERS_MAX = 8 };

__attribute__((unused)) static void workers_start(struct world *w, struct worker *workers,
                                                  unsigned count, unsigned rounds,
                                                  void *(*run)(void *), void *user)
{
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (struct worker){.w = *w, .number = i, .rounds = rounds, .user = user};
        workers[i].w.scope = hf_scope_new(test_env(w->t));
        CHECK_INT(0, pthread_create(&workers[i].thread, NULL, run, &workers[i]));
    }
}

/* Wait for all of them; how many things were wrong. */
__attribute__((unused)) static unsigned workers_join(struct worker *workers, unsigned count)
{
    unsigned wrong = 0;

    for (unsigned i = 0; i < count; i++) {
        pthread_join(workers[i].thread, NULL);
        hf_scope_free(workers[i].w.scope);
        wrong += workers[i].wrong;
    }
    return wrong;
}

#endif
