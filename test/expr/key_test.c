/* expr/key_test.c: key conditions. */
#include "expr/private.h"

#include "help.h"

#define K EXPR_KEY_CONDITION

static struct hf_item values(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S(":a", HF_STR("a")), HF_S(":b", HF_STR("b")), HF_N(":n", 1),
                   HF_BOOL(":t", true));
}

static struct expr_key_term only_range(struct hf_scope *s, const char *text)
{
    struct expr_bound *bound = must_bind(s, K, text, NO_ITEM, values(s));
    const struct expr_key_term *terms;
    size_t len;

    hf__expr_key_terms(bound, &terms, &len);
    CHECK_INT(2, len);
    CHECK_STR("pk", terms[0].name);
    CHECK_INT(COMPARE_EQ, terms[0].compare);
    CHECK_STR("a", hf_value_str(terms[0].low));
    CHECK_STR("sk", terms[1].name);
    return terms[1];
}

TEST(expr_key, terms)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_INT(COMPARE_EQ, only_range(s, "pk = :a AND sk = :b").compare);
    CHECK_INT(COMPARE_LT, only_range(s, "pk = :a AND sk < :b").compare);
    CHECK_INT(COMPARE_LE, only_range(s, "(pk = :a) AND (sk <= :b)").compare);
    CHECK_INT(COMPARE_GT, only_range(s, "pk = :a AND sk > :b").compare);
    CHECK_INT(COMPARE_GE, only_range(s, "pk = :a AND sk >= :b").compare);
    CHECK_INT(COMPARE_BEGINS_WITH, only_range(s, "pk = :a AND begins_with(sk, :b)").compare);
    CHECK_INT(COMPARE_BETWEEN, only_range(s, "pk = :a AND sk BETWEEN :a AND :b").compare);
    CHECK_STR("a", hf_value_str(only_range(s, "pk = :a AND sk BETWEEN :a AND :b").low));
    CHECK_STR("b", hf_value_str(only_range(s, "pk = :a AND sk BETWEEN :a AND :b").high));
    /* mirrored */
    CHECK_INT(COMPARE_GT, only_range(s, ":a = pk AND :b < sk").compare);
    CHECK_INT(COMPARE_GE, only_range(s, ":a = pk AND :b <= sk").compare);
    CHECK_INT(COMPARE_LT, only_range(s, ":a = pk AND :b > sk").compare);
    CHECK_INT(COMPARE_LE, only_range(s, ":a = pk AND :b >= sk").compare);
    CHECK_STR("b", hf_value_str(only_range(s, ":a = pk AND :b < sk").low));
    hf_scope_free(s);
}

TEST(expr_key, what_no_key_condition_has)
{
    static const struct refusal list[] = {
        {K, "pk = :a OR sk = :b", "Invalid operator used in KeyConditionExpression: OR"},
        {K, "NOT pk = :a", "Invalid operator used in KeyConditionExpression: NOT"},
        {K, "pk = :a AND NOT sk = :b", "Invalid operator used in KeyConditionExpression: NOT"},
        {K, "pk <> :a", "Invalid operator used in KeyConditionExpression: <>"},
        {K, "pk IN (:a, :b)", "Invalid operator used in KeyConditionExpression: IN"},
        {K, "attribute_exists(pk)",
         "Invalid operator used in KeyConditionExpression: attribute_exists"},
        {K, "pk = :a AND contains(sk, :b)",
         "Invalid operator used in KeyConditionExpression: contains"},
        {K, "a > b AND size(b) > :n OR a > c",
         "Invalid operator used in KeyConditionExpression: OR"},
        {K, "pk = sk",
         "Invalid condition in KeyConditionExpression: Multiple attribute names used in one "
         "condition"},
        {K, "a BETWEEN b AND size(a)",
         "Invalid condition in KeyConditionExpression: Multiple attribute names used in one "
         "condition"},
        {K, ":a = :b", "Invalid condition in KeyConditionExpression: No key attribute specified"},
        {K, ":a BETWEEN pk AND :b",
         "Invalid condition in KeyConditionExpression: BETWEEN operator must have the key "
         "attribute as its first operand"},
        {K, "begins_with(:a, pk)",
         "Invalid condition in KeyConditionExpression: begins_with operator must have the key "
         "attribute as its first operand"},
        {K, "pk = :a AND size(sk) = :n",
         "KeyConditionExpressions cannot contain nested operations"},
        {K, "pk.a = :a", "KeyConditionExpressions cannot have conditions on nested attributes"},
        {K, "pk[0] = :a", "KeyConditionExpressions cannot have conditions on nested attributes"},
        {K, "b > :a AND b < :b AND c = :a AND d = :a",
         "KeyConditionExpressions must only contain one condition per key"},
        {K, "(a > :a AND b > :a) AND (b > :a AND c > :a)",
         "KeyConditionExpressions must only contain one condition per key"},
        {K, "a = :a AND b = :a AND c = :a", NULL}, /* too many is for the table to say */
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, values(s));
    hf_scope_free(s);
}

/* The first problem in reading order wins, before the form of the whole is judged. */
TEST(expr_key, problems_in_reading_order)
{
    static const struct refusal list[] = {
        {K, "pk = :x AND sk < :t",
         "Invalid KeyConditionExpression: An expression attribute value used in expression is not "
         "defined; attribute value: :x"},
        {K, "sk < :t AND pk = :x",
         "Invalid KeyConditionExpression: Incorrect operand type for operator or function; "
         "operator or function: <, operand type: BOOL"},
        {K, "sk < :t OR pk = :a",
         "Invalid KeyConditionExpression: Incorrect operand type for operator or function; "
         "operator or function: <, operand type: BOOL"},
        {K, "pk = :a AND sk BETWEEN :b AND :a",
         "Invalid KeyConditionExpression: The BETWEEN operator requires upper bound to be greater "
         "than or equal to lower bound; lower bound operand: AttributeValue: {S:b}, upper bound "
         "operand: AttributeValue: {S:a}"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, values(s));
    hf_scope_free(s);
}
