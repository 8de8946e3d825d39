/*
 * store/store_memory.c: a store in memory: the map of map.c behind a lock.
 *
 * A batch takes the lock for writing, a get for reading. Snapshots and iterators take it for the
 * moment in which they retain the root of the map, and read without it afterwards. So nobody holds
 * the lock between calls: a thread may write while it walks, and writers wait for lookups only.
 *
 * There are no threads and no clocks in here: the same calls give the same answers.
 *
 * What always holds:
 *
 *  (1) A batch applies wholly or, when memory runs out, not at all.
 *  (2) A ticket is the number of batches applied so far; all of them are as durable as memory is.
 */
#include "store/map.h"
#include "store/private.h"

#include <pthread.h>

#include "base/spin_lock.h"

enum { ENTRIES_INLINE = 16 };

struct memory_store {
    struct hf__store base;
    pthread_mutex_t writers; /* taken before the lock is taken for writing */
    pthread_rwlock_t lock;
    struct map map;               /* guarded by lock; what hangs from a retained root is not */
    atomic_uint_fast64_t written; /* batches; changed under lock */
};

struct memory_iter {
    struct hf__store_iter base;
    struct map_node *root; /* retained by this iterator, or NULL: the snapshot's */
    struct map_walk walk;
    size_t size;     /* of this allocation */
    uint8_t bytes[]; /* a copy of the bound where the walk ends */
};

struct memory_snapshot {
    struct map_node *root;
};

static struct memory_store *memory_of(struct hf__store *store)
{
    return (struct memory_store *)store;
}

static void memory_close(struct hf__store *store)
{
    struct memory_store *memory = memory_of(store);
    struct hf_env env = memory->base.env;

    hf__map_release(&memory->map, memory->map.root);
    /* otherwise an iterator or snapshot is still open */
    assert(atomic_load(&memory->map.bytes) == 0);
    pthread_rwlock_destroy(&memory->lock);
    pthread_mutex_destroy(&memory->writers);
    hf__env_free(&env, memory, sizeof(*memory));
}

/* ---- reading -------------------------------------------------------------------------------- */

static void lock_to_write(struct memory_store *memory)
{
    spin_lock(&memory->writers);
    spin_wrlock(&memory->lock);
}

static void unlock_written(struct memory_store *memory)
{
    pthread_rwlock_unlock(&memory->lock);
    pthread_mutex_unlock(&memory->writers);
}

static enum hf_status memory_get(struct hf_scope *s, struct hf__store *store,
                                 const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                                 struct hf_bytes *value)
{
    struct memory_store *memory = memory_of(store);
    enum hf_status status;

    if (snapshot)
        return hf__map_copy_value(
            s, hf__map_find(((const struct memory_snapshot *)snapshot)->root, key), value);
    spin_rdlock(&memory->lock);
    status = hf__map_copy_value(s, hf__map_find(memory->map.root, key), value);
    pthread_rwlock_unlock(&memory->lock);
    return status;
}

static struct map_node *newest_root(struct memory_store *memory)
{
    struct map_node *root;

    spin_rdlock(&memory->lock);
    root = hf__map_retain(memory->map.root);
    pthread_rwlock_unlock(&memory->lock);
    return root;
}

static enum hf_status memory_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                           struct hf__store_snapshot **snapshot)
{
    struct memory_snapshot *mine = hf__env_alloc(&store->env, sizeof(*mine));

    if (!mine)
        return hf__fail_nomem(s);
    mine->root = newest_root(memory_of(store));
    *snapshot = (struct hf__store_snapshot *)mine;
    return HF_OK;
}

static void memory_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    struct memory_snapshot *mine = (struct memory_snapshot *)snapshot;

    hf__map_release(&memory_of(store)->map, mine->root);
    hf__env_free(&store->env, mine, sizeof(*mine));
}

static enum hf_status memory_iter_open(struct hf_scope *s, struct hf__store *store,
                                       const struct hf__store_snapshot *snapshot,
                                       const struct store_range *range,
                                       struct hf__store_iter **iter)
{
    struct hf_bytes stop = range->reverse ? range->lower : range->upper;
    size_t size = sizeof(struct memory_iter) + stop.len;
    struct memory_iter *mine = hf__env_alloc(&store->env, size);
    const struct map_node *root;

    if (!mine)
        return hf__fail_nomem(s);
    mine->base.store = store;
    mine->size = size;
    if (stop.len)
        memcpy(mine->bytes, stop.ptr, stop.len);
    stop.ptr = mine->bytes;
    mine->root = snapshot ? NULL : newest_root(memory_of(store));
    root = snapshot ? ((const struct memory_snapshot *)snapshot)->root : mine->root;
    hf__map_walk_begin(&mine->walk, root, range->reverse ? stop : range->lower,
                       range->reverse ? range->upper : stop, range->reverse);
    *iter = &mine->base;
    return HF_OK;
}

static enum hf_status memory_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                       struct hf_bytes *key, struct hf_bytes *value)
{
    const struct map_entry *entry = hf__map_walk_next(&((struct memory_iter *)iter)->walk);

    (void)s;
    if (!entry)
        return HF_OK;
    *found = true;
    *key = map_key(entry);
    *value = map_value(entry);
    return HF_OK;
}

static void memory_iter_close(struct hf__store_iter *iter)
{
    struct memory_iter *mine = (struct memory_iter *)iter;
    struct hf__store *store = iter->store;

    hf__map_release(&memory_of(store)->map, mine->root);
    hf__env_free(&store->env, mine, mine->size);
}

