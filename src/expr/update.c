/*
 * expr/update.c: the item after an update.
 *
 * Two steps. First every action is worked out against the old item, or the key alone when there is
 * none: then right sides can read the key attributes. That goes in reading order and gives an action
 * its outcome: put a value, drop what is there, or nothing. Then the new item is written in one
 * walk over the old one and the targets in their order (struct share); what no target goes through
 * is copied in runs.
 *
 * What always holds:
 *
 *  (1) Right sides see the old item alone, never another action's outcome.
 *  (2) A target that is worked out without an error has its parent: the second step cannot fail,
 *      except for memory.
 *  (3) Indexes are those of the old list. Values put behind its end are appended in index order.
 *  (4) No set becomes empty: its attribute is dropped instead.
 */
#include "expr/private.h"

enum { UPDATED_MAX = 16 * ITEM_SIZE_MAX }; /* bytes that an update may come to, put together */

enum outcome { NOTHING, PUT, DROP };

struct change {
    enum outcome outcome;
    struct hf_value value;
};

struct updating {
    struct hf_scope *s;
    const struct expr_bound *bound;
    struct hf_item old;         /* or the key, when there was no item */
    bool created;               /* there was none */
    struct change *changes;     /* per action */
    struct expr_finder *finder; /* NULL: the update is small */
};

/* ---- values --------------------------------------------------------------------------------- */

static enum hf_status finish_value(struct updating *u, struct hf__buf *buf, struct hf_value *out)
{
    if (buf->failed)
        return hf__fail_nomem(u->s);
    *out = hf__build_value_from(buf, 0);
    return HF_OK;
}

static enum hf_status append_lists(struct updating *u, struct hf_value a, struct hf_value b,
                                   struct hf_value *out)
{
    struct hf__buf buf = {.scope = u->s};
    size_t open;

    hf__buf_reserve(&buf, a.len + b.len);
    open = hf__build_open(&buf, HF_TYPE_L);
    hf__buf_put(&buf, a.ptr + VALUE_HEAD, a.len - VALUE_HEAD);
    hf__buf_put(&buf, b.ptr + VALUE_HEAD, b.len - VALUE_HEAD);
    hf__build_close(&buf, open);
    return finish_value(u, &buf, out);
}

static enum hf_status sum_numbers(struct updating *u, enum sum op, struct hf_value a,
                                  struct hf_value b, struct hf_value *out)
{
    struct hf_bytes x = hf__value_scalar(a);
    struct hf_bytes y = hf__value_scalar(b);
    struct hf__buf buf = {.scope = u->s};
    struct number number;
    enum number_error error;

    error = op == OP_PLUS ? hf__number_add(x.ptr, x.len, y.ptr, y.len, &number)
                          : hf__number_subtract(x.ptr, x.len, y.ptr, y.len, &number);
    if (error != NUMBER_OK)
        return hf__fail(u->s, HF_INVALID, TEXT_OVERFLOW);
    hf__build_number(&buf, number.bytes, number.len);
    return finish_value(u, &buf, out);
}

/*
 * Elements of both sets, or those of `a` that are not in `b`: one walk, as both are in order.
 * *out is absent when none is left.
 */
static enum hf_status merge_sets(struct updating *u, struct hf_value a, struct hf_value b,
                                 bool unite, struct hf_value *out)
{
    struct hf__buf buf = {.scope = u->s};
    struct value_walk x = hf__value_walk(a);
    struct value_walk y = hf__value_walk(b);
    bool more_x = hf__value_next(&x);
    bool more_y = hf__value_next(&y);
    bool any = false;
    size_t open;

    hf__buf_reserve(&buf, unite ? a.len + b.len : a.len);
    open = hf__build_open(&buf, x.type);
    while (more_x || (unite && more_y)) {
        int order = !more_y ? -1
                    : !more_x
                        ? 1
                        : bytes_compare(x.scalar.ptr, x.scalar.len, y.scalar.ptr, y.scalar.len);

        if (order < 0 || (order == 0 && unite)) {
            hf__build_element(&buf, x.type, x.scalar);
            any = true;
        } else if (order > 0 && unite) {
            hf__build_element(&buf, x.type, y.scalar);
            any = true;
        }
        if (order <= 0)
            more_x = hf__value_next(&x);
        if (order >= 0)
            more_y = hf__value_next(&y);
    }
    *out = (struct hf_value){NULL, 0};
    if (!any && !buf.failed)
        return HF_OK;
    hf__build_close(&buf, open);
    return finish_value(u, &buf, out);
}

