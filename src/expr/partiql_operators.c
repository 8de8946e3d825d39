/*
 * expr/partiql_operators.c: expressions of statements: operators and what they join.
 *
 * Operators bind as in PartiQL, from the loosest on: OR, AND, NOT, then = <> IS, then < <= > >= IN
 * BETWEEN LIKE, then ||, then + -, then * / %, then a sign. Each step reads an operand that binds
 * tighter, then continues while an operator of its own strength follows. A chain of AND or OR
 * becomes one node with many operands, so a long chain is not deep; real nesting counts in
 * p->depth.
 */
#include "expr/partiql_tree.h"

/* Signs in front of a number belong to it; in front of anything else they are an operator. */
static struct pq_node *signed_term(struct pq_parser *p)
{
    const struct pq_token *first = p->token;
    bool minus = false;
    struct pq_node *node;
    struct pq_node *sign;

    while (hf__pq_at(p, "-") || hf__pq_at(p, "+")) {
        minus ^= hf__pq_at(p, "-");
        hf__pq_next(p);
    }
    node = hf__pq_term(p);
    if (!node || p->token == first || (first->kind != PQ_OPERATOR))
        return node;
    if (node->kind == PQ_LITERAL && node->op == PQ_NUMERIC) {
        node->negative ^= minus;
        return node;
    }
    sign = hf__pq_node(p, PQ_UNARY, hf__pq_place(p, first));
    if (sign)
        sign->text = hf__pq_token_text(p, first);
    hf__pq_attach(sign, node);
    return sign;
}

/* The operand behind an infix operator. */
static bool has_right(struct pq_parser *p)
{
    if (p->token->kind != PQ_END)
        return true;
    hf__pq_fail(p, "Missing right-hand side expression of infix operator");
    return false;
}

/* `left` and an operand that has just been read, under an operator that stood between them. */
static struct pq_node *node_join(struct pq_parser *p, enum pq_kind kind, struct hf_str text,
                                 struct pq_place place, struct pq_node *left, struct pq_node *right)
{
    struct pq_node *node;

    if (!left || !right)
        return NULL;
    node = hf__pq_node(p, kind, place);
    if (node)
        node->text = text;
    hf__pq_attach(node, left);
    hf__pq_attach(node, right);
    return node;
}

enum strength { STRENGTH_CONCAT, STRENGTH_SUM, STRENGTH_PRODUCT, STRENGTH_SIGN };

static bool at_strength(const struct pq_parser *p, enum strength strength)
{
    switch (strength) {
    case STRENGTH_CONCAT:
        return hf__pq_at(p, "||");
    case STRENGTH_SUM:
        return hf__pq_at(p, "+") || hf__pq_at(p, "-");
    default:
        return hf__pq_at(p, "*") || hf__pq_at(p, "/") || hf__pq_at(p, "%");
    }
}

static struct pq_node *parse_arithmetic(struct pq_parser *p, enum strength strength)
{
    size_t depth = p->depth;
    struct pq_node *left;

    if (strength == STRENGTH_SIGN)
        return signed_term(p);
    left = parse_arithmetic(p, (enum strength)(strength + 1));
    while (left && at_strength(p, strength)) {
        struct pq_place place = hf__pq_place(p, p->token);
        struct hf_str text = hf__pq_token_text(p, hf__pq_next(p));

        if (!has_right(p) ||
            !hf__pq_enter(p)) /* a chain hangs to the left: every link is a level */
            return NULL;
        left = node_join(p, PQ_BINARY, text, place, left,
                         parse_arithmetic(p, (enum strength)(strength + 1)));
    }
    p->depth = depth;
    return left;
}

static struct pq_node *node_negate(struct pq_parser *p, bool negate, struct pq_place place,
                                   struct pq_node *node)
{
    struct pq_node *negation;

    if (!negate || !node)
        return node;
    negation = hf__pq_node(p, PQ_NOT, place);
    hf__pq_attach(negation, node);
    return negation;
}

static struct pq_node *parse_between(struct pq_parser *p, struct pq_place place,
                                     struct pq_node *left)
{
    struct pq_node *node = hf__pq_node(p, PQ_BETWEEN, place);

