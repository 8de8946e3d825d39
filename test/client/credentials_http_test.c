/* client/credentials_http_test.c: containers and the metadata service; (n) is an invariant of
 * credentials_http.c. */
#include "help.h"

#include <unistd.h>

/* A service that says what it is told to, and keeps what it was asked. */
struct service {
    struct aws *a;
    struct mock mock;
    struct mock_answer say;  /* when not by the rules */
    const char *say_at;      /* the target it is for; NULL: all */
    char log[2048];          /* "METHOD target;" of each request */
    char authorization[256]; /* of the last */
    const char *expiration;  /* NULL: in an hour */
    const char *key;
};

#define TOKEN_AT "/latest/api/token"
#define ROLES_AT "/latest/meta-data/iam/security-credentials/"
#define ROLE_AT ROLES_AT "my-role"
#define REGION_AT "/latest/meta-data/placement/region"

static void service_answers(void *user, const struct mock_request *request,
                            struct mock_answer *answer)
{
    struct service *service = user;
    size_t len = strlen(service->log);
    bool metadata = strncmp(request->target, "/latest/", 8) == 0;

    snprintf(service->log + len, sizeof(service->log) - len, "%s %.200s;", request->method,
             request->target);
    snprintf(service->authorization, sizeof(service->authorization), "%.250s",
             mock_field(request, "Authorization"));
    if ((service->say.status || service->say.way || service->say.body) &&
        (!service->say_at || strcmp(service->say_at, request->target) == 0)) {
        *answer = service->say;
    } else if (strcmp(request->target, TOKEN_AT) == 0) {
        const char *ttl = mock_field(request, "X-aws-ec2-metadata-token-ttl-seconds");

        answer->status =
            strcmp(request->method, "PUT") == 0 && strcmp(ttl, "21600") == 0 ? 200 : 400;
        answer->body = "TOKEN-HUSH-session==";
    } else if (metadata &&
               strcmp(mock_field(request, "X-aws-ec2-metadata-token"), "TOKEN-HUSH-session==")) {
        answer->status = 401;
    } else if (strcmp(request->target, ROLES_AT) == 0) {
        answer->body = "my-role\nother-role";
    } else if (strcmp(request->target, REGION_AT) == 0) {
        answer->body = "eu-south-2";
    } else {
        snprintf(answer->room, sizeof(answer->room), "%s",
                 keys_json(service->key ? service->key : "AKID", "Token",
                           service->expiration ? service->expiration : aws_time(service->a, 3600)));
    }
}

static void service_open(struct test *t, struct aws *a, struct service *service)
{
    aws_open(t, a);
    memset(service, 0, sizeof(*service));
    service->a = a;
    mock_open(&service->mock, service_answers, service);
}

static void service_close(struct service *service)
{
    aws_close(service->a);
    mock_close(&service->mock);
}

static void container_open(struct test *t, struct aws *a, struct service *service,
                           const char *target)
{
    char url[256];

    service_open(t, a, service);
    snprintf(url, sizeof(url), "%s%s", service->mock.url, target);
    aws_set(a, "AWS_CONTAINER_CREDENTIALS_FULL_URI", url);
}

static void metadata_open(struct test *t, struct aws *a, struct service *service)
{
    service_open(t, a, service);
    aws_set(a, "AWS_EC2_METADATA_DISABLED", NULL);
    aws_set(a, "AWS_EC2_METADATA_SERVICE_ENDPOINT", service->mock.url);
}

/* ---- containers ----------------------------------------------------------------------------- */

