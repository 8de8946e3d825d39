/*
 * Do-once: an action that is completed once for a user and a key, however often it is requested.
 * Its result is stored and returned to all later callers.
 *
 *     static enum hf_status welcome(struct hf_scope *s, struct hf_once *once,
 *                                   struct hf_item *result, void *user)
 *     {
 *         *result = HF_ITEM(s, HF_S("mail", send_mail(user)));
 *         return HF_OK;
 *     }
 *
 *     struct hf_once_table *onces;
 *     struct hf_once_record record;
 *     if (hf_once_table_open(s, db, NULL, &onces) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_scope_timeout_ms(s, 30000);
 *     if (hf_once_do(s, onces, HF_STR("ann"), HF_STR("welcome"), NULL, welcome, &ann, &record))
 *         return complain(hf_scope_error_text(s));
 *     use(record.result);
 *
 * What is promised: at most one completion is recorded, and all see its result. If an attempt dies,
 * another one follows, so effects of the action outside of the database may happen again; no
 * program can prevent that. Writes to the database can be part of the completion, and then happen
 * once: hf_once_commit(), hf_once_transact().
 *
 * A running attempt sends heartbeats, from a thread of the table. An attempt that is silent for its
 * whole timeout may be replaced by a process that has watched it for that long by its own clock;
 * the time of day does not matter. An attempt that was only slow cannot complete any more: it gets
 * HF_LOST. The result does not depend on that timeout: it is kept forever by default, else until it
 * has expired by the wall clock of the caller.
 *
 * Any thread may use a table and an attempt; one closes it. Works on every database, as each record
 * is one item and each step one conditional write; what has "tx", "with" or "transact" in its name
 * needs transactions.
 */
#ifndef HOLDFAST_ONCE_H
#define HOLDFAST_ONCE_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>
#include <holdfast/tx.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_once_table; /* a table of records, and the thread that speaks for our attempts */
struct hf_once;       /* an attempt that is ours to make, or was until it was lost */

enum {
    HF_ONCE_USER_MAX = 2048,    /* bytes of a user, as DynamoDB has it for such keys */
    HF_ONCE_KEY_MAX = 1024,     /* bytes of a key */
    HF_ONCE_RESULT_MAX = 400000 /* hf_item_size() of a result */
};

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_once_table_options {
    size_t size;         /* set by HF_OPTIONS() */
    struct hf_str table; /* default "once"; created if missing, with a time to live */
    struct hf_str owner; /* our name in lists; default "HOST/PROCESS-ID" */
    bool no_create;      /* the table has to exist */
    bool no_threads;     /* hf_once_table_step() is called instead */

    /*
     * Replace an attempt at once when its wall clock, as it wrote it, and ours say that its timeout
     * ended longer ago than this. For programs that live too briefly to watch it. A clock that is
     * wrong by more lets an action be begun again while it still runs; even then one completion is
     * recorded. Default 0: no clock is trusted.
     */
    uint32_t clock_skew_ms;

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */

    /*
     * Names of attributes: of the user, the key, and the time to live. All who use a table name
     * them alike. Defaults "user", "key" and "expires".
     */
    struct hf_str hash_attribute;
    struct hf_str sort_attribute;
    struct hf_str expires_attribute;
};

/*
 * Records in a table of `db`, which has to outlive them. The env is that of the scope.
 *
 * HF_INVALID  a table of that name is not one of these; see hf_table_ensure(). Or the name
 *             of an attribute is invalid, or differs from that of who opened the table before
 * and what making a table fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_once_table_open(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_once_table_options *options,
                                                      struct hf_once_table **onces);

/* Every attempt has been closed before. What could not be written to the database is left to the
 * timeouts. */
HF_API void hf_once_table_close(struct hf_once_table *onces);

/*
 * With no_threads: send the heartbeats that are due, and complete or give up what could not be.
 * *next_ms is after how many milliseconds there is more to do, UINT32_MAX when there is nothing.
 * One thread at a time. Does not fail.
 */
HF_API HF_NODISCARD enum hf_status
hf_once_table_step(struct hf_scope *s, struct hf_once_table *onces, uint32_t *next_ms);

/* ---- records -------------------------------------------------------------------------------- */

