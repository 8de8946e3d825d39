/*
 * cli/serve/serve.c: the options of `holdfast serve`, and which of them go together.
 *
 * DynamoDB Local's options are here under their names. Most are one of ours; -dbPath is not: there
 * it is a directory to put a file into, so here the database is DIR/holdfast.db, as the default is
 * holdfast.db in the working directory. --db-path is the database itself.
 *
 * What always holds of a plan:
 *
 *  (1) Who can be reached from other machines knows who may call, or was told in so many words that
 *      anybody may.
 *  (2) Data is either in memory or at one path, and nobody who named a path gets memory.
 */
#include "cli/serve/serve.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DB_NAME "holdfast.db"
#define FIELD(name_) .offset = offsetof(struct serve_settings, name_)

#define MINUTE_MS (60 * 1000)
#define KIB ((uint64_t)1024)
#define GIB (KIB * KIB * KIB)

enum { SOCKETS_FIRST = 3 };

static const struct option_spec specs[] = {
    {.heading = "Listening",
     .kind = OPTION_TEXT,
     .name = "host",
     .value = "ADDRESS",
     .fallback = "localhost",
     .text =
         "Address to listen on; localhost is 127.0.0.1 and ::1. Beyond this machine it needs --credentials or "
         "--insecure-any-key.",
     FIELD(host)},
    {.kind = OPTION_NUMBER,
     .letter = 'p',
     .name = "port",
     .local = "port",
     .value = "PORT",
     .max = 65535,
     .fallback = "8000",
     .env = "HOLDFAST_PORT",
     .text = "Port to listen on; 0 takes a free one and says which.",
     FIELD(port)},
    {.kind = OPTION_LIST,
     .name = "allow-host",
     .value = "NAME",
     .text = "A name by which clients call this server, besides its address and localhost. Others "
             "are refused, so that web pages cannot reach it by a name of their own. '*' is any. "
             "Can be repeated.",
     FIELD(hosts)},
    {.kind = OPTION_TEXT,
     .name = "cors",
     .local = "cors",
     .value = "ORIGINS",
     .text = "Origins whose pages may call, with commas between them, or '*'. None by default.",
     FIELD(cors)},
    {.kind = OPTION_TEXT,
     .name = "tls-cert",
     .value = "FILE",
     .text = "Serve HTTPS with this chain of certificates (PEM). SIGHUP reads it again.",
     FIELD(tls_cert)},
    {.kind = OPTION_TEXT,
     .name = "tls-key",
     .value = "FILE",
     .text = "The private key of the certificate (PEM).",
     FIELD(tls_key)},

    {.heading = "Who may call",
     .kind = OPTION_TEXT,
     .name = "credentials",
     .value = "FILE",
     .env = "HOLDFAST_CREDENTIALS",
     .text = "Access keys in the format of AWS's credentials file, a profile per key; requests "
             "have to be signed with one of them. Others must not be able to read the file. '-' "
             "is standard input. Without it, any key is accepted, from this machine only.",
     FIELD(credentials)},
    {.kind = OPTION_FLAG,
     .name = "insecure-any-key",
     .text = "Accept any key from anywhere: whoever can reach the port can read and change all "
             "data. For containers and test networks.",
     FIELD(insecure_any_key)},
    {.kind = OPTION_DURATION,
     .name = "clock-window",
     .value = "TIME",
     .min = 1000,
     .max = OPTION_DAY_MS,
     .fallback = "5m",
     .text =
         "How far the time of a signature may be off. One in a query may say for how long it is "
         "good instead (X-Amz-Expires, at most a week).",
     FIELD(clock_window_ms)},

    {.heading = "Data",
     .kind = OPTION_TEXT,
     .name = "db-path",
     .value = "DIR",
     .fallback = DB_NAME,
     .env = "HOLDFAST_DB_PATH",
     .text = "Directory of the database; made when it is missing.",
     FIELD(db_path)},
    {.kind = OPTION_FLAG,
     .name = "in-memory",
     .local = "inMemory",
     .text = "Keep everything in memory; it is gone at the end.",
     FIELD(in_memory)},
    {.kind = OPTION_CHOICE,
     .name = "sync",
     .choices = "full batch none",
     .fallback = "full",
     .text = "When writes reach the disk: before they are answered; within --sync-window; when the "
             "system likes. A crash of the machine loses nothing, a window, or minutes.",
     FIELD(sync)},
    {.kind = OPTION_DURATION,
     .name = "sync-window",
     .value = "TIME",
     .min = 1,
     .max = MINUTE_MS,
     .fallback = "100ms",
     .text = "With --sync batch: how much a crash of the machine may lose.",
     FIELD(sync_window_ms)},
    {.kind = OPTION_SIZE,
     .name = "memtable",
     .value = "SIZE",
     .min = 256 * KIB,
     .max = 64 * GIB,
     .fallback = "64MiB",
     .text = "Memory for the newest writes.",
     FIELD(memtable_bytes)},
    {.kind = OPTION_SIZE,
     .name = "cache",
     .value = "SIZE",
     .min = 64 * KIB,
     .max = 1024 * GIB,
     .fallback = "32MiB",
     .text = "Memory for blocks that were read.",
     FIELD(cache_bytes)},
    {.kind = OPTION_FLAG,
     .name = "compress",
     .text = "Compress what is on disk (lz4).",
     FIELD(compress)},
    {.kind = OPTION_SIZE,
     .name = "reserve",
     .value = "SIZE",
     .min = KIB * KIB,
     .max = 1024 * GIB,
     .text = "Free space of the disk that is left alone: below it only deletes are taken. By "
             "default, what tables and their merging may need.",
     FIELD(reserve_bytes)},
    {.kind = OPTION_FLAG,
     .name = "read-only",
     .text = "Change nothing on disk, and refuse what would. Several servers may read one "
             "directory like this; a full disk is no obstacle.",
     FIELD(read_only)},

    {.heading = "What clients see",
     .kind = OPTION_TEXT,
     .name = "region",
     .value = "NAME",
     .fallback = "us-east-1",
     .text = "Region in ARNs and stream records. Clients may sign for any.",
     FIELD(region)},
    {.kind = OPTION_TEXT,
     .name = "account",
     .value = "NUMBER",
     .fallback = "123456789012",
     .text = "Account in ARNs, twelve digits.",
     FIELD(account)},
    {.kind = OPTION_CHOICE,
     .name = "wording",
     .choices = "classic 2026",
     .fallback = "classic",
     .text = "Error messages as DynamoDB had them before 2026, or as since then.",
     FIELD(wording)},
    {.kind = OPTION_NUMBER,
     .name = "stream-shards",
     .value = "NUMBER",
     .min = 1,
     .max = 64,
     .fallback = "4",
     .text = "Shards of a stream that is enabled.",
     FIELD(stream_shards)},

    {.heading = "Limits",
     .kind = OPTION_NUMBER,
     .name = "max-tables",
     .value = "NUMBER",
     .min = 1,
     .max = 1000000,
     .fallback = "2500",
     .text = "Tables that there may be, each of which takes some 17 KiB of memory; CreateTable and "
             "RestoreTableFromBackup fail with LimitExceededException beyond that.",
     FIELD(max_tables)},
    {.kind = OPTION_NUMBER,
     .name = "loops",
     .value = "NUMBER",
     .min = 1,
     .max = 256,
     .text = "Threads that serve; one per core by default.",
     FIELD(loops)},
    {.kind = OPTION_NUMBER,
     .name = "connections",
     .value = "NUMBER",
     .min = 1,
     .max = 1000000,
     .fallback = "10000",
     .text = "Connections at a time.",
     FIELD(connections)},
    {.kind = OPTION_NUMBER,
     .name = "workers",
     .value = "NUMBER",
     .min = 1,
     .max = 256,
     .text = "Threads for requests that take long; as many as loops by default, but at least 2.",
     FIELD(workers)},
    {.kind = OPTION_SIZE,
     .name = "memory",
     .value = "SIZE",
     .min = 32 * 1024 * 1024,
     .max = INT64_MAX,
     .text = "Memory for requests and answers, of all connections together; 256MiB by default, or "
             "a quarter of the memory that there is if that is less.",
     FIELD(memory_bytes)},
    {.kind = OPTION_SIZE,
     .name = "input",
     .value = "SIZE",
     .min = 16 * 1024 * 1024,
     .max = INT64_MAX,
     .text = "Of that, for requests that have not come in full; half of it by default.",
     FIELD(input_bytes)},
    {.kind = OPTION_DURATION,
     .name = "head-timeout",
     .value = "TIME",
     .min = 1,
     .max = OPTION_DAY_MS,
     .fallback = "10s",
     .text = "Time for the head of a request to come.",
     FIELD(head_ms)},
    {.kind = OPTION_DURATION,
     .name = "body-timeout",
     .value = "TIME",
     .min = 1,
     .max = OPTION_DAY_MS,
     .fallback = "60s",
     .text = "Time for a whole request to come.",
     FIELD(body_ms)},
    {.kind = OPTION_DURATION,
     .name = "idle-timeout",
     .value = "TIME",
     .min = 1,
     .max = OPTION_DAY_MS,
     .fallback = "5m",
     .text = "How long a connection without requests is kept.",
     FIELD(idle_ms)},
    {.kind = OPTION_DURATION,
     .name = "drain-timeout",
     .value = "TIME",
     .min = 1,
     .max = OPTION_DAY_MS,
     .fallback = "5s",
     .text = "How long requests under way may take when stopping.",
     FIELD(drain_ms)},

    {.heading = "Watching it",
     .kind = OPTION_FLAG,
     .name = "admin",
     .text = "Offer /_holdfast/: faults, clock and snapshots, for tests.",
     FIELD(admin)},
    {.kind = OPTION_FLAG,
     .name = "access-log",
     .text = "Log a line per request.",
     FIELD(access_log)},
    {.kind = OPTION_CHOICE,
     .name = "log-format",
     .choices = "text json",
     .fallback = "text",
     .text = "Lines for people, or a JSON object per line. The log is standard error.",
     FIELD(log_format)},
    {.kind = OPTION_CHOICE,
     .name = "log-level",
     .choices = "error warn info debug",
     .fallback = "info",
     .text = "The least urgent lines that are logged.",
     FIELD(log_level)},

    {.heading = "Accepted from DynamoDB Local",
     .kind = OPTION_TEXT,
     .local = "dbPath",
     .value = "DIR",
     .text = "Like --db-path DIR/" DB_NAME "; DIR has to be there.",
     FIELD(db_dir)},
    {.kind = OPTION_FLAG,
     .local = "sharedDb",
     .text = "No effect: all keys and regions share one database here.",
     FIELD(shared_db)},
    {.kind = OPTION_FLAG,
     .local = "delayTransientStatuses",
     .text = "No effect: the statuses of tables change at once here.",
     FIELD(delay_statuses)},
    {.kind = OPTION_FLAG,
     .local = "optimizeDbBeforeStartup",
     .text = "No effect: the database looks after itself.",
     FIELD(optimize)},
    {.kind = OPTION_FLAG,
     .local = "disableTelemetry",
     .text = "No effect: there is none.",
     FIELD(no_telemetry)},
};

