/* expr/match_test.c: conditions against items. */
#include "expr/private.h"

#include "help.h"

#define C EXPR_CONDITION

struct verdict {
    const char *text;
    bool holds;
};

static void check_verdicts(struct hf_scope *s, const struct verdict *list, size_t len,
                           struct hf_item values, struct hf_item item)
{
    for (size_t i = 0; i < len; i++) {
        struct expr_bound *bound = must_bind(s, C, list[i].text, NO_ITEM, values);

        if (hf__expr_match(bound, item) != list[i].holds) {
            print_error("%s: expected %s\n", list[i].text, list[i].holds ? "true" : "false");
            fail();
        }
    }
}

static const struct hf_str two[] = {{"1", 1}, {"2", 1}};
static const struct hf_str turned[] = {{"2.0", 3}, {"1", 1}};

static struct hf_item sample(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("s", HF_STR("hello")), HF_N("n", 10),
                   HF_B("b", hf_bytes_of("\x01\xFF", 2)), HF_BOOL("t", true), HF_NULL("nul"),
                   HF_S("blank", HF_STR("")), HF_SS("ss", two, 2), HF_NS("ns", two, 2),
                   HF_BS("bs", two, 2),
                   HF_L("l", HF_LIST(s, HF_N("", 1), HF_S("", HF_STR("x")), HF_NS("", two, 2),
                                     HF_L("", HF_LIST(s, HF_N("", 7))))),
                   HF_M("m",
                        HF_ITEM(s, HF_N("a", 1), HF_S("b", HF_STR("c")), HF_NS("set", two, 2))),
                   HF_S("u", HF_STR("\xC3\xA4\xC3\xB6")), HF_S("s2", HF_STR("hello")));
}

static struct hf_item values(struct hf_scope *s)
{
    return HF_ITEM(
        s, HF_S(":hello", HF_STR("hello")), HF_S(":he", HF_STR("he")), HF_S(":ll", HF_STR("ll")),
        HF_S(":empty", HF_STR("")), HF_NUM(":ten", HF_STR("1e1")), HF_N(":one", 1),
        HF_N(":five", 5), HF_N(":four", 4), HF_N(":two", 2), HF_N(":zero", 0),
        HF_B(":b", hf_bytes_of("\x01\xFF", 2)), HF_B(":b1", hf_bytes_of("\x01", 1)),
        HF_B(":b80", hf_bytes_of("\x01\x7F", 2)), HF_BOOL(":t", true), HF_BOOL(":f", false),
        HF_NULL(":nul"), HF_NS(":ns", turned, 2), HF_S(":x", HF_STR("x")),
        HF_S(":two_s", HF_STR("2")), HF_B(":two_b", hf_bytes_of("2", 1)),
        HF_M(":m", HF_ITEM(s, HF_NS("set", turned, 2), HF_S("b", HF_STR("c")), HF_N("a", 1))),
        HF_L(":l1", HF_LIST(s, HF_N("", 7))), HF_S(":S", HF_STR("S")), HF_S(":N", HF_STR("N")),
        HF_S(":NULL", HF_STR("NULL")), HF_S(":M", HF_STR("M")), HF_S(":BS", HF_STR("BS")));
}

