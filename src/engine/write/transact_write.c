/*
 * engine/write/transact_write.c: TransactWriteItems: up to a hundred writes and checks that happen
 * all or not at all.
 *
 * All partitions are latched first, so transactions never conflict; they wait for each other, and a
 * writer holds its latches only while it reads and applies. Then every action is judged against the
 * item as it is. One failing action cancels all; the reasons are in the order of the actions.
 *
 * A client token is written in the same batch as the transaction, so the one cannot be there
 * without the other. The token has a latch too: of two calls with one token the second finds the
 * first one's token.
 */
#include "engine/engine.h"
#include "engine/item/capacity.h"
#include "engine/item/change.h"
#include "engine/item/latch.h"
#include "engine/operations.h"
#include "engine/table/catalog.h"
#include "engine/table/schema.h"
#include "engine/write/token.h"
#include "engine/write/write.h"
#include "ops/prepare.h"
#include "store/store.h"

struct transaction {
    const struct transact_request *request;
    const struct prepared_action *actions;
    size_t len;
    struct table **tables; /* of each action */
    struct change *changes;
    struct hf_cancel_reason *reasons;
    bool canceled;
    bool replayed;         /* the token was seen before: success without effect */
    struct hf_bytes sizes; /* of a token seen before: what its request was charged for */
};

/* Make the error of one action its reason; other errors are those of the call. */
static enum hf_status set_reason(struct hf_scope *s, struct transaction *t, size_t at)
{
    const struct hf_error *error = hf_scope_error(s);
    struct hf_cancel_reason *reason = &t->reasons[at];

    assert(at < t->len && error->status != HF_OK);
    if (error->status != HF_CONDITION && error->status != HF_INVALID)
        return error->status;
    reason->code = error->status == HF_CONDITION ? HF_STR("ConditionalCheckFailed")
                                                 : HF_STR("ValidationError");
    reason->message = error->message;
    if (error->status == HF_CONDITION && t->request->statements &&
        t->actions[at].kind == WRITE_PUT) { /* an INSERT, whose only condition is to be new */
        reason->code = HF_STR("DuplicateItem");
        reason->message = HF_STR("Duplicate primary key exists in table");
    }
    reason->item = error->item;
    t->canceled = true;
    return HF_OK;
}

static struct hf_item action_target(const struct prepared_action *action)
{
    return action->kind == WRITE_PUT ? action->write.item : action->write.key;
}

/* ---- before anything is latched ------------------------------------------------------------- */

static enum hf_status find_tables(struct hf_scope *s, struct engine *e, struct transaction *t)
{
    struct hf_item *keys = hf__scope_array(s, t->len, sizeof(*keys));

    if (!keys)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < t->len; i++) {
        TRY(hf__catalog_item_table(s, e, t->actions[i].write.table, &t->tables[i]));
        if (t->actions[i].kind != WRITE_CHECK)
            TRY(hf__fence_check(s, e, t->tables[i]));
        keys[i] = hf__schema_key_item(s, &t->tables[i]->key, action_target(&t->actions[i]));
        TRY(hf_item_check(s, keys[i]));
        for (size_t j = 0; j < i; j++)
            if (t->tables[i] == t->tables[j] && hf_item_equal(keys[i], keys[j]))
                return hf__fail(s, HF_INVALID,
                                "Transaction request cannot include multiple operations on one "
                                "item");
    }
    return HF_OK;
}

/* A key that does not fit the schema cancels the transaction at once. */
static enum hf_status check_schemas(struct hf_scope *s, struct transaction *t)
{
    for (size_t i = 0; i < t->len && !t->canceled; i++)
        if (hf__write_check_schema(s, t->tables[i], t->actions[i].kind, &t->actions[i].write) !=
            HF_OK)
            TRY(set_reason(s, t, i));
    return t->canceled ? hf__cancel(s, t->reasons, t->len) : HF_OK;
}

/* ---- with latches --------------------------------------------------------------------------- */

enum { COPIES = 4 }; /* how often an item is read or copied from here to its new state, about */

