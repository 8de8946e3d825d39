/*
 * test/sinks/brokers/rabbitmq_test.c: RabbitMQ; (n) is an invariant of sinks/sink_rabbitmq.c.
 *
 * It takes seconds to start, so tests share one, and are one test for cmocka; what takes longest is
 * another one, which is not run every day. Erlang's port
 * mapper is started by us as well, on a port of its own: otherwise RabbitMQ would start one that
 * stays.
 */
#include "kit.h"

#include <amqp.h>
#include <amqp_tcp_socket.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

struct rabbit {
    struct broker broker, mapper;
    const char *argv[2], *mapper_argv[8], *env[16];
    char texts[16][400], mapper_port[16];
    int tls_port;
    amqp_connection_state_t connection;
};

/* ---- the server ----------------------------------------------------------------------------- */

static void set(struct rabbit *rabbit, size_t at, const char *name, const char *format, ...)
{
    char value[350];
    va_list args;

    va_start(args, format);
    vsnprintf(value, sizeof(value), format, args);
    va_end(args);
    snprintf(rabbit->texts[at], sizeof(rabbit->texts[at]), "%s=%s", name, value);
    rabbit->env[at] = rabbit->texts[at];
}

static void write_config(const struct rabbit *rabbit)
{
    char path[300];
    FILE *file;

    snprintf(path, sizeof(path), "%s/rabbitmq.conf", rabbit->broker.dir);
    file = fopen(path, "w");
    CHECK(file != NULL);
    fprintf(file,
            "listeners.tcp.1 = 127.0.0.1:%d\nmax_message_size = 100000\n"
            "vm_memory_high_watermark.relative = 0.6\ndisk_free_limit.absolute = 1MB\n"
            "listeners.ssl.1 = 127.0.0.1:%d\nssl_options.cacertfile = %s/server.pem\n"
            "ssl_options.certfile = %s/server.pem\nssl_options.keyfile = %s/server.key\n"
            "ssl_options.verify = verify_none\n",
            rabbit->broker.port, rabbit->tls_port, rabbit->broker.dir, rabbit->broker.dir,
            rabbit->broker.dir);
    fclose(file);
}

static void open_rabbit(struct test *t, struct rabbit *rabbit)
{
    const char *dir = test_directory(t);

    *rabbit = (struct rabbit){.broker = {.t = t, .dir = dir, .port = free_port()}};
    rabbit->broker.ready_ms = 90000;
    rabbit->mapper = (struct broker){.t = t, .dir = dir, .port = free_port(), .ready_ms = 10000};
    snprintf(rabbit->mapper_port, sizeof(rabbit->mapper_port), "%d", rabbit->mapper.port);
    rabbit->mapper_argv[0] = EPMD;
    rabbit->mapper_argv[1] = "-port";
    rabbit->mapper_argv[2] = rabbit->mapper_port;
    rabbit->mapper_argv[3] = "-address";
    rabbit->mapper_argv[4] = "127.0.0.1";
    rabbit->mapper_argv[5] = "-relaxed_command_check";
    rabbit->mapper.argv = rabbit->mapper_argv;
    broker_start(&rabbit->mapper);

    rabbit->tls_port = free_port();
    make_certificate(dir, "server");
    write_config(rabbit);
    set(rabbit, 0, "HOME", "%s", dir);
    set(rabbit, 1, "ERL_EPMD_PORT", "%d", rabbit->mapper.port);
    set(rabbit, 2, "ERL_EPMD_ADDRESS", "127.0.0.1");
    set(rabbit, 3, "RABBITMQ_NODENAME", "holdfast%d@localhost", rabbit->broker.port);
    set(rabbit, 4, "RABBITMQ_DIST_PORT", "%d", free_port());
    set(rabbit, 5, "RABBITMQ_MNESIA_BASE", "%s/mnesia", dir);
    set(rabbit, 6, "RABBITMQ_LOG_BASE", "%s/logs", dir);
    set(rabbit, 7, "RABBITMQ_CONFIG_FILE", "%s/rabbitmq.conf", dir);
    set(rabbit, 8, "RABBITMQ_CONF_ENV_FILE", "/dev/null");
    set(rabbit, 9, "RABBITMQ_ENABLED_PLUGINS_FILE", "%s/plugins", dir);
    set(rabbit, 10, "RABBITMQ_PID_FILE", "%s/pid", dir);
    rabbit->argv[0] = RABBITMQ_SERVER;
    rabbit->broker.argv = rabbit->argv;
    rabbit->broker.env = rabbit->env;
    broker_start(&rabbit->broker);
}

