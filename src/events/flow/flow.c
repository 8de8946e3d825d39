/*
 * events/flow/flow.c: flows: opening them, which there are, and what becomes of events.
 *
 * A runtime between a program and its event store. flow_tree.c takes an event, and what follows
 * from it, through the functions of their flows, and collects what is to be stored; flow_submit.c
 * stores it, with one append; flow_queue.c decides which tree is next; flow_effect.c runs side
 * effects, from an outbox; flow_observe.c calls observers; flow_replay.c takes stored events
 * through it once more, and revert.c takes trees back.
 *
 * Where other runtimes apply first and store then, a crash in between leaves a projection that is
 * ahead of the log. Here `apply` comes first too, but what it has for the database is written by
 * the transaction of the append, and what it did in memory is gone with the crash.
 *
 * What always holds:
 *
 *  (1) A tree is stored by one append, all or nothing, together with what its applies write and
 *      with its side effects; and only if the streams are where they were when states of them were
 *      used.
 *  (2) For each apply that succeeded, either the tree is stored or its cancel_apply is called
 *      afterwards, in reverse order. Nothing is canceled once the tree is known to be stored.
 *  (3) What happens after a tree was stored (observers, snapshots, reports) does not change what
 *      its submit returns.
 *  (4) Ids of events follow from the root's, and of events of side effects from the event's: doing
 *      it again gives the same ones, which the store takes once.
 *  (5) In a process, one tree at a time for each queue; a thread that builds a tree does not wait
 *      for a queue.
 *  (6) No function of the user's is called while the mutex is held.
 *  (7) Nothing is freed while a thread is inside, whatever deadline there is for closing.
 */
#include "events/flow/flow.h"

#include <stdio.h>
#include <stdlib.h>

enum { LINE_MAX_LEN = 600, ID_LEN = 32 };

/* ---- the registry --------------------------------------------------------------------------- */

static int compare_str(struct hf_str a, struct hf_str b)
{
    size_t len = a.len < b.len ? a.len : b.len;
    int order = len ? memcmp(a.ptr, b.ptr, len) : 0;

    return order != 0 ? order : (a.len > b.len) - (a.len < b.len);
}

static int compare_flows(const void *a, const void *b)
{
    const struct hf_flow *one = a, *other = b;
    int order = compare_str(one->domain, other->domain);

    return order != 0 ? order : compare_str(one->type, other->type);
}

const struct hf_flow *hf__flow_find(const struct hf_flows *flows, struct hf_str domain,
                                    struct hf_str type)
{
    const struct hf_flow wanted = {.domain = domain, .type = type};

    return flows->flows_len ? bsearch(&wanted, flows->flows, flows->flows_len,
                                      sizeof(*flows->flows), compare_flows)
                            : NULL;
}

