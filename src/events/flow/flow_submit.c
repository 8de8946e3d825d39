/*
 * events/flow/flow_submit.c: a tree is stored.
 *
 * The events of a build are sorted into their streams, in the order in which these came up, and all
 * are appended by one call: streams of which a state was used with the version it had, others
 * whatever is there; streams that were only looked at are part of it too, with nothing to append.
 *
 * When the answer of an append is lost for good, its events are looked for: if they are there, it
 * has happened. If not, it may still happen, and the failure says so (may_have_happened); a caller
 * who gave the root an id can submit it again.
 */
#include "events/flow/flow.h"

enum { DELAY_MS = 5, DELAY_MAX_MS = 500 };

/* ---- appending ------------------------------------------------------------------------------ */

struct appends {
    struct hf_append *list;
    struct hf_new_event **events; /* of each */
    size_t len;
};

static bool is_stream(struct hf_event_stream_key a, struct hf_str domain, struct hf_str id)
{
    return hf_str_equal(a.domain, domain) && hf_str_equal(a.id, id);
}

static size_t stream_of(struct appends *a, struct hf_event_stream_key stream)
{
    size_t i = 0;

    while (i < a->len && !is_stream(a->list[i].stream, stream.domain, stream.id))
        i++;
    if (i == a->len)
        a->list[a->len++] = (struct hf_append){.stream = stream, .expect = HF_EXPECT_ANY};
    return i;
}

/* An event as it is appended. One that is correlated with itself only does not have to say so. */
static struct hf_new_event as_new(const struct hf_stored_event *event)
{
    struct hf_new_event new_event = hf__event_to_new(event);

    if (hf_str_equal(event->correlation, event->id))
        new_event.correlation = hf_str_of(NULL, 0);
    return new_event;
}

static enum hf_status sort_into_streams(struct hf_scope *s, const struct flow_build *build,
                                        struct appends *a, bool *conflict)
{
    size_t states = 0;

    for (const struct flow_used *used = build->used; used; used = used->next)
        states++;
    a->list = hf_scope_alloc(s, (build->len + states + 1) * sizeof(*a->list));
    a->events = hf_scope_alloc(s, (build->len + states + 1) * sizeof(struct hf_new_event *));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < build->len; i++)
        a->list[stream_of(a, build->nodes[i]->event.stream)].events_len++;
    for (const struct flow_used *used = build->used; used; used = used->next) {
        struct hf_event_stream_key key = {used->aggregate->domain, used->id};
        struct hf_append *append = &a->list[stream_of(a, key)];

        if (append->expect == HF_EXPECT_VERSION && append->version != used->base)
            *conflict = true; /* two looked at it at different times */
        append->expect = HF_EXPECT_VERSION;
        append->version = used->base;
    }
    for (size_t i = 0; i < a->len; i++) {
        a->events[i] = hf_scope_alloc(s, (a->list[i].events_len + 1) * sizeof(struct hf_new_event));
        TRY(hf_scope_built(s));
        a->list[i].events = a->events[i];
        a->list[i].events_len = 0;
    }
    for (size_t i = 0; i < build->len; i++) {
        size_t at = stream_of(a, build->nodes[i]->event.stream);

        a->events[at][a->list[at].events_len++] = as_new(&build->nodes[i]->event);
    }
    return HF_OK;
}

/* The versions that the events have got. */
static void number_events(struct flow_build *build, struct appends *a,
                          const struct hf_appended *results)
{
    for (size_t i = 0; i < a->len; i++)
        a->list[i].events_len = 0;
    for (size_t i = 0; i < build->len; i++) {
        size_t at = stream_of(a, build->nodes[i]->event.stream);

        assert(results[at].first > 0);
        build->nodes[i]->event.version = results[at].first + a->list[at].events_len++;
        assert(build->nodes[i]->event.version <= results[at].last);
    }
}

static enum hf_status add_effects(struct hf_scope *s, struct flow_build *build)
{
    for (size_t i = 0; i < build->len; i++) {
        const struct flow_node *node = build->nodes[i];
        struct hf_transact_write action = {0};

        if (!node->flow || !node->flow->side_effect)
            continue;
        TRY(hf__flow_effect_emit(s, build->flows, build->key, &node->event, &action));
        TRY(hf__actions_add(s, &build->with, &action));
    }
    return HF_OK;
}

