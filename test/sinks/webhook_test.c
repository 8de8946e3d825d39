/*
 * sinks/webhook_test.c: webhooks, against a receiver that verifies signatures by itself.
 */
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../http/help.h"
#include "help.h"

#define WHSEC "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

enum { FIELD_MAX = 512 };

/* What came, and what to say to it. */
struct receiver {
    struct listener listener;
    pthread_mutex_t lock; /* guards all below; office_send() makes both sides see it */
    const char *answer;   /* all of it; NULL: hang up */
    char method[16], target[FIELD_MAX], head[8192], body[8192];
    size_t body_len;
};

static void receive(struct peer *peer)
{
    struct receiver *r = peer->listener->user;

    while (peer_read(peer)) {
        const struct http_head *head = &peer->reader.head;
        char answer[512];
        bool answers;
        size_t at = 0;

        pthread_mutex_lock(&r->lock);
        snprintf(r->method, sizeof(r->method), "%.*s", HF_FMT(head->method));
        snprintf(r->target, sizeof(r->target), "%.*s", HF_FMT(head->target));
        for (size_t i = 0; i < head->fields_len; i++)
            at += (size_t)snprintf(r->head + at, sizeof(r->head) - at, "%.*s: %.*s\n",
                                   HF_FMT(head->fields[i].name), HF_FMT(head->fields[i].value));
        r->body_len = peer->reader.body.len;
        memcpy(r->body, peer->reader.body.ptr, r->body_len);
        r->body[r->body_len] = '\0';
        answers = r->answer != NULL;
        snprintf(answer, sizeof(answer), "%s", answers ? r->answer : "");
        pthread_mutex_unlock(&r->lock);
        if (!answers)
            return;
        peer_say(peer, answer);
    }
}

static const char *field(const struct receiver *r, const char *name)
{
    static char value[FIELD_MAX];
    char line[100];
    const char *at;

    snprintf(line, sizeof(line), "\n%s: ", name);
    at = strstr(r->head, line);
    if (!at)
        return "";
    at += strlen(line);
    snprintf(value, sizeof(value), "%.*s", (int)strcspn(at, "\n"), at);
    return value;
}

struct post_office {
    struct receiver r;
    struct desk d;
};

static struct post_office *office_open(struct test *t, const char *options)
{
    struct post_office *o = calloc(1, sizeof(*o));

    desk_open(t, &o->d);
    pthread_mutex_init(&o->r.lock, NULL);
    listener_open(&o->r.listener, receive, &o->r, NULL);
    o->r.answer = "HTTP/1.1 204 No Content\r\n\r\n";
    desk_set("HOOK_SECRET", WHSEC);
    desk_sink(&o->d, "webhook:%s%s", o->r.listener.origin, options);
    desk_add(&o->d, "msg_p5jXN8AQM9LWM0D4loKWxJek", "k", "{\"test\": 2432232314}");
    return o;
}

static void office_close(struct post_office *o)
{
    desk_close(&o->d);
    listener_close(&o->r.listener);
    pthread_mutex_destroy(&o->r.lock);
    free(o);
}

static void meet(struct post_office *o)
{
    pthread_mutex_lock(&o->r.lock);
    pthread_mutex_unlock(&o->r.lock);
}

static enum hf_status office_send(struct post_office *o)
{
    enum hf_status status;

