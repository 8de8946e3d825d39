/*
 * cli/events/events_line.c: new events as lines of JSON. See events_line.h.
 *
 * The library reads lines of an export, and is strict about them. What a line leaves out of the
 * stream's name is put in front of its other members; so the bytes of the payload stay as they are.
 * What only an event has that was appended already (version, position, hash, blob) is passed over.
 */
#include "cli/events/events_line.h"

#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"

#include <string.h>

/* The next line that is not empty; absent: there is none. */
static struct hf_str next_line(struct hf_str *rest)
{
    struct hf_str line;

    while (hf__input_line(rest, &line))
        if (hf__input_trim(line).len)
            return line;
    return (struct hf_str){0};
}

static size_t count_lines(struct hf_str text)
{
    size_t count = 0;

    while (next_line(&text).ptr)
        count++;
    return count;
}

/* The line with the name of its stream. Absent: it is no JSON object, and *error says why. */
static struct hf_str with_stream(struct hf_scope *s, struct hf_str line,
                                 struct hf_event_stream_key stream, struct hf_str *error)
{
    const struct json_node *json = hf__cli_json_read(s, line, error);
    const char *brace = memchr(line.ptr, '{', line.len);
    struct json_text text;
    size_t before;

    if (!json)
        return (struct hf_str){0};
    if (json->kind != JSON_OBJECT) {
        *error = HF_STR("not a JSON object");
        return (struct hf_str){0};
    }
    if (!stream.domain.len || hf__cli_json_member(json, "domain"))
        return line;
    if (hf__cli_json_text_begin(&text)) {
        before = (size_t)(brace - line.ptr) + 1;
        fputs("{\"domain\":", text.out);
        hf__cli_json_write_text(text.out, stream.domain);
        if (!hf__cli_json_member(json, "stream")) {
            fputs(",\"stream\":", text.out);
            hf__cli_json_write_text(text.out, stream.id);
        }
        fputs(json->len ? "," : "", text.out);
        fwrite(line.ptr + before, 1, line.len - before, text.out);
    }
    line = hf__cli_json_text_end(&text, s);
    if (!line.ptr)
        *error = HF_STR("out of memory");
    return line;
}

static bool read_line(struct hf_scope *s, struct hf_str text, struct hf_event_stream_key stream,
                      struct events_line *line, struct hf_str *error)
{
    struct hf_stored_event event;
    struct hf_str whole = with_stream(s, text, stream, error);

    if (!whole.ptr)
        return false;
    if (hf_event_from_json(s, whole, &event) != HF_OK) {
        *error = hf_scope_format(s, "%s", hf_scope_error_text(s));
        return false;
    }
    *line = (struct events_line){.stream = event.stream,
                                 .event = {.id = event.id,
                                           .type = event.type,
                                           .payload = event.payload,
                                           .content_type = event.content_type,
                                           .schema = event.schema,
                                           .time_us = event.time_us,
                                           .meta = event.meta,
                                           .causation = event.causation,
                                           .correlation = event.correlation,
                                           .compensates = event.compensates}};
    return true;
}

bool hf__cli_events_lines(struct hf_scope *s, struct hf_str text, struct hf_event_stream_key stream,
                          struct events_line **lines, size_t *len, struct hf_str *error)
{
    size_t count = count_lines(text);
    struct hf_str line;

    *len = 0;
    if (count > HF_EVENTS_APPEND_MAX) {
        *error = hf_scope_format(s, "%zu events; one append takes at most %d", count,
                                 (int)HF_EVENTS_APPEND_MAX);
        return false;
    }
    *lines = hf_scope_alloc(s, (count + 1) * sizeof(**lines));
    if (!*lines) {
        *error = HF_STR("out of memory");
        return false;
    }
    while ((line = next_line(&text)).ptr) {
        if (!read_line(s, line, stream, &(*lines)[*len], error)) {
            *error = hf_scope_format(s, "event %zu: %.*s", *len + 1, HF_FMT(*error));
            return false;
        }
        ++*len;
    }
    return true;
}
