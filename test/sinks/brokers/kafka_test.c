/*
 * test/sinks/brokers/kafka_test.c: Kafka, as librdkafka's mock cluster has it; (n) is an invariant
 * of sinks/sink_kafka.c.
 *
 * The mock keeps messages in memory and does not drop what it got twice. Taking a broker down
 * closes its connections, in the middle of whatever they do, and keeps what it has.
 */
#include "kit.h"

#include <librdkafka/rdkafka.h>
#include <librdkafka/rdkafka_mock.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PARTITIONS = 3, PRODUCE = 0 /* the request's number */ };

struct kafka {
    rd_kafka_t *handle;
    rd_kafka_mock_cluster_t *cluster;
    struct hf_str brokers;
};

static void ignore_log(const rd_kafka_t *handle, int level, const char *facility, const char *text)
{
    (void)handle;
    (void)level;
    (void)facility;
    (void)text;
}

static void open_kafka(struct kafka *kafka)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[200];

    rd_kafka_conf_set_log_cb(conf, ignore_log);
    kafka->handle = rd_kafka_new(RD_KAFKA_PRODUCER, conf, text, sizeof(text));
    CHECK(kafka->handle != NULL);
    kafka->cluster = rd_kafka_mock_cluster_new(kafka->handle, 1);
    CHECK(kafka->cluster != NULL);
    kafka->brokers = hf_str_from(rd_kafka_mock_cluster_bootstraps(kafka->cluster));
    CHECK_INT(0, rd_kafka_mock_topic_create(kafka->cluster, "events", PARTITIONS, 1));
}

static void close_kafka(struct kafka *kafka)
{
    rd_kafka_mock_cluster_destroy(kafka->cluster);
    rd_kafka_destroy(kafka->handle);
}

static struct hf_sink *open_sink(struct hf_scope *s, const struct kafka *kafka, const char *rest)
{
    struct hf_sink *sink;
    /* The mock sends answers in pieces that wait for each other; brokers do not. */
    struct hf_str url =
        hf_scope_format(s, "kafka:%.*s/%s%cmax.in.flight.requests.per.connection=1",
                        HF_FMT(kafka->brokers), rest, strchr(rest, '?') ? '&' : '?');

    CHECK_OK(hf_sink_open(s, url, &sink));
    return sink;
}

/* Called for each message, partition by partition, in their order. */
typedef void see_fn(void *user, const rd_kafka_message_t *message);

static void read_all(const struct kafka *kafka, see_fn *see, void *user)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(PARTITIONS);
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char text[200];
    rd_kafka_t *reader;

    rd_kafka_conf_set_log_cb(conf, ignore_log);
    rd_kafka_conf_set(conf, "bootstrap.servers", kafka->brokers.ptr, NULL, 0);
    rd_kafka_conf_set(conf, "group.id", "test", NULL, 0);
    rd_kafka_conf_set(conf, "enable.partition.eof", "true", NULL, 0);
    rd_kafka_conf_set(conf, "fetch.wait.max.ms", "10", NULL, 0);
    reader = rd_kafka_new(RD_KAFKA_CONSUMER, conf, text, sizeof(text));
    CHECK(reader != NULL);
    for (int i = 0; i < PARTITIONS; i++)
        rd_kafka_topic_partition_list_add(list, "events", i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    CHECK_INT(0, rd_kafka_assign(reader, list));
    rd_kafka_topic_partition_list_destroy(list);
    for (int ends = 0, turns = 0; ends < PARTITIONS;) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(reader, 1000);

        CHECK(turns++ < 100000);
        if (!message)
            continue;
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            ends++;
        else if (!message->err)
            see(user, message);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_consumer_close(reader);
    rd_kafka_destroy(reader);
}

static struct hf_str header(const rd_kafka_message_t *message, const char *name)
{
    rd_kafka_headers_t *headers;
    const void *value;
    size_t len;

    if (rd_kafka_message_headers(message, &headers) ||
        rd_kafka_header_get_last(headers, name, &value, &len))
        return hf_str_of(NULL, 0);
    return hf_str_of(value, len);
}

static void see_ledger(void *user, const rd_kafka_message_t *message)
{
    ledger_see(user, header(message, "ce_id"), hf_bytes_of(message->payload, message->len));
}

