/*
 * server/answer.c: the head of an answer, and where answers are put together.
 *
 * A body is written straight into the connection's output, behind room for a head; when its length
 * is known, the head is put in front of it. The body has to move only behind other answers of the
 * same iteration, which pipelining clients get.
 *
 * x-amz-crc32 is of the body as it is sent, so after packing. What is sent in parts is not packed.
 */
#include "server/private.h"

#include <arpa/inet.h>
#include <libdeflate.h>
#include <time.h>

const struct hf_str hf__type_json_1_0 = HF_STR_INIT("application/x-amz-json-1.0");
const struct hf_str hf__type_json = HF_STR_INIT("application/json");
const struct hf_str hf__type_text = HF_STR_INIT("text/plain; charset=utf-8");

/* ---- parts of a head ------------------------------------------------------------------------ */

static char *put_text(char *at, const char *text, size_t len)
{
    memcpy(at, text, len);
    return at + len;
}

#define PUT(at, literal) put_text(at, literal, sizeof(literal) - 1)

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    size_t len = 0;

    do
        digits[len++] = (char)('0' + number % 10);
    while (number /= 10);
    while (len > 0)
        *at++ = digits[--len];
    return at;
}

static uint64_t next_random(struct context *context)
{
    uint64_t a = context->random[0], b = context->random[1]; /* xorshift128+ */

    context->random[0] = b;
    a ^= a << 23;
    context->random[1] = a ^ b ^ (a >> 18) ^ (b >> 5);
    return context->random[1] + b;
}

/* Ids distinguish requests in logs; they need not be hard to guess. Eight letters at a time: five
 * bits of each byte, as a digit or, from ten on, as one of A to V. */
static void make_request_id(struct context *context, char id[REQUEST_ID])
{
    const uint64_t ones = UINT64_MAX / 255;

    for (size_t at = 0; at < REQUEST_ID; at += 8) {
        uint64_t bits = next_random(context) & ones * 31;
        uint64_t letters = (bits + ones * (128 - 10)) >> 7 & ones;
        uint64_t text = bits + ones * '0' + letters * ('A' - '0' - 10);

        memcpy(id + at, &text, at + 8 <= REQUEST_ID ? 8 : REQUEST_ID % 8);
    }
}

static void refresh_date(struct context *context)
{
    int64_t now = hf__env_wall_us(&context->server->env) / 1000000;
    static const char days[] = "SunMonTueWedThuFriSat";
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    time_t seconds = (time_t)now;
    struct tm tm;

    if (now == context->date_s)
        return;
    context->date_s = now;
    gmtime_r(&seconds, &tm);
    snprintf(context->date, sizeof(context->date), "%.3s, %02d %.3s %04d %02d:%02d:%02d GMT",
             days + 3 * (tm.tm_wday % 7), tm.tm_mday % 100, months + 3 * (tm.tm_mon % 12),
             (tm.tm_year + 1900) % 10000, tm.tm_hour % 100, tm.tm_min % 100, tm.tm_sec % 100);
}

/* ---- the head ------------------------------------------------------------------------------- */

struct head_parts {
    int status;
    uint64_t len; /* of the body, */
    uint32_t crc; /* and its checksum */
    enum http_coding coding;
    bool close;
};

enum { LOGGED_MAX = 200 }; /* bytes of a path that are logged */
enum { HEAD_FIXED = 512 }; /* more than everything in put_head() but type and fields */

static char *put_head(char *at, const struct answer *answer, const struct head_parts *parts)
{
    const char *reason = hf__http_reason(parts->status);

    at = PUT(at, "HTTP/1.1 ");
    at = put_number(at, (uint64_t)parts->status);
    at = PUT(at, " ");
    at = put_text(at, reason, strlen(reason));
    at = PUT(at, "\r\nServer: holdfast\r\nDate: ");
    at = put_text(at, answer->context->date, strlen(answer->context->date));
    if (answer->type.len) {
        at = PUT(at, "\r\nContent-Type: ");
        at = put_text(at, answer->type.ptr, answer->type.len);
    }
    if (!answer->endless) {
        at = PUT(at, "\r\nContent-Length: ");
        at = put_number(at, parts->len);
    }
    if (parts->coding != HTTP_IDENTITY) {
        at = PUT(at, "\r\nContent-Encoding: ");
        at = parts->coding == HTTP_GZIP ? PUT(at, "gzip") : PUT(at, "deflate");
    }
    at = PUT(at, "\r\nx-amzn-RequestId: ");
    at = put_text(at, answer->context->request_id, REQUEST_ID);
    if (!answer->no_crc) {
        at = PUT(at, "\r\nx-amz-crc32: ");
        at = put_number(at, parts->crc);
    }
    if (parts->close || answer->endless)
        at = PUT(at, "\r\nConnection: close");
    else if (answer->head && answer->head->minor == 0)
        at = PUT(at, "\r\nConnection: keep-alive");
    at = PUT(at, "\r\n");
    at = put_text(at, answer->fields.ptr ? answer->fields.ptr : "", answer->fields.len);
    return PUT(at, "\r\n");
}

