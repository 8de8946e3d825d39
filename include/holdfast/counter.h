/*
 * Counters: integers with a name, which many processes add to at once; and sequences, which return
 * one number after the other.
 *
 *     struct hf_counters *counters;
 *     int64_t visits;
 *     if (hf_counters_open(s, db, NULL, &counters) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *     ...
 *     if (hf_counter_incr(s, counters, hf_counter_named(HF_STR("visits")), 1, &visits) == HF_OK)
 *         printf("visitor %lld\n", (long long)visits);
 *
 * An add is counted once, however many answers are lost and however often it is sent. For that the
 * counter's item keeps a mark of each writer's last add, which its next add replaces; a repeated
 * add is recognized by its mark. Marks take some fifty bytes each. When there are too many
 * (hf_counters_options.writers), those of the writers that were idle longest are dropped; a writer
 * notices that and takes a new mark. Only if that happens just when the answer to its add is lost,
 * the add ends with HF_EXPIRED: it may have been counted, but never twice.
 *
 * So value >= the sum of adds that returned HF_OK, and value <= that sum plus the adds whose error
 * has may_have_happened. With a request id (hf_counter_add_once()) an add can be repeated by
 * another process, or after a crash, and is still counted once.
 *
 * Values are 64-bit integers. A new counter is 0. A successful call that returns only numbers
 * leaves nothing in the scope. Any thread may use a table of counters. Works on every database, as
 * an add is one conditional write of one item.
 */
#ifndef HOLDFAST_COUNTER_H
#define HOLDFAST_COUNTER_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_counters; /* counters in a table, and our marks in them */

enum {
    HF_COUNTER_REQUEST_MAX = 256, /* bytes of a request id */
    HF_COUNTER_WRITERS_MAX = 1000,
    HF_COUNTER_REQUESTS_MAX = 200, /* twice as many of the longest ids fit into an item */
    HF_COUNTER_SHARDS_MAX = 100    /* as many items as a transaction can read */
};

/* ---- the table ------------------------------------------------------------------------------ */

struct hf_counters_options {
    size_t size;         /* set by HF_OPTIONS() */
    struct hf_str table; /* default "keys", or "partitioned_keys"; created if missing */
    bool partitioned;    /* keys have partitions */
    bool no_create;      /* the table has to exist */

    /* The namespace of keys that name none; default "global", and "" in a partitioned table. */
    struct hf_str space;

    /*
     * No marks: an add is the cheapest write there is, but one whose answer got lost is not
     * repeated. Its error says may_have_happened.
     */
    bool plain;

    uint32_t writers;  /* marks of at least this many writers are kept; default 16 */
    uint32_t requests; /* at least this many request ids are remembered; default 32 */

    /*
     * Spread each counter over so many items, for one that is added to more often than one item
     * can take (DynamoDB: 1000 times a second). The value is the sum over all of them, which costs
     * a read of each, and is exact where there are transactions. The number may grow from one
     * version of a program to the next; a program that opens the table with fewer reads the same
     * sum. But request ids are only good among writers with the same number, and with 1 an add
     * tells, and bounds, no more than the first item's part. Default 1.
     */
    uint32_t shards;

    /* Names of the keys' attributes; defaults "key", or "partition" and "sort". */
    struct hf_str hash_attribute;
    struct hf_str sort_attribute;

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */
};

/*
 * Counters in a table of `db`, which has to outlive them. It may also hold keys and values (kv.h):
 * their keys differ. The env is that of the scope.
 *
 * HF_INVALID  a table of that name has other keys, or an option is invalid
 * and what making a table fails with.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_counters_open(struct hf_scope *s, struct hf_db *db,
                                                    const struct hf_counters_options *options,
                                                    struct hf_counters **counters);

/* NULL is accepted. Its sequences have been closed before. */
HF_API void hf_counters_close(struct hf_counters *counters);

/* Which counter. Different parts are different counters, whatever characters are in them. */
struct hf_counter_key {
    struct hf_str id;
    struct hf_str partition; /* in a partitioned table, and only there */
    struct hf_str space;     /* absent: that of the table */
};

