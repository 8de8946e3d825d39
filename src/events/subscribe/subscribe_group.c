/*
 * events/subscribe/subscribe_group.c: consumers that share the events of a store.
 *
 * A group is an outbox (outbox.h) of references: which stream, which version. A projection feeds
 * it: emitting references and moving its checkpoint is one transaction, so each event is in the
 * outbox once. Consumers take them from there: a relay (relay.h) calls the handler, or
 * hf_group_fetch() claims them. What was tried too often is in the outbox as failed: parked.
 *
 *  (1) An event is read again when it is handed over: the outbox has no payloads, and none is
 *      fetched to feed it. One that is gone by then (truncated, deleted) is left out;
 *      hf_group_fetch() says so. One that is there and cannot be read (its payload is gone) has
 *      failed, and no other one with it.
 *  (2) In an ordered group the key of a reference is its stream's, and the relay delivers one key
 *      in order. Streams whose keys are too long for an outbox share some: they wait for each
 *      other.
 */
#include "events/store/events.h"

#include <holdfast/relay.h>
#include <holdfast/sink.h>
#include <holdfast/subscribe.h>

enum {
    WORKERS = 4,
    FEED_BATCH = 50,
    MAX_ATTEMPTS = 10,
    BACKOFF_MS = 1000,
    BACKOFF_MAX_MS = 30000,
    TIMEOUT_MS = 30000,
    LEASE_MS = 30000,
    POLL_MS = 1000,
    FETCH = 10,
    RELEASE_MS = 2000, /* for claims that go back, when a deadline has passed */
    COUNT_MAX = 10000
};

struct hf_group {
    struct hf_env env;
    struct hf_events *store;
    struct hf_outbox *outbox;
    struct hf_subscription *feeder; /* NULL: others feed it */
    struct hf_sink *sink;           /* NULL: there is no handler */
    struct hf_relay *relay;
    struct hf_scope *kept;
    struct hf_str name;
    struct hf_group_options o;
    bool started;
};

/* ---- references ----------------------------------------------------------------------------- */

/* (2) */
static struct hf_str order_key(struct hf_scope *s, struct hf_event_stream_key stream)
{
    struct hf_str key = PATTERN_KEY(s, stream.domain, stream.id.ptr ? stream.id : HF_STR(""));

    if (key.len <= HF_EVENT_TEXT_MAX)
        return key;
    return hf_scope_format(s, "%016llx", (unsigned long long)fnv_add(FNV_BEGIN, key.ptr, key.len));
}

static enum hf_status feed_event(struct hf_scope *s, struct hf_tx *tx,
                                 const struct hf_stored_event *event, void *user)
{
    struct hf_group *group = user;
    struct hf_event reference = {
        .type = event->type,
        .time_us = event->time_us,
        .content_type = event->content_type,
        .headers = HF_ITEM(s, HF_S("d", event->stream.domain),
                           HF_S("i", event->stream.id.ptr ? event->stream.id : HF_STR("")),
                           HF_N("v", event->version), HF_S("p", event->position)),
    };

    assert(event->version && event->stream.domain.len);
    if (group->o.ordered) {
        reference.key = order_key(s, event->stream);
        reference.sequence = event->version;
    }
    TRY(hf_scope_built(s));
    return hf_outbox_emit_into(s, group->outbox, tx, &reference, 1, NULL);
}

/* What a reference says, without asking the store. */
static struct hf_stored_event reference_view(const struct hf_event *reference)
{
    int64_t version = 0;

    (void)hf_value_i64(hf_item_get(reference->headers, HF_STR("v")), &version);
    return (struct hf_stored_event){
        .stream = {.domain = hf_value_str(hf_item_get(reference->headers, HF_STR("d"))),
                   .id = hf_value_str(hf_item_get(reference->headers, HF_STR("i")))},
        .version = (uint64_t)version,
        .type = reference->type,
    };
}

/* The event itself; HF_NOT_FOUND: it is gone, and `event` is what is known of it. (1) */
static enum hf_status reference_load(struct hf_scope *s, struct hf_group *group,
                                     const struct hf_event *reference,
                                     struct hf_stored_event *event)
{
    struct hf_events_page page = {0};
    enum hf_status status;

