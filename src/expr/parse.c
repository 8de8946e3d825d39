/*
 * expr/parse.c: from tokens to nodes.
 *
 * Operands and operators are read by one loop with a stack of what still waits for an operand, so
 * nesting costs stack entries and no C stack. The loop is always in one of two places: in front of
 * an operand, or behind one. What stands behind an operand decides:
 *
 *     a comparator, BETWEEN, IN   wait for the right side; only behind a plain operand
 *     AND, OR                     only behind a condition; what binds tighter is finished first
 *     + -                         in updates, once, outside of calls
 *     )  ,                        finish the parenthesis, call or list
 *
 * A function call counts as either, operand or condition; using it in the wrong role is not a
 * syntax error but has a text of its own, as have unknown functions, reserved words and redundant
 * parentheses. Those are noted (enum finding) and reported when the whole text could be read. Of
 * calls within calls the inner one is judged first.
 *
 * A path may stand in parentheses and go on behind them, as in `(a.b).c`; in conditions only.
 */
#include "expr/parse.h"

/* What stands in front of the current token. */
enum role { ROLE_OPERAND, ROLE_CALL, ROLE_SUM, ROLE_CONDITION };

struct current {
    uint16_t node;
    enum role role;
    bool wrapped; /* in parentheses of its own */
};

static void finding_note(struct parser *p, enum finding finding, size_t at)
{
    if (p->found[finding])
        return;
    p->found[finding] = true;
    p->found_at[finding] = at;
}

static bool syntax_error(struct parser *p)
{
    p->bad = p->at;
    return false;
}

static enum token_kind kind_at(const struct parser *p, size_t token)
{
    return (enum token_kind)p->tokens[token].kind;
}

static enum keyword keyword_at(const struct parser *p, size_t token)
{
    return (enum keyword)p->tokens[token].keyword;
}

/* ---- nodes ---------------------------------------------------------------------------------- */

static uint16_t node_new(struct parser *p, enum node_kind kind, unsigned op)
{
    struct expr *expr = p->expr;

    expr->nodes[expr->nodes_len] = (struct node){.kind = (uint8_t)kind,
                                                 .op = (uint8_t)op,
                                                 .first = NO_NODE,
                                                 .last = NO_NODE,
                                                 .next = NO_NODE};
    return (uint16_t)expr->nodes_len++;
}

static void node_attach(struct parser *p, uint16_t parent, uint16_t child)
{
    struct node *node = &p->expr->nodes[parent];

    assert(parent < p->expr->nodes_len && child < p->expr->nodes_len && parent != child);
    if (node->count == 0)
        node->first = child;
    else
        p->expr->nodes[node->last].next = child;
    node->last = child;
    node->count++;
}

/* ---- paths and values ----------------------------------------------------------------------- */

static void step_name(struct parser *p)
{
    struct expr *expr = p->expr;
    struct hf_str name = hf__expr_token_text(p, p->at);
    uint16_t alias = 0;

    if (kind_at(p, p->at) == TOKEN_ALIAS) {
        assert(p->aliases_len < ARRAY_LEN(p->alias_tokens));
        p->alias_tokens[p->aliases_len++] = (uint16_t)p->at;
        alias = (uint16_t)p->aliases_len;
    } else if (hf__expr_reserved(name)) {
        finding_note(p, FOUND_RESERVED, p->at);
    }
    expr->step_aliases[expr->steps_len] = alias;
    expr->steps[expr->steps_len++] = (struct expr_step){.name = name};
}

enum { INDEX_DIGITS_MAX = 10 };

static void step_index(struct parser *p)
{
    struct expr *expr = p->expr;
    struct hf_str text = hf__expr_token_text(p, p->at);
    uint64_t index = 0;

    for (size_t i = 0; i < text.len && i <= INDEX_DIGITS_MAX; i++)
        index = index * 10 + (uint64_t)(text.ptr[i] - '0');
    if (index >= UINT32_MAX) {
        finding_note(p, FOUND_INDEX, p->at);
        index = 0;
    }
    expr->step_aliases[expr->steps_len] = 0;
    expr->steps[expr->steps_len++] = (struct expr_step){.index = (uint32_t)index};
}

