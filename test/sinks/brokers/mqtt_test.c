/* test/sinks/brokers/mqtt_test.c: MQTT 5; (n) is an invariant of sinks/sink_mqtt.c. */
#include "kit.h"

#include <mosquitto.h>
#include <mqtt_protocol.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct mqtt {
    struct broker broker;
    const char *argv[4];
    char config[300];
};

static void open_mqtt(struct test *t, struct mqtt *mqtt, const char *more)
{
    const char *argv[] = {MOSQUITTO, "-c", mqtt->config, NULL};
    FILE *file;

    *mqtt = (struct mqtt){.broker = {.t = t, .port = free_port(), .ready_ms = 20000}};
    mqtt->broker.dir = test_directory(t);
    snprintf(mqtt->config, sizeof(mqtt->config), "%s/mosquitto.conf", mqtt->broker.dir);
    file = fopen(mqtt->config, "w");
    CHECK(file != NULL);
    fprintf(file, "listener %d 127.0.0.1\nuser root\npersistence false\n%s\n", mqtt->broker.port,
            more);
    fclose(file);
    memcpy(mqtt->argv, argv, sizeof(argv));
    mqtt->broker.argv = mqtt->argv;
    broker_start(&mqtt->broker);
}

static struct hf_sink *open_sink(struct hf_scope *s, const struct mqtt *mqtt, const char *user,
                                 const char *rest)
{
    struct hf_sink *sink;
    struct hf_str url =
        hf_scope_format(s, "mqtt://%s127.0.0.1:%d/%s", user, mqtt->broker.port, rest);

    CHECK_OK(hf_sink_open(s, url, &sink));
    return sink;
}

/* ---- who listens ---------------------------------------------------------------------------- */

/* Reads until the server is gone, on a thread; what it read is looked at when that has ended. */
struct listener {
    struct mosquitto *client;
    pthread_t thread;
    struct ledger *ledger;
    _Atomic int got;
    _Atomic bool subscribed, stop;
    char first[2000]; /* properties of the first message: "name=value;" */
    char topic[100];
    bool retained;
};

static struct hf_str note_properties(struct listener *listener, const mosquitto_property *list,
                                     char id[64])
{
    const mosquitto_property *at = list;
    char *name, *value;
    bool skip = false;

    id[0] = '\0';
    while ((at = mosquitto_property_read_string_pair(at, MQTT_PROP_USER_PROPERTY, &name, &value,
                                                     skip))) {
        if (strcmp(name, "id") == 0)
            snprintf(id, 64, "%s", value);
        if (listener->got == 0) {
            size_t used = strlen(listener->first);

            snprintf(listener->first + used, sizeof(listener->first) - used, "%s=%s;", name, value);
        }
        free(name);
        free(value);
        skip = true;
    }
    if (listener->got == 0 &&
        mosquitto_property_read_string(list, MQTT_PROP_CONTENT_TYPE, &value, false)) {
        size_t used = strlen(listener->first);

        snprintf(listener->first + used, sizeof(listener->first) - used, "content type %s;", value);
        free(value);
    }
    return hf_str_from(id);
}

static void on_message(struct mosquitto *client, void *user,
                       const struct mosquitto_message *message,
                       const mosquitto_property *properties)
{
    struct listener *listener = user;
    char id[64];

    (void)client;
    ledger_see(listener->ledger, note_properties(listener, properties, id),
               hf_bytes_of(message->payload, (size_t)message->payloadlen));
    if (listener->got == 0) {
        snprintf(listener->topic, sizeof(listener->topic), "%s", message->topic);
        listener->retained = message->retain;
    }
    listener->got++;
}

static void on_subscribe(struct mosquitto *client, void *user, int id, int len, const int *granted,
                         const mosquitto_property *properties)
{
    (void)client;
    (void)id;
    (void)len;
    (void)granted;
    (void)properties;
    ((struct listener *)user)->subscribed = true;
}

static void *listener_run(void *user)
{
    struct listener *listener = user;

    while (!listener->stop && mosquitto_loop(listener->client, 20, 1) == MOSQ_ERR_SUCCESS) {
    }
    return NULL;
}

static void listener_start(struct listener *listener, struct ledger *ledger, int port)
{
    *listener = (struct listener){.ledger = ledger};
    listener->client = mosquitto_new(NULL, true, listener);
    CHECK(listener->client != NULL);
    mosquitto_int_option(listener->client, MOSQ_OPT_PROTOCOL_VERSION, MQTT_PROTOCOL_V5);
    mosquitto_message_v5_callback_set(listener->client, on_message);
    mosquitto_subscribe_v5_callback_set(listener->client, on_subscribe);
    CHECK_INT(MOSQ_ERR_SUCCESS, mosquitto_connect(listener->client, "127.0.0.1", port, 60));
    /* Quality 0: the server hands over before it answers who published, and keeps nothing back. */
    CHECK_INT(MOSQ_ERR_SUCCESS, mosquitto_subscribe(listener->client, NULL, "events/#", 0));
    while (!listener->subscribed)
        CHECK_INT(MOSQ_ERR_SUCCESS, mosquitto_loop(listener->client, 20, 1));
    CHECK_INT(0, pthread_create(&listener->thread, NULL, listener_run, listener));
}

