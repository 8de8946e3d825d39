/*
 * outbox/outbox_claim_test.c: claims on events: safety (disjoint, a live lease is refused, a
 * stale worker changes nothing) and liveness (all are claimed, what is over is claimed again), on
 * every kind of database. (n) is an invariant of outbox_claim.c.
 */
#include <holdfast/engine.h>
#include <holdfast/outbox.h>

#include <stdlib.h>

#include "kit.h"

#include "outbox/outbox.h"

enum { LEASE_MS = 10000, SKEW_MS = 500 };

static struct hf_outbox *open_outbox(struct kit *k, uint32_t buckets, uint32_t history_s)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = buckets,
                                       .history_s = history_s),
                            &outbox));
    return outbox;
}

static void emit_many(struct kit *k, struct hf_outbox *outbox, int count)
{
    for (int i = 1; i <= count; i++) {
        struct hf_event event = {.type = HF_STR("t"), .sequence = (uint64_t)i};

        CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    }
}

static struct hf_claim_options options_of(const char *owner, uint32_t limit)
{
    return (struct hf_claim_options){.size = sizeof(struct hf_claim_options),
                                     .limit = limit,
                                     .lease_ms = LEASE_MS,
                                     .skew_ms = SKEW_MS,
                                     .max_attempts = 3,
                                     .owner = hf_str_from(owner)};
}

static struct hf_claim_list claim(struct kit *k, struct hf_outbox *outbox, const char *owner,
                                  uint32_t limit)
{
    struct hf_claim_options options = options_of(owner, limit);
    struct hf_claim_list list;

    CHECK_OK(hf_outbox_claim(k->scope, outbox, &options, &list));
    return list;
}

static struct hf_claimed_event claim_single(struct kit *k, struct hf_outbox *outbox,
                                            const char *owner)
{
    struct hf_claim_list list = claim(k, outbox, owner, 1);

    CHECK_INT(1, list.events_len);
    return list.events[0];
}

static struct hf_outbox_event get(struct kit *k, struct hf_outbox *outbox, struct hf_str id)
{
    struct hf_outbox_event event;

    CHECK_OK(hf_outbox_get(k->scope, outbox, id, &event));
    return event;
}

static const struct hf_error broken = {.status = HF_IO, .message = {"the line is down", 16}};

/* ---- claiming ------------------------------------------------------------------------------- */

KIT_TEST(outbox_claim, nothing_to_claim_is_no_error)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_claim_list list = claim(k, outbox, "ann", 5);

    CHECK_INT(0, list.events_len);
    CHECK_INT(0, list.refused);
    hf_outbox_close(outbox);
}

/* Of all tenants, and of none. */
KIT_TEST(outbox_claim, tenants_are_claimed_together)
{
    static const char *const tenants[] = {"ann", "", "ben", "ann", "\xC3\xA9", ""};
    struct hf_outbox *outbox = open_outbox(k, 4, 0);
    struct hf_claim_list list;

    for (size_t i = 0; i < ARRAY_LEN(tenants); i++)
        CHECK_OK(hf_outbox_emit(k->scope, outbox,
                                &(struct hf_event){.type = HF_STR("t"),
                                                   .sequence = i + 1,
                                                   .tenant = tenants[i][0] ? hf_str_from(tenants[i])
                                                                           : hf_str_of(NULL, 0)},
                                1, NULL));
    list = claim(k, outbox, "ann", 10);
    CHECK_INT(ARRAY_LEN(tenants), list.events_len);
    for (size_t i = 0; i < list.events_len; i++) {
        const struct hf_event *event = &list.events[i].event.event;

        CHECK(hf_str_equal(hf_str_from(tenants[event->sequence - 1]), event->tenant));
        CHECK(!event->tenant.ptr == !tenants[event->sequence - 1][0]);
    }
    hf_outbox_close(outbox);
}

