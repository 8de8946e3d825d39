/*
 * engine/item/counts.c: how many items and bytes tables and indexes have.
 *
 * Writers add to counters in memory. A clean close stores them together with the mark "clean",
 * which the next open removes before anything else is written; so a database that opens without the
 * mark was not closed cleanly, and its counters are not known. Then the state at opening is kept as
 * a snapshot, and a table is counted from it when somebody asks, or by maintenance; what writers
 * added since is in the counters already and the sum is exact. Counting takes long, so the schema
 * lock is not held meanwhile: the ids of the table and its indexes say where the sums belong
 * afterwards.
 */
#include "engine/item/counts.h"
#include "base/buf.h"
#include "engine/item/change.h"
#include "engine/item/key_filter.h"
#include "engine/layout.h"
#include "engine/setting.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "base/kill.h"

enum { COUNT_VALUE = 16 };
_Static_assert(COUNT_VALUE == 2 * 8, "u64be items, u64be bytes");

static const char clean_setting[] = "clean";

static void count_name(char *name, size_t size, char kind, uint32_t id)
{
    snprintf(name, size, "count/%c%u", kind, id);
}

/* ---- at opening ----------------------------------------------------------------------------- */

static enum hf_status load_counts(struct hf_scope *s, struct engine *e, char kind, uint32_t id,
                                  struct counts *counts)
{
    char name[32];
    struct hf_bytes value;

    count_name(name, sizeof(name), kind, id);
    TRY(hf__setting_get(s, e, name, &value));
    if (value.len == COUNT_VALUE) {
        atomic_store(&counts->items, (long long)load_u64be(value.ptr));
        atomic_store(&counts->bytes, (long long)load_u64be(value.ptr + 8));
    }
    return HF_OK;
}

/* A table without items is about to be filled. The store itself is asked, as the counts alone are no proof. */
static enum hf_status filter_empty(struct hf_scope *s, struct engine *e, struct table *table)
{
    struct hf__buf lower = {.scope = s}, upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    struct hf_bytes key, value;
    bool found;

    if (e->read_only || table->record.restore_from || atomic_load(&table->counts->table.items))
        return HF_OK;
    hf__stored_key_prefix(&lower, SPACE_ITEM, table->id);
    hf__stored_key_prefix(&upper, SPACE_ITEM, table->id + 1);
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    status = hf__store_iter_next(s, iter, &found, &key, &value);
    hf__store_iter_close(iter);
    assert(!table->counts->keys);
    if (status != HF_OK || found)
        return status;
    table->counts->keys = hf__row_filter_new(&e->env, e->key_filter_bytes);
    return table->counts->keys ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status load_all(struct hf_scope *s, struct engine *e)
{
    for (size_t i = 0; i < e->catalog.len; i++) {
        struct table *table = e->catalog.tables[i];

        TRY(load_counts(s, e, 't', table->id, &table->counts->table));
        TRY(filter_empty(s, e, table));
        for (size_t j = 0; j < table->indexes_len; j++)
            TRY(load_counts(s, e, 'i', table->indexes[j].id, table->indexes[j].counts));
    }
    return HF_OK;
}

enum hf_status hf__counts_load(struct hf_scope *s, struct engine *e)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct hf_bytes clean;
    uint64_t ticket;

    TRY(hf__setting_get(s, e, clean_setting, &clean));
    if (!clean.ptr && e->catalog.len > 0) {
        /* a table that is being restored is counted by the restore */
        for (size_t i = 0; i < e->catalog.len; i++)
            atomic_store(&e->catalog.tables[i]->counts->stale,
                         e->catalog.tables[i]->record.restore_from == 0);
        return hf__store_snapshot_open(s, e->store, &e->opened);
    }
    if (!clean.ptr)
        return HF_OK;
    TRY(load_all(s, e));
    if (e->read_only)
        return HF_OK;
    batch.opens = true; /* a full disk must not keep a database from being opened */
    hf__setting_delete(s, &batch, clean_setting);
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    return hf__store_write(s, e->store, &batch, &ticket);
}

/* ---- counting again ------------------------------------------------------------------------- */

enum { COUNTED_BETWEEN_LOOKS = 1000 };

/* Counts of one table, or of one of its indexes, in the snapshot. */
struct sum {
    uint8_t space;
    uint32_t id;
    long long items;
    long long bytes;
};

struct tally {
    struct hf_str table; /* its name, as the table may be replaced meanwhile */
    struct sum sums[1 + INDEXES_MAX];
    size_t len;
};

/* Stop counting when the caller's scope has ended, or when the database is being closed. */
static enum hf_status go_on(struct hf_scope *s, struct engine *e)
{
    if (atomic_load(&e->maintenance.stop))
        return hf__fail(s, HF_CANCELED, "The database is being closed");
    return hf__scope_alive(s);
}

static enum hf_status count_sum(struct hf_scope *s, struct engine *e, struct sum *sum)
{
    struct hf__buf lower = {.scope = s};
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    bool found = true;

    assert(e->opened && sum->id > 0);
    ASSERT_HELD(&e->counting);
    hf__stored_key_prefix(&lower, sum->space, sum->id);
    hf__stored_key_prefix(&upper, sum->space, sum->id + 1);
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, e->opened, &range, &iter));
    do {
        struct hf_bytes key, value;
        struct row row;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found)
            status = hf__row_decode(s, value, &row);
        if (status == HF_OK && found) {
            sum->items++;
            sum->bytes += (long long)row.size;
            if (sum->items % COUNTED_BETWEEN_LOOKS == 0)
                status = go_on(s, e);
        }
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    return status;
}

