/*
 * server/access_test.c: who may ask: pages of other origins, other names, and who has no key.
 */
#include "help.h"

#define EXPOSE                                                                                     \
    "x-amzn-RequestId,x-amzn-ErrorType,x-amz-request-id,x-amz-id-2,x-amzn-ErrorMessage,"           \
    "x-amz-crc32,Date"

/* A GET / with these fields; the answer is in *c. */
static void get(struct line *c, struct hf_scope *s, const char *fields)
{
    line_text(c, hf_scope_format(s, "GET / HTTP/1.1\r\n%s\r\n", fields).ptr);
    line_read(c);
}

static void check_no_cors(const struct line *c)
{
    CHECK(!contains(c->head, "Access-Control"));
    CHECK(!line_field(c, "Vary").ptr);
}

/* ---- CORS ----------------------------------------------------------------------------------- */

/* C.1.7: with an Origin every answer has them, errors too; without one none has. */
TEST(access, any_origin_may_be_allowed)
{
    static const char *const requests[] = {
        "GET / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\n\r\n",
        "GET /none HTTP/1.1\r\nHost: localhost\r\nOrigin: null\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: https://b:1\r\n" JSON_1_0
        "Content-Length: 1\r\n\r\n{",
        "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: x\r\n" JSON_1_0 TARGET("ListTables") SIGNED
        "Content-Length: 2\r\n\r\n{}",
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.cors = HF_STR("*")});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        line_text(&c, requests[i]);
        line_read(&c);
        CHECK(c.status != 403);
        CHECK_STR("*", line_field(&c, "Access-Control-Allow-Origin"));
        CHECK_STR(EXPOSE, line_field(&c, "Access-Control-Expose-Headers"));
        CHECK(!line_field(&c, "Access-Control-Max-Age").ptr);
    }
    get(&c, site.s, "Host: localhost\r\n");
    CHECK_INT(200, c.status);
    check_no_cors(&c);
    line_close(&c);
    site_close(&site);
}

TEST(access, browsers_may_ask_before_they_send)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.cors = HF_STR("*")});
    line_open(&site, &c);
    line_text(&c, "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\n"
                  "Access-Control-Request-Headers: x-amz-target, X-Other\r\n"
                  "Access-Control-Request-Method: POST\r\n\r\n");
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK_STR("", c.body);
    CHECK_STR("*", line_field(&c, "Access-Control-Allow-Origin"));
    CHECK_STR("x-amz-target, X-Other", line_field(&c, "Access-Control-Allow-Headers"));
    CHECK_STR("POST", line_field(&c, "Access-Control-Allow-Methods"));
    CHECK_STR("172800", line_field(&c, "Access-Control-Max-Age"));
    CHECK_STR("0", line_field(&c, "Content-Length"));

    line_text(&c, "OPTIONS /x HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a\r\n\r\n");
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK(!line_field(&c, "Access-Control-Allow-Headers").ptr);
    CHECK(!line_field(&c, "Access-Control-Allow-Methods").ptr);
    CHECK_STR("172800", line_field(&c, "Access-Control-Max-Age"));

    line_text(&c, "OPTIONS / HTTP/1.1\r\nHost: localhost\r\n"
                  "Access-Control-Request-Method: POST\r\n\r\n");
    line_read(&c);
    CHECK_INT(404, c.status);
    check_no_cors(&c);

    { /* names of headers that fill the head come back whole */
        struct hf__buf names = {.scope = site.s};

        for (int i = 0; i < 3000; i++)
            hf__buf_put_str(&names, HF_STR("x-a,"));
        hf__buf_put(&names, "z", 2);
        line_text(&c, hf_scope_format(site.s,
                                      "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://a"
                                      "\r\nAccess-Control-Request-Headers: %s\r\n\r\n",
                                      (const char *)names.ptr)
                          .ptr);
        line_read(&c);
        CHECK_INT(200, c.status);
        CHECK_STR((const char *)names.ptr, line_field(&c, "Access-Control-Allow-Headers"));
    }
    line_close(&c);
    site_close(&site);
}

/* Those of a list, exactly; and a page of our own. Others are kept out before anything is done. */
TEST(access, origins_may_be_listed)
{
    static const struct {
        const char *origin;
        bool listed;
    } cases[] = {
        {"http://a:3000", true},
        {"https://b", true},
        {"http://a", false},
        {"http://a:30001", false},
        {"https://b.evil", false},
        {"https://bb", false},
        {"null", false},
        {"", false},
        {"*", false},
        {"http://a:3000,https://b", false},
    };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.cors = HF_STR("http://a:3000, https://b")});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        get(&c, site.s,
            hf_scope_format(site.s, "Host: localhost\r\nOrigin: %s\r\n", cases[i].origin).ptr);
        if (c.status != (cases[i].listed ? 200 : 403))
            fail_msg("%s gives %d", cases[i].origin, c.status);
        if (cases[i].listed) {
            CHECK_STR(cases[i].origin, line_field(&c, "Access-Control-Allow-Origin"));
            CHECK_STR("Origin", line_field(&c, "Vary"));
        } else {
            check_no_cors(&c);
        }
    }
    line_text(&c,
              "POST / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://evil\r\n" JSON_1_0 TARGET(
                  "PutItem") SIGNED "Content-Length: 46\r\n\r\n"
                                    "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"evil\"}}}");
    line_read(&c);
    CHECK_INT(403, c.status);
    CHECK_STR("{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"message\":\"This "
              "Origin is not allowed; restart the server with --cors to allow it\"}",
              c.body);
    CHECK_STR("application/x-amz-json-1.0", line_field(&c, "Content-Type"));
    check_no_cors(&c);
    CHECK(!site_has(&site, "evil"));
    line_close(&c);
    site_close(&site);
}

