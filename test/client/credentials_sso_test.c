/* client/credentials_sso_test.c: logins of people, by SSO and by aws login. */
#include "help.h"

struct sso {
    struct aws *a;
    struct mock mock;
    int status;
    const char *body;
    char target[256];
    char token[256];
};

static void sso_answers(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    struct sso *sso = user;

    snprintf(sso->target, sizeof(sso->target), "%.250s", request->target);
    snprintf(sso->token, sizeof(sso->token), "%.250s",
             mock_field(request, "x-amz-sso_bearer_token"));
    answer->status = sso->status;
    answer->body = sso->body;
    if (!sso->body)
        snprintf(answer->room, sizeof(answer->room),
                 "{\"roleCredentials\":{\"accessKeyId\":\"AKIDSSO\",\"secretAccessKey\":"
                 "\"HUSH-sso\",\"sessionToken\":\"TOKEN-HUSH-sso\",\"expiration\":%lld}}",
                 (long long)atomic_load(&sso->a->wall_us) / 1000 + 3600 * 1000);
}

/* The digests of their names, by sha1sum and sha256sum. */
#define SESSION_FILE "sso/cache/9e28173066ce536e277c5fb355efd9c64f398167.json"
#define URL_FILE "sso/cache/3947de8b16688092197fa616c34e01335f21d256.json"
#define LOGIN_FILE "a9aa6015b267d43765ace474701cabd31e4e9b20b4a9a72ffc52f3c0b9ae6543.json"

static void token_file(struct sso *sso, const char *name, const char *token, const char *expires)
{
    char text[512];

    snprintf(text, sizeof(text),
             "{\"startUrl\":\"https://x.awsapps.com/start\",\"region\":\"eu-west-1\","
             "\"accessToken\":\"%s\",\"expiresAt\":\"%s\"}",
             token, expires);
    aws_file(sso->a, name, text);
}

static void sso_open(struct test *t, struct aws *a, struct sso *sso)
{
    aws_open(t, a);
    memset(sso, 0, sizeof(*sso));
    sso->a = a;
    mock_open(&sso->mock, sso_answers, sso);
    aws_set(a, "AWS_ENDPOINT_URL_SSO", sso->mock.url);
    aws_file(a, "config",
             "[default]\nsso_session = my-session\nsso_account_id = 123456789012\n"
             "sso_role_name = Read Only\n"
             "[sso-session my-session]\nsso_start_url = https://x.awsapps.com/start\n"
             "sso_region = eu-west-1\n");
}

static void sso_close(struct sso *sso)
{
    aws_close(sso->a);
    mock_close(&sso->mock);
}

TEST(sso, session_gives_the_keys_of_a_role)
{
    struct aws a;
    struct sso sso;

    sso_open(t, &a, &sso);
    token_file(&sso, SESSION_FILE, "TOKEN-HUSH-login", aws_time(&a, 60));
    aws_start(&a, NULL);
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK_STR("HUSH-sso", a.secret);
    CHECK_STR("TOKEN-HUSH-sso", a.token);
    CHECK_STR("123456789012", a.account);
    CHECK_STR("/federation/credentials?role_name=Read%20Only&account_id=123456789012",
              hf_str_from(sso.target));
    CHECK_STR("TOKEN-HUSH-login", hf_str_from(sso.token));
    aws_advance_s(&a, 3200);
    /* The keys have 400 seconds left, the login has none: that shows when they are renewed. */
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK_INT(1, atomic_load(&sso.mock.requests));
    aws_advance_s(&a, 200);
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK(strstr(a.said, "the old ones stay in use: The SSO login for profile \"default\" has "
                         "expired: run aws sso login --profile default"));
    aws_advance_s(&a, 200);
    CHECK_FAILS(HF_DENIED, "has expired: run aws sso login --profile default", &a);
    token_file(&sso, SESSION_FILE, "TOKEN-HUSH-again", aws_time(&a, 60));
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK_STR("TOKEN-HUSH-again", hf_str_from(sso.token));
    sso_close(&sso);
}

