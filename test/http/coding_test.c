/*
 * test/http/coding_test.c: gzip and deflate; (n) is an invariant of coding.c.
 */
#include "http/http.h"

#include "test.h"

enum { BIG = 300 * 1000 };

static struct hf_bytes bytes_of(const char *text)
{
    return hf_bytes_of(text, strlen(text));
}

/* Bytes that pack somewhat: words from a small set. */
static struct hf_bytes wordy(struct test *t, struct hf_scope *s, size_t len)
{
    uint8_t *bytes = hf_scope_alloc(s, len);

    for (size_t i = 0; i < len; i++)
        bytes[i] = (uint8_t)("{\"S\":\"value\"},0123"[test_random_below(t, 18)]);
    return hf_bytes_of(bytes, len);
}

static void check_same(struct hf_bytes expected, struct hf_bytes actual)
{
    CHECK_INT(expected.len, actual.len);
    CHECK(expected.len == 0 || memcmp(expected.ptr, actual.ptr, expected.len) == 0);
}

static struct hf_bytes joined(struct hf_scope *s, struct hf_bytes a, struct hf_bytes b)
{
    uint8_t *both = hf_scope_alloc(s, a.len + b.len);

    memcpy(both, a.ptr, a.len);
    memcpy(both + a.len, b.ptr, b.len);
    return hf_bytes_of(both, a.len + b.len);
}

static struct hf_bytes packed(struct hf_scope *s, enum http_coding coding, struct hf_bytes body)
{
    struct hf_bytes out;

    CHECK_OK(hf__http_pack(s, coding, body, &out));
    return out;
}

static const struct {
    enum http_coding coding;
    const char *name;
} codings[] = {{HTTP_GZIP, "gzip"},
               {HTTP_GZIP, "X-GZIP"},
               {HTTP_DEFLATE, "deflate"},
               {HTTP_IDENTITY, "identity"},
               {HTTP_IDENTITY, ""}};

TEST(coding, what_was_packed_unpacks_to_the_same)
{
    static const size_t sizes[] = {0, 1, 2, 17, 1000, 1024, 1025, 70000, BIG};
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t c = 0; c < 5; c++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
            struct hf_bytes body = wordy(t, s, sizes[i]), out;

            CHECK_OK(hf__http_unpack(s, hf_str_from(codings[c].name),
                                     packed(s, codings[c].coding, body), sizes[i], &out));
            check_same(body, out);
        }
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

TEST(coding, packing_makes_answers_smaller_and_has_the_right_format)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_bytes body = wordy(t, s, 10000), out;

    out = packed(s, HTTP_GZIP, body);
    CHECK(out.len < 7000 && out.ptr[0] == 0x1F && out.ptr[1] == 0x8B && out.ptr[2] == 8);
    out = packed(s, HTTP_DEFLATE, body); /* zlib's header: a method, and a multiple of 31 */
    CHECK(out.len < 7000 && (out.ptr[0] & 15) == 8 && (out.ptr[0] * 256 + out.ptr[1]) % 31 == 0);
    out = packed(s, HTTP_IDENTITY, body);
    CHECK(out.ptr == body.ptr && out.len == body.len);
    out = packed(s, HTTP_GZIP, (struct hf_bytes){0});
    CHECK(out.len >= 18);
    hf_scope_free(s);
}

/* Written by another program: gzip -9 of "hello\n", with a file name in it. */
TEST(coding, a_member_with_a_name_unpacks)
{
    static const uint8_t named[] = {0x1f, 0x8b, 0x08, 0x08, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03,
                                    'a',  0x00, 0xcb, 0x48, 0xcd, 0xc9, 0xc9, 0xe7, 0x02, 0x00,
                                    0x20, 0x30, 0x3a, 0x36, 0x06, 0x00, 0x00, 0x00};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_bytes out;

    CHECK_OK(hf__http_unpack(s, HF_STR("gzip"), hf_bytes_of(named, sizeof(named)), 100, &out));
    check_same(bytes_of("hello\n"), out);
    hf_scope_free(s);
}

