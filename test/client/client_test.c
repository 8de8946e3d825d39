/*
 * client/client_test.c: what a client makes of answers, against a scripted server that answers with
 * whatever bytes a test wants; URLs, parameters and variables. client_server_test.c has a real one.
 */
#include <holdfast/client.h>
#include <holdfast/table.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "rig.h"

/* ---- against a script ----------------------------------------------------------------------- */

/* A server that answers the nth request with the nth text, one connection each. */
struct script {
    const char *const *answers;
    size_t len;
    int listener;
    uint16_t port;
    pthread_t thread;
    atomic_size_t asked;
    char requests[8][4096]; /* heads and bodies as they came */
};

static bool whole_request(const char *text, size_t len)
{
    const char *end = memmem(text, len, "\r\n\r\n", 4);
    const char *length = memmem(text, len, "Content-Length: ", 16);

    return end && length && len - (size_t)(end + 4 - text) >= strtoul(length + 16, NULL, 10);
}

static void *script_thread(void *user)
{
    struct script *script = user;

    for (size_t i = 0; i < script->len; i++) {
        char *request = script->requests[i];
        size_t len = 0;
        int fd = accept(script->listener, NULL, NULL);

        if (fd < 0)
            return NULL;
        while (len < sizeof(script->requests[i]) - 1 && !whole_request(request, len)) {
            ssize_t got = recv(fd, request + len, sizeof(script->requests[i]) - 1 - len, 0);

            if (got <= 0)
                break;
            len += (size_t)got;
        }
        atomic_fetch_add(&script->asked, 1);
        if (send(fd, script->answers[i], strlen(script->answers[i]), MSG_NOSIGNAL) < 0)
            perror("send");
        close(fd);
    }
    return NULL;
}

static void script_open(struct script *script, const char *const *answers, size_t len)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof(address);

    memset(script, 0, sizeof(*script));
    script->answers = answers;
    script->len = len;
    atomic_init(&script->asked, 0);
    script->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK(bind(script->listener, (struct sockaddr *)&address, size) == 0);
    CHECK(listen(script->listener, 8) == 0);
    CHECK(getsockname(script->listener, (struct sockaddr *)&address, &size) == 0);
    script->port = ntohs(address.sin_port);
    CHECK(pthread_create(&script->thread, NULL, script_thread, script) == 0);
}

static void script_close(struct script *script)
{
    shutdown(script->listener, SHUT_RDWR);
    pthread_join(script->thread, NULL);
    close(script->listener);
}

static struct hf_db *script_db(struct hf_scope *s, const struct script *script,
                               const char *parameters)
{
    struct hf_env env = rig_plain_env();
    struct hf_db *db;

    CHECK_OK(
        hf_connect(s,
                   hf_scope_format(s, "http://127.0.0.1:%u?%s", (unsigned)script->port, parameters),
                   HF_OPTIONS(hf_client_options, .env = &env), &db));
    return db;
}

#define ANSWER(status, fields, body)                                                               \
    "HTTP/1.1 " status "\r\n" fields "Connection: close\r\n\r\n" body

static enum hf_status list(struct hf_scope *s, struct hf_db *db)
{
    return hf_list_tables(s, db, &(struct hf_list_tables){.limit = 10}, NULL);
}

static enum hf_status put(struct hf_scope *s, struct hf_db *db)
{
    return hf_put_item(s, db,
                       &(struct hf_put_item){.table = HF_STR("tab"),
                                             .item = HF_ITEM(s, HF_S("pk", HF_STR("a")))},
                       NULL);
}

