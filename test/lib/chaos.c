/*
 * test/lib/chaos.c: the proxy.
 *
 * A thread listens, and each connection has one that takes a request, asks the server on a
 * connection of its own, and hands the answer on: nobody pipelines, so one after the other will do.
 *
 *  (1) A request is counted with its first byte, and its fault is chosen then.
 *  (2) What has been taken goes to the server even when the client has gone: a network does not
 *      call back what it carries. chaos_quiet() waits for that.
 *  (3) The mutex guards everything that two threads use; descriptors are closed under it, so that
 *      chaos_close() shuts down none that is somebody else's by now.
 */
#include "chaos.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libdeflate.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "http/http.h"
#include "requests.h"

enum { LATE_MS = 150, DELAY_MS = 5, PIECES = 12, BOMB_MEMBERS = 300, BOMB_MEMBER = 1024 * 1024 };

struct conn {
    struct chaos *chaos;
    struct conn *next;
    int client;
    int server; /* -1: not connected */
    enum chaos_fault fault;
    uint64_t dice;
    struct hf__buf in;  /* what the client sent and was not used yet */
    struct hf__buf out; /* the answer */
    size_t head_len;    /* of the answer */
};

struct chaos {
    int listener;
    uint16_t port;
    uint16_t target;
    pthread_t thread;
    struct hf_env env;
    uint8_t *bomb;
    size_t bomb_len;
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    struct chaos_script script;
    struct chaos_count count;
    uint64_t random;
    unsigned directions; /* that are held back */
    bool stopping;
    struct conn *conns;
};

static const struct {
    const char *name;
    enum chaos_outlook outlook;
    enum chaos_effect effect;
} faults[] = {
#define X(name, outlook, effect) {#name, CHAOS_##outlook, CHAOS_##effect},
    CHAOS_FAULT_MAP(X)
#undef X
};

const char *chaos_name(enum chaos_fault fault)
{
    return faults[fault].name;
}

enum chaos_outlook chaos_outlook(enum chaos_fault fault)
{
    return faults[fault].outlook;
}

enum chaos_effect chaos_effect(enum chaos_fault fault)
{
    return faults[fault].effect;
}

int64_t chaos_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* What a hypervisor gave to others, on all processors. The kernel counts that as time in which we ran. */
static int64_t stolen_ms(void)
{
    FILE *file = fopen("/proc/stat", "re");
    unsigned long long stolen = 0;

    if (file && fscanf(file, "cpu %*u %*u %*u %*u %*u %*u %*u %llu", &stolen) != 1)
        stolen = 0;
    if (file)
        fclose(file);
    return (int64_t)stolen * 1000 / sysconf(_SC_CLK_TCK);
}

int64_t chaos_late_ms(void)
{
    FILE *file = fopen("/proc/thread-self/schedstat", "re");
    unsigned long long ran_ns, late_ns = 0;

    if (file && fscanf(file, "%llu %llu", &ran_ns, &late_ns) != 2)
        late_ns = 0;
    if (file)
        fclose(file);
    return (int64_t)(late_ns / 1000000) + stolen_ms();
}

/* ---- waiting -------------------------------------------------------------------------------- */

static struct timespec in_ms(int64_t ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void pause_ms(struct chaos *chaos, int64_t ms)
{
    struct timespec until = in_ms(ms);

    pthread_mutex_lock(&chaos->mutex);
    while (!chaos->stopping &&
           pthread_cond_timedwait(&chaos->changed, &chaos->mutex, &until) != ETIMEDOUT)
        continue;
    pthread_mutex_unlock(&chaos->mutex);
}

/* Wait while that direction is held back. False: the proxy ends. */
static bool pass(struct chaos *chaos, unsigned direction)
{
    bool on;

    pthread_mutex_lock(&chaos->mutex);
    while (!chaos->stopping && (chaos->directions & direction))
        pthread_cond_wait(&chaos->changed, &chaos->mutex);
    on = !chaos->stopping;
    pthread_mutex_unlock(&chaos->mutex);
    return on;
}

/* ---- sockets -------------------------------------------------------------------------------- */

static void close_fd(struct chaos *chaos, int *fd, bool reset)
{
    struct linger now = {.l_onoff = 1, .l_linger = 0};

    pthread_mutex_lock(&chaos->mutex);
    if (*fd >= 0) {
        if (reset)
            setsockopt(*fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
        close(*fd);
    }
    *fd = -1;
    pthread_mutex_unlock(&chaos->mutex);
}

static bool send_all(int fd, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;

    while (len > 0) {
        ssize_t sent = send(fd, p, len, MSG_NOSIGNAL);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0)
            return false;
        p += sent;
        len -= (size_t)sent;
    }
    return true;
}

/* At most `max` more bytes; false at the end. */
static bool receive(int fd, struct hf__buf *buf, size_t max)
{
    ssize_t got;

    MUST(hf__buf_reserve(buf, max));
    do
        got = recv(fd, buf->ptr + buf->len, max, 0);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        return false;
    buf->len += (size_t)got;
    return true;
}

static bool connect_server(struct conn *c)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(c->chaos->target)};
    int on = 1, fd;

    if (c->server >= 0)
        return true;
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    MUST(fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) != 0) {
        close(fd);
        return false;
    }
    pthread_mutex_lock(&c->chaos->mutex);
    c->server = fd;
    if (c->chaos->stopping)
        shutdown(fd, SHUT_RDWR);
    pthread_mutex_unlock(&c->chaos->mutex);
    return true;
}

