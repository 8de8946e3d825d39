/*
 * events/subscribe/subscribe.h: what the files of subscriptions share. subscribe.c has the essay.
 */
#ifndef HF_EVENTS_SUBSCRIBE_SUBSCRIBE_H
#define HF_EVENTS_SUBSCRIBE_SUBSCRIBE_H

#include "events/store/events.h"

#include <holdfast/subscribe.h>

#include "coord/lease.h"
#include "coord/pump.h"
#include "coord/watch.h"

enum {
    CHECKPOINT_MAX = HF_POSITION_LEN, /* bytes: a position, or the digits of a version */
    SUBSCRIPTION_ERROR_MAX = 2048     /* bytes of an error's text that are kept */
};

_Static_assert((int)EVENTS_VERSION_LEN <= (int)CHECKPOINT_MAX, "a version fits into a checkpoint");

/* A checkpoint, with a NUL behind it; "": none. */
struct checkpoint {
    char text[CHECKPOINT_MAX + 1];
};

static inline struct hf_str checkpoint_str(const struct checkpoint *checkpoint)
{
    return hf_str_of(checkpoint->text, strlen(checkpoint->text));
}

static inline struct checkpoint checkpoint_of(struct hf_str text)
{
    struct checkpoint checkpoint = {0};

    if (text.len <= CHECKPOINT_MAX && text.len)
        memcpy(checkpoint.text, text.ptr, text.len);
    return checkpoint;
}

/* ---- subscribe_item.c ----------------------------------------------------------------------- */

/* The item of a subscription: q.NAME/q. */
struct sub_item {
    bool found;
    struct hf_str holder; /* k and so on: see subscribe_item.c. Absent: nobody */
    struct hf_str owner;
    struct hf_str opener;
    struct hf_str beat;
    uint32_t lease_ms;
    uint64_t fence;
    struct checkpoint at;
    uint64_t handled;
    int64_t moved_us;
    struct hf_str rebuild; /* a rebuild was requested; absent: none was */
    struct hf_str rebuild_after;
    struct hf_str failure;
    uint32_t window; /* subscribe_suspect.c */
    uint32_t crashes;
    struct checkpoint crash_at;
};

/* Digits, as many as a version may have. */
bool hf__sub_is_version(struct hf_str text);

/* "q.NAME". HF_INVALID: the name cannot be. */
enum hf_status hf__sub_pk(struct hf_scope *s, struct hf_str name, struct hf_str *pk);
void hf__sub_view(struct hf_item item, struct sub_item *view);
enum hf_status hf__sub_read(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            struct sub_item *view);

/* Take the lease from nobody (`seen` is NULL), or from whom was seen there. HF_LOCKED: another was
 * faster. */
struct sub_taker {
    struct hf_str token, owner;
    uint32_t lease_ms;
    uint32_t window; /* 0: as it is */
};
enum hf_status hf__sub_take(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            const struct sub_item *seen, const struct sub_taker *taker,
                            struct sub_item *view);

/* These are HF_LOST when the lease is not that of `token` any more, and HF_IN_USE when the
 * subscription is to be rebuilt. */
enum hf_status hf__sub_renew(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                             struct hf_str token);

/* An action that lets a transaction happen only while the lease is that of `token`, and the
 * subscription is to be rebuilt, or not. */
enum hf_status hf__sub_guard(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                             struct hf_str token, bool rebuilding, struct hf_tx *tx);

enum sub_forget { FORGET_NOTHING, FORGET_COUNT, FORGET_WINDOW }; /* the last one: both */

struct sub_move {
    struct hf_str token;
    struct checkpoint from, to; /* `from` counts in transactions */
    uint64_t handled;
    enum sub_forget forget; /* of what is counted beforehand */
};
enum hf_status hf__sub_move(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            const struct sub_move *move);

/* The same as an action of a transaction; and what it means that the transaction failed: HF_OK: it
 * had happened before, HF_LOST, HF_IN_USE, HF_TX_CONFLICT: others were there at the same time; else
 * what it is, with the error as it was. */
enum hf_status hf__sub_move_tx(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                               const struct sub_move *move, struct hf_tx *tx);
enum hf_status hf__sub_move_failed(struct hf_scope *s, size_t action, const struct sub_move *move);

/* Count that the event at that place has ended so many processes, as far as is known, with the one
 * that is to begin; 0: none. The checkpoint moves as `move` says, if `to` is behind `from`. */