/* ---- answers -------------------------------------------------------------------------------- */

/* A buffer that an earlier answer left, so that the next needs no memory. */
static void take_buffer(struct answer *answer)
{
    struct conn *conn = answer->conn;
    struct loop *loop = conn->loop;

    if (conn->out.ptr || answer->context->worker || loop->pool_len == 0)
        return;
    assert(loop->pool_len <= OUTPUT_POOL);
    conn->out = loop->pool[--loop->pool_len];
    conn->out.failed = false;
}

struct hf__buf *hf__answer_begin(struct answer *answer)
{
    struct conn *conn = answer->conn;

    take_buffer(answer);
    if (conn->out.len == 0) {
        if (hf__buf_reserve(&conn->out, HEAD_ROOM))
            conn->out.len = HEAD_ROOM;
        conn->out_begin = conn->out.len;
    }
    answer->begin = conn->out.len;
    return &conn->out;
}

/* May compressing take long here? On workers; and with --admin on loops, too: a fault would strike
 * twice if the request was repeated by a worker. */
static bool has_time(const struct context *context)
{
    return context->worker || context->server->options.admin;
}

/* Replace the body by a packed one, when the client takes that and it is worth it. */
static enum http_coding pack_body(struct answer *answer)
{
    struct hf__buf *out = &answer->conn->out;
    struct hf_bytes body = hf_bytes_of(out->ptr + answer->begin, out->len - answer->begin), packed;
    enum http_coding coding;

    if (answer->packed)
        return HTTP_GZIP;
    if (!answer->head || answer->as_is || body.len <= PACK_MIN ||
        (body.len > PACK_LOOP && !has_time(answer->context)))
        return HTTP_IDENTITY;
    coding = hf__http_accepted(hf__http_field(answer->head, "accept-encoding"));
    if (coding == HTTP_IDENTITY ||
        hf__http_pack(answer->context->scope, coding, body, &packed) != HF_OK ||
        packed.len >= body.len)
        return HTTP_IDENTITY;
    memcpy(out->ptr + answer->begin, packed.ptr, packed.len);
    out->len = answer->begin + packed.len;
    return coding;
}

/* Room in front of the body for `len` bytes of head; NULL when there is no memory. */
static char *make_room(struct answer *answer, size_t len)
{
    struct conn *conn = answer->conn;
    struct hf__buf *out = &conn->out;
    size_t body = out->len - answer->begin;

    assert(answer->begin <= out->len && conn->out_begin <= answer->begin);
    if (answer->begin == conn->out_begin && conn->out_begin >= len) { /* the first one */
        conn->out_begin -= len;
        return (char *)out->ptr + conn->out_begin;
    }
    if (!hf__buf_reserve(out, len))
        return NULL;
    memmove(out->ptr + answer->begin + len, out->ptr + answer->begin, body);
    out->len += len;
    return (char *)out->ptr + answer->begin;
}

/* ---- the access log ------------------------------------------------------------------------- */

const char *hf__answer_peer(struct conn *conn)
{
    struct sockaddr_storage address;
    int len = sizeof(address);
    char name[INET6_ADDRSTRLEN] = "";
    uint16_t port = 0;

    if (conn->peer[0] || uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&address, &len) != 0)
        return conn->peer;
    if (address.ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)&address;

        uv_ip4_name(v4, name, sizeof(name));
        port = ntohs(v4->sin_port);
    } else if (address.ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&address;

        uv_ip6_name(v6, name, sizeof(name));
        port = ntohs(v6->sin6_port);
    }
    snprintf(conn->peer, sizeof(conn->peer), "%s port %u", name, (unsigned)port);
    return conn->peer;
}

/* What a client chose is cut short, and was checked to have no control characters by the reader. */
static void log_access(const struct answer *answer, const struct head_parts *parts)
{
    const struct http_head *head = answer->head;
    struct hf_str method = head ? head->method : HF_STR("-");
    struct hf_str path = head ? head->path : HF_STR("-");
    uint64_t ns = answer->begun_ns ? uv_hrtime() - answer->begun_ns : 0;

    if (path.len > LOGGED_MAX)
        path.len = LOGGED_MAX;
    hf__env_log(&answer->conn->loop->server->env, HF_LOG_INFO,
                "%s: %.*s %.*s%s%.*s: %d, %llu bytes, %.3f ms, %.*s", hf__answer_peer(answer->conn),
                HF_FMT(method), HF_FMT(path), answer->operation.len ? " " : "",
                HF_FMT(answer->operation), parts->status, (unsigned long long)parts->len,
                (double)ns / 1e6, REQUEST_ID, answer->context->request_id);
}

