/*
 * events/flow_thread_test.c: flows with threads: turns, posting, observers, side effects, the end.
 * By the system's clock; nothing here depends on how fast anything is. (n) is an invariant of
 * events/flow/flow.c.
 */
#include <holdfast/engine.h>
#include <holdfast/flow.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "test.h"

enum { PATIENCE_MS = 30000, THREADS = 4 };

struct world {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_events *store;
    struct hf_outbox *outbox;
};

static void world_open(struct world *w)
{
    w->s = hf_scope_new(NULL);
    CHECK_OK(hf_open(w->s, HF_STR("memory:"), NULL, &w->db));
    CHECK_OK(hf_events_open(w->s, w->db, NULL, &w->store));
    CHECK_OK(hf_outbox_open(w->s, w->db, NULL, &w->outbox));
}

static void world_close(struct world *w)
{
    hf_outbox_close(w->outbox);
    hf_events_close(w->store);
    hf_db_close(w->db);
    hf_scope_free(w->s);
}

static void nap(void)
{
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* False: not within our patience. */
static bool wait_for(atomic_int *value, int at_least)
{
    for (int i = 0; i < PATIENCE_MS; i++, nap())
        if (atomic_load(value) >= at_least)
            return true;
    return false;
}

static struct hf_flow_event event_in(const char *type, const char *id)
{
    return (struct hf_flow_event){.stream = {HF_STR("d"), hf_str_from(id)},
                                  .event = {.type = hf_str_from(type)}};
}

struct door {
    atomic_int entered, inside, most, open;
};

/* Notes how many are inside at once, and stays until the door is open. */
static enum hf_status pass_door(struct hf_scope *s, struct hf_flow_call *call,
                                const struct hf_stored_event *event, void *user)
{
    struct door *door = user;
    int inside = atomic_fetch_add(&door->inside, 1) + 1;
    int most = atomic_load(&door->most);

    (void)call;
    (void)event;
    while (inside > most && !atomic_compare_exchange_weak(&door->most, &most, inside))
        ;
    atomic_fetch_add(&door->entered, 1);
    if (!wait_for(&door->open, 1))
        return hf_scope_fail(s, HF_TIMEOUT, "nobody opened the door");
    nap();
    atomic_fetch_sub(&door->inside, 1);
    return HF_OK;
}

struct submitter {
    struct hf_flows *flows;
    struct hf_flow_event event;
    int times;
    uint32_t timeout_ms;
    struct hf_scope *scope; /* may be given, to be canceled */
    enum hf_status status;
    uint32_t attempts;
    pthread_t thread;
};

static void *run_submitter(void *user)
{
    struct submitter *me = user;
    struct hf_scope *s = me->scope ? me->scope : hf_scope_new(NULL);

    for (int i = 0; i < me->times && me->status == HF_OK; i++) {
        struct hf_flow_result result;

        if (!me->scope)
            hf_scope_reset(s);
        hf_scope_timeout_ms(s, me->timeout_ms);
        me->status = hf_flows_submit(s, me->flows, &me->event, NULL, &result);
        if (me->status == HF_OK)
            me->attempts += result.attempts;
    }
    if (!me->scope)
        hf_scope_free(s);
    return NULL;
}

static void start(struct submitter *submitter)
{
    CHECK_INT(0, pthread_create(&submitter->thread, NULL, run_submitter, submitter));
}

/* (5), and what the tests of the system we follow ask for */
TEST(flow_thread, trees_of_one_shard_are_taken_one_after_the_other)
{
    struct submitter threads[THREADS];
    struct door door = {.open = 1};
    struct hf_flow flow = {.domain = HF_STR("d"),
                           .type = HF_STR("a"),
                           .apply = pass_door,
                           .user = &door};
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .partitions = 8), &flows));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct submitter){.flows = flows, .event = event_in("a", "7"), .times = 5};
        start(&threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        CHECK_INT(HF_OK, threads[i].status);
    }
    CHECK_INT(5 * THREADS, atomic_load(&door.entered));
    CHECK_INT(1, atomic_load(&door.most));
    hf_flows_close(flows);
    world_close(&w);
}

