/* base/json_test.c: where a cursor over JSON stops, and why; (n) is an invariant of base/json.c. What
 * is JSON and what is not, strings and numbers are tested in test/wire/json_test.c. */
#include "base/json.h"
#include "test.h"

#include <stdlib.h>

static struct json_cursor cursor_at(const char *text, size_t len)
{
    return (struct json_cursor){.at = text, .end = text + len};
}

/* Texts are copied to a block of their length, for the sanitizers. */
TEST(json_cursor, what_is_wrong_and_where)
{
    static const struct {
        const char *text;
        const char *wrong;
        size_t at;
    } cases[] = {
        {"", "expected a value", 0},
        {"  ", "expected a value", 2},
        {"nul", "expected a value", 0},
        {"[x", "expected a value", 1},
        {"[", "expected a value", 1},
        {"[1,", "expected a value", 3},
        {"[1 2]", "expected ',' or ']'", 3},
        {"[1", "expected ',' or ']'", 2},
        {"[1}", "expected ',' or ']'", 2},
        {"{", "expected a name in quotes", 1},
        {"{]", "expected a name in quotes", 1},
        {"{a:1}", "expected a name in quotes", 1},
        {"{\"a\":1,}", "expected a name in quotes", 7},
        {"{\"a\"", "expected ':'", 4},
        {"{\"a\" 1}", "expected ':'", 5},
        {"{\"a\":1", "expected ',' or '}'", 6},
        {"{\"a\":1]", "expected ',' or '}'", 6},
        {"\"abc", "a string has no end", 4},
        {"\"0123456789abcdefghijk", "a string has no end", 22},
        {"\"a\nb\"", "a control character in a string", 2},
        {"\"a\\", "an escape that JSON does not have", 2},
        {"\"a\\x\"", "an escape that JSON does not have", 2},
        {"\"\\u12g4\"", "an escape that JSON does not have", 1},
        {"\"\\ud83d\"", "an escape that JSON does not have", 1},
        {"\"\\ude00\"", "an escape that JSON does not have", 1},
        {"\"ab\xff\"", "invalid UTF-8 in a string", 3},
        {"\"\xc3", "invalid UTF-8 in a string", 1},
        {"01", "a malformed number", 2},
        {"-", "a malformed number", 1},
        {"1.", "a malformed number", 2},
        {"1.x", "a malformed number", 2},
        {"1e+", "a malformed number", 3},
        {"1 1", "something follows the value", 2},
        {"{}}", "something follows the value", 2},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        size_t len = strlen(cases[i].text);
        char *exact = malloc(len ? len : 1);
        struct json_cursor json = cursor_at(exact, len);

        memcpy(exact, cases[i].text, len);
        CHECK(!hf__json_skip_all(&json, 10));
        CHECK(!hf__json_sound(&json));
        CHECK_INT(JSON_MALFORMED, json.error);
        CHECK_STR(cases[i].wrong, hf_str_from(json.wrong));
        CHECK_INT(cases[i].at, json.at - exact);
        free(exact);
    }
}

/* (2) */
TEST(json_cursor, half_of_a_pair_passes_when_the_text_is_kept)
{
    static const char *const texts[] = {"\"\\ud83d\"", "\"\\ude00\\ud83d\"", "\"\\ud83dx\"",
                                        "\"\\ud83d\\u0041\"", "\"\\ud83d\\ude00\""};

    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct json_cursor json = cursor_at(texts[i], strlen(texts[i]));

        json.lone_halves = true;
        CHECK(hf__json_skip_all(&json, 1));
    }
}

/* (3): at the limit, and one past it. */
TEST(json_cursor, levels)
{
    char text[2 * JSON_LEVELS_MAX + 2];

    for (int levels = 0; levels <= JSON_LEVELS_MAX;
         levels += levels < 3 ? 1 : JSON_LEVELS_MAX - 3) {
        size_t len = (size_t)levels;
        struct json_cursor json = cursor_at(text, 2 * len);

        memset(text, '[', len);
        memset(text + len, ']', len);
        if (len)
            CHECK(hf__json_skip_all(&json, levels));
        memset(text, '[', len + 1);
        memset(text + len + 1, ']', len + 1);
        json = cursor_at(text, 2 * len + 2);
        CHECK(!hf__json_skip_all(&json, levels));
        CHECK_STR("too many levels", hf_str_from(json.wrong));
        CHECK_INT(levels, json.at - text);
    }
}

/* The first error stays. */
TEST(json_cursor, troubles_of_the_walker)
{
    struct json_cursor json = cursor_at("]", 1);

    json.error = JSON_MALFORMED + 1;
    CHECK(!hf__json_sound(&json));
    CHECK(!hf__json_wrong(&json, "late"));
    CHECK_INT(JSON_MALFORMED + 1, json.error);
    CHECK(!json.wrong);
}

TEST(json_cursor, a_walk)
{
    static const char text[] = " { \"a\" : [ 1 , true ] , \"b\" : \"x\\ny\" } ";
    struct json_cursor json = cursor_at(text, strlen(text));
    struct json_string name, string;
    struct hf_str number;
    char out[8];

    CHECK_INT(JSON_OBJECT, hf__json_kind(&json));
    CHECK(hf__json_enter(&json, '}'));
    CHECK(hf__json_name(&json, &name));
    CHECK_STR("a", name.raw);
    CHECK_INT(JSON_ARRAY, hf__json_kind(&json));
    CHECK(hf__json_enter(&json, ']'));
    CHECK_INT(JSON_NUMBER, hf__json_kind(&json));
    CHECK(hf__json_number(&json, &number));
    CHECK_STR("1", number);
    CHECK(hf__json_more(&json, ']'));
    CHECK_INT(JSON_TRUE, hf__json_kind(&json));
    CHECK(hf__json_word(&json, JSON_TRUE));
    CHECK(!hf__json_more(&json, ']') && hf__json_sound(&json));
    CHECK(hf__json_more(&json, '}'));
    CHECK(hf__json_name(&json, &name));
    CHECK_INT(JSON_STRING, hf__json_kind(&json));
    CHECK(hf__json_string(&json, &string) && string.escaped);
    CHECK_STR("x\ny", hf_str_of(out, hf__json_unescape(string.raw, out)));
    CHECK(!hf__json_more(&json, '}') && hf__json_sound(&json));
    CHECK(hf__json_ended(&json));
}
