/* expr/update_test.c: items after updates; (n) is an invariant of update.c. */
#include "expr/private.h"

#include "help.h"

#define U EXPR_UPDATE

#define MISSING "The provided expression refers to an attribute that does not exist in the item"
#define WRONG_TYPE "An operand in the update expression has an incorrect data type"
#define WRONG_PATH "The document path provided in the update expression is invalid for update"
#define OVERFLOW                                                                                   \
    "Number overflow. Attempting to store a number with magnitude larger than supported range"

static const struct hf_str ab[] = {{"a", 1}, {"b", 1}};
static const struct hf_str bc[] = {{"b", 1}, {"c", 1}};
static const struct hf_str abc[] = {{"a", 1}, {"b", 1}, {"c", 1}};
static const struct hf_str n12[] = {{"1", 1}, {"2", 1}};
static const struct hf_str n2[] = {{"2.0", 3}};

static struct hf_item key(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("pk", HF_STR("k")));
}

static struct hf_item values(struct hf_scope *s)
{
    return HF_ITEM(s, HF_N(":n", 5), HF_N(":one", 1), HF_S(":s", HF_STR("new")),
                   HF_SS(":ab", ab, 2), HF_SS(":bc", bc, 2), HF_NS(":n12", n12, 2),
                   HF_NS(":n2", n2, 1), HF_L(":l", HF_LIST(s, HF_N("", 8), HF_N("", 9))),
                   HF_L(":none", hf_list_make(s, NULL, 0)), HF_M(":m", HF_ITEM(s, HF_N("x", 1))),
                   HF_NUM(":huge", HF_STR("9e125")), HF_NUM(":e50", HF_STR("1e50")),
                   HF_NULL(":null"));
}

static struct hf_item old(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 10), HF_S("s", HF_STR("old")),
                   HF_SS("tags", ab, 2), HF_NS("nums", n12, 2),
                   HF_L("l", HF_LIST(s, HF_N("", 0), HF_N("", 1), HF_N("", 2),
                                     HF_M("", HF_ITEM(s, HF_N("q", 1))))),
                   HF_M("m", HF_ITEM(s, HF_N("a", 1),
                                     HF_M("b", HF_ITEM(s, HF_N("c", 1), HF_N("d", 2))))),
                   HF_NUM("big", HF_STR("9e125")), HF_NUM("e50", HF_STR("1e50")));
}

static struct hf_item run(struct hf_scope *s, const char *text, struct hf_item before)
{
    struct expr_bound *bound = must_bind(s, U, text, NO_ITEM, values(s));
    struct hf_item after;
    enum hf_status status = hf__expr_update(s, bound, key(s), before, &after);

    if (status != HF_OK)
        print_error("%s\n  %s\n", text, hf_scope_error_text(s));
    CHECK_INT(HF_OK, status);
    CHECK(!after.ptr || hf__item_valid(after.ptr, after.len));
    return after;
}

/* The old item with attributes over it. */
#define WITH(s, ...)                                                                               \
    hf_item_with((s), old(s), (const struct hf_attr[]){__VA_ARGS__}, HF_ATTR_COUNT(__VA_ARGS__))

static struct hf_item without(struct hf_scope *s, struct hf_item item, const char *name)
{
    struct hf__buf buf = {.scope = s};
    size_t open = hf__build_open(&buf, HF_TYPE_M);
    struct hf_item_walk walk = {0};

    while (hf_item_next(item, &walk)) {
        if (hf_str_equal(walk.name, hf_str_from(name)))
            continue;
        hf__build_name(&buf, walk.name);
        hf__build_value(&buf, walk.value);
    }
    hf__build_close(&buf, open);
    return hf__build_item_from(&buf, 0);
}

TEST(expr_update, set_puts_values_and_copies_the_rest)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_item(WITH(s, HF_S("s", HF_STR("new"))), run(s, "SET s = :s", old(s)), "replace");
    check_item(WITH(s, HF_S("a", HF_STR("new"))), run(s, "SET a = :s", old(s)), "first");
    check_item(WITH(s, HF_S("zz", HF_STR("new"))), run(s, "SET zz = :s", old(s)), "last");
    check_item(WITH(s, HF_S("mm", HF_STR("new")), HF_N("a", 5), HF_N("n", 1), HF_NULL("z")),
               run(s, "SET z = :null, n = :one, a = :n, mm = :s", old(s)), "several");
    check_item(WITH(s, HF_N("dup", 10)), run(s, "SET dup = n", old(s)), "copy");
    check_item(old(s), run(s, "SET n = n", old(s)), "the same again");
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 5)), run(s, "SET n = :n", NO_ITEM),
               "new item");
    hf_scope_free(s);
}

