/*
 * sinks/sink_test.c: URLs, options, and what every delivery goes through; (n) is of sink.c.
 */
#include "help.h"

#include <stdio.h>
#include <string.h>

/* ---- URLs ----------------------------------------------------------------------------------- */

TEST(sink, an_unknown_kind_is_refused_with_those_that_are)
{
    static const char *const urls[] = {"", "stdout", "smoke:signals", ":", "STDOUT:", "file"};
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++) {
        CHECK_STATUS(HF_INVALID, desk_try_sink(&d, "%s", urls[i]));
        CHECK(!d.sink);
        CHECK_HAS("one of stdout:, file:, exec:, webhook:, sqs:", hf_scope_error(d.s)->message);
    }
    desk_close(&d);
}

/* Which are built is not known here: each is there, or says how it could be. */
TEST(sink, a_kind_that_is_not_there_says_what_it_needs)
{
    static const struct {
        const char *url, *option;
    } kinds[] = {{"kafka:127.0.0.1:1/topic", "HF_WITH_KAFKA"},
                 {"rabbitmq://127.0.0.1:1/v/exchange", "HF_WITH_RABBITMQ"},
                 {"redis://127.0.0.1:1/stream", "HF_WITH_REDIS"},
                 {"nats://127.0.0.1:1/subject", "HF_WITH_NATS"},
                 {"mqtt://127.0.0.1:1/topic", "HF_WITH_MQTT"}};
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        enum hf_status status = desk_try_sink(&d, "%s", kinds[i].url);

        CHECK(status == HF_OK || status == HF_UNSUPPORTED);
        CHECK((status == HF_OK) == (d.sink != NULL));
        if (status == HF_UNSUPPORTED && !strstr(hf_scope_error_text(d.s), ".so"))
            CHECK_HAS(kinds[i].option, hf_scope_error(d.s)->message);
    }
    desk_close(&d);
}

TEST(sink, options_are_refused_by_name_and_never_by_value)
{
    static const struct {
        const char *url, *part;
    } cases[] = {
        {"stdout:?colour=SECRET", "a stdout sink has no option \"colour\"; it has form"},
        {"stdout:?form=SECRET", "the option form of a stdout sink has to be event|payload"},
        {"stdout:?form", "has to be event|payload"},
        {"stdout:?form=event&form=event", "has the option \"form\" twice"},
        {"stdout:?form=%4", "a % that is not followed by two hex digits"},
        {"stdout:there", "only options may follow"},
        {"file:/tmp/x?batch=0",
         "the option batch of a file sink has to be a number from 1 to 10000"},
        {"file:/tmp/x?batch=10001", "a number from 1 to 10000"},
        {"file:/tmp/x?batch=99999999999999999999", "a number from 1 to 10000"},
        {"file:/tmp/x?batch=", "a number from 1 to 10000"},
        {"file:/tmp/x?batch=1x", "a number from 1 to 10000"},
        {"file:/tmp/x?sync=SECRET", "has to be yes or no"},
        {"file:?batch=1", "a file sink is file:PATH"},
        {"file:/tmp/%00x", "a file sink is file:PATH"},
        {"file:/tmp/%0", "the path of the sink's URL has a %"},
        {"exec:", "it has no words"},
        {"exec:'a", "a quote in it is not closed"},
        {"exec:a?timeout_ms=0", "a number from 1 to"},
        {"sqs:", "an SQS sink is sqs:QUEUE-URL"},
        {"sqs:orders", "an SQS sink is sqs:QUEUE-URL"},
        {"sqs:https://sqs.{type}.amazonaws.com/1/a", "an SQS sink is sqs:QUEUE-URL"},
        {"sqs:https://sqs.eu-central-1.amazonaws.com/1/a?dedup={id}",
         "the option dedup is only for"},
        {"sqs:https://sqs.eu-central-1.amazonaws.com/1/a?max_bytes=1048577",
         "from 1024 to 1048576"},
        {"sqs:https://sqs.eu-central-1.amazonaws.com/1/{kind}", "the queue has {kind}"},
        {"sns:orders", "an SNS sink is sns:TOPIC-ARN"},
        {"sns:arn:aws:sqs:eu-central-1:1:a", "an SNS sink is sns:TOPIC-ARN"},
        {"sns:arn:aws:sns:{type}:1:a", "an SNS sink is sns:TOPIC-ARN"},
        {"eventbridge:", "an EventBridge sink is eventbridge:BUS"},
        {"eventbridge:arn:aws:sns:eu-central-1:1:a", "an EventBridge sink is eventbridge:BUS"},
        {"eventbridge:default", "no region for EventBridge"},
        {"webhook:", "a webhook sink is webhook:https://HOST/PATH"},
        {"webhook:example.com/a", "a webhook sink is webhook:https://HOST/PATH"},
        {"webhook:https://{tenant}.example.com/a", "without a template in HOST"},
        {"webhook:https://example.com/a b", "a webhook sink is webhook:https://HOST/PATH"},
        {"webhook:https://example.com/{typ}", "the path has {typ}"},
        {"webhook:https://example.com/?secret=whsec_SECRET!", "has to be base64"},
        {"webhook:https://example.com/?secret=", "a secret of the webhook sink is empty"},
        {"webhook:https://example.com/?secret_env=NONE",
         "the environment variable NONE is not set"},
        {"webhook:https://example.com/?secret_file=/nonexistent", "secret_file cannot be read"},
        {"webhook:https://example.com/?retry=40", "the option retry of a webhook sink has to be"},
        {"webhook:https://example.com/?ok=199", "the option ok of a webhook sink has to be"},
        {"webhook:https://example.com/?ok=299-200", "has to be codes"},
        {"webhook:https://example.com/?ok=200-600", "has to be codes"},
        {"webhook:https://example.com/?ok=200-299-300", "has to be codes"},
        {"webhook:https://example.com/?authorization=a%0Ab", "the authorization"},
    };
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(HF_INVALID, desk_try_sink(&d, "%s", cases[i].url));
        CHECK(!d.sink);
        CHECK_HAS(cases[i].part, hf_scope_error(d.s)->message);
        CHECK(!strstr(hf_scope_error_text(d.s), "SECRET"));
    }
    CHECK_STATUS(HF_INVALID, hf_sink_open(d.s, HF_STR("file:a\0b"), &d.sink));
    desk_close(&d);
}

