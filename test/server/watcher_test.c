/*
 * server/watcher_test.c: those who watch, what they are sent, and how it ends; (n) is of server/console/watcher.h.
 */
#include "gate.h"
#include "help.h"

#include "server/console/figures.h"
#include "server/console/watcher.h"

#define PUT_ITEM "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"a\"}}}"

static void begin(const struct site *site, struct line *c, const char *query)
{
    line_open(site, c);
    line_text(c, hf_scope_format(site->s,
                                 "GET /console/api/stream%s HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                 query)
                     .ptr);
    line_begin(c);
}

/* That these tables were written, as JSON; or, where the machine was so busy that a loop had no time for
 * some news, that any may have been. */
static bool told_written(const struct site *site, struct line *c, const char *tables)
{
    return line_until_either(c, hf_scope_format(site->s, "\"tables\":%s", tables).ptr,
                             "event: writes\ndata: {\"all\":true}");
}

static void wait_for(atomic_bool *flag, bool value)
{
    int64_t until = now_ms() + 2 * DEADLINE_MS;

    while (atomic_load(flag) != value && now_ms() < until)
        sleep_ms(1);
    CHECK(atomic_load(flag) == value);
}

static void put(struct site *site, const char *pk)
{
    CHECK_CALL(site, 200, "{}", "PutItem",
               hf_scope_format(site->s, "{'TableName':'tab','Item':{'pk':{'S':'%s'}}}", pk).ptr);
}

/* Put an item until that is told of it: news that a loop had no time for is not told again. */
static bool told_of_puts(struct site *site, struct line *c, const char *text)
{
    int64_t until = now_ms() + 4 * DEADLINE_MS;

    do
        put(site, "ann");
    while (!line_within(c, text, 2000) && now_ms() < until);
    return line_within(c, text, 0);
}

/* The same for a GetItem that fails: the name of its error is the one that its answer has. */
static bool told_of_failed(struct site *site, struct line *c, const char *request,
                           const char *answer, const char *text)
{
    int64_t until = now_ms() + 4 * DEADLINE_MS;

    do
        CHECK_CALL(site, 400, answer, "GetItem", request);
    while (!line_within(c, text, 2000) && now_ms() < until);
    return line_within(c, text, 0);
}

TEST(watcher, it_tells_what_happens)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    begin(&site, &c, "?requests=1");
    CHECK_INT(200, c.status);
    CHECK_STR("text/event-stream", line_field(&c, "Content-Type"));
    CHECK_STR("no-store", line_field(&c, "Cache-Control"));
    CHECK_STR("close", line_field(&c, "Connection"));
    CHECK(!line_field(&c, "Content-Length").ptr);
    CHECK(line_until(&c, "event: figures\ndata: {\"time_ms\":")); /* from here on all counts */
    CHECK(line_until(&c, "event: health\ndata: ["));
    CHECK(told_of_puts(&site, &c, "\"operation\":\"PutItem\","));
    CHECK(line_until(&c, "\"status\":200,\"id\":\""));
    CHECK(line_until(&c, "\"table\":\"tab\",\"key\":\"ann\"}\n\n"));
    CHECK(told_written(&site, &c, "[\"tab\"]"));
    CHECK(told_of_puts(&site, &c, "\"ops\":{\"PutItem\":{\"count\":1,\"errors\":0,"));
    CHECK(told_of_failed(&site, &c, "{'TableName':'none','Key':{'pk':{'S':'x'}}}",
                         "{'__type':'com.amazonaws.dynamodb.v20120810#ResourceNotFoundException',"
                         "'message':'Requested resource not found'}",
                         "\"error\":\"ResourceNotFoundException\",\"table\":\"none\"}"));
    CHECK(told_of_failed(&site, &c, "{'TableName':'tab','Key':{'wrong':{'S':'x'}}}",
                         "{'__type':'com.amazon.coral.validate#ValidationException',"
                         "'message':'The provided key element does not match the schema'}",
                         "\"error\":\"ValidationException\",\"table\":\"tab\""));
    line_close(&c);
    site_close(&site);
}

