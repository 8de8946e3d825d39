/* client/credentials_profile_test.c: roles and chains of them, processes, logins; (n) is an
 * invariant of credentials_profile.c. */
#include "help.h"

#include <sys/stat.h>
#include <unistd.h>

#define ROLE(name) "role_arn = arn:aws:iam::210987654321:role/" name "\n"

/* ---- roles ---------------------------------------------------------------------------------- */

/* An STS that gives role NAME the key AKID-NAME, and keeps what it was asked. */
struct sts {
    struct aws *a;
    struct mock mock;
    char log[4096];  /* "key role session external duration;" of each request */
    char body[4096]; /* of the last */
    char authorization[512];
    int status; /* of the answer; 0: 200 */
    const char *error;
    enum mock_way way;
    int bad;    /* that many requests fail before one does not */
    int life_s; /* 0: an hour */
};

/* The value of a parameter of a form, not decoded. */
static const char *parameter(const char *body, const char *name)
{
    static _Thread_local char values[4][2048];
    static _Thread_local int turn;
    const char *at = strstr(body, name);

    turn = (turn + 1) % 4;
    values[turn][0] = '\0';
    if (at && at[strlen(name)] == '=')
        snprintf(values[turn], sizeof(values[0]), "%.*s", (int)strcspn(at + strlen(name) + 1, "&"),
                 at + strlen(name) + 1);
    return values[turn];
}

static void sts_answers(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    struct sts *sts = user;
    const char *authorization = mock_field(request, "Authorization");
    const char *key = strstr(authorization, "Credential=");
    const char *role = strrchr(parameter(request->body, "RoleArn"), 'F'); /* behind %2F */
    size_t len = strlen(sts->log);
    char name[64];
    bool web = strstr(request->body, "AssumeRoleWithWebIdentity&") != NULL;

    snprintf(sts->body, sizeof(sts->body), "%.4000s", request->body);
    snprintf(sts->authorization, sizeof(sts->authorization), "%.500s", authorization);
    snprintf(sts->log + len, sizeof(sts->log) - len, "%.*s %s %s %s;",
             key ? (int)strcspn(key + 11, "/") : 1, key ? key + 11 : "-", role ? role + 1 : "?",
             parameter(request->body, "ExternalId"), parameter(request->body, "DurationSeconds"));
    snprintf(name, sizeof(name), "AKID-%.40s", role ? role + 1 : "?");
    answer->way = sts->way;
    if (sts->status && (!sts->bad || request->nth <= sts->bad)) {
        answer->status = sts->status;
        answer->body = sts->error;
        return;
    }
    sts_xml(answer->room, sizeof(answer->room), web ? "AssumeRoleWithWebIdentity" : "AssumeRole",
            name, aws_time(sts->a, sts->life_s ? sts->life_s : 3600));
}

static void sts_open(struct test *t, struct aws *a, struct sts *sts)
{
    aws_open(t, a);
    memset(sts, 0, sizeof(*sts));
    sts->a = a;
    mock_open(&sts->mock, sts_answers, sts);
    aws_set(a, "AWS_ENDPOINT_URL_STS", sts->mock.url);
    aws_set(a, "AWS_REGION", "eu-central-1");
}

static void sts_close(struct sts *sts)
{
    aws_close(sts->a);
    mock_close(&sts->mock);
}

#define BASE "[profile base]\naws_access_key_id = AKIDBASE\naws_secret_access_key = HUSH-base\n"

TEST(role, is_asked_for_with_the_keys_of_the_source)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config",
             "[default]\n" ROLE(
                 "one") "source_profile = base\nexternal_id = a b&c\n"
                        "role_session_name = me@host\nduration_seconds = 900\n" BASE);
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("HUSH-of-AKID-one", a.secret);
    CHECK_STR("TOKEN-HUSH-of-AKID-one", a.token);
    CHECK_STR("210987654321", a.account);
    CHECK_STR("AKIDBASE one a%20b%26c 900;", hf_str_from(sts.log));
    CHECK_STR("Action=AssumeRole&Version=2011-06-15&RoleArn=arn%3Aaws%3Aiam%3A%3A210987654321%3A"
              "role%2Fone&RoleSessionName=me%40host&ExternalId=a%20b%26c&DurationSeconds=900",
              hf_str_from(sts.body));
    CHECK(strstr(sts.authorization,
                 "AWS4-HMAC-SHA256 Credential=AKIDBASE/20260101/eu-central-1/sts/aws4_request"));
    /* Kept until it is about to expire. */
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_INT(1, atomic_load(&sts.mock.requests));
    aws_advance_s(&a, 3400);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_INT(2, atomic_load(&sts.mock.requests));
    sts_close(&sts);
}

