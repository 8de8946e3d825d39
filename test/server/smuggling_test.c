/*
 * server/smuggling_test.c: requests that two readers could understand in two ways.
 *
 * Each is refused, the connection ends, and the request that hides behind it is not executed.
 */
#include "help.h"

#define PUT_BODY "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"smuggled\"}}}"
#define PUT POST_FOR("PutItem") "Content-Length: 50\r\n\r\n" PUT_BODY
#define FIRST "POST / HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0 TARGET("ListTables") SIGNED
#define GET_FIRST "GET / HTTP/1.1\r\nHost: localhost\r\n"

struct attempt {
    int status;
    const char *bytes;
};

static void check_all(struct test *t, const struct attempt *attempts, size_t len)
{
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (size_t i = 0; i < len; i++) {
        for (int split = 0; split < 2; split++) {
            struct hf_str rest;
            struct line c;

            line_open(&site, &c);
            if (split) { /* in two pieces, so that a request waits for its end */
                size_t half = strlen(attempts[i].bytes) / 2;

                line_send(&c, attempts[i].bytes, half);
                sleep_ms(1);
                line_send(&c, attempts[i].bytes + half, strlen(attempts[i].bytes) - half);
            } else {
                line_text(&c, attempts[i].bytes);
            }
            line_text(&c, PUT);
            if (!line_answers(&c))
                fail_msg("attempt %zu has no answer", i);
            line_read(&c);
            if (c.status != attempts[i].status)
                fail_msg("attempt %zu gives %d: %s", i, c.status, attempts[i].bytes);
            CHECK_STR("close", line_field(&c, "Connection"));
            rest = line_rest(&c, 3000);
            CHECK(c.ended);
            CHECK_INT(0, rest.len);
            line_close(&c);
            if (site_has(&site, "smuggled"))
                fail_msg("attempt %zu put its item: %s", i, attempts[i].bytes);
        }
    }
    /* The proof proves something: sent by itself, it does put. */
    CHECK_INT(50, strlen(PUT_BODY));
    CHECK_INT(200, site_status(&site, PUT, NULL));
    CHECK(site_has(&site, "smuggled"));
    site_close(&site);
}

TEST(smuggling, by_two_lengths)
{
    static const struct attempt attempts[] = {
        {400, FIRST "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2\r\ncontent-length: 2\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2, 2\r\n\r\n{}"},
        {400, FIRST "Content-Length: +2\r\n\r\n{}"},
        {400, FIRST "Content-Length: -2\r\n\r\n{}"},
        {400, FIRST "Content-Length: 0x2\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2 \t2\r\n\r\n{}"},
        {400, FIRST "Content-Length:\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2.0\r\n\r\n{}"},
        {400, FIRST "Content-Length: 2;\r\n\r\n{}"},
        {413, FIRST "Content-Length: 18446744073709551618\r\n\r\n{}"},
        {413, FIRST "Content-Length: 99999999999999999999999999\r\n\r\n{}"},
        {400, "POST / HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
              "2\r\n{}\r\n0\r\n\r\n"},
    };

    check_all(t, attempts, ARRAY_LEN(attempts));
}

