/*
 * relay/relay_thread_test.c: relays with their threads, by the system's clock, on a database in
 * memory.
 */
#include <holdfast/relay.h>

#include <holdfast/engine.h>
#include <holdfast/faults.h>

#include <stdatomic.h>
#include <time.h>

#include "patient.h"
#include "relay_kit.h"

#include "blob/private.h"
#include "relay/relay.h"

enum { LONG_MS = 60000 }; /* until a test gives up */

static int64_t now_us(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

static void nap_ms(int64_t ms)
{
    const struct timespec for_ms = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&for_ms, NULL);
}

struct stage {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_outbox *outbox;
    struct ear *ear;
};

static void stage_open_on(struct stage *stage, const struct hf_env *env, size_t batch_max,
                          bool keeps_order)
{
    struct hf_db *inner;

    stage->s = hf_scope_new(env);
    CHECK_OK(hf_open(stage->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &inner));
    CHECK_OK(hf_faulty_open(stage->s, inner, &stage->db));
    CHECK_OK(hf_outbox_open(stage->s, stage->db, NULL, &stage->outbox));
    stage->ear = ear_open(stage->s, batch_max, keeps_order);
}

static void stage_open(struct stage *stage, size_t batch_max, bool keeps_order)
{
    stage_open_on(stage, NULL, batch_max, keeps_order);
}

static void stage_close(struct stage *stage)
{
    ear_close(stage->ear);
    hf_outbox_close(stage->outbox);
    hf_db_close(stage->db);
    hf_scope_free(stage->s);
}

static struct hf_relay *start(struct stage *stage, struct hf_relay_options options)
{
    struct hf_relay *relay;

    options.size = sizeof(options);
    CHECK_OK(hf_relay_open(stage->s, stage->outbox, stage->ear->sink, &options, &relay));
    CHECK_OK(hf_relay_start(stage->s, relay));
    return relay;
}

static void wait_for_len(struct stage *stage, size_t len)
{
    for (int64_t end = now_us() + LONG_MS * 1000; ear_len(stage->ear) < len;) {
        CHECK(now_us() < end);
        nap_ms(1);
    }
}

static void wait_for_calls(struct stage *stage, size_t calls)
{
    for (int64_t end = now_us() + LONG_MS * 1000; ear_calls(stage->ear) < calls;) {
        CHECK(now_us() < end);
        nap_ms(1);
    }
}

static struct hf_relay_metrics metrics_of(struct hf_relay *relay)
{
    struct hf_relay_metrics metrics;

    hf_relay_metrics(relay, &metrics);
    return metrics;
}

static void wait_for_delivered(struct hf_relay *relay, uint64_t count)
{
    for (int64_t end = now_us() + LONG_MS * 1000; metrics_of(relay).delivered < count;) {
        CHECK(now_us() < end);
        nap_ms(1);
    }
}

static void wait_for_buckets(struct hf_relay *relay, uint32_t count)
{
    for (int64_t end = now_us() + LONG_MS * 1000; metrics_of(relay).buckets != count;) {
        CHECK(now_us() < end);
        nap_ms(1);
    }
}

static void stop(struct stage *stage, struct hf_relay *relay)
{
    hf_scope_reset(stage->s);
    hf_scope_timeout_ms(stage->s, LONG_MS);
    CHECK_OK(hf_relay_stop(stage->s, relay));
    hf_scope_reset(stage->s);
}

/* ---- delivering ----------------------------------------------------------------------------- */

