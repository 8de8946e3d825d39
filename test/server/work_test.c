/*
 * server/work_test.c: requests that workers handle, answers in parts, and the budget of both.
 */
#include "gate.h"

#include <holdfast/faults.h>
#include <sys/socket.h>

#include "server/conn/descriptors.h"
#include "server/metrics.h"

enum { ITEM_BYTES = 300 * 1024, ITEMS = 8 };

/* ITEMS items k0, k1, ... each of which is six times as long as JSON. */
static void put_large(struct site *site)
{
    char *value = hf_scope_alloc(site->s, ITEM_BYTES);

    memset(value, 1, ITEM_BYTES);
    for (int i = 0; i < ITEMS; i++)
        CHECK_OK(
            hf_put_item(site->s, site->db,
                        &(struct hf_put_item){
                            .table = HF_STR("tab"),
                            .item = HF_ITEM(site->s, HF_S("pk", hf_scope_format(site->s, "k%d", i)),
                                            HF_S("v", hf_str_of(value, ITEM_BYTES)))},
                        NULL));
}

static struct hf_str batch(struct hf_scope *s)
{
    struct hf__buf keys = {.scope = s};

    for (int i = 0; i < ITEMS; i++)
        hf__buf_format(&keys, "%s{'pk':{'S':'k%d'}}", i ? "," : "", i);
    return hf_scope_format(s, "{'RequestItems':{'tab':{'Keys':[%s]}}}", (const char *)keys.ptr);
}

static size_t count_of(struct hf_str text, const char *part)
{
    size_t count = 0, len = strlen(part);

    for (size_t at = 0; at + len <= text.len; at++) {
        if (text.ptr[at] == part[0] && memcmp(text.ptr + at, part, len) == 0) {
            count++;
            at += len - 1;
        }
    }
    return count;
}

/* Nothing is held by anybody, once all was read; what clients have left behind is carried out. */
static void check_all_given_back(struct site *site)
{
    for (int i = 0; i < 6 * DEADLINE_MS; i++) {
        if (atomic_load(&site->server->budget.output) == 0 &&
            atomic_load(&site->server->budget.input) == 0)
            return;
        sleep_ms(1);
    }
    CHECK_INT(0, atomic_load(&site->server->budget.output));
    CHECK_INT(0, atomic_load(&site->server->budget.input));
}

/* A light request, a long one, a large one and a light one in one piece: answered in their order,
 * each whole, with the checksum of what came. */
TEST(work, answers_keep_their_order)
{
    struct hf__buf all = {0};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1, .workers = 2});
    put_large(&site);
    all.scope = site.s;
    hf__buf_put_str(&all,
                    call_text(site.s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'no'}}}"));
    hf__buf_put_str(&all, call_text(site.s, "BatchGetItem", batch(site.s).ptr));
    hf__buf_put_str(&all,
                    call_text(site.s, "BatchExecuteStatement",
                              "{'Statements':[{'Statement':'SELECT * FROM no WHERE pk=1'}]}"));
    hf__buf_put_str(&all, call_text(site.s, "ListTables", "{}"));
    for (int round = 0; round < 3; round++) {
        line_open(&site, &c);
        CHECK(line_send(&c, all.ptr, all.len));
        CHECK_ANSWER(&c, 200, "{}");
        line_read(&c);
        CHECK_INT(200, c.status);
        CHECK_INT(ITEMS * ITEM_BYTES, count_of(c.body, "\\u0001"));
        CHECK_INT(ITEMS, count_of(c.body, "{\"pk\":{\"S\":\"k"));
        line_read(&c);
        CHECK_INT(200, c.status);
        CHECK(contains(c.body, "{\"Responses\":[{\"Error\":"));
        CHECK_ANSWER(&c, 200, "{\"TableNames\":[\"tab\"]}");
        line_close(&c);
    }
    check_all_given_back(&site);
    site_close(&site);
}

/* The same answer in parts, whatever the parts are. */
TEST(work, an_answer_in_parts_is_the_answer)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    put_large(&site);
    line_open(&site, &c);
    line_call(&c, "BatchGetItem", batch(site.s).ptr);
    CHECK_ANSWER(&c, 200, NULL); /* type, id and checksum */
    CHECK(c.body.len > 6 * ITEMS * ITEM_BYTES);
    CHECK(hf__wire_json_valid(c.body));
    CHECK(atomic_load(&site.bytes) < 64 * 1024 * 1024);
    line_close(&c);
    check_all_given_back(&site);
    site_close(&site);
}

/* Clients that go while a worker has their request, or in the middle of its answer. */
TEST(work, clients_that_go)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 2});
    put_large(&site);
    for (int i = 0; i < 30; i++) {
        line_open_small(&site, &c, 4096);
        line_call(&c, "BatchGetItem", batch(site.s).ptr);
        if (i % 3 == 1)
            sleep_ms(i);
        if (i % 2)
            line_reset(&c);
        else
            line_close(&c);
    }
    check_all_given_back(&site);
    CHECK_CALL(&site, 200, "{'TableNames':['tab']}", "ListTables", "{}");
    site_close(&site);
}

