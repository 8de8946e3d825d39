/*
 * serving/serving.c: <holdfast/server.h>: a server with threads of its own, in a program that goes
 * on.
 *
 * While an embedded database on disk is served at an address, the file "served" in its directory
 * says so, for those who find the directory locked (cli/serve/holder.c):
 *
 *     4711 http://127.0.0.1:8000
 *
 * What always holds:
 *
 *  (1) The file is right, or was left behind by a process that was killed: it counts only if its
 *      process is the one that has the directory locked. A database that is read-only has none,
 *      as nothing in its directory changes.
 *  (2) Closing goes backwards: the server with its threads, the calls of the patterns, what is
 *      around the database.
 *  (3) Signals are the program's: the threads take none.
 *  (4) A server that was opened takes requests: opening waits until its own thread has started the
 *      others, and fails as that does.
 */
#include <holdfast/engine.h>
#include <holdfast/server.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/server.h"
#include "serving/calls.h"
#include "serving/read_only.h"

enum { SOCKET_BACKLOG = 128, REMOTE_WORKERS = 16, MARK_MAX = 512, FAILURE_MAX = 512 };

enum phase { PHASE_STARTING, PHASE_RUNNING, PHASE_FAILED };

struct hf_server {
    struct hf_env env;
    struct hf_scope *memory; /* of texts; and of the thread that runs it */
    struct serving_read_only read_only;
    struct serving_calls calls;
    struct server *server;
    pthread_t thread;
    bool runs;              /* `thread` is to be joined */
    pthread_mutex_t lock;   /* guards the next four: (4) */
    pthread_cond_t changed; /* the phase */
    enum phase phase;
    enum hf_status status; /* why it failed */
    char failure[FAILURE_MAX];
    int socket; /* -1: none */
    struct hf_str socket_path;
    struct hf_str mark; /* path of the file; absent: there is none */
    struct hf_str url;
};

/* ---- a Unix socket -------------------------------------------------------------------------- */

/* Does nobody listen there any more? Then it was left behind by a process that was killed. */
static bool is_left_behind(const struct sockaddr_un *address)
{
    struct stat info;
    bool refused;
    int fd;

    if (lstat(address->sun_path, &info) != 0 || !S_ISSOCK(info.st_mode)) /* a file of somebody's */
        return false;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return false;
    refused = connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 &&
              errno == ECONNREFUSED;
    close(fd);
    return refused;
}

static bool bind_socket(int fd, const struct sockaddr_un *address)
{
    const struct sockaddr *at = (const struct sockaddr *)address;

    if (fchmod(fd, 0600) != 0) /* what bind() makes has these permissions */
        return false;
    if (bind(fd, at, sizeof(*address)) == 0)
        return true;
    return errno == EADDRINUSE && is_left_behind(address) && unlink(address->sun_path) == 0 &&
           bind(fd, at, sizeof(*address)) == 0;
}

static enum hf_status open_socket(struct hf_scope *s, struct hf_server *v, struct hf_str path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    if (path.len >= sizeof(address.sun_path) || memchr(path.ptr, '\0', path.len))
        return hf__fail(s, HF_INVALID, "the path of the socket is longer than %zu bytes",
                        sizeof(address.sun_path) - 1);
    memcpy(address.sun_path, path.ptr, path.len);
    v->socket = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (v->socket < 0 || !bind_socket(v->socket, &address) ||
        listen(v->socket, SOCKET_BACKLOG) != 0)
        return hf__fail(s, HF_IO, "cannot listen on %.*s: %s", HF_FMT(path), strerror(errno));
    v->socket_path = hf_scope_copy(v->memory, path);
    v->url = hf_scope_format(v->memory, "unix:%.*s", HF_FMT(path));
    return v->url.ptr && v->socket_path.ptr ? HF_OK : hf__fail_nomem(s);
}

/* ---- the file "served" ---------------------------------------------------------------------- */

