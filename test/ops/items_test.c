/* ops/items_test.c: PutItem, UpdateItem, DeleteItem and GetItem before any table is looked at. */
#include "ops_test.h"

#define MIXED(without, with)                                                                       \
    "Can not use both expression and non-expression parameters in the same request: "              \
    "Non-expression parameters: {" without "} Expression parameters: {" with "}"

static struct hf_put_item put_of(struct hf_scope *s)
{
    return (struct hf_put_item){.table = HF_STR("abc"), .item = HF_ITEM(s, HF_S("a", HF_STR("x")))};
}

TEST(items, a_put_gives_its_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct prepared_write out;

    put.table = HF_STR("arn:aws:dynamodb:eu-west-2:123456789012:table/abc");
    put.condition = HF_STR("attribute_not_exists(a) OR b = :v");
    put.values = HF_ITEM(s, HF_N(":v", 1));
    put.returns = HF_RETURN_ALL_OLD;
    put.returns_on_failure = HF_ON_FAILURE_ALL_OLD;
    put.return_capacity = HF_CAPACITY_TOTAL;
    put.return_metrics = HF_METRICS_SIZE;
    CHECK_OK(hf__prepare_put_item(s, NULL, &put, &out));
    CHECK(hf_str_equal(put.table, out.table)); /* whose ARN it is, the catalog knows */
    CHECK(hf_item_equal(put.item, out.item) && !out.key.ptr && !out.update);
    CHECK(hf__expr_match(out.condition, (struct hf_item){NULL, 0}));
    CHECK(!hf__expr_match(out.condition, put.item));
    CHECK_INT(HF_RETURN_ALL_OLD, out.returns);
    CHECK(out.return_old_on_failure);
    CHECK_INT(HF_CAPACITY_TOTAL, out.return_capacity);
    CHECK_INT(HF_METRICS_SIZE, out.return_metrics);
    hf_scope_free(s);
}

TEST(items, expressions_and_legacy_parameters_do_not_mix)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_expected expected = {.name = HF_STR("a"), .exists = HF_NO};
    const struct hf_attribute_update change = {.name = HF_STR("b"), .action = HF_ACTION_DELETE};
    const struct hf_str name = HF_STR("a");
    struct hf_put_item put = put_of(s);
    struct hf_update_item update = {.table = HF_STR("abc"),
                                    .key = put.item,
                                    .update = HF_STR(""),
                                    .condition = HF_STR(""),
                                    .updates = &change,
                                    .updates_len = 1,
                                    .expected = &expected,
                                    .expected_len = 1,
                                    .conditional_operator = HF_AND};
    const struct hf_get_item get = {.table = HF_STR("abc"),
                                    .key = put.item,
                                    .projection = HF_STR(""),
                                    .attributes_to_get = &name,
                                    .attributes_to_get_len = 1};
    struct prepared_write out;
    struct prepared_read read;

    put.condition = HF_STR("");
    put.expected = &expected; /* an empty map counts, too */
    REFUSED(MIXED("Expected", "ConditionExpression"), hf__prepare_put_item(s, NULL, &put, &out));
    put.expected = NULL;
    put.conditional_operator = HF_OR;
    REFUSED(MIXED("ConditionalOperator", "ConditionExpression"),
            hf__prepare_put_item(s, NULL, &put, &out));
    REFUSED(MIXED("AttributeUpdates, Expected, ConditionalOperator",
                  "UpdateExpression, ConditionExpression"),
            hf__prepare_update_item(s, NULL, &update, &out));
    REFUSED(MIXED("AttributesToGet", "ProjectionExpression"),
            hf__prepare_get_item(s, NULL, &get, &read));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED(ONE MIXED("ConditionalOperator", "ConditionExpression"),
            hf__prepare_put_item(s, NULL, &put, &out));
    REFUSED(MIXED("AttributesToGet", "ProjectionExpression"),
            hf__prepare_get_item(s, NULL, &get, &read));
    hf_scope_free(s);
}

