/* client/endpoint_test.c: where services are; (n) is an invariant of endpoint.c. */
#include "config_help.h"

static struct hf_str text(const char *s)
{
    return hf_str_from(s);
}

/* ---- URLs ----------------------------------------------------------------------------------- */

TEST(endpoint, urls)
{
    static const struct {
        const char *url, *origin, *path, *host, *region;
        bool loopback;
    } cases[] = {
        {"http://localhost:8000", "http://localhost:8000", "", "localhost:8000", NULL, true},
        {"http://localhost:8000/", "http://localhost:8000", "", "localhost:8000", NULL, true},
        {"HTTPS://Example.COM/Ab/c//", "https://example.com", "/Ab/c", "example.com", NULL, false},
        {"https://h:443", "https://h", "", "h", NULL, false},
        {"http://h:80/x", "http://h", "/x", "h", NULL, false},
        {"http://h:443", "http://h:443", "", "h:443", NULL, false},
        {"http://my_db-1:65535", "http://my_db-1:65535", "", "my_db-1:65535", NULL, false},
        {"http://LocalHost", "http://localhost", "", "localhost", NULL, true},
        {"http://127.0.0.1:1", "http://127.0.0.1:1", "", "127.0.0.1:1", NULL, true},
        {"http://127.9.99.255", "http://127.9.99.255", "", "127.9.99.255", NULL, true},
        {"http://128.0.0.1", "http://128.0.0.1", "", "128.0.0.1", NULL, false},
        {"http://127.0.0.256", "http://127.0.0.256", "", "127.0.0.256", NULL, false},
        {"http://127.0.0.1.example.com", "http://127.0.0.1.example.com", "",
         "127.0.0.1.example.com", NULL, false},
        {"http://127.0.0", "http://127.0.0", "", "127.0.0", NULL, false},
        {"http://0127.0.0.1", "http://0127.0.0.1", "", "0127.0.0.1", NULL, false},
        {"http://localhost.example.com", "http://localhost.example.com", "",
         "localhost.example.com", NULL, false},
        {"http://[::1]:8000", "http://[::1]:8000", "", "[::1]:8000", NULL, true},
        {"http://[::1]", "http://[::1]", "", "[::1]", NULL, true},
        {"http://[FE80::2]", "http://[fe80::2]", "", "[fe80::2]", NULL, false},
        {"https://dynamodb.eu-west-1.amazonaws.com", "https://dynamodb.eu-west-1.amazonaws.com", "",
         "dynamodb.eu-west-1.amazonaws.com", "eu-west-1", false},
        {"https://1.ddb.us-east-2.api.aws", "https://1.ddb.us-east-2.api.aws", "",
         "1.ddb.us-east-2.api.aws", "us-east-2", false},
        {"https://vpce-1-2.dynamodb.us-east-1.vpce.amazonaws.com",
         "https://vpce-1-2.dynamodb.us-east-1.vpce.amazonaws.com", "",
         "vpce-1-2.dynamodb.us-east-1.vpce.amazonaws.com", "us-east-1", false},
        {"https://dynamodb.cn-north-1.amazonaws.com.cn",
         "https://dynamodb.cn-north-1.amazonaws.com.cn", "", "dynamodb.cn-north-1.amazonaws.com.cn",
         "cn-north-1", false},
        {"https://sts.amazonaws.com", "https://sts.amazonaws.com", "", "sts.amazonaws.com", NULL,
         false},
        {"https://x.us-east-1.notamazonaws.com", "https://x.us-east-1.notamazonaws.com", "",
         "x.us-east-1.notamazonaws.com", NULL, false},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct endpoint e;

        CHECK_OK(hf__endpoint_of_url(s, text(cases[i].url), &e));
        CHECK_STR(cases[i].origin, e.origin);
        CHECK_STR(cases[i].path, e.path);
        CHECK_STR(cases[i].host, e.host);
        CHECK_STR("dynamodb", e.signing_name);
        CHECK(!cases[i].region == !e.signing_region.ptr);
        if (cases[i].region)
            CHECK_STR(cases[i].region, e.signing_region);
        CHECK(cases[i].loopback == hf__endpoint_is_loopback(&e));
    }
    hf_scope_free(s);
}