/* What has to be counted of a table; nothing when it is already counted, or deleted. */
static void tally_begin(struct engine *e, struct tally *tally)
{
    struct table *table;

    pthread_rwlock_rdlock(&e->schema);
    table = hf__catalog_find(e, tally->table);
    if (table && atomic_load(&table->counts->stale)) {
        tally->sums[tally->len++] = (struct sum){.space = SPACE_ITEM, .id = table->id};
        for (size_t i = 0; i < table->indexes_len; i++)
            tally->sums[tally->len++] =
                (struct sum){.space = SPACE_INDEX, .id = table->indexes[i].id};
    }
    assert(tally->len <= ARRAY_LEN(tally->sums));
    pthread_rwlock_unlock(&e->schema);
}

static void sum_add(const struct sum *sum, uint8_t space, uint32_t id, struct counts *counts)
{
    if (sum->space != space || sum->id != id)
        return;
    atomic_fetch_add(&counts->items, sum->items);
    atomic_fetch_add(&counts->bytes, sum->bytes);
}

/* Add the sums to the table and those of its indexes that still exist. */
static void tally_end(struct engine *e, const struct tally *tally)
{
    struct table *table;

    pthread_rwlock_rdlock(&e->schema);
    table = hf__catalog_find(e, tally->table);
    if (table && table->id == tally->sums[0].id) {
        for (size_t i = 0; i < tally->len; i++) {
            sum_add(&tally->sums[i], SPACE_ITEM, table->id, &table->counts->table);
            for (size_t j = 0; j < table->indexes_len; j++)
                sum_add(&tally->sums[i], SPACE_INDEX, table->indexes[j].id,
                        table->indexes[j].counts);
        }
        atomic_store(&table->counts->stale, false);
    }
    pthread_rwlock_unlock(&e->schema);
}

/* `counting` is held, the schema lock is not. */
static enum hf_status count_table(struct hf_scope *s, struct engine *e, struct hf_str name)
{
    struct tally tally = {.table = name};

    ASSERT_HELD(&e->counting);
    tally_begin(e, &tally);
    if (tally.len == 0)
        return HF_OK;
    for (size_t i = 0; i < tally.len; i++)
        TRY(count_sum(s, e, &tally.sums[i]));
    tally_end(e, &tally);
    return HF_OK;
}

enum hf_status hf__counts_refresh(struct hf_scope *s, struct engine *e, struct hf_str name)
{
    struct table *table;
    enum hf_status status;
    bool stale;

    name = hf__ops_table_name(name); /* it may be an ARN */
    pthread_rwlock_rdlock(&e->schema);
    table = hf__catalog_find(e, name);
    stale = table && atomic_load(&table->counts->stale);
    pthread_rwlock_unlock(&e->schema);
    if (!stale)
        return HF_OK;
    pthread_mutex_lock(&e->counting);
    status = count_table(s, e, name);
    pthread_mutex_unlock(&e->counting);
    return status;
}

/* The name of the first table that is not counted; absent when there is none. */
static enum hf_status next_stale(struct hf_scope *s, struct engine *e, struct hf_str *name)
{
    bool found = false;

    ASSERT_HELD(&e->counting);
    *name = hf_str_of(NULL, 0);
    pthread_rwlock_rdlock(&e->schema);
    for (size_t i = 0; i < e->catalog.len && !found; i++) {
        found = atomic_load(&e->catalog.tables[i]->counts->stale);
        if (found)
            *name = hf_scope_copy(s, e->catalog.tables[i]->name);
    }
    pthread_rwlock_unlock(&e->schema);
    return found && !name->ptr ? hf__fail_nomem(s) : HF_OK;
}

enum hf_status hf__counts_refresh_all(struct hf_scope *s, struct engine *e)
{
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&e->counting);
    while (e->opened && status == HF_OK) {
        struct hf_str name;

        status = next_stale(s, e, &name);
        if (status == HF_OK && name.ptr) {
            status = count_table(s, e, name);
        } else if (status == HF_OK) {
            hf__store_snapshot_close(e->store, e->opened);
            e->opened = NULL;
        }
    }
    pthread_mutex_unlock(&e->counting);
    return status;
}

/* ---- at closing ----------------------------------------------------------------------------- */

static void save_counts(struct hf_scope *s, struct store_batch *batch, char kind, uint32_t id,
                        struct counts *counts)
{
    char name[32];
    uint8_t value[COUNT_VALUE];

    count_name(name, sizeof(name), kind, id);
    store_u64be(value, (uint64_t)atomic_load(&counts->items));
    store_u64be(value + 8, (uint64_t)atomic_load(&counts->bytes));
    hf__setting_put(s, batch, name, hf_bytes_of(value, sizeof(value)));
}

/* A failure is not an error: counts that were not saved are counted again at the next open. */
void hf__counts_save(struct hf_scope *s, struct engine *e)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint64_t ticket;

    if (e->opened) {
        hf__store_snapshot_close(e->store, e->opened);
        e->opened = NULL;
    }
    if (atomic_load(&e->lost))
        return;
    for (size_t i = 0; i < e->catalog.len; i++) {
        struct table *table = e->catalog.tables[i];

        if (atomic_load(&table->counts->stale))
            return;
        save_counts(s, &batch, 't', table->id, &table->counts->table);
        for (size_t j = 0; j < table->indexes_len; j++)
            save_counts(s, &batch, 'i', table->indexes[j].id, table->indexes[j].counts);
    }
    hf__setting_put(s, &batch, clean_setting, hf_bytes_of("1", 1));
    hf__kill_point("before_counts_saved");
    if (!batch.ops.failed && hf__store_write(s, e->store, &batch, &ticket) != HF_OK)
        hf__env_log(&e->env, HF_LOG_WARNING, "counts were not saved: %s", hf_scope_error_text(s));
    hf__kill_point("after_counts_saved");
}
