/*
 * cli/config/config_use.c: options of a command from the file of named databases. See config_use.h.
 *
 * What always holds: the file is only read when it can matter: with --db URL, a broken file is no error. Nor is one
 * in the usual place that this user may not read, such as that of root after `su`, unless a name of it is used.
 */
#include "cli/config/config_use.h"

#include "cli/config/config.h"
#include "cli/frame/options/env_file.h"

#include <stddef.h>
#include <string.h>

static bool use_fail(struct cli *cli, const char *command, const struct cli_config *config,
                     int *ends)
{
    *ends = hf__cli_fail(cli, command, CLI_USAGE, "%.*s", HF_FMT(config->error));
    return false;
}

static bool is_named(struct hf_str url)
{
    return url.len > 0 && url.ptr[0] == '@';
}

/* A file that is not named from the root is beside the config file; ~/ is the home directory. */
static struct hf_str path_of(struct cli *cli, const struct cli_config *config, struct hf_str path)
{
    const char *home = cli->env("HOME"), *slash = memrchr(config->path.ptr, '/', config->path.len);

    if (path.len > 2 && memcmp(path.ptr, "~/", 2) == 0 && home)
        return hf_scope_format(cli->scope, "%s/%s", home, path.ptr + 2);
    if (path.ptr[0] == '/' || !slash)
        return path;
    return hf_scope_format(cli->scope, "%.*s/%s", (int)(slash - config->path.ptr), config->path.ptr,
                           path.ptr);
}

static bool env_file_use(struct cli *cli, const struct cli_config *config,
                         const struct config_database *database, int *ends)
{
    struct hf_str path = database->values[CONFIG_ENV_FILE];
    const char *args[2] = {"--env-file", NULL};
    size_t taken;
    int failed;

    if (!path.ptr)
        return true;
    path = path_of(cli, config, path);
    args[1] = path.ptr ? path.ptr : "";
    if (hf__cli_env_files(cli, 2, args, &taken, &failed))
        return true;
    *ends = failed;
    return false;
}

static void text_use(struct hf_str *field, struct hf_str value)
{
    if (!field->ptr)
        *field = value;
}

static void settings_use(struct database_settings *settings, const struct config_database *database)
{
    settings->url = database->values[CONFIG_DB];
    text_use(&settings->prefix, database->values[CONFIG_PREFIX]);
    text_use(&settings->profile, database->values[CONFIG_PROFILE]);
    text_use(&settings->region, database->values[CONFIG_REGION]);
}

bool hf__cli_config_use_for(struct cli *cli, const char *command,
                            struct database_settings *settings, int *ends)
{
    const struct config_database *database;
    struct cli_config config;

    if (!is_named(settings->url))
        return true;
    hf__cli_config_locate(&config, cli->scope, cli->env);
    database =
        hf__cli_config_read(&config)
            ? hf__cli_config_find(&config, hf_str_of(settings->url.ptr + 1, settings->url.len - 1))
            : NULL;
    if (!database)
        return use_fail(cli, command, &config, ends);
    settings_use(settings, database);
    return env_file_use(cli, &config, database, ends);
}

/* The option of that name; OPTIONS_MAX: the command has none. */
static size_t option_at(const struct options_table *table, const char *name)
{
    for (size_t i = 0; i < table->len; i++)
        if (table->specs[i].name && strcmp(table->specs[i].name, name) == 0)
            return i;
    return OPTIONS_MAX;
}

/* Options that are no part of the settings of the database. */
static void options_use(struct command_ctx *c, const struct config_database *database)
{
    size_t blobs = option_at(c->table, "blobs"), timeout = option_at(c->table, "timeout");
    struct hf_str time = database->values[CONFIG_TIMEOUT];

    if (blobs != OPTIONS_MAX && c->table->specs[blobs].kind == OPTION_TEXT)
        text_use((struct hf_str *)(void *)((char *)c->settings + c->table->specs[blobs].offset),
                 database->values[CONFIG_BLOBS]);
    if (timeout != OPTIONS_MAX && time.ptr && c->options.source[timeout] == OPTION_DEFAULT)
        (void)hf__options_duration(time.ptr, &c->database->timeout_ms);
}

/* False: the command ends. */
static bool config_report(struct command_ctx *c, const struct cli_config *config)
{
    if (!c->command->reports_config)
        return use_fail(c->cli, c->name, config, &c->ends);
    c->config_error = config->error;
    return true;
}

bool hf__cli_config_use(struct command_ctx *c)
{
    size_t db = c->database ? option_at(c->table, "db") : OPTIONS_MAX;
    const struct config_database *database;
    struct cli_config config;
    struct hf_str name;
    bool named;

    if (db == OPTIONS_MAX || c->table->specs[db].offset != offsetof(struct database_settings, url))
        return true; /* the second: its --db is a directory of its own */
    named = is_named(c->database->url);
    if (!named && c->options.source[db] != OPTION_DEFAULT)
        return true;
    hf__cli_config_locate(&config, c->scope, c->cli->env);
    if (!hf__cli_config_read(&config))
        return (!named && config.hidden) || config_report(c, &config);
    if (!named && !config.fallback.ptr)
        return true;
    name = named ? hf_str_of(c->database->url.ptr + 1, c->database->url.len - 1) : config.fallback;
    database = hf__cli_config_find(&config, name);
    if (!database && !named)
        config.error = hf_scope_format(c->scope, "%s:%u: default: there is no [%.*s]",
                                       config.path.ptr, config.fallback_line, HF_FMT(name));
    if (!database)
        return config_report(c, &config);
    settings_use(c->database, database);
    options_use(c, database);
    return env_file_use(c->cli, &config, database, &c->ends);
}
