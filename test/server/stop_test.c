/*
 * server/stop_test.c: how a server ends: what is under way is finished, within a time.
 */
#include "help.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>

static void check_alive(struct line *c)
{
    line_text(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(c);
    CHECK_STR("alive\n", c->body);
}

static int try_connect(const struct site *site)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(site->port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    int error;

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    error = connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 ? 0 : errno;
    close(fd);
    return error;
}

static void wait_for_stop(struct site *site)
{
    for (int64_t until = now_ms() + DEADLINE_MS; atomic_load(&site->stops) == 0;) {
        CHECK(now_ms() < until);
        sleep_ms(1);
    }
}

TEST(stop, idle_connections_do_not_delay_it)
{
    struct line fresh, used;
    struct site site;
    int64_t begun;

    site_open(t, &site, &(struct server_options){.drain_ms = 4 * DEADLINE_MS, .loops = 2});
    line_open(&site, &fresh);
    line_open(&site, &used);
    check_alive(&used);
    begun = now_ms();
    hf__server_stop(site.server);
    hf__server_stop(site.server); /* once is enough, twice is allowed */
    site_join(&site);
    CHECK(now_ms() - begun < 2 * DEADLINE_MS);
    CHECK_INT(1, atomic_load(&site.stops));
    CHECK(line_ends(&fresh, DEADLINE_MS));
    CHECK(line_ends(&used, DEADLINE_MS));
    line_close(&fresh);
    line_close(&used);
    site_close(&site);
}

/* A request that has begun is finished, and its connection closed; nobody new gets in. */
/* At the moment at which the server stops, and has read nothing of it. */
static void ask_at_stop(void *user)
{
    struct line *c = user;

    line_text(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
}

TEST(stop, what_is_on_its_way_on_an_idle_connection_is_answered)
{
    struct line c;
    struct site site;
    int64_t begun;

    site_open(t, &site,
              &(struct server_options){
                  .drain_ms = 4 * DEADLINE_MS, .loops = 1, .on_stop = ask_at_stop, .user = &c});
    line_open(&site, &c);
    check_alive(&c);
    begun = now_ms();
    hf__server_stop(site.server);
    line_read(&c);
    CHECK_STR("alive\n", c.body);
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(line_ends(&c, DEADLINE_MS));
    site_join(&site);
    CHECK(now_ms() - begun < 2 * DEADLINE_MS);
    line_close(&c);
    site_close(&site);
}

TEST(stop, lets_requests_finish)
{
    struct hf_str put;
    struct line c, head;
    struct site site;
    int64_t begun;

    site_open(t, &site, &(struct server_options){.drain_ms = 4 * DEADLINE_MS, .loops = 2});
    put = call_text(site.s, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'late'}}}");
    line_open(&site, &c);
    check_alive(&c);
    line_send(&c, put.ptr, put.len - 3);
    line_open(&site, &head);
    check_alive(&head);
    line_text(&head, "GET /ready");
    sleep_ms(100);
    begun = now_ms();
    hf__server_stop(site.server);
    wait_for_stop(&site);
    CHECK_INT(ECONNREFUSED, try_connect(&site));
    sleep_ms(100);
    line_send(&c, put.ptr + put.len - 3, 3);
    CHECK_ANSWER(&c, 200, "{}");
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(line_ends(&c, DEADLINE_MS));
    line_text(&head, "z HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&head);
    CHECK_INT(503, head.status);
    CHECK_STR("stopping\n", head.body);
    CHECK_STR("close", line_field(&head, "Connection"));
    CHECK(line_ends(&head, DEADLINE_MS));
    line_close(&c);
    line_close(&head);
    site_join(&site);
    CHECK(now_ms() - begun < 2 * DEADLINE_MS);
    CHECK(site_has(&site, "late"));
    site_close(&site);
}

/* An answer that is being sent is sent to its end, and then nothing is waited for. */
TEST(stop, lets_answers_arrive)
{
    int fd = listen_small(4096);
    struct site site;
    struct line c;
    int64_t begun;

    site_open(t, &site,
              &(struct server_options){.sockets = &fd,
                                       .sockets_len = 1,
                                       .drain_ms = 4 * DEADLINE_MS});
    site_put(&site, "big", 390000);
    line_open_small(&site, &c, 4096);
    line_call(&c, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    sleep_ms(100);
    begun = now_ms();
    hf__server_stop(site.server);
    wait_for_stop(&site);
    sleep_ms(50);
    CHECK_ANSWER(&c, 200, NULL);
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    site_join(&site);
    CHECK(now_ms() - begun < 2 * DEADLINE_MS);
    site_close(&site);
    close(fd);
}

/* Requests that were sent ahead are answered too, those that came. */
TEST(stop, lets_pipelines_finish)
{
    enum { COUNT = 30 };
    struct hf__buf all = {0};
    int fd = listen_small(4096);
    struct site site;
    struct line c;
    int64_t begun;

    site_open(t, &site,
              &(struct server_options){.sockets = &fd,
                                       .sockets_len = 1,
                                       .drain_ms = 4 * DEADLINE_MS});
    site_put(&site, "big", 390000);
    all.scope = site.s;
    for (int i = 0; i < COUNT; i++)
        hf__buf_put_str(&all, call_text(site.s, "GetItem",
                                        "{'TableName':'tab','Key':{'pk':{'S':'big'}}}"));
    line_open_small(&site, &c, 4096);
    line_send(&c, all.ptr, all.len);
    sleep_ms(100);
    begun = now_ms();
    hf__server_stop(site.server);
    wait_for_stop(&site);
    for (int i = 0; line_answers(&c); i++) {
        CHECK(i < COUNT);
        CHECK_ANSWER(&c, 200, NULL);
        if (line_field(&c, "Connection").ptr)
            break; /* from here on they were not handled */
    }
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    site_join(&site);
    CHECK(now_ms() - begun < 2 * DEADLINE_MS);
    site_close(&site);
    close(fd);
}

/* Who does not finish in time is cut off. */
TEST(stop, has_a_deadline)
{
    struct line half, reader;
    int fd = listen_small(4096);
    struct site site;
    int64_t begun;

    site_open(t, &site,
              &(struct server_options){.sockets = &fd, .sockets_len = 1, .drain_ms = 400});
    site_put(&site, "big", 390000);
    line_open(&site, &half);
    line_text(&half, POST_FOR("ListTables") "Content-Length: 100\r\n\r\n{");
    line_open_small(&site, &reader, 4096);
    line_call(&reader, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'big'}}}");
    sleep_ms(100);
    begun = now_ms();
    hf__server_stop(site.server);
    site_join(&site);
    CHECK(now_ms() - begun >= 350 && now_ms() - begun < DEADLINE_MS);
    CHECK(line_ends(&half, DEADLINE_MS));
    CHECK(line_rest(&reader, DEADLINE_MS).len < 390000);
    CHECK(reader.ended);
    line_close(&half);
    line_close(&reader);
    site_close(&site);
    close(fd);
}

