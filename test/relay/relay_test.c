/*
 * relay/relay_test.c: relays without threads, on the virtual clock, on every database.
 */
#include <holdfast/relay.h>

#include <holdfast/db.h>
#include <holdfast/engine.h>

#include "kit.h"
#include "relay_stage.h"

/* ---- delivering ----------------------------------------------------------------------------- */

KIT_TEST(relay, delivers_all_once_and_keys_in_order)
{
    struct hf_outbox *outbox = open_outbox(k, 4);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
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
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.max_attempts = 3});

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
    run_for(k, &relay, 1, 450); /* half a second at least */
    CHECK_INT(1, ear_count(ear, 1));
    run_for(k, &relay, 1, 600);
    CHECK_INT(2, ear_count(ear, 1));
    CHECK_INT(1, ear->heard[ear->len - 1].attempts);
    run_for(k, &relay, 1, 400); /* a second at least */
    CHECK_INT(2, ear_count(ear, 1));
    run_for(k, &relay, 1, 1650);
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

KIT_TEST(relay, scheduled_events_are_in_time)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    int64_t start_ms = k->t->elapsed_us / 1000;

    emit_later(k->scope, outbox, "a", 1, 2345);
    emit_later(k->scope, outbox, "b", 2, 700);
    emit(k->scope, outbox, "a", 3);
    emit_later(k->scope, outbox, "a", 4, 100000);
    run_for(k, &relay, 1, 5000);
    CHECK_INT(3, ear->len);
    CHECK_INT(3, ear->heard[0].number);
    CHECK_INT(2, ear->heard[1].number);
    CHECK_INT(1, ear->heard[2].number);
    CHECK(ear->heard[1].at_ms - start_ms >= 700 && ear->heard[1].at_ms - start_ms < 720);
    CHECK(ear->heard[2].at_ms - start_ms >= 2345 && ear->heard[2].at_ms - start_ms < 2365);
    CHECK_INT(1, items_of(k, "p", 2));
    close_all(outbox, relay, ear);
}

/* ---- how fast, and whether ------------------------------------------------------------------ */

KIT_TEST(relay, the_rate_is_kept)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 10, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.rate = 20});

    for (int i = 0; i < 100; i++)
        emit(k->scope, outbox, "", i);
    run_for(k, &relay, 1, 3000);
    CHECK(ear->len >= 55 && ear->len <= 63);
    run_for(k, &relay, 1, 3000);
    CHECK_INT(100, ear->len);
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, paused_it_delivers_nothing_and_keeps_its_buckets)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});

    run_for(k, &relay, 1, 200);
    hf_relay_pause(relay);
    emit(k->scope, outbox, "a", 1);
    run_for(k, &relay, 1, 30000);
    CHECK_INT(0, ear->len);
    CHECK(metrics_of(relay).paused);
    CHECK_INT(2, metrics_of(relay).buckets);
    CHECK_INT(1, metrics_of(relay).waiting);
    CHECK(metrics_of(relay).lag_ms >= 29000);
    hf_relay_resume(relay);
    run_for(k, &relay, 1, 10);
    CHECK_INT(1, ear->len);
    CHECK_INT(0, metrics_of(relay).lag_ms);
    close_all(outbox, relay, ear);
}

