/*
 * patterns/json.c: walking over JSON, as installed headers have nothing for it.
 *
 * Where a member is, not what it says: texts, numbers and items are left to the one reader of
 * DynamoDB's JSON, hf_item_from_json(), which is as strict as the database is, and the same way
 * back to hf_item_to_json().
 *
 *  (1) What was walked over is JSON, and UTF-8, also where nobody looks any closer.
 *  (2) A member that is looked for may come once.
 *  (3) An error says where: which byte, counted from 1.
 */
#include "patterns/private.h"

/* ---- values --------------------------------------------------------------------------------- */

static enum hf_status not_json(struct json_reader *r, const char *what)
{
    return hf_scope_fail(r->s, r->status, "the event is no JSON: %s at byte %zu", what, r->at + 1);
}

char hf__json_look(struct json_reader *r)
{
    while (r->at < r->text.len && (r->text.ptr[r->at] == ' ' || r->text.ptr[r->at] == '\t' ||
                                   r->text.ptr[r->at] == '\n' || r->text.ptr[r->at] == '\r'))
        r->at++;
    return r->at < r->text.len ? r->text.ptr[r->at] : '\0';
}

bool hf__json_take(struct json_reader *r, char c)
{
    if (r->at >= r->text.len || hf__json_look(r) != c)
        return false;
    r->at++;
    return true;
}

enum hf_status hf__json_end(struct json_reader *r)
{
    (void)hf__json_look(r);
    return r->at < r->text.len ? not_json(r, "more behind the end") : HF_OK;
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static enum hf_status pass_escape(struct json_reader *r)
{
    char c = r->at < r->text.len ? r->text.ptr[r->at++] : '\0';

    if (c == 'u') {
        for (int i = 0; i < 4; i++, r->at++)
            if (r->at >= r->text.len || !is_hex(r->text.ptr[r->at]))
                return not_json(r, "a wrong escape");
        return HF_OK;
    }
    return char_in(c, "\"\\/bfnrt") ? HF_OK : not_json(r, "a wrong escape");
}

/* How many bytes a character outside of ASCII has; 0: it is none, or not in its shortest form. */
static size_t utf8_len(const unsigned char *p, size_t left)
{
    size_t len = p[0] >= 0xF0 ? 4 : p[0] >= 0xE0 ? 3 : 2;

    if (p[0] < 0xC2 || p[0] > 0xF4 || len > left)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((p[i] & 0xC0) != 0x80)
            return 0;
    if ((p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xED && p[1] > 0x9F) ||
        (p[0] == 0xF0 && p[1] < 0x90) || (p[0] == 0xF4 && p[1] > 0x8F))
        return 0;
    return len;
}

static enum hf_status pass_text(struct json_reader *r)
{
    if (!hf__json_take(r, '"'))
        return not_json(r, "no string");
    while (r->at < r->text.len) {
        unsigned char c = (unsigned char)r->text.ptr[r->at];

        if (c < ' ')
            return not_json(r, "a control character in a string");
        if (c >= 0x80) { /* (1) */
            size_t len = utf8_len((const unsigned char *)r->text.ptr + r->at, r->text.len - r->at);

            if (!len)
                return not_json(r, "no UTF-8 in a string");
            r->at += len;
            continue;
        }
        r->at++;
        if (c == '"')
            return HF_OK;
        if (c == '\\')
            TRY(pass_escape(r));
    }
    return not_json(r, "a string without an end");
}

static size_t pass_digits(struct json_reader *r)
{
    size_t from = r->at;

    while (r->at < r->text.len && r->text.ptr[r->at] >= '0' && r->text.ptr[r->at] <= '9')
        r->at++;
    return r->at - from;
}

static enum hf_status pass_number(struct json_reader *r)
{
    const char *ptr = r->text.ptr;
    size_t from, len = r->text.len;

    if (ptr[r->at] == '-')
        r->at++;
    from = r->at;
    if (!pass_digits(r) || (ptr[from] == '0' && r->at - from > 1))
        return not_json(r, "a wrong number");
    if (r->at < len && ptr[r->at] == '.') {
        r->at++;
        if (!pass_digits(r))
            return not_json(r, "a wrong number");
    }
    if (r->at < len && (ptr[r->at] == 'e' || ptr[r->at] == 'E')) {
        r->at++;
        if (r->at < len && (ptr[r->at] == '+' || ptr[r->at] == '-'))
            r->at++;
        if (!pass_digits(r))
            return not_json(r, "a wrong number");
    }
    return HF_OK;
}

static enum hf_status pass_word(struct json_reader *r)
{
    static const char *const words[] = {"true", "false", "null"};

    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        size_t len = strlen(words[i]);

