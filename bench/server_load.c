/*
 * bench/server_load.c: one thread that keeps a server busy and measures it.
 *
 *     bench_server_load --port P --op NAME [--pid PID] [--connections N] [--seconds S] [--items N]
 *                       [--fill] [--echo]
 *
 * There are N connections with one request under way on each, so the load follows the server: a
 * slow one is asked less often. Requests come from lib_request.h with random keys. The result is a
 * line of JSON. With --fill the operation is a batch that writes all items once, in scattered
 * order. With --echo the server is bench_server_echo, whose answers only have a size.
 *
 *  (1) The latency of a request is from before its bytes are sent until its answer is complete.
 *  (2) A fifth of the time warms up and is not counted. What is counted are the answers between
 *      two moments, and the processor time that process PID used between the same two.
 *  (3) A request under way at the end is waited for, so that it does not burden the next run.
 *  (4) No two connections have the same key in a transaction: keys are dealt out by connection.
 */
#include "lib_request.h"

#include "base/sched_slice.h"

#include <arpa/inet.h>
#include <errno.h>
#include <getopt.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    WARM_UP_PART = 5,
    EVENTS_MAX = 64,
    CONNECTIONS_MAX = 4096,
    ANSWER_BYTES = 256 * 1024,
    CLOSE_LOOK = 16,  /* one in so many long answers is searched, which costs us more than it */
    STALL_MS = 60000, /* nothing at all for so long: the server hangs */
    LONGER = 4,       /* a slow server may have so many times --seconds for its first answers */
    HOPELESS = 100,   /* so many errors and not one good answer */
    ERROR_TEXT = 200,
};

enum phase { WARMING, MEASURING, ENDING };

struct connection {
    int fd;
    bool writing; /* epoll tells us when more can be sent */
    bool waiting; /* a request is under way */
    char *out;
    size_t sent;
    char *in;
    size_t in_len, in_max;
    int64_t begin_ns;
    uint64_t index;
    uint64_t numbers[REQUEST_BATCH];
    struct bench_dice dice;
};

struct load {
    /* options */
    const char *op;
    unsigned port;
    pid_t pid;
    uint64_t connections_len;
    double seconds;
    uint64_t items;
    bool fill, echo;
    /* state */
    struct request_form *form;
    struct connection *connections;
    int epoll;
    enum phase phase;
    uint64_t waiting;           /* requests under way */
    uint64_t filled, fill_step; /* items of a fill that were asked for */
    uint64_t answers;
    int64_t begin_ns, end_ns, warm_until_ns;
    double server_cpu_us, client_cpu_us;
    uint64_t errors, reconnects;
    struct bench_histogram histogram;
};

/* ---- processor time -------------------------------------------------------------------------- */

/* Of all threads of a process, also those that have ended, to the nanosecond that Linux knows. */
static double process_cpu_us(pid_t pid)
{
    clockid_t clock;
    struct timespec used;

    if (pid == 0 || clock_getcpuclockid(pid, &clock) || clock_gettime(clock, &used))
        return 0;
    return (double)used.tv_sec * 1e6 + (double)used.tv_nsec / 1e3;
}

/* ---- connections ----------------------------------------------------------------------------- */

static void watch(struct load *l, struct connection *c, int how)
{
    struct epoll_event event = {.events = EPOLLIN | (c->writing ? EPOLLOUT : 0), .data.ptr = c};

    if (epoll_ctl(l->epoll, how, c->fd, &event))
        bench_die("epoll_ctl: %s", strerror(errno));
}

static void open_connection(struct load *l, struct connection *c)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)l->port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;

    c->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd < 0 || connect(c->fd, (struct sockaddr *)&address, sizeof(address)))
        bench_die("cannot connect to port %u: %s", l->port, strerror(errno));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    c->writing = false;
    c->in_len = 0;
    watch(l, c, EPOLL_CTL_ADD);
}

