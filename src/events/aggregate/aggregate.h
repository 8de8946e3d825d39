/*
 * events/aggregate/aggregate.h: what aggregates and flows share. aggregate.c has the essay.
 */
#ifndef HF_EVENTS_AGGREGATE_AGGREGATE_H
#define HF_EVENTS_AGGREGATE_AGGREGATE_H

#include "events/store/events.h"

#include <holdfast/aggregate.h>

/* Brings an event to its current form, in place. */
typedef enum hf_status aggregate_upcast_fn(struct hf_scope *s, struct hf_stored_event *event,
                                           void *user);

/* HF_INVALID: the description lacks something. */
enum hf_status hf__aggregate_check(struct hf_scope *s, const struct hf_aggregate *aggregate);

/* Which state is to be loaded. */
struct aggregate_wanted {
    const struct hf_aggregate *aggregate;
    struct hf_str id;
    uint64_t version;            /* 0: the newest */
    aggregate_upcast_fn *upcast; /* sees events before the aggregate's own; may be NULL */
    void *user;                  /* of upcast */
};
enum hf_status hf__aggregate_load(struct hf_scope *s, struct hf_events *store,
                                  const struct aggregate_wanted *wanted,
                                  struct hf_aggregate_state *loaded);

/* One event more: brought up, and into the state. Its version is the next one. */
enum hf_status hf__aggregate_evolve(struct hf_scope *s, const struct hf_aggregate *aggregate,
                                    const struct hf_stored_event *event,
                                    struct hf_aggregate_state *state);

/* Is it time for a snapshot, when the stream has got from `from` to `to`? */
bool hf__aggregate_is_due(const struct hf_aggregate *aggregate, uint64_t from, uint64_t to);

/* Make one; *saved is false when there is a newer one. */
enum hf_status hf__aggregate_snapshot(struct hf_scope *s, struct hf_events *store,
                                      const struct hf_aggregate *aggregate, struct hf_str id,
                                      const struct hf_aggregate_state *state, bool *saved);

/* Write into the log that none could be made. */
void hf__aggregate_log(const struct hf_env *env, const struct hf_error *error,
                       struct hf_event_stream_key stream);

/* A new event in the form of a stored one, without version, position and hash. */
struct hf_stored_event hf__event_of_new(const struct hf_new_event *event,
                                        struct hf_event_stream_key stream);

/* And back. */
struct hf_new_event hf__event_to_new(const struct hf_stored_event *event);

#endif
