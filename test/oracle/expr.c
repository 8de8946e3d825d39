/* oracle/expr.c: what conditions, updates and projections mean, and how they are written. */
#include <string.h>

#include "oracle.h"

const char text_missing[] =
    "The provided expression refers to an attribute that does not exist in the item";
const char text_type[] = "An operand in the update expression has an incorrect data type";
const char text_path[] =
    "The document path provided in the update expression is invalid for update";
const char text_index_type[] =
    "The update expression attempted to update the secondary index key to unsupported type";

/* ---- paths ----------------------------------------------------------------------------------- */

static struct val *step_into(const struct val *from, const struct step *step)
{
    if (step->name)
        return from->type == V_M ? map_get(from, step->name) : NULL;
    return from->type == V_L && (size_t)step->index < from->count ? from->at[step->index] : NULL;
}

struct val *path_get(const struct val *item, const struct path *path)
{
    const struct val *from = item;
    struct val *at = NULL;

    for (int i = 0; from && i < path->len; i++)
        from = at = step_into(from, &path->steps[i]);
    return at;
}

static bool same_step(const struct step *a, const struct step *b)
{
    if (!a->name || !b->name)
        return !a->name && !b->name && a->index == b->index;
    return strcmp(a->name, b->name) == 0;
}

bool paths_clash(const struct path *a, const struct path *b)
{
    for (int i = 0; i < a->len && i < b->len; i++)
        if (!same_step(&a->steps[i], &b->steps[i]))
            return !a->steps[i].name != !b->steps[i].name;
    return true; /* one leads through the other */
}

/* ---- conditions ------------------------------------------------------------------------------ */

/* Characters, of which those with four bytes count twice. */
static size_t units_of(const struct val *text)
{
    size_t units = 0;

    for (size_t i = 0; i < text->len; i++) {
        unsigned char c = (unsigned char)text->bytes[i];

        if (c < 0x80 || c >= 0xC0)
            units += c >= 0xF0 ? 2 : 1;
    }
    return units;
}

/* NULL when there is none; *unsizable when size() was asked of what has no size. */
static struct val *operand_get(const struct operand *operand, const struct val *item,
                               struct val *room, bool *unsizable)
{
    struct val *val;

    if (operand->kind == O_VALUE)
        return operand->value;
    val = path_get(item, &operand->path);
    if (operand->kind == O_PATH || !val)
        return val;
    *room = (struct val){.type = V_N};
    if (val->type == V_S)
        room->thousandths = (int64_t)units_of(val) * 1000;
    else if (val->type == V_B)
        room->thousandths = (int64_t)val->len * 1000;
    else if (val->type >= V_M)
        room->thousandths = (int64_t)val->count * 1000;
    else {
        *unsizable = true;
        return NULL;
    }
    return room;
}

static bool ordered_type(enum vtype type)
{
    return type == V_S || type == V_N || type == V_B;
}

static bool compare(enum compare op, const struct val *a, const struct val *b)
{
    int order;

    if (op == EQ || op == NE)
        return (a && b && val_equal(a, b)) == (op == EQ);
    if (!a || !b || a->type != b->type || !ordered_type(a->type))
        return false;
    order = val_compare(a, b);
    return op == LT ? order < 0 : op == LE ? order <= 0 : op == GT ? order > 0 : order >= 0;
}

static bool has_bytes(const struct val *in, const struct val *part)
{
    for (size_t i = 0; i + part->len <= in->len; i++)
        if (memcmp(in->bytes + i, part->bytes, part->len) == 0)
            return true;
    return false;
}

static bool contains(const struct val *in, const struct val *part)
{
    if (!in || !part)
        return false;
    if (in->type == V_S || in->type == V_B)
        return part->type == in->type && has_bytes(in, part);
    if (in->type == V_M)
        return false;
    for (size_t i = 0; i < in->count; i++)
        if (val_equal(in->at[i], part))
            return true;
    return false;
}

bool cond_match(const struct cond *c, const struct val *item)
{
    struct val rooms[4];
    struct val *x[4] = {NULL};
    bool unsizable = false;

    for (int i = 0; i < c->x_len; i++)
        x[i] = operand_get(c->x[i], item, &rooms[i], &unsizable);
    if (unsizable)
        return false;
    switch (c->kind) {
    case C_COMPARE:
        return compare(c->op, x[0], x[1]);
    case C_BETWEEN:
        return compare(GE, x[0], x[1]) && compare(LE, x[0], x[2]);
    case C_IN:
        for (int i = 1; i < c->x_len; i++)
            if (compare(EQ, x[0], x[i]))
                return true;
        return false;
    case C_EXISTS:
        return x[0] != NULL;
    case C_NOT_EXISTS:
        return x[0] == NULL;
    case C_TYPE:
        return x[0] && x[0]->type == c->wanted;
    case C_BEGINS:
        return x[0] && x[0]->type == x[1]->type && x[0]->len >= x[1]->len &&
               (x[1]->len == 0 || memcmp(x[0]->bytes, x[1]->bytes, x[1]->len) == 0);
    case C_CONTAINS:
        return contains(x[0], x[1]);
    case C_AND:
        return cond_match(c->l, item) && cond_match(c->r, item);
    case C_OR:
        return cond_match(c->l, item) || cond_match(c->r, item);
    case C_NOT:
        return !cond_match(c->l, item);
    }
    return false;
}

