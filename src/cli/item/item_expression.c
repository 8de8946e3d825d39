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

static struct hf_str name_add(struct command_ctx *c, struct item_settings *settings,
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

struct hf_str hf__cli_item_path(struct command_ctx *c, struct item_settings *settings,
                                struct hf_str path)
{
    struct hf_str made = HF_STR("");

    do {
        struct hf_str name = text_until(&path, ".["), rest = text_until(&path, ".");

        if (name.len && name.ptr[0] != '#')
            name = name_add(c, settings, name);
        made = hf_scope_format(c->scope, "%.*s%s%.*s%.*s", HF_FMT(made), made.len ? "." : "",
                               HF_FMT(name), HF_FMT(rest));
        if (!name.ptr || !made.ptr)
            return (struct hf_str){0};
        if (path.len)
            path = hf_str_of(path.ptr + 1, path.len - 1);
        else
            path.ptr = NULL;
    } while (path.ptr);
    return made;
}

struct hf_str hf__cli_item_paths(struct command_ctx *c, struct item_settings *settings,
                                 struct hf_str paths)
{
    struct hf_str made = HF_STR("");

    while (paths.ptr && made.ptr) {
        struct hf_str path = text_until(&paths, ",");

        while (path.len && path.ptr[0] == ' ')
            path = hf_str_of(path.ptr + 1, path.len - 1);
        path = hf__cli_item_path(c, settings, path);
        if (!path.ptr)
            return path;
        made = hf_scope_format(c->scope, "%.*s%s%.*s", HF_FMT(made), made.len ? ", " : "",
                               HF_FMT(path));
        paths = paths.len ? hf_str_of(paths.ptr + 1, paths.len - 1) : (struct hf_str){0};
    }
    return made;
}

const char *hf__cli_item_assignment(struct hf_str word, struct hf_str *name)
{
    const char *equals = memchr(word.ptr, '=', word.len);

    if (!equals || equals == word.ptr)
        return NULL;
    *name = hf_str_of(word.ptr, (size_t)(equals - word.ptr));
    return equals + 1;
}

enum hf_status hf__cli_item_word(struct command_ctx *c, struct hf_str word, struct hf_value *value)
{
    struct hf_str error = {0};
    const struct json_node *json = hf__cli_json_read(c->scope, word, &error);

    if (!json) {
        *value = hf_value_make(c->scope, (struct hf_attr){.type = HF_TYPE_S, .text = word});
        return value->ptr ? HF_OK : HF_NOMEM;
    }
    if (hf__cli_plain_read(c->scope, json, value, &error))
        return HF_OK;
    return hf__command_fail(c, CLI_USAGE, "%.*s: %.*s", HF_FMT(word), HF_FMT(error));
}
