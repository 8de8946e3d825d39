/* wire/value_test.c: attribute values; (n) is an invariant of wire/value_read.c. */
#include "wire/private.h"

#include "test.h"

#define MALFORMED "The item is not well-formed JSON"

/* The item is read, and written again it is `expected`. */
static void check_item(struct hf_scope *s, const char *json, const char *expected)
{
    struct hf_item item;

    CHECK_OK(hf_item_from_json(s, hf_str_from(json), &item));
    CHECK(hf__item_valid(item.ptr, item.len));
    CHECK_STR(expected, hf_item_to_json(s, item));
}

TEST(value, every_type_comes_back)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const char *const same[] = {
        "{}",
        "{\"a\":{\"S\":\"\"}}",
        "{\"a\":{\"S\":\"x\\ny\"},\"b\":{\"N\":\"-1.5\"},\"c\":{\"B\":\"Zm9v\"}}",
        "{\"a\":{\"BOOL\":true},\"b\":{\"BOOL\":false},\"c\":{\"NULL\":true}}",
        "{\"a\":{\"L\":[]},\"b\":{\"M\":{}},\"c\":{\"B\":\"\"}}",
        "{\"a\":{\"L\":[{\"S\":\"x\"},{\"L\":[{\"N\":\"1\"}]},{\"M\":{\"y\":{\"S\":\"z\"}}}]}}",
        ("{\"a\":{\"SS\":[\"\",\"a\",\"b\"]},\"b\":{\"NS\":[\"-1\",\"0\",\"2\"]},"
         "\"c\":{\"BS\":[\"\",\"Yg==\"]}}"),
        "{\"\xC3\xA9\\u0000\":{\"S\":\"\\u0000\xF0\x9F\x98\x80\"}}",
    };

    for (size_t i = 0; i < ARRAY_LEN(same); i++)
        check_item(s, same[i], same[i]);
    check_item(s, " { \"b\" : { \"S\" : \"1\" } ,\n\"a\" : { \"S\" : \"2\" } } ",
               "{\"a\":{\"S\":\"2\"},\"b\":{\"S\":\"1\"}}");
    check_item(s, "{\"a\":{\"N\":\"+01.50e1\"},\"b\":{\"N\":\"\\u0031\"}}",
               "{\"a\":{\"N\":\"15\"},\"b\":{\"N\":\"1\"}}");
    check_item(s, "{\"a\":{\"SS\":[\"b\",\"a\"]},\"c\":{\"NS\":[\"10\",\"9\"]}}",
               "{\"a\":{\"SS\":[\"a\",\"b\"]},\"c\":{\"NS\":[\"9\",\"10\"]}}");
    check_item(s, "{\"\\u0061\":{\"\\u0053\":\"\\u0062\"},\"b\":{\"B\":\"Zm9\\u0076\"}}",
               "{\"a\":{\"S\":\"b\"},\"b\":{\"B\":\"Zm9v\"}}");
    hf_scope_free(s);
}

/* (3) (4): last wins; null and unknown tags are not there. */
TEST(value, repeated_and_unknown_members)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    check_item(s, "{\"a\":{\"S\":\"1\"},\"a\":{\"S\":\"2\"}}", "{\"a\":{\"S\":\"2\"}}");
    check_item(s, "{\"a\":{\"S\":\"1\",\"S\":\"2\"}}", "{\"a\":{\"S\":\"2\"}}");
    check_item(s, "{\"a\":{\"N\":\"x\",\"N\":\"2\"}}", "{\"a\":{\"N\":\"2\"}}");
    check_item(s, "{\"a\":{\"N\":null,\"S\":\"2\",\"X\":[{}]}}", "{\"a\":{\"S\":\"2\"}}");
    check_item(s, "{\"a\":{\"M\":{\"x\":{\"S\":\"1\"},\"x\":{\"N\":\"2\"}}}}",
               "{\"a\":{\"M\":{\"x\":{\"N\":\"2\"}}}}");
    hf_scope_free(s);
}

static void check_poison(struct hf_scope *s, const char *json, const char *message)
{
    struct hf_item item;
    struct hf_item again;
    struct wire_json reader = {.in = {.at = json, .end = json + strlen(json)},
                               .scope = s,
                               .flat = {.scope = s},
                               .scratch = {.scope = s}};

    CHECK_STATUS(HF_INVALID, hf_item_from_json(s, hf_str_from(json), &item));
    CHECK_ERROR(HF_INVALID, message, s);
    CHECK(hf__wire_read_item(&reader, FIELD_SCALAR, &again));
    CHECK(hf__item_poisoned(again));
    CHECK_STR("k", hf__item_poison(again)->key);
    CHECK(!hf_item_to_json(s, again).ptr);
}

