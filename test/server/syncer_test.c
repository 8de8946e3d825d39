/*
 * server/syncer_test.c: loops that go on while a sync runs beside them. What commit_test.c shows
 * holds here as well; besides, nobody waits for a sync that is not for him, and what a connection
 * sends while its answer waits is answered behind it.
 */
#include "gate.h"

#include <unistd.h>

enum { LINES = 3 };

/* One loop, with the syncer, and connections that it knows: with one alone it needs none. */
static void open_beside(struct test *t, struct gated *gated, struct site *site, struct line *lines)
{
    gate_site(t, gated, site, &(struct server_options){.loops = 1, .sync_beside = true});
    for (int i = 0; i < LINES; i++) {
        line_open(site, &lines[i]);
        send_get(&lines[i], "none");
        CHECK_ANSWER(&lines[i], 200, "{}");
    }
    gate_set(gated, true);
}

/* The same with a write whose answer waits at the closed gate. */
static void open_waiting(struct test *t, struct gated *gated, struct site *site, struct line *lines)
{
    open_beside(t, gated, site, lines);
    send_put(&lines[0], "a");
    gate_wait(gated, 1);
}

/* All that was sent until now has been read: a connection that comes later has been answered. */
static void let_loop_read(struct site *site)
{
    struct line late;

    line_open(site, &late);
    line_text(&late, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&late);
    CHECK_INT(200, late.status);
    line_close(&late);
}

static void close_beside(struct gated *gated, struct site *site, struct line *lines)
{
    for (int i = 0; i < LINES; i++)
        line_close(&lines[i]);
    gate_close(gated, site);
}

