/*
 * cli/outbox/outbox_line.c: events as lines of JSON. See outbox_line.h.
 *
 * Lines of our own and CloudEvents are objects whose members are known by a table. The bytes of a
 * payload that is JSON are those of the line.
 *
 * Rows come as DynamoDB's JSON, as `aws dynamodb scan` and an export to S3 ({"Item":...}) print
 * them, or as plain JSON, as a document client does.
 *
 *     outbox-event-bus   id, type, payload (any value), occurredAt, status (created, active,
 *                        failed, completed), gsiSortKey (of a created one: when it is due, in ms),
 *                        metadata
 *     Excalibur          pk, sk (the id), messageType, payload (base64), headers (the text of a
 *                        JSON object), createdAt, isPublished, retryCount, aggregateId,
 *                        aggregateType, correlationId, causationId, tenantId, destination
 *
 * What always holds:
 *
 *  (1) A member that is not known is an error: nothing that was meant is lost. What a row has
 *      besides was not part of the message there, and is left out.
 *  (2) What a member has to be and is not is an error, which names the member.
 */
#include "cli/outbox/outbox_line.h"

#include "cli/frame/input.h"
#include "cli/frame/json.h"
#include "cli/frame/time_arg.h"

#include <stddef.h>
#include <string.h>

enum { OFFSET_LEN = 6, HEADERS_MAX = 1000 }; /* "+02:00" */

struct reading {
    struct hf_scope *s;
    struct outbox_line *line;
    struct hf_str *error;
};

static bool member_fail(const struct reading *r, struct hf_str name, const char *what)
{
    *r->error = hf_scope_format(r->s, "\"%.*s\" %s", HF_FMT(name), what);
    if (!r->error->ptr)
        *r->error = HF_STR("out of memory");
    return false;
}

static bool no_memory(const struct reading *r)
{
    *r->error = HF_STR("out of memory");
    return false;
}

/* ---- values --------------------------------------------------------------------------------- */

/* 2026-11-15T09:30:00.1234567Z, or with +02:00 instead of the Z. */
static bool read_time(struct hf_scope *s, struct hf_str given, int64_t *us)
{
    struct hf_str text = hf_scope_copy(s, given);
    char *offset =
        text.len > OFFSET_LEN ? (char *)(uintptr_t)text.ptr + text.len - OFFSET_LEN : NULL;
    int64_t minutes = 0;

    if (!text.ptr || (offset && !memchr(text.ptr, 'T', text.len)))
        return text.ptr && hf__time_arg_parse_time(text.ptr, us);
    if (offset && (*offset == '+' || *offset == '-') && offset[3] == ':') {
        static const size_t digits[] = {1, 2, 4, 5};

        for (size_t i = 0; i < sizeof(digits) / sizeof(digits[0]); i++)
            if (offset[digits[i]] < '0' || offset[digits[i]] > '9')
                return false;
        if ((offset[1] - '0') * 10 + offset[2] - '0' > 23 || offset[4] > '5')
            return false;
        minutes = ((offset[1] - '0') * 10 + offset[2] - '0') * 60 + (offset[4] - '0') * 10 +
                  offset[5] - '0';
        if (*offset == '-')
            minutes = -minutes;
        *offset = '\0';
    }
    if (!hf__time_arg_parse_time(text.ptr, us))
        return false;
    *us -= minutes * 60 * 1000000;
    return *us > 0;
}

static bool read_base64(struct hf_scope *s, struct hf_str text, struct hf_bytes *bytes)
{
    struct json_text json;
    struct hf_item item;
    struct hf_str whole;

    if (hf__cli_json_text_begin(&json)) {
        fputs("{\"v\":{\"B\":", json.out);
        hf__cli_json_write_text(json.out, text);
        fputs("}}", json.out);
    }
    whole = hf__cli_json_text_end(&json, s);
    if (!whole.ptr || hf_item_from_json(s, whole, &item) != HF_OK)
        return false;
    *bytes = hf_value_bytes(hf_item_get(item, HF_STR("v")));
    return true;
}

