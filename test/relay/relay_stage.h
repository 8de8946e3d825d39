/*
 * relay/relay_stage.h: an outbox and relays without threads on a kit's database, by a virtual clock.
 */
#ifndef HF_TEST_RELAY_STAGE_H
#define HF_TEST_RELAY_STAGE_H

#include <holdfast/db.h>

#include "kit.h"
#include "relay_kit.h"

static inline struct hf_outbox *open_outbox(struct kit *k, uint32_t buckets)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = buckets),
                            &outbox));
    return outbox;
}

static inline uint64_t drain(struct kit *k, struct hf_relay *relay)
{
    uint64_t delivered = 0;

    hf_scope_reset(k->scope);
    hf_scope_timeout_ms(k->scope, 60000);
    CHECK_OK(hf_relay_drain(k->scope, relay, &delivered));
    hf_scope_timeout_ms(k->scope, 0);
    return delivered;
}

/* Let so much time pass, and the relay do what is due meanwhile. */
static inline void run_for(struct kit *k, struct hf_relay *const *relays, size_t len, int64_t ms)
{
    int64_t end_us = k->t->elapsed_us + ms * 1000;

    do {
        uint32_t least_ms = UINT32_MAX;

        for (size_t i = 0; i < len; i++) {
            uint32_t wait_ms;

            hf_scope_reset(k->scope);
            CHECK_OK(hf_relay_step(k->scope, relays[i], &wait_ms));
            least_ms = wait_ms < least_ms ? wait_ms : least_ms;
        }
        if (k->t->elapsed_us >= end_us)
            break;
        if (k->t->elapsed_us + (int64_t)least_ms * 1000 > end_us)
            least_ms = (uint32_t)((end_us - k->t->elapsed_us + 999) / 1000);
        test_advance_ms(k->t, least_ms ? least_ms : 1);
    } while (k->t->elapsed_us < end_us);
}

static inline struct hf_relay_metrics metrics_of(struct hf_relay *relay)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(relay, &metrics);
    return metrics;
}

/* How many items there are in all partitions of that kind: "p" waits, "f" failed. */
static inline int items_of(struct kit *k, const char *kind, uint32_t buckets)
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

static inline void close_all(struct hf_outbox *outbox, struct hf_relay *relay, struct ear *ear)
{
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

static inline void emit_event(struct kit *k, struct hf_outbox *outbox, struct hf_event event,
                              int number)
{
    struct hf_str payload = hf_scope_format(k->scope, "%d", number);

    event.payload = hf_bytes_of(payload.ptr, payload.len);
    if (!event.type.len)
        event.type = HF_STR("test");
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
}

#endif
