/* expr/project_test.c: what projections leave. */
#include "expr/private.h"

#include "help.h"

static struct hf_item sample(struct hf_scope *s)
{
    return HF_ITEM(
        s, HF_S("pk", HF_STR("k")), HF_N("n", 1), HF_N("a.b", 2),
        HF_M("a", HF_ITEM(s, HF_N("b", 3), HF_N("c", 4), HF_M("d", HF_ITEM(s, HF_N("e", 5))))),
        HF_L("l", HF_LIST(s, HF_N("", 0), HF_N("", 1), HF_M("", HF_ITEM(s, HF_N("x", 1))),
                          HF_L("", HF_LIST(s, HF_N("", 7), HF_N("", 8))))));
}

static struct hf_item project(struct hf_scope *s, const char *text, struct hf_item item)
{
    struct expr_bound *bound =
        must_bind(s, EXPR_PROJECTION, text, HF_ITEM(s, HF_S("#ab", HF_STR("a.b"))), NO_ITEM);
    struct hf_item out;

    CHECK_OK(hf__expr_project(s, bound, item, &out));
    CHECK(hf__item_valid(out.ptr, out.len));
    return out;
}

TEST(expr_project, paths_keep_their_containers)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item = sample(s);

    check_item(HF_ITEM(s, HF_N("n", 1)), project(s, "n", item), "one");
    check_item(HF_ITEM(s, HF_N("n", 1), HF_S("pk", HF_STR("k"))), project(s, "pk, n, zz", item),
               "two");
    check_item(HF_ITEM(s, HF_N("a.b", 2)), project(s, "#ab", item), "an alias is one step");
    check_item(HF_ITEM(s, HF_M("a", HF_ITEM(s, HF_N("b", 3)))), project(s, "a.b", item), "nested");
    check_item(HF_ITEM(s, HF_M("a", HF_ITEM(s, HF_N("c", 4), HF_M("d", HF_ITEM(s, HF_N("e", 5)))))),
               project(s, "a.d.e, a.c, a.zz", item), "two nested");
    check_item(HF_ITEM(s, HF_L("l", HF_LIST(s, HF_N("", 1)))), project(s, "l[1]", item), "element");
    check_item(HF_ITEM(s, HF_L("l", HF_LIST(s, HF_N("", 0), HF_M("", HF_ITEM(s, HF_N("x", 1))),
                                            HF_L("", HF_LIST(s, HF_N("", 8)))))),
               project(s, "l[3][1], l[2].x, l[0], l[9]", item), "dense, in index order");
    hf_scope_free(s);
}

TEST(expr_project, what_leads_nowhere_leaves_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item empty = hf_item_make(s, NULL, 0);

    check_item(empty, project(s, "zz", sample(s)), "missing");
    check_item(empty, project(s, "a.zz, a.d.zz, l[9], l[2].zz, n.x, zz[0]", sample(s)), "below");
    check_item(empty, project(s, "a[0].b, l.x, n[0]", sample(s)), "of another kind");
    check_item(empty, project(s, "zz", empty), "of nothing");
    hf_scope_free(s);
}

TEST(expr_project, legacy_names)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_str names[] = {HF_STR("n"), HF_STR("a.b"), HF_STR("zz"), HF_STR("status")};
    struct expr_bound *bound;
    struct hf_item out;
    const struct expr_path *paths;
    size_t len;

    CHECK_OK(hf__expr_legacy_projection(s, names, ARRAY_LEN(names), &bound));
    CHECK_OK(hf__expr_project(s, bound, sample(s), &out));
    check_item(HF_ITEM(s, HF_N("n", 1), HF_N("a.b", 2)), out, "legacy");
    hf__expr_paths(bound, &paths, &len);
    CHECK_INT(4, len);
    CHECK_STR("a.b", paths[1].steps[0].name);
    hf_scope_free(s);
}
