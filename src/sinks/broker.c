/*
 * sinks/broker.c: what the sinks of brokers share; see the header.
 *
 * Nothing here sends anything. What always holds:
 *
 *  (1) A deadline is checked against two clocks, and the earlier end counts.
 *  (2) Messages show no part of a URL but the host, as there may be a password in the rest.
 */
#include "sinks/broker.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/fnv.h"

/* ---- URLs ----------------------------------------------------------------------------------- */

static enum hf_status wrong_url(struct hf_scope *s, const struct sink_url *url, const char *why)
{
    return hf__fail(s, HF_INVALID, "the URL of a %.*s sink %s", HF_FMT(url->kind), why);
}

static const char *last_of(struct hf_str text, char c)
{
    return text.len ? memrchr(text.ptr, c, text.len) : NULL;
}

static bool read_port(struct hf_str text, unsigned *port)
{
    *port = 0;
    for (size_t i = 0; i < text.len && *port <= 65535; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
        *port = *port * 10 + (unsigned)(text.ptr[i] - '0');
    }
    return text.len > 0 && *port >= 1 && *port <= 65535;
}

static enum hf_status read_user(struct hf_scope *s, const struct sink_url *url, struct hf_str text,
                                struct broker_url *parts)
{
    const char *colon = text.len ? memchr(text.ptr, ':', text.len) : NULL;
    struct hf_str user = text;

    if (colon) {
        user.len = (size_t)(colon - text.ptr);
        TRY(hf__sink_decode(s, url->memory, "the password",
                            hf_str_of(colon + 1, text.len - user.len - 1), &parts->password));
        TRY(hf__broker_c_text(s, "the password", parts->password));
    }
    TRY(hf__sink_decode(s, url->memory, "the user", user, &parts->user));
    return hf__broker_c_text(s, "the user", parts->user);
}

static enum hf_status read_host(struct hf_scope *s, const struct sink_url *url, struct hf_str text,
                                struct broker_url *parts)
{
    const char *colon = last_of(text, ':');
    const char *bracket = last_of(text, ']');
    struct hf_str host = text;

    if (colon && (!bracket || colon > bracket)) {
        host.len = (size_t)(colon - text.ptr);
        if (!read_port(hf_str_of(colon + 1, text.len - host.len - 1), &parts->port))
            return wrong_url(s, url, "has a port that is not a number from 1 to 65535");
    }
    if (host.len > 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host = hf_str_of(host.ptr + 1, host.len - 2);
    if (host.len == 0)
        return wrong_url(s, url, "has no host");
    for (size_t i = 0; i < host.len; i++)
        if (host.ptr[i] <= ' ' || char_in(host.ptr[i], "[]@%,\"\\"))
            return wrong_url(s, url, "has an invalid host");
    assert(parts->port >= 1 && parts->port <= 65535);
    parts->host = hf_scope_copy(url->memory, host);
    return parts->host.ptr ? HF_OK : hf__fail_nomem(s);
}

enum hf_status hf__broker_url(struct hf_scope *s, const struct sink_url *url, unsigned default_port,
                              struct broker_url *parts)
{
    struct hf_str text, host;
    const char *slash, *at;

