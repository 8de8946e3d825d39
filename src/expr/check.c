/*
 * expr/check.c: operands whose number or type cannot be right, known before any item is read.
 *
 * A value of the request has a type; what lies at a path has none yet. So `a < :flag` with a BOOL
 * fails here, while a BOOL in the item only makes the condition false.
 */
#include "expr/private.h"

/* The type that is known of an operand; HF_TYPE_NONE when it depends on the item. */
static enum hf_type known_type(const struct expr_bound *bound, const struct node *node)
{
    switch ((enum node_kind)node->kind) {
    case NODE_VALUE:
        return hf_value_type(bound->values[node->ref]);
    case NODE_CALL:
        if (node->op == FUNCTION_SIZE)
            return HF_TYPE_N;
        return node->op == FUNCTION_LIST_APPEND ? HF_TYPE_L : HF_TYPE_NONE;
    default:
        return HF_TYPE_NONE;
    }
}

static bool is_ordered(enum hf_type type)
{
    return type == HF_TYPE_S || type == HF_TYPE_N || type == HF_TYPE_B;
}

static enum hf_status fail_type(struct hf_scope *s, const struct expr_bound *bound,
                                const char *operator, enum hf_type type)
{
    return hf__expr_fail(s, bound->expr->kind, TEXT_OPERAND_TYPE, operator, hf__type_name(type));
}

static unsigned operands_wanted(enum function function)
{
    switch (function) {
    case FUNCTION_ATTRIBUTE_TYPE:
    case FUNCTION_BEGINS_WITH:
    case FUNCTION_CONTAINS:
    case FUNCTION_NOT_CONTAINS:
    case FUNCTION_IF_NOT_EXISTS:
    case FUNCTION_LIST_APPEND:
        return 2;
    default:
        return 1;
    }
}

static const char *node_name(const struct node *node)
{
    if (node->kind == NODE_CALL)
        return hf__expr_function_name((enum function)node->op);
    return hf__expr_compare_name((enum compare)node->op);
}

static enum hf_status check_count(struct hf_scope *s, const struct expr_bound *bound,
                                  const struct node *node)
{
    if (node->kind == NODE_CALL && node->count != operands_wanted((enum function)node->op))
        return hf__expr_fail(s, bound->expr->kind, TEXT_OPERANDS, node_name(node), node->count);
    if (node->kind == NODE_COMPARE && node->op == OP_IN && node->count > EXPR_IN_MAX + 1)
        return hf__expr_fail(s, bound->expr->kind, TEXT_IN_OPERANDS, node->count - 1u);
    return HF_OK;
}

static enum hf_status fail_path(struct hf_scope *s, const struct expr_bound *bound,
                                const struct node *call)
{
    return hf__expr_fail(s, bound->expr->kind, TEXT_PATH_NEEDED, node_name(call));
}

/* ---- conditions ----------------------------------------------------------------------------- */

static enum hf_status check_defined(struct hf_scope *s, const struct expr_bound *bound,
                                    const struct node *node)
{
    const struct expr *expr = bound->expr;

    for (uint16_t i = node->first; i != NO_NODE; i = expr->nodes[i].next) {
        const struct node *operand = &expr->nodes[i];

        if (operand->kind == NODE_PATH)
            TRY(hf__expr_check_names(s, bound, operand->ref));
        else if (operand->kind == NODE_VALUE && !bound->values[operand->ref].ptr)
            return hf__expr_fail(s, expr->kind, TEXT_VALUE_UNDEFINED,
                                 HF_FMT(expr->values[operand->ref]));
        else if (operand->kind == NODE_CALL)
            TRY(check_defined(s, bound, operand)); /* (3) of private.h */
    }
    return HF_OK;
}

/* `a = a`, `contains(a, a)` and `a IN (b, a)` are refused. */
static enum hf_status check_distinct(struct hf_scope *s, const struct expr_bound *bound,
                                     const struct node *node)
{
    const struct expr *expr = bound->expr;
    const struct node *first = hf__expr_node(expr, node->first);

    if (first->kind != NODE_PATH)
        return HF_OK;
    for (uint16_t i = first->next; i != NO_NODE; i = expr->nodes[i].next) {
        const struct node *other = &expr->nodes[i];

        if (other->kind == NODE_PATH &&
            hf__expr_path_compare(&bound->paths[first->ref], &bound->paths[other->ref]) == 0) {
            struct hf_str path = hf__expr_path_text(s, &bound->paths[first->ref]);

            return hf__expr_fail(s, expr->kind, TEXT_DISTINCT, node_name(node), HF_FMT(path));
        }
    }
    return HF_OK;
}

