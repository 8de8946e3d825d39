/*
 * cli/events/events_line.h: new events as lines of JSON, as `events append --lines` reads them and as a
 * program of `events revert` writes them. They are lines of an export (docs/events.md) of which
 * most can be left out:
 *
 *     {"type":"placed","payload":{"pieces":2}}
 *     {"type":"paid","id":"pay-7","meta":{"by":{"S":"card"}},"domain":"ledger","stream":"2026"}
 */
#ifndef HF_CLI_EVENTS_EVENTS_LINE_H
#define HF_CLI_EVENTS_EVENTS_LINE_H

#include <holdfast/events.h>

struct events_line {
    struct hf_event_stream_key stream;
    struct hf_new_event event;
};

/*
 * All lines but empty ones, in the scope. `stream` is where events go that do not say it; without a
 * domain they have to. False, and *error that names the line, when one is no event or there are
 * more than HF_EVENTS_APPEND_MAX.
 */
bool hf__cli_events_lines(struct hf_scope *s, struct hf_str text, struct hf_event_stream_key stream,
                          struct events_line **lines, size_t *len, struct hf_str *error);

#endif
