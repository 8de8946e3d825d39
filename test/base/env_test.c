/* base/env_test.c: what a partial env is filled with, and the calls through it. */
#include "base/base.h"

#include "test.h"

TEST(env, none_is_the_system)
{
    struct hf_env env = hf__env_fill(NULL);
    uint8_t a[32] = {0}, b[32] = {0};
    int64_t before = hf__env_elapsed_us(&env);
    char *ptr = hf__env_alloc(&env, 10);

    CHECK(ptr);
    memset(ptr, 'x', 10);
    ptr = hf__env_resize(&env, ptr, 10, 100000);
    CHECK(ptr && ptr[9] == 'x');
    hf__env_free(&env, ptr, 100000);
    hf__env_free(&env, NULL, 0);

    CHECK(hf__env_elapsed_us(&env) >= before);
    CHECK(hf__env_wall_us(&env) > 1700000000000000); /* November 2023: this was written later */
    hf__env_random(&env, a, sizeof(a));
    hf__env_random(&env, b, sizeof(b));
    CHECK(memcmp(a, b, sizeof(a)) != 0);
    hf__env_log(&env, HF_LOG_ERROR, "goes %s", "nowhere");
}

static int64_t seven(void *user)
{
    return 7 + (user ? *(int *)user : 0);
}

TEST(env, what_is_given_is_kept_and_the_rest_filled_in)
{
    int more = 3;
    struct hf_env given = {.size = sizeof(given), .user = &more, .wall_us = seven};
    struct hf_env env = hf__env_fill(&given);

    CHECK_INT(10, hf__env_wall_us(&env));
    CHECK(env.alloc && env.elapsed_us && env.random && !env.log);
}

/* A program built when the struct ended earlier: what lies behind its end is not read. */
TEST(env, an_older_and_shorter_env_is_accepted)
{
    struct hf_env given = {.wall_us = seven, .elapsed_us = seven};
    struct hf_env env;

    given.size = offsetof(struct hf_env, elapsed_us);
    env = hf__env_fill(&given);
    CHECK_INT(7, hf__env_wall_us(&env));
    CHECK(env.elapsed_us != seven);
    CHECK_INT(sizeof(env), env.size);
}

TEST(env, nothing_asked_for_is_still_something_to_free)
{
    const struct hf_env *env = test_env(t);
    void *ptr = hf__env_alloc(env, 0);

    CHECK(ptr);
    CHECK_INT(1, t->live_count);
    hf__env_free(env, ptr, 0);
    CHECK_INT(0, t->live_bytes);
}

struct lines {
    int count;
    enum hf_log_level level;
    char last[2048];
    size_t last_len;
};

static void keep_line(enum hf_log_level level, struct hf_str line, void *user)
{
    struct lines *lines = user;

    lines->count++;
    lines->level = level;
    lines->last_len = line.len;
    memcpy(lines->last, line.ptr, line.len);
}

TEST(env, log_lines_are_formatted_and_cut)
{
    struct lines lines = {0};
    struct hf_env env = hf__env_fill(&(struct hf_env){.user = &lines, .log = keep_line});

    hf__env_log(&env, HF_LOG_WARNING, "%s %d", "line", 1);
    CHECK_INT(1, lines.count);
    CHECK_INT(HF_LOG_WARNING, lines.level);
    CHECK_STR("line 1", hf_str_of(lines.last, lines.last_len));
    hf__env_log(&env, HF_LOG_INFO, "%02000d", 7);
    CHECK_INT(1023, lines.last_len);
    CHECK_INT('0', lines.last[1022]);
    /* Names and messages come from anywhere: they do not make lines of their own, nor move about on
     * a terminal. */
    hf__env_log(&env, HF_LOG_INFO, "%s", "table=a\nstatus=HF_OK\r\x1b[2J\x7f \xc3\xbc");
    CHECK_STR("table=a?status=HF_OK??[2J? \xc3\xbc", hf_str_of(lines.last, lines.last_len));
}
