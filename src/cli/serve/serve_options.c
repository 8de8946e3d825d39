/*
 * cli/serve/serve_options.c: the options of `holdfast serve`, and which of them go together.
 *
 * DynamoDB Local's options are here under their names. Most are one of ours; -dbPath is not: there
 * it is a directory to put a file into, so here the database is DIR/holdfast.db, as the default is
 * holdfast.db in the working directory. --db-path is the database itself.
 *
 * What always holds of a plan:
 *
 *  (1) A server that other machines can reach has --credentials or --insecure-any-key.
 *  (2) Data is either in memory or at one path, and a path that was given is never replaced by memory.
 */
#include "cli/serve/serve.h"

#include "cli/frame/commands.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#undef OPTIONS_OF
#define OPTIONS_OF struct serve_settings
#define DB_NAME "holdfast.db"
#define FIELD(name_) .offset = offsetof(struct serve_settings, name_)

#define MINUTE_MS (60 * 1000)
#define KIB ((uint64_t)1024)
#define GIB (KIB * KIB * KIB)

/* A flag that only DynamoDB Local has. */
#define LOCAL_FLAG(name_, field, text_)                                                            \
    {                                                                                              \
        .kind = OPTION_FLAG, .local = name_, .text = text_, FIELD(field)                           \
    }

enum { SOCKETS_FIRST = 3 };

