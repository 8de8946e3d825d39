/*
 * records/processor_work.c: one attempt: claim the record, call the user's function, write down
 * how it ended.
 *
 *  (1) Every attempt is counted once when it begins and once when it ends, under one mutex.
 *  (2) What the user's function returned is written as long as that can make a difference: until
 *      it is done, refused, or the lease is over and as many tries were made as for anything else.
 *  (3) The record decides whether it is done: if it says that this claim completed it, it is done,
 *      whatever else was to be written.
 *  (4) The database's failures cost the record nothing: only what the user's function returns
 *      counts against it.
 */
#include "records/processor.h"

/* ---- failures of the database --------------------------------------------------------------- */

/* The database failed: count it, and wait before the next attempt. */
static void failure_pause(struct record_worker *worker, uint32_t tries)
{
    struct hf_processor *p = worker->processor;

    pthread_mutex_lock(&p->mutex);
    p->metrics.trouble++;
    pthread_mutex_unlock(&p->mutex);
    hf_scope_timeout_ms(worker->io, 0);
    (void)!hf__processor_pause(worker->io, p, (int64_t)hf__processor_backoff_ms(p, tries) * 1000);
}

/* ---- beginning ------------------------------------------------------------------------------ */

/* Is there one more to begin? */
static bool attempt_reserve(struct hf_processor *p)
{
    bool may;

    pthread_mutex_lock(&p->mutex);
    may = !p->stopping;
    if (may && p->o.limit && p->metrics.begun - p->begun_before + p->claiming >= p->o.limit) {
        p->limited = true;
        may = false;
    }
    p->claiming += may;
    pthread_mutex_unlock(&p->mutex);
    return may;
}

static void attempt_unreserve(struct hf_processor *p, enum begun begun)
{
    pthread_mutex_lock(&p->mutex);
    assert(p->claiming > 0);
    p->claiming--;
    p->pass.moved += begun == BEGUN || begun == MARKED_FAILED;
    p->metrics.begun += begun == BEGUN;
    p->metrics.running += begun == BEGUN;
    p->metrics.exhausted += begun == MARKED_FAILED;
    pthread_mutex_unlock(&p->mutex);
}

/* Claim it; what the database does not do now is tried again. */
static enum begun attempt_begin(struct record_worker *worker, struct record_key key,
                                struct hf_record_info *info)
{
    struct hf_processor *p = worker->processor;
    enum begun begun = NOT_BEGUN;

    if (!attempt_reserve(p))
        return NOT_BEGUN;
    for (uint32_t tries = 0;; tries++) {
        const struct hf_error *error;

        hf_scope_reset(worker->io);
        hf_scope_timeout_ms(worker->io, p->o.lease_ms);
        begun = hf__claim_begin(worker, key, info);
        if (begun != BEGIN_FAILED)
            break;
        error = hf_scope_error(worker->io);
        if (!error_is_transient(error) || (tries >= p->retries && !p->o.forever)) {
            hf__processor_stop(p, error->status, worker->io);
            break;
        }
        failure_pause(worker, tries);
        if (hf__processor_stopping(p))
            break;
    }
    attempt_unreserve(p, begun);
    hf_scope_timeout_ms(worker->io, 0);
    return begun;
}

/* ---- ending --------------------------------------------------------------------------------- */

static bool claim_is_over(struct record_worker *worker)
{
    struct hf_processor *p = worker->processor;
    bool over;

    pthread_mutex_lock(&p->mutex);
    over = lease_is_over(&worker->claim.lease, hf__env_elapsed_us(&p->env));
    pthread_mutex_unlock(&p->mutex);
    return over;
}

/* The write was refused. Was an earlier one done whose answer got lost? */
static enum hf_record_outcome refusal_judge(struct record_worker *worker, struct hf_item item,
                                            bool doubtful, enum hf_record_outcome meant)
{
    struct hf_str id = id_str(&worker->claim.id);
    struct hf_record_info info;

    if (hf__records_view(worker->io, worker->processor->records, item, &info) != HF_OK)
        return HF_RECORD_LOST;
    if (hf_str_equal(info.done_by, id))
        return HF_RECORD_DONE; /* (3) */
    if (meant == HF_RECORD_RELEASED)
        return doubtful ? meant : HF_RECORD_LOST;
    if (meant != HF_RECORD_DONE && hf_str_equal(hf__records_failed_by(item), id))
        return meant;
    return HF_RECORD_LOST;
}