static void close_rabbit(struct rabbit *rabbit)
{
    amqp_destroy_connection(rabbit->connection);
    broker_stop(&rabbit->broker);
    broker_stop(&rabbit->mapper);
}

/* rabbitmqctl eval: what takes seconds otherwise. */
static void evaluate(const struct rabbit *rabbit, const char *code)
{
    pid_t pid = fork();
    int ended;

    if (pid == 0) {
        for (const char *const *env = rabbit->env; *env; env++)
            putenv((char *)(uintptr_t)*env);
        if (!freopen("/dev/null", "w", stdout))
            _exit(126);
        execl(RABBITMQCTL, RABBITMQCTL, "-q", "eval", code, (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &ended, 0) == pid);
    CHECK_INT(0, ended);
}

/* ---- who listens ---------------------------------------------------------------------------- */

static void check_reply(const struct rabbit *rabbit)
{
    amqp_rpc_reply_t reply = amqp_get_rpc_reply(rabbit->connection);

    CHECK_INT(AMQP_RESPONSE_NORMAL, reply.reply_type);
}

static void connect_to(struct rabbit *rabbit)
{
    amqp_socket_t *socket;

    if (rabbit->connection)
        amqp_destroy_connection(rabbit->connection);
    for (int i = 0;; i++) { /* it listens before it lets anybody in */
        amqp_rpc_reply_t reply;

        rabbit->connection = amqp_new_connection();
        socket = amqp_tcp_socket_new(rabbit->connection);
        if (amqp_socket_open(socket, "127.0.0.1", rabbit->broker.port) == AMQP_STATUS_OK) {
            reply = amqp_login(rabbit->connection, "/", 0, 131072, 0, AMQP_SASL_METHOD_PLAIN,
                               "guest", "guest");
            if (reply.reply_type == AMQP_RESPONSE_NORMAL)
                break;
        }
        CHECK(i < 600);
        amqp_destroy_connection(rabbit->connection);
        usleep(50000);
    }
    amqp_channel_open(rabbit->connection, 1);
    check_reply(rabbit);
}

static void declare(struct rabbit *rabbit)
{
    amqp_table_entry_t entries[] = {
        {.key = amqp_cstring_bytes("x-max-length"),
         .value = {.kind = AMQP_FIELD_KIND_I32, .value.i32 = 1}},
        {.key = amqp_cstring_bytes("x-overflow"),
         .value = {.kind = AMQP_FIELD_KIND_UTF8,
                   .value.bytes = amqp_cstring_bytes("reject-publish")}},
    };
    amqp_table_t full = {.num_entries = 2, .entries = entries};

    amqp_exchange_declare(rabbit->connection, 1, amqp_cstring_bytes("events"),
                          amqp_cstring_bytes("topic"), 0, 1, 0, 0, amqp_empty_table);
    check_reply(rabbit);
    amqp_queue_declare(rabbit->connection, 1, amqp_cstring_bytes("all"), 0, 1, 0, 0,
                       amqp_empty_table);
    check_reply(rabbit);
    amqp_queue_bind(rabbit->connection, 1, amqp_cstring_bytes("all"), amqp_cstring_bytes("events"),
                    amqp_cstring_bytes("order.*"), amqp_empty_table);
    check_reply(rabbit);
    amqp_queue_declare(rabbit->connection, 1, amqp_cstring_bytes("full"), 0, 1, 0, 0, full);
    check_reply(rabbit);
}

static struct hf_str text_of(amqp_bytes_t bytes)
{
    return hf_str_of(bytes.bytes, bytes.len);
}

static const amqp_field_value_t *header(const amqp_message_t *message, const char *name)
{
    const amqp_table_t *table = &message->properties.headers;

    for (int i = 0; i < table->num_entries; i++)
        if (hf_str_equal(text_of(table->entries[i].key), hf_str_from(name)))
            return &table->entries[i].value;
    return NULL;
}

static struct hf_str header_text(const amqp_message_t *message, const char *name)
{
    const amqp_field_value_t *value = header(message, name);

    CHECK(value && value->kind == AMQP_FIELD_KIND_UTF8);
    return text_of(value->value.bytes);
}

static void check_message(const amqp_message_t *message)
{
    const amqp_basic_properties_t *p = &message->properties;

    CHECK_INT(AMQP_DELIVERY_PERSISTENT, p->delivery_mode);
    CHECK_STR("0-0", text_of(p->message_id));
    CHECK_STR("order.placed", text_of(p->type));
    CHECK_STR("application/octet-stream", text_of(p->content_type));
    CHECK_INT(1767225600, p->timestamp);
    CHECK_STR("1.0", header_text(message, "cloudEvents_specversion"));
    CHECK_STR("0-0", header_text(message, "cloudEvents_id"));
    CHECK_STR("key 0", header_text(message, "cloudEvents_partitionkey"));
    CHECK_STR("caf\xc3\xa9 \"x\" 100%", header_text(message, "cloudEvents_tenant"));
    CHECK_STR("eu west", header_text(message, "cloudEvents_region"));
    CHECK(header(message, "cloudEvents_datacontenttype") == NULL);
}

/* Take all that is in the queue; how many there were. */
static int take_all(struct rabbit *rabbit, const char *queue, struct ledger *ledger)
{
    for (int taken = 0;; taken++) {
        amqp_rpc_reply_t reply;
        amqp_message_t message;

        amqp_maybe_release_buffers(rabbit->connection);
        reply = amqp_basic_get(rabbit->connection, 1, amqp_cstring_bytes(queue), 1);
        CHECK_INT(AMQP_RESPONSE_NORMAL, reply.reply_type);
        if (reply.reply.id == AMQP_BASIC_GET_EMPTY_METHOD)
            return taken;
        reply = amqp_read_message(rabbit->connection, 1, &message, 0);
        CHECK_INT(AMQP_RESPONSE_NORMAL, reply.reply_type);
        if (ledger) {
            if (hf_str_equal(text_of(message.properties.message_id), HF_STR("0-0")))
                check_message(&message);
            ledger_see(ledger, header_text(&message, "cloudEvents_id"),
                       hf_bytes_of(message.body.bytes, message.body.len));
        }
        amqp_destroy_message(&message);
    }
}

/* ---- tests ---------------------------------------------------------------------------------- */

static struct hf_sink *open_sink(struct hf_scope *s, const struct rabbit *rabbit, const char *user,
                                 const char *rest)
{
    struct hf_sink *sink;
    struct hf_str url =
        hf_scope_format(s, "rabbitmq://%s127.0.0.1:%d/%s", user, rabbit->broker.port, rest);

    CHECK_OK(hf_sink_open(s, url, &sink));
    return sink;
}

/* (1) (2): properties, bytes, order, and each event once. */
static void test_messages(struct test *t, struct rabbit *rabbit)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(60000);
    struct hf_sink *sink = open_sink(s, rabbit, "", "%2F/events");

    CHECK_OK(hf_sink_probe(s, sink));
    ledger = (struct ledger){.t = t};
    ledger_send(&ledger, sink, 100, 25, NULL, NULL);
    take_all(rabbit, "all", &ledger);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
}