/* What is not said is what others who claim events have, too: 50, 30 s, 5 attempts, from 1 s on. */
KIT_TEST(outbox_claim, defaults_are_the_usual_ones)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claim_list list;
    struct hf_str ref;

    emit_many(k, outbox, 60);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, NULL, &list));
    CHECK_INT(50, list.events_len);
    CHECK_INT(k->t->wall_us + 30000000, list.events[49].event.lease_us);
    ref = list.events[0].event.ref;
    for (uint32_t attempt = 1; attempt <= 5; attempt++) {
        struct hf_outbox_event event;
        struct hf_claimed_event one = list.events[0];
        int64_t most_us = (int64_t)1000000 << (attempt - 1);

        if (attempt > 1)
            CHECK_OK(hf_outbox_claim_one(k->scope, outbox, ref, NULL, &one));
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &one, &broken, false, NULL));
        event = get(k, outbox, ref);
        CHECK_INT(attempt, event.attempts);
        CHECK_INT(attempt < 5 ? HF_OUTBOX_PENDING : HF_OUTBOX_FAILED, event.state);
        CHECK(attempt == 5 || (event.next_us - event.tried_us >= most_us / 2 &&
                               event.next_us - event.tried_us <= most_us));
        test_advance_ms(k->t, attempt == 5 ? 0 : most_us / 1000);
    }
    CHECK(k->t->wall_us < list.events[49].event.lease_us);
    test_advance_ms(k->t, (list.events[49].event.lease_us - k->t->wall_us) / 1000 + 1000);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, NULL, &list));
    CHECK_INT(10, list.events_len); /* those that nobody has claimed */
    test_advance_ms(k->t, 1);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, NULL, &list));
    CHECK_INT(49, list.events_len);
    hf_outbox_close(outbox);
}

/* Disjoint, and all of them; batches are respected. */
KIT_TEST(outbox_claim, each_is_claimed_by_one)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 0), *other = open_outbox(k, 4, 0);
    bool seen[61] = {false};
    size_t total = 0, len;

    emit_many(k, outbox, 60);
    do {
        len = 0;
        for (int i = 0; i < 2; i++) {
            struct hf_claim_list list = claim(k, i ? other : outbox, i ? "ben" : "ann", 7);

            CHECK(list.events_len <= 7);
            CHECK_INT(0, list.refused);
            for (size_t j = 0; j < list.events_len; j++) {
                CHECK(!seen[list.events[j].event.event.sequence]);
                seen[list.events[j].event.event.sequence] = true;
                CHECK_STR(i ? "ben" : "ann", list.events[j].event.owner);
                CHECK_INT(1, list.events[j].fence);
            }
            len += list.events_len;
        }
        total += len;
    } while (len);
    CHECK_INT(60, total);
    hf_outbox_close(other);
    hf_outbox_close(outbox);
}

/* In the order of a bucket; (2) every lease is counted from its own write. */
KIT_TEST(outbox_claim, leases_have_their_own_anchors)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_fault slow = {.kind = HF_FAULT_LATENCY,
                            .operation = HF_STR("UpdateItem"),
                            .latency_ms = 100};
    struct hf_claim_list list;
    int64_t begun_us;

    CHECK_OK(hf__outbox_take_mode(k->scope, outbox, true));
    emit_many(k, outbox, 5);
    CHECK_OK(hf_faulty_set(k->scope, k->db, &slow, 1));
    begun_us = k->t->wall_us;
    list = claim(k, outbox, "ann", 5);
    CHECK_INT(5, list.events_len);
    for (size_t i = 0; i < 5; i++) {
        CHECK_INT(i + 1, list.events[i].event.event.sequence);
        CHECK_INT(begun_us + (int64_t)i * 100000 + LEASE_MS * 1000, list.events[i].event.lease_us);
    }
    hf_outbox_close(outbox);
}

