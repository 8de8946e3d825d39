/*
 * test/http/transport_end_test.c: calls that end early: deadlines, cancellation, connections that
 * break or never come about, answers before the request is sent. (n) is an invariant of
 * transport.c.
 */
#include "help.h"

#include <dlfcn.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKS                                                                                     \
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"

/* A wait that should take `ms`: not less, and not much more even where the host is busy. */
static void check_took(const struct caller *c, int64_t ms)
{
    CHECK(c->took_ms >= ms - 2);
    CHECK(c->took_ms < ms + 100);
}

/* ---- answers in parts and answers cut ------------------------------------------------------- */

struct cut {
    const char *answer;
    size_t first; /* bytes, and then the others, */
    size_t len;   /* up to here */
    bool reset;   /* instead of an orderly end */
};

/* The parts are sent apart, and go on when the test has set the flag. */
static void serve_cut(struct peer *peer)
{
    const struct cut *cut = peer->listener->user;
    int yes = 1;

    setsockopt(peer->fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
    while (peer_read(peer)) {
        peer_send(peer, cut->answer, cut->first);
        if (cut->len > cut->first) {
            sleep_ms(1);
            peer_send(peer, cut->answer + cut->first, cut->len - cut->first);
        }
        if (cut->len < strlen(cut->answer)) {
            if (cut->reset)
                peer_reset(peer);
            return;
        }
    }
}

TEST(transport_end, answers_may_come_in_any_two_parts)
{
    static const char *const answers[] = {HELLO, CHUNKS};

    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct cut cut = {.answer = answers[i], .len = strlen(answers[i])};
        struct listener l;
        struct caller c;

        listener_open(&l, serve_cut, &cut, NULL);
        caller_open(t, &c, NULL);
        for (cut.first = 1; cut.first < cut.len; cut.first++) {
            CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
            CHECK_STR("hello", caller_body(&c));
            hf_scope_reset(c.s);
        }
        CHECK_INT(1, caller_stats(&c).connects);
        caller_close(&c);
        listener_close(&l);
    }
}

/* (1) (2) (3): wherever an answer is cut, it is an error, and the request was sent once. */
TEST(transport_end, a_cut_answer_is_an_error_at_every_byte)
{
    static const char *const answers[] = {HELLO, CHUNKS};
    int calls = 0;

    for (size_t i = 0; i < 2 * ARRAY_LEN(answers); i++) {
        struct cut cut = {.answer = answers[i / 2], .reset = i % 2};
        struct listener l;
        struct caller c;

        listener_open(&l, serve_cut, &cut, NULL);
        caller_open(t, &c, NULL);
        for (calls = 0, cut.len = 0; cut.len < strlen(cut.answer); cut.len++, calls++) {
            cut.first = cut.len;
            CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
            CHECK(caller_may_have_happened(&c) && caller_may_retry(&c));
            CHECK(c.answer.status == 0 && c.answer.body.ptr == NULL);
            CHECK(hf_scope_error(c.s)->message.len > strlen(l.origin));
            hf_scope_reset(c.s);
        }
        CHECK_INT(calls, atomic_load(&l.requests));
        CHECK_INT(0, caller_stats(&c).idle);
        caller_close(&c);
        listener_close(&l);
    }
}

/* Answers once, and lets the second request on the connection die unanswered. */
static void serve_and_die(struct peer *peer)
{
    if (peer_read(peer) && peer_say(peer, HELLO) && peer_read(peer))
        peer_reset(peer);
}

/* (1): libcurl would send the second request again by itself. */
TEST(transport_end, a_request_on_a_dying_connection_is_not_repeated)
{
    struct listener l;
    struct caller c;

    listener_open(&l, serve_and_die, NULL, NULL);
    caller_open(t, &c, NULL);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
    CHECK(caller_may_have_happened(&c) && caller_may_retry(&c));
    CHECK_INT(1, caller_stats(&c).reuses);
    CHECK_INT(2, atomic_load(&l.requests));
    CHECK_INT(1, atomic_load(&l.accepted));
    caller_close(&c);
    listener_close(&l);
}

static void serve_noise(struct peer *peer)
{
    if (peer_read(peer))
        peer_say(peer, "220 mail.example ready\r\n");
}

