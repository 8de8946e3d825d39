/*
 * streams/consumer_thread_test.c: consumers with their threads, by the system's clock, on a
 * database in memory; and consumers that are real processes, and are killed.
 *
 * A child is this program again, with its orders in the environment: it consumes from a server and
 * writes a line into a ledger for each change. Its parent kills it now and then, and in the end the
 * ledger has every change, none before the one before it of its item.
 */
#include <holdfast/streams.h>

#include <holdfast/client.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>
#include <holdfast/lock.h>
#include <holdfast/table.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "patient.h"
#include "rig.h"
#include "test.h"

enum { ITEMS = 16, PATIENCE_MS = 60000 /* until a test gives up */ };

static void sleep_ms(int64_t ms)
{
    const struct timespec for_ms = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&for_ms, NULL);
}

static int64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static void make_table(struct hf_scope *s, struct hf_db *db)
{
    struct hf_attribute_definition id = {HF_STR("id"), HF_SCALAR_S};
    struct hf_key_element key = {HF_STR("id"), HF_KEY_HASH};
    struct hf_stream_spec stream = {.enabled = HF_YES, .view = HF_VIEW_NEW_IMAGE};
    struct hf_create_table spec = {.table = HF_STR("things"),
                                   .attributes = &id,
                                   .attributes_len = 1,
                                   .key_schema = &key,
                                   .key_schema_len = 1,
                                   .stream = &stream};

    CHECK_OK(hf_table_ensure(s, db, &spec, NULL));
}

static void put(struct hf_scope *s, struct hf_db *db, int item, int n)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_put_item put = {.table = HF_STR("things"),
                              .item = HF_ITEM(s, HF_S("id", hf_scope_format(s, "%c", 'a' + item)),
                                              HF_N("n", n))};

    CHECK_OK(hf_put_item(s, db, &put, NULL));
    hf_scope_rewind(s, mark);
}

static void read_change(const struct hf_change *change, int *item, int *n)
{
    int64_t number = 0;

    *item = hf_value_str(hf_item_get(change->key, HF_STR("id"))).ptr[0] - 'a';
    (void)hf_value_i64(hf_item_get(change->new_image, HF_STR("n")), &number);
    *n = (int)number;
}

/* ---- threads -------------------------------------------------------------------------------- */

struct stage {
    struct hf_scope *s;
    struct hf_db *db;
    pthread_mutex_t mutex;
    int last[ITEMS];
    int total, out_of_order;
    atomic_int running, most;
    int64_t work_ms;
    atomic_int canceled;
};

static void stage_open_on(struct stage *stage, const struct hf_env *env)
{
    memset(stage, 0, sizeof(*stage));
    pthread_mutex_init(&stage->mutex, NULL);
    stage->s = hf_scope_new(env);
    CHECK_OK(hf_open(stage->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true, .stream_shards = 8),
                     &stage->db));
    make_table(stage->s, stage->db);
}

static void stage_open(struct stage *stage)
{
    stage_open_on(stage, NULL);
}

static void stage_close(struct stage *stage)
{
    hf_db_close(stage->db);
    hf_scope_free(stage->s);
    pthread_mutex_destroy(&stage->mutex);
}

static enum hf_status take(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct stage *stage = user;
    int running = atomic_fetch_add(&stage->running, 1) + 1, most = atomic_load(&stage->most);

    while (running > most && !atomic_compare_exchange_weak(&stage->most, &most, running))
        ;
    if (stage->work_ms)
        atomic_fetch_add(&stage->canceled,
                         hf_scope_sleep_ms(s, (uint32_t)stage->work_ms) == HF_CANCELED);
    pthread_mutex_lock(&stage->mutex);
    for (size_t i = 0; i < len; i++) {
        int item, n;

        read_change(&changes[i], &item, &n);
        stage->out_of_order += n != stage->last[item] + 1;
        stage->last[item] = n;
        stage->total++;
    }
    pthread_mutex_unlock(&stage->mutex);
    atomic_fetch_sub(&stage->running, 1);
    return atomic_load(&stage->canceled) ? HF_CANCELED : HF_OK;
}

static int total_of(struct stage *stage)
{
    int total;

    pthread_mutex_lock(&stage->mutex);
    total = stage->total;
    pthread_mutex_unlock(&stage->mutex);
    return total;
}

