/*
 * server/conn/conn_read.c: bytes in: from the socket to requests.
 *
 * Bytes are read into the loop's own buffer, and most requests are read, handled and forgotten
 * there. Only the beginning of a request that is not complete is kept, with its reader, in the
 * connection; and what comes while requests before it are not answered, which is `unread` then.
 */
#include "server/private.h"

#include "server/conn/tls.h"
#include "server/metrics.h"

/* The outcome of a complete request. */
enum handled {
    HANDLED,  /* it is answered */
    DEFERRED, /* it is for a worker, and answers before it have to leave first */
    GIVEN     /* a worker has it */
};

/* ---- what is kept --------------------------------------------------------------------------- */

/* Keep `len` bytes that begin with a request which is not complete; they may be in `in` already. */
static bool keep_bytes(struct conn *conn, const uint8_t *bytes, size_t len)
{
    struct hf__buf *in = &conn->in;

    if (len == 0) {
        in->len = 0;
        if (in->cap > INPUT_KEEP)
            hf__buf_free(in);
        return true;
    }
    if (in->ptr && bytes >= in->ptr && bytes < in->ptr + in->cap) {
        assert(len <= in->cap - (size_t)(bytes - in->ptr));
        memmove(in->ptr, bytes, len);
        in->len = len;
        return true;
    }
    in->len = 0;
    hf__buf_put(in, bytes, len);
    return !in->failed;
}

static bool keep_reader(struct conn *conn, const struct http_reader *reader)
{
    if (conn->partial)
        return true;
    conn->partial = hf__env_alloc(&conn->loop->server->env, sizeof(*conn->partial));
    if (conn->partial)
        *conn->partial = *reader;
    return conn->partial != NULL;
}

/* Send "100 Continue" to a client that waits for it before it sends the body. */
static void welcome_body(struct conn *conn)
{
    if (!conn->partial->head.expect_continue || conn->continued)
        return;
    conn->continued = true;
    hf__buf_put_str(&conn->out, HF_STR("HTTP/1.1 100 Continue\r\n\r\n"));
    hf__conn_ready(conn);
}

/* A request that has begun is read to its end: only those behind it wait. */
static bool has_room(const struct conn *conn)
{
    return conn->partial ||
           (conn->out.len - conn->out_begin < OUTPUT_PAUSE && conn->loop->pending < LOOP_PAUSE);
}

static void refuse_input(struct conn *conn)
{
    conn->loop->reader.error = (struct http_error){
        503, "The server has no memory left for incomplete requests; try again later"};
    hf__route_bad(conn, &conn->loop->reader);
}

/* Incomplete requests together may not take all memory. When they do, a request that needs more
 * than a little is refused; small requests go on: (1) of budget.h. */
static void bound_input(struct conn *conn)
{
    struct budget *budget = &conn->loop->server->budget;
    uint64_t all = hf__budget_count(&budget->input, &conn->counted, conn->in.len);

    if (all <= budget->input_max || conn->in.len <= INPUT_LEAST || conn->state == CONN_WORKING ||
        conn->close_after)
        return;
    hf__conn_drop_input(conn);
    refuse_input(conn);
}

/* ---- requests ------------------------------------------------------------------------------- */

/* A whole request that may take long: a worker's. What was answered before it leaves first. */
static enum handled leave_to_worker(struct conn *conn, const struct http_reader *reader,
                                    uint8_t *bytes)
{
    struct budget *budget = &conn->loop->server->budget;

    if (atomic_load(&budget->input) > budget->input_max && reader->used > INPUT_LEAST) {
        conn->for_worker = false;
        refuse_input(conn);
        return HANDLED;
    }
    hf__conn_pause(conn);            /* what follows is for after it */
    if (conn->state == CONN_READY) { /* a server that stops closes only after this one */
        conn->close_after = !keep_reader(conn, reader);
        return DEFERRED;
    }
    assert(conn->out.len == 0);
    if (conn->loop->server->options.access_log)
        (void)hf__answer_peer(conn);
    if (hf__work_give(conn, reader, bytes))
        return GIVEN;
    conn->close_after = true; /* no memory */
    return HANDLED;
}

static enum handled handle_request(struct conn *conn, const struct http_reader *reader,
                                   uint8_t *bytes)
{
    if (reader->body.len <= WORK_BODY && !conn->for_worker)
        hf__route_request(&conn->loop->context, conn, reader);
    if (reader->body.len <= WORK_BODY && !conn->for_worker)
        return HANDLED;
    return leave_to_worker(conn, reader, bytes);
}

/* Handle as many whole requests as there are; returns how many bytes are left. */
static size_t take_requests(struct conn *conn, uint8_t *bytes, size_t len)
{
    struct loop *loop = conn->loop;
    size_t at = 0;

    while (at < len && !conn->close_after && has_room(conn)) {
        struct http_reader *reader = conn->partial ? conn->partial : &loop->reader;
        enum handled handled;

        if (!conn->partial) {
            hf__http_begin(reader, NULL);
            conn->begun_ms = uv_now(&loop->uv);
        }
        switch (hf__http_read(reader, bytes + at, len - at)) {
        case HTTP_HEAD:
            if (keep_reader(conn, reader))
                welcome_body(conn);
            else
                conn->close_after = true;
            continue;
        case HTTP_MORE:
            if (!keep_reader(conn, reader))
                conn->close_after = true;
            return len - at;
        case HTTP_DONE:
            if (loop->draining)
                conn->close_after = true;
            conn->asked = true;
            handled = handle_request(conn, reader, bytes + at);
            if (handled == DEFERRED) {
                conn->unread = true;
                return len - at;
            }
            at += reader->used;
            assert(at <= len);
            hf__conn_drop_partial(conn);
            if (handled == GIVEN) { /* `close_after` is the worker's */
                hf__conn_move(conn, CONN_WORKING);
                return len - at;
            }
            if (conn->watcher) /* nothing can be answered behind it */
                return 0;
            break;
        case HTTP_BAD:
            hf__route_bad(conn, reader);
            hf__conn_drop_partial(conn);
            at = len;
            break;
        }
    }
    return conn->close_after ? 0 : len - at;
}

