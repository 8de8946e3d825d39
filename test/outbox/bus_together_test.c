/*
 * outbox/bus_together_test.c: middleware that is called for several events of one emit at once.
 *
 * Events say who they are by their number. The middleware of a test plays a scene: what it does is
 * said per number, and it may wait for what others did. No wait is longer than PATIENCE_MS, and one
 * that was in vain is counted, as checks belong to the thread of the test.
 */
#include <holdfast/bus.h>
#include <holdfast/engine.h>
#include <holdfast/tx.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "test.h"

enum { MANY = 10, PATIENCE_MS = 20000, LONG_MS = 600000, EMITTERS = 3, ROUNDS = 10 };

struct scene {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_outbox *outbox;
    struct hf_bus *bus;
    pthread_t caller;
    hf_bus_middleware_fn *act;
    int together; /* wait until so many are inside */
    atomic_int inside, most, calls, ended, elsewhere, with_tx, in_vain, canceled, nested;
    atomic_bool is_over[MANY];
};

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void wait_for_count(struct scene *scene, atomic_int *count, int wanted)
{
    for (int ms = 0; ms < PATIENCE_MS && atomic_load(count) < wanted; ms++)
        sleep_ms(1);
    if (atomic_load(count) < wanted)
        atomic_fetch_add(&scene->in_vain, 1);
}

static void wait_for_end(struct scene *scene, int number)
{
    for (int ms = 0; ms < PATIENCE_MS && !atomic_load(&scene->is_over[number]); ms++)
        sleep_ms(1);
    if (!atomic_load(&scene->is_over[number]))
        atomic_fetch_add(&scene->in_vain, 1);
}

static int number_of(struct hf_bus_call *call)
{
    int64_t number = 0;

    (void)hf_value_i64(hf_item_get(hf_bus_call_event(call)->headers, HF_STR("n")), &number);
    return (int)number;
}

static enum hf_status play(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;
    int number = number_of(call), now, most;
    enum hf_status status;

    atomic_fetch_add(&scene->calls, 1);
    now = atomic_fetch_add(&scene->inside, 1) + 1;
    most = atomic_load(&scene->most);
    while (now > most && !atomic_compare_exchange_weak(&scene->most, &most, now))
        continue;
    if (!pthread_equal(scene->caller, pthread_self()))
        atomic_fetch_add(&scene->elsewhere, 1);
    if (hf_bus_call_tx(call) || hf_scope_tx(s))
        atomic_fetch_add(&scene->with_tx, 1);
    if (scene->together)
        wait_for_count(scene, &scene->most, scene->together);
    status = scene->act ? scene->act(s, call, scene) : hf_bus_next(s, call);
    atomic_fetch_sub(&scene->inside, 1);
    atomic_store(&scene->is_over[number], true);
    atomic_fetch_add(&scene->ended, 1);
    return status;
}

static void scene_open(struct scene *scene, uint32_t concurrency, hf_bus_middleware_fn *act)
{
    memset(scene, 0, sizeof(*scene));
    scene->s = hf_scope_new(NULL);
    scene->caller = pthread_self();
    scene->act = act;
    CHECK_OK(hf_open(scene->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &scene->db));
    CHECK_OK(hf_outbox_open(scene->s, scene->db, HF_OPTIONS(hf_outbox_options, .buckets = 4),
                            &scene->outbox));
    CHECK_OK(hf_bus_open(scene->s, scene->outbox,
                         HF_OPTIONS(hf_bus_options, .middleware_concurrency = concurrency),
                         &scene->bus));
    CHECK_OK(hf_bus_use(scene->s, scene->bus, HF_BUS_EMIT, play, scene));
}

static void scene_close(struct scene *scene)
{
    CHECK_INT(0, atomic_load(&scene->in_vain));
    CHECK_INT(0, atomic_load(&scene->inside));
    hf_bus_close(scene->bus);
    hf_outbox_close(scene->outbox);
    hf_db_close(scene->db);
    hf_scope_free(scene->s);
}