struct runner {
    struct stage *stage;
    struct hf_consumer *consumer;
    struct hf_scope *s;
    enum hf_status status;
    pthread_t thread;
};

static void *run(void *user)
{
    struct runner *runner = user;

    runner->status = hf_consumer_run(runner->s, runner->consumer, take, runner->stage);
    return NULL;
}

static void runner_start(struct runner *runner, struct stage *stage, struct hf_consumer_options o)
{
    *runner = (struct runner){.stage = stage, .s = hf_scope_new(hf_scope_env(stage->s))};
    o.size = sizeof(o);
    CHECK_OK(hf_consumer_open(runner->s, stage->db, HF_STR("things"), &o, &runner->consumer));
    CHECK_INT(0, pthread_create(&runner->thread, NULL, run, runner));
}

static enum hf_status runner_stop(struct runner *runner)
{
    hf_scope_cancel(runner->s);
    pthread_join(runner->thread, NULL);
    hf_consumer_close(runner->consumer);
    hf_scope_free(runner->s);
    return runner->status;
}

static void wait_for(struct stage *stage, int total)
{
    int64_t end = now_ms() + PATIENCE_MS;

    while (total_of(stage) < total && now_ms() < end)
        sleep_ms(2);
    CHECK_INT(total, total_of(stage));
}

TEST(consumer_thread, shards_at_once)
{
    struct stage stage;
    struct runner runner;

    stage_open(&stage);
    for (int n = 1; n <= 3; n++)
        for (int item = 0; item < ITEMS; item++)
            put(stage.s, stage.db, item, n);
    stage.work_ms = 100;
    runner_start(&runner, &stage,
                 (struct hf_consumer_options){.workers = 4, .until_end = true, .batch = 1000});
    pthread_join(runner.thread, NULL);
    CHECK_OK(runner.status);
    CHECK_INT(3 * ITEMS, stage.total);
    CHECK_INT(0, stage.out_of_order);
    CHECK(stage.most > 1 && stage.most <= 4);
    hf_consumer_close(runner.consumer);
    hf_scope_free(runner.s);
    stage_close(&stage);
}

/* Nothing is due for a minute: its threads sleep until the run is canceled. */
TEST(consumer_thread, an_idle_consumer_does_not_poll)
{
    enum { POLLING = 30 }; /* waits in a window: slices of 20 ms would be 125 */
    long waits = POLLING;
    struct stage stage;
    struct runner runner;

    stage_open(&stage);
    put(stage.s, stage.db, 0, 1);
    runner_start(&runner, &stage,
                 (struct hf_consumer_options){.name = HF_STR("idle"),
                                              .workers = 4,
                                              .poll_ms = 10 * PATIENCE_MS});
    wait_for(&stage, 1);
    /* It looks at all shards once, however long that takes here. */
    for (int64_t end = now_ms() + PATIENCE_MS; waits >= POLLING && now_ms() < end;) {
        struct rusage before, after;

        getrusage(RUSAGE_SELF, &before);
        sleep_ms(500);
        getrusage(RUSAGE_SELF, &after);
        waits = after.ru_nvcsw - before.ru_nvcsw;
    }
    CHECK(waits < POLLING);
    CHECK_STATUS(HF_CANCELED, runner_stop(&runner));
    stage_close(&stage);
}

