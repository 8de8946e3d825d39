/*
 * store/memtable.c: two maps and tables, read as one.
 *
 * A map with all that belongs to it is a layer. A reader of a state references its layers, the root
 * that the active map had, and the state of the tables; so nobody holds the lock between calls, and
 * a layer is freed with its last reader.
 *
 * A plain get looks at the maps under the lock, and at the tables that belonged to them without it.
 *
 * A walk has a place in each of the three and gives the nearest key of them; of equal keys that of
 * the newest layer, and the others are passed over. Keys and values of maps stay where they are as
 * long as the walk has its view; those of tables until the next step there, which is therefore made
 * when the next entry is asked for. After an error a walk is over.
 *
 * What always holds:
 *
 *  (1) Every change in `frozen` is older than every change in `active`, and `tables` has none that
 *      is newer than one in `frozen`, as long as there is a frozen map.
 *  (2) The frozen map does not change.
 *  (3) A key whose entry in the active map is fresh has no value in the frozen map and the tables.
 *      So when it is deleted the entry goes, instead of one that says that it is gone: what is
 *      written and soon deleted (jobs that are done, entries of an index that move) makes no map
 *      grow and no table, and no walk has to pass over it.
 */
#include "store/memtable.h"

#include <stdatomic.h>

#include "base/assert_held.h"
#include "base/spin_lock.h"
#include "store/private.h"

enum { MAPS = 2 };

struct memtable_layer {
    atomic_uint refs;
    struct map map;
    uint64_t last; /* the newest change in it */
};

struct memtable_walk {
    struct hf__store_iter base; /* its caller's */
    struct hf_env env;
    struct memtable_view own; /* 0 when the view is somebody else's */
    bool reverse;
    struct map_walk maps[MAPS];
    const struct map_entry *heads[MAPS]; /* the next entry of each map, or NULL */
    struct tables_iter *tables;
    bool has_head;               /* the tables have a next entry, with `head` and `value` */
    struct hf_bytes head, value; /* key and value of the next entry of the tables */
    bool step_tables;            /* the caller has that entry: step before the next one */
    size_t size;                 /* of this allocation */
    uint8_t bytes[];             /* a copy of the bound where the walk ends */
};

/* ---- layers --------------------------------------------------------------------------------- */

static struct memtable_layer *layer_new(const struct hf_env *env)
{
    struct memtable_layer *layer = hf__env_alloc(env, sizeof(*layer));

    if (!layer)
        return NULL;
    memset(layer, 0, sizeof(*layer));
    atomic_init(&layer->refs, 1);
    layer->map.env = env;
    return layer;
}

static struct memtable_layer *layer_retain(struct memtable_layer *layer)
{
    if (layer) {
        unsigned refs = atomic_fetch_add_explicit(&layer->refs, 1, memory_order_relaxed);

        assert(refs > 0);
    }
    return layer;
}

static void layer_release(struct memtable_layer *layer)
{
    if (!layer || atomic_fetch_sub_explicit(&layer->refs, 1, memory_order_acq_rel) != 1)
        return;
    hf__map_release(&layer->map, layer->map.root);
    assert(atomic_load(&layer->map.bytes) == 0);
    hf__env_free(layer->map.env, layer, sizeof(*layer));
}

static size_t layer_bytes(struct memtable_layer *layer)
{
    return layer ? atomic_load_explicit(&layer->map.bytes, memory_order_relaxed) : 0;
}

static const struct map_node *layer_root(const struct memtable_layer *layer)
{
    return layer ? layer->map.root : NULL;
}

/* (1). The caller holds the lock for writing. */
static void memtable_check(const struct memtable *memtable)
{
    const struct memtable_layer *active = memtable->active;
    const struct memtable_layer *frozen = memtable->frozen;

    assert(active && active != frozen && memtable->tables);
    assert(atomic_load_explicit(&active->refs, memory_order_relaxed) > 0);
    assert(!frozen || frozen->last);
    assert(!frozen || !active->last || active->last > frozen->last);
}

/* ---- opening and closing -------------------------------------------------------------------- */

enum hf_status hf__memtable_open(struct hf_scope *s, struct memtable *memtable,
                                 const struct hf_env *env, struct tables_state *tables)
{
    *memtable = (struct memtable){.env = env, .active = layer_new(env), .tables = tables};
    atomic_init(&memtable->active_bytes, 0);
    spin_rwlock_init(&memtable->lock);
    return memtable->active ? HF_OK : hf__fail_nomem(s);
}

