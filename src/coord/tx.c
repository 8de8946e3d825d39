/*
 * coord/tx.c: a transaction that is put together step by step.
 *
 * All of it is in the scope that made it. What always holds:
 *
 *  (1) The token of the first commit is that of all, so a transaction whose answer was lost is sent
 *      again, here and by callers who commit again, and does not happen twice, as long as the
 *      database remembers (ten minutes).
 *  (2) Listeners are called once, and only after the commit is known to have happened.
 *  (3) A conflict lets hf_tx_run() build again, from what the items are then; anything that says
 *      that a condition did not hold is the caller's business, unless the pattern whose condition
 *      it was says that it will have another one then. Nothing is built again once it may have
 *      happened.
 *  (4) After an answer that got lost every failure is doubtful, also that of a later commit.
 *  (5) What an inner hf_tx_run() added leaves the outer transaction when it fails.
 */
#include "base/assert_held.h"
#include "coord/pattern.h"

#include <holdfast/tx.h>

enum { ATTEMPTS = 5, DELAY_MS = 20, DELAY_MAX_MS = 1000 };

struct listener {
    struct listener *next;
    hf_tx_done_fn *done;
    tx_refused_fn *refused; /* NULL: does not care */
    size_t first, count;    /* its actions */
    void *user;
};

struct hf_tx {
    struct hf_db *db;
    struct pattern_id token;
    struct hf_str sent; /* the token of the first commit; absent: there was none */
    struct actions actions;
    struct listener *first, **end;
    bool doubtful; /* it may have happened */
    bool committed;
};

static void tx_check(const struct hf_tx *tx)
{
    assert(!*tx->end && "the list of listeners goes on behind its end");
    if (!DEV_CHECKS)
        return;
    for (const struct listener *l = tx->first; l; l = l->next)
        assert(l->first + l->count <= tx->actions.len &&
               "a listener has actions that are not there");
}

enum hf_status hf_tx_new(struct hf_scope *s, struct hf_db *db, struct hf_tx **tx)
{
    call_begins(s);
    *tx = NULL;
    if (!db)
        return hf_scope_fail(s, HF_INVALID, "hf_tx_new() was called without a database");
    *tx = hf_scope_alloc(s, sizeof(**tx));
    TRY(hf_scope_built(s));
    **tx = (struct hf_tx){.db = db, .token = hf__pattern_id_make(hf_scope_env(s))};
    (*tx)->end = &(*tx)->first;
    return HF_OK;
}

const struct hf_transact_write *hf__tx_actions(const struct hf_tx *tx)
{
    return tx->actions.list;
}

size_t hf_tx_len(const struct hf_tx *tx)
{
    return tx->actions.len;
}

size_t hf_tx_room(const struct hf_tx *tx)
{
    return HF_TX_ACTIONS_MAX - tx->actions.len;
}

struct hf_db *hf_tx_db(const struct hf_tx *tx)
{
    return tx->db;
}

/* ---- putting it together -------------------------------------------------------------------- */

enum hf_status hf_tx_add(struct hf_scope *s, struct hf_tx *tx,
                         const struct hf_transact_write *action)
{
    call_begins(s);
    if (tx->committed)
        return hf_scope_fail(s, HF_INVALID, "the transaction is already committed");
    TRY(hf__actions_add(s, &tx->actions, action));
    tx_check(tx);
    return HF_OK;
}

static enum hf_status listener_add(struct hf_scope *s, struct hf_tx *tx, struct listener given)
{
    struct listener *listener;

    if (tx->committed)
        return hf_scope_fail(s, HF_INVALID, "the transaction is already committed");
    listener = hf_scope_alloc(s, sizeof(*listener));
    TRY(hf_scope_built(s));
    *listener = given;
    *tx->end = listener;
    tx->end = &listener->next;
    tx_check(tx);
    return HF_OK;
}

enum hf_status hf_tx_on_commit(struct hf_scope *s, struct hf_tx *tx, hf_tx_done_fn *done,
                               void *user)
{
    call_begins(s);
    return listener_add(s, tx, (struct listener){.done = done, .user = user});
}

