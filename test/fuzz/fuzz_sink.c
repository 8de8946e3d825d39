/*
 * test/fuzz/fuzz_sink.c: whatever the services behind sinks and S3 answer: refusals, and answers
 * about each entry of a batch.
 *
 * The first byte chooses the sink, or a call of S3; the second the HTTP status; of the third each
 * bit is for a field, whose value follows up to a line end. The rest is the body. Nothing is sent:
 * hf__transport_call() is wrapped by the linker, and gives that answer.
 *
 *  - A batch has an outcome for each event, or none is to blame and the scope says why.
 *  - A failure has a sentence, on one line, without control characters. That of a refusal by AWS has
 *    no secret in it.
 *  - S3 is believed to have done something only when it answered with a 2xx.
 */
#include <holdfast/sink.h>

#include <string.h>

#include "base/base.h"
#include "blob/s3.h"
#include "files.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SECRET "secret-key-of-the-fuzzer"

enum { EVENTS = 3, FIELD_MAX = 64, SENTENCE_MAX = 2048 };

static const char *const urls[] = {
    "sqs:https://sqs.eu-central-1.amazonaws.com/1/orders",
    "sqs:https://sqs.eu-central-1.amazonaws.com/1/orders.fifo",
    "sns:arn:aws:sns:eu-central-1:1:orders",
    "eventbridge:default",
    "webhook:https://localhost/hook",
};

static const struct {
    const char *method, *key, *query, *result;
} calls[] = {
    {"PUT", "key", NULL, NULL},
    {"GET", "key", NULL, NULL},
    {"HEAD", "key", NULL, NULL},
    {"GET", NULL, "list-type=2", "ListBucketResult"},
    {"POST", "key", "uploadId=1", "CompleteMultipartUploadResult"},
};

static const int statuses[] = {200, 204, 301, 400, 401, 403, 404, 408,
                               409, 412, 413, 429, 500, 501, 503, 507};

static const char *const names[] = {"retry-after", "date", "content-encoding",
                                    "x-amz-bucket-region"};

static struct hf_env env;
static struct hf_sink *sinks[ARRAY_LEN(urls)];
static struct s3 *s3;
static struct http_answer next;

/* ---- the world ------------------------------------------------------------------------------ */

enum hf_status __wrap_hf__transport_call(struct hf_scope *s, struct transport *transport,
                                         const struct transport_call *call,
                                         struct http_answer *answer);

enum hf_status __wrap_hf__transport_call(struct hf_scope *s, struct transport *transport,
                                         const struct transport_call *call,
                                         struct http_answer *answer)
{
    (void)transport;
    *answer = next;
    if (next.body.len > call->answer_max)
        return hf__fail(s, HF_LIMIT, "the answer is too large");
    return HF_OK;
}

static const char *variable(const char *name, void *user)
{
    static const char *const variables[][2] = {
        {"AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"},
        {"AWS_SECRET_ACCESS_KEY", SECRET},
        {"AWS_REGION", "eu-central-1"},
        {"AWS_CONFIG_FILE", "/dev/null"},
        {"AWS_EC2_METADATA_DISABLED", "true"},
        {"AWS_SHARED_CREDENTIALS_FILE", "/dev/null"},
        {"HOME", "/nonexistent"},
    };

    (void)user;
    for (size_t i = 0; i < ARRAY_LEN(variables); i++)
        if (strcmp(variables[i][0], name) == 0)
            return variables[i][1];
    return NULL;
}

static void open_all(void)
{
    struct hf_env ours = {.getenv = variable};
    struct hf_client_options once = {.size = sizeof(once), .retry = {.max_attempts = 1}};
    struct hf_scope *s;

    env = hf__env_fill(&ours);
    s = hf_scope_new(&env);
    MUST(s);
    for (size_t i = 0; i < ARRAY_LEN(urls); i++)
        MUST(hf_sink_open(s, hf_str_from(urls[i]), &sinks[i]) == HF_OK);
    MUST(hf__s3_open(s, &env, HF_STR("bucket?region=eu-central-1"), &once, &s3) == HF_OK);
    hf_scope_free(s);
}

/* ---- what has to be ------------------------------------------------------------------------- */

