/*
 * server/coding_test.c: packed requests and packed answers (C.1.8).
 */
#include "help.h"

#include <libdeflate.h>

enum { GZIP, ZLIB };

static struct hf_str packed(struct hf_scope *s, int form, const void *bytes, size_t len)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    size_t room = libdeflate_gzip_compress_bound(c, len);
    char *out = hf_scope_alloc(s, room);
    size_t used = form == GZIP ? libdeflate_gzip_compress(c, bytes, len, out, room)
                               : libdeflate_zlib_compress(c, bytes, len, out, room);

    libdeflate_free_compressor(c);
    CHECK(used > 0);
    return hf_str_of(out, used);
}

static struct hf_str packed_text(struct hf_scope *s, int form, const char *text)
{
    return packed(s, form, text, strlen(text));
}

static struct hf_str joined(struct hf_scope *s, struct hf_str a, struct hf_str b)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, a);
    hf__buf_put_str(&buf, b);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

static void send_coded(struct site *site, struct line *c, const char *operation, const char *coding,
                       struct hf_str body)
{
    struct hf_str text = post_text(site->s,
                                   hf_scope_format(site->s,
                                                   "Host: localhost\r\n" JSON_1_0
                                                   "X-Amz-Target: DynamoDB_20120810.%s\r\n" SIGNED
                                                   "Content-Encoding: %s\r\n",
                                                   operation, coding)
                                       .ptr,
                                   body);

    line_send(c, text.ptr, text.len);
}

#define PUT_A "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"a\"}}}"
#define PUT_B1 "{\"TableName\":\"tab\",\"Item\":{\"pk\":"
#define PUT_B2 "{\"S\":\"b\"}}}"

TEST(coding, requests_may_be_packed)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    send_coded(&site, &c, "PutItem", "gzip", packed_text(site.s, GZIP, PUT_A));
    CHECK_ANSWER(&c, 200, "{}");
    CHECK(site_has(&site, "a"));
    send_coded(&site, &c, "PutItem", "GZip",
               joined(site.s, packed_text(site.s, GZIP, PUT_B1),
                      packed_text(site.s, GZIP, PUT_B2)));
    CHECK_ANSWER(&c, 200, "{}");
    CHECK(site_has(&site, "b"));
    send_coded(&site, &c, "ListTables", "deflate", packed_text(site.s, ZLIB, "{}"));
    CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    send_coded(&site, &c, "ListTables", "identity", HF_STR("{}"));
    CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    send_coded(&site, &c, "ListTables", "gzip", packed_text(site.s, GZIP, "{"));
    CHECK_ANSWER(&c, 400, SERIALIZATION_BARE);
    send_coded(&site, &c, "ListTables", "gzip", packed_text(site.s, GZIP, ""));
    CHECK_ANSWER(&c, 400, SERIALIZATION_BARE);
    line_close(&c);
    site_close(&site);
}

/* Broken, cut, empty or unknown is a 500, as the service has it; the connection goes on. */
TEST(coding, broken_packing_is_a_500)
{
    struct hf_str gzip, zlib;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    gzip = packed_text(site.s, GZIP, PUT_A);
    zlib = packed_text(site.s, ZLIB, PUT_A);
    {
        const struct {
            const char *coding;
            struct hf_str body;
        } cases[] = {
            {"gzip", HF_STR("")},
            {"gzip", HF_STR("{}")},
            {"gzip", hf_str_of(gzip.ptr, gzip.len - 1)},
            {"gzip", hf_str_of(gzip.ptr, 9)},
            {"gzip", joined(site.s, gzip, HF_STR("x"))},
            {"gzip", zlib},
            {"deflate", HF_STR("")},
            {"deflate", gzip},
            {"deflate", hf_str_of(zlib.ptr, zlib.len - 1)},
            {"deflate", joined(site.s, zlib, zlib)},
            {"br", HF_STR("{}")},
            {"zstd", HF_STR("{}")},
            {"gzip, gzip", gzip},
            {"gzip;q=1", gzip},
        };

        line_open(&site, &c);
        for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
            send_coded(&site, &c, "PutItem", cases[i].coding, cases[i].body);
            CHECK_ANSWER(&c, 500, NULL);
            CHECK(contains(c.body,
                           "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\","
                           "\"message\":\""));
        }
    }
    CHECK(!site_has(&site, "a"));
    line_call(&c, "ListTables", "{}");
    CHECK_ANSWER(&c, 200, NULL);
    line_close(&c);
    site_close(&site);
}

/* A limit's worth of blanks around {} passes; a byte more is a 413, and little memory is used. */
TEST(coding, bombs_are_a_413)
{
    enum { LIMIT = 16 * 1024 * 1024 };
    struct hf_str at, over;
    struct site site;
    struct line c;
    char *text;

    site_open(t, &site, &(struct server_options){0});
    text = hf_scope_alloc(site.s, LIMIT + 1);
    memset(text, ' ', LIMIT + 1);
    memcpy(text, "{}", 2);
    at = packed(site.s, GZIP, text, LIMIT);
    over = packed(site.s, GZIP, text, LIMIT + 1);
    line_open(&site, &c);
    send_coded(&site, &c, "ListTables", "gzip", at);
    CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
    send_coded(&site, &c, "ListTables", "gzip", over);
    line_read(&c);
    CHECK_INT(413, c.status);
    CHECK_STR("{\"__type\":\"com.amazon.coral.service#RequestEntityTooLargeException\","
              "\"message\":\"the body unpacks to more than 16777216 bytes\"}",
              c.body);
    send_coded(&site, &c, "ListTables", "gzip", joined(site.s, at, packed_text(site.s, GZIP, " ")));
    line_read(&c);
    CHECK_INT(413, c.status);
    send_coded(&site, &c, "ListTables", "deflate", packed(site.s, ZLIB, text, LIMIT + 1));
    line_read(&c);
    CHECK_INT(413, c.status);
    line_call(&c, "ListTables", "{}");
    CHECK_ANSWER(&c, 200, NULL);
    line_close(&c);
    site_close(&site);
}