enum hf_status hf__tx_join(struct hf_scope *s, struct hf_tx *tx,
                           const struct hf_transact_write *actions, size_t len, hf_tx_done_fn *done,
                           tx_refused_fn *refused, void *user)
{
    struct listener listener = {
        .done = done, .refused = refused, .first = tx->actions.len, .count = len, .user = user};
    enum hf_status status = HF_OK;

    for (size_t i = 0; status == HF_OK && i < len; i++)
        status = hf_tx_add(s, tx, &actions[i]);
    if (status == HF_OK)
        status = listener_add(s, tx, listener);
    if (status != HF_OK && !tx->committed)
        tx->actions.len = listener.first;
    return status;
}

void *hf__tx_joined(const struct hf_tx *tx, hf_tx_done_fn *done, const void *before)
{
    bool passed = !before;

    for (const struct listener *listener = tx->first; listener; listener = listener->next) {
        if (listener->done != done)
            continue;
        if (passed)
            return listener->user;
        passed = listener->user == before;
    }
    return NULL;
}

/* ---- letting it happen ---------------------------------------------------------------------- */

/* Did it fail only because of other transactions at the same time? (3) */
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

/* Do all patterns whose conditions did not hold ask for it to be built again? (3) */
static bool is_worth_another(const struct hf_tx *tx, const struct hf_error *error)
{
    size_t explained = 0, refused = 0;

    for (size_t i = 0; i < error->reasons_len; i++)
        refused += !hf_str_equal(error->reasons[i].code, HF_STR("None")) &&
                   !hf_str_equal(error->reasons[i].code, HF_STR("TransactionConflict"));
    for (const struct listener *l = tx->first; l && refused; l = l->next) {
        size_t mine = 0;

        if (!l->refused || l->first + l->count > error->reasons_len)
            continue;
        for (size_t i = l->first; i < l->first + l->count; i++)
            mine += !hf_str_equal(error->reasons[i].code, HF_STR("None")) &&
                    !hf_str_equal(error->reasons[i].code, HF_STR("TransactionConflict"));
        if (mine && l->refused(error->reasons + l->first, l->count, l->user))
            explained += mine;
    }
    return refused && explained == refused;
}

/* Send it until it is known what became of it. (1) (4) */
static enum hf_status send_all(struct hf_scope *s, struct hf_tx *tx)
{
    struct hf_transact_write_items request = {.actions = tx->actions.list,
                                              .actions_len = tx->actions.len,
                                              .token = tx->sent};
    struct backoff backoff = {.first_ms = DELAY_MS, .max_ms = DELAY_MAX_MS};

    for (int attempt = 1;; attempt++) {
        enum hf_status status = hf_transact_write_items(s, tx->db, &request, NULL);
        const struct hf_error *error = hf_scope_error(s);
        bool doubtful = error->may_have_happened || status == HF_TX_IN_PROGRESS;

        if (status == HF_OK)
            return HF_OK;
        tx->doubtful = tx->doubtful || doubtful;
        if (!tx->doubtful || !(doubtful || error->may_retry || is_conflict(error)))
            return status;
        if (attempt == ATTEMPTS)
            return status;
        TRY(hf__backoff_sleep(s, &backoff));
    }
}

/* One write is all or nothing by itself. It is not sent again here: it has no token, so it is the
 * caller's to say whether twice is as good as once. (4) */
static enum hf_status send_one(struct hf_scope *s, struct hf_tx *tx)
{
    const struct hf_transact_write *action = &tx->actions.list[0];
    enum hf_status status;

    assert(tx->actions.len > 0);
    if (tx->actions.len > 1)
        return hf_scope_fail(
            s, HF_UNSUPPORTED,
            "this database has no transactions, so %zu actions cannot be committed together",
            tx->actions.len);
    if (action->check)
        return hf_scope_fail(
            s, HF_UNSUPPORTED,
            "this database has no transactions, so a check cannot be committed by itself");
    status = action->put   ? hf_put_item(s, tx->db, action->put, NULL)
             : action->del ? hf_delete_item(s, tx->db, action->del, NULL)
                           : hf_update_item(s, tx->db, action->update, NULL);
    if (status != HF_OK && hf_scope_error(s)->may_have_happened)
        tx->doubtful = true;
    return status;
}

