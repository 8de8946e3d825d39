/* wire/decode_test.c: requests from JSON; (n) is an invariant of wire/decode.c. */
#include "wire/private.h"

#include "test.h"

union any_request {
    struct hf_put_item put;
    struct hf_get_item get;
    struct hf_query query;
    struct hf_update_item update;
    struct hf_create_table create;
    struct hf_batch_write_item batch_write;
    struct hf_batch_get_item batch_get;
    struct hf_transact_write_items transact;
    struct hf_update_time_to_live ttl;
    struct hf_list_tables list_tables;
    struct hf_query_result query_result;
    struct hf_describe_table_result description;
    uint8_t room[1024];
};

static enum hf_status decode(struct hf_scope *s, enum hf_op op, struct hf_str json,
                             union any_request *out)
{
    const struct fields *fields = hf__op(op)->request;

    assert(fields->size <= sizeof(*out));
    memset(out, 0, sizeof(*out));
    return hf__wire_read(s, fields, json, out);
}

static enum hf_status decode_text(struct hf_scope *s, enum hf_op op, const char *json,
                                  union any_request *out)
{
    return decode(s, op, hf_str_from(json), out);
}

static const char put_body[] =
    "{\"TableName\":\"Music\",\"Item\":{\"Artist\":{\"S\":\"No One You Know\"},\"Year\":{\"N\":"
    "\"2015\"},\"Tags\":{\"SS\":[\"rock\",\"live\"]},\"Cover\":{\"B\":\"Zm9vYmFy\"},\"Live\":"
    "{\"BOOL\":false},\"Gone\":{\"NULL\":true},\"Tracks\":{\"L\":[{\"S\":\"caf\\u00e9\"},{\"M\":"
    "{\"len\":{\"N\":\"-1.5e2\"}}}]}},\"ConditionExpression\":\"attribute_not_exists(#a)\","
    "\"ExpressionAttributeNames\":{\"#a\":\"Artist\"},\"ExpressionAttributeValues\":{\":v\":"
    "{\"NS\":[\"1\",\"2\"]}},\"ReturnValues\":\"ALL_OLD\",\"Unknown\":[1,-2.5e3,true,false,null,"
    "{\"x\":\"\\n\"}],\"ReturnConsumedCapacity\":\"TOTAL\",\"Expected\":{\"z\":{\"Exists\":true,"
    "\"Value\":{\"S\":\"q\"},\"AttributeValueList\":[{\"N\":\"7\"}]}}}";

TEST(decode, a_whole_request)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_PUT_ITEM, put_body, &r));
    CHECK_STR("Music", r.put.table);
    CHECK_INT(7, hf_item_count(r.put.item));
    CHECK_STR("{\"len\":{\"N\":\"-150\"}}",
              hf_item_to_json(
                  s, hf_value_item(hf_value_at(s, hf_item_get(r.put.item, HF_STR("Tracks")), 1))));
    CHECK_STR("attribute_not_exists(#a)", r.put.condition);
    CHECK_STR("Artist", hf_value_str(hf_item_get(r.put.names, HF_STR("#a"))));
    CHECK_INT(2, hf_value_count(hf_item_get(r.put.values, HF_STR(":v"))));
    CHECK_INT(HF_RETURN_ALL_OLD, r.put.returns);
    CHECK_INT(HF_CAPACITY_TOTAL, r.put.return_capacity);
    CHECK_INT(1, r.put.expected_len);
    CHECK_STR("z", r.put.expected[0].name);
    CHECK_INT(HF_YES, r.put.expected[0].exists);
    CHECK_STR("q", hf_value_str(r.put.expected[0].value));
    CHECK_INT(1, r.put.expected[0].values_len);
    CHECK_INT(HF_TYPE_N, hf_value_type(r.put.expected[0].values[0]));
    CHECK_INT(0, r.put.conditional_operator);
    hf_scope_free(s);
}