static inline struct hf_counter_key hf_counter_of(struct hf_str partition, struct hf_str id)
{
    struct hf_counter_key key;

    key.id = id;
    key.partition = partition;
    key.space = hf_str_of(NULL, 0);
    return key;
}

static inline struct hf_counter_key hf_counter_named(struct hf_str id)
{
    return hf_counter_of(hf_str_of(NULL, 0), id);
}

/* ---- adding --------------------------------------------------------------------------------- */

struct hf_counter_options {
    size_t size;     /* set by HF_OPTIONS() */
    int64_t floor;   /* a negative add may not lead below this; HF_ZERO is 0; default: no floor */
    int64_t ceiling; /* a positive add may not lead above this; HF_ZERO is 0; default: none */
};

/*
 * Add `by`, which may be negative or 0. *value (may be NULL) is the value right after it. With
 * shards it is the sum some time after it, and NULL saves reading that.
 *
 * HF_LIMIT    it would lead below the floor, above the ceiling, or beyond 64 bits; nothing was
 *             added, and *value is the value as it is
 * HF_EXPIRED  see above: it may have been counted
 * HF_INVALID  no id; a partition is missing, or is there and the table has none; floor above
 *             ceiling; with shards, a floor or a ceiling
 * HF_CORRUPT  the item has something else for a value
 * and what the database fails with.
 */
HF_API HF_NODISCARD enum hf_status hf_counter_add(struct hf_scope *s, struct hf_counters *counters,
                                                  struct hf_counter_key key, int64_t by,
                                                  const struct hf_counter_options *options,
                                                  int64_t *value);

/* hf_counter_add() of `by`, and of minus `by`. */
HF_API HF_NODISCARD enum hf_status hf_counter_incr(struct hf_scope *s, struct hf_counters *counters,
                                                   struct hf_counter_key key, int64_t by,
                                                   int64_t *value);
HF_API HF_NODISCARD enum hf_status hf_counter_decr(struct hf_scope *s, struct hf_counters *counters,
                                                   struct hf_counter_key key, int64_t by,
                                                   int64_t *value);

/*
 * Add `by` unless an add with that request id was counted before, by any process. In that case
 * *value is the result of that time, and *again is true; both may be NULL. If an answer was lost,
 * *again is false, as it is unknown who was first. A counter remembers at least the last
 * hf_counters_options.requests ids.
 *
 * HF_INVALID  the request id is empty or longer than HF_COUNTER_REQUEST_MAX
 * and as hf_counter_add().
 */
HF_API HF_NODISCARD enum hf_status
hf_counter_add_once(struct hf_scope *s, struct hf_counters *counters, struct hf_counter_key key,
                    struct hf_str request, int64_t by, const struct hf_counter_options *options,
                    int64_t *value, bool *again);

/*
 * An action for a transaction on the same database: the add is counted with the rest or not at all.
 * With a request id (absent: none), a floor or a ceiling the transaction is canceled when the id
 * was counted before, or the add would lead beyond: then the reason for this action is
 * ConditionalCheckFailed, with the item. Everything lives in the scope. A counter can be in a
 * transaction once.
 *
 * HF_INVALID  as above
 * HF_NOMEM
 */
HF_API HF_NODISCARD enum hf_status
hf_counter_add_tx(struct hf_scope *s, struct hf_counters *counters, struct hf_counter_key key,
                  struct hf_str request, int64_t by, const struct hf_counter_options *options,
                  struct hf_transact_write *action);

/* ---- reading, setting, deleting ------------------------------------------------------------- */

/* The value now; 0 when there is none. With shards, the sum at one moment where there are
 * transactions, else a sum of values read one after the other. */
HF_API HF_NODISCARD enum hf_status hf_counter_get(struct hf_scope *s, struct hf_counters *counters,
                                                  struct hf_counter_key key, int64_t *value);

struct hf_counter_value {
    struct hf_counter_key key; /* as it was given */
    int64_t value;             /* 0 when there is none */
    bool found;
    uint64_t reserved[4];
};

/*
 * Many at once: values[i] is that of keys[i]; a key may come any number of times. Each is the value
 * of some moment during the call.
 */
