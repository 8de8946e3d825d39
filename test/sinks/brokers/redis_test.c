/* test/sinks/brokers/redis_test.c: Redis Streams; (n) is an invariant of sinks/sink_redis.c. */
#include "kit.h"

#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct redis {
    struct broker broker;
    const char *argv[20];
    char port[16], url[200];
    redisContext *context;
};

static void connect_to(struct redis *redis)
{
    if (redis->context)
        redisFree(redis->context);
    redis->context = redisConnect("127.0.0.1", redis->broker.port);
    CHECK(redis->context && !redis->context->err);
}

static redisReply *command(struct redis *redis, const char *format, ...)
{
    redisReply *reply;
    va_list args;

    va_start(args, format);
    reply = redisvCommand(redis->context, format, args);
    va_end(args);
    CHECK(reply != NULL);
    return reply;
}

static void do_command(struct redis *redis, const char *text)
{
    redisReply *reply = command(redis, text);

    CHECK(reply->type != REDIS_REPLY_ERROR);
    freeReplyObject(reply);
}

static long long count(struct redis *redis, const char *text)
{
    redisReply *reply = command(redis, text);
    long long number = reply->integer;

    CHECK_INT(REDIS_REPLY_INTEGER, reply->type);
    freeReplyObject(reply);
    return number;
}

/* A server that has on disk what it was told before it answers. With "everysec" it would answer
 * first while the disk is busy, and lose it when it is killed. */
static void open_redis(struct test *t, struct redis *redis, const char *option, const char *value)
{
    int port = free_port();
    const char *argv[] = {REDIS_SERVER, "--port",       redis->port, "--bind",
                          "127.0.0.1",  "--dir",        NULL,        "--save",
                          "",           "--appendonly", "yes",       "--appendfsync",
                          "always",     option,         value,       NULL};

    *redis = (struct redis){.broker = {.t = t, .port = port, .ready_ms = 20000}};
    redis->broker.dir = test_directory(t);
    snprintf(redis->port, sizeof(redis->port), "%d", port);
    snprintf(redis->url, sizeof(redis->url), "redis://127.0.0.1:%d/events", port);
    memcpy(redis->argv, argv, sizeof(argv));
    redis->argv[2] = redis->port;
    redis->argv[6] = redis->broker.dir;
    redis->broker.argv = redis->argv;
    broker_start(&redis->broker);
    connect_to(redis);
}

static void close_redis(struct redis *redis)
{
    redisFree(redis->context);
    broker_stop(&redis->broker);
}

static struct hf_sink *open_sink(struct hf_scope *s, const char *url)
{
    struct hf_sink *sink;

    CHECK_OK(hf_sink_open(s, hf_str_from(url), &sink));
    return sink;
}

static struct hf_str field(const redisReply *entry, const char *name)
{
    const redisReply *fields = entry->element[1];

    for (size_t i = 0; i + 1 < fields->elements; i += 2)
        if (strcmp(fields->element[i]->str, name) == 0)
            return hf_str_of(fields->element[i + 1]->str, fields->element[i + 1]->len);
    return hf_str_of(NULL, 0);
}

static void see_all(struct redis *redis, struct ledger *ledger)
{
    redisReply *reply = command(redis, "XRANGE events - +");

    CHECK_INT(REDIS_REPLY_ARRAY, reply->type);
    for (size_t i = 0; i < reply->elements; i++) {
        struct hf_str data = field(reply->element[i], "data");

        CHECK(data.ptr != NULL);
        ledger_see(ledger, field(reply->element[i], "id"), hf_bytes_of(data.ptr, data.len));
    }
    freeReplyObject(reply);
}

/* (1): fields, bytes, order, and each event once. */
TEST(redis, events_are_entries_of_a_stream)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(20000);
    struct redis redis;
    struct hf_sink *sink;
    redisReply *reply;

    open_redis(t, &redis, "--maxmemory", "0");
    sink = open_sink(s, redis.url);
    CHECK_STR("redis", hf_str_from(hf_sink_ops(sink)->name));
    CHECK_OK(hf_sink_probe(s, sink));
    ledger = (struct ledger){.t = t};
    ledger_send(&ledger, sink, 100, 1, NULL, NULL);
    see_all(&redis, &ledger);
    ledger_check(&ledger, true);

    reply = command(&redis, "XRANGE events - + COUNT 1");
    CHECK_STR("1.0", field(reply->element[0], "specversion"));
    CHECK_STR("order.placed", field(reply->element[0], "type"));
    CHECK_STR("/shop", field(reply->element[0], "source"));
    CHECK_STR("key 0", field(reply->element[0], "partitionkey"));
    CHECK_STR("application/octet-stream", field(reply->element[0], "datacontenttype"));
    CHECK_STR("caf\xc3\xa9 \"x\" 100%", field(reply->element[0], "tenant"));
    CHECK_STR("eu west", field(reply->element[0], "region"));
    freeReplyObject(reply);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

