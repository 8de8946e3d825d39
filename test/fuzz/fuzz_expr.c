/*
 * test/fuzz/fuzz_expr.c: expressions of every kind from any text.
 *
 * The first byte chooses the kind of expression and the items; the rest is the text. What compiles
 * is bound to a fixed set of names and values and used on a few items. Whatever the text:
 *
 *     compiling twice ends the same way, in the same words
 *     a text that is too long or empty does not compile; no bare name of a program is reserved
 *     a condition comes to the same twice, and its negation to the opposite
 *     what updates and projections make is a valid item; a projection of it changes nothing more
 */
#include "expr/private.h"

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct hf_str two[] = {{"a", 1}, {"b", 1}};
static const struct hf_str numbers[] = {{"1", 1}, {"2", 1}};

static struct hf_item names_of(struct hf_scope *s)
{
    return HF_ITEM(s, HF_S("#a", HF_STR("a")), HF_S("#b", HF_STR("b.c")),
                   HF_S("#n", HF_STR("name")), HF_S("#0", HF_STR("[0]")));
}

static struct hf_item values_of(struct hf_scope *s)
{
    return HF_ITEM(s, HF_N(":n", 1), HF_S(":s", HF_STR("a")), HF_SS(":ss", two, 2),
                   HF_NS(":ns", numbers, 2), HF_L(":l", HF_LIST(s, HF_N("", 1))), HF_NULL(":nul"),
                   HF_M(":m", HF_ITEM(s, HF_N("a", 1))), HF_BOOL(":t", true),
                   HF_B(":b", hf_bytes_of("a", 1)), HF_NUM(":big", HF_STR("9e125")));
}

static struct hf_item item_of(struct hf_scope *s, unsigned choice)
{
    switch (choice % 4) {
    case 0:
        return (struct hf_item){NULL, 0};
    case 1:
        return HF_ITEM(s, HF_S("pk", HF_STR("k")));
    case 2:
        return HF_ITEM(s, HF_S("pk", HF_STR("k")), HF_N("a", 5), HF_SS("c", two, 2),
                       HF_NS("d", numbers, 2), HF_S("b.c", HF_STR("abc")),
                       HF_NUM("e", HF_STR("9e125")));
    default:
        return HF_ITEM(
            s, HF_S("pk", HF_STR("k")),
            HF_L("a", HF_LIST(s, HF_N("", 1), HF_M("", HF_ITEM(s, HF_N("a", 1), HF_NULL("b"))),
                              HF_L("", HF_LIST(s, HF_SS("", two, 2))))),
            HF_M("b", HF_ITEM(s, HF_S("a", HF_STR("x")), HF_L("c", HF_LIST(s, HF_N("", 2))))));
    }
}

static void must_have_allowed_names(const struct expr *expr)
{
    for (size_t i = 0; i < expr->paths_len; i++) {
        const struct expr_path *path = &expr->paths[i];

        MUST(path->len >= 1 && path->len <= EXPR_PATH_MAX);
        MUST(path->steps[0].name.ptr);
    }
    for (size_t i = 0; i < expr->steps_len; i++)
        MUST(!expr->steps[i].name.ptr || !hf__expr_reserved(expr->steps[i].name));
}

static void use_condition(struct hf_scope *s, const struct expr_bound *bound, struct hf_str text,
                          struct hf_item item)
{
    bool holds = hf__expr_match(bound, item);
    struct hf_str negated = hf_scope_format(s, "NOT (%.*s)", HF_FMT(text));
    const struct expr *expr;
    struct expr_params params;
    struct expr_bound *other;

    MUST(hf__expr_match(bound, item) == holds);
    /* NOT() fails where the text is in parentheses already, or at a limit. */
    if (hf__expr_compile(s, EXPR_CONDITION, negated, &expr) != HF_OK)
        return;
    MUST(hf__expr_params(s, names_of(s), values_of(s), &params) == HF_OK);
    MUST(hf__expr_bind(s, expr, &params, &other) == HF_OK);
    MUST(hf__expr_match(other, item) == !holds);
}

