/*
 * events/subscribe/subscribe_work.c: reading for a subscription, and calling its function.
 *
 * Events at hand are those that the reader handed out last, from `at` on. `handled` is the
 * checkpoint as it may be, `written` as it is stored; it is never written behind `handled`.
 *
 *  (1) `handled` moves past an event when its function has returned HF_OK, when its transaction was
 *      committed, or when it was parked, and past events that the options leave out when all
 *      before them were handled.
 *  (2) What fails together with others is tried alone before an attempt counts.
 *  (3) Only an event's own failures count: what the database does not do now, conflicts, and being
 *      stopped do not. That its payload is gone from the blob store is its own failure. A page that
 *      cannot be read for that is read without payloads, and each is fetched when it is needed.
 *  (4) After a crash events are handled one by one, and counted beforehand: subscribe_suspect.c.
 */
#include "events/subscribe/subscribe.h"

#include <stdio.h>
#include <stdlib.h>

enum { STREAM_PAGE = 500, READER_PAGE = 500, CONFLICT_MS = 20 };

static int64_t elapsed_ms(const struct hf_subscription *sub)
{
    return hf__env_elapsed_us(&sub->env) / 1000;
}

struct checkpoint hf__sub_checkpoint_at(const struct hf_subscription *sub,
                                        const struct hf_stored_event *event)
{
    struct checkpoint at = {0};

    if (!sub->of_stream)
        return checkpoint_of(event->position);
    hf__events_version_text(event->version, at.text);
    return at;
}

static uint64_t version_at(const struct checkpoint *at)
{
    return strtoull(at->text, NULL, 10);
}

/* ---- where events come from ----------------------------------------------------------------- */

void hf__sub_source_close(struct hf_subscription *sub)
{
    hf_events_reader_close(sub->reader);
    sub->reader = NULL;
    sub->has_source = false;
    sub->source_more = false;
    sub->events = NULL;
    sub->events_len = sub->at = 0;
    sub->narrow = 0;
    sub->attempts = 0;
    sub->retry_us = 0;
}

/* Where the end is now: a checkpoint behind all, which is before all that come. */
static enum hf_status find_end(struct hf_scope *s, struct hf_subscription *sub,
                               struct checkpoint *end)
{
    struct events_position position;
    struct hf_events_page page;
    enum hf_status status;

    if (sub->of_stream) {
        status = hf_events_read(s, sub->store, sub->o.stream,
                                HF_OPTIONS(hf_events_read_options, .backward = true, .limit = 1,
                                           .no_payload = true),
                                &page);
        if (status == HF_DELETED) { /* it was deleted: there are none, and none will come */
            page.version = 0;
            status = hf_scope_ok(s);
        }
        TRY(status);
        hf__events_version_text(page.version, end->text);
        return HF_OK;
    }
    TRY(hf__events_end(s, sub->store, &position));
    if (!position.text[0])
        position = hf__events_position_floor(0);
    *end = checkpoint_of(position_str(&position));
    return HF_OK;
}

static enum hf_status source_open(struct hf_scope *s, struct hf_subscription *sub)
{
    struct hf_events_all_options all = {.size = sizeof(all),
                                        .domain = sub->o.domain,
                                        .type = sub->o.type,
                                        .archived = sub->o.archived,
                                        .no_payload = sub->o.no_payload,
                                        .settle_ms = sub->o.settle_ms,
                                        .limit = READER_PAGE};

    if (!sub->handled.text[0] && sub->o.start == HF_START_END) {
        TRY(find_end(s, sub, &sub->handled));
        TRY(hf__sub_checkpoint(s, sub));
    }
    if (!sub->handled.text[0] && sub->o.start == HF_START_AFTER && sub->of_stream) {
        struct checkpoint after = checkpoint_of(sub->o.after);

        hf__events_version_text(version_at(&after), sub->handled.text);
    }
    if (!sub->of_stream) {
        if (sub->handled.text[0])
            all.after = checkpoint_str(&sub->handled);
        else if (sub->o.start == HF_START_AFTER)
            all.after = sub->o.after;
        else if (sub->o.start == HF_START_TIME)
            all.from_us = sub->o.from_us;
        TRY(hf_events_reader_open(s, sub->store, &all, &sub->reader));
    }
    sub->has_source = true;
    return HF_OK;
}