TEST(sso, profile_of_the_older_kind_has_its_token_by_url)
{
    struct aws a;
    struct sso sso;

    sso_open(t, &a, &sso);
    aws_file(&a, "config",
             "[default]\nsso_start_url = https://x.awsapps.com/start\nsso_region = eu-west-1\n"
             "sso_account_id = 123456789012\nsso_role_name = Admin\n");
    token_file(&sso, URL_FILE, "TOKEN-HUSH-login", "2026-01-01T10:00:00UTC");
    aws_start(&a, NULL);
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK_STR("TOKEN-HUSH-login", hf_str_from(sso.token));
    sso_close(&sso);
}

TEST(sso, stale_or_broken_logins_say_what_to_do)
{
    struct aws a;
    struct sso sso;
    static const char *const junk[] = {
        "",
        "HUSH",
        "[]",
        "{\"accessToken\":\"HUSH\"}",
        "{\"accessToken\":\"HUSH\",\"expiresAt\":\"soon\"}",
        "{\"accessToken\":\"HUSH\\r\\nX: y\",\"expiresAt\":\"2026-01-01T10:00:00Z\"}",
        "{\"accessToken\":7,\"expiresAt\":\"2026-01-01T10:00:00Z\"}"};

    sso_open(t, &a, &sso);
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED,
                "The SSO login for profile \"default\" does not exist: run aws sso login --profile "
                "default",
                &a);
    token_file(&sso, SESSION_FILE, "TOKEN-HUSH", aws_time(&a, 0));
    CHECK_FAILS(HF_DENIED, "has expired: run aws sso login", &a);
    for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
        aws_file(&a, SESSION_FILE, junk[i]);
        CHECK_FAILS(HF_DENIED, "cannot be read: run aws sso login", &a);
    }
    CHECK_INT(0, atomic_load(&sso.mock.requests));
    token_file(&sso, SESSION_FILE, "TOKEN-HUSH", aws_time(&a, 60));
    sso.status = 401;
    sso.body = "{\"message\":\"Session token not found or invalid\"}";
    CHECK_FAILS(HF_DENIED, "is not accepted any more: run aws sso login", &a);
    sso_close(&sso);
}

TEST(sso, answers_that_are_none_are_the_error)
{
    static const struct {
        int status;
        const char *body;
        enum hf_status expected;
        const char *part;
    } cases[] = {
        {403, "{\"message\":\"No access\"}", HF_DENIED,
         "SSO refused role Read Only of account 123456789012: HTTP status 403: No access"},
        {400, "{\"message\":\"token TOKEN-HUSH is bad\"}", HF_DENIED, "HTTP status 400"},
        {404, "HUSH", HF_DENIED, "HTTP status 404"},
        {500, "HUSH", HF_IO, "HTTP status 500"},
        {429, "{}", HF_IO, "HTTP status 429"},
        {302, "{}", HF_DENIED, "HTTP status 302"},
        {200, "HUSH", HF_IO, "has no credentials in it"},
        {200, "{}", HF_IO, "has no credentials in it"},
        {200, "{\"roleCredentials\":{\"accessKeyId\":\"A\",\"secretAccessKey\":\"HUSH\"}}", HF_IO,
         "has no credentials in it"},
        {200, "{\"roleCredentials\":[\"HUSH\"]}", HF_IO, "has no credentials in it"},
        {200,
         "{\"roleCredentials\":{\"accessKeyId\":\"A\",\"secretAccessKey\":\"HUSH\",\"expiration\":"
         "-5}}",
         HF_IO, "has no credentials in it"},
        {200,
         "{\"roleCredentials\":{\"accessKeyId\":\"A\",\"secretAccessKey\":\"HUSH\",\"expiration\":"
         "1}}",
         HF_DENIED, "from SSO have expired already"},
    };
    struct aws a;
    struct sso sso;

    sso_open(t, &a, &sso);
    token_file(&sso, SESSION_FILE, "TOKEN-HUSH", aws_time(&a, 60));
    aws_start(&a, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        sso.status = cases[i].status;
        sso.body = cases[i].body;
        CHECK_FAILS(cases[i].expected, cases[i].part, &a);
        CHECK(hf_scope_error(a.s)->may_retry == (cases[i].expected == HF_IO));
    }
    sso_close(&sso);
}

