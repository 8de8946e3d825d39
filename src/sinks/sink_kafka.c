/*
 * sinks/sink_kafka.c: Kafka.
 *
 *     kafka:BROKER[:PORT][,BROKER[:PORT]...]/TOPIC
 *
 * The sink uses librdkafka's idempotent producer, with acknowledgements from all in-sync replicas. It
 * produces the events of a batch one by one, and then waits for their delivery reports. Options with
 * a dot in their name are librdkafka's own and are passed on, except those that would break what is
 * promised here.
 *
 * A lane is a producer. librdkafka goes on sending its messages long after we have stopped waiting;
 * so a producer with open messages is purged and closed: nothing of a batch is sent after the call
 * for it has ended.
 *
 * What always holds:
 *
 *  (1) An event is delivered when its own delivery report says so.
 *  (2) A lane is kept only when every message on it was reported, its batch did not fail, and it
 *      had no fatal error.
 *  (3) Brokers refuse whole requests, which have many messages. The message that is to blame is found
 *      by sending them one by one.
 *
 * Events of one key go one by one, in waves. The producer's numbers are not enough to keep order
 * when one is refused: librdkafka may send the next one before it notices ("gapless" or not, with
 * one request at a time), and a broker that does not know the producer yet takes it.
 */
#include <librdkafka/rdkafka.h>

#include "sinks/broker.h"

#ifndef HF_KAFKA_LIBRARY /* the build says which one it has seen */
#define HF_KAFKA_LIBRARY "librdkafka.so.1"
#endif

enum {
    KAFKA_BATCH = 500,
    KAFKA_BATCH_BYTES = 4 * 1024 * 1024,
    KAFKA_THREADS = 4,
    TOPIC_MAX = 249,
    DOWN_MS = 2000, /* a batch fails when all brokers are down and no report has come for so long */
    PURGE_MS = 500, /* how long to wait for the reports of purged messages */
    REASON_MAX = 300
};

#define KAFKA_FUNCTIONS(X)                                                                         \
    X(rd_kafka_conf_new)                                                                           \
    X(rd_kafka_conf_dup)                                                                           \
    X(rd_kafka_conf_destroy)                                                                       \
    X(rd_kafka_conf_set)                                                                           \
    X(rd_kafka_conf_get)                                                                           \
    X(rd_kafka_conf_set_opaque)                                                                    \
    X(rd_kafka_conf_set_error_cb)                                                                  \
    X(rd_kafka_conf_set_log_cb)                                                                    \
    X(rd_kafka_conf_set_dr_msg_cb)                                                                 \
    X(rd_kafka_new)                                                                                \
    X(rd_kafka_destroy)                                                                            \
    X(rd_kafka_poll)                                                                               \
    X(rd_kafka_purge)                                                                              \
    X(rd_kafka_producev)                                                                           \
    X(rd_kafka_fatal_error)                                                                        \
    X(rd_kafka_err2str)                                                                            \
    X(rd_kafka_headers_new)                                                                        \
    X(rd_kafka_headers_destroy)                                                                    \
    X(rd_kafka_header_add)                                                                         \
    X(rd_kafka_metadata)                                                                           \
    X(rd_kafka_metadata_destroy)

struct kafka_library {
    KAFKA_FUNCTIONS(LIBRARY_POINTER)
};
#define LIBRARY_TABLE kafka_library
static const struct library_symbol symbols[] = {KAFKA_FUNCTIONS(LIBRARY_SYMBOL)};

struct kafka {
    struct hf_env env;
    struct kafka_library lib;
    struct hf_str brokers;
    struct template topic;
    struct hf_str key_text;
    struct template key; /* when key_text is there; else the event's own */
    int partitioner, compression, form;
    enum hf_flag tombstone;
    uint64_t timeout_ms;
    rd_kafka_conf_t *conf; /* copied for every lane */
    struct broker_lanes lanes;
};

struct kafka_batch;

struct kafka_lane {
    struct broker_lane lane;
    rd_kafka_t *producer;
    struct kafka_batch *batch; /* the batch that gets the reports; NULL: the lane is idle */
    rd_kafka_resp_err_t error; /* the last one that librdkafka reported by its callback */
    char reason[REASON_MAX];   /* the text of that error */
    bool down;                 /* all brokers are down, and no message was delivered since */
    bool denied;               /* the brokers refuse our credentials */
};

