/*
 * cli/serve/cmd_serve.c: `holdfast serve`: a database, a server in front of it, until a signal.
 *
 *     plan        options, credentials, sockets that were handed over      ends with 2
 *     open        the database                                             ends with 3
 *     load        what --snapshot and --init have                          ends with 5
 *     listen      the server                                               ends with 4
 *     run         "ready" to people (stdout) and to systemd; the watch begins
 *     stop        on SIGTERM or SIGINT: requests under way finish          ends with 0
 *     close       the server, then the database
 *
 * The watch. A process that still runs proves little, so systemd's watchdog is fed only while the
 * database answers: a thread asks for its tables before each beat, and a call that hangs means no
 * beat.
 *
 * What always holds:
 *
 *  (1) Nothing is opened before everything that can be checked was.
 *  (2) "Ready" is said once requests are served, not before.
 *  (3) Once the database is being opened, a signal to stop ends in an orderly way.
 */
#include "server/server.h"
#include "serving/calls.h"

#include "base/cond_monotonic.h"
#include "cli/frame/command.h"
#include "cli/frame/output/mask.h"
#include "cli/frame/process/child.h"
#include "cli/serve/holder.h"
#include "cli/serve/log.h"
#include "cli/serve/serve.h"
#include "cli/transfer/first_data.h"

#include <holdfast/engine.h>
#include <holdfast/faults.h>

#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    STATUS_MAX = 256,
    HEAP_LARGE = 1024 * 1024, /* memory of this size is the system's again as soon as it is free, */
    HEAP_KEEP = 8 * 1024 * 1024 /* and free memory at the end of the heap above this */
};

struct serving {
    struct cli *cli;
    struct serve_plan plan;
    struct cli_log log;
    struct hf_env env;
    struct hf_db *db; /* what is served: the engine, or with --admin faults around it */
    struct hf_db *engine;
    struct server_clock clock; /* what --admin moves */
    struct server *server;
    struct serving_calls calls; /* with the console */
    const char *notify_socket;
    /* the watch */
    pthread_t watch;
    bool watching;
    uint64_t beat_ms;
    pthread_mutex_t mutex; /* guards `stop` */
    pthread_cond_t wake;
    bool stop;
};

/* ---- the watch ------------------------------------------------------------------------------ */

static void notify_systemd(struct serving *v, const char *lines)
{
    if (hf__notify_send(v->notify_socket, lines) < 0)
        hf__log_print(&v->log, HF_LOG_WARNING, "cannot notify %s: %s", v->notify_socket,
                      strerror(errno));
}

/* Wait for one beat; false when it is time to end. */
static bool wait_beat(struct serving *v)
{
    struct timespec until;
    bool stop;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += (time_t)(v->beat_ms / 1000);
    until.tv_nsec += (long)(v->beat_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&v->mutex);
    while (!v->stop && pthread_cond_timedwait(&v->wake, &v->mutex, &until) == 0)
        ;
    stop = v->stop;
    pthread_mutex_unlock(&v->mutex);
    return !stop;
}

static void *watchdog_run(void *user)
{
    struct serving *v = user;
    struct hf_scope *s = hf_scope_new(NULL);

    while (s && wait_beat(v)) {
        struct hf_list_tables_result result;

        hf_scope_reset(s);
        if (hf_list_tables(s, v->engine, &(struct hf_list_tables){.limit = 1}, &result) == HF_OK)
            notify_systemd(v, "WATCHDOG=1");
        else
            hf__log_print(&v->log, HF_LOG_ERROR, "the database does not respond: %s",
                          hf_scope_error_text(s));
    }
    hf_scope_free(s);
    return NULL;
}

static void watch_begin(struct serving *v)
{
    v->beat_ms = v->notify_socket ? hf__notify_watchdog_ms(v->cli->env) : 0;
    if (!v->beat_ms)
        return;
    pthread_mutex_init(&v->mutex, NULL);
    cond_monotonic_init(&v->wake);
    v->watching = pthread_create(&v->watch, NULL, watchdog_run, v) == 0;
    if (!v->watching)
        hf__log_print(&v->log, HF_LOG_ERROR,
                      "cannot start the watchdog thread: systemd will restart the server");
}

