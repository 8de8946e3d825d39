/*
 * outbox/outbox_urgent_test.c: urgent events: relays and claims take them before all others,
 * however many wait, and nobody who has to do with places loses one. Their order under bad luck:
 * relay_sim_test.c.
 */
#include <holdfast/bus.h>
#include <holdfast/relay.h>
#include <holdfast/tx.h>

#include "kit.h"
#include "relay_kit.h"

enum { BACKLOG = 300, AT = 60, URGENT = 1000 };

static struct hf_outbox *open_outbox(struct kit *k)
{
    struct hf_outbox *outbox;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 1),
                            &outbox));
    return outbox;
}

static void emit_urgent(struct hf_scope *s, struct hf_outbox *outbox, const char *key, int number)
{
    struct hf_str payload = hf_scope_format(s, "%d", number);
    struct hf_event event = {.type = HF_STR("test"),
                             .key = hf_str_from(key),
                             .urgent = true,
                             .payload = hf_bytes_of(payload.ptr, payload.len)};

    CHECK_OK(hf_outbox_emit(s, outbox, &event, 1, NULL));
}

/* Emits urgent ones while the backlog is worked off. */
struct meanwhile {
    struct ear *ear;
    struct hf_scope *s;
    struct hf_outbox *outbox;
};

static void emit_meanwhile(void *user)
{
    struct meanwhile *m = user;

    if (m->ear->calls != AT)
        return;
    for (int i = 0; i < 3; i++)
        emit_urgent(m->s, m->outbox, "key1", URGENT + i);
    emit_urgent(m->s, m->outbox, "", URGENT + 3);
}

/* All of a backlog, and where the first urgent one was among it; `outbox` emits the urgent ones. */
static size_t overtake(struct kit *k, struct hf_outbox *relayed, struct hf_outbox *outbox,
                       struct ear *ear)
{
    static const char *const keys[] = {"key0", "key1", "key2", ""};
    struct meanwhile m = {.ear = ear, .s = hf_scope_new(test_env(k->t)), .outbox = outbox};
    struct hf_relay_options options = {.size = sizeof(options), .no_threads = true, .batch = 10};
    struct hf_relay *relay;
    uint64_t delivered;
    int last = -1;

    ear->during = emit_meanwhile;
    ear->user = &m;
    for (int i = 0; i < BACKLOG; i++)
        emit(k->scope, relayed, keys[i % 4], i);
    CHECK_OK(hf_relay_open(k->scope, relayed, ear->sink, &options, &relay));
    CHECK_OK(hf_relay_drain(k->scope, relay, &delivered));
    CHECK_INT(BACKLOG + 4, delivered);
    for (int i = 0; i < BACKLOG; i++)
        CHECK_INT(1, ear_count(ear, i));
    for (size_t i = 0; i < ear->len; i++)
        if (ear->heard[i].number < URGENT && ear->heard[i].number % 4 == 1) {
            CHECK(ear->heard[i].number > last); /* key1 */
            last = ear->heard[i].number;
        }
    CHECK(ear_first(ear, URGENT) < ear_first(ear, URGENT + 1));
    CHECK(ear_first(ear, URGENT + 1) < ear_first(ear, URGENT + 2));
    hf_relay_close(relay);
    hf_scope_free(m.s);
    return ear_first(ear, URGENT + 2);
}

KIT_TEST(outbox_urgent, they_overtake_a_backlog)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);

    CHECK(overtake(k, outbox, outbox, ear) <= AT + 6);
    CHECK(ear_first(ear, URGENT + 3) <= AT + 6);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* Nobody wakes the relay: it looks for them every second, which is 20 deliveries. */
KIT_TEST(outbox_urgent, those_of_others_do_so)
{
    struct hf_outbox *outbox = open_outbox(k), *other = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);

    ear->work_ms = 50;
    CHECK(overtake(k, outbox, other, ear) <= AT + 30);
    ear_close(ear);
    hf_outbox_close(other);
    hf_outbox_close(outbox);
}

