/*
 * engine/read/transact_get.c: TransactGetItems: up to a hundred items of one moment. A snapshot
 * gives the moment; no writer waits for it.
 */
#include "engine/engine.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/operations.h"
#include "engine/read/read.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/write/write.h"
#include "ops/prepare.h"
#include "store/store.h"

struct transact_get {
    const struct prepared_get *gets;
    size_t len;
    struct table **tables;
    size_t *latches;
    struct usage *usages; /* one per table, in the order of their first mention */
    size_t usages_len;
};

static enum hf_status check_gets(struct hf_scope *s, struct engine *e, struct transact_get *t)
{
    for (size_t i = 0; i < t->len; i++) {
        TRY(hf__catalog_item_table(s, e, t->gets[i].read.table, &t->tables[i]));
        for (size_t j = 0; j < i; j++)
            if (t->tables[i] == t->tables[j] && hf_item_equal(t->gets[i].key, t->gets[j].key))
                return hf__fail(s, HF_INVALID,
                                "Transaction request cannot include multiple "
                                "operations on one item");
    }
    return HF_OK;
}

/* The key of action `failed` does not fit: that is a reason to cancel, not a bad request. */
static enum hf_status cancel_gets(struct hf_scope *s, size_t len, size_t failed)
{
    struct hf_str message = hf_scope_error(s)->message;
    struct hf_cancel_reason *reasons;

    assert(failed < len);
    if (hf_scope_error(s)->status != HF_INVALID)
        return hf_scope_error(s)->status;
    reasons = hf__scope_array(s, len, sizeof(*reasons));
    if (!reasons)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        reasons[i].code = HF_STR("None");
    reasons[failed].code = HF_STR("ValidationError");
    reasons[failed].message = message;
    return hf__cancel(s, reasons, len);
}

static enum hf_status read_all(struct hf_scope *s, struct engine *e, struct transact_get *t,
                               const struct hf__store_snapshot *snapshot,
                               struct hf_item_response *items)
{
    for (size_t i = 0; i < t->len; i++) {
        struct row row;

        if (hf__schema_check_key(s, t->tables[i], t->gets[i].key) != HF_OK)
            return cancel_gets(s, t->len, i);
        TRY(hf__schema_check_paths(s, t->tables[i], t->gets[i].read.projection));
        TRY(hf__read_key(s, e, t->tables[i], snapshot, t->gets[i].key, &row));
        t->latches[i] = hf__row_latch(t->tables[i], t->gets[i].key);
        hf__usage_of(t->usages, &t->usages_len, t->tables[i], t->gets[i].read.table)->table_units +=
            TRANSACTION_FACTOR * hf__read_units(row.size, true);
        items[i].item = row.item;
        TRY(hf__scope_patient(s, row.size));
        TRY(hf__read_project(s, &t->gets[i].read, &items[i].item));
    }
    return HF_OK;
}

static enum hf_status transact_get_locked(struct hf_scope *s, struct engine *e,
                                          struct transact_get *t,
                                          enum hf_return_capacity return_capacity,
                                          struct hf_transact_get_items_result *result)
{
    struct hf__store_snapshot *snapshot;
    struct hf_item_response *items = hf__scope_array(s, t->len, sizeof(*items));
    struct hf_capacity *capacity = hf__scope_array(s, t->len, sizeof(*capacity));
    enum hf_status status;

    t->tables = hf__scope_array(s, t->len, sizeof(*t->tables));
    t->latches = hf__scope_array(s, t->len, sizeof(*t->latches));
    t->usages = hf__scope_array(s, t->len, sizeof(*t->usages));
    if (!items || !capacity || !t->tables || !t->latches || !t->usages)
        return hf__fail_nomem(s);
    TRY(check_gets(s, e, t));
    TRY(hf__store_snapshot_open(s, e->store, &snapshot));
    status = read_all(s, e, t, snapshot, items);
    hf__store_snapshot_close(e->store, snapshot);
    if (status != HF_OK)
        return status;
    assert(t->usages_len <= t->len);
    result->items = items;
    result->items_len = t->len;
    for (size_t i = 0; i < t->usages_len; i++) {
        const struct hf_capacity *used = hf__usage_capacity(s, &t->usages[i], return_capacity);

        if (used)
            capacity[result->capacity_len++] = *used;
    }
    result->capacity = result->capacity_len ? capacity : NULL;
    return HF_OK;
}

enum hf_status hf__transact_get(struct hf_scope *s, struct engine *e,
                                const struct prepared_get *gets, size_t len,
                                enum hf_return_capacity return_capacity,
                                struct hf_transact_get_items_result *result)
{
    struct transact_get t = {.gets = gets, .len = len};
    enum hf_status status;

    pthread_rwlock_rdlock(&e->schema);
    status = transact_get_locked(s, e, &t, return_capacity, result);
    pthread_rwlock_unlock(&e->schema);
    for (size_t i = 0; i < t.len && status == HF_OK; i++)
        status = hf__engine_wait_durable_read(s, e, t.latches[i]);
    return status;
}

enum hf_status hf__engine_transact_get_items(struct hf_scope *s, struct engine *e,
                                             const struct hf_transact_get_items *request,
                                             struct hf_transact_get_items_result *result)
{
    struct prepared_get *gets;

    TRY(hf__prepare_transact_get_items(s, e->cache, request, &gets));
    return hf__transact_get(s, e, gets, request->actions_len, request->return_capacity, result);
}
