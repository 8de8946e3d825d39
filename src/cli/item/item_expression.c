/*
 * cli/item/item_expression.c: expressions from words of the command line. See item.h.
 */
#include "cli/item/item.h"

#include <assert.h>
#include <string.h>

#include "base/base.h"
#include "cli/item/plain.h"

/* Add an attribute to `item`; false: no memory. */
static bool attribute_add(struct hf_scope *s, struct hf_item *item, struct hf_attr attr)
{
    *item = hf_item_with(s, *item, &attr, 1);
    return item->ptr != NULL;
}

struct hf_str hf__cli_item_name(struct command_ctx *c, struct item_settings *settings,
                                struct hf_str name)
{
    struct hf_str holder = hf_scope_format(c->scope, "#hf%u", ++settings->added);

    if (!holder.ptr ||
        !attribute_add(c->scope, &settings->names_item, hf_attr_of_str(holder, name)))
        return (struct hf_str){0};
    return holder;
}

struct hf_str hf__cli_item_value(struct command_ctx *c, struct item_settings *settings,
                                 struct hf_value value)
{
    struct hf_str holder = hf_scope_format(c->scope, ":hf%u", ++settings->added);

    if (!holder.ptr || !attribute_add(c->scope, &settings->values_item,
                                      (struct hf_attr){.name = holder, .value = value}))
        return (struct hf_str){0};
    return holder;
}

static bool char_is_among(char c, const char *chars)
{
    while (*chars && *chars != c)
        chars++;
    return *chars != '\0';
}

/* The text up to the first of `ends`, which is taken off. */
static struct hf_str text_until(struct hf_str *text, const char *ends)
{
    size_t len = 0;
    struct hf_str part;

    while (len < text->len && !char_is_among(text->ptr[len], ends))
        len++;
    part = hf_str_of(text->ptr, len);
    *text = hf_str_of(text->ptr + len, text->len - len);
    return part;
}

enum hf_status hf__cli_item_path(struct command_ctx *c, struct item_settings *settings,
                                 struct hf_str path, struct hf_str *made)
{
    struct hf_str whole = path;

    *made = HF_STR("");
    do {
        struct hf_str name = text_until(&path, ".["), rest = text_until(&path, ".");

        if (!name.len)
            return hf__command_fail(c, CLI_USAGE, "'%.*s': the name of an attribute is missing",
                                    HF_FMT(whole));
        if (name.ptr[0] != '#')
            name = hf__cli_item_name(c, settings, name);
        *made = hf_scope_format(c->scope, "%.*s%s%.*s%.*s", HF_FMT(*made), made->len ? "." : "",
                                HF_FMT(name), HF_FMT(rest));
        if (!name.ptr || !made->ptr)
            return HF_NOMEM;
        if (path.len)
            path = hf_str_of(path.ptr + 1, path.len - 1);
        else
            path.ptr = NULL;
    } while (path.ptr);
    return HF_OK;
}

static struct hf_str blanks_trim(struct hf_str text)
{
    while (text.len && text.ptr[0] == ' ')
        text = hf_str_of(text.ptr + 1, text.len - 1);
    while (text.len && text.ptr[text.len - 1] == ' ')
        text.len--;
    return text;
}

enum hf_status hf__cli_item_paths(struct command_ctx *c, struct item_settings *settings,
                                  struct hf_str paths, struct hf_str *made)
{
    *made = HF_STR("");
    while (paths.ptr) {
        struct hf_str path = blanks_trim(text_until(&paths, ","));

        TRY(hf__cli_item_path(c, settings, path, &path));
        *made = hf_scope_format(c->scope, "%.*s%s%.*s", HF_FMT(*made), made->len ? ", " : "",
                                HF_FMT(path));
        if (!made->ptr)
            return HF_NOMEM;
        paths = paths.len ? hf_str_of(paths.ptr + 1, paths.len - 1) : (struct hf_str){0};
    }
    return HF_OK;
}

const char *hf__cli_item_assignment(struct hf_str word, struct hf_str *name)
{
    const char *equals = memchr(word.ptr, '=', word.len);

    if (!equals || equals == word.ptr)
        return NULL;
    *name = hf_str_of(word.ptr, (size_t)(equals - word.ptr));
    return equals + 1;
}

/* DynamoDB's JSON of one value. */
static enum hf_status typed_read(struct command_ctx *c, const char *before, struct hf_str word,
                                 struct hf_value *value)
{
    struct hf_str text = hf_scope_format(c->scope, "{\"v\":%.*s}", HF_FMT(word));
    struct hf_item item;

    if (!text.ptr)
        return HF_NOMEM;
    if (hf_item_from_json(c->scope, text, &item) != HF_OK)
        return hf__command_fail(c, CLI_USAGE, "%s%.*s: %s", before, HF_FMT(word),
                                hf_scope_error_text(c->scope));
    *value = hf_item_get(item, HF_STR("v"));
    return HF_OK;
}

enum hf_status hf__cli_item_word(struct command_ctx *c, bool dynamodb, const char *before,
                                 struct hf_str word, struct hf_value *value)
{
    struct hf_str error = {0};
    const struct json_node *json = hf__cli_json_read(c->scope, word, &error);

    if (json && dynamodb && json->kind == JSON_OBJECT)
        return typed_read(c, before, word, value);
    if (json && hf__cli_plain_read(c->scope, json, value, &error))
        return HF_OK;
    if (json || (word.len && char_is_among(word.ptr[0], "{[\"")))
        return hf__command_fail(c, CLI_USAGE, "%s%.*s: %.*s", before, HF_FMT(word), HF_FMT(error));
    *value = hf_value_make(c->scope, (struct hf_attr){.type = HF_TYPE_S, .text = word});
    return value->ptr ? HF_OK : HF_NOMEM;
}
