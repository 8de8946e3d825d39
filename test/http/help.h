/*
 * test/http/help.h: servers made of a socket and a function, for what speaks to servers.
 *
 * A listener runs the function in a thread of its own for each connection. There the function reads
 * requests and sends whatever bytes it likes, also none, wrong ones and slow ones.
 */
#ifndef HF_TEST_HTTP_HELP_H
#define HF_TEST_HTTP_HELP_H

#include <openssl/ssl.h>
#include <stdatomic.h>

#include "http/connection.h"
#include "http/http.h"

#include "test.h"

enum { PEERS_MAX = 1200 };

struct listener;

/* The server's end of a connection. */
struct peer {
    struct listener *listener;
    int fd;
    SSL *ssl;   /* NULL: plain */
    int number; /* from 0 */
    struct http_reader reader;
    uint8_t *bytes;
    size_t len;
    size_t cap;
};

/* Serves a connection, which is closed when it returns. */
typedef void peer_fn(struct peer *peer);

struct listener {
    peer_fn *serve;
    void *user;
    SSL_CTX *tls; /* NULL: plain */
    int fd;
    int port;
    char origin[64];
    pthread_t thread;
    pthread_t peers[PEERS_MAX];
    atomic_int accepted;
    atomic_int closed;   /* connections that the function left */
    atomic_int requests; /* read whole by peer_read() */
    atomic_bool flag;    /* for the test and its function */
};

/* Listen on a free port of 127.0.0.1. `tls` may be NULL. */
void listener_open(struct listener *listener, peer_fn *serve, void *user, SSL_CTX *tls);
/* Waits for the functions to return. */
void listener_close(struct listener *listener);

/* The next request, in peer->reader; false when there is none. */
bool peer_read(struct peer *peer);
/* Some bytes as they come; their number, 0 at the end and -1 for an error. */
ssize_t peer_receive(struct peer *peer, void *bytes, size_t len);
bool peer_send(struct peer *peer, const void *bytes, size_t len);
bool peer_say(struct peer *peer, const char *text);
/* Close with a reset. */
void peer_reset(struct peer *peer);
/* Until the number is there, for some seconds at most. */
void wait_until(atomic_int *number, int least);
void sleep_ms(int ms);
int64_t clock_ms(void);

/* Answers every request with 200 and the request's body, for as long as they come. */
peer_fn peer_echo;

/* A port on which nobody listens. */
int free_port(void);

/* ---- callers -------------------------------------------------------------------------------- */

/* A scope and a transport, with counted memory and the system's clocks. */
struct caller {
    struct hf_env env;
    struct hf_scope *s;
    struct transport *transport;
    struct http_head head;
    struct transport_call call;
    struct http_answer answer;
    int64_t took_ms; /* of the last call */
};

void caller_open(struct test *t, struct caller *caller, const struct transport_options *options);
void caller_close(struct caller *caller);

/* POST that body to the origin, with timeout_ms and answer_max as set in caller->call. */
enum hf_status caller_post(struct caller *caller, const char *origin, struct hf_str body);
struct hf_str caller_body(const struct caller *caller);
bool caller_may_retry(const struct caller *caller);
bool caller_may_have_happened(const struct caller *caller);
struct transport_stats caller_stats(const struct caller *caller);

#endif
