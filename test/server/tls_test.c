/*
 * server/tls_test.c: the same server behind TLS, with certificates made here.
 */
#include "gate.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/assert_held.h"
#include "http/sign.h"
#include "server/conn/tls.h"

struct files {
    char certificate[160];
    char key[160];
};

/* A certificate that this key signed itself, for that name. The key is freed. */
static void make_certificate_of(const struct files *files, const char *name, EVP_PKEY *key)
{
    X509 *x = X509_new();
    FILE *file;

    CHECK(key && x);
    ASN1_INTEGER_set(X509_get_serialNumber(x), 1);
    X509_set_version(x, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    CHECK_INT(1, X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                            (const unsigned char *)name, -1, -1, 0));
    X509_set_issuer_name(x, X509_get_subject_name(x));
    X509_set_pubkey(x, key);
    CHECK(X509_sign(x, key, EVP_sha256()) > 0);
    file = fopen(files->certificate, "we");
    CHECK(file && PEM_write_X509(file, x) == 1 && fclose(file) == 0);
    file = fopen(files->key, "we");
    CHECK(file && PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL) == 1 &&
          fclose(file) == 0);
    X509_free(x);
    EVP_PKEY_free(key);
}

static void make_certificate(const struct files *files, const char *name)
{
    make_certificate_of(files, name, EVP_EC_gen("P-256"));
}

static void name_files(struct test *t, struct files *files)
{
    const char *directory = test_directory(t);

    snprintf(files->certificate, sizeof(files->certificate), "%s/cert.pem", directory);
    snprintf(files->key, sizeof(files->key), "%s/key.pem", directory);
}

static void open_tls(struct test *t, struct site *site, struct files *files,
                     struct server_options options)
{
    name_files(t, files);
    make_certificate(files, "first");
    options.certificate = hf_str_from(files->certificate);
    options.private_key = hf_str_from(files->key);
    site_open(t, site, &options);
}

/* ---- a client ------------------------------------------------------------------------------- */

struct secure {
    SSL_CTX *context;
    SSL *ssl;
    int fd;
    char *in;
    size_t len;
    size_t cap;
};

/* Connect with versions from `least` to `most`, and of TLS 1.2 with these ciphers; NULL: OpenSSL's
 * own. Did the handshake succeed? */
static bool secure_open_with(const struct site *site, struct secure *c, int least, int most,
                             const char *ciphers)
{
    struct timeval wait = {.tv_sec = DEADLINE_MS / 1000};
    struct line line;

    *c = (struct secure){.context = SSL_CTX_new(TLS_client_method())};
    CHECK(c->context != NULL);
    SSL_CTX_set_security_level(c->context, 0); /* or the client itself would refuse TLS 1.1 */
    CHECK_INT(1, SSL_CTX_set_min_proto_version(c->context, least));
    CHECK_INT(1, SSL_CTX_set_max_proto_version(c->context, most));
    if (ciphers)
        CHECK_INT(1, SSL_CTX_set_cipher_list(c->context, ciphers));
    SSL_CTX_set_verify(c->context, SSL_VERIFY_NONE, NULL);
    c->ssl = SSL_new(c->context);
    line_open(site, &line);
    c->fd = dup(line.fd);
    line_close(&line);
    CHECK_INT(0, fcntl(c->fd, F_SETFL, 0));
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    SSL_set_fd(c->ssl, c->fd);
    return SSL_connect(c->ssl) == 1;
}

static bool secure_open(const struct site *site, struct secure *c, int least, int most)
{
    return secure_open_with(site, c, least, most, NULL);
}

static void secure_close(struct secure *c)
{
    SSL_free(c->ssl);
    SSL_CTX_free(c->context);
    close(c->fd);
    free(c->in);
    ERR_clear_error();
}

static void secure_send(struct secure *c, struct hf_str text)
{
    CHECK_INT(text.len, SSL_write(c->ssl, text.ptr, (int)text.len));
}

