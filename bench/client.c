/*
 * bench/client.c: what a call costs through our client, beside libcurl and beside bare bytes.
 *
 *     bench_client [--quick] [--seconds S] [--rounds N] [--only LOOP] [--threads N] [--json FILE]
 *                  [--port P]
 *
 * Three loops ask for the same item with the same request, byte for byte but for the time and the
 * signature of ours, and get the same answer of some 1.2 KiB:
 *
 *     ours   hf_get_item() on one database of hf_connect(), shared by all threads
 *     curl   curl_easy_perform() on a handle per thread; the signature was made beforehand, and
 *            nobody looks at what is in the answer
 *     bytes  send() and recv() on a socket per thread: nothing can do with less
 *
 * The server is a child process, so that the processor time of this one is the client's alone. It
 * is not ours to measure: one thread with epoll, which answers every request with the same bytes
 * and looks for nothing but the request's end. --port P asks another server on 127.0.0.1 instead,
 * which must have the table "bench" with an item {pk: "customer#000000004711"}.
 *
 * The loops take turns, --rounds times, and what they measured is added up: whatever else the
 * machine does meets all three alike.
 */
#include "lib.h"

#include <holdfast/client.h>

#include <curl/curl.h>
#include <getopt.h>
#include <libdeflate.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "http/sign.h"
#include "ops/fields.h"
#include "wire/wire.h"

enum {
    THREADS_MANY = 32,
    ROUNDS = 5,
    ROUNDS_QUICK = 2,
    BYTES_MAX = 16 * 1024, /* of a request, and of an answer */
    BACKLOG = 256,
    EVENTS = 64
};

enum loop { OURS, CURL_LOOP, BYTES, LOOPS };
static const char *const loop_names[LOOPS] = {"ours", "curl", "bytes"};
static const unsigned thread_counts[] = {1, THREADS_MANY};

/* The goals, of issue and README. */
static const double cpu_above_bytes_us = 15, share_of_curl = 0.95;

/* What a thread of the other two loops has for itself. */
struct slot {
    CURL *easy;
    int fd;
    size_t len;
    char in[BYTES_MAX];
};

struct bench {
    double seconds;
    unsigned rounds;
    unsigned port;
    const char *json;
    const char *only; /* the loop that runs; NULL: all */
    unsigned threads; /* 0: 1 and THREADS_MANY */
    struct hf_db *db;
    struct hf_str body;    /* of the request */
    struct hf_str request; /* head and body, as `bytes` sends it */
    struct curl_slist *fields;
    char url[64];
    struct slot *slots;
    atomic_uint slots_len;
};

static const char key_text[] = "customer#000000004711";

/* ---- the server ------------------------------------------------------------------------------ */

struct visitor {
    int fd;
    size_t len;
    char in[BYTES_MAX];
};

struct site {
    int listener, epoll, parent;
    char answer[BYTES_MAX];
    size_t answer_len;
};

/* The length of the whole request at the beginning of what came; 0: it is not all there. */
static size_t request_len(const struct visitor *v)
{
    static const char name[] = "Content-Length: ";
    const char *end = memmem(v->in, v->len, "\r\n\r\n", 4);
    const char *length = end ? memmem(v->in, (size_t)(end - v->in), name, sizeof(name) - 1) : NULL;
    size_t len;

    if (!end)
        return 0;
    len = (size_t)(end + 4 - v->in);
    len += length ? strtoul(length + sizeof(name) - 1, NULL, 10) : 0;
    return len <= v->len ? len : 0;
}

static void watch(const struct site *site, int fd, void *who)
{
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = who}};

    if (epoll_ctl(site->epoll, EPOLL_CTL_ADD, fd, &event))
        bench_die("server: epoll_ctl");
}

