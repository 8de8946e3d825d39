/*
 * events/flow/flow.h: what the files of the flows share. flow.c has the essay.
 */
#ifndef HF_EVENTS_FLOW_FLOW_H
#define HF_EVENTS_FLOW_FLOW_H

#include "events/aggregate/aggregate.h"

#include <holdfast/flow.h>
#include <holdfast/outbox.h>
#include <holdfast/relay.h>
#include <holdfast/sink.h>
#include <holdfast/tx.h>

#include "coord/pump.h"

/* ---- the runtime ---------------------------------------------------------------------------- */

/* A task of a queue: on the stack of a submit, or posted. The first of a queue runs. */
struct flow_task {
    struct flow_task *next;
    struct hf_scope *scope; /* posted: its own; else NULL */
    struct hf_scope *waits; /* submitted: the scope of the caller, who waits; else NULL */
    struct hf_flow_event event;
    hf_flow_posted_fn *done;
    void *user;
};

struct flow_queue {
    struct hf_flows *flows;
    struct hf_scope *spare; /* of the running task: for functions whose failure is not the tree's */
    /* all below is guarded by the mutex of the flows */
    struct flow_task *first, **end;
    pthread_t runner; /* the thread that runs the first task, when `running` */
    bool running;
    struct pump *pump; /* takes what was posted; NULL: nothing was yet, or there are no threads */
};

/* An event that the thread is to hand to an observer. */
struct flow_notice {
    struct flow_notice *next;
    struct hf_scope *scope; /* holds the notice, too */
    struct hf_scope *calls; /* of the observer */
    const struct hf_flow_observer *observer;
    struct hf_stored_event event;
};

struct hf_flows {
    struct hf_env env;
    struct hf_events *store;
    struct hf_outbox *outbox; /* NULL: none */
    struct hf_scope *kept;    /* holds what was copied */
    struct hf_flows_options o;
    struct hf_flow *flows; /* sorted by domain and type */
    size_t flows_len;
    struct hf_flow_observer *observers; /* sorted by priority */
    size_t observers_len;
    struct hf_sink *sink;
    struct hf_relay *relay;
    bool relay_runs;
    uint32_t max_crashes; /* of its relay */
    hf_relay_stuck_fn *on_stuck;
    void *stuck_user;
    struct flow_queue *queues;
    struct pump
        *notifier; /* delivers notices; NULL: there are no threads, or no observers for it */
    struct waiters emptied; /* those who wait until queues or notices are empty */
    pthread_mutex_t mutex;  /* guards all below, and the queues */
    bool stopping;          /* nothing new is taken */
    uint32_t inside;        /* calls of others that are under way, which use what is here */
    pthread_cond_t left;    /* the last of them has ended */
    int64_t last_ms;        /* of ids that were made: they only grow */
    uint32_t last_count;
    struct flow_notice *notices, **notices_end;
    bool notifying; /* a notice is being handled */
};

/* ---- flow.c --------------------------------------------------------------------------------- */

/* NULL: there is none. */
const struct hf_flow *hf__flow_find(const struct hf_flows *flows, struct hf_str domain,
                                    struct hf_str type);

/* An event in its current form: an aggregate_upcast_fn. */
enum hf_status hf__flow_upcast(struct hf_scope *s, struct hf_stored_event *event, void *flows);

/* Report what became of an event; without on_output, failures in the background are logged. */
void hf__flow_report(struct hf_flows *flows, enum hf_flow_outcome outcome,
                     const struct hf_stored_event *event, const struct hf_error *error,
                     uint32_t attempt, struct hf_str observer);

/* A failure that was returned without an error text gets one. */
enum hf_status hf__flow_explain(struct hf_scope *s, enum hf_status status, const char *what,
                                const struct hf_stored_event *event);

/* A new id that sorts behind those of this process before. Absent: no memory. */
struct hf_str hf__flow_id(struct hf_scope *s, struct hf_flows *flows);

/* ---- flow_tree.c: what is to be stored ------------------------------------------------------ */

enum flow_phase {
    FLOW_VALIDATE,
    FLOW_PRE_APPLY,
    FLOW_APPLY,
    FLOW_CANCEL,
    FLOW_CONSEQUENTS,
    FLOW_EFFECT,
    FLOW_COMPENSATE
};

struct flow_node {
    struct hf_stored_event event;
    const struct hf_flow *flow; /* NULL: none, which only events have that take others back */
    bool applied;
};

/* A state that the tree was made with. */
struct flow_used {
    struct flow_used *next;
    const struct hf_aggregate *aggregate;
    struct hf_str id;
    uint64_t base; /* the version that was loaded */
    struct hf_aggregate_state state;
};

/* A tree on its way, in the scope. */
struct flow_build {
    struct hf_flows *flows;
    uint32_t attempt;
    struct flow_node **nodes; /* in the order of creation */
    size_t len, cap;
    struct flow_used *used;
    struct actions with;
    struct hf_stored_event refused; /* without a type: none was */
    struct hf_str key;              /* of the queue */
    bool effects;                   /* store side effects */
    bool replay;
};

struct hf_flow_call {
    struct hf_flows *flows;
    struct flow_build *build; /* NULL: a side effect */
    enum flow_phase phase;
    const struct hf_flow *flow;
    const struct flow_used *own; /* the state of the event's stream, or NULL */
    uint32_t attempt;
    struct hf_flow_event *emitted;
    size_t emitted_len, emitted_cap;
};

