/*
 * relay/relay_stuck_test.c: deliveries that do not return, with threads, by the system's clock.
 * (n) is an invariant of relay_stuck.c.
 */
#include <holdfast/bus.h>
#include <holdfast/engine.h>
#include <holdfast/relay.h>

#include <stdatomic.h>
#include <time.h>

#include "relay_kit.h"

enum { LONG_MS = 60000, STUCK_MS = 60, LEASE_MS = 10 * LONG_MS, BUCKETS = 2, LUCK = 8 };

static atomic_int lines; /* of the log that name the event */

static void log_line(enum hf_log_level level, struct hf_str line, void *user)
{
    (void)user;
    if (level == HF_LOG_WARNING && strstr(line.ptr, "has not returned for"))
        atomic_fetch_add(&lines, 1);
}

static void nap_ms(int64_t ms)
{
    const struct timespec for_ms = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&for_ms, NULL);
}

/* A sink that does not return for event 1, until it is let go. */
struct trap {
    struct hf_sink *sink;
    atomic_bool open;
    atomic_int entered, told, handled[10];
    atomic_llong for_ms;
};

static enum hf_status trap_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                size_t len)
{
    struct trap *trap = self;
    int number = event_number(&deliveries[0].event->event);

    (void)s;
    CHECK_INT(1, len);
    if (number == 1)
        atomic_fetch_add(&trap->entered, 1);
    while (number == 1 && !atomic_load(&trap->open))
        nap_ms(1);
    atomic_fetch_add(&trap->handled[number], 1);
    deliveries[0].status = HF_OK;
    return HF_OK;
}

static void told(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    struct trap *trap = user;

    CHECK_INT(1, event_number(&event->event));
    atomic_store(&trap->for_ms, (long long)for_ms);
    atomic_fetch_add(&trap->told, 1);
}

struct stage {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_outbox *outbox;
    struct trap trap; /* of the first relay */
    struct trap free; /* of another, which lets everything pass */
    struct hf_relay *relay, *other;
};

static const struct hf_sink_ops trap_ops = {.size = sizeof(trap_ops),
                                            .name = "trap",
                                            .batch_max = 1,
                                            .send = trap_send};

static struct hf_relay *relay_to(struct stage *st, struct trap *trap,
                                 struct hf_relay_options options)
{
    struct hf_relay *relay;

    options.size = sizeof(options);
    options.lease_ms = LEASE_MS;
    options.heartbeat_ms = 40;
    options.poll_ms = 20;
    options.stuck_ms = STUCK_MS;
    options.on_stuck = told;
    options.user = trap;
    CHECK_OK(hf_relay_open(st->s, st->outbox, trap->sink, &options, &relay));
    CHECK_OK(hf_relay_start(st->s, relay));
    return relay;
}

static void stage_open(struct stage *st, struct hf_relay_options options)
{
    const struct hf_env env = {.log = log_line};

    memset(st, 0, sizeof(*st));
    atomic_store(&lines, 0);
    st->s = hf_scope_new(&env);
    CHECK_OK(hf_open(st->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &st->db));
    CHECK_OK(hf_outbox_open(st->s, st->db,
                            HF_OPTIONS(hf_outbox_options, .buckets = BUCKETS, .history_s = 3600),
                            &st->outbox));
    CHECK_OK(hf_sink_new(st->s, &trap_ops, &st->trap, &st->trap.sink));
    CHECK_OK(hf_sink_new(st->s, &trap_ops, &st->free, &st->free.sink));
    atomic_store(&st->free.open, true);
    emit(st->s, st->outbox, "a", 1);
    emit(st->s, st->outbox, "a", 2);
    emit(st->s, st->outbox, "b", 3);
    st->relay = relay_to(st, &st->trap, options);
}

static void stage_close(struct stage *st)
{
    atomic_store(&st->trap.open, true);
    hf_relay_close(st->relay);
    hf_relay_close(st->other);
    hf_sink_close(st->trap.sink);
    hf_sink_close(st->free.sink);
    hf_outbox_close(st->outbox);
    hf_db_close(st->db);
    hf_scope_free(st->s);
}

static struct hf_relay_metrics metrics_of(struct hf_relay *relay)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(relay, &metrics);
    return metrics;
}

