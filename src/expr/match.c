/*
 * expr/match.c: conditions and filters against an item.
 *
 * Leaf after leaf is tested and says where to go on, until one says accept or reject. Nothing is
 * allocated and nothing can fail: what is missing or of the wrong type makes a leaf false, but
 * `<>` true, unless it is the size of something that has none.
 */
#include "expr/private.h"

/* What the expression is about. */
struct subject {
    struct hf_item item;
    struct expr_finder *finder; /* NULL: the expression is small */
};

/* Room for the number that size() gives. */
struct size_room {
    uint8_t bytes[2 + NUMBER_BYTES_MAX];
};

/* How long a string is to DynamoDB: in units of UTF-16, of which what lies beyond 16 bits, four
 * bytes here, takes two. */
static size_t utf16_units(struct hf_bytes text)
{
    size_t units = 0;

    for (size_t i = 0; i < text.len; i++)
        units += ((text.ptr[i] & 0xC0) != 0x80) + (text.ptr[i] >= 0xF0);
    return units;
}

static struct hf_value size_value(struct hf_value value, struct size_room *room)
{
    struct number number;
    size_t size;

    switch (hf_value_type(value)) {
    case HF_TYPE_S:
        size = utf16_units(hf__value_scalar(value));
        break;
    case HF_TYPE_B:
        size = hf__value_scalar(value).len;
        break;
    case HF_TYPE_L:
    case HF_TYPE_M:
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        size = hf_value_count(value);
        break;
    default:
        return (struct hf_value){NULL, 0};
    }
    hf__number_from_i64((int64_t)size, &number);
    room->bytes[0] = HF_TYPE_N;
    room->bytes[1] = number.len;
    memcpy(room->bytes + 2, number.bytes, number.len);
    return (struct hf_value){room->bytes, 2u + number.len};
}

static struct hf_value operand_value(const struct expr_bound *bound, const struct node *node,
                                     const struct subject *on, struct size_room *room)
{
    const struct node *of;

    switch ((enum node_kind)node->kind) {
    case NODE_PATH:
        return hf__expr_resolve(on->finder, on->item, &bound->paths[node->ref]);
    case NODE_VALUE:
        return bound->values[node->ref];
    case NODE_CALL:
        of = hf__expr_node(bound->expr, node->first);
        assert(node->op == FUNCTION_SIZE && of->kind != NODE_CALL); /* (3) of private.h */
        return size_value(operand_value(bound, of, on, room), room);
    default:
        return (struct hf_value){NULL, 0};
    }
}

/* Is it size() of something that is there but has no size? Then no comparison holds, not even <>.
 */
static bool has_no_size(const struct expr_bound *bound, const struct node *node,
                        const struct subject *on)
{
    struct size_room room;

    if (node->kind != NODE_CALL || operand_value(bound, node, on, &room).ptr)
        return false;
    return operand_value(bound, hf__expr_node(bound->expr, node->first), on, &room).ptr != NULL;
}

/* Are both there, of one type, and of one that has an order? */
static bool are_comparable(struct hf_value a, struct hf_value b)
{
    enum hf_type type = hf_value_type(a);

    return type == hf_value_type(b) &&
           (type == HF_TYPE_S || type == HF_TYPE_N || type == HF_TYPE_B);
}

static bool compare_values(enum compare op, struct hf_value a, struct hf_value b)
{
    bool equal;

    if (op == OP_EQ || op == OP_NE) {
        equal = a.ptr && b.ptr && hf_value_equal(a, b);
        return equal == (op == OP_EQ);
    }
    if (!are_comparable(a, b))
        return false;
    switch (op) {
    case OP_LT:
        return hf__value_compare(a, b) < 0;
    case OP_LE:
        return hf__value_compare(a, b) <= 0;
    case OP_GT:
        return hf__value_compare(a, b) > 0;
    default:
        return hf__value_compare(a, b) >= 0;
    }
}

