/* test/client/config_help.h: an environment made up, and files in a directory of the test. */
#ifndef HF_TEST_CLIENT_CONFIG_HELP_H
#define HF_TEST_CLIENT_CONFIG_HELP_H

#include "client/config.h"

#include <stdio.h>
#include <sys/stat.h>

#include "test.h"

enum { FAKE_MAX = 16, FAKE_LINES = 8 };

/* Tests run one after the other, and the env's `user` is the test's own. */
struct fake {
    struct {
        char name[64];
        char value[400];
    } variables[FAKE_MAX];
    size_t variables_len;
    char lines[FAKE_LINES][300]; /* what was logged */
    size_t lines_len;
    struct hf_env env;
    char home[200];
};

static struct fake fake;

static inline const char *fake_getenv(const char *name, void *user)
{
    (void)user;
    for (size_t i = fake.variables_len; i > 0; i--)
        if (strcmp(fake.variables[i - 1].name, name) == 0)
            return fake.variables[i - 1].value;
    return NULL;
}

static inline void fake_log(enum hf_log_level level, struct hf_str line, void *user)
{
    (void)user;
    CHECK_INT(HF_LOG_WARNING, level);
    CHECK(fake.lines_len < FAKE_LINES);
    snprintf(fake.lines[fake.lines_len++], sizeof(fake.lines[0]), "%.*s", HF_FMT(line));
}

/* Set a variable; the last of a name counts. */
static inline void fake_set(const char *name, const char *value)
{
    CHECK(fake.variables_len < FAKE_MAX);
    snprintf(fake.variables[fake.variables_len].name, sizeof(fake.variables[0].name), "%s", name);
    snprintf(fake.variables[fake.variables_len].value, sizeof(fake.variables[0].value), "%s",
             value);
    fake.variables_len++;
}

/* Forget all variables but HOME, and what was logged. */
static inline void fake_forget(void)
{
    fake.variables_len = fake.lines_len = 0;
    fake_set("HOME", fake.home);
}

/* A new home with an empty .aws in it. */
static inline const struct hf_env *fake_begin(struct test *t)
{
    char path[220];

    fake.env = *test_env(t);
    fake.env.getenv = fake_getenv;
    fake.env.log = fake_log;
    snprintf(fake.home, sizeof(fake.home), "%s", test_directory(t));
    snprintf(path, sizeof(path), "%s/.aws", fake.home);
    CHECK(mkdir(path, 0700) == 0);
    fake_forget();
    return &fake.env;
}

static inline const char *fake_path(const char *name)
{
    static char path[300];

    snprintf(path, sizeof(path), "%s/%s", fake.home, name);
    return path;
}

static inline void fake_bytes(const char *name, const char *bytes, size_t len)
{
    FILE *file = fopen(fake_path(name), "wb");

    CHECK(file != NULL);
    CHECK(fwrite(bytes, 1, len, file) == len);
    CHECK(fclose(file) == 0);
    CHECK(chmod(fake_path(name), 0600) == 0);
}

static inline void fake_file(const char *name, const char *text)
{
    fake_bytes(name, text, strlen(text));
}

#endif
