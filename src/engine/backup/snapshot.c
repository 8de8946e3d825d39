/*
 * engine/backup/snapshot.c: take everything that a database holds, and put it back.
 *
 * Taking reads one snapshot of the store from its first key to its last; nobody waits for it.
 *
 * Restoring is one batch: what is there and not in the snapshot is deleted, what differs is put.
 * Everything that can fail comes before the batch is applied, and nothing that can fail after:
 *
 *     view     tables, streams, backups and counts as they will be, made from the snapshot in an
 *              engine of their own (what hf__streams_load() and its like fill)
 *     locks    maintenance_lock, counting, schema for writing: so there is no operation, no
 *              maintenance, and no thread that uses a table, a stream or a latch
 *     batch    from a walk over the store and the snapshot side by side
 *     write
 *     swap     the engine and the view exchange their catalogs, streams and backups; what the
 *              engine had is freed with the view
 *
 * A write that fails may have taken effect all the same. The batch therefore leaves a random mark
 * among the settings: if it is found there, the swap is due. If the mark cannot even be read, it is
 * unknown which tables belong to the items in the store: then the engine is `lost`, and refuses
 * every call until it is opened again.
 *
 * What always holds:
 *
 *  (1) A reader sees the state before or the state after, in full; a crash leaves one of them.
 *  (2) Ids and sequence numbers never go back: the next ones are above those of the database and
 *      those of the snapshot. So an iterator from before the restore meets no foreign record.
 *  (3) What was going on in the snapshot (an index being built, something being erased) goes on
 *      after the restore; what has begun since is forgotten. A backup that was being made is begun
 *      again, as it is when a database is opened.
 *  (4) Counts are exact after a restore, even if they were not known before.
 */
#include "engine/backup/snapshot.h"

#include "base/buf.h"
#include "base/kill.h"
#include "engine/backup/backups.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/layout.h"
#include "engine/maintenance/maintenance.h"
#include "engine/setting.h"
#include "engine/stream/streams.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "store/store.h"

enum { ENTRIES_BETWEEN_LOOKS = 1000, MARK_LEN = 16, MARK_TRIES = 3 };

static const char mark_setting[] = "restored";
static const uint8_t first_key[] = {SPACE_TABLE}; /* behind the settings */

/* ---- entries -------------------------------------------------------------------------------- */

enum hf_status hf__snapshot_new(struct hf_scope *s, struct hf_engine_snapshot **snapshot)
{
    struct hf_env env = hf__env_fill(hf__scope_env(s));

    *snapshot = hf__env_alloc(&env, sizeof(**snapshot));
    if (!*snapshot)
        return hf__fail_nomem(s);
    **snapshot = (struct hf_engine_snapshot){.env = env, .next_id = 1};
    return HF_OK;
}

void hf_engine_snapshot_free(struct hf_engine_snapshot *snapshot)
{
    struct hf_env env;

    if (!snapshot)
        return;
    env = snapshot->env;
    while (snapshot->first) {
        struct snapshot_block *next = snapshot->first->next;

        hf__env_free(&env, snapshot->first, sizeof(*next) + snapshot->first->cap);
        snapshot->first = next;
    }
    hf__env_free(&env, snapshot, sizeof(*snapshot));
}

void hf_engine_snapshot_size(const struct hf_engine_snapshot *snapshot,
                             struct hf_engine_snapshot_size *size)
{
    *size = snapshot->size;
}

struct snapshot_block *hf__snapshot_block(struct hf_engine_snapshot *snapshot, size_t cap)
{
    struct snapshot_block *block = hf__env_alloc(&snapshot->env, sizeof(*block) + cap);

    if (!block)
        return NULL;
    *block = (struct snapshot_block){.cap = cap};
    if (snapshot->last)
        snapshot->last->next = block;
    else
        snapshot->first = block;
    snapshot->last = block;
    snapshot->blocks++;
    return block;
}