/* relay_pause.c (1): two handles, as of two processes: the one that pauses has no relay. */
KIT_TEST(relay, all_of_an_outbox_pause_and_go_on)
{
    struct hf_outbox *outbox = open_outbox(k, 2), *other = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    struct hf_outbox_pause pause;

    run_for(k, &relay, 1, 200);
    CHECK_OK(hf_outbox_paused(k->scope, other, &pause));
    CHECK(!pause.paused);
    CHECK_OK(hf_outbox_pause(k->scope, other, HF_STR("the shop is down")));
    CHECK_OK(hf_outbox_pause(k->scope, other, HF_STR("again"))); /* changes nothing */
    run_for(k, &relay, 1, 6000);
    emit(k->scope, outbox, "a", 1);
    run_for(k, &relay, 1, 30000);
    CHECK_INT(0, ear->len);
    CHECK(metrics_of(relay).paused);
    CHECK_INT(2, metrics_of(relay).buckets);
    CHECK_OK(hf_outbox_paused(k->scope, outbox, &pause));
    CHECK(pause.paused && pause.since_us > 0);
    CHECK_STR("the shop is down", pause.why);
    CHECK_OK(hf_outbox_resume(k->scope, other));
    CHECK_OK(hf_outbox_resume(k->scope, other));
    run_for(k, &relay, 1, 6000);
    CHECK_INT(1, ear->len);
    CHECK(!metrics_of(relay).paused);
    hf_outbox_close(other);
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, competing_ones_pause_and_go_on)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay;

    CHECK_OK(hf_outbox_pause(k->scope, outbox, HF_STR("")));
    relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.competing = true});
    emit(k->scope, outbox, "a", 1);
    run_for(k, &relay, 1, 30000);
    CHECK_INT(0, ear->len);
    CHECK_OK(hf_outbox_resume(k->scope, outbox));
    run_for(k, &relay, 1, 6000);
    CHECK_INT(1, ear->len);
    CHECK_OK(hf_outbox_pause(k->scope, outbox, HF_STR("")));
    run_for(k, &relay, 1, 6000);
    emit(k->scope, outbox, "a", 2);
    run_for(k, &relay, 1, 6000);
    CHECK_INT(1, ear->len);
    close_all(outbox, relay, ear);
}

static void count_error(const struct hf_error *error, void *user)
{
    CHECK(error->status != HF_OK && error->message.len);
    ++*(int *)user;
}

/* A competing relay that cannot see whether it is to pause says so, to on_error and in a drain. */
KIT_TEST(relay, a_competing_one_that_cannot_read_the_mark_says_so)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    int errors = 0;
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear,
                                            (struct hf_relay_options){.competing = true,
                                                                      .stall_ms = 1000,
                                                                      .on_error = count_error,
                                                                      .user = &errors});

    emit(k->scope, outbox, "a", 1);
    kit_fault(k, HF_FAULT_ERROR, "GetItem", 0);
    run_for(k, &relay, 1, 1500);
    CHECK_INT(0, ear->len);
    CHECK(errors > 0);
    CHECK_STATUS(HF_TIMEOUT, hf_relay_drain(k->scope, relay, NULL));
    CHECK(strstr(hf_scope_error_text(k->scope), "all relays of this outbox are to pause") != NULL);
    kit_no_faults(k);
    run_for(k, &relay, 1, 6000);
    CHECK_INT(1, ear->len);
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, a_relay_that_starts_paused_delivers_nothing)
{
    char long_text[HF_EVENT_TEXT_MAX + 1] = {0};
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});

    memset(long_text, 'x', sizeof(long_text));
    CHECK_STATUS(HF_INVALID,
                 hf_outbox_pause(k->scope, outbox, hf_str_of(long_text, sizeof(long_text))));
    CHECK_OK(hf_outbox_pause(k->scope, outbox, (struct hf_str){0}));
    emit(k->scope, outbox, "a", 1);
    run_for(k, &relay, 1, 10000);
    CHECK_INT(0, ear->len);
    hf_scope_timeout_ms(k->scope, 100);
    CHECK_OK(hf_outbox_resume(k->scope, outbox));
    hf_scope_timeout_ms(k->scope, 0);
    run_for(k, &relay, 1, 6000);
    CHECK_INT(1, ear->len);
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, only_one_type_is_delivered)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear,
                       (struct hf_relay_options){.only_type = HF_STR("order.*")});

    for (int i = 0; i < 120; i++)
        emit_event(k, outbox,
                   (struct hf_event){.type = i % 40 ? HF_STR("mail.sent") : HF_STR("order.placed"),
                                     .key = HF_STR("a")},
                   i);
    emit_event(k, outbox, (struct hf_event){.type = HF_STR("order")}, 500);
    CHECK_INT(3, drain(k, relay));
    CHECK_INT(3, ear->len);
    CHECK_INT(80, ear->heard[2].number);
    CHECK_INT(118, items_of(k, "p", 1));
    close_all(outbox, relay, ear);
}

