/*
 * outbox/outbox_work.c: what relays do: read events, note deliveries, note failures.
 *
 *  (1) Reads are consistent. A page of events is one answer of the database, as what a later one
 *      shows may have been committed after what an earlier one did not.
 *  (2) Delivered events are removed without a condition, in batches, whichever relay delivered them.
 *      If there is a history, an event is put there first, so a crash in between repeats a delivery.
 *  (3) A failure is counted once: conditional on the count before, with an id of the attempt.
 *  (4) An attempt that may end its process is counted before it begins, as a crash; when it fails
 *      it is a crash no more, and when it succeeds the event is removed. So `crashes` are the attempts
 *      whose process ended before it could note the outcome.
 */
#include "outbox/outbox.h"

#include "coord/placeholders.h"

/* ---- reading -------------------------------------------------------------------------------- */

/* Events of a bucket that wait, whose seq is `from` at least, if given, and less than `to`. */
static struct hf_query waiting_query(struct hf_scope *s, const struct hf_outbox *outbox,
                                     uint32_t bucket, struct hf_str from, struct hf_str to)
{
    struct holders h = {.s = s, .at = &outbox->at};

    NAMES(&h, "#pk", "#sk");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, "p", bucket)));
    VALUE(&h, HF_S(":to", to));
    if (from.len)
        VALUE(&h, HF_S(":from", from));
    return (struct hf_query){.table = outbox->table,
                             .key_condition = from.len ? HF_STR("#pk = :pk AND #sk BETWEEN :from "
                                                                "AND :to")
                                                       : HF_STR("#pk = :pk AND #sk < :to"),
                             .names = hf_item_make(s, h.names, h.names_len),
                             .values = hf_item_make(s, h.values, h.values_len),
                             .consistent = HF_YES};
}

enum hf_status hf__outbox_read(struct hf_scope *s, struct hf_outbox *outbox,
                               struct outbox_reading *r)
{
    char to[OUTBOX_SEQ_LEN + 1];
    const struct hf_str after = r->after;
    struct hf_query_result result;
    struct hf_query query;
    enum hf_status status;

    r->events = hf_scope_alloc(s, ((size_t)r->limit + 1) * sizeof(*r->events));
    r->len = 0;
    r->more = false;
    assert(r->skew_ms <= OUTBOX_SKEW_MS);
    assert(r->bucket < outbox->buckets && r->limit);
    hf__outbox_seq_floor(r->now_ms + r->skew_ms + 1, to);
    if (after.len && memcmp(after.ptr, to, after.len < sizeof(to) ? after.len : sizeof(to)) >= 0)
        return HF_OK;
    query = waiting_query(s, outbox, r->bucket, hf_str_of(NULL, 0), hf_str_from(to));
    query.limit = r->limit;
    if (after.len)
        query.start = hf__outbox_key(s, outbox, "p", r->bucket, after);
    TRY(hf_scope_built(s));
    do {
        TRY(hf_query(s, outbox->db, &query, &result));
        for (size_t i = 0; i < result.items_len; i++) {
            if (r->len == r->limit) {
                r->more = true;
                return HF_OK;
            }
            status = hf__outbox_view(s, outbox, result.items[i], &r->events[r->len]);
            if (status == HF_CORRUPT && r->reject)
                hf__outbox_reject(s, outbox, result.items[i]);
            else if (status == HF_CORRUPT)
                hf__outbox_log_skipped(s, outbox);
            else
                TRY(status);
            if (status == HF_OK && !hf__outbox_is_early(&r->events[r->len], r->now_ms * 1000))
                r->len++;
        }
        query.start = result.last;
    } while (query.start.ptr && !r->len); /* (1) */
    r->more = query.start.ptr != NULL;
    assert(r->len <= r->limit);
    return hf_scope_ok(s);
}

