/*
 * expr/find_test.c: a finder finds what a walk finds, in containers of every size around its
 * limits.
 */
#include "expr/private.h"
#include "test.h"

static struct hf_value large_map(struct hf_scope *s, uint32_t count)
{
    struct hf__buf buf = {.scope = s};
    size_t open = hf__build_open(&buf, HF_TYPE_M);

    for (uint32_t i = 0; i < count; i++) {
        struct hf_str text = hf_scope_format(s, "n%06u", 2 * i);

        hf__build_name(&buf, text);
        hf__build_str(&buf, HF_TYPE_S, text);
    }
    hf__build_close(&buf, open);
    return hf__build_value_from(&buf, 0);
}

static struct hf_value large(struct hf_scope *s, enum hf_type type, uint32_t count)
{
    struct hf__buf buf = {.scope = s};
    size_t open = hf__build_open(&buf, type);

    for (uint32_t i = 0; i < count; i++) {
        struct hf_str text = hf_scope_format(s, "n%06u", 2 * i);

        if (type == HF_TYPE_L)
            hf__build_str(&buf, HF_TYPE_S, text);
        else
            hf__build_element(&buf, type, hf_bytes_of((const uint8_t *)text.ptr, text.len));
    }
    hf__build_close(&buf, open);
    return hf__build_value_from(&buf, 0);
}

static void compare(struct hf_scope *s, uint32_t count)
{
    struct hf_value map = large_map(s, count), list = large(s, HF_TYPE_L, count);
    struct hf_value set = large(s, HF_TYPE_SS, count);
    uint32_t step = count / 97 + 1;
    struct expr_finder finder;

    hf__expr_finder_begin(&finder);
    for (uint32_t i = 0; i <= 2 * count + 1; i += i + 5 < 2 * count && i > 5 ? step : 1) {
        struct hf_str name = hf_scope_format(s, "n%06u", i);
        struct hf_bytes bytes = hf_bytes_of((const uint8_t *)name.ptr, name.len);

        CHECK(hf_value_equal(hf__expr_find_name(&finder, map, name), hf_value_get(map, name)));
        CHECK(hf__expr_find_element(&finder, set, bytes) == hf__set_has(set, bytes));
        CHECK(hf_value_equal(hf__expr_find_index(&finder, list, i),
                             hf__expr_find_index(NULL, list, i)));
        CHECK((hf__expr_find_index(&finder, list, i).ptr != NULL) == (i < count));
    }
    CHECK(!hf__expr_find_name(&finder, map, HF_STR("")).ptr);
    CHECK(!hf__expr_find_name(&finder, map, HF_STR("zzz")).ptr);
    CHECK(!hf__expr_find_name(&finder, list, HF_STR("n000000")).ptr);
    CHECK(!hf__expr_find_index(&finder, map, 0).ptr);
}

TEST(expr_find, what_a_walk_finds)
{
    static const uint32_t counts[] = {1,
                                      FINDER_MEMBERS - 1,
                                      FINDER_MEMBERS,
                                      FINDER_MEMBERS + 1,
                                      FINDER_NOTES - 1,
                                      FINDER_NOTES,
                                      FINDER_NOTES + 1,
                                      2 * FINDER_NOTES,
                                      40001};

    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        struct hf_scope *s = hf_scope_new(NULL);

        compare(s, counts[i]);
        hf_scope_free(s);
    }
}

/* More containers than it has room for: it goes round, and finds everything still. */
TEST(expr_find, many_containers)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_value maps[2 * FINDER_CONTAINERS + 1];
    struct expr_finder finder;

    for (uint32_t i = 0; i < ARRAY_LEN(maps); i++)
        maps[i] = large_map(s, 100 + i);
    hf__expr_finder_begin(&finder);
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < ARRAY_LEN(maps); i++) {
            struct hf_str last = hf_scope_format(s, "n%06u", 2 * (99 + i));

            CHECK(hf__expr_find_name(&finder, maps[i], last).ptr);
            CHECK(!hf__expr_find_name(&finder, maps[i], HF_STR("n000001")).ptr);
        }
    hf_scope_free(s);
}