/* A consumer waits for a slow table, and a lock with a short lease does not wait for that. */
TEST(consumer_thread, a_slow_renewal_costs_no_lock)
{
    struct hf_fault slow = {.kind = HF_FAULT_LATENCY,
                            .operation = HF_STR("UpdateItem"),
                            .table = HF_STR("positions"),
                            .latency_ms = 2500}; /* longer than the lock's lease */
    struct hf_consumer_metrics metrics;
    struct hf_lock_table *locks;
    struct hf_lock *lock;
    struct stage stage;
    struct runner runner;
    struct hf_db *db;

    stage_open_on(&stage, patient_begin());
    CHECK_OK(hf_faulty_open(stage.s, stage.db, &db));
    stage.db = db;
    CHECK_OK(hf_lock_table_open(stage.s, db, NULL, &locks));
    runner_start(&runner, &stage,
                 (struct hf_consumer_options){.name = HF_STR("slow"),
                                              .table = HF_STR("positions"),
                                              .lease_ms = 4000});
    for (int64_t end = now_ms() + PATIENCE_MS; now_ms() < end; sleep_ms(2)) {
        hf_consumer_metrics(runner.consumer, &metrics);
        if (metrics.shards == 8)
            break;
    }
    CHECK_INT(8, metrics.shards);
    CHECK_OK(hf_lock_acquire(stage.s, locks, HF_STR("job"),
                             HF_OPTIONS(hf_lock_options, .lease_ms = 1500, .heartbeat_ms = 100),
                             &lock));
    CHECK_OK(hf_faulty_set(stage.s, db, &slow, 1));
    patient_sleep_ms(3000); /* it renews after one second, and the lock would be lost by 2.6 */
    CHECK_INT(HF_LOCK_HELD, hf_lock_state(lock));
    CHECK_OK(hf_faulty_set(stage.s, db, NULL, 0));
    CHECK_OK(hf_lock_release(stage.s, lock));
    CHECK_STATUS(HF_CANCELED, runner_stop(&runner));
    hf_lock_table_close(locks);
    stage_close(&stage);
    patient_end();
}

/* Three consumers come and go while there are changes; nothing comes twice, nothing is missing. */
TEST(consumer_thread, consumers_come_and_go)
{
    struct stage stage;
    struct runner runners[3];
    const struct hf_consumer_options options = {
        .name = HF_STR("shared"), .workers = 2, .poll_ms = 5, .lease_ms = 8000, .batch = 7};
    int n = 0;

    stage_open(&stage);
    for (int round = 0; round < 3; round++) {
        runner_start(&runners[round], &stage, options);
        for (int i = 0; i < 10; i++) {
            n++;
            for (int item = 0; item < ITEMS; item++)
                put(stage.s, stage.db, item, n);
        }
    }
    /* Who is stopped gives its shards to the others with their positions. */
    CHECK_STATUS(HF_CANCELED, runner_stop(&runners[0]));
    for (int i = 0; i < 10; i++) {
        n++;
        for (int item = 0; item < ITEMS; item++)
            put(stage.s, stage.db, item, n);
    }
    wait_for(&stage, n * ITEMS);
    CHECK_STATUS(HF_CANCELED, runner_stop(&runners[1]));
    CHECK_STATUS(HF_CANCELED, runner_stop(&runners[2]));
    CHECK_INT(n * ITEMS, stage.total);
    CHECK_INT(0, stage.out_of_order);
    stage_close(&stage);
}

/* A batch that takes longer than a lease is no reason to lose the shard. */
TEST(consumer_thread, a_long_batch_keeps_its_lease)
{
    struct stage stage;
    struct runner first, second;
    struct hf_consumer_options options = {.name = HF_STR("slow"), .poll_ms = 5, .lease_ms = 800};

    stage_open_on(&stage, patient_begin());
    stage.work_ms = 1800;
    put(stage.s, stage.db, 3, 1);
    runner_start(&first, &stage, options);
    for (int64_t end = now_ms() + PATIENCE_MS; !stage.running && now_ms() < end;)
        sleep_ms(5);
    runner_start(&second, &stage, options);
    wait_for(&stage, 1);
    patient_sleep_ms(100);
    CHECK_STATUS(HF_CANCELED, runner_stop(&first));
    CHECK_STATUS(HF_CANCELED, runner_stop(&second));
    CHECK_INT(1, stage.total);
    CHECK_INT(1, stage.most);
    stage_close(&stage);
    patient_end();
}

/* The handler's scope is canceled with the run, and what it did not take comes again. */
TEST(consumer_thread, cancel_reaches_the_handler)
{
    struct stage stage;
    struct runner runner;
    int64_t before;

    stage_open(&stage);
    stage.work_ms = 120000;
    put(stage.s, stage.db, 3, 1);
    runner_start(&runner, &stage, (struct hf_consumer_options){.name = HF_STR("a"), .poll_ms = 5});
    for (int64_t end = now_ms() + PATIENCE_MS; !stage.running && now_ms() < end;)
        sleep_ms(5);
    before = now_ms();
    CHECK_STATUS(HF_CANCELED, runner_stop(&runner));
    CHECK(now_ms() - before < PATIENCE_MS);
    CHECK_INT(1, stage.canceled);
    stage.work_ms = 0;
    stage.canceled = 0;
    stage.total = stage.last[3] = 0;
    runner_start(&runner, &stage,
                 (struct hf_consumer_options){.name = HF_STR("a"), .until_end = true});
    pthread_join(runner.thread, NULL);
    CHECK_OK(runner.status);
    CHECK_INT(1, stage.total);
    hf_consumer_close(runner.consumer);
    hf_scope_free(runner.s);
    stage_close(&stage);
}