static enum hf_status check_flow(struct hf_scope *s, const struct hf_flows *flows,
                                 const struct hf_flow *flow, size_t number)
{
    struct hf_events_abilities abilities = hf_events_abilities(flows->store);

    if (flow->domain.len == 0 || flow->type.len == 0)
        return hf_scope_fail(s, HF_INVALID, "flow %zu has no %s", number,
                             flow->domain.len ? "type" : "domain");
    if (flow->domain.len > HF_EVENTS_DOMAIN_MAX || flow->type.len > HF_EVENTS_TYPE_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   flow->domain.len > HF_EVENTS_DOMAIN_MAX
                                       ? HF_ERROR_LIMIT(HF_EVENTS_DOMAIN_MAX, flow->domain.len)
                                       : HF_ERROR_LIMIT(HF_EVENTS_TYPE_MAX, flow->type.len),
                                   "flow %zu has a %s of more than %d bytes", number,
                                   flow->domain.len > HF_EVENTS_DOMAIN_MAX ? "domain" : "type",
                                   HF_EVENTS_DOMAIN_MAX);
    if (flow->side_effect && !flows->outbox)
        return hf_scope_fail(s, HF_INVALID,
                             "the flow %.*s/%.*s has a side effect, but there is no outbox for it",
                             HF_FMT(flow->domain), HF_FMT(flow->type));
    if (flow->aggregate) {
        TRY(hf__aggregate_check(s, flow->aggregate));
        if (!hf_str_equal(flow->aggregate->domain, flow->domain))
            return hf_scope_fail(s, HF_INVALID,
                                 "the flow %.*s/%.*s has an aggregate of the domain %.*s",
                                 HF_FMT(flow->domain), HF_FMT(flow->type),
                                 HF_FMT(flow->aggregate->domain));
        if (!abilities.streams)
            return hf_scope_fail(s, HF_UNSUPPORTED,
                                 "the flow %.*s/%.*s has an aggregate, but the store cannot read "
                                 "streams",
                                 HF_FMT(flow->domain), HF_FMT(flow->type));
    }
    if (flow->compensate && !(abilities.by_id && abilities.by_cause))
        return hf_scope_fail(s, HF_UNSUPPORTED,
                             "the flow %.*s/%.*s can be reverted, but the store cannot find events "
                             "by id and by cause",
                             HF_FMT(flow->domain), HF_FMT(flow->type));
    return HF_OK;
}

static enum hf_status keep_flows(struct hf_scope *s, struct hf_flows *flows,
                                 const struct hf_flow *given, size_t len)
{
    flows->flows = hf_scope_alloc(flows->kept, (len + 1) * sizeof(*flows->flows));
    TRY(hf_scope_built(flows->kept));
    for (size_t i = 0; i < len; i++) {
        TRY(check_flow(s, flows, &given[i], i + 1));
        flows->flows[i] = given[i];
        flows->flows[i].schema = given[i].schema ? given[i].schema : 1;
        flows->flows[i].domain = hf_scope_copy(flows->kept, given[i].domain);
        flows->flows[i].type = hf_scope_copy(flows->kept, given[i].type);
    }
    TRY(hf_scope_built(flows->kept));
    if (len)
        qsort(flows->flows, len, sizeof(*flows->flows), compare_flows);
    for (size_t i = 1; i < len; i++)
        if (compare_flows(&flows->flows[i - 1], &flows->flows[i]) == 0)
            return hf_scope_fail(s, HF_DUPLICATE, "there are two flows for %.*s/%.*s",
                                 HF_FMT(flows->flows[i].domain), HF_FMT(flows->flows[i].type));
    for (size_t i = 1; i < len; i++)
        assert(compare_flows(&flows->flows[i - 1], &flows->flows[i]) < 0);
    flows->flows_len = len;
    return HF_OK;
}

/* By priority; those of the same one stay in their order. */
static void insert_observer(struct hf_flows *flows, const struct hf_flow_observer *observer)
{
    size_t at = flows->observers_len++;

    for (; at > 0 && flows->observers[at - 1].priority > observer->priority; at--)
        flows->observers[at] = flows->observers[at - 1];
    flows->observers[at] = *observer;
    assert(at == 0 || flows->observers[at - 1].priority <= observer->priority);
}

static enum hf_status keep_observers(struct hf_scope *s, struct hf_flows *flows,
                                     const struct hf_flow_observer *given, size_t len)
{
    flows->observers = hf_scope_alloc(flows->kept, (len + 1) * sizeof(*flows->observers));
    TRY(hf_scope_built(flows->kept));
    for (size_t i = 0; i < len; i++) {
        struct hf_flow_observer observer = given[i];
        size_t count = given[i].filters_len;
        struct hf_flow_filter *filters =
            hf_scope_alloc(flows->kept, (count + 1) * sizeof(*filters));

        if (!observer.observe)
            return hf_scope_fail(s, HF_INVALID, "observer %zu (%.*s) has no function", i + 1,
                                 HF_FMT(observer.name));
        TRY(hf_scope_built(flows->kept));
        observer.name = hf_scope_copy(flows->kept, observer.name);
        observer.filters = filters;
        for (size_t k = 0; k < count; k++) {
            filters[k].domain = hf_scope_copy(flows->kept, given[i].filters[k].domain);
            filters[k].type = hf_scope_copy(flows->kept, given[i].filters[k].type);
        }
        insert_observer(flows, &observer);
    }
    return hf_scope_built(flows->kept);
}

