/*
 * server/commit_test.c: answers and the disk. An answer leaves after what it says is durable, one
 * sync serves all answers of a turn, and when it fails none of them says that all is well.
 *
 * The database here is one around another, with a gate in front of every sync: a test closes the
 * gate, sees what is answered meanwhile, and opens it.
 */
#include "help.h"

#include "db/db.h"
#include "engine/private.h"

struct gated {
    struct hf_db db;
    struct hf_db *inner;
    struct store_faults faults;
    struct hf__store *store;
    pthread_mutex_t lock; /* guards the next four */
    pthread_cond_t moved;
    bool closed;
    unsigned passes;     /* syncs that a closed gate lets through */
    unsigned waiting;    /* syncs at the gate now */
    atomic_uint settles; /* syncs asked for so far */
    atomic_uint calls;
    atomic_bool fails; /* the next syncs fail */
};

static enum hf_status gated_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                 const void *request, void *response)
{
    struct gated *gated = (struct gated *)db;
    enum hf_status status = gated->inner->calls->call(s, gated->inner, op, request, response);

    atomic_fetch_add(&gated->calls, 1);
    return status;
}

static enum hf_status gated_settle(struct hf_scope *s, struct hf_db *db, uint64_t ticket)
{
    struct gated *gated = (struct gated *)db;

    atomic_fetch_add(&gated->settles, 1);
    pthread_mutex_lock(&gated->lock);
    gated->waiting++;
    pthread_cond_broadcast(&gated->moved);
    while (gated->closed && gated->passes == 0)
        pthread_cond_wait(&gated->moved, &gated->lock);
    gated->passes -= gated->passes > 0;
    gated->waiting--;
    pthread_mutex_unlock(&gated->lock);
    if (atomic_load(&gated->fails))
        return hf__fail(s, HF_IO, "the disk says no");
    return gated->inner->calls->settle(s, gated->inner, ticket);
}

static void gated_close(struct hf_db *db)
{
    (void)db;
}

static void set_gate(struct gated *gated, bool closed)
{
    pthread_mutex_lock(&gated->lock);
    gated->closed = closed;
    pthread_cond_broadcast(&gated->moved);
    pthread_mutex_unlock(&gated->lock);
}

static void let_one_pass(struct gated *gated)
{
    pthread_mutex_lock(&gated->lock);
    gated->passes++;
    pthread_cond_broadcast(&gated->moved);
    pthread_mutex_unlock(&gated->lock);
}

/* Wait until that many syncs stand at the gate. */
static void wait_at_gate(struct gated *gated, unsigned count)
{
    pthread_mutex_lock(&gated->lock);
    while (gated->waiting != count)
        pthread_cond_wait(&gated->moved, &gated->lock);
    pthread_mutex_unlock(&gated->lock);
}

static void open_gated(struct test *t, struct gated *gated, struct site *site, uint32_t loops)
{
    static const struct db_calls calls = {.call = gated_call,
                                          .settle = gated_settle,
                                          .close = gated_close};
    static const struct hf_attribute_definition attributes[] = {
        {.name = {"pk", 2}, .type = HF_SCALAR_S}};
    static const struct hf_key_element keys[] = {{.name = {"pk", 2}, .type = HF_KEY_HASH}};
    struct hf_engine_options options = {.size = sizeof(options),
                                        .env = test_env(t),
                                        .no_upkeep_thread = true};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf__store *memory;

    memset(gated, 0, sizeof(*gated));
    gated->db.calls = &calls;
    pthread_mutex_init(&gated->lock, NULL);
    pthread_cond_init(&gated->moved, NULL);
    CHECK_OK(hf__store_open_memory(s, test_env(t), &memory));
    CHECK_OK(hf__store_open_faulty(s, test_env(t), memory, &gated->faults, &gated->store));
    CHECK_OK(hf__engine_open_on(s, gated->store, &options, &gated->inner));
    CHECK_OK(hf_create_table(s, gated->inner,
                             &(struct hf_create_table){.table = HF_STR("tab"),
                                                       .attributes = attributes,
                                                       .attributes_len = 1,
                                                       .key_schema = keys,
                                                       .key_schema_len = 1,
                                                       .billing = HF_BILLING_PAY_PER_REQUEST},
                             NULL));
    CHECK_OK(hf_put_item(s, gated->inner,
                         &(struct hf_put_item){.table = HF_STR("tab"),
                                               .item = HF_ITEM(s, HF_S("pk", HF_STR("old")))},
                         NULL));
    hf_scope_free(s);
    site_serve_with(t, site, &gated->db, &(struct server_options){.loops = loops});
}

