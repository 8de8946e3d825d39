/*
 * records/processor_test.c: the processor of records, one feature at a time, on every kind of
 * database, without threads and by a virtual clock.
 */
#include "processor_stage.h"

/* ---- all goes well -------------------------------------------------------------------------- */

KIT_TEST(processor, all_are_processed_once)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report = run(&script, processor);

    CHECK_INT(0, report.metrics.begun);
    for (int i = 0; i < 50; i++)
        put(&script, i % 2 ? "odd" : "even", i);
    report = run(&script, processor);
    CHECK_INT(50, report.metrics.begun);
    CHECK_INT(50, report.metrics.completed);
    CHECK_INT(0, report.metrics.refused);
    CHECK_INT(0, report.errors_len);
    CHECK(!report.checkpoint.ptr);
    CHECK_INT(50, script.begun);
    CHECK_INT(0, count(&script, HF_RECORD_UNPROCESSED));
    for (int i = 0; i < 50; i++) {
        struct hf_record_info info = get(&script, i % 2 ? "odd" : "even", i);
        int64_t amount;

        CHECK_INT(HF_RECORD_PROCESSED, info.state);
        CHECK_INT(32, info.done_by.len);
        CHECK_INT(1, info.attempts);
        CHECK(!info.owner.ptr);
        CHECK(hf_value_i64(hf_item_get(info.item, HF_STR("Amount")), &amount) && amount == i);
        CHECK_INT(HF_RECORD_DONE, script.outcomes[i]);
    }
    report = run(&script, processor);
    CHECK_INT(0, report.metrics.begun);
    finish(&script, processor);
}

/* ---- failures ------------------------------------------------------------------------------- */

KIT_TEST(processor, failures_are_isolated_retried_and_collected)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report;
    struct hf_record_info info;
    int64_t last_good_us = 0, second_try_us = INT64_MAX;
    int tries = 0;

    script.fail_first = 2;
    put(&script, "never", 1);
    put(&script, "refused", 1);
    put(&script, "retry", 1);
    put(&script, "silent", 1);
    for (int i = 0; i < 30; i++)
        put(&script, "good", i);
    report = run(&script, processor);
    CHECK_INT(31, report.metrics.completed);
    CHECK_INT(3, report.metrics.failed);
    CHECK_INT(2 + 3 + 3, report.metrics.retried);
    CHECK_INT(30 + 3 + 4 + 4 + 1, report.metrics.begun);
    CHECK_INT(3, report.errors_len);
    for (size_t i = 0; i < 3; i++) {
        const struct hf_processor_error *e = &report.errors[i];
        bool refused = hf_str_equal(e->account, HF_STR("refused"));
        bool silent = hf_str_equal(e->account, HF_STR("silent"));

        CHECK_INT(refused ? HF_INVALID : silent ? HF_LOCKED : HF_IO, e->status);
        CHECK_STR(refused  ? "try again later"
                  : silent ? "locked: another holds it"
                           : "never works",
                  e->text);
        CHECK_INT(refused ? 1 : 4, e->attempts);
        CHECK_STR("0001", e->run_time);
    }
    CHECK_INT(3, count(&script, HF_RECORD_FAILED));
    CHECK_INT(0, count(&script, HF_RECORD_UNPROCESSED));
    info = get(&script, "never", 1);
    CHECK_INT(HF_RECORD_FAILED, info.state);
    CHECK_INT(HF_IO, info.error);
    CHECK_STR("never works", info.error_text);
    CHECK_INT(4, info.attempts);
    CHECK_INT(4, info.failures);
    /* Nobody waited for those that failed; each retry came after its back-off. */
    for (int i = 0; i < script.begun; i++) {
        bool good = memcmp(script.log[i], "good", 4) == 0;

        last_good_us = good ? script.at_us[i] : last_good_us;
        if (memcmp(script.log[i], "never", 5) == 0) {
            second_try_us = ++tries == 2 ? script.at_us[i] : second_try_us;
            if (tries == 4)
                CHECK(script.at_us[i] - script.at_us[0] >= (50 + 100 + 200) * 1000);
        }
    }
    CHECK_INT(4, tries);
    CHECK(last_good_us < second_try_us);
    CHECK(report.elapsed_ms >= 350 && report.elapsed_ms <= 100 + 200 + 400 + 100);
    finish(&script, processor);
}