TEST(client, a_wrong_crc_is_no_answer)
{
    static const char *const answers[] = {
        ANSWER("200 OK", "x-amz-crc32: 1\r\n", "{\"TableNames\":[]}"),
        ANSWER("200 OK", "x-amz-crc32: 1\r\n", "{}"),
        ANSWER("200 OK", "x-amz-crc32: 2745614147\r\n", "{}"),
    };
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    CHECK_STATUS(HF_IO, list(s, db));
    CHECK(hf_scope_error(s)->may_retry && !hf_scope_error(s)->may_have_happened);
    CHECK_STATUS(HF_IO, put(s, db));
    CHECK(hf_scope_error(s)->may_retry && hf_scope_error(s)->may_have_happened);
    CHECK_OK(put(s, db));
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

/* To this machine bytes are cheaper than packing them, unless it is the end of a tunnel. */
TEST(client, packed_answers_are_asked_for_where_they_pay)
{
    static const char *const answers[] = {ANSWER("200 OK", "", "{\"TableNames\":[]}"),
                                          ANSWER("200 OK", "", "{\"TableNames\":[]}"),
                                          ANSWER("200 OK", "", "{\"TableNames\":[]}"),
                                          ANSWER("200 OK", "", "{\"TableNames\":[]}")};
    static const struct {
        const char *url; /* to Linux 0.0.0.0 is this machine; to us it is anywhere */
        bool asks;
    } rows[] = {{"http://127.0.0.1:%u", false},
                {"http://127.0.0.1:%u?gzip=yes", true},
                {"http://0.0.0.0:%u", true},
                {"http://0.0.0.0:%u?gzip=no", false}};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_credentials keys = {.access_key = HF_STR("a"), .secret_key = HF_STR("s")};
    struct hf_env env = rig_plain_env();
    struct script script;

    script_open(&script, answers, ARRAY_LEN(answers));
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char url[100];
        struct hf_db *db;

        snprintf(url, sizeof(url), rows[i].url, (unsigned)script.port);
        CHECK_OK(hf_connect(s, hf_str_from(url),
                            HF_OPTIONS(hf_client_options, .env = &env, .credentials = keys,
                                       .region = HF_STR("eu-west-1")),
                            &db));
        CHECK_OK(list(s, db));
        hf_db_close(db);
        CHECK(rows[i].asks == (strstr(script.requests[i], "Accept-Encoding: gzip\r\n") != NULL));
    }
    script_close(&script);
    hf_scope_free(s);
}

TEST(client, an_answer_that_makes_no_sense_may_have_been_done)
{
    static const char *const answers[] = {
        ANSWER("200 OK", "", "<html>"),
        ANSWER("200 OK", "", "{\"Attributes\":{\"a\":{\"N\":\"x\"}}}"),
        ANSWER("200 OK", "Content-Encoding: gzip\r\n", "not gzip"),
        ANSWER("503 Busy", "", "<html>busy</html>"),
    };
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        CHECK_STATUS(i == 3 ? HF_INTERNAL : HF_IO, put(s, db));
        CHECK(hf_scope_error(s)->may_have_happened);
    }
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

