/*
 * records/processor_claim.c: claims on records: getting one, keeping it, completing it.
 *
 * A claim is got by one write, straight from the key that the index shows, and that write returns
 * the record. Only where it is known or found that another works on the record is it read first.
 *
 *  (1) Our lease runs from before the claim or the beat was sent, and ends a hundredth early, for
 *      drift; others take over after a whole lease from after they saw it. So we know first.
 *  (2) A claim is taken over only with the beat that was seen, so not from one who is alive; at
 *      once if it is one of the dead (opener.c).
 *  (3) The time before which a record is not to be begun comes from another host's clock, and is a
 *      hint: a processor that has waited for the longest backoff by its own clock begins it.
 *  (4) In the order of an account a record may begin when the one before it is done with. What was
 *      processed in order has only processed ones before it, so one look back is enough.
 *  (5) An item of the index that cannot be read as a record becomes a failed record.
 */
#include "base/assert_held.h"
#include "records/processor.h"

enum { TRIES = 4 }; /* a record that changes all the time is looked at in the next pass */

/* ---- what is found -------------------------------------------------------------------------- */

enum finding {
    FOUND_FREE,             /* nobody works on it */
    FOUND_SILENT,           /* its holder was silent for a lease: it can be taken over */
    FOUND_EXHAUSTED,        /* begun max_attempts times, and nobody works on it */
    FOUND_EXHAUSTED_SILENT, /* the same, with a holder that was silent for a lease */
    FOUND_HELD,             /* another works on it */
    FOUND_WAITING,          /* it is not to be tried before a time */
    FOUND_UNREADABLE,       /* what is there is no record: the error is in worker->io */
    FOUND_STALE             /* the index is behind: it is not unprocessed any more */
};

/* One try. */
struct beginning {
    struct record_worker *worker;
    struct record_key key;
    struct hf_item item; /* as it was found */
    struct wait_seen seen;
    int64_t now_ms; /* time of day for the condition */
    struct hf_record_info *info;
};

/* Another works on it. Remember it, and see whether it was seen long enough (2). */
static enum finding judge_held(struct beginning *b)
{
    struct hf_processor *p = b->worker->processor;
    int64_t now_us = hf__env_elapsed_us(&p->env), poll_us = (int64_t)p->o.poll_ms * 1000;
    int64_t lease_us = (int64_t)hf__records_lease_ms(b->item) * 1000, over_us;
    uint64_t beat = hf__records_beat(b->item);
    struct hf_str opener =
        hf_value_str(hf_value_get(hf_item_get(b->item, HF_STR("Claim")), HF_STR("opener")));

    if (hf__pattern_is_orphan(p->records->db, opener))
        lease_us = 0;
    pthread_mutex_lock(&p->mutex);
    over_us =
        lease_us + hf__waits_note(&p->waits, b->key, b->info->token, beat, now_us, p->pass.number);
    if (over_us > now_us)
        hf__waits_until(&p->waits, b->key, over_us < now_us + poll_us ? over_us : now_us + poll_us);
    hf__waits_seen(&p->waits, b->key, &b->seen);
    pthread_mutex_unlock(&p->mutex);
    if (over_us > now_us)
        return FOUND_HELD;
    return b->info->attempts >= p->o.max_attempts ? FOUND_EXHAUSTED_SILENT : FOUND_SILENT;
}

/* (3) */
static enum finding judge_time(struct beginning *b)
{
    struct hf_processor *p = b->worker->processor;
    int64_t after_ms = hf__records_after_ms(b->item), now_us = hf__env_elapsed_us(&p->env);
    int64_t patience_us = (int64_t)p->o.backoff_max_ms * 1000, due_us, end_us;

    b->now_ms = hf__env_wall_ms(&p->env);
    if (after_ms <= b->now_ms)
        return FOUND_FREE;
    pthread_mutex_lock(&p->mutex);
    end_us = patience_us + hf__waits_note(&p->waits, b->key, HF_STR(""), (uint64_t)after_ms, now_us,
                                          p->pass.number);
    due_us = now_us + (after_ms - b->now_ms) * 1000;
    hf__waits_until(&p->waits, b->key, due_us < end_us ? due_us : end_us);
    pthread_mutex_unlock(&p->mutex);
    if (end_us > now_us)
        return FOUND_WAITING;
    b->now_ms = after_ms;
    return FOUND_FREE;
}