/* An item whose attributes of ours others have overwritten becomes a failed record with that cause;
 * the rest goes on, and the item is otherwise as it was. */
KIT_TEST(processor, what_cannot_be_read_is_a_failed_record)
{
    static const char *const broken[] = {"Processed", "Fence", "Attempts", "Failures"};
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report;
    uint64_t done;

    for (int i = 0; i < 6; i++)
        put(&script, "a", i);
    for (int i = 0; i < 4; i++) {
        struct hf_update_item update = {
            .table = k->table,
            .key = HF_ITEM(k->scope, HF_S("AccountId", HF_STR("a")),
                           HF_S("RunTime", hf_scope_format(k->scope, "%04d", i))),
            .update = HF_STR("SET #name = :text"),
            .names = HF_ITEM(k->scope, HF_S("#name", hf_str_from(broken[i]))),
            .values = HF_ITEM(k->scope, HF_S(":text", HF_STR("soon")))};

        CHECK_OK(hf_update_item(k->scope, k->db, &update, NULL));
    }
    CHECK_OK(hf_processor_run(k->scope, processor, work, &script, &report));
    CHECK_INT(2, report.metrics.completed);
    CHECK_INT(4, count(&script, HF_RECORD_FAILED));
    for (int i = 0; i < 4; i++) {
        struct hf_record_info info = get(&script, "a", i);
        int64_t amount;

        CHECK_INT(HF_RECORD_FAILED, info.state);
        CHECK_INT(HF_CORRUPT, info.error);
        CHECK(strstr(hf_scope_format(k->scope, "%.*s", HF_FMT(info.error_text)).ptr,
                     hf_scope_format(k->scope,
                                     "the item \"a\", \"%04d\" of table %.*s is not a "
                                     "record",
                                     i, HF_FMT(k->table))
                         .ptr));
        CHECK(hf_value_i64(hf_item_get(info.item, HF_STR("Amount")), &amount) && amount == i);
    }
    CHECK_OK(hf_records_retry_failed(k->scope, script.records, 0, &done));
    report = run(&script, processor);
    CHECK_INT(4, report.metrics.completed);
    finish(&script, processor);
}

KIT_TEST(processor, failed_ones_can_be_tried_again)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .no_retries = true);
    struct hf_processor_report report;
    struct hf_record_list list;
    uint64_t changed;

    script.fail_first = 100;
    for (int i = 0; i < 7; i++)
        put(&script, "retry", i);
    report = run(&script, processor);
    CHECK_INT(7, report.metrics.failed);
    CHECK_INT(7, report.metrics.begun);
    CHECK_OK(hf_records_failed(k->scope, script.records, NULL, &list));
    CHECK_INT(7, list.records_len);
    CHECK_STR("an invalid, malformed answer", list.records[0].error_text);
    CHECK_OK(hf_records_retry_failed(k->scope, script.records, 4, &changed));
    CHECK_INT(4, changed);
    CHECK_INT(4, count(&script, HF_RECORD_UNPROCESSED));
    CHECK_OK(hf_records_retry_failed(k->scope, script.records, 0, &changed));
    CHECK_INT(3, changed);
    script.fail_first = 0;
    report = run(&script, processor);
    CHECK_INT(7, report.metrics.completed);
    CHECK_INT(0, report.metrics.failed);
    CHECK_INT(0, get(&script, "retry", 0).failures);
    finish(&script, processor);
}

static bool only_invalid(const struct hf_error *error, const struct hf_record_info *record,
                         void *user)
{
    struct script *script = user;

    CHECK(script->records && record->claim == NULL);
    return error->status == HF_INVALID;
}

