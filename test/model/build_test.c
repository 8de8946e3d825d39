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
