/*
 * server/hot_test.c: /_holdfast/top: tables are counted, hot partitions and large items are found, in
 * bounded memory. (n) is an invariant of server/console/hot.c.
 */
#include <holdfast/engine.h>

#include <stdatomic.h>

#include "db/db.h"
#include "help.h"

enum { KEYS = 300, HOT = 400 };

static void top_read(struct line *c)
{
    line_text(c, "GET /_holdfast/top HTTP/1.1\r\nHost: localhost\r\n\r\n");
    line_read(c);
    CHECK_INT(200, c->status);
}

/* `text` goes where the format has one %s, or two. */
static void call(struct line *c, const char *operation, const char *format, const char *text)
{
    char json[1024];

    snprintf(json, sizeof(json), format, text, text);
    line_call(c, operation, json);
    line_read(c);
}

#define GET "{\"TableName\":\"tab\",\"Key\":{\"pk\":{\"S\":\"%s\"}}}"
#define PUT "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"%s\"}}}"

TEST(hot, tables_are_counted)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    call(&c, "PutItem", PUT, "a");
    call(&c, "GetItem", GET, "a");
    call(&c, "GetItem", GET, "b");
    call(&c, "BatchGetItem",
         "{\"RequestItems\":{\"tab\":{\"Keys\":[{\"pk\":{\"S\":\"%s\"}},{\"pk\":{\"S\":\"b\"}}]}}}",
         "a");
    call(&c, "TransactWriteItems",
         "{\"TransactItems\":[{\"Put\":{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"%s\"}}}},"
         "{\"Delete\":{\"TableName\":\"arn:aws:dynamodb:us-east-1:123456789012:table/tab\","
         "\"Key\":{\"pk\":{\"S\":\"z\"}}}}]}",
         "y");
    call(&c, "PutItem",
         "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"%s\"}},"
         "\"ConditionExpression\":\"attribute_not_exists(pk)\"}",
         "a");
    CHECK_INT(400, c.status);
    top_read(&c);
    CHECK(contains(c.body, "{\"name\":\"tab\",\"reads\":4,\"writes\":3,\"errors\":1}"));
    line_close(&c);
    site_close(&site);
}

/* (2) */
TEST(hot, tables_that_do_not_exist_take_no_place)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    call(&c, "GetItem", "{\"TableName\":\"%s\",\"Key\":{\"pk\":{\"S\":\"x\"}}}", "no-table");
    CHECK_INT(400, c.status);
    top_read(&c);
    CHECK(!contains(c.body, "no-table"));
    line_close(&c);
    site_close(&site);
}

/* (1): more keys than there are counters, and the hot one is first, however it is named. */
TEST(hot, a_hot_partition_is_found_among_many)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    for (int i = 0; i < HOT; i++) {
        char name[32];

        snprintf(name, sizeof(name), "key-%d", i % KEYS);
        call(&c, "GetItem", GET, name);
        if (i % 3 == 0)
            call(&c, "PutItem", PUT, "the-hot-one");
        else if (i % 3 == 1)
            call(&c, "Query",
                 "{\"TableName\":\"tab\",\"KeyConditionExpression\":\"#k=:v\","
                 "\"ExpressionAttributeNames\":{\"#k\":\"pk\"},"
                 "\"ExpressionAttributeValues\":{\":v\":{\"S\":\"%s\"}}}",
                 "the-hot-one");
        else
            call(&c, "UpdateItem", GET, "the-hot-one");
        CHECK_INT(200, c.status);
    }
    top_read(&c);
    CHECK(contains(c.body, "\"partitions\":[{\"table\":\"tab\",\"key\":\"the-hot-one\","));
    line_close(&c);
    site_close(&site);
}

TEST(hot, the_largest_items_are_known_by_their_size)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    for (int i = 1; i <= 20; i++) {
        char name[32];

        snprintf(name, sizeof(name), "item-%02d", i);
        call(
            &c, "PutItem",
            i % 2
                ? "{\"TableName\":\"tab\",\"Item\":{\"pk\":{\"S\":\"%s\"},\"a\":{\"S\":\"xxxxxxxxxx\"}}}"
                : PUT,
            name);
        CHECK_INT(200, c.status);
    }
    top_read(&c);
    CHECK(contains(c.body, "\"key\":\"item-01\",\"bytes\":20}"));
    CHECK(!contains(c.body, "\"bytes\":9}"));
    line_close(&c);
    site_close(&site);
}

/* A key may have any bytes and any length: what is shown is cut, and JSON. */
TEST(hot, long_and_odd_keys)
{
    struct site site;
    struct line c;
    char name[512];

    memset(name, 'k', sizeof(name));
    name[300] = '\0';
    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    call(&c, "PutItem", PUT, name);
    call(&c, "PutItem", PUT, "\\u0001\\\"\xc3\xa9");
    CHECK_INT(200, c.status);
    top_read(&c);
    name[96] = '\0';
    CHECK(contains(c.body, name));
    CHECK(contains(c.body, "\"key_cut\":true"));
    name[96] = 'k';
    name[97] = '\0';
    CHECK(!contains(c.body, name));
    CHECK(contains(c.body, "\"key\":\"\\u0001\\\"\xc3\xa9\""));
    line_close(&c);
    site_close(&site);
}

