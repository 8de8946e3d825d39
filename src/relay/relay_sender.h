/*
 * relay/relay_sender.h: batches that are under way to the sink, whether it can be reached, and how
 * much may be sent. relay_send.c has the essay; relay_breaker.c, relay_payload.c, relay_suspect.c
 * and relay_stuck.c are parts of it.
 *
 * The mutex of the relay guards struct relay_sender.
 */
#ifndef HF_RELAY_RELAY_SENDER_H
#define HF_RELAY_RELAY_SENDER_H

#include "relay/relay_reader.h"

#include <holdfast/relay.h>

enum {
    /* of payloads in a blob store that are fetched for a batch */
    RELAY_BLOB_BYTES = 64 * 1024 * 1024,
    RELAY_CAREFUL_MIN = 64,      /* deliveries of a bucket that are careful after a crash, and */
    RELAY_CAREFUL_MAX = 1 << 20, /* at most, when it goes on: relay_suspect.c */
    RELAY_TEXT_MAX = 256         /* of a text that is kept, with its NUL */
};

/*
 * The circuit breaker. An outage is all that is not BREAKER_CLOSED.
 *
 *     closed     all is sent                 the sink fails as a whole -> open
 *     open       nothing is, until probe_us  a probe succeeds -> half-open; an event that is sent as
 *                                            a probe is delivered -> closed
 *     half-open  one event at a time         it is delivered -> closed; it fails -> open
 */
enum breaker_state { BREAKER_CLOSED, BREAKER_OPEN, BREAKER_HALF_OPEN };

struct relay_breaker {
    enum breaker_state state;
    bool probing; /* a worker finds out whether the sink can be reached */
    int64_t probe_us;
    uint32_t probe_wait_ms;
    uint64_t reported_hash;    /* of the error of an outage that was reported last */
    int64_t reported_us;       /* when that was */
    char text[RELAY_TEXT_MAX]; /* the last error of the sink */
};

/* The store of payloads: relay_payload.c. */
struct payload_store {
    uint32_t failures; /* in a row */
    bool asking;       /* a batch finds out whether the store answers again */
    int64_t retry_us;
};

struct relay_sender {
    uint32_t running;  /* calls of the sink, and what belongs to them */
    const void *alone; /* the event (struct held) or competing worker that runs alone, until its
                          outcome is noted; NULL: none. Only its owner ends it, or relay_stuck.c, after
                          which it may be another's */
    bool has_left;     /* a delivery has not returned, and the relay has left: relay_stuck.c */
    double tokens;     /* of the rate, at tokens_us */
    int64_t tokens_us;
    struct relay_breaker breaker;
    struct payload_store payloads;
};

/* A call of the sink that has not returned: relay_stuck.c. */
struct relay_call {
    const struct hf_delivery *deliveries; /* as the sink has them */
    size_t len;                           /* 0: there is no call */
    int64_t since_us;
    bool stuck, dealt_with;
    bool looked_at; /* the heartbeat thread reads it at this moment: it has to stay */
};

/* A batch for the sink: by event, how it is held, as it was read, and its delivery. */
struct sending {
    struct held **helds;
    struct hf_outbox_event *events;
    struct hf_delivery *deliveries;
    size_t len;
};

/* ---- relay_send.c --------------------------------------------------------------------------- */

/* May something be sent now? *next_us: if not, when. The mutex is held. */
bool hf__send_may(struct hf_relay *relay, int64_t now_us, int64_t *next_us);

/* Take what can be sent at once, up to `max`. The mutex is held. */
size_t hf__send_take(struct hf_relay *relay, size_t max, int64_t now_us, struct held **batch);
void hf__send_run(struct relay_worker *worker, struct held *batch, size_t len, bool was_probe);

/* The event that ran alone has ended: others may begin. The mutex is held. */
void hf__alone_end(struct hf_relay *relay, struct held *held);

/* One call of the sink, with the deadline of a delivery; can be canceled. */
enum hf_status hf__relay_sink_call(struct relay_worker *worker, struct hf_delivery *deliveries,
                                   size_t len);
size_t hf__relay_event_size(const struct hf_outbox_event *event);

void hf__relay_report_event(struct hf_relay *relay, const struct hf_outbox_event *event,
                            enum hf_relay_outcome outcome, const struct hf_error *error);