#define INVALID "One or more parameter values were invalid: "
#define EMPTY                                                                                      \
    "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes"
#define SEVERAL                                                                                    \
    "Supplied AttributeValue has more than one datatypes set, must contain exactly one of the "    \
    "supported datatypes"
#define OVERFLOW                                                                                   \
    "Number overflow. Attempting to store a number with magnitude larger than supported range"
#define UNDERFLOW                                                                                  \
    "Number underflow. Attempting to store a number with magnitude smaller than supported range"
#define NOT_NUMERIC "The parameter cannot be converted to a numeric value"

/* (1): each sentence of DynamoDB about a value, with the attribute that it was found in. */
TEST(value, what_is_no_value_poisons)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        const char *value;
        const char *message;
    } cases[] = {
        {"{}", EMPTY},
        {"null", EMPTY},
        {"{\"S\":null}", EMPTY},
        {"{\"X\":\"1\"}", EMPTY},
        {"{\"s\":\"1\"}", EMPTY},
        {"{\"\":\"1\"}", EMPTY},
        {"{\"L\":[null]}", EMPTY},
        {"{\"M\":{\"x\":{}}}", EMPTY},
        {"{\"S\":\"1\",\"N\":\"1\"}", SEVERAL},
        {"{\"N\":\"1\",\"NS\":[\"1\"],\"S\":\"\"}", SEVERAL},
        {"{\"N\":\"abc\"}", NOT_NUMERIC ": abc"},
        {"{\"N\":\"\"}", NOT_NUMERIC},
        {"{\"N\":\" 1\"}", NOT_NUMERIC ":  1"},
        {"{\"N\":\"0x10\"}", NOT_NUMERIC ": 0x10"},
        {"{\"N\":\"NaN\"}", NOT_NUMERIC ": NaN"},
        {"{\"NS\":[\"1\",\"b\"]}", NOT_NUMERIC ": b"},
        {"{\"NS\":[\"\"]}", NOT_NUMERIC},
        {"{\"NS\":[null]}", NOT_NUMERIC},
        {"{\"N\":\"123456789012345678901234567890123456789\"}",
         "Attempting to store more than 38 significant digits in a Number"},
        {"{\"N\":\"1e126\"}", OVERFLOW},
        {"{\"N\":\"0e126\"}", OVERFLOW},
        {"{\"N\":\"-1e126\"}", OVERFLOW},
        {"{\"N\":\"1e-131\"}", UNDERFLOW},
        {"{\"NULL\":false}", INVALID "Null attribute value types must have the value of true"},
        {"{\"SS\":[]}", INVALID "An string set  may not be empty"},
        {"{\"NS\":[]}", INVALID "An number set  may not be empty"},
        {"{\"BS\":[]}", INVALID "Binary sets should not be empty"},
        {"{\"L\":[{\"M\":{\"x\":{\"SS\":[]}}}]}", INVALID "An string set  may not be empty"},
        {"{\"SS\":[\"b\",\"a\",\"b\"]}", INVALID "Input collection [b, a, b] contains duplicates."},
        {"{\"SS\":[\"\\u0062\",\"b\"]}", INVALID "Input collection [b, b] contains duplicates."},
        {"{\"NS\":[\"1\",\"2\",\"1.0\"]}", "Input collection contains duplicates"},
        {"{\"BS\":[\"Yg==\",\"Yg==\"]}",
         INVALID "Input collection [Yg==, Yg==]of type BS contains duplicates."},
        {"{\"SS\":[\"a\",null]}", INVALID "An string set may not have a null string as a member"},
        {"{\"BS\":[null]}", INVALID "Binary sets may not contain null or empty values"},
        {"{\"M\":{\"\":{\"S\":\"x\"}}}", INVALID "Empty attribute name"},
        {"{\"S\":\"x\",\"N\":\"abc\"}", NOT_NUMERIC ": abc"},
    };
    char json[512];

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        snprintf(json, sizeof(json), "{\"a\":{\"S\":\"fine\"},\"k\":%s,\"z\":{\"N\":\"later\"}}",
                 cases[i].value);
        check_poison(s, json, cases[i].message);
    }
    hf_scope_free(s);
}

static const char digits[] =
    "1234567890123456789012345678901234567890123456789012345678901234567890123456789012345"
    "6789012345678901234567890123456789012345678901234567890";

/* Read a body that ends where its memory ends, so that a sanitizer sees a byte too many. */
static enum hf_status read_tight(struct hf_scope *s, const char *body, size_t len,
                                 struct hf_item *item)
{
    char *tight = malloc(len ? len : 1);
    enum hf_status status;