static void must_be_sentence(struct hf_str text)
{
    MUST(text.len && text.len < SENTENCE_MAX);
    for (size_t i = 0; i < text.len; i++)
        MUST((unsigned char)text.ptr[i] >= ' ' && text.ptr[i] != 127);
}

static void must_keep_secrets(struct hf_str text)
{
    MUST(!memmem(text.ptr, text.len, SECRET, sizeof(SECRET) - 1));
}

static void send_events(struct hf_scope *s, struct hf_sink *sink)
{
    static const char *const keys[EVENTS] = {"ann", "ben", "cay"};
    struct hf_outbox_event events[EVENTS] = {{.attempts = 0}};
    struct hf_delivery deliveries[EVENTS];
    enum hf_status status;
    size_t len = hf_sink_ops(sink)->batch_max < EVENTS ? 1 : EVENTS;
    bool is_aws = strcmp(hf_sink_ops(sink)->name, "webhook") != 0;

    for (size_t i = 0; i < len; i++) {
        events[i].event = (struct hf_event){.id = hf_str_from(keys[i]),
                                            .type = HF_STR("placed"),
                                            .key = hf_str_from(keys[i]),
                                            .time_us = INT64_C(1767225600000000),
                                            .source = HF_STR("shop"),
                                            .content_type = HF_STR("application/json"),
                                            .payload = hf_bytes_of("{}", 2)};
        deliveries[i] = (struct hf_delivery){.event = &events[i], .status = HF_INTERNAL};
    }
    status = hf_sink_send(s, sink, deliveries, len);
    if (status != HF_OK) {
        MUST(hf_scope_error(s)->status == status);
        must_be_sentence(hf_str_from(hf_scope_error_text(s)));
        if (is_aws && next.status != 200)
            must_keep_secrets(hf_str_from(hf_scope_error_text(s)));
    }
    for (size_t i = 0; i < len; i++) {
        const struct hf_delivery *d = &deliveries[i];

        MUST(d->status != HF_OK || next.status < 300);
        MUST(d->status != HF_OK || !d->for_good);
        if (status == HF_OK && d->status != HF_OK)
            must_be_sentence(d->error);
    }
}

static void call_s3(struct hf_scope *s, size_t which)
{
    struct s3_call call = {.method = calls[which].method, .result = calls[which].result};
    struct s3_answer answer;
    enum hf_status status;

    if (calls[which].key)
        call.key = hf_str_from(calls[which].key);
    if (calls[which].query)
        call.query = hf_str_from(calls[which].query);
    status = hf__s3_call(s, s3, &call, &answer);
    if (status == HF_OK) {
        MUST(next.status < 300);
        return;
    }
    MUST(hf_scope_error(s)->status == status);
    must_be_sentence(hf_str_from(hf_scope_error_text(s)));
    must_keep_secrets(hf_str_from(hf_scope_error_text(s)));
}

/* Up to a line end. */
static struct hf_str take_line(struct input *input)
{
    const char *begin = (const char *)input->at;
    const char *end = input->left ? memchr(begin, '\n', input->left) : NULL;
    size_t len = end ? (size_t)(end - begin) : input->left;

    input->at += end ? len + 1 : len;
    input->left -= end ? len + 1 : len;
    return hf_str_of(begin, len < FIELD_MAX ? len : FIELD_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input input = {data, size};
    size_t which = input_byte(&input) % (ARRAY_LEN(urls) + ARRAY_LEN(calls));
    int status = statuses[input_byte(&input) % ARRAY_LEN(statuses)];
    unsigned has = input_byte(&input);
    struct http_field fields[ARRAY_LEN(names)];
    struct hf_scope *s;

    if (!s3)
        open_all();
    next = (struct http_answer){.status = status, .fields = fields};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (has & 1u << i)
            fields[next.fields_len++] =
                (struct http_field){hf_str_from(names[i]), take_line(&input)};
    next.body = hf_bytes_of(input.at, input.left);
    s = hf_scope_new(&env);
    MUST(s);
    if (which < ARRAY_LEN(urls))
        send_events(s, sinks[which]);
    else
        call_s3(s, which - ARRAY_LEN(urls));
    hf_scope_free(s);
    return 0;
}
