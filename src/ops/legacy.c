/*
 * ops/legacy.c: the parameters that expressions replaced: Expected, QueryFilter, ScanFilter,
 * KeyConditions and AttributeUpdates.
 *
 * Entries are checked one after the other, with DynamoDB's messages: which members may be combined,
 * how many arguments an operator takes, and of which types. Valid entries become a bound program,
 * like an expression. Whether an operator of KeyConditions fits the key is checked once the table
 * is known.
 */
#include "ops/private.h"

/* ---- operators ------------------------------------------------------------------------------ */

enum { SCALARS = 1 << HF_TYPE_S | 1 << HF_TYPE_N | 1 << HF_TYPE_B, ANY_TYPE = ~0 };

struct comparison {
    const char *name;
    enum expr_compare compare;
    size_t least; /* arguments */
    size_t most;
    int types; /* of arguments, a bit each */
};

/* By enum hf_comparison. */
static const struct comparison comparisons[] = {
    [HF_EQ] = {"EQ", COMPARE_EQ, 1, 1, ANY_TYPE},
    [HF_NE] = {"NE", COMPARE_NE, 1, 1, ANY_TYPE},
    [HF_IN] = {"IN", COMPARE_IN, 1, SIZE_MAX, SCALARS},
    [HF_LE] = {"LE", COMPARE_LE, 1, 1, SCALARS},
    [HF_LT] = {"LT", COMPARE_LT, 1, 1, SCALARS},
    [HF_GE] = {"GE", COMPARE_GE, 1, 1, SCALARS},
    [HF_GT] = {"GT", COMPARE_GT, 1, 1, SCALARS},
    [HF_BETWEEN] = {"BETWEEN", COMPARE_BETWEEN, 2, 2, SCALARS},
    [HF_NOT_NULL] = {"NOT_NULL", COMPARE_NOT_NULL, 0, 0, ANY_TYPE},
    [HF_IS_NULL] = {"NULL", COMPARE_NULL, 0, 0, ANY_TYPE},
    [HF_CONTAINS] = {"CONTAINS", COMPARE_CONTAINS, 1, 1, SCALARS},
    [HF_NOT_CONTAINS] = {"NOT_CONTAINS", COMPARE_NOT_CONTAINS, 1, 1, SCALARS},
    [HF_BEGINS_WITH] = {"BEGINS_WITH", COMPARE_BEGINS_WITH, 1, 1, 1 << HF_TYPE_S | 1 << HF_TYPE_B},
};

_Static_assert(ARRAY_LEN(comparisons) == HF_BEGINS_WITH + 1, "every operator is there");

static const struct comparison *comparison_of(enum hf_comparison comparison)
{
    assert(comparison > 0 && (size_t)comparison < ARRAY_LEN(comparisons));
    assert(comparisons[comparison].name); /* no number is left out */
    return &comparisons[comparison];
}

_Static_assert(ARRAY_LEN(comparisons) <= 32 && HF_TYPE_BS < 31, "a bit for each");

/* The arguments of one operator: their number, their types, and the order of a range. */
static enum hf_status check_arguments(struct hf_scope *s, const struct comparison *comparison,
                                      const struct hf_value *values, size_t len)
{
    if (len < comparison->least || len > comparison->most)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Invalid number of argument(s) for the %s ComparisonOperator",
                        comparison->name);
    for (size_t i = 1; i < len; i++)
        if (hf_value_type(values[i]) != hf_value_type(values[0]))
            return hf__fail(s, HF_INVALID,
                            BAD_VALUES
                            "AttributeValues inside AttributeValueList must be of same type");
    for (size_t i = 0; i < len; i++)
        if (!(comparison->types & 1 << hf_value_type(values[i])))
            return hf__fail(s, HF_INVALID,
                            BAD_VALUES
                            "ComparisonOperator %s is not valid for %s AttributeValue type",
                            comparison->name, hf__type_name(hf_value_type(values[i])));
    if (comparison->compare == COMPARE_BETWEEN && hf__value_compare(values[0], values[1]) > 0)
        return hf__fail(s, HF_INVALID,
                        "The BETWEEN condition was provided a range where the lower bound is "
                        "greater than the upper bound");
    return HF_OK;
}

/* No attribute has an empty name. */
static enum hf_status check_name(struct hf_scope *s, struct hf_str name)
{
    if (name.len == 0)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Empty attribute name");
    return HF_OK;
}

