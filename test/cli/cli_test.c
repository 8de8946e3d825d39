/* cli/cli_test.c: finding commands, and what `serve` makes of its options. */
#include "cli/frame/command.h"
#include "cli/serve/holder.h"
#include "cli/serve/serve.h"
#include "test.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* A command line whose output is kept. */
struct desk {
    struct cli cli;
    char *out;
    char *err;
    size_t out_len;
    size_t err_len;
    int ends;
};

static int run_mark(struct cli *cli, size_t args_len, const char *const *args)
{
    fprintf(cli->out, "one");
    for (size_t i = 0; i < args_len; i++)
        fprintf(cli->out, " %s", args[i]);
    return 0;
}

static int run_pair(struct cli *cli, size_t args_len, const char *const *args)
{
    (void)args;
    fprintf(cli->out, "pair %zu", args_len);
    return 7;
}

static const struct options_table pair_options = {.name = "table list", .about = "Lists."};

static const struct command mark_command = {.run = run_mark};
static const struct command pair_command = {.run = run_pair};

static const struct cli_command commands[] = {
    {"serve", "serves", &hf__serve_options, &mark_command},
    {"table list", "lists", &pair_options, &pair_command},
    {"table show", "shows", &pair_options, &pair_command},
    {"hidden", NULL, NULL, &mark_command},
};

static const char *no_env(const char *name)
{
    (void)name;
    return NULL;
}

static const struct cli_group groups[] = {{"Data", "table"}, {"Rest", ""}};

static const char *some_env(const char *name)
{
    if (strcmp(name, "HOLDFAST_DB_PATH") == 0)
        return "/from/env";
    return strcmp(name, "AWS_ACCESS_KEY_ID") == 0 ? "AKIA" : NULL;
}

static void desk_open(struct desk *d, struct test *t)
{
    *d = (struct desk){.cli = {.scope = hf_scope_new(test_env(t)),
                               .width = 80,
                               .env = no_env,
                               .commands = commands,
                               .commands_len = sizeof(commands) / sizeof(commands[0]),
                               .groups = groups,
                               .groups_len = sizeof(groups) / sizeof(groups[0])}};
    d->cli.out = open_memstream(&d->out, &d->out_len);
    d->cli.err = open_memstream(&d->err, &d->err_len);
}

static void desk_close(struct desk *d)
{
    fclose(d->cli.out);
    fclose(d->cli.err);
    free(d->out);
    free(d->err);
    hf_scope_free(d->cli.scope);
}

#define ARGS(...) ((const char *[]){__VA_ARGS__})
#define COUNT(...) (sizeof(ARGS(__VA_ARGS__)) / sizeof(const char *))

/* Run and compare how it ended; what was written is in d->out and d->err. */
static void run(struct desk *d, int ends, size_t len, const char *const *args)
{
    rewind(d->cli.out);
    rewind(d->cli.err);
    CHECK_INT(ends, hf__cli_run(&d->cli, len, args));
    fflush(d->cli.out);
    fflush(d->cli.err);
}
#define RUN(ends, ...) run(&d, (ends), COUNT(__VA_ARGS__), ARGS(__VA_ARGS__))
#define CHECK_OUT(text) CHECK_STR(text, hf_str_of(d.out, d.out_len))
#define CHECK_ERR(text) CHECK_STR(text, hf_str_of(d.err, d.err_len))

TEST(cli, commands_are_found_by_one_or_two_words)
{
    struct desk d;

    desk_open(&d, t);
    RUN(0, "serve", "a", "b");
    CHECK_OUT("one a b");
    RUN(7, "table", "list", "x");
    CHECK_OUT("pair 1");
    RUN(0, "hidden");
    CHECK_OUT("one");
    RUN(CLI_USAGE, "sevre");
    CHECK_ERR("holdfast: unknown command 'sevre'; did you mean 'serve'?\n");
    RUN(CLI_USAGE, "tabel", "list");
    CHECK_ERR("holdfast: unknown command 'tabel'; did you mean 'table list'?\n");
    RUN(CLI_USAGE, "hiden");
    CHECK_ERR("holdfast: unknown command 'hiden'\nTry 'holdfast --help' for a list.\n");
    RUN(CLI_USAGE, "table");
    RUN(CLI_USAGE, "table", "lits");
    CHECK_ERR("holdfast: unknown command 'table lits'; did you mean 'table list'?\n");
    RUN(CLI_USAGE, "table", "burn");
    CHECK_ERR("holdfast: unknown command 'table burn'\nTry 'holdfast table --help' for a list.\n");
    RUN(CLI_USAGE, "serve2x9");
    RUN(CLI_USAGE, "--port", "1");
    CHECK_ERR("holdfast: unknown option '--port'\n"
              "Options of a command come after it: 'holdfast COMMAND --port'.\n");
    desk_close(&d);
}