/* Its answer was lost: is it there? */
static enum hf_status tree_find_stored(struct hf_scope *s, struct flow_build *build)
{
    struct hf_error error = *hf_scope_error(s);

    for (size_t i = 0; i < build->len; i++) {
        struct hf_stored_event stored;

        if (hf_events_get(s, build->flows->store, build->nodes[i]->event.id, &stored) != HF_OK) {
            (void)hf_scope_fail(s, error.status, "%.*s", HF_FMT(error.message));
            return hf_scope_doubt(s);
        }
        build->nodes[i]->event.version = stored.version;
    }
    return HF_OK;
}

enum hf_status hf__flow_store(struct hf_scope *s, struct flow_build *build, bool *conflict,
                              bool *repeated)
{
    struct hf_append_options options = {.size = sizeof(options)};
    struct appends a = {0};
    struct hf_appended *results;
    enum hf_status status;

    *conflict = *repeated = false;
    if (build->len == 0)
        return HF_OK;
    if (build->effects)
        TRY(add_effects(s, build));
    TRY(sort_into_streams(s, build, &a, conflict));
    if (*conflict)
        return hf_scope_fail(s, HF_CONDITION, "another writer has appended to a stream meanwhile");
    assert(a.len > 0 && a.list[0].events_len > 0); /* the root */
    results = hf_scope_alloc(s, a.len * sizeof(*results));
    TRY(hf_scope_built(s));
    memset(results, 0, a.len * sizeof(*results));
    options.with = build->with.list;
    options.with_len = build->with.len;
    status = hf_events_append(s, build->flows->store, a.list, a.len, &options, results);
    if (status == HF_OK) {
        *repeated = results[0].repeated; /* the first stream has an event: the root */
        number_events(build, &a, results);
        return HF_OK;
    }
    if (hf_scope_error(s)->may_have_happened)
        return tree_find_stored(s, build);
    *conflict = status == HF_CONDITION;
    *repeated = status == HF_DUPLICATE;
    return status;
}

enum hf_status hf__flow_pause(struct hf_scope *s, uint32_t attempt)
{
    return hf_scope_sleep_ms(s, hf__backoff_ms(hf_scope_env(s), DELAY_MS, DELAY_MAX_MS,
                                               attempt + UINT64_C(1)));
}

/* ---- what was stored before ----------------------------------------------------------------- */

struct found {
    struct hf_stored_event *events;
    size_t len, cap;
};

static enum hf_status find_one(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                               struct found *found, bool *there)
{
    struct hf_stored_event event;
    enum hf_status status = hf_flows_get(s, flows, id, &event);

    *there = status == HF_OK;
    if (status == HF_NOT_FOUND)
        return hf_scope_ok(s);
    if (status != HF_OK)
        return status;
    if (found->len == found->cap) {
        size_t cap = found->cap ? 2 * found->cap : 8;
        struct hf_stored_event *longer = hf_scope_alloc(s, cap * sizeof(*longer));

        TRY(hf_scope_built(s));
        if (found->len)
            memcpy(longer, found->events, found->len * sizeof(*longer));
        found->events = longer;
        found->cap = cap;
    }
    assert(found->len < found->cap);
    found->events[found->len++] = event;
    return HF_OK;
}

/* The tree below that id, by the ids that follow from it. */
static enum hf_status find_below(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                                 uint32_t depth, struct found *found)
{
    bool there = depth < flows->o.depth_max;

    for (size_t i = 1; there; i++) {
        struct hf_str child = hf_scope_format(s, "%.*s.%zu", HF_FMT(id), i);

        TRY(hf_scope_built(s));
        TRY(find_one(s, flows, child, found, &there));
        if (there)
            TRY(find_below(s, flows, child, depth + 1, found));
    }
    return HF_OK;
}

