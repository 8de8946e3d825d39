/*
 * cli/config/config.c: the file of named databases: where it is, what is in it. See config.h.
 *
 * A line is blank, a comment (# or ; in front), [NAME], or KEY = VALUE. A value goes to the end of its line, as
 * a URL may contain '#'.
 *
 * What always holds:
 *
 *  (1) Everything doubtful is an error with its line: an unknown key, a key or name that is there twice, a
 *      section without a database.
 *  (2) A file that other users can change is refused: they could lead commands to a database of theirs. So is one
 *      that others can read, as URLs may contain secrets.
 */
#include "cli/config/config.h"

#include "base/base.h"
#include "cli/frame/options/nearest.h"
#include "cli/frame/process/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *const hf__cli_config_keys[CONFIG_KEYS] = {"db",      "prefix", "profile", "region",
                                                      "timeout", "blobs",  "env-file"};

_Static_assert(sizeof(hf__cli_config_keys) / sizeof(hf__cli_config_keys[0]) == CONFIG_KEYS,
               "one name each");

#define FAIL(config, ...) config_fail((config), hf_scope_format((config)->s, __VA_ARGS__))

static bool config_fail(struct cli_config *config, struct hf_str error)
{
    config->error = error.ptr ? error : HF_STR("out of memory");
    return false;
}

/* ---- where it is ---------------------------------------------------------------------------- */

void hf__cli_config_locate(struct cli_config *config, struct hf_scope *s, options_env_fn *env)
{
    const char *named = env ? env("HOLDFAST_CONFIG") : NULL;
    const char *base = env ? env("XDG_CONFIG_HOME") : NULL, *home = env ? env("HOME") : NULL;

    *config = (struct cli_config){.s = s, .chosen = named && *named};
    if (config->chosen)
        config->path = hf_scope_copy(s, hf_str_from(named));
    else if (base && *base == '/') /* a relative one is to be ignored, says its specification */
        config->path = hf_scope_format(s, "%s/holdfast/config", base);
    else if (home && *home == '/')
        config->path = hf_scope_format(s, "%s/.config/holdfast/config", home);
}

/* ---- words ---------------------------------------------------------------------------------- */

bool hf__cli_config_name_check(struct cli_config *config, struct hf_str name)
{
    if (name.len == 0 || name.len > CONFIG_NAME_MAX)
        return FAIL(config, "a name has 1 to %d characters", (int)CONFIG_NAME_MAX);
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '-' && c != '_' && c != '.')
            return FAIL(config, "name '%.*s': use letters, digits, '-', '_' and '.'", HF_FMT(name));
    }
    return true;
}

enum config_key hf__cli_config_key_of(struct cli_config *config, struct hf_str word)
{
    struct nearest nearest = {.word = hf_scope_copy(config->s, word).ptr};

    for (size_t i = 0; i < CONFIG_KEYS; i++) {
        if (hf_str_equal(word, hf_str_from(hf__cli_config_keys[i])))
            return (enum config_key)i;
        if (nearest.word)
            hf__nearest_offer(&nearest, hf__cli_config_keys[i]);
    }
    (void)FAIL(config,
               nearest.best ? "unknown key '%.*s'; did you mean '%s'?"
                            : "unknown key '%.*s'; there are db, prefix, profile, region, timeout, "
                              "blobs and env-file%s",
               HF_FMT(word), nearest.best ? nearest.best : "");
    return CONFIG_KEYS;
}

static bool text_begins(struct hf_str text, const char *start)
{
    return text.len > strlen(start) && memcmp(text.ptr, start, strlen(start)) == 0;
}

