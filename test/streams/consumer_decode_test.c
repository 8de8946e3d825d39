/*
 * streams/consumer_decode_test.c: events of a function runtime.
 */
#include <holdfast/streams.h>

#include <string.h>

#include "test.h"

/* As a runtime hands it over, with all that it adds. */
static const char event[] =
    "{\"Records\":[\n"
    " {\"eventID\":\"c4ca4238a0b923820dcc509a6f75849b\",\"eventName\":\"INSERT\","
    "\"eventVersion\":\"1.1\",\"eventSource\":\"aws:dynamodb\",\"awsRegion\":\"us-east-1\","
    "\"dynamodb\":{\"Keys\":{\"Id\":{\"N\":\"101\"}},\"NewImage\":{\"Message\":{\"S\":\"New "
    "\\u0069tem!\"},\"Id\":{\"N\":\"101\"}},\"ApproximateCreationDateTime\":1428537600,"
    "\"SequenceNumber\":\"4421584500000000017450439091\",\"SizeBytes\":26,"
    "\"StreamViewType\":\"NEW_AND_OLD_IMAGES\"},"
    "\"eventSourceARN\":\"arn:aws:dynamodb:us-east-1:123456789012:table/T/stream/2015\"},\n"
    " {\"eventID\":\"2\",\"eventName\":\"MODIFY\",\"eventSource\":\"aws:dynamodb\",\"dynamodb\":"
    "{\"ApproximateCreationDateTime\":1.4285376015E9,\"Keys\":{\"Id\":{\"N\":\"101\"}},"
    "\"OldImage\":{\"Id\":{\"N\":\"101\"},\"B\":{\"B\":\"AAEC\"}},\"NewImage\":{\"Id\":{\"N\":"
    "\"101\"},\"L\":{\"L\":[{\"BOOL\":true},{\"NULL\":true}]}},\"SequenceNumber\":\"2\"},"
    "\"userIdentity\":null},\n"
    " {\"eventID\":\"3\",\"eventName\":\"REMOVE\",\"dynamodb\":{\"Keys\":{\"Id\":{\"N\":\"101\"}},"
    "\"OldImage\":{\"Id\":{\"N\":\"101\"}},\"NewImage\":null,\"SequenceNumber\":\"3\"},"
    "\"userIdentity\":{\"type\":\"Service\",\"principalId\":\"dynamodb.amazonaws.com\"}}\n"
    "],\"future\":[1,-2.5e3,true,false,null,{\"a\":\"\\\"\"}]}";

TEST(decode, an_event)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_change *changes;
    int64_t id = 0;
    size_t len;

    CHECK_OK(hf_changes_decode(s, hf_str_from(event), &changes, &len));
    CHECK_INT(3, len);
    CHECK_INT(HF_CHANGE_INSERT, changes[0].kind);
    CHECK_STR("c4ca4238a0b923820dcc509a6f75849b", changes[0].id);
    CHECK_STR("4421584500000000017450439091", changes[0].sequence);
    CHECK_INT(1428537600000000, changes[0].time_us);
    CHECK(hf_value_i64(hf_item_get(changes[0].key, HF_STR("Id")), &id) && id == 101);
    CHECK_STR("New item!", hf_value_str(hf_item_get(changes[0].new_image, HF_STR("Message"))));
    CHECK(!changes[0].old_image.ptr && !changes[0].expired);
    CHECK_INT(HF_CHANGE_MODIFY, changes[1].kind);
    CHECK_INT(1428537601000000, changes[1].time_us);
    CHECK_INT(3, hf_value_bytes(hf_item_get(changes[1].old_image, HF_STR("B"))).len);
    CHECK_INT(2, hf_value_count(hf_item_get(changes[1].new_image, HF_STR("L"))));
    CHECK(!changes[1].expired);
    CHECK_INT(HF_CHANGE_REMOVE, changes[2].kind);
    CHECK(!changes[2].new_image.ptr && changes[2].expired && !changes[2].time_us);
    hf_scope_free(s);
}

TEST(decode, no_records)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_change *changes;
    size_t len = 7;

    CHECK_OK(hf_changes_decode(s, HF_STR(" { \"Records\" : [ ] } "), &changes, &len));
    CHECK_INT(0, len);
    hf_scope_free(s);
}

#define RECORD(fields) "{\"Records\":[{" fields "}]}"
#define GOOD "\"eventID\":\"1\",\"eventName\":\"INSERT\","
#define KEYS "\"Keys\":{\"a\":{\"S\":\"b\"}}"
#define NUMBER ",\"SequenceNumber\":\"1\""

