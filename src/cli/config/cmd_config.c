/*
 * cli/config/cmd_config.c: `holdfast config ...`: the named databases of the user.
 */
#include "base/base.h"
#include "cli/config/config.h"
#include "cli/frame/commands.h"
#include "cli/frame/output/mask.h"

#include <string.h>
#include <unistd.h>

struct settings {
    struct database_settings database; /* for the output alone */
    bool is_default;
    struct cli_config config;
};

#define CONFIG_ABOUT                                                                               \
    "The file is HOLDFAST_CONFIG, or holdfast/config in XDG_CONFIG_HOME or ~/.config. "            \
    "A command uses the database of --db, or else of HOLDFAST_DB, or else the default of the "     \
    "file; so it is with the other options of a database."

static enum hf_status config_fail(struct command_ctx *c, const struct cli_config *config)
{
    return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(config->error));
}

static enum hf_status config_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    c->without_db = true;
    hf__cli_config_locate(&settings->config, c->scope, c->cli->env);
    return HF_OK;
}

/* The check of commands that read the file. */
static enum hf_status config_load(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    TRY(config_check(c));
    return hf__cli_config_read(&settings->config) ? HF_OK : config_fail(c, &settings->config);
}

static bool is_default(const struct cli_config *config, const struct config_database *database)
{
    return config->fallback.ptr && hf_str_equal(config->fallback, database->name);
}

/* @NAME and NAME are the same here. */
static struct hf_str name_operand(const struct command_ctx *c, size_t at)
{
    struct hf_str name = hf__command_operand(c, at);

    return name.len && name.ptr[0] == '@' ? hf_str_of(name.ptr + 1, name.len - 1) : name;
}

/* ---- ls ------------------------------------------------------------------------------------- */

static const struct option_spec ls_specs[] = {
    DATABASE_JSON(struct settings),
    DATABASE_JSONL(struct settings),
    DATABASE_QUIET(struct settings),
};

static const struct option_example ls_examples[] = {
    {"holdfast config ls", "The databases that --db @NAME can name."},
};

const struct options_table hf__config_ls_options = {
    .name = "config ls",
    .about = "List the named databases.\n\n" CONFIG_ABOUT,
    COMMAND_SPECS(ls),
};

static enum hf_status config_ls(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    const struct cli_config *config = &settings->config;
    struct rows *rows = hf__command_rows(c, "databases");

    for (size_t i = 0; i < config->databases_len; i++) {
        const struct config_database *database = &config->databases[i];

        COMMAND_ROW(rows, hf__rows_text("name", database->name),
                    hf__rows_text("db", hf__cli_mask(c->scope, database->values[CONFIG_DB])),
                    hf__rows_text("prefix", database->values[CONFIG_PREFIX]),
                    hf__rows_bool("default", is_default(config, database)));
    }
    return HF_OK;
}

const struct command hf__config_ls_command = {COMMAND_SETTINGS(struct settings),
                                              .check = config_load, .body = config_ls};

/* ---- show ----------------------------------------------------------------------------------- */

static const struct option_spec show_specs[] = {
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
};

static const struct option_example show_examples[] = {
    {"holdfast config show shop", "What @shop stands for."},
};

const struct options_table hf__config_show_options = {
    .name = "config show",
    .operands = "[NAME]",
    .about = "Show a named database; without a name the default one. A password in its URL is not "
             "shown.",
    COMMAND_SPECS(show),
};

static enum hf_status config_show(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct cli_config *config = &settings->config;
    struct hf_str name = c->operands_len ? name_operand(c, 0) : config->fallback;
    const struct config_database *database;
    struct rows_field fields[CONFIG_KEYS + 2];

    if (!name.ptr)
        return hf__command_fail(c, CLI_NOT_FOUND, "there is no default; name a database");
    database = hf__cli_config_find(config, name);
    if (!database)
        return hf__command_fail(c, CLI_NOT_FOUND, "%.*s", HF_FMT(config->error));
    fields[0] = hf__rows_text("name", database->name);
    for (size_t i = 0; i < CONFIG_KEYS; i++)
        fields[i + 1] =
            hf__rows_text(hf__cli_config_keys[i], hf__cli_mask(c->scope, database->values[i]));
    fields[CONFIG_KEYS + 1] = hf__rows_bool("default", is_default(config, database));
    return hf__command_print(c, fields, ARRAY_LEN(fields));
}

const struct command hf__config_show_command = {COMMAND_SETTINGS(struct settings), .max = 1,
                                                .check = config_load, .body = config_show};

/* ---- changing ------------------------------------------------------------------------------- */