static void start_connection(struct load *l, uint64_t index)
{
    struct connection *c = &l->connections[index];

    c->index = index;
    c->dice.state = (index + 1) * UINT64_C(0x6a09e667f3bcc909) + (uint64_t)bench_now_ns();
    c->in_max = ANSWER_BYTES;
    c->in = malloc(c->in_max);
    c->out = malloc(l->form->len);
    if (!c->in || !c->out)
        bench_die("out of memory");
    memcpy(c->out, l->form->bytes, l->form->len);
    open_connection(l, c);
}

/* The next items; false when a fill has no more. */
static bool choose(struct load *l, struct connection *c)
{
    size_t count = l->form->items;
    uint64_t share = l->items / l->connections_len / count;

    if (l->fill && l->filled >= l->items)
        return false;
    if (l->fill) {
        for (size_t i = 0; i < count; i++)
            c->numbers[i] = l->filled++ * l->fill_step % l->items;
    } else if (strcmp(l->op, "transact4") == 0) { /* (4), and four that differ */
        for (size_t i = 0; i < count; i++)
            c->numbers[i] =
                ((bench_below(&c->dice, share) * count + i) * l->connections_len) + c->index;
    } else { /* as far from each other as can be, so they differ */
        uint64_t first = bench_below(&c->dice, l->items);

        for (size_t i = 0; i < count; i++)
            c->numbers[i] = (first + i * (l->items / count)) % l->items;
    }
    return true;
}

static void send_rest(struct load *l, struct connection *c)
{
    bool writing = false;

    while (c->sent < l->form->len) {
        ssize_t n =
            send(c->fd, c->out + c->sent, l->form->len - c->sent, MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n >= 0) {
            c->sent += (size_t)n;
        } else if (errno == EAGAIN) {
            writing = true;
            break;
        } else if (errno != EINTR) {
            break; /* reading will find the connection closed */
        }
    }
    if (writing != c->writing) {
        c->writing = writing;
        watch(l, c, EPOLL_CTL_MOD);
    }
}

static void ask(struct load *l, struct connection *c)
{
    if (l->phase == ENDING || !choose(l, c))
        return;
    bench_request_fill(l->form, c->out, c->numbers, &c->dice);
    c->sent = 0;
    c->in_len = 0;
    c->waiting = true;
    l->waiting++;
    c->begin_ns = bench_now_ns(); /* (1) */
    send_rest(l, c);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
    int status;
    const char *body;
    size_t body_len;
};

static const char *find_length(const char *head, const char *end)
{
    static const char name[] = "\r\ncontent-length:";

    for (const char *at = head; (at = memchr(at, '\r', (size_t)(end - at))) != NULL; at++)
        if ((size_t)(end - at) > sizeof(name) && strncasecmp(at, name, sizeof(name) - 1) == 0)
            return at + sizeof(name) - 1;
    return NULL;
}

/* Is all of an answer there? Servers here say how long their answers are. */
static bool parse(struct connection *c, struct answer *answer)
{
    static const char start[] = "HTTP/1.1 ";
    const char *end = memmem(c->in, c->in_len, "\r\n\r\n", 4);
    const char *length;

    if (!end)
        return false;
    if (memcmp(c->in, start, sizeof(start) - 1) != 0)
        bench_die("the answer is not HTTP/1.1: %.*s", (int)(end - c->in), c->in);
    answer->status = (int)strtol(c->in + sizeof(start) - 1, NULL, 10);
    length = find_length(c->in, end + 2);
    if (!length)
        bench_die("the answer has no Content-Length: %.*s", (int)(end - c->in), c->in);
    answer->body_len = strtoul(length, NULL, 10);
    answer->body = end + 4;
    if ((size_t)(answer->body - c->in) + answer->body_len > c->in_max)
        bench_die("an answer of %zu bytes", answer->body_len);
    return c->in_len >= (size_t)(answer->body - c->in) + answer->body_len;
}

