/*
 * streams/consumer_lineage_test.c: shards that split and end, iterators that expire, records that
 * are trimmed, pages without records: a stream that does what the test wants (played.h).
 */
#include <holdfast/streams.h>

#include <holdfast/engine.h>
#include <holdfast/table.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "played.h"
#include "test.h"

struct stage {
    struct test *t;
    struct hf_scope *s;
    struct hf_db *inner;
    struct played played;
    struct played_stream *stream;
    /* what was handed over */
    int last[PLAYED_ITEMS];
    int total, out_of_order, fail, gaps;
    char gap_shard[64], gap_sequence[64];
    bool expire; /* with every batch, all iterators do */
    int splits;  /* so many of the next batches split the shard that they come from */
    int more;    /* and so many bring one more change of every item */
};

static enum hf_status take(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct stage *stage = user;

    if (stage->expire)
        stage->stream->expired = stage->stream->calls + 1;
    if (stage->fail > 0) {
        stage->fail--;
        return hf_scope_fail(s, HF_IO, "not now");
    }
    for (size_t i = 0; i < len; i++) {
        int item, n;

        played_read(changes[i].key, changes[i].new_image, &item, &n);
        stage->out_of_order += n != stage->last[item] + 1;
        stage->last[item] = n;
        stage->total++;
        if (i + 1 == len && stage->splits > 0) {
            stage->splits--;
            played_split(stage->stream, played_shard_of(stage->stream, item), true);
        }
    }
    if (stage->more > 0) {
        stage->more--;
        for (int i = 0; i < PLAYED_ITEMS; i++)
            played_change(stage->stream, i);
    }
    return HF_OK;
}

static void gap(struct hf_str shard, struct hf_str sequence, void *user)
{
    struct stage *stage = user;

    stage->gaps++;
    snprintf(stage->gap_shard, sizeof(stage->gap_shard), "%.*s", HF_FMT(shard));
    snprintf(stage->gap_sequence, sizeof(stage->gap_sequence), "%.*s", HF_FMT(sequence));
}

static void stage_open(struct test *t, struct stage *stage)
{
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_create_table spec = {.table = HF_STR("played"),
                                   .attributes = &id,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1};

    *stage = (struct stage){.t = t, .s = hf_scope_new(test_env(t))};
    CHECK_OK(hf_open(stage->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .env = test_env(t), .no_upkeep_thread = true),
                     &stage->inner));
    CHECK_OK(hf_table_ensure(stage->s, stage->inner, &spec, NULL));
    stage->stream = calloc(1, sizeof(*stage->stream));
    played_stream_begin(stage->stream, HF_STR("played"));
    played_open(&stage->played, stage->inner, stage->stream);
}

static void stage_close(struct stage *stage)
{
    free(stage->stream);
    hf_db_close(stage->inner);
    hf_scope_free(stage->s);
}

static struct hf_consumer *open_with(struct stage *stage, struct hf_consumer_options o)
{
    struct hf_consumer *consumer;

    o.size = sizeof(o);
    o.no_threads = o.until_end = true;
    o.on_gap = gap;
    o.user = stage;
    CHECK_OK(hf_consumer_open(stage->s, &stage->played.db, HF_STR("played"), &o, &consumer));
    return consumer;
}

static enum hf_status consume_with(struct stage *stage, struct hf_consumer_options o)
{
    struct hf_consumer *consumer = open_with(stage, o);
    enum hf_status status;

    hf_scope_timeout_ms(stage->s, 3600000);
    status = hf_consumer_run(stage->s, consumer, take, stage);
    hf_consumer_close(consumer);
    hf_scope_timeout_ms(stage->s, 0);
    return status;
}

#define CONSUME(stage, ...)                                                                        \
    consume_with((stage), (struct hf_consumer_options){.poll_ms = 100, __VA_ARGS__})

static void change_all(struct stage *stage)
{
    for (int i = 0; i < PLAYED_ITEMS; i++)
        played_change(stage->stream, i);
}

/* Everything, once, in order. */
static void check_all(struct stage *stage)
{
    CHECK_INT(0, stage->out_of_order);
    for (int i = 0; i < PLAYED_ITEMS; i++)
        CHECK_INT(stage->stream->numbers[i], stage->last[i]);
}