/* Put the head in front of the body. */
static bool put_in_front(struct answer *answer, struct head_parts *parts)
{
    struct conn *conn = answer->conn;
    char fixed[HEAD_FIXED + HEAD_ROOM], *head = fixed, *end, *to;
    size_t cap = HEAD_FIXED + answer->type.len + answer->fields.len;

    parts->close = conn->close_after;
    make_request_id(answer->context, answer->context->request_id);
    if (answer->context->server->options.access_log)
        log_access(answer, parts);
    refresh_date(answer->context);
    if (cap > sizeof(fixed))
        head = hf_scope_alloc(answer->context->scope, cap);
    if (!head)
        return false;
    end = put_head(head, answer, parts);
    assert((size_t)(end - head) <= cap);
    if (parts->status == 304 ||
        (answer->head && hf_str_equal(answer->head->method, HF_STR("HEAD"))))
        conn->out.len = answer->begin;
    to = make_room(answer, (size_t)(end - head));
    if (!to)
        return false;
    memcpy(to, head, (size_t)(end - head));
    conn->answers++;
    return true;
}

static bool finish_answer(struct answer *answer, int status)
{
    struct hf__buf *out = &answer->conn->out;
    struct head_parts parts = {.status = status};

    if (out->failed)
        return false;
    parts.coding = pack_body(answer);
    parts.len = out->len - answer->begin;
    if (!answer->no_crc)
        parts.crc = libdeflate_crc32(0, out->ptr + answer->begin, out->len - answer->begin);
    return put_in_front(answer, &parts);
}

/* On a worker the connection is not in any list: its loop will do that. */
static void make_ready(struct answer *answer)
{
    struct conn *conn = answer->conn;
    struct loop *loop = conn->loop;

    if (answer->context->worker)
        return;
    assert(conn->state != CONN_WORKING && conn->pending <= loop->pending);
    loop->pending += conn->out.len - conn->pending;
    conn->pending = conn->out.len;
    hf__conn_ready(conn);
}

void hf__answer_end(struct answer *answer, int status)
{
    struct conn *conn = answer->conn;

    assert(status >= 200 && status < 600);
    assert(answer->begin <= conn->out.len && conn->out_begin <= answer->begin);
    if (answer->head && !answer->head->keep_alive && !answer->endless)
        conn->close_after = true;
    if (!finish_answer(answer,
                       status)) { /* no memory for an answer: the client sees a lost connection */
        conn->out.failed = false;
        conn->out.len = answer->begin;
        conn->close_after = true;
    }
    make_ready(answer);
}

void hf__answer_more(struct conn *conn, struct hf_str text)
{
    struct answer answer = {.conn = conn, .context = &conn->loop->context};

    assert(conn->watcher && conn->out.len == 0);
    hf__buf_put_str(hf__answer_begin(&answer), text);
    if (conn->out.failed) { /* what follows could not be understood */
        conn->out.failed = false;
        conn->out.len = conn->out_begin = 0;
        hf__conn_close(conn);
    } else {
        make_ready(&answer);
    }
}

void hf__answer_parts(struct answer *answer, int status, struct parts *parts)
{
    struct conn *conn = answer->conn;
    struct head_parts head = {.status = status, .len = parts->len, .crc = parts->crc};

    assert(answer->context->worker && !conn->parts && parts->scope == answer->context->scope);
    if (!answer->head->keep_alive)
        conn->close_after = true;
    (void)hf__answer_begin(answer);
    conn->parts = parts;
    if (conn->out.failed || !put_in_front(answer, &head)) {
        conn->out.failed = false;
        conn->out.len = 0;
        conn->out_begin = 0;
        conn->close_after = true;
        hf__parts_free(&conn->loop->server->env, parts);
        conn->parts = NULL;
        answer->context->scope = NULL; /* it was the parts' */
    }
}

bool hf__answer_too_long(struct answer *answer)
{
    struct conn *conn = answer->conn;

    if (has_time(answer->context) || conn->out.failed ||
        conn->out.len - answer->begin <= PACK_LOOP ||
        hf__http_accepted(hf__http_field(answer->head, "accept-encoding")) == HTTP_IDENTITY)
        return false;
    conn->out.len = answer->begin;
    if (conn->out.len == conn->out_begin) /* it was the first */
        conn->out.len = conn->out_begin = 0;
    conn->for_worker = true;
    return true;
}

void hf__answer_text(struct answer *answer, int status, struct hf_str body)
{
    hf__buf_put_str(hf__answer_begin(answer), body);
    hf__answer_end(answer, status);
}
