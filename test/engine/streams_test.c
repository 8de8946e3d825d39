/*
 * engine/streams_test.c: streams over time: numbers are never reused, records outlive reopening and
 * crashes, and a reader that follows all shards sees every change once, each item's in order.
 */
#include "help.h"

#include "engine/engine.h"
#include "engine/setting.h"
#include "store/store.h"

enum { SHARDS_MAX = 16 };

/* Somebody who reads all shards of the table's stream from its beginning. */
struct reader {
    struct world *w;
    unsigned shards;
    char iterators[SHARDS_MAX][512]; /* empty: the shard has come to its end */
    char last[SHARDS_MAX][32];       /* sequence number of the last record */
    unsigned records;
    bool in_order; /* so far */
    void (*see)(struct reader *r, struct hf_str record);
    void *user;
};

static void copy_text(char *to, size_t size, struct hf_str from)
{
    CHECK(from.ptr && from.len < size);
    memcpy(to, from.ptr, from.len);
    to[from.len] = '\0';
}

static void reader_start(struct world *w, struct reader *r, const char *table)
{
    struct hf_str rest = callf(w, "DescribeTable", "{'TableName':'%s'}", table);
    struct hf_str arn = next_text(&rest, "LatestStreamArn");
    struct hf_str description = callf(w, "DescribeStream", "{'StreamArn':'%.*s'}", HF_FMT(arn));
    struct hf_str shard;

    *r = (struct reader){.w = w, .in_order = true};
    while ((shard = next_text(&description, "ShardId")).ptr) {
        struct hf_str got = callf(w, "GetShardIterator",
                                  "{'StreamArn':'%.*s','ShardId':'%.*s','ShardIteratorType':"
                                  "'TRIM_HORIZON'}",
                                  HF_FMT(arn), HF_FMT(shard));

        CHECK(r->shards < SHARDS_MAX);
        copy_text(r->iterators[r->shards++], sizeof(r->iterators[0]),
                  next_text(&got, "ShardIterator"));
    }
    CHECK(r->shards > 0);
}

/* Read what there is in every shard, once; how many records it was. */
static unsigned reader_turn(struct reader *r)
{
    unsigned before = r->records;

    for (unsigned i = 0; i < r->shards; i++) {
        struct hf_str answer, rest, next, number;

        if (!r->iterators[i][0])
            continue;
        answer = callf(r->w, "GetRecords", "{'ShardIterator':'%s','Limit':50}", r->iterators[i]);
        CHECK(!is_error(answer));
        for (rest = answer; (number = next_text(&rest, "SequenceNumber")).ptr;) {
            char text[32];

            copy_text(text, sizeof(text), number);
            r->in_order = r->in_order && strcmp(text, r->last[i]) > 0;
            memcpy(r->last[i], text, sizeof(text));
            r->records++;
        }
        rest = answer;
        while (r->see && after(&rest, "\"Keys\":").ptr)
            r->see(r, rest);
        rest = answer;
        next = next_text(&rest, "NextShardIterator");
        r->iterators[i][0] = '\0';
        if (next.ptr)
            copy_text(r->iterators[i], sizeof(r->iterators[0]), next);
        hf_scope_reset(r->w->scope);
    }
    return r->records - before;
}

#define PUT_ITEM "{'TableName':'tab','Item':{'pk':{'S':'%s'},'v':{'N':'%d'}}}"

static void put(struct world *w, const char *pk, int value)
{
    CHECK(
        !is_error(callf(w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%s'},'v':{'N':'%d'}}}",
                        pk, value)));
}

/* The greatest sequence number of all shards, from what is in them now. */
static void greatest(struct world *w, char number[32], unsigned *records)
{
    struct reader r;

    reader_start(w, &r, "tab");
    while (reader_turn(&r) > 0)
        ;
    CHECK(r.in_order);
    *records = r.records;
    number[0] = '\0';
    for (unsigned i = 0; i < r.shards; i++)
        if (strcmp(r.last[i], number) > 0)
            memcpy(number, r.last[i], 32);
}

/* ---- over time ------------------------------------------------------------------------------ */

