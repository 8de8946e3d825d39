/*
 * test/events/append_threads_test.c: a store used by many threads at once, and by two at a time
 * that do not know of each other, by the system's clock; and with failing allocations.
 */
#include <holdfast/engine.h>
#include <holdfast/events.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "events_kit.h"

enum { THREADS = 6, APPENDS = 40, STREAMS = 3 };

struct stage {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_events *stores[2]; /* as if of two processes */
    atomic_int number, woken, conflicts;
    atomic_bool stop;
};

static void stage_open(struct stage *stage)
{
    memset(stage, 0, sizeof(*stage));
    stage->s = hf_scope_new(NULL);
    CHECK_OK(hf_open(stage->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &stage->db));
    for (int i = 0; i < 2; i++)
        CHECK_OK(hf_events_open(stage->s, stage->db, NULL, &stage->stores[i]));
}

static void stage_close(struct stage *stage)
{
    for (int i = 0; i < 2; i++)
        hf_events_close(stage->stores[i]);
    hf_db_close(stage->db);
    hf_scope_free(stage->s);
}

static void run_threads(struct stage *stage, void *(*run)(void *))
{
    pthread_t threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        CHECK_INT(0, pthread_create(&threads[i], NULL, run, stage));
    for (int i = 0; i < THREADS; i++)
        CHECK_INT(0, pthread_join(threads[i], NULL));
}

static struct hf_event_stream_key stream_of(int number)
{
    static const char *const names[STREAMS] = {"a", "b", "c"};

    return (struct hf_event_stream_key){HF_STR("order"), hf_str_from(names[number % STREAMS])};
}

