/*
 * coord/json.c: walking over the JSON of events and of change records, by base/json.h.
 *
 * Where a member is, not what it says: texts, numbers and items are left to the one reader of
 * DynamoDB's JSON, hf_item_from_json(), which is as strict as the database is, and the same way
 * back to hf_item_to_json().
 *
 *  (1) What was walked over is JSON, and UTF-8, also where nobody looks any closer.
 *  (2) A member that is looked for may come once.
 *  (3) An error says where: which byte, counted from 1.
 *  (4) Payloads are passed on as they are written, so half of a surrogate pair may be escaped in
 *      one: other readers of JSON take that, too.
 */
#include "coord/pattern.h"

#include "base/json.h"

/* ---- values --------------------------------------------------------------------------------- */

static enum hf_status not_json(struct json_reader *r, const char *what)
{
    return hf_scope_fail(r->s, r->status, "the event is not valid JSON: %s at byte %zu", what,
                         r->at + 1);
}

/* (4) */
static struct json_cursor cursor_of(const struct json_reader *r)
{
    struct hf_str text = r->text.ptr ? r->text : HF_STR("");

    return (struct json_cursor){.at = text.ptr + r->at,
                                .end = text.ptr + text.len,
                                .lone_halves = true};
}

/* Where the cursor is now; `done` is whether it could go on. */
static enum hf_status reader_follow(struct json_reader *r, const struct json_cursor *json,
                                    bool done)
{
    assert(json->at <= json->end && (size_t)(json->end - json->at) <= r->text.len);
    r->at = r->text.len - (size_t)(json->end - json->at);
    return done ? HF_OK : not_json(r, json->wrong);
}

char hf__pattern_json_look(struct json_reader *r)
{
    struct json_cursor json = cursor_of(r);

    hf__json_spaces(&json);
    (void)reader_follow(r, &json, true);
    return json.at < json.end ? *json.at : '\0';
}

bool hf__pattern_json_take(struct json_reader *r, char c)
{
    if (hf__pattern_json_look(r) != c || r->at >= r->text.len)
        return false;
    r->at++;
    return true;
}

enum hf_status hf__pattern_json_end(struct json_reader *r)
{
    (void)hf__pattern_json_look(r);
    return r->at < r->text.len ? not_json(r, "something follows the value") : HF_OK;
}

/* How deep a value may be that is `depth` levels deep itself. */
static int levels_below(int depth)
{
    return depth > JSON_DEPTH_MAX ? 0 : JSON_DEPTH_MAX + 1 - depth;
}

enum hf_status hf__pattern_json_pass(struct json_reader *r, int depth)
{
    struct json_cursor json = cursor_of(r);
    bool done = hf__json_skip(&json, levels_below(depth));

    return reader_follow(r, &json, done);
}

/* ---- members -------------------------------------------------------------------------------- */

/* The one that is looked for, or NULL. */
static enum hf_status find_member(struct json_reader *r, struct hf_str name,
                                  struct json_member *members, size_t len,
                                  struct json_member **member)
{
    *member = NULL;
    for (size_t i = 0; i < len; i++)
        if (str_is(name, members[i].name))
            *member = &members[i];
    if (!*member && r->closed && members)
        return hf_scope_fail(r->s, r->status, "the event has an unknown member \"%.*s\"",
                             HF_FMT(name));
    return HF_OK;
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

/* One member, or one element. */
static enum hf_status pass_one(struct json_reader *r, struct json_cursor *json, int depth, char end,
                               struct json_member *members, size_t len)
{
    struct json_member *member = NULL;
    struct json_string name;
    size_t from;

    if (end == '}') {
        TRY(reader_follow(r, json, hf__json_name(json, &name)));
        TRY(find_member(r, name.raw, members, len, &member));
    }
    hf__json_spaces(json);
    TRY(reader_follow(r, json, true));
    from = r->at;
    TRY(reader_follow(r, json, hf__json_skip(json, levels_below(depth))));
    return member ? note_member(r, member, from) : HF_OK;
}

enum hf_status hf__pattern_json_all(struct json_reader *r, int depth, char end,
                                    struct json_member *members, size_t len)
{
    struct json_cursor json = cursor_of(r);

    if (levels_below(depth) == 0)
        return not_json(r, "too many levels");
    for (bool more = hf__json_enter(&json, end); more; more = hf__json_more(&json, end))
        TRY(pass_one(r, &json, depth + 1, end, members, len));
    return reader_follow(r, &json, hf__json_sound(&json));
}

enum hf_status hf__pattern_json_object(struct json_reader *r, struct json_member *members,
                                       size_t len)
{
    if (hf__pattern_json_look(r) != '{')
        return not_json(r, "expected an object");
    TRY(hf__pattern_json_all(r, 0, '}', members, len));
    return hf__pattern_json_end(r);
}

/* ---- by way of items ------------------------------------------------------------------------ */

enum hf_status hf__pattern_json_value(struct hf_scope *s, enum hf_type type, struct hf_str raw,
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

struct hf_str hf__pattern_json_raw(struct hf_scope *s, struct hf_attr attr)
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