TEST(transport_end, what_is_no_http_is_an_error)
{
    struct listener l;
    struct caller c;
    char expected[200];

    listener_open(&l, serve_noise, NULL, NULL);
    caller_open(t, &c, NULL);
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
    snprintf(expected, sizeof(expected), "%s: the answer does not start with an HTTP version",
             l.origin);
    CHECK_ERROR(HF_IO, expected, c.s);
    CHECK(caller_may_have_happened(&c));
    caller_close(&c);
    listener_close(&l);
}

/* ---- time ----------------------------------------------------------------------------------- */

static void serve_silence(struct peer *peer)
{
    if (peer_read(peer))
        while (!atomic_load(&peer->listener->flag))
            sleep_ms(2);
}

/* Always a little, never all. */
static void serve_drops(struct peer *peer)
{
    if (!peer_read(peer) || !peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n"))
        return;
    while (!atomic_load(&peer->listener->flag) && peer_say(peer, "x"))
        sleep_ms(3);
}

TEST(transport_end, a_slow_answer_ends_with_the_timeout)
{
    peer_fn *const servers[] = {serve_silence, serve_drops};

    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        struct listener l;
        struct caller c;

        listener_open(&l, servers[i], NULL, NULL);
        caller_open(t, &c, NULL);
        c.call.timeout_ms = 130;
        CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
        check_took(&c, 130);
        CHECK(strstr(hf_scope_error_text(c.s), "130 ms") != NULL);
        CHECK(caller_may_have_happened(&c) && caller_may_retry(&c));
        CHECK_INT(0, caller_stats(&c).idle);
        atomic_store(&l.flag, true);
        caller_close(&c);
        listener_close(&l);
    }
}

TEST(transport_end, a_slow_answer_ends_with_the_deadline)
{
    peer_fn *const servers[] = {serve_silence, serve_drops};

    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        struct listener l;
        struct caller c;

        listener_open(&l, servers[i], NULL, NULL);
        caller_open(t, &c, NULL);
        c.call.timeout_ms = 10000;
        hf_scope_timeout_ms(c.s, 110);
        CHECK_STATUS(HF_TIMEOUT, caller_post(&c, l.origin, HF_STR("x")));
        check_took(&c, 110);
        CHECK(caller_may_have_happened(&c));
        atomic_store(&l.flag, true);
        caller_close(&c);
        listener_close(&l);
    }
}

TEST(transport_end, after_the_deadline_nothing_is_sent)
{
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    hf_scope_timeout_ms(c.s, 1);
    sleep_ms(3);
    CHECK_STATUS(HF_TIMEOUT, caller_post(&c, l.origin, HF_STR("x")));
    CHECK(!caller_may_have_happened(&c));
    hf_scope_reset(c.s);
    hf_scope_cancel(c.s);
    CHECK_STATUS(HF_CANCELED, caller_post(&c, l.origin, HF_STR("x")));
    CHECK(!caller_may_have_happened(&c));
    CHECK_INT(0, atomic_load(&l.accepted));
    caller_close(&c);
    listener_close(&l);
}

/* The env's clock stands still, the network's does not. */
TEST(transport_end, the_timeout_is_by_the_clock_of_the_system)
{
    struct transport_options options = {.env = test_env(t)};
    struct listener l;
    struct caller c;

    listener_open(&l, serve_silence, NULL, NULL);
    caller_open(t, &c, &options);
    c.call.timeout_ms = 50;
    hf_scope_timeout_ms(c.s, 1);
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("x")));
    check_took(&c, 50);
    atomic_store(&l.flag, true);
    caller_close(&c);
    listener_close(&l);
}

static void *cancel_soon(void *argument)
{
    sleep_ms(60);
    hf_scope_cancel(argument);
    return NULL;
}

TEST(transport_end, another_thread_cancels)
{
    struct listener l;
    struct caller c;
    pthread_t thread;

    listener_open(&l, serve_silence, NULL, NULL);
    caller_open(t, &c, NULL);
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_soon, c.s));
    CHECK_STATUS(HF_CANCELED, caller_post(&c, l.origin, HF_STR("x")));
    check_took(&c, 60);
    CHECK(caller_may_have_happened(&c));
    pthread_join(thread, NULL);
    atomic_store(&l.flag, true);
    caller_close(&c);
    listener_close(&l);
}

