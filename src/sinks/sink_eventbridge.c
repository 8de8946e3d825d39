/*
 * sinks/sink_eventbridge.c: Amazon EventBridge, by PutEvents in its JSON protocol.
 *
 *     eventbridge:default
 *     eventbridge:arn:aws:events:eu-central-1:123456789012:event-bus/orders
 *
 * Source and detail type are those of the event unless there are templates for them; the detail is
 * the JSON object of CloudEvents, or the payload when that is an object and detail=payload, or with
 * detail=outbox-event-bus the JSON object of bus_message.c.
 *
 * EventBridge counts 14 bytes for a time, and the bytes of source, detail type and detail.
 *
 * What always holds:
 *
 *  (1) An answer lists the entries by their place. It is invalid if it has more entries than the
 *      call, or if FailedEntryCount is not the number of entries that have failed. An entry that is
 *      missing in it was not delivered.
 *  (2) An entry is done when it has an EventId and no ErrorCode.
 */
#include "sinks/aws.h"

#include "base/utf8.h"
#include "ops/table.h"
#include "wire/wire.h"

enum {
    EVENTBRIDGE_MAX = 1024 * 1024,  /* of one entry; 256 KiB until 2026 */
    EVENTBRIDGE_BATCH = 256 * 1024, /* of all in a call, unless it is one */
    TIME_BYTES = 14,
    SOURCE_MAX = 256,
    DETAIL_TYPE_MAX = 128
};

enum { DETAIL_EVENT = 1, DETAIL_PAYLOAD, DETAIL_BUS };

struct eventbridge_options {
    struct aws_options aws;
    int detail;
    struct hf_str source, detail_type;
};

struct eventbridge {
    struct hf_env env;
    struct eventbridge_options options;
    struct template bus, source, detail_type;
    struct aws *aws;
};

static const struct sink_option options[] = {
    AWS_OPTIONS(struct eventbridge_options),
    {"detail", SINK_WORD, offsetof(struct eventbridge_options, detail), 0, 0,
     "event|payload|outbox-event-bus"},
    {"source", SINK_TEXT, offsetof(struct eventbridge_options, source), 0, 0, NULL},
    {"detail_type", SINK_TEXT, offsetof(struct eventbridge_options, detail_type), 0, 0, NULL},
};

/* ---- requests ------------------------------------------------------------------------------- */

