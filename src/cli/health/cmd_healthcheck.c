/*
 * cli/health/cmd_healthcheck.c: does the database answer? `holdfast healthcheck`, for containers and
 * load balancers.
 *
 * One ListTables is sent, signed with a key that nobody has unless the environment has one. A server
 * that refuses that key is alive and serves, so it is healthy, too: a health check needs no key.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <holdfast/db.h>

struct settings {
    struct database_settings database;
};

static const struct option_spec healthcheck_specs[] = {
    DATABASE_ONE(struct settings),
};

static const struct option_example healthcheck_examples[] = {
    {"holdfast healthcheck", "Exit code 0 if http://127.0.0.1:8000 answers."},
    {"HEALTHCHECK CMD [\"holdfast\", \"healthcheck\", \"--timeout\", \"2s\"]",
     "In a Containerfile."},
};

const struct options_table hf__healthcheck_options = {
    .name = "healthcheck",
    .about = "Check that the database answers. The exit code is 0 if it does and 1 if it does not, "
             "whatever the reason, as container engines expect. No key is needed.",
    COMMAND_SPECS(healthcheck),
};

/* Without any key nothing would be sent. */
static enum hf_status key_set(struct command_ctx *c)
{
    struct cli *cli = c->cli;

    if (cli->env("AWS_ACCESS_KEY_ID") || c->database->profile.ptr)
        return HF_OK;
    return cli->set_env("AWS_ACCESS_KEY_ID", "healthcheck") &&
                   cli->set_env("AWS_SECRET_ACCESS_KEY", "healthcheck")
               ? HF_OK
               : HF_NOMEM;
}

static enum hf_status health_check(struct command_ctx *c)
{
    enum hf_status status;

    status = hf_list_tables(c->scope, c->db, &(struct hf_list_tables){.limit = 1},
                            &(struct hf_list_tables_result){.tables_len = 0});
    if (status == HF_DENIED && hf_scope_error(c->scope)->exception.ptr) /* the server said so */
        status = hf_scope_ok(c->scope);
    if (status != HF_OK)
        return hf__command_fail(c, CLI_FAILED, "%s", hf_scope_error_text(c->scope));
    return COMMAND_PRINT(c, hf__rows_text("status", HF_STR("healthy")));
}

static void health_unopened(struct command_ctx *c)
{
    c->ends = CLI_FAILED;
}

COMMAND_OF(healthcheck, health_check, COMMAND_SETTINGS(struct settings), .check = key_set,
           .unopened = health_unopened);