static void watch_end(struct serving *v)
{
    if (!v->beat_ms)
        return;
    if (v->watching) {
        pthread_mutex_lock(&v->mutex);
        v->stop = true;
        pthread_cond_signal(&v->wake);
        pthread_mutex_unlock(&v->mutex);
        pthread_join(v->watch, NULL);
    }
    pthread_cond_destroy(&v->wake);
    pthread_mutex_destroy(&v->mutex);
}

/* ---- what people and systemd hear ----------------------------------------------------------- */

static const char *durability_text(const struct serving *v)
{
    static const char *const texts[] = {
        "every write is synced before it is answered",
        "writes are synced in batches: if the machine crashes, the newest writes may be lost",
        "writes are not synced: if the machine crashes, minutes of writes may be lost"};

    return texts[v->plan.settings.sync];
}

static const char *access_text(const struct serving *v)
{
    if (v->plan.keys.len)
        return "requests must be signed with a key of --credentials";
    return v->plan.open
               ? "ANY KEY FROM ANY HOST: everyone who can reach the port can read and change all "
                 "data"
               : "any key, from this machine only";
}

static void print_start(struct serving *v, struct hf_str url)
{
    FILE *out = v->cli->out;
    char *whole = v->plan.path.ptr ? realpath(v->plan.path.ptr, NULL) : NULL;

    fprintf(out, "holdfast %s serves on %.*s\n", hf_version(), HF_FMT(url));
    if (v->plan.path.ptr)
        fprintf(out, "  data    %s (%s)\n", whole ? whole : v->plan.path.ptr, durability_text(v));
    else
        fprintf(out, "  data    in memory (lost on exit)\n");
    if (v->plan.settings.backup_to.ptr)
        fprintf(out, "  backup  to %.*s\n",
                HF_FMT(hf__cli_mask(v->cli->scope, v->plan.settings.backup_to)));
    fprintf(out, "  access  %s\n", access_text(v));
    if (v->plan.console)
        fprintf(out, "  console %.*s/console/\n", HF_FMT(url));
    fprintf(out, "  try     %saws dynamodb list-tables --region %s --endpoint-url %.*s\n",
            v->plan.keys.len ? "" : "AWS_ACCESS_KEY_ID=any AWS_SECRET_ACCESS_KEY=any ",
            v->plan.settings.region.ptr, HF_FMT(url));
    /* Nobody may be reading; that is no reason not to serve. */
    fflush(out);
    free(whole);
}

static void on_ready(void *user)
{
    struct serving *v = user;
    struct hf_str url = hf__serve_url(v->cli->scope, &v->plan, hf__server_port(v->server));
    char lines[STATUS_MAX];

    print_start(v, url);
    snprintf(lines, sizeof(lines), "READY=1\nSTATUS=Serving on %.*s", HF_FMT(url));
    notify_systemd(v, lines);
    hf__log_print(&v->log, HF_LOG_INFO, "serving on %.*s", HF_FMT(url));
    if (v->plan.address_ignored)
        hf__log_print(&v->log, HF_LOG_WARNING,
                      "using the listening sockets of LISTEN_FDS; --host and --port are ignored");
    if (v->plan.settings.delay_statuses)
        hf__log_print(&v->log, HF_LOG_WARNING,
                      "-delayTransientStatuses has no effect: table statuses change at once");
    watch_begin(v);
}

static void on_stop(void *user)
{
    struct serving *v = user;

    notify_systemd(v, "STOPPING=1\nSTATUS=Finishing open requests");
    hf__log_print(&v->log, HF_LOG_INFO, "stopping; waiting for open requests to finish");
}

/* ---- opening -------------------------------------------------------------------------------- */

/* As many connections as we are allowed to have: the usual soft limit is 1024. */
static void raise_files(struct serving *v)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0)
        hf__log_print(&v->log, HF_LOG_WARNING, "cannot raise the limit on open files: %s",
                      strerror(errno));
}

