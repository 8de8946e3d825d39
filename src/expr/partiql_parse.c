/*
 * expr/partiql_parse.c: from tokens to statements as they are written.
 *
 *     SELECT * | path, ... FROM table[.index] [WHERE ...] [ORDER BY name [ASC|DESC], ...]
 *     INSERT INTO table VALUE {...}
 *     UPDATE table SET path = value, ... | REMOVE path ... [WHERE ...] [RETURNING ...]
 *     FROM table [WHERE ...] SET ... | REMOVE ... [RETURNING ...]
 *     DELETE FROM table [WHERE ...] [RETURNING ...]
 *     EXISTS(SELECT ...)
 *
 * Clauses of PartiQL that DynamoDB does not support (GROUP BY, LIMIT, DISTINCT ...) are read and
 * remembered: their errors are not those of a statement that is not well formed.
 */
#include "expr/partiql_tree.h"

enum hf_status hf__pq_malformed(struct hf_scope *s, const char *detail)
{
    return hf__fail(s, HF_INVALID, "Statement wasn't well formed, can't be processed: %s", detail);
}

/* Only the first reason to refuse counts. */
static void statement_refuse(struct pq_statement *out, const char *why)
{
    if (!out->refused)
        out->refused = why;
}

static void statement_refuse_at(struct pq_statement *out, const char *why,
                                const struct pq_node *node)
{
    if (!out->refused && node) {
        out->refused = why;
        out->refused_there = true;
        out->refused_at = node->place;
    }
}

/* ---- clauses -------------------------------------------------------------------------------- */

static void where_clause(struct pq_parser *p, struct pq_statement *out)
{
    if (hf__pq_take(p, "where"))
        out->where = hf__pq_expression(p);
}

/* A name behind a table or a column, with or without AS. */
static bool parse_alias(struct pq_parser *p)
{
    if (hf__pq_take(p, "as")) {
        if (p->token->kind != PQ_NAME && p->token->kind != PQ_QUOTED)
            hf__pq_fail(p, "Expected identifier for AS-alias");
        else
            hf__pq_next(p);
        return true;
    }
    if (p->token->kind != PQ_NAME && p->token->kind != PQ_QUOTED)
        return false;
    hf__pq_next(p);
    return true;
}

static void select_list(struct pq_parser *p, struct pq_statement *out)
{
    struct pq_column **end = &out->columns;

    if (hf__pq_take_sign(p, "*")) {
        out->all = true;
        return;
    }
    do {
        struct pq_column *column = hf__scope_array(p->s, 1, sizeof(*column));

        if (!column) {
            p->status = hf__fail_nomem(p->s);
            hf__pq_fail(p, "");
            return;
        }
        column->value = hf__pq_expression(p);
        if (p->status == HF_OK)
            column->alias = parse_alias(p);
        *end = column;
        end = &column->next;
    } while (hf__pq_take_sign(p, ","));
}

static void order_clause(struct pq_parser *p, struct pq_statement *out)
{
    struct pq_order **end = &out->order;

    if (!hf__pq_take(p, "order"))
        return;
    if (!hf__pq_take(p, "by"))
        hf__pq_fail(p, "Expected ORDER BY");
    while (p->status == HF_OK) {
        struct pq_order *order = hf__scope_array(p->s, 1, sizeof(*order));

        if (!order) {
            p->status = hf__fail_nomem(p->s);
            hf__pq_fail(p, "");
            return;
        }
        order->by = hf__pq_expression(p);
        order->descending = hf__pq_take(p, "desc");
        if (!order->descending)
            hf__pq_take(p, "asc");
        *end = order;
        end = &order->next;
        out->order_len++;
        if (!hf__pq_take_sign(p, ","))
            break;
    }
}

static void other_clauses(struct pq_parser *p, struct pq_statement *out)
{
    if (hf__pq_take(p, "group")) {
        if (!hf__pq_take(p, "by"))
            hf__pq_fail(p, "Expected GROUP BY");
        do
            hf__pq_expression(p);
        while (hf__pq_take_sign(p, ","));
        statement_refuse(out, "Unsupported clause: GROUP BY");
    }
    if (hf__pq_take(p, "having"))
        statement_refuse_at(out, "Unsupported clause: HAVING", hf__pq_expression(p));
    order_clause(p, out);
    if (hf__pq_take(p, "limit"))
        statement_refuse_at(out, "Unsupported clause: LIMIT", hf__pq_expression(p));
}