TEST(access, pages_of_our_own_need_no_list)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    get(&c, site.s, "Host: localhost:8000\r\nOrigin: http://localhost:8000\r\n");
    CHECK_INT(200, c.status);
    check_no_cors(&c);
    get(&c, site.s, "Host: localhost:8000\r\nOrigin: https://localhost:8000\r\n");
    CHECK_INT(403, c.status);
    get(&c, site.s, "Host: localhost:8000\r\nOrigin: http://localhost:8001\r\n");
    CHECK_INT(403, c.status);
    get(&c, site.s, "Host: localhost:8000\r\nOrigin: http://evil\r\n");
    CHECK_INT(403, c.status);
    get(&c, site.s, "Host: localhost:8000\r\nOrigin: null\r\n");
    CHECK_INT(403, c.status);
    line_close(&c);
    site_close(&site);
}

/* ---- names ---------------------------------------------------------------------------------- */

/* A page can make its own name point to us; then it is of our origin, but the name tells. */
TEST(access, foreign_names_are_refused)
{
    static const struct {
        const char *host;
        int status;
    } cases[] = {
        {"localhost", 200},
        {"LOCALHOST:8000", 200},
        {"a.localhost", 200},
        {"127.0.0.1", 200},
        {"127.0.0.1:8000", 200},
        {"192.168.7.7:1", 200},
        {"[::1]", 200},
        {"[::1]:8000", 200},
        {"db.internal", 200},
        {"DB.Internal:8000", 200},
        {"evil.example", 403},
        {"evil.example:8000", 403},
        {"localhost.evil.example", 403},
        {"127.0.0.1.evil.example", 403},
        {"xlocalhost", 403},
        {"db.internal.evil", 403},
        {"xdb.internal", 403},
        {"", 403},
        {":8000", 403},
        {"1a", 403},
    };
    const struct hf_str hosts[] = {HF_STR("other"), HF_STR("db.internal")};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.hosts = hosts, .hosts_len = 2});
    line_open(&site, &c);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        get(&c, site.s, hf_scope_format(site.s, "Host: %s\r\n", cases[i].host).ptr);
        if (c.status != cases[i].status)
            fail_msg("%s gives %d", cases[i].host, c.status);
    }
    get(&c, site.s, "Host: evil.example\r\nOrigin: http://evil.example\r\n");
    CHECK_INT(403, c.status);
    CHECK_STR("Host \"evil.example\" is not allowed; restart the server with --allow-host\n",
              c.body);
    line_text(&c, "POST / HTTP/1.1\r\nHost: evil.example\r\n" JSON_1_0 TARGET("PutItem") SIGNED
              "Content-Length: 46\r\n\r\n"
              "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"evil\"}}}");
    line_read(&c);
    CHECK_INT(403, c.status);
    CHECK_STR("{\"__type\":\"com.amazon.coral.service#AccessDeniedException\",\"message\":\"Host "
              "\\\"evil.example\\\" is not allowed; restart the server with --allow-host\"}",
              c.body);
    CHECK(!site_has(&site, "evil"));
    line_close(&c);
    site_close(&site);
}

TEST(access, a_star_allows_any_name)
{
    const struct hf_str hosts[] = {HF_STR("*")};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.hosts = hosts, .hosts_len = 1});
    line_open(&site, &c);
    get(&c, site.s, "Host: any.example\r\n");
    CHECK_STR("healthy: any.example ", c.body);
    line_close(&c);
    site_close(&site);
}

/* ---- keys ----------------------------------------------------------------------------------- */

static const struct sign_credentials ann = {.access_key = {"ANN", 3}, .secret_key = {"secret", 6}};
static const struct sign_credentials eve = {.access_key = {"ANN", 3}, .secret_key = {"guess", 5}};

