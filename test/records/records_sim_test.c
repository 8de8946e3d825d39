/*
 * records/records_sim_test.c: processors of one table under bad luck. Answers get lost, requests
 * are done late or twice, processors are paused for longer than a lease, and die.
 *
 * What has to hold, in every history:
 *
 *  (1) No claim has the fence of another.
 *  (2) A record is completed once: by one claim, whose token is in it; nobody else is told that he
 *      did it.
 *  (3) None is forgotten: in the end each is processed, or is a failed record after as many
 *      failures as it takes.
 *  (4) What is done in one transaction with the completion is done once.
 *  (5) In the order of accounts nothing begins before the one before it is done with.
 *  (6) What a processor counts adds up.
 *  (7) Nobody is told that a record is lost, or failed, which he has completed.
 *  (8) Without bad luck nobody takes anything away from anybody.
 */
#include <holdfast/records.h>

#include <stdio.h>
#include <string.h>

#include "sim.h"

enum { RECORDS = 9, ACTORS = 3, FENCES_MAX = 200, LEASE_MS = 300 };

struct model {
    bool good;
    bool order;
    bool effects;
    struct hf_records *truth; /* without bad luck */
    struct {
        uint64_t fences[FENCES_MAX];
        int fences_len;
        int told_done;
        char token[40];
    } records[RECORDS];
};

/* What one life of one actor works with. */
struct shift {
    struct actor *a;
    struct model *model;
    struct hf_records *records;
};

static int number_of(const struct hf_record_info *record)
{
    return record->run_time.ptr[0] - '0';
}

static struct hf_str account_of(struct hf_scope *s, int number)
{
    return hf_scope_format(s, "account%d", number % 3);
}

static struct hf_str run_time_of(struct hf_scope *s, int number)
{
    return hf_scope_format(s, "%d", number);
}

static void check_fence(struct shift *shift, const struct hf_record_info *record)
{
    struct model *m = shift->model;
    int i = number_of(record);

    for (int j = 0; j < m->records[i].fences_len; j++)
        SIM_CHECK(shift->a, m->records[i].fences[j] != record->fence); /* (1) */
    SIM_CHECK(shift->a, m->records[i].fences_len < FENCES_MAX);
    m->records[i].fences[m->records[i].fences_len++] = record->fence;
}

/* (5): when it begins, the one before it in its account is not unprocessed any more. */
static void check_turn(struct shift *shift, const struct hf_record_info *record)
{
    struct hf_scope *s = sim_scope(shift->a->sim);
    struct hf_record_info before;
    int i = number_of(record);

    if (!shift->model->order || i < 3)
        return;
    SIM_CHECK(shift->a, hf_records_get(s, shift->model->truth, account_of(s, i - 3),
                                       run_time_of(s, i - 3), &before) == HF_OK);
    SIM_CHECK(shift->a, before.state != HF_RECORD_UNPROCESSED);
}

/* The effect is that a number grows; it may do so once for each record. */
static enum hf_status effect(struct hf_scope *s, struct shift *shift,
                             const struct hf_record_info *record)
{
    struct hf_update_item grow = {.table = HF_STR("Records"),
                                  .key = HF_ITEM(s, HF_S("AccountId", HF_STR("effects")),
                                                 HF_S("RunTime", record->run_time)),
                                  .update = HF_STR("ADD #n :one"),
                                  .names = HF_ITEM(s, HF_S("#n", HF_STR("n"))),
                                  .values = HF_ITEM(s, HF_N(":one", 1))};
    struct hf_transact_write actions[2] = {{.update = &grow}};
    struct hf_transact_write_items tx = {.actions = actions, .actions_len = 2};
    enum hf_status status = hf_record_complete_tx(s, record, &actions[1]);

    return status == HF_OK ? hf_transact_write_items(s, shift->a->db, &tx, NULL) : status;
}

static enum hf_status work(struct hf_scope *s, const struct hf_record_info *record, void *user)
{
    struct shift *shift = user;
    struct sim *sim = shift->a->sim;

    check_fence(shift, record);
    check_turn(shift, record);
    actor_sleep_ms(shift->a, (uint32_t)sim_random_below(sim, 30));
    if (sim_random_below(sim, 4) == 0) {
        enum hf_status status = hf_record_extend(s, record);

        if (status == HF_LOST)
            return status;
        actor_sleep_ms(shift->a, (uint32_t)sim_random_below(sim, 100));
    }
    if (sim_random_below(sim, 10) == 0)
        return hf_scope_fail(s, HF_IO, "bad luck");
    return shift->model->effects ? effect(s, shift, record) : HF_OK;
}

