/*
 * expr/partiql_statement.c: what a statement says, from its tree: table and index, columns, order,
 * what is returned. The parts that become programs are made in partiql_build.c.
 *
 * Errors are found in this order: not well formed; not supported by DynamoDB; missing parameters;
 * then clause by clause.
 */
#include "expr/partiql_tree.h"

/* ---- FROM ----------------------------------------------------------------------------------- */

static enum hf_status check_source(struct hf_scope *s, const struct pq_statement *tree)
{
    const struct pq_node *source = tree->source;

    if (tree->alias)
        return hf__fail(s, HF_INVALID, "Aliasing is not supported");
    if (tree->sources)
        return hf__fail(s, HF_INVALID, "Only select from a single table or index is supported.");
    if (source->kind != PQ_PATH || source->unpivot)
        return hf__fail(s, HF_INVALID, "Unexpected from source");
    if (source->count > 2)
        return hf__fail(s, HF_INVALID,
                        "A path may contain at most 2 components in the FROM clause");
    for (const struct pq_node *step = source->first; step; step = step->next) {
        if (step->kind != PQ_LITERAL || step->op != PQ_TEXT)
            return hf__fail(s, HF_INVALID, "Invalid list expression in source.");
        if (step->text.len == 0)
            return hf__fail(s, HF_INVALID, "Path component cannot be an empty string");
    }
    return HF_OK;
}

static enum hf_status set_source(struct hf_scope *s, const struct pq_statement *tree,
                                 struct statement *out)
{
    const struct pq_node *source = tree->source;

    TRY(check_source(s, tree));
    out->table = source->first->text;
    if (source->count == 1)
        return HF_OK;
    out->index = source->last->text;
    switch (tree->kind) {
    case STATEMENT_SELECT:
    case STATEMENT_EXISTS:
        return HF_OK;
    case STATEMENT_INSERT:
        return hf__fail(s, HF_INVALID,
                        "FROM clause may only contain a single table name in data manipulation "
                        "statements");
    case STATEMENT_UPDATE:
    case STATEMENT_DELETE:
        break;
    }
    return hf__fail(s, HF_INVALID, "This operation is not supported on an index");
}

/* ---- SELECT and ORDER BY -------------------------------------------------------------------- */

/* The part of a path that names its column: its first names, and the indexes behind them. */
static size_t head_length(const struct expr_path *path)
{
    size_t len = 0;

    while (len < path->len && path->steps[len].name.ptr)
        len++;
    while (len < path->len && !path->steps[len].name.ptr)
        len++;
    return len;
}

/* "k" of m.k, "k[0]" of m.k[0]. */
static struct hf_str column_name(struct hf_scope *s, const struct expr_path *head)
{
    struct hf__buf buf = {.scope = s};
    size_t name = head->len - 1;

    while (!head->steps[name].name.ptr)
        name--;
    if (name == head->len - 1)
        return head->steps[name].name;
    hf__buf_put_str(&buf, head->steps[name].name);
    for (size_t i = name + 1; i < head->len; i++)
        hf__buf_format(&buf, "[%u]", head->steps[i].index);
    return buf.failed ? hf_str_of(NULL, 0) : hf_str_of((const char *)buf.ptr, buf.len);
}

static enum hf_status fail_repeat(struct hf_scope *s, struct hf_str name)
{
    return hf__fail(s, HF_INVALID, "Duplicate identifiers in select clause: %.*s", HF_FMT(name));
}

struct naming {
    const struct expr_column *columns;
};

static int order_names(const void *context, uint16_t a, uint16_t b)
{
    const struct naming *naming = context;
    struct hf_str x = naming->columns[a].name;
    struct hf_str y = naming->columns[b].name;

    return bytes_compare(x.ptr, x.len, y.ptr, y.len);
}

/* Two columns of one name cannot both be shown. */
static enum hf_status check_names(struct hf_scope *s, const struct expr_column *columns, size_t len)
{
    struct naming naming = {columns};
    uint16_t *order = hf_scope_alloc(s, len * sizeof(*order));

