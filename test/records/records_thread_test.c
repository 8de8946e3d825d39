/*
 * records/records_thread_test.c: the processor with its threads, by the system's clock, on a
 * database in memory.
 */
#include <holdfast/records.h>

#include <holdfast/batch.h>
#include <holdfast/engine.h>
#include <holdfast/faults.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "patient.h"
#include "test.h"

static int64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000 + at.tv_nsec / 1000000;
}

static void sleep_ms(int64_t ms)
{
    const struct timespec for_ms = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&for_ms, NULL);
}

struct stage {
    struct hf_scope *s;
    struct hf_db *db;
    struct hf_records *records;
    atomic_int running, most, begun, slow_done, after_slow;
    int64_t work_ms;
    int wanted;      /* work goes on until so many have run at once */
    bool is_patient; /* by patient_begin() */
};

enum { PATIENCE_MS = 60000 }; /* until a test gives up */

static void stage_open_on(struct stage *stage, const struct hf_env *env)
{
    struct hf_db *inner;

    memset(stage, 0, sizeof(*stage));
    stage->s = hf_scope_new(env);
    CHECK_OK(hf_open(stage->s, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &inner));
    CHECK_OK(hf_faulty_open(stage->s, inner, &stage->db));
    CHECK_OK(hf_records_open(stage->s, stage->db, NULL, &stage->records));
}

static void stage_open(struct stage *stage)
{
    stage_open_on(stage, NULL);
}

static void stage_close(struct stage *stage)
{
    hf_records_close(stage->records);
    hf_db_close(stage->db);
    hf_scope_free(stage->s);
}

static struct hf_item record_of(struct hf_scope *s, int number)
{
    return HF_ITEM(s, HF_S("AccountId", hf_scope_format(s, "account%d", number % 100)),
                   HF_S("RunTime", hf_scope_format(s, "%06d", number)), HF_N("Number", number));
}

static int number_of(const struct hf_record_info *record)
{
    int64_t number = -1;

    (void)hf_value_i64(hf_item_get(record->item, HF_STR("Number")), &number);
    return (int)number;
}

static void put_many(struct stage *stage, int first, int len)
{
    enum { CHUNK = 1000 };
    static struct hf_write writes[CHUNK];

    for (int i = 0; i < len; i += CHUNK) {
        struct hf_scope_mark mark = hf_scope_mark(stage->s);
        int chunk = len - i < CHUNK ? len - i : CHUNK;

        for (int j = 0; j < chunk; j++) {
            writes[j] = (struct hf_write){.table = HF_STR("Records")};
            CHECK_OK(hf_records_item(stage->s, stage->records, record_of(stage->s, first + i + j),
                                     &writes[j].put));
        }
        CHECK_OK(hf_write_many(stage->s, stage->db, writes, (size_t)chunk, NULL, NULL));
        hf_scope_rewind(stage->s, mark);
    }
}

static struct hf_processor *processor_of(struct stage *stage, struct hf_processor_options options)
{
    struct hf_processor *processor;

    options.size = sizeof(options);
    CHECK_OK(hf_processor_open(stage->s, stage->records, &options, &processor));
    return processor;
}

#define PROCESSOR(stage, ...)                                                                      \
    processor_of((stage), (struct hf_processor_options){.backoff_ms = 10, __VA_ARGS__})

/* ---- a true pool ---------------------------------------------------------------------------- */

static enum hf_status busy(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct stage *stage = user;
    int running = atomic_fetch_add(&stage->running, 1) + 1;
    int most = atomic_load(&stage->most);

    (void)s, (void)record;
    while (running > most && !atomic_compare_exchange_weak(&stage->most, &most, running))
        ;
    atomic_fetch_add(&stage->begun, 1);
    for (int64_t end_ms = now_ms() + PATIENCE_MS;
         atomic_load(&stage->most) < stage->wanted && now_ms() < end_ms;)
        sleep_ms(1);
    if (stage->is_patient)
        patient_sleep_ms(stage->work_ms);
    else
        sleep_ms(stage->work_ms);
    atomic_fetch_sub(&stage->running, 1);
    return HF_OK;
}

TEST(records_thread, as_many_at_once_as_there_are_workers)
{
    struct stage stage;
    struct hf_processor *processor;
    struct hf_processor_report report;

    stage_open(&stage);
    put_many(&stage, 0, 40);
    stage.work_ms = 5;
    stage.wanted = 5;
    processor = PROCESSOR(&stage);
    CHECK_OK(hf_processor_run(stage.s, processor, busy, &stage, &report));
    CHECK_INT(5, atomic_load(&stage.most));
    CHECK_INT(40, report.metrics.completed);
    CHECK_INT(0, report.metrics.refused);
    hf_processor_close(processor);
    stage_close(&stage);
}