void hf__memtable_close(struct memtable *memtable)
{
    if (!memtable->env)
        return;
    layer_release(memtable->active);
    layer_release(memtable->frozen);
    hf__tables_release(memtable->tables);
    pthread_rwlock_destroy(&memtable->lock);
}

size_t hf__memtable_active_bytes(struct memtable *memtable)
{
    return atomic_load_explicit(&memtable->active_bytes, memory_order_relaxed);
}

size_t hf__memtable_frozen_bytes(struct memtable *memtable)
{
    size_t bytes;

    spin_rdlock(&memtable->lock);
    bytes = layer_bytes(memtable->frozen);
    pthread_rwlock_unlock(&memtable->lock);
    return bytes;
}

size_t hf__memtable_bytes(struct memtable *memtable)
{
    size_t bytes;

    spin_rdlock(&memtable->lock);
    bytes = layer_bytes(memtable->active) + layer_bytes(memtable->frozen);
    pthread_rwlock_unlock(&memtable->lock);
    return bytes;
}

uint64_t hf__memtable_last(struct memtable *memtable)
{
    uint64_t last;

    spin_rdlock(&memtable->lock);
    last = memtable->active->last;
    if (!last && memtable->frozen)
        last = memtable->frozen->last;
    pthread_rwlock_unlock(&memtable->lock);
    return last;
}

bool hf__memtable_is_frozen(struct memtable *memtable)
{
    bool frozen;

    spin_rdlock(&memtable->lock);
    frozen = memtable->frozen != NULL;
    pthread_rwlock_unlock(&memtable->lock);
    return frozen;
}

bool hf__memtable_check(struct memtable *memtable)
{
    bool good;

    spin_rdlock(&memtable->lock);
    good = hf__map_check(&memtable->active->map) &&
           (!memtable->frozen || hf__map_check(&memtable->frozen->map));
    pthread_rwlock_unlock(&memtable->lock);
    return good;
}

/* ---- reading -------------------------------------------------------------------------------- */

void hf__memtable_view(struct memtable *memtable, struct memtable_view *view)
{
    spin_rdlock(&memtable->lock);
    view->active = layer_retain(memtable->active);
    view->root = hf__map_retain(memtable->active->map.root);
    view->frozen = layer_retain(memtable->frozen);
    view->tables = hf__tables_retain(memtable->tables);
    pthread_rwlock_unlock(&memtable->lock);
}

void hf__memtable_view_close(struct memtable_view *view)
{
    if (!view->active)
        return;
    hf__map_release(&view->active->map, view->root);
    layer_release(view->active);
    layer_release(view->frozen);
    hf__tables_release(view->tables);
}

static const struct map_entry *entry_find(const struct map_node *root,
                                          const struct memtable_layer *frozen, struct hf_bytes key)
{
    const struct map_entry *entry = hf__map_find(root, key);

    return entry ? entry : hf__map_find(layer_root(frozen), key);
}

enum hf_status hf__memtable_get(struct hf_scope *s, struct memtable *memtable,
                                const struct memtable_view *view, struct hf_bytes key,
                                struct hf_bytes *value)
{
    const struct map_entry *entry;
    struct tables_state *tables;
    enum hf_status status;

    if (view) {
        entry = entry_find(view->root, view->frozen, key);
        return entry ? hf__map_copy_value(s, entry, value)
                     : hf__tables_get(s, view->tables, key, value);
    }
    spin_rdlock(&memtable->lock);
    entry = entry_find(memtable->active->map.root, memtable->frozen, key);
    if (entry) {
        status = hf__map_copy_value(s, entry, value);
        pthread_rwlock_unlock(&memtable->lock);
        return status;
    }
    tables = hf__tables_retain(memtable->tables);
    pthread_rwlock_unlock(&memtable->lock);
    status = hf__tables_get(s, tables, key, value);
    hf__tables_release(tables);
    return status;
}

/* ---- walking -------------------------------------------------------------------------------- */

static void step_map(struct memtable_walk *walk, int map)
{
    walk->heads[map] = hf__map_walk_next(&walk->maps[map]);
}

