/*
 * cli/item/plain.c: items as plain JSON. See plain.h.
 *
 * What always holds:
 *
 *  (1) What was written is read as an equal item, of any types and depth.
 *  (2) An object is taken for something else than a map only if it has one member, and the name of
 *      that begins with $. A name after $ that is not known is an error: it may be a slip.
 */
#include "cli/item/plain.h"

#include <assert.h>
#include <string.h>

#include "base/base64.h"

static const char tag_set[] = "$set", tag_binary[] = "$binary", tag_map[] = "$map";

/* ---- writing -------------------------------------------------------------------------------- */

/* Would the map be taken for something else? (2) */
static bool map_looks_tagged(struct hf_item map)
{
    struct hf_item_walk walk = {.next = 0};

    return hf_item_count(map) == 1 && hf_item_next(map, &walk) && walk.name.len > 0 &&
           walk.name.ptr[0] == '$';
}

static void map_write(FILE *out, struct hf_scope *s, struct hf_item map)
{
    bool tagged = map_looks_tagged(map);

    if (tagged)
        fprintf(out, "{\"%s\":", tag_map);
    hf__cli_json_write_members(out, s, map, hf__cli_plain_write);
    if (tagged)
        fputc('}', out);
}

void hf__cli_plain_write(FILE *out, struct hf_scope *s, struct hf_value value)
{
    switch (hf_value_type(value)) {
    case HF_TYPE_M:
        map_write(out, s, hf_value_item(value));
        return;
    case HF_TYPE_L:
        hf__cli_json_write_elements(out, s, value, hf__cli_plain_write);
        return;
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        fprintf(out, "{\"%s\":", tag_set);
        hf__cli_json_write_elements(out, s, value, hf__cli_plain_write);
        fputc('}', out);
        return;
    case HF_TYPE_B:
        fprintf(out, "{\"%s\":", tag_binary);
        hf__cli_json_write_value(out, s, value);
        fputc('}', out);
        return;
    case HF_TYPE_NONE:
    case HF_TYPE_S:
    case HF_TYPE_N:
    case HF_TYPE_BOOL:
    case HF_TYPE_NULL:
        hf__cli_json_write_value(out, s, value);
        return;
    }
}

void hf__cli_plain_write_item(FILE *out, struct hf_scope *s, struct hf_item item)
{
    hf__cli_json_write_members(out, s, item, hf__cli_plain_write);
}

struct hf_str hf__cli_plain_of_value(struct hf_scope *s, struct hf_value value)
{
    return hf__cli_json_of(s, value, hf__cli_plain_write);
}

struct hf_str hf__cli_plain_of_item(struct hf_scope *s, struct hf_item item)
{
    struct json_text text;

    if (hf__cli_json_text_begin(&text))
        hf__cli_plain_write_item(text.out, s, item);
    return hf__cli_json_text_end(&text, s);
}

/* ---- reading -------------------------------------------------------------------------------- */

struct plain_reader {
    struct hf_scope *s;
    struct hf_str *error;
};

static bool reader_fails(struct plain_reader *r, const char *what)
{
    assert(what);
    if (!r->error->ptr)
        *r->error = hf_scope_format(r->s, "%s", what);
    return false;
}

/* What could not be built from its parts says so when the whole is checked. */
static bool value_made(struct plain_reader *r, struct hf_value made, struct hf_value *value)
{
    *value = made;
    return made.ptr || reader_fails(r, "out of memory");
}

static bool value_read(struct plain_reader *r, const struct json_node *json,
                       struct hf_value *value);

static bool bytes_read(struct plain_reader *r, const struct json_node *json, struct hf_str *bytes)
{
    uint8_t *room;
    size_t len = 0;

    assert(bytes);
    if (json->kind != JSON_STRING)
        return reader_fails(r, "$binary has to be a string of base64");
    room = hf_scope_alloc(r->s, hf__base64_decoded_max(json->text.len) + 1);
    if (!room)
        return reader_fails(r, "out of memory");
    if (hf__base64_decode(json->text, room, &len) != BASE64_OK)
        return reader_fails(r, "$binary is not base64");
    assert(len <= hf__base64_decoded_max(json->text.len));
    *bytes = hf_str_of((const char *)room, len);
    return true;
}

