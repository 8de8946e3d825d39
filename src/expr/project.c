/*
 * expr/project.c: what paths leave of an item.
 *
 * The paths lie in the order of their steps, so those through one member are neighbours: the paths
 * are a tree without being stored as one. A container and its share of the paths are walked
 * together, both in order, once. Names go along their maps in the order of bytes, indexes along
 * their lists upwards. What leads nowhere leaves nothing, not even the containers on its way.
 *
 * The columns of a SELECT are the same without the containers above them.
 */
#include "expr/private.h"

static bool project_container(struct hf__buf *buf, struct hf_value container, struct share share);

/* The member that paths [from, to) go through, or end at. */
static bool project_member(struct hf__buf *buf, const struct value_walk *walk, struct share below)
{
    size_t before = buf->len;

    if (walk->type == HF_TYPE_M)
        hf__build_name(buf, walk->name);
    if (hf__path_share_path(&below, below.from)->len == below.depth) {
        hf__build_value(buf, walk->value);
        return true;
    }
    if (project_container(buf, walk->value, below))
        return true;
    buf->len = before;
    return false;
}

static bool project_container(struct hf__buf *buf, struct hf_value container, struct share share)
{
    struct value_walk walk = hf__value_walk(container);
    bool named = hf__path_share_step(&share, share.from)->name.ptr != NULL;
    size_t open = buf->len;
    size_t at = share.from;
    bool any = false;

    assert(share.from < share.to && share.to <= share.bound->listed_len);
    if (walk.type != (named ? HF_TYPE_M : HF_TYPE_L))
        return false;
    hf__build_open(buf, walk.type);
    for (uint32_t index = 0; at < share.to && hf__value_next(&walk); index++) {
        struct share below = {share.bound, 0, 0, share.depth + 1};

        while (at < share.to && hf__path_share_against(&share, at, &walk, index) < 0)
            at++;
        below.from = at;
        while (at < share.to && hf__path_share_against(&share, at, &walk, index) == 0)
            at++;
        below.to = at;
        if (below.from < below.to)
            any |= project_member(buf, &walk, below);
    }
    if (!any && share.depth > 0)
        buf->len = open;
    else
        hf__build_close(buf, open);
    return any;
}

static enum hf_status item_project(struct hf_scope *s, const struct expr_bound *bound,
                                   struct hf_item item, struct hf_item *out, bool *any)
{
    struct hf__buf buf = {.scope = s};
    struct share all = {bound, 0, bound->listed_len, 0};

    *any = false;
    if (bound->listed_len > 0 && item.ptr)
        *any = project_container(&buf, hf_item_value(item), all);
    else
        hf__build_close(&buf, hf__build_open(&buf, HF_TYPE_M));
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = hf__build_item_from(&buf, 0);
    return HF_OK;
}

/* Columns are named by the ends of their paths and lie side by side, however deep they were. */
static enum hf_status project_columns(struct hf_scope *s, const struct expr_bound *bound,
                                      struct hf_item item, struct hf_item *out)
{
    struct hf__buf buf = {.scope = s};
    size_t open = hf__build_open(&buf, HF_TYPE_M);
    struct expr_finder finder;

    hf__expr_finder_begin(&finder);
    for (size_t i = 0; i < bound->columns_len; i++) {
        const struct expr_column *column = &bound->columns[i];
        struct share share = {bound, column->from, column->to, column->head.len};
        struct hf_value value =
            hf__expr_resolve(bound->columns_len >= FINDER_NODES ? &finder : NULL, item,
                             &column->head);
        size_t before = buf.len;

        if (!value.ptr)
            continue;
        hf__build_name(&buf, column->name);
        if (hf__path_share_path(&share, share.from)->len == share.depth)
            hf__build_value(&buf, value);
        else if (!project_container(&buf, value, share))
            buf.len = before;
    }
    hf__build_close(&buf, open);
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = hf__build_item_from(&buf, 0);
    return HF_OK;
}

enum hf_status hf__expr_project(struct hf_scope *s, const struct expr_bound *bound,
                                struct hf_item item, struct hf_item *out)
{
    bool any;

    if (bound->columns)
        return project_columns(s, bound, item, out);

    return item_project(s, bound, item, out, &any);
}

enum hf_status hf__expr_touched(struct hf_scope *s, const struct expr_bound *bound,
                                struct hf_item item, struct hf_item *out)
{
    bool any;

    TRY(item_project(s, bound, item, out, &any));
    if (!any)
        *out = (struct hf_item){NULL, 0};
    return HF_OK;
}
