/*
 * oracle/generate.c: random keys, items, conditions, updates and projections. There are few keys
 * and few attribute names, so that things meet; all requests are well-formed, so that what is
 * compared is what they mean and not how they are refused.
 */
#include <string.h>

#include "oracle.h"

#define COUNT(array) ((int)(sizeof(array) / sizeof((array)[0])))

/* Non-key attributes. g1, g2, k2 are keys of indexes, tt is the time to live. */
static const char *const attrs[] = {"aa", "bb", "cc", "ss", "nn", "ll",
                                    "mm", "zz", "g1", "g2", "k2", "tt"};

static struct val *one_of(struct gen *g, enum vtype type, const char *const *list,
                          const size_t *lens, int count)
{
    int at = rnd_below(&g->rnd, count);

    return val_string(&g->o->arena, type, list[at], lens[at]);
}

struct val *gen_scalar(struct gen *g, enum vtype type)
{
    static const char *const strings[] = {"a",    "b",         "ab",   "a\0",
                                          "a\0b", "b\xC3\xBC", "\x01", "abc"};
    static const size_t string_lens[] = {1, 1, 2, 2, 3, 3, 1, 3};
    static const char *const binaries[] = {"\0",     "\0\0",     "\xFF", "\xFF\0",
                                           "\0\x01", "\xFF\xFF", "\x80"};
    static const size_t binary_lens[] = {1, 2, 1, 2, 2, 2, 1};
    static const int64_t numbers[] = {-105000, -10000, -1500, -1000, -1,    0,
                                      5,       500,    1000,  10000, 99000, 100000};

    if (type == V_S)
        return one_of(g, type, strings, string_lens, COUNT(strings));
    if (type == V_B)
        return one_of(g, type, binaries, binary_lens, COUNT(binaries));
    return val_number(&g->o->arena, numbers[rnd_below(&g->rnd, COUNT(numbers))]);
}

static enum vtype gen_scalar_type(struct gen *g)
{
    return (enum vtype)(V_S + rnd_below(&g->rnd, 3));
}

static struct val *gen_set(struct gen *g, enum vtype type)
{
    struct val *set = val_new(&g->o->arena, type);

    for (int i = rnd_below(&g->rnd, 3); i >= 0; i--)
        set_add(&g->o->arena, set, gen_scalar(g, (enum vtype)(type - V_SS + V_S)));
    return set;
}

static struct val *gen_list(struct gen *g, int depth)
{
    struct val *list = val_new(&g->o->arena, V_L);

    for (int i = rnd_below(&g->rnd, 4); i > 0; i--)
        list_add(&g->o->arena, list, gen_value(g, depth - 1));
    return list;
}

static struct val *gen_map(struct gen *g, int depth)
{
    static const char *const members[] = {"x", "y", "ll"};
    struct val *map = val_new(&g->o->arena, V_M);

    for (int i = 0; i < COUNT(members); i++)
        if (rnd_one_in(&g->rnd, 2))
            map_set(&g->o->arena, map, members[i], gen_value(g, depth - 1));
    return map;
}

struct val *gen_value(struct gen *g, int depth)
{
    struct val *val;

    switch (rnd_below(&g->rnd, depth > 0 ? 9 : 6)) {
    case 0:
        val = val_new(&g->o->arena, V_BOOL);
        val->truth = rnd_one_in(&g->rnd, 2);
        return val;
    case 1:
        return val_new(&g->o->arena, V_NULL);
    case 2:
        return val_string(&g->o->arena, rnd_one_in(&g->rnd, 2) ? V_S : V_B, "", 0);
    case 6:
        return gen_map(g, depth);
    case 7:
        return gen_list(g, depth);
    case 8:
        return gen_set(g, (enum vtype)(V_SS + rnd_below(&g->rnd, 3)));
    default:
        return gen_scalar(g, gen_scalar_type(g));
    }
}

/* A value as the attribute of that name mostly has it. */
static struct val *gen_attr(struct gen *g, const char *name)
{
    bool odd = rnd_one_in(&g->rnd, 30);

