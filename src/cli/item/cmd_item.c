/*
 * cli/item/cmd_item.c: one item by its key: `holdfast item get|put|update|delete`.
 */
#include "base/base.h"
#include "cli/frame/process/input.h"
#include "cli/item/item.h"

#include <assert.h>

struct settings {
    struct item_settings item;
    struct hf_str condition;
    struct hf_str attributes;
    struct hf_str file;
    struct hf_str update;
    struct option_list set;
    struct option_list add;
    struct option_list remove;
    unsigned returns;
    bool consistent;
    bool if_missing;
    bool if_there;
    struct hf_item put; /* what is to be put */
};

/* Options that writes share. */
#define CONDITION_SPECS                                                                            \
    OPT_TEXT("if", "EXPRESSION", condition,                                                        \
             "Only if this condition holds; otherwise the exit code is 4."),                       \
        ITEM_PLACEHOLDERS
#define RETURN_OLD_SPEC(which)                                                                     \
    OPT_CHOICE("return", "none old", returns, "Print the item that was " which ".",                \
               .fallback = "none")

/* The key in the operands behind the table. */
static enum hf_status key_read(struct command_ctx *c, struct item_keys *keys, struct hf_item *key)
{
    TRY(hf__cli_item_keys(c, hf__command_operand(c, 0), (struct hf_str){0}, keys));
    return hf__cli_item_key(c, keys, c->operands_len - 1, c->operands + 1, key);
}

/* The condition, with what --if-missing and --if-there add to it. */
static enum hf_status condition_make(struct command_ctx *c, const struct item_keys *keys,
                                     struct hf_str *condition)
{
    struct settings *settings = c->settings;
    struct hf_str hash;

    assert(!settings->if_missing || !settings->if_there);
    assert(!(settings->if_missing || settings->if_there) || keys->hash.name.len);
    *condition = settings->condition;
    if (!settings->if_missing && !settings->if_there)
        return HF_OK;
    hash = hf__cli_item_name(c, &settings->item, keys->hash.name);
    *condition = settings->condition.ptr
                     ? hf_scope_format(c->scope, "attribute_%sexists(%.*s) AND (%.*s)",
                                       settings->if_missing ? "not_" : "", HF_FMT(hash),
                                       HF_FMT(settings->condition))
                     : hf_scope_format(c->scope, "attribute_%sexists(%.*s)",
                                       settings->if_missing ? "not_" : "", HF_FMT(hash));
    return hash.ptr && condition->ptr ? HF_OK : HF_NOMEM;
}

/* Print what a write returned, if it was asked for. */
static enum hf_status returned_print(struct command_ctx *c, struct hf_item attributes)
{
    const struct settings *settings = c->settings;

    hf__cli_item_capacity_report(c, &settings->item);
    return attributes.ptr ? hf__cli_item_print(c, settings->item.dynamodb, attributes) : HF_OK;
}

/* ---- get ------------------------------------------------------------------------------------ */

static const struct option_spec get_specs[] = {
    OPT_TEXT("attributes", "LIST", attributes,
             "Only these attributes: status,address.city,lines[0].", .letter = 'a'),
    OPT_FLAG("consistent", consistent, "See every write that was acknowledged before."),
    ITEM_NAMES,
    ITEM_FORMAT,
    ITEM_ONE,
};

static const struct option_example get_examples[] = {
    {"holdfast item get orders ann 2", "By hash key and range key; the table knows their types."},
    {"holdfast item get users ann -a email,address.city", "Two attributes of it."},
};

const struct options_table hf__item_get_options = {
    .name = "item get",
    .operands = "TABLE KEY [RANGE-KEY]",
    .about = "Print an item. Keys are words: a string as it is, a number, bytes as base64. "
             "In a pipe, and with --json, an item is one line of JSON.",
    COMMAND_SPECS(get),
    .notes = "Exit code 3: there is no such item or table.",
};

static enum hf_status item_get(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_get_item get = {.table = hf__command_operand(c, 0),
                              .consistent = settings->consistent ? HF_YES : HF_UNSET};
    struct hf_get_item_result got;
    struct item_keys keys;

    TRY(key_read(c, &keys, &get.key));
    if (settings->attributes.ptr) {
        TRY(hf__cli_item_paths(c, &settings->item, settings->attributes, &get.projection));
        get.names = settings->item.names_item;
    }
    hf__cli_item_capacity_begin(c, &settings->item);
    TRY(hf_get_item(c->scope, c->db, &get, &got));
    hf__cli_item_capacity_report(c, &settings->item);
    if (!got.item.ptr)
        return hf__command_fail(c, CLI_NOT_FOUND, "table %.*s has no item with that key",
                                HF_FMT(get.table));
    return hf__cli_item_print(c, settings->item.dynamodb, got.item);
}

static enum hf_status placeholders_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;

    return hf__cli_item_placeholders(c, &settings->item);
}

COMMAND_OF(item_get, item_get, ITEM_SETTINGS(struct settings), .min = 2, .max = 3,
           .check = placeholders_check);

