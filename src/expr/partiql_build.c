/*
 * expr/partiql_build.c: conditions of statements as programs, the kind that expressions become.
 *
 * A program's nodes are made from the bottom up. What expressions do not have is translated: IS to
 * attribute_type() and similar functions; `condition = true` to the condition; `condition = path`
 * to "both are true or both are false". The latter repeats the condition, so operators are counted
 * as they are made: this limits the size of the program.
 */
#include "expr/partiql_build.h"

enum hf_status hf__pq_start(struct hf_scope *s, const struct pq_params *params, struct builder *b)
{
    *b = (struct builder){.s = s,
                          .params = params,
                          .nodes = {.scope = s},
                          .paths = {.scope = s},
                          .values = {.scope = s}};
    b->expr = hf__scope_array(s, 1, sizeof(*b->expr));
    b->bound = hf__scope_array(s, 1, sizeof(*b->bound));
    if (!b->expr || !b->bound)
        return hf__fail_nomem(s);
    b->expr->kind = EXPR_STATEMENT;
    b->bound->expr = b->expr;
    return HF_OK;
}

/* The program is complete: it takes over its nodes, paths and values. */
enum hf_status hf__pq_end(struct builder *b)
{
    if (b->nodes.failed || b->paths.failed || b->values.failed)
        return hf__fail_nomem(b->s);
    b->expr->nodes = (struct node *)(void *)b->nodes.ptr;
    b->expr->nodes_len = b->nodes.len / sizeof(struct node);
    b->expr->paths = (struct expr_path *)(void *)b->paths.ptr;
    b->expr->paths_len = b->paths.len / sizeof(struct expr_path);
    b->expr->values_len = b->values.len / sizeof(struct hf_value);
    b->bound->paths = b->expr->paths;
    b->bound->values = (const struct hf_value *)(const void *)b->values.ptr;
    return HF_OK;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

uint16_t hf__pq_add_node(struct builder *b, enum node_kind kind, unsigned op, size_t ref)
{
    size_t number = b->nodes.len / sizeof(struct node);
    struct node node = {.kind = (uint8_t)kind,
                        .op = (uint8_t)op,
                        .first = NO_NODE,
                        .last = NO_NODE,
                        .next = NO_NODE,
                        .ref = (uint16_t)ref};

    hf__buf_put(&b->nodes, &node, sizeof(node));
    assert(number < NO_NODE);
    return b->nodes.failed ? NO_NODE : (uint16_t)number;
}

static struct node *node_at(struct builder *b, uint16_t number)
{
    return (struct node *)(void *)b->nodes.ptr + number;
}

void hf__pq_add_operand(struct builder *b, uint16_t parent, uint16_t child)
{
    struct node *node;

    if (b->nodes.failed || parent == NO_NODE || child == NO_NODE)
        return;
    node = node_at(b, parent);
    if (node->count++ == 0)
        node->first = child;
    else
        node_at(b, node->last)->next = child;
    node->last = child;
}

uint16_t hf__pq_add_two(struct builder *b, enum node_kind kind, unsigned op, uint16_t first,
                        uint16_t second)
{
    uint16_t number = hf__pq_add_node(b, kind, op, 0);

    hf__pq_add_operand(b, number, first);
    if (second != NO_NODE)
        hf__pq_add_operand(b, number, second);
    return number;
}

uint16_t hf__pq_add_value(struct builder *b, struct hf_value value)
{
    hf__buf_put(&b->values, &value, sizeof(value));
    return hf__pq_add_node(b, NODE_VALUE, 0, b->values.len / sizeof(value) - 1);
}

static uint16_t add_bool(struct builder *b, bool truth)
{
    struct hf__buf buf = {.scope = b->s};

    hf__build_bool(&buf, truth);
    b->values.failed |= buf.failed;
    return hf__pq_add_value(b, hf__build_value_from(&buf, 0));
}

static uint16_t add_text(struct builder *b, const char *text)
{
    struct hf__buf buf = {.scope = b->s};

    hf__build_str(&buf, HF_TYPE_S, hf_str_from(text));
    b->values.failed |= buf.failed;
    return hf__pq_add_value(b, hf__build_value_from(&buf, 0));
}

static uint16_t add_path(struct builder *b, struct expr_path path)
{
    hf__buf_put(&b->paths, &path, sizeof(path));
    return hf__pq_add_node(b, NODE_PATH, 0, b->paths.len / sizeof(path) - 1);
}

enum hf_status hf__pq_count(struct builder *b)
{
    if (++b->operators > EXPR_OPERATORS_MAX || b->nodes.len > NODES_MAX * sizeof(struct node))
        return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_OPERATORS, b->operators);
    return HF_OK;
}

