/* client/config_test.c: loading and settings; (n) is an invariant of config.c. */
#include "config_help.h"

#include <fcntl.h>
#include <unistd.h>

#include "client/ini.h"

static const struct hf_str none; /* absent */

static struct config *load(struct hf_scope *s, const char *profile)
{
    struct config *config;

    CHECK_OK(hf__config_load(s, &fake.env, hf_str_from(profile), false, &config));
    return config;
}

static void check_fails(struct hf_scope *s, const char *profile, enum hf_status status,
                        const char *message)
{
    struct config *config;

    CHECK_STATUS(status, hf__config_load(s, &fake.env, hf_str_from(profile), false, &config));
    CHECK(config == NULL);
    CHECK_ERROR(status, message, s);
}

static void check_str(const char *expected, struct hf_str value)
{
    CHECK(!expected == !value.ptr);
    if (expected)
        CHECK_STR(expected, value);
}

/* ---- load ----------------------------------------------------------------------------------- */

TEST(config, no_files_and_no_variables)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;

    fake_begin(t);
    config = load(s, NULL);
    CHECK_STR("default", hf__config_profile(config));
    CHECK(!hf__config_has_profile(config, HF_STR("default")));
    check_str(NULL, hf__config_value(config, HF_STR("default"), "region"));
    check_str(NULL, hf__config_sso(config, HF_STR("default"), "region"));
    check_str(NULL, hf__config_service(config, "dynamodb", "endpoint_url"));
    check_str(NULL, hf__config_setting(config, "AWS_REGION", "region"));
    CHECK_STR(fake.home, hf__config_variable(config, "HOME"));
    hf__config_free(config);
    fake.variables_len = 0; /* without HOME, too */
    config = load(s, NULL);
    check_str(NULL, hf__config_variable(config, "HOME"));
    hf__config_free(config);
    hf__config_free(NULL);
    CHECK_INT(0, fake.lines_len);
    hf_scope_free(s);
}

TEST(config, both_files)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;

    fake_begin(t);
    fake_file(".aws/config", "[default]\nregion = eu-west-1\noutput = json\nempty =\n"
                             "[profile two words]\nregion = lost\n"
                             "[profile \"two words\"]\nregion = found\nsso_session = me\n"
                             "[sso-session me]\nsso_region = us-east-1\n");
    fake_file(".aws/credentials", "[default]\naws_access_key_id = AKIA\noutput = text\n"
                                  "[lone]\naws_access_key_id = AKIB\n");
    config = load(s, NULL);
    check_str("eu-west-1", hf__config_value(config, HF_STR("default"), "region"));
    check_str("text", hf__config_value(config, HF_STR("default"), "output"));
    check_str("AKIA", hf__config_value(config, HF_STR("default"), "aws_access_key_id"));
    check_str(NULL, hf__config_value(config, HF_STR("default"), "empty"));
    check_str("found", hf__config_value(config, HF_STR("two words"), "region"));
    check_str("us-east-1", hf__config_sso(config, HF_STR("me"), "SSO_Region"));
    check_str("AKIB", hf__config_value(config, HF_STR("lone"), "aws_access_key_id"));
    CHECK(hf__config_has_profile(config, HF_STR("lone")));
    CHECK(!hf__config_has_profile(config, HF_STR("me")));
    hf__config_free(config);
    CHECK_INT(0, fake.lines_len);
    hf_scope_free(s);
}

TEST(config, which_profile)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;
    char message[800];

    fake_begin(t);
    fake_file(".aws/config", "[profile a]\nregion = ra\n[profile b]\nregion = rb\n"
                             "[profile c]\nregion = rc\n");
    fake_set("AWS_DEFAULT_PROFILE", "c");
    config = load(s, NULL);
    check_str("rc", hf__config_setting(config, "AWS_REGION", "region"));
    hf__config_free(config);
    fake_set("AWS_PROFILE", "b");
    config = load(s, NULL);
    check_str("rb", hf__config_setting(config, "AWS_REGION", "region"));
    hf__config_free(config);
    fake_set("AWS_REGION", "re");
    config = load(s, "a");
    CHECK_STR("a", hf__config_profile(config));
    check_str("ra", hf__config_value(config, hf__config_profile(config), "region"));
    check_str("re", hf__config_setting(config, "AWS_REGION", "region"));
    hf__config_free(config);

    snprintf(message, sizeof(message),
             "profile 'x', named by the program, is not in %s/.aws/config or "
             "%s/.aws/credentials",
             fake.home, fake.home);
    check_fails(s, "x", HF_INVALID, message);
    fake_set("AWS_PROFILE", "y");
    snprintf(message, sizeof(message),
             "profile 'y', named by AWS_PROFILE, is not in %s/.aws/config or "
             "%s/.aws/credentials",
             fake.home, fake.home);
    check_fails(s, NULL, HF_INVALID, message);
    fake.variables_len = 0;
    check_fails(s, "default", HF_INVALID,
                "profile 'default', named by the program, is not in ~/.aws/config or "
                "~/.aws/credentials");
    hf_scope_free(s);
}