TEST(consumer_thread, one_run_at_a_time)
{
    struct stage stage;
    struct runner runner;
    struct hf_consumer_metrics metrics = {.calls = 0};

    stage_open(&stage);
    runner_start(&runner, &stage, (struct hf_consumer_options){.poll_ms = 5});
    for (int64_t end = now_ms() + PATIENCE_MS; !metrics.calls && now_ms() < end;)
        hf_consumer_metrics(runner.consumer, &metrics);
    CHECK(metrics.calls > 0);
    CHECK_STATUS(HF_IN_USE, hf_consumer_run(stage.s, runner.consumer, take, &stage));
    CHECK_STATUS(HF_INVALID, hf_consumer_run(stage.s, runner.consumer, NULL, NULL));
    CHECK_STATUS(HF_CANCELED, runner_stop(&runner));
    stage_close(&stage);
}

/* ---- processes ------------------------------------------------------------------------------ */

enum { CHANGES = 40, LEASE_MS = 1500 };

static enum hf_status write_lines(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                  void *user)
{
    (void)s;
    for (size_t i = 0; i < len; i++) {
        char line[32];
        int item, n, line_len;

        read_change(&changes[i], &item, &n);
        line_len = snprintf(line, sizeof(line), "%d %d\n", item, n);
        if (write(*(int *)user, line, (size_t)line_len) != line_len)
            _exit(3);
    }
    sleep_ms(2);
    return HF_OK;
}

/* Of a server, and into a ledger. */
CHILD(consumer)
{
    struct hf_scope *s = hf_scope_new(NULL);
    int ledger = open(args[1], O_WRONLY | O_APPEND | O_CLOEXEC);
    struct hf_consumer *consumer;
    struct hf_db *db;

    if (ledger < 0 ||
        hf_connect(s, hf_str_from(args[0]), HF_OPTIONS(hf_client_options, .no_aws_config = true),
                   &db) != HF_OK ||
        hf_consumer_open(s, db, HF_STR("things"),
                         HF_OPTIONS(hf_consumer_options, .name = HF_STR("killed"), .poll_ms = 10,
                                    .lease_ms = LEASE_MS, .batch = 5, .checkpoint_ms = 20,
                                    .workers = 2),
                         &consumer) != HF_OK) {
        fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
        return 2;
    }
    (void)!hf_consumer_run(s, consumer, write_lines, &ledger);
    fprintf(stderr, "child: %s\n", hf_scope_error_text(s));
    return 1; /* it is to be killed */
}

static pid_t spawn(struct hf_str url, const char *ledger)
{
    return test_child("consumer", (const char *[]){url.ptr, ledger, NULL}, NULL);
}

static void kill_one(pid_t pid)
{
    int status;

    kill(pid, SIGKILL);
    CHECK_INT(pid, waitpid(pid, &status, 0));
    CHECK(WIFSIGNALED(status)); /* it had not ended by itself */
}

/* How many changes were handed over; each behind the one before it of its item. */
static int audit(const char *ledger)
{
    FILE *file = fopen(ledger, "r");
    int last[ITEMS] = {0}, item, n, total = 0;

    CHECK(file != NULL);
    while (fscanf(file, "%d %d\n", &item, &n) == 2) {
        CHECK(item >= 0 && item < ITEMS);
        CHECK(n <= last[item] + 1);
        if (n > last[item])
            last[item] = n;
    }
    fclose(file);
    for (int i = 0; i < ITEMS; i++)
        total += last[i];
    return total;
}