/* Without it the server is as good; only others do not find it by the directory. */
static void write_mark(struct hf_server *v, struct hf_str directory)
{
    struct hf_str path = hf_scope_format(v->memory, "%.*s/served", HF_FMT(directory));
    char text[MARK_MAX];
    int len = snprintf(text, sizeof(text), "%ld %s\n", (long)getpid(), v->url.ptr), fd;

    if (!path.ptr || len < 0 || (size_t)len >= sizeof(text))
        return;
    fd = open(path.ptr, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    if (write(fd, text, (size_t)len) == len)
        v->mark = path;
    close(fd);
    if (!v->mark.ptr)
        unlink(path.ptr);
}

/* ---- running -------------------------------------------------------------------------------- */

static void on_ready(void *user)
{
    struct hf_server *v = user;

    pthread_mutex_lock(&v->lock);
    assert(v->phase == PHASE_STARTING);
    v->phase = PHASE_RUNNING;
    pthread_cond_signal(&v->changed);
    pthread_mutex_unlock(&v->lock);
}

/* Whoever opens it is told, or, when it runs already, the log. */
static void note_failure(struct hf_server *v, enum hf_status status, const char *text)
{
    bool starting;

    pthread_mutex_lock(&v->lock);
    starting = v->phase == PHASE_STARTING;
    if (starting) {
        v->phase = PHASE_FAILED;
        v->status = status;
        snprintf(v->failure, sizeof(v->failure), "%s", text);
        pthread_cond_signal(&v->changed);
    }
    pthread_mutex_unlock(&v->lock);
    if (!starting)
        hf__env_log(&v->env, HF_LOG_ERROR, "the server has ended: %s", text);
}

static void *run_server(void *user)
{
    struct hf_server *v = user;
    struct hf_scope *s = hf_scope_new(&v->env);
    enum hf_status status = s ? hf__server_run(s, v->server) : HF_NOMEM;

    if (status != HF_OK)
        note_failure(v, status, s ? hf_scope_error_text(s) : "no memory for the server");
    hf_scope_free(s);
    return NULL;
}

/* (4) */
static enum hf_status wait_until_ready(struct hf_scope *s, struct hf_server *v)
{
    enum hf_status status = HF_OK;

    pthread_mutex_lock(&v->lock);
    while (v->phase == PHASE_STARTING)
        pthread_cond_wait(&v->changed, &v->lock);
    if (v->phase == PHASE_FAILED)
        status = hf__fail(s, v->status, "%s", v->failure);
    pthread_mutex_unlock(&v->lock);
    return status;
}

static enum hf_status start_thread(struct hf_scope *s, struct hf_server *v)
{
    sigset_t all, before;

    sigfillset(&all); /* (3) */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    v->runs = pthread_create(&v->thread, NULL, run_server, v) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (!v->runs)
        return hf__fail(s, HF_LIMIT, "cannot start a thread: is the limit of processes reached?");
    return wait_until_ready(s, v);
}

/* ---- opening -------------------------------------------------------------------------------- */

static enum hf_status take_keys(struct hf_scope *s, const struct hf_server_options *o,
                                struct server_options *options)
{
    struct sign_credentials *keys;

    if (o->keys_len == 0)
        return HF_OK;
    keys = hf__scope_array(s, o->keys_len, sizeof(*keys));
    if (!keys)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < o->keys_len; i++)
        keys[i] = (struct sign_credentials){.access_key = o->keys[i].access_key,
                                            .secret_key = o->keys[i].secret_key};
    options->keys = keys;
    options->keys_len = o->keys_len;
    return HF_OK;
}

static struct hf_str name_of(struct hf_scope *s, const struct hf_server_options *o,
                             const struct hf_engine_stats *stats)
{
    if (o->name.len)
        return o->name;
    if (!stats->embedded)
        return HF_STR("a service");
    return stats->path.ptr ? hf_scope_format(s, "embedded:%.*s", HF_FMT(stats->path))
                           : HF_STR("memory:");
}

static struct hf_str url_of(struct hf_server *v, struct hf_str host)
{
    bool six = host.len && memchr(host.ptr, ':', host.len);

    if (!host.len || hf_str_equal(host, HF_STR("localhost")))
        host = HF_STR("127.0.0.1");
    return hf_scope_format(v->memory, six ? "http://[%.*s]:%u" : "http://%.*s:%u", HF_FMT(host),
                           (unsigned)hf__server_port(v->server));
}