enum hf_status hf__sub_count(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                             const struct sub_move *move, const struct checkpoint *at,
                             uint32_t crashes);

enum hf_status hf__sub_release(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                               struct hf_str token, struct hf_str failure);

/* The rebuild begins, as `view` says, behind `at`: from now on the lease is that of `fresh`. */
enum hf_status hf__sub_rebuild(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                               const struct sub_item *view, const struct checkpoint *at,
                               struct hf_str token, struct hf_str fresh);

/* ---- subscribe_parked.c --------------------------------------------------------------------- */

/* Park an event: the action of a transaction that moves the checkpoint, or that ends a replay which
 * failed. `replay`: the item waits to be handled again. */
enum hf_status hf__parked_put(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                              const struct hf_stored_event *event, const struct hf_error *error,
                              uint32_t attempts, struct hf_tx *tx);
enum hf_status hf__parked_del(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                              struct hf_str position, bool replay, struct hf_tx *tx);
void hf__parked_view(struct hf_item item, struct hf_parked *parked);

/* Park an event and move the checkpoint behind it, in one transaction, and notify. *move is what
 * was done, for the thread that works. Fails as hf__sub_move_failed() says. */
enum hf_status hf__sub_park(struct hf_scope *s, struct hf_subscription *sub, struct hf_str token,
                            const struct hf_stored_event *event, const struct hf_error *error,
                            uint32_t attempts, struct sub_move *move);

/* Remove all of them, as long as the lease is that of `token` and the subscription is to be rebuilt
 * (HF_LOST). Without a token: whoever has the lease. */
enum hf_status hf__parked_clear(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                                struct hf_str token);

/* The subscription's item and, behind it, some that wait to be handled again. */
enum hf_status hf__sub_look(struct hf_scope *s, struct hf_events *store, struct hf_str pk,
                            struct sub_item *view, const struct hf_parked **replays, size_t *len);

/* ---- subscribe.c ---------------------------------------------------------------------------- */

/* A call of the function that is under way: subscribe_stuck.c. */
struct sub_call {
    const struct hf_stored_event *events;
    size_t len; /* 0: none is */
    bool replay;
    int64_t since_us;
    bool stuck, dealt_with;
    bool looked_at; /* by the thread that renews: it has to stay */
};

struct hf_subscription {
    struct hf_env env;
    struct hf_events *store;
    struct hf_scope *kept;            /* texts of the options */
    struct hf_scope *scope;           /* of the thread that works */
    struct hf_scope *work;            /* of the functions */
    struct hf_scope *page;            /* events of a stream; those that are handled again */
    struct hf_scope *heartbeat_scope; /* of the thread that renews */
    struct hf_scope *why;             /* its error says why it gave up; of the thread that works */
    struct hf_str name, pk;
    struct hf_subscribe_options o;
    bool of_stream;

    /* Of the thread that works. */
    struct hf_events_reader *reader;
    bool has_source;  /* reading has begun */
    bool source_more; /* there may be more at once */
    const struct hf_stored_event *events;
    size_t events_len, at;
    uint32_t narrow;            /* so many events are tried one by one */
    struct checkpoint handled;  /* all events up to here were handled */
    struct checkpoint written;  /* the checkpoint as it is stored */
    uint64_t handled_count;     /* events that were handled up to `handled`, by all holders */
    int64_t written_us;         /* elapsed time at which the checkpoint was written */
    int64_t looked_us;          /* elapsed time at which the item was read; 0: not yet */
    uint32_t attempts;          /* failed attempts of the event that is next */
    int64_t retry_us;           /* elapsed time of its next attempt; 0: at once */
    uint32_t window;            /* subscribe_suspect.c: events to be handled with care */
    uint32_t careful;           /* of these, those that are left */
    struct checkpoint crash_at; /* the event that was under way when processes ended */
    uint32_t crashes;           /* processes that ended with it, without ours */
    bool counted;               /* ours is counted in the item */
    struct watch_sight sight;   /* of another holder */

    struct pump *worker,
        *heartbeat; /* pumps with one thread: one works, one renews; NULL: not running */
    bool listening;
    pthread_mutex_t mutex;   /* guards all below */
    pthread_cond_t looked;   /* nobody looks at a call any more */
    struct pattern_id token; /* of our lease */
    bool held, rebuild;
    struct lease lease; /* with until_us 0 we have given it up */
    bool stopping, gave_up;
    char failure[SUBSCRIPTION_ERROR_MAX + 1]; /* why it gave up, as it is stored */
    struct hf_subscription_metrics metrics;
    struct sub_call call;
};