/* ---- put ------------------------------------------------------------------------------------ */

static const struct option_spec put_specs[] = {
    OPT_TEXT("file", "FILE", file, "Read the item from this file; - is standard input.",
             .letter = 'f'),
    OPT_FLAG("if-missing", if_missing,
             "Only if there is no item with that key; otherwise the exit code is 4."),
    CONDITION_SPECS,
    RETURN_OLD_SPEC("replaced"),
    ITEM_FORMAT,
    ITEM_ONE,
};

static const struct option_example put_examples[] = {
    {"holdfast item put orders '{\"customer\":\"ann\",\"day\":2,\"total\":19.90}'",
     "Numbers keep all their digits."},
    {"holdfast item put users --if-missing -f ann.json", "From a file, unless the user exists."},
};

const struct options_table hf__item_put_options = {
    .name = "item put",
    .operands = "TABLE [ITEM]",
    .about = "Store an item, in place of the one with the same key.",
    COMMAND_SPECS(put),
};

static enum hf_status item_put_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_str text = hf__command_operand(c, 1), error = {0};

    if (!text.ptr == !settings->file.ptr)
        return hf__command_fail(c, CLI_USAGE, "%s",
                                text.ptr ? "give the item or --file, not both"
                                         : "give the item as JSON, or --file");
    if (settings->file.ptr) {
        text = hf__input_read(c->scope, settings->file.ptr, ITEM_TEXT_MAX, &error);
        if (!text.ptr)
            return hf__command_fail(c, CLI_USAGE, "%.*s", HF_FMT(error));
    }
    TRY(hf__cli_item_placeholders(c, &settings->item));
    return hf__cli_item_read(c, settings->item.dynamodb,
                             settings->file.ptr ? settings->file.ptr : "the item", text,
                             &settings->put);
}

static enum hf_status item_put(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_put_item put = {.table = hf__command_operand(c, 0),
                              .item = settings->put,
                              .returns = settings->returns ? HF_RETURN_ALL_OLD : 0};
    struct hf_put_item_result result;
    struct item_keys keys = {0};

    assert(settings->put.ptr); /* the check has read it */
    if (settings->if_missing)
        TRY(hf__cli_item_keys(c, put.table, (struct hf_str){0}, &keys));
    TRY(condition_make(c, &keys, &put.condition));
    put.names = settings->item.names_item;
    put.values = settings->item.values_item;
    hf__cli_item_capacity_begin(c, &settings->item);
    TRY(hf__cli_item_explained(c, hf_put_item(c->scope, c->db, &put, &result)));
    return returned_print(c, result.attributes);
}

COMMAND_OF(item_put, item_put, ITEM_SETTINGS(struct settings), .min = 1, .max = 2,
           .check = item_put_check);

/* ---- update --------------------------------------------------------------------------------- */

enum { RETURNS_NEW, RETURNS_OLD, RETURNS_NONE }; /* in the order of the choices */

static const struct option_spec update_specs[] = {
    OPT_LIST(
        "set", "NAME=VALUE", set,
        "Set an attribute. VALUE is JSON, or a string if it is none; may be given several times."),
    OPT_LIST("add", "NAME=VALUE", add, "Add to a number, or elements to a set: --add stock=-1."),
    OPT_LIST("remove", "NAME", remove, "Remove an attribute."),
    OPT_TEXT("update", "EXPRESSION", update,
             "An update expression, in place of --set, --add and --remove."),
    OPT_FLAG(
        "if-there", if_there,
        "Only if the item exists; otherwise the exit code is 4. Without this option a missing item is "
        "created."),
    CONDITION_SPECS,
    OPT_CHOICE("return", "new old none", returns,
               "Print the item as it is now, as it was before, or nothing.", .fallback = "new"),
    ITEM_FORMAT,
    ITEM_ONE,
};

static const struct option_example update_examples[] = {
    {"holdfast item update orders ann 2 --set status=paid --add version=1",
     "Set one attribute and add to another."},
    {"holdfast item update stock tea --add left=-1 --if 'left > :zero' --values '{\":zero\":0}'",
     "Take one, unless none is left."},
};

const struct options_table hf__item_update_options = {
    .name = "item update",
    .operands = "TABLE KEY [RANGE-KEY]",
    .about = "Change attributes of an item, and print it.",
    COMMAND_SPECS(update),
};

static enum hf_status item_update_check(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    bool parts = settings->set.len || settings->add.len || settings->remove.len;

    if (parts && settings->update.ptr)
        return hf__command_fail(c, CLI_USAGE,
                                "--update stands in place of --set, --add and "
                                "--remove: give one or the others");
    if (!parts && !settings->update.ptr)
        return hf__command_fail(c, CLI_USAGE,
                                "give what to change: --set, --add, --remove or "
                                "--update");
    return hf__cli_item_placeholders(c, &settings->item);
}

