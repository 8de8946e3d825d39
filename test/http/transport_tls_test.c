/*
 * test/http/transport_tls_test.c: calls through TLS, with authorities made here, and through
 * proxies. (n) is an invariant of transport.c, (Cn) one of connection.c.
 */
#include "help.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* ---- certificates --------------------------------------------------------------------------- */

struct identity {
    EVP_PKEY *key;
    X509 *certificate;
};

static void add_extension(X509 *x, X509 *issuer, int what, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;

    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, what, value);
    CHECK(extension && X509_add_ext(x, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/* For those names, such as "IP:127.0.0.1"; NULL makes an authority. By itself, or by an issuer. */
static struct identity identity_new(const char *names, const struct identity *issuer)
{
    struct identity own = {EVP_EC_gen("P-256"), X509_new()};
    const struct identity *by = issuer ? issuer : &own;
    X509 *x = own.certificate;
    static long serial;
    char name[40];

    CHECK(own.key && x);
    snprintf(name, sizeof(name), "%s %ld", names ? "server" : "authority", ++serial);
    ASN1_INTEGER_set(X509_get_serialNumber(x), serial);
    X509_set_version(x, X509_VERSION_3);
    X509_gmtime_adj(X509_getm_notBefore(x), -3600);
    X509_gmtime_adj(X509_getm_notAfter(x), 86400);
    CHECK_INT(1, X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
                                            (const unsigned char *)name, -1, -1, 0));
    X509_set_issuer_name(x, X509_get_subject_name(by->certificate));
    X509_set_pubkey(x, own.key);
    add_extension(x, by->certificate, NID_basic_constraints,
                  names ? "critical,CA:FALSE" : "critical,CA:TRUE");
    if (names)
        add_extension(x, by->certificate, NID_subject_alt_name, names);
    CHECK(X509_sign(x, by->key, EVP_sha256()) > 0);
    return own;
}

static void identity_free(struct identity *identity)
{
    X509_free(identity->certificate);
    EVP_PKEY_free(identity->key);
}

static SSL_CTX *context_of(const struct identity *identity)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());

    CHECK(context && SSL_CTX_use_certificate(context, identity->certificate) == 1 &&
          SSL_CTX_use_PrivateKey(context, identity->key) == 1);
    return context;
}

static void write_certificate(const struct identity *identity, const char *path)
{
    FILE *file = fopen(path, "we");

    CHECK(file && PEM_write_X509(file, identity->certificate) == 1 && fclose(file) == 0);
}

/* An authority, its file, and a server it vouches for. */
struct realm {
    struct identity authority;
    struct identity server;
    SSL_CTX *context;
    char file[200];
};

static void realm_open(struct test *t, struct realm *realm, const char *names)
{
    realm->authority = identity_new(NULL, NULL);
    realm->server = identity_new(names, &realm->authority);
    realm->context = context_of(&realm->server);
    snprintf(realm->file, sizeof(realm->file), "%s/authority.pem", test_directory(t));
    write_certificate(&realm->authority, realm->file);
}

static void realm_close(struct realm *realm)
{
    SSL_CTX_free(realm->context);
    identity_free(&realm->server);
    identity_free(&realm->authority);
    ERR_clear_error();
}

/* ---- TLS ------------------------------------------------------------------------------------ */

TEST(transport_tls, a_server_that_the_authority_vouches_for)
{
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};

    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        struct realm realm;
        struct listener l;
        struct caller c;

        realm_open(t, &realm, "IP:127.0.0.1");
        CHECK_INT(1, SSL_CTX_set_max_proto_version(realm.context, versions[i]));
        listener_open(&l, peer_echo, NULL, realm.context);
        caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
        for (int call = 0; call < 5; call++) {
            CHECK_OK(caller_post(&c, l.origin, HF_STR("hello")));
            CHECK_STR("hello", caller_body(&c));
        }
        CHECK_INT(1, caller_stats(&c).connects); /* (C3): tickets are no reason to reconnect */
        caller_close(&c);
        listener_close(&l);
        realm_close(&realm);
    }
}