void hf__snapshot_count(struct hf_engine_snapshot *snapshot, struct hf_bytes key,
                        struct hf_bytes value)
{
    struct hf_engine_snapshot_size *size = &snapshot->size;

    assert(key.len > 0);
    size->entries++;
    size->bytes += SNAPSHOT_HEAD + key.len + value.len;
    size->tables += key.ptr[0] == SPACE_TABLE;
    size->items += key.ptr[0] == SPACE_ITEM;
}

static bool add_entry(struct hf_engine_snapshot *snapshot, struct hf_bytes key,
                      struct hf_bytes value)
{
    size_t len = SNAPSHOT_HEAD + key.len + value.len;
    struct snapshot_block *block = snapshot->last;
    uint8_t *to;

    if (!block || block->cap - block->len < len)
        block = hf__snapshot_block(snapshot, len > SNAPSHOT_BLOCK ? len : SNAPSHOT_BLOCK);
    if (!block)
        return false;
    assert(key.len <= UINT32_MAX && value.len <= UINT32_MAX && len <= block->cap - block->len);
    to = block->bytes + block->len;
    store_u32le(to, (uint32_t)key.len);
    store_u32le(to + 4, (uint32_t)value.len);
    memcpy(to + SNAPSHOT_HEAD, key.ptr, key.len);
    if (value.len)
        memcpy(to + SNAPSHOT_HEAD + key.len, value.ptr, value.len);
    block->len += len;
    block->entries++;
    hf__snapshot_count(snapshot, key, value);
    return true;
}

bool hf__snapshot_next(struct snapshot_cursor *cursor, struct hf_bytes *key, struct hf_bytes *value)
{
    const uint8_t *from;

    while (cursor->block && cursor->at == cursor->block->len) {
        cursor->block = cursor->block->next;
        cursor->at = 0;
    }
    if (!cursor->block)
        return false;
    from = cursor->block->bytes + cursor->at;
    *key = hf_bytes_of(from + SNAPSHOT_HEAD, load_u32le(from));
    *value = hf_bytes_of(from + SNAPSHOT_HEAD + key->len, load_u32le(from + 4));
    cursor->at += SNAPSHOT_HEAD + key->len + value->len;
    assert(cursor->at <= cursor->block->len);
    return true;
}

/* ---- taking --------------------------------------------------------------------------------- */

static enum hf_status fail_limit(struct hf_scope *s, const struct engine *e, const char *what)
{
    return hf__fail(s, HF_LIMIT,
                    "%s more than %llu bytes, which is the limit of what a restore can replace in "
                    "one step",
                    what, (unsigned long long)e->snapshot_max);
}

static enum hf_status take_entries(struct hf_scope *s, struct engine *e,
                                   const struct hf__store_snapshot *from,
                                   struct hf_engine_snapshot *snapshot)
{
    const struct store_range range = {.lower = {first_key, sizeof(first_key)}};
    struct hf__store_iter *iter;
    enum hf_status status;
    bool found = true;

    TRY(hf__store_iter_open(s, e->store, from, &range, &iter));
    do {
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found && !add_entry(snapshot, key, value))
            status = hf__fail_nomem(s);
        if (status == HF_OK && snapshot->size.bytes > e->snapshot_max)
            status = fail_limit(s, e, "The database holds");
        if (status == HF_OK && snapshot->size.entries % ENTRIES_BETWEEN_LOOKS == 0)
            status = hf__scope_alive(s);
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    return status;
}

static enum hf_status take_all(struct hf_scope *s, struct engine *e,
                               const struct hf__store_snapshot *from,
                               struct hf_engine_snapshot *snapshot)
{
    struct hf_bytes next_id;

    TRY(hf__setting_read(s, e, from, "next_id", &next_id));
    if (next_id.len == 4)
        snapshot->next_id = load_u32be(next_id.ptr);
    pthread_mutex_lock(&e->sequencer.lock);
    snapshot->sequence = e->sequencer.next;
    pthread_mutex_unlock(&e->sequencer.lock);
    snapshot->size.taken_us = hf__env_wall_us(&e->env);
    return take_entries(s, e, from, snapshot);
}