TEST(config, files_named_by_variables)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;
    char path[300], message[800];

    fake_begin(t);
    fake_file(".aws/config", "[default]\nregion = usual\n");
    fake_file("c", "[default]\nregion = named\n");
    fake_file("k", "[default]\naws_access_key_id = K\n");
    snprintf(path, sizeof(path), "%s", fake_path("c"));
    fake_set("AWS_CONFIG_FILE", path);
    fake_set("AWS_SHARED_CREDENTIALS_FILE", "~/k");
    config = load(s, NULL);
    check_str("named", hf__config_value(config, HF_STR("default"), "region"));
    check_str("K", hf__config_value(config, HF_STR("default"), "aws_access_key_id"));
    hf__config_free(config);

    fake_set("AWS_CONFIG_FILE", "/dev/null");
    config = load(s, NULL);
    check_str(NULL, hf__config_value(config, HF_STR("default"), "region"));
    hf__config_free(config);

    fake_set("AWS_CONFIG_FILE", "~/missing");
    snprintf(message, sizeof(message),
             "%s/missing, named by AWS_CONFIG_FILE: No such file or directory", fake.home);
    check_fails(s, NULL, HF_IO, message);
    fake_forget();
    fake_set("AWS_SHARED_CREDENTIALS_FILE", "/nowhere/k");
    check_fails(s, NULL, HF_IO,
                "/nowhere/k, named by AWS_SHARED_CREDENTIALS_FILE: No such file or directory");
    hf_scope_free(s);
}

/* (1): what the program does to its environment afterwards does not matter. */
TEST(config, variables_are_read_once)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;
    struct hf_str region;

    fake_begin(t);
    fake_set("AWS_REGION", "eu-west-1");
    fake_set("AWS_PROFILE", "");
    config = load(s, NULL);
    fake.variables_len = 0;
    memset(fake.variables, 'x', sizeof(fake.variables));
    check_str("eu-west-1", hf__config_variable(config, "AWS_REGION"));
    check_str(NULL, hf__config_variable(config, "AWS_PROFILE"));
    CHECK_OK(hf__config_region(s, config, none, &region));
    CHECK_STR("eu-west-1", region);
    hf__config_free(config);
    hf_scope_free(s);
}

TEST(config, nothing_means_nothing)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str region, proxy, no_proxy;
    enum hf_retry_mode mode;
    struct config *config;
    uint32_t attempts;

    fake_begin(t);
    fake_file(".aws/config", "broken");
    fake_set("AWS_REGION", "eu-west-1");
    fake_set("AWS_PROFILE", "p");
    fake_set("HTTPS_PROXY", "http://p");
    fake_set("AWS_RETRY_MODE", "x");
    CHECK_OK(hf__config_load(s, &fake.env, none, true, &config));
    CHECK_STR("default", hf__config_profile(config));
    check_str(NULL, hf__config_variable(config, "AWS_REGION"));
    CHECK_OK(hf__config_region(s, config, none, &region));
    check_str(NULL, region);
    CHECK_OK(hf__config_retry(s, config, &mode, &attempts));
    CHECK_INT(0, mode);
    hf__config_proxy(config, true, &proxy, &no_proxy);
    check_str(NULL, proxy);
    hf__config_free(config);
    CHECK_OK(hf__config_load(s, &fake.env, HF_STR("q"), true, &config));
    CHECK_STR("q", hf__config_profile(config));
    CHECK(hf__config_env(config)->getenv == fake_getenv);
    hf__config_free(config);
    hf_scope_free(s);
}

/* ---- files that are none -------------------------------------------------------------------- */