/* The fields that the publisher of outbox-event-bus writes, in its order. */
TEST(redis, entries_of_outbox_event_bus)
{
    static const char *const expected[] = {
        "eventId",    "0-0",
        "eventType",  "order.placed",
        "payload",    "{\"n\":1}",
        "occurredAt", "2026-01-01T00:00:00.000Z",
        "metadata",   "{\"region\":\"eu west\",\"correlationId\":\"c-1\"}"};
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct redis redis;
    struct hf_sink *sink;
    redisReply *reply, *fields;

    open_redis(t, &redis, "--maxmemory", "0");
    sink = open_sink(s, hf_scope_format(s, "%s?form=outbox-event-bus", redis.url).ptr);
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
    event.event.payload = (struct hf_bytes){0};
    event.event.headers = (struct hf_item){0};
    event.event.correlation = (struct hf_str){0};
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, delivery.status);

    reply = command(&redis, "XRANGE events - +");
    CHECK_INT(2, reply->elements);
    fields = reply->element[0]->element[1];
    CHECK_INT(sizeof(expected) / sizeof(expected[0]), fields->elements);
    for (size_t i = 0; i < fields->elements; i++)
        CHECK_STR(expected[i], hf_str_from(fields->element[i]->str));
    CHECK_STR("", field(reply->element[1], "payload"));
    CHECK_STR("{}", field(reply->element[1], "metadata"));
    freeReplyObject(reply);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

/* (2): one event that cannot be stored does not touch the others; a fixed stream is different. */
TEST(redis, errors_belong_to_one_event_or_to_all)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[3];
    struct hf_delivery deliveries[3] = {{.event = &events[0]},
                                        {.event = &events[1]},
                                        {.event = &events[2]}};
    struct redis redis;
    struct hf_sink *sink;
    char url[200];

    open_redis(t, &redis, "--maxmemory", "0");
    do_command(&redis, "SET to.bad text");
    for (int i = 0; i < 3; i++) {
        make_event(s, i, 0, &events[i]);
        events[i].event.destination = i == 1 ? HF_STR("bad") : HF_STR("good");
    }
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d/3/to.{destination}", redis.broker.port);
    sink = open_sink(s, url);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 3)); /* database 3 has no to.bad yet */
    for (int i = 0; i < 3; i++)
        CHECK_INT(HF_OK, deliveries[i].status);
    do_command(&redis, "SELECT 3");
    do_command(&redis, "DEL to.bad");
    do_command(&redis, "SET to.bad text");
    CHECK_OK(hf_sink_send(s, sink, deliveries, 3));
    CHECK_INT(HF_OK, deliveries[0].status);
    CHECK_INT(HF_INVALID, deliveries[1].status);
    CHECK(deliveries[1].for_good);
    CHECK(strstr(deliveries[1].error.ptr, "WRONGTYPE") != NULL);
    CHECK_INT(HF_OK, deliveries[2].status);
    CHECK_INT(4, count(&redis, "XLEN to.good"));
    hf_sink_close(sink);

    snprintf(url, sizeof(url), "redis://127.0.0.1:%d/3/to.bad", redis.broker.port);
    sink = open_sink(s, url);
    CHECK_STATUS(HF_INVALID, hf_sink_send(s, sink, deliveries, 3));
    CHECK(strstr(hf_scope_error_text(s), "to.bad") != NULL);
    for (int i = 0; i < 3; i++)
        CHECK(deliveries[i].status != HF_OK);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

/* (2): a server that is out of memory, or a replica, takes nothing from anybody. */
TEST(redis, the_state_of_the_server_is_nobodys_fault)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct redis redis;
    struct hf_sink *sink;

    open_redis(t, &redis, "--maxmemory-policy", "noeviction");
    sink = open_sink(s, redis.url);
    make_event(s, 0, 0, &event);
    do_command(&redis, "CONFIG SET maxmemory 1");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_NO_SPACE, status);
    CHECK(delivery.status != HF_OK && !delivery.for_good);
    CHECK(strstr(hf_scope_error_text(s), "OOM") != NULL);
    do_command(&redis, "CONFIG SET maxmemory 0");

    do_command(&redis, "REPLICAOF 127.0.0.1 1");
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_IO, status);
    CHECK(delivery.status != HF_OK);
    CHECK(strstr(hf_scope_error_text(s), "READONLY") != NULL);
    do_command(&redis, "REPLICAOF NO ONE");

    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_OK, delivery.status);
    CHECK_INT(1, count(&redis, "XLEN events"));
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