static enum hf_status stream_read(struct hf_subscription *sub, bool no_payload)
{
    struct hf_events_page page;
    enum hf_status status;

    hf_scope_reset(sub->page);
    status =
        hf_events_read(sub->page, sub->store, sub->o.stream,
                       HF_OPTIONS(hf_events_read_options, .from = version_at(&sub->handled) + 1,
                                  .limit = STREAM_PAGE, .no_payload = no_payload),
                       &page);
    if (status != HF_OK)
        return status;
    sub->events = page.events;
    sub->events_len = page.events_len;
    sub->source_more = page.next != 0;
    return HF_OK;
}

/* (3) */
static enum hf_status reader_read(struct hf_scope *s, struct hf_subscription *sub)
{
    enum hf_status status =
        hf__events_reader_step(s, sub->reader, &sub->events, &sub->events_len, &sub->source_more);

    if (status != HF_CORRUPT || sub->o.no_payload)
        return status;
    hf__events_reader_payloads(sub->reader, false);
    status =
        hf__events_reader_step(s, sub->reader, &sub->events, &sub->events_len, &sub->source_more);
    hf__events_reader_payloads(sub->reader, true);
    return status;
}

enum hf_status hf__sub_source(struct hf_scope *s, struct hf_subscription *sub)
{
    enum hf_status status;

    if (sub->at < sub->events_len)
        return HF_OK;
    if (!sub->has_source)
        TRY(source_open(s, sub));
    assert(sub->of_stream || sub->reader);
    sub->at = 0;
    sub->events_len = 0;
    if (sub->of_stream) {
        status = stream_read(sub, sub->o.no_payload);
        if (status == HF_CORRUPT && !sub->o.no_payload)
            status = stream_read(sub, true); /* (3) */
        if (status == HF_DELETED) {          /* it was deleted: there are none */
            sub->source_more = false;
            return HF_OK;
        }
        return hf_scope_fail_from(s, status, sub->page);
    }
    TRY(reader_read(s, sub));
    if (!sub->events_len && hf_events_reader_position(sub->reader).ptr)
        sub->handled = checkpoint_of(hf_events_reader_position(sub->reader));
    return HF_OK;
}

/* ---- the checkpoint ------------------------------------------------------------------------- */

enum hf_status hf__sub_checkpoint(struct hf_scope *s, struct hf_subscription *sub)
{
    struct sub_move move = {.token = id_str(&sub->token),
                            .to = sub->handled,
                            .handled = sub->handled_count,
                            .forget = hf__suspects_forget(sub)};

    if (strcmp(sub->handled.text, sub->written.text) == 0)
        return HF_OK;
    assert(sub->handled.text[0]); /* it never goes back to none */
    TRY(hf__sub_move(s, sub->store, sub->pk, &move));
    hf__suspects_forgot(sub, move.forget);
    sub->written = move.to;
    sub->written_us = hf__env_elapsed_us(&sub->env);
    pthread_mutex_lock(&sub->mutex);
    sub->metrics.checkpoints++;
    pthread_mutex_unlock(&sub->mutex);
    return HF_OK;
}

/* (1) */
static void events_pass(struct hf_subscription *sub, size_t count, bool handled)
{
    const struct hf_stored_event *last = &sub->events[sub->at + count - 1];
    int64_t ms = 0;

    assert(count > 0 && count <= sub->events_len - sub->at);
    sub->handled = hf__sub_checkpoint_at(sub, last);
    sub->at += count;
    sub->handled_count += handled ? count : 0;
    sub->attempts = 0;
    sub->retry_us = 0;
    hf__suspects_passed(sub, count);
    sub->narrow -= sub->narrow < count ? sub->narrow : (uint32_t)count;
    (void)hf__events_position_read(last->position, &ms, NULL, NULL);
    pthread_mutex_lock(&sub->mutex);
    sub->metrics.handled += handled ? count : 0;
    sub->metrics.lag_ms = hf__env_wall_ms(&sub->env) - ms;
    if (sub->metrics.lag_ms < 0)
        sub->metrics.lag_ms = 0;
    pthread_mutex_unlock(&sub->mutex);
}