TEST(streams, numbers_are_not_used_again_after_reopening)
{
    struct world w = world_open(t, "disk:");
    char last[32] = "";
    char now[32];
    unsigned records;

    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_IMAGE")));
    for (int round = 0; round < 4; round++) {
        put(&w, "a", round);
        greatest(&w, now, &records);
        CHECK(strcmp(now, last) > 0);
        CHECK_INT(round + 1, records); /* those from before are still there */
        memcpy(last, now, sizeof(last));
        world_reopen(&w);
    }
    test_advance_ms(t, 25 * 60 * 60 * 1000); /* even when nothing is left to compare with */
    CHECK_INT(4, upkeep(&w).trimmed_records);
    world_reopen(&w);
    put(&w, "a", 99);
    greatest(&w, now, &records);
    CHECK_INT(1, records);
    CHECK(strcmp(now, last) > 0);
    world_close(&w);
}

static int count_one(struct world *w)
{
    return is_error(world_call(w, "UpdateItem",
                               "{'TableName':'tab','Key':{'pk':{'S':'a'}},'UpdateExpression':"
                               "'ADD n :one','ExpressionAttributeValues':{':one':{'N':'1'}}}"));
}

TEST(streams, numbers_are_not_used_again_after_a_crash)
{
    struct world w;
    char last[32] = "";

    crash_here(t, count_one);
    w = world_open(t, "disk:");
    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("KEYS_ONLY")));
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 2; i++) {
            char now[32];
            unsigned records;

            if (i == 0)
                crash_after(&w);
            else
                CHECK_INT(0, count_one(&w));
            greatest(&w, now, &records);
            CHECK_INT(2 * round + i + 1, records);
            CHECK(strcmp(now, last) > 0);
            memcpy(last, now, sizeof(last));
        }
    }
    world_close(&w);
}

/* An iterator is good in the next life of the database, too. */
TEST(streams, iterators_outlive_reopening)
{
    struct world w = world_open(t, "disk:");
    struct reader r;
    unsigned seen;

    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_AND_OLD_IMAGES")));
    for (int i = 0; i < 10; i++)
        put(&w, i % 2 ? "a" : "b", i);
    reader_start(&w, &r, "tab");
    seen = reader_turn(&r);
    CHECK_INT(10, seen);
    world_reopen(&w);
    CHECK_INT(0, reader_turn(&r));
    for (int i = 10; i < 15; i++)
        put(&w, "c", i);
    CHECK_INT(5, reader_turn(&r));
    CHECK(r.in_order);
    world_close(&w);
}

TEST(streams, a_disabled_stream_is_readable_to_its_end_for_a_day)
{
    struct world w = world_open(t, "disk:");
    struct reader r;
    unsigned total = 0;
    struct hf_str rest;

    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_IMAGE")));
    for (int i = 0; i < 7; i++)
        put(&w, "a", i);
    reader_start(&w, &r, "tab");
    world_ok(&w, "UpdateTable",
             "{'TableName':'tab','StreamSpecification':{'StreamEnabled':false}}");
    put(&w, "a", 100); /* nobody hears of it */
    world_reopen(&w);
    for (unsigned got = 1; got > 0; total += got)
        got = reader_turn(&r);
    CHECK_INT(7, total);
    for (unsigned i = 0; i < r.shards; i++)
        CHECK(!r.iterators[i][0]); /* all of them have come to their end */
    test_advance_ms(t, 24 * 60 * 60 * 1000 + 1000);
    upkeep(&w);
    rest = world_ok(&w, "ListStreams", "{}");
    CHECK(after(&rest, "StreamArn").ptr == NULL);
    world_close(&w);
}

/* ---- many writers, one reader --------------------------------------------------------------- */

enum { FOLLOWED = 24, TURNS = 250 };

