/*
 * engine/item/change.h: one item's change with all that follows from it, and the batch they go
 * into.
 *
 *     hf__change_set()    an empty set, with room for so many changes
 *     hf__change_key()    for each: the stored key, by which its partition is latched
 *     hf__change_read()   with the latches held: the item as it is
 *     hf__change_add()    `after` is known: everything goes into the batch
 *     hf__change_apply()  the batch is written; then the latches are released
 */
#ifndef HF_ENGINE_ITEM_CHANGE_H
#define HF_ENGINE_ITEM_CHANGE_H

#include "engine/engine.h"
#include "engine/table/schema.h"

/* An item as it is stored, with the size that DynamoDB counts for it. */
struct row {
    struct hf_item item; /* absent: there is none */
    size_t size;
};

/* The row under that stored key. */
enum hf_status hf__row_read(struct hf_scope *s, struct engine *e,
                            const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                            struct row *row);

/* A stored row or index entry, its outline checked; the item points into `stored`. */
enum hf_status hf__row_decode(struct hf_scope *s, struct hf_bytes stored, struct row *row);
void hf__row_encode(struct hf__buf *buf, const struct row *row);

/* The effect of a change on one index: units to charge, and changes of its counts. */
struct index_effect {
    double units;
    int items;
    int64_t bytes;
};

/*
 * One item's change: `before` becomes `after` (either may be absent). hf__change_add() puts into
 * the batch all that it means: the row, index entries, stream record, expiry entry.
 */
struct change {
    struct table *table;
    struct hf_bytes key; /* the stored key */
    struct row before;
    struct row after;
    bool by_service;              /* TTL's deletion */
    bool same;                    /* result: nothing changes, nothing is written */
    double units;                 /* result: capacity units of the table */
    struct index_effect *indexes; /* result: one per index of the table; NULL when `same` */
};

struct change_set {
    struct store_batch batch;
    struct change **changes;
    size_t len;
    size_t cap;
    struct hf__buf records;  /* uint8_t *: where in a key of the batch a sequence number goes */
    struct sequence_use use; /* the numbers, between begin and end */
};
enum hf_status hf__change_set(struct hf_scope *s, size_t cap, struct change_set *set);
/* Fill in the stored key of the item; and, with its latch held, the present item. */
enum hf_status hf__change_key(struct hf_scope *s, struct change *change, struct hf_item item);
enum hf_status hf__change_read(struct hf_scope *s, struct engine *e, struct change *change);
enum hf_status hf__change_add(struct hf_scope *s, struct engine *e, struct change_set *set,
                              struct change *change);

/* Apply the set (latches held): sequence numbers, batch, counts. *ticket is 0 when there was
 * nothing to write. Then the caller unlatches and calls hf__engine_wait_durable(). */
enum hf_status hf__change_apply(struct hf_scope *s, struct engine *e, struct change_set *set,
                                uint64_t *ticket);

#endif
