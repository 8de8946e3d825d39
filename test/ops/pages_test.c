/* ops/pages_test.c: Query and Scan before any table is looked at. */
#include "ops_test.h"

static struct hf_value str_value(struct hf_scope *s, const char *text)
{
    return hf_value_make(s, (struct hf_attr)HF_S("", hf_str_from(text)));
}

TEST(pages, a_query_gives_its_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_query query = {
        .table = HF_STR("abc"),
        .index = HF_STR("idx"),
        .key_condition = HF_STR("a = :a AND b > :b"),
        .filter = HF_STR("#c = :b"),
        .projection = HF_STR("#c"),
        .names = HF_ITEM(s, HF_S("#c", HF_STR("c"))),
        .values = HF_ITEM(s, HF_S(":a", HF_STR("x")), HF_N(":b", 1)),
        .forward = HF_NO,
        .limit = 10,
        .start = HF_ITEM(s, HF_S("a", HF_STR("x"))),
        .consistent = HF_YES,
        .select = HF_SELECT_SPECIFIC_ATTRIBUTES,
    };
    const struct expr_key_term *terms;
    struct prepared_page out;
    size_t len;

    CHECK_OK(hf__prepare_query(s, NULL, &query, &out));
    hf__expr_key_terms(out.key, &terms, &len);
    CHECK_INT(2, len);
    CHECK_STR("a", terms[0].name);
    CHECK_INT(COMPARE_GT, terms[1].compare);
    CHECK(out.filter && out.projection && out.reverse && out.consistent);
    CHECK(!out.legacy_filter && !out.legacy_projection && !out.legacy_key);
    CHECK_STR("idx", out.index);
    CHECK_INT(10, out.limit);
    CHECK_INT(0, out.segment);
    CHECK_INT(1, out.total_segments);
    CHECK(hf_item_equal(query.start, out.start));
    hf_scope_free(s);
}

TEST(pages, legacy_key_conditions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_value value = str_value(s, "x");
    struct hf_condition conditions[3] = {
        {.name = HF_STR("a"), .comparison = HF_EQ, .values = &value, .values_len = 1},
        {.name = HF_STR("b"), .comparison = HF_BEGINS_WITH, .values = &value, .values_len = 1},
        {.name = HF_STR("c"), .comparison = HF_EQ, .values = &value, .values_len = 1}};
    struct hf_query query = {.table = HF_STR("abc"),
                             .key_conditions = conditions,
                             .key_conditions_len = 2,
                             .filter = HF_STR("d = :v"), /* of another kind: may stand beside */
                             .values = HF_ITEM(s, HF_N(":v", 1))};
    const struct expr_key_term *terms;
    struct prepared_page out;
    size_t len;

    CHECK_OK(hf__prepare_query(s, NULL, &query, &out));
    CHECK(out.legacy_key && !out.legacy_filter && out.filter);
    hf__expr_key_terms(out.key, &terms, &len);
    CHECK_INT(2, len);
    CHECK_INT(COMPARE_BEGINS_WITH, terms[1].compare);
    query.key_conditions_len = 3;
    REFUSED("Conditions can be of length 1 or 2 only", hf__prepare_query(s, NULL, &query, &out));
    query.key_conditions_len = 0;
    REFUSED("Conditions can be of length 1 or 2 only", hf__prepare_query(s, NULL, &query, &out));
    query.key_conditions_len = 1;
    conditions[0].comparison = HF_NE; /* no key understands it: the table has to be known first */
    CHECK_OK(hf__prepare_query(s, NULL, &query, &out));
    query.key_condition = HF_STR("a = :v");
    REFUSED("Can not use both expression and non-expression parameters in the same request: "
            "Non-expression parameters: {KeyConditions} Expression parameters: "
            "{FilterExpression, KeyConditionExpression}",
            hf__prepare_query(s, NULL, &query, &out));
    hf_scope_free(s);
}

TEST(pages, a_query_wants_a_key_condition)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_query query = {.table = HF_STR("abc")};
    struct prepared_page out;

    REFUSED("Either the KeyConditions or KeyConditionExpression parameter must be specified in the "
            "request.",
            hf__prepare_query(s, NULL, &query, &out));
    query.values = HF_ITEM(s, HF_N(":v", 1));
    query.projection = HF_STR("a");
    REFUSED("ExpressionAttributeValues can only be specified when using expressions: "
            "FilterExpression and KeyConditionExpression are null",
            hf__prepare_query(s, NULL, &query, &out));
    hf_scope_free(s);
}

TEST(pages, expressions_are_read_in_turn)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_query query = {.table = HF_STR("abc"),
                             .filter = HF_STR(""),
                             .projection = HF_STR(""),
                             .key_condition = HF_STR("")};
    struct hf_scan scan = {.table = HF_STR("abc"), .filter = HF_STR(""), .projection = HF_STR("")};
    struct prepared_page out;

    REFUSED("Invalid FilterExpression: The expression can not be empty;",
            hf__prepare_query(s, NULL, &query, &out));
    query.filter = HF_STR("attribute_exists(b)");
    REFUSED("Invalid ProjectionExpression: The expression can not be empty;",
            hf__prepare_query(s, NULL, &query, &out));
    query.projection = HF_STR("c");
    REFUSED("Invalid KeyConditionExpression: The expression can not be empty;",
            hf__prepare_query(s, NULL, &query, &out));
    REFUSED("Invalid FilterExpression: The expression can not be empty;",
            hf__prepare_scan(s, NULL, &scan, &out));
    scan.filter = HF_STR("attribute_exists(b)");
    REFUSED("Invalid ProjectionExpression: The expression can not be empty;",
            hf__prepare_scan(s, NULL, &scan, &out));
    hf_scope_free(s);
}

