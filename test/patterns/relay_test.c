/*
 * patterns/relay_test.c: relays without threads, on the virtual clock, on every database.
 */
#include <holdfast/relay.h>

#include <holdfast/db.h>

#include "kit.h"
#include "relay_kit.h"

/* ---- a stage -------------------------------------------------------------------------------- */

static struct hf_outbox *open_outbox(struct kit *k, uint32_t buckets)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = buckets),
                            &outbox));
    return outbox;
}

static struct hf_relay *open_relay(struct kit *k, struct hf_outbox *outbox, struct ear *ear,
                                   struct hf_relay_options options)
{
    struct hf_relay *relay;

    options.size = sizeof(options);
    options.no_threads = true;
    CHECK_OK(hf_relay_open(k->scope, outbox, ear->sink, &options, &relay));
    return relay;
}

static uint64_t drain(struct kit *k, struct hf_relay *relay)
{
    uint64_t delivered = 0;

    hf_scope_reset(k->scope);
    hf_scope_timeout_ms(k->scope, 60000);
    CHECK_OK(hf_relay_drain(k->scope, relay, &delivered));
    hf_scope_timeout_ms(k->scope, 0);
    return delivered;
}

/* Let so much time pass, and the relay do what is due meanwhile. */
static void run_for(struct kit *k, struct hf_relay *const *relays, size_t len, int64_t ms)
{
    int64_t end_us = k->t->elapsed_us + ms * 1000;

    do {
        uint32_t least_ms = UINT32_MAX;

        for (size_t i = 0; i < len; i++) {
            uint32_t wait_ms;

            hf_scope_reset(k->scope);
            CHECK_OK(hf_relay_turn(k->scope, relays[i], &wait_ms));
            least_ms = wait_ms < least_ms ? wait_ms : least_ms;
        }
        if (k->t->elapsed_us + (int64_t)least_ms * 1000 > end_us)
            least_ms = (uint32_t)((end_us - k->t->elapsed_us + 999) / 1000);
        test_advance_ms(k->t, least_ms ? least_ms : 1);
    } while (k->t->elapsed_us < end_us);
}

static struct hf_relay_metrics metrics_of(struct hf_relay *relay)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(relay, &metrics);
    return metrics;
}

/* How many items there are in all partitions of that kind: "p" waits, "f" failed. */
static int items_of(struct kit *k, const char *kind, uint32_t buckets)
{
    int count = 0;

    for (uint32_t i = 0; i < buckets; i++) {
        struct hf_query query = {
            .table = k->table,
            .key_condition = HF_STR("#pk = :pk"),
            .names = HF_ITEM(k->scope, HF_S("#pk", HF_STR("pk"))),
            .values = HF_ITEM(k->scope, HF_S(":pk", hf_scope_format(k->scope, "%s.%03u", kind, i))),
            .consistent = HF_YES};
        struct hf_query_result result;

        CHECK_OK(hf_query(k->scope, k->db, &query, &result));
        count += (int)result.items_len;
    }
    return count;
}

/* ---- delivering ----------------------------------------------------------------------------- */

KIT_TEST(relay, delivers_all_once_and_keys_in_order)
{
    struct hf_outbox *outbox = open_outbox(k, 4);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = open_relay(k, outbox, ear, (struct hf_relay_options){0});
    int last[7] = {0};

    for (int i = 1; i <= 300; i++)
        emit(k->scope, outbox, (const char *[]){"a", "b", "c", "d", "e", "f", ""}[i % 7], i);
    CHECK_INT(300, drain(k, relay));
    CHECK_INT(300, ear->len);
    for (size_t i = 0; i < ear->len; i++) {
        int number = ear->heard[i].number;

        CHECK_INT(1, ear_count(ear, number));
        CHECK(number % 7 == 6 || last[number % 7] < number);
        last[number % 7] = number;
    }
    CHECK_INT(0, items_of(k, "p", 4));
    CHECK_INT(300, metrics_of(relay).delivered);
    CHECK_INT(0, metrics_of(relay).refused);
    CHECK_INT(0, metrics_of(relay).waiting);
    CHECK_INT(4, metrics_of(relay).buckets);
    CHECK(metrics_of(relay).writes <= 20); /* what was delivered is noted in batches */
    CHECK(metrics_of(relay).read_units > 0);
    CHECK(metrics_of(relay).write_units > 0);
    CHECK_INT(0, drain(k, relay));
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

KIT_TEST(relay, a_failing_event_holds_its_key_only)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        open_relay(k, outbox, ear, (struct hf_relay_options){.max_attempts = 3});

    ear->fails = 1;
    emit(k->scope, outbox, "a", 1);
    emit(k->scope, outbox, "a", 2);
    emit(k->scope, outbox, "b", 3);
    emit(k->scope, outbox, "", 4);
    CHECK_INT(2, drain(k, relay));
    CHECK_INT(1, ear_count(ear, 1));
    CHECK_INT(0, ear_count(ear, 2));
    CHECK_INT(1, metrics_of(relay).retried);
    CHECK(metrics_of(relay).lag_ms >= 0);
    run_for(k, &relay, 1, 800); /* a tenth less than a second at least */
    CHECK_INT(1, ear_count(ear, 1));
    run_for(k, &relay, 1, 400);
    CHECK_INT(2, ear_count(ear, 1));
    CHECK_INT(1, ear->heard[ear->len - 1].attempts);
    run_for(k, &relay, 1, 1450);
    CHECK_INT(2, ear_count(ear, 1));
    run_for(k, &relay, 1, 1000);
    CHECK_INT(3, ear_count(ear, 1)); /* the last */
    CHECK_INT(1, ear_count(ear, 2));
    CHECK(ear_first(ear, 2) == ear->len - 1);
    CHECK_INT(1, items_of(k, "f", 1));
    CHECK_INT(0, items_of(k, "p", 1));
    CHECK_INT(1, metrics_of(relay).given_up);
    CHECK_INT(2, metrics_of(relay).retried);
    CHECK_INT(3, metrics_of(relay).delivered);
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}
