/* base/utf8_test.c: every length, every border, at every distance from the end of a word. */
#include "base/utf8.h"

#include "test.h"

/* The bytes behind `front` letters and before `back` more. */
static bool valid_at(const char *bytes, size_t len, size_t front, size_t back)
{
    char text[64];

    memset(text, 'x', sizeof(text));
    memcpy(text + front, bytes, len);
    return hf__utf8_valid(hf_str_of(text, front + len + back));
}

static const char *const good[] = {"\x7F",         "\xC2\x80",         "\xDF\xBF",
                                   "\xE0\xA0\x80", "\xED\x9F\xBF",     "\xEE\x80\x80",
                                   "\xEF\xBF\xBF", "\xF0\x90\x80\x80", "\xF4\x8F\xBF\xBF"};
static const char *const bad[] = {"\x80",
                                  "\xBF",
                                  "\xC0\x80",
                                  "\xC1\xBF",
                                  "\xC2",
                                  "\xC2\x41",
                                  "\xE0\x9F\xBF",
                                  "\xED\xA0\x80",
                                  "\xE1\x80",
                                  "\xE1\x80\x41",
                                  "\xF0\x8F\xBF\xBF",
                                  "\xF4\x90\x80\x80",
                                  "\xF1\x80\x80",
                                  "\xF5\x80",
                                  "\xFF"};

TEST(utf8, borders_at_every_place)
{
    CHECK(hf__utf8_valid(hf_str_of(NULL, 0)));
    CHECK(hf__utf8_valid(HF_STR("")));
    for (size_t front = 0; front < 20; front++)
        for (size_t back = 0; back < 20; back++) {
            for (size_t i = 0; i < ARRAY_LEN(good); i++)
                CHECK(valid_at(good[i], strlen(good[i]), front, back));
            for (size_t i = 0; i < ARRAY_LEN(bad); i++)
                CHECK(!valid_at(bad[i], strlen(bad[i]), front, back));
        }
}
