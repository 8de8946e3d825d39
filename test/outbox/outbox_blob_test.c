/*
 * outbox/outbox_blob_test.c: payloads in a blob store: through relays, lists and claims, lost
 * ones, sweeps, and kills between blob and event. (n) is an invariant of outbox_blob.c.
 */
#include <holdfast/blob.h>
#include <holdfast/engine.h>
#include <holdfast/outbox.h>
#include <holdfast/prefix.h>
#include <holdfast/relay.h>
#include <holdfast/tx.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "kit.h"

#include "base/kill.h"
#include "blob/private.h"
#include "relay/relay.h"

enum { LARGE = 500 * 1024, HEARD_MAX = 100 };

/* ---- a stage -------------------------------------------------------------------------------- */

/* Payloads begin with their number; all other bytes follow from it. */
static struct hf_bytes payload_of(struct hf_scope *s, int number, size_t len)
{
    char *text = hf_scope_alloc(s, len + 1);

    CHECK(text != NULL);
    memset(text, 'a' + number % 26, len);
    memcpy(text, &number, sizeof(number));
    return hf_bytes_of(text, len);
}

static bool is_payload(struct hf_bytes payload, int number, size_t len)
{
    int found;

    if (payload.len != len)
        return false;
    memcpy(&found, payload.ptr, sizeof(found));
    for (size_t i = sizeof(found); i < len; i++)
        if (payload.ptr[i] != 'a' + number % 26)
            return false;
    return found == number;
}

/* A sink that looks at the payloads. */
struct eye {
    struct hf_sink *sink;
    int seen[HEARD_MAX];
    size_t len;
    bool wrong;
    uint32_t left_ms; /* the least time it was given */
};

static enum hf_status eye_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                               size_t len)
{
    struct eye *eye = self;
    uint32_t left_ms = hf_scope_left_ms(s, UINT32_MAX);

    eye->left_ms = !eye->left_ms || left_ms < eye->left_ms ? left_ms : eye->left_ms;
    for (size_t i = 0; i < len; i++) {
        struct hf_bytes payload = deliveries[i].event->event.payload;
        int number = -1;

        if (payload.len >= sizeof(number))
            memcpy(&number, payload.ptr, sizeof(number));
        eye->wrong = eye->wrong || !is_payload(payload, number, payload.len);
        if (eye->len < HEARD_MAX)
            eye->seen[eye->len++] = number;
        deliveries[i].status = HF_OK;
    }
    return HF_OK;
}

/* A store before the store of an outbox: it may be away, or slow. */
struct moody {
    struct hf_blobs blobs;
    struct test *t;
    struct hf_blobs *inner;
    enum hf_status mood; /* what it says instead of an answer */
    int64_t slow_ms;
    struct hf_relay *loses; /* the heartbeat of this one comes meanwhile, too */
    int asked;
};

static enum hf_status moody_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                                struct hf_bytes *bytes)
{
    struct moody *moody = (struct moody *)blobs;

    moody->asked++;
    test_advance_ms(moody->t, moody->slow_ms);
    if (moody->loses)
        (void)hf__member_step(moody->loses);
    TRY(hf_scope_sleep_ms(s, 0));
    if (moody->mood != HF_OK)
        return hf_scope_fail(s, moody->mood, "the store is in no mood");
    return hf_blob_get(s, moody->inner, digest, bytes);
}

static const struct blob_kind moody_kind = {.get = moody_get};

struct stage {
    struct kit *k;
    struct hf_blobs *store; /* as it is given to the outbox */
    struct hf_blobs *part;  /* what the outbox has of it */
    struct hf_outbox *outbox;
    struct eye eye;
    struct hf_relay *relay;
};

static struct hf_outbox *open_outbox(struct stage *st, struct hf_blobs *blobs, uint32_t over,
                                     uint32_t history_s)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(st->k->scope, st->k->db,
                            HF_OPTIONS(hf_outbox_options, .table = st->k->table, .buckets = 2,
                                       .history_s = history_s, .blobs = blobs, .blob_over = over),
                            &outbox));
    return outbox;
}

static void open_relay(struct stage *st, struct hf_outbox *outbox, bool competing)
{
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "eye",
                              .batch_max = 10,
                              .send = eye_send};

    CHECK_OK(hf_sink_new(st->k->scope, &ops, &st->eye, &st->eye.sink));
    CHECK_OK(hf_relay_open(st->k->scope, outbox, st->eye.sink,
                           HF_OPTIONS(hf_relay_options, .no_threads = true, .competing = competing,
                                      .max_attempts = 2, .backoff_ms = 100),
                           &st->relay));
}

