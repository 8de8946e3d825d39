/*
 * engine/maintenance/ttl.c: items that expire.
 *
 * Where a table has a time-to-live attribute, every item whose attribute is a number has an expiry
 * entry, written in the batch of the item. Sweeping walks the entries that are due, and deletes
 * each item after looking at it again under its latch: one that was changed in between stays.
 *
 * As DynamoDB has it, an item whose time ended more than five years ago never expires.
 */
#include "engine/maintenance/ttl.h"
#include "base/buf.h"
#include "engine/engine.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/layout.h"
#include "engine/maintenance/erase.h"
#include "engine/maintenance/maintenance.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "model/value.h"
#include "ops/prepare.h"
#include "store/store.h"

#include "base/kill.h"

#define EXPIRY_WINDOW_S (INT64_C(5) * 365 * 24 * 60 * 60)

enum { SWEEP_BATCH = 100 };

bool hf__ttl_expiry(struct hf_str attribute, struct hf_item item, uint64_t *expiry)
{
    struct hf_value value = hf_item_get(item, attribute);
    struct hf_bytes number;
    int64_t seconds;

    if (hf_value_type(value) != HF_TYPE_N)
        return false;
    number = hf__value_scalar(value);
    seconds = hf__number_floor_i64(number.ptr, number.len);
    if (seconds < 0)
        return false;
    *expiry = (uint64_t)seconds;
    return true;
}

void hf__ttl_key(struct hf__buf *buf, const struct table *table, uint64_t expiry,
                 struct hf_item item)
{
    uint8_t bytes[8];

    hf__stored_key_prefix(buf, SPACE_EXPIRY, table->ttl_id);
    store_u64be(bytes, expiry);
    hf__buf_put(buf, bytes, sizeof(bytes));
    if (item.ptr)
        hf__stored_key_parts(buf, &table->key, item);
}

void hf__ttl_change(struct hf_scope *s, struct change_set *set, const struct change *change)
{
    struct hf_str attribute = change->table->ttl_attribute;
    uint64_t before, after;
    bool was = hf__ttl_expiry(attribute, change->before.item, &before);
    bool is = hf__ttl_expiry(attribute, change->after.item, &after);
    struct hf__buf key = {.scope = s};

    if (was && is && before == after)
        return;
    if (was) {
        hf__ttl_key(&key, change->table, before, change->before.item);
        if (!key.failed)
            hf__batch_delete(&set->batch, hf_bytes_of(key.ptr, key.len));
    }
    if (is && !key.failed) {
        key.len = 0;
        hf__ttl_key(&key, change->table, after, change->after.item);
        if (!key.failed)
            hf__batch_put_parts(&set->batch, hf_bytes_of(key.ptr, key.len), hf_bytes_of(NULL, 0),
                                hf_bytes_of(NULL, 0), change->table->record.ttl_building != HF_YES);
    }
    if (key.failed)
        set->batch.ops.failed = true;
}

/* ---- sweeping ------------------------------------------------------------------------------- */

struct due {
    struct hf_bytes row_key;
    uint64_t expiry;
};

/* Where a sweep is. It goes on behind the last entry that it took: an iterator would have to step
 * over the deleted ones again and again. */
struct sweep {
    int64_t now_s;
    uint64_t *expired;
    size_t at;           /* in the catalog */
    uint32_t ttl_id;     /* of the table that `from` is about */
    struct hf__buf from; /* the expiry key to go on from; empty: from the beginning */
};

/* The keys of up to SWEEP_BATCH items of a table that are due. */
static enum hf_status find_due(struct hf_scope *s, struct engine *e, struct table *table,
                               struct sweep *sweep, struct due *due, size_t *len)
{
    int64_t now_s = sweep->now_s;
    struct hf__buf lower = {.scope = s};
    struct hf__buf upper = {.scope = s};
    struct hf__store_iter *iter;
    struct store_range range;
    enum hf_status status = HF_OK;
    bool found = true;

