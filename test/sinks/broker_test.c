/* test/sinks/broker_test.c: what the sinks of brokers share; test/sinks/brokers has the brokers. */
#include "sinks/broker.h"

#include "test.h"

/* ---- URLs ----------------------------------------------------------------------------------- */

static enum hf_status read_url(struct hf_scope *s, const char *rest, struct broker_url *url)
{
    const struct sink_url given = {.memory = s, .kind = HF_STR("redis"), .rest = hf_str_from(rest)};

    return hf__broker_url(s, &given, 7, url);
}

TEST(broker, urls_have_parts)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct broker_url url;

    CHECK_OK(read_url(s, "//ann:p%40ss%3A@host.example:81/a/b", &url));
    CHECK_STR("ann", url.user);
    CHECK_STR("p@ss:", url.password);
    CHECK_STR("host.example", url.host);
    CHECK_INT(81, url.port);
    CHECK_STR("a/b", url.path);
    CHECK_OK(read_url(s, "//[::1]", &url));
    CHECK_STR("::1", url.host);
    CHECK_INT(7, url.port);
    CHECK_STR("", url.path);
    CHECK(!url.user.ptr && !url.password.ptr);
    CHECK_OK(read_url(s, "//:secret@[fe80::1]:65535/", &url));
    CHECK_STR("", url.user);
    CHECK_STR("secret", url.password);
    CHECK_STR("fe80::1", url.host);
    CHECK_INT(65535, url.port);
    hf_scope_free(s);
}

TEST(broker, wrong_urls_are_refused_and_not_shown)
{
    static const char *const wrong[] = {
        "host/x",           "//",           "///x",         "//secret@",   "//secret@/x",
        "//h:secret/x",     "//h:0/x",      "//h:65536/x",  "//h:/x",      "//u:%zz@h/secret",
        "//u:%00@h/secret", "//h secret/x", "//a,secret/x", "//[secret/x",
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct broker_url url;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        CHECK_STATUS(HF_INVALID, read_url(s, wrong[i], &url));
        CHECK(strstr(hf_scope_error_text(s), "secret") == NULL);
    }
    hf_scope_free(s);
}

/* ---- waiting -------------------------------------------------------------------------------- */

/* By the scope's clock, which stands still here, and by the real one. */
TEST(broker, waiting_ends_by_either_clock)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct broker_wait wait;

    hf__broker_wait_begin(&wait, s, 5);
    CHECK(hf__broker_wait_ms(&wait, 1000) <= 5);
    while (hf__broker_wait_check(&wait) == HF_OK) {
    }
    CHECK_ERROR(HF_TIMEOUT, "the broker did not answer within 5 ms", s);
    CHECK(hf_scope_error(s)->may_retry);
    CHECK_INT(0, hf__broker_wait_ms(&wait, 1000));

    hf_scope_timeout_ms(s, 50);
    hf__broker_wait_begin(&wait, s, 3600000);
    CHECK_INT(50, hf__broker_wait_ms(&wait, 1000));
    test_advance_ms(t, 50);
    CHECK_STATUS(HF_TIMEOUT, hf__broker_wait_check(&wait));
    hf_scope_free(s);
}

/* ---- waves ---------------------------------------------------------------------------------- */

enum { BATCH = 300 };

/* Takes what it is given, but for what it is told; and sees to it that keys come once. */
struct taker {
    int calls, refuse[BATCH], down_at;
    size_t taken[BATCH], taken_len;
    const struct hf_outbox_event *events;
};

static enum hf_status take(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                           size_t len)
{
    struct taker *taker = self;

    taker->calls++;
    for (size_t i = 0; i < len; i++) {
        size_t number = (size_t)(deliveries[i].event - taker->events);

        CHECK_INT(HF_INTERNAL, deliveries[i].status);
        for (size_t j = 0; j < i; j++)
            CHECK(deliveries[j].event->event.key.len == 0 ||
                  !hf_str_equal(deliveries[i].event->event.key, deliveries[j].event->event.key));
        if (taker->calls == taker->down_at)
            return hf__fail(s, HF_IO, "down");
        if (taker->refuse[number]) {
            hf__delivery_fail(s, &deliveries[i], HF_INVALID, true, "no");
        } else {
            taker->taken[taker->taken_len++] = number;
            hf__delivery_done(&deliveries[i]);
        }
    }
    return HF_OK;
}

