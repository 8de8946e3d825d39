/*
 * test/soak/clients.c: hundreds of connections, in one thread.
 *
 * Every client has KEYS keys that nobody else writes, and one request under way at a time, so it
 * knows what each of its items must hold. Items are
 *
 *     pk   S   "c<client>-k<key>"
 *     v    N   counts the writes of that key; after a delete it goes on where it was
 *     w    N   a digest of key and v: another item's content would show
 *     pad  S   up to PAD_MAX letters
 *
 * Requests are puts, deletes, transactions over two keys, and consistent reads, which are compared.
 *
 *  (1) A write counts once its answer is 200. Then the item holds it until the next write counts.
 *  (2) A write without an answer is `open`: when the server is back, it has happened or not; a
 *      transaction with both keys or none. A client has at most one, as it waits afterwards.
 *  (3) A request that was never ended has no effect.
 */
#include "soak.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    KEYS = 16,
    TABLE_EVENTS = 128,
    PAD_MAX = 700,
    ROOM = 4096,  /* for a request or an answer */
    STALL_S = 60, /* nothing at all for so long: the server hangs */
    RECONNECT_ONE_IN = 2000,
    HALF_ONE_IN = 5000,
};

enum kind { NOTHING, READ, WRITE, VERIFY };

struct write {
    size_t len; /* 0: none */
    unsigned keys[2];
    uint64_t values[2]; /* 0: it was deleted */
};

struct client {
    size_t index;
    int fd; /* -1: not connected */
    bool writing;
    enum kind kind; /* what is under way */
    unsigned key;   /* of a read */
    struct write write;
    struct write open;    /* (2) */
    int open_happened;    /* of an open transaction that is verified: -1 until its first key was */
    uint64_t holds[KEYS]; /* (1); 0: no item */
    uint64_t last[KEYS];  /* the highest v that was ever sent */
    unsigned verified;    /* keys that were read in this round */
    double begin;
    char out[ROOM];
    size_t out_len, sent;
    char in[ROOM];
    size_t in_len;
};

struct clients {
    struct client *list;
    size_t len;
    size_t waiting; /* requests under way */
    uint64_t dice;
    int epoll;
    unsigned port;
    bool asking; /* an answer is followed by the next request */
    bool verifying;
    bool dying;
    struct totals totals;
    char pad[PAD_MAX + 1];
};

/* ---- dice and digests ------------------------------------------------------------------------ */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static uint64_t below(struct clients *c, uint64_t limit)
{
    return mix(c->dice += UINT64_C(0x9e3779b97f4a7c15)) % limit;
}

static uint64_t digest(const struct client *client, unsigned key, uint64_t value)
{
    return mix(client->index * KEYS + key + (value << 20)) % 1000000000;
}

double soak_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* ---- requests -------------------------------------------------------------------------------- */

/* The whole request; its length. */
static size_t compose(char *to, size_t room, unsigned port, const char *operation, const char *body)
{
    int len = snprintf(to, room,
                       "POST / HTTP/1.1\r\n"
                       "Host: 127.0.0.1:%u\r\n"
                       "Content-Type: application/x-amz-json-1.0\r\n"
                       "X-Amz-Target: DynamoDB_20120810.%s\r\n"
                       "X-Amz-Date: 20260101T000000Z\r\n"
                       "Authorization: AWS4-HMAC-SHA256 Credential=soak/20260101/us-east-1/"
                       "dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, "
                       "Signature=%064d\r\n"
                       "Content-Length: %zu\r\n\r\n%s",
                       port, operation, 0, strlen(body), body);

    if (len < 0 || (size_t)len >= room)
        FAIL("a request of %d bytes", len);
    return (size_t)len;
}

/* "TableName":"soak","Item":{...} */
static int put_text(struct clients *c, const struct client *client, unsigned key, uint64_t value,
                    char *to, size_t room)
{
    return snprintf(to, room,
                    "\"TableName\":\"soak\",\"Item\":{\"pk\":{\"S\":\"c%zu-k%u\"},"
                    "\"v\":{\"N\":\"%llu\"},\"w\":{\"N\":\"%llu\"},\"pad\":{\"S\":\"%.*s\"}}",
                    client->index, key, (unsigned long long)value,
                    (unsigned long long)digest(client, key, value), (int)below(c, PAD_MAX), c->pad);
}

static int key_text(const struct client *client, unsigned key, char *to, size_t room)
{
    return snprintf(to, room, "\"TableName\":\"soak\",\"Key\":{\"pk\":{\"S\":\"c%zu-k%u\"}}",
                    client->index, key);
}

