/*
 * expr/legacy.c: the parameters that came before expressions, as bound programs.
 *
 * They name top-level attributes and carry their values themselves, so program and binding are made
 * in one go: the values are those of the binding, the names those of the paths. The caller has
 * checked the shapes (numbers and types of values).
 *
 * Where the old operators differ from expressions: NOT_CONTAINS wants the attribute to be there,
 * ADD appends to lists, and a wrong type met by an update has another text.
 */
#include "expr/private.h"

/* A program and its binding under construction. */
struct legacy {
    struct expr *expr;
    struct expr_bound *bound;
    struct hf_value *values;
};

static bool legacy_new(struct hf_scope *s, enum expr_kind kind, size_t paths, size_t values,
                       struct legacy *l)
{
    l->expr = hf__scope_array(s, 1, sizeof(*l->expr));
    l->bound = hf__scope_array(s, 1, sizeof(*l->bound));
    l->values = hf__scope_array(s, values, sizeof(*l->values));
    if (!l->expr || !l->bound || !l->values)
        return false;
    l->expr->kind = kind;
    l->expr->paths = hf__scope_array(s, paths, sizeof(*l->expr->paths));
    l->expr->steps = hf__scope_array(s, paths, sizeof(*l->expr->steps));
    l->expr->nodes = hf__scope_array(s, 2 * paths + values, sizeof(*l->expr->nodes));
    l->bound->expr = l->expr;
    l->bound->paths = l->expr->paths;
    l->bound->values = l->values;
    return l->expr->paths && l->expr->steps && l->expr->nodes;
}

static uint16_t legacy_path(struct legacy *l, struct hf_str name)
{
    struct expr *expr = l->expr;

    expr->steps[expr->steps_len] = (struct expr_step){.name = name};
    expr->paths[expr->paths_len] = (struct expr_path){&expr->steps[expr->steps_len++], 1};
    return (uint16_t)expr->paths_len++;
}

static uint16_t legacy_node(struct legacy *l, enum node_kind kind, unsigned op, uint16_t ref)
{
    struct expr *expr = l->expr;

    expr->nodes[expr->nodes_len] = (struct node){.kind = (uint8_t)kind,
                                                 .op = (uint8_t)op,
                                                 .first = NO_NODE,
                                                 .last = NO_NODE,
                                                 .next = NO_NODE,
                                                 .ref = ref};
    return (uint16_t)expr->nodes_len++;
}

static uint16_t legacy_value(struct legacy *l, struct hf_value value)
{
    l->values[l->expr->values_len] = value;
    return legacy_node(l, NODE_VALUE, 0, (uint16_t)l->expr->values_len++);
}

static void legacy_attach(struct legacy *l, uint16_t parent, uint16_t child)
{
    struct node *node = &l->expr->nodes[parent];

    if (node->count++ == 0)
        node->first = child;
    else
        l->expr->nodes[node->last].next = child;
    node->last = child;
}

/* Numbers of nodes are 16 bits: so many fit, and more is refused as too many. */
enum { LEGACY_NODES_MAX = 65000 };

static enum hf_status check_size(struct hf_scope *s, size_t entries, size_t values)
{
    if (entries > LEGACY_NODES_MAX || 2 * entries + values > LEGACY_NODES_MAX)
        return hf__fail(s, HF_INVALID, TEXT_LEGACY_COUNT);
    return HF_OK;
}

static enum hf_status check_name(struct hf_scope *s, struct hf_str name)
{
    if (name.len > ATTR_NAME_MAX)
        return hf__fail(s, HF_INVALID, TEXT_NAME_LONG_LEGACY);
    return HF_OK;
}

/* ---- conditions ----------------------------------------------------------------------------- */

/* The node of a comparison without its operands. */
static uint16_t legacy_leaf(struct legacy *l, enum expr_compare compare)
{
    static const struct {
        uint8_t kind;
        uint8_t op;
    } leaves[] = {
        [COMPARE_NONE] = {NODE_COMPARE, OP_EQ},
        [COMPARE_EQ] = {NODE_COMPARE, OP_EQ},
        [COMPARE_NE] = {NODE_COMPARE, OP_NE},
        [COMPARE_LE] = {NODE_COMPARE, OP_LE},
        [COMPARE_LT] = {NODE_COMPARE, OP_LT},
        [COMPARE_GE] = {NODE_COMPARE, OP_GE},
        [COMPARE_GT] = {NODE_COMPARE, OP_GT},
        [COMPARE_BETWEEN] = {NODE_COMPARE, OP_BETWEEN},
        [COMPARE_NOT_NULL] = {NODE_CALL, FUNCTION_ATTRIBUTE_EXISTS},
        [COMPARE_NULL] = {NODE_CALL, FUNCTION_ATTRIBUTE_NOT_EXISTS},
        [COMPARE_CONTAINS] = {NODE_CALL, FUNCTION_CONTAINS},
        [COMPARE_NOT_CONTAINS] = {NODE_CALL, FUNCTION_NOT_CONTAINS},
        [COMPARE_BEGINS_WITH] = {NODE_CALL, FUNCTION_BEGINS_WITH},
        [COMPARE_IN] = {NODE_COMPARE, OP_IN},
    };

    return legacy_node(l, (enum node_kind)leaves[compare].kind, leaves[compare].op, 0);
}

