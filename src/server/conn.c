/*
 * server/conn.c: one connection: bytes in, requests, answers, bytes out.
 *
 *     IDLE --first byte--> HEAD --head complete--> BODY --request complete--> IDLE
 *
 * and from anywhere SENDING, while the socket takes no more, and LINGER, when the last answer was
 * sent but the other side may still be sending: closing at once would make its kernel throw away
 * what we said. Each state has a deadline; a client that sends a byte now and then does not move
 * it.
 *
 * Bytes are read into the loop's own buffer, and most requests are read, handled and forgotten
 * there. Only the beginning of a request that is not complete is kept, with its reader, in the
 * connection.
 */
#include "server/private.h"

#include <sys/socket.h>
#include <unistd.h>

#include "server/metrics.h"
#include "server/tls.h"

/* ---- states --------------------------------------------------------------------------------- */

void hf__conn_enter(struct conn *conn, enum conn_state state)
{
    const struct server_options *o = &conn->loop->server->options;
    uint64_t now = uv_now(&conn->loop->uv);

    if (state == CONN_HEAD)
        conn->begun_ms = now;
    conn->state = state;
    conn->deadline_ms = state == CONN_IDLE      ? now + (conn->greeting ? o->head_ms : o->idle_ms)
                        : state == CONN_HEAD    ? now + o->head_ms
                        : state == CONN_BODY    ? conn->begun_ms + o->body_ms
                        : state == CONN_SENDING ? now + o->body_ms
                                                : now + LINGER_MS;
}

static void forget_partial(struct conn *conn)
{
    if (conn->partial)
        hf__env_free(&conn->loop->server->env, conn->partial, sizeof(*conn->partial));
    conn->partial = NULL;
    conn->continued = false;
}

/* What it held of the budget's output is free, or what is left of it when an answer's rest is. */
static void hold(struct conn *conn, uint64_t bytes)
{
    struct server *server = conn->loop->server;

    if (conn->held == bytes)
        return;
    hf__budget_count(&server->budget.output, &conn->held, bytes);
    hf__work_room(&server->work);
}

static void give_back(struct conn *conn)
{
    struct loop *loop = conn->loop;

    if (!conn->parts)
        hold(conn, 0);
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
    conn->debt = (struct hf__debt){0};
}

static void ask_no_more(struct conn *conn)
{
    if (!conn->again)
        return;
    conn->again = false;
    if (--conn->loop->again == 0)
        uv_idle_stop(&conn->loop->idle);
}

/* It is closed: the settler's work is not for it any more. */
static void owe_no_more(struct conn *conn)
{
    for (struct conn **at = &conn->loop->owing; *at; at = &(*at)->next_owing) {
        if (*at == conn) {
            *at = conn->next_owing;
            return;
        }
    }
}

/* Its next part is made now, or never. */
static void leave_parts(struct conn *conn)
{
    struct loop *loop = conn->loop;

    for (struct conn **at = &loop->parts; *at; at = &(*at)->next_part) {
        if (*at != conn)
            continue;
        *at = conn->next_part;
        if (loop->parts_end == &conn->next_part)
            loop->parts_end = at;
        return;
    }
}

/* Keep count of what all unfinished requests hold. */
static uint64_t count_input(struct conn *conn)
{
    return hf__budget_count(&conn->loop->server->budget.input, &conn->counted, conn->in.len);
}

static void drop_input(struct conn *conn)
{
    forget_partial(conn);
    hf__buf_free(&conn->in);
    count_input(conn);
}

/* ---- closing -------------------------------------------------------------------------------- */

static void drop_parts(struct conn *conn)
{
    hf__parts_free(&conn->loop->server->env, conn->parts);
    conn->parts = NULL;
}

static void free_conn(struct conn *conn)
{
    struct loop *loop = conn->loop;

    drop_input(conn);
    hf__tls_free(conn->tls);
    drop_parts(conn);
    give_back(conn);
    if (conn->next)
        conn->next->previous = conn->previous;
    else
        loop->oldest = conn->previous;
    *(conn->previous ? &conn->previous->next : &loop->conns) = conn->next;
    hf__env_free(&loop->server->env, conn, sizeof(*conn));
    if (!loop->conns)
        uv_timer_stop(&loop->sweep);
    if (!loop->conns && loop->draining)
        uv_stop(&loop->uv);
}