/* A batch under way. */
struct kafka_batch {
    struct broker_wait wait;
    struct kafka *kafka;
    struct kafka_lane *lane;
    struct hf_delivery *deliveries;
    size_t len;
    bool *ended;                 /* by delivery: its outcome is known */
    bool *sent;                  /* by delivery: its report has not come yet */
    rd_kafka_resp_err_t *errors; /* by delivery: of its last report */
    size_t open;                 /* how many reports have not come yet */
    int64_t moved_us;            /* when the last report of a delivery came */
};

static void batch_check(const struct kafka_batch *batch)
{
    size_t open = 0;

    for (size_t i = 0; DEV_CHECKS && i < batch->len; i++) {
        assert(!batch->sent[i] || !batch->ended[i]);
        open += batch->sent[i];
    }
    assert(!DEV_CHECKS || open == batch->open);
}

/* ---- what reports mean ---------------------------------------------------------------------- */

enum blame {
    BLAME_NONE,
    BLAME_EVENT,  /* or another one of its request: (3) */
    BLAME_TOPIC,  /* the topic does not exist, or we may not write to it */
    BLAME_OTHERS, /* the message was not sent because of another one or of the producer */
    BLAME_BROKER
};

static enum blame blame_of(rd_kafka_resp_err_t error)
{
    switch (error) {
    case RD_KAFKA_RESP_ERR_NO_ERROR:
        return BLAME_NONE;
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_MSG:
    case RD_KAFKA_RESP_ERR_INVALID_MSG_SIZE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_INVALID_TIMESTAMP:
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR__BAD_MSG:
        return BLAME_EVENT;
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC:
    case RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION:
        return BLAME_TOPIC;
    case RD_KAFKA_RESP_ERR__PURGE_QUEUE:
    case RD_KAFKA_RESP_ERR__PURGE_INFLIGHT:
    case RD_KAFKA_RESP_ERR__FATAL:
    case RD_KAFKA_RESP_ERR__GAPLESS_GUARANTEE:
    case RD_KAFKA_RESP_ERR__STATE:
    case RD_KAFKA_RESP_ERR_OUT_OF_ORDER_SEQUENCE_NUMBER:
    case RD_KAFKA_RESP_ERR_UNKNOWN_PRODUCER_ID:
        return BLAME_OTHERS;
    default:
        return BLAME_BROKER;
    }
}

/* Fail an event that its topic, or Kafka, does not accept. */
static void fail_event(struct kafka_batch *batch, size_t at, rd_kafka_resp_err_t error)
{
    bool missing = error == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART ||
                   error == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC ||
                   error == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION;
    enum hf_status status = missing                                                 ? HF_NOT_FOUND
                            : error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ? HF_DENIED
                            : error == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE         ? HF_LIMIT
                                                                                    : HF_INVALID;

    assert(!batch->ended[at] && !batch->sent[at]);
    hf__delivery_fail(batch->wait.s, &batch->deliveries[at], status, !missing,
                      "Kafka refuses it: %s", batch->kafka->lib.rd_kafka_err2str(error));
    batch->ended[at] = true;
}

static enum hf_status fail_batch(struct kafka_batch *batch, rd_kafka_resp_err_t error)
{
    const struct kafka *kafka = batch->kafka;
    const char *words = kafka->lib.rd_kafka_err2str(error);
    enum hf_status status = HF_IO;

    assert(error != RD_KAFKA_RESP_ERR_NO_ERROR);
    if (blame_of(error) == BLAME_TOPIC) {
        status = error == RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED ? HF_DENIED : HF_NOT_FOUND;
        return hf__broker_fail(batch->wait.s, status, "Kafka at %s, topic \"%.*s\": %s",
                               kafka->brokers.ptr, HF_FMT(kafka->topic.text), words);
    }
    if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
        error == RD_KAFKA_RESP_ERR_SASL_AUTHENTICATION_FAILED ||
        error == RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED)
        status = HF_DENIED;
    return hf__broker_fail(batch->wait.s, status, "Kafka at %s: %s%s%s", kafka->brokers.ptr, words,
                           batch->lane && batch->lane->reason[0] ? ": " : "",
                           batch->lane ? batch->lane->reason : "");
}