static enum hf_status step_tables(struct hf_scope *s, struct memtable_walk *walk)
{
    enum hf_status status = HF_OK;

    walk->step_tables = false;
    walk->has_head = false;
    if (walk->tables)
        status = hf__tables_iter_next(s, walk->tables, &walk->has_head, &walk->head, &walk->value);
    if (status != HF_OK) /* ends the walk: the maps alone would be incomplete */
        walk->heads[0] = walk->heads[1] = NULL;
    return status;
}

/* The walk needs a copy of the bound at which it ends. */
static void begin_map(struct memtable_walk *walk, int map, const struct map_node *root,
                      const struct store_range *range)
{
    struct hf_bytes lower = range->lower, upper = range->upper;

    if (range->reverse)
        lower.ptr = walk->bytes;
    else
        upper.ptr = walk->bytes;
    hf__map_walk_begin(&walk->maps[map], root, lower, upper, range->reverse);
    step_map(walk, map);
}

enum hf_status hf__memtable_walk_open(struct hf_scope *s, struct memtable *memtable,
                                      const struct memtable_view *view,
                                      const struct store_range *range, struct memtable_walk **walk)
{
    struct hf_bytes stop = range->reverse ? range->lower : range->upper;
    size_t size = sizeof(struct memtable_walk) + stop.len;
    struct memtable_walk *mine = hf__env_alloc(memtable->env, size);
    enum hf_status status;

    *walk = NULL;
    if (!mine)
        return hf__fail_nomem(s);
    mine->env = *memtable->env;
    mine->size = size;
    mine->reverse = range->reverse;
    mine->own = (struct memtable_view){0};
    if (stop.len)
        memcpy(mine->bytes, stop.ptr, stop.len);
    if (!view) {
        hf__memtable_view(memtable, &mine->own);
        view = &mine->own;
    }
    mine->has_head = false;
    mine->step_tables = true;
    status = hf__tables_iter_open(s, view->tables, range, &mine->tables);
    if (status != HF_OK) {
        hf__memtable_walk_close(mine);
        return status;
    }
    begin_map(mine, 0, view->root, range);
    begin_map(mine, 1, layer_root(view->frozen), range);
    *walk = mine;
    return HF_OK;
}

/* Is a key before another, in the direction of the walk? 0: they are equal. */
static int order_of(const struct memtable_walk *walk, struct hf_bytes a, struct hf_bytes b)
{
    int order = bytes_compare(a.ptr, a.len, b.ptr, b.len);

    return walk->reverse ? -order : order;
}

/* The map with the nearest entry, or -1: the tables. Older entries of the same key are skipped. */
static int walk_nearest(struct memtable_walk *walk)
{
    int best = -1;

    for (int i = 0; i < MAPS; i++) {
        int order;

        if (!walk->heads[i])
            continue;
        if (best >= 0) {
            order = order_of(walk, map_key(walk->heads[i]), map_key(walk->heads[best]));
            if (order == 0)
                step_map(walk, i);
            if (order >= 0)
                continue;
        }
        best = i;
    }
    if (best >= 0 && walk->has_head) {
        int order = order_of(walk, walk->head, map_key(walk->heads[best]));

        if (order < 0)
            return -1;
        walk->step_tables = order == 0;
    }
    return best;
}

enum hf_status hf__memtable_walk_next(struct hf_scope *s, struct memtable_walk *walk, bool *found,
                                      struct hf_bytes *key, struct hf_bytes *value)
{
    *found = false;
    for (;;) {
        const struct map_entry *entry;
        int map;

        if (walk->step_tables)
            TRY(step_tables(s, walk));
        map = walk_nearest(walk);
        if (map < 0 && !walk->has_head)
            return HF_OK;
        if (map < 0) {
            *key = walk->head;
            *value = walk->value;
            walk->step_tables = true;
            break;
        }
        entry = walk->heads[map];
        step_map(walk, map);
        if (entry->gone)
            continue;
        *key = map_key(entry);
        *value = map_value(entry);
        break;
    }
    *found = true;
    return HF_OK;
}

void hf__memtable_walk_close(struct memtable_walk *walk)
{
    struct hf_env env = walk->env;

    hf__tables_iter_close(walk->tables);
    hf__memtable_view_close(&walk->own);
    hf__env_free(&env, walk, walk->size);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* Remove the slots of entries that are not put after all. */
static void entries_sweep(struct map *map, struct map_entry *const *entries, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        struct hf_bytes key = map_key(entries[i]);
        struct map_span span = {.lower = key, .upper = key, .closed = true};

        hf__map_sweep(map, &span);
    }
}