/* SELECT "pk" FROM "TABLE" WHERE "pk" IN [?,?] AND "sk" < ?, with the names of the table. */
static struct hf_str look_statement(struct hf_scope *s, const struct hf_outbox *outbox, size_t len,
                                    const char *compare)
{
    char marks[2 * OUTBOX_LOOK_MAX];

    assert(len && len <= OUTBOX_LOOK_MAX);
    for (size_t i = 0; i < 2 * len; i++)
        marks[i] = i % 2 ? ',' : '?';
    return hf_scope_format(
        s, "SELECT \"%.*s\" FROM \"%.*s\" WHERE \"%.*s\" IN [%.*s] AND \"%.*s\" %s ?",
        HF_FMT(outbox->at.hash), HF_FMT(outbox->table), HF_FMT(outbox->at.hash), (int)(2 * len - 1),
        marks, HF_FMT(outbox->at.sort), compare);
}

/* A statement has no placeholders for names, and one with a quote in it would end there. */
static bool is_quotable(struct hf_str name)
{
    return !memchr(name.ptr, '"', name.len) && !memchr(name.ptr, '\0', name.len);
}

static bool look_may(struct hf_outbox *outbox)
{
    bool may;

    if (!is_quotable(outbox->at.hash) || !is_quotable(outbox->at.sort))
        return false;

    pthread_mutex_lock(&outbox->mutex);
    may = hf__env_elapsed_us(&outbox->env) >= outbox->look_again_us;
    pthread_mutex_unlock(&outbox->mutex);
    return may;
}

static void look_later(struct hf_outbox *outbox)
{
    pthread_mutex_lock(&outbox->mutex);
    outbox->look_again_us = hf__env_elapsed_us(&outbox->env) + OUTBOX_LOOK_AGAIN_MS * INT64_C(1000);
    pthread_mutex_unlock(&outbox->mutex);
}

/* Which of these buckets have an item whose sort key compares so with the bound? */
static enum hf_status buckets_look(struct hf_scope *s, struct hf_outbox *outbox,
                                   struct outbox_looking *l, const char *compare,
                                   struct hf_str bound)
{
    struct hf_value parameters[OUTBOX_LOOK_MAX + 1];
    struct hf_execute_statement request = {.statement = look_statement(s, outbox, l->len, compare),
                                           .parameters = parameters,
                                           .parameters_len = l->len + 1,
                                           .consistent = HF_YES,
                                           .limit = OUTBOX_PAGE};
    struct hf_execute_statement_result result;
    enum hf_status status;

    l->whole = false;
    if (!look_may(outbox))
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "statements failed a short time ago, or cannot have these names");
    for (size_t i = 0; i < l->len; i++) {
        assert(l->buckets[i] < HF_OUTBOX_BUCKETS_MAX); /* strays are in one that does not exist */
        parameters[i] =
            hf_value_make(s, (struct hf_attr)HF_S("", hf__outbox_pk(s, "p", l->buckets[i])));
    }
    parameters[l->len] = hf_value_make(s, (struct hf_attr)HF_S("", bound));
    TRY(hf_scope_built(s));
    status = hf_execute_statement(s, outbox->db, &request, &result);
    l->whole = status == HF_OK && !result.next_token.len;
    if (!l->whole)
        look_later(outbox);
    TRY(status);
    for (size_t i = 0; i < l->len; i++) {
        struct hf_str pk = hf_value_str(parameters[i]);

        l->shown[i] = !l->whole;
        for (size_t k = 0; k < result.items_len && !l->shown[i]; k++)
            l->shown[i] = hf_str_equal(pk_of(outbox, result.items[k]), pk);
    }
    return HF_OK;
}

enum hf_status hf__outbox_look(struct hf_scope *s, struct hf_outbox *outbox,
                               struct outbox_looking *l, int64_t now_ms, uint32_t skew_ms)
{
    char to[OUTBOX_SEQ_LEN + 1];

    assert(skew_ms <= OUTBOX_SKEW_MS);
    hf__outbox_seq_floor(now_ms + skew_ms + 1, to);
    return buckets_look(s, outbox, l, "<", hf_str_from(to));
}

enum hf_status hf__outbox_look_behind(struct hf_scope *s, struct hf_outbox *outbox,
                                      struct outbox_looking *l, struct hf_str from)
{
    return buckets_look(s, outbox, l, ">=", from);
}