/* Readers that do not read are closed for others, and never is more held than may be. */
TEST(work, silent_readers_make_room)
{
    enum { READERS = 6, MEMORY = 8 * 1024 * 1024 };
    struct line readers[READERS], c;
    struct site site;

    site_open(t, &site, &(struct server_options){.loops = 1, .memory_max = MEMORY});
    put_large(&site);
    for (int i = 0; i < READERS; i++) {
        line_open_small(&site, &readers[i], 4096);
        line_call(&readers[i], "BatchGetItem", batch(site.s).ptr);
    }
    line_open(&site, &c);
    line_call(&c, "BatchGetItem", batch(site.s).ptr);
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK(atomic_load(&site.server->budget.output) <= site.server->budget.output_max);
    CHECK(site_metric(&site, "holdfast_connections_evicted_total") > 0);
    line_close(&c);
    for (int i = 0; i < READERS; i++)
        line_close(&readers[i]);
    check_all_given_back(&site);
    site_close(&site);
}

/* A server that stops lets long requests come to their end. */
TEST(work, stopping_waits_for_workers)
{
    struct gated gated;
    struct site site;
    struct line c;

    gate_site(t, &gated, &site,
              &(struct server_options){.loops = 1, .workers = 1, .drain_ms = 4 * DEADLINE_MS});
    atomic_store(&gated.held, true);
    line_open(&site, &c);
    line_call(
        &c, "ExecuteTransaction",
        "{'TransactStatements':[{'Statement':'SELECT * FROM tab WHERE pk=\\u0027old\\u0027'}]}");
    while (atomic_load(&site.server->work.running) == 0)
        sleep_ms(1);
    hf__server_stop(site.server);
    sleep_ms(20); /* in which it would close what it does not wait for */
    atomic_store(&gated.held, false);
    CHECK_ANSWER(&c, 200, "{\"Responses\":[{\"Item\":{\"pk\":{\"S\":\"old\"}}}]}");
    line_close(&c);
    gate_close(&gated, &site);
}

/* What needs more than there can be takes no more than its part: others have the rest. */
TEST(work, large_needs_leave_room_for_answers)
{
    enum { MEMORY = 32 * 1024 * 1024 };
    struct gated gated;
    struct site site;
    struct line c;

    gate_site(t, &gated, &site,
              &(struct server_options){.loops = 1, .workers = 1, .memory_max = MEMORY});
    atomic_store(&gated.held, true);
    line_open(&site, &c);
    line_call(
        &c, "ExecuteTransaction",
        "{'TransactStatements':[{'Statement':'SELECT * FROM tab WHERE pk=\\u0027old\\u0027'}]}");
    while (atomic_load(&site.server->work.running) == 0)
        sleep_ms(1);
    CHECK(atomic_load(&site.server->budget.output) > 0);
    CHECK(atomic_load(&site.server->budget.output) <= site.server->budget.output_max / 4 * 3);
    atomic_store(&gated.held, false);
    CHECK_ANSWER(&c, 200, "{\"Responses\":[{\"Item\":{\"pk\":{\"S\":\"old\"}}}]}");
    line_close(&c);
    check_all_given_back(&site);
    gate_close(&gated, &site);
}

/* A fault strikes a request once, also when its answer takes long to pack. */
TEST(work, a_fault_strikes_once)
{
    struct hf_fault fault = {.kind = HF_FAULT_UNPROCESSED, .count = 1};
    struct hf_str body;
    struct hf_bytes plain;
    struct site site;
    struct line c;

    site_open_admin(t, &site);
    put_large(&site);
    CHECK_OK(hf_faulty_set(site.s, site.db, &fault, 1));
    body = quoted_json(site.s, batch(site.s).ptr);
    line_open(&site, &c);
    line_text(&c,
              hf_scope_format(site.s, "%sAccept-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n%s",
                              POST_FOR("BatchGetItem"), body.len, body.ptr)
                  .ptr);
    line_read(&c);
    CHECK_INT(200, c.status);
    CHECK_STR("gzip", line_field(&c, "Content-Encoding"));
    CHECK_OK(hf__http_unpack(site.s, HF_STR("gzip"), hf_bytes_of(c.body.ptr, c.body.len),
                             64 * 1024 * 1024, &plain));
    CHECK_INT(ITEMS / 2 * ITEM_BYTES,
              count_of(hf_str_of((const char *)plain.ptr, plain.len), "\\u0001"));
    line_close(&c);
    site_close(&site);
}

/* ---- a loop that the test runs by hand ------------------------------------------------------- */

