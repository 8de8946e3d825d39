/*
 * blob/s3.c: calls to a bucket of S3: addresses, signatures, refusals, and trying again.
 *
 * Configuration, credentials and transport are the client's (client/client.h), the rules of trying
 * again those of every client (db/retry_policy.h), with the 50 ms that SDKs begin with for services other
 * than DynamoDB.
 *
 * The bucket is part of the host's name at Amazon ("BUCKET.s3.REGION.amazonaws.com"), unless it has
 * a dot, for which no certificate is good; and of the path elsewhere. ?path_style says otherwise.
 *
 * What always holds:
 *
 *  (1) Any thread calls, by client/service.c.
 *  (2) All that is called may be done twice, so a lost answer is a reason to call again.
 *  (3) No secret is part of an error: S3 explains a wrong signature with what should have been
 *      signed, so messages are cut to one short line, and left out when a secret is in it.
 *  (4) Bodies are part of the signature, so S3 refuses what was damaged on its way.
 */
#include "blob/s3.h"

#include "client/client.h"
#include "client/service.h"
#include "client/url.h"
#include "client/xml.h"
#include "db/retry_policy.h"
#include "http/sign.h"

enum {
    BASE_MS = 50,
    BYTES_PER_MS = 256, /* the slowest transfer that is waited for: 2 Mbit/s */
    PREFIX_MAX = 512,
    CODE_MAX = 64,
    MESSAGE_MAX = 300
};

struct s3 {
    struct client_parts parts;
    struct retry_policy policy;
    bool again_open;
    struct endpoint endpoint; /* with the bucket in its host, or in its path */
    struct hf_str bucket;
    struct hf_str prefix; /* with a slash behind, or empty */
    size_t part;
    bool create;
    enum hf_flag path_style;
    struct hf_str url_endpoint;
    struct service service;
};

size_t hf__s3_part(const struct s3 *s3)
{
    return s3->part;
}

bool hf__s3_create(const struct s3 *s3)
{
    return s3->create;
}

struct hf_str hf__s3_bucket(const struct s3 *s3)
{
    return s3->bucket;
}

struct hf_str hf__s3_region(const struct s3 *s3)
{
    return s3->endpoint.signing_region;
}

struct hf_str hf__s3_origin(const struct s3 *s3)
{
    return s3->endpoint.origin;
}

struct hf_str hf__s3_path(const struct s3 *s3)
{
    return s3->endpoint.path;
}

/* ---- names ---------------------------------------------------------------------------------- */

struct hf_str hf__s3_prefix(const struct s3 *s3)
{
    return s3->prefix;
}

struct hf_str hf__s3_source(struct hf_scope *s, const struct s3 *s3, struct hf_str key)
{
    struct hf__buf buf = {.scope = s};

    hf__buf_put_byte(&buf, '/');
    hf__buf_put_str(&buf, s3->bucket);
    hf__buf_put_byte(&buf, '/');
    hf__buf_put_url(&buf, key, "/");
    return buf.failed ? (struct hf_str){0} : hf_str_of((const char *)buf.ptr, buf.len);
}

/* The rules of S3: 3 to 63 of these, with a letter or digit at both ends and no two dots. */
static bool is_bucket(struct hf_str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        bool inner = i > 0 && i + 1 < name.len;

        if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (inner && c == '-') ||
              (inner && c == '.' && name.ptr[i - 1] != '.')))
            return false;
    }
    return name.len >= 3 && name.len <= 63;
}

/* No part between slashes is empty, "." or "..": a proxy on the way to S3 might normalize such a
 * path. And none is where another store has its trash or its parts. */
static bool is_prefix(struct hf_str prefix)
{
    struct hf_str rest = prefix, after;

    if (prefix.len > PREFIX_MAX)
        return false;
    for (size_t i = 0; i < prefix.len; i++)
        if ((unsigned char)prefix.ptr[i] < ' ' || prefix.ptr[i] == 127)
            return false;
    while (rest.len) {
        struct hf_str step = str_cut(&rest, '/');

        if (step.len == 0 || str_is(step, ".") || str_is(step, "..") || str_is(step, "trash") ||
            str_after(step, HF_STR("part."), &after))
            return false;
    }
    return true;
}