static void stage_open(struct kit *k, struct stage *st, uint32_t over, uint32_t history_s)
{
    *st = (struct stage){.k = k};
    CHECK_OK(hf_blobs_open(k->scope, HF_STR("memory:"), NULL, &st->store));
    CHECK_OK(hf_blobs_part(k->scope, st->store, k->table, &st->part));
    st->outbox = open_outbox(st, st->store, over, history_s);
}

/* And with a relay. */
static void stage_play(struct kit *k, struct stage *st, uint32_t over, uint32_t history_s)
{
    stage_open(k, st, over, history_s);
    open_relay(st, st->outbox, false);
}

static void relay_close(struct stage *st)
{
    hf_relay_close(st->relay);
    hf_sink_close(st->eye.sink);
    st->relay = NULL;
    st->eye = (struct eye){.len = 0};
}

static void stage_close(struct stage *st)
{
    CHECK(!st->eye.wrong);
    relay_close(st);
    hf_outbox_close(st->outbox);
    hf_blobs_close(st->part);
    hf_blobs_close(st->store);
}

static struct hf_str emit(struct stage *st, const char *key, int number, size_t len)
{
    struct hf_event event = {.type = HF_STR("test"),
                             .key = hf_str_from(key),
                             .payload = payload_of(st->k->scope, number, len)};
    struct hf_str id;

    CHECK_OK(hf_outbox_emit(st->k->scope, st->outbox, &event, 1,
                            HF_OPTIONS(hf_emit_options, .ids = &id)));
    return id;
}

/* Until so many were seen, at most. */
static void run_until(struct stage *st, size_t len)
{
    for (int i = 0; i < 1000 && st->eye.len < len; i++) {
        uint32_t wait_ms;

        CHECK_OK(hf_relay_step(st->k->scope, st->relay, &wait_ms));
        test_advance_ms(st->k->t, 1);
    }
}

static void run_for(struct stage *st, int64_t ms)
{
    int64_t end_us = st->k->t->elapsed_us + ms * 1000;

    do {
        uint32_t wait_ms;

        CHECK_OK(hf_relay_step(st->k->scope, st->relay, &wait_ms));
        test_advance_ms(st->k->t, wait_ms < 50 ? 10 : 50);
    } while (st->k->t->elapsed_us < end_us);
}

static enum hf_status count_one(struct hf_scope *s, const struct hf_blob_info *blob, void *user)
{
    (void)s;
    (void)blob;
    ++*(size_t *)user;
    return HF_OK;
}

static size_t blobs_len(struct stage *st)
{
    size_t len = 0;

    CHECK_OK(hf_blobs_list(st->k->scope, st->part, count_one, &len));
    return len;
}

static uint64_t sweep(struct stage *st)
{
    uint64_t removed;

    test_advance_ms(st->k->t, 100 * 1000);
    CHECK_OK(hf_outbox_sweep_blobs(st->k->scope, st->outbox, 60, &removed));
    return removed;
}

/* ---- there and back ------------------------------------------------------------------------- */

KIT_TEST(outbox_blob, sinks_lists_and_claims_see_the_whole_payload)
{
    struct hf_outbox_event found;
    struct hf_event_list list;
    struct stage st;
    struct hf_str id;

    stage_play(k, &st, 0, 3600);
    emit(&st, "a", 1, 100);
    id = emit(&st, "a", 2, LARGE);
    emit(&st, "b", 3, 2 * LARGE);
    CHECK_INT(2, blobs_len(&st));
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK(is_payload(found.event.payload, 2, LARGE));
    CHECK(!hf_item_get(found.item, HF_STR("payload")).ptr);
    CHECK_INT(HF_BLOB_DIGEST_LEN, found.blob.len);
    CHECK_INT(LARGE, found.blob_size);
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_INT(3, list.events_len);
    for (size_t i = 0; i < 3; i++) {
        CHECK_INT(HF_OK, list.events[i].blob_error);
        CHECK(list.events[i].event.payload.len >= 100);
    }
    run_for(&st, 3000);
    CHECK_INT(3, st.eye.len);
    CHECK_OK(hf_outbox_history(k->scope, st.outbox, NULL, &list));
    CHECK_INT(3, list.events_len);
    for (size_t i = 0; i < 3; i++)
        CHECK(list.events[i].event.payload.len >= 100);
    CHECK_INT(0, sweep(&st)); /* the history has them */
    stage_close(&st);
}

