/*
 * client/outage_test.c: the network is gone for a while, or the server is, under load.
 *
 * Each thread counts in an item of its own: ADD n 1, of which some are acked, some are unknown, and
 * the rest did not happen. In the end
 *
 *     acked <= n <= acked + unknown
 *
 * or a write was lost, or happened although the client said that it did not, or happened twice.
 * Between two adds it puts a new item, which is there if that was acked. Every call ends by its
 * deadline.
 */
#include <holdfast/client.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "requests.h"
#include "rig.h"

enum { CALL_MS = 400, SLACK_MS = 100, THREADS_MAX = 24, PUTS_MAX = 20000, RECOVERY_MS = 2000 };

struct load {
    struct hf_db *db;
    atomic_bool stop;
    size_t threads;
    struct counter {
        struct load *load;
        pthread_t thread;
        unsigned number;
        long acked, unknown, failed;
        long longest_ms; /* of a call, without what the machine was late by */
        long puts;
        bool put_acked[PUTS_MAX];
        _Atomic int64_t last_good_ms; /* when the last call that succeeded had begun */
    } counters[THREADS_MAX];
};

static void nap(int64_t ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Count what came of a call that began then. */
static void note(struct counter *c, struct hf_scope *s, enum hf_status status, int64_t begun_ms,
                 int64_t late_ms, bool counts)
{
    long took = (long)(chaos_now_ms() - begun_ms - (chaos_late_ms() - late_ms));

    if (took > c->longest_ms)
        c->longest_ms = took;
    if (status == HF_OK)
        atomic_store(&c->last_good_ms, begun_ms);
    if (!counts)
        return;
    c->acked += status == HF_OK;
    c->unknown += status != HF_OK && hf_scope_error(s)->may_have_happened;
    c->failed += status != HF_OK && !hf_scope_error(s)->may_have_happened;
}

static void add_one(struct counter *c, struct hf_scope *s)
{
    int64_t begun = chaos_now_ms(), late = chaos_late_ms();
    struct hf_update_item update = {.table = HF_STR("tab"),
                                    .key = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "counter %u",
                                                                                 c->number))),
                                    .update = HF_STR("ADD n :one"),
                                    .values = HF_ITEM(s, HF_N(":one", 1))};

    hf_scope_timeout_ms(s, CALL_MS);
    note(c, s, hf_update_item(s, c->load->db, &update, NULL), begun, late, true);
    hf_scope_reset(s);
}

static void put_one(struct counter *c, struct hf_scope *s)
{
    int64_t begun = chaos_now_ms(), late = chaos_late_ms();
    struct hf_put_item put = {.table = HF_STR("tab"),
                              .item = HF_ITEM(s, HF_S("pk", hf_scope_format(s, "item %u %ld",
                                                                            c->number, c->puts)))};
    enum hf_status status;

    hf_scope_timeout_ms(s, CALL_MS);
    status = hf_put_item(s, c->load->db, &put, NULL);
    c->put_acked[c->puts++] = status == HF_OK;
    note(c, s, status, begun, late, false);
    hf_scope_reset(s);
}

static void *count(void *user)
{
    struct counter *c = user;
    struct hf_scope *s = hf_scope_new(NULL);

    MUST(s != NULL);
    while (!atomic_load(&c->load->stop)) {
        add_one(c, s);
        if (c->puts < PUTS_MAX)
            put_one(c, s);
        nap(1); /* a client that fails at once must not burn the processor */
    }
    hf_scope_free(s);
    return NULL;
}

static struct load *load_start(struct rig *rig, uint16_t port, size_t threads)
{
    struct hf_client_options options = {
        .size = sizeof(options),
        .region = HF_STR("us-east-1"),
        .credentials = {.access_key = HF_STR("key"), .secret_key = HF_STR("secret")},
        .proxy = HF_STR("none"),
        .no_aws_config = true,
        .attempt_ms = 150,
        .retry = {.max_attempts = 3, .backoff_ms = 5, .throttle_ms = 10, .backoff_max_ms = 50}};
    struct load *load = calloc(1, sizeof(*load));

    CHECK(load != NULL);
    rig_do(rig, "CreateTable",
           "{'TableName':'tab','BillingMode':'PAY_PER_REQUEST',"
           "'KeySchema':[{'AttributeName':'pk','KeyType':'HASH'}],"
           "'AttributeDefinitions':[{'AttributeName':'pk','AttributeType':'S'}]}");
    CHECK_OK(hf_connect(rig->truth.scope,
                        hf_scope_format(rig->truth.scope, "http://127.0.0.1:%u", (unsigned)port),
                        &options, &load->db));
    load->threads = threads;
    for (size_t i = 0; i < threads; i++) {
        load->counters[i].load = load;
        load->counters[i].number = (unsigned)i;
        MUST(pthread_create(&load->counters[i].thread, NULL, count, &load->counters[i]) == 0);
    }
    return load;
}

/* How long from `since` until every thread had begun a call that then succeeded; -1: too long. While others have
   the processors calls run into their deadlines, so what is lost that way counts several times. */
