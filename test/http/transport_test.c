/*
 * test/http/transport_test.c: calls over loopback connections; (n) is an invariant of transport.c,
 * (Cn) one of connection.c. What ends a call early is in transport_end_test.c, TLS in
 * transport_tls_test.c.
 */
#include "help.h"

#include <fcntl.h>

#define HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"

/* ---- what is sent --------------------------------------------------------------------------- */

/* Keeps what came first, in one piece, and answers. */
static void serve_once_and_keep(struct peer *peer)
{
    char *kept = peer->listener->user;
    ssize_t got = peer_receive(peer, kept, 4096);

    kept[got < 0 ? 0 : got] = '\0';
    peer_say(peer, HELLO);
}

TEST(transport, a_request_leaves_in_one_piece)
{
    struct http_head head = {.method = HF_STR("PUT"), .target = HF_STR("/a%20b?c=d")};
    struct transport_call call = {.head = &head, .body = hf_bytes_of("body", 4)};
    char kept[4097];
    struct listener l;
    struct caller c;

    listener_open(&l, serve_once_and_keep, kept, NULL);
    caller_open(t, &c, NULL);
    head.fields[head.fields_len++] = (struct http_field){HF_STR("Host"), HF_STR("h:1")};
    head.fields[head.fields_len++] = (struct http_field){HF_STR("X-Empty"), HF_STR("")};
    head.fields[head.fields_len++] = (struct http_field){HF_STR("X-Tab"), HF_STR("a\tb \xC3\xBC")};
    call.origin = hf_str_from(l.origin);
    CHECK_OK(hf__transport_call(c.s, c.transport, &call, &c.answer));
    CHECK_STR("PUT /a%20b?c=d HTTP/1.1\r\nHost: h:1\r\nX-Empty: \r\nX-Tab: a\tb \xC3\xBC\r\n"
              "Content-Length: 4\r\n\r\nbody",
              hf_str_from(kept));
    CHECK_STR("hello", caller_body(&c));
    caller_close(&c);
    listener_close(&l);
}

