/*
 * server/help.c: a server on a thread of the test's process, and a raw client.
 *
 * Answers are read strictly: a status line, fields that each end with CR LF, and exactly as many
 * bytes of body as Content-Length says. Whatever else comes fails the test.
 */
#include "help.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include <holdfast/faults.h>

#include "base/buf.h"
#include "engine/engine.h"

int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void sleep_ms(int64_t ms)
{
    struct timespec left = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        continue;
}

bool contains(struct hf_str text, const char *part)
{
    return text.len && memmem(text.ptr, text.len, part, strlen(part)) != NULL;
}

struct hf_str quoted_json(struct hf_scope *s, const char *text)
{
    struct hf__buf buf = {.scope = s};

    for (; *text; text++)
        hf__buf_put_byte(&buf, (uint8_t)(*text == '\'' ? '"' : *text));
    hf__buf_put_byte(&buf, 0);
    CHECK(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len - 1);
}

/* ---- the server ----------------------------------------------------------------------------- */

static void *watched_alloc(void *ptr, size_t old_size, size_t new_size, void *user)
{
    struct site *site = user;
    const struct hf_env *env = test_env(site->t);
    void *moved = env->alloc(ptr, old_size, new_size, env->user);

    if (moved || new_size == 0) {
        atomic_fetch_add(&site->bytes, new_size);
        atomic_fetch_sub(&site->bytes, ptr ? old_size : 0);
    }
    return moved;
}

static int64_t site_wall(void *user)
{
    const struct hf_env *env = test_env(((struct site *)user)->t);

    return env->wall_us(env->user);
}

static int64_t site_elapsed(void *user)
{
    const struct hf_env *env = test_env(((struct site *)user)->t);

    return env->elapsed_us(env->user);
}

static void site_random(void *bytes, size_t len, void *user)
{
    const struct hf_env *env = test_env(((struct site *)user)->t);

    env->random(bytes, len, env->user);
}

static void on_stop(void *user)
{
    atomic_fetch_add(&((struct site *)user)->stops, 1);
}

static void *run(void *user)
{
    struct site *site = user;
    struct hf_scope *s = hf_scope_new(test_env(site->t));

    site->outcome = s ? hf__server_run(s, site->server) : HF_NOMEM;
    hf_scope_free(s);
    return NULL;
}

void make_table(struct hf_scope *s, struct hf_db *db)
{
    static const struct hf_attribute_definition attributes[] = {
        {.name = {"pk", 2}, .type = HF_SCALAR_S}};
    static const struct hf_key_element keys[] = {{.name = {"pk", 2}, .type = HF_KEY_HASH}};

    CHECK_OK(hf_create_table(s, db,
                             &(struct hf_create_table){.table = HF_STR("tab"),
                                                       .attributes = attributes,
                                                       .attributes_len = 1,
                                                       .key_schema = keys,
                                                       .key_schema_len = 1,
                                                       .billing = HF_BILLING_PAY_PER_REQUEST},
                             NULL));
}

static void open_server(struct site *site, const struct server_options *options)
{
    struct server_options o = *options;

    site->env = (struct hf_env){.size = sizeof(site->env),
                                .user = site,
                                .alloc = watched_alloc,
                                .wall_us = site_wall,
                                .elapsed_us = site_elapsed,
                                .random = site_random};
    o.env = &site->env;
    if (!o.on_stop) {
        o.on_stop = on_stop;
        o.user = site;
    }
    if (hf__server_open(site->s, site->db, &o, &site->server) != HF_OK)
        fail_msg("cannot open the server: %s", hf_scope_error_text(site->s));
    site->port = hf__server_port(site->server);
    CHECK_INT(0, pthread_create(&site->thread, NULL, run, site));
}

static struct hf_engine_options engine_options(struct test *t)
{
    return (struct hf_engine_options){.size = sizeof(struct hf_engine_options),
                                      .env = test_env(t),
                                      .no_upkeep_thread = true};
}