/* Read until there are `len` bytes; false when the end came before. */
static bool secure_fill(struct secure *c, size_t len)
{
    while (c->len < len) {
        int got;

        if (c->cap < c->len + 65536) {
            c->cap = 2 * c->cap + 65536;
            c->in = realloc(c->in, c->cap);
        }
        got = SSL_read(c->ssl, c->in + c->len, (int)(c->cap - c->len - 1));
        if (got <= 0)
            return false;
        c->len += (size_t)got;
    }
    return true;
}

/* The next answer: its status; the body is at *body and is forgotten with the next call. */
static int secure_read(struct secure *c, struct hf_str *body, size_t *used)
{
    const char *end = NULL, *length;
    size_t head;

    if (*used)
        memmove(c->in, c->in + *used, c->len -= *used);
    while (!c->len || !(end = memmem(c->in, c->len, "\r\n\r\n", 4)))
        CHECK(secure_fill(c, c->len + 1));
    head = (size_t)(end - c->in) + 4;
    length = memmem(c->in, head, "Content-Length: ", 16);
    CHECK(length != NULL);
    body->len = strtoul(length + 16, NULL, 10);
    CHECK(secure_fill(c, head + body->len));
    body->ptr = c->in + head;
    *used = head + body->len;
    return (int)strtol(c->in + 9, NULL, 10);
}

/* Does the connection end, and with TLS' own word for it? */
static bool secure_ends(struct secure *c)
{
    char byte;
    int got = SSL_read(c->ssl, &byte, 1);

    return got <= 0 && SSL_get_error(c->ssl, got) == SSL_ERROR_ZERO_RETURN;
}

/* Bytes that malloc() gave out, OpenSSL's too; 0 under a sanitizer, which does not count. */
static size_t allocated(void)
{
    struct mallinfo2 info = mallinfo2();

    return info.uordblks + info.hblkhd;
}

/* ---- talking -------------------------------------------------------------------------------- */

TEST(tls, versions_1_2_and_1_3_are_spoken)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    struct files files;
    struct site site;

    open_tls(t, &site, &files, (struct server_options){.loops = 2});
    site_put(&site, "big", 390000);
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct hf_str body = {0}, small, large;
        struct secure c;
        size_t used = 0;

        CHECK(secure_open(&site, &c, versions[i], versions[i]));
        CHECK_INT(versions[i], SSL_version(c.ssl));
        small = call_text(site.s, "ListTables", "{}");
        large = call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
        for (int j = 0; j < 5; j++) {
            secure_send(&c, small);
            CHECK_INT(200, secure_read(&c, &body, &used));
            CHECK_STR("{\"TableNames\":[\"tab\"]}", body);
        }
        secure_send(&c, large);
        CHECK_INT(200, secure_read(&c, &body, &used));
        CHECK(body.len > 390000);
        for (size_t j = 0; j < small.len; j++) /* a record for every byte */
            secure_send(&c, hf_str_of(small.ptr + j, 1));
        CHECK_INT(200, secure_read(&c, &body, &used));
        for (int j = 0; j < 100; j++) /* ahead of the answers */
            secure_send(&c, j % 10 ? small : large);
        for (int j = 0; j < 100; j++) {
            CHECK_INT(200, secure_read(&c, &body, &used));
            CHECK(j % 10 ? body.len == 22 : body.len > 390000);
        }
        secure_close(&c);
    }
    site_close(&site);
}

/* A large request comes in many records. */
TEST(tls, large_requests_are_read)
{
    struct hf_str body = {0}, text;
    struct files files;
    struct secure c;
    struct site site;
    size_t used = 0;
    char *blanks;

    open_tls(t, &site, &files, (struct server_options){0});
    blanks = hf_scope_alloc(site.s, 4 * 1024 * 1024);
    memset(blanks, ' ', 4 * 1024 * 1024);
    memcpy(blanks, "{}", 2);
    text = post_text(site.s, "Host: localhost\r\n" JSON_1_0 TARGET("ListTables") SIGNED,
                     hf_str_of(blanks, 4 * 1024 * 1024));
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    for (int i = 0; i < 2; i++) {
        secure_send(&c, text);
        CHECK_INT(200, secure_read(&c, &body, &used));
        CHECK_STR("{\"TableNames\":[\"tab\"]}", body);
    }
    secure_close(&c);
    site_close(&site);
}

