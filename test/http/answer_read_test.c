/*
 * test/http/answer_read_test.c: answers out of bytes; (n) is an invariant of answer_read.c.
 *
 * Every answer here is read whole, byte by byte, and in two parts split at every byte, each time
 * with the bytes somewhere else in every call; all must come to the same.
 */
#include "http/http.h"

#include "test.h"

enum { OUTCOME_MAX = 4096 };

#define OK_LINE "HTTP/1.1 200 OK\r\n"
#define CHUNKED OK_LINE "Transfer-Encoding: chunked\r\n\r\n"

struct feed {
    struct http_reader reader;
    uint8_t *bytes;
    size_t len;
    enum http_result result;
};

static void feed_begin(struct feed *f, const struct http_limits *limits, bool no_body)
{
    *f = (struct feed){.result = HTTP_MORE};
    memset(&f->reader, 0xA5, sizeof(f->reader)); /* begin must not rely on what was there */
    hf__http_begin_answer(&f->reader, limits, no_body);
}

static bool feed_over(const struct feed *f)
{
    return f->result == HTTP_DONE || f->result == HTTP_BAD;
}

/* Add bytes, move all of them into an allocation of exactly that size, and read. */
static void feed_more(struct feed *f, const char *more, size_t len)
{
    uint8_t *moved;

    if (feed_over(f) || len == 0)
        return;
    moved = malloc(f->len + len);
    assert_non_null(moved);
    if (f->len)
        memcpy(moved, f->bytes, f->len);
    memcpy(moved + f->len, more, len);
    if (f->bytes)
        memset(f->bytes, 0xEE, f->len);
    free(f->bytes);
    f->bytes = moved;
    f->len += len;
    f->result = hf__http_read(&f->reader, f->bytes, f->len);
    if (!feed_over(f))
        CHECK(f->reader.wanted > f->len);
}

/* What came out, as text; `ended` says that the connection was closed behind the bytes. */
static void feed_outcome(struct feed *f, bool ended, char *text)
{
    const struct http_head *head = &f->reader.head;
    size_t at = 0;

    if (ended && !feed_over(f))
        f->result = hf__http_end_answer(&f->reader, f->bytes, f->len);
    if (f->result == HTTP_BAD) {
        at = (size_t)snprintf(text, OUTCOME_MAX, "%s%s",
                              f->reader.error.status == 413 ? "413 " : "", f->reader.error.text);
    } else if (f->result == HTTP_DONE) {
        at = (size_t)snprintf(text, OUTCOME_MAX, "%d%s", head->status,
                              head->keep_alive ? " keep" : "");
        for (size_t i = 0; i < head->fields_len; i++)
            at += (size_t)snprintf(text + at, OUTCOME_MAX - at, " %.*s=%.*s",
                                   HF_FMT(head->fields[i].name), HF_FMT(head->fields[i].value));
        at += (size_t)snprintf(text + at, OUTCOME_MAX - at, " [%.*s]", (int)f->reader.body.len,
                               (const char *)f->reader.body.ptr);
    } else {
        at = (size_t)snprintf(text, OUTCOME_MAX, "more");
    }
    CHECK(at < OUTCOME_MAX);
}

static void feed_end(struct feed *f)
{
    free(f->bytes);
}

struct how {
    struct http_limits limits;
    bool no_body; /* the request was a HEAD */
    bool ended;   /* the connection was closed behind the bytes */
};

/* In `parts` of that many bytes, the first of `first` bytes. */
static size_t outcome_of(struct hf_str text, struct how how, size_t first, size_t part, char *out)
{
    struct feed f;
    size_t used;

    feed_begin(&f, &how.limits, how.no_body);
    feed_more(&f, text.ptr, first);
    for (size_t at = first; at < text.len; at += part)
        feed_more(&f, text.ptr + at, text.len - at < part ? text.len - at : part);
    feed_outcome(&f, how.ended, out);
    used = f.result == HTTP_DONE ? f.reader.used : 0;
    feed_end(&f);
    return used;
}