enum hf_once_state {
    HF_ONCE_NONE = 0, /* nobody has begun it, or its result is forgotten */
    HF_ONCE_RUNNING,
    HF_ONCE_DONE,
    HF_ONCE_FAILED /* by hf_once_fail(): done, and what came out is a failure */
};

/* What is known of a user's key. All lives in the scope. */
struct hf_once_record {
    struct hf_str user;
    struct hf_str key;
    enum hf_once_state state;
    bool did;              /* it was this very call that did it */
    struct hf_item result; /* absent when there is none */
    int64_t at_us;         /* when it was completed, by the wall clock of who did; else 0 */
    int64_t until_us;      /* until when it is kept; 0: forever */
    int64_t began_us;      /* when the latest attempt began, by its wall clock */
    int64_t renewed_us;    /* while it runs: its last heartbeat, by its wall clock */
    uint32_t timeout_ms;   /* while it runs */
    uint64_t tries;        /* attempts since it was cleared; 0 when it was marked as done */
    struct hf_str owner;   /* of the latest attempt */
    struct hf_str attempt; /* its id */
    uint64_t reserved[4];
};

/* ---- doing it once -------------------------------------------------------------------------- */

/*
 * The attempt is lost, as a heartbeat has found: hf_once_lost(). Called once at most, on a thread of
 * the table. It still has to be closed, but not in here. After hf_once_close() has returned this is
 * not called or running any more. Since 0.1.
 */
typedef void hf_once_lost_fn(struct hf_once *once, void *user);

struct hf_once_options {
    size_t size;           /* set by HF_OPTIONS() */
    uint32_t timeout_ms;   /* silence after which another attempt may follow; default 20000 */
    uint32_t heartbeat_ms; /* at most half the timeout; default a quarter */
    bool no_heartbeats;    /* the action never takes as long as the timeout */

    /*
     * A thread that speaks for an attempt says nothing about the work: stop when hf_once_touch()
     * was not called for so long, and let another attempt follow. Default 0: never.
     */
    uint32_t stuck_ms;

    /*
     * What is to be done, in bytes: a request's body, say, or hf_item_to_json() of an item. Its
     * SHA-256 is kept, and a call with the same key and another payload is refused. Default absent:
     * not checked.
     */
    struct hf_bytes payload;
    uint32_t keep_s;          /* how long the result is kept; default 0: forever */
    uint32_t poll_ms;         /* how often a waiter polls, at least; default 1000 */
    bool no_wait;             /* hf_once_do() fails with HF_LOCKED where it would wait */
    hf_once_lost_fn *on_lost; /* default none */
    void *user;               /* handed to on_lost */
};

/*
 * Begin an attempt if nobody has: one conditional write. When it is ours to do, *once is the
 * attempt and the record is HF_ONCE_RUNNING; when it has been done before, *once is NULL and the
 * record says what came out. Both are HF_OK.
 *
 * HF_LOCKED          another attempt is running, and was not seen to be silent for its whole
 *                    timeout by earlier calls on this table; the error names its owner
 * HF_TOKEN_MISMATCH  the key was used with another payload
 * HF_INVALID         the user or the key is empty or too long, heartbeat_ms exceeds half of
 *                    timeout_ms
 * and what the database fails with. When that leaves open whether the attempt was begun, it is
 * given up in the background as soon as that can be done.
 */
HF_API HF_NODISCARD enum hf_status hf_once_try(struct hf_scope *s, struct hf_once_table *onces,
                                               struct hf_str user, struct hf_str key,
                                               const struct hf_once_options *options,
                                               struct hf_once **once,
                                               struct hf_once_record *record);