TEST(role, is_asked_for_in_the_region_of_the_client)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
    aws_start(&a, &(struct credentials_options){.region = HF_STR("ap-south-1")});
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK(strstr(sts.authorization, "/ap-south-1/sts/aws4_request"));
    aws_stop(&a);
    aws_set(&a, "AWS_REGION", NULL);
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK(strstr(sts.authorization, "/us-east-1/sts/aws4_request"));
    sts_close(&sts);
}

TEST(role, may_stand_on_roles)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config",
             "[default]\n" ROLE("one") "source_profile = two\n"
                                       "[profile two]\n" ROLE(
                                           "two") "source_profile = three\n"
                                                  "[profile three]\n" ROLE(
                                                      "three") "source_profile = base\n" BASE);
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("AKIDBASE three  ;AKID-three two  ;AKID-two one  ;", hf_str_from(sts.log));
    CHECK_INT(0, strncmp(parameter(sts.body, "RoleSessionName"), "holdfast-1767225600", 19));
    sts_close(&sts);
}

/* (1) (2) */
TEST(role, of_a_profile_that_names_itself_uses_its_keys)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config",
             "[default]\n" ROLE("one") "source_profile = default\n"
                                       "aws_access_key_id = AKIDSELF\naws_secret_access_key = "
                                       "HUSH-self\n");
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("AKIDSELF one  ;", hf_str_from(sts.log));
    sts_close(&sts);
}

TEST(role, of_a_source_gives_way_to_its_keys)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(
        &a, "config",
        "[default]\n" ROLE(
            "one") "source_profile = two\n"
                   "[profile two]\n" ROLE(
                       "two") "source_profile = nowhere\n"
                              "aws_access_key_id = AKIDTWO\naws_secret_access_key = HUSH-two\n");
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("AKIDTWO one  ;", hf_str_from(sts.log));
    sts_close(&sts);
}

TEST(role, settings_that_cannot_be_are_refused_before_anything_is_sent)
{
    static const struct {
        const char *config, *part;
    } cases[] = {
        {"[default]\n" ROLE("one") "source_profile = default\n",
         "form a cycle: source_profile leads back to \"default\""},
        {"[default]\n" ROLE("one") "source_profile = two\n[profile two]\n" ROLE(
             "two") "source_profile = three\n[profile three]\n" ROLE("3") "source_profile = two\n",
         "The roles of profile \"default\" form a cycle: source_profile leads back to \"two\""},
        {"[default]\n" ROLE("one"), "and none of source_profile"},
        {"[default]\n" ROLE("one") "source_profile = base\ncredential_source = Environment\n" BASE,
         "and more than one of source_profile"},
        {"[default]\n" ROLE("one") "source_profile = gone\n",
         "source_profile = gone, which does not exist"},
        {"[default]\n" ROLE("one") "source_profile = bare\n[profile bare]\nregion = x\n",
         "\"bare\" is named as a source_profile, but has no credentials"},
        {"[default]\n" ROLE("one") "credential_source = Nothing\n", "is not Environment, Ecs"},
        {"[default]\n" ROLE("one") "source_profile = base\nmfa_serial = arn:x\n" BASE,
         "has mfa_serial"},
        {"[default]\n" ROLE("one") "source_profile = base\nduration_seconds = 899\n" BASE,
         "not a number from 900 to 43200"},
        {"[default]\n" ROLE("one") "source_profile = base\nduration_seconds = 43201\n" BASE,
         "not a number from 900 to 43200"},
        {"[default]\n" ROLE("one") "source_profile = base\nduration_seconds = 1e3\n" BASE,
         "not a number from 900 to 43200"},
        {"[default]\n" ROLE("one") "source_profile = base\nrole_session_name = a b\n" BASE,
         "is not 2 to 64 letters"},
        {"[default]\n" ROLE("1") "source_profile = p2\n[profile p2]\n" ROLE("2") "source_profile = p3\n[profile p3]\n" ROLE(
             "3") "source_profile = p4\n"
                  "[profile p4]\n" ROLE("4") "source_profile = p5\n[profile p5]\n" ROLE(
                      "5") "source_profile = p6\n"
                           "[profile p6]\n" ROLE("6") "source_profile = p7\n[profile p7]\n" ROLE(
                               "7") "source_profile = p8\n"
                                    "[profile p8]\n" ROLE("8") "source_profile = p9\n[profile p9]\n" ROLE(
                                        "9") "source_profile = "
                                             "base\n" BASE,
         "needs more than 8 roles"},
    };
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        aws_file(&a, "config", cases[i].config);
        aws_start(&a, NULL);
        CHECK_FAILS(HF_INVALID, cases[i].part, &a);
        aws_stop(&a);
    }
    CHECK_INT(0, atomic_load(&sts.mock.requests));
    sts_close(&sts);
}

