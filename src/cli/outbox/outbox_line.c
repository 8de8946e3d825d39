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
 *                        failed, completed; before 1.0 PENDING, PROCESSING, FAILED, COMPLETED),
 *                        gsiSortKey (of a created one: when it is due; of an active one: when its
 *                        claim ends; in ms), nextAttempt (once the same), metadata
 *     Excalibur.Outbox   pk, sk (the id), messageType, payload (base64), headers (the text of a
 *                        JSON object), createdAt, isPublished, retryCount, aggregateId,
 *                        aggregateType, correlationId, causationId, tenantId, destination,
 *                        leasedAt and leasedBy (who has claimed it)
 *     Excalibur.Data     PK (OUTBOX# and a status), SK, messageId, messageType, payload (bytes),
 *                        headers (as above), createdAt, scheduledAt, destination, correlationId,
 *                        causationId, tenantId, lastAttemptAt
 *
 * What always holds:
 *
 *  (1) A member that is not known is an error: nothing that was meant is lost. What a row has
 *      besides was not part of the message there, and is left out.
 *  (2) What a member has to be and is not is an error, which names the member.
 */
#include "cli/outbox/outbox_line.h"

#include "cli/frame/foreign_table.h"
#include "cli/frame/options/time_arg.h"
#include "cli/frame/output/json.h"
#include "cli/frame/process/input.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "base/base64.h"

enum { OFFSET_LEN = 6, HEADERS_MAX = 1000 }; /* "+02:00" */

struct reading {
    struct hf_scope *s;
    struct outbox_line *line;
    struct hf_str *error;
};

static bool member_fail(const struct reading *r, struct hf_str name, const char *what)
{
    return hf__foreign_member_fail(r->s, name, what, r->error);
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
    uint8_t *room = hf_scope_alloc(s, hf__base64_decoded_max(text.len) + 1);
    size_t len;

    if (!room || hf__base64_decode(text, room, &len) != BASE64_OK)
        return false;
    *bytes = hf_bytes_of(room, len);
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
    return hf__foreign_text(r->s, item, name, text, r->error);
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
static bool has_names(const struct reading *r, struct hf_str id, const char *type)
{
    if (!r->line->event.id.len)
        return member_fail(r, id, "is missing");
    return r->line->event.type.len || member_fail(r, hf_str_from(type), "is missing");
}

/* Times are in ms there. */
static bool read_ms(struct hf_item item, const char *name, int64_t *us)
{
    int64_t ms;

    if (!hf_value_i64(hf_item_get(item, hf_str_from(name)), &ms) || ms <= 0 ||
        ms >= INT64_MAX / 1000)
        return false;
    *us = ms * 1000;
    return true;
}

/* The states of a row in its library, and what they mean. */
enum row_state { ROW_PENDING, ROW_CLAIMED, ROW_DONE, ROW_FAILED, ROW_ADOPTING };

struct row_word {
    const char *word;
    enum row_state state;
};

static bool take_state(const struct reading *r, struct hf_str name, struct hf_str word,
                       const struct row_word *words, size_t len, const char *expected)
{
    size_t i = 0;

    while (i < len && !hf_str_equal(word, hf_str_from(words[i].word)))
        i++;
    if (i == len)
        return member_fail(r, name, expected);
    r->line->claimed = words[i].state == ROW_CLAIMED;
    r->line->done = words[i].state == ROW_DONE;
    r->line->failed = words[i].state == ROW_FAILED;
    r->line->adopting = words[i].state == ROW_ADOPTING;
    return true;
}

static bool take_event_bus(const struct reading *r, struct hf_item item)
{
    static const struct row_text texts[] = {{"id", IN(id)}, {"type", IN(type)}};
    static const struct row_word words[] = {
        {"created", ROW_PENDING}, {"active", ROW_CLAIMED},  {"completed", ROW_DONE},
        {"failed", ROW_FAILED},   {"PENDING", ROW_PENDING}, {"PROCESSING", ROW_CLAIMED},
        {"COMPLETED", ROW_DONE},  {"FAILED", ROW_FAILED},   {OUTBOX_ADOPTING_STATUS, ROW_ADOPTING}};
    struct hf_value payload = hf_item_get(item, HF_STR("payload"));
    struct hf_value metadata = hf_item_get(item, HF_STR("metadata"));
    struct hf_str status = HF_STR("created"), json;
    const struct hf_env *env = hf_scope_env(r->s);
    struct hf_event *event = &r->line->event;
    int64_t at_us = 0;

    if (!take_text(r, item, "status", &status) ||
        !take_state(r, HF_STR("status"), status, words, sizeof(words) / sizeof(words[0]),
                    "must be created, active, failed or completed") ||
        !take_texts(r, item, texts, sizeof(texts) / sizeof(texts[0])) ||
        !has_names(r, HF_STR("id"), "type") || !take_row_time(r, item, "occurredAt"))
        return false;
    if (!read_ms(item, "gsiSortKey", &at_us))
        (void)read_ms(item, "nextAttempt", &at_us);
    if (r->line->claimed)
        r->line->claim_us = at_us;
    else if (!r->line->done && !r->line->failed &&
             (at_us > event->time_us || at_us > env->wall_us(env->user)))
        event->due_us = at_us; /* also of an event of the future, which waits for its own time */
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

/* What rows of both packages have. */
static bool take_excalibur_common(const struct reading *r, struct hf_item item)
{
    static const struct row_text texts[] = {
        {"messageType", IN(type)},          {"aggregateId", IN(aggregate)},
        {"correlationId", IN(correlation)}, {"aggregateType", IN(aggregate_type)},
        {"causationId", IN(causation)},     {"tenantId", IN(tenant)},
        {"destination", IN(destination)},
    };
    struct hf_event *event = &r->line->event;

    if (!take_texts(r, item, texts, sizeof(texts) / sizeof(texts[0])) ||
        !take_row_time(r, item, "createdAt"))
        return false;
    if (hf_str_equal(event->tenant, HF_STR("__untenanted__")))
        event->tenant = (struct hf_str){0};
    return true;
}

static bool take_excalibur_headers(const struct reading *r, struct hf_item item)
{
    struct hf_str headers = {0};

    if (!take_text(r, item, "headers", &headers))
        return false;
    return !headers.len || hf_str_equal(headers, HF_STR("null")) ||
           add_header_text(r, HF_STR("headers"), headers);
}

/* Since when a worker has it. */
static bool take_claim(const struct reading *r, struct hf_item item, const char *name)
{
    struct hf_str text = {0};

    if (!take_text(r, item, name, &text))
        return false;
    return !text.len || read_time(r->s, text, &r->line->claim_us) ||
           member_fail(r, hf_str_from(name), "must be a time such as 2026-11-15T09:30:00.250Z");
}

static bool take_excalibur(const struct reading *r, struct hf_item item, struct hf_str hash,
                           struct hf_str sort)
{
    struct hf_event *event = &r->line->event;
    struct hf_str payload = {0};

    event->id = hf_value_str(hf_item_get(item, sort));
    event->key = hf_value_str(hf_item_get(item, hash));
    r->line->adopting = hf_item_get(item, HF_STR(OUTBOX_ADOPTING_SINCE)).ptr != NULL;
    r->line->done = hf_value_true(hf_item_get(item, HF_STR("isPublished"))) && !r->line->adopting;
    if (!take_excalibur_common(r, item) || !has_names(r, sort, "messageType") ||
        !take_text(r, item, "payload", &payload) || !take_claim(r, item, "leasedAt"))
        return false;
    r->line->claimed = r->line->claim_us && !r->line->adopting && !r->line->done;
    if (payload.len && !read_base64(r->s, payload, &event->payload))
        return member_fail(r, HF_STR("payload"), "must be base64");
    event->content_type = guess_content_type(r->s, event->payload);
    return take_excalibur_headers(r, item);
}

static bool take_excalibur_data(const struct reading *r, struct hf_item item)
{
    static const struct row_word words[] = {
        {"OUTBOX#Staged", ROW_PENDING},
        {"OUTBOX#Sending", ROW_CLAIMED},
        {"OUTBOX#Sent", ROW_DONE},
        {"OUTBOX#Failed", ROW_FAILED},
        {"OUTBOX#PartiallyFailed", ROW_FAILED},
    };
    struct hf_value payload = hf_item_get(item, HF_STR("payload"));
    struct hf_value adopting = hf_item_get(item, HF_STR(OUTBOX_ADOPTING_DUE));
    struct hf_event *event = &r->line->event;
    struct hf_str state = {0}, due = {0};

    if (!take_text(r, item, "PK", &state) ||
        !take_state(r, HF_STR("PK"), state, words, sizeof(words) / sizeof(words[0]),
                    "must be OUTBOX# and a status, as in OUTBOX#Staged") ||
        !take_text(r, item, "messageId", &event->id) || !take_excalibur_common(r, item) ||
        !has_names(r, HF_STR("messageId"), "messageType") ||
        !take_claim(r, item, "lastAttemptAt") ||
        !take_text(r, item, adopting.ptr ? OUTBOX_ADOPTING_DUE : "scheduledAt", &due))
        return false;
    r->line->adopting = adopting.ptr != NULL && !r->line->done;
    r->line->claimed = r->line->claimed && !r->line->adopting;
    if (!r->line->claimed)
        r->line->claim_us = 0;
    if (due.len && !read_time(r->s, due, &event->due_us))
        return member_fail(r, HF_STR("scheduledAt"),
                           "must be a time such as 2026-11-15T09:30:00.250Z");
    if (payload.ptr && hf_value_type(payload) != HF_TYPE_B)
        return member_fail(r, HF_STR("payload"), "must be binary");
    if (payload.ptr)
        event->payload = hf_value_bytes(payload);
    event->content_type = guess_content_type(r->s, event->payload);
    return take_excalibur_headers(r, item);
}

static bool take_row(const struct reading *r, enum outbox_line_form form, struct hf_item item,
                     struct hf_str hash, struct hf_str sort)
{
    switch (form) {
    case OUTBOX_LINE_EVENT_BUS:
        return take_event_bus(r, item);
    case OUTBOX_LINE_EXCALIBUR:
        return take_excalibur(r, item, hash.len ? hash : HF_STR("pk"),
                              sort.len ? sort : HF_STR("sk"));
    case OUTBOX_LINE_EXCALIBUR_DATA:
        return take_excalibur_data(r, item);
    case OUTBOX_LINE_OWN:
    case OUTBOX_LINE_CLOUDEVENTS:
        break;
    }
    assert(false);
    return false;
}

bool hf__cli_outbox_row_read(struct hf_scope *s, enum outbox_line_form form, struct hf_item item,
                             struct hf_str hash, struct hf_str sort, struct outbox_line *line,
                             struct hf_str *error)
{
    const struct reading r = {s, line, error};

    *line = (struct outbox_line){.done = false};
    return take_row(&r, form, item, hash, sort);
}

/* What has the id of a row. */
static const char *const row_ids[] = {[OUTBOX_LINE_EVENT_BUS] = "id",
                                      [OUTBOX_LINE_EXCALIBUR] = "sk",
                                      [OUTBOX_LINE_EXCALIBUR_DATA] = "messageId"};

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
    if (form == OUTBOX_LINE_OWN || form == OUTBOX_LINE_CLOUDEVENTS)
        return read_object(&r, object, form);
    return read_item(&r, object, row_ids[form], &item) &&
           take_row(&r, form, item, (struct hf_str){0}, (struct hf_str){0});
}
