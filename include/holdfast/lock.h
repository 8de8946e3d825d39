/*
 * Locks: leases on names, kept in a table. For one holder at a time, for many readers or one
 * writer, or for a number of permits; and to elect a leader.
 *
 *     struct hf_lock_table *locks;
 *     struct hf_lock *lock;
 *     if (hf_lock_table_open(s, db, NULL, &locks) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     hf_scope_timeout_ms(s, 30000);
 *     if (hf_lock_acquire(s, locks, HF_STR("invoice/7"), NULL, &lock) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     send_invoice(7, hf_lock_fence(lock));
 *     if (hf_lock_release(s, lock) != HF_OK)
 *         return complain(hf_scope_error_text(s)); // it was lost meanwhile, or may still be held
 *
 * A lock is held as long as its lease is renewed, which a thread of the table does. A holder that
 * is silent for a whole lease may be replaced, and if it was stopped in the meantime it may not
 * notice: no lock with leases can change that. What the lock protects can: every holder has a
 * fence, a number that is higher than that of every holder before it, forever. Hand it to what is
 * protected, which then refuses a lower fence than the highest it has seen; hf_lock_guard() and
 * its kin do that for items of the same database.
 *
 * Nobody's time of day matters. A waiter that finds a lock held watches it: if the holder has not
 * renewed its lease for the whole length of it, by the waiter's own clock, the lock is taken over.
 * The holder counts from before it asked for the lease, the waiter from after it saw it, so the
 * holder knows first that its lease has ended. The clock is one that runs while the machine is
 * suspended. On a directory the locks of a process that was killed are free at once, as nobody can
 * open the directory while that process lives: hf_db_opener() of db.h.
 *
 * A lost answer does not lose a lock, and neither does a database that is unreachable for a while.
 * A lock is lost only when its lease ends (HF_LOCK_EXPIRED), or another process took it over or
 * broke it (HF_LOCK_STOLEN).
 *
 * Any thread may use a table and a lock; one releases it. Works on every database, as each lock is
 * one item and each step one conditional write.
 */
#ifndef HOLDFAST_LOCK_H
#define HOLDFAST_LOCK_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_lock_table; /* a table of locks, and the thread that renews ours */
struct hf_lock;       /* a lock that we hold, or held until it was lost */

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_lock_table_options {
    size_t size;         /* set by HF_OPTIONS() */
    struct hf_str table; /* default "locks"; created if missing */
    struct hf_str owner; /* our name in lists; default "HOST/PROCESS-ID" */
    bool no_create;      /* the table has to exist */
    bool no_threads;     /* hf_lock_table_step() is called instead; so with clocks of one's own */

    /*
     * Take over at once when the holder's wall clock, as it wrote it, and ours say that the lease
     * ended longer ago than this. Only where the clocks of all hosts never differ by more: a clock
     * that does breaks the lock without anybody noticing. Default 0: no clock is trusted, and to
     * replace a dead holder takes a waiter one lease of watching.
     */
    uint32_t clock_skew_ms;

    /*
     * Let the database remove a lock that nobody has held for so many seconds (its time to live).
     * Fences grow beyond that, too, as a new lock's first one is the time of day in milliseconds.
     * Default 0: locks stay.
     */
    uint32_t forget_s;

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */

    /*
     * Names of attributes: of the key, and of the time to live, also where forget_s is 0. All who
     * use a table name them alike. Defaults "name" and "expires".
     */
    struct hf_str hash_attribute;
    struct hf_str expires_attribute;
};

/*
 * Locks in a table of `db`, which has to outlive them. The env is that of the scope.
 *
 * HF_INVALID  a table of that name is not one of locks; see hf_table_ensure(). Or the name
 *             of an attribute is invalid, or differs from that of who opened the table before
 * and what making a table fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_lock_table_open(struct hf_scope *s, struct hf_db *db,
                                                      const struct hf_lock_table_options *options,
                                                      struct hf_lock_table **locks);

/*
 * For tests: no database behind it. Every lock is granted at once, also when it is held, or none
 * ever is. Fences grow.
 */