TEST(cli, help_and_version)
{
    struct desk d;

    desk_open(&d, t);
    RUN(0, "--version");
    CHECK(strncmp(d.out, "holdfast 0.", 11) == 0);
    CHECK(strstr(d.out, "sinks") == NULL);
    RUN(0, "version");
    CHECK(strstr(d.out, "\nbroker sinks: ") != NULL);
    CHECK(strstr(d.out, "\nbuilt with RocksDB: ") != NULL);
    RUN(0, "--help");
    CHECK(strstr(d.out, "\nData:\n  table         list, show\n"
                        "\nRest:\n  serve         serves\n"
                        "  version       show the version and the build options\n") != NULL);
    CHECK(strstr(d.out, "\n  help exit-codes   what") != NULL);
    CHECK(strstr(d.out, "DynamoDB-compatible database and a set of") != NULL);
    CHECK(strstr(d.out, "hidden") == NULL);
    RUN(0, "help", "commands");
    CHECK_OUT("Data:\n  table list    lists\n  table show    shows\n"
              "\nRest:\n  serve         serves\n");
    d.cli.nouns = &(struct cli_noun){"table", "all about tables", "They have rows.", NULL};
    d.cli.nouns_len = 1;
    RUN(0, "--help");
    CHECK(strstr(d.out, "\nData:\n  table         all about tables\n") != NULL);
    RUN(0, "table", "--help");
    CHECK(strncmp(d.out,
                  "Usage: holdfast table COMMAND [options]\n\nThey have rows.\n\nCommands:\n",
                  68) == 0);
    d.cli.nouns_len = 0;
    d.cli.styled = true;
    RUN(0, "help", "commands");
    CHECK(strncmp(d.out, "\033[1mData:\033[0m\n", 14) == 0);
    d.cli.styled = false;
    RUN(0, "help", "table", "list");
    CHECK(strncmp(d.out, "Usage: holdfast table list\n", 27) == 0);
    RUN(0, "table", "--help");
    CHECK_OUT("Usage: holdfast table COMMAND [options]\n"
              "\nCommands:\n"
              "  table list    lists\n"
              "  table show    shows\n"
              "\nExamples:\n"
              "\nRun 'holdfast table COMMAND --help' for the options of a command.\n");
    RUN(0, "help", "serve");
    CHECK(strncmp(d.out, "Usage: holdfast serve [options]\n", 32) == 0);
    for (const char *line = d.out; line < d.out + d.out_len; line += strcspn(line, "\n") + 1)
        CHECK(strcspn(line, "\n") <= 80);
    RUN(CLI_USAGE, "help", "nothing-like-it");
    run(&d, CLI_USAGE, 0, NULL);
    CHECK(strncmp(d.out, "Usage: holdfast COMMAND", 23) == 0);
    desk_close(&d);
}

TEST(cli, completion_of_commands)
{
    struct desk d;

    desk_open(&d, t);
    RUN(0, "complete", "");
    CHECK_OUT("help\nversion\nserve\ntable\n");
    RUN(0, "complete", "se");
    CHECK_OUT("serve\n");
    RUN(0, "complete", "table", "");
    CHECK_OUT("list\nshow\n");
    RUN(0, "complete", "table", "s");
    CHECK_OUT("show\n");
    RUN(0, "complete", "nothing", "s");
    CHECK_OUT("");
    RUN(0, "complete", "serve", "--sync", "b");
    CHECK_OUT("batch\n");
    RUN(0, "complete", "serve", "-db");
    CHECK_OUT("-dbPath\n");
    RUN(0, "complete", "help", "se");
    CHECK_OUT("serve\n");
    RUN(0, "complete", "help", "f");
    CHECK_OUT("files\n");
    RUN(0, "complete", "--db", "x", "table", "s");
    CHECK_OUT("show\n");
    RUN(0, "complete", "--e");
    CHECK_OUT("--env-file\n");
    desk_close(&d);
}

