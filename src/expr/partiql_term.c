/*
 * expr/partiql_term.c: from tokens to trees: paths, literals, lists, calls and parentheses. How
 * operators join them is in partiql_operators.c.
 *
 * After a failure the parser sees only the end token, so every loop ends.
 */
#include "expr/partiql_tree.h"

/* ---- tokens --------------------------------------------------------------------------------- */

const struct pq_token *hf__pq_next(struct pq_parser *p)
{
    const struct pq_token *taken = p->token;

    if (taken->kind != PQ_END)
        p->token++;
    return taken;
}

void hf__pq_fail(struct pq_parser *p, const char *detail)
{
    if (p->status == HF_OK)
        p->status = hf__pq_malformed(p->s, detail);
    while (p->token->kind != PQ_END)
        hf__pq_next(p);
}

struct hf_str hf__pq_token_text(const struct pq_parser *p, const struct pq_token *token)
{
    return hf_str_of(p->text.ptr + token->at, token->len);
}

struct pq_place hf__pq_place(const struct pq_parser *p, const struct pq_token *token)
{
    struct pq_place place = {token->line, token->column, 0};

    for (size_t i = 0; i < token->len; i++)
        if (((unsigned char)p->text.ptr[token->at + i] & 0xC0) != 0x80)
            place.len++;
    return place;
}

bool hf__pq_is(const struct pq_parser *p, const char *word)
{
    return p->token->kind == PQ_KEYWORD && hf__pq_same_word(hf__pq_token_text(p, p->token), word);
}

static bool is_sign(const struct pq_parser *p, const struct pq_token *token, const char *sign)
{
    return (token->kind == PQ_OPERATOR || token->kind == PQ_PUNCTUATION) &&
           hf_str_equal(hf__pq_token_text(p, token), hf_str_from(sign));
}

bool hf__pq_at(const struct pq_parser *p, const char *sign)
{
    return is_sign(p, p->token, sign);
}

bool hf__pq_take(struct pq_parser *p, const char *word)
{
    if (!hf__pq_is(p, word))
        return false;
    hf__pq_next(p);
    return true;
}

bool hf__pq_take_sign(struct pq_parser *p, const char *sign)
{
    if (!hf__pq_at(p, sign))
        return false;
    hf__pq_next(p);
    return true;
}

static void expect_sign(struct pq_parser *p, const char *sign, const char *otherwise)
{
    if (!hf__pq_take_sign(p, sign))
        hf__pq_fail(p, otherwise);
}

/* ---- nodes ---------------------------------------------------------------------------------- */

struct pq_node *hf__pq_node(struct pq_parser *p, enum pq_kind kind, struct pq_place place)
{
    struct pq_node *node = hf__scope_array(p->s, 1, sizeof(*node));

    if (!node) {
        if (p->status == HF_OK)
            p->status = hf__fail_nomem(p->s);
        hf__pq_fail(p, "");
        return NULL;
    }
    node->kind = (uint8_t)kind;
    node->place = place;
    p->statement->nodes++;
    return node;
}

void hf__pq_attach(struct pq_node *parent, struct pq_node *child)
{
    if (!parent || !child)
        return;
    assert(!child->next);
    if (parent->last)
        parent->last->next = child;
    else
        parent->first = child;
    parent->last = child;
    parent->count++;
}

/* A node for the token at the cursor, which is taken. */
static struct pq_node *token_node(struct pq_parser *p, enum pq_kind kind)
{
    struct pq_node *node = hf__pq_node(p, kind, hf__pq_place(p, p->token));

    if (node) {
        node->text = hf__pq_token_text(p, p->token);
        hf__pq_next(p);
    }
    return node;
}

/* The text between quotes, where a doubled quote is one. */
static struct hf_str text_unquote(struct pq_parser *p, struct hf_str text)
{
    char quote = text.ptr[0];
    char *out;
    size_t len = 0;

    text = hf_str_of(text.ptr + 1, text.len - 2);
    if (!text.len || !memchr(text.ptr, quote, text.len))
        return text;
    out = hf_scope_alloc(p->s, text.len);
    if (!out) {
        p->status = hf__fail_nomem(p->s);
        hf__pq_fail(p, "");
        return text;
    }
    for (size_t i = 0; i < text.len; i++) {
        out[len++] = text.ptr[i];
        i += text.ptr[i] == quote;
    }
    return hf_str_of(out, len);
}

static struct pq_node *parse_literal(struct pq_parser *p, enum pq_literal kind)
{
    struct pq_node *node = token_node(p, PQ_LITERAL);