static bool match_compare(const struct expr_bound *bound, const struct node *leaf,
                          const struct subject *on)
{
    const struct expr *expr = bound->expr;
    const struct node *node = hf__expr_node(expr, leaf->first);
    struct size_room first_room;
    struct size_room room;
    struct hf_value first = operand_value(bound, node, on, &first_room);
    enum compare op = (enum compare)leaf->op;

    if (op == OP_NE &&
        (has_no_size(bound, node, on) || has_no_size(bound, hf__expr_node(expr, node->next), on)))
        return false;
    node = hf__expr_node(expr, node->next);
    if (op == OP_BETWEEN)
        return compare_values(OP_GE, first, operand_value(bound, node, on, &room)) &&
               compare_values(OP_LE, first,
                              operand_value(bound, hf__expr_node(expr, leaf->last), on, &room));
    if (op != OP_IN)
        return compare_values(op, first, operand_value(bound, node, on, &room));
    while (!compare_values(OP_EQ, first, operand_value(bound, node, on, &room))) {
        if (node->next == NO_NODE)
            return false;
        node = hf__expr_node(expr, node->next);
    }
    return true;
}

static bool bytes_within(struct hf_bytes in, struct hf_bytes of)
{
    return in.len == 0 || (of.len >= in.len && memmem(of.ptr, of.len, in.ptr, in.len));
}

bool hf__expr_contains(struct expr_finder *finder, struct hf_value container,
                       struct hf_value element)
{
    static const uint8_t of_set[] = {
        [HF_TYPE_SS] = HF_TYPE_S, [HF_TYPE_NS] = HF_TYPE_N, [HF_TYPE_BS] = HF_TYPE_B};
    enum hf_type type = hf_value_type(container);
    struct value_walk walk;

    if (!element.ptr)
        return false;
    switch (type) {
    case HF_TYPE_S:
    case HF_TYPE_B:
        return hf_value_type(element) == type &&
               bytes_within(hf__value_scalar(element), hf__value_scalar(container));
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        return hf_value_type(element) == of_set[type] &&
               hf__expr_find_element(finder, container, hf__value_scalar(element));
    case HF_TYPE_L:
        walk = hf__value_walk(container);
        while (hf__value_next(&walk))
            if (hf_value_equal(walk.value, element))
                return true;
        return false;
    default:
        return false;
    }
}

static bool begins_with(struct hf_value value, struct hf_value prefix)
{
    enum hf_type type = hf_value_type(value);
    struct hf_bytes whole;
    struct hf_bytes begin;

    if (type != hf_value_type(prefix) || (type != HF_TYPE_S && type != HF_TYPE_B))
        return false;
    whole = hf__value_scalar(value);
    begin = hf__value_scalar(prefix);
    return whole.len >= begin.len &&
           (begin.len == 0 || memcmp(whole.ptr, begin.ptr, begin.len) == 0);
}

static bool match_call(const struct expr_bound *bound, const struct node *leaf,
                       const struct subject *on)
{
    struct size_room first_room;
    struct size_room last_room;
    struct hf_value first =
        operand_value(bound, hf__expr_node(bound->expr, leaf->first), on, &first_room);
    struct hf_value last;

    if (leaf->op == FUNCTION_ATTRIBUTE_EXISTS)
        return first.ptr != NULL;
    if (leaf->op == FUNCTION_ATTRIBUTE_NOT_EXISTS)
        return first.ptr == NULL;
    last = operand_value(bound, hf__expr_node(bound->expr, leaf->last), on, &last_room);
    switch ((enum function)leaf->op) {
    case FUNCTION_ATTRIBUTE_TYPE:
        return first.ptr && hf_value_type(first) == hf__type_of_name(hf_value_str(last));
    case FUNCTION_BEGINS_WITH:
        return begins_with(first, last);
    case FUNCTION_CONTAINS:
        return hf__expr_contains(on->finder, first, last);
    case FUNCTION_NOT_CONTAINS:
        return first.ptr && !hf__expr_contains(on->finder, first, last);
    default:
        return false;
    }
}

bool hf__expr_match(const struct expr_bound *bound, struct hf_item item)
{
    const struct expr *expr = bound->expr;
    struct expr_finder finder;
    struct subject on = {item, expr->nodes_len >= FINDER_NODES ? &finder : NULL};
    size_t at = expr->leaves_len > 0 ? 0 : LEAF_ACCEPT;

    if (on.finder)
        hf__expr_finder_begin(&finder);

    while (at < LEAF_REJECT) {
        const struct leaf *leaf = &expr->leaves[at];
        const struct node *node = hf__expr_node(expr, leaf->node);
        bool holds = node->kind == NODE_COMPARE ? match_compare(bound, node, &on)
                                                : match_call(bound, node, &on);

        assert((holds ? leaf->yes : leaf->no) > at);
        at = holds ? leaf->yes : leaf->no;
    }
    return at == LEAF_ACCEPT;
}
