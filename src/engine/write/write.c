/*
 * engine/write/write.c: PutItem, UpdateItem and DeleteItem, which are one thing: find the item as
 * it is, judge the condition, work out the item as it will be, apply the difference.
 */
#include "engine/write/write.h"
#include "engine/engine.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "expr/expr.h"
#include "model/value.h"
#include "ops/prepare.h"

/* Reading and evaluating a put, update, delete or check needs the same key. */
static struct hf_item key_source(enum write_kind kind, const struct prepared_write *write)
{
    return kind == WRITE_PUT ? write->item : write->key;
}

/* An update that would change a key attribute is refused before anything is read. */
static enum hf_status check_update_spares_key(struct hf_scope *s,
                                              const struct prepared_write *write)
{
    struct hf_item_walk walk = {.next = 0};
    const struct expr_path *targets;
    size_t len;

    if (!write->update)
        return HF_OK;
    hf__expr_targets(write->update, &targets, &len);
    while (hf_item_next(write->key, &walk))
        for (size_t i = 0; i < len; i++)
            if (hf_str_equal(targets[i].steps[0].name, walk.name))
                return hf__fail(s, HF_INVALID,
                                "One or more parameter values were invalid: Cannot update "
                                "attribute %.*s. This attribute is part of the key",
                                HF_FMT(walk.name));
    return HF_OK;
}

enum hf_status hf__write_check_schema(struct hf_scope *s, const struct table *table,
                                      enum write_kind kind, const struct prepared_write *write)
{
    if (kind == WRITE_PUT) {
        TRY(hf__schema_check_put(s, table, write->item));
        TRY(hf__schema_check_paths(s, table, write->condition));
        return hf__schema_check_indexes(s, table, write->item, NULL, (struct hf_item){NULL, 0});
    }
    TRY(hf__schema_check_key(s, table, write->key));
    TRY(check_update_spares_key(s, write));
    TRY(hf__schema_check_paths(s, table, write->update));
    return hf__schema_check_paths(s, table, write->condition);
}

static enum hf_status fail_condition(struct hf_scope *s, const struct prepared_write *write,
                                     struct hf_item before)
{
    enum hf_status status = hf__fail(s, HF_CONDITION, "The conditional request failed");

    if (write->return_old_on_failure)
        hf__scope_error_edit(s)->item = before;
    return status;
}

static enum hf_status evaluate_update(struct hf_scope *s, const struct prepared_write *write,
                                      struct change *change)
{
    struct hf_item before = change->before.item;
    struct hf_item after;

    if (write->update)
        TRY(hf__expr_update(s, write->update, write->key, before, &after));
    else
        after = before.ptr ? before : write->key;
    TRY(hf_item_check(s, after));
    change->after = (struct row){after, after.ptr ? hf_item_size(after) : 0};
    if (change->after.size > ITEM_SIZE_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_ITEM_SIZE_MAX, change->after.size),
                                   "Item size to update has exceeded the maximum allowed size");
    if (!after.ptr)
        return HF_OK;
    return hf__schema_check_indexes(s, change->table, after, write, before);
}

enum hf_status hf__write_evaluate(struct hf_scope *s, enum write_kind kind,
                                  const struct prepared_write *write, struct change *change)
{
    assert(change->table && change->key.ptr && !change->after.item.ptr);
    /* Nothing is written before all changes of a call were evaluated. */
    if (write->condition)
        TRY(hf__scope_patient_work(s, hf__expr_work(write->condition, change->before.item)));
    if (write->update)
        TRY(hf__scope_patient_work(s, hf__expr_work(write->update, change->before.item)));
    if (write->condition && !hf__expr_match(write->condition, change->before.item))
        return fail_condition(s, write, change->before.item);
    switch (kind) {
    case WRITE_PUT:
        change->after = (struct row){write->item, write->size};
        return HF_OK;
    case WRITE_UPDATE:
        return evaluate_update(s, write, change);
    case WRITE_DELETE:
        change->after = (struct row){{NULL, 0}, 0};
        return HF_OK;
    case WRITE_CHECK:
        change->after = change->before;
        return HF_OK;
    }
    return HF_OK;
}

static enum hf_status fill_returned(struct hf_scope *s, enum write_kind kind,
                                    const struct prepared_write *write, const struct change *change,
                                    struct hf_item *attributes)
{
    switch (write->returns) {
    case HF_RETURN_ALL_OLD:
        *attributes = change->before.item;
        return HF_OK;
    case HF_RETURN_ALL_NEW:
        *attributes = change->after.item;
        return HF_OK;
    case HF_RETURN_UPDATED_OLD:
    case HF_RETURN_UPDATED_NEW:
        if (kind != WRITE_UPDATE || !write->update)
            return HF_OK;
        return hf__expr_touched(s, write->update,
                                write->returns == HF_RETURN_UPDATED_OLD ? change->before.item
                                                                        : change->after.item,
                                attributes);
    case HF_RETURN_NONE:
        break;
    }
    return HF_OK;
}