/* Take over an edited text, which has to be right as a whole. */
static bool edit_take(struct cli_config *config, struct hf_str text)
{
    if (!text.ptr) {
        config->error = HF_STR("out of memory");
        return false;
    }
    return hf__cli_config_parse(config, text);
}

static enum hf_status change_print(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    return COMMAND_JSON(c, hf__rows_text("name", name_operand(c, 0)),
                        hf__rows_text("path", settings->config.path),
                        hf__rows_text("default", settings->config.fallback));
}

/* Read the file, change it, and write it, with the lock held. */
static enum hf_status config_change(struct command_ctx *c, bool (*change)(struct command_ctx *c))
{
    struct settings *settings = c->settings;
    struct cli_config *config = &settings->config;
    int lock;
    bool fine = hf__cli_config_lock(config, &lock) && hf__cli_config_read(config) && change(c) &&
                hf__cli_config_write(config, config->text);

    hf__cli_config_unlock(lock);
    if (!fine)
        return config_fail(c, config);
    return change_print(c);
}

static const struct option_spec set_specs[] = {
    OPT_FLAG("default", is_default, "Let commands without --db use this database."),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
};

static const struct option_example set_examples[] = {
    {"holdfast config set shop db=http://127.0.0.1:8000 --default", "Name a database."},
    {"holdfast config set work db=dynamodb://eu-west-1 profile=work prefix=dev-",
     "With more options."},
    {"holdfast --db @shop table ls", "And use it."},
};

const struct options_table hf__config_set_options = {
    .name = "config set",
    .operands = "NAME [KEY=VALUE...]",
    .about =
        "Name a database, or change what is said of it. Keys are db, the URL; prefix, profile, "
        "region, timeout and blobs, as the options of these names; and env-file, a file of "
        "variables that is read as with --env-file, for credentials.\n\n"
        "Comments in the file stay. Only you can read it.\n\n" CONFIG_ABOUT,
    COMMAND_SPECS(set),
};

static bool assignment_split(struct cli_config *config, struct hf_str word, enum config_key *key,
                             struct hf_str *value)
{
    const char *equals = memchr(word.ptr, '=', word.len);
    size_t len = equals ? (size_t)(equals - word.ptr) : 0;

    if (!equals) {
        config->error = hf_scope_format(config->s, "'%.*s' is not KEY=VALUE", HF_FMT(word));
        return false;
    }
    *key = hf__cli_config_key_of(config, hf_str_of(word.ptr, len));
    *value = hf_str_of(equals + 1, word.len - len - 1);
    return *key != CONFIG_KEYS && hf__cli_config_value_check(config, *key, *value);
}

/* A file or directory that is named from here is meant wherever the command is run later. */
static struct hf_str value_stored(struct cli_config *config, enum config_key key,
                                  struct hf_str value)
{
    static const char *const kinds[CONFIG_KEYS] = {
        [CONFIG_DB] = "embedded:", [CONFIG_BLOBS] = "dir:", [CONFIG_ENV_FILE] = ""};
    const char *kind = kinds[key];
    size_t len = kind ? strlen(kind) : 0;
    char here[4096];

    if (!kind || value.len <= len || memcmp(value.ptr, kind, len) != 0 || value.ptr[len] == '/' ||
        !getcwd(here, sizeof(here)))
        return value;
    if (key == CONFIG_ENV_FILE && value.len > 1 && memcmp(value.ptr, "~/", 2) == 0)
        return value;
    return hf_scope_format(config->s, "%s%s/%.*s", kind, here, (int)(value.len - len),
                           value.ptr + len);
}

static enum hf_status config_set_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct cli_config *config = &settings->config;
    enum config_key key;
    struct hf_str value;

    TRY(config_check(c));
    if (!hf__cli_config_name_check(config, name_operand(c, 0)))
        return config_fail(c, config);
    if (c->operands_len < 2 && !settings->is_default)
        return hf__command_fail(c, CLI_USAGE, "give what to set, such as db=URL, or --default");
    for (size_t i = 1; i < c->operands_len; i++)
        if (!assignment_split(config, hf__command_operand(c, i), &key, &value))
            return config_fail(c, config);
    return HF_OK;
}

static bool values_set(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct cli_config *config = &settings->config;
    struct hf_str name = name_operand(c, 0);

    for (size_t i = 1; i < c->operands_len; i++) {
        enum config_key key = CONFIG_KEYS;
        struct hf_str value;

        if (!assignment_split(config, hf__command_operand(c, i), &key, &value))
            return false;
        config->text = hf__cli_config_edit(config, name, hf_str_from(hf__cli_config_keys[key]),
                                           value_stored(config, key, value));
        if (!config->text.ptr)
            break;
    }
    if (!edit_take(config, config->text))
        return false;
    if (!settings->is_default)
        return true;
    return hf__cli_config_find(config, name) &&
           edit_take(config,
                     hf__cli_config_edit(config, (struct hf_str){0}, HF_STR("default"), name));
}