static bool read_number(struct hf_str text, uint64_t *number)
{
    *number = 0;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned)(text.ptr[i] - '0');

        if (digit > 9 || *number > (UINT64_MAX - digit) / 10)
            return false;
        *number = *number * 10 + digit;
    }
    return text.len > 0;
}

/* The headers of the event: those it has, and these. */
static bool add_headers(const struct reading *r, struct hf_str name, const struct json_node *object)
{
    struct hf_event *event = &r->line->event;
    struct hf_attr *attrs;
    size_t len = 0;

    if (object->kind != JSON_OBJECT)
        return member_fail(r, name, "must be an object");
    if (object->len > HEADERS_MAX)
        return member_fail(r, name, "has more than 1000 members");
    attrs = hf_scope_alloc(r->s, (object->len + 1) * sizeof(*attrs));
    if (!attrs)
        return no_memory(r);
    for (const struct json_node *member = object->first; member; member = member->next) {
        struct hf_value value = hf__cli_json_to_value(r->s, member);

        if (!value.ptr)
            return member_fail(r, name, "has a value that cannot be stored");
        attrs[len++] = (struct hf_attr){.name = member->name, .value = value};
    }
    if (len)
        event->headers = hf_item_with(r->s, event->headers, attrs, len);
    if (event->headers.ptr && hf_item_check(r->s, event->headers) != HF_OK) {
        *r->error = hf_scope_format(r->s, "\"%.*s\" has a value that cannot be stored: %s",
                                    HF_FMT(name), hf_scope_error_text(r->s));
        return r->error->ptr ? false : no_memory(r);
    }
    return true;
}

/* The same from the text of an object. */
static bool add_header_text(const struct reading *r, struct hf_str name, struct hf_str text)
{
    struct hf_str error;
    const struct json_node *object = hf__cli_json_read(r->s, text, &error);

    return object ? add_headers(r, name, object)
                  : member_fail(r, name, "must be a string that holds a JSON object");
}

/* ---- lines of our own, and CloudEvents ------------------------------------------------------ */

enum member_kind {
    MEMBER_TEXT,
    MEMBER_SEQUENCE,
    MEMBER_FLAG,
    MEMBER_TIME,
    MEMBER_PAYLOAD,
    MEMBER_BASE64,
    MEMBER_HEADERS,
    MEMBER_HEADER_TEXT,
    MEMBER_IGNORED
};

struct member {
    const char *name;
    enum member_kind kind;
    size_t offset;
};

#define IN(field) offsetof(struct hf_event, field)

static const struct member own[] = {
    {"id", MEMBER_TEXT, IN(id)},
    {"type", MEMBER_TEXT, IN(type)},
    {"key", MEMBER_TEXT, IN(key)},
    {"sequence", MEMBER_SEQUENCE, 0},
    {"time", MEMBER_TIME, IN(time_us)},
    {"due", MEMBER_TIME, IN(due_us)},
    {"urgent", MEMBER_FLAG, IN(urgent)},
    {"payload", MEMBER_PAYLOAD, 0},
    {"payload_base64", MEMBER_BASE64, 0},
    {"content_type", MEMBER_TEXT, IN(content_type)},
    {"schema", MEMBER_TEXT, IN(schema)},
    {"headers", MEMBER_HEADERS, 0},
    {"source", MEMBER_TEXT, IN(source)},
    {"correlation", MEMBER_TEXT, IN(correlation)},
    {"causation", MEMBER_TEXT, IN(causation)},
    {"aggregate", MEMBER_TEXT, IN(aggregate)},
    {"aggregate_type", MEMBER_TEXT, IN(aggregate_type)},
    {"tenant", MEMBER_TEXT, IN(tenant)},
    {"destination", MEMBER_TEXT, IN(destination)},
    {"trace_parent", MEMBER_TEXT, IN(trace_parent)},
    {"trace_state", MEMBER_TEXT, IN(trace_state)},
};