/* A ListTables that is signed so; `body` is what is sent, "{}" what was signed. */
static void send_signed(struct site *site, struct line *c, const struct sign_credentials *who,
                        const char *region, int64_t late_s, const char *body)
{
    struct hf__buf text = {.scope = site->s};
    struct http_head head = {.method = HF_STR("POST"), .path = HF_STR("/"), .minor = 1};
    struct signer *signer;

    head.fields[0] = (struct http_field){HF_STR("Host"), HF_STR("any.example")};
    head.fields[1] = (struct http_field){HF_STR("Content-Type"), hf__type_json_1_0};
    head.fields[2] =
        (struct http_field){HF_STR("X-Amz-Target"), HF_STR("DynamoDB_20120810.ListTables")};
    head.fields_len = 3;
    CHECK_OK(hf__signer_new(site->s, NULL, &signer));
    CHECK_OK(hf__sign_request(site->s, signer, &head,
                              &(struct sign_how){.credentials = who,
                                                 .region = hf_str_from(region),
                                                 .service = HF_STR("dynamodb"),
                                                 .now_s = 1767225600 - late_s,
                                                 .body = hf_bytes_of("{}", 2)}));
    hf__signer_free(signer);
    hf__buf_put_str(&text, HF_STR("POST / HTTP/1.1\r\n"));
    for (size_t i = 0; i < head.fields_len; i++)
        hf__buf_format(&text, "%.*s: %.*s\r\n", HF_FMT(head.fields[i].name),
                       HF_FMT(head.fields[i].value));
    hf__buf_format(&text, "Content-Length: %zu\r\n\r\n%s", strlen(body), body);
    line_send(c, text.ptr, text.len);
}

#define REFUSED(name) "{\"__type\":\"com.amazon.coral.service#" name "\",\"message\":\""

TEST(access, with_keys_only_their_owners_get_in)
{
    struct site site;
    struct line c;

    site_open(t, &site,
              &(struct server_options){
                  .keys = &ann, .keys_len = 1, .region = HF_STR("here"), .loops = 2});
    line_open(&site, &c);
    send_signed(&site, &c, &ann, "here", 0, "{}");
    CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    send_signed(&site, &c, &ann, "here", 299, "{}");
    CHECK_ANSWER(&c, 200, NULL);
    send_signed(&site, &c, &ann, "here", 301, "{}");
    CHECK_ANSWER(&c, 400, NULL);
    CHECK(contains(c.body, REFUSED("InvalidSignatureException") "Signature expired: "));
    send_signed(&site, &c, &eve, "here", 0, "{}");
    CHECK_ANSWER(&c, 400, NULL);
    CHECK(contains(c.body, REFUSED("InvalidSignatureException")));
    send_signed(&site, &c, &ann, "there", 0, "{}");
    CHECK_ANSWER(&c, 400, NULL);
    CHECK(contains(
        c.body,
        REFUSED(
            "InvalidSignatureException") "Credential should be scoped to a valid region, not 'there'. "));
    send_signed(&site, &c, &ann, "here", 0, "{ }"); /* another body than was signed */
    CHECK_ANSWER(&c, 400, NULL);
    CHECK(contains(c.body, REFUSED("InvalidSignatureException")));

    line_call(&c, "ListTables", "{}"); /* well formed, which is not enough */
    CHECK_ANSWER(&c, 400, NULL);
    line_text(&c, "POST / HTTP/1.1\r\nHost: localhost\r\n" JSON_1_0 TARGET(
                      "ListTables") "Content-Length: 2\r\n\r\n{}");
    CHECK_ANSWER(
        &c, 400,
        REFUSED(
            "MissingAuthenticationTokenException") "Request is missing Authentication Token\"}");
    get(&c, site.s, "Host: any.example\r\n"); /* health is for all; no name is asked for */
    CHECK_INT(200, c.status);
    line_close(&c);
    site_close(&site);
}

/* Beyond loopback only with keys, or on purpose. */
TEST(access, listening_beyond_loopback_needs_keys)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_engine_options engine = {.size = sizeof(engine),
                                       .env = test_env(t),
                                       .no_upkeep_thread = true};
    struct server_options options = {.env = test_env(t), .host = HF_STR("0.0.0.0"), .loops = 1};
    struct server *server;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), &engine, &db));
    CHECK_STATUS(HF_INVALID, hf__server_open(s, db, &options, &server));
    CHECK(server == NULL);
    options.open_to_all = true;
    CHECK_OK(hf__server_open(s, db, &options, &server));
    hf__server_close(server);
    options = (struct server_options){.env = test_env(t), .host = HF_STR("no such host")};
    CHECK_STATUS(HF_INVALID, hf__server_open(s, db, &options, &server));
    options = (struct server_options){.env = test_env(t), .loops = 257};
    CHECK_STATUS(HF_INVALID, hf__server_open(s, db, &options, &server));
    hf_db_close(db);
    hf_scope_free(s);
}

/* Two servers do not get the same port, and the second says which one it wanted. */
TEST(access, a_port_is_had_by_one)
{
    struct server *second;
    struct site site;

    site_open(t, &site, &(struct server_options){0});
    CHECK_STATUS(HF_IO,
                 hf__server_open(site.s, site.db,
                                 &(struct server_options){.env = test_env(t), .port = site.port},
                                 &second));
    CHECK(contains(hf_str_from(hf_scope_error_text(site.s)),
                   hf_scope_format(site.s, "port %u", (unsigned)site.port).ptr));
    site_close(&site);
}
