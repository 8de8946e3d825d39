/*
 * store/private.h: what the kinds of store share: a table of functions, and the form of a batch.
 *
 * A store, its iterators and its batches start with what dispatch needs; the kind has the rest.
 */
#ifndef HF_STORE_PRIVATE_H
#define HF_STORE_PRIVATE_H

#include <stdatomic.h>

#include "store/store.h"

struct store_kind {
    void (*close)(struct hf__store *store);
    enum hf_status (*get)(struct hf_scope *s, struct hf__store *store,
                          const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                          struct hf_bytes *value);
    enum hf_status (*snapshot_open)(struct hf_scope *s, struct hf__store *store,
                                    struct hf__store_snapshot **snapshot);
    void (*snapshot_close)(struct hf__store *store, struct hf__store_snapshot *snapshot);
    enum hf_status (*iter_open)(struct hf_scope *s, struct hf__store *store,
                                const struct hf__store_snapshot *snapshot,
                                const struct store_range *range, struct hf__store_iter **iter);
    enum hf_status (*iter_next)(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                struct hf_bytes *key, struct hf_bytes *value);
    void (*iter_close)(struct hf__store_iter *iter);
    enum hf_status (*write)(struct hf_scope *s, struct hf__store *store,
                            const struct store_batch *batch, uint64_t *ticket);
    enum hf_status (*sync)(struct hf_scope *s, struct hf__store *store, uint64_t ticket);
    uint64_t (*written)(struct hf__store *store);
    uint64_t (*durable)(struct hf__store *store);
    void (*stats)(struct hf__store *store, struct store_stats *stats);
    enum hf_status (*verify)(struct hf_scope *s, struct hf__store *store,
                             const struct store_watch *watch);
    /* NULL, all four: it has no changes to read */
    enum hf_status (*changes)(struct hf_scope *s, struct hf__store *store,
                              struct store_changes *changes, uint64_t upto, size_t bytes,
                              store_change_fn *fn, void *user);
    void (*changes_release)(struct hf__store *store, uint64_t upto);
    enum hf_status (*snapshot_at)(struct hf_scope *s, struct hf__store *store,
                                  struct hf__store_snapshot **snapshot, uint64_t *ticket);
    uint64_t (*id)(struct hf__store *store);
};

/* The first member of every store. */
struct hf__store {
    const struct store_kind *kind;
    struct hf_env env;       /* whole */
    atomic_bool rolled_back; /* see hf__store_is_rolled_back() */
};

/* The first member of every iterator. */
struct hf__store_iter {
    struct hf__store *store;
};

/* ---- batches -------------------------------------------------------------------------------- */

enum batch_kind { BATCH_PUT = 1, BATCH_DELETE = 2, BATCH_DELETE_RANGE = 3 };

struct batch_op {
    uint8_t kind;
    bool fresh; /* a put of a key that had no value */
    uint8_t head_len;
    uint8_t head[BATCH_HEAD_MAX]; /* the value of a put begins with this */
    struct hf_bytes key;          /* or the lower end of a range */
    struct hf_bytes body;         /* or the upper end of a range, which is not in it */
};

/* The change at `i`, from 0 on. */
static inline const struct batch_op *batch_at(const struct store_batch *batch, size_t i)
{
    assert(i < batch->count && batch->ops.len == batch->count * sizeof(struct batch_op));
    return (const struct batch_op *)(const void *)batch->ops.ptr + i;
}

static inline struct hf_bytes batch_head(const struct batch_op *op)
{
    return hf_bytes_of(op->head, op->head_len);
}

#endif