bool cond_mentions(const struct cond *c, const char *name)
{
    if (!name || !c)
        return false;
    for (int i = 0; i < c->x_len; i++)
        if (c->x[i]->kind != O_VALUE && strcmp(c->x[i]->path.steps[0].name, name) == 0)
            return true;
    return cond_mentions(c->l, name) || cond_mentions(c->r, name);
}

/* ---- projections ----------------------------------------------------------------------------- */

/* What the paths, all of which lead into `from` by their first `depth` steps, leave of it. */
static struct val *project_into(struct arena *arena, const struct path *const *paths, int len,
                                int depth, const struct val *from)
{
    struct val *out = val_new(arena, from->type);

    for (size_t i = 0; i < from->count; i++) {
        const struct path *below[PATHS_MAX + ACTIONS_MAX];
        struct val *part = NULL;
        int below_len = 0;

        for (int j = 0; j < len; j++) {
            const struct step *step = &paths[j]->steps[depth];

            if (step_into(from, step) != from->at[i])
                continue;
            if (paths[j]->len == depth + 1)
                part = from->at[i];
            below[below_len++] = paths[j];
        }
        if (!part && below_len && from->at[i]->type >= V_M && from->at[i]->type <= V_L)
            part = project_into(arena, below, below_len, depth + 1, from->at[i]);
        if (part && from->type == V_M)
            map_set(arena, out, from->names[i], part);
        else if (part)
            list_add(arena, out, part);
    }
    return out->count || depth == 0 ? out : NULL;
}

struct val *project(struct arena *arena, const struct path *paths, int len, const struct val *item)
{
    const struct path *all[PATHS_MAX + ACTIONS_MAX];

    for (int i = 0; i < len; i++)
        all[i] = &paths[i];
    return project_into(arena, all, len, 0, item);
}

/* ---- updates --------------------------------------------------------------------------------- */

static struct val *work_out(struct arena *arena, const struct operand *operand,
                            const struct val *old, int *bad)
{
    struct val *a, *b, *out;

    switch (operand->kind) {
    case O_VALUE:
        return operand->value;
    case O_IF_NOT_EXISTS:
        a = path_get(old, &operand->path);
        return a ? a : work_out(arena, operand->a, old, bad);
    case O_LIST_APPEND:
        a = work_out(arena, operand->a, old, bad);
        b = work_out(arena, operand->b, old, bad);
        if (!a || !b)
            return NULL;
        if (a->type != V_L || b->type != V_L) {
            *bad |= BAD_TYPE;
            return NULL;
        }
        out = val_copy(arena, a);
        for (size_t i = 0; i < b->count; i++)
            list_add(arena, out, b->at[i]);
        return out;
    default:
        a = path_get(old, &operand->path);
        if (!a)
            *bad |= BAD_MISSING;
        return a;
    }
}

static struct val *right_side(struct arena *arena, const struct action *action,
                              const struct val *old, int *bad)
{
    struct val *a = work_out(arena, action->a, old, bad);
    struct val *b;

    if (!action->sum)
        return a;
    b = work_out(arena, action->b, old, bad);
    if (!a || !b)
        return NULL;
    if (a->type != V_N || b->type != V_N) {
        *bad |= BAD_TYPE;
        return NULL;
    }
    return val_number(arena, action->sum == '+' ? a->thousandths + b->thousandths
                                                : a->thousandths - b->thousandths);
}

/* The value of ADD and DELETE; NULL with no bit in *bad when nothing is left of a set. */
static struct val *combine(struct arena *arena, const struct action *action, struct val *there,
                           int *bad)
{
    struct val *operand = action->a->value;
    struct val *out;

    if (!there)
        return action->section == ADD ? operand : NULL;
    if (there->type != operand->type) {
        *bad |= BAD_TYPE;
        return NULL;
    }
    if (operand->type == V_N)
        return val_number(arena, there->thousandths + operand->thousandths);
    out = val_new(arena, there->type);
    for (size_t i = 0; i < there->count; i++)
        if (action->section == ADD || !set_has(operand, there->at[i]))
            set_add(arena, out, there->at[i]);
    for (size_t i = 0; action->section == ADD && i < operand->count; i++)
        set_add(arena, out, operand->at[i]);
    return out->count ? out : NULL;
}