static struct hf_str base64_of(struct hf_scope *s, struct hf_bytes bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    struct hf__buf buf = {.scope = s};

    for (size_t i = 0; i < bytes.len; i += 3) {
        size_t left = bytes.len - i;
        uint32_t three = (uint32_t)bytes.ptr[i] << 16 |
                         (left > 1 ? (uint32_t)bytes.ptr[i + 1] << 8 : 0) |
                         (left > 2 ? bytes.ptr[i + 2] : 0);
        const char four[4] = {digits[three >> 18], digits[three >> 12 & 63],
                              left > 1 ? digits[three >> 6 & 63] : '=',
                              left > 2 ? digits[three & 63] : '='};

        hf__buf_put(&buf, four, sizeof(four));
    }
    return buf.failed || !buf.ptr ? HF_STR("") : hf_str_of((const char *)buf.ptr, buf.len);
}

/* A bound of BETWEEN as its errors print it. */
static struct hf_str bound_text(struct hf_scope *s, struct hf_value value)
{
    if (hf_value_type(value) == HF_TYPE_S)
        return hf_value_str(value);
    if (hf_value_type(value) == HF_TYPE_N)
        return hf_value_number(s, value);
    return base64_of(s, hf__value_scalar(value));
}

static enum hf_status check_bounds(struct hf_scope *s, const struct expr_bound *bound,
                                   const struct node *low, const struct node *high)
{
    struct hf_value a;
    struct hf_value b;
    struct hf_str low_text;
    struct hf_str high_text;
    const char *low_type;
    const char *high_type;

    if (low->kind != NODE_VALUE || high->kind != NODE_VALUE)
        return HF_OK;
    a = bound->values[low->ref];
    b = bound->values[high->ref];
    if (hf_value_type(a) == hf_value_type(b) && hf__value_compare(a, b) <= 0)
        return HF_OK;
    low_text = bound_text(s, a);
    high_text = bound_text(s, b);
    low_type = hf__type_name(hf_value_type(a));
    high_type = hf__type_name(hf_value_type(b));
    if (hf_value_type(a) != hf_value_type(b))
        return hf__expr_fail(s, bound->expr->kind, TEXT_BETWEEN_TYPES, low_type, HF_FMT(low_text),
                             high_type, HF_FMT(high_text));
    return hf__expr_fail(s, bound->expr->kind, TEXT_BETWEEN_ORDER, low_type, HF_FMT(low_text),
                         high_type, HF_FMT(high_text));
}

static enum hf_status check_compare_types(struct hf_scope *s, const struct expr_bound *bound,
                                          const struct node *node)
{
    const struct expr *expr = bound->expr;

    if (node->op == OP_EQ || node->op == OP_NE || node->op == OP_IN)
        return HF_OK;
    for (uint16_t i = node->first; i != NO_NODE; i = expr->nodes[i].next) {
        enum hf_type type = known_type(bound, &expr->nodes[i]);

        if (type != HF_TYPE_NONE && !is_ordered(type))
            return fail_type(s, bound, node_name(node), type);
    }
    if (node->op != OP_BETWEEN)
        return HF_OK;
    return check_bounds(s, bound, hf__expr_node(expr, hf__expr_node(expr, node->first)->next),
                        hf__expr_node(expr, node->last));
}

static enum hf_status check_type_name(struct hf_scope *s, const struct expr_bound *bound,
                                      const struct node *call, const struct node *operand)
{
    enum hf_type type = known_type(bound, operand);
    struct hf_str name;

    if (type == HF_TYPE_NONE)
        return hf__expr_fail(s, bound->expr->kind, TEXT_OPERAND_TYPE, node_name(call),
                             "{NS,SS,L,BS,N,M,B,BOOL,NULL,S}");
    if (type != HF_TYPE_S)
        return fail_type(s, bound, node_name(call), type);
    name = hf_value_str(bound->values[operand->ref]);
    if (hf__type_of_name(name) == HF_TYPE_NONE)
        return hf__expr_fail(s, bound->expr->kind, TEXT_TYPE_NAME, HF_FMT(name));
    return HF_OK;
}

static enum hf_status check_call_types(struct hf_scope *s, const struct expr_bound *bound,
                                       const struct node *call)
{
    const struct node *first = hf__expr_node(bound->expr, call->first);
    const struct node *last = hf__expr_node(bound->expr, call->last);
    enum hf_type type = known_type(bound, first);

    switch ((enum function)call->op) {
    case FUNCTION_SIZE:
        if (type == HF_TYPE_N || type == HF_TYPE_BOOL || type == HF_TYPE_NULL)
            return fail_type(s, bound, node_name(call), type);
        return HF_OK;
    case FUNCTION_BEGINS_WITH:
        if (type != HF_TYPE_NONE && type != HF_TYPE_S && type != HF_TYPE_B)
            return fail_type(s, bound, node_name(call), type);
        type = known_type(bound, last);
        if (type != HF_TYPE_NONE && type != HF_TYPE_S && type != HF_TYPE_B)
            return fail_type(s, bound, node_name(call), type);
        return HF_OK;
    case FUNCTION_ATTRIBUTE_TYPE:
        return check_type_name(s, bound, call, last);
    default:
        return HF_OK;
    }
}