static const char *const openable[] = {
    "stdout:?form=payload",
    "file:/tmp/none/x?sync=no&batch=7&form=event",
    "exec:/bin/true 'a b' \"c\"?timeout_ms=5&grace_ms=0",
    "webhook:https://example.com:8443/a/{type}?secret=whsec_YWJj,plain&query=a%3Db&ok=202,204&"
    "retry=500-503,599&outage=&form=event&authorization=Bearer%20x&timeout_ms=1&connect_ms=2",
    "sqs:https://sqs.eu-central-1.amazonaws.com/1/{type|none}?group={tenant}&form=payload&"
    "type_attribute=EventType&max_bytes=262144&batch_bytes=262144",
    "sqs:http://127.0.0.1:1/1/a.fifo?dedup={id}-{type}&region=us-east-1",
    "sns:arn:aws:sns:eu-central-1:1:a.fifo?subject={type}",
    "eventbridge:default?region=eu-central-1&detail=payload&source=x.{source}&detail_type={type}",
    "eventbridge:arn:aws:events:eu-central-1:1:event-bus/a?endpoint=http://127.0.0.1:1",
};

TEST(sink, opens_without_asking_anybody)
{
    struct desk d;

    desk_open(t, &d);
    for (size_t i = 0; i < ARRAY_LEN(openable); i++)
        desk_sink(&d, "%s", openable[i]);
    desk_close(&d);
}

TEST(sink, opening_fails_cleanly_without_memory)
{
    for (size_t i = 0; i < ARRAY_LEN(openable); i++) {
        struct desk d;

        desk_open(t, &d);
        ALLOC_SWEEP (t, nth) {
            struct hf_scope *s = hf_scope_new(&d.env);
            struct hf_sink *sink = NULL;
            enum hf_status status = s ? hf_sink_open(s, str_of(openable[i]), &sink) : HF_NOMEM;

            ALLOC_SWEEP_STOP(t);
            CHECK(status == HF_OK || status == HF_NOMEM);
            CHECK((status == HF_OK) == (sink != NULL));
            hf_sink_close(sink);
            hf_scope_free(s);
        }
        desk_close(&d);
    }
}

/* ---- sinks of one's own --------------------------------------------------------------------- */

struct own {
    enum hf_status status[4]; /* by place in the batch */
    enum hf_status returns;
    struct hf_str seen[4]; /* ids */
    size_t seen_len;
    int closed;
};

static enum hf_status own_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                               size_t len)
{
    struct own *own = self;

    own->seen_len = len;
    for (size_t i = 0; i < len; i++) {
        CHECK_INT(HF_INTERNAL, deliveries[i].status); /* (1) */
        CHECK(!deliveries[i].for_good && !deliveries[i].error.ptr);
        own->seen[i] = deliveries[i].event->event.id;
        if (own->status[i] == HF_OK)
            hf__delivery_done(&deliveries[i]);
        else if (own->status[i] == HF_INVALID)
            hf__delivery_fail(s, &deliveries[i], HF_INVALID, true, "no %d", 7);
        deliveries[i].for_good = deliveries[i].for_good || own->status[i] == HF_OK;
    }
    return own->returns ? hf_scope_fail(s, own->returns, "down") : HF_OK;
}

