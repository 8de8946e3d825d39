/*
 * server/work_test.c: requests that workers handle, answers in parts, and the budget of both.
 */
#include "help.h"

#include "server/descriptors.h"
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

/* Nothing is held by anybody, once all was read. */
static void check_settled(struct site *site)
{
    for (int i = 0; i < 3000; i++) {
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
    check_settled(&site);
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
    CHECK(hf__json_valid(c.body));
    CHECK(atomic_load(&site.bytes) < 64 * 1024 * 1024);
    line_close(&c);
    check_settled(&site);
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
    check_settled(&site);
    CHECK_CALL(&site, 200, "{'TableNames':['tab']}", "ListTables", "{}");
    site_close(&site);
}

/* Readers that do not read are closed for others, and never is more held than may be. */
TEST(work, silent_readers_make_room)
{
    enum { READERS = 12, MEMORY = 8 * 1024 * 1024 };
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
    check_settled(&site);
    site_close(&site);
}

/* A server that stops lets long requests come to their end. */
TEST(work, stopping_waits_for_workers)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1, .drain_ms = 10000});
    put_large(&site);
    line_open(&site, &c);
    line_call(&c, "BatchGetItem", batch(site.s).ptr);
    sleep_ms(2);
    hf__server_stop(site.server);
    line_read(&c);
    CHECK_INT(200, c.status);
    line_close(&c);
    site_close(&site);
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
