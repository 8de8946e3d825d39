/*
 * engine/backfill_test.c: a global index that is added to a table with items: it ends up with the
 * entries it should have, whatever is written meanwhile, and with exact counts.
 */
#include "help.h"

#define ADD_INDEX                                                                                  \
    "{'TableName':'tab','AttributeDefinitions':[{'AttributeName':'g','AttributeType':'S'}],"       \
    "'GlobalSecondaryIndexUpdates':[{'Create':{'IndexName':'by_g','KeySchema':[{'AttributeName':"  \
    "'g','KeyType':'HASH'}],'Projection':{'ProjectionType':'ALL'}}}]}"

static void put(struct world *w, unsigned pk, const char *more)
{
    CHECK(!is_error(
        callf(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'p%06u'}%s}}", pk, more)));
}

/* How many items the index has, by its description. */
static long long described(struct world *w)
{
    struct hf_str rest = callf(w, "DescribeTable", "{'TableName':'tab'}");

    after(&rest, "\"IndexName\":\"by_g\"");
    return next_number(&rest, "\"ItemCount\":");
}

/* And by reading it; items are marked in `seen` by the number in their key. */
static long long scanned(struct world *w, const char *index, uint8_t *seen, size_t cap)
{
    long long count = 0;
    char start[256] = "";

    for (;;) {
        struct hf_str answer =
            callf(w, "Scan", "{'TableName':'tab'%s%s,'ConsistentRead':false}", index, start);
        struct hf_str rest = answer;
        struct hf_str last = answer;
        struct hf_str pk;

        CHECK(!is_error(answer));
        if (after(&last, "\"LastEvaluatedKey\":").ptr)
            rest.len = (size_t)(last.ptr - rest.ptr);
        while ((pk = next_text(&rest, "pk\":{\"S")).ptr) {
            unsigned long number = strtoul(pk.ptr + 1, NULL, 10);

            CHECK(number < cap);
            seen[number]++;
            count++;
        }
        if (!last.ptr || last.ptr == answer.ptr)
            return count;
        snprintf(start, sizeof(start), ",'ExclusiveStartKey':%.*s", (int)last.len - 1, last.ptr);
        hf_scope_reset(w->scope);
    }
}

/* Writes on items that the walk has not seen yet, and on ones it has. */
TEST(backfill, writes_before_the_walk_are_counted_once)
{
    struct world w = world_open(t, "memory:");

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < 6; i++)
        put(&w, i, ",'g':{'S':'x'}");
    world_ok(&w, "UpdateTable", ADD_INDEX);
    world_ok(&w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'p000000'}}}");
    put(&w, 1, ",'g':{'S':'x'},'more':{'S':'changed, but not moved'}");
    put(&w, 2, ",'g':{'S':'moved'}");
    put(&w, 3, "");
    put(&w, 6, ",'g':{'S':'new'}");
    upkeep(&w);
    CHECK_INT(5, described(&w));
    world_ok(&w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'p000006'}}}");
    CHECK_INT(4, described(&w));
    world_close(&w);
}

/* Wrong type, empty, too long: they stay in the table and out of the index. */
TEST(backfill, leaves_out_what_does_not_fit)
{
    struct world w = world_open(t, "memory:");
    uint8_t seen[8] = {0};
    char wide[2200];

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    put(&w, 0, ",'g':{'S':'fits'}");
    put(&w, 1, ",'g':{'N':'1'}");
    put(&w, 2, ",'g':{'S':''}");
    put(&w, 3, "");
    snprintf(wide, sizeof(wide), ",'g':{'S':'%02049d'}", 0);
    put(&w, 4, wide);
    snprintf(wide, sizeof(wide), ",'g':{'S':'%02048d'}", 0);
    put(&w, 5, wide);
    put(&w, 6, ",'g':{'SS':['a']}");
    put(&w, 7, ",'g':{'NULL':true}");
    world_ok(&w, "UpdateTable", ADD_INDEX);
    upkeep(&w);
    CHECK_INT(2, scanned(&w, ",'IndexName':'by_g'", seen, 8));
    CHECK(seen[0] == 1 && seen[5] == 1);
    CHECK_INT(2, described(&w));
    CHECK_INT(8, scanned(&w, "", seen, 8));
    world_close(&w);
}

enum { ITEMS = 1500, WRITERS = 4 };

