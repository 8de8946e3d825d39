/*
 * base/scope_private.h: what a scope is inside: memory and waiting in scope.c, errors in error.c.
 */
#ifndef HF_BASE_SCOPE_PRIVATE_H
#define HF_BASE_SCOPE_PRIVATE_H

#include <stdatomic.h>

#include "base/base.h"

struct chunk;

enum { KEPT_TEXTS_MAX = 32 };

struct hf_scope {
    struct hf_env env;
    struct chunk *newest;
    int64_t deadline_us;          /* on the env's elapsed clock; 0: none */
    atomic_uint wakes;            /* CANCELED, and how often it was woken; (3) */
    const struct hf_scope *outer; /* whose cancellation counts, too; NULL: none */
    struct hf_scope_capacity counted;
    struct hf_scope_capacity *counter; /* where to count: ours, the outer one's, or NULL */
    bool reads_durable;                /* hf__scope_set_reads_durable() */
    bool alloc_failed;                 /* an allocation failed since hf__scope_alloc_clear() */
    enum hf__wording wording;
    struct hf_tx *tx;                 /* the caller's; NULL: none */
    struct hf__pending_sync *pending; /* the sync that the caller waits for; NULL: calls wait */
    struct hf__pending_sync later;    /* of hf_scope_sync_later() */
    struct hf__patience *patience;    /* NULL: reads may take any time */
    struct hf_error error;
    bool error_set;     /* false: `error` is all zero */
    struct hf_str said; /* what hf_scope_error_text() gives for the message `said_of` */
    const char *said_of;
    int kept_len;
    struct hf_str kept[KEPT_TEXTS_MAX];
};

#endif