#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        for (int waited_ = 0; !(condition); waited_++) {                                           \
            CHECK(waited_ < LONG_MS);                                                              \
            nap_ms(1);                                                                             \
        }                                                                                          \
    } while (0)

static size_t failed_len(struct stage *st, struct hf_str *text)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_failed(st->s, st->outbox, NULL, &list));
    if (list.events_len && text)
        *text = list.events[0].error_text;
    return list.events_len;
}

static size_t history_len(struct stage *st)
{
    struct hf_event_list list;

    CHECK_OK(hf_outbox_history(st->s, st->outbox, NULL, &list));
    return list.events_len;
}

static void is_told_and_left(struct test *t, bool competing)
{
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.competing = competing});
    WAIT_FOR(atomic_load(&st.trap.told) == 1);
    CHECK(atomic_load(&st.trap.for_ms) >= STUCK_MS);
    CHECK_INT(1, metrics_of(st.relay).stuck);
    WAIT_FOR(atomic_load(&st.trap.handled[3]) == 1); /* others go on */
    nap_ms(3 * STUCK_MS);
    CHECK_INT(1, atomic_load(&st.trap.told)); /* once */
    CHECK_INT(1, atomic_load(&lines));
    CHECK_INT(0, failed_len(&st, NULL));
    atomic_store(&st.trap.open, true);
    WAIT_FOR(metrics_of(st.relay).delivered == 3);
    CHECK_INT(0, metrics_of(st.relay).stuck);
    CHECK_INT(1, metrics_of(st.relay).stuck_total);
    CHECK_INT(1, atomic_load(&st.trap.handled[1]));
    stage_close(&st);
}

TEST(relay_stuck, what_does_not_return_is_told_once)
{
    is_told_and_left(t, false);
}

TEST(relay_stuck, what_does_not_return_is_told_by_competing_ones)
{
    is_told_and_left(t, true);
}

/* One that hangs is not waited for when there is more to claim. */
TEST(relay_stuck, what_comes_while_one_hangs_is_handled)
{
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.competing = true, .workers = 2});
    WAIT_FOR(atomic_load(&st.trap.entered) == 1 && atomic_load(&st.trap.handled[3]) == 1);
    nap_ms(STUCK_MS / 3); /* the other worker has seen that there is no more */
    emit(st.s, st.outbox, "d", 4);
    WAIT_FOR(atomic_load(&st.trap.handled[4]) == 1);
    CHECK_INT(0, atomic_load(&st.trap.handled[1]));
    stage_close(&st);
}

/* The other relay takes over long before the lease ends. */
static void is_released(struct test *t, bool competing)
{
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.stuck = HF_STUCK_RELEASE, .competing = competing});
    WAIT_FOR(atomic_load(&st.trap.entered) == 1);
    st.other = relay_to(&st, &st.free, (struct hf_relay_options){.competing = competing});
    WAIT_FOR(atomic_load(&st.free.handled[1]) == 1);
    WAIT_FOR(metrics_of(st.other).delivered + metrics_of(st.relay).delivered == 3);
    CHECK_INT(1, metrics_of(st.relay).stuck);
    CHECK_INT(0, metrics_of(st.relay).buckets);
    CHECK_INT(1, atomic_load(&st.trap.entered));
    CHECK_INT(3, history_len(&st));

    atomic_store(&st.trap.open, true); /* (2) */
    WAIT_FOR(metrics_of(st.relay).unsure == 1);
    CHECK_INT(3, metrics_of(st.other).delivered + metrics_of(st.relay).delivered);
    CHECK_INT(3, history_len(&st));
    if (!competing) /* it is back */
        WAIT_FOR(metrics_of(st.relay).buckets > 0);
    emit(st.s, st.outbox, "c", 4);
    WAIT_FOR(metrics_of(st.other).delivered + metrics_of(st.relay).delivered == 4);
    stage_close(&st);
}

TEST(relay_stuck, another_takes_over_when_the_lease_is_given_up)
{
    is_released(t, false);
}

TEST(relay_stuck, another_takes_over_when_claims_are_given_back)
{
    is_released(t, true);
}

