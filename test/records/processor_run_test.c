/*
 * records/processor_run_test.c: runs of a processor: the order of accounts, ending early, reports, options,
 * memory.
 */
#include "processor_stage.h"

/* ---- the order of accounts ------------------------------------------------------------------ */

static void check_order(const struct script *script, const char *account, bool repeats)
{
    char last[48] = "";

    for (int i = 0; i < script->begun; i++)
        if (memcmp(script->log[i], account, strlen(account)) == 0) {
            int order = strcmp(last, script->log[i]);

            CHECK(order < 0 || (repeats && order == 0));
            memcpy(last, script->log[i], sizeof(last));
        }
    CHECK(last[0]);
}

KIT_TEST(processor, accounts_in_order)
{
    enum { EACH = 7 };
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .account_order = true);
    struct hf_processor_report report;

    script.fail_first = 2;
    for (int i = EACH - 1; i >= 0; i--) {
        put(&script, "a", i);
        put(&script, "b", i);
        put(&script, "retry", i);
        put(&script, "never", i);
    }
    report = run(&script, processor);
    CHECK_INT(3 * EACH, report.metrics.completed);
    CHECK_INT(EACH, report.metrics.failed);
    check_order(&script, "a/", false);
    check_order(&script, "b/", false);
    check_order(&script, "retry/", true);
    check_order(&script, "never/", true);
    finish(&script, processor);
}

KIT_TEST(processor, a_failed_one_can_block_its_account)
{
    struct script script = script_of(k);
    struct hf_processor *processor =
        PROCESSOR(&script, .account_order = true, .failed_blocks = true);
    struct hf_processor_report report;

    for (int i = 0; i < 5; i++) {
        put(&script, "a", i);
        put(&script, "refused", i);
    }
    report = run(&script, processor);
    CHECK_INT(5, report.metrics.completed);
    CHECK_INT(1, report.metrics.failed);
    CHECK_INT(4, count(&script, HF_RECORD_UNPROCESSED));
    CHECK_OK(hf_records_mark(k->scope, script.records, HF_STR("refused"), HF_STR("0000")));
    report = run(&script, processor);
    CHECK_INT(1, report.metrics.failed);
    CHECK_INT(HF_RECORD_FAILED, get(&script, "refused", 1).state);
    CHECK_INT(3, count(&script, HF_RECORD_UNPROCESSED));
    finish(&script, processor);
}

/* ---- ending early, and going on ------------------------------------------------------------- */

KIT_TEST(processor, a_checkpoint_goes_on_with_its_figures)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .limit = 7);
    struct hf_processor_report first, report;

    for (int i = 0; i < 20; i++)
        put(&script, "a", i);
    put(&script, "refused", 1);
    first = run(&script, processor);
    CHECK_INT(7, first.metrics.begun);
    CHECK_INT(14, count(&script, HF_RECORD_UNPROCESSED));
    CHECK(first.checkpoint.ptr);
    hf_processor_close(processor);
    processor = PROCESSOR(&script, .resume = first.checkpoint, .limit = 7);
    report = run(&script, processor);
    CHECK_INT(14, report.metrics.begun);
    CHECK_INT(7, count(&script, HF_RECORD_UNPROCESSED));
    hf_processor_close(processor);
    processor = PROCESSOR(&script, .resume = report.checkpoint);
    report = run(&script, processor);
    CHECK_INT(21, report.metrics.begun);
    CHECK_INT(20, report.metrics.completed);
    CHECK_INT(1, report.metrics.failed);
    CHECK_INT(21, script.begun);
    CHECK(!report.checkpoint.ptr);
    report = run(&script, processor); /* it counts for one run */
    CHECK_INT(0, report.metrics.begun);
    finish(&script, processor);
}