static enum finding record_judge(struct beginning *b)
{
    struct hf_processor *p = b->worker->processor;

    if (hf__records_view(b->worker->io, p->records, b->item, b->info) != HF_OK)
        return FOUND_UNREADABLE;
    if (!b->item.ptr || b->info->state != HF_RECORD_UNPROCESSED ||
        !hf_item_get(b->item, p->records->shard).ptr)
        return FOUND_STALE;
    if (b->info->token.len)
        return judge_held(b);
    if (b->info->attempts >= p->o.max_attempts)
        return FOUND_EXHAUSTED;
    return judge_time(b);
}

/* ---- getting it ----------------------------------------------------------------------------- */

/* (1) */
static struct lease_terms terms_of(const struct hf_processor *p)
{
    return (struct lease_terms){.lease_ms = p->o.lease_ms, .heartbeat_ms = p->o.heartbeat_ms};
}

static struct hf_update_item claim_request(const struct beginning *b, bool over)
{
    struct hf_processor *p = b->worker->processor;
    struct hf_scope *s = b->worker->io;
    const struct hf_attr claim[] = {HF_S("id", id_str(&b->worker->claim.id)),
                                    HF_S("owner", p->o.owner),
                                    HF_N("beat", 1),
                                    HF_N("lease_ms", p->o.lease_ms),
                                    HF_S("at", hf__records_time(s, p->records)),
                                    HF_S("opener", hf_db_opener(p->records->db))};
    size_t claim_len = ARRAY_LEN(claim) - (claim[5].text.len ? 0 : 1);
    struct hf_attr values[8] = {HF_M(":claim", hf_item_make(s, claim, claim_len)),
                                HF_N(":first", hf__env_wall_ms(&p->env)),
                                HF_N(":one", 1),
                                HF_N(":zero", 0),
                                HF_S(":shard", hf__records_place(s, p->records,
                                                                 HF_RECORD_UNPROCESSED, b->key)),
                                HF_N(":max", p->o.max_attempts)};
    struct hf_update_item update;
    size_t len = 6;

    if (over) {
        values[len++] = (struct hf_attr)HF_S(":seen", hf_str_from(b->seen.id.text));
        values[len++] = (struct hf_attr)HF_N(":beat", b->seen.beat);
    } else {
        values[len++] = (struct hf_attr)HF_N(":now", b->now_ms);
    }
    assert(len <= ARRAY_LEN(values));
    assert((!over || b->seen.id.text[0]) && "(2) taken over from one that was seen");
    update = hf__records_request(s, p->records, over ? RECORD_TAKE_OVER : RECORD_CLAIM, b->key,
                                 hf_item_make(s, values, len));
    update.returns = HF_RETURN_ALL_NEW;
    return update;
}

/* The claim is ours, in `item`. */
static enum hf_status claim_granted(struct beginning *b, int64_t sent_us, bool over)
{
    struct hf_processor *p = b->worker->processor;
    struct hf_record_claim *claim = &b->worker->claim;

    TRY(hf__records_view(b->worker->io, p->records, b->item, b->info));
    b->info->claim = claim;
    pthread_mutex_lock(&p->mutex);
    assert(!claim->active && "a worker has one claim at a time");
    claim->worker = b->worker;
    claim->key = b->key;
    claim->fence = b->info->fence;
    claim->beat = 1;
    claim->lost = false;
    claim->begun_us = sent_us;
    hf__lease_take(&claim->lease, terms_of(p), sent_us);
    p->metrics.taken_over += over;
    pthread_mutex_unlock(&p->mutex);
    return HF_OK;
}

/* HF_OK: it is ours. HF_CONDITION: it is not, and b->item is what is there. */
static enum hf_status send_claim(struct beginning *b, bool over)
{
    struct hf_processor *p = b->worker->processor;
    struct hf_scope *s = b->worker->io;
    struct hf_update_item update;
    int64_t sent_us;
    enum hf_status status;

