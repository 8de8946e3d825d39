/*
 * An event bus: functions that are called when events of a type were emitted, durably through an
 * outbox. An event that is emitted in a transaction is handled at least once after the commit, also
 * if the process dies in between.
 *
 *     enum hf_status mail(struct hf_scope *s, const struct hf_event *event, void *user);
 *
 *     struct hf_event event = {.type = HF_STR("order.placed"), .key = id};
 *     struct hf_bus *bus;
 *
 *     if (hf_bus_open(s, outbox, NULL, &bus) != HF_OK ||
 *         hf_bus_on(s, bus, HF_STR("order.placed"), mail, NULL) != HF_OK ||
 *         hf_bus_start(s, bus) != HF_OK || hf_bus_emit(s, bus, &event, 1) != HF_OK)
 *         return complain(hf_scope_error_text(s));
 *
 * A type has one handler: registering a second is HF_DUPLICATE. A handler may be for a pattern of
 * types, "order.*" or "*"; the most exact match is called. Middleware is called around emitting and
 * around handling, and can change, replace or drop an event.
 *
 * Processes with a bus on one outbox share its events, so each of them needs all handlers.
 *
 * Any thread may use a bus, also inside of handlers. Handlers run on the threads of the bus's relay
 * (relay.h), several at once, but those of one key one after the other.
 */
#ifndef HOLDFAST_BUS_H
#define HOLDFAST_BUS_H

#include <holdfast/base.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_bus;

/*
 * Handle an event. HF_OK: it is done. Anything else failed, as hf_scope_fail() or a call on `s`
 * says: it is retried, or becomes a dead letter, whichever status it is. The scope is the
 * relay's: do not reset it. Events that are emitted on this bus with it have this one as their
 * cause, and its correlation (its id, if it has none) and trace, unless they say otherwise.
 */
typedef enum hf_status hf_bus_fn(struct hf_scope *s, const struct hf_event *event, void *user);

/* What to do with an event that nobody handles. */
enum hf_bus_unhandled {
    HF_BUS_PARK = 1, /* a dead letter, to be seen and delivered again; the default */
    HF_BUS_RETRY,    /* as any failure: somebody may be registered in time */
    HF_BUS_IGNORE    /* it is done */
};

/* A failure in the background: of a handler, of a relay, of the database. `event` may be NULL.
 * Called by several threads at once. */
typedef void hf_bus_error_fn(const struct hf_outbox_event *event, const struct hf_error *error,
                             enum hf_relay_outcome outcome, void *user);

/* For so many events of one hf_bus_emit() middleware is called at once, at most. */
enum { HF_BUS_CONCURRENCY_MAX = 100 };

struct hf_bus_options {
    size_t size;                          /* set by HF_OPTIONS() */
    enum hf_bus_unhandled unhandled;      /* default HF_BUS_PARK */
    enum hf_bus_unhandled dropped;        /* by middleware while handling; default HF_BUS_IGNORE */
    hf_bus_error_fn *on_error;            /* default: the log of the env */
    void *user;                           /* handed to it */
    const struct hf_relay_options *relay; /* without on_ended, on_error and dry_run, which are
                                             the bus's own; with competing, no order is kept */
    uint32_t middleware_concurrency;      /* for so many events of one hf_bus_emit() middleware is
                                             called at once; default 1, by the caller's thread; at
                                             most HF_BUS_CONCURRENCY_MAX */
};

/* A bus over that outbox, which has to outlive it. Nothing is handled yet. HF_INVALID: an option
 * cannot be. And what hf_relay_open() fails with. */
HF_API HF_NODISCARD enum hf_status hf_bus_open(struct hf_scope *s, struct hf_outbox *outbox,
                                               const struct hf_bus_options *options,
                                               struct hf_bus **bus);

/* Stops it first. NULL is accepted. */
HF_API void hf_bus_close(struct hf_bus *bus);

/* Begin to handle; stop as hf_relay_stop() does, which is not for handlers. */
HF_API HF_NODISCARD enum hf_status hf_bus_start(struct hf_scope *s, struct hf_bus *bus);
HF_API HF_NODISCARD enum hf_status hf_bus_stop(struct hf_scope *s, struct hf_bus *bus);

/* Its relay, for metrics, pause and, with no_threads, hf_relay_step(). */
HF_API struct hf_relay *hf_bus_relay(struct hf_bus *bus);

/* ---- emitting ------------------------------------------------------------------------------- */

/*
 * Through the middleware, then hf_outbox_emit(), at once, whatever transaction the scope has. No
 * event is stored when a middleware fails. The middleware sees the events one after the other, with
 * their time and the id that they will have, which it may replace. No events, or all of them
 * dropped: nothing is stored.
 *
 * With middleware_concurrency it is called for several events at once, on as many threads, which
 * are started for the call and have ended when it returns. The events are stored in the order of
 * the call all the same. The scope of such middleware is its thread's own: without a transaction,
 * with the deadline of the caller's, and canceled when that is, or when an event before this one
 * failed. When several fail, the error is that of the first in the order of the call: its status,
 * its message, and whether it may have happened. What such middleware consumes is not counted in
 * the caller's scope.
 *
 * The caller's thread calls it, for one event after the other, when there is one event, when they
 * are added to a transaction, and when the scope is that of such middleware.
 */
HF_API HF_NODISCARD enum hf_status hf_bus_emit(struct hf_scope *s, struct hf_bus *bus,
                                               const struct hf_event *events, size_t len);