static void own_close(void *self)
{
    ((struct own *)self)->closed++;
}

TEST(sink, of_ones_own_has_its_defaults_filled_in)
{
    struct own own = {.closed = 0};
    char name[] = "mine";
    struct desk d;

    desk_open(t, &d);
    CHECK_STATUS(HF_INVALID,
                 hf_sink_new(d.s, HF_OPTIONS(hf_sink_ops, .name = "none"), &own, &d.sink));
    CHECK(!d.sink);
    CHECK_OK(
        hf_sink_new(d.s,
                    HF_OPTIONS(hf_sink_ops, .name = name, .send = own_send, .close = own_close),
                    &own, &d.sink));
    name[0] = 'x'; /* it was copied */
    CHECK_INT(1, hf_sink_ops(d.sink)->batch_max);
    CHECK_INT(sizeof(struct hf_sink_ops), hf_sink_ops(d.sink)->size);
    CHECK_STR("mine", str_of(hf_sink_ops(d.sink)->name));
    CHECK_OK(hf_sink_probe(d.s, d.sink));
    desk_add(&d, "a", NULL, "1");
    desk_add(&d, "b", NULL, "1");
    CHECK_STATUS(HF_INVALID, desk_send(&d)); /* more than it takes */
    CHECK_INT(0, own.seen_len);
    d.len = 0;
    CHECK_OK(desk_send(&d));
    CHECK_INT(0, own.seen_len);
    desk_close(&d);
    CHECK_INT(1, own.closed);
    hf_sink_close(NULL);
}

static void own_sink(struct desk *d, struct own *own, bool keeps_order)
{
    CHECK_OK(hf_sink_new(d->s,
                         HF_OPTIONS(hf_sink_ops, .name = "own", .send = own_send, .batch_max = 4,
                                    .event_bytes_max = 10, .keeps_order = keeps_order),
                         own, &d->sink));
}

/* (1) */
TEST(sink, what_nobody_spoke_of_was_not_delivered)
{
    struct own own = {.status = {HF_OK, HF_INTERNAL, HF_INVALID}};
    struct desk d;

    desk_open(t, &d);
    own_sink(&d, &own, false);
    desk_add(&d, "a", NULL, "1");
    desk_add(&d, "b", NULL, "1");
    desk_add(&d, "c", NULL, "1");
    CHECK_OK(desk_send(&d));
    CHECK_INT(HF_OK, d.deliveries[0].status);
    CHECK(!d.deliveries[0].for_good && !d.deliveries[0].error.ptr);
    CHECK_INT(HF_INTERNAL, d.deliveries[1].status);
    CHECK(!d.deliveries[1].for_good);
    CHECK_STR("the sink reported no outcome for it", d.deliveries[1].error);
    CHECK_INT(HF_INVALID, d.deliveries[2].status);
    CHECK(d.deliveries[2].for_good);
    CHECK_STR("no 7", d.deliveries[2].error);
    own.returns = HF_IO;
    CHECK_STATUS(HF_IO, desk_send(&d));
    CHECK_INT(HF_OK, d.deliveries[0].status);
    CHECK_STR("down", hf_scope_error(d.s)->message);
    hf_scope_cancel(d.s);
    CHECK_STATUS(HF_CANCELED, hf_sink_send(d.s, d.sink, d.deliveries, d.len));
    CHECK_INT(HF_INTERNAL, d.deliveries[0].status);
    CHECK_STATUS(HF_CANCELED, hf_sink_probe(d.s, d.sink));
    desk_close(&d);
}

/* (2) */
TEST(sink, an_event_that_is_too_large_is_kept_away_and_blocks_its_key)
{
    struct own own = {.returns = HF_OK};
    struct desk d;

    desk_open(t, &d);
    own_sink(&d, &own, true);
    desk_add(&d, "a", "k", "12345678901"); /* 11 bytes */
    desk_add(&d, "b", "k", "1");
    desk_add(&d, "c", "l", "1234567890");
    desk_add(&d, "d", NULL, "1");
    CHECK_OK(desk_send(&d));
    CHECK_INT(HF_LIMIT, d.deliveries[0].status);
    CHECK(d.deliveries[0].for_good);
    CHECK_HAS("11 bytes; a own sink takes at most 10", d.deliveries[0].error);
    CHECK_INT(HF_INTERNAL, d.deliveries[1].status);
    CHECK(!d.deliveries[1].for_good);
    CHECK_INT(HF_OK, d.deliveries[2].status);
    CHECK_INT(HF_OK, d.deliveries[3].status);
    CHECK_INT(2, own.seen_len);
    CHECK_STR("c", own.seen[0]);
    CHECK_STR("d", own.seen[1]);
    hf_sink_close(d.sink);

    /* One that does not keep order says itself that it has one event of a key. */
    own_sink(&d, &own, false);
    CHECK_OK(desk_send(&d));
    CHECK_INT(3, own.seen_len);
    CHECK_INT(HF_OK, d.deliveries[1].status);

    /* Headers count. */
    desk_clear(&d);
    desk_add(&d, "a", NULL, "1234567")->headers = HF_ITEM(d.keep, HF_S("ab", HF_STR("cd")));
    CHECK_OK(desk_send(&d));
    CHECK_INT(HF_LIMIT, d.deliveries[0].status);
    desk_close(&d);
}

