/* client/service_test.c: what signed calls to services share; (n) is an invariant of
 * client/service.c. Calls themselves are in client_test.c, test/blob/s3_test.c, test/sinks/aws_test.c. */
#include "client/service.h"
#include "test.h"

static int64_t wall(void *user)
{
    return *(int64_t *)user;
}

static struct http_answer answer_with(struct http_field *field, const char *name, const char *value)
{
    *field = (struct http_field){hf_str_from(name), hf_str_from(value)};
    return (struct http_answer){.status = 503, .fields = field, .fields_len = 1};
}

static uint32_t wait_of(const char *name, const char *value)
{
    struct http_field field;
    struct http_answer answer = answer_with(&field, name, value);

    return hf__service_retry_after_ms(&answer);
}

/* At the limit and one past it, in both units. */
TEST(service, how_long_to_wait)
{
    struct http_field both[] = {{HF_STR("Retry-After"), HF_STR("9")},
                                {HF_STR("X-Amz-Retry-After"), HF_STR("250")}};
    struct http_answer answer = {.fields = both, .fields_len = 2};

    CHECK_INT(7000, wait_of("Retry-After", "7"));
    CHECK_INT(60000, wait_of("Retry-After", "60"));
    CHECK_INT(60000, wait_of("Retry-After", "61"));
    CHECK_INT(60000, wait_of("Retry-After", "99999999999999999999999"));
    CHECK_INT(0, wait_of("Retry-After", "Sun, 15 Nov 2026 10:30:00 GMT"));
    CHECK_INT(0, wait_of("Retry-After", "-1"));
    CHECK_INT(0, wait_of("Retry-After", ""));
    CHECK_INT(1500, wait_of("x-amz-retry-after", "1500"));
    CHECK_INT(SERVICE_RETRY_AFTER_MAX_MS, wait_of("x-amz-retry-after", "60000"));
    CHECK_INT(SERVICE_RETRY_AFTER_MAX_MS, wait_of("x-amz-retry-after", "60001"));
    CHECK_INT(0, wait_of("x-amz-retry-after", "soon"));
    CHECK_INT(0, wait_of("Date", "7"));
    CHECK_INT(250, hf__service_retry_after_ms(&answer));
}

TEST(service, codes)
{
    static const struct {
        const char *said, *code;
    } cases[] = {{"ExpiredToken", "ExpiredToken"},
                 {"ExpiredTokenException", "ExpiredToken"},
                 {"com.amazonaws.sqs#QueueDoesNotExist", "QueueDoesNotExist"},
                 {"AWS.SimpleQueueService.NonExistentQueue", "NonExistentQueue"},
                 {"a#b.UnrecognizedClientException", "UnrecognizedClient"},
                 {"Exception", "Exception"},
                 {"a.", ""},
                 {"", ""}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        CHECK_STR(cases[i].code, hf__service_code(hf_str_from(cases[i].said)));
}

/* (2), at the limit and one past it. 1763202600 is Sat, 15 Nov 2025 10:30:00 GMT. */
TEST(service, clocks)
{
    const int64_t date_s = 1763202600;
    int64_t now_us = 0, skew_s = 0;
    struct hf_env env =
        hf__env_fill(&(struct hf_env){.size = sizeof(env), .user = &now_us, .wall_us = wall});
    struct http_field field;
    struct http_answer answer = answer_with(&field, "Date", "Sat, 15 Nov 2025 10:30:00 GMT");

    now_us = (date_s - CREDENTIALS_SKEW_S + 1) * 1000000;
    CHECK(!hf__service_clock_differs(&env, &answer, &skew_s));
    CHECK_INT(0, skew_s);
    now_us = (date_s - CREDENTIALS_SKEW_S) * 1000000;
    CHECK(hf__service_clock_differs(&env, &answer, &skew_s));
    CHECK_INT(CREDENTIALS_SKEW_S, skew_s);
    CHECK(!hf__service_clock_differs(&env, &answer, &skew_s)); /* it was corrected */
    now_us = (date_s + 3600) * 1000000;
    CHECK(hf__service_clock_differs(&env, &answer, &skew_s));
    CHECK_INT(-3600, skew_s);
    answer = answer_with(&field, "Date", "yesterday");
    CHECK(!hf__service_clock_differs(&env, &answer, &skew_s));
    CHECK_INT(-3600, skew_s);
}

/* (3) */
TEST(service, words)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct service_try try = {.used = {.access_key = HF_STR("AKIA"),
                                       .secret_key = HF_STR("0123456789abcdef"),
                                       .session_token = HF_STR("short")}};

    CHECK_STR("one?two?", hf__service_quote(s, &try, HF_STR("one\ntwo\x7f"), 100));
    CHECK_STR("one", hf__service_quote(s, &try, HF_STR("one two"), 3));
    CHECK_STR("", hf__service_quote(s, &try, HF_STR("sign with 0123456789abcdef!"), 100));
    CHECK_STR("", hf__service_quote(s, &try, HF_STR("sign with 0123456789abcdef!"), 3));
    CHECK_STR("a short word", hf__service_quote(s, &try, HF_STR("a short word"), 100));
    CHECK(!hf__service_has_secret(&try, (struct hf_str){0}));
    CHECK_STR("", hf__service_printable(s, (struct hf_str){0}, 100));
    hf_scope_free(s);
}

TEST(service, an_answer_that_is_none)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STATUS(HF_IO, hf__service_unreadable(s, HF_STR("S3 (http://x)"), "is not XML"));
    CHECK_ERROR(HF_IO, "the answer of S3 (http://x) is not XML", s);
    CHECK(hf_scope_error(s)->may_retry && hf_scope_error(s)->may_have_happened);
    hf_scope_free(s);
}
