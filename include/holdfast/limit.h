/*
 * Limits: how often something may be done in a time, counted in a table that all hosts share. For
 * attempts at a password, requests of a client, mails to an address.
 *
 *     struct hf_limit_rule three = {.limit = 3, .window_ms = 3600000};
 *     struct hf_limit_table *limits;
 *     struct hf_limit_verdict verdict;
 *     if (hf_limit_table_open(s, db, NULL, &limits) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     switch (hf_limit_take(s, limits, HF_STR("reset/ann"), &three, NULL, &verdict)) {
 *     case HF_OK:
 *         if (reset_password("ann") && hf_limit_clear(s, limits, HF_STR("reset/ann"), &verdict))
 *             return complain(hf_scope_error_text(s));
 *         break;
 *     case HF_LIMIT:
 *         printf("too many attempts, try again in %u ms\n", verdict.retry_ms);
 *         break;
 *     default:
 *         return complain(hf_scope_error_text(s));
 *     }
 *
 * There is one item for each name, and one conditional write for each decision, so concurrent
 * callers are counted one by one. A second write is needed if this handle does not know the present
 * window of the name yet.
 *
 * Clocks. Each name has a clock of its own: the latest wall-clock time of any caller so far. It
 * never goes back. By that clock no more is granted than the rule says, whatever the clocks of the
 * callers show. A caller with a slow clock is counted at the time of the name's clock. A caller
 * with a fast clock ends a window early, once, by as much as it is fast; then the others wait until
 * their clocks have reached that time. So the clocks of the hosts should differ only by a small
 * part of a window.
 *
 * A lost answer does not let one more through. If another caller used the same name at the same
 * moment, the lost one may be counted twice.
 *
 * Any thread may use a table. Works on every database.
 */
#ifndef HOLDFAST_LIMIT_H
#define HOLDFAST_LIMIT_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    HF_LIMIT_NAME_MAX = 2048,      /* bytes of a name */
    HF_LIMIT_CONTEXT_MAX = 300000, /* hf_item_size() of a context */
    HF_LIMIT_MOST = 1000000000,    /* of a limit, a burst, a cost */
    HF_LIMIT_SLICES_MAX = 100,     /* of a sliding window */
    HF_LIMIT_REFUNDS_MAX = 1000    /* in one window */
};

struct hf_limit_table; /* a table of limits */

struct hf_limit_table_options {
    size_t size;         /* set by HF_OPTIONS() */
    struct hf_str table; /* default "limits"; created if missing, with a time to live */
    bool no_create;      /* the table has to exist */

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */

    /*
     * Names of attributes: of the key, and of the time to live. All who use a table name them
     * alike. Defaults "name" and "expires".
     */
    struct hf_str hash_attribute;
    struct hf_str expires_attribute;
};

/*
 * Limits in a table of `db`, which has to outlive them. The env is that of the scope.
 *
 * HF_INVALID  a table of that name is not one of limits; see hf_table_ensure(). Or the name
 *             of an attribute is invalid, or differs from that of who opened the table before
 * and what making a table fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_limit_table_open(struct hf_scope *s, struct hf_db *db,
                                                       const struct hf_limit_table_options *options,
                                                       struct hf_limit_table **limits);

/* NULL is accepted. */
HF_API void hf_limit_table_close(struct hf_limit_table *limits);

/* ---- rules ---------------------------------------------------------------------------------- */

enum hf_limit_kind {
    /*
     * At most `limit` in a window that begins with the first one and lasts window_ms; then the next
     * one begins another. Around the end of a window up to twice the limit can come together.
     */
    HF_LIMIT_ATTEMPTS = 1,
    HF_LIMIT_FIXED, /* the same, but windows begin when the time since 1970 is a multiple of one */

    /*
     * At most `limit` in any time of window_ms, wherever it begins. Time is counted in slices. A
     * slice that is partly over counts in full, so up to one slice too much is counted, never too
     * little.
     */
    HF_LIMIT_SLIDING,

    /*
     * An even rate of `limit` in window_ms (GCRA, or a leaky bucket): in any time t at most burst +
     * t * limit / window_ms. One number is stored, whatever the limit. A burst that was used up has
     * to be there again within a hundred years.
     */
    HF_LIMIT_RATE
};

/* What is allowed. The same name may be asked for with other rules later. */
struct hf_limit_rule {
    enum hf_limit_kind kind; /* default HF_LIMIT_ATTEMPTS */
    uint32_t limit;          /* from 1 on */
    uint32_t window_ms;      /* from 1 on */
    uint32_t burst;          /* HF_LIMIT_RATE: at once, after a time of rest; default the limit */
    uint32_t slices;         /* HF_LIMIT_SLIDING: of a window; default 10, at most window_ms */