static void welcome(const struct site *site)
{
    struct visitor *v = calloc(1, sizeof(*v));
    int on = 1;

    if (!v)
        bench_die("server: out of memory");
    v->fd = accept4(site->listener, NULL, NULL, SOCK_CLOEXEC);
    if (v->fd < 0)
        bench_die("server: accept");
    (void)setsockopt(v->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    watch(site, v->fd, v);
}

static void serve(const struct site *site, struct visitor *v)
{
    ssize_t got = recv(v->fd, v->in + v->len, sizeof(v->in) - v->len, 0);

    v->len += got > 0 ? (size_t)got : 0;
    if (got > 0 && !request_len(v) && v->len < sizeof(v->in))
        return;
    if (got > 0 && request_len(v) == v->len &&
        send(v->fd, site->answer, site->answer_len, MSG_NOSIGNAL) == (ssize_t)site->answer_len) {
        v->len = 0;
        return;
    }
    close(v->fd);
    free(v);
}

/* Until the parent is gone: then its end of the pipe is. */
static _Noreturn void serve_all(const struct site *site)
{
    struct epoll_event events[EVENTS];
    int listener, parent; /* whose addresses tell them apart from visitors */

    watch(site, site->listener, &listener);
    watch(site, site->parent, &parent);
    for (;;) {
        int count = epoll_wait(site->epoll, events, EVENTS, -1);

        for (int i = 0; i < count; i++) {
            if (events[i].data.ptr == &parent)
                _exit(0);
            else if (events[i].data.ptr == &listener)
                welcome(site);
            else
                serve(site, events[i].data.ptr);
        }
    }
}

/* The answer as a service gives it: 1 KiB in eleven attributes. */
static void write_answer(struct hf_scope *s, struct site *site)
{
    static const char text[] = "The quick brown fox jumps over the lazy dog, and then once more, "
                               "slowly, for those who were looking elsewhere the first time.";
    struct hf_str t = hf_str_of(text, sizeof(text) - 1);
    struct hf_str tags[] = {HF_STR("blue"), HF_STR("green"), HF_STR("yellow")};
    struct hf_get_item_result result = {
        .item = HF_ITEM(s, HF_S("pk", hf_str_from(key_text)), HF_N("created", 1700000000),
                        HF_S("status", HF_STR("PENDING")), HF_N("total", 12995),
                        HF_BOOL("paid", true), HF_SS("tags", tags, ARRAY_LEN(tags)), HF_S("a", t),
                        HF_S("b", t), HF_S("c", t), HF_S("d", t), HF_S("e", t))};
    struct hf__buf body = {.scope = s};
    int len;

    hf__wire_write(&body, hf__op(HF_OP_GET_ITEM)->response, &result);
    if (body.failed)
        bench_die("out of memory");
    len = snprintf(site->answer, sizeof(site->answer),
                   "HTTP/1.1 200 OK\r\nServer: fixed\r\nContent-Type: application/x-amz-json-1.0"
                   "\r\nx-amzn-RequestId: 00000000-0000-4000-8000-000000000000\r\n"
                   "x-amz-crc32: %u\r\nContent-Length: %zu\r\n\r\n%.*s",
                   (unsigned)libdeflate_crc32(0, body.ptr, body.len), body.len, (int)body.len,
                   (const char *)body.ptr);
    if (len < 0 || (size_t)len >= sizeof(site->answer))
        bench_die("the answer is too long");
    site->answer_len = (size_t)len;
}

/* Fork a server; its port. It ends when we do. */
static unsigned start_server(struct hf_scope *s)
{
    static struct site site;
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    int pipes[2];
    pid_t pid;

    write_answer(s, &site);
    site.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (site.listener < 0 || bind(site.listener, (struct sockaddr *)&address, size) ||
        listen(site.listener, BACKLOG) ||
        getsockname(site.listener, (struct sockaddr *)&address, &size) || pipe(pipes))
        bench_die("cannot listen");
    pid = fork();
    if (pid < 0)
        bench_die("cannot fork");
    if (pid == 0) {
        close(pipes[1]);
        site.parent = pipes[0];
        site.epoll = epoll_create1(EPOLL_CLOEXEC);
        serve_all(&site);
    }
    close(pipes[0]); /* and pipes[1] stays open for as long as we live */
    close(site.listener);
    return ntohs(address.sin_port);
}

/* ---- the request ----------------------------------------------------------------------------- */

static struct hf_get_item get_request(struct hf_scope *s)
{
    return (struct hf_get_item){.table = HF_STR("bench"),
                                .key = HF_ITEM(s, HF_S("pk", hf_str_from(key_text)))};
}

/* What our client would send now, for the loops that have it made once. */
static void write_request(struct hf_scope *s, struct bench *b)
{
    const struct sign_credentials keys = {.access_key = HF_STR("fake"),
                                          .secret_key = HF_STR("fake")};
    static struct http_head head;
    struct hf_get_item get = get_request(s);
    struct hf__buf body = {.scope = s}, request = {.scope = s};
    struct sign_how how = {.credentials = &keys,
                           .region = HF_STR("us-east-1"),
                           .service = HF_STR("dynamodb"),
                           .now_s = (int64_t)time(NULL)};
    struct signer *signer;

    hf__wire_write(&body, hf__op(HF_OP_GET_ITEM)->request, &get);
    head = (struct http_head){.method = HF_STR("POST"), .path = HF_STR("/"), .target = HF_STR("/")};
    head.fields[head.fields_len++] =
        (struct http_field){HF_STR("Host"), hf_scope_format(s, "127.0.0.1:%u", b->port)};
    head.fields[head.fields_len++] =
        (struct http_field){HF_STR("Content-Type"), HF_STR("application/x-amz-json-1.0")};
    head.fields[head.fields_len++] =
        (struct http_field){HF_STR("X-Amz-Target"), HF_STR("DynamoDB_20120810.GetItem")};
    head.fields[head.fields_len++] =
        (struct http_field){HF_STR("User-Agent"), hf_scope_format(s, "holdfast/%s", hf_version())};
    head.fields[head.fields_len++] = (struct http_field){HF_STR("Accept-Encoding"), HF_STR("gzip")};
    how.body = hf_bytes_of(body.ptr, body.len);
    if (body.failed || hf__signer_new(s, NULL, &signer) != HF_OK ||
        hf__sign_request(s, signer, &head, &how) != HF_OK)
        bench_die("cannot sign: %s", hf_scope_error_text(s));
    hf__signer_free(signer);

    b->body = hf_str_of((const char *)body.ptr, body.len);
    hf__buf_put_str(&request, HF_STR("POST / HTTP/1.1\r\n"));
    for (size_t i = 0; i < head.fields_len; i++) {
        struct hf_str line = hf_scope_format(s, "%.*s: %.*s", HF_FMT(head.fields[i].name),
                                             HF_FMT(head.fields[i].value));

        hf__buf_put_str(&request, line);
        hf__buf_put_str(&request, HF_STR("\r\n"));
        b->fields = line.ptr ? curl_slist_append(b->fields, line.ptr) : NULL;
        if (!b->fields)
            bench_die("out of memory");
    }
    b->fields = curl_slist_append(b->fields, "Accept:"); /* which libcurl would add */
    hf__buf_put_str(&request, hf_scope_format(s, "Content-Length: %zu\r\n\r\n", b->body.len));
    hf__buf_put_str(&request, b->body);
    if (!b->fields || request.failed)
        bench_die("out of memory");
    b->request = hf_str_of((const char *)request.ptr, request.len);
}

/* ---- the loops ------------------------------------------------------------------------------- */

static enum hf_status op_ours(struct bench_worker *w)
{
    struct bench *b = w->user;
    struct hf_get_item get = get_request(w->s);
    struct hf_get_item_result got;
    enum hf_status status;

    bench_begin(w);
    status = hf_get_item(w->s, b->db, &get, &got);
    bench_end(w);
    if (status == HF_OK && !got.item.ptr)
        bench_die("there is no such item");
    w->items++;
    return status;
}

static struct slot *slot_of(struct bench *b)
{
    static _Thread_local struct slot *mine;
    unsigned number;

    if (!mine) {
        number = atomic_fetch_add(&b->slots_len, 1);
        assert(number < THREADS_MANY);
        mine = &b->slots[number];
        *mine = (struct slot){.fd = -1};
    }
    return mine;
}

static size_t take_bytes(char *bytes, size_t size, size_t count, void *user)
{
    struct slot *slot = user;
    size_t len = size * count;

    if (len > sizeof(slot->in) - slot->len)
        return 0;
    memcpy(slot->in + slot->len, bytes, len);
    slot->len += len;
    return len;
}

static CURL *curl_of(struct bench *b, struct slot *slot)
{
    CURL *easy = slot->easy;

    if (easy)
        return easy;
    easy = slot->easy = curl_easy_init();
    if (!easy || curl_easy_setopt(easy, CURLOPT_URL, b->url) ||
        curl_easy_setopt(easy, CURLOPT_PROXY, "") || curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) ||
        curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1) ||
        curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)b->body.len) ||
        curl_easy_setopt(easy, CURLOPT_POSTFIELDS, b->body.ptr) ||
        curl_easy_setopt(easy, CURLOPT_HTTPHEADER, b->fields) ||
        curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_bytes) ||
        curl_easy_setopt(easy, CURLOPT_WRITEDATA, slot))
        bench_die("cannot set up libcurl");
    return easy;
}