TEST(smuggling, by_transfer_codings)
{
    static const struct attempt attempts[] = {
        {501, FIRST "Transfer-Encoding: identity\r\n\r\n{}"},
        {501, FIRST "Transfer-Encoding: gzip\r\n\r\n{}"},
        {501, FIRST "Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {501, FIRST "Transfer-Encoding: chunked, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {501, FIRST "Transfer-Encoding: chunked, identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {501, FIRST "Transfer-Encoding: xchunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {501, FIRST "Transfer-Encoding: \"chunked\"\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {501, FIRST "Transfer-Encoding:\r\n\r\n{}"},
        {501, FIRST "Transfer-Encoding: chunked;q=1\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n"
                    "2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n"
                    "2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "Transfer-Encoding: \x0B"
                    "chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "Transfer-Encoding : chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "Transfer-Encoding\t: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST " Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
        {400, FIRST "X: y\r\n Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"},
    };

    check_all(t, attempts, ARRAY_LEN(attempts));
}

#define CHUNKED FIRST "Transfer-Encoding: chunked\r\n\r\n"

TEST(smuggling, by_chunks)
{
    static const struct attempt attempts[] = {
        {400, CHUNKED "x\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "-2\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "+2\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "0x2\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED " 2\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2 \r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2 ;a=b\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\n0\r\n\r\n"},
        {400, CHUNKED "2\r\n{}0\r\n\r\n"},
        {400, CHUNKED "2\r\n{} \r\n0\r\n\r\n"},
        {400, CHUNKED "1\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2;\x01\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2;a\rb\r\n{}\r\n0\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\r\n0\r\nContent-Length: 5\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\r\n0\r\nTransfer-Encoding: chunked\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\r\n0\r\nHost: other\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\r\n0\r\n a: b\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\r\n0\r\na\r\n\r\n"},
        {400, CHUNKED "2\r\n{}\r\n0\r\n\n"},
        {413, CHUNKED "FFFFFFFFFFFFFFFFF2\r\n{}\r\n0\r\n\r\n"},
        {413, CHUNKED "10000000000000002\r\n{}\r\n0\r\n\r\n"},
        {413, CHUNKED "1000001\r\n{}\r\n0\r\n\r\n"},
    };

    check_all(t, attempts, ARRAY_LEN(attempts));
}

TEST(smuggling, by_lines_and_fields)
{
    static const struct attempt attempts[] = {
        {400, "GET / HTTP/1.1\nHost: localhost\n\n"},
        {400, "GET / HTTP/1.1\r\nHost: localhost\n\r\n"},
        {400, GET_FIRST "\n"},
        {400, GET_FIRST "A: b\rC: d\r\n\r\n"},
        {400, GET_FIRST "A: b\r\n\tc\r\n\r\n"},
        {400, GET_FIRST "A: b\r\n c\r\n\r\n"},
        {400, GET_FIRST "A : b\r\n\r\n"},
        {400, GET_FIRST ": b\r\n\r\n"},
        {400, GET_FIRST "A\r\n\r\n"},
        {400, GET_FIRST "A b: c\r\n\r\n"},
        {400, GET_FIRST "A\x80: c\r\n\r\n"},
        {400, GET_FIRST "A: b\x7F\r\n\r\n"},
        {400, GET_FIRST "A: b\x01\r\n\r\n"},
        {400, GET_FIRST "Host: localhost\r\n\r\n"},
        {400, GET_FIRST "host: evil\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a@b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\nHost: localhost:80:80\r\n\r\n"},
        {400, "GET http://other/ HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET  / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET /  HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET /\tHTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, " GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET / HTTP/1.1 \r\nHost: localhost\r\n\r\n"},
        {400, "GET / http/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET / HTTP/1.11\r\nHost: localhost\r\n\r\n"},
        {400, "GET /\r\n\r\n"},
        {400, "GET / HTTP/1.1\r\n Host: localhost\r\n\r\n"},
        {400, "GET x HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET /a b HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "GET /#a HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {400, "G(T / HTTP/1.1\r\nHost: localhost\r\n\r\n"},
        {505, "GET / HTTP/1.2\r\nHost: localhost\r\n\r\n"},
        {505, "GET / HTTP/2.0\r\nHost: localhost\r\n\r\n"},
        {505, "GET / HTTP/0.9\r\nHost: localhost\r\n\r\n"},
        {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
        {417, GET_FIRST "Expect: 200-ok\r\n\r\n"},
        {400, "\x16\x03\x01\x02"},
    };

    check_all(t, attempts, ARRAY_LEN(attempts));
}

/* A NUL cannot be in the strings above. */
TEST(smuggling, by_nul_bytes)
{
    static const char in_value[] = GET_FIRST "A: b\0c\r\n\r\n";
    static const char in_name[] = GET_FIRST "A\0: c\r\n\r\n";
    static const char in_target[] = "GET /\0 HTTP/1.1\r\nHost: localhost\r\n\r\n";
    const struct {
        const char *bytes;
        size_t len;
    } cases[] = {{in_value, sizeof(in_value) - 1},
                 {in_name, sizeof(in_name) - 1},
                 {in_target, sizeof(in_target) - 1}};
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct line c;

        line_open(&site, &c);
        line_send(&c, cases[i].bytes, cases[i].len);
        line_text(&c, PUT);
        line_read(&c);
        CHECK_INT(400, c.status);
        CHECK(line_ends(&c, DEADLINE_MS));
        line_close(&c);
    }
    CHECK(!site_has(&site, "smuggled"));
    site_close(&site);
}

/* Requests that close say nothing of what is behind them, whole or not. */
TEST(smuggling, behind_a_request_that_closes)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    line_text(&c, FIRST "Connection: close\r\nContent-Length: 2\r\n\r\n{}" PUT);
    CHECK_ANSWER(&c, 200, NULL);
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    line_open(&site, &c);
    line_text(&c, "GET / HTTP/1.0\r\n\r\n" PUT);
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    CHECK(!site_has(&site, "smuggled"));
    site_close(&site);
}
