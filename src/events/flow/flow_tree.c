/*
 * events/flow/flow_tree.c: the way of an event, and of all that follow from it.
 *
 * Depth first: an event is created, refused or applied, and then each of its consequents goes the
 * same way before the next one. What comes out is a build: the events in the order of their
 * creation, the states that were used, and what is to be written with them. Nothing is stored here.
 *
 * States. The first function that needs the state of a stream loads it; it is kept with the version
 * that was loaded, which becomes a condition of the append. Every event that is added to the build
 * is put into all states of its stream, so later functions see it.
 *
 *  (1) A state that is handed out has the stored events of its stream up to `base` and those of
 *      the build, and no others.
 *  (2) A node is `applied` only after its apply has succeeded; then it is in the build.
 */
#include "events/flow/flow.h"

/* ---- what functions of flows call ----------------------------------------------------------- */

enum hf_status hf_flow_emit(struct hf_scope *s, struct hf_flow_call *call,
                            const struct hf_flow_event *event)
{
    void *emitted = call->emitted;

    call_begins(s);
    if (call->phase != FLOW_CONSEQUENTS && call->phase != FLOW_EFFECT &&
        call->phase != FLOW_COMPENSATE)
        return hf_scope_fail(s, HF_INVALID,
                             "only consequents, side_effect and compensate may emit events");
    if (event->event.type.len == 0 ||
        (event->stream.domain.len == 0 && call->phase != FLOW_COMPENSATE))
        return hf_scope_fail(s, HF_INVALID, "an emitted event has no %s",
                             event->event.type.len ? "domain" : "type");
    if (call->emitted_len == HF_FLOW_EVENTS_MAX)
        return hf_scope_fail_limit(s, HF_LIMIT,
                                   HF_ERROR_LIMIT(HF_FLOW_EVENTS_MAX, call->emitted_len + 1),
                                   "an event may emit at most %d events", HF_FLOW_EVENTS_MAX);
    TRY(hf__pattern_grow(s, &emitted, call->emitted_len, &call->emitted_cap, sizeof(*event)));
    call->emitted = emitted;
    call->emitted[call->emitted_len++] = *event;
    return HF_OK;
}

enum hf_status hf_flow_write(struct hf_scope *s, struct hf_flow_call *call,
                             const struct hf_transact_write *action)
{
    call_begins(s);
    if (call->phase != FLOW_APPLY)
        return hf_scope_fail(s, HF_INVALID, "only apply may call hf_flow_write()");
    return hf__actions_add(s, &call->build->with, action);
}

const void *hf_flow_state(const struct hf_flow_call *call)
{
    return call->own ? call->own->state.state : NULL;
}

uint64_t hf_flow_version(const struct hf_flow_call *call)
{
    return call->own ? call->own->state.version : 0;
}

uint32_t hf_flow_attempt(const struct hf_flow_call *call)
{
    return call->attempt;
}

bool hf_flow_replaying(const struct hf_flow_call *call)
{
    return call->build && call->build->replay;
}

enum hf_status hf__flow_call(struct hf_scope *s, struct hf_flow_call *call, hf_flow_fn *fn,
                             const char *what, const struct hf_stored_event *event)
{
    return hf__flow_explain(s, fn(s, call, event, call->flow->user), what, event);
}

/* ---- states --------------------------------------------------------------------------------- */

static bool is_of(const struct hf_stored_event *event, const struct hf_aggregate *aggregate,
                  struct hf_str id)
{
    return hf_str_equal(event->stream.domain, aggregate->domain) &&
           hf_str_equal(event->stream.id, id);
}

/* The state of that aggregate, loaded if nobody has yet. (1) */
static enum hf_status use_state(struct hf_scope *s, struct flow_build *build,
                                const struct hf_aggregate *aggregate, struct hf_str id,
                                struct flow_used **out)
{
    struct flow_used *used = build->used;

    while (used && !(used->aggregate == aggregate && hf_str_equal(used->id, id)))
        used = used->next;
    *out = used;
    if (used)
        return HF_OK;
    used = hf_scope_alloc(s, sizeof(*used));
    TRY(hf_scope_built(s));
    *used = (struct flow_used){.aggregate = aggregate, .id = hf_scope_copy(s, id)};
    TRY(hf_scope_built(s));
    TRY(hf__aggregate_load(s, build->flows->store,
                           &(struct aggregate_wanted){.aggregate = aggregate,
                                                      .id = used->id,
                                                      .upcast = hf__flow_upcast,
                                                      .user = build->flows},
                           &used->state));
    used->base = used->state.version;
    for (size_t i = 0; i < build->len; i++)
        if (is_of(&build->nodes[i]->event, aggregate, id))
            TRY(hf__aggregate_evolve(s, aggregate, &build->nodes[i]->event, &used->state));
    assert(used->state.version >= used->base && used->state.version - used->base <= build->len);
    used->next = build->used;
    build->used = *out = used;
    return HF_OK;
}