static const struct option_spec specs[] = {
    OPT_TEXT("host", "ADDRESS", host,
             "Address to listen on; localhost is 127.0.0.1 and ::1. An address that other machines "
             "can reach needs --credentials or --insecure-any-key.",
             .fallback = "localhost", .heading = "Listening"),
    {.kind = OPTION_NUMBER,
     .letter = 'p',
     .name = "port",
     .local = "port",
     .value = "PORT",
     .max = 65535,
     .fallback = "8000",
     .env = "HOLDFAST_PORT",
     .text = "Port to listen on; with 0 the system picks a free one, which is printed.",
     FIELD(port)},
    OPT_LIST(
        "allow-host", "NAME", hosts,
        "Accept requests for this host name, in addition to addresses and localhost. While any key "
        "is accepted, requests for other names are refused, which protects against DNS rebinding "
        "by web pages. '*.cluster.local' stands for all names that end like this, 'dotless' for all names without "
        "a dot, as containers have. '*' accepts all names: use it only where no browser can reach the "
        "server. Can be repeated."),
    OPT_TEXT(
        "cors", "ORIGINS", cors,
        "Origins whose web pages may send requests (CORS), separated by commas, or '*'. None by "
        "default.",
        .local = "cors"),
    OPT_TEXT("tls-cert", "FILE", tls_cert,
             "Serve HTTPS with this certificate chain (PEM). SIGHUP reloads it."),
    OPT_TEXT("tls-key", "FILE", tls_key, "Private key of the certificate (PEM)."),

    OPT_TEXT(
        "credentials", "FILE", credentials,
        "Access keys in the format of AWS's credentials file, one profile per key. Requests "
        "must be signed with one of them. The file must not be readable by other users. '-' is "
        "standard input. Without this option any key is accepted, from this machine only.",
        .env = "HOLDFAST_CREDENTIALS", .heading = "Access"),
    OPT_FLAG(
        "insecure-any-key", insecure_any_key,
        "Accept any key from any host: everyone who can reach the port can read and change all "
        "data. For containers and test networks."),
    OPT_TIME("clock-window", clock_window_ms, 1000, OPTION_DAY_MS,
             "Largest accepted difference between the time of a signature and the clock of the "
             "server. A presigned URL states its own lifetime instead (X-Amz-Expires, at most a "
             "week).",
             .fallback = "5m"),

    OPT_TEXT("db-path", "DIR", db_path, "Data directory; created if missing.", .fallback = DB_NAME,
             .env = "HOLDFAST_DB_PATH", .heading = "Data"),
    OPT_FLAG("in-memory", in_memory, "Keep all data in memory; it is lost on exit.",
             .local = "inMemory"),
    OPT_CHOICE("sync", "full batch none", sync,
               "When writes are synced to disk. full: before they are answered; batch: within "
               "--sync-window; none: when the system decides. If the machine crashes, full loses "
               "nothing, batch one window, none minutes of writes. If only the process crashes, "
               "nothing is lost.",
               .fallback = "full"),
    OPT_TIME(
        "sync-window", sync_window_ms, 1, MINUTE_MS,
        "With --sync batch: longest time until writes are synced, and so the most that a crash "
        "of the machine can lose.",
        .fallback = "100ms"),
    OPT_SIZE("memtable", memtable_bytes, 256 * KIB, 64 * GIB,
             "Memory for the newest writes (memtables).", .fallback = "64MiB"),
    OPT_SIZE("cache", cache_bytes, 64 * KIB, 1024 * GIB, "Memory for the block cache.",
             .fallback = "32MiB"),
    OPT_FLAG("compress", compress, "Compress data on disk (lz4)."),
    OPT_SIZE("reserve", reserve_bytes, KIB *KIB, 1024 * GIB,
             "Keep this much disk space free: below it only deletes are accepted. By default, what "
             "tables and their compaction may need."),
    OPT_TEXT(
        "buckets", "URL", buckets,
        "Where the buckets of ExportTableToPointInTime and ImportTable are: dir:PATH, with a "
        "folder for each bucket; s3://?endpoint=URL, a service that has them; s3://BUCKET/PREFIX, "
        "with a folder for each. Without it those operations are refused."),
    OPT_FLAG(
        "read-only", read_only,
        "Change nothing on disk and refuse writes with AccessDeniedException. Several servers can "
        "open one directory like this, also when the disk is full."),

    OPT_LIST(
        "init", "PATH", init,
        "Before serving, create the tables and store the items of this file or folder. See below. "
        "Can be repeated."),
    OPT_TEXT("snapshot", "FILE", snapshot,
             "Before serving, restore this file of 'holdfast snapshot save' if the database has no "
             "tables yet. --init comes after it."),

    OPT_TEXT(
        "backup-to", "PLACE", backup_to,
        "Copy every change to dir:PATH or s3://BUCKET/PREFIX while serving, so that the state of "
        "any moment can be restored: see holdfast-backup(1). The place is of this database "
        "alone.",
        .heading = "Continuous backup"),
    OPT_TIME("backup-window", backup_window_ms, 50, 60 * MINUTE_MS,
             "How old a change may become before it is copied. What is not copied yet is lost with "
             "the disk.",
             .fallback = "1s"),
    OPT_TIME("backup-snapshot", backup_snapshot_ms, 1000, 365 * (uint64_t)OPTION_DAY_MS,
             "How often a snapshot of everything is taken. A restore begins with one.",
             .fallback = "24h"),
    OPT_TIME("backup-retain", backup_retain_ms, 1000, 3650 * (uint64_t)OPTION_DAY_MS,
             "How far back a restore reaches; what is older is removed.", .fallback = "168h"),
    OPT_TEXT(
        "backup-key", "FILE", backup_key,
        "Encrypt the backup (AES-256-GCM) with the key in this file: 32 bytes or 64 hexadecimal "
        "digits, as 'openssl rand -hex 32' prints. Without the file no backup can be restored."),
    OPT_SIZE(
        "backup-journal", backup_journal_bytes, 1024 * 1024, 1024 * GIB,
        "Journal that is kept while the place cannot be reached. Beyond that, a new snapshot is "
        "taken when it is back. Writes are never refused for it.",
        .fallback = "1GiB"),

    OPT_TEXT("region", "NAME", region,
             "Region in ARNs and stream records. Clients may sign for any region.",
             .fallback = "us-east-1", .heading = "Behaviour"),
    OPT_TEXT("account", "NUMBER", account, "Account number in ARNs, twelve digits.",
             .fallback = "123456789012"),
    OPT_CHOICE("wording", "classic 2026", wording,
               "Wording of error messages: as DynamoDB had them until 2025, or since 2026.",
               .fallback = "classic"),
    OPT_CHOICE(
        "profile", "dynamodb alternator dynamodb-local", profile,
        "Refuse the operations that this other database does not have: to try a program before "
        "it moves to ScyllaDB's Alternator or DynamoDB Local.",
        .fallback = "dynamodb"),
    OPT_NUMBER("stream-shards", stream_shards, 1, 64,
               "Number of shards of a stream when it is enabled.", .fallback = "4"),

    OPT_NUMBER(
        "max-tables", max_tables, 1, 1000000,
        "Largest number of tables; the default is what DynamoDB allows per account and region. "
        "Each takes some 17 KiB of memory, more with indexes. Beyond it CreateTable and "
        "RestoreTableFromBackup fail with LimitExceededException; existing tables stay.",
        .fallback = "2500", .heading = "Limits"),
    OPT_NUMBER("loops", loops, 1, 256, "Number of event loop threads; one per core by default."),
    OPT_NUMBER(
        "connections", connections, 1, 1000000,
        "Largest number of open connections. The limit on open files is raised as far as the "
        "system allows; if that is too low, fewer connections are accepted.",
        .fallback = "10000"),
    OPT_NUMBER(
        "workers", workers, 1, 256,
        "Number of threads for requests that take long; by default as many as event loops, but "
        "at least 2, with the console 4."),
    OPT_SIZE("memory", memory_bytes, 32 * 1024 * 1024, INT64_MAX,
             "Memory limit for requests and responses of all connections; by default 256MiB, or a "
             "quarter of the memory if that is less."),
    OPT_SIZE("input", input_bytes, 16 * 1024 * 1024, INT64_MAX,
             "Part of --memory for requests that have not arrived completely; half by default. "
             "While it is used up, large requests are refused."),
    OPT_TIME("head-timeout", head_ms, 1, OPTION_DAY_MS,
             "Time limit for receiving the headers of a request.", .fallback = "10s"),
    OPT_TIME("body-timeout", body_ms, 1, OPTION_DAY_MS, "Time limit for receiving a whole request.",
             .fallback = "60s"),
    OPT_TIME("idle-timeout", idle_ms, 1, OPTION_DAY_MS, "How long an idle connection is kept open.",
             .fallback = "5m"),
    OPT_TIME("drain-timeout", drain_ms, 1, OPTION_DAY_MS,
             "How long open requests may take when the server stops.", .fallback = "5s"),

    OPT_FLAG("admin", admin, "Enable /_holdfast/ for tests: faults, clock and snapshots.",
             .heading = "Monitoring and tests"),
    OPT_CHOICE("console", "on off", console,
               "The console, a page about the database, at /console/. By default it is on if only "
               "this machine can reach the server.",
               .fallback = "on"),
    OPT_TEXT("console-dir", "DIR", console_dir,
             "Read the files of the console from this directory, to work on them."),
    OPT_FLAG("access-log", access_log, "Log one line per request."),
    OPT_CHOICE(
        "log-format", "text json", log_format,
        "Log lines as text, or as JSON objects with time, level and message. The log goes to "
        "standard error.",
        .fallback = "text"),
    OPT_CHOICE("log-level", "error warn info debug", log_level,
               "Least severe level that is logged.", .fallback = "info"),

    {.heading = "Accepted from DynamoDB Local",
     .kind = OPTION_TEXT,
     .local = "dbPath",
     .value = "DIR",
     .text = "Like --db-path DIR/" DB_NAME "; DIR must exist. Cannot be combined with -inMemory.",
     FIELD(db_dir)},
    LOCAL_FLAG("sharedDb", shared_db, "No effect: all keys and regions share one database."),
    LOCAL_FLAG("delayTransientStatuses", delay_statuses,
               "No effect: table statuses change at once."),
    LOCAL_FLAG("optimizeDbBeforeStartup", optimize, "No effect: the database maintains itself."),
    LOCAL_FLAG("disableTelemetry", no_telemetry, "No effect: holdfast sends no telemetry."),
    {.kind = OPTION_TEXT,
     .local = "jar",
     .value = "FILE",
     .text =
         "No effect, as Java's options before it (-D..., -X...): a command line of DynamoDB Local "
         "works as it is.",
     FIELD(jar)},
};