/* (2) A live lease is refused; one that has ended by more than the skew is claimed again. */
KIT_TEST(outbox_claim, only_what_is_over_is_taken_over)
{
    struct hf_outbox *outbox = open_outbox(k, 2, 0);
    struct hf_claim_options options = options_of("ben", 1);
    struct hf_claimed_event held, taken;

    emit_many(k, outbox, 1);
    held = claim_single(k, outbox, "ann");
    CHECK_INT(0, claim(k, outbox, "ben", 1).events_len);
    CHECK_STATUS(HF_LOCKED,
                 hf_outbox_claim_one(k->scope, outbox, held.event.ref, &options, &taken));
    CHECK(strstr(hf_scope_error_text(k->scope), "is claimed by ann"));
    test_advance_ms(k->t, LEASE_MS + SKEW_MS);
    CHECK_INT(0, claim(k, outbox, "ben", 1).events_len);
    CHECK_STATUS(HF_LOCKED,
                 hf_outbox_claim_one(k->scope, outbox, held.event.ref, &options, &taken));
    test_advance_ms(k->t, 1);
    taken = claim_single(k, outbox, "ben");
    CHECK(taken.fence > held.fence);
    CHECK(!hf_str_equal(taken.token, held.token));
    CHECK_STR("ben", taken.event.owner);
    CHECK(taken.event.lease_us > held.event.lease_us);
    /* (4) */
    CHECK_INT(1, taken.event.attempts);
    CHECK_INT(HF_TIMEOUT, taken.event.error);
    CHECK_STR("\"ann\" claimed it and did not finish within its lease", taken.event.error_text);
    hf_outbox_close(outbox);
}

/* (3) A stale worker is refused, whatever he does, and nothing is changed. */
KIT_TEST(outbox_claim, a_stale_worker_changes_nothing)
{
    for (int kept = 0; kept < 2; kept++) {
        struct hf_outbox *outbox = open_outbox(k, 2, kept ? 3600 : 0);
        struct hf_claim_options options = options_of("ann", 1);
        struct hf_transact_write action;
        struct hf_claimed_event stale, held;
        enum hf_status results[2];
        struct hf_item before;

        emit_many(k, outbox, 1);
        stale = claim_single(k, outbox, "ann");
        test_advance_ms(k->t, LEASE_MS + SKEW_MS + 1);
        held = claim_single(k, outbox, "ben");
        before = get(k, outbox, held.event.ref).item;
        for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
            outbox->transactions = !without;
            CHECK_STATUS(HF_LOST, hf_outbox_published(k->scope, outbox, &stale));
            CHECK(!hf_scope_error(k->scope)->may_have_happened);
            CHECK_STATUS(HF_LOST,
                         hf_outbox_fail(k->scope, outbox, &stale, &broken, false, &options));
            CHECK_STATUS(HF_LOST,
                         hf_outbox_fail(k->scope, outbox, &stale, &broken, true, &options));
            CHECK_STATUS(HF_LOST, hf_outbox_extend(k->scope, outbox, &stale, 100000));
            CHECK_STATUS(HF_LOST, hf_outbox_release(k->scope, outbox, &stale));
            CHECK_OK(hf_outbox_published_tx(k->scope, outbox, &stale, &action));
            CHECK_STATUS(HF_CONDITION, hf_delete_item(k->scope, k->db, action.del, NULL));
            CHECK(hf_item_equal(before, get(k, outbox, held.event.ref).item));
        }
        outbox->transactions = kit_has(k, HF_FEATURE_TRANSACTIONS);
        CHECK_STATUS(HF_LOST,
                     hf_outbox_published_many(k->scope, outbox,
                                              (const struct hf_claimed_event[]){stale, held}, 2,
                                              results));
        CHECK_INT(HF_LOST, results[0]);
        CHECK_INT(HF_OK, results[1]);
        test_advance_ms(k->t, LEASE_MS);
        CHECK_STATUS(HF_LOST, hf_outbox_published(k->scope, outbox, &held)); /* it is gone */
        hf_outbox_close(outbox);
    }
}