/* Strings without escapes are borrowed from the body. */
TEST(decode, strings_are_borrowed)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *json = "{\"TableName\":\"abc\",\"ProjectionExpression\":\"a\\u0062\"}";
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_GET_ITEM, json, &r));
    CHECK(r.get.table.ptr == json + 14);
    CHECK_STR("ab", r.get.projection);
    hf_scope_free(s);
}

/* (2) */
TEST(decode, null_is_absent_and_the_last_member_counts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_GET_ITEM,
                         "{\"TableName\":null,\"Key\":null,\"ConsistentRead\":null,"
                         "\"AttributesToGet\":null,\"ReturnConsumedCapacity\":null}",
                         &r));
    CHECK(!r.get.table.ptr && !r.get.key.ptr && !r.get.attributes_to_get);
    CHECK_INT(HF_UNSET, r.get.consistent);
    CHECK_OK(decode_text(s, HF_OP_GET_ITEM,
                         "{\"TableName\":\"a\",\"TableName\":\"b\",\"ConsistentRead\":true,"
                         "\"ConsistentRead\":null,\"AttributesToGet\":[\"x\"],"
                         "\"AttributesToGet\":null,\"Key\":{\"a\":{\"N\":\"x\"}},\"Key\":{}}",
                         &r));
    CHECK_STR("b", r.get.table);
    CHECK_INT(HF_UNSET, r.get.consistent);
    CHECK(!r.get.attributes_to_get && r.get.attributes_to_get_len == 0);
    CHECK(r.get.key.ptr && hf_item_count(r.get.key) == 0);
    hf_scope_free(s);
}

/*
 * A name is all of its bytes: with a NUL in it, it is no member, whatever stands behind that. The
 * body ends right behind its last byte, so that reading on would be seen.
 */
TEST(decode, a_name_with_a_nul_is_no_member)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const size_t sizes[] = {0, 1, 4, 100, 70000, 4000000};
    union any_request r;

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        static const char begin[] = "{\"TableName\\u0000", end[] = "\":\"x\"}";
        size_t size = sizeof(begin) - 1 + sizes[i] + sizeof(end) - 1;
        char *body = malloc(size);

        CHECK(body);
        memcpy(body, begin, sizeof(begin) - 1);
        memset(body + sizeof(begin) - 1, 'a', sizes[i]);
        memcpy(body + size - (sizeof(end) - 1), end, sizeof(end) - 1);
        CHECK_OK(decode(s, HF_OP_GET_ITEM, hf_str_of(body, size), &r));
        CHECK(!r.get.table.ptr);
        memset(&r, 0, sizeof(r));
        CHECK_OK(hf__wire_read_answer(s, hf__op(HF_OP_LIST_TABLES)->response, hf_str_of(body, size),
                                      &r));
        free(body);
        hf_scope_reset(s);
    }
    CHECK_OK(
        decode_text(s, HF_OP_GET_ITEM, "{\"\":\"x\",\"TableNam\":\"x\",\"TableNames\":1}", &r));
    CHECK(!r.get.table.ptr);
    hf_scope_free(s);
}