    *event = reference_view(reference);
    if (!event->stream.domain.len || !event->version)
        return hf_scope_fail(s, HF_CORRUPT,
                             "an event in the outbox of group \"%.*s\" is not a reference",
                             HF_FMT(group->name));
    status = hf_events_read(s, group->store, event->stream,
                            HF_OPTIONS(hf_events_read_options, .from = event->version,
                                       .to = event->version, .limit = 1),
                            &page);
    if (status != HF_OK && status != HF_DELETED)
        return status;
    if (status == HF_DELETED || !page.events_len)
        return hf_scope_fail(s, HF_NOT_FOUND,
                             "version %llu of stream \"%.*s/%.*s\" was truncated or deleted",
                             (unsigned long long)event->version, HF_FMT(event->stream.domain),
                             HF_FMT(event->stream.id));
    *event = page.events[0];
    return HF_OK;
}

/* ---- the handler ---------------------------------------------------------------------------- */

static enum hf_status handle_one(struct hf_scope *s, struct hf_group *group,
                                 const struct hf_event *reference)
{
    struct hf_stored_event event;
    enum hf_status status = reference_load(s, group, reference, &event);

    if (status == HF_NOT_FOUND)
        return HF_OK; /* there is nothing to handle */
    TRY(status);
    return group->o.handle(s, &event, group->o.user);
}

static enum hf_status group_send(struct hf_scope *s, void *user, struct hf_delivery *deliveries,
                                 size_t len)
{
    struct hf_group *group = user;

    for (size_t i = 0; i < len; i++) {
        deliveries[i].status = handle_one(s, group, &deliveries[i].event->event);
        if (deliveries[i].status != HF_OK)
            deliveries[i].error = hf_scope_copy(s, hf_scope_error(s)->message);
    }
    return HF_OK;
}

static void report_stuck(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    struct hf_group *group = user;
    struct hf_stored_event stored = reference_view(&event->event);

    if (group->o.on_stuck)
        group->o.on_stuck(&stored, for_ms, group->o.user);
}

/* ---- opening -------------------------------------------------------------------------------- */

void hf_group_close(struct hf_group *group)
{
    struct hf_env env;

    if (!group)
        return;
    env = group->env;
    hf_relay_close(group->relay);
    hf_sink_close(group->sink);
    hf_subscription_close(group->feeder);
    hf_outbox_close(group->outbox);
    hf_scope_free(group->kept);
    hf__env_free(&env, group, sizeof(*group));
}

static void set_defaults(struct hf_group_options *o)
{
    if (!o->workers)
        o->workers = WORKERS;
    if (!o->max_attempts)
        o->max_attempts = MAX_ATTEMPTS;
    if (!o->backoff_ms)
        o->backoff_ms = BACKOFF_MS;
    if (!o->backoff_max_ms)
        o->backoff_max_ms = BACKOFF_MAX_MS;
    if (!o->timeout_ms)
        o->timeout_ms = TIMEOUT_MS;
    if (!o->lease_ms)
        o->lease_ms = LEASE_MS;
    if (!o->poll_ms)
        o->poll_ms = POLL_MS;
}

static enum hf_status open_feeder(struct hf_scope *s, struct hf_group *group, struct hf_str name)
{
    const struct hf_group_options *o = &group->o;
    struct hf_subscribe_options feeder = {.size = sizeof(feeder),
                                          .project = feed_event,
                                          .stream = o->stream,
                                          .domain = o->domain,
                                          .type = o->type,
                                          .start = o->start,
                                          .after = o->after,
                                          .from_us = o->from_us,
                                          .batch_max = FEED_BATCH,
                                          .poll_ms = o->poll_ms,
                                          .max_attempts = UINT32_MAX,
                                          .lease_ms = o->lease_ms,
                                          .owner = o->owner,
                                          .no_threads = o->no_threads,
                                          .no_payload = true, /* (1) */
                                          .user = group};

    if (o->no_feed)
        return HF_OK;
    return hf_subscribe(s, group->store, name, &feeder, &group->feeder);
}