enum hf_status hf_engine_snapshot_take(struct hf_scope *s, struct hf_db *db,
                                       struct hf_engine_snapshot **snapshot)
{
    struct engine *e = hf__engine_of(db);
    struct hf__store_snapshot *from = NULL;
    uint64_t written;
    enum hf_status status;

    *snapshot = NULL;
    hf__scope_error_clear(s);
    if (!e)
        return hf__fail(s, HF_UNSUPPORTED, "Snapshots are for embedded databases only");
    TRY(hf__scope_alive(s));
    TRY(hf__engine_fit(s, e));
    TRY(hf__snapshot_new(s, snapshot));
    status = hf__store_snapshot_open(s, e->store, &from);
    written = hf__store_written(e->store); /* all that the snapshot has in it, and perhaps more */
    if (status == HF_OK) {
        status = take_all(s, e, from, *snapshot);
        hf__store_snapshot_close(e->store, from);
    }
    if (status == HF_OK) /* a state that a crash could take back is not returned */
        status = hf__engine_wait_durable_seen(s, e, written);
    if (status != HF_OK) {
        hf_engine_snapshot_free(*snapshot);
        *snapshot = NULL;
    }
    return status;
}

/* ---- the view: what the engine will have in memory ------------------------------------------ */

struct restore {
    struct engine *e;
    const struct hf_engine_snapshot *snapshot;
    struct engine *view;
    uint64_t highest;         /* number of a stream record in the snapshot */
    struct hf_scope *room;    /* of the batch, which may be large */
    struct store_batch batch; /* points at what is in the snapshot */
    uint64_t bytes;           /* of both states */
    uint32_t next_id;
    uint64_t next; /* sequence number */
    uint8_t mark[MARK_LEN];
};

/* A store with only the records of tables, streams and backups, from which those are loaded. */
static enum hf_status view_store(struct hf_scope *s, const struct restore *r,
                                 struct hf__store **store)
{
    struct store_batch batch = {.ops = {.scope = r->room}};
    struct snapshot_cursor cursor = {.block = r->snapshot->first};
    struct hf_bytes key, value;
    uint64_t ticket;

    TRY(hf__store_open_memory(s, &r->e->env, store));
    while (hf__snapshot_next(&cursor, &key, &value) && key.ptr[0] <= SPACE_BACKUP)
        hf__batch_put_parts(&batch, key, hf_bytes_of(NULL, 0), value, false);
    return batch.ops.failed ? hf__fail_nomem(s) : hf__store_write(s, *store, &batch, &ticket);
}

/* The table or index to which rows with that prefix belong. */
struct owner {
    struct table *table; /* NULL: a deleted one, whose rows will be erased */
    struct index *index; /* NULL: items of the table */
    struct counts *counts;
};

static struct owner owner_of(struct engine *view, uint8_t space, uint32_t id)
{
    for (size_t i = 0; i < view->catalog.len; i++) {
        struct table *table = view->catalog.tables[i];

        if (space == SPACE_ITEM && table->id == id)
            return (struct owner){table, NULL, &table->counts->table};
        for (size_t j = 0; j < table->indexes_len; j++)
            if (space == SPACE_INDEX && table->indexes[j].id == id)
                return (struct owner){table, &table->indexes[j], table->indexes[j].counts};
    }
    return (struct owner){.table = NULL};
}

/* Count a row. Operations rely on an item having its keys, and a snapshot from a file may have been
 * made by anybody: so that is checked here. */
static enum hf_status view_row(struct hf_scope *s, const struct owner *owner, struct hf_bytes value)
{
    struct hf__mark mark = hf__scope_mark(s);
    struct hf__buf key = {.scope = s};
    struct row row;