static int64_t recovery_ms(struct load *load, int64_t since_ms)
{
    int64_t late_ms = chaos_late_ms();

    for (;;) {
        size_t good = 0;

        for (size_t i = 0; i < load->threads; i++)
            good += atomic_load(&load->counters[i].last_good_ms) >= since_ms;
        if (good == load->threads)
            return chaos_now_ms() - since_ms;
        if (chaos_now_ms() - since_ms > RECOVERY_MS + 8 * (chaos_late_ms() - late_ms))
            return -1;
        nap(2);
    }
}

static void load_stop(struct load *load)
{
    atomic_store(&load->stop, true);
    for (size_t i = 0; i < load->threads; i++)
        pthread_join(load->counters[i].thread, NULL);
    hf_db_close(load->db);
}

/* The counter of a thread, or the nth item that it put. */
static struct hf_item true_item(struct rig *rig, unsigned thread, long nth)
{
    struct hf_scope *s = rig->truth.scope;
    struct hf_get_item_result got;
    char name[64];

    hf_scope_reset(s);
    if (nth < 0)
        snprintf(name, sizeof(name), "counter %u", thread);
    else
        snprintf(name, sizeof(name), "item %u %ld", thread, nth);
    CHECK_OK(hf_get_item(s, rig->truth.db,
                         &(struct hf_get_item){.table = HF_STR("tab"),
                                               .key = HF_ITEM(s, HF_S("pk", hf_str_from(name)))},
                         &got));
    return got.item;
}

/* Nothing is lost and nothing doubled; every call was in time. */
static void judge(struct rig *rig, struct load *load)
{
    long acked = 0, unknown = 0, failed = 0, longest = 0;

    for (size_t i = 0; i < load->threads; i++) {
        struct counter *c = &load->counters[i];
        struct hf_item item = true_item(rig, c->number, -1);
        int64_t n = 0;

        if (item.ptr)
            CHECK(hf_value_i64(hf_item_get(item, HF_STR("n")), &n));
        if (n < c->acked || n > c->acked + c->unknown)
            fail_msg("thread %zu: %lld adds happened; %ld were acked, %ld unknown, %ld failed", i,
                     (long long)n, c->acked, c->unknown, c->failed);
        for (long k = 0; k < c->puts; k++)
            if (c->put_acked[k] && !true_item(rig, c->number, k).ptr)
                fail_msg("thread %zu: item %ld was acked and is lost", i, k);
        if (c->longest_ms > CALL_MS + SLACK_MS)
            fail_msg("thread %zu: a call took %ld ms", i, c->longest_ms);
        acked += c->acked;
        unknown += c->unknown;
        failed += c->failed;
        longest = c->longest_ms > longest ? c->longest_ms : longest;
    }
    print_message("%ld adds acked, %ld unknown, %ld failed; the longest call took %ld ms\n", acked,
                  unknown, failed, longest);
    CHECK(acked > 100);
    free(load);
}

/* N2 */
TEST(outage, the_client_recovers_soon_after_a_partition)
{
    static const struct {
        unsigned directions;
        int64_t ms;
    } rounds[] = {{CHAOS_THERE, 200}, {CHAOS_BACK, 200}, {CHAOS_THERE | CHAOS_BACK, 200},
                  {CHAOS_THERE, 500}, {CHAOS_BACK, 500}, {CHAOS_THERE | CHAOS_BACK, 700},
                  {CHAOS_BACK, 30}};
    int64_t longest = 0;
    struct load *load;
    struct rig rig;

    rig_open(&rig);
    load = load_start(&rig, chaos_port(rig.chaos), 8);
    for (size_t i = 0; i < sizeof(rounds) / sizeof(rounds[0]); i++) {
        int64_t ms;

        nap(100);
        chaos_partition(rig.chaos, rounds[i].directions);
        nap(rounds[i].ms);
        chaos_partition(rig.chaos, 0);
        ms = recovery_ms(load, chaos_now_ms());
        if (ms < 0)
            fail_msg("after round %zu not every thread works again", i);
        longest = ms > longest ? ms : longest;
    }
    load_stop(load);
    CHECK(chaos_quiet(rig.chaos, 30000)); /* no connection is left behind */
    print_message("the longest recovery took %lld ms\n", (long long)longest);
    judge(&rig, load);
    rig_close(&rig);
}

/* N3 */
TEST(outage, a_server_that_restarts_loses_nothing)
{
    struct load *load;
    struct rig rig;

    rig_open(&rig);
    load = load_start(&rig, rig.port, THREADS_MAX);
    for (unsigned i = 0; i < 8; i++) {
        nap(150);
        rig_stop_server(&rig);
        nap(i * 15); /* connections are refused meanwhile */
        rig_start_server(&rig);
        if (recovery_ms(load, chaos_now_ms()) < 0)
            fail_msg("after restart %u not every thread works again", i);
    }
    load_stop(load);
    judge(&rig, load);
    rig_close(&rig);
}