    b->worker->claim.id = hf__pattern_id_make(&p->env);
    update = claim_request(b, over);
    TRY(hf_scope_built(s));
    sent_us = hf__env_elapsed_us(&p->env);
    status = hf__pattern_write(s, p->records->db, &(struct hf_transact_write){.update = &update},
                               update.key, &b->item);
    if (status == HF_CONDITION) {
        struct hf_str token =
            hf_value_str(hf_value_get(hf_item_get(b->item, HF_STR("Claim")), HF_STR("id")));

        if (hf_str_equal(token, id_str(&b->worker->claim.id)))
            status = HF_OK; /* its answer got lost */
    }
    if (status == HF_OK)
        return claim_granted(b, sent_us, over);
    return status;
}

/* Make it a failed record, by an update that has `id` in its failure: that is how one whose answer
 * got lost is recognised. HF_CONDITION as above. */
static enum hf_status send_failed(struct beginning *b, struct hf_update_item update,
                                  const struct pattern_id *id)
{
    struct hf_records *records = b->worker->processor->records;
    struct hf_scope *s = b->worker->io;
    enum hf_status status;

    TRY(hf_scope_built(s));
    update.returns = HF_RETURN_ALL_NEW;
    status = hf__pattern_write(s, records->db, &(struct hf_transact_write){.update = &update},
                               update.key, &b->item);
    if (status == HF_CONDITION && hf_str_equal(hf__records_failed_by(b->item), id_str(id)))
        status = HF_OK;
    TRY(status);
    return hf__records_view(s, records, b->item, b->info);
}

/* A record that was begun too often becomes a failed record. HF_CONDITION as above. */
static enum hf_status send_exhaust(struct beginning *b, bool over)
{
    struct hf_processor *p = b->worker->processor;
    struct hf_scope *s = b->worker->io;
    struct pattern_id id = hf__pattern_id_make(&p->env);
    struct hf_str text =
        hf_scope_format(s, "it was begun %u times; the last time it neither succeeded nor failed",
                        b->info->attempts);
    struct hf_attr values[7] = {
        HF_S(":failed", hf__records_place(s, p->records, HF_RECORD_FAILED, b->key)),
        HF_S(":shard", hf__records_place(s, p->records, HF_RECORD_UNPROCESSED, b->key)),
        HF_M(":failure", hf__records_failure(s, p->records, id_str(&id), HF_LIMIT, text)),
        HF_S(":now", hf__records_time(s, p->records)), HF_N(":max", p->o.max_attempts)};
    struct hf_update_item update;
    size_t len = 5;

    if (over) {
        values[len++] = (struct hf_attr)HF_S(":seen", hf_str_from(b->seen.id.text));
        values[len++] = (struct hf_attr)HF_N(":beat", b->seen.beat);
    }
    assert(len <= ARRAY_LEN(values) && b->info->attempts >= p->o.max_attempts);
    update = hf__records_request(s, p->records, over ? RECORD_EXHAUST_OVER : RECORD_EXHAUST, b->key,
                                 hf_item_make(s, values, len));
    return send_failed(b, update, &id);
}

/*
 * (5) Other programs may have overwritten attributes of ours with something that cannot be read.
 * The item becomes a failed record with that as its cause: otherwise every pass would meet it
 * again, or it would stop all others. Our attributes are reset; the rest of the item stays.
 */
static enum hf_status send_reject(struct beginning *b)
{
    struct hf_processor *p = b->worker->processor;
    struct hf_scope *s = b->worker->io;
    struct pattern_id id = hf__pattern_id_make(&p->env);
    struct hf_str why = hf_scope_copy(s, hf_scope_error(s)->message);
    struct hf_update_item update = hf__records_request(
        s, p->records, RECORD_REJECT, b->key,
        HF_ITEM(s, HF_S(":failed", hf__records_place(s, p->records, HF_RECORD_FAILED, b->key)),
                HF_S(":shard", hf__records_place(s, p->records, HF_RECORD_UNPROCESSED, b->key)),
                HF_M(":failure", hf__records_failure(s, p->records, id_str(&id), HF_CORRUPT, why)),
                HF_S(":now", hf__records_time(s, p->records)), HF_N(":zero", 0),
                HF_N(":first", hf__env_wall_ms(&p->env))));

    return send_failed(b, update, &id);
}

/* ---- the order of an account ---------------------------------------------------------------- */

/* (4) *first: nothing before it in its account is unprocessed; *blocked: the one before it is a
 * failed record, and those block. */
