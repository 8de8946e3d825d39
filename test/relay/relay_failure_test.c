/*
 * relay/relay_failure_test.c: relays while something fails: the sink, the database, memory, a relay before
 * them.
 */
#include <holdfast/relay.h>

#include <holdfast/db.h>
#include <holdfast/engine.h>

#include "kit.h"
#include "relay_stage.h"

/* ---- the sink cannot be reached ------------------------------------------------------------- */

KIT_TEST(relay, an_outage_costs_no_attempts)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear,
                       (struct hf_relay_options){.breaker_ms = 100, .backoff_max_ms = 800});

    for (int i = 0; i < 20; i++)
        emit(k->scope, outbox, "", i);
    ear->down = true;
    run_for(k, &relay, 1, 150);
    CHECK_INT(1, ear->calls); /* nobody else is sent there to find out the same */
    CHECK(metrics_of(relay).breaker_open);
    run_for(k, &relay, 1, 10000);
    CHECK(ear->calls > 10 &&
          ear->calls < 30); /* after 0.1, 0.2, 0.4 s, then every 0.8 s, or half */
    CHECK_INT(1, metrics_of(relay).outages);
    CHECK_INT(0, metrics_of(relay).retried);
    CHECK_INT(0, ear->len);
    ear->down = false;
    run_for(k, &relay, 1, 1000);
    CHECK_INT(20, ear->len);
    CHECK(!metrics_of(relay).breaker_open);
    for (size_t i = 0; i < ear->len; i++)
        CHECK_INT(0, ear->heard[i].attempts);
    CHECK_INT(20, metrics_of(relay).delivered);
    close_all(outbox, relay, ear);
}

struct asked {
    struct ear *ear;
    int probes;
};

static enum hf_status asked_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                 size_t len)
{
    return ear_send(s, ((struct asked *)self)->ear, deliveries, len);
}

static enum hf_status asked_probe(struct hf_scope *s, void *self)
{
    struct asked *asked = self;

    asked->probes++;
    return asked->ear->down ? hf_scope_fail(s, HF_IO, "still away") : HF_OK;
}

KIT_TEST(relay, a_sink_that_can_be_asked_is_asked)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct asked asked = {.ear = ear};
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "asked",
                              .send = asked_send,
                              .probe = asked_probe};
    struct hf_relay_options options = {.size = sizeof(options), .no_threads = true};
    struct hf_relay *relay;
    struct hf_sink *sink;

    CHECK_OK(hf_sink_new(k->scope, &ops, &asked, &sink));
    CHECK_OK(hf_relay_open(k->scope, outbox, sink, &options, &relay));
    emit(k->scope, outbox, "", 1);
    ear->down = true;
    run_for(k, &relay, 1, 10000);
    CHECK_INT(1, ear->calls);
    CHECK(asked.probes >= 2);
    ear->down = false;
    run_for(k, &relay, 1, 20000);
    CHECK_INT(1, ear->len);
    hf_relay_close(relay);
    hf_sink_close(sink);
    ear_close(ear);
    hf_outbox_close(outbox);
}

static enum hf_status asks_for_time(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                    size_t len)
{
    enum hf_status status = ear_send(s, self, deliveries, len);

    if (status != HF_OK)
        ((struct hf_error *)(uintptr_t)hf_scope_error(s))->retry_after_ms = 5000;
    return status;
}

/* A service that says how long it is to be left alone is left alone for as long. */
KIT_TEST(relay, what_the_sink_asks_for_is_waited)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_sink_ops ops = {.size = sizeof(ops), .name = "busy", .send = asks_for_time};
    struct hf_relay *relay;
    struct hf_sink *sink;

    CHECK_OK(hf_sink_new(k->scope, &ops, ear, &sink));
    CHECK_OK(hf_relay_open(k->scope, outbox, sink,
                           HF_OPTIONS(hf_relay_options, .no_threads = true, .breaker_ms = 100),
                           &relay));
    emit(k->scope, outbox, "", 1);
    ear->down = true;
    run_for(k, &relay, 1, 4900);
    CHECK_INT(1, ear->calls);
    run_for(k, &relay, 1, 1000);
    CHECK_INT(2, ear->calls);
    hf_relay_close(relay);
    hf_sink_close(sink);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* ---- a database that fails ------------------------------------------------------------------ */

static int unsure_told;

static void tell_unsure(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                        const struct hf_error *error, void *user)
{
    (void)event;
    (void)user;
    unsure_told += outcome == HF_RELAY_UNSURE && error->status != HF_OK;
}

static int troubles;

static void count_trouble(const struct hf_error *error, void *user)
{
    (void)user;
    troubles += error->status != HF_OK;
}

