/*
 * A consumer of a table's stream: every change of its items, in order for each item, at least once,
 * from a position that is kept.
 *
 *     enum hf_status seen(struct hf_scope *s, const struct hf_change *changes, size_t len,
 *                         void *user);
 *
 *     struct hf_consumer_options *options =
 *         HF_OPTIONS(hf_consumer_options, .name = HF_STR("mailer"));
 *     struct hf_consumer *consumer;
 *
 *     if (hf_consumer_open(s, db, HF_STR("orders"), options, &consumer) != HF_OK ||
 *         hf_consumer_run(s, consumer, seen, NULL) != HF_CANCELED) // until the scope is canceled
 *         return complain(hf_scope_error_text(s));
 *
 * A stream has shards, which end and are followed by others. Changes of a shard are delivered
 * before those of its children. Any number of consumers with one name share the shards: one of them
 * has the lease of a shard, its position is stored in a table (default "checkpoints"), and another
 * takes over when its owner is silent for a lease. Without a name nothing is stored and nothing
 * shared.
 *
 * Iterators that expire are renewed from the position. Records that were trimmed before they were
 * read (the database keeps them for 24 hours) are reported by on_gap, and the shard goes on with
 * the oldest record that is left. When the stream of the table is disabled and enabled again, or
 * the table is made again, the old stream is read to its end, then the new one from its beginning.
 * For DynamoDB and for our own engine.
 */
#ifndef HOLDFAST_STREAMS_H
#define HOLDFAST_STREAMS_H

#include <holdfast/base.h>
#include <holdfast/db.h>
#include <holdfast/item.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_consumer;

struct hf_change {
    enum hf_change_kind kind;
    struct hf_item key;
    struct hf_item old_image; /* absent: none, or the stream does not have it */
    struct hf_item new_image; /* absent: none, or the stream does not have it */
    struct hf_str sequence;   /* its number in the shard */
    struct hf_str shard;
    struct hf_str id; /* of the change: the same when it comes again */
    int64_t time_us;  /* about when, since 1970; whole seconds */
    bool expired;     /* the database removed it, as its time to live had ended */
    uint64_t reserved[4];
};

/*
 * Changes of one shard, in order. HF_OK: the position is behind them. Anything else: they come
 * again after a while. Several threads may call it at once, each for another shard.
 */
typedef enum hf_status hf_change_fn(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                    void *user);

/*
 * Records of a shard were trimmed before they were delivered. `sequence` is the last delivered one;
 * absent: none. Called on the thread that notices it, which may not be a handler's.
 */
typedef void hf_gap_fn(struct hf_str shard, struct hf_str sequence, void *user);

/* A handler has not returned after stuck_ms: which shard it has changes of, and for how long.
 * Called on the thread that renews leases, once for each call. */
typedef void hf_consumer_stuck_fn(struct hf_str shard, uint64_t for_ms, void *user);

struct hf_consumer_options {
    size_t size;             /* set by HF_OPTIONS() */
    struct hf_str name;      /* the position is stored under this name; default: none */
    struct hf_str table;     /* for positions; default "checkpoints", created if missing */
    struct hf_str owner;     /* our name in lists; default "HOST/PROCESS-ID" */
    enum hf_start start;     /* where there is no position yet */
    struct hf_str shard;     /* HF_START_AFTER: go on in this shard, and in those that follow it; */
    struct hf_str sequence;  /* after this record of it */
    int64_t from_us;         /* HF_START_TIME: found by reading from the oldest */
    uint32_t batch;          /* changes handed over at once at most; default 100, at most 1000 */
    uint32_t poll_ms;        /* how often a shard without news is asked; default 1000 */
    uint32_t workers;        /* shards at once; default 1 */
    uint32_t lease_ms;       /* default 20000 */
    uint32_t checkpoint_ms;  /* a position is written at most so often; default 1000, and at the
                                   end */
    uint32_t max_attempts;   /* of a batch in one run, then the run ends with its failure; default:
                                no limit. A handler that ends the process ends the run, too: what
                                the next one does with the batch is up to it */
    uint32_t backoff_ms;     /* before it comes again; doubled up to 30000; default 1000 */
    struct hf_str partition; /* only changes of items whose hash key is this text; default all */
    bool until_end;          /* end when all that is there was handed over; what others have leased
                                is left to them. A shard that is written to without a pause of
                                about half a second has no end */
    hf_gap_fn *on_gap;
    void *user; /* handed to it */

