/*
 * serving/serving_test.c: a program serves the database that it has open; (n) is of serving.c, and of
 * read_only.c where that is said.
 */
#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/outbox.h>
#include <holdfast/server.h>
#include <holdfast/table.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "serving/calls.h"
#include "test.h"

struct served {
    struct test *t;
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_server *server;
    struct hf_db *client;
};

static struct hf_create_table tab_request(void)
{
    static const struct hf_attribute_definition attribute = {HF_STR_INIT("pk"), HF_SCALAR_S};
    static const struct hf_key_element key = {HF_STR_INIT("pk"), HF_KEY_HASH};

    return (struct hf_create_table){.table = HF_STR("tab"),
                                    .attributes = &attribute,
                                    .attributes_len = 1,
                                    .key_schema = &key,
                                    .key_schema_len = 1};
}

static enum hf_status put(struct hf_scope *s, struct hf_db *db, const char *pk)
{
    return hf_put_item(s, db,
                       &(struct hf_put_item){.table = HF_STR("tab"),
                                             .item = HF_ITEM(s, HF_S("pk", hf_str_from(pk)))},
                       NULL);
}

static bool has(struct hf_scope *s, struct hf_db *db, const char *pk)
{
    struct hf_get_item_result got;

    CHECK_OK(hf_get_item(s, db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(s, HF_S("pk", hf_str_from(pk)))},
                         &got));
    return got.item.len > 0;
}

static struct hf_db *connect_to(struct served *v, struct hf_str url, const char *key)
{
    struct hf_client_options *options =
        HF_OPTIONS(hf_client_options, .env = test_env(v->t), .no_aws_config = true,
                   .region = HF_STR("us-east-1"), .retry = {.max_attempts = 1});
    struct hf_db *db;

    if (key)
        options->credentials =
            (struct hf_credentials){.access_key = hf_str_from(key), .secret_key = HF_STR("secret")};
    CHECK_OK(hf_connect(v->s, url, options, &db));
    return db;
}

/* The table "tab" with the item "ann", on `url`, served and connected to. */
static struct served serve(struct test *t, const char *url, struct hf_server_options *options)
{
    struct served v = {.t = t, .s = hf_scope_new(test_env(t))};
    struct hf_create_table tab = tab_request();

    options->env = test_env(t);
    CHECK_OK(hf_open(v.s, hf_str_from(url),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &v.db));
    CHECK_OK(hf_table_ensure(v.s, v.db, &tab, NULL));
    CHECK_OK(put(v.s, v.db, "ann"));
    CHECK_OK(hf_server_open(v.s, v.db, options, &v.server));
    if (!options->socket.len)
        v.client = connect_to(&v, hf_server_url(v.server), NULL);
    return v;
}

static void end(struct served *v)
{
    hf_db_close(v->client);
    hf_server_close(v->server);
    hf_db_close(v->db);
    hf_scope_free(v->s);
}

TEST(serving, a_program_and_its_clients_share_a_database)
{
    struct served v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .threads = 2));

    CHECK(hf_server_port(v.server) != 0);
    CHECK_STR(hf_scope_format(v.s, "http://127.0.0.1:%u", (unsigned)hf_server_port(v.server)).ptr,
              hf_server_url(v.server));
    CHECK(has(v.s, v.client, "ann"));
    CHECK_OK(put(v.s, v.client, "ben"));
    CHECK(has(v.s, v.db, "ben"));
    CHECK_OK(put(v.s, v.db, "cleo"));
    CHECK(has(v.s, v.client, "cleo"));
    end(&v);
}

/* An env without memory for any thread but that of the test. */
struct starving {
    const struct hf_env *inner;
    pthread_t fed;
};

static void *starving_alloc(void *old, size_t old_size, size_t size, void *user)
{
    struct starving *starving = user;

    if (size && !pthread_equal(pthread_self(), starving->fed))
        return NULL;
    return starving->inner->alloc(old, old_size, size, starving->inner->user);
}

/* (4) */
TEST(serving, what_cannot_start_does_not_open)
{
    struct starving starving = {.inner = test_env(t), .fed = pthread_self()};
    struct hf_env env = {.size = sizeof(env), .user = &starving, .alloc = starving_alloc};
    struct served v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .threads = 1));
    struct hf_server *server;

    CHECK_STATUS(HF_NOMEM,
                 hf_server_open(v.s, v.db, HF_OPTIONS(hf_server_options, .env = &env, .threads = 2),
                                &server));
    CHECK(server == NULL);
    CHECK(has(v.s, v.client, "ann"));
    end(&v);
}