/* (2) */
static enum hf_record_outcome outcome_write(struct record_worker *worker,
                                            const struct hf_update_item *update,
                                            enum hf_record_outcome meant)
{
    struct hf_processor *p = worker->processor;
    struct hf_scope *s = worker->io;
    bool doubtful = false;

    for (uint32_t tries = 0;; tries++) {
        struct hf_item item;
        enum hf_status status = hf_scope_built(s);

        if (status == HF_OK)
            status =
                hf__pattern_write(s, p->records->db, &(struct hf_transact_write){.update = update},
                                  update->key, &item);
        if (status == HF_OK)
            return meant;
        doubtful = doubtful || hf_scope_error(s)->may_have_happened;
        if (status == HF_CONDITION)
            return refusal_judge(worker, item, doubtful, meant);
        if (!error_is_transient(hf_scope_error(s)) ||
            (tries >= p->retries && (claim_is_over(worker) || hf__processor_stopping(p))))
            return HF_RECORD_UNSURE;
        failure_pause(worker, tries);
    }
}

static struct hf_update_item failure_request(struct record_worker *worker,
                                             const struct hf_error *error, uint32_t delay_ms,
                                             bool for_good)
{
    struct hf_processor *p = worker->processor;
    struct hf_scope *s = worker->io;
    struct hf_record_claim *claim = &worker->claim;
    struct hf_attr last =
        for_good ? (struct hf_attr)HF_S(":failed", hf__records_place(s, p->records,
                                                                     HF_RECORD_FAILED, claim->key))
                 : (struct hf_attr)HF_N(":after", hf__env_wall_ms(&p->env) + delay_ms);
    struct hf_item failure =
        hf__records_failure(s, p->records, id_str(&claim->id), error->status, error->message);
    struct hf_item values =
        HF_ITEM(s, CLAIM_VALUES(claim), HF_N(":zero", 0), HF_N(":one", 1),
                HF_M(":failure", failure), HF_S(":now", hf__records_time(s, p->records)));

    return hf__records_request(s, p->records, for_good ? RECORD_FAIL : RECORD_RETRY, claim->key,
                               hf_item_with(s, values, &last, 1));
}

static struct hf_update_item release_request(struct record_worker *worker)
{
    struct hf_record_claim *claim = &worker->claim;

    return hf__records_request(worker->io, worker->processor->records, RECORD_RELEASE, claim->key,
                               HF_ITEM(worker->io, CLAIM_VALUES(claim), HF_N(":one", 1)));
}

/* Statuses that stay as they are, however often one asks. */
static bool is_final(enum hf_status status)
{
    switch ((int)status) {
    case HF_INVALID:
    case HF_NOT_FOUND:
    case HF_CONDITION:
    case HF_TX_CANCELED:
    case HF_TOKEN_MISMATCH:
    case HF_COLLECTION_SIZE:
    case HF_SERIALIZATION:
    case HF_UNKNOWN_OPERATION:
    case HF_DENIED:
    case HF_UNSUPPORTED:
    case HF_CORRUPT:
    case HF_FORMAT:
    case HF_DUPLICATE:
    case HF_DELETED:
        return true;
    default:
        return false;
    }
}

static bool may_retry(const struct hf_processor *p, const struct hf_error *error,
                      const struct hf_record_info *info)
{
    if (p->o.may_retry)
        return p->o.may_retry(error, info, p->o.user);
    return error->may_retry || !is_final(error->status);
}

/*
 * Is the run ending, so that to be canceled or out of time is no failure of the record? Whoever has
 * too little time left may have said so before the deadline; then there is no point in going on.
 */
static bool run_ends(struct record_worker *worker, enum hf_status status)
{
    if (status == HF_TIMEOUT && worker->run_deadline)
        hf__processor_stop_because(worker->processor, HF_TIMEOUT, NULL,
                                   HF_STR("the deadline of the run has passed"));
    return (status == HF_CANCELED || status == HF_TIMEOUT) &&
           hf__processor_stopping(worker->processor);
}

