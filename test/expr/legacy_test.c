/* expr/legacy_test.c: the parameters that came before expressions. */
#include "expr/private.h"

#include "help.h"

static const struct hf_str ab[] = {{"a", 1}, {"b", 1}};
static const struct hf_str b_only[] = {{"b", 1}};

static struct hf_item sample(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 10), HF_S("s", HF_STR("hello")),
                   HF_SS("set", ab, 2), HF_NULL("nul"),
                   HF_L("l", HF_LIST(s, HF_N("", 1), HF_N("", 2))));
}

static bool holds(struct hf_scope *s, const char *name, enum expr_compare compare,
                  struct hf_value a, struct hf_value b)
{
    const struct hf_value list[2] = {a, b};
    struct expr_legacy_condition condition = {.name = hf_str_from(name),
                                              .compare = compare,
                                              .values = list,
                                              .values_len = !a.ptr   ? 0
                                                            : !b.ptr ? 1
                                                                     : 2};
    struct expr_bound *bound;

    CHECK_OK(hf__expr_legacy_condition(s, &condition, 1, false, &bound));
    return hf__expr_match(bound, sample(s));
}

TEST(expr_legacy, comparisons)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_value none = {NULL, 0};
    struct hf_value ten = hf_value_make(s, (struct hf_attr)HF_N("", 10));
    struct hf_value five = hf_value_make(s, (struct hf_attr)HF_N("", 5));
    struct hf_value one = hf_value_make(s, (struct hf_attr)HF_N("", 1));
    struct hf_value he = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("he")));
    struct hf_value a = hf_value_make(s, (struct hf_attr)HF_S("", HF_STR("a")));

    CHECK(holds(s, "n", COMPARE_EQ, ten, none));
    CHECK(!holds(s, "n", COMPARE_EQ, five, none));
    CHECK(!holds(s, "no", COMPARE_EQ, ten, none));
    CHECK(!holds(s, "n", COMPARE_NE, ten, none));
    CHECK(holds(s, "n", COMPARE_NE, he, none));
    CHECK(holds(s, "no", COMPARE_NE, ten, none));
    CHECK(holds(s, "n", COMPARE_LE, ten, none));
    CHECK(!holds(s, "n", COMPARE_LT, ten, none));
    CHECK(holds(s, "n", COMPARE_GE, ten, none));
    CHECK(holds(s, "n", COMPARE_GT, five, none));
    CHECK(!holds(s, "s", COMPARE_GT, five, none));
    CHECK(holds(s, "n", COMPARE_BETWEEN, five, ten));
    CHECK(!holds(s, "n", COMPARE_BETWEEN, one, five));
    /* presence, not the type */
    CHECK(holds(s, "nul", COMPARE_NOT_NULL, none, none));
    CHECK(!holds(s, "nul", COMPARE_NULL, none, none));
    CHECK(holds(s, "no", COMPARE_NULL, none, none));
    CHECK(!holds(s, "no", COMPARE_NOT_NULL, none, none));
    CHECK(holds(s, "s", COMPARE_CONTAINS, he, none));
    CHECK(holds(s, "set", COMPARE_CONTAINS, a, none));
    CHECK(!holds(s, "set", COMPARE_CONTAINS, he, none));
    CHECK(holds(s, "l", COMPARE_CONTAINS, one, none));
    CHECK(!holds(s, "l", COMPARE_CONTAINS, five, none));
    CHECK(holds(s, "l", COMPARE_NOT_CONTAINS, five, none));
    CHECK(!holds(s, "l", COMPARE_NOT_CONTAINS, one, none));
    CHECK(!holds(s, "no", COMPARE_NOT_CONTAINS, one, none));
    CHECK(holds(s, "s", COMPARE_BEGINS_WITH, he, none));
    CHECK(!holds(s, "s", COMPARE_BEGINS_WITH, a, none));
    CHECK(holds(s, "n", COMPARE_IN, five, ten));
    CHECK(!holds(s, "n", COMPARE_IN, five, one));
    hf_scope_free(s);
}