static enum hf_status open_relay(struct hf_scope *s, struct hf_group *group)
{
    const struct hf_group_options *o = &group->o;
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "group",
                                    .batch_max = 1,
                                    .send = group_send};
    struct hf_relay_options relay = {.size = sizeof(relay),
                                     .workers = o->workers,
                                     .poll_ms = o->poll_ms,
                                     .max_attempts = o->max_attempts,
                                     .backoff_ms = o->backoff_ms,
                                     .backoff_max_ms = o->backoff_max_ms,
                                     .timeout_ms = o->timeout_ms,
                                     .lease_ms = o->lease_ms,
                                     .owner = o->owner,
                                     .competing = !o->ordered,
                                     .no_threads = o->no_threads,
                                     .stuck_ms = o->stuck_ms,
                                     .stuck = o->stuck,
                                     .on_stuck = report_stuck,
                                     .user = group};

    assert(group->outbox && !group->relay);
    if (!o->handle)
        return HF_OK;
    TRY(hf_sink_new(s, &ops, group, &group->sink));
    return hf_relay_open(s, group->outbox, group->sink, &relay, &group->relay);
}

static enum hf_status open_parts(struct hf_scope *s, struct hf_group *group, struct hf_str name)
{
    struct hf_str table = group->o.table;

    group->name = hf_scope_copy(group->kept, name);
    group->o.owner = hf__pattern_owner(group->kept, group->o.owner);
    if (!table.len)
        table = hf_scope_format(s, "%.*s-%.*s", HF_FMT(group->store->table), HF_FMT(name));
    TRY(hf_scope_built(group->kept));
    TRY(hf_scope_built(s));
    TRY(hf_outbox_open(s, group->store->db,
                       HF_OPTIONS(hf_outbox_options, .table = table, .buckets = group->o.buckets,
                                  .no_create = group->o.no_create),
                       &group->outbox));
    TRY(open_feeder(s, group, name));
    return open_relay(s, group);
}

enum hf_status hf_group_open(struct hf_scope *s, struct hf_events *store, struct hf_str name,
                             const struct hf_group_options *options, struct hf_group **out)
{
    struct hf_group *group;
    enum hf_status status = HF_NOMEM;

    *out = NULL;
    if (!name.len || name.len > HF_SUBSCRIPTION_NAME_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_SUBSCRIPTION_NAME_MAX, name.len),
                                   "the name of a group has 1 to %d bytes, not %zu",
                                   HF_SUBSCRIPTION_NAME_MAX, name.len);
    group = hf__env_zalloc(&store->env, sizeof(*group));
    if (!group)
        return hf_scope_fail(s, HF_NOMEM, "no memory for a group");
    group->env = store->env;
    group->store = store;
    OPTIONS_COPY(&group->o, options);
    set_defaults(&group->o);
    group->kept = hf_scope_new(&store->env);
    if (group->kept)
        status = open_parts(s, group, name);
    else
        (void)hf_scope_fail(s, HF_NOMEM, "no memory for a group");
    if (status != HF_OK) {
        hf_group_close(group);
        return status;
    }
    *out = group;
    return HF_OK;
}

/* ---- running -------------------------------------------------------------------------------- */

enum hf_status hf_group_start(struct hf_scope *s, struct hf_group *group)
{
    enum hf_status status;

    if (group->started)
        return hf_scope_fail(s, HF_IN_USE, "group \"%.*s\" is already running",
                             HF_FMT(group->name));
    if (group->relay)
        TRY(hf_relay_start(s, group->relay));
    status = group->feeder ? hf_subscription_start(s, group->feeder) : HF_OK;
    if (status != HF_OK && group->relay) {
        struct hf_str why = hf_scope_copy(s, hf_scope_error(s)->message);
        enum hf_status stopped = hf_relay_stop(s, group->relay);

        (void)stopped;
        return hf_scope_fail(s, status, "%.*s", HF_FMT(why));
    }
    group->started = status == HF_OK;
    return status;
}

enum hf_status hf_group_stop(struct hf_scope *s, struct hf_group *group)
{
    enum hf_status fed = HF_OK, handled = HF_OK;