/* (3): gzip may have several members, deflate has one stream, and neither has a rest. */
TEST(coding, members_are_put_together_and_a_rest_is_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_bytes one = wordy(t, s, 5000), two = wordy(t, s, BIG), none = bytes_of(""), out;
    struct hf_bytes gzip = joined(s, packed(s, HTTP_GZIP, one), packed(s, HTTP_GZIP, two));
    struct hf_bytes zlib = joined(s, packed(s, HTTP_DEFLATE, one), packed(s, HTTP_DEFLATE, two));

    CHECK_OK(hf__http_unpack(s, HF_STR("gzip"), gzip, HTTP_BODY_MAX, &out));
    check_same(joined(s, one, two), out);
    /* The last member's length says nothing about the ones before it. */
    gzip = joined(s, gzip, packed(s, HTTP_GZIP, none));
    CHECK_OK(hf__http_unpack(s, HF_STR("gzip"), gzip, 5000 + BIG, &out));
    check_same(joined(s, one, two), out);
    CHECK_STATUS(HF_LIMIT, hf__http_unpack(s, HF_STR("gzip"), gzip, 5000 + BIG - 1, &out));
    CHECK_STATUS(HF_INVALID, hf__http_unpack(s, HF_STR("gzip"), joined(s, gzip, bytes_of("x")),
                                             HTTP_BODY_MAX, &out));
    CHECK_STATUS(HF_INVALID, hf__http_unpack(s, HF_STR("deflate"), zlib, HTTP_BODY_MAX, &out));
    CHECK_ERROR(HF_INVALID, "the body has more bytes after its deflate data", s);
    hf_scope_free(s);
}

/* (1) (2): memory is bounded by the limit, and by what the data can fill. */
TEST(coding, bombs_are_limited)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    size_t huge = 64 * 1024 * 1024, before;
    struct hf_bytes zeros, bomb[2], out;
    static const char *const names[] = {"gzip", "deflate"};

    zeros = hf_bytes_of(hf__scope_array(s, huge, 1), huge);
    bomb[0] = packed(s, HTTP_GZIP, zeros);
    bomb[1] = packed(s, HTTP_DEFLATE, zeros);
    for (size_t i = 0; i < 2; i++) {
        struct hf_scope *small = hf_scope_new(test_env(t));

        before = t->live_bytes;
        CHECK(bomb[i].len < huge / 500);
        CHECK_STATUS(HF_LIMIT,
                     hf__http_unpack(small, hf_str_from(names[i]), bomb[i], 1000000, &out));
        CHECK_ERROR(HF_LIMIT, "the body unpacks to more than 1000000 bytes", small);
        CHECK(t->live_bytes - before < 4 * 1000000); /* chunks of a scope double */
        hf_scope_free(small);
        CHECK_STATUS(HF_LIMIT, hf__http_unpack(s, hf_str_from(names[i]), bomb[i], huge - 1, &out));
        CHECK_OK(hf__http_unpack(s, hf_str_from(names[i]), bomb[i], huge, &out));
        CHECK_INT(huge, out.len);
    }
    hf_scope_free(s);
}

/* (2): a length that is a lie does not make us take memory. */
TEST(coding, a_claimed_length_takes_no_memory)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_bytes body = packed(s, HTTP_GZIP, bytes_of("hello")), out;
    uint8_t *liar = hf_scope_alloc(s, body.len);
    size_t before = t->live_bytes;

    memcpy(liar, body.ptr, body.len);
    memset(liar + body.len - 4, 0xFF, 4);
    CHECK_STATUS(HF_INVALID, hf__http_unpack(s, HF_STR("gzip"), hf_bytes_of(liar, body.len),
                                             HTTP_BODY_MAX, &out));
    CHECK(t->live_bytes - before < 200 * 1000);
    hf_scope_free(s);
}

TEST(coding, the_limit_holds_without_a_coding_too)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_bytes out;

    CHECK_OK(hf__http_unpack(s, (struct hf_str){0}, bytes_of("12345"), 5, &out));
    CHECK_STATUS(HF_LIMIT, hf__http_unpack(s, HF_STR(""), bytes_of("12345"), 4, &out));
    CHECK_OK(hf__http_unpack(s, HF_STR("gzip"), packed(s, HTTP_GZIP, bytes_of("")), 0, &out));
    CHECK_INT(0, out.len);
    CHECK_STATUS(HF_LIMIT,
                 hf__http_unpack(s, HF_STR("gzip"), packed(s, HTTP_GZIP, bytes_of("x")), 0, &out));
    hf_scope_free(s);
}

/* Every prefix is refused, and every changed bit, unless it is one that stands for nothing. */
TEST(coding, truncated_and_broken_data_is_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t c = 0; c < 3; c += 2) {
        struct hf_bytes body = wordy(t, s, 300), whole = packed(s, codings[c].coding, body), out;
        struct hf_str name = hf_str_from(codings[c].name);
        size_t first = codings[c].coding == HTTP_GZIP ? 10 : 2, refused = 0;

        for (size_t len = 0; len < whole.len; len++)
            CHECK_STATUS(HF_INVALID,
                         hf__http_unpack(s, name, hf_bytes_of(whole.ptr, len), 100000, &out));
        CHECK(out.ptr == NULL && out.len == 0);
        for (size_t i = first; i < whole.len; i++) {
            uint8_t *broken = hf_scope_alloc(s, whole.len);
            enum hf_status status;

            memcpy(broken, whole.ptr, whole.len);
            broken[i] ^= 0x10;
            status = hf__http_unpack(s, name, hf_bytes_of(broken, whole.len), 100000, &out);
            if (status == HF_OK)
                check_same(body, out);
            refused += status != HF_OK;
        }
        CHECK(refused + 8 >= whole.len - first); /* padding, and lengths of codes never used */
    }
    hf_scope_free(s);
}