static unsigned open_fds(void)
{
    DIR *directory = opendir("/proc/self/fd");
    unsigned count = 0;

    CHECK(directory != NULL);
    while (readdir(directory))
        count++;
    closedir(directory);
    return count;
}

static void begin(struct test *t, struct site *site)
{
    uv_loop_t once;

    memset(site, 0, sizeof(*site));
    site->t = t;
    CHECK_INT(0, uv_loop_init(&once)); /* libuv's first loop has descriptors that stay */
    uv_loop_close(&once);
    site->fds = open_fds();
    site->s = hf_scope_new(test_env(t));
    CHECK(site->s != NULL);
}

void site_open(struct test *t, struct site *site, const struct server_options *options)
{
    struct hf_engine_options engine = engine_options(t);

    begin(t, site);
    CHECK_OK(hf_open(site->s, HF_STR("memory:"), &engine, &site->db));
    make_table(site->s, site->db);
    open_server(site, options);
}

void site_open_admin(struct test *t, struct site *site)
{
    struct hf_engine_options options = engine_options(t);
    struct hf_db *engine;

    begin(t, site);
    CHECK_OK(hf_open(site->s, HF_STR("memory:"), &options, &engine));
    CHECK_OK(hf_faulty_open(site->s, engine, &site->db));
    make_table(site->s, site->db);
    open_server(site, &(struct server_options){
                          .loops = 4, .admin = true, .engine = engine, .clock = &site->clock});
}

void site_serve_with(struct test *t, struct site *site, struct hf_db *db,
                     const struct server_options *options)
{
    begin(t, site);
    site->db = db;
    site->borrowed = true;
    open_server(site, options);
}

void site_serve(struct test *t, struct site *site, struct hf_db *db)
{
    site_serve_with(t, site, db, &(struct server_options){.loops = 1});
}

void site_open_faulty(struct test *t, struct site *site, const struct server_options *options)
{
    struct hf_engine_options engine = engine_options(t);
    struct hf__store *memory;

    begin(t, site);
    CHECK_OK(hf__store_open_memory(site->s, test_env(t), &memory));
    CHECK_OK(hf__store_open_with_faults(site->s, test_env(t), memory, &site->faults, &site->store));
    CHECK_OK(hf__engine_open_on(site->s, site->store, &engine, &site->db));
    make_table(site->s, site->db);
    open_server(site, options);
}

int listen_small(int send_bytes)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_INT(0, setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_bytes, sizeof(send_bytes)));
    CHECK_INT(0, bind(fd, (struct sockaddr *)&at, sizeof(at)));
    CHECK_INT(0, listen(fd, 64));
    return fd;
}

void site_join(struct site *site)
{
    if (site->joined)
        return;
    CHECK_INT(0, pthread_join(site->thread, NULL));
    site->joined = true;
    CHECK_OK(site->outcome);
}

void site_close(struct site *site)
{
    hf__server_stop(site->server);
    site_join(site);
    hf__server_close(site->server);
    CHECK_INT(0, atomic_load(&site->bytes));
    if (!site->borrowed)
        hf_db_close(site->db);
    hf_scope_free(site->s);
    CHECK_INT(site->fds, open_fds());
}

bool site_has(struct site *site, const char *pk)
{
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(site->s, site->db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(site->s, HF_S("pk", hf_str_from(pk))),
                                               .consistent = HF_YES},
                         &got));
    return got.item.ptr != NULL;
}

void site_put(struct site *site, const char *pk, size_t len)
{
    char *text = hf_scope_alloc(site->s, len + 1);

    for (size_t i = 0; i < len; i++)
        text[i] = (char)('a' + test_random_below(site->t, 26));
    CHECK_OK(hf_put_item(site->s, site->db,
                         &(struct hf_put_item){.table = HF_STR("tab"),
                                               .item = HF_ITEM(site->s, HF_S("pk", hf_str_from(pk)),
                                                               HF_S("text", hf_str_of(text, len)))},
                         NULL));
}