/* GET and kin have no length, others have one even when it is 0. */
TEST(transport, an_empty_body_has_a_length_where_one_is_expected)
{
    static const struct {
        const char *method;
        const char *sent;
    } cases[] = {
        {"GET", "GET / HTTP/1.1\r\nHost: h\r\n\r\n"},
        {"DELETE", "DELETE / HTTP/1.1\r\nHost: h\r\n\r\n"},
        {"POST", "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
        {"PUT", "PUT / HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct http_head head = {.method = hf_str_from(cases[i].method), .target = HF_STR("/")};
        struct transport_call call = {.head = &head};
        char kept[4097];
        struct listener l;
        struct caller c;

        listener_open(&l, serve_once_and_keep, kept, NULL);
        caller_open(t, &c, NULL);
        head.fields[head.fields_len++] = (struct http_field){HF_STR("Host"), HF_STR("h")};
        call.origin = hf_str_from(l.origin);
        CHECK_OK(hf__transport_call(c.s, c.transport, &call, &c.answer));
        CHECK_STR(cases[i].sent, hf_str_from(kept));
        caller_close(&c);
        listener_close(&l);
    }
}

TEST(transport, what_cannot_be_sent_is_refused)
{
    static const char *const origins[] = {
        "",          "127.0.0.1",     "ftp://h",      "http://",       "http://h/",
        "http://h?", "http://u@h:80", "http://h\r\n", "http://h h",    "https://h#x",
        "HTTP",      "http:/h",       "http://h\\x",  "http://h:port", "http://[::1",
    };
    const struct http_field fields[] = {
        {HF_STR("A"), HF_STR("b\r\nC: d")},
        {HF_STR("A"), HF_STR("b\nc")},
        {HF_STR("A"), HF_STR("b\rc")},
        {HF_STR("A"), HF_STR("b\0c")},
        {HF_STR("A"), HF_STR("\r\n")},
        {HF_STR("A"), HF_STR("123456789\x7F")},
        {HF_STR("A B"), HF_STR("c")},
        {HF_STR("A:"), HF_STR("c")},
        {HF_STR(""), HF_STR("c")},
        {HF_STR("A\r\nB"), HF_STR("c")},
        {HF_STR("content-length"), HF_STR("1")},
        {HF_STR("Transfer-Encoding"), HF_STR("chunked")},
    };
    struct http_head head = {.method = HF_STR("POST"), .target = HF_STR("/"), .fields_len = 1};
    struct transport_call call = {.head = &head};
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    for (size_t i = 0; i < ARRAY_LEN(origins); i++)
        CHECK_STATUS(HF_INVALID, caller_post(&c, origins[i], HF_STR("")));
    call.origin = hf_str_from(l.origin);
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        head.fields[0] = fields[i];
        CHECK_STATUS(HF_INVALID, hf__transport_call(c.s, c.transport, &call, &c.answer));
        CHECK(!caller_may_have_happened(&c) && !caller_may_retry(&c));
    }
    head.fields[0] = (struct http_field){HF_STR("A"), HF_STR("b")};
    head.target = HF_STR("/ HTTP/1.1\r\nX: y\r\n\r\n");
    CHECK_STATUS(HF_INVALID, hf__transport_call(c.s, c.transport, &call, &c.answer));
    head.target = HF_STR("");
    CHECK_STATUS(HF_INVALID, hf__transport_call(c.s, c.transport, &call, &c.answer));
    head.target = HF_STR("/");
    head.method = HF_STR("PO ST");
    CHECK_STATUS(HF_INVALID, hf__transport_call(c.s, c.transport, &call, &c.answer));
    CHECK_INT(0, atomic_load(&l.requests));
    caller_close(&c);
    listener_close(&l);
}

/* ---- keeping connections -------------------------------------------------------------------- */

TEST(transport, a_connection_serves_many_calls)
{
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    for (int i = 0; i < 10; i++) {
        char body[32];

        snprintf(body, sizeof(body), "call %d", i);
        CHECK_OK(caller_post(&c, l.origin, hf_str_from(body)));
        CHECK_INT(200, c.answer.status);
        CHECK_STR(body, caller_body(&c));
        CHECK_STR("6", hf__http_answer_field(&c.answer, "content-LENGTH"));
        CHECK(hf__http_answer_field(&c.answer, "Content").ptr == NULL);
        hf_scope_reset(c.s);
    }
    CHECK_INT(1, caller_stats(&c).connects);
    CHECK_INT(9, caller_stats(&c).reuses);
    CHECK_INT(1, caller_stats(&c).idle);
    CHECK_INT(1, atomic_load(&l.accepted));
    caller_close(&c);
    listener_close(&l);
}

TEST(transport, steady_calls_allocate_nothing)
{
    struct listener l;
    struct caller c;
    size_t allocs = 0;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    for (int i = 0; i < 20; i++) {
        CHECK_OK(caller_post(&c, l.origin, HF_STR("body")));
        hf_scope_reset(c.s);
        if (i == 2)
            allocs = t->allocs;
    }
    CHECK_INT(allocs, t->allocs);
    caller_close(&c);
    listener_close(&l);
}

/* One answer and then the end, which the answer did not announce. */
static void serve_one(struct peer *peer)
{
    if (peer_read(peer))
        peer_say(peer, HELLO);
}

/* (C3): a server closes what is idle; the next call must not fall into that hole. */
TEST(transport, a_connection_that_the_server_closed_is_not_used)
{
    struct listener l;
    struct caller c;

    listener_open(&l, serve_one, NULL, NULL);
    caller_open(t, &c, NULL);
    for (int i = 0; i < 5; i++) {
        CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
        CHECK_STR("hello", caller_body(&c));
        wait_until(&l.closed, i + 1);
    }
    CHECK_INT(5, caller_stats(&c).connects);
    CHECK_INT(0, caller_stats(&c).reuses);
    CHECK_INT(1, caller_stats(&c).idle);
    caller_close(&c);
    listener_close(&l);
}

/* Answers, and later says more, which nobody asked for. */
static void serve_late_bytes(struct peer *peer)
{
    while (peer_read(peer)) {
        peer_say(peer, HELLO);
        sleep_ms(10);
        peer_say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong");
        atomic_fetch_add((atomic_int *)peer->listener->user, 1);
    }
}

static void serve_bytes_behind(struct peer *peer)
{
    while (peer_read(peer))
        if (peer_say(peer, HELLO "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"))
            atomic_fetch_add((atomic_int *)peer->listener->user, 1);
}

/* (4) (C3) */
TEST(transport, an_answer_that_nobody_asked_for_is_never_taken)
{
    peer_fn *const servers[] = {serve_late_bytes, serve_bytes_behind};

    for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
        struct listener l;
        struct caller c;

        atomic_int said = 0;

        listener_open(&l, servers[i], &said, NULL);
        caller_open(t, &c, NULL);
        for (int call = 0; call < 3; call++) {
            CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
            CHECK_STR("hello", caller_body(&c));
            wait_until(&said, call + 1);
        }
        CHECK_INT(3, caller_stats(&c).connects);
        caller_close(&c);
        listener_close(&l);
    }
}

static void serve_text(struct peer *peer)
{
    while (peer_read(peer)) {
        peer_say(peer, peer->listener->user);
        if (strstr(peer->listener->user, "HTTP/1.0") && !strstr(peer->listener->user, "keep-alive"))
            return;
    }
}

