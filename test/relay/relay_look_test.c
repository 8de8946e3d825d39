/*
 * relay/relay_look_test.c: what an idle relay asks of the database, and how soon it finds what
 * another process emits all the same. (n) is an invariant of relay_look.c. The other process is
 * played by another outbox handle, which wakes nobody.
 */
#include <holdfast/relay.h>

#include <stdlib.h>

#include "kit.h"
#include "relay_kit.h"

#include "../db/between.h"

enum { BUCKETS = 16, POLL_MS = 1000, POLLS = 50 };

/* ---- a stage -------------------------------------------------------------------------------- */

struct stage {
    struct between between; /* what the relay asks goes through here */
    struct hf_outbox *outbox, *elsewhere;
    struct ear *ear;
    struct hf_relay *relay;
};

static struct hf_outbox *open_outbox(struct kit *k, struct hf_db *db, uint32_t buckets)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = buckets),
                            &outbox));
    return outbox;
}

static void stage_open(struct kit *k, struct stage *stage, uint32_t buckets,
                       struct hf_relay_options options)
{
    *stage = (struct stage){.between = between_of(k->db), .ear = ear_open(k->scope, 10, false)};
    stage->outbox = open_outbox(k, &stage->between.db, buckets);
    stage->elsewhere = open_outbox(k, k->db, buckets);
    options.size = sizeof(options);
    options.no_threads = true;
    options.poll_ms = POLL_MS;
    CHECK_OK(hf_relay_open(k->scope, stage->outbox, stage->ear->sink, &options, &stage->relay));
}

static void stage_close(struct stage *stage)
{
    hf_relay_close(stage->relay);
    ear_close(stage->ear);
    hf_outbox_close(stage->elsewhere);
    hf_outbox_close(stage->outbox);
}

static void run_for(struct kit *k, struct stage *stage, int64_t ms)
{
    relays_run_for(k->t, k->scope, &stage->relay, 1, ms);
}

static size_t reads_of(struct stage *stage, struct kit *k, int64_t ms)
{
    size_t before =
        stage->between.calls[HF_OP_QUERY] + stage->between.calls[HF_OP_EXECUTE_STATEMENT];

    run_for(k, stage, ms);
    return stage->between.calls[HF_OP_QUERY] + stage->between.calls[HF_OP_EXECUTE_STATEMENT] -
           before;
}

/* Emit one elsewhere, for each of so many keys; all are to be there within `most_ms`. */
static void check_latency(struct kit *k, struct stage *stage, int number, int64_t most_ms)
{
    char key[16];

    for (int i = 0; i < 10; i++) {
        size_t len = stage->ear->len;

        snprintf(key, sizeof(key), "key-%d", i);
        emit(k->scope, stage->elsewhere, key, number + i);
        run_for(k, stage, most_ms);
        CHECK_INT(len + 1, stage->ear->len);
        run_for(k, stage, 137 * i); /* at other times of the poll */
    }
}

/* ---- idle ----------------------------------------------------------------------------------- */

/* All that it asks, heartbeats and the search for strays included, is less than an eighth of a
 * query for each bucket and poll; what is emitted elsewhere is found at the next poll. */
KIT_TEST(relay_look, an_idle_relay_asks_less_than_once_per_bucket_and_poll)
{
    const bool has = kit_has(k, HF_FEATURE_PARTIQL);
    struct stage stage;
    size_t reads;

    stage_open(k, &stage, BUCKETS, (struct hf_relay_options){.breaker_ms = 100});
    run_for(k, &stage, 5000);
    reads = reads_of(&stage, k, POLLS * POLL_MS);
    if (has) {
        size_t looks = stage.between.calls[HF_OP_EXECUTE_STATEMENT];

        CHECK(reads < BUCKETS * POLLS / 8);
        CHECK(looks >= POLLS - 1 && looks <= POLLS + 10); /* one a poll */
    }
    check_latency(k, &stage, 0, POLL_MS + 10);
    CHECK_INT(10, stage.ear->len);
    stage_close(&stage);
}