TEST(container, is_asked_at_its_address)
{
    static const struct {
        const char *relative, *full;
        const char *origin, *host, *target; /* NULL: refused */
    } cases[] = {
        {"/v2/credentials/1?a=b", NULL, "http://169.254.170.2", "169.254.170.2",
         "/v2/credentials/1?a=b"},
        {"/both", "https://example.com/", "http://169.254.170.2", "169.254.170.2", "/both"},
        {NULL, "http://169.254.170.23/v1/credentials", "http://169.254.170.23", "169.254.170.23",
         "/v1/credentials"},
        {NULL, "http://169.254.170.2:80/x", "http://169.254.170.2", NULL, "/x"},
        {NULL, "http://[fd00:ec2::23]/v1/credentials", "http://[fd00:ec2::23]", "[fd00:ec2::23]",
         "/v1/credentials"},
        {NULL, "http://localhost:1234/a/", "http://localhost:1234", "localhost:1234", "/a/"},
        {NULL, "http://127.1.2.3", "http://127.1.2.3", "127.1.2.3", "/"},
        {NULL, "http://[::1]:99?q", "http://[::1]:99", "[::1]:99", "/?q"},
        {NULL, "https://example.com/x", "https://example.com", "example.com", "/x"},
        {"no-slash", NULL, NULL, NULL, NULL},
        {"/a b", NULL, NULL, NULL, NULL},
        {"/a\r\nX: y", NULL, NULL, NULL, NULL},
        {NULL, "http://example.com/", NULL, NULL, NULL},
        {NULL, "http://169.254.170.3/", NULL, NULL, NULL},
        {NULL, "http://169.254.170.2.example.com/", NULL, NULL, NULL},
        {NULL, "http://169.254.169.254/", NULL, NULL, NULL},
        {NULL, "http://localhost.example.com/", NULL, NULL, NULL},
        {NULL, "ftp://localhost/", NULL, NULL, NULL},
        {NULL, "localhost", NULL, NULL, NULL},
        {NULL, "http://", NULL, NULL, NULL},
        {NULL, "http://localhost/#x", NULL, NULL, NULL},
    };
    struct aws a;

    aws_open(t, &a);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct source source = {.env = &a.env};
        struct endpoint endpoint;
        struct hf_str target;
        bool found;

        aws_set(&a, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", cases[i].relative);
        aws_set(&a, "AWS_CONTAINER_CREDENTIALS_FULL_URI", cases[i].full);
        aws_start(&a, NULL);
        source.config = a.config;
        CHECK_STATUS(cases[i].target ? HF_OK : HF_INVALID,
                     hf__source_container_place(a.s, &source, &found, &endpoint, &target));
        if (cases[i].target) {
            CHECK(found);
            CHECK_STR(cases[i].origin, endpoint.origin);
            CHECK_STR(cases[i].target, target);
        }
        if (cases[i].host)
            CHECK_STR(cases[i].host, endpoint.host);
        aws_stop(&a);
    }
    aws_close(&a);
}

