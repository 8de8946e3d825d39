/*
 * events/killer_test.c: functions that end their process, in real processes: one after the other,
 * until one ends well. Subscriptions of all kinds, and side effects of flows.
 */
#include <holdfast/events.h>
#include <holdfast/flow.h>
#include <holdfast/outbox.h>
#include <holdfast/subscribe.h>

#include "../relay/killer_kit.h"

enum { ATTEMPTS = 3, DEATHS_MAX = 12, WAIT_MS = 20000, EVENTS = 30, DEADLY = 20 };

#define NAME HF_STR("mailer")

/* ---- the child: subscriptions --------------------------------------------------------------- */

static void handle_one(const struct hf_stored_event *event)
{
    if (hf_str_equal(event->type, HF_STR("deadly")))
        _exit(KILLED);
}

static enum hf_status each(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    (void)s, (void)user;
    handle_one(event);
    return HF_OK;
}

static enum hf_status batch(struct hf_scope *s, const struct hf_stored_event *events, size_t len,
                            void *user)
{
    (void)s, (void)user;
    for (size_t i = 0; i < len; i++)
        handle_one(&events[i]);
    return HF_OK;
}

static enum hf_status project(struct hf_scope *s, struct hf_tx *tx,
                              const struct hf_stored_event *event, void *user)
{
    (void)s, (void)tx, (void)user;
    handle_one(event);
    return HF_OK;
}

static int subscriber_main(const char *mode, const char *url)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = killer_db(s, url);
    struct hf_subscribe_options options = {.size = sizeof(options),
                                           .lease_ms = KILLER_LEASE_MS,
                                           .poll_ms = 20,
                                           .settle_ms = 1,
                                           .max_attempts = ATTEMPTS,
                                           .give_up = HF_GIVE_UP_PARK};
    struct hf_subscription_metrics metrics = {.state = HF_SUBSCRIPTION_IDLE};
    struct hf_subscription *sub;
    struct hf_events *store;

    if (strcmp(mode, "batch") == 0)
        options.batch = batch;
    else if (strcmp(mode, "project") == 0)
        options.project = project;
    else
        options.each = each;
    if (strcmp(mode, "stop") == 0)
        options.give_up = HF_GIVE_UP_STOP;
    if (hf_events_open(s, db, NULL, &store) != HF_OK ||
        hf_subscribe(s, store, NAME, &options, &sub) != HF_OK ||
        hf_subscription_start(s, sub) != HF_OK) {
        fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
        return 2;
    }
    for (int i = 0; i < WAIT_MS / 5 && metrics.state != HF_SUBSCRIPTION_LIVE &&
                    metrics.state != HF_SUBSCRIPTION_GAVE_UP;
         i++) {
        killer_sleep_ms(5);
        hf_subscription_metrics(sub, &metrics);
    }
    killer_sleep_ms(50); /* it hands its lease over, if it gave up */
    hf_scope_timeout_ms(s, WAIT_MS);
    if (hf_subscription_stop(s, sub) != HF_OK)
        return 4;
    hf_subscription_close(sub);
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
    return metrics.state == (options.give_up == HF_GIVE_UP_STOP ? HF_SUBSCRIPTION_GAVE_UP
                                                                : HF_SUBSCRIPTION_LIVE)
               ? 0
               : 5;
}

/* ---- the child: a flow ---------------------------------------------------------------------- */

static enum hf_status effect(struct hf_scope *s, struct hf_flow_call *call,
                             const struct hf_stored_event *event, void *user)
{
    (void)s, (void)call, (void)user;
    handle_one(event);
    return HF_OK;
}

static int flows_main(const char *url)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db = killer_db(s, url);
    const struct hf_flow list[] = {
        {.domain = HF_STR("d"), .type = HF_STR("deadly"), .side_effect = effect},
        {.domain = HF_STR("d"), .type = HF_STR("healthy"), .side_effect = effect}};
    struct hf_relay_options relay = {.size = sizeof(relay),
                                     .lease_ms = KILLER_LEASE_MS,
                                     .poll_ms = 20,
                                     .max_crashes = ATTEMPTS};
    struct hf_outbox_stats stats = {.pending = 0};
    struct hf_events *store;
    struct hf_outbox *outbox;
    struct hf_flows *flows;

    if (hf_events_open(s, db, NULL, &store) != HF_OK ||
        hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .buckets = 2), &outbox) != HF_OK ||
        hf_flows_open(s, store, outbox, list, 2, NULL, 0,
                      HF_OPTIONS(hf_flows_options, .relay = &relay), &flows) != HF_OK) {
        fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
        return 2;
    }
    if (hf_outbox_stats(s, outbox, 0, &stats) != HF_OK)
        return 3;
    if (!stats.pending && !stats.failed) /* the first one */
        for (int i = 0; i < 3; i++) {
            struct hf_flow_event event = {.stream = {HF_STR("d"), HF_STR("7")},
                                          .event = {.type = i == 1 ? HF_STR("deadly")
                                                                   : HF_STR("healthy")}};

            if (hf_flows_submit(s, flows, &event, NULL, NULL) != HF_OK)
                return 4;
        }
    stats.pending = 1;
    for (int i = 0; i < WAIT_MS / 5 && stats.pending; i++) {
        hf_scope_reset(s);
        killer_sleep_ms(5);
        if (hf_outbox_stats(s, outbox, 0, &stats) != HF_OK)
            return 3;
    }
    hf_flows_close(flows);
    hf_outbox_close(outbox);
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
    return stats.pending || stats.failed != 1 ? 5 : 0;
}