/* What is emitted by this process is not waited for at all. */
KIT_TEST(relay_look, what_is_emitted_here_is_read_at_once)
{
    struct stage stage;

    stage_open(k, &stage, BUCKETS, (struct hf_relay_options){.breaker_ms = 100});
    run_for(k, &stage, 5300);
    for (int i = 0; i < 10; i++) {
        emit(k->scope, stage.outbox, "", i);
        run_for(k, &stage, 2);
        CHECK_INT(i + 1, stage.ear->len);
        run_for(k, &stage, 700);
    }
    stage_close(&stage);
}

KIT_TEST(relay_look, an_idle_competing_relay_asks_once_a_poll)
{
    struct stage stage;

    stage_open(k, &stage, BUCKETS, (struct hf_relay_options){.competing = true});
    run_for(k, &stage, 5000);
    if (kit_has(k, HF_FEATURE_PARTIQL)) {
        CHECK(reads_of(&stage, k, POLLS * POLL_MS) < BUCKETS * POLLS / 8);
        CHECK(stage.between.calls[HF_OP_EXECUTE_STATEMENT] >= POLLS);
    }
    check_latency(k, &stage, 0, POLL_MS + 10);
    stage_close(&stage);
}

/* More buckets than a statement may name. */
KIT_TEST(relay_look, many_buckets_are_several_looks)
{
    struct stage stage;

    stage_open(k, &stage, 120, (struct hf_relay_options){.breaker_ms = 100});
    run_for(k, &stage, 5000);
    if (!getenv("HF_KIT_URL")) /* dynoxide does not take that many */
        CHECK(reads_of(&stage, k, 10 * POLL_MS) < 120 * 10 / 8);
    check_latency(k, &stage, 0, POLL_MS + 10);
    stage_close(&stage);
}

/* (3) What stays in some buckets, as it is for others or is to be tried again later, is no reason
 * to look at the rest one by one, and keeps nothing from being found. */
KIT_TEST(relay_look, what_stays_in_a_bucket_is_its_own_business)
{
    struct hf_event other = {.type = HF_STR("other"), .key = HF_STR("b")};
    struct stage stage;
    size_t reads;

    stage_open(k, &stage, BUCKETS, (struct hf_relay_options){.only_type = HF_STR("test")});
    CHECK_OK(hf_outbox_emit(k->scope, stage.elsewhere, &other, 1, NULL));
    stage.ear->fails = 7;
    emit(k->scope, stage.elsewhere, "a", 7);
    run_for(k, &stage, 8000);
    reads = reads_of(&stage, k, 20 * POLL_MS); /* then the one that fails is given up */
    if (kit_has(k, HF_FEATURE_PARTIQL))
        CHECK(reads < BUCKETS * 20 / 2);
    check_latency(k, &stage, 100, POLL_MS + 10);
    stage_close(&stage);
}

/* (4) A database without statements, or one that does not let us: as before. */
static enum hf_status refuse_statements(struct hf_scope *s, struct between *b, enum hf_op op,
                                        const void *request, void *response)
{
    if (op == HF_OP_EXECUTE_STATEMENT)
        return hf_scope_fail(s, HF_DENIED, "no statements");
    return between_pass(s, b, op, request, response);
}

static void count_trouble(const struct hf_error *error, void *user)
{
    (void)error;
    ++*(int *)user;
}

KIT_TEST(relay_look, without_statements_each_bucket_is_asked)
{
    for (int competing = 0; competing < 2; competing++) {
        struct stage stage;
        int troubles = 0;

        stage_open(k, &stage, BUCKETS,
                   (struct hf_relay_options){.competing = competing,
                                             .on_error = count_trouble,
                                             .user = &troubles});
        stage.between.on_call = refuse_statements;
        run_for(k, &stage, 5000);
        check_latency(k, &stage, 0, POLL_MS + 10);
        CHECK(stage.between.calls[HF_OP_EXECUTE_STATEMENT] <= 2); /* one a minute */
        CHECK_INT(0, troubles);
        stage_close(&stage);
        test_advance_ms(k->t, 700000);
    }
}