/* (1) (3): what comes back, what is refused, what is too large; and the others of the batch. */
static void test_refused(struct rabbit *rabbit)
{
    struct hf_scope *s = real_scope(60000);
    struct hf_outbox_event events[4];
    struct hf_delivery deliveries[4] = {{.event = &events[0]},
                                        {.event = &events[1]},
                                        {.event = &events[2]},
                                        {.event = &events[3]}};
    size_t size = 100001;
    char *large = hf_scope_alloc(s, size);
    struct hf_sink *sink;

    memset(large, 'x', size);
    for (int i = 0; i < 4; i++)
        make_event(s, i, 0, &events[i]);
    events[1].event.type = HF_STR("nobody.cares");
    events[2].event.payload = hf_bytes_of(large, size);
    sink = open_sink(s, rabbit, "guest:guest@", "%2F/events");
    for (int i = 0; i < 2; i++) { /* the second time the limit is known */
        CHECK_OK(hf_sink_send(s, sink, deliveries, 4));
        CHECK_INT(HF_OK, deliveries[0].status);
        CHECK_INT(HF_NOT_FOUND, deliveries[1].status);
        CHECK(deliveries[1].for_good);
        CHECK(strstr(deliveries[1].error.ptr, "nobody.cares") != NULL);
        CHECK_INT(HF_LIMIT, deliveries[2].status);
        CHECK(deliveries[2].for_good);
        CHECK_INT(HF_OK, deliveries[3].status);
    }
    hf_sink_close(sink);
    CHECK(take_all(rabbit, "all", NULL) >= 4);

    sink = open_sink(s, rabbit, "", "%2F/?routing_key=full");
    CHECK_OK(hf_sink_send(s, sink, deliveries, 1));
    CHECK_INT(HF_OK, deliveries[0].status);
    for (int i = 0; i < 50 && deliveries[0].status == HF_OK; i++)
        CHECK_OK(hf_sink_send(s, sink, deliveries, 1));
    CHECK_INT(HF_IO, deliveries[0].status); /* basic.nack */
    CHECK(!deliveries[0].for_good);
    hf_sink_close(sink);
    hf_scope_free(s);
}