KIT_TEST(outbox_claim, one_by_its_id)
{
    struct hf_outbox *outbox = open_outbox(k, 4, 3600);
    struct hf_event event = {.type = HF_STR("t"), .due_us = k->t->wall_us + 5000000};
    struct hf_claim_options options = options_of("ann", 1);
    struct hf_claimed_event held;
    struct hf_str id;

    CHECK_STATUS(HF_NOT_FOUND,
                 hf_outbox_claim_one(k->scope, outbox, HF_STR("nobody"), &options, &held));
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, HF_OPTIONS(hf_emit_options, .ids = &id)));
    CHECK_STATUS(HF_CONDITION, hf_outbox_claim_one(k->scope, outbox, id, &options, &held));
    CHECK(strstr(hf_scope_error_text(k->scope), "is not due yet"));
    CHECK_INT(0, claim(k, outbox, "ann", 1).events_len);
    test_advance_ms(k->t, 5000);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_outbox_claim_one(k->scope, outbox, id, &options, &held));
    kit_no_faults(k);
    CHECK_INT(1, held.fence);
    CHECK_OK(hf_outbox_published(k->scope, outbox, &held));
    CHECK_STATUS(HF_NOT_FOUND, hf_outbox_claim_one(k->scope, outbox, id, &options, &held));
    CHECK(strstr(hf_scope_error_text(k->scope), "was published"));
    hf_outbox_close(outbox);
}

/* (5) However much of what is in front is claimed or waits, what is behind it is found. */
KIT_TEST(outbox_claim, what_is_in_front_starves_nobody)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 3600);
    struct hf_claim_list list;

    emit_many(k, outbox, 130);
    list = claim(k, outbox, "ann", 60);
    CHECK_INT(60, list.events_len);
    for (size_t i = 0; i < 20; i++)
        CHECK_OK(hf_outbox_published(k->scope, outbox, &list.events[i]));
    for (size_t i = 20; i < 40; i++)
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &list.events[i], &broken, false, NULL));
    list = claim(k, outbox, "ben", 1);
    CHECK_INT(1, list.events_len);
    CHECK_INT(61, list.events[0].event.event.sequence);
    CHECK_INT(69, claim(k, outbox, "ben", 100).events_len);
    CHECK_INT(0, claim(k, outbox, "ben", 100).events_len);
    test_advance_ms(k->t, 1200); /* the backoff is over, the leases are not */
    CHECK_INT(20, claim(k, outbox, "cyd", 100).events_len);
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_claim, what_cannot_be_asked_for)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0), *other = open_outbox(k, 1, 0);
    struct hf_claim_list list;
    char owner[HF_EVENT_TEXT_MAX + 2];

    memset(owner, 'o', sizeof(owner));
    owner[sizeof(owner) - 1] = '\0';
    CHECK_STATUS(HF_INVALID,
                 hf_outbox_claim(k->scope, outbox,
                                 HF_OPTIONS(hf_claim_options, .lease_ms = 500, .skew_ms = 500),
                                 &list));
    CHECK_STATUS(HF_INVALID,
                 hf_outbox_claim(k->scope, outbox,
                                 HF_OPTIONS(hf_claim_options, .owner = hf_str_from(owner)), &list));
    CHECK_OK(
        hf_outbox_claim(k->scope, outbox, HF_OPTIONS(hf_claim_options, .lease_ms = 500), &list));
    CHECK_STATUS(HF_INVALID, hf__outbox_take_mode(k->scope, other, false));
    hf_outbox_close(other);
    hf_outbox_close(outbox);
}

/* An error after some were claimed does not lose them. */
KIT_TEST(outbox_claim, what_was_claimed_is_handed_out)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_fault broken_line = {.kind = HF_FAULT_THROTTLE,
                                   .operation = HF_STR("UpdateItem"),
                                   .skip = 2};
    struct hf_claim_options options = options_of("ann", 10);
    struct hf_claim_list list;

    CHECK_OK(hf__outbox_take_mode(k->scope, outbox, true));
    emit_many(k, outbox, 5);
    CHECK_OK(hf_faulty_set(k->scope, k->db, &broken_line, 1));
    CHECK_OK(hf_outbox_claim(k->scope, outbox, &options, &list));
    CHECK_INT(2, list.events_len);
    CHECK_STATUS(HF_THROTTLED, hf_outbox_claim(k->scope, outbox, &options, &list));
    CHECK_INT(0, list.events_len);
    kit_no_faults(k);
    CHECK_INT(3, claim(k, outbox, "ann", 10).events_len);
    hf_outbox_close(outbox);
}