TEST(transport_tls, old_versions_are_refused)
{
    struct realm realm;
    struct listener l;
    struct caller c;

    realm_open(t, &realm, "IP:127.0.0.1");
    SSL_CTX_set_security_level(realm.context, 0);
    CHECK_INT(1, SSL_CTX_set_min_proto_version(realm.context, TLS1_VERSION));
    CHECK_INT(1, SSL_CTX_set_max_proto_version(realm.context, TLS1_1_VERSION));
    listener_open(&l, peer_echo, NULL, realm.context);
    caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
    CHECK(!caller_may_have_happened(&c));
    caller_close(&c);
    listener_close(&l);
    realm_close(&realm);
}

/* Another name, another authority, none: refused, unless nobody is to look. */
TEST(transport_tls, a_server_that_nobody_vouches_for_is_refused)
{
    for (int i = 0; i < 3; i++) {
        struct realm realm, other;
        struct listener l;
        struct caller c;

        realm_open(t, &realm, i == 0 ? "DNS:elsewhere.test,IP:127.0.0.2" : "IP:127.0.0.1");
        realm_open(t, &other, "IP:127.0.0.1");
        if (i == 2) { /* it vouches for itself */
            SSL_CTX_free(realm.context);
            identity_free(&realm.server);
            realm.server = identity_new("IP:127.0.0.1", NULL);
            realm.context = context_of(&realm.server);
        }
        listener_open(&l, peer_echo, NULL, realm.context);
        caller_open(t, &c,
                    &(struct transport_options){.ca_file =
                                                    hf_str_from(i == 1 ? other.file : realm.file)});
        CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
        CHECK(strstr(hf_scope_error_text(c.s), l.origin) != NULL);
        CHECK(!caller_may_retry(&c) && !caller_may_have_happened(&c));
        caller_close(&c);

        caller_open(t, &c, &(struct transport_options){.insecure = true});
        CHECK_OK(caller_post(&c, l.origin, HF_STR("hello")));
        CHECK_STR("hello", caller_body(&c));
        caller_close(&c);
        CHECK_INT(1, atomic_load(&l.requests));
        listener_close(&l);
        realm_close(&realm);
        realm_close(&other);
    }
}

TEST(transport_tls, a_file_of_authorities_that_is_not_there)
{
    struct realm realm;
    struct listener l;
    struct caller c;

    realm_open(t, &realm, "IP:127.0.0.1");
    listener_open(&l, peer_echo, NULL, realm.context);
    caller_open(t, &c, &(struct transport_options){.ca_file = HF_STR("/nowhere/ca.pem")});
    CHECK_STATUS(HF_INVALID, caller_post(&c, l.origin, HF_STR("x")));
    CHECK(strstr(hf_scope_error_text(c.s), "/nowhere/ca.pem") != NULL);
    caller_close(&c);
    listener_close(&l);
    realm_close(&realm);
}

/* The file is read once, again after an hour, and not at all when that fails. */
TEST(transport_tls, the_file_of_authorities_is_read_once_in_a_while)
{
    struct transport_options options = {.env = test_env(t), .idle_ms = 1000};
    struct realm realm, other;
    struct listener l;
    struct caller c;

    realm_open(t, &realm, "IP:127.0.0.1");
    realm_open(t, &other, "IP:127.0.0.1");
    listener_open(&l, peer_echo, NULL, realm.context);
    options.ca_file = hf_str_from(realm.file);
    caller_open(t, &c, &options);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    write_certificate(&other.authority, realm.file);
    test_advance_ms(t, 3599 * 1000);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_INT(0, unlink(realm.file));
    test_advance_ms(t, 3602 * 1000);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_INT(3, caller_stats(&c).connects);
    write_certificate(&other.authority, realm.file);
    test_advance_ms(t, 3602 * 1000);
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
    caller_close(&c);
    listener_close(&l);
    realm_close(&realm);
    realm_close(&other);
}

TEST(transport_tls, large_bodies_go_both_ways)
{
    size_t size = 16 * 1024 * 1024;
    char *body = malloc(size);
    struct realm realm;
    struct listener l;
    struct caller c;

    assert_non_null(body);
    for (size_t i = 0; i < size; i++)
        body[i] = (char)(i * 31 + i / 4096);
    realm_open(t, &realm, "IP:127.0.0.1");
    listener_open(&l, peer_echo, NULL, realm.context);
    caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
    for (int i = 0; i < 2; i++) {
        CHECK_OK(caller_post(&c, l.origin, hf_str_of(body, size)));
        CHECK_INT(size, c.answer.body.len);
        CHECK(memcmp(body, c.answer.body.ptr, size) == 0);
        hf_scope_reset(c.s);
    }
    CHECK_INT(1, caller_stats(&c).connects);
    caller_close(&c);
    listener_close(&l);
    realm_close(&realm);
    free(body);
}

