/*
 * test/lib/rewind.c: a store that goes back to a state it had before.
 *
 * The marked state is a sorted array of copies. Going back walks the inner store and the array side
 * by side: what is not in the array is deleted, what differs or is missing is put. The walk is over
 * some dozen keys, as many as an input can write in a few requests.
 */
#include "rewind.h"

#include <stdio.h>
#include <stdlib.h>

#include "requests.h"
#include "store/private.h"

struct rewind_entry {
    struct hf_bytes key;
    struct hf_bytes value;
};

struct rewind_store {
    struct hf__store base;
    struct hf__store *inner;
    struct hf_scope *memory; /* of the marked state */
    struct rewind_entry *entries;
    size_t len;
    size_t cap;
    bool wrote[256]; /* a key with this first byte */
};

struct rewind_iter {
    struct hf__store_iter base;
    struct hf__store_iter *inner;
};

static struct rewind_store *rewind_of(struct hf__store *store)
{
    return (struct rewind_store *)store;
}

/* ---- what is handed on ----------------------------------------------------------------------- */

/* The inner store stays: this is for an engine that is opened again and again on it. */
static void rewind_store_close(struct hf__store *store)
{
    (void)store;
}

static enum hf_status rewind_get(struct hf_scope *s, struct hf__store *store,
                                 const struct hf__store_snapshot *snapshot, struct hf_bytes key,
                                 struct hf_bytes *value)
{
    return hf__store_get(s, rewind_of(store)->inner, snapshot, key, value);
}

static enum hf_status rewind_snapshot_open(struct hf_scope *s, struct hf__store *store,
                                           struct hf__store_snapshot **snapshot)
{
    return hf__store_snapshot_open(s, rewind_of(store)->inner, snapshot);
}

static void rewind_snapshot_close(struct hf__store *store, struct hf__store_snapshot *snapshot)
{
    hf__store_snapshot_close(rewind_of(store)->inner, snapshot);
}

static enum hf_status rewind_iter_open(struct hf_scope *s, struct hf__store *store,
                                       const struct hf__store_snapshot *snapshot,
                                       const struct store_range *range,
                                       struct hf__store_iter **iter)
{
    struct rewind_iter *mine = malloc(sizeof(*mine));
    enum hf_status status;

    MUST(mine);
    mine->base.store = store;
    status = hf__store_iter_open(s, rewind_of(store)->inner, snapshot, range, &mine->inner);
    if (status != HF_OK)
        free(mine);
    else
        *iter = &mine->base;
    return status;
}

static enum hf_status rewind_iter_next(struct hf_scope *s, struct hf__store_iter *iter, bool *found,
                                       struct hf_bytes *key, struct hf_bytes *value)
{
    return hf__store_iter_next(s, ((struct rewind_iter *)iter)->inner, found, key, value);
}

static void rewind_iter_close(struct hf__store_iter *iter)
{
    struct rewind_iter *mine = (struct rewind_iter *)iter;

    hf__store_iter_close(mine->inner);
    free(mine);
}

static enum hf_status rewind_write(struct hf_scope *s, struct hf__store *store,
                                   const struct store_batch *batch, uint64_t *ticket)
{
    struct rewind_store *rewind = rewind_of(store);

    for (size_t i = 0; i < batch->count; i++)
        rewind->wrote[batch_at(batch, i)->key.ptr[0]] = true;
    return hf__store_write(s, rewind->inner, batch, ticket);
}

static enum hf_status rewind_sync(struct hf_scope *s, struct hf__store *store, uint64_t ticket)
{
    return hf__store_sync(s, rewind_of(store)->inner, ticket);
}

static uint64_t rewind_written(struct hf__store *store)
{
    return hf__store_written(rewind_of(store)->inner);
}

static uint64_t rewind_durable(struct hf__store *store)
{
    return hf__store_durable(rewind_of(store)->inner);
}

static void rewind_stats(struct hf__store *store, struct store_stats *stats)
{
    hf__store_stats(rewind_of(store)->inner, stats);
}

static enum hf_status rewind_verify(struct hf_scope *s, struct hf__store *store,
                                    const struct store_watch *watch)
{
    return hf__store_verify(s, rewind_of(store)->inner, watch);
}

static const struct store_kind rewind_kind = {
    .close = rewind_store_close,
    .get = rewind_get,
    .snapshot_open = rewind_snapshot_open,
    .snapshot_close = rewind_snapshot_close,
    .iter_open = rewind_iter_open,
    .iter_next = rewind_iter_next,
    .iter_close = rewind_iter_close,
    .write = rewind_write,
    .sync = rewind_sync,
    .written = rewind_written,
    .durable = rewind_durable,
    .stats = rewind_stats,
    .verify = rewind_verify,
};