static void use_update(struct hf_scope *s, const struct expr_bound *bound, struct hf_item item)
{
    struct hf_item key = HF_ITEM(s, HF_S("pk", HF_STR("k")));
    struct hf_item after;
    struct hf_item touched;
    enum hf_status status = hf__expr_update(s, bound, key, item, &after);

    MUST(status == HF_OK || status == HF_INVALID);
    if (status != HF_OK || !after.ptr)
        return;
    MUST(hf__item_valid(after.ptr, after.len));
    MUST(hf__expr_touched(s, bound, after, &touched) == HF_OK);
    MUST(!touched.ptr || (hf__item_valid(touched.ptr, touched.len) && hf_item_count(touched) > 0));
}

static void use_projection(struct hf_scope *s, const struct expr_bound *bound, struct hf_item item)
{
    const struct expr_path *paths;
    struct hf_item out;
    size_t len;

    MUST(hf__expr_project(s, bound, item, &out) == HF_OK);
    MUST(hf__item_valid(out.ptr, out.len));
    hf__expr_paths(bound, &paths, &len);
    for (size_t i = 0; i < len; i++) {
        bool indexed = false;

        for (size_t step = 0; step < paths[i].len; step++)
            indexed |= !paths[i].steps[step].name.ptr; /* lists close up */
        if (!indexed)
            MUST(hf_value_equal(hf__expr_resolve(NULL, item, &paths[i]),
                                hf__expr_resolve(NULL, out, &paths[i])));
    }
}

static void use(struct hf_scope *s, const struct expr_bound *bound, enum expr_kind kind,
                struct hf_str text, unsigned choice)
{
    const struct expr_key_term *terms;
    struct hf_item item = item_of(s, choice);
    size_t len;

    switch (kind) {
    case EXPR_CONDITION:
    case EXPR_FILTER:
        use_condition(s, bound, text, item);
        break;
    case EXPR_UPDATE:
        use_update(s, bound, item);
        break;
    case EXPR_PROJECTION:
        use_projection(s, bound, item);
        break;
    case EXPR_STATEMENT: /* fuzz_partiql.c */
        break;
    case EXPR_KEY_CONDITION:
        hf__expr_key_terms(bound, &terms, &len);
        MUST(len > 0);
        for (size_t i = 0; i < len; i++)
            MUST(terms[i].name.ptr && terms[i].low.ptr &&
                 (terms[i].compare == COMPARE_BETWEEN) == (terms[i].high.ptr != NULL));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct hf_scope *s;
    enum expr_kind kind;
    struct hf_str text;
    const struct expr *expr;
    const struct expr *again;
    struct expr_params params;
    struct expr_bound *bound;
    struct hf_str message;

    if (size < 1)
        return 0;
    s = hf_scope_new(NULL);
    kind = (enum expr_kind)(data[0] % 5);
    text = hf_str_of((const char *)data + 1, size - 1);
    if (hf__expr_compile(s, kind, text, &expr) != HF_OK) {
        message = hf_scope_error(s)->message;
        MUST(hf__expr_compile(s, kind, text, &again) == HF_INVALID);
        MUST(hf_str_equal(message, hf_scope_error(s)->message));
    } else {
        MUST(text.len > 0 && text.len <= EXPR_TEXT_MAX);
        MUST(hf__expr_compile(s, kind, text, &again) == HF_OK);
        MUST(again->nodes_len == expr->nodes_len && again->paths_len == expr->paths_len);
        MUST(expr->nodes_len == 0 ||
             memcmp(again->nodes, expr->nodes, expr->nodes_len * sizeof(*expr->nodes)) == 0);
        must_have_allowed_names(expr);
        MUST(hf__expr_params(s, names_of(s), values_of(s), &params) == HF_OK);
        if (hf__expr_bind(s, expr, &params, &bound) == HF_OK)
            use(s, bound, kind, text, data[0] / 5u);
        else
            MUST(hf_scope_error(s)->status == HF_INVALID);
    }
    hf_scope_free(s);
    return 0;
}