static void complain(struct load *l, const struct answer *answer)
{
    size_t len = answer->body_len < ERROR_TEXT ? answer->body_len : ERROR_TEXT;

    if (l->errors++ == 0)
        fprintf(stderr, "bench_server_load: %s: status %d: %.*s\n", l->op, answer->status, (int)len,
                answer->body);
    if (l->errors >= HOPELESS && l->histogram.count == 0)
        bench_die("%s: nothing but errors", l->op);
}

static void begin_measuring(struct load *l, int64_t now)
{
    l->phase = MEASURING;
    l->begin_ns = now;
    l->server_cpu_us = process_cpu_us(l->pid);
    l->client_cpu_us = process_cpu_us(getpid());
}

static void end_measuring(struct load *l, int64_t now)
{
    l->phase = ENDING;
    l->end_ns = now;
    l->server_cpu_us = process_cpu_us(l->pid) - l->server_cpu_us;
    l->client_cpu_us = process_cpu_us(getpid()) - l->client_cpu_us;
}

/* A slow server has not answered everybody once when its time is over; then it gets some more. */
static bool is_over(const struct load *l, int64_t now)
{
    int64_t allowed_ns = (int64_t)(l->seconds * 1e9);
    int64_t passed_ns = now - l->begin_ns;

    return passed_ns >= LONGER * allowed_ns ||
           (passed_ns >= allowed_ns && l->histogram.count >= l->connections_len);
}

static void take(struct load *l, struct connection *c, const struct answer *answer)
{
    int64_t now = bench_now_ns();
    bool good = answer->status == 200;

    c->waiting = false;
    l->waiting--;
    l->answers++;
    if (good && l->echo)
        good = answer->body_len == l->form->answer_bytes;
    else if (good)
        good = bench_request_plausible(l->form, c->numbers, answer->body, answer->body_len,
                                       l->answers % CLOSE_LOOK == 0);
    if (!good)
        complain(l, answer);
    else if (l->phase == MEASURING)
        bench_histogram_add(&l->histogram, now - c->begin_ns);
    if (l->phase == WARMING && now >= l->warm_until_ns)
        begin_measuring(l, now);
    else if (l->phase == MEASURING && !l->fill && is_over(l, now))
        end_measuring(l, now);
}

static void lost(struct load *l, struct connection *c)
{
    if (c->waiting) {
        c->waiting = false;
        l->waiting--;
        complain(l, &(struct answer){.body = "connection closed", .body_len = 17});
    }
    l->reconnects++;
    close(c->fd);
    open_connection(l, c);
    ask(l, c);
}

static void readable(struct load *l, struct connection *c)
{
    struct answer answer;
    ssize_t n = recv(c->fd, c->in + c->in_len, c->in_max - c->in_len, MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        lost(l, c);
        return;
    }
    c->in_len += (size_t)n;
    if (!c->waiting)
        bench_die("bytes that nobody asked for: %.*s", (int)n, c->in);
    if (parse(c, &answer)) {
        take(l, c, &answer);
        ask(l, c);
    }
}

/* ---- running --------------------------------------------------------------------------------- */

static uint64_t common_divisor(uint64_t a, uint64_t b)
{
    return b ? common_divisor(b, a % b) : a;
}

static void run(struct load *l)
{
    struct epoll_event events[EVENTS_MAX];

    l->fill_step = 1000003;
    while (common_divisor(l->fill_step, l->items) != 1)
        l->fill_step++;
    l->warm_until_ns = bench_now_ns() + (int64_t)(l->seconds * 1e9 / WARM_UP_PART);
    if (l->fill)
        begin_measuring(l, bench_now_ns());
    for (uint64_t i = 0; i < l->connections_len; i++)
        ask(l, &l->connections[i]);
    while (l->waiting > 0) { /* (3) */
        int count = epoll_wait(l->epoll, events, EVENTS_MAX, STALL_MS);

        if (count == 0)
            bench_die("%s: no answer for %d s", l->op, STALL_MS / 1000);
        for (int i = 0; i < count; i++) {
            if (events[i].events & EPOLLOUT)
                send_rest(l, events[i].data.ptr);
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR))
                readable(l, events[i].data.ptr);
        }
    }
    if (l->fill)
        end_measuring(l, bench_now_ns());
}