/* After it got so many, or the server is gone. */
static void listener_end(struct listener *listener, int wanted)
{
    for (int i = 0; wanted && listener->got < wanted && i < 2000; i++)
        usleep(10000);
    if (wanted)
        listener->stop = true;
    pthread_join(listener->thread, NULL);
    mosquitto_destroy(listener->client);
}

/* ---- tests ---------------------------------------------------------------------------------- */

/* (1): properties, bytes, order, and each event once. */
TEST(mqtt, events_are_publications)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(20000);
    struct listener listener;
    struct mqtt mqtt;
    struct hf_sink *sink;

    open_mqtt(t, &mqtt, "allow_anonymous true");
    sink = open_sink(s, &mqtt, "", "events/{type}/{tenant}?expiry_s=60");
    CHECK_OK(hf_sink_probe(s, sink));
    ledger = (struct ledger){.t = t, .events = 60};
    listener_start(&listener, &ledger, mqtt.broker.port);
    ledger_send(&ledger, sink, 60, 20, NULL, NULL);
    listener_end(&listener, 60 * KEYS);
    ledger_check(&ledger, true);
    CHECK(strcmp("events/order.placed/caf\xc3\xa9 \"x\" 100%", listener.topic) == 0);
    CHECK(strstr(listener.first, "specversion=1.0;id=0-0;source=/shop;type=order.placed;") != NULL);
    CHECK(strstr(listener.first, ";partitionkey=key 0;") != NULL);
    CHECK(strstr(listener.first, ";tenant=caf\xc3\xa9 \"x\" 100%;") != NULL);
    CHECK(strstr(listener.first, ";region=eu west;") != NULL);
    CHECK(strstr(listener.first, ";content type application/octet-stream;") != NULL);
    CHECK(strstr(listener.first, "datacontenttype") == NULL);
    hf_sink_close(sink);
    hf_scope_free(s);
    broker_stop(&mqtt.broker);
}

/* (1): nobody listens. */
TEST(mqtt, subscribers_may_be_required)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct mqtt mqtt;
    struct hf_sink *sink;

    open_mqtt(t, &mqtt, "allow_anonymous true");
    make_event(s, 0, 0, &event);
    sink = open_sink(s, &mqtt, "", "events");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_OK, delivery.status);
    hf_sink_close(sink);
    sink = open_sink(s, &mqtt, "", "events?require_subscribers=yes");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_NOT_FOUND, delivery.status);
    CHECK(!delivery.for_good);
    CHECK(strstr(delivery.error.ptr, "No matching subscribers") != NULL);
    hf_sink_close(sink);
    hf_scope_free(s);
    broker_stop(&mqtt.broker);
}

/* (3), sizes and topics. */
TEST(mqtt, what_is_refused_fails_by_itself)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[4];
    struct hf_delivery deliveries[4] = {{.event = &events[0]},
                                        {.event = &events[1]},
                                        {.event = &events[2]},
                                        {.event = &events[3]}};
    size_t size = 70000;
    char *large = hf_scope_alloc(s, size), more[500];
    struct mqtt mqtt;
    struct hf_sink *sink;
    FILE *file;

    snprintf(more, sizeof(more), "%s/acl", test_directory(t));
    file = fopen(more, "w");
    CHECK(file != NULL);
    fprintf(file, "topic write to/good\n");
    fclose(file);
    open_mqtt(
        t, &mqtt,
        hf_scope_format(s, "allow_anonymous true\nmax_packet_size 65536\nacl_file %s", more).ptr);
    memset(large, 'x', size);
    for (int i = 0; i < 4; i++) {
        make_event(s, i, 0, &events[i]);
        events[i].event.destination = HF_STR("good");
    }
    events[0].event.payload = hf_bytes_of(large, size);
    events[1].event.destination = HF_STR("bad");
    events[2].event.destination = HF_STR("#");
    sink = open_sink(s, &mqtt, "", "to/{destination}");
    CHECK_OK(hf_sink_send(s, sink, deliveries, 4));
    CHECK_INT(HF_LIMIT, deliveries[0].status);
    CHECK(deliveries[0].for_good);
    CHECK_INT(HF_DENIED, deliveries[1].status);
    CHECK(deliveries[1].for_good);
    CHECK_INT(HF_INVALID, deliveries[2].status);
    CHECK(deliveries[2].for_good);
    CHECK_INT(HF_OK, deliveries[3].status);
    hf_sink_close(sink);

    sink = open_sink(s, &mqtt, "", "to/bad"); /* a topic for all: nobody's fault */
    CHECK_STATUS(HF_DENIED, hf_sink_send(s, sink, &deliveries[1], 3));
    CHECK(deliveries[1].status != HF_OK && deliveries[3].status != HF_OK);
    hf_sink_close(sink);
    CHECK_STATUS(HF_INVALID, hf_sink_open(s, HF_STR("mqtt://127.0.0.1/to/#"), &sink));
    hf_scope_free(s);
    broker_stop(&mqtt.broker);
}