/* Where it begins does not matter: all are found. */
KIT_TEST(processor, nothing_before_the_checkpoint_is_forgotten)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .limit = 10);
    struct hf_processor_report report;

    for (int i = 10; i < 30; i++)
        put(&script, "a", i);
    report = run(&script, processor);
    hf_processor_close(processor);
    for (int i = 0; i < 10; i++)
        put(&script, "a", i); /* before all that were there */
    processor = PROCESSOR(&script, .resume = report.checkpoint);
    report = run(&script, processor);
    CHECK_INT(30, report.metrics.completed);
    CHECK_INT(0, count(&script, HF_RECORD_UNPROCESSED));
    finish(&script, processor);
}

static enum hf_status cancel(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct script *script = user;
    enum hf_status status = work(s, record, user);

    if (script->cancel_at && script->begun >= script->cancel_at)
        return hf_scope_fail(s, HF_CANCELED, "as I was told to");
    return status;
}

static enum hf_status sleep_long(struct hf_scope *s, const struct hf_record_info *record,
                                 void *user)
{
    enum hf_status status = work(s, record, user);

    return status == HF_OK ? hf_scope_sleep_ms(s, 300) : status;
}

KIT_TEST(processor, it_can_be_canceled)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report;
    struct hf_scope *s = kit_scope(k);

    for (int i = 0; i < 20; i++)
        put(&script, "a", i);
    script.run = s;
    script.cancel_at = 5;
    CHECK_STATUS(HF_CANCELED, hf_processor_run(s, processor, work, &script, &report));
    CHECK_INT(5, report.metrics.completed); /* what was finished is completed */
    CHECK_INT(15, count(&script, HF_RECORD_UNPROCESSED));
    CHECK(report.checkpoint.ptr);
    hf_scope_reset(s);
    script.cancel_at = 0;
    report = run(&script, processor);
    CHECK_INT(15, report.metrics.completed);
    finish(&script, processor);
}

/* At the deadline what is not finished is given back, at once and as if nothing had been. */
KIT_TEST(processor, the_deadline_gives_back)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report;
    struct hf_scope *s = kit_scope(k);

    for (int i = 0; i < 10; i++)
        put(&script, "a", i);
    hf_scope_timeout_ms(s, 1000);
    CHECK_STATUS(HF_TIMEOUT, hf_processor_run(s, processor, sleep_long, &script, &report));
    check_sum(&report.metrics);
    CHECK_INT(3, report.metrics.completed);
    CHECK_INT(1, report.metrics.released);
    CHECK_INT(0, report.metrics.failed + report.metrics.retried);
    hf_scope_reset(s);
    report = run(&script, processor);
    CHECK_INT(7, report.metrics.completed);
    CHECK_INT(0, report.metrics.taken_over);
    for (int i = 0; i < 10; i++)
        CHECK_INT(1, get(&script, "a", i).attempts);
    finish(&script, processor);
}

/* A handler that says it was canceled, when nobody did, has failed. */
KIT_TEST(processor, to_be_canceled_without_a_reason_is_a_failure)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .no_retries = true);
    struct hf_processor_report report;

    script.run = kit_scope(k);
    script.cancel_at = 1;
    put(&script, "a", 1);
    CHECK_OK(hf_processor_run(k->scope, processor, cancel, &script, &report));
    CHECK_INT(1, report.metrics.failed);
    CHECK_STR("as I was told to", report.errors[0].text);
    finish(&script, processor);
}

KIT_TEST(processor, each_attempt_can_have_a_deadline)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .timeout_ms = 200, .max_retries = 1);
    struct hf_processor_report report;

    put(&script, "a", 1);
    CHECK_OK(hf_processor_run(k->scope, processor, sleep_long, &script, &report));
    CHECK_INT(1, report.metrics.retried);
    CHECK_INT(1, report.metrics.failed);
    CHECK_INT(HF_TIMEOUT, report.errors[0].status);
    finish(&script, processor);
}

