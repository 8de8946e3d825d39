/* test/sinks/brokers/nats_test.c: NATS JetStream; (n) is an invariant of sinks/sink_nats.c. */
#include "kit.h"

#include <nats/nats.h>
#include <stdio.h>
#include <string.h>

struct nats {
    struct broker broker;
    const char *argv[4];
    char config[300], url[100];
    natsConnection *connection;
    jsCtx *js;
};

static void disconnect(struct nats *nats)
{
    jsCtx_Destroy(nats->js);
    natsConnection_Destroy(nats->connection);
    nats->js = NULL;
    nats->connection = NULL;
}

static void connect_to(struct nats *nats)
{
    char url[100];

    snprintf(url, sizeof(url), "nats://ann:secret@127.0.0.1:%d", nats->broker.port);
    disconnect(nats);
    CHECK_INT(NATS_OK, natsConnection_ConnectTo(&nats->connection, url));
    CHECK_INT(NATS_OK, natsConnection_JetStream(&nats->js, nats->connection, NULL));
}

static void write_config(const struct nats *nats, const char *more)
{
    FILE *file = fopen(nats->config, "w");

    CHECK(file != NULL);
    fprintf(file,
            "listen: \"127.0.0.1:%d\"\njetstream { store_dir: \"%s/js\" }\n"
            "authorization { user: ann, password: secret }\n%s\n",
            nats->broker.port, nats->broker.dir, more);
    fclose(file);
}

static void open_nats(struct test *t, struct nats *nats, const char *more)
{
    const char *argv[] = {NATS_SERVER, "-c", nats->config, NULL};

    *nats = (struct nats){.broker = {.t = t, .port = free_port(), .ready_ms = 20000}};
    nats->broker.dir = test_directory(t);
    snprintf(nats->config, sizeof(nats->config), "%s/nats.conf", nats->broker.dir);
    snprintf(nats->url, sizeof(nats->url), "nats://ann:secret@127.0.0.1:%d", nats->broker.port);
    write_config(nats, more);
    memcpy(nats->argv, argv, sizeof(argv));
    nats->broker.argv = nats->argv;
    broker_start(&nats->broker);
    connect_to(nats);
}

static void close_nats(struct nats *nats)
{
    disconnect(nats);
    broker_stop(&nats->broker);
}

static void add_stream(struct nats *nats, const char *name, const char *subject, int max_msgs,
                       int max_size)
{
    jsStreamConfig config;
    jsErrCode error;

    jsStreamConfig_Init(&config);
    config.Name = name;
    config.Subjects = &subject;
    config.SubjectsLen = 1;
    config.Storage = js_FileStorage;
    config.Discard = js_DiscardNew;
    config.MaxMsgs = max_msgs;
    config.MaxMsgSize = max_size;
    CHECK_INT(NATS_OK, js_AddStream(NULL, nats->js, &config, NULL, &error));
}

static uint64_t last_seq(struct nats *nats, const char *stream)
{
    jsStreamInfo *info;
    uint64_t last;

    CHECK_INT(NATS_OK, js_GetStreamInfo(&info, nats->js, stream, NULL, NULL));
    last = info->State.LastSeq;
    CHECK_INT(last, info->State.Msgs);
    jsStreamInfo_Destroy(info);
    return last;
}

static natsMsg *get(struct nats *nats, const char *stream, uint64_t seq)
{
    natsMsg *message;

    CHECK_INT(NATS_OK, js_GetMsg(&message, nats->js, stream, seq, NULL, NULL));
    return message;
}

static struct hf_str header(natsMsg *message, const char *name)
{
    const char *value = NULL;

    (void)natsMsgHeader_Get(message, name, &value);
    return hf_str_from(value);
}

static void see_all(struct nats *nats, struct ledger *ledger)
{
    uint64_t last = last_seq(nats, "EVENTS");

    for (uint64_t seq = 1; seq <= last; seq++) {
        natsMsg *message = get(nats, "EVENTS", seq);

        ledger_see(ledger, header(message, "Nats-Msg-Id"),
                   hf_bytes_of(natsMsg_GetData(message), (size_t)natsMsg_GetDataLength(message)));
        natsMsg_Destroy(message);
    }
}

