/*
 * server/pipeline_test.c: many requests on one connection: keeping it, ending it, sending ahead,
 * chunks, and asking before sending.
 */
#include "help.h"

#define GET_LIVE "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"

static void send_str(struct line *c, struct hf_str text)
{
    line_send(c, text.ptr, text.len);
}

/* ---- keeping and ending --------------------------------------------------------------------- */

TEST(pipeline, connections_are_kept)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (int i = 0; i < 50; i++) {
        line_call(&c, "ListTables", i % 3 ? "{}" : "{");
        CHECK_ANSWER(&c, i % 3 ? 200 : 400, NULL);
        CHECK(!line_field(&c, "Connection").ptr);
    }
    CHECK_INT(2, site_metric(&site, "holdfast_connections_total"));
    line_close(&c);
    site_close(&site);
}

TEST(pipeline, connections_end_when_asked)
{
    static const struct {
        const char *request;
        const char *connection; /* of the answer; NULL: none */
        bool ends;
    } cases[] = {
        {"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", NULL, false},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive\r\n\r\n", NULL, false},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "close", true},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: CLOSE\r\n\r\n", "close", true},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: x, close\r\n\r\n", "close", true},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: x\r\nConnection: close\r\n\r\n", "close",
         true},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: keep-alive, close\r\n\r\n", "close",
         true},
        {"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: closed\r\n\r\n", NULL, false},
        {"GET / HTTP/1.0\r\n\r\n", "close", true},
        {"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", "keep-alive", false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", "keep-alive", false},
        {"GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n", "close", true},
        {"GET /none HTTP/1.0\r\n\r\n", "close", true},
    };
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct line c;

        line_open(&site, &c);
        line_text(&c, cases[i].request);
        line_read(&c);
        if (cases[i].connection)
            CHECK_STR(cases[i].connection, line_field(&c, "Connection"));
        else
            CHECK(!line_field(&c, "Connection").ptr);
        if (cases[i].ends) {
            CHECK(line_ends(&c, DEADLINE_MS));
            CHECK(!c.broken);
        } else {
            line_text(&c, GET_LIVE);
            line_read(&c);
            CHECK_STR("alive\n", c.body);
        }
        line_close(&c);
    }
    site_close(&site);
}

/* Who sends no more still hears the answers, all of them, and then the end. */
TEST(pipeline, half_closed_clients_are_answered)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    site_put(&site, "big", 300000);
    line_open(&site, &c);
    line_call(&c, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    line_finish_sending(&c);
    CHECK_ANSWER(&c, 200, "{}");
    CHECK(line_ends(&c, DEADLINE_MS));
    CHECK(!c.broken);
    line_close(&c);
    CHECK(site_has(&site, "a"));

    line_open_small(&site, &c, 4096);
    for (int i = 0; i < 20; i++)
        line_call(&c, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    line_finish_sending(&c);
    for (int i = 0; i < 20; i++) {
        CHECK_ANSWER(&c, 200, NULL);
        CHECK(c.body.len > 300000);
    }
    CHECK(line_ends(&c, DEADLINE_MS));
    CHECK(!c.broken);
    line_close(&c);

    line_open(&site, &c); /* half a request stays half */
    line_text(&c, "POST / HTTP/1.1\r\nHost: loc");
    line_finish_sending(&c);
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    site_close(&site);
}

/* An empty line before a request is forgiven, as some clients send one behind a body. */
TEST(pipeline, one_empty_line_is_forgiven)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (int i = 0; i < 3; i++)
        line_text(&c, "\r\n" GET_LIVE);
    for (int i = 0; i < 3; i++) {
        line_read(&c);
        CHECK_STR("alive\n", c.body);
    }
    line_close(&c);
    site_close(&site);
}

/* ---- sending ahead -------------------------------------------------------------------------- */

/* Each request puts its number; each answer has the number that was there before. */
static void check_ahead(struct site *site, int count, size_t piece)
{
    struct hf__buf all = {.scope = site->s};
    struct line c;

    for (int i = 0; i < count; i++)
        hf__buf_put_str(
            &all, call_text(site->s, "PutItem",
                            hf_scope_format(site->s,
                                            "{'TableName':'tab','Item':{'pk':{'S':'x'},'n':{'N':"
                                            "'%d'}},'ReturnValues':'ALL_OLD'}",
                                            i)
                                .ptr));
    line_open(site, &c);
    for (size_t at = 0; at < all.len; at += piece)
        line_send(&c, all.ptr + at, all.len - at < piece ? all.len - at : piece);
    for (int i = 0; i < count; i++)
        CHECK_ANSWER(&c, 200,
                     i == 0 ? NULL
                            : hf_scope_format(site->s,
                                              "{\"Attributes\":{\"n\":{\"N\":\"%d\"},"
                                              "\"pk\":{\"S\":\"x\"}}}",
                                              i - 1)
                                  .ptr);
    CHECK(!line_ends(&c, 30));
    line_close(&c);
}