TEST(expr_legacy, joined_by_and_or_or)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_value ten = hf_value_make(s, (struct hf_attr)HF_N("", 10));
    struct expr_legacy_condition list[3] = {
        {.name = HF_STR("n"), .compare = COMPARE_EQ, .values = &ten, .values_len = 1},
        {.name = HF_STR("no"), .compare = COMPARE_NOT_NULL},
        {.name = HF_STR("s"), .compare = COMPARE_NOT_NULL},
    };
    struct expr_bound *bound;
    const struct expr_path *paths;
    size_t len;

    CHECK_OK(hf__expr_legacy_condition(s, list, 3, false, &bound));
    CHECK(!hf__expr_match(bound, sample(s)));
    hf__expr_paths(bound, &paths, &len);
    CHECK_INT(3, len);
    CHECK_STR("no", paths[1].steps[0].name);
    CHECK_OK(hf__expr_legacy_condition(s, list, 3, true, &bound));
    CHECK(hf__expr_match(bound, sample(s)));
    CHECK(!hf__expr_match(bound, NO_ITEM));
    CHECK_OK(hf__expr_legacy_condition(s, list + 1, 2, true, &bound));
    CHECK(hf__expr_match(bound, sample(s)));
    CHECK_OK(hf__expr_legacy_condition(s, list, 0, false, &bound));
    CHECK(hf__expr_match(bound, NO_ITEM));
    CHECK_OK(hf__expr_legacy_condition(s, list, 0, true, &bound));
    CHECK(hf__expr_match(bound, NO_ITEM));
    hf_scope_free(s);
}

TEST(expr_legacy, key_conditions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_value two[2] = {hf_value_make(s, (struct hf_attr)HF_N("", 1)),
                              hf_value_make(s, (struct hf_attr)HF_N("", 9))};
    struct expr_legacy_condition list[2] = {
        {.name = HF_STR("sk"), .compare = COMPARE_BETWEEN, .values = two, .values_len = 2},
        {.name = HF_STR("pk"), .compare = COMPARE_EQ, .values = two, .values_len = 1},
    };
    struct expr_bound *bound;
    const struct expr_key_term *terms;
    size_t len;

    CHECK_OK(hf__expr_legacy_key(s, list, 2, &bound));
    hf__expr_key_terms(bound, &terms, &len);
    CHECK_INT(2, len);
    CHECK_STR("sk", terms[0].name);
    CHECK_INT(COMPARE_BETWEEN, terms[0].compare);
    CHECK(hf_value_equal(two[0], terms[0].low) && hf_value_equal(two[1], terms[0].high));
    CHECK(!terms[1].high.ptr);
    list[1].compare = COMPARE_NOT_NULL; /* whether it suits a key is for the table to say */
    list[1].values_len = 0;
    CHECK_OK(hf__expr_legacy_key(s, list, 2, &bound));
    hf__expr_key_terms(bound, &terms, &len);
    CHECK_INT(COMPARE_NOT_NULL, terms[1].compare);
    CHECK(!terms[1].low.ptr && !terms[1].high.ptr);
    hf_scope_free(s);
}

/* Numbers of nodes have 16 bits: one for each value, two for each entry. */
TEST(expr_legacy, as_many_values_as_fit)
{
    enum { MOST = 65000 - 2 };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_value *values = hf_scope_alloc(s, (MOST + 1) * sizeof(*values));
    struct expr_legacy_condition condition = {.name = HF_STR("n"),
                                              .compare = COMPARE_IN,
                                              .values = values,
                                              .values_len = MOST};
    struct expr_bound *bound;

    for (int i = 0; i <= MOST; i++)
        values[i] = hf_value_make(s, (struct hf_attr)HF_N("", i - MOST + 11));
    CHECK_OK(hf__expr_legacy_condition(s, &condition, 1, false, &bound));
    CHECK(hf__expr_match(bound, sample(s))); /* the last one is 10 */
    condition.values_len = MOST + 1;
    CHECK_STATUS(HF_INVALID, hf__expr_legacy_condition(s, &condition, 1, false, &bound));
    CHECK_ERROR(HF_INVALID, "One or more parameter values were invalid: Too many attributes", s);
    hf_scope_free(s);
}

