/*
 * outbox/bus_threads_test.c: a bus with threads, by the system's clock; and one without memory.
 */
#include <holdfast/bus.h>
#include <holdfast/engine.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "test.h"

enum { TYPES = 6, EMITTERS = 2, EVENTS = 300, PATIENCE_MS = 60000 };

struct crowd {
    struct hf_db *db;
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    atomic_int handled[EMITTERS * EVENTS];
    atomic_int total, first, failed, waited, errors, layers;
    atomic_bool stop;
};

struct member {
    struct crowd *crowd;
    int number;
};

static enum hf_status count(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct crowd *crowd = user;
    int64_t number = -1;

    (void)hf_value_i64(hf_item_get(event->headers, HF_STR("n")), &number);
    if (number < 0 || number >= EMITTERS * EVENTS)
        return hf_scope_fail(s, HF_CORRUPT, "what is that");
    if (number % 37 == 0 && atomic_fetch_add(&crowd->failed, 1) % 2 == 0)
        return hf_scope_fail(s, HF_IO, "not now");
    if (atomic_fetch_add(&crowd->handled[number], 1) == 0)
        atomic_fetch_add(&crowd->first, 1);
    return HF_OK;
}

static enum hf_status pass(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    atomic_fetch_add(&((struct crowd *)user)->layers, 1);
    return hf_bus_next(s, call);
}

static struct hf_str type_of(char *text, size_t size, int number)
{
    snprintf(text, size, "family%d.t", number % TYPES);
    return hf_str_from(text);
}

static void *emit_all(void *user)
{
    struct member *m = user;
    struct hf_scope *s = hf_scope_new(NULL);
    bool well = true;

    for (int i = 0; well && i < EVENTS; i++) {
        char type[20], key[20];
        int number = m->number * EVENTS + i;
        struct hf_event event = {.type = type_of(type, sizeof(type), number),
                                 .headers = HF_ITEM(s, HF_N("n", number))};

        snprintf(key, sizeof(key), "k%d", number % 11);
        event.key = hf_str_from(key);
        well = hf_bus_emit(s, m->crowd->bus, &event, 1) == HF_OK;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return well ? m : NULL;
}

/* Register and take away, look, add middleware: while events flow. */
static void *fidget(void *user)
{
    struct member *m = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = m->number; !atomic_load(&m->crowd->stop); i++) {
        const struct hf_str *types;
        char text[20];
        struct hf_str type = type_of(text, sizeof(text), i);
        size_t len;

        if (i % 3 == 0)
            (void)!hf_bus_once(s, m->crowd->bus, type, count, m->crowd);
        else if (i % 3 == 1)
            (void)!hf_bus_on(s, m->crowd->bus, type, count, m->crowd);
        else
            (void)hf_bus_off(m->crowd->bus, type, count, m->crowd);
        if (i % 16 == 0)
            (void)hf_bus_off_all(m->crowd->bus, type);
        if (hf_bus_types(s, m->crowd->bus, &types, &len) != HF_OK || len > TYPES + 1)
            break;
        if (i < 3)
            (void)!hf_bus_use(s, m->crowd->bus, HF_BUS_HANDLE | HF_BUS_EMIT, pass, m->crowd);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return atomic_load(&m->crowd->stop) ? m : NULL;
}

static void *wait_all(void *user)
{
    struct member *m = user;
    struct hf_scope *s = hf_scope_new(NULL);
    enum hf_status status = HF_OK;

    while (!atomic_load(&m->crowd->stop) && (status == HF_OK || status == HF_TIMEOUT)) {
        struct hf_event event;

        status = hf_bus_wait_for(s, m->crowd->bus, HF_STR("*"), 20, &event);
        if (status == HF_OK && event.headers.ptr)
            atomic_fetch_add(&m->crowd->waited, 1);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return status == HF_OK || status == HF_TIMEOUT ? m : NULL;
}

static void crowd_error(const struct hf_outbox_event *event, const struct hf_error *error,
                        enum hf_relay_outcome outcome, void *user)
{
    (void)error;
    (void)outcome;
    if (event)
        atomic_fetch_add(&((struct crowd *)user)->errors, 1);
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

/* Handlers come and go, events flow, others wait for them: each event is handled. There is always a
 * handler for the family of all, so none becomes a dead letter. */
TEST(bus, handlers_come_and_go_while_events_flow)
{
    static struct crowd crowd;
    void *(*const roles[])(void *) = {emit_all, emit_all, fidget, fidget, wait_all};
    struct hf_relay_options relay = {.size = sizeof(relay),
                                     .max_attempts = 1000,
                                     .backoff_ms = 1,
                                     .backoff_max_ms = 5};
    struct hf_scope *s = hf_scope_new(NULL);
    struct member members[5];
    pthread_t threads[5];
    void *well;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &crowd.db));
    CHECK_OK(hf_outbox_open(s, crowd.db, NULL, &crowd.outbox));
    CHECK_OK(hf_bus_open(s, crowd.outbox,
                         HF_OPTIONS(hf_bus_options, .relay = &relay, .on_error = crowd_error,
                                    .user = &crowd),
                         &crowd.bus));
    CHECK_OK(hf_bus_on(s, crowd.bus, HF_STR("*"), count, &crowd));
    CHECK_OK(hf_bus_start(s, crowd.bus));
    CHECK_STATUS(HF_IN_USE, hf_bus_start(s, crowd.bus));
    for (int i = 0; i < 5; i++) {
        members[i] = (struct member){.crowd = &crowd, .number = i};
        CHECK_INT(0, pthread_create(&threads[i], NULL, roles[i], &members[i]));
    }
    for (int i = 0; i < EMITTERS; i++) {
        CHECK_INT(0, pthread_join(threads[i], &well));
        CHECK(well);
    }
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(&crowd.first) < EMITTERS * EVENTS; ms += 5)
        sleep_ms(5);
    CHECK_INT(EMITTERS * EVENTS, atomic_load(&crowd.first));
    atomic_store(&crowd.stop, true);
    for (int i = EMITTERS; i < 5; i++) {
        CHECK_INT(0, pthread_join(threads[i], &well));
        CHECK(well);
    }
    CHECK(atomic_load(&crowd.failed) > 0);
    CHECK(atomic_load(&crowd.errors) > 0);
    CHECK(atomic_load(&crowd.layers) > 0);
    hf_scope_timeout_ms(s, PATIENCE_MS);
    CHECK_OK(hf_bus_stop(s, crowd.bus));
    hf_bus_close(crowd.bus);
    hf_outbox_close(crowd.outbox);
    hf_db_close(crowd.db);
    hf_scope_free(s);
}