HF_API HF_NODISCARD enum hf_status hf_counter_get_many(struct hf_scope *s,
                                                       struct hf_counters *counters,
                                                       const struct hf_counter_key *keys,
                                                       size_t len, struct hf_counter_value *values);

struct hf_counter_list_options {
    size_t size;             /* set by HF_OPTIONS() */
    struct hf_str partition; /* in a partitioned table; absent: all of them */
    struct hf_str space;     /* absent: that of the table */
    struct hf_str prefix;    /* of the ids */
    uint32_t limit;          /* at most this many; default all */
    struct hf_str after;     /* `next` of an earlier call */
};

struct hf_counter_list {
    const struct hf_counter_value *counters; /* in no order but in a partition, by id there */
    size_t counters_len;
    struct hf_str next; /* absent at the end */
    uint64_t reserved[4];
};

/*
 * The counters of a namespace, by consistent reads; one that nobody added to is none. Reads the
 * partition's counters, or else the whole table.
 *
 * HF_INVALID  a partition of a table that has none, or an empty one; what is not a cursor
 * HF_CORRUPT  an item has something else for a value
 */
HF_API HF_NODISCARD enum hf_status hf_counter_list(struct hf_scope *s, struct hf_counters *counters,
                                                   const struct hf_counter_list_options *options,
                                                   struct hf_counter_list *list);

/*
 * Set it; *was (may be NULL) is the exact value right before that: it includes all earlier adds and
 * no later ones. hf_counter_reset() sets it to 0. Shards are set one after the other, and *was is
 * the sum of what they were. Fails as hf_counter_add().
 */
HF_API HF_NODISCARD enum hf_status hf_counter_set(struct hf_scope *s, struct hf_counters *counters,
                                                  struct hf_counter_key key, int64_t value,
                                                  int64_t *was);
HF_API HF_NODISCARD enum hf_status hf_counter_reset(struct hf_scope *s,
                                                    struct hf_counters *counters,
                                                    struct hf_counter_key key, int64_t *was);

/*
 * Remove it with all its marks and request ids. An add in flight may be counted before and after
 * that: if every add matters, use hf_counter_reset(). For a counter with shards an item without a
 * value stays.
 */
HF_API HF_NODISCARD enum hf_status
hf_counter_delete(struct hf_scope *s, struct hf_counters *counters, struct hf_counter_key key);

/* ---- keys of one's own ---------------------------------------------------------------------- */

/* The counter for a key of the caller's own type; texts that it makes live in the scope. */
typedef struct hf_counter_key hf_counter_map_fn(struct hf_scope *s, const void *key, void *user);

/* Counters by keys of some type; no more than its members. */
struct hf_scoped_counter {
    struct hf_counters *counters;
    hf_counter_map_fn *map;
    void *user;
    uint64_t reserved[4];
};

/* As the functions above: hf_counter_incr(), hf_counter_decr() and so on. */
HF_API HF_NODISCARD enum hf_status hf_scoped_counter_incr(struct hf_scope *s,
                                                          const struct hf_scoped_counter *scoped,
                                                          const void *key, int64_t by,
                                                          int64_t *value);
HF_API HF_NODISCARD enum hf_status hf_scoped_counter_decr(struct hf_scope *s,
                                                          const struct hf_scoped_counter *scoped,
                                                          const void *key, int64_t by,
                                                          int64_t *value);
HF_API HF_NODISCARD enum hf_status hf_scoped_counter_get(struct hf_scope *s,
                                                         const struct hf_scoped_counter *scoped,
                                                         const void *key, int64_t *value);
HF_API HF_NODISCARD enum hf_status
hf_scoped_counter_get_many(struct hf_scope *s, const struct hf_scoped_counter *scoped,
                           const void *const *keys, size_t len, struct hf_counter_value *values);
HF_API HF_NODISCARD enum hf_status hf_scoped_counter_reset(struct hf_scope *s,
                                                           const struct hf_scoped_counter *scoped,
                                                           const void *key, int64_t *was);

/* ---- sequences ------------------------------------------------------------------------------ */