/* What is large goes back to the system when it is freed, whatever was allocated before: without
 * that, the C library keeps more and more of it. */
static void bound_heap(void)
{
    (void)mallopt(M_MMAP_THRESHOLD, HEAP_LARGE);
    (void)mallopt(M_TRIM_THRESHOLD, HEAP_KEEP);
}

static void begin_log(struct serving *v)
{
    static const enum hf_log_level levels[] = {HF_LOG_ERROR, HF_LOG_WARNING, HF_LOG_INFO,
                                               HF_LOG_DEBUG};

    hf__log_begin(&v->log, STDERR_FILENO, v->cli->env("JOURNAL_STREAM"));
    v->log.format = (enum log_format)v->plan.settings.log_format;
    v->log.level = levels[v->plan.settings.log_level];
    v->env = (struct hf_env){.size = sizeof(v->env), .user = &v->log, .log = hf__log_line};
}

/* The database's clock, which --admin can move; the log and signatures have the true one. */
static int64_t movable_clock(void *user)
{
    struct serving *v = user;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + atomic_load(&v->clock.offset_us);
}

static void log_line(enum hf_log_level level, struct hf_str line, void *user)
{
    struct serving *v = user;

    hf__log_line(level, line, &v->log);
}

static int open_database(struct serving *v)
{
    const struct serve_settings *settings = &v->plan.settings;
    struct hf_scope *s = v->cli->scope;
    struct holder holder = {.pid = 0};
    struct hf_env env = {.size = sizeof(env), .user = v, .log = log_line, .wall_us = movable_clock};
    const struct hf_backup_options backup = {
        .size = sizeof(backup),
        .to = settings->backup_to,
        .window_ms = (uint32_t)settings->backup_window_ms,
        .snapshot_ms = settings->backup_snapshot_ms,
        .retain_ms = settings->backup_retain_ms,
        .key_file = settings->backup_key,
        .journal_bytes = settings->backup_journal_bytes,
    };
    enum hf_status status = hf_open(
        s, v->plan.url,
        HF_OPTIONS(hf_engine_options, .env = &env, .backup = backup.to.ptr ? &backup : NULL,
                   .sync = (enum hf_sync)(settings->sync + 1),
                   .sync_window_ms = (uint32_t)settings->sync_window_ms,
                   .memtable_bytes = (size_t)settings->memtable_bytes,
                   .cache_bytes = (size_t)settings->cache_bytes, .compress = settings->compress,
                   .reserve_bytes = settings->reserve_bytes, .read_only = settings->read_only,
                   .stream_shards = (uint32_t)settings->stream_shards, .region = settings->region,
                   .account = settings->account, .max_tables = (uint32_t)settings->max_tables,
                   .wording = (enum hf_wording)(settings->wording + 1),
                   .buckets = settings->buckets),
        &v->engine);

    v->db = v->engine;
    if (status == HF_OK && settings->admin) {
        status = hf_faulty_open(s, v->engine, &v->db);
        v->db = v->db ? v->db : v->engine;
    }
    if (status == HF_OK)
        return CLI_OK;
    if (status == HF_LOCKED)
        holder = hf__holder_find(s, v->plan.path.ptr);
    return hf__cli_fail(v->cli, "serve", SERVE_DATABASE, "%s%s%s", hf_scope_error_text(s),
                        holder.pid ? ": " : "", holder.pid ? holder.text.ptr : "");
}