/* More bytes in one record than the room that a small answer is given. */
static void serve_behind(struct peer *peer)
{
    char *bytes = malloc(16000);

    memset(bytes, 'w', 16000);
    memcpy(bytes, HELLO, strlen(HELLO));
    while (peer_read(peer))
        peer_send(peer, bytes, 16000);
    free(bytes);
}

/* (4) (C3): bytes that only TLS knows of. */
TEST(transport_tls, what_comes_behind_an_answer_is_never_taken_for_the_next)
{
    struct realm realm;
    struct listener l;
    struct caller c;

    realm_open(t, &realm, "IP:127.0.0.1");
    listener_open(&l, serve_behind, NULL, realm.context);
    caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
    for (int i = 0; i < 3; i++) {
        CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
        CHECK_STR("hello", caller_body(&c));
    }
    CHECK_INT(3, caller_stats(&c).connects);
    caller_close(&c);
    listener_close(&l);
    realm_close(&realm);
}

/* An answer whose end is that of the connection: with TLS's own end, or without. */
static void serve_until_close(struct peer *peer)
{
    if (!peer_read(peer))
        return;
    peer_say(peer, "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nhello");
    if (!atomic_load(&peer->listener->flag))
        SSL_shutdown(peer->ssl);
    else
        SSL_set_quiet_shutdown(peer->ssl, 1);
}

/* (3): whoever cuts a connection cannot make a short answer look whole. */
TEST(transport_tls, an_end_that_tls_does_not_confirm_is_a_cut)
{
    struct realm realm;
    struct listener l;
    struct caller c;

    realm_open(t, &realm, "IP:127.0.0.1");
    listener_open(&l, serve_until_close, NULL, realm.context);
    caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_STR("hello", caller_body(&c));
    atomic_store(&l.flag, true);
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
    CHECK(caller_may_have_happened(&c));
    caller_close(&c);
    listener_close(&l);
    realm_close(&realm);
}

static atomic_int pipes;

static void count_pipe(int number)
{
    (void)number;
    atomic_fetch_add(&pipes, 1);
}

static void serve_break(struct peer *peer)
{
    char bytes[16384];

    for (int i = 0; i < 10; i++)
        if (peer_receive(peer, bytes, sizeof(bytes)) <= 0)
            return;
    peer_reset(peer);
}

/* A server that goes away must not end the process, which SIGPIPE would by default. */
TEST(transport_tls, a_broken_connection_raises_no_signal)
{
    size_t size = 16 * 1024 * 1024;
    char *body = calloc(1, size);
    struct sigaction counting = {.sa_handler = count_pipe}, before;
    struct realm realm;

    assert_non_null(body);
    realm_open(t, &realm, "IP:127.0.0.1");
    CHECK_INT(0, sigaction(SIGPIPE, &counting, &before));
    for (int i = 0; i < 10; i++) {
        struct listener l;
        struct caller c;

        listener_open(&l, serve_break, NULL, i % 2 ? realm.context : NULL);
        caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
        CHECK_STATUS(HF_IO, caller_post(&c, l.origin, hf_str_of(body, size)));
        CHECK(!caller_may_have_happened(&c) && caller_may_retry(&c));
        caller_close(&c);
        listener_close(&l);
    }
    CHECK_INT(0, atomic_load(&pipes));
    CHECK_INT(0, sigaction(SIGPIPE, &before, NULL));
    realm_close(&realm);
    free(body);
}

/* ---- forks ---------------------------------------------------------------------------------- */

/* As a child: a call of its own, then the end of the transport. */
static void be_the_child(struct caller *c, const char *origin)
{
    bool good = caller_post(c, origin, HF_STR("child")) == HF_OK &&
                hf_str_equal(caller_body(c), HF_STR("child")) && caller_stats(c).reuses == 0 &&
                caller_stats(c).connects == 2;

    hf__transport_close(c->transport);
    _exit(good ? 0 : 1);
}