static bool at_name(const struct parser *p)
{
    return kind_at(p, p->at) == TOKEN_NAME || kind_at(p, p->at) == TOKEN_ALIAS;
}

static bool at_step(const struct parser *p)
{
    return kind_at(p, p->at) == TOKEN_DOT || kind_at(p, p->at) == TOKEN_INDEX_OPEN;
}

/* What follows the first name of a path, or its parentheses. */
static bool parse_steps(struct parser *p)
{
    for (;;) {
        if (kind_at(p, p->at) == TOKEN_DOT) {
            p->at++;
            if (!at_name(p))
                return syntax_error(p);
            step_name(p);
        } else if (kind_at(p, p->at) == TOKEN_INDEX_OPEN) {
            p->at++;
            if (kind_at(p, p->at) != TOKEN_NUMBER)
                return syntax_error(p);
            step_index(p);
            p->at++;
            if (kind_at(p, p->at) != TOKEN_INDEX_CLOSE)
                return syntax_error(p);
        } else {
            return true;
        }
        p->at++;
    }
}

/* All steps from path->steps on are the path's. */
static void path_end(struct parser *p, struct expr_path *path)
{
    path->len = (size_t)(p->expr->steps + p->expr->steps_len - path->steps);
    if (path->len > EXPR_PATH_MAX)
        finding_note(p, FOUND_DEPTH, path->len);
}

static bool parse_path(struct parser *p, uint16_t *number)
{
    struct expr *expr = p->expr;
    struct expr_path *path = &expr->paths[expr->paths_len];

    if (!at_name(p))
        return syntax_error(p);
    path->steps = expr->steps + expr->steps_len;
    step_name(p);
    p->at++;
    if (!parse_steps(p))
        return false;
    path_end(p, path);
    *number = (uint16_t)expr->paths_len++;
    return true;
}

/* Behind a path in parentheses: it goes on. Nothing was read since but parentheses. */
static bool extend_path(struct parser *p)
{
    if (!parse_steps(p))
        return false;
    path_end(p, &p->expr->paths[p->expr->paths_len - 1]);
    return true;
}

static uint16_t parse_value(struct parser *p)
{
    uint16_t node = node_new(p, NODE_VALUE, 0);

    p->expr->nodes[node].ref = (uint16_t)p->values_len;
    p->value_tokens[p->values_len++] = (uint16_t)p->at++;
    return node;
}

/* ---- functions ------------------------------------------------------------------------------ */

static void check_function(struct parser *p, const struct node *call)
{
    bool update = p->expr->kind == EXPR_UPDATE;

    if (call->op == FUNCTION_NONE)
        finding_note(p, FOUND_FUNCTION, call->ref);
    else if (update != (call->op == FUNCTION_IF_NOT_EXISTS || call->op == FUNCTION_LIST_APPEND))
        finding_note(p, FOUND_NOT_ALLOWED, call->ref);
}

/* A call stands where an operand belongs: only size() may, and in an update all but list_append().
 */
static void check_call_operand(struct parser *p, uint16_t parent, uint16_t call)
{
    const struct node *node = &p->expr->nodes[call];
    const struct node *around = &p->expr->nodes[parent];

    if (p->expr->kind == EXPR_UPDATE) {
        if (node->op == FUNCTION_LIST_APPEND)
            finding_note(p, FOUND_MISUSE, node->ref);
        return;
    }
    if (node->op != FUNCTION_SIZE)
        finding_note(p, FOUND_MISUSE, node->ref);
    else if (around->kind == NODE_CALL && around->op == FUNCTION_SIZE)
        finding_note(p, FOUND_TYPE, around->ref);
}

/* ---- operands and operators ----------------------------------------------------------------- */

static struct waiting *stack_top(struct parser *p)
{
    assert(p->depth > 0);
    return &p->stack[p->depth - 1];
}

