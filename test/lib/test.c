/*
 * test/lib/test.c: the list of tests, the runner, the env with counted memory and virtual clocks.
 */
#include "test.h"

#include <fcntl.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    TESTS_MAX = 4096,
    CHILD_ARGS_MAX = 8,
    CHILD_ARG_BYTES = 256,
    DIRECTORIES_MAX = 256,
    SWEEP_MAX = 1000000
};

static struct test *first_test;
static struct test **last_test = &first_test;
static struct test_part *first_child;
static struct test *running;
static uint64_t run_seed;
static char directories[DIRECTORIES_MAX][64];
static bool removed_at_exit;
static int directories_len;

/* Threads of the engine allocate too; one lock for all tests is enough. */
static pthread_mutex_t memory_lock = PTHREAD_MUTEX_INITIALIZER;

void test_add(struct test *test)
{
    *last_test = test;
    last_test = &test->next;
}

static void *counted_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    struct test *t = user;
    void *moved = NULL;
    bool fail = false;

    pthread_mutex_lock(&memory_lock);
    if (new_size) {
        int64_t nth = (int64_t)++t->allocs;

        fail = t->fail_at > 0 ? nth == t->fail_at : t->fail_at < 0 && nth >= -t->fail_at;
        t->alloc_failed = t->alloc_failed || fail;
    }
    if (!fail) {
        t->live_bytes -= ptr ? old_size : 0;
        t->live_count -= ptr ? 1 : 0;
    }
    pthread_mutex_unlock(&memory_lock);
    if (fail)
        return NULL;
    if (new_size)
        moved = realloc(ptr, new_size);
    else
        free(ptr);
    pthread_mutex_lock(&memory_lock);
    t->live_bytes += new_size;
    t->live_count += new_size ? 1 : 0;
    pthread_mutex_unlock(&memory_lock);
    return moved;
}

static int64_t virtual_wall(void *user)
{
    return __atomic_load_n(&((struct test *)user)->wall_us, __ATOMIC_RELAXED);
}

static int64_t virtual_elapsed(void *user)
{
    return __atomic_load_n(&((struct test *)user)->elapsed_us, __ATOMIC_RELAXED);
}

/* Nobody waits in a test: to sleep is to move the clocks. */
static void virtual_sleep(int64_t us, void *user)
{
    __atomic_add_fetch(&((struct test *)user)->wall_us, us, __ATOMIC_RELAXED);
    __atomic_add_fetch(&((struct test *)user)->elapsed_us, us, __ATOMIC_RELAXED);
}