KIT_TEST(relay, a_dry_run_changes_nothing)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.dry_run = true});

    for (int i = 0; i < 130; i++)
        emit(k->scope, outbox, (const char *[]){"a", "b", ""}[i % 3], i);
    ear->fails = 3;
    CHECK_INT(129, drain(k, relay));
    run_for(k, &relay, 1, 5000);
    CHECK_INT(130, ear->len);
    emit(k->scope, outbox, "a", 130);
    run_for(k, &relay, 1, 5000);
    CHECK_INT(131, ear->len);
    for (int i = 0; i < 131; i++)
        CHECK_INT(1, ear_count(ear, i));
    CHECK_INT(131, items_of(k, "p", 2));
    CHECK_INT(0, items_of(k, "f", 2));
    CHECK_INT(0, metrics_of(relay).writes);
    close_all(outbox, relay, ear);
}

/* ---- several relays ------------------------------------------------------------------------- */

KIT_TEST(relay, all_get_their_share_and_hand_it_over)
{
    struct hf_outbox *outbox = open_outbox(k, 16);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relays[3];
    uint64_t refused = 0;

    for (int i = 0; i < 3; i++) {
        relays[i] = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
        run_for(k, relays, (size_t)i + 1, 30000);
    }
    for (int i = 0; i < 3; i++)
        CHECK(metrics_of(relays[i]).buckets == 5 || metrics_of(relays[i]).buckets == 6);
    CHECK_INT(16, metrics_of(relays[0]).buckets + metrics_of(relays[1]).buckets +
                      metrics_of(relays[2]).buckets);
    hf_scope_reset(k->scope);
    CHECK_OK(hf_relay_stop(k->scope, relays[2]));
    CHECK_INT(0, metrics_of(relays[2]).buckets);
    run_for(k, relays, 2, 6000); /* within a heartbeat, not a lease */
    CHECK_INT(8, metrics_of(relays[0]).buckets);
    CHECK_INT(8, metrics_of(relays[1]).buckets);
    for (int i = 0; i < 100; i++)
        emit(k->scope, outbox, "", i);
    run_for(k, relays, 2, 2000);
    CHECK_INT(100, ear->len);
    for (int i = 0; i < 3; i++) {
        refused += metrics_of(relays[i]).refused + metrics_of(relays[i]).taken_over;
        hf_relay_close(relays[i]);
    }
    CHECK_INT(0, refused);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* Relays that start at the same moment know of each other before they take anything. */
KIT_TEST(relay, those_who_start_together_take_nothing_twice)
{
    struct hf_outbox *outbox = open_outbox(k, 16);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relays[4];

    for (int i = 0; i < 4; i++)
        relays[i] = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    run_for(k, relays, 4, 300);
    for (int i = 0; i < 4; i++) {
        CHECK_INT(4, metrics_of(relays[i]).buckets);
        CHECK_INT(0, metrics_of(relays[i]).refused);
    }
    for (int i = 0; i < 4; i++)
        hf_relay_close(relays[i]);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* In the middle of a delivery this relay sleeps, and another does its work. */
struct sleeper {
    struct kit *k;
    struct hf_relay *other;
    bool slept;
};

static void fall_asleep(void *user)
{
    struct sleeper *sleeper = user;

    if (sleeper->slept)
        return;
    sleeper->slept = true;
    run_for(sleeper->k, &sleeper->other, 1, 60000);
}

KIT_TEST(relay, a_silent_relay_is_replaced_and_notes_nothing)
{
    struct hf_outbox *outbox = open_outbox(k, 2), *others = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false), *other_ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    struct hf_relay *other =
        relay_by_turns(k->scope, others, other_ear, (struct hf_relay_options){0});
    struct sleeper sleeper = {.k = k, .other = other};

    run_for(k, &relay, 1, 200);
    CHECK_INT(2, metrics_of(relay).buckets);
    emit(k->scope, outbox, "a", 1);
    emit(k->scope, outbox, "a", 2);
    ear->fails = 1; /* its failure is not to be noted, nor its success */
    ear->during = fall_asleep;
    ear->user = &sleeper;
    run_for(k, &relay, 1, 50);
    CHECK(sleeper.slept);
    CHECK_INT(2, other_ear->len);
    CHECK_INT(2, metrics_of(other).taken_over);
    CHECK_INT(2, metrics_of(other).delivered);
    CHECK_INT(1, ear->len); /* and nothing more was begun */
    CHECK_INT(0, metrics_of(relay).retried);
    CHECK_INT(0, metrics_of(relay).delivered);
    CHECK_INT(0, items_of(k, "p", 2) + items_of(k, "f", 2));
    ear->during = NULL;
    ear->fails = -1;
    {
        struct hf_relay *both[] = {relay, other};

        run_for(k, both, 2, 30000); /* it is back as a new one, and gets its share */
    }
    CHECK_INT(1, metrics_of(relay).buckets);
    CHECK_INT(1, metrics_of(other).buckets);
    hf_relay_close(other);
    hf_relay_close(relay);
    ear_close(ear);
    ear_close(other_ear);
    hf_outbox_close(others);
    hf_outbox_close(outbox);
}

/* ---- options -------------------------------------------------------------------------------- */

TEST(relay, options_are_checked)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_relay *relay;
    struct hf_outbox *outbox = (struct hf_outbox *)(void *)&relay;
    struct hf_sink *sink = (struct hf_sink *)(void *)&relay;

#define REFUSED(message, ...)                                                                      \
    CHECK_STATUS(HF_INVALID, hf_relay_open(s, outbox, sink,                                        \
                                           HF_OPTIONS(hf_relay_options, __VA_ARGS__), &relay));    \
    CHECK_ERROR(HF_INVALID, message, s);                                                           \
    CHECK(relay == NULL)
    REFUSED("a heartbeat of 11 ms is more than half of a lease of 20 ms", .lease_ms = 20,
            .heartbeat_ms = 11);
    REFUSED("invalid preset 4", .preset = 4);
    REFUSED("1001 workers are more than 1000", .workers = 1001);
    REFUSED("competing relays do not support dry_run", .competing = true, .dry_run = true);
    CHECK_STATUS(HF_INVALID, hf_relay_open(s, NULL, sink, NULL, &relay));
    CHECK_STATUS(HF_INVALID, hf_relay_open(s, outbox, NULL, NULL, &relay));
    hf_relay_close(NULL);
    hf_scope_free(s);
#undef REFUSED
}

