/*
 * sinks/aws.c: one signed call to a service of Amazon's, and who is to blame when it is refused.
 *
 * Configuration, credentials and endpoints are the client's; client/service.c signs and sends, and
 * deals with a clock that is off and with credentials that are refused. All else is for the relay,
 * which knows how to wait.
 *
 * When a whole call is refused, the cause is the service, its target or one entry, and a wrong guess
 * is expensive: an outage that is blamed on events makes dead letters of them, and an event that is
 * blamed on the service stops all the others. So known error codes decide. Of unknown ones, 5xx,
 * 401, 403, 408 and 429 are blamed on the service, and any other 4xx on an entry, which then fails
 * after its last attempt.
 *
 * What always holds:
 *
 *  (1) Any thread may call; client/service.c takes care of that.
 *  (2) A call that is not HF_OK has no answer; the error says whether it may have happened.
 *  (3) No secret is part of an error or a log line.
 */
#include "sinks/aws.h"

#include "client/credentials.h"
#include "client/service.h"
#include "client/xml.h"
#include "http/sign.h"
#include "http/transport.h"
#include "ops/table.h"
#include "wire/wire.h"

enum { TIMEOUT_MS = 10000, ANSWER_MAX = 1024 * 1024 };

struct aws {
    struct hf_env env;
    const char *name;
    struct config *config;
    struct transport *transport;
    struct credentials *credentials;
    struct endpoint endpoint;
    struct hf_str target; /* path of requests */
    uint32_t timeout_ms;
    struct service service;
};