TEST(consumer_kill, consumers_of_a_server_are_killed_again_and_again)
{
    enum { CHILDREN = 2, KILLS = 6 };
    const struct chaos_script script = {.faults = {CHAOS_CUT_ANSWER, CHAOS_CUT_REQUEST,
                                                   CHAOS_SAY_500, CHAOS_LIE_500,
                                                   CHAOS_SAY_THROTTLED, CHAOS_DELAY},
                                        .len = 6,
                                        .odds = 60,
                                        .seed = test_random(t)};
    struct hf_scope *s = hf_scope_new(NULL);
    char ledger[256];
    pid_t children[CHILDREN];
    int64_t end;
    struct rig rig;
    int file;

    snprintf(ledger, sizeof(ledger), "%s/ledger", test_directory(t));
    file = open(ledger, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(file >= 0);
    close(file);
    rig_open(&rig);
    make_table(s, rig.truth.db);
    for (int n = 1; n <= CHANGES / 2; n++)
        for (int item = 0; item < ITEMS; item++)
            put(s, rig.truth.db, item, n);
    chaos_play(rig.chaos, &script);
    for (int i = 0; i < CHILDREN; i++)
        children[i] = spawn(rig_url(&rig, s), ledger);
    for (int i = 0; i < KILLS; i++) {
        int victim = (int)test_random_below(t, CHILDREN);

        sleep_ms(60 + (int64_t)test_random_below(t, 150));
        kill_one(children[victim]);
        children[victim] = spawn(rig_url(&rig, s), ledger);
        for (int n = CHANGES / 2 + i + 1;
             n <= CHANGES && (i == KILLS - 1 || n == CHANGES / 2 + i + 1); n++)
            for (int item = 0; item < ITEMS; item++)
                put(s, rig.truth.db, item, n);
    }
    for (end = now_ms() + PATIENCE_MS; audit(ledger) < CHANGES * ITEMS && now_ms() < end;)
        sleep_ms(20);
    for (int i = 0; i < CHILDREN; i++)
        kill_one(children[i]);
    CHECK_INT(CHANGES * ITEMS, audit(ledger));
    rig_close(&rig);
    hf_scope_free(s);
}

/* ---- handlers that do not return ------------------------------------------------------------- */

struct trap {
    struct hf_db *db;
    atomic_bool open, waits;
    atomic_int entered, handled, told;
    enum hf_stuck stuck;
    _Atomic(struct hf_scope *) scope; /* of its run */
};

static enum hf_status fall(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct trap *trap = user;

    (void)s, (void)changes;
    atomic_fetch_add(&trap->entered, 1);
    while (atomic_load(&trap->waits) && !atomic_load(&trap->open))
        sleep_ms(1);
    atomic_fetch_add(&trap->handled, (int)len);
    return HF_OK;
}

/* The run ends when it returns. */
static enum hf_status fall_and_stop(struct hf_scope *s, const struct hf_change *changes, size_t len,
                                    void *user)
{
    enum hf_status status = fall(s, changes, len, user);

    return status != HF_OK ? status : HF_IO;
}

static void trap_told(struct hf_str shard, uint64_t for_ms, void *user)
{
    struct trap *trap = user;

    CHECK(shard.len && for_ms >= 60);
    atomic_fetch_add(&trap->told, 1);
}

static void *trap_run(void *user)
{
    struct trap *trap = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_consumer *consumer;

    CHECK_OK(
        hf_consumer_open(s, trap->db, HF_STR("things"),
                         HF_OPTIONS(hf_consumer_options, .name = HF_STR("trap"),
                                    .lease_ms = 10 * PATIENCE_MS, .poll_ms = 10, .stuck_ms = 60,
                                    .stuck = trap->stuck, .on_stuck = trap_told, .user = trap),
                         &consumer));
    atomic_store(&trap->scope, s);
    CHECK_STATUS(HF_CANCELED, hf_consumer_run(s, consumer, fall, trap));
    hf_consumer_close(consumer);
    hf_scope_free(s);
    return NULL;
}

/* The lease is longer than the test: who gets the change got it because it was given back. */
static void one_is_deep(struct test *t, enum hf_stuck stuck)
{
    struct trap trap = {.waits = true, .stuck = stuck}, other = {.stuck = stuck};
    pthread_t threads[2];
    struct stage stage;
    int64_t end = now_ms() + PATIENCE_MS;

    (void)t;
    stage_open(&stage);
    trap.db = other.db = stage.db;
    put(stage.s, stage.db, 0, 1);
    CHECK_INT(0, pthread_create(&threads[0], NULL, trap_run, &trap));
    while (!atomic_load(&trap.told) && now_ms() < end)
        sleep_ms(1);
    CHECK_INT(1, atomic_load(&trap.told));
    CHECK_INT(0, pthread_create(&threads[1], NULL, trap_run, &other));
    while (
        (stuck == HF_STUCK_RELEASE ? !atomic_load(&other.handled) : !atomic_load(&other.scope)) &&
        now_ms() < end)
        sleep_ms(1);
    if (stuck != HF_STUCK_RELEASE)
        sleep_ms(100); /* it looks, and finds nothing to take */
    CHECK_INT(stuck == HF_STUCK_RELEASE, atomic_load(&other.handled));
    atomic_store(&trap.open, true);
    while (!atomic_load(&trap.handled) && now_ms() < end)
        sleep_ms(1);
    hf_scope_cancel(atomic_load(&trap.scope));
    hf_scope_cancel(atomic_load(&other.scope));
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_INT(1, atomic_load(&trap.entered)); /* it did not get it again */
    CHECK_INT(1, atomic_load(&trap.told));
    stage_close(&stage);
}

TEST(consumer_thread, a_handler_that_does_not_return_is_told)
{
    one_is_deep(t, HF_STUCK_LEAVE);
}

TEST(consumer_thread, its_shard_is_given_back)
{
    one_is_deep(t, HF_STUCK_RELEASE);
}

static void *nameless_run(void *user)
{
    struct trap *trap = user;
    struct hf_scope *s = hf_scope_new(NULL);
    struct hf_consumer_metrics metrics;
    struct hf_consumer *consumer;

    CHECK_OK(hf_consumer_open(s, trap->db, HF_STR("things"),
                              HF_OPTIONS(hf_consumer_options, .poll_ms = 10, .max_attempts = 1,
                                         .stuck_ms = 60, .on_stuck = trap_told, .user = trap),
                              &consumer));
    hf_scope_timeout_ms(s, PATIENCE_MS);
    CHECK_STATUS(HF_IO, hf_consumer_run(s, consumer, fall_and_stop, trap));
    hf_consumer_metrics(consumer, &metrics);
    CHECK_INT(1, metrics.stuck_total);
    hf_consumer_close(consumer);
    hf_scope_free(s);
    return NULL;
}

/* A consumer without a name has nothing to give back, but it tells. */
TEST(consumer_thread, a_handler_of_a_nameless_one_is_told)
{
    struct trap trap = {.waits = true};
    struct hf_consumer *consumer;
    struct stage stage;
    pthread_t thread;
    int64_t end = now_ms() + PATIENCE_MS;

    (void)t;
    stage_open(&stage);
    trap.db = stage.db;
    put(stage.s, stage.db, 0, 1);
    CHECK_INT(0, pthread_create(&thread, NULL, nameless_run, &trap));
    while (!atomic_load(&trap.told) && now_ms() < end)
        sleep_ms(1);
    CHECK_INT(1, atomic_load(&trap.told));
    atomic_store(&trap.open, true);
    pthread_join(thread, NULL);
    CHECK_INT(1, atomic_load(&trap.told));
    CHECK_STATUS(HF_INVALID,
                 hf_consumer_open(stage.s, stage.db, HF_STR("things"),
                                  HF_OPTIONS(hf_consumer_options, .stuck = HF_STUCK_RELEASE),
                                  &consumer));
    CHECK(strstr(hf_scope_error_text(stage.s), "HF_STUCK_RELEASE needs a name"));
    stage_close(&stage);
}

TEST(consumer_thread, options_for_what_is_stuck_are_checked)
{
    struct hf_consumer *consumer;
    struct stage stage;

    (void)t;
    stage_open(&stage);
    CHECK_STATUS(HF_INVALID,
                 hf_consumer_open(stage.s, stage.db, HF_STR("things"),
                                  HF_OPTIONS(hf_consumer_options, .stuck = HF_STUCK_GIVE_UP),
                                  &consumer));
    stage_close(&stage);
}

/* ---- a stop that is bounded ----------------------------------------------------------------- */

struct deaf {
    struct hf_scope *run; /* is canceled as soon as it was called */
    atomic_int called, returned;
    atomic_bool let_go;
};

/* Whatever its scope says. */
static enum hf_status deaf(struct hf_scope *s, const struct hf_change *changes, size_t len,
                           void *user)
{
    struct deaf *d = user;

    (void)s, (void)changes, (void)len;
    atomic_fetch_add(&d->called, 1);
    hf_scope_cancel(d->run);
    while (!atomic_load(&d->let_go))
        sleep_ms(1);
    atomic_fetch_add(&d->returned, 1);
    return HF_OK;
}

static enum hf_status take_all(struct stage *stage, struct hf_consumer *consumer)
{
    hf_scope_timeout_ms(stage->s, PATIENCE_MS);
    return hf_consumer_run(stage->s, consumer, take, stage);
}

/* A run that is stopped ends after stop_ms without its handler: the shard is another's at once, what
 * the handler returns moves nothing, and closing waits for it. */
static void check_bounded(bool named)
{
    struct hf_consumer_options o = {.size = sizeof(o),
                                    .name = named ? HF_STR("one") : HF_STR(""),
                                    .lease_ms = 10 * PATIENCE_MS,
                                    .poll_ms = 10,
                                    .until_end = true,
                                    .stop_ms = 50};
    struct hf_consumer *ann, *bob;
    struct deaf d = {0};
    struct stage stage;
    int64_t begin_ms;

    stage_open(&stage);
    put(stage.s, stage.db, 0, 1);
    d.run = hf_scope_new(NULL);
    CHECK_OK(hf_consumer_open(stage.s, stage.db, HF_STR("things"), &o, &ann));
    begin_ms = now_ms();
    CHECK_STATUS(HF_TIMEOUT, hf_consumer_run(d.run, ann, deaf, &d));
    CHECK(strstr(hf_scope_error_text(d.run), "after 50 ms 1 handlers have not returned"));
    CHECK(now_ms() - begin_ms >= 50);
    CHECK_INT(0, atomic_load(&d.returned));
    CHECK_STATUS(HF_IN_USE, take_all(&stage, ann));

    CHECK_OK(hf_consumer_open(stage.s, stage.db, HF_STR("things"), &o, &bob));
    CHECK_OK(take_all(&stage, bob));
    CHECK_INT(1, total_of(&stage));
    CHECK(now_ms() - begin_ms < 2 * PATIENCE_MS); /* not after a lease */
    put(stage.s, stage.db, 0, 2);

    atomic_store(&d.let_go, true);
    while (take_all(&stage, ann) == HF_IN_USE)
        sleep_ms(1);
    CHECK_INT(1, atomic_load(&d.returned));
    CHECK_INT(2, total_of(&stage)); /* the second change, of both: it is not too far, nor behind */
    CHECK_INT(0, stage.out_of_order);
    hf_consumer_close(bob);
    hf_consumer_close(ann);
    hf_scope_free(d.run);
    stage_close(&stage);
}

TEST(consumer_thread, a_stop_is_bounded)
{
    (void)t;
    check_bounded(true);
    check_bounded(false);
}

static void *let_go_soon(void *user)
{
    struct deaf *d = user;

    sleep_ms(60);
    atomic_store(&d->let_go, true);
    return NULL;
}

TEST(consumer_thread, closing_waits_for_who_was_left)
{
    for (int bounded = 0; bounded < 2; bounded++) {
        struct hf_consumer *consumer;
        struct deaf d = {0};
        struct stage stage;
        pthread_t thread;

        (void)t;
        stage_open(&stage);
        put(stage.s, stage.db, 0, 1);
        d.run = hf_scope_new(NULL);
        CHECK_OK(hf_consumer_open(stage.s, stage.db, HF_STR("things"),
                                  HF_OPTIONS(hf_consumer_options, .stop_ms = bounded ? 10 : 0),
                                  &consumer));
        if (!bounded)
            CHECK_INT(0, pthread_create(&thread, NULL, let_go_soon, &d));
        CHECK_STATUS(bounded ? HF_TIMEOUT : HF_CANCELED,
                     hf_consumer_run(d.run, consumer, deaf, &d));
        CHECK_INT(!bounded, atomic_load(&d.returned));
        if (bounded)
            CHECK_INT(0, pthread_create(&thread, NULL, let_go_soon, &d));
        hf_consumer_close(consumer);
        CHECK_INT(1, atomic_load(&d.returned));
        CHECK_INT(0, pthread_join(thread, NULL));
        hf_scope_free(d.run);
        stage_close(&stage);
    }
}
