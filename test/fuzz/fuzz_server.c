/*
 * test/fuzz/fuzz_server.c: whatever comes over a connection, to a server in memory.
 *
 * The first byte says in which pieces the rest arrives: its low six bits times seven bytes each, or
 * all at once for none ('@'); the last of PIECES_MAX is all that is left. The server's loop runs on
 * this thread, one iteration after every piece, so that the same input does the same.
 *
 * Whatever comes: what goes back is answers and nothing else, each well formed, as long as it says
 * and with the right crc, and JSON where it says so. None is a 500, but for a body whose packing is
 * broken. The connection ends when we end ours. After one input in CHECK_EVERY (which, follows from
 * the input) the server still answers others, and the database is in order.
 *
 * Server and database live as long as the program; after each input the database is as it was.
 */
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "compares.h"
#include "requests.h"
#include "server/private.h"
#include "wire/wire.h"

enum { TURNS_MAX = 100000, PIECE_UNIT = 7, PIECES_MAX = 32, CHECK_EVERY = 8, ROOM = 64 * 1024 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One connection, seen from its client. There is one at a time. */
struct caller {
    struct loop *loop;
    int fd;
    size_t len; /* of what is in `got` */
    bool ended;
};

static uint8_t *got;
static size_t got_cap;

/* ---- the connection ------------------------------------------------------------------------- */

/* Take what is there. */
static void take(struct caller *c)
{
    while (!c->ended) {
        ssize_t more;

        if (got_cap - c->len < ROOM) {
            got_cap = 2 * got_cap + ROOM;
            got = realloc(got, got_cap);
            MUST(got);
        }
        more = recv(c->fd, got + c->len, got_cap - c->len, 0);
        if (more < 0 && errno == EAGAIN)
            return;
        if (more <= 0)
            c->ended = true;
        else
            c->len += (size_t)more;
    }
}

static void turn(struct caller *c)
{
    uv_run(&c->loop->uv, UV_RUN_NOWAIT);
}

static void say(struct caller *c, const uint8_t *bytes, size_t len)
{
    for (int turns = 0; len > 0 && !c->ended; turns++) {
        ssize_t sent = send(c->fd, bytes, len, MSG_NOSIGNAL);

        if (sent < 0 && errno != EAGAIN)
            return; /* the server closed */
        MUST(turns < TURNS_MAX);
        bytes += sent > 0 ? sent : 0;
        len -= sent > 0 ? (size_t)sent : 0;
        if (sent < 0) /* it waits for us to read */
            take(c);
        turn(c);
    }
}

/* Send it all, and take what comes until the end. */
static void call(struct caller *c, struct loop *loop, const uint8_t *bytes, size_t len,
                 size_t piece)
{
    int fds[2];

    MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds) == 0);
    *c = (struct caller){.loop = loop, .fd = fds[0]};
    hf__conn_open(loop, fds[1]);
    for (size_t at = 0, pieces = 0; at < len; at += piece) {
        if (++pieces == PIECES_MAX || len - at < piece)
            piece = len - at;
        say(c, bytes + at, piece);
    }
    shutdown(c->fd, SHUT_WR);
    for (int turns = 0; !c->ended; turns++) {
        MUST(turns < TURNS_MAX);
        turn(c);
        take(c);
    }
}

/* ---- what came back ------------------------------------------------------------------------- */

static struct hf_str field(struct hf_str head, const char *name)
{
    const char *at = memmem(head.ptr, head.len, name, strlen(name)), *end;

    if (!at)
        return (struct hf_str){0};
    at += strlen(name);
    end = memmem(at, head.len - (size_t)(at - head.ptr), "\r\n", 2);
    MUST(end);
    return hf_str_of(at, (size_t)(end - at));
}

/* In letters of any case. By hand, as libFuzzer takes a note of every strncasecmp(). */
static bool mentions(const uint8_t *bytes, size_t len, const char *word)
{
    size_t word_len = strlen(word);

    for (size_t i = 0; i + word_len <= len; i++) {
        size_t same = 0;

        while (same < word_len && (bytes[i + same] | 0x20) == (word[same] | 0x20))
            same++;
        if (same == word_len)
            return true;
    }
    return false;
}

