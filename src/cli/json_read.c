/*
 * cli/json_read.c: JSON from a file or an argument, as a tree in the scope.
 *
 * What always holds:
 *
 *  (1) The text is read once, and no byte behind its end.
 *  (2) An error says at which line, and what was expected there.
 *  (3) A member that comes twice is an error: which of the two was meant cannot be known.
 */
#include "cli/json.h"

#include <string.h>

struct reader {
    struct hf_scope *s;
    const char *start;
    const char *at;
    const char *end;
    struct hf_str error;
};

static struct json *fail(struct reader *r, const char *what)
{
    size_t line = 1;

    for (const char *at = r->start; at < r->at; at++)
        line += *at == '\n';
    if (!r->error.ptr)
        r->error = hf_scope_format(r->s, "line %zu: %s", line, what);
    return NULL;
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

static bool take(struct reader *r, char character)
{
    skip_space(r);
    if (r->at == r->end || *r->at != character)
        return false;
    r->at++;
    return true;
}

static bool take_word(struct reader *r, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(r->end - r->at) < len || memcmp(r->at, word, len) != 0)
        return false;
    r->at += len;
    return true;
}

/* ---- strings -------------------------------------------------------------------------------- */

static int hex_digit(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

static bool take_hex(struct reader *r, uint32_t *unit)
{
    *unit = 0;
    for (int i = 0; i < 4; i++, r->at++) {
        int digit = r->at < r->end ? hex_digit(*r->at) : -1;

        if (digit < 0)
            return false;
        *unit = *unit << 4 | (uint32_t)digit;
    }
    return true;
}

static size_t put_character(char *to, uint32_t code)
{
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xC0 | code >> 6);
        to[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xE0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 63));
        to[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    to[0] = (char)(0xF0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
    return 4;
}

/* Behind "\u". */
static bool take_unicode(struct reader *r, uint32_t *code)
{
    uint32_t low;

    if (!take_hex(r, code))
        return false;
    if (*code < 0xD800 || *code > 0xDFFF)
        return true;
    if (*code > 0xDBFF || !take_word(r, "\\u") || !take_hex(r, &low) || low < 0xDC00 ||
        low > 0xDFFF)
        return false;
    *code = 0x10000 + ((*code - 0xD800) << 10) + (low - 0xDC00);
    return true;
}

static bool take_escape(struct reader *r, char *to, size_t *len)
{
    static const char names[] = "\"\\/bfnrt";
    static const char meanings[] = "\"\\/\b\f\n\r\t";
    const char *known;
    uint32_t code;

    if (r->at == r->end)
        return false;
    if (*r->at == 'u') {
        r->at++;
        if (!take_unicode(r, &code))
            return false;
        *len += put_character(to + *len, code);
        return true;
    }
    known = memchr(names, *r->at, sizeof(names) - 1);
    if (!known)
        return false;
    to[(*len)++] = meanings[known - names];
    r->at++;
    return true;
}

/* Behind its first quote. */
static bool take_text(struct reader *r, struct hf_str *text)
{
    char *to = hf_scope_alloc(r->s, (size_t)(r->end - r->at) + 1);
    size_t len = 0;

    if (!to)
        return fail(r, "out of memory") != NULL;
    while (r->at < r->end && *r->at != '"') {
        if ((unsigned char)*r->at < 0x20)
            return fail(r, "a control character in a string") != NULL;
        if (*r->at != '\\') {
            to[len++] = *r->at++;
            continue;
        }
        r->at++;
        if (!take_escape(r, to, &len))
            return fail(r, "an escape that JSON does not have") != NULL;
    }
    if (r->at == r->end)
        return fail(r, "a string has no end") != NULL;
    r->at++;
    to[len] = '\0';
    *text = hf_str_of(to, len);
    return true;
}

/* The same with room for that string alone: many strings would be many times the whole text. */
static bool take_short_text(struct reader *r, struct hf_str *text)
{
    const char *at = r->at;
    struct reader part = *r;
    bool fine;

    while (at < r->end && *at != '"')
        at += *at == '\\' && at + 1 < r->end ? 2 : 1;
    if (at < r->end)
        part.end = at + 1;
    fine = take_text(&part, text);
    r->at = part.at;
    r->error = part.error;
    return fine;
}

/* ---- values --------------------------------------------------------------------------------- */

static void skip_digits(struct reader *r)
{
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
}

static bool take_number(struct reader *r, struct hf_str *text)
{
    const char *start = r->at;
    const char *digits;

    if (r->at < r->end && *r->at == '-')
        r->at++;
    digits = r->at;
    skip_digits(r);
    if (r->at == digits || (*digits == '0' && r->at - digits > 1))
        return false;
    if (r->at < r->end && *r->at == '.') {
        digits = ++r->at;
        skip_digits(r);
        if (r->at == digits)
            return false;
    }
    if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
        r->at++;
        if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
            r->at++;
        digits = r->at;
        skip_digits(r);
        if (r->at == digits)
            return false;
    }
    *text = hf_scope_copy(r->s, hf_str_of(start, (size_t)(r->at - start)));
    return text->ptr != NULL;
}