static void close_gated(struct gated *gated, struct site *site)
{
    set_gate(gated, false);
    site_close(site);
    hf_db_close(gated->inner);
    pthread_cond_destroy(&gated->moved);
    pthread_mutex_destroy(&gated->lock);
}

static void send_put(struct line *c, const char *pk)
{
    char json[96];

    snprintf(json, sizeof(json), "{'TableName':'tab','Item':{'pk':{'S':'%s'}}}", pk);
    line_call(c, "PutItem", json);
}

static void send_get(struct line *c, const char *pk)
{
    char json[128];

    snprintf(json, sizeof(json),
             "{'TableName':'tab','Key':{'pk':{'S':'%s'}},'ConsistentRead':true}", pk);
    line_call(c, "GetItem", json);
}

static bool is_silent(struct line *c)
{
    return !line_ends(c, 60) && c->in_len == 0 && !c->ended;
}

/* (1) of private.h: no answer before its sync, however long that takes. */
TEST(commit, answers_wait_for_the_disk)
{
    struct gated gated;
    struct site site;
    struct line c;

    open_gated(t, &gated, &site, 1);
    line_open(&site, &c);
    set_gate(&gated, true);
    send_put(&c, "a");
    wait_at_gate(&gated, 1);
    CHECK(is_silent(&c));
    CHECK(hf__store_durable(gated.store) < hf__store_written(gated.store));
    set_gate(&gated, false);
    CHECK_ANSWER(&c, 200, "{}");
    CHECK(hf__store_durable(gated.store) == hf__store_written(gated.store));
    line_close(&c);
    close_gated(&gated, &site);
}