static enum hf_status op_curl(struct bench_worker *w)
{
    struct bench *b = w->user;
    struct slot *slot = slot_of(b);
    CURL *easy = curl_of(b, slot);
    CURLcode code;
    long status = 0;

    bench_begin(w);
    slot->len = 0;
    code = curl_easy_perform(easy);
    (void)curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    bench_end(w);
    if (code != CURLE_OK || status != 200)
        bench_die("libcurl: %s, status %ld", curl_easy_strerror(code), status);
    w->items++;
    return HF_OK;
}

static void connect_slot(const struct bench *b, struct slot *slot)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)b->port),
                                  .sin_addr = {.s_addr = htonl(INADDR_LOOPBACK)}};
    int on = 1;

    slot->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (slot->fd < 0 || connect(slot->fd, (struct sockaddr *)&address, sizeof(address)) ||
        setsockopt(slot->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)))
        bench_die("cannot connect to port %u", b->port);
}

/* Whether the answer is all there: its fields look like those of a request. */
static bool is_whole(const struct slot *slot)
{
    static const char name[] = "\r\ncontent-length:";
    const char *end = memmem(slot->in, slot->len, "\r\n\r\n", 4);

    for (const char *at = slot->in; end && at < end; at++) {
        if (*at == '\r' && strncasecmp(at, name, sizeof(name) - 1) == 0)
            return (size_t)(end + 4 - slot->in) + strtoul(at + sizeof(name) - 1, NULL, 10) <=
                   slot->len;
    }
    return false;
}

