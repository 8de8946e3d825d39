/*
 * test/fuzz/fuzz_server.c: whatever comes over a connection, to a server in memory.
 *
 * The first byte says in which pieces the rest arrives: its low six bits times seven bytes each, or
 * all at once for none ('@'). The server's loop runs on this thread, a turn after every piece, so
 * that the same input does the same.
 *
 * Whatever comes: what goes back is answers and nothing else, each well formed, as long as it says
 * and with the right crc, and JSON where it says so. None is a 500, but for a body whose packing is
 * broken. The connection ends when we end ours. Then the server still answers others, and the
 * database is in order.
 */
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "requests.h"
#include "server/private.h"
#include "wire/wire.h"

enum { TURNS_MAX = 100000, PIECE_UNIT = 7 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* One connection, seen from its client. */
struct caller {
    struct loop *loop;
    int fd;
    uint8_t *got;
    size_t len;
    size_t cap;
    bool ended;
};

/* ---- the connection ------------------------------------------------------------------------- */

static void turn(struct caller *c)
{
    uv_run(&c->loop->uv, UV_RUN_NOWAIT);
    while (!c->ended) {
        ssize_t got;

        if (c->cap - c->len < 65536) {
            c->cap = 2 * c->cap + 65536;
            c->got = realloc(c->got, c->cap);
            MUST(c->got);
        }
        got = recv(c->fd, c->got + c->len, c->cap - c->len, 0);
        if (got < 0 && errno == EAGAIN)
            return;
        if (got <= 0)
            c->ended = true;
        else
            c->len += (size_t)got;
    }
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
    for (size_t at = 0; at < len; at += piece)
        say(c, bytes + at, len - at < piece ? len - at : piece);
    shutdown(c->fd, SHUT_WR);
    for (int turns = 0; !c->ended; turns++) {
        MUST(turns < TURNS_MAX);
        turn(c);
    }
}

static void hang_up(struct caller *c)
{
    close(c->fd);
    free(c->got);
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

static bool mentions(const uint8_t *bytes, size_t len, const char *word)
{
    size_t word_len = strlen(word);

    for (size_t i = 0; i + word_len <= len; i++) {
        if (strncasecmp((const char *)bytes + i, word, word_len) == 0)
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
    if (hf__http_is(type, "application/x-amz-json-1.0") && body.len > 0 &&
        !field(head, "\r\nContent-Encoding: ").ptr)
        MUST(hf__json_valid(body));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char alive[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n";
    size_t piece = size > 0 && data[0] % 64 ? (size_t)(data[0] % 64) * PIECE_UNIT : size + 1;
    struct server *server;
    struct caller c;
    struct machine m;
    struct hf_str rest;

    machine_open(&m, "memory:");
    machine_begin(&m);
    MUST(hf__server_open(m.s, m.db, &(struct server_options){.env = &m.env, .loops = 1}, &server) ==
         HF_OK);
    call(&c, &server->loops[0], data + (size > 0), size - (size > 0), piece);
    rest = hf_str_of((const char *)c.got, c.len);
    while (rest.len > 0)
        check_answer(&rest, mentions(data, size, "HEAD "),
                     mentions(data, size, "content-encoding"));
    hang_up(&c);

    call(&c, &server->loops[0], (const uint8_t *)alive, sizeof(alive) - 1, sizeof(alive));
    MUST(c.len > 200 && memcmp(c.got, "HTTP/1.1 200 OK\r\n", 17) == 0);
    MUST(memcmp(c.got + c.len - 6, "alive\n", 6) == 0);
    hang_up(&c);
    hf__server_close(server);
    MUST(hf_engine_check(m.s, m.db, NULL) == HF_OK);
    machine_close(&m);
    return 0;
}
