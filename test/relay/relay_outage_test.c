/*
 * relay/relay_outage_test.c: sinks whose probe succeeds and whose sends fail, and drains that
 * have to end all the same; without threads, on the virtual clock, on every database. With threads:
 * relay_thread_test.c.
 */
#include <holdfast/relay.h>

#include "kit.h"
#include "relay_kit.h"

/* ---- a stage -------------------------------------------------------------------------------- */

enum { TIMES_MAX = 200 };

/* A sink that can be asked, and says that it is there. */
struct mute {
    struct ear *ear;
    struct hf_sink *sink;
    int probes;
    int troubles;                /* reports of the relay */
    int64_t sends_ms[TIMES_MAX]; /* when it was sent to */
    size_t sends_len;
};

static enum hf_status mute_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    struct mute *mute = self;
    const struct hf_env *env = hf_scope_env(s);

    if (mute->sends_len < TIMES_MAX)
        mute->sends_ms[mute->sends_len++] = env->elapsed_us(env->user) / 1000;
    return ear_send(s, mute->ear, deliveries, len);
}

static enum hf_status mute_probe(struct hf_scope *s, void *self)
{
    struct mute *mute = self;

    (void)s;
    mute->probes++;
    return HF_OK;
}

static void on_error(const struct hf_error *error, void *user)
{
    struct mute *mute = user;

    (void)error;
    mute->troubles++;
}

struct stage {
    struct hf_outbox *outbox;
    struct hf_relay *relay;
    struct mute mute;
};

static void stage_open(struct kit *k, struct stage *stage, struct hf_relay_options options)
{
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "mute",
                              .batch_max = 10,
                              .send = mute_send,
                              .probe = mute_probe};

    *stage = (struct stage){.mute = {.ear = ear_open(k->scope, 1, false)}};
    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 2),
                            &stage->outbox));
    CHECK_OK(hf_sink_new(k->scope, &ops, &stage->mute, &stage->mute.sink));
    options.size = sizeof(options);
    options.no_threads = true;
    options.on_error = on_error;
    options.user = &stage->mute;
    CHECK_OK(hf_relay_open(k->scope, stage->outbox, stage->mute.sink, &options, &stage->relay));
}

static void stage_close(struct stage *stage)
{
    hf_relay_close(stage->relay);
    hf_sink_close(stage->mute.sink);
    ear_close(stage->mute.ear);
    hf_outbox_close(stage->outbox);
}

static void run_for(struct kit *k, struct stage *stage, int64_t ms)
{
    relays_run_for(k->t, k->scope, &stage->relay, 1, ms);
}

static struct hf_relay_metrics metrics_of(struct stage *stage)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(stage->relay, &metrics);
    return metrics;
}

/* ---- outages -------------------------------------------------------------------------------- */

/* The waits between sends double, though the sink says each time that it is there; it is one
 * outage, and one report; what waits is delivered when it is over, and another outage is another.
 */
static void probe_lies(struct kit *k, bool competing)
{
    struct stage stage;

    stage_open(k, &stage,
               (struct hf_relay_options){.competing = competing, .backoff_max_ms = 8000});
    for (int i = 0; i < 20; i++)
        emit(k->scope, stage.outbox, "", i);
    stage.mute.ear->down = true;
    run_for(k, &stage, 60000);
    CHECK_INT(1, metrics_of(&stage).outages);
    CHECK_INT(1, stage.mute.troubles);
    CHECK_INT(0, metrics_of(&stage).retried);
    CHECK(stage.mute.probes >= 8 && stage.mute.sends_len >= 8); /* 1, 2, 4, then every 8 s */
    CHECK(stage.mute.sends_len <= 19);
    for (size_t i = 1; i < stage.mute.sends_len; i++) {
        int64_t wait_ms = stage.mute.sends_ms[i] - stage.mute.sends_ms[i - 1];

        CHECK(wait_ms >= (i < 4 ? 500 << (i - 1) : 4000));
    }
    stage.mute.ear->down = false;
    run_for(k, &stage, 20000);
    CHECK_INT(20, metrics_of(&stage).delivered);
    CHECK(!metrics_of(&stage).breaker_open);
    for (size_t i = 0; i < stage.mute.ear->len; i++)
        CHECK_INT(0, stage.mute.ear->heard[i].attempts);

    stage.mute.sends_len = 0;
    stage.mute.ear->down = true;
    emit(k->scope, stage.outbox, "", 20);
    run_for(k, &stage, 2500); /* from a second on again */
    CHECK_INT(2, metrics_of(&stage).outages);
    CHECK_INT(2, stage.mute.troubles);
    CHECK(stage.mute.sends_len >= 2 && stage.mute.sends_len <= 4);
    stage_close(&stage);
}

