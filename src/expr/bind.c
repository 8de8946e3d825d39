/*
 * expr/bind.c: a program meets the names and values of a request.
 *
 * The program lists its placeholders in the order in which the request's items have them, so one
 * walk over each item finds them all. What is undefined is found afterwards, by the checks, which
 * go in reading order and report the first problem as DynamoDB does:
 *
 *     conditions    leaf by leaf: undefined names and values, number of operands, repeated paths,
 *                   types of operands (check.c)
 *     updates       undefined names, undefined values, overlaps, conflicts, types of ADD and
 *                   DELETE, functions and sums (check.c)
 *     projections   undefined names, overlaps, conflicts
 */
#include "expr/private.h"

/* ---- the maps of a request ------------------------------------------------------------------ */

static bool is_placeholder(struct hf_str key, char sign)
{
    if (key.len < 2 || key.ptr[0] != sign)
        return false;
    for (size_t i = 1; i < key.len; i++) {
        unsigned char c = (unsigned char)key.ptr[i];
        unsigned char lower = c | 0x20;

        if (!(c >= '0' && c <= '9') && !(lower >= 'a' && lower <= 'z') && c != '_')
            return false;
    }
    return true;
}

static enum hf_status check_map(struct hf_scope *s, struct hf_item map, const char *what, char sign)
{
    struct hf_item_walk walk = {0};

    if (!map.ptr)
        return HF_OK;
    TRY(hf_item_check(s, map));
    if (hf_item_count(map) == 0)
        return hf__fail(s, HF_INVALID, TEXT_MAP_EMPTY, what);
    while (hf_item_next(map, &walk))
        if (!is_placeholder(walk.name, sign))
            return hf__fail(s, HF_INVALID, TEXT_MAP_KEY, what, HF_FMT(walk.name));
    return HF_OK;
}

static enum hf_status check_names(struct hf_scope *s, struct hf_item names)
{
    struct hf_item_walk walk = {0};

    while (hf_item_next(names, &walk)) {
        struct hf_str name = hf_value_str(walk.value);

        if (name.len == 0)
            return hf__fail(s, HF_INVALID, TEXT_NAME_EMPTY, HF_FMT(walk.name));
        if (name.len > ATTR_NAME_MAX)
            return hf__fail(s, HF_INVALID, TEXT_NAME_LONG, HF_FMT(walk.name));
    }
    return HF_OK;
}

static const char names_map[] = "ExpressionAttributeNames";
static const char values_map[] = "ExpressionAttributeValues";

enum hf_status hf__expr_params(struct hf_scope *s, struct hf_item names, struct hf_item values,
                               struct expr_params *params)
{
    size_t names_len;
    size_t values_len;
    uint8_t *used;

    *params = (struct expr_params){.names = names, .values = values};
    TRY(check_map(s, names, names_map, '#'));
    TRY(check_names(s, names));
    TRY(check_map(s, values, values_map, ':'));
    names_len = hf_item_count(names);
    values_len = hf_item_count(values);
    used = hf__scope_array(s, names_len + values_len, 1);
    if (!used)
        return hf__fail_nomem(s);
    params->names_used = used;
    params->values_used = used + names_len;
    return HF_OK;
}

static enum hf_status check_used(struct hf_scope *s, struct hf_item map, const uint8_t *used,
                                 const char *what)
{
    struct hf__buf keys = {.scope = s};
    struct hf_item_walk walk = {0};

    for (size_t i = 0; hf_item_next(map, &walk); i++) {
        if (used[i])
            continue;
        if (keys.len > 0)
            hf__buf_put_str(&keys, HF_STR(", "));
        hf__buf_put_str(&keys, walk.name);
    }
    if (keys.failed)
        return hf__fail_nomem(s);
    if (keys.len == 0)
        return HF_OK;
    return hf__fail(s, HF_INVALID, TEXT_UNUSED, what, (int)keys.len, (const char *)keys.ptr);
}

enum hf_status hf__expr_unused(struct hf_scope *s, const struct expr_params *params)
{
    TRY(check_used(s, params->names, params->names_used, names_map));
    return check_used(s, params->values, params->values_used, values_map);
}

/* ---- placeholders --------------------------------------------------------------------------- */

/* Find what `list` names, both in order; what is not there stays absent. */
static void find_all(struct hf_item map, const struct hf_str *list, size_t len, uint8_t *used,
                     struct hf_value *found)
{
    struct hf_item_walk walk = {0};
    size_t member = 0;
    bool more = hf_item_next(map, &walk);

    for (size_t i = 0; i < len; i++) {
        int order = -1;

        found[i] = (struct hf_value){NULL, 0};
        while (more) {
            order = bytes_compare(list[i].ptr, list[i].len, walk.name.ptr, walk.name.len);
            if (order <= 0)
                break;
            more = hf_item_next(map, &walk);
            member++;
        }
        if (more && order == 0) {
            found[i] = walk.value;
            used[member] = 1;
        }
    }
}

/* Names in place of aliases; an undefined one keeps its "#n", which the checks then report. */
static void put_names(const struct expr *expr, const struct hf_value *names,
                      struct expr_path *paths, struct expr_step *steps)
{
    for (size_t i = 0; i < expr->steps_len; i++) {
        steps[i] = expr->steps[i];
        if (expr->step_aliases[i] && names[expr->step_aliases[i] - 1].ptr)
            steps[i].name = hf_value_str(names[expr->step_aliases[i] - 1]);
    }
    for (size_t i = 0; i < expr->paths_len; i++)
        paths[i] =
            (struct expr_path){steps + (expr->paths[i].steps - expr->steps), expr->paths[i].len};
}