TEST(flow_thread, trees_of_different_shards_are_taken_side_by_side)
{
    struct submitter threads[2];
    struct door door = {0};
    struct hf_flow flow = {.domain = HF_STR("d"),
                           .type = HF_STR("a"),
                           .apply = pass_door,
                           .user = &door};
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .partitions = 8), &flows));
    CHECK(hf_flows_partition(flows, HF_STR("7")) != hf_flows_partition(flows, HF_STR("8")));
    threads[0] = (struct submitter){.flows = flows, .event = event_in("a", "7"), .times = 1};
    threads[1] = (struct submitter){.flows = flows, .event = event_in("a", "8"), .times = 1};
    start(&threads[0]);
    start(&threads[1]);
    CHECK(wait_for(&door.inside, 2)); /* both, while the door is closed */
    atomic_store(&door.open, 1);
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i].thread, NULL);
        CHECK_INT(HF_OK, threads[i].status);
    }
    hf_flows_close(flows);
    world_close(&w);
}

TEST(flow_thread, who_waits_for_a_turn_keeps_his_deadline_and_can_be_canceled)
{
    struct submitter first, late, canceled;
    struct door door = {0};
    struct hf_flow flow = {.domain = HF_STR("d"),
                           .type = HF_STR("a"),
                           .apply = pass_door,
                           .user = &door};
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, NULL, 0, NULL, &flows));
    first = late = canceled =
        (struct submitter){.flows = flows, .event = event_in("a", "7"), .times = 1};
    late.timeout_ms = 30;
    canceled.scope = hf_scope_new(NULL);
    start(&first);
    CHECK(wait_for(&door.inside, 1));
    start(&late);
    start(&canceled);
    pthread_join(late.thread, NULL);
    CHECK_INT(HF_TIMEOUT, late.status);
    hf_scope_cancel(canceled.scope);
    pthread_join(canceled.thread, NULL);
    CHECK_INT(HF_CANCELED, canceled.status);
    atomic_store(&door.open, 1);
    pthread_join(first.thread, NULL);
    CHECK_INT(HF_OK, first.status);
    CHECK_INT(1, atomic_load(&door.entered));
    hf_scope_free(canceled.scope);
    hf_flows_close(flows);
    world_close(&w);
}

struct answers {
    atomic_int done, failed;
};

static void on_posted(const struct hf_flow_result *result, const struct hf_error *error, void *user)
{
    struct answers *answers = user;

    (void)error;
    atomic_fetch_add(result ? &answers->done : &answers->failed, 1);
}

TEST(flow_thread, what_was_posted_is_taken_by_threads)
{
    struct door door = {.open = 1};
    struct answers answers = {0};
    struct hf_flow flow = {.domain = HF_STR("d"),
                           .type = HF_STR("a"),
                           .apply = pass_door,
                           .user = &door};
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, NULL, 0,
                           HF_OPTIONS(hf_flows_options, .partitions = 3), &flows));
    for (int i = 0; i < 30; i++) {
        char id[12];
        struct hf_flow_event event;

        (void)snprintf(id, sizeof(id), "%d", i % 6);
        event = event_in("a", id);
        CHECK_OK(hf_flows_post(w.s, flows, &event, on_posted, &answers));
    }
    CHECK_OK(hf_flows_shutdown(w.s, flows, PATIENCE_MS)); /* waits for all of them */
    CHECK_INT(30, atomic_load(&answers.done));
    CHECK_INT(0, atomic_load(&answers.failed));
    CHECK(atomic_load(&door.most) <= 3);
    hf_flows_close(flows);
    world_close(&w);
}

TEST(flow_thread, a_shutdown_has_a_deadline)
{
    struct door door = {0};
    struct answers answers = {0};
    struct hf_flow flow = {.domain = HF_STR("d"),
                           .type = HF_STR("a"),
                           .apply = pass_door,
                           .user = &door};
    struct hf_flow_event event = event_in("a", "7");
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, NULL, 0, NULL, &flows));
    for (int i = 0; i < 3; i++)
        CHECK_OK(hf_flows_post(w.s, flows, &event, on_posted, &answers));
    CHECK(wait_for(&door.inside, 1));
    CHECK_STATUS(HF_TIMEOUT, hf_flows_shutdown(w.s, flows, 50));
    CHECK_ERROR(HF_TIMEOUT, "flows did not finish within 50 ms", w.s);
    CHECK_INT(2, atomic_load(&answers.failed)); /* those that were not begun are told */
    CHECK_STATUS(HF_CANCELED, hf_flows_submit(w.s, flows, &event, NULL, NULL));
    atomic_store(&door.open, 1);
    CHECK_OK(hf_flows_shutdown(w.s, flows, PATIENCE_MS));
    CHECK_INT(1, atomic_load(&answers.done));
    hf_flows_close(flows);
    world_close(&w);
}