    hf__pq_attach(node, left);
    if (has_right(p))
        hf__pq_attach(node, parse_arithmetic(p, STRENGTH_CONCAT));
    if (p->status == HF_OK && !hf__pq_take(p, "and"))
        hf__pq_fail(p, "Expected AND after BETWEEN");
    if (p->status == HF_OK && has_right(p))
        hf__pq_attach(node, parse_arithmetic(p, STRENGTH_CONCAT));
    return p->status == HF_OK ? node : NULL;
}

/* Take a comparison, IN, LIKE or BETWEEN, if one follows; false: none does. */
static bool parse_ordering(struct pq_parser *p, struct pq_node **left)
{
    static const char *const signs[] = {"<", "<=", ">", ">="};
    struct pq_place place = hf__pq_place(p, p->token);
    struct hf_str text = hf__pq_token_text(p, p->token);
    const struct pq_token *before = p->token;
    bool negate = hf__pq_take(p, "not");

    if (negate)
        place = hf__pq_place(p, p->token);
    if (hf__pq_take(p, "between")) {
        *left = node_negate(p, negate, place, parse_between(p, place, *left));
        return true;
    }
    if (hf__pq_is(p, "in") || hf__pq_is(p, "like")) {
        bool in = hf__pq_is(p, "in");

        text = in ? HF_STR("in") : HF_STR("like");
        hf__pq_next(p);
        *left = !has_right(p) ? NULL
                              : node_join(p, in ? PQ_IN : PQ_BINARY, text, place, *left,
                                          parse_arithmetic(p, STRENGTH_CONCAT));
        *left = node_negate(p, negate, place, *left);
        return true;
    }
    p->token = p->status == HF_OK ? before : p->token;
    for (size_t i = 0; i < ARRAY_LEN(signs); i++)
        if (hf__pq_take_sign(p, signs[i])) {
            *left = !has_right(p) ? NULL
                                  : node_join(p, PQ_BINARY, text, place, *left,
                                              parse_arithmetic(p, STRENGTH_CONCAT));
            return true;
        }
    return false;
}

static struct pq_node *parse_ordered(struct pq_parser *p)
{
    size_t depth = p->depth;
    struct pq_node *left = parse_arithmetic(p, STRENGTH_CONCAT);

    while (left && parse_ordering(p, &left))
        if (!hf__pq_enter(p))
            return NULL;
    p->depth = depth;
    return left;
}

/* The names of types in statements, and in messages. */
static const struct {
    const char *word;
    const char *second; /* of two words */
    const char *name;
} types[] = {
    {"missing", NULL, "MISSING"},
    {"null", NULL, "NULL"},
    {"bool", NULL, "BOOLEAN"},
    {"boolean", NULL, "BOOLEAN"},
    {"string", NULL, "STRING"},
    {"numeric", NULL, "NUMERIC"},
    {"blob", NULL, "BLOB"},
    {"struct", NULL, "STRUCT"},
    {"tuple", NULL, "TUPLE"},
    {"list", NULL, "LIST"},
    {"bag", NULL, "BAG"},
    {"clob", NULL, "CLOB"},
    {"symbol", NULL, "SYMBOL"},
    {"sexp", NULL, "SEXP"},
    {"int", NULL, "INTEGER"},
    {"integer", NULL, "INTEGER"},
    {"smallint", NULL, "SMALLINT"},
    {"int2", NULL, "SMALLINT"},
    {"int4", NULL, "INTEGER4"},
    {"int8", NULL, "INTEGER8"},
    {"float", NULL, "FLOAT"},
    {"real", NULL, "REAL"},
    {"decimal", NULL, "DECIMAL"},
    {"dec", NULL, "DECIMAL"},
    {"timestamp", NULL, "TIMESTAMP"},
    {"date", NULL, "DATE"},
    {"time", NULL, "TIME"},
    {"char", NULL, "CHARACTER"},
    {"varchar", NULL, "CHARACTER_VARYING"},
    {"double", "precision", "DOUBLE_PRECISION"},
    {"character", "varying", "CHARACTER_VARYING"},
    {"character", NULL, "CHARACTER"},
    {"any", NULL, "ANY"},
};

