/*
 * bind/session_relay.c: relays as sessions: to a sink by URL, or to whoever asks session.next for
 * deliveries. A bus is such a relay: the language chooses the function by the type of the event.
 */
#include <holdfast/relay.h>
#include <holdfast/sink.h>

#include "bind/outbox.h"
#include "bind/session.h"

struct bound_relay {
    struct hf_env env;
    struct hf_relay *relay;
    struct hf_sink *sink;
};

static void close_relay(void *object)
{
    struct bound_relay *bound = object;
    struct hf_env env = bound->env;

    hf_relay_close(bound->relay);
    hf_sink_close(bound->sink);
    hf__env_free(&env, bound, sizeof(*bound));
}

static enum hf_status stop_relay(struct hf_scope *s, void *object)
{
    return hf_relay_stop(s, ((struct bound_relay *)object)->relay);
}

static const struct session_kind relay_session = {.name = "relay",
                                                  .close = close_relay,
                                                  .stop = stop_relay};

/* ---- a sink that hands over ----------------------------------------------------------------- */

static struct hf_str batch_members(struct hf_scope *s, const struct hf_delivery *deliveries,
                                   size_t len)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_str(&buf, HF_STR("\"kind\":\"outbox\",\"events\":["));
    for (size_t i = 0; i < len; i++) {
        if (i)
            hf__buf_put_byte(&buf, ',');
        hf__bind_write(&buf, &hf__bind_outbox_event, deliveries[i].event);
    }
    hf__buf_put_byte(&buf, ']');
    return buf.failed ? (struct hf_str){0} : hf_str_of((const char *)buf.ptr, buf.len);
}

static void set_outcome(struct hf_delivery *delivery, bool failed, bool permanent,
                        struct hf_str message)
{
    delivery->status = failed ? HF_INTERNAL : HF_OK;
    delivery->for_good = failed && permanent;
    delivery->error = failed && !message.len ? HF_STR("the handler failed") : message;
}

static enum hf_status send_batch(struct hf_scope *s, void *sink, struct hf_delivery *deliveries,
                                 size_t len)
{
    struct session_outcome outcome;
    enum hf_status status =
        hf__session_deliver(s, sink, batch_members(s, deliveries, len), NULL, &outcome);

    if (status == HF_TIMEOUT && outcome.handed) { /* the handler hangs, which is no outage */
        for (size_t i = 0; i < len; i++)
            set_outcome(&deliveries[i], true, false, HF_STR("the handler did not end in time"));
        return hf_scope_ok(s);
    }
    TRY(status);
    if (outcome.failed && outcome.unreachable)
        return hf_scope_fail(s, HF_IO, "%.*s",
                             HF_FMT(outcome.message.len ? outcome.message
                                                        : HF_STR("nothing can be delivered now")));
    for (size_t i = 0; i < len; i++)
        set_outcome(&deliveries[i], outcome.failed, outcome.permanent, outcome.message);
    for (size_t i = 0; i < outcome.failures_len; i++)
        if (outcome.failures[i].index < len)
            set_outcome(&deliveries[outcome.failures[i].index], true, outcome.failures[i].permanent,
                        outcome.failures[i].message);
    return hf_scope_ok(s);
}

/* ---- what it reports ------------------------------------------------------------------------ */

static void notice_trouble(const struct hf_error *error, void *user)
{
    hf__session_notice_error(user, "trouble", error);
}

static void notice_ended(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                         const struct hf_error *error, void *user)
{
    struct bind_session *session = user;
    struct hf_scope *s;
    struct hf__buf buf;

    if (outcome != HF_RELAY_GIVEN_UP)
        return;
    s = hf_scope_new(hf__bind_env(hf__session_bind(session)));
    buf = (struct hf__buf){.scope = s};
    if (s) {
        hf__buf_put_str(&buf, HF_STR(",\"id\":"));
        hf__bind_write_bytes(&buf, hf_bytes_of(event->event.id.ptr, event->event.id.len));
        if (error && error->status != HF_OK) {
            hf__buf_put_str(&buf, HF_STR(",\"error\":"));
            hf__bind_write_error(&buf, error);
        }
    }
    hf__session_notice(session, "given_up",
                       s && !buf.failed ? hf_str_of((const char *)buf.ptr, buf.len)
                                        : (struct hf_str){0});
    hf_scope_free(s);
}

/* ---- starting ------------------------------------------------------------------------------- */

struct relay_start_args {
    struct hf_str table, sink;
    uint32_t batch_events;
    struct hf_relay_options o;
};

static const char *const relay_presets[] = {NULL, "balanced", "throughput", "reliability", NULL};