static enum hf_status take_waves(struct hf_scope *s, struct taker *taker, const char *keys,
                                 struct hf_outbox_event *events, struct hf_delivery *deliveries)
{
    size_t len = strlen(keys);

    for (size_t i = 0; i < len; i++) {
        events[i] =
            (struct hf_outbox_event){.event.key = hf_str_of(&keys[i], keys[i] == '-' ? 0 : 1)};
        deliveries[i] = (struct hf_delivery){.event = &events[i], .status = HF_INTERNAL};
    }
    taker->events = events;
    return hf__broker_send_waves(s, taker, deliveries, len, take);
}

TEST(broker, events_of_a_key_go_one_after_the_other)
{
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_outbox_event events[BATCH];
    struct hf_delivery deliveries[BATCH];
    static const size_t order[] = {0, 1, 3, 4, 2, 6, 5};
    struct taker taker = {0};

    CHECK_OK(take_waves(s, &taker, "ab--c", events, deliveries));
    CHECK_INT(1, taker.calls);
    taker = (struct taker){0};
    CHECK_OK(take_waves(s, &taker, "aba-cab", events, deliveries));
    CHECK_INT(3, taker.calls);
    CHECK_INT(7, taker.taken_len);
    for (size_t i = 0; i < 7; i++)
        CHECK_INT(order[i], taker.taken[i]);

    taker = (struct taker){.refuse = {[0] = 1}};
    CHECK_OK(take_waves(s, &taker, "aabaa", events, deliveries));
    CHECK_INT(HF_INVALID, deliveries[0].status);
    CHECK(deliveries[0].for_good);
    for (int i = 1; i < 5; i++) {
        CHECK_INT(i == 2 ? HF_OK : HF_INTERNAL, deliveries[i].status);
        CHECK(!deliveries[i].for_good);
    }
    CHECK_INT(1, taker.taken_len);

    taker = (struct taker){.down_at = 2};
    CHECK_STATUS(HF_IO, take_waves(s, &taker, "aab", events, deliveries));
    CHECK_INT(HF_OK, deliveries[0].status);
    CHECK_INT(HF_INTERNAL, deliveries[1].status);
    CHECK_INT(HF_OK, deliveries[2].status);
    hf_scope_free(s);
}

/* Any keys, any refusals: what is taken is a beginning of each key, in its order. */
TEST(broker, random_batches_keep_their_order)
{
    for (int round = 0; round < 300; round++) {
        struct hf_scope *s = hf_scope_new(test_env(t));
        struct hf_outbox_event events[BATCH];
        struct hf_delivery deliveries[BATCH];
        struct taker taker = {0};
        char keys[BATCH + 1];
        size_t len = 1 + test_random_below(t, BATCH);
        bool stopped[128] = {false};

        for (size_t i = 0; i < len; i++) {
            keys[i] = (char)('-' + test_random_below(t, round % 20 + 1));
            taker.refuse[i] = test_random_below(t, 10) == 0;
        }
        keys[len] = '\0';
        CHECK_OK(take_waves(s, &taker, keys, events, deliveries));
        for (size_t i = 0; i < len; i++) {
            bool *stop = &stopped[(unsigned char)keys[i]];
            bool held = *stop && keys[i] != '-';

            CHECK_INT(held              ? HF_INTERNAL
                      : taker.refuse[i] ? HF_INVALID
                                        : HF_OK,
                      deliveries[i].status);
            *stop = *stop || deliveries[i].status != HF_OK;
        }
        for (size_t i = 0; i < taker.taken_len; i++)
            for (size_t j = 0; j < i; j++)
                CHECK(keys[taker.taken[i]] == '-' || keys[taker.taken[i]] != keys[taker.taken[j]] ||
                      taker.taken[i] > taker.taken[j]);
        hf_scope_free(s);
    }
}