/* ---- requests ------------------------------------------------------------------------------- */

static uint64_t roll(struct chaos *chaos)
{
    chaos->random = chaos->random * 6364136223846793005u + 1442695040888963407u;
    return chaos->random >> 33;
}

/* (1) */
static void choose_fault(struct conn *c)
{
    struct chaos *chaos = c->chaos;
    const struct chaos_script *script = &chaos->script;
    size_t nth;

    pthread_mutex_lock(&chaos->mutex);
    nth = chaos->count.requests++;
    c->dice = roll(chaos);
    c->fault = CHAOS_NONE;
    if (script->odds)
        c->fault =
            roll(chaos) % script->odds ? CHAOS_NONE : script->faults[roll(chaos) % script->len];
    else if (nth < script->len)
        c->fault = script->faults[nth];
    else if (script->for_ever)
        c->fault = script->faults[script->len - 1];
    pthread_mutex_unlock(&chaos->mutex);
}

/* The rest of a request, all of it. */
static bool take_request(struct conn *c, size_t *len)
{
    struct http_reader reader;

    hf__http_begin(&reader, NULL);
    for (;;) {
        switch (hf__http_read(&reader, c->in.ptr, c->in.len)) {
        case HTTP_DONE:
            MUST(!reader.head.chunked); /* it would not be as it was */
            *len = reader.used;
            return true;
        case HTTP_HEAD:
            continue;
        case HTTP_MORE:
            if (!receive(c->client, &c->in, 65536))
                return false;
            continue;
        case HTTP_BAD:
            fprintf(stderr, "chaos: no request: %s\n", reader.error.text);
            abort();
        }
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The value of a field of the answer's head, as a number; -1: there is none. */
static long long number_field(const struct conn *c, const char *name, size_t *at, size_t *len)
{
    const char *head = (const char *)c->out.ptr;
    const char *field = memmem(head, c->head_len, name, strlen(name));
    size_t digits = 0;

    if (!field)
        return -1;
    field += strlen(name);
    while (field[digits] >= '0' && field[digits] <= '9')
        digits++;
    *at = (size_t)(field - head);
    *len = digits;
    return strtoll(field, NULL, 10);
}

#define LENGTH_FIELD "\r\nContent-Length: "
#define CRC_FIELD "\r\nx-amz-crc32: "

/* One whole answer of the server's. */
static bool take_answer(struct conn *c)
{
    size_t at, len;
    long long body;

    c->out.len = c->head_len = 0;
    while (!c->head_len) {
        const uint8_t *end;

        if (!receive(c->server, &c->out, 65536))
            return false;
        end = memmem(c->out.ptr, c->out.len, "\r\n\r\n", 4);
        if (end)
            c->head_len = (size_t)(end - c->out.ptr) + 4;
    }
    body = number_field(c, LENGTH_FIELD, &at, &len);
    MUST(body >= 0);
    while (c->out.len < c->head_len + (size_t)body)
        if (!receive(c->server, &c->out, 65536))
            return false;
    MUST(c->out.len == c->head_len + (size_t)body);
    return true;
}

static struct hf_bytes body_of(const struct conn *c)
{
    return hf_bytes_of(c->out.ptr + c->head_len, c->out.len - c->head_len);
}

/* Replace `old_len` bytes of the answer's head. */
static void splice(struct conn *c, size_t at, size_t old_len, const char *text)
{
    size_t len = strlen(text);

    MUST(hf__buf_reserve(&c->out, len));
    memmove(c->out.ptr + at + len, c->out.ptr + at + old_len, c->out.len - at - old_len);
    memcpy(c->out.ptr + at, text, len);
    c->out.len = c->out.len + len - old_len;
    c->head_len = c->head_len + len - old_len;
}

static void set_number(struct conn *c, const char *name, long long number)
{
    char text[32];
    size_t at, len;

    MUST(number_field(c, name, &at, &len) >= 0);
    snprintf(text, sizeof(text), "%lld", number);
    splice(c, at, len, text);
}

/* Take a field of the answer away; false when it has none of the name. */
static bool drop_field(struct conn *c, const char *name)
{
    const uint8_t *field = memmem(c->out.ptr, c->head_len, name, strlen(name)), *end;

    if (!field)
        return false;
    end = memmem(field + 2, c->head_len - (size_t)(field + 2 - c->out.ptr), "\r\n", 2);
    splice(c, (size_t)(field - c->out.ptr), (size_t)(end - field), "");
    return true;
}

static void add_field(struct conn *c, const char *field)
{
    splice(c, c->head_len - 2, 0, field);
}

/* An answer of our own making. */
static void make_answer(struct conn *c, const char *status, const char *fields, const void *body,
                        size_t len, bool crc)
{
    c->out.len = 0;
    hf__buf_format(&c->out, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n", status, fields, len);
    if (crc)
        hf__buf_format(&c->out, "x-amz-crc32: %u\r\n", libdeflate_crc32(0, body, len));
    hf__buf_put(&c->out, "\r\n", 2);
    c->head_len = c->out.len;
    hf__buf_put(&c->out, body, len);
    MUST(!c->out.failed);
}

#define JSON_TYPE "Content-Type: application/x-amz-json-1.0\r\n"
#define HTML_TYPE "Content-Type: text/html\r\n"

static void make_error(struct conn *c, const char *status, const char *type, const char *fields)
{
    char body[256], all[256];

    snprintf(body, sizeof(body),
             "{\"__type\":\"com.amazonaws.dynamodb.v20120810#%s\","
             "\"message\":\"as the script says\"}",
             type);
    snprintf(all, sizeof(all), JSON_TYPE "%s", fields);
    make_answer(c, status, all, body, strlen(body), true);
}

static void make_page(struct conn *c, const char *status, const char *fields)
{
    static const char page[] = "<html><body>Something on the way says this.</body></html>";
    char all[256];

    snprintf(all, sizeof(all), HTML_TYPE "%s", fields);
    make_answer(c, status, all, page, sizeof(page) - 1, false);
}

/* The body in chunks of three sizes, and the last one only when it is whole. */
static void make_chunked(struct conn *c, bool whole)
{
    struct hf__buf body = {.env = &c->chaos->env};
    size_t at = 0, step = body_of(c).len / 3 + 1;

    while (at < body_of(c).len) {
        size_t len = body_of(c).len - at < step ? body_of(c).len - at : step;

        hf__buf_format(&body, "%zx\r\n", len);
        hf__buf_put(&body, body_of(c).ptr + at, len);
        hf__buf_put(&body, "\r\n", 2);
        at += len;
    }
    if (whole)
        hf__buf_format(&body, "0\r\n\r\n");
    drop_field(c, LENGTH_FIELD);
    add_field(c, "Transfer-Encoding: chunked\r\n");
    c->out.len = c->head_len;
    hf__buf_put(&c->out, body.ptr, body.len);
    MUST(!c->out.failed && !body.failed);
    hf__buf_free(&body);
}

/* A body in gzip that is cut short, with length and sum of what is left. */
static void make_cut_gzip(struct conn *c)
{
    static const char encoding[] = "Content-Encoding: gzip\r\n";
    struct libdeflate_compressor *packer = libdeflate_alloc_compressor(6);
    char fields[256];
    uint8_t packed[512];
    size_t len;

    MUST(packer != NULL);
    len = libdeflate_gzip_compress(packer, "{\"ConsumedCapacity\":{}}", 23, packed, sizeof(packed));
    libdeflate_free_compressor(packer);
    MUST(len > 12);
    snprintf(fields, sizeof(fields), JSON_TYPE "%s", encoding);
    make_answer(c, "200 OK", fields, packed, len - 9, true);
}

/* ---- damage to an answer -------------------------------------------------------------------- */

enum ending { GO_ON, FIN, RST, HOLE };

static enum ending send_part(struct conn *c, size_t len, enum ending ending)
{
    send_all(c->client, c->out.ptr, len);
    return ending;
}

static enum ending send_pieces(struct conn *c)
{
    size_t step = c->out.len / PIECES + 1;

    for (size_t at = 0; at < c->out.len; at += step) {
        size_t len = c->out.len - at < step ? c->out.len - at : step;

        if (!send_all(c->client, c->out.ptr + at, len))
            return FIN;
        pause_ms(c->chaos, 1);
    }
    return GO_ON;
}

static enum ending send_endless_head(struct conn *c)
{
    static const char field[] = "X-More: and more and more and more and more and more\r\n";

    if (!send_all(c->client, "HTTP/1.1 200 OK\r\n", 17))
        return FIN;
    for (int i = 0; i < 40000; i++) /* two megabytes */
        if (!send_all(c->client, field, sizeof(field) - 1))
            return FIN;
    return FIN;
}

/* Change the answer, as a whole. */
static void damage(struct conn *c)
{
    struct hf_bytes body = body_of(c);
    size_t at, len;

    switch (c->fault) {
    case CHAOS_FLIP_BODY:
        if (body.len)
            c->out.ptr[c->head_len + c->dice / 8 % body.len] ^= (uint8_t)(1 << c->dice % 8);
        break;
    case CHAOS_FLIP_HEAD:
        c->out.ptr[c->dice / 8 % c->head_len] ^= (uint8_t)(1 << c->dice % 8);
        break;
    case CHAOS_WRONG_STATUS:
        memcpy(c->out.ptr + 9, c->out.ptr[9] == '2' ? "400" : "500", 3);
        break;
    case CHAOS_WRONG_LENGTH:
        set_number(c, LENGTH_FIELD, (long long)body.len + 3);
        break;
    case CHAOS_SHORT_LENGTH:
        set_number(c, LENGTH_FIELD, body.len > 3 ? (long long)body.len - 3 : 0);
        break;
    case CHAOS_TWO_LENGTHS:
        add_field(c, "Content-Length: 2\r\n");
        break;
    case CHAOS_WRONG_CRC:
        set_number(c, CRC_FIELD, number_field(c, CRC_FIELD, &at, &len) ^ 1);
        break;
    case CHAOS_BAD_LINE:
        memcpy(c->out.ptr, "SMTP/1.1", 8);
        break;
    case CHAOS_GZIP_BOMB:
        make_answer(c, "200 OK", JSON_TYPE "Content-Encoding: gzip\r\n", c->chaos->bomb,
                    c->chaos->bomb_len, true);
        break;
    case CHAOS_GZIP_CUT:
        make_cut_gzip(c);
        break;
    case CHAOS_CHUNKED:
        make_chunked(c, true);
        break;
    case CHAOS_CHUNKED_CUT:
        make_chunked(c, false);
        break;
    case CHAOS_UNFRAMED:
    case CHAOS_UNFRAMED_CUT:
        drop_field(c, LENGTH_FIELD);
        break;
    case CHAOS_LIE_500:
        make_error(c, "500 Oh", "InternalServerError", "");
        break;
    case CHAOS_LIE_502:
        make_page(c, "502 Bad Gateway", "");
        break;
    case CHAOS_LIE_503:
        make_error(c, "503 Oh", "ServiceUnavailable", "");
        break;
    case CHAOS_LIE_504:
        make_page(c, "504 Gateway Timeout", "");
        break;
    case CHAOS_CONTINUE:
        splice(c, 0, 0, "HTTP/1.1 100 Continue\r\n\r\n");
        break;
    default:
        break;
    }
}

static const char unasked[] = "HTTP/1.1 200 OK\r\nContent-Type: application/x-amz-json-1.0\r\n"
                              "Content-Length: 2\r\nx-amz-crc32: 2745614147\r\n\r\n{}";

static void will_speak(struct chaos *chaos, unsigned by)
{
    pthread_mutex_lock(&chaos->mutex);
    chaos->count.unspoken += by;
    pthread_mutex_unlock(&chaos->mutex);
}

static enum ending speak_behind(struct conn *c)
{
    enum ending ending;

    will_speak(c->chaos, 1);
    send_all(c->client, c->out.ptr, c->out.len);
    pause_ms(c->chaos, 2);
    ending = send_all(c->client, unasked, sizeof(unasked) - 1) ? GO_ON : FIN;
    will_speak(c->chaos, -1u);
    return ending;
}

/* Hand the answer on, as far as the fault lets it. */
static enum ending give_answer(struct conn *c)
{
    size_t body = body_of(c).len, half = c->head_len + (body ? body / 2 : 0);

    if (!body)
        half = c->head_len - 3; /* an answer without a body cannot be cut in it */
    switch (c->fault) {
    case CHAOS_CUT_ANSWER:
        return FIN;
    case CHAOS_RESET_ANSWER:
        return RST;
    case CHAOS_HALF_CLOSE:
        return FIN;
    case CHAOS_HOLE_ANSWER:
        return HOLE;
    case CHAOS_CUT_HEAD:
        return send_part(c, c->head_len / 2, FIN);
    case CHAOS_RESET_HEAD:
        return send_part(c, c->head_len / 2, RST);
    case CHAOS_CUT_BODY:
        return send_part(c, half, FIN);
    case CHAOS_RESET_BODY:
        return send_part(c, half, RST);
    case CHAOS_HOLE_BODY:
        return send_part(c, half, HOLE);
    case CHAOS_UNFRAMED_CUT:
        return send_part(c, half, FIN);
    case CHAOS_UNFRAMED:
        return send_part(c, c->out.len, FIN);
    case CHAOS_CHUNKED_CUT:
        return send_part(c, c->out.len, FIN);
    case CHAOS_RESET_BEHIND:
        return send_part(c, c->out.len, RST);
    case CHAOS_TRICKLE:
        return send_pieces(c);
    case CHAOS_ENDLESS_HEAD:
        return send_endless_head(c);
    case CHAOS_CLOSE_BEHIND:
        send_part(c, c->out.len, FIN);
        pause_ms(c->chaos, 2);
        return FIN;
    case CHAOS_SPEAK_WITH:
        hf__buf_put(&c->out, unasked, sizeof(unasked) - 1);
        return send_part(c, c->out.len, GO_ON);
    case CHAOS_SPEAK_BEHIND:
        return speak_behind(c);
    default:
        return send_all(c->client, c->out.ptr, c->out.len) ? GO_ON : FIN;
    }
}

/* ---- one request ---------------------------------------------------------------------------- */

/* Answer without asking the server. False when the fault is none of these. */
static bool answer_alone(struct conn *c)
{
    static const char throttled[] = "ThrottlingException";

    switch (c->fault) {
    case CHAOS_SAY_500:
        make_error(c, "500 Oh", "InternalServerError", "");
        break;
    case CHAOS_SAY_503:
        make_error(c, "503 Oh", "ServiceUnavailable", "");
        break;
    case CHAOS_SAY_502:
        make_page(c, "502 Bad Gateway", "");
        break;
    case CHAOS_SAY_429:
        make_error(c, "429 Slower", throttled, "");
        break;
    case CHAOS_SAY_THROTTLED:
        make_error(c, "400 Slower", throttled, "");
        break;
    case CHAOS_SAY_THROTTLED_WAIT:
        make_error(c, "400 Slower", throttled, "x-amz-retry-after: 30\r\n");
        break;
    case CHAOS_SAY_REDIRECT:
        make_page(c, "307 Elsewhere", "Location: http://127.0.0.1:1/\r\n");
        break;
    case CHAOS_SAY_LOGIN:
        make_page(c, "200 OK", "");
        break;
    default:
        return false;
    }
    return true;
}

/* Ask the server, with all `len` bytes or with less. False: it gave no answer. */
static bool ask(struct conn *c, size_t len, bool whole)
{
    struct chaos *chaos = c->chaos;
    bool done;

    if (!pass(chaos, CHAOS_THERE))
        return false;
    if (!connect_server(c) || !send_all(c->server, c->in.ptr, len) || !whole)
        return false;
    pthread_mutex_lock(&chaos->mutex);
    chaos->count.whole++;
    pthread_mutex_unlock(&chaos->mutex);
    if (!take_answer(c))
        return false;
    done = memcmp(c->out.ptr + 9, "200", 3) == 0;
    pthread_mutex_lock(&chaos->mutex);
    chaos->count.done += done;
    pthread_mutex_unlock(&chaos->mutex);
    return pass(chaos, CHAOS_BACK);
}

static void lateness(struct conn *c, enum chaos_fault fault)
{
    uint32_t ms;

    pthread_mutex_lock(&c->chaos->mutex);
    ms = c->chaos->script.ms ? c->chaos->script.ms : LATE_MS;
    pthread_mutex_unlock(&c->chaos->mutex);
    if (c->fault == fault)
        pause_ms(c->chaos, ms);
    if (c->fault == CHAOS_DELAY)
        pause_ms(c->chaos, DELAY_MS);
}

static enum ending one_request(struct conn *c)
{
    enum ending ending;
    size_t len;

    while (c->in.len == 0)
        if (!receive(c->client, &c->in, 1))
            return FIN;
    choose_fault(c);
    if (c->fault == CHAOS_CUT_AT_ONCE || c->fault == CHAOS_RESET_AT_ONCE)
        return c->fault == CHAOS_CUT_AT_ONCE ? FIN : RST;
    if (!take_request(c, &len))
        return FIN;
    lateness(c, CHAOS_LATE_REQUEST);
    switch (c->fault) {
    case CHAOS_CUT_IN_REQUEST:
        ask(c, len / 2, false);
        return FIN;
    case CHAOS_RESET_IN_REQUEST:
        ask(c, len / 2, false);
        return RST;
    case CHAOS_CUT_REQUEST:
        return FIN;
    case CHAOS_RESET_REQUEST:
        return RST;
    case CHAOS_HOLE_REQUEST:
        return HOLE;
    case CHAOS_HALF_CLOSE:
        shutdown(c->client, SHUT_WR);
        break;
    default:
        break;
    }
    if (answer_alone(c)) {
        ending = give_answer(c);
    } else {
        if (!ask(c, len, true))
            return FIN;
        lateness(c, CHAOS_LATE_ANSWER);
        damage(c);
        ending = give_answer(c);
    }
    memmove(c->in.ptr, c->in.ptr + len, c->in.len - len);
    c->in.len -= len;
    return ending;
}

/* ---- connections ---------------------------------------------------------------------------- */

static void *serve_conn(void *user)
{
    struct conn *c = user, **at;
    struct chaos *chaos = c->chaos;
    enum ending ending;

    do
        ending = one_request(c);
    while (ending == GO_ON);
    if (ending == HOLE) /* until the client has enough of it */
        while (receive(c->client, &c->in, 4096))
            c->in.len = 0;
    close_fd(chaos, &c->client, ending == RST);
    close_fd(chaos, &c->server, false);
    hf__buf_free(&c->in);
    hf__buf_free(&c->out);
    pthread_mutex_lock(&chaos->mutex);
    for (at = &chaos->conns; *at != c; at = &(*at)->next)
        continue;
    *at = c->next;
    pthread_cond_broadcast(&chaos->changed);
    pthread_mutex_unlock(&chaos->mutex);
    free(c);
    return NULL;
}

static void take_conn(struct chaos *chaos, int fd)
{
    struct conn *c = calloc(1, sizeof(*c));
    pthread_attr_t detached;
    pthread_t thread;
    int on = 1;

    MUST(c != NULL);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    *c = (struct conn){.chaos = chaos,
                       .client = fd,
                       .server = -1,
                       .in = {.env = &chaos->env},
                       .out = {.env = &chaos->env}};
    pthread_attr_init(&detached);
    pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
    pthread_mutex_lock(&chaos->mutex);
    chaos->count.connections++;
    c->next = chaos->conns;
    chaos->conns = c;
    if (chaos->stopping)
        shutdown(fd, SHUT_RDWR);
    MUST(pthread_create(&thread, &detached, serve_conn, c) == 0);
    pthread_mutex_unlock(&chaos->mutex);
    pthread_attr_destroy(&detached);
}

static void *serve(void *user)
{
    struct chaos *chaos = user;

    for (;;) {
        int fd = accept4(chaos->listener, NULL, NULL, SOCK_CLOEXEC);
        bool stopping;

        pthread_mutex_lock(&chaos->mutex);
        stopping = chaos->stopping;
        pthread_mutex_unlock(&chaos->mutex);
        if (fd >= 0)
            take_conn(chaos, fd);
        else if (stopping)
            return NULL;
        else
            MUST(errno == EINTR || errno == ECONNABORTED);
    }
}

/* ---- the proxy ------------------------------------------------------------------------------ */

/* Many members of zeros, one behind the other, which is one gzip file. */
static void make_bomb(struct chaos *chaos)
{
    struct libdeflate_compressor *packer = libdeflate_alloc_compressor(6);
    uint8_t *zeros = calloc(1, BOMB_MEMBER);
    uint8_t member[8192];
    size_t len;

    MUST(packer && zeros);
    len = libdeflate_gzip_compress(packer, zeros, BOMB_MEMBER, member, sizeof(member));
    MUST(len > 0);
    chaos->bomb_len = len * BOMB_MEMBERS;
    chaos->bomb = malloc(chaos->bomb_len);
    MUST(chaos->bomb != NULL);
    for (size_t i = 0; i < BOMB_MEMBERS; i++)
        memcpy(chaos->bomb + i * len, member, len);
    libdeflate_free_compressor(packer);
    free(zeros);
}

struct chaos *chaos_open(uint16_t target)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    struct chaos *chaos = calloc(1, sizeof(*chaos));
    pthread_condattr_t monotonic;
    socklen_t len = sizeof(at);

    MUST(chaos != NULL);
    chaos->target = target;
    chaos->env = hf__env_fill(NULL);
    make_bomb(chaos);
    pthread_mutex_init(&chaos->mutex, NULL);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&chaos->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    chaos->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    MUST(bind(chaos->listener, (struct sockaddr *)&at, sizeof(at)) == 0);
    MUST(listen(chaos->listener, 256) == 0);
    MUST(getsockname(chaos->listener, (struct sockaddr *)&at, &len) == 0);
    chaos->port = ntohs(at.sin_port);
    MUST(pthread_create(&chaos->thread, NULL, serve, chaos) == 0);
    return chaos;
}

uint16_t chaos_port(const struct chaos *chaos)
{
    return chaos->port;
}

void chaos_play(struct chaos *chaos, const struct chaos_script *script)
{
    MUST(script->len <= CHAOS_SCRIPT_MAX && (script->len || !(script->for_ever || script->odds)));
    pthread_mutex_lock(&chaos->mutex);
    chaos->script = *script;
    chaos->random = script->seed;
    chaos->count = (struct chaos_count){.unspoken = chaos->count.unspoken};
    pthread_mutex_unlock(&chaos->mutex);
}

struct chaos_count chaos_counts(struct chaos *chaos)
{
    struct chaos_count count;

    pthread_mutex_lock(&chaos->mutex);
    count = chaos->count;
    pthread_mutex_unlock(&chaos->mutex);
    return count;
}

void chaos_partition(struct chaos *chaos, unsigned directions)
{
    pthread_mutex_lock(&chaos->mutex);
    chaos->directions = directions;
    pthread_cond_broadcast(&chaos->changed);
    pthread_mutex_unlock(&chaos->mutex);
}

bool chaos_quiet(struct chaos *chaos, int64_t ms)
{
    struct timespec until = in_ms(ms);
    bool quiet;

    pthread_mutex_lock(&chaos->mutex);
    while (chaos->conns &&
           pthread_cond_timedwait(&chaos->changed, &chaos->mutex, &until) != ETIMEDOUT)
        continue;
    quiet = !chaos->conns;
    pthread_mutex_unlock(&chaos->mutex);
    return quiet;
}

void chaos_close(struct chaos *chaos)
{
    if (!chaos)
        return;
    pthread_mutex_lock(&chaos->mutex);
    chaos->stopping = true;
    shutdown(chaos->listener, SHUT_RDWR);
    for (struct conn *c = chaos->conns; c; c = c->next) {
        if (c->client >= 0)
            shutdown(c->client, SHUT_RDWR);
        if (c->server >= 0)
            shutdown(c->server, SHUT_RDWR);
    }
    pthread_cond_broadcast(&chaos->changed);
    pthread_mutex_unlock(&chaos->mutex);
    pthread_join(chaos->thread, NULL);
    MUST(chaos_quiet(chaos, 10000));
    close(chaos->listener);
    pthread_cond_destroy(&chaos->changed);
    pthread_mutex_destroy(&chaos->mutex);
    free(chaos->bomb);
    free(chaos);
}