CHILD(events)
{
    return strcmp(args[0], "flow") == 0 ? flows_main(args[1]) : subscriber_main(args[0], args[1]);
}

/* ---- the parent ----------------------------------------------------------------------------- */

struct stage {
    struct hf_scope *s;
    struct hf_str url;
    struct hf_db *db;
    struct hf_events *store;
};

static void stage_open(struct stage *st, struct test *t)
{
    st->s = hf_scope_new(NULL);
    st->url = hf_scope_format(st->s, "embedded:%s/db", test_quick_directory(t));
}

static void stage_enter(struct stage *st)
{
    st->db = killer_db(st->s, st->url.ptr);
    CHECK_OK(hf_events_open(st->s, st->db, NULL, &st->store));
}

static void stage_leave(struct stage *st)
{
    hf_events_close(st->store);
    hf_db_close(st->db);
}

static void append_all(struct stage *st)
{
    for (int i = 1; i <= EVENTS; i++) {
        struct hf_new_event event = {.type = i == DEADLY ? HF_STR("deadly") : HF_STR("healthy")};
        struct hf_append append = {.stream = {HF_STR("d"), HF_STR("7")},
                                   .events = &event,
                                   .events_len = 1};

        CHECK_OK(hf_events_append(st->s, st->store, &append, 1, NULL, NULL));
    }
}

static int deaths_of(struct stage *st, const char *mode)
{
    int deaths = 0;

    while (deaths < DEATHS_MAX && killer_run("events", mode, st->url))
        deaths++;
    return deaths;
}

static void one_is_deadly(struct test *t, const char *mode)
{
    struct hf_subscription_info info;
    struct hf_parked_list parked;
    struct stage st;
    int deaths;

    stage_open(&st, t);
    stage_enter(&st);
    append_all(&st);
    stage_leave(&st);
    CHECK_INT(ATTEMPTS + 1, deaths_of(&st, mode)); /* the first is not counted */

    stage_enter(&st);
    CHECK_OK(hf_subscription_info(st.s, st.store, NAME, &info));
    CHECK_INT(1, info.parked);
    CHECK_INT(EVENTS - 1, info.handled);
    CHECK_OK(hf_subscription_parked(st.s, st.store, NAME, (struct hf_str){0}, 0, &parked));
    CHECK_INT(DEADLY, parked.events[0].version);
    CHECK_INT(ATTEMPTS, parked.events[0].attempts);
    CHECK(strstr(parked.events[0].error_text.ptr, "process ended") != NULL);

    /* Handled again by hand it kills again, and is parked again. */
    CHECK_OK(hf_subscription_replay(st.s, st.store, NAME, NULL, 0, NULL));
    stage_leave(&st);
    deaths = deaths_of(&st, mode);
    CHECK(deaths >= ATTEMPTS && deaths <= ATTEMPTS + 1); /* it may be careful still */
    stage_enter(&st);
    CHECK_OK(hf_subscription_parked(st.s, st.store, NAME, (struct hf_str){0}, 0, &parked));
    CHECK_INT(1, parked.events_len);
    CHECK(!parked.events[0].replay);
    stage_leave(&st);
    hf_scope_free(st.s);
}

TEST(killer, a_subscription_parks_what_ends_its_process)
{
    one_is_deadly(t, "each");
}

TEST(killer, so_does_one_of_batches)
{
    one_is_deadly(t, "batch");
}

TEST(killer, so_does_a_projection)
{
    one_is_deadly(t, "project");
}

TEST(killer, a_subscription_stops_in_front_of_what_ends_its_process)
{
    struct hf_subscription_info info;
    struct stage st;

    stage_open(&st, t);
    stage_enter(&st);
    append_all(&st);
    stage_leave(&st);
    CHECK_INT(ATTEMPTS + 1, deaths_of(&st, "stop"));
    stage_enter(&st);
    CHECK_OK(hf_subscription_info(st.s, st.store, NAME, &info));
    CHECK_INT(0, info.parked);
    CHECK_INT(DEADLY - 1, info.handled);
    CHECK(info.failure.len && strstr(info.failure.ptr, "process ended") != NULL);
    stage_leave(&st);
    hf_scope_free(st.s);
}

TEST(killer, a_side_effect_that_ends_its_process_is_put_aside)
{
    struct hf_event_list failed;
    struct hf_outbox *outbox;
    struct stage st;

    stage_open(&st, t);
    CHECK_INT(ATTEMPTS + 1, deaths_of(&st, "flow"));
    stage_enter(&st);
    CHECK_OK(hf_outbox_open(st.s, st.db, NULL, &outbox));
    CHECK_OK(hf_outbox_failed(st.s, outbox, NULL, &failed));
    CHECK_INT(1, failed.events_len);
    CHECK_STR("flow.d.deadly", failed.events[0].event.type);
    CHECK_INT(ATTEMPTS, failed.events[0].crashes);
    hf_outbox_close(outbox);
    stage_leave(&st);
    hf_scope_free(st.s);
}