TEST(syncer, others_are_served_while_a_sync_runs)
{
    struct line c[LINES];
    struct gated gated;
    struct site site;

    open_waiting(t, &gated, &site, c);
    send_get(&c[1], "old");
    CHECK_ANSWER(&c[1], 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    let_loop_read(&site);
    CHECK(is_silent(&c[0]));
    CHECK(hf__store_durable(gated.store) < hf__store_written(gated.store));
    gate_set(&gated, false);
    CHECK_ANSWER(&c[0], 200, "{}");
    CHECK(hf__store_durable(gated.store) == hf__store_written(gated.store));
    close_beside(&gated, &site, c);
}

/* Writes, and reads of what is not durable, that come while a sync runs wait for the next one; all
 * of them for the same. */
TEST(syncer, what_comes_during_a_sync_shares_the_next)
{
    struct line c[LINES];
    struct gated gated;
    struct site site;

    open_waiting(t, &gated, &site, c);
    CHECK_INT(1, atomic_load(&gated.syncs));
    send_put(&c[1], "b");
    send_get(&c[2], "a");
    let_loop_read(&site);
    CHECK(is_silent(&c[1]));
    CHECK(is_silent(&c[2]));
    gate_let_one_pass(&gated);
    CHECK_ANSWER(&c[0], 200, "{}");
    gate_wait(&gated, 1);
    CHECK_INT(2, atomic_load(&gated.syncs));
    CHECK(is_silent(&c[1]));
    gate_set(&gated, false);
    CHECK_ANSWER(&c[1], 200, "{}");
    CHECK_ANSWER(&c[2], 200, "{\"Item\":{\"pk\":{\"S\":\"a\"}}}");
    CHECK_INT(2, atomic_load(&gated.syncs));
    CHECK_INT(3, site_metric(&site, "holdfast_answers_committed_total"));
    close_beside(&gated, &site, c);
}

/* Requests behind one that waits: in one piece with it, later, and in pieces. None is handled
 * before the first is answered, and the answers come in order. */
TEST(syncer, requests_behind_one_that_waits_are_answered_in_order)
{
    static const char half[] = "GET /livez HTTP/1.1\r\nHost: loc", rest[] = "alhost\r\n\r\n";
    struct line c[LINES];
    struct gated gated;
    struct site site;
    unsigned calls;

    open_beside(t, &gated, &site, c);
    calls = atomic_load(&gated.calls);
    send_put(&c[0], "a");
    gate_wait(&gated, 1);
    CHECK_INT(calls + 1, atomic_load(&gated.calls));
    send_get(&c[0], "old");
    send_put(&c[0], "b");
    line_text(&c[0], half);
    CHECK(is_silent(&c[0]));
    CHECK_INT(calls + 1, atomic_load(&gated.calls));
    send_get(&c[1], "old"); /* which shows that the loop has had an iteration since */
    CHECK_ANSWER(&c[1], 200, NULL);
    gate_let_one_pass(&gated);
    CHECK_ANSWER(&c[0], 200, "{}");
    gate_wait(&gated, 1); /* b */
    CHECK_INT(calls + 4, atomic_load(&gated.calls));
    line_text(&c[0], rest);
    gate_set(&gated, false);
    CHECK_ANSWER(&c[0], 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    CHECK_ANSWER(&c[0], 200, "{}");
    line_read(&c[0]);
    CHECK_INT(200, c[0].status);
    send_get(&c[0], "b");
    CHECK_ANSWER(&c[0], 200, "{\"Item\":{\"pk\":{\"S\":\"b\"}}}");
    close_beside(&gated, &site, c);
}

/* The beginning of the next request came with the one that waits, its end meanwhile; and then
 * nothing more will come. */
TEST(syncer, a_request_that_is_completed_meanwhile_and_then_the_end)
{
    struct line c[LINES];
    struct gated gated;
    struct hf_scope *s;
    struct site site;
    struct hf_str text;

    open_beside(t, &gated, &site, c);
    s = hf_scope_new(test_env(t));
    text = hf_scope_format(s, "%sGET /livez HTTP/1.1\r\nHo", call_text(s, "PutItem", PUT_A).ptr);
    line_text(&c[0], text.ptr);
    hf_scope_free(s);
    gate_wait(&gated, 1);
    line_text(&c[0], "st: localhost\r\n\r\n");
    line_finish_sending(&c[0]);
    CHECK(is_silent(&c[0]));
    gate_set(&gated, false);
    CHECK_ANSWER(&c[0], 200, "{}");
    line_read(&c[0]);
    CHECK_INT(200, c[0].status);
    CHECK(line_ends(&c[0], DEADLINE_MS));
    close_beside(&gated, &site, c);
}

/* Who is gone before the sync is over gets nothing, and who only says that he sends no more does.
 */
TEST(syncer, clients_go_while_their_answers_wait)
{
    struct line c[LINES];
    struct gated gated;
    struct site site;

    open_waiting(t, &gated, &site, c);
    send_put(&c[1], "b");
    line_finish_sending(&c[1]);
    let_loop_read(&site);
    CHECK(is_silent(&c[1]));
    line_reset(&c[0]);
    send_get(&c[2], "old"); /* on a loop that has noticed */
    CHECK_ANSWER(&c[2], 200, NULL);
    gate_set(&gated, false);
    CHECK_ANSWER(&c[1], 200, "{}");
    CHECK(line_ends(&c[1], DEADLINE_MS));
    send_get(&c[2], "a");
    CHECK_ANSWER(&c[2], 200, "{\"Item\":{\"pk\":{\"S\":\"a\"}}}");
    close_beside(&gated, &site, c);
}

/* A failed sync is told to those who waited for it, and not to those who waited for one before. */
TEST(syncer, a_failed_sync_is_a_500_for_those_who_waited_for_it)
{
    struct line c[LINES];
    struct gated gated;
    struct site site;

    open_waiting(t, &gated, &site, c);
    send_put(&c[1], "b");
    let_loop_read(&site);
    CHECK(is_silent(&c[1]));
    send_get(&c[2], "b");
    let_loop_read(&site);
    CHECK(is_silent(&c[2]));
    gate_let_one_pass(&gated);
    CHECK_ANSWER(&c[0], 200, "{}");
    gate_wait(&gated, 1);
    atomic_store(&gated.fails, true);
    gate_set(&gated, false);
    for (int i = 1; i < LINES; i++) {
        CHECK_ANSWER(&c[i], 500, NULL);
        CHECK(contains(c[i].body, "InternalServerError"));
        CHECK(line_ends(&c[i], DEADLINE_MS));
    }
    send_get(&c[0], "old");
    CHECK_ANSWER(&c[0], 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    atomic_store(&gated.fails, false);
    close_beside(&gated, &site, c);
}

/* Time that the disk takes is not the client's: neither between two requests, nor for one whose
 * body is not sent because the word to do so waits; with the syncer, and on a connection alone. */
static void check_limits(struct test *t, int lines)
{
    static const char head[] =
        POST_FOR("ListTables") "Expect: 100-continue\r\nContent-Length: 2\r\n\r\n";
    struct line c[LINES];
    struct gated gated;
    struct site site;

    gate_site(t, &gated, &site,
              &(struct server_options){.loops = 1,
                                       .sync_beside = true,
                                       .idle_ms = 1500,
                                       .head_ms = 1500,
                                       .body_ms = 1500});
    for (int i = 0; i < lines; i++) {
        line_open(&site, &c[i]);
        send_get(&c[i], "none");
        CHECK_ANSWER(&c[i], 200, "{}");
    }
    for (int i = 0; i < 2; i++) {
        gate_set(&gated, true);
        if (i == 0)
            send_put(&c[0], "first");
        else
            line_text(
                &c[0],
                hf_scope_format(site.s, "%s%s", call_text(site.s, "PutItem", PUT_A).ptr, head).ptr);
        gate_wait(&gated, 1);
        sleep_ms(2000);
        gate_set(&gated, false);
        CHECK_ANSWER(&c[0], 200, "{}");
        sleep_ms(150);
    }
    line_read_head(&c[0]);
    CHECK_INT(100, c[0].status);
    line_text(&c[0], "{}");
    CHECK_ANSWER(&c[0], 200, NULL);
    for (int i = 0; i < lines; i++)
        line_close(&c[i]);
    gate_close(&gated, &site);
}

TEST(syncer, limits_of_time_are_not_for_the_disk)
{
    check_limits(t, LINES);
    check_limits(t, 1);
}

/* An answer that a fault keeps back, and that owes nothing, does not wait for the sync of another
 * that is of the same iteration. */
TEST(syncer, a_delay_waits_for_no_sync)
{
    struct line c[LINES];
    struct gated gated;
    struct site site;
    unsigned calls;

    open_beside(t, &gated, &site, c);
    calls = atomic_load(&gated.calls);
    atomic_store(&gated.held, true);
    send_get(&c[2], "old"); /* while the loop is busy with this, the others come: */
    while (atomic_load(&gated.calls) == calls)
        sleep_ms(1);
    send_put(&c[0], "a");
    line_call(&c[1], "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'old'}}}");
    sleep_ms(20);
    atomic_store(&gated.delay_ms, 20);
    atomic_store(&gated.held, false);
    gate_wait(&gated, 1);
    CHECK_ANSWER(&c[1], 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    CHECK_ANSWER(&c[2], 200, NULL);
    CHECK(is_silent(&c[0]));
    gate_set(&gated, false);
    CHECK_ANSWER(&c[0], 200, "{}");
    close_beside(&gated, &site, c);
}

TEST(syncer, a_server_that_stops_waits_for_the_disk)
{
    struct line c[LINES];
    struct gated gated;
    struct site site;

    open_waiting(t, &gated, &site, c);
    hf__server_stop(site.server);
    CHECK(line_ends(&c[1], DEADLINE_MS));
    CHECK(is_silent(&c[0]));
    gate_set(&gated, false);
    CHECK_ANSWER(&c[0], 200, "{}");
    CHECK(line_ends(&c[0], DEADLINE_MS));
    close_beside(&gated, &site, c);
}

enum { WRITERS = 8, WRITES = 200 };

struct writer {
    struct site *site;
    struct gated *gated;
    pthread_t thread;
    int number;
    int lies; /* answers that came before what they say was durable */
};

static void *keep_writing(void *user)
{
    struct writer *writer = user;
    struct line c;
    char pk[32];

    line_open(writer->site, &c);
    for (int i = 0; i < WRITES; i++) {
        uint64_t before = hf__store_durable(writer->gated->store);

        snprintf(pk, sizeof(pk), "%d-%d", writer->number, i);
        send_put(&c, pk);
        line_read(&c);
        /* The write is newer than all that was durable before it was asked for. */
        writer->lies += c.status != 200 || hf__store_durable(writer->gated->store) <= before;
        if (i % 50 == 49) { /* and now and then somebody goes without waiting */
            send_put(&c, pk);
            line_close(&c);
            line_open(writer->site, &c);
        }
    }
    line_close(&c);
    return NULL;
}

TEST(syncer, many_writers_on_two_loops)
{
    struct writer writers[WRITERS];
    struct gated gated;
    struct site site;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 2, .sync_beside = true});
    for (int i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.site = &site, .gated = &gated, .number = i};
        CHECK_INT(0, pthread_create(&writers[i].thread, NULL, keep_writing, &writers[i]));
    }
    for (int i = 0; i < WRITERS; i++) {
        CHECK_INT(0, pthread_join(writers[i].thread, NULL));
        CHECK_INT(0, writers[i].lies);
    }
    gate_close(&gated, &site);
}

/* ---- pipelines ------------------------------------------------------------------------------ */

enum { CLIENTS = 6, ROUNDS = 25, PIPELINE = 30 };

/* What is asked in a pipeline, and what the answer has in it. */
static const struct {
    const char *operation, *json, *expected;
} asked[] = {
    {"UpdateItem",
     "{'TableName':'tab','Key':{'pk':{'S':'a'}},'UpdateExpression':'ADD n :n',"
     "'ExpressionAttributeValues':{':n':{'N':'1'}}}",
     "{}"}, /* a PutItem of the same item would change nothing, and wait for nothing */
    {"GetItem", "{'TableName':'tab','Key':{'pk':{'S':'old'}},'ConsistentRead':true}", "old"},
    {"GetItem", "{'TableName':'tab','Key':{'pk':{'S':'none'}}}", "{}"},
    {"ListTables", "{}", "TableNames"},
};

struct pipeline {
    struct site *site;
    pthread_t thread;
    uint64_t seed;
    int wrong; /* answers that are not those to what was asked, in order */
};

static size_t below(struct pipeline *p, size_t bound)
{
    p->seed = p->seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (size_t)(p->seed >> 33) % bound;
}

/* In pieces that end anywhere, and not all at once. */
static void send_in_pieces(struct pipeline *p, struct line *c, struct hf_str text)
{
    while (text.len > 0) {
        size_t some = 1 + below(p, below(p, 3) ? 6000 : 60);

        if (some > text.len)
            some = text.len;
        line_send(c, text.ptr, some);
        text = hf_str_of(text.ptr + some, text.len - some);
        if (below(p, 3) == 0)
            usleep((useconds_t)below(p, 600));
    }
}

/* One connection: requests, at times the half of one more; then the answers are read, or the end is
 * said first, or the client goes. */
static void run_pipeline(struct pipeline *p, struct hf_scope *s)
{
    struct hf__buf text = {.scope = s};
    size_t kinds[PIPELINE], len = 1 + below(p, PIPELINE);
    bool half = below(p, 4) == 0, says_end = below(p, 3) == 0, goes = below(p, 8) == 0;
    struct line c;

    for (size_t i = 0; i < len; i++) {
        kinds[i] = below(p, ARRAY_LEN(asked));
        hf__buf_put_str(&text, call_text(s, asked[kinds[i]].operation, asked[kinds[i]].json));
    }
    if (half)
        hf__buf_put_str(&text, HF_STR("GET /livez HTTP/1.1\r\nHo"));
    line_open(p->site, &c);
    send_in_pieces(p, &c, hf_str_of((const char *)text.ptr, text.len));
    if (goes) {
        usleep((useconds_t)below(p, 900));
        line_reset(&c);
        return;
    }
    if (says_end)
        line_finish_sending(&c);
    for (size_t i = 0; i < len; i++) {
        line_read(&c);
        p->wrong += c.status != 200 || !contains(c.body, asked[kinds[i]].expected);
    }
    if (says_end) {
        p->wrong += !line_ends(&c, DEADLINE_MS);
    } else if (half) {
        line_text(&c, "st: localhost\r\n\r\n");
        line_read(&c);
        p->wrong += c.status != 200;
    }
    line_close(&c);
}

static void *run_pipelines(void *user)
{
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < ROUNDS; i++) {
        run_pipeline(user, s);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

static void check_pipelines(struct test *t, uint32_t loops, unsigned delay_ms)
{
    struct pipeline clients[CLIENTS];
    struct gated gated;
    struct site site;

    gate_site(t, &gated, &site, &(struct server_options){.loops = loops, .sync_beside = true});
    atomic_store(&gated.sync_us, 1500);
    atomic_store(&gated.delay_ms, delay_ms);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct pipeline){.site = &site, .seed = test_random(t)};
        CHECK_INT(0, pthread_create(&clients[i].thread, NULL, run_pipelines, &clients[i]));
    }
    for (int i = 0; i < CLIENTS; i++) {
        CHECK_INT(0, pthread_join(clients[i].thread, NULL));
        CHECK_INT(0, clients[i].wrong);
    }
    CHECK(atomic_load(&gated.syncs) > ROUNDS);
    gate_close(&gated, &site);
}

TEST(syncer, random_pipelines)
{
    check_pipelines(t, 1, 0);
    check_pipelines(t, 2, 0);
    check_pipelines(t, 1, 2);
}