    TRY(hf__row_decode(s, value, &row));
    if (hf__schema_check_put(s, owner->table, row.item) != HF_OK ||
        (owner->index && !hf__index_key(&key, owner->table, owner->index, row.item)))
        return hf__fail(s, HF_CORRUPT, "The snapshot has an item in table %.*s that lacks its key",
                        HF_FMT(owner->table->name));
    hf__scope_rewind(s, mark);
    if (owner->table->record.restore_from == 0) { /* otherwise it is counted when it is complete */
        atomic_fetch_add(&owner->counts->items, 1);
        atomic_fetch_add(&owner->counts->bytes, (long long)row.size);
    }
    return HF_OK;
}

/* (4): items and entries of one table or index lie side by side, so it is looked up once. */
static enum hf_status view_rows(struct hf_scope *s, struct restore *r)
{
    struct snapshot_cursor cursor = {.block = r->snapshot->first};
    uint8_t prefix[PREFIX_LEN] = {0};
    struct owner owner = {.table = NULL};
    struct hf_bytes key, value;

    while (hf__snapshot_next(&cursor, &key, &value)) {
        uint8_t space = key.ptr[0];

        if (space == SPACE_RECORD && key.len == RECORD_KEY && load_u64be(key.ptr + 7) > r->highest)
            r->highest = load_u64be(key.ptr + 7);
        if ((space != SPACE_ITEM && space != SPACE_INDEX) || key.len <= PREFIX_LEN)
            continue;
        if (memcmp(prefix, key.ptr, PREFIX_LEN) != 0) {
            memcpy(prefix, key.ptr, PREFIX_LEN);
            owner = owner_of(r->view, space, load_u32be(key.ptr + 1));
        }
        if (owner.table)
            TRY(view_row(s, &owner, value));
    }
    return HF_OK;
}

static enum hf_status view_open(struct hf_scope *s, struct restore *r)
{
    struct engine *view = hf__env_alloc(&r->e->env, sizeof(*view));
    enum hf_status status;

    if (!view)
        return hf__fail_nomem(s);
    memset(view, 0, sizeof(*view));
    r->view = view;
    view->env = r->e->env;
    status = view_store(s, r, &view->store);
    if (status == HF_OK)
        status = hf__streams_load(s, view);
    if (status == HF_OK)
        status = hf__backups_load(s, view);
    if (status == HF_OK)
        status = hf__catalog_load(s, view);
    hf__store_close(view->store);
    view->store = r->e->store; /* whose snapshots the backups have that it gets in exchange */
    if (status == HF_OK)       /* a file may have been made by anybody */
        status = hf__catalog_check_ids(s, view, r->snapshot->next_id);
    return status == HF_OK ? view_rows(s, r) : status;
}

static void view_close(struct restore *r)
{
    if (!r->view)
        return;
    hf__backups_free(r->view);
    hf__catalog_free(r->view);
    hf__streams_free(r->view);
    hf__env_free(&r->e->env, r->view, sizeof(*r->view));
}

/* ---- the batch ------------------------------------------------------------------------------ */

/* The next entry of the two walks: `here` is that of the store, `there` that of the snapshot. */
struct side {
    struct hf_bytes key;
    struct hf_bytes value;
    bool found;
};

/* Below 0: only in the store; above: only in the snapshot. */
static int compare_sides(const struct side *here, const struct side *there)
{
    if (!here->found || !there->found)
        return here->found ? -1 : 1;
    return bytes_compare(here->key.ptr, here->key.len, there->key.ptr, there->key.len);
}

static void add_difference(struct restore *r, int order, const struct side *here,
                           const struct side *there)
{
    if (order < 0)
        hf__batch_delete(&r->batch, here->key);
    else if (order > 0 || bytes_compare(here->value.ptr, here->value.len, there->value.ptr,
                                        there->value.len) != 0)
        hf__batch_put_parts(&r->batch, there->key, hf_bytes_of(NULL, 0), there->value, false);
}