static const struct option_example examples[] = {
    {"holdfast serve", "Serve holdfast.db in the working directory on http://127.0.0.1:8000."},
    {"holdfast serve --in-memory --port 0", "An empty database for a test, on a free port."},
    {"holdfast serve -inMemory -sharedDb -port 8000", "Instead of DynamoDB Local."},
    {"holdfast serve --host 0.0.0.0 --credentials keys.ini",
     "For other machines; --tls-cert and --tls-key encrypt."},
    {"aws dynamodb list-tables --endpoint-url http://127.0.0.1:8000",
     "Try it. The aws command wants some region and keys to be set; without --credentials any will "
     "do."},
};

const struct options_table hf__serve_options = {
    .name = "serve",
    .about = "Serve a database over DynamoDB's protocol: the AWS SDKs and the aws command work "
             "with it, given its address. A drop-in for DynamoDB Local, whose options are accepted "
             "too.",
    .specs = specs,
    .len = sizeof(specs) / sizeof(specs[0]),
    .examples = examples,
    .examples_len = sizeof(examples) / sizeof(examples[0]),
    .notes = "Times are written 300ms, 5s, 2m or 1h, sizes 512KiB, 32MiB or 1GiB.\n\n"
             "SIGTERM and SIGINT let requests under way finish, then end with code 0. "
             "SIGHUP reads the certificate again.\n\n"
             "Exit codes: 0 stopped, 1 failed, 2 options cannot be, 3 the database cannot be "
             "opened, 4 the address cannot be had.",
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
        return REFUSE(cli, "--account: '%s' is not a number of twelve digits",
                      settings->account.ptr);
    if (settings->region.len > 64 || !is_plain(settings->region, true))
        return REFUSE(cli, "--region: '%s' is not up to 64 letters, digits, - and _",
                      settings->region.ptr);
    return true;
}

