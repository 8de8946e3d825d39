/*
 * events/flow/flow_effect.c: side effects.
 *
 * A side effect is an event of the outbox: its headers say of which event, and it is stored by the
 * transaction that stores that one. A relay of the flows runs it, here or in another process, at
 * least once: again when a process dies before it could note that it was run. The functions of a
 * flow are looked for by the event that is stored, not by what the outbox says.
 *
 *  (1) A failure of a side effect counts as an attempt of that one; when the event could not be
 *      read it does not, and the relay waits until it can.
 *  (2) Events that it leads to have ids that follow from the event's, so those that were stored by
 *      an earlier run are not stored again.
 *  (3) One that ran out of attempts, or whose event is damaged or has its payload where we cannot
 *      read, or that has no flow here, becomes a dead letter; it is never noted as done.
 *  (4) So is one that ends its process, after max_crashes of that, by the relay.
 */
#include "events/flow/flow.h"

#include <stdio.h>

enum { ATTEMPTS = 1000000, LINE_MAX_LEN = 400 };

enum hf_status hf__flow_effect_emit(struct hf_scope *s, struct hf_flows *flows, struct hf_str key,
                                    const struct hf_stored_event *event,
                                    struct hf_transact_write *action)
{
    struct hf_event effect = {.type =
                                  hf_scope_format(s, "flow.%.*s.%.*s", HF_FMT(event->stream.domain),
                                                  HF_FMT(event->type)),
                              .key = key,
                              .headers = HF_ITEM(s, HF_S("event", event->id)),
                              .correlation = event->correlation,
                              .causation = event->id,
                              .aggregate = event->stream.id,
                              .aggregate_type = event->stream.domain};

    assert(flows->outbox && event->id.len);
    TRY(hf_scope_built(s));
    return hf_outbox_emit_tx(s, flows->outbox, &effect, action, NULL);
}

/* ---- running one ---------------------------------------------------------------------------- */

/* Store what it has led to. (2) */
static enum hf_status submit_emitted(struct hf_scope *s, struct hf_flow_call *call,
                                     const struct hf_stored_event *event)
{
    for (size_t i = 0; i < call->emitted_len; i++) {
        struct hf_flow_event root = call->emitted[i];
        struct hf_flow_result result;

        if (!root.event.id.len)
            root.event.id = hf_scope_format(s, "%.*s.e%zu", HF_FMT(event->id), i + 1);
        if (!root.stream.id.ptr)
            root.stream.id = event->stream.id;
        TRY(hf_scope_built(s));
        TRY(hf__flow_submit(s, call->flows, &root, event, true, &result));
    }
    return HF_OK;
}

static enum hf_status effect_run(struct hf_scope *s, struct hf_flows *flows,
                                 const struct hf_stored_event *event, const struct hf_flow *flow,
                                 uint32_t attempt)
{
    struct hf_flow_call call = {.flows = flows,
                                .phase = FLOW_EFFECT,
                                .flow = flow,
                                .attempt = attempt};

    assert(flow->side_effect && attempt > 0);
    TRY(hf__flow_call(s, &call, flow->side_effect, "side_effect", event));
    return submit_emitted(s, &call, event);
}

/* It cannot be run, here or at all. (3) */
static void effect_give_up(struct hf_scope *s, struct hf_flows *flows, struct hf_delivery *delivery,
                           const struct hf_stored_event *event, uint32_t attempt)
{
    assert(hf_scope_error(s)->status != HF_OK); /* (3): it is never noted as done */
    delivery->status = hf_scope_error(s)->status;
    delivery->error = hf_scope_error(s)->message;
    delivery->for_good = true;
    hf__flow_report(flows, HF_FLOW_EFFECT_FAILED, event, hf_scope_error(s), attempt,
                    hf_str_of(NULL, 0));
}

static void effect_end(struct hf_scope *s, struct hf_flows *flows, struct hf_delivery *delivery,
                       const struct hf_stored_event *event, const struct hf_flow *flow,
                       uint32_t attempt)
{
    delivery->status = HF_OK;
    if (hf_scope_error(s)->status == HF_OK) {
        hf__flow_report(flows, HF_FLOW_EFFECT_DONE, event, NULL, attempt, hf_str_of(NULL, 0));
        return;
    }
    if (attempt > flow->effect_retries) {
        effect_give_up(s, flows, delivery, event, attempt);
        return;
    }
    delivery->status = hf_scope_error(s)->status;
    delivery->error = hf_scope_error(s)->message;
    hf__flow_report(flows, HF_FLOW_EFFECT_RETRY, event, hf_scope_error(s), attempt,
                    hf_str_of(NULL, 0));
}

static enum hf_status effect_deliver(struct hf_scope *s, struct hf_flows *flows,
                                     struct hf_delivery *delivery)
{
    struct hf_str id = hf_value_str(hf_item_get(delivery->event->event.headers, HF_STR("event")));
    uint32_t attempt = delivery->event->attempts - delivery->event->crashes + 1;
    struct hf_stored_event event = {.id = id, .type = delivery->event->event.type};
    const struct hf_flow *flow;
    enum hf_status status = HF_NOT_FOUND;

