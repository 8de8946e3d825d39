/*
 * outbox/bus_handle.c: handling an event, and waiting for one.
 *
 * The relay passes events to the sink of the bus one at a time, on several threads. A failure is
 * reported for its event alone: the sink as a whole never fails, so the relay never takes a handler's
 * failure for an outage.
 *
 * Each hf_bus_wait_begin() adds an entry to a list, with memory of its own, into which the thread that
 * handles such an event copies it. If there is a handler, it is called first, and waiters are notified
 * when it has succeeded; if there is none, the event counts as handled.
 */
#include "outbox/bus.h"

enum { WAIT_MS = 5000, STEP_MAX_MS = 10 };

/* ---- waiters -------------------------------------------------------------------------------- */

static bool type_fits(struct hf_str wanted, struct hf_str type)
{
    size_t len = wanted.len - 1;

    assert(wanted.len > 0);
    if (hf_str_equal(wanted, type))
        return true;
    return wanted.ptr[len] == '*' && type.len > len && memcmp(wanted.ptr, type.ptr, len) == 0;
}

static struct hf_str text_copy(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

/* A copy in the scope, with all that it points to. */
static enum hf_status copy_event(struct hf_scope *s, const struct hf_event *from,
                                 struct hf_event *to)
{
    struct hf_str payload =
        text_copy(s, hf_str_of((const char *)from->payload.ptr, from->payload.len));

    *to = (struct hf_event){.id = text_copy(s, from->id),
                            .type = text_copy(s, from->type),
                            .key = text_copy(s, from->key),
                            .sequence = from->sequence,
                            .time_us = from->time_us,
                            .due_us = from->due_us,
                            .urgent = from->urgent,
                            .payload = hf_bytes_of(payload.ptr, payload.len),
                            .content_type = text_copy(s, from->content_type),
                            .schema = text_copy(s, from->schema),
                            .source = text_copy(s, from->source),
                            .correlation = text_copy(s, from->correlation),
                            .causation = text_copy(s, from->causation),
                            .aggregate = text_copy(s, from->aggregate),
                            .aggregate_type = text_copy(s, from->aggregate_type),
                            .tenant = text_copy(s, from->tenant),
                            .destination = text_copy(s, from->destination),
                            .trace_parent = text_copy(s, from->trace_parent),
                            .trace_state = text_copy(s, from->trace_state)};
    if (from->headers.ptr)
        to->headers = hf_item_copy(s, from->headers);
    return hf_scope_built(s);
}

/* Copy the event to all who wait for it; returns how many there were. *status: HF_OK, or a copy
 * failed. */
static size_t waiters_notify(struct hf_bus *bus, const struct hf_event *event,
                             enum hf_status *status)
{
    size_t count = 0;

    ASSERT_HELD(&bus->mutex);
    *status = HF_OK;
    for (struct hf_bus_wait *wait = bus->waits; wait; wait = wait->next) {
        if (wait->done || !type_fits(hf_str_of(wait->type, wait->type_len), event->type))
            continue;
        wait->status = copy_event(wait->box, event, &wait->event);
        wait->done = true;
        count++;
        if (wait->status != HF_OK)
            *status = wait->status;
    }
    return count;
}

static void wait_free(struct hf_bus_wait *wait)
{
    hf_scope_free(wait->box);
    hf__env_free(&wait->bus->env, wait, sizeof(*wait) + wait->type_len);
}

void hf__bus_forget_waits(struct hf_bus *bus)
{
    while (bus->waits) {
        struct hf_bus_wait *next = bus->waits->next;

        wait_free(bus->waits);
        bus->waits = next;
    }
}

enum hf_status hf_bus_wait_begin(struct hf_scope *s, struct hf_bus *bus, struct hf_str type,
                                 struct hf_bus_wait **out)
{
    struct hf_bus_wait *wait;

    call_begins(s);
    *out = NULL;
    TRY(hf__bus_check_type(s, type));
    wait = hf__env_zalloc(&bus->env, sizeof(*wait) + type.len);
    if (!wait)
        return hf_scope_fail(s, HF_NOMEM, "no memory to wait for an event");
    wait->bus = bus;
    wait->type_len = type.len;
    memcpy(wait->type, type.ptr, type.len);
    wait->box = hf_scope_new(&bus->env);
    if (!wait->box) {
        wait_free(wait);
        return hf_scope_fail(s, HF_NOMEM, "no memory to wait for an event");
    }
    pthread_mutex_lock(&bus->mutex);
    wait->next = bus->waits;
    bus->waits = wait;
    pthread_mutex_unlock(&bus->mutex);
    *out = wait;
    return HF_OK;
}

static bool is_done(struct hf_bus_wait *wait)
{
    bool done;

    pthread_mutex_lock(&wait->bus->mutex);
    done = wait->done;
    pthread_mutex_unlock(&wait->bus->mutex);
    return done;
}

/* Wait until the event is there or timeout_ms are over, by the clock of the scope, looking after
 * growing delays. */
static enum hf_status wait_until(struct hf_scope *s, struct hf_bus_wait *wait, uint32_t timeout_ms)
{
    const struct hf_env *env = hf_scope_env(s);
    int64_t begin_us = hf__env_elapsed_us(env);

    while (!is_done(wait)) {
        int64_t waited_ms = (hf__env_elapsed_us(env) - begin_us) / 1000;
        int64_t step_ms = 1 + waited_ms / 16 < STEP_MAX_MS ? 1 + waited_ms / 16 : STEP_MAX_MS;
        uint32_t left_ms = hf_scope_left_ms(s, STEP_MAX_MS);

        if (waited_ms >= timeout_ms)
            return hf_scope_fail(s, HF_TIMEOUT, "no event of type %.*s within %u ms",
                                 (int)wait->type_len, wait->type, timeout_ms);
        if (step_ms > timeout_ms - waited_ms)
            step_ms = timeout_ms - waited_ms;
        if (step_ms > left_ms)
            step_ms = left_ms ? left_ms : 1;
        TRY(hf_scope_sleep_ms(s, (uint32_t)step_ms));
    }
    return HF_OK;
}

enum hf_status hf_bus_wait_end(struct hf_scope *s, struct hf_bus_wait *wait, uint32_t timeout_ms,
                               struct hf_event *event)
{
    struct hf_bus_wait **at = &wait->bus->waits;
    enum hf_status status;

    call_begins(s);
    status = wait_until(s, wait, timeout_ms ? timeout_ms : WAIT_MS);
    *event = (struct hf_event){0};
    pthread_mutex_lock(&wait->bus->mutex);
    while (*at != wait) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = wait->next;
    pthread_mutex_unlock(&wait->bus->mutex);
    if (wait->done && wait->status == HF_OK) /* if only just */
        status = copy_event(s, &wait->event, event);
    else if (wait->done)
        status = hf_scope_fail(s, wait->status, "no memory for the event that was waited for");
    if (status != HF_OK)
        *event = (struct hf_event){0};
    wait_free(wait);
    return call_ends(s, status);
}

enum hf_status hf_bus_wait_for(struct hf_scope *s, struct hf_bus *bus, struct hf_str type,
                               uint32_t timeout_ms, struct hf_event *event)
{
    struct hf_bus_wait *wait;

    call_begins(s);
    *event = (struct hf_event){0};
    TRY(hf_bus_wait_begin(s, bus, type, &wait));
    return hf_bus_wait_end(s, wait, timeout_ms, event);
}

/* ---- active scopes -------------------------------------------------------------------------- */

void hf__bus_active_begin(struct hf_bus *bus, struct bus_active *active)
{
    pthread_mutex_lock(&bus->mutex);
    active->next = bus->active;
    active->link = &bus->active;
    if (active->next)
        active->next->link = &active->next;
    bus->active = active;
    pthread_mutex_unlock(&bus->mutex);
}

void hf__bus_active_end(struct hf_bus *bus, struct bus_active *active)
{
    pthread_mutex_lock(&bus->mutex);
    assert(*active->link == active);
    *active->link = active->next;
    if (active->next)
        active->next->link = active->link;
    pthread_mutex_unlock(&bus->mutex);
}

const struct bus_active *hf__bus_active(struct hf_bus *bus, const struct hf_scope *s)
{
    const struct bus_active *at;

    pthread_mutex_lock(&bus->mutex);
    for (at = bus->active; at && at->scope != s;)
        at = at->next;
    pthread_mutex_unlock(&bus->mutex);
    return at;
}

/* ---- handling ------------------------------------------------------------------------------- */

static enum hf_status policy_apply(struct hf_scope *s, struct hf_bus_call *call,
                                   enum hf_bus_unhandled policy, const char *why)
{
    if (policy == HF_BUS_IGNORE)
        return HF_OK;
    call->for_good = policy == HF_BUS_PARK;
    return hf_scope_fail(s, HF_NOT_FOUND, "%s events of type %.*s", why, HF_FMT(call->event.type));
}

static enum hf_status fail_unhandled(struct hf_scope *s, struct hf_bus_call *call, size_t waiters,
                                     enum hf_status handed)
{
    if (handed != HF_OK)
        return hf_scope_fail(s, handed, "no memory to copy the event to a waiter");
    return waiters ? HF_OK
                   : policy_apply(s, call, call->bus->o.unhandled, "there is no handler for");
}

/* Call the handler, and notify waiters. (3) and (4) of bus.c */
static enum hf_status event_handle(struct hf_scope *s, struct hf_bus_call *call)
{
    struct hf_bus *bus = call->bus;
    struct bus_handler *handler, *once = NULL;
    enum hf_status status, handed = HF_OK;
    hf_bus_fn *function = NULL;
    void *user = NULL;
    size_t waiters = 0;

    pthread_mutex_lock(&bus->mutex);
    handler = hf__bus_find(bus, call->event.type);
    if (handler) {
        function = handler->handle;
        user = handler->user;
        once = handler->once ? handler : NULL;
        if (once)
            hf__bus_take(bus, once);
    } else {
        waiters = waiters_notify(bus, &call->event, &handed);
    }
    pthread_mutex_unlock(&bus->mutex);
    if (!function)
        return fail_unhandled(s, call, waiters, handed);

    status = function(s, &call->event, user);

    pthread_mutex_lock(&bus->mutex);
    if (status == HF_OK)
        (void)waiters_notify(bus, &call->event, &handed);
    if (once)
        hf__bus_put_back(bus, once, status != HF_OK);
    pthread_mutex_unlock(&bus->mutex);
    return hf__bus_error_ensure(s, status);
}

static void event_deliver(struct hf_scope *s, struct hf_bus *bus, struct hf_delivery *delivery)
{
    struct bus_active active = {.scope = s, .event = &delivery->event->event};
    struct hf_bus_call call = {.bus = bus,
                               .phase = HF_BUS_HANDLE,
                               .event = delivery->event->event,
                               .end = event_handle};
    enum hf_status status;

    hf__bus_active_begin(bus, &active);
    status = hf__bus_run(s, &call);
    hf__bus_active_end(bus, &active);
    if (status == HF_OK && call.dropped)
        status = policy_apply(s, &call, bus->o.dropped, "the middleware dropped");
    delivery->status = status;
    delivery->for_good = status != HF_OK && call.for_good;
    delivery->error = status == HF_OK ? hf_str_of(NULL, 0) : hf_scope_error(s)->message;
}

static enum hf_status bus_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                               size_t len)
{
    for (size_t i = 0; i < len; i++)
        event_deliver(s, self, &deliveries[i]);
    return HF_OK;
}

const struct hf_sink_ops hf__bus_sink = {.size = sizeof(hf__bus_sink),
                                         .name = "bus",
                                         .batch_max = 1,
                                         .send = bus_send};
