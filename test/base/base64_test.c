/* base/base64_test.c: canonical base64, both ways. */
#include "base/base64.h"

#include "test.h"

static void check_pair(const char *plain, const char *text)
{
    uint8_t bytes[64];
    char back[64];
    size_t len;

    CHECK_INT(BASE64_OK, hf__base64_decode(hf_str_from(text), bytes, &len));
    CHECK_STR(plain, hf_str_of((const char *)bytes, len));
    CHECK_INT(strlen(text), hf__base64_encoded_len(strlen(plain)));
    len = hf__base64_encode(hf_bytes_of(plain, strlen(plain)), back);
    CHECK_STR(text, hf_str_of(back, len));
}

TEST(base64, texts_of_the_rfc)
{
    check_pair("", "");
    check_pair("f", "Zg==");
    check_pair("fo", "Zm8=");
    check_pair("foo", "Zm9v");
    check_pair("foob", "Zm9vYg==");
    check_pair("fooba", "Zm9vYmE=");
    check_pair("foobar", "Zm9vYmFy");
    check_pair("\xFB\xFF\xFE", "+//+");
}

static enum base64_result decode(const char *text)
{
    uint8_t bytes[64];
    size_t len;

    return hf__base64_decode(hf_str_from(text), bytes, &len);
}

TEST(base64, what_is_not_canonical_is_refused)
{
    CHECK_INT(BASE64_LENGTH, decode("Z"));
    CHECK_INT(BASE64_LENGTH, decode("Zg"));
    CHECK_INT(BASE64_LENGTH, decode("Zg="));
    CHECK_INT(BASE64_LENGTH, decode("23456"));
    CHECK_INT(BASE64_LAST, decode("Zh=="));
    CHECK_INT(BASE64_LAST, decode("Zm9="));
    CHECK_INT(BASE64_LAST, decode("+/+="));
    CHECK_INT(BASE64_LAST, decode("=+/="));
    CHECK_INT(BASE64_CHARACTER, decode("===="));
    CHECK_INT(BASE64_CHARACTER, decode("A==="));
    CHECK_INT(BASE64_CHARACTER, decode("Zg==Zg=="));
    CHECK_INT(BASE64_CHARACTER, decode("Zm9-"));
    CHECK_INT(BASE64_CHARACTER, decode("Zm _"));
    CHECK_INT(BASE64_CHARACTER, decode("\xC3\xA9 A"));
    CHECK_INT(BASE64_CHARACTER, decode("Z\nZm9v=A"));
}

/* Any bytes come back; and of all texts of four characters, exactly those that encoding gives are
 * accepted. */
TEST(base64, decoding_accepts_what_encoding_gives_and_nothing_else)
{
    static const char some[] = "ABCQgwxz0189+/=-_ \n";
    char text[4];

    for (int round = 0; round < 2000; round++) {
        uint8_t bytes[100], back[100];
        char encoded[200];
        size_t len = test_random_below(t, sizeof(bytes));
        size_t text_len, back_len;

        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)test_random(t);
        text_len = hf__base64_encode(hf_bytes_of(bytes, len), encoded);
        CHECK_INT(BASE64_OK, hf__base64_decode(hf_str_of(encoded, text_len), back, &back_len));
        CHECK_INT(len, back_len);
        CHECK(memcmp(bytes, back, len) == 0);
    }
    for (size_t i = 0; i < 19 * 19 * 19 * 19; i++) {
        uint8_t bytes[3];
        char again[4];
        size_t len;

        text[0] = some[i % 19];
        text[1] = some[i / 19 % 19];
        text[2] = some[i / 361 % 19];
        text[3] = some[i / 6859 % 19];
        if (hf__base64_decode(hf_str_of(text, 4), bytes, &len) != BASE64_OK)
            continue;
        CHECK_INT(4, hf__base64_encode(hf_bytes_of(bytes, len), again));
        CHECK(memcmp(text, again, 4) == 0);
    }
}