static void write_key(struct client *client, unsigned key, bool deleting)
{
    struct write *w = &client->write;

    w->keys[w->len] = key;
    w->values[w->len] = deleting ? 0 : ++client->last[key];
    w->len++;
}

static void compose_read(struct clients *c, struct client *client, unsigned key, enum kind kind)
{
    char body[ROOM / 2], which[100];

    client->kind = kind;
    client->key = key;
    key_text(client, key, which, sizeof(which));
    snprintf(body, sizeof(body), "{%s,\"ConsistentRead\":true}", which);
    client->out_len = compose(client->out, ROOM, c->port, "GetItem", body);
}

static void compose_write(struct clients *c, struct client *client)
{
    uint64_t way = below(c, 10);
    unsigned key = (unsigned)below(c, KEYS);
    char body[ROOM * 3 / 4], one[ROOM / 4], two[ROOM / 4];
    const char *operation = "PutItem";

    client->kind = WRITE;
    client->write.len = 0;
    if (way == 0) {
        write_key(client, key, true);
        key_text(client, key, one, sizeof(one));
        snprintf(body, sizeof(body), "{%s}", one);
        operation = "DeleteItem";
    } else if (way <= 2) {
        write_key(client, key, false);
        write_key(client, (key + 1) % KEYS, false);
        put_text(c, client, client->write.keys[0], client->write.values[0], one, sizeof(one));
        put_text(c, client, client->write.keys[1], client->write.values[1], two, sizeof(two));
        snprintf(body, sizeof(body), "{\"TransactItems\":[{\"Put\":{%s}},{\"Put\":{%s}}]}", one,
                 two);
        operation = "TransactWriteItems";
    } else {
        write_key(client, key, false);
        put_text(c, client, key, client->write.values[0], one, sizeof(one));
        snprintf(body, sizeof(body), "{%s}", one);
    }
    client->out_len = compose(client->out, ROOM, c->port, operation, body);
}

/* ---- connections ----------------------------------------------------------------------------- */

static void watch(struct clients *c, struct client *client, int how)
{
    struct epoll_event event = {.events = EPOLLIN | (client->writing ? EPOLLOUT : 0),
                                .data.ptr = client};

    if (epoll_ctl(c->epoll, how, client->fd, &event))
        FAIL("epoll_ctl: %s", strerror(errno));
}

static int open_socket(unsigned port)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int on = 1;

    if (fd < 0)
        FAIL("socket: %s", strerror(errno));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address))) {
        close(fd);
        return -1;
    }
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

static void connect_one(struct clients *c, struct client *client)
{
    client->fd = open_socket(c->port);
    client->writing = false;
    client->in_len = 0;
    if (client->fd >= 0)
        watch(c, client, EPOLL_CTL_ADD);
    else if (!c->dying)
        FAIL("cannot connect to port %u: %s", c->port, strerror(errno));
}