TEST(items, names_and_values_want_an_expression)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct hf_update_item update = {.table = HF_STR("abc"), .key = put.item};
    struct hf_get_item get = {.table = HF_STR("abc"), .key = put.item};
    struct prepared_write out;
    struct prepared_read read;

    put.values = HF_ITEM(s, HF_N(":v", 1));
    REFUSED("ExpressionAttributeValues can only be specified when using expressions: "
            "ConditionExpression is null",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.names = HF_ITEM(s, HF_S("#n", HF_STR("n"))); /* names come first */
    REFUSED("ExpressionAttributeNames can only be specified when using expressions",
            hf__prepare_put_item(s, NULL, &put, &out));
    hf__scope_set_wording(s, HF__WORDING_2026);
    put.names.ptr = NULL;
    REFUSED(ONE "ExpressionAttributeValues can only be specified when using expressions",
            hf__prepare_put_item(s, NULL, &put, &out));
    hf__scope_set_wording(s, HF__WORDING_CLASSIC);
    put.names = HF_ITEM(s, HF_S("#n", HF_STR("n")));
    update.values = put.values;
    REFUSED("ExpressionAttributeValues can only be specified when using expressions: "
            "UpdateExpression and ConditionExpression are null",
            hf__prepare_update_item(s, NULL, &update, &out));
    get.names = put.names;
    REFUSED("ExpressionAttributeNames can only be specified when using expressions",
            hf__prepare_get_item(s, NULL, &get, &read));
    hf_scope_free(s);
}