TEST(serving, it_has_the_console)
{
    struct served v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .name = HF_STR("shop")));
    struct hf_client_options *options =
        HF_OPTIONS(hf_client_options, .env = test_env(t), .no_aws_config = true,
                   .region = HF_STR("us-east-1"));
    struct hf_server_answer got;

    CHECK_OK(hf_server_get(v.s, hf_server_url(v.server), options, HF_STR("/console/"), &got));
    CHECK_INT(200, got.status);
    CHECK_OK(
        hf_server_get(v.s, hf_server_url(v.server), options, HF_STR("/console/api/info"), &got));
    CHECK(strstr(got.body.ptr, "\"database\":{\"kind\":\"engine\",\"url\":\"shop\"}") != NULL);
    CHECK(strstr(got.body.ptr, "\"lock.list\"") != NULL);
    end(&v);

    v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .no_console = true));
    CHECK_OK(hf_server_get(v.s, hf_server_url(v.server), options, HF_STR("/console/"), &got));
    CHECK_INT(404, got.status);
    end(&v);
}

/* (1), (2) of read_only.c: whatever way it comes, and the program itself may write. */
TEST(serving, read_only_refuses_all_that_writes)
{
    static const char *const writes[] = {
        "DELETE FROM tab WHERE pk='ann'",
        "  delete FROM tab WHERE pk='ann'",
        "INSERT INTO tab VALUE {'pk':'eve'}",
        "\n\tUPDATE tab SET a=1 WHERE pk='ann'",
        "/**/SELECT * FROM tab",
        "SELECTDELETE",
        "",
    };
    struct served v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .read_only = true));
    struct hf_create_table other = tab_request();
    struct hf_execute_statement_result got;

    CHECK(has(v.s, v.client, "ann"));
    CHECK_STATUS(HF_DENIED, put(v.s, v.client, "eve"));
    CHECK(strstr(hf_scope_error(v.s)->message.ptr,
                 "The database is served read-only: PutItem is refused") != NULL);
    other.table = HF_STR("other");
    CHECK_STATUS(HF_DENIED, hf_create_table(v.s, v.client, &other, NULL));
    for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
        struct hf_execute_statement one = {.statement = hf_str_from(writes[i])};
        struct hf_batch_statement many[2] = {{.statement =
                                                  HF_STR("SELECT * FROM tab WHERE pk='ann'")},
                                             {.statement = hf_str_from(writes[i])}};
        struct hf_transact_statement both[2] = {{.statement = many[0].statement},
                                                {.statement = many[1].statement}};
        struct hf_execute_transaction all = {.statements = both, .statements_len = 2};
        struct hf_batch_execute_statement batch = {.statements = many, .statements_len = 2};
        enum hf_status status = hf_execute_statement(v.s, v.client, &one, NULL);

        CHECK(status == HF_DENIED || status == HF_INVALID);
        status = hf_execute_transaction(v.s, v.client, &all, NULL);
        CHECK(status == HF_DENIED || status == HF_INVALID);
        status = hf_batch_execute_statement(v.s, v.client, &batch, NULL);
        CHECK(status == HF_DENIED || status == HF_INVALID);
    }
    CHECK_OK(hf_execute_statement(v.s, v.client,
                                  &(struct hf_execute_statement){
                                      .statement = HF_STR(" select * FROM \"tab\"")},
                                  &got));
    CHECK_INT(1, got.items_len);
    CHECK_OK(put(v.s, v.db, "ben"));
    CHECK(has(v.s, v.client, "ben") && has(v.s, v.client, "ann") && !has(v.s, v.client, "eve"));
    end(&v);
}

TEST(serving, keys_keep_others_out)
{
    const struct hf_server_key key = {.access_key = HF_STR("ANN"), .secret_key = HF_STR("secret")};
    struct served v =
        serve(t, "memory:", HF_OPTIONS(hf_server_options, .keys = &key, .keys_len = 1));
    struct hf_list_tables_result tables;
    struct hf_db *ann = connect_to(&v, hf_server_url(v.server), "ANN");
    struct hf_db *eve = connect_to(&v, hf_server_url(v.server), "EVE");

    CHECK_OK(hf_list_tables(v.s, ann, &(struct hf_list_tables){.limit = 1}, &tables));
    CHECK(hf_list_tables(v.s, eve, &(struct hf_list_tables){.limit = 1}, &tables) != HF_OK);
    hf_db_close(eve);
    hf_db_close(ann);
    end(&v);
}

