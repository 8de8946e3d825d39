/*
 * sinks/sink_sns.c: Amazon SNS, by PublishBatch in AWS's query protocol: a form goes there, XML
 * comes back.
 *
 *     sns:arn:aws:sns:eu-central-1:123456789012:orders
 *     sns:arn:aws:sns:eu-central-1:123456789012:orders.fifo
 *
 * Entries are written as a form's parameters with "@" in the place of their number, which is not
 * known before the call is put together: nothing else of them has an "@" in it, as it is encoded.
 *
 * What always holds: as in sink_sqs.c.
 */
#include "sinks/aws.h"

#include "client/xml.h"

enum { SNS_MAX = 256 * 1024 }; /* of a message, and of all in a call */

struct sns_options {
    struct aws_options aws;
    struct message_options message;
    struct hf_str subject;
};

struct sns {
    struct hf_env env;
    struct sns_options options;
    struct template topic;
    struct template subject;
    struct message_how how;
    struct aws *aws;
};

static const struct sink_option options[] = {
    AWS_OPTIONS(struct sns_options),
    MESSAGE_OPTIONS(struct sns_options),
    {"subject", SINK_TEXT, offsetof(struct sns_options, subject), 0, 0, NULL},
};

/* ---- requests ------------------------------------------------------------------------------- */

#define ENTRY "&PublishBatchRequestEntries.member.@."

static void parameter_put(struct hf__buf *buf, const char *name, struct hf_str value)
{
    if (!value.len)
        return;
    hf__buf_format(buf, ENTRY "%s=", name);
    hf__buf_put_url(buf, value, "");
}

static void put_attribute(struct hf__buf *buf, size_t number,
                          const struct event_attribute *attribute)
{
    hf__buf_format(buf, ENTRY "MessageAttributes.entry.%zu.Name=", number);
    hf__buf_put_url(buf, attribute->name, "");
    hf__buf_format(buf, ENTRY "MessageAttributes.entry.%zu.Value.DataType=String", number);
    hf__buf_format(buf, ENTRY "MessageAttributes.entry.%zu.Value.StringValue=", number);
    hf__buf_put_url(buf, attribute->value, "");
}

/* Up to 100 characters of ASCII; the first is not a blank. */
static enum hf_status make_subject(struct hf_scope *s, const struct sns *sns,
                                   const struct hf_event *event, struct hf_str *subject)
{
    enum { SUBJECT_MAX = 100 };

    *subject = (struct hf_str){0};
    if (!sns->subject.len)
        return HF_OK;
    TRY(hf__template_fill(s, &sns->subject, event, subject));
    for (size_t i = 0; i < subject->len; i++)
        if (subject->ptr[i] < (i ? ' ' : '!') || subject->ptr[i] >= 127)
            return hf__fail(s, HF_INVALID, "its subject has characters that SNS does not accept");
    if (subject->len > SUBJECT_MAX)
        subject->len = SUBJECT_MAX;
    return HF_OK;
}

static enum hf_status entry_make(struct hf_scope *s, void *self, const struct hf_event *event,
                                 struct aws_entry *entry)
{
    struct sns *sns = self;
    struct hf__buf buf = {.scope = s};
    struct message message;
    struct hf_str subject;

    TRY(hf__template_fill(s, &sns->topic, event, &entry->target));
    TRY(hf__message_make(s, &sns->how, event, &message));
    TRY(make_subject(s, sns, event, &subject));
    hf__buf_reserve(&buf, message.body.len * 2 + 1024);
    parameter_put(&buf, "Message", message.body);
    parameter_put(&buf, "Subject", subject);
    for (size_t i = 0; i < message.attributes_len; i++)
        put_attribute(&buf, i + 1, &message.attributes[i]);
    parameter_put(&buf, "MessageGroupId", message.group);
    parameter_put(&buf, "MessageDeduplicationId", message.dedup);
    if (buf.failed)
        return hf__fail_nomem(s);
    entry->text = hf_str_of((const char *)buf.ptr, buf.len);
    assert(entry->text.len > 0 && entry->text.ptr[0] == '&'); /* it follows the id */
    entry->bytes = message.bytes + subject.len;
    return HF_OK;
}

/* The parameters of an entry, with its number. */
static void put_numbered(struct hf__buf *buf, struct hf_str text, size_t number)
{
    const char *end = text.ptr + text.len;
    const char *at;

    while ((at = memchr(text.ptr, '@', (size_t)(end - text.ptr))) != NULL) {
        hf__buf_put(buf, text.ptr, (size_t)(at - text.ptr));
        hf__buf_format(buf, "%zu", number);
        text.ptr = at + 1;
    }
    hf__buf_put(buf, text.ptr, (size_t)(end - text.ptr));
}

static enum hf_status request_make(struct hf_scope *s, void *self, struct aws_entry *const *entries,
                                   size_t len, struct aws_request *out)
{
    struct hf__buf buf = {.scope = s};

    (void)self;
    assert(len > 0 && len <= AWS_BATCH);
    hf__buf_put_str(&buf, HF_STR("Action=PublishBatch&Version=2010-03-31&TopicArn="));
    hf__buf_put_url(&buf, entries[0]->target, "");
    for (size_t i = 0; i < len; i++) {
        hf__buf_format(&buf, "&PublishBatchRequestEntries.member.%zu.Id=%zu", i + 1, i);
        put_numbered(&buf, entries[i]->text, i + 1);
    }
    if (buf.failed)
        return hf__fail_nomem(s);
    *out = (struct aws_request){.content_type = "application/x-www-form-urlencoded; charset=utf-8",
                                .body = hf_bytes_of(buf.ptr, buf.len)};
    return HF_OK;
}

