/*
 * ops/prepare_transactions.c: TransactWriteItems and TransactGetItems.
 *
 * Actions are read in the order of the request, each through the same steps as the operation of its
 * kind, and the first that fails decides for the whole request. What depends on data or the schema,
 * such as a key of the wrong type, becomes a reason for cancelling, in the engine. Unlike
 * elsewhere, the expressions of an action are checked before its key.
 */
#include "ops/private.h"

/* ---- TransactWriteItems --------------------------------------------------------------------- */

static enum hf_status prepare_check(struct hf_scope *s, struct hf__expr_cache *cache,
                                    const struct hf_condition_check *check,
                                    struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_TRANSACT_WRITE_ITEMS,
        .list = {{"ConditionExpression", EXPR_CONDITION, check->condition, &out->condition}},
        .len = 1,
        .names = check->names,
        .values = check->values,
    };

    assert(!out->condition && !out->update);
    out->table = check->table;
    out->key = check->key;
    out->return_old_on_failure = check->returns_on_failure == HF_ON_FAILURE_ALL_OLD;
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__expressions_bind(s, &expressions));
    TRY(hf__check_item(s, HF_OP_TRANSACT_WRITE_ITEMS, check->key));
    hf__prepared_write_check(WRITE_CHECK, out);
    return HF_OK;
}

static enum hf_status prepare_put(struct hf_scope *s, struct hf__expr_cache *cache,
                                  const struct hf_put_item *put, struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_TRANSACT_WRITE_ITEMS,
        .list = {{"ConditionExpression", EXPR_CONDITION, put->condition, &out->condition}},
        .len = 1,
        .names = put->names,
        .values = put->values,
    };

    assert(!out->condition && put->item.ptr);
    out->table = put->table;
    out->item = put->item;
    out->return_old_on_failure = put->returns_on_failure == HF_ON_FAILURE_ALL_OLD;
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__check_item(s, HF_OP_TRANSACT_WRITE_ITEMS, put->item));
    TRY(hf__expressions_bind(s, &expressions));
    TRY(hf__check_item_size(s, put->item, &out->size));
    hf__prepared_write_check(WRITE_PUT, out);
    return HF_OK;
}

static enum hf_status prepare_delete(struct hf_scope *s, struct hf__expr_cache *cache,
                                     const struct hf_delete_item *del, struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_TRANSACT_WRITE_ITEMS,
        .list = {{"ConditionExpression", EXPR_CONDITION, del->condition, &out->condition}},
        .len = 1,
        .names = del->names,
        .values = del->values,
    };

    assert(!out->condition && del->key.ptr);
    out->table = del->table;
    out->key = del->key;
    out->return_old_on_failure = del->returns_on_failure == HF_ON_FAILURE_ALL_OLD;
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__expressions_bind(s, &expressions));
    TRY(hf__check_item(s, HF_OP_TRANSACT_WRITE_ITEMS, del->key));
    hf__prepared_write_check(WRITE_DELETE, out);
    return HF_OK;
}

static enum hf_status prepare_update(struct hf_scope *s, struct hf__expr_cache *cache,
                                     const struct hf_update_item *update,
                                     struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_TRANSACT_WRITE_ITEMS,
        .list = {{"UpdateExpression", EXPR_UPDATE, update->update, &out->update},
                 {"ConditionExpression", EXPR_CONDITION, update->condition, &out->condition}},
        .len = 2,
        .order = {0, 1},
        .names = update->names,
        .values = update->values,
    };

    assert(!out->condition && !out->update);
    out->table = update->table;
    out->key = update->key;
    out->return_old_on_failure = update->returns_on_failure == HF_ON_FAILURE_ALL_OLD;
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__expressions_bind(s, &expressions));
    TRY(hf__check_item(s, HF_OP_TRANSACT_WRITE_ITEMS, update->key));
    hf__prepared_write_check(WRITE_UPDATE, out);
    return HF_OK;
}