enum hf_status hf_flow_load(struct hf_scope *s, struct hf_flow_call *call,
                            const struct hf_aggregate *aggregate, struct hf_str id,
                            struct hf_aggregate_state *loaded)
{
    struct flow_used *used;

    call_begins(s);
    *loaded = (struct hf_aggregate_state){0};
    if (call->phase == FLOW_CANCEL)
        return hf_scope_fail(s, HF_INVALID, "cancel_apply cannot load states");
    TRY(hf__aggregate_check(s, aggregate));
    if (!call->build || call->build->replay)
        return hf__aggregate_load(s, call->flows->store,
                                  &(struct aggregate_wanted){.aggregate = aggregate,
                                                             .id = id,
                                                             .upcast = hf__flow_upcast,
                                                             .user = call->flows},
                                  loaded);
    TRY(use_state(s, call->build, aggregate, id, &used));
    *loaded = used->state;
    return HF_OK;
}

/* Put an event into the build and into the states of its stream. (1) */
static enum hf_status add_node(struct hf_scope *s, struct flow_build *build,
                               const struct hf_stored_event *event, const struct hf_flow *flow,
                               struct flow_node **out)
{
    void *nodes = build->nodes;
    struct flow_node *node;

    if (build->len == HF_FLOW_EVENTS_MAX)
        return hf_scope_fail_limit(s, HF_LIMIT, HF_ERROR_LIMIT(HF_FLOW_EVENTS_MAX, build->len + 1),
                                   "a tree has at most %d events", HF_FLOW_EVENTS_MAX);
    node = hf_scope_alloc(s, sizeof(*node));
    TRY(hf_scope_built(s));
    TRY(hf__pattern_grow(s, &nodes, build->len, &build->cap, sizeof(struct flow_node *)));
    build->nodes = nodes;
    *node = (struct flow_node){.event = *event, .flow = flow};
    for (struct flow_used *used = build->used; used; used = used->next)
        if (is_of(event, used->aggregate, used->id)) {
            TRY(hf__flow_explain(s, hf__aggregate_evolve(s, used->aggregate, event, &used->state),
                                 "evolve", event));
            node->event.version = used->state.version;
        }
    assert(build->len < build->cap);
    build->nodes[build->len++] = node;
    *out = node;
    return HF_OK;
}

/* ---- the way -------------------------------------------------------------------------------- */

enum hf_status hf__flow_create(struct hf_scope *s, struct hf_flows *flows,
                               const struct hf_flow_event *event,
                               const struct hf_stored_event *parent, struct hf_str id,
                               struct hf_stored_event *created)
{
    const struct hf_flow *flow = hf__flow_find(flows, event->stream.domain, event->event.type);
    struct hf_event_stream_key stream = event->stream;

    if (!flow)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no flow for %.*s/%.*s",
                             HF_FMT(event->stream.domain), HF_FMT(event->event.type));
    if (!stream.id.ptr)
        stream.id = parent ? parent->stream.id : hf_str_of("", 0);
    *created = hf__event_of_new(&event->event, stream);
    if (!created->id.len)
        created->id = id;
    if (!event->event.schema)
        created->schema = flow->schema;
    if (!created->time_us)
        created->time_us = flows->env.wall_us(flows->env.user);
    if (!created->causation.len && parent)
        created->causation = parent->id;
    if (!created->correlation.len)
        created->correlation = parent && parent->correlation.len ? parent->correlation
                               : parent                          ? parent->id
                                                                 : created->id;
    return HF_OK;
}

/* What pre_apply may not touch is as it was. */
static bool is_same_identity(const struct hf_stored_event *a, const struct hf_stored_event *b)
{
    return hf_str_equal(a->id, b->id) && hf_str_equal(a->stream.domain, b->stream.domain) &&
           hf_str_equal(a->stream.id, b->stream.id) && hf_str_equal(a->type, b->type) &&
           hf_str_equal(a->causation, b->causation) &&
           hf_str_equal(a->correlation, b->correlation) &&
           hf_str_equal(a->compensates, b->compensates);
}

static enum hf_status pre_apply(struct hf_scope *s, struct hf_flow_call *call,
                                struct hf_stored_event *event)
{
    struct hf_stored_event before = *event;

    call->phase = FLOW_PRE_APPLY;
    TRY(hf__flow_explain(s, call->flow->pre_apply(s, call, event, call->flow->user), "pre_apply",
                         event));
    if (!is_same_identity(&before, event))
        return hf_scope_fail(
            s, HF_INVALID,
            "pre_apply of %.*s/%.*s changed the id, stream, type, causation, correlation or "
            "compensates of the event",
            HF_FMT(before.stream.domain), HF_FMT(before.type));
    return HF_OK;
}