static struct hf_item run(struct hf_scope *s, const struct expr_legacy_update *updates, size_t len,
                          struct hf_item before)
{
    struct expr_bound *bound;
    struct hf_item after;

    CHECK_OK(hf__expr_legacy_update(s, updates, len, &bound));
    CHECK_OK(hf__expr_update(s, bound, HF_ITEM(s, HF_S("pk", HF_STR("k"))), before, &after));
    CHECK(!after.ptr || hf__item_valid(after.ptr, after.len));
    return after;
}

TEST(expr_legacy, updates)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct expr_legacy_update list[] = {
        {HF_STR("s"), ACTION_PUT, hf_value_make(s, (struct hf_attr)HF_N("", 1))},
        {HF_STR("n"), ACTION_ADD, hf_value_make(s, (struct hf_attr)HF_N("", 5))},
        {HF_STR("set"), ACTION_DELETE, hf_value_make(s, (struct hf_attr)HF_SS("", b_only, 1))},
        {HF_STR("nul"), ACTION_DELETE, {NULL, 0}},
        {HF_STR("l"), ACTION_ADD, HF_LIST(s, HF_N("", 3))},
        {HF_STR("l2"), ACTION_ADD, HF_LIST(s, HF_N("", 4))},
    };
    struct expr_legacy_update one;
    struct expr_bound *bound;
    struct hf_item after;

    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 15), HF_N("s", 1), HF_SS("set", ab, 1),
                       HF_L("l", HF_LIST(s, HF_N("", 1), HF_N("", 2), HF_N("", 3))),
                       HF_L("l2", HF_LIST(s, HF_N("", 4)))),
               run(s, list, ARRAY_LEN(list), sample(s)), "all actions");
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k"))), run(s, list, 0, NO_ITEM),
               "no update makes a bare item");
    CHECK(!run(s, list + 2, 2, NO_ITEM).ptr);
    one = (struct expr_legacy_update){HF_STR("s"), ACTION_DELETE, list[2].value};
    CHECK_OK(hf__expr_legacy_update(s, &one, 1, &bound));
    CHECK_STATUS(HF_INVALID, hf__expr_update(s, bound, NO_ITEM, sample(s), &after));
    CHECK_ERROR(HF_INVALID, "Type mismatch for attribute to update", s);
    one = (struct expr_legacy_update){HF_STR("s"), ACTION_ADD, list[1].value};
    CHECK_OK(hf__expr_legacy_update(s, &one, 1, &bound));
    CHECK_STATUS(HF_INVALID, hf__expr_update(s, bound, NO_ITEM, sample(s), &after));
    CHECK_ERROR(HF_INVALID, "Type mismatch for attribute to update", s);
    hf_scope_free(s);
}

TEST(expr_legacy, names_and_numbers_of_entries_have_limits)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    enum { MANY = 65000 / 2 + 1 };
    char *name = hf_scope_alloc(s, ATTR_NAME_MAX + 1);
    struct hf_str *names = hf__scope_array(s, MANY, sizeof(*names));
    struct expr_legacy_update one = {.action = ACTION_DELETE};
    struct expr_bound *bound;

    memset(name, 'a', ATTR_NAME_MAX + 1);
    one.name = hf_str_of(name, ATTR_NAME_MAX + 1);
    CHECK_STATUS(HF_INVALID, hf__expr_legacy_update(s, &one, 1, &bound));
    one.name.len--;
    CHECK_OK(hf__expr_legacy_update(s, &one, 1, &bound));
    for (size_t i = 0; i < MANY; i++)
        names[i] = hf_scope_format(s, "n%zu", i);
    CHECK_STATUS(HF_INVALID, hf__expr_legacy_projection(s, names, MANY, &bound));
    CHECK_OK(hf__expr_legacy_projection(s, names, MANY - 1, &bound));
    hf_scope_free(s);
}
