/* wire/answer_test.c: what a client reads: answers, errors, and why a request cannot be written. */
#include "wire/private.h"

#include "test.h"

static struct hf_str text_of(const struct hf__buf *buf)
{
    return hf_str_of((const char *)buf->ptr, buf->len);
}

/* ---- answers -------------------------------------------------------------------------------- */

TEST(answer, a_zero_is_just_zero)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_describe_table_result result = {.table = NULL};
    const struct op *op = hf__op(HF_OP_DESCRIBE_TABLE);

    CHECK_OK(hf__wire_read_answer(
        s, op->response,
        HF_STR("{\"Table\":{\"TableName\":\"t\",\"ItemCount\":0,\"ProvisionedThroughput\":"
               "{\"ReadCapacityUnits\":0,\"NumberOfDecreasesToday\":0},\"New\":[1,{}]}}"),
        &result));
    CHECK_INT(0, result.table->item_count);
    CHECK_INT(0, result.table->throughput->read_units);
    hf_scope_free(s);
}

TEST(answer, an_enum_of_a_newer_service_is_none)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_describe_table_result result = {.table = NULL};

    CHECK_OK(hf__wire_read_answer(s, hf__op(HF_OP_DESCRIBE_TABLE)->response,
                                  HF_STR("{\"Table\":{\"TableStatus\":\"DREAMING\"}}"), &result));
    CHECK_INT(0, (int)result.table->status);
    hf_scope_free(s);
}

TEST(answer, a_value_that_is_none_fails_the_answer)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_get_item_result result = {.item = {NULL, 0}};
    const struct op *op = hf__op(HF_OP_GET_ITEM);

    CHECK_STATUS(HF_SERIALIZATION,
                 hf__wire_read_answer(s, op->response, HF_STR("{\"Item\":{\"a\":{\"SS\":[]}}}"),
                                      &result));
    CHECK_STATUS(HF_SERIALIZATION,
                 hf__wire_read_answer(s, op->response, HF_STR("{\"Item\":{\"a\":{\"N\":\"x\"}}}"),
                                      &result));
    CHECK_STATUS(HF_SERIALIZATION,
                 hf__wire_read_answer(s, op->response, HF_STR("{\"Item\":{"), &result));
    hf_scope_free(s);
}

/* ---- errors --------------------------------------------------------------------------------- */

static bool is_internal(enum hf_status status)
{
    return strstr(hf__wire_type(status), "#InternalServerError") != NULL;
}

/* What the server writes, the client reads; what is internal to one is so to the other. */
TEST(answer, every_status_survives_the_wire)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

#define CHECK_SURVIVES(name, number, wire, text)                                                   \
    if (HF_##name != HF_OK) {                                                                      \
        struct hf__buf buf = {.scope = s};                                                         \
        const bool internal = is_internal(HF_##name);                                              \
        enum hf_status expected = internal                      ? HF_INTERNAL                      \
                                  : HF_##name == HF_UNSUPPORTED ? HF_UNKNOWN_OPERATION             \
                                                                : HF_##name;                       \
                                                                                                   \
        hf__wire_write_error(&buf, &(struct hf_error){.status = HF_##name,                         \
                                                      .message = HF_STR("a \"b\"")});              \
        CHECK_STATUS(expected, hf__wire_read_error(s, internal ? 500 : 400, text_of(&buf)));       \
        if (expected != HF_UNKNOWN_OPERATION)                                                      \
            CHECK_STR("a \"b\"", hf_scope_error(s)->message);                                      \
        CHECK(hf_scope_error(s)->may_have_happened == internal);                                   \
    }
    HF_STATUS_MAP(CHECK_SURVIVES)
    hf_scope_free(s);
}

/* Those of single features keep their names, and are one status on both sides. */
TEST(answer, every_exception_survives_the_wire)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

