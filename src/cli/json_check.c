/*
 * cli/json_check.c: is a text JSON? For payloads, which are stored as they are: nothing is built
 * from them, so their size does not matter, and a member may come twice.
 *
 * One loop, and a bit for each array or object that is open. What always holds: no byte behind the
 * end is read, and every byte is looked at once.
 */
#include "cli/json.h"

#include <string.h>

struct checker {
    const unsigned char *at;
    const unsigned char *end;
    unsigned depth;
    bool objects[JSON_CHECK_DEPTH_MAX]; /* by depth: an object, or an array */
};

static void skip_space(struct checker *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\t' || *c->at == '\n' || *c->at == '\r'))
        c->at++;
}

static bool take(struct checker *c, char character)
{
    skip_space(c);
    if (c->at == c->end || *c->at != (unsigned char)character)
        return false;
    c->at++;
    return true;
}

static bool take_word(struct checker *c, const char *word)
{
    size_t len = strlen(word);

    if ((size_t)(c->end - c->at) < len || memcmp(c->at, word, len) != 0)
        return false;
    c->at += len;
    return true;
}

static bool take_escape(struct checker *c)
{
    static const char hex[] = "0123456789abcdefABCDEF";

    if (c->at == c->end)
        return false;
    if (*c->at != 'u')
        return *c->at && strchr("\"\\/bfnrt", *c->at++);
    c->at++;
    for (int i = 0; i < 4; i++, c->at++)
        if (c->at == c->end || !memchr(hex, *c->at, sizeof(hex) - 1))
            return false;
    return true;
}

/* Behind the first quote. */
static bool take_text(struct checker *c)
{
    while (c->at < c->end && *c->at != '"') {
        size_t len = hf__json_character_len(c->at, (size_t)(c->end - c->at));

        if (len == 0 || *c->at < 0x20)
            return false;
        c->at += len;
        if (c->at[-1] == '\\' && !take_escape(c))
            return false;
    }
    return take(c, '"');
}

static bool take_digits(struct checker *c)
{
    const unsigned char *start = c->at;

    while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
        c->at++;
    return c->at > start;
}

static bool take_number(struct checker *c)
{
    const unsigned char *digits;

    if (c->at < c->end && *c->at == '-')
        c->at++;
    digits = c->at;
    if (!take_digits(c) || (*digits == '0' && c->at - digits > 1))
        return false;
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (!take_digits(c))
            return false;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        return take_digits(c);
    }
    return true;
}

static bool take_name(struct checker *c)
{
    return take(c, '"') && take_text(c) && take(c, ':');
}

/* What opens: then its first value is next, or its end. */
static bool open_one(struct checker *c, bool object, bool *value_is_next)
{
    if (c->depth == JSON_CHECK_DEPTH_MAX)
        return false;
    c->objects[c->depth++] = object;
    *value_is_next = !take(c, object ? '}' : ']');
    if (!*value_is_next)
        c->depth--;
    return !*value_is_next || !object || take_name(c);
}

static bool take_simple(struct checker *c)
{
    skip_space(c);
    if (take(c, '"'))
        return take_text(c);
    return take_word(c, "null") || take_word(c, "true") || take_word(c, "false") || take_number(c);
}

/* Behind a value: close what ends here. *value_is_next: another one follows. */
static bool after_value(struct checker *c, bool *value_is_next)
{
    *value_is_next = false;
    while (c->depth > 0) {
        bool object = c->objects[c->depth - 1];

        if (take(c, ',')) {
            *value_is_next = true;
            return !object || take_name(c);
        }
        if (!take(c, object ? '}' : ']'))
            return false;
        c->depth--;
    }
    return true;
}

size_t hf__json_check(struct hf_str text)
{
    struct checker c = {.at = (const unsigned char *)text.ptr,
                        .end = (const unsigned char *)text.ptr + text.len};
    bool value_is_next = true, fine = true;
    size_t line = 1;

    while (fine && value_is_next) {
        if (take(&c, '{'))
            fine = open_one(&c, true, &value_is_next);
        else if (take(&c, '['))
            fine = open_one(&c, false, &value_is_next);
        else
            fine = take_simple(&c) && !(value_is_next = false);
        if (fine && !value_is_next)
            fine = after_value(&c, &value_is_next);
    }
    skip_space(&c);
    if (fine && c.at == c.end)
        return 0;
    for (const char *at = text.ptr; at < (const char *)c.at; at++)
        line += *at == '\n';
    return line;
}