static void print(const struct load *l)
{
    const struct bench_histogram *h = &l->histogram;
    double seconds = (double)(l->end_ns - l->begin_ns) / 1e9;
    double ops = h->count ? (double)h->count : 1;

    printf("{\"ops\": %llu, \"errors\": %llu, \"reconnects\": %llu, \"seconds\": %.6f, "
           "\"ops_per_s\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"max_us\": %.1f, "
           "\"cpu_us\": %.2f, \"client_cpu_us\": %.2f, \"request_bytes\": %zu, "
           "\"answer_bytes\": %zu}\n",
           (unsigned long long)h->count, (unsigned long long)l->errors,
           (unsigned long long)l->reconnects, seconds, (double)h->count / seconds,
           bench_histogram_us(h, 0.5), bench_histogram_us(h, 0.99), (double)h->max_ns / 1000,
           l->server_cpu_us / ops, l->client_cpu_us / ops, l->form->len, l->form->answer_bytes);
}

static void read_options(struct load *l, int argc, char **argv)
{
    static const struct option options[] = {
        {"port", required_argument, NULL, 'p'},
        {"op", required_argument, NULL, 'o'},
        {"pid", required_argument, NULL, 'P'},
        {"connections", required_argument, NULL, 'c'},
        {"seconds", required_argument, NULL, 's'},
        {"items", required_argument, NULL, 'i'},
        {"fill", no_argument, NULL, 'f'},
        {"echo", no_argument, NULL, 'e'},
        {NULL, 0, NULL, 0},
    };

    for (int c; (c = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (c) {
        case 'p':
            l->port = (unsigned)strtoul(optarg, NULL, 10);
            break;
        case 'o':
            l->op = optarg;
            break;
        case 'P':
            l->pid = (pid_t)strtol(optarg, NULL, 10);
            break;
        case 'c':
            l->connections_len = strtoull(optarg, NULL, 10);
            break;
        case 's':
            l->seconds = strtod(optarg, NULL);
            break;
        case 'i':
            l->items = strtoull(optarg, NULL, 10);
            break;
        case 'f':
            l->fill = true;
            break;
        case 'e':
            l->echo = true;
            break;
        default:
            bench_die("usage: bench_server_load --port P --op NAME [--pid PID] [--connections N] "
                      "[--seconds S] [--items N] [--fill] [--echo]");
        }
    }
    if (l->port == 0 || l->port > 65535 || !l->op)
        bench_die("--port and --op are needed");
    if (l->connections_len == 0 || l->connections_len > CONNECTIONS_MAX)
        bench_die("--connections must be from 1 to %d", CONNECTIONS_MAX);
    if (l->items == 0 || l->items % REQUEST_PARTITION != 0 || l->items < 4 * l->connections_len)
        bench_die("--items must be a multiple of %d, and four for each connection",
                  REQUEST_PARTITION);
    if (!(l->seconds > 0))
        bench_die("--seconds must be above 0");
}

int main(int argc, char **argv)
{
    static struct load load = {.connections_len = 1, .seconds = 1, .items = 10000};
    struct load *l = &load;

    read_options(l, argc, argv);
    (void)sched_slice_set(SHORT_SLICE_NS); /* what we wait for a core is not the server's time */
    l->form = bench_request_new(l->op, l->items, l->port, l->echo);
    if (!l->form)
        bench_die("there is no operation %s", l->op);
    if (l->fill && l->form->items != REQUEST_BATCH)
        bench_die("a fill is made of batches, not of %s", l->op);
    l->connections = calloc(l->connections_len, sizeof(*l->connections));
    l->epoll = epoll_create1(EPOLL_CLOEXEC);
    if (!l->connections || l->epoll < 0)
        bench_die("out of memory");
    for (uint64_t i = 0; i < l->connections_len; i++)
        start_connection(l, i);
    run(l);
    print(l);
    return 0;
}
