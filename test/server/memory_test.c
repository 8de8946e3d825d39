/*
 * server/memory_test.c: a server that gets no memory. Whichever allocation fails: it says so or the
 * connection ends, nothing leaks, and nothing is answered that is not so.
 *
 * The loop runs on the test's own thread, so that the nth allocation is the same one in every run.
 */
#include "help.h"

#include <errno.h>
#include <sys/socket.h>

/* Send all, take what comes until the end; how many answers say 200? */
static int exchange(struct server *server, struct hf_str text)
{
    struct loop *loop = &server->loops[0];
    bool begun = false, ended = false;
    int fds[2], oks = 0;
    size_t at = 0;

    CHECK_INT(0, socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds));
    hf__conn_open(loop, fds[1]);
    for (int turns = 0; !ended; turns++) {
        static char got[1 << 20];
        ssize_t sent = 0, len;

        CHECK(turns < 10000);
        if (at < text.len)
            sent = send(fds[0], text.ptr + at, text.len - at, MSG_NOSIGNAL);
        if (sent < 0 && errno != EAGAIN)
            at = text.len; /* it closed */
        else
            at += sent > 0 ? (size_t)sent : 0;
        if (at == text.len)
            shutdown(fds[0], SHUT_WR);
        uv_run(&loop->uv, UV_RUN_NOWAIT);
        len = recv(fds[0], got, sizeof(got), 0);
        ended = len == 0 || (len < 0 && errno != EAGAIN);
        if (len > 0 && !begun)
            CHECK(len > 9 && memcmp(got, "HTTP/1.1 ", 9) == 0);
        begun = begun || len > 0;
        for (const char *p = got; len > 0; p++, oks++) {
            p = memmem(p, (size_t)(got + len - p), "HTTP/1.1 200 ", 13);
            if (!p)
                break;
        }
    }
    close(fds[0]);
    return oks;
}

static bool is_there(struct hf_scope *s, struct hf_db *db, const char *pk)
{
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(s, db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(s, HF_S("pk", hf_str_from(pk)))},
                         &got));
    return got.item.ptr != NULL;
}

static struct hf_db *open_db(struct hf_scope *s)
{
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     &(struct hf_engine_options){.size = sizeof(struct hf_engine_options),
                                                 .no_upkeep_thread = true},
                     &db));
    make_table(s, db);
    return db;
}

static void sweep(struct test *t, const char *requests, const char *put, int answers)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = open_db(s);

    ALLOC_SWEEP (t, nth) {
        struct server *server;
        enum hf_status status =
            hf__server_open(s, db, &(struct server_options){.env = test_env(t), .loops = 1},
                            &server);

        CHECK(status == HF_OK || status == HF_NOMEM);
        if (status == HF_OK) {
            int oks = exchange(server, hf_str_from(requests));

            ALLOC_SWEEP_STOP(t);
            CHECK(oks <= answers);
            CHECK(t->alloc_failed || oks == answers);
            if (put && oks == answers)
                CHECK(is_there(s, db, put));
            CHECK_INT(1, exchange(server, HF_STR("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")));
            hf__server_close(server);
        }
        ALLOC_SWEEP_STOP(t);
        if (put)
            CHECK_OK(hf_delete_item(
                s, db,
                &(struct hf_delete_item){.table = HF_STR("tab"),
                                         .key = HF_ITEM(s, HF_S("pk", hf_str_from(put)))},
                NULL));
        hf_scope_reset(s);
    }
    hf_db_close(db);
    hf_scope_free(s);
}

TEST(memory, of_operations)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__buf all = {.scope = s};

    hf__buf_put_str(&all, call_text(s, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}"));
    hf__buf_put_str(&all, call_text(s, "ListTables", "{}"));
    hf__buf_put(&all, "", 1);
    sweep(t, (const char *)all.ptr, "a", 2);
    hf_scope_free(s);
}

TEST(memory, of_figures)
{
    sweep(t,
          "GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
          "OPTIONS / HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
          "Access-Control-Request-Headers: a\r\n\r\n",
          NULL, 2);
}

/* A body that comes in many pieces, as it is and in chunks. */
TEST(memory, of_large_requests)
{
    enum { LEN = 300000 };
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf__buf all = {.scope = s};
    char *item = hf_scope_alloc(s, LEN + 1);

    memset(item, 'x', LEN);
    item[LEN] = '\0';
    hf__buf_put_str(&all, call_text(s, "PutItem",
                                    hf_scope_format(s,
                                                    "{'TableName':'tab','Item':{'pk':{'S':'a'},"
                                                    "'x':{'S':'%s'}}}",
                                                    item)
                                        .ptr));
    hf__buf_format(&all, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n{\"x\":\"%s\"}\r\n0\r\n\r\n",
                   POST_FOR("ListTables"), LEN + 8, item);
    hf__buf_put(&all, "", 1);
    sweep(t, (const char *)all.ptr, "a", 2);
    hf_scope_free(s);
}

/* ---- a database whose disk fails ------------------------------------------------------------ */

struct owing {
    struct hf_db db;
    struct hf_db *inner;
};

static enum hf_status owing_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct hf_db *inner = ((struct owing *)db)->inner;
    enum hf_status status = inner->calls->call(s, inner, op, request, response);

    hf__scope_defer_sync(s, 1);
    return status;
}

static enum hf_status owing_sync(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    (void)db;
    (void)ticket;
    return hf__fail(s, HF_IO, "the disk says no");
}

static void owing_close(struct hf_db *db)
{
    (void)db;
}

/* There was no memory for an answer, and then what it would have said turns out to be lost. */
TEST(memory, of_answers_that_are_lost)
{
    static const struct db_calls calls = {.call = owing_call,
                                          .sync = owing_sync,
                                          .close = owing_close};
    struct hf_scope *s = hf_scope_new(NULL);
    struct owing owing = {.db = {.calls = &calls}, .inner = open_db(s)};
    char *value = hf_scope_alloc(s, 5001);
    struct hf_str request = call_text(s, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'a'}}}");

    memset(value, 'x', 5000);
    value[5000] = '\0';
    CHECK_OK(hf_put_item(s, owing.inner,
                         &(struct hf_put_item){.table = HF_STR("tab"),
                                               .item = HF_ITEM(s, HF_S("pk", HF_STR("a")),
                                                               HF_S("v", hf_str_from(value)))},
                         NULL));
    ALLOC_SWEEP (t, nth) {
        struct server *server;
        enum hf_status status =
            hf__server_open(s, &owing.db, &(struct server_options){.env = test_env(t), .loops = 1},
                            &server);

        if (status == HF_OK)
            CHECK_INT(0, exchange(server, request));
        ALLOC_SWEEP_STOP(t);
        if (status == HF_OK)
            hf__server_close(server);
    }
    hf_db_close(owing.inner);
    hf_scope_free(s);
}