enum hf_status hf__outbox_next_due(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                   int64_t now_ms, int64_t *due_ms)
{
    static const char last[] = "zzzzzzzzzzzzzzzzzzzzzzzzzz";
    char from[OUTBOX_SEQ_LEN + 1];
    struct hf_query_result result;
    struct hf_query query;

    assert(bucket < outbox->buckets);
    *due_ms = INT64_MAX;
    hf__outbox_seq_floor(now_ms, from);
    query = waiting_query(s, outbox, bucket, hf_str_from(from), hf_str_from(last));
    query.limit = 10; /* the first one, nearly always */
    TRY(hf_scope_built(s));
    do {
        TRY(hf_query(s, outbox->db, &query, &result));
        for (size_t i = 0; i < result.items_len; i++) {
            struct hf_outbox_event event;

            if (hf__outbox_view(s, outbox, result.items[i], &event) != HF_OK) {
                hf__outbox_log_skipped(s, outbox);
            } else if (hf__outbox_is_early(&event, now_ms * 1000)) {
                *due_ms = event.event.due_us ? (event.event.due_us + 999) / 1000
                                             : hf__outbox_due_ms(&event) - OUTBOX_SKEW_MS;
                return HF_OK;
            }
        }
        query.start = result.last;
        query.limit = OUTBOX_PAGE;
    } while (query.start.ptr);
    return hf_scope_ok(s);
}

enum hf_status hf__outbox_key_failed(struct hf_scope *s, struct hf_outbox *outbox, uint32_t bucket,
                                     struct hf_str key, bool *failed)
{
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_query query = {.table = outbox->table,
                             .key_condition = HF_STR("#pk = :pk"),
                             .filter = HF_STR("#key = :key"),
                             .projection = HF_STR("#pk"),
                             .consistent = HF_YES};
    struct hf_query_result result;

    assert(bucket < outbox->buckets && key.len);
    *failed = false;
    NAMES(&h, "#pk", "#key");
    VALUE(&h, HF_S(":pk", hf__outbox_pk(s, "f", bucket)));
    VALUE(&h, HF_S(":key", key));
    query.names = hf_item_make(s, h.names, h.names_len);
    query.values = hf_item_make(s, h.values, h.values_len);
    TRY(hf_scope_built(s));
    do {
        TRY(hf_query(s, outbox->db, &query, &result));
        *failed = result.items_len > 0;
        query.start = result.last;
    } while (query.start.ptr && !*failed);
    return HF_OK;
}

/* ---- delivered ------------------------------------------------------------------------------ */

struct hf_item hf__outbox_history_item(struct hf_scope *s, const struct hf_outbox *outbox,
                                       const struct hf_outbox_event *event, struct hf_str done)
{
    struct outbox_place place;
    int64_t now_us = outbox->env.wall_us(outbox->env.user);
    struct hf_attr attrs[5] = {ttl_attr(outbox, now_us / 1000000 + outbox->history_s),
                               HF_N("ended", now_us)};
    size_t len = 2;

    if (!hf__outbox_place_read(outbox, event->ref, &place))
        return (struct hf_item){0};
    if (event->attempts)
        attrs[len++] = (struct hf_attr)HF_N("attempts", event->attempts);
    if (event->tried_us)
        attrs[len++] = (struct hf_attr)HF_N("tried", event->tried_us);
    if (done.len)
        attrs[len++] = (struct hf_attr)HF_S("done", done);
    assert(len <= ARRAY_LEN(attrs));
    return hf__outbox_moved(
        s, outbox, event->item,
        &(struct outbox_move){.partition = "h", .place = &place, .more = attrs, .more_len = len});
}