TEST(pipeline, answers_come_in_order)
{
    struct site site;

    site_open(t, &site, &(struct server_options){.loops = 2});
    check_ahead(&site, 16, 1 << 20);
    check_ahead(&site, 16, 1);
    check_ahead(&site, 1000, 1 << 20);
    check_ahead(&site, 1000, 333);
    site_close(&site);
}

/* Answers of 390 KiB, far more than OUTPUT_PAUSE together: the server has only some at a time. */
TEST(pipeline, large_answers_wait_for_room)
{
    enum { COUNT = 200 };
    struct hf__buf all = {0};
    size_t before, most = 0;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    site_put(&site, "a", 390000);
    site_put(&site, "b", 390000);
    all.scope = site.s;
    for (int i = 0; i < COUNT; i++)
        hf__buf_put_str(&all, call_text(site.s, "GetItem",
                                        i % 2 ? "{'TableName':'tab','Key':{'pk':{'S':'a'}}}"
                                              : "{'TableName':'tab','Key':{'pk':{'S':'b'}}}"));
    before = atomic_load(&site.bytes);
    line_open_small(&site, &c, 4096);
    line_send(&c, all.ptr, all.len);
    sleep_ms(100); /* it answers what it can, and waits for us */
    for (int i = 0; i < COUNT; i++) {
        size_t now = atomic_load(&site.bytes);

        most = now > most ? now : most;
        CHECK_ANSWER(&c, 200, NULL);
        CHECK(contains(hf_str_of(c.body.ptr, 30),
                       i % 2 ? "{\"pk\":{\"S\":\"a\"}" : "{\"pk\":{\"S\":\"b\"}"));
        CHECK(c.body.len > 390000);
    }
    CHECK(most - before < 6 * 1024 * 1024);
    line_call(&c, "ListTables", "{}");
    CHECK_ANSWER(&c, 200, NULL);
    line_close(&c);
    site_close(&site);
}

/* Many connections on several loops, each with requests under way at the same time. */
TEST(pipeline, many_connections_at_once)
{
    enum { CONNECTIONS = 64, ROUNDS = 12 };
    struct line c[CONNECTIONS];
    struct site site;

    site_open(t, &site, &(struct server_options){.loops = 4});
    for (int i = 0; i < CONNECTIONS; i++)
        line_open(&site, &c[i]);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < CONNECTIONS; i++) {
            line_call(
                &c[i], "UpdateItem",
                hf_scope_format(site.s,
                                "{'TableName':'tab','Key':{'pk':{'S':'own %d'}},"
                                "'UpdateExpression':'ADD n :one','ReturnValues':'UPDATED_NEW',"
                                "'ExpressionAttributeValues':{':one':{'N':'1'}}}",
                                i)
                    .ptr);
            line_call(&c[i], "UpdateItem",
                      "{'TableName':'tab','Key':{'pk':{'S':'all'}},'UpdateExpression':"
                      "'ADD n :one','ExpressionAttributeValues':{':one':{'N':'1'}}}");
        }
        for (int i = 0; i < CONNECTIONS; i++) {
            CHECK_ANSWER(
                &c[i], 200,
                hf_scope_format(site.s, "{\"Attributes\":{\"n\":{\"N\":\"%d\"}}}", round + 1).ptr);
            CHECK_ANSWER(&c[i], 200, "{}");
        }
    }
    line_call(&c[0], "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'all'}}}");
    CHECK_ANSWER(&c[0], 200, "{\"Item\":{\"n\":{\"N\":\"768\"},\"pk\":{\"S\":\"all\"}}}");
    for (int i = 0; i < CONNECTIONS; i++)
        line_close(&c[i]);
    site_close(&site);
}

/* Other connections go on while one does not read. */
TEST(pipeline, others_go_on_beside_a_slow_reader)
{
    struct site site;
    struct line slow, c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    site_put(&site, "a", 390000);
    line_open_small(&site, &slow, 4096);
    for (int i = 0; i < 30; i++)
        line_call(&slow, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");
    line_open(&site, &c);
    for (int i = 0; i < 100; i++) {
        line_call(&c, "ListTables", "{}");
        CHECK_ANSWER(&c, 200, NULL);
    }
    line_close(&c);
    for (int i = 0; i < 30; i++)
        CHECK_ANSWER(&slow, 200, NULL);
    line_close(&slow);
    site_close(&site);
}

/*
 * A request that came half, behind one whose answer took long to send, has the time that a body
 * has, not only that of a head.
 */
TEST(pipeline, half_a_request_behind_a_large_answer_keeps_its_time)
{
    enum { LEFT = 5 };
    struct hf__buf all = {0};
    int fd = listen_small(4096);
    struct site site;
    struct line c;

    site_open(t, &site,
              &(struct server_options){
                  .sockets = &fd, .sockets_len = 1, .head_ms = 300, .body_ms = 8 * DEADLINE_MS});
    site_put(&site, "big", 390000);
    all.scope = site.s;
    hf__buf_put_str(&all,
                    call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}"));
    hf__buf_put_str(&all,
                    call_text(site.s, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'late'}}}"));
    line_open_small(&site, &c, 4096);
    line_send(&c, all.ptr, all.len - LEFT);
    sleep_ms(50);
    CHECK_ANSWER(&c, 200, NULL);
    sleep_ms(900);
    line_send(&c, all.ptr + all.len - LEFT, LEFT);
    CHECK_ANSWER(&c, 200, "{}");
    line_close(&c);
    site_close(&site);
    close(fd);
}