TEST(cli, output_that_is_lost_is_a_failure)
{
    struct desk d;
    FILE *kept;

    desk_open(&d, t);
    kept = d.cli.out;
    d.cli.out = fopen("/dev/full", "w");
    if (d.cli.out) {
        CHECK_INT(CLI_FAILED, hf__cli_run(&d.cli, 1, ARGS("--version")));
        fclose(d.cli.out);
    }
    d.cli.out = kept;
    desk_close(&d);
}

/* ---- serve ---------------------------------------------------------------------------------- */

static void plan(struct desk *d, bool fine, struct serve_plan *p, size_t len,
                 const char *const *args)
{
    rewind(d->cli.out);
    rewind(d->cli.err);
    CHECK(hf__serve_plan(&d->cli, len, args, p, &d->ends) == fine);
    fflush(d->cli.out);
    fflush(d->cli.err);
}
#define PLAN(...) plan(&d, true, &p, COUNT(__VA_ARGS__), ARGS(__VA_ARGS__))
#define REFUSED(error, ...)                                                                        \
    do {                                                                                           \
        plan(&d, false, &p, COUNT(__VA_ARGS__), ARGS(__VA_ARGS__));                                \
        CHECK_INT(CLI_USAGE, d.ends);                                                              \
        CHECK_ERR("holdfast serve: " error "\n");                                                  \
    } while (0)
#define TRY_HELP "\nTry 'holdfast serve --help'."

TEST(serve, defaults)
{
    struct serve_plan p;
    struct desk d;

    desk_open(&d, t);
    plan(&d, true, &p, 0, NULL);
    CHECK_STR("embedded:holdfast.db", p.url);
    CHECK_STR("localhost", p.settings.host);
    CHECK_INT(8000, p.settings.port);
    CHECK(!p.open && !p.keys.len && !p.sockets.len && !p.settings.cors.ptr);
    CHECK_STR("http://127.0.0.1:8000", hf__serve_url(d.cli.scope, &p, 8000));
    d.cli.env = some_env;
    plan(&d, true, &p, 0, NULL);
    CHECK_STR("embedded:/from/env", p.url);
    CHECK_INT(0, p.keys.len); /* AWS's variables are not ours to read */
    PLAN("--in-memory");
    CHECK_STR("memory:", p.url);
    PLAN("--db-path", "here");
    CHECK_STR("embedded:here", p.url);
    desk_close(&d);
}

TEST(serve, options_of_dynamodb_local)
{
    struct serve_plan p;
    const char *directory = test_directory(t);
    struct desk d;
    char expected[300];

    desk_open(&d, t);
    PLAN("-inMemory", "-sharedDb", "-port", "8001", "-cors", "*", "-delayTransientStatuses",
         "-optimizeDbBeforeStartup", "-disableTelemetry");
    CHECK_STR("memory:", p.url);
    CHECK_INT(8001, p.settings.port);
    CHECK_STR("*", p.settings.cors);
    CHECK(p.settings.delay_statuses && p.settings.shared_db);
    PLAN("-dbPath", directory);
    snprintf(expected, sizeof(expected), "embedded:%s/holdfast.db", directory);
    CHECK_STR(expected, p.url);
    REFUSED("-inMemory and -dbPath cannot be combined", "-inMemory", "-dbPath", ".");
    REFUSED("--in-memory and --db-path cannot be combined", "--in-memory", "--db-path", "x");
    REFUSED("--db-path and -dbPath cannot be combined", "--db-path", "x", "-dbPath", ".");
    REFUSED("-dbPath: '/nowhere/x': No such file or directory", "-dbPath", "/nowhere/x");
    REFUSED("-dbPath: '/dev/null' is not a directory", "-dbPath", "/dev/null");
    plan(&d, false, &p, 1, ARGS("-help"));
    CHECK_INT(0, d.ends);
    desk_close(&d);
}