TEST(decode, maps_keep_the_last_of_a_key)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_BATCH_GET_ITEM,
                         "{\"RequestItems\":{\"c\":{\"Keys\":[{}]},\"a\":{\"Keys\":[]},\"c\":"
                         "{\"Keys\":[{},{}]},\"b\":{}}}",
                         &r));
    CHECK_INT(3, r.batch_get.tables_len);
    CHECK_STR("a", r.batch_get.tables[0].table);
    CHECK_STR("c", r.batch_get.tables[1].table);
    CHECK_STR("b", r.batch_get.tables[2].table);
    CHECK_INT(2, r.batch_get.tables[1].keys_len);
    CHECK(r.batch_get.tables[0].keys && r.batch_get.tables[0].keys_len == 0);
    CHECK(!r.batch_get.tables[2].keys);

    hf__buf_put_str(&buf, HF_STR("{\"Expected\":{"));
    for (int i = 0; i < 20000; i++)
        hf__buf_format(&buf, "%s\"k%d\":{\"Exists\":%s}", i ? "," : "", i * 7919 % 10000,
                       i < 10000 ? "true" : "false");
    hf__buf_put_str(&buf, HF_STR("}}"));
    CHECK_OK(decode(s, HF_OP_PUT_ITEM, hf_str_of((const char *)buf.ptr, buf.len), &r));
    CHECK_INT(10000, r.put.expected_len);
    for (size_t i = 0; i < r.put.expected_len; i++) {
        char key[16];

        snprintf(key, sizeof(key), "k%zu", i * 7919 % 10000);
        CHECK_STR(key, r.put.expected[i].name);
        CHECK_INT(HF_NO, r.put.expected[i].exists);
    }
    hf_scope_free(s);
}

TEST(decode, empty_is_not_absent)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_CREATE_TABLE,
                         "{\"TableName\":\"\",\"KeySchema\":[],\"ProvisionedThroughput\":{},"
                         "\"LocalSecondaryIndexes\":[null]}",
                         &r));
    CHECK(r.create.table.ptr && r.create.table.len == 0);
    CHECK(r.create.key_schema && r.create.key_schema_len == 0);
    CHECK(r.create.throughput && r.create.throughput->read_units == 0);
    CHECK_INT(1, r.create.local_indexes_len);
    CHECK(!r.create.local_indexes[0].name.ptr);
    CHECK(!r.create.attributes);
    CHECK_OK(decode_text(s, HF_OP_PUT_ITEM,
                         "{\"Item\":{},\"Expected\":{},\"ExpressionAttributeNames\":{}}", &r));
    CHECK(r.put.item.ptr && r.put.expected && r.put.names.ptr);
    CHECK_INT(0, hf_item_count(r.put.item) + r.put.expected_len + hf_item_count(r.put.names));
    hf_scope_free(s);
}

TEST(decode, whole_numbers)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_QUERY, "{\"Limit\":25}", &r));
    CHECK_INT(25, r.query.limit);
    CHECK_OK(decode_text(s, HF_OP_QUERY, "{\"Limit\":0}", &r));
    CHECK_INT(HF_ZERO, r.query.limit);
    CHECK_OK(decode_text(s, HF_OP_QUERY, "{\"Limit\":-3}", &r));
    CHECK_INT(-3, r.query.limit);
    CHECK_OK(decode_text(s, HF_OP_QUERY, "{\"Limit\":34.56}", &r));
    CHECK_INT(34, r.query.limit);
    CHECK_OK(decode_text(s, HF_OP_QUERY, "{\"Limit\":0.5}", &r));
    CHECK_INT(HF_ZERO, r.query.limit);
    CHECK_STATUS(HF_SERIALIZATION,
                 decode_text(s, HF_OP_QUERY, "{\"Limit\":9223372036854775808}", &r));
    CHECK_ERROR(HF_SERIALIZATION, "NUMBER_VALUE cannot be converted to Integer", s);
    CHECK_STATUS(HF_SERIALIZATION,
                 decode_text(s, HF_OP_QUERY, "{\"Limit\":-9223372036854775808}", &r));
    CHECK_STATUS(HF_SERIALIZATION, decode_text(s, HF_OP_QUERY, "{\"Limit\":1e99999999999}", &r));

    /* A response's zero is just that. */
    memset(&r, 0, sizeof(r));
    CHECK_OK(hf__wire_read(s, hf__op(HF_OP_QUERY)->response,
                           HF_STR("{\"Items\":[],\"Count\":0,\"ScannedCount\":7}"), &r));
    CHECK_INT(0, r.query_result.count);
    CHECK_INT(7, r.query_result.scanned_count);
    hf_scope_free(s);
}