    CHECK(tight);
    memcpy(tight, body, len);
    status = hf_item_from_json(s, hf_str_of(tight, len), item);
    free(tight);
    return status;
}

/* Names and values that are written the usual way are read another way than those with spaces. */
static void check_ways(struct hf_scope *s, const char *name, const char *value, const char *tail)
{
    static const char *const forms[] = {"{\"%s\":{\"%c\":\"%s\"}%s}",
                                        "{\"%s\": {\"%c\": \"%s\"}%s}",
                                        "{ \"%s\" : { \"%c\" : \"%s\" } %s}"};
    enum { SLOW = ARRAY_LEN(forms) - 1 };
    char body[1024];

    for (const char *tag = "SN"; *tag; tag++) {
        struct hf_item items[ARRAY_LEN(forms)];
        enum hf_status statuses[ARRAY_LEN(forms)];
        int len = 0;

        for (size_t i = ARRAY_LEN(forms); i-- > 0;) {
            len = snprintf(body, sizeof(body), forms[i], name, *tag, value, tail);
            CHECK(len > 0 && (size_t)len < sizeof(body));
            statuses[i] = read_tight(s, body, (size_t)len, &items[i]);
            CHECK_STATUS(statuses[SLOW], statuses[i]);
            CHECK(hf_item_equal(items[SLOW], items[i]));
            CHECK(!items[i].ptr || hf__item_valid(items[i].ptr, items[i].len));
        }
        for (int cut = len; cut-- > 0 && !*tail;) /* of the usual form */
            CHECK_STATUS(HF_SERIALIZATION, read_tight(s, body, (size_t)cut, &items[0]));
    }
}

TEST(value, the_quick_way_and_the_slow_way_agree)
{
    static const char *const odd[] = {"x", "7", "\\n", "\\\"", "\xC3\xA9", "\xC3", "\x01", "\""};
    static const size_t lens[] = {0,  1,  2,  14,  15,  16,  17,  18,  31,  32,  33, 47,
                                  48, 95, 96, 110, 111, 112, 113, 126, 127, 128, 129};
    const char *tail = ",\"a name that is long\":{\"S\":\"and a value that is longer\"}";
    struct hf_scope *s = hf_scope_new(test_env(t));
    char text[256];

    for (size_t i = 0; i < ARRAY_LEN(lens); i++)
        for (size_t j = 0; j < ARRAY_LEN(odd); j++)
            for (size_t at = 0; at <= lens[i]; at += lens[i] > 20 ? 15 : 1) {
                size_t rest = lens[i] - at;

                hf_scope_reset(s);
                snprintf(text, sizeof(text), "%.*s%s%.*s", (int)at, digits, odd[j], (int)rest,
                         digits + at);
                check_ways(s, "a", text, "");
                check_ways(s, text, "1", "");
                check_ways(s, "a", text, tail);
                check_ways(s, text, "1", tail);
            }
    hf_scope_free(s);
}

/* The item says it in the words that are in force when it is asked, not when it was read. */
TEST(value, duplicates_are_worded_when_they_are_reported)
{
    static const struct {
        const char *value, *older, *newer;
    } cases[] = {
        {"{\"SS\":[\"b\",\"a\",\"b\"]}", INVALID "Input collection [b, a, b] contains duplicates.",
         INVALID "Input collection [\"a\", \"b\", \"b\"] contains duplicates."},
        {"{\"SS\":[\"d\",\"c\",\"a\",\"c\",\"d\"]}",
         INVALID "Input collection [d, c, a, c, d] contains duplicates.",
         INVALID "Input collection [\"a\", \"c\", \"c\"] contains duplicates."},
        {"{\"SS\":[\"x\",\"x\",\"x\"]}", INVALID "Input collection [x, x, x] contains duplicates.",
         INVALID "Input collection [\"x\", \"x\"] contains duplicates."},
        {"{\"NS\":[\"1\",\"1.0\"]}", "Input collection contains duplicates",
         "Input collection contains duplicates"},
        {"{\"BS\":[\"Yg==\",\"Yg==\"]}",
         INVALID "Input collection [Yg==, Yg==]of type BS contains duplicates.",
         INVALID "Input collection [Yg==, Yg==]of type BS contains duplicates."},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_put_item put = {.table = {NULL, 0}};
        struct hf_item copy;
        struct hf_str body = hf_scope_format(s, "{\"Item\":{\"k\":%s}}", cases[i].value);

        CHECK_OK(hf__wire_read(s, hf__op(HF_OP_PUT_ITEM)->request, body, &put));
        copy = hf_item_copy(s, put.item);
        CHECK_STATUS(HF_INVALID, hf_item_check(s, put.item));
        CHECK_ERROR(HF_INVALID, cases[i].older, s);
        hf__scope_set_wording(s, HF__WORDING_2026);
        CHECK_STATUS(HF_INVALID, hf_item_check(s, copy));
        CHECK_ERROR(HF_INVALID, cases[i].newer, s);
        hf__scope_set_wording(s, HF__WORDING_CLASSIC);
    }
    hf_scope_free(s);
}