    if (id.len)
        status = hf_events_get(s, flows->store, id, &event);
    else
        (void)hf_scope_fail(s, HF_NOT_FOUND,
                            "the event in the outbox is not a side effect of a flow");
    if (status == HF_OK)
        status = hf__flow_upcast(s, &event, flows);
    else if (status != HF_NOT_FOUND && status != HF_DELETED && status != HF_CORRUPT &&
             status != HF_UNSUPPORTED)
        return status; /* (1) */
    flow = status == HF_OK ? hf__flow_find(flows, event.stream.domain, event.type) : NULL;
    if (status == HF_OK && !(flow && flow->side_effect))
        status = hf_scope_fail(s, HF_NOT_FOUND, "there is no flow with a side effect for %.*s/%.*s",
                               HF_FMT(event.stream.domain), HF_FMT(event.type));
    if (status != HF_OK) {
        effect_give_up(s, flows, delivery, &event, attempt);
        return HF_OK;
    }
    status = effect_run(s, flows, &event, flow, attempt);
    if (status == HF_OK)
        hf_scope_ok(s);
    else if (status == HF_CANCELED && hf_scope_sleep_ms(s, 0) == HF_CANCELED)
        return HF_CANCELED; /* we are stopped, and it is not to blame */
    effect_end(s, flows, delivery, &event, flow, attempt);
    return HF_OK;
}

static enum hf_status effects_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                   size_t len)
{
    for (size_t i = 0; i < len; i++)
        TRY(effect_deliver(s, self, &deliveries[i]));
    return HF_OK;
}

/* ---- the relay ------------------------------------------------------------------------------ */

static void on_error(const struct hf_error *error, void *user)
{
    const struct hf_flows *flows = user;
    char line[LINE_MAX_LEN];
    int len;

    if (!flows->env.log)
        return;
    len = snprintf(line, sizeof(line), "side effects of flows: %.*s", HF_FMT(error->message));
    if (len > 0)
        flows->env.log(HF_LOG_WARNING,
                       hf_str_of(line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1),
                       flows->env.user);
}

/* (4) Other failures were reported by the sink. */
static void on_ended(const struct hf_outbox_event *event, enum hf_relay_outcome outcome,
                     const struct hf_error *error, void *user)
{
    struct hf_flows *flows = user;
    struct hf_stored_event effect = {
        .id = hf_value_str(hf_item_get(event->event.headers, HF_STR("event"))),
        .stream = {event->event.aggregate_type, event->event.aggregate},
        .type = event->event.type};

    if (outcome == HF_RELAY_GIVEN_UP && event->crashes >= flows->max_crashes)
        hf__flow_report(flows, HF_FLOW_EFFECT_FAILED, &effect, error, event->attempts,
                        hf_str_of(NULL, 0));
}

static void on_stuck(const struct hf_outbox_event *event, uint64_t for_ms, void *user)
{
    const struct hf_flows *flows = user;

    if (flows->on_stuck)
        flows->on_stuck(event, for_ms, flows->stuck_user);
}

enum hf_status hf__flow_effects_open(struct hf_scope *s, struct hf_flows *flows,
                                     const struct hf_relay_options *relay)
{
    const struct hf_sink_ops ops = {.size = sizeof(ops),
                                    .name = "flows",
                                    .batch_max = 1,
                                    .send = effects_send};
    struct hf_relay_options o;
    bool needed = false;

    for (size_t i = 0; i < flows->flows_len; i++)
        needed = needed || flows->flows[i].side_effect;
    if (!needed || flows->o.no_effects)
        return HF_OK;
    OPTIONS_COPY(&o, relay);
    if (o.max_attempts || o.on_ended || o.on_error || o.dry_run || o.only_type.len ||
        o.only_key.len || o.only_tenant.len || o.no_threads)
        return hf_scope_fail(s, HF_INVALID,
                             "max_attempts, on_ended, on_error, dry_run, only_type, only_key, "
                             "only_tenant and no_threads of the relay are set by the flows");
    o.size = sizeof(o);
    o.max_attempts = ATTEMPTS;
    o.max_crashes = o.max_crashes ? o.max_crashes : HF_FLOW_CRASHES;
    flows->max_crashes = o.max_crashes;
    o.on_ended = on_ended;
    flows->on_stuck = o.on_stuck;
    flows->stuck_user = o.user;
    o.on_stuck = on_stuck;
    o.no_threads = flows->o.no_threads;
    o.on_error = on_error;
    o.user = flows;
    TRY(hf_sink_new(s, &ops, flows, &flows->sink));
    TRY(hf_relay_open(s, flows->outbox, flows->sink, &o, &flows->relay));
    if (!flows->o.no_threads)
        TRY(hf_relay_start(s, flows->relay));
    flows->relay_runs = true;
    return HF_OK;
}

void hf__flow_effects_close(struct hf_flows *flows)
{
    hf_relay_close(flows->relay);
    hf_sink_close(flows->sink);
}