/* ---- chunks --------------------------------------------------------------------------------- */

TEST(pipeline, bodies_may_be_chunked)
{
    static const char *const bodies[] = {
        "2\r\n{}\r\n0\r\n\r\n",
        "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n",
        "0002;name=value;\"quoted\"\r\n{}\r\n000\r\n\r\n",
        "2\r\n{}\r\n0;last\r\nTrailer: value\r\nX-More: y\r\n\r\n",
        "A\r\n{        }\r\n0\r\n\r\n",
        "a\r\n{        }\r\n0\r\n\r\n",
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        line_text(&c, POST_FOR("ListTables") "Transfer-Encoding: Chunked\r\n\r\n");
        line_text(&c, bodies[i]);
        CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    }
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) { /* a byte at a time, all in a row */
        struct hf_str text =
            hf_scope_format(site.s, POST_FOR("ListTables") "Transfer-Encoding: chunked\r\n\r\n%s",
                            bodies[i]);

        for (size_t j = 0; j < text.len; j++)
            line_send(&c, text.ptr + j, 1);
    }
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++)
        CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    line_close(&c);
    site_close(&site);
}

/* ---- asking before sending ------------------------------------------------------------------ */

#define EXPECTING POST_FOR("ListTables") "Expect: 100-continue\r\n"

TEST(pipeline, who_asks_is_told_to_go_on)
{
    static const char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (int i = 0; i < 3; i++) { /* who waits is told, exactly so and once */
        line_text(&c, EXPECTING "Content-Length: 2\r\n\r\n");
        line_read(&c);
        CHECK_INT(100, c.status);
        CHECK_STR(go_on, hf_str_of((const char *)c.in, c.used));
        line_text(&c, "{");
        CHECK(!line_ends(&c, 20));
        line_text(&c, "}");
        CHECK_ANSWER(&c, 200, NULL);
    }
    line_text(&c, EXPECTING "Transfer-Encoding: chunked\r\n\r\n");
    line_read(&c);
    CHECK_INT(100, c.status);
    line_text(&c, "2\r\n{}\r\n0\r\n\r\n");
    CHECK_ANSWER(&c, 200, NULL);

    /* Who does not wait needs not be told; an empty body is not waited for. */
    line_text(&c, EXPECTING "Content-Length: 2\r\n\r\n{}");
    CHECK_ANSWER(&c, 200, NULL);
    line_text(&c, EXPECTING "Content-Length: 0\r\n\r\n");
    CHECK_ANSWER(&c, 400, SERIALIZATION_BARE);

    /* Behind others of the same iteration. */
    line_text(&c, GET_LIVE GET_LIVE EXPECTING "Content-Length: 2\r\n\r\n");
    line_read(&c);
    line_read(&c);
    CHECK_STR("alive\n", c.body);
    line_read(&c);
    CHECK_INT(100, c.status);
    line_text(&c, "{}" GET_LIVE);
    CHECK_ANSWER(&c, 200, NULL);
    line_read(&c);
    CHECK_STR("alive\n", c.body);

    /* HTTP/1.0 does not know the word. */
    line_text(&c, "POST / HTTP/1.0\r\n" JSON_1_0 TARGET("ListTables") SIGNED
              "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n");
    sleep_ms(20);
    line_text(&c, "{}");
    CHECK_ANSWER(&c, 200, NULL);
    line_close(&c);
    site_close(&site);
}

/* Who is not welcome is told that instead. */
TEST(pipeline, who_asks_to_send_too_much_is_refused)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    line_text(&c, EXPECTING "Content-Length: 16777217\r\n\r\n");
    line_read(&c);
    CHECK_INT(413, c.status);
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);

    line_open(&site, &c);
    line_text(&c, EXPECTING "Transfer-Encoding: chunked\r\n\r\n");
    line_read(&c);
    CHECK_INT(100, c.status);
    line_text(&c, "1000001\r\n");
    line_read(&c);
    CHECK_INT(413, c.status);
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    site_close(&site);
}

/* In every piece of every size, the outcome is the same. */
TEST(pipeline, requests_may_come_in_any_pieces)
{
    struct hf_str text;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    text = call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");
    line_open(&site, &c);
    for (size_t i = 1; i < text.len; i += 7) {
        line_send(&c, text.ptr, i);
        if (i % 5 == 0)
            sleep_ms(1);
        send_str(&c, hf_str_of(text.ptr + i, text.len - i));
        CHECK_ANSWER(&c, 200, "{}");
    }
    line_close(&c);
    site_close(&site);
}