/* ---- calling -------------------------------------------------------------------------------- */

static void work_begin(struct hf_subscription *sub)
{
    hf_scope_reset(sub->work);
    if (sub->o.timeout_ms)
        hf_scope_timeout_ms(sub->work, sub->o.timeout_ms);
    if (hf__sub_stops(sub)) /* it may have been canceled before it was reset */
        hf_scope_cancel(sub->work);
}

static enum hf_status handler_call(struct hf_subscription *sub,
                                   const struct hf_stored_event *events, size_t count, bool replay)
{
    enum hf_status status;

    assert(count == 1 || !sub->o.each);
    work_begin(sub);
    hf__sub_call_begin(sub, events, count, replay);
    status = sub->o.each ? sub->o.each(sub->work, events, sub->o.user)
                         : sub->o.batch(sub->work, events, count, sub->o.user);
    hf__sub_call_end(sub);
    return status;
}

/* Let the function add to the transaction what the events lead to. */
static enum hf_status handler_project(struct hf_subscription *sub,
                                      const struct hf_stored_event *events, size_t count,
                                      struct hf_tx *tx, bool replay)
{
    struct hf_tx *former = hf_scope_set_tx(sub->work, tx);
    enum hf_status status = HF_OK;

    hf__sub_call_begin(sub, events, count, replay);
    for (size_t i = 0; i < count && status == HF_OK; i++)
        status = sub->o.project(sub->work, tx, &events[i], sub->o.user);
    hf__sub_call_end(sub);
    hf_scope_set_tx(sub->work, former);
    return status;
}

/* Does a transaction fail with that because of what the events have added to it? (3) */
static bool is_own_failure(enum hf_status status)
{
    return status == HF_TX_CANCELED || status == HF_INVALID || status == HF_LIMIT ||
           status == HF_TIMEOUT;
}

/*
 * One transaction: what the function adds, and the move. *own: a failure is that of the events; the
 * error is in the scope of work then, and else in `s`.
 */
static enum hf_status batch_commit(struct hf_scope *s, struct hf_subscription *sub,
                                   const struct hf_stored_event *events, size_t count, bool *own)
{
    struct sub_move move = {.token = id_str(&sub->token),
                            .from = sub->written,
                            .to = hf__sub_checkpoint_at(sub, &events[count - 1]),
                            .handled = sub->handled_count + count,
                            .forget = hf__suspects_forget(sub)};
    struct hf_tx *tx;
    size_t action;
    enum hf_status status;

    work_begin(sub);
    *own = true;
    TRY(hf_tx_new(sub->work, sub->store->db, &tx));
    TRY(handler_project(sub, events, count, tx, false));
    action = hf_tx_len(tx);
    TRY(hf__sub_move_tx(sub->work, sub->store, sub->pk, &move, tx));
    status = hf_tx_commit(sub->work, tx, NULL);
    if (status != HF_OK)
        status = hf__sub_move_failed(sub->work, action, &move);
    if (status == HF_OK) {
        hf__suspects_forgot(sub, move.forget);
        sub->written = move.to;
        sub->written_us = hf__env_elapsed_us(&sub->env);
        pthread_mutex_lock(&sub->mutex);
        sub->metrics.checkpoints++;
        pthread_mutex_unlock(&sub->mutex);
        return HF_OK;
    }
    *own = is_own_failure(status);
    return *own ? status : hf_scope_fail_from(s, status, sub->work);
}

/* ---- failing -------------------------------------------------------------------------------- */

static uint32_t backoff_ms(const struct hf_subscription *sub)
{
    return hf__backoff_ms(&sub->env, sub->o.backoff_ms, sub->o.backoff_max_ms, sub->attempts);
}