/* (C5): a connection that a parent has kept is not its child's to use, nor to say goodbye on. */
TEST(transport_tls, a_child_makes_connections_of_its_own)
{
    struct realm realm;

    realm_open(t, &realm, "IP:127.0.0.1");
    for (int i = 0; i < 2; i++) {
        struct listener l;
        struct caller c;
        int outcome = -1;
        pid_t child;

        listener_open(&l, peer_echo, NULL, i ? realm.context : NULL);
        caller_open(t, &c, &(struct transport_options){.ca_file = hf_str_from(realm.file)});
        CHECK_OK(caller_post(&c, l.origin, HF_STR("parent")));
        child = fork();
        if (child == 0)
            be_the_child(&c, l.origin);
        CHECK(child > 0 && waitpid(child, &outcome, 0) == child);
        CHECK(WIFEXITED(outcome) && WEXITSTATUS(outcome) == 0);
        CHECK_OK(caller_post(&c, l.origin, HF_STR("parent")));
        CHECK_STR("parent", caller_body(&c));
        CHECK_INT(1, caller_stats(&c).connects); /* the child has left it alone */
        CHECK_INT(1, caller_stats(&c).reuses);
        caller_close(&c);
        listener_close(&l);
    }
    realm_close(&realm);
}

/* ---- proxies -------------------------------------------------------------------------------- */

struct proxy {
    char *refusal; /* NULL: it connects */
    pthread_mutex_t mutex;
    char seen[400]; /* the last CONNECT with its fields */
};

static int connect_to(struct hf_str host)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const char *colon = memchr(host.ptr, ':', host.len);

    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons((uint16_t)strtoul(colon + 1, NULL, 10));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

static void carry(int a, int b)
{
    struct pollfd fds[] = {{.fd = a, .events = POLLIN}, {.fd = b, .events = POLLIN}};
    char bytes[16384];

    while (poll(fds, 2, -1) > 0) {
        for (int i = 0; i < 2; i++) {
            ssize_t got;

            if (!fds[i].revents)
                continue;
            got = recv(fds[i].fd, bytes, sizeof(bytes), 0);
            if (got <= 0 || send(fds[1 - i].fd, bytes, (size_t)got, MSG_NOSIGNAL) != got)
                return;
        }
    }
}

/* Any name leads to this host, so that a test sees that the proxy resolves it, not we. */
static void serve_proxy(struct peer *peer)
{
    struct proxy *proxy = peer->listener->user;
    char head[400];
    size_t len = 0;
    int fd;

    while (len < sizeof(head) - 1 && !(len >= 4 && memcmp(head + len - 4, "\r\n\r\n", 4) == 0)) {
        if (peer_receive(peer, head + len, 1) != 1)
            return;
        len++;
    }
    head[len] = '\0';
    pthread_mutex_lock(&proxy->mutex);
    memcpy(proxy->seen, head, len + 1);
    pthread_mutex_unlock(&proxy->mutex);
    atomic_fetch_add(&peer->listener->requests, 1);
    if (strncmp(head, "CONNECT ", 8) != 0 || proxy->refusal) {
        peer_say(peer, proxy->refusal ? proxy->refusal : "HTTP/1.1 400 No\r\n\r\n");
        return;
    }
    fd = connect_to(hf_str_of(head + 8, strcspn(head + 8, " ")));
    if (fd < 0) {
        peer_say(peer, "HTTP/1.1 502 No\r\nContent-Length: 0\r\n\r\n");
        return;
    }
    peer_say(peer, "HTTP/1.1 200 Connected\r\nX-Proxy: yes\r\n\r\n");
    carry(peer->fd, fd);
    close(fd);
}

static void proxy_open(struct proxy *proxy, struct listener *l, char *refusal)
{
    *proxy = (struct proxy){.refusal = refusal};
    pthread_mutex_init(&proxy->mutex, NULL);
    listener_open(l, serve_proxy, proxy, NULL);
}