TEST(sso, needs_a_home)
{
    struct aws a;
    struct sso sso;
    char path[256];

    sso_open(t, &a, &sso);
    snprintf(path, sizeof(path), "%s/.aws/config", a.home);
    aws_set(&a, "AWS_CONFIG_FILE", path);
    aws_set(&a, "HOME", NULL);
    aws_start(&a, NULL);
    CHECK_FAILS(HF_INVALID, "HOME is not set", &a);
    sso_close(&sso);
}

TEST(sso, settings_that_are_missing_are_named)
{
    static const struct {
        const char *config, *part;
    } cases[] = {
        {"[default]\nsso_account_id = 1\n", "is for SSO, but has no sso_role_name"},
        {"[default]\nsso_role_name = r\n", "is for SSO, but has no sso_account_id"},
        {"[default]\nsso_start_url = u\nsso_account_id = 1\nsso_role_name = r\n",
         "is for SSO, but has no sso_region"},
        {"[default]\nsso_region = eu-west-1\nsso_account_id = 1\nsso_role_name = r\n",
         "is for SSO, but has no sso_start_url"},
        {"[default]\nsso_session = x\nsso_account_id = 1\nsso_role_name = r\n",
         "names sso-session \"x\", which does not exist or has no sso_region"},
        {"[default]\nsso_session = x\nsso_account_id = 1\nsso_role_name = r\n"
         "[sso-session x]\nsso_region = eu-west-1\n",
         "names sso-session \"x\", which does not exist or has no sso_start_url"},
    };
    struct aws a;

    aws_open(t, &a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        aws_file(&a, "config", cases[i].config);
        aws_start(&a, NULL);
        CHECK_FAILS(HF_INVALID, cases[i].part, &a);
        aws_stop(&a);
    }
    aws_close(&a);
}

/* ---- renewing ------------------------------------------------------------------------------- */

struct oidc {
    struct mock mock;
    int status;
    const char *body;
    char asked[512];
};

static void oidc_answers(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    struct oidc *oidc = user;

    snprintf(oidc->asked, sizeof(oidc->asked), "%s %.50s %.400s", request->method, request->target,
             request->body);
    answer->status = oidc->status;
    answer->body = oidc->body;
}

static void renewable(struct sso *sso, const char *client_expires)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "{\"startUrl\":\"https://x.awsapps.com/start\",\"region\":\"eu-west-1\","
             "\"accessToken\":\"HUSH-old\",\"expiresAt\":\"2025-12-31T00:00:00Z\","
             "\"clientId\":\"client\",\"clientSecret\":\"HUSH-client\","
             "\"registrationExpiresAt\":\"%s\",\"refreshToken\":\"HUSH-refresh\"}",
             client_expires);
    aws_file(sso->a, SESSION_FILE, text);
}

static void check_file(struct aws *a, const char *expected)
{
    char path[256], text[1024] = "";
    FILE *file;

    snprintf(path, sizeof(path), "%s/.aws/" SESSION_FILE, a->home);
    file = fopen(path, "r");
    CHECK(file && fgets(text, sizeof(text), file));
    fclose(file);
    CHECK_STR(expected, hf_str_from(text));
}

