/*
 * coord/plain.c: values as plain JSON, {"id": "ann"}, and back, by way of DynamoDB's JSON,
 * {"id": {"S": "ann"}}, which the library reads and writes. One walk over the text, either way.
 *
 *  (1) Texts, numbers and binary values (base64) stay as they are written; sets become lists, which
 *      come back as lists.
 *  (2) What is written is never longer than its DynamoDB's JSON, and no value of plain JSON becomes
 *      longer by more than WRAP_MAX bytes: room is taken once.
 */
#include "coord/pattern.h"

enum { WRAP_MAX = 16 }; /* {"BOOL":} */

struct plain {
    struct json_reader r;
    char *out;
    size_t len, cap; /* of `out` (2) */
};

typedef enum hf_status element_fn(struct plain *p, int depth);

static void text_put(struct plain *p, struct hf_str text)
{
    assert(text.len <= p->cap - p->len && "(2)");
    if (text.len)
        memcpy(p->out + p->len, text.ptr, text.len);
    p->len += text.len;
}

static enum hf_status char_expect(struct plain *p, char c)
{
    return hf__pattern_json_take(&p->r, c)
               ? HF_OK
               : hf_scope_fail(p->r.s, p->r.status, "expected '%c' at byte %zu", c, p->r.at + 1);
}

/* The next value as it is written. */
static enum hf_status value_raw(struct plain *p, struct hf_str *text)
{
    size_t from;

    (void)hf__pattern_json_look(&p->r);
    from = p->r.at;
    TRY(hf__pattern_json_pass(&p->r, 0));
    *text = hf_str_of(p->r.text.ptr + from, p->r.at - from);
    return HF_OK;
}

/* All of an object or a list, each element by that function. */
static enum hf_status elements_walk(struct plain *p, int depth, char open, char close,
                                    element_fn *element)
{
    if (depth > JSON_DEPTH_MAX)
        return hf_scope_fail(p->r.s, p->r.status, "more than %d levels", JSON_DEPTH_MAX);
    TRY(char_expect(p, open));
    text_put(p, hf_str_of(&open, 1));
    for (bool first = true; !hf__pattern_json_take(&p->r, close); first = false) {
        if (!first) {
            TRY(char_expect(p, ','));
            text_put(p, HF_STR(","));
        }
        if (open == '{') {
            struct hf_str name;

            if (hf__pattern_json_look(&p->r) != '"')
                return char_expect(p, '"');
            TRY(value_raw(p, &name));
            TRY(char_expect(p, ':'));
            text_put(p, name);
            text_put(p, HF_STR(":"));
        }
        TRY(element(p, depth + 1));
    }
    text_put(p, hf_str_of(&close, 1));
    return HF_OK;
}

/* ---- to plain JSON -------------------------------------------------------------------------- */

/* A number, which is a text there. */
static enum hf_status number_of(struct plain *p, int depth)
{
    struct hf_str text;

    (void)depth;
    TRY(value_raw(p, &text));
    assert(text.len > 2);
    text_put(p, hf_str_of(text.ptr + 1, text.len - 2));
    return HF_OK;
}

static enum hf_status plain_of(struct plain *p, int depth)
{
    struct hf_str type, text;

    TRY(char_expect(p, '{'));
    TRY(value_raw(p, &type));
    TRY(char_expect(p, ':'));
    if (hf_str_equal(type, HF_STR("\"M\""))) {
        TRY(elements_walk(p, depth, '{', '}', plain_of));
    } else if (hf_str_equal(type, HF_STR("\"L\""))) {
        TRY(elements_walk(p, depth, '[', ']', plain_of));
    } else if (hf_str_equal(type, HF_STR("\"NS\""))) {
        TRY(elements_walk(p, depth, '[', ']', number_of));
    } else if (hf_str_equal(type, HF_STR("\"N\""))) {
        TRY(number_of(p, depth));
    } else {
        TRY(value_raw(p, &text));
        text_put(p, hf_str_equal(type, HF_STR("\"NULL\"")) ? HF_STR("null") : text);
    }
    return char_expect(p, '}');
}

enum hf_status hf__plain_write(struct hf_scope *s, struct hf_value value, struct hf_str *json)
{
    struct hf_str typed = hf_item_to_json(s, HF_ITEM(s, HF_V("v", value)));
    const struct hf_str before = HF_STR("{\"v\":");
    struct plain p = {.r = {.s = s, .text = typed, .at = before.len, .status = HF_CORRUPT}};

    p.cap = typed.len + 1;
    p.out = hf_scope_alloc(s, p.cap);
    TRY(hf_scope_built(s));
    assert(typed.len > before.len && memcmp(typed.ptr, before.ptr, before.len) == 0);
    TRY(plain_of(&p, 0));
    *json = hf_str_of(p.out, p.len);
    return HF_OK;
}

/* ---- from plain JSON ------------------------------------------------------------------------ */

static enum hf_status typed_of(struct plain *p, int depth)
{
    char c = hf__pattern_json_look(&p->r);
    bool number = c == '-' || (c >= '0' && c <= '9');
    struct hf_str text;

    if (c == '{' || c == '[') {
        text_put(p, c == '{' ? HF_STR("{\"M\":") : HF_STR("{\"L\":"));
        TRY(elements_walk(p, depth, c, c == '{' ? '}' : ']', typed_of));
        text_put(p, HF_STR("}"));
        return HF_OK;
    }
    TRY(value_raw(p, &text));
    text_put(p, c == '"'               ? HF_STR("{\"S\":")
                : number               ? HF_STR("{\"N\":\"")
                : c == 't' || c == 'f' ? HF_STR("{\"BOOL\":")
                                       : HF_STR("{\"NULL\":"));
    text_put(p, c == 'n' ? HF_STR("true") : text);
    text_put(p, number ? HF_STR("\"}") : HF_STR("}"));
    return HF_OK;
}

enum hf_status hf__plain_read(struct hf_scope *s, struct hf_str json, struct hf_item *item)
{
    struct plain p = {.r = {.s = s, .text = json, .status = HF_SERIALIZATION}};
    size_t values = 1;

    /* There are at most as many values as there are of these, and one. */
    for (size_t i = 0; i < json.len; i++)
        values += json.ptr[i] == ',' || json.ptr[i] == ':' || json.ptr[i] == '[';
    p.cap = json.len + values * WRAP_MAX + 1;
    p.out = hf_scope_alloc(s, p.cap);
    TRY(hf_scope_built(s));
    TRY(elements_walk(&p, 0, '{', '}', typed_of));
    TRY(hf__pattern_json_end(&p.r));
    return hf_item_from_json(s, hf_str_of(p.out, p.len), item);
}