#define CHECK_EXCEPTION(wire, name)                                                                \
    {                                                                                              \
        struct hf__buf buf = {.scope = s};                                                         \
                                                                                                   \
        hf__wire_write_error(&buf, &(struct hf_error){.status = HF_##name,                         \
                                                      .message = HF_STR("a"),                      \
                                                      .exception = HF_STR(wire)});                 \
        CHECK_STR("{\"__type\":\"com.amazonaws.dynamodb.v20120810#" wire "\",\"message\":\"a\"}",  \
                  text_of(&buf));                                                                  \
        CHECK_STATUS(HF_##name, hf__wire_read_error(s, 400, text_of(&buf)));                       \
        CHECK_STR(wire, hf_scope_error(s)->exception);                                             \
        CHECK_STR("a", hf_scope_error(s)->message);                                                \
        CHECK(!hf_scope_error(s)->may_retry && !hf_scope_error(s)->may_have_happened);             \
    }
    HF_EXCEPTION_MAP(CHECK_EXCEPTION)
    hf_scope_free(s);
}

/* Names of others are kept for the caller, and not passed on. */
TEST(answer, a_name_that_is_not_of_the_model_is_not_written)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__buf buf = {.scope = s};

    CHECK_STATUS(HF_THROTTLED,
                 hf__wire_read_error(s, 400, HF_STR("{\"__type\":\"ThrottlingException\"}")));
    CHECK_STR("ThrottlingException", hf_scope_error(s)->exception);
    hf__wire_write_error(&buf, hf_scope_error(s));
    CHECK(strstr((const char *)buf.ptr, "ProvisionedThroughputExceededException"));
    hf_scope_free(s);
}

TEST(answer, items_and_reasons_are_read)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_error *error;

    CHECK_STATUS(
        HF_TX_CANCELED,
        hf__wire_read_error(
            s, 400,
            HF_STR("{\"__type\":\"com.amazonaws.dynamodb.v20120810#TransactionCanceledException\","
                   "\"Message\":\"cancelled\",\"CancellationReasons\":[{\"Code\":\"None\"},"
                   "{\"Code\":\"ConditionalCheckFailed\",\"Message\":\"no\",\"Item\":"
                   "{\"a\":{\"S\":\"x\"}}}]}")));
    error = hf_scope_error(s);
    CHECK_STR("cancelled", error->message);
    CHECK_INT(2, (int64_t)error->reasons_len);
    CHECK_STR("None", error->reasons[0].code);
    CHECK(!error->reasons[0].message.ptr && !error->reasons[0].item.ptr);
    CHECK_STR("no", error->reasons[1].message);
    CHECK_STR("x", hf_value_str(hf_item_get(error->reasons[1].item, HF_STR("a"))));

    CHECK_STATUS(HF_CONDITION,
                 hf__wire_read_error(s, 400,
                                     HF_STR("{\"__type\":\"ConditionalCheckFailedException\","
                                            "\"Item\":{\"a\":{\"S\":\"y\"}}}")));
    error = hf_scope_error(s);
    CHECK_STR("y", hf_value_str(hf_item_get(error->item, HF_STR("a"))));
    CHECK_STR("ConditionalCheckFailedException", error->message);
    hf_scope_free(s);
}

