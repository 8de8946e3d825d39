/*
 * expr/compile.c: from text to program: memory, findings in their order, placeholders, leaves.
 *
 * A program is one allocation, measured by its tokens. The parser lives on the C stack (about 60
 * KB); it is used by nobody else meanwhile and calls nothing deep.
 */
#include "expr/parse.h"

#include "base/assert_held.h"

/* ---- memory --------------------------------------------------------------------------------- */

static void *array_carve(uint8_t **at, size_t count, size_t size)
{
    void *ptr = *at;

    *at += count * size;
    return ptr;
}

/* Wide elements first, so that everything is aligned. */
static struct expr *expr_new(struct hf_scope *s, enum expr_kind kind, struct hf_str text,
                             const struct token_counts *counts, struct hf_str *copy)
{
    size_t actions = kind == EXPR_UPDATE ? counts->names : 0;
    size_t leaves = kind == EXPR_UPDATE || kind == EXPR_PROJECTION ? 0 : counts->all;
    size_t nodes = kind == EXPR_PROJECTION ? 0 : counts->all;
    size_t size = sizeof(struct expr) + counts->names * sizeof(struct expr_path) +
                  counts->steps * sizeof(struct expr_step) +
                  (counts->aliases + counts->values) * sizeof(struct hf_str) +
                  nodes * sizeof(struct node) + actions * sizeof(struct action) +
                  leaves * sizeof(struct leaf) + counts->steps * sizeof(uint16_t) + text.len;
    uint8_t *at = hf_scope_alloc(s, size);
    struct expr *expr;

    if (!at)
        return NULL;
    expr = array_carve(&at, 1, sizeof(*expr));
    memset(expr, 0, sizeof(*expr));
    expr->kind = kind;
    expr->paths = array_carve(&at, counts->names, sizeof(struct expr_path));
    expr->steps = array_carve(&at, counts->steps, sizeof(struct expr_step));
    expr->aliases = array_carve(&at, counts->aliases, sizeof(struct hf_str));
    expr->values = array_carve(&at, counts->values, sizeof(struct hf_str));
    expr->nodes = array_carve(&at, nodes, sizeof(struct node));
    expr->actions = array_carve(&at, actions, sizeof(struct action));
    expr->leaves = array_carve(&at, leaves, sizeof(struct leaf));
    expr->step_aliases = array_carve(&at, counts->steps, sizeof(uint16_t));
    assert(at + text.len == (uint8_t *)expr + size); /* all of it is carved */
    memcpy(at, text.ptr, text.len);
    *copy = hf_str_of((const char *)at, text.len);
    return expr;
}

_Static_assert(sizeof(struct expr) % 8 == 0, "arrays of pointers follow");
_Static_assert(_Alignof(struct node) <= 2 && _Alignof(struct action) <= 2, "16-bit parts follow");
_Static_assert(sizeof(struct node) % 2 == 0 && sizeof(struct action) % 2 == 0, "and stay aligned");

/* ---- what is wrong with the text ------------------------------------------------------------ */

/* The token, and the text from the token before it to the one behind it. */
static enum hf_status fail_syntax(struct hf_scope *s, const struct parser *p)
{
    const struct token *tokens = p->tokens;
    size_t from = tokens[p->bad > 0 ? p->bad - 1 : 0].at;
    size_t to = p->text.len;
    struct hf_str token = hf__expr_token_text(p, p->bad);

    if (tokens[p->bad].kind == TOKEN_END)
        token = HF_STR("<EOF>");
    else if (tokens[p->bad + 1].kind != TOKEN_END)
        to = (size_t)tokens[p->bad + 1].at + tokens[p->bad + 1].len;
    return hf__expr_fail(s, p->expr->kind, TEXT_SYNTAX, HF_FMT(token), (int)(to - from),
                         p->text.ptr + from);
}

static enum hf_status fail_found(struct hf_scope *s, const struct parser *p, enum finding finding)
{
    enum expr_kind kind = p->expr->kind;
    size_t at = p->found_at[finding];
    struct hf_str token = HF_STR_INIT("");

    if (finding != FOUND_SECTION && finding != FOUND_DEPTH)
        token = hf__expr_token_text(p, at);
    switch (finding) {
    case FOUND_PARENTHESES:
        return hf__expr_fail(s, kind, TEXT_PARENTHESES);
    case FOUND_FUNCTION:
        return hf__expr_fail(s, kind, TEXT_FUNCTION, HF_FMT(token));
    case FOUND_NOT_ALLOWED:
        if (kind == EXPR_UPDATE)
            return hf__expr_fail(s, kind, TEXT_FUNCTION_UPDATE, HF_FMT(token));
        return hf__expr_fail(s, kind, TEXT_FUNCTION_CONDITION, HF_FMT(token));
    case FOUND_MISUSE:
        return hf__expr_fail(s, kind, TEXT_FUNCTION_WAY, HF_FMT(token));
    case FOUND_RESERVED:
        return hf__expr_fail(s, kind, TEXT_RESERVED, HF_FMT(token));
    case FOUND_SECTION:
        return hf__expr_fail(s, kind, TEXT_SECTION, hf__expr_section_name((enum section)at));
    case FOUND_INDEX:
        return hf__expr_fail(s, kind, TEXT_INDEX, HF_FMT(token));
    case FOUND_DEPTH:
        return hf__expr_fail(s, kind, TEXT_DEPTH, at);
    case FOUND_TYPE:
        return hf__expr_fail(s, kind, TEXT_OPERAND_TYPE, hf__expr_function_name(FUNCTION_SIZE),
                             "N");
    case FINDINGS:
        break;
    }
    return HF_OK;
}

