/*
 * outbox/bus_call.c: the way of an event through the middleware.
 *
 * Each middleware is a frame on the stack: hf_bus_next() calls the next one inside of it, and the
 * end of the way inside of the last. A frame remembers whether its middleware called hf_bus_next() or
 * hf_bus_drop(), so that calling neither, both, or one twice is an error, whatever the middleware
 * returns.
 *
 * A middleware may fail without calling either: its failure is the outcome.
 */
#include "outbox/bus.h"

struct bus_frame {
    struct bus_frame *outer;
    const struct bus_middleware *middleware;
    size_t number; /* among those of this phase, from 1 */
    bool next, drop, wrong;
};

enum hf_status hf__bus_error_ensure(struct hf_scope *s, enum hf_status status)
{
    if (status == HF_OK || hf_scope_error(s)->status == status)
        return status;
    return hf_scope_fail(s, status, "%s", hf_status_text(status));
}

/* ---- middleware ----------------------------------------------------------------------------- */

/* The next one of this phase behind `at` (NULL: the first); NULL: there is none. */
static const struct bus_middleware *middleware_after(const struct hf_bus_call *call,
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
                              .middleware = middleware_after(call, at),
                              .number = number};
    enum hf_status status;

    if (!frame.middleware) {
        call->reached = true;
        return call->end(s, call);
    }
    call->frame = &frame;
    status = frame.middleware->call(s, call, frame.middleware->user);
    assert(call->frame == &frame);
    call->frame = frame.outer;
    if (frame.wrong)
        return hf_scope_fail(s, HF_INTERNAL,
                             "middleware %zu, while %s, called hf_bus_next() or hf_bus_drop() more "
                             "than once",
                             number, phase_name(call));
    if (status == HF_OK && !frame.next && !frame.drop)
        return hf_scope_fail(
            s, HF_INTERNAL,
            "middleware %zu, while %s, called neither hf_bus_next() nor hf_bus_drop()", number,
            phase_name(call));
    return hf__bus_error_ensure(s, status);
}

enum hf_status hf__bus_run(struct hf_scope *s, struct hf_bus_call *call)
{
    pthread_mutex_lock(&call->bus->mutex);
    call->last = call->bus->last;
    pthread_mutex_unlock(&call->bus->mutex);
    return go_on(s, call, NULL, 1);
}

static enum hf_status frame_check_undecided(struct hf_scope *s, struct bus_frame *frame)
{
    if (frame->next || frame->drop) {
        frame->wrong = true;
        return hf_scope_fail(s, HF_INTERNAL,
                             "middleware %zu has already called hf_bus_next() or hf_bus_drop()",
                             frame->number);
    }
    return HF_OK;
}

enum hf_status hf_bus_next(struct hf_scope *s, struct hf_bus_call *call)
{
    struct bus_frame *frame = call->frame;

    call_begins(s);
    TRY(frame_check_undecided(s, frame));
    frame->next = true;
    return go_on(s, call, frame->middleware, frame->number + 1);
}

enum hf_status hf_bus_drop(struct hf_scope *s, struct hf_bus_call *call)
{
    struct bus_frame *frame = call->frame;

    call_begins(s);
    TRY(frame_check_undecided(s, frame));
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
