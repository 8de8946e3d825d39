/*
 * test/http/read_test.c: requests out of bytes; (n) is an invariant of read.c.
 *
 * Every request here is read whole, byte by byte, and in two parts split at every byte, each time
 * with the bytes somewhere else in every call; all must come to the same.
 */
#include "http/http.h"

#include "test.h"

enum { OUTCOME_MAX = 64 * 1024 };

#define GET_LINE "GET / HTTP/1.1\r\n"
#define GET_HEAD GET_LINE "Host: h\r\n"
#define CHUNKED "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"

/* ---- reading in parts ----------------------------------------------------------------------- */

/* A connection that never keeps its bytes in one place. */
struct feed {
    struct http_reader reader;
    uint8_t *bytes;
    size_t len;
    enum http_result result;
    size_t heads; /* times that HTTP_HEAD came */
};

static void feed_begin(struct feed *f, const struct http_limits *limits)
{
    *f = (struct feed){.result = HTTP_MORE};
    memset(&f->reader, 0xA5, sizeof(f->reader)); /* begin must not rely on what was there */
    hf__http_begin(&f->reader, limits);
}

/* Add bytes, move all of them into an allocation of exactly that size, and read. */
static void feed_more(struct feed *f, const char *more, size_t len)
{
    uint8_t *moved = malloc(f->len + len ? f->len + len : 1);

    assert_non_null(moved);
    if (f->len)
        memcpy(moved, f->bytes, f->len);
    if (len)
        memcpy(moved + f->len, more, len);
    if (f->bytes)
        memset(f->bytes, 0xEE, f->len);
    free(f->bytes);
    f->bytes = moved;
    f->len += len;
    f->result = hf__http_read(&f->reader, f->bytes, f->len);
    if (f->result == HTTP_MORE || f->result == HTTP_HEAD)
        CHECK(f->reader.wanted > f->len);
    if (f->result == HTTP_HEAD)
        CHECK_INT(1, ++f->heads);
}

static bool feed_over(const struct feed *f)
{
    return f->result == HTTP_DONE || f->result == HTTP_BAD;
}

static void feed_end(struct feed *f)
{
    free(f->bytes);
    f->bytes = NULL;
}

struct text {
    char *at;
    size_t len;
};

static void add(struct text *out, const char *label, struct hf_str value)
{
    int n = snprintf(out->at + out->len, OUTCOME_MAX - out->len, "%s%s[%.*s]\n", label,
                     value.ptr ? "" : " absent", (int)value.len, value.ptr ? value.ptr : "");

    out->len += (size_t)n;
    assert_true(out->len < OUTCOME_MAX);
}

static void add_number(struct text *out, const char *label, uint64_t value)
{
    char digits[24];
    int n = snprintf(digits, sizeof(digits), "%llu", (unsigned long long)value);

    add(out, label, hf_str_of(digits, (size_t)n));
}

/* All that a caller can learn, as text. */
static void describe(const struct feed *f, char *room)
{
    const struct http_reader *r = &f->reader;
    struct text out = {.at = room};

    if (f->result == HTTP_BAD) {
        add_number(&out, "bad ", (uint64_t)r->error.status);
        add(&out, "", hf_str_from(r->error.text));
        return;
    }
    if (!feed_over(f)) {
        add(&out, "more", (struct hf_str){0});
        return;
    }
    add(&out, "method ", r->head.method);
    add(&out, "target ", r->head.target);
    add(&out, "path ", r->head.path);
    add(&out, "query ", r->head.query);
    add(&out, "host ", r->head.host);
    add_number(&out, "minor ", (uint64_t)r->head.minor);
    add_number(&out, "keep ", r->head.keep_alive);
    add_number(&out, "expect ", r->head.expect_continue);
    add_number(&out, "chunked ", r->head.chunked);
    add_number(&out, "length ", r->head.length);
    for (size_t i = 0; i < r->head.fields_len; i++) {
        add(&out, "name ", r->head.fields[i].name);
        add(&out, "value ", r->head.fields[i].value);
    }
    add_number(&out, "used ", r->used);
    add(&out, "body ", hf_str_of((const char *)r->body.ptr, r->body.len));
}

static void read_stepwise(struct feed *f, const char *bytes, size_t len, size_t first, size_t step,
                          const struct http_limits *limits)
{
    feed_begin(f, limits);
    for (size_t at = 0; at < len && !feed_over(f);) {
        size_t some = at == 0 ? first : step;

        if (some > len - at)
            some = len - at;
        feed_more(f, bytes + at, some);
        at += some;
    }
}

/* (1) (3): the outcome of `bytes` in `f`, after checking that every split comes to the same. */
static void read_any_way(struct feed *f, const char *bytes, size_t len,
                         const struct http_limits *limits)
{
    static char expected[OUTCOME_MAX], actual[OUTCOME_MAX];
    size_t splits = len < 3000 ? len : 0;
    struct feed other;

    read_stepwise(f, bytes, len, len, len, limits);
    describe(f, expected);
    for (size_t first = 1; first < splits; first++) {
        read_stepwise(&other, bytes, len, first, len, limits);
        describe(&other, actual);
        feed_end(&other);
        assert_string_equal(expected, actual);
    }
    read_stepwise(&other, bytes, len, 1, splits ? 1 : 997, limits);
    describe(&other, actual);
    feed_end(&other);
    assert_string_equal(expected, actual);
}