static void check_given_up(struct test *t, bool competing)
{
    struct hf_str text;
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.stuck = HF_STUCK_GIVE_UP,
                                              .workers = 2,
                                              .competing = competing});
    WAIT_FOR(failed_len(&st, &text) == 1);
    CHECK(strstr(text.ptr, "had not returned after") != NULL);
    WAIT_FOR(metrics_of(st.relay).delivered == 2); /* the one behind it, too */
    CHECK_INT(1, metrics_of(st.relay).given_up);
    atomic_store(&st.trap.open, true); /* (2) */
    WAIT_FOR(metrics_of(st.relay).stuck == 0 && metrics_of(st.relay).running == 0);
    WAIT_FOR(metrics_of(st.relay).unsure == 1);
    CHECK_INT(1, failed_len(&st, NULL));
    CHECK_INT(2, history_len(&st));
    CHECK_INT(2, metrics_of(st.relay).delivered);
    stage_close(&st);
}

TEST(relay_stuck, what_does_not_return_becomes_a_dead_letter)
{
    check_given_up(t, false);
}

TEST(relay_stuck, what_does_not_return_becomes_a_dead_letter_by_competing_ones)
{
    check_given_up(t, true);
}

/* All workers hang: who has none left leaves, as if it were to. */
TEST(relay_stuck, a_relay_without_workers_leaves)
{
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.stuck = HF_STUCK_GIVE_UP, .workers = 1});
    WAIT_FOR(failed_len(&st, NULL) == 1);
    st.other = relay_to(&st, &st.free, (struct hf_relay_options){.workers = 1});
    WAIT_FOR(metrics_of(st.other).delivered == 2);
    CHECK_INT(0, metrics_of(st.relay).buckets);
    stage_close(&st);
}

TEST(relay_stuck, options_that_cannot_be)
{
    struct hf_relay *relay;
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.workers = 1});
    CHECK_STATUS(HF_INVALID,
                 hf_relay_open(st.s, st.outbox, st.trap.sink,
                               HF_OPTIONS(hf_relay_options, .stuck = HF_STUCK_GIVE_UP + 1),
                               &relay));
    stage_close(&st);
}

/* Stopping ends in time although the sink does not, and another relay goes on at once. */
static void is_left_behind(struct test *t, bool competing)
{
    struct stage st;

    (void)t;
    stage_open(&st, (struct hf_relay_options){.competing = competing, .workers = 2});
    WAIT_FOR(atomic_load(&st.trap.entered) == 1);
    for (int i = 0; i < 2; i++) {
        hf_scope_timeout_ms(st.s, 10);
        CHECK_STATUS(HF_TIMEOUT, hf_relay_stop(st.s, st.relay));
        CHECK(strstr(hf_scope_error_text(st.s), "has not returned"));
    }
    hf_scope_timeout_ms(st.s, 0);
    CHECK_STATUS(HF_IN_USE, hf_relay_start(st.s, st.relay));
    if (!competing) { /* of those that compete the claim ends with its lease */
        st.other = relay_to(&st, &st.free, (struct hf_relay_options){.competing = false});
        WAIT_FOR(metrics_of(st.other).delivered + metrics_of(st.relay).delivered == 3);
        CHECK_INT(1, atomic_load(&st.free.handled[1]));
    }
    CHECK_INT(0, atomic_load(&st.trap.handled[1]));
    atomic_store(&st.trap.open, true);
    CHECK_OK(hf_relay_stop(st.s, st.relay));
    CHECK_INT(1, atomic_load(&st.trap.handled[1]));
    CHECK_INT(!competing, metrics_of(st.relay).unsure);
    CHECK_OK(hf_relay_start(st.s, st.relay)); /* and it can begin again */
    WAIT_FOR(history_len(&st) == 3);
    stage_close(&st);
}

TEST(relay_stuck, a_stop_leaves_behind_what_does_not_return)
{
    is_left_behind(t, false);
}

TEST(relay_stuck, so_does_a_stop_of_competing_ones)
{
    is_left_behind(t, true);
}

/* What is told may ask, pause and resume, and is refused what would wait for itself. */
static void call_back(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    struct stage *st = user;
    struct hf_scope *own = hf_scope_new(NULL);

    (void)event;
    (void)for_ms;
    CHECK_INT(1, metrics_of(st->relay).stuck);
    hf_relay_pause(st->relay);
    hf_relay_resume(st->relay);
    hf_scope_timeout_ms(own, 10);
    CHECK_STATUS(HF_INVALID, hf_relay_stop(own, st->relay));
    CHECK(strstr(hf_scope_error_text(own), "would wait for itself"));
    CHECK_STATUS(HF_IN_USE, hf_relay_start(own, st->relay));
    hf_scope_free(own);
    atomic_fetch_add(&st->trap.told, 1);
}

