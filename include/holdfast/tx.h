/*
 * A transaction that is put together step by step, by parts of a program that need not know each
 * other, and then happens as a whole or not at all.
 *
 *     enum hf_status place(struct hf_scope *s, struct hf_tx *tx, void *user)
 *     {
 *         struct order *order = user;
 *         struct hf_transact_write write = {.put = &order->put};
 *         enum hf_status status = hf_tx_add(s, tx, &write);
 *
 *         if (status != HF_OK)
 *             return status;
 *         return hf_outbox_emit_into(s, order->outbox, tx, &order->event, 1, NULL);
 *     }
 *     ...
 *     if (hf_tx_run(s, db, place, &order, NULL) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * hf_tx_new() and hf_tx_commit() are the same by hand.
 *
 * Patterns take part in two ways, and their functions are named by it:
 *
 * hf_x_into(s, x, tx, ...)     adds what it does to an hf_tx: hf_outbox_emit_into(),
 *                              hf_bus_emit_into(), hf_events_append_into(), hf_project_into(),
 *                              hf_once_finish_into()
 * hf_x_tx(s, x, ..., &action)  gives the action, for hf_transact_write_items() or for
 *                              hf_tx_add(): hf_kv_set_tx(), hf_counter_add_tx(),
 *                              hf_set_add_tx(), hf_limit_take_tx(), hf_records_put_tx(),
 *                              hf_outbox_emit_tx(), hf_once_finish_tx() and so on
 *
 * So whatever has a function with _tx can be added to an hf_tx. hf_lock_guard() gives an action,
 * too: the check that the lock is still held.
 *
 * All other functions act at once, also while the scope has a transaction, which is so while
 * hf_tx_run() calls its function. Code that is not given the transaction can join that of the scope
 * by the option join_tx, which hf_outbox_emit(), hf_events_append() and hf_aggregate_handle() have.
 *
 * One thread uses a transaction.
 */
#ifndef HOLDFAST_TX_H
#define HOLDFAST_TX_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

/* DynamoDB's limits. */
enum {
    HF_TX_ACTIONS_MAX = 100,
    HF_TX_BYTES_MAX = 4 * 1024 * 1024 /* of all that its actions bring */
};

struct hf_tx;

/* An empty transaction on `db`, in the memory of the scope. HF_NOMEM. */
HF_API HF_NODISCARD enum hf_status hf_tx_new(struct hf_scope *s, struct hf_db *db,
                                             struct hf_tx **tx);

/*
 * Add an action: a check, put, delete or update. The request is copied, what it points to is not,
 * so that has to live until the transaction was committed: as it does in the scope of the
 * transaction.
 *
 * HF_LIMIT    HF_TX_ACTIONS_MAX are there already; the message says so
 * HF_INVALID  the action is none, or several; or the transaction was committed
 * HF_NOMEM
 * Nothing is added then.
 */
HF_API HF_NODISCARD enum hf_status hf_tx_add(struct hf_scope *s, struct hf_tx *tx,
                                             const struct hf_transact_write *action);

/* How many actions there are, and how many may be added. */
HF_API size_t hf_tx_len(const struct hf_tx *tx);
HF_API size_t hf_tx_room(const struct hf_tx *tx);

/* The database it was made for. */
HF_API struct hf_db *hf_tx_db(const struct hf_tx *tx);

/*
 * Call this when the transaction was committed, once; in the order they were added. Not when it
 * failed. HF_INVALID: it was committed already. HF_NOMEM.
 */
typedef void hf_tx_done_fn(void *user);
HF_API HF_NODISCARD enum hf_status hf_tx_on_commit(struct hf_scope *s, struct hf_tx *tx,
                                                   hf_tx_done_fn *done, void *user);

struct hf_tx_options {
    size_t size;           /* set by HF_OPTIONS() */
    struct hf_str token;   /* makes it happen once, also when the same actions are committed by
                            another transaction within ten minutes, here or elsewhere: at most 36
                            bytes; default: one that nobody else has */
    uint32_t max_attempts; /* hf_tx_run(): how often it is built at most, after conflicts; default 5
                          */
};

/*
 * Let it happen. Without actions nothing is sent. When an answer gets lost it is sent again by its
 * token, which does not let it happen twice; after a failure it can be committed again, which does
 * not either. A failure says may_have_happened as long as it may.
 *
 * Where the database has no transactions a single put, delete or update is sent as itself. That has
 * no token: when its answer gets lost the failure says may_have_happened, and it is not sent again
 * unless it is committed again.
 *
 * HF_TX_CANCELED     an action's condition did not hold, or others changed an item at the same
 *                    time; hf_scope_error() has the reasons in the order of the actions
 * HF_CONDITION       the same for a single action where there are no transactions
 * HF_TOKEN_MISMATCH  options->token was used for other actions
 * HF_UNSUPPORTED     the database has no transactions, and there is more than one action, or it is
 *                    a check, or there is a token
 * HF_INVALID         it was committed before, or sent with another token
 * and what hf_transact_write_items() fails with.
 */
HF_API HF_NODISCARD enum hf_status hf_tx_commit(struct hf_scope *s, struct hf_tx *tx,
                                                const struct hf_tx_options *options);

/* ---- the scope's transaction: hf_scope_tx() of scope.h -------------------------------------- */

/*
 * Put a transaction together. Anything but HF_OK means that it is not to happen. May be called
 * again, with an empty one, after a conflict.
 */
typedef enum hf_status hf_tx_fn(struct hf_scope *s, struct hf_tx *tx, void *user);

/*
 * Call `build` with a new transaction, which is the scope's meanwhile, and commit it. Others that
 * change the same items at the same time let it be built and committed again, after a little while,
 * options->max_attempts times in all, unless it may have happened.
 *
 * Inside of another transaction of the same database it becomes part of that one, which is
 * committed later, with the options of the outer call; what a `build` that fails has added is taken
 * out again. Inside of one of another database it is committed by itself, and the other one is not
 * the scope's meanwhile.
 *
 * What `build` or hf_tx_commit() returns.
 */
HF_API HF_NODISCARD enum hf_status hf_tx_run(struct hf_scope *s, struct hf_db *db, hf_tx_fn *build,
                                             void *user, const struct hf_tx_options *options);

#ifdef __cplusplus
}
#endif

#endif