TEST(sso, login_that_has_expired_is_renewed)
{
    struct aws a;
    struct sso sso;
    struct oidc oidc = {.status = 0};

    sso_open(t, &a, &sso);
    mock_open(&oidc.mock, oidc_answers, &oidc);
    aws_set(&a, "AWS_ENDPOINT_URL_SSO_OIDC", oidc.mock.url);
    renewable(&sso, aws_time(&a, 1000));
    aws_start(&a, NULL);
    oidc.status = 500;
    oidc.body = "HUSH";
    CHECK_FAILS(HF_IO, "SSO OIDC did not renew the login: HTTP status 500", &a);
    oidc.status = 400;
    oidc.body = "{\"error\":\"invalid_grant\",\"error_description\":\"HUSH-refresh\"}";
    CHECK_FAILS(HF_DENIED, "has expired: run aws sso login --profile default", &a);
    oidc.status = 200;
    oidc.body = "{\"accessToken\":\"HUSH\\n\",\"expiresIn\":100}";
    CHECK_FAILS(HF_IO, "The answer of SSO OIDC has no token in it", &a);
    oidc.body = "{\"accessToken\":\"HUSH\"}";
    CHECK_FAILS(HF_IO, "The answer of SSO OIDC has no token in it", &a);
    CHECK_INT(0, atomic_load(&sso.mock.requests));

    oidc.body = "{\"accessToken\":\"HUSH-new\",\"expiresIn\":28800,\"refreshToken\":\"HUSH-next\","
                "\"tokenType\":\"Bearer\"}";
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK_STR("HUSH-new", hf_str_from(sso.token));
    CHECK_STR(
        "POST /token {\"grantType\":\"refresh_token\",\"clientId\":\"client\",\"clientSecret\":"
        "\"HUSH-client\",\"refreshToken\":\"HUSH-refresh\"}",
        hf_str_from(oidc.asked));
    check_file(&a, "{\"startUrl\":\"https://x.awsapps.com/start\",\"region\":\"eu-west-1\","
                   "\"accessToken\":\"HUSH-new\",\"expiresAt\":\"2026-01-01T08:00:00Z\","
                   "\"clientId\":\"client\",\"clientSecret\":\"HUSH-client\","
                   "\"registrationExpiresAt\":\"2026-01-01T00:16:40Z\","
                   "\"refreshToken\":\"HUSH-next\"}");
    aws_stop(&a);
    /* And then the file is as good as after a login. */
    oidc.asked[0] = '\0';
    aws_start(&a, NULL);
    CHECK_STR("AKIDSSO", aws_key(&a));
    CHECK_STR("", hf_str_from(oidc.asked));
    aws_stop(&a);
    /* The registration of the CLI has an end too. */
    renewable(&sso, aws_time(&a, 0));
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED, "has expired: run aws sso login", &a);
    CHECK_STR("", hf_str_from(oidc.asked));
    sso_close(&sso);
    mock_close(&oidc.mock);
}

/* ---- aws login ------------------------------------------------------------------------------ */

#define LOGIN "arn:aws:iam::0123456789012:user/username"

TEST(login, keys_are_read_while_they_last)
{
    struct aws a;
    char text[1024];

    aws_open(t, &a);
    aws_file(&a, "config", "[default]\nlogin_session = " LOGIN "\n");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED,
                "The login for profile \"default\" does not exist: run aws login --profile default",
                &a);
    snprintf(
        text, sizeof(text),
        "{\"accessToken\":{\"accessKeyId\":\"AKIDLOGIN\",\"secretAccessKey\":\"HUSH\","
        "\"sessionToken\":\"TOKEN-HUSH\",\"accountId\":\"0123456789012\",\"expiresAt\":\"%s\"},"
        "\"tokenType\":\"aws_sigv4\",\"refreshToken\":\"HUSH\",\"dpopKey\":\"HUSH\"}",
        aws_time(&a, 900));
    aws_file(&a, "login/cache/" LOGIN_FILE, text);
    CHECK_STR("AKIDLOGIN", aws_key(&a));
    CHECK_STR("TOKEN-HUSH", a.token);
    CHECK_STR("0123456789012", a.account);
    aws_advance_s(&a, 900);
    CHECK_FAILS(HF_DENIED, "has expired: run aws login", &a);
    aws_file(&a, "login/cache/" LOGIN_FILE, "HUSH");
    CHECK_FAILS(HF_DENIED, "has expired: run aws login", &a);
    aws_stop(&a);

    snprintf(text, sizeof(text), "%s/.aws/elsewhere", a.home);
    aws_set(&a, "AWS_LOGIN_CACHE_DIRECTORY", text);
    snprintf(text, sizeof(text),
             "{\"accessToken\":{\"accessKeyId\":\"AKIDTHERE\",\"secretAccessKey\":\"HUSH\","
             "\"expiresAt\":\"%s\"}}",
             aws_time(&a, 900));
    aws_file(&a, "elsewhere/" LOGIN_FILE, text);
    aws_start(&a, NULL);
    CHECK_STR("AKIDTHERE", aws_key(&a));
    aws_close(&a);
}