static void see_headers(void *user, const rd_kafka_message_t *message)
{
    int *seen = user;

    if (!hf_str_equal(header(message, "ce_id"), HF_STR("3-0")))
        return;
    (*seen)++;
    CHECK_STR("key 3", hf_str_of(message->key, message->key_len));
    CHECK_STR("1.0", header(message, "ce_specversion"));
    CHECK_STR("order.placed", header(message, "ce_type"));
    CHECK_STR("key 3", header(message, "ce_partitionkey"));
    CHECK_STR("caf\xc3\xa9 \"x\" 100%", header(message, "ce_tenant"));
    CHECK_STR("eu west", header(message, "ce_region"));
    CHECK_STR("application/octet-stream", header(message, "content-type"));
}

/* (1): headers, bytes, order, and each event once. */
TEST(kafka, events_are_messages)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(20000);
    struct kafka kafka;
    struct hf_sink *sink;
    int seen = 0;

    open_kafka(&kafka);
    sink = open_sink(s, &kafka, "events?compression=lz4");
    CHECK(hf_sink_ops(sink)->keeps_order);
    CHECK_INT(1000000, hf_sink_ops(sink)->event_bytes_max);
    CHECK_OK(hf_sink_probe(s, sink));
    ledger = (struct ledger){.t = t};
    ledger_send(&ledger, sink, 200, 50, NULL, NULL);
    read_all(&kafka, see_ledger, &ledger);
    ledger_check(&ledger, true);
    read_all(&kafka, see_headers, &seen);
    CHECK_INT(1, seen);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

static void see_bus_message(void *user, const rd_kafka_message_t *message)
{
    rd_kafka_headers_t *headers;
    int *seen = user;

    (*seen)++;
    CHECK_STR("0-0", hf_str_of(message->key, message->key_len));
    CHECK_STR("{\"id\":\"0-0\",\"type\":\"order.placed\",\"payload\":{\"n\":1},"
              "\"occurredAt\":\"2026-01-01T00:00:00.000Z\","
              "\"metadata\":{\"region\":\"eu west\",\"correlationId\":\"c-1\"}}",
              hf_str_of(message->payload, message->len));
    CHECK_STR("order.placed", header(message, "eventType"));
    CHECK_INT(0, rd_kafka_message_headers(message, &headers));
    CHECK_INT(1, rd_kafka_header_cnt(headers));
}

/* Key, value and the one header that the publisher of outbox-event-bus writes. */
TEST(kafka, messages_of_outbox_event_bus)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct kafka kafka;
    struct hf_sink *sink;
    int seen = 0;

    open_kafka(&kafka);
    sink = open_sink(s, &kafka, "events?form=outbox-event-bus");
    make_event(s, 0, 0, &event);
    event.event.payload = hf_bytes_of("{", 1);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_INVALID, delivery.status); /* no JSON */
    CHECK(delivery.for_good);
    event.event.content_type = HF_STR("application/json");
    event.event.payload = hf_bytes_of("{\"n\": 1}", 8);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, delivery.status);
    read_all(&kafka, see_bus_message, &seen);
    CHECK_INT(1, seen);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

struct nothing {
    int nulls, empties;
};

static void see_nothing(void *user, const rd_kafka_message_t *message)
{
    struct nothing *nothing = user;

    CHECK_INT(0, message->len);
    CHECK_STR("theirs", hf_str_of(message->key, message->key_len));
    if (message->payload)
        nothing->empties++;
    else
        nothing->nulls++;
}

/* Templates for topic and key; tombstones. */
TEST(kafka, topics_and_keys_may_be_templates)
{
    struct hf_scope *s = real_scope(20000);
    struct nothing nothing = {0};
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct kafka kafka;
    struct hf_sink *sink;

    open_kafka(&kafka);
    make_event(s, 0, 0, &event);
    event.event.payload = (struct hf_bytes){0};
    event.event.destination = HF_STR("events");
    event.event.tenant = HF_STR("theirs");
    for (int i = 0; i < 2; i++) {
        sink = open_sink(s, &kafka,
                         i ? "{destination}?key={tenant}&tombstone=yes"
                           : "{destination}?key={tenant}");
        delivery = send_one(s, sink, &event, &status);
        CHECK_INT(HF_OK, status);
        CHECK_INT(HF_OK, delivery.status);
        hf_sink_close(sink);
    }
    read_all(&kafka, see_nothing, &nothing);
    CHECK_INT(1, nothing.nulls);
    CHECK_INT(1, nothing.empties);
    sink = open_sink(s, &kafka, "{destination}");
    event.event.destination = HF_STR("no topic");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_INVALID, delivery.status);
    CHECK(delivery.for_good);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

struct order {
    int len;
    char ids[20][16];
};

