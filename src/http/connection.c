/*
 * http/connection.c: connections by libcurl, made, kept and taken again.
 *
 * libcurl resolves names, tries addresses, speaks to proxies and does TLS; with
 * CURLOPT_CONNECT_ONLY it then hands the connection over and does nothing on it by itself. Each
 * connection has an easy handle and, as libcurl ties the two together, a multi handle of its own.
 * Driving that one ourselves, instead of curl_easy_perform(), lets a deadline or a cancellation end
 * an attempt at once.
 *
 * Those that are kept form one list, the newest first. A call takes the newest of its origin: it is
 * the least likely to have been closed meanwhile, and those which a calmer load does not need grow
 * old and go.
 *
 *     newest <-> ... <-> oldest       at most idle_max of them, none kept for longer than idle_ms
 *
 * What always holds:
 *
 *  (1) A connection is in the list, or one thread has it, never both.
 *  (2) Nothing is sent or received, and no connection made or closed, while the mutex is held.
 *  (3) A connection that has something to read before a request was sent, be it an answer that
 *      nobody asked for or its end, is not used: the bytes would be taken for the next answer.
 *  (4) libcurl reads no file and no environment variable on its own, follows nothing and prints
 *      nothing.
 *  (5) Nothing is sent or received on a connection that another process has made: after a fork()
 *      it is the parent's, and TLS would break with the first byte that the child says.
 *  (6) A call that finds no descriptor for a connection fails only when no other call has a
 *      connection; else it waits for one of those, within its patience. Each connection takes three
 *      descriptors, as libcurl gives a multi handle two of its own.
 */
#include "http/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/assert_held.h"
#include "base/cond_monotonic.h"

enum {
    CONNECT_MS = 1000,
    IDLE_MS = 20 * 1000,
    IDLE_MAX = 64,
    RECEIVE_MAX = 64 * 1024, /* bytes that libcurl hands over at once */
    /* libcurl's limit comes a little later than ours, or it would be chance whose error it is */
    LATER_MS = 50
};

/* ---- patience ------------------------------------------------------------------------------- */

int64_t hf__patience_clock_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void hf__patience_begin(struct patience *patience, struct hf_scope *s,
                        const struct transport_call *call)
{
    *patience = (struct patience){.s = s, .origin = call->origin, .timeout_ms = call->timeout_ms};
    if (call->timeout_ms)
        patience->end_us = hf__patience_clock_us() + (int64_t)call->timeout_ms * 1000;
}

enum hf_status hf__patience_check(struct patience *patience)
{
    TRY(hf__scope_alive(patience->s));
    if (patience->timeout_ms && hf__patience_clock_us() >= patience->end_us) {
        (void)hf__fail(patience->s, HF_IO, "%.*s: there was no answer within %u ms",
                       HF_FMT(patience->origin), patience->timeout_ms);
        hf__scope_error_edit(patience->s)->may_retry = true;
        return HF_IO;
    }
    return HF_OK;
}

int64_t hf__patience_left_ms(struct patience *patience, int64_t cap)
{
    int64_t left = hf__scope_left_ms(patience->s, cap);

    if (patience->timeout_ms) {
        int64_t own = (patience->end_us - hf__patience_clock_us() + 999) / 1000;

        left = own < 0 ? 0 : own < left ? own : left;
    }
    return left;
}

/* ---- after a fork() ------------------------------------------------------------------------- */

/*
 * Close our end of a connection without a word. libcurl would say goodbye, so it is given another
 * socket to do that on, which leads nowhere. Where there is none, its memory is lost.
 */
static void close_silently(struct transport *t, struct connection *c)
{
    int nowhere = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (nowhere >= 0 && dup3(nowhere, c->fd, O_CLOEXEC) >= 0) {
        hf__connection_close(t, c);
    } else {
        (void)close(c->fd);
        hf__env_free(&t->env, c, sizeof(*c) + c->origin_len + 1);
    }
    if (nowhere >= 0)
        (void)close(nowhere);
}