enum hf_status hf__outbox_done(struct hf_scope *s, struct hf_outbox *outbox,
                               const struct hf_outbox_event *const *events, size_t len)
{
    struct hf_write *writes = hf_scope_alloc(s, (len + 1) * sizeof(*writes));

    if (!writes)
        return hf_scope_built(s);
    if (outbox->history_s) { /* (2) */
        size_t kept = 0;

        for (size_t i = 0; i < len; i++) {
            struct hf_item item = hf__outbox_history_item(s, outbox, events[i], hf_str_of(NULL, 0));

            if (hf_item_get(item, outbox->at.expires).ptr) /* else it would stay without an end */
                writes[kept++] = (struct hf_write){.table = outbox->table, .put = item};
        }
        TRY(hf_scope_built(s));
        if (kept)
            TRY(hf__outbox_write_many(s, outbox, writes, kept));
    }
    for (size_t i = 0; i < len; i++) {
        assert(events[i]->ref.len == OUTBOX_SEQ_LEN && events[i]->bucket < outbox->buckets);
        writes[i] = (struct hf_write){.table = outbox->table,
                                      .del = hf__outbox_key(s, outbox, "p", events[i]->bucket,
                                                            events[i]->ref)};
    }
    TRY(hf_scope_built(s));
    return hf__outbox_write_many(s, outbox, writes, len);
}

/* ---- failed --------------------------------------------------------------------------------- */

/* "It is there, with as many attempts" (3). */
static struct hf_str same_attempts(struct holders *h, uint64_t attempts)
{
    NAMES(h, "#pk", "#attempts");
    if (!attempts)
        return HF_STR("attribute_exists(#pk) AND attribute_not_exists(#attempts)");
    VALUE(h, HF_N(":before", attempts));
    return HF_STR("attribute_exists(#pk) AND #attempts = :before");
}

/* How many attempts are in the table, as far as we know; and how many there are with this one. */
static uint64_t attempts_before(const struct hf_outbox_event *event, enum outbox_try tried)
{
    return event->attempts + (uint64_t)(tried == OUTBOX_BEGUN);
}

static uint64_t attempts_after(const struct hf_outbox_event *event, enum outbox_try tried)
{
    return event->attempts + (uint64_t)(tried != OUTBOX_NOT_TRIED);
}

/* Another process has changed the event; or we have, if an answer got lost, and then another. */
static enum hf_status fail_lost(struct hf_scope *s, const struct hf_outbox_event *event)
{
    bool doubtful = hf_scope_error(s)->may_have_happened;
    enum hf_status status = hf_scope_fail(
        s, HF_LOST,
        "event %.*s has changed: another relay delivered it or noted a failure, or it "
        "was discarded",
        HF_FMT(event->event.id));

    return doubtful ? hf_scope_doubt(s) : status;
}

/* Change an event that waits, on the condition that is in `update`. A lost answer is recognised by
 * `try`, which is #try and :try in the update. */
static enum hf_status send_change(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_outbox_event *event,
                                  struct hf_update_item *update, struct holders *h)
{
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    struct hf_item found;
    enum hf_status status;

    NAMES(h, "#try");
    VALUE(h, HF_S(":try", hf_scope_copy(s, id_str(&id))));
    update->table = outbox->table;
    update->key = hf__outbox_key(s, outbox, "p", event->bucket, event->ref);
    update->names = hf_item_make(s, h->names, h->names_len);
    update->values = hf_item_make(s, h->values, h->values_len);
    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = update},
                               update->key, &found);
    if (status != HF_CONDITION)
        return status;
    if (hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("try"))), id_str(&id)))
        return hf_scope_ok(s);
    return fail_lost(s, event);
}

static void failure_values(struct holders *h, const struct outbox_failure *failure)
{
    NAMES(h, "#error", "#error_text", "#cause");
    VALUE(h, HF_S(":error", failure->name));
    VALUE(h, HF_S(":text", failure->text));
    VALUE(h, HF_S(":cause", failure->cause));
}

/* A failed attempt that is to be noted. */
struct noting {
    struct hf_outbox *outbox;
    const struct hf_outbox_event *event;
    const struct outbox_attempt *attempt;
    struct outbox_failure failure;
    int64_t now_us;
};

