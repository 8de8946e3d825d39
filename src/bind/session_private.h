/*
 * bind/session_private.h: what the files of sessions share.
 */
#ifndef HF_BIND_SESSION_PRIVATE_H
#define HF_BIND_SESSION_PRIVATE_H

#include "bind/session.h"

enum delivery_state { DELIVERY_WAITING, DELIVERY_HANDED, DELIVERY_DONE };

struct bind_delivery {
    struct bind_delivery *next;
    uint64_t token;
    enum delivery_state state;
    struct hf_scope *scope; /* of who waits for its end */
    struct hf_str members;
    const void *about;
    uint64_t take;         /* which call took it last */
    struct hf_scope *said; /* what *outcome points to; NULL: nothing */
    struct session_outcome outcome;
};

struct bind_notice {
    struct bind_notice *next;
    size_t size; /* of this */
    struct hf_str members;
};

struct bind_session {
    struct bind_session *next;
    struct bind_sessions *all;
    struct hf_bind *bind;
    const struct session_kind *kind;
    void *object;
    uint64_t id;
    uint32_t users; /* calls that have found it */
    bool ending;
    bool draining;                    /* nothing more is handed over */
    struct bind_delivery *deliveries; /* the oldest first */
    struct bind_notice *notices;      /* the oldest first */
    size_t notices_len;
    uint64_t forgotten; /* notices */
};

/* Who waits for something to be handed over. */
struct session_waiter {
    struct session_waiter *next;
    struct hf_scope *scope;
};

struct bind_sessions {
    struct hf_env env;
    pthread_mutex_t mutex;
    pthread_cond_t unused; /* a session has fewer users */
    struct bind_session *first;
    struct session_waiter *waiters;
    uint64_t last_id, last_token, last_take;
};

/* Wake all who wait for a delivery or a notice; the mutex is held. */
void hf__sessions_wake(struct bind_sessions *all);

/* Call `look` until it finds something, the session is gone, or the time is over. */
enum hf_status hf__sessions_wait(struct hf_scope *s, struct bind_sessions *all, uint32_t wait_ms,
                                 bool (*look)(struct bind_sessions *all, void *user), void *user);

/* What was said of a delivery, in the scope. */
enum hf_status hf__session_outcome(struct hf_scope *s, const struct session_outcome *said,
                                   struct session_outcome *outcome);

/* The delivery of that token, which was handed over and is not done, and its session; the mutex is
 * held. NULL: there is none, and the next is the error for that. */
struct bind_delivery *hf__session_delivery_find(struct bind_sessions *all, uint64_t token,
                                                const struct bind_session **of);
enum hf_status hf__session_delivery_lost(struct hf_scope *s, uint64_t token);

#endif