static enum hf_status look_back(struct record_worker *worker, struct record_key key, bool *first,
                                bool *blocked)
{
    struct hf_processor *p = worker->processor;
    struct hf_scope *s = worker->io;
    const char *before = "#account = :account AND #run_time < :run_time";
    const char *parts = "#account, #run_time, #processed, #shard";
    struct hf_query query = {
        .table = p->records->table,
        .key_condition = hf_str_from(before),
        .projection = hf_str_from(parts),
        .names = hf__records_names(s, p->records, before, parts),
        .values = HF_ITEM(s, HF_S(":account", key.account), HF_S(":run_time", key.run_time)),
        .forward = HF_NO,
        .limit = 1,
        .consistent = HF_YES,
    };
    struct hf_query_result result;
    struct hf_record_info info;

    *first = true;
    *blocked = false;
    TRY(hf_query(s, p->records->db, &query, &result));
    if (!result.items_len)
        return HF_OK;
    TRY(hf__records_view(s, p->records, result.items[0], &info));
    *blocked = info.state == HF_RECORD_FAILED && p->o.failed_blocks;
    *first = info.state != HF_RECORD_UNPROCESSED && !*blocked;
    return HF_OK;
}

/* ---- one try -------------------------------------------------------------------------------- */

static void counter_increment(struct hf_processor *p, uint64_t *counter)
{
    pthread_mutex_lock(&p->mutex);
    ++*counter;
    pthread_mutex_unlock(&p->mutex);
}

static enum begun leave_record(struct beginning *b, enum finding found)
{
    struct hf_processor *p = b->worker->processor;

    assert(found == FOUND_STALE || found == FOUND_HELD || found == FOUND_WAITING);
    pthread_mutex_lock(&p->mutex);
    if (found == FOUND_STALE)
        hf__waits_forget(&p->waits, b->key);
    p->pass.stale += found == FOUND_STALE;
    p->pass.held += found == FOUND_HELD;
    p->pass.waiting += found == FOUND_WAITING;
    pthread_mutex_unlock(&p->mutex);
    return NOT_BEGUN;
}

/* (5) Did the claim fail because the item cannot be read as a record? Its Fence may be a text,
 * say. */
static bool is_unreadable(struct beginning *b, enum finding found, enum hf_status status)
{
    struct hf_processor *p = b->worker->processor;
    struct hf_scope *s = b->worker->io;
    struct hf_str why = hf_scope_copy(s, hf_scope_error(s)->message);

    if (found == FOUND_UNREADABLE || (status != HF_CORRUPT && status != HF_INVALID))
        return false;
    if (status == HF_CORRUPT)
        return true;
    if (hf__pattern_read(s, p->records->db, p->records->table,
                         hf__records_key(s, p->records, b->key), &b->item) == HF_OK &&
        hf__records_view(s, p->records, b->item, b->info) == HF_CORRUPT)
        return true;
    (void)hf_scope_fail(s, status, "%.*s", HF_FMT(why));
    return false;
}

static enum begun begin_by(struct beginning *b, enum finding found)
{
    struct hf_processor *p = b->worker->processor;

    for (int i = 0; i < TRIES; i++) {
        bool fail = found == FOUND_EXHAUSTED || found == FOUND_EXHAUSTED_SILENT;
        bool over = found == FOUND_SILENT || found == FOUND_EXHAUSTED_SILENT;
        enum hf_status status;

        if (found == FOUND_UNREADABLE) {
            if (hf_scope_error(b->worker->io)->status != HF_CORRUPT)
                return BEGIN_FAILED;
            status = send_reject(b);
            fail = true;
        } else if (!fail && !over && found != FOUND_FREE) {
            return leave_record(b, found);
        } else {
            status = fail ? send_exhaust(b, over) : send_claim(b, over);
        }
        if (status == HF_OK)
            return fail ? MARKED_FAILED : BEGUN;
        if (is_unreadable(b, found, status)) {
            found = FOUND_UNREADABLE;
            continue;
        }
        if (status != HF_CONDITION)
            return BEGIN_FAILED;
        counter_increment(p, &p->metrics.refused);
        found = record_judge(b);
    }
    return leave_record(b, FOUND_HELD);
}