static enum hf_status open_server(struct hf_scope *s, struct hf_server *v, struct hf_db *db,
                                  const struct hf_server_options *o)
{
    struct hf_db *served = o->read_only ? &v->read_only.db : db;
    struct hf_engine_stats stats;
    struct server_options options;

    hf_engine_stats(db, &stats);
    options = (struct server_options){
        .env = &v->env,
        .host = o->host,
        .port = o->port,
        .loops = o->threads ? o->threads : 1,
        .workers = stats.embedded ? 0 : REMOTE_WORKERS,
        .drain_ms = o->stop_ms,
        .sync_beside = stats.path.ptr != NULL,
        .console = !o->no_console,
        .database = name_of(s, o, &stats),
        .data_dir = stats.path,
        .region_shown = o->region.len ? o->region : HF_STR("us-east-1"),
        .read_only = o->read_only || stats.read_only,
        .in_memory = stats.embedded && !stats.path.ptr,
        .remote = !stats.embedded,
        .engine = db,
        .on_ready = on_ready,
        .user = v,
    };
    TRY(take_keys(s, o, &options));
    if (o->socket.len) {
        TRY(open_socket(s, v, o->socket));
        options.sockets = &v->socket;
        options.sockets_len = 1;
    }
    hf__serving_read_only_init(&v->read_only, db);
    if (!o->no_console) {
        TRY(hf__serving_calls_open(s, served, &v->env, options.read_only, &v->calls));
        hf__serving_calls_offer(&v->calls, &options);
    }
    TRY(hf__server_open(s, served, &options, &v->server));
    if (!v->url.ptr)
        v->url = url_of(v, o->host);
    if (!v->url.ptr)
        return hf__fail_nomem(s);
    TRY(start_thread(s, v));
    if (stats.path.ptr && !stats.read_only && !o->socket.len)
        write_mark(v, stats.path);
    return HF_OK;
}

enum hf_status hf_server_open(struct hf_scope *s, struct hf_db *db,
                              const struct hf_server_options *options, struct hf_server **server)
{
    struct hf_server_options o = {.size = sizeof(o)};
    struct hf_env env;
    struct hf_server *made;
    enum hf_status status;

    *server = NULL;
    hf__scope_error_clear(s);
    if (!db)
        return hf__fail(s, HF_INVALID, "hf_server_open() was called without a database (NULL)");
    if (options)
        memcpy(&o, options, options->size < sizeof(o) ? options->size : sizeof(o));
    if (o.host.len && o.socket.len)
        return hf__fail(s, HF_INVALID, "the server cannot have a host and a Unix socket, too");
    env = hf__env_fill(o.env);
    made = hf__env_alloc(&env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    made->env = env;
    made->socket = -1;
    pthread_mutex_init(&made->lock, NULL);
    pthread_cond_init(&made->changed, NULL);
    made->memory = hf_scope_new(&made->env);
    status = made->memory ? open_server(s, made, db, &o) : hf__fail_nomem(s);
    if (status != HF_OK) {
        hf_server_close(made);
        return status;
    }
    *server = made;
    return HF_OK;
}

uint16_t hf_server_port(const struct hf_server *server)
{
    return hf__server_port(server->server);
}

struct hf_str hf_server_url(const struct hf_server *server)
{
    return server->url;
}

void hf_server_stop(struct hf_server *server)
{
    hf__server_stop(server->server);
}

void hf_server_close(struct hf_server *server)
{
    struct hf_env env;

    if (!server)
        return;
    env = server->env;
    if (server->mark.ptr)
        unlink(server->mark.ptr);
    if (server->server)
        hf__server_stop(server->server);
    if (server->runs)
        pthread_join(server->thread, NULL);
    hf__server_close(server->server);
    hf__serving_calls_close(&server->calls);
    if (server->socket_path.ptr)
        unlink(server->socket_path.ptr);
    if (server->socket >= 0)
        close(server->socket);
    hf_scope_free(server->memory);
    pthread_cond_destroy(&server->changed);
    pthread_mutex_destroy(&server->lock);
    hf__env_free(&env, server, sizeof(*server));
}