TEST(items, placeholders_are_checked_before_expressions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct prepared_write out;

    put.condition = HF_STR("");
    put.names = hf_item_make(s, NULL, 0);
    put.values = hf_item_make(s, NULL, 0);
    REFUSED("ExpressionAttributeNames must not be empty",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.names = HF_ITEM(s, HF_S("a", HF_STR("n")));
    REFUSED("ExpressionAttributeNames contains invalid key: Syntax error; key: \"a\"",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.names = HF_ITEM(s, HF_S("#a", HF_STR("n")));
    REFUSED("ExpressionAttributeValues must not be empty",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.values = HF_ITEM(s, HF_N("a", 1));
    REFUSED("ExpressionAttributeValues contains invalid key: Syntax error; key: \"a\"",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.values = HF_ITEM(s, HF_N(":a", 1));
    REFUSED("Invalid ConditionExpression: The expression can not be empty;",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.condition = HF_STR("attribute_exists(b)");
    REFUSED("Value provided in ExpressionAttributeNames unused in expressions: keys: {#a}",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.names.ptr = NULL;
    REFUSED("Value provided in ExpressionAttributeValues unused in expressions: keys: {:a}",
            hf__prepare_put_item(s, NULL, &put, &out));
    hf_scope_free(s);
}

#define NO_TYPE                                                                                    \
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"

TEST(items, spoiled_expression_values_are_wrapped)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct prepared_write out;

    put.condition = HF_STR("a = :v");
    put.values = spoiled(s, NO_TYPE, ":v");
    put.names = hf_item_make(s, NULL, 0);
    REFUSED("ExpressionAttributeNames must not be empty",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.names.ptr = NULL;
    REFUSED("ExpressionAttributeValues contains invalid value: " NO_TYPE " for key :v",
            hf__prepare_put_item(s, NULL, &put, &out));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED(ONE NO_TYPE, hf__prepare_put_item(s, NULL, &put, &out));
    hf_scope_free(s);
}

#define BAD "One or more parameter values were invalid: "

/* In both wordings; the newer one has no prefix for a size. */
TEST(items, the_size_of_a_put_comes_before_expected)
{
    enum { BIG = 409600 };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct hf_item small = put.item;
    struct hf_expected expected = {.name = HF_STR("a"), .exists = HF_YES};
    char *big = hf_scope_alloc(s, BIG);
    struct prepared_write out;

    memset(big, 'x', BIG);
    put.expected = &expected;
    put.expected_len = 1;
    put.item = HF_ITEM(s, HF_S("pk", hf_str_of(big, BIG)));
    REFUSED("Item size has exceeded the maximum allowed size",
            hf__prepare_put_item(s, NULL, &put, &out));
    hf__scope_set_wording(s, HF__WORDING_2026);
    REFUSED("Item size has exceeded the maximum allowed size",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.item = small;
    REFUSED(ONE BAD "Value must be provided when Exists is true for Attribute: a",
            hf__prepare_put_item(s, NULL, &put, &out));
    expected.name = HF_STR("");
    REFUSED(ONE BAD "Empty attribute name", hf__prepare_put_item(s, NULL, &put, &out));
    hf__scope_set_wording(s, HF__WORDING_CLASSIC);
    REFUSED(BAD "Empty attribute name", hf__prepare_put_item(s, NULL, &put, &out));
    expected = (struct hf_expected){.name = HF_STR("a"), .exists = HF_NO};
    CHECK_OK(hf__prepare_put_item(s, NULL, &put, &out));
    CHECK(out.size == hf_item_size(small) && out.condition);
    hf_scope_free(s);
}

#define TOO_DEEP                                                                                   \
    "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels "    \
    "beyond supported limit"

TEST(items, thirty_two_levels_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct prepared_write out;

    put.item = HF_ITEM(s, HF_V("a", nested(s, 32)));
    CHECK_OK(hf__prepare_put_item(s, NULL, &put, &out));
    put.condition = HF_STR("a = :v");
    put.values = HF_ITEM(s, HF_V(":v", nested(s, 32)));
    CHECK_OK(hf__prepare_put_item(s, NULL, &put, &out));
    put.values = spoiled(s, TOO_DEEP, ":v");
    REFUSED("ExpressionAttributeValues contains invalid value: " TOO_DEEP " for key :v",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.item = spoiled(s, TOO_DEEP, "a");
    REFUSED(TOO_DEEP, hf__prepare_put_item(s, NULL, &put, &out));
    hf_scope_free(s);
}

TEST(items, attributes_have_names)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct prepared_write out;

    put.item = HF_ITEM(s, HF_S("", HF_STR("x")));
    REFUSED("Empty attribute name", hf__prepare_put_item(s, NULL, &put, &out));
    put.item = HF_ITEM(s, HF_V("l", HF_LIST(s, HF_M("", HF_ITEM(s, HF_N("", 1))))));
    REFUSED("Empty attribute name", hf__prepare_put_item(s, NULL, &put, &out));
    hf_scope_free(s);
}

TEST(items, an_item_of_400_kb_and_no_more)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct prepared_write out;

    put.item = HF_ITEM(s, HF_S("a", repeated(s, 'x', ITEM_SIZE_MAX - 1)));
    CHECK_OK(hf__prepare_put_item(s, NULL, &put, &out));
    put.item = HF_ITEM(s, HF_S("a", repeated(s, 'x', ITEM_SIZE_MAX)));
    REFUSED("Item size has exceeded the maximum allowed size",
            hf__prepare_put_item(s, NULL, &put, &out));
    put.condition = HF_STR("a = :v"); /* expressions come first */
    REFUSED("Invalid ConditionExpression: An expression attribute value used in expression is not "
            "defined; attribute value: :v",
            hf__prepare_put_item(s, NULL, &put, &out));
    hf_scope_free(s);
}

TEST(items, return_values_of_puts_and_deletes)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_put_item put = put_of(s);
    struct hf_delete_item del = {.table = HF_STR("abc"), .key = put.item};
    struct hf_update_item update = {.table = HF_STR("abc"), .key = put.item};
    struct prepared_write out;

    for (int returns = HF_RETURN_UPDATED_OLD; returns <= HF_RETURN_UPDATED_NEW; returns++) {
        put.returns = del.returns = update.returns = (enum hf_return_values)returns;
        REFUSED("ReturnValues can only be ALL_OLD or NONE",
                hf__prepare_put_item(s, NULL, &put, &out));
        REFUSED("ReturnValues can only be ALL_OLD or NONE",
                hf__prepare_delete_item(s, NULL, &del, &out));
        CHECK_OK(hf__prepare_update_item(s, NULL, &update, &out));
    }
    put.item = spoiled(s, NO_TYPE, "a"); /* values come first */
    REFUSED(NO_TYPE, hf__prepare_put_item(s, NULL, &put, &out));
    hf_scope_free(s);
}

TEST(items, an_update_is_read_before_its_condition)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_update_item update = {.table = HF_STR("abc"),
                                    .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                                    .update = HF_STR("SET b"),
                                    .condition = HF_STR("")};
    struct prepared_write out;

    REFUSED("Invalid UpdateExpression: Syntax error; token: \"<EOF>\", near: \"b\"",
            hf__prepare_update_item(s, NULL, &update, &out));
    update.update = HF_STR("SET b = :v");
    update.values = HF_ITEM(s, HF_N(":v", 1), HF_N(":w", 2));
    REFUSED("Invalid ConditionExpression: The expression can not be empty;",
            hf__prepare_update_item(s, NULL, &update, &out));
    update.condition = HF_STR("c = :w"); /* used by one of the two is used */
    CHECK_OK(hf__prepare_update_item(s, NULL, &update, &out));
    CHECK(out.update && out.condition);
    hf__scope_set_wording(s, HF__WORDING_2026);
    update.update = HF_STR("");
    REFUSED(ONE "Invalid UpdateExpression: The expression can not be empty;",
            hf__prepare_update_item(s, NULL, &update, &out));
    update.update = HF_STR("DELETE b :v");
    REFUSED(ONE "Invalid UpdateExpression: Incorrect operand type for operator or function; "
                "operator: DELETE, operand type: NUMBER, typeSet: ALLOWED_FOR_ADD_OPERAND",
            hf__prepare_update_item(s, NULL, &update, &out));
    hf_scope_free(s);
}

TEST(items, an_update_of_nothing_has_no_program)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_attribute_update none = {.name = {NULL, 0}};
    const struct hf_update_item update = {.table = HF_STR("abc"),
                                          .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                                          .updates = &none,
                                          .updates_len = 0};
    struct prepared_write out;

    CHECK_OK(hf__prepare_update_item(s, NULL, &update, &out));
    CHECK(!out.update && !out.condition);
    hf_scope_free(s);
}

TEST(items, a_get_gives_its_projection)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str names[] = {HF_STR("b"), HF_STR("a"), HF_STR("c"), HF_STR("a"), HF_STR("b")};
    struct hf_get_item get = {.table = HF_STR("abc"),
                              .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                              .attributes_to_get = names,
                              .attributes_to_get_len = 3,
                              .consistent = HF_YES};
    struct prepared_read out;
    struct hf_item shown;

    CHECK_OK(hf__prepare_get_item(s, NULL, &get, &out));
    CHECK(out.consistent);
    CHECK_OK(hf__expr_project(s, out.projection, HF_ITEM(s, HF_N("a", 1), HF_N("d", 2)), &shown));
    CHECK(hf_item_equal(HF_ITEM(s, HF_N("a", 1)), shown));
    get.attributes_to_get_len = 5; /* the first repeat in reading order is named */
    REFUSED(BAD "Duplicate value in attribute name: a", hf__prepare_get_item(s, NULL, &get, &out));
    get.key = spoiled(s, NO_TYPE, "a");
    REFUSED(NO_TYPE, hf__prepare_get_item(s, NULL, &get, &out));
    hf_scope_free(s);
}

TEST(items, any_allocation_may_fail)
{
    struct hf_update_item update;
    struct prepared_write out;

    SWEEP(HF_OK,
          (update =
               (struct hf_update_item){.table = HF_STR("abc"),
                                       .key = HF_ITEM(s, HF_S("a", HF_STR("x"))),
                                       .update = HF_STR("SET b = :v, c = list_append(c, :l)"),
                                       .condition = HF_STR("#n = :v AND size(#n) > :v"),
                                       .names = HF_ITEM(s, HF_S("#n", HF_STR("n"))),
                                       .values = HF_ITEM(s, HF_N(":v", 1),
                                                         HF_L(":l", HF_LIST(s, HF_N("", 1))))}),
          hf__prepare_update_item(s, NULL, &update, &out));
}