TEST(decode, enums_keep_a_text_that_is_no_member)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;

    CHECK_OK(decode_text(s, HF_OP_PUT_ITEM,
                         "{\"ReturnValues\":\"all\\u005fold\",\"ReturnConsumedCapacity\":\"\","
                         "\"ReturnItemCollectionMetrics\":\"SIZE\"}",
                         &r));
    CHECK((int)r.put.returns < 0 && (int)r.put.return_capacity < 0);
    CHECK_STR("all_old", hf__scope_kept_text(s, (int)r.put.returns));
    CHECK_STR("", hf__scope_kept_text(s, (int)r.put.return_capacity));
    CHECK_INT(1, r.put.return_metrics);
    hf_scope_free(s);
}

/* ---- type errors ---------------------------------------------------------------------------- */

#define STRUCTURE "Start of structure or map found where not expected"
#define CLASS "Unrecognized collection type class com.amazonaws.dynamodb.v20120810."
#define MAP_OF "Unrecognized collection type java.util.Map<java.lang.String, "
#define FIELD "Unexpected field type"
#define PAYLOAD "Unexpected value type in payload"
#define BYTES "only base-64-encoded strings are convertible to bytes"

struct type_case {
    enum hf_op op;
    const char *json; /* with a '?' where the values below go */
    const char *on_string;
    const char *on_number;
    const char *on_decimal;
    const char *on_true;
    const char *on_false;
    const char *on_array;
    const char *on_object;
};

#define SCALAR_STRING                                                                              \
    NULL, "NUMBER_VALUE cannot be converted to String",                                            \
        "DECIMAL_VALUE cannot be converted to String", "TRUE_VALUE cannot be converted to String", \
        "FALSE_VALUE cannot be converted to String",                                               \
        "Unrecognized collection type class java.lang.String", STRUCTURE
#define SCALAR_INT(type)                                                                           \
    "STRING_VALUE cannot be converted to " type, NULL, NULL,                                       \
        "TRUE_VALUE cannot be converted to " type, "FALSE_VALUE cannot be converted to " type,     \
        "Unrecognized collection type class java.lang." type, STRUCTURE
#define SCALAR_BOOLEAN                                                                             \
    "Unexpected token received from parser", "NUMBER_VALUE cannot be converted to Boolean",        \
        "DECIMAL_VALUE cannot be converted to Boolean", NULL, NULL,                                \
        "Unrecognized collection type class java.lang.Boolean", STRUCTURE
#define SCALAR_BLOB                                                                                \
    "Base64 encoded length is expected a multiple of 4 bytes but found: 1", BYTES, BYTES, BYTES,   \
        BYTES, "Unrecognized collection type class java.nio.ByteBuffer", STRUCTURE
#define LIST FIELD, FIELD, FIELD, FIELD, FIELD, NULL, STRUCTURE
#define COMPOUND(scalar, on_array) scalar, scalar, scalar, scalar, scalar, on_array, NULL