/* ---- right sides ---------------------------------------------------------------------------- */

static enum hf_status fail_type(struct updating *u, const struct action *action)
{
    return hf__fail(u->s, HF_INVALID, "%s", action->legacy ? TEXT_LEGACY_TYPE : TEXT_RUN_TYPE);
}

static enum hf_status evaluate_node(struct updating *u, const struct action *action,
                                    uint16_t number, struct hf_value *out);

static enum hf_status evaluate_two(struct updating *u, const struct action *action,
                                   const struct node *node, struct hf_value *out)
{
    enum hf_type wanted = node->kind == NODE_SUM ? HF_TYPE_N : HF_TYPE_L;
    struct hf_value a;
    struct hf_value b;

    TRY(evaluate_node(u, action, node->first, &a));
    TRY(evaluate_node(u, action, node->last, &b));
    if (hf_value_type(a) != wanted || hf_value_type(b) != wanted)
        return fail_type(u, action);
    if (node->kind == NODE_SUM)
        return sum_numbers(u, (enum sum)node->op, a, b, out);
    return append_lists(u, a, b, out);
}

/* Recursion: (3) of private.h; if_not_exists() within itself is the loop. */
static enum hf_status evaluate_node(struct updating *u, const struct action *action,
                                    uint16_t number, struct hf_value *out)
{
    const struct node *node = hf__expr_node(u->bound->expr, number);

    while (node->kind == NODE_CALL && node->op == FUNCTION_IF_NOT_EXISTS) {
        const struct node *path = hf__expr_node(u->bound->expr, node->first);

        *out = hf__expr_resolve(u->finder, u->old, &u->bound->paths[path->ref]);
        if (out->ptr)
            return HF_OK;
        node = hf__expr_node(u->bound->expr, node->last);
    }
    switch ((enum node_kind)node->kind) {
    case NODE_PATH:
        *out = hf__expr_resolve(u->finder, u->old, &u->bound->paths[node->ref]);
        if (!out->ptr)
            return hf__fail(u->s, HF_INVALID, TEXT_MISSING);
        return HF_OK;
    case NODE_VALUE:
        *out = u->bound->values[node->ref];
        return HF_OK;
    default:
        return evaluate_two(u, action, node, out);
    }
}

/* ---- outcomes ------------------------------------------------------------------------------- */

/* Is there something that the last step of the path can be a member of? */
static bool has_parent(const struct updating *u, const struct expr_path *path)
{
    struct expr_path parent = {path->steps, path->len - 1};
    bool named = path->steps[path->len - 1].name.ptr != NULL;

    return path->len == 1 || hf_value_type(hf__expr_resolve(u->finder, u->old, &parent)) ==
                                 (named ? HF_TYPE_M : HF_TYPE_L);
}

static enum hf_status work_add(struct updating *u, const struct action *action,
                               struct hf_value there, struct change *change)
{
    enum hf_type type;

    TRY(evaluate_node(u, action, action->value, &change->value));
    change->outcome = PUT;
    if (!there.ptr)
        return HF_OK;
    type = hf_value_type(change->value);
    if (type != hf_value_type(there))
        return fail_type(u, action);
    if (type == HF_TYPE_N)
        return sum_numbers(u, OP_PLUS, there, change->value, &change->value);
    if (type == HF_TYPE_L && action->legacy)
        return append_lists(u, there, change->value, &change->value);
    if (type < HF_TYPE_SS)
        return fail_type(u, action);
    return merge_sets(u, there, change->value, true, &change->value);
}