TEST(expr_match, comparisons)
{
    static const struct verdict list[] = {
        {"s = :hello", true},
        {"s <> :hello", false},
        {"n = :ten", true},
        {"n > :five", true},
        {"n > :ten", false},
        {"n >= :ten", true},
        {"n < :five", false},
        {"n <= :ten", true},
        {":five < n", true},
        {"s > :he", true},
        {"s < :he", false},
        {"b = :b", true},
        {"b > :b80", true}, /* unsigned */
        {"t = :t", true},
        {"t = :f", false},
        {"nul = :nul", true},
        {"ns = :ns", true},
        {"m = :m", true}, /* sets in any order, deep inside */
        {"l[3] = :l1", true},
        {"l[3] <> :l1", false},
        {"l[0] = :one", true},
        {"l[1] = :x", true},
        {"l[3][0] > :five", true},
        {"m.a = :one", true},
        {"m.b <> :x", true},
        {"s = s2", true},
        {"n BETWEEN :five AND :ten", true},
        {"n BETWEEN :one AND :five", false},
        {":five BETWEEN l[0] AND n", true},
        {"s BETWEEN :he AND :x", true},
        {"n IN (:one, :ten)", true},
        {"n IN (:one, :five, :hello)", false},
        {":one IN (n, m.a)", true},
        {"m IN (:one, :m)", true},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_verdicts(s, list, ARRAY_LEN(list), values(s), sample(s));
    hf_scope_free(s);
}

/* Missing or of another type: false, but <> is true. */
TEST(expr_match, what_is_missing_or_of_another_type)
{
    static const struct verdict list[] = {
        {"nope = :one", false},
        {"nope <> :one", true},
        {"nope <> nix", true},
        {"nope = nix", false},
        {"nope < :one", false},
        {"nope >= :one", false},
        {"NOT nope < :one", true},
        {"nope BETWEEN :one AND :five", false},
        {"nope IN (:one)", false},
        {"nope IN (nix)", false},
        {"n = :hello", false},
        {"n <> :hello", true},
        {"n < :hello", false},
        {"n >= :hello", false},
        {"t < :one", false},
        {"l > :one", false},
        {"ns BETWEEN :one AND :five", false},
        {"s = :two_b", false},
        {"m.nope = :one", false},
        {"m[0] = :one", false},
        {"l.a = :one", false},
        {"l[4] = :one", false},
        {"l[4294967294] = :one", false},
        {"s.a <> :one", true},
        {"s[0] = :one", false},
        {"size(nope) = :zero", false},
        {"size(nope) <> :zero", true},
        {"size(n) <> :zero", false},
        {":zero <> size(n)", false},
        {"size(n) < :five", false},
        {"size(t) >= :zero", false},
        {"size(nul) >= :zero", false},
        {"begins_with(nope, :he)", false},
        {"begins_with(n, :he)", false},
        {"contains(nope, :he)", false},
        {"contains(s, nope)", false},
        {"contains(n, :one)", false},
        {"attribute_type(nope, :S)", false},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_verdicts(s, list, ARRAY_LEN(list), values(s), sample(s));
    hf_scope_free(s);
}

TEST(expr_match, functions)
{
    static const struct verdict list[] = {
        {"attribute_exists(s)", true},
        {"attribute_exists(nul)", true},
        {"attribute_exists(m.a)", true},
        {"attribute_exists(m.z)", false},
        {"attribute_exists(l[3][0])", true},
        {"attribute_not_exists(l[3][1])", true},
        {"attribute_not_exists(s)", false},
        {"attribute_type(s, :S)", true},
        {"attribute_type(s, :N)", false},
        {"attribute_type(nul, :NULL)", true},
        {"attribute_type(m, :M)", true},
        {"attribute_type(bs, :BS)", true},
        {"begins_with(s, :he)", true},
        {"begins_with(s, :hello)", true},
        {"begins_with(s, :ll)", false},
        {"begins_with(s, :empty)", true},
        {"begins_with(b, :b1)", true},
        {"begins_with(b, :he)", false},
        {"contains(s, :ll)", true},
        {"contains(s, :empty)", true},
        {"contains(s, :x)", false},
        {"contains(b, :b1)", true},
        {"contains(ss, :two_s)", true},
        {"contains(ss, :x)", false},
        {"contains(ss, :two)", false}, /* an N in a set of S */
        {"contains(ns, :two)", true},
        {"contains(ns, :five)", false},
        {"contains(bs, :two_b)", true},
        {"contains(bs, :two_s)", false},
        {"contains(l, :one)", true},
        {"contains(l, :ns)", true},
        {"contains(l, :l1)", true},
        {"contains(l, :five)", false},
        {"contains(m, :one)", false}, /* maps never */
        {"contains(ns, m.a)", true},
        {"contains(:hello, s)", true},
        {"contains(l, size(m.b))", true},
        {"size(s) = :five", true},
        {"size(u) = :two", true}, /* units of UTF-16 */
        {"size(b) = :two", true},
        {"size(ss) = :two", true},
        {"size(l) = :four", true},
        {"size(m) > :two", true},
        {"size(blank) = :zero", true},
        {"size(:hello) = :five", true},
        {"size(s) = size(s2)", true},
        {"size(l) < size(s)", true},
        {"size(s) BETWEEN :one AND :ten", true},
        {":five IN (size(l), size(s))", true},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_verdicts(s, list, ARRAY_LEN(list), values(s), sample(s));
    hf_scope_free(s);
}

TEST(expr_match, no_item)
{
    static const struct verdict list[] = {
        {"attribute_not_exists(s)", true},
        {"attribute_exists(s)", false},
        {"s <> :one", true},
        {"s = :one", false},
        {":one = :one AND :one < :five", true},
        {"NOT s = :one OR attribute_exists(s)", true},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_verdicts(s, list, ARRAY_LEN(list), values(s), NO_ITEM);
    check_verdicts(s, list, ARRAY_LEN(list), values(s), hf_item_make(s, NULL, 0));
    hf_scope_free(s);
}

TEST(expr_match, not_before_and_before_or)
{
    static const struct verdict list[] = {
        {"t = :t OR t = :f AND t = :f", true},
        {"(t = :t OR t = :f) AND t = :f", false},
        {"NOT t = :f AND t = :f", false},
        {"NOT (t = :f AND t = :f)", true},
        {"NOT t = :t OR t = :t", true},
        {"NOT NOT t = :t", true},
        {"NOT NOT NOT t = :t", false},
        {"t = :f AND t = :f OR t = :t", true},
        {"t = :f OR NOT t = :f AND NOT t = :f", true},
        {"NOT (NOT t = :t OR t = :f)", true},
        {"(NOT t = :f AND t = :t) OR t = :f", true},
        {"(NOT t = :t AND t = :t) OR t = :f", false},
        {"n BETWEEN :one AND :ten AND t = :t", true},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_verdicts(s, list, ARRAY_LEN(list), values(s), sample(s));
    hf_scope_free(s);
}

/* ---- random conditions against plain recursion ---------------------------------------------- */

struct tree {
    struct test *t;
    struct hf__buf *text;
    unsigned operators;
};

/* Write a random condition and return what it must come to. `tight`: 0 OR, 1 AND, 2 NOT, 3 leaf */
static bool write_random(struct tree *tree, int depth, int tight)
{
    uint64_t pick = depth == 0 ? 3 : test_random_below(tree->t, 4);
    bool wrap = pick < (uint64_t)tight;
    bool truth;
    bool right;

    if (wrap)
        hf__buf_put_str(tree->text, HF_STR("("));
    tree->operators++;
    switch (pick) {
    case 0:
        truth = write_random(tree, depth - 1, 0);
        hf__buf_put_str(tree->text, HF_STR(" OR "));
        right = write_random(tree, depth - 1, 1);
        truth = truth || right;
        break;
    case 1:
        truth = write_random(tree, depth - 1, 1);
        hf__buf_put_str(tree->text, HF_STR(" AND "));
        right = write_random(tree, depth - 1, 2);
        truth = truth && right;
        break;
    case 2:
        hf__buf_put_str(tree->text, HF_STR("NOT "));
        truth = !write_random(tree, depth - 1, 2);
        break;
    default:
        truth = test_random_below(tree->t, 2) == 1;
        hf__buf_put_str(tree->text, truth ? HF_STR("t = :t") : HF_STR("t = :f"));
        break;
    }
    if (wrap)
        hf__buf_put_str(tree->text, HF_STR(")"));
    return truth;
}

TEST(expr_match, random_conditions_come_to_what_recursion_does)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (int i = 0; i < 2000; i++) {
        struct hf__buf text = {.scope = s};
        struct tree tree = {t, &text, 0};
        struct expr_bound *bound;
        bool truth = write_random(&tree, (int)test_random_below(t, 7), 0);

        if (tree.operators <= EXPR_OPERATORS_MAX && text.len <= EXPR_TEXT_MAX) {
            hf__buf_put_byte(&text, 0);
            bound = must_bind(s, C, (const char *)text.ptr, NO_ITEM, values(s));
            if (hf__expr_match(bound, sample(s)) != truth) {
                print_error("%s: expected %d\n", (const char *)text.ptr, truth);
                fail();
            }
        }
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

TEST(expr_match, matching_allocates_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct expr_bound *bound =
        must_bind(s, C, "size(l) < size(s) AND contains(l, :l1) AND n IN (:one, size(m), :ten)",
                  NO_ITEM, values(s));
    struct hf_item item = sample(s);
    struct hf__mark before = hf__scope_mark(s);
    struct hf__mark after;

    t->fail_at = -(int64_t)(t->allocs + 1);
    CHECK(hf__expr_match(bound, item));
    after = hf__scope_mark(s);
    CHECK(before.chunk == after.chunk && before.used == after.used);
    t->fail_at = 0;
    hf_scope_free(s);
}
