/*
 * server/server.c: loops and their threads, taking connections, signals, stopping.
 *
 * The first loop runs on the thread that calls hf__server_run(); it also takes new connections,
 * and hands each to the loop that has the fewest. That costs a wake-up per connection, and in
 * return the loops are evenly busy, which sockets of their own would leave to chance.
 *
 * Stopping: the listeners close; what is asked gets its answer with "Connection: close" and
 * drain_ms to take it; connections on which nothing has begun are closed after DRAIN_IDLE_MS, as a
 * request may be on its way that was sent before its client could know. A loop ends when its last
 * connection is closed.
 */
#include "server/server.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sched_slice.h"
#include "server/admin/admin.h"
#include "server/conn/descriptors.h"
#include "server/conn/tls.h"
#include "server/console/figures.h"
#include "server/console/hot.h"
#include "server/console/tail.h"
#include "server/console/watcher.h"
#include "server/metrics.h"
#include "server/private.h"

enum {
    LOOPS_MAX = 256,
    RETRY_MS = 200 /* after running out of descriptors */
};

/* ---- options -------------------------------------------------------------------------------- */

static uint32_t or_default(uint32_t given, uint32_t standard)
{
    return given ? given : standard;
}

static uint32_t at_least(uint32_t number, uint32_t least)
{
    return number < least ? least : number;
}

static uint32_t count_cores(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 ? (uint32_t)CPU_COUNT(&set) : 1;
}

static enum hf_status copy_keys(struct hf_scope *s, struct server *server)
{
    struct server_options *o = &server->options;
    struct sign_credentials *keys =
        hf__scope_array(server->memory, o->keys_len ? o->keys_len : 1, sizeof(*keys));
    struct hf_str *hosts =
        hf__scope_array(server->memory, o->hosts_len ? o->hosts_len : 1, sizeof(*hosts));

    if (!keys || !hosts)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < o->keys_len; i++) {
        keys[i].access_key = hf_scope_copy(server->memory, o->keys[i].access_key);
        keys[i].secret_key = hf_scope_copy(server->memory, o->keys[i].secret_key);
        if (o->keys[i].session_token.ptr)
            keys[i].session_token = hf_scope_copy(server->memory, o->keys[i].session_token);
    }
    for (size_t i = 0; i < o->hosts_len; i++)
        hosts[i] = hf_scope_copy(server->memory, o->hosts[i]);
    o->keys = keys;
    o->hosts = hosts;
    return hf__scope_alloc_failed(server->memory) ? hf__fail_nomem(s) : HF_OK;
}

static void copy_text(struct server *server, struct hf_str *text)
{
    if (text->ptr)
        *text = hf_scope_copy(server->memory, *text);
}

/* Copy the options, with defaults for what is left out. */
static enum hf_status take_options(struct hf_scope *s, struct server *server,
                                   const struct server_options *options)
{
    struct server_options *o = &server->options;

    *o = *options;
    o->host = hf_scope_copy(server->memory, o->host.len ? o->host : HF_STR("127.0.0.1"));
    copy_text(server, &o->cors);
    copy_text(server, &o->console_dir);
    copy_text(server, &o->data_dir);
    copy_text(server, &o->database);
    copy_text(server, &o->region_shown);
    o->loops = or_default(o->loops, count_cores());
    o->connections_max = or_default(o->connections_max, 10000);
    o->workers = or_default(o->workers, at_least(o->loops, o->console ? 4 : 2));
    hf__budget_init(&server->budget, o->memory_max, o->input_max);
    o->head_ms = or_default(o->head_ms, 10000);
    o->body_ms = or_default(o->body_ms, 60000);
    o->idle_ms = or_default(o->idle_ms, 300000);
    o->drain_ms = or_default(o->drain_ms, 5000);
    o->clock_window_s = or_default(o->clock_window_s, 300);
    if (o->loops > LOOPS_MAX)
        return hf__fail(s, HF_INVALID, "%u event loops requested; the limit is %d", o->loops,
                        LOOPS_MAX);
    if (o->workers > LOOPS_MAX)
        return hf__fail(s, HF_INVALID, "%u workers requested; the limit is %d", o->workers,
                        LOOPS_MAX);
    if (o->admin && (!o->engine || !o->clock))
        return hf__fail(s, HF_INVALID, "the admin path needs a database and a clock to work on");
    if (!o->certificate.ptr != !o->private_key.ptr)
        return hf__fail(s, HF_INVALID, "TLS needs both a certificate and its private key");
    return copy_keys(s, server);
}