static enum hf_status step_here(struct hf_scope *s, struct restore *r, struct hf__store_iter *iter,
                                struct side *here)
{
    TRY(hf__store_iter_next(s, iter, &here->found, &here->key, &here->value));
    if (!here->found)
        return HF_OK;
    r->bytes += SNAPSHOT_HEAD + here->key.len + here->value.len;
    return r->bytes > r->e->snapshot_max
               ? fail_limit(s, r->e, "The database and the snapshot together hold")
               : HF_OK;
}

static enum hf_status walk_both(struct hf_scope *s, struct restore *r, struct hf__store_iter *iter)
{
    struct snapshot_cursor cursor = {.block = r->snapshot->first};
    struct side here = {.found = false};
    struct side there = {.found = false};

    TRY(step_here(s, r, iter, &here));
    there.found = hf__snapshot_next(&cursor, &there.key, &there.value);
    for (uint64_t i = 1; here.found || there.found; i++) {
        int order = compare_sides(&here, &there);

        add_difference(r, order, &here, &there);
        if (order >= 0)
            there.found = hf__snapshot_next(&cursor, &there.key, &there.value);
        if (order <= 0)
            TRY(step_here(s, r, iter, &here));
        if (i % ENTRIES_BETWEEN_LOOKS == 0)
            TRY(hf__scope_alive(s));
    }
    return HF_OK;
}

/* (2) */
static enum hf_status add_settings(struct hf_scope *s, struct restore *r)
{
    struct engine *e = r->e;
    uint8_t id[4];
    uint8_t next[8];

    r->next_id = e->next_id > r->snapshot->next_id ? e->next_id : r->snapshot->next_id;
    store_u32be(id, r->next_id);
    hf__setting_put(s, &r->batch, "next_id", hf_bytes_of(id, sizeof(id)));
    pthread_mutex_lock(&e->sequencer.lock);
    r->next = e->sequencer.next;
    pthread_mutex_unlock(&e->sequencer.lock);
    if (r->next < r->snapshot->sequence)
        r->next = r->snapshot->sequence;
    if (r->next <= r->highest)
        r->next = r->highest + 1;
    if (r->next > e->sequencer.next) {
        store_u64be(next, r->next);
        hf__setting_put(s, &r->batch, "sequence", hf_bytes_of(next, sizeof(next)));
    }
    hf__env_random(&e->env, r->mark, sizeof(r->mark));
    hf__setting_put(s, &r->batch, mark_setting, hf_bytes_of(r->mark, sizeof(r->mark)));
    return r->batch.ops.failed ? hf__fail_nomem(s) : HF_OK;
}

static enum hf_status make_batch(struct hf_scope *s, struct restore *r)
{
    const struct store_range range = {.lower = {first_key, sizeof(first_key)}};
    struct hf__store_iter *iter;
    enum hf_status status;

    r->batch = (struct store_batch){.ops = {.scope = r->room}};
    r->bytes = r->snapshot->size.bytes;
    if (r->bytes > r->e->snapshot_max)
        return fail_limit(s, r->e, "The snapshot holds");
    TRY(hf__store_iter_open(s, r->e->store, NULL, &range, &iter));
    status = walk_both(s, r, iter);
    hf__store_iter_close(iter);
    return status == HF_OK ? add_settings(s, r) : status;
}

/* ---- applying ------------------------------------------------------------------------------- */

