/*
 * relay/aws.c: one signed call to a service of Amazon's, and who is to blame when it is refused.
 *
 * As client/client.c does for DynamoDB: configuration, credentials and endpoints are the client's,
 * the signature is that of http/sign.h. Two refusals are answered with another try, as nothing was
 * done: when our clock is off, the answer's Date tells by how much, and when the credentials were
 * refused, their source may have new ones. All else is for the relay, which knows how to wait.
 *
 * A refusal of a whole call is somebody's fault, and taking it for another's costs dearly: an
 * outage that is blamed on events puts them aside, and an event that is blamed on the service stops
 * all the others. So codes that are known decide; of those that nobody knows, 5xx, 401, 403, 408
 * and 429 are the service's, and any other 4xx may be an entry's, which then fails by attempts.
 *
 * What always holds:
 *
 *  (1) Any thread calls. A signer and the room for the fields are a worker, taken from a list.
 *  (2) A call that is not HF_OK was not answered; whether it was done is in the error.
 *  (3) No secret is part of an error or a log line.
 */
#include "relay/aws.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "client/credentials.h"
#include "client/xml.h"
#include "http/sign.h"
#include "http/transport.h"
#include "ops/table.h"
#include "wire/wire.h"

enum {
    TRIES = 3,       /* the first, one after a new clock, one with new credentials */
    SKEW_S = 4 * 60, /* a clock this much off is corrected; services allow 5 min */
    TIMEOUT_MS = 10000,
    ANSWER_MAX = 1024 * 1024,
    RETRY_AFTER_MAX_S = 3600,
    SECRET_MIN = 16 /* a shorter one is made up */
};

struct worker {
    struct worker *next;
    struct signer *signer;
    struct http_head head;
};

struct aws {
    struct hf_env env;
    const char *name;
    struct config *config;
    struct transport *transport;
    struct credentials *credentials;
    struct endpoint endpoint;
    struct hf_str target; /* path of requests */
    struct hf_str agent;
    uint32_t timeout_ms;
    atomic_int_fast64_t skew_s;
    pthread_mutex_t lock; /* guards the list of workers */
    struct worker *workers;
};

const char *hf__aws_name(const struct aws *aws)
{
    return aws->name;
}

/* ---- opening -------------------------------------------------------------------------------- */

static bool is(struct hf_str text, const char *word)
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
        *region = HF_STR("us-east-1"); /* any will do: it is only signed */
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

    if (is(options->proxy, "none")) {
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

    aws->agent = hf_scope_format(memory, "holdfast/%s", hf_version());
    if (!aws->agent.ptr)
        return hf__fail_nomem(s);
    TRY(hf__config_load(s, &aws->env, options->profile, false, &aws->config));
    TRY(find_endpoint(s, aws, memory, ask, options));
    TRY(open_transport(s, aws, options));
    c.config = aws->config;
    c.transport = aws->transport;
    c.region = aws->endpoint.signing_region;
    c.local = hf__endpoint_is_loopback(&aws->endpoint);
    return hf__credentials_open(s, &c, &aws->credentials);
}

enum hf_status hf__aws_open(struct hf_scope *s, struct hf_scope *memory, const struct aws_ask *ask,
                            const struct aws_options *options, struct aws **aws)
{
    const struct hf_env *env = hf_scope_env(s);
    struct aws *made = hf__env_alloc(env, sizeof(*made));
    enum hf_status status;

    *aws = NULL;
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    made->env = *env;
    made->name = ask->name;
    made->timeout_ms = options->timeout_ms ? (uint32_t)options->timeout_ms : TIMEOUT_MS;
    atomic_init(&made->skew_s, 0);
    pthread_mutex_init(&made->lock, NULL);
    status = open_parts(s, memory, made, ask, options);
    if (status != HF_OK) {
        hf__aws_close(made);
        return status;
    }
    *aws = made;
    return HF_OK;
}