/* ---- a Unix socket -------------------------------------------------------------------------- */

static int dial(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, path, strlen(path));
    if (connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0)
        return fd;
    close(fd);
    return -1;
}

TEST(serving, it_can_be_a_unix_socket)
{
    static const char ask[] = "GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str path = hf_scope_format(s, "%s/socket", test_directory(t));
    struct served v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .socket = path));
    struct hf_server *second;
    struct stat info;
    char got[4096] = "";
    size_t len = 0;
    int fd;

    CHECK_INT(0, hf_server_port(v.server));
    CHECK_STR(hf_scope_format(s, "unix:%s", path.ptr).ptr, hf_server_url(v.server));
    CHECK_INT(0, stat(path.ptr, &info));
    CHECK_INT(0600, info.st_mode & 0777);
    fd = dial(path.ptr);
    CHECK(fd >= 0);
    CHECK(write(fd, ask, sizeof(ask) - 1) == (ssize_t)sizeof(ask) - 1);
    for (ssize_t n = 1; n > 0; len += n > 0 ? (size_t)n : 0)
        n = read(fd, got + len, sizeof(got) - 1 - len);
    CHECK(strstr(got, "alive") != NULL);
    close(fd);
    CHECK_STATUS(HF_IO,
                 hf_server_open(v.s, v.db, /* somebody listens there */
                                HF_OPTIONS(hf_server_options, .env = test_env(t), .socket = path),
                                &second));
    CHECK(second == NULL);
    end(&v);
    CHECK(stat(path.ptr, &info) != 0);

    fd = open(path.ptr, O_CREAT | O_WRONLY | O_CLOEXEC, 0600); /* a file is nobody's socket */
    close(fd);
    v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .port = 0));
    CHECK_STATUS(HF_IO,
                 hf_server_open(v.s, v.db,
                                HF_OPTIONS(hf_server_options, .env = test_env(t), .socket = path),
                                &second));
    CHECK_INT(0, stat(path.ptr, &info));
    end(&v);
    hf_scope_free(s);
}

TEST(serving, a_socket_that_was_left_behind_is_replaced)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_str path = hf_scope_format(s, "%s/socket", test_directory(t));
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct served v;

    memcpy(address.sun_path, path.ptr, path.len);
    CHECK_INT(0, bind(fd, (struct sockaddr *)&address, sizeof(address)));
    close(fd);
    v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .socket = path));
    fd = dial(path.ptr);
    CHECK(fd >= 0);
    close(fd);
    end(&v);
    hf_scope_free(s);
}

/* ---- the file "served" ---------------------------------------------------------------------- */

static struct hf_str read_mark(struct hf_scope *s, const char *directory)
{
    FILE *file = fopen(hf_scope_format(s, "%s/served", directory).ptr, "re");
    char text[256] = "";

    if (!file)
        return (struct hf_str){0};
    CHECK(fgets(text, sizeof(text), file) != NULL);
    fclose(file);
    return hf_scope_format(s, "%s", text);
}

/* (1) */
TEST(serving, a_directory_says_where_it_is_served)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    const char *directory = hf_scope_format(s, "%s/db", test_directory(t)).ptr;
    const char *url = hf_scope_format(s, "embedded:%s", directory).ptr;
    struct served v = serve(t, url, HF_OPTIONS(hf_server_options, .threads = 1));
    struct hf_server *server;
    struct hf_db *db;

    CHECK_STR(hf_scope_format(s, "%ld %s\n", (long)getpid(), hf_server_url(v.server).ptr).ptr,
              read_mark(s, directory));
    CHECK(has(v.s, v.client, "ann"));
    end(&v);
    CHECK(!read_mark(s, directory).ptr);

    CHECK_OK(hf_open(s, hf_str_from(url),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .read_only = true), &db));
    CHECK_OK(hf_server_open(s, db, HF_OPTIONS(hf_server_options, .env = test_env(t)), &server));
    CHECK(!read_mark(s, directory).ptr);
    hf_server_close(server);
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- over a service ------------------------------------------------------------------------- */