TEST(pages, starting_keys)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scan scan = {.table = HF_STR("abc"), .segment = 1};
    struct prepared_page out;

    scan.start = spoiled(s, "Supplied AttributeValue is empty", "a");
    REFUSED("The provided starting key is invalid: Supplied AttributeValue is empty",
            hf__prepare_scan(s, NULL, &scan, &out));
    scan.start = spoiled(s, "The parameter cannot be converted to a numeric value: b", "a");
    REFUSED("The parameter cannot be converted to a numeric value: b",
            hf__prepare_scan(s, NULL, &scan, &out));
    hf_scope_free(s);
}

TEST(pages, segments)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scan scan = {.table = HF_STR("abc"), .segment = HF_ZERO};
    struct prepared_page out;

    REFUSED("The TotalSegments parameter is required but was not present in the request when "
            "Segment parameter is present",
            hf__prepare_scan(s, NULL, &scan, &out));
    scan = (struct hf_scan){.table = HF_STR("abc"), .total_segments = 5};
    REFUSED("The Segment parameter is required but was not present in the request when parameter "
            "TotalSegments is present",
            hf__prepare_scan(s, NULL, &scan, &out));
    scan.segment = 5;
    REFUSED("The Segment parameter is zero-based and must be less than parameter TotalSegments: "
            "Segment: 5 is not less than TotalSegments: 5",
            hf__prepare_scan(s, NULL, &scan, &out));
    scan.segment = 4;
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    CHECK_INT(4, out.segment);
    CHECK_INT(5, out.total_segments);
    scan.segment = HF_ZERO;
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    CHECK_INT(0, out.segment);
    hf_scope_free(s);
}

TEST(pages, a_legacy_scan)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_value value = str_value(s, "x");
    const struct hf_condition conditions[] = {
        {.name = HF_STR("a"), .comparison = HF_EQ, .values = &value, .values_len = 1},
        {.name = HF_STR("b"), .comparison = HF_NOT_NULL}};
    const struct hf_str names[] = {HF_STR("b"), HF_STR("b")};
    struct hf_scan scan = {.table = HF_STR("abc"),
                           .scan_filter = conditions,
                           .scan_filter_len = 2,
                           .conditional_operator = HF_OR,
                           .attributes_to_get = names,
                           .attributes_to_get_len = 1};
    struct prepared_page out;

    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    CHECK(out.legacy_filter && out.legacy_projection && out.projection);
    CHECK(hf__expr_match(out.filter, HF_ITEM(s, HF_N("b", 1))));
    CHECK(!hf__expr_match(out.filter, HF_ITEM(s, HF_N("a", 1))));
    scan.attributes_to_get_len = 2;
    REFUSED(BAD "Duplicate value in attribute name: b", hf__prepare_scan(s, NULL, &scan, &out));
    scan.filter = HF_STR("a = b");
    scan.projection = HF_STR("a");
    REFUSED("Can not use both expression and non-expression parameters in the same request: "
            "Non-expression parameters: {AttributesToGet, ScanFilter, ConditionalOperator} "
            "Expression parameters: {ProjectionExpression, FilterExpression}",
            hf__prepare_scan(s, NULL, &scan, &out));
    hf_scope_free(s);
}

TEST(pages, select)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_scan scan = {.table = HF_STR("abc"), .select = HF_SELECT_SPECIFIC_ATTRIBUTES};
    const struct hf_str name = HF_STR("a");
    struct prepared_page out;

    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    REFUSED("Must specify the AttributesToGet or ProjectionExpression when choosing to get "
            "SPECIFIC_ATTRIBUTES",
            hf__prepare_select(s, &out));
    scan.projection = HF_STR("a");
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    CHECK_OK(hf__prepare_select(s, &out));
    scan.select = HF_SELECT_COUNT;
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    REFUSED("Cannot specify the ProjectionExpression when choosing to get only the Count",
            hf__prepare_select(s, &out));
    scan = (struct hf_scan){.table = HF_STR("abc"),
                            .select = HF_SELECT_ALL_ATTRIBUTES,
                            .attributes_to_get = &name,
                            .attributes_to_get_len = 1};
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    REFUSED("Cannot specify the AttributesToGet when choosing to get ALL_ATTRIBUTES",
            hf__prepare_select(s, &out));
    scan = (struct hf_scan){.table = HF_STR("abc"), .select = HF_SELECT_ALL_PROJECTED_ATTRIBUTES};
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    REFUSED("ALL_PROJECTED_ATTRIBUTES can be used only when Querying using an IndexName",
            hf__prepare_select(s, &out));
    scan.index = HF_STR("idx");
    CHECK_OK(hf__prepare_scan(s, NULL, &scan, &out));
    CHECK_OK(hf__prepare_select(s, &out));
    hf_scope_free(s);
}

TEST(pages, any_allocation_may_fail)
{
    struct hf_query query;
    struct prepared_page out;

    SWEEP(HF_OK,
          (query = (struct hf_query){.table = HF_STR("abc"),
                                     .key_condition = HF_STR("a = :a AND b BETWEEN :b AND :b"),
                                     .filter = HF_STR("contains(c, :a) OR d IN (:a, :b)"),
                                     .projection = HF_STR("c.d[3], e"),
                                     .values = HF_ITEM(s, HF_N(":a", 1), HF_N(":b", 2))}),
          hf__prepare_query(s, NULL, &query, &out));
}