static const struct type_case type_cases[] = {
    {HF_OP_PUT_ITEM, "{\"TableName\":?}", SCALAR_STRING},
    {HF_OP_PUT_ITEM, "{\"ReturnValues\":?}", SCALAR_STRING},
    {HF_OP_PUT_ITEM, "{\"ExpressionAttributeNames\":{\"#a\":?}}", SCALAR_STRING},
    {HF_OP_GET_ITEM, "{\"AttributesToGet\":[\"a\",?]}", SCALAR_STRING},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"S\":?}}}", SCALAR_STRING},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"SS\":[?]}}}", SCALAR_STRING},
    {HF_OP_QUERY, "{\"Limit\":?}", SCALAR_INT("Integer")},
    {HF_OP_CREATE_TABLE, "{\"ProvisionedThroughput\":{\"ReadCapacityUnits\":?}}",
     SCALAR_INT("Long")},
    {HF_OP_GET_ITEM, "{\"ConsistentRead\":?}", SCALAR_BOOLEAN},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"BOOL\":?}}}", SCALAR_BOOLEAN},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"B\":?}}}", SCALAR_BLOB},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"BS\":[?]}}}", SCALAR_BLOB},
    {HF_OP_GET_ITEM, "{\"AttributesToGet\":?}", LIST},
    {HF_OP_CREATE_TABLE, "{\"KeySchema\":?}", LIST},
    {HF_OP_BATCH_WRITE_ITEM, "{\"RequestItems\":{\"t\":?}}", LIST},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"L\":?}}}", LIST},
    {HF_OP_PUT_ITEM, "{\"Item\":?}",
     COMPOUND(FIELD, MAP_OF "com.amazonaws.dynamodb.v20120810.AttributeValue>")},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"M\":?}}}",
     COMPOUND(FIELD, MAP_OF "com.amazonaws.dynamodb.v20120810.AttributeValue>")},
    {HF_OP_PUT_ITEM, "{\"ExpressionAttributeNames\":?}",
     COMPOUND(FIELD, MAP_OF "java.lang.String>")},
    {HF_OP_PUT_ITEM, "{\"Expected\":?}",
     COMPOUND(FIELD, MAP_OF "com.amazonaws.dynamodb.v20120810.ExpectedAttributeValue>")},
    {HF_OP_BATCH_WRITE_ITEM, "{\"RequestItems\":?}",
     COMPOUND(FIELD, MAP_OF "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>>")},
    {HF_OP_PUT_ITEM, "{\"Expected\":{\"a\":?}}", COMPOUND(PAYLOAD, CLASS "ExpectedAttributeValue")},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":?}}", COMPOUND(PAYLOAD, CLASS "AttributeValue")},
    {HF_OP_PUT_ITEM, "{\"Item\":{\"a\":{\"L\":[?]}}}", COMPOUND(PAYLOAD, CLASS "AttributeValue")},
    {HF_OP_PUT_ITEM, "{\"Expected\":{\"a\":{\"Value\":?}}}",
     COMPOUND(FIELD, CLASS "AttributeValue")},
    {HF_OP_CREATE_TABLE, "{\"KeySchema\":[?]}", COMPOUND(PAYLOAD, CLASS "KeySchemaElement")},
    {HF_OP_CREATE_TABLE, "{\"ProvisionedThroughput\":?}",
     COMPOUND(FIELD, CLASS "ProvisionedThroughput")},
    {HF_OP_UPDATE_TIME_TO_LIVE, "{\"TimeToLiveSpecification\":?}",
     COMPOUND(FIELD, CLASS "TimeToLiveSpecification")},
};

static void check_type(struct hf_scope *s, const struct type_case *c, const char *value,
                       const char *message)
{
    union any_request r;
    const char *hole = strchr(c->json, '?');
    struct hf_str json =
        hf_scope_format(s, "%.*s%s%s", (int)(hole - c->json), c->json, value, hole + 1);

    if (!message) {
        CHECK_OK(decode(s, c->op, json, &r));
        return;
    }
    CHECK_STATUS(HF_SERIALIZATION, decode(s, c->op, json, &r));
    CHECK_ERROR(HF_SERIALIZATION, message, s);

    /* (1): the same, but malformed behind it. */
    json.len--;
    CHECK_STATUS(HF_SERIALIZATION, decode(s, c->op, json, &r));
    CHECK_ERROR(HF_SERIALIZATION, "", s);
}