static enum hf_status stop_from_within(struct hf_scope *s, void *self,
                                       struct hf_delivery *deliveries, size_t len)
{
    struct stage *st = self;
    enum hf_status status = trap_send(s, &st->trap, deliveries, len);

    CHECK_STATUS(HF_INVALID, hf_relay_stop(s, st->relay));
    return status;
}

static void calls_back(struct test *t, bool competing)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "within",
                                    .batch_max = 1,
                                    .send = stop_from_within};
    struct hf_relay_options options = {.size = sizeof(options),
                                       .workers = 2,
                                       .poll_ms = 20,
                                       .stuck_ms = STUCK_MS,
                                       .on_stuck = call_back,
                                       .competing = competing};
    struct stage st = {.s = hf_scope_new(NULL)};

    (void)t;
    options.user = &st;
    CHECK_OK(hf_open(st.s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &st.db));
    CHECK_OK(hf_outbox_open(st.s, st.db, NULL, &st.outbox));
    CHECK_OK(hf_sink_new(st.s, &ops, &st, &st.trap.sink));
    CHECK_OK(hf_relay_open(st.s, st.outbox, st.trap.sink, &options, &st.relay));
    CHECK_OK(hf_relay_start(st.s, st.relay));
    emit(st.s, st.outbox, "a", 1);
    emit(st.s, st.outbox, "b", 2);
    WAIT_FOR(atomic_load(&st.trap.told) == 1);
    atomic_store(&st.trap.open, true);
    WAIT_FOR(metrics_of(st.relay).delivered == 2);
    CHECK_OK(hf_relay_stop(st.s, st.relay));
    hf_relay_close(st.relay);
    hf_sink_close(st.trap.sink);
    hf_outbox_close(st.outbox);
    hf_db_close(st.db);
    hf_scope_free(st.s);
}

TEST(relay_stuck, who_is_told_may_call_the_relay)
{
    calls_back(t, false);
}

TEST(relay_stuck, who_is_told_may_call_a_competing_one)
{
    calls_back(t, true);
}

/* ---- alone ---------------------------------------------------------------------------------- */

/* A sink in which the suspects wait for their gates. */
struct gates {
    struct hf_sink *sink;
    atomic_int entered, handled; /* of those */
    atomic_bool open[2];         /* for the one that comes first, and for the second */
    atomic_bool told_second;
    atomic_int third; /* 1: it came when it might; 2: it came beside the second */
};

static enum hf_status gates_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                 size_t len)
{
    struct gates *gates = self;

    (void)s;
    CHECK_INT(1, len);
    deliveries[0].status = HF_OK;
    if (event_number(&deliveries[0].event->event) == 3) {
        bool early = atomic_load(&gates->entered) == 2 && atomic_load(&gates->handled) < 2 &&
                     !atomic_load(&gates->told_second);

        atomic_store(&gates->third, early ? 2 : 1);
    } else {
        int which = atomic_fetch_add(&gates->entered, 1);

        CHECK(which < 2);
        while (!atomic_load(&gates->open[which]))
            nap_ms(1);
        atomic_fetch_add(&gates->handled, 1);
    }
    return HF_OK;
}

static void gates_told(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    struct gates *gates = user;

    (void)event;
    (void)for_ms;
    if (atomic_load(&gates->entered) == 2)
        atomic_store(&gates->told_second, true);
}

/* All that waits has ended one process less than it may. */
static void make_suspects(struct stage *st)
{
    struct hf_scan scan = {.table = HF_STR("outbox"), .consistent = HF_YES};
    struct hf_scan_result all;

    CHECK_OK(hf_scan(st->s, st->db, &scan, &all));
    for (size_t i = 0; i < all.items_len; i++) {
        struct hf_value pk = hf_item_get(all.items[i], HF_STR("pk"));
        const struct hf_attr counts[] = {HF_N("attempts", 1), HF_N("crashes", 1)};
        struct hf_put_item put = {.table = HF_STR("outbox"),
                                  .item = hf_item_with(st->s, all.items[i], counts, 2)};

        if (hf_value_str(pk).ptr[0] == 'p')
            CHECK_OK(hf_put_item(st->s, st->db, &put, NULL));
    }
}