/* ---- writing -------------------------------------------------------------------------------- */

static struct map_span span_of(const struct batch_op *op)
{
    if (op->kind == BATCH_DELETE_RANGE)
        return (struct map_span){.lower = op->key, .upper = op->body};
    return (struct map_span){.lower = op->key, .upper = op->key, .closed = true};
}

/* Do all that can fail for the batch. Sets *done to how many changes are prepared. */
static bool batch_prepare(struct map *map, const struct store_batch *batch,
                          struct map_entry **entries, size_t *done)
{
    for (*done = 0; *done < batch->count; ++*done) {
        const struct batch_op *op = batch_at(batch, *done);
        struct map_span span = span_of(op);
        struct map_entry *entry;

        entries[*done] = NULL;
        if (op->kind != BATCH_PUT) {
            if (!hf__map_prepare_delete(map, &span))
                return false;
            continue;
        }
        entry = hf__map_entry_make(map->env, op->key, batch_head(op), op->body);
        if (!entry)
            return false;
        hf__map_entry_adopt(map, entry);
        if (!hf__map_prepare_put(map, entry)) {
            hf__map_entry_release(map, entry);
            return false;
        }
        entries[*done] = entry;
    }
    return true;
}

static void batch_apply(struct map *map, const struct store_batch *batch,
                        struct map_entry **entries)
{
    for (size_t i = 0; i < batch->count; i++) {
        struct map_span span = span_of(batch_at(batch, i));

        if (entries[i])
            hf__map_put(map, entries[i]);
        else
            hf__map_delete(map, &span);
    }
}

/* Remove the slots that deletes, or puts that failed to be prepared, left dead. */
static void batch_sweep(struct map *map, const struct store_batch *batch, bool puts, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        const struct batch_op *op = batch_at(batch, i);
        struct map_span span = span_of(op);

        if ((op->kind == BATCH_PUT) == puts)
            hf__map_sweep(map, &span);
    }
}

static bool write_locked(struct map *map, const struct store_batch *batch,
                         struct map_entry **entries)
{
    size_t done;

    if (!batch_prepare(map, batch, entries, &done)) {
        for (size_t i = 0; i < done; i++)
            if (entries[i])
                hf__map_entry_release(map, entries[i]);
        batch_sweep(map, batch, true, done);
        return false;
    }
    assert(done == batch->count);
    batch_apply(map, batch, entries);
    batch_sweep(map, batch, false, done);
    return true;
}

static enum hf_status memory_write(struct hf_scope *s, struct hf__store *store,
                                   const struct store_batch *batch, uint64_t *ticket)
{
    struct memory_store *memory = memory_of(store);
    struct map_entry *few[ENTRIES_INLINE];
    struct map_entry **entries = few;
    size_t size = batch->count * sizeof(entries[0]);
    bool done;

    if (batch->count > ENTRIES_INLINE)
        entries = hf__env_alloc(&store->env, size);
    if (!entries)
        return hf__fail_nomem(s);
    assert(batch->ops.len == batch->count * sizeof(struct batch_op));
    lock_to_write(memory);
    done = write_locked(&memory->map, batch, entries);
    if (done)
        *ticket = atomic_fetch_add(&memory->written, 1) + 1;
    unlock_written(memory);
    if (entries != few)
        hf__env_free(&store->env, entries, size);
    return done ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status memory_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    (void)s;
    (void)store;
    (void)ticket;
    return HF_OK;
}

static uint64_t memory_written(struct hf__store *store)
{
    return atomic_load(&memory_of(store)->written);
}

static void memory_stats(struct hf__store *store, struct store_stats *stats)
{
    stats->data_bytes = atomic_load(&memory_of(store)->map.bytes);
    stats->memory_bytes = sizeof(struct memory_store) + stats->data_bytes;
}

static enum hf_status memory_verify(struct hf_scope *s, struct hf__store *store,
                                    const struct store_watch *watch)
{
    struct memory_store *memory = memory_of(store);
    bool good;

    (void)watch; /* there is nothing to read */
    spin_rdlock(&memory->lock);
    good = hf__map_check(&memory->map);
    pthread_rwlock_unlock(&memory->lock);
    return good ? HF_OK : hf__fail(s, HF_CORRUPT, "The map of the memory store is damaged");
}

static const struct store_kind memory_kind = {
    .close = memory_close,
    .get = memory_get,
    .snapshot_open = memory_snapshot_open,
    .snapshot_close = memory_snapshot_close,
    .iter_open = memory_iter_open,
    .iter_next = memory_iter_next,
    .iter_close = memory_iter_close,
    .write = memory_write,
    .sync = memory_sync,
    .written = memory_written,
    .durable = memory_written,
    .stats = memory_stats,
    .verify = memory_verify,
};

enum hf_status hf__store_open_memory(struct hf_scope *s, const struct hf_env *env,
                                     struct hf__store **store)
{
    struct hf_env whole = hf__env_fill(env);
    struct memory_store *memory = hf__env_alloc(&whole, sizeof(*memory));

    *store = NULL;
    if (!memory)
        return hf__fail_nomem(s);
    memset(memory, 0, sizeof(*memory));
    memory->base = (struct hf__store){.kind = &memory_kind, .env = whole};
    memory->map.env = &memory->base.env;
    spin_rwlock_init(&memory->lock);
    pthread_mutex_init(&memory->writers, NULL);
    *store = &memory->base;
    return HF_OK;
}