static void ended(const struct hf_record_info *record, enum hf_record_outcome outcome,
                  const struct hf_error *error, void *user)
{
    struct shift *shift = user;
    struct model *m = shift->model;
    int i = number_of(record);

    struct hf_scope *s = sim_scope(shift->a->sim);
    struct hf_record_info truth;

    (void)error;
    SIM_CHECK(shift->a,
              hf_records_get(s, m->truth, record->account, record->run_time, &truth) == HF_OK);
    if (outcome != HF_RECORD_DONE) {
        SIM_CHECK(shift->a, outcome == HF_RECORD_UNSURE ||
                                !hf_str_equal(truth.done_by, record->token)); /* (7) */
        return;
    }
    SIM_CHECK(shift->a, truth.fence == record->fence);   /* (2): nobody had claimed it since */
    SIM_CHECK(shift->a, m->records[i].told_done++ == 0); /* (2) */
    snprintf(m->records[i].token, sizeof(m->records[i].token), "%.*s", HF_FMT(record->token));
}

static void check_sum(struct shift *shift, const struct hf_processor_metrics *m)
{
    SIM_CHECK(shift->a, m->begun == m->completed + m->retried + m->failed + m->lost + m->released +
                                        m->unsure); /* (6) */
    SIM_CHECK(shift->a, m->running == 0);
    if (!shift->model->good) /* (8) */
        return;
    SIM_CHECK(shift->a, m->lost == 0 && m->taken_over == 0 && m->unsure == 0 && m->trouble == 0);
}

static void worker(struct actor *a)
{
    struct shift shift = {.a = a, .model = a->user};
    struct hf_processor_options options = {.size = sizeof(options),
                                           .no_threads = true,
                                           .lease_ms = LEASE_MS,
                                           .poll_ms = 100,
                                           .backoff_ms = 20,
                                           .backoff_max_ms = 200,
                                           .account_order = shift.model->order,
                                           .on_ended = ended,
                                           .user = &shift};
    struct hf_processor_report report;
    struct hf_processor *processor;

    while (hf_records_open(a->s, a->db, NULL, &shift.records) != HF_OK)
        hf_scope_reset(a->s);
    SIM_CHECK(a, hf_processor_open(a->s, shift.records, &options, &processor) == HF_OK);
    for (;;) {
        enum hf_status status;

        hf_scope_reset(a->s);
        status = hf_processor_run(a->s, processor, work, &shift, &report);
        check_sum(&shift, &report.metrics);
        if (status == HF_OK)
            break;
        actor_sleep_ms(a, 50);
    }
    hf_processor_close(processor);
    hf_records_close(shift.records);
}

/* (2) (3) (4), when all have ended. */
static void auditor(struct actor *a)
{
    struct model *m = a->user;
    struct hf_scope *s = sim_scope(a->sim);

    for (int i = 0; i < RECORDS; i++) {
        struct hf_get_item read = {.table = HF_STR("Records"),
                                   .key = HF_ITEM(s, HF_S("AccountId", HF_STR("effects")),
                                                  HF_S("RunTime", run_time_of(s, i)))};
        struct hf_get_item_result got;
        struct hf_record_info info;
        int64_t effects = 0;
        bool done;

        SIM_CHECK(a,
                  hf_records_get(s, m->truth, account_of(s, i), run_time_of(s, i), &info) == HF_OK);
        done = info.state == HF_RECORD_PROCESSED;
        SIM_CHECK(a, done || info.state == HF_RECORD_FAILED);
        SIM_CHECK(a, done == (info.done_by.len == 32));
        SIM_CHECK(a, done || info.failures == 4);
        SIM_CHECK(a, !m->records[i].told_done ||
                         hf_str_equal(info.done_by, hf_str_from(m->records[i].token)));
        SIM_CHECK(a, !info.token.len);
        SIM_CHECK(a, hf_get_item(s, sim_db(a->sim), &read, &got) == HF_OK);
        (void)hf_value_i64(hf_item_get(got.item, HF_STR("n")), &effects);
        SIM_CHECK(a, effects == (m->effects && done ? 1 : 0));
    }
}

static void history(struct sim *sim, void *user)
{
    static const char *const names[ACTORS] = {"ann", "ben", "cyd"};
    struct model m = *(const struct model *)user;
    struct hf_scope *s = sim_scope(sim);

    m.effects = sim_random_below(sim, 2);
    CHECK_OK(
        hf_records_open(s, sim_db(sim), HF_OPTIONS(hf_records_options, .shards = 2), &m.truth));
    for (int i = 0; i < RECORDS; i++)
        CHECK_OK(hf_records_put(s, m.truth,
                                HF_ITEM(s, HF_S("AccountId", account_of(s, i)),
                                        HF_S("RunTime", run_time_of(s, i))),
                                NULL));
    for (int i = 0; i < ACTORS; i++)
        sim_start(sim, names[i], worker, &m);
    sim_run(sim);
    sim_calm(sim);
    sim_start(sim, "auditor", auditor, &m);
    sim_run(sim);
    hf_records_close(m.truth);
}

static const struct sim_luck bad = {.lost_requests = 15,
                                    .lost_answers = 15,
                                    .twice = 15,
                                    .later_again = 10,
                                    .refused = 15,
                                    .slow = 10,
                                    .pauses = 8,
                                    .deaths = 5,
                                    .slow_ms = 400,
                                    .pause_ms = 900,
                                    .wall_skew_ms = 60000,
                                    .drift_ppm = 500};