/* Events with the numbers from 0 on, of one key, so that they have an order. */
static enum hf_status emit_to(struct hf_scope *s, struct scene *scene, struct hf_tx *tx, int count)
{
    struct hf_event events[MANY];

    for (int i = 0; i < count; i++)
        events[i] = (struct hf_event){.type = HF_STR("t"),
                                      .key = HF_STR("k"),
                                      .headers = HF_ITEM(s, HF_N("n", i))};
    return tx ? hf_bus_emit_into(s, scene->bus, tx, events, (size_t)count)
              : hf_bus_emit(s, scene->bus, events, (size_t)count);
}

static enum hf_status emit(struct hf_scope *s, struct scene *scene, int count)
{
    return emit_to(s, scene, NULL, count);
}

static struct hf_event_list pending(struct scene *scene)
{
    struct hf_event_list list;

    CHECK_OK(
        hf_outbox_pending(scene->s, scene->outbox,
                          HF_OPTIONS(hf_event_list_options, .not_due_too = true, .limit = 1000),
                          &list));
    return list;
}

/* ---- at once -------------------------------------------------------------------------------- */

TEST(bus_threads, middleware_of_several_events_runs_at_once)
{
    struct scene scene;

    scene_open(&scene, 4, NULL);
    scene.together = 4;
    CHECK_OK(emit(scene.s, &scene, MANY));
    CHECK_INT(4, atomic_load(&scene.most)); /* and not one more */
    CHECK_INT(MANY, atomic_load(&scene.calls));
    CHECK_INT(MANY, atomic_load(&scene.elsewhere));
    CHECK_INT(MANY, pending(&scene).events_len);
    scene_close(&scene);
}

/* The first waits for all the others. One is dropped, and one is replaced by what is only in the
 * scope of its middleware. */
static enum hf_status reversed(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;
    struct hf_event *event = hf_bus_call_event(call);

    if (number_of(call) == 0)
        wait_for_count(scene, &scene->ended, MANY - 1);
    if (number_of(call) == 3)
        return hf_bus_drop(s, call);
    if (number_of(call) == 5)
        *event = (struct hf_event){.type = HF_STR("other"),
                                   .key = HF_STR("k"),
                                   .headers = HF_ITEM(s, HF_N("n", 5))};
    event->correlation = hf_scope_format(s, "c-%d", number_of(call));
    return hf_bus_next(s, call);
}

static void check_order(struct scene *scene)
{
    static const int order[] = {0, 1, 2, 4, 5, 6, 7, 8, 9};
    struct hf_event_list list = pending(scene);

    CHECK_INT(sizeof(order) / sizeof(order[0]), list.events_len);
    for (size_t i = 0; i < list.events_len; i++) {
        char expected[20];

        snprintf(expected, sizeof(expected), "c-%d", order[i]);
        CHECK_STR(expected, list.events[i].event.correlation);
        CHECK_STR(order[i] == 5 ? "other" : "t", list.events[i].event.type);
    }
}

TEST(bus_threads, what_middleware_is_done_with_last_keeps_its_place)
{
    struct scene scene;

    scene_open(&scene, 2, reversed);
    CHECK_OK(emit(scene.s, &scene, MANY));
    check_order(&scene);
    scene_close(&scene);
}

static enum hf_status in_turn(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;

    atomic_store(&scene->ended, MANY); /* nobody has to be waited for */
    return reversed(s, call, user);
}

/* Also what is called one after the other, where an event without an id takes another's place. */
TEST(bus_threads, what_is_replaced_keeps_its_place)
{
    struct scene scene;

    scene_open(&scene, 1, in_turn);
    CHECK_OK(emit(scene.s, &scene, MANY));
    check_order(&scene);
    scene_close(&scene);
}

/* ---- on the caller's thread ----------------------------------------------------------------- */

