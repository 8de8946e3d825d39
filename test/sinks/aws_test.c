/*
 * sinks/aws_test.c: SQS, SNS and EventBridge against a strict fake of them; (n) is of aws_batch.c.
 */
#include "fake_aws.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {"SQS", "SNS", "EventBridge"};

/* A fake and a desk; they are large, so they are not on the stack. */
struct shop {
    struct fake_aws fake;
    struct desk d;
};

static struct shop *shop_open(struct test *t, enum fake_service service, bool fifo,
                              const char *options)
{
    struct shop *shop = malloc(sizeof(*shop));

    desk_open(t, &shop->d);
    fake_open(&shop->fake, service);
    shop->fake.fifo = fifo;
    fake_sink(&shop->fake, &shop->d, options);
    return shop;
}

static void shop_close(struct shop *shop)
{
    desk_close(&shop->d);
    fake_close(&shop->fake);
    free(shop);
}

static void add_events(struct desk *d, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char id[24];

        snprintf(id, sizeof(id), "e%zu", i);
        desk_add(d, id, NULL, "{\"n\":1}");
    }
}

static void say_which(enum fake_service service, enum fake_mood mood, const struct desk *d)
{
    fprintf(stderr, "%s in mood %d: %s\n", names[service], (int)mood, hf_scope_error_text(d->s));
}

/* ---- one call ------------------------------------------------------------------------------- */

TEST(aws, ten_events_are_one_signed_call)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false, "");

        CHECK_INT(10, hf_sink_ops(shop->d.sink)->batch_max);
        add_events(&shop->d, 10);
        CHECK_OK(desk_send(&shop->d));
        for (size_t i = 0; i < 10; i++)
            CHECK_INT(HF_OK, shop->d.deliveries[i].status);
        CHECK_INT(1, atomic_load(&shop->fake.calls));
        CHECK_INT(10, shop->fake.entries_len);
        CHECK_STR("e3", str_of(shop->fake.entries[3].id));
        CHECK_HAS("\"data\":{\"n\":1}}", str_of(shop->fake.entries[3].body));
        shop_close(shop);
    }
}

/* What comes of a mood: the status of send, and of the first and the other entries. */
struct outcome {
    enum fake_mood mood;
    enum hf_status sent, first, others;
    bool first_for_good;
};

static const struct outcome outcomes[] = {
    {WELL, HF_OK, HF_OK, HF_OK, false},
    {THROTTLED, HF_THROTTLED, HF_INTERNAL, HF_INTERNAL, false},
    {BUSY, HF_THROTTLED, HF_INTERNAL, HF_INTERNAL, false},
    {BROKEN, HF_IO, HF_INTERNAL, HF_INTERNAL, false},
    {BROKEN_AFTER, HF_IO, HF_INTERNAL, HF_INTERNAL, false},
    {HANG_UP, HF_IO, HF_INTERNAL, HF_INTERNAL, false},
    {GARBAGE, HF_IO, HF_IO, HF_IO, false},
    {TRUNCATED, HF_IO, HF_IO, HF_IO, false},
    {SILENT_ON_FIRST, HF_OK, HF_IO, HF_OK, false},
    {BOTH, HF_OK, HF_IO, HF_OK, false},
    {FIRST_SENDER, HF_OK, HF_INVALID, HF_OK, true},
    {FIRST_SERVICE, HF_OK, HF_IO, HF_OK, false},
    {ALL_THROTTLED, HF_THROTTLED, HF_THROTTLED, HF_THROTTLED, false},
    {ALL_DENIED, HF_DENIED, HF_DENIED, HF_DENIED, false},
    {DENIED, HF_DENIED, HF_INTERNAL, HF_INTERNAL, false},
    {MISSING, HF_NOT_FOUND, HF_INTERNAL, HF_INTERNAL, false},
    {STALE_CLOCK, HF_OK, HF_OK, HF_OK, false},
    {EXPIRED, HF_DENIED, HF_INTERNAL, HF_INTERNAL, false},
};