uint64_t hf__s3_number(struct hf_str text)
{
    uint64_t number = 0;

    for (size_t i = 0; i < text.len && text.ptr[i] >= '0' && text.ptr[i] <= '9'; i++)
        number = number > UINT64_MAX / 10 - 1 ? UINT64_MAX / 10
                                              : number * 10 + (uint64_t)(text.ptr[i] - '0');
    return number;
}

bool hf__s3_time(struct hf_str text, int64_t *us)
{
    char compact[SIGN_TIME];
    size_t len = 0;
    int64_t seconds;

    for (size_t i = 0; i < text.len && len < sizeof(compact) - 1 && text.ptr[i] != '.'; i++)
        if (text.ptr[i] != '-' && text.ptr[i] != ':' && text.ptr[i] != 'Z')
            compact[len++] = text.ptr[i];
    if (len != sizeof(compact) - 1 || text.ptr[text.len - 1] != 'Z')
        return false;
    compact[len] = 'Z';
    if (!hf__sign_time(hf_str_of(compact, sizeof(compact)), &seconds))
        return false;
    *us = seconds * 1000000;
    return true;
}

/* ---- the URL -------------------------------------------------------------------------------- */

static enum hf_status wrong_param(struct hf_scope *s, const char *name, const char *wanted)
{
    return hf__fail(s, HF_INVALID, "the parameter %s of the s3:// URL must be %s", name, wanted);
}

static enum hf_status read_flag(struct hf_scope *s, const char *name, struct hf_str value,
                                bool *flag)
{
    *flag = str_is(value, "1") || str_is(value, "yes");
    return *flag || str_is(value, "0") || str_is(value, "no")
               ? HF_OK
               : wrong_param(s, name, "1 or 0, yes or no");
}

static enum hf_status read_part(struct hf_scope *s, struct hf_str value, size_t *part)
{
    uint64_t number = 0;

    for (size_t i = 0; i < value.len && number <= HF_BLOB_MAX; i++) {
        if (value.ptr[i] < '0' || value.ptr[i] > '9')
            return wrong_param(s, "part", "a number of bytes");
        number = number * 10 + (uint64_t)(value.ptr[i] - '0');
    }
    if (number < S3_PART_MIN || number > HF_BLOB_MAX)
        return hf__fail(s, HF_INVALID,
                        "the parameter part of the s3:// URL must be from %d to %d bytes",
                        S3_PART_MIN, HF_BLOB_MAX);
    *part = (size_t)number;
    return HF_OK;
}

static enum hf_status url_decode(struct hf_scope *s, struct hf_scope *memory, struct hf_str raw,
                                 struct hf_str *out)
{
    enum hf_status status = hf__url_decode(memory, raw, out);

    if (status == HF_INVALID)
        return hf__fail(s, HF_INVALID, "the s3:// URL has a %% without two hex digits");
    return status == HF_OK ? HF_OK : hf__fail_nomem(s);
}

static enum hf_status read_param(struct hf_scope *s, struct s3 *s3, struct hf_str text,
                                 struct hf_client_options *o)
{
    struct hf_str value = text;
    struct hf_str name = str_cut(&value, '=');
    bool flag = false;

    TRY(url_decode(s, s3->parts.memory, value, &value));
    if (str_is(name, "endpoint")) {
        s3->url_endpoint = value;
    } else if (str_is(name, "region")) {
        o->region = value;
    } else if (str_is(name, "path_style")) {
        TRY(read_flag(s, "path_style", value, &flag));
        s3->path_style = flag ? HF_YES : HF_NO;
    } else if (str_is(name, "create")) {
        TRY(read_flag(s, "create", value, &s3->create));
    } else if (str_is(name, "part")) {
        TRY(read_part(s, value, &s3->part));
    } else {
        return hf__fail(
            s, HF_INVALID,
            "unknown parameter \"%.*s\" in the s3:// URL; use endpoint, region, path_style, create "
            "or part",
            HF_FMT(name));
    }
    return HF_OK;
}

