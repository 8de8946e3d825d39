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

static const struct cli_command commands[] = {
    {"serve", "serve a database over DynamoDB's protocol", &hf__serve_options, hf__serve_run},
    {"table create", "make a table from a file", &hf__table_create_options, hf__table_create_run},
    {"table ls", "list tables", &hf__table_ls_options, hf__table_ls_run},
    {"table show", "show a table", &hf__table_show_options, hf__table_show_run},
    {"table delete", "delete a table", &hf__table_delete_options, hf__table_delete_run},
    {"lock run", "run a program while holding a lock", &hf__lock_run_options, hf__lock_run_run},
    {"lock ls", "list locks and who holds them", &hf__lock_ls_options, hf__lock_ls_run},
    {"lock show", "show a lock", &hf__lock_show_options, hf__lock_show_run},
    {"lock break", "take a lock away from its holder", &hf__lock_break_options, hf__lock_break_run},
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
