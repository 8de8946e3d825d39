/*
 * server/conn/conn.c: the states of a connection, and the moves between them.
 *
 *     NEW --> HANDSHAKE --> IDLE <------------------------------------------------.
 *                            | first byte                                         |
 *                            v                                                    |
 *                           HEAD --head complete--> BODY <------------------------+ all is sent:
 *                            |                       |                            | read on
 *                            `----request complete---'                            |
 *                               |                |                                |
 *                    may take long            answered                            |
 *                               v                v                                |
 *                            WORKING --done--> READY --what is durable is sent----+
 *                                              ^ | |                              |
 *                      DELAYED --time is over--' | `--needs sync---> SYNCING -----+
 *                         ^----a fault wants it--'                                |
 *                                                                                 |
 *     READY, SYNCING --socket is full--> SENDING <--> NEXT_PART ------------------+
 *                                                                                 |
 *     BACKLOG: more requests came than fit into one iteration <-------------------'
 *
 *     READY, SENDING --the answer has no end--> WATCHING --news--> READY
 *
 *     from anywhere CLOSED; by way of LINGER when the last answer was sent but the other side may
 *     still be sending: closing at once would make its kernel throw away what we said.
 *
 * `allowed_moves` has every move there is. Only hf__conn_move() makes one, and aborts when it is
 * not in the table. Builds for tests check after each move that what the new state says is true:
 * conn_check().
 *
 *  (1) A connection that is busy (BACKLOG to NEXT_PART) is in the list of its state, the others are
 *      in none.
 *  (2) A state in which we wait for the client has a deadline. A client that sends a byte now and
 *      then does not move it, as it counts from the first byte of a request; time in which nothing
 *      was read, or a sync ran, is not the client's.
 *  (3) In HANDSHAKE, IDLE, HEAD, BODY, WATCHING and LINGER the socket is read; in BACKLOG, DELAYED, WORKING,
 *      SENDING and NEXT_PART it is not. In READY and SYNCING it is until something comes that has
 *      to wait, so that the end of the connection shows.
 *  (4) Where the socket is read nothing waits to be sent, READY and SYNCING apart.
 *  (5) In WORKING `out`, `pending_sync`, `parts`, `answers`, `held` and `close_after` are the worker's.
 */
#include "server/private.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/assert_held.h"
#include "server/conn/tls.h"
#include "server/console/watcher.h"

/* ---- the table ------------------------------------------------------------------------------ */

#define TO(state) (1U << CONN_##state)

enum { /* the states that may follow when everything is sent */
       AFTER_SENDING =
           TO(IDLE) | TO(BACKLOG) | TO(NEXT_PART) | TO(WATCHING) | TO(LINGER) | TO(CLOSED),
       READING = TO(HEAD) | TO(BODY)
};

static const uint32_t allowed_moves[CONN_STATES] = {
    [CONN_NEW] = TO(HANDSHAKE) | TO(IDLE) | TO(CLOSED),
    [CONN_HANDSHAKE] = TO(IDLE) | READING | TO(BACKLOG) | TO(READY) | TO(WORKING) | TO(CLOSED),
    [CONN_IDLE] = READING | TO(BACKLOG) | TO(READY) | TO(WORKING) | TO(CLOSED),
    [CONN_HEAD] = TO(BODY) | TO(READY) | TO(WORKING) | TO(CLOSED),
    [CONN_BODY] = TO(READY) | TO(WORKING) | TO(CLOSED),
    [CONN_WATCHING] = TO(READY) | TO(LINGER) | TO(CLOSED),
    [CONN_BACKLOG] = READING | TO(READY) | TO(WORKING) | TO(CLOSED),
    [CONN_READY] =
        AFTER_SENDING | TO(HANDSHAKE) | READING | TO(SYNCING) | TO(DELAYED) | TO(SENDING),
    [CONN_SYNCING] = AFTER_SENDING | READING | TO(DELAYED) | TO(SENDING),
    [CONN_DELAYED] = TO(READY) | TO(CLOSED),
    [CONN_WORKING] = TO(READY) | TO(CLOSED),
    [CONN_SENDING] = AFTER_SENDING | TO(HANDSHAKE) | READING,
    [CONN_NEXT_PART] = AFTER_SENDING | TO(SENDING), /* itself: the part was sent at once */
    [CONN_LINGER] = TO(CLOSED),
    [CONN_CLOSED] = 0,
};