static enum hf_status read_url(struct hf_scope *s, struct s3 *s3, struct hf_str rest,
                               struct hf_client_options *o)
{
    struct hf_str params = rest;
    struct hf_str path = str_cut(&params, '?');
    struct hf_str bucket = str_cut(&path, '/');
    struct hf_str prefix;

    if (!is_bucket(bucket))
        return hf__fail(
            s, HF_INVALID,
            "invalid bucket name \"%.*s\": use 3 to 63 lower case letters, digits, inner dots and "
            "hyphens",
            HF_FMT(bucket));
    s3->bucket = hf_scope_copy(s3->parts.memory, bucket);
    TRY(url_decode(s, s3->parts.memory, path, &prefix));
    if (prefix.len && prefix.ptr[prefix.len - 1] == '/')
        prefix.len--;
    if (!is_prefix(prefix))
        return hf__fail(
            s, HF_INVALID,
            "invalid prefix in the s3:// URL: use up to %d bytes, and no part between slashes that "
            "is empty, \".\", \"..\", \"trash\" or begins with \"part.\"",
            PREFIX_MAX);
    s3->prefix = hf_scope_format(s3->parts.memory, "%.*s%s", HF_FMT(prefix), prefix.len ? "/" : "");
    if (!s3->bucket.ptr || !s3->prefix.ptr)
        return hf__fail_nomem(s);
    s3->part = S3_PART;
    while (params.len > 0)
        TRY(read_param(s, s3, str_cut(&params, '&'), o));
    return HF_OK;
}

/* ---- opening -------------------------------------------------------------------------------- */

/* Where the bucket is: in the host's name, or in the path. */
static enum hf_status place_bucket(struct hf_scope *s, struct s3 *s3)
{
    struct endpoint *e = &s3->endpoint;
    bool dotted = memchr(s3->bucket.ptr, '.', s3->bucket.len) != NULL;
    bool path_style = s3->path_style == HF_YES;
    struct endpoint plain;
    struct hf_str after = e->origin;
    struct hf_str scheme;

    TRY(hf__endpoint_of_url(s, e->origin, &plain));
    if (s3->path_style == HF_UNSET)
        path_style = dotted || plain.signing_region.len == 0; /* none of Amazon's */
    if (path_style) {
        e->path = hf_scope_format(s, "%.*s/%.*s", HF_FMT(e->path), HF_FMT(s3->bucket));
    } else {
        scheme = str_after(e->origin, HF_STR("https://"), &after) ? HF_STR("https://")
                                                                  : HF_STR("http://");
        str_after(e->origin, scheme, &after);
        e->origin =
            hf_scope_format(s, "%.*s%.*s.%.*s", HF_FMT(scheme), HF_FMT(s3->bucket), HF_FMT(after));
        e->host = hf_scope_format(s, "%.*s.%.*s", HF_FMT(s3->bucket), HF_FMT(e->host));
    }
    if (!e->path.ptr || !e->origin.ptr || !e->host.ptr)
        return hf__fail_nomem(s);
    return hf__endpoint_keep(s, s3->parts.memory, e);
}

static enum hf_status find_endpoint(struct hf_scope *s, struct s3 *s3)
{
    const struct endpoint_ask ask = {.service = ENDPOINT_S3,
                                     .region = s3->parts.region,
                                     .fips = s3->parts.fips,
                                     .dual_stack = s3->parts.dual_stack};

    if (s3->parts.fixed.origin.ptr)
        s3->endpoint = s3->parts.fixed;
    else
        TRY(hf__endpoint_find(s, s3->parts.config, &ask, &s3->endpoint));
    return place_bucket(s, s3);
}

static enum hf_status open_again(struct hf_scope *s, struct s3 *s3,
                                 const struct hf_client_options *o)
{
    struct hf_retry_options retry = o->retry;
    enum hf_retry_mode mode = HF_RETRY_STANDARD;
    uint32_t attempts = 0;

    TRY(hf__config_retry(s, s3->parts.config, &mode, &attempts));
    if (!retry.mode)
        retry.mode = mode;
    if (!retry.max_attempts)
        retry.max_attempts = attempts;
    if (!retry.backoff_ms)
        retry.backoff_ms = BASE_MS;
    retry.size = sizeof(retry);
    retry.env = &s3->parts.env;
    TRY(hf__retry_policy_open(s, &retry, &s3->policy));
    s3->again_open = true;
    return HF_OK;
}

