/*
 * sinks/aws_message.c: an event as SQS and SNS have it: a text, and up to ten attributes.
 *
 *     form=event      the body is the JSON object of CloudEvents; the attributes ce-type, ce-source
 *                     and content-type are there for filters
 *     form=payload    the body is the payload, and the first ten attributes of the event are
 *                     attributes: content-type, ce-specversion, ce-id, ce-source, ce-type, ce-time,
 *                     and as many of the others as there is room for
 *     form=outbox-event-bus
 *                     the body is the JSON object of bus_message.c; the attribute EventType; in
 *                     queues and topics that keep order the group is the type
 *
 * Both services accept only the characters of XML 1.0. In JSON the few other characters are escaped; a
 * payload that has them, or is not UTF-8, is sent as base64, and the attribute content-encoding says
 * so.
 *
 * Queues and topics that keep order need a group and an id for each message. The group is the key of
 * the event; an event without a key is a group by itself, so that it waits for no other. The id is
 * that of the event: the service drops a second message with the same id within five minutes. Both
 * have 1 to 128 visible ASCII characters; any other text is replaced by its SHA-256, which is always
 * the same for the same text.
 */
#include "sinks/aws.h"

#include "base/base64.h"
#include "base/utf8.h"

enum hf_status hf__message_prepare(struct hf_scope *s, struct hf_scope *memory, const char *service,
                                   const struct message_options *options, bool fifo,
                                   struct message_how *how)
{
    *how = (struct message_how){.service = service, .options = *options, .fifo = fifo};
    if (!how->options.form)
        how->options.form = MESSAGE_EVENT;
    if (!how->options.type_attribute.len)
        how->options.type_attribute =
            how->options.form == MESSAGE_BUS ? HF_STR("EventType") : HF_STR("ce-type");
    if (options->dedup.len && !fifo)
        return hf__fail(s, HF_INVALID, "the option dedup is only for names that end with .fifo");
    if (!options->group.len && fifo && how->options.form == MESSAGE_BUS)
        how->options.group = HF_STR("{type}");
    if (how->options.group.len)
        TRY(hf__template_read(s, memory, "the option group", how->options.group, &how->group));
    if (options->dedup.len)
        TRY(hf__template_read(s, memory, "the option dedup", options->dedup, &how->dedup));
    return HF_OK;
}

bool hf__message_is_fifo(struct hf_str name)
{
    return name.len > 5 && memcmp(name.ptr + name.len - 5, ".fifo", 5) == 0;
}

/* ---- characters ----------------------------------------------------------------------------- */

/* U+FFFE or U+FFFF at `p`: valid UTF-8, but not characters of XML. */
static bool is_odd(const char *p, size_t left)
{
    return left >= 3 && (unsigned char)p[0] == 0xEF && (unsigned char)p[1] == 0xBF &&
           ((unsigned char)p[2] == 0xBE || (unsigned char)p[2] == 0xBF);
}

static bool is_xml_text(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];

        if ((c < ' ' && c != '\t' && c != '\n' && c != '\r') || is_odd(text.ptr + i, text.len - i))
            return false;
    }
    return hf__utf8_valid(text);
}

/* JSON whose odd characters, which can only be inside of strings, are escaped. */
static enum hf_status escape_odd(struct hf_scope *s, struct hf_str *json)
{
    struct hf__buf buf = {.scope = s};
    size_t from = 0;

    for (size_t i = 0; i < json->len; i++) {
        if (!is_odd(json->ptr + i, json->len - i))
            continue;
        hf__buf_put(&buf, json->ptr + from, i - from);
        hf__buf_put_str(&buf, (unsigned char)json->ptr[i + 2] == 0xBE ? HF_STR("\\ufffe")
                                                                      : HF_STR("\\uffff"));
        i += 2;
        from = i + 1;
    }
    if (from == 0)
        return HF_OK;
    hf__buf_put(&buf, json->ptr + from, json->len - from);
    if (buf.failed)
        return hf__fail_nomem(s);
    *json = hf_str_of((const char *)buf.ptr, buf.len);
    return HF_OK;
}

/* ---- attributes ----------------------------------------------------------------------------- */

static enum hf_status attribute_add(struct hf_scope *s, struct message *message, struct hf_str name,
                                    struct hf_str value)
{
    if (!value.len || message->attributes_len == MESSAGE_ATTRIBUTES_MAX)
        return HF_OK;
    assert(name.len > 0 && message->attributes_len < MESSAGE_ATTRIBUTES_MAX);
    if (!is_xml_text(value))
        return hf__fail(s, HF_INVALID,
                        "its %.*s has characters that are not allowed in a message attribute",
                        HF_FMT(name));
    message->attributes[message->attributes_len++] =
        (struct event_attribute){name, value, ATTRIBUTE_TEXT};
    return HF_OK;
}