static void stop_in_front(struct hf_subscription *sub, const struct hf_stored_event *event,
                          const struct hf_error *error)
{
    pthread_mutex_lock(&sub->mutex);
    sub->gave_up = true;
    sub->metrics.state = HF_SUBSCRIPTION_GAVE_UP;
    snprintf(sub->failure, sizeof(sub->failure),
             "subscription \"%.*s\" gave up at %.*s, version %llu: %.*s", HF_FMT(sub->name),
             HF_FMT(event->position), (unsigned long long)event->version, HF_FMT(error->message));
    pthread_mutex_unlock(&sub->mutex);
    hf_scope_reset(sub->why);
    (void)hf_scope_fail_because(sub->why, HF_STOPPED, error, "%s", sub->failure);
    hf__sub_notify(sub, HF_SUBSCRIPTION_STOPPED, event, error);
}

/* It was tried as often as it may be. */
static enum hf_status event_give_up(struct hf_scope *s, struct hf_subscription *sub,
                                    const struct hf_stored_event *event,
                                    const struct hf_error *error)
{
    struct sub_move move;

    assert(sub->attempts >= sub->o.max_attempts && error->status != HF_OK);
    if (sub->o.give_up != HF_GIVE_UP_PARK) {
        stop_in_front(sub, event, error);
        return HF_OK;
    }
    TRY(hf__sub_park(s, sub, id_str(&sub->token), event, error, sub->attempts, &move));
    hf__suspects_forgot(sub, move.forget);
    sub->written = move.to;
    events_pass(sub, 1, false);
    return HF_OK;
}

/* The function failed for the events at hand. (2) (3) */
static enum hf_status batch_failed(struct hf_scope *s, struct hf_subscription *sub, size_t count,
                                   enum hf_status status)
{
    const struct hf_stored_event *event = &sub->events[sub->at];
    struct hf_error error = *hf_scope_error(sub->work);

    assert(status != HF_OK && count > 0 && count <= sub->events_len - sub->at);
    if (hf__sub_stops(sub))
        return HF_OK;
    pthread_mutex_lock(&sub->mutex);
    sub->metrics.failures++;
    pthread_mutex_unlock(&sub->mutex);
    if (count > 1) {
        sub->narrow = (uint32_t)count;
        return HF_OK;
    }
    if (error.status == HF_OK) {
        error.status = status;
        error.message = HF_STR("the handler gave no reason");
    }
    sub->attempts++;
    TRY(hf__suspects_failed(s, sub));
    if (sub->attempts < sub->o.max_attempts) {
        sub->retry_us = hf__env_elapsed_us(&sub->env) + (int64_t)backoff_ms(sub) * 1000;
        hf__sub_notify(sub, HF_SUBSCRIPTION_FAILED, event, &error);
        return HF_OK;
    }
    return event_give_up(s, sub, event, &error);
}

/* ---- handling ------------------------------------------------------------------------------- */

/* Its payload has to be fetched yet. (3) */
static bool is_bare(const struct hf_subscription *sub, const struct hf_stored_event *event)
{
    return event->blob.len && !event->payload.ptr && !sub->o.no_payload;
}

/* (4) */
static bool is_careful(const struct hf_subscription *sub)
{
    struct checkpoint at = hf__sub_checkpoint_at(sub, &sub->events[sub->at]);

    return hf__suspects_careful(sub, &at);
}

static size_t batch_len(const struct hf_subscription *sub)
{
    size_t left = sub->events_len - sub->at;
    size_t most = left < sub->o.batch_max ? left : sub->o.batch_max;

    assert(left > 0 && most > 0);
    if (sub->o.each || sub->narrow || sub->attempts || is_careful(sub))
        return 1;
    for (size_t i = 0; i < most; i++)
        if (is_bare(sub, &sub->events[sub->at + i]))
            return i ? i : 1;
    return most;
}

/* *own as of batch_commit(). */
static enum hf_status payload_fetch(struct hf_scope *s, struct hf_subscription *sub,
                                    struct hf_stored_event *event, bool *own)
{
    enum hf_status status = hf__events_payloads(s, sub->store, event, 1);

