/*
 * bench/server_echo.c: an HTTP server that does nothing, which is the most that one can do.
 *
 *     bench_server_echo --port P
 *
 * It reads a POST with a Content-Length on one libuv loop, and answers with as many bytes as the
 * path says: "POST /1160 HTTP/1.1". A server that also has a database can at best come near to it,
 * so shares of its speed mean the same on every machine. It trusts its client, bench_server_load,
 * and listens on the loopback address alone.
 */
#include "lib.h"

#include <strings.h>
#include <uv.h>

enum {
    BACKLOG = 1024,
    IN_BYTES = 64 * 1024, /* more than a request has */
    ANSWER_MAX = 1024 * 1024,
    HEAD_MAX = 200
};

struct client {
    uv_tcp_t tcp;
    size_t in_len;
    char in[IN_BYTES];
};

/* An answer that could not be sent at once. */
struct late {
    uv_write_t write;
    size_t head_len;
    char head[HEAD_MAX];
};

static char filler[ANSWER_MAX]; /* what all bodies are made of */

static void on_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void drop(struct client *client)
{
    if (!uv_is_closing((uv_handle_t *)&client->tcp))
        uv_close((uv_handle_t *)&client->tcp, on_closed);
}

static void on_late(uv_write_t *write, int status)
{
    (void)status;
    free(write->data);
}

/* Most answers fit the socket; what is left of others goes out when it can. */
static void answer(struct client *client, size_t size)
{
    char head[HEAD_MAX];
    int head_len = snprintf(head, sizeof(head),
                            "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
                            "x-amzn-RequestId: 00000000-0000-4000-8000-000000000000\r\n"
                            "x-amz-crc32: 2745614147\r\nContent-Length: %zu\r\n\r\n",
                            size);
    uv_buf_t parts[2] = {uv_buf_init(head, (unsigned)head_len),
                         uv_buf_init(filler, (unsigned)size)};
    int sent = uv_try_write((uv_stream_t *)&client->tcp, parts, 2);
    struct late *late;

    if (sent == UV_EAGAIN)
        sent = 0;
    if (sent < 0) {
        drop(client);
        return;
    }
    if ((size_t)sent == (size_t)head_len + size)
        return;
    late = calloc(1, sizeof(*late));
    if (!late)
        bench_die("out of memory");
    late->write.data = late;
    if (sent < head_len) {
        late->head_len = (size_t)(head_len - sent);
        memcpy(late->head, head + sent, late->head_len);
    } else {
        size -= (size_t)(sent - head_len);
    }
    parts[0] = uv_buf_init(late->head, (unsigned)late->head_len);
    parts[1] = uv_buf_init(filler, (unsigned)size);
    if (uv_write(&late->write, (uv_stream_t *)&client->tcp, parts, 2, on_late)) {
        free(late);
        drop(client);
    }
}

static const char *find_length(const char *head, const char *end)
{
    static const char name[] = "\r\ncontent-length:";

    for (const char *at = head; (at = memchr(at, '\r', (size_t)(end - at))) != NULL; at++)
        if ((size_t)(end - at) > sizeof(name) && strncasecmp(at, name, sizeof(name) - 1) == 0)
            return at + sizeof(name) - 1;
    return NULL;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *buffer)
{
    struct client *client = stream->data;
    const char *end, *length;
    size_t need, size;

    (void)buffer;
    if (n < 0) {
        drop(client);
        return;
    }
    client->in_len += (size_t)n;
    end = memmem(client->in, client->in_len, "\r\n\r\n", 4);
    if (!end)
        return;
    length = find_length(client->in, end + 2);
    need = (size_t)(end + 4 - client->in) + (length ? strtoul(length, NULL, 10) : 0);
    if (client->in_len < need)
        return;
    size = memcmp(client->in, "POST /", 6) == 0 ? strtoul(client->in + 6, NULL, 10) : 0;
    if (client->in_len > need || size > ANSWER_MAX) { /* pipelined, or not our client */
        drop(client);
        return;
    }
    client->in_len = 0;
    answer(client, size);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    struct client *client = handle->data;

    (void)suggested;
    *buffer = uv_buf_init(client->in + client->in_len, (unsigned)(IN_BYTES - client->in_len));
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct client *client;

    if (status < 0)
        return;
    client = calloc(1, sizeof(*client));
    if (!client || uv_tcp_init(listener->loop, &client->tcp))
        bench_die("out of memory");
    client->tcp.data = client;
    if (uv_accept(listener, (uv_stream_t *)&client->tcp) ||
        uv_read_start((uv_stream_t *)&client->tcp, on_alloc, on_read))
        drop(client);
    else
        uv_tcp_nodelay(&client->tcp, 1);
}

int main(int argc, char **argv)
{
    uv_loop_t *loop = uv_default_loop();
    struct sockaddr_in address;
    uv_tcp_t listener;
    int port = argc == 3 && strcmp(argv[1], "--port") == 0 ? (int)strtol(argv[2], NULL, 10) : 0;

    if (port <= 0 || port > 65535)
        bench_die("usage: bench_server_echo --port P");
    memset(filler, 'x', sizeof(filler));
    if (uv_ip4_addr("127.0.0.1", port, &address) || uv_tcp_init(loop, &listener) ||
        uv_tcp_bind(&listener, (struct sockaddr *)&address, 0) ||
        uv_listen((uv_stream_t *)&listener, BACKLOG, on_connection))
        bench_die("cannot listen on port %d", port);
    return uv_run(loop, UV_RUN_DEFAULT);
}
