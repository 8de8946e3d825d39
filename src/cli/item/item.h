/*
 * cli/item/item.h: what the commands for items share: keys as words, expressions with their values,
 * printing.
 */
#ifndef HF_CLI_ITEM_ITEM_H
#define HF_CLI_ITEM_ITEM_H

#include "cli/frame/commands.h"

enum { ITEM_TEXT_MAX = 4 * 1024 * 1024 }; /* bytes of an item as JSON */

/* What all of them have; the first member of their settings. */
struct item_settings {
    struct database_settings database;
    bool dynamodb;
    bool capacity;
    struct hf_str names; /* --names and --values as they were given */
    struct hf_str values;
    struct hf_item names_item; /* and as items, with those that were added; absent: none */
    struct hf_item values_item;
    unsigned added;
};

/* For settings whose first member is `struct item_settings item`. */
#define ITEM_SETTINGS(type) COMMAND_SETTINGS_IF(type, offsetof(type, item) == 0)
#define ITEM_ONE DATABASE_ONE(struct item_settings)
#define ITEM_LIST DATABASE_LIST(struct item_settings)
#define ITEM_FORMAT                                                                                \
    OPT_FLAG_IN(                                                                                   \
        struct item_settings, "dynamodb", dynamodb,                                                \
        "Read and print items as DynamoDB's JSON, {\"a\":{\"S\":\"x\"}}. Otherwise they are "      \
        "plain JSON, with {\"$set\":[...]} for sets and {\"$binary\":\"...\"} for bytes.",         \
        .heading = "Format"),                                                                      \
        OPT_FLAG_IN(struct item_settings, "capacity", capacity,                                    \
                    "Report the consumed capacity units on standard error.")
#define ITEM_NAMES                                                                                 \
    OPT_TEXT_IN(struct item_settings, "names", "JSON", names,                                      \
                "Attribute names of the placeholders in expressions: '{\"#s\":\"status\"}'.")
#define ITEM_PLACEHOLDERS                                                                          \
    OPT_TEXT_IN(struct item_settings, "values", "JSON", values,                                    \
                "Values of the placeholders in expressions: '{\":min\":5}'."),                     \
        ITEM_NAMES

/* In a check: read --names and --values. */
enum hf_status hf__cli_item_placeholders(struct command_ctx *c, struct item_settings *settings);

/* The status of an operation with expressions. If a name in them is a reserved word, the error is shown
 * with what to write instead. */
enum hf_status hf__cli_item_explained(struct command_ctx *c, enum hf_status status);

/* ---- expressions, item_expression.c --------------------------------------------------------- */

/*
 * Parts of expressions in which names need no care: reserved words and odd characters are behind
 * placeholders, which are added to the settings. Texts are in the scope. `path` is such as
 * address.lines[0]; `paths` several of these, with commas between them. What starts with # is a
 * placeholder of --names. hf__cli_item_name() is for a whole name, whatever is in it. Absent: no
 * memory.
 */
enum hf_status hf__cli_item_path(struct command_ctx *c, struct item_settings *settings,
                                 struct hf_str path, struct hf_str *made);
enum hf_status hf__cli_item_paths(struct command_ctx *c, struct item_settings *settings,
                                  struct hf_str paths, struct hf_str *made);
struct hf_str hf__cli_item_name(struct command_ctx *c, struct item_settings *settings,
                                struct hf_str name);
struct hf_str hf__cli_item_value(struct command_ctx *c, struct item_settings *settings,
                                 struct hf_value value);

/* NAME=VALUE of the command line: where the value begins; NULL: there is no = or no name. */
const char *hf__cli_item_assignment(struct hf_str word, struct hf_str *name);

/* A value of the command line: JSON, or else a string. What begins as JSON does has to be JSON. `before` is what an
 * error shows in front of it: "--set price=". */
enum hf_status hf__cli_item_word(struct command_ctx *c, bool dynamodb, const char *before,
                                 struct hf_str word, struct hf_value *value);

/* An item from its text. The error says `what` it is. */
enum hf_status hf__cli_item_read(struct command_ctx *c, bool dynamodb, const char *what,
                                 struct hf_str text, struct hf_item *item);

/* ---- keys, item_key.c ----------------------------------------------------------------------- */

/* An attribute of a key; absent: the key has no such part. */
struct key_part {
    struct hf_str name;
    enum hf_scalar_type type;
};

struct item_keys {
    struct key_part hash;
    struct key_part range;
};

/* The keys of a table, or of one of its indexes (`index` is not absent). */
enum hf_status hf__cli_item_keys(struct command_ctx *c, struct hf_str table, struct hf_str index,
                                 struct item_keys *keys);

/* The key that words of the command line name: one for each part. Numbers and base64 are checked. */
enum hf_status hf__cli_item_key(struct command_ctx *c, const struct item_keys *keys,
                                size_t words_len, const char *const *words, struct hf_item *key);

/* A value of that part from a word. */
enum hf_status hf__cli_item_key_value(struct command_ctx *c, const struct key_part *part,
                                      struct hf_str word, struct hf_value *value);

/* ---- printing, item_print.c ----------------------------------------------------------------- */

struct item_list;

/* One item: on a terminal with a line for each attribute. */
enum hf_status hf__cli_item_print(struct command_ctx *c, bool dynamodb, struct hf_item item);

/*
 * A list: a table on a terminal, otherwise a line of JSON for each. `keys` (may be NULL) are the columns
 * that come first. hf__cli_item_list_end() prints what is held back, and has to follow.
 */
enum hf_status hf__cli_item_list_begin(struct command_ctx *c, bool dynamodb,
                                       const struct item_keys *keys, struct item_list **list);
void hf__cli_item_list_column(struct item_list *list, struct hf_str name); /* the next column */
enum hf_status hf__cli_item_list_add(struct item_list *list, struct hf_item item);
void hf__cli_item_list_flush(struct item_list *list); /* what is held back, before a notice */
void hf__cli_item_list_end(struct item_list *list);

/* Count capacity from now on, if that was asked for; and report it. */
void hf__cli_item_capacity_begin(struct command_ctx *c, const struct item_settings *settings);
void hf__cli_item_capacity_report(struct command_ctx *c, const struct item_settings *settings);
void hf__cli_item_capacity_tell(struct command_ctx *c, const struct item_settings *settings,
                                struct hf_scope_capacity sum);

#endif