    assert(now_s >= 0 && table->ttl_attribute.ptr);
    ASSERT_SCHEMA_HELD(e);
    if (sweep->from.len && sweep->ttl_id == table->ttl_id)
        hf__buf_put(&lower, sweep->from.ptr, sweep->from.len);
    else
        hf__ttl_key(&lower, table,
                    now_s > EXPIRY_WINDOW_S ? (uint64_t)(now_s - EXPIRY_WINDOW_S) : 0,
                    (struct hf_item){NULL, 0});
    hf__ttl_key(&upper, table, (uint64_t)now_s, (struct hf_item){NULL, 0});
    if (lower.failed || upper.failed)
        return hf__fail_nomem(s);
    range = (struct store_range){.lower = {lower.ptr, lower.len}, .upper = {upper.ptr, upper.len}};
    TRY(hf__store_iter_open(s, e->store, NULL, &range, &iter));
    while (*len < SWEEP_BATCH) {
        struct hf__buf row = {.scope = s};
        struct hf_bytes key, value;

        status = hf__store_iter_next(s, iter, &found, &key, &value);
        if (status != HF_OK || !found)
            break;
        if (key.len <= PREFIX_LEN + 8) {
            status = hf__fail(s, HF_CORRUPT, "An expiry entry is damaged");
            break;
        }
        hf__stored_key_prefix(&row, SPACE_ITEM, table->id);
        hf__buf_put(&row, key.ptr + PREFIX_LEN + 8, key.len - PREFIX_LEN - 8);
        if (row.failed) {
            status = hf__fail_nomem(s);
            break;
        }
        due[(*len)++] =
            (struct due){.row_key = {row.ptr, row.len}, .expiry = load_u64be(key.ptr + PREFIX_LEN)};
        sweep->from.len = 0;
        hf__buf_put(&sweep->from, key.ptr, key.len);
        hf__buf_put_byte(&sweep->from, 0);
    }
    sweep->ttl_id = table->ttl_id;
    hf__store_iter_close(iter);
    return status;
}

/* Delete one item if it is still due. */
static enum hf_status expire_latched(struct hf_scope *s, struct engine *e, struct table *table,
                                     struct due *due, uint64_t *ticket, uint64_t *expired)
{
    struct change change = {.table = table, .key = due->row_key, .by_service = true};
    struct change_set set;
    uint64_t expiry;

    TRY(hf__row_read(s, e, NULL, due->row_key, &change.before));
    if (!change.before.item.ptr ||
        !hf__ttl_expiry(table->ttl_attribute, change.before.item, &expiry) || expiry != due->expiry)
        return HF_OK;
    assert(!change.after.item.ptr);
    TRY(hf__change_set(s, 1, &set));
    TRY(hf__change_add(s, e, &set, &change));
    hf__kill_point("before_expiry");
    TRY(hf__change_apply(s, e, &set, ticket));
    (*expired)++;
    return HF_OK;
}

static enum hf_status expire_item(struct hf_scope *s, struct engine *e, struct table *table,
                                  struct due *due, uint64_t *expired)
{
    struct row row;
    uint64_t ticket = 0;
    enum hf_status status;
    size_t latch;

    TRY(hf__row_read(s, e, NULL, due->row_key, &row));
    if (!row.item.ptr)
        return HF_OK;
    latch = hf__row_latch(table, row.item);
    hf__latch(e, latch);
    status = expire_latched(s, e, table, due, &ticket, expired);
    hf__unlatch(e, latch, ticket);
    return status;
}

static enum hf_status sweep_table(struct hf_scope *s, struct engine *e, struct table *table,
                                  struct sweep *sweep, bool *more)
{
    struct due *due = hf__scope_array(s, SWEEP_BATCH, sizeof(*due));
    size_t len = 0;

    if (!due)
        return hf__fail_nomem(s);
    TRY(find_due(s, e, table, sweep, due, &len));
    if (sweep->from.failed)
        return hf__fail_nomem(s);
    *more = len == SWEEP_BATCH;
    for (size_t i = 0; i < len; i++) {
        struct hf__mark mark = hf__scope_mark(s);

        TRY(expire_item(s, e, table, &due[i], sweep->expired));
        hf__scope_rewind(s, mark);
    }
    return HF_OK;
}

/* The schema lock is released between batches, so that operations on tables can run. */
static enum hf_status sweep_all(struct hf_scope *s, struct engine *e, struct sweep *sweep)
{
    enum hf_status status = HF_OK;
    bool any = true;

    while (any && status == HF_OK && !atomic_load(&e->maintenance.stop)) {
        struct hf__mark mark = hf__scope_mark(s);
        bool more = false;

        pthread_rwlock_rdlock(&e->schema);
        any = sweep->at < e->catalog.len;
        if (any && e->catalog.tables[sweep->at]->ttl_attribute.ptr)
            status = sweep_table(s, e, e->catalog.tables[sweep->at], sweep, &more);
        pthread_rwlock_unlock(&e->schema);
        if (!more) {
            sweep->at++;
            sweep->from.len = 0;
        }
        if (status == HF_OK)
            hf__scope_rewind(s, mark);
    }
    return status;
}