static void on_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;

    conn->closed = true;
    if (!conn->working) /* else it is freed when the worker is done with it */
        free_conn(conn);
}

void hf__conn_close(struct conn *conn)
{
    if (conn->state == CONN_CLOSED)
        return;
    conn->state = CONN_CLOSED;
    atomic_store(&conn->gone, true);
    atomic_fetch_sub(&conn->loop->conns_len, 1);
    atomic_fetch_sub(&conn->loop->server->conns_len, 1);
    ask_no_more(conn);
    if (conn->owing)
        owe_no_more(conn);
    if (conn->parts)
        leave_parts(conn);
    uv_close((uv_handle_t *)&conn->tcp, on_closed);
}

/* We said all. Tell the other side, and drop what it still sends. While an answer was on its way
 * nothing was read; closing with bytes unread would throw away what the other side has not got. */
static void linger(struct conn *conn)
{
    uv_os_fd_t fd;

    if (conn->ended || uv_fileno((uv_handle_t *)&conn->tcp, &fd) != 0 || shutdown(fd, SHUT_WR)) {
        hf__conn_close(conn);
        return;
    }
    drop_input(conn);
    hf__conn_enter(conn, CONN_LINGER);
    hf__conn_read(conn);
}

/* ---- sending -------------------------------------------------------------------------------- */

static void listen_again(struct conn *conn);

/* What was asked is answered, and nobody will ask again: the other side sends no more and no whole
 * request waits, or the server stops and none has begun. */
static bool is_over(const struct conn *conn)
{
    bool waits = conn->in.len > 0 && (!conn->partial || conn->kept);

    if (conn->parts)
        return false;
    return conn->close_after || (conn->ended && !waits) ||
           (conn->loop->draining && conn->in.len == 0);
}

static void ask_again(struct conn *conn);

/* Everything in `out` is gone. Of an answer in parts, the next one is made in another iteration, as
 * others wait, too. */
static void sent(struct conn *conn)
{
    bool deaf = conn->state == CONN_SENDING || conn->kept;

    give_back(conn);
    if (conn->parts) {
        if (conn->state != CONN_SENDING)
            hf__conn_enter(conn, CONN_SENDING);
        ask_again(conn);
        conn->next_part = NULL;
        *conn->loop->parts_end = conn;
        conn->loop->parts_end = &conn->next_part;
        return;
    }
    if (is_over(conn)) {
        linger(conn);
        return;
    }
    if (deaf)
        listen_again(conn);
}

static void on_written(uv_write_t *write, int status)
{
    struct conn *conn = write->data;

    if (conn->state == CONN_CLOSED)
        return;
    if (status != 0)
        hf__conn_close(conn);
    else
        sent(conn);
}

/* The connection of this loop that has waited longest for its reader, for so long at least. */
static struct conn *find_stalled(struct loop *loop, uint64_t ms)
{
    struct conn *worst = NULL;
    uint64_t before = uv_now(&loop->uv) - ms;

    for (struct conn *conn = loop->conns; conn; conn = conn->next) {
        if (conn->state == CONN_SENDING && !conn->again && conn->moved_ms <= before &&
            (!worst || conn->moved_ms < worst->moved_ms))
            worst = conn;
    }
    return worst;
}

static void evict(struct conn *conn)
{
    hf__metrics_evicted(conn->loop->context.metrics);
    leave_parts(conn);
    drop_parts(conn);
    hold(conn, 0); /* at once: the rest goes when libuv is done with it */
    hf__conn_close(conn);
}

bool hf__conn_evict(struct loop *loop, uint64_t ms)
{
    struct conn *stalled = find_stalled(loop, ms);

    if (stalled)
        evict(stalled);
    return stalled != NULL;
}

/* The reader is slow. What waits for it counts, and when that is too much, whoever has waited
 * longest goes: (2) of budget.h. The time for all parts of an answer begins with its first. */
static void wait_for_reader(struct conn *conn)
{
    struct loop *loop = conn->loop;
    struct budget *budget = &loop->server->budget;

    if (conn->state != CONN_SENDING)
        hf__conn_enter(conn, CONN_SENDING);
    conn->moved_ms = uv_now(&loop->uv);
    conn->queued = SIZE_MAX;
    loop->pending -= conn->pending;
    conn->pending = 0;
    hold(conn, conn->out.cap + (conn->parts ? hf__parts_bytes(conn->parts) : 0));
    while (atomic_load(&budget->output) > budget->output_max && conn->state != CONN_CLOSED)
        (void)hf__conn_evict(loop, 0); /* itself at last */
}