KIT_TEST(processor, the_user_may_say_what_is_tried_again)
{
    struct script script = script_of(k);
    struct hf_processor *processor =
        PROCESSOR(&script, .may_retry = only_invalid, .max_retries = 2, .backoff_ms = 10);
    struct hf_processor_report report;

    put(&script, "refused", 1);
    put(&script, "never", 1);
    report = run(&script, processor);
    CHECK_INT(2, report.metrics.failed);
    CHECK_INT(2, report.metrics.retried);
    CHECK_INT(3, get(&script, "refused", 1).attempts);
    CHECK_INT(1, get(&script, "never", 1).attempts);
    finish(&script, processor);
}

static enum hf_status fail_oddly(struct hf_scope *s, const struct hf_record_info *record,
                                 void *user)
{
    char *text = hf_scope_alloc(s, 5000);

    (void)user;
    memset(text, 'x', 4999);
    text[4999] = '\0';
    memcpy(text + 997, "\xE2\x82\xAC\xE2\x82\xAC", 6); /* the limit is within the second */
    if (is(record, "latin"))
        return hf_scope_fail(s, HF_INVALID, "%s", "gr\xFC\xDF dich");
    return hf_scope_fail(s, HF_INVALID, "%s", text);
}

KIT_TEST(processor, any_error_text_can_be_kept)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);

    put(&script, "latin", 1);
    put(&script, "long", 1);
    CHECK_OK(hf_processor_run(k->scope, processor, fail_oddly, NULL, NULL));
    CHECK_STR("gr?? dich", get(&script, "latin", 1).error_text);
    CHECK_INT(1000, get(&script, "long", 1).error_text.len);
    finish(&script, processor);
}

KIT_TEST(processor, it_stops_after_so_many_failures)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .max_failures = 3, .max_errors = 2);
    struct hf_processor_report report;

    for (int i = 0; i < 10; i++)
        put(&script, "refused", i);
    CHECK_STATUS(HF_LIMIT, hf_processor_run(k->scope, processor, work, &script, &report));
    CHECK_ERROR(HF_LIMIT, "3 records have failed", k->scope);
    CHECK_INT(HF_INVALID, hf_scope_error(k->scope)->cause->status); /* what the third one said */
    CHECK(hf_scope_error(k->scope)->cause->message.len > 0);
    CHECK_INT(3, report.metrics.failed);
    CHECK_INT(2, report.errors_len);
    CHECK(report.checkpoint.ptr);
    CHECK_INT(7, count(&script, HF_RECORD_UNPROCESSED));
    finish(&script, processor);
}

/* A record that kills its processor never fails by itself, and becomes a failed record all the
 * same. */
KIT_TEST(processor, a_record_that_was_begun_too_often_is_a_failed_record)
{
    struct hf_scope *s = k->scope;
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .max_attempts = 3);
    struct hf_processor_report report;
    struct hf_update_item attempts = {.table = k->table,
                                      .key = HF_ITEM(s, HF_S("AccountId", HF_STR("a")),
                                                     HF_S("RunTime", HF_STR("0001"))),
                                      .update = HF_STR("SET Attempts = :n"),
                                      .values = HF_ITEM(s, HF_N(":n", 2))};

    put(&script, "a", 1);
    put(&script, "a", 2);
    CHECK_OK(hf_update_item(s, k->db, &attempts, NULL));
    report = run(&script, processor);
    CHECK_INT(2, report.metrics.completed); /* the third attempt is allowed */
    CHECK_OK(hf_records_reset(s, script.records, HF_STR("a"), HF_STR("0001")));
    attempts.values = HF_ITEM(s, HF_N(":n", 3));
    CHECK_OK(hf_update_item(s, k->db, &attempts, NULL));
    report = run(&script, processor);
    CHECK_INT(0, report.metrics.begun);
    CHECK_INT(1, report.metrics.exhausted);
    CHECK_INT(1, report.errors_len);
    CHECK_INT(HF_LIMIT, report.errors[0].status);
    CHECK_STR("it was begun 3 times; the last time it neither succeeded nor failed",
              report.errors[0].text);
    CHECK_INT(HF_RECORD_FAILED, get(&script, "a", 1).state);
    CHECK_INT(HF_RECORD_EXHAUSTED, script.outcomes[2]);
    finish(&script, processor);
}

/* ---- claims --------------------------------------------------------------------------------- */

