/*
 * kv/kv_change.c: writing one key: look, decide, write on the condition that it is still what
 * was seen; and from the start when it is not.
 *
 *  (1) Why a plain set looks first: without a condition, a request that is late (its answer was
 *      given up, the value was set by another request, then changed by others) would put an old
 *      value over newer ones. With a condition on what was seen it is refused. What was seen may be
 *      what this process wrote last (kv_memory.c), so that most sets are one write all the same.
 *  (2) Each round has a version of its own. When its answer was lost, what is there tells whether
 *      it was done (kv_item.c (4)); only if that is not known the caller gets an ambiguous error.
 *  (3) A round leaves no memory behind but the last one.
 *  (4) Deleting is writing an item without a value, which the database removes when its time has
 *      come. So a deleted key still refuses what was based on its being absent, and still knows its
 *      past. An hour is enough: no service takes a request whose signature is older than some
 *      minutes.
 */
#include "kv/kv.h"

enum { FIRST_WAIT_MS = 2, MAX_WAIT_MS = 250 };

/* What is to be done in a round. */
enum what { KEEP = 1, PUT, DELETE, REFUSE };

struct plan {
    enum what what;
    struct hf_value value;
    int64_t expires_s;
};

struct job;
typedef enum hf_status plan_fn(struct hf_scope *s, const struct job *job,
                               const struct kv_view *seen, struct plan *plan);

struct job {
    const struct hf_kv *kv;
    struct kv_place place;
    plan_fn *plan;
    bool version_only; /* the version is enough to decide */
    bool guess_absent; /* do not look in the first round: there will be nothing */
    bool recall;       /* nor if a version is remembered: it will be that */
    bool whole;        /* a value that is in the blob store is wanted, too */
    uint32_t attempts;
    struct hf_value value; /* of a set */
    uint32_t ttl_s;
    hf_kv_change_fn *change;
    void *user;
};

/* How it ended. */
struct outcome {
    struct kv_base base;
    struct plan plan;
    struct hf_str version;
};

/* ---- one round ------------------------------------------------------------------------------ */

static enum hf_status item_read(struct hf_scope *s, const struct job *job, struct kv_view *seen)
{
    const struct hf_kv *kv = job->kv;
    const struct hf_attr names[] = {{.name = HF_STR("#hash"), .type = HF_TYPE_S, .text = kv->hash},
                                    {.name = HF_STR("#version"),
                                     .type = HF_TYPE_S,
                                     .text = kv->version}};
    struct hf_get_item get = {.table = kv->table,
                              .key = hf__kv_item_key(s, kv, job->place.hash, job->place.sort),
                              .consistent = HF_YES};
    struct hf_get_item_result got;

    if (job->version_only) {
        get.projection = HF_STR("#hash, #version");
        get.names = hf_item_make(s, names, ARRAY_LEN(names));
    }
    TRY(hf_get_item(s, kv->db, &get, &got));
    TRY(hf__kv_view(s, kv, got.item, seen));
    if (job->version_only && seen->there &&
        !seen->version.ptr) { /* then the value is the condition */
        get.projection = hf_str_of(NULL, 0);
        get.names = (struct hf_item){0};
        TRY(hf_get_item(s, kv->db, &get, &got));
        TRY(hf__kv_view(s, kv, got.item, seen));
    }
    return job->whole ? hf__kv_load(s, kv, &job->place, seen) : HF_OK;
}

/* The request of a plan; a tombstone is put (4). */
static enum hf_status request_build(struct hf_scope *s, const struct job *job, struct outcome *o,
                                    struct kv_request *request, struct hf_transact_write *action)
{
    const struct hf_kv *kv = job->kv;
    struct kv_content content;
    struct pattern_id id;

