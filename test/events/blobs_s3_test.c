/*
 * test/events/blobs_s3_test.c: payloads in S3, a strict fake of it: sweeps go by its trash.
 */
#include "../blob/fake_s3.h"
#include "events_kit.h"

#include <holdfast/blob.h>
#include <holdfast/engine.h>

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

enum { OLD_S = 60, LARGE = 5000 };

/* S3 looks at the time of signatures, so the clock is the system's, plus what has passed. */
static _Atomic int64_t passed_s;

static int64_t clock_us(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000 + passed_s * 1000000;
}

static int64_t wall_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_REALTIME);
}

static int64_t elapsed_us(void *user)
{
    (void)user;
    return clock_us(CLOCK_MONOTONIC);
}

static void sleep_us(int64_t us, void *user)
{
    (void)user;
    usleep((useconds_t)us);
}

/* An event store with its payloads in S3. */
struct bench {
    struct kit k;
    struct hf_env env;
    struct fake_s3 *fake;
    struct hf_blobs *blobs;
    struct hf_events *store;
};

static void bench_open(struct test *t, struct bench *b)
{
    struct hf_client_options client = {.size = sizeof(client),
                                       .region = HF_STR("eu-central-1"),
                                       .credentials = {.access_key = HF_STR(FAKE_KEY),
                                                       .secret_key = HF_STR(FAKE_SECRET)},
                                       .no_aws_config = true};

    *b = (struct bench){.k = {.t = t, .table = HF_STR("events")}, .env = *test_env(t)};
    passed_s = 0;
    b->env.wall_us = wall_us;
    b->env.elapsed_us = elapsed_us;
    b->env.sleep = sleep_us;
    client.env = &b->env;
    b->fake = calloc(1, sizeof(*b->fake));
    CHECK(b->fake != NULL);
    fake_open(b->fake);
    b->k.scope = hf_scope_new(&b->env);
    CHECK_OK(hf_open(b->k.scope, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .env = &b->env),
                     &b->k.db));
    CHECK_OK(hf_blobs_open(b->k.scope,
                           hf_scope_format(b->k.scope, "s3://test-bucket/p?endpoint=%s",
                                           b->fake->listener.origin),
                           HF_OPTIONS(hf_blobs_options, .client = &client), &b->blobs));
    b->store =
        open_store_with(&b->k, (struct hf_events_options){.blobs = b->blobs, .blob_bytes = 1000});
}

static void bench_close(struct bench *b)
{
    hf_events_close(b->store);
    hf_blobs_close(b->blobs);
    hf_db_close(b->k.db);
    fake_close(b->fake);
    free(b->fake);
    hf_scope_free(b->k.scope);
}

static void append_blob(struct bench *b, struct hf_event_stream_key stream, const char *id)
{
    uint8_t *bytes = hf_scope_alloc(b->k.scope, LARGE);
    struct hf_new_event event = {.id = hf_str_from(id),
                                 .type = HF_STR("t"),
                                 .payload = hf_bytes_of(bytes, LARGE)};
    struct hf_append append = {.stream = stream, .events = &event, .events_len = 1};

    memset(bytes, id[0], LARGE);
    CHECK_OK(hf_events_append(b->k.scope, b->store, &append, 1, NULL, NULL));
}

static uint64_t sweep_later(struct bench *b)
{
    struct hf_events_swept swept;

    passed_s += OLD_S + 40;
    b->fake->clock_off_s += OLD_S + 40;
    CHECK_OK(hf_events_sweep(b->k.scope, b->store, OLD_S, &swept));
    return swept.blobs;
}

/* What no event has is in the trash after one sweep, and gone after another. */
TEST(blobs_s3, what_no_event_has_goes)
{
    struct hf_stored_event event;
    struct bench b;
    uint64_t removed = 0;

    bench_open(t, &b);
    append_blob(&b, ORDER("1"), "a");
    append_blob(&b, ORDER("2"), "b");
    CHECK_INT(2, b.fake->objects_len);
    CHECK_INT(0, sweep_later(&b));
    CHECK_INT(0, b.fake->copies);
    CHECK_OK(hf_events_tombstone(b.k.scope, b.store, ORDER("1"), HF_EXPECT_ANY, 0));
    for (int i = 0; i < 4; i++)
        removed += sweep_later(&b);
    CHECK_INT(1, removed);
    CHECK_INT(1, b.fake->objects_len);
    CHECK_INT(1, b.fake->copies);
    CHECK_OK(hf_events_get(b.k.scope, b.store, HF_STR("b"), &event));
    CHECK_INT(LARGE, event.payload.len);
    bench_close(&b);
}