/* (2) (3) */
TEST(config, files_that_cannot_be)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    char message[800], path[300];

    fake_begin(t);
    fake_file(".aws/config", "[default]\nregion = eu-west-1\nhush\n");
    snprintf(message, sizeof(message), "%s/.aws/config:3: a setting is written NAME = VALUE",
             fake.home);
    check_fails(s, NULL, HF_INVALID, message);
    fake_bytes(".aws/config", "[default]\nhush\0=1", 17);
    snprintf(message, sizeof(message), "%s/.aws/config:2: the line has a NUL byte in it",
             fake.home);
    check_fails(s, NULL, HF_INVALID, message);

    CHECK(truncate(fake_path(".aws/config"), INI_FILE_MAX + 1) == 0);
    snprintf(message, sizeof(message), "%s/.aws/config: it is larger than 1048576 bytes",
             fake.home);
    check_fails(s, NULL, HF_INVALID, message);

    CHECK(unlink(fake_path(".aws/config")) == 0 && mkdir(fake_path(".aws/config"), 0700) == 0);
    snprintf(message, sizeof(message), "%s/.aws/config: it is a directory", fake.home);
    check_fails(s, NULL, HF_INVALID, message);

    /* A pipe that nobody writes to: waiting would be forever. */
    CHECK(rmdir(fake_path(".aws/config")) == 0 && mkfifo(fake_path(".aws/config"), 0600) == 0);
    snprintf(message, sizeof(message), "%s/.aws/config: it is not a regular file", fake.home);
    check_fails(s, NULL, HF_INVALID, message);
    CHECK(unlink(fake_path(".aws/config")) == 0);

    snprintf(path, sizeof(path), "%s", fake_path(".aws"));
    fake_set("AWS_CONFIG_FILE", path);
    snprintf(message, sizeof(message), "%s, named by AWS_CONFIG_FILE: it is a directory", path);
    check_fails(s, NULL, HF_INVALID, message);

    fake_forget();
    CHECK(symlink("config", fake_path(".aws/config")) == 0);
    snprintf(message, sizeof(message), "%s/.aws/config: Too many levels of symbolic links",
             fake.home);
    check_fails(s, NULL, HF_IO, message);
    hf_scope_free(s);
}

/* As somebody else than root, who may read everything. */
TEST(config, files_that_may_not_be_read)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    bool root = geteuid() == 0;
    char message[800];

    fake_begin(t);
    fake_file(".aws/config", "[default]\nregion = eu-west-1\n");
    if (root) {
        CHECK(chmod(fake.home, 0755) == 0 && chmod(fake_path(".aws"), 0755) == 0);
        CHECK(seteuid(65534) == 0);
    } else {
        CHECK(chmod(fake_path(".aws/config"), 0) == 0);
    }
    if (faccessat(AT_FDCWD, fake_path(".aws"), X_OK, AT_EACCESS) == 0) {
        snprintf(message, sizeof(message), "%s/.aws/config: Permission denied", fake.home);
        check_fails(s, NULL, HF_IO, message);
    }
    CHECK(!root || seteuid(0) == 0);
    /* A home that is closed as a whole is as good as none. */
    CHECK(chmod(fake_path(".aws"), root ? 0700 : 0) == 0);
    CHECK(!root || seteuid(65534) == 0);
    hf__config_free(load(s, NULL));
    CHECK(!root || seteuid(0) == 0);
    CHECK(chmod(fake_path(".aws"), 0700) == 0);
    hf_scope_free(s);
}

TEST(config, a_credentials_file_for_everybody_is_warned_of)
{
    static const struct {
        unsigned mode;
        const char *warning;
    } cases[] = {{0600, NULL},
                 {0400, NULL},
                 {0640, NULL},
                 {0644, "other users can read it (mode 644); run chmod 600"},
                 {0604, "other users can read it (mode 604); run chmod 600"},
                 {0620, "other users can change it (mode 620); run chmod 600"},
                 {0666, "other users can change it (mode 666); run chmod 600"}};
    struct hf_scope *s = hf_scope_new(test_env(t));

    fake_begin(t);
    fake_file(".aws/config", "[default]\n");
    CHECK(chmod(fake_path(".aws/config"), 0644) == 0);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char line[600];

        fake_forget();
        fake_file(".aws/credentials", "[default]\naws_secret_access_key = hush\n");
        CHECK(chmod(fake_path(".aws/credentials"), cases[i].mode) == 0);
        hf__config_free(load(s, NULL));
        CHECK_INT(cases[i].warning != NULL, fake.lines_len);
        snprintf(line, sizeof(line), "%s/.aws/credentials: %s", fake.home, cases[i].warning);
        if (cases[i].warning)
            CHECK_STR(line, hf_str_from(fake.lines[0]));
    }
    hf_scope_free(s);
}

