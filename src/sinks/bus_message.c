/*
 * sinks/bus_message.c: an event as the publishers of outbox-event-bus (TypeScript) write it, so
 * that their consumers need not change.
 *
 *     {"id":"...","type":"...","payload":...,"occurredAt":"2026-01-31T23:59:59.123Z",
 *      "metadata":{...}}
 *
 *     id type      the same
 *     payload      the payload, which has to be JSON; left out when it is empty
 *     occurredAt   time_us, with milliseconds, as a Date of JavaScript has it
 *     metadata     the headers, and correlationId and causationId where the event has them and no
 *                  header has the name; left out when there are none of these
 *
 * All other fields of an event (key, source, schema, tenant and so on) are left out. On Redis the
 * parts are fields of their own; other brokers get the object, and eventType or EventType beside it.
 */
#include "sinks/private.h"

#include "base/utf8.h"
#include "wire/wire.h"

enum hf_status hf__sink_bus_message_time(struct hf_scope *s, const struct hf_event *event,
                                         struct hf_str *text)
{
    int64_t ms = event->time_us / 1000 - (event->time_us % 1000 < 0);
    int64_t seconds = ms / 1000 - (ms % 1000 < 0);
    char whole[EVENT_TIME];

    if (!hf__sink_event_time(seconds * 1000000, whole))
        return hf__fail(s, HF_INVALID, "the event's time is beyond the years 0 to 9999");
    assert(ms >= seconds * 1000 && ms < seconds * 1000 + 1000);
    assert(strlen(whole) == strlen("2026-01-31T23:59:59Z"));
    *text =
        hf_scope_format(s, "%.*s.%03dZ", (int)strlen(whole) - 1, whole, (int)(ms - seconds * 1000));
    return text->ptr ? HF_OK : hf__fail_nomem(s);
}

enum hf_status hf__sink_bus_message_payload(struct hf_scope *s, const struct hf_event *event,
                                            struct hf_str *json)
{
    struct hf_str payload = hf_str_of((const char *)event->payload.ptr, event->payload.len);
    struct hf__buf buf = {.scope = s};

    *json = HF_STR("");
    if (!payload.len)
        return HF_OK;
    if (!hf__sink_is_json_type(hf__sink_event_content_type(event)) || !hf__wire_json_valid(payload))
        return hf__fail(s, HF_INVALID,
                        "its payload is not JSON, which the form outbox-event-bus requires");
    hf__sink_put_compact_json(&buf, event->payload);
    if (buf.failed)
        return hf__fail_nomem(s);
    *json = hf_str_of((const char *)buf.ptr, buf.len);
    return HF_OK;
}

static void put_id(struct hf__buf *buf, const struct hf_event *event, const char *name,
                   struct hf_str id)
{
    if (!id.len ||
        (event->headers.ptr && hf_item_get(event->headers, hf_str_from(name)).ptr != NULL))
        return;
    hf__buf_put_byte(buf, buf->len ? ',' : '{');
    hf__wire_write_str(buf, hf_str_from(name));
    hf__buf_put_byte(buf, ':');
    hf__wire_write_str(buf, id);
}

enum hf_status hf__sink_bus_message_metadata(struct hf_scope *s, const struct hf_event *event,
                                             struct hf_str *json)
{
    struct hf_item_walk walk = {.next = 0};
    struct hf__buf buf = {.scope = s};

    hf__scope_alloc_clear(s);
    if (!hf__utf8_valid(event->correlation) || !hf__utf8_valid(event->causation))
        return hf__fail(s, HF_INVALID, "the event's correlation or causation is not UTF-8");
    if (event->headers.ptr) {
        TRY(hf_item_check(s, event->headers));
        while (hf_item_next(event->headers, &walk)) {
            hf__buf_put_byte(&buf, buf.len ? ',' : '{');
            hf__wire_write_str(&buf, walk.name);
            hf__buf_put_byte(&buf, ':');
            hf__sink_put_plain_json(s, &buf, walk.value);
        }
    }
    put_id(&buf, event, "correlationId", event->correlation);
    put_id(&buf, event, "causationId", event->causation);
    if (buf.len)
        hf__buf_put_byte(&buf, '}');
    if (buf.failed || hf__scope_alloc_failed(s))
        return hf__fail_nomem(s);
    *json = hf_str_of((const char *)buf.ptr, buf.len);
    return HF_OK;
}

enum hf_status hf__sink_bus_message_check(struct hf_scope *s, const struct hf_event *event)
{
    if (!event->id.len)
        return hf__fail(s, HF_INVALID, "the event has no id");
    if (!event->type.len)
        return hf__fail(s, HF_INVALID, "the event has no type");
    if (!hf__utf8_valid(event->id) || !hf__utf8_valid(event->type))
        return hf__fail(s, HF_INVALID, "the event's id or type is not UTF-8");
    return HF_OK;
}

enum hf_status hf__sink_bus_message_json(struct hf_scope *s, const struct hf_event *event,
                                         struct hf_str *json)
{
    struct hf_str payload, time, metadata;
    struct hf__buf buf = {.scope = s};

    *json = (struct hf_str){0};
    hf__scope_error_clear(s);
    TRY(hf__sink_bus_message_check(s, event));
    TRY(hf__sink_bus_message_payload(s, event, &payload));
    TRY(hf__sink_bus_message_time(s, event, &time));
    TRY(hf__sink_bus_message_metadata(s, event, &metadata));
    hf__buf_reserve(&buf, 256 + payload.len + metadata.len);
    hf__buf_put_str(&buf, HF_STR("{\"id\":"));
    hf__wire_write_str(&buf, event->id);
    hf__buf_put_str(&buf, HF_STR(",\"type\":"));
    hf__wire_write_str(&buf, event->type);
    if (payload.len) {
        hf__buf_put_str(&buf, HF_STR(",\"payload\":"));
        hf__buf_put_str(&buf, payload);
    }
    hf__buf_put_str(&buf, HF_STR(",\"occurredAt\":"));
    hf__wire_write_str(&buf, time);
    if (metadata.len) {
        hf__buf_put_str(&buf, HF_STR(",\"metadata\":"));
        hf__buf_put_str(&buf, metadata);
    }
    hf__buf_put_str(&buf, hf_str_of("}", 2)); /* and a NUL */
    if (buf.failed)
        return hf__fail_nomem(s);
    assert(buf.ptr[0] == '{' && buf.ptr[buf.len - 2] == '}' && buf.ptr[buf.len - 1] == '\0');
    *json = hf_str_of((const char *)buf.ptr, buf.len - 1);
    return HF_OK;
}