TEST(serve, other_machines_need_keys)
{
    struct serve_plan p;
    struct desk d;
    char path[300];
    FILE *file;

    desk_open(&d, t);
    REFUSED("0.0.0.0 can be reached from other machines: specify who may connect with "
            "--credentials FILE, or allow everyone with --insecure-any-key",
            "--host", "0.0.0.0");
    REFUSED(":: can be reached from other machines: specify who may connect with "
            "--credentials FILE, or allow everyone with --insecure-any-key",
            "--host", "::");
    plan(&d, false, &p, 2, ARGS("--host", "192.0.2.1"));
    plan(&d, false, &p, 2, ARGS("--host", "db.example"));
    plan(&d, false, &p, 2, ARGS("--host", "127.0.0.1.example"));
    PLAN("--host", "127.3.2.1");
    CHECK(!p.open);
    PLAN("--host", "::1");
    CHECK(!p.open);
    CHECK_STR("http://[::1]:80", hf__serve_url(d.cli.scope, &p, 80));
    PLAN("--host", "localhost");
    CHECK(!p.open);
    CHECK_STR("localhost", p.settings.host);
    PLAN("--host", "0.0.0.0", "--insecure-any-key");
    CHECK(p.open);
    CHECK_STR("http://127.0.0.1:80", hf__serve_url(d.cli.scope, &p, 80));

    snprintf(path, sizeof(path), "%s/keys", test_directory(t));
    REFUSED("/nowhere/keys: No such file or directory", "--credentials", "/nowhere/keys");
    file = fopen(path, "w");
    fputs("[a]\naws_access_key_id=A\naws_secret_access_key=B\n", file);
    fclose(file);
    CHECK(chmod(path, 0600) == 0);
    PLAN("--host", "0.0.0.0", "--credentials", path);
    CHECK(p.open);
    CHECK_INT(1, p.keys.len);
    REFUSED("--credentials and --insecure-any-key cannot be combined", "--credentials", path,
            "--insecure-any-key");
    desk_close(&d);
}

TEST(serve, what_does_not_go_together)
{
    struct serve_plan p;
    struct desk d;

    desk_open(&d, t);
    REFUSED("--tls-cert also needs --tls-key", "--tls-cert", "x");
    REFUSED("--tls-key also needs --tls-cert", "--tls-key", "x");
    PLAN("--tls-key", "/dev/null", "--tls-cert", "/dev/null", "--port", "1");
    REFUSED("--tls-key: '/nowhere': No such file or directory", "--tls-cert", "/dev/null",
            "--tls-key", "/nowhere");
    CHECK_STR("https://127.0.0.1:1", hf__serve_url(d.cli.scope, &p, 1));
    REFUSED("--sync-window needs --sync batch", "--sync-window", "5ms");
    PLAN("--sync-window", "5ms", "--sync", "batch");
    CHECK_INT(5, p.settings.sync_window_ms);
    REFUSED("--port: '70000' is out of range: use 0 to 65535" TRY_HELP, "--port", "70000");
    REFUSED("--loops: '0' is out of range: use 1 to 256" TRY_HELP, "--loops", "0");
    REFUSED("unknown option '--in-memroy'; did you mean --in-memory?" TRY_HELP, "--in-memroy");
    REFUSED("unexpected argument 'x'" TRY_HELP, "x");
    desk_close(&d);
}

TEST(serve, who_holds_a_lock)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *directory = test_directory(t);
    int fd = open(directory, O_RDONLY | O_DIRECTORY);
    struct holder holder;
    char expected[64];

    CHECK_INT(0, hf__holder_find(s, directory).pid);
    CHECK(flock(fd, LOCK_EX) == 0);
    snprintf(expected, sizeof(expected), "process %ld (test_cli)", (long)getpid());
    holder = hf__holder_find(s, directory);
    CHECK_INT(getpid(), holder.pid);
    CHECK_STR(expected, holder.text);
    CHECK(!holder.server && !holder.started_us && !holder.url.ptr);
    CHECK_STR("wait until it ends, or share the directory through a server: run 'holdfast serve "
              "--db-path shop.db' and give its URL as --db",
              hf__holder_advice(s, &holder, "shop.db"));
    close(fd);
    CHECK_INT(0, hf__holder_find(s, "/nowhere/x").pid);
    hf_scope_free(s);
}
