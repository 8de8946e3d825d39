/*
 * blob/s3.c: calls to a bucket of S3: addresses, signatures, refusals, and trying again.
 *
 * Configuration, credentials and transport are the client's (client/client.h), the rules of trying
 * again those of every client (db/again.h), with the 50 ms that SDKs begin with for services other
 * than DynamoDB.
 *
 * The bucket is part of the host's name at Amazon ("BUCKET.s3.REGION.amazonaws.com"), unless it has
 * a dot, for which no certificate is good; and of the path elsewhere. ?path_style says otherwise.
 *
 * What always holds:
 *
 *  (1) Any thread calls. A signer and the room for the fields are a worker, taken from a list.
 *  (2) All that is called may be done twice, so a lost answer is a reason to call again.
 *  (3) No secret is part of an error: S3 explains a wrong signature with what should have been
 *      signed, so messages are cut to one short line, and left out when a secret is in it.
 *  (4) Bodies are part of the signature, so S3 refuses what was damaged on its way.
 */
#include "blob/s3.h"

#include <pthread.h>
#include <stdatomic.h>

#include "client/client.h"
#include "client/url.h"
#include "client/xml.h"
#include "db/again.h"
#include "http/sign.h"

enum {
    TRIES = 3, /* the first, one after a new clock, one with new credentials */
    BASE_MS = 50,
    BYTES_PER_MS = 256, /* slower than this is not waited for: 2 Mbit/s */
    PREFIX_MAX = 512,
    CODE_MAX = 64,
    MESSAGE_MAX = 300,
    SECRET_MIN = 16 /* a shorter one is made up */
};

struct worker {
    struct worker *next;
    struct signer *signer;
    struct http_head head;
};