void hf__sub_notify(struct hf_subscription *sub, enum hf_subscription_event what,
                    const struct hf_stored_event *event, const struct hf_error *error);

/* The lease is not ours any more: forget what was read. */
void hf__sub_lost(struct hf_scope *s, struct hf_subscription *sub);
bool hf__sub_holds(struct hf_subscription *sub);
bool hf__sub_stops(struct hf_subscription *sub);

/* How long the lease is, and how often it is renewed; renew it, on any thread. */
struct lease_terms hf__sub_terms(const struct hf_subscription *sub);
enum hf_status hf__sub_lease_renew(struct hf_scope *s, struct hf_subscription *sub);

/* One step of the working thread; *wait_ms is when the next one is due. */
enum hf_status hf__sub_step_run(struct hf_scope *s, struct hf_subscription *sub, uint32_t *wait_ms);

/* What always holds of what the working thread has; only that thread may ask. */
void hf__sub_check(const struct hf_subscription *sub);

/* ---- subscribe_run.c: threads ---------------------------------------------------------------- */

/* Let the step that is under way end, until the deadline; then it is canceled. *left: it goes on
 * nevertheless. Without a scope there is no deadline. */
enum hf_status hf__sub_threads_stop(struct hf_scope *s, struct hf_subscription *sub, bool *left);

/* Store the checkpoint and give the lease back, when no thread is there any more. */
enum hf_status hf__sub_final_write(struct hf_subscription *sub);

/* ---- subscribe_work.c ----------------------------------------------------------------------- */

/* Have events at hand, if there are any. */
enum hf_status hf__sub_source(struct hf_scope *s, struct hf_subscription *sub);
void hf__sub_source_close(struct hf_subscription *sub);

/* Handle those at hand, until one has to wait. */
enum hf_status hf__sub_handle(struct hf_scope *s, struct hf_subscription *sub);

struct checkpoint hf__sub_checkpoint_at(const struct hf_subscription *sub,
                                        const struct hf_stored_event *event);

/* ---- subscribe_suspect.c: events that end the process --------------------------------------- */

/* How many events are handled with care, when the lease is taken as it was seen. */
uint32_t hf__suspects_window(const struct sub_item *seen, bool from_silent);

/* The lease was taken; `from_us`: from ourselves, after we had lost it. */
void hf__suspects_taken(struct hf_subscription *sub, const struct sub_item *view, bool from_us);

/* Is the next event at hand to be handled alone, and counted beforehand? */
bool hf__suspects_careful(const struct hf_subscription *sub, const struct checkpoint *at);

/* It is about to begin. *ended: it has ended so many processes that it is given up, with that
 * error. */
enum hf_status hf__suspects_begin(struct hf_scope *s, struct hf_subscription *sub,
                                  const struct checkpoint *at, struct hf_error *error, bool *ended);

/* It has failed, and ended nothing. */
enum hf_status hf__suspects_failed(struct hf_scope *s, struct hf_subscription *sub);

/* So many were passed. */
void hf__suspects_passed(struct hf_subscription *sub, size_t count);

/* What a move of the checkpoint forgets; and that it did. */
enum sub_forget hf__suspects_forget(const struct hf_subscription *sub);
void hf__suspects_forgot(struct hf_subscription *sub, enum sub_forget forget);

/* ---- subscribe_stuck.c: functions that do not return ---------------------------------------- */

/* The function is called with these; it has returned. */
void hf__sub_call_begin(struct hf_subscription *sub, const struct hf_stored_event *events,
                        size_t len, bool replay);
void hf__sub_call_end(struct hf_subscription *sub);

/* Look whether it does not, and deal with that. Returns in how many microseconds to look again. */
int64_t hf__sub_stuck_check(struct hf_scope *s, struct hf_subscription *sub);

/* ---- subscribe_work.c again ----------------------------------------------------------------- */

/* Handle those that were parked and are to be handled again. */
enum hf_status hf__sub_replay(struct hf_scope *s, struct hf_subscription *sub,
                              const struct hf_parked *replays, size_t len);

/* Write the checkpoint, if it has moved. */
enum hf_status hf__sub_checkpoint(struct hf_scope *s, struct hf_subscription *sub);

#endif