static struct hf_sink *open_sink(struct hf_scope *s, const struct nats *nats, const char *rest)
{
    struct hf_sink *sink;
    struct hf_str url = hf_scope_format(s, "%s/%s", nats->url, rest);

    CHECK_OK(hf_sink_open(s, url, &sink));
    return sink;
}

/* (1) (2): headers, bytes, order; and what comes again is not stored again. */
TEST(nats, events_are_messages_of_a_stream_once)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(20000);
    struct nats nats;
    struct hf_sink *sink;
    natsMsg *message;

    open_nats(t, &nats, "");
    add_stream(&nats, "EVENTS", "events.>", -1, -1);
    sink = open_sink(s, &nats, "events.{type}");
    CHECK_OK(hf_sink_probe(s, sink));
    ledger = (struct ledger){.t = t};
    ledger_send(&ledger, sink, 60, 20, NULL, NULL);
    memset(ledger.sent, 0, sizeof(ledger.sent));
    ledger_send(&ledger, sink, 60, 30, NULL, NULL); /* all of it again */
    see_all(&nats, &ledger);
    ledger_check(&ledger, true);

    message = get(&nats, "EVENTS", 1);
    CHECK(strcmp("events.order.placed", natsMsg_GetSubject(message)) == 0);
    CHECK_STR("1.0", header(message, "ce-specversion"));
    CHECK_STR("0-0", header(message, "ce-id"));
    CHECK_STR("order.placed", header(message, "ce-type"));
    CHECK_STR("key%200", header(message, "ce-partitionkey"));
    CHECK_STR("caf%C3%A9%20%22x%22%20100%25", header(message, "ce-tenant"));
    CHECK_STR("eu%20west", header(message, "ce-region"));
    CHECK_STR("application/octet-stream", header(message, "content-type"));
    natsMsg_Destroy(message);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_nats(&nats);
}

/* (4) */
TEST(nats, a_stream_that_is_missing_is_named)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[3];
    struct hf_delivery deliveries[3] = {{.event = &events[0]},
                                        {.event = &events[1]},
                                        {.event = &events[2]}};
    struct nats nats;
    struct hf_sink *sink;

    open_nats(t, &nats, "");
    add_stream(&nats, "GOOD", "to.good", -1, -1);
    for (int i = 0; i < 3; i++) {
        make_event(s, i, 0, &events[i]);
        events[i].event.destination = i == 1 ? HF_STR("bad") : HF_STR("good");
    }
    sink = open_sink(s, &nats, "to.bad");
    CHECK_STATUS(HF_NOT_FOUND, hf_sink_send(s, sink, deliveries, 3));
    CHECK(strstr(hf_scope_error_text(s), "to.bad") != NULL);
    CHECK(deliveries[0].status != HF_OK);
    hf_sink_close(sink);

    sink = open_sink(s, &nats, "to.{destination}");
    CHECK_OK(hf_sink_send(s, sink, deliveries, 3));
    CHECK_INT(HF_OK, deliveries[0].status);
    CHECK_INT(HF_NOT_FOUND, deliveries[1].status);
    CHECK(!deliveries[1].for_good);
    CHECK(strstr(deliveries[1].error.ptr, "to.bad") != NULL);
    CHECK_INT(HF_OK, deliveries[2].status);
    CHECK_INT(2, last_seq(&nats, "GOOD"));

    events[1].event.destination = HF_STR("x y"); /* would be another line of the protocol */
    CHECK_OK(hf_sink_send(s, sink, &deliveries[1], 1));
    CHECK_INT(HF_INVALID, deliveries[1].status);
    CHECK(deliveries[1].for_good);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_nats(&nats);
}