TEST(container, gives_keys_to_who_has_the_token)
{
    struct aws a;
    struct service service;

    container_open(t, &a, &service, "/creds?x=1");
    aws_set(&a, "AWS_CONTAINER_AUTHORIZATION_TOKEN", "Basic HUSH-variable");
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_STR("HUSH-of-AKID", a.secret);
    CHECK_STR("TOKEN-HUSH-of-AKID", a.token);
    CHECK_STR("123456789012", a.account);
    CHECK_STR("GET /creds?x=1;", hf_str_from(service.log));
    CHECK_STR("Basic HUSH-variable", hf_str_from(service.authorization));
    aws_stop(&a);
    /* The file goes before the variable, and is read each time. */
    aws_set(&a, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", aws_file(&a, "token", "HUSH-file-1\n"));
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_STR("HUSH-file-1", hf_str_from(service.authorization));
    aws_file(&a, "token", "HUSH-file-2");
    aws_advance_s(&a, 3500);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_STR("HUSH-file-2", hf_str_from(service.authorization));
    aws_advance_s(&a, 3600);
    aws_file(&a, "token", "HUSH\nX-Other: field");
    CHECK_FAILS(HF_INVALID, "The value of AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE is not valid", &a);
    aws_file(&a, "token", "\n");
    CHECK_FAILS(HF_INVALID, "named by AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE, is empty", &a);
    service_close(&service);
}

struct bad {
    struct mock_answer say;
    enum hf_status status;
    const char *part;
};

TEST(container, answers_that_are_none_are_the_error)
{
    static char large[200 * 1024];
    static const struct bad cases[] = {
        {{.status = 403, .body = "HUSH"}, HF_DENIED, "gives no credentials: HTTP status 403"},
        {{.status = 404, .body = ""}, HF_DENIED, "HTTP status 404"},
        {{.status = 500, .body = "HUSH"}, HF_IO, "HTTP status 500"},
        {{.status = 301, .body = ""}, HF_DENIED, "HTTP status 301"},
        {{.body = "HUSH"}, HF_INVALID, "The answer of the container's endpoint is not valid JSON"},
        {{.status = 200, .body = ""}, HF_INVALID, "is not valid JSON"},
        {{.body = "{}"}, HF_INVALID, "has no AccessKeyId"},
        {{.body = "{\"AccessKeyId\":\"A\",\"SecretAccessKey\":null}"}, HF_INVALID, "has no Secret"},
        {{.body = large}, HF_IO, "The answer of the container's endpoint is too large"},
        {{.way = MOCK_CLOSE}, HF_IO, "could not be asked for credentials"},
        {{.way = MOCK_CUT, .body = "0123456789"}, HF_IO, "could not be asked for credentials"},
        {{.way = MOCK_JUNK, .body = "HUSH\r\n\r\n"}, HF_IO, "could not be asked for credentials"},
    };
    struct aws a;
    struct service service;

    memset(large, 'x', sizeof(large) - 1);
    container_open(t, &a, &service, "/");
    aws_start(&a, NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        service.say = cases[i].say;
        service.log[0] = '\0';
        CHECK_FAILS(cases[i].status, cases[i].part, &a);
        CHECK(hf_scope_error(a.s)->may_retry == (cases[i].status == HF_IO));
    }
    service_close(&service);
}

/* (1) */
TEST(container, is_never_asked_by_a_proxy)
{
    struct aws a;
    struct service service, proxy;

    container_open(t, &a, &service, "/");
    memset(&proxy, 0, sizeof(proxy));
    proxy.a = &a;
    mock_open(&proxy.mock, service_answers, &proxy);
    aws_set(&a, "http_proxy", proxy.mock.url);
    aws_set(&a, "HTTP_PROXY", proxy.mock.url);
    aws_set(&a, "ALL_PROXY", proxy.mock.url);
    CHECK_INT(0, setenv("http_proxy", proxy.mock.url, 1)); /* libcurl reads the real ones */
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_INT(0, unsetenv("http_proxy"));
    CHECK_INT(0, atomic_load(&proxy.mock.requests));
    service_close(&service);
    mock_close(&proxy.mock);
}

/* ---- the metadata service ------------------------------------------------------------------- */

TEST(metadata, gives_the_keys_of_the_role)
{
    struct aws a;
    struct service service;

    metadata_open(t, &a, &service);
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    CHECK_STR("HUSH-of-AKID", a.secret);
    CHECK_STR("TOKEN-HUSH-of-AKID", a.token);
    CHECK_STR("PUT " TOKEN_AT ";GET " ROLES_AT ";GET " ROLE_AT ";", hf_str_from(service.log));
    service_close(&service);
}

TEST(metadata, that_is_not_there_just_means_that_there_are_none) /* (3) */
{
    static const struct {
        struct mock_answer say;
        const char *at, *part;
    } cases[] = {
        {{.way = MOCK_HANG}, TOKEN_AT, "of the machine does not answer"},
        {{.way = MOCK_CLOSE}, TOKEN_AT, "of the machine does not answer"},
        {{.status = 403}, TOKEN_AT, "of the machine is switched off"},
        {{.status = 404}, TOKEN_AT, "does not support version 2"}, /* only version 1 */
        {{.status = 405}, TOKEN_AT, "does not support version 2"},
        {{.status = 404}, ROLES_AT, "has no role"},
    };
    struct aws a;
    struct service service;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t began = real_ms();

        metadata_open(t, &a, &service);
        aws_start(&a, NULL);
        service.say = cases[i].say;
        service.say_at = cases[i].at;
        CHECK_FAILS(HF_DENIED, cases[i].part, &a);
        aws_check_part(&a, "No credentials found: ", __FILE__, __LINE__);
        CHECK(real_ms() - began < 1900);
        CHECK(!strstr(service.log, "GET " ROLE_AT)); /* never without a token */
        service_close(&service);
    }
}