/* ---- templates ------------------------------------------------------------------------------ */

static enum hf_status fill(struct desk *d, const char *text, const struct hf_event *event,
                           struct hf_str *out)
{
    struct template template;
    enum hf_status status = hf__template_read(d->s, d->s, "the topic", str_of(text), &template);

    return status == HF_OK ? hf__template_fill(d->s, &template, event, out) : status;
}

TEST(template, is_filled_in_with_what_the_event_says)
{
    static const struct {
        const char *text, *filled;
    } cases[] = {
        {"", ""},
        {"orders", "orders"},
        {"orders.{type}", "orders.order.placed"},
        {"{type}{key}{id}{source}", "order.placedk{{1/shop"},
        {"{aggregate}/{aggregate_type}/{tenant}/{destination}", "agg/aggt/ten/des"},
        {"{correlation}{causation}{schema}", "corcau2"},
        {"{header.a}-{header.n}-{header.b}", "{type}-7.5-true"},
        {"{header.none|x}{header.none|}{tenant|y}", "xten"},
        {"{{type}}", "{type}"},
        {"a{{b}}c{{{type}}}", "a{b}c{order.placed}"},
    };
    struct desk d;
    struct hf_event *event;

    desk_open(t, &d);
    event = desk_add(&d, "1", "k{{", "");
    event->aggregate = HF_STR("agg");
    event->aggregate_type = HF_STR("aggt");
    event->tenant = HF_STR("ten");
    event->destination = HF_STR("des");
    event->correlation = HF_STR("cor");
    event->causation = HF_STR("cau");
    event->schema = HF_STR("2");
    event->headers = HF_ITEM(d.keep, HF_S("a", HF_STR("{type}")), HF_NUM("n", HF_STR("7.50")),
                             HF_BOOL("b", true), HF_NULL("z"));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct hf_str out;

        CHECK_OK(fill(&d, cases[i].text, event, &out));
        CHECK_STR(cases[i].filled, out);
        CHECK_INT(0, out.ptr[out.len]);
    }
    desk_close(&d);
}

TEST(template, that_cannot_be_says_why)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        {"{typ}", "the topic has {typ}, which is not one of type, key"},
        {"{}", "the topic has {}, which is not one of"},
        {"{header.}", "without the name of a header"},
        {"a{type", "a { without a }"},
        {"a}b", "a } without a {"},
        {"{a{type}", "not one of"},
        {"{tenant}", "the event has no tenant, which the sink's URL refers to"},
        {"{header.q}", "the event has no header q"},
        {"{header.list}", "the header list of the event is not a string, a number or a boolean"},
    };
    struct hf_event event = {.type = HF_STR("t")};
    struct hf_str out;
    struct desk d;

    desk_open(t, &d);
    event.headers = HF_ITEM(d.keep, HF_L("list", HF_LIST(d.keep, HF_N("", 1))));
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        CHECK_STATUS(HF_INVALID, fill(&d, cases[i].text, &event, &out));
        CHECK_HAS(cases[i].part, hf_scope_error(d.s)->message);
    }
    desk_close(&d);
}

TEST(template, in_a_url_encodes_what_is_the_events)
{
    struct hf_event event = {.type = HF_STR("a/b?c#d e\xc3\xa4%..~-_")};
    struct template template;
    struct hf_str out;
    struct desk d;

    desk_open(t, &d);
    CHECK_OK(hf__template_read(d.s, d.s, "the path", HF_STR("/x/{type}?y=%20"), &template));
    CHECK(!template.is_fixed);
    CHECK_OK(hf__template_fill_url(d.s, &template, &event, &out));
    CHECK_STR("/x/a%2Fb%3Fc%23d%20e%C3%A4%25..~-_?y=%20", out);
    CHECK_OK(hf__template_read(d.s, d.s, "the path", HF_STR("/{{x}}"), &template));
    CHECK(template.is_fixed);
    CHECK_STR("/{x}", template.text);
    desk_close(&d);
}