/* What the server does not take, what the stream does not take, and a stream that is full. */
TEST(nats, what_is_too_large_fails_and_what_is_full_waits)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[3];
    struct hf_delivery deliveries[3] = {{.event = &events[0]},
                                        {.event = &events[1]},
                                        {.event = &events[2]}};
    size_t size = 70000;
    char *large = hf_scope_alloc(s, size);
    struct nats nats;
    struct hf_sink *sink;

    open_nats(t, &nats, "max_payload: 65536");
    add_stream(&nats, "EVENTS", "events", 3, 30000);
    sink = open_sink(s, &nats, "events");
    memset(large, 'x', size);
    for (int i = 0; i < 3; i++)
        make_event(s, i, 0, &events[i]);
    events[0].event.payload = hf_bytes_of(large, size);
    events[1].event.payload = hf_bytes_of(large, 40000);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 3));
    CHECK_INT(HF_LIMIT, deliveries[0].status);
    CHECK(deliveries[0].for_good);
    CHECK_INT(HF_INVALID, deliveries[1].status);
    CHECK(deliveries[1].for_good);
    CHECK_INT(HF_OK, deliveries[2].status);

    for (int i = 0; i < 3; i++)
        make_event(s, i, 1, &events[i]);
    CHECK_STATUS(HF_NO_SPACE, hf_sink_send(s, sink, deliveries, 3));
    CHECK_INT(HF_OK, deliveries[0].status); /* there was room for two */
    CHECK_INT(HF_OK, deliveries[1].status);
    CHECK(deliveries[2].status != HF_OK && !deliveries[2].for_good);
    CHECK_INT(3, last_seq(&nats, "EVENTS"));
    hf_sink_close(sink);
    hf_scope_free(s);
    close_nats(&nats);
}

TEST(nats, who_may_not_in_is_told_so)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct nats nats;
    struct hf_sink *sink;
    char url[100];

    open_nats(t, &nats, "");
    make_event(s, 0, 0, &event);
    snprintf(url, sizeof(url), "nats://ann:wrong@127.0.0.1:%d/events", nats.broker.port);
    CHECK_OK(hf_sink_open(s, hf_str_from(url), &sink));
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_DENIED, status);
    CHECK(delivery.status != HF_OK);
    CHECK(strstr(hf_scope_error_text(s), "wrong") == NULL);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_nats(&nats);
}

TEST(nats, who_it_is_is_looked_at)
{
    struct hf_scope *s = real_scope(0);
    const char *dir = test_directory(t);
    char url[] = "nats://ann:secret@";
    struct nats nats;

    make_certificate(dir, "server");
    open_nats(t, &nats, "");
    add_stream(&nats, "EVENTS", "events", -1, -1);
    disconnect(&nats);
    broker_stop(&nats.broker);
    write_config(&nats, hf_scope_format(
                            s, "tls { cert_file: \"%s/server.pem\", key_file: \"%s/server.key\" }",
                            dir, dir)
                            .ptr);
    broker_start(&nats.broker);
    check_tls(t, url, nats.broker.port, "events?", dir);
    broker_stop(&nats.broker);
    hf_scope_free(s);
}

TEST(nats, threads_have_connections_of_their_own)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct nats nats;
    struct hf_sink *sink;

    open_nats(t, &nats, "");
    add_stream(&nats, "EVENTS", "events", -1, -1);
    sink = open_sink(s, &nats, "events");
    ledger = (struct ledger){.t = t};
    ledger_send_threads(&ledger, sink, 50);
    see_all(&nats, &ledger);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_nats(&nats);
}

/* Killed in the middle, again and again: what was acked is there, in order, and once. */
TEST(nats, nothing_acked_is_lost_when_it_is_killed)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct nats nats;
    struct storm storm;
    struct hf_sink *sink;

    open_nats(t, &nats, "");
    add_stream(&nats, "EVENTS", "events", -1, -1);
    sink = open_sink(s, &nats, "events?timeout_ms=5000");
    ledger = (struct ledger){.t = t};
    storm_start(&storm, &nats.broker, 4, 15000);
    ledger_send(&ledger, sink, LEDGER_EVENTS, 1, storm_again, &storm);
    CHECK(ledger.failures > 0);
    storm_end(&storm);
    connect_to(&nats);
    see_all(&nats, &ledger);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_nats(&nats);
}
