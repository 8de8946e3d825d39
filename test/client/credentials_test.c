/* client/credentials_test.c: the order of sources, and when they are asked again; (n) is an
 * invariant of credentials.c. */
#include "help.h"

#include <unistd.h>

/* ---- what is given -------------------------------------------------------------------------- */

TEST(credentials, of_the_program_go_before_all)
{
    struct aws a;

    aws_open(t, &a);
    aws_set(&a, "AWS_ACCESS_KEY_ID", "AKIDENV");
    aws_set(&a, "AWS_SECRET_ACCESS_KEY", "HUSH-of-env");
    aws_start(&a, &(struct credentials_options){
                      .fixed = &(struct hf_credentials){.access_key = HF_STR("AKIDGIVEN"),
                                                        .secret_key = HF_STR("HUSH-given"),
                                                        .session_token = HF_STR("TOKEN-HUSH")}});
    CHECK_STR("AKIDGIVEN", aws_key(&a));
    CHECK_STR("HUSH-given", a.secret);
    CHECK_STR("TOKEN-HUSH", a.token);
    CHECK(!a.account.ptr);
    CHECK(!hf__credentials_refused(a.credentials, HF_STR("AKIDGIVEN")));
    aws_close(&a);
}

TEST(credentials, given_ones_are_checked)
{
    static const struct hf_credentials wrong[] = {
        {.access_key = {"AKID", 4}},
        {.access_key = {"AK ID", 5}, .secret_key = {"HUSH", 6}},
        {.access_key = {"AKID", 4}, .secret_key = {"SEC\nRET", 7}},
        {.access_key = {"AKID", 4}, .secret_key = {"HUSH", 6}, .session_token = {"a\r\nb", 4}},
    };
    struct aws a;

    aws_open(t, &a);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_STATUS(HF_INVALID,
                     aws_try_start(&a, &(struct credentials_options){.fixed = &wrong[i]}));
        CHECK(!a.credentials);
        aws_say(&a, hf_scope_error_text(a.s));
        aws_check_part(&a, "the program", __FILE__, __LINE__);
        aws_stop(&a);
    }
    aws_close(&a);
}

TEST(credentials, given_ones_expire)
{
    struct aws a;
    struct hf_credentials given = {.access_key = HF_STR("AKIDGIVEN"),
                                   .secret_key = HF_STR("HUSH-given")};

    aws_open(t, &a);
    given.expires_us = a.wall_us + 400 * 1000000;
    aws_start(&a, &(struct credentials_options){.fixed = &given});
    CHECK_STR("AKIDGIVEN", aws_key(&a));
    aws_advance_s(&a, 399);
    CHECK_STR("AKIDGIVEN", aws_key(&a));
    aws_advance_s(&a, 1);
    CHECK_FAILS(HF_DENIED, "from the program have expired", &a);
    aws_close(&a);
}

struct giver {
    struct aws *a;
    int calls;
    int64_t life_s;
    enum hf_status status;
    const char *access_key;
};

static enum hf_status give(struct hf_scope *s, struct hf_credentials *credentials, void *user)
{
    struct giver *giver = user;

    giver->calls++;
    if (giver->status != HF_OK)
        return giver->status == HF_IO ? HF_IO : hf__fail(s, giver->status, "No, says the program");
    *credentials = (struct hf_credentials){.access_key = hf_str_from(giver->access_key),
                                           .secret_key = HF_STR("HUSH-of-fn")};
    if (giver->life_s)
        credentials->expires_us = atomic_load(&giver->a->wall_us) + giver->life_s * 1000000;
    return HF_OK;
}

TEST(credentials, a_function_of_the_program_is_asked_again_in_time)
{
    struct aws a;
    struct giver giver = {.a = &a, .life_s = 3600, .access_key = "AKIDFN"};

    aws_open(t, &a);
    aws_set(&a, "AWS_ACCESS_KEY_ID", "AKIDENV");
    aws_set(&a, "AWS_SECRET_ACCESS_KEY", "HUSH-of-env");
    aws_start(&a, &(struct credentials_options){.fn = give, .fn_user = &giver});
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_STR("AKIDFN", aws_key(&a));
    aws_advance_s(&a, 3600 - 301);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(1, giver.calls);
    aws_advance_s(&a, 2);
    giver.access_key = "AKIDNEW";
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK_INT(2, giver.calls);
    aws_close(&a);
}

