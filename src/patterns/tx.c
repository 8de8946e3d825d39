/*
 * patterns/tx.c: a transaction that is put together step by step.
 *
 * All of it is in the scope that made it. What always holds:
 *
 *  (1) Each transaction has a token from its first commit on, so committing again after a doubtful
 *      failure does not let it happen twice, as long as the database remembers (ten minutes).
 *  (2) Who waits for the commit is told once, and only after it is known to have happened.
 *  (3) A conflict lets hf_tx_run() build anew, from what the items are then; anything that says
 * that a condition did not hold is the caller's business.
 */
#include "patterns/private.h"

#include <holdfast/tx.h>

enum { SOME = 4, ATTEMPTS = 5, DELAY_MS = 20 };

struct listener {
    struct listener *next;
    hf_tx_done_fn *done;
    void *user;
};

struct hf_tx {
    struct hf_db *db;
    struct pattern_id token;
    struct hf_transact_write *actions;
    size_t len, cap;
    struct listener *first, **end;
    bool committed;
};

enum hf_status hf_tx_new(struct hf_scope *s, struct hf_db *db, struct hf_tx **tx)
{
    *tx = NULL;
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_tx_new() was called without a database");
    *tx = hf_scope_alloc(s, sizeof(**tx));
    TRY(hf_scope_built(s));
    **tx = (struct hf_tx){.db = db, .token = hf__pattern_id_make(hf_scope_env(s))};
    (*tx)->end = &(*tx)->first;
    return HF_OK;
}

size_t hf_tx_len(const struct hf_tx *tx)
{
    return tx->len;
}

size_t hf_tx_room(const struct hf_tx *tx)
{
    return HF_TX_ACTIONS_MAX - tx->len;
}

struct hf_db *hf_tx_db(const struct hf_tx *tx)
{
    return tx->db;
}

/* ---- putting it together -------------------------------------------------------------------- */

static const void *copied(struct hf_scope *s, const void *request, size_t size)
{
    void *copy = hf_scope_alloc(s, size);

    return copy ? memcpy(copy, request, size) : NULL;
}

static enum hf_status grow(struct hf_scope *s, struct hf_tx *tx)
{
    size_t cap = tx->cap ? 2 * tx->cap : SOME;
    struct hf_transact_write *actions = hf_scope_alloc(s, cap * sizeof(*actions));

    TRY(hf_scope_built(s));
    if (tx->len)
        memcpy(actions, tx->actions, tx->len * sizeof(*actions));
    tx->actions = actions;
    tx->cap = cap;
    return HF_OK;
}

enum hf_status hf_tx_add(struct hf_scope *s, struct hf_tx *tx,
                         const struct hf_transact_write *action)
{
    struct hf_transact_write own = {0};

    if (tx->committed)
        return hf_scope_fail(s, HF_INVALID, "the transaction was committed already");
    if (!!action->check + !!action->put + !!action->del + !!action->update != 1)
        return hf_scope_fail(s, HF_INVALID,
                             "an action of a transaction is one check, put, delete or update");
    if (tx->len == HF_TX_ACTIONS_MAX)
        return hf_scope_fail(s, HF_LIMIT, "a transaction has at most %d actions",
                             HF_TX_ACTIONS_MAX);
    if (tx->len == tx->cap)
        TRY(grow(s, tx));
    if (action->check)
        own.check = copied(s, action->check, sizeof(*action->check));
    if (action->put)
        own.put = copied(s, action->put, sizeof(*action->put));
    if (action->del)
        own.del = copied(s, action->del, sizeof(*action->del));
    if (action->update)
        own.update = copied(s, action->update, sizeof(*action->update));
    TRY(hf_scope_built(s));
    tx->actions[tx->len++] = own;
    return HF_OK;
}

enum hf_status hf_tx_on_commit(struct hf_scope *s, struct hf_tx *tx, hf_tx_done_fn *done,
                               void *user)
{
    struct listener *listener = hf_scope_alloc(s, sizeof(*listener));

    TRY(hf_scope_built(s));
    *listener = (struct listener){.done = done, .user = user};
    *tx->end = listener;
    tx->end = &listener->next;
    return HF_OK;
}