static enum hf_status op_bytes(struct bench_worker *w)
{
    struct bench *b = w->user;
    struct slot *slot = slot_of(b);

    if (slot->fd < 0)
        connect_slot(b, slot);
    bench_begin(w);
    slot->len = 0;
    if (send(slot->fd, b->request.ptr, b->request.len, MSG_NOSIGNAL) != (ssize_t)b->request.len)
        bench_die("cannot send");
    do {
        ssize_t got = recv(slot->fd, slot->in + slot->len, sizeof(slot->in) - slot->len, 0);

        if (got <= 0)
            bench_die("the server has hung up");
        slot->len += (size_t)got;
    } while (!is_whole(slot));
    bench_end(w);
    if (memcmp(slot->in, "HTTP/1.1 200", 12) != 0)
        bench_die("the server answers with %.12s", slot->in);
    w->items++;
    return HF_OK;
}

static void close_slots(struct bench *b)
{
    for (unsigned i = 0; i < atomic_load(&b->slots_len); i++) {
        curl_easy_cleanup(b->slots[i].easy);
        if (b->slots[i].fd >= 0)
            close(b->slots[i].fd);
    }
    atomic_store(&b->slots_len, 0);
}

/* ---- results --------------------------------------------------------------------------------- */

static void add_fact(struct bench_report *report, const char *name, unsigned threads, double value,
                     const char *unit)
{
    struct bench_record *record = &report->records[report->len++];

    *record = (struct bench_record){.fact = {.value = value}};
    snprintf(record->fact.name, sizeof(record->fact.name), "%s/%u", name, threads);
    snprintf(record->fact.unit, sizeof(record->fact.unit), "%s", unit);
    bench_print(record);
}