static enum hf_status emit_in_tx(struct hf_scope *s, struct hf_tx *tx, void *user)
{
    return emit_to(s, user, tx, 3);
}

TEST(bus_threads, no_thread_is_started_without_need)
{
    struct scene scene;

    scene_open(&scene, 0, NULL); /* as it is by itself */
    CHECK_OK(emit(scene.s, &scene, 3));
    CHECK_INT(1, atomic_load(&scene.most));
    CHECK_INT(0, atomic_load(&scene.elsewhere));
    scene_close(&scene);

    scene_open(&scene, 4, NULL);
    CHECK_OK(emit(scene.s, &scene, 0));
    CHECK_OK(emit(scene.s, &scene, 1));
    CHECK_INT(0, atomic_load(&scene.elsewhere));
    CHECK_INT(0, atomic_load(&scene.with_tx));
    CHECK_OK(hf_tx_run(scene.s, scene.db, emit_in_tx, &scene, NULL));
    CHECK_INT(4, atomic_load(&scene.calls));
    CHECK_INT(0, atomic_load(&scene.elsewhere)); /* a transaction is one thread's */
    CHECK_INT(3, atomic_load(&scene.with_tx));
    CHECK_INT(4, pending(&scene).events_len);
    CHECK_OK(emit(scene.s, &scene, 2)); /* but now */
    CHECK_INT(2, atomic_load(&scene.elsewhere));
    CHECK_INT(3, atomic_load(&scene.with_tx));
    scene_close(&scene);
}

static _Thread_local bool nesting;

/* For each of the call two more, of which no other thread knows. */
static enum hf_status emit_more(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;
    bool inner = nesting;

    if (hf_str_equal(hf_bus_call_event(call)->correlation, HF_STR("more"))) {
        atomic_fetch_add(&scene->nested, inner);
    } else {
        struct hf_event more[2] = {{.type = HF_STR("t"), .correlation = HF_STR("more")},
                                   {.type = HF_STR("t"), .correlation = HF_STR("more")}};
        enum hf_status status;

        nesting = true;
        status = hf_bus_emit(s, scene->bus, more, 2);
        nesting = false;
        if (status != HF_OK)
            return status;
    }
    return hf_bus_next(s, call);
}

TEST(bus_threads, what_middleware_emits_starts_no_more_threads)
{
    struct scene scene;

    scene_open(&scene, 4, emit_more);
    CHECK_OK(emit(scene.s, &scene, 4));
    CHECK_INT(8, atomic_load(&scene.nested));
    CHECK_INT(12, pending(&scene).events_len);
    scene_close(&scene);
}

TEST(bus_threads, middleware_at_once_has_a_limit)
{
    struct scene scene;
    struct hf_bus *bus;

    scene_open(&scene, HF_BUS_CONCURRENCY_MAX, NULL);
    CHECK_STATUS(HF_INVALID, hf_bus_open(scene.s, scene.outbox,
                                         HF_OPTIONS(hf_bus_options, .middleware_concurrency =
                                                                        HF_BUS_CONCURRENCY_MAX + 1),
                                         &bus));
    CHECK_ERROR(HF_INVALID, "a middleware_concurrency of 101 is more than 100", scene.s);
    CHECK_OK(emit(scene.s, &scene, MANY)); /* with as many as there are events */
    CHECK_INT(MANY, atomic_load(&scene.elsewhere));
    scene_close(&scene);
}

/* ---- failures ------------------------------------------------------------------------------- */

/* The third fails first, then the second, then the first comes to its end; the fourth would take
 * long. */
static enum hf_status fail_backwards(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;
    int number = number_of(call);
    enum hf_status status;

    switch (number) {
    case 0:
        wait_for_end(scene, 1);
        return hf_scope_sleep_ms(s, 1) == HF_OK ? hf_bus_next(s, call) : HF_INTERNAL;
    case 1:
        wait_for_end(scene, 3);
        (void)hf_scope_fail(s, HF_DENIED, "number %d objects", number);
        return hf_scope_doubt(s);
    case 2:
        return hf_scope_fail(s, HF_IO, "number %d cannot", number);
    default:
        status = hf_scope_sleep_ms(s, LONG_MS);
        if (status == HF_CANCELED)
            atomic_fetch_add(&scene->canceled, 1);
        return status;
    }
}