KIT_TEST(outbox_blob, competing_workers_see_it)
{
    struct hf_claim_list claims;
    struct stage st;
    struct hf_str id;

    stage_open(k, &st, 0, 0);
    id = emit(&st, "a", 1, LARGE);
    CHECK_OK(hf_outbox_claim(k->scope, st.outbox, NULL, &claims));
    CHECK_INT(1, claims.events_len);
    CHECK(is_payload(claims.events[0].event.event.payload, 1, LARGE));
    CHECK_OK(hf_outbox_release(k->scope, st.outbox, &claims.events[0]));
    {
        struct hf_claimed_event one;

        CHECK_OK(hf_outbox_claim_one(k->scope, st.outbox, id, NULL, &one));
        CHECK(is_payload(one.event.event.payload, 1, LARGE));
        CHECK_OK(hf_outbox_release(k->scope, st.outbox, &one));
    }
    open_relay(&st, st.outbox, true);
    run_for(&st, 3000);
    CHECK_INT(1, st.eye.len);
    stage_close(&st);
}

/* As large as an item may be without: at it, and one past. */
KIT_TEST(outbox_blob, threshold_at_and_past)
{
    struct hf_outbox_event found;
    struct stage st;
    size_t size;

    stage_open(k, &st, 2000, 0);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, emit(&st, "a", 1, 1000), &found));
    size = hf_item_size(found.item);
    CHECK_INT(0, blobs_len(&st));
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, emit(&st, "a", 2, 1000 + 2000 - size), &found));
    CHECK_INT(2000, hf_item_size(found.item));
    CHECK(!found.blob.len);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, emit(&st, "a", 3, 1000 + 2001 - size), &found));
    CHECK(found.blob.len);
    CHECK_INT(1, blobs_len(&st));
    {
        struct hf_outbox *outbox;

        CHECK_STATUS(HF_INVALID, hf_outbox_open(k->scope, k->db,
                                                HF_OPTIONS(hf_outbox_options, .table = k->table,
                                                           .blobs = st.store,
                                                           .blob_over = HF_EVENT_SIZE_MAX + 1),
                                                &outbox));
    }
    stage_close(&st);
}

/* ---- without a store, with a store that fails ----------------------------------------------- */