/* What is wrong with the sink is no event's fault. */
static void test_whole(struct rabbit *rabbit)
{
    struct hf_scope *s = real_scope(60000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct hf_sink *sink;

    make_event(s, 0, 0, &event);
    sink = open_sink(s, rabbit, "", "%2F/nowhere");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_NOT_FOUND, status);
    CHECK(strstr(hf_scope_error_text(s), "nowhere") != NULL);
    CHECK(delivery.status != HF_OK);
    hf_sink_close(sink);
    sink = open_sink(s, rabbit, "guest:wrong@", "%2F/events");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_DENIED, status);
    CHECK(delivery.status != HF_OK);
    CHECK(strstr(hf_scope_error_text(s), "wrong") == NULL);
    hf_sink_close(sink);
    sink = open_sink(s, rabbit, "", "nosuch/events");
    CHECK(hf_sink_probe(s, sink) != HF_OK);
    hf_sink_close(sink);
    CHECK_STATUS(HF_INVALID, hf_sink_open(s, HF_STR("rabbitmq://h/events"), &sink));
    CHECK_STATUS(HF_INVALID, hf_sink_open(s, HF_STR("rabbitmq://h/%2F/"), &sink));
    hf_scope_free(s);
}

/* (3): an alarm makes RabbitMQ stop to read from those who publish. */
static void test_blocked(struct rabbit *rabbit)
{
    struct hf_scope *s = real_scope(60000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct hf_sink *sink = open_sink(s, rabbit, "", "%2F/events?timeout_ms=10000");

    make_event(s, 0, 0, &event);
    evaluate(rabbit, "rabbit_alarm:set_alarm({{resource_limit, disk, node()}, []}).");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_THROTTLED, status);
    CHECK(delivery.status != HF_OK);
    evaluate(rabbit, "rabbit_alarm:clear_alarm({resource_limit, disk, node()}).");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_OK, delivery.status);
    hf_sink_close(sink);
    hf_scope_free(s);
    CHECK(take_all(rabbit, "all", NULL) >= 1);
}

static void test_threads(struct test *t, struct rabbit *rabbit)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct hf_sink *sink = open_sink(s, rabbit, "", "%2F/events");

    ledger = (struct ledger){.t = t};
    ledger_send_threads(&ledger, sink, 50);
    take_all(rabbit, "all", &ledger);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
}

/* Killed in the middle: what was acked is there, in order. */
static void test_killed(struct test *t, struct rabbit *rabbit)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct hf_sink *sink = open_sink(s, rabbit, "", "%2F/events?timeout_ms=60000");
    struct storm storm;

    ledger = (struct ledger){.t = t};
    storm_start(&storm, &rabbit->broker, 1, 100000);
    ledger_send(&ledger, sink, LEDGER_EVENTS, 1, storm_again, &storm);
    CHECK(ledger.failures > 0);
    storm_end(&storm);
    connect_to(rabbit);
    take_all(rabbit, "all", &ledger);
    ledger_check(&ledger, false);
    hf_sink_close(sink);
    hf_scope_free(s);
}