static void read_text(struct feed *f, const char *text)
{
    read_any_way(f, text, strlen(text), NULL);
}

static void check_bad(const char *bytes, size_t len, const struct http_limits *limits, int status,
                      const char *text, int line)
{
    struct feed f;

    read_any_way(&f, bytes, len, limits);
    if (f.result != HTTP_BAD || f.reader.error.status != status ||
        (text && strcmp(f.reader.error.text, text) != 0))
        print_message("line %d: result %d, %d %s\n", line, (int)f.result, f.reader.error.status,
                      f.result == HTTP_BAD ? f.reader.error.text : "");
    CHECK_INT(HTTP_BAD, f.result);
    CHECK_INT(status, f.reader.error.status);
    if (text)
        CHECK_STR(text, hf_str_from(f.reader.error.text));
    /* It stays bad. */
    CHECK_INT(HTTP_BAD, hf__http_read(&f.reader, f.bytes, f.len));
    feed_end(&f);
}

static void check_good(const char *bytes, size_t len, const struct http_limits *limits, int line)
{
    struct feed f;

    read_any_way(&f, bytes, len, limits);
    if (f.result != HTTP_DONE)
        print_message("line %d: result %d, %d %s\n", line, (int)f.result, f.reader.error.status,
                      f.result == HTTP_BAD ? f.reader.error.text : "");
    CHECK_INT(HTTP_DONE, f.result);
    CHECK_INT(len, f.reader.used);
    feed_end(&f);
}

/* A literal may have NUL in it. */
#define BAD(status, text, literal)                                                                 \
    check_bad((literal), sizeof(literal) - 1, NULL, (status), (text), __LINE__)
#define GOOD(literal) check_good((literal), sizeof(literal) - 1, NULL, __LINE__)

/* ---- whole requests ------------------------------------------------------------------------- */

TEST(read, a_request_of_an_sdk)
{
    struct feed f;
    const struct http_head *head = &f.reader.head;

    read_text(&f, "POST /a%20b?x=1&y HTTP/1.1\r\n"
                  "Host: localhost:8000\r\n"
                  "X-Amz-Target:DynamoDB_20120810.GetItem\r\n"
                  "Empty:\r\n"
                  "Blank: \t \r\n"
                  "Latin: \xE9t\xE9 \x80\xFF\r\n"
                  "Tabs:\t a \t b \t\r\n"
                  "content-LENGTH: 5\r\n"
                  "X-Amz-Target: second\r\n"
                  "\r\n"
                  "hello");
    CHECK_INT(HTTP_DONE, f.result);
    CHECK_STR("POST", head->method);
    CHECK_STR("/a%20b?x=1&y", head->target);
    CHECK_STR("/a%20b", head->path);
    CHECK_STR("x=1&y", head->query);
    CHECK_STR("localhost:8000", head->host);
    CHECK_INT(1, head->minor);
    CHECK(head->keep_alive && !head->expect_continue && !head->chunked);
    CHECK_INT(5, head->length);
    CHECK_INT(8, head->fields_len);
    CHECK_STR("DynamoDB_20120810.GetItem", hf__http_field(head, "x-amz-target"));
    CHECK_STR("", hf__http_field(head, "Empty"));
    CHECK(hf__http_field(head, "Empty").ptr != NULL);
    CHECK_STR("", hf__http_field(head, "Blank"));
    CHECK_STR("\xE9t\xE9 \x80\xFF", hf__http_field(head, "Latin"));
    CHECK_STR("a \t b", hf__http_field(head, "Tabs"));
    CHECK(hf__http_field(head, "Absent").ptr == NULL);
    CHECK_STR("hello", hf_str_of((const char *)f.reader.body.ptr, f.reader.body.len));
    CHECK_INT(f.len, f.reader.used);
    feed_end(&f);
}

TEST(read, a_chunked_body_is_put_together)
{
    struct feed f;

    read_text(&f, CHUNKED "5\r\nhello\r\n001;a=b;c=\"d\te\"\r\n,\r\nA\r\n 123456789\r\n0;end\r\n"
                          "X-Sum: 1\r\nX-More: 2\r\n\r\n");
    CHECK_INT(HTTP_DONE, f.result);
    CHECK(f.reader.head.chunked);
    CHECK_INT(2, f.reader.head.fields_len); /* trailers are dropped */
    CHECK_STR("hello, 123456789", hf_str_of((const char *)f.reader.body.ptr, f.reader.body.len));
    CHECK_INT(f.len, f.reader.used);
    feed_end(&f);

    read_text(&f, CHUNKED "c\r\nline\r\nline\n\r\r\n0\r\n\r\n");
    CHECK_INT(HTTP_DONE, f.result);
    CHECK_STR("line\r\nline\n\r", hf_str_of((const char *)f.reader.body.ptr, f.reader.body.len));
    feed_end(&f);

    read_text(&f, CHUNKED "0\r\n\r\n");
    CHECK_INT(HTTP_DONE, f.result);
    CHECK_INT(0, f.reader.body.len);
    feed_end(&f);
}

