/*
 * test/http/transport_end_test.c: calls that end early: deadlines, cancellation, connections that
 * break or never come about, answers before the request is sent. (n) is an invariant of
 * transport.c.
 */
#include "help.h"

#include "http/curl.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
#define CHUNKS                                                                                     \
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"

struct ending {
    peer_fn *serve;
    const char *origin;  /* NULL: that of the function */
    size_t body;         /* bytes of the request's */
    uint32_t connect_ms; /* these as far as they are not 0 */
    uint32_t timeout_ms;
    uint32_t deadline_ms;
    uint32_t cancel_ms;
    enum hf_status status; /* how the call ends, */
    bool sent;             /* whether it may have happened, */
    const char *text;      /* something of what it says, or NULL, */
    uint32_t ms;           /* and when */
};

struct canceling {
    struct hf_scope *s;
    int ms;
};

static void *cancel_soon(void *argument)
{
    const struct canceling *canceling = argument;

    sleep_ms(canceling->ms);
    hf_scope_cancel(canceling->s);
    return NULL;
}

/* Milliseconds that the call took. */
static int64_t end_once(struct test *t, const struct ending *e)
{
    struct transport_options options = {.connect_ms = e->connect_ms};
    char *body = calloc(1, e->body + 1);
    struct canceling canceling;
    pthread_t thread;
    struct listener l;
    struct caller c;
    int64_t took;

    assert_non_null(body);
    listener_open(&l, e->serve, NULL, NULL);
    caller_open(t, &c, &options);
    c.call.timeout_ms = e->timeout_ms;
    hf_scope_timeout_ms(c.s, e->deadline_ms);
    canceling = (struct canceling){c.s, (int)e->cancel_ms};
    if (e->cancel_ms)
        CHECK_INT(0, pthread_create(&thread, NULL, cancel_soon, &canceling));
    CHECK_STATUS(e->status,
                 caller_post(&c, e->origin ? e->origin : l.origin, hf_str_of(body, e->body)));
    CHECK_INT(e->sent, caller_may_have_happened(&c));
    CHECK_INT(e->status != HF_CANCELED, caller_may_retry(&c));
    if (e->text)
        CHECK(strstr(hf_scope_error_text(c.s), e->text) != NULL);
    CHECK_INT(0, caller_stats(&c).idle);
    if (e->cancel_ms)
        pthread_join(thread, NULL);
    took = c.took_ms;
    atomic_store(&l.flag, true);
    caller_close(&c);
    listener_close(&l);
    free(body);
    return took;
}

/* It ends not before its time, and not 100 ms later; on a busy host, once in three times. */
static void check_ending(struct test *t, const struct ending *e)
{
    int64_t took = 0;

    for (int i = 0; i < 3; i++) {
        took = end_once(t, e);
        CHECK(took >= (int64_t)e->ms - 2);
        if (took < (int64_t)e->ms + 100)
            return;
    }
    CHECK_INT(e->ms, took);
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
    struct ending e = {.serve = serve_silence,
                       .timeout_ms = 130,
                       .deadline_ms = 10000,
                       .status = HF_IO,
                       .sent = true,
                       .text = "130 ms",
                       .ms = 130};

    check_ending(t, &e);
    e.serve = serve_drops;
    check_ending(t, &e);
}

TEST(transport_end, a_slow_answer_ends_with_the_deadline)
{
    struct ending e = {.serve = serve_silence,
                       .timeout_ms = 10000,
                       .deadline_ms = 110,
                       .status = HF_TIMEOUT,
                       .sent = true,
                       .ms = 110};

    check_ending(t, &e);
    e.serve = serve_drops;
    check_ending(t, &e);
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
    CHECK(c.took_ms >= 48);
    atomic_store(&l.flag, true);
    caller_close(&c);
    listener_close(&l);
}

TEST(transport_end, another_thread_cancels)
{
    struct ending e = {.serve = serve_silence,
                       .timeout_ms = 10000,
                       .cancel_ms = 60,
                       .status = HF_CANCELED,
                       .sent = true,
                       .ms = 60};

    check_ending(t, &e);
    e.serve = serve_drops;
    check_ending(t, &e);
}

/* ---- no connection -------------------------------------------------------------------------- */

/*
 * libcurl resolves names with this: one name takes long, the others are for the C library, which
 * asks nobody for names that are addresses.
 */
