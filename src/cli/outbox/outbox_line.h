/*
 * cli/outbox/outbox_line.h: events as lines of JSON, for `outbox import`: lines of our own, CloudEvents,
 * and rows of the tables of other libraries.
 *
 *     {"type":"order.placed","id":"o-7","key":"7","time":"2026-11-15T09:30:00Z","payload":{"n":1}}
 */
#ifndef HF_CLI_OUTBOX_OUTBOX_LINE_H
#define HF_CLI_OUTBOX_OUTBOX_LINE_H

#include <holdfast/outbox.h>

/* In the order of the words of --from. */
enum outbox_line_form {
    OUTBOX_LINE_OWN,
    OUTBOX_LINE_CLOUDEVENTS,
    OUTBOX_LINE_EVENT_BUS,     /* rows of outbox-event-bus */
    OUTBOX_LINE_EXCALIBUR,     /* rows of Excalibur.Outbox.DynamoDb */
    OUTBOX_LINE_EXCALIBUR_DATA /* rows of Excalibur.Data.DynamoDb */
};

struct outbox_line {
    struct hf_event event; /* in the scope, or in the text */
    bool done;             /* a row that was delivered, */
    bool failed;           /* or has failed too often, */
    bool claimed;          /* or that a worker of the library has claimed, */
    int64_t claim_us;      /* outbox-event-bus: until then; others: since then; 0: not known */
    bool adopting;         /* or that `outbox adopt` is about to move */
};

/* Marks of `outbox adopt` in rows of other libraries: adopt_library.c. */
#define OUTBOX_ADOPTING_STATUS "adopting"
#define OUTBOX_ADOPTING_SINCE "adoptingSince"
#define OUTBOX_ADOPTING_DUE "adoptingScheduledAt"

/* False, and *error that says what is wrong with it, when the text is no such event. */
bool hf__cli_outbox_line_read(struct hf_scope *s, enum outbox_line_form form, struct hf_str text,
                              struct outbox_line *line, struct hf_str *error);

/*
 * The same for a row as an item. `hash` and `sort` are what the attributes of its key are called
 * (Excalibur.Outbox.DynamoDb has options for that); absent: as the library calls them by default.
 */
bool hf__cli_outbox_row_read(struct hf_scope *s, enum outbox_line_form form, struct hf_item item,
                             struct hf_str hash, struct hf_str sort, struct outbox_line *line,
                             struct hf_str *error);

#endif