TEST(credentials, a_function_that_fails_is_reported)
{
    struct aws a;
    struct giver giver = {.a = &a, .status = HF_IO, .access_key = "AKIDFN"};

    aws_open(t, &a);
    aws_start(&a, &(struct credentials_options){.fn = give, .fn_user = &giver});
    CHECK_FAILS(HF_IO, "The program's own function for credentials failed with HF_IO", &a);
    giver.status = HF_DENIED;
    CHECK_FAILS(HF_DENIED, "No, says the program", &a);
    giver.status = HF_OK;
    giver.access_key = NULL;
    CHECK_FAILS(HF_INVALID, "from the program's own function have no access key", &a);
    giver.access_key = "AKIDFN";
    CHECK_STR("AKIDFN", aws_key(&a));
    aws_close(&a);
}

/* A source whose keys never live long is not asked at every use. */
TEST(credentials, short_lived_ones_are_not_asked_for_at_every_use)
{
    struct aws a;
    struct giver giver = {.a = &a, .life_s = 30, .access_key = "AKIDFN"};

    aws_open(t, &a);
    aws_start(&a, &(struct credentials_options){.fn = give, .fn_user = &giver});
    for (int i = 0; i < 50; i++)
        CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(1, giver.calls);
    aws_advance_s(&a, 2);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(2, giver.calls);
    giver.life_s = -1;
    aws_advance_s(&a, 31);
    CHECK_FAILS(HF_DENIED, "have expired already", &a);
    aws_close(&a);
}

/* ---- failing refreshes ---------------------------------------------------------------------- */

TEST(credentials, that_are_valid_outlive_a_source_that_fails)
{
    struct aws a;
    struct giver giver = {.a = &a, .life_s = 3600, .access_key = "AKIDFN"};
    int calls;

    aws_open(t, &a);
    aws_start(&a, &(struct credentials_options){.fn = give, .fn_user = &giver});
    CHECK_STR("AKIDFN", aws_key(&a));
    giver.status = HF_DENIED;
    aws_advance_s(&a, 3600 - 200);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(2, giver.calls);
    CHECK(hf_scope_error(a.s)->status == HF_OK);
    CHECK(strstr(a.said, "refresh failed"));
    CHECK(strstr(a.said, "No, says the program"));
    /* Not again before the pause has passed, */
    for (int i = 0; i < 20; i++)
        CHECK_STR("AKIDFN", aws_key(&a));
    aws_advance_s(&a, 9);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(2, giver.calls);
    /* but then. */
    aws_advance_s(&a, 11);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(3, giver.calls);
    /* In the last minute the pause is shorter, */
    aws_advance_s(&a, 150);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(4, giver.calls);
    aws_advance_s(&a, 2);
    CHECK_STR("AKIDFN", aws_key(&a));
    CHECK_INT(5, giver.calls);
    /* and after the end there is none. */
    aws_advance_s(&a, 28);
    calls = giver.calls;
    CHECK_FAILS(HF_DENIED, "No, says the program", &a);
    CHECK_FAILS(HF_DENIED, "No, says the program", &a);
    CHECK_INT(calls + 2, giver.calls);
    giver.status = HF_OK;
    giver.access_key = "AKIDBACK";
    CHECK_STR("AKIDBACK", aws_key(&a));
    aws_close(&a);
}

TEST(credentials, that_were_refused_are_fetched_anew) /* (6) */
{
    struct aws a;
    struct giver giver = {.a = &a, .access_key = "AKIDFN"};

    aws_open(t, &a);
    aws_start(&a, &(struct credentials_options){.fn = give, .fn_user = &giver});
    CHECK(!hf__credentials_refused(a.credentials, HF_STR("AKIDFN"))); /* there are none yet */
    CHECK_STR("AKIDFN", aws_key(&a));
    giver.access_key = "AKIDNEW";
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKIDFN")));
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK_INT(2, giver.calls);
    /* Somebody who still had the old one just asks again. */
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKIDFN")));
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK_INT(2, giver.calls);
    /* A source that has nothing else is left alone for a while. */
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKIDNEW")));
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK_INT(3, giver.calls);
    CHECK(!hf__credentials_refused(a.credentials, HF_STR("AKIDNEW")));
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK_INT(3, giver.calls);
    aws_advance_s(&a, 30);
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKIDNEW")));
    giver.status = HF_DENIED;
    CHECK_FAILS(HF_DENIED, "No, says the program", &a);
    aws_close(&a);
}