TEST(role, may_stand_on_another_source)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config", "[default]\n" ROLE("one") "credential_source = Environment\n");
    aws_set(&a, "AWS_ACCESS_KEY_ID", "AKIDENV");
    aws_set(&a, "AWS_SECRET_ACCESS_KEY", "HUSH-of-env");
    aws_start(&a, &(struct credentials_options){.profile_asked = true});
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("AKIDENV one  ;", hf_str_from(sts.log));
    aws_stop(&a);

    aws_set(&a, "AWS_ACCESS_KEY_ID", NULL);
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED, "credential_source = Environment, but AWS_ACCESS_KEY_ID is not set", &a);
    aws_stop(&a);
    aws_file(&a, "config", "[default]\n" ROLE("one") "credential_source = EcsContainer\n");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED, "but no AWS_CONTAINER_CREDENTIALS_ variable is set", &a);
    aws_stop(&a);
    aws_file(&a, "config", "[default]\n" ROLE("one") "credential_source = Ec2InstanceMetadata\n");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED, "but that is switched off", &a);
    sts_close(&sts);
}

TEST(role, by_a_token_reads_its_file_each_time)
{
    struct aws a;
    struct sts sts;
    char config[1024], token[256];
    static char large[65538];

    memset(large, 'x', sizeof(large) - 1);
    sts_open(t, &a, &sts);
    snprintf(config, sizeof(config),
             "[default]\n" ROLE("one") "source_profile = web\n"
                                       "[profile web]\n" ROLE(
                                           "web") "web_identity_token_file = %s\n",
             aws_file(&a, "token", "TOKEN-HUSH-1\n"));
    aws_file(&a, "config", config);
    aws_start(&a, NULL);
    CHECK_STR("AKID-one", aws_key(&a));
    CHECK_STR("- web  ;AKID-web one  ;", hf_str_from(sts.log));
    aws_stop(&a);

    snprintf(config, sizeof(config),
             "[default]\n" ROLE("web") "web_identity_token_file = %s/.aws/token\n", a.home);
    aws_file(&a, "config", config);
    aws_start(&a, NULL);
    CHECK_STR("AKID-web", aws_key(&a));
    CHECK_STR("TOKEN-HUSH-1", hf_str_from(parameter(sts.body, "WebIdentityToken")));
    aws_file(&a, "token", "TOKEN-HUSH-2");
    aws_advance_s(&a, 3590);
    CHECK_STR("AKID-web", aws_key(&a));
    CHECK_STR("TOKEN-HUSH-2", hf_str_from(parameter(sts.body, "WebIdentityToken")));
    aws_stop(&a);
    aws_file(&a, "token", " \n");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_INVALID, "/.aws/token, is empty", &a);
    snprintf(token, sizeof(token), "%s/.aws/token", a.home);
    CHECK_INT(0, unlink(token));
    CHECK_FAILS(HF_INVALID, "No such file", &a);
    aws_file(&a, "token", large);
    CHECK_FAILS(HF_INVALID, "has more than 65536 bytes", &a);
    CHECK_INT(0, unlink(token));
    CHECK_INT(0, mkfifo(token, 0600)); /* which would never end */
    CHECK_FAILS(HF_INVALID, "is not a file", &a);
    sts_close(&sts);
}

/* ---- STS in trouble ------------------------------------------------------------------------- */

#define ERROR_XML(code, message)                                                                    \
    "<ErrorResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><Error><Type>Sender</Type>" \
    "<Code>" code "</Code><Message>" message "</Message></Error></ErrorResponse>"

TEST(role, that_sts_refuses_is_said_in_its_words)
{
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
    aws_start(&a, NULL);
    sts.status = 403;
    sts.error =
        ERROR_XML("AccessDenied", "User: arn:aws:iam::1:user/x is not &lt;authorized&gt;\n");
    CHECK_FAILS(HF_DENIED,
                "STS refused role arn:aws:iam::210987654321:role/one: HTTP status 403, "
                "AccessDenied: User: arn:aws:iam::1:user/x is not <authorized>",
                &a);
    CHECK(!hf_scope_error(a.s)->may_retry);
    CHECK_INT(1, atomic_load(&sts.mock.requests));
    /* Not when it repeats what we told it. */
    sts.error = ERROR_XML("AccessDenied", "Wrong: HUSH-base");
    CHECK_FAILS(HF_DENIED, "HTTP status 403, AccessDenied", &a);
    sts.error = "HUSH-base <not XML";
    CHECK_FAILS(HF_DENIED, "HTTP status 403", &a);
    sts_close(&sts);
}