static void on_report(rd_kafka_t *producer, const rd_kafka_message_t *message, void *user)
{
    struct kafka_lane *lane = user;
    struct kafka_batch *batch = lane->batch;
    size_t at = (size_t)(uintptr_t)message->_private - 1;

    (void)producer;
    if (!batch || at >= batch->len || !batch->sent[at])
        return;
    assert(batch->open > 0 && !batch->ended[at]);
    batch->sent[at] = false;
    batch->open--;
    batch->errors[at] = message->err;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        hf__delivery_done(&batch->deliveries[at]); /* (1) */
        batch->ended[at] = true;
        batch->moved_us = hf__broker_now_us();
        lane->down = false;
    }
}

static void on_error(rd_kafka_t *producer, int error, const char *reason, void *user)
{
    struct kafka_lane *lane = user;

    (void)producer;
    lane->error = (rd_kafka_resp_err_t)error;
    if (error == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN) {
        lane->down = true;
        if (lane->reason[0])
            return; /* the error before this one says more */
    }
    if (error == RD_KAFKA_RESP_ERR__AUTHENTICATION)
        lane->denied = true;
    snprintf(lane->reason, sizeof(lane->reason), "%s", reason ? reason : "");
}

/* Replaces the library's own function, which prints. What matters comes as an error or a report. */
static void ignore_log(const rd_kafka_t *producer, int level, const char *facility,
                       const char *text)
{
    (void)producer;
    (void)level;
    (void)facility;
    (void)text;
}

/* ---- lanes ---------------------------------------------------------------------------------- */

/* Reports that have not come by now never come. */
static void close_lane(struct kafka *kafka, struct kafka_lane *lane)
{
    if (lane->producer)
        kafka->lib.rd_kafka_destroy(lane->producer);
    hf__env_free(&kafka->env, lane, sizeof(*lane));
}

static enum hf_status take_lane(struct hf_scope *s, struct kafka *kafka, struct kafka_lane **out)
{
    struct kafka_lane *lane = (struct kafka_lane *)hf__broker_lane_take(&kafka->lanes);
    char why[REASON_MAX] = "";
    rd_kafka_conf_t *conf;

    if (lane) {
        assert(!lane->batch && lane->producer);
        *out = lane;
        return HF_OK;
    }
    lane = hf__env_alloc(&kafka->env, sizeof(*lane));
    if (!lane)
        return hf__fail_nomem(s);
    *lane = (struct kafka_lane){0};
    conf = kafka->lib.rd_kafka_conf_dup(kafka->conf);
    if (conf) {
        kafka->lib.rd_kafka_conf_set_opaque(conf, lane);
        lane->producer = kafka->lib.rd_kafka_new(RD_KAFKA_PRODUCER, conf, why, sizeof(why));
        if (!lane->producer)
            kafka->lib.rd_kafka_conf_destroy(conf);
    }
    if (!lane->producer) {
        close_lane(kafka, lane);
        return hf__broker_fail(s, HF_IO, "librdkafka could not create a producer: %s", why);
    }
    *out = lane;
    return HF_OK;
}

/*
 * Keep the lane, or make sure that nothing of the batch is sent any more: (2). A lane with which a
 * batch failed is not kept: for a while it would remember a topic as missing or forbidden.
 */
static void leave_lane(struct kafka_batch *batch, bool keep)
{
    const struct kafka_library *lib = &batch->kafka->lib;
    struct kafka_lane *lane = batch->lane;
    int64_t end_us = hf__broker_now_us() + (int64_t)PURGE_MS * 1000;
    char text[REASON_MAX];

    if (!lane)
        return;
    batch_check(batch);
    if (batch->open) {
        (void)lib->rd_kafka_purge(lane->producer, RD_KAFKA_PURGE_F_QUEUE |
                                                      RD_KAFKA_PURGE_F_INFLIGHT |
                                                      RD_KAFKA_PURGE_F_NON_BLOCKING);
        while (batch->open && hf__broker_now_us() < end_us)
            (void)lib->rd_kafka_poll(lane->producer, BROKER_SLICE_MS);
        close_lane(batch->kafka, lane);
    } else if (!keep || lib->rd_kafka_fatal_error(lane->producer, text, sizeof(text))) {
        close_lane(batch->kafka, lane);
    } else {
        assert(keep && !batch->open); /* (2) */
        lane->batch = NULL;
        hf__broker_lane_keep(&batch->kafka->lanes, &lane->lane);
    }
    batch->lane = NULL;
}