/* In the middle of an attempt, another processor runs. */
static enum hf_status with_another(struct hf_scope *s, const struct hf_record_info *record,
                                   void *user)
{
    struct script *script = user;
    struct hf_scope *other = kit_scope(script->k);

    (void)s;
    CHECK(record->claim);
    script->begun++;
    if (script->another) {
        struct hf_processor *another = script->another;

        script->another = NULL;
        script->another_status =
            hf_processor_run(other, another, work, script, &script->another_report);
    }
    return HF_OK;
}

KIT_TEST(processor, what_another_works_on_is_left_alone)
{
    struct script script = script_of(k);
    struct hf_processor *ann = PROCESSOR(&script);
    struct hf_processor *ben = PROCESSOR(&script, .leave_claimed = true);
    struct hf_processor_report report;

    put(&script, "a", 1);
    put(&script, "b", 1);
    script.another = ben;
    CHECK_OK(hf_processor_run(k->scope, ann, with_another, &script, &report));
    CHECK_INT(HF_OK, script.another_status);
    CHECK_INT(1, report.metrics.completed);
    CHECK_INT(0, report.metrics.lost);
    CHECK_INT(1, script.another_report.metrics.completed);
    CHECK(script.another_report.metrics.refused >= 1);
    CHECK_INT(2, script.begun);
    hf_processor_close(ben);
    finish(&script, ann);
}

/* Who is silent for a lease is replaced, not before; his completion is refused. */
KIT_TEST(processor, a_silent_owner_is_replaced_after_one_lease_and_fenced)
{
    struct script script = script_of(k);
    struct hf_processor *ann = PROCESSOR(&script, .lease_ms = 1000);
    struct hf_processor *ben = PROCESSOR(&script, .lease_ms = 5000, .poll_ms = 100);
    struct hf_processor_report report;
    int64_t before_us = k->t->elapsed_us;
    struct hf_record_info info;

    put(&script, "a", 1);
    script.another = ben;
    CHECK_OK(hf_processor_run(k->scope, ann, with_another, &script, &report));
    CHECK_INT(1, report.metrics.begun);
    CHECK_INT(1, report.metrics.lost);
    CHECK_INT(0, report.metrics.completed);
    CHECK_INT(1, script.another_report.metrics.completed);
    CHECK_INT(1, script.another_report.metrics.taken_over);
    CHECK(script.at_us[1] - before_us >= 1000000);
    CHECK(script.at_us[1] - before_us <= 1150000);
    info = get(&script, "a", 1);
    CHECK_INT(HF_RECORD_PROCESSED, info.state);
    CHECK_INT(2, info.attempts);
    CHECK_INT(script.fences[1], info.fence);
    hf_processor_close(ben);
    finish(&script, ann);
}

static enum hf_status extend(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct script *script = user;
    struct hf_scope *other = kit_scope(script->k);
    struct hf_processor_report report;

    for (int i = 0; i < 20; i++) {
        test_advance_ms(script->k->t, 300);
        CHECK_OK(hf_record_extend(s, record));
        CHECK_INT(990, hf_record_left_ms(record));
        if (i % 4)
            continue;
        CHECK_OK(hf_processor_run(other, script->another, work, script, &report));
        CHECK_INT(0, report.metrics.begun);
    }
    return HF_OK;
}

KIT_TEST(processor, a_claim_that_is_renewed_is_kept)
{
    struct script script = script_of(k);
    struct hf_processor *ann = PROCESSOR(&script, .lease_ms = 1000);
    struct hf_processor *ben = PROCESSOR(&script, .leave_claimed = true);
    struct hf_processor_report report;

    put(&script, "a", 1);
    script.another = ben;
    CHECK_OK(hf_processor_run(k->scope, ann, extend, &script, &report));
    CHECK_INT(1, report.metrics.completed);
    CHECK_INT(0, script.begun);
    CHECK_INT(1, get(&script, "a", 1).attempts);
    hf_processor_close(ben);
    finish(&script, ann);
}