/* Body, content type and headers that the publisher of outbox-event-bus writes. */
static void test_bus_message(struct rabbit *rabbit)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    amqp_rpc_reply_t reply;
    amqp_message_t message;
    enum hf_status status;
    struct hf_sink *sink;

    CHECK_OK(hf_sink_open(s,
                          hf_scope_format(s,
                                          "rabbitmq://guest:guest@127.0.0.1:%d/%%2F/events?"
                                          "form=outbox-event-bus",
                                          rabbit->broker.port),
                          &sink));
    make_event(s, 0, 0, &event);
    event.event.payload = hf_bytes_of("{", 1);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_INVALID, delivery.status); /* no JSON */
    CHECK(delivery.for_good);
    event.event.content_type = HF_STR("application/json; charset=utf-8");
    event.event.payload = hf_bytes_of("{\"n\": 1}", 8);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, delivery.status);
    amqp_maybe_release_buffers(rabbit->connection);
    reply = amqp_basic_get(rabbit->connection, 1, amqp_cstring_bytes("all"), 1);
    CHECK_INT(AMQP_RESPONSE_NORMAL, reply.reply_type);
    CHECK(reply.reply.id != AMQP_BASIC_GET_EMPTY_METHOD);
    CHECK_INT(AMQP_RESPONSE_NORMAL,
              amqp_read_message(rabbit->connection, 1, &message, 0).reply_type);
    CHECK_STR("{\"id\":\"0-0\",\"type\":\"order.placed\",\"payload\":{\"n\":1},"
              "\"occurredAt\":\"2026-01-01T00:00:00.000Z\","
              "\"metadata\":{\"region\":\"eu west\",\"correlationId\":\"c-1\"}}",
              text_of(message.body));
    CHECK_STR("application/json", text_of(message.properties.content_type));
    CHECK_INT(2, message.properties.headers.num_entries);
    CHECK_STR("order.placed", header_text(&message, "eventType"));
    CHECK_STR("0-0", header_text(&message, "eventId"));
    amqp_destroy_message(&message);
    CHECK_INT(0, take_all(rabbit, "all", NULL));
    hf_sink_close(sink);
    hf_scope_free(s);
}

/* (1) (3) in that form: a message that comes back, and one that only its form makes too large. */
static void test_bus_message_refused(struct rabbit *rabbit)
{
    struct hf_scope *s = real_scope(60000);
    struct hf_outbox_event events[3];
    struct hf_delivery deliveries[3] = {{.event = &events[0]},
                                        {.event = &events[1]},
                                        {.event = &events[2]}};
    struct hf_sink *sink = open_sink(s, rabbit, "guest:guest@", "%2F/events?form=outbox-event-bus");
    size_t size = 99990; /* RabbitMQ was told to take 100000, and the object has more around it */
    char *large = hf_scope_alloc(s, size);

    memset(large, 'x', size);
    large[0] = large[size - 1] = '"';
    for (int i = 0; i < 3; i++) {
        make_event(s, i, 0, &events[i]);
        events[i].event.content_type = HF_STR("application/json");
        events[i].event.payload = hf_bytes_of("1", 1);
    }
    events[0].event.type = HF_STR("nobody.cares");
    events[1].event.payload = hf_bytes_of(large, size);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 3));
    CHECK_INT(HF_NOT_FOUND, deliveries[0].status);
    CHECK(deliveries[0].for_good);
    CHECK(strstr(deliveries[0].error.ptr, "nobody.cares") != NULL);
    CHECK_INT(HF_LIMIT, deliveries[1].status);
    CHECK(deliveries[1].for_good);
    CHECK_INT(HF_OK, deliveries[2].status);
    hf_sink_close(sink);
    CHECK(take_all(rabbit, "all", NULL) >= 1);
    hf_scope_free(s);
}

TEST(rabbitmq, confirms_returns_and_refusals)
{
    struct rabbit rabbit;

    open_rabbit(t, &rabbit);
    connect_to(&rabbit);
    declare(&rabbit);
    test_messages(t, &rabbit);
    test_bus_message(&rabbit);
    test_bus_message_refused(&rabbit);
    test_refused(&rabbit);
    test_whole(&rabbit);
    check_tls(t, "rabbitmq://guest:guest@", rabbit.tls_port, "%2F/events?", rabbit.broker.dir);
    CHECK(take_all(&rabbit, "all", NULL) >= 2);
    test_threads(t, &rabbit);
    close_rabbit(&rabbit);
}

TEST(rabbitmq, blocks_and_kills)
{
    struct rabbit rabbit;

    open_rabbit(t, &rabbit);
    connect_to(&rabbit);
    declare(&rabbit);
    test_blocked(&rabbit);
    test_killed(t, &rabbit);
    close_rabbit(&rabbit);
}