static void check_outcome(struct shop *shop, const struct outcome *expected)
{
    struct desk *d = &shop->d;
    enum hf_status status = desk_send(d);

    if (status != expected->sent || d->deliveries[0].status != expected->first)
        say_which(shop->fake.service, expected->mood, d);
    CHECK_STATUS(expected->sent, status);
    CHECK_INT(expected->first, d->deliveries[0].status);
    CHECK_INT(expected->first_for_good, d->deliveries[0].for_good);
    for (size_t i = 1; i < d->len; i++)
        CHECK_INT(expected->others, d->deliveries[i].status);
    for (size_t i = 0; i < d->len; i++) {
        struct hf_str error = d->deliveries[i].error;

        CHECK((d->deliveries[i].status == HF_OK) == !error.len);
        CHECK(!error.len || !memchr(error.ptr, '\n', error.len));
    }
    CHECK(!strstr(hf_scope_error_text(d->s), "HUSH"));
}

/* (1): and the next call, with the fake well again, delivers all that was not delivered. */
TEST(aws, every_answer_gives_every_entry_its_outcome)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        for (size_t i = 0; i < ARRAY_LEN(outcomes); i++) {
            struct shop *shop = shop_open(t, (enum fake_service)service, false, "");
            struct outcome expected = outcomes[i];

            /* Its places are its ids: silence on the first cannot be told, the others move up. */
            if (service == FAKE_EVENTBRIDGE && expected.mood == SILENT_ON_FIRST)
                expected.first = HF_IO;
            if (expected.mood == STALE_CLOCK)
                FAKE_MOODS(&shop->fake, STALE_CLOCK, STALE_CLOCK, STALE_CLOCK);
            else
                FAKE_MOODS(&shop->fake, expected.mood);
            add_events(&shop->d, 3);
            check_outcome(shop, &expected);
            if (expected.mood == BUSY)
                CHECK_INT(7000, hf_scope_error(shop->d.s)->retry_after_ms);
            CHECK_OK(desk_send(&shop->d));
            for (size_t j = 0; j < 3; j++)
                CHECK_INT(HF_OK, shop->d.deliveries[j].status);
            shop_close(shop);
        }
    }
}

TEST(aws, an_answer_that_is_empty_or_of_strangers_delivers_nothing)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        static const enum fake_mood moods[] = {EMPTY, STRANGERS, NAMELESS, WRONG_COUNT};
        size_t len = service == FAKE_EVENTBRIDGE ? 4 : 3;

        for (size_t i = 0; i < len; i++) {
            struct shop *shop = shop_open(t, (enum fake_service)service, false, "");
            bool whole = service == FAKE_EVENTBRIDGE || (service == FAKE_SNS && moods[i] == EMPTY);

            FAKE_MOODS(&shop->fake, moods[i]);
            add_events(&shop->d, 2);
            CHECK_STATUS(whole ? HF_IO : HF_OK, desk_send(&shop->d));
            for (size_t j = 0; j < 2; j++) {
                CHECK_INT(HF_IO, shop->d.deliveries[j].status);
                CHECK(!shop->d.deliveries[j].for_good);
            }
            shop_close(shop);
        }
    }
}

/* Cut anywhere, an answer delivers nothing. With a byte that is another, it may still be one: then
 * what it does not tell of any more was not delivered. */
TEST(aws, no_damage_to_an_answer_delivers_more_than_it_says)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false, "");
        int len;

        add_events(&shop->d, 2);
        CHECK_OK(desk_send(&shop->d));
        len = atomic_load(&shop->fake.said);
        CHECK(len > 50);
        for (int at = 1; at < len; at++) {
            atomic_store(&shop->fake.cut_at, at);
            CHECK_STATUS(HF_IO, desk_send(&shop->d));
            for (size_t i = 0; i < 2; i++)
                CHECK(shop->d.deliveries[i].status == HF_IO && !shop->d.deliveries[i].for_good);
        }
        atomic_store(&shop->fake.cut_at, 0);
        for (int at = 1; at <= len; at++) {
            enum hf_status status;

            atomic_store(&shop->fake.odd_at, at);
            status = desk_send(&shop->d);
            CHECK(status == HF_OK || status == HF_IO);
            for (size_t i = 0; i < 2; i++)
                CHECK((shop->d.deliveries[i].status == HF_OK) == !shop->d.deliveries[i].error.len);
            if (status != HF_OK)
                CHECK(shop->d.deliveries[0].status != HF_OK);
        }
        shop_close(shop);
    }
}