/* Was that event submitted before? Then this is the answer. */
static enum hf_status find_earlier(struct hf_scope *s, struct hf_flows *flows,
                                   const struct hf_stored_event *root,
                                   struct hf_flow_result *result)
{
    struct hf_stored_event now = *root;
    struct found found = {0};
    bool there;

    TRY(find_one(s, flows, root->id, &found, &there));
    if (!there)
        return HF_OK;
    TRY(hf__flow_upcast(s, &now, flows)); /* as what is stored is read */
    if (!is_stream(found.events[0].stream, root->stream.domain, root->stream.id) ||
        !hf_str_equal(found.events[0].type, now.type))
        return hf_scope_fail(s, HF_DUPLICATE,
                             "id %.*s is already used by an event %.*s/%.*s of stream %.*s",
                             HF_FMT(root->id), HF_FMT(found.events[0].stream.domain),
                             HF_FMT(found.events[0].type), HF_FMT(found.events[0].stream.id));
    TRY(find_below(s, flows, root->id, 1, &found));
    *result =
        (struct hf_flow_result){.events = found.events, .events_len = found.len, .repeated = true};
    return HF_OK;
}

/* ---- taking an event ------------------------------------------------------------------------ */

/* At best effort. */
static void make_snapshots(struct flow_build *build, struct hf_scope *spare)
{
    struct hf_flows *flows = build->flows;

    for (struct flow_used *used = build->used; used && !flows->o.no_snapshots; used = used->next) {
        struct hf_event_stream_key stream = {used->aggregate->domain, used->id};
        bool saved;

        if (!hf__aggregate_is_due(used->aggregate, used->base, used->state.version))
            continue;
        hf_scope_reset(spare);
        if (hf__aggregate_snapshot(spare, flows->store, used->aggregate, used->id, &used->state,
                                   &saved) != HF_OK)
            hf__aggregate_log(&flows->env, hf_scope_error(spare), stream);
    }
}

/* It is stored: nothing that happens from here on changes that. (3) of flow.c */
static void after_success(struct flow_build *build, struct hf_scope *spare)
{
    struct hf_flows *flows = build->flows;
    bool effects = false;

    for (size_t i = 0; i < build->len; i++) {
        effects = effects || (build->nodes[i]->flow && build->nodes[i]->flow->side_effect);
        hf__flow_report(flows, HF_FLOW_SUCCESS, &build->nodes[i]->event, NULL, build->attempt,
                        hf_str_of(NULL, 0));
    }
    if (effects && flows->outbox)
        hf_outbox_wake(flows->outbox);
    for (size_t i = 0; i < build->len; i++)
        (void)hf__flow_observe(flows, spare, &build->nodes[i]->event, false);
    make_snapshots(build, spare);
}

static void report_failure(struct hf_scope *s, struct flow_build *build)
{
    const struct hf_error *error = hf_scope_error(s);

    if (build->refused.type.len)
        hf__flow_report(build->flows, HF_FLOW_INVALID, &build->refused, error, build->attempt,
                        hf_str_of(NULL, 0));
    for (size_t i = 0; i < build->len; i++)
        hf__flow_report(build->flows, HF_FLOW_CANCELED, &build->nodes[i]->event, error,
                        build->attempt, hf_str_of(NULL, 0));
}

static enum hf_status result_fill(struct hf_scope *s, const struct flow_build *build,
                                  struct hf_stored_event *events, struct hf_flow_result *result)
{
    (void)s;
    for (size_t i = 0; i < build->len; i++)
        events[i] = build->nodes[i]->event;
    *result = (struct hf_flow_result){.events = events,
                                      .events_len = build->len,
                                      .attempts = build->attempt};
    return HF_OK;
}

/* One time through; what failed is canceled when it returns. (2) of flow.c */
static enum hf_status tree_attempt(struct hf_scope *s, struct flow_build *build,
                                   const struct hf_stored_event *root, struct hf_scope *spare,
                                   struct hf_flow_result *result, bool *conflict, bool *repeated)
{
    struct hf_stored_event *events = NULL;
    enum hf_status status = hf__flow_grow(s, build, root, 1);