/* ---- going back ------------------------------------------------------------------------------ */

void rewind_open(struct hf_scope *s, const struct hf_env *env, struct hf__store *inner,
                 struct hf__store **store)
{
    struct rewind_store *rewind = malloc(sizeof(*rewind));

    MUST(rewind);
    (void)s;
    *rewind = (struct rewind_store){.base = {.kind = &rewind_kind, .env = hf__env_fill(env)},
                                    .inner = inner,
                                    .memory = hf_scope_new(NULL)};
    MUST(rewind->memory);
    *store = &rewind->base;
}

void rewind_close(struct hf__store *store)
{
    struct rewind_store *rewind = rewind_of(store);

    hf__store_close(rewind->inner);
    hf_scope_free(rewind->memory);
    free(rewind->entries);
    free(rewind);
}

bool rewind_wrote_in(const struct hf__store *store, uint8_t from, uint8_t to)
{
    const struct rewind_store *rewind = (const struct rewind_store *)store;

    for (unsigned i = from; i <= to; i++) {
        if (rewind->wrote[i])
            return true;
    }
    return false;
}

bool rewind_wrote(const struct hf__store *store)
{
    return rewind_wrote_in(store, 0, UINT8_MAX);
}

void rewind_forget(struct hf__store *store)
{
    memset(rewind_of(store)->wrote, 0, sizeof(rewind_of(store)->wrote));
}

static struct hf_bytes rewind_copy(struct rewind_store *rewind, struct hf_bytes bytes)
{
    uint8_t *copy = hf_scope_alloc(rewind->memory, bytes.len ? bytes.len : 1);

    MUST(copy);
    if (bytes.len)
        memcpy(copy, bytes.ptr, bytes.len);
    return hf_bytes_of(copy, bytes.len);
}

void rewind_mark(struct hf__store *store)
{
    struct rewind_store *rewind = rewind_of(store);
    struct hf_scope *s = hf_scope_new(NULL);
    struct store_range all = {0};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    bool found;

    hf_scope_reset(rewind->memory);
    rewind->len = 0;
    MUST(hf__store_iter_open(s, rewind->inner, NULL, &all, &iter) == HF_OK);
    while (hf__store_iter_next(s, iter, &found, &key, &value) == HF_OK && found) {
        if (rewind->len == rewind->cap) {
            rewind->cap = 2 * rewind->cap + 64;
            rewind->entries = realloc(rewind->entries, rewind->cap * sizeof(*rewind->entries));
            MUST(rewind->entries);
        }
        rewind->entries[rewind->len++] = (struct rewind_entry){.key = rewind_copy(rewind, key),
                                                               .value = rewind_copy(rewind, value)};
    }
    hf__store_iter_close(iter);
    hf_scope_free(s);
}

static int rewind_order(struct hf_bytes a, struct hf_bytes b)
{
    return bytes_compare(a.ptr, a.len, b.ptr, b.len);
}

/* What has to be written so that the store is as it was. */
static void rewind_differences(struct hf_scope *s, struct rewind_store *rewind,
                               struct store_batch *batch)
{
    struct store_range all = {0};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    size_t at = 0;
    bool found;

    MUST(hf__store_iter_open(s, rewind->inner, NULL, &all, &iter) == HF_OK);
    while (hf__store_iter_next(s, iter, &found, &key, &value) == HF_OK && found) {
        const struct rewind_entry *entry;

        for (; at < rewind->len && rewind_order(rewind->entries[at].key, key) < 0; at++)
            hf__batch_put(batch, rewind->entries[at].key, rewind->entries[at].value);
        entry = at < rewind->len ? &rewind->entries[at] : NULL;
        if (!entry || rewind_order(entry->key, key) != 0) {
            hf__batch_delete(batch, key);
            continue;
        }
        if (rewind_order(entry->value, value) != 0)
            hf__batch_put(batch, entry->key, entry->value);
        at++;
    }
    for (; at < rewind->len; at++)
        hf__batch_put(batch, rewind->entries[at].key, rewind->entries[at].value);
    hf__store_iter_close(iter);
}

void rewind_back(struct hf__store *store)
{
    struct rewind_store *rewind = rewind_of(store);
    struct hf_scope *s = hf_scope_new(NULL);
    struct store_batch batch = {.ops = {.scope = s}};
    uint64_t ticket;

    rewind_differences(s, rewind, &batch);
    MUST(!batch.ops.failed);
    if (batch.count > 0)
        MUST(hf__store_write(s, rewind->inner, &batch, &ticket) == HF_OK);
    hf_scope_free(s);
}