KIT_TEST(outbox_urgent, claims_take_them_first_and_they_stay_urgent)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct hf_error error = {.status = HF_IO, .message = HF_STR("no")};
    struct hf_claim_list list;
    struct hf_outbox_event found;
    uint64_t done;

    for (int i = 0; i < 120; i++)
        emit(k->scope, outbox, "", i);
    emit_urgent(k->scope, outbox, "", URGENT);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(
            hf_outbox_claim(k->scope, outbox, HF_OPTIONS(hf_claim_options, .limit = 1), &list));
        CHECK_INT(1, list.events_len);
        CHECK_INT(URGENT, event_number(&list.events[0].event.event));
        CHECK(list.events[0].event.event.urgent);
        CHECK_OK(hf_outbox_fail(k->scope, outbox, &list.events[0], &error, true, NULL));
        CHECK_OK(hf_outbox_get(k->scope, outbox, list.events[0].event.event.id, &found));
        CHECK(found.state == HF_OUTBOX_FAILED && found.event.urgent);
        CHECK(k->t->wall_us - found.event.time_us < 60000000);
        CHECK_OK(hf_outbox_retry(k->scope, outbox, &list.events[0].event.event.id, 1, &done));
        CHECK_INT(1, done);
    }
    hf_outbox_close(outbox);
}

/* A relay of another process has an outbox of its own: nobody wakes it. */
static void turns(struct kit *k, struct hf_relay *relay, int64_t ms)
{
    struct hf_scope *s = hf_scope_new(test_env(k->t));

    relays_run_for(k->t, s, &relay, 1, ms);
    hf_scope_free(s);
}

static void close_all(struct hf_outbox *outbox, struct hf_relay *relay, struct ear *ear)
{
    hf_relay_close(relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* ---- what becomes of the others ------------------------------------------------------------- */

/* An urgent one for every second delivery. */
static void emit_every_second(void *user)
{
    struct meanwhile *m = user;

    if (m->ear->calls % 2 == 0 && m->ear->calls < BACKLOG)
        emit_urgent(m->s, m->outbox, "", URGENT + (int)m->ear->calls);
}

/* As long as all urgent ones are delivered, so are the others: each is read for in between. */
KIT_TEST(outbox_urgent, a_stream_of_them_starves_nobody)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct meanwhile m = {.ear = ear, .s = hf_scope_new(test_env(k->t)), .outbox = outbox};
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.batch = 4});
    size_t others = 0;

    ear->work_ms = 1;
    ear->during = emit_every_second;
    ear->user = &m;
    for (int i = 0; i < BACKLOG; i++)
        emit(k->scope, outbox, "", i);
    turns(k, relay, 10000);
    CHECK_INT(BACKLOG + BACKLOG / 2 - 1, ear->len);
    for (size_t i = 0; i < BACKLOG; i++)
        others += ear->heard[i].number < URGENT;
    CHECK(others >= BACKLOG / 3);
    hf_scope_free(m.s);
    close_all(outbox, relay, ear);
}

/* Those that are tried again later are in front of those that can be delivered. */
KIT_TEST(outbox_urgent, those_that_cannot_go_on_hide_no_others)
{
    enum { STUCK = 60 };
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, true);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear,
                                            (struct hf_relay_options){.batch = 4,
                                                                      .backoff_ms = 600000,
                                                                      .backoff_max_ms = 600000});

    ear->fails = URGENT;
    for (int i = 0; i < STUCK; i++)
        emit_urgent(k->scope, outbox, hf_scope_format(k->scope, "key%d", i).ptr, URGENT);
    for (int i = 0; i < STUCK; i++) /* behind those of their keys, and not to be delivered */
        emit_urgent(k->scope, outbox, hf_scope_format(k->scope, "key%d", i).ptr, 1);
    emit_urgent(k->scope, outbox, "other", 2);
    emit(k->scope, outbox, "another", 3);
    turns(k, relay, 5000);
    CHECK_INT(STUCK, ear_count(ear, URGENT));
    CHECK_INT(0, ear_count(ear, 1));
    CHECK_INT(1, ear_count(ear, 2));
    CHECK_INT(1, ear_count(ear, 3));
    close_all(outbox, relay, ear);
}

