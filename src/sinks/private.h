/*
 * sinks/private.h: what sinks share. A sink is one file: it is opened by a `struct sink_url`, makes
 * itself and its ops, and ends with hf_sink_new().
 *
 *     struct kafka { struct hf_env env; struct hf_str brokers; struct options options; ... };
 *
 *     enum hf_status hf__sink_kafka_open(struct hf_scope *s, const struct sink_url *url,
 *                                        struct hf_sink **sink)
 *     {
 *         ... hf__sink_options(s, url, options, ARRAY_LEN(options), &self->options) ...
 *         ... hf__template_read(s, url->memory, "the topic", text, &self->topic) ...
 *         return hf_sink_new(s, &ops, self, sink);
 *     }
 *
 * What a sink keeps for its whole life may come from url->memory, which is freed after its close().
 * Opening is one thread's; afterwards that memory is only read, as scopes are one thread's.
 *
 * In send(), every delivery comes with HF_INTERNAL. hf__delivery_done() and hf__delivery_fail() set
 * the outcome of each; send() itself returns HF_OK then. A failure of send() means that the sink
 * accepts nothing for now.
 */
#ifndef HF_SINKS_PRIVATE_H
#define HF_SINKS_PRIVATE_H

#include <holdfast/sink.h>

#include "base/assert_held.h"
#include "base/base.h"
#include "base/buf.h"

/* ---- sink.c: the URL and its options --------------------------------------------------------- */

struct sink_option_given {
    struct hf_str name;
    struct hf_str value; /* decoded */
};

struct sink_url {
    struct hf_scope *memory; /* the sink's own, see above; all texts here live in it */
    struct hf_str kind;      /* before the first colon: "kafka" */
    struct hf_str rest;      /* behind it, up to a '?': "//host:port/x"; not decoded */
    const struct sink_option_given *given;
    size_t given_len;
};

enum sink_option_kind {
    SINK_TEXT,   /* struct hf_str */
    SINK_NUMBER, /* uint64_t */
    SINK_YES_NO, /* enum hf_flag */
    SINK_WORD    /* int: the place, from 1, in `words`; 0: left out */
};

struct sink_option {
    const char *name;
    enum sink_option_kind kind;
    size_t at;         /* offset in the struct */
    uint64_t min, max; /* of a number; max 0: UINT32_MAX */
    const char *words; /* "structured|binary" */
};

/*
 * Put what the URL says into the struct at `out`; what it does not say stays as it is there.
 * HF_INVALID, with its name, for an option that is not in the list, comes twice, or has an invalid
 * value. Values are not part of messages, as there may be secrets among them.
 */
enum hf_status hf__sink_options(struct hf_scope *s, const struct sink_url *url,
                                const struct sink_option *list, size_t len, void *out);

/* A text without its %XX, in `memory`. HF_INVALID calls it `what`: "the path". */
enum hf_status hf__sink_decode(struct hf_scope *s, struct hf_scope *memory, const char *what,
                               struct hf_str text, struct hf_str *decoded);

/* Bytes of an event as sink ops count them: payload and headers. */
size_t hf__sink_event_bytes(const struct hf_event *event);

/* ---- sink.c: outcomes ------------------------------------------------------------------------ */

void hf__delivery_done(struct hf_delivery *delivery);

/* The error text is formatted in the scope. */
void hf__delivery_fail(struct hf_scope *s, struct hf_delivery *delivery, enum hf_status status,
                       bool for_good, const char *format, ...) HF_PRINTF(5, 6);

/* Fail it with the error that the scope has. */
void hf__delivery_fail_with(struct hf_scope *s, struct hf_delivery *delivery, bool for_good);

/*
 * Is there an undelivered event with the same key before this one in the batch? Then a sink that
 * keeps order does not send this one. Events without a key have no order.
 */
bool hf__delivery_blocked(const struct hf_delivery *deliveries, size_t at);

/* Mark a delivery as not done for that reason, to be retried. */
void hf__delivery_block(struct hf_scope *s, struct hf_delivery *delivery);

/* ---- template.c: "orders.{type}" ------------------------------------------------------------- */

struct template_part;

struct template
{
    const struct template_part *parts;
    size_t len;
    bool is_fixed;      /* the text is the same for every event */
    struct hf_str text; /* of a fixed template; absent otherwise */
};

/*
 * Read a template; `memory` holds it and its texts. HF_INVALID calls it `what`: "the topic".
 *
 *     {type} {key} {id} {source} {aggregate} {aggregate_type} {tenant} {destination} {correlation}
 *     {causation} {schema} {header.NAME}     of the event
 *     {tenant|none}                          "none" when the event has none
 *     {{ }}                                  braces
 */
enum hf_status hf__template_read(struct hf_scope *s, struct hf_scope *memory, const char *what,
                                 struct hf_str text, struct template *template);

/*
 * The text for an event, in the scope and followed by a NUL. HF_INVALID: the event has no such
 * field, or the header is not a string, a number or a boolean: that event has failed for good.
 */
enum hf_status hf__template_fill(struct hf_scope *s, const struct template *template,
                                 const struct hf_event *event, struct hf_str *text);

/* The same with everything of the event percent-encoded, for URLs: '/' too. */
enum hf_status hf__template_fill_url(struct hf_scope *s, const struct template *template,
                                     const struct hf_event *event, struct hf_str *text);

/* ---- event_json.c: CloudEvents 1.0 ----------------------------------------------------------- */

enum attribute_type { ATTRIBUTE_TEXT, ATTRIBUTE_INTEGER, ATTRIBUTE_BOOLEAN };

