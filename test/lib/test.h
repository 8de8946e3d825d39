/*
 * test/lib/test.h: a thin layer over cmocka. A test registers itself, a failed check ends it and
 * says where, and memory that it took from test_env() and did not give back fails it.
 *
 *     TEST(number, one_and_one_is_two)
 *     {
 *         CHECK_INT(2, 1 + 1);
 *     }
 *
 * A program runs all of its tests, or those whose "group.name$" contains one of its arguments; an
 * argument that begins with "-" leaves out those that contain the rest of it.
 *
 * With HF_TEST_COSTS=1 each prints what it cost: seconds of processors and of the clock.
 *
 * Tests that need randomness take it from test_random(t): its seed is printed when the test fails
 * and HF_SEED=n repeats it.
 */
#ifndef HF_TEST_LIB_TEST_H
#define HF_TEST_LIB_TEST_H

#include <holdfast/base.h>
#include <holdfast/env.h>
#include <holdfast/scope.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

struct test {
    const char *group;
    const char *name;
    void (*run)(struct test *t);
    struct test *next;
    uint64_t seed;     /* for test_random() */
    size_t live_bytes; /* allocated through test_env() and not freed */
    size_t live_count;
    size_t allocs;     /* calls that asked for memory since the test began */
    int64_t fail_at;   /* the allocation that fails, from 1; 0: none; -n: all from the nth on */
    bool alloc_failed; /* fail_at made one fail, since ALLOC_SWEEP() last set it */
    int64_t sweep_at;  /* which allocation of the round ALLOC_SWEEP() lets fail; 0: no sweep */
    size_t sweep_live; /* live_count when the sweep began */
    int64_t wall_us;   /* the virtual clocks; both move by test_advance_ms() */
    int64_t elapsed_us;
    struct hf_env env;
};

#define TEST(group_, name_)                                                                        \
    static void test_##group_##_##name_(struct test *t);                                           \
    __attribute__((constructor)) static void add_##group_##_##name_(void)                          \
    {                                                                                              \
        static struct test test = {.group = #group_,                                               \
                                   .name = #name_,                                                 \
                                   .run = test_##group_##_##name_};                                \
        test_add(&test);                                                                           \
    }                                                                                              \
    static void test_##group_##_##name_(__attribute__((unused)) struct test *t)

void test_add(struct test *test);

/* An env with counted memory, virtual clocks (starting at 2026-01-01; a sleep moves them and
 * returns at once) and seeded randomness. */
const struct hf_env *test_env(struct test *t);
void test_advance_ms(struct test *t, int64_t ms);
uint64_t test_random(struct test *t);
uint64_t test_random_below(struct test *t, uint64_t bound);

/*
 * Fail the first allocation of the body, then the second, and so on, until a round goes through
 * without one to fail. Each round must leave as much memory as it found, or the sweep says which
 * allocation made it leak. ALLOC_SWEEP_STOP(t) ends the failing for the rest of a round, to look at
 * what came out and to clean up. Leave the body by its end only.
 *
 *     ALLOC_SWEEP(t, nth) {
 *         struct hf_scope *s = hf_scope_new(test_env(t));
 *         enum hf_status status = s ? thing(s) : HF_NOMEM;
 *
 *         ALLOC_SWEEP_STOP(t);
 *         CHECK(status == HF_OK || status == HF_NOMEM);
 *         CHECK((status == HF_NOMEM) == t->alloc_failed);
 *         hf_scope_free(s);
 *     }
 */
#define ALLOC_SWEEP(t_, nth)                                                                       \
    for (int64_t nth = test_sweep_first(t_); nth > 0; nth = test_sweep_next(t_))
#define ALLOC_SWEEP_STOP(t_) ((void)((t_)->fail_at = 0))

int64_t test_sweep_first(struct test *t);
int64_t test_sweep_next(struct test *t);

#define CHECK(condition) test_check(!!(condition), #condition, __FILE__, __LINE__)
#define CHECK_INT(expected, actual)                                                                \
    test_check_int((long long)(expected), (long long)(actual), #actual, __FILE__, __LINE__)
#define CHECK_STR(expected, actual)                                                                \
    test_check_str(hf_str_from(expected), (actual), #actual, __FILE__, __LINE__)
#define CHECK_STATUS(expected, call)                                                               \
    test_check_status((expected), (call), #call, __FILE__, __LINE__)
#define CHECK_OK(call) CHECK_STATUS(HF_OK, call)

/* The scope's last error has this status and exactly this message. */
#define CHECK_ERROR(expected_status, expected_message, scope)                                      \
    test_check_error((expected_status), (expected_message), (scope), __FILE__, __LINE__)

void test_check(bool holds, const char *what, const char *file, int line);
void test_check_int(long long expected, long long actual, const char *what, const char *file,
                    int line);
void test_check_str(struct hf_str expected, struct hf_str actual, const char *what,
                    const char *file, int line);
void test_check_status(enum hf_status expected, enum hf_status actual, const char *what,
                       const char *file, int line);
void test_check_error(enum hf_status status, const char *message, const struct hf_scope *s,
                      const char *file, int line);

/*
 * How many times a test that repeats something does it here, instead of `count` times: fewer where
 * a sanitizer makes each cost several times as much, HF_TEST_TIMES times as many where that is set.
 */
uint32_t test_times(uint32_t count);

/* The same for a test that tries one of `times` cases, by its seed: is this one tried? */
bool test_one_in(struct test *t, uint32_t times);

/*
 * A part of a test in a process of its own, which may be killed: this program, started again, as
 * the child of a program with threads would inherit locks that nobody gives back. Its orders are
 * arguments and not variables: setenv() moves the environment, under the hands of any other thread
 * that reads a variable meanwhile. What it writes to its standard output comes out at *out, without
 * `out` at our own, and it ends with what it returns.
 *
 *     CHILD(writer)
 *     {
 *         return write_for_ever(args[0]);
 *     }
 *
 *     pid_t pid = test_child("writer", (const char *[]){path, NULL}, &out);
 */
struct test_part {
    const char *name;
    int (*run)(char **args);
    struct test_part *next;
};

#define CHILD(name_)                                                                               \
    static int child_##name_(char **args);                                                         \
    __attribute__((constructor)) static void add_child_##name_(void)                               \
    {                                                                                              \
        static struct test_part child = {.name = #name_, .run = child_##name_};                    \
        test_add_child(&child);                                                                    \
    }                                                                                              \
    static int child_##name_(char **args)

void test_add_child(struct test_part *child);
pid_t test_child(const char *name, const char *const *args, int *out);

/* A new empty directory, removed with all in it after the test. */
const char *test_directory(struct test *t);

/* The same in memory, if the system has such a place: for what is not about the disk, and would
 * wait for it most of the time. */
const char *test_quick_directory(struct test *t);

#endif
