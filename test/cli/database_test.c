/* cli/database_test.c: URLs from options, exit codes from statuses. */
#include "cli/frame/database.h"
#include "test.h"

#include <stdlib.h>

TEST(database, options_become_parameters_of_the_url)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct database_settings settings = {.url = HF_STR("http://h:1")};

    CHECK_STR("http://h:1", hf__database_url(s, &settings));
    settings.prefix = HF_STR("a&b=c d/%");
    CHECK_STR("http://h:1?prefix=a%26b%3Dc%20d%2F%25", hf__database_url(s, &settings));
    settings.profile = HF_STR("work");
    settings.region = HF_STR("eu-central-1");
    settings.url = HF_STR("dynamodb:?attempts=2");
    settings.prefix = (struct hf_str){0};
    CHECK_STR("dynamodb:?attempts=2&profile=work&region=eu-central-1",
              hf__database_url(s, &settings));
    settings.url = HF_STR("embedded:/a?b");
    CHECK_STR("embedded:/a?b", hf__database_url(s, &settings));
    hf_scope_free(s);
}

TEST(database, every_status_has_an_exit_code)
{
    static const struct {
        enum hf_status status;
        int ends;
    } known[] = {{HF_OK, 0},      {HF_INVALID, 2},   {HF_NOT_FOUND, 3}, {HF_CONDITION, 4},
                 {HF_LOCKED, 4},  {HF_LIMIT, 4},     {HF_LOST, 4},      {HF_IN_USE, 4},
                 {HF_DENIED, 5},  {HF_THROTTLED, 6}, {HF_NO_SPACE, 6},  {HF_TIMEOUT, 7},
                 {HF_CORRUPT, 8}, {HF_FORMAT, 8},    {HF_NOMEM, 1},     {HF_IO, 1},
                 {HF_INTERNAL, 1}};

    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        CHECK_INT(known[i].ends, hf__database_exit(&(struct hf_error){.status = known[i].status}));
    CHECK_INT(CLI_UNAVAILABLE,
              hf__database_exit(&(struct hf_error){.status = HF_IO, .may_retry = true}));
    CHECK_INT(CLI_TIMEOUT,
              hf__database_exit(&(struct hf_error){.status = HF_TIMEOUT, .may_retry = true}));
}

TEST(database, an_error_is_one_line)
{
    struct cli cli = {.scope = hf_scope_new(test_env(t)), .out = stdout};
    char *text = NULL;
    size_t len = 0;

    cli.err = open_memstream(&text, &len);
    (void)hf_scope_fail(cli.scope, HF_DENIED, "no\n\x1b[31m way");
    CHECK_INT(CLI_DENIED, hf__database_fail(&cli, "kv get"));
    fclose(cli.err);
    CHECK_STR("holdfast kv get: no  [31m way\n", hf_str_of(text, len));
    free(text);
    hf_scope_free(cli.scope);
}

TEST(database, an_error_in_json)
{
    struct cli cli = {.scope = hf_scope_new(test_env(t)), .out = stdout, .json = true};
    char *text = NULL;
    size_t len = 0;

    cli.err = open_memstream(&text, &len);
    (void)hf_scope_fail(cli.scope, HF_TX_CONFLICT, "\"no\"\n");
    (void)hf_scope_doubt(cli.scope);
    CHECK_INT(CLI_UNAVAILABLE, hf__database_fail(&cli, "kv get"));
    CHECK_INT(CLI_NOT_FOUND, hf__cli_fail(&cli, "", CLI_NOT_FOUND, "%s", "none\x01"));
    (void)hf_scope_fail_limit(cli.scope, HF_LIMIT, hf_error_limit_of("JOBS_MAX", 2, 3), "3 jobs");
    CHECK_INT(CLI_CONDITION, hf__database_fail(&cli, "a"));
    (void)hf_scope_fail_because(cli.scope, HF_LOST, hf_scope_error(cli.scope), "gave up");
    (void)hf_scope_fail_because(cli.scope, HF_INVALID, hf_scope_error(cli.scope), "line 1");
    CHECK_INT(CLI_USAGE, hf__database_fail(&cli, "b"));
    fclose(cli.err);
    CHECK_STR("{\"error\":{\"code\":\"tx_conflict\",\"message\":\"\\\"no\\\" \","
              "\"may_have_happened\":true,\"command\":\"kv get\"}}\n"
              "{\"error\":{\"code\":\"not_found\",\"message\":\"none\\u0001\","
              "\"may_have_happened\":false,\"command\":\"\"}}\n"
              "{\"error\":{\"code\":\"limit\",\"message\":\"3 jobs\","
              "\"may_have_happened\":false,\"command\":\"a\","
              "\"limit\":{\"name\":\"JOBS_MAX\",\"max\":2,\"actual\":3}}}\n"
              "{\"error\":{\"code\":\"invalid\",\"message\":\"line 1\","
              "\"may_have_happened\":false,\"command\":\"b\","
              "\"cause\":{\"code\":\"lost\",\"message\":\"gave up\",\"may_have_happened\":false,"
              "\"cause\":{\"code\":\"limit\",\"message\":\"3 jobs\",\"may_have_happened\":false,"
              "\"limit\":{\"name\":\"JOBS_MAX\",\"max\":2,\"actual\":3}}}}}\n",
              hf_str_of(text, len));
    free(text);
    hf_scope_free(cli.scope);
}
