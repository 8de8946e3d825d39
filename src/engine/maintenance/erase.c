/*
 * engine/maintenance/erase.c: erasing the keys of a deleted table, index or stream.
 *
 * All keys of one of these are adjacent, under its space and id, and ids are never used again.
 * So dropping it is a small write: the batch that removes it from the catalog records its space and
 * id, and maintenance erases the keys afterwards, a few at a time. A crash in between leaves that
 * record, and maintenance goes on from there.
 */
#include "engine/maintenance/erase.h"
#include "base/buf.h"
#include "engine/backup/backups.h"
#include "engine/layout.h"
#include "store/store.h"

enum { ERASE_CHUNK = 1000, ERASE_CHUNK_BYTES = 256 * 1024, ERASE_KEY = 6 };
_Static_assert(ERASE_KEY == 1 + 1 + 4, "SPACE_ERASE, space, u32be id");

static void pending_key(uint8_t key[ERASE_KEY], uint8_t space, uint32_t id)
{
    key[0] = SPACE_ERASE;
    key[1] = space;
    store_u32be(key + 2, id);
}

void hf__erase_later(struct store_batch *batch, uint8_t space, uint32_t id)
{
    uint8_t key[ERASE_KEY];

    assert(space >= SPACE_ITEM && space <= SPACE_EXPIRY && id > 0);
    pending_key(key, space, id);
    hf__batch_put(batch, hf_bytes_of(key, sizeof(key)), hf_bytes_of(NULL, 0));
}

enum hf_status hf__erase_is_pending(struct hf_scope *s, struct engine *e,
                                    const struct hf__store_snapshot *snapshot, uint8_t space,
                                    uint32_t id, bool *pending)
{
    uint8_t key[ERASE_KEY];
    struct hf_bytes value;

    pending_key(key, space, id);
    TRY(hf__store_get(s, e->store, snapshot, hf_bytes_of(key, sizeof(key)), &value));
    *pending = value.ptr != NULL;
    return HF_OK;
}

/* ---- erasing -------------------------------------------------------------------------------- */

/* What is being erased, and how far. An iterator has to step over erased keys for a while: if each
 * chunk began at the first key, it would step over all of them each time. */
struct erasing {
    uint8_t space;
    uint32_t id;
    struct hf__buf from; /* the key to go on from; empty: the first */
};

/* The first recorded erasure whose keys no backup still has to copy. */
static enum hf_status next_pending(struct hf_scope *s, struct engine *e, bool *found,
                                   struct erasing *erasing)
{
    static const uint8_t lower[] = {SPACE_ERASE};
    static const uint8_t upper[] = {SPACE_ERASE + 1};
    const struct store_range range = {.lower = {lower, 1}, .upper = {upper, 1}};
    struct hf__store_iter *iter;
    struct hf_bytes key, value;
    enum hf_status status;

    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    do {
        status = hf__store_iter_next(s, iter, found, &key, &value);
        if (status == HF_OK && *found && key.len != ERASE_KEY)
            status = hf__fail(s, HF_CORRUPT, "A record of pending erasure is damaged");
    } while (status == HF_OK && *found && hf__backups_need(e, key.ptr[1], load_u32be(key.ptr + 2)));
    if (status == HF_OK && *found) {
        uint8_t space = key.ptr[1];
        uint32_t id = load_u32be(key.ptr + 2);

        if (erasing->space != space || erasing->id != id)
            erasing->from.len = 0;
        erasing->space = space;
        erasing->id = id;
    }
    hf__store_iter_close(iter);
    return status;
}

/* Delete up to ERASE_CHUNK keys; when no more are left, the record goes with them. */
static enum hf_status erase_chunk(struct hf_scope *s, struct engine *e, struct erasing *erasing,
                                  uint64_t *erased)
{
    struct store_batch batch = {.ops = {.scope = s}, .frees = true};
    struct hf__buf *from = &erasing->from;
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    uint8_t record[ERASE_KEY];
    uint64_t ticket;
    uint64_t count = 0;
    bool found = true;

    assert(from->len == 0 || from->ptr[0] == erasing->space);
    ASSERT_HELD(&e->maintenance_lock);
    if (from->len == 0)
        hf__stored_key_prefix(from, erasing->space, erasing->id);
    hf__stored_key_prefix(&upper, erasing->space, erasing->id + 1);
    if (from->failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {from->ptr, from->len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found) {
            hf__batch_delete(&batch, key);
            from->len = 0;
            hf__buf_put(from, key.ptr, key.len);
            count++;
        }
    } while (status == HF_OK && found && count < ERASE_CHUNK && batch.bytes < ERASE_CHUNK_BYTES);
    hf__store_iter_close(iter);
    if (status != HF_OK)
        return status;
    if (!found) {
        pending_key(record, erasing->space, erasing->id);
        hf__batch_delete(&batch, hf_bytes_of(record, sizeof(record)));
    }
    if (batch.ops.failed || from->failed)
        return hf__fail_nomem(s);
    TRY(hf__store_write(s, e->store, &batch, &ticket));
    *erased += count;
    return HF_OK;
}

static enum hf_status erase_all(struct hf_scope *s, struct engine *e, struct erasing *erasing,
                                uint64_t *erased)
{
    for (;;) {
        struct hf__mark mark = hf__scope_mark(s);
        bool found = false;

        if (atomic_load(&e->maintenance.stop))
            return HF_OK;
        TRY(next_pending(s, e, &found, erasing));
        if (!found)
            return HF_OK;
        TRY(erase_chunk(s, e, erasing, erased));
        hf__scope_rewind(s, mark);
    }
}

enum hf_status hf__erase(struct hf_scope *s, struct engine *e, uint64_t *erased)
{
    struct erasing erasing = {.from = {.env = &e->env}}; /* the scope is rewound under it */
    enum hf_status status = erase_all(s, e, &erasing, erased);

    hf__buf_free(&erasing.from);
    return status;
}
