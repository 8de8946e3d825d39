/*
 * patterns/bus_call.c: the way of an event through the middleware, and emitting.
 *
 * Each middleware is a frame on the stack: hf_bus_next() calls the next one inside of it, and the
 * end of the way inside of the last. A frame remembers whether it went on or dropped the event, so
 * that doing neither, both, or one twice is found out, also when the middleware says nothing of it.
 *
 *  (1) An event that is emitted is stored when it has come to the end of the way and nothing failed
 *      on the way back. All events of a call are stored together, or none is.
 *  (2) A middleware that fails without having gone on has decided: its failure is what is told.
 *  (3) The id that middleware sees is the one that is stored, unless it sets another.
 */
#include "patterns/bus.h"

struct bus_frame {
    struct bus_frame *outer;
    const struct bus_middleware *middleware;
    size_t number; /* among those of this phase, from 1 */
    bool next, drop, wrong;
};

enum hf_status hf__bus_said(struct hf_scope *s, enum hf_status status)
{
    if (status == HF_OK || hf_scope_error(s)->status == status)
        return status;
    return hf_scope_fail(s, status, "%s", hf_status_text(status));
}

/* ---- middleware ----------------------------------------------------------------------------- */

/* The next one of this phase behind `at` (NULL: the first); NULL: there is none. */
static const struct bus_middleware *following(const struct hf_bus_call *call,
                                              const struct bus_middleware *at)
{
    do {
        if (at == call->last)
            return NULL;
        at = at ? at->next : call->bus->first;
    } while (!(at->phases & (int)call->phase));
    return at;
}

static const char *phase_name(const struct hf_bus_call *call)
{
    return call->phase == HF_BUS_EMIT ? "emitting" : "handling";
}

static enum hf_status go_on(struct hf_scope *s, struct hf_bus_call *call,
                            const struct bus_middleware *at, size_t number)
{
    struct bus_frame frame = {.outer = call->frame,
                              .middleware = following(call, at),
                              .number = number};
    enum hf_status status;

    if (!frame.middleware) {
        call->reached = true;
        return call->end(s, call);
    }
    call->frame = &frame;
    status = frame.middleware->call(s, call, frame.middleware->user);
    call->frame = frame.outer;
    if (frame.wrong)
        return hf_scope_fail(s, HF_INTERNAL,
                             "middleware %zu while %s went on or dropped the event more than once",
                             number, phase_name(call));
    if (status == HF_OK && !frame.next && !frame.drop)
        return hf_scope_fail(s, HF_INTERNAL,
                             "middleware %zu while %s neither went on nor dropped the event",
                             number, phase_name(call));
    return hf__bus_said(s, status); /* (2) */
}

enum hf_status hf__bus_run(struct hf_scope *s, struct hf_bus_call *call)
{
    pthread_mutex_lock(&call->bus->mutex);
    call->last = call->bus->last;
    pthread_mutex_unlock(&call->bus->mutex);
    return go_on(s, call, NULL, 1);
}

static enum hf_status decide(struct hf_scope *s, struct bus_frame *frame)
{
    if (frame->next || frame->drop) {
        frame->wrong = true;
        return hf_scope_fail(s, HF_INTERNAL, "middleware %zu has decided on the event already",
                             frame->number);
    }
    return HF_OK;
}

enum hf_status hf_bus_next(struct hf_scope *s, struct hf_bus_call *call)
{
    struct bus_frame *frame = call->frame;

    call_begins(s);
    TRY(decide(s, frame));
    frame->next = true;
    return go_on(s, call, frame->middleware, frame->number + 1);
}

enum hf_status hf_bus_drop(struct hf_scope *s, struct hf_bus_call *call)
{
    struct bus_frame *frame = call->frame;

    call_begins(s);
    TRY(decide(s, frame));
    frame->drop = true;
    call->dropped = true;
    return HF_OK;
}

struct hf_event *hf_bus_call_event(struct hf_bus_call *call)
{
    return &call->event;
}

enum hf_bus_phase hf_bus_call_phase(const struct hf_bus_call *call)
{
    return call->phase;
}

struct hf_tx *hf_bus_call_tx(const struct hf_bus_call *call)
{
    return call->tx;
}

/* ---- emitting ------------------------------------------------------------------------------- */

static enum hf_status keep(struct hf_scope *s, struct hf_bus_call *call)
{
    (void)s;
    *call->stored = call->event;
    return HF_OK;
}

/* What is emitted while another event is handled has that one as its cause. */
static void fill(const struct hf_bus *bus, const struct hf_event *cause, struct hf_event *event)
{
    if (!event->time_us)
        event->time_us = bus->env.wall_us(bus->env.user);
    if (!cause)
        return;
    if (!event->causation.len)
        event->causation = cause->id;
    if (!event->correlation.len)
        event->correlation = cause->correlation.len ? cause->correlation : cause->id;
    if (!event->trace_parent.len) {
        event->trace_parent = cause->trace_parent;
        event->trace_state = cause->trace_state;
    }
}

enum hf_status hf_bus_emit(struct hf_scope *s, struct hf_bus *bus, const struct hf_event *events,
                           size_t len)
{
    const struct hf_event *cause = hf__bus_cause(bus, s);
    struct hf_tx *tx = hf_scope_tx(s);
    struct hf_event *stored;
    size_t stored_len = 0;
    struct hf_str *places;

    call_begins(s);
    if (len == 0)
        return HF_OK;
    if (len > SIZE_MAX / sizeof(*stored))
        return hf_scope_fail(s, HF_LIMIT, "%zu events are too many", len);
    stored = hf_scope_alloc(s, len * sizeof(*stored));
    places = hf_scope_alloc(s, len * sizeof(*places));
    TRY(hf_scope_built(s));
    for (size_t i = 0; i < len; i++) {
        struct hf_bus_call call = {.bus = bus,
                                   .phase = HF_BUS_EMIT,
                                   .event = events[i],
                                   .tx = tx && hf_tx_db(tx) == bus->outbox->db ? tx : NULL,
                                   .end = keep,
                                   .stored = &stored[stored_len]};

        fill(bus, cause, &call.event);
        places[stored_len] = hf__outbox_reserve(s, bus->outbox, &call.event);
        if (!call.event.id.len)
            call.event.id = places[stored_len];
        TRY(hf_scope_built(s));
        TRY(hf__bus_run(s, &call)); /* (1) */
        stored_len += call.reached;
    }
    return stored_len ? hf__outbox_emit_reserved(s, bus->outbox, stored, places, stored_len)
                      : HF_OK;
}
