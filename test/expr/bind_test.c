/* expr/bind_test.c: what a request's names and values make wrong. */
#include "expr/private.h"

#include "help.h"

#define C EXPR_CONDITION
#define U EXPR_UPDATE
#define P EXPR_PROJECTION
#define IC "Invalid ConditionExpression: "
#define IU "Invalid UpdateExpression: "
#define IP "Invalid ProjectionExpression: "
#define TYPE "Incorrect operand type for operator or function; operator or function: "

static struct hf_item all_types(struct hf_scope *s)
{
    static const struct hf_str set[] = {{"1", 1}, {"2", 1}};

    return HF_ITEM(s, HF_S(":s", HF_STR("s")), HF_S(":s2", HF_STR("t")), HF_N(":n", 1),
                   HF_N(":n2", 2), HF_B(":b", hf_bytes_of("a", 1)), HF_BOOL(":bool", true),
                   HF_NULL(":null"), HF_M(":m", HF_ITEM(s, HF_N("a", 1))),
                   HF_L(":l", HF_LIST(s, HF_N("", 1))), HF_SS(":ss", set, 2), HF_NS(":ns", set, 2),
                   HF_BS(":bs", set, 2), HF_S(":type", HF_STR("S")),
                   HF_B(":b3", hf_bytes_of("\xFF\x00q", 3)));
}

TEST(expr_bind, what_is_undefined_is_named)
{
    static const struct refusal list[] = {
        {C, "a = :x",
         IC "An expression attribute value used in expression is not defined; "
            "attribute value: :x"},
        {C, "#x = :s",
         IC "An expression attribute name used in the document path is not defined; "
            "attribute name: #x"},
        {C, "a = :s AND b.#x = :y",
         IC "An expression attribute name used in the document path is not defined; "
            "attribute name: #x"},
        {C, "size(#x) > :n",
         IC "An expression attribute name used in the document path is not defined; "
            "attribute name: #x"},
        {C, "a = :x AND #x = :s",
         IC "An expression attribute value used in expression is not defined; "
            "attribute value: :x"},
        {U, "SET a = :x, #x = :s",
         IU "An expression attribute name used in the document path is not defined; "
            "attribute name: #x"},
        {U, "SET a = :x",
         IU "An expression attribute value used in expression is not defined; "
            "attribute value: :x"},
        {P, "a, #x",
         IP "An expression attribute name used in the document path is not defined; "
            "attribute name: #x"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, all_types(s));
    CHECK_REFUSALS(s, list, HF_ITEM(s, HF_S("#a", HF_STR("a")), HF_S("#z", HF_STR("z"))),
                   all_types(s));
    hf_scope_free(s);
}

TEST(expr_bind, the_maps_themselves)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct expr_params params;
    struct hf_item empty = hf_item_make(s, NULL, 0);

    CHECK_OK(hf__expr_params(s, NO_ITEM, NO_ITEM, &params));
    CHECK_OK(hf__expr_unused(s, &params));
    CHECK_STATUS(HF_INVALID, hf__expr_params(s, empty, NO_ITEM, &params));
    CHECK_ERROR(HF_INVALID, "ExpressionAttributeNames must not be empty", s);
    CHECK_STATUS(HF_INVALID, hf__expr_params(s, NO_ITEM, empty, &params));
    CHECK_ERROR(HF_INVALID, "ExpressionAttributeValues must not be empty", s);
    CHECK_STATUS(HF_INVALID,
                 hf__expr_params(s, HF_ITEM(s, HF_S("a", HF_STR("b"))), NO_ITEM, &params));
    CHECK_ERROR(HF_INVALID,
                "ExpressionAttributeNames contains invalid key: Syntax error; key: "
                "\"a\"",
                s);
    CHECK_STATUS(HF_INVALID,
                 hf__expr_params(s, HF_ITEM(s, HF_S("#a.b", HF_STR("b"))), NO_ITEM, &params));
    CHECK_STATUS(HF_INVALID,
                 hf__expr_params(s, HF_ITEM(s, HF_S("#", HF_STR("b"))), NO_ITEM, &params));
    CHECK_STATUS(HF_INVALID, hf__expr_params(s, NO_ITEM, HF_ITEM(s, HF_N("#a", 1)), &params));
    CHECK_ERROR(HF_INVALID,
                "ExpressionAttributeValues contains invalid key: Syntax error; key: "
                "\"#a\"",
                s);
    CHECK_OK(hf__expr_params(s, HF_ITEM(s, HF_S("#0", HF_STR("b")), HF_S("#_a", HF_STR("c"))),
                             HF_ITEM(s, HF_N(":0", 1)), &params));
    CHECK_STATUS(HF_INVALID,
                 hf__expr_params(s, HF_ITEM(s, HF_S("#a", HF_STR(""))), NO_ITEM, &params));
    hf_scope_free(s);
}

