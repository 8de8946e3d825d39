/* base/texts_test.c: small pieces that turn bytes into texts and numbers: fnv.h, base32.h, hex digits,
 * URL encoding, zeroed memory. */
#include "base/base32.h"
#include "base/buf.h"
#include "base/fnv.h"
#include "test.h"

/* Vectors of the authors' own list. Items are found by these hashes: none may ever change. */
TEST(texts, fnv_is_fnv_1a)
{
    CHECK(fnv_add(FNV_BEGIN, "", 0) == UINT64_C(0xcbf29ce484222325));
    CHECK(fnv_add(FNV_BEGIN, "a", 1) == UINT64_C(0xaf63dc4c8601ec8c));
    CHECK(fnv_add(FNV_BEGIN, "foobar", 6) == UINT64_C(0x85944171f73967e8));
    CHECK(fnv_add(fnv_add(FNV_BEGIN, "foo", 3), "bar", 3) == UINT64_C(0x85944171f73967e8));
    CHECK(fnv_fold(UINT64_C(0x85944171f73967e8)) == UINT64_C(0x8594417172ad2699));
}

TEST(texts, base32_both_cases)
{
    char text[13];
    uint64_t number;

    CHECK(base32_write(text, 1469918176385u, 10, BASE32_UPPER) == text + 10);
    CHECK_STR("01ARYZ6S41", hf_str_of(text, 10)); /* the time of the ULID that its spec shows */
    CHECK(base32_read(text, 10, BASE32_UPPER, &number) && number == 1469918176385u);
    CHECK(!base32_read(text, 10, BASE32_LOWER, &number));
    base32_write(text, 1469918176385u, 10, BASE32_LOWER);
    CHECK_STR("01aryz6s41", hf_str_of(text, 10));
    CHECK(base32_read(text, 10, BASE32_LOWER, &number) && number == 1469918176385u);
    CHECK(!base32_read(text, 10, BASE32_UPPER, &number));
    base32_write(text, 33, 1, BASE32_LOWER); /* the low bits alone */
    CHECK_STR("1", hf_str_of(text, 1));
    base32_write(text, UINT64_MAX, 13, BASE32_UPPER);
    CHECK_STR("FZZZZZZZZZZZZ", hf_str_of(text, 13));
    CHECK(base32_read(text, 13, BASE32_UPPER, &number) && number == UINT64_MAX);
}

TEST(texts, base32_every_byte)
{
    static const char *const alphabets[] = {BASE32_LOWER, BASE32_UPPER};

    for (size_t i = 0; i < ARRAY_LEN(alphabets); i++)
        for (int c = 0; c < 256; c++) {
            const char *found = memchr(alphabets[i], c, 32), text[2] = {(char)c, '1'};
            uint64_t number;

            CHECK_INT(found ? 1 : 0, base32_read(text, 1, alphabets[i], &number));
            CHECK(!found || number == (uint64_t)(found - alphabets[i]));
            CHECK_INT(found ? 1 : 0, base32_read(text, 2, alphabets[i], &number));
        }
}

TEST(texts, hex_both_ways)
{
    static const uint8_t bytes[] = {0x00, 0x7f, 0x80, 0xff, 0x1a};
    char text[2 * sizeof(bytes)];

    CHECK(hex_write(text, bytes, sizeof(bytes)) == text + sizeof(text));
    CHECK_STR("007f80ff1a", hf_str_of(text, sizeof(text)));
    for (size_t i = 0; i < sizeof(bytes); i++)
        CHECK_INT(bytes[i], hex_digit(text[2 * i]) * 16 + hex_digit(text[2 * i + 1]));
    CHECK_INT(15, hex_digit('F'));
    CHECK_INT(-1, hex_digit('g'));
    CHECK_INT(-1, hex_digit('@'));
    CHECK_INT(-1, hex_digit('\0'));
}

TEST(texts, urls)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};

    hf__buf_put_url(&buf, HF_STR("aZ09-_.~ /%\xc3\xbc"), "");
    CHECK_STR("aZ09-_.~%20%2F%25%C3%BC", hf_str_of((const char *)buf.ptr, buf.len));
    buf.len = 0;
    hf__buf_put_url(&buf, hf_str_of("a/b\0", 4), "/");
    CHECK_STR("a/b%00", hf_str_of((const char *)buf.ptr, buf.len));
    hf_scope_free(s);
}

TEST(texts, zeroed_memory)
{
    const struct hf_env *env = test_env(t);
    uint8_t *ptr = hf__env_zalloc(env, 100);

    for (size_t i = 0; i < 100; i++)
        CHECK_INT(0, ptr[i]);
    hf__env_free(env, ptr, 100);
    ptr = hf__env_zalloc(env, 0); /* as malloc(0) never is NULL here */
    CHECK(ptr != NULL);
    hf__env_free(env, ptr, 0);
}
