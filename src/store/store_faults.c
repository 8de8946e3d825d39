/*
 * store/store_faults.c: a store around another that fails on demand.
 *
 * Gets, snapshots, iterators, their steps, writes and syncs are counted. The call with the number
 * `fail_at` fails as `status` says. A write that fails with HF_IO may have happened, as on a disk:
 * it did when `after` is set. As with a disk, a write or sync that fails with HF_IO stops all later
 * writes.
 */
#include "store/private.h"

#include <stdatomic.h>

struct faulty_store {
    struct hf__store base;
    struct hf__store *inner;
    struct store_faults *faults;
    atomic_bool stopped;
    atomic_ullong durable; /* the newest ticket that was synced */
};

struct faulty_iter {
    struct hf__store_iter base;
    struct hf__store_iter *inner;
};

static struct faulty_store *faulty_of(struct hf__store *store)
{
    return (struct faulty_store *)store;
}

/* Count a call; true when it is the one that fails. */
static bool is_struck(struct faulty_store *faulty)
{
    uint64_t call = __atomic_add_fetch(&faulty->faults->calls, 1, __ATOMIC_RELAXED);

    return call == __atomic_load_n(&faulty->faults->fail_at, __ATOMIC_RELAXED);
}

static enum hf_status fail_injected(struct hf_scope *s, struct faulty_store *faulty,
                                    const char *what)
{
    enum hf_status status = faulty->faults->status ? faulty->faults->status : HF_IO;

    faulty->faults->struck = what;
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    return hf__fail(s, status, "Injected fault: the %s failed", what);
}

static void faulty_close(struct hf__store *store)
{
    struct faulty_store *faulty = faulty_of(store);
    struct hf_env env = store->env;

    hf__store_close(faulty->inner);
    hf__env_free(&env, faulty, sizeof(*faulty));
}

static enum hf_status faulty_get(struct hf_scope *s, struct hf__store *store,
                                 const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                                 struct hf_bytes *value)
{
    struct faulty_store *faulty = faulty_of(store);

    if (is_struck(faulty))
        return fail_injected(s, faulty, "get");
    return hf__store_get(s, faulty->inner, snapshot, key, value);
}

static enum hf_status faulty_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                           struct hf__store_snapshot **snapshot)
{
    struct faulty_store *faulty = faulty_of(store);

    if (is_struck(faulty))
        return fail_injected(s, faulty, "snapshot");
    return hf__store_snapshot_open(s, faulty->inner, snapshot);
}

static void faulty_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    hf__store_snapshot_close(faulty_of(store)->inner, snapshot);
}

static enum hf_status faulty_iter_open(struct hf_scope *s, struct hf__store *store,
                                       const struct hf__store_snapshot *snapshot,
                                       const struct store_range *range,
                                       struct hf__store_iter **iter)
{
    struct faulty_store *faulty = faulty_of(store);
    struct faulty_iter *mine;
    enum hf_status status;

    if (is_struck(faulty))
        return fail_injected(s, faulty, "iterator");
    mine = hf__env_alloc(&store->env, sizeof(*mine));
    if (!mine)
        return hf__fail_nomem(s);
    mine->base.store = store;
    status = hf__store_iter_open(s, faulty->inner, snapshot, range, &mine->inner);
    if (status != HF_OK)
        hf__env_free(&store->env, mine, sizeof(*mine));
    else
        *iter = &mine->base;
    return status;
}

static enum hf_status faulty_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                       struct hf_bytes *key, struct hf_bytes *value)
{
    struct faulty_store *faulty = faulty_of(iter->store);

    if (is_struck(faulty))
        return fail_injected(s, faulty, "step");
    return hf__store_iter_next(s, ((struct faulty_iter *)iter)->inner, found, key, value);
}

static void faulty_iter_close(struct hf__store_iter *iter)
{
    struct faulty_iter *mine = (struct faulty_iter *)iter;
    struct hf__store *store = iter->store;

    hf__store_iter_close(mine->inner);
    hf__env_free(&store->env, mine, sizeof(*mine));
}

static enum hf_status faulty_write(struct hf_scope *s, struct hf__store *store,
                                   const struct store_batch *batch, uint64_t *ticket)
{
    struct faulty_store *faulty = faulty_of(store);
    bool strike = is_struck(faulty);
    enum hf_status status;

    if (atomic_load(&faulty->stopped))
        return hf__fail(s, HF_STOPPED, "Writes are stopped after an injected fault");
    if (!strike)
        return hf__store_write(s, faulty->inner, batch, ticket);
    if (faulty->faults->after)
        TRY(hf__store_write(s, faulty->inner, batch, ticket));
    *ticket = 0;
    status = fail_injected(s, faulty, "write");
    hf__scope_error_edit(s)->may_have_happened = status == HF_IO;
    if (status == HF_IO)
        atomic_store(&faulty->stopped, true);
    return status;
}

static enum hf_status faulty_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    struct faulty_store *faulty = faulty_of(store);
    enum hf_status status;

    if (!is_struck(faulty)) {
        unsigned long long durable = atomic_load(&faulty->durable);

        if (ticket > durable && atomic_load(&faulty->stopped)) {
            status = hf__fail(s, HF_IO, "Syncs are stopped after an injected fault");
            hf__scope_error_edit(s)->may_have_happened = true;
            return status;
        }
        TRY(hf__store_sync(s, faulty->inner, ticket));
        while (durable < ticket &&
               !atomic_compare_exchange_weak(&faulty->durable, &durable, ticket))
            continue;
        return HF_OK;
    }
    status = fail_injected(s, faulty, "sync");
    hf__scope_error_edit(s)->may_have_happened = true;
    if (status == HF_IO)
        atomic_store(&faulty->stopped, true);
    return status;
}

static uint64_t faulty_written(struct hf__store *store)
{
    return hf__store_written(faulty_of(store)->inner);
}

static uint64_t faulty_durable(struct hf__store *store)
{
    return atomic_load(&faulty_of(store)->durable);
}

static void faulty_stats(struct hf__store *store, struct store_stats *stats)
{
    hf__store_stats(faulty_of(store)->inner, stats);
    stats->stopped |= atomic_load(&faulty_of(store)->stopped);
}

static enum hf_status faulty_verify(struct hf_scope *s, struct hf__store *store,
                                    const struct store_watch *watch)
{
    return hf__store_verify(s, faulty_of(store)->inner, watch);
}

static const struct store_kind faulty_kind = {
    .close = faulty_close,
    .get = faulty_get,
    .snapshot_open = faulty_snapshot_open,
    .snapshot_close = faulty_snapshot_close,
    .iter_open = faulty_iter_open,
    .iter_next = faulty_iter_next,
    .iter_close = faulty_iter_close,
    .write = faulty_write,
    .sync = faulty_sync,
    .written = faulty_written,
    .durable = faulty_durable,
    .stats = faulty_stats,
    .verify = faulty_verify,
};

enum hf_status hf__store_open_faulty(struct hf_scope *s, const struct hf_env *env,
                                     struct hf__store *inner, struct store_faults *faults,
                                     struct hf__store **store)
{
    struct hf_env whole = hf__env_fill(env);
    struct faulty_store *faulty = hf__env_alloc(&whole, sizeof(*faulty));

    *store = NULL;
    if (!faulty)
        return hf__fail_nomem(s);
    *faulty = (struct faulty_store){.base = {.kind = &faulty_kind, .env = whole},
                                    .inner = inner,
                                    .faults = faults};
    *store = &faulty->base;
    return HF_OK;
}