/* splitmix64: small, and every seed gives a good sequence. */
uint64_t test_random(struct test *t)
{
    uint64_t z = __atomic_add_fetch(&t->seed, 0x9E3779B97F4A7C15u, __ATOMIC_RELAXED);

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

uint64_t test_random_below(struct test *t, uint64_t bound)
{
    return test_random(t) % bound;
}

static void seeded_random(void *bytes, size_t len, void *user)
{
    uint8_t *to = bytes;

    for (size_t i = 0; i < len; i++)
        to[i] = (uint8_t)test_random(user);
}

static void print_log(enum hf_log_level level, struct hf_str line, void *user)
{
    (void)user;
    if (level <= HF_LOG_ERROR && getenv("HF_TEST_LOG"))
        fprintf(stderr, "log %d: %.*s\n", (int)level, HF_FMT(line));
}

const struct hf_env *test_env(struct test *t)
{
    if (t->env.size == 0) {
        t->wall_us = 1767225600000000; /* 2026-01-01T00:00:00Z */
        t->elapsed_us = 1000000;
        t->env = (struct hf_env){.size = sizeof(t->env),
                                 .user = t,
                                 .alloc = counted_alloc,
                                 .wall_us = virtual_wall,
                                 .elapsed_us = virtual_elapsed,
                                 .random = seeded_random,
                                 .log = print_log,
                                 .sleep = virtual_sleep};
    }
    return &t->env;
}

void test_advance_ms(struct test *t, int64_t ms)
{
    __atomic_add_fetch(&t->wall_us, ms * 1000, __ATOMIC_RELAXED);
    __atomic_add_fetch(&t->elapsed_us, ms * 1000, __ATOMIC_RELAXED);
}

/* ---- crashes -------------------------------------------------------------------------------- */

/*
 * cmocka handles these signals while a test runs, and of a thread other than the main one it says
 * nothing: the program ends with 255 and no word. So a test gives the handlers back to those who had
 * them, a sanitizer or the system.
 */
static const int crashes[] = {SIGFPE, SIGILL, SIGSEGV, SIGBUS, SIGSYS};
enum { CRASHES_LEN = sizeof(crashes) / sizeof(crashes[0]) };
static struct sigaction crash_actions[CRASHES_LEN];
static pthread_t main_thread;

static void note_crash_actions(void)
{
    main_thread = pthread_self();
    for (size_t i = 0; i < CRASHES_LEN; i++)
        sigaction(crashes[i], NULL, &crash_actions[i]);
}

static void restore_crash_actions(void)
{
    for (size_t i = 0; i < CRASHES_LEN; i++)
        sigaction(crashes[i], &crash_actions[i], NULL);
}

/* ---- checks --------------------------------------------------------------------------------- */

/* cmocka keeps what is said for the end of the test, which another thread does not come to. */
__attribute__((format(printf, 1, 2))) static void report(const char *format, ...)
{
    char text[4096];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (pthread_equal(pthread_self(), main_thread))
        print_error("%s", text);
    else
        fputs(text, stderr);
}

/* End the test, which is the one that runs, at this place; in another thread, the program. */
static void failed_at(const char *file, int line)
{
    if (running && running->sweep_at)
        report("while allocation %lld of the round fails\n", (long long)running->sweep_at);
    if (!pthread_equal(pthread_self(), main_thread)) {
        fprintf(stderr, "%s:%d: failed in a thread of the test\n", file, line);
        abort();
    }
    _fail(file, line);
}

void test_check(bool holds, const char *what, const char *file, int line)
{
    if (holds)
        return;
    report("%s: does not hold\n", what);
    failed_at(file, line);
}

void test_check_int(long long expected, long long actual, const char *what, const char *file,
                    int line)
{
    if (expected == actual)
        return;
    report("%s: expected %lld, got %lld\n", what, expected, actual);
    failed_at(file, line);
}

void test_check_str(struct hf_str expected, struct hf_str actual, const char *what,
                    const char *file, int line)
{
    if (hf_str_equal(expected, actual) && !expected.ptr == !actual.ptr)
        return;
    report("%s:\n  expected  %.*s\n  got       %.*s%s\n", what, HF_FMT(expected), HF_FMT(actual),
           actual.ptr ? "" : "(absent)");
    failed_at(file, line);
}

void test_check_status(enum hf_status expected, enum hf_status actual, const char *what,
                       const char *file, int line)
{
    if (expected == actual)
        return;
    report("%s: expected %s, got %s\n", what, hf_status_name(expected), hf_status_name(actual));
    failed_at(file, line);
}

void test_check_error(enum hf_status status, const char *message, const struct hf_scope *s,
                      const char *file, int line)
{
    test_check_status(status, hf_scope_error(s)->status, "status", file, line);
    test_check_str(hf_str_from(message), hf_scope_error(s)->message, "message", file, line);
}

/* ---- sweeps --------------------------------------------------------------------------------- */

int64_t test_sweep_first(struct test *t)
{
    if (t->sweep_at)
        fail_msg("a sweep inside a sweep, or one that was left by break");
    test_env(t);
    t->sweep_live = t->live_count;
    t->sweep_at = 1;
    t->alloc_failed = false;
    t->fail_at = (int64_t)t->allocs + 1;
    return t->sweep_at;
}

int64_t test_sweep_next(struct test *t)
{
    bool more = t->alloc_failed;

    t->fail_at = 0;
    if (t->live_count != t->sweep_live)
        fail_msg("%lld more allocations live after the round in which allocation %lld failed",
                 (long long)t->live_count - (long long)t->sweep_live, (long long)t->sweep_at);
    if (t->sweep_at == SWEEP_MAX)
        fail_msg("a sweep that does not end: allocation %d failed too", SWEEP_MAX);
    t->sweep_at = more ? t->sweep_at + 1 : 0;
    t->alloc_failed = false;
    if (more)
        t->fail_at = (int64_t)t->allocs + t->sweep_at;
    return t->sweep_at;
}

/* ---- directories ---------------------------------------------------------------------------- */

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *where)
{
    (void)info;
    (void)kind;
    (void)where;
    return remove(path);
}

