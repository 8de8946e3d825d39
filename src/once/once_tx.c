/*
 * once/once_tx.c: completions inside of transactions.
 *
 * The action that completes stands behind the caller's own, and all are done or none. A transaction
 * whose answer was lost is sent again with its token; should the database have forgotten the token,
 * or have none, our action refuses what has been done already, and the record that comes with the
 * refusal shows whose doing it was.
 *
 *  (1) What may have been done is never reported as not done: a refusal of ours is read, and any
 *      other failure after a doubtful one is doubtful.
 *  (2) A transaction that arrives after the attempt was given up is refused as a whole.
 */
#include "once/once.h"

enum { TX_ATTEMPTS = 5, TX_FIRST_DELAY_MS = 20 };

/* The actions with ours behind them, in the scope. */
static enum hf_status actions_join(struct hf_scope *s, const struct once_name *name,
                                   const struct hf_transact_write *actions, size_t len,
                                   const struct hf_update_item *ours,
                                   struct hf_transact_write **all)
{
    *all = NULL;
    if (len > HF_ONCE_ACTIONS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_ONCE_ACTIONS_MAX, len),
                                   "once %.*s/%.*s: %zu actions are more than %d",
                                   HF_FMT(name->user), HF_FMT(name->key), len, HF_ONCE_ACTIONS_MAX);
    *all = hf_scope_alloc(s, (len + 1) * sizeof(**all));
    TRY(hf_scope_built(s));
    if (len)
        memcpy(*all, actions, len * sizeof(*actions));
    (*all)[len] = (struct hf_transact_write){.update = ours};
    return HF_OK;
}

/* Was it our action, the last one, that was refused? Then *item is the record. */
static bool ours_refused(const struct hf_scope *s, size_t len, struct hf_item *item)
{
    const struct hf_error *error = hf_scope_error(s);

    if (error->status != HF_TX_CANCELED || error->reasons_len != len + 1 ||
        !hf_str_equal(error->reasons[len].code, HF_STR("ConditionalCheckFailed")))
        return false;
    *item = error->reasons[len].item;
    return true;
}

/*
 * Send it until it is known what became of it: HF_OK; HF_CONDITION when our action was refused,
 * with the record; or what it failed with.
 */
static enum hf_status tx_send(struct hf_scope *s, struct hf_once_table *table,
                              const struct once_name *name, const struct hf_transact_write *all,
                              size_t len, struct hf_item *item)
{
    struct pattern_id token = hf__pattern_id_make(&table->env);
    struct hf_transact_write_items tx = {.actions = all,
                                         .actions_len = len + 1,
                                         .token = id_str(&token)};
    struct backoff backoff = {.first_ms = TX_FIRST_DELAY_MS, .max_ms = UINT32_MAX};
    bool doubtful = false;
    enum hf_status status;

    assert(len <= HF_ONCE_ACTIONS_MAX && all[len].update && "ours is the last one");
    for (int attempt = 1;; attempt++) {
        *item = (struct hf_item){0};
        status = hf_transact_write_items(s, table->db, &tx, NULL);
        if (status == HF_OK)
            return HF_OK;
        if (ours_refused(s, len, item)) {
            if (!item->ptr)
                TRY(hf__pattern_read(s, table->db, table->at.table, hf__once_key(s, name), item));
            status = hf_scope_fail(s, HF_CONDITION, "The conditional request failed");
            break;
        }
        doubtful = doubtful || hf_scope_error(s)->may_have_happened;
        if (!doubtful || status == HF_TX_CANCELED || attempt == TX_ATTEMPTS)
            break;
        status = hf__backoff_sleep(s, &backoff);
        if (status != HF_OK)
            break;
    }
    return doubtful ? hf_scope_doubt(s) : status;
}

/* ---- an attempt ----------------------------------------------------------------------------- */

static enum hf_status completion_make(struct hf_scope *s, struct hf_once *once,
                                      struct hf_item result, struct hf_update_item **update)
{
    struct once_end end = {.name = once->name,
                           .id = once_id(once),
                           .state = HF_ONCE_DONE,
                           .result = result,
                           .keep_s = once->keep_s,
                           .now_ms = hf__env_wall_ms(&once->table->env)};

    TRY(hf__once_result_check(s, &once->name, result));
    *update = hf_scope_alloc(s, sizeof(**update));
    TRY(hf_scope_built(s));
    **update = hf__once_end_request(s, &end);
    (*update)->table = hf_scope_copy(s, (*update)->table);
    (*update)->returns = 0;
    (*update)->returns_on_failure = HF_ON_FAILURE_ALL_OLD;
    return hf_scope_built(s);
}