TEST(config, services_that_are_not_there_are_warned_of)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;

    fake_begin(t);
    fake_file(".aws/config", "[default]\nservices = a\n[services b]\ndynamodb =\n  x = 1\n");
    config = load(s, NULL);
    check_str(NULL, hf__config_service(config, "dynamodb", "x"));
    hf__config_free(config);
    CHECK_INT(1, fake.lines_len);
    CHECK_STR("the profile 'default' has services = NAME, but there is no such [services NAME]",
              hf_str_from(fake.lines[0]));
    fake_forget();
    fake_file(".aws/config", "[default]\nservices = b\n[services b]\ndynamodb =\n  x = 1\n");
    config = load(s, NULL);
    check_str("1", hf__config_service(config, "DynamoDB", "x"));
    check_str(NULL, hf__config_service(config, "dynamodb", "y"));
    check_str(NULL, hf__config_service(config, "s3", "x"));
    hf__config_free(config);
    CHECK_INT(0, fake.lines_len);
    hf_scope_free(s);
}

TEST(config, without_memory_it_says_so)
{
    fake_begin(t);
    fake_set("AWS_ACCESS_KEY_ID", "a");
    fake_set("AWS_CONFIG_FILE", "~/c");
    {
        char text[12000] = "[default]\n";

        for (size_t len = strlen(text); len + 4 < sizeof(text); len += 4)
            memcpy(text + len, "a=1\n", 5);
        fake_file("c", text);
        fake_file(".aws/credentials", "[default]\naws_secret_access_key = hush\n");
    }
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct config *config = NULL;
        enum hf_status status = s ? hf__config_load(s, &fake.env, none, false, &config) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == (t->alloc_failed ? HF_NOMEM : HF_OK));
        CHECK((status == HF_OK) == (config != NULL));
        hf__config_free(config);
        hf_scope_free(s);
    }
}

/* ---- settings ------------------------------------------------------------------------------- */

TEST(settings, region)
{
    static const char must_be[] = "must be the name of a region, such as eu-central-1";
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;
    struct hf_str region;
    char message[200];

    fake_begin(t);
    config = load(s, NULL);
    CHECK_OK(hf__config_region(s, config, none, &region));
    check_str(NULL, region);
    CHECK_OK(hf__config_region(s, config, HF_STR("us-east-1"), &region));
    check_str("us-east-1", region);
    snprintf(message, sizeof(message), "the region %s", must_be);
    CHECK_STATUS(HF_INVALID, hf__config_region(s, config, HF_STR("a.b"), &region));
    CHECK_ERROR(HF_INVALID, message, s);
    check_str(NULL, region);
    hf__config_free(config);

    fake_file(".aws/config", "[default]\nregion = of-profile\n");
    config = load(s, NULL);
    CHECK_OK(hf__config_region(s, config, none, &region));
    check_str("of-profile", region);
    hf__config_free(config);
    fake_set("AWS_DEFAULT_REGION", "of-default");
    config = load(s, NULL);
    CHECK_OK(hf__config_region(s, config, none, &region));
    check_str("of-default", region);
    hf__config_free(config);
    fake_set("AWS_REGION", "of-region");
    config = load(s, NULL);
    CHECK_OK(hf__config_region(s, config, none, &region));
    check_str("of-region", region);
    CHECK_OK(hf__config_region(s, config, HF_STR("of-program"), &region));
    check_str("of-program", region);
    hf__config_free(config);

    fake_set("AWS_REGION", "hush/hush");
    config = load(s, NULL);
    snprintf(message, sizeof(message), "AWS_REGION %s", must_be);
    CHECK_STATUS(HF_INVALID, hf__config_region(s, config, none, &region));
    CHECK_ERROR(HF_INVALID, message, s);
    hf__config_free(config);
    fake_set("AWS_REGION", "");
    fake_set("AWS_DEFAULT_REGION", "-");
    config = load(s, NULL);
    snprintf(message, sizeof(message), "AWS_DEFAULT_REGION %s", must_be);
    CHECK_STATUS(HF_INVALID, hf__config_region(s, config, none, &region));
    CHECK_ERROR(HF_INVALID, message, s);
    hf__config_free(config);
    fake_forget();
    fake_file(".aws/config", "[default]\nregion = eu-west-1\n  output = json\n");
    config = load(s, NULL);
    snprintf(message, sizeof(message), "region of the profile 'default' %s", must_be);
    CHECK_STATUS(HF_INVALID, hf__config_region(s, config, none, &region));
    CHECK_ERROR(HF_INVALID, message, s);
    hf__config_free(config);
    hf_scope_free(s);
}