TEST(serving, a_service_can_be_served_too)
{
    struct served inner = serve(t, "memory:", HF_OPTIONS(hf_server_options, .no_console = true));
    struct served v = {.t = t, .s = hf_scope_new(test_env(t))};
    struct hf_server_answer got;

    CHECK_OK(hf_server_open(v.s, inner.client,
                            HF_OPTIONS(hf_server_options, .env = test_env(t), .read_only = true),
                            &v.server));
    v.client = connect_to(&v, hf_server_url(v.server), NULL);
    CHECK(has(v.s, v.client, "ann"));
    CHECK_STATUS(HF_DENIED, put(v.s, v.client, "eve"));
    CHECK_OK(hf_server_get(v.s, hf_server_url(v.server),
                           HF_OPTIONS(hf_client_options, .env = test_env(t), .no_aws_config = true,
                                      .region = HF_STR("us-east-1")),
                           HF_STR("/console/api/info"), &got));
    CHECK(strstr(got.body.ptr, "\"kind\":\"remote\"") != NULL);
    CHECK(strstr(got.body.ptr, "\"read_only\":true") != NULL);
    hf_server_stop(inner.server); /* it goes away: an error, and no hang */
    hf_server_close(inner.server);
    inner.server = NULL;
    CHECK(hf_list_tables(v.s, v.client, &(struct hf_list_tables){.limit = 1},
                         &(struct hf_list_tables_result){.tables_len = 0}) != HF_OK);
    end(&v);
    end(&inner);
}

/* ---- calls ---------------------------------------------------------------------------------- */

/* (1), (2) of calls.c: who may call the server cannot use the machine that it runs on. */
TEST(serving, calls_do_not_reach_beyond_the_database)
{
    static const char *const methods[] = {
        "relay.start",    "relay.pause",     "blob.put",
        "blob.get",       "blob.has",        "blob.delete",
        "session.next",   "session.close",   "lock.acquire",
        "leader.open",    "outbox.open",     "events.open",
        "events.consume", "streams.consume", "records.process",
        "once.begin",     "none.such",       ".",
        "relay.start ",
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct serving_calls calls;
    struct server_options options = {.console = true};
    struct hf_str result;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf__serving_calls_open(s, db, test_env(t), false, &calls));
    hf__serving_calls_offer(&calls, &options);
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
        CHECK_STATUS(HF_DENIED, options.call(s, options.call_user, hf_str_from(methods[i]),
                                             HF_STR("{}"), &result));
        CHECK(strstr(result.ptr, "{\"code\":\"HF_DENIED\"") == result.ptr);
        for (size_t n = 0; options.methods[n]; n++)
            CHECK(strcmp(options.methods[n], methods[i]) != 0);
    }
    CHECK_OK(options.call(s, options.call_user, HF_STR("bind.version"), HF_STR("{}"), &result));
    CHECK_OK(options.call(s, options.call_user, HF_STR("ListTables"), HF_STR("{}"), &result));
    hf__serving_calls_close(&calls);
    hf_db_close(db);
    hf_scope_free(s);
}

/* A name that is misspelled in the list would be missing here. */
TEST(serving, every_offered_method_is_there)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct serving_calls calls;
    struct hf_db *db;
    size_t len = 0;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf__serving_calls_open(s, db, test_env(t), false, &calls));
    while (calls.methods[len])
        len++;
    CHECK_INT(SERVING_METHODS, len);
    hf__serving_calls_close(&calls);
    hf_db_close(db);
    hf_scope_free(s);
}

/* A method called as the console does; its result, or its error. */
static struct hf_str call(struct hf_scope *s, struct serving_calls *calls, const char *method,
                          const char *json)
{
    struct server_options options = {.console = true};
    struct hf_str result;

    hf__serving_calls_offer(calls, &options);
    (void)options.call(s, options.call_user, hf_str_from(method), hf_str_from(json), &result);
    CHECK(result.ptr != NULL);
    return result;
}

struct called {
    struct hf_scope *s;
    struct hf_db *db;
    struct serving_calls calls;
};

static struct called call_open(struct test *t)
{
    struct called v = {.s = hf_scope_new(test_env(t))};

    CHECK_OK(hf_open(v.s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &v.db));
    CHECK_OK(hf__serving_calls_open(v.s, v.db, test_env(t), false, &v.calls));
    return v;
}

static void call_end(struct called *v)
{
    hf__serving_calls_close(&v->calls);
    hf_db_close(v->db);
    hf_scope_free(v->s);
}

