/*
 * client/describe_test.c: hf_client_describe() and hf_server_get(): where a client would connect to and
 * by which keys, and what a real server says of itself. (n) is an invariant of client/describe.c.
 */
#include <holdfast/client.h>

#include "base/base.h"
#include "rig.h"

/* Variables with keys, and no metadata service that could be asked. */
static const char *with_keys(const char *name, void *user)
{
    (void)user;
    if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0)
        return "AKIDEXAMPLE";
    if (strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0)
        return "a-secret";
    return strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0 ? "true" : NULL;
}

static const char *without_keys(const char *name, void *user)
{
    (void)user;
    return strcmp(name, "AWS_EC2_METADATA_DISABLED") == 0 ? "true" : NULL;
}

static struct hf_env env_of(const char *(*variables)(const char *, void *))
{
    return (struct hf_env){.size = sizeof(struct hf_env), .getenv = variables};
}

/* (1) */
TEST(describe, keys_of_variables)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_env env = env_of(with_keys);
    struct hf_client_info info;

    CHECK_OK(hf_client_describe(s, HF_STR("dynamodb://eu-central-1"),
                                HF_OPTIONS(hf_client_options, .env = &env), &info));
    CHECK(str_is(info.endpoint, "https://dynamodb.eu-central-1.amazonaws.com"));
    CHECK(str_is(info.region, "eu-central-1"));
    CHECK(str_is(info.credentials, "the variable AWS_ACCESS_KEY_ID"));
    CHECK(str_is(info.access_key, "AKIDEXAMPLE"));
    CHECK(info.expires_us == 0 && !info.placeholder);
    hf_scope_free(s);
}

TEST(describe, without_keys_the_endpoint_is_known)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_env env = env_of(without_keys);
    struct hf_client_info info;

    CHECK_STATUS(HF_DENIED, hf_client_describe(s, HF_STR("https://db.example:9000"),
                                               HF_OPTIONS(hf_client_options, .env = &env), &info));
    CHECK(str_is(info.endpoint, "https://db.example:9000"));
    CHECK(!info.access_key.ptr);
    CHECK_OK(hf_client_describe(s, HF_STR("http://127.0.0.1:9000"),
                                HF_OPTIONS(hf_client_options, .env = &env), &info));
    CHECK(info.placeholder);
    CHECK_STATUS(HF_INVALID, hf_client_describe(s, HF_STR("ftp://x"),
                                                HF_OPTIONS(hf_client_options, .env = &env), &info));
    CHECK(!info.endpoint.ptr);
    hf_scope_free(s);
}

TEST(describe, a_server_is_asked)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_env env = env_of(without_keys);
    struct hf_client_options *options = HF_OPTIONS(hf_client_options, .env = &env);
    struct hf_server_answer answer;
    struct rig rig;

    rig_open(&rig);
    CHECK_OK(hf_server_get(s, rig_url(&rig, s), options, HF_STR("/readyz"), &answer));
    CHECK_INT(200, answer.status);
    CHECK(str_is(answer.body, "ready\n"));
    CHECK(str_is(answer.server, "holdfast"));
    CHECK(answer.date_s > 1700000000);
    CHECK_OK(hf_server_get(s, rig_url(&rig, s), options, HF_STR("/nothing"), &answer));
    CHECK_INT(404, answer.status);
    CHECK_STATUS(HF_INVALID, hf_server_get(s, rig_url(&rig, s), options, HF_STR("x"), &answer));
    rig_close(&rig);
    CHECK_STATUS(HF_IO,
                 hf_server_get(s, HF_STR("http://127.0.0.1:1"), options, HF_STR("/"), &answer));
    CHECK_INT(0, answer.status);
    hf_scope_free(s);
}
