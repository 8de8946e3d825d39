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
                                  HF_OPTIONS(hf_append_options, .attempts = 1000), NULL);
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
    CHECK_STATUS(HF_LOCKED, hf_subscription_start(w.s, sub));
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
    CHECK_ERROR(HF_TIMEOUT, "a function of \"q\" had to be canceled", w.s);
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
        CHECK_STATUS(HF_LOCKED, hf_group_start(w.s, groups[0]));
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
