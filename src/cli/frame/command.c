/*
 * cli/frame/command.c: the frame of a command. See command.h.
 *
 *     parse      arguments, into settings that begin as zeros; then what the config file says
 *     guard      signals, for commands that end in order: before there are other threads
 *     check      what cannot be together: before the database is opened, or anything made
 *     open       the database, the blobs, what the noun keeps there
 *     body       the work
 *     report     the error, the end of the list, a failed write to standard output
 *     close      in reverse
 *
 * What always holds:
 *
 *  (1) An error is shown once: a failed status while `ends` is CLI_OK was not shown yet.
 *  (2) What was opened is closed, whatever the body returns. Errors are shown before that, as one
 *      may name what is open.
 *  (3) A list that was begun is ended, after an error as well: its JSON is whole.
 */
#include "cli/frame/command.h"

#include "base/base.h"
#include "cli/config/config_use.h"
#include "cli/frame/process/child.h"

#include <holdfast/engine.h>

#include <assert.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What holds from parsing on: what is open belongs to a database, and how it ends is a code of cli.h. */
static void command_check(const struct command_ctx *c)
{
    assert(c->cli && c->command && c->name && c->scope);
    assert(c->ends >= CLI_OK); /* DATABASE_ABSENT is no code to end with */
    assert(!c->place || c->command->place);
    assert((!c->db && !c->blobs && !c->place) || c->database);
    assert(!c->listing || c->rows);
}

/* ---- for bodies ----------------------------------------------------------------------------- */

struct hf_str hf__command_operand(const struct command_ctx *c, size_t at)
{
    return hf_str_from(at < c->operands_len ? c->operands[at] : NULL);
}

enum hf_status hf__command_fail(struct command_ctx *c, int ends, const char *format, ...)
{
    va_list args;
    char *message;
    int len;

    assert(ends != CLI_OK);
    va_start(args, format);
    len = vasprintf(&message, format, args);
    va_end(args);
    c->ends = hf__cli_fail(c->cli, c->name, ends, "%s", len < 0 ? "out of memory" : message);
    if (len >= 0)
        free(message);
    return HF_INVALID;
}

enum hf_status hf__command_shown(struct command_ctx *c, int ends)
{
    assert(ends != CLI_OK);
    c->ends = ends;
    return HF_INVALID;
}

enum hf_status hf__command_missing(struct command_ctx *c, const char *option)
{
    assert(option[0] == '-');
    return hf__command_fail(c, CLI_USAGE, "missing option %s", option);
}

void hf__command_failed(struct command_ctx *c)
{
    assert(c->ends == CLI_OK);
    c->ends = hf__database_fail(c->cli, c->name);
}

enum hf_status hf__command_end(struct command_ctx *c, int ends)
{
    c->ends = ends;
    return HF_OK;
}

void hf__command_wait(struct command_ctx *c, struct database_wait *wait, uint64_t wait_ms,
                      uint64_t busy_code)
{
    assert(!c->wait && !c->db);
    *wait = (struct database_wait){.bounded = hf__options_source(c->table, &c->options, "wait") !=
                                              OPTION_DEFAULT,
                                   .wait_ms = wait_ms,
                                   .busy_code = (int)busy_code};
    c->wait = wait;
}

enum hf_status hf__command_waited(struct command_ctx *c, enum hf_status status)
{
    const struct database_wait *wait = c->wait;

    assert(wait);
    if (status != HF_LOCKED && (status != HF_TIMEOUT || !wait->bounded || !wait->wait_ms))
        return status;
    if (!c->database->quiet)
        hf__database_fail(c->cli, c->name);
    return hf__command_end(c, wait->busy_code);
}

enum hf_status hf__command_open_blobs(struct command_ctx *c, struct hf_str url)
{
    enum hf_status status;

    assert(!c->blobs);
    if (!url.ptr || c->empty)
        return HF_OK;
    status = hf__database_open_blobs(c->cli, c->database, url, &c->blobs);
    if (status != HF_OK) /* here, as a bucket that is not there is no table that is not */
        hf__command_failed(c);
    return status;
}

struct rows *hf__command_rows(struct command_ctx *c, const char *list)
{
    assert(c->database && !c->listing);
    hf__rows_begin(c->rows, c->cli, c->database, list);
    c->listing = true;
    return c->rows;
}

enum hf_status hf__command_print(struct command_ctx *c, const struct rows_field *fields, size_t len)
{
    int ends = hf__rows_one(c->cli, c->database, fields, len);

    assert(c->database && !c->listing && (fields || !len));
    if (ends == CLI_OK)
        return HF_OK;
    if (c->ends == CLI_OK)
        c->ends = ends;
    return HF_IO;
}

enum hf_status hf__command_print_json(struct command_ctx *c, const struct rows_field *fields,
                                      size_t len)
{
    assert(c->database);
    return c->database->json ? hf__command_print(c, fields, len) : HF_OK;
}

enum hf_status hf__command_count(struct command_ctx *c, const char *name, uint64_t count)
{
    return COMMAND_PRINT(c, hf__rows_number(c->cli, name, count));
}

/* ---- opening -------------------------------------------------------------------------------- */

/* In reverse; what is not open is NULL. */
static void command_close(struct command_ctx *c)
{
    if (c->place)
        c->command->place->close(c->place);
    hf_blobs_close(c->blobs);
    hf__database_close(c->cli, c->db);
    c->place = NULL;
    c->blobs = NULL;
    c->db = NULL;
}