/* Send what is in `out`; when the socket does not take it all, the rest follows, and the connection
 * listens to nothing until it has. */
static void send_out(struct conn *conn)
{
    uv_stream_t *stream = (uv_stream_t *)&conn->tcp;
    uv_buf_t buf;
    int taken;

    if (conn->state == CONN_CLOSED)
        return;
    if (conn->tls && !hf__tls_seal(conn->tls, &conn->out, &conn->out_begin, is_over(conn))) {
        hf__conn_close(conn);
        return;
    }
    if (conn->out.len == conn->out_begin) { /* there was no memory for an answer */
        sent(conn);
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
    if ((size_t)taken == buf.len) {
        sent(conn);
        return;
    }
    buf.base += taken;
    buf.len -= (size_t)taken;
    uv_read_stop(stream);
    ask_no_more(conn);
    wait_for_reader(conn);
    if (conn->state == CONN_CLOSED)
        return;
    conn->write.data = conn;
    if (uv_write(&conn->write, stream, &buf, 1, on_written) != 0)
        hf__conn_close(conn);
}

void hf__conn_ready(struct conn *conn)
{
    struct loop *loop = conn->loop;

    if (conn->ready || conn->owing)
        return;
    conn->ready = true;
    conn->next_ready = NULL;
    *loop->ready_end = conn;
    loop->ready_end = &conn->next_ready;
}

/* Wait for the disk, once for all that owe more than is paid; when that fails, they all hear of
 * it. */
static void settle(struct loop *loop, struct conn *owing, uint64_t paid, uint64_t ticket)
{
    if (ticket <= paid)
        return;
    hf_scope_reset(loop->context.scope);
    if (hf__db_settle(loop->context.scope, loop->server->db, ticket) == HF_OK)
        return;
    for (struct conn *conn = owing; conn; conn = conn->next_owing) {
        if (conn->debt.ticket > paid)
            hf__call_lost(conn, hf_scope_error(loop->context.scope));
    }
}

static void on_release(uv_timer_t *timer);

/* Keep the answer back for as long as a fault wants it; until then nothing more is read. */
static void delay(struct conn *conn)
{
    struct loop *loop = conn->loop;
    uint64_t now = uv_now(&loop->uv), due = now + conn->debt.delay_ms;

    if (conn->state == CONN_CLOSED)
        return;
    conn->debt = (struct hf__debt){0};
    uv_read_stop((uv_stream_t *)&conn->tcp);
    ask_no_more(conn);
    conn->state = CONN_HELD;
    conn->deadline_ms = due;
    if (!uv_is_active((uv_handle_t *)&loop->release) ||
        uv_timer_get_due_in(&loop->release) > due - now)
        uv_timer_start(&loop->release, on_release, due - now, 0);
}

static void on_release(uv_timer_t *timer)
{
    struct loop *loop = timer->data;
    uint64_t now = uv_now(&loop->uv), next = UINT64_MAX;

    for (struct conn *conn = loop->conns; conn; conn = conn->next) {
        if (conn->state != CONN_HELD)
            continue;
        if (conn->deadline_ms <= now) {
            hf__conn_enter(conn,
                           CONN_SENDING); /* as after an answer that did not fit: then it listens */
            hf__conn_ready(conn);
        } else if (conn->deadline_ms < next) {
            next = conn->deadline_ms;
        }
    }
    if (next != UINT64_MAX)
        uv_timer_start(timer, on_release, next - now, 0);
    hf__conn_turn(loop); /* poll comes first otherwise, and may sleep */
}

/* It owes nothing any more: send the answers, unless a fault wants them kept back. */
static void let_go(struct conn *conn)
{
    if (conn->debt.delay_ms)
        delay(conn);
    else
        send_out(conn);
}

static void release(struct loop *loop, struct conn *paid)
{
    uint64_t now = paid ? uv_hrtime() : 0, oldest = now;
    uint32_t answers = 0;

    while (paid) {
        struct conn *conn = paid;
        uint64_t waited_ms = (now - conn->owing_ns) / 1000000;

        paid = conn->next_owing;
        conn->owing = false;
        conn->begun_ms += waited_ms; /* the disk's time is not the client's */
        conn->deadline_ms += waited_ms;
        answers += conn->answers;
        oldest = conn->owing_ns < oldest ? conn->owing_ns : oldest;
        let_go(conn);
    }
    if (answers > 0)
        hf__metrics_commit(loop->context.metrics, answers, now - oldest);
    hf__spin_answered(&loop->spin, atomic_load_explicit(&loop->conns_len, memory_order_relaxed));
}

/* Leave the wait for the disk to the settler, and go on. */
static void leave_to_settler(struct loop *loop, struct conn *owing, uint64_t ticket)
{
    struct conn *last = owing;

    while (last->next_owing)
        last = last->next_owing;
    last->next_owing = loop->owing;
    loop->owing = owing;
    atomic_store(&loop->owes, true);
    if (!hf__settler_ask(&loop->server->settler, ticket))
        hf__conn_settled(loop);
}

void hf__conn_settled(struct loop *loop)
{
    struct settler *settler = &loop->server->settler;
    uint64_t tried = atomic_load(&settler->tried), paid = atomic_load(&settler->paid), ticket = 0;
    struct conn **at = &loop->owing, *done = NULL, **done_end = &done;

    while (*at) {
        struct conn *conn = *at;

        if (conn->debt.ticket > tried) {
            at = &conn->next_owing;
            continue;
        }
        *at = conn->next_owing;
        *done_end = conn;
        done_end = &conn->next_owing;
        ticket = conn->debt.ticket > ticket ? conn->debt.ticket : ticket;
    }
    *done_end = NULL;
    atomic_store(&loop->owes, loop->owing != NULL);
    settle(loop, done, paid, ticket);
    if (done)
        release(loop, done);
}

/* A loop with one connection has nothing to go on with, and waits for the disk itself: to have
 * another thread do it, and to be woken by that, takes longer. */
static bool goes_on(const struct loop *loop)
{
    return loop->server->settler.runs && atomic_load(&loop->conns_len) > 1;
}

void hf__conn_turn(struct loop *loop)
{
    struct conn *ready = loop->ready, *owing = NULL, **owing_end = &owing;
    uint64_t ticket = 0, now = 0;

    loop->begun_ns = 0;
    if (!ready)
        return;
    hf__spin_asked(&loop->spin);
    loop->ready = NULL;
    loop->ready_end = &loop->ready;
    while (ready) {
        struct conn *conn = ready;

        ready = conn->next_ready;
        conn->ready = false;
        if (conn->state == CONN_CLOSED)
            continue;
        if (!conn->debt.ticket) {
            let_go(conn);
            continue;
        }
        now = now ? now : uv_hrtime();
        conn->owing = true;
        conn->owing_ns = now;
        *owing_end = conn;
        owing_end = &conn->next_owing;
        ticket = conn->debt.ticket > ticket ? conn->debt.ticket : ticket;
    }
    *owing_end = NULL;
    if (owing && goes_on(loop)) {
        leave_to_settler(loop, owing, ticket);
        return;
    }
    settle(loop, owing, 0, ticket);
    release(loop, owing);
}

/* ---- receiving ------------------------------------------------------------------------------ */

/* Keep `len` bytes that begin with a request which is not complete; they may be in `in` already. */
static bool keep(struct conn *conn, const uint8_t *bytes, size_t len)
{
    struct hf__buf *in = &conn->in;

    if (len == 0) {
        in->len = 0;
        if (in->cap > INPUT_KEEP)
            hf__buf_free(in);
        return true;
    }
    if (in->ptr && bytes >= in->ptr && bytes < in->ptr + in->cap) {
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

/* The head is there and wants to hear that its body is welcome. */
static void head_is_there(struct conn *conn, const struct http_reader *reader)
{
    if (conn->state != CONN_BODY)
        hf__conn_enter(conn, CONN_BODY);
    if (!reader->head.expect_continue || conn->continued)
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
        503, "Unfinished requests take all the memory that this server has for them"};
    hf__route_bad(conn, &conn->loop->reader);
}

/* A whole request that may take long: a worker's. What was answered before it leaves first. False
 * when that has to happen yet. */
static bool leave_to_worker(struct conn *conn, const struct http_reader *reader, uint8_t *bytes)
{
    struct budget *budget = &conn->loop->server->budget;

    if (atomic_load(&budget->input) > budget->input_max && reader->used > INPUT_LEAST) {
        refuse_input(conn);
        return true;
    }
    conn->kept = true; /* what follows is for after it */
    uv_read_stop((uv_stream_t *)&conn->tcp);
    if (conn->ready || conn->out.len > 0) { /* a server that stops closes only after this one */
        conn->close_after = !keep_reader(conn, reader);
        return false;
    }
    if (conn->loop->server->options.access_log)
        (void)hf__answer_peer(conn);
    if (!hf__work_give(conn, reader, bytes))
        conn->close_after = true; /* no memory */
    return true;
}

/* Handle a whole request; false when it is left to a worker, but not yet. */
static bool handle(struct conn *conn, const struct http_reader *reader, uint8_t *bytes)
{
    if (reader->body.len <= WORK_BODY && !conn->too_long)
        hf__route(&conn->loop->context, conn, reader);
    if (reader->body.len <= WORK_BODY && !conn->too_long)
        return true;
    return leave_to_worker(conn, reader, bytes);
}

/* Handle as many whole requests as there are; returns what is left. */
static size_t take_requests(struct conn *conn, uint8_t *bytes, size_t len)
{
    struct loop *loop = conn->loop;
    size_t at = 0;

    while (at < len && !conn->close_after && has_room(conn)) {
        struct http_reader *reader = conn->partial ? conn->partial : &loop->reader;

        if (!conn->partial)
            hf__http_begin(reader, NULL);
        if (conn->state == CONN_IDLE)
            hf__conn_enter(conn, CONN_HEAD);
        switch (hf__http_read(reader, bytes + at, len - at)) {
        case HTTP_HEAD:
            head_is_there(conn, reader);
            if (!keep_reader(conn, reader))
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
            if (!handle(conn, reader, bytes + at))
                return len - at;
            at += reader->used;
            hf__conn_enter(conn, CONN_IDLE);
            if (conn->working) { /* `close_after` is the worker's */
                forget_partial(conn);
                return len - at;
            }
            break;
        case HTTP_BAD:
            hf__route_bad(conn, reader);
            at = len;
            break;
        }
        forget_partial(conn);
    }
    return conn->close_after ? 0 : len - at;
}

static void on_idle(uv_idle_t *idle);

/* There is more to handle than fits into one turn; the idle handle brings it up again. Until then
 * nothing more is read. */
static void ask_again(struct conn *conn)
{
    if (conn->again)
        return;
    conn->again = true;
    uv_read_stop((uv_stream_t *)&conn->tcp);
    if (conn->loop->again++ == 0)
        uv_idle_start(&conn->loop->idle, on_idle);
}

/* Everybody's unfinished requests together may not take all memory. Who asks for more than a little
 * is sent away when they do; small requests go on: (1) of budget.h. */
static void bound_input(struct conn *conn)
{
    if (count_input(conn) <= conn->loop->server->budget.input_max || conn->in.len <= INPUT_LEAST ||
        conn->working || conn->close_after)
        return;
    drop_input(conn);
    refuse_input(conn);
}

/* What comes while an answer waits for the disk or a worker is kept for after that: it could be
 * answered only behind it. Few clients send so early. */
static bool keep_for_later(struct conn *conn)
{
    if (!conn->owing && !conn->working)
        return false;
    conn->kept = true;
    uv_read_stop((uv_stream_t *)&conn->tcp);
    return true;
}

void hf__conn_consume(struct conn *conn, uint8_t *bytes, size_t len)
{
    bool later;
    size_t left;

    if (conn->state == CONN_LINGER || conn->state == CONN_CLOSED)
        return;
    later = keep_for_later(conn);
    left = later ? len : take_requests(conn, bytes, len);
    later = later || conn->kept;
    if (!keep(conn, bytes + (len - left), left)) {
        hf__conn_close(conn); /* no memory for the rest of a request */
        return;
    }
    bound_input(conn);
    if (conn->working)
        return;
    if (conn->close_after && !conn->ready)
        hf__conn_ready(conn);
    if (left > 0 && !conn->partial && !conn->close_after && !later)
        ask_again(conn);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
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

static void on_end(struct conn *conn, ssize_t nread)
{
    conn->ended = true;
    if (nread != UV_EOF || conn->state == CONN_LINGER)
        hf__conn_close(conn);
    else if (!conn_is_busy(conn))
        hf__conn_close(conn); /* nothing is owed, and half a request stays half */
    else
        uv_read_stop((uv_stream_t *)&conn->tcp);
}

/* From the end of its handshake on, a connection may be idle as any other. */
static void greeted(struct conn *conn)
{
    if (!conn->greeting || !hf__tls_established(conn->tls))
        return;
    conn->greeting = false;
    if (conn->state == CONN_IDLE)
        hf__conn_enter(conn, CONN_IDLE);
}

static void on_read(uv_stream_t *stream, ssize_t nread, const uv_buf_t *buf)
{
    struct conn *conn = conn_of(stream);

    if (nread < 0) {
        on_end(conn, nread);
        return;
    }
    if (nread == 0)
        return;
    hf__metrics_bytes(conn->loop->context.metrics, (size_t)nread, 0);
    if (conn->tls) {
        if (!hf__tls_feed(conn, (uint8_t *)buf->base, (size_t)nread))
            hf__conn_close(conn);
        else
            (void)keep_for_later(conn); /* also of what TLS has not made bytes of */
        greeted(conn);
    } else if (conn->in.len > 0 && conn->state != CONN_LINGER) {
        conn->in.len += (size_t)nread;
        hf__conn_consume(conn, conn->in.ptr, conn->in.len);
    } else {
        hf__conn_consume(conn, (uint8_t *)buf->base, (size_t)nread);
    }
}

void hf__conn_read(struct conn *conn)
{
    int error = conn->ended ? 0 : uv_read_start((uv_stream_t *)&conn->tcp, on_alloc, on_read);

    if (error != 0 && error != UV_EALREADY)
        hf__conn_close(conn);
}

/* The answer that did not fit is sent: go on with what came meanwhile. The time in which we did not
 * listen counts for nobody. */
static void listen_again(struct conn *conn)
{
    hf__conn_enter(conn, conn->in.len == 0 ? CONN_IDLE : CONN_HEAD);
    if (conn->partial && conn->partial->head.path.len > 0) /* its head is there */
        hf__conn_enter(conn, CONN_BODY);
    if (conn->in.len > 0 && (!conn->partial || conn->kept))
        ask_again(conn);
    else
        hf__conn_read(conn);
    conn->kept = false;
}

static void send_part(struct conn *conn)
{
    if (!hf__parts_next(conn->parts, &conn->out))
        drop_parts(conn);
    if (conn->out.failed)
        hf__conn_close(conn); /* no memory for it, and its length was announced */
    else
        send_out(conn);
}

void hf__conn_worked(struct conn *conn)
{
    conn->working = false;
    if (conn->closed)
        free_conn(conn);
    else if (conn->state != CONN_CLOSED)
        hf__conn_ready(conn);
}

/* Make the next part for all that wait for one, the first of them first, while there is time. */
static void send_parts(struct loop *loop)
{
    uint64_t until = loop->parts ? uv_hrtime() + TURN_MS * UINT64_C(1000000) : 0;
    struct conn *last = NULL, *conn;

    for (conn = loop->parts; conn; conn = conn->next_part)
        last = conn;
    while (last && loop->parts && uv_hrtime() < until) {
        conn = loop->parts;
        leave_parts(conn);
        ask_no_more(conn);
        last = conn == last ? NULL : last;
        send_part(conn);
    }
}

static void on_idle(uv_idle_t *idle)
{
    struct loop *loop = idle->data;

    send_parts(loop);
    for (struct conn *conn = loop->conns; conn; conn = conn->next) {
        if (!conn->again || conn->parts)
            continue;
        ask_no_more(conn);
        hf__conn_consume(conn, conn->in.ptr, conn->in.len);
        if (conn->again || conn->kept || conn->state == CONN_CLOSED)
            continue;
        if (conn->ended && !conn_is_busy(conn))
            hf__conn_close(conn); /* half a request stays half */
        else
            hf__conn_read(conn);
    }
    hf__conn_turn(loop);
}
