/*
 * records/processor_stage.h: what processor_test.c and processor_run_test.c share: records, and a handler that
 * does as it is told.
 */
#ifndef HF_TEST_RECORDS_PROCESSOR_STAGE_H
#define HF_TEST_RECORDS_PROCESSOR_STAGE_H

#include <holdfast/records.h>

#include <holdfast/engine.h>

#include <stdio.h>

#include "kit.h"

enum { LOG_MAX = 400 };

/* What the user's function is told to do, and what it saw. */
struct script {
    struct kit *k;
    struct hf_records *records;
    int fail_first;       /* so many attempts of each record whose account is "retry" fail */
    struct hf_scope *run; /* of the run, to be canceled */
    int cancel_at;        /* by the attempt with this number */
    struct hf_processor *another; /* to be run in the middle of an attempt */
    enum hf_status another_status;
    struct hf_processor_report another_report;
    int begun;
    char log[LOG_MAX][48];
    int64_t at_us[LOG_MAX];
    uint64_t fences[LOG_MAX];
    enum hf_record_outcome outcomes[LOG_MAX];
    int ended;
    int told;
    struct hf_processor_progress last;
};

static inline struct script script_of(struct kit *k)
{
    struct script script = {.k = k};

    CHECK_OK(hf_records_open(k->scope, k->db,
                             HF_OPTIONS(hf_records_options, .table = k->table, .shards = 3),
                             &script.records));
    return script;
}

static inline void on_ended(const struct hf_record_info *record, enum hf_record_outcome outcome,
                            const struct hf_error *error, void *user)
{
    struct script *script = user;

    CHECK(record->account.len && record->run_time.len && error);
    CHECK(!record->claim);
    if (script->ended < LOG_MAX)
        script->outcomes[script->ended++] = outcome;
}

static inline struct hf_processor *processor_with(struct script *script,
                                                  struct hf_processor_options options)
{
    struct hf_processor *processor;

    options.size = sizeof(options);
    options.no_threads = true;
    options.on_ended = on_ended;
    options.user = script;
    CHECK_OK(hf_processor_open(script->k->scope, script->records, &options, &processor));
    return processor;
}

#define PROCESSOR(script, ...)                                                                     \
    processor_with((script), (struct hf_processor_options){.owner = HF_STR("ann"), __VA_ARGS__})

static inline void put(struct script *script, const char *account, int number)
{
    struct hf_scope *s = script->k->scope;

    CHECK_OK(hf_records_put(s, script->records,
                            HF_ITEM(s, HF_S("AccountId", hf_str_from(account)),
                                    HF_S("RunTime", hf_scope_format(s, "%04d", number)),
                                    HF_N("Amount", number)),
                            NULL));
}

static inline struct hf_record_info get(struct script *script, const char *account, int number)
{
    struct hf_record_info info;

    CHECK_OK(hf_records_get(script->k->scope, script->records, hf_str_from(account),
                            hf_scope_format(script->k->scope, "%04d", number), &info));
    return info;
}

static inline uint64_t count(struct script *script, enum hf_record_state state)
{
    uint64_t found;

    CHECK_OK(hf_records_count(script->k->scope, script->records, state, &found));
    return found;
}

static inline bool is(const struct hf_record_info *record, const char *account)
{
    return hf_str_equal(record->account, hf_str_from(account));
}

static inline enum hf_status work(struct hf_scope *s, const struct hf_record_info *record,
                                  void *user)
{
    struct script *script = user;
    int at = script->begun++;

    CHECK(at < LOG_MAX);
    snprintf(script->log[at], sizeof(script->log[at]), "%.*s/%.*s", HF_FMT(record->account),
             HF_FMT(record->run_time));
    script->at_us[at] = script->k->t->elapsed_us;
    script->fences[at] = record->fence;
    CHECK(record->claim && record->token.len == 32);
    CHECK_STR("ann", record->owner);
    CHECK(hf_record_left_ms(record) > 0);
    if (script->cancel_at && script->begun == script->cancel_at)
        hf_scope_cancel(script->run);
    if (is(record, "retry") && (int)record->failures < script->fail_first)
        return hf_scope_fail(s, HF_IO,
                             "an invalid, malformed answer"); /* the text does not count */
    if (is(record, "never"))
        return hf_scope_fail(s, HF_IO, "never works");
    if (is(record, "refused"))
        return hf_scope_fail(s, HF_INVALID, "try again later");
    if (is(record, "silent"))
        return HF_LOCKED;
    return HF_OK;
}

static inline void check_sum(const struct hf_processor_metrics *m)
{
    CHECK_INT(m->begun, m->completed + m->retried + m->failed + m->lost + m->released + m->unsure +
                            m->running);
}

static inline struct hf_processor_report run(struct script *script, struct hf_processor *processor)
{
    struct hf_processor_report report;

    CHECK_OK(hf_processor_run(script->k->scope, processor, work, script, &report));
    CHECK_INT(0, report.metrics.running);
    check_sum(&report.metrics);
    return report;
}

static inline void finish(struct script *script, struct hf_processor *processor)
{
    hf_processor_close(processor);
    hf_records_close(script->records);
}

#endif