TEST(expr_bind, names_longer_than_any_attribute_are_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char *name = hf_scope_alloc(s, ATTR_NAME_MAX + 1);
    struct expr_params params;

    memset(name, 'a', ATTR_NAME_MAX + 1);
    CHECK_OK(hf__expr_params(s, HF_ITEM(s, HF_S("#a", hf_str_of(name, ATTR_NAME_MAX))), NO_ITEM,
                             &params));
    CHECK_STATUS(HF_INVALID,
                 hf__expr_params(s, HF_ITEM(s, HF_S("#a", hf_str_of(name, ATTR_NAME_MAX + 1))),
                                 NO_ITEM, &params));
    CHECK(strstr(hf_scope_error_text(s), "65535"));
    hf_scope_free(s);
}

/* Use is judged over all expressions of the request, on the text, not on what is reached. */
TEST(expr_bind, unused_placeholders)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item names =
        HF_ITEM(s, HF_S("#a", HF_STR("a")), HF_S("#b", HF_STR("b")), HF_S("#c", HF_STR("c")));
    struct hf_item values = HF_ITEM(s, HF_N(":a", 1), HF_N(":b", 2), HF_N(":c", 3));
    struct expr_params params;
    struct expr_bound *bound;
    const struct expr *expr;

    CHECK_OK(hf__expr_params(s, names, values, &params));
    CHECK_OK(hf__expr_compile(s, C, HF_STR("x = :a OR #b = :a"), &expr));
    CHECK_OK(hf__expr_bind(s, expr, &params, &bound));
    CHECK_STATUS(HF_INVALID, hf__expr_unused(s, &params));
    CHECK_ERROR(HF_INVALID,
                "Value provided in ExpressionAttributeNames unused in expressions: keys: {#a, #c}",
                s);
    CHECK_OK(hf__expr_compile(s, P, HF_STR("#a, #c"), &expr));
    CHECK_OK(hf__expr_bind(s, expr, &params, &bound));
    CHECK_STATUS(HF_INVALID, hf__expr_unused(s, &params));
    CHECK_ERROR(HF_INVALID,
                "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b, :c}",
                s);
    CHECK_OK(hf__expr_compile(s, U, HF_STR("SET q = :b, w = if_not_exists(q, :c)"), &expr));
    CHECK_OK(hf__expr_bind(s, expr, &params, &bound));
    CHECK_OK(hf__expr_unused(s, &params));
    hf_scope_free(s);
}