/* A thread waits before there is anything to wait for, without an own handler. */
static enum hf_status say_yes(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct hf_event answer = {.type = HF_STR("answer")};

    (void)event;
    return hf_bus_emit(s, user, &answer, 1);
}

TEST(bus, a_question_and_its_answer)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_event question = {.type = HF_STR("question")}, answer;
    struct hf_outbox *outbox;
    struct hf_bus_wait *wait;
    struct hf_bus *bus;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    CHECK_OK(hf_outbox_open(s, db, NULL, &outbox));
    CHECK_OK(hf_bus_open(s, outbox, NULL, &bus));
    CHECK_OK(hf_bus_on(s, bus, HF_STR("question"), say_yes, bus));
    CHECK_OK(hf_bus_start(s, bus));
    for (int i = 0; i < 20; i++) {
        CHECK_OK(hf_bus_wait_begin(s, bus, HF_STR("answer"), &wait));
        CHECK_OK(hf_bus_emit(s, bus, &question, 1));
        CHECK_OK(hf_bus_wait_end(s, wait, PATIENCE_MS, &answer));
        CHECK(answer.causation.len > 0);
    }
    hf_bus_close(bus); /* stops it first */
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
}

struct slow {
    atomic_int begun, ended;
};

static enum hf_status take_long(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct slow *slow = user;

    (void)s;
    (void)event;
    atomic_fetch_add(&slow->begun, 1);
    sleep_ms(50);
    atomic_fetch_add(&slow->ended, 1);
    return HF_OK;
}

