/*
 * relay/relay_watch_test.c: relays that learn from the stream of the table what others emit; (n)
 * is an invariant of relay_watch.c. Who emits has an outbox of its own here, as another process
 * would, and nobody polls within the time of a test.
 */
#include <holdfast/relay.h>

#include <holdfast/db.h>

#include "kit.h"
#include "relay_kit.h"

enum { NEVER_MS = 3600000, WAKE_MS = 50 };

struct stage {
    struct kit *k;
    struct hf_outbox *here, *there;
    struct ear *ear;
    struct hf_relay *relay;
};

static struct hf_outbox *open_outbox(struct kit *k, bool stream)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 4,
                                       .stream = stream),
                            &outbox));
    return outbox;
}

static void run_for(struct stage *stage, int64_t ms)
{
    struct test *t = stage->k->t;
    int64_t end_us = t->elapsed_us + ms * 1000;

    while (t->elapsed_us < end_us) {
        uint32_t wait_ms;

        hf_scope_reset(stage->k->scope);
        CHECK_OK(hf_relay_step(stage->k->scope, stage->relay, &wait_ms));
        if (t->elapsed_us + (int64_t)wait_ms * 1000 > end_us)
            wait_ms = (uint32_t)((end_us - t->elapsed_us + 999) / 1000);
        test_advance_ms(t, wait_ms ? wait_ms : 1);
    }
}

/* With all buckets taken, and read once. */
static void stage_open(struct stage *stage, struct kit *k, bool stream,
                       struct hf_relay_options options)
{
    *stage = (struct stage){.k = k};
    stage->there = open_outbox(k, stream);
    stage->here = open_outbox(k, stream);
    stage->ear = ear_open(k->scope, 10, false);
    options.size = sizeof(options);
    options.no_threads = true;
    options.poll_ms = NEVER_MS;
    CHECK_OK(hf_relay_open(k->scope, stage->here, stage->ear->sink, &options, &stage->relay));
    run_for(stage, 2000);
}

static void stage_close(struct stage *stage)
{
    hf_relay_close(stage->relay);
    hf_outbox_close(stage->here);
    hf_outbox_close(stage->there);
    ear_close(stage->ear);
}

static struct hf_relay_metrics metrics_of(struct stage *stage)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(stage->relay, &metrics);
    return metrics;
}

static bool has_streams(struct kit *k)
{
    return kit_has(k, HF_FEATURE_STREAMS);
}

static void set_stream(struct kit *k, bool enabled)
{
    struct hf_stream_spec spec = {.enabled = enabled ? HF_YES : HF_NO,
                                  .view = enabled ? HF_VIEW_NEW_AND_OLD_IMAGES : 0};
    struct hf_update_table update = {.table = k->table, .stream = &spec};
    struct hf_update_table_result result;

    CHECK_OK(hf_update_table(k->scope, k->db, &update, &result));
}

/* (3) */
KIT_TEST(relay_watch, what_others_emit_is_found_by_the_stream)
{
    struct stage stage;
    uint64_t reads;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true,
               (struct hf_relay_options){.wake_by_stream = true, .wake_ms = WAKE_MS});
    CHECK(metrics_of(&stage).watching);
    CHECK_INT(4, metrics_of(&stage).buckets);
    emit(k->scope, stage.there, "a", 1);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(1, stage.ear->len);
    emit(k->scope, stage.there, "b", 2);
    emit(k->scope, stage.there, "a", 3);
    emit(k->scope, stage.there, "", 4);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(4, stage.ear->len);
    reads = metrics_of(&stage).reads;
    run_for(&stage, 20 * WAKE_MS); /* that they left again is no news */
    CHECK_INT(reads, metrics_of(&stage).reads);
    CHECK(metrics_of(&stage).stream_reads >= 20);
    CHECK(metrics_of(&stage).stream_reads <= 70);
    stage_close(&stage);
}

/* And without it not, so that the above means something. */
KIT_TEST(relay_watch, without_it_only_polling_finds_them)
{
    struct stage stage;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true, (struct hf_relay_options){0});
    emit(k->scope, stage.there, "a", 1);
    run_for(&stage, 20 * WAKE_MS);
    CHECK_INT(0, stage.ear->len);
    CHECK_INT(0, metrics_of(&stage).stream_reads);
    CHECK(!metrics_of(&stage).watching);
    stage_close(&stage);
}