const char *hf__aws_name(const struct aws *aws)
{
    return aws->name;
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool is_word(struct hf_str text, const char *word)
{
    return hf_str_equal(text, hf_str_from(word));
}

/* Is the host of this origin one of Amazon's? */
static enum hf_status is_amazons(struct hf_scope *s, struct hf_str origin, bool *yes)
{
    struct endpoint endpoint;

    TRY(hf__endpoint_of_url(s, origin, &endpoint));
    *yes = endpoint.signing_region.len > 0;
    return HF_OK;
}

static enum hf_status find_region(struct hf_scope *s, struct aws *aws, const struct aws_ask *ask,
                                  const struct aws_options *options, bool elsewhere,
                                  struct hf_str *region)
{
    *region = options->region.len ? options->region : ask->region;
    if (!region->len)
        TRY(hf__config_region(s, aws->config, *region, region));
    if (!region->len && elsewhere)
        *region = HF_STR("us-east-1"); /* only the signature needs one */
    if (!region->len)
        TRY(hf__credentials_region(s, aws->config, region));
    if (!region->len)
        return hf__fail(s, HF_INVALID,
                        "no region for %s: set region in the sink's URL, AWS_REGION, or region in "
                        "the profile",
                        ask->name);
    return HF_OK;
}

static enum hf_status find_endpoint(struct hf_scope *s, struct aws *aws, struct hf_scope *memory,
                                    const struct aws_ask *ask, const struct aws_options *options)
{
    struct endpoint *found = &aws->endpoint;
    struct hf_str origin = options->endpoint;
    struct hf_str region;

    TRY(find_region(s, aws, ask, options, origin.len || ask->origin.len, &region));
    TRY(hf__endpoint_find(s, aws->config,
                          &(struct endpoint_ask){.service = ask->service, .region = region},
                          found));
    if (!origin.len && ask->origin.len) {
        bool found_is, asked_is;

        TRY(is_amazons(s, found->origin, &found_is));
        TRY(is_amazons(s, ask->origin, &asked_is));
        if (found_is && !asked_is)
            origin = ask->origin;
    }
    if (origin.len) {
        struct hf_str signing = found->signing_name;

        TRY(hf__endpoint_of_url(s, origin, found));
        found->signing_name = signing;
        found->signing_region = region;
    }
    aws->target =
        found->path.len ? hf_scope_format(memory, "%.*s/", HF_FMT(found->path)) : HF_STR("/");
    if (!aws->target.ptr)
        return hf__fail_nomem(s);
    return hf__endpoint_keep(s, memory, found);
}

static enum hf_status open_transport(struct hf_scope *s, struct aws *aws,
                                     const struct aws_options *options)
{
    struct transport_options t = {.env = &aws->env,
                                  .connect_ms = (uint32_t)options->connect_ms,
                                  .ca_file = options->ca_file,
                                  .http_proxy = options->proxy,
                                  .https_proxy = options->proxy};

    if (is_word(options->proxy, "none")) {
        t.http_proxy = t.https_proxy = (struct hf_str){0};
    } else if (!options->proxy.len) {
        hf__config_proxy(aws->config, false, &t.http_proxy, &t.no_proxy);
        hf__config_proxy(aws->config, true, &t.https_proxy, &t.no_proxy);
    }
    if (!t.ca_file.len)
        t.ca_file = hf__config_ca_bundle(aws->config);
    return hf__transport_open(s, &t, &aws->transport);
}

static enum hf_status open_parts(struct hf_scope *s, struct hf_scope *memory, struct aws *aws,
                                 const struct aws_ask *ask, const struct aws_options *options)
{
    struct credentials_options c = {.profile_asked = options->profile.len > 0};

    aws->service.agent = hf_scope_format(memory, "holdfast/%s", hf_version());
    if (!aws->service.agent.ptr)
        return hf__fail_nomem(s);
    TRY(hf__config_load(s, &aws->env, options->profile, false, &aws->config));
    TRY(find_endpoint(s, aws, memory, ask, options));
    TRY(open_transport(s, aws, options));
    c.config = aws->config;
    c.transport = aws->transport;
    c.region = aws->endpoint.signing_region;
    c.local = hf__endpoint_is_loopback(&aws->endpoint);
    TRY(hf__credentials_open(s, &c, &aws->credentials));
    aws->service.transport = aws->transport;
    aws->service.credentials = aws->credentials;
    return HF_OK;
}

enum hf_status hf__aws_open(struct hf_scope *s, struct hf_scope *memory, const struct aws_ask *ask,
                            const struct aws_options *options, struct aws **aws)
{
    const struct hf_env *env = hf_scope_env(s);
    struct aws *made = hf__env_alloc(env, sizeof(*made));
    enum hf_status status;

    assert(ask->name && options->timeout_ms <= UINT32_MAX && options->connect_ms <= UINT32_MAX);
    *aws = NULL;
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    made->env = *env;
    made->name = ask->name;
    made->timeout_ms = options->timeout_ms ? (uint32_t)options->timeout_ms : TIMEOUT_MS;
    hf__service_init(&made->service, &made->env, ask->name);
    status = open_parts(s, memory, made, ask, options);
    if (status != HF_OK) {
        hf__aws_close(made);
        return status;
    }
    assert(made->transport && made->credentials && made->target.len > 0);
    *aws = made;
    return HF_OK;
}

void hf__aws_close(struct aws *aws)
{
    struct hf_env env;

    if (!aws)
        return;
    env = aws->env;
    hf__service_free(&aws->service);
    hf__credentials_close(aws->credentials);
    hf__transport_close(aws->transport);
    hf__config_free(aws->config);
    hf__env_free(&env, aws, sizeof(*aws));
}

bool hf__aws_arn(struct hf_str arn, const char *service, struct hf_str *region)
{
    struct hf_str parts[5]; /* arn, partition, service, region, account */

    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        const char *colon = arn.len ? memchr(arn.ptr, ':', arn.len) : NULL;

        if (!colon)
            return false;
        parts[i] = hf_str_of(arn.ptr, (size_t)(colon - arn.ptr));
        if (!parts[i].len || memchr(parts[i].ptr, '{', parts[i].len))
            return false;
        arn = hf_str_of(colon + 1, arn.len - parts[i].len - 1);
    }
    *region = parts[3];
    return arn.len > 0 && is_word(parts[0], "arn") && is_word(parts[2], service);
}