static enum hf_status read_all(struct hf_scope *s, struct engine *e, struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++) {
        TRY(hf__change_read(s, e, &t->changes[i]));
        TRY(hf__scope_patient_work(s, COPIES * t->changes[i].before.size));
    }
    return HF_OK;
}

static enum hf_status judge_all(struct hf_scope *s, struct transaction *t)
{
    for (size_t i = 0; i < t->len; i++) {
        enum hf_status status =
            hf__write_evaluate(s, t->actions[i].kind, &t->actions[i].write, &t->changes[i]);

        if (status == HF_TIMEOUT)
            return status;
        if (status != HF_OK)
            TRY(set_reason(s, t, i));
    }
    return t->canceled ? hf__cancel(s, t->reasons, t->len) : HF_OK;
}

/* ---- the answer ----------------------------------------------------------------------------- */

static enum hf_status add_metrics(struct hf_scope *s, const struct transaction *t,
                                  struct hf_transact_write_items_result *result)
{
    struct hf_table_metrics *tables = hf__scope_array(s, t->len, sizeof(*tables));

    if (!tables)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < t->len; i++) {
        struct hf_collection_metrics *list;
        size_t len = 0;
        bool first = true;

        for (size_t j = 0; j < i; j++)
            first = first && t->tables[j] != t->tables[i];
        if (!first)
            continue;
        list = hf__scope_array(s, t->len, sizeof(*list));
        if (!list)
            return hf__fail_nomem(s);
        for (size_t j = i; j < t->len; j++) {
            const struct hf_collection_metrics *one =
                t->tables[j] == t->tables[i] && t->actions[j].kind != WRITE_CHECK
                    ? hf__collection_metrics(s, t->tables[j], t->request->return_metrics,
                                             action_target(&t->actions[j]))
                    : NULL;

            if (one)
                list[len++] = *one;
        }
        if (len)
            tables[result->metrics_len++] =
                (struct hf_table_metrics){.table = hf_scope_copy(s, t->tables[i]->name),
                                          .metrics = list,
                                          .metrics_len = len};
    }
    result->metrics = result->metrics_len ? tables : NULL;
    return HF_OK;
}

/* Of the item that an action was charged for when its token came first; the item as it is now,
 * where a token was stored without sizes. */
static size_t charged_size(const struct transaction *t, size_t at)
{
    if (t->sizes.len != t->len * TOKEN_SIZE)
        return t->changes[at].before.size;
    assert(at < t->len);
    return load_u32be(t->sizes.ptr + at * TOKEN_SIZE);
}

static enum hf_status fill_answer(struct hf_scope *s, const struct transaction *t,
                                  struct hf_transact_write_items_result *result)
{
    struct usage *usages = hf__scope_array(s, t->len, sizeof(*usages));
    struct hf_capacity *capacity = hf__scope_array(s, t->len, sizeof(*capacity));
    size_t len = 0;

    if (!usages || !capacity)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < t->len; i++) {
        struct usage *usage = hf__usage_of(usages, &len, t->tables[i], t->actions[i].write.table);

        if (t->replayed)
            usage->table_units += TRANSACTION_FACTOR * hf__read_units(charged_size(t, i), true);
        else
            hf__usage_add_change(usage, &t->changes[i], TRANSACTION_FACTOR);
    }
    for (size_t i = 0; i < len; i++) {
        const struct hf_capacity *used =
            hf__usage_capacity(s, &usages[i], t->request->return_capacity);

        if (used)
            capacity[result->capacity_len++] = *used;
    }
    result->capacity = result->capacity_len ? capacity : NULL;
    return add_metrics(s, t, result);
}

/* ---- applying ------------------------------------------------------------------------------- */

static enum hf_status add_token(struct hf_scope *s, struct engine *e, const struct transaction *t,
                                struct change_set *set)
{
    uint8_t *sizes = hf_scope_alloc(s, t->len * TOKEN_SIZE);

    if (!sizes)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < t->len; i++) {
        size_t before = t->changes[i].before.size;
        size_t after = t->changes[i].after.size;

        store_u32be(sizes + i * TOKEN_SIZE, (uint32_t)(before > after ? before : after));
    }
    hf__token_add(s, e, &set->batch, t->request->token, &t->request->digest,
                  hf_bytes_of(sizes, t->len * TOKEN_SIZE));
    return HF_OK;
}