/* DEV_CHECKS. The mutex is held. */
void hf__sender_check(const struct hf_relay *relay);

/* ---- relay_breaker.c: the breaker and the rate; the mutex is held --------------------------- */

static inline bool breaker_is_open(const struct relay_sender *sender)
{
    return sender->breaker.state == BREAKER_OPEN;
}

static inline bool breaker_has_outage(const struct relay_sender *sender)
{
    return sender->breaker.state != BREAKER_CLOSED;
}

/* The sink failed as a whole (*report: report that), or an event was sent. */
void hf__breaker_failed(struct hf_relay *relay, bool was_probe, const struct hf_error *error,
                        bool *report);
void hf__breaker_passed(struct hf_relay *relay, bool was_probe);

/* Probe a sink that has a function for it. Takes the mutex. */
void hf__probe_run(struct relay_worker *worker);

/* How many of `want` events the rate allows now. */
size_t hf__rate_allows(struct hf_relay *relay, size_t want, int64_t now_us, int64_t *next_us);
void hf__rate_spend(struct hf_relay *relay, size_t spent);

/* ---- relay_payload.c ------------------------------------------------------------------------ */

enum hf_status hf__sending_room(struct hf_scope *s, size_t len, struct sending *to);
void hf__sending_add(struct sending *to, struct held *held, const struct hf_outbox_event *event);

/* Fetch the payloads that are in a blob store, in `work`, whose deadline starts over; blob_error
 * says which could not be fetched. */
void hf__payload_fetch(struct relay_worker *worker, struct hf_outbox_event *events, size_t len);

/* When events whose blob store does not answer are retried. Takes the mutex. */
int64_t hf__payload_again_us(struct hf_relay *relay);

/* Fetch payloads, and move events to `apart` that have none then, or are not ours any more, with the
 * later events of their keys. The deliveries of `apart` have the errors, or no event when the failure
 * is not theirs. In `work`. */
enum hf_status hf__payload_prepare(struct relay_worker *worker, struct sending *to,
                                   struct sending *apart);

/* ---- relay_suspect.c: events that may have crashed a process -------------------------------- */

/* How many deliveries of a bucket are careful after the end of an owner that had begun with `window`. */
uint32_t hf__suspect_window(const struct hf_relay *relay, uint32_t window);

/* The bucket was taken, and its first `window` deliveries are careful. The mutex is held. */
void hf__suspect_begin(struct hf_relay *relay, struct relay_bucket *bucket, uint32_t window);

/* Are all events delivered that may be to blame for the crash? The mutex is held. */
bool hf__suspect_is_over(struct hf_relay *relay, struct relay_bucket *bucket);

/* Does the event have to run alone? */
bool hf__suspect_is_alone(const struct hf_relay *relay, const struct held *held);

/* Subtract the crash that this relay, which lives, has counted itself. True: there was one. */
bool hf__suspect_read(const struct hf_relay *relay, struct hf_outbox_event *event);

/* The event was taken from its key, and will be sent. The mutex is held. */
void hf__suspect_take(struct hf_relay *relay, struct held *held);

/* Count the attempts of careful events before they begin. Events for which that fails, or which are
 * given up, are moved to `apart`, as hf__payload_prepare() does it. */
enum hf_status hf__suspect_count(struct relay_worker *worker, struct sending *to,
                                 struct sending *apart);

/* Undo that for events that are put back without an attempt. */
void hf__suspect_uncount(struct relay_worker *worker, const struct sending *sent);

/* ---- relay_stuck.c: deliveries that do not return ------------------------------------------- */

/* The worker is about to call the sink with these; and the call has returned. The mutex is held. */
void hf__relay_stuck_begin(struct relay_worker *worker, const struct hf_delivery *deliveries,
                           size_t len);
void hf__relay_stuck_end(struct relay_worker *worker);

/* Does this relay have to leave its work to others for now? The mutex is held. */
bool hf__relay_stuck_has_to_leave(const struct hf_relay *relay);

/* Look for calls that do not return, and deal with them. Returns in how many microseconds to look
 * again. */
int64_t hf__relay_stuck_step(struct hf_relay *relay);

#endif