#define T relay_start_args
ARGUMENTS(relay_start, TEXT("table", table), TEXT("sink", sink),
          CHOICE("preset", o.preset, relay_presets), U32("workers", o.workers),
          U32("batch", o.batch), U32("batch_max", o.batch_max), U32("poll_ms", o.poll_ms),
          U32("max_attempts", o.max_attempts), U32("backoff_ms", o.backoff_ms),
          U32("backoff_max_ms", o.backoff_max_ms), U32("timeout_ms", o.timeout_ms),
          U32("lease_ms", o.lease_ms), U32("heartbeat_ms", o.heartbeat_ms),
          U32("linger_ms", o.linger_ms), U32("rate", o.rate), U32("breaker_ms", o.breaker_ms),
          TEXT("owner", o.owner), BOOL("failed_blocks", o.failed_blocks),
          BOOL("competing", o.competing), TEXT("only_type", o.only_type),
          TEXT("only_key", o.only_key), TEXT("only_tenant", o.only_tenant),
          BOOL("wake_by_stream", o.wake_by_stream), U32("wake_ms", o.wake_ms),
          U32("max_crashes", o.max_crashes), U32("stuck_ms", o.stuck_ms));
#undef T
#define T session_result
RESULT(relay_start, U64("session", session));
#undef T

static enum hf_status open_sink(struct hf_scope *s, struct bind_session *session,
                                const struct relay_start_args *args, struct hf_sink **sink)
{
    if (args->sink.ptr)
        return hf_sink_open(s, args->sink, sink);
    return hf_sink_new(s,
                       HF_OPTIONS(hf_sink_ops, .name = "session",
                                  .batch_max = args->o.batch_max ? args->o.batch_max : 1,
                                  .send = send_batch),
                       session, sink);
}

static enum hf_status open_relay(struct hf_scope *s, struct bind_session *session,
                                 struct relay_start_args *args, struct hf_outbox *outbox,
                                 struct bound_relay *bound)
{
    TRY(open_sink(s, session, args, &bound->sink));
    args->o.size = sizeof(args->o);
    if (!args->o.owner.ptr)
        args->o.owner = hf__bind_owner(hf__session_bind(session));
    args->o.on_error = notice_trouble;
    args->o.on_ended = notice_ended;
    args->o.user = session;
    TRY(hf_relay_open(s, outbox, bound->sink, &args->o, &bound->relay));
    return hf_relay_start(s, bound->relay);
}

BIND_FUNCTION(relay_start)
{
    struct session_result *result = result_out;
    struct relay_start_args *args = args_in;
    struct bind_session *session;
    struct bound_relay *bound;
    struct hf_outbox *outbox;
    enum hf_status status;

    TRY(hf__bind_outbox(s, bind, args->table, true, &outbox));
    TRY(hf__session_new(s, bind, &relay_session, &session));
    bound = hf__env_zalloc(hf__bind_env(bind), sizeof(*bound));
    if (!bound) {
        hf__session_drop(session);
        return hf__fail_nomem(s);
    }
    bound->env = *hf__bind_env(bind);
    status = open_relay(s, session, args, outbox, bound);
    if (status != HF_OK) {
        close_relay(bound);
        hf__session_drop(session);
        return status;
    }
    hf__session_begin(session, bound, &result->session);
    return HF_OK;
}

/* ---- while it runs -------------------------------------------------------------------------- */

#define T session_args
MEMBERS(relay_session_part, U64("session", session, REQUIRED));
ARGUMENTS_AS(relay_pause, relay_session_part);
ARGUMENTS_AS(relay_resume, relay_session_part);
ARGUMENTS_AS(relay_metrics, relay_session_part);
#undef T
NO_RESULT(relay_pause);
NO_RESULT(relay_resume);
#define T hf_relay_metrics
RESULT(relay_metrics, U64("delivered", delivered), U64("retried", retried),
       U64("given_up", given_up), U64("unsure", unsure), U64("batches", batches),
       U64("outages", outages), U64("reads", reads), U64("writes", writes), U64("refused", refused),
       U64("taken_over", taken_over), U64("running", running), U64("waiting", waiting),
       U32("buckets", buckets), BOOL("breaker_open", breaker_open), BOOL("paused", paused),
       I64("lag_ms", lag_ms), DOUBLE("read_units", read_units), DOUBLE("write_units", write_units),
       BOOL("watching", watching), U64("unreadable", unreadable), U64("stuck", stuck),
       U64("stuck_total", stuck_total));
#undef T

BIND_FUNCTION(relay_pause)
{
    const struct session_args *args = args_in;
    struct bind_session *session;
    void *object;

    (void)result_out;
    TRY(hf__session_find(s, bind, args->session, &relay_session, &session, &object));
    hf_relay_pause(((struct bound_relay *)object)->relay);
    hf__session_give(session);
    return HF_OK;
}

BIND_FUNCTION(relay_resume)
{
    const struct session_args *args = args_in;
    struct bind_session *session;
    void *object;

    (void)result_out;
    TRY(hf__session_find(s, bind, args->session, &relay_session, &session, &object));
    hf_relay_resume(((struct bound_relay *)object)->relay);
    hf__session_give(session);
    return HF_OK;
}

BIND_FUNCTION(relay_metrics)
{
    const struct session_args *args = args_in;
    struct bind_session *session;
    void *object;

    TRY(hf__session_find(s, bind, args->session, &relay_session, &session, &object));
    hf_relay_metrics(((struct bound_relay *)object)->relay, result_out);
    hf__session_give(session);
    return HF_OK;
}
