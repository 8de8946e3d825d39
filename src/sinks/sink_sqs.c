/*
 * sinks/sink_sqs.c: Amazon SQS, by SendMessageBatch in its JSON protocol.
 *
 *     sqs:https://sqs.eu-central-1.amazonaws.com/123456789012/orders
 *     sqs:https://sqs.eu-central-1.amazonaws.com/123456789012/orders.fifo
 *
 * What always holds:
 *
 *  (1) The ids of entries are their places in the call, so they are distinct and of characters that
 *      SQS takes, whatever the ids of events are.
 *  (2) An entry that is missing in the answer, or is in both of its lists, was not delivered.
 */
#include "sinks/aws.h"

#include "ops/table.h"
#include "wire/wire.h"

enum { SQS_MAX = 1024 * 1024 }; /* of a message, and of all in a call; 256 KiB until 2025 */

struct sqs_options {
    struct aws_options aws;
    struct message_options message;
};

struct sqs {
    struct hf_env env;
    struct sqs_options options;
    struct template queue;
    struct message_how how;
    struct aws *aws;
};

static const struct sink_option options[] = {AWS_OPTIONS(struct sqs_options),
                                             MESSAGE_OPTIONS(struct sqs_options)};

/* ---- requests ------------------------------------------------------------------------------- */

static void put_attributes(struct hf__buf *buf, const struct message *message)
{
    for (size_t i = 0; i < message->attributes_len; i++) {
        hf__buf_put_str(buf, i ? HF_STR(",") : HF_STR(",\"MessageAttributes\":{"));
        hf__wire_write_str(buf, message->attributes[i].name);
        hf__buf_put_str(buf, HF_STR(":{\"DataType\":\"String\",\"StringValue\":"));
        hf__wire_write_str(buf, message->attributes[i].value);
        hf__buf_put_byte(buf, '}');
    }
    if (message->attributes_len)
        hf__buf_put_byte(buf, '}');
}

static void put_member(struct hf__buf *buf, const char *name, struct hf_str value)
{
    if (!value.len)
        return;
    hf__buf_format(buf, ",\"%s\":", name);
    hf__wire_write_str(buf, value);
}

/* All of the entry but its id. */
static enum hf_status entry_make(struct hf_scope *s, void *self, const struct hf_event *event,
                                 struct aws_entry *entry)
{
    struct sqs *sqs = self;
    struct hf__buf buf = {.scope = s};
    struct message message;

    TRY(hf__template_fill(s, &sqs->queue, event, &entry->target));
    TRY(hf__message_make(s, &sqs->how, event, &message));
    hf__buf_reserve(&buf, message.body.len + message.body.len / 4 + 512);
    put_member(&buf, "MessageBody", message.body);
    put_attributes(&buf, &message);
    put_member(&buf, "MessageGroupId", message.group);
    put_member(&buf, "MessageDeduplicationId", message.dedup);
    if (buf.failed)
        return hf__fail_nomem(s);
    entry->text = hf_str_of((const char *)buf.ptr, buf.len);
    assert(entry->text.len > 0 && entry->text.ptr[0] == ','); /* it follows the id */
    entry->bytes = message.bytes;
    return HF_OK;
}

static enum hf_status request_make(struct hf_scope *s, void *self, struct aws_entry *const *entries,
                                   size_t len, struct aws_request *out)
{
    struct hf__buf buf = {.scope = s};

    (void)self;
    assert(len > 0 && len <= AWS_BATCH);
    hf__buf_put_str(&buf, HF_STR("{\"QueueUrl\":"));
    hf__wire_write_str(&buf, entries[0]->target);
    hf__buf_put_str(&buf, HF_STR(",\"Entries\":["));
    for (size_t i = 0; i < len; i++) {
        hf__buf_format(&buf, "%s{\"Id\":\"%zu\"", i ? "," : "", i); /* (1) */
        hf__buf_put_str(&buf, entries[i]->text);
        hf__buf_put_byte(&buf, '}');
    }
    hf__buf_put_str(&buf, HF_STR("]}"));
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = (struct aws_request){.content_type = "application/x-amz-json-1.0",
                                .target = "AmazonSQS.SendMessageBatch",
                                .body = hf_bytes_of(buf.ptr, buf.len)};
    return HF_OK;
}

/* ---- answers -------------------------------------------------------------------------------- */

struct sqs_done {
    struct hf_str id;
    struct hf_str message_id;
};

struct sqs_failed {
    struct hf_str id;
    struct hf_str code;
    struct hf_str message;
    enum hf_flag sender_fault;
};

struct sqs_answer {
    const struct sqs_done *done;
    size_t done_len;
    const struct sqs_failed *failed;
    size_t failed_len;
};

#define T sqs_done
static const struct field done_list[] = {
    STR("Id", id, .rules = 0),
    STR("MessageId", message_id, .rules = 0),
};
static TABLE(done, "SendMessageBatchResultEntry");
#undef T