/* ---- paths ---------------------------------------------------------------------------------- */

static enum hf_status step_of(struct hf_scope *s, const struct pq_node *node,
                              struct expr_step *step)
{
    uint64_t index = 0;

    if (node->kind == PQ_LITERAL && node->op == PQ_TEXT) {
        if (node->text.len == 0)
            return hf__fail(s, HF_INVALID, "Path component cannot be an empty string");
        *step = (struct expr_step){.name = node->text};
        return HF_OK;
    }
    if (node->kind != PQ_LITERAL || node->op != PQ_NUMERIC)
        return hf__pq_fail_at(s, node->place, "Unexpected path component");
    for (size_t i = 0; i < node->text.len; i++) {
        if (node->text.ptr[i] < '0' || node->text.ptr[i] > '9')
            return hf__pq_fail_at(s, node->place, "Unexpected path component");
        if (index <= INT32_MAX)
            index = index * 10 + (uint64_t)(node->text.ptr[i] - '0');
    }
    if (index > INT32_MAX || (node->negative && index > 0))
        return hf__pq_fail_at(s, node->place,
                              "List index is not within the allowable range; index: [%s%.*s]",
                              node->negative ? "-" : "", HF_FMT(node->text));
    *step = (struct expr_step){.index = (uint32_t)index};
    return HF_OK;
}

enum hf_status hf__pq_resolve_path(struct hf_scope *s, struct pq_node *node)
{
    struct expr_step *steps;
    size_t len = 0;

    if (node->path.steps)
        return HF_OK;
    if (node->unpivot)
        return hf__fail(s, HF_INVALID, "Changing item's hierarchy while reading isn't supported");
    if (node->count > EXPR_PATH_MAX)
        return hf__expr_fail(s, EXPR_STATEMENT, TEXT_DEPTH, node->count);
    steps = hf__scope_array(s, node->count, sizeof(*steps));
    if (!steps)
        return hf__fail_nomem(s);
    for (const struct pq_node *step = node->first; step; step = step->next)
        TRY(step_of(s, step, &steps[len++]));
    node->path = (struct expr_path){steps, len};
    return HF_OK;
}

/* ---- operands of conditions ----------------------------------------------------------------- */

static const char cond_boolean[] =
    "WHERE clause must contain an expression that resolves to a boolean";

bool hf__pq_is_missing(const struct pq_node *node)
{
    return node->kind == PQ_LITERAL && node->op == PQ_MISSING;
}

enum hf_status hf__pq_fail_function(struct builder *b, const struct pq_node *call)
{
    struct hf__buf lower = {.scope = b->s};

    if (call->first && call->first->kind == PQ_SUBSELECT)
        return hf__pq_fail_at(b->s, call->first->place, "Unsupported token in expression: SELECT");
    for (size_t i = 0; i < call->text.len; i++) {
        char c = call->text.ptr[i];

        hf__buf_put_byte(&lower, (uint8_t)(c >= 'A' && c <= 'Z' ? c | 0x20 : c));
    }
    if (lower.failed)
        return hf__fail_nomem(b->s);
    return hf__pq_fail_at(b->s, call->place, "Unrecognized function: %.*s", (int)lower.len,
                          (const char *)lower.ptr);
}

enum function hf__pq_function(const struct pq_node *call)
{
    for (unsigned i = FUNCTION_ATTRIBUTE_EXISTS; i <= FUNCTION_LIST_APPEND; i++)
        if (hf__pq_same_word(call->text, hf__expr_function_name((enum function)i)))
            return (enum function)i;
    return FUNCTION_NONE;
}