    *conflict = *repeated = false;
    assert(status != HF_OK || build->len > 0);
    if (status == HF_OK) { /* before it is too late to fail */
        events = hf_scope_alloc(s, build->len * sizeof(*events));
        status = hf_scope_built(s);
    }
    if (status == HF_OK)
        status = hf__flow_store(s, build, conflict, repeated);
    if (status != HF_OK || *repeated) {
        hf__flow_cancel(spare, build);
        return status;
    }
    after_success(build, spare);
    return result_fill(s, build, events, result);
}

/* Make the tree and store it, and again while others are faster. */
static enum hf_status tree_submit(struct hf_scope *s, struct hf_flows *flows,
                                  struct hf_scope *spare, const struct hf_stored_event *root,
                                  struct hf_str key, struct hf_flow_result *result, bool *repeated)
{
    for (uint32_t number = 1;; number++) {
        struct flow_build build = {.flows = flows, .attempt = number, .key = key, .effects = true};
        bool conflict;
        enum hf_status status = tree_attempt(s, &build, root, spare, result, &conflict, repeated);

        if (status == HF_OK)
            return HF_OK;
        if (conflict && number < flows->o.max_attempts) {
            status = hf__flow_pause(s, number);
            if (status == HF_OK)
                continue;
        } else if (conflict) {
            status = hf_scope_fail(
                s, HF_CONDITION,
                "the tree of %.*s/%.*s was built %u times, and each time another writer appended "
                "first",
                HF_FMT(root->stream.domain), HF_FMT(root->type), number);
        }
        if (!*repeated) /* that is looked into */
            report_failure(s, &build);
        return status;
    }
}

enum hf_status hf__flow_take(struct hf_scope *s, struct hf_flows *flows, struct flow_queue *queue,
                             const struct hf_flow_event *event,
                             const struct hf_stored_event *parent, struct hf_flow_result *result)
{
    struct hf_str id = event->event.id.len ? event->event.id : hf__flow_id(s, flows);
    struct hf_stored_event root;
    enum hf_status status;
    bool repeated = false;

    *result = (struct hf_flow_result){0};
    TRY(hf_scope_built(s));
    TRY(hf__flow_create(s, flows, event, parent, id, &root));
    if (event->event.id.len)
        TRY(find_earlier(s, flows, &root, result));
    if (result->repeated)
        return HF_OK;
    status =
        tree_submit(s, flows, queue->spare, &root, hf__flow_key(flows, event), result, &repeated);
    if (!repeated)
        return status;
    TRY(find_earlier(s, flows, &root, result)); /* another has submitted it at the same time */
    if (result->repeated)
        return HF_OK;
    status = hf_scope_fail(s, HF_DUPLICATE, "an event id in the tree of %.*s is already in use",
                           HF_FMT(root.id));
    hf__flow_report(flows, HF_FLOW_CANCELED, &root, hf_scope_error(s), 1, hf_str_of(NULL, 0));
    return status;
}

enum hf_status hf__flow_submit(struct hf_scope *s, struct hf_flows *flows,
                               const struct hf_flow_event *event,
                               const struct hf_stored_event *parent, bool inner,
                               struct hf_flow_result *result)
{
    struct flow_queue *queue;
    struct flow_task task = {0};
    enum hf_status status;

    TRY(hf__flow_enter(s, flows, hf__flow_key(flows, event), inner, &task, &queue));
    status = hf__flow_take(s, flows, queue, event, parent, result);
    hf__flow_leave(flows, queue);
    return status;
}

enum hf_status hf_flows_submit(struct hf_scope *s, struct hf_flows *flows,
                               const struct hf_flow_event *event,
                               const struct hf_submit_options *options,
                               struct hf_flow_result *result)
{
    struct hf_submit_options o;
    struct hf_flow_result own;
    enum hf_status status;

    OPTIONS_COPY(&o, options);
    if (!result)
        result = &own;
    *result = (struct hf_flow_result){0};
    if (hf_scope_tx(s))
        return hf_scope_fail(
            s, HF_INVALID,
            "hf_flows_submit() cannot be part of a transaction; add writes with hf_flow_write()");
    hf__flow_begin(flows);
    status = hf__flow_submit(s, flows, event, o.parent, false, result);
    hf__flow_end(flows);
    return status;
}
