/*
 * wire/jansson_test.c: the reader and the writer against jansson, an implementation of JSON that
 * knows nothing of ours.
 */
#include "model/value.h"
#include "wire/wire.h"

#include "base/base64.h"
#include "test.h"

#include <jansson.h>

struct writer {
    struct test *t;
    struct hf__buf *buf;
};

static size_t below(struct writer *w, size_t bound)
{
    return (size_t)test_random_below(w->t, bound);
}

static void put(struct writer *w, const char *text)
{
    hf__buf_put_str(w->buf, hf_str_from(text));
}

/* ---- is it JSON? ---------------------------------------------------------------------------- */

static void random_string(struct writer *w)
{
    static const char *const pieces[] = {"a",
                                         "key",
                                         "\\n",
                                         "\\u00e9",
                                         "\\\"",
                                         "\\\\",
                                         "\\/",
                                         "\xC3\xA9",
                                         " ",
                                         "\\ud83d\\ude00",
                                         "0123456789abcdefg",
                                         "\xF0\x9F\x98\x80",
                                         "\\u20aC",
                                         "{"};
    size_t count = below(w, 5);

    put(w, "\"");
    for (size_t i = 0; i < count; i++)
        put(w, pieces[below(w, 14)]);
    put(w, "\"");
}

static void random_document(struct writer *w, int depth)
{
    static const char *const scalars[] = {"true", "false", "null",     "0",   "-1",
                                          "1.5",  "1e5",   "-0.25E-3", "123", "0.0"};
    static const char *const spaces[] = {"", "", "", " ", "\n", "\t \r\n"};
    size_t kind = below(w, depth > 5 ? 2 : 5);
    size_t count = below(w, 4);

    put(w, spaces[below(w, 6)]);
    if (kind == 0) {
        put(w, scalars[below(w, 10)]);
    } else if (kind == 1) {
        random_string(w);
    } else {
        bool object = kind == 2;

        put(w, object ? "{" : "[");
        for (size_t i = 0; i < count; i++) {
            put(w, i ? "," : "");
            put(w, spaces[below(w, 6)]);
            if (object) {
                random_string(w);
                put(w, spaces[below(w, 6)]);
                put(w, ":");
            }
            random_document(w, depth + 1);
        }
        put(w, object ? "}" : "]");
    }
    put(w, spaces[below(w, 6)]);
}

static void mutate(struct writer *w)
{
    static const char some[] = "{}[]\",:\\ue0nt1.-+ \xC3\xA9\x80\x01";
    size_t changes = 1 + below(w, 3);

    for (size_t i = 0; i < changes && w->buf->len > 0; i++) {
        size_t at = below(w, w->buf->len);

        switch (below(w, 4)) {
        case 0:
            w->buf->len = at;
            break;
        case 1:
            memmove(w->buf->ptr + at, w->buf->ptr + at + 1, w->buf->len - at - 1);
            w->buf->len--;
            break;
        default:
            w->buf->ptr[at] =
                (uint8_t)(below(w, 3) ? some[below(w, sizeof(some) - 1)] : (char)test_random(w->t));
            break;
        }
    }
}

/* What jansson refuses although it is JSON: numbers too large for it, and \u0000 in a name. */
static bool only_jansson_cannot(const json_error_t *error)
{
    switch (json_error_code(error)) {
    case json_error_numeric_overflow:
    case json_error_null_byte_in_key:
    case json_error_null_character:
        return true;
    default:
        return false;
    }
}

TEST(jansson, agrees_on_what_json_is)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    int good = 0, bad = 0;

    for (int round = 0; round < 20000; round++) {
        struct hf__buf buf = {.scope = s};
        struct writer w = {t, &buf};
        json_error_t error;
        json_t *tree;
        bool ours;

        random_document(&w, 0);
        if (round % 2)
            mutate(&w);
        CHECK(!buf.failed);
        ours = hf__wire_json_valid(hf_str_of((const char *)buf.ptr, buf.len));
        tree = json_loadb((const char *)buf.ptr, buf.len,
                          JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL, &error);
        /* A NUL byte is never JSON, but jansson loses one that stands behind a number. */
        if (memchr(buf.ptr, '\0', buf.len))
            CHECK(!ours);
        else if (ours != (tree != NULL) && !(ours && only_jansson_cannot(&error)))
            fail_msg("we say %d, jansson %d (%s): %.*s", ours, tree != NULL, error.text,
                     (int)buf.len, (const char *)buf.ptr);
        good += ours;
        bad += !ours;
        json_decref(tree);
        hf_scope_reset(s);
    }
    CHECK(good > 5000 && bad > 2000);
    hf_scope_free(s);
}

/* ---- items ---------------------------------------------------------------------------------- */

/* A random item twice over: as ours, and as the tree of its JSON. */
struct twin {
    struct test *t;
    struct hf_scope *s;
};

static size_t twin_below(struct twin *w, size_t bound)
{
    return (size_t)test_random_below(w->t, bound);
}

static struct hf_str twin_text(struct twin *w)
{
    static const char *const pieces[] = {"a",
                                         "Z",
                                         "\"",
                                         "\\",
                                         "\n",
                                         "\x02",
                                         "/",
                                         "\xC3\xA9",
                                         "\xF0\x9F\x98\x80",
                                         "long enough to fill a block"};
    struct hf__buf buf = {.scope = w->s};
    size_t count = twin_below(w, 5);

