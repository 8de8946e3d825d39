/*
 * test/http/help.c: servers made of a socket and a function, and callers.
 */
#include "help.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void sleep_ms(int ms)
{
    struct timespec wait = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

    while (nanosleep(&wait, &wait) != 0)
        continue;
}

int64_t clock_ms(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void wait_until(atomic_int *number, int least)
{
    int64_t end = clock_ms() + 10000;

    while (atomic_load(number) < least && clock_ms() < end)
        sleep_ms(1);
    assert_true(atomic_load(number) >= least);
}

/* ---- listeners ------------------------------------------------------------------------------ */

static void *run_peer(void *argument)
{
    struct peer *peer = argument;

    if (peer->ssl && SSL_accept(peer->ssl) != 1)
        peer->len = 0; /* the function would find nothing to read */
    else
        peer->listener->serve(peer);
    SSL_free(peer->ssl);
    if (peer->fd >= 0)
        close(peer->fd);
    atomic_fetch_add(&peer->listener->closed, 1);
    free(peer->bytes);
    free(peer);
    return NULL;
}

static void *run_listener(void *argument)
{
    struct listener *l = argument;
    sigset_t pipe;
    int yes = 1;

    /* Of the server's ends; what the caller's end raises is a test's to see. */
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, NULL);
    for (;;) {
        int fd = accept(l->fd, NULL, NULL);
        int number = atomic_load(&l->accepted);
        struct peer *peer;

        if (fd < 0)
            return NULL;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
        peer = calloc(1, sizeof(*peer));
        if (!peer || number == PEERS_MAX)
            abort();
        peer->listener = l;
        peer->fd = fd;
        peer->number = number;
        if (l->tls) {
            peer->ssl = SSL_new(l->tls);
            SSL_set_fd(peer->ssl, fd);
        }
        if (pthread_create(&l->peers[number], NULL, run_peer, peer) != 0)
            abort();
        atomic_fetch_add(&l->accepted, 1);
    }
}

static int bind_socket(int *port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(0, bind(fd, (struct sockaddr *)&address, len));
    assert_int_equal(0, getsockname(fd, (struct sockaddr *)&address, &len));
    *port = ntohs(address.sin_port);
    return fd;
}

int free_port(void)
{
    int port, fd = bind_socket(&port);

    close(fd);
    return port;
}

void listener_open(struct listener *listener, peer_fn *serve, void *user, SSL_CTX *tls)
{
    memset(listener, 0, sizeof(*listener));
    listener->serve = serve;
    listener->user = user;
    listener->tls = tls;
    listener->fd = bind_socket(&listener->port);
    assert_int_equal(0, listen(listener->fd, 256));
    snprintf(listener->origin, sizeof(listener->origin), "%s://127.0.0.1:%d",
             tls ? "https" : "http", listener->port);
    assert_int_equal(0, pthread_create(&listener->thread, NULL, run_listener, listener));
}

void listener_close(struct listener *listener)
{
    shutdown(listener->fd, SHUT_RDWR);
    pthread_join(listener->thread, NULL);
    close(listener->fd);
    for (int i = 0; i < atomic_load(&listener->accepted); i++)
        pthread_join(listener->peers[i], NULL);
}

ssize_t peer_receive(struct peer *peer, void *bytes, size_t len)
{
    return peer->ssl ? SSL_read(peer->ssl, bytes, (int)len) : recv(peer->fd, bytes, len, 0);
}

bool peer_read(struct peer *peer)
{
    size_t used = peer->reader.used;

    if (used) {
        memmove(peer->bytes, peer->bytes + used, peer->len - used);
        peer->len -= used;
    }
    hf__http_begin(&peer->reader, &(struct http_limits){.body_bytes = 64 * 1024 * 1024});
    for (;;) {
        enum http_result result =
            peer->len ? hf__http_read(&peer->reader, peer->bytes, peer->len) : HTTP_MORE;
        ssize_t got;

        if (result == HTTP_DONE) {
            atomic_fetch_add(&peer->listener->requests, 1);
            return true;
        }
        if (result == HTTP_BAD)
            return false;
        if (peer->cap - peer->len < 65536) {
            peer->cap = 2 * peer->cap + 65536;
            peer->bytes = realloc(peer->bytes, peer->cap);
        }
        got = peer_receive(peer, peer->bytes + peer->len, peer->cap - peer->len);
        if (got <= 0)
            return false;
        peer->len += (size_t)got;
    }
}

bool peer_send(struct peer *peer, const void *bytes, size_t len)
{
    const char *p = bytes;

    while (len > 0) {
        ssize_t sent =
            peer->ssl ? SSL_write(peer->ssl, p, (int)len) : send(peer->fd, p, len, MSG_NOSIGNAL);

        if (sent <= 0)
            return false;
        p += sent;
        len -= (size_t)sent;
    }
    return true;
}

bool peer_say(struct peer *peer, const char *text)
{
    return peer_send(peer, text, strlen(text));
}

void peer_reset(struct peer *peer)
{
    struct linger now = {.l_onoff = 1};

    setsockopt(peer->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    close(peer->fd);
    peer->fd = -1;
}

void peer_echo(struct peer *peer)
{
    char head[128];

    while (peer_read(peer)) {
        struct hf_bytes body = peer->reader.body;
        int len = snprintf(head, sizeof(head), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n",
                           body.len);

        if (!peer_send(peer, head, (size_t)len) || !peer_send(peer, body.ptr, body.len))
            return;
    }
}

/* ---- callers -------------------------------------------------------------------------------- */

void caller_open(struct test *t, struct caller *caller, const struct transport_options *options)
{
    struct transport_options all = options ? *options : (struct transport_options){0};

    *caller = (struct caller){.env = *test_env(t)};
    caller->env.elapsed_us = caller->env.wall_us = NULL;
    if (!all.env)
        all.env = &caller->env;
    caller->s = hf_scope_new(all.env);
    CHECK(caller->s != NULL);
    CHECK_OK(hf__transport_open(caller->s, &all, &caller->transport));
}

void caller_close(struct caller *caller)
{
    hf__transport_close(caller->transport);
    hf_scope_free(caller->s);
}

enum hf_status caller_post(struct caller *caller, const char *origin, struct hf_str body)
{
    int64_t start = clock_ms();
    enum hf_status status;

    caller->head.method = HF_STR("POST");
    caller->head.target = HF_STR("/");
    caller->head.fields_len = 2;
    caller->head.fields[0] = (struct http_field){HF_STR("Host"), HF_STR("there")};
    caller->head.fields[1] = (struct http_field){HF_STR("X-Token"), HF_STR("secret")};
    caller->call.origin = hf_str_from(origin);
    caller->call.head = &caller->head;
    caller->call.body = hf_bytes_of(body.ptr, body.len);
    status = hf__transport_call(caller->s, caller->transport, &caller->call, &caller->answer);
    caller->took_ms = clock_ms() - start;
    return status;
}

struct hf_str caller_body(const struct caller *caller)
{
    return hf_str_of((const char *)caller->answer.body.ptr, caller->answer.body.len);
}

bool caller_may_retry(const struct caller *caller)
{
    return hf_scope_error(caller->s)->may_retry;
}

bool caller_may_have_happened(const struct caller *caller)
{
    return hf_scope_error(caller->s)->may_have_happened;
}

struct transport_stats caller_stats(const struct caller *caller)
{
    struct transport_stats stats;

    hf__transport_stats(caller->transport, &stats);
    return stats;
}