/* What an operation always tells is there, or it is no answer: nobody looks for NULL there. */
TEST(client, an_answer_without_what_it_is_about_is_none)
{
    static const char *const answers[] = {
        ANSWER("200 OK", "", "{}"),
        ANSWER("200 OK", "", "{\"Table\":null}"),
        ANSWER("200 OK", "", "{\"TableDescription\":null}"),
        ANSWER("200 OK", "", "{}"),
        ANSWER("200 OK", "", "{\"Records\":[{\"eventID\":\"1\"}]}"),
        ANSWER("200 OK", "", "{\"Table\":{}}"),
    };
    const struct hf_describe_table describe = {.table = HF_STR("tab")};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_describe_table_result told;
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    CHECK_STATUS(HF_IO, hf_describe_table(s, db, &describe, &told));
    CHECK_STATUS(HF_IO, hf_describe_table(s, db, &describe, &told));
    CHECK_STATUS(HF_IO,
                 hf_delete_table(s, db, &(struct hf_delete_table){.table = HF_STR("tab")}, NULL));
    CHECK(hf_scope_error(s)->may_have_happened);
    CHECK_STATUS(HF_IO,
                 hf_describe_stream(s, db, &(struct hf_describe_stream){.arn = HF_STR("arn")},
                                    NULL));
    CHECK_STATUS(HF_IO,
                 hf_get_records(s, db, &(struct hf_get_records){.iterator = HF_STR("i")}, NULL));
    CHECK_OK(hf_describe_table(s, db, &describe, &told));
    CHECK(told.table != NULL);
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

/* A page that is to be continued from where it began would be asked for again and again. */
TEST(client, a_page_that_leads_to_itself_is_none)
{
    static const char *const answers[] = {
        ANSWER("200 OK", "", "{\"TableNames\":[\"a\"],\"LastEvaluatedTableName\":\"a\"}"),
        ANSWER("200 OK", "", "{\"TableNames\":[\"a\"],\"LastEvaluatedTableName\":\"a\"}"),
        ANSWER("200 OK", "", "{\"Count\":0,\"LastEvaluatedKey\":{\"k\":{\"N\":\"1.0\"}}}"),
        ANSWER("200 OK", "", "{\"Count\":0,\"LastEvaluatedKey\":{\"k\":{\"N\":\"2\"}}}"),
        ANSWER("200 OK", "", "{\"StreamDescription\":{\"LastEvaluatedShardId\":\"x\"}}"),
    };
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_scan scan = {.table = HF_STR("tab"), .start = HF_ITEM(s, HF_N("k", 1))};
    struct hf_list_tables list = {.limit = 1};
    struct hf_describe_stream describe = {.arn = HF_STR("arn"), .start_shard = HF_STR("x")};
    struct hf_scan_result result;
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    CHECK_OK(hf_list_tables(s, db, &list, NULL));
    list.start = HF_STR("a");
    CHECK_STATUS(HF_IO, hf_list_tables(s, db, &list, NULL));
    CHECK(strstr(hf_scope_error_text(s), "the list would never end"));
    CHECK_STATUS(HF_IO, hf_scan(s, db, &scan, &result));
    CHECK_OK(hf_scan(s, db, &scan, &result));
    CHECK_STATUS(HF_IO, hf_describe_stream(s, db, &describe, NULL));
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

/* That a page is not there says nothing of a table. */
TEST(client, a_server_of_something_else_has_no_tables_to_miss)
{
    static const char *const answers[] = {ANSWER("404 Not Found", "", "<html>not here</html>")};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "");
    CHECK_STATUS(HF_INVALID, hf_table_wait(s, db, HF_STR("tab"), HF_TABLE_UNTIL_GONE, NULL));
    CHECK(strstr(hf_scope_error_text(s), "HTTP status 404"));
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

/* dynalite answers "", with the quotes, where DynamoDB says nothing; a page of a proxy is no
 * answer.
 */
TEST(client, an_operation_without_results_does_not_care_which)
{
    static const char *const answers[] = {
        ANSWER("200 OK", "", ""),
        ANSWER("200 OK", "", "\"\""),
        ANSWER("200 OK", "", "{}"),
        ANSWER("200 OK", "", "<html>"),
    };
    const struct hf_untag_resource untag = {.arn = HF_STR("arn")};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        CHECK_STATUS(i == 3 ? HF_IO : HF_OK, hf_untag_resource(s, db, &untag, NULL));
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

TEST(client, an_operation_that_is_not_there_is_asked_for_once)
{
    static const char *const answers[] = {
        ANSWER("400 Bad Request", "", "{\"__type\":\"x#UnknownOperationException\"}"),
        ANSWER("200 OK", "", "{\"TableNames\":[]}"),
    };
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;
    bool there = true;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "");
    CHECK_OK(hf_db_supports(s, db, HF_FEATURE_TRANSACTIONS, &there));
    CHECK(!there);
    CHECK_STATUS(HF_UNSUPPORTED,
                 hf_transact_write_items(s, db, &(struct hf_transact_write_items){.actions = NULL},
                                         NULL));
    CHECK(strstr(hf_scope_error_text(s), "does not have the operation TransactWriteItems"));
    CHECK_OK(hf_db_supports(s, db, HF_FEATURE_TRANSACTIONS, &there));
    CHECK(!there);
    CHECK_OK(list(s, db));
    CHECK_INT(2, (int64_t)atomic_load(&script.asked));
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

static const char *field_in(const char *request, const char *name)
{
    const char *at = strstr(request, name);

    return at ? at + strlen(name) : "";
}

TEST(client, a_clock_that_is_off_is_corrected)
{
    static const char *const answers[] = {
        ANSWER("400 Bad Request", "Date: Sun, 01 Jan 2034 00:00:00 GMT\r\n",
               "{\"__type\":\"x#InvalidSignatureException\",\"message\":\"Signature expired\"}"),
        ANSWER("200 OK", "", "{\"TableNames\":[]}"),
        ANSWER("200 OK", "", "{\"TableNames\":[]}"),
        ANSWER("400 Bad Request", "Date: Sun, 01 Jan 2034 00:00:01 GMT\r\n",
               "{\"__type\":\"x#InvalidSignatureException\",\"message\":\"wrong key\"}"),
    };
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    CHECK_OK(list(s, db));
    CHECK_OK(list(s, db));
    CHECK_STATUS(HF_DENIED, list(s, db)); /* the clock is right, so it is the key */
    CHECK_INT(4, (int64_t)atomic_load(&script.asked));
    CHECK(strncmp(field_in(script.requests[1], "X-Amz-Date: "), "20340101T0000", 13) == 0);
    CHECK(strncmp(field_in(script.requests[2], "X-Amz-Date: "), "20340101T0000", 13) == 0);
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

TEST(client, the_service_says_how_long_to_wait)
{
    static const char *const answers[] = {
        ANSWER("400 Bad Request", "x-amz-retry-after: 1500\r\n",
               "{\"__type\":\"x#ThrottlingException\",\"message\":\"slow\"}"),
        ANSWER("400 Bad Request", "x-amz-retry-after: soon\r\n",
               "{\"__type\":\"x#ThrottlingException\",\"message\":\"slow\"}"),
        ANSWER("400 Bad Request", "x-amz-retry-after: 99999999999999999999\r\n",
               "{\"__type\":\"x#ThrottlingException\",\"message\":\"slow\"}"),
    };
    static const uint32_t expected[] = {1500, 0, 60000};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    db = script_db(s, &script, "retry=off");
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        CHECK_STATUS(HF_THROTTLED, put(s, db));
        CHECK_INT(expected[i], hf_scope_error(s)->retry_after_ms);
        CHECK(!hf_scope_error(s)->may_have_happened);
    }
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
}

/* A service explains a wrong signature with all that should have been signed, token and all. */
TEST(client, a_service_that_repeats_secrets_is_not_quoted)
{
#define TOKEN "HUSH/a-token-that-is-long-enough-to-be-one"
#define REFUSAL(message)                                                                           \
    ANSWER("400 Bad Request", "",                                                                  \
           "{\"__type\":\"x#InvalidSignatureException\",\"message\":\"" message "\"}")
    static const char *const answers[] = {
        REFUSAL(
            "The signature does not match.\\n\\nThe Canonical String for this request should have "
            "been\\n'POST\\n/\\n\\nx-amz-security-token:" TOKEN "\\n'"),
        REFUSAL("HUSH-a-secret-key-of-forty-characters-00 is wrong"),
        REFUSAL("no"),
    };
    static const char *const texts[] = {
        "The signature does not match.",
        "The message of the service is not shown, as it has secrets in it", "no"};
    struct hf_env env = rig_plain_env();
    struct hf_client_options options = {
        .size = sizeof(options),
        .env = &env,
        .credentials = {.access_key = HF_STR("AKID"),
                        .secret_key = HF_STR("HUSH-a-secret-key-of-forty-characters-00"),
                        .session_token = HF_STR(TOKEN)}};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    struct hf_db *db;

    script_open(&script, answers, ARRAY_LEN(answers));
    CHECK_OK(hf_connect(s, hf_scope_format(s, "http://127.0.0.1:%u", (unsigned)script.port),
                        &options, &db));
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        CHECK_STATUS(HF_DENIED, put(s, db));
        CHECK_STR(texts[i], hf_str_from(hf_scope_error_text(s)));
        CHECK(!hf_scope_error(s)->may_have_happened);
    }
    hf_db_close(db);
    script_close(&script);
    hf_scope_free(s);
#undef REFUSAL
#undef TOKEN
}

/* ---- URLs ----------------------------------------------------------------------------------- */

TEST(client, urls_and_parameters_that_cannot_be)
{
    static const struct {
        const char *url;
        const char *part; /* of the message */
    } cases[] = {
        {"ftp://here", "is not the URL of a service"},
        {"", "is not the URL of a service"},
        {"http://", "has no valid host"},
        {"http://here:99999", "port"},
        {"http://here?colour=red", "colour"},
        {"http://here?attempts=0", "attempts"},
        {"http://here?attempts=", "attempts"},
        {"http://here?attempts=4294967296", "attempts"},
        {"http://here?attempts=two", "attempts"},
        {"http://here?retry=maybe", "standard, adaptive or off"},
        {"http://here?gzip=perhaps", "gzip"},
        {"http://here?region=%4", "%"},
        {"dynamodb:", "no region"},
        {"dynamodb://", "no region"},
        {"dynamodb://not a region", "region"},
    };
    struct hf_env env = rig_plain_env();
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(HF_INVALID, hf_connect(s, hf_str_from(cases[i].url),
                                            HF_OPTIONS(hf_client_options, .env = &env), &db));
        CHECK(!db);
        if (!strstr(hf_scope_error_text(s), cases[i].part))
            print_message("%s: %s\n", cases[i].url, hf_scope_error_text(s));
        CHECK(strstr(hf_scope_error_text(s), cases[i].part) != NULL);
    }
    hf_scope_free(s);
}

TEST(client, parameters_that_can_be)
{
    static const char *const urls[] = {
        "http://127.0.0.1:1?region=eu-west-1&attempts=2&retry=adaptive&connect_ms=10&attempt_ms=20",
        "https://localhost?insecure=yes&gzip=no&connections=1&proxy=none",
        "http://[::1]:8000/path/?region=%75s-east-1",
        "dynamodb://eu-central-1?fips=no&dual_stack=yes",
        "dynamodb:?region=eu-central-1",
    };
    struct hf_env env = rig_plain_env();
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;

    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        CHECK_OK(
            hf_connect(s, hf_str_from(urls[i]), HF_OPTIONS(hf_client_options, .env = &env), &db));
        hf_db_close(db);
    }
    hf_scope_free(s);
}

