/* wire/json_test.c: the lexer; (n) is an invariant of base/json.c. */
#include "wire/private.h"

#include "test.h"

#include <locale.h>

static bool valid(const char *text)
{
    return hf__wire_json_valid(hf_str_from(text));
}

TEST(json, what_is_json)
{
    static const char *const good[] = {
        "{}",
        "[]",
        " { } ",
        "\t\r\n[\n]\t",
        "0",
        "-0",
        "10",
        "1.5",
        "-1.25e+10",
        "1E5",
        "0e0",
        "\"\"",
        "\"a\"",
        "true",
        "false",
        "null",
        "[1,2,3]",
        "{\"a\":1,\"b\":[{}]}",
        "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\"",
        "\"\\u0000\"",
        "\"\\ud83d\\ude00\"",
        "\"\xC3\xA9\"",
        "\"\xE2\x82\xAC\"",
        "\"\xF0\x9F\x98\x80\"",
        "\"\xF4\x8F\xBF\xBF\"",
        "\"\xEF\xBF\xBF\"",
        "\"\x7F\"",
        "{\"a\":1,\"a\":2}",
        "{\"\":1}",
    };

    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!valid(good[i]))
            fail_msg("refused: %s", good[i]);
}

TEST(json, what_is_not)
{
    static const char *const bad[] = {
        "",
        " ",
        "{",
        "}",
        "[",
        "]",
        "{]",
        "[}",
        "{,}",
        "[,]",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\"}",
        "{\"a\":}",
        "{a:1}",
        "{'a':1}",
        "{\"a\" 1}",
        "{1:1}",
        "[1 2]",
        "{}{}",
        "[]x",
        "x",
        "tru",
        "True",
        "nul",
        "nulll",
        "falsey",
        "01",
        "-",
        "-a",
        "+1",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "0x10",
        "NaN",
        "Infinity",
        "-Infinity",
        "\"",
        "\"a",
        "'a'",
        "\"\\\"",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u123g\"",
        "\"\n\"",
        "\"\t\"",
        "\"\x01\"",
        "\"\x1F\"",
        "// c\n1",
        "/* */1",
        "1\f",
        "\xEF\xBB\xBF{}",
        "\xC2\xA0{}",
        /* (2): half a pair */
        "\"\\ud800\"",
        "\"\\udc00\"",
        "\"\\ud800\\ud800\"",
        "\"\\ud800x\"",
        "\"\\ud800\\n\"",
        "\"\\udfff\\ud800\"",
        /* (1): UTF-8 that is none */
        "\"\x80\"",
        "\"\xC3\"",
        "\"\xC3(\"",
        "\"\xC0\x80\"",
        "\"\xC1\xBF\"",
        "\"\xE0\x80\x80\"",
        "\"\xE2\x82\"",
        "\"\xED\xA0\x80\"",
        "\"\xED\xBF\xBF\"",
        "\"\xF0\x80\x80\x80\"",
        "\"\xF4\x90\x80\x80\"",
        "\"\xF5\x80\x80\x80\"",
        "\"\xF0\x9F\x98\"",
        "\"\xFF\"",
        "\"\xFE\"",
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (valid(bad[i]))
            fail_msg("accepted: %s", bad[i]);
    CHECK(!hf__wire_json_valid(hf_str_of(NULL, 0)));
    CHECK(!hf__wire_json_valid(hf_str_of("1\0", 2)));
    CHECK(!hf__wire_json_valid(hf_str_of("\"\0\"", 3)));
}

/* A quote, escape or odd byte is found wherever it stands relative to the blocks of 16. */
TEST(json, strings_of_every_length_and_position)
{
    char text[80];

    for (size_t len = 0; len <= 64; len++) {
        for (size_t odd = 0; odd <= len; odd++) {
            memset(text, 'x', sizeof(text));
            text[0] = '"';
            text[len + 1] = '"';
            CHECK(hf__wire_json_valid(hf_str_of(text, len + 2)));
            if (odd == len)
                continue;
            text[odd + 1] = '\x1F';
            CHECK(!hf__wire_json_valid(hf_str_of(text, len + 2)));
            text[odd + 1] = '"';
            CHECK(!hf__wire_json_valid(hf_str_of(text, len + 2)));
            text[odd + 1] = '\xFF';
            CHECK(!hf__wire_json_valid(hf_str_of(text, len + 2)));
            text[odd + 1] = '\\';
            CHECK(!hf__wire_json_valid(hf_str_of(text, len + 2)));
            text[odd + 1] = ' ';
            CHECK(hf__wire_json_valid(hf_str_of(text, len + 2)));
        }
    }
}

static void check_unescaped(const char *raw, struct hf_str expected)
{
    struct json_cursor json = {.at = raw, .end = raw + strlen(raw)};
    struct json_string text;
    char out[64];
    size_t len;

    CHECK(hf__json_string(&json, &text));
    len = hf__json_unescape(text.raw, out);
    CHECK(hf_str_equal(expected, hf_str_of(out, len)));
}

TEST(json, escapes)
{
    check_unescaped("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", HF_STR("\"\\/\b\f\n\r\t"));
    check_unescaped("\"a\\u0041b\\u00e9\\u20AC\"", HF_STR("aAb\xC3\xA9\xE2\x82\xAC"));
    check_unescaped("\"\\u0000\"", hf_str_of("\0", 1));
    check_unescaped("\"\\uD83D\\uDE00!\"", HF_STR("\xF0\x9F\x98\x80!"));
    check_unescaped("\"\\uDBFF\\uDFFF\"", HF_STR("\xF4\x8F\xBF\xBF"));
    check_unescaped("\"\\uFFFF\"", HF_STR("\xEF\xBF\xBF"));
}

static struct hf_str nested(struct test *t, struct hf_scope *s, size_t levels, bool closed)
{
    char *text = hf_scope_alloc(s, 2 * levels + 1);

    (void)t;
    CHECK(text);
    memset(text, '[', levels);
    memset(text + levels, ']', levels);
    return hf_str_of(text, closed ? 2 * levels : levels);
}

/* (3) */
TEST(json, deep_nesting_is_refused_not_suffered)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK(hf__wire_json_valid(nested(t, s, JSON_DEPTH_MAX, true)));
    CHECK(!hf__wire_json_valid(nested(t, s, JSON_DEPTH_MAX, false)));
    CHECK(!hf__wire_json_valid(nested(t, s, JSON_DEPTH_MAX + 1, true)));
    CHECK(!hf__wire_json_valid(nested(t, s, 200000, true)));
    CHECK(!hf__wire_json_valid(nested(t, s, 200000, false)));
    hf_scope_free(s);
}

