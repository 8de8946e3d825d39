/* model/build_test.c: what a program writes in place is checked as what comes by wire is. */
#include <holdfast/item.h>

#include "test.h"

#define CHECK_SPOILED(s, expected, item)                                                           \
    do {                                                                                           \
        CHECK_STATUS(HF_INVALID, hf_item_check((s), (item)));                                      \
        CHECK_STR((expected), hf_str_from(hf_scope_error_text(s)));                                \
    } while (0)

/* Otherwise the item's JSON would be none. */
TEST(build, strings_and_names_are_utf8)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str strings[] = {HF_STR("fine"), HF_STR("caf\xE9")};

    CHECK_OK(hf_item_check(s, HF_ITEM(s, HF_S("a", HF_STR("caf\xC3\xA9")),
                                      HF_B("b", hf_bytes_of("\xFF", 1)), HF_BS("c", strings, 2))));
    CHECK_SPOILED(s, "Attribute \"a\": the string is not UTF-8",
                  HF_ITEM(s, HF_S("a", HF_STR("caf\xE9"))));
    CHECK_SPOILED(s, "Attribute \"a\": a string of the set is not UTF-8",
                  HF_ITEM(s, HF_SS("a", strings, 2)));
    CHECK_SPOILED(s, "Attribute \"?\": the name is not UTF-8", HF_ITEM(s, HF_N("caf\xE9", 1)));
    CHECK_SPOILED(s, "Attribute \"a\": there is no such type",
                  HF_ITEM(s, ((struct hf_attr){.name = HF_STR("a"), .type = (enum hf_type)99})));
    CHECK_SPOILED(s, "Attribute \"\": the string is not UTF-8",
                  HF_ITEM(s, HF_L("l", HF_LIST(s, HF_S("", HF_STR("\xFF"))))));
    hf_scope_free(s);
}

/* A copy lives in its own scope, also one of an item that could not be built. */
TEST(build, a_copy_of_a_spoiled_item_outlives_it)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scope *other = hf_scope_new(test_env(t));
    struct hf_item copy = hf_item_copy(other, HF_ITEM(s, HF_NUM("n", HF_STR("one"))));

    hf_scope_free(s);
    CHECK_SPOILED(other, "Attribute \"n\": not a number", copy);
    hf_scope_free(other);
}

/* What a double stands for is stored, and comes back; what no number can be is an error. */
TEST(build, doubles)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item =
        HF_ITEM(s, HF_F("price", 9.99), HF_N("whole", 3), HF_S("text", HF_STR("9")));
    double value = 0;

    CHECK_STR("{\"price\":{\"N\":\"9.99\"},\"text\":{\"S\":\"9\"},\"whole\":{\"N\":\"3\"}}",
              hf_item_to_json(s, item));
    CHECK(hf_value_f64(hf_item_get(item, HF_STR("price")), &value) && value == 9.99);
    CHECK(hf_value_f64(hf_item_get(item, HF_STR("whole")), &value) && value == 3);
    CHECK(!hf_value_f64(hf_item_get(item, HF_STR("text")), &value));
    CHECK(!hf_value_f64(hf_item_get(item, HF_STR("none")), &value));
    CHECK_SPOILED(s, "Attribute \"a\": NaN and infinity are no numbers here",
                  HF_ITEM(s, HF_F("a", 0.0 / (value - 3))));
    CHECK_SPOILED(s, "Attribute \"a\": NaN and infinity are no numbers here",
                  HF_ITEM(s, HF_F("a", -1 / (value - 3))));
    CHECK_SPOILED(s, "Attribute \"a\": a number out of range", HF_ITEM(s, HF_F("a", 1e126)));
    CHECK_SPOILED(s, "Attribute \"a\": a number out of range", HF_ITEM(s, HF_F("a", -1e-131)));
    hf_scope_free(s);
}

/* Names that are known at run time, beside literals. */
TEST(build, names_of_run_time)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str strings[] = {HF_STR("x")};
    struct hf_item item =
        HF_ITEM(s, HF_S("a", HF_STR("1")), hf_attr_of_str(HF_STR("b"), HF_STR("2")),
                hf_attr_of_i64(HF_STR("c"), -3), hf_attr_of_f64(HF_STR("d"), 0.25),
                hf_attr_of_value(HF_STR("e"), HF_LIST(s, HF_N("", 1))),
                hf_attr_of_set(HF_STR("f"), HF_TYPE_SS, strings, 1),
                hf_attr_of(HF_STR("g"), HF_TYPE_BOOL, hf_str_of(NULL, 0), 1));

    CHECK_STR(
        "{\"a\":{\"S\":\"1\"},\"b\":{\"S\":\"2\"},\"c\":{\"N\":\"-3\"},\"d\":{\"N\":\"0.25\"},"
        "\"e\":{\"L\":[{\"N\":\"1\"}]},\"f\":{\"SS\":[\"x\"]},\"g\":{\"BOOL\":true}}",
        hf_item_to_json(s, item));
    hf_scope_free(s);
}

/* Lists and sets of any kind, element after element, as hf_value_at() has them. */
TEST(build, lists_and_sets_are_walked)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const char *const texts[] = {
        "{\"v\":{\"L\":[{\"N\":\"1\"},{\"S\":\"\"},{\"L\":[]},{\"NULL\":true},{\"M\":{}}]}}",
        "{\"v\":{\"SS\":[\"a\",\"bb\",\"\\u00e4\"]}}",
        "{\"v\":{\"NS\":[\"1\",\"-2.5\",\"1E40\"]}}",
        "{\"v\":{\"BS\":[\"AA==\",\"AAE=\"]}}",
        "{\"v\":{\"L\":[]}}",
        "{\"v\":{\"S\":\"abc\"}}",
        "{\"v\":{\"M\":{\"a\":{\"N\":\"1\"}}}}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        struct hf_value_walk walk = {.index = 0};
        struct hf_value value;
        struct hf_item item;
        size_t len = 0;

        CHECK_OK(hf_item_from_json(s, hf_str_from(texts[i]), &item));
        value = hf_item_get(item, HF_STR("v"));
        for (; hf_value_next(s, value, &walk); len++) {
            CHECK_INT(len, walk.index);
            CHECK(hf_value_equal(hf_value_at(s, value, len), walk.value));
        }
        CHECK_INT(hf_value_type(value) == HF_TYPE_M ? 0 : hf_value_count(value), len);
        CHECK(!hf_value_next(s, value, &walk) || len == 0);
    }
    CHECK(!hf_value_next(s, (struct hf_value){NULL, 0}, &(struct hf_value_walk){.index = 0}));
    hf_scope_free(s);
}