/* What is to be said of nothing is that of an empty one. No blobs belong to it: a sweep of it would
 * remove all of them. */
static enum hf_status command_open_empty(struct command_ctx *c)
{
    assert(c->command->place && c->command->table == COMMAND_EMPTY);
    command_close(c);
    c->makes = c->empty = true;
    TRY(hf_open(c->scope, HF_STR("memory:"), NULL, &c->db));
    return c->command->place->open(c);
}

static bool command_open_database(struct command_ctx *c)
{
    if (c->without_db)
        return true;
    if (!c->wait)
        return hf__database_open(c->cli, c->name, c->database, &c->db, &c->ends);
    if (hf__database_open_waiting(c->cli, c->name, c->database, c->wait, &c->db, &c->ends))
        return true;
    assert(c->guard);
    if (hf__guard_signal(c->guard))
        c->ends = CLI_SIGNAL + hf__guard_signal(c->guard);
    return false;
}

/* False: it did not come to that; `ends` says how to end, and may be CLI_OK with an empty list. */
static bool command_open(struct command_ctx *c)
{
    const struct command *command = c->command;
    enum hf_status status;

    assert(!c->db && !c->place && c->ends == CLI_OK);
    c->makes = c->database->create = command->table == COMMAND_MAKES;
    c->database->absent_ok = command->table == COMMAND_LOOKS || command->table == COMMAND_EMPTY;
    c->database->maker = command->place ? command->place->maker : NULL;
    if (!command_open_database(c))
        return false;
    if (!command->place)
        return true;
    status = command->place->open(c);
    if (status == HF_OK)
        return true;
    c->place = NULL;
    if (c->ends == CLI_OK)
        c->ends = hf__database_unopened(c->cli, c->name, c->database);
    if (c->ends != DATABASE_ABSENT)
        return false;
    c->ends = CLI_OK;
    if (command->table == COMMAND_EMPTY) {
        if (command_open_empty(c) == HF_OK)
            return true;
        c->place = NULL;
        hf__command_failed(c);
        return false;
    }
    command_close(c);
    if (!command->list)
        return true;
    c->ends = hf__rows_none(c->cli, c->database, command->list, DATABASE_ABSENT);
    return false;
}

/* ---- running -------------------------------------------------------------------------------- */

static bool command_parse(struct command_ctx *c, size_t args_len, const char *const *args)
{
    const struct command *command = c->command;

    assert(!c->settings && command->settings_size > 0);
    c->settings = hf_scope_alloc(c->scope, command->settings_size);
    c->rows = hf_scope_alloc(c->scope, sizeof(*c->rows));
    if (!c->settings || !c->rows) {
        c->ends = hf__cli_fail(c->cli, c->name, CLI_FAILED, "out of memory");
        return false;
    }
    memset(c->settings, 0, command->settings_size);
    if (command->has_database)
        c->database = c->settings;
    if (!hf__cli_operands(c->cli, c->table, args_len, args, command->min, command->max, c->settings,
                          &c->options, &c->ends))
        return false;
    c->operands = c->options.operands;
    c->operands_len = c->options.operands_len;
    assert(c->operands_len >= command->min && c->operands_len <= command->max);
    return hf__cli_config_use(c);
}

/* Show an error that was not shown yet, and end the list. */
static void command_report(struct command_ctx *c, enum hf_status status)
{
    command_check(c);
    if (status != HF_OK && c->ends == CLI_OK)
        hf__command_failed(c);
    if (c->listing)
        c->ends = hf__rows_end(c->rows, c->next, c->ends);
    c->ends = hf__cli_flushed(c->cli, c->ends);
}

static void command_work(struct command_ctx *c)
{
    const struct command *command = c->command;
    enum hf_status status = command->check ? command->check(c) : HF_OK;

    if (status != HF_OK)
        command_report(c, status);
    else if (!c->database || command_open(c))
        command_report(c, command->body(c));
    else if (command->unopened)
        command->unopened(c);
    command_close(c);
    assert(!c->db && !c->blobs && !c->place); /* (2) */
    if (command->end)
        command->end(c);
}

int hf__command_run(struct cli *cli, const struct command *command,
                    const struct options_table *table, size_t args_len, const char *const *args)
{
    struct command_ctx c = {
        .cli = cli, .scope = cli->scope, .command = command, .table = table, .ends = CLI_OK};
    struct guard guard;

    if (command->run)
        return command->run(cli, args_len, args);
    c.name = table->name;
    assert(command->body && command->min <= command->max);
    assert(!command->place || command->has_database);
    assert(!command->list || command->table == COMMAND_LOOKS);
    if (!command_parse(&c, args_len, args))
        return c.ends;
    if (!command->guarded) {
        command_work(&c);
        return c.ends;
    }
    if (cli->guard) { /* inside of the shell, whose guard has the signals */
        c.guard = cli->guard;
        cli->ends_by_signal = command->ends_by_signal;
        if (command->reports_signal)
            cli->guard = NULL;
        command_work(&c);
        cli->guard = c.guard;
        return c.ends;
    }
    c.guard = &guard;
    if (hf__guard_command(cli, c.name, command->ends_by_signal, &guard, &c.ends)) {
        if (command->reports_signal)
            cli->guard = NULL;
        command_work(&c);
    }
    hf__guard_command_end(cli, &guard);
    return c.ends;
}