/* ---- producing ------------------------------------------------------------------------------ */

static enum hf_status make_headers(struct hf_scope *s, const struct kafka *kafka,
                                   const struct hf_event *event, rd_kafka_headers_t **headers)
{
    const struct event_attribute bus = {HF_STR("eventType"), event->type, ATTRIBUTE_TEXT};
    const struct event_attribute *list = &bus;
    bool is_bus = kafka->form == FORM_BUS_MESSAGE;
    size_t len = 1;

    if (!is_bus)
        TRY(hf__sink_event_attributes(s, event, &list, &len));
    *headers = kafka->lib.rd_kafka_headers_new(len);
    if (!*headers)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < len; i++) {
        bool is_type = hf_str_equal(list[i].name, HF_STR("datacontenttype"));
        struct hf_str name = is_bus    ? list[i].name
                             : is_type ? HF_STR("content-type")
                                       : hf_scope_format(s, "ce_%.*s", HF_FMT(list[i].name));

        if (!name.ptr ||
            kafka->lib.rd_kafka_header_add(*headers, name.ptr, (ssize_t)name.len, list[i].value.ptr,
                                           (ssize_t)list[i].value.len)) {
            kafka->lib.rd_kafka_headers_destroy(*headers);
            return hf__fail_nomem(s);
        }
    }
    return HF_OK;
}

static bool is_topic(struct hf_str text)
{
    if (text.len == 0 || text.len > TOPIC_MAX || hf_str_equal(text, HF_STR(".")) ||
        hf_str_equal(text, HF_STR("..")))
        return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];

        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
              c == '.' || c == '_' || c == '-'))
            return false;
    }
    return true;
}

/* The topic and the key of an event. The key is absent when the event has none. */
static enum hf_status message_address(struct hf_scope *s, const struct kafka *kafka,
                                      const struct hf_event *event, struct hf_str *topic,
                                      struct hf_str *key)
{
    TRY(hf__template_fill(s, &kafka->topic, event, topic));
    if (!is_topic(*topic))
        return hf__fail(s, HF_INVALID, "invalid Kafka topic \"%.*s\"", HF_FMT(*topic));
    if (kafka->form == FORM_BUS_MESSAGE)
        *key = event->id;
    else
        *key = event->key.len ? event->key : event->aggregate;
    return kafka->key_text.ptr ? hf__template_fill(s, &kafka->key, event, key) : HF_OK;
}

static enum hf_status make_value(struct hf_scope *s, const struct kafka *kafka,
                                 const struct hf_event *event, struct hf_str *value)
{
    if (kafka->form == FORM_BUS_MESSAGE)
        return hf__sink_bus_message_json(s, event, value);
    *value =
        hf_str_of(event->payload.len ? (const char *)event->payload.ptr : "", event->payload.len);
    return HF_OK;
}

static enum hf_status message_produce(struct kafka_batch *batch, size_t at)
{
    const struct kafka *kafka = batch->kafka;
    const struct kafka_library *lib = &kafka->lib;
    const struct hf_event *event = &batch->deliveries[at].event->event;
    bool gone = kafka->tombstone == HF_YES && event->payload.len == 0;
    rd_kafka_headers_t *headers = NULL;
    struct hf_str topic = {0}, key = {0}, value = {0};
    enum hf_status status = message_address(batch->wait.s, kafka, event, &topic, &key);
    rd_kafka_resp_err_t error;

