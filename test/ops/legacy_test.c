/* ops/legacy_test.c: Expected, QueryFilter, ScanFilter, KeyConditions, AttributeUpdates. */
#include "ops_test.h"

/* Put "x" under the one expectation. */
static enum hf_status expect(struct hf_scope *s, struct hf_expected expected,
                             struct prepared_write *out)
{
    struct hf_put_item put = {.table = HF_STR("abc"),
                              .item = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                              .expected = &expected,
                              .expected_len = 1};

    expected.name = HF_STR("a");
    return hf__prepare_put_item(s, NULL, &put, out);
}

static struct hf_value str_value(struct hf_scope *s, const char *text)
{
    return hf_value_make(s, (struct hf_attr)HF_S("", hf_str_from(text)));
}

static struct hf_value num_value(struct hf_scope *s, int64_t number)
{
    return hf_value_make(s, (struct hf_attr)HF_N("", number));
}

TEST(legacy, members_of_expected_that_exclude_each_other)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_value x = str_value(s, "x");
    struct prepared_write out;

    REFUSED(BAD "Value and AttributeValueList cannot be used together for Attribute: a",
            expect(s, (struct hf_expected){.value = x, .values = &x, .values_len = 1}, &out));
    REFUSED(BAD "Exists and ComparisonOperator cannot be used together for Attribute: a",
            expect(s, (struct hf_expected){.exists = HF_NO, .comparison = HF_EQ}, &out));
    REFUSED(BAD "Value or AttributeValueList must be used with ComparisonOperator: EQ for "
                "Attribute: a",
            expect(s, (struct hf_expected){.comparison = HF_EQ}, &out));
    REFUSED(BAD "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
            expect(s, (struct hf_expected){.values = &x, .values_len = 1}, &out));
    REFUSED(BAD "Value must be provided when Exists is null for Attribute: a",
            expect(s, (struct hf_expected){.exists = HF_UNSET}, &out));
    REFUSED(BAD "Value must be provided when Exists is true for Attribute: a",
            expect(s, (struct hf_expected){.exists = HF_YES}, &out));
    REFUSED(BAD "Value cannot be used when Exists is false for Attribute: a",
            expect(s, (struct hf_expected){.exists = HF_NO, .value = x}, &out));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED(ONE BAD "Value cannot be used when Exists is false for Attribute: a",
            expect(s, (struct hf_expected){.exists = HF_NO, .value = x}, &out));
    hf_scope_free(s);
}

TEST(legacy, expected_becomes_a_condition)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_value x = str_value(s, "x");
    const struct hf_item none = {NULL, 0};
    const struct hf_item same = HF_ITEM(s, HF_S("a", HF_STR("x")));
    const struct hf_item other = HF_ITEM(s, HF_S("a", HF_STR("y")));
    struct prepared_write out;

    CHECK_OK(expect(s, (struct hf_expected){.value = x}, &out));
    CHECK(hf__expr_match(out.condition, same));
    CHECK(!hf__expr_match(out.condition, other) && !hf__expr_match(out.condition, none));
    CHECK_OK(expect(s, (struct hf_expected){.exists = HF_NO}, &out));
    CHECK(!hf__expr_match(out.condition, same) && hf__expr_match(out.condition, none));
    CHECK_OK(expect(s, (struct hf_expected){.comparison = HF_NE, .value = x}, &out));
    CHECK(!hf__expr_match(out.condition, same) && hf__expr_match(out.condition, other));
    CHECK_OK(expect(s, (struct hf_expected){.comparison = HF_NOT_NULL}, &out));
    CHECK(hf__expr_match(out.condition, same) && !hf__expr_match(out.condition, none));
    hf_scope_free(s);
}

/* The operator takes from `least` to `most` arguments and no others. */
static void check_counts(struct hf_scope *s, enum hf_comparison comparison, const char *name,
                         size_t least, size_t most)
{
    const struct hf_value values[] = {str_value(s, "a"), str_value(s, "b"), str_value(s, "c")};
    struct prepared_write out;

    for (size_t len = 0; len <= 3; len++) {
        struct hf_expected expected = {.comparison = comparison,
                                       .values = values,
                                       .values_len = len};
        enum hf_status status = expect(s, expected, &out);

        CHECK_STATUS(len >= least && len <= most ? HF_OK : HF_INVALID, status);
        if (status == HF_INVALID)
            CHECK_STR(hf_scope_format(s,
                                      BAD "Invalid number of argument(s) for the %s "
                                          "ComparisonOperator",
                                      name)
                          .ptr,
                      hf_scope_error(s)->message);
    }
}