static void see_order(void *user, const rd_kafka_message_t *message)
{
    struct order *order = user;

    CHECK(order->len < 20);
    snprintf(order->ids[order->len++], sizeof(order->ids[0]), "%.*s",
             HF_FMT(header(message, "ce_id")));
}

/* 0-0 0-1 0-2 1-0 */
static void make_four(struct hf_scope *s, struct hf_outbox_event *events,
                      struct hf_delivery *deliveries)
{
    for (int i = 0; i < 4; i++) {
        make_event(s, i / 3, i % 3, &events[i]);
        deliveries[i] = (struct hf_delivery){.event = &events[i]};
    }
}

/* librdkafka does not take it. Those behind it, with its key, are not sent. */
TEST(kafka, what_is_too_large_holds_up_its_key)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[4];
    struct hf_delivery deliveries[4];
    struct order order = {0};
    char *large = hf_scope_alloc(s, 20000);
    struct kafka kafka;
    struct hf_sink *sink;

    open_kafka(&kafka);
    make_four(s, events, deliveries);
    memset(large, 'x', 20000);
    events[1].event.payload = hf_bytes_of(large, 20000);
    sink = open_sink(s, &kafka, "events?message.max.bytes=10000");
    CHECK_OK(hf_sink_send(s, sink, deliveries, 4));
    CHECK_INT(HF_OK, deliveries[0].status);
    CHECK_INT(HF_LIMIT, deliveries[1].status);
    CHECK(deliveries[1].for_good);
    CHECK(deliveries[2].status != HF_OK && !deliveries[2].for_good);
    CHECK_INT(HF_OK, deliveries[3].status);
    read_all(&kafka, see_order, &order);
    CHECK_INT(2, order.len);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

/* (3): a broker does not take a request; then the first of its events alone, neither. */
TEST(kafka, who_is_to_blame_for_a_refused_request_is_found)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[4];
    struct hf_delivery deliveries[4];
    struct order order = {0};
    struct kafka kafka;
    struct hf_sink *sink;

    open_kafka(&kafka);
    rd_kafka_mock_topic_create(kafka.cluster, "one", 1, 1);
    sink = open_sink(s, &kafka, "events");
    make_four(s, events, deliveries);
    rd_kafka_mock_push_request_errors(kafka.cluster, PRODUCE, 1,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 4));
    for (int i = 0; i < 4; i++)
        CHECK_INT(HF_OK, deliveries[i].status);
    read_all(&kafka, see_order, &order);
    CHECK_INT(4, order.len);
    for (int i = 1; i < order.len; i++)
        if (order.ids[i][0] == '0' && order.ids[i - 1][0] == '0')
            CHECK(order.ids[i][2] == order.ids[i - 1][2] + 1);
    hf_sink_close(sink);

    sink = open_sink(s, &kafka, "one?linger.ms=100"); /* 0-0 and 1-0 are one request */
    rd_kafka_mock_push_request_errors(kafka.cluster, PRODUCE, 2,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE,
                                      RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 4));
    CHECK_INT(HF_LIMIT, deliveries[0].status);
    CHECK(deliveries[0].for_good);
    CHECK(deliveries[1].status != HF_OK && !deliveries[1].for_good);
    CHECK(deliveries[2].status != HF_OK && !deliveries[2].for_good);
    CHECK_INT(HF_OK, deliveries[3].status);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

/* What a broker says of the topic that all go to is nobody's fault. */
TEST(kafka, a_topic_that_is_not_for_us_is_named)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[4];
    struct hf_delivery deliveries[4];
    struct kafka kafka;
    struct hf_sink *sink;

    open_kafka(&kafka);
    sink = open_sink(s, &kafka, "events");
    make_four(s, events, deliveries);
    rd_kafka_mock_push_request_errors(kafka.cluster, PRODUCE, 2,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED,
                                      RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED);
    CHECK_STATUS(HF_DENIED, hf_sink_send(s, sink, deliveries, 4));
    CHECK(strstr(hf_scope_error_text(s), "\"events\"") != NULL);
    rd_kafka_mock_clear_request_errors(kafka.cluster, PRODUCE);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 4));
    for (int i = 0; i < 4; i++)
        CHECK_INT(HF_OK, deliveries[i].status);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