void hf__aws_close(struct aws *aws)
{
    struct hf_env env;

    if (!aws)
        return;
    env = aws->env;
    while (aws->workers) {
        struct worker *worker = aws->workers;

        aws->workers = worker->next;
        hf__signer_free(worker->signer);
        hf__env_free(&env, worker, sizeof(*worker));
    }
    hf__credentials_close(aws->credentials);
    hf__transport_close(aws->transport);
    hf__config_free(aws->config);
    pthread_mutex_destroy(&aws->lock);
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
    return arn.len > 0 && is(parts[0], "arn") && is(parts[2], service);
}

void hf__aws_limits(const struct aws_options *options, struct hf_sink_ops *ops)
{
    ops->event_bytes_max = options->max_bytes;
    ops->batch_bytes_max =
        options->batch_bytes > options->max_bytes ? options->batch_bytes : options->max_bytes;
}

/* ---- workers -------------------------------------------------------------------------------- */

static enum hf_status take_worker(struct hf_scope *s, struct aws *aws, struct worker **worker)
{
    struct worker *made;
    enum hf_status status;

    pthread_mutex_lock(&aws->lock);
    *worker = aws->workers;
    if (*worker)
        aws->workers = (*worker)->next;
    pthread_mutex_unlock(&aws->lock);
    if (*worker)
        return HF_OK;
    made = hf__env_alloc(&aws->env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    status = hf__signer_new(s, &aws->env, &made->signer);
    if (status != HF_OK) {
        hf__env_free(&aws->env, made, sizeof(*made));
        return status;
    }
    *worker = made;
    return HF_OK;
}

static void return_worker(struct aws *aws, struct worker *worker)
{
    pthread_mutex_lock(&aws->lock);
    worker->next = aws->workers;
    aws->workers = worker;
    pthread_mutex_unlock(&aws->lock);
}

/* ---- refusals ------------------------------------------------------------------------------- */

struct refusal {
    struct hf_str code; /* without a name space, nor "Exception" at its end */
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

/* "com.amazonaws.sqs#QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue" */
static struct hf_str plain_code(struct hf_str code)
{
    for (size_t i = code.len; i > 0; i--)
        if (code.ptr[i - 1] == '#' || code.ptr[i - 1] == '.') {
            code = hf_str_of(code.ptr + i, code.len - i);
            break;
        }
    if (code.len > 9 && memcmp(code.ptr + code.len - 9, "Exception", 9) == 0)
        code.len -= 9;
    return code;
}

bool hf__aws_is_services(struct hf_str code, enum hf_status *status)
{
    code = plain_code(code);
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is(code, known[i].code)) {
            *status = known[i].status;
            return *status == HF_THROTTLED || *status == HF_DENIED;
        }
    return false;
}

struct hf_str hf__aws_tame(struct hf_scope *s, struct hf_str text, size_t max)
{
    size_t len = text.len < max ? text.len : max;
    char *copy = hf_scope_alloc(s, len + 1);