struct by_hand {
    struct hf_scope *s;
    struct hf_db *db;
    struct server *server;
    struct loop *loop;
    int fd; /* the client's */
};

static void hand_open(struct test *t, struct by_hand *h)
{
    int fds[2];

    h->s = hf_scope_new(test_env(t));
    CHECK_OK(hf_open(h->s, HF_STR("memory:"),
                     &(struct hf_engine_options){.size = sizeof(struct hf_engine_options),
                                                 .no_upkeep_thread = true},
                     &h->db));
    CHECK_OK(hf__server_open(h->s, h->db, &(struct server_options){.env = test_env(t), .loops = 1},
                             &h->server));
    h->loop = &h->server->loops[0];
    CHECK_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    hf__conn_open(h->loop, fds[1]);
    h->fd = fds[0];
}

static void hand_close(struct by_hand *h)
{
    hf__server_close(h->server);
    close(h->fd);
    hf_db_close(h->db);
    hf_scope_free(h->s);
}

/* A server that is closed before its loop has taken back what a worker has done. */
TEST(work, closed_before_it_is_taken_back)
{
    struct hf_str text;
    struct by_hand h;

    hand_open(t, &h);
    text = call_text(h.s, "BatchExecuteStatement", "{'Statements':[]}");
    CHECK_INT(text.len, send(h.fd, text.ptr, text.len, MSG_NOSIGNAL));
    for (int i = 0; i < 100 && !h.loop->done; i++)
        uv_run(&h.loop->uv, UV_RUN_NOWAIT);
    CHECK(h.loop->done != NULL);
    hand_close(&h);
}

/* Head and body come in two records of TLS, and in one read: "100 Continue" has to leave before a
 * worker has the request. A server that stops answers it all the same. */
TEST(work, behind_other_bytes_when_the_server_stops)
{
    const char body[] = "{\"Statements\":[]}";
    char head[] = POST_FOR("BatchExecuteStatement") "Expect: 100-continue\r\n"
                                                    "Content-Length: 17\r\n\r\n";
    char got[4096] = "";
    struct by_hand h;
    struct conn *conn;

    hand_open(t, &h);
    conn = h.loop->conns;
    h.loop->draining = true;
    h.loop->drain_ms = uv_now(&h.loop->uv) + 10000;
    hf__conn_consume(conn, (uint8_t *)head, sizeof(head) - 1);
    hf__buf_put(&conn->in, body, sizeof(body) - 1);
    hf__conn_consume(conn, conn->in.ptr, conn->in.len);
    for (size_t i = 0, len = 0; i < 100; i++) {
        ssize_t more = recv(h.fd, got + len, sizeof(got) - 1 - len, 0);

        len += more > 0 ? (size_t)more : 0;
        uv_run(&h.loop->uv, UV_RUN_NOWAIT);
    }
    CHECK(contains(hf_str_from(got), "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 400 "));
    CHECK(contains(hf_str_from(got), "Connection: close\r\n"));
    hand_close(&h);
}

TEST(descriptors, connections_get_what_the_database_does_not_need)
{
    CHECK_INT(20000 - 30 - DESCRIPTORS_RESERVE, hf__descriptors_for_connections(20000, 30));
    CHECK_INT(1024 - 24 - DESCRIPTORS_RESERVE, hf__descriptors_for_connections(1024, 24));
    CHECK_INT(58, hf__descriptors_for_connections(256, 24)); /* a quarter */
    CHECK_INT(8, hf__descriptors_for_connections(56, 24));
    CHECK_INT(0, hf__descriptors_for_connections(55, 24));
    CHECK_INT(0, hf__descriptors_for_connections(10, 24));
    CHECK(hf__descriptors_for_connections(UINT64_MAX, 24) == UINT32_MAX);
    CHECK(hf__descriptors_open() > 3);
    CHECK(hf__descriptors_limit() > hf__descriptors_open());
}

TEST(budget, shares)
{
    struct budget budget;
    const uint64_t mib = 1024 * 1024;

    hf__budget_init(&budget, 100 * mib, 0);
    CHECK_INT(50 * mib, budget.input_max);
    CHECK_INT(50 * mib, budget.output_max);
    hf__budget_init(&budget, 100 * mib, 20 * mib);
    CHECK_INT(20 * mib, budget.input_max);
    CHECK_INT(80 * mib, budget.output_max);
    hf__budget_init(&budget, 100 * mib, 80 * mib); /* more than half: the whole grows */
    CHECK_INT(80 * mib, budget.input_max);
    CHECK_INT(80 * mib, budget.output_max);
    hf__budget_init(&budget, 0, 0);
    CHECK(budget.input_max >= 16 * mib && budget.input_max <= 128 * mib);
    CHECK(hf__memory_limit() > 0 && hf__memory_limit() < UINT64_MAX);
}