static bool is_condition_function(enum function function)
{
    return function >= FUNCTION_ATTRIBUTE_EXISTS && function <= FUNCTION_CONTAINS;
}

static bool is_comparison(const struct pq_node *node)
{
    return node->kind == PQ_BINARY &&
           (node->text.ptr[0] == '=' || node->text.ptr[0] == '<' || node->text.ptr[0] == '>');
}

/* Is it a condition, not a value? */
static bool is_condition(const struct pq_node *node)
{
    switch ((enum pq_kind)node->kind) {
    case PQ_BETWEEN:
    case PQ_IN:
    case PQ_IS:
    case PQ_NOT:
    case PQ_AND:
    case PQ_OR:
        return true;
    case PQ_CALL:
        return is_condition_function(hf__pq_function(node));
    default:
        return is_comparison(node);
    }
}

static enum hf_status fail_operator(struct builder *b, const struct pq_node *node)
{
    return hf__fail(b->s, HF_INVALID,
                    "Unsupported operator in Condition Expression. Operator: "
                    "%.*s",
                    HF_FMT(node->text));
}

static enum hf_status build_call(struct builder *b, struct pq_node *call, enum function function,
                                 uint16_t *out)
{
    *out = hf__pq_add_node(b, NODE_CALL, function, 0);
    for (struct pq_node *operand = call->first; operand; operand = operand->next) {
        uint16_t number;

        if (operand->kind == PQ_CALL && hf__pq_function(operand) == FUNCTION_SIZE)
            return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_OPERAND_TYPE,
                                 hf__expr_function_name(function), "N");
        TRY(hf__pq_operand(b, operand, &number));
        hf__pq_add_operand(b, *out, number);
    }
    return HF_OK;
}

enum hf_status hf__pq_operand(struct builder *b, struct pq_node *node, uint16_t *out)
{
    struct hf_value value;

    if (hf__pq_is_missing(node))
        return hf__fail(b->s, HF_INVALID, "MISSING must be compared using IS operator");
    if (hf__pq_is_value(node)) {
        TRY(hf__pq_value(b->s, b->params, node, &value));
        *out = hf__pq_add_value(b, value);
        return HF_OK;
    }
    switch ((enum pq_kind)node->kind) {
    case PQ_PATH:
        TRY(hf__pq_resolve_path(b->s, node));
        *out = add_path(b, node->path);
        return HF_OK;
    case PQ_CALL:
        if (hf__pq_function(node) == FUNCTION_SIZE)
            return build_call(b, node, FUNCTION_SIZE, out);
        if (hf__pq_function(node) == FUNCTION_NONE)
            return hf__pq_fail_function(b, node);
        return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_FUNCTION_WAY, HF_FMT(node->text));
    case PQ_SUBSELECT:
        return hf__pq_fail_at(b->s, node->place, "Unsupported token in expression: SELECT");
    case PQ_UNARY:
        return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_OPERANDS,
                             node->text.ptr[0] == '-' ? "-" : "+", 1u);
    case PQ_STAR:
        return hf__pq_fail_at(b->s, node->place, "Unexpected path component");
    default:
        return fail_operator(b, node);
    }
}

/* ---- conditions ----------------------------------------------------------------------------- */

static enum hf_status build_condition(struct builder *b, struct pq_node *node, uint16_t *out);

static enum compare compare_of(struct hf_str text)
{
    switch (text.ptr[0]) {
    case '=':
        return OP_EQ;
    case '<':
        return text.len == 1 ? OP_LT : text.ptr[1] == '=' ? OP_LE : OP_NE;
    default:
        return text.len == 1 ? OP_GT : OP_GE;
    }
}

/* A condition that is never true. */
static uint16_t add_never(struct builder *b)
{
    return hf__pq_add_two(b, NODE_COMPARE, OP_EQ, add_bool(b, true), add_bool(b, false));
}

/* Both hold or neither does; `other` is a condition or a path. */
static enum hf_status build_agree(struct builder *b, struct pq_node *condition,
                                  struct pq_node *other, uint16_t *out)
{
    uint16_t both[2];