static void stack_push(struct parser *p, enum slot slot, uint16_t node, bool operand_only)
{
    assert(p->depth < ARRAY_LEN(p->stack));
    p->stack[p->depth++] = (struct waiting){node, (uint8_t)slot, operand_only};
}

static void attach_operand(struct parser *p, uint16_t parent, const struct current *c)
{
    if (c->role == ROLE_CALL)
        check_call_operand(p, parent, c->node);
    node_attach(p, parent, c->node);
}

/* What is used as a condition: size() alone is none. */
static void attach_condition(struct parser *p, uint16_t parent, const struct current *c)
{
    const struct node *node = &p->expr->nodes[c->node];

    if (c->role == ROLE_CALL && node->op == FUNCTION_SIZE)
        finding_note(p, FOUND_MISUSE, node->ref);
    if (parent != NO_NODE)
        node_attach(p, parent, c->node);
}

/* In front of an operand: read up to and with the next one. */
static bool read_operand(struct parser *p, struct current *c)
{
    bool conditions = p->expr->kind != EXPR_UPDATE;

    for (;;) {
        enum token_kind kind = kind_at(p, p->at);
        bool operand_only = stack_top(p)->operand_only;
        uint16_t path;

        if (conditions && !operand_only && keyword_at(p, p->at) == KEYWORD_NOT) {
            p->operators++;
            stack_push(p, SLOT_NOT, node_new(p, NODE_LOGIC, OP_NOT), false);
            p->at++;
        } else if (kind == TOKEN_OPEN) {
            stack_push(p, SLOT_PAREN, NO_NODE, operand_only);
            p->at++;
        } else if (kind == TOKEN_VALUE) {
            *c = (struct current){parse_value(p), ROLE_OPERAND, false};
            return true;
        } else if (kind == TOKEN_NAME && kind_at(p, p->at + 1) == TOKEN_OPEN) {
            enum function function = hf__expr_function(hf__expr_token_text(p, p->at));
            uint16_t node = node_new(p, NODE_CALL, function);

            p->expr->nodes[node].ref = (uint16_t)p->at; /* for findings; calls have no ref */
            stack_push(p, SLOT_CALL, node, true);
            p->at += 2;
        } else {
            uint16_t node;

            if (!parse_path(p, &path))
                return false;
            node = node_new(p, NODE_PATH, 0);
            p->expr->nodes[node].ref = path;
            *c = (struct current){node, ROLE_OPERAND, false};
            return true;
        }
    }
}

/* Finish NOT, AND and OR that bind at least as tight as `loosest`. */
static void finish_logic(struct parser *p, struct current *c, enum slot loosest)
{
    while (stack_top(p)->slot >= SLOT_NOT && stack_top(p)->slot <= loosest) {
        uint16_t node = stack_top(p)->node;

        attach_condition(p, node, c);
        *c = (struct current){node, ROLE_CONDITION, false};
        p->depth--;
    }
}

static bool is_plain(const struct current *c)
{
    return c->role == ROLE_OPERAND || c->role == ROLE_CALL;
}

static bool is_condition(const struct current *c)
{
    return c->role == ROLE_CONDITION || c->role == ROLE_CALL;
}

enum step_result { STEP_MORE, STEP_OPERAND, STEP_DONE, STEP_ERROR };

/* The operand completes what waits for exactly one more. */
static bool finish_waiting(struct parser *p, struct current *c)
{
    enum slot slot = (enum slot)stack_top(p)->slot;
    uint16_t node = stack_top(p)->node;

    if (slot != SLOT_COMPARE && slot != SLOT_HIGH && slot != SLOT_SUM)
        return false;
    attach_operand(p, node, c);
    *c = (struct current){node, slot == SLOT_SUM ? ROLE_SUM : ROLE_CONDITION, false};
    p->depth--;
    return true;
}

/* Behind an operand of a call, of IN, or behind the lower bound of BETWEEN. */
static enum step_result continue_list(struct parser *p, struct current *c)
{
    uint16_t node = stack_top(p)->node;
    enum slot slot = (enum slot)stack_top(p)->slot;
    enum token_kind kind = kind_at(p, p->at);