/* As sinks write them: docs/relay.md. All others are headers. */
static const struct member cloudevents[] = {
    {"specversion", MEMBER_IGNORED, 0},
    {"id", MEMBER_TEXT, IN(id)},
    {"source", MEMBER_TEXT, IN(source)},
    {"type", MEMBER_TEXT, IN(type)},
    {"time", MEMBER_TIME, IN(time_us)},
    {"datacontenttype", MEMBER_TEXT, IN(content_type)},
    {"dataschema", MEMBER_TEXT, IN(schema)},
    {"schemaversion", MEMBER_TEXT, IN(schema)},
    {"subject", MEMBER_TEXT, IN(aggregate)},
    {"aggregatetype", MEMBER_TEXT, IN(aggregate_type)},
    {"partitionkey", MEMBER_TEXT, IN(key)},
    {"sequence", MEMBER_SEQUENCE, 0},
    {"correlationid", MEMBER_TEXT, IN(correlation)},
    {"causationid", MEMBER_TEXT, IN(causation)},
    {"tenant", MEMBER_TEXT, IN(tenant)},
    {"destination", MEMBER_TEXT, IN(destination)},
    {"traceparent", MEMBER_TEXT, IN(trace_parent)},
    {"tracestate", MEMBER_TEXT, IN(trace_state)},
    {"urgent", MEMBER_FLAG, IN(urgent)},
    {"headersjson", MEMBER_HEADER_TEXT, 0},
    {"data", MEMBER_PAYLOAD, 0},
    {"data_base64", MEMBER_BASE64, 0},
};

static bool take_member(const struct reading *r, const struct member *member,
                        const struct json_node *json)
{
    struct hf_event *event = &r->line->event;
    void *field = (char *)event + member->offset;

    if (member->kind == MEMBER_PAYLOAD) {
        event->payload = hf_bytes_of(json->raw.ptr, json->raw.len);
        return true;
    }
    if (json->kind == JSON_NULL || member->kind == MEMBER_IGNORED)
        return true;
    if (member->kind == MEMBER_HEADERS)
        return add_headers(r, json->name, json);
    if (member->kind == MEMBER_SEQUENCE)
        return ((json->kind == JSON_NUMBER || json->kind == JSON_STRING) &&
                read_number(json->text, &event->sequence)) ||
               member_fail(r, json->name, "must be an integer, 0 or more");
    if (member->kind == MEMBER_FLAG) {
        *(bool *)field = json->kind == JSON_TRUE;
        return json->kind == JSON_TRUE || json->kind == JSON_FALSE ||
               member_fail(r, json->name, "must be true or false");
    }
    if (json->kind != JSON_STRING)
        return member_fail(r, json->name, "must be a string");
    if (member->kind == MEMBER_HEADER_TEXT)
        return add_header_text(r, json->name, json->text);
    if (member->kind == MEMBER_BASE64)
        return read_base64(r->s, json->text, &event->payload) ||
               member_fail(r, json->name, "must be base64");
    if (member->kind == MEMBER_TIME)
        return read_time(r->s, json->text, field) ||
               member_fail(r, json->name, "must be a time such as 2026-11-15T09:30:00.25Z");
    *(struct hf_str *)field = json->text;
    return true;
}

static const struct member *find_member(const struct member *members, size_t len,
                                        struct hf_str name)
{
    for (size_t i = 0; i < len; i++)
        if (hf_str_equal(name, hf_str_from(members[i].name)))
            return &members[i];
    return NULL;
}

/* `others`: a member that is not known is a header, and not an error (1). */
static bool take_members(const struct reading *r, const struct json_node *object,
                         const struct member *members, size_t members_len, bool others)
{
    struct hf_event *event = &r->line->event;
    const struct json_node *payload = NULL;

    for (const struct json_node *json = object->first; json; json = json->next) {
        const struct member *member = find_member(members, members_len, json->name);

        if (!member && others) {
            struct json_node one = *json, header = {.kind = JSON_OBJECT, .first = &one, .len = 1};

            one.next = NULL;
            if (!add_headers(r, json->name, &header))
                return false;
            continue;
        }
        if (!member)
            return member_fail(r, json->name, "is not a member of an event");
        if (member->kind == MEMBER_PAYLOAD || member->kind == MEMBER_BASE64) {
            if (payload)
                return member_fail(r, json->name, "is a second payload; give one");
            payload = json;
        }
        if (!take_member(r, member, json))
            return false;
    }
    /* A text in JSON stands for itself where JSON is not what is meant: base64 has been read. */
    if (payload && payload->kind == JSON_STRING &&
        event->payload.ptr == (const void *)payload->raw.ptr && event->content_type.len &&
        !hf__input_is_json(event->content_type))
        event->payload = hf_bytes_of(payload->text.ptr, payload->text.len);
    return true;
}