/* Children, their children, and one that just follows. */
static void split_often(struct stage *stage)
{
    change_all(stage);
    played_split(stage->stream, 0, true);
    change_all(stage);
    played_split(stage->stream, 2, true);
    played_split(stage->stream, 1, false);
    change_all(stage);
    played_split(stage->stream, 3, true);
    played_split(stage->stream, played_shard_of(stage->stream, PLAYED_ITEMS - 1), true);
    change_all(stage);
}

TEST(lineage, parents_come_before_children)
{
    struct stage stage;

    stage_open(t, &stage);
    split_often(&stage);
    CHECK_OK(CONSUME(&stage));
    check_all(&stage);
    stage_close(&stage);
}

TEST(lineage, across_restarts)
{
    struct stage stage;

    stage_open(t, &stage);
    for (int i = 0; i < 4; i++) {
        change_all(&stage);
        CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
        played_split(stage.stream, played_shard_of(stage.stream, (i * 3) % PLAYED_ITEMS), true);
        change_all(&stage);
    }
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    check_all(&stage);
    CHECK_INT(8 * PLAYED_ITEMS, stage.total);
    stage_close(&stage);
}

TEST(lineage, splits_while_it_runs)
{
    struct stage stage;

    stage_open(t, &stage);
    change_all(&stage);
    stage.splits = 6;
    stage.more = 12;
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a"), .batch = 3));
    check_all(&stage);
    CHECK_INT(13 * PLAYED_ITEMS, stage.total);
    CHECK_INT(0, stage.gaps);
    stage_close(&stage);
}

/* A parent that is not taken holds up its children, and nothing else. */
TEST(lineage, a_failing_parent_holds_its_children_up)
{
    struct stage stage;

    stage_open(t, &stage);
    split_often(&stage);
    stage.fail = 8;
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a"), .batch = 2));
    check_all(&stage);
    stage_close(&stage);
}

TEST(lineage, all_pages_of_shards)
{
    struct stage stage;

    stage_open(t, &stage);
    stage.stream->list_page = 1;
    for (int i = 0; i < 10; i++) {
        change_all(&stage);
        played_split(stage.stream, played_shard_of(stage.stream, i % PLAYED_ITEMS), i % 2);
    }
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    check_all(&stage);
    stage_close(&stage);
}

TEST(lineage, empty_pages_and_short_ones)
{
    struct stage stage;

    stage_open(t, &stage);
    split_often(&stage);
    stage.stream->empty_every = 2;
    stage.stream->page = 1;
    CHECK_OK(CONSUME(&stage));
    check_all(&stage);
    stage_close(&stage);
}

TEST(lineage, iterators_that_expire_all_the_time)
{
    struct stage stage;

    stage_open(t, &stage);
    split_often(&stage);
    stage.expire = true;
    stage.fail = 3;
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a"), .batch = 2));
    check_all(&stage);
    stage_close(&stage);
}

/* ---- what is gone --------------------------------------------------------------------------- */

TEST(lineage, trimmed_records_are_a_gap)
{
    struct stage stage;

    stage_open(t, &stage);
    played_change(stage.stream, 0);
    played_change(stage.stream, 0);
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    for (int i = 0; i < 3; i++)
        played_change(stage.stream, 0);
    stage.stream->shards[0].trimmed = 4;
    stage.last[0] = 4;
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    CHECK_INT(1, stage.gaps);
    CHECK_STR("shardId-00000000000000000000-played", hf_str_from(stage.gap_shard));
    CHECK_STR("100000000000000000002", hf_str_from(stage.gap_sequence));
    check_all(&stage);
    stage_close(&stage);
}

/* In the middle of reading, with an iterator that points to what is gone. */
static enum hf_status take_and_trim(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                    void *user)
{
    struct stage *stage = user;

    if (stage->total == 0) {
        stage->stream->shards[0].trimmed = 5;
        (void)!take(s, changes, len, user);
        stage->last[0] = 5;
        return HF_OK;
    }
    return take(s, changes, len, user);
}

TEST(lineage, trimmed_while_it_is_read)
{
    struct stage stage;
    struct hf_consumer *consumer;

    stage_open(t, &stage);
    for (int i = 0; i < 8; i++)
        played_change(stage.stream, 0);
    consumer = open_with(&stage, (struct hf_consumer_options){.batch = 2});
    CHECK_OK(hf_consumer_run(stage.s, consumer, take_and_trim, &stage));
    hf_consumer_close(consumer);
    CHECK_INT(1, stage.gaps);
    check_all(&stage);
    stage_close(&stage);
}

