/* cli/plain_test.c: items as plain JSON; (n) is an invariant of plain.c. */
#include "cli/item/plain.h"
#include "test.h"

#include <stdlib.h>

static struct hf_item read_item(struct hf_scope *s, const char *text)
{
    struct hf_item item = {0};
    struct hf_str error = {0};

    if (!hf__cli_plain_read_item(s, hf_str_from(text), &item, &error))
        fail_msg("%s: %.*s", text, HF_FMT(error));
    return item;
}

TEST(plain, every_type_has_its_form)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        const char *plain;
        const char *dynamodb;
    } cases[] = {
        {"{\"a\":\"x\"}", "{\"a\":{\"S\":\"x\"}}"},
        {"{\"a\":12345678901234567890123456789012345678}",
         "{\"a\":{\"N\":\"12345678901234567890123456789012345678\"}}"},
        {"{\"a\":{\"$binary\":\"aGk=\"}}", "{\"a\":{\"B\":\"aGk=\"}}"},
        {"{\"a\":true,\"b\":false,\"c\":null}",
         "{\"a\":{\"BOOL\":true},\"b\":{\"BOOL\":false},\"c\":{\"NULL\":true}}"},
        {"{\"a\":[1,[],{}]}", "{\"a\":{\"L\":[{\"N\":\"1\"},{\"L\":[]},{\"M\":{}}]}}"},
        {"{\"a\":{\"$set\":[\"x\",\"y\"]}}", "{\"a\":{\"SS\":[\"x\",\"y\"]}}"},
        {"{\"a\":{\"$set\":[1,2.5]}}", "{\"a\":{\"NS\":[\"1\",\"2.5\"]}}"},
        {"{\"a\":{\"$set\":[{\"$binary\":\"AA==\"}]}}", "{\"a\":{\"BS\":[\"AA==\"]}}"},
        {"{\"a\":{\"$map\":{\"$set\":[1]}}}", "{\"a\":{\"M\":{\"$set\":{\"L\":[{\"N\":\"1\"}]}}}}"},
        {"{\"a\":{\"$map\":{\"$odd\":1}}}", "{\"a\":{\"M\":{\"$odd\":{\"N\":\"1\"}}}}"},
        {"{\"a\":{\"$b\":1,\"$c\":2}}",
         "{\"a\":{\"M\":{\"$b\":{\"N\":\"1\"},\"$c\":{\"N\":\"2\"}}}}"},
        {"{\"$set\":1}", "{\"$set\":{\"N\":\"1\"}}"}, /* the item itself: any names */
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_item item = read_item(s, cases[i].plain);

        CHECK_STR(cases[i].dynamodb, hf_item_to_json(s, item));
        CHECK_STR(cases[i].plain, hf__cli_plain_of_item(s, item));
    }
    hf_scope_free(s);
}

TEST(plain, what_is_no_item_is_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        const char *text;
        const char *error;
    } cases[] = {
        {"[]", "an item has to be a JSON object"},
        {"{\"a\":{\"$set\":[]}}", "$set has to be an array with at least one element"},
        {"{\"a\":{\"$set\":1}}", "$set has to be an array with at least one element"},
        {"{\"a\":{\"$set\":[1,\"x\"]}}",
         "the elements of a $set have to be all strings, all numbers or all $binary"},
        {"{\"a\":{\"$set\":[null]}}",
         "the elements of a $set have to be all strings, all numbers or all $binary"},
        {"{\"a\":{\"$binary\":\"a\"}}", "$binary is not base64"},
        {"{\"a\":{\"$binary\":1}}", "$binary has to be a string of base64"},
        {"{\"a\":{\"$map\":[]}}", "$map has to be an object"},
        {"{\"a\":{\"$oops\":1}}", "$oops is none of $set, $binary and $map; a map with that name "
                                  "alone is {\"$map\":{...}}"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct hf_str error = {0};
        struct hf_item item;

        CHECK(!hf__cli_plain_read_item(s, hf_str_from(cases[i].text), &item, &error));
        CHECK_STR(cases[i].error, error);
    }
    hf_scope_free(s);
}

/* ---- (1): random items --------------------------------------------------------------------- */

struct chance {
    struct hf_scope *s;
    uint64_t state;
};

static uint32_t chance_below(struct chance *c, uint32_t n)
{
    c->state = c->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(c->state >> 33) % n;
}