    assert(o->plan.what >= KEEP && o->plan.what < REFUSE);
    *action = (struct hf_transact_write){0};
    if (o->plan.what == KEEP) {
        hf__kv_check_request(s, kv, &job->place, &o->base, request);
        action->check = &request->check;
        return hf_scope_built(s);
    }
    if (o->plan.what == DELETE && !kv->tombstones) {
        hf__kv_delete_request(s, kv, &job->place, &o->base, request);
        action->del = &request->del;
        return hf_scope_built(s);
    }
    if (o->plan.what == DELETE) {
        o->plan.value = (struct hf_value){0};
        o->plan.expires_s = hf__kv_expires_s(hf_scope_env(s), kv->tombstone_s);
    }
    id = hf__pattern_id_make(hf_scope_env(s));
    o->version = hf__kv_version(s, &o->base, id_str(&id));
    content = (struct kv_content){.value = o->plan.value,
                                  .version = o->version,
                                  .expires_s = o->plan.expires_s};
    TRY(hf__kv_offload(s, kv, &job->place, &content));
    hf__kv_put_request(s, kv, &job->place, &o->base, &content, request);
    action->put = &request->put;
    TRY(hf__kv_item_fits(s, job->place.key, request->put.item));
    return hf_scope_built(s);
}

static enum hf_status fail_in_doubt(struct hf_scope *s, const struct job *job)
{
    (void)hf_scope_fail(s, HF_IO,
                        "key \"%.*s\" of table %.*s: an answer was lost, and as others have "
                        "written the key since, it is not known whether the write was done",
                        KV_FMT(job->place.key), HF_FMT(job->kv->table));
    return hf_scope_doubt(s);
}

/* HF_OK: done; HF_CONDITION: not done, *now is what is there; else what the database says. */
static enum hf_status change_send(struct hf_scope *s, const struct job *job, struct outcome *o,
                                  struct kv_view *now)
{
    struct hf_transact_write action;
    struct kv_request request;
    struct hf_item item;
    enum hf_status status;
    enum kv_verdict verdict;
    bool doubtful;

    assert(o->plan.what == PUT || o->plan.what == DELETE);
    TRY(request_build(s, job, o, &request, &action));
    status = hf__pattern_write(s, job->kv->db, &action, request.key, &item);
    hf__kv_remember(job->kv->memory, &job->place,
                    status == HF_OK && action.put ? o->version : hf_str_of(NULL, 0));
    if (status != HF_CONDITION)
        return status;
    doubtful = hf_scope_error(s)->may_have_happened;
    TRY(hf__kv_view(s, job->kv, item, now));
    /* Without a doubt, too: a request may have come twice, and only the second been answered. */
    verdict = !action.del ? hf__kv_judge_write(&o->base, o->version, now, job->kv->tombstones)
              : doubtful  ? hf__kv_judge_removal(&o->base, now)
                          : KV_NOT_DONE;
    if (verdict == KV_DONE)
        return hf_scope_ok(s);
    return verdict == KV_UNKNOWN && doubtful ? fail_in_doubt(s, job) : HF_CONDITION;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static enum hf_status fail_condition(struct hf_scope *s, const struct job *job, const char *why)
{
    return hf_scope_fail(s, HF_CONDITION, "key \"%.*s\" of table %.*s %s", KV_FMT(job->place.key),
                         HF_FMT(job->kv->table), why);
}

/* Between two rounds, so that others can write. */
static enum hf_status round_wait(struct hf_scope *s, const struct job *job, uint32_t round)
{
    if (round >= job->attempts)
        return hf_scope_fail(
            s, HF_TX_CONFLICT,
            "key \"%.*s\" of table %.*s: others changed it first, %u times; try again",
            KV_FMT(job->place.key), HF_FMT(job->kv->table), (unsigned)round);
    return hf_scope_sleep_ms(s, hf__backoff_ms(hf_scope_env(s), FIRST_WAIT_MS, MAX_WAIT_MS,
                                               round + UINT64_C(1)));
}

/* HF_CONDITION: the plan was to refuse; o->base.seen is what is there. */
static enum hf_status job_run(struct hf_scope *s, const struct job *job, struct outcome *o)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct kv_view now = {0};
    bool known = job->guess_absent;

