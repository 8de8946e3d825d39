/*
 * cli/config/config.h: named databases, from a file of the user's:
 *
 *     # which one is used without --db
 *     default = shop
 *
 *     [shop]
 *     db = https://db.example.com:8000
 *     prefix = prod-
 *
 *     [work]
 *     db = dynamodb://eu-west-1
 *     profile = work
 *
 * `holdfast --db @shop ...` uses the first of them. An option that is given counts, then a variable, then
 * the file.
 */
#ifndef HF_CLI_CONFIG_CONFIG_H
#define HF_CLI_CONFIG_CONFIG_H

#include "cli/frame/command.h"

enum { CONFIG_FILE_MAX = 256 * 1024 }; /* bytes */
enum { CONFIG_DATABASES_MAX = 1000 };
enum { CONFIG_NAME_MAX = 64 }; /* characters of a name */

/* What a section may say, in the order of hf__cli_config_keys. */
enum config_key {
    CONFIG_DB,
    CONFIG_PREFIX,
    CONFIG_PROFILE,
    CONFIG_REGION,
    CONFIG_TIMEOUT,
    CONFIG_BLOBS,
    CONFIG_ENV_FILE,
    CONFIG_KEYS
};
extern const char *const hf__cli_config_keys[CONFIG_KEYS];

struct config_database {
    struct hf_str name;
    unsigned line;                     /* of its section */
    struct hf_str values[CONFIG_KEYS]; /* absent: not said */
};

struct cli_config {
    struct hf_scope *s;
    struct hf_str path; /* with a NUL behind it; absent: there is no home directory */
    struct hf_str text; /* of the file; empty: there is none */
    bool exists;
    bool chosen;            /* HOLDFAST_CONFIG names it */
    bool hidden;            /* it is in the usual place, and this user may not read it */
    struct hf_str fallback; /* the default database; absent: none */
    unsigned fallback_line;
    struct config_database *databases;
    size_t databases_len;
    struct hf_str error; /* one sentence, with file and line */
};

/* Where the file is: HOLDFAST_CONFIG, or holdfast/config in XDG_CONFIG_HOME or ~/.config. */
void hf__cli_config_locate(struct cli_config *config, struct hf_scope *s, options_env_fn *env);

/* Read the file, if there is one. False: config->error. */
bool hf__cli_config_read(struct cli_config *config);

/* Read `text`, which is that of the file. */
bool hf__cli_config_parse(struct cli_config *config, struct hf_str text);

/* The database of that name, without '@'; NULL: there is none, and config->error says so. */
const struct config_database *hf__cli_config_find(struct cli_config *config, struct hf_str name);

/* Is it a name; a key (CONFIG_KEYS: none); a value that this key can have? Else config->error. */
bool hf__cli_config_name_check(struct cli_config *config, struct hf_str name);
enum config_key hf__cli_config_key_of(struct cli_config *config, struct hf_str word);
bool hf__cli_config_value_check(struct cli_config *config, enum config_key key,
                                struct hf_str value);

/* ---- changing it, config_edit.c ------------------------------------------------------------- */

/*
 * The text with a value set or (value absent) removed; in [name], or before all sections (name absent).
 * Everything else stays as it is, comments too. Absent: no memory.
 */
struct hf_str hf__cli_config_edit(struct cli_config *config, struct hf_str name, struct hf_str key,
                                  struct hf_str value);

/* The text without that section. */
struct hf_str hf__cli_config_edit_remove(struct cli_config *config, struct hf_str name);

/* Lock the file for a change, and unlock it; the folder is made. False: config->error. */
bool hf__cli_config_lock(struct cli_config *config, int *lock);
void hf__cli_config_unlock(int lock);

/* Replace the file, whole or not at all. False: config->error. */
bool hf__cli_config_write(struct cli_config *config, struct hf_str text);

#endif