double site_metric(struct site *site, const char *name)
{
    struct line c;
    double value = -1;
    char mark[160];
    const char *at;

    line_open(site, &c);
    line_text(&c, "GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    line_read(&c);
    CHECK_INT(200, c.status);
    snprintf(mark, sizeof(mark), "\n%s ", name);
    at = memmem(c.body.ptr, c.body.len, mark, strlen(mark));
    if (at)
        value = strtod(at + strlen(mark), NULL);
    line_close(&c);
    return value;
}

/* ---- connecting and sending ----------------------------------------------------------------- */

static void open_with(const struct site *site, struct line *c, int buffer)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(site->port)};
    int on = 1;

    *c = (struct line){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK(c->fd >= 0);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (buffer)
        setsockopt(c->fd, SOL_SOCKET, SO_RCVBUF, &buffer, sizeof(buffer));
    setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    CHECK_INT(0, connect(c->fd, (struct sockaddr *)&to, sizeof(to)));
    CHECK_INT(0, fcntl(c->fd, F_SETFL, O_NONBLOCK));
}

void line_open(const struct site *site, struct line *c)
{
    open_with(site, c, 0);
}

void line_open_small(const struct site *site, struct line *c, int bytes)
{
    open_with(site, c, bytes);
}

void line_close(struct line *c)
{
    if (c->fd >= 0)
        close(c->fd);
    free(c->in);
    *c = (struct line){.fd = -1};
}

void line_reset(struct line *c)
{
    const struct linger hard = {.l_onoff = 1};

    setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
    line_close(c);
}

bool line_send(struct line *c, const void *bytes, size_t len)
{
    const uint8_t *p = bytes;
    int64_t until = now_ms() + DEADLINE_MS;

    while (len > 0) {
        ssize_t sent = send(c->fd, p, len, MSG_NOSIGNAL);
        struct pollfd wait = {.fd = c->fd, .events = POLLOUT};

        if (sent < 0 && errno != EAGAIN && errno != EINTR)
            return false;
        if (sent < 0 && now_ms() > until)
            fail_msg("the server takes nothing more for %d ms", DEADLINE_MS);
        if (sent < 0)
            poll(&wait, 1, 100);
        else {
            p += sent;
            len -= (size_t)sent;
        }
    }
    return true;
}

bool line_text(struct line *c, const char *text)
{
    return line_send(c, text, strlen(text));
}

struct hf_str post_text(struct hf_scope *s, const char *fields, struct hf_str body)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_format(&buf, "POST / HTTP/1.1\r\n%sContent-Length: %zu\r\n\r\n", fields, body.len);
    hf__buf_put_str(&buf, body);
    hf__buf_put_byte(&buf, 0);
    CHECK(!buf.failed);
    return hf_str_of((const char *)buf.ptr, buf.len - 1);
}

struct hf_str call_text(struct hf_scope *s, const char *operation, const char *json)
{
    struct hf_str fields = hf_scope_format(s,
                                           "Host: localhost\r\n" JSON_1_0
                                           "X-Amz-Target: DynamoDB_20120810.%s\r\n" SIGNED,
                                           operation);

    return post_text(s, fields.ptr, quoted_json(s, json));
}

bool line_call(struct line *c, const char *operation, const char *json)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_str text = call_text(s, operation, json);
    bool taken = line_send(c, text.ptr, text.len);

    hf_scope_free(s);
    return taken;
}

void line_finish_sending(struct line *c)
{
    CHECK_INT(0, shutdown(c->fd, SHUT_WR));
}

/* ---- answers -------------------------------------------------------------------------------- */