/* ---- letting it happen ---------------------------------------------------------------------- */

static enum hf_status send_one(struct hf_scope *s, struct hf_tx *tx)
{
    const struct hf_transact_write *action = &tx->actions[0];

    if (tx->len == 1 && action->put)
        return hf_put_item(s, tx->db, action->put, NULL);
    if (tx->len == 1 && action->del)
        return hf_delete_item(s, tx->db, action->del, NULL);
    if (tx->len == 1 && action->update)
        return hf_update_item(s, tx->db, action->update, NULL);
    return hf_scope_fail(s, HF_UNSUPPORTED,
                         "this database has no transactions, so %zu actions cannot happen together",
                         tx->len);
}

static enum hf_status send(struct hf_scope *s, struct hf_tx *tx, struct hf_str token)
{
    struct hf_transact_write_items request = {.actions = tx->actions,
                                              .actions_len = tx->len,
                                              .token = token.len ? token : id_str(&tx->token)};
    bool transactions;

    if (tx->len == 0)
        return HF_OK;
    TRY(hf_db_supports(s, tx->db, HF_FEATURE_TRANSACTIONS, &transactions));
    return transactions ? hf_transact_write_items(s, tx->db, &request, NULL) : send_one(s, tx);
}

enum hf_status hf_tx_commit(struct hf_scope *s, struct hf_tx *tx,
                            const struct hf_tx_options *options)
{
    struct hf_tx_options o;

    OPTIONS_COPY(&o, options);
    if (tx->committed)
        return hf_scope_fail(s, HF_INVALID, "the transaction was committed already");
    TRY(send(s, tx, o.token)); /* (1) */
    tx->committed = true;
    for (struct listener *listener = tx->first; listener; listener = listener->next)
        listener->done(listener->user); /* (2) */
    return HF_OK;
}

/* Would the same do if others had not been there at the same time? (3) */
static bool is_conflict(const struct hf_error *error)
{
    bool conflict = false;

    if (error->status == HF_TX_CONFLICT)
        return true;
    for (size_t i = 0; error->status == HF_TX_CANCELED && i < error->reasons_len; i++) {
        if (hf_str_equal(error->reasons[i].code, HF_STR("TransactionConflict")))
            conflict = true;
        else if (!hf_str_equal(error->reasons[i].code, HF_STR("None")))
            return false;
    }
    return conflict;
}

static enum hf_status run_once(struct hf_scope *s, struct hf_db *db, hf_tx_fn *build, void *user,
                               const struct hf_tx_options *o)
{
    struct hf_tx *tx, *before;
    enum hf_status status;

    TRY(hf_tx_new(s, db, &tx));
    before = hf_scope_set_tx(s, tx);
    status = build(s, tx, user);
    hf_scope_set_tx(s, before);
    return status == HF_OK ? hf_tx_commit(s, tx, o) : status;
}

enum hf_status hf_tx_run(struct hf_scope *s, struct hf_db *db, hf_tx_fn *build, void *user,
                         const struct hf_tx_options *options)
{
    struct hf_tx *outer = hf_scope_tx(s);
    uint32_t delay_ms = DELAY_MS;
    struct hf_tx_options o;

    OPTIONS_COPY(&o, options);
    o.size = sizeof(o);
    o.attempts = o.attempts ? o.attempts : ATTEMPTS;
    if (outer && outer->db == db && !outer->committed)
        return build(s, outer, user);
    for (uint32_t attempt = 1;; attempt++, delay_ms *= 2) {
        enum hf_status status = run_once(s, db, build, user, &o);

        if (status == HF_OK || attempt >= o.attempts || !is_conflict(hf_scope_error(s)))
            return status;
        TRY(hf_scope_sleep_ms(s, hf__pattern_jitter_ms(hf_scope_env(s), delay_ms)));
    }
}