void hf__aws_limits(const struct aws_options *options, struct hf_sink_ops *ops)
{
    assert(options->max_bytes > 0 && options->batch_bytes > 0);
    ops->event_bytes_max = options->max_bytes;
    ops->batch_bytes_max =
        options->batch_bytes > options->max_bytes ? options->batch_bytes : options->max_bytes;
}

/* ---- refusals ------------------------------------------------------------------------------- */

struct refusal {
    struct hf_str code; /* without namespace and without "Exception" at its end */
    struct hf_str message;
};

static const struct {
    const char *code;
    enum aws_blame blame;
    enum hf_status status;
} known[] = {
    {"Throttling", AWS_SINK, HF_THROTTLED},
    {"Throttled", AWS_SINK, HF_THROTTLED},
    {"RequestThrottled", AWS_SINK, HF_THROTTLED},
    {"KmsThrottled", AWS_SINK, HF_THROTTLED},
    {"KMSThrottling", AWS_SINK, HF_THROTTLED},
    {"RequestLimitExceeded", AWS_SINK, HF_THROTTLED},
    {"TooManyRequests", AWS_SINK, HF_THROTTLED},
    {"SlowDown", AWS_SINK, HF_THROTTLED},
    {"OverLimit", AWS_SINK, HF_THROTTLED},
    {"LimitExceeded", AWS_SINK, HF_THROTTLED},
    {"AccessDenied", AWS_SINK, HF_DENIED},
    {"AuthorizationError", AWS_SINK, HF_DENIED},
    {"AuthFailure", AWS_SINK, HF_DENIED},
    {"InvalidClientTokenId", AWS_SINK, HF_DENIED},
    {"UnrecognizedClient", AWS_SINK, HF_DENIED},
    {"ExpiredToken", AWS_SINK, HF_DENIED},
    {"IncompleteSignature", AWS_SINK, HF_DENIED},
    {"InvalidSignature", AWS_SINK, HF_DENIED},
    {"SignatureDoesNotMatch", AWS_SINK, HF_DENIED},
    {"MissingAuthenticationToken", AWS_SINK, HF_DENIED},
    {"RequestExpired", AWS_SINK, HF_DENIED},
    {"RequestTimeTooSkewed", AWS_SINK, HF_DENIED},
    {"InvalidSecurity", AWS_SINK, HF_DENIED},
    {"OptInRequired", AWS_SINK, HF_DENIED},
    {"KmsAccessDenied", AWS_SINK, HF_DENIED},
    {"KMSAccessDenied", AWS_SINK, HF_DENIED},
    {"KmsDisabled", AWS_SINK, HF_DENIED},
    {"KMSDisabled", AWS_SINK, HF_DENIED},
    {"KmsInvalidState", AWS_SINK, HF_DENIED},
    {"KMSInvalidState", AWS_SINK, HF_DENIED},
    {"KmsInvalidKeyUsage", AWS_SINK, HF_DENIED},
    {"KmsNotFound", AWS_SINK, HF_DENIED},
    {"KMSNotFound", AWS_SINK, HF_DENIED},
    {"KmsOptInRequired", AWS_SINK, HF_DENIED},
    {"KMSOptInRequired", AWS_SINK, HF_DENIED},
    {"InternalError", AWS_SINK, HF_IO},
    {"InternalFailure", AWS_SINK, HF_IO},
    {"Internal", AWS_SINK, HF_IO},
    {"ServiceUnavailable", AWS_SINK, HF_IO},
    {"RequestTimeout", AWS_SINK, HF_IO},
    {"InvalidAddress", AWS_TARGET, HF_NOT_FOUND},
    {"NonExistentQueue", AWS_TARGET, HF_NOT_FOUND},
    {"QueueDoesNotExist", AWS_TARGET, HF_NOT_FOUND},
    {"QueueDeletedRecently", AWS_TARGET, HF_NOT_FOUND},
    {"NotFound", AWS_TARGET, HF_NOT_FOUND},
    {"ResourceNotFound", AWS_TARGET, HF_NOT_FOUND},
    {"BatchRequestTooLong", AWS_ENTRY, HF_LIMIT},
    {"RequestEntityTooLarge", AWS_ENTRY, HF_LIMIT},
    {"InvalidMessageContents", AWS_ENTRY, HF_INVALID},
    {"InvalidParameterValue", AWS_ENTRY, HF_INVALID},
    {"InvalidAttributeValue", AWS_ENTRY, HF_INVALID},
    {"InvalidAttributeName", AWS_ENTRY, HF_INVALID},
    {"ParameterValueInvalid", AWS_ENTRY, HF_INVALID},
    {"InvalidParameter", AWS_ENTRY, HF_INVALID},
    {"Validation", AWS_ENTRY, HF_INVALID},
    {"ValidationError", AWS_ENTRY, HF_INVALID},
    {"Serialization", AWS_ENTRY, HF_INVALID},
};