static bool read_object(const struct reading *r, const struct json_node *object,
                        enum outbox_line_form form)
{
    const struct json_node *version = hf__cli_json_member(object, "specversion");

    if (form == OUTBOX_LINE_OWN)
        return take_members(r, object, own, sizeof(own) / sizeof(own[0]), false);
    if (!version || version->kind != JSON_STRING || !hf_str_equal(version->text, HF_STR("1.0")))
        return member_fail(r, HF_STR("specversion"), "must be \"1.0\"");
    return take_members(r, object, cloudevents, sizeof(cloudevents) / sizeof(cloudevents[0]), true);
}

/* ---- rows ----------------------------------------------------------------------------------- */

/* DynamoDB's JSON, as an item or an exported one, or plain JSON; `key` is a text in every row. */
static bool read_item(const struct reading *r, const struct json_node *object, const char *key,
                      struct hf_item *item)
{
    const struct json_node *whole = hf__cli_json_member(object, "Item");
    const struct json_node *row = whole && object->len == 1 ? whole : object;
    const struct json_node *id = hf__cli_json_member(row, key);

    if (id && id->kind == JSON_OBJECT) {
        if (hf_item_from_json(r->s, row->raw, item) == HF_OK)
            return true;
        *r->error = hf_scope_format(r->s, "%s", hf_scope_error_text(r->s));
        return r->error->ptr ? false : no_memory(r);
    }
    *item = hf_value_item(hf__cli_json_to_value(r->s, row));
    if (item->ptr && hf_item_check(r->s, *item) == HF_OK)
        return true;
    *r->error = HF_STR("not an item in DynamoDB's JSON");
    return false;
}

/* (2) An attribute that is a text; absent or NULL: nothing is changed. */
static bool take_text(const struct reading *r, struct hf_item item, const char *name,
                      struct hf_str *text)
{
    struct hf_value value = hf_item_get(item, hf_str_from(name));

    if (!value.ptr || hf_value_type(value) == HF_TYPE_NULL)
        return true;
    if (hf_value_type(value) != HF_TYPE_S)
        return member_fail(r, hf_str_from(name), "must be a string");
    *text = hf_value_str(value);
    return true;
}

struct row_text {
    const char *name;
    size_t offset;
};

static bool take_texts(const struct reading *r, struct hf_item item, const struct row_text *texts,
                       size_t len)
{
    for (size_t i = 0; i < len; i++) {
        void *field = (char *)&r->line->event + texts[i].offset;

        if (!take_text(r, item, texts[i].name, field))
            return false;
    }
    return true;
}

static bool take_row_time(const struct reading *r, struct hf_item item, const char *name)
{
    struct hf_str text = {0};

    if (!take_text(r, item, name, &text))
        return false;
    return !text.ptr || read_time(r->s, text, &r->line->event.time_us) ||
           member_fail(r, hf_str_from(name), "must be a time such as 2026-11-15T09:30:00.250Z");
}

/* An id and a type are what makes it a row of such a table. */
static bool has_names(const struct reading *r, const char *id, const char *type)
{
    if (!r->line->event.id.len)
        return member_fail(r, hf_str_from(id), "is missing");
    return r->line->event.type.len || member_fail(r, hf_str_from(type), "is missing");
}