    assert(default_port >= 1 && default_port <= 65535);
    *parts = (struct broker_url){.port = default_port};
    if (!str_after(url->rest, HF_STR("//"), &text))
        return wrong_url(s, url, "has to continue with //HOST");
    slash = text.len ? memchr(text.ptr, '/', text.len) : NULL;
    host = slash ? hf_str_of(text.ptr, (size_t)(slash - text.ptr)) : text;
    parts->path = slash ? hf_str_of(slash + 1, text.len - host.len - 1) : HF_STR("");
    at = last_of(host, '@');
    if (at) {
        size_t len = (size_t)(at - host.ptr);

        TRY(read_user(s, url, hf_str_of(host.ptr, len), parts));
        host = hf_str_of(at + 1, host.len - len - 1);
    }
    return read_host(s, url, host, parts);
}

enum hf_status hf__broker_c_text(struct hf_scope *s, const char *what, struct hf_str text)
{
    if (text.len && memchr(text.ptr, '\0', text.len))
        return hf__fail(s, HF_INVALID, "%s contains a NUL byte", what);
    return HF_OK;
}

enum hf_status hf__broker_check_tls(struct hf_scope *s, const struct broker_tls *tls)
{
    if (tls->on != HF_YES &&
        (tls->ca_file.ptr || tls->cert_file.ptr || tls->key_file.ptr || tls->verify))
        return hf__fail(s, HF_INVALID, "the sink's URL has options for TLS, but not tls=yes");
    if (!tls->cert_file.ptr != !tls->key_file.ptr)
        return hf__fail(s, HF_INVALID,
                        "the options cert_file and key_file have to be given together");
    TRY(hf__broker_c_text(s, "the option ca_file", tls->ca_file));
    TRY(hf__broker_c_text(s, "the option cert_file", tls->cert_file));
    return hf__broker_c_text(s, "the option key_file", tls->key_file);
}

/* Where distributions keep it: Debian and its kin, Fedora and its kin, Alpine and macOS. */
const char *hf__broker_authorities(void)
{
    static const char *const files[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/cert.pem",
    };

    for (size_t i = 0; i < ARRAY_LEN(files); i++)
        if (access(files[i], R_OK) == 0)
            return files[i];
    return NULL;
}

/* ---- time ----------------------------------------------------------------------------------- */

int64_t hf__broker_now_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

void hf__broker_wait_begin(struct broker_wait *wait, struct hf_scope *s, uint64_t timeout_ms)
{
    assert(timeout_ms > 0 && timeout_ms <= UINT32_MAX);
    *wait = (struct broker_wait){
        .s = s,
        .timeout_ms = (uint32_t)timeout_ms,
        .end_us = hf__broker_now_us() + (int64_t)timeout_ms * 1000,
    };
}

enum hf_status hf__broker_wait_check(struct broker_wait *wait)
{
    TRY(hf__scope_alive(wait->s));
    if (hf__broker_now_us() >= wait->end_us)
        return hf__broker_fail(wait->s, HF_TIMEOUT, "the broker did not answer within %u ms",
                               wait->timeout_ms);
    return HF_OK;
}

int hf__broker_wait_ms(const struct broker_wait *wait, int cap)
{
    int64_t left = (wait->end_us - hf__broker_now_us() + 999) / 1000;

    assert(cap >= 0);
    left = left < 0 ? 0 : left < cap ? left : cap;
    left = hf__scope_left_ms(wait->s, left);
    assert(left >= 0 && left <= cap);
    return (int)left;
}

/* ---- sockets -------------------------------------------------------------------------------- */

enum hf_status hf__broker_poll(struct broker_wait *wait, int fd, short events, short *ready)
{
    struct pollfd poller = {.fd = fd, .events = events};

    assert(fd >= 0);
    *ready = 0;
    TRY(hf__broker_wait_check(wait));
    if (poll(&poller, 1, hf__broker_wait_ms(wait, BROKER_SLICE_MS)) > 0)
        *ready = poller.revents;
    return HF_OK;
}

/* The errno of a connect() that has ended; 0: the socket is connected. */
static int connect_error(int fd)
{
    int error = 0;
    socklen_t len = sizeof(error);

    return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) == 0 ? error : errno;
}

/* Connect to one address; *error is an errno, or 0. */
static enum hf_status connect_to(struct broker_wait *wait, const struct addrinfo *address, int *out,
                                 int *error)
{
    int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                    address->ai_protocol);
    enum hf_status status = HF_OK;
    short ready = 0;
    int one = 1;

    *error = fd < 0 ? errno : 0;
    if (fd < 0)
        return HF_OK;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    if (connect(fd, address->ai_addr, address->ai_addrlen) != 0 && errno != EINPROGRESS)
        *error = errno;
    while (!*error && status == HF_OK && !ready)
        status = hf__broker_poll(wait, fd, POLLOUT, &ready);
    if (!*error && status == HF_OK)
        *error = connect_error(fd);
    if (*error || status != HF_OK)
        (void)close(fd);
    else
        *out = fd;
    return status;
}

enum hf_status hf__broker_connect(struct broker_wait *wait, const char *name,
                                  const struct broker_url *url, int *fd)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found, *at;
    enum hf_status status = HF_OK;
    char port[16];
    int error, why = 0;

    *fd = -1;
    snprintf(port, sizeof(port), "%u", url->port);
    error = getaddrinfo(url->host.ptr, port, &hints, &found);
    if (error)
        return hf__broker_fail(wait->s, HF_IO, "%s at %s:%u: %s", name, url->host.ptr, url->port,
                               gai_strerror(error));
    for (at = found; at && *fd < 0 && status == HF_OK; at = at->ai_next)
        status = connect_to(wait, at, fd, &why);
    freeaddrinfo(found);
    if (status == HF_OK && *fd < 0)
        status = hf__broker_fail(wait->s, HF_IO, "%s at %s:%u: %s", name, url->host.ptr, url->port,
                                 strerror(why));
    assert((status == HF_OK) == (*fd >= 0));
    return status;
}

/* ---- failures ------------------------------------------------------------------------------- */

enum hf_status hf__broker_fail(struct hf_scope *s, enum hf_status status, const char *format, ...)
{
    struct hf__buf text = {.scope = s};
    va_list args;

    assert(status != HF_OK);
    va_start(args, format);
    hf__buf_vformat(&text, format, args);
    va_end(args);
    (void)hf__fail_text(s, status,
                        text.failed ? hf_str_of(NULL, 0)
                                    : hf_str_of((const char *)text.ptr, text.len));
    hf__scope_error_edit(s)->may_retry = true;
    return status;
}

/* ---- order ---------------------------------------------------------------------------------- */