KIT_TEST(relay, what_could_not_be_noted_is_noted_later)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear,
                                            (struct hf_relay_options){.on_ended = tell_unsure,
                                                                      .on_error = count_trouble});

    unsure_told = troubles = 0;
    for (int i = 0; i < 5; i++)
        emit(k->scope, outbox, "a", i);
    run_for(k, &relay, 1, 90);
    kit_fault(k, HF_FAULT_ERROR, "BatchWriteItem", 0);
    run_for(k, &relay, 1, 3000);
    CHECK_INT(5, ear->len); /* those behind it do not wait for that */
    CHECK_INT(5, metrics_of(relay).unsure);
    CHECK_INT(5, unsure_told);
    CHECK(troubles > 0);
    CHECK_INT(0, metrics_of(relay).delivered);
    kit_no_faults(k);
    run_for(k, &relay, 1, 10000);
    CHECK_INT(5, ear->len);
    CHECK_INT(5, metrics_of(relay).delivered);
    CHECK_INT(0, metrics_of(relay).unsure);
    CHECK_INT(0, items_of(k, "p", 1));
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, reads_go_on_when_the_database_is_back)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});

    run_for(k, &relay, 1, 200);
    emit(k->scope, outbox, "a", 1);
    kit_fault(k, HF_FAULT_ERROR, "Query", 0);
    run_for(k, &relay, 1, 3000);
    CHECK_INT(0, ear->len);
    CHECK(metrics_of(relay).reads < 40); /* not as fast as it can */
    kit_no_faults(k);
    run_for(k, &relay, 1, 5000);
    CHECK_INT(1, ear->len);
    CHECK_INT(2, metrics_of(relay).buckets);
    close_all(outbox, relay, ear);
}

/* A dead letter that was retried is in its old place, before what was read. */
KIT_TEST(relay, what_is_let_go_on_by_hand_is_delivered)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    uint64_t done;

    ear->fails = 1;
    ear->fails_for_good = true;
    emit(k->scope, outbox, "a", 1);
    emit(k->scope, outbox, "a", 2);
    run_for(k, &relay, 1, 5000);
    CHECK_INT(2, ear->len);
    CHECK_INT(1, items_of(k, "f", 1));
    ear->fails = -1;
    hf_scope_reset(k->scope);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, &done));
    CHECK_INT(1, done);
    run_for(k, &relay, 1, 1500);
    CHECK_INT(3, ear->len);
    CHECK_INT(1, ear->heard[2].number);
    CHECK_INT(0, items_of(k, "f", 1) + items_of(k, "p", 1));
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, competing_it_retries_gives_up_and_waits_out_an_outage)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear,
                                            (struct hf_relay_options){.competing = true,
                                                                      .max_attempts = 2,
                                                                      .breaker_ms = 100});

    ear->fails = 3;
    ear->down = true;
    for (int i = 0; i < 10; i++)
        emit(k->scope, outbox, "", i);
    run_for(k, &relay, 1, 3000);
    CHECK_INT(0, ear->len);
    CHECK_INT(1, metrics_of(relay).outages);
    ear->down = false;
    run_for(k, &relay, 1, 60000);
    CHECK_INT(11, ear->len);
    CHECK_INT(2, ear_count(ear, 3));
    CHECK_INT(1, metrics_of(relay).given_up);
    CHECK_INT(1, metrics_of(relay).retried);
    CHECK_INT(9, metrics_of(relay).delivered);
    CHECK_INT(0, items_of(k, "p", 2));
    CHECK_INT(1, items_of(k, "f", 2));
    CHECK_INT(0, drain(k, relay));
    close_all(outbox, relay, ear);
}

/* ---- no memory ------------------------------------------------------------------------------ */

TEST(relay, any_allocation_may_fail)
{
    struct hf_scope *all = hf_scope_new(test_env(t));
    struct kit k = {.t = t, .scope = all, .table = HF_STR("outbox")};
    int number = 0;

    CHECK_OK(hf_open(all, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &k.db));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s;
        struct hf_outbox *outbox;
        struct ear *ear;
        struct hf_relay *relay = NULL;
        enum hf_status status = HF_NOMEM;

        t->fail_at = 0;
        outbox = open_outbox(&k, 1);
        ear = ear_open(k.scope, 2, false);
        emit(k.scope, outbox, "a", number);
        emit(k.scope, outbox, "b", number + 1);
        ear->fails = number;
        ear->fail_times = 1;
        s = hf_scope_new(test_env(t));
        t->fail_at = nth;
        t->allocs = 0;
        status = hf_relay_open(s, outbox, ear->sink,
                               HF_OPTIONS(hf_relay_options, .no_threads = true), &relay);
        for (int i = 0; i < 60 && status == HF_OK; i++) {
            uint32_t wait_ms;

            status = hf_relay_step(s, relay, &wait_ms);
            test_advance_ms(t, 50);
        }
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK((status == HF_OK) == (relay != NULL));
        if (relay)
            run_for(&k, &relay, 1, 60000); /* it gets over it */
        CHECK(!relay || (ear_count(ear, number) >= 2 && ear_count(ear, number + 1) >= 1));
        CHECK(!relay || items_of(&k, "p", 1) == 0);
        hf_relay_close(relay);
        hf_scope_free(s);
        ear_close(ear);
        hf_outbox_close(outbox);
        hf_scope_reset(k.scope);
        number += 2;
    }
    hf_db_close(k.db);
    hf_scope_free(all);
}