bool hf__cli_config_value_check(struct cli_config *config, enum config_key key, struct hf_str value)
{
    struct hf_str copy = hf_scope_copy(config->s, value);
    uint64_t ms = 0;

    if (value.len == 0)
        return FAIL(config, "%s: the value is empty", hf__cli_config_keys[key]);
    for (size_t i = 0; i < value.len; i++)
        if ((unsigned char)value.ptr[i] < ' ' || value.ptr[i] == 127)
            return FAIL(config, "%s: the value contains a control character",
                        hf__cli_config_keys[key]);
    if (value.ptr[0] == ' ' || value.ptr[value.len - 1] == ' ')
        return FAIL(config, "%s: the value begins or ends with a blank", hf__cli_config_keys[key]);
    if (key == CONFIG_DB && !text_begins(value, "http://") && !text_begins(value, "https://") &&
        !text_begins(value, "dynamodb://") && !text_begins(value, "embedded:"))
        return FAIL(config,
                    "db: '%.*s' is none of http://HOST:PORT, https://HOST:PORT, dynamodb://REGION "
                    "and embedded:DIR",
                    HF_FMT(value));
    if (key == CONFIG_TIMEOUT && (!copy.ptr || !hf__options_duration(copy.ptr, &ms) || ms == 0 ||
                                  ms > DATABASE_TIMEOUT_MAX_MS))
        return FAIL(config, "timeout: '%.*s' is not a time of 1ms to 24h", HF_FMT(value));
    return true;
}

/* ---- reading -------------------------------------------------------------------------------- */

/* An error that has no place yet gets the line. */
static bool line_fail(struct cli_config *config, unsigned line)
{
    assert(config->error.ptr && line > 0);
    return FAIL(config, "%s:%u: %.*s", config->path.ptr, line, HF_FMT(config->error));
}

static bool section_end(struct cli_config *config)
{
    const struct config_database *database =
        config->databases_len ? &config->databases[config->databases_len - 1] : NULL;

    assert(config->databases_len <= CONFIG_DATABASES_MAX);
    if (!database || database->values[CONFIG_DB].ptr)
        return true;
    return FAIL(config, "%s:%u: [%.*s] has no 'db'", config->path.ptr, database->line,
                HF_FMT(database->name));
}

static bool section_begin(struct cli_config *config, struct hf_str line, unsigned number)
{
    struct hf_str name = hf__input_trim(hf_str_of(line.ptr + 1, line.len - 1));

    assert(line.len > 0 && line.ptr[0] == '[' && number > 0);
    if (!section_end(config))
        return false;
    if (name.len == 0 || name.ptr[name.len - 1] != ']')
        return FAIL(config, "%s:%u: expected [NAME]", config->path.ptr, number);
    name = hf__input_trim(hf_str_of(name.ptr, name.len - 1));
    if (!hf__cli_config_name_check(config, name))
        return line_fail(config, number);
    for (size_t i = 0; i < config->databases_len; i++)
        if (hf_str_equal(config->databases[i].name, name))
            return FAIL(config, "%s:%u: [%.*s] is there twice, first in line %u", config->path.ptr,
                        number, HF_FMT(name), config->databases[i].line);
    if (config->databases_len == CONFIG_DATABASES_MAX)
        return FAIL(config, "%s:%u: more than %d databases", config->path.ptr, number,
                    (int)CONFIG_DATABASES_MAX);
    config->databases[config->databases_len++] =
        (struct config_database){.name = name, .line = number};
    return true;
}

static bool setting_read(struct cli_config *config, struct hf_str line, unsigned number)
{
    const char *equals = memchr(line.ptr, '=', line.len);
    struct hf_str key, value;
    struct config_database *database;
    enum config_key which;

    assert(line.len > 0 && number > 0);
    if (!equals)
        return FAIL(config, "%s:%u: expected [NAME] or KEY = VALUE", config->path.ptr, number);
    key = hf__input_trim(hf_str_of(line.ptr, (size_t)(equals - line.ptr)));
    value = hf__input_trim(hf_str_of(equals + 1, line.len - (size_t)(equals - line.ptr) - 1));
    if (!config->databases_len) {
        if (!hf_str_equal(key, HF_STR("default")))
            return FAIL(config, "%s:%u: only 'default' can be before the first [NAME]",
                        config->path.ptr, number);
        if (config->fallback.ptr)
            return FAIL(config, "%s:%u: 'default' is there twice", config->path.ptr, number);
        config->fallback = value;
        config->fallback_line = number;
        return hf__cli_config_name_check(config, value) || line_fail(config, number);
    }
    which = hf__cli_config_key_of(config, key);
    if (which == CONFIG_KEYS || !hf__cli_config_value_check(config, which, value))
        return line_fail(config, number);
    database = &config->databases[config->databases_len - 1];
    if (database->values[which].ptr)
        return FAIL(config, "%s:%u: '%.*s' is there twice", config->path.ptr, number, HF_FMT(key));
    database->values[which] = hf_scope_copy(config->s, value);
    return database->values[which].ptr || config_fail(config, (struct hf_str){0});
}

