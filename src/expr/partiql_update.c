/*
 * expr/partiql_update.c: SET and REMOVE of an UPDATE as a program. set_add() and set_delete() are
 * what expressions know as ADD and DELETE; sums may nest, as they may not in expressions.
 */
#include "expr/partiql_build.h"

static enum hf_status build_right(struct builder *b, struct pq_node *node, uint16_t *out);

static enum hf_status build_sum(struct builder *b, struct pq_node *node, uint16_t *out)
{
    uint16_t first;
    uint16_t second;

    if (node->text.len != 1 || (node->text.ptr[0] != '+' && node->text.ptr[0] != '-'))
        return hf__fail(b->s, HF_INVALID,
                        "Unsupported operator in Update Expression. Operator: "
                        "%.*s",
                        HF_FMT(node->text));
    TRY(hf__pq_count(b));
    TRY(build_right(b, node->first, &first));
    TRY(build_right(b, node->last, &second));
    *out =
        hf__pq_add_two(b, NODE_SUM, node->text.ptr[0] == '+' ? OP_PLUS : OP_MINUS, first, second);
    return HF_OK;
}

static enum hf_status build_update_call(struct builder *b, struct pq_node *call, uint16_t *out)
{
    enum function function = hf__pq_function(call);

    if (function == FUNCTION_NONE)
        return hf__pq_fail_function(b, call);
    if (function != FUNCTION_LIST_APPEND && function != FUNCTION_IF_NOT_EXISTS)
        return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_FUNCTION_UPDATE,
                             HF_FMT(hf_str_from(hf__expr_function_name(function))));
    TRY(hf__pq_count(b));
    *out = hf__pq_add_node(b, NODE_CALL, function, 0);
    for (struct pq_node *operand = call->first; operand; operand = operand->next) {
        uint16_t number;

        TRY(build_right(b, operand, &number));
        hf__pq_add_operand(b, *out, number);
    }
    return HF_OK;
}

/* The right side of a SET, or a part of it. */
static enum hf_status build_right(struct builder *b, struct pq_node *node, uint16_t *out)
{
    switch ((enum pq_kind)node->kind) {
    case PQ_BINARY:
        return build_sum(b, node, out);
    case PQ_CALL:
        return build_update_call(b, node, out);
    case PQ_IS:
        return hf__fail(b->s, HF_INVALID, "IS operator is not supported in update expressions");
    case PQ_AND:
    case PQ_OR:
    case PQ_IN:
    case PQ_NOT:
    case PQ_BETWEEN:
        return hf__fail(b->s, HF_INVALID,
                        "Unsupported operator in Update Expression. Operator: "
                        "%s",
                        node->kind == PQ_AND   ? "and"
                        : node->kind == PQ_OR  ? "or"
                        : node->kind == PQ_IN  ? "in"
                        : node->kind == PQ_NOT ? "not"
                                               : "between");
    default:
        return hf__pq_operand(b, node, out);
    }
}

/* set_add(path, set) and set_delete(path, set) of the path itself are ADD and DELETE. */
static enum hf_status build_set_call(struct builder *b, const struct pq_action *action,
                                     const char *name, struct action *out)
{
    struct pq_node *call = action->value;
    struct pq_node *path = call->first;
    struct hf_value value;

    if (call->count != 2)
        return hf__pq_fail_at(b->s, call->place, "%s must have exactly two arguments", name);
    if (path->kind == PQ_PATH)
        TRY(hf__pq_resolve_path(b->s, path));
    if (path->kind != PQ_PATH || hf__expr_path_compare(&path->path, &action->target->path) != 0)
        return hf__pq_fail_at(b->s, call->place,
                              "The first argument to %s must equal the assignment value", name);
    value = (struct hf_value){NULL, 0};
    if (hf__pq_is_value(call->last) && !hf__pq_is_missing(call->last))
        TRY(hf__pq_value(b->s, b->params, call->last, &value));
    if (hf_value_type(value) < HF_TYPE_SS)
        return hf__pq_fail_at(b->s, path->place,
                              "The second argument to %s must be a value with type SET", name);
    out->value = hf__pq_add_value(b, value);
    return HF_OK;
}

static enum hf_status build_action(struct builder *b, const struct pq_action *action,
                                   struct action *out)
{
    const struct pq_node *value = action->value;

    out->value = NO_NODE;
    TRY(hf__pq_resolve_path(b->s, action->target));
    hf__buf_put(&b->paths, &action->target->path, sizeof(struct expr_path));
    out->path = (uint16_t)(b->paths.len / sizeof(struct expr_path) - 1);
    out->section = SECTION_REMOVE;
    if (action->change == PQ_REMOVE)
        return HF_OK;
    if (value->kind == PQ_CALL && hf__pq_same_word(value->text, "set_add")) {
        out->section = SECTION_ADD;
        return build_set_call(b, action, "SET_ADD", out);
    }
    if (value->kind == PQ_CALL && hf__pq_same_word(value->text, "set_delete")) {
        out->section = SECTION_DELETE;
        return build_set_call(b, action, "SET_DELETE", out);
    }
    out->section = SECTION_SET;
    return build_right(b, action->value, &out->value);
}

enum hf_status hf__pq_update(struct hf_scope *s, const struct pq_params *params,
                             const struct pq_statement *tree, struct expr_bound **bound)
{
    struct action *list = hf__scope_array(s, tree->actions_len, sizeof(*list));
    struct expr_path *targets = hf__scope_array(s, tree->actions_len, sizeof(*targets));
    struct builder b;
    size_t len = 0;

    if (!list || !targets)
        return hf__fail_nomem(s);
    TRY(hf__pq_start(s, params, &b));
    for (const struct pq_action *action = tree->actions; action; action = action->next) {
        TRY(build_action(&b, action, &list[len]));
        list[len].target = (uint16_t)len;
        targets[len++] = action->target->path;
    }
    TRY(hf__pq_end(&b));
    b.expr->actions = list;
    b.expr->actions_len = len;
    b.bound->listed = targets;
    b.bound->listed_len = len;
    TRY(hf__expr_order_paths(s, EXPR_STATEMENT, b.bound));
    TRY(hf__expr_check_update(s, b.bound));
    *bound = b.bound;
    return HF_OK;
}
