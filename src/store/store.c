/*
 * store/store.c: the calls of store.h, handed to the kind of store at hand, and the form of a
 * batch.
 *
 * A batch is its changes one after the other in one buffer:
 *
 *     1 byte    kind; with the highest bit: fresh
 *     4 bytes   length of the key, little-endian
 *     4 bytes   length of the value
 *     ...       key, value
 *
 * It never leaves the process, so it has no version and no checksum. A change is appended whole or
 * not at all: room for all of it is taken first.
 */
#include "store/private.h"

enum { OP_HEADER = 9, OP_FRESH = 0x80 };

/* ---- batches -------------------------------------------------------------------------------- */

static uint8_t *append(uint8_t *to, struct hf_bytes bytes)
{
    if (bytes.len)
        memcpy(to, bytes.ptr, bytes.len);
    return to + bytes.len;
}

/* The value comes in two parts, so that nobody has to join them first. */
static void batch_add(struct store_batch *batch, uint8_t kind, struct hf_bytes key,
                      struct hf_bytes head, struct hf_bytes body)
{
    uint8_t *to;

    assert(key.len || kind == BATCH_DELETE_RANGE);
    if (key.len > UINT32_MAX / 4 || head.len > UINT32_MAX / 4 || body.len > UINT32_MAX / 4) {
        batch->ops.failed = true;
        return;
    }
    to = hf__buf_reserve(&batch->ops, OP_HEADER + key.len + head.len + body.len);
    if (!to)
        return;
    to[0] = kind;
    store_u32le(to + 1, (uint32_t)key.len);
    store_u32le(to + 5, (uint32_t)(head.len + body.len));
    append(append(append(to + OP_HEADER, key), head), body);
    batch->ops.len += OP_HEADER + key.len + head.len + body.len;
    batch->count++;
}

void hf__batch_put(struct store_batch *batch, struct hf_bytes key, struct hf_bytes value)
{
    batch_add(batch, BATCH_PUT, key, value, hf_bytes_of(NULL, 0));
}

void hf__batch_put_parts(struct store_batch *batch, struct hf_bytes key, struct hf_bytes head,
                         struct hf_bytes body, bool fresh)
{
    batch_add(batch, (uint8_t)(fresh ? BATCH_PUT | OP_FRESH : BATCH_PUT), key, head, body);
}

void hf__batch_delete(struct store_batch *batch, struct hf_bytes key)
{
    batch_add(batch, BATCH_DELETE, key, hf_bytes_of(NULL, 0), hf_bytes_of(NULL, 0));
}

void hf__batch_delete_range(struct store_batch *batch, struct hf_bytes lower, struct hf_bytes upper)
{
    /* An empty range is no change, and RocksDB would refuse one that is upside down. */
    if (bytes_compare(lower.ptr, lower.len, upper.ptr, upper.len) < 0)
        batch_add(batch, BATCH_DELETE_RANGE, lower, upper, hf_bytes_of(NULL, 0));
}

bool hf__batch_next(const struct store_batch *batch, size_t *at, struct batch_op *op)
{
    const uint8_t *from;

    if (*at == batch->ops.len)
        return false;
    from = batch->ops.ptr + *at;
    assert(batch->ops.len - *at >= OP_HEADER);
    op->kind = from[0] & ~OP_FRESH;
    op->fresh = from[0] & OP_FRESH;
    op->key = hf_bytes_of(from + OP_HEADER, load_u32le(from + 1));
    op->value = hf_bytes_of(from + OP_HEADER + op->key.len, load_u32le(from + 5));
    *at += OP_HEADER + op->key.len + op->value.len;
    assert(*at <= batch->ops.len);
    return true;
}

/* ---- dispatch ------------------------------------------------------------------------------- */

bool hf__store_is_settled(const struct hf__store *store)
{
    return atomic_load(&store->settled);
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
    assert(key.len);
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