TEST(credentials, are_wiped_when_they_are_replaced) /* (5) */
{
    struct aws a;
    struct giver giver = {.a = &a, .access_key = "AKIDFN"};

    aws_open(t, &a);
    a.watched = 4096; /* scopes take larger pieces, and what is in them is their owner's */
    aws_start(&a, &(struct credentials_options){.fn = give, .fn_user = &giver});
    CHECK_STR("AKIDFN", aws_key(&a));
    giver.access_key = "AKIDNEW";
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKIDFN")));
    CHECK_STR("AKIDNEW", aws_key(&a));
    CHECK(!atomic_load(&a.unwiped));
    aws_stop(&a);
    CHECK(!atomic_load(&a.unwiped));
    aws_start(&a, &(struct credentials_options){
                      .fixed = &(struct hf_credentials){.access_key = HF_STR("AKIDGIVEN"),
                                                        .secret_key = HF_STR("HUSH-given")}});
    CHECK_STR("AKIDGIVEN", aws_key(&a));
    aws_stop(&a);
    CHECK(!atomic_load(&a.unwiped));
    aws_close(&a);
}

/* ---- the order ------------------------------------------------------------------------------ */

static void container_answers(void *user, const struct mock_request *request,
                              struct mock_answer *answer)
{
    (void)request;
    snprintf(answer->room, sizeof(answer->room), "%s",
             keys_json("AKIDBOX", "Token", aws_time(user, 3600)));
}

static void sts_answers(void *user, const struct mock_request *request, struct mock_answer *answer)
{
    const char *operation =
        strstr(request->body, "WithWebIdentity") ? "AssumeRoleWithWebIdentity" : "AssumeRole";

    sts_xml(answer->room, sizeof(answer->room), operation, "AKIDROLE", aws_time(user, 3600));
}

static void metadata_answers(void *user, const struct mock_request *request,
                             struct mock_answer *answer)
{
    if (strcmp(request->method, "PUT") == 0)
        answer->body = "t";
    else if (strcmp(request->target, "/latest/meta-data/iam/security-credentials/") == 0)
        answer->body = "role";
    else
        snprintf(answer->room, sizeof(answer->room), "%s",
                 keys_json("AKIDMETA", "Token", aws_time(user, 3600)));
}