/* ---- answers -------------------------------------------------------------------------------- */

#define RESULT "PublishBatchResponse/PublishBatchResult"

struct sns_answer {
    struct hf_scope *s;
    struct hf_delivery *const *deliveries;
    size_t len;
    bool has_result;
    struct hf_str id, message_id, code, message, sender_fault; /* of the entry that is being read */
};

static void end_entry(struct sns_answer *answer, bool successful)
{
    size_t place = hf__aws_place(answer->id, answer->len);
    struct aws_outcome outcome = {.done = successful,
                                  .for_good = hf_str_equal(answer->sender_fault, HF_STR("true")),
                                  .code = answer->code,
                                  .message = answer->message};

    if (place != SIZE_MAX && (!successful || answer->message_id.len))
        hf__aws_outcome(answer->s, "SNS", answer->deliveries[place], &outcome);
    answer->id = answer->message_id = answer->code = answer->message = answer->sender_fault =
        (struct hf_str){0};
}

static bool read_element(void *user, struct hf_str path, struct hf_str text)
{
    struct sns_answer *answer = user;
    const struct {
        const char *name;
        struct hf_str *value;
    } members[] = {{"/member/Id", &answer->id},
                   {"/member/MessageId", &answer->message_id},
                   {"/member/Code", &answer->code},
                   {"/member/Message", &answer->message},
                   {"/member/SenderFault", &answer->sender_fault}};
    struct hf_str rest, member;
    bool successful;

    if (!str_after(path, HF_STR(RESULT), &rest))
        return true;
    answer->has_result = true;
    successful = str_after(rest, HF_STR("/Successful"), &member);
    if (!successful && !str_after(rest, HF_STR("/Failed"), &member))
        return true;
    if (hf_str_equal(member, HF_STR("/member")))
        end_entry(answer, successful);
    for (size_t i = 0; i < ARRAY_LEN(members); i++)
        if (hf_str_equal(member, hf_str_from(members[i].name)))
            *members[i].value = text;
    return true;
}

static enum hf_status read_answer(struct hf_scope *s, void *self, struct hf_str body,
                                  struct hf_delivery *const *deliveries, size_t len)
{
    struct sns_answer answer = {.s = s, .deliveries = deliveries, .len = len};

    (void)self;
    TRY(hf__xml_walk(s, body, read_element, &answer));
    return answer.has_result ? HF_OK : HF_INVALID;
}

/* ---- the sink ------------------------------------------------------------------------------- */

static enum hf_status sns_send(struct hf_scope *s, void *self, struct hf_delivery *deliveries,
                               size_t len)
{
    static const struct aws_service service = {entry_make, request_make, read_answer};
    struct sns *sns = self;

    const struct aws_sender sender = {.aws = sns->aws,
                                      .service = &service,
                                      .self = sns,
                                      .limits = &sns->options.aws,
                                      .target_is_fixed = sns->topic.is_fixed};

    return hf__aws_send(s, &sender, deliveries, len);
}

static void sns_close(void *self)
{
    struct sns *sns = self;
    struct hf_env env = sns->env;

    hf__aws_close(sns->aws);
    hf__env_free(&env, sns, sizeof(*sns));
}

static enum hf_status open_parts(struct hf_scope *s, const struct sink_url *url, struct sns *sns)
{
    struct aws_ask ask = {.name = "SNS", .service = ENDPOINT_SNS};
    struct hf_str name;

    TRY(hf__sink_options(s, url, options, ARRAY_LEN(options), &sns->options));
    TRY(hf__sink_decode(s, url->memory, "the topic", url->rest, &name));
    TRY(hf__template_read(s, url->memory, "the topic", name, &sns->topic));
    if (sns->options.subject.len)
        TRY(hf__template_read(s, url->memory, "the option subject", sns->options.subject,
                              &sns->subject));
    if (!hf__aws_arn(name, "sns", &ask.region))
        return hf__fail(s, HF_INVALID,
                        "the URL of an SNS sink is sns:TOPIC-ARN, such as "
                        "sns:arn:aws:sns:eu-central-1:123456789012:orders");
    TRY(hf__message_prepare(s, url->memory, "SNS", &sns->options.message, hf__message_is_fifo(name),
                            &sns->how));
    return hf__aws_open(s, url->memory, &ask, &sns->options.aws, &sns->aws);
}

enum hf_status hf__sink_sns_open(struct hf_scope *s, const struct sink_url *url,
                                 struct hf_sink **sink)
{
    struct hf_sink_ops ops = {.size = sizeof(ops),
                              .name = "sns",
                              .batch_max = AWS_BATCH,
                              .send = sns_send,
                              .close = sns_close};
    struct sns *sns = hf__env_alloc(hf_scope_env(s), sizeof(*sns));
    enum hf_status status;

    if (!sns)
        return hf__fail_nomem(s);
    *sns = (struct sns){.env = *hf_scope_env(s),
                        .options.aws = {.max_bytes = SNS_MAX, .batch_bytes = SNS_MAX}};
    status = open_parts(s, url, sns);
    hf__aws_limits(&sns->options.aws, &ops);
    if (status == HF_OK)
        status = hf_sink_new(s, &ops, sns, sink);
    if (status != HF_OK)
        sns_close(sns);
    return status;
}