        if (r->text.len - r->at >= len && memcmp(r->text.ptr + r->at, words[i], len) == 0) {
            r->at += len;
            return HF_OK;
        }
    }
    return not_json(r, "no value");
}

/* The name of a member, and the ':' behind it; *member is the one that is looked for, or NULL. */
static enum hf_status pass_name(struct json_reader *r, struct json_member *members, size_t len,
                                struct json_member **member)
{
    struct hf_str name;
    size_t from;

    *member = NULL;
    (void)hf__json_look(r);
    from = r->at;
    TRY(pass_text(r));
    name = hf_str_of(r->text.ptr + from + 1, r->at - from - 2);
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(hf_str_from(members[i].name), name))
            *member = &members[i];
    if (!*member && r->closed && members)
        return hf_scope_fail(r->s, r->status, "the event has \"%.*s\", which is no part of one",
                             HF_FMT(name));
    return hf__json_take(r, ':') ? HF_OK : not_json(r, "no ':'");
}

static enum hf_status note_member(struct json_reader *r, struct json_member *member, size_t from)
{
    if (member->found) /* (2) */
        return hf_scope_fail(r->s, r->status, "the event has \"%s\" twice, at byte %zu",
                             member->name, from + 1);
    member->found = true;
    member->at = from;
    if (r->text.ptr[from] != 'n')
        member->raw = hf_str_of(r->text.ptr + from, r->at - from);
    return HF_OK;
}

enum hf_status hf__json_all(struct json_reader *r, int depth, char end, struct json_member *members,
                            size_t len)
{
    r->at++;
    if (depth > JSON_DEPTH_MAX)
        return not_json(r, "more than 100 levels");
    if (hf__json_take(r, end))
        return HF_OK;
    do {
        struct json_member *member = NULL;
        size_t from;

        if (end == '}')
            TRY(pass_name(r, members, len, &member));
        (void)hf__json_look(r);
        from = r->at;
        TRY(hf__json_pass(r, depth + 1));
        if (member)
            TRY(note_member(r, member, from));
    } while (hf__json_take(r, ','));
    return hf__json_take(r, end) ? HF_OK
                                 : not_json(r, end == '}' ? "no ',' or '}'" : "no ',' or ']'");
}

enum hf_status hf__json_pass(struct json_reader *r, int depth)
{
    char c = hf__json_look(r);

    if (c == '{')
        return hf__json_all(r, depth, '}', NULL, 0);
    if (c == '[')
        return hf__json_all(r, depth, ']', NULL, 0);
    if (c == '"')
        return pass_text(r);
    if (c == '-' || (c >= '0' && c <= '9'))
        return pass_number(r);
    return pass_word(r);
}

enum hf_status hf__json_object(struct json_reader *r, struct json_member *members, size_t len)
{
    if (hf__json_look(r) != '{')
        return not_json(r, "no object");
    TRY(hf__json_all(r, 0, '}', members, len));
    return hf__json_end(r);
}

/* ---- by way of items ------------------------------------------------------------------------ */

enum hf_status hf__json_value(struct hf_scope *s, enum hf_type type, struct hf_str raw,
                              struct hf_value *value)
{
    const char *quote = type == HF_TYPE_N ? "\"" : "";
    const char *name = type == HF_TYPE_N ? "N" : type == HF_TYPE_B ? "B" : "S";
    struct hf_str json =
        hf_scope_format(s, "{\"v\":{\"%s\":%s%.*s%s}}", name, quote, HF_FMT(raw), quote);
    struct hf_item item;

    TRY(hf_scope_built(s));
    TRY(hf_item_from_json(s, json, &item));
    *value = hf_item_get(item, HF_STR("v"));
    return HF_OK;
}

struct hf_str hf__json_raw(struct hf_scope *s, struct hf_attr attr)
{
    static const char before[] = "{\"v\":{\"S\":", after[] = "}}";
    struct hf_str json;

    assert(attr.type == HF_TYPE_S || attr.type == HF_TYPE_B);
    attr.name = HF_STR("v");
    json = hf_item_to_json(s, hf_item_make(s, &attr, 1));
    if (!json.ptr)
        return json;
    assert(json.len >= strlen(before) + strlen(after));
    return hf_str_of(json.ptr + strlen(before), json.len - strlen(before) - strlen(after));
}