/* How many events in the table are claimed. */
static size_t claims_left(struct kit *k, struct hf_outbox *outbox)
{
    struct hf_event_list pending;
    size_t len = 0;

    CHECK_OK(hf_outbox_pending(k->scope, outbox, NULL, &pending));
    for (size_t i = 0; i < pending.events_len; i++)
        len += pending.events[i].owner.len > 0;
    return len;
}

/* The claim after so many is done, and its answer and `more` requests after it get lost. */
static void fail_claim(struct kit *k, uint32_t after, bool done, uint32_t more)
{
    const struct hf_fault faults[] = {{.kind = done ? HF_FAULT_LOST_ANSWER : HF_FAULT_LOST_REQUEST,
                                       .operation = HF_STR("UpdateItem"),
                                       .skip = after,
                                       .count = 1},
                                      {.kind = HF_FAULT_LOST_REQUEST,
                                       .operation = HF_STR("UpdateItem"),
                                       .skip = after,
                                       .count = more}};

    CHECK_OK(hf_faulty_set(k->scope, k->db, faults, ARRAY_LEN(faults)));
}

/* (6) What was claimed and could not be told is given back: due for all, and not tried. */
KIT_TEST(outbox_claim, what_could_not_be_told_is_given_back)
{
    struct hf_outbox *outbox = open_outbox(k, 3, 0);
    struct hf_claim_options options = options_of("ann", 10);
    struct hf_claimed_event held;
    struct hf_claim_list list;

    CHECK_OK(hf__outbox_take_mode(k->scope, outbox, true));
    emit_many(k, outbox, 6);
    for (uint32_t after = 0; after < 6; after++)
        for (int done = 0; done < 2; done++) {
            fail_claim(k, after, done, 4);
            CHECK_STATUS(after ? HF_OK : HF_IO, hf_outbox_claim(k->scope, outbox, &options, &list));
            CHECK(after || !hf_scope_error(k->scope)->may_have_happened);
            CHECK_INT(after, list.events_len);
            CHECK_INT(0, list.unsure);
            kit_no_faults(k);
            CHECK_INT(after, claims_left(k, outbox));
            for (size_t i = 0; i < list.events_len; i++)
                CHECK_OK(hf_outbox_release(k->scope, outbox, &list.events[i]));
        }
    list = claim(k, outbox, "ben", 10);
    CHECK_INT(6, list.events_len);
    for (size_t i = 0; i < 6; i++) {
        CHECK_INT(0, list.events[i].event.attempts);
        CHECK_OK(hf_outbox_release(k->scope, outbox, &list.events[i]));
    }
    fail_claim(k, 0, true, 4);
    CHECK_STATUS(HF_IO,
                 hf_outbox_claim_one(k->scope, outbox, list.events[2].event.ref, &options, &held));
    kit_no_faults(k);
    CHECK_OK(hf_outbox_claim_one(k->scope, outbox, list.events[2].event.ref, &options, &held));
    hf_outbox_close(outbox);
}

/* (6) If it cannot be given back, that is told. */
KIT_TEST(outbox_claim, what_cannot_be_given_back_is_told)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claim_options options = options_of("ann", 10);
    struct hf_claim_list list;

    CHECK_OK(hf__outbox_take_mode(k->scope, outbox, true));
    emit_many(k, outbox, 3);
    fail_claim(k, 0, true, 0);
    CHECK_STATUS(HF_IO, hf_outbox_claim(k->scope, outbox, &options, &list));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    CHECK(strstr(hf_scope_error_text(k->scope), "may be claimed"));
    CHECK_INT(1, list.unsure);
    fail_claim(k, 1, true, 0);
    CHECK_OK(hf_outbox_claim(k->scope, outbox, &options, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(1, list.unsure);
    kit_no_faults(k);
    CHECK_INT(3, claims_left(k, outbox));
    hf_outbox_close(outbox);
}

/* (6) One that was taken over, too; what its former owner did not end counts. */
KIT_TEST(outbox_claim, what_was_taken_over_is_given_back)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claim_options options = options_of("ben", 10);
    struct hf_claim_list list;

    emit_many(k, outbox, 1);
    (void)claim_single(k, outbox, "ann");
    test_advance_ms(k->t, LEASE_MS + SKEW_MS + 1);
    fail_claim(k, 0, true, 4);
    CHECK_STATUS(HF_IO, hf_outbox_claim(k->scope, outbox, &options, &list));
    kit_no_faults(k);
    CHECK_INT(0, claims_left(k, outbox));
    CHECK_INT(1, claim_single(k, outbox, "cyd").event.attempts);
    hf_outbox_close(outbox);
}

