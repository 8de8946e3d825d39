/*
 * server/conn/tls.c: TLS 1.2 and 1.3 on memory.
 *
 * Each connection has an SSL object between two memory BIOs. What comes from the socket goes into
 * one; what is to be sent comes out of the other. Handshakes and the tickets behind them need no
 * care of their own: whenever something was fed, the connection is made ready to send, and sealing
 * takes along whatever there is.
 *
 * The context with the certificates is replaced as a whole by a reload. An SSL object keeps the
 * one that it was made with.
 */
#include "server/conn/tls.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>

#include "server/private.h"

struct tls_context {
    struct hf_env env;
    struct hf_scope *memory;
    struct hf_str certificate;
    struct hf_str private_key;
    pthread_mutex_t lock; /* guards `ssl` */
    SSL_CTX *ssl;
};

struct tls {
    struct hf_env env;
    SSL *ssl;
    BIO *from_socket; /* owned by ssl, as is the next */
    BIO *to_socket;
    uint8_t *plain; /* what SSL_read() gives */
};

enum { PLAIN_SIZE = 16 * 1024 }; /* one record */

/*
 * Of TLS 1.2 only key exchanges with forward secrecy, so that a stolen key does not decrypt
 * recorded traffic, and authenticated ciphers. All of TLS 1.3 is like that.
 */
#define TLS_1_2_CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

/* ---- certificates --------------------------------------------------------------------------- */

/* OpenSSL's oldest error says what happened; newer ones say through which of its parts that went.
 * `no_pem` stands for all errors about a file that has nothing of the kind in it. */
static const char *error_reason(const char *no_pem)
{
    unsigned long code = ERR_get_error();
    const char *text = NULL;

    if (ERR_GET_LIB(code) == ERR_LIB_OSSL_DECODER ||
        (ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE))
        text = no_pem;
    else if (ERR_SYSTEM_ERROR(code))
        text = strerror(ERR_GET_REASON(code));
    else if (code)
        text = ERR_reason_error_string(code);
    ERR_clear_error();
    return text ? text : "unknown error";
}

/* Never ask for a password: nobody may be at the terminal of a server. */
static int refuse_password(char *to, int room, int writing, void *user)
{
    bool *asked = user;

    (void)to;
    (void)room;
    (void)writing;
    *asked = true;
    return -1;
}