/* (1) */
TEST(expr_update, right_sides_see_the_old_item)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_item(WITH(s, HF_S("n", HF_STR("old")), HF_N("s", 10)), run(s, "SET n = s, s = n", old(s)),
               "swap");
    check_item(without(s, WITH(s, HF_N("x", 10)), "n"), run(s, "REMOVE n SET x = n", old(s)),
               "read what is removed");
    hf_scope_free(s);
}

TEST(expr_update, sums_are_exact)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_item(WITH(s, HF_N("n", 15)), run(s, "SET n = n + :n", old(s)), "plus");
    check_item(WITH(s, HF_N("n", -5)), run(s, "SET n = :n - n", old(s)), "minus");
    check_item(WITH(s, HF_N("v", 15)),
               run(s, "SET v = if_not_exists(v, n) + if_not_exists(w, :n)", old(s)), "calls");
    check_item(WITH(s, HF_N("n", 15)), run(s, "ADD n :n", old(s)), "add");
    check_item(WITH(s, HF_N("c", 5)), run(s, "ADD c :n", old(s)), "add to nothing");
    check_item(WITH(s, HF_M("m", HF_ITEM(s, HF_N("a", 6),
                                         HF_M("b", HF_ITEM(s, HF_N("c", 1), HF_N("d", 2)))))),
               run(s, "ADD m.a :n", old(s)), "nested");
    hf_scope_free(s);
}

TEST(expr_update, functions)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item;

    check_item(old(s), run(s, "SET n = if_not_exists(n, :s)", old(s)), "there");
    check_item(WITH(s, HF_S("x", HF_STR("new"))), run(s, "SET x = if_not_exists(y, :s)", old(s)),
               "not there");
    check_item(WITH(s, HF_N("x", 10)),
               run(s, "SET x = if_not_exists(y, if_not_exists(m.z, if_not_exists(n, :s)))", old(s)),
               "nested");
    item = HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_L("l", HF_LIST(s, HF_N("", 1))));
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")),
                       HF_L("l", HF_LIST(s, HF_N("", 1), HF_N("", 8), HF_N("", 9)))),
               run(s, "SET l = list_append(l, :l)", item), "behind");
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")),
                       HF_L("l", HF_LIST(s, HF_N("", 8), HF_N("", 9), HF_N("", 1)))),
               run(s, "SET l = list_append(:l, l)", item), "in front");
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_L("x", HF_LIST(s, HF_N("", 8), HF_N("", 9)))),
               run(s, "SET x = list_append(if_not_exists(x, :none), :l)", NO_ITEM), "to nothing");
    hf_scope_free(s);
}

/* (3) */
TEST(expr_update, lists)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_attr q = HF_M("", HF_ITEM(s, HF_N("q", 1)));

    check_item(WITH(s, HF_L("l", HF_LIST(s, HF_N("", 0), HF_N("", 5), HF_N("", 2), q))),
               run(s, "SET l[1] = :n", old(s)), "inside");
    check_item(WITH(s,
                    HF_L("l", HF_LIST(s, HF_N("", 0), HF_N("", 1), HF_N("", 2), q, HF_N("", 5)))),
               run(s, "SET l[99] = :n", old(s)), "behind the end");
    check_item(WITH(s, HF_L("l", HF_LIST(s, HF_N("", 0), HF_N("", 1), HF_N("", 2), q, HF_N("", 1),
                                         HF_N("", 5), HF_S("", HF_STR("new"))))),
               run(s, "SET l[30] = :s, l[20] = :n, l[4] = :one", old(s)), "in index order");
    check_item(WITH(s, HF_L("l", HF_LIST(s, HF_N("", 1), q))), run(s, "REMOVE l[0], l[2]", old(s)),
               "indexes of the old list");
    check_item(old(s), run(s, "REMOVE l[4], l[4294967294]", old(s)), "out of range");
    check_item(WITH(s, HF_L("l", HF_LIST(s, HF_N("", 5), HF_N("", 2), q, HF_S("", HF_STR("new"))))),
               run(s, "SET l[0] = :n, l[9] = :s REMOVE l[1]", old(s)), "put, remove and append");
    check_item(WITH(s, HF_L("l", HF_LIST(s, HF_N("", 0), HF_N("", 1), HF_N("", 2),
                                         HF_M("", HF_ITEM(s, HF_N("q", 6), HF_N("r", 5)))))),
               run(s, "ADD l[3].q :n SET l[3].r = :n", old(s)), "through a list");
    check_item(WITH(s, HF_L("l", hf_list_make(s, NULL, 0))),
               run(s, "REMOVE l[0], l[1], l[2], l[3]", old(s)), "an empty list stays");
    hf_scope_free(s);
}

