/*
 * engine/shards_test.c: in which order shards are listed. Readers page by it and rely on it.
 */
#include "help.h"

#include "engine/engine.h"
#include "engine/stream/streams.h"

struct listing {
    char ids[SHARDS_MAX][80];
    unsigned len;
};

/* Ids of shards as DescribeStream lists them, page after page. */
static struct listing list_shards(struct world *w, const char *arn, unsigned limit)
{
    struct listing listing = {.len = 0};
    char start[128] = "";

    for (;;) {
        struct hf_str page =
            callf(w, "DescribeStream", "{'StreamArn':'%s','Limit':%u%s}", arn, limit, start);
        struct hf_str rest = page;
        struct hf_str id;

        CHECK(!is_error(page));
        while ((id = next_text(&rest, "ShardId")).ptr) {
            CHECK(listing.len < SHARDS_MAX && id.len < sizeof(listing.ids[0]));
            memcpy(listing.ids[listing.len++], id.ptr, id.len);
        }
        if (!next_text(&page, "LastEvaluatedShardId").ptr)
            return listing;
        snprintf(start, sizeof(start), ",'ExclusiveStartShardId':'%s'",
                 listing.ids[listing.len - 1]);
    }
}

static void check_order(struct world *w, const char *arn)
{
    struct listing all = list_shards(w, arn, 100);

    CHECK_INT(4, all.len);
    for (unsigned i = 1; i < all.len; i++)
        CHECK(strcmp(all.ids[i - 1], all.ids[i]) < 0);
    for (unsigned limit = 1; limit < 4; limit++) {
        struct listing pages = list_shards(w, arn, limit);

        CHECK(pages.len == all.len && memcmp(pages.ids, all.ids, sizeof(all.ids)) == 0);
    }
}

static void stream_arn(struct world *w, char *arn, size_t size)
{
    struct hf_str rest = callf(w, "DescribeTable", "{'TableName':'tab'}");
    struct hf_str text = next_text(&rest, "LatestStreamArn");

    CHECK(text.len < size);
    memcpy(arn, text.ptr, text.len);
    arn[text.len] = '\0';
}

TEST(shards, are_listed_in_the_order_of_their_ids)
{
    for (int i = 0; i < 8; i++) { /* every stream has other ids */
        struct world w = world_open(t, "memory:");
        char arn[256];

        for (int j = 0; j < i; j++)
            callf(&w, "CreateTable", PK_TABLE("other%d", ""), j);
        callf(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("KEYS_ONLY")));
        stream_arn(&w, arn, sizeof(arn));
        check_order(&w, arn);
        world_close(&w);
    }
}

/* The records of a shard lie by its position, which is not its place in the listing. */
TEST(shards, of_streams_with_ids_in_no_order_are_listed_so_too)
{
    struct world w = world_open(t, "memory:");
    struct stream *stream;
    struct hf_str first;
    char arn[256];
    unsigned records = 0;
    struct listing all;

    callf(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("KEYS_ONLY")));
    stream_arn(&w, arn, sizeof(arn));
    stream = hf__engine_of(w.db)->streams.list[0];
    first = stream->shards[0].id; /* as streams were before ids were given out in order */
    stream->shards[0].id = stream->shards[3].id;
    stream->shards[3].id = stream->shards[1].id;
    stream->shards[1].id = first;
    check_order(&w, arn);
    for (int i = 0; i < 20; i++)
        callf(&w, "PutItem", "{'TableName':'tab','Item':{'pk':{'S':'%d'}}}", i);
    all = list_shards(&w, arn, 100);
    for (unsigned i = 0; i < all.len; i++) {
        struct hf_str got = callf(&w, "GetShardIterator",
                                  "{'StreamArn':'%s','ShardId':'%s','ShardIteratorType':"
                                  "'TRIM_HORIZON'}",
                                  arn, all.ids[i]);
        struct hf_str iterator = next_text(&got, "ShardIterator");
        struct hf_str page = callf(&w, "GetRecords", "{'ShardIterator':'%.*s'}", HF_FMT(iterator));

        CHECK(!is_error(page));
        while (next_text(&page, "SequenceNumber").ptr)
            records++;
    }
    CHECK_INT(20, records);
    world_close(&w);
}

/* A page may go on behind a shard that is not there. */
TEST(shards, a_page_starts_behind_any_id)
{
    struct world w = world_open(t, "memory:");
    struct hf_str page;
    char arn[256];

    callf(&w, "CreateTable", PK_TABLE("tab", STREAM_OF("KEYS_ONLY")));
    stream_arn(&w, arn, sizeof(arn));
    page = callf(&w, "DescribeStream", "{'StreamArn':'%s','ExclusiveStartShardId':'%s'}", arn,
                 "zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz");
    CHECK(!is_error(page) && !next_text(&page, "ShardId").ptr);
    page = callf(&w, "DescribeStream", "{'StreamArn':'%s','ExclusiveStartShardId':'%s'}", arn,
                 "shardId-00000000000000000000-00000000");
    for (int i = 0; i < 4; i++)
        CHECK(next_text(&page, "ShardId").ptr);
    world_close(&w);
}
