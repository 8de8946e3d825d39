/*
 * store/map.h: an ordered map of bytes in memory, with snapshots for the price of a counter and
 * changes that can be prepared, and then cannot fail. store_memory.c puts a lock around it.
 */
#ifndef HF_STORE_MAP_H
#define HF_STORE_MAP_H

#include "base/base.h"

#include <stdatomic.h>

enum { MAP_HEIGHT_MAX = 16 };

struct map_node;

/* A key and its value, never changed once it is in a map. */
struct map_entry {
    atomic_uint refs;
    uint32_t key_len : 30;
    uint32_t gone : 1;  /* a tombstone: the key has no value. The map treats it like any value */
    uint32_t fresh : 1; /* the key has no value in what lies behind this map */
    uint32_t value_len;
    uint8_t bytes[]; /* key, value */
};

struct map {
    const struct hf_env *env;
    struct map_node *root; /* NULL: empty */
    atomic_size_t bytes;   /* all memory of this map, old states that are still held included */
};

/* The keys from `lower` to `upper`, which belongs to them when `closed`. */
struct map_span {
    struct hf_bytes lower;
    struct hf_bytes upper;
    bool closed;
};

static inline struct hf_bytes map_key(const struct map_entry *entry)
{
    return hf_bytes_of(entry->bytes, entry->key_len);
}

static inline struct hf_bytes map_value(const struct map_entry *entry)
{
    return hf_bytes_of(entry->bytes + entry->key_len, entry->value_len);
}

void hf__map_entry_release(struct map *map, struct map_entry *entry);

/* An entry that belongs to no map yet, so that entries can be made before it is known where they
 * go. Its env is that of the map, which adopts it before it is put there. The value is head and
 * body. */
struct map_entry *hf__map_entry_make(const struct hf_env *env, struct hf_bytes key,
                                     struct hf_bytes head, struct hf_bytes body);
void hf__map_entry_adopt(struct map *map, const struct map_entry *entry);
void hf__map_entry_disown(struct map *map, const struct map_entry *entry);
void hf__map_entry_drop(const struct hf_env *env, struct map_entry *entry);

/* ---- reading: on the map's root while no one writes, or on one that was retained ------------ */

struct map_node *hf__map_retain(struct map_node *root);
void hf__map_release(struct map *map, struct map_node *root);

/* The entry of `key`, or NULL. */
const struct map_entry *hf__map_find(const struct map_node *root, struct hf_bytes key);

/* A place between two entries of a root. */
struct map_cursor {
    int depth; /* of the leaf; -1: there is nothing in this direction */
    const struct map_node *nodes[MAP_HEIGHT_MAX];
    int at[MAP_HEIGHT_MAX];
};

/* Place the cursor before the first entry whose key is >= `key`. */
void hf__map_seek(struct map_cursor *cursor, const struct map_node *root, struct hf_bytes key);
/* Place it behind the last entry of all. */
void hf__map_seek_end(struct map_cursor *cursor, const struct map_node *root);
/* Step over an entry and return it; NULL at the end. */
const struct map_entry *hf__map_next(struct map_cursor *cursor);
const struct map_entry *hf__map_prev(struct map_cursor *cursor);

/* A walk over the keys in [lower, upper) of a root, forward or in reverse; an empty upper is the
 * end of all. */
struct map_walk {
    struct map_cursor cursor;
    bool reverse;
    struct hf_bytes stop; /* first key that is out, or in reverse the last that is in */
};

/* The bound at which the walk ends has to outlive it. */
void hf__map_walk_begin(struct map_walk *walk, const struct map_node *root, struct hf_bytes lower,
                        struct hf_bytes upper, bool reverse);
/* The next entry; NULL at the end, and from then on. */
const struct map_entry *hf__map_walk_next(struct map_walk *walk);

/* Copy the value of an entry into the scope. *value is not changed when the entry is NULL or gone.
 */
enum hf_status hf__map_copy_value(struct hf_scope *s, const struct map_entry *entry,
                                  struct hf_bytes *value);

/* ---- writing: see "A batch" in map.c -------------------------------------------------------- */

bool hf__map_prepare_put(struct map *map, struct map_entry *entry);
bool hf__map_prepare_delete(struct map *map, const struct map_span *span);
void hf__map_put(struct map *map, struct map_entry *entry);
/* The same in a map in front of others. False: the entry is a tombstone and there is nothing that
 * it would hide, so the slot is dead now, and the entry still belongs to the caller. */
bool hf__map_put_over(struct map *map, struct map_entry *entry);
void hf__map_delete(struct map *map, const struct map_span *span);
void hf__map_sweep(struct map *map, const struct map_span *span);

/* Do all the invariants of map.c hold? */
bool hf__map_check(const struct map *map);

#endif