/* " SET #a = :b, #c = :d" or " ADD #a :b, #c :d", behind `text`. */
static enum hf_status clause_add(struct command_ctx *c, const char *verb, const char *between,
                                 const struct option_list *list, struct hf_str *text)
{
    const char *option = between[1] == '=' ? "--set" : "--add";
    struct settings *settings = c->settings;

    for (size_t i = 0; i < list->len; i++) {
        struct hf_str name = {0}, before, path, holder;
        const char *word = hf__cli_item_assignment(list->values[i], &name);
        struct hf_value value;

        if (!word)
            return hf__command_fail(c, CLI_USAGE, "%s %.*s: has to be NAME=VALUE", option,
                                    HF_FMT(list->values[i]));
        before = hf_scope_format(c->scope, "%s %.*s=", option, HF_FMT(name));
        if (!before.ptr)
            return HF_NOMEM;
        TRY(hf__cli_item_word(c, settings->item.dynamodb, before.ptr, hf_str_from(word), &value));
        TRY(hf__cli_item_path(c, &settings->item, name, &path));
        holder = hf__cli_item_value(c, &settings->item, value);
        *text = hf_scope_format(c->scope, "%.*s%s%.*s%s%.*s", HF_FMT(*text), i ? ", " : verb,
                                HF_FMT(path), between, HF_FMT(holder));
        if (!path.ptr || !holder.ptr || !text->ptr)
            return HF_NOMEM;
    }
    return HF_OK;
}

static enum hf_status update_make(struct command_ctx *c, struct hf_str *text)
{
    struct settings *settings = c->settings;

    *text = settings->update;
    if (text->ptr)
        return HF_OK;
    *text = HF_STR("");
    TRY(clause_add(c, " SET ", " = ", &settings->set, text));
    TRY(clause_add(c, " ADD ", " ", &settings->add, text));
    for (size_t i = 0; i < settings->remove.len; i++) {
        struct hf_str path;

        TRY(hf__cli_item_path(c, &settings->item, settings->remove.values[i], &path));
        *text = hf_scope_format(c->scope, "%.*s%s%.*s", HF_FMT(*text), i ? ", " : " REMOVE ",
                                HF_FMT(path));
        if (!path.ptr || !text->ptr)
            return HF_NOMEM;
    }
    return HF_OK;
}

static enum hf_status item_update(struct command_ctx *c)
{
    static const enum hf_return_values returns[] = {
        [RETURNS_NEW] = HF_RETURN_ALL_NEW, [RETURNS_OLD] = HF_RETURN_ALL_OLD, [RETURNS_NONE] = 0};
    struct settings *settings = c->settings;
    struct hf_update_item update = {.table = hf__command_operand(c, 0),
                                    .returns = returns[settings->returns]};
    struct hf_update_item_result result;
    struct item_keys keys;

    TRY(key_read(c, &keys, &update.key));
    TRY(update_make(c, &update.update));
    TRY(condition_make(c, &keys, &update.condition));
    update.names = settings->item.names_item;
    update.values = settings->item.values_item;
    hf__cli_item_capacity_begin(c, &settings->item);
    TRY(hf__cli_item_explained(c, hf_update_item(c->scope, c->db, &update, &result)));
    return returned_print(c, result.attributes);
}

COMMAND_OF(item_update, item_update, ITEM_SETTINGS(struct settings), .min = 2, .max = 3,
           .check = item_update_check);

/* ---- delete --------------------------------------------------------------------------------- */

static const struct option_spec delete_specs[] = {
    OPT_FLAG("if-there", if_there, "Only if the item exists; otherwise the exit code is 4."),
    CONDITION_SPECS,
    RETURN_OLD_SPEC("deleted"),
    ITEM_FORMAT,
    ITEM_ONE,
};

static const struct option_example delete_examples[] = {
    {"holdfast item delete orders ann 2", "No error if it is not there."},
    {"holdfast item delete orders ann 2 --if 'paid = :no' --values '{\":no\":false}'",
     "Only if it is not paid."},
};

const struct options_table hf__item_delete_options = {
    .name = "item delete",
    .operands = "TABLE KEY [RANGE-KEY]",
    .about = "Delete an item.",
    COMMAND_SPECS(delete),
};

static enum hf_status item_delete(struct command_ctx *c)
{
    struct settings *settings = c->settings;
    struct hf_delete_item request = {.table = hf__command_operand(c, 0),
                                     .returns = settings->returns ? HF_RETURN_ALL_OLD : 0};
    struct hf_delete_item_result result;
    struct item_keys keys;

    TRY(key_read(c, &keys, &request.key));
    TRY(condition_make(c, &keys, &request.condition));
    request.names = settings->item.names_item;
    request.values = settings->item.values_item;
    hf__cli_item_capacity_begin(c, &settings->item);
    TRY(hf__cli_item_explained(c, hf_delete_item(c->scope, c->db, &request, &result)));
    return returned_print(c, result.attributes);
}

COMMAND_OF(item_delete, item_delete, ITEM_SETTINGS(struct settings), .min = 2, .max = 3,
           .check = placeholders_check);