TEST(expr_update, maps)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_item(WITH(s,
                    HF_M("m", HF_ITEM(s, HF_N("a", 1),
                                      HF_M("b", HF_ITEM(s, HF_N("bb", 1), HF_N("c", 5),
                                                        HF_N("d", 2), HF_S("e", HF_STR("new"))))))),
               run(s, "SET m.b.e = :s, m.b.c = :n, m.b.bb = :one", old(s)), "nested");
    check_item(WITH(s, HF_M("m", HF_ITEM(s, HF_M("b", HF_ITEM(s, HF_N("d", 2)))))),
               run(s, "REMOVE m.a, m.b.c, m.b.z", old(s)), "remove nested");
    check_item(without(s, old(s), "m"), run(s, "REMOVE m", old(s)), "remove whole");
    check_item(WITH(s, HF_M("m", HF_ITEM(s, HF_N("x", 1)))), run(s, "SET m = :m", old(s)),
               "replace whole");
    hf_scope_free(s);
}

/* (4) */
TEST(expr_update, sets)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct hf_str a[] = {{"a", 1}};
    static const struct hf_str n1[] = {{"1", 1}};

    check_item(WITH(s, HF_SS("tags", abc, 3)), run(s, "ADD tags :bc", old(s)), "unite");
    check_item(WITH(s, HF_SS("nu", bc, 2)), run(s, "ADD nu :bc", old(s)), "to nothing");
    check_item(WITH(s, HF_SS("tags", a, 1)), run(s, "DELETE tags :bc", old(s)), "take away");
    check_item(without(s, old(s), "tags"), run(s, "DELETE tags :ab", old(s)), "take all away");
    check_item(old(s), run(s, "DELETE nix :ab", old(s)), "from nothing");
    check_item(WITH(s, HF_NS("nums", n1, 1)), run(s, "DELETE nums :n2", old(s)), "by value");
    check_item(old(s), run(s, "ADD nums :n12", old(s)), "what is there already");
    hf_scope_free(s);
}

TEST(expr_update, errors_met_in_the_item)
{
    static const struct {
        const char *text;
        const char *message;
    } list[] = {
        {"SET a = b", MISSING},
        {"SET a = m.z", MISSING},
        {"SET a = b + :n", MISSING},
        {"SET a = list_append(b, :l)", MISSING},
        {"SET a = if_not_exists(b, c)", MISSING},
        {"SET a = s + :n", WRONG_TYPE},
        {"SET a = n - l", WRONG_TYPE},
        {"SET a = if_not_exists(s, :n) + :n", WRONG_TYPE},
        {"SET a = list_append(n, :l)", WRONG_TYPE},
        {"ADD s :n", WRONG_TYPE},
        {"ADD l :n", WRONG_TYPE},
        {"ADD tags :n12", WRONG_TYPE},
        {"ADD n :ab", WRONG_TYPE},
        {"DELETE s :ab", WRONG_TYPE},
        {"DELETE nums :ab", WRONG_TYPE},
        {"SET x.y = :n", WRONG_PATH},
        {"SET s.y = :n", WRONG_PATH},
        {"SET m[0] = :n", WRONG_PATH},
        {"SET l.a = :n", WRONG_PATH},
        {"SET l[7].a = :n", WRONG_PATH},
        {"SET x[0] = :n", WRONG_PATH},
        {"SET m.z.y = :n", WRONG_PATH},
        {"ADD x.y :n", WRONG_PATH},
        {"DELETE x.y :ab", WRONG_PATH},
        {"REMOVE x.y", WRONG_PATH},
        {"REMOVE s.y", WRONG_PATH},
        {"REMOVE m[0]", WRONG_PATH},
        {"REMOVE l[9].a", WRONG_PATH},
        {"ADD big :huge", OVERFLOW},
        {"SET big = big + :huge", OVERFLOW},
        {"SET e50 = e50 + :one", OVERFLOW}, /* digits would be lost */
        {"SET e50 = e50 - :one", OVERFLOW},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        struct expr_bound *bound = must_bind(s, U, list[i].text, NO_ITEM, values(s));
        struct hf_item after;

        if (hf__expr_update(s, bound, key(s), old(s), &after) != HF_INVALID ||
            strcmp(hf_scope_error_text(s), list[i].message) != 0) {
            print_error("%s\n  %s\n", list[i].text, hf_scope_error_text(s));
            fail();
        }
        CHECK(!after.ptr);
    }
    hf_scope_free(s);
}