    *own = status == HF_OK || status == HF_CORRUPT;
    if (status != HF_CORRUPT)
        return status;
    work_begin(sub);
    return hf_scope_fail_from(sub->work, status, s);
}

static enum hf_status handle_some(struct hf_scope *s, struct hf_subscription *sub, size_t count)
{
    const struct hf_stored_event *events = &sub->events[sub->at];
    struct checkpoint at = hf__sub_checkpoint_at(sub, events);
    struct hf_stored_event whole = *events;
    enum hf_status status = HF_OK;
    bool own = true, ended = false;
    struct hf_error error;

    assert(count > 0 && count <= sub->events_len - sub->at);
    assert(count == 1 || !is_careful(sub)); /* (4) */
    if (is_careful(sub))
        TRY(hf__suspects_begin(s, sub, &at, &error, &ended));
    if (ended) {
        sub->attempts = sub->crashes;
        return event_give_up(s, sub, events, &error);
    }
    if (is_bare(sub, events)) {
        assert(count == 1);
        status = payload_fetch(s, sub, &whole, &own);
        events = &whole;
    }
    if (status == HF_OK)
        status = sub->o.project ? batch_commit(s, sub, events, count, &own)
                                : handler_call(sub, events, count, false);
    if (status == HF_OK)
        events_pass(sub, count, true);
    else if (own)
        return batch_failed(s, sub, count, status);
    else if (status == HF_TX_CONFLICT)
        sub->retry_us = hf__env_elapsed_us(&sub->env) +
                        hf__backoff_jitter_ms(&sub->env, CONFLICT_MS) * INT64_C(1000);
    else
        return status;
    return HF_OK;
}

enum hf_status hf__sub_handle(struct hf_scope *s, struct hf_subscription *sub)
{
    uint32_t done = 0;

    while (sub->at < sub->events_len && done < sub->o.batch_max) {
        struct hf_scope_mark mark = hf_scope_mark(s);
        size_t count = batch_len(sub);

        if (hf__sub_stops(sub) || sub->gave_up || sub->retry_us > hf__env_elapsed_us(&sub->env))
            return HF_OK;
        if (!hf__sub_holds(sub))
            return hf_scope_fail(s, HF_LOST, "the lease of the subscription has ended");
        TRY(handle_some(s, sub, count));
        done += (uint32_t)count;
        if (!sub->o.project &&
            elapsed_ms(sub) - sub->written_us / 1000 >= (int64_t)sub->o.checkpoint_ms)
            TRY(hf__sub_checkpoint(s, sub));
        hf_scope_rewind(s, mark);
    }
    if (sub->at == sub->events_len && sub->reader && hf_events_reader_position(sub->reader).ptr)
        sub->handled = checkpoint_of(hf_events_reader_position(sub->reader));
    return HF_OK;
}

/* ---- once more ------------------------------------------------------------------------------ */

/* It was handled, in or before the transaction. */
static enum hf_status replay_end(struct hf_scope *s, struct hf_subscription *sub,
                                 struct hf_str position, struct hf_tx *tx)
{
    TRY(hf__sub_guard(s, sub->store, sub->pk, id_str(&sub->token), false, tx));
    TRY(hf__parked_del(s, sub->store, sub->pk, position, true, tx));
    return hf_tx_commit(s, tx, NULL);
}

/* It failed: back to the others, with the new reason. */
static enum hf_status replay_failed(struct hf_scope *s, struct hf_subscription *sub,
                                    const struct hf_stored_event *event,
                                    const struct hf_error *error)
{
    struct hf_tx *tx;

    pthread_mutex_lock(&sub->mutex);
    sub->metrics.failures++;
    pthread_mutex_unlock(&sub->mutex);
    TRY(hf_tx_new(s, sub->store->db, &tx));
    TRY(hf__parked_put(s, sub->store, sub->pk, event, error, 1, tx));
    TRY(replay_end(s, sub, event->position, tx));
    hf__sub_notify(sub, HF_SUBSCRIPTION_PARKED, event, error);
    return HF_OK;
}