/* A table without a stream is one that is polled; when it has one some day, that is found. */
KIT_TEST(relay_watch, a_stream_may_be_missing_and_come_later)
{
    struct stage stage;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, false,
               (struct hf_relay_options){.wake_by_stream = true, .wake_ms = WAKE_MS});
    CHECK(!metrics_of(&stage).watching);
    emit(k->scope, stage.there, "a", 1);
    run_for(&stage, 20 * WAKE_MS);
    CHECK_INT(0, stage.ear->len);
    CHECK_INT(0, metrics_of(&stage).stream_reads);
    set_stream(k, true);
    run_for(&stage, 61000);
    CHECK(metrics_of(&stage).watching);
    CHECK_INT(1, stage.ear->len); /* (3): it may be there already */
    emit(k->scope, stage.there, "a", 2);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(2, stage.ear->len);
    stage_close(&stage);
}

/* A stream that ends is followed by the next one. */
KIT_TEST(relay_watch, goes_on_in_the_next_stream)
{
    struct stage stage;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true,
               (struct hf_relay_options){.wake_by_stream = true, .wake_ms = WAKE_MS});
    emit(k->scope, stage.there, "a", 1);
    set_stream(k, false);
    emit(k->scope, stage.there, "a", 2); /* in none of them */
    test_advance_ms(k->t, 1500);         /* labels have milliseconds; in some places, seconds */
    set_stream(k, true);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(2, stage.ear->len);
    emit(k->scope, stage.there, "b", 3);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(3, stage.ear->len);
    CHECK(metrics_of(&stage).watching);
    stage_close(&stage);
}

/* (2) */
KIT_TEST(relay_watch, a_full_page_is_news_for_all)
{
    struct stage stage;
    uint64_t asked;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true,
               (struct hf_relay_options){.wake_by_stream = true, .wake_ms = WAKE_MS});
    for (int i = 1; i <= 350; i++) {
        hf_scope_reset(k->scope);
        emit(k->scope, stage.there, hf_scope_format(k->scope, "key%d", i % 20).ptr, i);
    }
    asked = metrics_of(&stage).stream_reads;
    run_for(&stage, 3 * WAKE_MS);
    CHECK_INT(350, stage.ear->len);
    CHECK(metrics_of(&stage).stream_reads - asked <= 4);
    emit(k->scope, stage.there, "a", 351);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(351, stage.ear->len);
    stage_close(&stage);
}

/* (4): it is asked less often, and finds what came meanwhile. */
KIT_TEST(relay_watch, throttled_it_asks_less_often)
{
    struct stage stage;
    uint64_t asked;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true,
               (struct hf_relay_options){.wake_by_stream = true, .wake_ms = WAKE_MS});
    kit_fault(k, HF_FAULT_THROTTLE, "GetRecords", 0);
    asked = metrics_of(&stage).stream_reads;
    emit(k->scope, stage.there, "a", 1);
    run_for(&stage, 40 * WAKE_MS);
    CHECK_INT(0, stage.ear->len);
    CHECK(metrics_of(&stage).stream_reads - asked <= 7); /* 50, 100, 200, ... ms, and not 40 */
    CHECK(!metrics_of(&stage).watching);
    kit_no_faults(k);
    run_for(&stage, 10000);
    CHECK_INT(1, stage.ear->len);
    asked = metrics_of(&stage).stream_reads;
    run_for(&stage, 20 * WAKE_MS);
    CHECK(metrics_of(&stage).stream_reads - asked >= 15); /* as often as before */
    stage_close(&stage);
}

/* (4): any other failure, in whatever it asks for. */
KIT_TEST(relay_watch, goes_on_after_failures)
{
    static const char *const operations[] = {"GetRecords", "DescribeTable", "DescribeStream",
                                             "GetShardIterator"};
    struct stage stage;
    int number = 0;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true,
               (struct hf_relay_options){.wake_by_stream = true, .wake_ms = WAKE_MS});
    for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++) {
        kit_fault(k, HF_FAULT_ERROR, "GetRecords", 1); /* so that a list has to be made */
        run_for(&stage, WAKE_MS);
        kit_no_faults(k);
        kit_fault(k, HF_FAULT_LOST_REQUEST, operations[i], 2);
        emit(k->scope, stage.there, "a", ++number);
        run_for(&stage, 40 * WAKE_MS);
        CHECK_INT(number, stage.ear->len);
        CHECK(metrics_of(&stage).watching);
        kit_no_faults(k);
    }
    stage_close(&stage);
}

KIT_TEST(relay_watch, competing_relays_are_woken_too)
{
    struct stage stage;

    if (!has_streams(k))
        return;
    stage_open(&stage, k, true,
               (struct hf_relay_options){.wake_by_stream = true,
                                         .wake_ms = WAKE_MS,
                                         .competing = true});
    emit(k->scope, stage.there, "a", 1);
    run_for(&stage, 2 * WAKE_MS);
    CHECK_INT(1, stage.ear->len);
    stage_close(&stage);
}