static enum hf_status add_ce(struct hf_scope *s, const struct message_how *how,
                             struct message *message, const struct event_attribute *attribute)
{
    struct hf_str name = hf_str_equal(attribute->name, HF_STR("type"))
                             ? how->options.type_attribute
                             : hf_scope_format(s, "ce-%.*s", HF_FMT(attribute->name));

    if (!name.ptr)
        return hf__fail_nomem(s);
    return attribute_add(s, message, name, attribute->value);
}

static enum hf_status add_event_form(struct hf_scope *s, const struct message_how *how,
                                     const struct hf_event *event, struct message *message)
{
    TRY(attribute_add(s, message, how->options.type_attribute, event->type));
    TRY(attribute_add(s, message, HF_STR("ce-source"), event->source));
    return attribute_add(s, message, HF_STR("content-type"),
                         HF_STR("application/cloudevents+json"));
}

static enum hf_status add_payload_form(struct hf_scope *s, const struct message_how *how,
                                       const struct hf_event *event, struct message *message)
{
    const struct event_attribute *list;
    size_t len;

    TRY(hf__sink_event_attributes(s, event, &list, &len));
    TRY(attribute_add(s, message, HF_STR("content-type"), hf__sink_event_content_type(event)));
    for (size_t i = 0; i < len; i++)
        if (!hf_str_equal(list[i].name, HF_STR("datacontenttype")))
            TRY(add_ce(s, how, message, &list[i]));
    return HF_OK;
}

/* ---- bodies --------------------------------------------------------------------------------- */

static enum hf_status payload_body(struct hf_scope *s, const struct message_how *how,
                                   const struct hf_event *event, struct message *message)
{
    size_t len = hf__base64_encoded_len(event->payload.len);
    char *text;

    message->body = hf_str_of((const char *)event->payload.ptr, event->payload.len);
    if (!message->body.len)
        return hf__fail(s, HF_INVALID, "it has no payload, and %s does not accept empty messages",
                        how->service);
    if (is_xml_text(message->body))
        return HF_OK;
    text = hf_scope_alloc(s, len);
    if (!text)
        return hf__fail_nomem(s);
    hf__base64_encode(event->payload, text);
    message->body = hf_str_of(text, len);
    return attribute_add(s, message, HF_STR("content-encoding"), HF_STR("base64"));
}

/* ---- groups and ids ------------------------------------------------------------------------- */

/* Letters, digits and the punctuation of ASCII. */
static bool is_id(struct hf_str text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 127)
            return false;
    return text.len > 0 && text.len <= MESSAGE_ID_MAX;
}

static enum hf_status make_id(struct hf_scope *s, const struct template *template,
                              const struct hf_event *event, struct hf_str usual, struct hf_str *id)
{
    *id = usual;
    if (template->len > 0)
        TRY(hf__template_fill(s, template, event, id));
    if (!is_id(*id))
        TRY(hf__aws_hash(s, *id, id));
    assert(is_id(*id));
    return HF_OK;
}

enum hf_status hf__message_make(struct hf_scope *s, const struct message_how *how,
                                const struct hf_event *event, struct message *message)
{
    *message = (struct message){.body = {NULL, 0}};
    if (how->options.form == MESSAGE_PAYLOAD) {
        TRY(payload_body(s, how, event, message)); /* its attribute comes before all others */
        TRY(add_payload_form(s, how, event, message));
    } else if (how->options.form == MESSAGE_BUS) {
        TRY(hf__sink_bus_message_json(s, event, &message->body));
        TRY(escape_odd(s, &message->body));
        TRY(attribute_add(s, message, how->options.type_attribute, event->type));
    } else {
        TRY(hf_event_json(s, event, &message->body));
        TRY(escape_odd(s, &message->body));
        TRY(add_event_form(s, how, event, message));
    }
    if (how->fifo || how->group.len > 0)
        TRY(make_id(s, &how->group, event, event->key.len ? event->key : event->id,
                    &message->group));
    if (how->fifo)
        TRY(make_id(s, &how->dedup, event, event->id, &message->dedup));
    assert(message->body.len > 0);
    assert(!how->fifo || (message->group.len > 0 && message->dedup.len > 0));
    message->bytes = message->body.len;
    for (size_t i = 0; i < message->attributes_len; i++)
        message->bytes +=
            message->attributes[i].name.len + message->attributes[i].value.len + strlen("String");
    return HF_OK;
}
