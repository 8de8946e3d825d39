/*
 * store/memtable.h: the newest state of a store on disk: what was written lately, in memory, in
 * front of tables that have all the rest.
 *
 *     active   a map that takes changes
 *     frozen   a map that takes none any more and is being written as a table; or none
 *     tables   what was written before
 *
 * A key is looked up in this order; a tombstone ends the search. The frozen map is dropped when it
 * has been written as a table.
 */
#ifndef HF_STORE_MEMTABLE_H
#define HF_STORE_MEMTABLE_H

#include <pthread.h>

#include "store/tables.h"

struct memtable_layer; /* a map with its newest change */
struct memtable_walk; /* over a range of a view; begins with the struct hf__store_iter of a store */

struct memtable {
    const struct hf_env *env;
    pthread_rwlock_t lock; /* guards active, frozen and tables, and the entries of the active map;
                              held while a batch is applied */
    struct memtable_layer *active;
    struct memtable_layer *frozen;
    struct tables_state *tables;
    atomic_size_t active_bytes; /* of the active map, after the newest change */
};

/* A state that does not change. */
struct memtable_view {
    struct memtable_layer *active;
    struct map_node *root; /* of the active map, when the view was opened */
    struct memtable_layer *frozen;
    struct tables_state *tables;
};

/* `tables` is taken over, also by a failure: HF_NOMEM. */
enum hf_status hf__memtable_open(struct hf_scope *s, struct memtable *memtable,
                                 const struct hf_env *env, struct tables_state *tables);
/* No view is open. One that was never opened, and is 0, is accepted. */
void hf__memtable_close(struct memtable *memtable);

/* Bytes of memory: of the active map, of the frozen one, and of both. */
size_t hf__memtable_active_bytes(struct memtable *memtable);
size_t hf__memtable_frozen_bytes(struct memtable *memtable);
size_t hf__memtable_bytes(struct memtable *memtable);

/* The newest change in it; 0: none, or none that is not in tables. */
uint64_t hf__memtable_last(struct memtable *memtable);

/* Is there a frozen map? */
bool hf__memtable_is_frozen(struct memtable *memtable);

/* Do the invariants of the maps hold? */
bool hf__memtable_check(struct memtable *memtable);

/* ---- reading -------------------------------------------------------------------------------- */

void hf__memtable_view(struct memtable *memtable, struct memtable_view *view);
void hf__memtable_view_close(struct memtable_view *view);

/* The value in the scope; value->ptr stays as it is when there is none. `view` NULL: the newest. */
enum hf_status hf__memtable_get(struct hf_scope *s, struct memtable *memtable,
                                const struct memtable_view *view, struct hf_bytes key,
                                struct hf_bytes *value);

/* As in store.h. The view, if there is one, stays open meanwhile. */
enum hf_status hf__memtable_walk_open(struct hf_scope *s, struct memtable *memtable,
                                      const struct memtable_view *view,
                                      const struct store_range *range, struct memtable_walk **walk);
enum hf_status hf__memtable_walk_next(struct hf_scope *s, struct memtable_walk *walk, bool *found,
                                      struct hf_bytes *key, struct hf_bytes *value);
void hf__memtable_walk_close(struct memtable_walk *walk);

/* ---- writing: one thread at a time ---------------------------------------------------------- */

/*
 * Put the entries, of which later ones win. Prepare does all that can fail, and when it has not,
 * nobody reads until apply, which takes over the entries. False: out of memory, and the entries are
 * still the caller's.
 */
bool hf__memtable_prepare(struct memtable *memtable, struct map_entry *const *entries, size_t len);
void hf__memtable_apply(struct memtable *memtable, struct map_entry **entries, size_t len,
                        uint64_t change);

/* Freeze the active map, if anything was written to it; there is no frozen one. False: out of
 * memory. */
bool hf__memtable_freeze(struct memtable *memtable);

/* The root of the frozen map, which may be NULL if all its changes cancel out, and its newest
 * change. False: there is no frozen map. */
bool hf__memtable_frozen(struct memtable *memtable, const struct map_node **root, uint64_t *last);

/* Take over the content of `other`, and close that. */
void hf__memtable_replace(struct memtable *memtable, struct memtable *other);

/* Reopen the tables as hf__tables_reopen() does. Readers wait meanwhile. */
bool hf__memtable_reopen(struct memtable *memtable, struct tables *tables);

/* The frozen map is in `tables`, which are taken over. */
void hf__memtable_flushed(struct memtable *memtable, struct tables_state *tables);

#endif