    for (int truth = 0; truth < 2; truth++) {
        uint16_t left;
        uint16_t right;

        TRY(hf__pq_count(b));
        TRY(build_condition(b, condition, &left));
        if (is_condition(other)) {
            TRY(build_condition(b, other, &right));
            if (!truth)
                right = hf__pq_add_two(b, NODE_LOGIC, OP_NOT, right, NO_NODE);
        } else {
            TRY(hf__pq_operand(b, other, &right));
            right = hf__pq_add_two(b, NODE_COMPARE, OP_EQ, right, add_bool(b, truth));
        }
        if (!truth)
            left = hf__pq_add_two(b, NODE_LOGIC, OP_NOT, left, NO_NODE);
        both[truth] = hf__pq_add_two(b, NODE_LOGIC, OP_AND, left, right);
    }
    *out = hf__pq_add_two(b, NODE_LOGIC, OP_OR, both[0], both[1]);
    return HF_OK;
}

/* A condition that is compared with something for equality. */
static enum hf_status build_truth(struct builder *b, struct pq_node *condition,
                                  struct pq_node *other, uint16_t *out)
{
    struct hf_value value;

    TRY(hf__pq_count(b));
    if (!hf__pq_is_value(other) || hf__pq_is_missing(other)) {
        if (is_condition(other) || other->kind == PQ_PATH)
            return build_agree(b, condition, other, out);
        return hf__pq_operand(b, other, out); /* which fails, or is a number */
    }
    TRY(hf__pq_value(b->s, b->params, other, &value));
    if (hf_value_type(value) != HF_TYPE_BOOL) {
        *out = add_never(b);
        return HF_OK;
    }
    TRY(build_condition(b, condition, out));
    if (!hf_value_true(value))
        *out = hf__pq_add_two(b, NODE_LOGIC, OP_NOT, *out, NO_NODE);
    return HF_OK;
}

static enum hf_status build_compare(struct builder *b, struct pq_node *node, uint16_t *out)
{
    enum compare op = compare_of(node->text);
    struct pq_node *left = node->first;
    struct pq_node *right = node->last;
    uint16_t first;
    uint16_t second;

    TRY(hf__pq_count(b));
    if (is_condition(left) || is_condition(right)) {
        if (op != OP_EQ && op != OP_NE)
            return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_OPERAND_TYPE, hf__expr_compare_name(op),
                                 "BOOL");
        TRY(is_condition(left) ? build_truth(b, left, right, out)
                               : build_truth(b, right, left, out));
        if (op == OP_NE)
            *out = hf__pq_add_two(b, NODE_LOGIC, OP_NOT, *out, NO_NODE);
        return HF_OK;
    }
    TRY(hf__pq_operand(b, left, &first));
    TRY(hf__pq_operand(b, right, &second));
    *out = hf__pq_add_two(b, NODE_COMPARE, op, first, second);
    return HF_OK;
}

static enum hf_status build_between(struct builder *b, struct pq_node *node, uint16_t *out)
{
    TRY(hf__pq_count(b));
    *out = hf__pq_add_node(b, NODE_COMPARE, OP_BETWEEN, 0);
    for (struct pq_node *operand = node->first; operand; operand = operand->next) {
        uint16_t number;

        TRY(hf__pq_operand(b, operand, &number));
        hf__pq_add_operand(b, *out, number);
    }
    return HF_OK;
}

static enum hf_status fail_in(struct builder *b)
{
    return hf__fail(b->s, HF_INVALID,
                    "IN operator must have a left hand argument of type Variable Reference and "
                    "right hand argument of type Seq with at least one member");
}

/* `condition IN list`: it equals one of the members. */
static enum hf_status build_truth_in(struct builder *b, struct pq_node *left,
                                     struct pq_node *members, uint16_t *out)
{
    *out = add_never(b);
    for (struct pq_node *member = members; member; member = member->next) {
        uint16_t one;

        TRY(build_truth(b, left, member, &one));
        *out = hf__pq_add_two(b, NODE_LOGIC, OP_OR, one, *out);
    }
    return HF_OK;
}