static enum hf_status check_values(struct hf_scope *s, enum hf_op op, const struct hf_value *values,
                                   size_t len)
{
    assert(values || !len);
    for (size_t i = 0; i < len; i++)
        TRY(hf__check_value(s, op, values[i]));
    return HF_OK;
}

/* AND or OR joins two conditions or more. */
static enum hf_status check_joined(struct hf_scope *s, enum hf_conditional_operator joined,
                                   size_t conditions)
{
    if (joined && conditions == 0)
        return hf__fail(s, HF_INVALID,
                        "ConditionalOperator cannot be used without Filter or Expected");
    if (joined && conditions == 1)
        return hf__fail(
            s, HF_INVALID,
            "ConditionalOperator can only be used when Filter or Expected has two or more "
            "elements");
    return HF_OK;
}

/* ---- Expected ------------------------------------------------------------------------------- */

static enum hf_status fail_for(struct hf_scope *s, const char *what, struct hf_str attribute)
{
    assert(what && what[0]);
    return hf__fail(s, HF_INVALID, BAD_VALUES "%s for Attribute: %.*s", what, HF_FMT(attribute));
}

/* An entry with a ComparisonOperator; its argument may be in Value. */
static enum hf_status expected_compared(struct hf_scope *s, const struct hf_expected *expected,
                                        struct expr_legacy_condition *out)
{
    const struct comparison *comparison = comparison_of(expected->comparison);

    if (expected->exists)
        return fail_for(s, "Exists and ComparisonOperator cannot be used together", expected->name);
    if (comparison->least > 0 && !expected->values && !expected->value.ptr)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "Value or AttributeValueList must be used with "
                                   "ComparisonOperator: %s for Attribute: %.*s",
                        comparison->name, HF_FMT(expected->name));
    out->compare = comparison->compare;
    out->values = expected->values ? expected->values : &expected->value;
    out->values_len = expected->values ? expected->values_len : expected->value.ptr != NULL;
    assert(!(expected->values && expected->value.ptr)); /* expected_entry() has seen to it */
    return check_arguments(s, comparison, out->values, out->values_len);
}

/* An entry with Value, Exists, or both. */
static enum hf_status expected_plain(struct hf_scope *s, const struct hf_expected *expected,
                                     struct expr_legacy_condition *out)
{
    bool exists = expected->exists != HF_NO;

    if (exists && !expected->value.ptr)
        return fail_for(s,
                        expected->exists ? "Value must be provided when Exists is true"
                                         : "Value must be provided when Exists is null",
                        expected->name);
    if (!exists && expected->value.ptr)
        return fail_for(s, "Value cannot be used when Exists is false", expected->name);
    out->compare = exists ? COMPARE_EQ : COMPARE_NULL;
    out->values = &expected->value;
    out->values_len = exists;
    assert(exists == (expected->value.ptr != NULL));
    return HF_OK;
}

static enum hf_status expected_entry(struct hf_scope *s, enum hf_op op,
                                     const struct hf_expected *expected,
                                     struct expr_legacy_condition *out)
{
    out->name = expected->name;
    TRY(check_name(s, expected->name));
    TRY(hf__check_value(s, op, expected->value));
    TRY(check_values(s, op, expected->values, expected->values_len));
    if (expected->values && expected->value.ptr)
        return fail_for(s, "Value and AttributeValueList cannot be used together", expected->name);
    if (expected->comparison)
        return expected_compared(s, expected, out);
    if (expected->values)
        return fail_for(s, "AttributeValueList can only be used with a ComparisonOperator",
                        expected->name);
    return expected_plain(s, expected, out);
}

enum hf_status hf__legacy_expected(struct hf_scope *s, enum hf_op op,
                                   const struct hf_expected *expected, size_t len,
                                   enum hf_conditional_operator joined, struct expr_bound **bound)
{
    struct expr_legacy_condition *conditions = hf__scope_array(s, len, sizeof(*conditions));

    assert(expected || !len);
    *bound = NULL;
    if (!conditions)
        return hf__fail_nomem(s);
    TRY(check_joined(s, joined, len));
    for (size_t i = 0; i < len; i++)
        TRY(expected_entry(s, op, &expected[i], &conditions[i]));
    assert(!len || conditions[len - 1].compare); /* each has its operator */
    return len ? hf__expr_legacy_condition(s, conditions, len, joined == HF_OR, bound) : HF_OK;
}

/* ---- QueryFilter, ScanFilter, KeyConditions ------------------------------------------------- */