static enum hf_status note_retry(struct hf_scope *s, const struct noting *n)
{
    const struct hf_outbox_event *event = n->event;
    const enum outbox_try tried = n->attempt->tried;
    struct holders h = {.s = s, .at = &n->outbox->at};
    struct hf_update_item update = {
        .condition = same_attempts(&h, attempts_before(event, tried)),
        .update = tried != OUTBOX_BEGUN
                      ? HF_STR("SET #attempts = :attempts, #tried = :tried, #next = :next, "
                               "#error = :error, #error_text = :text, #cause = :cause, #try = :try")
                  : event->crashes
                      ? HF_STR("SET #attempts = :attempts, #tried = :tried, #next = :next, "
                               "#error = :error, #error_text = :text, #cause = :cause, "
                               "#try = :try, #crashes = :crashes REMOVE #begun")
                      : HF_STR("SET #attempts = :attempts, #tried = :tried, #next = :next, "
                               "#error = :error, #error_text = :text, #cause = :cause, "
                               "#try = :try REMOVE #crashes, #begun")};

    NAMES(&h, "#tried", "#next");
    VALUE(&h, HF_N(":attempts", attempts_after(event, tried)));
    VALUE(&h, HF_N(":tried", n->now_us));
    VALUE(&h, HF_N(":next", n->attempt->next_us));
    failure_values(&h, &n->failure);
    if (tried == OUTBOX_BEGUN)
        NAMES(&h, "#crashes", "#begun");
    if (tried == OUTBOX_BEGUN && event->crashes)
        VALUE(&h, HF_N(":crashes", event->crashes));
    return send_change(s, n->outbox, event, &update, &h);
}

struct hf_item hf__outbox_failed_item(struct hf_scope *s, const struct hf_outbox *outbox,
                                      const struct hf_outbox_event *event,
                                      const struct outbox_last_try *last)
{
    const struct outbox_failure *failure = last->failure;
    struct outbox_place place;
    const struct hf_attr attrs[] = {
        HF_N("crashes", event->crashes), HF_N("ended", last->now_us),
        HF_S("error", failure->name),    HF_N("attempts", last->attempts),
        HF_S("try", last->id),           HF_N("tried", last->now_us),
        HF_S("cause", failure->cause),   HF_S("error_text", failure->text)};
    size_t first = event->crashes ? 0 : 1;

    if (!hf__outbox_place_read(outbox, event->ref, &place))
        return (struct hf_item){0};
    return hf__outbox_moved(s, outbox, event->item,
                            &(struct outbox_move){.partition = "f",
                                                  .place = &place,
                                                  .more = attrs + first,
                                                  .more_len = ARRAY_LEN(attrs) - first});
}

/* Without transactions, if the item has no room for a mark: put the dead letter, then remove the event.
 * If it was delivered or claimed meanwhile it is in both places. */
static enum hf_status dead_letter_full(struct hf_scope *s, struct hf_outbox *outbox,
                                       const struct hf_delete_item *del,
                                       const struct hf_put_item *put)
{
    struct hf_item found;
    enum hf_status status;

    TRY(hf__outbox_write_many(s, outbox,
                              &(struct hf_write){.table = outbox->table, .put = put->item}, 1));
    status =
        hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.del = del}, del->key, &found);
    return status == HF_CONDITION && !found.ptr ? hf_scope_ok(s) : status;
}

/* Without transactions: mark the event as ours, on the condition; then put the dead letter, then remove
 * the event. */
static enum hf_status dead_letter_by_steps(struct hf_scope *s, struct hf_outbox *outbox,
                                           const struct hf_delete_item *del,
                                           const struct hf_put_item *put, struct hf_str try_id)
{
    const struct hf_attr name[] = {HF_S("#try", HF_STR("try"))};
    const struct hf_attr value[] = {HF_S(":try", try_id)};
    struct hf_update_item mark = {.table = outbox->table,
                                  .key = del->key,
                                  .update = HF_STR("SET #try = :try"),
                                  .condition = del->condition,
                                  .names = hf_item_with(s, del->names, name, 1),
                                  .values = hf_item_with(s, del->values, value, 1)};
    struct hf_delete_item own = {.table = outbox->table,
                                 .key = del->key,
                                 .condition = HF_STR("#try = :try"),
                                 .names = hf_item_make(s, name, 1),
                                 .values = hf_item_make(s, value, 1)};
    struct hf_item found;
    enum hf_status status;

    TRY(hf_scope_built(s));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.update = &mark},
                               del->key, &found);
    if (status != HF_CONDITION ||
        !hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("try"))), try_id))
        TRY(status);
    TRY(hf__outbox_write_many(s, outbox,
                              &(struct hf_write){.table = outbox->table, .put = put->item}, 1));
    status = hf__pattern_write(s, outbox->db, &(struct hf_transact_write){.del = &own}, del->key,
                               &found);
    return status == HF_CONDITION ? hf_scope_ok(s) : status;
}