/* ---- taking connections --------------------------------------------------------------------- */

static void hand_over(struct loop *loop, struct incoming incoming);

/* On the loop's thread. When there are as many connections as there may be, any loop may have one that makes
 * place: all are asked before somebody is turned away. */
static void take_socket(struct loop *loop, struct incoming incoming)
{
    struct server *server = loop->server;
    size_t next = (size_t)(loop - server->loops + 1) % server->loops_len;

    assert(incoming.asked < server->loops_len);
    if (loop->draining || hf__conn_has_place(loop))
        hf__conn_open(loop, incoming.fd);
    else if (++incoming.asked < server->loops_len)
        hand_over(&server->loops[next], incoming);
    else
        hf__conn_turn_away(loop, incoming.fd);
}

/* On the loop's thread: take what was handed over. */
static void take_over(struct loop *loop)
{
    struct incoming all[ACCEPTS_MAX];
    size_t len;

    do {
        pthread_mutex_lock(&loop->lock);
        assert(loop->incoming_len <= loop->incoming_cap);
        len = loop->incoming_len < ACCEPTS_MAX ? loop->incoming_len : ACCEPTS_MAX;
        loop->incoming_len -= len;
        for (size_t i = 0; i < len; i++)
            all[i] = loop->incoming[loop->incoming_len + i];
        pthread_mutex_unlock(&loop->lock);
        for (size_t i = 0; i < len; i++)
            take_socket(loop, all[i]);
    } while (len > 0);
}

/* Any thread. The socket is closed when there is no memory to hand it over. */
static void hand_over(struct loop *loop, struct incoming incoming)
{
    const struct hf_env *env = &loop->server->env;
    bool done = true;

    assert(incoming.fd >= 0);
    pthread_mutex_lock(&loop->lock);
    assert(loop->incoming_len <= loop->incoming_cap);
    if (loop->incoming_len == loop->incoming_cap) {
        size_t cap = loop->incoming_cap ? 2 * loop->incoming_cap : ACCEPTS_MAX;
        struct incoming *grown =
            hf__env_resize(env, loop->incoming, loop->incoming_cap * sizeof(*grown),
                           cap * sizeof(*grown));

        done = grown != NULL;
        if (done) {
            loop->incoming = grown;
            loop->incoming_cap = cap;
        }
    }
    if (done)
        loop->incoming[loop->incoming_len++] = incoming;
    pthread_mutex_unlock(&loop->lock);
    if (done)
        uv_async_send(&loop->wake);
    else
        close(incoming.fd);
}

static struct loop *least_busy(struct server *server)
{
    struct loop *best = &server->loops[0];
    unsigned fewest = UINT32_MAX;

    for (size_t i = 0; i < server->loops_len; i++) {
        struct loop *loop = &server->loops[i];
        unsigned len = atomic_load(&loop->conns_len);

        pthread_mutex_lock(&loop->lock);
        len += (unsigned)loop->incoming_len;
        pthread_mutex_unlock(&loop->lock);
        if (len < fewest) {
            fewest = len;
            best = loop;
        }
    }
    return best;
}

static void on_retry(uv_timer_t *timer);

static void on_acceptable(uv_poll_t *poll, int status, int events)
{
    struct listener *listener = poll->data;
    struct server *server = listener->server;

    (void)status;
    (void)events;
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        int fd = accept4(listener->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        struct loop *loop;

        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
                hf__env_log(&server->env, HF_LOG_WARNING, "cannot accept a connection: %s",
                            strerror(errno));
                uv_poll_stop(&listener->poll);
                listener->paused = true;
                uv_timer_start(&server->retry, on_retry, RETRY_MS, 0);
            }
            if (errno == ECONNABORTED || errno == EINTR)
                continue;
            return;
        }
        loop = least_busy(server);
        if (loop == &server->loops[0])
            take_socket(loop, (struct incoming){.fd = fd});
        else
            hand_over(loop, (struct incoming){.fd = fd});
    }
}