/* What a large answer needed is given back when it is sent, while its connection lives on. */
TEST(tls, large_answers_leave_no_memory_behind)
{
    enum { CONNECTIONS = 20 };
    struct secure c[CONNECTIONS];
    struct hf_str body = {0}, large;
    struct files files;
    struct site site;
    size_t before, after;

    open_tls(t, &site, &files, (struct server_options){.loops = 1});
    site_put(&site, "big", 390000);
    large = call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    for (int i = 0; i < CONNECTIONS; i++)
        CHECK(secure_open(&site, &c[i], TLS1_3_VERSION, TLS1_3_VERSION));
    before = allocated();
    for (int i = 0; i < CONNECTIONS; i++) {
        size_t used = 0;

        secure_send(&c[i], large);
        CHECK_INT(200, secure_read(&c[i], &body, &used));
        CHECK(body.len > 390000);
        free(c[i].in);
        c[i].in = NULL;
        c[i].len = c[i].cap = 0;
    }
    after = allocated();
    CHECK(after < before + CONNECTIONS * 100000);
    for (int i = 0; i < CONNECTIONS; i++)
        secure_close(&c[i]);
    site_close(&site);
}

/* The end of a connection is said in TLS, so that nobody can cut an answer short unseen. */
TEST(tls, the_end_is_said)
{
    struct hf_str body;
    struct files files;
    struct secure c;
    struct site site;
    size_t used = 0;

    open_tls(t, &site, &files, (struct server_options){0});
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    secure_send(&c, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
    CHECK_INT(200, secure_read(&c, &body, &used));
    CHECK(secure_ends(&c));
    secure_close(&c);
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    secure_send(&c, HF_STR("x\r\n\r\n"));
    used = 0;
    CHECK_INT(400, secure_read(&c, &body, &used));
    CHECK(secure_ends(&c));
    secure_close(&c);
    site_close(&site);
}

/* Who says that it sends no more is answered all the same, to the last request. */
TEST(tls, half_closed_clients_are_answered)
{
    struct hf_str body = {0}, large;
    int fd = listen_small(4096);
    struct files files;
    struct secure c;
    struct site site;
    size_t used = 0;

    open_tls(t, &site, &files, (struct server_options){.sockets = &fd, .sockets_len = 1});
    site_put(&site, "big", 390000);
    large = call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    for (int i = 0; i < 12; i++)
        secure_send(&c, large);
    SSL_shutdown(c.ssl);
    for (int i = 0; i < 12; i++) {
        CHECK_INT(200, secure_read(&c, &body, &used));
        CHECK(body.len > 390000);
    }
    secure_close(&c);
    site_close(&site);
    close(fd);
}

TEST(tls, older_versions_are_refused)
{
    struct files files;
    struct secure c;
    struct site site;

    open_tls(t, &site, &files, (struct server_options){0});
    CHECK(!secure_open(&site, &c, TLS1_1_VERSION, TLS1_1_VERSION));
    CHECK_INT(SSL_R_TLSV1_ALERT_PROTOCOL_VERSION, ERR_GET_REASON(ERR_peek_last_error()));
    secure_close(&c);
    CHECK(!secure_open(&site, &c, TLS1_VERSION, TLS1_VERSION));
    secure_close(&c);
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_2_VERSION));
    secure_close(&c);
    site_close(&site);
}

/* In TLS 1.2: what is recorded today cannot be read with a key that is stolen tomorrow, and nothing
 * has padding to guess at; whatever kind of key the certificate has. */