static enum hf_status open_parts(struct hf_scope *s, struct s3 *s3, struct hf_str rest,
                                 struct hf_client_options *o)
{
    struct hf_scope *memory = hf_scope_new(&s3->parts.env); /* of the URL; see parts_make */
    enum hf_status status;

    if (!memory)
        return hf__fail_nomem(s);
    s3->parts.memory = memory;
    status = read_url(s, s3, rest, o);
    if (status == HF_OK && s3->url_endpoint.ptr)
        status = hf__endpoint_of_url(s, s3->url_endpoint, &s3->parts.fixed);
    if (status == HF_OK)
        status = hf__client_parts_make(s, o, HF_STR("s3"), "?region=NAME in the URL", &s3->parts);
    if (status == HF_OK)
        status = find_endpoint(s, s3);
    if (status == HF_OK)
        status = open_again(s, s3, o);
    return status;
}

enum hf_status hf__s3_open(struct hf_scope *s, const struct hf_env *env, struct hf_str rest,
                           const struct hf_client_options *options, struct s3 **s3)
{
    struct hf_client_options o = {.size = sizeof(o)};
    struct hf_env whole;
    struct s3 *made;
    enum hf_status status;

    *s3 = NULL;
    if (options)
        memcpy(&o, options, options->size && options->size < sizeof(o) ? options->size : sizeof(o));
    o.size = sizeof(o);
    whole = o.env ? hf__env_fill(o.env) : *env;
    made = hf__env_alloc(&whole, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    made->parts.env = whole;
    hf__service_init(&made->service, &made->parts.env, "S3");
    status = open_parts(s, made, rest, &o);
    if (status != HF_OK) {
        hf__s3_close(made);
        return status;
    }
    made->service.transport = made->parts.transport;
    made->service.credentials = made->parts.credentials;
    made->service.agent = made->parts.agent;
    *s3 = made;
    return HF_OK;
}

void hf__s3_close(struct s3 *s3)
{
    struct hf_env env;

    if (!s3)
        return;
    env = s3->parts.env;
    hf__service_free(&s3->service);
    if (s3->again_open)
        hf__retry_policy_close(&s3->policy);
    hf__client_parts_free(&s3->parts);
    hf__env_free(&env, s3, sizeof(*s3));
}

/* ---- refusals ------------------------------------------------------------------------------- */

struct judgement {
    enum hf_status status;
    bool may_retry;
};

static const struct {
    const char *code;
    struct judgement judgement;
} known[] = {
    {"SlowDown", {HF_THROTTLED, true}},
    {"Throttling", {HF_THROTTLED, true}},
    {"ThrottlingException", {HF_THROTTLED, true}},
    {"RequestLimitExceeded", {HF_THROTTLED, true}},
    {"BandwidthLimitExceeded", {HF_THROTTLED, true}},
    {"TooManyRequests", {HF_THROTTLED, true}},
    {"ServiceUnavailable", {HF_IO, true}},
    {"InternalError", {HF_IO, true}},
    {"RequestTimeout", {HF_IO, true}},
    {"OperationAborted", {HF_IO, true}},
    {"ConditionalRequestConflict", {HF_IO, true}},
    {"BadDigest", {HF_IO, true}},
    {"IncompleteBody", {HF_IO, true}},
    {"XAmzContentSHA256Mismatch", {HF_IO, true}},
    {"InvalidDigest", {HF_IO, true}},
    {"TemporaryRedirect", {HF_IO, true}},
    {"AccessDenied", {HF_DENIED, false}},
    {"AllAccessDisabled", {HF_DENIED, false}},
    {"AccountProblem", {HF_DENIED, false}},
    {"ExpiredToken", {HF_DENIED, false}},
    {"InvalidToken", {HF_DENIED, false}},
    {"InvalidAccessKeyId", {HF_DENIED, false}},
    {"SignatureDoesNotMatch", {HF_DENIED, false}},
    {"RequestTimeTooSkewed", {HF_DENIED, false}},
    {"BucketAlreadyExists", {HF_DENIED, false}},
    {"NoSuchKey", {HF_NOT_FOUND, false}},
    {"NoSuchBucket", {HF_NOT_FOUND, false}},
    {"NoSuchUpload", {HF_NOT_FOUND, false}},
    {"EntityTooLarge", {HF_LIMIT, false}},
    {"QuotaExceeded", {HF_NO_SPACE, false}},
    {"XMinioStorageFull", {HF_NO_SPACE, false}},
};

static struct judgement refusal_judge(int http_status, struct hf_str code)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (str_is(code, known[i].code))
            return known[i].judgement;
    switch (http_status) {
    case 401:
    case 403:
        return (struct judgement){HF_DENIED, false};
    case 404:
        return (struct judgement){HF_NOT_FOUND, false};
    case 408:
        return (struct judgement){HF_IO, true};
    case 429:
    case 503:
        return (struct judgement){HF_THROTTLED, true};
    case 501:
        return (struct judgement){HF_UNSUPPORTED, false};
    case 507:
        return (struct judgement){HF_NO_SPACE, false};
    default:
        return http_status >= 500 ? (struct judgement){HF_IO, true}
                                  : (struct judgement){HF_INVALID, false};
    }
}