struct waves {
    size_t *before;   /* by delivery: the one before it with its key; SIZE_MAX: none */
    size_t *wave;     /* by delivery: which one it is in, from 0 */
    size_t *slots;    /* by hash of a key: 1 + the last delivery with that key; 0: none */
    size_t slots_len; /* a power of 2, at least twice the number of deliveries */
    size_t count;
};

/* Not stored anywhere, so the function may change. */
static size_t hash_of(struct hf_str key)
{
    return (size_t)fnv_fold(fnv_add(FNV_BEGIN, key.ptr, key.len));
}

static void put_into_wave(struct waves *waves, const struct hf_delivery *deliveries, size_t at)
{
    struct hf_str key = deliveries[at].event->event.key;
    size_t slot = hash_of(key);

    assert((waves->slots_len & (waves->slots_len - 1)) == 0 && at < waves->slots_len / 2);
    waves->before[at] = SIZE_MAX;
    if (key.len == 0)
        return;
    for (;; slot++) {
        size_t *last = &waves->slots[slot & (waves->slots_len - 1)];

        if (*last && !hf_str_equal(key, deliveries[*last - 1].event->event.key))
            continue;
        if (*last) {
            waves->before[at] = *last - 1;
            waves->wave[at] = waves->wave[*last - 1] + 1;
        }
        *last = at + 1;
        break;
    }
    assert(waves->before[at] == SIZE_MAX || waves->before[at] < at);
    if (waves->wave[at] >= waves->count)
        waves->count = waves->wave[at] + 1;
}

/* Deliveries that are sent wave by wave. */
struct sending {
    void *self;
    broker_send_fn *send;
    struct hf_delivery *deliveries;
    size_t len;
    struct hf_delivery *part; /* room for those of one wave */
    size_t *from;             /* and for where each of them came from */
};

static enum hf_status send_wave(struct hf_scope *s, const struct sending *sending,
                                const struct waves *waves, size_t wave)
{
    struct hf_delivery *deliveries = sending->deliveries, *part = sending->part;
    size_t *from = sending->from, part_len = 0;
    enum hf_status status = HF_OK;

    assert(wave < waves->count);
    for (size_t i = 0; i < sending->len; i++) {
        if (waves->wave[i] != wave)
            continue;
        assert((wave > 0) == (waves->before[i] != SIZE_MAX));
        if (waves->before[i] != SIZE_MAX && deliveries[waves->before[i]].status != HF_OK) {
            hf__delivery_block(s, &deliveries[i]);
        } else {
            from[part_len] = i;
            part[part_len++] = deliveries[i];
        }
    }
    if (part_len > 0)
        status = sending->send(s, sending->self, part, part_len);
    for (size_t i = 0; i < part_len; i++)
        deliveries[from[i]] = part[i];
    return status;
}

enum hf_status hf__broker_send_waves(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                     size_t len, broker_send_fn *send)
{
    struct waves waves = {.slots_len = 2, .count = 1};
    struct sending sending = {.self = self, .send = send, .deliveries = deliveries, .len = len};

    while (waves.slots_len < 2 * len)
        waves.slots_len *= 2;
    waves.before = hf__scope_array(s, len, sizeof(*waves.before));
    waves.wave = hf__scope_array(s, len, sizeof(*waves.wave));
    waves.slots = hf__scope_array(s, waves.slots_len, sizeof(*waves.slots));
    if (!waves.before || !waves.wave || !waves.slots)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++)
        put_into_wave(&waves, deliveries, i);
    assert(waves.count <= len);
    if (waves.count == 1)
        return send(s, self, deliveries, len);
    sending.part = hf__scope_array(s, len, sizeof(*sending.part));
    sending.from = hf__scope_array(s, len, sizeof(*sending.from));
    if (!sending.part || !sending.from)
        return hf__fail_nomem(s);
    for (size_t wave = 0; wave < waves.count; wave++)
        TRY(send_wave(s, &sending, &waves, wave));
    return HF_OK;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

void hf__broker_lanes_init(struct broker_lanes *lanes)
{
    lanes->idle = NULL;
    (void)pthread_mutex_init(&lanes->mutex, NULL);
}

void hf__broker_lanes_destroy(struct broker_lanes *lanes)
{
    assert(!lanes->idle);
    (void)pthread_mutex_destroy(&lanes->mutex);
}

struct broker_lane *hf__broker_lane_take(struct broker_lanes *lanes)
{
    struct broker_lane *lane;

    (void)pthread_mutex_lock(&lanes->mutex);
    lane = lanes->idle;
    if (lane) {
        lanes->idle = lane->next;
        lane->next = NULL;
    }
    (void)pthread_mutex_unlock(&lanes->mutex);
    return lane;
}

void hf__broker_lane_keep(struct broker_lanes *lanes, struct broker_lane *lane)
{
    assert(!lane->next);
    lane->kept_us = hf__broker_now_us();
    (void)pthread_mutex_lock(&lanes->mutex);
    assert(lanes->idle != lane);
    lane->next = lanes->idle;
    lanes->idle = lane;
    (void)pthread_mutex_unlock(&lanes->mutex);
}