    if (strcmp(name, "g1") == 0 || strcmp(name, "cc") == 0)
        return gen_scalar(g, odd ? V_N : V_S);
    if (strcmp(name, "g2") == 0)
        return gen_scalar(g, odd ? V_B : V_N);
    if (strcmp(name, "k2") == 0)
        return gen_scalar(g, odd ? V_N : V_S);
    if (strcmp(name, "tt") == 0 && !odd)
        return val_number(&g->o->arena, (g->now_s + rnd_below(&g->rnd, 9000) - 1000) * 1000 + 500);
    if (strcmp(name, "bb") == 0 && !odd)
        return gen_scalar(g, V_N);
    if (strcmp(name, "ss") == 0 && !odd)
        return gen_set(g, V_SS);
    if (strcmp(name, "nn") == 0 && !odd)
        return gen_set(g, V_NS);
    if (strcmp(name, "ll") == 0 && !odd)
        return gen_list(g, 2);
    if (strcmp(name, "mm") == 0 && !odd)
        return gen_map(g, 2);
    return gen_value(g, 2);
}

struct val *gen_key(struct gen *g, struct otable *table)
{
    struct val *key = val_new(&g->o->arena, V_M);

    if (table->len && rnd_one_in(&g->rnd, 2))
        return key_of(g->o, table, table->items[rnd_below(&g->rnd, (int)table->len)]);
    map_set(&g->o->arena, key, table->hash.name, gen_scalar(g, table->hash.type));
    if (table->range.name)
        map_set(&g->o->arena, key, table->range.name, gen_scalar(g, table->range.type));
    return key;
}

struct val *gen_item(struct gen *g, struct otable *table)
{
    struct val *item = val_copy(&g->o->arena, gen_key(g, table));

    for (int i = 0; i < COUNT(attrs); i++)
        if (rnd_one_in(&g->rnd, 2) && (strcmp(attrs[i], "tt") != 0 || rnd_one_in(&g->rnd, 4)))
            map_set(&g->o->arena, item, attrs[i], gen_attr(g, attrs[i]));
    return item;
}

/* ---- expressions ----------------------------------------------------------------------------- */

static void add_name(struct path *path, const char *name)
{
    path->steps[path->len++] = (struct step){.name = name};
}

static void add_index(struct path *path, int index)
{
    path->steps[path->len++] = (struct step){.index = index};
}

/* Whether the name is part of a key of the table or an index: then nothing is below it. */
static bool key_name(const struct otable *table, const char *name)
{
    if (strcmp(name, table->hash.name) == 0 ||
        (table->range.name && strcmp(name, table->range.name) == 0))
        return true;
    for (int i = 0; i < table->indexes_len; i++)
        if (strcmp(name, table->indexes[i].hash.name) == 0 ||
            (table->indexes[i].range.name && strcmp(name, table->indexes[i].range.name) == 0))
            return true;
    return false;
}

struct path gen_path(struct gen *g, struct otable *table, bool keys)
{
    struct path path = {.len = 0};
    const char *name = attrs[rnd_below(&g->rnd, COUNT(attrs))];

    if (keys && rnd_one_in(&g->rnd, 6))
        name = table->range.name && rnd_one_in(&g->rnd, 2) ? table->range.name : table->hash.name;
    add_name(&path, name);
    if (key_name(table, name) || rnd_one_in(&g->rnd, 3))
        return path;
    if (strcmp(name, "mm") == 0 || rnd_one_in(&g->rnd, 12)) {
        add_name(&path, rnd_one_in(&g->rnd, 2) ? "x" : rnd_one_in(&g->rnd, 2) ? "y" : "ll");
        if (rnd_one_in(&g->rnd, 3))
            add_index(&path, rnd_below(&g->rnd, 3));
    } else if (strcmp(name, "ll") == 0 || rnd_one_in(&g->rnd, 12)) {
        add_index(&path, rnd_below(&g->rnd, 5));
        if (rnd_one_in(&g->rnd, 4))
            add_name(&path, rnd_one_in(&g->rnd, 2) ? "x" : "y");
    }
    return path;
}