/* Whoever writes: the program that serves its database, and statements. */
TEST(watcher, writes_of_others_are_told)
{
    struct hf_execute_statement insert = {
        .statement = HF_STR("INSERT INTO tab VALUE {'pk':'by_statement'}")};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    begin(&site, &c, "");
    CHECK(line_until(&c, "event: figures\n"));
    CHECK(!contains(hf_str_of((char *)c.in, c.in_len), "\"tables\":"));
    CHECK_OK(hf_execute_statement(site.s, site.db, &insert, NULL));
    CHECK(told_written(&site, &c, "[\"tab\"]"));
    line_close(&c);
    site_close(&site);
}

/* Many tables, each once. */
TEST(watcher, all_tables_that_were_written_are_told)
{
    enum { TABLES = 400 };
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    for (int i = 0; i < TABLES; i++) {
        struct hf_str name = hf_scope_format(site.s, "many-%d", i);
        struct hf_attribute_definition attribute = {HF_STR("pk"), HF_SCALAR_S};
        struct hf_key_element key = {HF_STR("pk"), HF_KEY_HASH};
        struct hf_create_table create = {.table = name,
                                         .attributes = &attribute,
                                         .attributes_len = 1,
                                         .key_schema = &key,
                                         .key_schema_len = 1,
                                         .billing = HF_BILLING_PAY_PER_REQUEST};
        struct hf_put_item item = {.table = name, .item = HF_ITEM(site.s, HF_S("pk", HF_STR("a")))};

        CHECK_OK(hf_create_table(site.s, site.db, &create, NULL));
        CHECK_OK(hf_put_item(site.s, site.db, &item, NULL));
    }
    begin(&site, &c, "");
    for (int i = 0; i < TABLES; i++)
        CHECK(line_until_either(&c, hf_scope_format(site.s, "\"many-%d\"", i).ptr, "\"all\":true"));
    put(&site, "ann");
    CHECK(told_written(&site, &c, "[\"tab\"]"));
    line_close(&c);
    site_close(&site);
}

/* Requests are noted only for those who want them, and only while they are there. */
TEST(watcher, requests_are_for_those_who_ask)
{
    struct site site;
    struct line c, d;

    site_open(t, &site, &(struct server_options){.console = true});
    begin(&site, &c, "");
    CHECK(!atomic_load(&site.server->tailed));
    begin(&site, &d, "?requests=1");
    CHECK(atomic_load(&site.server->tailed));
    CHECK(told_of_puts(&site, &d, "event: request\n"));
    CHECK(line_until(&c, "event: writes\n"));
    CHECK(!contains(hf_str_of((char *)c.in, c.in_len), "event: request"));
    line_close(&d);
    wait_for(&site.server->tailed, false);
    line_close(&c);
    site_close(&site);
}

/* (2) */
TEST(watcher, what_comes_behind_the_request_is_not_looked_at)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    line_text(&c, "GET /console/api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n"
                  "GET / HTTP/1.1\r\nHost: localhost\r\n\r\nxxxx\r\n\r\n");
    line_begin(&c);
    CHECK(line_until(&c, "event: figures\n"));
    CHECK(line_text(&c, "more\r\n\r\n"));
    put(&site, "ann");
    CHECK(line_until(&c, "event: writes\n"));
    CHECK(!contains(hf_str_of((char *)c.in, c.in_len), "healthy"));
    CHECK(!contains(hf_str_of((char *)c.in, c.in_len), "HTTP/1.1 400"));
    line_close(&c);
    site_close(&site);
}

/* In front of it was a write, which is not durable yet, or answered late. */
TEST(watcher, it_may_come_behind_a_write)
{
    struct gated gated;
    struct site site;
    struct line c;

    gate_site(t, &gated, &site, &(struct server_options){.loops = 1, .console = true});
    for (int late = 0; late < 2; late++) {
        line_open(&site, &c);
        gate_set(&gated, !late);
        atomic_store(&gated.delay_ms, late ? 50 : 0);
        line_text(&c, hf_scope_format(site.s,
                                      "%sContent-Length: %zu\r\n\r\n%s"
                                      "GET /console/api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n",
                                      POST_FOR("PutItem"), strlen(PUT_ITEM), PUT_ITEM)
                          .ptr);
        if (!late)
            gate_wait(&gated, 1);
        gate_set(&gated, false);
        CHECK_ANSWER(&c, 200, "{}");
        line_begin(&c);
        CHECK_INT(200, c.status);
        CHECK(line_until(&c, "event: figures\n"));
        atomic_store(&gated.delay_ms, 0);
        CHECK(told_of_puts(&site, &c, "event: writes\n"));
        line_close(&c);
    }
    gate_close(&gated, &site);
}