HF_API HF_NODISCARD enum hf_status hf_lock_table_open_noop(struct hf_scope *s, bool grant,
                                                           struct hf_lock_table **locks);

/* Every lock and election of it has been released, left or closed before. */
HF_API void hf_lock_table_close(struct hf_lock_table *locks);

/*
 * With no_threads: renew what is due, release what could not be released, make the calls to on_late
 * and on_lost, lead the elections. *next_ms is after how many milliseconds there is more to do,
 * UINT32_MAX when there is nothing. One thread at a time. Does not fail.
 */
HF_API HF_NODISCARD enum hf_status
hf_lock_table_step(struct hf_scope *s, struct hf_lock_table *locks, uint32_t *next_ms);

/* ---- holding a lock ------------------------------------------------------------------------- */

enum hf_lock_mode {
    HF_LOCK_EXCLUSIVE = 1, /* alone */
    HF_LOCK_SHARED,        /* with others that share */
    HF_LOCK_PERMIT         /* with others that have a permit, as long as there is one left */
};

enum hf_lock_state {
    HF_LOCK_HELD = 1,
    HF_LOCK_EXPIRED, /* the lease ended: the database could not be reached, or we were stopped */
    HF_LOCK_STOLEN   /* another took it over, or somebody broke it */
};

/*
 * The lease has late_ms left or less and could not be renewed so far. Called once until it is
 * renewed, on a thread of the table.
 */
typedef void hf_lock_late_fn(struct hf_lock *lock, uint32_t left_ms, void *user);

/*
 * The lock is lost, for this reason; called once, on a thread of the table. It still has to be
 * released, which may be done in here. After hf_lock_release() has returned neither function is
 * called or running any more.
 */
typedef void hf_lock_lost_fn(struct hf_lock *lock, enum hf_lock_state why, void *user);

struct hf_lock_options {
    size_t size;            /* set by HF_OPTIONS() */
    uint32_t lease_ms;      /* silence after which others may take over; default 20000 */
    uint32_t heartbeat_ms;  /* how often it is renewed, at most half the lease; default a quarter */
    bool no_heartbeats;     /* hf_lock_extend() is the caller's business */
    enum hf_lock_mode mode; /* default HF_LOCK_EXCLUSIVE */
    uint32_t permits;       /* with HF_LOCK_PERMIT: how many there are */
    uint32_t poll_ms;       /* how often a waiter polls, at least; default 1000 */

    /*
     * A thread that renews says nothing about the work: stop renewing when hf_lock_touch() was not
     * called for so long, and let the lease end. Default 0: renew as long as the lock is held.
     */
    uint32_t stuck_ms;
    struct hf_item data;      /* stored with the lock; absent: what is there stays */
    uint32_t late_ms;         /* default a third of the lease */
    hf_lock_late_fn *on_late; /* default none */
    hf_lock_lost_fn *on_lost; /* default none */
    void *user;               /* handed to both */
};

/*
 * Acquire `name` if it is free, shared, or has a permit left; or if its holder was seen to be
 * silent for a whole lease by an earlier call on this table. Otherwise *lock is NULL and the error
 * names the holder.
 *
 * HF_LOCKED   another holds it
 * HF_INVALID  the name is empty, heartbeat_ms exceeds half of lease_ms, permits are none
 * and what the database fails with. When that leaves open whether the lock was acquired, it is
 * released in the background as soon as that can be done.
 */
HF_API HF_NODISCARD enum hf_status hf_lock_try(struct hf_scope *s, struct hf_lock_table *locks,
                                               struct hf_str name,
                                               const struct hf_lock_options *options,
                                               struct hf_lock **lock);

/*
 * The same, waiting until the deadline of the scope while others hold it or the database cannot be
 * reached; forever when there is no deadline. To take over from a holder that is gone, the
 * deadline has to be a lease away.
 *
 * HF_TIMEOUT   still held at the deadline
 * HF_CANCELED  hf_scope_cancel() was called
 * HF_INVALID   as above
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_lock_acquire(struct hf_scope *s, struct hf_lock_table *locks,
                                                   struct hf_str name,
                                                   const struct hf_lock_options *options,
                                                   struct hf_lock **lock);

/*
 * Renew the lease now, with another length if lease_ms is not 0.
 *
 * HF_LOST     the lock was lost, and stays so
 * HF_INVALID  lease_ms is less than twice the heartbeat
 * others      it could not be renewed now; it is held until hf_lock_left_ms() is 0
 */