    /*
     * HF_LIMIT_ATTEMPTS, HF_LIMIT_FIXED: one beyond the limit locks the name for so long, the next
     * time for twice as long, and so on, up to lockout_max_ms (default 16 times lockout_ms); then a
     * new window begins. hf_limit_clear() forgives all; so does a time of lockout_max_ms after the
     * end of a lockout. Default 0: none.
     */
    uint32_t lockout_ms;
    uint32_t lockout_max_ms;
    uint64_t reserved[4];
};

struct hf_limit_options {
    size_t size;            /* set by HF_OPTIONS() */
    uint32_t cost;          /* how much this one counts; default 1 */
    struct hf_item context; /* kept with a window from its first one on, and handed to all others */

    /*
     * If the database is unreachable: HF_OK, and verdict->unreached. Default: the call fails.
     * hf_limit_take_tx() always fails then, as the action needs the stored state.
     */
    bool fail_open;
    /*
     * How long to try to reach it, again and again. Default: until the deadline of the scope; where
     * there is none either, it fails when the database's own retries are over.
     */
    uint32_t reach_ms;
};

struct hf_limit_verdict {
    bool allowed;
    bool unreached;         /* the database was unreachable, and fail_open is set */
    bool locked;            /* by a lockout */
    uint64_t used;          /* of the limit, or of the burst, with this one */
    uint64_t left;          /* how many more would be allowed now */
    uint32_t retry_ms;      /* not allowed: when the same may be, if nobody else comes; else 0 */
    uint32_t reset_ms;      /* when all of the limit is there again, if nobody comes */
    uint32_t lockouts;      /* in a row */
    int64_t at_us;          /* the time at which it was counted, by the name's clock */
    struct hf_item context; /* absent when there is none */
    struct hf_str window;   /* the id of the window, for hf_limit_clear() and hf_limit_refund() */
    struct hf_str id;       /* of this one, for hf_limit_refund() */
    uint32_t cost;
    uint64_t reserved[4];
};

/* ---- taking --------------------------------------------------------------------------------- */

/*
 * Count one, if the rule allows it.
 *
 * HF_LIMIT    it does not: verdict->retry_ms says when it may; nothing was counted
 * HF_INVALID  the name is empty or too long, the rule is invalid, the cost is more than the limit
 *             or burst, the context is too large
 * HF_IN_USE   too many callers use the name at once; nothing was counted
 * and what the database fails with. Then it may have been counted, but it is not allowed.
 */
HF_API HF_NODISCARD enum hf_status hf_limit_take(struct hf_scope *s, struct hf_limit_table *limits,
                                                 struct hf_str name,
                                                 const struct hf_limit_rule *rule,
                                                 const struct hf_limit_options *options,
                                                 struct hf_limit_verdict *verdict);

/*
 * Would it be allowed? A consistent read; nothing is counted. HF_OK in both cases: see
 * verdict->allowed. HF_INVALID as above.
 */
HF_API HF_NODISCARD enum hf_status hf_limit_peek(struct hf_scope *s, struct hf_limit_table *limits,
                                                 struct hf_str name,
                                                 const struct hf_limit_rule *rule,
                                                 const struct hf_limit_options *options,
                                                 struct hf_limit_verdict *verdict);

/*
 * For a transaction that the caller sends: read, decide, and put into *action what counts it. The
 * transaction is canceled, ConditionalCheckFailed for this action, if others came first in a way
 * that matters: then ask again. HF_LIMIT and HF_INVALID as of hf_limit_take(); lockouts are looked
 * at and not begun.
 */
HF_API HF_NODISCARD enum hf_status
hf_limit_take_tx(struct hf_scope *s, struct hf_limit_table *limits, struct hf_str name,
                 const struct hf_limit_rule *rule, const struct hf_limit_options *options,
                 struct hf_transact_write *action, struct hf_limit_verdict *verdict);

/*
 * Give back what hf_limit_take() has counted: once, however often it is asked for. A window forgets
 * that it was counted; with HF_LIMIT_RATE it is free again from now on.
 *
 * HF_EXPIRED  too late: its window is over, or was cleared
 * HF_LIMIT    there were HF_LIMIT_REFUNDS_MAX in this window already
 * HF_INVALID  the verdict was not one that counted anything
 */
HF_API HF_NODISCARD enum hf_status
hf_limit_refund(struct hf_scope *s, struct hf_limit_table *limits, struct hf_str name,
                const struct hf_limit_rule *rule, const struct hf_limit_verdict *verdict);

/*
 * Reset what was counted, and lockouts: after a success, for example. With a verdict: only if its
 * window is still the present one, in one request. Without (NULL): in any case, for operators.
 * HF_OK also if there is nothing to reset.
 */
HF_API HF_NODISCARD enum hf_status hf_limit_clear(struct hf_scope *s, struct hf_limit_table *limits,
                                                  struct hf_str name,
                                                  const struct hf_limit_verdict *verdict);

#ifdef __cplusplus
}
#endif

#endif
