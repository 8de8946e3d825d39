/*
 * cli/frame/main.c: the holdfast command. A command is a line in the table below, and its options and a
 * struct command in a file cmd_*.c.
 */
#include "cli/frame/cli.h"
#include "cli/frame/commands.h"
#include "cli/serve/serve.h"

#include "base/stdio_fds.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { WIDTH_MIN = 60, WIDTH_USUAL = 80, WIDTH_MAX = 100 };

#define COMMAND(words, name, summary)                                                              \
    {                                                                                              \
        words, summary, &hf__##name##_options, &hf__##name##_command                               \
    }

static const struct cli_command commands[] = {
    COMMAND("serve", serve, "serve a database over DynamoDB's protocol"),
    COMMAND("check", check, "verify everything in a database"),
    COMMAND("healthcheck", healthcheck, "check that the database answers"),
    COMMAND("top", top, "show what a server is doing now"),
    COMMAND("console", console, "look at any database with a browser"),
    COMMAND("bench", bench, "measure how fast a database is"),
    COMMAND("doctor", doctor, "find out what is wrong, and what to do about it"),
    COMMAND("item get", item_get, "print an item"),
    COMMAND("item put", item_put, "store an item"),
    COMMAND("item update", item_update, "change attributes of an item"),
    COMMAND("item delete", item_delete, "delete an item"),
    COMMAND("query", query, "print the items with one hash key"),
    COMMAND("scan", scan, "print the items of a table"),
    COMMAND("sql", sql, "run a statement of PartiQL"),
    COMMAND("export", export, "write the items of tables to files"),
    COMMAND("import", import, "store the items of files in tables"),
    COMMAND("snapshot save", snapshot_save, "write a data directory to one file"),
    COMMAND("shell", shell, "run statements and commands as you type them"),
    COMMAND("table create", table_create, "create a table"),
    COMMAND("table ls", table_ls, "list tables"),
    COMMAND("table show", table_show, "show a table"),
    COMMAND("table update", table_update, "change settings and indexes of a table"),
    COMMAND("table stats", table_stats, "show the size of a table and what is in it"),
    COMMAND("table truncate", table_truncate, "delete all items of a table"),
    COMMAND("table copy-schema", table_copy_schema, "create an empty table like another one"),
    COMMAND("table delete", table_delete, "delete a table"),
    COMMAND("lock run", lock_run, "run a program while holding a lock"),
    COMMAND("lock ls", lock_ls, "list locks and their holders"),
    COMMAND("lock show", lock_show, "show a lock"),
    COMMAND("lock break", lock_break, "take a lock away from its holder"),
    COMMAND("lock import", lock_import, "take over the locks of another library's table"),
    COMMAND("copy", copy, "copy tables to another database, and follow their changes"),
    COMMAND("cutover", cutover, "let the copy of a database take over"),
    COMMAND("backup run", backup_run, "back up a data directory continuously"),
    COMMAND("backup ls", backup_ls, "show what a backup has"),
    COMMAND("backup verify", backup_verify, "verify everything in a backup"),
    COMMAND("backup restore", backup_restore, "make a database as it was at a moment"),
    COMMAND("kv get", kv_get, "print the value of a key"),
    COMMAND("kv set", kv_set, "set the value of a key"),
    COMMAND("kv delete", kv_delete, "delete a key"),
    COMMAND("kv ls", kv_ls, "list keys and values"),
    COMMAND("kv clear", kv_clear, "delete many keys"),
    COMMAND("kv index", kv_index, "add a namespace index to a table"),
    COMMAND("kv sweep", kv_sweep, "delete large values that no key references"),
    COMMAND("kv import", kv_import, "copy the values of another library's table"),
    COMMAND("counter add", counter_add, "add to a counter"),
    COMMAND("counter get", counter_get, "print counters"),
    COMMAND("counter set", counter_set, "set a counter"),
    COMMAND("counter delete", counter_delete, "delete a counter"),
    COMMAND("counter ls", counter_ls, "list counters"),
    COMMAND("counter import", counter_import, "copy the counters of another library's table"),
    COMMAND("once run", once_run, "run a program unless it has already succeeded"),
    COMMAND("once show", once_show, "show whether a job is done"),
    COMMAND("once ls", once_ls, "list jobs and their states"),
    COMMAND("once clear", once_clear, "forget a job, so that it can run again"),
    COMMAND("limit check", limit_check, "count a call, if the limit allows it"),
    COMMAND("limit peek", limit_peek, "show whether a call would be allowed"),
    COMMAND("limit reset", limit_reset, "reset a limit"),
    COMMAND("records put", records_put, "store records to be processed"),
    COMMAND("records ls", records_ls, "list records"),
    COMMAND("records retry", records_retry, "process failed records again"),
    COMMAND("records adopt", records_adopt, "find records that other programs stored"),
    COMMAND("records process", records_process, "run a program for each unprocessed record"),
    COMMAND("outbox emit", outbox_emit, "store an event for delivery"),
    COMMAND("outbox import", outbox_import, "store the events of a file"),
    COMMAND("outbox adopt", outbox_adopt, "move the events of another library's table"),
    COMMAND("outbox ls", outbox_ls, "list events"),
    COMMAND("outbox failed", outbox_failed, "list dead letters"),
    COMMAND("outbox retry", outbox_retry, "deliver dead letters again"),
    COMMAND("outbox discard", outbox_discard, "delete dead letters or pending events"),
    COMMAND("outbox stats", outbox_stats, "print the backlog, lag and failures"),
    COMMAND("outbox drain", outbox_drain, "deliver all events that are due, then end"),
    COMMAND("outbox pause", outbox_pause, "let all relays of an outbox pause"),
    COMMAND("outbox resume", outbox_resume, "let paused relays go on"),
    COMMAND("outbox cleanup", outbox_cleanup, "delete old events from the history"),
    COMMAND("outbox replay", outbox_replay, "deliver events of the history again"),
    COMMAND("outbox sweep", outbox_sweep, "delete large payloads that no event references"),
    COMMAND("relay", relay, "deliver the events of an outbox"),
    COMMAND("events append", events_append, "append events to a stream"),
    COMMAND("events read", events_read, "print the events of a stream"),
    COMMAND("events all", events_all, "print the events of all streams in order"),
    COMMAND("events get", events_get, "print an event"),
    COMMAND("events caused", events_caused, "print the events that an event caused"),
    COMMAND("events correlated", events_correlated, "print the events with a correlation id"),
    COMMAND("events tree", events_tree, "print an event and everything it caused"),
    COMMAND("events subscribe", events_subscribe,
            "print events as they are appended, or run a program"),
    COMMAND("events subscription", events_subscription, "show the state of a subscription"),
    COMMAND("events rebuild", events_rebuild, "restart a subscription from the beginning"),
    COMMAND("events forget", events_forget, "delete a subscription"),
    COMMAND("events parked", events_parked, "list parked events"),
    COMMAND("events replay", events_replay, "handle parked events again"),
    COMMAND("events discard", events_discard, "drop parked events"),
    COMMAND("events consume", events_consume, "handle events as a member of a consumer group"),
    COMMAND("events group", events_group, "show the state of a consumer group"),
    COMMAND("events revert", events_revert, "revert an event and everything it caused"),
    COMMAND("events info", events_info, "show the state of a stream"),
    COMMAND("events ls", events_ls, "list streams"),
    COMMAND("events truncate", events_truncate, "hide events before a version"),
    COMMAND("events limit", events_limit, "limit a stream by age or number of events"),
    COMMAND("events delete", events_delete, "delete a stream permanently"),
    COMMAND("events archive", events_archive, "remove a stream from the global order"),
    COMMAND("events unarchive", events_unarchive, "put a stream back into the global order"),
    COMMAND("events sweep", events_sweep, "delete events and blobs that nobody can read"),
    COMMAND("events export", events_export, "write all events as JSON lines"),
    COMMAND("events import", events_import, "append the events of an export"),
    COMMAND("events adopt", events_adopt, "import the table of another event store"),
    COMMAND("events verify", events_verify, "verify that no event was changed"),
    COMMAND("blobs put", blobs_put, "store a file, named by its digest"),
    COMMAND("blobs get", blobs_get, "print the blob with a digest"),
    COMMAND("blobs ls", blobs_ls, "list blobs"),
    COMMAND("completion", completion, "print a completion script for a shell"),
    COMMAND("iam outbox", iam_outbox, "print the IAM policy that an outbox needs"),
    COMMAND("iam events", iam_events, "print the IAM policy that an event store needs"),
    COMMAND("iam lock", iam_lock, "print the IAM policy that locks need"),
    COMMAND("iam kv", iam_kv, "print the IAM policy that keys and values need"),
    COMMAND("iam counter", iam_counter, "print the IAM policy that counters need"),
    COMMAND("iam once", iam_once, "print the IAM policy that run-once jobs need"),
    COMMAND("iam limit", iam_limit, "print the IAM policy that limits need"),
    COMMAND("iam records", iam_records, "print the IAM policy that records need"),
    COMMAND("iam streams", iam_streams, "print the IAM policy that stream consumers need"),
    COMMAND("config ls", config_ls, "list named databases"),
    COMMAND("config show", config_show, "show a named database"),
    COMMAND("config set", config_set, "name a database, or change what is said of it"),
    COMMAND("config unset", config_unset, "forget a named database, or something of it"),
    COMMAND("config path", config_path, "print where the config file is"),
    COMMAND("call", call, "call a method of the interface for other languages"),
    COMMAND("mcp", mcp, "serve the database to language models"),
    COMMAND("streams tail", streams_tail, "print the changes of a table"),
    COMMAND("demo", demo, "run an order service for a minute, and check it"),
};