TEST(bus, a_stop_waits_for_what_is_under_way)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_event event = {.type = HF_STR("t")};
    struct slow slow = {0};
    struct hf_outbox_stats stats;
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    CHECK_OK(hf_outbox_open(s, db, NULL, &outbox));
    CHECK_OK(hf_bus_open(s, outbox, NULL, &bus));
    CHECK_OK(hf_bus_on(s, bus, HF_STR("t"), take_long, &slow));
    CHECK_OK(hf_bus_start(s, bus));
    for (int i = 0; i < 20; i++)
        CHECK_OK(hf_bus_emit(s, bus, &event, 1));
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(&slow.begun) == 0; ms++)
        sleep_ms(1);
    hf_scope_timeout_ms(s, PATIENCE_MS);
    CHECK_OK(hf_bus_stop(s, bus));
    CHECK(atomic_load(&slow.begun) > 0);
    CHECK_INT(atomic_load(&slow.begun), atomic_load(&slow.ended));
    CHECK_OK(hf_outbox_stats(s, outbox, 0, &stats)); /* and has noted it */
    CHECK_INT(20 - atomic_load(&slow.ended), stats.pending);
    CHECK_OK(hf_bus_start(s, bus)); /* it may begin again */
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(&slow.ended) < 20; ms++)
        sleep_ms(1);
    CHECK_INT(20, atomic_load(&slow.ended));
    hf_bus_close(bus);
    hf_outbox_close(outbox);
    hf_db_close(db);
    hf_scope_free(s);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status nod(struct hf_scope *s, const struct hf_event *event, void *user)
{
    (void)s;
    (void)event;
    ++*(int *)user;
    return HF_OK;
}

static enum hf_status through(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    (void)user;
    return hf_bus_next(s, call);
}

struct round {
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    struct hf_bus_wait *wait;
    bool emitted;
    int handled;
};

static enum hf_status go_round(struct hf_scope *s, struct hf_db *db, struct round *round)
{
    const struct hf_str types[] = {HF_STR("a"), HF_STR("b"), HF_STR("c"), HF_STR("d"), HF_STR("e"),
                                   HF_STR("f"), HF_STR("g"), HF_STR("h"), HF_STR("i")};
    struct hf_relay_options relay = {.size = sizeof(relay), .no_threads = true};
    struct hf_event event = {.type = HF_STR("t.x"), .headers = HF_ITEM(s, HF_N("n", 1))};
    const struct hf_str *all;
    enum hf_status status;
    uint32_t wait_ms;
    size_t len;

    if ((status = hf_outbox_open(s, db, NULL, &round->outbox)) != HF_OK ||
        (status = hf_bus_open(s, round->outbox, HF_OPTIONS(hf_bus_options, .relay = &relay),
                              &round->bus)) != HF_OK ||
        (status = hf_bus_once(s, round->bus, HF_STR("t.*"), nod, &round->handled)) != HF_OK ||
        (status = hf_bus_subscribe(s, round->bus, types, 9, nod, &round->handled)) != HF_OK ||
        (status = hf_bus_use(s, round->bus, HF_BUS_EMIT | HF_BUS_HANDLE, through, NULL)) != HF_OK ||
        (status = hf_bus_types(s, round->bus, &all, &len)) != HF_OK ||
        (status = hf_bus_wait_begin(s, round->bus, HF_STR("t.x"), &round->wait)) != HF_OK ||
        (status = hf_bus_emit(s, round->bus, &event, 1)) != HF_OK)
        return status;
    round->emitted = true;
    return hf_relay_step(s, hf_bus_relay(round->bus), &wait_ms);
}

TEST(bus, without_memory_it_says_so_and_loses_nothing)
{
    struct hf_scope *outer = hf_scope_new(NULL);
    int emitted = 0, handled = 0;
    struct hf_db *db;

    CHECK_OK(hf_open(outer, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct round round = {0};
        enum hf_status status = s ? go_round(s, db, &round) : HF_NOMEM;
        struct hf_event event;
        uint32_t wait_ms;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        emitted += round.emitted;
        for (int i = 0; round.emitted && round.handled == 0 && i < 200; i++) {
            test_advance_ms(t, 1000);
            CHECK_OK(hf_relay_step(s, hf_bus_relay(round.bus), &wait_ms));
        }
        if (round.wait) {
            status = hf_bus_wait_end(s, round.wait, 1, &event);
            CHECK(!round.emitted || status == HF_OK || status == HF_NOMEM);
        }
        handled += round.handled > 0;
        hf_bus_close(round.bus);
        hf_outbox_close(round.outbox);
        hf_scope_free(s);
    }
    CHECK(emitted > 0);
    CHECK(handled >= emitted);
    hf_db_close(db);
    hf_scope_free(outer);
}