static enum hf_status fill_answer(struct hf_scope *s, enum write_kind kind,
                                  const struct prepared_write *write, const struct change *change,
                                  struct write_answer *out)
{
    struct usage usage;

    TRY(fill_returned(s, kind, write, change, &out->attributes));
    TRY(hf_item_check(s, out->attributes));
    if (write->return_capacity) {
        usage = (struct usage){.table = change->table, .named = write->table};
        hf__usage_add_change(&usage, change, 1.0);
        out->capacity = hf__usage_capacity(s, &usage, write->return_capacity);
    }
    out->metrics =
        hf__collection_metrics(s, change->table, write->return_metrics, key_source(kind, write));
    return HF_OK;
}

/* With the schema read-locked and the partition latched. */
static enum hf_status write_latched(struct hf_scope *s, struct engine *e, enum write_kind kind,
                                    const struct prepared_write *write, struct change *change,
                                    struct write_answer *out, uint64_t *ticket)
{
    struct change_set set;

    ASSERT_SCHEMA_HELD(e);
    ASSERT_HELD(&e->latches[hf__stored_latch(change->key)].lock);
    TRY(hf__change_set(s, 1, &set));
    TRY(hf__change_read(s, e, change));
    TRY(hf__write_evaluate(s, kind, write, change));
    TRY(hf__change_add(s, e, &set, change));
    TRY(fill_answer(s, kind, write, change, out)); /* so that nothing can fail once it is applied */
    return hf__change_apply(s, e, &set, ticket);
}

enum hf_status hf__write_one(struct hf_scope *s, struct engine *e, enum write_kind kind,
                             const struct prepared_write *write, struct write_answer *out)
{
    struct change change = {.table = NULL};
    enum hf_status status;
    uint64_t ticket = 0;
    size_t latch = 0;

    TRY(hf__schema_read(s, e));
    status = hf__catalog_item_table(s, e, write->table, &change.table);
    if (status == HF_OK)
        status = hf__fence_check(s, e, change.table);
    if (status == HF_OK)
        status = hf__write_check_schema(s, change.table, kind, write);
    if (status == HF_OK)
        status = hf__change_key(s, &change, key_source(kind, write));
    if (status != HF_OK)
        goto done;
    latch = hf__stored_latch(change.key);
    status = hf__latch_patient(s, e, latch);
    if (status != HF_OK)
        goto done;
    status = write_latched(s, e, kind, write, &change, out, &ticket);
    if (status == HF_OK && ticket == 0) /* nothing changed: what is there must be durable */
        ticket = hf__latch_own_ticket(e, latch);
    hf__unlatch(e, latch, ticket);
done:
    pthread_rwlock_unlock(&e->schema);
    if (status == HF_OK)
        return hf__engine_wait_durable(s, e, ticket);
    if (status == HF_CONDITION) /* a crash must not take back the state that was the reason */
        TRY(hf__engine_wait_durable_read(s, e, latch));
    return status;
}

enum hf_status hf__engine_put_item(struct hf_scope *s, struct engine *e,
                                   const struct hf_put_item *request,
                                   struct hf_put_item_result *result)
{
    struct prepared_write write;
    struct write_answer out = {.attributes = {NULL, 0}};

    TRY(hf__prepare_put_item(s, e->cache, request, &write));
    TRY(hf__write_one(s, e, WRITE_PUT, &write, &out));
    *result = (struct hf_put_item_result){.attributes = out.attributes,
                                          .capacity = out.capacity,
                                          .metrics = out.metrics};
    return HF_OK;
}

enum hf_status hf__engine_update_item(struct hf_scope *s, struct engine *e,
                                      const struct hf_update_item *request,
                                      struct hf_update_item_result *result)
{
    struct prepared_write write;
    struct write_answer out = {.attributes = {NULL, 0}};

    TRY(hf__prepare_update_item(s, e->cache, request, &write));
    TRY(hf__write_one(s, e, WRITE_UPDATE, &write, &out));
    *result = (struct hf_update_item_result){.attributes = out.attributes,
                                             .capacity = out.capacity,
                                             .metrics = out.metrics};
    return HF_OK;
}

enum hf_status hf__engine_delete_item(struct hf_scope *s, struct engine *e,
                                      const struct hf_delete_item *request,
                                      struct hf_delete_item_result *result)
{
    struct prepared_write write;
    struct write_answer out = {.attributes = {NULL, 0}};

    TRY(hf__prepare_delete_item(s, e->cache, request, &write));
    TRY(hf__write_one(s, e, WRITE_DELETE, &write, &out));
    *result = (struct hf_delete_item_result){.attributes = out.attributes,
                                             .capacity = out.capacity,
                                             .metrics = out.metrics};
    return HF_OK;
}