TEST(records_sim, each_is_completed_once)
{
    struct model m = {.order = false};

    sim_each(t, 1500, &bad, history, &m);
}

TEST(records_sim, accounts_stay_in_order)
{
    struct model m = {.order = true};

    sim_each(t, 1500, &bad, history, &m);
}

TEST(records_sim, without_bad_luck_no_claim_is_lost)
{
    const struct sim_luck good = {.slow_ms = 0};
    struct model m = {.good = true};

    sim_each(t, 200, &good, history, &m);
}

/* ---- changes by hand ------------------------------------------------------------------------ */

/* Ann changes three records; as soon as Ben sees it, he changes them back. That is how they stay,
 * however often what Ann sent arrives. */
struct undo {
    struct hf_records *truth;
    bool failed; /* then nothing is known */
};

static struct hf_records *open_by(struct actor *a)
{
    struct hf_records *records;

    while (hf_records_open(a->s, a->db, NULL, &records) != HF_OK)
        hf_scope_reset(a->s);
    return records;
}

static void doer(struct actor *a)
{
    struct hf_records *records = open_by(a);
    struct undo *undo = a->user;

    undo->failed = hf_records_mark(a->s, records, HF_STR("a"), HF_STR("mark")) != HF_OK ||
                   hf_records_reset(a->s, records, HF_STR("a"), HF_STR("reset")) != HF_OK ||
                   hf_records_delete(a->s, records, HF_STR("a"), HF_STR("delete")) != HF_OK ||
                   undo->failed;
    hf_records_close(records);
}

/* The state of a record as it truly is; 0: there is none. */
static enum hf_record_state state_of(struct sim *sim, struct undo *undo, const char *run_time)
{
    struct hf_record_info info;

    if (hf_records_get(sim_scope(sim), undo->truth, HF_STR("a"), hf_str_from(run_time), &info) !=
        HF_OK)
        return (enum hf_record_state)0;
    return info.state;
}

static void undoer(struct actor *a)
{
    struct hf_records *records = open_by(a);
    struct undo *undo = a->user;
    bool failed = false;

    while (state_of(a->sim, undo, "mark") != HF_RECORD_PROCESSED && !undo->failed)
        actor_sleep_ms(a, 1);
    failed = hf_records_reset(a->s, records, HF_STR("a"), HF_STR("mark")) != HF_OK || failed;
    while (state_of(a->sim, undo, "reset") != HF_RECORD_UNPROCESSED && !undo->failed)
        actor_sleep_ms(a, 1);
    failed = hf_records_mark(a->s, records, HF_STR("a"), HF_STR("reset")) != HF_OK || failed;
    while (state_of(a->sim, undo, "delete") && !undo->failed)
        actor_sleep_ms(a, 1);
    failed = hf_records_put(a->s, records,
                            HF_ITEM(a->s, HF_S("AccountId", HF_STR("a")),
                                    HF_S("RunTime", HF_STR("delete"))),
                            NULL) != HF_OK ||
             failed;
    undo->failed = undo->failed || failed;
    hf_records_close(records);
}

static void undo_auditor(struct actor *a)
{
    struct undo *undo = a->user;

    SIM_CHECK(a, state_of(a->sim, undo, "mark") == HF_RECORD_UNPROCESSED);
    SIM_CHECK(a, state_of(a->sim, undo, "reset") == HF_RECORD_PROCESSED);
    SIM_CHECK(a, state_of(a->sim, undo, "delete") == HF_RECORD_UNPROCESSED);
}

static void undo_history(struct sim *sim, void *user)
{
    static const char *const names[] = {"mark", "reset", "delete"};
    struct hf_scope *s = sim_scope(sim);
    int *known = user;
    struct undo undo = {.failed = false};

    CHECK_OK(
        hf_records_open(s, sim_db(sim), HF_OPTIONS(hf_records_options, .shards = 1), &undo.truth));
    for (int i = 0; i < 3; i++)
        CHECK_OK(hf_records_put(s, undo.truth,
                                HF_ITEM(s, HF_S("AccountId", HF_STR("a")),
                                        HF_S("RunTime", hf_str_from(names[i]))),
                                NULL));
    CHECK_OK(hf_records_mark(s, undo.truth, HF_STR("a"), HF_STR("reset")));
    sim_start(sim, "ann", doer, &undo);
    sim_start(sim, "ben", undoer, &undo);
    sim_run(sim);
    sim_calm(sim);
    if (!undo.failed) {
        ++*known;
        sim_start(sim, "auditor", undo_auditor, &undo);
        sim_run(sim);
    }
    hf_records_close(undo.truth);
}

TEST(records_sim, what_was_undone_stays_undone)
{
    const struct sim_luck luck = {.lost_requests = 50,
                                  .lost_answers = 200,
                                  .twice = 50,
                                  .later_again = 100,
                                  .pauses = 10,
                                  .pause_ms = 200};
    int known = 0;

    sim_each(t, 600, &luck, undo_history, &known);
    CHECK(known > 0);
}
