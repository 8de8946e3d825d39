/* cli/env_file_test.c: variables from files, and lines that cannot be. */
#include "cli/frame/options/env_file.h"
#include "test.h"

#include <stdlib.h>

/* The variables of this test: "SET" was there before. */
static struct {
    char name[32];
    char value[64];
} variables[1001];
static size_t variables_len;

static const char *get_variable(const char *name)
{
    for (size_t i = 0; i < variables_len; i++)
        if (strcmp(variables[i].name, name) == 0)
            return variables[i].value;
    return NULL;
}

static bool set_variable(const char *name, const char *value)
{
    CHECK(!get_variable(name) && variables_len < sizeof(variables) / sizeof(variables[0]));
    snprintf(variables[variables_len].name, sizeof(variables[0].name), "%s", name);
    snprintf(variables[variables_len].value, sizeof(variables[0].value), "%s", value);
    variables_len++;
    return true;
}

static const char *file_of(struct test *t, const char *name, const void *text, size_t len)
{
    static char path[512];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", test_directory(t), name);
    file = fopen(path, "w");
    CHECK(file && fwrite(text, 1, len, file) == len);
    fclose(file);
    return path;
}

/* Run it with these arguments: how many it took. The error, if any, is compared. */
static size_t take(struct test *t, const char *error, size_t len, const char *const *args)
{
    char *text = NULL;
    size_t text_len = 0, taken;
    struct cli cli = {.scope = hf_scope_new(test_env(t)),
                      .out = stdout,
                      .env = get_variable,
                      .set_env = set_variable};
    int ends = CLI_OK;
    bool ok;

    variables_len = 0;
    CHECK(set_variable("SET", "before"));
    cli.err = open_memstream(&text, &text_len);
    ok = hf__cli_env_files(&cli, len, args, &taken, &ends);
    fclose(cli.err);
    CHECK(ok == !*error);
    CHECK(ok || ends == CLI_USAGE);
    if (!strstr(text, error) || (ok && *text)) {
        printf("expected: %s\nfound: %s\n", error, text);
        CHECK(false);
    }
    CHECK(ok || variables_len == 1); /* (2) */
    free(text);
    hf_scope_free(cli.scope);
    return taken;
}

static void read_text(struct test *t, const char *text, const char *error)
{
    const char *args[] = {"--env-file", file_of(t, "env", text, strlen(text)), "kv", "ls"};

    CHECK_INT(*error ? 0 : 2, take(t, error, 4, args));
}

static void holds(const char *name, const char *value)
{
    const char *found = get_variable(name);

    CHECK_STR(value, hf_str_from(found ? found : "(not set)"));
}

TEST(env_file, values)
{
    read_text(t,
              "\xef\xbb\xbf# a comment\r\n"
              "\n"
              "  A = plain value  # comment\r\n"
              "B=\"in # quotes \" # comment\n"
              "C='$HOME and \\n stay'\n"
              "D=#not=a#comment\n"
              "E=  # nothing\n"
              "SET=after\n"
              "A=the last one counts",
              "");
    holds("A", "the last one counts");
    holds("B", "in # quotes ");
    holds("C", "$HOME and \\n stay");
    holds("D", "#not=a#comment");
    holds("E", "");
    holds("SET", "before");
    CHECK_INT(6, variables_len);
    read_text(t, "A = plain value  # comment\r\n", "");
    holds("A", "plain value");
    read_text(t, "", "");
    CHECK_INT(1, variables_len);
}

TEST(env_file, lines_that_cannot_be)
{
    const char nul[] = "A=1\nB=x\0y\n";

    read_text(t, "A=1\n\n# x\nB\n", "env, line 4: missing '='");
    read_text(t, "A=1\nexport B=2\n", "env, line 2: invalid name: use letters, digits and '_'");
    read_text(t, "2B=2\n", "env, line 1: invalid name: use letters");
    read_text(t, "=2\n", "env, line 1: invalid name: use letters");
    read_text(t, "A=1\nB=\"x\n\"\n", "env, line 2: missing closing quote");
    read_text(t, "B='x\" # '\nC='", "env, line 2: missing closing quote");
    read_text(t, "B=\"x\"y\n", "env, line 1: unexpected text after the closing quote");
    read_text(t, "B=\"x\"#y\n", "env, line 1: unexpected text after the closing quote");
    CHECK_INT(0, take(t, "env, line 2: the line contains a NUL byte", 2,
                      (const char *[]){"--env-file", file_of(t, "env", nul, sizeof(nul) - 1)}));
}

TEST(env_file, options)
{
    const char *args[] = {NULL, "--env-file", NULL, "kv", "--env-file", "x"};
    char first[512], second[512];

    snprintf(second, sizeof(second), "%s", file_of(t, "second", "B=2\n", 4));
    snprintf(first, sizeof(first), "--env-file=%s", file_of(t, "first", "A=1\nB=1\n", 8));
    args[0] = first;
    args[2] = second;
    CHECK_INT(3, take(t, "", 6, args));
    holds("A", "1");
    holds("B", "2");
    CHECK_INT(0, take(t, "", 0, args));
    CHECK_INT(0, take(t, "", 3, args + 3));
    CHECK_INT(0, take(t, "", 1, (const char *[]){"--env-files"}));
    CHECK_INT(0, take(t, "option '--env-file' needs a file", 1, args + 1));
    CHECK_INT(0, take(t, "--env-file: /no/such: No such file or directory", 2,
                      (const char *[]){"--env-file", "/no/such"}));
}

/* A file of 64 KiB and one of a byte more; a thousand variables and one more. */
TEST(env_file, limits)
{
    size_t len = 0;
    char *text = malloc(ENV_FILE_MAX + 1);

    memset(text, '#', ENV_FILE_MAX + 1);
    CHECK_INT(2, take(t, "", 2,
                      (const char *[]){"--env-file", file_of(t, "env", text, ENV_FILE_MAX)}));
    CHECK_INT(0, take(t, "larger than 65536 bytes", 2,
                      (const char *[]){"--env-file", file_of(t, "env", text, ENV_FILE_MAX + 1)}));
    for (int i = 0; i < 1000; i++)
        len += (size_t)sprintf(text + len, "V%d=\n", i);
    CHECK_INT(2, take(t, "", 2, (const char *[]){"--env-file", file_of(t, "env", text, len)}));
    CHECK_INT(1001, variables_len);
    len += (size_t)sprintf(text + len, "V1000=\n");
    CHECK_INT(0, take(t, "line 1001: too many variables: at most 1000", 2,
                      (const char *[]){"--env-file", file_of(t, "env", text, len)}));
    free(text);
}