TEST(legacy, operators_count_their_arguments)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_counts(s, HF_EQ, "EQ", 1, 1);
    check_counts(s, HF_NE, "NE", 1, 1);
    check_counts(s, HF_LE, "LE", 1, 1);
    check_counts(s, HF_LT, "LT", 1, 1);
    check_counts(s, HF_GE, "GE", 1, 1);
    check_counts(s, HF_GT, "GT", 1, 1);
    check_counts(s, HF_CONTAINS, "CONTAINS", 1, 1);
    check_counts(s, HF_NOT_CONTAINS, "NOT_CONTAINS", 1, 1);
    check_counts(s, HF_BEGINS_WITH, "BEGINS_WITH", 1, 1);
    check_counts(s, HF_IN, "IN", 1, 3);
    check_counts(s, HF_BETWEEN, "BETWEEN", 2, 2);
    check_counts(s, HF_IS_NULL, "NULL", 0, 0);
    check_counts(s, HF_NOT_NULL, "NOT_NULL", 0, 0);
    hf_scope_free(s);
}

TEST(legacy, operators_look_at_types)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str member = HF_STR("x");
    const struct hf_value set = hf_value_make(s, (struct hf_attr)HF_SS("", &member, 1));
    const struct hf_value truth = hf_value_make(s, (struct hf_attr)HF_BOOL("", true));
    const struct hf_value mixed[] = {str_value(s, "a"), num_value(s, 1)};
    const struct hf_value sets[] = {set, set};
    const struct hf_value one = num_value(s, 1);
    struct prepared_write out;

    CHECK_OK(expect(s, (struct hf_expected){.comparison = HF_EQ, .value = set}, &out));
    REFUSED(BAD "ComparisonOperator CONTAINS is not valid for SS AttributeValue type",
            expect(s, (struct hf_expected){.comparison = HF_CONTAINS, .value = set}, &out));
    REFUSED(BAD "ComparisonOperator LT is not valid for BOOL AttributeValue type",
            expect(s, (struct hf_expected){.comparison = HF_LT, .value = truth}, &out));
    REFUSED(BAD "ComparisonOperator BEGINS_WITH is not valid for N AttributeValue type",
            expect(s, (struct hf_expected){.comparison = HF_BEGINS_WITH, .value = one}, &out));
    REFUSED(BAD "AttributeValues inside AttributeValueList must be of same type",
            expect(s, (struct hf_expected){.comparison = HF_IN, .values = mixed, .values_len = 2},
                   &out));
    REFUSED(BAD "ComparisonOperator IN is not valid for SS AttributeValue type",
            expect(s, (struct hf_expected){.comparison = HF_IN, .values = sets, .values_len = 2},
                   &out));
    hf_scope_free(s);
}

TEST(legacy, the_bounds_of_a_range_are_in_order)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_value bounds[] = {num_value(s, 10), num_value(s, 9), num_value(s, 9)};
    struct prepared_write out;

    REFUSED(
        "The BETWEEN condition was provided a range where the lower bound is greater than the "
        "upper bound",
        expect(s, (struct hf_expected){.comparison = HF_BETWEEN, .values = bounds, .values_len = 2},
               &out));
    CHECK_OK(expect(
        s, (struct hf_expected){.comparison = HF_BETWEEN, .values = bounds + 1, .values_len = 2},
        &out));
    hf_scope_free(s);
}

TEST(legacy, values_are_nested_thirty_two_levels_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct prepared_write out;

    CHECK_OK(expect(s, (struct hf_expected){.value = nested(s, 32)}, &out));
    REFUSED("Nesting Levels have exceeded supported limits: Attributes in the item have nested "
            "levels beyond supported limit",
            expect(s, (struct hf_expected){.value = nested(s, 33)}, &out));
    hf_scope_free(s);
}