/* Nothing here fails. */
static void swap_state(struct restore *r)
{
    struct engine *e = r->e;
    struct catalog catalog = e->catalog;
    struct streams streams = e->streams;
    struct backups backups = e->backups;
    uint64_t ticket = hf__store_written(e->store);

    assert(r->next_id >= e->next_id && r->next >= e->sequencer.next); /* (2) */
    assert(!e->sequencer.first);
    ASSERT_SCHEMA_WRITTEN(e);
    e->catalog = r->view->catalog;
    e->streams = r->view->streams;
    e->backups = r->view->backups;
    r->view->catalog = catalog;
    r->view->streams = streams;
    r->view->backups = backups;
    if (DEV_CHECKS)
        hf__catalog_check(e);
    for (size_t i = 0; i < e->backups.len; i++)
        e->backups.list[i]->from.env = &e->env; /* the view's goes with it */
    e->next_id = r->next_id;
    atomic_fetch_add(&e->restores, 1);
    pthread_mutex_lock(&e->sequencer.lock);
    if (r->next > e->sequencer.next)
        e->sequencer.next = e->sequencer.reserved = r->next;
    pthread_mutex_unlock(&e->sequencer.lock);
    if (e->opened)
        hf__store_snapshot_close(e->store, e->opened);
    e->opened = NULL;
    /* every read has to wait until the restore is durable */
    for (size_t i = 0; i < LATCH_COUNT; i++) {
        hf__latch(e, i);
        hf__unlatch(e, i, ticket);
    }
}

/* After a write that may have happened: did it? */
static bool find_mark(struct hf_scope *s, const struct restore *r, bool *there)
{
    struct hf_error failure = *hf_scope_error(s);
    struct hf_bytes value;
    bool known = false;

    for (int i = 0; i < MARK_TRIES && !known; i++)
        known = hf__setting_get(s, r->e, mark_setting, &value) == HF_OK;
    *there = known && bytes_compare(value.ptr, value.len, r->mark, sizeof(r->mark)) == 0;
    /* the caller gets the error of the write, not of this read */
    *hf__scope_error_edit(s) = failure;
    return known;
}

static enum hf_status apply_batch(struct hf_scope *s, struct restore *r, uint64_t *ticket)
{
    enum hf_status status;
    bool there = true;

    hf__kill_point("before_snapshot_restore");
    status = hf__store_write(s, r->e->store, &r->batch, ticket);
    hf__kill_point("after_snapshot_restore");
    if (status != HF_OK && !hf_scope_error(s)->may_have_happened)
        return status;
    if (status != HF_OK && !find_mark(s, r, &there)) {
        atomic_store(&r->e->lost, true);
        return status;
    }
    if (there)
        swap_state(r);
    return status;
}

static enum hf_status restore_locked(struct hf_scope *s, struct restore *r, uint64_t *ticket)
{
    ASSERT_HELD(&r->e->maintenance_lock);
    ASSERT_HELD(&r->e->counting);
    ASSERT_SCHEMA_WRITTEN(r->e);
    TRY(hf__engine_fit(s, r->e));
    TRY(make_batch(s, r));
    return apply_batch(s, r, ticket);
}

enum hf_status hf_engine_snapshot_restore(struct hf_scope *s, struct hf_db *db,
                                          const struct hf_engine_snapshot *snapshot)
{
    struct engine *e = hf__engine_of(db);
    struct restore r = {.e = e, .snapshot = snapshot};
    uint64_t ticket = 0;
    enum hf_status status;

    hf__scope_error_clear(s);
    if (!e)
        return hf__fail(s, HF_UNSUPPORTED, "Snapshots are for embedded databases only");
    if (!snapshot)
        return hf__fail(s, HF_INVALID, "The snapshot to restore is NULL");
    TRY(hf__scope_alive(s));
    r.room = hf_scope_new(&e->env);
    status = r.room ? view_open(s, &r) : hf__fail_nomem(s);
    if (status == HF_OK) {
        pthread_mutex_lock(&e->maintenance_lock);
        pthread_mutex_lock(&e->counting);
        hf__schema_lock(e);
        status = restore_locked(s, &r, &ticket);
        pthread_rwlock_unlock(&e->schema);
        pthread_mutex_unlock(&e->counting);
        pthread_mutex_unlock(&e->maintenance_lock);
    }
    view_close(&r);
    hf_scope_free(r.room);
    TRY(status);
    hf__engine_maintenance_wake(e); /* (3) */
    return hf__engine_wait_durable(s, e, ticket);
}
