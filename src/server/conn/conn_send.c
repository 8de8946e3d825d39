/*
 * server/conn/conn_send.c: answers out: to the socket, to slow readers, in parts, and late on purpose.
 *
 * Answers are sent at the end of an iteration (group_commit.c). Mostly the socket takes them at
 * once. When it does not, libuv sends the rest, the connection is SENDING, and what it holds counts
 * in the budget: when that is too much, whoever has waited longest for a reader is closed.
 */
#include "server/private.h"

#include "server/conn/tls.h"
#include "server/metrics.h"

/* ---- what is held --------------------------------------------------------------------------- */

/* Set what the connection holds of the budget's output. */
static void count_output(struct conn *conn, uint64_t bytes)
{
    struct server *server = conn->loop->server;

    if (conn->held == bytes)
        return;
    hf__budget_count(&server->budget.output, &conn->held, bytes);
    hf__work_room(&server->work);
}

void hf__conn_drop_output(struct conn *conn)
{
    struct loop *loop = conn->loop;

    if (!conn->parts)
        count_output(conn, 0);
    assert(conn->pending <= loop->pending && loop->pool_len <= OUTPUT_POOL);
    loop->pending -= conn->pending;
    conn->pending = 0;
    if (conn->out.ptr && conn->out.cap <= OUTPUT_KEEP && loop->pool_len < OUTPUT_POOL) {
        conn->out.len = 0;
        loop->pool[loop->pool_len++] = conn->out;
        conn->out = (struct hf__buf){.env = &loop->server->env};
    } else {
        hf__buf_free(&conn->out);
    }
    conn->out_begin = 0;
    conn->answers = 0;
    conn->pending_sync = (struct hf__pending_sync){0};
}

void hf__conn_drop_parts(struct conn *conn)
{
    hf__parts_free(&conn->loop->server->env, conn->parts);
    conn->parts = NULL;
}

/* ---- slow readers --------------------------------------------------------------------------- */

/* The connection of this loop that has waited longest for its reader, for so long at least. */
static struct conn *find_stalled(struct loop *loop, uint64_t ms)
{
    struct conn *worst = NULL;
    uint64_t before = uv_now(&loop->uv) - ms;

    for (struct conn *conn = loop->lists[CONN_SENDING].first; conn; conn = conn->list_next) {
        assert(conn->state == CONN_SENDING);
        if (conn->moved_ms <= before && (!worst || conn->moved_ms < worst->moved_ms))
            worst = conn;
    }
    return worst;
}

bool hf__conn_evict(struct loop *loop, uint64_t ms)
{
    struct conn *stalled = find_stalled(loop, ms);

    if (!stalled)
        return false;
    hf__metrics_evicted(loop->context.metrics);
    hf__conn_drop_parts(stalled);
    count_output(stalled, 0); /* at once: the rest goes when libuv is done with it */
    hf__conn_close(stalled);
    return true;
}

/* The reader is slow. Count its unsent bytes; if that is too much, close the connection that has
 * waited longest: (2) of budget.h. False: it was this one. */
static bool begin_sending(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct budget *budget = &loop->server->budget;

    hf__conn_pause(conn);
    conn->moved_ms = uv_now(&loop->uv);
    conn->queued = SIZE_MAX;
    loop->pending -= conn->pending;
    conn->pending = 0;
    hf__conn_move(conn, CONN_SENDING);
    count_output(conn, conn->out.cap + (conn->parts ? hf__parts_bytes(conn->parts) : 0));
    while (atomic_load(&budget->output) > budget->output_max && conn->state != CONN_CLOSED) {
        bool evicted = hf__conn_evict(loop, 0);

        assert(evicted); /* itself at last */
        (void)evicted;
    }
    return conn->state != CONN_CLOSED;
}

/* ---- sending -------------------------------------------------------------------------------- */

/* Everything is answered and no more requests will come: the client sends no more and no complete
 * request waits, or the server stops and no request has begun. */
static bool is_over(const struct conn *conn)
{
    if (conn->parts)
        return false;
    return conn->close_after || (conn->ended && !conn->unread) ||
           (conn->loop->draining && conn->in.len == 0);
}

/* Everything in `out` is gone. Of an answer in parts, the next one is made in another iteration, as
 * others wait, too. */
static void finish_sending(struct conn *conn)
{
    hf__conn_drop_output(conn);
    if (conn->parts)
        hf__conn_move(conn, CONN_NEXT_PART);
    else if (is_over(conn))
        hf__conn_linger(conn);
    else if (conn->watcher && hf__conn_resume(conn))
        hf__conn_move(conn, CONN_WATCHING);
    else if (conn->state == CONN_CLOSED)
        return;
    else if (conn->unread)
        hf__conn_move(conn, CONN_BACKLOG);
    else
        hf__conn_read_on(conn);
}