    if (!copy)
        return HF_STR("");
    for (size_t i = 0; i < len; i++)
        copy[i] = text.ptr[i] >= ' ' && text.ptr[i] < 127 ? text.ptr[i] : '?';
    copy[len] = '\0';
    return hf_str_of(copy, len);
}

/* (3): the session token was sent, so that it may come back. */
static struct hf_str tame(struct hf_scope *s, struct hf_str text, size_t max,
                          const struct sign_credentials *used)
{
    const struct hf_str secrets[] = {used->secret_key, used->session_token};

    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        if (secrets[i].len >= SECRET_MIN && text.len &&
            memmem(text.ptr, text.len, secrets[i].ptr, secrets[i].len))
            return HF_STR("");
    return hf__aws_tame(s, text, max);
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

static enum hf_status read_refusal(struct hf_scope *s, const struct http_answer *http,
                                   const struct sign_credentials *used, struct refusal *refusal)
{
    struct hf_str text = hf_str_of((const char *)http->body.ptr, http->body.len);
    struct error_body error = {.type = {NULL, 0}};
    const struct xml_want wants[] = {{"ErrorResponse/Error/Code", &error.type},
                                     {"ErrorResponse/Error/Message", &error.message}};
    enum hf_status status = text.len && *text.ptr == '<'
                                ? hf__xml_read(s, text, wants, ARRAY_LEN(wants))
                                : hf__wire_read_answer(s, &body, text, &error);

    if (status == HF_NOMEM)
        return status;
    if (status != HF_OK) /* somebody on the way answered: the HTTP status is all there is */
        error = (struct error_body){.type = {NULL, 0}};
    hf__scope_error_clear(s);
    *refusal =
        (struct refusal){.code = tame(s, plain_code(error.type), AWS_CODE_MAX, used),
                         .message = tame(s, error.message.len ? error.message : error.Message,
                                         AWS_MESSAGE_MAX, used)};
    return HF_OK;
}

static void judge(int http_status, struct hf_str code, enum aws_blame *blame,
                  enum hf_status *status)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is(code, known[i].code)) {
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

static uint32_t retry_after_ms(const struct http_answer *http)
{
    struct hf_str text = hf__answer_field(http, "retry-after");
    uint32_t seconds = 0;

    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return 0;
        seconds = seconds * 10 + (uint32_t)(text.ptr[i] - '0');
        if (seconds > RETRY_AFTER_MAX_S)
            return RETRY_AFTER_MAX_S * 1000;
    }
    return seconds * 1000;
}

/* "Sun, 15 Nov 2026 10:30:00 GMT" as seconds since 1970; 0 when it is no such date. */
static int64_t date_of(struct hf_str text)
{
    struct tm tm;
    char copy[40];
    const char *end;

    if (!text.len || text.len >= sizeof(copy))
        return 0;
    memcpy(copy, text.ptr, text.len);
    copy[text.len] = '\0';
    memset(&tm, 0, sizeof(tm));
    end = strptime(copy, "%a, %d %b %Y %H:%M:%S GMT", &tm);
    return end == copy + text.len ? (int64_t)timegm(&tm) : 0;
}

/* Learn the service's clock. True when it differs from what was used. */
static bool learn_clock(struct aws *aws, const struct http_answer *http)
{
    int64_t date_s = date_of(hf__answer_field(http, "date"));
    int64_t wall_s = hf__env_wall_us(&aws->env) / 1000000;
    int64_t off_s = date_s - wall_s - atomic_load_explicit(&aws->skew_s, memory_order_relaxed);

    if (!date_s || (off_s > -SKEW_S && off_s < SKEW_S))
        return false;
    atomic_store_explicit(&aws->skew_s, date_s - wall_s, memory_order_relaxed);
    hf__env_log(&aws->env, HF_LOG_WARNING,
                "sink: the clock of this machine differs from that of %s by %lld s", aws->name,
                (long long)(date_s - wall_s));
    return true;
}

/* Refused for who we are or when it is, and there is something to change about it. */
static bool may_try_again(struct aws *aws, const struct http_answer *http, struct hf_str code,
                          const struct sign_credentials *used)
{
    static const char *const clock[] = {"RequestTimeTooSkewed", "RequestExpired",
                                        "InvalidSignature", "SignatureDoesNotMatch", "AuthFailure"};
    static const char *const key[] = {"ExpiredToken", "UnrecognizedClient", "InvalidClientTokenId",
                                      "RequestExpired", "InvalidSecurity"};

    for (size_t i = 0; i < ARRAY_LEN(clock); i++)
        if (is(code, clock[i]) && learn_clock(aws, http))
            return true;
    for (size_t i = 0; i < ARRAY_LEN(key); i++)
        if (is(code, key[i]))
            return hf__credentials_refused(aws->credentials, used->access_key);
    return false;
}

/* The error of the scope, and who is to blame. */
static void blame(struct hf_scope *s, const struct aws *aws, const struct http_answer *http,
                  const struct refusal *refusal, struct aws_answer *answer)
{
    enum hf_status status;
    struct hf_error *error;

    judge(http->status, refusal->code, &answer->blame, &status);
    hf__fail(s, status, "%s refused: HTTP status %d%s%.*s%s%.*s", aws->name, http->status,
             refusal->code.len ? ", " : "", HF_FMT(refusal->code), refusal->message.len ? ": " : "",
             HF_FMT(refusal->message));
    error = hf__scope_error_edit(s);
    error->may_retry = answer->blame != AWS_ENTRY;
    error->may_have_happened = http->status >= 500;
    error->retry_after_ms = retry_after_ms(http);
}

enum hf_status hf__aws_unreadable(struct hf_scope *s, const struct aws *aws, const char *why)
{
    struct hf_error *error;