HF_API HF_NODISCARD enum hf_status hf_lock_extend(struct hf_scope *s, struct hf_lock *lock,
                                                  uint32_t lease_ms);

/*
 * Give the lock back; `lock` is gone whatever comes out. NULL is accepted.
 *
 * HF_LOST  it had been lost before
 * others   the database could not be reached. It is tried again in the background; others get the
 *          lock at the end of the lease at the latest
 */
HF_API enum hf_status hf_lock_release(struct hf_scope *s, struct hf_lock *lock);

/* The same, leaving other data with the lock: absent leaves it as it is. */
HF_API enum hf_status hf_lock_release_data(struct hf_scope *s, struct hf_lock *lock,
                                           struct hf_item data);

/*
 * Forget a lock without giving it back: it stays held until its lease is over, and nobody renews
 * it. For a lock that is held in the name of somebody who does not use this library. `lock` is gone
 * then. NULL is accepted.
 */
HF_API void hf_lock_leave(struct hf_lock *lock);

/* Higher than that of every earlier holder of the name, in whatever mode. */
HF_API uint64_t hf_lock_fence(const struct hf_lock *lock);

/* Asks the clock, not the database. */
HF_API enum hf_lock_state hf_lock_state(struct hf_lock *lock);

/* How much of the lease is left, by our clock; 0 when the lock is lost. */
HF_API uint32_t hf_lock_left_ms(struct hf_lock *lock);

/* With stuck_ms: the work goes on. */
HF_API void hf_lock_touch(struct hf_lock *lock);

/* Its name, as long as the lock lives. */
HF_API struct hf_str hf_lock_name(const struct hf_lock *lock);

/* The data of the lock: as it was when we acquired it, or as we set it. Absent: none. */
HF_API struct hf_item hf_lock_data(struct hf_scope *s, struct hf_lock *lock);

/* Set the data, if the lock is still ours; renews it, too. Fails as hf_lock_extend() does. */
HF_API HF_NODISCARD enum hf_status hf_lock_set_data(struct hf_scope *s, struct hf_lock *lock,
                                                    struct hf_item data);

/* ---- fencing -------------------------------------------------------------------------------- */

/*
 * An action for a transaction on the same database: all of it is refused if the lock is not ours
 * any more. It is HF_TX_CANCELED then, with the reason ConditionalCheckFailed for this action.
 *
 *     struct hf_transact_write actions[2] = {{.put = &invoice}};
 *     struct hf_transact_write_items both = {.actions = actions, .actions_len = 2};
 *     if (hf_lock_guard(s, lock, &actions[1]) != HF_OK ||
 *         hf_transact_write_items(s, db, &both, NULL) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * HF_NOMEM; HF_UNSUPPORTED for a lock of hf_lock_table_open_noop().
 */
HF_API HF_NODISCARD enum hf_status hf_lock_guard(struct hf_scope *s, const struct hf_lock *lock,
                                                 struct hf_transact_write *action);

/*
 * The same for a single write, of any table, also where there are no transactions: the item keeps
 * the highest fence that has written it in `attribute` (absent: "fence"), and the write is
 * refused, HF_CONDITION, if that is higher than this lock's. A condition that the request has must
 * hold as well. The request is changed in place: its texts live in the scope then. Placeholders
 * that begin with "#hf_fence" or ":hf_fence" are taken.
 *
 * Every write of that item has to be guarded. Deleting it forgets the fence, so mark it as deleted
 * instead.
 *
 * HF_INVALID  the request has no item, or no update expression
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status hf_lock_guard_put(struct hf_scope *s, const struct hf_lock *lock,
                                                     struct hf_str attribute,
                                                     struct hf_put_item *put);
HF_API HF_NODISCARD enum hf_status hf_lock_guard_update(struct hf_scope *s,
                                                        const struct hf_lock *lock,
                                                        struct hf_str attribute,
                                                        struct hf_update_item *update);

/* ---- looking at locks ----------------------------------------------------------------------- */