    assert(!batch->ended[at] && !batch->sent[at]);
    if (status == HF_OK)
        status = make_value(batch->wait.s, kafka, event, &value);
    if (status == HF_OK)
        status = make_headers(batch->wait.s, kafka, event, &headers);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) {
        hf__delivery_fail_with(batch->wait.s, &batch->deliveries[at], true);
        batch->ended[at] = true;
        return HF_OK;
    }
    assert(headers && topic.len > 0);
    error = lib->rd_kafka_producev(batch->lane->producer, RD_KAFKA_V_TOPIC(topic.ptr),
                                   RD_KAFKA_V_KEY(key.len ? key.ptr : NULL, key.len),
                                   RD_KAFKA_V_VALUE(gone ? NULL : (void *)(uintptr_t)value.ptr,
                                                    gone ? 0 : value.len),
                                   RD_KAFKA_V_HEADERS(headers),
                                   RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                   RD_KAFKA_V_OPAQUE((void *)(uintptr_t)(at + 1)), RD_KAFKA_V_END);
    if (error == RD_KAFKA_RESP_ERR_NO_ERROR) {
        batch->sent[at] = true;
        batch->open++;
        return HF_OK;
    }
    lib->rd_kafka_headers_destroy(headers);
    if (blame_of(error) == BLAME_EVENT ||
        (blame_of(error) == BLAME_TOPIC && !kafka->topic.is_fixed)) {
        fail_event(batch, at, error);
        return HF_OK;
    }
    return fail_batch(batch, error);
}

/* Wait for the reports of all that was produced. */
static enum hf_status reports_await(struct kafka_batch *batch)
{
    struct kafka_lane *lane = batch->lane;

    while (batch->open) {
        (void)batch->kafka->lib.rd_kafka_poll(lane->producer,
                                              hf__broker_wait_ms(&batch->wait, BROKER_SLICE_MS));
        if (!batch->open)
            break;
        if (lane->denied)
            return fail_batch(batch, RD_KAFKA_RESP_ERR__AUTHENTICATION);
        if (lane->down && hf__broker_now_us() - batch->moved_us > (int64_t)DOWN_MS * 1000)
            return fail_batch(batch, RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN);
        TRY(hf__broker_wait_check(&batch->wait));
    }
    return HF_OK;
}

/* Judge the batch by its reports, all of which have come; *alone: do (3). */
static enum hf_status reports_judge(struct kafka_batch *batch, bool *alone)
{
    rd_kafka_resp_err_t others = RD_KAFKA_RESP_ERR_NO_ERROR;

    assert(!batch->open);
    *alone = false;
    for (size_t i = 0; i < batch->len; i++) {
        enum blame blame = batch->ended[i] ? BLAME_NONE : blame_of(batch->errors[i]);

        if (blame == BLAME_BROKER || (blame == BLAME_TOPIC && batch->kafka->topic.is_fixed))
            return fail_batch(batch, batch->errors[i]);
        if (blame == BLAME_TOPIC)
            fail_event(batch, i, batch->errors[i]);
        else if (blame == BLAME_EVENT)
            *alone = true;
        else if (blame == BLAME_OTHERS)
            others = batch->errors[i];
    }
    /* Messages were not sent because of others, but no other is to blame: it is the producer. */
    return others && !*alone ? fail_batch(batch, others) : HF_OK;
}

/* Produce all events at once. */
static enum hf_status produce_all(struct kafka_batch *batch, bool *alone)
{
    for (size_t i = 0; i < batch->len; i++)
        TRY(message_produce(batch, i));
    TRY(reports_await(batch));
    return reports_judge(batch, alone);
}

/* (3) Produce the events that have no outcome yet one by one. */
static enum hf_status produce_alone(struct kafka_batch *batch)
{
    for (size_t i = 0; i < batch->len; i++) {
        bool alone;

        if (batch->ended[i])
            continue;
        leave_lane(batch, true); /* it may have had a fatal error */
        TRY(take_lane(batch->wait.s, batch->kafka, &batch->lane));
        batch->lane->batch = batch;
        for (size_t j = i; j < batch->len; j++)
            batch->errors[j] = RD_KAFKA_RESP_ERR_NO_ERROR;
        TRY(message_produce(batch, i));
        TRY(reports_await(batch));
        if (!batch->ended[i] && blame_of(batch->errors[i]) == BLAME_EVENT)
            fail_event(batch, i, batch->errors[i]);
        TRY(reports_judge(batch, &alone));
        if (!batch->ended[i])
            return fail_batch(batch, batch->errors[i]);
    }
    return HF_OK;
}

