/*
 * server/limits_test.c: sizes, numbers and times: what is just allowed, what is not, and clients
 * that are slow or go away.
 */
#include "help.h"

#include <sys/socket.h>

enum { BODY_MAX = 16 * 1024 * 1024, HEAD_MAX = 16 * 1024, PIECE = 64 * 1024 };

/* ---- sizes ---------------------------------------------------------------------------------- */

/* "{" and then blanks, `left` bytes in all; ends with "}". */
static void send_blanks(struct line *c, size_t left, bool chunked)
{
    static char blanks[PIECE];

    memset(blanks, ' ', sizeof(blanks));
    for (bool first = true; left > 0; first = false) {
        size_t len = left < PIECE ? left : PIECE;
        char size[16];

        blanks[0] = first ? '{' : ' ';
        blanks[len - 1] = len == left ? '}' : ' ';
        snprintf(size, sizeof(size), "%zx\r\n", len);
        if (chunked && !line_text(c, size))
            return;
        if (!line_send(c, blanks, len) || (chunked && !line_text(c, "\r\n")))
            return;
        left -= len;
    }
    if (chunked)
        line_text(c, "0\r\n\r\n");
}

TEST(limits, a_body_may_have_16_mib)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    for (int chunked = 0; chunked < 2; chunked++) {
        line_text(&c, POST_FOR("ListTables"));
        line_text(&c, chunked ? "Transfer-Encoding: chunked\r\n\r\n"
                              : "Content-Length: 16777216\r\n\r\n");
        send_blanks(&c, BODY_MAX, chunked);
        CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    }
    CHECK(atomic_load(&site.bytes) < 8 * 1024 * 1024); /* and they are given back */
    line_close(&c);
    site_close(&site);
}

/* A byte more is a 413: of a length before the body comes, of chunks with the one that is over. */
TEST(limits, a_body_may_not_have_a_byte_more)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    line_text(&c, POST_FOR("ListTables") "Content-Length: 16777217\r\n\r\n");
    line_read(&c);
    CHECK_INT(413, c.status);
    CHECK_STR("Content Too Large", c.reason);
    CHECK_STR("{\"__type\":\"com.amazon.coral.service#RequestEntityTooLargeException\","
              "\"message\":\"the body has more than 16777216 bytes\"}",
              c.body);
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);

    line_open(&site, &c); /* who goes on sending can still read it */
    line_text(&c, POST_FOR("ListTables") "Content-Length: 16777217\r\n\r\n");
    send_blanks(&c, 4 * 1024 * 1024, false);
    line_read(&c);
    CHECK_INT(413, c.status);
    line_close(&c);

    line_open(&site, &c);
    line_text(&c, POST_FOR("ListTables") "Transfer-Encoding: chunked\r\n\r\n");
    send_blanks(&c, BODY_MAX + 1, true);
    line_read(&c);
    CHECK_INT(413, c.status);
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    site_close(&site);
}

static struct hf_str filled(struct hf_scope *s, const char *before, size_t len, const char *after)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, hf_str_from(before));
    for (size_t i = 0; i < len; i++)
        hf__buf_put_byte(&buf, 'a');
    hf__buf_put_str(&buf, hf_str_from(after));
    hf__buf_put_byte(&buf, 0);
    return hf_str_of((const char *)buf.ptr, buf.len - 1);
}

/* C.1.9: a line and fields of 16 KiB each; a byte more is a 400. */
/* Two clients hold as much as all may; a third with a large body is sent away, one with a small one
 * is not. When the two go, there is room again. */