struct hf_lock_holder {
    struct hf_str id; /* of this holding; for hf_lock_break() */
    struct hf_str owner;
    uint64_t fence;
    uint32_t lease_ms;
    int64_t since_us;   /* by the holder's wall clock */
    int64_t renewed_us; /* by the holder's wall clock */
    uint64_t reserved[4];
};

struct hf_lock_info {
    struct hf_str name;
    enum hf_lock_mode mode; /* of its holders; 0 while it is free */
    uint64_t fence;         /* the highest so far */
    const struct hf_lock_holder *holders;
    size_t holders_len; /* some of them may be gone, and not replaced yet */
    struct hf_item data;
    uint64_t reserved[4];
};

/* HF_NOT_FOUND when nobody ever held it. */
HF_API HF_NODISCARD enum hf_status hf_lock_inspect(struct hf_scope *s, struct hf_lock_table *locks,
                                                   struct hf_str name, struct hf_lock_info *info);

struct hf_lock_list_options {
    size_t size;          /* set by HF_OPTIONS() */
    struct hf_str prefix; /* of the names */
    bool free_too;        /* default: only those that are held */
    uint32_t limit;       /* at most this many; default all */
    struct hf_str after;  /* `next` of an earlier call */
};

struct hf_lock_list {
    const struct hf_lock_info *locks; /* in no order */
    size_t locks_len;
    struct hf_str next; /* absent at the end */
    uint64_t reserved[4];
};

/* Reads the whole table. */
HF_API HF_NODISCARD enum hf_status hf_lock_list(struct hf_scope *s, struct hf_lock_table *locks,
                                                const struct hf_lock_list_options *options,
                                                struct hf_lock_list *list);

/*
 * Take the lock away from the holder with that id, or from all (absent). They learn it when they
 * next renew it, as HF_LOCK_STOLEN; what they do until then only a fence can stop. *broken (may be
 * NULL) is how many held it.
 *
 * HF_NOT_FOUND  nobody ever held it, or that holder is gone already
 */
HF_API HF_NODISCARD enum hf_status hf_lock_break(struct hf_scope *s, struct hf_lock_table *locks,
                                                 struct hf_str name, struct hf_str id,
                                                 size_t *broken);

/* ---- leader election ------------------------------------------------------------------------ */

struct hf_election; /* one candidate */

/* We lead, in this term: the fence of the lock, so each term is higher than all before it. */
typedef void hf_elected_fn(struct hf_election *election, uint64_t term, void *user);

/* We lead no more, for this reason; the candidate goes on. Not called by hf_election_close(). */
typedef void hf_deposed_fn(struct hf_election *election, uint64_t term, enum hf_lock_state why,
                           void *user);

struct hf_election_options {
    size_t size;            /* set by HF_OPTIONS() */
    uint32_t lease_ms;      /* as of a lock */
    uint32_t heartbeat_ms;  /* as of a lock */
    uint32_t poll_ms;       /* as of a lock */
    struct hf_item data;    /* how to reach us, say; hf_lock_inspect() shows it */
    hf_elected_fn *elected; /* both are called on a thread of the election, or by */
    hf_deposed_fn *deposed; /* hf_lock_table_step(); never both at once */
    void *user;
};

/* Stand for election under `name`: be the leader as soon as there is none. HF_INVALID as of
 * hf_lock_acquire(). */
HF_API HF_NODISCARD enum hf_status hf_election_open(struct hf_scope *s, struct hf_lock_table *locks,
                                                    struct hf_str name,
                                                    const struct hf_election_options *options,
                                                    struct hf_election **election);

/* Do we lead now, by our clock? Then *term (may be NULL) is the term. */
HF_API bool hf_election_leads(struct hf_election *election, uint64_t *term);

/* The lock of the leader, for hf_lock_guard() and its kin, inside of `elected` and until `deposed`
 * has returned; NULL when we do not lead. */
HF_API const struct hf_lock *hf_election_lock(struct hf_election *election);

/* Stand no more; give up the lead. Not in its own functions. */
HF_API void hf_election_close(struct hf_election *election);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