static struct json *take_value(struct reader *r, unsigned depth);

static bool has_member(const struct json *object, struct hf_str name)
{
    for (const struct json *member = object->first; member; member = member->next)
        if (hf_str_equal(member->name, name))
            return true;
    return false;
}

static bool take_elements(struct reader *r, struct json *whole, char end, unsigned depth)
{
    struct json **link = &whole->first;

    if (take(r, end))
        return true;
    do {
        struct hf_str name = {0};
        struct json *element;

        if (whole->kind == JSON_OBJECT) {
            if (!take(r, '"'))
                return fail(r, "expected a name in quotes") != NULL;
            if (!take_short_text(r, &name))
                return false;
            if (has_member(whole, name))
                return fail(r, "a member comes twice") != NULL;
            if (!take(r, ':'))
                return fail(r, "expected ':'") != NULL;
        }
        element = take_value(r, depth + 1);
        if (!element)
            return false;
        element->name = name;
        *link = element;
        link = &element->next;
        whole->len++;
    } while (take(r, ','));
    if (take(r, end))
        return true;
    return fail(r, end == '}' ? "expected ',' or '}'" : "expected ',' or ']'") != NULL;
}

/* What a value is, behind the blanks before it. */
static struct json *take_kind(struct reader *r, struct json *json, unsigned depth)
{
    if (take(r, '{')) {
        json->kind = JSON_OBJECT;
        return take_elements(r, json, '}', depth) ? json : NULL;
    }
    if (take(r, '[')) {
        json->kind = JSON_ARRAY;
        return take_elements(r, json, ']', depth) ? json : NULL;
    }
    if (take(r, '"')) {
        json->kind = JSON_TEXT;
        return take_short_text(r, &json->text) ? json : NULL;
    }
    if (take_word(r, "null"))
        return json;
    json->kind = JSON_TRUE;
    if (take_word(r, "true"))
        return json;
    json->kind = JSON_FALSE;
    if (take_word(r, "false"))
        return json;
    json->kind = JSON_NUMBER;
    return take_number(r, &json->text) ? json : fail(r, "expected a value");
}

static struct json *take_value(struct reader *r, unsigned depth)
{
    struct json *json = hf_scope_alloc(r->s, sizeof(*json));
    const char *start;

    if (!json)
        return fail(r, "out of memory");
    if (depth > JSON_DEPTH_MAX)
        return fail(r, "too deep");
    *json = (struct json){.kind = JSON_NULL};
    skip_space(r);
    start = r->at;
    if (!take_kind(r, json, depth))
        return NULL;
    json->raw = hf_str_of(start, (size_t)(r->at - start));
    return json;
}

const struct json *hf__json_read(struct hf_scope *s, struct hf_str text, struct hf_str *error)
{
    struct reader r = {.s = s, .start = text.ptr, .at = text.ptr, .end = text.ptr + text.len};
    struct json *json = take_value(&r, 0);

    skip_space(&r);
    if (json && r.at < r.end)
        json = fail(&r, "something follows the value");
    *error = r.error.ptr || json ? r.error : HF_STR("out of memory");
    return json;
}

const struct json *hf__json_member(const struct json *object, const char *name)
{
    if (object->kind != JSON_OBJECT)
        return NULL;
    for (const struct json *member = object->first; member; member = member->next)
        if (hf_str_equal(member->name, hf_str_from(name)))
            return member;
    return NULL;
}

/* ---- as values ------------------------------------------------------------------------------ */

struct hf_value hf__json_to_value(struct hf_scope *s, const struct json *json)
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
    case JSON_TEXT:
        return hf_value_make(s, (struct hf_attr){.type = HF_TYPE_S, .text = json->text});
    case JSON_ARRAY:
    case JSON_OBJECT:
        break;
    }
    attrs = hf_scope_alloc(s, (json->len + 1) * sizeof(*attrs));
    if (!attrs)
        return (struct hf_value){0};
    for (const struct json *element = json->first; element; element = element->next) {
        struct hf_value value = hf__json_to_value(s, element);

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