static const struct option_example examples[] = {
    {"holdfast serve", "Serve the data directory holdfast.db on http://127.0.0.1:8000."},
    {"holdfast serve --in-memory --port 0", "An empty database for a test, on a free port."},
    {"holdfast serve --in-memory --init test/tables", "With the tables and items of a folder."},
    {"holdfast serve -inMemory -sharedDb -port 8000", "In place of DynamoDB Local."},
    {"holdfast serve --in-memory --host 0.0.0.0 --insecure-any-key \\\n"
     "      --allow-host dynamodb",
     "In a container that others reach by the host name dynamodb."},
    {"holdfast serve --host 0.0.0.0 --credentials keys.ini \\\n"
     "      --tls-cert chain.pem --tls-key key.pem",
     "For other machines, signed and encrypted."},
    {"aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000",
     "Try it. The aws command needs a region and keys; without --credentials any values work."},
};

const struct options_table hf__serve_options = {
    .name = "serve",
    .about =
        "Serve a database over DynamoDB's protocol. AWS SDKs and the aws command work with it "
        "when you set their endpoint URL. It replaces DynamoDB Local and accepts its options.\n\n"
        "When it is ready it prints where it listens, where the data is, and who has access. "
        "The log goes to standard error.",
    COMMAND_TABLE(specs, examples),
    .env_prefix = "HOLDFAST_SERVE_",
    .notes =
        "Every option with two dashes has a variable: HOLDFAST_SERVE_IN_MEMORY=1, "
        "HOLDFAST_SERVE_PORT=8001, HOLDFAST_SERVE_ALLOW_HOST=db,dynamodb. Flags are 1 or 0, lists have "
        "commas. An option on the command line overrides its variable.\n\n"
        "--init takes definitions of tables, the formats of 'holdfast table create --file' and what 'aws "
        "dynamodb describe-table' prints, in files that end with .json; items, as 'holdfast import' "
        "takes them, in files that are named after their tables or have TABLE.schema.json beside them; "
        "and exports of DynamoDB to S3. A folder may have all of these. Tables that are missing are "
        "created and filled. A table that exists is left as it is; what differs from the files is "
        "logged. So every start can have the same --init. If a start is interrupted, the next one "
        "completes it. The server listens when everything is there; an error ends the start.\n\n"
        "Write times as 300ms, 5s, 2m or 1h, sizes as 512KiB, 32MiB or 1GiB.\n\n"
        "The file of --credentials has profiles in brackets, each with aws_access_key_id and "
        "aws_secret_access_key, and optionally aws_session_token. It must belong to root or to the "
        "user of the process. Other users must not be able to read or change it. Its group may "
        "read it only if the file belongs to root and the process runs as another user, as with "
        "root:holdfast and mode 640, or with LoadCredential= of systemd.exec(5). It can be a "
        "pipe.\n\n"
        "Unlike with DynamoDB Local, web pages of other origins may send requests only if --cors "
        "allows them.\n\n"
        "Signals:\n"
        "  SIGTERM, SIGINT\tRefuse new connections, let open requests finish, close the database "
        "and exit with 0.\n"
        "  SIGHUP\tReload the certificate and its key. If they are invalid, the old ones stay in "
        "use.\n\n"
        "Under systemd the service reports when it is ready and when it stops, and notifies the "
        "watchdog while the database responds (NOTIFY_SOCKET, WATCHDOG_USEC, WATCHDOG_PID). With "
        "socket activation (LISTEN_FDS, LISTEN_PID), the sockets of systemd are used instead of "
        "--host and --port. Lines of the log carry their level if they go to the journal "
        "(JOURNAL_STREAM). The units holdfast.service and holdfast.socket use all of these.\n\n"
        "Exit codes: 0 stopped by a signal, 1 failed, 2 invalid options, 3 cannot open the "
        "database, 4 cannot listen on the address, 5 cannot load --init or --snapshot.",
};

