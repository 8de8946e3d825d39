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

struct faults_store {
    struct hf__store base;
    struct hf__store *inner;
    struct store_faults *faults;
    atomic_bool stopped;
    atomic_ullong durable; /* the newest ticket that was synced */
};

struct faults_iter {
    struct hf__store_iter base;
    struct hf__store_iter *inner;
};

static struct faults_store *faults_store_of(struct hf__store *store)
{
    return (struct faults_store *)store;
}

/* Count a call; true when it is the one that fails. */
static bool is_struck(struct faults_store *wrapper)
{
    uint64_t call = __atomic_add_fetch(&wrapper->faults->calls, 1, __ATOMIC_RELAXED);

    return call == __atomic_load_n(&wrapper->faults->fail_at, __ATOMIC_RELAXED);
}

static enum hf_status fail_injected(struct hf_scope *s, struct faults_store *wrapper,
                                    const char *what)
{
    enum hf_status status = wrapper->faults->status ? wrapper->faults->status : HF_IO;

    wrapper->faults->struck = what;
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    return hf__fail(s, status, "Injected fault: the %s failed", what);
}

static void faults_close(struct hf__store *store)
{
    struct faults_store *wrapper = faults_store_of(store);
    struct hf_env env = store->env;

    hf__store_close(wrapper->inner);
    hf__env_free(&env, wrapper, sizeof(*wrapper));
}

static enum hf_status faults_get(struct hf_scope *s, struct hf__store *store,
                                 const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                                 struct hf_bytes *value)
{
    struct faults_store *wrapper = faults_store_of(store);

    if (is_struck(wrapper))
        return fail_injected(s, wrapper, "get");
    return hf__store_get(s, wrapper->inner, snapshot, key, value);
}

static enum hf_status faults_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                           struct hf__store_snapshot **snapshot)
{
    struct faults_store *wrapper = faults_store_of(store);

    if (is_struck(wrapper))
        return fail_injected(s, wrapper, "snapshot");
    return hf__store_snapshot_open(s, wrapper->inner, snapshot);
}

static void faults_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    hf__store_snapshot_close(faults_store_of(store)->inner, snapshot);
}

static enum hf_status faults_iter_open(struct hf_scope *s, struct hf__store *store,
                                       const struct hf__store_snapshot *snapshot,
                                       const struct store_range *range,
                                       struct hf__store_iter **iter)
{
    struct faults_store *wrapper = faults_store_of(store);
    struct faults_iter *mine;
    enum hf_status status;

    if (is_struck(wrapper))
        return fail_injected(s, wrapper, "iterator");
    mine = hf__env_alloc(&store->env, sizeof(*mine));
    if (!mine)
        return hf__fail_nomem(s);
    mine->base.store = store;
    status = hf__store_iter_open(s, wrapper->inner, snapshot, range, &mine->inner);
    if (status != HF_OK)
        hf__env_free(&store->env, mine, sizeof(*mine));
    else
        *iter = &mine->base;
    return status;
}

static enum hf_status faults_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                       struct hf_bytes *key, struct hf_bytes *value)
{
    struct faults_store *wrapper = faults_store_of(iter->store);

    if (is_struck(wrapper))
        return fail_injected(s, wrapper, "step");
    return hf__store_iter_next(s, ((struct faults_iter *)iter)->inner, found, key, value);
}

static void faults_iter_close(struct hf__store_iter *iter)
{
    struct faults_iter *mine = (struct faults_iter *)iter;
    struct hf__store *store = iter->store;

    hf__store_iter_close(mine->inner);
    hf__env_free(&store->env, mine, sizeof(*mine));
}

static enum hf_status faults_write(struct hf_scope *s, struct hf__store *store,
                                   const struct store_batch *batch, uint64_t *ticket)
{
    struct faults_store *wrapper = faults_store_of(store);
    bool strike = is_struck(wrapper);
    enum hf_status status;

    if (atomic_load(&wrapper->stopped))
        return hf__fail(s, HF_STOPPED, "Writes are stopped after an injected fault");
    if (!strike)
        return hf__store_write(s, wrapper->inner, batch, ticket);
    if (wrapper->faults->after)
        TRY(hf__store_write(s, wrapper->inner, batch, ticket));
    *ticket = 0;
    status = fail_injected(s, wrapper, "write");
    hf__scope_error_edit(s)->may_have_happened = status == HF_IO;
    if (status == HF_IO)
        atomic_store(&wrapper->stopped, true);
    return status;
}

static enum hf_status faults_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    struct faults_store *wrapper = faults_store_of(store);
    enum hf_status status;

    if (!is_struck(wrapper)) {
        unsigned long long durable = atomic_load(&wrapper->durable);

        if (ticket > durable && atomic_load(&wrapper->stopped)) {
            status = hf__fail(s, HF_IO, "Syncs are stopped after an injected fault");
            hf__scope_error_edit(s)->may_have_happened = true;
            return status;
        }
        TRY(hf__store_sync(s, wrapper->inner, ticket));
        while (durable < ticket &&
               !atomic_compare_exchange_weak(&wrapper->durable, &durable, ticket))
            continue;
        return HF_OK;
    }
    status = fail_injected(s, wrapper, "sync");
    hf__scope_error_edit(s)->may_have_happened = true;
    if (status == HF_IO)
        atomic_store(&wrapper->stopped, true);
    return status;
}

static uint64_t faults_written(struct hf__store *store)
{
    return hf__store_written(faults_store_of(store)->inner);
}

static uint64_t faults_durable(struct hf__store *store)
{
    return atomic_load(&faults_store_of(store)->durable);
}

static void faults_stats(struct hf__store *store, struct store_stats *stats)
{
    hf__store_stats(faults_store_of(store)->inner, stats);
    stats->stopped |= atomic_load(&faults_store_of(store)->stopped);
}

static enum hf_status faults_verify(struct hf_scope *s, struct hf__store *store,
                                    const struct store_watch *watch)
{
    return hf__store_verify(s, faults_store_of(store)->inner, watch);
}

static const struct store_kind faults_kind = {
    .close = faults_close,
    .get = faults_get,
    .snapshot_open = faults_snapshot_open,
    .snapshot_close = faults_snapshot_close,
    .iter_open = faults_iter_open,
    .iter_next = faults_iter_next,
    .iter_close = faults_iter_close,
    .write = faults_write,
    .sync = faults_sync,
    .written = faults_written,
    .durable = faults_durable,
    .stats = faults_stats,
    .verify = faults_verify,
};

enum hf_status hf__store_open_with_faults(struct hf_scope *s, const struct hf_env *env,
                                          struct hf__store *inner, struct store_faults *faults,
                                          struct hf__store **store)
{
    struct hf_env whole = hf__env_fill(env);
    struct faults_store *wrapper = hf__env_alloc(&whole, sizeof(*wrapper));

    *store = NULL;
    if (!wrapper)
        return hf__fail_nomem(s);
    *wrapper = (struct faults_store){.base = {.kind = &faults_kind, .env = whole},
                                     .inner = inner,
                                     .faults = faults};
    *store = &wrapper->base;
    return HF_OK;
}