static void on_retry(uv_timer_t *timer)
{
    struct server *server = timer->data;

    for (size_t i = 0; i < server->listeners_len; i++) {
        struct listener *listener = &server->listeners[i];

        if (!listener->paused)
            continue;
        listener->paused = false;
        uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
    }
}

/* ---- loops ---------------------------------------------------------------------------------- */

static void on_check(uv_check_t *check)
{
    hf__group_commit_flush(check->data);
}

/* At once, so that new clients are refused and go elsewhere instead of waiting for our end. */
static void close_listener(struct listener *listener)
{
    if (listener->ours)
        close(listener->fd);
    listener->ours = false;
}

static void stop_listening(struct server *server)
{
    uv_timer_stop(&server->retry);
    for (size_t i = 0; i < server->listeners_len; i++) {
        struct listener *listener = &server->listeners[i];

        if (!uv_is_closing((uv_handle_t *)&listener->poll))
            uv_close((uv_handle_t *)&listener->poll, NULL);
        close_listener(listener);
    }
    if (server->options.on_stop)
        server->options.on_stop(server->options.user);
}

static void begin_draining(struct loop *loop)
{
    assert(!loop->draining && atomic_load(&loop->server->stopping));
    loop->draining = true;
    loop->drain_ms = uv_now(&loop->uv) + loop->server->options.drain_ms;
    if (loop->number == 0)
        stop_listening(loop->server);
    hf__conn_drain(loop);
    if (!loop->conns)
        uv_stop(&loop->uv);
}

static void on_wake(uv_async_t *wake)
{
    struct loop *loop = wake->data;

    take_over(loop);
    if (atomic_load(&loop->server->stopping) && !loop->draining)
        begin_draining(loop);
    if (atomic_load(&loop->server->hurry))
        hf__conn_cut(loop);
}

static void on_synced(uv_async_t *synced)
{
    hf__group_commit_synced(synced->data);
}

static void on_worked(uv_async_t *worked)
{
    hf__work_done(worked->data);
}

/* On the syncer's thread. */
static void wake_loops(void *user)
{
    struct server *server = user;

    for (size_t i = 0; i < server->loops_len; i++) {
        if (atomic_load(&server->loops[i].awaits_sync))
            uv_async_send(&server->loops[i].synced);
    }
}

static void cut_all_off(struct server *server)
{
    atomic_store(&server->hurry, true);
    for (size_t i = 0; i < server->loops_len; i++)
        uv_async_send(&server->loops[i].wake);
}

static void take_signal(struct server *server, uint32_t number)
{
    struct hf_scope *s = server->loops[0].context.scope;

    if (number != SIGHUP) {
        if (atomic_load(&server->stopping)) /* once more: no patience left */
            cut_all_off(server);
        hf__server_stop(server);
        return;
    }
    hf_scope_reset(s);
    if (!server->tls)
        return;
    if (hf__tls_reload(s, server->tls) == HF_OK)
        hf__env_log(&server->env, HF_LOG_INFO, "certificates reloaded");
    else
        hf__env_log(&server->env, HF_LOG_ERROR,
                    "certificates not reloaded, the previous ones stay in use: %s",
                    hf_scope_error_text(s));
}