static void check_scaled(const char *text, int scale, int64_t expected)
{
    int64_t value;

    if (!hf__json_scaled(hf_str_from(text), scale, &value))
        fail_msg("out of range: %s", text);
    CHECK_INT(expected, value);
}

static void check_too_large(const char *text, int scale)
{
    int64_t value;

    if (hf__json_scaled(hf_str_from(text), scale, &value))
        fail_msg("in range: %s", text);
}

TEST(json, whole_numbers)
{
    check_scaled("0", 0, 0);
    check_scaled("-0", 0, 0);
    check_scaled("25", 0, 25);
    check_scaled("1.5", 0, 1);
    check_scaled("-1.9", 0, -1);
    check_scaled("0.99", 0, 0);
    check_scaled("1e3", 0, 1000);
    check_scaled("1.25e1", 0, 12);
    check_scaled("12345e-3", 0, 12);
    check_scaled("5e-999999999999", 0, 0);
    check_scaled("0e999999999999999999999", 0, 0);
    check_scaled("9223372036854775807", 0, INT64_MAX);
    check_scaled("-9223372036854775807", 0, -INT64_MAX);
    check_scaled("1767225600.123", 6, 1767225600123000);
    check_scaled("1.767225600123456E9", 6, 1767225600123456);
    check_scaled("1.7672256001234569E9", 6, 1767225600123456);
    check_too_large("9223372036854775808", 0);
    check_too_large("1e19", 0);
    check_too_large("1e999999999999999999999", 0);
    check_too_large("123456789012345678901234567890", 0);
    check_too_large("9223372036855", 6);
}

static void check_double(struct hf_scope *s, double value, const char *text)
{
    struct hf__buf buf = {.scope = s};

    hf__wire_write_double(&buf, value);
    CHECK_STR(text, hf_str_of((const char *)buf.ptr, buf.len));
    CHECK(hf__json_double(hf_str_from(text)) == value);
}