_Static_assert(sizeof(specs) / sizeof(specs[0]) <= OPTIONS_MAX, "the table fits");

/* ---- what goes together --------------------------------------------------------------------- */

#define REFUSE(cli, ...) (hf__cli_fail((cli), "serve", CLI_USAGE, __VA_ARGS__), false)

static bool is_loopback(const char *host)
{
    struct in_addr in4;
    struct in6_addr in6;

    if (inet_pton(AF_INET, host, &in4) == 1)
        return ntohl(in4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, host, &in6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&in6);
    return strcmp(host, "localhost") == 0;
}

/* Letters, digits, - and _; or digits alone. */
static bool is_plain(struct hf_str text, bool letters)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!(c >= '0' && c <= '9') &&
            !(letters &&
              ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_')))
            return false;
    }
    return true;
}

/* They become parts of ARNs. */
static bool plan_names(struct cli *cli, const struct serve_settings *settings)
{
    if (settings->account.len != 12 || !is_plain(settings->account, false))
        return REFUSE(cli, "--account: '%s' is not a twelve-digit number", settings->account.ptr);
    if (settings->region.len > 64 || !is_plain(settings->region, true))
        return REFUSE(cli, "--region: '%s' is invalid: use up to 64 letters, digits, '-' and '_'",
                      settings->region.ptr);
    return true;
}