/* ---- answers -------------------------------------------------------------------------------- */

static void send_get(struct site *site, struct line *c, const char *pk, const char *fields)
{
    struct hf_str text = post_text(
        site->s,
        hf_scope_format(site->s, "Host: localhost\r\n" JSON_1_0 TARGET("GetItem") SIGNED "%s",
                        fields)
            .ptr,
        hf_scope_format(site->s, "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"%s\"}}}", pk));

    line_send(c, text.ptr, text.len);
}

/* Above 4 KiB only, for who accepts it only, by q values and the first field. */
TEST(coding, answers_are_packed_for_who_accepts_that)
{
    static const struct {
        const char *fields;
        const char *expected; /* NULL: not packed */
    } cases[] = {
        {"", NULL},
        {"Accept-Encoding: gzip\r\n", "gzip"},
        {"accept-encoding: GZIP\r\n", "gzip"},
        {"Accept-Encoding: deflate\r\n", "deflate"},
        {"Accept-Encoding: gzip, deflate, br\r\n", "gzip"},
        {"Accept-Encoding: gzip;q=0.5, deflate\r\n", "deflate"},
        {"Accept-Encoding: gzip;q=0, deflate;q=0\r\n", NULL},
        {"Accept-Encoding: gzip;q=0.000\r\n", NULL},
        {"Accept-Encoding: identity\r\n", NULL},
        {"Accept-Encoding: identity, gzip;q=0.9\r\n", NULL},
        {"Accept-Encoding: br\r\n", NULL},
        {"Accept-Encoding: *\r\n", "gzip"},
        {"Accept-Encoding: *;q=0\r\n", NULL},
        {"Accept-Encoding: \r\n", NULL},
        {"Accept-Encoding: identity\r\nAccept-Encoding: gzip\r\n", NULL},
        {"Accept-Encoding: gzip\r\nAccept-Encoding: identity\r\n", "gzip"},
    };
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    struct hf_str plain;
    struct site site;
    struct line c;
    char *out;

    site_open(t, &site, &(struct server_options){0});
    site_put(&site, "big", 20000);
    line_open(&site, &c);
    send_get(&site, &c, "big", "");
    CHECK_ANSWER(&c, 200, NULL);
    plain = hf_scope_copy(site.s, c.body);
    out = hf_scope_alloc(site.s, plain.len);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        enum libdeflate_result result = LIBDEFLATE_SUCCESS;
        size_t used;

        send_get(&site, &c, "big", cases[i].fields);
        CHECK_ANSWER(&c, 200, NULL); /* with the crc of what was sent */
        if (!cases[i].expected) {
            CHECK(!line_field(&c, "Content-Encoding").ptr);
            CHECK_STR(plain.ptr, c.body);
            continue;
        }
        CHECK_STR(cases[i].expected, line_field(&c, "Content-Encoding"));
        CHECK(c.body.len < plain.len);
        memset(out, 0, plain.len);
        if (cases[i].expected[0] == 'g')
            result = libdeflate_gzip_decompress(d, c.body.ptr, c.body.len, out, plain.len, &used);
        else
            result = libdeflate_zlib_decompress(d, c.body.ptr, c.body.len, out, plain.len, &used);
        CHECK_INT(LIBDEFLATE_SUCCESS, result);
        CHECK_INT(plain.len, used);
        CHECK(memcmp(out, plain.ptr, plain.len) == 0);
    }
    line_close(&c);
    libdeflate_free_decompressor(d);
    site_close(&site);
}

/* A body of 4,096 bytes stays, one of 4,097 is packed. */
TEST(coding, answers_are_packed_above_4_kib)
{
    size_t around = strlen("{\"Item\":{\"pk\":{\"S\":\"a\"},\"text\":{\"S\":\"\"}}}");
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){0});
    line_open(&site, &c);
    site_put(&site, "a", 4096 - around);
    send_get(&site, &c, "a", "Accept-Encoding: gzip\r\n");
    CHECK_ANSWER(&c, 200, NULL);
    CHECK(!line_field(&c, "Content-Encoding").ptr);
    CHECK_INT(4096, c.body.len);
    site_put(&site, "a", 4097 - around);
    send_get(&site, &c, "a", "Accept-Encoding: gzip\r\n");
    CHECK_ANSWER(&c, 200, NULL);
    CHECK_STR("gzip", line_field(&c, "Content-Encoding"));
    line_close(&c);
    site_close(&site);
}

/* With keys, a body is unpacked only for who may call: it can take seconds. */
TEST(coding, strangers_have_nothing_unpacked)
{
    static const struct sign_credentials key = {.access_key = {"key", 3},
                                                .secret_key = {"secret", 6}};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.keys = &key, .keys_len = 1});
    line_open(&site, &c);
    send_coded(&site, &c, "ListTables", "gzip", HF_STR("not packed at all"));
    CHECK_ANSWER(&c, 400, NULL);
    CHECK(contains(c.body, "#InvalidSignatureException"));
    send_coded(&site, &c, "ListTables", "identity", HF_STR("{"));
    CHECK_ANSWER(&c, 400, SERIALIZATION_BARE);
    line_close(&c);
    site_close(&site);
}