static void delete_table(struct called *v, const char *table)
{
    CHECK_OK(
        hf_delete_table(v->s, v->db, &(struct hf_delete_table){.table = hf_str_from(table)}, NULL));
}

static bool emit(struct called *v)
{
    struct hf_str got =
        call(v->s, &v->calls, "outbox.emit",
             "{\"events\":[{\"type\":\"placed\",\"key\":\"7\",\"payload\":\"{}\"}]}");

    return strstr(got.ptr, "\"code\"") == NULL;
}

/* (3) of calls.c */
TEST(serving, calls_notice_that_a_table_is_gone)
{
    struct called v = call_open(t);
    struct hf_str got;

    CHECK(emit(&v));
    delete_table(&v, "outbox");
    CHECK(strstr(call(v.s, &v.calls, "outbox.pending", "{}").ptr, "\"HF_NOT_FOUND\"") != NULL);
    CHECK(emit(&v));
    CHECK(emit(&v));
    got = call(v.s, &v.calls, "outbox.stats", "{}");
    CHECK(strstr(got.ptr, "\"pending\":2") != NULL);
    call_end(&v);
}

/* (3) of calls.c: an event in a bucket that the new outbox does not have would never be delivered. */
TEST(serving, calls_notice_that_a_table_was_made_anew)
{
    struct called v = call_open(t);
    struct hf_outbox *outbox;
    struct hf_event_list list;

    for (int round = 0; round < 3; round++) {
        uint32_t buckets = round == 1 ? 1 : 64;

        CHECK_OK(
            hf_outbox_open(v.s, v.db, HF_OPTIONS(hf_outbox_options, .buckets = buckets), &outbox));
        for (int i = 0; i < 20; i++) {
            struct hf_str json = hf_scope_format(
                v.s, "{\"events\":[{\"type\":\"t\",\"key\":\"key-%d\",\"payload\":\"{}\"}]}", i);

            CHECK(strstr(call(v.s, &v.calls, "outbox.emit", json.ptr).ptr, "\"code\"") == NULL);
        }
        CHECK_OK(
            hf_outbox_pending(v.s, outbox, HF_OPTIONS(hf_event_list_options, .limit = 100), &list));
        CHECK_INT(20, list.events_len);
        hf_outbox_close(outbox);
        delete_table(&v, "outbox");
    }
    call_end(&v);
}

/* What passes through one object is in order, from the first event of a new outbox on. */
TEST(serving, calls_emit_in_order)
{
    struct called v = call_open(t);
    struct hf_outbox *outbox;
    struct hf_event_list list;

    for (int round = 0; round < 8; round++) {
        for (int i = 0; i < 4; i++) {
            struct hf_str json =
                hf_scope_format(v.s,
                                "{\"events\":[{\"type\":\"t-%d\",\"key\":\"k\",\"payload\":\"\"}]}",
                                i);

            CHECK(strstr(call(v.s, &v.calls, "outbox.emit", json.ptr).ptr, "\"code\"") == NULL);
        }
        CHECK_OK(hf_outbox_open(v.s, v.db, NULL, &outbox));
        CHECK_OK(hf_outbox_pending(v.s, outbox, NULL, &list));
        CHECK_INT(4, list.events_len);
        for (int i = 0; i < 4; i++)
            CHECK_STR(hf_scope_format(v.s, "t-%d", i).ptr, list.events[i].event.type);
        hf_outbox_close(outbox);
        delete_table(&v, "outbox");
    }
    call_end(&v);
}

/* (3) of calls.c: the table of the snapshot is another one than that of the calls before. */
TEST(serving, calls_notice_that_a_snapshot_was_restored)
{
    struct called v = call_open(t);
    struct hf_engine_snapshot *snapshot;

    CHECK(strstr(call(v.s, &v.calls, "counter.add", "{\"id\":\"a\",\"by\":5}").ptr, "\"code\"") ==
          NULL);
    CHECK_OK(hf_engine_snapshot_take(v.s, v.db, &snapshot));
    CHECK(emit(&v));
    CHECK_OK(hf_engine_snapshot_restore(v.s, v.db, snapshot));
    CHECK(emit(&v));
    CHECK(strstr(call(v.s, &v.calls, "outbox.stats", "{}").ptr, "\"pending\":1") != NULL);
    CHECK(strstr(call(v.s, &v.calls, "counter.get", "{\"id\":\"a\"}").ptr, "5") != NULL);
    hf_engine_snapshot_free(snapshot);
    call_end(&v);
}