static void check_how(const char *expected, struct hf_str text, struct how how)
{
    char whole[OUTCOME_MAX], parts[OUTCOME_MAX];
    size_t used = outcome_of(text, how, 0, text.len, whole);

    CHECK_STR(expected, hf_str_from(whole));
    CHECK_INT(used, outcome_of(text, how, 0, 1, parts));
    CHECK_STR(expected, hf_str_from(parts));
    for (size_t first = 1; first < text.len; first++) {
        CHECK_INT(used, outcome_of(text, how, first, text.len, parts));
        CHECK_STR(expected, hf_str_from(parts));
    }
}

static void check(const char *expected, const char *text)
{
    check_how(expected, hf_str_from(text), (struct how){0});
}

static void check_ended(const char *expected, const char *text)
{
    check_how(expected, hf_str_from(text), (struct how){.ended = true});
}

/* ---- the status line ------------------------------------------------------------------------ */

TEST(answer_read, status_lines)
{
    check("200 keep Content-Length=0 []", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    check("200 keep Content-Length=0 []", "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n");
    check("200 keep Content-Length=0 []", "HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n");
    check("404 keep Content-Length=0 []",
          "HTTP/1.1 404 Nicht\tgef\xC3\xBCnden \xFF\r\nContent-Length: 0\r\n\r\n");
    check("599 Content-Length=0 []", "HTTP/1.0 599 x\r\nContent-Length: 0\r\n\r\n");
    check("204 keep []", "HTTP/1.1 204\r\n\r\n"); /* the shortest there is */
}

TEST(answer_read, what_is_no_status_line_is_refused)
{
    const char *no_version = "the answer does not start with an HTTP version";
    const char *no_status = "the answer has no status";

    check(no_version, "\r\nHTTP/1.1 200 OK\r\n\r\n");
    check(no_version, "SSH-2.0-x\r\n");
    check(no_version, " ");
    check(no_version, "HTTP 200 OK\r\nContent-Length: 0\r\n\r\n");
    check(no_version, "HTTP/1 200 OK\r\nContent-Length: 0\r\n\r\n");
    check(no_version, "HTTP/11 200 OK\r\nA: b\r\n\r\n");
    check(no_version, "HTTP/1.1\r\nA: b\r\n\r\n");
    check(no_version, "H\r\n\r\n");
    check("the answer is neither HTTP/1.0 nor HTTP/1.1", "HTTP/2.0 200 OK\r\n\r\n");
    check("the answer is neither HTTP/1.0 nor HTTP/1.1", "HTTP/1.2 200 OK\r\n\r\n");
    check(no_status, "HTTP/1.1  200 OK\r\n\r\n");
    check(no_status, "HTTP/1.1 20 OK\r\nA: b\r\n\r\n");
    check(no_status, "HTTP/1.1 2000 OK\r\n\r\n");
    check(no_status, "HTTP/1.1 099 OK\r\n\r\n");
    check(no_status, "HTTP/1.1 600 OK\r\n\r\n");
    check(no_status, "HTTP/1.1 2x0 OK\r\n\r\n");
    check(no_status, "HTTP/1.1 -20 OK\r\n\r\n");
    check("the status line has a control character", "HTTP/1.1 200 O\rK\r\n\r\n");
    check_how("the status line has a control character", HF_STR("HTTP/1.1 200 O\0K\r\n\r\n"),
              (struct how){0});
    check("a line does not end with CR LF", "HTTP/1.1 200 OK\nContent-Length: 0\n\n");
    check("received TLS as the answer to plain HTTP", "\x15\x03\x01");
    check("the answer is in another protocol", "HTTP/1.1 101 Switching\r\n\r\n"); /* (1) */
}

/* ---- where the body ends -------------------------------------------------------------------- */

TEST(answer_read, bodies_with_a_length)
{
    check("200 keep Content-Length=5 [hello]", OK_LINE "Content-Length: 5\r\n\r\nhello");
    check("200 keep Content-Length=5 [hello]", OK_LINE "Content-Length: 5\r\n\r\nhelloHTTP");
    check("more", OK_LINE "Content-Length: 5\r\n\r\nhell");
    check("more", OK_LINE "Content-Length: 5\r\n");
    check("there is more than one Content-Length",
          OK_LINE "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello");
    check("there is more than one Content-Length",
          OK_LINE "Content-Length: 5\r\ncontent-length: 6\r\n\r\nhello!");
    check("Content-Length is not a number", OK_LINE "Content-Length: 5, 5\r\n\r\nhello");
    check("Content-Length is not a number", OK_LINE "Content-Length: +5\r\n\r\nhello");
    check("Content-Length is not a number", OK_LINE "Content-Length:\r\n\r\nhello");
}

TEST(answer_read, bodies_in_chunks)
{
    check("200 keep Transfer-Encoding=chunked [hello world]",
          CHUNKED "5\r\nhello\r\n6;a=b;c=\"d e\"\r\n world\r\n0\r\n\r\n");
    check("200 keep Transfer-Encoding=chunked []", CHUNKED "0\r\n\r\n");
    check("200 keep Transfer-Encoding=chunked [a]",
          CHUNKED "1\r\na\r\n000\r\nX-Sum: 7\r\nX-More: 8\r\n\r\n");
    check("more", CHUNKED "5\r\nhello\r\n0\r\n");
    check("more", CHUNKED "5\r\nhello\r\n");
    check("a chunk is longer than its size says", CHUNKED "4\r\nhello\r\n0\r\n\r\n");
    check("a chunk does not start with its size", CHUNKED "x\r\n");
    check("a field that frames the answer comes after the body",
          CHUNKED "0\r\nContent-Length: 5\r\n\r\n");
    check("there are both Content-Length and Transfer-Encoding",
          OK_LINE "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\nhello");
    check("unsupported transfer coding: only chunked is supported",
          OK_LINE "Transfer-Encoding: gzip, chunked\r\n\r\n");
    check("there is more than one Transfer-Encoding",
          OK_LINE "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n");
    check("HTTP/1.0 has no Transfer-Encoding",
          "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
}

/* (2) (3) */
TEST(answer_read, bodies_until_the_connection_ends)
{
    check("more", OK_LINE "\r\n");
    check("more", OK_LINE "\r\nhello");
    check_ended("200 [hello]", OK_LINE "\r\nhello");
    check_ended("200 []", OK_LINE "\r\n");
    check_ended("200 Connection=keep-alive [x]",
                "HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n\r\nx");
}

TEST(answer_read, an_end_that_comes_too_early_is_an_error)
{
    const char *cut = "the connection was closed before the end of the answer";
    const char *answers[] = {
        OK_LINE "Content-Length: 5\r\n\r\nhello",
        CHUNKED "5\r\nhello\r\n0\r\n\r\n",
        CHUNKED "1\r\na\r\n0\r\nX-Sum: 7\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204\r\n\r\n",
    };

    check_ended("the connection was closed without an answer", "");
    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        for (size_t len = 1; len < strlen(answers[i]); len++)
            check_how(cut, hf_str_of(answers[i], len), (struct how){.ended = true});
    }
}

/* (2): such answers end with their head, whatever it says. */
TEST(answer_read, answers_without_a_body)
{
    struct how head = {.no_body = true};

    check("204 keep []", "HTTP/1.1 204 No Content\r\n\r\n");
    check("204 keep Content-Length=5 []", "HTTP/1.1 204 No\r\nContent-Length: 5\r\n\r\nhello");
    check("304 keep Content-Length=99999999999 []",
          "HTTP/1.1 304 Not\r\nContent-Length: 99999999999\r\n\r\n");
    check_how("200 keep Content-Length=5 []", HF_STR(OK_LINE "Content-Length: 5\r\n\r\n"), head);
    check_how("200 keep Transfer-Encoding=chunked []", HF_STR(CHUNKED), head);
    check_how("200 keep []", HF_STR(OK_LINE "\r\n"), head);
    check_how("there are both Content-Length and Transfer-Encoding",
              HF_STR(OK_LINE "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"), head);
}

/* ---- keeping the connection ----------------------------------------------------------------- */

TEST(answer_read, whether_the_connection_goes_on)
{
    check("200 Connection=close Content-Length=0 []",
          OK_LINE "Connection: close\r\nContent-Length: 0\r\n\r\n");
    check("200 Connection=keep-alive, CLOSE Content-Length=0 []",
          OK_LINE "Connection: keep-alive, CLOSE\r\nContent-Length: 0\r\n\r\n");
    check("200 Content-Length=0 []", "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n");
    check("200 keep Connection=Keep-Alive Content-Length=0 []",
          "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n");
}

/* ---- answers before the answer -------------------------------------------------------------- */

TEST(answer_read, interim_answers_are_skipped)
{
    char text[2048];
    size_t at = 0;

    check("200 keep Content-Length=2 [hi]",
          "HTTP/1.1 100 Continue\r\n\r\n" OK_LINE "Content-Length: 2\r\n\r\nhi");
    check("200 keep Content-Length=2 [hi]",
          "HTTP/1.1 103 Hints\r\nLink: a\r\nContent-Length: 9\r\n\r\n"
          "HTTP/1.1 102 Wait\r\n\r\n" OK_LINE "Content-Length: 2\r\n\r\nhi");
    check("more", "HTTP/1.1 100 Continue\r\n\r\n");
    check("the answer does not start with an HTTP version", "HTTP/1.1 100 Continue\r\n\r\nx");
    /* One that closes does not make the final one close. */
    check("200 keep Content-Length=0 []",
          "HTTP/1.0 100 x\r\nConnection: close\r\n\r\n" OK_LINE "Content-Length: 0\r\n\r\n");
    for (int i = 0; i < HTTP_INTERIM_MAX; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "HTTP/1.1 100 C\r\n\r\n");
    snprintf(text + at, sizeof(text) - at, "HTTP/1.1 204 N\r\n\r\n");
    check("204 keep []", text);
    snprintf(text + at, sizeof(text) - at, "HTTP/1.1 100 C\r\n\r\n");
    check("before the answer there are more than 16 others", text);
}

/* ---- limits --------------------------------------------------------------------------------- */

TEST(answer_read, bodies_have_a_limit)
{
    struct how five = {.limits = {.body_bytes = 5}}, ended = five;
    const char *over = "413 the body has more than 5 bytes";

    ended.ended = true;
    check_how("200 keep Content-Length=5 [hello]", HF_STR(OK_LINE "Content-Length: 5\r\n\r\nhello"),
              five);
    check_how(over, HF_STR(OK_LINE "Content-Length: 6\r\n\r\n"), five);
    check_how(over, HF_STR(OK_LINE "Content-Length: 99999999999999999999999\r\n\r\n"), five);
    check_how("200 keep Transfer-Encoding=chunked [hello]",
              HF_STR(CHUNKED "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"), five);
    check_how(over, HF_STR(CHUNKED "2\r\nhe\r\n4\r\n"), five);
    check_how("200 [hello]", HF_STR(OK_LINE "\r\nhello"), ended);
    check_how(over, HF_STR(OK_LINE "\r\nhello!"), ended);
    check_how(over, HF_STR(OK_LINE "\r\nhello!"), five);
}

TEST(answer_read, heads_have_a_limit)
{
    struct how narrow = {.limits = {.head_bytes = 20}};
    char text[8192];
    size_t at;

    check_how("204 keep A=5678901234567890 []",
              HF_STR("HTTP/1.1 204 4567890\r\nA:5678901234567890\r\n\r\n"), narrow);
    check_how("the status line has more than 20 bytes", HF_STR("HTTP/1.1 204 45678901\r\n\r\n"),
              narrow);
    check_how("the header fields have more than 20 bytes",
              HF_STR("HTTP/1.1 204 4567890\r\nA:56789012345678901\r\n\r\n"), narrow);
    at = (size_t)snprintf(text, sizeof(text), "HTTP/1.1 204 N\r\n");
    for (int i = 0; i < HTTP_FIELDS_MAX + 1; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "a:b\r\n");
    snprintf(text + at, sizeof(text) - at, "\r\n");
    check("the answer has more than 100 header fields", text);
}

TEST(answer_read, fields_are_taken_strictly)
{
    check("a header field has a name that is not a token", OK_LINE "A : b\r\n\r\n");
    check("a header field goes on in a second line", OK_LINE "A: b\r\n c\r\n\r\n");
    check("a header field has no colon", OK_LINE "A\r\n\r\n");
    check_how("a header field has a control character in its value",
              HF_STR(OK_LINE "A: b\0c\r\n\r\n"), (struct how){0});
    /* What a request may have once, an answer may have as it likes. */
    check("200 keep Host=a Host=b Expect=x Content-Length=0 []",
          OK_LINE "Host: a\r\nHost: b\r\nExpect: x\r\nContent-Length: 0\r\n\r\n");
}