/* ---- opening and closing -------------------------------------------------------------------- */

static enum hf_status check_options(struct hf_scope *s, struct hf_flows_options *o)
{
    o->partitions = o->partitions ? o->partitions : 1;
    o->depth_max = o->depth_max ? o->depth_max : HF_FLOW_DEPTH_MAX;
    o->max_attempts = o->max_attempts ? o->max_attempts : HF_FLOW_ATTEMPTS;
    o->shutdown_ms = o->shutdown_ms ? o->shutdown_ms : HF_FLOW_SHUTDOWN_MS;
    if (o->partitions > HF_FLOW_PARTITIONS_MAX)
        return hf_scope_fail_limit(s, HF_INVALID,
                                   HF_ERROR_LIMIT(HF_FLOW_PARTITIONS_MAX, o->partitions),
                                   "flows have at most %d partitions, not %u",
                                   HF_FLOW_PARTITIONS_MAX, o->partitions);
    if (o->depth_max > HF_FLOW_DEPTH_LIMIT)
        return hf_scope_fail_limit(s, HF_INVALID, HF_ERROR_LIMIT(HF_FLOW_DEPTH_LIMIT, o->depth_max),
                                   "trees have at most %d levels, not %u", HF_FLOW_DEPTH_LIMIT,
                                   o->depth_max);
    return HF_OK;
}

static void flows_free(struct hf_flows *flows)
{
    struct hf_env env = flows->env;

    assert(flows->inside == 0);    /* (7) */
    hf__flow_effects_close(flows); /* these submit, */
    hf__flow_queues_close(flows);  /* and these call observers */
    hf__flow_observers_close(flows);
    hf__waiters_free(&flows->emptied);
    pthread_cond_destroy(&flows->left);
    pthread_mutex_destroy(&flows->mutex);
    hf_scope_free(flows->kept);
    hf__env_free(&env, flows, sizeof(*flows));
}

/* A failure that is in the scope of what is kept only is the caller's. */
static enum hf_status open_parts(struct hf_scope *s, struct hf_flows *flows,
                                 const struct hf_flow *given, size_t given_len,
                                 const struct hf_flow_observer *observers, size_t observers_len)
{
    const struct hf_relay_options *relay = flows->o.relay;

    flows->o.relay = NULL;
    TRY(check_options(s, &flows->o));
    TRY(keep_flows(s, flows, given, given_len));
    TRY(keep_observers(s, flows, observers, observers_len));
    TRY(hf__flow_queues_open(s, flows));
    TRY(hf__flow_observers_open(s, flows));
    return hf__flow_effects_open(s, flows, relay);
}

enum hf_status hf_flows_open(struct hf_scope *s, struct hf_events *store, struct hf_outbox *outbox,
                             const struct hf_flow *given, size_t flows_len,
                             const struct hf_flow_observer *observers, size_t observers_len,
                             const struct hf_flows_options *options, struct hf_flows **out)
{
    const struct hf_env *env = hf_scope_env(s);
    struct hf_flows *flows = hf__env_zalloc(env, sizeof(*flows));
    enum hf_status status = HF_NOMEM;

    call_begins(s);
    *out = NULL;
    if (!flows)
        return hf_scope_fail(s, HF_NOMEM, "no memory for flows");
    flows->env = *env;
    flows->store = store;
    flows->outbox = outbox;
    flows->notices_end = &flows->notices;
    OPTIONS_COPY(&flows->o, options);
    pthread_mutex_init(&flows->mutex, NULL);
    hf__waiters_init(&flows->emptied);
    cond_monotonic_init(&flows->left);
    flows->kept = hf_scope_new(env);
    if (flows->kept)
        status = open_parts(s, flows, given, flows_len, observers, observers_len);
    if (status != HF_OK) {
        if (status == HF_NOMEM)
            (void)hf_scope_fail(s, HF_NOMEM, "no memory for flows");
        flows_free(flows);
        return status;
    }
    *out = flows;
    return HF_OK;
}