/* A tunnel for plain HTTP, too, and one proxy for many calls. */
TEST(transport_tls, calls_go_through_a_proxy)
{
    struct realm realm;

    realm_open(t, &realm, "DNS:dynamodb.test");
    for (int i = 0; i < 2; i++) {
        struct proxy proxy;
        struct listener l, gate;
        char origin[64], url[80], expected[64];
        struct caller c;

        listener_open(&l, peer_echo, NULL, i ? realm.context : NULL);
        proxy_open(&proxy, &gate, NULL);
        snprintf(url, sizeof(url), "http://ann:pass%%20word@127.0.0.1:%d", gate.port);
        snprintf(origin, sizeof(origin), "%s://dynamodb.test:%d", i ? "https" : "http", l.port);
        snprintf(expected, sizeof(expected), "CONNECT dynamodb.test:%d HTTP/1.1\r\n", l.port);
        caller_open(t, &c,
                    &(struct transport_options){.http_proxy = hf_str_from(url),
                                                .https_proxy = hf_str_from(url),
                                                .no_proxy = HF_STR("other.test"),
                                                .ca_file = hf_str_from(realm.file)});
        for (int call = 0; call < 3; call++) {
            CHECK_OK(caller_post(&c, origin, HF_STR("hello")));
            CHECK_STR("hello", caller_body(&c));
        }
        CHECK_INT(1, caller_stats(&c).connects);
        CHECK_INT(1, atomic_load(&gate.requests));
        CHECK(strncmp(proxy.seen, expected, strlen(expected)) == 0);
        /* "ann:pass word" */
        CHECK(strstr(proxy.seen, "Proxy-Authorization: Basic YW5uOnBhc3Mgd29yZA==\r\n") != NULL);
        CHECK(strstr(proxy.seen, "secret") == NULL); /* the request's own fields are not its */
        caller_close(&c);
        listener_close(&gate);
        listener_close(&l);
    }
    realm_close(&realm);
}

TEST(transport_tls, hosts_that_need_no_proxy)
{
    static const char *const lists[] = {"127.0.0.1", "example.test,127.0.0.1", "127.0.0.0/8", "*"};

    for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
        struct listener l;
        struct caller c;
        char url[64];

        listener_open(&l, peer_echo, NULL, NULL);
        snprintf(url, sizeof(url), "http://127.0.0.1:%d", free_port());
        caller_open(t, &c,
                    &(struct transport_options){.http_proxy = hf_str_from(url),
                                                .https_proxy = hf_str_from(url),
                                                .no_proxy = hf_str_from(lists[i])});
        CHECK_OK(caller_post(&c, l.origin, HF_STR("hello")));
        CHECK_STR("hello", caller_body(&c));
        caller_close(&c);
        listener_close(&l);
    }
}

TEST(transport_tls, a_proxy_that_refuses_or_is_not_there)
{
    char *refusals[] = {
        strdup("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: "
               "4\r\n\r\nwho?"),
        strdup("HTTP/1.1 403 No\r\nContent-Length: 2\r\n\r\nno"), NULL};

    for (size_t i = 0; i < ARRAY_LEN(refusals); i++) {
        struct proxy proxy;
        struct listener l, gate;
        struct caller c;
        char url[80];

        listener_open(&l, peer_echo, NULL, NULL);
        proxy_open(&proxy, &gate, refusals[i]);
        snprintf(url, sizeof(url), "http://ann:hush@127.0.0.1:%d",
                 refusals[i] ? gate.port : free_port());
        caller_open(t, &c,
                    &(struct transport_options){.http_proxy = hf_str_from(url),
                                                .https_proxy = hf_str_from(url)});
        CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
        CHECK(!caller_may_have_happened(&c));
        CHECK(strstr(hf_scope_error_text(c.s), l.origin) != NULL);
        CHECK(strstr(hf_scope_error_text(c.s), "hush") == NULL);
        CHECK_INT(0, atomic_load(&l.accepted));
        caller_close(&c);
        listener_close(&gate);
        listener_close(&l);
        free(refusals[i]);
    }
}

/* (C4): what the program did not say is not looked up elsewhere. */
TEST(transport_tls, the_environment_is_not_read)
{
    static const char *const names[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                        "all_proxy",  "ALL_PROXY",   "HTTP_PROXY"};
    struct proxy proxy;
    struct listener l, gate;
    struct caller c;
    char url[64], dead[64];

    listener_open(&l, peer_echo, NULL, NULL);
    proxy_open(&proxy, &gate, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", gate.port);
    snprintf(dead, sizeof(dead), "http://127.0.0.1:%d", free_port());
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        setenv(names[i], dead, 1);
    setenv("no_proxy", "*", 1);
    setenv("NO_PROXY", "*", 1);
    caller_open(t, &c, NULL);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    caller_close(&c);
    caller_open(t, &c,
                &(struct transport_options){.http_proxy = hf_str_from(url),
                                            .https_proxy = hf_str_from(url)});
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_INT(1, atomic_load(&gate.requests));
    caller_close(&c);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        unsetenv(names[i]);
    unsetenv("no_proxy");
    unsetenv("NO_PROXY");
    listener_close(&gate);
    listener_close(&l);
}