struct s3 {
    struct client_parts parts;
    struct again again;
    bool again_open;
    struct endpoint endpoint; /* with the bucket in its host, or in its path */
    struct hf_str bucket;
    struct hf_str prefix; /* with a slash behind, or empty */
    size_t part;
    bool create;
    enum hf_flag path_style;
    struct hf_str url_endpoint;
    atomic_int_fast64_t skew_s;
    pthread_mutex_t lock; /* guards the list of workers */
    struct worker *workers;
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

static bool is(struct hf_str text, const char *word)
{
    return hf_str_equal(text, hf_str_from(word));
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

/* As S3 has it: 3 to 63 of these, with a letter or digit at both ends and no two dots. */
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

/* Between slashes there is something, and it is neither "." nor "..": who is on the way to S3 may
 * think that a path has to be shortened. Nor is it where another store has its trash or its
 * parts. */
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

        if (step.len == 0 || is(step, ".") || is(step, "..") || is(step, "trash") ||
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
    return hf__fail(s, HF_INVALID, "the parameter %s of s3:// is %s", name, wanted);
}

static enum hf_status read_flag(struct hf_scope *s, const char *name, struct hf_str value,
                                bool *flag)
{
    *flag = is(value, "1") || is(value, "yes");
    return *flag || is(value, "0") || is(value, "no") ? HF_OK
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
        return hf__fail(s, HF_INVALID, "the parameter part of s3:// is from %d to %d bytes",
                        S3_PART_MIN, HF_BLOB_MAX);
    *part = (size_t)number;
    return HF_OK;
}

static enum hf_status decode(struct hf_scope *s, struct hf_scope *memory, struct hf_str raw,
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

    TRY(decode(s, s3->parts.memory, value, &value));
    if (is(name, "endpoint")) {
        s3->url_endpoint = value;
    } else if (is(name, "region")) {
        o->region = value;
    } else if (is(name, "path_style")) {
        TRY(read_flag(s, "path_style", value, &flag));
        s3->path_style = flag ? HF_YES : HF_NO;
    } else if (is(name, "create")) {
        TRY(read_flag(s, "create", value, &s3->create));
    } else if (is(name, "part")) {
        TRY(read_part(s, value, &s3->part));
    } else {
        return hf__fail(s, HF_INVALID,
                        "the s3:// URL has a parameter \"%.*s\", which is none of endpoint, "
                        "region, path_style, create, part",
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
        return hf__fail(s, HF_INVALID,
                        "\"%.*s\" is no name of a bucket: s3://BUCKET has 3 to 63 lower case "
                        "letters, digits, inner dots and hyphens",
                        HF_FMT(bucket));
    s3->bucket = hf_scope_copy(s3->parts.memory, bucket);
    TRY(decode(s, s3->parts.memory, path, &prefix));
    if (prefix.len && prefix.ptr[prefix.len - 1] == '/')
        prefix.len--;
    if (!is_prefix(prefix))
        return hf__fail(s, HF_INVALID,
                        "the prefix of s3:// has up to %d bytes, and no empty part, \".\", \"..\", "
                        "\"trash\" or \"part.\" and more between slashes",
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
    if (!retry.attempts)
        retry.attempts = attempts;
    if (!retry.base_ms)
        retry.base_ms = BASE_MS;
    retry.size = sizeof(retry);
    retry.env = &s3->parts.env;
    TRY(hf__again_open(s, &retry, &s3->again));
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
    atomic_init(&made->skew_s, 0);
    pthread_mutex_init(&made->lock, NULL);
    status = open_parts(s, made, rest, &o);
    if (status != HF_OK) {
        hf__s3_close(made);
        return status;
    }
    *s3 = made;
    return HF_OK;
}

void hf__s3_close(struct s3 *s3)
{
    struct hf_env env;

    if (!s3)
        return;
    env = s3->parts.env;
    while (s3->workers) {
        struct worker *worker = s3->workers;

        s3->workers = worker->next;
        hf__signer_free(worker->signer);
        hf__env_free(&env, worker, sizeof(*worker));
    }
    if (s3->again_open)
        hf__again_close(&s3->again);
    hf__client_parts_free(&s3->parts);
    pthread_mutex_destroy(&s3->lock);
    hf__env_free(&env, s3, sizeof(*s3));
}

/* ---- workers -------------------------------------------------------------------------------- */

static enum hf_status take_worker(struct hf_scope *s, struct s3 *s3, struct worker **worker)
{
    struct worker *made;
    enum hf_status status;

    pthread_mutex_lock(&s3->lock);
    *worker = s3->workers;
    if (*worker)
        s3->workers = (*worker)->next;
    pthread_mutex_unlock(&s3->lock);
    if (*worker)
        return HF_OK;
    made = hf__env_alloc(&s3->parts.env, sizeof(*made));
    if (!made)
        return hf__fail_nomem(s);
    memset(made, 0, sizeof(*made));
    status = hf__signer_new(s, &s3->parts.env, &made->signer);
    if (status != HF_OK) {
        hf__env_free(&s3->parts.env, made, sizeof(*made));
        return status;
    }
    *worker = made;
    return HF_OK;
}

static void return_worker(struct s3 *s3, struct worker *worker)
{
    pthread_mutex_lock(&s3->lock);
    worker->next = s3->workers;
    s3->workers = worker;
    pthread_mutex_unlock(&s3->lock);
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

static struct judgement judge(int http_status, struct hf_str code)
{
    for (size_t i = 0; i < ARRAY_LEN(known); i++)
        if (is(code, known[i].code))
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

/* (3) */
static struct hf_str tame(struct hf_scope *s, struct hf_str text, size_t max,
                          const struct sign_credentials *used)
{
    const struct hf_str secrets[] = {used->secret_key, used->session_token};
    size_t len = text.len < max ? text.len : max;
    char *copy = hf_scope_alloc(s, len + 1);

    if (!copy)
        return HF_STR("");
    for (size_t i = 0; i < ARRAY_LEN(secrets); i++)
        if (secrets[i].len >= SECRET_MIN && text.len &&
            memmem(text.ptr, text.len, secrets[i].ptr, secrets[i].len))
            return HF_STR("");
    for (size_t i = 0; i < len; i++)
        copy[i] = text.ptr[i] >= ' ' && text.ptr[i] < 127 ? text.ptr[i] : '?';
    copy[len] = '\0';
    return hf_str_of(copy, len);
}

struct refusal {
    struct hf_str code;
    struct hf_str message;
};

static enum hf_status read_refusal(struct hf_scope *s, const struct http_answer *http,
                                   const struct sign_credentials *used, struct refusal *refusal)
{
    struct hf_str text = hf_str_of((const char *)http->body.ptr, http->body.len);
    struct hf_str code = {0}, message = {0};
    const struct xml_want wants[] = {{"Error/Code", &code}, {"Error/Message", &message}};
    enum hf_status status = HF_OK;

    while (text.len && (*text.ptr == ' ' || *text.ptr == '\n' || *text.ptr == '\r'))
        text = hf_str_of(text.ptr + 1, text.len - 1); /* sent to keep the connection */
    if (text.len)
        status = hf__xml_read(s, text, wants, ARRAY_LEN(wants));
    if (status == HF_NOMEM)
        return hf__fail_nomem(s);
    if (status != HF_OK) /* somebody on the way answered: the HTTP status is all there is */
        code = message = (struct hf_str){0};
    hf__scope_error_clear(s);
    *refusal = (struct refusal){tame(s, code, CODE_MAX, used), tame(s, message, MESSAGE_MAX, used)};
    return HF_OK;
}

static uint32_t retry_after_ms(const struct http_answer *http)
{
    struct hf_str text = hf__answer_field(http, "retry-after");
    uint32_t seconds = 0;

    for (size_t i = 0; i < text.len && seconds < 60; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return 0;
        seconds = seconds * 10 + (uint32_t)(text.ptr[i] - '0');
    }
    return (seconds < 60 ? seconds : 60) * 1000;
}

/* The error of the scope. */
static enum hf_status refused(struct hf_scope *s, const struct s3 *s3, const struct s3_call *call,
                              const struct http_answer *http, const struct sign_credentials *used,
                              const struct refusal *refusal)
{
    struct judgement j = judge(http->status, refusal->code);
    struct hf_str region = hf__answer_field(http, "x-amz-bucket-region");
    struct hf_error *error;

    if (region.len && !hf_str_equal(region, s3->endpoint.signing_region) &&
        (http->status == 301 || http->status == 400)) {
        region = tame(s, region, CODE_MAX, used);
        return hf__fail(s, HF_INVALID, "the bucket %.*s is in the region %.*s, not in %.*s",
                        HF_FMT(s3->bucket), HF_FMT(region), HF_FMT(s3->endpoint.signing_region));
    }
    hf__fail(s, j.status, "S3 refused %s of %.*s/%.*s: HTTP status %d%s%.*s%s%.*s", call->method,
             HF_FMT(s3->bucket), HF_FMT(call->key), http->status, refusal->code.len ? ", " : "",
             HF_FMT(refusal->code), refusal->message.len ? ": " : "", HF_FMT(refusal->message));
    error = hf__scope_error_edit(s);
    error->may_retry = j.may_retry;
    error->may_have_happened = http->status >= 500;
    error->retry_after_ms = retry_after_ms(http);
    return j.status;
}

enum hf_status hf__s3_unreadable(struct hf_scope *s, const struct s3 *s3, const char *why)
{
    struct hf_error *error;

    hf__fail(s, HF_IO, "the answer of S3 (%.*s) %s", HF_FMT(s3->endpoint.origin), why);
    error = hf__scope_error_edit(s);
    error->may_retry = true;
    error->may_have_happened = true;
    return HF_IO;
}

/* Learn the service's clock. True when it differs from what was used. */
static bool learn_clock(struct s3 *s3, const struct http_answer *http)
{
    int64_t date_s = hf__answer_date_s(http);
    int64_t wall_s = hf__env_wall_us(&s3->parts.env) / 1000000;
    int64_t off_s = date_s - wall_s - atomic_load_explicit(&s3->skew_s, memory_order_relaxed);

    if (!date_s || (off_s > -CREDENTIALS_SKEW_S && off_s < CREDENTIALS_SKEW_S))
        return false;
    atomic_store_explicit(&s3->skew_s, date_s - wall_s, memory_order_relaxed);
    hf__env_log(&s3->parts.env, HF_LOG_WARNING,
                "blobs: the clock of this machine differs from that of S3 by %lld s",
                (long long)(date_s - wall_s));
    return true;
}

/* Refused for who we are or when it is, and there is something to change about it. */
static bool may_change(struct s3 *s3, const struct http_answer *http, struct hf_str code,
                       const struct sign_credentials *used)
{
    if (is(code, "RequestTimeTooSkewed") || is(code, "RequestExpired") ||
        is(code, "SignatureDoesNotMatch"))
        return learn_clock(s3, http);
    if (is(code, "ExpiredToken") || is(code, "InvalidToken") || is(code, "InvalidAccessKeyId"))
        return hf__credentials_refused(s3->parts.credentials, used->access_key);
    /* A HEAD is refused without a word. */
    return http->status == 403 && !code.len && learn_clock(s3, http);
}

/* ---- a call --------------------------------------------------------------------------------- */

static void add(struct http_head *head, const char *name, struct hf_str value)
{
    head->fields[head->fields_len++] = (struct http_field){hf_str_from(name), value};
}

static enum hf_status build(struct hf_scope *s, struct s3 *s3, const struct s3_call *call,
                            const struct sign_credentials *credentials, struct worker *worker)
{
    struct http_head *head = &worker->head;
    struct hf__buf path = {.scope = s};
    const struct sign_how how = {.credentials = credentials,
                                 .region = s3->endpoint.signing_region,
                                 .service = s3->endpoint.signing_name,
                                 .now_s = hf__env_wall_us(&s3->parts.env) / 1000000 +
                                          atomic_load_explicit(&s3->skew_s, memory_order_relaxed),
                                 .body = call->body};

    hf__buf_put_str(&path, s3->endpoint.path);
    if (call->key.ptr || !s3->endpoint.path.len)
        hf__buf_put_byte(&path, '/');
    hf__buf_put_url(&path, call->key, "/");
    if (path.failed)
        return hf__fail_nomem(s);
    head->method = hf_str_from(call->method);
    head->path = hf_str_of((const char *)path.ptr, path.len);
    head->query = call->query;
    head->target = call->query.ptr
                       ? hf_scope_format(s, "%.*s?%.*s", HF_FMT(head->path), HF_FMT(call->query))
                       : head->path;
    if (!head->target.ptr)
        return hf__fail_nomem(s);
    head->fields_len = 0;
    add(head, "Host", s3->endpoint.host);
    add(head, "User-Agent", s3->parts.agent);
    for (size_t i = 0; i < call->fields_len; i++)
        head->fields[head->fields_len++] = call->fields[i];
    return hf__sign_request(s, worker->signer, head, &how);
}

/* A 200 that says what it has to. */
static bool has_result(const struct s3_call *call, const struct http_answer *http)
{
    return !call->result ||
           memmem(http->body.ptr, http->body.len, call->result, strlen(call->result));
}

static enum hf_status try_once(struct hf_scope *s, struct s3 *s3, const struct s3_call *call,
                               struct worker *worker, struct s3_answer *answer, bool *again)
{
    size_t max = call->answer_max ? call->answer_max : S3_LIST_MAX;
    struct http_answer *http = &answer->http;
    struct sign_credentials credentials;
    struct refusal refusal = {.code = {0}};
    struct hf_str account;

    *again = false;
    TRY(hf__credentials_get(s, s3->parts.credentials, &credentials, &account));
    TRY(build(s, s3, call, &credentials, worker));
    TRY(hf__transport_call(s, s3->parts.transport,
                           &(struct transport_call){.origin = s3->endpoint.origin,
                                                    .head = &worker->head,
                                                    .body = call->body,
                                                    .timeout_ms =
                                                        s3->parts.attempt_ms +
                                                        (uint32_t)((call->body.len + call->expect) /
                                                                   BYTES_PER_MS),
                                                    .answer_max = max},
                           http));
    if (hf__answer_field(http, "content-encoding").len &&
        !hf__http_is(hf__answer_field(http, "content-encoding"), "identity"))
        return hf__s3_unreadable(s, s3, "is packed, which nobody asked for");
    if (http->status < 300 && has_result(call, http))
        return HF_OK;
    TRY(read_refusal(s, http, &credentials, &refusal));
    if (http->status < 300) { /* an error that turned up when the head was sent already */
        if (!refusal.code.len)
            return hf__s3_unreadable(s, s3, "is not what was asked for");
        http->status = 500;
    }
    answer->code = refusal.code;
    *again = may_change(s3, http, refusal.code, &credentials);
    return refused(s, s3, call, http, &credentials, &refusal);
}

static enum hf_status attempt(struct hf_scope *s, struct s3 *s3, const struct s3_call *call,
                              struct worker *worker, struct s3_answer *answer)
{
    enum hf_status status = HF_IO;
    bool again = true;

    for (int tries = 0; tries < TRIES && again && status != HF_OK; tries++) {
        *answer = (struct s3_answer){0};
        hf__scope_error_clear(s);
        status = try_once(s, s3, call, worker, answer, &again);
    }
    return status;
}

static bool is_read(const struct s3_call *call)
{
    return strcmp(call->method, "GET") == 0 || strcmp(call->method, "HEAD") == 0;
}

enum hf_status hf__s3_call(struct hf_scope *s, struct s3 *s3, const struct s3_call *call,
                           struct s3_answer *answer)
{
    struct again_course course = {.repeatable = true}; /* (2) */
    struct hf__mark mark = hf__scope_mark(s);
    enum hf_status status;
    struct worker *worker;

    *answer = (struct s3_answer){0};
    TRY(hf__scope_alive(s));
    status = hf__again_turn(s, &s3->again);
    if (status == HF_TIMEOUT)
        return hf__fail(s, HF_THROTTLED,
                        "S3 throttled this client, and the rate that it keeps to since then gives "
                        "this call no turn before its deadline");
    TRY(status);
    TRY(take_worker(s, s3, &worker));
    for (;;) {
        course.attempt++;
        status = attempt(s, s3, call, worker, answer);
        if (status == HF_OK) {
            hf__again_done(&s3->again, &course);
            break;
        }
        if (!hf__again_goes_on(s, &s3->again, &course)) {
            status = hf_scope_error(s)->status;
            hf__scope_error_edit(s)->may_have_happened = course.happened && !is_read(call);
            break;
        }
        hf__scope_error_clear(s);
        hf__scope_rewind(s, mark);
    }
    return_worker(s3, worker);
    return status;
}