enum hf_status hf_flows_shutdown(struct hf_scope *s, struct hf_flows *flows, uint32_t timeout_ms)
{
    uint32_t left_ms = hf_scope_left_ms(s, timeout_ms ? timeout_ms : HF_FLOW_SHUTDOWN_MS);
    struct hf_scope *own = hf_scope_new(hf_scope_env(s));
    bool whole;

    call_begins(s);
    hf__flow_stop(flows);
    if (!own)
        return hf_scope_fail(s, HF_NOMEM, "no memory to shut flows down");
    hf_scope_timeout_ms(own, left_ms ? left_ms : 1);
    whole = hf__flow_drain(own, flows);
    if (!whole)
        hf__flow_forget_posted(flows);
    if (flows->relay && flows->relay_runs) {
        whole = hf_relay_stop(own, flows->relay) == HF_OK && whole;
        flows->relay_runs = false;
    }
    whole = hf__flow_drain_notices(own, flows) && whole;
    hf_scope_free(own);
    return whole ? HF_OK
                 : hf_scope_fail(s, HF_TIMEOUT, "flows did not finish within %u ms", left_ms);
}

void hf_flows_close(struct hf_flows *flows)
{
    struct hf_scope *s;

    if (!flows)
        return;
    hf__flow_stop(flows);
    s = hf_scope_new(&flows->env);
    if (s)
        (void)!hf_flows_shutdown(s, flows, flows->o.shutdown_ms);
    hf_scope_free(s);
    hf__flow_wait(flows); /* (7) */
    flows_free(flows);
}

enum hf_status hf_flows_step(struct hf_scope *s, struct hf_flows *flows, uint32_t *wait_ms)
{
    bool more = false;

    call_begins(s);
    *wait_ms = UINT32_MAX;
    if (!flows->o.no_threads)
        return hf_scope_fail(
            s, HF_INVALID,
            "these flows have their own threads; open them with no_threads to call "
            "hf_flows_step()");
    more = hf__flow_run_posted(flows);
    if (flows->relay && !flows->stopping)
        TRY(hf_relay_step(s, flows->relay, wait_ms));
    more = hf__flow_run_notices(flows) || more;
    if (more)
        *wait_ms = 0;
    return HF_OK;
}

struct hf_relay *hf_flows_relay(struct hf_flows *flows)
{
    return flows->relay;
}

/* ---- events in their current form ----------------------------------------------------------- */

enum hf_status hf__flow_upcast(struct hf_scope *s, struct hf_stored_event *event, void *user)
{
    const struct hf_flows *flows = user;
    const struct hf_flow *flow = hf__flow_find(flows, event->stream.domain, event->type);

    for (int steps = 0; flow && flow->upcast && event->schema < flow->schema; steps++) {
        struct hf_upcast one = {.type = flow->type,
                                .schema = flow->schema,
                                .upcast = flow->upcast,
                                .user = flow->user};

        if (steps == HF_UPCAST_STEPS_MAX)
            return hf_scope_fail(s, HF_LIMIT, "upcasting event %.*s (type %.*s) does not terminate",
                                 HF_FMT(event->id), HF_FMT(event->type));
        TRY(hf__flow_explain(s, hf_event_upcast(s, &one, 1, event), "upcast", event));
        flow = hf__flow_find(flows, event->stream.domain, event->type); /* it may be renamed */
    }
    return HF_OK;
}

enum hf_status hf_flows_read(struct hf_scope *s, struct hf_flows *flows,
                             struct hf_event_stream_key stream,
                             const struct hf_events_read_options *options,
                             struct hf_events_page *page)
{
    struct hf_stored_event *events;