TEST(legacy, a_conditional_operator_wants_two_conditions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_expected expected[] = {{.name = HF_STR("a"), .exists = HF_NO},
                                           {.name = HF_STR("b"), .exists = HF_NO}};
    struct hf_delete_item del = {.table = HF_STR("abc"),
                                 .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                                 .conditional_operator = HF_OR};
    struct hf_query query = {.table = HF_STR("abc"), .conditional_operator = HF_AND};
    struct prepared_write out;
    struct prepared_page page;

    REFUSED("ConditionalOperator cannot be used without Filter or Expected",
            hf__prepare_delete_item(s, NULL, &del, &out));
    del.expected = expected;
    REFUSED("ConditionalOperator cannot be used without Filter or Expected",
            hf__prepare_delete_item(s, NULL, &del, &out));
    del.expected_len = 1;
    REFUSED("ConditionalOperator can only be used when Filter or Expected has two or more elements",
            hf__prepare_delete_item(s, NULL, &del, &out));
    del.expected_len = 2;
    CHECK_OK(hf__prepare_delete_item(s, NULL, &del, &out));
    CHECK(hf__expr_match(out.condition, HF_ITEM(s, HF_N("a", 1))));
    del.conditional_operator = HF_AND;
    CHECK_OK(hf__prepare_delete_item(s, NULL, &del, &out));
    CHECK(!hf__expr_match(out.condition, HF_ITEM(s, HF_N("a", 1))));
    /* before the missing key condition */
    REFUSED("ConditionalOperator cannot be used without Filter or Expected",
            hf__prepare_query(s, NULL, &query, &page));
    hf_scope_free(s);
}

static enum hf_status update_with(struct hf_scope *s, struct hf_attribute_update change,
                                  struct prepared_write *out)
{
    const struct hf_update_item update = {.table = HF_STR("abc"),
                                          .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                                          .updates = &change,
                                          .updates_len = 1};

    return hf__prepare_update_item(s, NULL, &update, out);
}

TEST(legacy, attribute_updates)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str member = HF_STR("x");
    const struct hf_str name = HF_STR("b");
    const struct hf_value set = hf_value_make(s, (struct hf_attr)HF_SS("", &member, 1));
    const struct hf_value list = HF_LIST(s, HF_N("", 1));
    const struct hf_bytes raw = hf_bytes_of("x", 1);
    const struct hf_value binary = hf_value_make(s, (struct hf_attr)HF_B("", raw));
    const struct hf_item key = HF_ITEM(s, HF_S("a", HF_STR("x")));
    struct prepared_write out;
    struct hf_item item;

    REFUSED(BAD "Only DELETE action is allowed when no attribute value is specified",
            update_with(s, (struct hf_attribute_update){.name = name}, &out));
    REFUSED(BAD "Only DELETE action is allowed when no attribute value is specified",
            update_with(s, (struct hf_attribute_update){.name = name, .action = HF_ACTION_ADD},
                        &out));
    REFUSED(
        BAD "Empty attribute name",
        update_with(s, (struct hf_attribute_update){.name = HF_STR(""), .value = str_value(s, "x")},
                    &out));
    REFUSED(BAD "DELETE action with value is not supported for the type S",
            update_with(s,
                        (struct hf_attribute_update){.name = name,
                                                     .value = str_value(s, "x"),
                                                     .action = HF_ACTION_DELETE},
                        &out));
    REFUSED(BAD "ADD action is not supported for the type B",
            update_with(s,
                        (struct hf_attribute_update){.name = name,
                                                     .value = binary,
                                                     .action = HF_ACTION_ADD},
                        &out));
    CHECK_OK(update_with(
        s, (struct hf_attribute_update){.name = name, .value = list, .action = HF_ACTION_ADD},
        &out));
    CHECK_OK(update_with(
        s, (struct hf_attribute_update){.name = name, .value = set, .action = HF_ACTION_DELETE},
        &out));
    CHECK_OK(update_with(s, (struct hf_attribute_update){.name = name, .action = HF_ACTION_DELETE},
                         &out));
    CHECK_OK(
        update_with(s, (struct hf_attribute_update){.name = name, .value = num_value(s, 7)}, &out));
    CHECK_OK(hf__expr_update(s, out.update, key, (struct hf_item){NULL, 0}, &item));
    CHECK(hf_item_equal(HF_ITEM(s, HF_S("a", HF_STR("x")), HF_N("b", 7)), item));
    hf_scope_free(s);
}

TEST(legacy, any_allocation_may_fail)
{
    struct hf_expected expected[2];
    struct hf_delete_item del;
    struct prepared_write out;

    SWEEP(HF_OK,
          (expected[0] = (struct hf_expected){.name = HF_STR("a"), .value = num_value(s, 1)},
           expected[1] = (struct hf_expected){.name = HF_STR("b"), .exists = HF_NO},
           del = (struct hf_delete_item){.table = HF_STR("abc"),
                                         .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                                         .expected = expected,
                                         .expected_len = 2,
                                         .conditional_operator = HF_OR}),
          hf__prepare_delete_item(s, NULL, &del, &out));
}