struct refusal {
    struct hf_str code;
    struct hf_str message;
};

static enum hf_status read_refusal(struct hf_scope *s, const struct service_try *try,
                                   struct refusal *refusal)
{
    struct hf_bytes body = try->answer.body;
    struct hf_str text = hf_str_of((const char *)body.ptr, body.len);
    struct hf_str code = {0}, message = {0};
    const struct xml_want wants[] = {{"Error/Code", &code}, {"Error/Message", &message}};
    enum hf_status status = HF_OK;

    while (text.len && (*text.ptr == ' ' || *text.ptr == '\n' || *text.ptr == '\r'))
        text = hf_str_of(text.ptr + 1, text.len - 1); /* sent to keep the connection */
    if (text.len)
        status = hf__xml_read(s, text, wants, ARRAY_LEN(wants));
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    if (status != HF_OK) /* a proxy answered: only the HTTP status is known */
        code = message = (struct hf_str){0};
    hf__scope_error_clear(s);
    *refusal = (struct refusal){hf__service_quote(s, try, code, CODE_MAX),
                                hf__service_quote(s, try, message, MESSAGE_MAX)};
    return HF_OK;
}

/* Set the error of the scope for an answer that is a refusal. */
static enum hf_status refusal_fail(struct hf_scope *s, const struct s3 *s3,
                                   const struct s3_call *call, const struct service_try *try,
                                   const struct refusal *refusal)
{
    const struct http_answer *http = &try->answer;
    struct judgement j = refusal_judge(http->status, refusal->code);
    struct hf_str region = hf__http_answer_field(http, "x-amz-bucket-region");
    struct hf_error *error;

    if (region.len && !hf_str_equal(region, s3->endpoint.signing_region) &&
        (http->status == 301 || http->status == 400)) {
        region = hf__service_quote(s, try, region, CODE_MAX);
        return hf__fail(s, HF_INVALID, "the bucket %.*s is in the region %.*s, not in %.*s",
                        HF_FMT(s3->bucket), HF_FMT(region), HF_FMT(s3->endpoint.signing_region));
    }
    hf__fail(s, j.status, "S3 refused %s of %.*s/%.*s: HTTP status %d%s%.*s%s%.*s", call->method,
             HF_FMT(s3->bucket), HF_FMT(call->key), http->status, refusal->code.len ? ", " : "",
             HF_FMT(refusal->code), refusal->message.len ? ": " : "", HF_FMT(refusal->message));
    error = hf__scope_error_edit(s);
    error->may_retry = j.may_retry;
    error->may_have_happened = http->status >= 500;
    error->retry_after_ms = hf__service_retry_after_ms(http);
    return j.status;
}

enum hf_status hf__s3_unreadable(struct hf_scope *s, const struct s3 *s3, const char *why)
{
    return hf__service_unreadable(s, hf_scope_format(s, "S3 (%.*s)", HF_FMT(s3->endpoint.origin)),
                                  why);
}