/* The record changes under the hands of who works on it. */
static enum hf_status meddle(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct script *script = user;

    script->begun++;
    if (record->attempts > 1 || script->begun > 4)
        return HF_OK;
    if (is(record, "replaced"))
        put(script, "replaced", 1);
    if (is(record, "marked"))
        CHECK_OK(hf_records_mark(s, script->records, record->account, record->run_time));
    if (is(record, "deleted"))
        CHECK_OK(hf_records_delete(s, script->records, record->account, record->run_time));
    if (is(record, "reset"))
        CHECK_OK(hf_records_reset(s, script->records, record->account, record->run_time));
    CHECK_STATUS(HF_LOST, hf_record_extend(s, record));
    CHECK_INT(0, hf_record_left_ms(record));
    return is(record, "reset") ? hf_scope_fail(s, HF_IO, "does not count") : HF_OK;
}

KIT_TEST(processor, who_lost_it_cannot_complete_it)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .workers = 1);
    struct hf_processor_report report;
    struct hf_record_info info;

    put(&script, "replaced", 1);
    put(&script, "marked", 1);
    put(&script, "deleted", 1);
    put(&script, "reset", 1);
    CHECK_OK(hf_processor_run(k->scope, processor, meddle, &script, &report));
    check_sum(&report.metrics);
    CHECK_INT(4, report.metrics.lost);
    CHECK_INT(2, report.metrics.completed); /* the new ones of the replaced and the reset */
    CHECK_INT(6, script.begun);
    CHECK_INT(HF_RECORD_PROCESSED, get(&script, "replaced", 1).state);
    CHECK_INT(HF_RECORD_PROCESSED, get(&script, "marked", 1).state);
    CHECK_INT(0, get(&script, "reset", 1).failures);
    CHECK_STATUS(HF_NOT_FOUND, hf_records_get(k->scope, script.records, HF_STR("deleted"),
                                              HF_STR("0001"), &info));
    finish(&script, processor);
}

KIT_TEST(processor, outside_of_work_there_is_no_claim)
{
    struct script script = script_of(k);
    struct hf_transact_write action;
    struct hf_record_info info;

    put(&script, "a", 1);
    info = get(&script, "a", 1);
    CHECK_STATUS(HF_INVALID, hf_record_extend(k->scope, &info));
    CHECK_ERROR(HF_INVALID, "record a, 0001 is not being worked on", k->scope);
    CHECK_STATUS(HF_INVALID, hf_record_complete_tx(k->scope, &info, &action));
    CHECK_INT(0, hf_record_left_ms(&info));
    hf_records_close(script.records);
}

/* ---- once, with its effect ------------------------------------------------------------------ */

/* The effect is another record: "effect", of which there must not be two. */
static enum hf_status in_a_transaction(struct hf_scope *s, const struct hf_record_info *record,
                                       void *user)
{
    struct script *script = user;
    struct hf_transact_write actions[2];
    struct hf_transact_write_items tx = {.actions = actions, .actions_len = 2};
    struct hf_item effect = HF_ITEM(s, HF_S("AccountId", HF_STR("effect")),
                                    HF_S("RunTime", record->run_time), HF_N("Processed", 1));
    enum hf_status status;

    script->begun++;
    status = hf_records_put_tx(s, script->records, effect, &actions[0]);
    if (status == HF_OK)
        status = hf_record_complete_tx(s, record, &actions[1]);
    if (status == HF_OK)
        status = hf_transact_write_items(s, script->k->db, &tx, NULL);
    return status;
}

KIT_TEST(processor, the_effect_and_the_completion_are_one)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report;
    struct hf_record_list list;

    if (!kit_has(k, HF_FEATURE_TRANSACTIONS)) {
        finish(&script, processor);
        return;
    }
    for (int i = 0; i < 10; i++)
        put(&script, "a", i);
    kit_fault(k, HF_FAULT_LOST_ANSWER, "TransactWriteItems", 3);
    CHECK_OK(hf_processor_run(k->scope, processor, in_a_transaction, &script, &report));
    kit_no_faults(k);
    CHECK_INT(10, report.metrics.completed); /* also those of which it got an error */
    CHECK_INT(10, report.metrics.begun);
    CHECK_INT(10, script.begun);
    CHECK_OK(hf_records_by_account(k->scope, script.records, HF_STR("effect"), NULL, &list));
    CHECK_INT(10, list.records_len);
    for (int i = 0; i < 10; i++)
        CHECK_INT(HF_RECORD_PROCESSED, get(&script, "a", i).state);
    finish(&script, processor);
}