TEST(watcher, it_is_only_for_get)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    line_text(&c, "HEAD /console/api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read_head(&c);
    CHECK_INT(405, c.status);
    line_text(&c, "POST /console/api/stream HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Length: 0\r\n\r\n");
    line_read(&c);
    CHECK_INT(405, c.status);
    { /* a body so large that a worker has it */
        size_t len = WORK_BODY + 1;
        char *body = calloc(1, len);

        line_text(&c, hf_scope_format(site.s,
                                      "GET /console/api/stream HTTP/1.1\r\nHost: localhost\r\n"
                                      "Content-Length: %zu\r\n\r\n",
                                      len)
                          .ptr);
        line_send(&c, body, len);
        line_read(&c);
        CHECK_INT(400, c.status);
        free(body);
    }
    line_close(&c);
    site_close(&site);
}

TEST(watcher, with_keys_it_has_to_be_signed)
{
    const struct sign_credentials ann = {.access_key = HF_STR("ANN"),
                                         .secret_key = HF_STR("secret")};
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true, .keys = &ann, .keys_len = 1});
    line_open(&site, &c);
    line_text(&c, "GET /console/api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(&c);
    CHECK_INT(403, c.status);
    line_text(&c, "GET /console/api/history HTTP/1.1\r\nHost: localhost\r\n" SIGNED "\r\n");
    line_read(&c);
    CHECK_INT(403, c.status);
    line_close(&c);
    site_close(&site);
}

/* As many as there may be; one more is told so, and all are sent what happens. */
TEST(watcher, there_is_room_for_many)
{
    static struct line c[WATCHES_MAX + 1];
    struct site site;

    site_open(t, &site, &(struct server_options){.console = true, .loops = 2});
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        begin(&site, &c[i], i % 2 ? "?requests=1" : "");
        CHECK_INT(200, c[i].status);
    }
    begin(&site, &c[WATCHES_MAX], "");
    CHECK_INT(503, c[WATCHES_MAX].status);
    line_close(&c[WATCHES_MAX]);
    put(&site, "ann");
    for (size_t i = 0; i < WATCHES_MAX; i++) {
        CHECK(told_written(&site, &c[i], "[\"tab\"]"));
        line_close(&c[i]);
    }
    wait_for(&site.server->tailed, false);
    site_close(&site);
}

/* (1): who does not read holds a bounded part of the budget, and learns that something was missed. */
TEST(watcher, a_slow_reader_misses_news)
{
    struct site site;
    struct line c;
    int listener = listen_small(4096), worked = 0;

    site_open(t, &site,
              &(struct server_options){
                  .console = true, .loops = 1, .sockets = &listener, .sockets_len = 1});
    line_open_small(&site, &c, 1024);
    line_text(&c, "GET /console/api/stream?requests=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
    wait_for(&site.server->tailed, true);
    for (int64_t until = now_ms() + 2 * DEADLINE_MS; now_ms() < until && worked < 200;) {
        put(&site, "ann");
        worked += atomic_load(&site.server->budget.output) > 0; /* it waits for its reader */
        CHECK(atomic_load(&site.server->budget.output) < 1024 * 1024);
        if (worked)
            sleep_ms(10);
    }
    CHECK_INT(200, worked);
    CHECK(line_until(&c, "event: dropped\ndata: {\"requests\":"));
    CHECK(line_until(&c, "event: writes\ndata: {\"all\":true}\n\n"));
    line_close(&c);
    site_close(&site);
    close(listener);
}

/* (2): by an end, not a reset, and without a wait for those who do not go. */
TEST(watcher, it_ends_when_the_server_stops)
{
    struct line c[20];
    struct site site;

    site_open(t, &site, &(struct server_options){.console = true, .loops = 2});
    for (size_t i = 0; i < ARRAY_LEN(c); i++)
        begin(&site, &c[i], i % 2 ? "?requests=1" : "");
    CHECK(line_until(&c[0], "event: figures\n"));
    hf__server_stop(site.server);
    for (size_t i = 0; i < ARRAY_LEN(c); i++) {
        (void)line_rest(&c[i], DEADLINE_MS);
        CHECK(c[i].ended && !c[i].broken);
        line_close(&c[i]);
    }
    site_join(&site);
    site_close(&site);
}

/* ---- figures -------------------------------------------------------------------------------- */

TEST(watcher, history_begins_at_once)
{
    int64_t until = now_ms() + 2 * DEADLINE_MS;
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.console = true});
    line_open(&site, &c);
    do {
        line_text(&c, "GET /console/api/history HTTP/1.1\r\nHost: localhost\r\n\r\n");
        line_read(&c);
        CHECK_INT(200, c.status);
        CHECK(contains(c.body, "{\"interval_ms\":5000,\"ops\":{"));
    } while (contains(c.body, "\"time_ms\":[]") && now_ms() < until);
    CHECK(contains(c.body, "\"connections\":["));
    CHECK(!contains(c.body, "[]"));
    line_close(&c);
    site_close(&site);
}

