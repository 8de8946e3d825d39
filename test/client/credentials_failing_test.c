/* client/credentials_failing_test.c: every source that is asked over HTTP, with every kind of
 * failure: the call ends in time, with an error that has no secret in it. */
#include "help.h"

#include <unistd.h>

enum { DEADLINE_MS = 120 };

/* How a source is set up to be answered by the mock. */
struct kind {
    const char *name;
    const char *variable; /* that has the mock's URL */
    const char *config;
};

static const struct kind kinds[] = {
    {"container", "AWS_CONTAINER_CREDENTIALS_FULL_URI", ""},
    {"metadata", "AWS_EC2_METADATA_SERVICE_ENDPOINT", ""},
    {"role", "AWS_ENDPOINT_URL_STS",
     "[default]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/r\nsource_profile = base\n"
     "[profile base]\naws_access_key_id = AKID\naws_secret_access_key = HUSH\n"},
    {"token", "AWS_ENDPOINT_URL_STS",
     "[default]\nregion = eu-west-1\nrole_arn = arn:aws:iam::1:role/r\n"
     "web_identity_token_file = /dev/null/HOME/.aws/token\n"},
    {"sso", "AWS_ENDPOINT_URL_SSO",
     "[default]\nsso_session = x\nsso_account_id = 1\nsso_role_name = r\n"
     "[sso-session x]\nsso_start_url = u\nsso_region = eu-west-1\n"},
};

static void say(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    (void)request;
    *answer = *(const struct mock_answer *)user;
}

static void kind_open(struct aws *a, const struct kind *kind, const char *url)
{
    char config[1024];
    const char *home = strstr(kind->config, "/dev/null/HOME");

    if (home)
        snprintf(config, sizeof(config), "%.*s%s%s", (int)(home - kind->config), kind->config,
                 a->home, home + strlen("/dev/null/HOME"));
    else
        snprintf(config, sizeof(config), "%s", kind->config);
    aws_file(a, "config", config);
    aws_file(a, "token", "TOKEN-HUSH");
    /* sha1 of "x" */
    aws_file(a, "sso/cache/11f6ad8ec52a2984abaafd7c3b516503785c2072.json",
             "{\"accessToken\":\"HUSH\",\"expiresAt\":\"2027-01-01T00:00:00Z\"}");
    aws_set(a, kind->variable, url);
    if (strcmp(kind->name, "metadata") == 0)
        aws_set(a, "AWS_EC2_METADATA_DISABLED", NULL);
    aws_start(a, NULL);
}

TEST(failing, every_source_ends_by_the_deadline)
{
    static char large[200 * 1024], nested[60 * 1024];
    const struct mock_answer failures[] = {
        {.way = MOCK_HANG},
        {.way = MOCK_CLOSE},
        {.way = MOCK_CUT, .body = large},
        {.way = MOCK_DRIP, .body = large},
        {.way = MOCK_JUNK, .body = "HUSH HUSH HUSH\r\n\r\n"},
        {.way = MOCK_JUNK, .body = "HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\nHUSH"},
        {.body = large},
        {.body = nested},
        {.body = "", .status = 200},
        {.body = "HUSH"},
        {.body = "{\"HUSH\":"},
        {.body = "\0HUSH", .len = 5},
        {.status = 500, .body = "HUSH"},
        {.status = 503, .body = large},
        {.status = 401, .body = "{\"message\":\"HUSH\"}"},
        {.status = 302, .body = "HUSH"},
    };

    memset(large, 'x', sizeof(large) - 1);
    memset(nested, '[', sizeof(nested) - 1);
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
            struct mock_answer answer = failures[i];
            struct sign_credentials now;
            struct hf_str account;
            struct aws a;
            struct mock mock;
            enum hf_status status;
            int64_t began;

            aws_open(t, &a);
            mock_open(&mock, say, &answer);
            kind_open(&a, &kinds[k], mock.url);
            began = real_ms();
            hf_scope_timeout_ms(a.s, DEADLINE_MS);
            status = hf__credentials_get(a.s, a.credentials, &now, &account);
            aws_say(&a, hf_scope_error_text(a.s));
            if (real_ms() - began > 1500 || status == HF_OK || status == HF_INTERNAL)
                print_error("%s, failure %zu: %s\n", kinds[k].name, i, hf_status_name(status));
            CHECK(real_ms() - began < 1500);
            CHECK(status == HF_IO || status == HF_TIMEOUT || status == HF_DENIED ||
                  status == HF_INVALID);
            CHECK(status != HF_TIMEOUT || answer.way == MOCK_HANG || answer.way == MOCK_DRIP ||
                  real_ms() - began >= DEADLINE_MS);
            aws_close(&a);
            mock_close(&mock);
        }
    }
}

/* Who asks without a deadline does not wait forever either: two attempts of a second, here. */
TEST(failing, a_source_ends_without_a_deadline_too)
{
    struct mock_answer answer = {.way = MOCK_HANG};
    struct aws a;
    struct mock mock;
    int64_t began = real_ms();

    aws_open(t, &a);
    mock_open(&mock, say, &answer);
    aws_set(&a, "AWS_METADATA_SERVICE_NUM_ATTEMPTS", "2");
    kind_open(&a, &kinds[1], mock.url);
    CHECK_FAILS(HF_DENIED, "the metadata service of the machine does not answer", &a);
    CHECK(real_ms() - began > 1900 && real_ms() - began < 4000);
    CHECK_INT(2, atomic_load(&mock.requests));
    aws_close(&a);
    mock_close(&mock);
}