    if (group->relay)
        handled = hf_relay_stop(s, group->relay);
    if (handled == HF_INVALID) /* by a handler: nothing is stopped */
        return handled;
    if (group->feeder)
        fed = hf_subscription_stop(s, group->feeder);
    group->started = false;
    return handled != HF_OK ? handled : fed;
}

enum hf_status hf_group_step(struct hf_scope *s, struct hf_group *group, uint32_t *wait_ms)
{
    uint32_t other_ms;
    enum hf_status status;

    call_begins(s);
    *wait_ms = group->o.poll_ms;
    if (group->feeder) {
        status = hf_subscription_step(s, group->feeder, wait_ms);
        if (status != HF_OK && status != HF_LOCKED)
            return status;
    }
    if (!group->relay)
        return HF_OK;
    TRY(hf_relay_step(s, group->relay, &other_ms));
    if (other_ms < *wait_ms)
        *wait_ms = other_ms;
    return HF_OK;
}

/* ---- one by one ----------------------------------------------------------------------------- */

static struct hf_claim_options claim_options(const struct hf_group *group, uint32_t limit)
{
    return (struct hf_claim_options){.size = sizeof(struct hf_claim_options),
                                     .limit = limit,
                                     .lease_ms = group->o.lease_ms,
                                     .owner = group->o.owner,
                                     .max_attempts = group->o.max_attempts,
                                     .backoff_ms = group->o.backoff_ms,
                                     .backoff_max_ms = group->o.backoff_max_ms};
}

/* Give claims back; the failure in `s` stays as it is. What cannot be given back ends by itself. */
static void release_all(struct hf_scope *s, struct hf_group *group,
                        const struct hf_claimed_event *claims, size_t len)
{
    struct hf_scope *own = hf_scope_new(hf_scope_env(s));

    if (!own)
        return;
    hf_scope_timeout_ms(own, RELEASE_MS);
    for (size_t i = 0; i < len; i++)
        (void)!hf_outbox_release(own, group->outbox, &claims[i]);
    hf_scope_free(own);
}

/* Read what was claimed. *out is false when it cannot be read, and was failed for that. (1) */
static enum hf_status take_one(struct hf_scope *s, struct hf_group *group,
                               const struct hf_claimed_event *claim, struct hf_group_event *event,
                               bool *out)
{
    struct hf_claim_options options = claim_options(group, 1);
    struct hf_error error;
    enum hf_status status;

    *event = (struct hf_group_event){.attempts = claim->event.attempts, .claim = *claim};
    status = reference_load(s, group, &claim->event.event, &event->event);
    *out = status == HF_OK || status == HF_NOT_FOUND;
    if (status != HF_CORRUPT && status != HF_UNSUPPORTED)
        return *out ? HF_OK : status;
    error = *hf_scope_error(s);
    status = hf_outbox_fail(s, group->outbox, claim, &error, false, &options);
    return status == HF_LOST ? HF_OK : status;
}

enum hf_status hf_group_fetch(struct hf_scope *s, struct hf_group *group, uint32_t limit,
                              struct hf_group_list *list)
{
    struct hf_claim_options options = claim_options(group, limit ? limit : FETCH);
    struct hf_claim_list claimed;
    struct hf_group_event *events;
    enum hf_status built;
    size_t len = 0;

    *list = (struct hf_group_list){0};
    if (group->o.ordered)
        return hf_scope_fail(
            s, HF_INVALID,
            "hf_group_fetch() does not work on an ordered group: its events go to the handler");
    TRY(hf_outbox_claim(s, group->outbox, &options, &claimed));
    events = hf_scope_alloc(s, (claimed.events_len + 1) * sizeof(*events));
    built = hf_scope_built(s);
    if (built != HF_OK) {
        release_all(s, group, claimed.events, claimed.events_len);
        return built;
    }
    for (size_t i = 0; i < claimed.events_len; i++) {
        bool taken;
        enum hf_status status = take_one(s, group, &claimed.events[i], &events[len], &taken);

        if (status != HF_OK) {
            release_all(s, group, claimed.events, claimed.events_len);
            return status;
        }
        len += taken;
    }
    assert(len <= claimed.events_len);
    list->events = events;
    list->events_len = len;
    return hf_scope_ok(s);
}