/* ---- the database's failures ---------------------------------------------------------------- */

KIT_TEST(processor, lost_answers_neither_lose_nor_double)
{
    const enum hf_fault_kind kinds[] = {HF_FAULT_LOST_ANSWER, HF_FAULT_LOST_REQUEST,
                                        HF_FAULT_THROTTLE};
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);

    script.fail_first = 1;
    for (int kind = 0; kind < 3; kind++)
        for (uint32_t skip = 0; skip < 12; skip++) {
            struct hf_fault fault = {.kind = kinds[kind],
                                     .operation = HF_STR("UpdateItem"),
                                     .skip = skip,
                                     .count = 3};
            struct hf_processor_report report;
            int number = kind * 100 + (int)skip;

            put(&script, "a", number);
            put(&script, "retry", number);
            put(&script, "refused", number);
            script.begun = 0;
            CHECK_OK(hf_faulty_set(k->scope, k->db, &fault, 1));
            report = run(&script, processor);
            kit_no_faults(k);
            CHECK_INT(4, script.begun);
            CHECK_INT(2, report.metrics.completed);
            CHECK_INT(1, report.metrics.retried);
            CHECK_INT(1, report.metrics.failed);
            CHECK_INT(1, get(&script, "retry", number).failures);
            CHECK_INT(1, get(&script, "a", number).attempts);
        }
    finish(&script, processor);
}

KIT_TEST(processor, an_outage_ends_the_run_and_costs_no_record_anything)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script);
    struct hf_processor_report report;

    for (int i = 0; i < 5; i++)
        put(&script, "a", i);
    kit_fault(k, HF_FAULT_THROTTLE, "Query", 0);
    CHECK_STATUS(HF_THROTTLED, hf_processor_run(k->scope, processor, work, &script, &report));
    CHECK_INT(3, report.metrics.trouble);
    kit_fault(k, HF_FAULT_THROTTLE, "UpdateItem", 0);
    CHECK_STATUS(HF_THROTTLED, hf_processor_run(k->scope, processor, work, &script, &report));
    CHECK_INT(3, report.metrics.trouble);
    CHECK_INT(0, report.metrics.begun);
    kit_fault(k, HF_FAULT_THROTTLE, "Query", 3); /* as often as it is tried again */
    report = run(&script, processor);
    CHECK_INT(3, report.metrics.trouble);
    CHECK_INT(5, report.metrics.completed);
    for (int i = 0; i < 5; i++) {
        CHECK_INT(1, get(&script, "a", i).attempts);
        CHECK_INT(0, get(&script, "a", i).failures);
    }
    finish(&script, processor);
}

/* The work was done, and that cannot be written: another does it again after the lease. */
KIT_TEST(processor, what_could_not_be_written_is_unsure)
{
    struct script script = script_of(k);
    struct hf_processor *processor = PROCESSOR(&script, .lease_ms = 500, .limit = 1);
    struct hf_fault outage = {.kind = HF_FAULT_LOST_REQUEST,
                              .operation = HF_STR("UpdateItem"),
                              .skip = 1};
    struct hf_processor_report report;

    put(&script, "a", 1);
    CHECK_OK(hf_faulty_set(k->scope, k->db, &outage, 1));
    report = run(&script, processor);
    CHECK_INT(1, report.metrics.unsure);
    CHECK_INT(HF_RECORD_UNSURE, script.outcomes[0]);
    kit_no_faults(k);
    CHECK_INT(HF_RECORD_UNPROCESSED, get(&script, "a", 1).state);
    report = run(&script, processor);
    CHECK_INT(1, report.metrics.completed);
    CHECK_INT(1, report.metrics.taken_over);
    CHECK_INT(2, script.begun);
    CHECK(script.fences[1] > script.fences[0]);
    finish(&script, processor);
}