TEST(expr_bind, operands_of_conditions)
{
    static const struct refusal list[] = {
        {C, "a < :bool", IC TYPE "<, operand type: BOOL"},
        {C, "a <= :null", IC TYPE "<=, operand type: NULL"},
        {C, ":m > a", IC TYPE ">, operand type: M"},
        {C, "a >= :l", IC TYPE ">=, operand type: L"},
        {C, "a < :ss", IC TYPE "<, operand type: SS"},
        {C, "a < :ns", IC TYPE "<, operand type: NS"},
        {C, "a < :bs", IC TYPE "<, operand type: BS"},
        {C, "a = :bool AND a <> :m AND a IN (:l, :ss)", NULL},
        {C, "a < :s AND b < :n AND c < :b", NULL},
        {C, "a BETWEEN :bool AND :n", IC TYPE "BETWEEN, operand type: BOOL"},
        {C, ":l BETWEEN a AND b", IC TYPE "BETWEEN, operand type: L"},
        {C, "begins_with(a, :n)", IC TYPE "begins_with, operand type: N"},
        {C, "begins_with(:bool, :s)", IC TYPE "begins_with, operand type: BOOL"},
        {C, "begins_with(a, :s) AND begins_with(a, :b) AND begins_with(a, b)", NULL},
        {C, "size(:n) = :n", IC TYPE "size, operand type: N"},
        {C, "size(:bool) = :n", IC TYPE "size, operand type: BOOL"},
        {C, "size(:null) = :n", IC TYPE "size, operand type: NULL"},
        {C, "size(:s) = :n AND size(:m) = :n AND size(:ss) = :n", NULL},
        {C, "attribute_type(a, :type)", NULL},
        {C, "attribute_type(a, :n)", IC TYPE "attribute_type, operand type: N"},
        {C, "attribute_type(a, b)",
         IC TYPE "attribute_type, operand type: {NS,SS,L,BS,N,M,B,BOOL,NULL,S}"},
        {C, "attribute_type(a, :s)",
         IC "Invalid attribute type name found; type: s, valid types: "
            "{B,NULL,SS,BOOL,L,BS,N,NS,S,M}"},
        {C, "attribute_exists(:s)",
         IC "Operator or function requires a document path; operator or function: "
            "attribute_exists"},
        {C, "attribute_not_exists(size(a))",
         IC "Operator or function requires a document path; operator or function: "
            "attribute_not_exists"},
        {C, "size(a, b) = :n",
         IC "Incorrect number of operands for operator or function; operator or function: size, "
            "number of operands: 2"},
        {C, "contains(a)",
         IC "Incorrect number of operands for operator or function; operator or function: "
            "contains, number of operands: 1"},
        {C, "attribute_exists(a, b, c)",
         IC "Incorrect number of operands for operator or function; operator or function: "
            "attribute_exists, number of operands: 3"},
        {C, "contains(a, a)",
         IC "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: contains, first operand: [a]"},
        {C, "a.b[1] = a.b[1]",
         IC "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: =, first operand: [a, b, [1]]"},
        {C, "a.b[1] = a.b[2] AND a = a.b", NULL},
        {C, "a = :s AND b < :bool OR c < :null", IC TYPE "<, operand type: BOOL"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, all_types(s));
    hf_scope_free(s);
}

TEST(expr_bind, equal_paths_are_found_behind_aliases)
{
    static const struct refusal list[] = {
        {C, "#x = b.c", NULL}, /* "b.c" is one name */
        {C, "#y.c = b.#z",
         IC "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: =, first operand: [b, c]"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list,
                   HF_ITEM(s, HF_S("#x", HF_STR("b.c")), HF_S("#y", HF_STR("b")),
                           HF_S("#z", HF_STR("c"))),
                   NO_ITEM);
    hf_scope_free(s);
}

TEST(expr_bind, bounds_of_between)
{
    static const struct refusal list[] = {
        {C, "a BETWEEN :n AND :n2", NULL},
        {C, "a BETWEEN :n AND :n", NULL},
        {C, "a BETWEEN b AND :n", NULL},
        {C, "a BETWEEN :n2 AND :n",
         IC "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: "
            "{N:1}"},
        {C, "a BETWEEN :n AND :s",
         IC "The BETWEEN operator requires same data type for lower and upper bounds; lower bound "
            "operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:s}"},
        {C, "a BETWEEN :b3 AND :b",
         IC "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {B:/wBx}, upper bound operand: AttributeValue: "
            "{B:YQ==}"},
        {C, "a BETWEEN :b AND :s",
         IC "The BETWEEN operator requires same data type for lower and upper bounds; lower bound "
            "operand: AttributeValue: {B:YQ==}, upper bound operand: AttributeValue: {S:s}"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, all_types(s));
    hf_scope_free(s);
}

TEST(expr_bind, in_takes_a_hundred)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    struct expr_bound *bound;

    hf__buf_put_str(&buf, HF_STR("a IN (:n"));
    for (int i = 1; i < 100; i++)
        hf__buf_put_str(&buf, HF_STR(",:n"));
    hf__buf_put_str(&buf, HF_STR(")"));
    CHECK_OK(try_bind(s, C, hf_str_of((char *)buf.ptr, buf.len), NO_ITEM, all_types(s), &bound));
    buf.len--;
    hf__buf_put_str(&buf, HF_STR(",:n)"));
    CHECK_STATUS(HF_INVALID, try_bind(s, C, hf_str_of((char *)buf.ptr, buf.len), NO_ITEM,
                                      all_types(s), &bound));
    CHECK_ERROR(HF_INVALID,
                IC "The IN operator is provided with too many operands; number of operands: 101",
                s);
    hf_scope_free(s);
}

TEST(expr_bind, operands_of_updates)
{
    static const struct refusal list[] = {
        {U, "ADD a :n", NULL},
        {U, "ADD a :ss, b :ns, c :bs", NULL},
        {U, "ADD a :s",
         IU "Incorrect operand type for operator or function; operator: ADD, "
            "operand type: STRING"},
        {U, "ADD a :b",
         IU "Incorrect operand type for operator or function; operator: ADD, "
            "operand type: BINARY"},
        {U, "ADD a :bool",
         IU "Incorrect operand type for operator or function; operator: ADD, "
            "operand type: BOOLEAN"},
        {U, "ADD a :null",
         IU "Incorrect operand type for operator or function; operator: ADD, "
            "operand type: NULL"},
        {U, "ADD a :l",
         IU "Incorrect operand type for operator or function; operator: ADD, "
            "operand type: LIST"},
        {U, "ADD a :m",
         IU "Incorrect operand type for operator or function; operator: ADD, "
            "operand type: MAP"},
        {U, "DELETE a :ss, b :ns, c :bs", NULL},
        {U, "DELETE a :n",
         IU "Incorrect operand type for operator or function; operator: DELETE, "
            "operand type: NUMBER"},
        {U, "SET b = list_append(:s, a), c = if_not_exists(a) ADD a.b :s",
         IU "Incorrect operand type for operator or function; operator: ADD, operand type: "
            "STRING"},
        {U, "SET a = list_append(a, :n)", IU TYPE "list_append, operand type: N"},
        {U, "SET a = list_append(:s, a)", IU TYPE "list_append, operand type: S"},
        {U, "SET a = b + :s", IU TYPE "+, operand type: S"},
        {U, "SET a = :ns - b", IU TYPE "-, operand type: NS"},
        {U, "SET a = if_not_exists(a)",
         IU "Incorrect number of operands for operator or function; operator or function: "
            "if_not_exists, number of operands: 1"},
        {U, "SET a = list_append(a, b, c)",
         IU "Incorrect number of operands for operator or function; operator or function: "
            "list_append, number of operands: 3"},
        {U, "SET a = if_not_exists(:s, a)",
         IU "Operator or function requires a document path; operator or function: "
            "if_not_exists"},
        {U, "SET a = if_not_exists(b, b)",
         IU "The first operand must be distinct from the remaining operands for this operator or "
            "function; operator: if_not_exists, first operand: [b]"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list, NO_ITEM, all_types(s));
    hf_scope_free(s);
}

#define OVERLAP                                                                                    \
    "Two document paths overlap with each other; must remove or rewrite one of these paths; "
#define CONFLICT                                                                                   \
    "Two document paths conflict with each other; must remove or rewrite one of these paths; "

TEST(expr_bind, paths_that_exclude_each_other)
{
    static const struct refusal list[] = {
        {U, "SET a.b = :n, a = :n", IU OVERLAP "path one: [a, b], path two: [a]"},
        {U, "SET a = :n, a = :n2", IU OVERLAP "path one: [a], path two: [a]"},
        {U, "SET a = :n REMOVE a", IU OVERLAP "path one: [a], path two: [a]"},
        {U, "SET b = :n ADD a.b[1] :n DELETE a.b[1].c :ss",
         IU OVERLAP "path one: [a, b, [1]], path two: [a, b, [1], c]"},
        {U, "SET a.b = :n, a[1] = :n", IU CONFLICT "path one: [a, b], path two: [a, [1]]"},
        {U, "REMOVE a.#x SET a[1] = :n", IU CONFLICT "path one: [a, c], path two: [a, [1]]"},
        {U, "SET #y[3].#z = :n, #y.#z[3] = :n",
         IU CONFLICT "path one: [c, [3], [3]], path two: [c, [3], [3]]"},
        {U, "SET a.b = :n, a[1] = :n, c = :n, c.d = :n",
         IU OVERLAP "path one: [c], path two: [c, d]"},
        {U, "SET a = b, b = a, c.d = :n, c.e = :n, l[0] = :n, l[1] = :n", NULL},
        {P, "a, b, a", IP OVERLAP "path one: [a], path two: [a]"},
        {P, "a.b, a.b.c", IP OVERLAP "path one: [a, b], path two: [a, b, c]"},
        {P, "a.b, a[1]", IP CONFLICT "path one: [a, b], path two: [a, [1]]"},
        {P, "c, #y", IP OVERLAP "path one: [c], path two: [c]"},
        {P, "a.b, a.c, ab, a1[0], a1[1]", NULL},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_REFUSALS(s, list,
                   HF_ITEM(s, HF_S("#x", HF_STR("c")), HF_S("#y", HF_STR("c")),
                           HF_S("#z", HF_STR("[3]"))),
                   all_types(s));
    hf_scope_free(s);
}

/* Many paths and many placeholders: found in order, and one that repeats is found among them. */
TEST(expr_bind, many_paths_and_placeholders)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf text = {.scope = s};
    struct hf__buf names = {.scope = s};
    struct hf__buf values = {.scope = s};
    size_t names_open = hf__build_open(&names, HF_TYPE_M);
    size_t values_open = hf__build_open(&values, HF_TYPE_M);
    struct expr_bound *bound;
    struct hf_item item;
    const struct expr_path *targets;
    size_t len;

    hf__buf_put_str(&text, HF_STR("SET "));
    for (int i = 0; i < 300; i++) {
        int n = i * 7 % 300;
        struct number number;

        hf__number_from_i64(n, &number);
        hf__buf_format(&text, "%s#a%d=:v%d", i ? "," : "", n, n);
        hf__build_name(&names, hf_scope_format(s, "#a%d", n));
        hf__build_str(&names, HF_TYPE_S, hf_scope_format(s, "name%d", n));
        hf__build_name(&values, hf_scope_format(s, ":v%d", n));
        hf__build_number(&values, number.bytes, number.len);
    }
    hf__build_close(&names, names_open);
    hf__build_close(&values, values_open);
    CHECK_OK(try_bind(s, U, hf_str_of((char *)text.ptr, text.len), hf__build_item_from(&names, 0),
                      hf__build_item_from(&values, 0), &bound));
    hf__expr_targets(bound, &targets, &len);
    CHECK_INT(300, len);
    CHECK_STR("name7", targets[1].steps[0].name);
    CHECK_OK(hf__expr_update(s, bound, HF_ITEM(s, HF_N("pk", 1)), NO_ITEM, &item));
    CHECK(hf__item_valid(item.ptr, item.len));
    CHECK_INT(301, hf_item_count(item));
    for (int i = 0; i < 300; i++) {
        int64_t n;

        CHECK(hf_value_i64(hf_item_get(item, hf_scope_format(s, "name%d", i)), &n));
        CHECK_INT(i, n);
    }
    hf__buf_put_str(&text, HF_STR(",name7=:v1"));
    CHECK_STATUS(HF_INVALID,
                 try_bind(s, U, hf_str_of((char *)text.ptr, text.len),
                          hf__build_item_from(&names, 0), hf__build_item_from(&values, 0), &bound));
    CHECK_ERROR(HF_INVALID, IU OVERLAP "path one: [name7], path two: [name7]", s);
    hf_scope_free(s);
}