TEST(lineage, a_shard_that_is_gone_is_a_gap_and_its_children_go_on)
{
    struct stage stage;

    stage_open(t, &stage);
    change_all(&stage);
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    change_all(&stage); /* these nobody reads */
    played_split(stage.stream, 0, true);
    change_all(&stage);
    stage.stream->shards[0].gone = true;
    for (int i = 0; i < PLAYED_ITEMS / 2; i++)
        stage.last[i] = 2;
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    CHECK_INT(1, stage.gaps);
    CHECK_STR("shardId-00000000000000000000-played", hf_str_from(stage.gap_shard));
    CHECK(stage.gap_sequence[0] == '1');
    check_all(&stage);
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a"))); /* reported once */
    CHECK_INT(1, stage.gaps);
    stage_close(&stage);
}

/* A shard that was read to its end may go without a word. */
TEST(lineage, a_shard_that_is_done_may_go)
{
    struct stage stage;
    struct hf_consumer *consumer;

    stage_open(t, &stage);
    change_all(&stage);
    played_split(stage.stream, 0, true);
    change_all(&stage);
    consumer = open_with(&stage, (struct hf_consumer_options){.name = HF_STR("a")});
    CHECK_OK(hf_consumer_run(stage.s, consumer, take, &stage));
    stage.stream->shards[0].gone = true;
    change_all(&stage);
    CHECK_OK(hf_consumer_run(stage.s, consumer, take, &stage));
    hf_consumer_close(consumer);
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a")));
    CHECK_INT(0, stage.gaps);
    check_all(&stage);
    stage_close(&stage);
}

/* A list without it proves nothing, as long as the database has it. */
TEST(lineage, a_shard_that_is_not_listed_but_there)
{
    struct stage stage;
    struct hf_consumer *consumer;

    stage_open(t, &stage);
    change_all(&stage);
    consumer = open_with(&stage, (struct hf_consumer_options){.name = HF_STR("a")});
    CHECK_OK(hf_consumer_run(stage.s, consumer, take, &stage));
    change_all(&stage);
    stage.stream->shards[1].hidden = true;
    CHECK_OK(hf_consumer_run(stage.s, consumer, take, &stage));
    hf_consumer_close(consumer);
    CHECK_INT(0, stage.gaps);
    check_all(&stage);
    stage_close(&stage);
}

/* ---- starts --------------------------------------------------------------------------------- */

TEST(lineage, latest_has_no_closed_shard_and_all_of_new_ones)
{
    for (int named = 0; named < 2; named++) {
        struct stage stage;
        struct hf_consumer *consumer;

        stage_open(t, &stage);
        split_often(&stage);
        test_advance_ms(t, 5000);
        consumer =
            open_with(&stage, (struct hf_consumer_options){.name = named ? HF_STR("a") : HF_STR(""),
                                                           .start = HF_START_END});
        CHECK_OK(hf_consumer_run(stage.s, consumer, take, &stage));
        CHECK_INT(0, stage.total);
        for (int i = 0; i < PLAYED_ITEMS; i++)
            stage.last[i] = stage.stream->numbers[i];
        stage.stream->now_us = t->wall_us;
        change_all(&stage);
        played_split(stage.stream, played_shard_of(stage.stream, 5), true);
        change_all(&stage);
        CHECK_OK(hf_consumer_run(stage.s, consumer, take, &stage));
        check_all(&stage);
        CHECK_INT(2 * PLAYED_ITEMS, stage.total);
        hf_consumer_close(consumer);
        stage_close(&stage);
    }
}

TEST(lineage, after_a_record_come_its_shard_and_those_that_follow_it)
{
    struct stage stage;

    stage_open(t, &stage);
    change_all(&stage);                  /* sequence 1 to 8; the first four are in shard 0 */
    played_split(stage.stream, 0, true); /* 2 and 3 */
    change_all(&stage);
    stage.last[0] = stage.last[1] = 1;
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a"), .start = HF_START_AFTER,
                     .shard = HF_STR("shardId-00000000000000000000-played"),
                     .sequence = HF_STR("100000000000000000002")));
    CHECK_INT(0, stage.out_of_order);
    CHECK_INT(2 + 4, stage.total);
    change_all(&stage);
    CHECK_OK(CONSUME(&stage, .name = HF_STR("a"))); /* as it began, so it goes on */
    CHECK_INT(2 + 4 + 4, stage.total);
    CHECK_INT(0, stage.out_of_order);
    stage_close(&stage);
}