static struct expr_bound *bound_new(struct hf_scope *s, const struct expr *expr,
                                    struct expr_params *params)
{
    bool rename = expr->aliases_len > 0;
    size_t paths = rename ? expr->paths_len : 0;
    size_t steps = rename ? expr->steps_len : 0;
    size_t size = sizeof(struct expr_bound) +
                  (expr->values_len + expr->aliases_len) * sizeof(struct hf_value) +
                  paths * sizeof(struct expr_path) + steps * sizeof(struct expr_step);
    struct expr_bound *bound = hf_scope_alloc(s, size);
    struct hf_value *values;
    struct hf_value *names;

    if (!bound)
        return NULL;
    values = (struct hf_value *)(void *)(bound + 1);
    names = values + expr->values_len;
    *bound = (struct expr_bound){.expr = expr, .paths = expr->paths, .values = values};
    find_all(params->values, expr->values, expr->values_len, params->values_used, values);
    if (rename) {
        struct expr_path *renamed = (struct expr_path *)(void *)(names + expr->aliases_len);

        find_all(params->names, expr->aliases, expr->aliases_len, params->names_used, names);
        put_names(expr, names, renamed, (struct expr_step *)(void *)(renamed + paths));
        assert((uint8_t *)(renamed + paths) + steps * sizeof(struct expr_step) ==
               (uint8_t *)bound + size);
        bound->paths = renamed;
    }
    return bound;
}

/* ---- lists of paths ------------------------------------------------------------------------- */

static enum hf_status list_paths(struct hf_scope *s, struct expr_bound *bound)
{
    const struct expr *expr = bound->expr;

    if (expr->kind == EXPR_PROJECTION) {
        bound->listed = bound->paths;
        bound->listed_len = expr->paths_len;
    } else {
        struct expr_path *targets = hf_scope_alloc(s, expr->actions_len * sizeof(*targets));

        if (!targets)
            return hf__fail_nomem(s);
        for (size_t i = 0; i < expr->actions_len; i++)
            targets[i] = bound->paths[expr->actions[i].path];
        bound->listed = targets;
        bound->listed_len = expr->actions_len;
    }
    return HF_OK;
}

enum hf_status hf__expr_check_names(struct hf_scope *s, const struct expr_bound *bound, size_t path)
{
    const struct expr *expr = bound->expr;
    size_t first = (size_t)(expr->paths[path].steps - expr->steps);

    if (bound->paths == expr->paths)
        return HF_OK;
    for (size_t i = 0; i < expr->paths[path].len; i++)
        if (expr->step_aliases[first + i] &&
            bound->paths[path].steps[i].name.ptr == expr->steps[first + i].name.ptr)
            return hf__expr_fail(s, expr->kind, TEXT_NAME_UNDEFINED,
                                 HF_FMT(expr->steps[first + i].name));
    return HF_OK;
}

static enum hf_status check_all_names(struct hf_scope *s, const struct expr_bound *bound)
{
    for (size_t i = 0; i < bound->expr->paths_len; i++)
        TRY(hf__expr_check_names(s, bound, i));
    return HF_OK;
}

static enum hf_status check_all_values(struct hf_scope *s, const struct expr_bound *bound)
{
    const struct expr *expr = bound->expr;

    for (size_t i = 0; i < expr->nodes_len; i++)
        if (expr->nodes[i].kind == NODE_VALUE && !bound->values[expr->nodes[i].ref].ptr)
            return hf__expr_fail(s, expr->kind, TEXT_VALUE_UNDEFINED,
                                 HF_FMT(expr->values[expr->nodes[i].ref]));
    return HF_OK;
}

/* ---- binding -------------------------------------------------------------------------------- */

enum hf_status hf__expr_bind(struct hf_scope *s, const struct expr *expr,
                             struct expr_params *params, struct expr_bound **bound)
{
    struct expr_bound *made = bound_new(s, expr, params);

    *bound = NULL;
    if (!made)
        return hf__fail_nomem(s);
    switch (expr->kind) {
    case EXPR_CONDITION:
    case EXPR_FILTER:
        TRY(hf__expr_check_condition(s, made));
        break;
    case EXPR_KEY_CONDITION:
        TRY(hf__expr_check_condition(s, made));
        TRY(hf__expr_key_extract(s, made));
        break;
    case EXPR_PROJECTION:
    case EXPR_UPDATE:
        TRY(check_all_names(s, made));
        TRY(check_all_values(s, made));
        TRY(list_paths(s, made));
        TRY(hf__expr_order_paths(s, expr->kind, made));
        if (expr->kind == EXPR_UPDATE)
            TRY(hf__expr_check_update(s, made));
        break;
    case EXPR_STATEMENT: /* is bound as it is made */
        assert(expr->kind != EXPR_STATEMENT);
        break;
    }
    *bound = made;
    return HF_OK;
}

void hf__expr_paths(const struct expr_bound *bound, const struct expr_path **paths, size_t *len)
{
    *paths = bound->paths;
    *len = bound->expr->paths_len;
}

void hf__expr_targets(const struct expr_bound *bound, const struct expr_path **paths, size_t *len)
{
    *paths = bound->listed;
    *len = bound->listed_len;
}