TEST(aws, what_nobody_knows_is_found_and_fails_by_attempts)
{
    struct shop *shop = shop_open(t, FAKE_SQS, false, "");

    FAKE_MOODS(&shop->fake, ODD, WELL, ODD);
    add_events(&shop->d, 2);
    CHECK_OK(desk_send(&shop->d));
    CHECK_INT(3, atomic_load(&shop->fake.calls));
    CHECK_INT(HF_OK, shop->d.deliveries[0].status);
    CHECK_INT(HF_INVALID, shop->d.deliveries[1].status);
    CHECK(!shop->d.deliveries[1].for_good);
    CHECK_HAS("SQS refused the request: HTTP status 400, WrongPhaseOfMoon: said so",
              shop->d.deliveries[1].error);
    shop_close(shop);
}

TEST(aws, nobody_at_the_other_end_is_an_outage)
{
    struct desk d;

    desk_open(t, &d);
    desk_set("AWS_REGION", "eu-central-1");
    desk_sink(&d, "sqs:http://127.0.0.1:%d/1/a", free_port());
    add_events(&d, 2);
    CHECK_STATUS(HF_IO, desk_send(&d));
    CHECK(!hf_scope_error(d.s)->may_have_happened);
    CHECK_INT(HF_INTERNAL, d.deliveries[0].status);
    desk_close(&d);
}

/* Where a service is: the option, then the variable of the service, then that of all. */
TEST(aws, endpoints_come_from_the_url_or_the_variables)
{
    static const char *const variables[] = {"AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_SNS",
                                            "AWS_ENDPOINT_URL_EVENTBRIDGE"};
    static const char *const urls[] = {
        "sqs:https://sqs.eu-central-1.amazonaws.com/123456789012/orders",
        "sns:arn:aws:sns:eu-central-1:123456789012:orders", "eventbridge:default"};

    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        for (int all = 0; all <= 1; all++) {
            struct shop *shop = shop_open(t, (enum fake_service)service, false, "");

            desk_set(all ? "AWS_ENDPOINT_URL" : variables[service], shop->fake.listener.origin);
            desk_sink(&shop->d, "%s", urls[service]);
            add_events(&shop->d, 1);
            CHECK_OK(desk_send(&shop->d));
            CHECK_INT(1, shop->fake.entries_len);
            shop_close(shop);
        }
    }
}

/* ---- limits --------------------------------------------------------------------------------- */

/* An event whose entry is `bytes` as the service counts. */
static void add_sized(struct shop *shop, const char *id, size_t bytes)
{
    static const size_t others[] = {/* names, types and values of the attributes; or of names */
                                    7 + 6 + 12 + 9 + 6 + 5 + 12 + 6 + 28,
                                    7 + 6 + 12 + 9 + 6 + 5 + 12 + 6 + 28, 14 + 5 + 12};
    struct hf_str json;
    struct hf_event *event = desk_add(&shop->d, id, NULL, "\"\"");
    size_t len;
    char *payload;

    CHECK_OK(hf_event_json(shop->d.keep, event, &json));
    len = bytes - json.len - others[shop->fake.service];
    payload = hf_scope_alloc(shop->d.keep, len + 2);
    memset(payload, 'x', len + 2);
    payload[0] = payload[len + 1] = '"';
    event->payload = hf_bytes_of(payload, len + 2);
}

TEST(aws, an_entry_fits_up_to_its_limit_and_not_a_byte_more)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false, "");
        size_t max = shop->fake.max_bytes;

        add_sized(shop, "fits", max);
        add_sized(shop, "not", max + 1);
        desk_add(&shop->d, "small", NULL, "1");
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(max, shop->fake.largest);
        CHECK_INT(HF_OK, shop->d.deliveries[0].status);
        CHECK_INT(HF_LIMIT, shop->d.deliveries[1].status);
        CHECK(shop->d.deliveries[1].for_good);
        CHECK_HAS("bytes as", shop->d.deliveries[1].error);
        CHECK_INT(HF_OK, shop->d.deliveries[2].status);
        CHECK_INT(2, atomic_load(&shop->fake.calls));
        CHECK_INT(2, shop->fake.entries_len);
        shop_close(shop);
    }
}