static void check_body(struct hf_str head, struct hf_str body)
{
    struct hf_str crc = field(head, "\r\nx-amz-crc32: "), type = field(head, "\r\nContent-Type: ");
    char computed[16];

    if (crc.ptr) {
        snprintf(computed, sizeof(computed), "%u", libdeflate_crc32(0, body.ptr, body.len));
        MUST(hf_str_equal(crc, hf_str_from(computed)));
    }
    if ((hf__http_is(type, "application/x-amz-json-1.0") ||
         hf__http_is(type, "application/json")) &&
        body.len > 0 && !field(head, "\r\nContent-Encoding: ").ptr)
        MUST(hf__wire_json_valid(body));
}

/* Of a page of ours, or of nobody's; nothing follows it. */
static void check_stream(struct hf_str events)
{
    MUST(events.len >= 2 && memcmp(events.ptr + events.len - 2, "\n\n", 2) == 0);
}

/* Take one answer off the front of *rest. `heads`: it may be one to a HEAD, without its body. */
static void check_answer(struct hf_str *rest, bool heads, bool packed)
{
    const char *end = memmem(rest->ptr, rest->len, "\r\n\r\n", 4);
    struct hf_str head, length, body;
    long status;

    MUST(rest->len > 13 && memcmp(rest->ptr, "HTTP/1.1 ", 9) == 0 && end);
    head = hf_str_of(rest->ptr, (size_t)(end - rest->ptr) + 2);
    status = strtol(rest->ptr + 9, NULL, 10);
    MUST(status >= 100 && status < 600);
    MUST(status != 500 || packed);
    *rest = hf_str_of(end + 4, rest->len - head.len - 2);
    if (status == 100)
        return;
    MUST(field(head, "\r\nx-amzn-RequestId: ").len == REQUEST_ID);
    if (hf_str_equal(field(head, "\r\nContent-Type: "), HF_STR("text/event-stream"))) {
        check_stream(*rest);
        *rest = (struct hf_str){0};
        return;
    }
    length = field(head, "\r\nContent-Length: ");
    MUST(length.len > 0);
    body = hf_str_of(rest->ptr, strtoul(length.ptr, NULL, 10));
    if (heads && body.len > 0 &&
        (rest->len == 0 || (rest->len > 9 && memcmp(rest->ptr, "HTTP/1.1 ", 9) == 0)))
        return;
    MUST(body.len <= rest->len);
    check_body(head, body);
    *rest = hf_str_of(rest->ptr + body.len, rest->len - body.len);
}

/* A call of a pattern: whatever it is. */
static enum hf_status call_pattern(struct hf_scope *s, void *user, struct hf_str method,
                                   struct hf_str json, struct hf_str *result)
{
    (void)user;
    MUST(method.ptr && hf__wire_json_valid(json));
    *result = hf_scope_copy(s, json);
    return HF_OK;
}

/* Others are still served. */
static void must_be_alive(struct loop *loop)
{
    static const char alive[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct caller c;

    call(&c, loop, (const uint8_t *)alive, sizeof(alive) - 1, sizeof(alive));
    MUST(c.len > 200 && memcmp(got, "HTTP/1.1 200 OK\r\n", 17) == 0);
    MUST(memcmp(got + c.len - 6, "alive\n", 6) == 0);
    close(c.fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct machine m;
    static struct server *server;
    size_t piece = size > 0 && data[0] % 64 ? (size_t)(data[0] % 64) * PIECE_UNIT : size + 1;
    struct caller c;
    struct hf_str rest;
    bool heads, packed;

    compares_begin(data, size);
    if (!server) {
        machine_open(&m, NULL);
        MUST(hf__server_open(m.s, m.db,
                             &(struct server_options){
                                 .env = &m.env, .loops = 1, .console = true, .call = call_pattern},
                             &server) == HF_OK);
    }
    call(&c, &server->loops[0], data + (size > 0), size - (size > 0), piece);
    rest = hf_str_of((const char *)got, c.len);
    heads = mentions(data, size, "HEAD ");
    packed = mentions(data, size, "content-encoding");
    while (rest.len > 0)
        check_answer(&rest, heads, packed);
    close(c.fd);
    while (server->conns_len > 0)
        uv_run(&server->loops[0].uv, UV_RUN_NOWAIT);
    if (one_in(CHECK_EVERY, data, size)) {
        must_be_alive(&server->loops[0]);
        if (machine_changed(&m))
            MUST(hf_engine_check(m.s, m.db, NULL) == HF_OK);
    }
    machine_end(&m);
    server->db = server->engine = m.db;
    return 0;
}