/* An urgent one that fails keeps all of its key waiting; another one keeps the others only. */
KIT_TEST(outbox_urgent, failures_keep_the_key_waiting)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear,
                       (struct hf_relay_options){.backoff_ms = 10000, .backoff_max_ms = 10000});

    ear->fails = 1;
    ear->fail_times = 1;
    emit(k->scope, outbox, "key", 1);
    emit(k->scope, outbox, "key", 2);
    turns(k, relay, 1000);
    emit_urgent(k->scope, outbox, "key", URGENT);
    emit_urgent(k->scope, outbox, "key", URGENT + 1);
    turns(k, relay, 1000);
    CHECK_INT(3, ear->len);
    CHECK_INT(URGENT, ear->heard[1].number);
    CHECK_INT(URGENT + 1, ear->heard[2].number);
    turns(k, relay, 15000);
    CHECK_INT(5, ear->len);
    CHECK_INT(1, ear->heard[3].number);
    CHECK_INT(2, ear->heard[4].number);
    ear->fails = URGENT + 2;
    ear->fail_times = 1;
    emit_urgent(k->scope, outbox, "key", URGENT + 2);
    turns(k, relay, 1000);
    emit_urgent(k->scope, outbox, "key", URGENT + 3);
    emit(k->scope, outbox, "key", 3);
    turns(k, relay, 1000);
    CHECK_INT(6, ear->len);
    turns(k, relay, 15000);
    CHECK_INT(9, ear->len);
    CHECK_INT(URGENT + 2, ear->heard[6].number);
    CHECK_INT(URGENT + 3, ear->heard[7].number);
    CHECK_INT(3, ear->heard[8].number);
    close_all(outbox, relay, ear);
}

KIT_TEST(outbox_urgent, with_failed_blocks_they_wait_for_a_decision)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear,
                       (struct hf_relay_options){.failed_blocks = true, .poll_ms = 500});
    uint64_t done;

    ear->fails = 1;
    ear->fails_for_good = true;
    emit(k->scope, outbox, "key", 1);
    emit(k->scope, outbox, "key", 2);
    turns(k, relay, 1000);
    emit_urgent(k->scope, outbox, "key", URGENT);
    turns(k, relay, 3000);
    CHECK_INT(1, ear->len);
    CHECK_OK(hf_outbox_discard_all(k->scope, outbox, NULL, &done));
    turns(k, relay, 3000);
    CHECK_INT(3, ear->len);
    CHECK_INT(URGENT, ear->heard[1].number);
    CHECK_INT(2, ear->heard[2].number);
    close_all(outbox, relay, ear);
}

/* ---- who looks for them --------------------------------------------------------------------- */

/* Idle buckets are asked all at once: relay_look.c. */
KIT_TEST(outbox_urgent, idle_relays_find_them)
{
    struct hf_outbox_options o = {.size = sizeof(o), .table = k->table, .buckets = 8};
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_outbox *outbox, *other;
    struct hf_relay *relay;

    CHECK_OK(hf_outbox_open(k->scope, k->db, &o, &outbox));
    CHECK_OK(hf_outbox_open(k->scope, k->db, &o, &other));
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.poll_ms = 200});
    emit(k->scope, other, "key", 0);
    turns(k, relay, 3000);
    for (int i = 1; i < 5; i++) {
        emit_urgent(k->scope, other, "key", URGENT + i);
        turns(k, relay, 1000);
        CHECK_INT(i + 1, ear->len);
        CHECK_INT(URGENT + i, ear->heard[i].number);
    }
    hf_outbox_close(other);
    close_all(outbox, relay, ear);
}

KIT_TEST(outbox_urgent, competing_relays_take_them_first)
{
    struct hf_outbox *outbox = open_outbox(k), *other = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear,
                       (struct hf_relay_options){.competing = true, .batch = 5, .poll_ms = 100});

    for (int i = 0; i < 60; i++)
        emit(k->scope, outbox, "", i);
    emit_urgent(k->scope, other, "", URGENT);
    turns(k, relay, 100);
    CHECK_INT(0, ear_first(ear, URGENT));
    turns(k, relay, 10000);
    CHECK_INT(61, ear->len);
    hf_outbox_close(other);
    close_all(outbox, relay, ear);
}