    for (size_t i = 0; i < count; i++)
        hf__buf_put_str(&buf, hf_str_from(pieces[twin_below(w, 10)]));
    CHECK(hf__buf_reserve(&buf, 1));
    return hf_str_of((const char *)buf.ptr, buf.len);
}

static json_t *tree_of(struct hf_str text)
{
    json_t *tree = json_stringn(text.ptr, text.len);

    CHECK(tree);
    return tree;
}

static json_t *tree_of_binary(struct twin *w, struct hf_str bytes)
{
    char *text = hf_scope_alloc(w->s, hf__base64_encoded_len(bytes.len) + 1);

    CHECK(text);
    return tree_of(hf_str_of(text, hf__base64_encode(hf_bytes_of(bytes.ptr, bytes.len), text)));
}

static struct hf_value twin_value(struct twin *w, int depth, json_t **tree);

static struct hf_item twin_item(struct twin *w, int depth, json_t **tree)
{
    struct hf_item item = hf_item_make(w->s, NULL, 0);
    size_t count = twin_below(w, 5);

    *tree = json_object();
    for (size_t i = 0; i < count; i++) {
        json_t *member;
        struct hf_str text = twin_text(w);
        struct hf_attr attr = {.name = hf_scope_format(w->s, "%zu%.*s", twin_below(w, 100),
                                                       HF_FMT(text)),
                               .value = twin_value(w, depth + 1, &member)};

        item = hf_item_with(w->s, item, &attr, 1);
        CHECK_INT(0, json_object_set_new(*tree, attr.name.ptr, member));
    }
    return item;
}

static struct hf_value twin_set(struct twin *w, enum hf_type type, json_t **tree)
{
    struct hf_str list[3];
    size_t count = 1 + twin_below(w, 3);

    /* In their canonical order, so that the trees have one order too. */
    *tree = json_array();
    for (size_t i = 0; i < count; i++) {
        struct hf_str text = twin_text(w);

        list[i] = type == HF_TYPE_NS ? hf_scope_format(w->s, "%zu.5", i)
                                     : hf_scope_format(w->s, "%zu%.*s", i, HF_FMT(text));
        json_array_append_new(*tree,
                              type == HF_TYPE_BS ? tree_of_binary(w, list[i]) : tree_of(list[i]));
    }
    return hf_value_make(w->s, (struct hf_attr){.type = type, .list = list, .list_len = count});
}

static struct hf_value twin_list(struct twin *w, int depth, json_t **tree)
{
    struct hf_attr attrs[3];
    size_t count = twin_below(w, 4);

    *tree = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *element;

        attrs[i] = (struct hf_attr){.value = twin_value(w, depth + 1, &element)};
        json_array_append_new(*tree, element);
    }
    return hf_list_make(w->s, attrs, count);
}

static struct hf_value twin_value(struct twin *w, int depth, json_t **tree)
{
    enum hf_type type = (enum hf_type)(1 + twin_below(w, depth > 5 ? 5 : 10));
    struct hf_attr attr = {.type = type, .number = (int64_t)twin_below(w, 2)};
    struct hf_value value;
    json_t *inner;

    switch (type) {
    case HF_TYPE_M:
        value = hf_item_value(twin_item(w, depth, &inner));
        break;
    case HF_TYPE_L:
        value = twin_list(w, depth, &inner);
        break;
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        value = twin_set(w, type, &inner);
        break;
    case HF_TYPE_N:
        attr.text = hf_scope_format(w->s, "%d", (int)twin_below(w, 100000) - 50000);
        inner = tree_of(attr.text);
        value = hf_value_make(w->s, attr);
        break;
    case HF_TYPE_BOOL:
    case HF_TYPE_NULL:
        inner = json_boolean(type == HF_TYPE_NULL || attr.number);
        value = hf_value_make(w->s, attr);
        break;
    default:
        attr.text = twin_text(w);
        inner = type == HF_TYPE_B ? tree_of_binary(w, attr.text) : tree_of(attr.text);
        value = hf_value_make(w->s, attr);
        break;
    }
    *tree = json_object();
    CHECK_INT(0, json_object_set_new(*tree, hf__type_name(type), inner));
    return value;
}

TEST(jansson, agrees_on_items_both_ways)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (int round = 0; round < 3000; round++) {
        static const size_t styles[] = {
            0, JSON_COMPACT, JSON_INDENT(2), JSON_ENSURE_ASCII, JSON_ESCAPE_SLASH, JSON_SORT_KEYS};
        struct twin w = {t, s};
        struct hf_item item, read;
        struct hf_str json;
        json_t *tree, *parsed;
        json_error_t error;
        char *dumped;

        item = twin_item(&w, 1, &tree);
        json = hf_item_to_json(s, item);
        CHECK(json.ptr);
        parsed = json_loadb(json.ptr, json.len, 0, &error);
        if (!parsed || !json_equal(parsed, tree))
            fail_msg("written: %.*s", HF_FMT(json));
        dumped = json_dumps(tree, styles[test_random_below(t, ARRAY_LEN(styles))]);
        CHECK(dumped);
        CHECK_OK(hf_item_from_json(s, hf_str_from(dumped), &read));
        if (!hf_item_equal(item, read))
            fail_msg("read: %s", dumped);
        free(dumped);
        json_decref(parsed);
        json_decref(tree);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}