static const struct json_node *tag_of(const struct json_node *json, const char *tag)
{
    assert(tag[0] == '$');
    if (json->kind != JSON_OBJECT || json->len != 1)
        return NULL;
    return hf_str_equal(json->first->name, hf_str_from(tag)) ? json->first : NULL;
}

/* Which set an element belongs to; HF_TYPE_NONE: to none. */
static enum hf_type set_of(const struct json_node *element)
{
    if (element->kind == JSON_STRING)
        return HF_TYPE_SS;
    if (element->kind == JSON_NUMBER)
        return HF_TYPE_NS;
    return tag_of(element, tag_binary) ? HF_TYPE_BS : HF_TYPE_NONE;
}

static bool set_read(struct plain_reader *r, const struct json_node *json, struct hf_value *value)
{
    struct hf_attr attr = {.type = HF_TYPE_NONE};
    struct hf_str *list;

    if (json->kind != JSON_ARRAY || json->len == 0)
        return reader_fails(r, "$set has to be an array with at least one element");
    list = hf_scope_alloc(r->s, json->len * sizeof(*list));
    if (!list)
        return reader_fails(r, "out of memory");
    attr.type = set_of(json->first);
    for (const struct json_node *at = json->first; at; at = at->next) {
        if (attr.type == HF_TYPE_NONE || set_of(at) != attr.type)
            return reader_fails(r, "the elements of a $set have to be all strings, all numbers or "
                                   "all $binary");
        list[attr.list_len] = at->text;
        if (attr.type == HF_TYPE_BS && !bytes_read(r, at->first, &list[attr.list_len]))
            return false;
        attr.list_len++;
    }
    assert(attr.list_len == json->len);
    attr.list = list;
    if (!value_made(r, hf_value_make(r->s, attr), value))
        return false;
    return hf_value_count(*value) == attr.list_len ||
           hf_value_type(*value) != attr.type || /* what is wrong with it is said later */
           reader_fails(r, "a $set has an element twice");
}

/* The members of an object, or the elements of an array, as attributes in the scope. */
static bool members_read(struct plain_reader *r, const struct json_node *json,
                         struct hf_attr **attrs)
{
    size_t len = 0;

    assert(json->kind == JSON_OBJECT || json->kind == JSON_ARRAY);
    *attrs = hf_scope_alloc(r->s, (json->len + 1) * sizeof(**attrs));
    if (!*attrs)
        return reader_fails(r, "out of memory");
    for (const struct json_node *at = json->first; at; at = at->next) {
        struct hf_attr attr = {.name = json->kind == JSON_OBJECT ? at->name : HF_STR("")};

        if (!value_read(r, at, &attr.value))
            return false;
        (*attrs)[len++] = attr;
    }
    assert(len == json->len);
    return true;
}

static bool map_read(struct plain_reader *r, const struct json_node *json, struct hf_value *value)
{
    struct hf_attr *attrs;

    if (json->kind != JSON_OBJECT)
        return reader_fails(r, "$map has to be an object");
    return members_read(r, json, &attrs) &&
           value_made(r, hf_item_value(hf_item_make(r->s, attrs, json->len)), value);
}

static bool object_read(struct plain_reader *r, const struct json_node *json,
                        struct hf_value *value)
{
    const struct json_node *inner;
    struct hf_str bytes;