/* (1) */
TEST(endpoint, urls_that_are_none)
{
    static const char scheme[] = "does not begin with http:// or https://",
                      host[] = "has no valid host",
                      port[] = "has a port that is not from 1 to 65535",
                      path[] = "has characters in its path that need an escape",
                      more[] = "has more than a path behind its host",
                      user[] = "has a user or password in it, which is not for the endpoint of a "
                               "service";
    static const struct {
        const char *url, *wrong;
    } cases[] = {
        {"", scheme},
        {"http:/x", scheme},
        {"localhost:8000", scheme},
        {"ftp://x", scheme},
        {"http://", host},
        {"http:///x", host},
        {"http://:80", host},
        {"http://.x", host},
        {"http://-x", host},
        {"http://a..b", host},
        {"http://a b", host},
        {"http://a%20b", host},
        {"http://\xc3\xa4", host},
        {"http://[]", host},
        {"http://[::1", host},
        {"http://[fe80::1%25eth0]", host},
        {"http://[::g]", host},
        {"http://[12]", host},
        {"http://::1", host},
        {"http://x:", port},
        {"http://x:0", port},
        {"http://x:65536", port},
        {"http://x:4294967376", port},
        {"http://x:99999999999999999999", port},
        {"http://x:8x", port},
        {"http://x/a b", path},
        {"http://x/\r\nHost:y", path},
        {"http://x/\x7f", path},
        {"http://x?hush", more},
        {"http://x/#hush", more},
        {"http://me:hush@x", user},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char message[200];
        struct endpoint e;

        snprintf(message, sizeof(message), "the URL of the endpoint %s", cases[i].wrong);
        CHECK_STATUS(HF_INVALID, hf__endpoint_of_url(s, text(cases[i].url), &e));
        CHECK_ERROR(HF_INVALID, message, s);
        CHECK(!e.origin.ptr);
    }
    hf_scope_free(s);
}

/* ---- Amazon's ------------------------------------------------------------------------------- */

static struct config *load(struct hf_scope *s)
{
    struct config *config;

    CHECK_OK(hf__config_load(s, &fake.env, (struct hf_str){0}, false, &config));
    return config;
}

static void check_origin(struct hf_scope *s, const struct endpoint_ask *ask, const char *origin,
                         const char *region)
{
    struct config *config = load(s);
    struct endpoint e;

    CHECK_OK(hf__endpoint_find(s, config, ask, &e));
    CHECK_STR(origin, e.origin);
    CHECK_STR(region, e.signing_region);
    CHECK_STR("", e.path);
    CHECK_STR(strstr(origin, "://") + 3, e.host);
    hf__config_free(config);
}

static void check_fails(struct hf_scope *s, const struct endpoint_ask *ask, const char *message)
{
    struct config *config = load(s);
    struct endpoint e;

    CHECK_STATUS(HF_INVALID, hf__endpoint_find(s, config, ask, &e));
    CHECK_ERROR(HF_INVALID, message, s);
    CHECK(!e.origin.ptr);
    hf__config_free(config);
}

