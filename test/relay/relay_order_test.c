/*
 * relay/relay_order_test.c: the order of a key, and batches: relays without threads, on the virtual
 * clock, on every database.
 */
#include <holdfast/relay.h>

#include <holdfast/engine.h>

#include "relay_stage.h"

/* ---- order ---------------------------------------------------------------------------------- */

KIT_TEST(relay, with_failed_blocks_a_key_waits_for_a_decision)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear,
                       (struct hf_relay_options){.failed_blocks = true, .poll_ms = 500});
    uint64_t done;

    ear->fails = 1;
    ear->fails_for_good = true;
    emit(k->scope, outbox, "a", 1);
    emit(k->scope, outbox, "a", 2);
    emit(k->scope, outbox, "b", 3);
    run_for(k, &relay, 1, 5000);
    CHECK_INT(2, ear->len); /* 1, which failed, and 3 */
    CHECK_INT(1, metrics_of(relay).given_up);
    hf_relay_close(relay);
    relay = relay_by_turns(k->scope, outbox, ear,
                           (struct hf_relay_options){.failed_blocks = true, .poll_ms = 500});
    run_for(k, &relay, 1, 5000);
    CHECK_INT(2, ear->len); /* it is in the table, not in somebody's memory */
    ear->fails = -1;
    hf_scope_reset(k->scope);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, &done));
    CHECK_INT(1, done);
    run_for(k, &relay, 1, 5000);
    CHECK_INT(4, ear->len);
    CHECK_INT(1, ear->heard[2].number); /* first the dead letter */
    CHECK_INT(2, ear->heard[3].number);
    close_all(outbox, relay, ear);
}

/* One key has far more than is read ahead, and cannot go on; others are behind all of that. */
KIT_TEST(relay, a_key_that_cannot_go_on_starves_nobody)
{
    enum { MANY = 400 };
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear,
                                            (struct hf_relay_options){.batch = 10, .poll_ms = 100});
    struct hf_relay_metrics before, after;

    ear->fails = 0;
    ear->fail_times = 2;
    for (int i = 0; i < MANY; i++)
        emit(k->scope, outbox, "slow", i);
    for (int i = MANY; i < MANY + 50; i++)
        emit(k->scope, outbox, i % 2 ? "quick" : "", i);
    run_for(k, &relay, 1, 500);
    CHECK_INT(51, ear->len);
    CHECK(metrics_of(relay).waiting <= 40);
    before = metrics_of(relay);
    run_for(k, &relay, 1, 100);
    after = metrics_of(relay);
    CHECK(after.reads - before.reads <= 10); /* what cannot go on is not read over and over */
    run_for(k, &relay, 1, 5000);
    CHECK_INT(2 + MANY + 50, ear->len);
    for (int i = 1, last = -1; i < MANY; i++) {
        CHECK(last < (int)ear_first(ear, i));
        last = (int)ear_first(ear, i);
    }
    CHECK_INT(0, items_of(k, "p", 1));
    close_all(outbox, relay, ear);
}

/* What is scheduled for the next minute is not read whenever we look. */
KIT_TEST(relay, what_is_scheduled_costs_little)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    double none, some;

    run_for(k, &relay, 1, 5000);
    none = metrics_of(relay).read_units;
    run_for(k, &relay, 1, 10000);
    none = metrics_of(relay).read_units - none;
    for (int i = 0; i < 300; i++) {
        hf_scope_reset(k->scope);
        emit_later(k->scope, outbox, "", i, 40000 + i);
    }
    run_for(k, &relay, 1, 5000);
    some = metrics_of(relay).read_units;
    run_for(k, &relay, 1, 10000);
    some = metrics_of(relay).read_units - some;
    if (getenv("HF_RELAY_SHOW"))
        printf("%g units for nothing, %g with 300 events for later\n", none, some);
    CHECK(some <= none + 30); /* it is 60 when each of ten polls reads all of them */
    CHECK_INT(0, ear->len);
    run_for(k, &relay, 1, 26000);
    CHECK_INT(300, ear->len);
    hf_relay_close(relay);
    hf_outbox_close(outbox);
    ear_close(ear);
}