TEST(read, requests_follow_each_other)
{
    char bytes[] = GET_HEAD "\r\n"
                            "POST /2 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc"
                            "\r\nPOST /3 HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
                            "2\r\nde\r\n1\r\nf\r\n0\r\n\r\n"
                            "GET /4 HTTP/1.0\r\n\r\nGET";
    static const char *const paths[] = {"/", "/2", "/3", "/4"}, *const bodies[] = {"", "abc", "def",
                                                                                   ""};
    size_t at = 0, len = sizeof(bytes) - 1;
    struct http_reader reader;

    for (size_t i = 0; i < 4; i++) {
        hf__http_begin(&reader, NULL);
        CHECK_INT(HTTP_DONE, hf__http_read(&reader, (uint8_t *)bytes + at, len - at));
        CHECK_STR(paths[i], reader.head.path);
        CHECK_STR(bodies[i], hf_str_of((const char *)reader.body.ptr, reader.body.len));
        at += reader.used;
    }
    CHECK_INT(3, len - at);
    hf__http_begin(&reader, NULL);
    CHECK_INT(HTTP_MORE, hf__http_read(&reader, (uint8_t *)bytes + at, len - at));
    CHECK_INT(HTTP_MORE, hf__http_read(&reader, (uint8_t *)bytes + at, len - at)); /* nothing new */
}

/* The head is there before the body is, moves along with the bytes, and says what is to come. */
TEST(read, the_head_comes_first)
{
    static const char head[] = "POST /p HTTP/1.1\r\nHost: h\r\nExpect: 100-Continue\r\n"
                               "Content-Length: 10\r\n\r\n";
    struct feed f;

    feed_begin(&f, NULL);
    feed_more(&f, head, 5);
    CHECK_INT(HTTP_MORE, f.result);
    feed_more(&f, head + 5, sizeof(head) - 1 - 5);
    CHECK_INT(HTTP_HEAD, f.result);
    CHECK(f.reader.head.expect_continue);
    CHECK_STR("/p", f.reader.head.path);
    CHECK_INT(sizeof(head) - 1 + 10, f.reader.wanted);
    feed_more(&f, "123", 3);
    CHECK_INT(HTTP_MORE, f.result);
    CHECK_INT(sizeof(head) - 1 + 10, f.reader.wanted);
    CHECK_STR("/p", f.reader.head.path);
    CHECK((const uint8_t *)f.reader.head.path.ptr == f.bytes + 5);
    feed_more(&f, "4567890and more", 15);
    CHECK_INT(HTTP_DONE, f.result);
    CHECK((const uint8_t *)f.reader.head.path.ptr == f.bytes + 5);
    CHECK((const uint8_t *)f.reader.head.fields[2].value.ptr == f.bytes + sizeof(head) - 1 - 6);
    CHECK_INT(sizeof(head) - 1 + 10, f.reader.used);
    CHECK_STR("1234567890", hf_str_of((const char *)f.reader.body.ptr, f.reader.body.len));
    feed_more(&f, "", 0); /* the bytes may move even then */
    CHECK_INT(HTTP_DONE, f.result);
    CHECK((const uint8_t *)f.reader.head.path.ptr == f.bytes + 5);
    CHECK_STR("1234567890", hf_str_of((const char *)f.reader.body.ptr, f.reader.body.len));
    feed_end(&f);

    feed_begin(&f, NULL);
    feed_more(&f, CHUNKED "6\r\nab", sizeof(CHUNKED "6\r\nab") - 1);
    CHECK_INT(HTTP_HEAD, f.result);
    CHECK_INT(f.len + 4 + 2 + 5, f.reader.wanted);
    feed_more(&f, "cdef", 4);
    CHECK_INT(HTTP_MORE, f.result);
    CHECK_INT(f.len + 2 + 5, f.reader.wanted);
    feed_end(&f);
}

/* ---- the request line ----------------------------------------------------------------------- */