#define T sqs_failed
static const struct field failed_list[] = {
    STR("Id", id, .rules = 0),
    STR("Code", code, .rules = 0),
    STR("Message", message, .rules = 0),
    FLAG("SenderFault", sender_fault, .rules = 0),
};
static TABLE(failed, "BatchResultErrorEntry");
#undef T

#define T sqs_answer
static const struct field answer_list[] = {
    STRUCTS("Successful", done, done, .rules = 0),
    STRUCTS("Failed", failed, failed, .rules = 0),
};
static TABLE(answer, "SendMessageBatchResult");
#undef T

/* (2) */
static enum hf_status read_answer(struct hf_scope *s, void *self, struct hf_str body,
                                  struct hf_delivery *const *deliveries, size_t len)
{
    struct sqs_answer parsed = {.done = NULL};

    (void)self;
    TRY(hf__wire_read_answer(s, &answer, body, &parsed));
    for (size_t i = 0; i < parsed.done_len; i++) {
        size_t place = hf__aws_place(parsed.done[i].id, len);

        if (place != SIZE_MAX && parsed.done[i].message_id.len)
            hf__aws_outcome(s, "SQS", deliveries[place], &(struct aws_outcome){.done = true});
    }
    for (size_t i = 0; i < parsed.failed_len; i++) {
        const struct sqs_failed *failure = &parsed.failed[i];
        size_t place = hf__aws_place(failure->id, len);
        const struct aws_outcome outcome = {.for_good = failure->sender_fault == HF_YES,
                                            .code = failure->code,
                                            .message = failure->message};

        if (place != SIZE_MAX)
            hf__aws_outcome(s, "SQS", deliveries[place], &outcome);
    }
    return HF_OK;
}

/* ---- the sink ------------------------------------------------------------------------------- */

static enum hf_status sqs_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                               size_t len)
{
    static const struct aws_service service = {entry_make, request_make, read_answer};
    struct sqs *sqs = self;

    const struct aws_sender sender = {.aws = sqs->aws,
                                      .service = &service,
                                      .self = sqs,
                                      .limits = &sqs->options.aws,
                                      .target_is_fixed = sqs->queue.is_fixed};

    return hf__aws_send(s, &sender, deliveries, len);
}

static void sqs_close(void *self)
{
    struct sqs *sqs = self;
    struct hf_env env = sqs->env;

    hf__aws_close(sqs->aws);
    hf__env_free(&env, sqs, sizeof(*sqs));
}

/* "https://host" of "https://host/account/name". */
static struct hf_str origin_of(struct hf_str queue)
{
    const char *slashes = memmem(queue.ptr, queue.len, "://", 3);
    const char *end = queue.ptr + queue.len;
    const char *slash = slashes ? memchr(slashes + 3, '/', (size_t)(end - slashes - 3)) : NULL;

    return slash ? hf_str_of(queue.ptr, (size_t)(slash - queue.ptr)) : (struct hf_str){0};
}

static enum hf_status open_parts(struct hf_scope *s, const struct sink_url *url, struct sqs *sqs)
{
    struct aws_ask ask = {.name = "SQS", .service = ENDPOINT_SQS};
    enum hf_status status = HF_INVALID;
    struct endpoint there;
    struct hf_str name;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), &sqs->options));
    TRY(hf__sink_decode(s, url->memory, "the queue", url->rest, &name));
    TRY(hf__template_read(s, url->memory, "the queue", name, &sqs->queue));
    ask.origin = origin_of(name);
    if (ask.origin.len && !memchr(ask.origin.ptr, '{', ask.origin.len))
        status = hf__endpoint_of_url(s, ask.origin, &there);
    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK)
        return hf__fail(s, HF_INVALID,
                        "the URL of an SQS sink is sqs:QUEUE-URL, such as "
                        "sqs:https://sqs.eu-central-1.amazonaws.com/123456789012/orders");
    ask.region = there.signing_region;
    TRY(hf__message_prepare(s, url->memory, "SQS", &sqs->options.message, hf__message_is_fifo(name),
                            &sqs->how));
    return hf__aws_open(s, url->memory, &ask, &sqs->options.aws, &sqs->aws);
}

enum hf_status hf__sink_sqs_open(struct hf_scope *s, const struct sink_url *url,
                                 struct hf_sink **sink)
{
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "sqs",
                              .batch_max = AWS_BATCH,
                              .send = sqs_send,
                              .close = sqs_close};
    struct sqs *sqs = hf__env_alloc(hf_scope_env(s), sizeof(*sqs));
    enum hf_status status;

    if (!sqs)
        return hf__fail_nomem(s);
    *sqs = (struct sqs){.env = *hf_scope_env(s),
                        .options.aws = {.max_bytes = SQS_MAX, .batch_bytes = SQS_MAX}};
    status = open_parts(s, url, sqs);
    hf__aws_limits(&sqs->options.aws, &ops);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, sqs, sink);
    if (status != HF_OK)
        sqs_close(sqs);
    return status;
}