enum hf_status hf_group_ack(struct hf_scope *s, struct hf_group *group,
                            const struct hf_group_event *event)
{
    return hf_outbox_published(s, group->outbox, &event->claim);
}

static enum hf_status claim_fail(struct hf_scope *s, struct hf_group *group,
                                 const struct hf_group_event *event, struct hf_str reason,
                                 bool for_good)
{
    struct hf_claim_options options = claim_options(group, 1);
    const struct hf_error error = {.status = HF_INTERNAL,
                                   .message = reason.ptr ? reason : HF_STR("not handled")};

    return hf_outbox_fail(s, group->outbox, &event->claim, &error, for_good, &options);
}

enum hf_status hf_group_nack(struct hf_scope *s, struct hf_group *group,
                             const struct hf_group_event *event, struct hf_str reason)
{
    return claim_fail(s, group, event, reason, false);
}

enum hf_status hf_group_park(struct hf_scope *s, struct hf_group *group,
                             const struct hf_group_event *event, struct hf_str reason)
{
    return claim_fail(s, group, event, reason, true);
}

enum hf_status hf_group_extend(struct hf_scope *s, struct hf_group *group,
                               const struct hf_group_event *event)
{
    return hf_outbox_extend(s, group->outbox, &event->claim, group->o.lease_ms);
}

/* ---- parked ones ---------------------------------------------------------------------------- */

enum hf_status hf_group_parked(struct hf_scope *s, struct hf_group *group, struct hf_str after,
                               uint32_t limit, struct hf_parked_list *list)
{
    struct hf_event_list failed;
    struct hf_parked *parked;

    *list = (struct hf_parked_list){0};
    TRY(hf_outbox_failed(s, group->outbox,
                         HF_OPTIONS(hf_event_list_options, .limit = limit, .after = after,
                                    .oldest_first = true),
                         &failed));
    parked = hf_scope_alloc(s, (failed.events_len + 1) * sizeof(*parked));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < failed.events_len; i++) {
        const struct hf_outbox_event *event = &failed.events[i];
        struct hf_stored_event about = reference_view(&event->event);

        parked[i] = (struct hf_parked){.position = event->ref,
                                       .stream = about.stream,
                                       .version = about.version,
                                       .type = about.type,
                                       .error = event->error,
                                       .error_text = event->error_text,
                                       .attempts = event->attempts,
                                       .parked_us = event->ended_us};
    }
    *list = (struct hf_parked_list){.events = parked,
                                    .events_len = failed.events_len,
                                    .next = failed.next};
    return HF_OK;
}

enum hf_status hf_group_replay(struct hf_scope *s, struct hf_group *group,
                               const struct hf_str *refs, size_t len, uint64_t *done)
{
    return refs ? hf_outbox_retry(s, group->outbox, refs, len, done)
                : hf_outbox_retry_all(s, group->outbox, NULL, done);
}

enum hf_status hf_group_discard(struct hf_scope *s, struct hf_group *group,
                                const struct hf_str *refs, size_t len, uint64_t *done)
{
    return refs ? hf_outbox_discard(s, group->outbox, refs, len, done)
                : hf_outbox_discard_all(s, group->outbox, NULL, done);
}

enum hf_status hf_group_metrics(struct hf_scope *s, struct hf_group *group,
                                struct hf_group_metrics *metrics)
{
    struct hf_relay_metrics relay;
    struct hf_outbox_stats stats;

    *metrics = (struct hf_group_metrics){.pending = 0};
    if (group->feeder)
        hf_subscription_metrics(group->feeder, &metrics->feeder);
    TRY(hf_outbox_stats(s, group->outbox, COUNT_MAX, &stats));
    metrics->pending = stats.pending;
    metrics->parked = stats.failed;
    metrics->oldest_ms = stats.oldest_due_ms;
    if (group->relay) {
        hf_relay_metrics(group->relay, &relay);
        metrics->stuck = relay.stuck;
        metrics->stuck_total = relay.stuck_total;
    }
    return HF_OK;
}
