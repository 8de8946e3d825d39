/*
 * http/connection.h: the connections of a transport, for transport.c alone.
 *
 * A connection is taken, one request and one answer go over it, and it is kept for the next one or
 * closed. While it is taken, one thread has it.
 */
#ifndef HF_HTTP_CONNECTION_H
#define HF_HTTP_CONNECTION_H

#include <openssl/types.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "http/curl.h"
#include "http/transport.h"

/*
 * How long a call may take. The scope's deadline is by the clock of its env; timeout_ms is by the
 * system's, as is all waiting for a network: with a clock that stands still it would never end.
 */
struct patience {
    struct hf_scope *s;
    struct hf_str origin; /* for people */
    uint32_t timeout_ms;  /* 0: the scope's deadline alone */
    int64_t end_us;       /* by hf__patience_clock_us() */
};

enum { PATIENCE_SLICE_MS = 20 }; /* cancellation has nothing to wake a waiting thread with */

void hf__patience_begin(struct patience *patience, struct hf_scope *s,
                        const struct transport_call *call);
int64_t hf__patience_clock_us(void);

/* HF_TIMEOUT or HF_CANCELED by the scope, HF_IO when timeout_ms passed. */
enum hf_status hf__patience_check(struct patience *patience);

/* Milliseconds until the first of its ends, at most `cap`. */
int64_t hf__patience_left_ms(struct patience *patience, int64_t cap);

struct connection {
    struct connection *newer; /* of those that are kept; guarded by the transport's mutex */
    struct connection *older;
    CURL *easy;
    CURLM *multi; /* libcurl ties a connection to the multi handle that made it */
    int fd;
    bool fresh;       /* no request was sent on it yet */
    bool quick;       /* the last answer came so soon that going to sleep for it did not pay */
    bool taken;       /* a call has it */
    bool starved;     /* there was no descriptor for it */
    int64_t since_us; /* when it was kept, by the env's elapsed clock */
    size_t origin_len;
    char origin[]; /* with a NUL behind it */
};

struct transport {
    struct hf_env env;
    uint32_t connect_ms;
    uint32_t idle_ms;
    uint32_t idle_max;
    bool insecure;
    bool same_openssl; /* libcurl and we use the same */
    char *ca_file;     /* these four with a NUL; NULL when absent */
    char *http_proxy;
    char *https_proxy;
    char *no_proxy;
    _Atomic uint64_t connects;
    _Atomic uint64_t reuses;
    bool may_spin;                /* there is more than one processor */
    atomic_uint_fast32_t running; /* calls under way */
    _Atomic pid_t pid;            /* of the process that has made the connections */
    pthread_mutex_t store_mutex;  /* guards these two */
    X509_STORE *store;            /* of authorities; NULL until TLS is spoken */
    int64_t store_us;             /* when they were read */
    pthread_mutex_t mutex;        /* guards what follows */
    struct connection *newest;    /* of those that are kept */
    struct connection *oldest;
    uint64_t idle;           /* how many there are */
    uint64_t taken;          /* connections that calls have */
    uint64_t releases;       /* how often one was given back */
    pthread_cond_t released; /* one was given back */
};

/*
 * A connection to `origin`: one that was kept and is still alive, or a new one.
 *
 * Where there is no descriptor for a new one, one that another call gives back is waited for.
 *
 * HF_IO       it cannot be made; HF_TIMEOUT, HF_CANCELED
 * HF_INVALID  libcurl does not take the origin, the proxy or the file of authorities
 */
enum hf_status hf__connection_take(struct patience *patience, struct transport *transport,
                                   struct hf_str origin, struct connection **connection);

/*
 * After its end was received: did the server say that it is one? TLS can tell an end from a cut,
 * but libcurl does not. Plain connections cannot.
 */
bool hf__connection_ended(const struct transport *transport, const struct connection *connection);

/* Keep it for another request. */
void hf__connection_keep(struct transport *transport, struct connection *connection);
void hf__connection_close(struct transport *transport, struct connection *connection);

/* ---- authorities.c -------------------------------------------------------------------------- */

bool hf__authorities_same_openssl(void);

/*
 * Have `easy` trust whom it should. *store, which may be NULL, is freed by the caller when the
 * connection is made. HF_INVALID when they cannot be read; else *code is what libcurl says.
 */
enum hf_status hf__authorities_set(struct hf_scope *s, struct transport *t, CURL *easy,
                                   X509_STORE **store, CURLcode *code);

#endif