/* Variables with keys, and a file with others for the profile "work". */
static const char *some_variables(const char *name, void *user)
{
    if (strcmp(name, "AWS_CONFIG_FILE") == 0)
        return user;
    if (strcmp(name, "AWS_ACCESS_KEY_ID") == 0)
        return "AKIDVARIABLE";
    if (strcmp(name, "AWS_SECRET_ACCESS_KEY") == 0)
        return "secret";
    return NULL;
}

/* As in AWS's tools: a profile that the program names goes before the variables. */
TEST(client, a_profile_that_is_asked_for_gives_the_keys)
{
    static const char answer[] = ANSWER("200 OK", "", "{\"TableNames\":[]}");
    static const char *const answers[] = {answer, answer};
    static const char *const parameters[] = {"profile=work", "attempts=1"};
    static const char *const keys[] = {"Credential=AKIDPROFILE/", "Credential=AKIDVARIABLE/"};
    char path[] = "/tmp/holdfast-test-XXXXXX";
    struct hf_env env = {.size = sizeof(env), .user = path, .getenv = some_variables};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    int fd = mkstemp(path);

    CHECK(fd >= 0);
    CHECK(dprintf(fd, "[profile work]\naws_access_key_id = AKIDPROFILE\n"
                      "aws_secret_access_key = other\n") > 0);
    close(fd);
    script_open(&script, answers, ARRAY_LEN(answers));
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        struct hf_db *db;

        CHECK_OK(hf_connect(s,
                            hf_scope_format(s, "http://127.0.0.1:%u?%s", (unsigned)script.port,
                                            parameters[i]),
                            HF_OPTIONS(hf_client_options, .env = &env), &db));
        CHECK_OK(list(s, db));
        hf_db_close(db);
    }
    script_close(&script);
    for (size_t i = 0; i < ARRAY_LEN(keys); i++)
        CHECK(strstr(script.requests[i], keys[i]) != NULL);
    unlink(path);
    hf_scope_free(s);
}