static const struct {
    const char *json;
    const char *says;
} bad[] = {
    {"", "expected an object at byte 1"},
    {"[]", "expected an object at byte 1"},
    {"{", "expected a name in quotes at byte 2"},
    {"{\"a\"}", "expected ':' at byte 5"},
    {"{\"a\":1,}", "expected a name in quotes at byte 8"},
    {"{\"a\":01}", "a malformed number"},
    {"{\"a\":1.}", "a malformed number"},
    {"{\"a\":1e}", "a malformed number"},
    {"{\"a\":-}", "a malformed number"},
    {"{\"a\":nul}", "expected a value at byte 6"},
    {"{\"a\":'x'}", "expected a value at byte 6"},
    {"{\"a\":[1 2]}", "expected ',' or ']'"},
    {"{\"a\":1 \"b\":2}", "expected ',' or '}'"},
    {"{\"a\":\"\\x\"}", "an escape that JSON does not have"},
    {"{\"a\":\"\\u12g4\"}", "an escape that JSON does not have"},
    {"{\"a\":\"x\ny\"}", "a control character"},
    {"{\"a\":\"x", "a string has no end"},
    {"{} {}", "something follows the value at byte 4"},
    {"{}", "has no list \"Records\""},
    {"{\"Records\":{}}", "has no list \"Records\""},
    {"{\"Records\":null}", "has no list \"Records\""},
    {"{\"Records\":[],\"Records\":[]}", "has \"Records\" twice"},
    {"{\"Records\":[1]}", "Records[0] is not an object"},
    {RECORD("\"eventName\":\"INSERT\""), "Records[0].eventID is missing"},
    {RECORD("\"eventID\":1"), "Records[0].eventID is not a string"},
    {RECORD("\"eventID\":\"\""), "Records[0].eventID is empty"},
    {RECORD("\"eventID\":\"1\""), "Records[0].eventName is missing"},
    {RECORD("\"eventID\":\"1\",\"eventName\":\"PUT\""), "is none of INSERT, MODIFY, REMOVE"},
    {RECORD(GOOD "\"eventSource\":\"aws:sqs\""), "Records[0].eventSource is not aws:dynamodb"},
    {RECORD(GOOD "\"x\":1"), "Records[0].dynamodb is missing"},
    {RECORD(GOOD "\"dynamodb\":[]"), "Records[0].dynamodb is not an object"},
    {RECORD(GOOD "\"dynamodb\":{}"), "Records[0].dynamodb.Keys is missing"},
    {RECORD(GOOD "\"dynamodb\":{\"Keys\":{}" NUMBER "}"), "Records[0].dynamodb.Keys is empty"},
    {RECORD(GOOD "\"dynamodb\":{\"Keys\":{\"a\":\"b\"}" NUMBER "}"), "Records[0].dynamodb.Keys: "},
    {RECORD(GOOD "\"dynamodb\":{" KEYS "}"), "Records[0].dynamodb.SequenceNumber is missing"},
    {RECORD(GOOD "\"dynamodb\":{" KEYS ",\"SequenceNumber\":1}"), "SequenceNumber is not a string"},
    {RECORD(GOOD "\"dynamodb\":{" KEYS "," KEYS NUMBER "}"), "has \"Keys\" twice"},
    {RECORD(GOOD "\"dynamodb\":{" KEYS NUMBER ",\"NewImage\":[]}"), "dynamodb.NewImage: "},
    {RECORD(GOOD "\"dynamodb\":{" KEYS NUMBER ",\"ApproximateCreationDateTime\":\"x\"}"),
     "ApproximateCreationDateTime is not a time"},
    {RECORD(GOOD "\"dynamodb\":{" KEYS NUMBER ",\"ApproximateCreationDateTime\":1e30}"),
     "ApproximateCreationDateTime is not a time"},
    {RECORD(GOOD "\"dynamodb\":{" KEYS NUMBER ",\"ApproximateCreationDateTime\":-5}"),
     "ApproximateCreationDateTime is not a time"},
    {RECORD(GOOD "\"dynamodb\":{" KEYS NUMBER "},\"userIdentity\":\"me\""),
     "Records[0].userIdentity is not an object"},
};

TEST(decode, says_where_it_is_wrong)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_change *changes;
    size_t len;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        hf_scope_reset(s);
        CHECK_STATUS(HF_INVALID, hf_changes_decode(s, hf_str_from(bad[i].json), &changes, &len));
        CHECK(!changes && !len);
        if (!strstr(hf_scope_error_text(s), bad[i].says))
            fail_msg("%s\n  says      %s\n  expected  %s", bad[i].json, hf_scope_error_text(s),
                     bad[i].says);
    }
    hf_scope_free(s);
}

TEST(decode, levels_have_a_limit)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_change *changes;
    char text[1024] = "{\"Records\":[],\"a\":";
    size_t len;

    memset(text + strlen(text), '[', 500);
    CHECK_STATUS(HF_INVALID, hf_changes_decode(s, hf_str_from(text), &changes, &len));
    CHECK(strstr(hf_scope_error_text(s), "too many levels"));
    hf_scope_free(s);
}

/* Cut anywhere, or with any byte changed, it is read or refused, and no byte behind it is read. */
TEST(decode, any_damage_is_survived)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct hf_change *changes;
    size_t len;

    for (size_t cut = 0; cut < sizeof(event) - 1; cut++) {
        char *copy;

        hf_scope_reset(s);
        copy = test_malloc(cut ? cut : 1); /* so that reading on is seen */
        memcpy(copy, event, cut);
        CHECK_STATUS(HF_INVALID, hf_changes_decode(s, hf_str_of(copy, cut), &changes, &len));
        test_free(copy);
    }
    for (int i = 0; i < 20000; i++) {
        char *copy = test_malloc(sizeof(event) - 1);
        enum hf_status status;

        hf_scope_reset(s);
        memcpy(copy, event, sizeof(event) - 1);
        for (int j = 0; j < 3; j++)
            copy[test_random_below(t, sizeof(event) - 1)] =
                "\"{}[]:,\\x0\0"[test_random_below(t, 11)];
        status = hf_changes_decode(s, hf_str_of(copy, sizeof(event) - 1), &changes, &len);
        CHECK(status == HF_OK || status == HF_INVALID);
        test_free(copy);
    }
    hf_scope_free(s);
}

TEST(decode, any_allocation_may_fail)
{
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        const struct hf_change *changes;
        size_t len;
        enum hf_status status =
            s ? hf_changes_decode(s, hf_str_from(event), &changes, &len) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_NOMEM) == t->alloc_failed);
        hf_scope_free(s);
    }
}