KIT_TEST(processor, it_can_go_on_for_ever)
{
    struct script script = script_of(k);
    struct hf_processor *processor =
        PROCESSOR(&script, .forever = true, .poll_ms = 500, .backoff_max_ms = 200);
    struct hf_processor_report report;
    struct hf_scope *s = kit_scope(k);
    int64_t before_us = k->t->elapsed_us;

    put(&script, "a", 1);
    hf_scope_timeout_ms(s, 60000);
    kit_fault(k, HF_FAULT_THROTTLE, "Query", 20); /* more than it is tried again */
    CHECK_STATUS(HF_TIMEOUT, hf_processor_run(s, processor, work, &script, &report));
    CHECK_INT(1, report.metrics.completed);
    CHECK_INT(20, report.metrics.trouble);
    CHECK(k->t->elapsed_us - before_us >= 59000000);
    finish(&script, processor);
}

/* ---- telling -------------------------------------------------------------------------------- */

static void tell(const struct hf_processor_progress *progress, void *user)
{
    struct script *script = user;

    check_sum(&progress->metrics);
    CHECK_INT(0, progress->metrics.running);
    CHECK(progress->metrics.completed >= script->last.metrics.completed);
    script->told++;
    script->last = *progress;
    if (script->told == 3) {
        CHECK_INT(100, progress->total);
        CHECK(progress->rate > 3.2 && progress->rate < 3.5);
        CHECK(progress->eta_ms > 20000 && progress->eta_ms < 32000);
    }
}

KIT_TEST(processor, progress_with_rate_and_eta)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .on_progress = tell);
    struct hf_processor_report report;
    struct hf_processor_progress progress;

    for (int i = 0; i < 100; i++)
        put(&script, "a", i);
    CHECK_OK(hf_processor_run(k->scope, processor, sleep_long, &script, &report));
    CHECK(script.told >= 24 && script.told <= 32);
    CHECK_INT(100, script.last.metrics.completed);
    CHECK_INT(0, script.last.eta_ms);
    CHECK_INT(100, report.total);
    CHECK(report.elapsed_ms >= 30000 && report.elapsed_ms < 31000);
    hf_processor_progress(processor, &progress);
    CHECK_INT(100, progress.metrics.completed);
    CHECK_INT(report.elapsed_ms, progress.elapsed_ms);
    finish(&script, processor);
}

KIT_TEST(processor, a_dry_run_counts)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .dry_run = true);
    struct hf_processor_report report;

    for (int i = 0; i < 9; i++)
        put(&script, "a", i);
    report = run(&script, processor);
    CHECK_INT(9, report.total);
    CHECK_INT(0, script.begun);
    CHECK_INT(9, count(&script, HF_RECORD_UNPROCESSED));
    finish(&script, processor);
}

/* ---- options -------------------------------------------------------------------------------- */

static enum hf_status try_options(struct script *script, struct hf_processor_options options)
{
    struct hf_processor *processor;
    enum hf_status status;

    options.size = sizeof(options);
    status = hf_processor_open(script->k->scope, script->records, &options, &processor);
    CHECK((status == HF_OK) == (processor != NULL));
    hf_processor_close(processor);
    return status;
}

#define TRY_OPTIONS(...) try_options(&script, (struct hf_processor_options){__VA_ARGS__})

static void put_by_another(struct script *script, const char *account, int number)
{
    struct hf_scope *s = script->k->scope;

    CHECK_OK(hf_put_item(
        s, script->k->db,
        &(struct hf_put_item){.table = script->k->table,
                              .item = HF_ITEM(s, HF_S("AccountId", hf_str_from(account)),
                                              HF_S("RunTime", hf_scope_format(s, "%04d", number)),
                                              HF_N("Processed", 0))},
        NULL));
}