static enum hf_status report_findings(struct hf_scope *s, const struct parser *p)
{
    static const uint8_t condition_order[] = {
        FOUND_PARENTHESES, FOUND_FUNCTION, FOUND_NOT_ALLOWED, FOUND_MISUSE,
        FOUND_RESERVED,    FOUND_INDEX,    FOUND_DEPTH,       FOUND_TYPE,
    };
    static const uint8_t update_order[] = {
        FOUND_PARENTHESES, FOUND_RESERVED, FOUND_FUNCTION, FOUND_NOT_ALLOWED,
        FOUND_MISUSE,      FOUND_SECTION,  FOUND_INDEX,    FOUND_DEPTH,
    };
    const uint8_t *order = p->expr->kind == EXPR_UPDATE ? update_order : condition_order;

    _Static_assert(sizeof(condition_order) == sizeof(update_order), "one loop for both");
    for (size_t i = 0; i < sizeof(condition_order); i++)
        if (p->found[order[i]])
            return fail_found(s, p, (enum finding)order[i]);
    if (p->operators > EXPR_OPERATORS_MAX)
        return hf__expr_fail(s, p->expr->kind, TEXT_OPERATORS, p->operators);
    return HF_OK;
}

/* ---- placeholders --------------------------------------------------------------------------- */

struct uses {
    const struct parser *p;
    const uint16_t *tokens; /* of each use */
};

static int order_uses(const void *context, uint16_t a, uint16_t b)
{
    const struct uses *uses = context;
    struct hf_str x = hf__expr_token_text(uses->p, uses->tokens[a]);
    struct hf_str y = hf__expr_token_text(uses->p, uses->tokens[b]);

    return bytes_compare(x.ptr, x.len, y.ptr, y.len);
}

/* List each placeholder once, in order; `numbers` gets the place in the list of each use. */
static size_t number_uses(const struct parser *p, const uint16_t *tokens, size_t len,
                          struct hf_str *list, uint16_t *numbers)
{
    uint16_t order[EXPR_TEXT_MAX / 2];
    struct uses uses = {p, tokens};
    size_t listed = 0;

    for (size_t i = 0; i < len; i++)
        order[i] = (uint16_t)i;
    hf__expr_sort(order, len, order_uses, &uses);
    for (size_t i = 0; i < len; i++) {
        struct hf_str name = hf__expr_token_text(p, tokens[order[i]]);

        if (listed == 0 || !hf_str_equal(list[listed - 1], name))
            list[listed++] = name;
        numbers[order[i]] = (uint16_t)(listed - 1);
    }
    return listed;
}

static void number_placeholders(const struct parser *p)
{
    uint16_t numbers[EXPR_TEXT_MAX / 2];
    struct expr *expr = p->expr;

    if (p->values_len > 0) {
        expr->values_len = number_uses(p, p->value_tokens, p->values_len, expr->values, numbers);
        for (size_t i = 0; i < expr->nodes_len; i++)
            if (expr->nodes[i].kind == NODE_VALUE)
                expr->nodes[i].ref = numbers[expr->nodes[i].ref];
    }
    if (p->aliases_len > 0) {
        expr->aliases_len = number_uses(p, p->alias_tokens, p->aliases_len, expr->aliases, numbers);
        for (size_t i = 0; i < expr->steps_len; i++)
            if (expr->step_aliases[i])
                expr->step_aliases[i] = (uint16_t)(numbers[expr->step_aliases[i] - 1] + 1);
    }
}

/* ---- leaves --------------------------------------------------------------------------------- */

/*
 * List the leaves under a node, the last one first, so that a leaf is always listed after those it
 * may go on to; it goes to `yes` when it holds, else to `no`. Recursion: (3) of private.h.
 */
static void list_leaves(struct expr *expr, uint16_t number, uint16_t yes, uint16_t no)
{
    const struct node *node = &expr->nodes[number];
    uint16_t right;

    if (node->kind != NODE_LOGIC) {
        expr->leaves[expr->leaves_len++] = (struct leaf){number, yes, no};
        return;
    }
    if (node->op == OP_NOT) {
        list_leaves(expr, node->first, no, yes);
        return;
    }
    list_leaves(expr, node->last, yes, no);
    right = (uint16_t)(expr->leaves_len - 1);
    if (node->op == OP_AND)
        list_leaves(expr, node->first, right, no);
    else
        list_leaves(expr, node->first, yes, right);
}

