/*
 * events/flow/revert.c: taking trees back.
 *
 * Nothing is removed: for each event of a tree, newest first and children before their parents, its
 * flow emits events that take it back, and all of these are appended by one call. They name the
 * event that they take back (`compensates`, and as their cause), which is how they are found again:
 * in the tree they are children of it that are passed over.
 *
 *  (1) Ids of such events follow from that of the event that is taken back: two calls that revert a
 *      tree at the same time make the same ones, and the store takes one of the two appends.
 *  (2) An event that has such events already is not taken back again; its answer is what is there.
 *  (3) All that a call takes back is taken back by one append, or nothing is.
 */
#include "events/flow/flow.h"

struct revert {
    struct hf_flows *flows;
    struct hf_revert_obstacle *obstacles;
    size_t obstacles_len;
    struct hf_stored_event *events; /* of the tree, root first */
    size_t events_len;
    size_t size;                /* room for so many events of the tree */
    size_t reverted;            /* of these */
    struct hf_reverted **taken; /* what is taken back now, in the order of the build */
    size_t taken_len;
};

/* ---- the tree ------------------------------------------------------------------------------- */

/* How many events there are in it, with those that take back others. */
static size_t tree_count(const struct hf_event_tree *tree)
{
    size_t sum = 1;

    for (size_t i = 0; i < tree->children_len; i++)
        sum += tree_count(&tree->children[i]);
    return sum;
}

static bool takes_back(const struct hf_event_tree *child, const struct hf_event_tree *tree)
{
    return child->event.compensates.len && hf_str_equal(child->event.compensates, tree->event.id);
}

/* Does anything take this event back? (2) */
static bool is_reverted(const struct hf_event_tree *tree)
{
    for (size_t i = 0; i < tree->children_len; i++)
        if (takes_back(&tree->children[i], tree))
            return true;
    return false;
}

static void add_obstacle(struct hf_scope *s, struct revert *r, const struct hf_stored_event *event,
                         const struct hf_flow *flow)
{
    assert(r->obstacles_len <= r->size);
    r->obstacles[r->obstacles_len++] = (struct hf_revert_obstacle){
        .event = *event,
        .why = flow ? hf_scope_format(s, "the flow %.*s/%.*s has no compensate",
                                      HF_FMT(event->stream.domain), HF_FMT(event->type))
                    : hf_scope_format(s, "there is no flow for %.*s/%.*s",
                                      HF_FMT(event->stream.domain), HF_FMT(event->type))};
}

/* Look at all of it, parents first. */
static enum hf_status tree_look(struct hf_scope *s, struct revert *r,
                                const struct hf_event_tree *tree)
{
    struct hf_stored_event event = tree->event;
    const struct hf_flow *flow;

    TRY(hf__flow_upcast(s, &event, r->flows));
    flow = hf__flow_find(r->flows, event.stream.domain, event.type);
    assert(r->events_len < r->size);
    r->events[r->events_len++] = event;
    if (is_reverted(tree))
        r->reverted++;
    else if (!flow || !flow->compensate)
        add_obstacle(s, r, &event, flow);
    for (size_t i = 0; i < tree->children_len; i++)
        if (!takes_back(&tree->children[i], tree))
            TRY(tree_look(s, r, &tree->children[i]));
    return hf_scope_built(s);
}

static enum hf_status read_tree(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                                struct hf_event_tree *tree, struct revert *r)
{
    size_t size;

    *r = (struct revert){.flows = flows};
    TRY(hf_events_tree(s, flows->store, id, 0, tree));
    size = r->size = tree_count(tree);
    r->events = hf_scope_alloc(s, size * sizeof(*r->events));
    r->obstacles = hf_scope_alloc(s, (size + 1) * sizeof(*r->obstacles));
    r->taken = hf_scope_alloc(s, size * sizeof(struct hf_reverted *));
    TRY(hf_scope_built(s));
    if (tree->event.causation.len)
        r->obstacles[r->obstacles_len++] = (struct hf_revert_obstacle){
            .event = tree->event,
            .why = hf_scope_format(s, "it is not a root: event %.*s caused it",
                                   HF_FMT(tree->event.causation))};
    return tree_look(s, r, tree);
}

static enum hf_status check_root(struct hf_scope *s, const struct hf_event_tree *tree)
{
    if (tree->event.causation.len)
        return hf_scope_fail(
            s, HF_INVALID,
            "event %.*s is not a root, event %.*s caused it: only whole trees can be reverted",
            HF_FMT(tree->event.id), HF_FMT(tree->event.causation));
    return HF_OK;
}

enum hf_status hf_flows_can_revert(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                                   struct hf_revert_check *check)
{
    struct hf_event_tree tree;
    struct revert r;

    *check = (struct hf_revert_check){0};
    TRY(read_tree(s, flows, id, &tree, &r));
    *check = (struct hf_revert_check){.can = r.obstacles_len == 0,
                                      .obstacles = r.obstacles,
                                      .obstacles_len = r.obstacles_len};
    return HF_OK;
}

