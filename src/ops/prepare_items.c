/*
 * ops/prepare_items.c: PutItem, UpdateItem, DeleteItem, GetItem.
 *
 * Each runs the steps in DynamoDB's order: constraints, mixed parameters, names or values without
 * an expression, well-formed values, legacy shapes, expressions, size. The first that fails
 * decides.
 */
#include "ops/private.h"

void hf__prepared_write_check(enum write_kind kind, const struct prepared_write *write)
{
    assert(write->table.ptr);
    assert((kind == WRITE_PUT) == (write->item.ptr != NULL)); /* a put has an item, */
    assert((kind == WRITE_PUT) == (write->key.ptr == NULL));  /* all others a key */
    assert(!write->update || kind == WRITE_UPDATE);
    assert(write->size <= ITEM_SIZE_MAX && (kind == WRITE_PUT || !write->size));
}

/* ReturnValues of PutItem and DeleteItem. */
static enum hf_status check_returns_old(struct hf_scope *s, enum hf_return_values returns)
{
    if (returns && returns != HF_RETURN_NONE && returns != HF_RETURN_ALL_OLD)
        return hf__fail(s, HF_INVALID, "ReturnValues can only be ALL_OLD or NONE");
    return HF_OK;
}

/* From mixed parameters to what is returned. */
static enum hf_status put_begin(struct hf_scope *s, const struct hf_put_item *request,
                                const struct expressions *expressions)
{
    assert(request->item.ptr); /* constraints ask for it */
    TRY(hf__expressions_mixed(s, expressions));
    TRY(hf__check_item(s, HF_OP_PUT_ITEM, request->item));
    return check_returns_old(s, request->returns);
}

/* From Expected to unused values. */
static enum hf_status put_conditions(struct hf_scope *s, const struct hf_put_item *request,
                                     const struct expressions *expressions,
                                     struct prepared_write *out)
{
    assert(!out->condition && out->item.ptr);
    TRY(hf__legacy_expected(s, HF_OP_PUT_ITEM, request->expected, request->expected_len,
                            request->conditional_operator, &out->condition));
    return hf__expressions_bind(s, expressions);
}

enum hf_status hf__prepare_put_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                    const struct hf_put_item *request, struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_PUT_ITEM,
        .list = {{"ConditionExpression", EXPR_CONDITION, request->condition, &out->condition}},
        .len = 1,
        .legacy = {{"Expected", request->expected != NULL},
                   {"ConditionalOperator", request->conditional_operator != 0}},
        .legacy_len = 2,
        .names = request->names,
        .values = request->values,
    };

    *out = (struct prepared_write){
        .table = request->table,
        .item = request->item,
        .returns = request->returns,
        .return_old_on_failure = request->returns_on_failure == HF_ON_FAILURE_ALL_OLD,
        .return_capacity = request->return_capacity,
        .return_metrics = request->return_metrics,
    };
    TRY(hf__constraints(s, HF_OP_PUT_ITEM, request));
    TRY(hf__reword(s, HF_OP_PUT_ITEM, put_begin(s, request, &expressions)));
    if (request->expected) /* comes behind the size, an expression before it */
        TRY(hf__check_item_size(s, request->item, &out->size));
    TRY(hf__reword(s, HF_OP_PUT_ITEM, put_conditions(s, request, &expressions, out)));
    if (!request->expected)
        TRY(hf__check_item_size(s, request->item, &out->size));
    hf__prepared_write_check(WRITE_PUT, out);
    return HF_OK;
}

static enum hf_status delete_steps(struct hf_scope *s, const struct hf_delete_item *request,
                                   const struct expressions *expressions,
                                   struct prepared_write *out)
{
    assert(request->key.ptr);
    TRY(hf__expressions_mixed(s, expressions));
    TRY(hf__check_item(s, HF_OP_DELETE_ITEM, request->key));
    TRY(check_returns_old(s, request->returns));
    TRY(hf__legacy_expected(s, HF_OP_DELETE_ITEM, request->expected, request->expected_len,
                            request->conditional_operator, &out->condition));
    return hf__expressions_bind(s, expressions);
}