/* Every form of the two services of DynamoDB in every partition. */
TEST(endpoint, regions_of_all_partitions)
{
    static const struct {
        const char *region, *suffix, *dual_suffix;
        bool gov, older;
    } cases[] = {
        {"eu-central-1", "amazonaws.com", "api.aws", false, true},
        {"us-east-1", "amazonaws.com", "api.aws", false, true},
        {"il-central-1", "amazonaws.com", "api.aws", false, true},
        {"xy-new-7", "amazonaws.com", "api.aws", false, true},
        {"cn-north-1", "amazonaws.com.cn", "api.amazonwebservices.com.cn", false, true},
        {"us-gov-west-1", "amazonaws.com", "api.aws", true, true},
        {"us-iso-east-1", "c2s.ic.gov", "api.aws.ic.gov", false, false},
        {"us-isob-east-1", "sc2s.sgov.gov", "api.aws.scloud", false, false},
        {"eu-isoe-west-1", "cloud.adc-e.uk", "api.cloud-aws.adc-e.uk", false, false},
        {"us-isof-south-1", "csp.hci.ic.gov", "api.aws.hci.ic.gov", false, false},
        {"eusc-de-east-1", "amazonaws.eu", "api.amazonwebservices.eu", false, false},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    fake_begin(t);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (int form = 0; form < 8; form++) {
            bool fips = form & 1, dual = form & 2, streams = form & 4;
            struct endpoint_ask ask = {.service = streams ? ENDPOINT_STREAMS : ENDPOINT_DYNAMODB,
                                       .region = text(cases[i].region),
                                       .fips = fips ? HF_YES : HF_UNSET,
                                       .dual_stack = dual ? HF_YES : HF_NO};
            char origin[200];

            snprintf(origin, sizeof(origin), "https://%sdynamodb%s.%s.%s",
                     !streams                 ? ""
                     : dual && cases[i].older ? "streams-"
                                              : "streams.",
                     fips && (dual || !cases[i].gov) ? "-fips" : "", cases[i].region,
                     dual ? cases[i].dual_suffix : cases[i].suffix);
            check_origin(s, &ask, origin, cases[i].region);
        }
    hf_scope_free(s);
}

TEST(endpoint, other_services)
{
    static const struct {
        enum endpoint_service service;
        const char *usual, *fips, *dual, *both, *gov_fips, *signing;
    } cases[] = {
        {ENDPOINT_STS, "sts.eu-west-1.amazonaws.com", "sts-fips.eu-west-1.amazonaws.com",
         "sts.eu-west-1.api.aws", "sts-fips.eu-west-1.api.aws", "sts.us-gov-east-1.amazonaws.com",
         "sts"},
        {ENDPOINT_SSO, "portal.sso.eu-west-1.amazonaws.com",
         "portal.sso-fips.eu-west-1.amazonaws.com", "portal.sso.eu-west-1.api.aws",
         "portal.sso-fips.eu-west-1.api.aws", "portal.sso.us-gov-east-1.amazonaws.com",
         "awsssoportal"},
        {ENDPOINT_SSO_OIDC, "oidc.eu-west-1.amazonaws.com", "oidc-fips.eu-west-1.amazonaws.com",
         "oidc.eu-west-1.api.aws", "oidc-fips.eu-west-1.api.aws",
         "oidc.us-gov-east-1.amazonaws.com", "sso-oauth"},
        {ENDPOINT_S3, "s3.eu-west-1.amazonaws.com", "s3-fips.eu-west-1.amazonaws.com",
         "s3.dualstack.eu-west-1.amazonaws.com", "s3-fips.dualstack.eu-west-1.amazonaws.com",
         "s3-fips.us-gov-east-1.amazonaws.com", "s3"},
        {ENDPOINT_SQS, "sqs.eu-west-1.amazonaws.com", "sqs-fips.eu-west-1.amazonaws.com",
         "sqs.eu-west-1.api.aws", "sqs-fips.eu-west-1.api.aws", "sqs.us-gov-east-1.amazonaws.com",
         "sqs"},
        {ENDPOINT_SNS, "sns.eu-west-1.amazonaws.com", "sns-fips.eu-west-1.amazonaws.com",
         "sns.eu-west-1.api.aws", "sns-fips.eu-west-1.api.aws", "sns.us-gov-east-1.amazonaws.com",
         "sns"},
        {ENDPOINT_EVENTBRIDGE, "events.eu-west-1.amazonaws.com",
         "events-fips.eu-west-1.amazonaws.com", "events.eu-west-1.api.aws",
         "events-fips.eu-west-1.api.aws", "events.us-gov-east-1.amazonaws.com", "events"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;

    fake_begin(t);
    config = load(s);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct endpoint_ask ask = {.service = cases[i].service, .region = HF_STR("eu-west-1")};
        struct endpoint e;

        CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
        CHECK_STR(cases[i].usual, e.host);
        CHECK_STR(cases[i].signing, e.signing_name);
        ask.fips = HF_YES;
        CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
        CHECK_STR(cases[i].fips, e.host);
        ask.dual_stack = HF_YES;
        CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
        CHECK_STR(cases[i].both, e.host);
        ask.fips = HF_NO;
        CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
        CHECK_STR(cases[i].dual, e.host);
        ask = (struct endpoint_ask){.service = cases[i].service,
                                    .region = HF_STR("us-gov-east-1"),
                                    .fips = HF_YES};
        CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
        CHECK_STR(cases[i].gov_fips, e.host);
    }
    hf__config_free(config);
    hf_scope_free(s);
}

TEST(endpoint, regions_that_are_none)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.region = HF_STR("local")};
    char long_region[65];

    fake_begin(t);
    check_origin(s, &ask, "http://localhost:8000", "us-east-1");
    ask.service = ENDPOINT_STREAMS;
    check_origin(s, &ask, "http://localhost:8000", "us-east-1");
    ask.fips = HF_YES;
    check_fails(s, &ask, "the region local has no FIPS endpoint");
    ask.fips = HF_NO;
    ask.dual_stack = HF_YES;
    check_fails(s, &ask, "the region local has no dual-stack endpoint");

    ask = (struct endpoint_ask){.region = HF_STR("fips-us-east-2")};
    check_origin(s, &ask, "https://dynamodb-fips.us-east-2.amazonaws.com", "us-east-2");
    ask.region = HF_STR("us-east-2-fips");
    check_origin(s, &ask, "https://dynamodb-fips.us-east-2.amazonaws.com", "us-east-2");
    ask.region = HF_STR("aws-global");
    ask.service = ENDPOINT_STS;
    check_origin(s, &ask, "https://sts.amazonaws.com", "us-east-1");
    ask.service = ENDPOINT_S3;
    check_origin(s, &ask, "https://s3.amazonaws.com", "us-east-1");

    ask.region = HF_STR("cn-north-1");
    ask.fips = HF_YES;
    check_fails(s, &ask, "S3 has no FIPS endpoints in the partition aws-cn");

    ask = (struct endpoint_ask){0};
    check_fails(s, &ask,
                "no region for DynamoDB: set AWS_REGION, or region in the profile 'default'");
    memset(long_region, 'a', 64);
    long_region[64] = 0;
    for (const char *const *bad = (const char *const[]){"a.b", "-a", "a-", "a b", "a/b", "a@b",
                                                        "\xc3\xa4", "fips-", long_region, NULL};
         *bad; bad++) {
        ask.region = text(*bad);
        check_fails(s, &ask,
                    strcmp(*bad, "fips-") == 0
                        ? "no region for DynamoDB: set AWS_REGION, or region in the profile "
                          "'default'"
                        : "the region must be the name of a region, such as eu-central-1");
    }
    hf_scope_free(s);
}