    if (!order)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        order[i] = (uint16_t)i;
    hf__expr_sort(order, len, order_names, &naming);
    for (size_t i = 1; i < len; i++)
        if (hf_str_equal(columns[order[i - 1]].name, columns[order[i]].name))
            return fail_repeat(s, columns[order[i]].name);
    return HF_OK;
}

/* Paths with one head are one column; in order they are neighbours. */
static enum hf_status group_columns(struct hf_scope *s, struct expr_bound *bound)
{
    struct expr_column *columns = hf__scope_array(s, bound->listed_len, sizeof(*columns));
    size_t len = 0;

    if (!columns)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < bound->listed_len; i++) {
        const struct expr_path *path = &bound->listed[bound->order[i]];
        struct expr_path head = {path->steps, head_length(path)};

        if (len == 0 || hf__expr_path_compare(&columns[len - 1].head, &head) != 0) {
            columns[len] = (struct expr_column){column_name(s, &head), head, i, i};
            if (!columns[len++].name.ptr)
                return hf__fail_nomem(s);
        }
        columns[len - 1].to = i + 1;
    }
    bound->columns = columns;
    bound->columns_len = len;
    return check_names(s, columns, len);
}

/* The same path twice is reported as a repeated name, not as an overlap. */
static enum hf_status check_repeats(struct hf_scope *s, const struct expr_path *paths, size_t len)
{
    for (size_t i = 1; i < len && len <= EXPR_OPERATORS_MAX; i++)
        for (size_t j = 0; j < i; j++)
            if (hf__expr_path_compare(&paths[i], &paths[j]) == 0) {
                struct expr_path head = {paths[i].steps, head_length(&paths[i])};

                return fail_repeat(s, column_name(s, &head));
            }
    return HF_OK;
}

static enum hf_status set_columns(struct hf_scope *s, const struct pq_statement *tree,
                                  struct statement *out)
{
    struct expr_bound *bound = hf__scope_array(s, 1, sizeof(*bound));
    struct expr *expr = hf__scope_array(s, 1, sizeof(*expr));
    struct hf__buf paths = {.scope = s};

    if (!bound || !expr)
        return hf__fail_nomem(s);
    for (struct pq_column *column = tree->columns; column; column = column->next) {
        if (column->alias)
            return hf__fail(s, HF_INVALID, "Aliasing is not supported");
        if (column->value->kind != PQ_PATH)
            return hf__pq_fail_at(s, column->value->place, "Unexpected path component");
        TRY(hf__pq_resolve_path(s, column->value));
        hf__buf_put(&paths, &column->value->path, sizeof(struct expr_path));
    }
    if (paths.failed)
        return hf__fail_nomem(s);
    expr->kind = EXPR_STATEMENT;
    expr->paths = (struct expr_path *)(void *)paths.ptr;
    expr->paths_len = paths.len / sizeof(struct expr_path);
    bound->expr = expr;
    bound->paths = bound->listed = expr->paths;
    bound->listed_len = expr->paths_len;
    TRY(check_repeats(s, expr->paths, expr->paths_len));
    TRY(hf__expr_order_paths(s, EXPR_STATEMENT, bound));
    TRY(group_columns(s, bound));
    out->columns = bound;
    return HF_OK;
}

static enum hf_status set_order(struct hf_scope *s, const struct pq_statement *tree,
                                struct statement *out)
{
    struct statement_order *list;

    if (!tree->order)
        return HF_OK;
    if (!tree->where)
        return hf__fail(s, HF_INVALID,
                        "Must have WHERE clause in the statement when using ORDER BY clause.");
    list = hf__scope_array(s, tree->order_len, sizeof(*list));
    if (!list)
        return hf__fail_nomem(s);
    for (const struct pq_order *order = tree->order; order; order = order->next) {
        struct hf_str type = order->by->kind == PQ_PATH ? HF_STR("PATH") : order->by->text;

        if (order->by->kind != PQ_PATH || order->by->count != 1 || order->by->unpivot)
            return hf__fail(s, HF_INVALID,
                            "Argument to ORDER BY must be of type VariableReference. Type: %.*s",
                            HF_FMT(type));
        list[out->order_len++] =
            (struct statement_order){order->by->first->text, order->descending};
    }
    out->order = list;
    return HF_OK;
}