/* (6) Whichever allocation fails, what is claimed is handed out. */
TEST(outbox_claim, any_allocation_may_fail)
{
    struct hf_scope *all = hf_scope_new(test_env(t));
    struct kit k = {.t = t, .scope = all, .table = HF_STR("outbox")};
    struct hf_claim_options options = options_of("ann", 10);
    static const char large[20000]; /* so that a claim needs memory of its own */
    struct hf_outbox *outbox;

    CHECK_OK(hf_open(all, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &k.db));
    outbox = open_outbox(&k, 2, 0);
    CHECK_OK(hf__outbox_take_mode(all, outbox, true));
    for (int i = 0; i < 4; i++)
        CHECK_OK(hf_outbox_emit(all, outbox,
                                &(struct hf_event){.type = HF_STR("t"),
                                                   .payload = hf_bytes_of(large, sizeof(large))},
                                1, NULL));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_claim_list list = {0};
        enum hf_status status = s ? hf_outbox_claim(s, outbox, &options, &list) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        k.scope = hf_scope_new(test_env(t));
        CHECK(status == HF_OK || (status == HF_NOMEM && !list.events_len));
        CHECK_INT(list.events_len, claims_left(&k, outbox));
        for (size_t i = 0; i < list.events_len; i++)
            CHECK_OK(hf_outbox_release(k.scope, outbox, &list.events[i]));
        hf_scope_free(k.scope);
        hf_scope_free(s);
    }
    hf_outbox_close(outbox);
    hf_db_close(k.db);
    hf_scope_free(all);
}

/* ---- completing ----------------------------------------------------------------------------- */

KIT_TEST(outbox_claim, published_ones_leave)
{
    for (int kept = 0; kept < 2; kept++) {
        struct hf_outbox *outbox = open_outbox(k, 2, kept ? 3600 : 0);
        struct hf_claim_list list;
        enum hf_status results[4];

        for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
            outbox->transactions = !without;
            emit_many(k, outbox, 4);
            list = claim(k, outbox, "ann", 4);
            kit_fault(k, HF_FAULT_LOST_ANSWER,
                      kept && !without ? "TransactWriteItems" : "DeleteItem", 1);
            CHECK_OK(hf_outbox_published(k->scope, outbox, &list.events[0]));
            kit_fault(k, HF_FAULT_LOST_REQUEST,
                      kept && !without ? "TransactWriteItems" : "DeleteItem", 1);
            CHECK_OK(hf_outbox_published_many(k->scope, outbox, list.events + 1, 3, results));
            kit_no_faults(k);
            for (size_t i = 0; i < 4; i++) {
                struct hf_outbox_event event;
                enum hf_status status =
                    hf_outbox_get(k->scope, outbox, list.events[i].event.ref, &event);

                CHECK_STATUS(kept ? HF_OK : HF_NOT_FOUND, status);
                CHECK(!kept || event.state == HF_OUTBOX_PUBLISHED);
                CHECK(!kept || event.ended_us);
                CHECK(!kept || !event.owner.len);
            }
        }
        hf_outbox_close(outbox);
    }
}

/* After its lease nobody knows who removed it: that is told as it is. */
KIT_TEST(outbox_claim, in_doubt_after_the_lease)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claimed_event held;

    emit_many(k, outbox, 1);
    held = claim_single(k, outbox, "ann");
    test_advance_ms(k->t, LEASE_MS);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "DeleteItem", 1);
    CHECK_STATUS(HF_LOST, hf_outbox_published(k->scope, outbox, &held));
    CHECK(hf_scope_error(k->scope)->may_have_happened);
    hf_outbox_close(outbox);
}

