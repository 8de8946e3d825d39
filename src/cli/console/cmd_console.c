/*
 * cli/console/cmd_console.c: the console over any database: `holdfast console`.
 *
 * A server in this process (<holdfast/server.h>) in front of the database that --db names, until a
 * signal. Without --write nothing can be changed through it: neither by the page nor by an SDK.
 */
#include "base/base.h"
#include "cli/frame/commands.h"

#include <holdfast/server.h>

#include <stdio.h>

struct settings {
    struct database_settings database;
    bool write;
    uint64_t port;
};

#undef OPTIONS_OF
#define OPTIONS_OF struct settings

enum { DAY_MS = 24 * 60 * 60 * 1000 };

static const struct option_spec console_specs[] = {
    OPT_FLAG("write", write, "Allow changes. By default everything that writes is refused."),
    OPT_NUMBER("port", port, 0, 65535,
               "Port to listen on, on this machine only; by default a free one.", .fallback = "0"),
    DATABASE_ONE(struct settings),
};

static const struct option_example console_examples[] = {
    {"holdfast console --db dynamodb://eu-central-1", "Look at tables of an AWS account."},
    {"holdfast console --db http://10.0.0.7:8000", "Look at another server's."},
    {"holdfast console --db embedded:shop.db --write", "Look at a directory, and change it."},
};

const struct options_table hf__console_options = {
    .name = "console",
    .about =
        "Open the console, a page for browsers, over a database: a directory, a server, or Amazon "
        "DynamoDB. It prints the URL of the page and runs until Ctrl-C.\n\n"
        "Everybody on this machine can use the page while the command runs, with the rights of the "
        "key that it found. Without --write nothing can be changed. A server of 'holdfast serve' "
        "has the page already, at /console/.",
    COMMAND_SPECS(console),
};

static enum hf_status console_check(struct command_ctx *c)
{
    const struct settings *settings = c->settings;

    c->database->read_only = !settings->write;
    return HF_OK;
}

static enum hf_status console_print(struct command_ctx *c, const struct hf_server *server)
{
    struct hf_str url = hf_scope_format(c->scope, "%.*s/console/", HF_FMT(hf_server_url(server)));

    if (!url.ptr)
        return HF_NOMEM;
    TRY(COMMAND_PRINT(c, hf__rows_text("url", url)));
    fflush(c->cli->out);
    return HF_OK;
}

static enum hf_status console_run(struct command_ctx *c)
{
    const struct settings *settings = c->settings;
    struct hf_server *server;
    enum hf_status status;

    hf_scope_timeout_ms(c->scope, 0);
    TRY(hf_server_open(c->scope, c->db,
                       HF_OPTIONS(hf_server_options, .port = (uint16_t)settings->port,
                                  .read_only = !settings->write, .region = c->database->region,
                                  .name = c->database->url),
                       &server));
    status = console_print(c, server);
    while (status == HF_OK) /* a signal cancels it */
        status = hf_scope_sleep_ms(c->scope, DAY_MS);
    hf_server_close(server);
    return status;
}

COMMAND_OF(console, console_run, COMMAND_SETTINGS(struct settings), .check = console_check,
           .guarded = true, .ends_by_signal = true);
