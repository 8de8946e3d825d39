/*
 * cli/frame/output/json_read.c: JSON from a file or an argument, as a tree in the scope, by base/json.h.
 *
 * What always holds:
 *
 *  (1) The text is read once, and no byte behind its end.
 *  (2) An error says at which line, and what was expected there.
 *  (3) A member that comes twice is an error: which of the two was meant cannot be known. In a large
 *      object they are found by sorting, so that the time does not grow with its square. Payloads
 *      are stored as they are, so they are only checked: there a member may come twice, and their
 *      size does not matter, as nothing is built from them.
 */
#include "cli/frame/output/json.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { MEMBERS_COMPARED = 32 }; /* of an object, one with all before it; more are sorted */

struct reader {
    struct hf_scope *s;
    struct json_cursor json;
    const char *start;
    struct hf_str error;
};

static size_t line_at(const char *start, const char *end)
{
    size_t line = 1;

    assert(start <= end);
    for (const char *at = start; at < end; at++)
        line += *at == '\n';
    return line;
}

static struct json_node *reader_fail(struct reader *r, const char *what)
{
    if (!r->error.ptr)
        r->error = hf_scope_format(r->s, "line %zu: %s", line_at(r->start, r->json.at), what);
    return NULL;
}

/* The cursor could go on, or has said why not. */
static bool went_on(struct reader *r, bool done)
{
    return done || reader_fail(r, r->json.wrong) != NULL;
}

static bool copy_string(struct reader *r, const struct json_string *string, struct hf_str *text)
{
    char *to = hf_scope_alloc(r->s, string->raw.len + 1);
    size_t len;

    assert(string->raw.ptr || !string->raw.len);
    if (!to)
        return reader_fail(r, "out of memory") != NULL;
    len = hf__json_unescape(string->raw, to);
    assert(len <= string->raw.len); /* an escape is longer than what it stands for */
    to[len] = '\0';
    *text = hf_str_of(to, len);
    return true;
}

static struct json_node *take_value(struct reader *r, unsigned depth);

static bool has_member(const struct json_node *object, struct hf_str name)
{
    assert(object->kind == JSON_OBJECT);
    for (const struct json_node *member = object->first; member; member = member->next)
        if (hf_str_equal(member->name, name))
            return true;
    return false;
}

static bool take_name(struct reader *r, const struct json_node *object, struct hf_str *name)
{
    struct json_string string;

    assert(object->kind == JSON_OBJECT);
    if (!went_on(r, hf__json_name(&r->json, &string)) || !copy_string(r, &string, name))
        return false;
    return object->len >= MEMBERS_COMPARED || !has_member(object, *name) ||
           reader_fail(r, "duplicate member") != NULL;
}

/* By name; of two with one name, the first in the text first. */
static int members_compare(const void *a, const void *b)
{
    const struct json_node *left = *(const struct json_node *const *)a;
    const struct json_node *right = *(const struct json_node *const *)b;
    int order;

    if (left->name.len != right->name.len)
        return left->name.len < right->name.len ? -1 : 1;
    order = memcmp(left->name.ptr, right->name.ptr, left->name.len);
    if (order)
        return order;
    return (left->raw.ptr > right->raw.ptr) - (left->raw.ptr < right->raw.ptr);
}

/* (3) */
static bool members_differ(struct reader *r, const struct json_node *object)
{
    const struct json_node **members, *twice = NULL;
    size_t len = 0;

    if (object->kind != JSON_OBJECT || object->len <= MEMBERS_COMPARED)
        return true;
    members = hf_scope_alloc(r->s, object->len * sizeof(const struct json_node *));
    if (!members)
        return reader_fail(r, "out of memory") != NULL;
    for (const struct json_node *member = object->first; member; member = member->next)
        members[len++] = member;
    assert(len == object->len);
    qsort(members, len, sizeof(const struct json_node *), members_compare);
    for (size_t i = 1; i < len; i++)
        if (hf_str_equal(members[i - 1]->name, members[i]->name) &&
            (!twice || members[i]->raw.ptr < twice->raw.ptr))
            twice = members[i];
    if (twice)
        r->json.at = twice->raw.ptr; /* (2) */
    return !twice || reader_fail(r, "duplicate member") != NULL;
}