    hf__fail(s, HF_IO, "the answer of %s %s", aws->name, why);
    error = hf__scope_error_edit(s);
    error->may_retry = true;
    error->may_have_happened = true;
    return HF_IO;
}

/* ---- a call --------------------------------------------------------------------------------- */

static void add(struct http_head *head, const char *name, struct hf_str value)
{
    head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
}

static enum hf_status sign(struct hf_scope *s, struct aws *aws, const struct aws_request *request,
                           const struct sign_credentials *credentials, struct worker *worker)
{
    struct http_head *head = &worker->head;
    const struct sign_how how = {.credentials = credentials,
                                 .region = aws->endpoint.signing_region,
                                 .service = aws->endpoint.signing_name,
                                 .now_s = hf__env_wall_us(&aws->env) / 1000000 +
                                          atomic_load_explicit(&aws->skew_s, memory_order_relaxed),
                                 .body = request->body};

    head->method = HF_STR("POST");
    head->path = head->target = aws->target;
    head->fields_len = 0;
    add(head, "Host", aws->endpoint.host);
    add(head, "Content-Type", hf_str_from(request->content_type));
    if (request->target)
        add(head, "X-Amz-Target", hf_str_from(request->target));
    add(head, "User-Agent", aws->agent);
    return hf__sign_request(s, worker->signer, head, &how);
}

static enum hf_status try_once(struct hf_scope *s, struct aws *aws,
                               const struct aws_request *request, struct worker *worker,
                               struct aws_answer *answer, bool *again)
{
    struct sign_credentials credentials;
    struct http_answer http;
    struct refusal refusal;
    struct hf_str account;

    *again = false;
    TRY(hf__credentials_get(s, aws->credentials, &credentials, &account));
    TRY(sign(s, aws, request, &credentials, worker));
    TRY(hf__transport_call(s, aws->transport,
                           &(struct transport_call){.origin = aws->endpoint.origin,
                                                    .head = &worker->head,
                                                    .body = request->body,
                                                    .timeout_ms = aws->timeout_ms,
                                                    .answer_max = ANSWER_MAX},
                           &http));
    if (hf__answer_field(&http, "content-encoding").len)
        return hf__aws_unreadable(s, aws, "is packed, which nobody asked for");
    if (http.status == 200) {
        *answer = (struct aws_answer){.body = hf_str_of((const char *)http.body.ptr, http.body.len),
                                      .blame = AWS_NOBODY};
        return HF_OK;
    }
    TRY(read_refusal(s, &http, &credentials, &refusal));
    *again = may_try_again(aws, &http, refusal.code, &credentials);
    blame(s, aws, &http, &refusal, answer);
    return HF_OK;
}

enum hf_status hf__aws_call(struct hf_scope *s, struct aws *aws, const struct aws_request *request,
                            struct aws_answer *answer)
{
    enum hf_status status = HF_OK;
    struct worker *worker;
    bool again = true;

    *answer = (struct aws_answer){.blame = AWS_SINK};
    TRY(take_worker(s, aws, &worker));
    for (int tries = 0; tries < TRIES && again && status == HF_OK; tries++)
        status = try_once(s, aws, request, worker, answer, &again);
    return_worker(aws, worker);
    return status;
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