static enum hf_status apply_latched(struct hf_scope *s, struct engine *e, struct transaction *t,
                                    struct hf_transact_write_items_result *result, uint64_t *ticket)
{
    struct hf_str token = t->request->token;
    struct change_set set;

    TRY(read_all(s, e, t));
    if (token.ptr) {
        TRY(hf__token_look(s, e, token, &t->request->digest, &t->replayed, &t->sizes));
        if (t->replayed)
            return fill_answer(s, t, result);
    }
    TRY(judge_all(s, t));
    assert(!t->canceled && !t->replayed);
    TRY(hf__change_set(s, t->len, &set));
    for (size_t i = 0; i < t->len; i++)
        TRY(hf__change_add(s, e, &set, &t->changes[i]));
    if (token.ptr)
        TRY(add_token(s, e, t, &set));
    if (set.batch.ops.failed)
        return hf__fail_nomem(s);
    TRY(fill_answer(s, t, result)); /* so that nothing can fail once it is applied */
    return hf__change_apply(s, e, &set, ticket);
}

/* ---- the operation -------------------------------------------------------------------------- */

static enum hf_status transact_locked(struct hf_scope *s, struct engine *e, struct transaction *t,
                                      struct hf_transact_write_items_result *result,
                                      uint64_t *ticket)
{
    struct latch_set latches;
    enum hf_status status;

    ASSERT_SCHEMA_HELD(e);
    TRY(find_tables(s, e, t));
    TRY(check_schemas(s, t));
    TRY(hf__latch_set(s, t->len + 1, &latches));
    for (size_t i = 0; i < t->len; i++) {
        t->changes[i] = (struct change){.table = t->tables[i]};
        TRY(hf__change_key(s, &t->changes[i], action_target(&t->actions[i])));
        hf__latch_want(&latches, hf__stored_latch(t->changes[i].key));
    }
    if (t->request->token.ptr)
        hf__latch_want(&latches, hf__token_latch(t->request->token));
    TRY(hf__latch_all_patient(s, e, &latches));
    status = apply_latched(s, e, t, result, ticket);
    if (status == HF_OK && *ticket == 0)
        *ticket = hf__store_written(e->store);
    hf__unlatch_all(e, &latches, status == HF_OK ? *ticket : 0);
    return status;
}

enum hf_status hf__transact_write(struct hf_scope *s, struct engine *e,
                                  const struct transact_request *request,
                                  struct hf_transact_write_items_result *result)
{
    struct transaction t = {.request = request, .actions = request->actions, .len = request->len};
    enum hf_status status;
    uint64_t ticket = 0;

    assert(request->len > 0);
    t.tables = hf__scope_array(s, t.len, sizeof(*t.tables));
    t.changes = hf__scope_array(s, t.len, sizeof(*t.changes));
    t.reasons = hf__scope_array(s, t.len, sizeof(*t.reasons));
    if (!t.tables || !t.changes || !t.reasons)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < t.len; i++)
        t.reasons[i].code = HF_STR("None");
    pthread_rwlock_rdlock(&e->schema);
    status = transact_locked(s, e, &t, result, &ticket);
    pthread_rwlock_unlock(&e->schema);
    if (status == HF_OK)
        return hf__engine_wait_durable(s, e, ticket);
    if (status == HF_TX_CANCELED) /* a crash must not take back the state that was the reason */
        TRY(hf__engine_wait_durable_seen(s, e, hf__store_written(e->store)));
    return status;
}

enum hf_status hf__engine_transact_write_items(struct hf_scope *s, struct engine *e,
                                               const struct hf_transact_write_items *request,
                                               struct hf_transact_write_items_result *result)
{
    struct transact_request run = {.len = request->actions_len,
                                   .token = request->token,
                                   .return_capacity = request->return_capacity,
                                   .return_metrics = request->return_metrics};
    struct prepared_action *actions;

    TRY(hf__prepare_transact_write_items(s, e->cache, request, &actions));
    run.actions = actions;
    if (request->token.ptr)
        TRY(hf__token_digest(s, request, &run.digest));
    return hf__transact_write(s, e, &run, result);
}