/* What other programs put is found: as a run begins, and every adopt_ms; or never. */
KIT_TEST(processor, what_others_put_is_found)
{
    struct script script = script_of(k);
    struct hf_processor *never = PROCESSOR(&script, .adopt_ms = UINT32_MAX);
    struct hf_processor *usual = PROCESSOR(&script, .poll_ms = 1000);
    struct hf_processor_report report;

    put(&script, "ours", 1);
    for (int i = 0; i < 3; i++)
        put_by_another(&script, "other", i);
    CHECK_OK(hf_processor_run(k->scope, never, work, &script, &report));
    CHECK_INT(1, report.metrics.completed);
    CHECK_INT(1, report.total);
    CHECK_OK(hf_processor_run(k->scope, usual, work, &script, &report));
    CHECK_INT(3, report.metrics.completed);
    CHECK_INT(3, report.metrics.adopted);
    CHECK_INT(3, report.total);
    hf_processor_close(never);
    hf_processor_close(usual);
    hf_records_close(script.records);
}

/* Put one more by another program, once, when the queue has been empty for a while. */
static void put_later(const struct hf_processor_progress *progress, void *user)
{
    struct script *script = user;

    if (progress->elapsed_ms > 3000 && !script->told++)
        put_by_another(script, "later", 1);
    if (progress->metrics.completed == 2 || progress->elapsed_ms > 60000)
        hf_scope_cancel(script->run);
}

/* A run that lasts finds what comes while it waits, at one page every adopt_ms. */
KIT_TEST(processor, what_others_put_later_is_found)
{
    struct script script = script_of(k);
    struct hf_processor_options o = {.size = sizeof(o),
                                     .owner = HF_STR("ann"),
                                     .no_threads = true,
                                     .forever = true,
                                     .no_count = true,
                                     .adopt_ms = 5000,
                                     .on_progress = put_later,
                                     .user = &script};
    struct hf_processor *processor;
    struct hf_processor_report report;

    script.run = k->scope;
    put(&script, "ours", 1);
    CHECK_OK(hf_processor_open(k->scope, script.records, &o, &processor));
    CHECK_STATUS(HF_CANCELED, hf_processor_run(k->scope, processor, work, &script, &report));
    hf_scope_reset(k->scope);
    CHECK_INT(2, report.metrics.completed);
    CHECK_INT(1, report.metrics.adopted);
    CHECK(report.elapsed_ms < 20000);
    hf_processor_close(processor);
    hf_records_close(script.records);
}

KIT_TEST(processor, options_that_cannot_be)
{
    struct script script = script_of(k);
    struct hf_processor *processor;

    CHECK_OK(TRY_OPTIONS(.workers = 256));
    CHECK_STATUS(HF_INVALID, TRY_OPTIONS(.workers = 257));
    CHECK_ERROR(HF_INVALID, "257 workers are more than 256", k->scope);
    CHECK_OK(TRY_OPTIONS(.lease_ms = 1000, .heartbeat_ms = 500));
    CHECK_STATUS(HF_INVALID, TRY_OPTIONS(.lease_ms = 1000, .heartbeat_ms = 501));
    CHECK_ERROR(HF_INVALID, "a heartbeat of 501 ms is more than half of a lease of 1000 ms",
                k->scope);
    CHECK_OK(TRY_OPTIONS(.backoff_multiplier = 1));
    CHECK_STATUS(HF_INVALID, TRY_OPTIONS(.backoff_multiplier = 0.5));
    CHECK_STATUS(HF_INVALID, TRY_OPTIONS(.failed_blocks = true));
    CHECK_STATUS(HF_INVALID, TRY_OPTIONS(.resume = HF_STR("{}")));
    CHECK_ERROR(HF_INVALID, "\"{}\" is not a checkpoint of a processor", k->scope);
    CHECK_STATUS(HF_INVALID, TRY_OPTIONS(.resume = HF_STR("not even JSON")));
    CHECK_STATUS(HF_INVALID, hf_processor_open(k->scope, NULL, NULL, &processor));
    hf_processor_close(NULL);
    hf_records_close(script.records);
}