/* (5): in a child, let go of what the parent has kept. */
static void connections_disown(struct transport *t)
{
    struct connection *parents = NULL;
    pid_t pid = getpid();

    if (atomic_load_explicit(&t->pid, memory_order_relaxed) == pid)
        return;
    (void)pthread_mutex_lock(&t->mutex);
    if (atomic_load_explicit(&t->pid, memory_order_relaxed) != pid) {
        parents = t->newest;
        t->newest = t->oldest = NULL;
        t->idle = 0;
        atomic_store_explicit(&t->pid, pid, memory_order_relaxed);
    }
    (void)pthread_mutex_unlock(&t->mutex);
    while (parents) {
        struct connection *older = parents->older;

        close_silently(t, parents);
        parents = older;
    }
}

/* ---- opening and closing a transport -------------------------------------------------------- */

/* A copy with a NUL, in *copy; NULL when the text is absent or empty. */
static bool keep_text(const struct hf_env *env, struct hf_str text, char **copy)
{
    if (text.len == 0)
        return true;
    *copy = hf__env_alloc(env, text.len + 1);
    if (!*copy)
        return false;
    memcpy(*copy, text.ptr, text.len);
    (*copy)[text.len] = '\0';
    return true;
}

static void free_text(const struct hf_env *env, char *text)
{
    if (text)
        hf__env_free(env, text, strlen(text) + 1);
}

static bool has_nul(struct hf_str text)
{
    return text.len && memchr(text.ptr, 0, text.len);
}

enum hf_status hf__transport_open(struct hf_scope *s, const struct transport_options *options,
                                  struct transport **transport)
{
    const struct transport_options none = {0};
    struct hf_env env;
    struct transport *t;

    *transport = NULL;
    options = options ? options : &none;
    if (has_nul(options->ca_file) || has_nul(options->http_proxy) ||
        has_nul(options->https_proxy) || has_nul(options->no_proxy))
        return hf__fail(s, HF_INVALID, "a file name or proxy has a NUL in it");
    TRY(hf__curl_load(s));
    env = hf__env_fill(options->env);
    t = hf__env_alloc(&env, sizeof(*t));
    if (!t)
        return hf__fail_nomem(s);
    *t = (struct transport){
        .env = env,
        .connect_ms = options->connect_ms ? options->connect_ms : CONNECT_MS,
        .idle_ms = options->idle_ms ? options->idle_ms : IDLE_MS,
        .idle_max = options->idle_max ? options->idle_max : IDLE_MAX,
        .insecure = options->insecure,
        .may_spin = sysconf(_SC_NPROCESSORS_ONLN) > 1,
    };
    atomic_init(&t->pid, getpid());
    t->same_openssl = hf__authorities_same_openssl();
    (void)pthread_mutex_init(&t->mutex, NULL);
    (void)pthread_mutex_init(&t->store_mutex, NULL);
    (void)cond_monotonic_init(&t->released);
    if (!keep_text(&env, options->ca_file, &t->ca_file) ||
        !keep_text(&env, options->http_proxy, &t->http_proxy) ||
        !keep_text(&env, options->https_proxy, &t->https_proxy) ||
        !keep_text(&env, options->no_proxy, &t->no_proxy)) {
        hf__transport_close(t);
        return hf__fail_nomem(s);
    }
    *transport = t;
    return HF_OK;
}

void hf__transport_close(struct transport *transport)
{
    struct hf_env env;

    if (!transport)
        return;
    connections_disown(transport);
    for (struct connection *c = transport->newest; c;) {
        struct connection *older = c->older;

        hf__connection_close(transport, c);
        c = older;
    }
    (void)pthread_mutex_destroy(&transport->mutex);
    (void)pthread_mutex_destroy(&transport->store_mutex);
    (void)pthread_cond_destroy(&transport->released);
    X509_STORE_free(transport->store);
    env = transport->env;
    free_text(&env, transport->ca_file);
    free_text(&env, transport->http_proxy);
    free_text(&env, transport->https_proxy);
    free_text(&env, transport->no_proxy);
    hf__env_free(&env, transport, sizeof(*transport));
}

