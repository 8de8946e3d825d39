/*
 * backup/chain.h: a backup as it is in its place: its manifest, the list of its objects, and its
 * segments in their order.
 */
#ifndef HF_BACKUP_CHAIN_H
#define HF_BACKUP_CHAIN_H

#include "backup/manifest.h"

/* An object as a list has it. */
struct chain_object {
    struct form_head head; /* as far as its name tells */
    uint64_t size;
};

/* A long chain has a million segments and more: who ships lists no more of them than it needs. */
enum chain_lists {
    CHAIN_NO_LISTS,
    CHAIN_ALL,
    CHAIN_NEWEST, /* segments that may be there behind those that the manifest has */
    CHAIN_OLD     /* `others`; not all of them where lists are in the order of names */
};

struct chain {
    struct hf__objects *objects;
    const struct form *form;
    enum chain_lists lists;
    bool is_past; /* while it is listed: what follows counts */
    bool found;   /* there is a backup */
    struct manifest manifest;
    struct hf__buf logs; /* struct chain_object: segments that count, by seq */
    struct hf__buf
        snapshots;         /* struct chain_object: parts of snapshots that are listed, in order */
    struct hf__buf others; /* struct chain_object: what nobody needs any more */
    uint64_t manifests;    /* how many there are */
};

static inline size_t chain_len(const struct hf__buf *list)
{
    return list->len / sizeof(struct chain_object);
}
static inline const struct chain_object *chain_at(const struct hf__buf *list, size_t i)
{
    assert(i < chain_len(list));
    return (const struct chain_object *)(const void *)list->ptr + i;
}

/*
 * Read the newest manifest, if there is one, and then what `lists` says. The manifest is in the
 * scope, lists are not.
 *
 * HF_CORRUPT  the newest manifest is damaged, or there are objects and none of them
 */
enum hf_status hf__chain_load(struct hf_scope *s, struct hf__objects *objects,
                              const struct form *form, enum chain_lists lists, struct chain *chain);

/* Free the lists of hf__chain_load(). */
void hf__chain_free(struct chain *chain);

/* Get an object and check it. The message of an error has its name. */
enum hf_status hf__chain_get(struct hf_scope *s, struct hf__objects *objects,
                             const struct form *form, const struct chain_object *object,
                             struct form_head *head, struct hf_bytes *payload,
                             uint8_t hash[FORM_HASH]);

/* ---- segments in their order ----------------------------------------------------------------- */

/* Where a walk over segments is. Begin with hf__walk_begin(). */
struct chain_walk {
    const struct chain *chain;
    size_t next; /* index in the list */
    struct backup_tail at;
    bool known; /* at.hash is that of the segment before */
};

/* Begin behind the segment `seq`, which ended with change `last`. */
void hf__walk_begin(const struct chain *chain, uint64_t seq, uint64_t last,
                    struct chain_walk *walk);

/*
 * The next segment, checked against the one before it. *found is false at the end of the chain:
 * then everything is there that the manifest says. The payload lives in the scope.
 *
 * HF_CORRUPT  it is damaged, missing, or not the one that follows; the message names it
 */
enum hf_status hf__walk_next(struct hf_scope *s, struct chain_walk *walk, bool *found,
                             struct form_head *head, struct hf_bytes *payload);

/* The end of the chain as it is: the manifest's, and segments behind that, which are read. Damage
 * behind the manifest's end ends the chain. */
enum hf_status hf__chain_tail(struct hf_scope *s, const struct chain *chain,
                              struct backup_tail *tail);

/* The newest moment that a restore can make, once everything is verified. */
int64_t hf__chain_newest(const struct chain *chain);

#endif
