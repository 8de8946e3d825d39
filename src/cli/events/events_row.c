/*
 * cli/events/events_row.c: rows of the tables of @schemeless/event-store-adapter-dynamodb. See events_row.h.
 *
 *                 until 1.x          2.x                  2.8 and 3.x          later
 *     id          ID                 ID, or EventID#ID    EventID#ID           EventID#ID
 *     created     S, ISO 8601; at    S; the sort key      S; the sort key      S; the sort key
 *                 first N, seconds
 *     payload     any type           B; then S, JSON      S, JSON              S, JSON; absent when it
 *                                                                              was 0, false, "" or null
 *     s3Reference                    S, BUCKET::KEY       the same             the same
 *     sequence                                                                 N, from 1 in each stream
 *
 * and domain, type, identifier (absent: none), correlationId, causationId: S; meta: M. Later tables
 * also have an item for each stream, whose id is EventID#HEAD::DOMAIN::IDENTIFIER, whose created is
 * "HEAD", and whose version is the sequence of its last event. An object in S3 is the JSON of the whole
 * event, with its id.
 *
 *  (1) With the prefix EventID# a payload is the text of JSON, or it is what that library reads then:
 *      a string. Without it, it is the value itself.
 */
#include "cli/events/events_row.h"

#include "cli/frame/foreign_table.h"
#include "cli/frame/options/time_arg.h"
#include "cli/frame/output/json.h"

#include <assert.h>
#include <string.h>

#define PREFIX "EventID#"
#define HEAD "HEAD"

struct reading {
    struct hf_scope *s;
    struct events_row *row;
    struct hf_str *error;
};

static bool row_fail(const struct reading *r, const char *name, const char *what)
{
    return hf__foreign_member_fail(r->s, hf_str_from(name), what, r->error);
}

static bool no_memory(const struct reading *r)
{
    *r->error = HF_STR("out of memory");
    return false;
}

static bool take_text(const struct reading *r, struct hf_item item, const char *name,
                      struct hf_str *text)
{
    return hf__foreign_text(r->s, item, name, text, r->error);
}

static bool begins_with(struct hf_str text, const char *begin)
{
    size_t len = strlen(begin);

    return text.len >= len && memcmp(text.ptr, begin, len) == 0;
}

static struct hf_str text_behind(struct hf_str text, const char *begin)
{
    size_t len = strlen(begin);

    return hf_str_of(text.ptr + len, text.len - len);
}

struct hf_str hf__cli_events_row_id(struct hf_str id)
{
    return begins_with(id, PREFIX) ? text_behind(id, PREFIX) : id;
}

/* ---- where it belongs ----------------------------------------------------------------------- */

static bool take_created(const struct reading *r, struct hf_item item)
{
    struct hf_value created = hf_item_get(item, HF_STR("created"));
    struct hf_str text;
    int64_t seconds;

    if (hf_value_i64(created, &seconds) && seconds > 0 && seconds < INT64_MAX / 1000000) {
        r->row->event.time_us = seconds * 1000000;
        return true;
    }
    text = hf_scope_copy(r->s, hf_value_str(created)); /* which ends with a NUL */
    if (hf_value_type(created) == HF_TYPE_S && !text.ptr)
        return no_memory(r);
    if (text.len && hf__time_arg_parse_time(text.ptr, &r->row->event.time_us))
        return true;
    return row_fail(r, "created", "must be a time such as 2026-11-15T09:30:00.250Z");
}

static bool take_sequence(const struct reading *r, struct hf_item item, const char *name)
{
    struct hf_value value = hf_item_get(item, hf_str_from(name));
    int64_t sequence = 0;

    if (!value.ptr || hf_value_type(value) == HF_TYPE_NULL)
        return true;
    if (!hf_value_i64(value, &sequence) || sequence < 1)
        return row_fail(r, name, "must be an integer, 1 or more");
    r->row->sequence = (uint64_t)sequence;
    return true;
}

bool hf__cli_events_row_look(struct hf_scope *s, struct hf_item item, struct events_row *row,
                             struct hf_str *error)
{
    const struct reading r = {s, row, error};
    struct hf_str id = hf_value_str(hf_item_get(item, HF_STR("id")));
    struct hf_str created = hf_value_str(hf_item_get(item, HF_STR("created")));
    struct hf_event_stream_key *stream = &row->event.stream;

    *row = (struct events_row){.head = false};
    if (begins_with(id, PREFIX HEAD "::") && hf_str_equal(created, HF_STR(HEAD))) {
        row->head = true;
        row->head_of = text_behind(id, PREFIX HEAD "::");
        return take_sequence(&r, item, "version");
    }
    row->event.id = hf__cli_events_row_id(id);
    stream->id = HF_STR("");
    if (!row->event.id.len)
        return row_fail(&r, "id", "must be a string that is not empty");
    if (!take_created(&r, item) || !take_text(&r, item, "domain", &stream->domain) ||
        !take_text(&r, item, "identifier", &stream->id) || !take_sequence(&r, item, "sequence"))
        return false;
    return stream->domain.len || row_fail(&r, "domain", "is missing");
}