static enum hf_status kafka_send_wave(struct hf_scope *s, void *self,
                                      struct hf_delivery *deliveries, size_t len)
{
    struct kafka *kafka = self;
    struct kafka_batch batch = {.kafka = kafka, .deliveries = deliveries, .len = len};
    enum hf_status status;
    bool alone = false;

    hf__broker_wait_begin(&batch.wait, s, kafka->timeout_ms);
    batch.ended = hf__scope_array(s, len, sizeof(*batch.ended));
    batch.sent = hf__scope_array(s, len, sizeof(*batch.sent));
    batch.errors = hf__scope_array(s, len, sizeof(*batch.errors));
    if (!batch.ended || !batch.sent || !batch.errors)
        return hf__fail_nomem(s);
    TRY(take_lane(s, kafka, &batch.lane));
    batch.lane->batch = &batch;
    batch.moved_us = hf__broker_now_us();
    status = produce_all(&batch, &alone);
    if (status == HF_OK && alone)
        status = produce_alone(&batch);
    leave_lane(&batch, status == HF_OK);
    assert(!batch.lane);
    return status;
}

static enum hf_status kafka_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                                 size_t len)
{
    return hf__broker_send_waves(s, self, deliveries, len, kafka_send_wave);
}

static enum hf_status kafka_probe(struct hf_scope *s, void *self)
{
    struct kafka *kafka = self;
    struct kafka_batch batch = {.kafka = kafka};
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t error = RD_KAFKA_RESP_ERR__TIMED_OUT;
    enum hf_status status = HF_OK;

    hf__broker_wait_begin(&batch.wait, s, kafka->timeout_ms);
    TRY(take_lane(s, kafka, &batch.lane));
    error = kafka->lib.rd_kafka_metadata(batch.lane->producer, 0, NULL, &metadata,
                                         hf__broker_wait_ms(&batch.wait, DOWN_MS) + 1);
    (void)kafka->lib.rd_kafka_poll(batch.lane->producer, 0);
    if (error)
        status = fail_batch(&batch, batch.lane->denied ? RD_KAFKA_RESP_ERR__AUTHENTICATION : error);
    else
        kafka->lib.rd_kafka_metadata_destroy(metadata);
    leave_lane(&batch, status == HF_OK);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static void kafka_close(void *self)
{
    struct kafka *kafka = self;
    struct hf_env env = kafka->env;
    struct broker_lane *lane;

    while ((lane = hf__broker_lane_take(&kafka->lanes)))
        close_lane(kafka, (struct kafka_lane *)lane);
    if (kafka->conf)
        kafka->lib.rd_kafka_conf_destroy(kafka->conf);
    hf__broker_lanes_destroy(&kafka->lanes);
    hf__env_free(&env, kafka, sizeof(*kafka));
}

/* Options of librdkafka that would break what is promised here, or load code. */
static bool is_ours(const char *name)
{
    static const char *const ours[] = {
        "bootstrap.servers",        "metadata.broker.list",
        "enable.idempotence",       "enable.gapless.guarantee",
        "request.required.acks",    "delivery.report.only.error",
        "message.timeout.ms",       "delivery.timeout.ms",
        "transactional.id",         "plugin.library.paths",
        "message.send.max.retries", "ssl.engine.location",
        "queuing.strategy",         "log.queue",
    };

    for (size_t i = 0; i < ARRAY_LEN(ours); i++)
        if (strcmp(name, ours[i]) == 0)
            return true;
    return false;
}

/* The library's message may contain the value, so it is not shown. */
static enum hf_status set_conf(struct hf_scope *s, struct kafka *kafka, const char *name,
                               const char *value)
{
    switch (kafka->lib.rd_kafka_conf_set(kafka->conf, name, value, NULL, 0)) {
    case RD_KAFKA_CONF_OK:
        return HF_OK;
    case RD_KAFKA_CONF_UNKNOWN:
        return hf__fail(s, HF_INVALID, "librdkafka has no option %s", name);
    default:
        return hf__fail(s, HF_INVALID, "librdkafka rejects the value of the option %s", name);
    }
}

static enum hf_status set_given(struct hf_scope *s, struct kafka *kafka, struct hf_str name,
                                struct hf_str value)
{
    struct hf_str copy = hf_scope_copy(s, name);

