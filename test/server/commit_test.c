/*
 * server/commit_test.c: answers and the disk. An answer leaves after what it says is durable, one
 * sync serves all answers of an iteration, and when it fails none of them says that all is well.
 *
 * Loops wait for the disk themselves here; syncer_test.c has the others.
 */
#include "gate.h"

/* (1) of private.h: no answer before its sync, however long that takes. */
TEST(commit, answers_wait_for_the_disk)
{
    struct gated gated;
    struct site site;
    struct line c;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    gate_set(&gated, true);
    send_put(&c, "a");
    gate_wait(&gated, 1);
    CHECK(is_silent(&c));
    CHECK(hf__store_durable(gated.store) < hf__store_written(gated.store));
    gate_set(&gated, false);
    CHECK_ANSWER(&c, 200, "{}");
    CHECK(hf__store_durable(gated.store) == hf__store_written(gated.store));
    line_close(&c);
    gate_close(&gated, &site);
}

/* What is durable needs no wait: on another loop, and in the same iteration as a write. */
TEST(commit, reads_of_durable_data_do_not_wait)
{
    struct line first, writer, reader;
    struct gated gated;
    struct site site;
    unsigned syncs;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 1});
    line_open(&site, &first);
    line_open(&site, &writer);
    line_open(&site, &reader);
    send_get(&writer, "none");
    CHECK_ANSWER(&writer, 200, "{}");
    send_get(&reader, "none");
    CHECK_ANSWER(&reader, 200, "{}");
    CHECK_INT(0, atomic_load(&gated.syncs)); /* a read owes nothing at all */

    gate_set(&gated, true);
    send_put(&first, "a");
    gate_wait(&gated, 1);
    syncs = atomic_load(&gated.syncs);
    send_put(&writer, "b"); /* these two come while the loop waits: the next iteration has both */
    send_get(&reader, "old");
    sleep_ms(20);
    gate_let_one_pass(&gated);
    CHECK_ANSWER(&first, 200, "{}");
    CHECK_ANSWER(&reader, 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    gate_wait(&gated, 1);
    CHECK(is_silent(&writer));
    gate_set(&gated, false);
    CHECK_ANSWER(&writer, 200, "{}");
    CHECK_INT(syncs + 1, atomic_load(&gated.syncs));
    line_close(&first);
    line_close(&writer);
    line_close(&reader);
    gate_close(&gated, &site);
}

/* Who reads what another wrote and has not synced yet waits as its writer does. */
TEST(commit, reads_of_what_is_not_durable_wait)
{
    struct line writer, reader, other;
    struct gated gated;
    struct site site;

    /* The second connection is on the second loop. */
    gate_site(t, &gated, &site, &(struct server_options){.loops = 2});
    line_open(&site, &writer);
    send_get(&writer, "none");
    CHECK_ANSWER(&writer, 200, "{}");
    line_open(&site, &reader);
    send_get(&reader, "none");
    CHECK_ANSWER(&reader, 200, "{}");
    gate_set(&gated, true);
    send_put(&writer, "new");
    gate_wait(&gated, 1);
    send_get(&reader, "old"); /* which the first loop does not delay */
    CHECK_ANSWER(&reader, 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    send_get(&reader, "new");
    gate_wait(&gated, 2);
    CHECK(is_silent(&reader));
    CHECK(is_silent(&writer));
    gate_set(&gated, false);
    CHECK_ANSWER(&reader, 200, "{\"Item\":{\"pk\":{\"S\":\"new\"}}}");
    CHECK_ANSWER(&writer, 200, "{}");
    line_open(&site, &other);
    send_get(&other, "new");
    CHECK_ANSWER(&other, 200, "{\"Item\":{\"pk\":{\"S\":\"new\"}}}");
    line_close(&writer);
    line_close(&reader);
    line_close(&other);
    gate_close(&gated, &site);
}

enum { MANY = 40 };

/* While one sync runs, many requests come: they are all of the next iteration. */
static void gather(struct gated *gated, struct site *site, struct line *first, struct line *many)
{
    unsigned calls;

    line_open(site, first);
    for (int i = 0; i < MANY; i++) {
        line_open(site, &many[i]);
        send_get(&many[i], "none");
        CHECK_ANSWER(&many[i], 200, "{}");
    }
    gate_set(gated, true);
    send_put(first, "first");
    gate_wait(gated, 1);
    calls = atomic_load(&gated->calls);
    for (int i = 0; i < MANY; i++) {
        char pk[16];

        snprintf(pk, sizeof(pk), "pk%d", i);
        send_put(&many[i], pk);
        send_put(&many[i], pk);
        send_get(&many[i], pk);
    }
    sleep_ms(50);
    CHECK_INT(calls, atomic_load(&gated->calls));
}

TEST(commit, one_sync_serves_all_of_a_turn)
{
    struct line first, many[MANY];
    struct gated gated;
    struct site site;
    unsigned syncs;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 1});
    gather(&gated, &site, &first, many);
    syncs = atomic_load(&gated.syncs);
    gate_set(&gated, false);
    CHECK_ANSWER(&first, 200, "{}");
    for (int i = 0; i < MANY; i++) {
        CHECK_ANSWER(&many[i], 200, "{}");
        CHECK_ANSWER(&many[i], 200, "{}");
        CHECK_ANSWER(&many[i], 200, NULL);
        CHECK(contains(many[i].body, "pk"));
        line_close(&many[i]);
    }
    /* One in principle; a few when the kernel tells of the sockets in several goes. */
    CHECK(atomic_load(&gated.syncs) - syncs <= 4);
    line_close(&first);
    gate_close(&gated, &site);
}