/* (2) */
TEST(aws, calls_are_cut_at_the_limit_of_all_together)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false, "");
        size_t half = shop->fake.batch_bytes / 2;

        add_sized(shop, "a", half);
        add_sized(shop, "b", half); /* at the limit */
        add_sized(shop, "c", half);
        add_sized(shop, "d", half + 1); /* past it */
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(3, atomic_load(&shop->fake.calls));
        CHECK_INT(shop->fake.batch_bytes, shop->fake.largest);
        CHECK_INT(4, shop->fake.entries_len);
        for (size_t i = 0; i < 4; i++)
            CHECK_INT(HF_OK, shop->d.deliveries[i].status);
        shop_close(shop);
    }
}

TEST(aws, limits_can_be_set_and_a_service_with_lower_ones_is_heeded)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        struct shop *shop =
            shop_open(t, (enum fake_service)service, false, "max_bytes=2000&batch_bytes=3000");

        add_sized(shop, "a", 2000);
        add_sized(shop, "b", 1000);
        add_sized(shop, "c", 1000);
        add_sized(shop, "d", 2001);
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(2, atomic_load(&shop->fake.calls));
        CHECK_INT(3000, shop->fake.largest);
        CHECK_INT(HF_LIMIT, shop->d.deliveries[3].status);

        /* Its own are lower than ours: it refuses, and what fits still arrives. */
        desk_clear(&shop->d);
        shop->fake.max_bytes = 1500;
        shop->fake.batch_bytes = 2500;
        add_sized(shop, "e", 1400);
        add_sized(shop, "f", 1400);
        add_sized(shop, "g", 1600);
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(HF_OK, shop->d.deliveries[0].status);
        CHECK_INT(HF_OK, shop->d.deliveries[1].status);
        CHECK(shop->d.deliveries[2].status != HF_OK && shop->d.deliveries[2].for_good);
        CHECK_INT(1, fake_taken(&shop->fake, "e"));
        CHECK_INT(1, fake_taken(&shop->fake, "f"));
        CHECK_INT(0, fake_taken(&shop->fake, "g"));
        shop_close(shop);
    }
}

/* ---- one that is wrong ---------------------------------------------------------------------- */

TEST(aws, a_call_refused_for_one_entry_delivers_the_others_once)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        for (size_t bad = 0; bad < 10; bad++) {
            struct shop *shop = shop_open(t, (enum fake_service)service, false, "");

            add_events(&shop->d, 10);
            shop->d.events[bad].event.payload = hf_bytes_of("\"poison\"", 8);
            CHECK_OK(desk_send(&shop->d));
            for (size_t i = 0; i < 10; i++) {
                char id[24];

                snprintf(id, sizeof(id), "e%zu", i);
                CHECK_INT(i == bad ? HF_INVALID : HF_OK, shop->d.deliveries[i].status);
                CHECK_INT(i == bad, shop->d.deliveries[i].for_good);
                CHECK_INT(i == bad ? 0 : 1, fake_taken(&shop->fake, id));
            }
            shop_close(shop);
        }
    }
}

/* (3) */
TEST(aws, a_call_that_fails_as_a_whole_stops_those_behind_it)
{
    struct shop *shop = shop_open(t, FAKE_SQS, false, "max_bytes=1024&batch_bytes=1024");

    FAKE_MOODS(&shop->fake, WELL, BROKEN);
    add_sized(shop, "a", 1000);
    add_sized(shop, "b", 1000);
    add_sized(shop, "c", 1000);
    CHECK_STATUS(HF_IO, desk_send(&shop->d));
    CHECK_INT(2, atomic_load(&shop->fake.calls));
    CHECK_INT(HF_OK, shop->d.deliveries[0].status);
    CHECK_INT(HF_INTERNAL, shop->d.deliveries[1].status);
    CHECK_INT(HF_INTERNAL, shop->d.deliveries[2].status);
    CHECK_INT(0, fake_taken(&shop->fake, "c"));
    shop_close(shop);
}