    TRY(hf_events_read(s, flows->store, stream, options, page));
    events = hf_scope_alloc(s, (page->events_len + 1) * sizeof(*events));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < page->events_len; i++) {
        events[i] = page->events[i];
        TRY(hf__flow_upcast(s, &events[i], flows));
    }
    page->events = events;
    return HF_OK;
}

enum hf_status hf_flows_get(struct hf_scope *s, struct hf_flows *flows, struct hf_str id,
                            struct hf_stored_event *event)
{
    TRY(hf_events_get(s, flows->store, id, event));
    return hf__flow_upcast(s, event, flows);
}

/* ---- what becomes of events ----------------------------------------------------------------- */

static void log_failure(const struct hf_flows *flows, enum hf_flow_outcome outcome,
                        const struct hf_stored_event *event, const struct hf_error *error,
                        struct hf_str observer)
{
    char line[LINE_MAX_LEN];
    const char *what = outcome == HF_FLOW_EFFECT_RETRY    ? "side effect will be retried"
                       : outcome == HF_FLOW_EFFECT_FAILED ? "side effect became a dead letter"
                                                          : "observer failed";
    int len;

    if (!flows->env.log || (outcome != HF_FLOW_EFFECT_RETRY && outcome != HF_FLOW_EFFECT_FAILED &&
                            outcome != HF_FLOW_OBSERVER_FAILED))
        return;
    len = snprintf(line, sizeof(line), "event %.*s of %.*s/%.*s: %s%s%.*s: %.*s", HF_FMT(event->id),
                   HF_FMT(event->stream.domain), HF_FMT(event->type), what, observer.len ? " " : "",
                   HF_FMT(observer), HF_FMT(error->message));
    if (len > 0)
        flows->env.log(outcome == HF_FLOW_EFFECT_RETRY ? HF_LOG_WARNING : HF_LOG_ERROR,
                       hf_str_of(line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line) - 1),
                       flows->env.user);
}

void hf__flow_report(struct hf_flows *flows, enum hf_flow_outcome outcome,
                     const struct hf_stored_event *event, const struct hf_error *error,
                     uint32_t attempt, struct hf_str observer)
{
    struct hf_flow_output output = {.outcome = outcome,
                                    .event = event,
                                    .error = error,
                                    .attempt = attempt,
                                    .observer = observer};

    if (flows->o.on_output)
        flows->o.on_output(&output, flows->o.user);
    else if (error)
        log_failure(flows, outcome, event, error, observer);
}

enum hf_status hf__flow_explain(struct hf_scope *s, enum hf_status status, const char *what,
                                const struct hf_stored_event *event)
{
    if (status == HF_OK || hf_scope_error(s)->status == status)
        return status;
    return hf_scope_fail(s, status, "%s of %.*s/%.*s: %s", what, HF_FMT(event->stream.domain),
                         HF_FMT(event->type), hf_status_text(status));
}

/* 12 digits of the time, 4 of a count, 16 that nobody else has; no position is as long. (4) */
struct hf_str hf__flow_id(struct hf_scope *s, struct hf_flows *flows)
{
    int64_t now_ms = hf__env_wall_ms(&flows->env);
    unsigned long long bits;
    uint32_t count;

    pthread_mutex_lock(&flows->mutex);
    if (now_ms > flows->last_ms) {
        flows->last_ms = now_ms;
        flows->last_count = 0;
    } else if (++flows->last_count > 0xffff) {
        flows->last_ms++;
        flows->last_count = 0;
    }
    assert(flows->last_count <= 0xffff);
    now_ms = flows->last_ms;
    count = flows->last_count;
    pthread_mutex_unlock(&flows->mutex);
    flows->env.random(&bits, sizeof(bits), flows->env.user);
    return hf_scope_format(s, "%012llx%04x%016llx", (unsigned long long)now_ms & 0xffffffffffffULL,
                           count, bits);
}