static void *scribble(void *arg)
{
    struct worker *worker = arg;
    unsigned random = worker->number + 1;

    for (unsigned i = 0; i < worker->rounds; i++) {
        struct hf_str answer;
        unsigned pk;

        random = random * 1664525 + 1013904223;
        pk = (random >> 8) % ITEMS;
        switch (random >> 28) {
        case 0:
        case 1:
        case 2:
        case 3:
            answer = callf(&worker->w, "DeleteItem",
                           "{'TableName':'tab','Key':{'pk':{'S':'p%06u'}}}", pk);
            break;
        case 4:
        case 5:
        case 6:
            answer =
                callf(&worker->w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'p%06u'}}}", pk);
            break;
        case 7:
        case 8:
        case 9:
            answer = callf(&worker->w, "UpdateItem",
                           "{'TableName':'tab','Key':{'pk':{'S':'p%06u'}},'UpdateExpression':'SET "
                           "n = :n','ExpressionAttributeValues':{':n':{'N':'%u'}}}",
                           pk, i);
            break;
        default:
            answer = callf(&worker->w, "PutItem",
                           "{'TableName':'tab','Item':{'pk':{'S':'p%06u'},'g':{'S':'%u'}}}", pk,
                           random >> 30);
            break;
        }
        worker->wrong += is_error(answer);
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

static void equals_the_table(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    struct worker writers[WRITERS];
    uint8_t in_index[ITEMS] = {0};
    uint8_t in_table[ITEMS] = {0};
    long long count;

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < ITEMS; i++) {
        put(&w, i, i % 3 ? ",'g':{'S':'old'}" : "");
        hf_scope_reset(w.scope);
    }
    world_ok(&w, "UpdateTable", ADD_INDEX);
    workers_start(&w, writers, WRITERS, 1500, scribble, NULL);
    upkeep(&w);
    CHECK_INT(0, workers_join(writers, WRITERS));
    upkeep(&w);
    CHECK_OK(hf_engine_check(w.scope, w.db, NULL));

    count = scanned(&w, ",'IndexName':'by_g'", in_index, ITEMS);
    CHECK_INT(count, scanned(&w,
                             ",'FilterExpression':'attribute_exists(g)','Select':"
                             "'ALL_ATTRIBUTES'",
                             in_table, ITEMS));
    CHECK(memcmp(in_index, in_table, sizeof(in_index)) == 0);
    CHECK_INT(count, described(&w));
    world_close(&w);
}

TEST(backfill, equals_the_table_while_four_threads_write_in_memory)
{
    equals_the_table(t, "memory:");
}

TEST(backfill, equals_the_table_while_four_threads_write_on_disk)
{
    equals_the_table(t, "disk:");
}

/* Closed in the middle: the next opening goes on, and counts come out right. */
TEST(backfill, goes_on_after_reopening)
{
    struct world w = world_open(t, "disk:");
    struct hf_str rest;

    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < 250; i++)
        put(&w, i, ",'g':{'S':'x'}");
    world_ok(&w, "UpdateTable", ADD_INDEX);
    put(&w, 250, ",'g':{'S':'x'}");
    world_reopen(&w);
    rest = world_ok(&w, "DescribeTable", "{'TableName':'tab'}");
    CHECK(after(&rest, "\"Backfilling\":true").ptr != NULL);
    CHECK_FAILS(&w, "ValidationException",
                "Cannot read from backfilling global secondary index: by_g", "Query",
                "{'TableName':'tab','IndexName':'by_g','KeyConditionExpression':'g = :x',"
                "'ExpressionAttributeValues':{':x':{'S':'x'}}}");
    upkeep(&w);
    CHECK_INT(251, described(&w));
    rest = world_ok(&w, "DescribeTable", "{'TableName':'tab'}");
    CHECK(after(&rest, "Backfilling").ptr == NULL);
    world_reopen(&w);
    CHECK_INT(251, described(&w));
    world_close(&w);
}

/* The process that asked for the index ends before it is built. */
static int add_index(struct world *w)
{
    int wrong = is_error(world_call(w, "UpdateTable", ADD_INDEX));

    wrong +=
        is_error(world_call(w, "DeleteItem", "{'TableName':'tab','Key':{'pk':{'S':'p000001'}}}"));
    return wrong + is_error(world_call(w, "PutItem",
                                       "{'TableName':'tab','Item':{'pk':{'S':'p000002'},'g':{'S':"
                                       "'moved'}}}"));
}

TEST(backfill, goes_on_after_a_crash)
{
    struct world w;

    crash_here(t, add_index);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", PK_TABLE("tab", ""));
    for (unsigned i = 0; i < 250; i++)
        put(&w, i, ",'g':{'S':'x'}");
    crash_after(&w);
    CHECK_INT(1, described(&w)); /* the one that was put after the index was there */
    put(&w, 3, ",'g':{'S':'moved'}");
    CHECK_INT(2, described(&w));
    upkeep(&w);
    CHECK_INT(249, described(&w));
    world_reopen(&w);
    CHECK_INT(249, described(&w));
    world_close(&w);
}