enum hf_status hf__outbox_make_dead_letter(struct hf_scope *s, struct hf_outbox *outbox,
                                           const struct hf_delete_item *del, struct hf_item failed,
                                           struct hf_str try_id)
{
    struct hf_put_item put = {.table = outbox->table, .item = failed};
    const struct hf_transact_write actions[] = {{.put = &put}, {.del = del}};
    struct hf_item found,
        key = hf__outbox_key_of(s, outbox, pk_of(outbox, failed), sk_of(outbox, failed));
    enum hf_status status;
    bool doubtful;

    TRY(hf_scope_built(s));
    if (!outbox->transactions)
        return hf__outbox_has_room(s, outbox, failed)
                   ? dead_letter_by_steps(s, outbox, del, &put, try_id)
                   : dead_letter_full(s, outbox, del, &put);
    status = hf__outbox_transact(s, outbox, actions, ARRAY_LEN(actions));
    if (status != HF_TX_CANCELED)
        return status;
    doubtful = hf_scope_error(s)->may_have_happened;
    if (doubtful) {
        TRY(hf__pattern_read(s, outbox->db, outbox->table, key, &found));
        if (hf_str_equal(hf_value_str(hf_item_get(found, HF_STR("try"))), try_id))
            return hf_scope_ok(s);
    }
    status = hf_scope_fail(s, HF_CONDITION, "the event has changed since it was read");
    return doubtful ? hf_scope_doubt(s) : status;
}

static enum hf_status note_end(struct hf_scope *s, const struct noting *n)
{
    struct hf_outbox *outbox = n->outbox;
    const struct hf_outbox_event *event = n->event;
    struct pattern_id id = hf__pattern_id_make(&outbox->env);
    const struct outbox_last_try last = {.id = id_str(&id),
                                         .attempts = attempts_after(event, n->attempt->tried),
                                         .failure = &n->failure,
                                         .now_us = n->now_us};
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_delete_item del = {.table = outbox->table,
                                 .key = hf__outbox_key(s, outbox, "p", event->bucket, event->ref)};
    enum hf_status status;

    del.condition = same_attempts(&h, attempts_before(event, n->attempt->tried));
    del.names = hf_item_make(s, h.names, h.names_len);
    del.values = h.values_len ? hf_item_make(s, h.values, h.values_len) : (struct hf_item){0};
    status = hf__outbox_make_dead_letter(s, outbox, &del,
                                         hf__outbox_failed_item(s, outbox, event, &last), last.id);
    return status == HF_CONDITION ? fail_lost(s, event) : status;
}

enum hf_status hf__outbox_note_try(struct hf_scope *s, struct hf_outbox *outbox,
                                   struct hf_outbox_event *event,
                                   const struct outbox_attempt *attempt)
{
    const bool give_up = attempt->give_up;
    struct hf_error copy = *attempt->error; /* it may be the scope's, which calls forget */
    struct noting n = {.outbox = outbox,
                       .event = event,
                       .attempt = attempt,
                       .failure = hf__outbox_failure(s, &copy),
                       .now_us = outbox->env.wall_us(outbox->env.user)};

    TRY(hf_scope_built(s));
    TRY(give_up ? note_end(s, &n) : note_retry(s, &n));
    event->attempts = (uint32_t)attempts_after(event, attempt->tried);
    event->error = n.failure.status;
    event->tried_us = n.now_us;
    event->next_us = give_up ? 0 : attempt->next_us;
    event->ended_us = give_up ? n.now_us : 0;
    event->state = give_up ? HF_OUTBOX_FAILED : HF_OUTBOX_PENDING;
    return HF_OK;
}