/* ---- what is known of them ------------------------------------------------------------------ */

KIT_TEST(outbox_urgent, lists_and_counts_have_their_time)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct hf_outbox_stats stats;
    struct hf_event_list list;

    for (int i = 0; i < 3; i++)
        emit(k->scope, outbox, "key", i);
    emit_urgent(k->scope, outbox, "key", URGENT);
    test_advance_ms(k->t, 5000);
    CHECK_OK(hf_outbox_stats(k->scope, outbox, 0, &stats));
    CHECK_INT(4, stats.pending);
    CHECK_INT(4, stats.due);
    CHECK_INT(1, stats.urgent);
    CHECK(stats.oldest_due_ms >= 5000 && stats.oldest_due_ms < 60000);
    CHECK_OK(hf_outbox_pending(k->scope, outbox, NULL, &list));
    CHECK_INT(4, list.events_len);
    CHECK_INT(URGENT, event_number(&list.events[0].event));
    CHECK(list.events[0].event.urgent && !list.events[1].event.urgent);
    CHECK(k->t->wall_us - list.events[0].event.time_us < 60000000);
    CHECK_OK(
        hf_outbox_pending(k->scope, outbox, HF_OPTIONS(hf_event_list_options, .limit = 1), &list));
    CHECK_OK(hf_outbox_pending(k->scope, outbox,
                               HF_OPTIONS(hf_event_list_options, .after = list.next), &list));
    CHECK_INT(3, list.events_len);
    hf_outbox_close(outbox);
}

/* Newest first by when they were emitted, page by page; oldest first before all others. */
KIT_TEST(outbox_urgent, the_history_has_them_where_they_belong)
{
    enum { EVENTS = 9 };
    static const int oldest_first[EVENTS] = {1, 4, 7, 0, 2, 3, 5, 6, 8};
    struct hf_outbox_options o = {.size = sizeof(o),
                                  .table = k->table,
                                  .buckets = 4,
                                  .history_s = 1000};
    struct hf_event_list_options one = {.size = sizeof(one), .limit = 1};
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_event_list list;
    struct hf_outbox *outbox;
    struct hf_relay *relay;

    CHECK_OK(hf_outbox_open(k->scope, k->db, &o, &outbox));
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    for (int i = 0; i < EVENTS; i++) {
        (i % 3 == 1 ? emit_urgent : emit)(k->scope, outbox, "", i);
        test_advance_ms(k->t, 5);
    }
    turns(k, relay, 3000);
    CHECK_INT(EVENTS, ear->len);
    for (int i = EVENTS - 1; i >= 0; i--) {
        CHECK_OK(hf_outbox_history(k->scope, outbox, &one, &list));
        CHECK_INT(1, list.events_len);
        CHECK_INT(i, event_number(&list.events[0].event));
        one.after = list.next;
    }
    CHECK_INT(0, list.next.len);
    one.oldest_first = true;
    for (int i = 0; i < EVENTS; i++) {
        CHECK_OK(hf_outbox_history(k->scope, outbox, &one, &list));
        CHECK_INT(1, list.events_len);
        CHECK_INT(oldest_first[i], event_number(&list.events[0].event));
        one.after = list.next;
    }
    CHECK_INT(0, list.next.len);
    close_all(outbox, relay, ear);
}

/* The lag of a relay that has only urgent ones to deliver. */
KIT_TEST(outbox_urgent, the_lag_is_since_they_were_emitted)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    struct hf_relay_metrics metrics;

    ear->down = true;
    emit_urgent(k->scope, outbox, "key", URGENT);
    turns(k, relay, 2000);
    hf_relay_metrics(relay, &metrics);
    CHECK(metrics.lag_ms >= 1000 && metrics.lag_ms < 60000);
    close_all(outbox, relay, ear);
}

/* ---- by hand -------------------------------------------------------------------------------- */