TEST(coding, unknown_codings_are_refused)
{
    static const char *const names[] = {"br", "gzip, gzip", "gzi", "gzipp", "*", "zstd", ","};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_bytes body = packed(s, HTTP_GZIP, bytes_of("hello")), out;

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        CHECK_STATUS(HF_INVALID, hf__http_unpack(s, hf_str_from(names[i]), body, 1000, &out));
    CHECK_ERROR(HF_INVALID, "unsupported content coding: use gzip or deflate", s);
    hf_scope_free(s);
}

TEST(coding, lack_of_memory_is_an_answer)
{
    struct hf_scope *keep = hf_scope_new(test_env(t));
    struct hf_bytes body = wordy(t, keep, BIG), gzip = packed(keep, HTTP_GZIP, body);

    /* Two members, the last one empty: the guess is too small, so that room must grow. */
    gzip = joined(keep, gzip, packed(keep, HTTP_GZIP, bytes_of("")));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_bytes out;
        enum hf_status status =
            s ? hf__http_unpack(s, HF_STR("gzip"), gzip, HTTP_BODY_MAX, &out) : HF_NOMEM;

        if (status == HF_OK)
            status = hf__http_pack(s, HTTP_DEFLATE, body, &out);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_scope_free(s);
    }
    hf_scope_free(keep);
}

TEST(coding, weights_decide)
{
    static const struct {
        const char *accept;
        enum http_coding coding;
    } cases[] = {
        {"", HTTP_IDENTITY},
        {"gzip", HTTP_GZIP},
        {"GZip", HTTP_GZIP},
        {"x-gzip", HTTP_GZIP},
        {"deflate", HTTP_DEFLATE},
        {"identity", HTTP_IDENTITY},
        {"gzip, deflate", HTTP_GZIP},
        {"deflate, gzip", HTTP_GZIP},
        {"gzip,deflate,br", HTTP_GZIP},
        {"br, zstd", HTTP_IDENTITY},
        {"gzip;q=0.5, deflate", HTTP_DEFLATE},
        {"gzip;q=0.5, deflate;q=0.499", HTTP_GZIP},
        {"gzip;q=0.499, deflate;q=0.5", HTTP_DEFLATE},
        {"gzip ; q=0.001", HTTP_GZIP},
        {"gzip;Q=0", HTTP_IDENTITY},
        {"gzip;q=0", HTTP_IDENTITY},
        {"gzip;q=0.000", HTTP_IDENTITY},
        {"gzip;q=0, deflate;q=0.1", HTTP_DEFLATE},
        {"gzip;q=1.000", HTTP_GZIP},
        {"gzip;q=1.001", HTTP_IDENTITY},
        {"gzip;q=2", HTTP_IDENTITY},
        {"gzip;q=-1", HTTP_IDENTITY},
        {"gzip;q=0.1234", HTTP_IDENTITY},
        {"gzip;q=.5", HTTP_IDENTITY},
        {"gzip;q=", HTTP_IDENTITY},
        {"gzip;q=x", HTTP_IDENTITY},
        {"gzip;level=9;q=0", HTTP_IDENTITY},
        {"gzip;level=9", HTTP_GZIP},
        {"*", HTTP_GZIP},
        {"*;q=0", HTTP_IDENTITY},
        {"*;q=0.1, gzip;q=0", HTTP_DEFLATE},
        {"gzip;q=0.1, *;q=0.2", HTTP_DEFLATE},
        {"identity;q=0, *", HTTP_GZIP},
        {"identity, gzip;q=0.5", HTTP_IDENTITY},
        {"identity, deflate;q=0.5", HTTP_IDENTITY},
        {"identity;q=0.5, gzip;q=0.5", HTTP_GZIP},
        {"identity;q=0.5, gzip;q=0.4, deflate;q=0.5", HTTP_DEFLATE},
        {"gzip;q=0, gzip;q=1", HTTP_IDENTITY},
        {" , ,\tgzip\t, ", HTTP_GZIP},
        {",,,;;;,", HTTP_IDENTITY},
        {"gzipx, xgzip", HTTP_IDENTITY},
    };

    CHECK_INT(HTTP_IDENTITY, hf__http_accepted((struct hf_str){0}));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        enum http_coding coding = hf__http_accepted(hf_str_from(cases[i].accept));

        if (coding != cases[i].coding)
            print_message("Accept-Encoding: %s\n", cases[i].accept);
        CHECK_INT(cases[i].coding, coding);
    }
}