TEST(metadata, that_fails_is_the_error)
{
    static char large[200 * 1024];
    static const struct {
        const char *at;
        struct bad bad;
    } cases[] = {
        {TOKEN_AT, {{.status = 500, .body = "HUSH"}, HF_IO, "gave no token: HTTP status 500"}},
        {TOKEN_AT, {{.status = 200, .body = ""}, HF_IO, "gave no token: invalid answer"}},
        {TOKEN_AT, {{.body = "HUSH\r\nX: y"}, HF_IO, "gave no token: invalid answer"}},
        {ROLES_AT, {{.status = 500}, HF_IO, "failed: HTTP status 500"}},
        {ROLES_AT, {{.status = 401}, HF_IO, "failed: HTTP status 401"}},
        {ROLES_AT, {{.body = "<html>HUSH"}, HF_IO, "named an invalid role"}},
        {ROLES_AT, {{.status = 200, .body = ""}, HF_IO, "named an invalid role"}},
        {ROLES_AT, {{.way = MOCK_HANG}, HF_IO, "could not be asked"}},
        {ROLE_AT, {{.status = 404}, HF_IO, "has no credentials for its role"}},
        {ROLE_AT, {{.way = MOCK_HANG}, HF_IO, "could not be asked"}},
        {ROLE_AT, {{.way = MOCK_DRIP}, HF_IO, "could not be asked"}},
        {ROLE_AT, {{.body = large}, HF_IO, "is too large"}},
        {ROLE_AT, {{.body = "HUSH"}, HF_INVALID, "is not valid JSON"}},
        {ROLE_AT,
         {{.body = "{\"Code\":\"AssumeRoleUnauthorizedAccess\",\"Message\":\"HUSH\"}"},
          HF_IO,
          "has no credentials now: AssumeRoleUnauthorizedAccess"}},
    };
    struct aws a;
    struct service service;

    memset(large, 'x', sizeof(large) - 1);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t began = real_ms();

        metadata_open(t, &a, &service);
        aws_start(&a, NULL);
        service.say = cases[i].bad.say;
        service.say_at = cases[i].at;
        if (service.say.way == MOCK_DRIP)
            service.say.body = large;
        CHECK_FAILS(cases[i].bad.status, cases[i].bad.part, &a);
        CHECK(hf_scope_error(a.s)->may_retry == (cases[i].bad.status == HF_IO));
        CHECK(real_ms() - began < 1900);
        service_close(&service);
    }
}

TEST(metadata, silence_is_an_error_once_it_gave_keys) /* (3) */
{
    struct aws a;
    struct service service;

    metadata_open(t, &a, &service);
    aws_start(&a, NULL);
    CHECK_STR("AKID", aws_key(&a));
    service.say = (struct mock_answer){.way = MOCK_CLOSE};
    aws_advance_s(&a, 3400);
    CHECK_STR("AKID", aws_key(&a)); /* still valid */
    CHECK(strstr(a.said, "refresh failed"));
    aws_advance_s(&a, 200);
    CHECK_FAILS(HF_IO, "could not be asked", &a);
    CHECK(hf_scope_error(a.s)->may_retry);
    service.say = (struct mock_answer){.status = 0};
    CHECK_STR("AKID", aws_key(&a));
    service_close(&service);
}

/* When AWS has trouble to renew them, the service hands out keys that have expired, and the other
 * services take them. */
TEST(metadata, expired_keys_are_used_on)
{
    struct aws a;
    struct service service;
    int requests;

    metadata_open(t, &a, &service);
    aws_start(&a, NULL);
    service.expiration = "2025-12-31T23:00:00Z";
    service.key = "AKIDOLD";
    CHECK_STR("AKIDOLD", aws_key(&a));
    CHECK(strstr(a.said, "have expired; they are used"));
    requests = atomic_load(&service.mock.requests);
    aws_advance_s(&a, 299);
    CHECK_STR("AKIDOLD", aws_key(&a));
    CHECK_INT(requests, atomic_load(&service.mock.requests));
    aws_advance_s(&a, 302);
    service.expiration = NULL;
    service.key = "AKIDNEW";
    CHECK_STR("AKIDNEW", aws_key(&a));
    service_close(&service);
}