static bool take_elements(struct reader *r, struct json_node *whole, unsigned depth)
{
    char end = whole->kind == JSON_OBJECT ? '}' : ']';
    struct json_node **link = &whole->first;

    assert((whole->kind == JSON_OBJECT || whole->kind == JSON_ARRAY) && !whole->first &&
           !whole->len);
    for (bool more = hf__json_enter(&r->json, end); more; more = hf__json_more(&r->json, end)) {
        struct hf_str name = {0};
        struct json_node *element;

        if (whole->kind == JSON_OBJECT && !take_name(r, whole, &name))
            return false;
        element = take_value(r, depth + 1);
        if (!element)
            return false;
        element->name = name;
        *link = element;
        link = &element->next;
        whole->len++;
    }
    return went_on(r, hf__json_sound(&r->json)) && members_differ(r, whole);
}

static bool take_number(struct reader *r, struct hf_str *text)
{
    if (!went_on(r, hf__json_number(&r->json, text)))
        return false;
    *text = hf_scope_copy(r->s, *text);
    return text->ptr || reader_fail(r, "out of memory") != NULL;
}

/* What a value is, behind the blanks before it. */
static bool take_kind(struct reader *r, struct json_node *json, unsigned depth)
{
    struct json_string string;

    switch (json->kind) {
    case JSON_OBJECT:
    case JSON_ARRAY:
        return take_elements(r, json, depth);
    case JSON_STRING:
        return went_on(r, hf__json_string(&r->json, &string)) &&
               copy_string(r, &string, &json->text);
    case JSON_NUMBER:
        return take_number(r, &json->text);
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL:
        return went_on(r, hf__json_word(&r->json, json->kind));
    case JSON_BAD:
        break;
    }
    return went_on(r, false);
}

static struct json_node *take_value(struct reader *r, unsigned depth)
{
    struct json_node *json = hf_scope_alloc(r->s, sizeof(*json));
    const char *start;

    if (!json)
        return reader_fail(r, "out of memory");
    if (depth > CLI_JSON_DEPTH_MAX)
        return reader_fail(r, "nested too deeply");
    *json = (struct json_node){.kind = hf__json_kind(&r->json)};
    start = r->json.at;
    if (!take_kind(r, json, depth))
        return NULL;
    json->raw = hf_str_of(start, (size_t)(r->json.at - start));
    return json;
}

const struct json_node *hf__cli_json_read(struct hf_scope *s, struct hf_str text,
                                          struct hf_str *error)
{
    struct reader r = {.s = s,
                       .json = {.at = text.ptr, .end = text.ptr + text.len},
                       .start = text.ptr};
    struct json_node *json = take_value(&r, 0);

    if (json && !hf__json_ended(&r.json))
        json = reader_fail(&r, "unexpected text after the value");
    *error = r.error.ptr || json ? r.error : HF_STR("out of memory");
    return json;
}

size_t hf__cli_json_check(struct hf_str text)
{
    struct json_cursor json = {.at = text.ptr, .end = text.ptr + text.len, .lone_halves = true};

    return hf__json_skip_all(&json, JSON_LEVELS_MAX) ? 0 : line_at(text.ptr, json.at);
}

const struct json_node *hf__cli_json_member(const struct json_node *object, const char *name)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json_node *member = object->first; member; member = member->next)
        if (hf_str_equal(member->name, hf_str_from(name)))
            return member;
    return NULL;
}

/* ---- as values ------------------------------------------------------------------------------ */

struct hf_value hf__cli_json_to_value(struct hf_scope *s, const struct json_node *json)
{
    struct hf_attr *attrs;
    size_t len = 0;

    switch (json->kind) {
    case JSON_NULL:
        return hf_value_make(s, (struct hf_attr){.type = HF_TYPE_NULL});
    case JSON_FALSE:
    case JSON_TRUE:
        return hf_value_make(s, (struct hf_attr){.type = HF_TYPE_BOOL,
                                                 .number = json->kind == JSON_TRUE});
    case JSON_NUMBER:
        return hf_value_make(s, (struct hf_attr){.type = HF_TYPE_N, .text = json->text});
    case JSON_STRING:
        return hf_value_make(s, (struct hf_attr){.type = HF_TYPE_S, .text = json->text});
    case JSON_ARRAY:
    case JSON_OBJECT:
    case JSON_BAD: /* there is none in a tree */
        break;
    }
    attrs = hf_scope_alloc(s, (json->len + 1) * sizeof(*attrs));
    if (!attrs)
        return (struct hf_value){0};
    for (const struct json_node *element = json->first; element; element = element->next) {
        struct hf_value value = hf__cli_json_to_value(s, element);

        if (!value.ptr)
            return value;
        attrs[len++] =
            (struct hf_attr){.name = json->kind == JSON_OBJECT ? element->name : HF_STR(""),
                             .value = value};
    }
    if (json->kind == JSON_ARRAY)
        return hf_list_make(s, attrs, len);
    return hf_item_value(hf_item_make(s, attrs, len));
}
