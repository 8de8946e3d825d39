/*
 * engine/write/fence.c: tables whose data has moved, and that nobody may write (<holdfast/fence.h>).
 *
 * A fence is an item of the table HF_FENCE_TABLE. The first write to a table looks whether there is
 * one of its name, and the table remembers the answer: a write to a table that is not fenced costs
 * one look at a number.
 *
 *  (1) A write asks with the schema read-locked, and holds that lock until it is applied.
 *  (2) A write to the table of fences is followed by hf__fences_follow(), before the call returns.
 *      That locks the schema to write: when it has it, no write that was told "no fence" is under
 *      way. Then it makes all tables forget. So behind hf_fence_set() nothing is written any more.
 *  (3) A table remembers only while the schema is read-locked, so it does not remember what was read
 *      before (2).
 *  (4) Tables forget, too, when the table of fences is created, replaced or deleted (catalog.c), and
 *      a table that is new or was just loaded does not know yet. So a fence outlives an open, a
 *      restore, and its table, if that is created again.
 */
#include <holdfast/fence.h>

#include "engine/item/change.h"
#include "engine/table/catalog.h"
#include "engine/write/write.h"

/* The fences are in a table that is as hf_fence_set() makes it; another one of the name has none. */
static bool has_fences(const struct table *fences)
{
    return fences && !fences->record.restore_from && fences->key.hash_len == 1 &&
           fences->key.range_len == 0 && fences->key.hash[0].type == HF_TYPE_S &&
           hf_str_equal(fences->key.hash[0].name, HF_STR("table"));
}

/* The fence of the table, or an absent item. */
static enum hf_status fence_read(struct hf_scope *s, struct engine *e, const struct table *table,
                                 struct hf_item *fence)
{
    struct change at = {.table = hf__catalog_find(e, HF_FENCE_TABLE)};
    struct row row;

    *fence = (struct hf_item){NULL, 0};
    if (!has_fences(at.table) || at.table == table)
        return HF_OK;
    TRY(hf__change_key(s, &at, HF_ITEM(s, HF_S("table", table->name))));
    TRY(hf__row_read(s, e, NULL, at.key, &row));
    *fence = row.item;
    return HF_OK;
}

enum hf_status hf__fence_check(struct hf_scope *s, struct engine *e, struct table *table)
{
    struct hf_item fence;
    struct hf_str to;

    ASSERT_SCHEMA_HELD(e);
    if (atomic_load_explicit(&table->counts->fence, memory_order_relaxed) == FENCE_NONE)
        return HF_OK;
    TRY(fence_read(s, e, table, &fence));
    atomic_store(&table->counts->fence, fence.ptr ? FENCE_SET : FENCE_NONE); /* (3) */
    if (!fence.ptr)
        return HF_OK;
    to = hf_value_str(hf_item_get(fence, HF_STR("to")));
    return hf__fail(s, HF_DENIED,
                    "table %.*s is fenced: its data has moved%s%.*s; nothing was written",
                    HF_FMT(table->name), to.len ? " to " : "", HF_FMT(to));
}

void hf__fences_follow(struct engine *e)
{
    unsigned long long changes = atomic_load(&e->fence_changes);

    if (changes == atomic_load_explicit(&e->fence_seen, memory_order_relaxed))
        return;
    hf__schema_lock(e); /* (2) */
    hf__catalog_forget_fences(e);
    pthread_rwlock_unlock(&e->schema);
    atomic_store(&e->fence_seen, changes);
}