static void *count_up(void *arg)
{
    struct worker *worker = arg;

    for (unsigned i = 0; i < worker->rounds; i++) {
        struct hf_str answer =
            callf(&worker->w, "UpdateItem",
                  "{'TableName':'tab','Key':{'pk':{'S':'i%02u'}},'UpdateExpression':'ADD n :one',"
                  "'ExpressionAttributeValues':{':one':{'N':'1'}}}",
                  (worker->number * 7 + i) % FOLLOWED);

        worker->wrong += is_error(answer);
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

/* Each record must carry the successor of the item's number before. */
static void see_successor(struct reader *r, struct hf_str record)
{
    unsigned *numbers = r->user;
    struct hf_str pk = next_text(&record, "pk\":{\"S");
    unsigned long item = pk.ptr ? strtoul(pk.ptr + 1, NULL, 10) : FOLLOWED;

    after(&record, "\"NewImage\":");
    if (item >= FOLLOWED || next_number(&record, "\"n\":{\"N\":\"") != ++numbers[item])
        r->in_order = false;
}

static void every_change_once_and_in_order(struct test *t, const char *kind)
{
    struct world w = world_open(t, kind);
    unsigned numbers[FOLLOWED] = {0};
    struct worker workers[WORKERS_MAX];
    struct reader r;
    unsigned idle = 0;

    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_IMAGE")));
    reader_start(&w, &r, "tab");
    CHECK_INT(4, r.shards);
    r.see = see_successor;
    r.user = numbers;
    workers_start(&w, workers, WORKERS_MAX, TURNS, count_up, NULL);
    while (r.records < WORKERS_MAX * TURNS && r.in_order && idle < 100000)
        idle = reader_turn(&r) ? 0 : idle + 1;
    CHECK_INT(0, workers_join(workers, WORKERS_MAX));
    while (reader_turn(&r) > 0)
        ;
    CHECK(r.in_order);
    CHECK_INT(WORKERS_MAX * TURNS, r.records);
    world_close(&w);
}

TEST(streams, eight_writers_every_change_once_and_in_order_in_memory)
{
    every_change_once_and_in_order(t, "memory:");
}

TEST(streams, eight_writers_every_change_once_and_in_order_on_disk)
{
    every_change_once_and_in_order(t, "disk:");
}

/* Transactions that span shards, enabling and disabling meanwhile: no record without its change. */
static void *transfer(void *arg)
{
    struct worker *worker = arg;

    for (unsigned i = 0; i < worker->rounds; i++) {
        struct hf_str answer = callf(
            &worker->w, "TransactWriteItems",
            "{'TransactItems':[{'Update':{'TableName':'tab','Key':{'pk':{'S':'i%02u'}},"
            "'UpdateExpression':'ADD n :one','ExpressionAttributeValues':{':one':{'N':'1'}}}},"
            "{'Update':{'TableName':'tab','Key':{'pk':{'S':'i%02u'}},'UpdateExpression':"
            "'ADD n :one','ExpressionAttributeValues':{':one':{'N':'1'}}}}]}",
            (worker->number + i) % FOLLOWED, (worker->number + i + 1) % FOLLOWED);

        worker->wrong += is_error(answer);
        hf_scope_reset(worker->w.scope);
    }
    return NULL;
}

TEST(streams, transactions_across_shards_keep_the_order_of_each_item)
{
    struct world w = world_open(t, "memory:");
    unsigned numbers[FOLLOWED] = {0};
    struct worker workers[WORKERS_MAX];
    struct reader r;

    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("NEW_IMAGE")));
    reader_start(&w, &r, "tab");
    r.see = see_successor;
    r.user = numbers;
    workers_start(&w, workers, WORKERS_MAX, 100, transfer, NULL);
    CHECK_INT(0, workers_join(workers, WORKERS_MAX));
    while (reader_turn(&r) > 0)
        ;
    CHECK(r.in_order);
    CHECK_INT(WORKERS_MAX * 100 * 2, r.records);
    world_close(&w);
}

/* The numbers in use are recorded as used up, also when the write that should have recorded them
 * failed and others followed. Otherwise they would be used again once their records are trimmed. */
TEST(streams, numbers_are_reserved_after_a_failed_write)
{
    struct world w = {.t = t, .scope = hf_scope_new(test_env(t))};
    struct store_faults faults = {.status = HF_NO_SPACE};
    struct hf__store *memory, *store;
    struct hf_bytes reserved;
    struct hf_str answer;
    struct engine *e;

    w.options = (struct hf_engine_options){.env = test_env(t), .no_upkeep_thread = true};
    CHECK_OK(hf__store_open_memory(w.scope, test_env(t), &memory));
    CHECK_OK(hf__store_open_with_faults(w.scope, test_env(t), memory, &faults, &store));
    CHECK_OK(hf__engine_open_on(w.scope, store, &w.options, &w.db));
    e = hf__engine_of(w.db);
    world_ok(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("KEYS_ONLY")));
    faults.fail_at = faults.calls + 1; /* the first item of a table is written, and not read */
    answer = world_call(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    CHECK(is_error(answer));
    CHECK(faults.struck && strcmp(faults.struck, "write") == 0);
    world_ok(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'a'}}}");
    CHECK_OK(hf__setting_get(w.scope, e, "sequence", &reserved));
    CHECK_INT(8, reserved.len);
    CHECK(load_u64be(reserved.ptr) >= e->sequencer.next);
    world_close(&w);
}