static enum hf_status build_in(struct builder *b, struct pq_node *node, uint16_t *out)
{
    struct pq_node *left = node->first;
    struct pq_node *list = node->last;
    struct pq_node *members = list->kind == PQ_LIST || list->kind == PQ_BAG ? list->first : list;
    uint16_t number;

    TRY(hf__pq_count(b));
    if (list->kind != PQ_LIST && list->kind != PQ_BAG && !list->parens)
        return fail_in(b);
    if (!members)
        return fail_in(b);
    if (is_condition(left))
        return build_truth_in(b, left, members, out);
    TRY(hf__pq_operand(b, left, &number));
    *out = hf__pq_add_two(b, NODE_COMPARE, OP_IN, number, NO_NODE);
    for (struct pq_node *member = members; member; member = member->next) {
        TRY(hf__pq_operand(b, member, &number));
        hf__pq_add_operand(b, *out, number);
    }
    return HF_OK;
}

static enum hf_status build_is(struct builder *b, struct pq_node *node, uint16_t *out)
{
    static const struct {
        const char *name;
        const char *type;
    } types[] = {
        {"NULL", "NULL"}, {"BOOLEAN", "BOOL"}, {"BLOB", "B"},  {"STRING", "S"},
        {"NUMERIC", "N"}, {"STRUCT", "M"},     {"TUPLE", "M"}, {"LIST", "L"},
    };
    struct pq_node *operand = node->first;
    uint16_t first;

    TRY(hf__pq_count(b));
    if (operand->kind != PQ_PATH && !hf__pq_is_value(operand))
        return hf__fail(b->s, HF_INVALID,
                        "The left hand side argument to IS must be a Variable Reference, Literal, "
                        "or Path");
    TRY(hf__pq_operand(b, operand, &first));
    if (hf__pq_same_word(node->text, "MISSING")) {
        *out = operand->kind == PQ_PATH
                   ? hf__pq_add_two(b, NODE_CALL, FUNCTION_ATTRIBUTE_NOT_EXISTS, first, NO_NODE)
                   : add_never(b);
        return HF_OK;
    }
    for (size_t i = 0; i < ARRAY_LEN(types); i++)
        if (hf__pq_same_word(node->text, types[i].name)) {
            *out = hf__pq_add_two(b, NODE_CALL, FUNCTION_ATTRIBUTE_TYPE, first,
                                  add_text(b, types[i].type));
            return HF_OK;
        }
    return hf__pq_fail_at(b->s, node->place,
                          "Unsupported data type for IS operator: %.*s. Supported data types are "
                          "[MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST]",
                          HF_FMT(node->text));
}

/* a AND b AND c nests to the right. */
static enum hf_status build_chain(struct builder *b, struct pq_node *node, uint16_t *out)
{
    enum logic op = node->kind == PQ_AND ? OP_AND : OP_OR;
    uint16_t last = NO_NODE; /* the innermost so far, whose second operand is to come */
    uint16_t number;

    for (struct pq_node *child = node->first; child; child = child->next) {
        if (!is_condition(child) && child->kind != PQ_CALL && child->kind != PQ_BINARY &&
            !hf__pq_is_missing(child))
            return hf__fail(b->s, HF_INVALID, "The arguments to AND/OR must be Expressions");
        TRY(build_condition(b, child, &number));
        if (child->next) {
            TRY(hf__pq_count(b));
            number = hf__pq_add_two(b, NODE_LOGIC, op, number, NO_NODE);
        }
        if (last == NO_NODE)
            *out = number;
        else
            hf__pq_add_operand(b, last, number);
        last = number;
    }
    return HF_OK;
}

static enum hf_status build_not(struct builder *b, struct pq_node *node, uint16_t *out)
{
    struct pq_node *of = node->first;

    TRY(hf__pq_count(b));
    if (!is_condition(of) && of->kind != PQ_CALL && of->kind != PQ_BINARY)
        return hf__fail(b->s, HF_INVALID, "The argument to NOT must be a Type or Expression");
    TRY(build_condition(b, of, out));
    *out = hf__pq_add_two(b, NODE_LOGIC, OP_NOT, *out, NO_NODE);
    return HF_OK;
}