static void on_signals(uv_poll_t *poll, int status, int events)
{
    struct server *server = poll->data;
    struct signalfd_siginfo info;

    (void)status;
    (void)events;
    while (read(server->signals_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
        take_signal(server, info.ssi_signo);
}

/*
 * Signals are read like data: nothing interrupts anything, and one that came before we were ready
 * is still there.
 */
static enum hf_status open_signals(struct hf_scope *s, struct server *server)
{
    sigset_t numbers;

    sigemptyset(&numbers);
    sigaddset(&numbers, SIGTERM);
    sigaddset(&numbers, SIGINT);
    sigaddset(&numbers, SIGHUP);
    server->signals_fd = signalfd(-1, &numbers, SFD_NONBLOCK | SFD_CLOEXEC);
    if (server->signals_fd < 0 ||
        uv_poll_init(&server->loops[0].uv, &server->signals, server->signals_fd) != 0)
        return hf__fail(s, HF_IO, "cannot handle signals: out of file descriptors?");
    server->signals.data = server;
    uv_poll_start(&server->signals, UV_READABLE, on_signals);
    return HF_OK;
}

enum hf_status hf__context_authenticates(struct hf_scope *s, struct context *context)
{
    struct server *server = context->server;
    const struct server_options *o = &server->options;

    TRY(hf__auth_new(s, &server->env, o->keys, o->keys_len, o->clock_window_s, &context->auth));
    if (o->certificate.ptr)
        hf__auth_allow_unsigned_body(context->auth);
    return o->region.len ? hf__auth_set_region(s, context->auth, o->region) : HF_OK;
}

static enum hf_status init_loop(struct hf_scope *s, struct server *server, size_t number)
{
    struct loop *loop = &server->loops[number];

    assert(number == server->loops_len);
    loop->server = server;
    loop->number = number;
    loop->context.server = server;
    loop->context.metrics = hf__metrics_thread(server->metrics, number);
    loop->context.hot = hf__hot_thread(server->hot, number);
    loop->context.tail = hf__tail_thread(server->tails, number);
    pthread_mutex_init(&loop->lock, NULL);
    hf__env_random(&server->env, loop->context.random, sizeof(loop->context.random));
    loop->context.random[0] |= 1; /* all zero would stay so */
    if (uv_loop_init(&loop->uv) != 0)
        return hf__fail(s, HF_IO, "cannot create an event loop: out of file descriptors?");
    server->loops_len++; /* from here on hf__server_close() takes care of it */
    uv_check_init(&loop->uv, &loop->check);
    uv_idle_init(&loop->uv, &loop->idle);
    hf__busy_poll_init(&loop->busy_poll, &loop->uv, count_cores() > 1);
    uv_timer_init(&loop->uv, &loop->sweep);
    uv_timer_init(&loop->uv, &loop->delay);
    if (uv_async_init(&loop->uv, &loop->wake, on_wake) != 0 ||
        uv_async_init(&loop->uv, &loop->synced, on_synced) != 0 ||
        uv_async_init(&loop->uv, &loop->worked, on_worked) != 0 ||
        uv_async_init(&loop->uv, &loop->news, hf__watcher_on_news) != 0)
        return hf__fail(s, HF_IO, "cannot create an event loop: out of file descriptors?");
    loop->check.data = loop;
    loop->idle.data = loop;
    loop->sweep.data = loop;
    loop->delay.data = loop;
    loop->wake.data = loop;
    loop->news.data = loop;
    loop->synced.data = loop;
    loop->worked.data = loop;
    uv_check_start(&loop->check, on_check);
    loop->context.scope = hf_scope_new(&server->env);
    loop->input = hf__env_alloc(&server->env, INPUT_SIZE);
    if (!loop->context.scope || !loop->input)
        return hf__fail_nomem(s);
    return hf__context_authenticates(s, &loop->context);
}

static void close_handle(uv_handle_t *handle, void *user)
{
    (void)user;
    if (uv_is_closing(handle))
        return;
    if (handle->type == UV_TCP)
        hf__conn_close(handle->data);
    else
        uv_close(handle, NULL);
}

static void close_loop(struct loop *loop)
{
    const struct hf_env *env = &loop->server->env;
    int error;

    hf__work_done(loop); /* which a loop that somebody runs by hand may have left there */
    uv_walk(&loop->uv, close_handle, NULL);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    error = uv_loop_close(&loop->uv);
    assert(error == 0); /* no handle is left open */
    (void)error;
    assert(!loop->conns && !loop->oldest && atomic_load(&loop->conns_len) == 0);
    for (size_t state = 0; state < CONN_STATES; state++)
        assert(!loop->lists[state].first && !loop->lists[state].last);
    assert(loop->pending == 0 && !loop->done && loop->pool_len <= OUTPUT_POOL);
    for (size_t i = 0; i < loop->incoming_len; i++)
        close(loop->incoming[i].fd);
    for (size_t i = 0; i < loop->pool_len; i++)
        hf__buf_free(&loop->pool[i]);
    hf__env_free(env, loop->incoming, loop->incoming_cap * sizeof(*loop->incoming));
    hf__env_free(env, loop->input, INPUT_SIZE);
    hf__auth_free(loop->context.auth);
    hf_scope_free(loop->context.scope);
    pthread_mutex_destroy(&loop->lock);
}

static void *run_loop(void *user)
{
    struct loop *loop = user;

    (void)sched_slice_set(SHORT_SLICE_NS);
    uv_run(&loop->uv, UV_RUN_DEFAULT);
    return NULL;
}

/* ---- the server ----------------------------------------------------------------------------- */

static enum hf_status start_first_loop(struct hf_scope *s, struct server *server)
{
    uv_loop_t *uv = &server->loops[0].uv;

    uv_timer_init(uv, &server->retry);
    server->retry.data = server;
    for (size_t i = 0; i < server->listeners_len; i++) {
        struct listener *listener = &server->listeners[i];

        if (uv_poll_init(uv, &listener->poll, listener->fd) != 0)
            return hf__fail(s, HF_IO, "cannot listen on descriptor %d", listener->fd);
        listener->poll.data = listener;
        uv_poll_start(&listener->poll, UV_READABLE, on_acceptable);
    }
    return server->options.signals ? open_signals(s, server) : HF_OK;
}

/* All that is ours is open: what is left is for connections and the database. */
static enum hf_status bound_connections(struct hf_scope *s, struct server *server)
{
    uint64_t limit = hf__descriptors_limit();
    uint32_t most = hf__descriptors_for_connections(limit, hf__descriptors_open());

    if (most == 0)
        return hf__fail(
            s, HF_IO,
            "the limit of open files (%llu) leaves none for connections; raise it (ulimit -n, "
            "LimitNOFILE=)",
            (unsigned long long)limit);
    if (most >= server->options.connections_max)
        return HF_OK;
    hf__env_log(&server->env, HF_LOG_WARNING,
                "the limit of open files (%llu) allows %u connections instead of %u; "
                "raise it (ulimit -n, LimitNOFILE=) to allow more",
                (unsigned long long)limit, most, server->options.connections_max);
    server->options.connections_max = most;
    return HF_OK;
}

static enum hf_status open_parts(struct hf_scope *s, struct server *server,
                                 const struct server_options *options)
{
    TRY(take_options(s, server, options));
    if (options->certificate.ptr)
        TRY(hf__tls_open(s, &server->env, options->certificate, options->private_key,
                         &server->tls));
    TRY(hf__checker_open(s, &server->checker, &server->env, server->engine));
    TRY(hf__listen_open(s, server));
    if (options->admin) {
        server->snapshots = hf__snapshots_new(&server->env);
        if (!server->snapshots)
            return hf__fail_nomem(s);
    }
    server->metrics =
        hf__metrics_new(server->memory, server->options.loops + server->options.workers);
    server->hot = hf__hot_new(server->memory, server->options.loops + server->options.workers);
    server->loops = hf__scope_array(server->memory, server->options.loops, sizeof(struct loop));
    if (options->console) {
        server->tails =
            hf__tail_new(server->memory, server->options.loops + server->options.workers);
        server->figures = hf__figures_new(server);
    }
    if (!server->metrics || !server->hot || !server->loops ||
        (options->console && (!server->tails || !server->figures)))
        return hf__fail_nomem(s);
    for (size_t i = 0; i < server->options.loops; i++)
        TRY(init_loop(s, server, i));
    TRY(start_first_loop(s, server));
    return bound_connections(s, server);
}

enum hf_status hf__server_open(struct hf_scope *s, struct hf_db *db,
                               const struct server_options *options, struct server **server)
{
    struct hf_env env = hf__env_fill(options->env);
    struct server *made = hf__env_alloc(&env, sizeof(*made));
    enum hf_status status;

    *server = NULL;
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    made->env = env;
    made->signals_fd = -1;
    made->db = db;
    made->engine = options->engine ? options->engine : db;
    made->memory = hf_scope_new(&made->env);
    status = made->memory ? open_parts(s, made, options) : hf__fail_nomem(s);
    if (status != HF_OK) {
        hf__server_close(made);
        return status;
    }
    *server = made;
    return HF_OK;
}

/* Writing to a socket whose other side is gone must be an error, not a signal that ends the
 * process. Its handling belongs to the program; so our threads, and only they, do not get it. */
static void block_sigpipe(sigset_t *before)
{
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &pipe, before);
}

/* The calling thread is as it was: what was held back for our writes is dropped. */
static void restore_sigpipe(const sigset_t *before)
{
    sigset_t pipe;

    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    if (!sigismember(before, SIGPIPE)) {
        while (sigtimedwait(&pipe, NULL, &(struct timespec){0}) == SIGPIPE)
            continue;
    }
    pthread_sigmask(SIG_SETMASK, before, NULL);
}

static enum hf_status start_threads(struct hf_scope *s, struct server *server, size_t *started)
{
    if (server->options.sync_beside)
        TRY(hf__syncer_start(s, &server->syncer, &server->env, server->db, wake_loops, server));
    TRY(hf__work_start(s, server));
    if (server->figures)
        TRY(hf__figures_start(s, server->figures));
    for (; *started < server->loops_len; (*started)++) {
        struct loop *loop = &server->loops[*started];

        if (pthread_create(&loop->thread, NULL, run_loop, loop) != 0)
            return hf__fail(s, HF_LIMIT,
                            "cannot start a thread: is the limit of processes reached?");
    }
    return HF_OK;
}

enum hf_status hf__server_run(struct hf_scope *s, struct server *server)
{
    enum hf_status status;
    size_t started = 1;
    sigset_t before;

    block_sigpipe(&before); /* threads inherit it */
    status = start_threads(s, server, &started);
    if (status != HF_OK)
        hf__server_stop(server);
    else if (server->options.on_ready)
        server->options.on_ready(server->options.user);
    run_loop(&server->loops[0]);
    for (size_t i = 1; i < started; i++)
        pthread_join(server->loops[i].thread, NULL);
    if (server->syncer.runs)
        hf__syncer_stop(&server->syncer);
    if (server->work.workers_len)
        hf__work_stop(&server->work);
    hf__checker_stop(&server->checker);
    hf__figures_stop(server->figures);
    restore_sigpipe(&before);
    return status;
}

void hf__server_stop(struct server *server)
{
    if (atomic_exchange(&server->stopping, true))
        return;
    for (size_t i = 0; i < server->loops_len; i++)
        uv_async_send(&server->loops[i].wake);
}

uint16_t hf__server_port(const struct server *server)
{
    return server->port;
}

void hf__server_close(struct server *server)
{
    struct hf_env env;

    if (!server)
        return;
    env = server->env;
    for (size_t i = 0; i < server->loops_len; i++)
        close_loop(&server->loops[i]);
    assert(atomic_load(&server->conns_len) == 0 && !server->syncer.runs);
    assert(atomic_load(&server->budget.input) == 0 && atomic_load(&server->budget.output) == 0);
    for (size_t i = 0; i < server->listeners_len; i++)
        close_listener(&server->listeners[i]);
    if (server->signals_fd >= 0)
        close(server->signals_fd);
    hf__tls_close(server->tls);
    hf__snapshots_free(server->snapshots);
    hf__checker_close(&server->checker);
    hf__figures_free(server->figures);
    hf__tail_free(server->tails, server->options.loops + server->options.workers);
    hf__hot_free(server->hot, server->options.loops + server->options.workers);
    hf_scope_free(server->memory);
    hf__env_free(&env, server, sizeof(*server));
}