enum hf_status hf__prepare_delete_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                       const struct hf_delete_item *request,
                                       struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_DELETE_ITEM,
        .list = {{"ConditionExpression", EXPR_CONDITION, request->condition, &out->condition}},
        .len = 1,
        .legacy = {{"Expected", request->expected != NULL},
                   {"ConditionalOperator", request->conditional_operator != 0}},
        .legacy_len = 2,
        .names = request->names,
        .values = request->values,
    };

    *out = (struct prepared_write){
        .table = request->table,
        .key = request->key,
        .returns = request->returns,
        .return_old_on_failure = request->returns_on_failure == HF_ON_FAILURE_ALL_OLD,
        .return_capacity = request->return_capacity,
        .return_metrics = request->return_metrics,
    };
    TRY(hf__constraints(s, HF_OP_DELETE_ITEM, request));
    TRY(hf__reword(s, HF_OP_DELETE_ITEM, delete_steps(s, request, &expressions, out)));
    hf__prepared_write_check(WRITE_DELETE, out);
    return HF_OK;
}

static enum hf_status update_steps(struct hf_scope *s, const struct hf_update_item *request,
                                   const struct expressions *expressions,
                                   struct prepared_write *out)
{
    assert(request->key.ptr);
    TRY(hf__expressions_mixed(s, expressions));
    TRY(hf__check_item(s, HF_OP_UPDATE_ITEM, request->key));
    TRY(hf__legacy_updates(s, request->updates, request->updates_len, &out->update));
    TRY(hf__legacy_expected(s, HF_OP_UPDATE_ITEM, request->expected, request->expected_len,
                            request->conditional_operator, &out->condition));
    return hf__expressions_bind(s, expressions);
}

enum hf_status hf__prepare_update_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                       const struct hf_update_item *request,
                                       struct prepared_write *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_UPDATE_ITEM,
        .list = {{"UpdateExpression", EXPR_UPDATE, request->update, &out->update},
                 {"ConditionExpression", EXPR_CONDITION, request->condition, &out->condition}},
        .len = 2,
        .order = {0, 1},
        .legacy = {{"AttributeUpdates", request->updates != NULL},
                   {"Expected", request->expected != NULL},
                   {"ConditionalOperator", request->conditional_operator != 0}},
        .legacy_len = 3,
        .names = request->names,
        .values = request->values,
    };

    *out = (struct prepared_write){
        .table = request->table,
        .key = request->key,
        .returns = request->returns,
        .return_old_on_failure = request->returns_on_failure == HF_ON_FAILURE_ALL_OLD,
        .return_capacity = request->return_capacity,
        .return_metrics = request->return_metrics,
    };
    TRY(hf__constraints(s, HF_OP_UPDATE_ITEM, request));
    TRY(hf__reword(s, HF_OP_UPDATE_ITEM, update_steps(s, request, &expressions, out)));
    hf__prepared_write_check(WRITE_UPDATE, out);
    return HF_OK;
}

enum hf_status hf__prepare_get_item(struct hf_scope *s, struct hf__expr_cache *cache,
                                    const struct hf_get_item *request, struct prepared_read *out)
{
    const struct expressions expressions = {
        .cache = cache,
        .op = HF_OP_GET_ITEM,
        .list = {{"ProjectionExpression", EXPR_PROJECTION, request->projection, &out->projection}},
        .len = 1,
        .legacy = {{"AttributesToGet", request->attributes_to_get != NULL}},
        .legacy_len = 1,
        .names = request->names,
    };

    *out = (struct prepared_read){
        .table = request->table,
        .consistent = request->consistent == HF_YES,
        .return_capacity = request->return_capacity,
    };
    TRY(hf__constraints(s, HF_OP_GET_ITEM, request));
    TRY(hf__expressions_mixed(s, &expressions));
    TRY(hf__check_item(s, HF_OP_GET_ITEM, request->key));
    TRY(hf__legacy_projection(s, request->attributes_to_get, request->attributes_to_get_len,
                              &out->projection));
    return hf__expressions_bind(s, &expressions);
}

/* A name stays as it is; of an ARN it is what follows "table/", up to an index or a stream. */
struct hf_str hf__ops_table_name(struct hf_str name_or_arn)
{
    const struct hf_str before = HF_STR(":table/");
    const char *found;
    const char *end;
    struct hf_str name;

    if (name_or_arn.len < 4 || memcmp(name_or_arn.ptr, "arn:", 4) != 0)
        return name_or_arn;
    found = memmem(name_or_arn.ptr, name_or_arn.len, before.ptr, before.len);
    if (!found)
        return name_or_arn;
    found += before.len;
    assert(found <= name_or_arn.ptr + name_or_arn.len);
    name = hf_str_of(found, (size_t)(name_or_arn.ptr + name_or_arn.len - found));
    end = name.len ? memchr(name.ptr, '/', name.len) : NULL;
    if (end)
        name.len = (size_t)(end - name.ptr);
    assert(name.len <= name_or_arn.len);
    return name;
}