/* What presets are for, as it can be seen from outside. */
KIT_TEST(relay, presets_take_effect)
{
    static const struct {
        enum hf_relay_preset preset;
        int poll_ms, attempts, batch;
    } sets[] = {{HF_RELAY_BALANCED, 1000, 5, 50},
                {HF_RELAY_THROUGHPUT, 100, 3, 1000},
                {HF_RELAY_RELIABILITY, 5000, 10, 10}};

    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct hf_outbox *here = open_outbox(k, 1), *there = open_outbox(k, 1);
        struct ear *ear = ear_open(k->scope, 1, false);
        struct hf_relay *relay =
            relay_by_turns(k->scope, here, ear,
                           (struct hf_relay_options){.preset = sets[i].preset});
        int64_t begun_us, took_ms;
        uint64_t reads;

        /* How long until it looks: the first thing is emitted right after a look. */
        run_for(k, &relay, 1, 12000);
        begun_us = k->t->elapsed_us;
        reads = metrics_of(relay).reads;
        while (metrics_of(relay).reads == reads)
            run_for(k, &relay, 1, 1);
        CHECK(k->t->elapsed_us - begun_us <= sets[i].poll_ms * 1000 + 2000);
        emit(k->scope, there, "", 1);
        begun_us = k->t->elapsed_us;
        while (!ear->len)
            run_for(k, &relay, 1, 1);
        took_ms = (k->t->elapsed_us - begun_us) / 1000;
        CHECK(took_ms >= sets[i].poll_ms - 5 && took_ms <= sets[i].poll_ms + 5);

        /* How many are read at once. */
        for (int n = 0; n < 400; n++) {
            hf_scope_reset(k->scope);
            emit(k->scope, there, "", 100 + n);
        }
        run_for(k, &relay, 1, 600); /* they are not so new any more */
        reads = metrics_of(relay).reads;
        hf_outbox_wake(here);
        run_for(k, &relay, 1, sets[i].poll_ms + 100);
        CHECK_INT(401, ear->len);
        if (sets[i].preset != HF_RELAY_THROUGHPUT)
            CHECK(metrics_of(relay).reads - reads >= (uint64_t)(400 / sets[i].batch));
        CHECK(metrics_of(relay).reads - reads <= (uint64_t)(400 / sets[i].batch + 10));

        /* How often it is tried. */
        ear->fails = 2;
        emit(k->scope, here, "", 2);
        run_for(k, &relay, 1, 400000);
        CHECK_INT(sets[i].attempts, ear_count(ear, 2));
        CHECK_INT(1, metrics_of(relay).given_up);
        hf_relay_close(relay);
        hf_outbox_close(there);
        hf_outbox_close(here);
        ear_close(ear);
    }
}

/* What others emitted, who do not wake us: one poll is enough to find all of it. */
KIT_TEST(relay, a_poll_finds_all_that_is_there)
{
    enum { MANY = 300 };
    struct hf_outbox *here = open_outbox(k, 1), *there = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, here, ear,
                       (struct hf_relay_options){.batch = 10, .poll_ms = 1000});

    emit(k->scope, there, "a", 0);
    run_for(k, &relay, 1, 1500);
    CHECK_INT(1, ear->len);
    for (int i = 1; i <= MANY; i++)
        emit(k->scope, there, i % 2 ? "a" : "b", i);
    run_for(k, &relay, 1, 1100);
    CHECK_INT(1 + MANY, ear->len);
    hf_relay_close(relay);
    hf_outbox_close(there);
    hf_outbox_close(here);
    ear_close(ear);
}

/* A transaction that takes a while: its event has its place from before, and another of its key
 * follows. */
struct late {
    struct kit *k;
    struct hf_scope *s;
    struct hf_outbox *outbox;
    struct hf_transact_write action;
    bool done;
};

static void commit_late(void *user)
{
    struct late *late = user;
    struct hf_transact_write_items request = {.actions = &late->action, .actions_len = 1};
    struct hf_transact_write_items_result result;

    if (late->done)
        return;
    late->done = true;
    CHECK_OK(hf_transact_write_items(late->s, late->k->db, &request, &result));
    emit(late->s, late->outbox, "late", 2);
}