enum hf_status hf_flows_preview_revert(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                                       struct hf_revert_preview *preview)
{
    struct hf_event_tree tree;
    struct revert r;

    *preview = (struct hf_revert_preview){0};
    TRY(read_tree(s, flows, id, &tree, &r));
    TRY(check_root(s, &tree));
    *preview = (struct hf_revert_preview){.root = r.events[0],
                                          .descendants = r.events + 1,
                                          .descendants_len = r.events_len - 1,
                                          .count = r.events_len - r.reverted,
                                          .reverted = r.reverted};
    return HF_OK;
}

/* ---- taking back ---------------------------------------------------------------------------- */

/* The number-th event that takes that one back. (1) */
static enum hf_status compensation_make(struct hf_scope *s, struct hf_flows *flows,
                                        const struct hf_stored_event *event,
                                        const struct hf_flow_event *given, size_t number,
                                        struct hf_stored_event *made, const struct hf_flow **flow)
{
    struct hf_event_stream_key stream = {given->stream.domain.len ? given->stream.domain
                                                                  : event->stream.domain,
                                         given->stream.id.ptr ? given->stream.id
                                                              : event->stream.id};

    *flow = hf__flow_find(flows, stream.domain, given->event.type);
    *made = hf__event_of_new(&given->event, stream);
    made->id = hf_scope_format(s, "%.*s.r%zu", HF_FMT(event->id), number);
    made->causation = made->compensates = event->id;
    made->correlation = event->correlation;
    if (!given->event.schema && *flow)
        made->schema = (*flow)->schema;
    if (!made->time_us)
        made->time_us = flows->env.wall_us(flows->env.user);
    return hf_scope_built(s);
}

/* Let the flow emit what takes the event back, and add that to the build. */
static enum hf_status event_compensate(struct hf_scope *s, struct flow_build *build,
                                       const struct hf_stored_event *event)
{
    struct hf_flow_call call = {.flows = build->flows,
                                .build = build,
                                .phase = FLOW_COMPENSATE,
                                .flow =
                                    hf__flow_find(build->flows, event->stream.domain, event->type),
                                .attempt = build->attempt};

    assert(call.flow && call.flow->compensate); /* else it had been an obstacle */
    TRY(hf__flow_call(s, &call, call.flow->compensate, "compensate", event));
    for (size_t i = 0; i < call.emitted_len; i++) {
        const struct hf_flow *flow;
        struct hf_stored_event made;

        TRY(compensation_make(s, build->flows, event, &call.emitted[i], i + 1, &made, &flow));
        TRY(hf__flow_add(s, build, &made, flow));
    }
    return HF_OK;
}

/* What took the event back before. (2) */
static enum hf_status as_before(struct hf_scope *s, const struct hf_event_tree *tree,
                                struct hf_reverted *out)
{
    struct hf_stored_event *events = hf_scope_alloc(s, (tree->children_len + 1) * sizeof(*events));

    TRY(hf_scope_built(s));
    for (size_t i = 0; i < tree->children_len; i++)
        if (takes_back(&tree->children[i], tree))
            events[out->events_len++] = tree->children[i].event;
    out->events = events;
    out->repeated = true;
    return HF_OK;
}

/* Newest first, children before their parents; `events` of what is new is filled in when it was
 * stored: until then events_len is how many there are. */
static enum hf_status take_back(struct hf_scope *s, struct revert *r, struct flow_build *build,
                                const struct hf_event_tree *tree, struct hf_reverted *out)
{
    struct hf_reverted *children = hf_scope_alloc(s, (tree->children_len + 1) * sizeof(*children));
    struct hf_stored_event event = tree->event;
    size_t before;

    TRY(hf_scope_built(s));
    *out = (struct hf_reverted){.id = tree->event.id, .children = children};
    for (size_t i = tree->children_len; i-- > 0;)
        if (!takes_back(&tree->children[i], tree))
            TRY(take_back(s, r, build, &tree->children[i], &children[out->children_len++]));
    if (is_reverted(tree))
        return as_before(s, tree, out);
    before = build->len;
    TRY(hf__flow_upcast(s, &event, build->flows));
    TRY(event_compensate(s, build, &event));
    assert(build->len >= before && r->taken_len < r->size);
    out->events_len = build->len - before;
    r->taken[r->taken_len++] = out;
    return HF_OK;
}

/* The events as they were stored. */
static void fill_reverted(const struct revert *r, const struct flow_build *build,
                          struct hf_stored_event *events)
{
    size_t at = 0;

    for (size_t i = 0; i < build->len; i++)
        events[i] = build->nodes[i]->event;
    for (size_t i = 0; i < r->taken_len; i++) {
        r->taken[i]->events = events + at;
        at += r->taken[i]->events_len;
    }
    assert(at == build->len);
}