/* ---- targets -------------------------------------------------------------------------------- */

TEST(aws, targets_by_template_have_calls_of_their_own)
{
    struct shop *shop = malloc(sizeof(*shop));
    char target[200];

    desk_open(t, &shop->d);
    fake_open(&shop->fake, FAKE_SQS);
    desk_sink(&shop->d, "sqs:%s/1/orders-{tenant}", shop->fake.listener.origin);
    add_events(&shop->d, 6);
    for (size_t i = 0; i < 5; i++)
        shop->d.events[i].event.tenant = i % 2 ? HF_STR("ben") : HF_STR("ann");
    CHECK_OK(desk_send(&shop->d));
    CHECK_INT(2, atomic_load(&shop->fake.calls));
    for (size_t i = 0; i < 5; i++)
        CHECK_INT(HF_OK, shop->d.deliveries[i].status);
    CHECK_INT(HF_INVALID, shop->d.deliveries[5].status); /* it has no tenant */
    CHECK(shop->d.deliveries[5].for_good);
    CHECK_HAS("/1/orders-ann", str_of(shop->fake.entries[2].target));

    /* A queue that is not there is not the fault of the others. */
    snprintf(target, sizeof(target), "%s/1/orders-ben", shop->fake.listener.origin);
    shop->fake.target = target;
    CHECK_OK(desk_send(&shop->d));
    CHECK_INT(HF_NOT_FOUND, shop->d.deliveries[0].status);
    CHECK(!shop->d.deliveries[0].for_good);
    CHECK_INT(HF_OK, shop->d.deliveries[1].status);
    shop_close(shop);
}

TEST(aws, names_of_eventbridge_are_checked_before_they_are_sent)
{
    struct shop *shop = shop_open(t, FAKE_EVENTBRIDGE, false, "source={source}&detail_type={type}");
    char *wide;

    add_events(&shop->d, 5);
    wide = hf_scope_alloc(shop->d.keep, 300);
    memset(wide, 'x', 300);
    shop->d.events[0].event.type = hf_str_of(wide, 128);
    shop->d.events[1].event.type = hf_str_of(wide, 129);
    shop->d.events[2].event.source = hf_str_of(wide, 256);
    shop->d.events[3].event.source = hf_str_of(wide, 257);
    shop->d.events[4].event.source = HF_STR("aws.s3");
    CHECK_OK(desk_send(&shop->d));
    CHECK_INT(HF_OK, shop->d.deliveries[0].status);
    CHECK_INT(HF_INVALID, shop->d.deliveries[1].status);
    CHECK_INT(HF_OK, shop->d.deliveries[2].status);
    CHECK_INT(HF_INVALID, shop->d.deliveries[3].status);
    CHECK_HAS("aws.", shop->d.deliveries[4].error);
    CHECK(shop->d.deliveries[4].for_good);
    shop_close(shop);
}

TEST(aws, a_detail_may_be_the_payload_when_it_is_an_object)
{
    struct shop *shop = shop_open(t, FAKE_EVENTBRIDGE, false, "detail=payload");

    desk_add(&shop->d, "a", NULL, " {\"id\":\"a\"}");
    desk_add(&shop->d, "b", NULL, "[1]");
    desk_add(&shop->d, "c", NULL, "{\"a\":");
    desk_add(&shop->d, "d", NULL, "");
    CHECK_OK(desk_send(&shop->d));
    CHECK_INT(HF_OK, shop->d.deliveries[0].status);
    CHECK_STR(" {\"id\":\"a\"}", str_of(shop->fake.entries[0].body));
    for (size_t i = 1; i < 4; i++) {
        CHECK_INT(HF_INVALID, shop->d.deliveries[i].status);
        CHECK(shop->d.deliveries[i].for_good);
    }
    shop_close(shop);
}

/* ---- messages ------------------------------------------------------------------------------- */