/* Each event has an id that says whose it is and which, so that losses and doubles show. */
static void *append_any(void *user)
{
    struct stage *stage = user;
    struct hf_scope *s = hf_scope_new(NULL);
    int thread = atomic_fetch_add(&stage->number, 1);
    struct hf_append_options patient = {.size = sizeof(patient), .max_attempts = 1000};

    for (int i = 0; i < APPENDS; i++) {
        struct hf_str id = hf_scope_format(s, "%d-%d", thread, i);
        struct hf_new_event events[] = {{.type = HF_STR("t"), .id = id}, {.type = HF_STR("u")}};
        struct hf_append append = {.stream = stream_of(i), .events = events, .events_len = 2};
        struct hf_appended done;

        CHECK_OK(hf_events_append(s, stage->stores[thread % 2], &append, 1, &patient, &done));
        CHECK_INT(done.first + 1, done.last);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

static void check_stream(struct stage *stage, int number, size_t expected)
{
    struct hf_events_page page;

    CHECK_OK(hf_events_read(stage->s, stage->stores[0], stream_of(number),
                            HF_OPTIONS(hf_events_read_options, .limit = 100000), &page));
    CHECK_INT(expected, page.events_len);
    CHECK_INT(expected, page.version);
    for (size_t i = 0; i < page.events_len; i++) {
        CHECK_INT(i + 1, page.events[i].version);
        CHECK_STR(i % 2 ? "u" : "t", page.events[i].type);
        CHECK(i == 0 || memcmp(page.events[i - 1].position.ptr, page.events[i].position.ptr,
                               HF_POSITION_LEN) < 0);
    }
}

/* P12: no gap, no version twice, no event lost; events of one append are neighbours. */
TEST(threads, many_append_to_few_streams)
{
    struct stage stage;

    stage_open(&stage);
    run_threads(&stage, append_any);
    for (int i = 0; i < STREAMS; i++) {
        size_t each = (size_t)(APPENDS / STREAMS + (i < APPENDS % STREAMS));

        check_stream(&stage, i, 2 * THREADS * each);
    }
    for (int thread = 0; thread < THREADS; thread++)
        for (int i = 0; i < APPENDS; i++) {
            struct hf_stored_event event;
            struct hf_str id = hf_scope_format(stage.s, "%d-%d", thread, i);

            CHECK_OK(hf_events_get(stage.s, stage.stores[1], id, &event));
        }
    stage_close(&stage);
}

/* Read, and append if it is still so: of those who try one wins. */
static void *append_expecting(void *user)
{
    struct stage *stage = user;
    struct hf_scope *s = hf_scope_new(NULL);
    int thread = atomic_fetch_add(&stage->number, 1), done = 0;
    struct hf_events *store = stage->stores[thread % 2];
    struct hf_new_event events[] = {{.type = HF_STR("t")}, {.type = HF_STR("u")}};

    while (done < APPENDS / 4) {
        struct hf_append append = {.stream = stream_of(0),
                                   .expect = HF_EXPECT_VERSION,
                                   .events = events,
                                   .events_len = 2};
        struct hf_events_page page;
        enum hf_status status;

        CHECK_OK(hf_events_read(s, store, append.stream,
                                HF_OPTIONS(hf_events_read_options, .limit = 1, .backward = true),
                                &page));
        append.version = page.version;
        status = hf_events_append(s, store, &append, 1, NULL, NULL);
        CHECK(status == HF_OK || status == HF_CONDITION);
        done += status == HF_OK;
        atomic_fetch_add(&stage->conflicts, status == HF_CONDITION);
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(threads, of_those_who_expect_the_same_version_one_wins)
{
    struct stage stage;

    stage_open(&stage);
    run_threads(&stage, append_expecting);
    check_stream(&stage, 0, 2 * THREADS * (APPENDS / 4));
    stage_close(&stage);
}

static void woken(void *user)
{
    struct stage *stage = user;

    CHECK(!atomic_load(&stage->stop));
    atomic_fetch_add(&stage->woken, 1);
}

static void *come_and_go(void *user)
{
    struct stage *stage = user;
    struct hf_scope *s = hf_scope_new(NULL);

    for (int i = 0; i < APPENDS; i++) {
        struct hf_new_event event = {.type = HF_STR("t")};
        struct hf_append append = {.stream = stream_of(i), .events = &event, .events_len = 1};
        struct stage mine = {.s = s};

        CHECK_OK(hf_events_listen(s, stage->stores[0], woken, &mine));
        CHECK_OK(hf_events_append(s, stage->stores[0], &append, 1,
                                  HF_OPTIONS(hf_append_options, .max_attempts = 1000), NULL));
        hf_events_unlisten(stage->stores[0], woken, &mine);
        CHECK(atomic_load(&mine.woken) > 0);
        atomic_store(&mine.stop, true); /* nobody who has left is called */
        hf_scope_reset(s);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(threads, those_who_listen_come_and_go)
{
    struct stage stage;

    stage_open(&stage);
    run_threads(&stage, come_and_go);
    stage_close(&stage);
}

/* ---- no memory ------------------------------------------------------------------------------ */

/* What one round does: all kinds of appends, and reads. */
static enum hf_status do_all(struct hf_scope *s, struct hf_events *store, struct hf_blobs *blobs,
                             uint64_t round)
{
    struct hf_new_event events[120];
    struct hf_append appends[2];
    struct hf_appended done[2];
    struct hf_events_page page;
    struct hf_stored_event event;
    enum hf_status status;
    char stream[24];

    (void)blobs;
    snprintf(stream, sizeof(stream), "%llu", (unsigned long long)round);
    for (size_t i = 0; i < 120; i++)
        events[i] = (struct hf_new_event){.type = HF_STR("t"), .payload = PAYLOAD("payload")};
    events[1].id = hf_scope_format(s, "id-%s", stream);
    events[1].causation = HF_STR("c");
    events[1].correlation = HF_STR("o");
    if (!events[1].id.ptr)
        return HF_NOMEM;
    appends[0] = (struct hf_append){.stream = {HF_STR("a"), hf_str_from(stream)},
                                    .events = events,
                                    .events_len = 2};
    appends[1] = (struct hf_append){.stream = {HF_STR("b"), hf_str_from(stream)},
                                    .events = events,
                                    .events_len = 1};
    status = hf_events_append(s, store, appends, 2, NULL, done);
    if (status != HF_OK)
        return status;
    events[1].id = hf_str_of(NULL, 0);
    appends[0].events_len = 120;
    status = hf_events_append(s, store, appends, 1, NULL, done);
    if (status != HF_OK)
        return status;
    status = hf_events_get(s, store, done[0].ids[60], &event);
    if (status != HF_OK)
        return status;
    status = hf_events_read(s, store, appends[0].stream,
                            HF_OPTIONS(hf_events_read_options, .backward = true), &page);
    return status;
}

/* Each allocation fails once: it is said, nothing is half there, and nothing is lost or leaks. */
TEST(threads, without_memory_all_of_an_append_is_there_or_nothing)
{
    struct hf_scope *outside = hf_scope_new(NULL);
    struct hf_db *db;
    uint64_t round = 0;

    CHECK_OK(hf_open(outside, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_events *store = NULL;
        enum hf_status status =
            s ? hf_events_open(s, db, HF_OPTIONS(hf_events_options, .heads = 4), &store) : HF_NOMEM;
        struct hf_events_page page = {.version = 0};

        CHECK((status == HF_OK) == (store != NULL));
        if (status == HF_OK)
            status = do_all(s, store, NULL, ++round);
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        if (s)
            hf_scope_reset(s);
        if (store) {
            struct hf_event_stream_key a = {HF_STR("a"),
                                            hf_scope_format(s, "%llu", (unsigned long long)round)};
            struct hf_event_stream_key b = {HF_STR("b"), a.id};
            uint64_t version;

            CHECK_OK(hf_events_read(s, store, a, NULL, &page));
            version = page.version;
            CHECK(version == 0 || version == 2 || version == 122);
            CHECK_OK(hf_events_read(s, store, b, NULL, &page));
            CHECK_INT(version > 0, page.version);
        }
        hf_events_close(store);
        hf_scope_free(s);
    }
    hf_db_close(db);
    hf_scope_free(outside);
}