/* The state that follows from what was read: `left` bytes are kept in `in`. */
static void move_after_reading(struct conn *conn, size_t left)
{
    if (conn->state == CONN_WORKING) {
        conn->unread = left > 0;
        return;
    }
    if (conn->close_after) {
        hf__conn_ready(conn);
        return;
    }
    if (left > 0 && !conn->partial)
        conn->unread = true; /* there was no room for its answer */
    if (conn->unread) {
        hf__conn_pause(conn);
        if (!conn_is_busy(conn))
            hf__conn_move(conn, CONN_BACKLOG);
    } else if (conn->state == CONN_BACKLOG && conn->ended) {
        hf__conn_close(conn); /* half a request stays half */
    } else if (!conn_is_busy(conn) || conn->state == CONN_BACKLOG) {
        hf__conn_read_on(conn);
    }
}

/* What comes while requests before it are not answered has to wait: it could be answered only
 * behind them. Few clients send so early. */
static bool must_wait(const struct conn *conn)
{
    return conn->unread || conn->state == CONN_SYNCING || conn->state == CONN_WORKING;
}

void hf__conn_consume(struct conn *conn, uint8_t *bytes, size_t len)
{
    size_t left = len;

    if (conn->state == CONN_LINGER || conn->state == CONN_CLOSED || conn->watcher)
        return;
    assert(len > 0);
    assert(conn->state != CONN_DELAYED && conn->state != CONN_SENDING &&
           conn->state != CONN_NEXT_PART); /* which read nothing */
    if (must_wait(conn)) {
        hf__conn_pause(conn);
        conn->unread = true;
    } else {
        left = take_requests(conn, bytes, len);
    }
    assert(left <= len);
    if (!keep_bytes(conn, bytes + (len - left), left)) {
        hf__conn_close(conn); /* no memory for the rest of a request */
        return;
    }
    bound_input(conn);
    move_after_reading(conn, left);
}

/* ---- the socket ----------------------------------------------------------------------------- */

void hf__conn_on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    struct conn *conn = handle->data;
    size_t room;
    uint8_t *to;

    (void)suggested;
    *buf = uv_buf_init((char *)conn->loop->input, INPUT_SIZE);
    if (conn->tls || conn->in.len == 0 || conn->state == CONN_LINGER)
        return;
    room = conn->partial && conn->partial->wanted > conn->in.len
               ? conn->partial->wanted - conn->in.len
               : INPUT_SIZE;
    if (room > conn->in.len + INPUT_SIZE) /* memory follows what came, not what was announced */
        room = conn->in.len + INPUT_SIZE;
    if (room < INPUT_LEAST)
        room = INPUT_LEAST;
    to = hf__buf_reserve(&conn->in, room);
    *buf = uv_buf_init((char *)to, to ? (unsigned)room : 0);
}

static void end_reading(struct conn *conn, ssize_t nread)
{
    conn->ended = true;
    if (nread != UV_EOF || !conn_is_busy(conn))
        hf__conn_close(conn); /* no answer is due, and half a request stays half */
    else
        hf__conn_pause(conn);
}

static void read_tls(struct conn *conn, uint8_t *bytes, size_t len)
{
    if (!hf__tls_feed(conn, bytes, len))
        hf__conn_close(conn);
    else if (conn->state == CONN_SYNCING)
        hf__conn_pause(conn); /* also when TLS has not made bytes of it */
    else if (conn->state == CONN_HANDSHAKE && hf__tls_established(conn->tls))
        hf__conn_move(conn, CONN_IDLE); /* it may be idle as any other from now on */
}

void hf__conn_on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct conn *conn = conn_of(stream);

    assert(conn->state != CONN_CLOSED && !conn->paused);
    if (nread < 0) {
        end_reading(conn, nread);
        return;
    }
    if (nread == 0)
        return;
    hf__metrics_bytes(conn->loop->context.metrics, (size_t)nread, 0);
    if (conn->tls) {
        read_tls(conn, (uint8_t *)buf->base, (size_t)nread);
    } else if (conn->in.len > 0 && conn->state != CONN_LINGER) {
        assert((size_t)nread <= conn->in.cap - conn->in.len);
        conn->in.len += (size_t)nread;
        hf__conn_consume(conn, conn->in.ptr, conn->in.len);
    } else {
        hf__conn_consume(conn, (uint8_t *)buf->base, (size_t)nread);
    }
}

/* ---- what earlier iterations left ----------------------------------------------------------- */

/* Once for each that is there now: what does not fit into this iteration, either, stays. */
static void take_backlog(struct loop *loop)
{
    struct conn *conn, *next;

    for (conn = loop->lists[CONN_BACKLOG].first; conn; conn = next) {
        assert(conn->state == CONN_BACKLOG && conn->unread);
        next = conn->list_next;
        conn->unread = false;
        hf__conn_consume(conn, conn->in.ptr, conn->in.len);
    }
}

void hf__conn_on_idle(uv_idle_t *idle)
{
    struct loop *loop = idle->data;

    hf__conn_send_parts(loop);
    take_backlog(loop);
    hf__group_commit_flush(loop);
}