static struct operand *operand_path(struct gen *g, struct path path)
{
    struct operand *operand = arena_alloc(&g->o->arena, sizeof(*operand));

    operand->kind = O_PATH;
    operand->path = path;
    return operand;
}

static struct operand *operand_value(struct gen *g, struct val *value)
{
    struct operand *operand = arena_alloc(&g->o->arena, sizeof(*operand));

    operand->kind = O_VALUE;
    operand->value = value;
    return operand;
}

/* A path for a condition, without what it must not mention. */
static struct path cond_path(struct gen *g, struct otable *table, const char *but1,
                             const char *but2)
{
    struct path path;

    do
        path = gen_path(g, table, true);
    while ((but1 && strcmp(path.steps[0].name, but1) == 0) ||
           (but2 && strcmp(path.steps[0].name, but2) == 0));
    return path;
}

static void gen_compare(struct gen *g, struct otable *table, struct cond *c, const char *but1,
                        const char *but2)
{
    struct path other;
    bool sized = rnd_one_in(&g->rnd, 5);

    c->op = (enum compare)rnd_below(&g->rnd, 6);
    c->x_len = 2;
    if (sized) {
        c->x[0]->kind = O_SIZE;
        c->op = c->op == NE ? EQ : c->op;
        c->x[1] = operand_value(g, val_number(&g->o->arena, 1000 * rnd_below(&g->rnd, 4)));
        return;
    }
    other = cond_path(g, table, but1, but2);
    if (rnd_one_in(&g->rnd, 5) && paths_clash(&c->x[0]->path, &other) == false)
        c->x[1] = operand_path(g, other);
    else if (c->op == EQ || c->op == NE)
        c->x[1] =
            operand_value(g, rnd_one_in(&g->rnd, 3) ? gen_value(g, 1)
                                                    : gen_attr(g, c->x[0]->path.steps[0].name));
    else
        c->x[1] = operand_value(g, gen_scalar(g, gen_scalar_type(g)));
}

static void gen_between(struct gen *g, struct cond *c)
{
    enum vtype type = gen_scalar_type(g);
    struct val *low = gen_scalar(g, type);
    struct val *high = gen_scalar(g, type);
    bool swap = val_compare(low, high) > 0;

    c->x_len = 3;
    c->x[1] = operand_value(g, swap ? high : low);
    c->x[2] = operand_value(g, swap ? low : high);
}

static struct cond *gen_leaf(struct gen *g, struct otable *table, const char *but1,
                             const char *but2)
{
    struct cond *c = arena_alloc(&g->o->arena, sizeof(*c));

    c->x[0] = operand_path(g, cond_path(g, table, but1, but2));
    c->x_len = 1;
    switch (rnd_below(&g->rnd, 9)) {
    case 0:
        c->kind = C_EXISTS;
        break;
    case 1:
        c->kind = C_NOT_EXISTS;
        break;
    case 2:
        c->kind = C_TYPE;
        c->wanted = (enum vtype)(V_S + rnd_below(&g->rnd, 10));
        break;
    case 3:
        c->kind = C_BEGINS;
        c->x[1] = operand_value(g, gen_scalar(g, rnd_one_in(&g->rnd, 2) ? V_S : V_B));
        c->x_len = 2;
        break;
    case 4:
        c->kind = C_CONTAINS;
        c->x[1] = operand_value(g, gen_scalar(g, gen_scalar_type(g)));
        c->x_len = 2;
        break;
    case 5:
        c->kind = C_BETWEEN;
        gen_between(g, c);
        break;
    case 6:
        c->kind = C_IN;
        c->x[1] = operand_value(g, gen_value(g, 1));
        c->x[2] = operand_value(g, gen_scalar(g, gen_scalar_type(g)));
        c->x_len = 3;
        break;
    default:
        c->kind = C_COMPARE;
        gen_compare(g, table, c, but1, but2);
    }
    return c;
}