TEST(json, doubles_are_short_and_come_back)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const char *const locales[] = {"C", "de_DE.UTF-8", "fr_FR.UTF-8", "ar_EG.UTF-8"};

    for (size_t i = 0; i < ARRAY_LEN(locales); i++) {
        if (!setlocale(LC_ALL, locales[i]))
            continue;
        check_double(s, 0, "0");
        check_double(s, 0.5, "0.5");
        check_double(s, -0.5, "-0.5");
        check_double(s, 1, "1");
        check_double(s, 12.5, "12.5");
        check_double(s, -7.5, "-7.5");
        check_double(s, 0.1, "0.1");
        check_double(s, 12.345, "12.345");
        check_double(s, 1e300, "1e+300");
        check_double(s, 5e-324, "5e-324");
        check_double(s, 0.1 + 0.2, "0.30000000000000004");
        check_double(s, 4294967296.25, "4294967296.25");
    }
    setlocale(LC_ALL, "C");
    for (int i = 0; i < 20000; i++) {
        struct hf__buf buf = {.scope = s};
        uint64_t bits = test_random(t);
        double value;

        memcpy(&value, &bits, sizeof(value));
        if (value - value != 0)
            continue; /* infinite, or no number */
        hf__wire_write_double(&buf, value);
        CHECK(hf__wire_json_valid(hf_str_of((const char *)buf.ptr, buf.len)));
        CHECK(hf__json_double(hf_str_of((const char *)buf.ptr, buf.len)) == value);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

TEST(json, whole_numbers_are_written)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        int64_t value;
        const char *text;
    } cases[] = {{0, "0"},
                 {-1, "-1"},
                 {1234567890123, "1234567890123"},
                 {INT64_MAX, "9223372036854775807"},
                 {INT64_MIN, "-9223372036854775808"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf__buf buf = {.scope = s};

        hf__wire_write_int(&buf, cases[i].value);
        CHECK_STR(cases[i].text, hf_str_of((const char *)buf.ptr, buf.len));
    }
    hf_scope_free(s);
}

static void check_reads_back(struct hf_scope *s, struct hf_str plain)
{
    struct hf__buf buf = {.scope = s};
    struct json_string text;
    struct json_cursor json;
    char out[1024];

    hf__wire_write_str(&buf, plain);
    json =
        (struct json_cursor){.at = (const char *)buf.ptr, .end = (const char *)buf.ptr + buf.len};
    CHECK(hf__json_string(&json, &text) && hf__json_ended(&json));
    CHECK(hf_str_equal(plain, hf_str_of(out, hf__json_unescape(text.raw, out))));
    hf_scope_reset(s);
}

/* Every byte, at every place of texts of every length, is written so that it reads back: texts are
 * looked through in steps of 64, 16, 8 and 4 bytes, and there are short ones and long ones. */
TEST(json, written_strings_read_back)
{
    static const char odd[] = {0, 1, '\n', 0x1F, ' ', '!', '"', '#', '[', '\\', ']', 0x7F};
    struct hf_scope *s = hf_scope_new(test_env(t));
    char plain[150];

    for (size_t len = 1; len <= sizeof(plain); len++) {
        for (size_t at = 0; at < len; at++) {
            memset(plain, 'x', sizeof(plain));
            for (size_t i = 0; i < sizeof(odd); i++) {
                plain[at] = odd[i];
                check_reads_back(s, hf_str_of(plain, len));
            }
        }
    }
    for (int c = 0; c < 0x80; c++) {
        memset(plain, 'x', sizeof(plain));
        plain[c % 40] = (char)c;
        check_reads_back(s, hf_str_of(plain, 40));
    }
    hf_scope_free(s);
}

static void check_written(struct hf_scope *s, struct hf_str text, const char *expected)
{
    struct hf__buf buf = {.scope = s};

    hf__wire_write_str(&buf, text);
    CHECK_STR(expected, hf_str_of((const char *)buf.ptr, buf.len));
}

TEST(json, only_what_must_be_is_escaped)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_written(s, HF_STR(""), "\"\"");
    check_written(s, hf_str_of(NULL, 0), "\"\"");
    check_written(s, HF_STR("a/\"b\"\\"), "\"a/\\\"b\\\"\\\\\"");
    check_written(s, HF_STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\"");
    check_written(s, hf_str_of("\0\x1F\x7F", 3), "\"\\u0000\\u001f\x7F\"");
    check_written(s, HF_STR("\xC3\xA9\xF0\x9F\x98\x80"), "\"\xC3\xA9\xF0\x9F\x98\x80\"");
    hf_scope_free(s);
}