static void disconnect_one(struct client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

static void send_rest(struct clients *c, struct client *client)
{
    bool writing = false;

    while (client->sent < client->out_len) {
        ssize_t n = send(client->fd, client->out + client->sent, client->out_len - client->sent,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            client->sent += (size_t)n;
        } else if (errno == EAGAIN) {
            writing = true;
            break;
        } else if (errno != EINTR) {
            break; /* reading will find the connection closed */
        }
    }
    if (writing != client->writing) {
        client->writing = writing;
        watch(c, client, EPOLL_CTL_MOD);
    }
}

/* (3): half of a write, and the connection is gone. */
static void send_half(struct clients *c, struct client *client)
{
    compose_write(c, client);
    client->write.len = 0;
    client->kind = NOTHING;
    if (send(client->fd, client->out, client->out_len - 1 - below(c, 100),
             MSG_NOSIGNAL | MSG_DONTWAIT) > 0)
        c->totals.halves++;
    disconnect_one(client);
    connect_one(c, client);
}

static void ask(struct clients *c, struct client *client)
{
    if (!c->verifying && !c->dying && below(c, HALF_ONE_IN) == 0) {
        send_half(c, client);
    } else if (!c->verifying && !c->dying && below(c, RECONNECT_ONE_IN) == 0) {
        c->totals.reconnects++;
        disconnect_one(client);
        connect_one(c, client);
    }
    if (client->fd < 0 || !c->asking)
        return;
    if (c->verifying) {
        if (client->verified == KEYS)
            return;
        compose_read(c, client, client->verified, VERIFY);
    } else if (below(c, 3) == 0) {
        compose_read(c, client, (unsigned)below(c, KEYS), READ);
    } else {
        compose_write(c, client);
    }
    client->sent = 0;
    client->in_len = 0;
    client->begin = soak_now();
    c->waiting++;
    send_rest(c, client);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
    int status;
    const char *body;
    size_t body_len;
};

/* Is all of an answer there? The text ends with a NUL. */
static bool parse(char *text, size_t len, struct answer *answer)
{
    static const char start[] = "HTTP/1.1 ";
    const char *end, *length;

    text[len] = '\0';
    end = strstr(text, "\r\n\r\n");
    if (!end)
        return false;
    length = strcasestr(text, "\r\nContent-Length:");
    if (strncmp(text, start, sizeof(start) - 1) != 0 || !length || length > end)
        FAIL("no answer that we understand: %.*s", (int)(end - text), text);
    answer->status = (int)strtol(text + sizeof(start) - 1, NULL, 10);
    answer->body = end + 4;
    answer->body_len = strtoul(length + 17, NULL, 10);
    if ((size_t)(answer->body - text) + answer->body_len >= ROOM)
        FAIL("an answer of %zu bytes", answer->body_len);
    return (size_t)(text + len - answer->body) >= answer->body_len;
}

static uint64_t number_at(const char *body, const char *name)
{
    const char *at = strstr(body, name);

    return at ? strtoull(at + strlen(name), NULL, 10) : 0;
}

/* The v of the item that was read, whose digest must fit; 0: there is no item. */
static uint64_t read_value(const struct client *client, const struct answer *answer)
{
    uint64_t value;

    if (strcmp(answer->body, "{}") == 0)
        return 0;
    value = number_at(answer->body, "\"v\":{\"N\":\"");
    if (value == 0 ||
        number_at(answer->body, "\"w\":{\"N\":\"") != digest(client, client->key, value))
        FAIL("c%zu-k%u holds what nobody wrote: %s", client->index, client->key, answer->body);
    return value;
}

static void take_read(struct clients *c, struct client *client, const struct answer *answer)
{
    uint64_t value = read_value(client, answer);

    if (value != client->holds[client->key])
        FAIL("c%zu-k%u was read as %llu, but %llu was acknowledged", client->index, client->key,
             (unsigned long long)value, (unsigned long long)client->holds[client->key]);
    c->totals.reads++;
}

/* (2) */
static void take_verify(struct clients *c, struct client *client, const struct answer *answer)
{
    unsigned key = client->key;
    uint64_t value = read_value(client, answer), could = client->holds[key];
    bool open = false;

    for (size_t i = 0; i < client->open.len; i++) {
        if (client->open.keys[i] == key) {
            open = true;
            could = client->open.values[i];
        }
    }
    if (value != client->holds[key] && value != could)
        FAIL("c%zu-k%u is %llu after the restart, but %llu was acknowledged%s", client->index, key,
             (unsigned long long)value, (unsigned long long)client->holds[key],
             value < client->holds[key] ? ": a write was lost" : "");
    if (open && could != client->holds[key]) { /* a delete of nothing shows nothing */
        bool happened = value == could;

        if (client->open_happened >= 0 && client->open_happened != happened)
            FAIL("half of a transaction of client %zu happened", client->index);
        if (happened && client->open_happened < 0)
            c->totals.happened++;
        client->open_happened = happened;
    }
    client->holds[key] = value;
    c->totals.verified++;
    if (++client->verified == KEYS)
        client->open.len = 0;
}

static void take(struct clients *c, struct client *client, const struct answer *answer)
{
    double took = soak_now() - client->begin;
    enum kind kind = client->kind;

    client->kind = NOTHING;
    c->waiting--;
    if (took > c->totals.slowest_s)
        c->totals.slowest_s = took;
    if (answer->status != 200) {
        if (!c->dying || answer->status < 500)
            FAIL("status %d: %s", answer->status, answer->body);
        if (kind == WRITE)
            client->open = client->write;
        disconnect_one(client); /* (2): it waits */
        return;
    }
    if (kind == READ)
        take_read(c, client, answer);
    else if (kind == VERIFY)
        take_verify(c, client, answer);
    else if (kind == WRITE) {
        for (size_t i = 0; i < client->write.len; i++)
            client->holds[client->write.keys[i]] = client->write.values[i]; /* (1) */
        c->totals.writes++;
    }
}

static void lost_one(struct clients *c, struct client *client)
{
    disconnect_one(client);
    if (client->kind == NOTHING)
        return;
    c->waiting--;
    if (client->kind == WRITE) {
        client->open = client->write;
        c->totals.open++;
    }
    client->kind = NOTHING;
}

static void readable(struct clients *c, struct client *client)
{
    struct answer answer;
    ssize_t n =
        recv(client->fd, client->in + client->in_len, ROOM - 1 - client->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        if (!c->dying)
            FAIL("the server closed the connection of client %zu", client->index);
        lost_one(c, client);
        return;
    }
    client->in_len += (size_t)n;
    if (client->kind == NOTHING)
        FAIL("bytes that nobody asked for: %.*s", (int)n, client->in);
    if (parse(client->in, client->in_len, &answer)) {
        take(c, client, &answer);
        if (client->fd >= 0)
            ask(c, client);
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

struct clients *clients_new(size_t len, uint64_t seed)
{
    struct clients *c = calloc(1, sizeof(*c));

    if (!c || !(c->list = calloc(len, sizeof(*c->list))))
        FAIL("out of memory");
    c->len = len;
    c->dice = seed;
    c->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (c->epoll < 0)
        FAIL("epoll_create1: %s", strerror(errno));
    for (size_t i = 0; i < len; i++) {
        c->list[i].index = i;
        c->list[i].fd = -1;
    }
    for (size_t i = 0; i < PAD_MAX; i++)
        c->pad[i] = (char)('a' + below(c, 26));
    return c;
}

void clients_free(struct clients *c)
{
    clients_disconnect(c);
    close(c->epoll);
    free(c->list);
    free(c);
}

void clients_connect(struct clients *c, unsigned port)
{
    c->port = port;
    c->dying = false;
    for (size_t i = 0; i < c->len; i++)
        connect_one(c, &c->list[i]);
}

void clients_disconnect(struct clients *c)
{
    for (size_t i = 0; i < c->len; i++)
        disconnect_one(&c->list[i]);
}

void clients_lost(struct clients *c)
{
    for (size_t i = 0; i < c->len; i++)
        lost_one(c, &c->list[i]);
    if (c->waiting != 0)
        FAIL("%zu requests are nobody's", c->waiting);
}

/* Handle what comes until the time, or until nothing is under way. */
static void pump(struct clients *c, double until)
{
    struct epoll_event events[TABLE_EVENTS];
    double heard = soak_now(), now = heard;

    while (now < until && c->waiting > 0) {
        double rest = until - now < 1 ? until - now : 1;
        int count = epoll_wait(c->epoll, events, TABLE_EVENTS, (int)(rest * 1000) + 1);

        now = soak_now();
        if (count > 0)
            heard = now;
        else if (now - heard > STALL_S)
            FAIL("no answer for %d s", STALL_S);
        for (int i = 0; i < count; i++) {
            struct client *client = events[i].data.ptr;

            if (client->fd >= 0 && (events[i].events & EPOLLOUT))
                send_rest(c, client);
            if (client->fd >= 0 && (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
                readable(c, client);
        }
    }
}

static void ask_all(struct clients *c)
{
    for (size_t i = 0; i < c->len; i++) {
        if (c->list[i].fd >= 0 && c->list[i].kind == NOTHING)
            ask(c, &c->list[i]);
    }
}

void clients_run(struct clients *c, double seconds, bool dying)
{
    c->asking = true;
    c->dying = dying;
    ask_all(c);
    pump(c, soak_now() + seconds);
}

void clients_settle(struct clients *c)
{
    c->asking = false;
    pump(c, soak_now() + 2 * STALL_S);
    if (c->waiting)
        FAIL("%zu requests have no answer", c->waiting);
}

void clients_verify(struct clients *c)
{
    for (size_t i = 0; i < c->len; i++) {
        c->list[i].verified = 0;
        c->list[i].open_happened = -1;
    }
    c->verifying = true;
    c->asking = true;
    ask_all(c);
    pump(c, soak_now() + 10 * STALL_S);
    c->verifying = false;
    for (size_t i = 0; i < c->len; i++) {
        if (c->list[i].verified != KEYS)
            FAIL("client %zu was not verified", i);
    }
}

uint64_t clients_items(const struct clients *c)
{
    uint64_t items = 0;

    for (size_t i = 0; i < c->len; i++) {
        for (size_t key = 0; key < KEYS; key++)
            items += c->list[i].holds[key] != 0;
    }
    return items;
}

const struct totals *clients_totals(const struct clients *c)
{
    return &c->totals;
}

int clients_call(unsigned port, const char *operation, const char *request, char *body, size_t room)
{
    char text[ROOM];
    struct answer answer;
    size_t len = compose(text, sizeof(text), port, operation, request);
    int fd = open_socket(port);

    if (fd < 0 || send(fd, text, len, MSG_NOSIGNAL) != (ssize_t)len)
        FAIL("%s: %s", operation, strerror(errno));
    len = 0;
    do {
        ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, 0);

        if (n <= 0)
            FAIL("%s: the connection was closed", operation);
        len += (size_t)n;
    } while (!parse(text, len, &answer));
    close(fd);
    snprintf(body, room, "%.*s", (int)answer.body_len, answer.body);
    return answer.status;
}