TEST(tls, ciphers_are_forward_secret_and_authenticated)
{
    static const struct {
        const char *name;
        bool good;
    } ciphers[] = {
        {"ECDHE-ECDSA-AES128-GCM-SHA256", true},
        {"ECDHE-ECDSA-AES256-GCM-SHA384", true},
        {"ECDHE-ECDSA-CHACHA20-POLY1305", true},
        {"ECDHE-RSA-AES128-GCM-SHA256", true},
        {"ECDHE-RSA-AES256-GCM-SHA384", true},
        {"ECDHE-RSA-CHACHA20-POLY1305", true},
        {"ECDHE-ECDSA-AES128-SHA", false},
        {"ECDHE-ECDSA-AES128-SHA256", false},
        {"ECDHE-RSA-AES128-SHA", false},
        {"ECDHE-RSA-AES256-SHA384", false},
        {"AES128-SHA", false},
        {"AES256-SHA256", false},
        {"AES128-GCM-SHA256", false},
        {"AES256-GCM-SHA384", false},
        {"DHE-RSA-AES128-SHA", false},
        {"ECDHE-ECDSA-AES256-CCM8", false},
    };

    for (int rsa = 0; rsa < 2; rsa++) {
        struct server_options options = {0};
        struct files files;
        struct site site;
        size_t good = 0;

        name_files(t, &files);
        make_certificate_of(&files, "name", rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256"));
        options.certificate = hf_str_from(files.certificate);
        options.private_key = hf_str_from(files.key);
        site_open(t, &site, &options);
        for (size_t i = 0; i < ARRAY_LEN(ciphers); i++) {
            struct secure c;
            bool opened =
                secure_open_with(&site, &c, TLS1_2_VERSION, TLS1_2_VERSION, ciphers[i].name);

            if (opened && !ciphers[i].good)
                fail_msg("%s was taken", ciphers[i].name);
            good += opened;
            secure_close(&c);
        }
        CHECK_INT(3, good); /* those that suit the key */
        site_close(&site);
    }
}

/* Another protocol than HTTP/1.1 is refused when it is the only one that a client knows. */
TEST(tls, http_1_1_is_the_protocol)
{
    static const unsigned char both[] = "\x02h2\x08http/1.1", other[] = "\x02h2";
    struct files files;
    struct site site;

    open_tls(t, &site, &files, (struct server_options){0});
    for (int i = 0; i < 2; i++) {
        SSL_CTX *context = SSL_CTX_new(TLS_client_method());
        const unsigned char *chosen = NULL;
        struct line line;
        unsigned len = 0;
        SSL *ssl;

        CHECK_INT(0, SSL_CTX_set_alpn_protos(context, i ? other : both,
                                             i ? sizeof(other) - 1 : sizeof(both) - 1));
        ssl = SSL_new(context);
        line_open(&site, &line);
        CHECK_INT(0, fcntl(line.fd, F_SETFL, 0));
        SSL_set_fd(ssl, line.fd);
        CHECK_INT(i == 0, SSL_connect(ssl) == 1);
        SSL_get0_alpn_selected(ssl, &chosen, &len);
        if (i == 0)
            CHECK_STR("http/1.1", hf_str_of((const char *)chosen, len));
        SSL_free(ssl);
        SSL_CTX_free(context);
        line_close(&line);
        ERR_clear_error();
    }
    site_close(&site);
}

/* Plain HTTP, noise, half a handshake: the connection ends, others go on. */
TEST(tls, who_does_not_speak_it_is_let_go)
{
    static const char *const noises[] = {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                         "\x16\x03\x01\x00\x05hello", "\x16\x03\x01\xFF\xFF",
                                         "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
    struct hf_str body;
    struct files files;
    struct secure c;
    struct site site;
    size_t used = 0;

    open_tls(t, &site, &files, (struct server_options){.idle_ms = 1500, .head_ms = 1500});
    for (size_t i = 0; i < ARRAY_LEN(noises); i++) {
        struct hf_str rest;
        struct line line;

        line_open(&site, &line);
        line_text(&line, noises[i]);
        rest = line_rest(&line, DEADLINE_MS);
        CHECK(line.ended);
        CHECK(!contains(rest, "HTTP/1.1"));
        line_close(&line);
    }
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    secure_send(&c, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK_INT(200, secure_read(&c, &body, &used));
    secure_close(&c);
    site_close(&site);
}

/* A handshake has the time of a head; only then may a connection be idle. */
TEST(tls, handshakes_have_a_time_limit)
{
    struct hf_str body;
    struct files files;
    struct secure c;
    struct line silent, slow;
    struct site site;
    size_t used = 0;

    open_tls(t, &site, &files, (struct server_options){.idle_ms = 60000, .head_ms = 1500});
    line_open(&site, &silent);
    line_open(&site, &slow);
    line_send(&slow, "\x16\x03\x01\x02\x00\x01\x00", 7);
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    CHECK(line_ends(&silent, DEADLINE_MS));
    CHECK(line_ends(&slow, DEADLINE_MS));
    line_close(&silent);
    line_close(&slow);
    secure_send(&c, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK_INT(200, secure_read(&c, &body, &used));
    sleep_ms(2000);
    secure_send(&c, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK_INT(200, secure_read(&c, &body, &used));
    secure_close(&c);
    site_close(&site);
}

/* What a handshake sends leaves as answers do, and then the connection goes on with it. */
TEST(tls, a_handshake_is_a_state)
{
    const uint32_t *moves;
    struct hf_str body;
    struct files files;
    struct secure c;
    struct site site;
    size_t used = 0;

    open_tls(t, &site, &files, (struct server_options){.loops = 1});
    CHECK(secure_open(&site, &c, TLS1_2_VERSION, TLS1_2_VERSION));
    secure_send(&c, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK_INT(200, secure_read(&c, &body, &used));
    secure_close(&c);
    hf__server_stop(site.server);
    site_join(&site);
    moves = site.server->loops[0].moves;
    if (DEV_CHECKS) {
        CHECK_INT(1U << CONN_HANDSHAKE, moves[CONN_NEW]);
        CHECK(moves[CONN_HANDSHAKE] >> CONN_READY & 1);
        CHECK(moves[CONN_READY] >> CONN_HANDSHAKE & 1);
        CHECK(moves[CONN_READY] >> CONN_IDLE & 1);
    }
    site_close(&site);
}

/* ---- certificates --------------------------------------------------------------------------- */

static void check_name(const struct site *site, const char *expected)
{
    struct secure c;
    char name[64] = "";
    X509 *x;

    CHECK(secure_open(site, &c, TLS1_2_VERSION, TLS1_3_VERSION));
    x = SSL_get1_peer_certificate(c.ssl);
    CHECK(x != NULL);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, name, sizeof(name));
    CHECK_STR(expected, hf_str_from(name));
    X509_free(x);
    secure_close(&c);
}

/* New connections get the new certificate; old ones go on; a bad one changes nothing. */
TEST(tls, certificates_can_be_read_again)
{
    struct hf_str body;
    struct files files;
    struct secure old;
    struct site site;
    size_t used = 0;
    FILE *file;

    open_tls(t, &site, &files, (struct server_options){0});
    CHECK(secure_open(&site, &old, TLS1_2_VERSION, TLS1_3_VERSION));
    check_name(&site, "first");
    make_certificate(&files, "second");
    check_name(&site, "first");
    CHECK_OK(hf__tls_reload(site.s, site.server->tls));
    check_name(&site, "second");
    secure_send(&old, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
    CHECK_INT(200, secure_read(&old, &body, &used));
    file = fopen(files.certificate, "we");
    CHECK(file && fputs("nonsense\n", file) > 0 && fclose(file) == 0);
    CHECK_STATUS(HF_INVALID, hf__tls_reload(site.s, site.server->tls));
    CHECK(contains(hf_str_from(hf_scope_error_text(site.s)), files.certificate));
    check_name(&site, "second");
    secure_close(&old);
    site_close(&site);
}

TEST(tls, bad_files_are_named)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct files first, second;
    struct tls_context *context;

    name_files(t, &first);
    name_files(t, &second);
    make_certificate(&first, "first");
    make_certificate(&second, "second");
    CHECK_OK(hf__tls_open(s, test_env(t), hf_str_from(first.certificate), hf_str_from(first.key),
                          &context));
    hf__tls_close(context);
    CHECK_STATUS(HF_INVALID, hf__tls_open(s, test_env(t), HF_STR("/no/cert.pem"),
                                          hf_str_from(first.key), &context));
    CHECK(context == NULL);
    CHECK(contains(hf_str_from(hf_scope_error_text(s)), "/no/cert.pem"));
    CHECK_STATUS(HF_INVALID, hf__tls_open(s, test_env(t), hf_str_from(first.certificate),
                                          HF_STR("/no/key.pem"), &context));
    CHECK(contains(hf_str_from(hf_scope_error_text(s)), "/no/key.pem"));
    CHECK_STATUS(HF_INVALID, hf__tls_open(s, test_env(t), hf_str_from(first.certificate),
                                          hf_str_from(second.key), &context));
    CHECK(contains(hf_str_from(hf_scope_error_text(s)), second.key));
    CHECK_STATUS(HF_INVALID, hf__tls_open(s, test_env(t), hf_str_from(first.key),
                                          hf_str_from(first.key), &context));
    CHECK(contains(hf_str_from(hf_scope_error_text(s)), first.key));
    hf_scope_free(s);
}

/* One of the two files alone is not TLS. */
TEST(tls, needs_both_files)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct server *server;

    CHECK_STATUS(HF_INVALID,
                 hf__server_open(s, NULL,
                                 &(struct server_options){.env = test_env(t),
                                                          .certificate = HF_STR("/no/cert.pem")},
                                 &server));
    hf_scope_free(s);
}

/* ---- answers that wait for the disk while the loop goes on ---------------------------------- */

/* Two connections; the first has an answer that waits at the closed gate. */
static void open_waiting(struct test *t, struct gated *gated, struct site *site, struct secure *c,
                         struct secure *other)
{
    struct files files;

    name_files(t, &files);
    make_certificate(&files, "first");
    gate_site(t, gated, site,
              &(struct server_options){.loops = 1,
                                       .sync_beside = true,
                                       .certificate = hf_str_from(files.certificate),
                                       .private_key = hf_str_from(files.key)});
    CHECK(secure_open(site, c, TLS1_3_VERSION, TLS1_3_VERSION));
    CHECK(secure_open(site, other, TLS1_3_VERSION, TLS1_3_VERSION));
    gate_set(gated, true);
    secure_send(c, call_text(site->s, "PutItem", PUT_A));
    gate_wait(gated, 1);
}

/* The loop has had an iteration since. */
static void ask_other(struct site *site, struct secure *other)
{
    struct hf_str body;
    size_t used = 0;

    secure_send(other, call_text(site->s, "ListTables", "{}"));
    CHECK_INT(200, secure_read(other, &body, &used));
}

/* Behind it come a request and the end, which TLS says itself. */
TEST(tls, a_request_and_the_end_while_an_answer_waits_for_the_disk)
{
    struct secure c, other;
    struct gated gated;
    struct hf_str body;
    struct site site;
    size_t used = 0;

    open_waiting(t, &gated, &site, &c, &other);
    secure_send(&c, call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'old'}}}"));
    SSL_shutdown(c.ssl);
    ask_other(&site, &other);
    gate_set(&gated, false);
    CHECK_INT(200, secure_read(&c, &body, &used));
    CHECK_STR("{}", body);
    CHECK_INT(200, secure_read(&c, &body, &used));
    CHECK_STR("{\"Item\":{\"pk\":{\"S\":\"old\"}}}", body);
    CHECK(!secure_fill(&c, used + 1)); /* it ends */
    secure_close(&c);
    secure_close(&other);
    gate_close(&gated, &site);
}

/* Half a request and the end, which arrive in one piece: nobody waits for the other half. */
TEST(tls, half_a_request_and_the_end_while_an_answer_waits_for_the_disk)
{
    const int on = 1, off = 0;
    struct secure c, other;
    struct gated gated;
    struct hf_str body;
    struct site site;
    size_t used = 0;
    int64_t begun;

    open_waiting(t, &gated, &site, &c, &other);
    setsockopt(c.fd, IPPROTO_TCP, TCP_CORK, &on, sizeof(on));
    secure_send(&c, HF_STR("GET /livez HT"));
    SSL_shutdown(c.ssl);
    setsockopt(c.fd, IPPROTO_TCP, TCP_CORK, &off, sizeof(off));
    ask_other(&site, &other);
    gate_set(&gated, false);
    CHECK_INT(200, secure_read(&c, &body, &used));
    begun = now_ms();
    CHECK(!secure_fill(&c, used + 1));
    CHECK(now_ms() - begun < 8000); /* a head would have ten seconds */
    secure_close(&c);
    secure_close(&other);
    gate_close(&gated, &site);
}

/* What TLS makes no bytes of, behind its end or because it is no TLS, is not taken meanwhile. */
static void check_flood(struct test *t, bool ends)
{
    enum { MUCH = 64 << 20 }; /* more than sockets have room for */
    static const uint8_t zeros[65536];
    struct secure c, other;
    struct gated gated;
    struct site site;
    size_t taken = 0;
    ssize_t some;

    open_waiting(t, &gated, &site, &c, &other);
    if (ends)
        SSL_shutdown(c.ssl);
    CHECK_INT(0, fcntl(c.fd, F_SETFL, O_NONBLOCK));
    do {
        struct pollfd ready = {.fd = c.fd, .events = POLLOUT};

        some = poll(&ready, 1, 500) == 1 ? send(c.fd, zeros, sizeof(zeros), MSG_NOSIGNAL) : -1;
        taken += some > 0 ? (size_t)some : 0;
    } while (some > 0 && taken < MUCH);
    CHECK(taken < MUCH);
    ask_other(&site, &other);
    gate_set(&gated, false);
    secure_close(&c);
    secure_close(&other);
    gate_close(&gated, &site);
}

TEST(tls, a_flood_while_an_answer_waits_for_the_disk)
{
    check_flood(t, true);
    check_flood(t, false);
}

/* ---- requests that go to workers ------------------------------------------------------------ */

/* What `from` has to say goes to the server, in one piece. */
static void send_all(struct secure *c, BIO *from)
{
    char bytes[16384];
    int len = BIO_read(from, bytes, sizeof(bytes));

    CHECK(len > 0 && len < (int)sizeof(bytes));
    CHECK_INT(len, send(c->fd, bytes, (size_t)len, MSG_NOSIGNAL));
}

/* Connect with TLS 1.3, whose client has the last word in a handshake, and send `text` with it. */
static void open_with(const struct site *site, struct secure *c, struct hf_str text)
{
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    struct timeval wait = {.tv_sec = DEADLINE_MS / 1000};
    char bytes[16384];
    struct line line;

    *c = (struct secure){.context = SSL_CTX_new(TLS_client_method())};
    CHECK(c->context && in && out);
    CHECK_INT(1, SSL_CTX_set_min_proto_version(c->context, TLS1_3_VERSION));
    c->ssl = SSL_new(c->context);
    BIO_set_mem_eof_return(in, -1);
    SSL_set_bio(c->ssl, in, out);
    line_open(site, &line);
    c->fd = dup(line.fd);
    line_close(&line);
    CHECK_INT(0, fcntl(c->fd, F_SETFL, 0));
    setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    CHECK_INT(-1, SSL_connect(c->ssl));
    send_all(c, out);
    do {
        ssize_t got = recv(c->fd, bytes, sizeof(bytes), 0);

        CHECK(got > 0);
        CHECK_INT(got, BIO_write(in, bytes, (int)got));
    } while (SSL_connect(c->ssl) != 1);
    secure_send(c, text);
    send_all(c, out);
    SSL_set_fd(c->ssl, c->fd);
}

#define READ_OLD "{'Statements':[{'Statement':'SELECT * FROM tab WHERE pk=\\u0027old\\u0027'}]}"
#define ANSWER_OLD "{\"Responses\":[{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"old\"}}}]}"

/* What the server has to say at the end of a handshake leaves with the answer: (1) of work.h. */
TEST(tls, a_request_for_a_worker_with_the_end_of_the_handshake)
{
    struct secure c, other;
    struct gated gated;
    struct files files;
    struct hf_str body;
    struct site site;

    name_files(t, &files);
    make_certificate(&files, "first");
    gate_site(t, &gated, &site,
              &(struct server_options){.loops = 1,
                                       .workers = 1,
                                       .certificate = hf_str_from(files.certificate),
                                       .private_key = hf_str_from(files.key)});
    CHECK(secure_open(&site, &other, TLS1_3_VERSION, TLS1_3_VERSION));
    for (int i = 0; i < 3; i++) {
        size_t used = 0, others = 0;
        char byte;

        atomic_store(&gated.held, true);
        open_with(&site, &c, call_text(site.s, "BatchExecuteStatement", READ_OLD));
        while (atomic_load(&site.server->work.running) == 0)
            sleep_ms(1);
        secure_send(&other, HF_STR("GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"));
        CHECK_INT(200,
                  secure_read(&other, &body, &others)); /* the loop has had an iteration since */
        other.len = 0;
        CHECK_INT(-1, recv(c.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT));
        CHECK(atomic_load(&site.server->budget.output) > 0);
        atomic_store(&gated.held, false);
        for (int j = 0; j < 2; j++) {
            CHECK_INT(200, secure_read(&c, &body, &used));
            CHECK_STR(ANSWER_OLD, body);
            if (j == 0)
                secure_send(&c, call_text(site.s, "BatchExecuteStatement", READ_OLD));
        }
        secure_close(&c);
    }
    secure_close(&other);
    gate_close(&gated, &site);
}

/* ListTables, in a body of `len` bytes that its signature does not cover. */
static struct hf_str unsigned_text(struct hf_scope *s, struct signer *signer,
                                   const struct sign_credentials *who, size_t len)
{
    struct http_head head = {.method = HF_STR("POST"), .target = HF_STR("/"), .path = HF_STR("/")};
    const struct sign_how how = {.credentials = who,
                                 .region = HF_STR("us-east-1"),
                                 .service = HF_STR("dynamodb"),
                                 .now_s = hf__env_wall_us(hf_scope_env(s)) / 1000000,
                                 .body = hf_bytes_of("[]", 2), /* another than is sent */
                                 .unsigned_body = true};
    char *body = hf_scope_alloc(s, len);
    struct hf__buf fields = {.scope = s};

    head.fields[head.fields_len++] = (struct http_field){HF_STR("Host"), HF_STR("localhost")};
    head.fields[head.fields_len++] =
        (struct http_field){HF_STR("X-Amz-Target"), HF_STR("DynamoDB_20120810.ListTables")};
    head.fields[head.fields_len++] =
        (struct http_field){HF_STR("Content-Type"), HF_STR("application/x-amz-json-1.0")};
    CHECK_OK(hf__sign_request(s, signer, &head, &how));
    for (size_t i = 0; i < head.fields_len; i++)
        hf__buf_format(&fields, "%.*s: %.*s\r\n", HF_FMT(head.fields[i].name),
                       HF_FMT(head.fields[i].value));
    CHECK(body && fields.ptr);
    memset(body, ' ', len);
    memcpy(body, "{}", 2);
    return post_text(s, (const char *)fields.ptr, hf_str_of(body, len));
}

/* With TLS a body need not be signed, without it must be; on loops and on workers alike. */
TEST(tls, unsigned_bodies_for_loops_and_workers)
{
    static const struct sign_credentials ann = {{"ANN", 3}, {"secret of ann", 13}, {0}};
    static const size_t lengths[] = {2, WORK_BODY, WORK_BODY + 1}; /* the last for a worker */
    struct server_options options = {.loops = 1, .workers = 1, .keys = &ann, .keys_len = 1};
    struct signer *signer;
    struct files files;
    struct secure c;
    struct site site;
    struct line plain;
    size_t used = 0;

    open_tls(t, &site, &files, options);
    CHECK_OK(hf__signer_new(site.s, test_env(t), &signer));
    CHECK(secure_open(&site, &c, TLS1_3_VERSION, TLS1_3_VERSION));
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct hf_str body;

        secure_send(&c, unsigned_text(site.s, signer, &ann, lengths[i]));
        CHECK_INT(200, secure_read(&c, &body, &used));
        CHECK_STR("{\"TableNames\":[\"tab\"]}", body);
    }
    secure_close(&c);
    site_close(&site);

    site_open(t, &site, &options);
    line_open(&site, &plain);
    for (size_t i = 0; i < ARRAY_LEN(lengths); i++) {
        struct hf_str text = unsigned_text(site.s, signer, &ann, lengths[i]);

        CHECK(line_send(&plain, text.ptr, text.len));
        line_read(&plain);
        CHECK_INT(400, plain.status);
        CHECK(contains(plain.body, "UNSIGNED-PAYLOAD, but without TLS the body must be signed"));
    }
    line_close(&plain);
    site_close(&site);
    hf__signer_free(signer);
}