struct event_attribute {
    struct hf_str name;  /* "partitionkey": lower-case letters and digits */
    struct hf_str value; /* as text, whatever its type */
    enum attribute_type type;
};

/*
 * The context attributes of an event, in a fixed order that begins with specversion, id, source and
 * type: docs/relay.md has the list. datacontenttype is among them. Headers whose names can be names
 * of attributes follow; all others are in one attribute, "headersjson". Lives in the scope.
 *
 * HF_INVALID  the event has no id or no type, a text is not UTF-8, or its time is beyond year 9999
 * HF_NOMEM
 */
enum hf_status hf__sink_event_attributes(struct hf_scope *s, const struct hf_event *event,
                                         const struct event_attribute **list, size_t *len);

/* The attribute of that name, or NULL. */
const struct event_attribute *hf__sink_event_attribute(const struct event_attribute *list,
                                                       size_t len, const char *name);

/* The content type, with its default. */
struct hf_str hf__sink_event_content_type(const struct hf_event *event);

/* Microseconds since 1970 as 2026-01-31T23:59:59.123456Z; false: beyond the years 0 to 9999. */
enum { EVENT_TIME = 28 };
bool hf__sink_event_time(int64_t time_us, char text[EVENT_TIME]);

/* Is it application/json, anything/json or anything/anything+json? */
bool hf__sink_is_json_type(struct hf_str type);

/* ---- bus_message.c: what the publishers of outbox-event-bus write ----------------------------- */

/*
 * The whole event as one JSON object. HF_INVALID: it has no id or type, a text is not UTF-8, its
 * payload is not JSON, or its time is beyond year 9999. HF_NOMEM.
 */
enum hf_status hf__sink_bus_message_json(struct hf_scope *s, const struct hf_event *event,
                                         struct hf_str *json);

/* Parts of that object: a check of id and type; the payload (empty: none); the time; the headers
 * (empty: none). */
enum hf_status hf__sink_bus_message_check(struct hf_scope *s, const struct hf_event *event);
enum hf_status hf__sink_bus_message_payload(struct hf_scope *s, const struct hf_event *event,
                                            struct hf_str *json);
enum hf_status hf__sink_bus_message_time(struct hf_scope *s, const struct hf_event *event,
                                         struct hf_str *text);
enum hf_status hf__sink_bus_message_metadata(struct hf_scope *s, const struct hf_event *event,
                                             struct hf_str *json);

/* Forms of brokers that have their own place for attributes. */
enum broker_form {
    FORM_DEFAULT, /* the option was left out: as FORM_PAYLOAD */
    FORM_PAYLOAD, /* the payload, with the attributes of CloudEvents beside it */
    FORM_BUS_MESSAGE
};
#define BROKER_FORMS "payload|outbox-event-bus"

/* ---- lines.c: a line for each event, for stdout and files ------------------------------------ */

enum { LINES_BATCH = 100 };

enum line_form {
    LINE_EVENT = 1, /* the JSON object of hf_event_json() */
    LINE_PAYLOAD,   /* the payload by itself */
    LINE_BUS        /* the JSON object of hf__sink_bus_message_json() */
};

struct lines {
    struct hf_bytes text;
    size_t *ends; /* of each delivery: where its line ends; 0: it has none */
};

/* The lines of a batch. An event that cannot be written as a line has failed for good afterwards, and
 * later events of its key are not in the lines. HF_NOMEM. */
enum hf_status hf__lines_make(struct hf_scope *s, enum line_form form,
                              struct hf_delivery *deliveries, size_t len, struct lines *lines);

/* Mark the deliveries as done whose line is in the first `written` bytes. */
void hf__lines_done(const struct lines *lines, struct hf_delivery *deliveries, size_t len,
                    size_t written);

/*
 * Write all of `bytes` without being killed by SIGPIPE; *written is how many bytes were written, on
 * failure too. HF_IO, HF_NO_SPACE, and HF_TIMEOUT or HF_CANCELED by the scope; messages call the file
 * `what`.
 */
enum hf_status hf__lines_write(struct hf_scope *s, const char *what, int fd, struct hf_bytes bytes,
                               size_t *written);

/* Append a value as plain JSON: numbers as numbers, binary as base64, sets as lists. */
void hf__sink_put_plain_json(struct hf_scope *s, struct hf__buf *buf, struct hf_value value);

/* Append JSON that is known to be valid, without the blanks between its values. */
void hf__sink_put_compact_json(struct hf__buf *buf, struct hf_bytes json);

/* ---- one function for each kind -------------------------------------------------------------- */

typedef enum hf_status sink_open_fn(struct hf_scope *s, const struct sink_url *url,
                                    struct hf_sink **sink);

sink_open_fn hf__sink_stdout_open;
sink_open_fn hf__sink_file_open;
sink_open_fn hf__sink_exec_open;
sink_open_fn hf__sink_webhook_open;
sink_open_fn hf__sink_sqs_open;
sink_open_fn hf__sink_sns_open;
sink_open_fn hf__sink_eventbridge_open;
#ifdef HF_WITH_KAFKA
sink_open_fn hf__sink_kafka_open;
#endif
#ifdef HF_WITH_RABBITMQ
sink_open_fn hf__sink_rabbitmq_open;
#endif
#ifdef HF_WITH_REDIS
sink_open_fn hf__sink_redis_open;
#endif
#ifdef HF_WITH_NATS
sink_open_fn hf__sink_nats_open;
#endif
#ifdef HF_WITH_MQTT
sink_open_fn hf__sink_mqtt_open;
#endif

#endif
