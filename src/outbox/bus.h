/*
 * outbox/bus.h: what the files of the bus share. bus.c has the essay.
 */
#ifndef HF_OUTBOX_BUS_H
#define HF_OUTBOX_BUS_H

#include "outbox/outbox.h"

#include <holdfast/bus.h>

#include <pthread.h>

#include "base/assert_held.h"

/* A handler of a type. Whoever calls it has copied what it needs: it may be gone meanwhile. */
struct bus_handler {
    struct bus_handler *next; /* in bus->taken */
    hf_bus_fn *handle;
    void *user;
    bool once;
    bool off; /* taken: not to be put back */
    size_t type_len;
    char type[];
};

/* Added, and there until the bus is closed. */
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
    struct hf_scope *box; /* where the event is put; of whoever has the mutex */
    struct hf_event event;
    enum hf_status status; /* of putting it there */
    bool done;
    size_t type_len;
    char type[];
};

/* A scope in which an event is handled, or which has middleware called for somebody who emits: it
 * is there until that is over. */
struct bus_active {
    struct bus_active *next, **link;
    const struct hf_scope *scope;
    const struct hf_event *event; /* that is being handled; NULL: none */
    bool helper;                  /* of who emits */
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
    struct bus_handler *taken; /* once, and running now */
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

/* Can something be registered for it? HF_INVALID. */
enum hf_status hf__bus_check_type(struct hf_scope *s, struct hf_str type);

/* The most exact handler that fits, or NULL. The mutex is held. */
struct bus_handler *hf__bus_find(struct hf_bus *bus, struct hf_str type);

/* Out of the registry while it is called; and back, or away for good when it has done its duty, was
 * taken off, or another has its type now. The mutex is held. */
void hf__bus_take(struct hf_bus *bus, struct bus_handler *handler);
void hf__bus_put_back(struct hf_bus *bus, struct bus_handler *handler, bool failed);

/* ---- bus_call.c: the way through the middleware ---------------------------------------------- */

/* The end of the way. */
typedef enum hf_status bus_end_fn(struct hf_scope *s, struct hf_bus_call *call);

struct bus_frame; /* one middleware that is being called */

struct hf_bus_call {
    struct hf_bus *bus;
    enum hf_bus_phase phase;
    struct hf_event event;
    struct hf_tx *tx;
    const struct bus_middleware *last; /* later ones are for the next event */
    struct bus_frame *frame;           /* the innermost */
    bus_end_fn *end;
    bool reached; /* the end */
    bool dropped;
    bool for_good;           /* handling: it would fail again */
    struct hf_event *stored; /* emitting: where to put it at the end */
};

/* All the way; what became of it is in the call. */
enum hf_status hf__bus_run(struct hf_scope *s, struct hf_bus_call *call);

/* A failure that was returned without a word gets one. */
enum hf_status hf__bus_said(struct hf_scope *s, enum hf_status status);

/* ---- bus_handle.c ---------------------------------------------------------------------------- */

/* The sink of the bus's relay; `self` is the bus. */
extern const struct hf_sink_ops hf__bus_sink;

/* Note what goes on in a scope, and that it is over. What goes on in this scope, which is the
 * caller's own; NULL: nothing. */
void hf__bus_active_begin(struct hf_bus *bus, struct bus_active *active);
void hf__bus_active_end(struct hf_bus *bus, struct bus_active *active);
const struct bus_active *hf__bus_active(struct hf_bus *bus, const struct hf_scope *s);

/* Close: nobody waits any more. */
void hf__bus_forget_waits(struct hf_bus *bus);

#endif