TEST(limits, unfinished_requests_together_are_bounded)
{
    enum { HALF = 1024 * 1024 };
    struct line holders[2], more, small;
    struct site site;

    site_open(t, &site, &(struct server_options){.loops = 2, .input_max = 2 * HALF});
    for (size_t i = 0; i < 2; i++) {
        line_open(&site, &holders[i]);
        line_text(&holders[i], POST_FOR("ListTables") "Content-Length: 2097152\r\n\r\n");
        send_blanks(&holders[i], HALF - 8 * 1024, false);
    }
    while (atomic_load(&site.server->budget.input) < 2 * (HALF - 8 * 1024))
        sleep_ms(1);
    line_open(&site, &more);
    line_text(&more, POST_FOR("ListTables") "Content-Length: 262144\r\n\r\n");
    send_blanks(&more, 262143, false);
    line_read(&more);
    CHECK_INT(503, more.status);
    CHECK(contains(more.body, "#ServiceUnavailableException"));
    CHECK(line_ends(&more, DEADLINE_MS));
    line_close(&more);
    line_open(&site, &small);
    line_call(&small, "ListTables", "{}");
    line_read(&small);
    CHECK_INT(200, small.status);
    line_close(&small);
    for (size_t i = 0; i < 2; i++)
        line_close(&holders[i]);
    while (atomic_load(&site.server->budget.input) > 0)
        sleep_ms(1);
    line_open(&site, &more);
    line_text(&more, POST_FOR("ListTables") "Content-Length: 262144\r\n\r\n");
    send_blanks(&more, 262144, false);
    line_read(&more);
    CHECK_INT(200, more.status);
    line_close(&more);
    site_close(&site);
}