/* Together with what it led to, or not at all. */
KIT_TEST(outbox_claim, published_in_a_transaction)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_put_item put = {.table = k->other,
                              .item = HF_ITEM(k->scope, HF_S("id", HF_STR("x")))};
    struct hf_transact_write actions[2] = {{.put = &put}};
    struct hf_transact_write_items request = {.actions = actions, .actions_len = 2};
    struct hf_claimed_event held;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        hf_outbox_close(outbox);
        return;
    }
    kit_make_table(k, k->other);
    emit_many(k, outbox, 1);
    held = claim_single(k, outbox, "ann");
    CHECK_OK(hf_outbox_published_tx(k->scope, outbox, &held, &actions[1]));
    CHECK_OK(hf_transact_write_items(k->scope, k->db, &request, NULL));
    CHECK_STATUS(HF_TX_CANCELED, hf_transact_write_items(k->scope, k->db, &request, NULL));
    CHECK_STATUS(HF_NOT_FOUND, hf_outbox_get(k->scope, outbox, held.event.ref,
                                             &(struct hf_outbox_event){.bucket = 0}));
    hf_outbox_close(outbox);
}

/* Attempts grow by one, the delay doubles, and after the last one it is a dead letter. */
/* A worker that does not know why it failed says so: no error, or one that is none. */
KIT_TEST(outbox_claim, a_failure_needs_no_reason)
{
    const struct hf_error nothing = {.status = HF_OK};
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claim_options options = options_of("ann", 1);
    struct hf_claimed_event held;
    struct hf_event_list failed;
    struct hf_outbox_event event;

    emit_many(k, outbox, 1);
    held = claim_single(k, outbox, "ann");
    CHECK_OK(hf_outbox_fail(k->scope, outbox, &held, NULL, false, &options));
    event = get(k, outbox, held.event.ref);
    CHECK_INT(1, event.attempts);
    CHECK_INT(HF_INTERNAL, event.error);
    CHECK_STR("the worker gave no reason", event.error_text);
    test_advance_ms(k->t, 2000);
    held = claim_single(k, outbox, "ann");
    CHECK_OK(hf_outbox_fail(k->scope, outbox, &held, &nothing, true, NULL));
    CHECK_OK(hf_outbox_failed(k->scope, outbox, NULL, &failed));
    CHECK_INT(1, failed.events_len);
    CHECK_INT(HF_INTERNAL, failed.events[0].error);
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_claim, failures_end_in_a_dead_letter)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claim_options options = options_of("ann", 1);

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
        struct hf_claimed_event held;
        struct hf_event_list failed;
        struct hf_str id;

        outbox->transactions = !without;
        emit_many(k, outbox, 1);
        held = claim_single(k, outbox, "ann");
        id = held.event.ref;
        for (uint32_t attempt = 1; attempt <= 2; attempt++) {
            struct hf_outbox_event event;
            int64_t delay_us;

            if (attempt == 1)
                kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
            CHECK_OK(hf_outbox_fail(k->scope, outbox, &held, &broken, false, &options));
            kit_no_faults(k);
            CHECK_STATUS(HF_LOST,
                         hf_outbox_fail(k->scope, outbox, &held, &broken, false, &options));
            event = get(k, outbox, id);
            CHECK_INT(attempt, event.attempts);
            CHECK_INT(HF_IO, event.error);
            CHECK_STR("the line is down", event.error_text);
            CHECK(!event.owner.ptr && !event.lease_us);
            delay_us = event.next_us - event.tried_us;
            CHECK(delay_us >= 500000 * (int64_t)attempt && delay_us <= 1000000 * (int64_t)attempt);
            CHECK_INT(0, claim(k, outbox, "ann", 1).events_len);
            test_advance_ms(k->t, 1000 * attempt);
            held = claim_single(k, outbox, "ann");
            CHECK_INT(attempt + 1, held.fence);
        }
        kit_fault(k, HF_FAULT_LOST_ANSWER, without ? "DeleteItem" : "TransactWriteItems", 1);
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &held, &broken, false, &options));
        kit_no_faults(k);
        CHECK_OK(hf_outbox_failed(k->scope, outbox, NULL, &failed));
        CHECK_INT(1, failed.events_len);
        CHECK_INT(3, failed.events[0].attempts);
        CHECK_STR("HF_IO: the line is down", failed.events[0].cause);
        CHECK(!failed.events[0].owner.ptr && !failed.events[0].next_us);
        CHECK_INT(0, claim(k, outbox, "ann", 1).events_len);
        CHECK_OK(hf_outbox_retry(k->scope, outbox, &id, 1, NULL));
        held = claim_single(k, outbox, "ann");
        CHECK_INT(4, held.fence); /* fences outlive it all */
        CHECK_INT(0, held.event.attempts);
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &held, &broken, true, &options)); /* for good */
        CHECK_INT(HF_OUTBOX_FAILED, get(k, outbox, id).state);
        CHECK_OK(hf_outbox_discard(k->scope, outbox, &id, 1, NULL));
    }
    hf_outbox_close(outbox);
}