bool hf__aws_is_service_code(struct hf_str code, enum hf_status *status)
{
    code = hf__service_code(code);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is_word(code, known[i].code)) {
            *status = known[i].status;
            return *status == HF_THROTTLED || *status == HF_DENIED;
        }
    return false;
}

struct error_body {
    struct hf_str type;
    struct hf_str message;
    struct hf_str Message;
};

#define T error_body
static const struct field body_list[] = {
    STR("__type", type, .rules = 0),
    STR("message", message, .rules = 0),
    STR("Message", Message, .rules = 0),
};
static TABLE(body, "Error");
#undef T

static enum hf_status read_refusal(struct hf_scope *s, const struct service_try *try,
                                   struct refusal *refusal)
{
    struct hf_bytes raw = try->answer.body;
    struct hf_str text = hf_str_of((const char *)raw.ptr, raw.len);
    struct error_body error = {.type = {NULL, 0}};
    const struct xml_want wants[] = {{"ErrorResponse/Error/Code", &error.type},
                                     {"ErrorResponse/Error/Message", &error.message}};
    enum hf_status status = text.len && *text.ptr == '<'
                                ? hf__xml_read(s, text, wants, ARRAY_LEN(wants))
                                : hf__wire_read_answer(s, &body, text, &error);

    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) /* a proxy has answered: only the HTTP status is known */
        error = (struct error_body){.type = {NULL, 0}};
    hf__scope_error_clear(s);
    if (!error.message.len)
        error.message = error.Message;
    *refusal =
        (struct refusal){.code =
                             hf__service_quote(s, try, hf__service_code(error.type), AWS_CODE_MAX),
                         .message = hf__service_quote(s, try, error.message, AWS_MESSAGE_MAX)};
    return HF_OK;
}

static void refusal_classify(int http_status, struct hf_str code, enum aws_blame *blame,
                             enum hf_status *status)
{
    assert(http_status != 200);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is_word(code, known[i].code)) {
            *blame = known[i].blame;
            *status = known[i].status;
            return;
        }
    *blame = AWS_SINK;
    *status = HF_IO;
    if (http_status == 429 || http_status == 503) {
        *status = HF_THROTTLED;
    } else if (http_status == 401 || http_status == 403) {
        *status = HF_DENIED;
    } else if (http_status == 404) {
        *blame = AWS_TARGET;
        *status = HF_NOT_FOUND;
    } else if (http_status == 413) {
        *blame = AWS_ENTRY;
        *status = HF_LIMIT;
    } else if (http_status >= 400 && http_status < 500 && http_status != 408) {
        *blame = AWS_UNSURE;
        *status = HF_INVALID;
    }
}