TEST(mqtt, who_may_not_in_is_told_so)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct mqtt mqtt;
    struct hf_sink *sink;
    char file[300];
    pid_t pid;
    int ended;

    snprintf(file, sizeof(file), "%s/passwords", test_directory(t));
    pid = fork();
    if (pid == 0) {
        execlp("mosquitto_passwd", "mosquitto_passwd", "-b", "-c", file, "ann", "secret",
               (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &ended, 0) == pid && ended == 0);
    open_mqtt(t, &mqtt, hf_scope_format(s, "allow_anonymous false\npassword_file %s", file).ptr);
    make_event(s, 0, 0, &event);
    sink = open_sink(s, &mqtt, "ann:wrong@", "events");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_DENIED, status);
    CHECK(delivery.status != HF_OK);
    hf_sink_close(sink);
    sink = open_sink(s, &mqtt, "ann:secret@", "events?client_id=relay-1");
    CHECK_INT(1, hf_sink_ops(sink)->workers);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_OK, delivery.status);
    hf_sink_close(sink);
    hf_scope_free(s);
    broker_stop(&mqtt.broker);
}

TEST(mqtt, who_it_is_is_looked_at)
{
    struct hf_scope *s = real_scope(0);
    const char *dir = test_directory(t);
    struct mqtt mqtt;

    make_certificate(dir, "server");
    open_mqtt(t, &mqtt,
              hf_scope_format(s,
                              "allow_anonymous true\ncertfile %s/server.pem\nkeyfile %s/server.key",
                              dir, dir)
                  .ptr);
    check_tls(t, "mqtt://", mqtt.broker.port, "events?", dir);
    broker_stop(&mqtt.broker);
    hf_scope_free(s);
}

TEST(mqtt, threads_have_connections_of_their_own)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct listener listener;
    struct mqtt mqtt;
    struct hf_sink *sink;

    open_mqtt(t, &mqtt, "allow_anonymous true");
    sink = open_sink(s, &mqtt, "", "events");
    ledger = (struct ledger){.t = t, .events = 50};
    listener_start(&listener, &ledger, mqtt.broker.port);
    ledger_send_threads(&ledger, sink, 50);
    listener_end(&listener, 50 * KEYS);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
    broker_stop(&mqtt.broker);
}

struct mqtt_storm {
    struct storm storm;
    struct listener listener;
    struct ledger *ledger;
};

static void listen_again(void *user)
{
    struct mqtt_storm *storm = user;

    if (storm->storm.rounds > 0) {
        killer_join(&storm->storm.killer);
        listener_end(&storm->listener, 0);
        broker_stop(storm->storm.broker);
        broker_start(storm->storm.broker);
        listener_start(&storm->listener, storm->ledger, storm->storm.broker->port);
        if (--storm->storm.rounds > 0)
            killer_start(&storm->storm.killer, storm->storm.broker, storm->storm.us);
    }
}

/* Killed in the middle, again and again: what was acked was handed to those who listened. */
TEST(mqtt, nothing_acked_is_lost_when_it_is_killed)
{
    static struct ledger ledger;
    static struct mqtt_storm storm;
    struct hf_scope *s = real_scope(0);
    struct mqtt mqtt;
    struct hf_sink *sink;

    open_mqtt(t, &mqtt, "allow_anonymous true");
    sink = open_sink(s, &mqtt, "", "events?require_subscribers=yes&timeout_ms=5000");
    ledger = (struct ledger){.t = t, .events = LEDGER_EVENTS};
    storm = (struct mqtt_storm){.ledger = &ledger};
    listener_start(&storm.listener, &ledger, mqtt.broker.port);
    storm_start(&storm.storm, &mqtt.broker, 4, 15000);
    ledger_send(&ledger, sink, LEDGER_EVENTS, 1, listen_again, &storm);
    CHECK(ledger.failures > 0);
    if (storm.storm.rounds > 0)
        killer_join(&storm.storm.killer);
    broker_stop(&mqtt.broker); /* what was sent to who listens still arrives */
    listener_end(&storm.listener, 0);
    ledger_check(&ledger, false);
    hf_sink_close(sink);
    hf_scope_free(s);
}