/* ---- what it says --------------------------------------------------------------------------- */

/* Members that are not fields of an event here. */
static bool take_meta(const struct reading *r, struct hf_item item)
{
    struct hf_value meta = hf_item_get(item, HF_STR("meta"));
    struct hf_stored_event *event = &r->row->event;
    struct hf_item_walk walk = {0};
    struct hf_attr *attrs;
    int64_t schema;
    size_t len = 0;

    event->schema = 1;
    if (!meta.ptr || hf_value_type(meta) == HF_TYPE_NULL)
        return true;
    if (hf_value_type(meta) != HF_TYPE_M)
        return row_fail(r, "meta", "must be a map");
    attrs = hf_scope_alloc(r->s, (hf_value_count(meta) + 1) * sizeof(*attrs));
    if (!attrs)
        return no_memory(r);
    while (hf_item_next(hf_value_item(meta), &walk)) {
        if (hf_str_equal(walk.name, HF_STR("schemaVersion"))) {
            if (!hf_value_i64(walk.value, &schema) || schema < 0 || schema > UINT32_MAX)
                return row_fail(r, "meta.schemaVersion", "must be an integer, 0 or more");
            event->schema = (uint32_t)schema;
        } else if (hf_str_equal(walk.name, HF_STR("compensatesEventId"))) {
            if (hf_value_type(walk.value) != HF_TYPE_S && hf_value_type(walk.value) != HF_TYPE_NULL)
                return row_fail(r, "meta.compensatesEventId", "must be a string");
            event->compensates = hf_value_str(walk.value);
        } else if (!hf_str_equal(walk.name, HF_STR("isCompensating"))) {
            attrs[len++] = hf_attr_of_value(walk.name, walk.value);
        }
    }
    if (len)
        event->meta = hf_item_make(r->s, attrs, len);
    return true;
}

static bool is_json(struct hf_bytes bytes)
{
    return bytes.len && hf__cli_json_check(hf_str_of((const char *)bytes.ptr, bytes.len)) == 0;
}

/* (1) */
static bool take_payload(const struct reading *r, struct hf_item item)
{
    struct hf_value value = hf_item_get(item, HF_STR("payload"));
    struct hf_str id = hf_value_str(hf_item_get(item, HF_STR("id"))), json;
    struct hf_stored_event *event = &r->row->event;
    struct hf_str text = hf_value_str(value);

    event->content_type = HF_STR("application/json");
    if (!value.ptr)
        return true;
    if (hf_value_type(value) == HF_TYPE_B) {
        event->payload = hf_value_bytes(value);
        if (event->payload.len && !is_json(event->payload))
            event->content_type = HF_STR("application/octet-stream");
        return true;
    }
    event->payload = hf_bytes_of(text.ptr, text.len);
    if (begins_with(id, PREFIX) && text.ptr && is_json(event->payload))
        return true;
    json = hf__cli_json_of_value(r->s, value);
    if (!json.ptr)
        return no_memory(r);
    event->payload = hf_bytes_of(json.ptr, json.len);
    return true;
}

bool hf__cli_events_row_read(struct hf_scope *s, struct hf_item item, struct events_row *row,
                             struct hf_str *error)
{
    const struct reading r = {s, row, error};
    struct hf_stored_event *event = &row->event;

    if (!hf__cli_events_row_look(s, item, row, error))
        return false;
    if (row->head)
        return true;
    if (!take_text(&r, item, "type", &event->type) ||
        !take_text(&r, item, "correlationId", &event->correlation) ||
        !take_text(&r, item, "causationId", &event->causation) ||
        !take_text(&r, item, "s3Reference", &row->reference) || !take_meta(&r, item) ||
        !take_payload(&r, item))
        return false;
    if (!event->type.len)
        return row_fail(&r, "type", "is missing");
    if (!event->correlation.len) /* as it has itself when it begins something */
        event->correlation = event->id;
    if (!event->causation.len)
        event->causation = (struct hf_str){0};
    if (!row->reference.len)
        row->reference = (struct hf_str){0};
    return true;
}

bool hf__cli_events_row_object(struct hf_scope *s, struct hf_bytes object, struct events_row *row,
                               struct hf_str *error)
{
    const struct reading r = {s, row, error};
    struct hf_str text = hf_str_of((const char *)object.ptr, object.len), why;
    const struct json_node *json = hf__cli_json_read(s, text, &why), *id, *payload;

    assert(row->reference.ptr);
    if (!json || json->kind != JSON_OBJECT)
        return row_fail(&r, "s3Reference", "names an object that is not the JSON of an event");
    id = hf__cli_json_member(json, "id");
    if (!id || id->kind != JSON_STRING || !hf_str_equal(id->text, row->event.id))
        return row_fail(&r, "s3Reference", "names an object of another event");
    payload = hf__cli_json_member(json, "payload");
    if (payload)
        row->event.payload = hf_bytes_of(payload->raw.ptr, payload->raw.len);
    return true;
}