struct caller {
    struct called *of;
    const struct hf_env *env;
    atomic_bool *done;
};

static void *call_on(void *user)
{
    struct caller *caller = user;
    struct hf_scope *s = hf_scope_new(caller->env);

    while (!atomic_load(caller->done)) {
        (void)call(s, &caller->of->calls, "counter.add", "{\"id\":\"a\",\"by\":1}");
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

/* (3) of calls.c, with calls that use what others find to be of another table. */
TEST(serving, calls_at_once_notice_it_too)
{
    enum { CALLERS = 3, TABLES = 20 };
    struct called v = call_open(t);
    struct caller callers[CALLERS];
    pthread_t threads[CALLERS];
    atomic_bool done = false;
    enum hf_status status;

    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (struct caller){.of = &v, .env = test_env(t), .done = &done};
        CHECK_INT(0, pthread_create(&threads[i], NULL, call_on, &callers[i]));
    }
    for (int i = 0; i < TABLES; i++) {
        do /* until they have made it again */
            status = hf_delete_table(v.s, v.db, &(struct hf_delete_table){.table = HF_STR("keys")},
                                     NULL);
        while (status != HF_OK);
    }
    atomic_store(&done, true);
    for (int i = 0; i < CALLERS; i++)
        pthread_join(threads[i], NULL);
    status = hf_delete_table(v.s, v.db, &(struct hf_delete_table){.table = HF_STR("keys")}, NULL);
    CHECK(status == HF_OK || status == HF_NOT_FOUND); /* nobody had made it again */
    CHECK(strstr(call(v.s, &v.calls, "counter.add", "{\"id\":\"a\",\"by\":1}").ptr,
                 "\"value\":1") != NULL);
    call_end(&v);
}

/* (4) of calls.c: whatever a caller asks for. */
TEST(serving, calls_list_no_more_than_a_page)
{
    enum { MORE = SERVING_LIST_MAX + 10 };
    static const char *const limits[] = {"{}", "{\"limit\":0}", "{\"limit\":4000000000}"};
    struct called v = call_open(t);

    for (int i = 0; i < MORE; i++) {
        struct hf_str json = hf_scope_format(v.s, "{\"id\":\"name-%05d\",\"by\":1}", i);

        CHECK(strstr(call(v.s, &v.calls, "counter.add", json.ptr).ptr, "\"code\"") == NULL);
    }
    for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
        struct hf_str got = call(v.s, &v.calls, "counter.list", limits[i]);
        int len = 0;

        for (const char *at = got.ptr; (at = strstr(at, "\"id\":")) != NULL; at++)
            len++;
        CHECK_INT(SERVING_LIST_MAX, len);
        CHECK(strstr(got.ptr, "\"next\":") != NULL);
    }
    CHECK(strstr(call(v.s, &v.calls, "counter.list", "{\"limit\":2}").ptr, "name-") != NULL);
    call_end(&v);
}

/* ---- mistakes ------------------------------------------------------------------------------- */

TEST(serving, mistakes_are_named)
{
    struct served v = serve(t, "memory:", HF_OPTIONS(hf_server_options, .threads = 1));
    const struct hf_server_key empty = {.access_key = HF_STR("ANN")};
    struct hf_server *server;

    CHECK_STATUS(HF_INVALID, hf_server_open(v.s, NULL, NULL, &server));
    CHECK_STATUS(HF_INVALID,
                 hf_server_open(v.s, v.db,
                                HF_OPTIONS(hf_server_options, .env = test_env(t),
                                           .host = HF_STR("127.0.0.1"), .socket = HF_STR("x")),
                                &server));
    CHECK_STATUS(HF_INVALID, hf_server_open(v.s, v.db,
                                            HF_OPTIONS(hf_server_options, .env = test_env(t),
                                                       .host = HF_STR("0.0.0.0")),
                                            &server));
    CHECK_STATUS(HF_INVALID, hf_server_open(v.s, v.db,
                                            HF_OPTIONS(hf_server_options, .env = test_env(t),
                                                       .keys = &empty, .keys_len = 1),
                                            &server));
    CHECK_STATUS(HF_IO, hf_server_open(v.s, v.db,
                                       HF_OPTIONS(hf_server_options, .env = test_env(t),
                                                  .port = hf_server_port(v.server)),
                                       &server));
    CHECK(server == NULL);
    hf_server_close(NULL);
    end(&v);
}