/* A dead letter, and an event that was delivered, while a backlog is worked off. */
KIT_TEST(outbox_urgent, retried_and_replayed_they_overtake_again)
{
    struct hf_outbox *outbox;
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay;
    uint64_t done;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 1,
                                       .history_s = 1000),
                            &outbox));
    relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.batch = 4, .rate = 200});
    ear->fails = URGENT;
    ear->fails_for_good = true;
    emit_urgent(k->scope, outbox, "key", URGENT);
    emit_urgent(k->scope, outbox, "key", URGENT + 1);
    turns(k, relay, 1000);
    CHECK_INT(2, ear->len);
    ear->fails = -1;
    for (int i = 0; i < BACKLOG; i++)
        emit(k->scope, outbox, "", i);
    turns(k, relay, 300);
    CHECK(ear->len < BACKLOG / 2);
    CHECK_OK(hf_outbox_retry_all(k->scope, outbox, NULL, &done));
    CHECK_INT(1, done);
    CHECK_OK(hf_outbox_replay(k->scope, outbox,
                              HF_OPTIONS(hf_event_list_options, .key = HF_STR("key")), &done));
    CHECK_INT(1, done);
    done = ear->len;
    turns(k, relay, 200);
    CHECK_INT(2, ear_count(ear, URGENT));
    CHECK_INT(2, ear_count(ear, URGENT + 1));
    for (size_t i = done + 4; i < ear->len; i++)
        CHECK(ear->heard[i].number < URGENT);
    turns(k, relay, 5000);
    CHECK_INT(BACKLOG + 4, ear->len);
    close_all(outbox, relay, ear);
}

/* ---- who emits ------------------------------------------------------------------------------ */

KIT_TEST_TX(outbox_urgent, those_of_transactions_are_so)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_event events[4] = {
        {.type = HF_STR("test"), .payload = hf_bytes_of("1", 1)},
        {.type = HF_STR("test"), .payload = hf_bytes_of("1000", 4), .urgent = true},
        {.type = HF_STR("test"), .payload = hf_bytes_of("1001", 4), .urgent = true},
        {.type = HF_STR("test"), .payload = hf_bytes_of("1002", 4), .urgent = true}};
    struct hf_transact_write action;
    struct hf_relay *relay;
    struct hf_tx *tx;

    for (int i = 0; i < 4; i++)
        events[i].key = HF_STR("key");
    CHECK_OK(hf_outbox_emit(k->scope, outbox, events, 2, NULL));
    CHECK_OK(hf_tx_new(k->scope, k->db, &tx));
    CHECK_OK(hf_outbox_emit_into(k->scope, outbox, tx, &events[2], 1, NULL));
    CHECK_OK(hf_outbox_emit_tx(k->scope, outbox, &events[3], &action, NULL));
    CHECK_OK(hf_tx_add(k->scope, tx, &action));
    CHECK_OK(hf_tx_commit(k->scope, tx, NULL));
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    turns(k, relay, 1000);
    CHECK_INT(4, ear->len);
    for (int i = 0; i < 3; i++)
        CHECK_INT(URGENT + i, ear->heard[i].number);
    CHECK_INT(1, ear->heard[3].number);
    close_all(outbox, relay, ear);
}

/* Middleware may say what is urgent; whoever handles it, or waits for it, sees that. */
static enum hf_status hurry(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    (void)user;
    hf_bus_call_event(call)->urgent = event_number(hf_bus_call_event(call)) >= URGENT;
    return hf_bus_next(s, call);
}

struct desk {
    int numbers[4];
    bool urgent[4];
    int len;
};

static enum hf_status take(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct desk *desk = user;

    (void)s;
    CHECK(desk->len < 4);
    desk->urgent[desk->len] = event->urgent;
    desk->numbers[desk->len++] = event_number(event);
    return HF_OK;
}