    assert(json->kind == JSON_OBJECT);
    if ((inner = tag_of(json, tag_set)))
        return set_read(r, inner, value);
    if ((inner = tag_of(json, tag_map)))
        return map_read(r, inner, value);
    if ((inner = tag_of(json, tag_binary)))
        return bytes_read(r, inner, &bytes) &&
               value_made(r,
                          hf_value_make(r->s, (struct hf_attr){.type = HF_TYPE_B, .text = bytes}),
                          value);
    if (json->len == 1 && json->first->name.len && json->first->name.ptr[0] == '$') {
        if (!r->error->ptr)
            *r->error = hf_scope_format(r->s,
                                        "%.*s is none of $set, $binary and $map; a map with that "
                                        "name alone is {\"$map\":{...}}",
                                        HF_FMT(json->first->name));
        return false;
    }
    return map_read(r, json, value);
}

static bool value_read(struct plain_reader *r, const struct json_node *json, struct hf_value *value)
{
    struct hf_attr *attrs;

    if (json->kind == JSON_OBJECT)
        return object_read(r, json, value);
    if (json->kind == JSON_ARRAY)
        return members_read(r, json, &attrs) &&
               value_made(r, hf_list_make(r->s, attrs, json->len), value);
    return value_made(r, hf__cli_json_to_value(r->s, json), value);
}

/* ---- which attribute it is -------------------------------------------------------------------- */

static bool number_is_bad(struct plain_reader *r, const struct json_node *json, struct hf_str path)
{
    static const char unnamed[] = "Attribute \"\": ";
    struct hf_attr attr = {.name = path, .type = HF_TYPE_N, .text = json->text};
    const char *said;

    if (json->kind != JSON_NUMBER || hf_item_check(r->s, hf_item_make(r->s, &attr, 1)) == HF_OK)
        return false;
    said = hf_scope_error_text(r->s);
    if (strncmp(said, unnamed, strlen(unnamed)) == 0)
        said += strlen(unnamed);
    (void)reader_fails(r, said);
    return true;
}

/*
 * After a failure: find the first number that is none and say where it is. The values were built without names,
 * so what was found then does not say it. How deep it goes is bounded by the reader of JSON.
 */
static bool number_find(struct plain_reader *r, const struct json_node *json, struct hf_str path)
{
    size_t i = 0;

    for (const struct json_node *at = json->first; at; at = at->next, i++) {
        struct hf_str deeper = path;

        if (json->kind == JSON_ARRAY)
            deeper = hf_scope_format(r->s, "%.*s[%zu]", HF_FMT(path), i);
        else if (json->len != 1 || !at->name.len || at->name.ptr[0] != '$')
            deeper = hf_scope_format(r->s, "%.*s%s%.*s", HF_FMT(path), path.len ? "." : "",
                                     HF_FMT(at->name));
        if (deeper.ptr && number_find(r, at, deeper))
            return true;
    }
    return number_is_bad(r, json, path);
}

static bool check_fails(struct plain_reader *r, const struct json_node *json)
{
    struct hf_str said = hf_scope_copy(r->s, hf_str_from(hf_scope_error_text(r->s)));

    assert(hf_scope_error(r->s)->status != HF_OK);
    return number_find(r, json, HF_STR("")) ? false : reader_fails(r, said.ptr ? said.ptr : "");
}

bool hf__cli_plain_read(struct hf_scope *s, const struct json_node *json, struct hf_value *value,
                        struct hf_str *error)
{
    struct plain_reader r = {.s = s, .error = error};

    assert(json && error);
    if (!value_read(&r, json, value))
        return false;
    if (hf_item_check(s, HF_ITEM(s, HF_V("value", *value))) != HF_OK)
        return check_fails(&r, json);
    return true;
}

bool hf__cli_plain_read_item(struct hf_scope *s, struct hf_str text, struct hf_item *item,
                             struct hf_str *error)
{
    const struct json_node *json = hf__cli_json_read(s, text, error);
    struct plain_reader r = {.s = s, .error = error};
    struct hf_value value;

    assert(error);
    if (!json)
        return false;
    if (json->kind != JSON_OBJECT)
        return reader_fails(&r, "an item has to be a JSON object");
    if (!map_read(&r, json, &value))
        return false;
    *item = hf_value_item(value);
    if (hf_item_check(s, *item) != HF_OK)
        return check_fails(&r, json);
    return true;
}