TEST(role, is_asked_for_again_when_sts_is_in_passing_trouble)
{
    static const struct {
        int status;
        const char *error;
    } cases[] = {{500, "HUSH oops"},
                 {503, ""},
                 {429, ""},
                 {400, ERROR_XML("Throttling", "Rate exceeded")},
                 {400, ERROR_XML("IDPCommunicationError", "later")}};
    struct aws a;
    struct sts sts;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        sts_open(t, &a, &sts);
        aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
        aws_start(&a, NULL);
        sts.status = cases[i].status;
        sts.error = cases[i].error;
        sts.bad = 2;
        CHECK_STR("AKID-one", aws_key(&a));
        CHECK_INT(3, atomic_load(&sts.mock.requests));
        sts.bad = 0;
        aws_advance_s(&a, 3600);
        CHECK_FAILS(HF_IO, "STS refused role", &a);
        CHECK(hf_scope_error(a.s)->may_retry);
        CHECK_INT(6, atomic_load(&sts.mock.requests));
        sts_close(&sts);
    }
}

/* An STS whose clock says 2034, and that takes no signature of another year. */
static void later_sts_answers(void *user, const struct mock_request *request,
                              struct mock_answer *answer)
{
    (void)user;
    answer->date = "Sun, 01 Jan 2034 00:00:00 GMT";
    if (strncmp(mock_field(request, "X-Amz-Date"), "2034", 4) == 0) {
        sts_xml(answer->room, sizeof(answer->room), "AssumeRole", "AKID", "2034-01-01T01:00:00Z");
        return;
    }
    answer->status = 403;
    answer->body = ERROR_XML("SignatureDoesNotMatch", "Signature expired");
}

/* As the client does with DynamoDB; and the expiry is by our clock then. */
TEST(role, is_signed_for_by_the_clock_of_sts)
{
    struct aws a;
    struct mock mock;

    aws_open(t, &a);
    mock_open(&mock, later_sts_answers, NULL);
    aws_set(&a, "AWS_ENDPOINT_URL_STS", mock.url);
    aws_set(&a, "AWS_REGION", "eu-central-1");
    aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_INT(2, atomic_load(&mock.requests));
    aws_advance_s(&a, 3000);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_INT(2, atomic_load(&mock.requests));
    aws_advance_s(&a, 500);
    CHECK_STR("AKID", aws_key(&a)); /* in the last minutes it is asked again, and signed right */
    CHECK_INT(3, atomic_load(&mock.requests));
    aws_close(&a);
    mock_close(&mock);
}

TEST(role, answers_that_are_none_are_refused)
{
    static const char *const answers[] = {
        "",
        "junk HUSH",
        "<a/>",
        "{\"json\": 1}",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
        "<SecretAccessKey>HUSH</SecretAccessKey></Credentials></AssumeRoleResult>"
        "</AssumeRoleResponse>",
        "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>A</AccessKeyId>"
        "<SecretAccessKey>HUSH</SecretAccessKey><SessionToken>HUSH</SessionToken>"
        "<Expiration>soon</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>",
        "<!DOCTYPE a [<!ENTITY b \"c\">]><AssumeRoleResponse></AssumeRoleResponse>"};
    struct aws a;
    struct sts sts;

    sts_open(t, &a, &sts);
    aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
    aws_start(&a, NULL);
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        sts.status = 200;
        sts.error = answers[i];
        CHECK_FAILS(HF_IO, "The answer of STS for role arn:aws:iam::210987654321:role/one", &a);
        CHECK(hf_scope_error(a.s)->may_retry);
    }
    sts.status = 0;
    sts.life_s = -5;
    CHECK_FAILS(HF_DENIED, "The credentials from STS have expired already", &a);
    sts_close(&sts);
}

TEST(role, has_a_deadline_whatever_sts_does)
{
    static const enum mock_way ways[] = {MOCK_HANG, MOCK_CLOSE, MOCK_CUT, MOCK_DRIP, MOCK_JUNK};

    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct sign_credentials now;
        struct hf_str account;
        struct aws a;
        struct sts sts;
        int64_t began = real_ms();
        enum hf_status status;

        sts_open(t, &a, &sts);
        aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
        aws_start(&a, NULL);
        sts.way = ways[i];
        hf_scope_timeout_ms(a.s, 400);
        status = hf__credentials_get(a.s, a.credentials, &now, &account);
        CHECK(status == HF_IO || status == HF_TIMEOUT);
        aws_say(&a, hf_scope_error_text(a.s));
        CHECK(real_ms() - began < 1500);
        sts_close(&sts);
    }
}

TEST(role, answers_too_large_are_refused)
{
    static char large[200 * 1024];
    struct aws a;
    struct sts sts;

    memset(large, 'x', sizeof(large) - 1);
    sts_open(t, &a, &sts);
    aws_file(&a, "config", "[default]\n" ROLE("one") "source_profile = base\n" BASE);
    aws_start(&a, NULL);
    sts.status = 200;
    sts.error = large;
    CHECK_FAILS(HF_IO, "The answer of STS is too large", &a);
    sts_close(&sts);
}