KIT_TEST(relay, ordered_and_competing_do_not_mix)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0}),
                    *other;
    uint32_t wait_ms;

    run_for(k, &relay, 1, 200);
    CHECK_STATUS(HF_INVALID,
                 hf_relay_open(k->scope, outbox, ear->sink,
                               HF_OPTIONS(hf_relay_options, .competing = true), &other));
    CHECK_STATUS(HF_INVALID, hf_relay_start(k->scope, relay));
    CHECK_OK(hf_relay_step(k->scope, relay, &wait_ms));
    close_all(outbox, relay, ear);
}

/* ---- clocks --------------------------------------------------------------------------------- */

/* What is emitted when the clock was set back, by somebody who knows of no later time, has a place
 * before what was looked at already. */
KIT_TEST(relay, a_clock_that_is_set_back_loses_nothing)
{
    struct hf_outbox *outbox = open_outbox(k, 2);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay = relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){0});
    struct hf_outbox *other;
    int last = 0;

    for (int64_t back_ms = 100; back_ms <= 100000; back_ms *= 10) {
        for (int i = 0; i < 3; i++)
            emit(k->scope, outbox, "a", ++last);
        run_for(k, &relay, 1, 2000);
        CHECK_INT(last, ear->len);
        k->t->wall_us -= back_ms * 1000;
        other = open_outbox(k, 2);
        for (int i = 0; i < 3; i++)
            emit(k->scope, other, "a", ++last);
        run_for(k, &relay, 1, 2500);
        CHECK_INT(last, ear->len);
        hf_outbox_close(other);
        test_advance_ms(k->t, back_ms);
    }
    for (int i = 0; i < last; i++)
        CHECK_INT(i + 1, ear->heard[i].number);
    close_all(outbox, relay, ear);
}

/* ---- how often is read ---------------------------------------------------------------------- */