static void add_goal(struct bench_report *report, bool met, const char *name, const char *measured)
{
    struct bench_goal *goal = &report->goals[report->goals_len++];

    *goal = (struct bench_goal){.met = met};
    snprintf(goal->name, sizeof(goal->name), "%s", name);
    snprintf(goal->measured, sizeof(goal->measured), "%s", measured);
}

/* The cells of one number of threads, their ratios, and what the goals make of them. */
static void record(struct bench_report *report, unsigned threads,
                   const struct bench_tally tallies[LOOPS])
{
    struct bench_cell cells[LOOPS];
    char name[BENCH_NAME_MAX], text[BENCH_TEXT_MAX];
    bool measured = true;
    double above, share;

    for (size_t i = 0; i < LOOPS; i++) {
        struct bench_record *r;

        measured = measured && tallies[i].ops;
        if (!tallies[i].ops)
            continue;
        r = &report->records[report->len++];
        snprintf(name, sizeof(name), "%s/get/%u", loop_names[i], threads);
        cells[i] = bench_cell_of(name, &tallies[i]);
        *r = (struct bench_record){.is_cell = true, .cell = cells[i]};
        bench_print(r);
    }
    if (!measured)
        return;
    above = cells[OURS].cpu_us - cells[BYTES].cpu_us;
    share = cells[OURS].ops_per_s / cells[CURL_LOOP].ops_per_s;
    add_fact(report, "cpu-above-bytes", threads, above, "us per call");
    add_fact(report, "cpu-above-curl", threads, cells[OURS].cpu_us - cells[CURL_LOOP].cpu_us,
             "us per call");
    add_fact(report, "cpu-to-curl", threads, cells[OURS].cpu_us / cells[CURL_LOOP].cpu_us, "");
    add_fact(report, "ops-to-curl", threads, share, "");
    add_fact(report, "ops-to-bytes", threads, cells[OURS].ops_per_s / cells[BYTES].ops_per_s, "");

    snprintf(name, sizeof(name), "GetItem, %u %s, at most %.0f us of ours", threads,
             threads == 1 ? "thread" : "threads", cpu_above_bytes_us);
    snprintf(text, sizeof(text), "%.1f us above the bytes (%.1f - %.1f)", above, cells[OURS].cpu_us,
             cells[BYTES].cpu_us);
    add_goal(report, above <= cpu_above_bytes_us, name, text);
    if (threads != THREADS_MANY)
        return;
    snprintf(name, sizeof(name), "%u threads, at least %.0f %% of libcurl's loop", threads,
             share_of_curl * 100);
    snprintf(text, sizeof(text), "%.1f %% (%.0f/s, %.0f/s)", share * 100, cells[OURS].ops_per_s,
             cells[CURL_LOOP].ops_per_s);
    add_goal(report, share >= share_of_curl, name, text);
}