TEST(endpoint, of_an_account)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.region = HF_STR("us-west-2"), .account = HF_STR("111122223333")};
    static const char usual[] = "https://dynamodb.us-west-2.amazonaws.com",
                      own[] = "https://111122223333.ddb.us-west-2.amazonaws.com";

    fake_begin(t);
    check_origin(s, &ask, own, "us-west-2");
    ask.dual_stack = HF_YES;
    check_origin(s, &ask, "https://111122223333.ddb.us-west-2.api.aws", "us-west-2");
    ask.dual_stack = HF_NO;
    ask.fips = HF_YES;
    check_origin(s, &ask, "https://dynamodb-fips.us-west-2.amazonaws.com", "us-west-2");
    ask.fips = HF_NO;
    ask.service = ENDPOINT_STREAMS;
    check_origin(s, &ask, "https://streams.dynamodb.us-west-2.amazonaws.com", "us-west-2");
    ask.service = ENDPOINT_DYNAMODB;
    ask.region = HF_STR("cn-north-1");
    check_origin(s, &ask, "https://dynamodb.cn-north-1.amazonaws.com.cn", "cn-north-1");
    ask.region = HF_STR("us-west-2");

    fake_set("AWS_ACCOUNT_ID_ENDPOINT_MODE", "disabled");
    check_origin(s, &ask, usual, "us-west-2");
    fake_set("AWS_ACCOUNT_ID_ENDPOINT_MODE", "preferred");
    check_origin(s, &ask, own, "us-west-2");
    ask.account = (struct hf_str){0};
    check_origin(s, &ask, usual, "us-west-2");
    fake_set("AWS_ACCOUNT_ID_ENDPOINT_MODE", "sometimes");
    check_fails(s, &ask,
                "AWS_ACCOUNT_ID_ENDPOINT_MODE, or account_id_endpoint_mode of the profile, must be "
                "preferred, required or disabled");

    fake_set("AWS_ACCOUNT_ID_ENDPOINT_MODE", "required");
    check_fails(s, &ask,
                "AWS_ACCOUNT_ID_ENDPOINT_MODE is required, but the credentials have no "
                "account ID: set AWS_ACCOUNT_ID");
    ask.account = HF_STR("no.account");
    check_fails(s, &ask, "the account ID of the credentials is invalid");
    ask.account = HF_STR("111122223333");
    check_origin(s, &ask, own, "us-west-2");
    ask.fips = HF_YES;
    check_fails(s, &ask,
                "AWS_ACCOUNT_ID_ENDPOINT_MODE is required, but endpoints of an account have no "
                "FIPS form");
    ask.fips = HF_NO;
    ask.region = HF_STR("us-gov-west-1");
    check_fails(s, &ask,
                "AWS_ACCOUNT_ID_ENDPOINT_MODE is required, but the partition aws-us-gov has no "
                "endpoints of an account");
    ask.service = ENDPOINT_STREAMS;
    check_origin(s, &ask, "https://streams.dynamodb.us-gov-west-1.amazonaws.com", "us-gov-west-1");

    fake_forget();
    fake_file(".aws/config", "[default]\naccount_id_endpoint_mode = disabled\n");
    ask = (struct endpoint_ask){.region = HF_STR("us-west-2"), .account = HF_STR("111122223333")};
    check_origin(s, &ask, usual, "us-west-2");
    hf_scope_free(s);
}