static enum hf_status one_is_slow(struct hf_scope *s, const struct hf_record_info *record,
                                  void *user)
{
    struct stage *stage = user;

    (void)s;
    if (number_of(record) == 7) {
        for (int i = 0; i < PATIENCE_MS / 5 && atomic_load(&stage->begun) < 99; i++)
            sleep_ms(5);
        atomic_store(&stage->slow_done, 1);
    } else {
        atomic_fetch_add(&stage->begun, 1);
        atomic_fetch_add(&stage->after_slow, atomic_load(&stage->slow_done));
    }
    return HF_OK;
}

/* All others are done while one takes long. */
TEST(records_thread, a_slow_record_stalls_nobody)
{
    struct stage stage;
    struct hf_processor *processor;

    stage_open(&stage);
    put_many(&stage, 0, 100);
    processor = PROCESSOR(&stage, .workers = 2);
    CHECK_OK(hf_processor_run(stage.s, processor, one_is_slow, &stage, NULL));
    CHECK_INT(1, atomic_load(&stage.slow_done));
    CHECK_INT(0, atomic_load(&stage.after_slow));
    hf_processor_close(processor);
    stage_close(&stage);
}

/* A run is over when the last record is: nobody has to poll for what he did himself. */
TEST(records_thread, a_run_ends_with_its_last_record)
{
    int64_t began_ms = now_ms();
    struct stage stage;
    struct hf_processor *processor;

    stage_open(&stage);
    put_many(&stage, 0, 1);
    stage.work_ms = 250;
    processor = PROCESSOR(&stage, .poll_ms = 10 * PATIENCE_MS);
    CHECK_OK(hf_processor_run(stage.s, processor, busy, &stage, NULL));
    CHECK(now_ms() - began_ms < PATIENCE_MS);
    hf_processor_close(processor);
    stage_close(&stage);
}

/* ---- renewal, and losing it ----------------------------------------------------------------- */

struct side {
    pthread_t thread;
    struct hf_processor *processor;
    struct stage *stage;
    hf_record_fn *work;
    struct hf_scope *s;
    struct hf_processor_report report;
    enum hf_status status;
};

static void *side_run(void *user)
{
    struct side *side = user;

    side->status =
        hf_processor_run(side->s, side->processor, side->work, side->stage, &side->report);
    return NULL;
}

static void side_start(struct side *side, struct stage *stage, struct hf_processor *processor,
                       hf_record_fn *work)
{
    *side = (struct side){.processor = processor,
                          .stage = stage,
                          .work = work,
                          .s = hf_scope_new(hf_scope_env(stage->s))};
    CHECK_INT(0, pthread_create(&side->thread, NULL, side_run, side));
}

static void side_join(struct side *side)
{
    pthread_join(side->thread, NULL);
    hf_processor_close(side->processor);
}

/* Nothing is due for a minute: its threads sleep until the run is canceled. */
TEST(records_thread, an_idle_processor_does_not_poll)
{
    enum { POLLING = 15 }; /* waits in a window: slices of 20 ms would be 25 */
    long waits = POLLING;
    struct stage stage;
    struct side ann;

    stage_open(&stage);
    put_many(&stage, 0, 1);
    side_start(&ann, &stage, PROCESSOR(&stage, .forever = true, .poll_ms = 10 * PATIENCE_MS), busy);
    for (int i = 0; i < 30000 && !atomic_load(&stage.begun); i++)
        sleep_ms(1);
    /* It looks through the index until it shows nothing any more, however long that takes here. */
    for (int64_t end_ms = now_ms() + PATIENCE_MS; waits >= POLLING && now_ms() < end_ms;) {
        struct rusage before, after;

        getrusage(RUSAGE_SELF, &before);
        sleep_ms(500);
        getrusage(RUSAGE_SELF, &after);
        waits = after.ru_nvcsw - before.ru_nvcsw;
    }
    CHECK(waits < POLLING);
    hf_scope_cancel(ann.s);
    side_join(&ann);
    CHECK_INT(HF_CANCELED, ann.status);
    CHECK_INT(1, ann.report.metrics.completed);
    hf_scope_free(ann.s);
    stage_close(&stage);
}

static void wait_for_begun(struct stage *stage, int count)
{
    for (int64_t end_ms = now_ms() + PATIENCE_MS; atomic_load(&stage->begun) < count; sleep_ms(1))
        CHECK(now_ms() < end_ms);
}