/* Set the error of the scope, and what is to blame. */
static void refusal_report(struct hf_scope *s, const struct aws *aws,
                           const struct http_answer *http, const struct refusal *refusal,
                           struct aws_answer *answer)
{
    enum hf_status status;
    struct hf_error *error;

    refusal_classify(http->status, refusal->code, &answer->blame, &status);
    assert(answer->blame != AWS_NOBODY && status != HF_OK);
    hf__fail(s, status, "%s refused the request: HTTP status %d%s%.*s%s%.*s", aws->name,
             http->status, refusal->code.len ? ", " : "", HF_FMT(refusal->code),
             refusal->message.len ? ": " : "", HF_FMT(refusal->message));
    error = hf__scope_error_edit(s);
    error->may_retry = answer->blame != AWS_ENTRY;
    error->may_have_happened = http->status >= 500;
    error->retry_after_ms = hf__service_retry_after_ms(http);
}

enum hf_status hf__aws_unreadable(struct hf_scope *s, const struct aws *aws, const char *why)
{
    return hf__service_unreadable(s, hf_str_from(aws->name), why);
}

/* ---- a call --------------------------------------------------------------------------------- */

struct attempt {
    const struct aws *aws;
    const struct aws_request *request;
    struct aws_answer *answer;
};

static enum hf_status send_request(struct hf_scope *s, const struct attempt *attempt,
                                   struct service_try *try)
{
    const struct aws_request *request = attempt->request;
    const struct http_field fields[] = {
        {HF_STR("Content-Type"), hf_str_from(request->content_type)},
        {HF_STR("X-Amz-Target"), hf_str_from(request->target ? request->target : "")},
    };

    return hf__service_send(s, try,
                            &(struct service_request){.endpoint = &attempt->aws->endpoint,
                                                      .method = "POST",
                                                      .path = attempt->aws->target,
                                                      .fields = fields,
                                                      .fields_len = request->target ? 2 : 1,
                                                      .body = request->body,
                                                      .timeout_ms = attempt->aws->timeout_ms,
                                                      .answer_max = ANSWER_MAX});
}

static enum hf_status try_once(struct hf_scope *s, struct service_try *try, void *user)
{
    const struct attempt *attempt = user;
    const struct http_answer *http = &try->answer;
    struct refusal refusal;

    TRY(send_request(s, attempt, try));
    if (hf__http_answer_field(http, "content-encoding").len)
        return hf__aws_unreadable(s, attempt->aws, "is compressed, which was not requested");
    if (http->status == 200) {
        *attempt->answer =
            (struct aws_answer){.body = hf_str_of((const char *)http->body.ptr, http->body.len),
                                .blame = AWS_NOBODY};
        return HF_OK;
    }
    TRY(read_refusal(s, try, &refusal));
    hf__service_refused(try, refusal.code);
    refusal_report(s, attempt->aws, http, &refusal, attempt->answer);
    return HF_OK;
}

enum hf_status hf__aws_call(struct hf_scope *s, struct aws *aws, const struct aws_request *request,
                            struct aws_answer *answer)
{
    struct attempt attempt = {.aws = aws, .request = request, .answer = answer};

    assert(request->content_type && request->body.len > 0);
    *answer = (struct aws_answer){.blame = AWS_SINK};
    return hf__service_call(s, &aws->service, try_once, &attempt);
}

enum hf_status hf__aws_hash(struct hf_scope *s, struct hf_str text, struct hf_str *hex)
{
    struct signer *signer;
    char *to = hf_scope_alloc(s, SIGN_HEX + 1);

    if (!to)
        return hf__fail_nomem(s);
    TRY(hf__signer_new(s, hf_scope_env(s), &signer));
    hf__sha256_hex(signer, text.ptr, text.len, to);
    hf__signer_free(signer);
    *hex = hf_str_of(to, SIGN_HEX);
    return HF_OK;
}