/* ---- what may have ended a process ---------------------------------------------------------- */

/*
 * Where no process ends, no delivery costs a write of its own. After a takeover the first ones do,
 * until what was there is done with; then they do not any more.
 */
KIT_TEST(relay, deliveries_are_counted_beforehand_after_a_takeover_only)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay_options options = {.lease_ms = 1000, .poll_ms = 100};
    struct hf_relay *former = relay_by_turns(k->scope, outbox, ear, options);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, options);
    uint64_t writes;

    run_for(k, &former, 1, 500);
    for (int i = 1; i <= 50; i++)
        emit(k->scope, outbox, "", i);
    run_for(k, &former, 1, 100);
    CHECK_INT(50, ear->len);
    CHECK(metrics_of(former).writes <= 5);

    for (int i = 51; i <= 60; i++) /* it is not heard of any more, with these at hand or not */
        emit(k->scope, outbox, "", i);
    run_for(k, &relay, 1, 3000);
    CHECK_INT(1, metrics_of(relay).taken_over);
    CHECK_INT(60, ear->len);
    CHECK(metrics_of(relay).writes >= 10 && metrics_of(relay).writes <= 13);
    writes = metrics_of(relay).writes;
    for (int i = 61; i <= 160; i++)
        emit(k->scope, outbox, "", i);
    run_for(k, &relay, 1, 100);
    CHECK_INT(160, ear->len);
    CHECK(metrics_of(relay).writes - writes <= 5);
    for (int i = 1; i <= 160; i++)
        CHECK_INT(1, ear_count(ear, i));
    CHECK_INT(0, items_of(k, "p", 1));
    CHECK_INT(0, items_of(k, "f", 1));
    hf_relay_close(relay);
    hf_relay_close(former);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* A sink that is away ends no process: what was counted beforehand is taken back. */
KIT_TEST(relay, an_outage_after_a_takeover_is_no_crash)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay_options options = {.lease_ms = 1000,
                                       .poll_ms = 100,
                                       .breaker_ms = 50,
                                       .backoff_max_ms = 50,
                                       .max_attempts = 2};
    struct hf_relay *former = relay_by_turns(k->scope, outbox, ear, options);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, options);
    struct hf_event_list waiting;

    run_for(k, &former, 1, 500);
    emit(k->scope, outbox, "a", 1);
    ear->down = true;
    run_for(k, &relay, 1, 3000);
    CHECK_INT(1, metrics_of(relay).taken_over);
    CHECK(ear->calls >= 10);
    CHECK_OK(hf_outbox_pending(k->scope, outbox, NULL, &waiting));
    CHECK_INT(1, waiting.events_len);
    CHECK_INT(0, waiting.events[0].attempts);
    CHECK_INT(0, waiting.events[0].crashes);
    CHECK_INT(0, waiting.events[0].error_text.len);
    ear->down = false;
    run_for(k, &relay, 1, 500);
    CHECK_INT(1, ear->len);
    CHECK_INT(0, items_of(k, "p", 1) + items_of(k, "f", 1));
    hf_relay_close(relay);
    hf_relay_close(former);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* What fails after a takeover was counted once. */
KIT_TEST(relay, a_failure_after_a_takeover_is_one_attempt)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay_options options = {.lease_ms = 1000,
                                       .poll_ms = 100,
                                       .backoff_ms = 100,
                                       .max_attempts = 3};
    struct hf_relay *former = relay_by_turns(k->scope, outbox, ear, options);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, options);
    struct hf_event_list failed;

    run_for(k, &former, 1, 500);
    emit(k->scope, outbox, "a", 1);
    ear->fails = 1;
    run_for(k, &relay, 1, 4000);
    CHECK_INT(3, ear_count(ear, 1));
    CHECK_OK(hf_outbox_failed(k->scope, outbox, NULL, &failed));
    CHECK_INT(1, failed.events_len);
    CHECK_INT(3, failed.events[0].attempts);
    CHECK_INT(0, failed.events[0].crashes);
    CHECK_STR("it does not want this one", failed.events[0].error_text);
    hf_relay_close(relay);
    hf_relay_close(former);
    ear_close(ear);
    hf_outbox_close(outbox);
}