bool hf__memtable_prepare(struct memtable *memtable, struct map_entry *const *entries, size_t len)
{
    struct map *map;
    size_t done = 0;

    spin_wrlock(&memtable->lock);
    map = &memtable->active->map;
    for (size_t i = 0; i < len; i++)
        hf__map_entry_adopt(map, entries[i]);
    while (done < len && hf__map_prepare_put(map, entries[done]))
        done++;
    if (done == len)
        return true;
    entries_sweep(map, entries, done);
    for (size_t i = 0; i < len; i++)
        hf__map_entry_disown(map, entries[i]);
    pthread_rwlock_unlock(&memtable->lock);
    return false;
}

/* Put the entries, which the map takes over. Those that it does not need are collected at the front
 * of the array and released. */
static void put_all(struct map *map, struct map_entry **entries, size_t len)
{
    size_t dead = 0;

    for (size_t i = 0; i < len; i++)
        if (!hf__map_put_over(map, entries[i]))
            entries[dead++] = entries[i];
    entries_sweep(map, entries, dead);
    for (size_t i = 0; i < dead; i++)
        hf__map_entry_release(map, entries[i]);
}

void hf__memtable_apply(struct memtable *memtable, struct map_entry **entries, size_t len,
                        uint64_t change)
{
    assert(change > memtable->active->last);
    put_all(&memtable->active->map, entries, len);
    memtable->active->last = change;
    memtable_check(memtable);
    atomic_store_explicit(&memtable->active_bytes, layer_bytes(memtable->active),
                          memory_order_relaxed);
    pthread_rwlock_unlock(&memtable->lock);
}

bool hf__memtable_freeze(struct memtable *memtable)
{
    struct memtable_layer *layer;

    if (!memtable->active->last)
        return true;
    layer = layer_new(memtable->env);
    if (!layer)
        return false;
    spin_wrlock(&memtable->lock);
    assert(!memtable->frozen);
    memtable->frozen = memtable->active;
    memtable->active = layer;
    atomic_store_explicit(&memtable->active_bytes, 0, memory_order_relaxed);
    memtable_check(memtable);
    if (DEV_CHECKS)
        assert(hf__map_check(&memtable->frozen->map));
    pthread_rwlock_unlock(&memtable->lock);
    return true;
}

bool hf__memtable_frozen(struct memtable *memtable, const struct map_node **root, uint64_t *last)
{
    if (!memtable->frozen)
        return false;
    *root = memtable->frozen->map.root;
    *last = memtable->frozen->last;
    return true;
}

void hf__memtable_replace(struct memtable *memtable, struct memtable *other)
{
    struct memtable_layer *active = memtable->active;
    struct memtable_layer *frozen = memtable->frozen;
    struct tables_state *tables = memtable->tables;

    spin_wrlock(&memtable->lock);
    memtable->active = other->active;
    memtable->frozen = other->frozen;
    memtable->tables = other->tables;
    atomic_store_explicit(&memtable->active_bytes, layer_bytes(memtable->active),
                          memory_order_relaxed);
    memtable_check(memtable);
    pthread_rwlock_unlock(&memtable->lock);
    other->active = active;
    other->frozen = frozen;
    other->tables = tables;
    hf__memtable_close(other);
}

bool hf__memtable_reopen(struct memtable *memtable, struct tables *tables)
{
    bool done;

    spin_wrlock(&memtable->lock);
    hf__tables_release(memtable->tables);
    done = hf__tables_reopen(tables);
    memtable->tables = hf__tables_newest(tables);
    pthread_rwlock_unlock(&memtable->lock);
    return done;
}

void hf__memtable_flushed(struct memtable *memtable, struct tables_state *tables)
{
    struct memtable_layer *layer;
    struct tables_state *older;

    spin_wrlock(&memtable->lock);
    layer = memtable->frozen;
    older = memtable->tables;
    memtable->frozen = NULL;
    memtable->tables = tables;
    memtable_check(memtable);
    pthread_rwlock_unlock(&memtable->lock);
    layer_release(layer);
    hf__tables_release(older);
}