/* ---- a call --------------------------------------------------------------------------------- */

static enum hf_status send_request(struct hf_scope *s, const struct s3 *s3,
                                   const struct s3_call *call, struct service_try *try)
{
    size_t bytes = call->body.len + call->expect;
    struct hf__buf path = {.scope = s};

    hf__buf_put_str(&path, s3->endpoint.path);
    if (call->key.ptr || !s3->endpoint.path.len)
        hf__buf_put_byte(&path, '/');
    hf__buf_put_url(&path, call->key, "/");
    if (path.failed)
        return hf__fail_nomem(s);
    return hf__service_send(
        s, try,
        &(struct service_request){.endpoint = &s3->endpoint,
                                  .method = call->method,
                                  .path = hf_str_of((const char *)path.ptr, path.len),
                                  .query = call->query,
                                  .fields = call->fields,
                                  .fields_len = call->fields_len,
                                  .body = call->body,
                                  .timeout_ms =
                                      s3->parts.attempt_ms + (uint32_t)(bytes / BYTES_PER_MS),
                                  .answer_max = call->answer_max ? call->answer_max : S3_LIST_MAX});
}

/* Does a 200 contain the element that the call expects? */
static bool has_result(const struct s3_call *call, const struct http_answer *http)
{
    return !call->result ||
           memmem(http->body.ptr, http->body.len, call->result, strlen(call->result));
}

struct attempt {
    struct s3 *s3;
    const struct s3_call *call;
    struct s3_answer *answer;
};

static enum hf_status try_once(struct hf_scope *s, struct service_try *try, void *user)
{
    const struct attempt *attempt = user;
    const struct s3 *s3 = attempt->s3;
    struct http_answer *http = &try->answer;
    struct refusal refusal = {.code = {0}};

    *attempt->answer = (struct s3_answer){0};
    TRY(send_request(s, s3, attempt->call, try));
    if (hf__http_answer_field(http, "content-encoding").len &&
        !hf__http_is(hf__http_answer_field(http, "content-encoding"), "identity"))
        return hf__s3_unreadable(s, s3, "is compressed, which was not requested");
    attempt->answer->http = *http;
    if (http->status < 300 && has_result(attempt->call, http))
        return HF_OK;
    TRY(read_refusal(s, try, &refusal));
    if (http->status < 300) { /* an error that occurred after the head was sent */
        if (!refusal.code.len)
            return hf__s3_unreadable(s, s3, "is not the expected document");
        http->status = attempt->answer->http.status = 500;
    }
    attempt->answer->code = refusal.code;
    hf__service_refused(try, refusal.code);
    return refusal_fail(s, s3, attempt->call, try, &refusal);
}

static bool is_read(const struct s3_call *call)
{
    return strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
}

enum hf_status hf__s3_call(struct hf_scope *s, struct s3 *s3, const struct s3_call *call,
                           struct s3_answer *answer)
{
    struct retry_course course = {.repeatable = true}; /* (2) */
    struct hf__mark mark = hf__scope_mark(s);
    struct attempt attempt = {.s3 = s3, .call = call, .answer = answer};
    enum hf_status status;

    *answer = (struct s3_answer){0};
    TRY(hf__scope_alive(s));
    status = hf__retry_wait_to_send(s, &s3->policy);
    if (status == HF_TIMEOUT)
        return hf__fail(
            s, HF_THROTTLED,
            "S3 throttled this client; at the reduced request rate this call would miss its "
            "deadline");
    TRY(status);
    for (;;) {
        course.attempt++;
        status = hf__service_call(s, &s3->service, try_once, &attempt);
        if (status == HF_OK) {
            hf__retry_succeeded(&s3->policy, &course);
            break;
        }
        if (!hf__retry_next_attempt(s, &s3->policy, &course)) {
            status = hf_scope_error(s)->status;
            hf__scope_error_edit(s)->may_have_happened = course.happened && !is_read(call);
            break;
        }
        hf__scope_error_clear(s);
        hf__scope_rewind(s, mark);
    }
    return status;
}
