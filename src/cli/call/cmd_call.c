/*
 * cli/call/cmd_call.c: a method of the seam for other languages, by name and JSON: `holdfast call`.
 *
 * What it prints is the result, as one line of JSON, also on a terminal. A session ends with the
 * command, so methods that begin one are of little use here.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <holdfast/bind.h>

struct settings {
    struct database_settings database;
    bool read_only;
};

static const struct option_spec call_specs[] = {
    OPT_FLAG("read-only", read_only, "Refuse methods that write."),
    DATABASE_ONE(struct settings),
};

static const struct option_example call_examples[] = {
    {"holdfast call bind.methods | jq -r '.methods[].name'", "All methods."},
    {"holdfast call lock.list '{\"prefix\":\"job\"}'", "A method of a pattern."},
    {"holdfast call GetItem '{\"TableName\":\"orders\",\"Key\":{\"id\":{\"S\":\"7\"}}}'",
     "An operation of DynamoDB, with DynamoDB's JSON."},
};

const struct options_table hf__call_options = {
    .name = "call",
    .operands = "METHOD [JSON]",
    .about = "Call a method that other languages have, with its arguments as JSON, and print its "
             "result as JSON. A name without a point is an operation of DynamoDB.",
    COMMAND_SPECS(call),
};

static enum hf_status call_method(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_bind *bind;
    struct hf_str result;
    enum hf_status status;

    TRY(hf_bind_open(c->scope, c->db, HF_OPTIONS(hf_bind_options, .read_only = settings->read_only),
                     &bind));
    status =
        hf_bind_call(c->scope, bind, hf__command_operand(c, 0), hf__command_operand(c, 1), &result);
    hf_bind_close(bind);
    if (status == HF_OK)
        fprintf(c->cli->out, "%.*s\n", HF_FMT(result));
    return status;
}

COMMAND_OF(call, call_method, COMMAND_SETTINGS(struct settings), .min = 1, .max = 2);