/* Write down how it ended. *delay_ms: until it may be tried again. */
static enum hf_record_outcome attempt_end(struct record_worker *worker,
                                          const struct hf_record_info *info, enum hf_status status,
                                          const struct hf_error *error, bool lost,
                                          uint32_t *delay_ms)
{
    struct hf_processor *p = worker->processor;
    struct hf_update_item update;
    bool for_good;

    assert(!worker->claim.active && "nobody renews it while its end is written");
    if (status == HF_OK) {
        update = hf__claim_complete_request(worker->io, &worker->claim);
        return outcome_write(worker, &update, HF_RECORD_DONE);
    }
    if (lost)
        return HF_RECORD_LOST;
    if (run_ends(worker, status)) {
        update = release_request(worker);
        return outcome_write(worker, &update, HF_RECORD_RELEASED);
    }
    for_good = info->failures >= p->retries || !may_retry(p, error, info);
    *delay_ms = hf__processor_backoff_ms(p, info->failures);
    update = failure_request(worker, error, *delay_ms, for_good);
    return outcome_write(worker, &update, for_good ? HF_RECORD_GIVEN_UP : HF_RECORD_RETRY);
}

/* ---- counting ------------------------------------------------------------------------------- */

static uint64_t *counter_of(struct hf_processor_metrics *m, enum hf_record_outcome outcome)
{
    switch (outcome) {
    case HF_RECORD_DONE:
        return &m->completed;
    case HF_RECORD_RETRY:
        return &m->retried;
    case HF_RECORD_GIVEN_UP:
        return &m->failed;
    case HF_RECORD_LOST:
        return &m->lost;
    case HF_RECORD_RELEASED:
        return &m->released;
    case HF_RECORD_UNSURE:
    case HF_RECORD_EXHAUSTED: /* not begun, so not ended */
        break;
    }
    return &m->unsure;
}

/* (1), and what follows from it for the run. */
static void attempt_ended(struct record_worker *worker, const struct hf_record_info *info,
                          struct record_key key, enum hf_record_outcome outcome,
                          const struct hf_error *error, uint32_t delay_ms)
{
    struct hf_processor *p = worker->processor;
    int64_t now_us = hf__env_elapsed_us(&p->env);
    uint64_t failed;

    pthread_mutex_lock(&p->mutex);
    if (outcome != HF_RECORD_EXHAUSTED) {
        assert(p->metrics.running > 0 && p->metrics.running <= p->workers_len && "(1)");
        p->metrics.running--;
        ++*counter_of(&p->metrics, outcome);
    }
    if (outcome == HF_RECORD_RETRY) {
        hf__waits_note(&p->waits, key, HF_STR(""), 0, now_us, p->pass.number);
        hf__waits_until(&p->waits, key, now_us + (int64_t)delay_ms * 1000);
    } else {
        hf__waits_forget(&p->waits, key);
    }
    if (outcome == HF_RECORD_GIVEN_UP || outcome == HF_RECORD_EXHAUSTED)
        hf__processor_keep_error(p, info, error->status, error->message);
    failed = p->metrics.failed + p->metrics.exhausted;
    pthread_mutex_unlock(&p->mutex);
    if (p->o.on_ended)
        p->o.on_ended(info, outcome, error, p->o.user);
    if (p->o.max_failures && failed >= p->o.max_failures &&
        (outcome == HF_RECORD_GIVEN_UP || outcome == HF_RECORD_EXHAUSTED))
        hf__processor_stop_because(p, HF_LIMIT, error,
                                   hf_scope_format(worker->io, "%llu records have failed",
                                                   (unsigned long long)failed));
}

/* ---- an attempt ----------------------------------------------------------------------------- */

/* From now on the claim is renewed, and the work can be canceled; and the reverse. */
static void claim_activate(struct record_worker *worker)
{
    struct hf_processor *p = worker->processor;
    int64_t left_us = p->deadline_us - hf__env_elapsed_us(&p->env);
    uint32_t ms = p->o.timeout_ms;

    hf_scope_reset(worker->work);
    worker->run_deadline = p->deadline_us && (!ms || left_us / 1000 < ms);
    if (worker->run_deadline)
        ms = left_us > 1000 ? (uint32_t)(left_us / 1000) : 1;
    hf_scope_timeout_ms(worker->work, ms);
    pthread_mutex_lock(&p->mutex);
    assert(!worker->claim.active);
    worker->claim.active = true;
    if (p->stopping)
        hf_scope_cancel(worker->work);
    pthread_mutex_unlock(&p->mutex);
}