/* (4): which answers leave a connection that is kept. */
TEST(transport, connections_are_kept_when_the_server_goes_on)
{
    static const struct {
        const char *answer;
        const char *body;
        int kept;
    } cases[] = {
        {HELLO, "hello", 1},
        {"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 5\r\n\r\nhello", "hello", 0},
        {"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 0},
        {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello", "hello", 1},
        {"HTTP/1.0 200 OK\r\n\r\nhello", "hello", 0},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3;x\r\nllo\r\n0\r\nA: "
         "b\r\n\r\n",
         "hello", 1},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", 1},
        {"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nhello", "", 0},
        {"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", "", 1},
        {"HTTP/1.1 100 Continue\r\n\r\n" HELLO, "hello", 1},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *answer = strdup(cases[i].answer);
        struct listener l;
        struct caller c;

        listener_open(&l, serve_text, answer, NULL);
        caller_open(t, &c, NULL);
        CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
        CHECK_STR(cases[i].body, caller_body(&c));
        CHECK_INT(cases[i].kept, caller_stats(&c).idle);
        CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
        CHECK_STR(cases[i].body, caller_body(&c));
        CHECK_INT(cases[i].kept, caller_stats(&c).reuses);
        caller_close(&c);
        listener_close(&l);
        free(answer);
    }
}

TEST(transport, a_head_request_has_an_answer_without_a_body)
{
    struct http_head head = {.method = HF_STR("HEAD"), .target = HF_STR("/"), .fields_len = 1};
    struct transport_call call = {.head = &head};
    char answer[] = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n";
    struct listener l;
    struct caller c;

    listener_open(&l, serve_text, answer, NULL);
    caller_open(t, &c, NULL);
    head.fields[0] = (struct http_field){HF_STR("Host"), HF_STR("h")};
    call.origin = hf_str_from(l.origin);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf__transport_call(c.s, c.transport, &call, &c.answer));
        CHECK_STR("500", hf__http_answer_field(&c.answer, "Content-Length"));
        CHECK_INT(0, c.answer.body.len);
    }
    CHECK_INT(1, caller_stats(&c).reuses);
    caller_close(&c);
    listener_close(&l);
}

/* By the clock of the env, so that a test need not wait. */
TEST(transport, a_connection_that_is_idle_for_too_long_is_not_used)
{
    struct transport_options options = {.env = test_env(t), .idle_ms = 5000};
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, &options);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    test_advance_ms(t, 5000);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_INT(1, caller_stats(&c).connects);
    test_advance_ms(t, 5001);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK_INT(2, caller_stats(&c).connects);
    CHECK_INT(1, caller_stats(&c).idle);
    caller_close(&c);
    listener_close(&l);
}

/* Connections to places that are not called any more do not stay forever. */
TEST(transport, old_connections_to_other_places_go_too)
{
    struct transport_options options = {.env = test_env(t), .idle_ms = 5000};
    struct listener l[3];
    struct caller c;

    caller_open(t, &c, &options);
    for (int i = 0; i < 3; i++) {
        listener_open(&l[i], peer_echo, NULL, NULL);
        CHECK_OK(caller_post(&c, l[i].origin, HF_STR("x")));
    }
    CHECK_INT(3, caller_stats(&c).idle);
    test_advance_ms(t, 5001);
    CHECK_OK(caller_post(&c, l[1].origin, HF_STR("x")));
    CHECK_INT(1, caller_stats(&c).idle);
    caller_close(&c);
    for (int i = 0; i < 3; i++)
        listener_close(&l[i]);
}

TEST(transport, no_more_than_so_many_connections_are_kept)
{
    struct transport_options options = {.idle_max = 2};
    struct listener l[4];
    struct caller c;

    caller_open(t, &c, &options);
    for (int i = 0; i < 4; i++) {
        listener_open(&l[i], peer_echo, NULL, NULL);
        CHECK_OK(caller_post(&c, l[i].origin, HF_STR("x")));
        CHECK_INT(i < 2 ? i + 1 : 2, caller_stats(&c).idle);
    }
    /* The oldest went, the newest are there. */
    CHECK_OK(caller_post(&c, l[2].origin, HF_STR("x")));
    CHECK_OK(caller_post(&c, l[3].origin, HF_STR("x")));
    CHECK_INT(2, caller_stats(&c).reuses);
    CHECK_OK(caller_post(&c, l[0].origin, HF_STR("x")));
    CHECK_INT(5, caller_stats(&c).connects);
    caller_close(&c);
    for (int i = 0; i < 4; i++)
        listener_close(&l[i]);
}

/* ---- sizes ---------------------------------------------------------------------------------- */