struct cond *gen_cond(struct gen *g, struct otable *table, int depth, const char *but1,
                      const char *but2)
{
    struct cond *c;
    int kind = rnd_below(&g->rnd, 6);

    if (depth == 0 || kind > 2)
        return gen_leaf(g, table, but1, but2);
    c = arena_alloc(&g->o->arena, sizeof(*c));
    c->kind = kind == 0 ? C_AND : kind == 1 ? C_OR : C_NOT;
    c->l = gen_cond(g, table, depth - 1, but1, but2);
    c->r = kind == 2 ? NULL : gen_cond(g, table, depth - 1, but1, but2);
    return c;
}

/* ---- updates --------------------------------------------------------------------------------- */

static struct operand *gen_list_operand(struct gen *g, struct otable *table, bool plain)
{
    struct operand *operand;

    if (rnd_one_in(&g->rnd, 2))
        return operand_value(g, gen_list(g, 1));
    operand = operand_path(g, gen_path(g, table, false));
    if (plain || rnd_one_in(&g->rnd, 2))
        return operand;
    operand->kind = O_IF_NOT_EXISTS;
    operand->a = operand_value(g, gen_list(g, 1));
    return operand;
}

static void gen_set_action(struct gen *g, struct otable *table, struct action *action)
{
    struct operand *operand;

    switch (rnd_below(&g->rnd, 6)) {
    case 0:
        action->sum = rnd_one_in(&g->rnd, 2) ? '+' : '-';
        action->a = operand_path(g, gen_path(g, table, true));
        if (rnd_one_in(&g->rnd, 2)) {
            action->a->kind = O_IF_NOT_EXISTS;
            action->a->a = operand_value(g, gen_scalar(g, V_N));
        }
        action->b = operand_value(g, gen_scalar(g, V_N));
        break;
    case 1:
        operand = operand_path(g, gen_path(g, table, false));
        operand->kind = O_LIST_APPEND;
        operand->a = gen_list_operand(g, table, false);
        operand->b = gen_list_operand(g, table, true);
        action->a = operand;
        break;
    case 2:
        action->a = operand_path(g, gen_path(g, table, true));
        if (rnd_one_in(&g->rnd, 2)) {
            action->a->kind = O_IF_NOT_EXISTS;
            action->a->a = operand_value(g, gen_value(g, 1));
        }
        break;
    default:
        action->a =
            operand_value(g, action->target.len == 1 ? gen_attr(g, action->target.steps[0].name)
                                                     : gen_value(g, 1));
    }
}

static bool clashes(const struct path *paths, int len, const struct path *path)
{
    for (int i = 0; i < len; i++)
        if (paths_clash(&paths[i], path))
            return true;
    return false;
}

struct update *gen_update(struct gen *g, struct otable *table)
{
    struct update *update = arena_alloc(&g->o->arena, sizeof(*update));
    int wanted = 1 + rnd_below(&g->rnd, 4);
    struct path paths[ACTIONS_MAX];

    for (int tries = 0; update->len < wanted && tries < 20; tries++) {
        struct action *action = &update->actions[update->len];

        *action = (struct action){.target = gen_path(g, table, false)};
        if (clashes(paths, update->len, &action->target))
            continue;
        switch (rnd_below(&g->rnd, 8)) {
        case 0:
        case 1:
            action->section = REMOVE;
            break;
        case 2:
            action->section = ADD;
            action->a =
                operand_value(g, rnd_one_in(&g->rnd, 2)
                                     ? gen_scalar(g, V_N)
                                     : gen_set(g, (enum vtype)(V_SS + rnd_below(&g->rnd, 3))));
            break;
        case 3:
            action->section = DELETE;
            action->a = operand_value(g, gen_set(g, (enum vtype)(V_SS + rnd_below(&g->rnd, 3))));
            break;
        default:
            action->section = SET;
            gen_set_action(g, table, action);
        }
        paths[update->len++] = action->target;
    }
    return update;
}

struct projection gen_projection(struct gen *g, struct otable *table)
{
    struct projection projection = {.len = 0};

    for (int tries = rnd_below(&g->rnd, PATHS_MAX) + 1; tries > 0; tries--) {
        struct path path = gen_path(g, table, true);

        if (!clashes(projection.paths, projection.len, &path))
            projection.paths[projection.len++] = path;
    }
    return projection;
}