void hf__transport_stats(struct transport *transport, struct transport_stats *stats)
{
    (void)pthread_mutex_lock(&transport->mutex);
    stats->idle = transport->idle;
    (void)pthread_mutex_unlock(&transport->mutex);
    stats->connects = atomic_load_explicit(&transport->connects, memory_order_relaxed);
    stats->reuses = atomic_load_explicit(&transport->reuses, memory_order_relaxed);
}

/* ---- making a connection -------------------------------------------------------------------- */

/* As libcurl would, but what the program starts does not inherit it. */
static curl_socket_t open_socket(void *user, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct connection *c = user;
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);

    (void)purpose;
    c->starved = c->starved || (fd < 0 && (errno == EMFILE || errno == ENFILE));
    return fd;
}

/* libcurl, names and certificates need descriptors as well, and say in many ways that there are
 * none: look whether there are. */
static bool no_descriptor(void)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return errno == EMFILE || errno == ENFILE;
    (void)close(fd);
    return false;
}

/* What a proxy says while it refuses; without this it would be printed. */
static size_t drop_bytes(char *bytes, size_t size, size_t count, void *user)
{
    (void)bytes;
    (void)user;
    return size * count;
}

static bool is_secure(const struct connection *c)
{
    struct hf_str rest;

    return str_after(hf_str_of(c->origin, c->origin_len), HF_STR("https:"), &rest);
}

