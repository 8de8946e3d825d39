/*
 * events/subscribe_thread_test.c: subscriptions and groups with threads of their own, by the
 * system's clocks. Nothing here fails because a machine is slow.
 */
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/subscribe.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "test.h"

enum { WRITERS = 2, APPENDS = 60, PATIENCE_MS = 60000 };

struct world {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_events *store;
};

static struct world open_world(void)
{
    struct world w = {.s = hf_scope_new(NULL)};

    CHECK(w.s != NULL);
    CHECK_OK(hf_open(w.s, HF_STR("memory:"), NULL, &w.db));
    CHECK_OK(hf_events_open(w.s, w.db, NULL, &w.store));
    return w;
}

static void close_world(struct world *w)
{
    hf_events_close(w->store);
    hf_db_close(w->db);
    hf_scope_free(w->s);
}

static void append_to(struct hf_scope *s, struct hf_events *store, const char *id, size_t count)
{
    struct hf_new_event events[3] = {{.type = HF_STR("x")},
                                     {.type = HF_STR("x")},
                                     {.type = HF_STR("x")}};
    struct hf_append append = {.stream = {HF_STR("s"), hf_str_from(id)},
                               .events = events,
                               .events_len = count};
    enum hf_status status;

    do
        status = hf_events_append(s, store, &append, 1,
                                  HF_OPTIONS(hf_append_options, .max_attempts = 1000), NULL);
    while (status == HF_TX_CONFLICT);
    CHECK_OK(status);
}

static void wait_for(struct hf_scope *s, atomic_int *count, int wanted)
{
    for (int ms = 0; atomic_load(count) < wanted; ms++) {
        CHECK(ms < PATIENCE_MS);
        CHECK_OK(hf_scope_sleep_ms(s, 1));
    }
}

/* ---- following ------------------------------------------------------------------------------ */

struct seen {
    atomic_int count;
    atomic_int wrong;
    uint64_t versions[WRITERS]; /* of the thread that works */
    atomic_int blocks;          /* so many calls wait until they are canceled */
    atomic_int blocked;
};

static enum hf_status note(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct seen *seen = user;
    int stream = event->stream.id.ptr[0] - '0';

    if (atomic_load(&seen->blocks) > 0) {
        atomic_fetch_sub(&seen->blocks, 1);
        atomic_fetch_add(&seen->blocked, 1);
        return hf_scope_sleep_ms(s, 10 * PATIENCE_MS);
    }
    if (event->version != ++seen->versions[stream])
        atomic_fetch_add(&seen->wrong, 1);
    atomic_fetch_add(&seen->count, 1);
    return HF_OK;
}

struct writing {
    struct hf_events *store;
    char id[2];
};

static void *write_some(void *user)
{
    struct writing *writing = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < APPENDS; i++) {
        hf_scope_reset(s);
        append_to(s, writing->store, writing->id, 1 + (size_t)i % 3);
    }
    hf_scope_free(s);
    return NULL;
}