bool hf__cli_config_parse(struct cli_config *config, struct hf_str text)
{
    unsigned number = 0;
    struct hf_str line;

    config->text = text;
    config->fallback = (struct hf_str){0};
    config->databases_len = 0;
    if (!config->databases)
        config->databases =
            hf_scope_alloc(config->s, CONFIG_DATABASES_MAX * sizeof(*config->databases));
    if (!config->databases)
        return config_fail(config, (struct hf_str){0});
    while (hf__input_line(&text, &line)) {
        number++;
        line = hf__input_trim(line);
        if (line.len == 0 || line.ptr[0] == '#' || line.ptr[0] == ';')
            continue;
        if (!(line.ptr[0] == '[' ? section_begin(config, line, number)
                                 : setting_read(config, line, number)))
            return false;
    }
    return section_end(config);
}

/* (2) */
static bool is_private(struct cli_config *config, int fd)
{
    const char *path = config->path.ptr;
    struct stat info;

    if (fstat(fd, &info) != 0)
        return FAIL(config, "%s: %s", path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return FAIL(config, "%s: is not a regular file", path);
    if (info.st_mode & (S_IRWXG | S_IRWXO))
        return FAIL(config, "%s: other users can %s this file (mode %03o); run chmod 600 %s", path,
                    info.st_mode & (S_IWGRP | S_IWOTH) ? "change" : "read",
                    (unsigned)info.st_mode & 0777u, path);
    if (info.st_uid != geteuid() && info.st_uid != 0)
        return FAIL(config, "%s: the file belongs to another user (uid %u)", path,
                    (unsigned)info.st_uid);
    return true;
}

static bool file_read(struct cli_config *config, int fd, struct hf_str *text)
{
    char *bytes = hf_scope_alloc(config->s, CONFIG_FILE_MAX + 1);
    size_t len = 0;

    if (!bytes)
        return config_fail(config, (struct hf_str){0});
    while (len <= CONFIG_FILE_MAX) {
        ssize_t more = read(fd, bytes + len, CONFIG_FILE_MAX + 1 - len);

        if (more < 0 && errno == EINTR)
            continue;
        if (more < 0)
            return FAIL(config, "%s: %s", config->path.ptr, strerror(errno));
        if (more == 0) {
            *text = hf_str_of(bytes, len);
            return true;
        }
        len += (size_t)more;
    }
    return FAIL(config, "%s: larger than %d bytes", config->path.ptr, (int)CONFIG_FILE_MAX);
}

bool hf__cli_config_read(struct cli_config *config)
{
    int fd = config->path.ptr ? open(config->path.ptr, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : -1;
    struct hf_str text = HF_STR("");
    bool fine = true;

    config->exists = fd >= 0;
    config->hidden = config->path.ptr && fd < 0 && errno == EACCES && !config->chosen;
    if (config->path.ptr && fd < 0 && errno != ENOENT && errno != ENOTDIR)
        return FAIL(config, "%s: %s", config->path.ptr, strerror(errno));
    if (fd >= 0) {
        fine = is_private(config, fd) && file_read(config, fd, &text);
        close(fd);
    }
    return fine && hf__cli_config_parse(config, text);
}

const struct config_database *hf__cli_config_find(struct cli_config *config, struct hf_str name)
{
    struct nearest nearest = {.word = hf_scope_copy(config->s, name).ptr};

    for (size_t i = 0; i < config->databases_len; i++) {
        struct hf_str copy = hf_scope_copy(config->s, config->databases[i].name);

        if (hf_str_equal(config->databases[i].name, name))
            return &config->databases[i];
        if (nearest.word && copy.ptr)
            hf__nearest_offer(&nearest, copy.ptr);
    }
    if (!config->path.ptr)
        (void)FAIL(config, "no database '@%.*s': HOME is not set, so there is no config file",
                   HF_FMT(name));
    else if (nearest.best)
        (void)FAIL(config, "no database '@%.*s' in %s; did you mean '@%s'?", HF_FMT(name),
                   config->path.ptr, nearest.best);
    else
        (void)FAIL(config, "no database '@%.*s' in %s; 'holdfast config set %.*s db=URL' adds it",
                   HF_FMT(name), config->path.ptr, HF_FMT(name));
    return NULL;
}