/* What is durable needs no wait: on another loop, and in the same turn as a write. */
TEST(commit, reads_of_durable_data_do_not_wait)
{
    struct line first, writer, reader;
    struct gated gated;
    struct site site;
    unsigned settles;

    open_gated(t, &gated, &site, 1);
    line_open(&site, &first);
    line_open(&site, &writer);
    line_open(&site, &reader);
    send_get(&writer, "none");
    CHECK_ANSWER(&writer, 200, "{}");
    send_get(&reader, "none");
    CHECK_ANSWER(&reader, 200, "{}");
    CHECK_INT(0, atomic_load(&gated.settles)); /* a read owes nothing at all */

    set_gate(&gated, true);
    send_put(&first, "a");
    wait_at_gate(&gated, 1);
    settles = atomic_load(&gated.settles);
    send_put(&writer, "b"); /* these two come while the loop waits: the next turn has both */
    send_get(&reader, "old");
    sleep_ms(20);
    let_one_pass(&gated);
    CHECK_ANSWER(&first, 200, "{}");
    CHECK_ANSWER(&reader, 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    wait_at_gate(&gated, 1);
    CHECK(is_silent(&writer));
    set_gate(&gated, false);
    CHECK_ANSWER(&writer, 200, "{}");
    CHECK_INT(settles + 1, atomic_load(&gated.settles));
    line_close(&first);
    line_close(&writer);
    line_close(&reader);
    close_gated(&gated, &site);
}

/* Who reads what another wrote and has not synced yet waits as its writer does. */
TEST(commit, reads_of_what_is_not_durable_wait)
{
    struct line writer, reader, other;
    struct gated gated;
    struct site site;

    open_gated(t, &gated, &site, 2); /* the second connection is on the second loop */
    line_open(&site, &writer);
    send_get(&writer, "none");
    CHECK_ANSWER(&writer, 200, "{}");
    line_open(&site, &reader);
    send_get(&reader, "none");
    CHECK_ANSWER(&reader, 200, "{}");
    set_gate(&gated, true);
    send_put(&writer, "new");
    wait_at_gate(&gated, 1);
    send_get(&reader, "old"); /* which the first loop does not delay */
    CHECK_ANSWER(&reader, 200, "{\"Item\":{\"pk\":{\"S\":\"old\"}}}");
    send_get(&reader, "new");
    wait_at_gate(&gated, 2);
    CHECK(is_silent(&reader));
    CHECK(is_silent(&writer));
    set_gate(&gated, false);
    CHECK_ANSWER(&reader, 200, "{\"Item\":{\"pk\":{\"S\":\"new\"}}}");
    CHECK_ANSWER(&writer, 200, "{}");
    line_open(&site, &other);
    send_get(&other, "new");
    CHECK_ANSWER(&other, 200, "{\"Item\":{\"pk\":{\"S\":\"new\"}}}");
    line_close(&writer);
    line_close(&reader);
    line_close(&other);
    close_gated(&gated, &site);
}

enum { MANY = 40 };

/* While one sync runs, many requests come: they are all of the next turn. */
static void gather(struct gated *gated, struct site *site, struct line *first, struct line *many)
{
    unsigned calls;

    line_open(site, first);
    for (int i = 0; i < MANY; i++) {
        line_open(site, &many[i]);
        send_get(&many[i], "none");
        CHECK_ANSWER(&many[i], 200, "{}");
    }
    set_gate(gated, true);
    send_put(first, "first");
    wait_at_gate(gated, 1);
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
    unsigned settles;

    open_gated(t, &gated, &site, 1);
    gather(&gated, &site, &first, many);
    settles = atomic_load(&gated.settles);
    set_gate(&gated, false);
    CHECK_ANSWER(&first, 200, "{}");
    for (int i = 0; i < MANY; i++) {
        CHECK_ANSWER(&many[i], 200, "{}");
        CHECK_ANSWER(&many[i], 200, "{}");
        CHECK_ANSWER(&many[i], 200, NULL);
        CHECK(contains(many[i].body, "pk"));
        line_close(&many[i]);
    }
    /* One in principle; a few when the kernel tells of the sockets in several goes. */
    CHECK(atomic_load(&gated.settles) - settles <= 4);
    line_close(&first);
    close_gated(&gated, &site);
}

/* A sync that fails: a 500 for everything of its turn on connections that owed, and no 200. */
TEST(commit, a_failed_sync_is_a_500_for_all)
{
    struct line first, many[MANY];
    struct gated gated;
    struct site site;

    open_gated(t, &gated, &site, 1);
    gather(&gated, &site, &first, many);
    atomic_store(&gated.fails, true);
    set_gate(&gated, false);
    CHECK_ANSWER(&first, 500, NULL);
    CHECK(contains(first.body, "{\"__type\":\"com.amazonaws.dynamodb.v20120810#"
                               "InternalServerError\",\"message\":\""));
    CHECK_STR("close", line_field(&first, "Connection"));
    CHECK(line_ends(&first, 3000));
    for (int i = 0; i < MANY; i++) {
        for (int j = 0; j < 3 && line_answers(&many[i]); j++)
            CHECK_ANSWER(&many[i], 500, NULL);
        CHECK(line_ends(&many[i], 3000));
        line_close(&many[i]);
    }
    atomic_store(&gated.fails, false);
    line_close(&first);
    close_gated(&gated, &site);
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
    site.faults.fail_at = site.faults.calls + 3; /* read, write, sync */
    line_call(&c, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'b'}}}");
    CHECK_ANSWER(&c, 500, NULL);
    CHECK_STR("sync", hf_str_from(site.faults.struck));
    CHECK(line_ends(&c, 3000));
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
