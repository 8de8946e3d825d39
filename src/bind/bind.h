/*
 * bind/bind.h: a database with its methods, for the two files that know what it has: bind.c and
 * bind_request.c.
 */
#ifndef HF_BIND_BIND_H
#define HF_BIND_BIND_H

#include "bind/private.h"

enum { SCOPES_MAX = 16 }; /* that are kept for hf_bind_request() */

struct hf_bind {
    struct hf_env env;
    struct hf_db *db;
    bool own_db;
    bool read_only;
    bool serves;            /* hf__bind_serve() was called, before any call */
    uint32_t list_max;      /* then */
    struct hf_scope *texts; /* of the options */
    struct hf_str owner;
    struct bind_sessions *sessions;
    pthread_mutex_t mutex; /* guards all below */
    pthread_cond_t ended;  /* a call has ended */
    bool closing;
    struct bind_opening *openings;
    struct bind_waiter *waiters;
    struct bind_object *objects; /* the newest first; added only, except by (5) */
    struct bind_object *retired; /* (5): closed when no call runs */
    struct bind_call *calls;
    uint32_t requests; /* calls of hf_bind_request(), which use this a little longer */
    struct hf_scope *scopes[SCOPES_MAX];
    size_t scopes_len;
};

/* Call a method. *take is what was taken with it, for a caller that cannot hand the result over. */
enum hf_status hf__bind_run(struct hf_scope *s, struct hf_bind *bind, struct hf_str method,
                            struct hf_str json, struct hf_str *result, uint64_t *take);

/* The result of a call that has ended: what is in `buf`, or the error of the scope as JSON. */
enum hf_status hf__bind_finish(struct hf_scope *s, enum hf_status status, struct hf__buf *buf,
                               struct hf_str *result);

#endif