    meet(o);
    status = desk_send(&o->d);
    meet(o);
    return status;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* The example that Standard Webhooks publishes: secret, id, timestamp and payload. */
TEST(webhook, signs_as_standard_webhooks_has_it)
{
    struct post_office *o = office_open(t, "/hook?secret_env=HOOK_SECRET");

    desk_set_wall(1614265330);
    CHECK_OK(office_send(o));
    CHECK_INT(HF_OK, o->d.deliveries[0].status);
    CHECK_STR("POST", str_of(o->r.method));
    CHECK_STR("/hook", str_of(o->r.target));
    CHECK_STR("msg_p5jXN8AQM9LWM0D4loKWxJek", str_of(field(&o->r, "webhook-id")));
    CHECK_STR("1614265330", str_of(field(&o->r, "webhook-timestamp")));
    CHECK_STR("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
              str_of(field(&o->r, "webhook-signature")));
    CHECK_STR("{\"test\": 2432232314}", str_of(o->r.body));
    office_close(o);
}

/* Base64 of HMAC-SHA256 over "id.timestamp.body", made without any code of ours. */
static void expect_signature(const struct receiver *r, const char *secret, char *out)
{
    char text[9000], id[FIELD_MAX];
    unsigned char mac[32];
    unsigned len = sizeof(mac);

    snprintf(id, sizeof(id), "%s", field(r, "webhook-id"));
    snprintf(text, sizeof(text), "%s.%s.%s", id, field(r, "webhook-timestamp"), r->body);
    HMAC(EVP_sha256(), secret, (int)strlen(secret), (unsigned char *)text, strlen(text), mac, &len);
    memcpy(out, "v1,", 3);
    EVP_EncodeBlock((unsigned char *)out + 3, mac, (int)len);
}

TEST(webhook, several_secrets_sign_while_one_replaces_another)
{
    struct post_office *o = office_open(t, "/");
    char path[200], first[100], second[100], both[FIELD_MAX];
    FILE *file;

    snprintf(path, sizeof(path), "%s/secret", test_directory(t));
    file = fopen(path, "w");
    fputs("two\n", file);
    fclose(file);
    desk_sink(&o->d, "webhook:%s/?secret=one&secret_file=%s", o->r.listener.origin, path);
    CHECK_OK(office_send(o));
    expect_signature(&o->r, "one", first);
    expect_signature(&o->r, "two", second);
    snprintf(both, sizeof(both), "%s %s", first, second);
    CHECK_STR(both, str_of(field(&o->r, "webhook-signature")));

    desk_sink(&o->d, "webhook:%s/", o->r.listener.origin);
    CHECK_OK(office_send(o));
    CHECK_STR("", str_of(field(&o->r, "webhook-signature")));
    office_close(o);
}

TEST(webhook, sends_attributes_as_fields_and_the_payload_as_it_is)
{
    struct post_office *o = office_open(t, "/");
    struct hf_event *event;

    desk_clear(&o->d);
    event = desk_add(&o->d, "id 1\r\nX-Evil: 1", "k\"%\xc3\xa4", "\x01\x02\xff");
    event->content_type = HF_STR("application/octet-stream");
    event->trace_parent = HF_STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    event->headers = HF_ITEM(o->d.keep, HF_S("colour", HF_STR("dark blue")),
                             HF_S("Authorization", HF_STR("Bearer evil")));
    CHECK_OK(office_send(o));
    CHECK_INT(HF_OK, o->d.deliveries[0].status);
    CHECK_INT(3, o->r.body_len);
    CHECK(memcmp(o->r.body, "\x01\x02\xff", 3) == 0);
    CHECK_STR("application/octet-stream", str_of(field(&o->r, "Content-Type")));
    CHECK_STR("1.0", str_of(field(&o->r, "ce-specversion")));
    CHECK_STR("id%201%0D%0AX-Evil:%201", str_of(field(&o->r, "ce-id")));
    CHECK_STR("id%201%0D%0AX-Evil:%201", str_of(field(&o->r, "webhook-id")));
    CHECK_STR("k%22%25%C3%A4", str_of(field(&o->r, "ce-partitionkey")));
    CHECK_STR("dark%20blue", str_of(field(&o->r, "ce-colour")));
    CHECK_STR("{%22Authorization%22:%22Bearer%20evil%22}", str_of(field(&o->r, "ce-headersjson")));
    CHECK_STR("", str_of(field(&o->r, "Authorization")));
    CHECK_STR("", str_of(field(&o->r, "X-Evil")));
    CHECK_STR("", str_of(field(&o->r, "ce-datacontenttype")));
    CHECK_HAS("00-0af7651916cd43dd", str_of(field(&o->r, "traceparent")));
    office_close(o);
}

TEST(webhook, sends_events_whole_when_asked_to)
{
    struct post_office *o = office_open(t, "/?form=event&authorization=Bearer%20abc");

    CHECK_OK(office_send(o));
    CHECK_STR("application/cloudevents+json; charset=utf-8", str_of(field(&o->r, "Content-Type")));
    CHECK_STR("Bearer abc", str_of(field(&o->r, "Authorization")));
    CHECK_STR("", str_of(field(&o->r, "ce-id")));
    CHECK_HAS("\"data\":{\"test\":2432232314}}", str_of(o->r.body));
    office_close(o);
}

TEST(webhook, sends_messages_of_outbox_event_bus)
{
    struct post_office *o = office_open(t, "/?form=outbox-event-bus");

    CHECK_OK(office_send(o));
    CHECK_STR("application/json", str_of(field(&o->r, "Content-Type")));
    CHECK_STR("", str_of(field(&o->r, "ce-id")));
    CHECK_HAS("\"payload\":{\"test\":2432232314},\"occurredAt\":\"", str_of(o->r.body));
    office_close(o);
}

TEST(webhook, events_are_in_the_path_encoded_and_never_in_the_host)
{
    struct post_office *o = office_open(t, "/a/{type}/%20?query=k%3D{key}");

    o->d.events[0].event.type = HF_STR("../x?y#z");
    CHECK_OK(office_send(o));
    CHECK_STR("/a/..%2Fx%3Fy%23z/%20?k=k", str_of(o->r.target));
    o->d.events[0].event.key = (struct hf_str){0};
    CHECK_OK(office_send(o));
    CHECK_INT(HF_INVALID, o->d.deliveries[0].status);
    CHECK(o->d.deliveries[0].for_good);
    CHECK_INT(1, atomic_load(&o->r.listener.requests));
    office_close(o);
}

TEST(webhook, what_cannot_be_fields_fails_for_good)
{
    struct post_office *o = office_open(t, "/");
    struct hf_attr attrs[90];

    o->d.events[0].event.content_type = HF_STR("text/plain\r\nX: y");
    CHECK_OK(office_send(o));
    CHECK_INT(HF_INVALID, o->d.deliveries[0].status);
    CHECK(o->d.deliveries[0].for_good);

    o->d.events[0].event.content_type = HF_STR("text/plain");
    for (size_t i = 0; i < 90; i++)
        attrs[i] = (struct hf_attr){.name = hf_scope_format(o->d.keep, "h%zu", i),
                                    .type = HF_TYPE_N,
                                    .number = 1};
    o->d.events[0].event.headers = hf_item_make(o->d.keep, attrs, 90);
    CHECK_OK(office_send(o));
    CHECK_INT(HF_LIMIT, o->d.deliveries[0].status);
    CHECK(o->d.deliveries[0].for_good);
    CHECK_INT(0, atomic_load(&o->r.listener.requests));
    office_close(o);
}

/* ---- answers -------------------------------------------------------------------------------- */

TEST(webhook, every_answer_means_something)
{
    static const struct {
        const char *options, *answer;
        enum hf_status sent, status;
        bool for_good;
        uint32_t wait_ms;
    } cases[] = {
        {"", "200 OK\r\n", HF_OK, HF_OK, false, 0},
        {"", "299 Fine\r\n", HF_OK, HF_OK, false, 0},
        {"", "408 Slow\r\n", HF_OK, HF_IO, false, 0},
        {"", "425 Early\r\n", HF_OK, HF_IO, false, 0},
        {"", "500 Oops\r\n", HF_OK, HF_IO, false, 0},
        {"", "599 Oops\r\n", HF_OK, HF_IO, false, 0},
        {"", "503 Busy\r\nRetry-After: 3\r\n", HF_IO, HF_INTERNAL, false, 3000},
        {"", "503 Busy\r\nRetry-After: 99999999999999\r\n", HF_IO, HF_INTERNAL, false, 3600000},
        {"", "503 Busy\r\nRetry-After: soon\r\n", HF_OK, HF_IO, false, 0},
        {"", "503 Busy\r\nRetry-After: Thu, 25 Feb 2021 15:02:20 GMT\r\n", HF_IO, HF_INTERNAL,
         false, 10000},
        {"", "503 Busy\r\nRetry-After: Thu, 25 Feb 2021 15:02:00 GMT\r\n", HF_OK, HF_IO, false, 0},
        {"", "429 Many\r\n", HF_THROTTLED, HF_INTERNAL, false, 0},
        {"", "429 Many\r\nRetry-After: 1\r\n", HF_THROTTLED, HF_INTERNAL, false, 1000},
        {"", "302 There\r\nLocation: http://127.0.0.1:1/\r\n", HF_IO, HF_INTERNAL, false, 0},
        {"", "400 No\r\n", HF_OK, HF_INVALID, true, 0},
        {"", "401 No\r\n", HF_OK, HF_INVALID, true, 0},
        {"", "410 Gone\r\nRetry-After: 1\r\n", HF_OK, HF_INVALID, true, 0},
        {"retry=410", "410 Gone\r\n", HF_OK, HF_IO, false, 0},
        {"retry=410", "500 Oops\r\n", HF_OK, HF_INVALID, true, 0},
        {"ok=202", "200 OK\r\n", HF_OK, HF_INVALID, true, 0},
        {"ok=202,410", "410 Gone\r\n", HF_OK, HF_OK, false, 0},
        {"outage=401-403", "402 Pay\r\n", HF_IO, HF_INTERNAL, false, 0},
        {"outage=503", "503 Busy\r\n", HF_IO, HF_INTERNAL, false, 0},
        {"outage=503", "500 Oops\r\n", HF_OK, HF_IO, false, 0},
        {"outage=", "429 Many\r\n", HF_OK, HF_INVALID, true, 0},
    };
    struct post_office *o = office_open(t, "/");

    desk_set_wall(1614265330); /* Thu, 25 Feb 2021 15:02:10 GMT */
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char answer[300];

        snprintf(answer, sizeof(answer), "HTTP/1.1 %sContent-Length: 6\r\n\r\nwh\ny\x01?",
                 cases[i].answer);
        o->r.answer = answer;
        desk_sink(&o->d, "webhook:%s/?%s", o->r.listener.origin, cases[i].options);
        if (office_send(o) != cases[i].sent)
            fprintf(stderr, "%s: %s\n", cases[i].answer, hf_scope_error_text(o->d.s));
        CHECK_INT(cases[i].sent, hf_scope_error(o->d.s)->status);
        CHECK_INT(cases[i].status, o->d.deliveries[0].status);
        CHECK_INT(cases[i].for_good, o->d.deliveries[0].for_good);
        CHECK_INT(cases[i].wait_ms, hf_scope_error(o->d.s)->retry_after_ms);
        if (cases[i].status == HF_INVALID)
            CHECK_HAS(": wh y ?", o->d.deliveries[0].error);
    }
    office_close(o);
}