    assert(job->plan && job->attempts > 0);
    assert(!(job->guess_absent && job->recall));
    if (job->recall)
        known = now.there = hf__kv_recall(s, job->kv->memory, &job->place, &now.version);
    for (uint32_t round = 1;; round++) {
        enum hf_status status;

        *o = (struct outcome){.base = {.kind = KV_BASE_SEEN, .seen = now}};
        if (!known)
            TRY(item_read(s, job, &o->base.seen));
        TRY(job->plan(s, job, &o->base.seen, &o->plan));
        if (o->plan.what == KEEP)
            return HF_OK;
        if (o->plan.what == REFUSE)
            return fail_condition(s, job, "has a value");
        status = change_send(s, job, o, &now);
        if (status != HF_CONDITION)
            return status;
        /* After a wrong guess, *now is what is there. After a wait it has to be read again. */
        known = known && round == 1;
        if (known)
            continue;
        hf_scope_rewind(s, mark);
        TRY(round_wait(s, job, round));
    }
}

/* One write without a look. HF_CONDITION: *now is what is there. */
static enum hf_status run_once(struct hf_scope *s, const struct job *job, struct outcome *o,
                               struct kv_view *now)
{
    enum hf_status status = change_send(s, job, o, now);

    if (status != HF_CONDITION)
        return status;
    if (!now->live)
        return fail_condition(s, job, "has no value");
    return fail_condition(s, job, "has another version");
}

static struct hf_kv_entry entry_of(const struct job *job, const struct outcome *o)
{
    struct hf_kv_entry entry = {.key = job->place.key};

    if (o->plan.what == KEEP)
        return hf__kv_entry(job->place.key, &o->base.seen);
    if (o->plan.what == PUT) {
        entry.value = o->plan.value;
        entry.version = o->version;
        entry.expires_s = o->plan.expires_s;
    }
    return entry;
}

static uint32_t attempts_of(uint32_t attempts)
{
    return attempts ? attempts : KV_ATTEMPTS_DEFAULT;
}

/* ---- set ------------------------------------------------------------------------------------ */

static enum hf_status plan_set(struct hf_scope *s, const struct job *job,
                               const struct kv_view *seen, struct plan *plan)
{
    (void)seen;
    *plan = (struct plan){.what = PUT,
                          .value = job->value,
                          .expires_s = hf__kv_expires_s(hf_scope_env(s), job->ttl_s)};
    return HF_OK;
}

static enum hf_status plan_set_if_absent(struct hf_scope *s, const struct job *job,
                                         const struct kv_view *seen, struct plan *plan)
{
    TRY(plan_set(s, job, seen, plan));
    if (seen->live)
        plan->what = REFUSE;
    return HF_OK;
}

static enum hf_status set_job(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                              struct hf_value value, const struct hf_kv_set_options *o,
                              struct job *job)
{
    *job = (struct job){.kv = kv,
                        .plan = o->if_absent ? plan_set_if_absent : plan_set,
                        .version_only = !o->if_absent,
                        .recall = !o->if_absent,
                        .guess_absent = o->if_absent && kv->tombstones,
                        .attempts = attempts_of(o->max_attempts),
                        .value = value,
                        .ttl_s = o->ttl_s};
    TRY(hf__kv_place(s, kv, key, &job->place));
    if (!value.ptr)
        return hf_scope_fail(s, HF_INVALID, "key \"%.*s\": no value to set", KV_FMT(key));
    if ((o->if_absent ? 1 : 0) + (o->if_version.ptr ? 1 : 0) + (o->blind ? 1 : 0) > 1)
        return hf_scope_fail(s, HF_INVALID,
                             "key \"%.*s\": if_absent, if_version and blind exclude each other",
                             KV_FMT(key));
    return HF_OK;
}

/* Hand out what is there instead. The failure stays what it is, unless that cannot be read. */
static enum hf_status report_other(struct hf_scope *s, const struct job *job, struct kv_view *now,
                                   bool asked, struct hf_kv_entry *entry)
{
    if (asked && now->live && now->blob.len) {
        struct hf_str text = hf_scope_copy(s, hf_str_from(hf_scope_error_text(s)));

        TRY(hf__kv_load(s, job->kv, &job->place, now));
        (void)hf_scope_fail(s, HF_CONDITION, "%.*s", HF_FMT(text));
    }
    *entry = hf__kv_entry(job->place.key, now);
    return HF_CONDITION;
}