/* Behind the word SELECT. */
void hf__pq_select(struct pq_parser *p, struct pq_statement *out)
{
    if (hf__pq_take(p, "distinct"))
        statement_refuse(out, "Unsupported token in expression: DISTINCT");
    else
        hf__pq_take(p, "all");
    if (hf__pq_take(p, "value")) {
        statement_refuse(out, "Select projection doesn't support value or pivot keywords");
        hf__pq_expression(p);
    } else {
        select_list(p, out);
    }
    if (p->status == HF_OK && !hf__pq_take(p, "from"))
        hf__pq_fail(p, "Expected FROM after SELECT list");
    out->source = hf__pq_expression(p);
    if (p->status == HF_OK)
        out->alias = parse_alias(p);
    while (hf__pq_take_sign(p, ",")) {
        out->sources = true;
        hf__pq_expression(p);
        parse_alias(p);
    }
    where_clause(p, out);
    other_clauses(p, out);
}

/* ---- changes -------------------------------------------------------------------------------- */

static void add_action(struct pq_parser *p, struct pq_statement *out, struct pq_action ***end,
                       enum pq_change change)
{
    struct pq_action *action = hf__scope_array(p->s, 1, sizeof(*action));

    if (!action) {
        p->status = hf__fail_nomem(p->s);
        hf__pq_fail(p, "");
        return;
    }
    action->change = change;
    action->target = hf__pq_path(p, "Expected identifier for simple path");
    if (change == PQ_SET && p->status == HF_OK) {
        if (!hf__pq_take_sign(p, "="))
            hf__pq_fail(p, "Expected '=' in assignment");
        else
            action->value = hf__pq_expression(p);
    }
    **end = action;
    *end = &action->next;
    out->actions_len++;
}

/* SET a = 1, b = 2 REMOVE c SET d = 3. */
static void parse_actions(struct pq_parser *p, struct pq_statement *out)
{
    struct pq_action **end = &out->actions;

    while (p->status == HF_OK) {
        if (hf__pq_take(p, "set")) {
            do
                add_action(p, out, &end, PQ_SET);
            while (hf__pq_take_sign(p, ","));
        } else if (hf__pq_take(p, "remove")) {
            add_action(p, out, &end, PQ_REMOVE);
        } else {
            break;
        }
    }
    if (p->status == HF_OK && !out->actions)
        hf__pq_fail(p, "Expected data manipulation");
}

/* RETURNING (ALL | MODIFIED) (OLD | NEW) *. */
static void returning_clause(struct pq_parser *p, struct pq_statement *out)
{
    bool all;
    bool old;

    if (!hf__pq_take(p, "returning"))
        return;
    do {
        all = hf__pq_take(p, "all");
        if (!all && !hf__pq_take(p, "modified"))
            hf__pq_fail(p, "Expected ALL or MODIFIED in a returning clause.");
        old = hf__pq_take(p, "old");
        if (p->status == HF_OK && !old && !hf__pq_take(p, "new"))
            hf__pq_fail(p, "Expected OLD or NEW in a returning clause.");
        if (p->status != HF_OK)
            return;
        out->returns_several = out->returns != RETURNS_NONE;
        out->returns = all ? (old ? RETURNS_ALL_OLD : RETURNS_ALL_NEW)
                           : (old ? RETURNS_MODIFIED_OLD : RETURNS_MODIFIED_NEW);
        if (!hf__pq_take_sign(p, "*")) {
            out->returns_column = true;
            hf__pq_expression(p);
        }
    } while (hf__pq_take_sign(p, ","));
}

/* ---- statements ----------------------------------------------------------------------------- */

static void table_name(struct pq_parser *p, struct pq_statement *out)
{
    out->source = hf__pq_path(p, "Expected identifier for simple path");
}

static void parse_insert(struct pq_parser *p, struct pq_statement *out)
{
    out->kind = STATEMENT_INSERT;
    if (!hf__pq_take(p, "into"))
        hf__pq_fail(p, "Expected INTO");
    table_name(p, out);
    if (p->status != HF_OK)
        return;
    if (!hf__pq_take(p, "value"))
        statement_refuse(out, "Unsupported operation: InsertOp");
    out->item = hf__pq_expression(p);
    returning_clause(p, out);
}

static void parse_update(struct pq_parser *p, struct pq_statement *out)
{
    out->kind = STATEMENT_UPDATE;
    table_name(p, out);
    if (p->status != HF_OK)
        return;
    out->alias = parse_alias(p);
    parse_actions(p, out);
    where_clause(p, out);
    returning_clause(p, out);
}

static void update_from(struct pq_parser *p, struct pq_statement *out)
{
    out->kind = STATEMENT_UPDATE;
    out->source = hf__pq_expression(p);
    if (p->status != HF_OK)
        return;
    out->alias = parse_alias(p);
    where_clause(p, out);
    parse_actions(p, out);
    returning_clause(p, out);
}