/*
 * One number after the other: each is returned once, whichever process asks.
 *
 *     if (hf_sequence_open(s, counters, hf_counter_named(HF_STR("ticket")), NULL, &tickets) ||
 *         hf_sequence_next(s, tickets, &number) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * hf_sequence_next() takes blocks of numbers and returns them from memory. That is fast, but leaves
 * gaps where a process ended before its block was used up. Numbers of one process grow; those of
 * several processes are mixed, as their blocks are.
 *
 * hf_sequence_commit() leaves no gaps: the transaction that uses a number also takes it. So the
 * order of numbers is the order of the transactions, and only one runs at a time.
 *
 * A sequence is a counter whose value is the last number that was taken.
 */
struct hf_sequence; /* any thread may use it */

struct hf_sequence_options {
    size_t size;    /* set by HF_OPTIONS() */
    uint32_t block; /* numbers taken at once; default 100; 1: none are kept in memory */
    int64_t last;   /* no number is above this; default: 64 bits */
};

enum { HF_SEQUENCE_BLOCK_MAX = 1000000000 };

/* HF_INVALID: the key, as of hf_counter_add(); the block is too large; the counters have shards or
 * are plain. Nothing is asked yet. */
HF_API HF_NODISCARD enum hf_status
hf_sequence_open(struct hf_scope *s, struct hf_counters *counters, struct hf_counter_key key,
                 const struct hf_sequence_options *options, struct hf_sequence **sequence);

/*
 * Close it. The rest of its block is given back if no other block was taken since; the status says
 * only whether the database answered. NULL is accepted; also as a scope: then nothing is given
 * back.
 */
HF_API enum hf_status hf_sequence_close(struct hf_scope *s, struct hf_sequence *sequence);

/*
 * The next number, from 1 on unless the counter was set. One thread asks for a block while others
 * wait for it.
 *
 * HF_LIMIT  `last` was given out
 * and as hf_counter_add(): a block that may have been taken is not used, and makes a gap.
 */
HF_API HF_NODISCARD enum hf_status hf_sequence_next(struct hf_scope *s,
                                                    struct hf_sequence *sequence, int64_t *number);

/*
 * Take `count` numbers at once, not from the block: from *first on, next to each other. Fails as
 * hf_sequence_next().
 */
HF_API HF_NODISCARD enum hf_status
hf_sequence_take(struct hf_scope *s, struct hf_sequence *sequence, uint32_t count, int64_t *first);

/*
 * An action for a transaction on the same database that takes `count` numbers from *first on: they
 * are given out if the transaction is done, and only then. When another took numbers in the
 * meantime the transaction is canceled, with ConditionalCheckFailed for this action: ask for a new
 * one. hf_sequence_commit() does that.
 */
HF_API HF_NODISCARD enum hf_status hf_sequence_take_tx(struct hf_scope *s,
                                                       struct hf_sequence *sequence, uint32_t count,
                                                       int64_t *first,
                                                       struct hf_transact_write *action);

/*
 * Write the actions of a transaction that uses the numbers from `first` on: up to `cap` of them;
 * *len is how many. Called again, with other numbers, when another was faster. What it returns but
 * HF_OK ends hf_sequence_commit().
 */
typedef enum hf_status hf_sequence_build_fn(struct hf_scope *s, int64_t first,
                                            struct hf_transact_write *actions, size_t cap,
                                            size_t *len, void *user);

/*
 * Take `count` numbers and do what `build` says with them, in one transaction: no gap, no number
 * twice, whatever gets lost. Tries again until the deadline of the scope while others are faster.
 *
 * HF_TX_CANCELED  for another reason; hf_scope_error(s)->reasons has those of the actions of
 *                 `build`, in their order, and then that of the sequence
 * HF_LIMIT        fewer than `count` numbers are left
 * HF_TIMEOUT      others were faster until the deadline
 * HF_EXPIRED         it may have been done: so many others took numbers since that this is unknown
 * HF_UNSUPPORTED  the database has no transactions
 * and what transactions fail with; may_have_happened says whether it may have been done.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_sequence_commit(struct hf_scope *s,
                                                      struct hf_sequence *sequence, uint32_t count,
                                                      hf_sequence_build_fn *build, void *user,
                                                      int64_t *first);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