/* ---- no connection -------------------------------------------------------------------------- */

/*
 * libcurl resolves names with this: one name takes long, the others are for the C library, which
 * asks nobody for names that are addresses.
 */
typedef int resolve_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static atomic_int resolving;

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **result)
{
    resolve_fn *next;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    if (node && strcmp(node, "slow.invalid") == 0) {
        atomic_fetch_add(&resolving, 1);
        sleep_ms(700);
        atomic_fetch_sub(&resolving, 1);
        return EAI_NONAME;
    }
    if (node && strcmp(node, "nowhere.invalid") == 0)
        return EAI_NONAME;
    memcpy(&next, &symbol, sizeof(next));
    return next(node, service, hints, result);
}

TEST(transport_end, nobody_listens)
{
    struct caller c;
    char origin[64];

    snprintf(origin, sizeof(origin), "http://127.0.0.1:%d", free_port());
    caller_open(t, &c, NULL);
    CHECK_STATUS(HF_IO, caller_post(&c, origin, HF_STR("x")));
    CHECK(c.took_ms < 100);
    CHECK(strstr(hf_scope_error_text(c.s), origin) != NULL);
    CHECK(caller_may_retry(&c) && !caller_may_have_happened(&c));
    CHECK_INT(0, caller_stats(&c).connects);
    caller_close(&c);
}

TEST(transport_end, a_name_that_nobody_knows)
{
    struct caller c;

    caller_open(t, &c, NULL);
    CHECK_STATUS(HF_IO, caller_post(&c, "http://nowhere.invalid", HF_STR("x")));
    CHECK(strstr(hf_scope_error_text(c.s), "nowhere.invalid") != NULL);
    CHECK(caller_may_retry(&c) && !caller_may_have_happened(&c));
    caller_close(&c);
}

/* A thread of libcurl is in the resolver and cannot be stopped: it is not waited for. */
TEST(transport_end, a_name_that_takes_long_ends_with_the_deadline)
{
    struct transport_options options = {.connect_ms = 5000};
    pthread_t thread;
    struct caller c;

    caller_open(t, &c, &options);
    hf_scope_timeout_ms(c.s, 80);
    CHECK_STATUS(HF_TIMEOUT, caller_post(&c, "http://slow.invalid", HF_STR("x")));
    check_took(&c, 80);
    CHECK(!caller_may_have_happened(&c));

    hf_scope_reset(c.s);
    c.call.timeout_ms = 90;
    CHECK_STATUS(HF_IO, caller_post(&c, "http://slow.invalid", HF_STR("x")));
    check_took(&c, 90);
    CHECK(caller_may_retry(&c));

    c.call.timeout_ms = 0;
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_soon, c.s));
    CHECK_STATUS(HF_CANCELED, caller_post(&c, "http://slow.invalid", HF_STR("x")));
    check_took(&c, 60);
    pthread_join(thread, NULL);
    CHECK(atomic_load(&resolving) > 0); /* or the name did not take long */
    caller_close(&c);
    while (atomic_load(&resolving) > 0)
        sleep_ms(5);
    sleep_ms(20); /* libcurl's threads free what they have, behind our function */
}

TEST(transport_end, connecting_has_a_timeout_of_its_own)
{
    struct transport_options options = {.connect_ms = 120};
    struct caller c;

    caller_open(t, &c, &options);
    hf_scope_timeout_ms(c.s, 5000);
    CHECK_STATUS(HF_IO, caller_post(&c, "http://slow.invalid", HF_STR("x")));
    check_took(&c, 120);
    CHECK_ERROR(HF_IO, "no connection to http://slow.invalid within 120 ms", c.s);
    CHECK(caller_may_retry(&c) && !caller_may_have_happened(&c));
    caller_close(&c);
    while (atomic_load(&resolving) > 0)
        sleep_ms(5);
    sleep_ms(20);
}

/* ---- answers before the request is sent ----------------------------------------------------- */

enum { LARGE = 16 * 1024 * 1024 };

static struct hf_str large_body(void)
{
    char *body = calloc(1, LARGE);

    assert_non_null(body);
    return hf_str_of(body, LARGE);
}