/*
 * The same, waiting until the deadline of the scope while another attempt runs or the database
 * cannot be reached: for its result, or for its end, and then it is ours. Forever when there is no
 * deadline. To follow an attempt that died, the deadline has to be its timeout away.
 *
 * HF_TIMEOUT   another attempt was still running at the deadline
 * HF_CANCELED  hf_scope_cancel() was called
 * HF_TOKEN_MISMATCH, HF_INVALID as above
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_once_begin(struct hf_scope *s, struct hf_once_table *onces,
                                                 struct hf_str user, struct hf_str key,
                                                 const struct hf_once_options *options,
                                                 struct hf_once **once,
                                                 struct hf_once_record *record);

/*
 * It is done: record it with its result, which may be absent. If it cannot be recorded now, the
 * call can be repeated, and hf_once_close() leaves it to the background; the first result counts.
 *
 * HF_LOST     another attempt took over, or the key was cleared or marked as done: this attempt's
 *             result is not the one that others see
 * HF_INVALID  the result is larger than HF_ONCE_RESULT_MAX, or is invalid; nothing was sent
 * others      the database could not be reached; hf_scope_error(s)->may_have_happened says whether
 *             it may have been recorded
 */
HF_API HF_NODISCARD enum hf_status hf_once_finish(struct hf_scope *s, struct hf_once *once,
                                                  struct hf_item result);

/*
 * The same for a failure that is final: it is recorded as HF_ONCE_FAILED, and all who ask get it as
 * it is, instead of trying again.
 */
HF_API HF_NODISCARD enum hf_status hf_once_fail(struct hf_scope *s, struct hf_once *once,
                                                struct hf_item result);

/*
 * Done with the attempt, which is gone then; NULL is accepted. One that was not finished is given
 * up, so that another can begin at once. What cannot be written to the database now is tried again
 * in the background until the timeout has passed. No scope is needed, so no error is overwritten.
 * Blocks.
 */
HF_API void hf_once_close(struct hf_once *once);

/*
 * What is to be done once. HF_OK and a result (may be left absent): it is recorded as done.
 * Anything else: it is not, and the next caller begins again. hf_once_fail() and
 * hf_once_commit() may be called in it.
 */
typedef enum hf_status hf_once_fn(struct hf_scope *s, struct hf_once *once, struct hf_item *result,
                                  void *user);

/*
 * All of the above: begin, or wait for another attempt, or take the result that is there; call
 * `action`, and record what it returned, trying for as long as the timeout. The record says
 * whether this call did it, and its result.
 *
 * HF_LOST     the action was run, and another attempt's completion is or will be recorded
 * HF_INVALID  with may_have_happened: the result was too large; it is recorded as done without one
 * what the action returned, when that was not HF_OK,
 * and what hf_once_begin(), or with no_wait hf_once_try(), fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_once_do(struct hf_scope *s, struct hf_once_table *onces,
                                              struct hf_str user, struct hf_str key,
                                              const struct hf_once_options *options,
                                              hf_once_fn *action, void *action_user,
                                              struct hf_once_record *record);

/* ---- during an attempt ---------------------------------------------------------------------- */

/* Has it been lost to another? False means: not that we know. Asks nobody. */
HF_API bool hf_once_lost(struct hf_once *once);

/*
 * For how long nobody will take over, by our clock; 0: somebody may have. An attempt may go on
 * nevertheless, and complete if nobody has.
 */
HF_API uint32_t hf_once_left_ms(struct hf_once *once);

/* Send a heartbeat now. HF_LOST, or what the database fails with. */
HF_API HF_NODISCARD enum hf_status hf_once_renew(struct hf_scope *s, struct hf_once *once);

/* With stuck_ms: the work goes on. */
HF_API void hf_once_touch(struct hf_once *once);

/* Which attempt this is, from 1: one that takes over has a higher number. */
HF_API uint64_t hf_once_tries(const struct hf_once *once);

/* ---- transactions --------------------------------------------------------------------------- */

enum { HF_ONCE_ACTIONS_MAX = 99 }; /* DynamoDB's 100 in a transaction, and one of them is ours */

/*
 * Finish the attempt in one transaction with these actions: all of it is done, or nothing. Lost
 * answers are settled.
 *
 * HF_LOST         as of hf_once_finish()
 * HF_TX_CANCELED  one of the actions could not be done; hf_scope_error(s)->reasons are theirs, and
 *                 ours as the last. The attempt is still running
 * HF_INVALID      as of hf_once_finish(), or there are more actions than HF_ONCE_ACTIONS_MAX
 * HF_UNSUPPORTED  the database has no transactions
 * others          as of hf_once_finish(), but nothing is left to the background
 */