TEST(records_thread, a_long_attempt_is_renewed)
{
    struct stage stage;
    struct side ann, ben;

    stage_open_on(&stage, patient_begin());
    stage.is_patient = true;
    put_many(&stage, 0, 1);
    stage.work_ms = 1700;
    side_start(&ann, &stage, PROCESSOR(&stage, .lease_ms = 800), busy);
    wait_for_begun(&stage, 1);
    side_start(&ben, &stage, PROCESSOR(&stage, .lease_ms = 800, .poll_ms = 20), busy);
    side_join(&ann);
    side_join(&ben);
    CHECK_INT(HF_OK, ann.status);
    CHECK_INT(HF_OK, ben.status);
    CHECK_INT(1, atomic_load(&stage.begun));
    CHECK_INT(1, ann.report.metrics.completed + ben.report.metrics.completed);
    CHECK_INT(0, ann.report.metrics.taken_over + ben.report.metrics.taken_over);
    hf_scope_free(ann.s);
    hf_scope_free(ben.s);
    stage_close(&stage);
    patient_end();
}

/* The first one works until another has begun. */
static enum hf_status until_another(struct hf_scope *s, const struct hf_record_info *record,
                                    void *user)
{
    struct stage *stage = user;

    (void)s, (void)record;
    if (atomic_fetch_add(&stage->begun, 1) == 0)
        for (int64_t end_ms = now_ms() + PATIENCE_MS;
             atomic_load(&stage->begun) < 2 && now_ms() < end_ms;)
            sleep_ms(1);
    return HF_OK;
}

/* One who is stuck is renewed no more; another does it, and he cannot complete it. */
TEST(records_thread, who_is_stuck_loses_it)
{
    struct stage stage;
    struct side ann, ben;

    stage_open(&stage);
    put_many(&stage, 0, 1);
    side_start(&ann, &stage, PROCESSOR(&stage, .lease_ms = 100, .stuck_ms = 50), until_another);
    wait_for_begun(&stage, 1);
    side_start(&ben, &stage, PROCESSOR(&stage, .lease_ms = PATIENCE_MS, .poll_ms = 20),
               until_another);
    side_join(&ann);
    side_join(&ben);
    CHECK_INT(2, atomic_load(&stage.begun));
    CHECK_INT(1, ann.report.metrics.lost);
    CHECK_INT(1, ben.report.metrics.completed);
    CHECK_INT(1, ben.report.metrics.taken_over);
    hf_scope_free(ann.s);
    hf_scope_free(ben.s);
    stage_close(&stage);
}

static enum hf_status wait_for_ever(struct hf_scope *s, const struct hf_record_info *record,
                                    void *user)
{
    struct stage *stage = user;

    if (record->attempts > 1)
        return HF_OK;
    atomic_fetch_add(&stage->begun, 1);
    return hf_scope_sleep_ms(s, 10 * PATIENCE_MS);
}

/* Who works on a record that is not his any more is told by his scope. */
TEST(records_thread, a_lost_claim_cancels_the_work)
{
    struct stage stage;
    struct side ann;
    int64_t began_ms = now_ms();

    stage_open(&stage);
    put_many(&stage, 0, 1);
    side_start(&ann, &stage, PROCESSOR(&stage, .lease_ms = PATIENCE_MS, .heartbeat_ms = 50),
               wait_for_ever);
    wait_for_begun(&stage, 1);
    CHECK_OK(hf_records_mark(stage.s, stage.records, HF_STR("account0"), HF_STR("000000")));
    side_join(&ann);
    CHECK(now_ms() - began_ms < PATIENCE_MS);
    CHECK_INT(HF_OK, ann.status);
    CHECK_INT(1, ann.report.metrics.lost);
    CHECK_INT(1, ann.report.metrics.begun);
    hf_scope_free(ann.s);
    stage_close(&stage);
}