static struct hf_str health_of(struct hf_scope *s, const struct health_facts *facts)
{
    struct hf__buf out = {.scope = s};

    hf__health_write(&out, facts);
    return hf_str_of((const char *)out.ptr, out.len);
}

TEST(health, nothing_is_wrong_at_first)
{
    struct hf_scope *s = hf_scope_new(test_env(t));

    CHECK_STR("[]", health_of(s, &(struct health_facts){.connections_limit = 100}));
    hf_scope_free(s);
}

TEST(health, it_says_what_to_do)
{
    static const struct {
        struct health_facts facts;
        const char *level;
        const char *what;
    } cases[] = {
        {{.stopped = true}, "error", "sync failed"},
        {{.no_space = true}, "error", "only deletes"},
        {{.disk_total = 100ULL << 30, .disk_free = 5ULL << 30}, "warning", "5120 MiB left"},
        {{.disk_total = 2ULL << 30, .disk_free = 1000 << 20}, "warning", "1000 MiB left"},
        {{.commits = 10, .commit_p99_us = 250000}, "warning", "more than 250 ms"},
        {{.turned_away = 3}, "error", "3 connections were refused"},
        {{.connections = 80, .connections_limit = 100}, "warning", "80 of 100"},
        {{.busy = 1, .evicted = 1}, "warning", "no memory for 2 answers"},
        {{.output = 900, .output_limit = 1000}, "warning", "--memory"},
        {{.resident = 900, .memory_limit = 1000}, "warning", "--cache"},
        {{.lengthy = 2}, "info", "2 requests kept"},
        {{.open_to_all = true}, "warning", "--credentials"},
        {{.refused = 10}, "warning", "signature"},
        {{.clock_jump_ms = -3500}, "warning", "jumped by -3.5 s"},
        {{.in_memory = true, .backups_known = true, .tables = 1, .backup_age_s = -1},
         "info",
         "--in-memory"},
        {{.read_only = true}, "info", "read-only"},
        {{.backups_known = true, .tables = 1, .backup_age_s = -1}, "info", "no backups"},
        {{.backups_known = true, .tables = 1, .backup_age_s = 8 * 86400}, "warning", "8 days old"},
    };
    struct hf_scope *s = hf_scope_new(test_env(t));

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str text = health_of(s, &cases[i].facts);
        const char *begins = hf_scope_format(s, "[{\"level\":\"%s\",\"what\":", cases[i].level).ptr;

        if (!contains(text, begins) || !contains(text, cases[i].what) || contains(text, "},{") ||
            contains(text, "\"advice\":\"\""))
            fail_msg("%s: %.*s", cases[i].what, HF_FMT(text));
    }
    CHECK(contains(health_of(s, &(struct health_facts){.stopped = true, .read_only = true}),
                   "},{\"level\":\"info\""));
    hf_scope_free(s);
}

TEST(health, what_is_usual_is_not_said)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const struct health_facts usual = {.disk_total = 100ULL << 30,
                                       .disk_free = 50ULL << 30,
                                       .commits = 1000,
                                       .commit_p99_us = 20000,
                                       .connections = 79,
                                       .connections_limit = 100,
                                       .input = 100,
                                       .input_limit = 1000,
                                       .output = 100,
                                       .output_limit = 1000,
                                       .resident = 100,
                                       .memory_limit = 1000,
                                       .refused = 9,
                                       .backups_known = true,
                                       .tables = 3,
                                       .backup_age_s = 3600};

    CHECK_STR("[]", health_of(s, &usual));
    hf_scope_free(s);
}