static void delete (struct pq_parser *p, struct pq_statement *out)
{
    out->kind = STATEMENT_DELETE;
    if (!hf__pq_take(p, "from"))
        hf__pq_fail(p, "Expected FROM");
    table_name(p, out);
    if (p->status != HF_OK)
        return;
    out->alias = parse_alias(p);
    where_clause(p, out);
    returning_clause(p, out);
}

static bool at_exists(const struct pq_parser *p)
{
    struct pq_parser behind = *p;

    behind.token += 1;
    if (!hf__pq_is(p, "exists") || !hf__pq_at(&behind, "("))
        return false;
    behind.token++;
    return hf__pq_is(&behind, "select");
}

static void parse_exists(struct pq_parser *p, struct pq_statement *out)
{
    for (int i = 0; i < 3; i++)
        hf__pq_next(p);
    hf__pq_select(p, out);
    out->kind = STATEMENT_EXISTS;
    if (p->status == HF_OK && !hf__pq_take_sign(p, ")"))
        hf__pq_fail(p, "Expected token of type )");
}

/* An expression is no statement; the error names its kind. */
static void parse_expression(struct pq_parser *p, struct pq_statement *out)
{
    static const char *const names[] = {
        [PQ_PATH] = "Unsupported operation: VariableReference",
        [PQ_LITERAL] = "Unsupported operation: Literal",
        [PQ_PARAMETER] = "Unsupported operation: Parameter",
        [PQ_LIST] = "Unsupported operation: Seq",
        [PQ_BAG] = "Unsupported operation: Seq",
        [PQ_TUPLE] = "Unsupported operation: Struct",
        [PQ_CALL] = "Unsupported operation: NAry",
        [PQ_STAR] = "Unsupported operation: NAry",
        [PQ_UNARY] = "Unsupported operation: NAry",
        [PQ_BINARY] = "Unsupported operation: NAry",
        [PQ_BETWEEN] = "Unsupported operation: NAry",
        [PQ_IN] = "Unsupported operation: NAry",
        [PQ_IS] = "Unsupported operation: IsType",
        [PQ_NOT] = "Unsupported operation: NAry",
        [PQ_AND] = "Unsupported operation: NAry",
        [PQ_OR] = "Unsupported operation: NAry",
        [PQ_SUBSELECT] = "Unsupported operation: Select",
    };
    struct pq_node *node = hf__pq_expression(p);

    if (!node)
        return;
    statement_refuse(out, node->kind == PQ_PATH && node->count > 1 ? "Unsupported operation: Path"
                                                                   : names[node->kind]);
}

/* CREATE TABLE, DROP INDEX and so on have operations of their own. */
static bool parse_definition(struct pq_parser *p, struct pq_statement *out)
{
    bool create = hf__pq_take(p, "create");

    if (!create && !hf__pq_take(p, "drop"))
        return false;
    if (hf__pq_take(p, "table"))
        statement_refuse(out, create ? "Unsupported operation: CreateTable"
                                     : "Unsupported operation: DropTable");
    else if (hf__pq_take(p, "index"))
        statement_refuse(out, create ? "Unsupported operation: CreateIndex"
                                     : "Unsupported operation: DropIndex");
    else
        hf__pq_fail(p, "Unexpected token following CREATE or DROP");
    while (p->token->kind != PQ_END)
        hf__pq_next(p);
    return true;
}

enum hf_status hf__pq_parse(struct hf_scope *s, struct hf_str text, struct pq_statement *out)
{
    struct pq_parser p = {.s = s, .text = text, .statement = out};
    struct pq_token *tokens;

    *out = (struct pq_statement){.kind = STATEMENT_SELECT};
    TRY(hf__pq_lex(s, text, &tokens));
    p.token = tokens;
    if (hf__pq_take(&p, "select"))
        hf__pq_select(&p, out);
    else if (hf__pq_take(&p, "insert"))
        parse_insert(&p, out);
    else if (hf__pq_take(&p, "update"))
        parse_update(&p, out);
    else if (hf__pq_take(&p, "delete"))
        delete (&p, out);
    else if (hf__pq_take(&p, "from"))
        update_from(&p, out);
    else if (at_exists(&p))
        parse_exists(&p, out);
    else if (!parse_definition(&p, out))
        parse_expression(&p, out);
    hf__pq_take_sign(&p, ";");
    if (p.status == HF_OK && p.token->kind != PQ_END)
        hf__pq_fail(&p, "Unexpected token after expression");
    return p.status;
}