/* The size() calls among the operands of a leaf, then the leaf. */
static enum hf_status check_leaf(struct hf_scope *s, const struct expr_bound *bound,
                                 const struct node *leaf)
{
    const struct expr *expr = bound->expr;
    bool calls = false;

    TRY(check_defined(s, bound, leaf));
    for (uint16_t i = leaf->first; i != NO_NODE; i = expr->nodes[i].next) {
        calls |= expr->nodes[i].kind == NODE_CALL;
        TRY(check_count(s, bound, &expr->nodes[i]));
    }
    TRY(check_count(s, bound, leaf));
    if (leaf->kind == NODE_CALL &&
        (leaf->op == FUNCTION_ATTRIBUTE_EXISTS || leaf->op == FUNCTION_ATTRIBUTE_NOT_EXISTS)) {
        if (hf__expr_node(expr, leaf->first)->kind != NODE_PATH)
            return fail_path(s, bound, leaf);
    }
    TRY(check_distinct(s, bound, leaf));
    for (uint16_t i = leaf->first; calls && i != NO_NODE; i = expr->nodes[i].next)
        if (expr->nodes[i].kind == NODE_CALL)
            TRY(check_call_types(s, bound, &expr->nodes[i]));
    if (leaf->kind == NODE_CALL)
        return check_call_types(s, bound, leaf);
    return check_compare_types(s, bound, leaf);
}

enum hf_status hf__expr_check_condition(struct hf_scope *s, const struct expr_bound *bound)
{
    const struct expr *expr = bound->expr;

    for (size_t i = 0; i < expr->leaves_len; i++)
        TRY(check_leaf(s, bound, hf__expr_node(expr, expr->leaves[i].node)));
    return HF_OK;
}

/* ---- updates -------------------------------------------------------------------------------- */

/* Types have long names in the errors of ADD and DELETE. */
static const char *long_name(enum hf_type type)
{
    static const char *const names[] = {
        "",    "STRING", "NUMBER",     "BINARY",     "BOOLEAN",    "NULL",
        "MAP", "LIST",   "STRING_SET", "NUMBER_SET", "BINARY_SET",
    };

    return names[type];
}

static enum hf_status check_action(struct hf_scope *s, const struct expr_bound *bound,
                                   const struct action *action)
{
    enum hf_type type;

    if (action->section != SECTION_ADD && action->section != SECTION_DELETE)
        return HF_OK;
    type = known_type(bound, hf__expr_node(bound->expr, action->value));
    if (type >= HF_TYPE_SS || (type == HF_TYPE_N && action->section == SECTION_ADD))
        return HF_OK;
    return hf__expr_fail(s, bound->expr->kind, TEXT_ACTION_TYPE,
                         hf__expr_section_name((enum section)action->section), long_name(type),
                         hf__scope_wording(s) == HF__WORDING_2026 ? TEXT_ACTION_TYPE_2026 : "");
}

static enum hf_status check_operands(struct hf_scope *s, const struct expr_bound *bound,
                                     const struct node *node)
{
    const struct expr *expr = bound->expr;
    const char *name = node->kind == NODE_CALL ? node_name(node) : node->op == OP_PLUS ? "+" : "-";
    enum hf_type wanted = node->kind == NODE_CALL ? HF_TYPE_L : HF_TYPE_N;

    for (uint16_t i = node->first; i != NO_NODE; i = expr->nodes[i].next) {
        enum hf_type type = known_type(bound, &expr->nodes[i]);

        if (type != HF_TYPE_NONE && type != wanted)
            return fail_type(s, bound, name, type);
    }
    return HF_OK;
}

/* Calls and sums among the operands first, then the node. Recursion: a text of EXPR_TEXT_MAX bytes
 * has room for some 240 calls within calls, a statement for EXPR_OPERATORS_MAX. */
static enum hf_status check_right_side(struct hf_scope *s, const struct expr_bound *bound,
                                       const struct node *node)
{
    const struct expr *expr = bound->expr;

    if (node->kind != NODE_CALL && node->kind != NODE_SUM)
        return HF_OK;
    for (uint16_t i = node->first; i != NO_NODE; i = expr->nodes[i].next)
        TRY(check_right_side(s, bound, &expr->nodes[i]));
    if (node->kind == NODE_CALL)
        TRY(check_count(s, bound, node));
    if (node->kind == NODE_SUM || node->op == FUNCTION_LIST_APPEND)
        return check_operands(s, bound, node);
    if (hf__expr_node(expr, node->first)->kind != NODE_PATH)
        return fail_path(s, bound, node);
    return check_distinct(s, bound, node);
}

enum hf_status hf__expr_check_update(struct hf_scope *s, const struct expr_bound *bound)
{
    const struct expr *expr = bound->expr;

    for (size_t i = 0; i < expr->actions_len; i++)
        TRY(check_action(s, bound, &expr->actions[i]));
    for (size_t i = 0; i < expr->actions_len; i++)
        if (expr->actions[i].section == SECTION_SET)
            TRY(check_right_side(s, bound, hf__expr_node(expr, expr->actions[i].value)));
    return HF_OK;
}