static enum hf_status conditions_translate(struct hf_scope *s, enum hf_op op,
                                           const struct hf_condition *conditions, size_t len,
                                           struct expr_legacy_condition **out)
{
    assert(conditions || !len);
    *out = hf__scope_array(s, len, sizeof(**out));
    if (!*out)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        const struct comparison *comparison = comparison_of(conditions[i].comparison);

        TRY(check_name(s, conditions[i].name));
        TRY(check_values(s, op, conditions[i].values, conditions[i].values_len));
        TRY(check_arguments(s, comparison, conditions[i].values, conditions[i].values_len));
        (*out)[i] = (struct expr_legacy_condition){
            .name = conditions[i].name,
            .compare = comparison->compare,
            .values = conditions[i].values,
            .values_len = conditions[i].values_len,
        };
    }
    return HF_OK;
}

enum hf_status hf__legacy_filter(struct hf_scope *s, enum hf_op op,
                                 const struct hf_condition *conditions, size_t len,
                                 enum hf_conditional_operator joined, struct expr_bound **bound)
{
    struct expr_legacy_condition *translated;

    *bound = NULL;
    TRY(check_joined(s, joined, len));
    TRY(conditions_translate(s, op, conditions, len, &translated));
    return len ? hf__expr_legacy_condition(s, translated, len, joined == HF_OR, bound) : HF_OK;
}

enum hf_status hf__legacy_key(struct hf_scope *s, const struct hf_condition *conditions, size_t len,
                              struct expr_bound **bound)
{
    struct expr_legacy_condition *translated;

    *bound = NULL;
    TRY(conditions_translate(s, HF_OP_QUERY, conditions, len, &translated));
    if (len < 1 || len > 2)
        return hf__fail(s, HF_INVALID, "Conditions can be of length 1 or 2 only");
    return hf__expr_legacy_key(s, translated, len, bound);
}

/* ---- AttributeUpdates ----------------------------------------------------------------------- */

static bool is_set(enum hf_type type)
{
    return type == HF_TYPE_SS || type == HF_TYPE_NS || type == HF_TYPE_BS;
}

static enum hf_status update_entry(struct hf_scope *s, const struct hf_attribute_update *update,
                                   struct expr_legacy_update *out)
{
    enum hf_update_action action = update->action ? update->action : HF_ACTION_PUT;
    enum hf_type type = hf_value_type(update->value);

    TRY(check_name(s, update->name));
    TRY(hf__check_value(s, HF_OP_UPDATE_ITEM, update->value));
    if (!update->value.ptr && action != HF_ACTION_DELETE)
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES
                        "Only DELETE action is allowed when no attribute value is specified");
    if (update->value.ptr && action == HF_ACTION_DELETE && !is_set(type))
        return hf__fail(s, HF_INVALID,
                        BAD_VALUES "DELETE action with value is not supported for the type %s",
                        hf__type_name(type));
    if (action == HF_ACTION_ADD && type != HF_TYPE_N && type != HF_TYPE_L && !is_set(type))
        return hf__fail(s, HF_INVALID, BAD_VALUES "ADD action is not supported for the type %s",
                        hf__type_name(type));
    out->name = update->name;
    out->action = action == HF_ACTION_ADD   ? ACTION_ADD
                  : action == HF_ACTION_PUT ? ACTION_PUT
                                            : ACTION_DELETE;
    out->value = update->value;
    assert(out->value.ptr || out->action == ACTION_DELETE);
    return HF_OK;
}

enum hf_status hf__legacy_updates(struct hf_scope *s, const struct hf_attribute_update *updates,
                                  size_t len, struct expr_bound **bound)
{
    struct expr_legacy_update *translated = hf__scope_array(s, len, sizeof(*translated));

    assert(updates || !len);
    *bound = NULL;
    if (!translated)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        TRY(update_entry(s, &updates[i], &translated[i]));
    return len ? hf__expr_legacy_update(s, translated, len, bound) : HF_OK;
}

/* ---- AttributesToGet ------------------------------------------------------------------------ */

enum hf_status hf__legacy_projection(struct hf_scope *s, const struct hf_str *names, size_t len,
                                     struct expr_bound **bound)
{
    const struct hf_str *repeat;

    assert(names || !len);
    *bound = NULL;
    for (size_t i = 0; i < len; i++)
        TRY(check_name(s, names[i]));
    TRY(hf__find_repeat(s, names, sizeof(*names), len, &repeat));
    if (repeat)
        return hf__fail(s, HF_INVALID, BAD_VALUES "Duplicate value in attribute name: %.*s",
                        HF_FMT(*repeat));
    return len ? hf__expr_legacy_projection(s, names, len, bound) : HF_OK;
}