/* ---- attempts that may end their process ---------------------------------------------------- */

struct hf_error hf__outbox_crash_error(struct hf_scope *s, uint32_t crashes)
{
    return (struct hf_error){
        .status = HF_TIMEOUT,
        .message = hf_scope_format(s,
                                   "its process ended while it was handled, or was silent for a "
                                   "whole lease: %u time%s",
                                   crashes, crashes == 1 ? "" : "s")};
}

bool hf__outbox_is_begun(const struct hf_outbox_event *event, struct hf_str by)
{
    return event->crashes &&
           hf_str_equal(hf_value_str(hf_item_get(event->item, HF_STR("begun"))), by);
}

/* (4) */
enum hf_status hf__outbox_begin(struct hf_scope *s, struct hf_outbox *outbox,
                                const struct hf_outbox_event *event, struct hf_str by)
{
    struct hf_error error = hf__outbox_crash_error(s, event->crashes + 1);
    struct outbox_failure failure = hf__outbox_failure(s, &error);
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_update_item update = {
        .condition = same_attempts(&h, event->attempts),
        .update = HF_STR("SET #attempts = :attempts, #crashes = :crashes, #begun = :begun, "
                         "#tried = :tried, #error = :error, #error_text = :text, #cause = :cause, "
                         "#try = :try")};

    NAMES(&h, "#crashes", "#tried", "#begun");
    VALUE(&h, HF_N(":attempts", event->attempts + UINT64_C(1)));
    VALUE(&h, HF_N(":crashes", event->crashes + UINT64_C(1)));
    VALUE(&h, HF_S(":begun", by));
    VALUE(&h, HF_N(":tried", outbox->env.wall_us(outbox->env.user)));
    failure_values(&h, &failure);
    return send_change(s, outbox, event, &update, &h);
}

/* Undo hf__outbox_begin(): restore all attributes that it changed, if `event` was read before. */
enum hf_status hf__outbox_unbegin(struct hf_scope *s, struct hf_outbox *outbox,
                                  const struct hf_outbox_event *event, struct hf_str by)
{
    static const char *const changed[] = {"attempts", "crashes",    "tried",
                                          "error",    "error_text", "cause"};
    bool before = !hf__outbox_is_begun(event, by);
    struct holders h = {.s = s, .at = &outbox->at};
    struct hf_update_item update = {.condition = same_attempts(&h, event->attempts + UINT64_C(1))};
    struct hf_str sets = HF_STR("SET #try = :try"), removes = HF_STR("REMOVE #begun");

    NAMES(&h, "#crashes", "#begun");
    for (size_t i = 0; i < (before ? ARRAY_LEN(changed) : 2); i++) {
        struct hf_value old = hf_item_get(event->item, hf_str_from(changed[i]));
        struct hf_attr value = HF_V("old", old);

        if (i == 0)
            value = (struct hf_attr)HF_N("old", event->attempts);
        else if (i == 1)
            value = (struct hf_attr)HF_N("old", event->crashes);
        else
            holders_name(&h, hf_scope_format(s, "#%s", changed[i]), hf_str_from(changed[i]));
        if (i == 0 ? event->attempts > 0 : i == 1 ? event->crashes > 0 : old.ptr != NULL) {
            sets = hf_scope_format(s, "%.*s, #%s = :%s", HF_FMT(sets), changed[i], changed[i]);
            value.name = hf_scope_format(s, ":%s", changed[i]);
            holders_value(&h, value);
        } else {
            removes = hf_scope_format(s, "%.*s, #%s", HF_FMT(removes), changed[i]);
        }
    }
    update.update = hf_scope_format(s, "%.*s %.*s", HF_FMT(sets), HF_FMT(removes));
    return send_change(s, outbox, event, &update, &h);
}