static void remove_directories(void)
{
    for (int i = 0; i < directories_len; i++)
        nftw(directories[i], remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    directories_len = 0;
}

#if defined(__SANITIZE_ADDRESS__)
#define SHARE 4
#elif defined(__SANITIZE_THREAD__)
#define SHARE 10
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SHARE 4
#elif __has_feature(thread_sanitizer)
#define SHARE 10
#endif
#endif
#ifndef SHARE
#define SHARE 1
#endif

uint32_t test_times(uint32_t count)
{
    const char *times = getenv("HF_TEST_TIMES");

    if (times)
        return count * (uint32_t)strtoul(times, NULL, 10);
    return (count + SHARE - 1) / SHARE;
}

bool test_one_in(struct test *t, uint32_t times)
{
    const uint32_t whole = 1000;

    return test_random_below(t, (uint64_t)times * whole) < test_times(whole);
}

static const char *directory_in(const char *parent)
{
    char *path;

    if (directories_len == DIRECTORIES_MAX)
        fail_msg("more than %d directories", DIRECTORIES_MAX);
    if (!removed_at_exit)
        atexit(remove_directories);
    removed_at_exit = true;
    path = directories[directories_len++];
    snprintf(path, sizeof(directories[0]), "%s/holdfast-test-XXXXXX", parent);
    if (!mkdtemp(path))
        fail_msg("cannot make %s", path);
    return path;
}

const char *test_directory(struct test *t)
{
    (void)t;
    return directory_in("/tmp");
}

const char *test_quick_directory(struct test *t)
{
    (void)t;
    return directory_in(access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
}

/* ---- children ------------------------------------------------------------------------------- */

/* The first argument of a child; its name and its own come after it. */
#define CHILD_MARK "--child"

void test_add_child(struct test_part *child)
{
    child->next = first_child;
    first_child = child;
}

pid_t test_child(const char *name, const char *const *args, int *out)
{
    char exe[] = "/proc/self/exe", mark[] = CHILD_MARK, texts[CHILD_ARGS_MAX][CHILD_ARG_BYTES];
    char *all[CHILD_ARGS_MAX + 3] = {exe, mark};
    posix_spawn_file_actions_t actions;
    int ends[2];
    pid_t pid;

    for (size_t i = 0; i == 0 || args[i - 1]; i++) {
        const char *text = i == 0 ? name : args[i - 1];

        CHECK(i < CHILD_ARGS_MAX && strlen(text) < CHILD_ARG_BYTES);
        all[i + 2] = strcpy(texts[i], text);
    }
    posix_spawn_file_actions_init(&actions);
    if (out) {
        CHECK(pipe2(ends, O_CLOEXEC) == 0);
        posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    }
    CHECK_INT(0, posix_spawn(&pid, exe, &actions, NULL, all, environ));
    posix_spawn_file_actions_destroy(&actions);
    if (out) {
        close(ends[1]);
        *out = ends[0];
    }
    return pid;
}

static int run_child(const char *name, char **args)
{
    for (struct test_part *child = first_child; child; child = child->next)
        if (strcmp(child->name, name) == 0)
            return child->run(args);
    fprintf(stderr, "no child has the name %s\n", name);
    return 1;
}

/* ---- running -------------------------------------------------------------------------------- */

/* FNV-1a. Tests that meet at one server must not come with the same ids. */
static uint64_t hash_of(const char *text)
{
    uint64_t hash = 0xCBF29CE484222325u;

    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x100000001B3u;
    return hash;
}

static double processor_s(int who)
{
    struct rusage used;

    getrusage(who, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* What a test costs: seconds of processors, with those of its children, and of the clock. */
static void print_cost(const struct test *t, double processor, const struct timespec *begin)
{
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    fprintf(stderr, "cost %8.3f %8.3f %s.%s\n",
            processor_s(RUSAGE_SELF) + processor_s(RUSAGE_CHILDREN) - processor,
            (double)(end.tv_sec - begin->tv_sec) + (double)(end.tv_nsec - begin->tv_nsec) / 1e9,
            t->group, t->name);
}

static void run_one(void **state)
{
    struct test *t = *state;
    double processor = processor_s(RUSAGE_SELF) + processor_s(RUSAGE_CHILDREN);
    struct timespec begin;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    restore_crash_actions();
    running = t;
    t->seed = run_seed ^ hash_of(t->group) ^ hash_of(t->name);
    t->run(t);
    if (getenv("HF_TEST_COSTS"))
        print_cost(t, processor, &begin);
    remove_directories(); /* of a test that fails, at exit: something may be open there */
    if (t->sweep_at)
        fail_msg("a sweep was left before its end");
    if (t->live_bytes || t->live_count)
        fail_msg("%zu allocations of %zu bytes were not freed", t->live_count, t->live_bytes);
}

static bool wanted(const struct test *test, int argc, char **argv)
{
    char full[256];

    bool named = false, asked = false;

    snprintf(full, sizeof(full), "%s.%s$", test->group, test->name);
    for (int i = 1; i < argc; i++) {
        if (argv[i][0] == '-' && strstr(full, argv[i] + 1))
            return false;
        asked = asked || argv[i][0] != '-';
        named = named || (argv[i][0] != '-' && strstr(full, argv[i]));
    }
    return named || !asked;
}

int main(int argc, char **argv)
{
    static struct CMUnitTest tests[TESTS_MAX];
    static char names[TESTS_MAX][128];
    const char *seed = getenv("HF_SEED");
    size_t count = 0;
    int failed;

    if (argc >= 3 && strcmp(argv[1], CHILD_MARK) == 0)
        _exit(run_child(argv[2], argv + 3));
    note_crash_actions();
    run_seed = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32;
    for (struct test *test = first_test; test; test = test->next) {
        if (!wanted(test, argc, argv))
            continue;
        if (count == TESTS_MAX) {
            fprintf(stderr, "more than %d tests\n", TESTS_MAX);
            return 1;
        }
        snprintf(names[count], sizeof(names[count]), "%s.%s", test->group, test->name);
        tests[count] =
            (struct CMUnitTest){.name = names[count], .test_func = run_one, .initial_state = test};
        count++;
    }
    if (count == 0) {
        fprintf(stderr, "no test has such a name\n");
        return 1;
    }
    failed = _cmocka_run_group_tests(argv[0], tests, count, NULL, NULL);
    if (failed)
        fprintf(stderr, "repeat with HF_SEED=%llu\n", (unsigned long long)run_seed);
    return failed ? 1 : 0;
}