enum begun hf__claim_begin(struct record_worker *worker, struct record_key key,
                           struct hf_record_info *info)
{
    struct hf_processor *p = worker->processor;
    struct beginning b = {.worker = worker,
                          .key = key,
                          .now_ms = hf__env_wall_ms(&p->env),
                          .info = info};
    enum finding found = FOUND_FREE;
    bool known, first = true, blocked = false;

    *info = (struct hf_record_info){0};
    if (p->o.account_order && look_back(worker, key, &first, &blocked) != HF_OK)
        return BEGIN_FAILED;
    if (!first) {
        counter_increment(p, blocked ? &p->pass.blocked : &p->pass.behind);
        return NOT_BEGUN;
    }
    pthread_mutex_lock(&p->mutex);
    known = hf__waits_seen(&p->waits, key, &b.seen) && b.seen.first_us;
    pthread_mutex_unlock(&p->mutex);
    if (known) {
        if (hf__pattern_read(worker->io, p->records->db, p->records->table,
                             hf__records_key(worker->io, p->records, key), &b.item) != HF_OK)
            return BEGIN_FAILED;
        found = record_judge(&b);
    }
    return begin_by(&b, found);
}

/* ---- keeping it ----------------------------------------------------------------------------- */

/* The claim as it was when somebody set out to renew it. */
struct renewal {
    struct record_key key;
    struct pattern_id id;
    uint64_t fence;
    uint64_t beat;
    int64_t sent_us;
};

/* The mutex is held. */
static struct renewal renewal_plan(struct hf_scope *s, struct hf_processor *p,
                                   struct hf_record_claim *claim)
{
    int64_t now_us = hf__env_elapsed_us(&p->env);

    ASSERT_HELD(&p->mutex);
    hf__lease_sent(&claim->lease, terms_of(p), now_us);
    return (struct renewal){.key = {hf_scope_copy(s, claim->key.account),
                                    hf_scope_copy(s, claim->key.run_time)},
                            .id = claim->id,
                            .fence = claim->fence,
                            .beat = ++claim->beat,
                            .sent_us = now_us};
}

static enum hf_status renewal_send(struct hf_scope *s, struct hf_processor *p,
                                   const struct renewal *r)
{
    struct hf_update_item update =
        hf__records_request(s, p->records, RECORD_BEAT, r->key,
                            HF_ITEM(s, CLAIM_VALUES(r), HF_N(":beat", r->beat)));
    struct hf_record_info info;
    struct hf_item item;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, p->records->db, &(struct hf_transact_write){.update = &update},
                               update.key, &item);
    if (status != HF_CONDITION)
        return status;
    if (hf__records_view(s, p->records, item, &info) == HF_OK && info.fence == r->fence &&
        hf_str_equal(info.token, id_str(&r->id)))
        return hf_scope_ok(s); /* this beat or a later one is there */
    return hf_scope_fail(s, HF_LOST,
                         "record %.*s, %.*s is lost: another took it over, or it was changed",
                         HF_FMT(r->key.account), HF_FMT(r->key.run_time));
}

/* The mutex is held. Its work may be over by now, and the claim another. */
static void renewal_done(struct hf_processor *p, struct hf_record_claim *claim,
                         const struct renewal *r, enum hf_status status)
{
    ASSERT_HELD(&p->mutex);
    if (!claim->active || !hf_str_equal(id_str(&claim->id), id_str(&r->id)))
        return;
    if (status == HF_OK) {
        hf__lease_renew(&claim->lease, terms_of(p), r->sent_us);
    } else if (status == HF_LOST) {
        claim->lost = true;
        hf_scope_cancel(claim->worker->work);
    } else {
        p->metrics.trouble++;
        hf__lease_retry(&claim->lease, terms_of(p), hf__env_elapsed_us(&p->env));
    }
}

/* With the mutex held, which is free while the database is asked. */
static enum hf_status renewal_run(struct hf_scope *s, struct hf_processor *p,
                                  struct hf_record_claim *claim)
{
    struct renewal r = renewal_plan(s, p, claim);
    enum hf_status status;

    pthread_mutex_unlock(&p->mutex);
    status = renewal_send(s, p, &r);
    pthread_mutex_lock(&p->mutex);
    renewal_done(p, claim, &r, status);
    return status;
}