static struct hf_str any_text(struct chance *c)
{
    static const char *const texts[] = {"",           "a",  "$set",   "$binary", "$map",
                                        "\"\\\n\x01", "é😀", "a.b[0]", " x ",     "\x7f"};

    return hf_scope_format(c->s, "%s%s", texts[chance_below(c, 10)],
                           chance_below(c, 2) ? "" : texts[chance_below(c, 10)]);
}

static struct hf_str any_number(struct chance *c)
{
    struct hf_scope *s = c->s;

    switch (chance_below(c, 6)) {
    case 0:
        return hf_scope_format(s, "-%u", chance_below(c, 1000));
    case 1:
        return hf_scope_format(s, "0.%u", 1 + chance_below(c, 1000));
    case 2:
        return hf_scope_format(s, "%uE100", chance_below(c, 1000));
    case 3:
        return hf_scope_format(s, "-%uE-100", chance_below(c, 1000));
    case 4:
        return HF_STR("99999999999999999999999999999999999999");
    default:
        return hf_scope_format(s, "%u", chance_below(c, 100000));
    }
}

static struct hf_attr any_attr(struct chance *c, unsigned depth);

static struct hf_attr any_set(struct chance *c, enum hf_type type)
{
    size_t len = 1 + chance_below(c, 4);
    struct hf_str *list = hf_scope_alloc(c->s, len * sizeof(*list));

    for (size_t i = 0; i < len; i++)
        list[i] = type == HF_TYPE_NS ? any_number(c) : any_text(c);
    return (struct hf_attr){.type = type, .list = list, .list_len = len};
}

/* Members with names that are different: the same twice would be one. */
static struct hf_attr *any_members(struct chance *c, unsigned depth, size_t len, bool named)
{
    struct hf_attr *attrs = hf_scope_alloc(c->s, (len + 1) * sizeof(*attrs));

    for (size_t i = 0; i < len; i++) {
        struct hf_str text = any_text(c);

        attrs[i] = any_attr(c, depth);
        attrs[i].name = named ? hf_scope_format(c->s, "%.*s%zu", HF_FMT(text), i) : HF_STR("");
        if (named && i == 0 && chance_below(c, 2))
            attrs[i].name = chance_below(c, 2) ? HF_STR("$set") : HF_STR("$map");
    }
    return attrs;
}

static struct hf_attr any_attr(struct chance *c, unsigned depth)
{
    enum hf_type type = (enum hf_type)(HF_TYPE_S + chance_below(c, depth ? 10 : 5));
    size_t len = chance_below(c, 4);

    switch (type) {
    case HF_TYPE_N:
        return (struct hf_attr){.type = type, .text = any_number(c)};
    case HF_TYPE_M:
        return (struct hf_attr){
            .value = hf_item_value(hf_item_make(c->s, any_members(c, depth - 1, len, true), len))};
    case HF_TYPE_L:
        return (struct hf_attr){.value =
                                    hf_list_make(c->s, any_members(c, depth - 1, len, false), len)};
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return any_set(c, type);
    default:
        return (struct hf_attr){.type = type, .text = any_text(c), .number = chance_below(c, 2)};
    }
}

TEST(plain, any_item_comes_back_as_it_was)
{
    struct chance c = {.s = hf_scope_new(test_env(t)), .state = test_random(t)};

    for (unsigned i = 0; i < test_times(3000); i++) {
        size_t len = chance_below(&c, 5);
        struct hf_item item = hf_item_make(c.s, any_members(&c, 3, len, true), len), back;
        struct hf_str error = {0}, text;

        if (hf_item_check(c.s, item) != HF_OK)
            fail_msg("%s", hf_scope_error_text(c.s));
        text = hf__cli_plain_of_item(c.s, item);
        if (!hf__cli_plain_read_item(c.s, text, &back, &error))
            fail_msg("%.*s: %.*s", HF_FMT(text), HF_FMT(error));
        if (!hf_item_equal(item, back))
            fail_msg("%.*s\n%.*s\n%.*s", HF_FMT(text), HF_FMT(hf_item_to_json(c.s, item)),
                     HF_FMT(hf_item_to_json(c.s, back)));
        hf_scope_reset(c.s);
    }
    hf_scope_free(c.s);
}
