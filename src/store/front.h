/*
 * store/front.h: the newest state of a store on disk: what was written lately, in memory, in front
 * of tables that have all the rest.
 *
 *     active   a map that takes changes
 *     frozen   a map that takes none any more and is being written as a table; or none
 *     tables   what was written before
 *
 * A key is looked up in this order; an entry that is gone ends the search. Who has written the
 * frozen map as a table says so, and it goes.
 */
#ifndef HF_STORE_FRONT_H
#define HF_STORE_FRONT_H

#include <pthread.h>

#include "store/tables.h"

struct front_layer; /* a map with its newest change */
struct front_walk;  /* over a range of a view; begins with the struct hf__store_iter of a store */

struct front {
    const struct hf_env *env;
    pthread_rwlock_t lock; /* guards the next three, and what is in the active map; held for as long
                              as a batch is applied */
    struct front_layer *active;
    struct front_layer *frozen;
    struct tables_state *tables;
    atomic_size_t active_bytes; /* of the active map, after the newest change */
};

/* A state that stays as it is. */
struct front_view {
    struct front_layer *active;
    struct map_node *root; /* of the active map, then */
    struct front_layer *frozen;
    struct tables_state *tables;
};

/* `tables` is taken over, also by a failure: HF_NOMEM. */
enum hf_status hf__front_open(struct hf_scope *s, struct front *front, const struct hf_env *env,
                              struct tables_state *tables);
/* No view is open. One that was never opened, and is 0, is accepted. */
void hf__front_close(struct front *front);

/* Bytes of memory: of the active map, of the frozen one, and of both. */
size_t hf__front_active_bytes(struct front *front);
size_t hf__front_frozen_bytes(struct front *front);
size_t hf__front_bytes(struct front *front);

/* Is there a frozen map? */
bool hf__front_is_frozen(struct front *front);

/* Whether the maps are as they should be. */
bool hf__front_check(struct front *front);

/* ---- reading -------------------------------------------------------------------------------- */

void hf__front_view(struct front *front, struct front_view *view);
void hf__front_view_close(struct front_view *view);

/* The value in the scope; value->ptr stays as it is when there is none. `view` NULL: the newest. */
enum hf_status hf__front_get(struct hf_scope *s, struct front *front, const struct front_view *view,
                             struct hf_bytes key, struct hf_bytes *value);

/* As in store.h. The view, if there is one, stays open meanwhile. */
enum hf_status hf__front_walk_open(struct hf_scope *s, struct front *front,
                                   const struct front_view *view, const struct store_range *range,
                                   struct front_walk **walk);
enum hf_status hf__front_walk_next(struct hf_scope *s, struct front_walk *walk, bool *found,
                                   struct hf_bytes *key, struct hf_bytes *value);
void hf__front_walk_close(struct front_walk *walk);

/* ---- writing: one thread at a time --------------------------------------------------------------
 */

/*
 * Put the entries, of which later ones win. Prepare does all that can fail, and when it has not,
 * nobody reads until apply or undo, each of which takes over the entries. False: out of memory, and
 * the entries are still the caller's.
 */
bool hf__front_prepare(struct front *front, struct map_entry *const *entries, size_t len);
void hf__front_apply(struct front *front, struct map_entry **entries, size_t len, uint64_t change);
void hf__front_undo(struct front *front, struct map_entry *const *entries, size_t len);

/* Freeze the active map, if anything was written to it; there is no frozen one. False: out of
 * memory. */
bool hf__front_freeze(struct front *front);

/* What is frozen (maybe nothing, of many changes), and its newest change. False: there is none. */
bool hf__front_frozen(struct front *front, const struct map_node **root, uint64_t *last);

/* Have what `other` has, and close that. */
void hf__front_replace(struct front *front, struct front *other);

/* Open the tables again, as hf__tables_reopen() has it. Readers wait meanwhile. */
bool hf__front_reopen(struct front *front, struct tables *tables);

/* The frozen map is in `tables`, which are taken over. */
void hf__front_settle(struct front *front, struct tables_state *tables);

#endif
