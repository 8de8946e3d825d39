/*
 * relay/relay_cross_test.c: what happens at the same time: relays of several parts that come and
 * go, somebody who wakes a relay while it looks, a stop from where it cannot be waited for.
 */
#include <holdfast/engine.h>
#include <holdfast/relay.h>

#include <stdatomic.h>
#include <unistd.h>

#include "kit.h"
#include "relay_kit.h"

#include "../db/between.h"

/* ---- members -------------------------------------------------------------------------------- */

/* One at work, four of another part that wait; then a second of the part that is at work. */
KIT_TEST(relay_cross, no_bucket_is_left_without_an_owner)
{
    struct hf_outbox *outbox;
    struct ear *ear = ear_open(k->scope, 1, false);
    struct hf_relay *relays[6];
    struct hf_relay_metrics one, two;

    CHECK_OK(hf_outbox_open(k->scope, k->db,
                            HF_OPTIONS(hf_outbox_options, .table = k->table, .buckets = 8),
                            &outbox));
    for (int i = 0; i < 6; i++) {
        struct hf_relay_options o = {.size = sizeof(o), .no_threads = true};

        if (i && i < 5)
            o.only_tenant = HF_STR("acme");
        CHECK_OK(hf_relay_open(k->scope, outbox, ear->sink, &o, &relays[i]));
        relays_run_for(k->t, k->scope, relays, (size_t)i + 1, 3000);
    }
    relays_run_for(k->t, k->scope, relays, 6, 120000);
    hf_relay_metrics(relays[0], &one);
    hf_relay_metrics(relays[5], &two);
    CHECK_INT(8, one.buckets + two.buckets);
    for (int i = 0; i < 6; i++)
        hf_relay_close(relays[i]);
    ear_close(ear);
    hf_outbox_close(outbox);
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Threads: an idle relay, and somebody who wakes it. */
struct waker {
    struct hf_outbox *outbox;
    atomic_bool stop;
};

static void *wakes(void *user)
{
    struct waker *w = user;

    while (!atomic_load(&w->stop)) {
        hf_outbox_wake(w->outbox);
        usleep(1500);
    }
    return NULL;
}

TEST(relay_cross, a_wake_at_the_moment_of_a_look)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    struct waker w = {0};
    struct ear *ear = ear_open(s, 1, false);
    struct hf_relay *relay;
    pthread_t threads[2];

    (void)t;
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    CHECK_OK(hf_outbox_open(s, db, HF_OPTIONS(hf_outbox_options, .buckets = 2), &w.outbox));
    CHECK_OK(hf_relay_open(s, w.outbox, ear->sink,
                           HF_OPTIONS(hf_relay_options, .workers = 4, .poll_ms = 1), &relay));
    CHECK_OK(hf_relay_start(s, relay));
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, wakes, &w);
    usleep(1500000);
    atomic_store(&w.stop, true);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    hf_scope_timeout_ms(s, 60000);
    CHECK_OK(hf_relay_stop(s, relay));
    hf_relay_close(relay);
    hf_outbox_close(w.outbox);
    ear_close(ear);
    hf_db_close(db);
    hf_scope_free(s);
}

static enum hf_status deny_stream(struct hf_scope *s, struct between *b, enum hf_op op,
                                  const void *request, void *response)
{
    if (op == HF_OP_DESCRIBE_STREAM)
        return hf_scope_fail(s, HF_DENIED, "not allowed");
    return between_pass(s, b, op, request, response);
}

static struct hf_relay *the_relay;
static atomic_int said = -1;

static void stop_it(const struct hf_error *error, void *user)
{
    struct hf_scope *s = hf_scope_new(NULL);

    (void)user;
    if (error->status == HF_DENIED && atomic_load(&said) < 0) {
        hf_scope_timeout_ms(s, 60000);
        atomic_store(&said, (int)hf_relay_stop(s, the_relay));
    }
    hf_scope_free(s);
}

/* It would wait for itself, and says so. */
TEST(relay_cross, a_stop_by_who_watches_the_stream)
{
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_db *db;
    struct hf_outbox *outbox;
    struct between between;
    struct ear *ear = ear_open(s, 1, false);

    (void)t;
    CHECK_OK(hf_open(s, HF_STR("memory:"), NULL, &db));
    between = between_of(db);
    between.on_call = deny_stream;
    CHECK_OK(
        hf_outbox_open(s, &between.db, HF_OPTIONS(hf_outbox_options, .stream = true), &outbox));
    CHECK_OK(
        hf_relay_open(s, outbox, ear->sink,
                      HF_OPTIONS(hf_relay_options, .wake_by_stream = true, .on_error = stop_it),
                      &the_relay));
    CHECK_OK(hf_relay_start(s, the_relay));
    for (int i = 0; i < 600 && atomic_load(&said) < 0; i++)
        usleep(100000);
    CHECK_INT(HF_INVALID, atomic_load(&said));
    hf_relay_close(the_relay);
    hf_outbox_close(outbox);
    ear_close(ear);
    hf_db_close(db);
    hf_scope_free(s);
}