static void measure(struct bench *b, struct bench_report *report, unsigned threads)
{
    static bench_op_fn *const ops[LOOPS] = {op_ours, op_curl, op_bytes};
    struct bench_tally *tallies = calloc(LOOPS, sizeof(*tallies)); /* their histograms are large */

    if (!tallies)
        bench_die("out of memory");
    for (unsigned round = 0; round < b->rounds; round++) {
        for (size_t i = 0; i < LOOPS; i++) {
            if (b->only && strcmp(b->only, loop_names[i]) != 0)
                continue;
            bench_run(&tallies[i], ops[i], b, threads, b->seconds);
            close_slots(b);
        }
    }
    record(report, threads, tallies);
    free(tallies);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void read_options(struct bench *b, int argc, char **argv)
{
    static const struct option longs[] = {
        {"quick", no_argument, NULL, 'q'},         {"seconds", required_argument, NULL, 's'},
        {"rounds", required_argument, NULL, 'r'},  {"only", required_argument, NULL, 'o'},
        {"threads", required_argument, NULL, 't'}, {"json", required_argument, NULL, 'j'},
        {"port", required_argument, NULL, 'p'},    {NULL, 0, NULL, 0},
    };

    for (int c; (c = getopt_long(argc, argv, "", longs, NULL)) != -1;) {
        if (c == 'q') {
            b->seconds = 0.2;
            b->rounds = ROUNDS_QUICK;
        } else if (c == 's') {
            b->seconds = strtod(optarg, NULL);
        } else if (c == 'r') {
            b->rounds = (unsigned)strtoul(optarg, NULL, 10);
        } else if (c == 'o') {
            b->only = optarg;
        } else if (c == 't') {
            b->threads = (unsigned)strtoul(optarg, NULL, 10);
        } else if (c == 'j') {
            b->json = optarg;
        } else if (c == 'p') {
            b->port = (unsigned)strtoul(optarg, NULL, 10);
        } else {
            bench_die("usage: bench_client [--quick] [--seconds S] [--rounds N] [--only LOOP] "
                      "[--threads N] [--json FILE] [--port P]; LOOP is ours, curl or bytes");
        }
    }
    if (!(b->seconds > 0) || b->rounds == 0 || b->port > 65535 ||
        (b->threads > 1 && b->threads != THREADS_MANY) || optind != argc)
        bench_die("--seconds and --rounds must be above 0, --port at most 65535, --threads 1 or %d",
                  THREADS_MANY);
}

int main(int argc, char **argv)
{
    static struct bench bench = {.seconds = 1, .rounds = ROUNDS};
    static struct bench_record records[32];
    static struct bench_goal goals[BENCH_GOALS_MAX];
    struct bench_report report = {.records = records, .goals = goals};
    struct hf_scope *s = hf_scope_new(NULL);
    struct bench *b = &bench;
    char about[BENCH_TEXT_MAX];
    bool own;

    read_options(b, argc, argv);
    own = b->port == 0;
    if (!s)
        bench_die("out of memory");
    if (own)
        b->port = start_server(s);
    snprintf(b->url, sizeof(b->url), "http://127.0.0.1:%u/", b->port);
    b->slots = calloc(THREADS_MANY, sizeof(*b->slots));
    if (!b->slots || curl_global_init(CURL_GLOBAL_DEFAULT))
        bench_die("out of memory");
    write_request(s, b);
    if (hf_connect(s, hf_str_from(b->url),
                   HF_OPTIONS(hf_client_options, .env = &bench_env, .no_aws_config = true),
                   &b->db) != HF_OK)
        bench_die("hf_connect: %s", hf_scope_error_text(s));

    printf("the server is %s; a request has %zu bytes\n",
           own ? "a loop in a child process that answers with fixed bytes" : "another's",
           b->request.len);
    bench_print_head();
    for (size_t i = 0; i < ARRAY_LEN(thread_counts); i++)
        if (!b->threads || b->threads == thread_counts[i])
            measure(b, &report, thread_counts[i]);
    if (report.goals_len)
        bench_print_goals(&report);
    snprintf(about, sizeof(about), "\"seconds\": %.3f, \"rounds\": %u, \"server\": \"%s\"",
             b->seconds, b->rounds, own ? "fixed" : "other");
    if (b->json && !bench_write_json(&report, b->json, about))
        bench_die("cannot write %s", b->json);
    hf_db_close(b->db);
    curl_slist_free_all(b->fields);
    free(b->slots);
    hf_scope_free(s);
    return 0;
}