TEST(decode, every_type_error_has_its_text)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(type_cases); i++) {
        const struct type_case *c = &type_cases[i];

        check_type(s, c, "\"x\"", c->on_string);
        check_type(s, c, "23", c->on_number);
        check_type(s, c, "34.56", c->on_decimal);
        check_type(s, c, "true", c->on_true);
        check_type(s, c, "false", c->on_false);
        check_type(s, c, "[]", c->on_array);
        check_type(s, c, "{}", c->on_object);
        check_type(s, c, "null", NULL);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

TEST(decode, binary_that_is_not_base64)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        const char *text;
        const char *message;
    } cases[] = {
        {"23456", "Base64 encoded length is expected a multiple of 4 bytes but found: 5"},
        {"\\u0032", "Base64 encoded length is expected a multiple of 4 bytes but found: 1"},
        {"=+/=", "Invalid last non-pad Base64 character dectected"},
        {"+/+=", "Invalid last non-pad Base64 character dectected"},
        {"Zh==", "Invalid last non-pad Base64 character dectected"},
        {"Zm9!", "Invalid base 64 character"},
    };
    union any_request r;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(HF_SERIALIZATION,
                     decode(s, HF_OP_PUT_ITEM,
                            hf_scope_format(s, "{\"Item\":{\"a\":{\"B\":\"%s\"}}}", cases[i].text),
                            &r));
        CHECK_ERROR(HF_SERIALIZATION, cases[i].message, s);
    }
    hf_scope_free(s);
}

TEST(decode, a_body_that_is_no_object)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const char *const bodies[] = {"null", "[]", "[{}]", "1", "\"x\"", "true", "[[1]]"};
    static const char *const malformed[] = {"", " ", "{}x", "{} {}", "nul", "[", "{\"a\":1}}"};
    union any_request r;

    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        CHECK_STATUS(HF_SERIALIZATION, decode_text(s, HF_OP_PUT_ITEM, bodies[i], &r));
        CHECK_ERROR(HF_SERIALIZATION, PAYLOAD, s);
    }
    for (size_t i = 0; i < ARRAY_LEN(malformed); i++) {
        CHECK_STATUS(HF_SERIALIZATION, decode_text(s, HF_OP_PUT_ITEM, malformed[i], &r));
        CHECK_ERROR(HF_SERIALIZATION, "", s);
    }
    CHECK_STATUS(HF_SERIALIZATION, decode(s, HF_OP_PUT_ITEM, hf_str_of(NULL, 0), &r));
    hf_scope_free(s);
}

/* ---- damage --------------------------------------------------------------------------------- */

/* A copy that ends where its memory ends, so that a sanitizer sees a read beyond. */
static struct hf_str exact_copy(const char *text, size_t len)
{
    char *copy = malloc(len ? len : 1);

    CHECK(copy);
    memcpy(copy, text, len);
    return hf_str_of(copy, len);
}

TEST(decode, every_truncation_is_malformed)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;

    for (size_t len = 0; len < sizeof(put_body) - 1; len++) {
        struct hf_str cut = exact_copy(put_body, len);

        CHECK_STATUS(HF_SERIALIZATION, decode(s, HF_OP_PUT_ITEM, cut, &r));
        CHECK_ERROR(HF_SERIALIZATION, "", s);
        CHECK(!hf__wire_json_valid(cut));
        free((void *)(uintptr_t)cut.ptr);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

/* Whatever happens to the bytes, the answer is a request or an error, and it is "malformed" when
 * and only when the body is. */
TEST(decode, damaged_bodies_are_read_or_refused)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;
    int accepted = 0;

    for (int round = 0; round < 20000; round++) {
        struct hf_str body = exact_copy(put_body, sizeof(put_body) - 1);
        char *bytes = (char *)(uintptr_t)body.ptr;
        size_t flips = 1 + test_random_below(t, 3);
        enum hf_status status;
        bool malformed;

        for (size_t i = 0; i < flips; i++) {
            static const char some[] = "{}[]\",:\\0nte1.-";
            size_t at = test_random_below(t, body.len);

            bytes[at] = test_random_below(t, 2) ? (char)test_random(t)
                                                : some[test_random_below(t, sizeof(some) - 1)];
        }
        status = decode(s, HF_OP_PUT_ITEM, body, &r);
        malformed = status == HF_SERIALIZATION && hf_scope_error(s)->message.len == 0;
        CHECK(status == HF_OK || status == HF_SERIALIZATION);
        CHECK_INT(!hf__wire_json_valid(body), malformed);
        accepted += status == HF_OK;
        if (status == HF_OK && r.put.item.ptr && !hf__item_poisoned(r.put.item))
            CHECK(hf__item_valid(r.put.item.ptr, r.put.item.len));
        free(bytes);
        hf_scope_reset(s);
    }
    CHECK(accepted > 0);
    hf_scope_free(s);
}