/* ---- RETURNING ------------------------------------------------------------------------------ */

static enum hf_status set_returns(struct hf_scope *s, const struct pq_statement *tree,
                                  struct statement *out)
{
    static const char *const names[] = {
        [RETURNS_NONE] = "",
        [RETURNS_ALL_OLD] = "ALL OLD *",
        [RETURNS_MODIFIED_OLD] = "MODIFIED OLD *",
        [RETURNS_ALL_NEW] = "ALL NEW *",
        [RETURNS_MODIFIED_NEW] = "MODIFIED NEW *",
    };

    out->returns = tree->returns;
    if (tree->returns == RETURNS_NONE)
        return HF_OK;
    if (tree->kind == STATEMENT_INSERT)
        return hf__fail(s, HF_INVALID, "RETURNING is not supported in INSERT");
    if (tree->returns_several)
        return hf__fail(s, HF_INVALID,
                        "Invalid syntax with multiple returning elements in RETURNING clause");
    if (tree->returns_column)
        return hf__fail(s, HF_INVALID,
                        "Expected '*' after ( MODIFIED | ALL ) ( NEW | OLD ) in RETURNING clause");
    if (tree->kind == STATEMENT_DELETE && tree->returns != RETURNS_ALL_OLD)
        return hf__fail(s, HF_INVALID,
                        "Invalid returning clause: RETURNING %s. Only RETURNING ALL OLD * is "
                        "allowed in DELETE statements.",
                        names[tree->returns]);
    return HF_OK;
}

/* ---- statements ----------------------------------------------------------------------------- */

static enum hf_status fail_refused(struct hf_scope *s, const struct pq_statement *tree)
{
    if (tree->refused_there)
        return hf__pq_fail_at(s, tree->refused_at, "%s", tree->refused);
    return hf__fail(s, HF_INVALID, "%s", tree->refused);
}

enum hf_status hf__partiql_parse(struct hf_scope *s, struct hf_str text,
                                 const struct hf_value *params, size_t params_len,
                                 struct statement *out)
{
    const struct pq_params values = {params, params_len};
    struct pq_statement tree;

    *out = (struct statement){.params = params, .params_len = params_len};
    TRY(hf__pq_parse(s, text, &tree));
    if (tree.refused)
        return fail_refused(s, &tree);
    if (tree.params > params_len)
        return hf__fail(s, HF_INVALID,
                        "Number of parameters in request and statement don't match.");
    out->kind = tree.kind;
    TRY(set_source(s, &tree, out));
    TRY(set_returns(s, &tree, out));
    if (tree.columns)
        TRY(set_columns(s, &tree, out));
    if (tree.item)
        TRY(hf__pq_item(s, &values, tree.item, &out->item));
    if (tree.actions)
        TRY(hf__pq_update(s, &values, &tree, &out->update));
    if (tree.where)
        TRY(hf__pq_condition(s, &values, tree.where, &out->where));
    out->condition = tree.where;
    return set_order(s, &tree, out);
}

/* The tree has the name without its quotes, but it has the place of the word. */
enum hf_status hf__partiql_table(struct hf_scope *s, struct hf_str text, struct hf_str *word)
{
    struct pq_statement tree;
    struct pq_token *tokens;
    size_t selects = 0;

    *word = hf_str_of(NULL, 0);
    TRY(hf__pq_parse(s, text, &tree));
    if (tree.refused)
        return fail_refused(s, &tree);
    TRY(check_source(s, &tree));
    TRY(hf__pq_lex(s, text, &tokens));
    for (const struct pq_token *token = tokens; token->kind != PQ_END; token++) {
        const struct pq_place *place = &tree.source->first->place;
        struct hf_str piece = hf_str_of(text.ptr + token->at, token->len);

        if (token->line == place->line && token->column == place->column)
            *word = piece;
        selects += token->kind == PQ_KEYWORD && hf__pq_same_word(piece, "select");
    }
    assert(word->ptr);
    if (selects > 1)
        return hf__fail(s, HF_INVALID, "Only select from a single table or index is supported.");
    return HF_OK;
}