bool hf__conn_may_move(enum conn_state from, enum conn_state to)
{
    assert(from < CONN_STATES && to < CONN_STATES);
    return allowed_moves[from] >> to & 1;
}

/* ---- what states say ------------------------------------------------------------------------ */

static bool has_no_output(const struct conn *conn)
{
    return conn->out.len == 0 && conn->out_begin == 0 && conn->answers == 0 && conn->pending == 0 &&
           conn->pending_sync.ticket == 0 && conn->pending_sync.delay_ms == 0;
}

static bool has_no_input(const struct conn *conn)
{
    return conn->in.len == 0 && !conn->partial && !conn->unread;
}

static bool has_head(const struct http_reader *reader)
{
    return reader->head.path.len > 0;
}

/* (1) */
static void check_list(const struct conn *conn)
{
    const struct conn_list *list = &conn->loop->lists[conn->state];

    assert(!list->first == !list->last);
    if (!conn_is_busy(conn)) {
        assert(!list->first && !conn->list_next && !conn->list_previous);
        return;
    }
    assert(conn->list_next ? conn->list_next->list_previous == conn : list->last == conn);
    assert(conn->list_previous ? conn->list_previous->list_next == conn : list->first == conn);
}

/* The socket is read, for the next request or the rest of one: (3), (4). */
static void check_reading(const struct conn *conn)
{
    assert(!conn->paused && !conn->ended && !conn->unread && !conn->close_after);
    assert(!conn->parts && has_no_output(conn));
    assert(conn->deadline_ms != UINT64_MAX);
}

static void check_state(const struct conn *conn)
{
    switch (conn->state) {
    case CONN_NEW:
    case CONN_STATES:
        assert(false); /* no move leads there */
        break;
    case CONN_HANDSHAKE:
        check_reading(conn);
        assert(conn->tls && !conn->asked && has_no_input(conn));
        break;
    case CONN_IDLE:
        check_reading(conn);
        assert(has_no_input(conn));
        break;
    case CONN_HEAD:
        check_reading(conn);
        assert(conn->partial && !has_head(conn->partial) && conn->in.len > 0);
        break;
    case CONN_BODY:
        check_reading(conn);
        assert(conn->partial && has_head(conn->partial) && conn->in.len > 0);
        break;
    case CONN_WATCHING:
        assert(conn->watcher && !conn->paused && !conn->ended && !conn->close_after);
        assert(!conn->parts && has_no_output(conn) && has_no_input(conn));
        break;
    case CONN_BACKLOG:
        assert(conn->paused && conn->unread && conn->in.len > 0 && !conn->close_after);
        assert(!conn->parts && has_no_output(conn));
        break;
    case CONN_READY: /* what is sent may be TLS's own, or an end without a word */
        assert(conn->out_begin <= conn->out.len);
        assert(conn->paused || !conn->parts);
        break;
    case CONN_SYNCING:
        assert(conn->pending_sync.ticket > 0 && conn->sync_began_ns > 0 && conn->asked);
        break;
    case CONN_DELAYED:
        assert(conn->paused && conn->asked && conn->pending_sync.ticket == 0 &&
               conn->pending_sync.delay_ms == 0);
        break;
    case CONN_WORKING:
        assert(conn->paused && conn->asked && !conn->partial && !conn->for_worker);
        assert(conn->holders == 2 && conn->pending == 0);
        break;
    case CONN_SENDING:
        assert(conn->paused && conn->out.len > conn->out_begin);
        assert(conn->deadline_ms != UINT64_MAX);
        break;
    case CONN_NEXT_PART:
        assert(conn->paused && conn->parts && !conn->partial && has_no_output(conn));
        assert(conn->deadline_ms != UINT64_MAX);
        break;
    case CONN_LINGER:
        assert(!conn->watcher && !conn->paused && !conn->ended && has_no_input(conn));
        assert(!conn->parts && has_no_output(conn));
        break;
    case CONN_CLOSED:
        assert(atomic_load(&conn->gone));
        break;
    }
}