static void check_retry(struct hf_scope *s, enum hf_retry_mode mode, uint32_t attempts)
{
    struct config *config = load(s, NULL);
    enum hf_retry_mode got_mode;
    uint32_t got;

    CHECK_OK(hf__config_retry(s, config, &got_mode, &got));
    CHECK_INT(mode, got_mode);
    CHECK_INT(attempts, got);
    hf__config_free(config);
}

static void check_retry_fails(struct hf_scope *s, const char *message)
{
    struct config *config = load(s, NULL);
    enum hf_retry_mode mode;
    uint32_t attempts;

    CHECK_STATUS(HF_INVALID, hf__config_retry(s, config, &mode, &attempts));
    CHECK_ERROR(HF_INVALID, message, s);
    hf__config_free(config);
}

TEST(settings, retries)
{
    static const char *const bad[] = {"0",
                                      "-1",
                                      "+1",
                                      " 1",
                                      "1 ",
                                      "1.5",
                                      "0x1",
                                      "1000001",
                                      "x",
                                      "4294967297",
                                      "99999999999999999999999"};
    struct hf_scope *s = hf_scope_new(test_env(t));

    fake_begin(t);
    check_retry(s, 0, 0);
    fake_file(".aws/config", "[default]\nretry_mode = adaptive\nmax_attempts = 7\n");
    check_retry(s, HF_RETRY_ADAPTIVE, 7);
    fake_set("AWS_RETRY_MODE", "legacy");
    check_retry(s, HF_RETRY_STANDARD, 7);
    fake_set("AWS_RETRY_MODE", "Standard");
    fake_set("AWS_MAX_ATTEMPTS", "1");
    check_retry(s, HF_RETRY_STANDARD, 1);
    fake_set("AWS_MAX_ATTEMPTS", "1000000");
    check_retry(s, HF_RETRY_STANDARD, 1000); /* what hf_retry_open() takes */
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        fake_forget();
        fake_set("AWS_MAX_ATTEMPTS", bad[i]);
        check_retry_fails(s, "AWS_MAX_ATTEMPTS must be a number from 1 to 1000000");
    }
    fake_forget();
    fake_set("AWS_RETRY_MODE", "off");
    check_retry_fails(s, "AWS_RETRY_MODE must be standard, adaptive or legacy");
    fake_forget();
    fake_file(".aws/config", "[default]\nmax_attempts = no\n");
    check_retry_fails(s,
                      "max_attempts of the profile 'default' must be a number from 1 to 1000000");
    fake_file(".aws/config", "[default]\nretry_mode = no\n");
    check_retry_fails(s,
                      "retry_mode of the profile 'default' must be standard, adaptive or legacy");
    hf_scope_free(s);
}

TEST(settings, ca_bundle)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct config *config;

    fake_begin(t);
    fake_file(".aws/config", "[default]\nca_bundle = /p.pem\n");
    config = load(s, NULL);
    check_str("/p.pem", hf__config_ca_bundle(config));
    hf__config_free(config);
    fake_set("AWS_CA_BUNDLE", "/v.pem");
    config = load(s, NULL);
    check_str("/v.pem", hf__config_ca_bundle(config));
    hf__config_free(config);
    hf_scope_free(s);
}

static void check_proxy(struct hf_scope *s, const char *https, const char *http,
                        const char *no_proxy)
{
    struct config *config = load(s, NULL);
    struct hf_str proxy, without;

    hf__config_proxy(config, true, &proxy, &without);
    check_str(https, proxy);
    check_str(no_proxy, without);
    hf__config_proxy(config, false, &proxy, &without);
    check_str(http, proxy);
    check_str(no_proxy, without);
    hf__config_free(config);
}

TEST(settings, proxies)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    fake_begin(t);
    check_proxy(s, NULL, NULL, NULL);
    fake_set("HTTP_PROXY", "http://evil"); /* the header Proxy: of a request to a CGI program */
    check_proxy(s, NULL, NULL, NULL);
    fake_set("ALL_PROXY", "http://ALL");
    check_proxy(s, "http://ALL", "http://ALL", NULL);
    fake_set("all_proxy", "http://all");
    fake_set("NO_PROXY", "X");
    check_proxy(s, "http://all", "http://all", "X");
    fake_set("HTTPS_PROXY", "http://HTTPS");
    fake_set("http_proxy", "http://http");
    fake_set("no_proxy", "localhost,.x");
    check_proxy(s, "http://HTTPS", "http://http", "localhost,.x");
    fake_set("https_proxy", "http://https");
    check_proxy(s, "http://https", "http://http", "localhost,.x");
    hf_scope_free(s);
}
