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
};

/* The first member of every store. */
struct hf__store {
    const struct store_kind *kind;
    struct hf_env env;   /* whole */
    atomic_bool settled; /* see hf__store_is_settled() */
};

/* The first member of every iterator. */
struct hf__store_iter {
    struct hf__store *store;
};

/* ---- batches -------------------------------------------------------------------------------- */

enum batch_kind { BATCH_PUT = 1, BATCH_DELETE = 2, BATCH_DELETE_RANGE = 3 };

struct batch_op {
    enum batch_kind kind;
    bool fresh;            /* a put of a key that had no value */
    struct hf_bytes key;   /* or the lower end of a range */
    struct hf_bytes value; /* or the upper end of a range, which is not in it */
};

/* Read the change at *at and move *at behind it; false at the end. */
bool hf__batch_next(const struct store_batch *batch, size_t *at, struct batch_op *op);

#endif