TEST(limits, a_head_may_have_16_kib)
{
    size_t around_target = strlen("GET / HTTP/1.1");
    size_t around_value = strlen("Host: localhost\r\nX: \r\n");
    struct site site;
    bool closes;

    site_open(t, &site, &(struct server_options){0});
    CHECK_INT(404, site_status(&site,
                               filled(site.s, "GET /", HEAD_MAX - around_target,
                                      " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                                   .ptr,
                               &closes));
    CHECK_INT(400, site_status(&site,
                               filled(site.s, "GET /", HEAD_MAX - around_target + 1,
                                      " HTTP/1.1\r\nHost: localhost\r\n\r\n")
                                   .ptr,
                               &closes));
    CHECK(closes);
    CHECK_INT(200, site_status(&site,
                               filled(site.s, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
                                      HEAD_MAX - around_value, "\r\n\r\n")
                                   .ptr,
                               NULL));
    CHECK_INT(400, site_status(&site,
                               filled(site.s, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
                                      HEAD_MAX - around_value + 1, "\r\n\r\n")
                                   .ptr,
                               &closes));
    CHECK(closes);
    CHECK_INT(400, site_status(&site,
                               filled(site.s, "GET / HTTP/1.1\r\nHost: localhost\r\nX: ", 200000,
                                      "\r\n\r\n")
                                   .ptr,
                               NULL));
    CHECK_INT(400, site_status(&site, filled(site.s, "GET /", 200000, "").ptr, NULL));
    CHECK_INT(400, site_status(&site, filled(site.s, "", 200000, "").ptr, NULL));
    site_close(&site);
}

TEST(limits, a_request_may_have_100_fields)
{
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    for (int over = 0; over < 2; over++) {
        struct hf__buf buf = {.scope = site.s};
        bool closes = true;

        hf__buf_put_str(&buf, HF_STR("GET / HTTP/1.1\r\nHost: localhost\r\n"));
        for (int i = 0; i < 99 + over; i++)
            hf__buf_put_str(&buf, HF_STR("A: b\r\n"));
        hf__buf_put(&buf, "\r\n", 3);
        CHECK_INT(over ? 400 : 200,
                  site_status(&site, (const char *)buf.ptr, over ? &closes : NULL));
        CHECK(closes);
    }
    site_close(&site);
}

/* ---- connections ---------------------------------------------------------------------------- */

#define TOO_MANY                                                                                   \
    "HTTP/1.1 503 Service Unavailable\r\nServer: holdfast\r\n"                                     \
    "Content-Type: application/x-amz-json-1.0\r\nContent-Length: 98\r\nConnection: close\r\n\r\n"  \
    "{\"__type\":\"com.amazon.coral.service#ServiceUnavailableException\","                        \
    "\"message\":\"Too many connections\"}"

static void check_alive(struct line *c)
{
    line_text(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(c);
    CHECK_STR("alive\n", c->body);
}

TEST(limits, connections_are_counted)
{
    enum { MOST = 4 };
    struct line kept[MOST], c;
    struct site site;

    site_open(t, &site, &(struct server_options){.connections_max = MOST, .loops = 2});
    for (int i = 0; i < MOST; i++) {
        line_open(&site, &kept[i]);
        check_alive(&kept[i]);
    }
    for (int i = 0; i < 3; i++) { /* the one too many is told, whether it asks first or not */
        line_open(&site, &c);
        if (i > 0)
            line_text(&c, "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
        CHECK_STR(TOO_MANY, line_rest(&c, 3000));
        CHECK(c.ended);
        line_close(&c);
    }
    for (int i = 0; i < MOST; i++)
        check_alive(&kept[i]);
    line_close(&kept[0]);
    for (int64_t until = now_ms() + DEADLINE_MS;;) { /* when one goes, there is room again */
        CHECK(now_ms() < until);
        line_open(&site, &kept[0]);
        line_text(&kept[0], "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if (line_answers(&kept[0])) { /* else it was reset before we read the 503 */
            line_read(&kept[0]);
            if (kept[0].status == 200)
                break;
            CHECK_INT(503, kept[0].status);
        }
        line_close(&kept[0]);
        sleep_ms(5);
    }
    for (int i = 0; i < MOST; i++)
        line_close(&kept[i]);
    site_close(&site);
}

/* Of two loops the first has connections that are used, and the other has silent ones. A newcomer is the first
 * one's, as it has no more than the other, and takes the place of a silent one all the same. */
TEST(limits, a_connection_of_another_loop_makes_place)
{
    enum { MOST = 4 };
    struct line kept[MOST], c;
    struct site site;

    site_open(t, &site, &(struct server_options){.connections_max = MOST, .loops = 2});
    for (int i = 0; i < MOST; i++) {
        unsigned before = atomic_load(&site.server->conns_len);

        line_open(&site, &kept[i]);
        while (atomic_load(&site.server->conns_len) == before)
            sleep_ms(1);
    }
    for (int64_t until = now_ms() + DEADLINE_MS;;) { /* who is silent for a second makes place */
        CHECK(now_ms() < until);
        for (int i = 0; i < MOST; i += 2)
            check_alive(&kept[i]);
        line_open(&site, &c);
        line_text(&c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
        if (line_answers(&c)) { /* else it was reset before we read the 503 */
            line_read(&c);
            if (c.status == 200)
                break;
            CHECK_INT(503, c.status);
        }
        line_close(&c);
        sleep_ms(50);
    }
    for (int i = 0; i < MOST; i += 2)
        check_alive(&kept[i]);
    line_close(&c);
    for (int i = 0; i < MOST; i++)
        line_close(&kept[i]);
    site_close(&site);
}

/* ---- times ---------------------------------------------------------------------------------- */

/* Send a byte of `text` now and then, and again from `loop` on at its end; how long was it let? */
static int64_t dribble(struct site *site, const char *first, const char *text, struct line *c)
{
    int64_t begun = now_ms();

    line_open(site, c);
    line_text(c, first);
    for (size_t i = 0; now_ms() < begun + DEADLINE_MS; i++) {
        if (line_ends(c, 20) || c->in_len > 0)
            return now_ms() - begun;
        if (!line_send(c, text + i % strlen(text), 1))
            return now_ms() - begun;
    }
    return DEADLINE_MS;
}

/* Whatever is dribbled, the time of the whole is what counts, and who was late is told. */
TEST(limits, slow_requests_are_cut_off)
{
    static const struct {
        const char *first;
        const char *text;
        int64_t least_ms;
    } cases[] = {
        {"", "GET / HTTP/1.1\r\nHost: localhost\r\nA: bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", 300},
        {"GET / HTTP/1.1\r\n", "A: b\r\n", 300},
        {"\r\n", "G", 300},
        {POST_FOR("ListTables") "Content-Length: 10000\r\n\r\n", " ", 600},
        {POST_FOR("ListTables") "Transfer-Encoding: chunked\r\n\r\n", "1\r\nx\r\n", 600},
        {POST_FOR("ListTables") "Transfer-Encoding: chunked\r\n\r\n2;", "abc=", 600},
        {POST_FOR("ListTables") "Transfer-Encoding: chunked\r\n\r\n0\r\n", "A: b\r\n", 600},
    };
    double timed_out;
    struct site site;

    site_open(t, &site, &(struct server_options){.head_ms = 300, .body_ms = 600});
    timed_out = site_metric(&site, "holdfast_connections_timed_out_total");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct line c;
        int64_t took = dribble(&site, cases[i].first, cases[i].text, &c);

        if (took < cases[i].least_ms || took >= DEADLINE_MS)
            fail_msg("case %zu took %lld ms", i, (long long)took);
        line_read(&c);
        CHECK_INT(408, c.status);
        CHECK_STR("Request Timeout", c.reason);
        CHECK_STR("close", line_field(&c, "Connection"));
        line_close(&c);
    }
    CHECK(site_metric(&site, "holdfast_connections_timed_out_total") >=
          timed_out + (double)ARRAY_LEN(cases));
    site_close(&site);
}

/* Who says nothing is let go without a word: before the first request and after one. */
TEST(limits, idle_connections_are_closed)
{
    int64_t begun = now_ms();
    struct line fresh, used, half;
    struct site site;

    site_open(t, &site, &(struct server_options){.idle_ms = 400, .head_ms = 8 * DEADLINE_MS});
    line_open(&site, &fresh);
    line_open(&site, &used);
    line_open(&site, &half);
    check_alive(&used);
    line_text(&half, "GET /livez");
    CHECK(line_ends(&fresh, DEADLINE_MS));
    CHECK(line_ends(&used, DEADLINE_MS));
    CHECK(now_ms() - begun >= 400 && now_ms() - begun < 2 * DEADLINE_MS);
    line_text(&half, " HTTP/1.1\r\nHost: localhost\r\n\r\n"); /* which is not idle */
    line_read(&half);
    CHECK_STR("alive\n", half.body);
    line_close(&fresh);
    line_close(&used);
    line_close(&half);
    site_close(&site);
}

/* Who does not read a large answer is cut off too, and costs a bounded amount until then. */
TEST(limits, slow_readers_are_cut_off)
{
    enum { READERS = 20 };
    struct line readers[READERS], c;
    int fd = listen_small(4096);
    struct site site;
    size_t before;

    site_open(
        t, &site,
        &(struct server_options){.sockets = &fd, .sockets_len = 1, .loops = 1, .body_ms = 1000});
    site_put(&site, "big", 390000);
    before = atomic_load(&site.bytes);
    for (int i = 0; i < READERS; i++) {
        line_open_small(&site, &readers[i], 4096);
        for (int j = 0; j < 100; j++)
            line_call(&readers[i], "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    }
    line_open(&site, &c);
    for (int i = 0; i < 20; i++)
        check_alive(&c);
    CHECK(atomic_load(&site.bytes) - before < READERS * 3 * 1024 * 1024);
    for (int64_t until = now_ms() + 2 * DEADLINE_MS;
         site_metric(&site, "holdfast_connections") > 2 &&
         now_ms() < until;) { /* c, and who asks */
        check_alive(&c);
        sleep_ms(20);
    }
    CHECK_INT(2, site_metric(&site, "holdfast_connections"));
    CHECK(atomic_load(&site.bytes) - before < 4 * 1024 * 1024);
    for (int i = 0; i < READERS; i++) {
        CHECK(line_rest(&readers[i], DEADLINE_MS).len < 100 * 390000);
        CHECK(readers[i].ended);
        line_close(&readers[i]);
    }
    line_close(&c);
    site_close(&site);
    close(fd);
}

/* ---- going away ----------------------------------------------------------------------------- */

/* In the middle of a request or of an answer, with a reset or without: nobody else notices. */
TEST(limits, clients_may_go_away_at_any_time)
{
    struct hf_str text;
    struct site site;

    site_open(t, &site, &(struct server_options){.loops = 2});
    site_put(&site, "big", 390000);
    text = call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    for (size_t i = 0; i < 200; i++) {
        struct line c;

        line_open_small(&site, &c, 4096);
        if (i % 4 == 0)
            line_send(&c, text.ptr, text.len * (i + 1) / 201);
        for (size_t j = 0; i % 4 != 0 && j < i % 8; j++)
            line_send(&c, text.ptr, text.len);
        if (i % 3 == 0)
            sleep_ms(1);
        if (i % 2)
            line_reset(&c);
        else
            line_close(&c);
    }
    for (int64_t until = now_ms() + DEADLINE_MS;
         site_metric(&site, "holdfast_connections") > 1;) /* the one that asks */
        CHECK(now_ms() < until);
    CHECK_CALL(&site, 200, "{'TableNames':['tab']}", "ListTables", "{}");
    site_close(&site);
}