TEST(aws, fifo_messages_have_groups_and_ids_that_fit)
{
    char long_id[200];

    memset(long_id, 'i', sizeof(long_id) - 1);
    long_id[sizeof(long_id) - 1] = '\0';
    for (int service = FAKE_SQS; service <= FAKE_SNS; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, true, "");
        struct fake_entry *entries = shop->fake.entries;

        desk_add(&shop->d, "plain", "key-1", "1");
        desk_add(&shop->d, "no key", NULL, "1"); /* a blank: not an id that fits */
        desk_add(&shop->d, long_id, "k\xc3\xa4", "1");
        long_id[128] = '\0';
        desk_add(&shop->d, long_id, "x", "1"); /* just fits */
        long_id[128] = 'i';
        CHECK_OK(desk_send(&shop->d));
        for (size_t i = 0; i < 4; i++)
            CHECK_INT(HF_OK, shop->d.deliveries[i].status);
        CHECK_STR("key-1", str_of(entries[0].group));
        CHECK_STR("plain", str_of(entries[0].dedup));
        /* sha256 of "no key" */
        CHECK_STR("a199dc8cce54d8538c2fb9e0f41e68e5a826be2fb2e95fce654ceea77e3b3039",
                  str_of(entries[1].group));
        CHECK_STR(entries[1].group, str_of(entries[1].dedup));
        CHECK_INT(64, strlen(entries[2].group));
        CHECK_INT(64, strlen(entries[2].dedup));
        CHECK_INT(128, strlen(entries[3].dedup));
        /* Again, as after a lost answer: all of them are known. */
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(8, shop->fake.entries_len);
        for (size_t i = 4; i < 8; i++)
            CHECK(entries[i].duplicate);
        shop_close(shop);
    }
}

TEST(aws, group_and_dedup_can_be_templates)
{
    struct shop *shop = shop_open(t, FAKE_SQS, true, "group={type}&dedup={id}/{type}");

    desk_add(&shop->d, "a", "k", "1");
    CHECK_OK(desk_send(&shop->d));
    CHECK_STR("order.placed", str_of(shop->fake.entries[0].group));
    CHECK_STR("a/order.placed", str_of(shop->fake.entries[0].dedup));
    shop_close(shop);

    shop = shop_open(t, FAKE_SQS, false, "group={tenant|none}"); /* a fair queue */
    desk_add(&shop->d, "a", "k", "1");
    CHECK_OK(desk_send(&shop->d));
    CHECK_STR("none", str_of(shop->fake.entries[0].group));
    shop_close(shop);
}

/* The messages of another library: its body, its one attribute, its groups. */
TEST(aws, messages_of_outbox_event_bus)
{
    static const char body[] = "{\"id\":\"a\",\"type\":\"order.placed\",\"payload\":{\"n\":1},"
                               "\"occurredAt\":\"2026-02-01T00:00:00.123Z\"}";

    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        for (int fifo = 0; fifo <= (service != FAKE_EVENTBRIDGE); fifo++) {
            struct shop *shop =
                shop_open(t, (enum fake_service)service, fifo,
                          service == FAKE_EVENTBRIDGE ? "detail=outbox-event-bus&source=shop"
                                                      : "form=outbox-event-bus");
            struct fake_entry *entry = shop->fake.entries;

            desk_add(&shop->d, "a", "k", " {\"n\": 1}")->time_us = INT64_C(1769904000123000);
            desk_add(&shop->d, "b", "l", "no JSON");
            CHECK_OK(desk_send(&shop->d));
            CHECK_INT(HF_OK, shop->d.deliveries[0].status);
            CHECK_INT(HF_INVALID, shop->d.deliveries[1].status);
            CHECK(shop->d.deliveries[1].for_good);
            CHECK_STR(body, str_of(entry->body));
            if (service == FAKE_EVENTBRIDGE) {
                CHECK_HAS("\"Source\":\"shop\",\"DetailType\":\"order.placed\"",
                          str_of(shop->fake.last_body));
                CHECK_HAS("\"Time\":1769904000.123000", str_of(shop->fake.last_body));
            } else {
                CHECK_HAS("EventType", str_of(shop->fake.last_body));
                CHECK(!str_has(str_of(shop->fake.last_body), "ce-"));
                CHECK(!str_has(str_of(shop->fake.last_body), "content-type"));
                CHECK_STR(fifo ? "order.placed" : "", str_of(entry->group));
                CHECK_STR(fifo ? "a" : "", str_of(entry->dedup));
            }
            shop_close(shop);
        }
    }
}

