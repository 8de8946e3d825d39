/*
 * server/headers_test.c: what stands around an answer: its fields, letter by letter; methods and
 * paths; health and figures.
 */
#include "help.h"

#include <ctype.h>
#include <libdeflate.h>

#define LIST_TABLES "{\"TableNames\":[\"tab\"]}"

/* All of an answer but the id, byte for byte. */
TEST(headers, of_an_answer_are_these_and_no_others)
{
    struct hf_str id;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    line_call(&c, "ListTables", "{}");
    line_read(&c);
    id = line_field(&c, "x-amzn-RequestId");
    CHECK_INT(52, id.len);
    CHECK_STR(hf_scope_format(site.s,
                              "HTTP/1.1 200 OK\r\n"
                              "Server: holdfast\r\n"
                              "Date: Thu, 01 Jan 2026 00:00:00 GMT\r\n"
                              "Content-Type: application/x-amz-json-1.0\r\n"
                              "Content-Length: 22\r\n"
                              "x-amzn-RequestId: %.*s\r\n"
                              "x-amz-crc32: %u\r\n"
                              "\r\n" LIST_TABLES,
                              HF_FMT(id), libdeflate_crc32(0, LIST_TABLES, 22))
                  .ptr,
              hf_str_of((const char *)c.in, c.used));
    line_close(&c);
    site_close(&site);
}

TEST(headers, ids_are_of_52_characters_and_each_another)
{
    enum { IDS = 200 };
    struct site site;
    struct line c;
    char ids[IDS][52];

    site_open(t, &site, &(struct server_options){.loops = 2});
    for (int i = 0; i < IDS; i++) {
        struct hf_str id;

        if (i % 10 == 0)
            line_open(&site, &c);
        line_call(&c, "ListTables", i % 2 ? "{}" : "{");
        CHECK_ANSWER(&c, i % 2 ? 200 : 400, NULL);
        id = line_field(&c, "x-amzn-RequestId");
        memcpy(ids[i], id.ptr, 52);
        for (size_t j = 0; j < 52; j++)
            CHECK(isdigit((unsigned char)ids[i][j]) || isupper((unsigned char)ids[i][j]));
        for (int j = 0; j < i; j++)
            CHECK(memcmp(ids[j], ids[i], 52) != 0);
        if (i % 10 == 9)
            line_close(&c);
    }
    site_close(&site);
}

/* The clock of the env moves the date, at once. */
TEST(headers, date_is_now)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    test_advance_ms(t, 1000LL * (31 + 28) * 86400 + 3723000);
    line_call(&c, "ListTables", "{}");
    line_read(&c);
    CHECK_STR("Sun, 01 Mar 2026 01:02:03 GMT", line_field(&c, "Date"));
    line_close(&c);
    site_close(&site);
}

/* C.1.1: the answer's type is the request's, without parameters; others are not known. */
TEST(headers, type_is_that_of_the_request)
{
    static const struct {
        const char *sent;
        const char *expected; /* NULL: it is not known */
    } cases[] = {
        {"application/x-amz-json-1.0", "application/x-amz-json-1.0"},
        {"application/json", "application/json"},
        {"application/json;charset=utf-8", "application/json"},
        {"application/json ; anything", "application/json"},
        {"Application/X-Amz-JSON-1.0", "application/x-amz-json-1.0"},
        {"application/x-amz-json-1.1", NULL},
        {"text/plain", NULL},
        {"application/jsonx", NULL},
        {"", NULL},
        {NULL, NULL},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str fields =
            hf_scope_format(site.s, "Host: localhost\r\n%s%s%s" TARGET("ListTables") SIGNED,
                            cases[i].sent ? "Content-Type: " : "",
                            cases[i].sent ? cases[i].sent : "", cases[i].sent ? "\r\n" : "");
        struct hf_str text = post_text(site.s, fields.ptr, HF_STR("{}"));

        line_send(&c, text.ptr, text.len);
        line_read(&c);
        CHECK_INT(cases[i].expected ? 200 : 404, c.status);
        CHECK_STR(cases[i].expected ? LIST_TABLES : "<UnknownOperationException/>\n", c.body);
        if (cases[i].expected)
            CHECK_STR(cases[i].expected, line_field(&c, "Content-Type"));
        else
            CHECK(!line_field(&c, "Content-Type").ptr);
        CHECK(line_field(&c, "x-amz-crc32").ptr != NULL);
        CHECK_INT(52, line_field(&c, "x-amzn-RequestId").len);
    }
    line_close(&c);
    site_close(&site);
}