TEST(metadata, is_where_the_settings_say)
{
    static const struct {
        const char *variable, *value, *origin;
        uint32_t timeout_ms, attempts;
    } cases[] = {
        {"X", "x", "http://169.254.169.254", 1000, 1},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv4", "http://169.254.169.254", 1000, 1},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "ipv6", "http://[fd00:ec2::254]", 1000, 1},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://[::1]:81/", "http://[::1]:81", 1000, 1},
        {"AWS_METADATA_SERVICE_TIMEOUT", "7", "http://169.254.169.254", 7000, 1},
        {"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "3", "http://169.254.169.254", 1000, 3},
        {"AWS_EC2_METADATA_DISABLED", "false", "http://169.254.169.254", 1000, 1},
        {"AWS_EC2_METADATA_DISABLED", "True", NULL, 0, 0},
    };
    struct aws a;

    aws_open(t, &a);
    aws_set(&a, "AWS_EC2_METADATA_DISABLED", NULL);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct source source = {.env = &a.env};
        struct endpoint endpoint;
        struct source_call call;
        bool off;

        aws_set(&a, cases[i].variable, cases[i].value);
        aws_start(&a, NULL);
        source.config = a.config;
        CHECK_OK(hf__source_metadata_place(a.s, &source, &off, &endpoint, &call));
        CHECK_INT(!cases[i].origin, off);
        if (!off) {
            CHECK_STR(cases[i].origin, endpoint.origin);
            CHECK_INT(cases[i].timeout_ms, call.timeout_ms);
            CHECK_INT(cases[i].attempts, call.attempts);
            CHECK(call.transport == source.direct); /* (1) */
        }
        hf__source_end(&source);
        aws_stop(&a);
        aws_set(&a, cases[i].variable, NULL);
    }
    aws_close(&a);
}

TEST(metadata, settings)
{
    static const struct {
        const char *variable, *value, *part;
    } wrong[] = {
        {"AWS_METADATA_SERVICE_TIMEOUT", "0", "AWS_METADATA_SERVICE_TIMEOUT, or metadata_service_"},
        {"AWS_METADATA_SERVICE_TIMEOUT", "soon", "is not a number from 1 to 3600"},
        {"AWS_METADATA_SERVICE_TIMEOUT", "99999999999999", "is not a number from 1 to 3600"},
        {"AWS_METADATA_SERVICE_NUM_ATTEMPTS", "-1", "is not a number from 1 to 100"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT", "nonsense", "is not a URL"},
        {"AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", "IPv5", "is not IPv4 or IPv6"},
    };
    struct aws a;
    struct service service;

    metadata_open(t, &a, &service);
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        aws_set(&a, wrong[i].variable, wrong[i].value);
        aws_start(&a, NULL);
        CHECK_FAILS(HF_INVALID, wrong[i].part, &a);
        aws_stop(&a);
        aws_set(&a, wrong[i].variable, NULL);
    }
    CHECK_INT(0, atomic_load(&service.mock.requests));

    /* From the profile, with a slash at the end, and with more than one attempt. */
    {
        char config[256];

        snprintf(config, sizeof(config),
                 "[default]\nec2_metadata_service_endpoint = %s/\n"
                 "metadata_service_num_attempts = 3\n",
                 service.mock.url);
        aws_file(&a, "config", config);
    }
    aws_start(&a, NULL);
    service.say = (struct mock_answer){.status = 500};
    service.say_at = ROLES_AT;
    CHECK_FAILS(HF_IO, "HTTP status 500", &a);
    CHECK_STR("PUT " TOKEN_AT ";GET " ROLES_AT ";GET " ROLES_AT ";GET " ROLES_AT ";",
              hf_str_from(service.log));
    service_close(&service);
}

TEST(metadata, tells_the_region)
{
    struct aws a;
    struct service service;
    struct hf_str region;

    metadata_open(t, &a, &service);
    aws_start(&a, NULL);
    CHECK_OK(hf__credentials_region(a.s, a.config, &region));
    CHECK_STR("eu-south-2", region);
    CHECK_STR("PUT " TOKEN_AT ";GET " REGION_AT ";", hf_str_from(service.log));
    service.say_at = REGION_AT;
    service.say = (struct mock_answer){.status = 404};
    CHECK_OK(hf__credentials_region(a.s, a.config, &region));
    CHECK(!region.ptr);
    service.say = (struct mock_answer){.body = "<html>"};
    CHECK_STATUS(HF_IO, hf__credentials_region(a.s, a.config, &region));
    service.say_at = TOKEN_AT;
    service.say = (struct mock_answer){.way = MOCK_CLOSE};
    CHECK_OK(hf__credentials_region(a.s, a.config, &region));
    CHECK(!region.ptr);
    aws_stop(&a);
    aws_set(&a, "AWS_EC2_METADATA_DISABLED", "TRUE");
    service.log[0] = '\0';
    aws_start(&a, NULL);
    CHECK_OK(hf__credentials_region(a.s, a.config, &region));
    CHECK(!region.ptr);
    CHECK_STR("", hf_str_from(service.log));
    service_close(&service);
}