/* ---- variables ------------------------------------------------------------------------------ */

/* Names and values in turns, up to NULL. */
static const char *listed_variable(const char *name, void *user)
{
    const char *const *list = user;

    for (; *list; list += 2)
        if (strcmp(list[0], name) == 0)
            return list[1];
    return NULL;
}

/* Connect to "dynamodb://us-east-1" with these variables and list tables. */
static enum hf_status list_with(struct hf_scope *s, const char **variables)
{
    struct hf_env env = {.size = sizeof(env), .user = variables, .getenv = listed_variable};
    enum hf_status status;
    struct hf_db *db;

    CHECK_OK(hf_connect(s, HF_STR("dynamodb://us-east-1"),
                        HF_OPTIONS(hf_client_options, .env = &env), &db));
    status = list(s, db);
    hf_db_close(db);
    return status;
}

#define KEYS "AWS_ACCESS_KEY_ID", "AKID", "AWS_SECRET_ACCESS_KEY", "secret"
#define NOWHERE "http://127.0.0.1:1"

/* A proxy is chosen by what is connected to, wherever the URL of that comes from. */
TEST(client, the_proxy_is_that_of_the_scheme)
{
    static const char answer[] = ANSWER("200 OK", "", "{\"TableNames\":[]}");
    static const char *const answers[] = {answer, answer};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    char url[64];

    script_open(&script, answers, ARRAY_LEN(answers));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)script.port);
    CHECK_OK(list_with(s, (const char *[]){KEYS, "AWS_ENDPOINT_URL", url, "HTTPS_PROXY", NOWHERE,
                                           NULL}));
    CHECK_STATUS(HF_IO, list_with(s, (const char *[]){KEYS, "AWS_ENDPOINT_URL", url, "http_proxy",
                                                      NOWHERE, NULL}));
    CHECK_OK(list_with(s, (const char *[]){KEYS, "AWS_ENDPOINT_URL", url, "http_proxy", NOWHERE,
                                           "NO_PROXY", "example.org,127.0.0.1", NULL}));
    CHECK_INT(2, (int64_t)atomic_load(&script.asked));
    script_close(&script);
    hf_scope_free(s);
}

