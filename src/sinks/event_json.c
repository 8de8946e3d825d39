/*
 * sinks/event_json.c: an event as CloudEvents 1.0 has it: a list of attributes, or one JSON object.
 *
 *     attribute          from
 *     specversion        "1.0"
 *     id source type     the same; a source that is absent is "holdfast"
 *     time               time_us; left out when that is 0
 *     datacontenttype    content_type
 *     dataschema         schema, when it is an absolute URI; any other is "schemaversion"
 *     subject            aggregate
 *     aggregatetype partitionkey sequence correlationid causationid tenant destination
 *     traceparent tracestate
 *     urgent             true; left out when the event is not urgent
 *     NAME               a header of that name; see below
 *     headersjson        all other headers, as the text of a JSON object
 *
 * The names of attributes are lower-case letters and digits. A header becomes an attribute of its own
 * if it has such a name, which is not one of the above, and a value that an attribute can have: a
 * string, a boolean, a whole number of 32 bits; other numbers become strings. All other headers are
 * together in "headersjson", where numbers are JSON numbers, binary values base64 and sets lists, so
 * nothing is lost.
 *
 * What always holds:
 *
 *  (1) The object is one line: control characters in texts are escaped, and blanks around the
 *      values of a payload are left out.
 *  (2) "data" is there exactly when the content type is JSON's and the payload is one JSON value;
 *      any other payload that is not empty is in "data_base64".
 *  (3) No attribute comes twice.
 */
#include "sinks/private.h"

#include <time.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "wire/wire.h"

enum { OWN_MAX = 24 }; /* attributes that are not headers, and headersjson */

struct attributes {
    struct hf_scope *s;
    struct event_attribute *list;
    size_t len;
    size_t room; /* of the list */
};

/* ---- the event's own ------------------------------------------------------------------------ */

struct hf_str hf__sink_event_content_type(const struct hf_event *event)
{
    return event->content_type.len ? event->content_type : HF_STR("application/json");
}

bool hf__sink_event_time(int64_t time_us, char text[EVENT_TIME])
{
    int64_t seconds = time_us / 1000000, us = time_us % 1000000;
    time_t at;
    struct tm tm;
    int len;

    if (us < 0) {
        us += 1000000;
        seconds--;
    }
    at = (time_t)seconds;
    if (!gmtime_r(&at, &tm) || tm.tm_year < -1900 || tm.tm_year > 9999 - 1900)
        return false;
    len = snprintf(text, EVENT_TIME, "%04u-%02u-%02uT%02u:%02u:%02u", (unsigned)tm.tm_year + 1900u,
                   (unsigned)tm.tm_mon + 1, (unsigned)tm.tm_mday, (unsigned)tm.tm_hour,
                   (unsigned)tm.tm_min, (unsigned)tm.tm_sec);
    assert(len == (int)strlen("2026-01-31T23:59:59"));
    if (us)
        snprintf(text + len, EVENT_TIME - (size_t)len, ".%06uZ", (unsigned)us);
    else
        snprintf(text + len, EVENT_TIME - (size_t)len, "Z");
    return true;
}

static enum hf_status attribute_add(struct attributes *a, const char *name, struct hf_str value)
{
    if (!value.len)
        return HF_OK;
    if (!hf__utf8_valid(value))
        return hf__fail(a->s, HF_INVALID, "the event's %s is not UTF-8", name);
    assert(a->len < OWN_MAX);
    a->list[a->len++] = (struct event_attribute){hf_str_from(name), value, ATTRIBUTE_TEXT};
    return HF_OK;
}