TEST(records_thread, cancellation_gives_everything_back)
{
    struct stage stage;
    struct hf_processor *processor;
    struct hf_processor_report report;
    struct hf_record_list list;
    struct side ann;
    int64_t began_ms;

    stage_open(&stage);
    put_many(&stage, 0, 50);
    side_start(&ann, &stage, PROCESSOR(&stage, .workers = 8), wait_for_ever);
    wait_for_begun(&stage, 8);
    CHECK_STATUS(HF_IN_USE,
                 hf_processor_run(stage.s, ann.processor, wait_for_ever, &stage, &report));
    CHECK_ERROR(HF_IN_USE, "the processor is already running", stage.s);
    began_ms = now_ms();
    hf_scope_cancel(ann.s);
    side_join(&ann);
    CHECK(now_ms() - began_ms < PATIENCE_MS);
    CHECK_INT(HF_CANCELED, ann.status);
    CHECK_INT(8, ann.report.metrics.begun);
    CHECK_INT(8, ann.report.metrics.released);
    CHECK(ann.report.checkpoint.ptr);
    CHECK_OK(hf_records_unprocessed(stage.s, stage.records, NULL, &list));
    CHECK_INT(50, list.records_len);
    for (size_t i = 0; i < list.records_len; i++) {
        CHECK_INT(0, list.records[i].attempts);
        CHECK(!list.records[i].owner.ptr);
    }
    processor = PROCESSOR(&stage, .resume = ann.report.checkpoint);
    CHECK_OK(hf_processor_run(stage.s, processor, busy, &stage, &report));
    CHECK_INT(58, report.metrics.begun);
    CHECK_INT(50, report.metrics.completed);
    CHECK_INT(0, report.metrics.taken_over);
    hf_processor_close(processor);
    hf_scope_free(ann.s);
    stage_close(&stage);
}

/* ---- functions that do not return ----------------------------------------------------------- */

struct deaf {
    struct hf_scope *run; /* is canceled as soon as it was called */
    atomic_int called, returned;
    atomic_bool let_go;
};

/* Whatever its scope says. */
static enum hf_status deaf(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct deaf *d = user;

    (void)s, (void)record;
    atomic_fetch_add(&d->called, 1);
    hf_scope_cancel(d->run);
    while (!atomic_load(&d->let_go))
        sleep_ms(1);
    atomic_fetch_add(&d->returned, 1);
    return HF_OK;
}

static uint64_t unprocessed(struct stage *stage)
{
    uint64_t count;

    CHECK_OK(hf_records_count(stage->s, stage->records, HF_RECORD_UNPROCESSED, &count));
    return count;
}

/* A run that is stopped ends after stop_ms without them; their records are others' after a lease,
 * the processor runs again when they have returned, and to close it waits for them. */
TEST(records_thread, a_stop_is_bounded)
{
    struct hf_processor *ann, *bob;
    struct hf_processor_report report;
    struct stage stage;
    struct deaf d = {0};
    int64_t begin_ms;

    (void)t;
    stage_open_on(&stage, patient_begin());
    put_many(&stage, 0, 1);
    d.run = hf_scope_new(NULL);
    ann = PROCESSOR(&stage, .lease_ms = 200, .stop_ms = 50, .workers = 2);
    begin_ms = now_ms();
    CHECK_STATUS(HF_TIMEOUT, hf_processor_run(d.run, ann, deaf, &d, &report));
    CHECK(strstr(hf_scope_error_text(d.run),
                 "after 50 ms functions for 1 records have not returned"));
    CHECK(now_ms() - begin_ms >= 50);
    CHECK_INT(1, report.metrics.running);
    CHECK_INT(0, atomic_load(&d.returned));
    CHECK_STATUS(HF_IN_USE, hf_processor_run(stage.s, ann, busy, &stage, NULL));
    CHECK(strstr(hf_scope_error_text(stage.s), "has not returned"));

    bob =
        PROCESSOR(&stage, .lease_ms = PATIENCE_MS, .poll_ms = 20); /* waits for the lease of ann */
    CHECK_OK(hf_processor_run(stage.s, bob, busy, &stage, &report));
    CHECK_INT(1, report.metrics.taken_over);
    CHECK_INT(0, unprocessed(&stage));
    hf_processor_close(bob);

    atomic_store(&d.let_go, true);
    while (hf_processor_run(stage.s, ann, busy, &stage, &report) == HF_IN_USE)
        sleep_ms(1);
    CHECK_INT(1, atomic_load(&d.returned));
    CHECK_INT(0, report.metrics.begun);
    hf_processor_close(ann);
    hf_scope_free(d.run);
    stage_close(&stage);
    patient_end();
}

static void *let_go_soon(void *user)
{
    struct deaf *d = user;

    sleep_ms(60);
    atomic_store(&d->let_go, true);
    return NULL;
}

/* What it returns later counts if the claim is still its own; closing waits for that. By default a
 * run does. */