    if (!copy.ptr)
        return hf__fail_nomem(s);
    if (is_ours(copy.ptr))
        return hf__fail(s, HF_INVALID,
                        "the option %s of librdkafka cannot be set: the sink sets it", copy.ptr);
    TRY(hf__broker_c_text(s, copy.ptr, value));
    return set_conf(s, kafka, copy.ptr, value.ptr);
}

#define PARTITIONERS "murmur2_random|consistent_random|murmur2|consistent|fnv1a_random|random"
#define COMPRESSIONS "none|gzip|snappy|lz4|zstd"

/* Word number `at` of "one|two", from 1, in the scope. */
static struct hf_str word_of(struct hf_scope *s, const char *words, int at)
{
    assert(at > 0);
    while (--at > 0) {
        words = strchr(words, '|');
        assert(words);
        words++;
    }
    return hf_scope_copy(s, hf_str_of(words, strcspn(words, "|")));
}

static enum hf_status make_conf(struct hf_scope *s, const struct sink_url *url, struct kafka *kafka)
{
    static const char *const fixed[][2] = {
        {"client.id", "holdfast"},
        {"enable.idempotence", "true"},
        {"acks", "all"},
        {"message.timeout.ms", "0"},
        {"linger.ms", "0"},
        {"socket.nagle.disable", "true"},
        {"topic.metadata.propagation.max.ms", "5000"},
        {"reconnect.backoff.max.ms", "1000"},
    };
    struct hf_str partitioner = word_of(s, PARTITIONERS, kafka->partitioner);
    struct hf_str compression = word_of(s, COMPRESSIONS, kafka->compression);

    if (!partitioner.ptr || !compression.ptr)
        return hf__fail_nomem(s);
    kafka->conf = kafka->lib.rd_kafka_conf_new();
    if (!kafka->conf)
        return hf__fail_nomem(s);
    for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
        TRY(set_conf(s, kafka, fixed[i][0], fixed[i][1]));
    TRY(set_conf(s, kafka, "bootstrap.servers", kafka->brokers.ptr));
    TRY(set_conf(s, kafka, "partitioner", partitioner.ptr));
    TRY(set_conf(s, kafka, "compression.codec", compression.ptr));
    for (size_t i = 0; i < url->given_len; i++)
        if (memchr(url->given[i].name.ptr, '.', url->given[i].name.len))
            TRY(set_given(s, kafka, url->given[i].name, url->given[i].value));
    kafka->lib.rd_kafka_conf_set_dr_msg_cb(kafka->conf, on_report);
    kafka->lib.rd_kafka_conf_set_error_cb(kafka->conf, on_error);
    kafka->lib.rd_kafka_conf_set_log_cb(kafka->conf, ignore_log);
    return HF_OK;
}

/* BROKERS/TOPIC, with or without slashes before them. */
static enum hf_status read_path(struct hf_scope *s, const struct sink_url *url, struct kafka *kafka)
{
    struct hf_str rest = url->rest, topic;
    const char *slash;
    size_t len;