TEST(aws, characters_that_messages_cannot_have_are_escaped)
{
    for (int service = FAKE_SQS; service <= FAKE_SNS; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false, "");

        desk_add(&shop->d, "a", "key\x01", "\"\xef\xbf\xbe\xef\xbf\xbf&<>%+@=\xf0\x9f\x98\x80\"");
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(HF_OK, shop->d.deliveries[0].status);
        CHECK_HAS("\"data\":\"\\ufffe\\uffff&<>%+@=\xf0\x9f\x98\x80\"}",
                  str_of(shop->fake.entries[0].body));
        CHECK_HAS("\"partitionkey\":\"key\\u0001\"", str_of(shop->fake.entries[0].body));
        shop_close(shop);
    }
}

TEST(aws, payloads_by_themselves_have_attributes_beside_them)
{
    for (int service = FAKE_SQS; service <= FAKE_SNS; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false,
                                      "form=payload&type_attribute=EventType");

        desk_add(&shop->d, "a", "k", "{\"id\":\"a\"}");
        shop->d.events[0].event.aggregate = HF_STR("agg");
        shop->d.events[0].event.tenant = HF_STR("ten");
        shop->d.events[0].event.correlation = HF_STR("cor");
        shop->d.events[0].event.causation = HF_STR("cau");
        shop->d.events[0].event.trace_parent = HF_STR("trace");
        CHECK_OK(desk_send(&shop->d));
        CHECK_STR("{\"id\":\"a\"}", str_of(shop->fake.entries[0].body));
        CHECK_HAS("EventType", str_of(shop->fake.last_body));
        CHECK_HAS("ce-partitionkey", str_of(shop->fake.last_body));

        desk_clear(&shop->d);
        desk_add(&shop->d, "b", NULL, "{\"id\":\"\\u0062\"}\x02");
        desk_add(&shop->d, "c", NULL, "");
        desk_add(&shop->d, "d\x01", NULL, "1");
        CHECK_OK(desk_send(&shop->d));
        CHECK_INT(HF_OK, shop->d.deliveries[0].status);
        CHECK_STR("eyJpZCI6Ilx1MDA2MiJ9Ag==", str_of(shop->fake.entries[1].body));
        CHECK_HAS("content-encoding", str_of(shop->fake.last_body));
        CHECK_INT(HF_INVALID, shop->d.deliveries[1].status);
        CHECK_HAS("does not accept empty messages", shop->d.deliveries[1].error);
        CHECK_INT(HF_INVALID, shop->d.deliveries[2].status);
        CHECK(shop->d.deliveries[2].for_good);
        shop_close(shop);
    }
}

/* ---- many ----------------------------------------------------------------------------------- */

/* Whatever the service does, each event ends as done and taken, or as refused for good; what was
 * told as done was taken, and on a FIFO queue once. */
static void check_ledger(struct shop *shop, struct test *t)
{
    enum { EVENTS = 30 };
    bool done[EVENTS] = {false}, given_up[EVENTS] = {false};
    size_t left = EVENTS;

    for (int round = 0; left > 0 && round < 400; round++) {
        size_t place[10];

        desk_clear(&shop->d);
        for (size_t i = 0; i < EVENTS && shop->d.len < 10; i++) {
            char id[24];

            if (done[i] || given_up[i] || test_random_below(t, 3) == 0)
                continue;
            snprintf(id, sizeof(id), "e%zu", i);
            place[shop->d.len] = i;
            desk_add(&shop->d, id, NULL, i == 7 ? "\"poison\"" : "1");
        }
        (void)desk_send(&shop->d);
        for (size_t i = 0; i < shop->d.len; i++) {
            const struct hf_delivery *delivery = &shop->d.deliveries[i];

            done[place[i]] = delivery->status == HF_OK;
            given_up[place[i]] = delivery->status != HF_OK && delivery->for_good;
            left -= done[place[i]] || given_up[place[i]];
        }
    }
    CHECK_INT(0, left);
    for (size_t i = 0; i < EVENTS; i++) {
        char id[24];

        snprintf(id, sizeof(id), "e%zu", i);
        if (done[i])
            CHECK(fake_taken(&shop->fake, id) >= 1);
        if (shop->fake.fifo)
            CHECK(fake_taken(&shop->fake, id) <= 1);
    }
    CHECK(!done[7] || shop->fake.moods_len > 0);
}