static int open_server(struct serving *v)
{
    const struct serve_settings *settings = &v->plan.settings;
    struct hf_scope *s = v->cli->scope;
    size_t keys_len = v->plan.keys.len;
    struct sign_credentials *keys = hf_scope_alloc(s, (keys_len + 1) * sizeof(*keys));
    struct server_options options;
    enum hf_status status;

    if (!keys)
        return hf__cli_fail(v->cli, "serve", CLI_FAILED, "out of memory");
    for (size_t i = 0; i < keys_len; i++)
        keys[i] = (struct sign_credentials){.access_key = v->plan.keys.list[i].access,
                                            .secret_key = v->plan.keys.list[i].secret,
                                            .session_token = v->plan.keys.list[i].token};
    options = (struct server_options){
        .env = &v->env,
        .host = settings->host,
        .port = (uint16_t)settings->port,
        .sockets = v->plan.sockets.fds,
        .sockets_len = v->plan.sockets.len,
        .loops = (uint32_t)settings->loops,
        .sync_beside = settings->sync + 1 == HF_SYNC_FULL && !settings->in_memory,
        .connections_max = (uint32_t)settings->connections,
        .workers = (uint32_t)settings->workers,
        .memory_max = settings->memory_bytes,
        .input_max = settings->input_bytes,
        .head_ms = (uint32_t)settings->head_ms,
        .body_ms = (uint32_t)settings->body_ms,
        .idle_ms = (uint32_t)settings->idle_ms,
        .drain_ms = (uint32_t)settings->drain_ms,
        .keys = keys,
        .keys_len = keys_len,
        .open_to_all = settings->insecure_any_key,
        .clock_window_s = (uint32_t)(settings->clock_window_ms / 1000),
        .hosts = settings->hosts.values,
        .hosts_len = settings->hosts.len,
        .cors = settings->cors,
        .certificate = settings->tls_cert,
        .private_key = settings->tls_key,
        .admin = settings->admin,
        .engine = v->engine,
        .clock = &v->clock,
        .access_log = settings->access_log,
        .profile = (enum server_profile)settings->profile,
        .console = v->plan.console,
        .console_dir = settings->console_dir,
        .database = v->plan.url,
        .region_shown = settings->region,
        .read_only = settings->read_only,
        .in_memory = settings->in_memory,
        .data_dir = v->plan.path,
        .signals = true,
        .on_ready = on_ready,
        .on_stop = on_stop,
        .user = v,
    };
    status = HF_OK;
    if (v->plan.console)
        status = hf__serving_calls_open(s, v->db, &v->env, settings->read_only, &v->calls);
    if (status == HF_OK && v->plan.console)
        hf__serving_calls_offer(&v->calls, &options);
    if (status == HF_OK)
        status = hf__server_open(s, v->db, &options, &v->server);
    if (status == HF_OK)
        return CLI_OK;
    return hf__cli_fail(v->cli, "serve", status == HF_INVALID ? (int)CLI_USAGE : (int)SERVE_ADDRESS,
                        "%s", hf_scope_error_text(s));
}

/* ---- first data ----------------------------------------------------------------------------- */

static void say_first(void *user, enum hf_log_level level, const char *text)
{
    struct serving *v = user;

    hf__log_print(&v->log, level, "init: %s", text);
    if (v->notify_socket) /* as long as it goes on, it may take longer than systemd waits for a start */
        notify_systemd(v, "EXTEND_TIMEOUT_USEC=600000000\nSTATUS=Loading the files of --init");
}

static int load_snapshot(struct serving *v)
{
    struct hf_scope *s = v->cli->scope;
    struct hf_str file = v->plan.settings.snapshot;
    struct hf_list_tables_result tables = {.tables_len = 0};
    struct hf_engine_snapshot *snapshot = NULL;
    struct hf_engine_snapshot_size size;
    enum hf_status status =
        hf_list_tables(s, v->engine, &(struct hf_list_tables){.limit = 1}, &tables);

    if (status == HF_OK && tables.tables_len) {
        hf__log_print(&v->log, HF_LOG_INFO,
                      "snapshot: the database has tables already; %.*s is not restored",
                      HF_FMT(file));
        return CLI_OK;
    }
    if (status == HF_OK)
        status = hf_engine_snapshot_load(s, file, &snapshot);
    if (status == HF_OK)
        status = hf_engine_snapshot_restore(s, v->engine, snapshot);
    if (status == HF_OK) {
        hf_engine_snapshot_size(snapshot, &size);
        hf__log_print(&v->log, HF_LOG_INFO,
                      "snapshot: restored %llu tables with %llu items of %.*s",
                      (unsigned long long)size.tables, (unsigned long long)size.items,
                      HF_FMT(file));
    }
    hf_engine_snapshot_free(snapshot);
    return status == HF_OK ? CLI_OK
                           : hf__cli_fail(v->cli, "serve", SERVE_FIRST, "--snapshot: %s",
                                          hf_scope_error_text(s));
}