/* Characters of UTF-8. */
static size_t count_characters(struct hf_str text)
{
    size_t count = 0;

    for (size_t i = 0; i < text.len; i++)
        count += ((unsigned char)text.ptr[i] & 0xC0) != 0x80;
    return count;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static enum hf_status make_detail(struct hf_scope *s, const struct eventbridge *bridge,
                                  const struct hf_event *event, struct hf_str *detail)
{
    size_t at = 0;

    if (bridge->options.detail == DETAIL_EVENT)
        return hf_event_json(s, event, detail);
    if (bridge->options.detail == DETAIL_BUS)
        return hf__sink_bus_message_json(s, event, detail);
    *detail = hf_str_of((const char *)event->payload.ptr, event->payload.len);
    while (at < detail->len && is_blank(detail->ptr[at]))
        at++;
    if (at == detail->len || detail->ptr[at] != '{' || !hf__wire_json_valid(*detail))
        return hf__fail(s, HF_INVALID,
                        "its payload is not a JSON object, which detail=payload requires");
    return HF_OK;
}

static enum hf_status make_names(struct hf_scope *s, const struct eventbridge *bridge,
                                 const struct hf_event *event, struct hf_str *source,
                                 struct hf_str *detail_type)
{
    struct hf_str rest;

    *source = event->source.len ? event->source : HF_STR("holdfast");
    *detail_type = event->type;
    if (bridge->source.len)
        TRY(hf__template_fill(s, &bridge->source, event, source));
    if (bridge->detail_type.len)
        TRY(hf__template_fill(s, &bridge->detail_type, event, detail_type));
    if (!source->len || count_characters(*source) > SOURCE_MAX || !hf__utf8_valid(*source))
        return hf__fail(s, HF_INVALID, "its source does not have 1 to %d characters", SOURCE_MAX);
    if (str_after(*source, HF_STR("aws."), &rest))
        return hf__fail(s, HF_INVALID,
                        "its source begins with \"aws.\", which EventBridge reserves for AWS");
    if (!detail_type->len || count_characters(*detail_type) > DETAIL_TYPE_MAX ||
        !hf__utf8_valid(*detail_type))
        return hf__fail(s, HF_INVALID, "its detail type does not have 1 to %d characters",
                        DETAIL_TYPE_MAX);
    return HF_OK;
}

static enum hf_status entry_make(struct hf_scope *s, void *self, const struct hf_event *event,
                                 struct aws_entry *entry)
{
    struct eventbridge *bridge = self;
    struct hf__buf buf = {.scope = s};
    struct hf_str source, detail_type, detail, bus;

    TRY(make_names(s, bridge, event, &source, &detail_type));
    TRY(make_detail(s, bridge, event, &detail));
    TRY(hf__template_fill(s, &bridge->bus, event, &bus));
    hf__buf_reserve(&buf, detail.len + detail.len / 4 + 512);
    hf__buf_put_byte(&buf, '{');
    if (event->time_us > 0)
        hf__buf_format(&buf, "\"Time\":%lld.%06lld,", (long long)(event->time_us / 1000000),
                       (long long)(event->time_us % 1000000));
    hf__buf_put_str(&buf, HF_STR("\"Source\":"));
    hf__wire_write_str(&buf, source);
    hf__buf_put_str(&buf, HF_STR(",\"DetailType\":"));
    hf__wire_write_str(&buf, detail_type);
    hf__buf_put_str(&buf, HF_STR(",\"Detail\":"));
    hf__wire_write_str(&buf, detail);
    hf__buf_put_str(&buf, HF_STR(",\"EventBusName\":"));
    hf__wire_write_str(&buf, bus);
    hf__buf_put_byte(&buf, '}');
    if (buf.failed)
        return hf__fail_nomem(s);
    entry->text = hf_str_of((const char *)buf.ptr, buf.len);
    assert(entry->text.ptr[0] == '{' && entry->text.ptr[entry->text.len - 1] == '}');
    entry->bytes =
        source.len + detail_type.len + detail.len + (event->time_us > 0 ? TIME_BYTES : 0);
    return HF_OK;
}

static enum hf_status request_make(struct hf_scope *s, void *self, struct aws_entry *const *entries,
                                   size_t len, struct aws_request *out)
{
    struct hf__buf buf = {.scope = s};

    (void)self;
    assert(len > 0 && len <= AWS_BATCH);
    hf__buf_put_str(&buf, HF_STR("{\"Entries\":["));
    for (size_t i = 0; i < len; i++) {
        if (i)
            hf__buf_put_byte(&buf, ',');
        hf__buf_put_str(&buf, entries[i]->text);
    }
    hf__buf_put_str(&buf, HF_STR("]}"));
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = (struct aws_request){.content_type = "application/x-amz-json-1.1",
                                .target = "AWSEvents.PutEvents",
                                .body = hf_bytes_of(buf.ptr, buf.len)};
    return HF_OK;
}

/* ---- answers -------------------------------------------------------------------------------- */

struct put_entry {
    struct hf_str event_id;
    struct hf_str code;
    struct hf_str message;
};

struct put_answer {
    const struct put_entry *entries;
    size_t entries_len;
    int64_t failed;
};

#define T put_entry
static const struct field entry_list[] = {
    STR("EventId", event_id, .rules = 0),
    STR("ErrorCode", code, .rules = 0),
    STR("ErrorMessage", message, .rules = 0),
};
static TABLE(entry, "PutEventsResultEntry");
#undef T

#define T put_answer
static const struct field answer_list[] = {
    STRUCTS("Entries", entries, entry, .rules = 0),
    INT("FailedEntryCount", failed, .rules = 0),
};
static TABLE(answer, "PutEventsResponse");
#undef T

/* Would the entry be refused again? Entries with an unknown code are retried. */
static bool is_for_good(struct hf_str code)
{
    static const char *const codes[] = {"MalformedDetail",
                                        "InvalidArgument",
                                        "InvalidArgumentException",
                                        "ValidationException",
                                        "NotAuthorizedForSource",
                                        "NotAuthorizedForSourceException",
                                        "NotAuthorizedForDetailTypeException"};

    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (hf_str_equal(code, hf_str_from(codes[i])))
            return true;
    return false;
}

static enum hf_status read_answer(struct hf_scope *s, void *self, struct hf_str body,
                                  struct hf_delivery *const *deliveries, size_t len)
{
    struct put_answer parsed = {.entries = NULL};
    int64_t failed = 0;

    (void)self;
    TRY(hf__wire_read_answer(s, &answer, body, &parsed));
    for (size_t i = 0; i < parsed.entries_len; i++)
        failed += parsed.entries[i].code.len || !parsed.entries[i].event_id.len;
    if (!parsed.entries || parsed.entries_len > len || failed != parsed.failed) /* (1) */
        return HF_INVALID;
    for (size_t i = 0; i < parsed.entries_len; i++) {
        const struct put_entry *result = &parsed.entries[i];

        hf__aws_outcome(s, "EventBridge", deliveries[i],
                        &(struct aws_outcome){.done = !result->code.len &&
                                                      result->event_id.len > 0, /* (2) */
                                              .for_good = is_for_good(result->code),
                                              .code = result->code,
                                              .message = result->message});
    }
    return HF_OK;
}

/* ---- the sink ------------------------------------------------------------------------------- */

static enum hf_status eventbridge_send(struct hf_scope *s, void *self,
                                       struct hf_delivery *deliveries, size_t len)
{
    static const struct aws_service service = {entry_make, request_make, read_answer};
    struct eventbridge *bridge = self;

    const struct aws_sender sender = {.aws = bridge->aws,
                                      .service = &service,
                                      .self = bridge,
                                      .limits = &bridge->options.aws,
                                      .target_is_fixed = bridge->bus.is_fixed};

    return hf__aws_send(s, &sender, deliveries, len);
}

static void eventbridge_close(void *self)
{
    struct eventbridge *bridge = self;
    struct hf_env env = bridge->env;

    hf__aws_close(bridge->aws);
    hf__env_free(&env, bridge, sizeof(*bridge));
}

static enum hf_status open_parts(struct hf_scope *s, const struct sink_url *url,
                                 struct eventbridge *bridge)
{
    struct eventbridge_options *o = &bridge->options;
    struct aws_ask ask = {.name = "EventBridge", .service = ENDPOINT_EVENTBRIDGE};
    struct hf_str name, rest;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), o));
    TRY(hf__sink_decode(s, url->memory, "the bus", url->rest, &name));
    TRY(hf__template_read(s, url->memory, "the bus", name, &bridge->bus));
    if (o->source.len)
        TRY(hf__template_read(s, url->memory, "the option source", o->source, &bridge->source));
    if (o->detail_type.len)
        TRY(hf__template_read(s, url->memory, "the option detail_type", o->detail_type,
                              &bridge->detail_type));
    if (!name.len ||
        (str_after(name, HF_STR("arn:"), &rest) && !hf__aws_arn(name, "events", &ask.region)))
        return hf__fail(s, HF_INVALID,
                        "the URL of an EventBridge sink is eventbridge:BUS, with the name or ARN "
                        "of a bus, such as eventbridge:default");
    return hf__aws_open(s, url->memory, &ask, &o->aws, &bridge->aws);
}

enum hf_status hf__sink_eventbridge_open(struct hf_scope *s, const struct sink_url *url,
                                         struct hf_sink **sink)
{
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "eventbridge",
                              .batch_max = AWS_BATCH,
                              .send = eventbridge_send,
                              .close = eventbridge_close};
    struct eventbridge *bridge = hf__env_alloc(hf_scope_env(s), sizeof(*bridge));
    enum hf_status status;

    if (!bridge)
        return hf__fail_nomem(s);
    *bridge = (struct eventbridge){.env = *hf_scope_env(s),
                                   .options = {.aws = {.max_bytes = EVENTBRIDGE_MAX,
                                                       .batch_bytes = EVENTBRIDGE_BATCH},
                                               .detail = DETAIL_EVENT}};
    status = open_parts(s, url, bridge);
    hf__aws_limits(&bridge->options.aws, &ops);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, bridge, sink);
    if (status != HF_OK)
        eventbridge_close(bridge);
    return status;
}