/* Stopped before it ran: hf__server_run() returns at once. */
TEST(stop, may_come_before_the_run)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_engine_options engine = {.size = sizeof(engine),
                                       .env = test_env(t),
                                       .no_upkeep_thread = true};
    struct server *server;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), &engine, &db));
    CHECK_OK(
        hf__server_open(s, db, &(struct server_options){.env = test_env(t), .loops = 2}, &server));
    CHECK(hf__server_port(server) > 0);
    hf__server_stop(server);
    CHECK_OK(hf__server_run(s, server));
    hf__server_close(server);
    CHECK_OK(hf__server_open(s, db, &(struct server_options){.env = test_env(t)}, &server));
    hf__server_close(server); /* and one that never ran */
    hf_db_close(db);
    hf_scope_free(s);
}

struct visitor {
    uint16_t port;
    atomic_bool enough;
    pthread_t thread;
};

/* Connect, ask, leave, over and over; what comes of it does not matter. */
static void *visit(void *user)
{
    static const char request[] = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    struct visitor *visitor = user;
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(visitor->port)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    while (!atomic_load(&visitor->enough)) {
        int fds[8];

        for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
            fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(fds[i], (struct sockaddr *)&to, sizeof(to)) == 0)
                (void)!send(fds[i], request, sizeof(request) - 1, MSG_NOSIGNAL);
        }
        for (size_t i = 0; i < ARRAY_LEN(fds); i++)
            close(fds[i]);
    }
    return NULL;
}

/* Whatever is on its way between listener and loops when it stops is closed with the rest. */
TEST(stop, may_come_while_connections_come)
{
    for (int i = 0; i < 15; i++) {
        struct visitor visitor = {0};
        struct site site;

        site_open(t, &site, &(struct server_options){.loops = 3, .drain_ms = 3000});
        visitor.port = site.port;
        CHECK_INT(0, pthread_create(&visitor.thread, NULL, visit, &visitor));
        sleep_ms(i);
        hf__server_stop(site.server);
        site_join(&site);
        atomic_store(&visitor.enough, true);
        pthread_join(visitor.thread, NULL);
        site_close(&site);
    }
}

/* While it waits for descriptors to take a connection with, it can be stopped as well. */
TEST(stop, may_come_while_there_are_no_descriptors)
{
    enum { MOST = 512 };
    int taken[MOST], len = 0, fd;
    struct sockaddr_in to = {.sin_family = AF_INET};
    struct rlimit before, few;
    struct site site;
    struct line half; /* so that stopping takes its time */

    site_open(t, &site, &(struct server_options){.loops = 1, .drain_ms = 600});
    line_open(&site, &half);
    check_alive(&half);
    line_text(&half, "GET /livez");
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    CHECK_INT(0, getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    few.rlim_cur = MOST / 2;
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &few));
    while (len < MOST && (taken[len] = dup(fd)) >= 0)
        len++;
    to.sin_port = htons(site.port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    CHECK_INT(0, connect(fd, (struct sockaddr *)&to, sizeof(to)));
    sleep_ms(50);
    hf__server_stop(site.server);
    sleep_ms(400); /* the time when it would try again */
    while (len > 0)
        close(taken[--len]);
    close(fd);
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &before));
    line_close(&half);
    site_close(&site);
}

/* With descriptors again, it takes the connections that waited. */
TEST(stop, is_not_what_a_lack_of_descriptors_does)
{
    enum { MOST = 512 };
    int taken[MOST], len = 0;
    struct rlimit before, few;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    c = (struct line){.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    CHECK_INT(0, getrlimit(RLIMIT_NOFILE, &before));
    few = before;
    few.rlim_cur = MOST / 2;
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &few));
    while (len < MOST && (taken[len] = dup(c.fd)) >= 0)
        len++;
    {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(site.port)};

        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        CHECK_INT(0, connect(c.fd, (struct sockaddr *)&to, sizeof(to)));
    }
    sleep_ms(50);
    while (len > 0)
        close(taken[--len]);
    CHECK_INT(0, setrlimit(RLIMIT_NOFILE, &before));
    check_alive(&c);
    line_close(&c);
    site_close(&site);
}