/* Delays are capped. */
KIT_TEST(outbox_claim, delays_are_capped)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claim_options options = options_of("ann", 1);

    options.max_attempts = 100;
    emit_many(k, outbox, 1);
    for (int i = 0; i < 40; i++) {
        struct hf_claim_list list;
        struct hf_outbox_event event;

        CHECK_OK(hf_outbox_claim(k->scope, outbox, &options, &list));
        CHECK_INT(1, list.events_len);
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &list.events[0], &broken, false, &options));
        event = get(k, outbox, list.events[0].event.ref);
        CHECK(event.next_us - event.tried_us <= 30000000);
        CHECK(i < 6 || event.next_us - event.tried_us >= 15000000);
        test_advance_ms(k->t, 30000);
    }
    hf_outbox_close(outbox);
}

/* (4) An event that kills its workers becomes a dead letter, and says so. */
KIT_TEST(outbox_claim, silent_workers_count_as_attempts)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_event_list failed;

    for (int without = kit_has(k, HF_FEATURE_TRANSACTIONS) ? 0 : 1; without < 2; without++) {
        outbox->transactions = !without;
        emit_many(k, outbox, 1);
        for (int i = 0; i < 3; i++) {
            CHECK_INT(i, claim_single(k, outbox, "ann").event.attempts);
            test_advance_ms(k->t, LEASE_MS + SKEW_MS + 1);
        }
        CHECK_INT(0, claim(k, outbox, "ben", 1).events_len);
        CHECK_OK(hf_outbox_failed(k->scope, outbox, NULL, &failed));
        CHECK_INT(1, failed.events_len);
        CHECK_INT(3, failed.events[0].attempts);
        CHECK_STR("HF_TIMEOUT: # claimed it and did not finish within its lease",
                  failed.events[0].cause);
        CHECK_OK(hf_outbox_discard_all(k->scope, outbox, NULL, NULL));
    }
    hf_outbox_close(outbox);
}

/* ---- more time, or none --------------------------------------------------------------------- */

KIT_TEST(outbox_claim, extended_or_given_back)
{
    struct hf_outbox *outbox = open_outbox(k, 1, 0);
    struct hf_claimed_event held, next;

    emit_many(k, outbox, 1);
    held = claim_single(k, outbox, "ann");
    test_advance_ms(k->t, LEASE_MS);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_outbox_extend(k->scope, outbox, &held, LEASE_MS));
    kit_no_faults(k);
    CHECK_OK(hf_outbox_extend(k->scope, outbox, &held, 1)); /* it is longer already */
    test_advance_ms(k->t, LEASE_MS - 1000);
    CHECK_INT(0, claim(k, outbox, "ben", 1).events_len);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "UpdateItem", 1);
    CHECK_OK(hf_outbox_release(k->scope, outbox, &held));
    kit_no_faults(k);
    next = claim_single(k, outbox, "ben");
    CHECK_INT(0, next.event.attempts);
    CHECK_INT(2, next.fence);
    CHECK_STATUS(HF_LOST, hf_outbox_extend(k->scope, outbox, &held, LEASE_MS));
    CHECK_STATUS(HF_LOST, hf_outbox_published(k->scope, outbox, &held));
    CHECK_OK(hf_outbox_published(k->scope, outbox, &next));
    hf_outbox_close(outbox);
}