static enum hf_status work_delete(struct updating *u, const struct action *action,
                                  struct hf_value there, struct change *change)
{
    struct hf_value value;

    TRY(evaluate_node(u, action, action->value, &value));
    if (!there.ptr)
        return HF_OK;
    if (hf_value_type(value) != hf_value_type(there) || hf_value_type(value) < HF_TYPE_SS)
        return fail_type(u, action);
    TRY(merge_sets(u, there, value, false, &change->value));
    change->outcome = change->value.ptr ? PUT : DROP;
    return HF_OK;
}

static enum hf_status work_out(struct updating *u, const struct action *action,
                               struct change *change)
{
    const struct expr_path *path = &u->bound->listed[action->target];
    struct hf_value there = hf__expr_resolve(u->finder, u->old, path);

    *change = (struct change){.outcome = NOTHING};
    if (u->created && (action->section == SECTION_REMOVE || action->section == SECTION_DELETE))
        return HF_OK;
    if (action->section == SECTION_SET) {
        TRY(evaluate_node(u, action, action->value, &change->value));
        change->outcome = PUT;
    }
    if (!has_parent(u, path))
        return hf__fail(u->s, HF_INVALID, TEXT_RUN_PATH);
    if (action->section == SECTION_ADD)
        TRY(work_add(u, action, there, change));
    if (action->section == SECTION_DELETE)
        TRY(work_delete(u, action, there, change));
    if (action->section == SECTION_REMOVE && there.ptr)
        change->outcome = DROP;
    if (change->outcome == PUT && path->len > 1 &&
        (int)path->len - 1 + hf__value_depth(change->value) > VALUE_DEPTH_MAX)
        return hf__fail(u->s, HF_INVALID, TEXT_NESTING);
    return HF_OK;
}

/* ---- the new item --------------------------------------------------------------------------- */

static const struct change *change_at(const struct updating *u, size_t at)
{
    return &u->changes[u->bound->order[at]]; /* targets are numbered as actions are */
}

/* A target that the container does not have yet. */
static void put_new(const struct updating *u, struct hf__buf *buf, const struct share *share,
                    size_t at)
{
    const struct expr_step *step = hf__path_share_step(share, at);

    if (change_at(u, at)->outcome != PUT)
        return;
    assert(hf__path_share_path(share, at)->len == share->depth + 1); /* (2) */
    if (step->name.ptr)
        hf__build_name(buf, step->name);
    hf__build_value(buf, change_at(u, at)->value);
}

static void container_rebuild(const struct updating *u, struct hf__buf *buf,
                              struct hf_value container, struct share share);

/* The member that the targets `below` go through, or the one that ends at it. */
static void put_member(const struct updating *u, struct hf__buf *buf, const struct value_walk *walk,
                       const struct share *below)
{
    bool ends = hf__path_share_path(below, below->from)->len == below->depth;
    enum outcome outcome = ends ? change_at(u, below->from)->outcome : NOTHING;
    enum hf_type wanted;

    if (outcome == DROP)
        return;
    if (walk->type == HF_TYPE_M)
        hf__build_name(buf, walk->name);
    if (outcome == PUT) {
        hf__build_value(buf, change_at(u, below->from)->value);
        return;
    }
    wanted = !ends && hf__path_share_step(below, below->from)->name.ptr ? HF_TYPE_M : HF_TYPE_L;
    if (!ends && hf_value_type(walk->value) == wanted)
        container_rebuild(u, buf, walk->value, *below);
    else
        hf__build_value(buf, walk->value); /* nothing happens below, see work_out() */
}

static void container_rebuild(const struct updating *u, struct hf__buf *buf,
                              struct hf_value container, struct share share)
{
    struct value_walk walk = hf__value_walk(container);
    const uint8_t *run = walk.at; /* copied up to here */
    const uint8_t *end = container.ptr + container.len;
    size_t open = hf__build_open(buf, walk.type);
    size_t at = share.from;