static const char *take_type(struct pq_parser *p)
{
    struct hf_str text = hf__pq_token_text(p, p->token);

    if (p->token->kind != PQ_KEYWORD && p->token->kind != PQ_NAME)
        return NULL;
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (!hf__pq_same_word(text, types[i].word))
            continue;
        if (types[i].second &&
            !hf__pq_same_word(hf__pq_token_text(p, p->token + 1), types[i].second))
            continue;
        p->token += types[i].second ? 2 : 1;
        return types[i].name;
    }
    return NULL;
}

static struct pq_node *is_type(struct pq_parser *p, struct pq_node *left)
{
    struct pq_place place = hf__pq_place(p, hf__pq_next(p));
    bool negate = hf__pq_take(p, "not");
    struct pq_node *node = hf__pq_node(p, PQ_IS, place);
    const char *name = take_type(p);

    if (!name)
        hf__pq_fail(p, "Expected type name");
    if (p->status != HF_OK)
        return NULL;
    node->text = hf_str_from(name);
    hf__pq_attach(node, left);
    return node_negate(p, negate, place, node);
}

static struct pq_node *parse_compared(struct pq_parser *p)
{
    size_t depth = p->depth;
    struct pq_node *left = parse_ordered(p);

    while (left) {
        struct pq_place place = hf__pq_place(p, p->token);
        struct hf_str text = hf__pq_token_text(p, p->token);

        if (hf__pq_is(p, "is")) {
            left = is_type(p, left);
        } else if (hf__pq_take_sign(p, "=") || hf__pq_take_sign(p, "<>") ||
                   hf__pq_take_sign(p, "!=")) {
            if (text.ptr[0] != '=')
                text = HF_STR("<>");
            left =
                has_right(p) ? node_join(p, PQ_BINARY, text, place, left, parse_ordered(p)) : NULL;
        } else {
            break;
        }
        if (!hf__pq_enter(p))
            return NULL;
    }
    p->depth = depth;
    return left;
}

static struct pq_node *maybe_not(struct pq_parser *p)
{
    struct pq_place place = hf__pq_place(p, p->token);
    struct pq_node *node;

    if (!hf__pq_take(p, "not"))
        return parse_compared(p);
    if (!hf__pq_enter(p))
        return NULL;
    node = maybe_not(p);
    p->depth--;
    return node_negate(p, true, place, node);
}

/* a AND b AND c: one node; so is a AND (b AND c). */
static struct pq_node *node_chain(struct pq_parser *p, enum pq_kind kind, struct pq_node *left,
                                  struct pq_place place, struct pq_node *right)
{
    struct pq_node *node = left;

    if (!left || !right)
        return NULL;
    if (left->kind != kind) {
        node = hf__pq_node(p, kind, place);
        if (node)
            node->text = kind == PQ_AND ? HF_STR("and") : HF_STR("or");
        hf__pq_attach(node, left);
    }
    if (right->kind != (uint8_t)kind || !node) {
        hf__pq_attach(node, right);
        return node;
    }
    for (struct pq_node *child = right->first, *next; child; child = next) {
        next = child->next;
        child->next = NULL;
        hf__pq_attach(node, child);
    }
    return node;
}

static struct pq_node *all_of(struct pq_parser *p)
{
    struct pq_node *left = maybe_not(p);

    while (left && hf__pq_is(p, "and")) {
        struct pq_place place = hf__pq_place(p, hf__pq_next(p));

        left = has_right(p) ? node_chain(p, PQ_AND, left, place, maybe_not(p)) : NULL;
    }
    return left;
}

struct pq_node *hf__pq_expression(struct pq_parser *p)
{
    size_t depth = p->depth;
    struct pq_node *left = NULL;

    if (hf__pq_enter(p))
        left = all_of(p);
    while (left && hf__pq_is(p, "or")) {
        struct pq_place place = hf__pq_place(p, hf__pq_next(p));

        left = has_right(p) ? node_chain(p, PQ_OR, left, place, all_of(p)) : NULL;
    }
    p->depth = depth;
    return p->status == HF_OK ? left : NULL;
}
