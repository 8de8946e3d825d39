/*
 * engine/counts.c: how many items and bytes tables and indexes have.
 *
 * Writers add to counters in memory. A clean close stores them together with the mark "clean",
 * which the next open removes before anything else is written; so a database that opens without the
 * mark was not closed cleanly, and its counters are not known. Then the state at opening is kept as
 * a snapshot, and a table is counted from it when somebody asks, or by upkeep; what writers added
 * since is in the counters already and the sum is exact.
 */
#include "engine/private.h"

#include "base/kill.h"

enum { COUNT_VALUE = 16 };

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

static enum hf_status load_all(struct hf_scope *s, struct engine *e)
{
    for (size_t i = 0; i < e->catalog.len; i++) {
        struct table *table = e->catalog.tables[i];

        TRY(load_counts(s, e, 't', table->id, &table->counts->table));
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
        for (size_t i = 0; i < e->catalog.len; i++)
            e->catalog.tables[i]->counts->stale = true;
        return hf__store_snapshot_open(s, e->store, &e->opened);
    }
    if (!clean.ptr)
        return HF_OK;
    TRY(load_all(s, e));
    hf__setting_delete(s, &batch, clean_setting);
    if (batch.ops.failed)
        return hf__fail_nomem(s);
    return hf__store_write(s, e->store, &batch, &ticket);
}

/* ---- counting again ------------------------------------------------------------------------- */

static enum hf_status count_space(struct hf_scope *s, struct engine *e, uint8_t space, uint32_t id,
                                  struct counts *counts)
{
    struct hf__buf lower = {.scope = s};
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status;
    long long items = 0;
    long long bytes = 0;
    bool found = true;

    hf__key_prefix(&lower, space, id);
    hf__key_prefix(&upper, space, id + 1);
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, e->opened, &range, &iter));
    do {
        struct hf_bytes key, value;
        struct row row;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status == HF_OK && found) {
            status = hf__row_decode(s, value, &row);
            items++;
            bytes += (long long)row.size;
        }
    } while (status == HF_OK && found);
    hf__store_iter_close(iter);
    if (status == HF_OK) {
        atomic_fetch_add(&counts->items, items);
        atomic_fetch_add(&counts->bytes, bytes);
    }
    return status;
}

static enum hf_status count_table(struct hf_scope *s, struct engine *e, struct table *table)
{
    if (!table->counts->stale)
        return HF_OK;
    TRY(count_space(s, e, SPACE_ITEM, table->id, &table->counts->table));
    for (size_t i = 0; i < table->indexes_len; i++)
        TRY(count_space(s, e, SPACE_INDEX, table->indexes[i].id, table->indexes[i].counts));
    table->counts->stale = false;
    return HF_OK;
}

enum hf_status hf__counts_refresh(struct hf_scope *s, struct engine *e, struct table *table)
{
    enum hf_status status;

    pthread_mutex_lock(&e->counting);
    status = count_table(s, e, table);
    pthread_mutex_unlock(&e->counting);
    return status;
}

enum hf_status hf__counts_refresh_all(struct hf_scope *s, struct engine *e)
{
    enum hf_status status = HF_OK;

    pthread_rwlock_rdlock(&e->schema);
    pthread_mutex_lock(&e->counting);
    if (e->opened) {
        for (size_t i = 0; i < e->catalog.len && status == HF_OK; i++)
            status = count_table(s, e, e->catalog.tables[i]);
        if (status == HF_OK) {
            hf__store_snapshot_close(e->store, e->opened);
            e->opened = NULL;
        }
    }
    pthread_mutex_unlock(&e->counting);
    pthread_rwlock_unlock(&e->schema);
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

/* What cannot be saved is counted again next time; so failing is not an error. */
void hf__counts_save(struct hf_scope *s, struct engine *e)
{
    struct store_batch batch = {.ops = {.scope = s}};
    uint64_t ticket;

    if (e->opened) {
        hf__store_snapshot_close(e->store, e->opened);
        e->opened = NULL;
    }
    for (size_t i = 0; i < e->catalog.len; i++) {
        struct table *table = e->catalog.tables[i];

        if (table->counts->stale)
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