    assert(share.from <= share.to && share.to <= share.bound->listed_len);
    for (uint32_t index = 0; at < share.to; index++) {
        const uint8_t *member = walk.at;
        struct share below = {share.bound, at, at, share.depth + 1};
        int order;

        if (!hf__value_next(&walk))
            break;
        order = hf__path_share_against(&share, at, &walk, index);
        if (order > 0)
            continue;
        hf__buf_put(buf, run, (size_t)(member - run));
        run = member;
        for (; at < share.to && (order = hf__path_share_against(&share, at, &walk, index)) < 0;
             at++)
            put_new(u, buf, &share, at);
        below.from = at;
        while (at < share.to && hf__path_share_against(&share, at, &walk, index) == 0)
            at++;
        below.to = at;
        if (below.from == below.to)
            continue;
        put_member(u, buf, &walk, &below);
        run = walk.at;
    }
    hf__buf_put(buf, run, (size_t)(end - run));
    for (; at < share.to; at++)
        put_new(u, buf, &share, at);
    hf__build_close(buf, open);
}

static bool only_removes(const struct expr *expr)
{
    for (size_t i = 0; i < expr->actions_len; i++)
        if (expr->actions[i].section != SECTION_REMOVE &&
            expr->actions[i].section != SECTION_DELETE)
            return false;
    return expr->actions_len > 0;
}

enum hf_status hf__expr_update(struct hf_scope *s, const struct expr_bound *bound,
                               struct hf_item key, struct hf_item old, struct hf_item *out)
{
    const struct expr *expr = bound->expr;
    struct expr_finder finder;
    struct updating u = {.s = s, .bound = bound, .old = old.ptr ? old : key, .created = !old.ptr};
    struct hf__buf buf = {.scope = s};
    size_t room = u.old.len + VALUE_HEAD;

    *out = (struct hf_item){NULL, 0};
    if (u.created && only_removes(expr))
        return HF_OK;
    u.changes = hf_scope_alloc(s, expr->actions_len * sizeof(*u.changes));
    if (!u.changes)
        return hf__fail_nomem(s);
    if (expr->nodes_len + expr->actions_len >= FINDER_NODES) {
        hf__expr_finder_begin(&finder);
        u.finder = &finder;
    }
    for (size_t i = 0; i < expr->actions_len; i++) {
        const struct expr_path *path = &bound->listed[i];

        TRY(work_out(&u, &expr->actions[i], &u.changes[i]));
        room += u.changes[i].value.len + path->steps[path->len - 1].name.len + 2;
        if (room > UPDATED_MAX) /* far more than an item may have; more would take memory only */
            return hf__fail(s, HF_INVALID, TEXT_UPDATED_SIZE);
    }
    hf__buf_reserve(&buf, room);
    container_rebuild(&u, &buf, hf_item_value(u.old),
                      (struct share){bound, 0, expr->actions_len, 0});
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = hf__build_item_from(&buf, 0);
    return HF_OK;
}

bool hf__expr_update_typed(const struct expr_bound *bound, struct hf_item key, struct hf_item old,
                           struct hf_str name)
{
    const struct expr *expr = bound->expr;
    struct hf_item base = old.ptr ? old : key;
    const struct node *node = NULL;

    for (size_t i = 0; i < expr->actions_len && !node; i++) {
        const struct action *action = &expr->actions[i];
        const struct expr_path *path = &bound->listed[action->target];

        if (path->len == 1 && hf_str_equal(path->steps[0].name, name) && action->value != NO_NODE)
            node = hf__expr_node(expr, action->value);
    }
    while (node && node->kind == NODE_CALL && node->op == FUNCTION_IF_NOT_EXISTS) {
        const struct node *path = hf__expr_node(expr, node->first);

        if (hf__expr_resolve(NULL, base, &bound->paths[path->ref]).ptr)
            return false;
        node = hf__expr_node(expr, node->last);
    }
    return node && node->kind != NODE_PATH && expr->kind != EXPR_STATEMENT;
}