/* The C library's memory, until there is none. */
static void *stingy(void *ptr, size_t old_size, size_t new_size, void *user)
{
    (void)old_size;
    if (new_size)
        return atomic_load((atomic_int *)user) ? NULL : realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

struct closer {
    struct hf_flows *flows;
    atomic_int closed;
    pthread_t thread;
};

static void *run_closer(void *user)
{
    struct closer *me = user;

    hf_flows_close(me->flows);
    atomic_store(&me->closed, 1);
    return NULL;
}

/* Closing waits for who is inside, however short its deadline is, and without memory, too. */
TEST(flow_thread, closing_waits_for_who_is_inside)
{
    for (int memory = 0; memory < 2; memory++) {
        struct door door = {0};
        struct hf_flow flow = {.domain = HF_STR("d"),
                               .type = HF_STR("a"),
                               .apply = pass_door,
                               .user = &door};
        struct submitter submitter;
        struct closer closer = {0};
        atomic_int none = 0;
        struct hf_env env = {.size = sizeof(env), .user = &none, .alloc = stingy};
        struct hf_scope *s = hf_scope_new(&env);
        struct world w;

        world_open(&w);
        CHECK_OK(hf_flows_open(s, w.store, NULL, &flow, 1, NULL, 0,
                               HF_OPTIONS(hf_flows_options, .shutdown_ms = 20), &closer.flows));
        submitter =
            (struct submitter){.flows = closer.flows, .event = event_in("a", "7"), .times = 1};
        start(&submitter);
        CHECK(wait_for(&door.inside, 1));
        atomic_store(&none, !memory);
        CHECK_INT(0, pthread_create(&closer.thread, NULL, run_closer, &closer));
        for (int i = 0; i < 100; i++)
            nap();
        CHECK_INT(0, atomic_load(&closer.closed));
        atomic_store(&none, 0);
        atomic_store(&door.open, 1);
        pthread_join(submitter.thread, NULL);
        CHECK_INT(HF_OK, submitter.status);
        pthread_join(closer.thread, NULL);
        hf_scope_free(s);
        world_close(&w);
    }
}

static enum hf_status observe_door(struct hf_scope *s, const struct hf_stored_event *event,
                                   void *user)
{
    return pass_door(s, NULL, event, user);
}

TEST(flow_thread, who_is_fired_and_forgotten_holds_nobody_up)
{
    struct door door = {0};
    struct hf_flow flow = {.domain = HF_STR("d"), .type = HF_STR("a")};
    struct hf_flow_observer observer = {.fire_and_forget = true,
                                        .observe = observe_door,
                                        .user = &door};
    struct hf_flow_event event = event_in("a", "7");
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, &observer, 1, NULL, &flows));
    for (int i = 0; i < 3; i++)
        CHECK_OK(hf_flows_submit(w.s, flows, &event, NULL, NULL));
    CHECK(wait_for(&door.inside, 1)); /* it is at the first, and all are stored */
    CHECK_INT(1, atomic_load(&door.entered));
    atomic_store(&door.open, 1);
    CHECK_OK(hf_flows_shutdown(w.s, flows, PATIENCE_MS));
    CHECK_INT(3, atomic_load(&door.entered));
    CHECK_INT(1, atomic_load(&door.most));
    hf_flows_close(flows);
    world_close(&w);
}

static enum hf_status lead_to_b(struct hf_scope *s, struct hf_flow_call *call,
                                const struct hf_stored_event *event, void *user)
{
    struct hf_flow_event next = {.stream = {HF_STR("d"), hf_str_of(NULL, 0)},
                                 .event = {.type = HF_STR("b")}};
    atomic_int *runs = user;

    (void)event;
    if (atomic_fetch_add(runs, 1) % 3 == 0) /* some fail at first */
        return hf_scope_fail(s, HF_IO, "not now");
    return hf_flow_emit(s, call, &next);
}