TEST(aws, no_event_is_lost_whatever_the_service_does)
{
    for (int round = 0; round < 12; round++) {
        struct shop *shop =
            shop_open(t, (enum fake_service)(round % 3), round % 3 != 2 && round % 2, "");

        shop->fake.moods_len = 40;
        for (size_t i = 0; i < shop->fake.moods_len; i++) {
            enum fake_mood mood = (enum fake_mood)test_random_below(t, MOODS);

            shop->fake.moods[i] = mood == STALE_CLOCK ? WELL : mood;
        }
        check_ledger(shop, t);
        shop_close(shop);
    }
}

struct sender {
    struct shop *shop;
    int number;
    pthread_t thread;
    int done;
};

static void *send_some(void *argument)
{
    struct sender *sender = argument;
    struct hf_scope *s = hf_scope_new(&sender->shop->d.env);

    for (int i = 0; i < 10; i++) {
        struct hf_outbox_event events[2] = {{.event = {.type = HF_STR("t")}},
                                            {.event = {.type = HF_STR("t")}}};
        struct hf_delivery deliveries[2] = {{.event = &events[0]}, {.event = &events[1]}};

        hf_scope_reset(s);
        for (int j = 0; j < 2; j++)
            events[j].event.id = hf_scope_format(s, "%d-%d-%d", sender->number, i, j);
        if (hf_sink_send(s, sender->shop->d.sink, deliveries, 2) == HF_OK)
            sender->done += (deliveries[0].status == HF_OK) + (deliveries[1].status == HF_OK);
    }
    hf_scope_free(s);
    return NULL;
}

TEST(aws, any_number_of_threads_send)
{
    struct shop *shop = shop_open(t, FAKE_SNS, false, "");
    struct sender senders[4];

    for (int i = 0; i < 4; i++) {
        senders[i] = (struct sender){.shop = shop, .number = i};
        CHECK_INT(0, pthread_create(&senders[i].thread, NULL, send_some, &senders[i]));
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(senders[i].thread, NULL);
        CHECK_INT(20, senders[i].done);
    }
    CHECK_INT(80, shop->fake.entries_len);
    shop_close(shop);
}

TEST(aws, without_memory_nothing_is_told_that_is_not_so)
{
    for (int service = FAKE_SQS; service <= FAKE_EVENTBRIDGE; service++) {
        struct shop *shop = shop_open(t, (enum fake_service)service, false, "");

        desk_add(&shop->d, "a", "k", "1");
        desk_add(&shop->d, "b c", NULL, "{}");
        shop->fake.no_keeping = true;  /* a connection that is kept would be memory that is kept */
        CHECK_OK(desk_send(&shop->d)); /* and there is a worker now */
        ALLOC_SWEEP (t, nth) {
            struct hf_scope *s = hf_scope_new(&shop->d.env);
            struct hf_delivery deliveries[2] = {{.event = &shop->d.events[0]},
                                                {.event = &shop->d.events[1]}};
            size_t before = shop->fake.entries_len;
            enum hf_status status = s ? hf_sink_send(s, shop->d.sink, deliveries, 2) : HF_NOMEM;

            ALLOC_SWEEP_STOP(t);
            CHECK(status == HF_OK || status == HF_NOMEM);
            if (s)
                for (size_t i = 0; i < 2; i++)
                    CHECK(deliveries[i].status != HF_OK || shop->fake.entries_len > before);
            CHECK(status != HF_OK || !s || t->alloc_failed || deliveries[0].status == HF_OK);
            hf_scope_free(s);
        }
        shop_close(shop);
    }
}