static uint16_t leaf_reversed(uint16_t number, size_t len)
{
    return number >= LEAF_REJECT ? number : (uint16_t)(len - 1 - number);
}

/* Bring the list into reading order. */
static void leaves_reverse(struct expr *expr)
{
    size_t len = expr->leaves_len;

    for (size_t i = 0; i < len / 2; i++) {
        struct leaf swap = expr->leaves[i];

        expr->leaves[i] = expr->leaves[len - 1 - i];
        expr->leaves[len - 1 - i] = swap;
    }
    for (size_t i = 0; i < len; i++) {
        expr->leaves[i].yes = leaf_reversed(expr->leaves[i].yes, len);
        expr->leaves[i].no = leaf_reversed(expr->leaves[i].no, len);
    }
}

void hf__expr_link_leaves(struct expr *expr)
{
    list_leaves(expr, expr->root, LEAF_ACCEPT, LEAF_REJECT);
    leaves_reverse(expr);
}

/* ---- what always holds ---------------------------------------------------------------------- */

/* (5): each once, in the order of their bytes. */
static void placeholders_check(const struct hf_str *list, size_t len)
{
    for (size_t i = 1; i < len; i++)
        assert(bytes_compare(list[i - 1].ptr, list[i - 1].len, list[i].ptr, list[i].len) < 0);
}

static void nodes_check(const struct expr *expr)
{
    for (size_t i = 0; i < expr->nodes_len; i++) {
        const struct node *node = &expr->nodes[i];
        uint16_t child = node->first;

        assert(node->kind != NODE_PATH || node->ref < expr->paths_len);
        assert(node->kind != NODE_VALUE || node->ref < expr->values_len);
        for (size_t n = 0; n < node->count; n++) {
            assert(child < expr->nodes_len && child != i);
            assert((n == node->count - 1u) == (child == node->last));
            child = expr->nodes[child].next;
        }
    }
}

/* Every leaf leads to a later one or to the end, so matching comes to an end. */
static void leaves_check(const struct expr *expr)
{
    for (size_t i = 0; i < expr->leaves_len; i++) {
        const struct leaf *leaf = &expr->leaves[i];

        assert(leaf->node < expr->nodes_len && expr->nodes[leaf->node].kind != NODE_LOGIC);
        assert(leaf->yes >= LEAF_REJECT || (leaf->yes > i && leaf->yes < expr->leaves_len));
        assert(leaf->no >= LEAF_REJECT || (leaf->no > i && leaf->no < expr->leaves_len));
    }
}

/* (4), (5) of private.h, and that numbers lead to something. */
static void expr_check(const struct expr *expr)
{
    for (size_t i = 0; i < expr->paths_len; i++)
        assert(expr->paths[i].len > 0 && expr->paths[i].len <= EXPR_PATH_MAX);
    for (size_t i = 0; i < expr->steps_len; i++)
        assert(expr->step_aliases[i] <= expr->aliases_len);
    for (size_t i = 0; i < expr->actions_len; i++) {
        assert(expr->actions[i].path < expr->paths_len);
        assert((expr->actions[i].value == NO_NODE) == (expr->actions[i].section == SECTION_REMOVE));
    }
    placeholders_check(expr->aliases, expr->aliases_len);
    placeholders_check(expr->values, expr->values_len);
    nodes_check(expr);
    leaves_check(expr);
}

/* ---- compiling ------------------------------------------------------------------------------ */

static bool expr_parse(struct parser *p)
{
    switch (p->expr->kind) {
    case EXPR_CONDITION:
    case EXPR_FILTER:
    case EXPR_KEY_CONDITION:
        return hf__expr_parse_condition(p);
    case EXPR_UPDATE:
        return hf__expr_parse_update(p);
    case EXPR_PROJECTION:
    case EXPR_STATEMENT: /* has a parser of its own */
        break;
    }
    return hf__expr_parse_projection(p);
}

enum hf_status hf__expr_compile(struct hf_scope *s, enum expr_kind kind, struct hf_str text,
                                const struct expr **expr)
{
    struct parser p;
    struct token_counts counts;

    *expr = NULL;
    if (text.len == 0)
        return hf__expr_fail(s, kind, TEXT_EMPTY);
    if (text.len > EXPR_TEXT_MAX)
        return hf__expr_fail(s, kind, TEXT_SIZE, text.len);
    memset(&p, 0, offsetof(struct parser, tokens));
    counts = hf__expr_lex(text, p.tokens);
    p.expr = expr_new(s, kind, text, &counts, &p.text);
    if (!p.expr)
        return hf__fail_nomem(s);
    if (!expr_parse(&p))
        return fail_syntax(s, &p);
    TRY(report_findings(s, &p));
    number_placeholders(&p);
    if (kind != EXPR_UPDATE && kind != EXPR_PROJECTION)
        hf__expr_link_leaves(p.expr);
    if (DEV_CHECKS)
        expr_check(p.expr);
    *expr = p.expr;
    return HF_OK;
}