static void conn_check(const struct conn *conn)
{
    check_list(conn);
    check_state(conn);
    assert(conn->holders == 1 ||
           (conn->holders == 2 && (conn->state == CONN_WORKING || conn->state == CONN_CLOSED)));
    assert(conn->partial || !conn->continued);
    assert(conn->paused || !conn->unread || conn->state == CONN_CLOSED);
    assert(conn->in.len > 0 || !conn->unread);
    assert(conn->in.len <= conn->in.cap);
    assert(conn->pending <= conn->loop->pending);
    assert(conn->state == CONN_CLOSED || !atomic_load(&conn->gone));
    assert(!conn->watcher || conn->state == CONN_WATCHING || conn->state == CONN_READY ||
           conn->state == CONN_SYNCING || conn->state == CONN_DELAYED || /* a write before it */
           conn->state == CONN_SENDING);
}

/* ---- moving --------------------------------------------------------------------------------- */

static void append_to_list(struct conn_list *list, struct conn *conn)
{
    conn->list_next = NULL;
    conn->list_previous = list->last;
    *(list->last ? &list->last->list_next : &list->first) = conn;
    list->last = conn;
}

static void remove_from_list(struct conn_list *list, struct conn *conn)
{
    *(conn->list_previous ? &conn->list_previous->list_next : &list->first) = conn->list_next;
    *(conn->list_next ? &conn->list_next->list_previous : &list->last) = conn->list_previous;
    conn->list_next = conn->list_previous = NULL;
}

/* Does the next iteration have work that does not depend on the network? */
static bool needs_idle(enum conn_state state)
{
    return state == CONN_BACKLOG || state == CONN_NEXT_PART;
}

static void update_idle(struct loop *loop)
{
    if (loop->lists[CONN_BACKLOG].first || loop->lists[CONN_NEXT_PART].first)
        uv_idle_start(&loop->idle, hf__conn_on_idle);
    else
        uv_idle_stop(&loop->idle);
}

/* (2). Of an answer in parts, the time for all of them begins with the first. */
static uint64_t deadline_of(const struct conn *conn, enum conn_state from, enum conn_state to)
{
    const struct server_options *o = &conn->loop->server->options;

    switch (to) {
    case CONN_IDLE:
        return uv_now(&conn->loop->uv) + o->idle_ms;
    case CONN_HANDSHAKE:
    case CONN_HEAD:
        return conn->begun_ms + o->head_ms;
    case CONN_BODY:
        return conn->begun_ms + o->body_ms;
    case CONN_SENDING:
    case CONN_NEXT_PART:
        return from == CONN_SENDING || from == CONN_NEXT_PART
                   ? conn->deadline_ms
                   : uv_now(&conn->loop->uv) + o->body_ms;
    case CONN_LINGER:
        return uv_now(&conn->loop->uv) + LINGER_MS;
    default:
        return UINT64_MAX;
    }
}

void hf__conn_move(struct conn *conn, enum conn_state to)
{
    struct loop *loop = conn->loop;
    enum conn_state from = conn->state;

    assert(hf__conn_may_move(from, to));
    if (conn_state_is_busy(from))
        remove_from_list(&loop->lists[from], conn);
    if (conn_state_is_busy(to))
        append_to_list(&loop->lists[to], conn);
    conn->deadline_ms = deadline_of(conn, from, to);
    conn->state = to;
    if (needs_idle(from) || needs_idle(to))
        update_idle(loop);
    if (DEV_CHECKS) {
        loop->moves[from] |= 1U << to;
        conn_check(conn);
    }
}

void hf__conn_ready(struct conn *conn)
{
    if (conn->state <= CONN_BACKLOG)
        hf__conn_move(conn, CONN_READY);
}