/* Put `val` at the path, or remove what is there. Lists keep the numbers of their elements. */
static void put_at(struct arena *arena, struct val *item, const struct path *path, struct val *val)
{
    struct path up = *path;
    const struct step *last = &path->steps[path->len - 1];
    struct val *parent;

    up.len--;
    parent = up.len ? path_get(item, &up) : item;
    if (last->name && val)
        map_set(arena, parent, last->name, val);
    else if (last->name)
        map_remove(parent, last->name);
    else if ((size_t)last->index >= parent->count && val)
        list_add(arena, parent, val);
    else if ((size_t)last->index < parent->count && val)
        parent->at[last->index] = val;
    else if ((size_t)last->index < parent->count)
        parent->at[last->index]->dead = true;
}

/* Take out what was removed from lists. */
static void bury(struct val *val)
{
    size_t kept = 0;

    for (size_t i = 0; i < val->count; i++) {
        if (val->at[i]->dead)
            continue;
        val->at[kept] = val->at[i];
        if (val->names)
            val->names[kept] = val->names[i];
        bury(val->at[kept++]);
    }
    val->count = kept;
}

static int last_index(const struct action *action)
{
    const struct step *last = &action->target.steps[action->target.len - 1];

    return last->name ? 0 : last->index;
}

struct val *update_apply(struct arena *arena, const struct update *update, const struct val *key,
                         const struct val *old, int *bad)
{
    const struct val *base = old ? old : key; /* what right sides see */
    struct val *item = val_copy(arena, base);
    struct val *results[ACTIONS_MAX] = {NULL};
    bool doing[ACTIONS_MAX] = {false};
    bool creates = old || update->len == 0;

    for (int i = 0; i < update->len; i++) {
        const struct action *action = &update->actions[i];
        struct path up = action->target;
        struct val *parent;
        struct val *there = path_get(base, &action->target);

        creates |= action->section == SET || action->section == ADD;
        if (!old && (action->section == REMOVE || action->section == DELETE))
            continue;
        up.len--;
        parent = up.len == 0 ? item : path_get(base, &up);
        if (!parent ||
            (up.len > 0 && parent->type != (action->target.steps[up.len].name ? V_M : V_L))) {
            *bad |= BAD_PATH;
            if (action->section == SET)
                right_side(arena, action, base, bad);
            continue;
        }
        doing[i] = action->section != DELETE || there;
        if (action->section == SET)
            results[i] = right_side(arena, action, base, bad);
        else if (action->section != REMOVE)
            results[i] = combine(arena, action, there, bad);
        if (results[i])
            results[i] = val_copy(arena, results[i]);
    }
    if (*bad || !creates)
        return NULL;
    for (int round = 0; round < 100; round++) /* in the order of list indexes */
        for (int i = 0; i < update->len; i++)
            if (doing[i] && last_index(&update->actions[i]) == round)
                put_at(arena, item, &update->actions[i].target, results[i]);
    bury(item);
    return item;
}

bool update_reads(const struct update *update, const struct val *base, const char *name)
{
    for (int i = 0; i < update->len; i++) {
        const struct action *action = &update->actions[i];
        const struct operand *a = action->a;

        if (action->target.len != 1 || strcmp(action->target.steps[0].name, name) != 0)
            continue;
        if (action->section != SET || action->sum)
            return false;
        while (a->kind == O_IF_NOT_EXISTS && !path_get(base, &a->path))
            a = a->a;
        return a->kind == O_PATH || a->kind == O_IF_NOT_EXISTS;
    }
    return false;
}

/* ---- as text --------------------------------------------------------------------------------- */

void render_begin(struct render *r, struct arena *arena, struct rnd *rnd)
{
    *r = (struct render){.arena = arena,
                         .rnd = rnd,
                         .names = {.arena = arena},
                         .values = {.arena = arena}};
}

void render_name(struct render *r, struct text *out, const char *name)
{
    if (rnd_one_in(r->rnd, 2)) {
        text_add(out, "%s", name);
        return;
    }
    text_add(out, "#n%d", ++r->used);
    text_add(&r->names, "%s\"#n%d\":\"%s\"", r->names.len ? "," : "", r->used, name);
}

void render_value(struct render *r, struct text *out, const struct val *val)
{
    text_add(out, ":v%d", ++r->used);
    text_add(&r->values, "%s\":v%d\":", r->values.len ? "," : "", r->used);
    val_json(&r->values, val, r->rnd);
}

void render_path(struct render *r, struct text *out, const struct path *path)
{
    for (int i = 0; i < path->len; i++) {
        if (!path->steps[i].name) {
            text_add(out, "[%d]", path->steps[i].index);
            continue;
        }
        if (i > 0)
            text_add(out, ".");
        render_name(r, out, path->steps[i].name);
    }
}