/* A signal that comes meanwhile ends the start: *stopped. */
static int load_first(struct serving *v, bool *stopped)
{
    const struct serve_settings *settings = &v->plan.settings;
    struct first_data first = {.cli = v->cli,
                               .command = "serve",
                               .db = v->engine,
                               .sources = &settings->init,
                               .say = say_first,
                               .user = v};
    struct guard guard;
    int ends = CLI_OK;

    if (!settings->init.len && !settings->snapshot.ptr)
        return CLI_OK;
    if (!hf__guard_begin(&guard, v->cli->scope)) {
        hf__guard_end(&guard);
        return hf__cli_fail(v->cli, "serve", CLI_FAILED, "cannot start a thread");
    }
    first.guard = &guard;
    if (settings->snapshot.ptr)
        ends = load_snapshot(v);
    if (ends == CLI_OK && settings->init.len)
        ends = hf__first_data_load(&first);
    hf_scope_timeout_ms(v->cli->scope, 0);
    *stopped = hf__guard_signal(&guard) != 0;
    hf__guard_end(&guard);
    if (*stopped) {
        hf__log_print(&v->log, HF_LOG_INFO,
                      "stopped before everything was loaded; the next start goes on");
        return CLI_OK;
    }
    return ends == CLI_OK ? CLI_OK : (int)SERVE_FIRST;
}

/* A table that an earlier start has filled in part, and this one has not completed. */
static int refuse_unfinished(struct serving *v)
{
    struct first_data first = {
        .cli = v->cli, .command = "serve", .db = v->engine, .say = say_first, .user = v};
    bool fine = hf__first_data_check(&first, v->plan.settings.read_only) == CLI_OK;

    return fine ? CLI_OK : (int)SERVE_FIRST;
}

/*
 * The server reads signals, which so have to stay blocked; threads that are started later inherit
 * that. One that comes before the server is there waits for it.
 */
static void block_signals(void)
{
    sigset_t stops;

    sigemptyset(&stops);
    sigaddset(&stops, SIGTERM);
    sigaddset(&stops, SIGINT);
    sigaddset(&stops, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &stops, NULL);
}

/* ---- the command ---------------------------------------------------------------------------- */

static int serve_run(struct cli *cli, size_t args_len, const char *const *args)
{
    struct serving v = {.cli = cli, .notify_socket = cli->env("NOTIFY_SOCKET")};
    bool stopped = false;
    int ends;

    if (!hf__serve_plan(cli, args_len, args, &v.plan, &ends))
        return ends;
    signal(SIGPIPE, SIG_IGN);
    begin_log(&v);
    bound_heap();
    raise_files(&v);
    block_signals();
    ends = open_database(&v);
    if (ends == CLI_OK)
        ends = load_first(&v, &stopped);
    if (ends == CLI_OK && !stopped)
        ends = refuse_unfinished(&v);
    if (ends == CLI_OK && !stopped)
        ends = open_server(&v);
    if (ends == CLI_OK && !stopped && hf__server_run(cli->scope, v.server) != HF_OK)
        ends = hf__cli_fail(cli, "serve", CLI_FAILED, "%s", hf_scope_error_text(cli->scope));
    watch_end(&v);
    hf__server_close(v.server);
    hf__serving_calls_close(&v.calls);
    hf_db_close(v.db ? v.db : v.engine);
    if (ends == CLI_OK)
        hf__log_print(&v.log, HF_LOG_INFO, "stopped");
    return ends;
}

const struct command hf__serve_command = {.run = serve_run};