/* ---- reading, or not ------------------------------------------------------------------------ */

void hf__conn_pause(struct conn *conn)
{
    if (!conn->paused)
        uv_read_stop((uv_stream_t *)&conn->tcp);
    conn->paused = true;
}

bool hf__conn_resume(struct conn *conn)
{
    assert(!conn->ended && conn->state != CONN_CLOSED);
    if (!conn->paused)
        return true;
    if (uv_read_start((uv_stream_t *)&conn->tcp, hf__conn_on_alloc, hf__conn_on_read) != 0) {
        hf__conn_close(conn);
        return false;
    }
    conn->paused = false;
    return true;
}

static enum conn_state reading_state(const struct conn *conn)
{
    if (conn->partial)
        return has_head(conn->partial) ? CONN_BODY : CONN_HEAD;
    return conn->tls && !conn->asked && !hf__tls_established(conn->tls) ? CONN_HANDSHAKE
                                                                        : CONN_IDLE;
}

void hf__conn_read_on(struct conn *conn)
{
    enum conn_state to = reading_state(conn);

    assert(!conn->unread);
    if (conn->paused)
        conn->begun_ms = uv_now(&conn->loop->uv); /* (2) */
    if (hf__conn_resume(conn) && conn->state != to)
        hf__conn_move(conn, to);
}

void hf__conn_drop_partial(struct conn *conn)
{
    if (conn->partial)
        hf__env_free(&conn->loop->server->env, conn->partial, sizeof(*conn->partial));
    conn->partial = NULL;
    conn->continued = false;
}

void hf__conn_drop_input(struct conn *conn)
{
    hf__conn_drop_partial(conn);
    hf__buf_free(&conn->in);
    conn->unread = false;
    hf__budget_count(&conn->loop->server->budget.input, &conn->counted, 0);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void free_conn(struct conn *conn)
{
    struct loop *loop = conn->loop;

    assert(conn->state == CONN_CLOSED && conn->holders == 0);
    hf__conn_drop_input(conn);
    hf__tls_free(conn->tls);
    hf__conn_drop_parts(conn);
    hf__conn_drop_output(conn);
    assert(conn->held == 0 && conn->counted == 0 && conn->pending == 0);
    if (conn->next)
        conn->next->previous = conn->previous;
    else
        loop->oldest = conn->previous;
    *(conn->previous ? &conn->previous->next : &loop->conns) = conn->next;
    hf__env_free(&loop->server->env, conn, sizeof(*conn));
    assert(!loop->conns == !loop->oldest);
    if (!loop->conns)
        uv_timer_stop(&loop->sweep);
    if (!loop->conns && loop->draining)
        uv_stop(&loop->uv);
}

void hf__conn_unhold(struct conn *conn)
{
    assert(conn->holders > 0);
    if (--conn->holders == 0)
        free_conn(conn);
}

static void on_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;

    assert(conn->state == CONN_CLOSED);
    hf__conn_unhold(conn);
}

void hf__conn_close(struct conn *conn)
{
    if (conn->state == CONN_CLOSED)
        return;
    assert(atomic_load(&conn->loop->conns_len) > 0);
    hf__watcher_end(conn);
    atomic_store(&conn->gone, true);
    atomic_fetch_sub(&conn->loop->conns_len, 1);
    atomic_fetch_sub(&conn->loop->server->conns_len, 1);
    hf__conn_move(conn, CONN_CLOSED);
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

/* While an answer was on its way nothing was read; closing with bytes unread would throw away what
 * the other side has not got. */
void hf__conn_linger(struct conn *conn)
{
    uv_os_fd_t fd;

    hf__watcher_end(conn);
    if (conn->ended || uv_fileno((uv_handle_t *)&conn->tcp, &fd) != 0 || shutdown(fd, SHUT_WR)) {
        hf__conn_close(conn);
        return;
    }
    hf__conn_drop_input(conn);
    if (hf__conn_resume(conn))
        hf__conn_move(conn, CONN_LINGER);
}