enum hf_status hf__ttl_sweep(struct hf_scope *s, struct engine *e, uint64_t *expired)
{
    struct sweep sweep = {.now_s = hf__env_wall_us(&e->env) / 1000000,
                          .expired = expired,
                          .from = {.env = &e->env}}; /* the scope is rewound under it */
    enum hf_status status = sweep_all(s, e, &sweep);

    hf__buf_free(&sweep.from);
    return status;
}

/* ---- operations ----------------------------------------------------------------------------- */

static enum hf_status check_change(struct hf_scope *s, const struct table *table,
                                   const struct hf_ttl_spec *spec)
{
    struct hf_str now = table->ttl_attribute;

    if (spec->enabled != HF_YES && !now.ptr)
        return hf__fail(s, HF_INVALID, "TimeToLive is already disabled");
    if (now.ptr && !hf_str_equal(now, spec->attribute))
        return hf__fail(s, HF_INVALID,
                        "TimeToLive is active on a different AttributeName: current AttributeName "
                        "is %.*s",
                        HF_FMT(now));
    if (spec->enabled == HF_YES && now.ptr)
        return hf__fail(s, HF_INVALID, "TimeToLive is already enabled");
    return HF_OK;
}

static enum hf_status update_locked(struct hf_scope *s, struct engine *e,
                                    const struct hf_update_time_to_live *request)
{
    struct store_batch batch = {.ops = {.scope = s}};
    struct table_record record;
    struct table *table;

    ASSERT_SCHEMA_WRITTEN(e);
    TRY(hf__catalog_table(s, e, request->table, &table));
    TRY(check_change(s, table, request->spec));
    record = table->record;
    if (request->spec->enabled == HF_YES) {
        record.ttl_attribute = request->spec->attribute;
        record.ttl_id = hf__catalog_new_id(s, e, &batch);
        record.ttl_building = HF_YES;
    } else {
        record.ttl_attribute = hf_str_of(NULL, 0);
        record.ttl_id = 0;
        record.ttl_building = HF_UNSET;
        hf__erase_later(&batch, SPACE_EXPIRY, table->ttl_id);
    }
    return hf__catalog_update(s, e, &batch, table, &record);
}

enum hf_status hf__engine_update_time_to_live(struct hf_scope *s, struct engine *e,
                                              const struct hf_update_time_to_live *request,
                                              struct hf_update_time_to_live_result *result)
{
    struct hf_ttl_spec *spec = hf__scope_array(s, 1, sizeof(*spec));
    enum hf_status status;

    if (!spec)
        return hf__fail_nomem(s);
    TRY(hf__prepare_plain(s, HF_OP_UPDATE_TIME_TO_LIVE, request));
    hf__schema_lock(e);
    status = update_locked(s, e, request);
    pthread_rwlock_unlock(&e->schema);
    if (status != HF_OK)
        return status;
    hf__engine_maintenance_wake(e);
    *spec = *request->spec;
    spec->attribute = hf_scope_copy(s, request->spec->attribute);
    result->spec = spec;
    return hf__engine_wait_durable(s, e, hf__store_written(e->store));
}

enum hf_status hf__engine_describe_time_to_live(struct hf_scope *s, struct engine *e,
                                                const struct hf_describe_time_to_live *request,
                                                struct hf_describe_time_to_live_result *result)
{
    struct hf_ttl_description *d = hf__scope_array(s, 1, sizeof(*d));
    struct table *table;
    enum hf_status status;

    if (!d)
        return hf__fail_nomem(s);
    TRY(hf__prepare_plain(s, HF_OP_DESCRIBE_TIME_TO_LIVE, request));
    pthread_rwlock_rdlock(&e->schema);
    status = hf__catalog_table(s, e, request->table, &table);
    if (status == HF_OK) {
        d->status = table->ttl_attribute.ptr ? HF_TTL_ENABLED : HF_TTL_DISABLED;
        if (table->ttl_attribute.ptr)
            d->attribute = hf_scope_copy(s, table->ttl_attribute);
        result->description = d;
    }
    pthread_rwlock_unlock(&e->schema);
    return status;
}