/* ---- configured ----------------------------------------------------------------------------- */

TEST(endpoint, fips_and_dual_stack_by_variable_and_profile)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.region = HF_STR("us-east-1")};

    fake_begin(t);
    fake_file(".aws/config", "[default]\nuse_fips_endpoint=true\nuse_dualstack_endpoint = True\n");
    check_origin(s, &ask, "https://dynamodb-fips.us-east-1.api.aws", "us-east-1");
    fake_set("AWS_USE_FIPS_ENDPOINT", "false");
    check_origin(s, &ask, "https://dynamodb.us-east-1.api.aws", "us-east-1");
    fake_set("AWS_USE_DUALSTACK_ENDPOINT", "FALSE");
    check_origin(s, &ask, "https://dynamodb.us-east-1.amazonaws.com", "us-east-1");
    fake_set("AWS_USE_FIPS_ENDPOINT", "yes");
    check_fails(s, &ask, "AWS_USE_FIPS_ENDPOINT must be true or false");
    ask.fips = HF_NO; /* who says so is not asked */
    check_origin(s, &ask, "https://dynamodb.us-east-1.amazonaws.com", "us-east-1");
    fake_forget();
    fake_file(".aws/config", "[default]\nuse_dualstack_endpoint = 1\n");
    check_fails(s, &ask, "use_dualstack_endpoint of the profile 'default' must be true or false");
    hf_scope_free(s);
}