typedef int resolve_fn(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static atomic_int resolving;
static atomic_bool resolve_on; /* those who resolve the slow name may end */

__attribute__((visibility("default"))) int getaddrinfo(const char *node, const char *service,
                                                       const struct addrinfo *hints,
                                                       struct addrinfo **result)
{
    resolve_fn *next;
    void *symbol = dlsym(RTLD_NEXT, "getaddrinfo");

    if (node && strcmp(node, "slow.invalid") == 0) {
        atomic_fetch_add(&resolving, 1);
        for (int ms = 0; ms < 60000 && !atomic_load(&resolve_on); ms += 5)
            sleep_ms(5);
        atomic_fetch_sub(&resolving, 1);
        return EAI_NONAME;
    }
    if (node && strcmp(node, "nowhere.invalid") == 0)
        return EAI_NONAME;
    memcpy(&next, &symbol, sizeof(next));
    if (node && strcmp(node, "two.invalid") == 0) {
        int status = next("127.0.0.2", service, hints, result);

        return status ? status : next("127.0.0.1", service, hints, &(*result)->ai_next);
    }
    return next(node, service, hints, result);
}

TEST(transport_end, nobody_listens)
{
    struct caller c;
    char origin[64];

    snprintf(origin, sizeof(origin), "http://127.0.0.1:%d", free_port());
    caller_open(t, &c, NULL);
    CHECK_STATUS(HF_IO, caller_post(&c, origin, HF_STR("x")));
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

/* libcurl's threads free what they have, behind our function. */
static void wait_for_resolvers(void)
{
    atomic_store(&resolve_on, true);
    while (atomic_load(&resolving) > 0)
        sleep_ms(5);
    sleep_ms(20);
}

/* A thread of libcurl is in the resolver and cannot be stopped: it is not waited for. */
TEST(transport_end, a_name_that_takes_long)
{
    const struct ending deadline = {.serve = peer_echo,
                                    .origin = "http://slow.invalid",
                                    .connect_ms = 5000,
                                    .deadline_ms = 80,
                                    .status = HF_TIMEOUT,
                                    .ms = 80};
    struct ending timeout = deadline, cancel = deadline, connect = deadline;

    timeout.deadline_ms = cancel.deadline_ms = connect.deadline_ms = 0;
    timeout.timeout_ms = timeout.ms = 90;
    cancel.cancel_ms = cancel.ms = 60;
    cancel.status = HF_CANCELED;
    connect.connect_ms = connect.ms = 120;
    timeout.status = connect.status = HF_IO;
    connect.text = "no connection to http://slow.invalid within 120 ms";
    atomic_store(&resolve_on, false);
    check_ending(t, &deadline);
    CHECK(atomic_load(&resolving) > 0); /* or the name did not take long */
    check_ending(t, &timeout);
    check_ending(t, &cancel);
    check_ending(t, &connect);
    wait_for_resolvers();
}

/* As if this thread had not been allowed to run for a while. */
static CURLMcode poll_late(CURLM *multi, struct curl_waitfd *more, unsigned more_len, int ms,
                           int *ready)
{
    (void)multi, (void)more, (void)more_len, (void)ready;
    sleep_ms(ms + 100);
    return CURLM_OK;
}

/* libcurl's limit is over as well when we come to look: it is the deadline's error all the same. */
TEST(transport_end, a_deadline_that_is_noticed_late)
{
    const struct ending deadline = {.serve = peer_echo,
                                    .origin = "http://slow.invalid",
                                    .connect_ms = 5000,
                                    .deadline_ms = 30,
                                    .status = HF_TIMEOUT};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct curl_calls calls;

    CHECK_OK(hf__curl_load(s));
    calls = hf__curl;
    atomic_store(&resolve_on, false);
    hf__curl.multi_poll = poll_late;
    (void)end_once(t, &deadline);
    hf__curl = calls;
    hf_scope_free(s);
    wait_for_resolvers();
}

/*
 * Of two addresses the first one is dead: nobody accepts what comes there, and as its queue is
 * full, nobody even refuses it.
 */
TEST(transport_end, a_dead_address_comes_first)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int dead = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fill[4];
    struct listener l;
    struct caller c;
    char origin[64];

    listener_open(&l, peer_echo, NULL, NULL);
    address.sin_port = htons((uint16_t)l.port);
    CHECK_INT(1, inet_pton(AF_INET, "127.0.0.2", &address.sin_addr));
    CHECK_INT(0, bind(dead, (struct sockaddr *)&address, sizeof(address)));
    CHECK_INT(0, listen(dead, 0));
    for (size_t i = 0; i < ARRAY_LEN(fill); i++) {
        fill[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
        (void)connect(fill[i], (struct sockaddr *)&address, sizeof(address));
    }
    snprintf(origin, sizeof(origin), "http://two.invalid:%d", l.port);
    caller_open(t, &c, NULL);
    CHECK_OK(caller_post(&c, origin, HF_STR("hello")));
    CHECK_STR("hello", caller_body(&c));
    CHECK(c.took_ms >= 100); /* or the first one was not dead */
    caller_close(&c);
    listener_close(&l);
    for (size_t i = 0; i < ARRAY_LEN(fill); i++)
        close(fill[i]);
    close(dead);
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

/* Answers without reading anything, and is gone. */
static void serve_refusal_at_once(struct peer *peer)
{
    peer_say(peer, "HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy");
}

/* Mostly, sending fails when the answer is there already: it is read all the same. */
TEST(transport_end, an_answer_is_read_after_sending_failed)
{
    struct hf_str body = large_body();
    struct listener l;
    struct caller c;

    listener_open(&l, serve_refusal_at_once, NULL, NULL);
    caller_open(t, &c, NULL);
    for (int i = 0; i < 200; i++) {
        CHECK_OK(caller_post(&c, l.origin, body));
        CHECK_INT(503, c.answer.status);
        CHECK_STR("busy", caller_body(&c));
        hf_scope_reset(c.s);
    }
    caller_close(&c);
    listener_close(&l);
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

/* (2) */
TEST(transport_end, sending_ends_with_the_deadline_too)
{
    const struct ending e = {
        .serve = serve_nothing, .body = LARGE, .deadline_ms = 120, .status = HF_TIMEOUT, .ms = 120};

    check_ending(t, &e);
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

/* ---- descriptors ---------------------------------------------------------------------------- */

enum { FEW = 200 };

/* Let there be no descriptor; how many were taken for that. */
static int take_all_descriptors(int *taken)
{
    int len = 0;

    while (len < FEW && (taken[len] = dup(STDERR_FILENO)) >= 0)
        len++;
    CHECK(len < FEW);
    return len;
}

struct giver {
    struct caller *c;
    struct connection *connection;
};

static void *give_back_soon(void *user)
{
    struct giver *giver = user;

    sleep_ms(60);
    hf__connection_keep(giver->c->transport, giver->connection);
    return NULL;
}

/* (C6) */
TEST(transport_end, without_descriptors_calls_take_turns)
{
    struct rlimit before, few;
    struct listener l;
    struct caller c;
    struct giver giver = {.c = &c};
    struct patience patience;
    pthread_t thread;
    int taken[FEW], len;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("hello")));
    c.call.origin = hf_str_from(l.origin);
    hf__patience_begin(&patience, c.s, &c.call);
    CHECK_OK(hf__connection_take(&patience, c.transport, c.call.origin, &giver.connection));
    CHECK_INT(0, getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    few.rlim_cur = FEW;
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &few));
    len = take_all_descriptors(taken);

    c.call.timeout_ms = 80; /* nobody gives it back */
    CHECK_STATUS(HF_IO, caller_post(&c, l.origin, HF_STR("hello")));
    CHECK(c.took_ms >= 80 && caller_may_retry(&c) && !caller_may_have_happened(&c));
    c.call.timeout_ms = 10000;
    CHECK_INT(0, pthread_create(&thread, NULL, give_back_soon, &giver));
    CHECK_OK(caller_post(&c, l.origin, HF_STR("hello")));
    CHECK_INT(1, caller_stats(&c).connects);
    pthread_join(thread, NULL);

    /* No call has a connection that could be waited for. */
    CHECK_STATUS(HF_IO, caller_post(&c, "http://127.0.0.1:1", HF_STR("hello")));
    CHECK(strstr(hf_scope_error_text(c.s), "no free file descriptor"));
    CHECK(caller_may_retry(&c));
    while (len > 0)
        close(taken[--len]);
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &before));
    caller_close(&c);
    listener_close(&l);
}