TEST(expr_update, no_item)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct expr_bound *bound;
    struct hf_item after;

    CHECK(!run(s, "REMOVE a", NO_ITEM).ptr);
    CHECK(!run(s, "REMOVE a.b, c[1] DELETE d :ab, e.f :ab", NO_ITEM).ptr);
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 5)),
               run(s, "REMOVE a.b DELETE d :ab SET n = :n", NO_ITEM), "set beside remove");
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 5)),
               run(s, "REMOVE pk.b SET n = :n", NO_ITEM), "remove below the key");
    check_item(HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_SS("x", ab, 2)), run(s, "ADD x :ab", NO_ITEM),
               "add");
    bound = must_bind(s, U, "SET a.b = :n", NO_ITEM, values(s));
    CHECK_STATUS(HF_INVALID, hf__expr_update(s, bound, key(s), NO_ITEM, &after));
    CHECK_ERROR(HF_INVALID, WRONG_PATH, s);
    hf_scope_free(s);
}

static struct hf_value nested(struct hf_scope *s, int levels)
{
    struct hf_value value = hf_value_make(s, (struct hf_attr)HF_N("", 1));

    while (--levels > 0)
        value = HF_LIST(s, HF_V("", value));
    return value;
}

TEST(expr_update, results_nest_at_most_32_levels)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item before = HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_V("l", nested(s, 32)));
    struct expr_bound *bound;
    struct hf_item after;

    bound = must_bind(s, U, "SET l[0] = :v", NO_ITEM, HF_ITEM(s, HF_V(":v", nested(s, 31))));
    CHECK_OK(hf__expr_update(s, bound, key(s), before, &after));
    CHECK(hf__item_valid(after.ptr, after.len));
    bound = must_bind(s, U, "SET l[0] = :v", NO_ITEM, HF_ITEM(s, HF_V(":v", nested(s, 32))));
    CHECK_STATUS(HF_INVALID, hf__expr_update(s, bound, key(s), before, &after));
    CHECK_ERROR(HF_INVALID,
                "Nesting Levels have exceeded supported limits: Attributes in the item have "
                "nested levels beyond supported limit",
                s);
    bound = must_bind(s, U, "SET l[0] = l", NO_ITEM, HF_ITEM(s, HF_N(":unused", 1)));
    CHECK_STATUS(HF_INVALID, hf__expr_update(s, bound, key(s), before, &after));
    hf_scope_free(s);
}

TEST(expr_update, what_was_touched)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item =
        HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("n", 1),
                HF_M("a", HF_ITEM(s, HF_N("b", 1),
                                  HF_L("c", HF_LIST(s, HF_N("", 1), HF_N("", 2), HF_N("", 3))))));
    struct expr_bound *bound = must_bind(s, U, "SET a.c[1] = :n", NO_ITEM, values(s));
    struct hf_item touched;

    CHECK_OK(hf__expr_touched(s, bound, item, &touched));
    check_item(HF_ITEM(s, HF_M("a", HF_ITEM(s, HF_L("c", HF_LIST(s, HF_N("", 2)))))), touched,
               "pruned");
    bound =
        must_bind(s, U, "SET n = :n, a.c[1] = n, a.c[0] = :s REMOVE a.z, q", NO_ITEM, values(s));
    CHECK_OK(hf__expr_touched(s, bound, item, &touched));
    check_item(HF_ITEM(s, HF_N("n", 1),
                       HF_M("a", HF_ITEM(s, HF_L("c", HF_LIST(s, HF_N("", 1), HF_N("", 2)))))),
               touched, "several");
    bound = must_bind(s, U, "SET z = :n, a.y = :s", NO_ITEM, values(s));
    CHECK_OK(hf__expr_touched(s, bound, item, &touched));
    CHECK(!touched.ptr);
    CHECK_OK(hf__expr_touched(s, bound, NO_ITEM, &touched));
    CHECK(!touched.ptr);
    hf_scope_free(s);
}