/* ---- methods and paths ---------------------------------------------------------------------- */

TEST(headers, other_methods_and_paths_are_not_known)
{
    static const char *const lines[] = {
        "PUT /",          "DELETE /",   "PATCH /",      "TRACE /",        "get /",
        "PROPFIND /",     "POST /x",    "POST //",      "GET /x",         "GET //",
        "GET /livez/",    "GET /Livez", "GET /%6Civez", "GET /metrics/x", "GET /_holdfastx",
        "OPTIONS /",      "OPTIONS *",  "POST /livez",  "PUT /metrics",   "GET /..",
        "DELETE /readyz",
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        line_text(&c,
                  hf_scope_format(site.s, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", lines[i]).ptr);
        line_read(&c);
        if (c.status != 404)
            fail_msg("%s gives %d", lines[i], c.status);
        CHECK_STR("<UnknownOperationException/>\n", c.body);
        CHECK_STR("3552371480", line_field(&c, "x-amz-crc32"));
        CHECK(!line_field(&c, "Content-Type").ptr);
    }
    line_close(&c);
    site_close(&site);
}

/* Who looks for the interface of tests is told how it is switched on. */
TEST(headers, what_is_off_says_how_it_is_switched_on)
{
    static const char *const lines[] = {"GET /_holdfast", "GET /_holdfast/",
                                        "PUT /_holdfast/clock"};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        line_text(&c,
                  hf_scope_format(site.s, "%s HTTP/1.1\r\nHost: localhost\r\n\r\n", lines[i]).ptr);
        line_read(&c);
        CHECK_INT(404, c.status);
        CHECK_STR("/_holdfast/ is disabled; start the server with --admin to enable it\n", c.body);
    }
    line_close(&c);
    site_close(&site);
}

/* C.1.6: as the client names us, and only at the root. */
TEST(headers, health_repeats_the_host)
{
    static const char *const hosts[] = {"localhost",   "localhost:8000", "127.0.0.1",
                                        "LocalHost:1", "[::1]:8000",     "127.0.0.1:"};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
        line_text(
            &c, hf_scope_format(site.s, "GET /?x=y HTTP/1.1\r\nHost:  %s \r\n\r\n", hosts[i]).ptr);
        line_read(&c);
        CHECK_INT(200, c.status);
        CHECK_STR(hf_scope_format(site.s, "healthy: %s ", hosts[i]).ptr, c.body);
        CHECK_STR("text/plain; charset=utf-8", line_field(&c, "Content-Type"));
        CHECK(line_field(&c, "x-amz-crc32").ptr != NULL);
    }
    line_text(&c, "GET http://localhost:9 HTTP/1.1\r\nHost: localhost:9\r\n\r\n");
    line_read(&c);
    CHECK_STR("healthy: localhost:9 ", c.body);
    line_text(&c, "GET / HTTP/1.0\r\n\r\n");
    line_read(&c);
    CHECK_STR("healthy:  ", c.body);
    line_close(&c);
    site_close(&site);
}