/* ---- opening -------------------------------------------------------------------------------- */

/* URLs of kinds that this build may have. */
static const char *const urls[] = {
    "redis://ann:secret@127.0.0.1:1/3/events.{type}?maxlen=5&replicas=1",
    "nats://ann:secret@127.0.0.1:1/events.{type}?token=x",
    "rabbitmq://ann:secret@127.0.0.1:1/%2F/events?routing_key={key}&heartbeat_s=3",
    "mqtt://ann:secret@127.0.0.1:1/events/{type}?retain=yes&tls=yes&tls_verify=no",
    "kafka:127.0.0.1:1/events.{type}?key={tenant|none}&compression=lz4&linger.ms=3",
};

TEST(broker, opening_survives_lack_of_memory)
{
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        ALLOC_SWEEP (t, nth) {
            struct hf_scope *s = hf_scope_new(test_env(t));
            struct hf_sink *sink = NULL;
            enum hf_status status = s ? hf_sink_open(s, hf_str_from(urls[i]), &sink) : HF_NOMEM;

            ALLOC_SWEEP_STOP(t);
            CHECK(status == HF_OK || status == HF_NOMEM || status == HF_UNSUPPORTED);
            CHECK((status == HF_OK) == (sink != NULL));
            hf_sink_close(sink);
            hf_scope_free(s);
        }
    }
}

/* Nobody listens at port 1; Kafka is not asked, as it would look for a while. */
TEST(broker, sending_survives_lack_of_memory)
{
    for (size_t i = 0; i + 1 < ARRAY_LEN(urls); i++) {
        ALLOC_SWEEP (t, nth) {
            struct hf_scope *s = hf_scope_new(test_env(t));
            struct hf_outbox_event events[2] = {
                {.event = {.id = HF_STR("1"), .type = HF_STR("t"), .key = HF_STR("k")}},
                {.event = {.id = HF_STR("2"), .type = HF_STR("t"), .key = HF_STR("k")}},
            };
            struct hf_delivery deliveries[2] = {{.event = &events[0]}, {.event = &events[1]}};
            struct hf_sink *sink = NULL;
            enum hf_status status = s ? hf_sink_open(s, hf_str_from(urls[i]), &sink) : HF_NOMEM;

            if (status == HF_OK) {
                status = hf_sink_send(s, sink, deliveries, 2);
                CHECK(status == HF_IO || status == HF_NOMEM);
                CHECK(deliveries[0].status != HF_OK && deliveries[1].status != HF_OK);
            }
            ALLOC_SWEEP_STOP(t);
            hf_sink_close(sink);
            hf_scope_free(s);
        }
    }
}

TEST(broker, options_that_make_no_sense_are_refused)
{
    static const char *const wrong[] = {
        "redis://h",
        "redis://h/",
        "redis://h/s?maxlen_exact=yes",
        "redis://h/s?maxlen=0",
        "redis://h/s?tls=yes",
        "nats://h",
        "nats://h/a..b",
        "nats://h/a.*",
        "nats://h/a?ca_file=x",
        "nats://h/a?tls=yes&cert_file=x",
        "nats://h/a?no=x",
        "redis://h/s?form=event",
        "rabbitmq://h/%2F",
        "rabbitmq://h/%2F/x?form=event",
        "kafka:h/x?form=event",
        "kafka:h/x?form=outbox-event-bus&tombstone=yes",
        "rabbitmq://h//x",
        "mqtt://h",
        "mqtt://h/a?qos=0",
        "mqtt://h/a?tls_verify=no",
    };
    struct hf_scope *s = hf_scope_new(test_env(t));
    struct hf_sink *sink;

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        enum hf_status status = hf_sink_open(s, hf_str_from(wrong[i]), &sink);

        CHECK(status == HF_INVALID || status == HF_UNSUPPORTED);
        CHECK(sink == NULL);
    }
    hf_scope_free(s);
}
