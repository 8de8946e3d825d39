/*
 * cli/events/events_row.h: rows of the tables of other event stores, for `events adopt`.
 */
#ifndef HF_CLI_EVENTS_EVENTS_ROW_H
#define HF_CLI_EVENTS_EVENTS_ROW_H

#include <holdfast/events.h>

/* A row of the schemeless event store, in every layout that it has had. All is in the scope. */
struct events_row {
    bool head;               /* it is no event but the last sequence of a stream: */
    struct hf_str head_of;   /* DOMAIN::IDENTIFIER */
    uint64_t sequence;       /* of an event, or the last one; 0: there were none in that layout */
    struct hf_str reference; /* BUCKET::KEY of the object in S3 that has the payload; or absent */
    struct hf_stored_event event;
};

/* The id of an event, from what the attribute `id` has. */
struct hf_str hf__cli_events_row_id(struct hf_str id);

/* Its id, stream, time and sequence. False, and *error that says what is wrong with it. */
bool hf__cli_events_row_look(struct hf_scope *s, struct hf_item item, struct events_row *row,
                             struct hf_str *error);

/* All of it, but for a payload that is in S3. */
bool hf__cli_events_row_read(struct hf_scope *s, struct hf_item item, struct events_row *row,
                             struct hf_str *error);

/* Take the payload from the object of its reference. */
bool hf__cli_events_row_object(struct hf_scope *s, struct hf_bytes object, struct events_row *row,
                               struct hf_str *error);

#endif