/* What is left behind of a backlog is not looked through again and again while it is worked off. */
KIT_TEST(relay, a_backlog_is_read_once)
{
    enum { EVENTS = 1500, BATCH = 50, POLLS = 15 };
    struct hf_outbox *outbox = open_outbox(k, 1), *other;
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay;
    int late = EVENTS;

    for (int i = 0; i < EVENTS; i++) {
        hf_scope_reset(k->scope);
        emit(k->scope, outbox, "", i);
    }
    test_advance_ms(k->t, 1000);
    relay = relay_by_turns(k->scope, outbox, ear,
                           (struct hf_relay_options){.rate = EVENTS * 10 / POLLS, .poll_ms = 100});
    while (ear->len < EVENTS)
        run_for(k, &relay, 1, 10);
    /* With one look for urgent ones in each poll, of which nothing is left behind. */
    CHECK(metrics_of(relay).reads <= EVENTS / BATCH + POLLS + POLLS / 2);
    /* What was late is found soon enough. */
    k->t->wall_us -= 20000000;
    other = open_outbox(k, 1); /* who does not know how late it is */
    emit(k->scope, other, "", late);
    k->t->wall_us += 20000000;
    run_for(k, &relay, 1, 500);
    CHECK_INT(1, ear_count(ear, late));
    hf_outbox_close(other);
    close_all(outbox, relay, ear);
}

/* A busy bucket is read now and then, for many events at a time; one that is not, at once. */
KIT_TEST(relay, a_busy_bucket_rests)
{
    enum { ROUNDS = 300, EACH = 5, LONGEST_MS = 30 };
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relay =
        relay_by_turns(k->scope, outbox, ear, (struct hf_relay_options){.poll_ms = 3600000});
    uint64_t reads;
    int last = 0;

    run_for(k, &relay, 1, 1000);
    reads = metrics_of(relay).reads;
    for (int i = 0; i < ROUNDS; i++) {
        for (int j = 0; j < EACH; j++)
            emit(k->scope, outbox, "", ++last);
        run_for(k, &relay, 1, 1);
    }
    reads = metrics_of(relay).reads - reads;
    CHECK(reads > 3 && reads < ROUNDS / 3);
    run_for(k, &relay, 1, LONGEST_MS);
    CHECK_INT(last, ear->len);
    run_for(k, &relay, 1, 1000);
    for (int i = 0; i < 10; i++) {
        emit(k->scope, outbox, "", ++last);
        run_for(k, &relay, 1, 0);
        CHECK_INT(last, ear->len);
        run_for(k, &relay, 1, 5);
    }
    close_all(outbox, relay, ear);
}

/* ---- the lag --------------------------------------------------------------------------------- */

struct lag {
    struct hf_relay *relay;
    struct hf_relay_metrics metrics;
};

static void measure(void *user)
{
    struct lag *lag = user;

    hf_relay_metrics(lag->relay, &lag->metrics);
}

/* Competing or not: what is at hand waits, what is under way or is tried again has a lag. */
KIT_TEST(relay, the_lag_is_known_to_competing_ones)
{
    struct hf_outbox *outbox = open_outbox(k, 1);
    struct ear *ear = ear_open(k->scope, 1, false);
    struct lag lag = {0};

    lag.relay = relay_by_turns(k->scope, outbox, ear,
                               (struct hf_relay_options){.competing = true,
                                                         .workers = 1,
                                                         .poll_ms = 100,
                                                         .breaker_ms = 100,
                                                         .backoff_ms = 2000});
    ear->during = measure;
    ear->user = &lag;
    for (int i = 1; i <= 3; i++)
        emit(k->scope, outbox, "", i);
    test_advance_ms(k->t, 5000);
    ear->fails = 3;
    ear->fail_times = 1;
    run_for(k, &lag.relay, 1, 1);
    CHECK_INT(3, ear->len);
    CHECK_INT(0, lag.metrics.waiting); /* when the third was under way */
    CHECK_INT(1, lag.metrics.running);
    CHECK(lag.metrics.lag_ms >= 5000);
    CHECK(metrics_of(lag.relay).lag_ms >= 5000); /* it waits to be tried again */
    run_for(k, &lag.relay, 1, 4000);
    CHECK_INT(4, ear->len);
    CHECK_INT(0, metrics_of(lag.relay).lag_ms);
    ear->down = true;
    emit(k->scope, outbox, "", 4);
    emit(k->scope, outbox, "", 5);
    run_for(k, &lag.relay, 1, 3000);
    CHECK(metrics_of(lag.relay).lag_ms >= 2900);
    ear->down = false;
    run_for(k, &lag.relay, 1, 40000);
    CHECK_INT(6, ear->len);
    CHECK_INT(0, metrics_of(lag.relay).lag_ms);
    CHECK_INT(0, metrics_of(lag.relay).waiting);
    hf_relay_close(lag.relay);
    ear_close(ear);
    hf_outbox_close(outbox);
}
