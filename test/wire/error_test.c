/* wire/error_test.c: the bodies of errors. */
#include "wire/private.h"

#include "test.h"

static void check_body(struct hf_scope *s, const struct hf_error *error, const char *expected)
{
    struct hf__buf buf = {.scope = s};

    hf__wire_write_error(&buf, error);
    CHECK(!buf.failed);
    CHECK(hf__wire_json_valid(hf_str_of((const char *)buf.ptr, buf.len)));
    CHECK_STR(expected, hf_str_of((const char *)buf.ptr, buf.len));
}

TEST(error, each_name_space_and_its_message)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        enum hf_status status;
        const char *body;
    } cases[] = {
        {HF_INVALID, "{\"__type\":\"com.amazon.coral.validate#ValidationException\","
                     "\"message\":\"a \\\"b\\\"\"}"},
        {HF_NOT_FOUND, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ResourceNotFoundException\","
                       "\"message\":\"a \\\"b\\\"\"}"},
        {HF_SERIALIZATION, "{\"__type\":\"com.amazon.coral.service#SerializationException\","
                           "\"Message\":\"a \\\"b\\\"\"}"},
        {HF_DENIED, "{\"__type\":\"com.amazon.coral.service#AccessDeniedException\","
                    "\"Message\":\"a \\\"b\\\"\"}"},
        {HF_UNKNOWN_OPERATION,
         "{\"__type\":\"com.amazon.coral.service#UnknownOperationException\"}"},
        {HF_UNSUPPORTED, "{\"__type\":\"com.amazon.coral.service#UnknownOperationException\"}"},
        {HF_IO, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#InternalServerError\","
                "\"message\":\"a \\\"b\\\"\"}"},
        {HF_LIMIT, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#LimitExceededException\","
                   "\"message\":\"a \\\"b\\\"\"}"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        check_body(s, &(struct hf_error){.status = cases[i].status, .message = HF_STR("a \"b\"")},
                   cases[i].body);
    check_body(s, &(struct hf_error){.status = HF_SERIALIZATION, .message = HF_STR("")},
               "{\"__type\":\"com.amazon.coral.service#SerializationException\"}");
    hf_scope_free(s);
}

TEST(error, items_and_reasons_are_in_the_body)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item item = HF_ITEM(s, HF_S("a", HF_STR("x")));
    const struct hf_cancel_reason reasons[] = {{.code = HF_STR("None")},
                                               {.code = HF_STR("ConditionalCheckFailed"),
                                                .message = HF_STR("no"),
                                                .item = item}};

    check_body(
        s, &(struct hf_error){.status = HF_CONDITION, .message = HF_STR("failed"), .item = item},
        "{\"__type\":\"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException\","
        "\"message\":\"failed\",\"Item\":{\"a\":{\"S\":\"x\"}}}");
    check_body(s,
               &(struct hf_error){.status = HF_TX_CANCELED,
                                  .message = HF_STR("cancelled"),
                                  .reasons = reasons,
                                  .reasons_len = 2},
               "{\"__type\":\"com.amazonaws.dynamodb.v20120810#TransactionCanceledException\","
               "\"message\":\"cancelled\",\"CancellationReasons\":[{\"Code\":\"None\"},{\"Code\":"
               "\"ConditionalCheckFailed\",\"Item\":{\"a\":{\"S\":\"x\"}},\"Message\":\"no\"}]}");
    hf_scope_free(s);
}

/* Every status has a type, and it ends in the name that HF_STATUS_MAP gives it. */
TEST(error, every_status_has_a_type)
{
#define CHECK_TYPE(name, number, wire, text)                                                       \
    {                                                                                              \
        const char *hash = strchr(hf__wire_type(HF_##name), '#');                                  \
        CHECK(hash);                                                                               \
        CHECK_STR(wire, hf_str_from(hash + 1));                                                    \
    }
    HF_STATUS_MAP(CHECK_TYPE)
}
