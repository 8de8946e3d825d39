/*
 * store/store.c: the calls of store.h, handed to the kind of store at hand, and batches.
 *
 * A batch is an array of changes. It points at keys and values: at the caller's, or at copies in
 * its scope. So the bytes of an item are copied only to where they stay: to the map, and on disk to
 * the journal's buffer as well. A change is added whole or not at all.
 */
#include "store/private.h"

enum { PART_MAX = UINT32_MAX / 4 }; /* bytes of a key, a head or a body */

/* ---- batches -------------------------------------------------------------------------------- */

static struct batch_op *batch_add(struct store_batch *batch, enum batch_kind kind,
                                  struct hf_bytes key, struct hf_bytes body)
{
    struct batch_op *op;

    assert(batch->ops.scope);
    assert(key.len || kind == BATCH_DELETE_RANGE);
    if (key.len > PART_MAX || body.len > PART_MAX)
        batch->ops.failed = true;
    op = (struct batch_op *)(void *)hf__buf_reserve(&batch->ops, sizeof(*op));
    if (!op)
        return NULL;
    *op = (struct batch_op){.kind = (uint8_t)kind, .key = key, .body = body};
    batch->ops.len += sizeof(*op);
    batch->count++;
    batch->bytes += key.len + body.len;
    return op;
}

/* Add a change of which the caller keeps nothing. */
static void batch_copy(struct store_batch *batch, enum batch_kind kind, struct hf_bytes key,
                       struct hf_bytes body)
{
    uint8_t *to = NULL;

    if (!batch->ops.failed && key.len <= PART_MAX && body.len <= PART_MAX)
        to = hf_scope_alloc(batch->ops.scope, key.len + body.len);
    if (!to) {
        batch->ops.failed = true;
        return;
    }
    if (key.len)
        memcpy(to, key.ptr, key.len);
    if (body.len)
        memcpy(to + key.len, body.ptr, body.len);
    (void)batch_add(batch, kind, hf_bytes_of(to, key.len), hf_bytes_of(to + key.len, body.len));
}

void hf__batch_put(struct store_batch *batch, struct hf_bytes key, struct hf_bytes value)
{
    batch_copy(batch, BATCH_PUT, key, value);
}

void hf__batch_put_parts(struct store_batch *batch, struct hf_bytes key, struct hf_bytes head,
                         struct hf_bytes body, bool fresh)
{
    struct batch_op *op = batch_add(batch, BATCH_PUT, key, body);

    assert(head.len <= BATCH_HEAD_MAX);
    if (!op)
        return;
    op->fresh = fresh;
    op->head_len = (uint8_t)head.len;
    if (head.len)
        memcpy(op->head, head.ptr, head.len);
    batch->bytes += head.len;
}

void hf__batch_delete(struct store_batch *batch, struct hf_bytes key)
{
    batch_copy(batch, BATCH_DELETE, key, hf_bytes_of(NULL, 0));
}

void hf__batch_delete_range(struct store_batch *batch, struct hf_bytes lower, struct hf_bytes upper)
{
    /* An empty range is no change, and neither is one that is upside down. */
    if (bytes_compare(lower.ptr, lower.len, upper.ptr, upper.len) < 0)
        batch_copy(batch, BATCH_DELETE_RANGE, lower, upper);
}

/* ---- dispatch ------------------------------------------------------------------------------- */

bool hf__store_is_rolled_back(const struct hf__store *store)
{
    return atomic_load(&store->rolled_back);
}

void hf__store_close(struct hf__store *store)
{
    if (store)
        store->kind->close(store);
}

enum hf_status hf__store_get(struct hf_scope *s, struct hf__store *store,
                             const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                             struct hf_bytes *value)
{
    assert(key.len && key.ptr);
    *value = hf_bytes_of(NULL, 0);
    return store->kind->get(s, store, snapshot, key, value);
}

enum hf_status hf__store_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                       struct hf__store_snapshot **snapshot)
{
    *snapshot = NULL;
    return store->kind->snapshot_open(s, store, snapshot);
}

void hf__store_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    if (snapshot)
        store->kind->snapshot_close(store, snapshot);
}

enum hf_status hf__store_iter_open(struct hf_scope *s, struct hf__store *store,
                                   const struct hf__store_snapshot *snapshot,
                                   const struct store_range *range, struct hf__store_iter **iter)
{
    *iter = NULL;
    return store->kind->iter_open(s, store, snapshot, range, iter);
}

enum hf_status hf__store_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                   struct hf_bytes *key, struct hf_bytes *value)
{
    *found = false;
    return iter->store->kind->iter_next(s, iter, found, key, value);
}

void hf__store_iter_close(struct hf__store_iter *iter)
{
    if (iter)
        iter->store->kind->iter_close(iter);
}

enum hf_status hf__store_write(struct hf_scope *s, struct hf__store *store,
                               const struct store_batch *batch, uint64_t *ticket)
{
    *ticket = 0;
    if (batch->ops.failed)
        return hf__fail_nomem(s);
    return store->kind->write(s, store, batch, ticket);
}

enum hf_status hf__store_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    return store->kind->sync(s, store, ticket);
}

uint64_t hf__store_written(struct hf__store *store)
{
    return store->kind->written(store);
}

uint64_t hf__store_durable(struct hf__store *store)
{
    return store->kind->durable(store);
}

void hf__store_stats(struct hf__store *store, struct store_stats *stats)
{
    *stats = (struct store_stats){0};
    store->kind->stats(store, stats);
}

enum hf_status hf__store_verify(struct hf_scope *s, struct hf__store *store,
                                const struct store_watch *watch)
{
    return store->kind->verify(s, store, watch);
}

/* ---- changes -------------------------------------------------------------------------------- */

static enum hf_status fail_no_journal(struct hf_scope *s)
{
    return hf__fail(s, HF_UNSUPPORTED,
                    "A database in memory has no journal, and so no changes to read");
}

enum hf_status hf__store_changes(struct hf_scope *s, struct hf__store *store,
                                 struct store_changes *changes, uint64_t upto, size_t bytes,
                                 store_change_fn *fn, void *user)
{
    assert(upto <= hf__store_durable(store));
    return store->kind->changes ? store->kind->changes(s, store, changes, upto, bytes, fn, user)
                                : fail_no_journal(s);
}

void hf__store_changes_release(struct hf__store *store, uint64_t upto)
{
    if (store->kind->changes_release)
        store->kind->changes_release(store, upto);
}

enum hf_status hf__store_snapshot_at(struct hf_scope *s, struct hf__store *store,
                                     struct hf__store_snapshot **snapshot, uint64_t *ticket)
{
    *snapshot = NULL;
    *ticket = 0;
    return store->kind->snapshot_at ? store->kind->snapshot_at(s, store, snapshot, ticket)
                                    : fail_no_journal(s);
}

uint64_t hf__store_id(struct hf__store *store)
{
    return store->kind->id ? store->kind->id(store) : 0;
}