static bool claim_deactivate(struct record_worker *worker)
{
    struct hf_processor *p = worker->processor;
    bool lost;

    pthread_mutex_lock(&p->mutex);
    assert(worker->claim.active && worker->claim.worker == worker);
    worker->claim.active = false;
    lost = worker->claim.lost;
    pthread_mutex_unlock(&p->mutex);
    return lost;
}

static enum hf_record_outcome attempt_run(struct record_worker *worker, struct hf_record_info *info)
{
    struct hf_processor *p = worker->processor;
    struct hf_error error;
    enum hf_record_outcome outcome;
    enum hf_status status;
    uint32_t delay_ms = 0;
    bool lost;

    claim_activate(worker);
    status = p->fn(worker->work, info, p->user);
    lost = claim_deactivate(worker);
    info->claim = NULL;
    error = *hf_scope_error(worker->work);
    if (error.status != status)
        error = (struct hf_error){.status = status, .message = hf_str_from(hf_status_text(status))};
    outcome = attempt_end(worker, info, status, &error, lost, &delay_ms);
    attempt_ended(worker, info, worker->claim.key, outcome, &error, delay_ms);
    return outcome;
}

/* May the next record of its account begin? */
static bool goes_on(const struct hf_processor *p, enum hf_record_outcome outcome)
{
    return p->o.account_order && (outcome == HF_RECORD_DONE || ((outcome == HF_RECORD_GIVEN_UP ||
                                                                 outcome == HF_RECORD_EXHAUSTED) &&
                                                                !p->o.failed_blocks));
}

/* One record. True: the next one of the account may follow. */
static bool work_on(struct record_worker *worker, struct record_key key)
{
    struct hf_processor *p = worker->processor;
    struct hf_record_info info;

    switch (attempt_begin(worker, key, &info)) {
    case BEGUN:
        return goes_on(p, attempt_run(worker, &info));
    case MARKED_FAILED:
        attempt_ended(worker, &info, key, HF_RECORD_EXHAUSTED,
                      &(struct hf_error){.status = info.error, .message = info.error_text}, 0);
        return goes_on(p, HF_RECORD_EXHAUSTED);
    case NOT_BEGUN:
    case BEGIN_FAILED:
        break;
    }
    return false;
}

/* The record behind it, if it is to be worked on: no list has to show it. */
static struct todo *find_successor(struct record_worker *worker, struct record_key key)
{
    struct hf_processor *p = worker->processor;
    struct hf_scope *s = worker->io;
    const char *behind = "#account = :account AND #run_time > :run_time";
    const char *parts = "#account, #run_time, #processed, #shard";
    struct hf_query_result result;
    struct hf_record_info info;
    struct hf_query query;
    struct todo *todo = NULL;

    hf_scope_reset(s);
    query = (struct hf_query){
        .table = p->records->table,
        .key_condition = hf_str_from(behind),
        .projection = hf_str_from(parts),
        .names = hf__records_names(s, p->records, behind, parts),
        .values = HF_ITEM(s, HF_S(":account", key.account), HF_S(":run_time", key.run_time)),
        .limit = 1,
        .consistent = HF_YES,
    };
    if (hf__processor_stopping(p) || hf_query(s, p->records->db, &query, &result) != HF_OK ||
        !result.items_len || hf__records_view(s, p->records, result.items[0], &info) != HF_OK ||
        info.state != HF_RECORD_UNPROCESSED)
        return NULL; /* if there is one, the next pass finds it */
    key = (struct record_key){info.account, info.run_time};
    pthread_mutex_lock(&p->mutex);
    if (!hf__todo_is_taken(p, key) &&
        hf__waits_due_us(&p->waits, key, p->pass.number) <= hf__env_elapsed_us(&p->env))
        todo = hf__todo_take(p, key);
    pthread_mutex_unlock(&p->mutex);
    return todo;
}

void hf__processor_work(struct record_worker *worker, struct todo *todo)
{
    struct hf_processor *p = worker->processor;

    while (todo) {
        struct todo *next = NULL;

        if (work_on(worker, todo_key(todo)))
            next = find_successor(worker, todo_key(todo));
        pthread_mutex_lock(&p->mutex);
        hf__todo_drop(p, todo);
        pthread_mutex_unlock(&p->mutex);
        todo = next;
    }
}