TEST(relay_thread, each_once_and_keys_in_order)
{
    struct stage stage;
    struct hf_relay *relay;
    int last[50] = {0};

    stage_open(&stage, 10, false);
    for (int i = 0; i < 2000; i++) {
        hf_scope_reset(stage.s);
        emit(stage.s, stage.outbox, hf_scope_format(stage.s, "key%d", i % 50).ptr, i + 1);
    }
    relay = start(&stage, (struct hf_relay_options){0});
    for (int i = 2000; i < 4000; i++) {
        hf_scope_reset(stage.s);
        emit(stage.s, stage.outbox, hf_scope_format(stage.s, "key%d", i % 50).ptr, i + 1);
    }
    wait_for_delivered(relay, 4000);
    CHECK_INT(4000, ear_len(stage.ear));
    for (size_t i = 0; i < 4000; i++) {
        int number = stage.ear->heard[i].number;

        CHECK(last[(number - 1) % 50] < number); /* so none is there twice */
        last[(number - 1) % 50] = number;
    }
    CHECK_INT(0, metrics_of(relay).refused);
    CHECK_INT(0, metrics_of(relay).unsure);
    CHECK(metrics_of(relay).batches < 4000);
    stop(&stage, relay);
    CHECK_INT(0, metrics_of(relay).buckets);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* However slow noting is, few are delivered and not noted, so few come twice after a crash. */
TEST(relay_thread, noting_is_not_far_behind)
{
    enum { EVENTS = 2500, NOTES = 4 * 100 }; /* under way, by four workers */
    struct hf_fault slow = {.kind = HF_FAULT_LATENCY,
                            .operation = HF_STR("BatchWriteItem"),
                            .latency_ms = 5};
    struct hf_relay *relay;
    struct stage stage;
    size_t worst = 0;

    stage_open(&stage, 1, false);
    for (int i = 0; i < EVENTS; i++) {
        hf_scope_reset(stage.s);
        emit(stage.s, stage.outbox, "", i + 1);
    }
    CHECK_OK(hf_faulty_set(stage.s, stage.db, &slow, 1));
    relay = start(&stage, (struct hf_relay_options){0});
    for (uint64_t noted = 0; noted < EVENTS;) {
        size_t heard;

        noted = metrics_of(relay).delivered;
        heard = ear_len(stage.ear); /* later than that: no less than there were */
        worst = heard > noted && heard - noted > worst ? heard - noted : worst;
        nap_ms(1);
    }
    CHECK_INT(EVENTS, ear_len(stage.ear));
    CHECK(worst <= NOTES + RELAY_NOTE_BEHIND + 200);
    stop(&stage, relay);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* Nobody waits for a poll: those would take an hour. */
TEST(relay_thread, who_emits_wakes_it)
{
    struct stage stage;
    struct hf_relay *relay;
    int64_t took[20];

    stage_open(&stage, 1, false);
    relay = start(&stage, (struct hf_relay_options){.poll_ms = 3600000});
    wait_for_buckets(relay, HF_OUTBOX_BUCKETS);
    nap_ms(50);
    for (int i = 0; i < 20; i++) {
        int64_t begun = now_us();

        hf_scope_reset(stage.s);
        emit(stage.s, stage.outbox, hf_scope_format(stage.s, "key%d", i).ptr, i);
        while (ear_len(stage.ear) <= (size_t)i)
            CHECK(now_us() < begun + LONG_MS * 1000);
        took[i] = now_us() - begun;
        nap_ms(2);
    }
    if (getenv("HF_RELAY_SHOW"))
        for (int i = 0; i < 20; i++)
            printf("%lld us\n", (long long)took[i]);
    stop(&stage, relay);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* Who emits through another outbox does not wake it; the stream of the table does. */
TEST(relay_thread, the_stream_wakes_it)
{
    struct hf_outbox_options with_stream = {.size = sizeof(with_stream),
                                            .table = HF_STR("streamed"),
                                            .stream = true};
    struct stage stage;
    struct hf_outbox *here, *there;
    struct hf_relay *relay;

    stage_open(&stage, 1, false);
    CHECK_OK(hf_outbox_open(stage.s, stage.db, &with_stream, &here));
    CHECK_OK(hf_outbox_open(stage.s, stage.db, &with_stream, &there));
    CHECK_OK(hf_relay_open(stage.s, here, stage.ear->sink,
                           HF_OPTIONS(hf_relay_options, .poll_ms = 3600000, .wake_ms = 5,
                                      .wake_by_stream = true),
                           &relay));
    for (size_t life = 0; life < 2; life++) { /* it may be started again */
        CHECK_OK(hf_relay_start(stage.s, relay));
        wait_for_buckets(relay, HF_OUTBOX_BUCKETS);
        nap_ms(50);
        for (size_t i = 0; i < 20; i++) {
            hf_scope_reset(stage.s);
            emit(stage.s, there, hf_scope_format(stage.s, "key%d", (int)i).ptr, (int)i);
            wait_for_len(&stage, life * 20 + i + 1);
        }
        CHECK(metrics_of(relay).stream_reads > 0);
        stop(&stage, relay);
    }
    hf_relay_close(relay);
    hf_outbox_close(here);
    hf_outbox_close(there);
    stage_close(&stage);
}

/*
 * While a read is under way that shows all of a key, the sink fails for those that were sent. They
 * are in the table still, and come before what the read shows behind them.
 */
static void come_back_during_a_read(bool fails)
{
    const struct hf_fault slow = {.kind = HF_FAULT_LATENCY,
                                  .operation = HF_STR("Query"),
                                  .count = 1,
                                  .latency_ms = 400};
    struct stage stage;
    struct hf_relay *relay;

    stage_open(&stage, 10, true);
    stage.ear->down = !fails;
    stage.ear->fails = fails ? 1 : -1;
    stage.ear->fail_times = 1;
    stage.ear->work_ms = 150;
    for (int i = 1; i <= 3; i++)
        emit(stage.s, stage.outbox, "key", i);
    relay =
        start(&stage,
              (struct hf_relay_options){.poll_ms = 3600000, .breaker_ms = 300, .backoff_ms = 10});
    for (int64_t end = now_us() + LONG_MS * 1000; !metrics_of(relay).batches; nap_ms(1))
        CHECK(now_us() < end);
    CHECK_OK(hf_faulty_set(stage.s, stage.db, &slow, 1));
    emit(stage.s, stage.outbox, "key", 4);
    for (int64_t end = now_us() + LONG_MS * 1000;
         !metrics_of(relay).outages && !metrics_of(relay).retried; nap_ms(1))
        CHECK(now_us() < end);
    stage.ear->down = false;
    wait_for_delivered(relay, 4);
    for (int i = 1; i < 4; i++)
        CHECK(ear_first(stage.ear, i) < ear_first(stage.ear, i + 1));
    CHECK_INT(4 + fails, ear_len(stage.ear));
    CHECK_INT(0, metrics_of(relay).refused);
    stop(&stage, relay);
    hf_relay_close(relay);
    stage_close(&stage);
}

TEST(relay_thread, what_comes_back_during_a_read_stays_in_order)
{
    come_back_during_a_read(false);
    come_back_during_a_read(true);
}

struct crowd {
    atomic_int now, most;
    int wanted;
};

static void count_calls(void *user)
{
    struct crowd *crowd = user;
    int now = atomic_fetch_add(&crowd->now, 1) + 1, most = atomic_load(&crowd->most);

    while (now > most && !atomic_compare_exchange_weak(&crowd->most, &most, now)) {
    }
    /* Let others come: those who should, and for a moment one more. */
    for (int64_t end = now_us() + LONG_MS * 1000;
         atomic_load(&crowd->most) < crowd->wanted && now_us() < end;)
        nap_ms(1);
    nap_ms(2);
    atomic_fetch_sub(&crowd->now, 1);
}

/* Presets: calls of the sink at once. */
TEST(relay_thread, presets_have_so_many_workers)
{
    static const int workers[] = {
        [HF_RELAY_BALANCED] = 4, [HF_RELAY_THROUGHPUT] = 8, [HF_RELAY_RELIABILITY] = 1};

    for (int preset = HF_RELAY_BALANCED; preset <= HF_RELAY_RELIABILITY; preset++) {
        struct crowd crowd = {.wanted = workers[preset]};
        struct stage stage;
        struct hf_relay *relay;

        stage_open(&stage, 1, false);
        stage.ear->during = count_calls;
        stage.ear->user = &crowd;
        for (int i = 0; i < 24; i++)
            emit(stage.s, stage.outbox, "", i);
        relay = start(&stage, (struct hf_relay_options){.preset = (enum hf_relay_preset)preset});
        wait_for_delivered(relay, 24);
        CHECK_INT(workers[preset], atomic_load(&crowd.most));
        stop(&stage, relay);
        hf_relay_close(relay);
        stage_close(&stage);
    }
}

TEST(relay_thread, an_idle_one_does_little)
{
    struct stage stage;
    struct hf_relay *relay;
    struct hf_relay_metrics before, after;
    int64_t begun;

    stage_open(&stage, 1, false);
    relay = start(&stage, (struct hf_relay_options){.poll_ms = 200});
    wait_for_buckets(relay, HF_OUTBOX_BUCKETS);
    nap_ms(300);
    begun = now_us();
    before = metrics_of(relay);
    nap_ms(1000);
    do { /* it polls, each bucket every 200 ms at most */
        CHECK(now_us() - begun < LONG_MS * 1000);
        nap_ms(1);
        after = metrics_of(relay);
    } while (after.reads == before.reads);
    CHECK((int64_t)(after.reads - before.reads) <= 16 * ((now_us() - begun) / 200000 + 1));
    CHECK_INT(0, after.writes);
    stop(&stage, relay);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* ---- stopping ------------------------------------------------------------------------------- */

TEST(relay_thread, stop_lets_what_runs_end)
{
    struct stage stage;
    struct hf_relay *relay;
    size_t len;

    stage_open(&stage, 1, false);
    stage.ear->work_ms = 100;
    for (int i = 0; i < 100; i++)
        emit(stage.s, stage.outbox, "", i);
    relay = start(&stage, (struct hf_relay_options){.workers = 2});
    wait_for_calls(&stage, 2);
    stop(&stage, relay);
    len = ear_len(stage.ear);
    CHECK(len >= 2 && len < 100);
    CHECK_INT(len, metrics_of(relay).delivered);
    CHECK_INT(0, metrics_of(relay).unsure);
    stage.ear->work_ms = 0;
    CHECK_OK(hf_relay_start(stage.s, relay)); /* and on */
    wait_for_delivered(relay, 100);
    CHECK_INT(100, ear_len(stage.ear));
    CHECK_STATUS(HF_IN_USE, hf_relay_start(stage.s, relay));
    hf_relay_close(relay);
    stage_close(&stage);
}

TEST(relay_thread, stop_cancels_at_its_deadline)
{
    struct stage stage;
    struct hf_relay *relay;
    int64_t begun;

    stage_open(&stage, 1, false);
    stage.ear->work_ms = LONG_MS;
    emit(stage.s, stage.outbox, "a", 1);
    relay = start(&stage, (struct hf_relay_options){.timeout_ms = LONG_MS * 2});
    while (metrics_of(relay).batches == 0)
        nap_ms(1);
    begun = now_us();
    hf_scope_reset(stage.s);
    hf_scope_timeout_ms(stage.s, 50);
    CHECK_STATUS(HF_TIMEOUT, hf_relay_stop(stage.s, relay));
    CHECK(now_us() - begun < LONG_MS * 1000 / 2);
    hf_scope_reset(stage.s);
    CHECK_INT(0, ear_len(stage.ear));
    CHECK_INT(0, metrics_of(relay).retried); /* nobody was to blame */
    CHECK_INT(0, metrics_of(relay).outages);
    stage.ear->work_ms = 0;
    CHECK_OK(hf_relay_start(stage.s, relay));
    wait_for_delivered(relay, 1);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* A store that answers when it is too late. */
struct far_store {
    struct hf_blobs blobs;
    atomic_int asked;
};

static enum hf_status far_get(struct hf_scope *s, struct hf_blobs *blobs, struct hf_str digest,
                              struct hf_bytes *bytes)
{
    (void)digest;
    (void)bytes;
    atomic_fetch_add(&((struct far_store *)blobs)->asked, 1);
    return hf_scope_sleep_ms(s, LONG_MS);
}

/* Fetching a payload ends with the rest, and is nobody's fault either. */
TEST(relay_thread, stop_cancels_what_is_fetched)
{
    static const struct blob_kind kind = {.get = far_get};

    for (int competing = 0; competing < 2; competing++) {
        struct far_store far = {.blobs = {.kind = &kind, .max = HF_BLOB_MAX}};
        struct hf_update_item update;
        struct hf_event_list list;
        struct hf_relay *relay;
        struct stage stage;
        int64_t begun;

        stage_open(&stage, 1, false);
        emit(stage.s, stage.outbox, "a", 1);
        CHECK_OK(hf_outbox_pending(stage.s, stage.outbox, NULL, &list));
        update = (struct hf_update_item){
            .table = stage.outbox->table,
            .key = hf__outbox_key(stage.s, stage.outbox, "p", list.events[0].bucket,
                                  list.events[0].ref),
            .update = HF_STR("SET #blob = :blob REMOVE #payload"),
            .names = HF_ITEM(stage.s, HF_S("#blob", HF_STR("blob")),
                             HF_S("#payload", HF_STR("payload"))),
            .values = HF_ITEM(stage.s, HF_S(":blob", HF_STR("0123456789abcdef0123456789abcdef"
                                                            "0123456789abcdef0123456789abcdef")))};
        CHECK_OK(hf_update_item(stage.s, stage.db, &update, NULL));
        stage.outbox->blobs = &far.blobs;
        relay = start(&stage,
                      (struct hf_relay_options){.timeout_ms = LONG_MS * 2, .competing = competing});
        while (atomic_load(&far.asked) == 0)
            nap_ms(1);
        begun = now_us();
        hf_scope_reset(stage.s);
        hf_scope_timeout_ms(stage.s, 50);
        CHECK_STATUS(HF_TIMEOUT, hf_relay_stop(stage.s, relay));
        CHECK(now_us() - begun < LONG_MS * 1000 / 2);
        CHECK_INT(0, metrics_of(relay).retried);
        CHECK_INT(0, metrics_of(relay).outages);
        hf_relay_close(relay);
        stage.outbox->blobs = NULL;
        hf_scope_reset(stage.s);
        CHECK_OK(hf_outbox_pending(stage.s, stage.outbox, NULL, &list));
        CHECK_INT(1, list.events_len);
        CHECK_INT(0, list.events[0].attempts);
        CHECK_INT(0, list.events[0].owner.len); /* competing: it was given back */
        stage_close(&stage);
    }
}

/* ---- several -------------------------------------------------------------------------------- */

TEST(relay_thread, two_share_and_hand_over)
{
    struct hf_relay_options options = {.lease_ms = LONG_MS, .heartbeat_ms = 50, .poll_ms = 100};
    struct stage stage;
    struct hf_relay *one, *other;

    stage_open(&stage, 5, false);
    one = start(&stage, options);
    wait_for_buckets(one, 16);
    other = start(&stage, options);
    wait_for_buckets(other, 8);
    wait_for_buckets(one, 8);
    for (int i = 0; i < 500; i++)
        emit(stage.s, stage.outbox, hf_scope_format(stage.s, "key%d", i % 100).ptr, i);
    wait_for_len(&stage, 500);
    CHECK(metrics_of(one).batches > 0 && metrics_of(other).batches > 0);
    stop(&stage, other);
    wait_for_buckets(one, 16);
    for (int i = 500; i < 600; i++)
        emit(stage.s, stage.outbox, hf_scope_format(stage.s, "key%d", i % 100).ptr, i);
    wait_for_len(&stage, 600);
    stop(&stage, one);
    CHECK_INT(600, ear_len(stage.ear));
    CHECK_INT(600, metrics_of(one).delivered + metrics_of(other).delivered);
    CHECK_INT(0, metrics_of(one).refused + metrics_of(other).refused);
    CHECK_INT(0, metrics_of(one).taken_over + metrics_of(other).taken_over);
    hf_relay_close(other);
    hf_relay_close(one);
    stage_close(&stage);
}

/* ---- competing ------------------------------------------------------------------------------ */

TEST(relay_thread, competing_ones_share_what_is_there)
{
    struct hf_relay_options options = {.competing = true, .poll_ms = 100, .batch = 8};
    struct stage stage;
    struct hf_relay *one, *other;

    stage_open(&stage, 3, false);
    for (int i = 0; i < 200; i++)
        emit(stage.s, stage.outbox, "", i);
    one = start(&stage, options);
    other = start(&stage, options);
    wait_for_len(&stage, 200);
    for (int i = 200; i < 220; i++)
        emit(stage.s, stage.outbox, "", i);
    wait_for_len(&stage, 220);
    stop(&stage, one);
    stop(&stage, other);
    for (int i = 0; i < 220; i++)
        CHECK_INT(1, ear_count(stage.ear, i));
    CHECK_INT(220, metrics_of(one).delivered + metrics_of(other).delivered);
    hf_relay_close(other);
    hf_relay_close(one);
    stage_close(&stage);
}

/* A handler that takes longer than a lease keeps its claim. */
TEST(relay_thread, a_claim_is_renewed_while_it_is_worked_on)
{
    struct hf_relay_options options = {.competing = true,
                                       .poll_ms = 50,
                                       .lease_ms = 450,
                                       .timeout_ms = LONG_MS};
    struct stage stage;
    struct hf_relay *one, *other;

    stage_open_on(&stage, patient_begin(), 1, false);
    stage.ear->work_ms = 1500;
    emit(stage.s, stage.outbox, "", 1);
    one = start(&stage, options);
    other = start(&stage, options);
    wait_for_len(&stage, 1);
    stop(&stage, one);
    stop(&stage, other);
    CHECK_INT(1, ear_len(stage.ear));
    CHECK_INT(1, metrics_of(one).delivered + metrics_of(other).delivered);
    hf_relay_close(other);
    hf_relay_close(one);
    stage_close(&stage);
    patient_end();
}

TEST(relay_thread, drains_and_returns)
{
    struct stage stage;
    struct hf_relay *relay;
    uint64_t delivered;

    stage_open(&stage, 10, true);
    for (int i = 0; i < 1000; i++)
        emit(stage.s, stage.outbox, hf_scope_format(stage.s, "key%d", i % 9).ptr, i);
    CHECK_OK(hf_relay_open(stage.s, stage.outbox, stage.ear->sink, NULL, &relay));
    hf_scope_reset(stage.s);
    hf_scope_timeout_ms(stage.s, LONG_MS);
    CHECK_OK(hf_relay_drain(stage.s, relay, &delivered));
    CHECK_INT(1000, delivered);
    CHECK_INT(1000, ear_len(stage.ear));
    hf_scope_reset(stage.s);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* The sink is away: a drain ends by stall_ms without a deadline, and lets others go on at once. */
TEST(relay_thread, a_drain_ends_without_the_sink)
{
    struct hf_relay_options options = {.size = sizeof(options), .stall_ms = 300};
    struct hf_relay *relay;
    struct stage stage;
    uint64_t delivered;

    stage_open(&stage, 10, false);
    emit(stage.s, stage.outbox, "", 1);
    stage.ear->down = true;
    CHECK_OK(hf_relay_open(stage.s, stage.outbox, stage.ear->sink, &options, &relay));
    CHECK_STATUS(HF_TIMEOUT, hf_relay_drain(stage.s, relay, &delivered));
    CHECK_INT(0, delivered);
    CHECK_INT(0, metrics_of(relay).buckets);
    hf_scope_timeout_ms(stage.s, 100);
    CHECK_STATUS(HF_TIMEOUT, hf_relay_drain(stage.s, relay, &delivered));
    hf_relay_close(relay);

    stage.ear->down = false;
    options.stall_ms = 0;
    hf_scope_timeout_ms(stage.s, LONG_MS);
    CHECK_OK(hf_relay_open(stage.s, stage.outbox, stage.ear->sink, &options, &relay));
    CHECK_OK(hf_relay_drain(stage.s, relay, &delivered));
    CHECK_INT(1, delivered);
    hf_relay_close(relay);
    stage_close(&stage);
}

/* How often an operation was called since it was to be counted. */
static void count_operation(struct stage *stage, const char *operation)
{
    struct hf_fault fault = {.kind = HF_FAULT_LATENCY,
                             .operation = hf_str_from(operation),
                             .latency_ms = 1};

    CHECK_OK(hf_faulty_set(stage->s, stage->db, &fault, 1));
}

static uint64_t calls_counted(struct stage *stage)
{
    const struct hf_fault *faults;
    size_t len;

    CHECK_OK(hf_faulty_get(stage->s, stage->db, &faults, &len));
    CHECK_INT(1, len);
    return faults[0].struck;
}

/* Its timer is called every second; a table without a stream is looked at once in a minute. */
TEST(relay_thread, looks_seldom_for_a_stream)
{
    struct hf_relay *relay;
    struct stage stage;

    stage_open(&stage, 10, false);
    count_operation(&stage, "DescribeTable");
    relay = start(&stage, (struct hf_relay_options){.wake_by_stream = true});
    wait_for_buckets(relay, 16);
    nap_ms(2300);
    for (int64_t end = now_us() + LONG_MS * 1000; !calls_counted(&stage); nap_ms(1))
        CHECK(now_us() < end);
    CHECK(!metrics_of(relay).watching);
    CHECK_INT(1, calls_counted(&stage));
    stop(&stage, relay);
    CHECK_OK(hf_relay_start(stage.s, relay)); /* at once, when it goes on */
    for (int64_t end = now_us() + LONG_MS * 1000; calls_counted(&stage) < 2;) {
        CHECK(now_us() < end);
        nap_ms(1);
    }
    stop(&stage, relay);
    hf_relay_close(relay);
    stage_close(&stage);
}
