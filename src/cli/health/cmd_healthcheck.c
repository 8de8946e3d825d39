/*
 * cli/health/cmd_healthcheck.c: does the database answer? `holdfast healthcheck`, for containers and
 * load balancers.
 *
 * One ListTables is sent. A server that refuses it for want of a key is alive and serves, so that is
 * healthy, too: a health check needs no key.
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
    .about = "Check that the database answers. The exit code is 0 or 1, whatever the reason, as "
             "container engines expect.",
    COMMAND_SPECS(healthcheck),
};

static enum hf_status health_check(struct command_ctx *c)
{
    enum hf_status status;

    status = hf_list_tables(c->scope, c->db, &(struct hf_list_tables){.limit = 1},
                            &(struct hf_list_tables_result){.tables_len = 0});
    if (status == HF_DENIED)
        status = hf_scope_ok(c->scope);
    if (status != HF_OK)
        return hf__command_fail(c, CLI_FAILED, "%s", hf_scope_error_text(c->scope));
    return COMMAND_PRINT(c, hf__rows_text("status", HF_STR("healthy")));
}

static void health_unopened(struct command_ctx *c)
{
    c->ends = CLI_FAILED;
}

const struct command hf__healthcheck_command = {COMMAND_SETTINGS(struct settings),
                                                .body = health_check, .unopened = health_unopened};