static enum hf_status tx_send(struct hf_scope *s, struct hf_tx *tx, struct hf_str token)
{
    bool transactions;

    if (tx->actions.len == 0)
        return HF_OK;
    TRY(hf_db_supports(s, tx->db, HF_FEATURE_TRANSACTIONS, &transactions));
    if (!transactions && token.len)
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "this database has no transactions, so it cannot take a token");
    if (tx->sent.len && token.len && !hf_str_equal(tx->sent, token))
        return hf_scope_fail(s, HF_INVALID,
                             "the transaction was sent with another token before: %.*s",
                             HF_FMT(tx->sent));
    if (!tx->sent.len) { /* (1) */
        struct hf_str first = token.len ? hf_scope_copy(s, token) : id_str(&tx->token);

        TRY(hf_scope_built(s));
        tx->sent = first;
    }
    return transactions ? send_all(s, tx) : send_one(s, tx);
}

enum hf_status hf_tx_commit(struct hf_scope *s, struct hf_tx *tx,
                            const struct hf_tx_options *options)
{
    struct hf_tx_options o;
    enum hf_status status;

    call_begins(s);
    OPTIONS_COPY(&o, options);
    if (tx->committed)
        return hf_scope_fail(s, HF_INVALID, "the transaction is already committed");
    status = tx_send(s, tx, o.token);
    if (status != HF_OK)
        return tx->doubtful ? hf_scope_doubt(s) : status;
    tx_check(tx);
    tx->committed = true;
    for (struct listener *listener = tx->first; listener; listener = listener->next)
        listener->done(listener->user); /* (2) */
    return HF_OK;
}

/* ---- the scope's ---------------------------------------------------------------------------- */

/* As part of that one. (5) */
static enum hf_status run_inside(struct hf_scope *s, struct hf_tx *outer, hf_tx_fn *build,
                                 void *user)
{
    struct listener **end = outer->end;
    size_t len = outer->actions.len;
    enum hf_status status = build(s, outer, user);

    if (status != HF_OK && !outer->committed) {
        outer->actions.len = len;
        outer->end = end;
        *end = NULL;
        tx_check(outer);
    }
    return status;
}

static enum hf_status run_once(struct hf_scope *s, struct hf_db *db, hf_tx_fn *build, void *user,
                               const struct hf_tx_options *o, bool *again)
{
    struct hf_tx *tx, *before;
    enum hf_status status;

    *again = false;
    TRY(hf_tx_new(s, db, &tx));
    before = hf_scope_set_tx(s, tx);
    status = build(s, tx, user);
    hf_scope_set_tx(s, before);
    if (status != HF_OK) {
        /* A `build` that fails without a word may have left an older error there. */
        *again = status == hf_scope_error(s)->status && is_conflict(hf_scope_error(s));
        return status;
    }
    status = hf_tx_commit(s, tx, o);
    *again = status == HF_TX_CANCELED || status == HF_TX_CONFLICT
                 ? is_conflict(hf_scope_error(s)) || is_worth_another(tx, hf_scope_error(s))
                 : false;
    return status;
}

enum hf_status hf_tx_run(struct hf_scope *s, struct hf_db *db, hf_tx_fn *build, void *user,
                         const struct hf_tx_options *options)
{
    struct hf_tx *outer = hf_scope_tx(s);
    struct backoff backoff = {.first_ms = DELAY_MS, .max_ms = DELAY_MAX_MS};
    struct hf_tx_options o;

    call_begins(s);
    OPTIONS_COPY(&o, options);
    o.size = sizeof(o);
    o.max_attempts = o.max_attempts ? o.max_attempts : ATTEMPTS;
    if (outer && outer->db == db && !outer->committed)
        return run_inside(s, outer, build, user);
    for (uint32_t attempt = 1;; attempt++) {
        bool again;
        enum hf_status status = run_once(s, db, build, user, &o, &again);

        if (status == HF_OK || !again || hf_scope_error(s)->may_have_happened ||
            attempt >= o.max_attempts)
            return status;
        TRY(hf__backoff_sleep(s, &backoff));
    }
}
