/*
 * cli/main.c: the holdfast command. A command is a line in the table below and a file cmd_*.c.
 */
#include "cli/cli.h"
#include "cli/commands.h"
#include "cli/serve.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MIN = 60, WIDTH_USUAL = 80, WIDTH_MAX = 100 };

#define COMMAND(words, name, summary)                                                              \
    {                                                                                              \
        words, summary, &hf__##name##_options, hf__##name##_run                                    \
    }

static const struct cli_command commands[] = {
    COMMAND("serve", serve, "serve a database over DynamoDB's protocol"),
    COMMAND("table create", table_create, "make a table from a file"),
    COMMAND("table ls", table_ls, "list tables"),
    COMMAND("table show", table_show, "show a table"),
    COMMAND("table delete", table_delete, "delete a table"),
    COMMAND("lock run", lock_run, "run a program while holding a lock"),
    COMMAND("lock ls", lock_ls, "list locks and who holds them"),
    COMMAND("lock show", lock_show, "show a lock"),
    COMMAND("lock break", lock_break, "take a lock away from its holder"),
    COMMAND("kv get", kv_get, "print the value of a key"),
    COMMAND("kv set", kv_set, "set the value of a key"),
    COMMAND("kv delete", kv_delete, "delete a key"),
    COMMAND("kv ls", kv_ls, "list keys and values"),
    COMMAND("kv clear", kv_clear, "delete many keys"),
    COMMAND("counter add", counter_add, "add to a counter"),
    COMMAND("counter get", counter_get, "print counters"),
    COMMAND("counter set", counter_set, "set a counter"),
    COMMAND("counter delete", counter_delete, "delete a counter"),
    COMMAND("counter ls", counter_ls, "list counters"),
    COMMAND("once run", once_run, "run a program once"),
    COMMAND("once show", once_show, "show whether something was done"),
    COMMAND("once ls", once_ls, "list what was done"),
    COMMAND("once clear", once_clear, "let something be done again"),
    COMMAND("limit check", limit_check, "count one, if a limit allows it"),
    COMMAND("limit peek", limit_peek, "would it be allowed?"),
    COMMAND("limit reset", limit_reset, "forget what was counted"),
    COMMAND("records put", records_put, "put records that are to be processed"),
    COMMAND("records ls", records_ls, "list records"),
    COMMAND("records retry", records_retry, "let failed records be tried again"),
    COMMAND("records process", records_process, "run a program for each record that waits"),
    COMMAND("outbox emit", outbox_emit, "store an event to be delivered"),
    COMMAND("outbox ls", outbox_ls, "list events"),
    COMMAND("outbox failed", outbox_failed, "list events that were put aside"),
    COMMAND("outbox retry", outbox_retry, "let failed events be delivered again"),
    COMMAND("outbox discard", outbox_discard, "delete events"),
    COMMAND("outbox stats", outbox_stats, "how many events wait, and for how long"),
    COMMAND("outbox drain", outbox_drain, "deliver what is due, and end"),
    COMMAND("outbox cleanup", outbox_cleanup, "delete old events of the history"),
    COMMAND("outbox replay", outbox_replay, "deliver events of the history again"),
    COMMAND("relay", relay, "deliver the events of an outbox"),
    COMMAND("iam outbox", iam_outbox, "print the IAM policy that an outbox needs"),
    COMMAND("streams tail", streams_tail, "print the changes of a table"),
};

static const char *variable(const char *name)
{
    return getenv(name);
}

/* As wide as the terminal, within reason: long lines are hard to read. */
static size_t help_width(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return WIDTH_USUAL;
    if (size.ws_col < WIDTH_MIN)
        return WIDTH_MIN;
    return size.ws_col > WIDTH_MAX ? WIDTH_MAX : size.ws_col;
}

int main(int argc, char **argv)
{
    struct cli cli = {.scope = hf_scope_new(NULL),
                      .out = stdout,
                      .err = stderr,
                      .width = help_width(),
                      .terminal = isatty(STDOUT_FILENO) == 1,
                      .env = variable,
                      .commands = commands,
                      .commands_len = sizeof(commands) / sizeof(commands[0])};
    int ends;

    if (!cli.scope)
        return hf__cli_fail(&cli, "", CLI_FAILED, "out of memory");
    ends = hf__cli_run(&cli, argc > 0 ? (size_t)argc - 1 : 0, (const char *const *)argv + 1);
    hf_scope_free(cli.scope);
    return ends;
}