static enum hf_status check_one_member(struct hf_scope *s, const struct hf_transact_write *action)
{
    int members = (action->check != NULL) + (action->put != NULL) + (action->del != NULL) +
                  (action->update != NULL);

    if (members == 0)
        return hf__fail(s, HF_INVALID,
                        "Invalid Request: TransactWriteRequest should contain Delete or Put or "
                        "Update request");
    if (members > 1)
        return hf__fail(s, HF_INVALID,
                        "TransactItems can only contain one of Check, Put, Update or Delete");
    return HF_OK;
}

/* `size` grows by what the action brings with it: what it writes, or its key and values. */
static enum hf_status prepare_action(struct hf_scope *s, struct hf__expr_cache *cache,
                                     const struct hf_transact_write *action,
                                     struct prepared_action *out, size_t *size)
{
    if (action->check) {
        out->kind = WRITE_CHECK;
        *size += hf_item_size(action->check->key);
        return prepare_check(s, cache, action->check, &out->write);
    }
    if (action->put) {
        out->kind = WRITE_PUT;
        *size += hf_item_size(action->put->item);
        return prepare_put(s, cache, action->put, &out->write);
    }
    if (action->del) {
        out->kind = WRITE_DELETE;
        *size += hf_item_size(action->del->key);
        return prepare_delete(s, cache, action->del, &out->write);
    }
    assert(action->update); /* exactly one of the four: check_one_member() */
    out->kind = WRITE_UPDATE;
    *size += hf_item_size(action->update->key) + hf_item_size(action->update->values);
    return prepare_update(s, cache, action->update, &out->write);
}

enum hf_status hf__prepare_transact_write_items(struct hf_scope *s, struct hf__expr_cache *cache,
                                                const struct hf_transact_write_items *request,
                                                struct prepared_action **out)
{
    size_t size = 0;

    TRY(hf__constraints(s, HF_OP_TRANSACT_WRITE_ITEMS, request));
    *out = hf__scope_array(s, request->actions_len, sizeof(**out));
    if (!*out)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < request->actions_len; i++) {
        TRY(check_one_member(s, &request->actions[i]));
        TRY(prepare_action(s, cache, &request->actions[i], &(*out)[i], &size));
        (*out)[i].write.return_capacity = request->return_capacity;
        (*out)[i].write.return_metrics = request->return_metrics;
    }
    if (size > TRANSACTION_BYTES_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   hf_error_limit_of("HF_TX_BYTES_MAX", TRANSACTION_BYTES_MAX,
                                                     size),
                                   "Transaction size cannot exceed 4 MB");
    return HF_OK;
}

/* ---- TransactGetItems ----------------------------------------------------------------------- */

static enum hf_status prepare_get(struct hf_scope *s, struct hf__expr_cache *cache,
                                  const struct hf_get_item *get, struct prepared_get *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_TRANSACT_GET_ITEMS,
        .list = {{"ProjectionExpression", EXPR_PROJECTION, get->projection, &out->read.projection}},
        .len = 1,
        .names = get->names,
    };

    assert(get->key.ptr && !out->read.projection);
    out->read.table = get->table;
    out->read.consistent = true;
    out->key = get->key;
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__check_item(s, HF_OP_TRANSACT_GET_ITEMS, get->key));
    return hf__expressions_bind(s, &expressions);
}

enum hf_status hf__prepare_transact_get_items(struct hf_scope *s, struct hf__expr_cache *cache,
                                              const struct hf_transact_get_items *request,
                                              struct prepared_get **out)
{
    TRY(hf__constraints(s, HF_OP_TRANSACT_GET_ITEMS, request));
    *out = hf__scope_array(s, request->actions_len, sizeof(**out));
    if (!*out)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < request->actions_len; i++) {
        assert(request->actions[i].get); /* it is required */
        TRY(prepare_get(s, cache, request->actions[i].get, &(*out)[i]));
        (*out)[i].read.return_capacity = request->return_capacity;
    }
    return HF_OK;
}
