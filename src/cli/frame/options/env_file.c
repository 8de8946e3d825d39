/*
 * cli/frame/options/env_file.c: variables from files, such as `.env`.
 *
 * A line is NAME=VALUE, as `docker run --env-file` and Compose have them, or blank, or a comment:
 *
 *     # where the data is
 *     HOLDFAST_DB=http://127.0.0.1:8000
 *     HOLDFAST_OWNER="build host"  # for people
 *
 * Blanks around the name and the value do not count. A value in quotes, single or double, is what
 * is between them. One without ends before a '#' that has a blank in front. Nothing is expanded: a
 * '$' and a backslash are themselves.
 *
 *  (1) A variable that is set stays as it is. Of lines with the same name the last one counts, and
 *      so does the last of several files.
 *  (2) Nothing is set before all files were read: one bad line, and the command does not run.
 */
#include "cli/frame/options/env_file.h"

#include "cli/frame/process/input.h"

#include <string.h>

#define OPTION "--env-file"
#define BOM "\xef\xbb\xbf" /* which some editors put in front */

enum { VARIABLES_MAX = 1000 };

struct variable {
    const char *name;
    const char *value;
};

struct variables {
    struct cli *cli;
    const char *path; /* what is being read */
    size_t line;
    struct variable *all;
    size_t len;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

static bool is_name(struct hf_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';

        if (!letter && (i == 0 || c < '0' || c > '9'))
            return false;
    }
    return name.len > 0;
}

static bool bad_line(struct variables *v, const char *why)
{
    (void)hf__cli_fail(v->cli, "", CLI_USAGE, "%s, line %zu: %s", v->path, v->line, why);
    return false;
}

/* The value as it is meant; what follows it can only be a comment. */
static bool read_value(struct variables *v, struct hf_str text, struct hf_str *value)
{
    const char *end;
    struct hf_str rest;

    *value = hf__input_trim(text);
    for (size_t i = 1; i < text.len; i++)
        if (text.ptr[i] == '#' && is_blank(text.ptr[i - 1])) {
            *value = hf__input_trim(hf_str_of(text.ptr, i));
            break;
        }
    text = hf__input_trim(text);
    if (text.len && (text.ptr[0] == '"' || text.ptr[0] == '\'')) {
        end = memchr(text.ptr + 1, text.ptr[0], text.len - 1);
        if (!end)
            return bad_line(v, "missing closing quote");
        *value = hf_str_of(text.ptr + 1, (size_t)(end - text.ptr) - 1);
        rest = hf__input_trim(hf_str_of(end + 1, text.len - (size_t)(end + 1 - text.ptr)));
        if (rest.len && (rest.ptr[0] != '#' || rest.ptr == end + 1))
            return bad_line(v, "unexpected text after the closing quote");
        return true;
    }
    return true;
}

/* (1) */
static bool variable_add(struct variables *v, struct hf_str name, struct hf_str value)
{
    struct variable kept = {hf_scope_copy(v->cli->scope, name).ptr,
                            hf_scope_copy(v->cli->scope, value).ptr};
    size_t i = 0;

    if (!kept.name || !kept.value)
        return bad_line(v, "out of memory");
    while (i < v->len && strcmp(v->all[i].name, kept.name) != 0)
        i++;
    if (i == VARIABLES_MAX)
        return bad_line(v, "too many variables: at most 1000");
    v->all[i] = kept;
    v->len += i == v->len;
    return true;
}

static bool read_line(struct variables *v, struct hf_str line)
{
    const char *equals;
    struct hf_str name, value;

    line = hf__input_trim(line);
    if (!line.len || line.ptr[0] == '#')
        return true;
    if (memchr(line.ptr, '\0', line.len))
        return bad_line(v, "the line contains a NUL byte");
    equals = memchr(line.ptr, '=', line.len);
    if (!equals)
        return bad_line(v, "missing '='; write NAME=VALUE");
    name = hf__input_trim(hf_str_of(line.ptr, (size_t)(equals - line.ptr)));
    if (!is_name(name))
        return bad_line(v,
                        "invalid name: use letters, digits and '_', and do not start with a digit");
    value = hf_str_of(equals + 1, line.len - (size_t)(equals + 1 - line.ptr));
    return read_value(v, value, &value) && variable_add(v, name, value);
}

static bool read_file(struct variables *v, const char *path)
{
    struct hf_str error = {0};
    struct hf_str text = hf__input_read(v->cli->scope, path, ENV_FILE_MAX, &error), line;

    if (!text.ptr) {
        (void)hf__cli_fail(v->cli, "", CLI_USAGE, OPTION ": %.*s", HF_FMT(error));
        return false;
    }
    if (text.len >= strlen(BOM) && memcmp(text.ptr, BOM, strlen(BOM)) == 0)
        text = hf_str_of(text.ptr + strlen(BOM), text.len - strlen(BOM));
    v->path = path;
    for (v->line = 1; hf__input_line(&text, &line); v->line++)
        if (!read_line(v, line))
            return false;
    return true;
}

/* The file of such an option at args[0], and how many arguments it is; NULL: there is none. */
static const char *option_file(size_t args_len, const char *const *args, size_t *words)
{
    size_t len = strlen(OPTION);

    *words = 1;
    if (strncmp(args[0], OPTION "=", len + 1) == 0)
        return args[0] + len + 1;
    *words = 2;
    return strcmp(args[0], OPTION) == 0 && args_len > 1 ? args[1] : NULL;
}

bool hf__cli_env_files(struct cli *cli, size_t args_len, const char *const *args, size_t *taken,
                       int *ends)
{
    struct variables v = {.cli = cli};

    *taken = 0;
    *ends = CLI_USAGE;
    while (*taken < args_len && strncmp(args[*taken], OPTION, strlen(OPTION)) == 0) {
        size_t words;
        const char *path = option_file(args_len - *taken, args + *taken, &words);

        if (!path && strcmp(args[*taken], OPTION) != 0)
            break; /* another one, which begins alike */
        if (!path) {
            (void)hf__cli_fail(cli, "", CLI_USAGE, "option '%s' needs a file name", OPTION);
            return false;
        }
        if (!v.all)
            v.all = hf_scope_alloc(cli->scope, VARIABLES_MAX * sizeof(*v.all));
        if (!v.all) {
            *ends = hf__cli_fail(cli, "", CLI_FAILED, "out of memory");
            return false;
        }
        if (!read_file(&v, path))
            return false;
        *taken += words;
    }
    for (size_t i = 0; i < v.len; i++) /* (2) */
        if (!cli->env(v.all[i].name) && !cli->set_env(v.all[i].name, v.all[i].value)) {
            *ends = hf__cli_fail(cli, "", CLI_FAILED, "out of memory");
            return false;
        }
    return true;
}