/* Up to where it may be refused. */
static enum hf_status event_admit(struct hf_scope *s, struct hf_flow_call *call,
                                  struct hf_stored_event *event)
{
    struct flow_used *own = NULL;

    TRY(hf__flow_upcast(s, event, call->flows));
    call->flow = hf__flow_find(call->flows, event->stream.domain, event->type);
    if (!call->flow)
        return hf_scope_fail(s, HF_NOT_FOUND, "there is no flow for %.*s/%.*s",
                             HF_FMT(event->stream.domain), HF_FMT(event->type));
    assert(call->build && !call->build->replay); /* (3) of flow_replay.c */
    if (call->flow->aggregate)
        TRY(use_state(s, call->build, call->flow->aggregate, event->stream.id, &own));
    call->own = own;
    if (call->flow->validate) {
        call->phase = FLOW_VALIDATE;
        TRY(hf__flow_call(s, call, call->flow->validate, "validate", event));
    }
    return call->flow->pre_apply ? pre_apply(s, call, event) : HF_OK;
}

static enum hf_status node_apply(struct hf_scope *s, struct hf_flow_call *call,
                                 struct flow_node *node)
{
    assert(!node->applied && call->flow == node->flow);
    if (node->flow->apply) {
        call->phase = FLOW_APPLY;
        TRY(hf__flow_call(s, call, node->flow->apply, "apply", &node->event));
    }
    node->applied = true; /* (2) */
    return HF_OK;
}

static enum hf_status grow_children(struct hf_scope *s, struct hf_flow_call *call,
                                    const struct flow_node *node, uint32_t depth)
{
    call->phase = FLOW_CONSEQUENTS;
    TRY(hf__flow_call(s, call, node->flow->consequents, "consequents", &node->event));
    for (size_t i = 0; i < call->emitted_len; i++) {
        struct hf_stored_event child;
        struct hf_str id = hf_scope_format(s, "%.*s.%zu", HF_FMT(node->event.id), i + 1);

        TRY(hf_scope_built(s));
        TRY(hf__flow_create(s, call->flows, &call->emitted[i], &node->event, id, &child));
        TRY(hf__flow_grow(s, call->build, &child, depth + 1));
    }
    return HF_OK;
}

enum hf_status hf__flow_grow(struct hf_scope *s, struct flow_build *build,
                             const struct hf_stored_event *event, uint32_t depth)
{
    struct hf_flow_call call = {.flows = build->flows,
                                .build = build,
                                .flow =
                                    hf__flow_find(build->flows, event->stream.domain, event->type),
                                .attempt = build->attempt};
    struct hf_stored_event own = *event;
    struct flow_node *node;
    enum hf_status status;

    assert(call.flow);
    if (depth > build->flows->o.depth_max) {
        build->refused = *event;
        return hf_scope_fail_limit(
            s, HF_LIMIT, hf_error_limit_of("depth_max", build->flows->o.depth_max, depth),
            "the tree of events has more than %u levels at %.*s/%.*s: do the events cause each "
            "other?",
            build->flows->o.depth_max, HF_FMT(event->stream.domain), HF_FMT(event->type));
    }
    status = event_admit(s, &call, &own);
    if (status == HF_OK)
        status = add_node(s, build, &own, call.flow, &node);
    if (status != HF_OK) {
        build->refused = own;
        return status;
    }
    TRY(node_apply(s, &call, node));
    return call.flow->consequents ? grow_children(s, &call, node, depth) : HF_OK;
}

enum hf_status hf__flow_add(struct hf_scope *s, struct flow_build *build,
                            const struct hf_stored_event *event, const struct hf_flow *flow)
{
    struct hf_flow_call call = {.flows = build->flows,
                                .build = build,
                                .flow = flow,
                                .attempt = build->attempt};
    struct flow_used *own = NULL;
    struct flow_node *node;

    if (flow && flow->aggregate)
        TRY(use_state(s, build, flow->aggregate, event->stream.id, &own));
    call.own = own;
    TRY(add_node(s, build, event, flow, &node));
    return flow ? node_apply(s, &call, node) : HF_OK;
}

void hf__flow_cancel(struct hf_scope *spare, struct flow_build *build)
{
    for (size_t i = build->len; i-- > 0;) {
        struct flow_node *node = build->nodes[i];
        struct hf_flow_call call = {.flows = build->flows,
                                    .build = build,
                                    .phase = FLOW_CANCEL,
                                    .flow = node->flow,
                                    .attempt = build->attempt};

        if (!node->applied || !node->flow || !node->flow->cancel_apply)
            continue;
        hf_scope_reset(spare);
        (void)node->flow->cancel_apply(spare, &call, &node->event, node->flow->user);
        node->applied = false;
    }
}