static void on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;

    if (conn->state == CONN_CLOSED)
        return;
    assert(conn->state == CONN_SENDING);
    if (status != 0)
        hf__conn_close(conn);
    else
        finish_sending(conn);
}

/* Send what is in `out`; when the socket does not take it all, the rest follows, and the connection
 * reads nothing until it has. */
static void send_output(struct conn *conn)
{
    uv_stream_t *stream = (uv_stream_t *)&conn->tcp;
    uv_buf_t buf;
    int taken;

    assert(conn->state == CONN_READY || conn->state == CONN_SYNCING ||
           conn->state == CONN_NEXT_PART);
    if (conn->tls && !hf__tls_seal(conn->tls, &conn->out, &conn->out_begin, is_over(conn))) {
        hf__conn_close(conn);
        return;
    }
    assert(conn->out_begin <= conn->out.len);
    if (conn->out.len == conn->out_begin) { /* there was no memory for an answer */
        finish_sending(conn);
        return;
    }
    buf = uv_buf_init((char *)conn->out.ptr + conn->out_begin,
                      (unsigned)(conn->out.len - conn->out_begin));
    hf__metrics_bytes(conn->loop->context.metrics, 0, buf.len);
    taken = uv_try_write(stream, &buf, 1);
    if (taken < 0 && taken != UV_EAGAIN) {
        hf__conn_close(conn);
        return;
    }
    taken = taken < 0 ? 0 : taken;
    assert((size_t)taken <= buf.len);
    if ((size_t)taken == buf.len) {
        finish_sending(conn);
        return;
    }
    buf.base += taken;
    buf.len -= (size_t)taken;
    if (!begin_sending(conn))
        return;
    conn->write.data = conn;
    if (uv_write(&conn->write, stream, &buf, 1, on_written) != 0)
        hf__conn_close(conn);
}

/* ---- faults that delay ---------------------------------------------------------------------- */

static void on_delay_over(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    uint64_t now = uv_now(&loop->uv), next_ms = UINT64_MAX;
    struct conn *conn, *next;

    for (conn = loop->lists[CONN_DELAYED].first; conn; conn = next) {
        assert(conn->state == CONN_DELAYED);
        next = conn->list_next;
        if (conn->due_ms <= now)
            hf__conn_move(conn, CONN_READY);
        else if (conn->due_ms < next_ms)
            next_ms = conn->due_ms;
    }
    if (next_ms != UINT64_MAX)
        uv_timer_start(timer, on_delay_over, next_ms - now, 0);
    hf__group_commit_flush(loop); /* poll comes first otherwise, and may sleep */
}

/* Keep the answers back; until then nothing more is read. */
static void delay_output(struct conn *conn)
{
    struct loop *loop = conn->loop;
    uint64_t now = uv_now(&loop->uv);

    conn->due_ms = now + conn->pending_sync.delay_ms;
    conn->pending_sync = (struct hf__pending_sync){0};
    hf__conn_pause(conn);
    hf__conn_move(conn, CONN_DELAYED);
    if (!uv_is_active((uv_handle_t *)&loop->delay) ||
        uv_timer_get_due_in(&loop->delay) > conn->due_ms - now)
        uv_timer_start(&loop->delay, on_delay_over, conn->due_ms - now, 0);
}

void hf__conn_deliver(struct conn *conn)
{
    assert(conn->state == CONN_READY || conn->state == CONN_SYNCING);
    if (conn->pending_sync.delay_ms)
        delay_output(conn);
    else
        send_output(conn);
}

/* ---- answers of workers, and in parts ------------------------------------------------------- */

void hf__conn_worked(struct conn *conn)
{
    bool closed = conn->state == CONN_CLOSED;

    assert(closed || (conn->state == CONN_WORKING && conn->holders == 2));
    hf__conn_unhold(conn); /* which frees one that is closed, when libuv is done with it */
    if (!closed)
        hf__conn_move(conn, CONN_READY);
}

static void send_part(struct conn *conn)
{
    assert(conn->state == CONN_NEXT_PART && conn->parts);
    if (!hf__parts_next(conn->parts, &conn->out))
        hf__conn_drop_parts(conn);
    if (conn->out.failed)
        hf__conn_close(conn); /* no memory for it, and its length was announced */
    else
        send_output(conn);
}

void hf__conn_send_parts(struct loop *loop)
{
    struct conn_list *list = &loop->lists[CONN_NEXT_PART];
    struct conn *last = list->last; /* those behind it have had a part in this iteration */
    uint64_t until = last ? uv_hrtime() + READS_MS * UINT64_C(1000000) : 0;

    while (last && list->first && uv_hrtime() < until) {
        struct conn *conn = list->first;

        last = conn == last ? NULL : last;
        send_part(conn);
    }
}