/* A HEAD says how long the body would be, and the next answer follows at once. */
TEST(headers, head_has_no_body)
{
    static const struct {
        const char *path;
        int status;
        const char *length;
    } cases[] = {{"/", 200, "19"}, {"/livez", 200, "6"}, {"/readyz", 200, "6"}, {"/x", 404, "29"}};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        line_text(&c, hf_scope_format(site.s, "HEAD %s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                      cases[i].path)
                          .ptr);
        line_read_head(&c);
        CHECK_INT(cases[i].status, c.status);
        CHECK_STR(cases[i].length, line_field(&c, "Content-Length"));
    }
    line_text(&c, "HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read_head(&c);
    line_read(&c);
    CHECK_STR("alive\n", c.body);
    CHECK(!line_ends(&c, 50));
    line_close(&c);
    site_close(&site);
}

TEST(headers, livez_and_readyz)
{
    struct site site;
    struct line c;

    site_open_faulty(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    line_text(&c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK_STR("alive\n", c.body);
    CHECK(!line_field(&c, "x-amz-crc32").ptr);
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK_STR("ready\n", c.body);
    line_close(&c);
    site_close(&site);
}

/* ---- figures -------------------------------------------------------------------------------- */

static bool is_name(const char *p, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (!isalpha((unsigned char)p[i]) && p[i] != '_' &&
            (i == 0 || !isdigit((unsigned char)p[i])))
            return false;
    }
    return len > 0;
}

/* "name value" or "name{label="text",...} value" */
static bool is_sample(const char *p, size_t len)
{
    const char *end = p + len, *brace = memchr(p, '{', len), *blank = NULL;
    char *rest;

    if (brace) {
        const char *close = memchr(brace, '}', (size_t)(end - brace)), *at = brace + 1;

        if (!close || !is_name(p, (size_t)(brace - p)))
            return false;
        while (at < close) {
            const char *equals = memchr(at, '=', (size_t)(close - at)), *quote;

            if (!equals || !is_name(at, (size_t)(equals - at)) || equals[1] != '"')
                return false;
            quote = memchr(equals + 2, '"', (size_t)(close - equals - 2));
            if (!quote || (quote[1] != ',' && quote + 1 != close))
                return false;
            at = quote + 1 == close ? close : quote + 2;
        }
        blank = close + 1;
    } else {
        blank = memchr(p, ' ', len);
        if (!blank || !is_name(p, (size_t)(blank - p)))
            return false;
    }
    if (*blank != ' ' || blank + 1 == end)
        return false;
    (void)strtod(blank + 1, &rest);
    return rest == end;
}

/* Every line is one that Prometheus takes, and every sample belongs to the family above it. */
TEST(headers, figures_are_well_formed)
{
    char family[128] = "";
    struct site site;
    struct line c;
    const char *p, *end;
    int samples = 0;

    site_open(t, &site, &(struct server_options){0});
    CHECK_CALL(&site, 200, "{}", "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    line_open(&site, &c);
    line_text(&c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK_STR("text/plain; version=0.0.4; charset=utf-8", line_field(&c, "Content-Type"));
    p = c.body.ptr;
    end = p + c.body.len;
    CHECK(end[-1] == '\n');
    while (p < end) {
        const char *next = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)(next - p);

        if (len > 7 && memcmp(p, "# HELP ", 7) == 0) {
            const char *blank = memchr(p + 7, ' ', len - 7);

            CHECK(blank && is_name(p + 7, (size_t)(blank - p) - 7));
            snprintf(family, sizeof(family), "%.*s", (int)(blank - p - 7), p + 7);
        } else if (len > 7 && memcmp(p, "# TYPE ", 7) == 0) {
            CHECK(memcmp(p + 7, family, strlen(family)) == 0);
        } else {
            if (!is_sample(p, len))
                fail_msg("no sample: %.*s", (int)len, p);
            CHECK(memcmp(p, family, strlen(family)) == 0);
            samples++;
        }
        p = next + 1;
    }
    CHECK(samples > 30);
    line_close(&c);
    site_close(&site);
}

TEST(headers, figures_move)
{
    static const char put[] = "holdfast_requests_total{operation=\"PutItem\",outcome=\"ok\"}";
    static const char bad[] =
        "holdfast_requests_total{operation=\"PutItem\",outcome=\"client_error\"}";
    double connections, malformed, refused, received;
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    CHECK_INT(-1, site_metric(&site, put));
    connections = site_metric(&site, "holdfast_connections_total");
    malformed = site_metric(&site, "holdfast_requests_malformed_total");
    refused = site_metric(&site, "holdfast_signatures_refused_total");
    received = site_metric(&site, "holdfast_bytes_received_total");
    for (int i = 0; i < 3; i++)
        CHECK_CALL(&site, 200, "{}", "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    CHECK_CALL(&site, 400,
               "{'__type':'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException',"
               "'message':'Requested resource not found'}",
               "PutItem", "{'TableName':'none','Item':{'pk':{'S':'a'}}}");
    CHECK_INT(400, site_status(&site, "x\r\n\r\n", NULL));
    CHECK_INT(400, site_status(&site,
                               "POST / HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0 TARGET(
                                   "ListTables") "Connection: close\r\nContent-Length: 2\r\n\r\n{}",
                               NULL));
    CHECK_INT(3, site_metric(&site, put));
    CHECK_INT(1, site_metric(&site, bad));
    CHECK_INT(malformed + 1, site_metric(&site, "holdfast_requests_malformed_total"));
    CHECK_INT(refused + 1, site_metric(&site, "holdfast_signatures_refused_total"));
    CHECK(site_metric(&site, "holdfast_connections_total") >= connections + 6);
    CHECK(site_metric(&site, "holdfast_bytes_received_total") > received + 1000);
    CHECK(site_metric(&site, "process_resident_memory_bytes") > 1000000);
    site_close(&site);
}