/* Set everything; the first that fails, or CURLE_OK. */
static CURLcode set_options(const struct transport *t, struct connection *c, char *error,
                            int64_t connect_ms)
{
    CURL *easy = c->easy;
    const char *origin = c->origin;
    const char *proxy = is_secure(c) ? t->https_proxy : t->http_proxy;
    CURLcode code = CURLE_OK;

#define SET(option, value)                                                                         \
    do {                                                                                           \
        if (code == CURLE_OK)                                                                      \
            code = hf__curl.easy_setopt(easy, option, value);                                      \
    } while (0)
    SET(CURLOPT_ERRORBUFFER, error);
    SET(CURLOPT_URL, origin);
    SET(CURLOPT_CONNECT_ONLY, 1L);
    SET(CURLOPT_PROTOCOLS_STR, "http,https");
    SET(CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    SET(CURLOPT_NOSIGNAL, 1L);
    /* A thread that still resolves a name is left to itself, not waited for. */
    SET(CURLOPT_QUICK_EXIT, 1L);
    SET(CURLOPT_OPENSOCKETFUNCTION, open_socket);
    SET(CURLOPT_OPENSOCKETDATA, c);
    SET(CURLOPT_WRITEFUNCTION, drop_bytes);
    SET(CURLOPT_HEADERFUNCTION, drop_bytes);
    SET(CURLOPT_BUFFERSIZE, (long)RECEIVE_MAX);
    SET(CURLOPT_TCP_NODELAY, 1L);
    SET(CURLOPT_TCP_KEEPALIVE, 1L);
    SET(CURLOPT_CONNECTTIMEOUT_MS, (long)connect_ms);
    /* Set even when there is none: otherwise libcurl would look into the environment. */
    SET(CURLOPT_PROXY, proxy ? proxy : "");
    SET(CURLOPT_NOPROXY, t->no_proxy ? t->no_proxy : "");
    SET(CURLOPT_HTTPPROXYTUNNEL, 1L);
    SET(CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    SET(CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_SSL_VERIFYPEER, t->insecure ? 0L : 1L);
    SET(CURLOPT_SSL_VERIFYHOST, t->insecure ? 0L : 2L);
    /* The same for a proxy that is spoken to in TLS. */
    SET(CURLOPT_PROXY_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    SET(CURLOPT_PROXY_SSL_VERIFYPEER, t->insecure ? 0L : 1L);
    SET(CURLOPT_PROXY_SSL_VERIFYHOST, t->insecure ? 0L : 2L);
    if (t->ca_file)
        SET(CURLOPT_PROXY_CAINFO, t->ca_file);
#undef SET
    return code;
}

/* What libcurl's refusal to connect is to a caller. */
static enum hf_status fail_connect(struct hf_scope *s, const struct transport *t,
                                   const struct connection *c, CURLcode code, const char *error)
{
    const char *text = error[0] ? error : hf__curl.easy_strerror(code);
    enum hf_status status = HF_IO;
    bool may_retry = true;
    const char *advice = "";

    if (c->starved) {
        text = "this process has no free file descriptor";
        code = CURLE_COULDNT_CONNECT;
    }
    switch (code) {
    case CURLE_OUT_OF_MEMORY:
        return hf__fail_nomem(s);
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_SSL_CACERT_BADFILE:
        status = HF_INVALID;
        may_retry = false;
        break;
    case CURLE_PEER_FAILED_VERIFICATION:
        may_retry = false;
        advice = "; certificates to trust are in a file: ca_file, or ?ca_file=FILE in a URL";
        break;
    case CURLE_OPERATION_TIMEDOUT:
        (void)hf__fail(s, HF_IO, "no connection to %s within %u ms", c->origin, t->connect_ms);
        hf__scope_error_edit(s)->may_retry = true;
        return HF_IO;
    default:
        break;
    }
    (void)hf__fail(s, status, "no connection to %s: %s%s", c->origin, text, advice);
    hf__scope_error_edit(s)->may_retry = may_retry;
    return status;
}

/* Is the attempt over? Then *code is how it ended. */
static bool is_over(CURLM *multi, CURLcode *code)
{
    CURLMsg *message;
    int left;

    while ((message = hf__curl.multi_info_read(multi, &left))) {
        if (message->msg == CURLMSG_DONE) {
            *code = message->data.result;
            return true;
        }
    }
    return false;
}

/* Drive the attempt until it is over or patience is. */
static enum hf_status attempt_drive(struct patience *patience, struct connection *c, CURLcode *code)
{
    *code =
        hf__curl.multi_add_handle(c->multi, c->easy) == CURLM_OK ? CURLE_OK : CURLE_OUT_OF_MEMORY;
    while (*code == CURLE_OK) {
        CURLMcode went;
        int running;

        went = hf__curl.multi_perform(c->multi, &running);
        if (went == CURLM_OK && is_over(c->multi, code) && *code != CURLE_OPERATION_TIMEDOUT)
            break;
        /* On a busy host libcurl's limit, set later than ours, can be over when we look at ours. */
        TRY(hf__patience_check(patience));
        if (*code != CURLE_OK)
            break;
        if (went == CURLM_OK)
            went =
                hf__curl.multi_poll(c->multi, NULL, 0,
                                    (int)hf__patience_left_ms(patience, PATIENCE_SLICE_MS), NULL);
        if (went != CURLM_OK)
            *code = went == CURLM_OUT_OF_MEMORY ? CURLE_OUT_OF_MEMORY : CURLE_FAILED_INIT;
    }
    return HF_OK;
}

static enum hf_status connect_new(struct patience *patience, struct transport *t,
                                  struct connection *c)
{
    char error[CURL_ERROR_SIZE] = "";
    CURLcode code = CURLE_OUT_OF_MEMORY;
    curl_socket_t fd = CURL_SOCKET_BAD;
    enum hf_status status = HF_OK;
    int64_t left_ms = hf__patience_left_ms(patience, t->connect_ms);
    X509_STORE *store = NULL;

    c->easy = hf__curl.easy_init();
    c->multi = hf__curl.multi_init();
    if (c->easy && c->multi)
        code = set_options(t, c, error, left_ms < t->connect_ms ? left_ms + LATER_MS : left_ms);
    if (code == CURLE_OK && is_secure(c))
        status = hf__authorities_set(patience->s, t, c->easy, &store, &code);
    if (status == HF_OK && code == CURLE_OK)
        status = attempt_drive(patience, c, &code);
    if (status == HF_OK && code == CURLE_OK)
        code = hf__curl.easy_getinfo(c->easy, CURLINFO_ACTIVESOCKET, &fd);
    if (c->easy) /* it is ours, and ends here */
        (void)hf__curl.easy_setopt(c->easy, CURLOPT_ERRORBUFFER, NULL);
    if (status == HF_OK && code == CURLE_OK && fd == CURL_SOCKET_BAD)
        code = CURLE_COULDNT_CONNECT;
    c->fd = fd;
    X509_STORE_free(store);
    c->starved = c->starved || ((status != HF_OK || code != CURLE_OK) && no_descriptor());
    return status == HF_OK && code != CURLE_OK ? fail_connect(patience->s, t, c, code, error)
                                               : status;
}

bool hf__connection_ended(const struct transport *transport, const struct connection *connection)
{
    struct curl_tlssessioninfo *tls = NULL;

    if (!is_secure(connection))
        return true;
    return transport->same_openssl &&
           hf__curl.easy_getinfo(connection->easy, CURLINFO_TLS_SSL_PTR, &tls) == CURLE_OK && tls &&
           tls->backend == CURLSSLBACKEND_OPENSSL && tls->internals &&
           (SSL_get_shutdown(tls->internals) & SSL_RECEIVED_SHUTDOWN);
}

/* A call has done with it. */
static void connection_release(struct transport *t, struct connection *c)
{
    ASSERT_HELD(&t->mutex);
    if (!c->taken)
        return;
    assert(t->taken > 0);
    c->taken = false;
    t->taken--;
    t->releases++;
    (void)pthread_cond_signal(&t->released);
}

void hf__connection_close(struct transport *transport, struct connection *connection)
{
    bool taken = connection->taken;

    if (connection->multi && connection->easy)
        (void)hf__curl.multi_remove_handle(connection->multi, connection->easy);
    hf__curl.easy_cleanup(connection->easy);
    (void)hf__curl.multi_cleanup(connection->multi);
    if (taken) { /* and now there are descriptors again */
        (void)pthread_mutex_lock(&transport->mutex);
        connection_release(transport, connection);
        (void)pthread_mutex_unlock(&transport->mutex);
    }
    hf__env_free(&transport->env, connection, sizeof(*connection) + connection->origin_len + 1);
}

/* ---- those that are kept -------------------------------------------------------------------- */

static void unlink_kept(struct transport *t, struct connection *c)
{
    ASSERT_HELD(&t->mutex);
    assert(t->idle > 0 && t->newest && t->oldest);
    *(c->newer ? &c->newer->older : &t->newest) = c->older;
    *(c->older ? &c->older->newer : &t->oldest) = c->newer;
    c->newer = c->older = NULL;
    t->idle--;
}

/* As many are in the list as `idle` says, linked both ways. */
static void kept_check(struct transport *t)
{
    const struct connection *newer = NULL;
    size_t count = 0;

    ASSERT_HELD(&t->mutex);
    for (const struct connection *c = t->newest; c; newer = c, c = c->older, count++)
        assert(c->newer == newer && !c->taken);
    assert(t->oldest == newer && t->idle == count);
}

static bool is_old(const struct transport *t, const struct connection *c, int64_t now_us)
{
    return now_us - c->since_us > (int64_t)t->idle_ms * 1000;
}

static void mark_taken(struct transport *t, struct connection *c)
{
    ASSERT_HELD(&t->mutex);
    assert(!c->taken);
    c->taken = true;
    t->taken++;
}

/* The newest to that origin, or NULL; and how many were given back until then. */
static struct connection *take_kept(struct transport *t, struct hf_str origin, uint64_t *releases)
{
    struct connection *c;

    (void)pthread_mutex_lock(&t->mutex);
    *releases = t->releases;
    for (c = t->newest; c; c = c->older) {
        if (c->origin_len == origin.len && memcmp(c->origin, origin.ptr, origin.len) == 0)
            break;
    }
    if (c) {
        unlink_kept(t, c);
        mark_taken(t, c);
    }
    if (DEV_CHECKS)
        kept_check(t);
    (void)pthread_mutex_unlock(&t->mutex);
    return c;
}

/*
 * (3) Reading tells more than poll() would: TLS may have a message of its own to read, which is no
 * harm, or bytes of which the socket knows no more.
 */
static bool is_silent(struct connection *c)
{
    uint8_t byte;
    size_t got;

    return hf__curl.easy_recv(c->easy, &byte, 1, &got) == CURLE_AGAIN;
}

/* One that was kept and is still alive, or NULL. */
static struct connection *connection_reuse(struct transport *t, struct hf_str origin,
                                           uint64_t *releases)
{
    struct connection *c;

    while ((c = take_kept(t, origin, releases))) {
        if (!is_old(t, c, hf__env_elapsed_us(&t->env)) && is_silent(c)) {
            atomic_fetch_add_explicit(&t->reuses, 1, memory_order_relaxed);
            return c;
        }
        hf__connection_close(t, c);
    }
    return NULL;
}

static enum hf_status connection_make(struct patience *patience, struct transport *t,
                                      struct hf_str origin, struct connection **made, bool *starved)
{
    struct connection *c = hf__env_alloc(&t->env, sizeof(*c) + origin.len + 1);
    enum hf_status status;

    if (!c)
        return hf__fail_nomem(patience->s);
    *c = (struct connection){.fd = -1, .fresh = true, .origin_len = origin.len};
    memcpy(c->origin, origin.ptr, origin.len);
    c->origin[origin.len] = '\0';
    status = connect_new(patience, t, c);
    *starved = c->starved;
    if (status != HF_OK) {
        hf__connection_close(t, c);
        return status;
    }
    atomic_fetch_add_explicit(&t->connects, 1, memory_order_relaxed);
    (void)pthread_mutex_lock(&t->mutex);
    mark_taken(t, c);
    (void)pthread_mutex_unlock(&t->mutex);
    *made = c;
    return HF_OK;
}

/* Wait a little for a call to give a connection back: *given, since there were so many. False: no
 * call has one. */
static bool wait_for_release(struct patience *patience, struct transport *t, uint64_t since,
                             bool *given)
{
    int64_t ms = hf__patience_left_ms(patience, PATIENCE_SLICE_MS);
    bool there;

    (void)pthread_mutex_lock(&t->mutex);
    if (t->releases == since && t->taken > 0)
        (void)cond_wait_ms(&t->released, &t->mutex, ms);
    *given = t->releases != since;
    there = *given || t->taken > 0;
    (void)pthread_mutex_unlock(&t->mutex);
    return there;
}

enum hf_status hf__connection_take(struct patience *patience, struct transport *transport,
                                   struct hf_str origin, struct connection **connection)
{
    connections_disown(transport);
    for (;;) {
        bool starved = false, given = false;
        enum hf_status status;
        uint64_t since;

        *connection = connection_reuse(transport, origin, &since);
        if (*connection)
            return HF_OK;
        status = connection_make(patience, transport, origin, connection, &starved);
        if (status != HF_IO || !starved)
            return status;
        while (!given) { /* (6) */
            if (!wait_for_release(patience, transport, since, &given))
                return status;
            TRY(hf__patience_check(patience));
        }
        hf__scope_error_clear(patience->s);
    }
}

void hf__connection_keep(struct transport *transport, struct connection *connection)
{
    struct connection *gone = NULL, *oldest;
    int64_t now_us = hf__env_elapsed_us(&transport->env);

    connection->fresh = false;
    connection->since_us = now_us;
    (void)pthread_mutex_lock(&transport->mutex);
    connection_release(transport, connection);
    connection->newer = NULL;
    connection->older = transport->newest;
    *(transport->newest ? &transport->newest->newer : &transport->oldest) = connection;
    transport->newest = connection;
    transport->idle++;
    while ((oldest = transport->oldest) &&
           (transport->idle > transport->idle_max || is_old(transport, oldest, now_us))) {
        unlink_kept(transport, oldest);
        oldest->older = gone;
        gone = oldest;
    }
    if (DEV_CHECKS)
        kept_check(transport);
    (void)pthread_mutex_unlock(&transport->mutex);
    while (gone) {
        struct connection *next = gone->older;

        hf__connection_close(transport, gone);
        gone = next;
    }
}