    /*
     * Everything happens on the caller's thread, one shard after the other, and leases are renewed
     * between batches: a handler that takes longer than a lease loses its shard. So with clocks of
     * one's own, and in functions that are frozen between calls.
     */
    bool no_threads;

    bool adopt; /* take a table with items and no mark; default: HF_INVALID, see docs/tables.md */

    /*
     * With threads: a handler that has not returned after stuck_ms is reported to on_stuck and to
     * the env's log, and counted. HF_STUCK_RELEASE gives its shard back, so that another process
     * reads it, from the position that was written last; what the handler returns later moves
     * nothing. Without a name it is HF_INVALID, as there is nothing to give back. HF_STUCK_GIVE_UP
     * is HF_INVALID: consumers have no dead letters.
     */
    uint32_t stuck_ms; /* default 300000 */
    enum hf_stuck stuck;
    hf_consumer_stuck_fn *on_stuck;

    /*
     * With threads: how long a run that is stopped waits for handlers that do not return although
     * their scopes were canceled. Then it ends without them, HF_TIMEOUT: their shards are given
     * back at the position that was written last, and what they return later moves nothing. They
     * use `user` and the consumer meanwhile: hf_consumer_close() waits for them, and until they
     * have returned hf_consumer_run() is HF_IN_USE. Default 0: a run waits until they return.
     */
    uint32_t stop_ms;
};

/* HF_INVALID: the table has no stream, or an option is invalid. HF_NOT_FOUND: no table. */
HF_API HF_NODISCARD enum hf_status hf_consumer_open(struct hf_scope *s, struct hf_db *db,
                                                    struct hf_str table,
                                                    const struct hf_consumer_options *options,
                                                    struct hf_consumer **consumer);

/* It is not running. NULL is accepted. */
HF_API void hf_consumer_close(struct hf_consumer *consumer);

/*
 * Hand changes over until the scope is canceled or its deadline comes, or the end with until_end.
 * Positions are written then, and shards handed over to others. What the database does not do now
 * is retried for as long as that may help. May be called again, and goes on where it was.
 *
 * HF_CANCELED, HF_TIMEOUT  the scope was canceled, or its deadline came; HF_TIMEOUT also when
 *                          handlers did not return within stop_ms
 * HF_NOT_FOUND             the table is gone, and its stream was read to the end
 * HF_IN_USE                it is running already, or a handler of the run before has not returned
 * and what the handler failed with max_attempts times, or the database for good.
 *
 * Blocks.
 */
HF_API HF_NODISCARD enum hf_status hf_consumer_run(struct hf_scope *s, struct hf_consumer *consumer,
                                                   hf_change_fn *handle, void *user);

struct hf_consumer_metrics {
    uint64_t changes; /* handed over */
    uint64_t batches;
    uint64_t failures; /* batches that failed */
    uint64_t gaps;
    uint64_t calls;       /* GetRecords */
    uint32_t shards;      /* being read now */
    int64_t lag_ms;       /* how old the newest change was when it was handed over */
    uint64_t stuck_total; /* calls of a handler that had not returned after stuck_ms */
    uint64_t reserved[8];
};
HF_API void hf_consumer_metrics(struct hf_consumer *consumer, struct hf_consumer_metrics *metrics);

/*
 * Changes out of the event that a function runtime hands over: JSON with "Records", each with
 * "dynamodb" and DynamoDB's JSON in it. HF_INVALID: it is none; the message says where.
 */
HF_API HF_NODISCARD enum hf_status hf_changes_decode(struct hf_scope *s, struct hf_str json,
                                                     const struct hf_change **changes, size_t *len);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