/* While a relay is between two pages, the one before and the other behind where it is. */
KIT_TEST_TX(relay, a_late_commit_between_two_pages_is_in_order)
{
    for (uint32_t batch = 1; batch < 6; batch++) {
        struct hf_outbox *outbox = open_outbox(k, 1), *there = open_outbox(k, 1);
        struct ear *ear = ear_open(k->scope, 1, false);
        struct hf_relay *relay =
            relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.batch = batch});
        struct late late = {.k = k, .s = kit_scope(k), .outbox = there};
        struct hf_event event = {.type = HF_STR("test"),
                                 .key = HF_STR("late"),
                                 .payload = hf_bytes_of("1", 1)};

        CHECK_OK(hf_outbox_emit_tx(late.s, there, &event, &late.action, NULL));
        for (int i = 10; i < 30; i++)
            emit(k->scope, there, "", i);
        ear->during = commit_late;
        ear->user = &late;
        CHECK_INT(22, drain(k, relay));
        CHECK(ear_first(ear, 1) < ear_first(ear, 2));
        CHECK_INT(22, ear->len);
        hf_outbox_close(there);
        close_all(outbox, relay, ear);
    }
}

/* Somebody emits while each is delivered, so that there is news whenever the bucket is read. */
struct busy {
    struct kit *k;
    struct hf_scope *s;
    struct hf_outbox *outbox;
    int next, last;
};

static void emit_next(void *user)
{
    struct busy *busy = user;

    test_advance_ms(busy->k->t, 20);
    if (busy->next == busy->last)
        return;
    hf_scope_reset(busy->s);
    emit(busy->s, busy->outbox, "busy", busy->next++);
}

KIT_TEST(relay, what_is_tried_again_does_not_wait_for_a_quiet_bucket)
{
    enum { MANY = 1000, BAD = 1 };

    for (uint32_t batch = 1; batch <= 50; batch += 49) {
        struct hf_outbox *outbox = open_outbox(k, 1);
        struct ear *ear = ear_open(k->scope, 1, false);
        struct hf_relay *relay =
            relay_by_turns(k->scope, outbox, ear,
                           (struct hf_relay_options){.batch = batch, .backoff_ms = 2000});
        struct busy busy = {
            .k = k, .s = kit_scope(k), .outbox = outbox, .next = 10, .last = 10 + MANY};

        ear->during = emit_next;
        ear->user = &busy;
        ear->fails = BAD;
        ear->fail_times = 2;
        emit(k->scope, outbox, "bad", BAD);
        emit(k->scope, outbox, "bad", BAD + 1);
        run_for(k, &relay, 1, 60000);
        CHECK_INT(MANY + 4, ear->len);
        CHECK_INT(3, ear_count(ear, BAD));
        CHECK(ear->heard[ear_first(ear, BAD + 1)].at_ms - ear->heard[0].at_ms < 8000);
        for (int i = 11; i < 10 + MANY; i++)
            CHECK(ear_first(ear, i - 1) < ear_first(ear, i));
        close_all(outbox, relay, ear);
    }
}

/* Whoever numbers the events of a key need not have a good clock. */
KIT_TEST(relay, numbered_events_are_in_their_order)
{
    for (uint32_t batch = 2; batch < 7; batch++) {
        struct hf_outbox *outbox = open_outbox(k, 1);
        struct ear *ear = ear_open(k->scope, 1, false);
        struct hf_relay *relay =
            relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.batch = batch});

        for (int i = 0; i < 40; i++) { /* 1 0 3 2 5 4 ... */
            int number = i % 2 ? i - 1 : i + 1;

            emit_event(k, outbox,
                       (struct hf_event){.key = HF_STR("a"), .sequence = (uint64_t)number + 1},
                       number);
            emit(k->scope, outbox, "", 1000 + i);
            test_advance_ms(k->t, 100);
        }
        drain(k, relay);
        CHECK_INT(80, ear->len);
        for (int i = 1; i < 40; i++)
            CHECK(ear_first(ear, i - 1) < ear_first(ear, i));
        close_all(outbox, relay, ear);
    }
}