HF_API HF_NODISCARD enum hf_status hf_once_commit(struct hf_scope *s, struct hf_once *once,
                                                  struct hf_item result,
                                                  const struct hf_transact_write *actions,
                                                  size_t actions_len);

/*
 * The same for a transaction that the caller sends: *action finishes the attempt, or cancels all of
 * it when it was lost (ConditionalCheckFailed). Call hf_once_committed() when it was done;
 * otherwise hf_once_close() gives the attempt up, and a transaction that arrives later is refused.
 * HF_INVALID and HF_NOMEM as of hf_once_finish().
 */
HF_API HF_NODISCARD enum hf_status hf_once_finish_tx(struct hf_scope *s, struct hf_once *once,
                                                     struct hf_item result,
                                                     struct hf_transact_write *action);
HF_API void hf_once_committed(struct hf_once *once);

/*
 * The same, added to a transaction on the database of the attempt, which has to be there until that
 * was committed: the attempt is finished with it, and hf_once_committed() is not needed. A commit
 * that fails with HF_TX_CANCELED and the reason ConditionalCheckFailed for this action means that
 * the attempt was lost. HF_INVALID: it is a transaction on another database. And as above.
 * Since 0.1.
 */
HF_API HF_NODISCARD enum hf_status hf_once_finish_into(struct hf_scope *s, struct hf_once *once,
                                                       struct hf_tx *tx, struct hf_item result);

/*
 * Do a transaction once for a user and a key: the actions and the record, all or nothing, in one
 * request, with no attempt before it. The record says whether it was this call that did it; if it
 * was done before, that is HF_OK too, and nothing is done again.
 *
 * HF_TX_CANCELED     one of the actions could not be done; reasons as above
 * HF_LOCKED          an attempt of hf_once_try() and its kin is running
 * HF_TOKEN_MISMATCH  the key was used with another payload
 * HF_INVALID, HF_UNSUPPORTED as above
 *
 * Of the options payload and keep_s count.
 */
HF_API HF_NODISCARD enum hf_status
hf_once_transact(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                 struct hf_str key, const struct hf_once_options *options, struct hf_item result,
                 const struct hf_transact_write *actions, size_t actions_len,
                 struct hf_once_record *record);

/* ---- looking, marking, clearing ------------------------------------------------------------- */

/* Has it been done? A consistent read; HF_ONCE_NONE when nothing is known of it. */
HF_API HF_NODISCARD enum hf_status hf_once_get(struct hf_scope *s, struct hf_once_table *onces,
                                               struct hf_str user, struct hf_str key,
                                               struct hf_once_record *record);

/*
 * Record it as done, if it has not been. An attempt that runs gets HF_LOST. The record (may be
 * NULL) is what is there then: with an earlier time and result when it had been done before, and
 * `did` says which. Of the options payload and keep_s count. HF_TOKEN_MISMATCH and HF_INVALID as
 * above.
 */
HF_API HF_NODISCARD enum hf_status
hf_once_mark_done(struct hf_scope *s, struct hf_once_table *onces, struct hf_str user,
                  struct hf_str key, const struct hf_once_options *options, struct hf_item result,
                  struct hf_once_record *record);

/*
 * Forget it, so that it can be done again. An attempt that runs gets HF_LOST. *cleared (may be
 * NULL) says whether there was anything. HF_INVALID as above.
 */
HF_API HF_NODISCARD enum hf_status hf_once_clear(struct hf_scope *s, struct hf_once_table *onces,
                                                 struct hf_str user, struct hf_str key,
                                                 bool *cleared);

struct hf_once_list_options {
    size_t size;          /* set by HF_OPTIONS() */
    struct hf_str prefix; /* of the keys */
    uint32_t limit;       /* at most this many; default all */
    struct hf_str after;  /* `next` of an earlier call */
};

struct hf_once_list {
    const struct hf_once_record *records; /* in the order of keys */
    size_t records_len;
    struct hf_str next; /* absent at the end */
    uint64_t reserved[4];
};

/* All that is known of a user, by consistent reads. */
HF_API HF_NODISCARD enum hf_status hf_once_list(struct hf_scope *s, struct hf_once_table *onces,
                                                struct hf_str user,
                                                const struct hf_once_list_options *options,
                                                struct hf_once_list *list);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