KIT_TEST_TX(outbox_urgent, middleware_may_make_them_so)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct hf_relay_options relay = {.size = sizeof(relay), .no_threads = true};
    struct hf_event events[3] = {
        {.type = HF_STR("test"), .key = HF_STR("key"), .payload = hf_bytes_of("1", 1)},
        {.type = HF_STR("test"), .key = HF_STR("key"), .payload = hf_bytes_of("1000", 4)},
        {.type = HF_STR("test"),
         .key = HF_STR("key"),
         .payload = hf_bytes_of("2", 1),
         .urgent = true}};
    struct desk desk = {.len = 0};
    struct hf_bus_wait *wait;
    struct hf_event waited;
    struct hf_bus *bus;

    CHECK_OK(hf_bus_open(k->scope, outbox, HF_OPTIONS(hf_bus_options, .relay = &relay), &bus));
    CHECK_OK(hf_bus_use(k->scope, bus, HF_BUS_EMIT, hurry, NULL));
    CHECK_OK(hf_bus_on(k->scope, bus, HF_STR("test"), take, &desk));
    CHECK_OK(hf_bus_wait_begin(k->scope, bus, HF_STR("test"), &wait));
    CHECK_OK(hf_bus_emit(k->scope, bus, events, 3));
    turns(k, hf_bus_relay(bus), 1000);
    CHECK_INT(3, desk.len);
    CHECK_INT(URGENT, desk.numbers[0]);
    CHECK_INT(1, desk.numbers[1]);
    CHECK_INT(2, desk.numbers[2]);
    CHECK(desk.urgent[0] && !desk.urgent[1] && !desk.urgent[2]);
    CHECK_OK(hf_bus_wait_end(k->scope, wait, 0, &waited));
    CHECK(waited.urgent && event_number(&waited) == URGENT);
    hf_bus_close(bus);
    hf_outbox_close(outbox);
}

/* With transactions or without them. */
KIT_TEST(outbox_urgent, their_ids_are_taken_once)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct hf_outbox_event found;
    struct hf_event event = {.type = HF_STR("test"),
                             .id = HF_STR("mine"),
                             .urgent = true,
                             .time_us = k->t->wall_us};

    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    CHECK_STATUS(HF_DUPLICATE, hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    CHECK_OK(hf_outbox_get(k->scope, outbox, HF_STR("mine"), &found));
    CHECK(found.event.urgent && found.event.time_us == event.time_us);
    hf_outbox_close(outbox);
}

/* ---- clocks --------------------------------------------------------------------------------- */

/* Before 2020 all places are among those of urgent ones: nothing overtakes, and nothing is lost. */
static void by_a_clock_of_1971(struct kit *k)
{
    static const char *const keys[] = {"key0", "key1", "key2"};
    struct ear *ear = ear_open(k->scope, 1, false);
    int last[3] = {-1, -1, -1};
    struct hf_outbox *outbox;
    struct hf_relay *relay;

    k->t->wall_us = INT64_C(31536000) * 1000000; /* 1971 */
    outbox = open_outbox(k);
    ear->work_ms = 1;
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.batch = 4});
    for (int i = 0; i < BACKLOG; i++) {
        emit(k->scope, outbox, keys[i % 3], i);
        test_advance_ms(k->t, 3);
        if (i % 50 == 49)
            turns(k, relay, 20);
    }
    emit_urgent(k->scope, outbox, "key3", URGENT);
    turns(k, relay, 10000);
    CHECK_INT(BACKLOG + 1, ear->len);
    for (size_t i = 0; i < ear->len; i++) {
        int number = ear->heard[i].number;

        if (number == URGENT)
            continue;
        CHECK(number > last[number % 3]);
        last[number % 3] = number;
    }
    close_all(outbox, relay, ear);
}

TEST(outbox_urgent, a_clock_before_2020_keeps_the_order)
{
    kit_run(t, "memory:", by_a_clock_of_1971);
}

KIT_TEST(outbox_urgent, what_is_urgent_is_not_for_later)
{
    struct hf_outbox *outbox = open_outbox(k);
    struct hf_event event = {.type = HF_STR("test"), .urgent = true, .due_us = k->t->wall_us};

    CHECK_INT(HF_INVALID, hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    event.due_us = 0;
    CHECK_OK(hf_outbox_emit(k->scope, outbox, &event, 1, NULL));
    hf_outbox_close(outbox);
}