KIT_TEST(outbox_blob, nothing_is_delivered_without_its_payload)
{
    struct hf_event large = {.type = HF_STR("test"), .payload = payload_of(k->scope, 9, LARGE)};
    struct hf_outbox *without;
    struct hf_event_list list;
    struct stage st;
    uint64_t removed;

    stage_open(k, &st, 0, 0);
    emit(&st, "a", 1, LARGE);
    without = open_outbox(&st, NULL, 0, 0);
    CHECK_STATUS(HF_LIMIT, hf_outbox_emit(k->scope, without, &large, 1, NULL));
    CHECK_OK(hf_outbox_pending(k->scope, without, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(HF_UNSUPPORTED, list.events[0].blob_error);
    CHECK_INT(0, list.events[0].event.payload.len);
    CHECK_STATUS(HF_INVALID, hf_outbox_sweep_blobs(k->scope, without, 0, &removed));
    open_relay(&st, without, false);
    run_for(&st, 5000);
    CHECK_INT(0, st.eye.len);
    relay_close(&st);
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(0, list.events[0].attempts); /* and it is not its fault */
    hf_outbox_close(without);
    open_relay(&st, st.outbox, false);
    run_for(&st, 60000); /* until the other one's lease is over */
    CHECK_INT(1, st.eye.len);
    stage_close(&st);
}

/* (3): the event fails by itself, those behind it wait, others go on; repaired, it is delivered. */
KIT_TEST(outbox_blob, a_lost_payload_fails_its_event_alone)
{
    struct hf_outbox_event found;
    struct hf_event_list list;
    struct stage st;
    struct hf_str id, digest;

    stage_play(k, &st, 0, 0);
    id = emit(&st, "a", 1, LARGE);
    emit(&st, "a", 2, 100);
    emit(&st, "b", 3, 100);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK_OK(hf_blob_delete(k->scope, st.part, found.blob));
    run_until(&st, 1);
    CHECK_INT(1, st.eye.len);
    CHECK_INT(3, st.eye.seen[0]);
    run_for(&st, 3000);
    CHECK_INT(2, st.eye.len); /* the first was given up, so the second came */
    CHECK_OK(hf_outbox_failed(k->scope, st.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(HF_NOT_FOUND, list.events[0].error);
    CHECK_INT(HF_NOT_FOUND, list.events[0].blob_error);
    CHECK(strstr(hf_scope_copy(k->scope, list.events[0].error_text).ptr, "its payload, the blob "));
    CHECK_OK(hf_blob_put(k->scope, st.part, payload_of(k->scope, 1, LARGE), &digest));
    CHECK_OK(hf_outbox_retry(k->scope, st.outbox, &id, 1, NULL));
    run_for(&st, 3000);
    CHECK_INT(3, st.eye.len);
    stage_close(&st);
}

static void set_moody(struct stage *st, struct moody *moody)
{
    *moody = (struct moody){.blobs = {.kind = &moody_kind, .max = HF_BLOB_MAX},
                            .t = st->k->t,
                            .inner = st->outbox->blobs};
    st->outbox->blobs = &moody->blobs;
}

static void unset_moody(struct stage *st, struct moody *moody)
{
    st->outbox->blobs = moody->inner;
}

static struct hf_relay_metrics metrics_of(struct stage *st)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(st->relay, &metrics);
    return metrics;
}

/* While the store is away nothing is counted as tried, and what is not in it goes on. */
static void a_store_is_away(struct kit *k, bool competing, enum hf_status mood)
{
    struct hf_outbox_event found;
    struct moody moody;
    struct stage st;
    struct hf_str id;

    stage_open(k, &st, 0, 0);
    id = emit(&st, "a", 1, LARGE);
    emit(&st, "a", 2, 100);
    emit(&st, "b", 3, 100);
    emit(&st, "c", 4, LARGE);
    set_moody(&st, &moody);
    moody.mood = mood;
    open_relay(&st, st.outbox, competing);
    run_for(&st, 1000);
    emit(&st, "b", 5, 100);
    run_for(&st, 60000);
    CHECK_INT(competing ? 3 : 2, st.eye.len);
    CHECK_INT(0, metrics_of(&st).retried);
    CHECK_INT(0, metrics_of(&st).given_up);
    CHECK_INT(0, metrics_of(&st).outages); /* of the sink */
    CHECK(moody.asked > 3 && moody.asked < 50);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK_INT(HF_OUTBOX_PENDING, found.state);
    CHECK_INT(0, found.attempts);
    moody.mood = HF_OK;
    run_for(&st, 40000);
    CHECK_INT(5, st.eye.len);
    for (size_t i = 0; i < 5 && !competing; i++)
        CHECK(st.eye.seen[i] != 2 || st.eye.seen[i - 1] == 1 || st.eye.seen[i - 2] == 1);
    unset_moody(&st, &moody);
    stage_close(&st);
}

KIT_TEST(outbox_blob, a_store_that_is_away_spends_no_attempts)
{
    a_store_is_away(k, false, HF_IO);
}

KIT_TEST(outbox_blob, a_store_that_is_away_spends_none_of_competing_relays)
{
    a_store_is_away(k, true, HF_THROTTLED);
}

/* The lease ends while a payload is fetched, and the keys of the events are forgotten: what is behind
 * it does not overtake it. */
KIT_TEST(outbox_blob, what_is_lost_meanwhile_is_not_overtaken)
{
    struct hf_sink_ops ops = {
        .size = sizeof(ops), .name = "eye", .batch_max = 10, .keeps_order = true, .send = eye_send};
    struct moody moody;
    struct stage st;

    stage_open(k, &st, 0, 0);
    emit(&st, "a", 1, LARGE);
    emit(&st, "a", 2, 100);
    emit(&st, "a", 3, 100);
    set_moody(&st, &moody);
    CHECK_OK(hf_sink_new(k->scope, &ops, &st.eye, &st.eye.sink));
    CHECK_OK(hf_relay_open(k->scope, st.outbox, st.eye.sink,
                           HF_OPTIONS(hf_relay_options, .no_threads = true, .lease_ms = 5000,
                                      .timeout_ms = 60000),
                           &st.relay));
    for (int in_mood = 0; in_mood < 2; in_mood++) { /* the payload is not there, or comes late */
        moody.mood = in_mood ? HF_OK : HF_IO;
        moody.slow_ms = 6000;
        moody.loses = st.relay;
        moody.asked = 0;
        for (int i = 0; i < 10000 && !moody.asked; i++)
            run_for(&st, 10);
        CHECK(moody.asked > 0);
        CHECK_INT(0, st.eye.len);
        moody.loses = NULL;
        moody.slow_ms = 0;
        moody.mood = HF_IO;
        run_for(&st, 1000);
        CHECK_INT(0, st.eye.len);
    }
    moody.mood = HF_OK;
    run_for(&st, 60000);
    CHECK_INT(3, st.eye.len);
    for (int i = 0; i < 3; i++)
        CHECK_INT(i + 1, st.eye.seen[i]);
    unset_moody(&st, &moody);
    stage_close(&st);
}

/* Fetching has a time of its own: the sink has all of its. */
KIT_TEST(outbox_blob, a_slow_store_takes_no_time_of_the_sink)
{
    for (int competing = 0; competing < 2; competing++) {
        struct moody moody;
        struct stage st;

        stage_open(k, &st, 0, 0);
        emit(&st, "a", 1, LARGE);
        set_moody(&st, &moody);
        moody.slow_ms = 10000;
        open_relay(&st, st.outbox, competing);
        run_for(&st, 60000);
        CHECK_INT(1, st.eye.len);
        CHECK(st.eye.left_ms > 29000);
        unset_moody(&st, &moody);
        stage_close(&st);
        CHECK_OK(hf_delete_table(k->scope, k->db, &(struct hf_delete_table){.table = k->table},
                                 &(struct hf_delete_table_result){0}));
    }
}

/* Of competing relays, too, a lost payload fails its event, and only that. */
KIT_TEST(outbox_blob, a_lost_payload_fails_of_competing_relays)
{
    struct hf_outbox_event found;
    struct hf_event_list list;
    struct stage st;
    struct hf_str id;

    stage_open(k, &st, 0, 0);
    id = emit(&st, "a", 1, LARGE);
    emit(&st, "a", 2, 100);
    emit(&st, "b", 3, LARGE);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK_OK(hf_blob_delete(k->scope, st.part, found.blob));
    open_relay(&st, st.outbox, true);
    run_for(&st, 5000);
    CHECK_INT(2, st.eye.len);
    CHECK_INT(1, metrics_of(&st).given_up);
    CHECK_OK(hf_outbox_failed(k->scope, st.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(2, list.events[0].attempts);
    CHECK_INT(HF_NOT_FOUND, list.events[0].error);
    CHECK(
        strstr(hf_scope_copy(k->scope, list.events[0].error_text).ptr, "is not in the blob store"));
    stage_close(&st);
}

/* A name that is none never becomes one. */
KIT_TEST(outbox_blob, a_blob_without_a_name_fails_its_event)
{
    struct hf_event_list list;
    struct hf_outbox_event found;
    struct hf_update_item update;
    struct stage st;
    struct hf_str id;

    stage_play(k, &st, 0, 0);
    id = emit(&st, "a", 1, LARGE);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    update = (struct hf_update_item){.table = k->table,
                                     .key = hf__outbox_key(k->scope, st.outbox, "p", found.bucket,
                                                           found.ref),
                                     .update = HF_STR("SET #blob = :blob"),
                                     .names = HF_ITEM(k->scope, HF_S("#blob", HF_STR("blob"))),
                                     .values = HF_ITEM(k->scope,
                                                       HF_S(":blob", HF_STR("../../etc/passwd")))};
    CHECK_OK(hf_update_item(k->scope, k->db, &update, NULL));
    run_for(&st, 5000);
    CHECK_INT(0, st.eye.len);
    CHECK_OK(hf_outbox_failed(k->scope, st.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK_INT(2, list.events[0].attempts);
    CHECK_INT(HF_INVALID, list.events[0].error);
    stage_close(&st);
}

/* (1): what was sent twice is there once, with its payload; what failed is swept. */
KIT_TEST(outbox_blob, nothing_is_lost_on_retries)
{
    struct hf_event event = {.type = HF_STR("test"), .payload = payload_of(k->scope, 1, LARGE)};
    struct hf_event bad[] = {event, {.payload = event.payload}};
    struct hf_event_list list;
    struct stage st;

    stage_open(k, &st, 0, 0);
    CHECK_STATUS(HF_INVALID, hf_outbox_emit(k->scope, st.outbox, bad, 2,
                                            HF_OPTIONS(hf_emit_options, .each_alone = true)));
    CHECK_INT(0, blobs_len(&st)); /* nothing is put before all were looked at */
    kit_fault(k, HF_FAULT_ERROR, "PutItem", 0);
    CHECK(hf_outbox_emit(k->scope, st.outbox, &event, 1, NULL) != HF_OK);
    kit_no_faults(k);
    CHECK_INT(1, blobs_len(&st)); /* left behind */
    test_advance_ms(k->t, 90 * 1000);
    CHECK_OK(hf_outbox_emit(k->scope, st.outbox, &event, 1, NULL)); /* and used after all */
    CHECK_INT(1, blobs_len(&st));
    CHECK_INT(0, sweep(&st));
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK(is_payload(list.events[0].event.payload, 1, LARGE));
    stage_close(&st);
}

/* ---- sweeping ------------------------------------------------------------------------------- */

KIT_TEST(outbox_blob, a_sweep_takes_what_no_event_has)
{
    struct stage st;
    struct hf_str id, digest, failed;
    struct hf_outbox_event found;

    stage_open(k, &st, 0, 0);
    CHECK_OK(hf_blob_put(k->scope, st.part, payload_of(k->scope, 7, LARGE), &digest)); /* orphan */
    CHECK_OK(
        hf_blob_put(k->scope, st.store, payload_of(k->scope, 8, LARGE), &digest)); /* another's */
    failed = emit(&st, "a", 1, LARGE);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, failed, &found));
    CHECK_OK(hf__outbox_note_failure(k->scope, st.outbox, &found,
                                     &(struct hf_error){.status = HF_IO}, 0, true));
    id = emit(&st, "b", 2, LARGE);
    CHECK_INT(3, blobs_len(&st));
    CHECK_INT(1, sweep(&st));
    CHECK_INT(2, blobs_len(&st)); /* of the one that waits and of the one that failed */
    CHECK_OK(hf_blob_has(k->scope, st.store, digest, NULL));
    CHECK_OK(hf_outbox_discard(k->scope, st.outbox, &id, 1, NULL));
    CHECK_OK(hf_outbox_discard(k->scope, st.outbox, &failed, 1, NULL));
    CHECK_INT(2, sweep(&st));
    CHECK_INT(0, blobs_len(&st));
    stage_close(&st);
}

/* Two events with the same payload have one blob; it goes with the last of them. */
KIT_TEST(outbox_blob, the_same_payload_is_stored_once)
{
    struct stage st;
    struct hf_str one, two;

    stage_open(k, &st, 0, 0);
    one = emit(&st, "a", 1, LARGE);
    two = emit(&st, "b", 1, LARGE);
    CHECK_INT(1, blobs_len(&st));
    CHECK_OK(hf_outbox_discard(k->scope, st.outbox, &one, 1, NULL));
    CHECK_INT(0, sweep(&st));
    CHECK_OK(hf_outbox_discard(k->scope, st.outbox, &two, 1, NULL));
    CHECK_INT(1, sweep(&st));
    stage_close(&st);
}

/* (2): one that goes back from those that failed, or from the history, while a sweep has looked at
 * those that wait and not yet there, is new, and so is not taken. */
KIT_TEST(outbox_blob, what_goes_back_counts_as_new)
{
    struct hf_outbox_event found;
    struct stage st;
    struct hf_str id;
    uint64_t done, size;

    stage_play(k, &st, 0, 3600);
    id = emit(&st, "a", 1, LARGE);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK_OK(hf__outbox_note_failure(k->scope, st.outbox, &found,
                                     &(struct hf_error){.status = HF_IO}, 0, true));
    test_advance_ms(k->t, 100 * 1000);
    CHECK_OK(hf_outbox_retry(k->scope, st.outbox, &id, 1, NULL));
    /* As if the sweep had seen no event at all. */
    {
        struct hf_outbox *empty;

        CHECK_OK(hf_outbox_open(k->scope, k->db,
                                HF_OPTIONS(hf_outbox_options, .table = k->other, .blobs = st.store),
                                &empty));
        hf_blobs_close(empty->blobs);
        CHECK_OK(hf_blobs_part(k->scope, st.store, k->table, &empty->blobs));
        CHECK_OK(hf_outbox_sweep_blobs(k->scope, empty, 60, &done));
        CHECK_INT(0, done);
        run_for(&st, 3000);
        CHECK_INT(1, st.eye.len);
        test_advance_ms(k->t, 100 * 1000);
        CHECK_OK(hf_outbox_replay(k->scope, st.outbox, NULL, &done));
        CHECK_INT(1, done);
        CHECK_OK(hf_outbox_sweep_blobs(k->scope, empty, 60, &done));
        CHECK_INT(0, done);
        hf_outbox_close(empty);
    }
    CHECK_OK(hf_blob_has(k->scope, st.part, found.blob, &size));
    CHECK_INT(LARGE, size);
    stage_close(&st);
}

/* ---- transactions --------------------------------------------------------------------------- */

KIT_TEST(outbox_blob, in_a_transaction_of_the_caller)
{
    struct hf_event event = {.type = HF_STR("test"), .payload = payload_of(k->scope, 1, LARGE)};
    struct hf_transact_write action;
    struct hf_event_list list;
    struct stage st;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS))
        return;
    stage_open(k, &st, 0, 0);
    CHECK_OK(hf_outbox_emit_tx(k->scope, st.outbox, &event, &action, NULL));
    CHECK_INT(1, blobs_len(&st)); /* before the event */
    CHECK_OK(hf_outbox_emit_tx(k->scope, st.outbox, &event, &action, NULL));
    CHECK_OK(hf_transact_write_items(k->scope, k->db,
                                     &(struct hf_transact_write_items){.actions = &action,
                                                                       .actions_len = 1},
                                     NULL));
    CHECK_OK(hf_outbox_pending(k->scope, st.outbox, NULL, &list));
    CHECK_INT(1, list.events_len);
    CHECK(is_payload(list.events[0].event.payload, 1, LARGE));
    stage_close(&st);
}

/* (2): who cannot make the blob new lets the event where it is. */
KIT_TEST(outbox_blob, nothing_goes_back_without_a_store)
{
    struct hf_outbox *without;
    struct hf_outbox_event found;
    struct stage st;
    struct hf_str id;
    uint64_t done;

    stage_play(k, &st, 0, 3600);
    id = emit(&st, "a", 1, LARGE);
    without = open_outbox(&st, NULL, 0, 3600);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK_OK(hf__outbox_note_failure(k->scope, st.outbox, &found,
                                     &(struct hf_error){.status = HF_IO}, 0, true));
    CHECK_STATUS(HF_UNSUPPORTED, hf_outbox_retry(k->scope, without, &id, 1, &done));
    CHECK_INT(0, done);
    CHECK(strstr(hf_scope_error_text(k->scope), id.ptr) != NULL);
    CHECK_STATUS(HF_UNSUPPORTED, hf_outbox_retry_all(k->scope, without, NULL, &done));
    CHECK_INT(0, done);
    CHECK_OK(hf_outbox_get(k->scope, st.outbox, id, &found));
    CHECK_INT(HF_OUTBOX_FAILED, found.state);
    CHECK_OK(hf_outbox_retry(k->scope, st.outbox, &id, 1, &done));
    CHECK_INT(1, done);
    run_for(&st, 3000);
    CHECK_INT(1, st.eye.len);
    CHECK_STATUS(HF_UNSUPPORTED, hf_outbox_replay(k->scope, without, NULL, &done));
    CHECK_INT(0, done);
    CHECK_OK(hf_outbox_replay(k->scope, st.outbox, NULL, &done));
    CHECK_INT(1, done);
    hf_outbox_close(without);
    stage_close(&st);
}

/* Outboxes of the same name behind two prefixes have one blob store. */
TEST(outbox_blob, prefixes_that_share_a_blob_store)
{
    struct kit k = {.t = t, .scope = hf_scope_new(test_env(t))};
    struct stage stages[2];
    struct hf_event_list list;
    struct hf_blobs *blobs;
    struct hf_db *dbs[2];

    CHECK_OK(hf_blobs_open(k.scope, HF_STR("memory:"), NULL, &blobs));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_open(k.scope, HF_STR("memory:"),
                         HF_OPTIONS(hf_engine_options, .env = test_env(t)), &dbs[i]));
        CHECK_OK(hf_prefix_open(k.scope, dbs[i], hf_scope_format(k.scope, "p%d-", i), &dbs[i]));
        stages[i] = (struct stage){.k = &k};
        CHECK_OK(hf_outbox_open(k.scope, dbs[i], HF_OPTIONS(hf_outbox_options, .blobs = blobs),
                                &stages[i].outbox));
        emit(&stages[i], "k", i, LARGE);
    }
    for (int i = 0; i < 2; i++)
        CHECK_INT(0, sweep(&stages[i]));
    for (int i = 0; i < 2; i++) {
        CHECK_OK(hf_outbox_pending(k.scope, stages[i].outbox, NULL, &list));
        CHECK_INT(1, list.events_len);
        CHECK(is_payload(list.events[0].event.payload, i, LARGE));
        hf_outbox_close(stages[i].outbox);
        hf_db_close(dbs[i]);
    }
    hf_blobs_close(blobs);
    hf_scope_free(k.scope);
}

/* ---- kills ---------------------------------------------------------------------------------- */

#ifdef HF_KILL_POINTS

/* A database and a folder of blobs on disk, in a process that dies at a point. */
CHILD(emitter)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_outbox *outbox;
    struct hf_blobs *blobs;
    struct hf_db *db;

    if (hf_open(s, hf_scope_format(s, "embedded:%s", args[0]), NULL, &db) != HF_OK ||
        hf_blobs_open_beside(s, db, &blobs) != HF_OK ||
        hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .blobs = blobs), &outbox) != HF_OK)
        return 2;
    hf__kill_at(args[1]); /* counted from here on */
    for (int i = 0; i < 3; i++) {
        struct hf_event event = {.type = HF_STR("test"), .payload = payload_of(s, i, LARGE)};

        if (hf_outbox_emit(s, outbox, &event, 1, NULL) != HF_OK)
            return 3;
    }
    hf_outbox_close(outbox);
    hf_blobs_close(blobs);
    hf_db_close(db);
    return 0;
}

