/*
 * outbox/outbox_claimed.c: what the holder of a claim does with its event: complete it, fail it, ask
 * for more time, release it. The essay on claims, whose numbers stand here, is in outbox_claim.c.
 *
 * Every request has the token and the fence of the claim in its condition (3). When the condition
 * fails, the item says whether a request of ours was done before and only its answer was lost; if
 * not, the claim is lost: HF_LOST.
 */
#include "coord/placeholders.h"
#include "outbox/outbox_claim.h"

/* ---- the requests --------------------------------------------------------------------------- */

/* (3) */
static struct hf_str own_condition(struct holders *h, const struct hf_claimed_event *event)
{
    NAMES(h, "#token", "#fence");
    VALUE(h, HF_S(":token", event->token));
    VALUE(h, HF_N(":fence", event->fence));
    return HF_STR("#token = :token AND #fence = :fence");
}

static struct hf_delete_item own_del(struct hf_scope *s, const struct hf_outbox *outbox,
                                     const struct hf_claimed_event *event)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_delete_item del = {.table = outbox->table,
                                 .key = hf__outbox_key(s, outbox, "p", event->event.bucket,
                                                       event->event.ref)};

    del.condition = own_condition(&h, event);
    del.names = hf_item_make(s, h.names, h.names_len);
    del.values = hf_item_make(s, h.values, h.values_len);
    return del;
}

static struct hf_update_item own_update(struct hf_scope *s, const struct hf_outbox *outbox,
                                        const struct hf_claimed_event *event, struct holders *h,
                                        struct hf_str update, struct hf_str condition)
{
    return (struct hf_update_item){.table = outbox->table,
                                   .key = hf__outbox_key(s, outbox, "p", event->event.bucket,
                                                         event->event.ref),
                                   .update = update,
                                   .condition = condition,
                                   .names = hf_item_make(s, h->names, h->names_len),
                                   .values = hf_item_make(s, h->values, h->values_len)};
}

static enum hf_status fail_lost(struct hf_scope *s, const struct hf_claimed_event *event,
                                bool doubtful)
{
    enum hf_status status =
        hf_scope_fail(s, HF_LOST,
                      "the claim on event %.*s is lost: another worker has it, or it was removed",
                      HF_FMT(event->event.event.id));

    return doubtful ? hf_scope_doubt(s) : status;
}

/* ---- completing ----------------------------------------------------------------------------- */

static enum hf_status event_delete(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_claimed_event *event)
{
    struct hf_delete_item del = own_del(s, outbox, event);
    struct hf_item found;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.del = &del}, del.key, &found);
    if (status != HF_CONDITION)
        return status;
    /* It is gone: by a request of ours, as while our lease lasts nobody else completes it. */
    if (!found.ptr && claim_now_us(outbox) < event->event.lease_us)
        return hf_scope_ok(s);
    return fail_lost(s, event, !found.ptr);
}

static enum hf_status leave_to_history(struct hf_scope *s, struct hf_outbox *outbox,
                                       const struct hf_claimed_event *event)
{
    struct hf_delete_item del = own_del(s, outbox, event);
    struct hf_put_item put = {.table = outbox->table,
                              .item =
                                  hf__outbox_history_item(s, outbox, &event->event, event->token)};
    const struct hf_transact_write actions[] = {{.del = &del}, {.put = &put}};
    struct hf_item found;
    enum hf_status status;
    bool doubtful;

    TRY(hf_scope_built(s));
    if (!outbox->transactions) { /* the history is what may be missing then, after a crash */
        TRY(hf__outbox_renew(s, outbox, &event->event)); /* and it is in neither for a moment */
        TRY(event_delete(s, outbox, event));
        return hf__outbox_write_many(s, outbox,
                                     &(struct hf_write){.table = outbox->table, .put = put.item},
                                     1);
    }
    status = hf__outbox_transact(s, outbox, actions, ARRAY_LEN(actions));
    if (status != HF_TX_CANCELED)
        return status;
    doubtful = hf_scope_error(s)->may_have_happened;
    if (!doubtful)
        return fail_lost(s, event, false);
    TRY(hf__pattern_read(s, outbox->db, outbox->table,
                         hf__outbox_key(s, outbox, "h", event->event.bucket, event->event.ref),
                         &found));
    if (hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("done"))), event->token))
        return hf_scope_ok(s);
    return fail_lost(s, event, true);
}

enum hf_status hf_outbox_published(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_claimed_event *event)
{
    return outbox->history_s ? leave_to_history(s, outbox, event) : event_delete(s, outbox, event);
}

enum hf_status hf_outbox_published_many(struct hf_scope *s, struct hf_outbox *outbox,
                                        const struct hf_claimed_event *events, size_t len,
                                        enum hf_status *results)
{
    enum hf_status first = HF_OK;
    bool doubtful = false;
    size_t failed = 0;