    if (slot == SLOT_LOW) {
        if (keyword_at(p, p->at) != KEYWORD_AND)
            return STEP_ERROR;
        attach_operand(p, node, c);
        stack_top(p)->slot = SLOT_HIGH;
        p->at++;
        return STEP_OPERAND;
    }
    if (kind != TOKEN_COMMA && kind != TOKEN_CLOSE)
        return STEP_ERROR;
    attach_operand(p, node, c);
    p->at++;
    if (kind == TOKEN_COMMA)
        return STEP_OPERAND;
    if (slot == SLOT_CALL)
        check_function(p, &p->expr->nodes[node]);
    *c = (struct current){node, slot == SLOT_CALL ? ROLE_CALL : ROLE_CONDITION, false};
    p->depth--;
    return STEP_MORE;
}

static enum step_result close_paren(struct parser *p, struct current *c)
{
    enum slot around = (enum slot)stack_top(p)->slot;

    if (around >= SLOT_NOT && around <= SLOT_OR && !is_condition(c))
        return STEP_ERROR;
    finish_logic(p, c, SLOT_OR);
    if (stack_top(p)->slot != SLOT_PAREN)
        return STEP_ERROR;
    if (c->wrapped)
        finding_note(p, FOUND_PARENTHESES, p->at);
    c->wrapped = true;
    p->depth--;
    p->at++;
    if (p->expr->kind == EXPR_UPDATE || c->role != ROLE_OPERAND ||
        p->expr->nodes[c->node].kind != NODE_PATH || !at_step(p))
        return STEP_MORE;
    c->wrapped = false;
    return extend_path(p) ? STEP_MORE : STEP_ERROR;
}

static enum step_result open_compare(struct parser *p, struct current *c, enum compare op,
                                     enum slot slot)
{
    uint16_t node;

    if (!is_plain(c) || stack_top(p)->operand_only)
        return STEP_ERROR;
    node = node_new(p, NODE_COMPARE, op);
    attach_operand(p, node, c);
    p->operators++;
    p->at++;
    if (slot == SLOT_LIST) {
        if (kind_at(p, p->at) != TOKEN_OPEN)
            return STEP_ERROR;
        p->at++;
    }
    stack_push(p, slot, node, true);
    return STEP_OPERAND;
}

static enum step_result open_logic(struct parser *p, struct current *c, enum logic op)
{
    enum slot slot = op == OP_AND ? SLOT_AND : SLOT_OR;
    uint16_t node;

    if (!is_condition(c) || stack_top(p)->operand_only)
        return STEP_ERROR;
    finish_logic(p, c, slot);
    node = node_new(p, NODE_LOGIC, op);
    attach_condition(p, node, c);
    p->operators++;
    p->at++;
    stack_push(p, slot, node, false);
    return STEP_OPERAND;
}

static enum step_result open_sum(struct parser *p, struct current *c)
{
    uint16_t node;

    if (!is_plain(c) || stack_top(p)->operand_only)
        return STEP_ERROR;
    node = node_new(p, NODE_SUM, kind_at(p, p->at) == TOKEN_PLUS ? OP_PLUS : OP_MINUS);
    attach_operand(p, node, c);
    p->operators++;
    p->at++;
    stack_push(p, SLOT_SUM, node, true);
    return STEP_OPERAND;
}

/* The end of the expression, if nothing is left open. */
static enum step_result finish_all(struct parser *p, struct current *c)
{
    bool update = p->expr->kind == EXPR_UPDATE;

    if (!update && (!is_condition(c) || kind_at(p, p->at) != TOKEN_END))
        return STEP_ERROR;
    if (!update) {
        finish_logic(p, c, SLOT_OR);
        attach_condition(p, NO_NODE, c);
    }
    return stack_top(p)->slot == SLOT_BASE ? STEP_DONE : STEP_ERROR;
}

