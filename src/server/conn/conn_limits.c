/*
 * server/conn/conn_limits.c: which connections there are: opening them, how many and for how long, and
 * their end when the server stops.
 *
 * A connection beyond the limit replaces an idle one of any loop, or is refused. Each
 * state of a connection (conn.c) has its deadline, and a sweep every SWEEP_MS closes those whose
 * time is over; while somebody waits for memory it also closes those whose readers are slow.
 */
#include "server/private.h"

#include <sys/socket.h>
#include <unistd.h>

#include "server/conn/tls.h"
#include "server/metrics.h"

/* ---- opening -------------------------------------------------------------------------------- */

static void on_sweep(uv_timer_t *timer);

/* Over the limit: refuse in one write, which a new socket always takes. It is JSON, as the answer
 * to the call that the client is about to make. */
void hf__conn_turn_away(struct loop *loop, int fd)
{
    static const char answer[] =
        "HTTP/1.1 503 Service Unavailable\r\nServer: holdfast\r\n"
        "Content-Type: application/x-amz-json-1.0\r\nContent-Length: 98\r\n"
        "Connection: close\r\n\r\n"
        "{\"__type\":\"com.amazon.coral.service#ServiceUnavailableException\","
        "\"message\":\"Too many connections\"}";

    if (!loop->server->tls)
        (void)!send(fd, answer, sizeof(answer) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    shutdown(fd, SHUT_WR);
    close(fd);
    hf__metrics_turned_away(loop->context.metrics);
}

static bool has_been_idle(const struct conn *conn, uint64_t now)
{
    return conn->state == CONN_IDLE &&
           now + conn->loop->server->options.idle_ms >= conn->deadline_ms + IDLE_SAFE_MS;
}

/*
 * The limit is reached: close a connection of this loop that nobody misses for a new one. Of the oldest, one on
 * which no request ever came to its end; else the one that has waited longest for its next request,
 * which clients know how to live with. False when there is none.
 */
static bool make_place(struct loop *loop)
{
    uint64_t now = uv_now(&loop->uv);
    struct conn *idle = NULL, *silent = NULL, *conn = loop->oldest;

    for (int i = 0; conn && !silent && i < OLDEST_LOOK; conn = conn->previous, i++) {
        if (conn->state == CONN_CLOSED || now - conn->opened_ms < NEWCOMER_MS || conn_is_busy(conn))
            continue;
        if (!conn->asked)
            silent = conn;
        else if (has_been_idle(conn, now) && (!idle || conn->deadline_ms < idle->deadline_ms))
            idle = conn;
    }
    silent = silent ? silent : idle;
    if (!silent)
        return false;
    assert(!conn_is_busy(silent) && silent->state != CONN_CLOSED);
    hf__metrics_displaced(loop->context.metrics);
    hf__conn_close(silent);
    return true;
}

bool hf__conn_has_place(struct loop *loop)
{
    struct server *server = loop->server;

    return atomic_load(&server->conns_len) < server->options.connections_max || make_place(loop);
}

void hf__conn_open(struct loop *loop, int fd)
{
    struct server *server = loop->server;
    struct conn *conn;

    assert(fd >= 0 && !loop->conns == !loop->oldest);
    if (loop->draining) {
        hf__conn_turn_away(loop, fd);
        return;
    }
    conn = hf__env_alloc(&server->env, sizeof(*conn));
    if (!conn) {
        close(fd);
        return;
    }
    memset(conn, 0, sizeof(*conn));
    atomic_init(&conn->gone, false);
    conn->loop = loop;
    conn->paused = true; /* until it is resumed below */
    conn->in.env = &server->env;
    conn->out.env = &server->env;
    if (uv_tcp_init(&loop->uv, &conn->tcp) != 0) {
        close(fd);
        hf__env_free(&server->env, conn, sizeof(*conn));
        return;
    }
    conn->tcp.data = conn;
    conn->holders = 1;
    conn->next = loop->conns;
    if (conn->next)
        conn->next->previous = conn;
    else
        loop->oldest = conn;
    loop->conns = conn;
    conn->opened_ms = conn->begun_ms = uv_now(&loop->uv);
    conn->deadline_ms = UINT64_MAX;
    atomic_fetch_add(&loop->conns_len, 1);
    atomic_fetch_add(&server->conns_len, 1);
    hf__metrics_accepted(loop->context.metrics);
    if (!uv_is_active((uv_handle_t *)&loop->sweep))
        uv_timer_start(&loop->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
    if (uv_tcp_open(&conn->tcp, fd) != 0) {
        close(fd);
        hf__conn_close(conn);
        return;
    }
    uv_tcp_nodelay(&conn->tcp, 1);
    if (server->tls && !hf__tls_new(conn))
        hf__conn_close(conn);
    else if (hf__conn_resume(conn))
        hf__conn_move(conn, server->tls ? CONN_HANDSHAKE : CONN_IDLE);
}

/* ---- time limits ---------------------------------------------------------------------------- */

static bool is_between_requests(const struct conn *conn)
{
    return conn->state == CONN_HANDSHAKE || conn->state == CONN_IDLE;
}

static void time_out_conn(struct conn *conn)
{
    assert(conn->state != CONN_CLOSED && conn->deadline_ms != UINT64_MAX);
    if (!conn->loop->draining || !is_between_requests(conn))
        hf__metrics_timed_out(conn->loop->context.metrics);
    if (conn->state != CONN_HEAD && conn->state != CONN_BODY) {
        hf__conn_close(conn);
        return;
    }
    conn->loop->reader.error =
        (struct http_error){408,
                            "The request was not complete within the time limit of the server"};
    hf__route_bad(conn, &conn->loop->reader);
    assert(conn->state == CONN_READY && conn->close_after);
}

/* Has the reader taken enough not to count as slow? */
static void look_at_reader(struct conn *conn, uint64_t now)
{
    size_t queued = uv_stream_get_write_queue_size((uv_stream_t *)&conn->tcp);

    assert(conn->state == CONN_SENDING && conn->moved_ms <= now);
    if (conn->queued > queued && conn->queued - queued >= STALL_BYTES) {
        conn->queued = queued;
        conn->moved_ms = now;
    }
}

/* Close connections whose deadline has passed; and when the server stops, at last all. */
static void on_sweep(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    uint64_t now = uv_now(&loop->uv);

    for (struct conn *conn = loop->conns; conn; conn = conn->next) {
        if (loop->draining && now >= loop->drain_ms)
            hf__conn_close(conn);
        else if (now >= conn->deadline_ms)
            time_out_conn(conn);
        else if (conn->state == CONN_SENDING)
            look_at_reader(conn, now);
    }
    if (loop->draining && now >= loop->drain_ms)
        hf__work_cancel(&loop->server->work);
    while (hf__budget_pressed(&loop->server->budget) && hf__conn_evict(loop, STALL_MS))
        continue;
    hf__group_commit_flush(loop); /* poll comes first otherwise, and may sleep */
}

/* ---- stopping ------------------------------------------------------------------------------- */

void hf__conn_drain(struct loop *loop)
{
    uint64_t until = uv_now(&loop->uv) + DRAIN_IDLE_MS;

    if (!loop->conns)
        return;
    if (until > loop->drain_ms)
        until = loop->drain_ms;
    for (struct conn *conn = loop->conns; conn; conn = conn->next) {
        if (is_between_requests(conn) && conn->deadline_ms > until)
            conn->deadline_ms = until;
        else if (conn->state == CONN_WATCHING)
            hf__conn_linger(conn);
    }
    uv_timer_start(&loop->sweep, on_sweep, until - uv_now(&loop->uv), SWEEP_MS);
}

void hf__conn_cut(struct loop *loop)
{
    hf__work_cancel(&loop->server->work);
    for (struct conn *conn = loop->conns; conn; conn = conn->next)
        hf__conn_close(conn);
}