TEST(webhook, a_receiver_that_is_not_there_is_an_outage_and_one_that_dies_is_not)
{
    struct post_office *o = office_open(t, "/");

    o->r.answer = NULL; /* it hangs up when it has read the request */
    CHECK_OK(office_send(o));
    CHECK_INT(HF_IO, o->d.deliveries[0].status);
    CHECK(!o->d.deliveries[0].for_good);
    o->r.answer = "nonsense\r\n\r\n";
    CHECK_OK(office_send(o));
    CHECK_INT(HF_IO, o->d.deliveries[0].status);
    o->r.answer = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf";
    desk_sink(&o->d, "webhook:%s/?timeout_ms=100", o->r.listener.origin);
    CHECK_OK(office_send(o));
    CHECK_INT(HF_IO, o->d.deliveries[0].status);
    desk_sink(&o->d, "webhook:%s/", o->r.listener.origin);
    hf_scope_reset(o->d.s);
    hf_scope_timeout_ms(o->d.s, 300);
    meet(o);
    CHECK_OK(hf_sink_send(o->d.s, o->d.sink, o->d.deliveries, 1));
    CHECK_INT(HF_TIMEOUT, o->d.deliveries[0].status);
    desk_sink(&o->d, "webhook:http://127.0.0.1:%d/", free_port());
    CHECK_STATUS(HF_IO, office_send(o));
    CHECK_INT(HF_INTERNAL, o->d.deliveries[0].status);
    office_close(o);
}

TEST(webhook, fails_cleanly_without_memory)
{
    struct post_office *o = office_open(t, "/{type}?secret=one,two");

    /* A connection that is kept would be memory that is kept. */
    o->r.answer = "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
    CHECK_OK(office_send(o));
    ALLOC_SWEEP (t, nth) {
        struct hf_scope *s = hf_scope_new(&o->d.env);
        struct hf_delivery delivery = {.event = &o->d.events[0]};
        enum hf_status status = s ? hf_sink_send(s, o->d.sink, &delivery, 1) : HF_NOMEM;

        ALLOC_SWEEP_STOP(t);
        CHECK(status == HF_OK || status == HF_NOMEM);
        CHECK(status != HF_OK || delivery.status == HF_OK || t->alloc_failed);
        CHECK(!delivery.for_good);
        hf_scope_free(s);
    }
    office_close(o);
}