TEST(records_thread, closing_waits_for_who_was_left)
{
    for (int bounded = 0; bounded < 2; bounded++) {
        struct hf_processor *processor;
        struct deaf d = {0};
        struct stage stage;
        pthread_t thread;

        (void)t;
        stage_open(&stage);
        put_many(&stage, 0, 1);
        d.run = hf_scope_new(NULL);
        processor = PROCESSOR(&stage, .stop_ms = bounded ? 10 : 0);
        if (!bounded)
            CHECK_INT(0, pthread_create(&thread, NULL, let_go_soon, &d));
        CHECK_STATUS(bounded ? HF_TIMEOUT : HF_CANCELED,
                     hf_processor_run(d.run, processor, deaf, &d, NULL));
        CHECK_INT(!bounded, atomic_load(&d.returned));
        if (bounded)
            CHECK_INT(0, pthread_create(&thread, NULL, let_go_soon, &d));
        hf_processor_close(processor);
        CHECK_INT(1, atomic_load(&d.returned));
        CHECK_INT(0, unprocessed(&stage));
        CHECK_INT(0, pthread_join(thread, NULL));
        hf_scope_free(d.run);
        stage_close(&stage);
    }
}

/* ---- many ----------------------------------------------------------------------------------- */

struct ledger {
    struct stage *stage;
    atomic_uchar *begun; /* of each record */
    atomic_uchar *done;
    uint32_t fail_one_in;
};

static enum hf_status enter(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct ledger *ledger = user;
    int number = number_of(record);

    atomic_fetch_add(&ledger->begun[number], 1);
    if (number % (int)ledger->fail_one_in == 0 && record->failures == 0)
        return hf_scope_fail(s, HF_IO, "the first time it fails");
    return HF_OK;
}

static void note(const struct hf_record_info *record, enum hf_record_outcome outcome,
                 const struct hf_error *error, void *user)
{
    struct ledger *ledger = user;

    (void)error;
    if (outcome == HF_RECORD_DONE)
        atomic_fetch_add(&ledger->done[number_of(record)], 1);
}

struct crew {
    pthread_t thread;
    struct ledger *ledger;
    struct hf_processor *processor;
    struct hf_scope *s;
    struct hf_processor_report report;
    enum hf_status status;
};

static void *crew_run(void *user)
{
    struct crew *crew = user;

    crew->status = hf_processor_run(crew->s, crew->processor, enter, crew->ledger, &crew->report);
    return NULL;
}

static uint64_t ended_sum(const struct hf_processor_metrics *m)
{
    return m->completed + m->retried + m->failed + m->lost + m->released + m->unsure;
}

/* Three processors of five threads, lost answers and throttling: each record is completed once,
 * none is forgotten, and the figures of all add up. */
TEST(records_thread, fifty_thousand_records)
{
    enum { CREWS = 3, RECORDS_MAX = 50000 };
    static atomic_uchar begun[RECORDS_MAX], done[RECORDS_MAX];
    const int records = test_times(1) > 1 ? RECORDS_MAX : (int)test_times(RECORDS_MAX);
    const struct hf_fault faults[] = {
        {.kind = HF_FAULT_LOST_ANSWER, .operation = HF_STR("UpdateItem"), .probability = 0.001},
        {.kind = HF_FAULT_LOST_REQUEST, .operation = HF_STR("UpdateItem"), .probability = 0.001},
        {.kind = HF_FAULT_THROTTLE, .probability = 0.001}};
    struct stage stage;
    struct ledger ledger = {.stage = &stage, .fail_one_in = 1000};
    struct crew crews[CREWS];
    uint64_t completed = 0, retried = 0;

    stage_open(&stage);
    put_many(&stage, 0, records);
    ledger.begun = begun;
    ledger.done = done;
    CHECK_OK(hf_faulty_set(stage.s, stage.db, faults, 3));
    for (int i = 0; i < CREWS; i++) {
        crews[i] = (struct crew){.ledger = &ledger, .s = hf_scope_new(NULL)};
        crews[i].processor =
            PROCESSOR(&stage, .max_retries = 10, .on_ended = note, .user = &ledger);
        CHECK_INT(0, pthread_create(&crews[i].thread, NULL, crew_run, &crews[i]));
    }
    for (int i = 0; i < CREWS; i++) {
        pthread_join(crews[i].thread, NULL);
        CHECK_INT(HF_OK, crews[i].status);
        CHECK_INT(crews[i].report.metrics.begun, ended_sum(&crews[i].report.metrics));
        CHECK_INT(0, crews[i].report.metrics.lost + crews[i].report.metrics.unsure);
        completed += crews[i].report.metrics.completed;
        retried += crews[i].report.metrics.retried;
        hf_processor_close(crews[i].processor);
        hf_scope_free(crews[i].s);
    }
    CHECK_INT(records, completed);
    CHECK_INT((records + 999) / 1000, retried);
    for (int i = 0; i < records; i++) {
        CHECK_INT(1, ledger.done[i]);
        CHECK_INT(i % 1000 ? 1 : 2, ledger.begun[i]);
    }
    stage_close(&stage);
}