/* Those behind one that is tried again are read once it is held again, and follow it. */
KIT_TEST(relay, numbered_events_follow_one_that_is_tried_again)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.backoff_ms = 50});
    int next = 0;

    ear->fails = 2;
    ear->fail_times = 2;
    for (int i = 0; i < 6; i++)
        emit_event(k, outbox, (struct hf_event){.key = HF_STR("a"), .sequence = (uint64_t)i + 1},
                   i);
    for (int i = 0; i < 100; i++) {
        uint32_t wait_ms;

        CHECK_OK(hf_relay_step(k->scope, relay, &wait_ms));
        test_advance_ms(k->t, wait_ms < 20 ? wait_ms : 20);
    }
    CHECK_INT(8, ear->len);
    for (size_t i = 0; i < ear->len; i++) /* 0 1 2 2 2 3 4 5 */
        next = ear->heard[i].number == next ? next + 1 : next;
    CHECK_INT(6, next);
    close_all(outbox, relay, ear);
}

/* ---- batches -------------------------------------------------------------------------------- */

KIT_TEST(relay, a_batch_has_one_of_each_key_or_several_in_order)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        struct hf_outbox *outbox = open_outbox(k, 1);
        struct ear *ear = ear_open(k->scope, 10, ordered);
        struct hf_relay *relay =
            relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
        size_t most = 0;

        for (int i = 0; i < 60; i++)
            emit(k->scope, outbox, i % 3 ? "a" : "b", i);
        CHECK_INT(60, drain(k, relay));
        for (size_t i = 0; i < ear->len; i++) {
            size_t same = 0;

            for (size_t j = 0; j < ear->len; j++)
                same += ear->heard[j].batch == ear->heard[i].batch &&
                        (ear->heard[j].number % 3 != 0) == (ear->heard[i].number % 3 != 0);
            most = same > most ? same : most;
        }
        CHECK_INT(ordered ? 10 : 1, most);
        CHECK(ear->calls <= (ordered ? 8 : 40));
        close_all(outbox, relay, ear);
    }
}

KIT_TEST(relay, those_behind_a_failure_in_a_batch_are_not_to_blame)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 10, true);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.max_attempts = 2});

    ear->fails = 2;
    for (int i = 0; i < 6; i++)
        emit(k->scope, outbox, "a", i);
    run_for(k, &relay, 1, 8000);
    CHECK_INT(2, ear_count(ear, 2));
    for (int i = 0; i < 6; i++)
        if (i != 2)
            CHECK_INT(1, ear_count(ear, i));
    CHECK_INT(0, ear->heard[ear->len - 1].attempts);
    CHECK_INT(5, ear->heard[ear->len - 1].number);
    CHECK_INT(1, metrics_of(relay).given_up);
    CHECK_INT(5, metrics_of(relay).delivered);
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, a_batch_keeps_to_bytes_and_may_linger)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 100, false);
    struct hf_sink_ops ops = *hf_sink_ops(ear->sink);
    struct hf_relay *relay;
    struct hf_sink *sink;

    ops.batch_bytes_max = 10;
    ops.event_bytes_max = 4;
    CHECK_OK(hf_sink_new(k->scope, &ops, ear, &sink));
    CHECK_OK(hf_relay_open(k->scope, outbox, sink,
                           HF_OPTIONS(hf_relay_options, .no_threads = true, .linger_ms = 200),
                           &relay));
    for (int i = 1000; i < 1010; i++)
        emit(k->scope, outbox, "", i);
    emit(k->scope, outbox, "", 10000); /* five bytes are too many, for good */
    run_for(k, &relay, 1, 150);        /* it settles before it takes anything, and lingers then */
    CHECK_INT(0, ear->calls);
    run_for(k, &relay, 1, 400);
    CHECK_INT(10, ear->len);
    CHECK_INT(1, metrics_of(relay).given_up);
    CHECK_INT(0, metrics_of(relay).retried);
    CHECK(ear->calls >= 5 && ear->calls <= 6);
    for (size_t i = 0; i + 2 < ear->len; i++)
        CHECK(ear->heard[i].batch != ear->heard[i + 2].batch);
    hf_relay_close(relay);
    hf_sink_close(sink);
    ear_close(ear);
    hf_outbox_close(outbox);
}