TEST(answer, errors_from_in_front_of_the_service)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    static const struct {
        int http;
        const char *body;
        enum hf_status status;
        bool may_retry;
        bool may_have_happened;
        const char *message;
    } cases[] = {
        {400, "{\"__type\":\"x#ThrottlingException\",\"message\":\"slow\"}", HF_THROTTLED, true,
         false, "slow"},
        {400, "{\"__type\":\"x#RequestLimitExceeded\",\"Message\":\"slow\"}", HF_THROTTLED, true,
         false, "slow"},
        {400, "{\"__type\":\"x#LimitExceededException\",\"message\":\"10\"}", HF_LIMIT, true, false,
         "10"},
        {400, "{\"__type\":\"x#ExpiredTokenException\",\"message\":\"old\"}", HF_DENIED, false,
         false, "old"},
        {400, "{\"__type\":\"x#Strange\",\"message\":\"odd\"}", HF_INVALID, false, false,
         "Strange: odd"},
        {500, "{\"__type\":\"x#Strange\",\"message\":\"odd\"}", HF_INTERNAL, true, true,
         "Strange: odd"},
        {429, "{\"__type\":\"x#ThrottlingException\",\"message\":\"slow\"}", HF_THROTTLED, true,
         false, "slow"},
        {500, "{\"__type\":\"x#InternalServerError\",\"message\":\"\"}", HF_INTERNAL, true, true,
         "InternalServerError"},
        {503, "<html>no</html>", HF_INTERNAL, true, true,
         "the service answered with the HTTP status 503"},
        {502, "", HF_INTERNAL, true, true, "the service answered with the HTTP status 502"},
        {429, "", HF_THROTTLED, true, true, "the service answered with the HTTP status 429"},
        {403, "Forbidden", HF_DENIED, false, false,
         "the service answered with the HTTP status 403"},
        {404, "{}", HF_INVALID, false, false, "the service answered with the HTTP status 404"},
        {413, "[]", HF_LIMIT, false, false, "the service answered with the HTTP status 413"},
        {418, "{\"message\":\"teapot\"}", HF_IO, true, true, "teapot"},
        {400, "{\"ConsumedCapacity\":{}}", HF_IO, true, true,
         "the service answered with the HTTP status 400"},
        {210, "{}", HF_IO, true, true, "the service answered with the HTTP status 210"},
        {300, "{}", HF_IO, true, true, "the service answered with the HTTP status 300"},
        {307, "<html>there</html>", HF_INVALID, false, false,
         "the service answered with the HTTP status 307"},
        {408, "", HF_INTERNAL, true, true, "the service answered with the HTTP status 408"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(cases[i].status,
                     hf__wire_read_error(s, cases[i].http, hf_str_from(cases[i].body)));
        CHECK(hf_scope_error(s)->may_retry == cases[i].may_retry);
        CHECK(hf_scope_error(s)->may_have_happened == cases[i].may_have_happened);
        CHECK_STR(cases[i].message, hf_scope_error(s)->message);
    }
    hf_scope_free(s);
}

TEST(answer, the_type_alone)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STR("B", hf__wire_error_type(s, HF_STR("{\"__type\":\"a.b#B\"}")));
    CHECK_STR("B", hf__wire_error_type(s, HF_STR("{\"__type\":\"B\"}")));
    CHECK(!hf__wire_error_type(s, HF_STR("{}")).ptr);
    CHECK(!hf__wire_error_type(s, HF_STR("no")).ptr);
    hf_scope_free(s);
}

/* ---- poison --------------------------------------------------------------------------------- */

TEST(answer, poison_is_found_wherever_it_is)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_item bad = HF_ITEM(s, HF_NUM("n", HF_STR("no number")));
    struct hf_item good = HF_ITEM(s, HF_S("pk", HF_STR("a")));
    const struct hf_put_item put = {.table = HF_STR("t"), .item = bad};
    const struct hf_get_item get = {.table = HF_STR("t"), .key = good};
    const struct hf_put_item put_action = {.table = HF_STR("t"), .item = bad};
    const struct hf_transact_write actions[] = {{.check = NULL}, {.put = &put_action}};
    const struct hf_transact_write_items transaction = {.actions = actions, .actions_len = 2};
    struct hf__buf buf = {.scope = s};

    CHECK(hf__wire_poison(hf__op(HF_OP_PUT_ITEM)->request, &put).ptr == bad.ptr);
    CHECK(hf__wire_poison(hf__op(HF_OP_TRANSACT_WRITE_ITEMS)->request, &transaction).ptr ==
          bad.ptr);
    CHECK(!hf__wire_poison(hf__op(HF_OP_GET_ITEM)->request, &get).ptr);
    hf__wire_write(&buf, hf__op(HF_OP_PUT_ITEM)->request, &put);
    CHECK(buf.failed);
    hf_scope_free(s);
}