    for (size_t i = 0; i < len; i++) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        enum hf_status status = hf_outbox_published(s, outbox, &events[i]);

        if (results)
            results[i] = status;
        if (status != HF_OK && first == HF_OK) {
            first = status;
            doubtful = hf_scope_error(s)->may_have_happened;
            failed = i;
        }
        hf_scope_rewind(s, mark);
    }
    if (first == HF_OK)
        return hf_scope_ok(s);
    (void)hf_scope_fail(s, first, "event %.*s: %s", HF_FMT(events[failed].event.event.id),
                        hf_status_text(first));
    return doubtful ? hf_scope_doubt(s) : first;
}

enum hf_status hf_outbox_published_tx(struct hf_scope *s, struct hf_outbox *outbox,
                                      const struct hf_claimed_event *event,
                                      struct hf_transact_write *action)
{
    struct hf_delete_item *del = hf_scope_alloc(s, sizeof(*del));

    call_begins(s);
    *action = (struct hf_transact_write){0};
    if (!del)
        return hf_scope_built(s);
    *del = own_del(s, outbox, event);
    TRY(hf_scope_built(s));
    action->del = del;
    return HF_OK;
}

/* ---- failing -------------------------------------------------------------------------------- */

/* The end of an update that ends a claim: an attempt that was counted before is not a crash (7). */
static const char *crashes_back(struct holders *h, const struct hf_claimed_event *event, bool begun)
{
    if (!begun)
        return " REMOVE #owner, #token, #lease";
    NAMES(h, "#crashes", "#begun");
    if (!event->event.crashes)
        return " REMOVE #owner, #token, #lease, #begun, #crashes";
    VALUE(h, HF_N(":crashes", event->event.crashes));
    return ", #crashes = :crashes REMOVE #owner, #token, #lease, #begun";
}

static enum hf_status fail_for_now(struct hf_scope *s, struct hf_outbox *outbox,
                                   const struct hf_claimed_event *event,
                                   const struct outbox_failure *failure,
                                   const struct hf_claim_options *o, bool begun)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_str condition = own_condition(&h, event);
    uint64_t attempts = event->event.attempts + UINT64_C(1);
    int64_t now_us = claim_now_us(outbox);
    struct hf_update_item update;
    const char *back;
    struct hf_item found;
    enum hf_status status;

    NAMES(&h, "#attempts", "#tried", "#next", "#error", "#error_text", "#cause", "#try", "#owner",
          "#lease");
    VALUE(&h, HF_N(":attempts", attempts));
    VALUE(&h, HF_N(":tried", now_us));
    VALUE(&h, HF_N(":next", now_us + (int64_t)hf__backoff_ms(&outbox->env, o->backoff_ms,
                                                             o->backoff_max_ms, attempts) *
                                         1000));
    VALUE(&h, HF_S(":error", failure->name));
    VALUE(&h, HF_S(":text", failure->text));
    VALUE(&h, HF_S(":cause", failure->cause));
    VALUE(&h, HF_S(":try", id_str(&id)));
    back = crashes_back(&h, event, begun);
    update = own_update(s, outbox, event, &h,
                        hf_scope_format(s,
                                        "SET #attempts = :attempts, #tried = :tried, "
                                        "#next = :next, #error = :error, #error_text = :text, "
                                        "#cause = :cause, #try = :try%s",
                                        back),
                        condition);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                               update.key, &found);
    if (status != HF_CONDITION)
        return status;
    if (hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("try"))), id_str(&id)))
        return hf_scope_ok(s);
    return fail_lost(s, event, hf_scope_error(s)->may_have_happened);
}

enum hf_status hf__outbox_fail(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_claimed_event *event,
                               const struct outbox_attempt *attempt,
                               const struct hf_claim_options *options)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct hf_error copy = *attempt->error; /* it may be the scope's, which calls forget */
    struct outbox_failure failure = hf__outbox_failure(s, &copy);
    uint64_t attempts = event->event.attempts + (uint64_t)(attempt->tried != OUTBOX_NOT_TRIED);
    struct hf_claim_options o;
    struct outbox_last_try last;
    struct hf_delete_item del;
    enum hf_status status;

    TRY(hf__outbox_claim_options(s, options, &o));
    if (!attempt->give_up && attempts - event->event.crashes < o.max_attempts)
        return fail_for_now(s, outbox, event, &failure, &o, attempt->tried == OUTBOX_BEGUN);
    del = own_del(s, outbox, event);
    TRY(hf_scope_built(s));
    last = (struct outbox_last_try){.id = id_str(&id),
                                    .attempts = attempts,
                                    .failure = &failure,
                                    .now_us = claim_now_us(outbox)};
    status = hf__outbox_make_dead_letter(s, outbox, &del,
                                         hf__outbox_failed_item(s, outbox, &event->event, &last),
                                         last.id);
    return status == HF_CONDITION ? fail_lost(s, event, hf_scope_error(s)->may_have_happened)
                                  : status;
}

