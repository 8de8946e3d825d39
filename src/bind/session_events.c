/*
 * bind/session_events.c: subscriptions of an event store, and consumers of its groups, as sessions.
 */
#include <holdfast/subscribe.h>

#include "bind/events.h"
#include "bind/session.h"

static const char *const starts[] = {NULL, "first", "end", "after", "time", NULL};

static struct hf_str events_members(struct hf_scope *s, const struct hf_stored_event *events,
                                    size_t len)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, HF_STR("\"kind\":\"events\",\"events\":["));
    for (size_t i = 0; i < len; i++) {
        if (i)
            hf__buf_put_byte(&buf, ',');
        hf__bind_write(&buf, &hf__bind_stored_event, &events[i]);
    }
    hf__buf_put_byte(&buf, ']');
    return buf.failed ? (struct hf_str){0} : hf_str_of((const char *)buf.ptr, buf.len);
}

static enum hf_status hand_over(struct hf_scope *s, const struct hf_stored_event *events,
                                size_t len, void *user)
{
    return hf__session_handle(s, user, events_members(s, events, len), NULL);
}

static enum hf_status hand_over_one(struct hf_scope *s, const struct hf_stored_event *event,
                                    void *user)
{
    return hf__session_handle(s, user, events_members(s, event, 1), NULL);
}

/* ---- subscriptions -------------------------------------------------------------------------- */

static void close_subscription(void *object)
{
    hf_subscription_close(object);
}

static enum hf_status stop_subscription(struct hf_scope *s, void *object)
{
    return hf_subscription_stop(s, object);
}

static const struct session_kind subscription_session = {.name = "subscription",
                                                         .close = close_subscription,
                                                         .stop = stop_subscription};

static void notice_subscription(enum hf_subscription_event what,
                                const struct hf_stored_event *event, const struct hf_error *error,
                                void *user)
{
    static const char *const types[] = {NULL,      "failed", "parked", "stopped",
                                        "trouble", "taken",  "lost",   "stuck"};

    (void)event;
    if ((size_t)what < ARRAY_LEN(types) && types[what])
        hf__session_notice_error(user, types[what], error);
}

struct subscribe_args {
    struct hf_str table, name;
    bool park;
    struct hf_subscribe_options o;
};

#define T subscribe_args
ARGUMENTS(events_subscribe, TEXT("table", table), TEXT("name", name, REQUIRED),
          TEXT("domain", o.domain), TEXT("stream_domain", o.stream.domain),
          TEXT("stream_id", o.stream.id), TEXT("type", o.type), BOOL("archived", o.archived),
          CHOICE("start", o.start, starts), TEXT("after", o.after), I64("from_us", o.from_us),
          U32("batch_max", o.batch_max), U32("checkpoint_ms", o.checkpoint_ms),
          U32("poll_ms", o.poll_ms), U32("max_attempts", o.max_attempts),
          U32("backoff_ms", o.backoff_ms), U32("backoff_max_ms", o.backoff_max_ms),
          BOOL("park", park), U32("timeout_ms", o.timeout_ms), U32("lease_ms", o.lease_ms),
          U32("settle_ms", o.settle_ms), TEXT("owner", o.owner), BOOL("no_payload", o.no_payload),
          U32("stuck_ms", o.stuck_ms));
#undef T
#define T session_result
RESULT(events_subscribe, U64("session", session));
RESULT(events_consume, U64("session", session));
#undef T

static enum hf_status open_subscription(struct hf_scope *s, struct bind_session *session,
                                        struct hf_events *store, struct subscribe_args *args,
                                        struct hf_subscription **subscription)
{
    enum hf_status status;

    args->o.size = sizeof(args->o);
    args->o.batch = hand_over;
    args->o.give_up = args->park ? HF_GIVE_UP_PARK : HF_GIVE_UP_STOP;
    args->o.on_notice = notice_subscription;
    args->o.user = session;
    if (!args->o.owner.ptr)
        args->o.owner = hf__bind_owner(hf__session_bind(session));
    if (!args->o.batch_max)
        args->o.batch_max = 1;
    TRY(hf_subscribe(s, store, args->name, &args->o, subscription));
    status = hf_subscription_start(s, *subscription);
    if (status != HF_OK)
        hf_subscription_close(*subscription);
    return status;
}