TEST(value, names_have_a_length)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item;
    char *text = hf_scope_alloc(s, ATTR_NAME_MAX + 100);
    int len;

    CHECK(text);
    CHECK_STATUS(HF_INVALID, hf_item_from_json(s, HF_STR("{\"\":{\"S\":\"x\"}}"), &item));
    CHECK_ERROR(HF_INVALID, INVALID "Empty attribute name", s);
    for (size_t more = 0; more < 2; more++) {
        size_t name = ATTR_NAME_MAX + more;

        text[0] = '{';
        text[1] = '"';
        memset(text + 2, 'n', name);
        len = snprintf(text + 2 + name, 50, "\":{\"S\":\"x\"}}");
        CHECK_STATUS(more ? HF_INVALID : HF_OK,
                     hf_item_from_json(s, hf_str_of(text, 2 + name + (size_t)len), &item));
    }
    CHECK(strstr(hf_scope_error_text(s), "65535"));
    hf_scope_free(s);
}

/* An attribute of that many levels, lists and maps by turns. */
static struct hf_str nested_item(struct hf_scope *s, int levels, bool closed)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, HF_STR("{\"k\":"));
    for (int i = 1; i < levels; i++)
        hf__buf_put_str(&buf, i % 2 ? HF_STR("{\"L\":[") : HF_STR("{\"M\":{\"x\":"));
    if (closed) {
        hf__buf_put_str(&buf, HF_STR("{\"S\":\"\"}"));
        for (int i = levels - 1; i >= 1; i--)
            hf__buf_put_str(&buf, i % 2 ? HF_STR("]}") : HF_STR("}}"));
        hf__buf_put_byte(&buf, '}');
    }
    CHECK(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len);
}

/* (2) */
TEST(value, nesting_has_32_levels)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item;

    for (int levels = 1; levels <= 100; levels++) {
        CHECK_STATUS(levels <= VALUE_DEPTH_MAX ? HF_OK : HF_INVALID,
                     hf_item_from_json(s, nested_item(s, levels, true), &item));
        if (levels > VALUE_DEPTH_MAX) {
            CHECK_ERROR(HF_INVALID,
                        "Nesting Levels have exceeded supported limits: Attributes in the item "
                        "have nested levels beyond supported limit",
                        s);
            CHECK(!item.ptr);
        } else {
            CHECK_INT(levels, hf__value_depth(hf_item_get(item, HF_STR("k"))));
        }
        CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(s, nested_item(s, levels, false), &item));
        CHECK_ERROR(HF_SERIALIZATION, MALFORMED, s);
    }
    CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(s, nested_item(s, 200000, true), &item));
    CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(s, nested_item(s, 200000, false), &item));
    hf_scope_free(s);
}

TEST(value, items_from_json_report_what_is_wrong)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        const char *json;
        const char *message;
    } cases[] = {
        {"", MALFORMED},
        {"{", MALFORMED},
        {"{\"a\":{\"S\":\"x\"}} x", MALFORMED},
        {"{\"a\":{\"S\":1}", MALFORMED},     /* both: malformed goes first */
        {"{\"a\":{\"N\":\"x\"}", MALFORMED}, /* poison, then malformed */
        {"{\"a\":{\"S\":\"\\ud800\"}}", MALFORMED},
        {"{\"a\":{\"S\":1}}", "NUMBER_VALUE cannot be converted to String"},
        {"{\"a\":{\"SS\":[]},\"b\":{\"S\":1}}", "NUMBER_VALUE cannot be converted to String"},
        {"[]", "Unrecognized collection type java.util.Map<java.lang.String, "
               "com.amazonaws.dynamodb.v20120810.AttributeValue>"},
        {"1", "Unexpected field type"},
        {"null", "Unexpected field type"},
    };
    struct hf_item item;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(s, hf_str_from(cases[i].json), &item));
        CHECK_ERROR(HF_SERIALIZATION, cases[i].message, s);
    }
    CHECK_STATUS(HF_SERIALIZATION, hf_item_from_json(s, hf_str_of(NULL, 0), &item));
    CHECK(!hf_item_to_json(s, (struct hf_item){NULL, 0}).ptr);
    hf_scope_free(s);
}