/* The headings of the help. */
static const struct cli_group groups[] = {
    {"Data",
     "item query scan sql shell table import export copy cutover backup snapshot streams blobs"},
    {"Patterns", "lock kv counter once limit records outbox relay events"},
    {"Server", "serve check healthcheck top"},
    {"Tools", "doctor bench demo call mcp config iam completion"},
};

/* What is said of several commands at once, and where manual pages refer to. */
static const struct cli_noun nouns[] = {
    {"item", "get, put, update and delete an item", NULL, "query scan sql table"},
    {"query", NULL, NULL, "item scan sql table"},
    {"scan", NULL, NULL, "item query sql table"},
    {"sql", NULL, NULL, "item query scan table"},
    {"shell", NULL, NULL, "config item query sql"},
    {"table", "create, change, list, show and delete tables", NULL, "export import item streams"},
    {"import", NULL, NULL, "export table"},
    {"export", NULL, NULL, "copy import snapshot table"},
    {"copy", NULL, NULL, "cutover export table"},
    {"cutover", NULL, NULL, "copy"},
    {"backup", "continuous backups: make, show, verify and restore them",
     "The journal of a data directory is copied to another place while it is written, with a "
     "snapshot of everything now and then. The state of any moment can be restored from that. "
     "'holdfast serve --backup-to' makes such a backup all the time.",
     "copy export serve snapshot"},
    {"snapshot", "write a data directory to one file", NULL, "backup export serve"},
    {"streams", "print the changes of a table", NULL, "iam table"},
    {"blobs", "store and read files that are too large for an item",
     "Blobs are bytes that are too many for an item. They are in a directory or in S3, named by "
     "their digest; outboxes, event stores and keys refer to them.",
     "events kv outbox"},
    {"lock", "run a program while holding a lock; list and break locks",
     "A lock is a lease on a name, in a table. A holder that is silent for a whole lease is replaced, "
     "and may not notice: give the fence, a number that grows with every holder, to what the lock "
     "protects.",
     "iam once"},
    {"kv", "keys and values, with a time to live", NULL, "blobs counter iam"},
    {"counter", "counters that many programs add to", NULL, "iam kv limit"},
    {"once", "run a program unless it has already succeeded", NULL, "iam lock"},
    {"limit", "rate limits and lockouts", NULL, "counter iam"},
    {"records", "run a program for each waiting record", NULL, "iam outbox"},
    {"outbox", "store events for delivery, and look after them", NULL, "blobs events iam relay"},
    {"relay", NULL, NULL, "iam outbox"},
    {"events", "an event store: append, read, subscribe, export", NULL, "blobs iam outbox"},
    {"serve", NULL, NULL, "check console healthcheck import snapshot table"},
    {"console", NULL, NULL, "serve top"},
    {"check", NULL, NULL, "serve"},
    {"healthcheck", NULL, NULL, "serve"},
    {"top", NULL, NULL, "doctor serve"},
    {"doctor", NULL, NULL, "check healthcheck top"},
    {"bench", NULL, NULL, "doctor top"},
    {"call", NULL, NULL, "item mcp sql"},
    {"demo", NULL, NULL, "events outbox serve"},
    {"config", "names for databases, so that --db @NAME is enough", NULL, "doctor"},
    {"iam", "print the IAM policies that patterns need on AWS", NULL,
     "counter events kv limit lock once outbox records streams"},
};

