/*
 * server/conn_test.c: the states of a connection: the table of moves, what it forbids, and that
 * clients can bring a connection into every state there is.
 *
 * That what a state says is true, conn_check() of server/conn/conn.c checks in all tests of this folder.
 */
#include "gate.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/assert_held.h"

/* ---- the table ------------------------------------------------------------------------------ */

TEST(conn, table_of_moves)
{
    uint32_t reached = 1U << CONN_NEW, before;

    (void)t;
    for (unsigned from = 0; from < CONN_STATES; from++) {
        CHECK(!hf__conn_may_move(from, CONN_NEW));
        CHECK(from == CONN_CLOSED || hf__conn_may_move(from, CONN_CLOSED));
        CHECK(hf__conn_may_move(from, from) == (from == CONN_NEXT_PART));
        CHECK(!hf__conn_may_move(CONN_CLOSED, from));
        CHECK(!hf__conn_may_move(CONN_LINGER, from) || from == CONN_CLOSED);
        /* Who waits for the disk, a fault or a worker is not read from, nor sent to, before. */
        CHECK(!hf__conn_may_move(CONN_WORKING, from) || from == CONN_READY || from == CONN_CLOSED);
        CHECK(!hf__conn_may_move(CONN_DELAYED, from) || from == CONN_READY || from == CONN_CLOSED);
        CHECK(!hf__conn_may_move(from, CONN_SYNCING) || from == CONN_READY);
    }
    do {
        before = reached;
        for (unsigned from = 0; from < CONN_STATES; from++) {
            for (unsigned to = 0; to < CONN_STATES; to++) {
                if (reached >> from & 1 && hf__conn_may_move(from, to))
                    reached |= 1U << to;
            }
        }
    } while (reached != before);
    CHECK_INT((1U << CONN_STATES) - 1, reached);
}

/* Does this move abort? In a process of its own, and without a word. */
static bool move_aborts(enum conn_state from, enum conn_state to)
{
    struct loop loop = {0};
    struct conn conn = {.loop = &loop, .state = from, .holders = 1};
    int status, quiet;
    pid_t pid = fork();

    if (pid == 0) {
        setrlimit(RLIMIT_CORE, &(struct rlimit){0});
        quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(quiet, STDERR_FILENO);
        signal(SIGABRT, SIG_DFL);
        hf__conn_move(&conn, to);
        _exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFSIGNALED(status) &&
           WTERMSIG(status) == SIGABRT;
}

CHILD(forbidden_moves)
{
    (void)args;
    for (unsigned from = 0; from < CONN_STATES; from++) {
        for (unsigned to = 0; to < CONN_STATES; to++) {
            if (!hf__conn_may_move(from, to) && !move_aborts(from, to)) {
                printf("%u to %u\n", from, to);
                return 1;
            }
        }
    }
    return 0;
}

TEST(conn, forbidden_moves_abort)
{
    int status, out;
    pid_t pid = test_child("forbidden_moves", (const char *[]){NULL}, &out);

    (void)t;
    CHECK_INT(pid, waitpid(pid, &status, 0));
    close(out);
    CHECK(WIFEXITED(status));
    CHECK_INT(0, WEXITSTATUS(status));
}

/* ---- moves that clients cause --------------------------------------------------------------- */

enum { LARGE = 390 * 1024, LARGE_ITEMS = 4, PIPELINED = 12 };

#define GET_LARGE "{'TableName':'tab','Key':{'pk':{'S':'l0'}}}"

/* A request in pieces: IDLE, HEAD, BODY. */
static void send_slowly(struct site *site, struct line *c)
{
    static const char *pieces[] = {POST_FOR("ListTables"), "Content-Length: 2\r\n\r\n", "{", "}"};

    line_open(site, c);
    for (size_t i = 0; i < ARRAY_LEN(pieces); i++) {
        line_text(c, pieces[i]);
        sleep_ms(20);
    }
    CHECK_ANSWER(c, 200, NULL);
}

/* More answers than are made at a time, to a client that reads them, or waits before it does. */
static void pipeline_large(struct site *site, bool reads_late)
{
    struct line c;

    if (reads_late)
        line_open_small(site, &c, 4096);
    else
        line_open(site, &c);
    for (int i = 0; i < PIPELINED; i++)
        line_call(&c, "GetItem", GET_LARGE);
    if (reads_late)
        sleep_ms(100);
    for (int i = 0; i < PIPELINED; i++)
        CHECK_ANSWER(&c, 200, NULL);
    line_close(&c);
}

/* An answer that a worker makes in parts. */
static void read_in_parts(struct site *site, struct line *c)
{
    line_call(c, "BatchGetItem",
              "{'RequestItems':{'tab':{'Keys':[{'pk':{'S':'l0'}},{'pk':{'S':'l1'}},"
              "{'pk':{'S':'l2'}},{'pk':{'S':'l3'}}]}}}");
    CHECK_ANSWER(c, 200, NULL);
    CHECK(c->body.len > (size_t)LARGE_ITEMS * LARGE);
    (void)site;
}

TEST(conn, every_state_is_reached)
{
    const uint32_t all = (1U << CONN_STATES) - 1, tls = 1U << CONN_HANDSHAKE;
    uint32_t reached = 1U << CONN_NEW, *moves;
    struct gated gated;
    struct site site;
    struct line c;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 1, .console = true});
    for (int i = 0; i < LARGE_ITEMS; i++)
        site_put(&site, (char[]){'l', (char)('0' + i), '\0'}, LARGE);
    line_open(&site, &c);
    line_text(&c, "GET /console/api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_begin(&c); /* WATCHING */
    line_close(&c);
    send_slowly(&site, &c);
    send_put(&c, "a"); /* SYNCING */
    CHECK_ANSWER(&c, 200, "{}");
    atomic_store(&gated.delay_ms, 5);
    send_get(&c, "old"); /* DELAYED */
    CHECK_ANSWER(&c, 200, NULL);
    atomic_store(&gated.delay_ms, 0);
    pipeline_large(&site, false); /* BACKLOG */
    pipeline_large(&site, true);  /* SENDING */
    read_in_parts(&site, &c);     /* WORKING, NEXT_PART */
    line_text(&c, "nonsense\r\n\r\n");
    line_read(&c); /* LINGER */
    CHECK_INT(400, c.status);
    line_close(&c);
    hf__server_stop(site.server);
    site_join(&site);

    moves = site.server->loops[0].moves;
    for (unsigned from = 0; from < CONN_STATES; from++) {
        for (unsigned to = 0; to < CONN_STATES; to++)
            CHECK(!(moves[from] >> to & 1) || hf__conn_may_move(from, to));
        reached |= moves[from];
    }
    if (DEV_CHECKS) /* tls_test.c has the handshake */
        CHECK_INT(all & ~tls, reached);
    gate_close(&gated, &site);
}