static void emit_in_child(const char *path, const char *point, bool *killed)
{
    int out, status;
    pid_t pid = test_child("emitter", (const char *[]){path, point, NULL}, &out);

    close(out);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    *killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    CHECK(*killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
}

/* By a clock that is an hour ahead, what was left behind is old. */
static int64_t later_us(void *user)
{
    struct timespec now;

    (void)user;
    clock_gettime(CLOCK_REALTIME, &now);
    return ((int64_t)now.tv_sec + 3600) * 1000000 + now.tv_nsec / 1000;
}

/* Between blob and event, and around: no event lacks its payload, and orphans are swept. */
TEST(outbox_blob, killed_between_blob_and_event)
{
    static const char *const points[] = {"blob_made:2",    "blob_written:2", "blob_synced:2",
                                         "blob_renamed:2", "before_apply:2", "after_apply:2",
                                         "before_answer:2"};
    size_t orphans = 0;

    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        const char *path = test_quick_directory(t);
        struct hf_env env = {.size = sizeof(env), .wall_us = later_us};
        struct hf_scope *s = hf_scope_new(&env);
        struct hf_outbox *outbox;
        struct hf_event_list list;
        struct hf_blobs *blobs;
        struct hf_db *db;
        uint64_t removed;
        bool killed;

        emit_in_child(path, points[i], &killed);
        CHECK(killed);
        CHECK_OK(hf_open(s, hf_scope_format(s, "embedded:%s", path),
                         HF_OPTIONS(hf_engine_options, .env = &env), &db));
        CHECK_OK(hf_blobs_open_beside(s, db, &blobs));
        CHECK_OK(hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .blobs = blobs), &outbox));
        CHECK_OK(hf_outbox_pending(s, outbox, NULL, &list));
        CHECK(list.events_len == 1 || list.events_len == 2);
        for (size_t j = 0; j < list.events_len; j++) {
            CHECK_INT(HF_OK, list.events[j].blob_error);
            CHECK_INT(LARGE, list.events[j].event.payload.len);
        }
        CHECK_OK(hf_outbox_sweep_blobs(s, outbox, 60, &removed));
        CHECK(removed <= 1);
        orphans += removed;
        CHECK_OK(hf_outbox_pending(s, outbox, NULL, &list));
        for (size_t j = 0; j < list.events_len; j++)
            CHECK_INT(HF_OK, list.events[j].blob_error);
        hf_outbox_close(outbox);
        hf_blobs_close(blobs);
        hf_db_close(db);
        hf_scope_free(s);
    }
    CHECK(orphans >= 2); /* after the rename, and before the event was applied */
}

#endif