    (void)str_after(rest, HF_STR("//"), &rest);
    slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
    len = slash ? (size_t)(slash - rest.ptr) : 0;
    if (len == 0 || len + 1 == rest.len)
        return hf__fail(s, HF_INVALID, "the URL of a kafka sink is kafka:BROKER[,BROKER...]/TOPIC");
    if (memchr(rest.ptr, '@', len))
        return hf__fail(s, HF_INVALID,
                        "the URL of a kafka sink has a user before its brokers; use the "
                        "options sasl.username and sasl.password instead");
    kafka->brokers = hf_scope_copy(url->memory, hf_str_of(rest.ptr, len));
    if (!kafka->brokers.ptr)
        return hf__fail_nomem(s);
    TRY(hf__sink_decode(s, url->memory, "the topic", hf_str_of(slash + 1, rest.len - len - 1),
                        &topic));
    TRY(hf__template_read(s, url->memory, "the topic", topic, &kafka->topic));
    if (kafka->topic.is_fixed && !is_topic(kafka->topic.text))
        return hf__fail(s, HF_INVALID,
                        "a Kafka topic has letters, digits, \".\", \"_\" and \"-\", at most %d of "
                        "them",
                        TOPIC_MAX);
    if (kafka->key_text.ptr)
        TRY(hf__template_read(s, url->memory, "the key", kafka->key_text, &kafka->key));
    return HF_OK;
}

/* Options without a dot are ours. */
static enum hf_status read_options(struct hf_scope *s, const struct sink_url *url,
                                   struct kafka *kafka)
{
    static const struct sink_option options[] = {
        {.name = "key", .kind = SINK_TEXT, .at = offsetof(struct kafka, key_text)},
        {.name = "partitioner",
         .kind = SINK_WORD,
         .at = offsetof(struct kafka, partitioner),
         .words = PARTITIONERS},
        {.name = "compression",
         .kind = SINK_WORD,
         .at = offsetof(struct kafka, compression),
         .words = COMPRESSIONS},
        {.name = "form",
         .kind = SINK_WORD,
         .at = offsetof(struct kafka, form),
         .words = BROKER_FORMS},
        {.name = "tombstone", .kind = SINK_YES_NO, .at = offsetof(struct kafka, tombstone)},
        {.name = "timeout_ms",
         .kind = SINK_NUMBER,
         .at = offsetof(struct kafka, timeout_ms),
         .min = 1,
         .max = 3600000},
    };
    struct sink_option_given *given = hf__scope_array(s, url->given_len + 1, sizeof(*given));
    struct sink_url ours = *url;

    if (!given)
        return hf__fail_nomem(s);
    ours.given = given;
    ours.given_len = 0;
    for (size_t i = 0; i < url->given_len; i++) {
        if (hf_str_equal(url->given[i].name, HF_STR("acks")))
            return hf__fail(s, HF_INVALID, "the option acks cannot be set: it is always \"all\"");
        if (!memchr(url->given[i].name.ptr, '.', url->given[i].name.len))
            given[ours.given_len++] = url->given[i];
    }
    return hf__sink_options(s, &ours, options, ARRAY_LEN(options), kafka);
}

static enum hf_status set_up(struct hf_scope *s, const struct sink_url *url, struct kafka *kafka)
{
    TRY(read_options(s, url, kafka));
    if (kafka->form == FORM_BUS_MESSAGE && kafka->tombstone == HF_YES)
        return hf__fail(s, HF_INVALID,
                        "the option tombstone is for form=payload: other messages have a value");
    TRY(read_path(s, url, kafka));
    TRY(hf__library_load(s, HF_KAFKA_LIBRARY, symbols, ARRAY_LEN(symbols), &kafka->lib));
    return make_conf(s, url, kafka);
}

/* The largest message that librdkafka accepts; 0: unknown. */
static size_t event_max(const struct kafka *kafka)
{
    char text[32];
    size_t size = sizeof(text);

    if (kafka->lib.rd_kafka_conf_get(kafka->conf, "message.max.bytes", text, &size) !=
        RD_KAFKA_CONF_OK)
        return 0;
    return (size_t)strtoull(text, NULL, 10);
}

enum hf_status hf__sink_kafka_open(struct hf_scope *s, const struct sink_url *url,
                                   struct hf_sink **sink)
{
    const struct hf_env *env = hf_scope_env(s);
    struct kafka *kafka = hf__env_alloc(env, sizeof(*kafka));
    struct hf_sink_ops ops = {
        .size = sizeof(ops),
        .name = "kafka",
        .batch_max = KAFKA_BATCH,
        .batch_bytes_max = KAFKA_BATCH_BYTES,
        .workers = KAFKA_THREADS,
        .keeps_order = true,
        .send = kafka_send,
        .probe = kafka_probe,
        .close = kafka_close,
    };
    enum hf_status status;

    if (!kafka)
        return hf__fail_nomem(s);
    *kafka = (struct kafka){.env = *env,
                            .timeout_ms = BROKER_TIMEOUT_MS,
                            .partitioner = 1,
                            .compression = 1};
    hf__broker_lanes_init(&kafka->lanes);
    status = set_up(s, url, kafka);
    if (status == HF_OK) {
        ops.event_bytes_max = event_max(kafka);
        status = hf_sink_new(s, &ops, kafka, sink);
    }
    if (status != HF_OK)
        kafka_close(kafka);
    return status;
}