/* What AWS's tools take is taken. */
TEST(client, many_attempts_are_no_mistake)
{
    static const char *const answers[] = {ANSWER("200 OK", "", "{\"TableNames\":[]}")};
    struct hf_scope *s = hf_scope_new(NULL);
    struct script script;
    char url[64];

    script_open(&script, answers, ARRAY_LEN(answers));
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)script.port);
    CHECK_OK(list_with(s, (const char *[]){KEYS, "AWS_ENDPOINT_URL", url, "AWS_MAX_ATTEMPTS",
                                           "5000", NULL}));
    script_close(&script);
    hf_scope_free(s);
}

/* Whose endpoint it is the credentials tell, which are not asked before the first call. */
TEST(client, an_account_that_is_required_may_come_with_the_credentials)
{
    struct hf_scope *s = hf_scope_new(NULL);

    CHECK_STATUS(HF_IO, list_with(s, (const char *[]){KEYS, "AWS_ACCOUNT_ID_ENDPOINT_MODE",
                                                      "required", "AWS_ACCOUNT_ID", "111122223333",
                                                      "HTTPS_PROXY", NOWHERE, NULL}));
    CHECK(strstr(hf_scope_error_text(s), "https://111122223333.ddb.us-east-1.amazonaws.com"));
    CHECK_STATUS(HF_INVALID, list_with(s, (const char *[]){KEYS, "AWS_ACCOUNT_ID_ENDPOINT_MODE",
                                                           "required", NULL}));
    CHECK(strstr(hf_scope_error_text(s), "set AWS_ACCOUNT_ID"));
    hf_scope_free(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

/* By the system's clocks, but with the test's memory: those of other threads are not swept. */
TEST(client, every_lack_of_memory_while_opening_and_calling)
{
    struct rig rig;
    struct hf_env env = *test_env(t);
    enum hf_status status = HF_NOMEM;
    char url[64];

    rig_open(&rig);
    env.getenv = rig_plain_env().getenv;
    env.elapsed_us = NULL;
    env.wall_us = NULL;
    env.sleep = NULL;
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(&env);
        struct hf_db *db = NULL;

        snprintf(url, sizeof(url), "http://127.0.0.1:%u", (unsigned)rig.port);
        status =
            s ? hf_connect(s, hf_str_from(url), HF_OPTIONS(hf_client_options, .env = &env), &db)
              : HF_NOMEM;
        if (status == HF_OK)
            status = list(s, db);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || (t->alloc_failed && status == HF_NOMEM));
        hf_db_close(db);
        hf_scope_free(s);
    }
    CHECK_STATUS(HF_OK, status);
    rig_close(&rig);
}