/* "scheme:...", as RFC 3986 has it. */
static bool is_absolute_uri(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');

        if (c == ':')
            return i > 0 && i + 1 < text.len;
        if (!letter && (i == 0 || !((c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.')))
            return false;
    }
    return false;
}

static enum hf_status add_time(struct attributes *a, int64_t time_us)
{
    char *text;

    if (!time_us)
        return HF_OK;
    text = hf_scope_alloc(a->s, EVENT_TIME);
    if (!text)
        return hf__fail_nomem(a->s);
    if (!hf__sink_event_time(time_us, text))
        return hf__fail(a->s, HF_INVALID, "the event's time is beyond the years 0 to 9999");
    return attribute_add(a, "time", hf_str_from(text));
}

static enum hf_status add_own(struct attributes *a, const struct hf_event *event)
{
    struct hf_str sequence = {NULL, 0};

    if (!event->id.len)
        return hf__fail(a->s, HF_INVALID, "the event has no id");
    if (!event->type.len)
        return hf__fail(a->s, HF_INVALID, "the event has no type");
    if (event->sequence) {
        sequence = hf_scope_format(a->s, "%llu", (unsigned long long)event->sequence);
        if (!sequence.ptr)
            return hf__fail_nomem(a->s);
    }
    TRY(attribute_add(a, "specversion", HF_STR("1.0")));
    TRY(attribute_add(a, "id", event->id));
    TRY(attribute_add(a, "source", event->source.len ? event->source : HF_STR("holdfast")));
    TRY(attribute_add(a, "type", event->type));
    TRY(add_time(a, event->time_us));
    TRY(attribute_add(a, "datacontenttype", hf__sink_event_content_type(event)));
    TRY(attribute_add(a, is_absolute_uri(event->schema) ? "dataschema" : "schemaversion",
                      event->schema));
    TRY(attribute_add(a, "subject", event->aggregate));
    TRY(attribute_add(a, "aggregatetype", event->aggregate_type));
    TRY(attribute_add(a, "partitionkey", event->key));
    TRY(attribute_add(a, "sequence", sequence));
    TRY(attribute_add(a, "correlationid", event->correlation));
    TRY(attribute_add(a, "causationid", event->causation));
    TRY(attribute_add(a, "tenant", event->tenant));
    TRY(attribute_add(a, "destination", event->destination));
    TRY(attribute_add(a, "traceparent", event->trace_parent));
    TRY(attribute_add(a, "tracestate", event->trace_state));
    assert(a->len < OWN_MAX);
    if (event->urgent)
        a->list[a->len++] =
            (struct event_attribute){HF_STR("urgent"), HF_STR("true"), ATTRIBUTE_BOOLEAN};
    return HF_OK;
}

/* ---- headers -------------------------------------------------------------------------------- */

/* Names of attributes that are not headers, whether this event has them or not. */
static const char *const taken[] = {
    "specversion",   "id",           "source",        "type",        "time",
    "dataschema",    "subject",      "aggregatetype", "sequence",    "datacontenttype",
    "schemaversion", "partitionkey", "correlationid", "causationid", "tenant",
    "destination",   "traceparent",  "tracestate",    "headersjson", "data",
    "urgent",
};

static bool can_be_name(struct hf_str name)
{
    for (size_t i = 0; i < name.len; i++)
        if (!((name.ptr[i] >= 'a' && name.ptr[i] <= 'z') ||
              (name.ptr[i] >= '0' && name.ptr[i] <= '9')))
            return false;
    for (size_t i = 0; i < ARRAY_LEN(taken); i++)
        if (hf_str_equal(name, hf_str_from(taken[i])))
            return false;
    return name.len > 0;
}

/* Make an attribute of a header; false: it goes to "headersjson". */
static bool as_attribute(struct hf_scope *s, struct hf_str name, struct hf_value value,
                         struct event_attribute *attribute)
{
    int64_t whole;

    *attribute = (struct event_attribute){.name = name};
    if (!can_be_name(name))
        return false;
    switch (hf_value_type(value)) {
    case HF_TYPE_S:
        attribute->value = hf_value_str(value);
        return attribute->value.len > 0;
    case HF_TYPE_BOOL:
        attribute->type = ATTRIBUTE_BOOLEAN;
        attribute->value = hf_value_true(value) ? HF_STR("true") : HF_STR("false");
        return true;
    case HF_TYPE_N:
        attribute->value = hf_value_number(s, value);
        if (hf_value_i64(value, &whole) && whole >= INT32_MIN && whole <= INT32_MAX)
            attribute->type = ATTRIBUTE_INTEGER;
        return attribute->value.len > 0;
    default:
        return false;
    }
}

static void put_base64(struct hf__buf *buf, struct hf_bytes bytes)
{
    size_t len = hf__base64_encoded_len(bytes.len);
    uint8_t *to = hf__buf_reserve(buf, len + 2);

    if (!to)
        return;
    assert(buf->len + len + 2 <= buf->cap);
    to[0] = '"';
    hf__base64_encode(bytes, (char *)to + 1);
    to[len + 1] = '"';
    buf->len += len + 2;
}

/* A value as plain JSON. Items nest at most 32 deep, so it may recurse. */
void hf__sink_put_plain_json(struct hf_scope *s, struct hf__buf *buf, struct hf_value value)
{
    struct hf_item_walk walk = {.next = 0};
    struct hf_value_walk elements = {.index = 0};
    char before = '{';

    switch (hf_value_type(value)) {
    case HF_TYPE_S:
        hf__wire_write_str(buf, hf_value_str(value));
        return;
    case HF_TYPE_N:
        hf__buf_put_str(buf, hf_value_number(s, value));
        return;
    case HF_TYPE_B:
        put_base64(buf, hf_value_bytes(value));
        return;
    case HF_TYPE_BOOL:
        hf__buf_put_str(buf, hf_value_true(value) ? HF_STR("true") : HF_STR("false"));
        return;
    case HF_TYPE_M:
        while (hf_item_next(hf_value_item(value), &walk)) {
            hf__buf_put_byte(buf, (uint8_t)before);
            hf__wire_write_str(buf, walk.name);
            hf__buf_put_byte(buf, ':');
            hf__sink_put_plain_json(s, buf, walk.value);
            before = ',';
        }
        hf__buf_put_str(buf, before == '{' ? HF_STR("{}") : HF_STR("}"));
        return;
    case HF_TYPE_L:
    case HF_TYPE_SS:
    case HF_TYPE_NS:
    case HF_TYPE_BS:
        hf__buf_put_byte(buf, '[');
        while (hf_value_next(s, value, &elements)) {
            if (elements.index)
                hf__buf_put_byte(buf, ',');
            hf__sink_put_plain_json(s, buf, elements.value);
        }
        hf__buf_put_byte(buf, ']');
        return;
    default:
        hf__buf_put_str(buf, HF_STR("null"));
        return;
    }
}

static enum hf_status add_headers(struct attributes *a, struct hf_item headers)
{
    struct hf_item_walk walk = {.next = 0};
    struct hf__buf rest = {.scope = a->s};
    char before = '{';

    if (!headers.ptr)
        return HF_OK;
    TRY(hf_item_check(a->s, headers));
    while (hf_item_next(headers, &walk)) {
        assert(a->len < a->room);
        if (as_attribute(a->s, walk.name, walk.value, &a->list[a->len])) {
            a->len++;
            continue;
        }
        hf__buf_put_byte(&rest, (uint8_t)before);
        hf__wire_write_str(&rest, walk.name);
        hf__buf_put_byte(&rest, ':');
        hf__sink_put_plain_json(a->s, &rest, walk.value);
        before = ',';
    }
    if (before == '{')
        return HF_OK;
    hf__buf_put_byte(&rest, '}');
    if (rest.failed)
        return hf__fail_nomem(a->s);
    assert(a->len < a->room);
    a->list[a->len++] =
        (struct event_attribute){HF_STR("headersjson"), hf_str_of((const char *)rest.ptr, rest.len),
                                 ATTRIBUTE_TEXT};
    return HF_OK;
}

/* (3) */
static void attributes_check(const struct attributes *a)
{
    assert(a->len > 0 && a->len <= a->room);
    assert(hf_str_equal(a->list[0].name, HF_STR("specversion")));
    for (size_t i = 1; DEV_CHECKS && i < a->len; i++)
        for (size_t j = 0; j < i; j++)
            assert(!hf_str_equal(a->list[i].name, a->list[j].name));
}

enum hf_status hf__sink_event_attributes(struct hf_scope *s, const struct hf_event *event,
                                         const struct event_attribute **list, size_t *len)
{
    struct attributes a = {.s = s, .room = OWN_MAX + 1};

    hf__scope_alloc_clear(s);
    if (event->headers.ptr) {
        TRY(hf_item_check(s, event->headers));
        a.room += hf_item_count(event->headers);
    }
    a.list = hf__scope_array(s, a.room, sizeof(*a.list));
    if (!a.list)
        return hf__fail_nomem(s);
    TRY(add_own(&a, event));
    TRY(add_headers(&a, event->headers));
    if (hf__scope_alloc_failed(s))
        return hf__fail_nomem(s);
    attributes_check(&a);
    *list = a.list;
    *len = a.len;
    return HF_OK;
}

const struct event_attribute *hf__sink_event_attribute(const struct event_attribute *list,
                                                       size_t len, const char *name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(list[i].name, hf_str_from(name)))
            return &list[i];
    return NULL;
}

/* ---- one object ----------------------------------------------------------------------------- */

static char letter_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static bool ends_with(struct hf_str text, struct hf_str end)
{
    if (text.len < end.len)
        return false;
    for (size_t i = 0; i < end.len; i++)
        if (letter_lower(text.ptr[text.len - end.len + i]) != end.ptr[i])
            return false;
    return true;
}

/* application/json, anything/json, anything/anything+json; parameters do not count. */
bool hf__sink_is_json_type(struct hf_str type)
{
    const char *semicolon = type.len ? memchr(type.ptr, ';', type.len) : NULL;

    if (semicolon)
        type.len = (size_t)(semicolon - type.ptr);
    while (type.len && (type.ptr[type.len - 1] == ' ' || type.ptr[type.len - 1] == '\t'))
        type.len--;
    return ends_with(type, HF_STR("/json")) || ends_with(type, HF_STR("+json"));
}

/* (1): JSON that is known to be valid, without the blanks between its values. */
void hf__sink_put_compact_json(struct hf__buf *buf, struct hf_bytes json)
{
    bool in_string = false;
    size_t from = 0;

    for (size_t i = 0; i < json.len; i++) {
        uint8_t c = json.ptr[i];

        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == ' ' || c == '\n' || c == '\r' || c == '\t') {
            hf__buf_put(buf, json.ptr + from, i - from);
            from = i + 1;
        }
    }
    assert(!in_string);
    hf__buf_put(buf, json.ptr + from, json.len - from);
}

enum hf_status hf_event_json(struct hf_scope *s, const struct hf_event *event, struct hf_str *json)
{
    struct hf_str payload = hf_str_of((const char *)event->payload.ptr, event->payload.len);
    struct hf__buf buf = {.scope = s};
    const struct event_attribute *list;
    size_t len;

    *json = (struct hf_str){0};
    hf__scope_error_clear(s);
    TRY(hf__sink_event_attributes(s, event, &list, &len));
    hf__buf_reserve(&buf, 512 + payload.len);
    for (size_t i = 0; i < len; i++) {
        hf__buf_put_byte(&buf, i ? ',' : '{');
        hf__wire_write_str(&buf, list[i].name);
        hf__buf_put_byte(&buf, ':');
        if (list[i].type == ATTRIBUTE_TEXT)
            hf__wire_write_str(&buf, list[i].value);
        else
            hf__buf_put_str(&buf, list[i].value);
    }
    if (payload.len > 0) { /* (2) */
        if (hf__sink_is_json_type(hf__sink_event_content_type(event)) &&
            hf__wire_json_valid(payload)) {
            hf__buf_put_str(&buf, HF_STR(",\"data\":"));
            hf__sink_put_compact_json(&buf, event->payload);
        } else {
            hf__buf_put_str(&buf, HF_STR(",\"data_base64\":"));
            put_base64(&buf, event->payload);
        }
    }
    hf__buf_put_str(&buf, hf_str_of("}", 2)); /* and a NUL */
    if (buf.failed)
        return hf__fail_nomem(s);
    *json = hf_str_of((const char *)buf.ptr, buf.len - 1);
    return HF_OK;
}