/* Call the function for it; what is to be committed then is in a new transaction. */
static enum hf_status replay_call(struct hf_subscription *sub, const struct hf_stored_event *event,
                                  struct hf_tx **tx)
{
    if (!sub->o.project) {
        TRY(handler_call(sub, event, 1, true));
        return hf_tx_new(sub->work, sub->store->db, tx);
    }
    work_begin(sub);
    TRY(hf_tx_new(sub->work, sub->store->db, tx));
    return handler_project(sub, event, 1, *tx, true);
}

/* Was it canceled only as others wrote the same at the same time? */
static bool is_conflict(const struct hf_error *error)
{
    bool conflict = false;

    for (size_t i = 0; error->status == HF_TX_CANCELED && i < error->reasons_len; i++) {
        if (hf_str_equal(error->reasons[i].code, HF_STR("TransactionConflict")))
            conflict = true;
        else if (!hf_str_equal(error->reasons[i].code, HF_STR("None")))
            return false;
    }
    return conflict;
}

/* HF_TX_CANCELED, HF_TX_CONFLICT: it is as it was, to be looked at again later. */
static enum hf_status replay_one(struct hf_scope *s, struct hf_subscription *sub,
                                 const struct hf_parked *parked)
{
    struct hf_events_page page = {0};
    struct hf_tx *tx;
    enum hf_status status;

    status = hf_events_read(s, sub->store, parked->stream,
                            HF_OPTIONS(hf_events_read_options, .from = parked->version,
                                       .to = parked->version, .limit = 1,
                                       .no_payload = sub->o.no_payload),
                            &page);
    if (status == HF_DELETED || (status == HF_OK && !page.events_len)) {
        TRY(hf_tx_new(s, sub->store->db, &tx)); /* it is gone, there is nothing to handle */
        return replay_end(s, sub, parked->position, tx);
    }
    if (status == HF_CORRUPT || status == HF_UNSUPPORTED) { /* it is there, and cannot be read */
        struct hf_stored_event event = {.position = parked->position,
                                        .stream = parked->stream,
                                        .version = parked->version,
                                        .type = parked->type};
        struct hf_error error = *hf_scope_error(s);

        return replay_failed(s, sub, &event, &error);
    }
    TRY(status);
    if (sub->careful) {
        struct checkpoint at = checkpoint_of(parked->position);
        struct hf_error error;
        bool ended;

        TRY(hf__suspects_begin(s, sub, &at, &error, &ended));
        if (ended)
            return replay_failed(s, sub, page.events, &error);
    }
    status = replay_call(sub, page.events, &tx);
    if (status != HF_OK)
        return hf__sub_stops(sub) ? HF_OK
                                  : replay_failed(s, sub, page.events, hf_scope_error(sub->work));
    status = replay_end(sub->work, sub, parked->position, tx);
    if (sub->o.project && is_own_failure(status) && !is_conflict(hf_scope_error(sub->work)))
        return replay_failed(s, sub, page.events, hf_scope_error(sub->work));
    if (status != HF_OK)
        return hf_scope_fail_from(s, status, sub->work);
    pthread_mutex_lock(&sub->mutex);
    sub->metrics.replayed++;
    pthread_mutex_unlock(&sub->mutex);
    return HF_OK;
}

enum hf_status hf__sub_replay(struct hf_scope *s, struct hf_subscription *sub,
                              const struct hf_parked *replays, size_t len)
{
    for (size_t i = 0; i < len && !hf__sub_stops(sub); i++) {
        enum hf_status status;

        if (!hf__sub_holds(sub))
            return hf_scope_fail(s, HF_LOST, "the lease of the subscription has ended");
        status = replay_one(s, sub, &replays[i]);
        if (status == HF_OK)
            status = hf__suspects_failed(s, sub);
        if (status == HF_TX_CANCELED || status == HF_TX_CONFLICT) /* others were there, too */
            break;
        TRY(status);
    }
    return HF_OK;
}