static bool plan_data(struct cli *cli, const struct options *options, struct serve_plan *plan)
{
    struct serve_settings *settings = &plan->settings;
    bool named = hf__options_source(&hf__serve_options, options, "db-path") == OPTION_GIVEN;
    struct stat info;

    /* What is on the command line was meant, whatever the variables of an image say. */
    if ((named || settings->db_dir.ptr) &&
        hf__options_source(&hf__serve_options, options, "in-memory") == OPTION_ENVIRONMENT)
        settings->in_memory = false;
    if (settings->in_memory && (named || settings->db_dir.ptr))
        return REFUSE(cli, "%s and %s cannot be combined",
                      settings->db_dir.ptr ? "-inMemory" : "--in-memory",
                      settings->db_dir.ptr ? "-dbPath" : "--db-path");
    if (named && settings->db_dir.ptr)
        return REFUSE(cli, "--db-path and -dbPath cannot be combined");
    if (hf__options_source(&hf__serve_options, options, "sync-window") == OPTION_GIVEN &&
        settings->sync + 1 != 2)
        return REFUSE(cli, "--sync-window needs --sync batch");
    if (settings->read_only && (settings->init.len || settings->snapshot.ptr))
        return REFUSE(cli, "--read-only and %s cannot be combined",
                      settings->init.len ? "--init" : "--snapshot");
    if (settings->backup_to.ptr && (settings->in_memory || settings->read_only))
        return REFUSE(cli, "--backup-to and %s cannot be combined",
                      settings->in_memory ? "--in-memory" : "--read-only");
    if (settings->backup_key.ptr && !settings->backup_to.ptr)
        return REFUSE(cli, "--backup-key needs --backup-to");
    if (settings->in_memory && settings->read_only)
        return REFUSE(cli, "--in-memory and --read-only cannot be combined");
    if (settings->in_memory) {
        plan->url = HF_STR("memory:");
        return true;
    }
    plan->path = settings->db_path;
    if (settings->db_dir.ptr) {
        if (stat(settings->db_dir.ptr, &info) != 0)
            return REFUSE(cli, "-dbPath: '%s': %s", settings->db_dir.ptr, strerror(errno));
        if (!S_ISDIR(info.st_mode))
            return REFUSE(cli, "-dbPath: '%s' is not a directory", settings->db_dir.ptr);
        plan->path = hf_scope_format(cli->scope, "%s/" DB_NAME, settings->db_dir.ptr);
    }
    plan->url = hf_scope_format(cli->scope, "embedded:%s", plan->path.ptr ? plan->path.ptr : "");
    return plan->path.ptr && plan->url.ptr ? true : REFUSE(cli, "out of memory");
}

static bool plan_access(struct cli *cli, const struct options *options, struct serve_plan *plan)
{
    struct serve_settings *settings = &plan->settings;

    if (settings->credentials.ptr &&
        hf__options_source(&hf__serve_options, options, "insecure-any-key") == OPTION_ENVIRONMENT)
        settings->insecure_any_key = false;

    if (settings->credentials.ptr && settings->insecure_any_key)
        return REFUSE(cli, "--credentials and --insecure-any-key cannot be combined");
    if (settings->credentials.ptr &&
        !hf__keys_read(cli->scope, settings->credentials.ptr, &plan->keys))
        return REFUSE(cli, "%.*s", HF_FMT(plan->keys.error));
    if (plan->open && !plan->keys.len && !settings->insecure_any_key)
        return REFUSE(
            cli,
            "%s can be reached from other machines: specify who may connect with --credentials "
            "FILE, or allow everyone with --insecure-any-key",
            plan->sockets.len ? "a socket of LISTEN_FDS" : settings->host.ptr);
    return true;
}

/* The server reads them, later: this is so that nothing is made before it is known that it cannot.
 */
