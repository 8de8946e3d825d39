/*
 * outbox/bus.h: what the files of the bus share. bus.c has the essay.
 */
#ifndef HF_OUTBOX_BUS_H
#define HF_OUTBOX_BUS_H

#include "outbox/outbox.h"

#include <holdfast/bus.h>

#include <pthread.h>

#include "base/assert_held.h"

/* A handler of a type. A caller copies what it needs, as the handler may be freed meanwhile. */
struct bus_handler {
    struct bus_handler *next; /* in bus->taken */
    hf_bus_fn *handle;
    void *user;
    bool once;
    bool off; /* it was removed while it ran: it is not put back */
    size_t type_len;
    char type[];
};

/* Middleware stays until the bus is closed. */
struct bus_middleware {
    struct bus_middleware *next;
    int phases;
    hf_bus_middleware_fn *call;
    void *user;
};

/* Somebody who waits for an event. */
struct hf_bus_wait {
    struct hf_bus *bus;
    struct hf_bus_wait *next;
    struct hf_scope *box; /* memory of the event; the bus's mutex guards it */
    struct hf_event event;
    enum hf_status status; /* of copying the event */
    bool done;
    size_t type_len;
    char type[];
};

/* A scope in which an event is handled, or in which a helper calls middleware for an emitter. The
 * entry lives until that is over. */
struct bus_active {
    struct bus_active *next, **link;
    const struct hf_scope *scope;
    const struct hf_event *event; /* the event that is being handled; NULL: none */
    bool helper;                  /* of an emitter */
};

struct hf_bus {
    struct hf_env env;
    struct hf_outbox *outbox;
    struct hf_bus_options o; /* with the defaults filled in; `relay` is NULL */
    struct hf_sink *sink;
    struct hf_relay *relay;
    hf_relay_stuck_fn *on_stuck; /* of the options of its relay, with its user */
    void *stuck_user;
    pthread_mutex_t mutex;         /* guards all below */
    struct bus_handler **handlers; /* sorted by type */
    size_t handlers_len;
    size_t handlers_cap;       /* at least handlers_len + taken_len, so what was taken fits again */
    struct bus_handler *taken; /* handlers for one event that are running */
    size_t taken_len;
    struct bus_middleware *first, *last;
    struct hf_bus_wait *waits;
    struct bus_active *active;
};

/* ---- bus.c: who handles what ----------------------------------------------------------------- */

static inline struct hf_str handler_type(const struct bus_handler *handler)
{
    return hf_str_of(handler->type, handler->type_len);
}

/* HF_INVALID: not a type that a handler can be registered for. */
enum hf_status hf__bus_check_type(struct hf_scope *s, struct hf_str type);

/* The most exact handler that fits, or NULL. The mutex is held. */
struct bus_handler *hf__bus_find(struct hf_bus *bus, struct hf_str type);

/* Take a handler out of the registry while it is called; and put it back, or free it when it has
 * succeeded, was removed, or another handler has its type now. The mutex is held. */
void hf__bus_take(struct hf_bus *bus, struct bus_handler *handler);
void hf__bus_put_back(struct hf_bus *bus, struct bus_handler *handler, bool failed);

/* ---- bus_call.c: the way through the middleware ---------------------------------------------- */

/* What the last middleware calls. */
typedef enum hf_status bus_end_fn(struct hf_scope *s, struct hf_bus_call *call);

struct bus_frame; /* one middleware that is being called */

struct hf_bus_call {
    struct hf_bus *bus;
    enum hf_bus_phase phase;
    struct hf_event event;
    struct hf_tx *tx;
    const struct bus_middleware *last; /* the last one that is called for this event */
    struct bus_frame *frame;           /* the innermost */
    bus_end_fn *end;
    bool reached; /* the end was called */
    bool dropped;
    bool for_good;           /* handling: it would fail again */
    struct hf_event *stored; /* emitting: where the end puts the event */
};

/* Pass the event through the middleware and to the end; the outcome is in the call. */
enum hf_status hf__bus_run(struct hf_scope *s, struct hf_bus_call *call);

/* A status that was returned without an error in the scope gets one. Returns it. */
enum hf_status hf__bus_error_ensure(struct hf_scope *s, enum hf_status status);

/* ---- bus_handle.c ---------------------------------------------------------------------------- */

/* The sink of the bus's relay; `self` is the bus. */
extern const struct hf_sink_ops hf__bus_sink;

/* Add and remove the entry of a scope; and find the entry of the caller's own scope, or NULL. */
void hf__bus_active_begin(struct hf_bus *bus, struct bus_active *active);
void hf__bus_active_end(struct hf_bus *bus, struct bus_active *active);
const struct bus_active *hf__bus_active(struct hf_bus *bus, const struct hf_scope *s);

/* Free all waits when the bus is closed. */
void hf__bus_forget_waits(struct hf_bus *bus);

#endif