static bool has_values(enum expr_compare compare)
{
    return compare != COMPARE_NULL && compare != COMPARE_NOT_NULL;
}

enum hf_status hf__expr_legacy_condition(struct hf_scope *s,
                                         const struct expr_legacy_condition *conditions, size_t len,
                                         bool any, struct expr_bound **bound)
{
    struct legacy l;
    size_t values = 0;

    *bound = NULL;
    for (size_t i = 0; i < len; i++)
        values += conditions[i].values_len;
    TRY(check_size(s, len, values));
    if (!legacy_new(s, EXPR_CONDITION, len, values, &l))
        return hf__fail_nomem(s);
    l.expr->leaves = hf__scope_array(s, len, sizeof(*l.expr->leaves));
    if (!l.expr->leaves)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        const struct expr_legacy_condition *condition = &conditions[i];
        uint16_t leaf = legacy_leaf(&l, condition->compare);
        uint16_t next = i + 1 < len ? (uint16_t)(i + 1) : any ? LEAF_REJECT : LEAF_ACCEPT;

        legacy_attach(&l, leaf, legacy_node(&l, NODE_PATH, 0, legacy_path(&l, condition->name)));
        if (has_values(condition->compare)) {
            assert(condition->values_len > 0);
            for (size_t v = 0; v < condition->values_len; v++)
                legacy_attach(&l, leaf, legacy_value(&l, condition->values[v]));
        }
        l.expr->leaves[l.expr->leaves_len++] =
            (struct leaf){leaf, any ? LEAF_ACCEPT : next, any ? next : LEAF_REJECT};
    }
    *bound = l.bound;
    return HF_OK;
}

enum hf_status hf__expr_legacy_key(struct hf_scope *s,
                                   const struct expr_legacy_condition *conditions, size_t len,
                                   struct expr_bound **bound)
{
    struct legacy l;

    *bound = NULL;
    TRY(check_size(s, len, 0));
    if (!legacy_new(s, EXPR_KEY_CONDITION, len, 0, &l))
        return hf__fail_nomem(s);
    l.bound->terms = hf__scope_array(s, len, sizeof(*l.bound->terms));
    if (!l.bound->terms)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        const struct expr_legacy_condition *condition = &conditions[i];
        struct expr_key_term *term = &l.bound->terms[l.bound->terms_len++];

        legacy_path(&l, condition->name);
        *term = (struct expr_key_term){.name = condition->name, .compare = condition->compare};
        if (condition->values_len > 0)
            term->low = condition->values[0];
        if (condition->values_len > 1)
            term->high = condition->values[1];
    }
    *bound = l.bound;
    return HF_OK;
}

/* ---- updates and projections ---------------------------------------------------------------- */

static enum section section_of(const struct expr_legacy_update *update)
{
    switch (update->action) {
    case ACTION_PUT:
        return SECTION_SET;
    case ACTION_ADD:
        return SECTION_ADD;
    case ACTION_DELETE:
        break;
    }
    return update->value.ptr ? SECTION_DELETE : SECTION_REMOVE;
}

enum hf_status hf__expr_legacy_update(struct hf_scope *s, const struct expr_legacy_update *updates,
                                      size_t len, struct expr_bound **bound)
{
    struct legacy l;

    *bound = NULL;
    TRY(check_size(s, len, len));
    if (!legacy_new(s, EXPR_UPDATE, len, len, &l))
        return hf__fail_nomem(s);
    l.expr->actions = hf__scope_array(s, len, sizeof(*l.expr->actions));
    if (!l.expr->actions)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        enum section section = section_of(&updates[i]);

        TRY(check_name(s, updates[i].name));
        assert(section == SECTION_REMOVE || updates[i].value.ptr);
        l.expr->actions[i] = (struct action){
            .section = (uint8_t)section,
            .legacy = true,
            .path = legacy_path(&l, updates[i].name),
            .target = (uint16_t)i,
            .value = section == SECTION_REMOVE ? NO_NODE : legacy_value(&l, updates[i].value),
        };
    }
    l.expr->actions_len = len;
    l.bound->listed = l.expr->paths;
    l.bound->listed_len = len;
    TRY(hf__expr_order_paths(s, EXPR_UPDATE, l.bound));
    *bound = l.bound;
    return HF_OK;
}

enum hf_status hf__expr_legacy_projection(struct hf_scope *s, const struct hf_str *names,
                                          size_t len, struct expr_bound **bound)
{
    struct legacy l;

    *bound = NULL;
    TRY(check_size(s, len, 0));
    if (!legacy_new(s, EXPR_PROJECTION, len, 0, &l))
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        legacy_path(&l, names[i]);
    l.bound->listed = l.expr->paths;
    l.bound->listed_len = len;
    TRY(hf__expr_order_paths(s, EXPR_PROJECTION, l.bound));
    *bound = l.bound;
    return HF_OK;
}