static enum hf_status count_b(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    (void)s;
    (void)event;
    atomic_fetch_add((atomic_int *)user, 1);
    return HF_OK;
}

TEST(flow_thread, side_effects_are_run_by_threads)
{
    atomic_int runs = 0, seen = 0;
    struct hf_flow flows_given[] = {{.domain = HF_STR("d"),
                                     .type = HF_STR("a"),
                                     .side_effect = lead_to_b,
                                     .effect_retries = 50,
                                     .user = &runs},
                                    {.domain = HF_STR("d"), .type = HF_STR("b")}};
    struct hf_flow_filter only_b = {.domain = HF_STR("d"), .type = HF_STR("b")};
    struct hf_flow_observer observer = {.filters = &only_b,
                                        .filters_len = 1,
                                        .observe = count_b,
                                        .user = &seen};
    struct hf_relay_options relay = {.size = sizeof(relay), .backoff_ms = 1, .poll_ms = 20};
    struct hf_flows *flows;
    struct world w;

    world_open(&w);
    CHECK_OK(hf_flows_open(w.s, w.store, w.outbox, flows_given, 2, &observer, 1,
                           HF_OPTIONS(hf_flows_options, .partitions = 4, .relay = &relay), &flows));
    for (int i = 0; i < 10; i++) {
        char id[12];
        struct hf_flow_event event;

        (void)snprintf(id, sizeof(id), "%d", i);
        event = event_in("a", id);
        CHECK_OK(hf_flows_submit(w.s, flows, &event, NULL, NULL));
    }
    CHECK(wait_for(&seen, 10));
    CHECK_OK(hf_flows_shutdown(w.s, flows, PATIENCE_MS));
    CHECK_INT(10, atomic_load(&seen));
    for (int i = 0; i < 10; i++) {
        struct hf_events_page page;
        char id[12];

        (void)snprintf(id, sizeof(id), "%d", i);
        CHECK_OK(hf_events_read(w.s, w.store, event_in("a", id).stream, NULL, &page));
        CHECK_INT(2, page.events_len);
    }
    hf_flows_close(flows);
    world_close(&w);
}

/* ---- many, on one aggregate ----------------------------------------------------------------- */

static enum hf_status count_events(struct hf_scope *s, void *state,
                                   const struct hf_stored_event *event, void *user)
{
    (void)s;
    (void)event;
    (void)user;
    ++*(int64_t *)state;
    return HF_OK;
}

static const struct hf_aggregate counts = {.domain = {"d", 1},
                                           .state_size = sizeof(int64_t),
                                           .evolve = count_events};

enum { ROOM = 12 };

static enum hf_status has_room(struct hf_scope *s, struct hf_flow_call *call,
                               const struct hf_stored_event *event, void *user)
{
    (void)event;
    (void)user;
    return *(const int64_t *)hf_flow_state(call) < ROOM
               ? HF_OK
               : hf_scope_fail(s, HF_DENIED, "there is no more room");
}

/* Two runtimes, as two processes are: neither lets in one too many, and none that fits is lost. */
TEST(flow_thread, several_runtimes_never_let_in_one_too_many)
{
    struct submitter threads[THREADS];
    struct hf_flow flow = {.domain = HF_STR("d"),
                           .type = HF_STR("a"),
                           .aggregate = &counts,
                           .validate = has_room};
    struct hf_flows *flows[2];
    struct hf_events_page page;
    struct world w;

    world_open(&w);
    for (int i = 0; i < 2; i++)
        CHECK_OK(hf_flows_open(w.s, w.store, NULL, &flow, 1, NULL, 0,
                               HF_OPTIONS(hf_flows_options, .max_attempts = 1000), &flows[i]));
    for (int i = 0; i < THREADS; i++) {
        threads[i] = (struct submitter){.flows = flows[i % 2],
                                        .event = event_in("a", "7"),
                                        .times = ROOM + 1};
        start(&threads[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i].thread, NULL);
        CHECK_INT(HF_DENIED, threads[i].status);
    }
    CHECK_OK(hf_events_read(w.s, w.store, event_in("a", "7").stream, NULL, &page));
    CHECK_INT(ROOM, page.version);
    for (int i = 0; i < 2; i++)
        hf_flows_close(flows[i]);
    world_close(&w);
}