/* Behind an operand: see what comes. */
static enum step_result operand_step(struct parser *p, struct current *c)
{
    enum token_kind kind = kind_at(p, p->at);
    bool update = p->expr->kind == EXPR_UPDATE;

    if (finish_waiting(p, c))
        return STEP_MORE;
    if (stack_top(p)->slot == SLOT_CALL || stack_top(p)->slot == SLOT_LIST ||
        stack_top(p)->slot == SLOT_LOW)
        return continue_list(p, c);
    if (kind == TOKEN_CLOSE)
        return close_paren(p, c);
    if (update)
        return kind == TOKEN_PLUS || kind == TOKEN_MINUS ? open_sum(p, c) : finish_all(p, c);
    if (kind >= TOKEN_EQ && kind <= TOKEN_GE)
        return open_compare(p, c, (enum compare)(kind - TOKEN_EQ), SLOT_COMPARE);
    switch (keyword_at(p, p->at)) {
    case KEYWORD_BETWEEN:
        return open_compare(p, c, OP_BETWEEN, SLOT_LOW);
    case KEYWORD_IN:
        return open_compare(p, c, OP_IN, SLOT_LIST);
    case KEYWORD_AND:
        return open_logic(p, c, OP_AND);
    case KEYWORD_OR:
        return open_logic(p, c, OP_OR);
    default:
        return finish_all(p, c);
    }
}

static bool parse_operators(struct parser *p, uint16_t *root)
{
    enum step_result result = STEP_OPERAND;
    struct current c = {NO_NODE, ROLE_OPERAND, false};

    p->depth = 0;
    stack_push(p, SLOT_BASE, NO_NODE, false);
    do {
        if (result == STEP_OPERAND && !read_operand(p, &c))
            return false;
        result = operand_step(p, &c);
    } while (result == STEP_MORE || result == STEP_OPERAND);
    if (result == STEP_ERROR)
        return syntax_error(p);
    *root = c.node;
    return true;
}

bool hf__expr_parse_condition(struct parser *p)
{
    return parse_operators(p, &p->expr->root);
}

/* ---- updates -------------------------------------------------------------------------------- */

static bool parse_action(struct parser *p, enum section section)
{
    struct expr *expr = p->expr;
    struct action *action;
    uint16_t path;

    if (!parse_path(p, &path))
        return false;
    action = &expr->actions[expr->actions_len]; /* there is one for every name */
    *action = (struct action){.section = (uint8_t)section,
                              .path = path,
                              .target = (uint16_t)expr->actions_len++,
                              .value = NO_NODE};
    switch (section) {
    case SECTION_SET:
        if (kind_at(p, p->at) != TOKEN_EQ)
            return syntax_error(p);
        p->at++;
        return parse_operators(p, &action->value);
    case SECTION_ADD:
    case SECTION_DELETE:
        if (kind_at(p, p->at) != TOKEN_VALUE)
            return syntax_error(p);
        action->value = parse_value(p);
        return true;
    case SECTION_REMOVE:
        break;
    }
    return true;
}

bool hf__expr_parse_update(struct parser *p)
{
    bool seen[4] = {false};

    do {
        enum keyword keyword = keyword_at(p, p->at);
        enum section section;

        if (keyword < KEYWORD_SET)
            return syntax_error(p);
        section = (enum section)(keyword - KEYWORD_SET);
        if (seen[section])
            finding_note(p, FOUND_SECTION, section);
        seen[section] = true;
        do {
            p->at++; /* the keyword, or the comma */
            if (!parse_action(p, section))
                return false;
        } while (kind_at(p, p->at) == TOKEN_COMMA);
    } while (kind_at(p, p->at) != TOKEN_END);
    return true;
}

/* ---- projections ---------------------------------------------------------------------------- */

bool hf__expr_parse_projection(struct parser *p)
{
    uint16_t path;

    for (;;) {
        if (!parse_path(p, &path))
            return false;
        if (kind_at(p, p->at) == TOKEN_END)
            return true;
        if (kind_at(p, p->at) != TOKEN_COMMA)
            return syntax_error(p);
        p->at++;
    }
}