static void report_reverted(struct hf_flows *flows, const struct hf_event_tree *tree,
                            uint32_t attempt)
{
    for (size_t i = tree->children_len; i-- > 0;)
        if (!takes_back(&tree->children[i], tree))
            report_reverted(flows, &tree->children[i], attempt);
    if (!is_reverted(tree))
        hf__flow_report(flows, HF_FLOW_REVERTED, &tree->event, NULL, attempt, hf_str_of(NULL, 0));
}

static void after_success(struct flow_build *build, const struct hf_event_tree *tree,
                          struct hf_scope *spare)
{
    for (size_t i = 0; i < build->len; i++)
        hf__flow_report(build->flows, HF_FLOW_SUCCESS, &build->nodes[i]->event, NULL,
                        build->attempt, hf_str_of(NULL, 0));
    report_reverted(build->flows, tree, build->attempt);
    for (size_t i = 0; i < build->len; i++)
        (void)hf__flow_observe(build->flows, spare, &build->nodes[i]->event, false);
}

static enum hf_status check_obstacles(struct hf_scope *s, const struct revert *r)
{
    const struct hf_revert_obstacle *first = r->obstacles;

    if (r->obstacles_len == 0)
        return HF_OK;
    return hf_scope_fail(s, HF_UNSUPPORTED,
                         "%zu of %zu events cannot be reverted; event %.*s: %.*s", r->obstacles_len,
                         r->events_len, HF_FMT(first->event.id), HF_FMT(first->why));
}

/* One time through. *again: others were faster, or have done the same. */
static enum hf_status revert_attempt(struct hf_scope *s, struct flow_build *build, struct hf_str id,
                                     struct hf_scope *spare, struct hf_reverted *out, bool *again)
{
    struct hf_stored_event *events;
    struct hf_event_tree tree;
    bool conflict = false, repeated = false;
    enum hf_status status;
    struct revert r;

    *again = false;
    TRY(read_tree(s, build->flows, id, &tree, &r));
    TRY(check_root(s, &tree));
    TRY(check_obstacles(s, &r));
    assert(r.events_len > 0 && r.obstacles_len == 0 && build->len == 0);
    status = take_back(s, &r, build, &tree, out);
    events = hf_scope_alloc(s, (build->len + 1) * sizeof(*events));
    if (status == HF_OK)
        status = hf_scope_built(s);
    if (status == HF_OK)
        status = hf__flow_store(s, build, &conflict, &repeated);
    if (status != HF_OK || repeated) {
        hf__flow_cancel(spare, build);
        *again = conflict || repeated;
        return status;
    }
    fill_reverted(&r, build, events);
    after_success(build, &tree, spare);
    return HF_OK;
}

static enum hf_status revert_tree(struct hf_scope *s, struct hf_flows *flows,
                                  struct hf_scope *spare, struct hf_str id, struct hf_reverted *out)
{
    for (uint32_t number = 1;; number++) {
        struct flow_build build = {.flows = flows, .attempt = number};
        bool again;
        enum hf_status status = revert_attempt(s, &build, id, spare, out, &again);

        if (status == HF_OK && !again)
            return HF_OK;
        if (!again)
            return status;
        if (number >= flows->o.max_attempts)
            return hf_scope_fail(
                s, status == HF_DUPLICATE ? HF_DUPLICATE : HF_CONDITION,
                "the tree of event %.*s could not be reverted in %u attempts: other writers "
                "appended first",
                HF_FMT(id), number);
        TRY(hf__flow_pause(s, number));
    }
}

static enum hf_status revert_queued(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                                    struct hf_reverted *reverted)
{
    struct hf_stored_event root;
    struct flow_task task = {0};
    struct flow_queue *queue;
    enum hf_status status;

    TRY(hf_flows_get(s, flows, id, &root));
    TRY(hf__flow_enter(s, flows,
                       hf__flow_key(flows,
                                    &(struct hf_flow_event){.stream = root.stream,
                                                            .event = hf__event_to_new(&root)}),
                       false, &task, &queue));
    status = revert_tree(s, flows, queue->spare, id, reverted);
    if (status != HF_OK) {
        hf__flow_report(flows, HF_FLOW_REVERT_FAILED, &root, hf_scope_error(s), 1,
                        hf_str_of(NULL, 0));
        *reverted = (struct hf_reverted){0};
    }
    hf__flow_leave(flows, queue);
    return status;
}

enum hf_status hf_flows_revert(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                               struct hf_reverted *reverted)
{
    struct hf_reverted own;
    enum hf_status status;

    if (!reverted)
        reverted = &own;
    *reverted = (struct hf_reverted){0};
    if (hf_scope_tx(s))
        return hf_scope_fail(s, HF_INVALID, "hf_flows_revert() cannot be part of a transaction");
    hf__flow_begin(flows);
    status = revert_queued(s, flows, id, reverted);
    hf__flow_end(flows);
    return status;
}