static bool is_readable(struct cli *cli, const char *option, struct hf_str path)
{
    if (path.ptr && access(path.ptr, R_OK) != 0)
        return REFUSE(cli, "%s: '%s': %s", option, path.ptr, strerror(errno));
    return true;
}

static bool plan_listening(struct cli *cli, const struct options *options, struct serve_plan *plan)
{
    struct serve_settings *settings = &plan->settings;

    if (!settings->tls_cert.ptr != !settings->tls_key.ptr)
        return REFUSE(cli, "%s also needs %s", settings->tls_cert.ptr ? "--tls-cert" : "--tls-key",
                      settings->tls_cert.ptr ? "--tls-key" : "--tls-cert");
    if (!is_readable(cli, "--tls-cert", settings->tls_cert) ||
        !is_readable(cli, "--tls-key", settings->tls_key))
        return false;
    if (!hf__notify_sockets(cli->scope, cli->env, SOCKETS_FIRST, &plan->sockets))
        return REFUSE(cli, "%.*s", HF_FMT(plan->sockets.error));
    plan->open = plan->sockets.len ? plan->sockets.open : !is_loopback(settings->host.ptr);
    plan->address_ignored =
        plan->sockets.len &&
        (hf__options_source(&hf__serve_options, options, "host") != OPTION_DEFAULT ||
         hf__options_source(&hf__serve_options, options, "port") != OPTION_DEFAULT);
    return true;
}

/* Options of Java, in front of -jar, are none of ours. */
static const char *const *args_without_java(struct hf_scope *s, size_t *len,
                                            const char *const *args)
{
    const char **kept;
    size_t jar = 0, n = 0;

    while (jar < *len && strcmp(args[jar], "-jar") != 0)
        jar++;
    if (jar == *len)
        return args;
    kept = hf_scope_alloc(s, *len * sizeof(*kept));
    for (size_t i = 0; kept && i < *len; i++)
        if (i >= jar || (strncmp(args[i], "-D", 2) != 0 && strncmp(args[i], "-X", 2) != 0))
            kept[n++] = args[i];
    *len = kept ? n : *len;
    return kept;
}

static bool plan_console(struct cli *cli, const struct options *options, struct serve_plan *plan)
{
    const struct serve_settings *settings = &plan->settings;
    bool named = hf__options_source(&hf__serve_options, options, "console") != OPTION_DEFAULT;
    struct stat info;

    plan->console = settings->console == 0 && (named || !plan->open);
    if (!settings->console_dir.ptr)
        return true;
    if (stat(settings->console_dir.ptr, &info) != 0)
        return REFUSE(cli, "--console-dir: '%s': %s", settings->console_dir.ptr, strerror(errno));
    if (!S_ISDIR(info.st_mode))
        return REFUSE(cli, "--console-dir: '%s' is not a directory", settings->console_dir.ptr);
    return true;
}

bool hf__serve_plan(struct cli *cli, size_t args_len, const char *const *args,
                    struct serve_plan *plan, int *ends)
{
    struct options options;

    *plan = (struct serve_plan){.open = false};
    args = args_without_java(cli->scope, &args_len, args);
    if (args_len && !args) {
        *ends = hf__cli_fail(cli, "serve", CLI_FAILED, "out of memory");
        return false;
    }
    if (!hf__cli_options(cli, &hf__serve_options, args_len, args, &plan->settings, &options, ends))
        return false;
    *ends = CLI_USAGE;
    return plan_names(cli, &plan->settings) && plan_data(cli, &options, plan) &&
           plan_listening(cli, &options, plan) && plan_access(cli, &options, plan) &&
           plan_console(cli, &options, plan);
}

/* ---- texts ---------------------------------------------------------------------------------- */

struct hf_str hf__serve_url(struct hf_scope *s, const struct serve_plan *plan, uint16_t port)
{
    const char *host = plan->settings.host.ptr;
    const char *scheme = plan->settings.tls_cert.ptr ? "https" : "http";

    /* An address that stands for several is no address to call. */
    if (plan->sockets.len || strcmp(host, "0.0.0.0") == 0 || strcmp(host, "::") == 0 ||
        strcmp(host, "localhost") == 0)
        host = "127.0.0.1";
    return hf_scope_format(s, strchr(host, ':') ? "%s://[%s]:%u" : "%s://%s:%u", scheme, host,
                           (unsigned)port);
}
