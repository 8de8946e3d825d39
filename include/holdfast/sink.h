/*
 * Where events go: brokers, services, programs, files. A sink takes events in batches and says of
 * each one whether it has it; relay.h does the rest: order, retries, waiting out an outage.
 *
 * Sinks are opened by URL:
 *
 *     stdout:                              one JSON line for each event
 *     file:PATH                            appended and synced
 *     exec:COMMAND                         run for each event, payload at its standard input
 *     webhook:https://HOST/PATH            a POST for each event, signed when there is a secret
 *     sqs:QUEUE-URL                        standard and FIFO
 *     sns:TOPIC-ARN                        standard and FIFO
 *     eventbridge:BUS                      "default" is one
 *     kafka:BROKER[,BROKER...]/TOPIC
 *     rabbitmq://USER:PASSWORD@HOST:PORT/VHOST/EXCHANGE
 *     redis://[USER:PASSWORD@]HOST:PORT[/DB]/STREAM
 *     nats://HOST:PORT/SUBJECT             JetStream
 *     mqtt://HOST:PORT/TOPIC               MQTT 5
 *
 * with ?name=value behind it for options: docs/relay.md lists them. Names of topics, subjects,
 * streams and routing keys may be templates: "orders.{type}" is filled in for each event with its
 * type, key, id, source, aggregate, aggregate_type, tenant, destination or header.NAME; "{{" is a
 * brace.
 *
 * Sinks with a library behind them (kafka, rabbitmq, redis, nats, mqtt) are there when holdfast was
 * built with it; otherwise opening one is HF_UNSUPPORTED.
 */
#ifndef HOLDFAST_SINK_H
#define HOLDFAST_SINK_H

#include <holdfast/base.h>
#include <holdfast/outbox.h>
#include <holdfast/scope.h>

#ifdef __cplusplus
extern "C" {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow" /* a function may have the name of a struct, as in C */
#endif

struct hf_sink;

/* One event on its way, and what became of it. */
struct hf_delivery {
    const struct hf_outbox_event *event;
    enum hf_status status; /* out: HF_OK: the sink has it, durably if the sink can */
    bool for_good;         /* out, of a failure: it would fail again */
    struct hf_str error;   /* out, of a failure: why, in the scope */
    uint64_t reserved[4];
};

/*
 * A sink of one's own. `send` delivers a batch, in its order, and sets the outcome of each: all are
 * HF_INTERNAL when it is called, so one that is forgotten is retried. It returns HF_OK when the
 * outcomes say it all; anything else means that the sink is unreachable, or takes nothing from
 * anybody for now (`hf_scope_fail()` says why): then no event is to blame, no attempt is counted
 * for those that are not HF_OK, and the relay waits for the sink. Several threads may call it at
 * once, each with a scope of its own, when `threads` is not 1.
 */
struct hf_sink_ops {
    size_t size;            /* set by HF_OPTIONS() */
    const char *name;       /* such as "kafka" */
    size_t batch_max;       /* events in one call; default 1 */
    size_t batch_bytes_max; /* sum of payloads and headers of a call; default no limit */
    size_t event_bytes_max; /* of one event; a larger one fails permanently; default none */
    uint32_t workers;       /* calls at once at most; default as many as the relay likes */
    /*
     * When events of one key are in a batch and one of them fails, those behind it are not
     * delivered. Without this a batch has one event of each key.
     */
    bool keeps_order;
    enum hf_status (*send)(struct hf_scope *s, void *sink, struct hf_delivery *deliveries,
                           size_t len);
    /* Can it be reached? Asked while the relay waits. Default: an event is sent to find out. */
    enum hf_status (*probe)(struct hf_scope *s, void *sink);
    void (*close)(void *sink);
};

/*
 * Open by URL. The env is that of the scope; credentials for AWS are found as in client.h.
 *
 * HF_INVALID      the URL is invalid, or an option is unknown; the message names it
 * HF_UNSUPPORTED  holdfast was built without this kind
 * A broker that is unreachable now is no failure.
 */
HF_API HF_NODISCARD enum hf_status hf_sink_open(struct hf_scope *s, struct hf_str url,
                                                struct hf_sink **sink);

/* A sink of one's own; `self` is handed to its functions. The ops are copied. */
HF_API HF_NODISCARD enum hf_status hf_sink_new(struct hf_scope *s, const struct hf_sink_ops *ops,
                                               void *self, struct hf_sink **sink);

/* NULL is accepted. */
HF_API void hf_sink_close(struct hf_sink *sink);

/* The same as its `send` and `probe`, for those that use a sink without a relay. */
HF_API HF_NODISCARD enum hf_status hf_sink_send(struct hf_scope *s, struct hf_sink *sink,
                                                struct hf_delivery *deliveries, size_t len);
HF_API HF_NODISCARD enum hf_status hf_sink_probe(struct hf_scope *s, struct hf_sink *sink);

/* What it was opened with; size, name and limits are filled in. */
HF_API const struct hf_sink_ops *hf_sink_ops(const struct hf_sink *sink);

/*
 * The event as one JSON object: the structured form of CloudEvents 1.0, with the payload in "data"
 * when it is JSON, and in "data_base64" otherwise.
 */
HF_API HF_NODISCARD enum hf_status hf_event_json(struct hf_scope *s, const struct hf_event *event,
                                                 struct hf_str *json);

#ifdef __cplusplus
#pragma GCC diagnostic pop
}
#endif

#endif