/* (4), limits, and the length of the stream. */
TEST(redis, what_is_too_large_fails_for_good)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event events[2];
    struct hf_delivery deliveries[2] = {{.event = &events[0]}, {.event = &events[1]}};
    size_t size = 1024 * 1024 + 1;
    char *large = hf_scope_alloc(s, size);
    struct redis redis;
    struct hf_sink *sink;
    char url[300];

    open_redis(t, &redis, "--proto-max-bulk-len", "1048576");
    snprintf(url, sizeof(url), "%s?maxlen=10&maxlen_exact=yes", redis.url);
    sink = open_sink(s, url);
    memset(large, 'x', size);
    make_event(s, 0, 0, &events[0]);
    make_event(s, 1, 0, &events[1]);
    events[0].event.payload = hf_bytes_of(large, size);
    CHECK_OK(hf_sink_send(s, sink, deliveries, 2));
    CHECK_INT(HF_LIMIT, deliveries[0].status);
    CHECK(deliveries[0].for_good);
    CHECK_INT(HF_OK, deliveries[1].status);
    events[0].event.payload.len = size - 1;
    for (int i = 0; i < 20; i++) {
        CHECK_OK(hf_sink_send(s, sink, deliveries, 2));
        CHECK_INT(HF_OK, deliveries[0].status);
    }
    CHECK_INT(10, count(&redis, "XLEN events"));
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

TEST(redis, passwords_and_missing_replicas_are_the_sinks_fault)
{
    struct hf_scope *s = real_scope(20000);
    struct hf_outbox_event event;
    struct hf_delivery delivery;
    enum hf_status status;
    struct redis redis;
    struct hf_sink *sink;
    char url[200];

    open_redis(t, &redis, "--requirepass", "se%cret");
    make_event(s, 0, 0, &event);
    sink = open_sink(s, redis.url);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_DENIED, status);
    CHECK(delivery.status != HF_OK);
    hf_sink_close(sink);

    snprintf(url, sizeof(url), "redis://:wrong@127.0.0.1:%d/events", redis.broker.port);
    sink = open_sink(s, url);
    CHECK_STATUS(HF_DENIED, hf_sink_probe(s, sink));
    CHECK(strstr(hf_scope_error_text(s), "wrong@") == NULL);
    hf_sink_close(sink);

    snprintf(url, sizeof(url), "redis://default:se%%25cret@127.0.0.1:%d/events", redis.broker.port);
    sink = open_sink(s, url);
    delivery = send_one(s, sink, &event, &status);
    CHECK_INT(HF_OK, status);
    CHECK_INT(HF_OK, delivery.status);
    hf_sink_close(sink);

    snprintf(url, sizeof(url), "redis://:se%%25cret@127.0.0.1:%d/events?replicas=1&timeout_ms=300",
             redis.broker.port);
    sink = open_sink(s, url);
    delivery = send_one(s, sink, &event, &status);
    CHECK(status != HF_OK && delivery.status != HF_OK);
    CHECK(strstr(hf_scope_error_text(s), "replicas") != NULL);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

/* Nothing listens, a name that is none, an end by the scope: failures of the whole, in time. */
TEST(redis, what_cannot_be_reached_fails_in_time)
{
    struct hf_scope *s = real_scope(0);
    struct hf_outbox_event event;
    enum hf_status status;
    struct hf_sink *sink;
    char url[200];

    make_event(s, 0, 0, &event);
    snprintf(url, sizeof(url), "redis://127.0.0.1:%d/events", free_port());
    sink = open_sink(s, url);
    (void)send_one(s, sink, &event, &status);
    CHECK_INT(HF_IO, status);
    CHECK(strstr(hf_scope_error_text(s), "refused") != NULL);
    hf_scope_cancel(s);
    (void)send_one(s, sink, &event, &status);
    CHECK_INT(HF_CANCELED, status);
    hf_sink_close(sink);
    hf_scope_free(s);
}

TEST(redis, threads_have_connections_of_their_own)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct redis redis;
    struct hf_sink *sink;

    open_redis(t, &redis, "--maxmemory", "0");
    sink = open_sink(s, redis.url);
    ledger = (struct ledger){.t = t};
    ledger_send_threads(&ledger, sink, 50);
    see_all(&redis, &ledger);
    ledger_check(&ledger, true);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}

/* Killed in the middle, again and again: what was acked is there, in order. */
TEST(redis, nothing_acked_is_lost_when_it_is_killed)
{
    static struct ledger ledger;
    struct hf_scope *s = real_scope(0);
    struct redis redis;
    struct storm storm;
    struct hf_sink *sink;

    open_redis(t, &redis, "--maxmemory", "0");
    sink = open_sink(s, redis.url);
    ledger = (struct ledger){.t = t};
    storm_start(&storm, &redis.broker, 4, 15000);
    ledger_send(&ledger, sink, LEDGER_EVENTS, 1, storm_again, &storm);
    CHECK(ledger.failures > 0);
    storm_end(&storm);
    connect_to(&redis);
    for (int i = 0; i < 500; i++) {
        redisReply *reply = command(&redis, "XLEN events");
        bool loading = reply->type == REDIS_REPLY_ERROR;

        freeReplyObject(reply);
        if (!loading)
            break;
        usleep(10000);
    }
    see_all(&redis, &ledger);
    ledger_check(&ledger, false);
    hf_sink_close(sink);
    hf_scope_free(s);
    close_redis(&redis);
}