static void render_operand(struct render *r, struct text *out, const struct operand *operand)
{
    static const char *const functions[] = {"", "", "size", "if_not_exists", "list_append"};

    if (operand->kind == O_VALUE) {
        render_value(r, out, operand->value);
        return;
    }
    if (operand->kind == O_PATH) {
        render_path(r, out, &operand->path);
        return;
    }
    text_add(out, "%s(", functions[operand->kind]);
    if (operand->kind == O_LIST_APPEND)
        render_operand(r, out, operand->a);
    else
        render_path(r, out, &operand->path);
    if (operand->kind != O_SIZE) {
        text_add(out, ", ");
        render_operand(r, out, operand->kind == O_LIST_APPEND ? operand->b : operand->a);
    }
    text_add(out, ")");
}

static void render_call(struct render *r, struct text *out, const char *function,
                        const struct cond *cond)
{
    text_add(out, "%s(", function);
    for (int i = 0; i < cond->x_len; i++) {
        text_add(out, i ? ", " : "");
        render_operand(r, out, cond->x[i]);
    }
    if (cond->kind == C_TYPE) {
        struct val tag = {.type = V_S, .bytes = type_tag(cond->wanted)};

        tag.len = strlen(tag.bytes);
        text_add(out, ", ");
        render_value(r, out, &tag);
    }
    text_add(out, ")");
}

/* One side of AND, OR or NOT: in parentheses when it binds less. */
static void render_side(struct render *r, struct text *out, const struct cond *cond, int binding)
{
    int own = cond->kind == C_OR ? 1 : cond->kind == C_AND ? 2 : 3;

    if (own < binding)
        text_add(out, "(");
    render_cond(r, out, cond);
    if (own < binding)
        text_add(out, ")");
}

void render_cond(struct render *r, struct text *out, const struct cond *cond)
{
    static const char *const signs[] = {"=", "<>", "<", "<=", ">", ">="};

    switch (cond->kind) {
    case C_COMPARE:
        render_operand(r, out, cond->x[0]);
        text_add(out, " %s ", signs[cond->op]);
        render_operand(r, out, cond->x[1]);
        break;
    case C_BETWEEN:
        render_operand(r, out, cond->x[0]);
        text_add(out, " BETWEEN ");
        render_operand(r, out, cond->x[1]);
        text_add(out, " and ");
        render_operand(r, out, cond->x[2]);
        break;
    case C_IN:
        render_operand(r, out, cond->x[0]);
        text_add(out, " IN (");
        for (int i = 1; i < cond->x_len; i++) {
            text_add(out, i > 1 ? "," : "");
            render_operand(r, out, cond->x[i]);
        }
        text_add(out, ")");
        break;
    case C_EXISTS:
        render_call(r, out, "attribute_exists", cond);
        break;
    case C_NOT_EXISTS:
        render_call(r, out, "attribute_not_exists", cond);
        break;
    case C_TYPE:
        render_call(r, out, "attribute_type", cond);
        break;
    case C_BEGINS:
        render_call(r, out, "begins_with", cond);
        break;
    case C_CONTAINS:
        render_call(r, out, "contains", cond);
        break;
    case C_AND:
    case C_OR:
        render_side(r, out, cond->l, cond->kind == C_OR ? 1 : 2);
        text_add(out, cond->kind == C_OR ? " OR " : " AND ");
        render_side(r, out, cond->r, cond->kind == C_OR ? 1 : 2);
        break;
    case C_NOT:
        text_add(out, "NOT ");
        render_side(r, out, cond->l, 3);
        break;
    }
}

void render_update(struct render *r, struct text *out, const struct update *update)
{
    static const char *const words[] = {"SET", "REMOVE", "add", "DELETE"};

    for (int section = SET; section <= DELETE; section++) {
        const char *before = "";

        for (int i = 0; i < update->len; i++) {
            const struct action *action = &update->actions[i];

            if ((int)action->section != section)
                continue;
            if (*before)
                text_add(out, "%s", before);
            else
                text_add(out, " %s ", words[section]);
            before = ", ";
            render_path(r, out, &action->target);
            if (section == REMOVE)
                continue;
            text_add(out, section == SET ? " = " : " ");
            render_operand(r, out, action->a);
            if (action->sum) {
                text_add(out, " %c ", action->sum);
                render_operand(r, out, action->b);
            }
        }
    }
}

void render_projection(struct render *r, struct text *out, const struct projection *projection)
{
    for (int i = 0; i < projection->len; i++) {
        text_add(out, i ? ", " : "");
        render_path(r, out, &projection->paths[i]);
    }
}

void render_end(struct render *r, struct text *json)
{
    if (r->names.len)
        text_add(json, ",\"ExpressionAttributeNames\":{%s}", r->names.ptr);
    if (r->values.len)
        text_add(json, ",\"ExpressionAttributeValues\":{%s}", r->values.ptr);
}