/* More bytes, by `until` at the latest. False when none came; `ended` says whether some may. */
static bool receive(struct line *c, int64_t until)
{
    while (!c->ended) {
        struct pollfd wait = {.fd = c->fd, .events = POLLIN};
        int64_t left = until - now_ms();
        ssize_t got;

        if (c->in_cap - c->in_len < 65536) {
            c->in_cap = 2 * c->in_cap + 65536;
            c->in = realloc(c->in, c->in_cap);
            CHECK(c->in != NULL);
        }
        got = recv(c->fd, c->in + c->in_len, c->in_cap - c->in_len, 0);
        if (got > 0) {
            c->in_len += (size_t)got;
            return true;
        }
        if (got == 0 || (errno != EAGAIN && errno != EINTR)) {
            c->ended = true;
            c->broken = got != 0;
            return false;
        }
        if (left <= 0)
            return false;
        poll(&wait, 1, (int)left);
    }
    return false;
}

/* The last answer is done with. */
static void forget(struct line *c)
{
    if (c->used)
        memmove(c->in, c->in + c->used, c->in_len - c->used);
    c->in_len -= c->used;
    c->used = 0;
}

bool line_answers(struct line *c)
{
    forget(c);
    return c->in_len > 0 || receive(c, now_ms() + DEADLINE_MS);
}

bool line_ends(struct line *c, int64_t ms)
{
    int64_t until = now_ms() + ms;

    forget(c);
    while (c->in_len == 0 && receive(c, until))
        continue;
    return c->ended && c->in_len == 0;
}

struct hf_str line_rest(struct line *c, int64_t ms)
{
    int64_t until = now_ms() + ms;

    forget(c);
    while (receive(c, until))
        continue;
    c->used = c->in_len;
    return hf_str_of((const char *)c->in, c->in_len);
}

void line_begin(struct line *c)
{
    int64_t until = now_ms() + DEADLINE_MS;
    const char *head, *end = NULL, *first;

    forget(c);
    while (!end && receive(c, until))
        end = memmem(c->in, c->in_len, "\r\n\r\n", 4);
    if (!end || c->in_len < 12)
        fail_msg("no answer: %.*s", (int)c->in_len, (const char *)c->in);
    head = (const char *)c->in;
    first = memmem(head, c->in_len, "\r\n", 2);
    c->status = (int)strtol(head + 9, NULL, 10);
    c->head = hf_str_of(first + 2, (size_t)(end - first));
}

static bool receive_until(struct line *c, const char *text, const char *other, int64_t until)
{
    while (c->in_len == 0 || (!memmem(c->in, c->in_len, text, strlen(text)) &&
                              !memmem(c->in, c->in_len, other, strlen(other)))) {
        if (!receive(c, until))
            return false;
    }
    return true;
}

bool line_until_either(struct line *c, const char *text, const char *other)
{
    return receive_until(c, text, other, now_ms() + 2 * DEADLINE_MS);
}

bool line_until(struct line *c, const char *text)
{
    return line_until_either(c, text, text);
}

bool line_within(struct line *c, const char *text, int64_t ms)
{
    return receive_until(c, text, text, now_ms() + ms);
}

struct hf_str line_field(const struct line *c, const char *name)
{
    const char *p = c->head.ptr, *end = p + c->head.len;
    size_t len = strlen(name);

    while (p < end) {
        const char *next = (const char *)memmem(p, (size_t)(end - p), "\r\n", 2) + 2;

        if ((size_t)(next - p) > len + 3 && memcmp(p, name, len) == 0 && p[len] == ':' &&
            p[len + 1] == ' ')
            return hf_str_of(p + len + 2, (size_t)(next - p) - len - 4);
        p = next;
    }
    return (struct hf_str){0};
}