/* Refuses after the head, reads on for a while as polite servers do, and closes. */
static void serve_refusal(struct peer *peer)
{
    char bytes[4096];

    if (peer_receive(peer, bytes, sizeof(bytes)) <= 0)
        return;
    peer_say(peer,
             "HTTP/1.1 413 Content Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nbig");
    while (!atomic_load(&peer->listener->flag))
        sleep_ms(1);
}

/* The same, and at once closes: what was not read resets the connection. */
static void serve_rude_refusal(struct peer *peer)
{
    char bytes[4096];

    if (peer_receive(peer, bytes, sizeof(bytes)) > 0) {
        peer_say(peer, "HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nbig");
        shutdown(peer->fd, SHUT_WR);
        sleep_ms(20);
    }
}

TEST(transport_end, an_early_answer_is_read)
{
    peer_fn *const servers[] = {serve_refusal, serve_rude_refusal};
    struct hf_str body = large_body();

    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        struct listener l;
        struct caller c;

        listener_open(&l, servers[i], NULL, NULL);
        caller_open(t, &c, NULL);
        c.call.timeout_ms = 5000;
        CHECK_OK(caller_post(&c, l.origin, body));
        CHECK_INT(413, c.answer.status);
        CHECK_STR("big", caller_body(&c));
        CHECK_INT(0, caller_stats(&c).idle); /* (4): the rest of the body was not sent */
        atomic_store(&l.flag, true);
        caller_close(&c);
        listener_close(&l);
    }
    free((void *)(uintptr_t)body.ptr);
}

/* Takes a part of the body and breaks the connection. */
static void serve_break(struct peer *peer)
{
    char bytes[65536];

    for (int i = 0; i < 10; i++)
        if (peer_receive(peer, bytes, sizeof(bytes)) <= 0)
            return;
    peer_reset(peer);
}

/* (2): what was not sent to its end cannot have happened. */
TEST(transport_end, a_request_that_was_not_sent_to_its_end_has_not_happened)
{
    struct hf_str body = large_body();
    struct listener l;
    struct caller c;

    listener_open(&l, serve_break, NULL, NULL);
    caller_open(t, &c, NULL);
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, body));
    CHECK(!caller_may_have_happened(&c) && caller_may_retry(&c));
    caller_close(&c);
    listener_close(&l);
    free((void *)(uintptr_t)body.ptr);
}

/* Accepts, and reads nothing. */
static void serve_nothing(struct peer *peer)
{
    while (!atomic_load(&peer->listener->flag))
        sleep_ms(2);
}

TEST(transport_end, sending_ends_with_the_deadline_too)
{
    struct hf_str body = large_body();
    struct listener l;
    struct caller c;

    listener_open(&l, serve_nothing, NULL, NULL);
    caller_open(t, &c, NULL);
    hf_scope_timeout_ms(c.s, 120);
    CHECK_STATUS(HF_TIMEOUT, caller_post(&c, l.origin, body));
    check_took(&c, 120);
    CHECK(!caller_may_have_happened(&c)); /* (2) */
    atomic_store(&l.flag, true);
    caller_close(&c);
    listener_close(&l);
    free((void *)(uintptr_t)body.ptr);
}

/* Sends a large answer while a large request still comes: neither side may wait for the other. */
static void serve_while_receiving(struct peer *peer)
{
    struct hf_str body = large_body();
    char bytes[65536];

    if (peer_receive(peer, bytes, sizeof(bytes)) > 0 &&
        peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 16777216\r\n\r\n"))
        (void)peer_send(peer, body.ptr, body.len);
    /* Closing with bytes unread would throw away what is on its way. */
    while (peer_receive(peer, bytes, sizeof(bytes)) > 0)
        continue;
    free((void *)(uintptr_t)body.ptr);
}

TEST(transport_end, both_directions_at_once)
{
    struct hf_str body = large_body();
    struct listener l;
    struct caller c;

    listener_open(&l, serve_while_receiving, NULL, NULL);
    caller_open(t, &c, NULL);
    c.call.timeout_ms = 10000;
    CHECK_OK(caller_post(&c, l.origin, body));
    CHECK_INT(LARGE, c.answer.body.len);
    CHECK_INT(0, caller_stats(&c).idle);
    caller_close(&c);
    listener_close(&l);
    free((void *)(uintptr_t)body.ptr);
}
