/*
 * counter/counter_threads_test.c: sixteen writers, 64,000 adds in all, over databases that
 * lose requests and answers: in memory, on disk, and behind a server. Promise P13.
 */
#include <holdfast/client.h>
#include <holdfast/counter.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>

#include <pthread.h>
#include <sched.h>
#include <stdio.h>

#include "rig.h"
#include "test.h"

enum { WRITERS = 16, TABLES = 4 };

struct writer {
    struct hf_counters *counters;
    int adds;
    unsigned which;
    uint64_t sum, open; /* of adds that were done, and of those that may have been */
    uint64_t out;       /* what came out of the last one */
    bool backwards;     /* it was not above what came out before */
    char failure[200];
};

/* An env in which nobody sleeps: the waits of lost answers would be most of the time. */
static void no_sleep(int64_t us, void *user)
{
    (void)user;
    (void)us;
    sched_yield();
}

static const struct hf_env restless = {.size = sizeof(restless), .sleep = no_sleep};

static void *write_on(void *user)
{
    struct writer *w = user;
    struct hf_scope *s = hf_scope_new(&restless);

    for (int i = 0; i < w->adds && !w->failure[0]; i++) {
        int64_t by = 1 + (i + (int)w->which) % 3, value;
        enum hf_status status;

        hf_scope_reset(s);
        status = hf_counter_add(s, w->counters, hf_counter_named(HF_STR("sum")), by,
                                HF_OPTIONS(hf_counter_options, .floor = HF_ZERO), &value);
        if (status == HF_OK) {
            w->sum += (uint64_t)by;
            w->backwards = w->backwards || (uint64_t)value < w->out + (uint64_t)by;
            w->out = (uint64_t)value;
        } else if (hf_scope_error(s)->may_have_happened) {
            w->open += (uint64_t)by;
        } else if (!hf_scope_error(s)->may_retry) {
            snprintf(w->failure, sizeof(w->failure), "%s", hf_scope_error_text(s));
        }
    }
    hf_scope_free(s);
    return NULL;
}

/* On `inner`, which is closed; every fiftieth answer and request gets lost. */
static void add_by_threads(struct hf_scope *s, struct hf_db *inner, int adds)
{
    struct hf_fault faults[] = {
        {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("UpdateItem"), .probability = 0.02},
        {.kind = HF_FAULT_LOST_REQUEST, .operation = HF_STR("UpdateItem"), .probability = 0.02}};
    struct hf_counters *tables[TABLES];
    struct writer writers[WRITERS];
    pthread_t threads[WRITERS];
    uint64_t sum = 0, open = 0;
    const struct hf_fault *struck;
    struct hf_db *db;
    int64_t value;
    size_t len;

    CHECK_OK(hf_faulty_open(s, inner, &db));
    for (int i = 0; i < TABLES; i++) /* as many processes, of four threads each */
        CHECK_OK(hf_counters_open(s, db, NULL, &tables[i]));
    CHECK_OK(hf_faulty_set(s, db, faults, 2));
    for (unsigned i = 0; i < WRITERS; i++) {
        writers[i] =
            (struct writer){.counters = tables[i % TABLES], .adds = adds / WRITERS, .which = i};
        CHECK(pthread_create(&threads[i], NULL, write_on, &writers[i]) == 0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    CHECK_OK(hf_faulty_get(s, db, &struck, &len));
    CHECK(struck[0].struck > (uint64_t)adds / 100 && struck[1].struck > (uint64_t)adds / 100);
    CHECK_OK(hf_faulty_set(s, db, NULL, 0));
    for (int i = 0; i < WRITERS; i++) {
        CHECK_STR("", hf_str_from(writers[i].failure));
        CHECK(!writers[i].backwards);
        sum += writers[i].sum;
        open += writers[i].open;
    }
    CHECK_OK(hf_counter_get(s, tables[0], hf_counter_named(HF_STR("sum")), &value));
    CHECK((uint64_t)value >= sum && (uint64_t)value <= sum + open);
    CHECK(open <= (uint64_t)adds / 1000);
    for (int i = 0; i < TABLES; i++)
        hf_counters_close(tables[i]);
    hf_db_close(db);
}

static void on_engine(struct hf_str url, int adds)
{
    struct hf_scope *s = hf_scope_new(&restless);
    struct hf_engine_options options = {.size = sizeof(options), .sync = HF_SYNC_NONE};
    struct hf_db *db;

    CHECK_OK(hf_open(s, url, &options, &db));
    add_by_threads(s, db, adds);
    hf_scope_free(s);
}

TEST(counter_threads, exact_in_memory)
{
    on_engine(HF_STR("memory:"), (int)test_times(32000));
}

TEST(counter_threads, exact_on_disk)
{
    char url[300];

    snprintf(url, sizeof(url), "embedded:%s/db", test_quick_directory(t));
    on_engine(hf_str_from(url), (int)test_times(16000));
}

TEST(counter_threads, exact_behind_a_server)
{
    struct hf_scope *s = hf_scope_new(&restless);
    struct hf_db *db;
    struct rig rig;

    rig_open(&rig);
    CHECK_OK(hf_connect(s, rig_url(&rig, s),
                        HF_OPTIONS(hf_client_options, .env = &restless, .no_aws_config = true),
                        &db));
    add_by_threads(s, db, (int)test_times(16000));
    hf_scope_free(s);
    rig_close(&rig);
}