/* ---- memory --------------------------------------------------------------------------------- */

static enum hf_status do_nothing(struct hf_scope *s, const struct hf_record_info *record,
                                 void *user)
{
    (void)user;
    return record->run_time.ptr[3] == '2' && !record->failures
               ? hf_scope_fail(s, HF_IO, "the first time")
               : HF_OK;
}

static enum hf_status process_all(struct hf_scope *s, struct hf_records *records)
{
    struct hf_processor_report report;
    struct hf_processor *processor;
    enum hf_status status = hf_processor_open(s, records,
                                              HF_OPTIONS(hf_processor_options, .no_threads = true,
                                                         .account_order = true, .lease_ms = 1000),
                                              &processor);

    if (status == HF_OK)
        status = hf_processor_run(s, processor, do_nothing, NULL, &report);
    hf_processor_close(processor);
    return status;
}

/* Whatever was interrupted by it, the next run finishes it. */
TEST(processor, any_allocation_may_fail)
{
    struct hf_scope *outer = hf_scope_new(test_env(t));
    struct hf_records *records;
    struct hf_db *db;

    CHECK_OK(hf_open(outer, HF_STR("memory:"),
                     HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true), &db));
    CHECK_OK(hf_records_open(outer, db, HF_OPTIONS(hf_records_options, .shards = 1), &records));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s, *calm;
        enum hf_status status;
        uint64_t left;

        t->fail_at = 0; /* not these */
        calm = hf_scope_new(test_env(t));
        for (int i = 0; i < 4; i++)
            CHECK_OK(hf_records_put(calm, records,
                                    HF_ITEM(calm, HF_S("AccountId", HF_STR("a")),
                                            HF_S("RunTime", hf_scope_format(calm, "%04d", i))),
                                    NULL));
        t->fail_at = (int64_t)t->allocs + nth;
        s = hf_scope_new(test_env(t));
        status = s ? process_all(s, records) : HF_NOMEM;
        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status == HF_OK || t->alloc_failed);
        hf_scope_free(s);
        CHECK_OK(process_all(calm, records));
        CHECK_OK(hf_records_count(calm, records, HF_RECORD_UNPROCESSED, &left));
        CHECK_INT(0, left);
        CHECK_OK(hf_records_count(calm, records, HF_RECORD_FAILED, &left));
        CHECK_INT(0, left);
        hf_scope_free(calm);
    }
    hf_records_close(records);
    hf_db_close(db);
    hf_scope_free(outer);
}

/* More records fail than are remembered to wait: all are tried again all the same. */
TEST(processor, more_wait_than_are_remembered)
{
    enum { RECORDS = 10100 };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_processor_report report;
    struct hf_processor *processor;
    struct hf_records *records;
    struct hf_db *db;

    CHECK_OK(hf_open(s, HF_STR("memory:"), HF_OPTIONS(hf_engine_options, .no_upkeep_thread = true),
                     &db));
    CHECK_OK(hf_records_open(s, db, NULL, &records));
    for (int i = 0; i < RECORDS; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);

        CHECK_OK(hf_records_put(s, records,
                                HF_ITEM(s, HF_S("AccountId", hf_scope_format(s, "%d", i)),
                                        HF_S("RunTime", HF_STR("0002"))),
                                NULL));
        hf_scope_rewind(s, mark);
    }
    CHECK_OK(hf_processor_open(s, records, HF_OPTIONS(hf_processor_options, .no_threads = true),
                               &processor));
    CHECK_OK(hf_processor_run(s, processor, do_nothing, NULL, &report));
    CHECK_INT(RECORDS, report.metrics.retried);
    CHECK_INT(RECORDS, report.metrics.completed);
    CHECK(report.metrics.refused > 0); /* those that were not remembered */
    hf_processor_close(processor);
    hf_records_close(records);
    hf_db_close(db);
    hf_scope_free(s);
}