BIND_FUNCTION(events_subscribe)
{
    struct session_result *result = result_out;
    struct hf_subscription *subscription;
    struct subscribe_args *args = args_in;
    struct bind_session *session;
    struct hf_events *store;
    enum hf_status status;

    TRY(hf__bind_events(s, bind, args->table, true, &store));
    TRY(hf__session_new(s, bind, &subscription_session, &session));
    status = open_subscription(s, session, store, args, &subscription);
    if (status != HF_OK) {
        hf__session_drop(session);
        return status;
    }
    hf__session_begin(session, subscription, &result->session);
    return HF_OK;
}

static const char *const subscription_states[] = {NULL,   "idle",    "waiting", "catching_up",
                                                  "live", "gave_up", NULL};

#define T session_args
ARGUMENTS(events_subscription_metrics, U64("session", session, REQUIRED));
#undef T
#define T hf_subscription_metrics
RESULT(events_subscription_metrics, CHOICE("state", state, subscription_states),
       U64("handled", handled), U64("failures", failures), U64("parked", parked),
       U64("replayed", replayed), U64("checkpoints", checkpoints), U64("lost", lost),
       U64("fence", fence), I64("lag_ms", lag_ms), U64("stuck", stuck),
       U64("stuck_total", stuck_total));
#undef T

BIND_FUNCTION(events_subscription_metrics)
{
    const struct session_args *args = args_in;
    struct bind_session *session;
    void *object;

    TRY(hf__session_find(s, bind, args->session, &subscription_session, &session, &object));
    hf_subscription_metrics(object, result_out);
    hf__session_give(session);
    return HF_OK;
}

/* ---- groups --------------------------------------------------------------------------------- */

static void close_group(void *object)
{
    hf_group_close(object);
}

static enum hf_status stop_group(struct hf_scope *s, void *object)
{
    return hf_group_stop(s, object);
}

static const struct session_kind group_session = {.name = "group",
                                                  .close = close_group,
                                                  .stop = stop_group};

struct consume_args {
    struct hf_str table, name;
    struct hf_group_options o;
};

#define T consume_args
ARGUMENTS(events_consume, TEXT("table", table), TEXT("name", name, REQUIRED),
          BOOL("ordered", o.ordered), TEXT("group_table", o.table), U32("buckets", o.buckets),
          TEXT("domain", o.domain), TEXT("stream_domain", o.stream.domain),
          TEXT("stream_id", o.stream.id), TEXT("type", o.type), CHOICE("start", o.start, starts),
          TEXT("after", o.after), I64("from_us", o.from_us), U32("workers", o.workers),
          U32("max_attempts", o.max_attempts), U32("backoff_ms", o.backoff_ms),
          U32("backoff_max_ms", o.backoff_max_ms), U32("timeout_ms", o.timeout_ms),
          U32("lease_ms", o.lease_ms), U32("poll_ms", o.poll_ms), TEXT("owner", o.owner),
          BOOL("no_feed", o.no_feed), U32("stuck_ms", o.stuck_ms));
#undef T

static enum hf_status open_group(struct hf_scope *s, struct bind_session *session,
                                 struct hf_events *store, struct consume_args *args,
                                 struct hf_group **group)
{
    enum hf_status status;

    args->o.size = sizeof(args->o);
    args->o.handle = hand_over_one;
    args->o.user = session;
    if (!args->o.owner.ptr)
        args->o.owner = hf__bind_owner(hf__session_bind(session));
    TRY(hf_group_open(s, store, args->name, &args->o, group));
    status = hf_group_start(s, *group);
    if (status != HF_OK)
        hf_group_close(*group);
    return status;
}

BIND_FUNCTION(events_consume)
{
    struct session_result *result = result_out;
    struct consume_args *args = args_in;
    struct bind_session *session;
    struct hf_events *store;
    struct hf_group *group;
    enum hf_status status;

    TRY(hf__bind_events(s, bind, args->table, true, &store));
    TRY(hf__session_new(s, bind, &group_session, &session));
    status = open_group(s, session, store, args, &group);
    if (status != HF_OK) {
        hf__session_drop(session);
        return status;
    }
    hf__session_begin(session, group, &result->session);
    return HF_OK;
}