/* The most telling place first; each is taken away in turn. */
TEST(endpoint, configured_urls_in_their_order)
{
    static const char own[] = "[default]\nservices = here\nendpoint_url = http://profile\n"
                              "[services other]\ndynamodb =\n  endpoint_url = http://wrong\n"
                              "[services here]\ndynamodb =\n  endpoint_url = http://services\n"
                              "sts =\n  endpoint_url = http://sts-services\n";
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.region = HF_STR("eu-west-1")}, sts = ask, sns = ask;

    sts.service = ENDPOINT_STS;
    sns.service = ENDPOINT_SNS;
    fake_begin(t);
    fake_file(".aws/config", own);
    fake_set("AWS_ENDPOINT_URL", "http://all");
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "http://dynamodb:1/p");
    fake_set("AWS_ENDPOINT_URL_SNS", "http://sns");
    {
        struct config *config = load(s);
        struct endpoint e;

        CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
        CHECK_STR("http://dynamodb:1", e.origin);
        CHECK_STR("/p", e.path);
        CHECK_STR("eu-west-1", e.signing_region);
        CHECK_STR("dynamodb", e.signing_name);
        CHECK_OK(hf__endpoint_find(s, config, &sns, &e));
        CHECK_STR("http://sns", e.origin);
        CHECK_STR("sns", e.signing_name);
        hf__config_free(config);
    }
    check_origin(s, &sts, "http://all", "eu-west-1");
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "");
    check_origin(s, &ask, "http://all", "eu-west-1");
    fake_forget();
    check_origin(s, &ask, "http://services", "eu-west-1");
    check_origin(s, &sts, "http://sts-services", "eu-west-1");
    check_origin(s, &sns, "http://profile", "eu-west-1");
    ask.region = HF_STR("local");
    check_origin(s, &ask, "http://services", "us-east-1");
    ask.region = HF_STR("eu-west-1");
    fake_set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    check_origin(s, &ask, "https://dynamodb.eu-west-1.amazonaws.com", "eu-west-1");
    fake_forget();
    fake_file(".aws/config", "[default]\nendpoint_url = http://profile\n");
    check_origin(s, &ask, "http://profile", "eu-west-1");
    fake_file(".aws/config",
              "[default]\nendpoint_url = http://profile\nignore_configured_endpoint_urls=true\n");
    check_origin(s, &ask, "https://dynamodb.eu-west-1.amazonaws.com", "eu-west-1");
    fake_set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "maybe");
    check_fails(s, &ask, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS must be true or false");
    hf_scope_free(s);
}

/* (2) */
TEST(endpoint, streams_follow_a_database_that_is_not_amazons)
{
    static const char amazon[] = "https://streams.dynamodb.eu-west-1.amazonaws.com";
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.service = ENDPOINT_STREAMS, .region = HF_STR("eu-west-1")};

    fake_begin(t);
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:8000");
    check_origin(s, &ask, "http://localhost:8000", "eu-west-1");
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "https://vpce-1.dynamodb.eu-west-1.vpce.amazonaws.com");
    check_origin(s, &ask, amazon, "eu-west-1");
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "https://DynamoDB.eu-west-1.AmazonAWS.com");
    check_origin(s, &ask, amazon, "eu-west-1");
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:8000");
    fake_set("AWS_ENDPOINT_URL", "http://all");
    check_origin(s, &ask, "http://all", "eu-west-1");
    fake_set("AWS_ENDPOINT_URL_DYNAMODB_STREAMS", "http://streams");
    check_origin(s, &ask, "http://streams", "eu-west-1");
    fake_forget();
    fake_file(".aws/config", "[default]\nservices = x\n"
                             "[services x]\ndynamodb =\n  endpoint_url = http://h\n");
    check_origin(s, &ask, "http://h", "eu-west-1");
    fake_file(".aws/config", "[default]\nservices = x\n"
                             "[services x]\ndynamodb =\n  endpoint_url = http://h\n"
                             "dynamodb_streams =\n  endpoint_url = http://g # there\n");
    check_origin(s, &ask, "http://g", "eu-west-1");
    fake_set("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true");
    check_origin(s, &ask, amazon, "eu-west-1");
    hf_scope_free(s);
}