/* One that is alone hangs, so another one is; when the first returns, the second is still alone. False:
 * the third came before the second, so nothing was shown. One that competes claims it early, and
 * then it is a matter of luck. */
static bool stays_alone(bool competing)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "gates",
                                    .batch_max = 1,
                                    .send = gates_send};
    struct hf_relay_options options = {.size = sizeof(options),
                                       .workers = 4,
                                       .batch = 4,
                                       .poll_ms = 20,
                                       .max_crashes = 2,
                                       .stuck_ms = competing ? 150 : 400,
                                       .on_stuck = gates_told,
                                       .competing = competing};
    struct gates gates = {.sink = NULL};
    struct stage st = {.s = hf_scope_new(NULL)};
    bool shown;

    options.user = &gates;
    CHECK_OK(hf_open(st.s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &st.db));
    CHECK_OK(
        hf_outbox_open(st.s, st.db, HF_OPTIONS(hf_outbox_options, .buckets = BUCKETS), &st.outbox));
    CHECK_OK(hf_sink_new(st.s, &ops, &gates, &gates.sink));
    emit(st.s, st.outbox, "a", 1);
    emit(st.s, st.outbox, "b", 2);
    make_suspects(&st);
    if (competing)
        emit(st.s, st.outbox, "c", 3);
    CHECK_OK(hf_relay_open(st.s, st.outbox, gates.sink, &options, &st.relay));
    CHECK_OK(hf_relay_start(st.s, st.relay));
    WAIT_FOR(atomic_load(&gates.entered) == 2);
    shown = atomic_load(&gates.third) == 0;
    if (!competing)
        emit(st.s, st.outbox, "c", 3);
    atomic_store(&gates.open[0], true);
    WAIT_FOR(atomic_load(&gates.third) != 0);
    CHECK_INT(1, atomic_load(&gates.third));
    atomic_store(&gates.open[1], true);
    WAIT_FOR(metrics_of(st.relay).delivered == 3);
    hf_relay_close(st.relay);
    hf_sink_close(gates.sink);
    hf_outbox_close(st.outbox);
    hf_db_close(st.db);
    hf_scope_free(st.s);
    return shown;
}

TEST(relay_stuck, a_late_return_leaves_another_alone)
{
    (void)t;
    CHECK(stays_alone(false));
}

TEST(relay_stuck, a_late_return_leaves_another_alone_of_competing_ones)
{
    (void)t;
    for (int round = 0; round < LUCK && !stays_alone(true); round++)
        ;
}

/* ---- the bus -------------------------------------------------------------------------------- */

static enum hf_status handle(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct trap *trap = user;
    int number = event_number(event);

    (void)s;
    while (number == 1 && !atomic_load(&trap->open))
        nap_ms(1);
    atomic_fetch_add(&trap->handled[number], 1);
    return HF_OK;
}

TEST(relay_stuck, a_handler_of_the_bus_is_reported_and_its_event_a_dead_letter)
{
    struct hf_relay_options options = {.size = sizeof(options),
                                       .poll_ms = 20,
                                       .heartbeat_ms = 40,
                                       .stuck_ms = STUCK_MS,
                                       .stuck = HF_STUCK_GIVE_UP,
                                       .on_stuck = told};
    struct trap trap = {.sink = NULL};
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    struct stage st = {.s = hf_scope_new(NULL)};

    (void)t;
    options.user = &trap;
    CHECK_OK(hf_open(st.s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &st.db));
    CHECK_OK(hf_outbox_open(st.s, st.db, NULL, &outbox));
    CHECK_OK(hf_bus_open(st.s, outbox, HF_OPTIONS(hf_bus_options, .relay = &options), &bus));
    CHECK_OK(hf_bus_on(st.s, bus, HF_STR("test"), handle, &trap));
    emit(st.s, outbox, "a", 1);
    emit(st.s, outbox, "a", 2);
    CHECK_OK(hf_bus_start(st.s, bus));
    WAIT_FOR(atomic_load(&trap.told) == 1);
    WAIT_FOR(atomic_load(&trap.handled[2]) == 1);
    atomic_store(&trap.open, true);
    hf_bus_close(bus);
    hf_outbox_close(outbox);
    hf_db_close(st.db);
    hf_scope_free(st.s);
}