static const char *get_variable(const char *name)
{
    return getenv(name);
}

/* There is one thread so far. */
static bool set_variable(const char *name, const char *value)
{
    return setenv(name, value, 1) == 0;
}

/* How wide the terminal is; 0: there is none, or it does not know. */
static size_t screen_columns(void)
{
    struct winsize size;

    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

/* As wide as the terminal, within reason: long lines are hard to read. */
static size_t help_width(void)
{
    size_t columns = screen_columns();

    if (columns == 0)
        return WIDTH_USUAL;
    if (columns < WIDTH_MIN)
        return WIDTH_MIN;
    return columns > WIDTH_MAX ? WIDTH_MAX : columns;
}

/*
 * A command line of DynamoDB Local is one of `serve`, as images have it that replace amazon/dynamodb-local: "-jar
 * DynamoDBLocal.jar -inMemory", with options of Java before it or not, and also where the program is called java.
 */
static bool is_local(const char *program, size_t args_len, const char *const *args)
{
    const char *slash = program ? strrchr(program, '/') : NULL;

    if (program && strcmp(slash ? slash + 1 : program, "java") == 0)
        return true;
    return args_len && (strcmp(args[0], "-jar") == 0 || strncmp(args[0], "-D", 2) == 0 ||
                        strncmp(args[0], "-X", 2) == 0);
}

static int run_command(struct cli *cli, const char *program, size_t args_len,
                       const char *const *args)
{
    const char **more;

    if (!is_local(program, args_len, args))
        return hf__cli_run(cli, args_len, args);
    more = hf_scope_alloc(cli->scope, (args_len + 1) * sizeof(*more));
    if (!more)
        return hf__cli_fail(cli, "", CLI_FAILED, "out of memory");
    more[0] = "serve";
    if (args_len)
        memcpy(more + 1, args, args_len * sizeof(*more));
    return hf__cli_run(cli, args_len + 1, more);
}

int main(int argc, char **argv)
{
    bool filled = stdio_fds_fill(); /* before any file is opened */
    struct cli cli = {.scope = hf_scope_new(NULL),
                      .out = stdout,
                      .err = stderr,
                      .width = help_width(),
                      .terminal = isatty(STDOUT_FILENO) == 1,
                      .columns = screen_columns(),
                      .env = get_variable,
                      .set_env = set_variable,
                      .commands = commands,
                      .commands_len = sizeof(commands) / sizeof(commands[0]),
                      .groups = groups,
                      .groups_len = sizeof(groups) / sizeof(groups[0]),
                      .nouns = nouns,
                      .nouns_len = sizeof(nouns) / sizeof(nouns[0])};
    int ends;

    if (!filled)
        return CLI_FAILED;
    if (!cli.scope)
        return hf__cli_fail(&cli, "", CLI_FAILED, "out of memory");
    cli.styled = hf__cli_is_styled(&cli);
    ends = run_command(&cli, argc > 0 ? argv[0] : NULL, argc > 0 ? (size_t)argc - 1 : 0,
                       (const char *const *)argv + 1);
    hf_scope_free(cli.scope);
    return ends;
}