/* A failed sync: a 500 for all of its iteration on connections that waited for it, and no 200. */
TEST(commit, a_failed_sync_is_a_500_for_all)
{
    struct line first, many[MANY];
    struct gated gated;
    struct site site;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 1});
    gather(&gated, &site, &first, many);
    atomic_store(&gated.fails, true);
    gate_set(&gated, false);
    CHECK_ANSWER(&first, 500, NULL);
    CHECK(contains(first.body, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
                               "InternalServerError\",\"message\":\""));
    CHECK_STR("close", line_field(&first, "Connection"));
    CHECK(line_ends(&first, DEADLINE_MS));
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < 3 && line_answers(&many[i]); j++)
            CHECK_ANSWER(&many[i], 500, NULL);
        CHECK(line_ends(&many[i], DEADLINE_MS));
        line_close(&many[i]);
    }
    atomic_store(&gated.fails, false);
    line_close(&first);
    gate_close(&gated, &site);
}

/* The same by the store's own fault: it says so from then on, and reads go on. */
TEST(commit, a_failed_sync_stops_writes)
{
    struct site site;
    struct line c;

    site_open_faulty(t, &site, &(struct server_options){.loops = 1});
    site_put(&site, "old", 10);
    line_open(&site, &c);
    line_call(&c, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    CHECK_ANSWER(&c, 200, "{}");
    site.faults.fail_at = site.faults.calls + 2; /* write, sync */
    line_call(&c, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'b'}}}");
    CHECK_ANSWER(&c, 500, NULL);
    CHECK_STR("sync", hf_str_from(site.faults.struck));
    CHECK(line_ends(&c, DEADLINE_MS));
    line_close(&c);
    line_open(&site, &c);
    line_call(&c, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'c'}}}");
    CHECK_ANSWER(&c, 500, NULL);
    line_call(&c, "GetItem", "{'TableName':'tab','Key':{'pk':{'S':'old'}}}");
    CHECK_ANSWER(&c, 200, NULL);
    line_text(&c, "GET /readyz HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(503, c.status);
    CHECK_STR("a sync failed: writes are refused until a restart\n", c.body);
    line_close(&c);
    CHECK_INT(1, site_metric(&site, "holdfast_writes_stopped"));
    site_close(&site);
}

/* The figures tell how many answers shared a commit. */
TEST(commit, is_counted)
{
    struct site site;

    site_open_faulty(t, &site, &(struct server_options){.loops = 1});
    CHECK_INT(0, site_metric(&site, "holdfast_commits_total"));
    for (int i = 0; i < 5; i++)
        CHECK_CALL(&site, 200, "{}", "PutItem",
                   hf_scope_format(site.s, "{'TableName':'tab','Item':{'pk':{'S':'%d'}}}", i).ptr);
    CHECK_INT(5, site_metric(&site, "holdfast_commits_total"));
    CHECK_INT(5, site_metric(&site, "holdfast_answers_committed_total"));
    CHECK_INT(5, site_metric(&site, "holdfast_commit_seconds_count"));
    site_close(&site);
}