TEST(bus_threads, a_failure_of_one_ends_the_emit)
{
    struct scene scene;

    scene_open(&scene, 4, fail_backwards);
    scene.together = 4;
    CHECK_STATUS(HF_DENIED, emit(scene.s, &scene, MANY));
    CHECK_ERROR(HF_DENIED, "number 1 objects", scene.s);
    CHECK(hf_scope_error(scene.s)->may_have_happened);
    CHECK_INT(1, atomic_load(&scene.canceled));
    CHECK_INT(4, atomic_load(&scene.calls)); /* no other began */
    CHECK_INT(0, pending(&scene).events_len);
    scene_close(&scene);
}

/* ---- the caller's scope --------------------------------------------------------------------- */

static enum hf_status take_long(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;
    enum hf_status status = hf_scope_sleep_ms(s, LONG_MS);

    if (status == HF_CANCELED)
        atomic_fetch_add(&scene->canceled, 1);
    return number_of(call) == 0 ? hf_bus_next(s, call) : status; /* whatever it is told */
}

static void *cancel_it(void *user)
{
    struct scene *scene = user;

    wait_for_count(scene, &scene->most, 2);
    hf_scope_cancel(scene->s);
    return NULL;
}

TEST(bus_threads, middleware_at_once_is_canceled_with_its_caller)
{
    struct scene scene;
    pthread_t thread;

    scene_open(&scene, 2, take_long);
    CHECK_INT(0, pthread_create(&thread, NULL, cancel_it, &scene));
    CHECK_STATUS(HF_CANCELED, emit(scene.s, &scene, 4));
    CHECK_INT(0, pthread_join(thread, NULL));
    CHECK_ERROR(HF_CANCELED, "The call was canceled", scene.s);
    CHECK_INT(2, atomic_load(&scene.canceled));
    CHECK_INT(2, atomic_load(&scene.calls));
    CHECK_STATUS(HF_CANCELED, emit(scene.s, &scene, 4)); /* not begun at all */
    CHECK_INT(2, atomic_load(&scene.calls));
    hf_scope_reset(scene.s);
    CHECK_INT(0, pending(&scene).events_len);
    scene_close(&scene);
}

/* hf_scope_sleep_ms() would not begin to sleep. */
static enum hf_status outlast(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct scene *scene = user;

    if (hf_scope_left_ms(s, LONG_MS) == LONG_MS) /* no deadline */
        atomic_fetch_add(&scene->in_vain, 1);
    for (int ms = 0; ms < PATIENCE_MS && hf_scope_left_ms(s, LONG_MS) > 0; ms++)
        sleep_ms(1);
    return hf_bus_next(s, call);
}

TEST(bus_threads, middleware_at_once_has_the_deadline_of_its_caller)
{
    struct scene scene;
    int calls;

    scene_open(&scene, 2, outlast);
    hf_scope_timeout_ms(scene.s, 300);
    CHECK_STATUS(HF_TIMEOUT, emit(scene.s, &scene, 2));
    calls = atomic_load(&scene.calls);
    CHECK(calls > 0);
    CHECK_STATUS(HF_TIMEOUT, emit(scene.s, &scene, 2)); /* not begun at all */
    CHECK_INT(calls, atomic_load(&scene.calls));
    hf_scope_reset(scene.s);
    CHECK_INT(0, pending(&scene).events_len);
    scene_close(&scene);
}

/* ---- causes --------------------------------------------------------------------------------- */

struct story {
    struct scene *scene;
    atomic_int caused, other;
};