enum hf_status hf__claim_renew(struct hf_scope *s, struct hf_processor *p,
                               struct hf_record_claim *claim)
{
    enum hf_status status;

    pthread_mutex_lock(&p->mutex);
    status = renewal_run(s, p, claim);
    pthread_mutex_unlock(&p->mutex);
    return status;
}

/* One that is due; the mutex is held. */
static struct hf_record_claim *find_due(struct hf_processor *p, int64_t now_us, int64_t *next_us)
{
    ASSERT_HELD(&p->mutex);
    for (size_t i = 0; i < p->workers_len; i++) {
        struct hf_record_claim *claim = &p->workers[i].claim;

        if (!claim->active || claim->lost)
            continue;
        if (p->o.stuck_ms && now_us - claim->begun_us >= (int64_t)p->o.stuck_ms * 1000)
            continue;
        if (claim->lease.due_us <= now_us)
            return claim;
        if (claim->lease.due_us - now_us < *next_us)
            *next_us = claim->lease.due_us - now_us;
    }
    return NULL;
}

int64_t hf__processor_beats(void *user)
{
    struct hf_processor *p = user;
    struct hf_scope *s = p->beat_scope;
    /* Nobody wakes us when an attempt begins, as most of them are short: we look often enough. */
    int64_t next_us = (int64_t)p->o.heartbeat_ms * 1000 / 2;
    struct hf_record_claim *claim;

    pthread_mutex_lock(&p->mutex);
    while ((claim = find_due(p, hf__env_elapsed_us(&p->env), &next_us)) != NULL) {
        hf_scope_reset(s);
        hf_scope_timeout_ms(s, p->o.heartbeat_ms);
        (void)renewal_run(s, p, claim); /* what came of it is in the claim */
    }
    pthread_mutex_unlock(&p->mutex);
    return next_us;
}

/* ---- completing it -------------------------------------------------------------------------- */

struct hf_update_item hf__claim_complete_request(struct hf_scope *s,
                                                 const struct hf_record_claim *claim)
{
    const struct hf_records *records = claim->worker->processor->records;
    struct hf_item values = HF_ITEM(s, CLAIM_VALUES(claim), HF_N(":one", 1),
                                    HF_S(":now", hf__records_time(s, records)));
    const struct hf_attr shard[] = {
        HF_S(":shard", hf__records_place(s, records, HF_RECORD_PROCESSED, claim->key))};

    if (records->index_processed)
        values = hf_item_with(s, values, shard, 1);
    return hf__records_request(s, records, RECORD_COMPLETE, claim->key, values);
}

/* ---- for the user's function ---------------------------------------------------------------- */

static enum hf_status not_worked_on(struct hf_scope *s, const struct hf_record_info *record)
{
    return hf_scope_fail(s, HF_INVALID, "record %.*s, %.*s is not being worked on",
                         HF_FMT(record->account), HF_FMT(record->run_time));
}

enum hf_status hf_record_complete_tx(struct hf_scope *s, const struct hf_record_info *record,
                                     struct hf_transact_write *action)
{
    struct hf_update_item *update = hf_scope_alloc(s, sizeof(*update));

    call_begins(s);
    *action = (struct hf_transact_write){0};
    if (!record->claim)
        return not_worked_on(s, record);
    if (!update)
        return hf_scope_built(s);
    *update = hf__claim_complete_request(s, record->claim);
    action->update = update;
    return hf_scope_built(s);
}

enum hf_status hf_record_extend(struct hf_scope *s, const struct hf_record_info *record)
{
    if (!record->claim)
        return not_worked_on(s, record);
    return hf__claim_renew(s, record->claim->worker->processor, record->claim);
}

uint32_t hf_record_left_ms(const struct hf_record_info *record)
{
    struct hf_record_claim *claim = record->claim;
    struct hf_processor *p;
    int64_t left_us = 0;

    if (!claim)
        return 0;
    p = claim->worker->processor;
    pthread_mutex_lock(&p->mutex);
    if (claim->active && !claim->lost)
        left_us = claim->lease.until_us - hf__env_elapsed_us(&p->env);
    pthread_mutex_unlock(&p->mutex);
    return left_us > 0 ? (uint32_t)(left_us / 1000) : 0;
}