/* The same, then hf_outbox_emit_into(): they are handled when the transaction was committed.
 * Since 0.1. */
HF_API HF_NODISCARD enum hf_status hf_bus_emit_into(struct hf_scope *s, struct hf_bus *bus,
                                                    struct hf_tx *tx, const struct hf_event *events,
                                                    size_t len);

/* ---- handlers ------------------------------------------------------------------------------- */

/*
 * Call `handle` for events of that type; "order.*" is for all whose type begins with "order.", and
 * "*" for all. HF_DUPLICATE: it has a handler. HF_INVALID: an empty type, or one with a '*' that is
 * not its last part.
 */
HF_API HF_NODISCARD enum hf_status hf_bus_on(struct hf_scope *s, struct hf_bus *bus,
                                             struct hf_str type, hf_bus_fn *handle, void *user);

/*
 * For the next one only: it is taken away before it is called. When it fails it is there again, for
 * the next attempt, unless the type has another handler by then.
 */
HF_API HF_NODISCARD enum hf_status hf_bus_once(struct hf_scope *s, struct hf_bus *bus,
                                               struct hf_str type, hf_bus_fn *handle, void *user);

/* For several types: all of them, or none. */
HF_API HF_NODISCARD enum hf_status hf_bus_subscribe(struct hf_scope *s, struct hf_bus *bus,
                                                    const struct hf_str *types, size_t len,
                                                    hf_bus_fn *handle, void *user);

/* Take the handler of the type away, if it is this function with this user, also one that is
 * running for its one event. False: it is not. It may still be running. */
HF_API bool hf_bus_off(struct hf_bus *bus, struct hf_str type, hf_bus_fn *handle, void *user);

/* All of a type (absent: of every type). Returns how many. */
HF_API size_t hf_bus_off_all(struct hf_bus *bus, struct hf_str type);

/*
 * Wait for the next event of that type or family, for the time left of the scope, at most
 * timeout_ms (0: 5000). The handler of the type, if there is one, is called as well, and has to
 * succeed; if there is none the event counts as handled. What other processes handle is not seen.
 * The event is copied into the scope.
 *
 * HF_TIMEOUT, HF_CANCELED, HF_INVALID as hf_bus_on().
 */
HF_API HF_NODISCARD enum hf_status hf_bus_wait_for(struct hf_scope *s, struct hf_bus *bus,
                                                   struct hf_str type, uint32_t timeout_ms,
                                                   struct hf_event *event);

/*
 * The same in two steps, for who does something in between that leads to the event, such as
 * emitting it: it is waited for from the beginning on, so it cannot be missed. The end frees the
 * wait, whatever it returns, and belongs before hf_bus_close().
 */
struct hf_bus_wait;
HF_API HF_NODISCARD enum hf_status hf_bus_wait_begin(struct hf_scope *s, struct hf_bus *bus,
                                                     struct hf_str type, struct hf_bus_wait **wait);
HF_API HF_NODISCARD enum hf_status hf_bus_wait_end(struct hf_scope *s, struct hf_bus_wait *wait,
                                                   uint32_t timeout_ms, struct hf_event *event);

/* How many handlers there are, whether this exact type has one, and for which types. */
HF_API size_t hf_bus_count(struct hf_bus *bus);
HF_API bool hf_bus_has(struct hf_bus *bus, struct hf_str type);
HF_API HF_NODISCARD enum hf_status hf_bus_types(struct hf_scope *s, struct hf_bus *bus,
                                                const struct hf_str **types, size_t *len);

/* ---- middleware ----------------------------------------------------------------------------- */

enum hf_bus_phase { HF_BUS_EMIT = 1, HF_BUS_HANDLE = 2 }; /* both: HF_BUS_EMIT | HF_BUS_HANDLE */

struct hf_bus_call; /* an event on its way */

/*
 * Around the rest of the way: calls hf_bus_next() once, or hf_bus_drop(), or fails, and may look
 * before and after. Doing neither, or both, or one twice, is a failure: HF_INTERNAL. What it
 * returns is what became of the event. While handling it is called also when nobody handles the
 * event, and the handler is looked for by the type that the event has in the end.
 */
typedef enum hf_status hf_bus_middleware_fn(struct hf_scope *s, struct hf_bus_call *call,
                                            void *user);

HF_API HF_NODISCARD enum hf_status hf_bus_next(struct hf_scope *s, struct hf_bus_call *call);

/* Not to be stored; not to be handled. */
HF_API HF_NODISCARD enum hf_status hf_bus_drop(struct hf_scope *s, struct hf_bus_call *call);

/* The event as it is now; may be changed in place, or replaced, before hf_bus_next(). What it
 * points to belongs into the scope. */
HF_API struct hf_event *hf_bus_call_event(struct hf_bus_call *call);
HF_API enum hf_bus_phase hf_bus_call_phase(const struct hf_bus_call *call);

/* Emitting: the transaction of hf_bus_emit_into(), or NULL. */
HF_API struct hf_tx *hf_bus_call_tx(const struct hf_bus_call *call);

/* Added ones are called inside of those before them, from the next event on. */
HF_API HF_NODISCARD enum hf_status hf_bus_use(struct hf_scope *s, struct hf_bus *bus, int phases,
                                              hf_bus_middleware_fn *middleware, void *user);

/* ---- what has failed: see outbox.h ---------------------------------------------------------- */

/* The outbox it is over. */
HF_API struct hf_outbox *hf_bus_outbox(struct hf_bus *bus);

#ifdef __cplusplus
}
#endif

#endif