    if (node) {
        node->op = (uint8_t)kind;
        if (kind == PQ_TEXT)
            node->text = text_unquote(p, node->text);
    }
    return node;
}

/* DynamoDB's words for a token that cannot begin an expression. */
static struct pq_node *fail_unexpected(struct pq_parser *p)
{
    static const char *const operators[] = {"is", "like", "in", "between", "and", "or"};
    bool keyword = p->token->kind == PQ_KEYWORD;

    for (size_t i = 0; keyword && i < ARRAY_LEN(operators); i++)
        if (hf__pq_is(p, operators[i])) {
            hf__pq_fail(p, "Unexpected operator");
            return NULL;
        }
    hf__pq_fail(p, keyword                         ? "Unexpected keyword"
                   : p->token->kind == PQ_OPERATOR ? "Unexpected operator"
                                                   : "Unexpected term");
    return NULL;
}

bool hf__pq_enter(struct pq_parser *p)
{
    if (++p->depth <= PQ_DEPTH_MAX)
        return true;
    if (p->status == HF_OK)
        p->status = hf__fail(p->s, HF_INVALID, "Nesting Levels have exceeded supported limits");
    hf__pq_fail(p, "");
    return false;
}

/* ---- paths, lists, calls -------------------------------------------------------------------- */

/* The first name of a path becomes its first operand, so that all steps look the same. */
static struct pq_node *path_start(struct pq_parser *p)
{
    struct pq_node *path = hf__pq_node(p, PQ_PATH, hf__pq_place(p, p->token));
    struct pq_node *name;

    if (p->token->kind == PQ_QUOTED) {
        name = parse_literal(p, PQ_TEXT);
    } else {
        name = token_node(p, PQ_LITERAL);
        if (name)
            name->op = PQ_TEXT;
    }
    hf__pq_attach(path, name);
    return p->status == HF_OK ? path : NULL;
}

static void dot_step(struct pq_parser *p, struct pq_node *path)
{
    if (hf__pq_take_sign(p, "*")) {
        path->unpivot = true;
    } else if (p->token->kind == PQ_NAME || p->token->kind == PQ_QUOTED) {
        struct pq_node *name =
            p->token->kind == PQ_QUOTED ? parse_literal(p, PQ_TEXT) : token_node(p, PQ_LITERAL);

        hf__pq_attach(path, name);
    } else {
        hf__pq_fail(p, "Invalid path dot component");
    }
}

static void index_step(struct pq_parser *p, struct pq_node *path)
{
    if (hf__pq_take_sign(p, "*")) {
        path->unpivot = true;
    } else {
        hf__pq_attach(path, hf__pq_expression(p));
    }
    expect_sign(p, "]", "Expected token of type ]");
}

static struct pq_node *path_steps(struct pq_parser *p, struct pq_node *path)
{
    while (path && p->status == HF_OK) {
        if (hf__pq_take_sign(p, "."))
            dot_step(p, path);
        else if (hf__pq_take_sign(p, "["))
            index_step(p, path);
        else
            break;
    }
    return p->status == HF_OK ? path : NULL;
}

struct pq_node *hf__pq_path(struct pq_parser *p, const char *otherwise)
{
    if (p->token->kind != PQ_NAME && p->token->kind != PQ_QUOTED) {
        hf__pq_fail(p, otherwise);
        return NULL;
    }
    return path_steps(p, path_start(p));
}

/* Operands up to `close`, commas between them. */
static struct pq_node *parse_operands(struct pq_parser *p, struct pq_node *parent,
                                      const char *close)
{
    if (hf__pq_take_sign(p, close))
        return parent;
    do
        hf__pq_attach(parent, hf__pq_expression(p));
    while (hf__pq_take_sign(p, ","));
    if (p->status == HF_OK && !hf__pq_take_sign(p, close))
        hf__pq_fail(p, "Expected a comma or the end of the list");
    return p->status == HF_OK ? parent : NULL;
}

static struct pq_node *parse_tuple(struct pq_parser *p)
{
    struct pq_node *node = token_node(p, PQ_TUPLE);

    if (hf__pq_take_sign(p, "}"))
        return node;
    do {
        hf__pq_attach(node, hf__pq_expression(p));
        expect_sign(p, ":", "Expected COLON");
        hf__pq_attach(node, hf__pq_expression(p));
    } while (hf__pq_take_sign(p, ","));
    if (p->status == HF_OK && !hf__pq_take_sign(p, "}"))
        hf__pq_fail(p, "Expected a comma or the end of the struct");
    return p->status == HF_OK ? node : NULL;
}