/*
 * Items stay as they were read while others follow, and small strings are kept between them:
 * whatever length an item has, and so wherever the buffer of items ends.
 */
TEST(decode, an_item_is_not_written_over_by_the_next)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (int len = 1; len < 1200; len++) {
        struct hf_str body = hf_scope_format(
            s,
            "{\"Item\":{\"a\":{\"S\":\"%0*d\"}},\"ConditionExpression\":\"\\u0061b\","
            "\"ExpressionAttributeValues\":{\":v\":{\"S\":\"a longer text than that\"}}}",
            len, 0);
        union any_request r;

        CHECK_OK(decode(s, HF_OP_PUT_ITEM, body, &r));
        CHECK_STR("ab", r.put.condition);
        CHECK_INT(len, hf_value_str(hf_item_get(r.put.item, HF_STR("a"))).len);
        CHECK(hf__item_valid(r.put.item.ptr, r.put.item.len));
        CHECK_STR("a longer text than that", hf_value_str(hf_item_get(r.put.values, HF_STR(":v"))));
        hf_scope_reset(s);
    }
    hf_scope_free(s);
}

/* Steady work takes no memory but the scope's. */
TEST(decode, steady_reading_allocates_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    union any_request r;
    size_t allocs = 0;

    for (int round = 0; round < 20; round++) {
        if (round == 2)
            allocs = t->allocs;
        CHECK_OK(decode_text(s, HF_OP_PUT_ITEM, put_body, &r));
        hf_scope_reset(s);
    }
    CHECK_INT(allocs, t->allocs);
    hf_scope_free(s);
}

/* Fail each allocation in turn, with scopes so small that there are many. */
TEST(decode, any_failed_allocation_is_nomem)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};
    struct hf_str body;
    int failures = 0;

    hf__buf_put_str(&buf, HF_STR("{\"RequestItems\":{"));
    for (int i = 0; i < 30; i++) {
        hf__buf_format(&buf, "%s\"t\\u0061%d\":[", i ? "," : "", i % 25);
        for (int j = 0; j < 5; j++)
            hf__buf_format(&buf,
                           "%s{\"PutRequest\":{\"Item\":{\"z\":{\"S\":\"%0*d\\n\"},\"a\":{\"SS\":"
                           "[\"b\",\"a\",\"\\u0062\"]},\"m\":{\"N\":\"x\"}}}}",
                           j ? "," : "", 500 * j + i, 7);
        hf__buf_put_str(&buf, HF_STR("]"));
    }
    hf__buf_put_str(&buf, HF_STR("}}"));
    CHECK(!buf.failed);
    body = hf_str_of((const char *)buf.ptr, buf.len);
    for (int64_t nth = 1;; nth++) {
        struct hf_scope *small = hf_scope_new(test_env(t));
        struct hf_batch_write_item request = {0};
        enum hf_status status;

        t->fail_at = (int64_t)t->allocs + nth;
        status = hf__wire_read(small, hf__op(HF_OP_BATCH_WRITE_ITEM)->request, body, &request);
        if (status == HF_OK) {
            CHECK_INT(25, request.tables_len);
            CHECK(t->fail_at > (int64_t)t->allocs);
        } else {
            CHECK_STATUS(HF_NOMEM, status);
            CHECK_INT(HF_NOMEM, hf_scope_error(small)->status);
            failures++;
        }
        t->fail_at = 0;
        hf_scope_free(small);
        if (status == HF_OK)
            break;
    }
    CHECK(failures > 3);
    hf_scope_free(s);
}