enum hf_status hf_once_finish_tx(struct hf_scope *s, struct hf_once *once, struct hf_item result,
                                 struct hf_transact_write *action)
{
    struct hf_update_item *update;

    call_begins(s);
    memset(action, 0, sizeof(*action));
    TRY(completion_make(s, once, result, &update));
    action->update = update;
    return HF_OK;
}

/* A hf_tx_done_fn. */
static void once_committed(void *user)
{
    hf_once_committed(user);
}

enum hf_status hf_once_finish_into(struct hf_scope *s, struct hf_once *once, struct hf_tx *tx,
                                   struct hf_item result)
{
    struct hf_transact_write action;

    if (hf_tx_db(tx) != once->table->db)
        return hf_scope_fail(s, HF_INVALID,
                             "once %.*s/%.*s: the transaction is on another database",
                             HF_FMT(once->name.user), HF_FMT(once->name.key));
    TRY(hf_once_finish_tx(s, once, result, &action));
    return hf__tx_join(s, tx, &action, 1, once_committed, NULL, once);
}

enum hf_status hf_once_commit(struct hf_scope *s, struct hf_once *once, struct hf_item result,
                              const struct hf_transact_write *actions, size_t actions_len)
{
    struct hf_transact_write *all;
    struct hf_update_item *update;
    struct hf_item item;
    enum hf_status status;

    TRY(completion_make(s, once, result, &update));
    TRY(actions_join(s, &once->name, actions, actions_len, update, &all));
    status = tx_send(s, once->table, &once->name, all, actions_len, &item);
    if (status == HF_CONDITION)
        return hf__once_refused(s, once, item);
    return status == HF_OK ? hf__once_over(s, once, false) : status;
}

/* ---- without an attempt --------------------------------------------------------------------- */

enum hf_status hf_once_transact(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                                struct hf_str key, const struct hf_once_options *options,
                                struct hf_item result, const struct hf_transact_write *actions,
                                size_t actions_len, struct hf_once_record *record)
{
    struct pattern_id id = hf__pattern_id_make(&onces->env);
    struct once_end mark = {.name = {.at = &onces->at, .user = user, .key = key},
                            .id = id_str(&id),
                            .state = HF_ONCE_DONE,
                            .result = result,
                            .now_ms = hf__env_wall_ms(&onces->env)};
    struct hf_transact_write *all;
    struct hf_update_item update;
    struct hf_once_options o;
    struct once_view view;
    struct hf_item item;
    struct hf_str hash;
    enum hf_status status;
    bool doubtful;

    *record = (struct hf_once_record){0};
    TRY(hf__once_options(s, &mark.name, options, &o));
    TRY(hf__once_hash(s, o.payload, &hash));
    TRY(hf__once_result_check(s, &mark.name, result));
    mark.keep_s = o.keep_s;
    update = hf__once_mark_request(s, &mark, onces->owner, hash, false);
    update.returns = 0;
    update.returns_on_failure = HF_ON_FAILURE_ALL_OLD;
    TRY(actions_join(s, &mark.name, actions, actions_len, &update, &all));
    status = tx_send(s, onces, &mark.name, all, actions_len, &item);
    if (status == HF_OK) {
        *record =
            (struct hf_once_record){.user = hf_scope_copy(s, user),
                                    .key = hf_scope_copy(s, key),
                                    .state = HF_ONCE_DONE,
                                    .did = true,
                                    .result = result,
                                    .at_us = mark.now_ms * 1000,
                                    .until_us =
                                        o.keep_s ? (mark.now_ms + (int64_t)o.keep_s * 1000) * 1000
                                                 : 0,
                                    .owner = hf_scope_copy(s, onces->owner),
                                    .attempt = hf_scope_copy(s, mark.id)};
        return hf_scope_ok(s);
    }
    if (status != HF_CONDITION)
        return status;
    doubtful = hf_scope_error(s)->may_have_happened;
    TRY(hf__once_view(s, &onces->at, item, hf__env_wall_ms(&onces->env), &view));
    view.record.did = hf_str_equal(view.record.attempt, mark.id);
    if (!view.record.did)
        TRY(hf__once_hash_check(s, &view, hash));
    if (view.record.state == HF_ONCE_DONE || view.record.state == HF_ONCE_FAILED) {
        *record = view.record;
        return hf_scope_ok(s);
    }
    (void)hf_scope_fail(s, HF_LOCKED, "once %.*s/%.*s is being done by %.*s", HF_FMT(user),
                        HF_FMT(key), HF_FMT(view.record.owner));
    return doubtful ? hf_scope_doubt(s) : HF_LOCKED;
}