enum hf_status hf_outbox_fail(struct hf_scope *s, struct hf_outbox *outbox,
                              const struct hf_claimed_event *event, const struct hf_error *error,
                              bool for_good, const struct hf_claim_options *options)
{
    const struct hf_error unknown = {.status = HF_INTERNAL,
                                     .message = HF_STR("the worker gave no reason")};

    if (!error || error->status == HF_OK) /* HF_OK cannot be stored as a failure */
        error = &unknown;
    return hf__outbox_fail(s, outbox, event,
                           &(struct outbox_attempt){.error = error, .give_up = for_good}, options);
}

/* (7) */
enum hf_status hf__outbox_claim_begin(struct hf_scope *s, struct hf_outbox *outbox,
                                      const struct hf_claimed_event *event, struct hf_str by)
{
    struct hf_error error = hf__outbox_crash_error(s, event->event.crashes + 1);
    struct outbox_failure failure = hf__outbox_failure(s, &error);
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_str condition = own_condition(&h, event);
    struct hf_update_item update;
    struct hf_item found;
    enum hf_status status;

    NAMES(&h, "#attempts", "#crashes", "#begun", "#tried", "#error", "#error_text", "#cause");
    VALUE(&h, HF_N(":attempts", event->event.attempts + UINT64_C(1)));
    VALUE(&h, HF_N(":crashes", event->event.crashes + UINT64_C(1)));
    VALUE(&h, HF_S(":begun", by));
    VALUE(&h, HF_N(":tried", claim_now_us(outbox)));
    VALUE(&h, HF_S(":error", failure.name));
    VALUE(&h, HF_S(":text", failure.text));
    VALUE(&h, HF_S(":cause", failure.cause));
    update = own_update(s, outbox, event, &h,
                        HF_STR("SET #attempts = :attempts, #crashes = :crashes, #begun = :begun, "
                               "#tried = :tried, #error = :error, #error_text = :text, "
                               "#cause = :cause"),
                        condition);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                               update.key, &found);
    return status == HF_CONDITION ? fail_lost(s, event, hf_scope_error(s)->may_have_happened)
                                  : status;
}

/* ---- more time, or none --------------------------------------------------------------------- */

enum hf_status hf_outbox_extend(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_claimed_event *event, uint32_t lease_ms)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_update_item update;
    struct hf_item found;
    enum hf_status status;

    (void)own_condition(&h, event);
    NAMES(&h, "#lease");
    VALUE(&h, HF_N(":lease",
                   claim_now_us(outbox) + (int64_t)(lease_ms ? lease_ms : OUTBOX_LEASE_MS) * 1000));
    update = own_update(s, outbox, event, &h, HF_STR("SET #lease = :lease"),
                        HF_STR("#token = :token AND #fence = :fence AND #lease < :lease"));
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                               update.key, &found);
    if (status != HF_CONDITION)
        return status;
    if (hf_str_equal(claim_token(found), event->token) &&
        claim_fence(found) == (int64_t)event->fence) /* this lease or a longer one is there */
        return hf_scope_ok(s);
    return fail_lost(s, event, hf_scope_error(s)->may_have_happened);
}

enum hf_status hf__outbox_release(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_claimed_event *event, int64_t next_us, bool begun)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_str condition = own_condition(&h, event);
    bool first = begun && !event->event.attempts; /* there was no attempt before */
    struct hf_update_item update;
    const char *back;
    struct hf_item found;
    enum hf_status status;

    NAMES(&h, "#let", "#owner", "#lease");
    if (next_us) {
        NAMES(&h, "#next");
        VALUE(&h, HF_N(":next", next_us));
    }
    if (begun)
        NAMES(&h, "#attempts");
    if (begun && !first)
        VALUE(&h, HF_N(":attempts", event->event.attempts));
    if (first)
        NAMES(&h, "#tried", "#error", "#error_text", "#cause");
    back = crashes_back(&h, event, begun);
    update =
        own_update(s, outbox, event, &h,
                   hf_scope_format(s, "SET #let = :token%s%s%s%s", next_us ? ", #next = :next" : "",
                                   begun && !first ? ", #attempts = :attempts" : "", back,
                                   first ? ", #attempts, #tried, #error, #error_text, #cause" : ""),
                   condition);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &update},
                               update.key, &found);
    if (status == HF_CONDITION &&
        !hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("let"))), event->token))
        return fail_lost(s, event, hf_scope_error(s)->may_have_happened);
    if (status != HF_OK && status != HF_CONDITION)
        return status;
    if (!next_us)
        hf__outbox_wake(outbox, event->event.bucket, false);
    return hf_scope_ok(s);
}

enum hf_status hf_outbox_release(struct hf_scope *s, struct hf_outbox *outbox,
                                 const struct hf_claimed_event *event)
{
    return hf__outbox_release(s, outbox, event, 0, false);
}