/* Appends wake it: it polls once in ten minutes. */
TEST(subscribe_thread, follows_those_who_append)
{
    struct world w = open_world();
    struct seen seen = {.count = 0};
    struct writing writing[WRITERS];
    pthread_t threads[WRITERS];
    struct hf_subscription *sub;
    struct hf_subscription_info info;

    CHECK_OK(hf_subscribe(w.s, w.store, HF_STR("q"),
                          HF_OPTIONS(hf_subscribe_options, .each = note, .user = &seen,
                                     .poll_ms = 10 * PATIENCE_MS),
                          &sub));
    CHECK_OK(hf_subscription_start(w.s, sub));
    CHECK_STATUS(HF_IN_USE, hf_subscription_start(w.s, sub));
    for (int i = 0; i < WRITERS; i++) {
        writing[i] = (struct writing){.store = w.store, .id = {(char)('0' + i), '\0'}};
        CHECK_INT(0, pthread_create(&threads[i], NULL, write_some, &writing[i]));
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    wait_for(w.s, &seen.count, WRITERS * APPENDS * 2);
    CHECK_OK(hf_subscription_stop(w.s, sub));
    CHECK_INT(WRITERS * APPENDS * 2, atomic_load(&seen.count));
    CHECK_INT(0, atomic_load(&seen.wrong));
    CHECK_OK(hf_subscription_info(w.s, w.store, HF_STR("q"), &info));
    CHECK_INT(WRITERS * APPENDS * 2, info.handled);
    CHECK(!info.owner.ptr);

    CHECK_OK(hf_subscription_start(w.s, sub)); /* and on */
    append_to(w.s, w.store, "0", 1);
    wait_for(w.s, &seen.count, WRITERS * APPENDS * 2 + 1);
    hf_subscription_close(sub);
    close_world(&w);
}

/* How often the database was called so far. */
static uint64_t calls_of(struct world *w)
{
    const struct hf_fault *faults;
    size_t len;

    CHECK_OK(hf_faulty_get(w->s, w->db, &faults, &len));
    CHECK_INT(1, len);
    return faults[0].struck;
}

/* Its thread is called every second, and asks nothing when it is not time to. */
TEST(subscribe_thread, asks_when_it_is_time_to_poll_or_somebody_appends)
{
    struct world w = {.s = hf_scope_new(NULL)};
    struct hf_fault slow = {.kind = HF_FAULT_LATENCY, .latency_ms = 1};
    struct seen seen = {.count = 0};
    struct hf_subscription *sub;
    struct hf_db *inner;
    uint64_t calls;

    CHECK_OK(hf_open(w.s, HF_STR("memory:"), NULL, &inner));
    CHECK_OK(hf_faulty_open(w.s, inner, &w.db));
    CHECK_OK(hf_events_open(w.s, w.db, NULL, &w.store));
    CHECK_OK(hf_faulty_set(w.s, w.db, &slow, 1));
    CHECK_OK(hf_subscribe(w.s, w.store, HF_STR("q"),
                          HF_OPTIONS(hf_subscribe_options, .each = note, .user = &seen,
                                     .poll_ms = 10 * PATIENCE_MS, .lease_ms = 10 * PATIENCE_MS),
                          &sub));
    CHECK_OK(hf_subscription_start(w.s, sub));
    append_to(w.s, w.store, "0", 1);
    wait_for(w.s, &seen.count, 1);
    do { /* until it has nothing more to do */
        calls = calls_of(&w);
        CHECK_OK(hf_scope_sleep_ms(w.s, 400));
    } while (calls_of(&w) != calls);
    CHECK_OK(hf_scope_sleep_ms(w.s, 2200));
    CHECK_INT(calls, calls_of(&w));
    append_to(w.s, w.store, "0", 1);
    wait_for(w.s, &seen.count, 2);
    hf_subscription_close(sub);
    close_world(&w);
}

/* A function that does not return is canceled at the deadline; its event comes again. */
TEST(subscribe_thread, stops_at_the_deadline)
{
    struct world w = open_world();
    struct seen seen = {.blocks = 1};
    struct hf_subscription *sub;

    CHECK_OK(hf_subscribe(w.s, w.store, HF_STR("q"),
                          HF_OPTIONS(hf_subscribe_options, .each = note, .user = &seen), &sub));
    append_to(w.s, w.store, "0", 2);
    CHECK_OK(hf_subscription_start(w.s, sub));
    wait_for(w.s, &seen.blocked, 1);
    hf_scope_timeout_ms(w.s, 20);
    CHECK_STATUS(HF_TIMEOUT, hf_subscription_stop(w.s, sub));
    CHECK_ERROR(HF_TIMEOUT, "a handler of \"q\" had to be canceled", w.s);
    hf_scope_reset(w.s);
    CHECK_INT(0, atomic_load(&seen.count));
    CHECK_OK(hf_subscription_start(w.s, sub));
    wait_for(w.s, &seen.count, 2);
    atomic_store(&seen.blocks, 1);
    append_to(w.s, w.store, "0", 1);
    wait_for(w.s, &seen.blocked, 2);
    hf_subscription_close(sub); /* does not wait for it to end by itself */
    CHECK_INT(2, atomic_load(&seen.count));
    close_world(&w);
}

/* The lease is renewed while a function runs for longer than it. */
TEST(subscribe_thread, long_work_keeps_the_lease_and_another_takes_over)
{
    enum { LEASE_MS = 1500 };
    struct world w = open_world();
    struct seen ann_seen = {.blocks = 1}, ben_seen = {.count = 0};
    struct hf_subscription *ann, *ben;
    struct hf_subscription_metrics metrics;

    CHECK_OK(hf_subscribe(w.s, w.store, HF_STR("q"),
                          HF_OPTIONS(hf_subscribe_options, .each = note, .user = &ann_seen,
                                     .lease_ms = LEASE_MS, .poll_ms = 20),
                          &ann));
    CHECK_OK(hf_subscribe(w.s, w.store, HF_STR("q"),
                          HF_OPTIONS(hf_subscribe_options, .each = note, .user = &ben_seen,
                                     .lease_ms = LEASE_MS, .poll_ms = 20),
                          &ben));
    append_to(w.s, w.store, "0", 1);
    CHECK_OK(hf_subscription_start(w.s, ann));
    wait_for(w.s, &ann_seen.blocked, 1);
    CHECK_OK(hf_subscription_start(w.s, ben));
    CHECK_OK(hf_scope_sleep_ms(w.s, LEASE_MS + LEASE_MS / 2));
    hf_subscription_metrics(ann, &metrics);
    if (metrics.lost == 0) /* the machine had the time to renew it */
        CHECK_INT(0, atomic_load(&ben_seen.count));
    hf_subscription_close(ann);
    wait_for(w.s, &ben_seen.count, 1);
    hf_subscription_close(ben);
    close_world(&w);
}

/* ---- groups --------------------------------------------------------------------------------- */

static enum hf_status count(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct seen *seen = user;

    (void)s;
    if (!event->position.ptr)
        atomic_fetch_add(&seen->wrong, 1);
    atomic_fetch_add(&seen->count, 1);
    return HF_OK;
}

TEST(subscribe_thread, groups_share_events)
{
    for (int ordered = 0; ordered < 2; ordered++) {
        struct world w = open_world();
        struct seen seen = {.count = 0};
        struct hf_group *groups[2];
        struct hf_group_metrics metrics;

        for (int i = 0; i < 2; i++) {
            CHECK_OK(hf_group_open(w.s, w.store, HF_STR("g"),
                                   HF_OPTIONS(hf_group_options, .ordered = ordered, .handle = count,
                                              .user = &seen, .workers = 2, .poll_ms = 20),
                                   &groups[i]));
            CHECK_OK(hf_group_start(w.s, groups[i]));
        }
        CHECK_STATUS(HF_IN_USE, hf_group_start(w.s, groups[0]));
        for (int i = 0; i < 30; i++)
            append_to(w.s, w.store, i % 2 ? "0" : "1", 1);
        wait_for(w.s, &seen.count, 30);
        hf_scope_timeout_ms(w.s, PATIENCE_MS);
        for (int i = 0; i < 2; i++)
            CHECK_OK(hf_group_stop(w.s, groups[i]));
        CHECK_INT(30, atomic_load(&seen.count));
        CHECK_INT(0, atomic_load(&seen.wrong));
        CHECK_OK(hf_group_metrics(w.s, groups[0], &metrics));
        CHECK_INT(0, metrics.pending + metrics.parked);
        for (int i = 0; i < 2; i++)
            hf_group_close(groups[i]);
        close_world(&w);
    }
}

/* ---- functions that do not return ----------------------------------------------------------- */

struct trap {
    atomic_bool open, waits;
    atomic_int told, handled, parked;
};

static enum hf_status fall(struct hf_scope *s, const struct hf_stored_event *event, void *user)
{
    struct trap *trap = user;

    (void)s;
    while (atomic_load(&trap->waits) && hf_str_equal(event->type, HF_STR("deep")) &&
           !atomic_load(&trap->open))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    atomic_fetch_add(&trap->handled, 1);
    return HF_OK;
}

static void trap_told(enum hf_subscription_event what, const struct hf_stored_event *event,
                      const struct hf_error *error, void *user)
{
    struct trap *trap = user;

    (void)error;
    if (what == HF_SUBSCRIPTION_STUCK && hf_str_equal(event->type, HF_STR("deep")))
        atomic_fetch_add(&trap->told, 1);
    if (what == HF_SUBSCRIPTION_PARKED)
        atomic_fetch_add(&trap->parked, 1);
}

static struct hf_subscription *trap_start(struct hf_scope *s, struct hf_events *store,
                                          struct trap *trap, enum hf_stuck stuck)
{
    struct hf_subscription *sub;

    CHECK_OK(hf_subscribe(s, store, HF_STR("trap"),
                          HF_OPTIONS(hf_subscribe_options, .each = fall, .on_notice = trap_told,
                                     .lease_ms = 10000, .poll_ms = 10, .stuck_ms = 50,
                                     .settle_ms = 1, .stuck = stuck, .user = trap),
                          &sub));
    CHECK_OK(hf_subscription_start(s, sub));
    return sub;
}

static void trap_wait(atomic_int *count, int least)
{
    for (int i = 0; i < 20000 && atomic_load(count) < least; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    CHECK(atomic_load(count) >= least);
}

/* The second is hung over; another process goes on with it, or behind it. */
static void one_is_deep(struct test *t, enum hf_stuck stuck)
{
    struct hf_new_event events[] = {{.type = HF_STR("flat")},
                                    {.type = HF_STR("deep")},
                                    {.type = HF_STR("flat")}};
    struct hf_append append = {.stream = {HF_STR("s"), HF_STR("1")},
                               .events = events,
                               .events_len = 3};
    struct trap trap = {.waits = true}, other = {.waits = false};
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_subscription_metrics metrics;
    struct hf_subscription *sub, *second;
    struct hf_subscription_info info;
    struct hf_events *store;
    struct hf_db *db;

    (void)t;
    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf_events_open(s, db, NULL, &store));
    CHECK_OK(hf_events_append(s, store, &append, 1, NULL, NULL));
    sub = trap_start(s, store, &trap, stuck);
    trap_wait(&trap.told, 1);
    hf_subscription_metrics(sub, &metrics);
    CHECK_INT(1, metrics.stuck);
    second = trap_start(s, store, &other, stuck);
    if (stuck == HF_STUCK_LEAVE) {
        nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        CHECK_INT(0, atomic_load(&other.handled));
    } else {
        trap_wait(&other.handled, stuck == HF_STUCK_RELEASE ? 2 : 1);
    }
    CHECK_INT(1, atomic_load(&trap.told));
    CHECK_INT(stuck == HF_STUCK_GIVE_UP, atomic_load(&trap.parked));
    atomic_store(&trap.open, true);
    trap_wait(&trap.handled, stuck == HF_STUCK_LEAVE ? 3 : 2);
    CHECK_OK(hf_subscription_stop(s, sub));
    CHECK_OK(hf_subscription_stop(s, second));
    CHECK_OK(hf_subscription_info(s, store, HF_STR("trap"), &info));
    CHECK_INT(stuck == HF_STUCK_GIVE_UP, info.parked);
    CHECK_INT(stuck == HF_STUCK_GIVE_UP ? 2 : 3,
              info.handled); /* it came late, and changed nothing */
    hf_subscription_metrics(sub, &metrics);
    CHECK_INT(1, metrics.stuck_total);
    CHECK_INT(0, metrics.stuck);
    hf_subscription_close(second);
    hf_subscription_close(sub);
    hf_events_close(store);
    hf_db_close(db);
    hf_scope_free(s);
}

/* Stopping ends in time although the function does not, and another process goes on. */
TEST(subscribe_thread, a_stop_leaves_behind_what_does_not_return)
{
    struct hf_new_event deep = {.type = HF_STR("deep")};
    struct hf_append append = {.stream = {HF_STR("s"), HF_STR("1")},
                               .events = &deep,
                               .events_len = 1};
    struct trap trap = {.waits = true}, other = {.waits = false};
    struct world w = open_world();
    struct hf_subscription *sub, *second;
    struct hf_subscription_info info;

    (void)t;
    CHECK_OK(hf_events_append(w.s, w.store, &append, 1, NULL, NULL));
    sub = trap_start(w.s, w.store, &trap, HF_STUCK_LEAVE);
    trap_wait(&trap.told, 1);
    for (int i = 0; i < 2; i++) {
        hf_scope_timeout_ms(w.s, 10);
        CHECK_STATUS(HF_TIMEOUT, hf_subscription_stop(w.s, sub));
        CHECK(strstr(hf_scope_error_text(w.s), "has not returned"));
    }
    hf_scope_timeout_ms(w.s, 0);
    CHECK_STATUS(HF_IN_USE, hf_subscription_start(w.s, sub));
    second = trap_start(w.s, w.store, &other, HF_STUCK_LEAVE); /* the lease has ten seconds */
    trap_wait(&other.handled, 1);
    CHECK_INT(0, atomic_load(&trap.handled));
    atomic_store(&trap.open, true);
    CHECK_OK(hf_subscription_stop(w.s, sub));
    CHECK_INT(1, atomic_load(&trap.handled));
    CHECK_OK(hf_subscription_stop(w.s, second));
    CHECK_OK(hf_subscription_info(w.s, w.store, HF_STR("trap"), &info));
    CHECK_INT(1, info.handled); /* not by the one that was left behind */
    CHECK_OK(hf_subscription_start(w.s, sub));
    hf_subscription_close(second);
    hf_subscription_close(sub);
    close_world(&w);
}

struct caller {
    struct trap trap;
    _Atomic(struct hf_subscription *) sub;
    atomic_int refused;
};

static void stop_when_told(enum hf_subscription_event what, const struct hf_stored_event *event,
                           const struct hf_error *error, void *user)
{
    struct caller *caller = user;
    struct hf_scope *own = hf_scope_new(NULL);
    struct hf_subscription_metrics metrics;

    (void)event, (void)error;
    if (what == HF_SUBSCRIPTION_STUCK) {
        hf_subscription_metrics(atomic_load(&caller->sub), &metrics);
        CHECK_INT(1, metrics.stuck);
        CHECK_STATUS(HF_INVALID, hf_subscription_stop(own, atomic_load(&caller->sub)));
        atomic_fetch_add(&caller->refused, 1);
    }
    hf_scope_free(own);
}

static enum hf_status fall_and_stop(struct hf_scope *s, const struct hf_stored_event *event,
                                    void *user)
{
    struct caller *caller = user;

    CHECK_STATUS(HF_INVALID, hf_subscription_stop(s, atomic_load(&caller->sub)));
    return fall(s, event, &caller->trap);
}

/* What is told, and the function itself, are refused what would wait for itself. */
TEST(subscribe_thread, who_is_told_may_call_the_subscription)
{
    struct hf_new_event deep = {.type = HF_STR("deep")};
    struct hf_append append = {.stream = {HF_STR("s"), HF_STR("1")},
                               .events = &deep,
                               .events_len = 1};
    struct caller caller = {.trap = {.waits = true}};
    struct world w = open_world();
    struct hf_subscription *sub;

    (void)t;
    CHECK_OK(hf_subscribe(w.s, w.store, HF_STR("trap"),
                          HF_OPTIONS(hf_subscribe_options, .each = fall_and_stop,
                                     .on_notice = stop_when_told, .poll_ms = 10, .stuck_ms = 50,
                                     .settle_ms = 1, .user = &caller),
                          &sub));
    atomic_store(&caller.sub, sub);
    CHECK_OK(hf_events_append(w.s, w.store, &append, 1, NULL, NULL));
    CHECK_OK(hf_subscription_start(w.s, sub));
    trap_wait(&caller.refused, 1);
    atomic_store(&caller.trap.open, true);
    trap_wait(&caller.trap.handled, 1);
    CHECK_OK(hf_subscription_stop(w.s, sub));
    hf_subscription_close(sub);
    close_world(&w);
}

/* ---- handlers of groups --------------------------------------------------------------------- */

static void group_told(const struct hf_stored_event *event, uint64_t for_ms, void *user)
{
    struct trap *trap = user;

    CHECK(hf_str_equal(event->stream.id, HF_STR("1")) && event->version == 1 && for_ms >= 50);
    CHECK(hf_str_equal(event->type, HF_STR("deep")));
    atomic_fetch_add(&trap->told, 1);
}

static struct hf_group *group_start(struct world *w, struct trap *trap, enum hf_stuck stuck,
                                    bool ordered)
{
    struct hf_group *group;

    CHECK_OK(hf_group_open(w->s, w->store, HF_STR("g"),
                           HF_OPTIONS(hf_group_options, .ordered = ordered, .handle = fall,
                                      .user = trap, .workers = 2, .poll_ms = 10, .stuck_ms = 50,
                                      .stuck = stuck, .on_stuck = group_told),
                           &group));
    CHECK_OK(hf_group_start(w->s, group));
    return group;
}

/* A handler of a group that does not return is told, counted, and dealt with. */
static void one_of_a_group(struct test *t, enum hf_stuck stuck, bool ordered)
{
    struct hf_new_event deep = {.type = HF_STR("deep")};
    struct hf_append append = {.stream = {HF_STR("s"), HF_STR("1")},
                               .events = &deep,
                               .events_len = 1};
    struct trap trap = {.waits = true}, other = {.waits = false};
    struct hf_group *group, *second = NULL;
    struct hf_group_metrics metrics;
    struct world w = open_world();

    (void)t;
    CHECK_OK(hf_events_append(w.s, w.store, &append, 1, NULL, NULL));
    group = group_start(&w, &trap, stuck, ordered);
    trap_wait(&trap.told, 1);
    CHECK_OK(hf_group_metrics(w.s, group, &metrics));
    CHECK_INT(1, metrics.stuck);
    CHECK_INT(1, metrics.stuck_total);
    if (stuck == HF_STUCK_RELEASE) {
        second = group_start(&w, &other, stuck, ordered);
        trap_wait(&other.handled, 1);
    }
    for (int i = 0; i < PATIENCE_MS && stuck == HF_STUCK_GIVE_UP && !metrics.parked; i++) {
        CHECK_OK(hf_scope_sleep_ms(w.s, 1));
        CHECK_OK(hf_group_metrics(w.s, group, &metrics));
    }
    CHECK_INT(stuck == HF_STUCK_GIVE_UP, metrics.parked);
    atomic_store(&trap.open, true);
    trap_wait(&trap.handled, 1);
    CHECK_OK(hf_group_stop(w.s, group));
    CHECK_OK(hf_group_metrics(w.s, group, &metrics));
    CHECK_INT(stuck == HF_STUCK_GIVE_UP, metrics.parked);
    CHECK_INT(0, metrics.stuck);
    CHECK_INT(1, atomic_load(&trap.told));
    CHECK_INT(1, atomic_load(&trap.handled));
    hf_group_close(second);
    hf_group_close(group);
    close_world(&w);
}

TEST(subscribe_thread, a_group_tells_what_does_not_return)
{
    one_of_a_group(t, HF_STUCK_LEAVE, false);
    one_of_a_group(t, HF_STUCK_LEAVE, true);
}

TEST(subscribe_thread, a_group_gives_it_to_others)
{
    one_of_a_group(t, HF_STUCK_RELEASE, false);
    one_of_a_group(t, HF_STUCK_RELEASE, true);
}

TEST(subscribe_thread, a_group_parks_it)
{
    one_of_a_group(t, HF_STUCK_GIVE_UP, false);
    one_of_a_group(t, HF_STUCK_GIVE_UP, true);
}

TEST(subscribe_thread, what_does_not_return_is_told)
{
    one_is_deep(t, HF_STUCK_LEAVE);
}

TEST(subscribe_thread, another_takes_over_what_does_not_return)
{
    one_is_deep(t, HF_STUCK_RELEASE);
}

TEST(subscribe_thread, what_does_not_return_is_parked)
{
    one_is_deep(t, HF_STUCK_GIVE_UP);
}