TEST(read, request_lines)
{
    static const char version[] = "the request line does not end with an HTTP version";
    static const char method[] = "the request line does not start with a method";
    static const char target[] = "the request target has a character that is not allowed";
    static const char slash[] = "the request target does not start with a slash";

    GOOD("!#$%&'*+-.^_`|~09azAZ / HTTP/1.1\r\nHost: h\r\n\r\n");
    GOOD("GET /!\"$%&'()*+,-./:;<=>?@[\\]^_`{|}~ HTTP/1.1\r\nHost: h\r\n\r\n");
    GOOD("\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
    GOOD("OPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, method, "\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, method, "\nGET / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, "a line does not end with CR LF", "\rGET / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, method, " GET / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, method, "GET\t/ HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, method, "G(T / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, method, "GET\r\nHost: h\r\n\r\n");
    BAD(400, method, "G\xC9T / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, "received TLS on a port for plain HTTP", "\x16\x03\x01\x02");
    BAD(400, "the request target * is for OPTIONS only", "GET * HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, slash, "OPTIONS ** HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, slash, "GET  HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET  / HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, slash, "GET path HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, slash, "CONNECT h:80 HTTP/1.1\r\nHost: h:80\r\n\r\n");
    BAD(400, slash, "GET ftp://h/ HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, target, "GET /a#b HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, target, "GET /a\tb HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, target, "GET /a\x7F HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, target, "GET /\xC3\xA9 HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, target, "GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET /\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET /\r\n\r\n");
    BAD(400, version, "GET / \r\n\r\n");
    BAD(400, version, "GET / HTTP/1.1 \r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / a HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET /  HTTP/1.1\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / http/1.1\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / HTTP/1.1x\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / HTTP/11\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / HTTP/1.1\r\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / HTTP/x.1\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / HTTP/1.x\r\nHost: h\r\n\r\n");
    BAD(400, version, "GET / HTTP/1./\r\nHost: h\r\n\r\n");
    BAD(505, NULL, "GET / HTTP/0.9\r\nHost: h\r\n\r\n");
    BAD(505, NULL, "GET / HTTP/1.2\r\nHost: h\r\n\r\n");
    BAD(505, NULL, "GET / HTTP/3.0\r\nHost: h\r\n\r\n");
    BAD(505, "HTTP/2 is not supported: use HTTP/1.1", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
}

TEST(read, a_target_may_have_the_host)
{
    static const struct {
        const char *target, *path, *query;
    } cases[] = {{"http://h/", "/", NULL},
                 {"HTTPS://H/a/b?c=d", "/a/b", "c=d"},
                 {"http://h", "/", NULL},
                 {"http://h?q", "/", "q"},
                 {"http://h/?", "/", ""},
                 {"/", "/", NULL},
                 {"/?a?b", "/", "a?b"},
                 {"//h/p", "//h/p", NULL},
                 {"/http://x/", "/http://x/", NULL}};
    char text[200];
    struct feed f;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: h\r\n\r\n", cases[i].target);
        read_text(&f, text);
        CHECK_INT(HTTP_DONE, f.result);
        CHECK_STR(cases[i].target, f.reader.head.target);
        CHECK_STR(cases[i].path, f.reader.head.path);
        CHECK((cases[i].query == NULL) == (f.reader.head.query.ptr == NULL));
        if (cases[i].query)
            CHECK_STR(cases[i].query, f.reader.head.query);
        CHECK_STR("h", f.reader.head.host);
        feed_end(&f);
    }
    read_text(&f, "GET http://Other:80/ HTTP/1.0\r\n\r\n");
    CHECK_INT(HTTP_DONE, f.result);
    CHECK_STR("Other:80", f.reader.head.host);
    feed_end(&f);
    BAD(400, "Host is not the host of the request target",
        "GET http://a/ HTTP/1.1\r\nHost: b\r\n\r\n");
    BAD(400, "Host is not the host of the request target",
        "GET http://a/ HTTP/1.1\r\nHost: a:80\r\n\r\n");
    BAD(400, "there is no Host", "GET http://a/ HTTP/1.1\r\n\r\n");
    BAD(400, "the host in the request target is not valid",
        "GET http:/// HTTP/1.1\r\nHost: \r\n\r\n");
    BAD(400, "the host in the request target is not valid",
        "GET http://u@h/ HTTP/1.1\r\nHost: h\r\n\r\n");
}

/* ---- fields --------------------------------------------------------------------------------- */

TEST(read, field_lines)
{
    static const char name[] = "a header field has a name that is not a token";
    static const char value[] = "a header field has a control character in its value";
    static const char line[] = "a line does not end with CR LF";
    static const char fold[] = "a header field goes on in a second line";

    GOOD(GET_HEAD "!#$%&'*+-.^_`|~09azAZ: v\r\n\r\n");
    BAD(400, name, GET_HEAD "A : v\r\n\r\n");
    BAD(400, name, GET_HEAD "A\t: v\r\n\r\n");
    BAD(400, name, GET_HEAD ": v\r\n\r\n");
    BAD(400, name, GET_HEAD "A(b): v\r\n\r\n");
    BAD(400, name, GET_HEAD "A\0: v\r\n\r\n");
    BAD(400, name, GET_HEAD "\xC3\xA9: v\r\n\r\n");
    BAD(400, "a header field has no colon", GET_HEAD "A\r\n\r\n");
    BAD(400, fold, GET_HEAD "A: b\r\n c\r\n\r\n");
    BAD(400, fold, GET_HEAD "A: b\r\n\tc: d\r\n\r\n");
    BAD(400, fold, GET_LINE " Host: h\r\n\r\n");
    BAD(400, value, GET_HEAD "A: b\0c\r\n\r\n");
    BAD(400, value, GET_HEAD "A: b\rc\r\n\r\n");
    BAD(400, value, GET_HEAD "A: b\r\r\n\r\n");
    BAD(400, value, GET_HEAD "A: \x1F\r\n\r\n");
    BAD(400, value, GET_HEAD "A: \x7F\r\n\r\n");
    BAD(400, value, GET_HEAD "A: 1234567\x01 123456789 123456789\r\n\r\n");
    BAD(400, value, GET_HEAD "A: 12345678\x7F 123456789 123456789\r\n\r\n");
    BAD(400, value, GET_HEAD "A: \xFF\xA0\x80 23456\x0B 123456789 123456789\r\n\r\n");
    BAD(400, line, GET_HEAD "A: b\n\r\n");
    BAD(400, line, GET_HEAD "\n");
    BAD(400, line, GET_HEAD "A: b\nB: c\r\n\r\n");
    BAD(400, line, "GET / HTTP/1.1\nHost: h\r\n\r\n");
    BAD(400, line, "GET / HTTP/1.1\n\n");
    BAD(400, name, GET_HEAD "\rA: b\r\n\r\n");
    BAD(400, name, GET_HEAD "\r\r\n\r\n");
}

/* Each control character at each place of a value that is looked through in words. */
TEST(read, control_characters_are_found_anywhere_in_a_value)
{
    char bytes[200];
    struct http_reader reader;

    for (int c = 0; c < 256; c++) {
        bool bad = (c < 0x20 && c != '\t') || c == 0x7F;

        for (size_t at = 0; at < 40; at++) {
            int len = snprintf(bytes, sizeof(bytes),
                               GET_HEAD "A: 0123456789\xE9\x80\xFF"
                                        "3456789\tabcdefghij9876543210\r\n\r\n");

            bytes[sizeof(GET_HEAD "A: ") - 1 + at] = (char)c;
            hf__http_begin(&reader, NULL);
            CHECK_INT(bad ? HTTP_BAD : HTTP_DONE,
                      hf__http_read(&reader, (uint8_t *)bytes, (size_t)len));
        }
    }
}

TEST(read, hosts)
{
    static const char invalid[] = "Host is not a host with an optional port";

    GOOD(GET_LINE "Host:\r\n\r\n");
    GOOD(GET_LINE "hOST: a-b.c_d~%20!$&'()*+,;=\r\n\r\n");
    GOOD(GET_LINE "Host: 127.0.0.1:8000\r\n\r\n");
    GOOD(GET_LINE "Host: h:\r\n\r\n");
    GOOD(GET_LINE "Host: [::1]\r\n\r\n");
    GOOD(GET_LINE "Host: [fe80::1]:8000\r\n\r\n");
    GOOD("GET / HTTP/1.0\r\n\r\n");
    GOOD("GET / HTTP/1.0\r\nHost: h\r\n\r\n");
    BAD(400, "there is no Host", GET_LINE "\r\n");
    BAD(400, "there is no Host", GET_LINE "Hosts: h\r\n\r\n");
    BAD(400, "there is more than one Host", GET_HEAD "Host: h\r\n\r\n");
    BAD(400, "there is more than one Host", GET_HEAD "host:\r\n\r\n");
    BAD(400, "there is more than one Host", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: a b\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: a/b\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: u@h\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: h:80a\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: h:8:0\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: ::1\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: []\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: [::1\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: [::1]x\r\n\r\n");
    BAD(400, invalid, GET_LINE "Host: h\xC3\xA9\r\n\r\n");
}

static void check_flags(const char *text, bool keep_alive, bool expect, int line)
{
    struct feed f;

    read_text(&f, text);
    if (f.result != HTTP_DONE || f.reader.head.keep_alive != keep_alive ||
        f.reader.head.expect_continue != expect)
        print_message("line %d\n", line);
    CHECK_INT(HTTP_DONE, f.result);
    CHECK_INT(keep_alive, f.reader.head.keep_alive);
    CHECK_INT(expect, f.reader.head.expect_continue);
    feed_end(&f);
}

TEST(read, connections_and_expectations)
{
    static const char expectation[] = "unsupported expectation: only 100-continue is supported";

#define FLAGS(keep_alive, expect, text) check_flags(text, keep_alive, expect, __LINE__)
    FLAGS(true, false, GET_HEAD "\r\n");
    FLAGS(false, false, GET_HEAD "Connection: close\r\n\r\n");
    FLAGS(false, false, GET_HEAD "connection: CLOSE\r\n\r\n");
    FLAGS(false, false, GET_HEAD "Connection: upgrade ,\tclose\t,x\r\n\r\n");
    FLAGS(false, false, GET_HEAD "Connection: keep-alive\r\nConnection: close\r\n\r\n");
    FLAGS(false, false, GET_HEAD "Connection: close\r\nConnection: keep-alive\r\n\r\n");
    FLAGS(true, false, GET_HEAD "Connection: closed, xclose, clos\r\n\r\n");
    FLAGS(true, false, GET_HEAD "Connection: ,,\r\n\r\n");
    FLAGS(true, false, GET_HEAD "Connection:\r\n\r\n");
    FLAGS(true, false, GET_HEAD "Connectiom: close\r\n\r\n");
    FLAGS(false, false, "GET / HTTP/1.0\r\n\r\n");
    FLAGS(true, false, "GET / HTTP/1.0\r\nConnection: x, Keep-Alive\r\n\r\n");
    FLAGS(false, false, "GET / HTTP/1.0\r\nConnection: keep-alive, close\r\n\r\n");
    FLAGS(true, true, GET_HEAD "Expect: 100-continue\r\n\r\n");
    FLAGS(true, true, GET_HEAD "EXPECT: 100-CONTINUE\r\nExpect: 100-continue\r\n\r\n");
    FLAGS(false, false, "GET / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n");
    FLAGS(true, false, GET_HEAD "Expext: 200\r\n\r\n");
#undef FLAGS
    BAD(417, expectation, GET_HEAD "Expect: 200-ok\r\n\r\n");
    BAD(417, expectation, GET_HEAD "Expect: 100-continue, x\r\n\r\n");
    BAD(417, expectation, GET_HEAD "Expect:\r\n\r\n");
}

/* ---- where the body ends -------------------------------------------------------------------- */

TEST(read, lengths_are_one_number)
{
    static const char number[] = "Content-Length is not a number";
    static const char twice[] = "there is more than one Content-Length";
    static const char big[] = "the body has more than 16777216 bytes";

    GOOD(GET_HEAD "Content-Length: 0\r\n\r\n");
    GOOD(GET_HEAD "Content-Length: 3\r\n\r\nabc");
    GOOD(GET_HEAD "Content-Length: 0000000000000000000000000003\r\n\r\nabc");
    GOOD("GET / HTTP/1.0\r\nContent-Length: 3\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length:\r\n\r\n");
    BAD(400, number, GET_HEAD "Content-Length: +3\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length: -3\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length: 0x3\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length: 3, 3\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length: 3 3\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length: 3.0\r\n\r\nabc");
    BAD(400, number, GET_HEAD "Content-Length: 99999999999999999999999x\r\n\r\nabc");
    BAD(400, twice, GET_HEAD "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc");
    BAD(400, twice, GET_HEAD "Content-Length: 3\r\ncontent-length: 0\r\n\r\nabc");
    BAD(413, big, GET_HEAD "Content-Length: 16777217\r\n\r\n");
    BAD(413, big, GET_HEAD "Content-Length: 18446744073709551615\r\n\r\n");
    BAD(413, big, GET_HEAD "Content-Length: 18446744073709551616\r\n\r\n");
    BAD(413, big, GET_HEAD "Content-Length: 18446744073709551619\r\n\r\n");
    BAD(413, big, GET_HEAD "Content-Length: 100000000000000000000000000000000000003\r\n\r\n");
}

TEST(read, chunked_is_the_only_transfer_coding)
{
    static const char other[] = "unsupported transfer coding: only chunked is supported";
    static const char both[] = "there are both Content-Length and Transfer-Encoding";
    static const char twice[] = "there is more than one Transfer-Encoding";

    GOOD(GET_HEAD "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    GOOD(GET_HEAD "transfer-encoding:\tCHUNKED \r\n\r\n0\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: gzip\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: gzip, chunked\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: chunked, chunked\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: chunked, identity\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: identity\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: \"chunked\"\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding: xchunked\r\n\r\n");
    BAD(501, other, GET_HEAD "Transfer-Encoding:\r\n\r\n");
    BAD(400, "a header field has a control character in its value",
        GET_HEAD "Transfer-Encoding: \x0B"
                 "chunked\r\n\r\n");
    BAD(400, "a header field has a name that is not a token",
        GET_HEAD "Transfer-Encoding : chunked\r\n\r\n");
    BAD(400, twice, GET_HEAD "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    BAD(400, twice, GET_HEAD "Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    BAD(400, both, GET_HEAD "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
    BAD(400, both, GET_HEAD "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n");
    BAD(400, both, GET_HEAD "Transfer-Encoding: x\r\nContent-Length: 0\r\n\r\n");
    BAD(400, "HTTP/1.0 has no Transfer-Encoding",
        "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
}

TEST(read, chunks)
{
    static const char size[] = "a chunk does not start with its size";
    static const char control[] = "a chunk has a control character in its extensions";
    static const char longer[] = "a chunk is longer than its size says";
    static const char line[] = "a line does not end with CR LF";
    static const char big[] = "the body has more than 16777216 bytes";

    GOOD(CHUNKED "3\r\nabc\r\n0\r\n\r\n");
    GOOD(CHUNKED "0000000000000000000000000003\r\nabc\r\n000\r\n\r\n");
    GOOD(CHUNKED "3;\r\nabc\r\n0;;;= \xFF\r\n\r\n");
    BAD(400, size, CHUNKED "\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED ";x\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED "3 \r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED " 3\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED "3 ;x\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED "+3\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED "-3\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED "0x3\r\nabc\r\n0\r\n\r\n");
    BAD(400, size, CHUNKED "3g\r\nabc\r\n0\r\n\r\n");
    BAD(400, control, CHUNKED "3\r\r\nabc\r\n0\r\n\r\n");
    BAD(400, line, CHUNKED "3\nabc\r\n0\r\n\r\n");
    BAD(400, line, CHUNKED "3;x\nabc\r\n0\r\n\r\n");
    BAD(400, control, CHUNKED "3;x\ry\r\nabc\r\n0\r\n\r\n");
    BAD(400, control, CHUNKED "3;\0\r\nabc\r\n0\r\n\r\n");
    BAD(400, longer, CHUNKED "3\r\nabcd\r\n0\r\n\r\n");
    BAD(400, longer, CHUNKED "3\r\nabc\n0\r\n\r\n");
    BAD(400, longer, CHUNKED "3\r\nabc\rx0\r\n\r\n");
    BAD(400, size, CHUNKED "3\r\nabc\r\n\r\n");
    BAD(413, big, CHUNKED "1000001\r\n");
    BAD(413, big, CHUNKED "1\r\na\r\n1000000\r\n");
    BAD(413, big, CHUNKED "ffffffffffffffff\r\n");
    BAD(413, big, CHUNKED "10000000000000000\r\n");
    BAD(413, big, CHUNKED "10000000000000003\r\nabc\r\n0\r\n\r\n");
    BAD(413, big, CHUNKED "FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF\r\n");
}

TEST(read, trailers_are_checked_like_fields)
{
    static const char misplaced[] =
        "a field that frames or routes the request comes after the body";

    GOOD(CHUNKED "0\r\nA: b\r\nA: b\r\n\r\n");
    BAD(400, "a header field has a name that is not a token", CHUNKED "0\r\nA : b\r\n\r\n");
    BAD(400, "a header field has no colon", CHUNKED "0\r\nA\r\n\r\n");
    BAD(400, "a header field goes on in a second line", CHUNKED "0\r\nA: b\r\n c\r\n\r\n");
    BAD(400, "a header field has a control character in its value", CHUNKED "0\r\nA: b\0\r\n\r\n");
    BAD(400, "a line does not end with CR LF", CHUNKED "0\r\nA: b\n\r\n");
    BAD(400, "a line does not end with CR LF", CHUNKED "0\r\n\n");
    BAD(400, misplaced, CHUNKED "0\r\ncontent-length: 5\r\n\r\n");
    BAD(400, misplaced, CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n");
    BAD(400, misplaced, CHUNKED "0\r\nHOST: h\r\n\r\n");
}

/* ---- limits: what just fits, and one more --------------------------------------------------- */

/* `count` bytes of `c` between two texts. */
static char *stuffed(const char *before, char c, size_t count, const char *after)
{
    size_t a = strlen(before), b = strlen(after);
    char *text = malloc(a + count + b + 1);

    assert_non_null(text);
    memcpy(text, before, a);
    memset(text + a, c, count);
    memcpy(text + a + count, after, b + 1);
    return text;
}

static void check_stuffed(const char *before, size_t count, const char *after,
                          const struct http_limits *limits, const char *problem, int status,
                          int line)
{
    char *text = stuffed(before, 'x', count, after);

    check_good(text, strlen(text), limits, line);
    free(text);
    text = stuffed(before, 'x', count + 1, after);
    check_bad(text, strlen(text), limits, status, problem, line);
    free(text);
}

TEST(read, heads_are_limited)
{
    struct http_limits small = {.head_bytes = 100};

    /* "GET / HTTP/1.1" has 14 bytes, "Host: h" with CR LF 9 */
    check_stuffed("GET /", HTTP_HEAD_MAX - 14, " HTTP/1.1\r\nHost: h\r\n\r\n", NULL,
                  "the request line has more than 16384 bytes", 400, __LINE__);
    check_stuffed("\r\nGET /", 100 - 14, " HTTP/1.1\r\nHost: h\r\n\r\n", &small,
                  "the request line has more than 100 bytes", 400, __LINE__);
    check_stuffed(GET_HEAD "A:", HTTP_HEAD_MAX - 9 - 4, "\r\n\r\n", NULL,
                  "the header fields have more than 16384 bytes", 400, __LINE__);
    check_stuffed(GET_HEAD "A:", 100 - 9 - 4, "\r\n\r\n", &small,
                  "the header fields have more than 100 bytes", 400, __LINE__);
}

/* A line without an end is refused at the limit, not when memory is full. */
TEST(read, what_never_ends_is_refused_at_the_limit)
{
    static const struct {
        const char *before, *problem;
        size_t limit;
    } cases[] = {{"", "the request line has more than 16384 bytes", HTTP_HEAD_MAX + 2},
                 {GET_LINE, "the header fields have more than 16384 bytes", HTTP_HEAD_MAX + 2},
                 {CHUNKED, "the size and extensions of a chunk have more than 256 bytes",
                  HTTP_CHUNK_LINE_MAX + 2}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *text = stuffed(cases[i].before, 'x', cases[i].limit, "");
        size_t len = strlen(text);
        struct feed f;

        read_any_way(&f, text, len - 1, NULL);
        CHECK(!feed_over(&f));
        feed_end(&f);
        check_bad(text, len, NULL, 400, cases[i].problem, __LINE__);
        free(text);
    }
}

TEST(read, fields_are_counted)
{
    char text[4096] = GET_LINE "Host: h\r\n";
    size_t len = strlen(text);

    for (size_t i = 1; i < HTTP_FIELDS_MAX; i++, len += 5)
        memcpy(text + len, "a:b\r\n", 6);
    memcpy(text + len, "\r\n", 3);
    check_good(text, len + 2, NULL, __LINE__);
    memcpy(text + len, "a:b\r\n\r\n", 8);
    check_bad(text, len + 7, NULL, 400, "the request has more than 100 header fields", __LINE__);
}

TEST(read, trailers_count_as_fields)
{
    struct http_limits small = {.head_bytes = 100};
    char text[4096] = CHUNKED "0\r\n";
    size_t len = strlen(text);

    for (size_t i = 2; i < HTTP_FIELDS_MAX; i++, len += 5)
        memcpy(text + len, "a:b\r\n", 6);
    memcpy(text + len, "\r\n", 3);
    check_good(text, len + 2, NULL, __LINE__);
    memcpy(text + len, "a:b\r\n\r\n", 8);
    check_bad(text, len + 7, NULL, 400, "the request has more than 100 header fields", __LINE__);
    /* The fields of CHUNKED have 37 bytes. */
    check_stuffed(CHUNKED "1\r\na\r\n0\r\nA:", 100 - 37 - 4, "\r\n\r\n", &small,
                  "the header fields have more than 100 bytes", 400, __LINE__);
}

TEST(read, bodies_are_limited)
{
    struct http_limits small = {.body_bytes = 5};
    static const char five[] = GET_HEAD "Content-Length: 5\r\n\r\nabcde";
    static const char six[] = GET_HEAD "Content-Length: 6\r\n\r\n";
    static const char chunks[] = CHUNKED "2\r\nab\r\n3\r\ncde\r\n0\r\n\r\n";
    static const char more[] = CHUNKED "2\r\nab\r\n4\r\n";

    check_good(five, sizeof(five) - 1, &small, __LINE__);
    check_bad(six, sizeof(six) - 1, &small, 413, "the body has more than 5 bytes", __LINE__);
    check_good(chunks, sizeof(chunks) - 1, &small, __LINE__);
    check_bad(more, sizeof(more) - 1, &small, 413, "the body has more than 5 bytes", __LINE__);
}

/* (4): extensions, and what else is around the data of chunks. */
TEST(read, what_is_around_chunks_is_limited)
{
    struct http_limits small = {.head_bytes = 50, .body_bytes = 20};
    /* Each of these chunks has 10 bytes around its data, the last one 5, of 70 that are allowed. */
    static const char good[] = CHUNKED "1;2345\r\na\r\n1;2345\r\na\r\n1;2345\r\na\r\n"
                                       "1;2345\r\na\r\n1;2345\r\na\r\n1;2345\r\na\r\n"
                                       "0;2345\r\n\r\n";
    static const char bad[] = CHUNKED "1;2345\r\na\r\n1;2345\r\na\r\n1;2345\r\na\r\n"
                                      "1;2345\r\na\r\n1;2345\r\na\r\n1;2345\r\na\r\n"
                                      "0;23456\r\n\r\n";

    check_stuffed(CHUNKED "3;", HTTP_CHUNK_LINE_MAX - 2, "\r\nabc\r\n0\r\n\r\n", NULL,
                  "the size and extensions of a chunk have more than 256 bytes", 400, __LINE__);
    check_good(good, sizeof(good) - 1, &small, __LINE__);
    check_bad(bad, sizeof(bad) - 1, &small, 400,
              "the sizes and extensions of chunks have more than 70 bytes", __LINE__);
}

/* ---- random requests ------------------------------------------------------------------------ */

/* Pieces put together at random: whatever comes out, every split agrees on it. */
TEST(read, any_split_of_any_pieces_comes_to_the_same)
{
    static const char *const pieces[] = {"GET ",
                                         "POST / HTTP/1.1\r\n",
                                         "Host: h\r\n",
                                         "\r\n",
                                         "\n",
                                         "\r",
                                         "A: b\r\n",
                                         "Content-Length: 4\r\n",
                                         "0\r\n",
                                         "4\r\nabcd\r\n",
                                         "0\r\n\r\n",
                                         " ",
                                         "3;x\r\n",
                                         "abc",
                                         "Transfer-Encoding: chunked\r\n",
                                         "Connection: close\r\n",
                                         ":",
                                         CHUNKED,
                                         GET_HEAD};
    char text[2048];

    for (int round = 0; round < 400; round++) {
        size_t len = 0, count = 1 + test_random_below(t, 12);
        struct feed f;

        while (count--) {
            const char *piece = pieces[test_random_below(t, sizeof(pieces) / sizeof(pieces[0]))];

            memcpy(text + len, piece, strlen(piece) + 1);
            len += strlen(piece);
        }
        read_any_way(&f, text, len, NULL);
        feed_end(&f);
    }
}

TEST(read, reasons_of_all_statuses_are_known)
{
    static const int statuses[] = {400, 413, 417, 501, 505};

    for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++)
        CHECK(strcmp("Unknown", hf__http_reason(statuses[i])) != 0);
    CHECK_STR("OK", hf_str_from(hf__http_reason(200)));
    CHECK_STR("Unknown", hf_str_from(hf__http_reason(299)));
}

/* Letters are equal in both cases; no other characters are that differ in the same bit. */
TEST(read, names_are_compared_in_any_case)
{
    for (int a = 0; a < 256; a++) {
        for (int b = 0; b < 256; b++) {
            char x = (char)a, y = (char)b;
            bool upper = a >= 'A' && a <= 'Z', lower = a >= 'a' && a <= 'z';
            bool same = a == b || (upper && b == a + 32) || (lower && b == a - 32);

            CHECK_INT(same, hf__http_same(&x, &y, 1));
        }
    }
    CHECK(hf__http_is(HF_STR("HOST"), "Host"));
    CHECK(!hf__http_is(HF_STR("Hos"), "Host") && !hf__http_is(HF_STR("Hosts"), "Host"));
    CHECK(!hf__http_is(HF_STR("Hosr"), "Host") && !hf__http_is((struct hf_str){0}, "Host"));
    CHECK(hf__http_is((struct hf_str){0}, ""));
}