static bool take_event_bus(const struct reading *r, struct hf_item item)
{
    static const struct row_text texts[] = {{"id", IN(id)}, {"type", IN(type)}};
    struct hf_value payload = hf_item_get(item, HF_STR("payload"));
    struct hf_value metadata = hf_item_get(item, HF_STR("metadata"));
    struct hf_event *event = &r->line->event;
    struct hf_str status = HF_STR("created"), json;
    int64_t due_ms;

    if (!take_texts(r, item, texts, sizeof(texts) / sizeof(texts[0])) ||
        !has_names(r, "id", "type") || !take_row_time(r, item, "occurredAt") ||
        !take_text(r, item, "status", &status))
        return false;
    r->line->done = hf_str_equal(status, HF_STR("completed"));
    r->line->failed = hf_str_equal(status, HF_STR("failed"));
    if (hf_str_equal(status, HF_STR("created")) &&
        hf_value_i64(hf_item_get(item, HF_STR("gsiSortKey")), &due_ms) &&
        due_ms > event->time_us / 1000 && due_ms < INT64_MAX / 1000)
        event->due_us = due_ms * 1000;
    if (payload.ptr) {
        json = hf__cli_json_of_value(r->s, payload);
        if (!json.ptr)
            return no_memory(r);
        event->payload = hf_bytes_of(json.ptr, json.len);
    }
    if (metadata.ptr && hf_value_type(metadata) == HF_TYPE_M)
        event->headers = hf_value_item(metadata);
    return true;
}

/* Bytes of which nobody says what they are. */
static struct hf_str guess_content_type(struct hf_scope *s, struct hf_bytes payload)
{
    struct hf_str error, text = hf_str_of((const char *)payload.ptr, payload.len);

    if (!payload.len || hf__cli_json_read(s, text, &error))
        return HF_STR("application/json");
    return HF_STR("application/octet-stream");
}

static bool take_excalibur(const struct reading *r, struct hf_item item)
{
    static const struct row_text texts[] = {
        {"sk", IN(id)},
        {"messageType", IN(type)},
        {"pk", IN(key)},
        {"aggregateId", IN(aggregate)},
        {"aggregateType", IN(aggregate_type)},
        {"correlationId", IN(correlation)},
        {"causationId", IN(causation)},
        {"tenantId", IN(tenant)},
        {"destination", IN(destination)},
    };
    struct hf_event *event = &r->line->event;
    struct hf_str payload = {0}, headers = {0};

    if (!take_texts(r, item, texts, sizeof(texts) / sizeof(texts[0])) ||
        !has_names(r, "sk", "messageType") || !take_row_time(r, item, "createdAt") ||
        !take_text(r, item, "payload", &payload) || !take_text(r, item, "headers", &headers))
        return false;
    r->line->done = hf_value_true(hf_item_get(item, HF_STR("isPublished")));
    if (hf_str_equal(event->tenant, HF_STR("__untenanted__")))
        event->tenant = (struct hf_str){0};
    if (payload.len && !read_base64(r->s, payload, &event->payload))
        return member_fail(r, HF_STR("payload"), "must be base64");
    event->content_type = guess_content_type(r->s, event->payload);
    return !headers.len || add_header_text(r, HF_STR("headers"), headers);
}

bool hf__cli_outbox_line_read(struct hf_scope *s, enum outbox_line_form form, struct hf_str text,
                              struct outbox_line *line, struct hf_str *error)
{
    const struct reading r = {s, line, error};
    const struct json_node *object = hf__cli_json_read(s, text, error);
    struct hf_item item;

    *line = (struct outbox_line){.done = false};
    if (!object) {
        const struct hf_str place = HF_STR("line 1: "); /* there is no other */

        if (error->len > place.len && memcmp(error->ptr, place.ptr, place.len) == 0)
            *error = hf_str_of(error->ptr + place.len, error->len - place.len);
        return false;
    }
    if (object->kind != JSON_OBJECT) {
        *error = HF_STR("not a JSON object");
        return false;
    }
    switch (form) {
    case OUTBOX_LINE_EVENT_BUS:
        return read_item(&r, object, "id", &item) && take_event_bus(&r, item);
    case OUTBOX_LINE_EXCALIBUR:
        return read_item(&r, object, "sk", &item) && take_excalibur(&r, item);
    case OUTBOX_LINE_OWN:
    case OUTBOX_LINE_CLOUDEVENTS:
        break;
    }
    return read_object(&r, object, form);
}