static enum hf_status go_on(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    struct hf_event third = {.type = HF_STR("third")};
    struct scene *scene = user;

    if (hf_str_equal(hf_bus_call_event(call)->type, HF_STR("t"))) {
        enum hf_status status;

        wait_for_count(scene, &scene->most, 2);
        status = hf_bus_emit(s, scene->bus, &third, 1);
        if (status != HF_OK)
            return status;
    }
    return hf_bus_next(s, call);
}

static enum hf_status begin_story(struct hf_scope *s, const struct hf_event *event, void *user)
{
    (void)event;
    return emit(s, ((struct story *)user)->scene, 2);
}

static enum hf_status end_story(struct hf_scope *s, const struct hf_event *event, void *user)
{
    struct story *story = user;

    (void)s;
    atomic_fetch_add(hf_str_equal(event->causation, HF_STR("first-1")) ? &story->caused
                                                                       : &story->other,
                     1);
    return HF_OK;
}

/* The two that a handler emits, and what the middleware emits because of each. */
TEST(bus_threads, what_middleware_at_once_emits_has_the_same_cause)
{
    struct hf_event first = {.type = HF_STR("first"), .id = HF_STR("first-1")};
    struct scene scene;
    struct story story = {.scene = &scene};

    scene_open(&scene, 2, go_on);
    CHECK_OK(hf_bus_on(scene.s, scene.bus, HF_STR("first"), begin_story, &story));
    CHECK_OK(hf_bus_on(scene.s, scene.bus, HF_STR("*"), end_story, &story));
    CHECK_OK(hf_bus_start(scene.s, scene.bus));
    CHECK_OK(hf_bus_emit(scene.s, scene.bus, &first, 1));
    wait_for_count(&scene, &story.caused, 4);
    CHECK_INT(4, atomic_load(&story.caused));
    CHECK_INT(0, atomic_load(&story.other));
    hf_scope_timeout_ms(scene.s, PATIENCE_MS);
    CHECK_OK(hf_bus_stop(scene.s, scene.bus));
    scene_close(&scene);
}

/* ---- many callers; no memory ---------------------------------------------------------------- */

static void *emit_rounds(void *user)
{
    struct scene *scene = user;
    struct hf_scope *s = hf_scope_new(NULL);
    bool well = true;

    for (int i = 0; well && i < ROUNDS; i++) {
        well = emit(s, scene, 5) == HF_OK && hf_scope_error(s)->status == HF_OK;
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return well ? scene : NULL;
}

TEST(bus_threads, many_callers_have_middleware_at_once)
{
    pthread_t threads[EMITTERS];
    struct scene scene;

    scene_open(&scene, 3, NULL);
    for (int i = 0; i < EMITTERS; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, emit_rounds, &scene));
    for (int i = 0; i < EMITTERS; i++) {
        void *well;

        CHECK_INT(0, pthread_join(threads[i], &well));
        CHECK(well);
    }
    CHECK_INT(EMITTERS * ROUNDS * 5, atomic_load(&scene.calls));
    CHECK_INT(EMITTERS * ROUNDS * 5, pending(&scene).events_len);
    scene_close(&scene);
}

static enum hf_status mark_it(struct hf_scope *s, struct hf_bus_call *call, void *user)
{
    (void)user;
    hf_bus_call_event(call)->correlation = hf_scope_format(s, "%d", number_of(call));
    return hf_scope_built(s) == HF_OK ? hf_bus_next(s, call) : HF_NOMEM;
}

TEST(bus_threads, middleware_at_once_without_memory_stores_nothing)
{
    struct scene scene;
    size_t stored = 0;

    scene_open(&scene, 3, mark_it);
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        enum hf_status status = s ? emit(s, &scene, 3) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || (status == HF_NOMEM && t->alloc_failed));
        stored += status == HF_OK || (s && hf_scope_error(s)->may_have_happened) ? 3 : 0;
        CHECK_INT(stored, pending(&scene).events_len);
        hf_scope_free(s);
    }
    CHECK(stored > 0);
    scene_close(&scene);
}