static enum hf_status value_set(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                                struct hf_value value, const struct hf_kv_set_options *options,
                                bool asked, struct hf_kv_entry *entry)
{
    struct hf_kv_set_options o;
    struct outcome outcome;
    struct kv_view now = {0};
    struct job job;
    enum hf_status status;

    *entry = (struct hf_kv_entry){0};
    OPTIONS_COPY(&o, options);
    TRY(set_job(s, kv, key, value, &o, &job));
    if (o.if_version.ptr || o.blind) {
        outcome = (struct outcome){.base = {.kind = o.blind ? KV_BASE_ANY : KV_BASE_VERSION,
                                            .seen = {.version = o.if_version}}};
        TRY(plan_set(s, &job, &now, &outcome.plan));
        status = run_once(s, &job, &outcome, &now);
    } else {
        status = job_run(s, &job, &outcome);
        now = outcome.base.seen;
    }
    if (status == HF_CONDITION)
        return report_other(s, &job, &now, asked, entry);
    TRY(status);
    *entry = entry_of(&job, &outcome);
    return hf_scope_built(s);
}

enum hf_status hf_kv_set(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                         struct hf_value value, const struct hf_kv_set_options *options,
                         struct hf_kv_entry *entry)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_kv_entry ignored;

    if (entry)
        return value_set(s, kv, key, value, options, true, entry);
    return kv_done(s, mark, value_set(s, kv, key, value, options, false, &ignored));
}

/* ---- delete --------------------------------------------------------------------------------- */

static enum hf_status plan_delete(struct hf_scope *s, const struct job *job,
                                  const struct kv_view *seen, struct plan *plan)
{
    (void)s;
    (void)job;
    *plan = (struct plan){.what = seen->live ? DELETE : KEEP};
    return HF_OK;
}

static enum hf_status remove_key(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                                 const struct hf_kv_delete_options *options, bool asked,
                                 struct hf_kv_entry *old)
{
    struct hf_kv_delete_options o;
    struct outcome outcome;
    struct kv_view now = {0};
    struct job job = {.kv = kv, .plan = plan_delete, .whole = asked};
    enum hf_status status;

    *old = (struct hf_kv_entry){0};
    OPTIONS_COPY(&o, options);
    job.attempts = attempts_of(o.max_attempts);
    TRY(hf__kv_place(s, kv, key, &job.place));
    if (!o.if_version.ptr) {
        TRY(job_run(s, &job, &outcome));
        *old = hf__kv_entry(job.place.key, &outcome.base.seen);
        return HF_OK;
    }
    /* To hand out what is deleted takes a look. */
    if (asked)
        TRY(item_read(s, &job, &now));
    outcome = (struct outcome){.base = {.kind = KV_BASE_VERSION, .seen = {.version = o.if_version}},
                               .plan = {.what = DELETE}};
    *old = hf__kv_entry(job.place.key, &now);
    status = run_once(s, &job, &outcome, &now);
    if (status != HF_OK)
        *old = (struct hf_kv_entry){0};
    return status == HF_CONDITION ? report_other(s, &job, &now, asked, old) : status;
}

enum hf_status hf_kv_delete(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                            const struct hf_kv_delete_options *options, struct hf_kv_entry *old)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct hf_kv_entry ignored;

    if (old)
        return remove_key(s, kv, key, options, true, old);
    return kv_done(s, mark, remove_key(s, kv, key, options, false, &ignored));
}

/* ---- change --------------------------------------------------------------------------------- */

static enum hf_status plan_change(struct hf_scope *s, const struct job *job,
                                  const struct kv_view *seen, struct plan *plan)
{
    struct hf_kv_entry now = hf__kv_entry(job->place.key, seen);

    plan->value = now.value;
    TRY(job->change(s, &now, &plan->value, job->user));
    if (!plan->value.ptr)
        plan->what = now.value.ptr ? DELETE : KEEP;
    else
        plan->what = now.value.ptr && hf_value_equal(now.value, plan->value) ? KEEP : PUT;
    plan->expires_s = job->ttl_s ? hf__kv_expires_s(hf_scope_env(s), job->ttl_s) : now.expires_s;
    return HF_OK;
}

static enum hf_status change_job(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                                 hf_kv_change_fn *change, void *user,
                                 const struct hf_kv_change_options *options, struct job *job)
{
    struct hf_kv_change_options o;

    OPTIONS_COPY(&o, options);
    *job = (struct job){.kv = kv,
                        .plan = plan_change,
                        .whole = true,
                        .attempts = attempts_of(o.max_attempts),
                        .ttl_s = o.ttl_s,
                        .change = change,
                        .user = user};
    return hf__kv_place(s, kv, key, &job->place);
}