static bool plan_data(struct cli *cli, const struct options *options, struct serve_plan *plan)
{
    struct serve_settings *settings = &plan->settings;
    bool named = hf__options_source(&hf__serve_options, options, "db-path") == OPTION_GIVEN;
    struct stat info;

    if (settings->in_memory && (named || settings->db_dir.ptr))
        return REFUSE(cli, "%s and %s exclude each other",
                      settings->db_dir.ptr ? "-inMemory" : "--in-memory",
                      settings->db_dir.ptr ? "-dbPath" : "--db-path");
    if (named && settings->db_dir.ptr)
        return REFUSE(cli, "--db-path and -dbPath exclude each other");
    if (hf__options_source(&hf__serve_options, options, "sync-window") == OPTION_GIVEN &&
        settings->sync + 1 != 2)
        return REFUSE(cli, "--sync-window needs --sync batch");
    if (settings->in_memory && settings->read_only)
        return REFUSE(cli, "--in-memory and --read-only exclude each other");
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

static bool plan_access(struct cli *cli, struct serve_plan *plan)
{
    struct serve_settings *settings = &plan->settings;

    if (settings->credentials.ptr && settings->insecure_any_key)
        return REFUSE(cli, "--credentials and --insecure-any-key exclude each other");
    if (settings->credentials.ptr &&
        !hf__keys_read(cli->scope, settings->credentials.ptr, &plan->keys))
        return REFUSE(cli, "%.*s", HF_FMT(plan->keys.error));
    if (plan->open && !plan->keys.len && !settings->insecure_any_key)
        return REFUSE(cli,
                      "%s can be reached from other machines, so it has to be said who may call: "
                      "--credentials FILE (or --insecure-any-key, if everybody may)",
                      plan->sockets.len ? "a socket that was handed over" : settings->host.ptr);
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
        return REFUSE(cli, "%s needs %s too", settings->tls_cert.ptr ? "--tls-cert" : "--tls-key",
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

bool hf__serve_plan(struct cli *cli, size_t args_len, const char *const *args,
                    struct serve_plan *plan, int *ends)
{
    struct options options;

    *plan = (struct serve_plan){.open = false};
    if (!hf__cli_options(cli, &hf__serve_options, args_len, args, &plan->settings, &options, ends))
        return false;
    *ends = CLI_USAGE;
    return plan_names(cli, &plan->settings) && plan_data(cli, &options, plan) &&
           plan_listening(cli, &options, plan) && plan_access(cli, plan);
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