/* Is it "name: value" CR LF, over and over, without a control character? */
static void check_fields(struct hf_str head)
{
    const char *p = head.ptr, *end = p + head.len;

    while (p < end) {
        const char *next = (const char *)memmem(p, (size_t)(end - p), "\r\n", 2) + 2;
        const char *colon = memchr(p, ':', (size_t)(next - p));

        CHECK(colon && colon > p && colon[1] == ' ' && colon[2] != ' ');
        for (const char *q = p; q < next - 2; q++)
            CHECK(*q >= ' ' && *q != 0x7F && (q >= colon || *q != ' '));
        p = next;
    }
}

static void read_answer(struct line *c, bool has_body)
{
    int64_t until = now_ms() + DEADLINE_MS;
    const char *p, *end = NULL, *line;
    struct hf_str length;
    size_t head_len, wanted;

    forget(c);
    while (!c->in_len || !(end = memmem(c->in, c->in_len, "\r\n\r\n", 4))) {
        if (!receive(c, until))
            fail_msg("no answer: %s", c->broken ? "reset" : c->ended ? "ended" : "nothing came");
    }
    p = (const char *)c->in;
    line = memmem(p, c->in_len, "\r\n", 2);
    CHECK(line - p > 13 && memcmp(p, "HTTP/1.1 ", 9) == 0 && p[12] == ' ');
    head_len = (size_t)(end - p) + 4;
    c->status = (int)strtol(p + 9, NULL, 10);
    CHECK(c->status >= 100 && c->status <= 599);
    c->head = hf_str_of(line + 2, (size_t)(end - line));
    if (c->status == 100) {
        c->head.len = 0;
        wanted = 0;
    } else {
        length = line_field(c, "Content-Length");
        CHECK(length.len > 0 && length.len < 12);
        wanted = has_body ? (size_t)strtoull(length.ptr, NULL, 10) : 0;
    }
    while (c->in_len < head_len + wanted) {
        if (!receive(c, until))
            fail_msg("%zu of %zu bytes of an answer came", c->in_len, head_len + wanted);
    }
    p = (const char *)c->in; /* it may have moved */
    line = memmem(p, c->in_len, "\r\n", 2);
    c->reason = hf_str_of(p + 13, (size_t)(line - p) - 13);
    c->head = hf_str_of(line + 2, c->head.len);
    c->body = hf_str_of(p + head_len, wanted);
    c->used = head_len + wanted;
    check_fields(c->head);
}

void line_read(struct line *c)
{
    read_answer(c, true);
}

void line_read_head(struct line *c)
{
    read_answer(c, false);
}

void line_check(struct line *c, int status, const char *body, const char *file, int place)
{
    struct hf_str type, id, crc;
    char computed[16];

    line_read(c);
    test_check_int(status, c->status, "status", file, place);
    if (body)
        test_check_str(hf_str_from(body), c->body, "body", file, place);
    type = line_field(c, "Content-Type");
    test_check_str(hf_str_from("application/x-amz-json-1.0"), type, "Content-Type", file, place);
    id = line_field(c, "x-amzn-RequestId");
    test_check_int(52, (long long)id.len, "length of the id", file, place);
    crc = line_field(c, "x-amz-crc32");
    snprintf(computed, sizeof(computed), "%u", libdeflate_crc32(0, c->body.ptr, c->body.len));
    test_check_str(hf_str_from(computed), crc, "x-amz-crc32", file, place);
}

void site_check(struct site *site, int status, const char *expected, const char *operation,
                const char *json, const char *file, int place)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct line c;

    line_open(site, &c);
    line_call(&c, operation, json);
    line_check(&c, status, quoted_json(s, expected).ptr, file, place);
    line_close(&c);
    hf_scope_free(s);
}

int site_status(struct site *site, const char *bytes, bool *closes)
{
    struct line c;
    int status = 0;

    line_open(site, &c);
    line_text(&c, bytes);
    if (line_answers(&c)) {
        line_read(&c);
        status = c.status;
    }
    if (closes)
        *closes = line_ends(&c, DEADLINE_MS);
    line_close(&c);
    return status;
}