static int choose_http(SSL *ssl, const unsigned char **out, unsigned char *out_len,
                       const unsigned char *in, unsigned in_len, void *user)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl;
    (void)user;
    if (SSL_select_next_proto(&chosen, out_len, ours, sizeof(ours) - 1, in, in_len) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static enum hf_status load_certificates(struct hf_scope *s, const struct tls_context *context,
                                        SSL_CTX **made)
{
    SSL_CTX *ssl = SSL_CTX_new(TLS_server_method());
    enum hf_status status = HF_OK;
    bool encrypted = false;

    *made = NULL;
    if (!ssl)
        return hf__fail_nomem(s);
    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb(ssl, refuse_password);
    SSL_CTX_set_default_passwd_cb_userdata(ssl, &encrypted);
    SSL_CTX_set_min_proto_version(ssl, TLS1_2_VERSION);
    SSL_CTX_set_options(ssl, SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                 SSL_OP_NO_COMPRESSION);
    if (SSL_CTX_set_cipher_list(ssl, TLS_1_2_CIPHERS) != 1) {
        SSL_CTX_free(ssl);
        return hf__fail(s, HF_UNSUPPORTED, "OpenSSL has none of the ciphers " TLS_1_2_CIPHERS);
    }
    SSL_CTX_set_mode(ssl, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(ssl, SSL_SESS_CACHE_OFF); /* tickets do, and take no memory */
    SSL_CTX_set_alpn_select_cb(ssl, choose_http, NULL);
    if (SSL_CTX_use_certificate_chain_file(ssl, context->certificate.ptr) != 1)
        status =
            hf__fail(s, HF_INVALID, "the certificate %.*s cannot be used: %s",
                     HF_FMT(context->certificate), error_reason("it contains no PEM certificate"));
    else if (SSL_CTX_use_PrivateKey_file(ssl, context->private_key.ptr, SSL_FILETYPE_PEM) != 1)
        status = hf__fail(s, HF_INVALID, "the private key %.*s cannot be used: %s",
                          HF_FMT(context->private_key),
                          encrypted ? "it is encrypted with a password"
                                    : error_reason("it contains no PEM private key"));
    else if (SSL_CTX_check_private_key(ssl) != 1)
        status =
            hf__fail(s, HF_INVALID, "the private key %.*s does not belong to the certificate %.*s",
                     HF_FMT(context->private_key), HF_FMT(context->certificate));
    if (status != HF_OK) {
        SSL_CTX_free(ssl);
        ERR_clear_error();
        return status;
    }
    SSL_CTX_set_default_passwd_cb_userdata(ssl, NULL);
    *made = ssl;
    return HF_OK;
}

enum hf_status hf__tls_open(struct hf_scope *s, const struct hf_env *env, struct hf_str certificate,
                            struct hf_str private_key, struct tls_context **context)
{
    struct tls_context *c = hf__env_alloc(env, sizeof(*c));
    enum hf_status status;

    *context = NULL;
    if (!c)
        return hf__fail_nomem(s);
    *c = (struct tls_context){.env = *env, .memory = hf_scope_new(env)};
    pthread_mutex_init(&c->lock, NULL);
    if (c->memory) {
        c->certificate = hf_scope_copy(c->memory, certificate);
        c->private_key = hf_scope_copy(c->memory, private_key);
    }
    status = c->certificate.ptr && c->private_key.ptr ? load_certificates(s, c, &c->ssl)
                                                      : hf__fail_nomem(s);
    if (status != HF_OK) {
        hf__tls_close(c);
        return status;
    }
    *context = c;
    return HF_OK;
}

enum hf_status hf__tls_reload(struct hf_scope *s, struct tls_context *context)
{
    SSL_CTX *made, *old;

    TRY(load_certificates(s, context, &made));
    pthread_mutex_lock(&context->lock);
    old = context->ssl;
    context->ssl = made;
    pthread_mutex_unlock(&context->lock);
    SSL_CTX_free(old);
    return HF_OK;
}

void hf__tls_close(struct tls_context *context)
{
    struct hf_env env;

    if (!context)
        return;
    env = context->env;
    SSL_CTX_free(context->ssl);
    hf_scope_free(context->memory);
    pthread_mutex_destroy(&context->lock);
    hf__env_free(&env, context, sizeof(*context));
}

/* ---- connections ---------------------------------------------------------------------------- */

static SSL *new_ssl(struct tls_context *context)
{
    SSL *ssl;

    pthread_mutex_lock(&context->lock);
    ssl = SSL_new(context->ssl);
    pthread_mutex_unlock(&context->lock);
    return ssl;
}

bool hf__tls_new(struct conn *conn)
{
    const struct hf_env *env = &conn->loop->server->env;
    struct tls *tls = hf__env_alloc(env, sizeof(*tls));

    if (!tls)
        return false;
    *tls = (struct tls){.env = *env,
                        .ssl = new_ssl(conn->loop->server->tls),
                        .from_socket = BIO_new(BIO_s_mem()),
                        .to_socket = BIO_new(BIO_s_mem()),
                        .plain = hf__env_alloc(env, PLAIN_SIZE)};
    if (!tls->ssl || !tls->from_socket || !tls->to_socket || !tls->plain) {
        BIO_free(tls->from_socket);
        BIO_free(tls->to_socket);
        tls->from_socket = NULL;
        tls->to_socket = NULL;
        hf__tls_free(tls);
        return false;
    }
    BIO_set_mem_eof_return(tls->from_socket, -1); /* empty means: later, not: the end */
    BIO_set_mem_eof_return(tls->to_socket, -1);
    SSL_set_bio(tls->ssl, tls->from_socket, tls->to_socket);
    SSL_set_accept_state(tls->ssl);
    conn->tls = tls;
    return true;
}

void hf__tls_free(struct tls *tls)
{
    struct hf_env env;

    if (!tls)
        return;
    env = tls->env;
    SSL_free(tls->ssl);
    hf__env_free(&env, tls->plain, PLAIN_SIZE);
    hf__env_free(&env, tls, sizeof(*tls));
}

bool hf__tls_established(const struct tls *tls)
{
    return SSL_is_init_finished(tls->ssl);
}

static bool consume_plain(struct conn *conn, uint8_t *plain, size_t len)
{
    if (conn->in.len == 0) {
        hf__conn_consume(conn, plain, len);
        return true;
    }
    hf__buf_put(&conn->in, plain, len);
    if (conn->in.failed)
        return false;
    hf__conn_consume(conn, conn->in.ptr, conn->in.len);
    return true;
}

bool hf__tls_feed(struct conn *conn, uint8_t *bytes, size_t len)
{
    struct tls *tls = conn->tls;
    int got;

    assert(tls && len > 0 && len <= INPUT_SIZE);
    ERR_clear_error(); /* what others left would be taken for ours by SSL_get_error() */
    if (BIO_write(tls->from_socket, bytes, (int)len) != (int)len)
        return false;
    while ((got = SSL_read(tls->ssl, tls->plain, PLAIN_SIZE)) > 0) {
        if (!consume_plain(conn, tls->plain, (size_t)got))
            return false;
    }
    if (BIO_pending(tls->to_socket) > 0)
        hf__conn_ready(conn);
    switch (SSL_get_error(tls->ssl, got)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return true;
    case SSL_ERROR_ZERO_RETURN: /* the other side says that it sends no more */
        conn->ended = true;
        hf__conn_pause(conn);
        if (!conn_is_busy(conn))
            hf__conn_close(conn);
        return true;
    default: /* an alert that says why may be on its way */
        ERR_clear_error();
        if (conn->state == CONN_WORKING) { /* which has the connection: it ends after that answer */
            conn->ended = true;
            return true;
        }
        conn->close_after = true;
        return conn->state == CONN_READY || conn->state == CONN_SYNCING;
    }
}

/* What TLS has ready for the socket, behind what is in `to`. */
static bool take_sealed(struct tls *tls, struct hf__buf *to)
{
    int len = (int)BIO_pending(tls->to_socket);

    assert(to->len <= to->cap);
    if (len <= 0)
        return true;
    if (!hf__buf_reserve(to, (size_t)len) ||
        BIO_read(tls->to_socket, to->ptr + to->len, len) != len)
        return false;
    to->len += (size_t)len;
    return true;
}

/* A BIO keeps all the memory that it ever had, so no more than a record at a time is in it. */
static bool seal_records(struct tls *tls, const uint8_t *plain, size_t len, struct hf__buf *to)
{
    for (size_t at = 0; at < len; at += PLAIN_SIZE) {
        size_t some = len - at < PLAIN_SIZE ? len - at : PLAIN_SIZE;

        if (SSL_write(tls->ssl, plain + at, (int)some) != (int)some || !take_sealed(tls, to))
            return false;
    }
    return true;
}

bool hf__tls_seal(struct tls *tls, struct hf__buf *out, size_t *begin, bool last)
{
    struct hf__buf sealed = {.env = out->env};
    size_t len = out->len - *begin;
    bool done;

    assert(*begin <= out->len);
    if (len > PLAIN_SIZE) {
        done = seal_records(tls, out->ptr + *begin, len, &sealed);
        hf__buf_free(out);
        *out = sealed;
    } else { /* most answers: their own buffer serves again */
        done = len == 0 || SSL_write(tls->ssl, out->ptr + *begin, (int)len) == (int)len;
        out->len = 0;
    }
    *begin = 0;
    if (done && last && SSL_shutdown(tls->ssl) < 0)
        ERR_clear_error(); /* before a handshake there is nothing to end */
    if (!done)
        ERR_clear_error();
    return done && take_sealed(tls, out);
}
