/*
 * expr/key.c: key conditions: what of them a query can use, as terms.
 *
 * The expression was read and checked like any condition. Here it must turn out to be comparisons
 * of one top-level attribute with values, joined by AND. Problems are reported from the outside
 * inwards and then in reading order; whether the attributes are the keys, and in the right form, is
 * for those to judge who know the table.
 */
#include "expr/private.h"

static enum hf_status fail_operator(struct hf_scope *s, const char *name)
{
    return hf__fail(s, HF_INVALID, TEXT_KEY_OPERATOR, name);
}

static enum expr_compare compare_of(const struct node *leaf, bool mirrored)
{
    if (leaf->kind == NODE_CALL)
        return COMPARE_BEGINS_WITH;
    switch ((enum compare)leaf->op) {
    case OP_LT:
        return mirrored ? COMPARE_GT : COMPARE_LT;
    case OP_LE:
        return mirrored ? COMPARE_GE : COMPARE_LE;
    case OP_GT:
        return mirrored ? COMPARE_LT : COMPARE_GT;
    case OP_GE:
        return mirrored ? COMPARE_LE : COMPARE_GE;
    case OP_BETWEEN:
        return COMPARE_BETWEEN;
    default:
        return COMPARE_EQ;
    }
}

/* Refuse operators that no key condition has. */
static enum hf_status check_operator(struct hf_scope *s, const struct expr *expr,
                                     const struct node *leaf)
{
    bool begins = leaf->kind == NODE_CALL && leaf->op == FUNCTION_BEGINS_WITH;

    if (leaf->kind == NODE_CALL && !begins)
        return fail_operator(s, hf__expr_function_name((enum function)leaf->op));
    if (leaf->kind == NODE_COMPARE && (leaf->op == OP_IN || leaf->op == OP_NE))
        return fail_operator(s, hf__expr_compare_name((enum compare)leaf->op));
    if ((begins || leaf->op == OP_BETWEEN) && hf__expr_node(expr, leaf->first)->kind != NODE_PATH)
        return hf__fail(s, HF_INVALID, TEXT_KEY_FIRST,
                        begins ? hf__expr_function_name(FUNCTION_BEGINS_WITH)
                               : hf__expr_compare_name(OP_BETWEEN));
    return HF_OK;
}

static enum hf_status add_term(struct hf_scope *s, struct expr_bound *bound,
                               const struct node *leaf)
{
    const struct expr *expr = bound->expr;
    struct expr_key_term term = {.name = {NULL, 0}};
    bool mirrored = false;
    size_t values = 0;

    TRY(check_operator(s, expr, leaf));
    for (uint16_t i = leaf->first; i != NO_NODE; i = expr->nodes[i].next) {
        const struct node *operand = &expr->nodes[i];

        if (operand->kind == NODE_CALL)
            return hf__fail(s, HF_INVALID, TEXT_KEY_NESTED_CALL);
        if (operand->kind == NODE_VALUE) {
            *(values++ == 0 ? &term.low : &term.high) = bound->values[operand->ref];
            continue;
        }
        if (term.name.ptr)
            return hf__fail(s, HF_INVALID, TEXT_KEY_NAMES);
        if (bound->paths[operand->ref].len > 1)
            return hf__fail(s, HF_INVALID, TEXT_KEY_NESTED_PATH);
        term.name = bound->paths[operand->ref].steps[0].name;
        mirrored = values > 0;
    }
    if (!term.name.ptr)
        return hf__fail(s, HF_INVALID, TEXT_KEY_NO_NAME);
    term.compare = compare_of(leaf, mirrored);
    bound->terms[bound->terms_len++] = term;
    return HF_OK;
}

/* LOGIC from the outside inwards, leaves on the way. Recursion: (3) of private.h. */
static enum hf_status terms_extract(struct hf_scope *s, struct expr_bound *bound, uint16_t number)
{
    const struct node *node = hf__expr_node(bound->expr, number);

    if (node->kind != NODE_LOGIC)
        return add_term(s, bound, node);
    if (node->op != OP_AND)
        return fail_operator(s, node->op == OP_OR ? "OR" : "NOT");
    TRY(terms_extract(s, bound, node->first));
    return terms_extract(s, bound, node->last);
}

static int order_terms(const void *context, uint16_t a, uint16_t b)
{
    const struct expr_key_term *terms = context;

    return bytes_compare(terms[a].name.ptr, terms[a].name.len, terms[b].name.ptr,
                         terms[b].name.len);
}

static enum hf_status check_repeats(struct hf_scope *s, const struct expr_bound *bound)
{
    uint16_t order[EXPR_OPERATORS_MAX + 1];

    for (size_t i = 0; i < bound->terms_len; i++)
        order[i] = (uint16_t)i;
    hf__expr_sort(order, bound->terms_len, order_terms, bound->terms);
    for (size_t i = 1; i < bound->terms_len; i++)
        if (order_terms(bound->terms, order[i - 1], order[i]) == 0)
            return hf__fail(s, HF_INVALID, TEXT_KEY_TWICE);
    return HF_OK;
}

enum hf_status hf__expr_key_extract(struct hf_scope *s, struct expr_bound *bound)
{
    size_t len = bound->expr->leaves_len;

    assert(len <= EXPR_OPERATORS_MAX + 1);
    bound->terms = hf_scope_alloc(s, len * sizeof(*bound->terms));
    if (!bound->terms)
        return hf__fail_nomem(s);
    TRY(terms_extract(s, bound, bound->expr->root));
    return check_repeats(s, bound);
}

void hf__expr_key_terms(const struct expr_bound *bound, const struct expr_key_term **terms,
                        size_t *len)
{
    *terms = bound->terms;
    *len = bound->terms_len;
}