TEST(transport, large_bodies_go_both_ways)
{
    static const size_t sizes[] = {64 * 1024, 64 * 1024 + 1, 1024 * 1024, 16 * 1024 * 1024};
    size_t most = sizes[ARRAY_LEN(sizes) - 1];
    char *body = malloc(most);
    struct listener l;
    struct caller c;

    assert_non_null(body);
    for (size_t i = 0; i < most; i++)
        body[i] = (char)(i * 31 + i / 4096);
    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        CHECK_OK(caller_post(&c, l.origin, hf_str_of(body, sizes[i])));
        CHECK_INT(sizes[i], c.answer.body.len);
        CHECK(memcmp(body, c.answer.body.ptr, sizes[i]) == 0);
        hf_scope_reset(c.s);
    }
    CHECK_INT(1, caller_stats(&c).connects);
    caller_close(&c);
    listener_close(&l);
    free(body);
}

TEST(transport, an_answer_may_not_be_larger_than_asked_for)
{
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    c.call.answer_max = 5;
    CHECK_OK(caller_post(&c, l.origin, HF_STR("hello")));
    CHECK_STATUS(HF_LIMIT, caller_post(&c, l.origin, HF_STR("hello!")));
    CHECK(strstr(hf_scope_error_text(c.s), "more than 5 bytes") != NULL);
    CHECK(caller_may_have_happened(&c) && !caller_may_retry(&c));
    CHECK_INT(0, caller_stats(&c).idle);
    caller_close(&c);
    listener_close(&l);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 32, CALLS = 50 };

struct work {
    struct transport *transport;
    const char *origin;
    int number;
    int wrong;
};

static void *run_calls(void *argument)
{
    struct work *work = argument;
    struct hf_scope *s = hf_scope_new(NULL);
    struct http_head head = {.method = HF_STR("POST"), .target = HF_STR("/"), .fields_len = 1};
    struct transport_call call = {.origin = hf_str_from(work->origin), .head = &head};
    char body[64];

    head.fields[0] = (struct http_field){HF_STR("Host"), HF_STR("h")};
    for (int i = 0; i < CALLS; i++) {
        struct http_answer answer;
        int len = snprintf(body, sizeof(body), "thread %d, call %d", work->number, i);

        call.body = hf_bytes_of(body, (size_t)len);
        work->wrong += hf__transport_call(s, work->transport, &call, &answer) != HF_OK ||
                       bytes_compare(answer.body.ptr, answer.body.len, body, (size_t)len) != 0;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* (C1): each gets the answer to its own request. */
TEST(transport, threads_share_it)
{
    struct transport_options options = {.idle_max = 8};
    struct work work[THREADS];
    pthread_t threads[THREADS];
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, &options);
    for (int i = 0; i < THREADS; i++) {
        work[i] = (struct work){.transport = c.transport, .origin = l.origin, .number = i};
        CHECK_INT(0, pthread_create(&threads[i], NULL, run_calls, &work[i]));
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(0, work[i].wrong);
    }
    CHECK_INT(THREADS * CALLS, atomic_load(&l.requests));
    CHECK_INT(THREADS * CALLS, caller_stats(&c).connects + caller_stats(&c).reuses);
    CHECK(caller_stats(&c).idle <= 8);
    caller_close(&c);
    listener_close(&l);
}

/* ---- memory --------------------------------------------------------------------------------- */

TEST(transport, any_allocation_may_fail)
{
    char *body = malloc(20000);
    struct listener l;

    assert_non_null(body);
    memset(body, 'x', 20000);
    listener_open(&l, peer_echo, NULL, NULL);
    ALLOC_SWEEP (t, nth) {
        struct transport_options options = {.env = test_env(t),
                                            .ca_file = HF_STR("/a"),
                                            .no_proxy = HF_STR("b")};
        struct caller c = {.s = hf_scope_new(test_env(t))};
        enum hf_status status = c.s ? hf__transport_open(c.s, &options, &c.transport) : HF_NOMEM;
        int before = atomic_load(&l.requests);

        for (int i = 0; i < 2 && status == HF_OK; i++) {
            status = caller_post(&c, l.origin, hf_str_of(body, i ? 20000 : 3));
            if (status == HF_OK)
                CHECK_INT(i ? 20000 : 3, c.answer.body.len);
            /* What was answered was sent, and what was not sent cannot have been read. */
            else if (!caller_may_have_happened(&c))
                CHECK_INT(before + i, atomic_load(&l.requests));
        }
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf__transport_close(c.transport);
        hf_scope_free(c.s);
    }
    listener_close(&l);
    free(body);
}

/* What the program starts does not inherit a connection. */
TEST(transport, sockets_are_closed_on_exec)
{
    struct listener l;
    struct caller c;

    listener_open(&l, peer_echo, NULL, NULL);
    caller_open(t, &c, NULL);
    CHECK_OK(caller_post(&c, l.origin, HF_STR("x")));
    CHECK(fcntl(c.transport->newest->fd, F_GETFD) & FD_CLOEXEC);
    caller_close(&c);
    listener_close(&l);
}

TEST(transport, closing_nothing_is_fine)
{
    hf__transport_close(NULL);
}