TEST(hot, a_table_that_is_made_anew_with_another_key)
{
    static const char make[] =
        "{\"TableName\":\"new\",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":"
        "[{\"AttributeName\":\"%s\",\"AttributeType\":\"S\"}],"
        "\"KeySchema\":[{\"AttributeName\":\"%s\",\"KeyType\":\"HASH\"}]}";
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    call(&c, "CreateTable", make, "one");
    call(&c, "PutItem", "{\"TableName\":\"new\",\"Item\":{\"one\":{\"S\":\"%s\"}}}", "first");
    call(&c, "DeleteTable", "{\"TableName\":\"%s\"}", "new");
    call(&c, "CreateTable", make, "two");
    for (int i = 0; i < 3; i++)
        call(&c, "PutItem", "{\"TableName\":\"new\",\"Item\":{\"two\":{\"S\":\"%s\"}}}", "second");
    CHECK_INT(200, c.status);
    top_read(&c);
    CHECK(contains(c.body, "\"key\":\"second\""));
    line_close(&c);
    site_close(&site);
}

/* One table more than are shown: the one that is used now is among them, busy as the others were. */
TEST(hot, the_tables_that_were_used_last_are_shown)
{
    static const char make[] =
        "{\"TableName\":\"%s\",\"BillingMode\":\"PAY_PER_REQUEST\",\"AttributeDefinitions\":"
        "[{\"AttributeName\":\"pk\",\"AttributeType\":\"S\"}],"
        "\"KeySchema\":[{\"AttributeName\":\"pk\",\"KeyType\":\"HASH\"}]}";
    static const char get[] = "{\"TableName\":\"%s\",\"Key\":{\"pk\":{\"S\":\"a\"}}}";
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    for (int i = 0; i < 64; i++) {
        char name[32];

        snprintf(name, sizeof(name), "table-%02d", i);
        call(&c, "CreateTable", make, name);
        for (int times = 0; times < 3; times++)
            call(&c, "GetItem", get, name);
        CHECK_INT(200, c.status);
    }
    call(&c, "GetItem", get, "tab");
    CHECK_INT(200, c.status);
    top_read(&c);
    CHECK(contains(c.body, "\"tables\":[{\"name\":\"tab\",\"reads\":1,"));
    CHECK(contains(c.body, "\"table-01\""));
    CHECK(!contains(c.body, "\"table-00\",\"reads\""));
    line_close(&c);
    site_close(&site);
}

/* A service that does not let us look at its tables, as an AWS policy can say. */
struct denying {
    struct hf_db db;
    struct hf_db *inner;
    atomic_uint asked;
};

static enum hf_status denying_call(struct hf_scope *s, struct hf_db *db, enum hf_op op,
                                   const void *request, void *response)
{
    struct denying *denying = (struct denying *)(void *)db;

    if (op != HF_OP_DESCRIBE_TABLE)
        return denying->inner->calls->call(s, denying->inner, op, request, response);
    atomic_fetch_add(&denying->asked, 1);
    return hf__fail(s, HF_DENIED, "not authorized to perform: dynamodb:DescribeTable");
}

static void denying_close(struct hf_db *db)
{
    (void)db;
}

static const struct db_calls denying_calls = {.call = denying_call, .close = denying_close};

/* (4) */
TEST(hot, a_remote_database_is_asked_nothing)
{
    struct denying denying = {.db = {.calls = &denying_calls}};
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct site site;
    struct line c;

    CHECK_OK(hf_open(s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &denying.inner));
    make_table(s, denying.inner);
    site_serve_with(t, &site, &denying.db,
                    &(struct server_options){.loops = 1, .console = true, .remote = true});
    line_open(&site, &c);
    for (int i = 0; i < 5; i++) {
        call(&c, "PutItem", PUT, "a");
        CHECK_INT(200, c.status);
    }
    call(&c, "GetItem", GET, "a");
    CHECK_INT(200, c.status);
    CHECK_INT(0, atomic_load(&denying.asked));
    top_read(&c);
    CHECK(contains(c.body, "{\"name\":\"tab\",\"reads\":1,\"writes\":5,\"errors\":0}"));
    line_close(&c);
    site_close(&site);
    hf_db_close(denying.inner);
    hf_scope_free(s);
}

TEST(hot, other_methods_are_refused)
{
    struct site site;
    struct line c;

    site_open(t, &site, &(struct server_options){.loops = 1});
    line_open(&site, &c);
    line_text(&c, "POST /_holdfast/top HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n");
    line_read(&c);
    CHECK_INT(405, c.status);
    CHECK(contains(c.body, "this path supports GET"));
    line_close(&c);
    site_close(&site);
}