enum hf_status hf_kv_change(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                            hf_kv_change_fn *change, void *user,
                            const struct hf_kv_change_options *options, struct hf_kv_entry *entry)
{
    struct hf_scope_mark mark = hf_scope_mark(s);
    struct outcome outcome;
    struct job job;

    if (entry)
        *entry = (struct hf_kv_entry){0};
    TRY(change_job(s, kv, key, change, user, options, &job));
    TRY(job_run(s, &job, &outcome));
    if (!entry)
        return kv_done(s, mark, HF_OK);
    *entry = entry_of(&job, &outcome);
    return HF_OK;
}

/* ---- in transactions ------------------------------------------------------------------------ */

/* The action lives in the scope, and so does all that it names but the table's own texts. */
static enum hf_status action_make(struct hf_scope *s, const struct job *job, struct outcome *o,
                                  struct hf_transact_write *action, struct hf_kv_entry *entry)
{
    struct kv_request *request = hf_scope_alloc(s, sizeof(*request));

    if (!request)
        return hf_scope_built(s);
    TRY(request_build(s, job, o, request, action));
    if (entry)
        *entry = entry_of(job, o);
    return hf_scope_built(s);
}

enum hf_status hf_kv_set_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                            struct hf_value value, const struct hf_kv_set_options *options,
                            struct hf_transact_write *action, struct hf_kv_entry *entry)
{
    struct hf_kv_set_options o;
    struct outcome outcome = {.base = {.kind = KV_BASE_ANY}};
    struct job job;

    call_begins(s);
    memset(action, 0, sizeof(*action));
    OPTIONS_COPY(&o, options);
    TRY(set_job(s, kv, key, value, &o, &job));
    if (o.if_absent)
        outcome.base.kind = KV_BASE_NO_VALUE;
    if (o.if_version.ptr)
        outcome.base = (struct kv_base){.kind = KV_BASE_VERSION, .seen = {.version = o.if_version}};
    TRY(plan_set(s, &job, NULL, &outcome.plan));
    return action_make(s, &job, &outcome, action, entry);
}

enum hf_status hf_kv_delete_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                               const struct hf_kv_delete_options *options,
                               struct hf_transact_write *action)
{
    struct hf_kv_delete_options o;
    struct outcome outcome = {.base = {.kind = KV_BASE_ANY}, .plan = {.what = DELETE}};
    struct job job = {.kv = kv};

    call_begins(s);
    memset(action, 0, sizeof(*action));
    OPTIONS_COPY(&o, options);
    TRY(hf__kv_place(s, kv, key, &job.place));
    if (o.if_version.ptr)
        outcome.base = (struct kv_base){.kind = KV_BASE_VERSION, .seen = {.version = o.if_version}};
    return action_make(s, &job, &outcome, action, NULL);
}

enum hf_status hf_kv_change_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                               hf_kv_change_fn *change, void *user,
                               const struct hf_kv_change_options *options,
                               struct hf_transact_write *action, struct hf_kv_entry *entry)
{
    struct outcome outcome = {.base = {.kind = KV_BASE_SEEN}};
    struct job job;

    memset(action, 0, sizeof(*action));
    TRY(change_job(s, kv, key, change, user, options, &job));
    TRY(item_read(s, &job, &outcome.base.seen));
    TRY(plan_change(s, &job, &outcome.base.seen, &outcome.plan));
    return action_make(s, &job, &outcome, action, entry);
}

enum hf_status hf_kv_check_tx(struct hf_scope *s, struct hf_kv *kv, struct hf_kv_key key,
                              struct hf_str version, struct hf_transact_write *action)
{
    struct outcome outcome = {.base = {.kind = version.ptr ? KV_BASE_VERSION : KV_BASE_NO_VALUE,
                                       .seen = {.version = version}},
                              .plan = {.what = KEEP}};
    struct job job = {.kv = kv};

    call_begins(s);
    memset(action, 0, sizeof(*action));
    TRY(hf__kv_place(s, kv, key, &job.place));
    return action_make(s, &job, &outcome, action, NULL);
}
