/*
 * db/batch_sender.h: sending many entries in batches, for batch.c: which come next, what to do when some
 * or all were not taken, and what is left in the end.
 */
#ifndef HF_DB_BATCH_SENDER_H
#define HF_DB_BATCH_SENDER_H

#include <holdfast/batch.h>

#include "base/base.h"

enum {
    BATCH_WRITES_MAX = 25,
    BATCH_GETS_MAX = 100 /* entries of a batch at most, as DynamoDB has it */
};

struct batch_sender;

/*
 * Send the first `n` of the pending entries as one batch, and set done[i] where the i-th of them
 * needs no more sending.
 */
typedef enum hf_status batch_send_fn(struct hf_scope *s, struct batch_sender *m, size_t n,
                                     bool *done);

struct batch_sender {
    struct hf_db *db;
    batch_send_fn *send;
    /* How many of the first `n` pending entries fit into one batch, at least 1; NULL: all do. */
    size_t (*fit)(struct hf_scope *s, const struct batch_sender *m, size_t n);
    struct hf_str (*table)(const struct batch_sender *m, size_t entry); /* for messages */
    const void *entries;
    size_t len;
    size_t batch_max;
    bool keep_memory; /* what calls leave in the scope is part of the result */
    const char *what; /* "writes", for messages */
    struct hf_many_options options;
    size_t *pending; /* numbers of the entries that are not done, in order */
    size_t pending_len;
    uint32_t *tries; /* per entry: how often it was sent and not taken */
    size_t most;     /* entries in the next batch at most */
    uint32_t delay_ms;
    size_t calls;
};

/* Memory and defaults; all `len` entries are pending. The members up to `what` are set before. */
enum hf_status hf__db_batch_start(struct hf_scope *s, struct batch_sender *m,
                                  const struct hf_many_options *options);

/* Send until nothing is pending. On failure `pending` is what is left. */
enum hf_status hf__db_batch_run(struct hf_scope *s, struct batch_sender *m);

/* Put "entry 7 (table users): " before the message of the scope's error. */
enum hf_status hf__db_batch_name_entry(struct hf_scope *s, const struct batch_sender *m,
                                       size_t entry, enum hf_status status);

#endif