static enum hf_status build_function(struct builder *b, struct pq_node *call, uint16_t *out)
{
    enum function function = hf__pq_function(call);

    if (function == FUNCTION_NONE)
        return hf__pq_fail_function(b, call);
    if (function == FUNCTION_SIZE)
        return hf__fail(b->s, HF_INVALID, "%s", cond_boolean);
    if (!is_condition_function(function))
        return hf__expr_fail(b->s, EXPR_STATEMENT, TEXT_FUNCTION_CONDITION, HF_FMT(call->text));
    TRY(hf__pq_count(b));
    return build_call(b, call, function, out);
}

/* The depth is limited by (1) of partiql_tree.h and by the number of operators. */
static enum hf_status build_condition(struct builder *b, struct pq_node *node, uint16_t *out)
{
    switch ((enum pq_kind)node->kind) {
    case PQ_AND:
    case PQ_OR:
        return build_chain(b, node, out);
    case PQ_NOT:
        return build_not(b, node, out);
    case PQ_BETWEEN:
        return build_between(b, node, out);
    case PQ_IN:
        return build_in(b, node, out);
    case PQ_IS:
        return build_is(b, node, out);
    case PQ_CALL:
        return build_function(b, node, out);
    case PQ_BINARY:
        if (!is_comparison(node))
            return fail_operator(b, node);
        return build_compare(b, node, out);
    case PQ_LITERAL:
        if (hf__pq_is_missing(node))
            return hf__fail(b->s, HF_INVALID, "MISSING must be compared using IS operator");
        break;
    case PQ_SUBSELECT:
        return hf__pq_operand(b, node, out);
    default:
        break;
    }
    return hf__fail(b->s, HF_INVALID, "%s", cond_boolean);
}

/* The program whose root is `root`, checked. */
static enum hf_status end_condition(struct builder *b, uint16_t root, struct expr_bound **bound)
{
    TRY(hf__pq_end(b));
    b->expr->root = root;
    b->expr->leaves = hf__scope_array(b->s, b->expr->nodes_len, sizeof(*b->expr->leaves));
    if (!b->expr->leaves)
        return hf__fail_nomem(b->s);
    hf__expr_link_leaves(b->expr);
    TRY(hf__expr_check_condition(b->s, b->bound));
    *bound = b->bound;
    return HF_OK;
}

enum hf_status hf__pq_condition(struct hf_scope *s, const struct pq_params *params,
                                struct pq_node *where, struct expr_bound **bound)
{
    struct builder b;
    uint16_t root;

    TRY(hf__pq_start(s, params, &b));
    TRY(build_condition(&b, where, &root));
    return end_condition(&b, root, bound);
}

static uint16_t add_not_exists(struct builder *b, const struct expr_step *hash)
{
    return hf__pq_add_two(b, NODE_CALL, FUNCTION_ATTRIBUTE_NOT_EXISTS,
                          add_path(b, (struct expr_path){hash, 1}), NO_NODE);
}

enum hf_status hf__partiql_not_exists(struct hf_scope *s, struct hf_str hash,
                                      struct expr_bound **bound)
{
    struct expr_step *step = hf__scope_array(s, 1, sizeof(*step));
    struct builder b;

    if (!step)
        return hf__fail_nomem(s);
    step->name = hash;
    TRY(hf__pq_start(s, NULL, &b));
    return end_condition(&b, add_not_exists(&b, step), bound);
}

enum hf_status hf__partiql_unless_missing(struct hf_scope *s, const struct statement *statement,
                                          struct hf_str hash, struct expr_bound **bound)
{
    const struct pq_params params = {statement->params, statement->params_len};
    struct expr_step *step = hf__scope_array(s, 1, sizeof(*step));
    struct builder b;
    uint16_t root;

    if (!step)
        return hf__fail_nomem(s);
    step->name = hash;
    TRY(hf__pq_start(s, &params, &b));
    TRY(build_condition(&b, statement->condition, &root));
    root = hf__pq_add_two(&b, NODE_LOGIC, OP_OR, add_not_exists(&b, step), root);
    return end_condition(&b, root, bound);
}