/* (2): a call that ends before the reports come takes nothing for delivered, and sends no more. */
TEST(kafka, a_deadline_ends_what_is_under_way)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct kafka kafka;
    struct hf_sink *sink;

    open_kafka(&kafka);
    sink = open_sink(s, &kafka, "events");
    make_event(s, 0, 0, &event);
    CHECK_OK(hf_sink_probe(s, sink)); /* connected */
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 3000);
    hf_scope_timeout_ms(s, 300);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_TIMEOUT, status);
    CHECK(delivery.status != HF_OK);
    hf_scope_reset(s);
    hf_scope_cancel(s);
    make_event(s, 0, 0, &event);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_CANCELED, status);
    CHECK(delivery.status != HF_OK);
    rd_kafka_mock_broker_set_rtt(kafka.cluster, 1, 0);
    ledger = (struct ledger){.t = t};
    ledger_send(&ledger, sink, 50, 10, NULL, NULL);
    read_all(&kafka, see_ledger, &ledger);
    ledger_check(&ledger, false);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

/* Nobody there, or somebody who does not know what a password is: the whole sink, and in time. */
TEST(kafka, what_cannot_be_reached_fails_in_time)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    enum hf_status status;
    struct kafka kafka;
    struct hf_sink *sink;
    char url[100];

    make_event(s, 0, 0, &event);
    snprintf(url, sizeof(url), "kafka:127.0.0.1:%d/events", free_port());
    CHECK_OK(hf_sink_open(s, hf_str_from(url), &sink));
    (void)send_one(s, sink, &event, &status);
    CHECK_INT(HF_IO, status);
    CHECK(strstr(hf_scope_error_text(s), "127.0.0.1") != NULL);
    hf_sink_close(sink);

    open_kafka(&kafka);
    sink = open_sink(s, &kafka,
                     "events?security.protocol=sasl_plaintext&sasl.mechanism=PLAIN"
                     "&sasl.username=ann&sasl.password=secret");
    (void)send_one(s, sink, &event, &status);
    CHECK(status == HF_DENIED || status == HF_IO);
    CHECK(strstr(hf_scope_error_text(s), "secret") == NULL);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

TEST(kafka, what_is_promised_cannot_be_switched_off)
{
    static const char *const urls[] = {
        "kafka:b/t?acks=1",
        "kafka:b/t?enable.idempotence=false",
        "kafka:b/t?request.required.acks=0",
        "kafka:b/t?message.timeout.ms=1",
        "kafka:b/t?no.such.option=secret",
        "kafka:b/t?linger.ms=secret",
        "kafka:b/t?partitioner=mine",
        "kafka:b/a%20b",
        "kafka:b",
        "kafka:/t",
        "kafka://ann:secret@b/t",
    };
    struct hf_scope *s = real_scope(0);
    struct hf_sink *sink;

    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        CHECK_STATUS(HF_INVALID, hf_sink_open(s, hf_str_from(urls[i]), &sink));
        CHECK(strstr(hf_scope_error_text(s), "secret") == NULL);
    }
    hf_scope_free(s);
}

TEST(kafka, threads_have_producers_of_their_own)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct kafka kafka;
    struct hf_sink *sink;

    open_kafka(&kafka);
    sink = open_sink(s, &kafka, "events");
    ledger = (struct ledger){.t = t};
    ledger_send_threads(&ledger, sink, 50);
    read_all(&kafka, see_ledger, &ledger);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}

/* Goes down and comes back on a thread of its own while a ledger is sent. */
struct weather {
    struct kafka *kafka;
    pthread_t thread;
    _Atomic bool stop;
};

static void *weather_run(void *user)
{
    struct weather *weather = user;

    for (int i = 0; i < 6 && !weather->stop; i++) {
        usleep(20000 + i * 3000);
        rd_kafka_mock_broker_set_down(weather->kafka->cluster, 1);
        usleep(150000);
        rd_kafka_mock_broker_set_up(weather->kafka->cluster, 1);
    }
    return NULL;
}

static void wait_a_bit(void *user)
{
    (void)user;
    usleep(10000);
}

/* Connections are cut in the middle, and calls end: what was acked is there, in order. */
TEST(kafka, nothing_acked_is_lost_when_connections_are)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct kafka kafka;
    struct weather weather = {.kafka = &kafka};
    struct hf_sink *sink;

    open_kafka(&kafka);
    sink = open_sink(s, &kafka, "events?timeout_ms=100&reconnect.backoff.ms=10");
    ledger = (struct ledger){.t = t};
    CHECK_INT(0, pthread_create(&weather.thread, NULL, weather_run, &weather));
    ledger_send(&ledger, sink, LEDGER_EVENTS, 8, wait_a_bit, NULL);
    weather.stop = true;
    pthread_join(weather.thread, NULL);
    CHECK(ledger.failures > 0);
    read_all(&kafka, see_ledger, &ledger);
    ledger_check(&ledger, false);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_kafka(&kafka);
}