static enum hf_status config_set(struct command_ctx *c)
{
    return config_change(c, values_set);
}

const struct command hf__config_set_command = {COMMAND_SETTINGS(struct settings), .min = 1,
                                               .max = COMMAND_MANY, .check = config_set_check,
                                               .body = config_set};

/* ---- unset ---------------------------------------------------------------------------------- */

static const struct option_spec unset_specs[] = {
    OPT_FLAG("default", is_default, "Let no database be the default."),
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
};

static const struct option_example unset_examples[] = {
    {"holdfast config unset shop", "Forget a database; its data stays."},
    {"holdfast config unset shop prefix", "Forget one of its settings."},
    {"holdfast config unset --default", "Use http://127.0.0.1:8000 again without --db."},
};

const struct options_table hf__config_unset_options = {
    .name = "config unset",
    .operands = "[NAME [KEY...]]",
    .about = "Forget a named database, some of its settings, or which one is the default. The "
             "databases themselves are not touched.",
    COMMAND_SPECS(unset),
};

static enum hf_status config_unset_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    TRY(config_check(c));
    if (!c->operands_len && !settings->is_default)
        return hf__command_fail(c, CLI_USAGE, "give a name, or --default");
    for (size_t i = 1; i < c->operands_len; i++)
        if (hf__cli_config_key_of(&settings->config, hf__command_operand(c, i)) == CONFIG_KEYS)
            return config_fail(c, &settings->config);
    return HF_OK;
}

static bool default_unset(struct cli_config *config)
{
    return edit_take(config, hf__cli_config_edit(config, (struct hf_str){0}, HF_STR("default"),
                                                 (struct hf_str){0}));
}

static bool values_unset(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct cli_config *config = &settings->config;
    struct hf_str name = name_operand(c, 0);
    bool was_default =
        c->operands_len == 1 && config->fallback.ptr && hf_str_equal(config->fallback, name);

    if (c->operands_len && !hf__cli_config_find(config, name))
        return false;
    for (size_t i = 1; i < c->operands_len; i++)
        if (!edit_take(config, hf__cli_config_edit(config, name, hf__command_operand(c, i),
                                                   (struct hf_str){0})))
            return false;
    if (c->operands_len == 1 && !edit_take(config, hf__cli_config_edit_remove(config, name)))
        return false;
    return (!settings->is_default && !was_default) || default_unset(config);
}

/* What is not there need not be forgotten, and no file is made for it. */
static enum hf_status config_unset(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct cli_config *config = &settings->config;

    if (!hf__cli_config_read(config))
        return config_fail(c, config);
    if (c->operands_len && !hf__cli_config_find(config, name_operand(c, 0)))
        return hf__command_fail(c, CLI_NOT_FOUND, "%.*s", HF_FMT(config->error));
    if (!c->operands_len && !config->fallback.ptr)
        return change_print(c);
    return config_change(c, values_unset);
}

const struct command hf__config_unset_command = {COMMAND_SETTINGS(struct settings),
                                                 .max = COMMAND_MANY, .check = config_unset_check,
                                                 .body = config_unset};

/* ---- path ----------------------------------------------------------------------------------- */

static const struct option_spec path_specs[] = {
    DATABASE_JSON(struct settings),
    DATABASE_QUIET(struct settings),
};

static const struct option_example path_examples[] = {
    {"$EDITOR \"$(holdfast config path)\"", "Edit the file."},
};

const struct options_table hf__config_path_options = {
    .name = "config path",
    .about = "Print where the file of named databases is, or would be.\n\n" CONFIG_ABOUT,
    COMMAND_SPECS(path),
};

static enum hf_status config_path(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_str path = settings->config.path;

    if (!path.ptr)
        return hf__command_fail(c, CLI_FAILED,
                                "HOME is not set, so there is no config file: set HOLDFAST_CONFIG");
    if (c->database->json)
        return COMMAND_PRINT(c, hf__rows_text("path", path),
                             hf__rows_bool("exists", access(path.ptr, F_OK) == 0));
    if (!c->database->quiet)
        fprintf(c->cli->out, "%s\n", path.ptr);
    return HF_OK;
}

const struct command hf__config_path_command = {COMMAND_SETTINGS(struct settings),
                                                .check = config_check, .body = config_path};