/* Call one function of the flow; a failure has a word. */
enum hf_status hf__flow_call(struct hf_scope *s, struct hf_flow_call *call, hf_flow_fn *fn,
                             const char *what, const struct hf_stored_event *event);

/* The root as it is created, with an id. `parent` may be NULL. HF_NOT_FOUND: it has no flow. */
enum hf_status hf__flow_create(struct hf_scope *s, struct hf_flows *flows,
                               const struct hf_flow_event *event,
                               const struct hf_stored_event *parent, struct hf_str id,
                               struct hf_stored_event *created);

/* The way of an event and all that follows from it, up to where it would be stored. */
enum hf_status hf__flow_grow(struct hf_scope *s, struct flow_build *build,
                             const struct hf_stored_event *event, uint32_t depth);

/* An event that is as it is: evolve and apply alone; its flow may be NULL. */
enum hf_status hf__flow_add(struct hf_scope *s, struct flow_build *build,
                            const struct hf_stored_event *event, const struct hf_flow *flow);

/* Undo what was applied, last one first. */
void hf__flow_cancel(struct hf_scope *spare, struct flow_build *build);

/* ---- flow_submit.c: storing it -------------------------------------------------------------- */

/*
 * Append all nodes, with all that goes with them. HF_OK: the events of the nodes have their
 * versions. *conflict: it was refused, as others were faster. *repeated: it was there already, or,
 * with HF_DUPLICATE, ids of it were.
 */
enum hf_status hf__flow_store(struct hf_scope *s, struct flow_build *build, bool *conflict,
                              bool *repeated);

/* Wait a little before the next attempt. */
enum hf_status hf__flow_pause(struct hf_scope *s, uint32_t attempt);

/* Build and store the tree of an event, by the task that runs. */
enum hf_status hf__flow_take(struct hf_scope *s, struct hf_flows *flows, struct flow_queue *queue,
                             const struct hf_flow_event *event,
                             const struct hf_stored_event *parent, struct hf_flow_result *result);

/* Wait until the task may run, and run it. */
enum hf_status hf__flow_submit(struct hf_scope *s, struct hf_flows *flows,
                               const struct hf_flow_event *event,
                               const struct hf_stored_event *parent, bool inner,
                               struct hf_flow_result *result);

/* ---- flow_queue.c: queues ------------------------------------------------------------------- */

enum hf_status hf__flow_queues_open(struct hf_scope *s, struct hf_flows *flows);
void hf__flow_queues_close(struct hf_flows *flows);

/* A call begins and ends that closing has to wait for; and wait until none is under way. */
void hf__flow_begin(struct hf_flows *flows);
void hf__flow_end(struct hf_flows *flows);
void hf__flow_wait(struct hf_flows *flows);

/* Wait until the task may run. HF_CANCELED, unless it is for what was begun before (`inner`);
 * HF_TIMEOUT; HF_INVALID: this thread runs a task already. */
enum hf_status hf__flow_enter(struct hf_scope *s, struct hf_flows *flows, struct hf_str key,
                              bool inner, struct flow_task *task, struct flow_queue **queue);
void hf__flow_leave(struct hf_flows *flows, struct flow_queue *queue);

/* The key that decides on the queue. */
struct hf_str hf__flow_key(const struct hf_flows *flows, const struct hf_flow_event *event);

/* Do what was posted; returns whether there was anything. */
bool hf__flow_run_posted(struct hf_flows *flows);

/* Nothing new; then wait until nobody waits any more. False: not in time. */
void hf__flow_stop(struct hf_flows *flows);
bool hf__flow_drain(struct hf_scope *s, struct hf_flows *flows);

/* What was posted and not begun is not going to be. */
void hf__flow_forget_posted(struct hf_flows *flows);

/* ---- flow_observe.c ------------------------------------------------------------------------- */

enum hf_status hf__flow_observers_open(struct hf_scope *s, struct hf_flows *flows);
void hf__flow_observers_close(struct hf_flows *flows);

/* Call all observers that want the event; with `wait`, none of them later. Returns how many. */
uint64_t hf__flow_observe(struct hf_flows *flows, struct hf_scope *spare,
                          const struct hf_stored_event *event, bool wait);

/* Do what the thread would do; whether there was anything. */
bool hf__flow_run_notices(struct hf_flows *flows);

/* A copy in the scope, with all that it points to; the scope remembers when there is no memory. */
struct hf_stored_event hf__flow_copy(struct hf_scope *s, const struct hf_stored_event *event);

/* Until there are no more. False: not in time. */
bool hf__flow_drain_notices(struct hf_scope *s, struct hf_flows *flows);

/* ---- flow_effect.c -------------------------------------------------------------------------- */

/* The action that stores the side effect of the event. */
enum hf_status hf__flow_effect_emit(struct hf_scope *s, struct hf_flows *flows, struct hf_str key,
                                    const struct hf_stored_event *event,
                                    struct hf_transact_write *action);

enum hf_status hf__flow_effects_open(struct hf_scope *s, struct hf_flows *flows,
                                     const struct hf_relay_options *relay);
void hf__flow_effects_close(struct hf_flows *flows);

#endif