static struct pq_node *parse_call(struct pq_parser *p)
{
    struct pq_node *node = token_node(p, PQ_CALL);

    hf__pq_next(p); /* the parenthesis */
    if (hf__pq_at(p, "*") && is_sign(p, p->token + 1, ")")) {
        hf__pq_attach(node, token_node(p, PQ_STAR));
        hf__pq_next(p);
        return p->status == HF_OK ? node : NULL;
    }
    return parse_operands(p, node, ")");
}

/* (a), (a, b), (SELECT ...). */
static struct pq_node *parse_parentheses(struct pq_parser *p)
{
    struct pq_place place = hf__pq_place(p, hf__pq_next(p));
    struct pq_node *node = hf__pq_expression(p);
    struct pq_node *list;

    if (hf__pq_at(p, ",")) {
        list = hf__pq_node(p, PQ_LIST, place);
        hf__pq_attach(list, node);
        hf__pq_next(p);
        node = parse_operands(p, list, ")");
    } else {
        expect_sign(p, ")", "Expected token of type )");
    }
    if (p->status != HF_OK)
        return NULL;
    node->parens = true;
    return node;
}

static struct pq_node *parse_subselect(struct pq_parser *p)
{
    struct pq_node *node = hf__pq_node(p, PQ_SUBSELECT, hf__pq_place(p, p->token));
    struct pq_statement ignored = {.kind = STATEMENT_SELECT};

    if (node)
        node->text = HF_STR("SELECT");
    hf__pq_next(p);
    hf__pq_select(p, &ignored);
    return p->status == HF_OK ? node : NULL;
}

/* Keywords that name functions when a parenthesis follows. */
static bool names_function(const struct pq_parser *p)
{
    static const char *const names[] = {"size",   "exists",      "avg",       "count",
                                        "max",    "min",         "sum",       "upper",
                                        "lower",  "trim",        "substring", "coalesce",
                                        "nullif", "extract",     "date_add",  "cast",
                                        "values", "char_length", "date_diff", "octet_length"};

    if (!is_sign(p, p->token + 1, "("))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (hf__pq_is(p, names[i]))
            return true;
    return false;
}

static struct pq_node *keyword_term(struct pq_parser *p)
{
    if (hf__pq_is(p, "null"))
        return parse_literal(p, PQ_NULL);
    if (hf__pq_is(p, "true"))
        return parse_literal(p, PQ_TRUE);
    if (hf__pq_is(p, "false"))
        return parse_literal(p, PQ_FALSE);
    if (hf__pq_is(p, "missing"))
        return parse_literal(p, PQ_MISSING);
    if (names_function(p))
        return parse_call(p);
    if (hf__pq_is(p, "select"))
        return parse_subselect(p);
    if (hf__pq_is(p, "from")) { /* of an UPDATE that begins with FROM: not within another one */
        hf__pq_fail(p, "Expected data manipulation");
        return NULL;
    }
    return fail_unexpected(p);
}

static struct pq_node *parse_parameter(struct pq_parser *p)
{
    struct pq_node *node = token_node(p, PQ_PARAMETER);

    if (node)
        node->ref = (uint16_t)p->statement->params++;
    return node;
}

struct pq_node *hf__pq_term(struct pq_parser *p)
{
    switch ((enum pq_token_kind)p->token->kind) {
    case PQ_NAME:
        if (is_sign(p, p->token + 1, "("))
            return parse_call(p);
        return path_steps(p, path_start(p));
    case PQ_QUOTED:
        return path_steps(p, path_start(p));
    case PQ_STRING:
        return parse_literal(p, PQ_TEXT);
    case PQ_NUMBER:
        return parse_literal(p, PQ_NUMERIC);
    case PQ_ION:
        return parse_literal(p, PQ_ION_TEXT);
    case PQ_QUESTION:
        return parse_parameter(p);
    case PQ_KEYWORD:
        return keyword_term(p);
    default:
        break;
    }
    if (hf__pq_at(p, "("))
        return parse_parentheses(p);
    if (hf__pq_at(p, "["))
        return parse_operands(p, token_node(p, PQ_LIST), "]");
    if (hf__pq_at(p, "<<"))
        return parse_operands(p, token_node(p, PQ_BAG), ">>");
    if (hf__pq_at(p, "{"))
        return parse_tuple(p);
    return fail_unexpected(p);
}