KIT_TEST(relay_outage, a_probe_that_succeeds_does_not_end_it)
{
    probe_lies(k, false);
}

KIT_TEST(relay_outage, nor_does_it_for_competing_ones)
{
    probe_lies(k, true);
}

/* A sink that goes away and comes back all the time, with the same words: it is reported once in
 * the longest wait. */
KIT_TEST(relay_outage, the_same_is_not_reported_every_second)
{
    struct stage stage;

    stage_open(k, &stage, (struct hf_relay_options){.backoff_max_ms = 30000});
    for (int i = 0; i < 10; i++) {
        emit(k->scope, stage.outbox, "", i);
        stage.mute.ear->down = true;
        run_for(k, &stage, 500);
        stage.mute.ear->down = false;
        run_for(k, &stage, 1500);
        CHECK_INT(i + 1, metrics_of(&stage).delivered);
    }
    CHECK_INT(10, metrics_of(&stage).outages);
    CHECK_INT(1, stage.mute.troubles);
    stage_close(&stage);
}

/* ---- drains that end ------------------------------------------------------------------------ */

static void check_not_drained(struct kit *k, struct stage *stage, const char *why, int64_t from_ms,
                              int64_t to_ms)
{
    int64_t began_us = k->t->elapsed_us, took_ms;
    uint64_t delivered = 99;

    CHECK_STATUS(HF_TIMEOUT, hf_relay_drain(k->scope, stage->relay, &delivered));
    took_ms = (k->t->elapsed_us - began_us) / 1000;
    CHECK(took_ms >= from_ms && took_ms <= to_ms);
    CHECK_INT(0, delivered);
    CHECK(strstr(hf_scope_error_text(k->scope), "not drained"));
    CHECK(strstr(hf_scope_error_text(k->scope), why));
}

/* The deadline of the scope, and stall_ms without one. */
KIT_TEST(relay_outage, a_drain_ends_while_the_sink_is_away)
{
    for (int competing = 0; competing < 2; competing++) {
        struct stage stage;

        stage_open(k, &stage, (struct hf_relay_options){.competing = competing, .stall_ms = 3000});
        emit(k->scope, stage.outbox, "", 1);
        stage.mute.ear->down = true;
        hf_scope_timeout_ms(k->scope, 1500);
        check_not_drained(k, &stage, "the sink cannot be reached: nobody is there", 1400, 1500);
        hf_scope_timeout_ms(k->scope, 0);
        check_not_drained(k, &stage, "the sink cannot be reached: nobody is there", 3000, 3100);
        stage.mute.ear->down = false;
        test_advance_ms(k->t, 60000);
        CHECK_OK(hf_relay_drain(k->scope, stage.relay, NULL));
        CHECK_INT(1, metrics_of(&stage).delivered);
        stage_close(&stage);
        test_advance_ms(k->t, 700000); /* the table may be used in the other way by now */
    }
}

/* A drain that goes on is not ended by stall_ms, however long it takes in all. */
KIT_TEST(relay_outage, a_drain_that_goes_on_goes_on)
{
    struct stage stage;
    uint64_t delivered;

    stage_open(k, &stage, (struct hf_relay_options){.stall_ms = 1000, .rate = 2, .batch_max = 1});
    for (int i = 0; i < 10; i++)
        emit(k->scope, stage.outbox, "", i);
    CHECK_OK(hf_relay_drain(k->scope, stage.relay, &delivered));
    CHECK_INT(10, delivered);
    stage_close(&stage);
}

KIT_TEST(relay_outage, a_drain_of_a_paused_relay_ends)
{
    struct stage stage;

    stage_open(k, &stage, (struct hf_relay_options){.stall_ms = 1000});
    emit(k->scope, stage.outbox, "", 1);
    hf_relay_pause(stage.relay);
    check_not_drained(k, &stage, "is paused", 1000, 1100);
    stage_close(&stage);
}

/* ... and one that cannot have its buckets. */
KIT_TEST(relay_outage, a_drain_beside_a_silent_relay_ends)
{
    struct stage stage, other;

    stage_open(k, &other, (struct hf_relay_options){.lease_ms = 20000});
    run_for(k, &other, 1000);
    CHECK_INT(2, metrics_of(&other).buckets);
    stage_open(k, &stage, (struct hf_relay_options){.stall_ms = 2000});
    emit(k->scope, stage.outbox, "", 1);
    emit(k->scope, stage.outbox, "", 2);
    check_not_drained(k, &stage, "other relays have its buckets", 2000, 2100);
    stage_close(&stage);
    stage_close(&other);
}