/* All sources are there; they are taken away one by one, the first first. */
TEST(credentials, come_from_the_first_source_that_is_configured)
{
    struct aws a;
    struct mock container, sts, metadata;
    struct credentials_options asked = {.profile_asked = true};

    aws_open(t, &a);
    mock_open(&container, container_answers, &a);
    mock_open(&sts, sts_answers, &a);
    mock_open(&metadata, metadata_answers, &a);
    aws_set(&a, "AWS_ACCESS_KEY_ID", "AKIDENV");
    aws_set(&a, "AWS_SECRET_ACCESS_KEY", "HUSH-of-env");
    aws_set(&a, "AWS_SESSION_TOKEN", "TOKEN-HUSH-of-env");
    aws_set(&a, "AWS_ACCOUNT_ID", "111122223333");
    aws_set(&a, "AWS_REGION", "eu-central-1");
    aws_set(&a, "AWS_ENDPOINT_URL_STS", sts.url);
    aws_set(&a, "AWS_ROLE_ARN", "arn:aws:iam::210987654321:role/role");
    aws_set(&a, "AWS_WEB_IDENTITY_TOKEN_FILE", aws_file(&a, "token", "TOKEN-HUSH-of-web\n"));
    aws_file(&a, "credentials",
             "[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = HUSH-of-file\n"
             "aws_session_token = TOKEN-HUSH-of-file\n");
    aws_set(&a, "AWS_CONTAINER_CREDENTIALS_FULL_URI", container.url);
    aws_set(&a, "AWS_EC2_METADATA_DISABLED", NULL);
    aws_set(&a, "AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url);

    aws_start(&a, NULL);
    CHECK_STR("AKIDENV", aws_key(&a));
    CHECK_STR("HUSH-of-env", a.secret);
    CHECK_STR("TOKEN-HUSH-of-env", a.token);
    CHECK_STR("111122223333", a.account);
    CHECK(!hf__credentials_refused(a.credentials, HF_STR("AKIDENV")));
    aws_stop(&a);

    aws_start(&a, &asked); /* then the profile goes before the variables */
    CHECK_STR("AKIDFILE", aws_key(&a));
    aws_stop(&a);

    aws_set(&a, "AWS_ACCESS_KEY_ID", NULL);
    aws_start(&a, NULL);
    CHECK_STR("AKIDROLE", aws_key(&a));
    CHECK_STR("210987654321", a.account);
    CHECK(hf__credentials_refused(a.credentials, HF_STR("AKIDROLE")));
    aws_stop(&a);

    aws_set(&a, "AWS_WEB_IDENTITY_TOKEN_FILE", NULL);
    aws_start(&a, NULL);
    CHECK_STR("AKIDFILE", aws_key(&a));
    CHECK_STR("HUSH-of-file", a.secret);
    CHECK_STR("TOKEN-HUSH-of-file", a.token);
    CHECK(!hf__credentials_refused(a.credentials, HF_STR("AKIDFILE")));
    aws_stop(&a);

    aws_file(&a, "credentials", "");
    aws_start(&a, NULL);
    CHECK_STR("AKIDBOX", aws_key(&a));
    CHECK_STR("TOKEN-HUSH-of-AKIDBOX", a.token);
    CHECK_STR("123456789012", a.account);
    aws_stop(&a);
    CHECK_INT(0, atomic_load(&metadata.requests));

    aws_set(&a, "AWS_CONTAINER_CREDENTIALS_FULL_URI", NULL);
    aws_start(&a, NULL);
    CHECK_STR("AKIDMETA", aws_key(&a));
    CHECK_STR("TOKEN-HUSH-of-AKIDMETA", a.token);
    aws_stop(&a);

    aws_set(&a, "AWS_EC2_METADATA_DISABLED", "true");
    aws_start(&a, NULL);
    CHECK_FAILS(HF_DENIED,
                "No credentials found: AWS_ACCESS_KEY_ID and AWS_WEB_IDENTITY_TOKEN_FILE are "
                "not set, profile \"default\" has none, AWS_CONTAINER_CREDENTIALS_RELATIVE_URI and "
                "_FULL_URI are not set, and the metadata service of the machine is switched off by "
                "AWS_EC2_METADATA_DISABLED",
                &a);
    aws_close(&a);
    mock_close(&metadata);
    mock_close(&sts);
    mock_close(&container);
}

TEST(credentials, a_loopback_endpoint_needs_none)
{
    struct aws a;
    struct mock metadata;
    struct credentials_options local = {.local = true};

    aws_open(t, &a);
    mock_open(&metadata, metadata_answers, &a);
    aws_set(&a, "AWS_EC2_METADATA_DISABLED", NULL);
    aws_set(&a, "AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.url);
    aws_start(&a, &local);
    CHECK_STR("local", aws_key(&a));
    CHECK_INT(0, atomic_load(&metadata.requests));
    CHECK(!hf__credentials_refused(a.credentials, HF_STR("local")));
    aws_stop(&a);
    aws_set(&a, "AWS_ACCESS_KEY_ID", "AKIDENV");
    aws_start(&a, &local);
    CHECK_FAILS(HF_INVALID, "AWS_SECRET_ACCESS_KEY is not", &a);
    aws_stop(&a);
    aws_set(&a, "AWS_SECRET_ACCESS_KEY", "HUSH-of-env");
    aws_start(&a, &local);
    CHECK_STR("AKIDENV", aws_key(&a));
    aws_close(&a);
    mock_close(&metadata);
}

/* What is configured and wrong is an error, not a reason to go on to the next source. */
TEST(credentials, a_source_that_is_configured_wrongly_is_the_error)
{
    static const struct {
        const char *variable, *value, *config, *part;
    } cases[] = {
        {"AWS_ACCESS_KEY_ID", "AKIDENV", "", "AWS_SECRET_ACCESS_KEY is not"},
        {"AWS_WEB_IDENTITY_TOKEN_FILE", "/nowhere", "", "AWS_ROLE_ARN is not"},
        {"X", "x", "[default]\naws_access_key_id = AKID\n", "no aws_secret_access_key"},
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "path", "", "does not start with a slash"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "nonsense", "", "_FULL_URI is not a valid URL"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.com/", "", "use https"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.22/", "", "use https"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1.example.com/", "", "use https"},
        {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://169.254.170.2@example.com/", "",
         "_FULL_URI"},
    };
    struct aws a;

    aws_open(t, &a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        aws_set(&a, cases[i].variable, cases[i].value);
        aws_file(&a, "config", cases[i].config);
        aws_start(&a, &(struct credentials_options){.local = true});
        CHECK_FAILS(HF_INVALID, cases[i].part, &a);
        aws_stop(&a);
        aws_set(&a, cases[i].variable, NULL);
    }
    aws_close(&a);
}