/* (1) (3) */
TEST(endpoint, configured_urls_that_cannot_be)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.region = HF_STR("us-east-1")};

    fake_begin(t);
    fake_set("AWS_ENDPOINT_URL_DYNAMODB", "hush:8000");
    check_fails(s, &ask,
                "the URL in AWS_ENDPOINT_URL_DYNAMODB does not begin with http:// or https://");
    ask.service = ENDPOINT_STREAMS;
    check_fails(s, &ask,
                "the URL in AWS_ENDPOINT_URL_DYNAMODB does not begin with http:// or https://");
    fake_set("AWS_ENDPOINT_URL", "http://x:0");
    check_fails(s, &ask, "the URL in AWS_ENDPOINT_URL has a port that is not from 1 to 65535");
    fake_set("AWS_ENDPOINT_URL", "http://x");
    ask.fips = HF_YES;
    check_fails(s, &ask, "the URL in AWS_ENDPOINT_URL cannot be used together with FIPS endpoints");
    ask.fips = HF_UNSET;
    fake_set("AWS_USE_DUALSTACK_ENDPOINT", "true");
    check_fails(s, &ask,
                "the URL in AWS_ENDPOINT_URL cannot be used together with dual-stack endpoints");
    fake_forget();
    fake_file(".aws/config", "[default]\nendpoint_url = http://me:hush@x\n");
    check_fails(s, &ask,
                "the URL in endpoint_url of the profile has a user or password in it, which is not "
                "for the endpoint of a service");
    fake_file(".aws/config", "[default]\nservices = x\n[services x]\ndynamodb_streams =\n"
                             "  endpoint_url = x\n");
    check_fails(s, &ask,
                "the URL in endpoint_url of dynamodb_streams in a services section does not begin "
                "with http:// or https://");
    hf_scope_free(s);
}

/* A URL needs no region; then its name may tell one. */
TEST(endpoint, url_without_a_region)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {0};
    struct config *config;
    struct endpoint e;

    fake_begin(t);
    fake_set("AWS_ENDPOINT_URL", "https://dynamodb.eu-west-3.api.aws");
    check_origin(s, &ask, "https://dynamodb.eu-west-3.api.aws", "eu-west-3");
    fake_set("AWS_ENDPOINT_URL", "http://x");
    config = load(s);
    CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
    CHECK_STR("http://x", e.origin);
    CHECK(!e.signing_region.ptr);
    hf__config_free(config);
    hf_scope_free(s);
}

TEST(endpoint, nothing_means_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct endpoint_ask ask = {.region = HF_STR("us-east-1")};
    struct config *config;
    struct endpoint e;

    fake_begin(t);
    fake_set("AWS_ENDPOINT_URL", "http://x");
    fake_set("AWS_USE_FIPS_ENDPOINT", "true");
    CHECK_OK(hf__config_load(s, &fake.env, (struct hf_str){0}, true, &config));
    CHECK_OK(hf__endpoint_find(s, config, &ask, &e));
    CHECK_STR("https://dynamodb.us-east-1.amazonaws.com", e.origin);
    hf__config_free(config);
    hf_scope_free(s);
}

TEST(endpoint, without_memory_it_says_so)
{
    fake_begin(t);
    for (int kind = 0; kind < 4; kind++) {
        fake_forget();
        if (kind == 1)
            fake_set("AWS_ENDPOINT_URL", "http://localhost:8000/a/rather/long/path");
        ALLOC_SWEEP (t, nth) {
            struct endpoint_ask ask = {.region = kind == 2 ? HF_STR("local") : HF_STR("us-east-1"),
                                       .account =
                                           kind == 3 ? HF_STR("111122223333") : (struct hf_str){0}};
            struct hf_scope *s = hf_scope_new(test_env(t));
            struct config *config = NULL;
            struct endpoint e = {0};
            enum hf_status status =
                s ? hf__config_load(s, &fake.env, (struct hf_str){0}, false, &config) : HF_NOMEM;

            /* Fill the first chunk, so that each string needs memory. */
            if (status == HF_OK && !hf_scope_alloc(s, 8000))
                status = HF_NOMEM;
            if (status == HF_OK)
                status = hf__endpoint_find(s, config, &ask, &e);
            ALLOC_SWEEP_STOP(t);
            CHECK(status == (t->alloc_failed ? HF_NOMEM : HF_OK));
            CHECK((status == HF_OK) == (e.signing_region.ptr != NULL));
            hf__config_free(config);
            hf_scope_free(s);
        }
    }
}
