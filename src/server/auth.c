/*
 * server/auth.c: is this request signed by somebody who may call?
 *
 * A request says how it is signed in the header Authorization or in its query. Both become one
 * claim; then the claim is judged. What is wrong is looked for in this order, and the first finding
 * is the answer:
 *
 *     both forms at once; neither; a part of the header that is not key=value; parts that are
 *     missing; a date that is none; too old, too new; Host (or X-Amz-Target) not signed; another
 *     algorithm; a credential that has not five parts; another region, service, terminator or
 *     date; a key that we do not know; a body that is not signed, without TLS; another signature;
 *     another session token
 *
 * Without keys only the form counts: those that compare with the clock, the scope or a secret are
 * left out, and so is what must be signed.
 *
 * Keys are in auth_keys.c.
 *
 * What always holds:
 *
 *  (1) With keys, a request passes only if its signature equals one that we computed over it.
 *  (2) A signing key is kept only after it verified a signature. A client that cannot sign can
 *      neither fill the table nor push others out of it.
 *  (3) What a signature does not cover does not decide what the server does: the operation is in
 *      X-Amz-Target, so that must be signed, and so must the body be, unless TLS protects it.
 *      Other fields that may be unsigned (some clients leave X-Amz-User-Agent or the token out)
 *      change nothing.
 *  (4) Messages are UTF-8, whatever bytes the request had.
 */
#include "server/auth.h"

#include <openssl/crypto.h>

#include "base/buf.h"
#include "base/utf8.h"
#include "server/auth_keys.h"

#define SERVICE "com.amazon.coral.service#"
#define MODEL "com.amazonaws.dynamodb.v20120810#"

enum {
    EXPIRES_MAX_S = 7 * 86400, /* X-Amz-Expires */
    PARTS = 5                  /* of a credential */
};

/* A request that is being judged. */
struct verification {
    struct hf_scope *s;
    struct auth *auth;
    const struct http_head *head;
    struct hf_bytes body;
    int64_t now_s;
    struct auth_refusal *refusal;
    struct hf_str authorization; /* the header */
    struct hf_str algorithm;
    struct hf_str credential;
    struct hf_str terminator;
    struct hf_str date_said; /* X-Amz-Date or Date, as sent */
    int64_t time_s;          /* the same, understood */
    char time[SIGN_TIME + 1];
    struct sign_claim claim;
};

/* ---- refusals ------------------------------------------------------------------------------- */

/* The last resort needs no memory. */
static bool refuse_nomem(struct verification *v)
{
    *v->refusal = (struct auth_refusal){500, MODEL "InternalServerError",
                                        hf_str_from(hf_status_text(HF_NOMEM))};
    return false;
}

static bool refuse_with(struct verification *v, const char *type, struct hf_str message)
{
    if (!message.ptr)
        return refuse_nomem(v);
    *v->refusal = (struct auth_refusal){400, type, message};
    return false;
}

static bool refuse_incomplete(struct verification *v, struct hf_str message)
{
    return refuse_with(v, SERVICE "IncompleteSignatureException", message);
}

static bool refuse_invalid(struct verification *v, struct hf_str message)
{
    return refuse_with(v, SERVICE "InvalidSignatureException", message);
}

static bool refuse_mismatch(struct verification *v)
{
    return refuse_invalid(v, HF_STR("The request signature we calculated does not match the "
                                    "signature you provided. Check your AWS Secret Access Key and "
                                    "signing method. Consult the service documentation for "
                                    "details."));
}

/* What was sent, to be put into a message: what is not UTF-8, and NUL, becomes '?'. */
static struct hf_str quote_text(struct verification *v, struct hf_str text)
{
    char *copy = hf_scope_alloc(v->s, text.len + 1);
    size_t at = 0;

    if (!copy)
        return HF_STR(""); /* the message will not find memory either, or does without */
    if (text.len)
        memcpy(copy, text.ptr, text.len);
    while (at < text.len) {
        uint8_t c = (uint8_t)copy[at];
        size_t len =
            c < 0x80 ? (c != 0) : hf__utf8_length((const unsigned char *)copy + at, text.len - at);

        if (!len)
            copy[at] = '?';
        at += len ? len : 1;
    }
    return hf_str_of(copy, text.len);
}

static struct hf_str text_of(const struct hf__buf *buf)
{
    return buf->failed ? (struct hf_str){0} : hf_str_of((const char *)buf->ptr, buf->len);
}

/* ---- the claim ------------------------------------------------------------------------------ */

/* The next part of the header: commas and blanks are between them. */
static bool next_part(struct hf_str text, size_t *at, struct hf_str *part)
{
    static const char between[] = {',', ' ', '\t'};

    while (*at < text.len &&
           (text.ptr[*at] == ',' || text.ptr[*at] == ' ' || text.ptr[*at] == '\t'))
        ++*at;
    *part = hf_str_of(text.ptr + *at, text.len - *at);
    for (size_t i = 0; part->len && i < sizeof(between); i++) {
        const char *end = memchr(part->ptr, between[i], part->len);

        if (end)
            part->len = (size_t)(end - part->ptr);
    }
    *at += part->len;
    return part->len > 0;
}

static bool read_header_parts(struct verification *v)
{
    struct hf_str part, name, value;
    size_t at = 0;

    next_part(v->authorization, &at, &v->algorithm);
    while (next_part(v->authorization, &at, &part)) {
        const char *equals = memchr(part.ptr, '=', part.len);

        if (!equals)
            return refuse_incomplete(
                v, hf_scope_format(v->s,
                                   "'%.*s' not a valid key=value pair (missing equal-sign) in "
                                   "Authorization header: '%.*s'.",
                                   HF_FMT(quote_text(v, part)),
                                   HF_FMT(quote_text(v, v->authorization))));
        name = hf_str_of(part.ptr, (size_t)(equals - part.ptr));
        value = hf_str_of(equals + 1, part.len - name.len - 1);
        if (hf_str_equal(name, HF_STR("Credential")))
            v->credential = value;
        else if (hf_str_equal(name, HF_STR("Signature")))
            v->claim.signature = value;
        else if (hf_str_equal(name, HF_STR("SignedHeaders")))
            v->claim.signed_headers = value;
    }
    return true;
}

static bool read_header(struct verification *v)
{
    static const struct hf_str header = HF_STR_INIT("Authorization header requires ");
    struct hf__buf missing = {.scope = v->s};

    if (!read_header_parts(v))
        return false;
    v->date_said = hf__http_field(v->head, "X-Amz-Date");
    if (!v->date_said.len)
        v->date_said = hf__http_field(v->head, "Date");
    v->claim.session_token = hf__http_field(v->head, "X-Amz-Security-Token");

    if (!v->credential.len)
        hf__buf_format(&missing, "%.*s'Credential' parameter. ", HF_FMT(header));
    if (!v->claim.signature.len)
        hf__buf_format(&missing, "%.*s'Signature' parameter. ", HF_FMT(header));
    if (!v->claim.signed_headers.ptr)
        hf__buf_format(&missing, "%.*s'SignedHeaders' parameter. ", HF_FMT(header));
    if (!v->date_said.len)
        hf__buf_format(&missing, "%.*sexistence of either a 'X-Amz-Date' or a 'Date' header. ",
                       HF_FMT(header));
    if (!missing.len && !missing.failed)
        return true;
    hf__buf_put_str(&missing, HF_STR("Authorization="));
    hf__buf_put_str(&missing, quote_text(v, v->authorization));
    return refuse_incomplete(v, text_of(&missing));
}

/* Seconds for which a signature in the query is good. */
static bool read_expires(struct verification *v, struct hf_str text)
{
    uint64_t seconds = 0;

    if (!text.ptr)
        return true;
    for (size_t i = 0; i < text.len && seconds <= EXPIRES_MAX_S; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return refuse_incomplete(v, HF_STR("X-Amz-Expires should be a number"));
        seconds = seconds * 10 + (uint64_t)(text.ptr[i] - '0');
    }
    if (!text.len)
        return refuse_incomplete(v, HF_STR("X-Amz-Expires should be a number"));
    if (!seconds)
        return refuse_incomplete(v, HF_STR("X-Amz-Expires must be positive"));
    if (seconds > EXPIRES_MAX_S)
        return refuse_incomplete(v, HF_STR("X-Amz-Expires must be less than a week (in seconds); "
                                           "that is, the given X-Amz-Expires must be less than "
                                           "604800 seconds"));
    v->claim.expires_s = seconds;
    return true;
}

static bool read_query(struct verification *v)
{
    const struct {
        const char *name;
        struct hf_str *to;
        bool required;
    } params[] = {
        {"X-Amz-Algorithm", &v->algorithm, true},
        {"X-Amz-Credential", &v->credential, true},
        {"X-Amz-Signature", &v->claim.signature, true},
        {"X-Amz-SignedHeaders", &v->claim.signed_headers, true},
        {"X-Amz-Date", &v->date_said, true},
        {"X-Amz-Security-Token", &v->claim.session_token, false},
    };
    struct hf__buf missing = {.scope = v->s};
    struct hf_str expires;

    v->claim.in_query = true;
    for (size_t i = 0; i < ARRAY_LEN(params); i++) {
        if (hf__sign_param(v->s, v->head->query, params[i].name, params[i].to) != HF_OK)
            return refuse_nomem(v);
        if (params[i].required && !params[i].to->len)
            hf__buf_format(&missing, "AWS query-string parameters must include '%s'. ",
                           params[i].name);
    }
    if (missing.len || missing.failed) {
        hf__buf_put_str(&missing, HF_STR("Re-examine the query-string parameters."));
        return refuse_incomplete(v, text_of(&missing));
    }
    /* Some clients put the token into a header although the rest is in the query. */
    if (!v->claim.session_token.ptr)
        v->claim.session_token = hf__http_field(v->head, "X-Amz-Security-Token");
    if (hf__sign_param(v->s, v->head->query, "X-Amz-Expires", &expires) != HF_OK)
        return refuse_nomem(v);
    return read_expires(v, expires);
}

/* Which form is it? */
static bool read_claim(struct verification *v)
{
    struct hf_str algorithm;

    v->authorization = hf__http_field(v->head, "Authorization");
    if (hf__sign_param(v->s, v->head->query, "X-Amz-Algorithm", &algorithm) != HF_OK)
        return refuse_nomem(v);
    if (v->authorization.len && algorithm.ptr)
        return refuse_invalid(v, HF_STR("Found both 'X-Amz-Algorithm' as a query-string param and "
                                        "'Authorization' as HTTP header."));
    if (algorithm.ptr)
        return read_query(v);
    if (v->authorization.len < 5 || memcmp(v->authorization.ptr, "AWS4-", 5) != 0)
        return refuse_with(v, SERVICE "MissingAuthenticationTokenException",
                           HF_STR("Request is missing Authentication Token"));
    return read_header(v);
}

/* ---- its form ------------------------------------------------------------------------------- */

/* "Sun, 06 Nov 1994 08:49:37 GMT" as 19941106T084937Z; false when it is no such date. */
static bool date_to_time(struct hf_str date, char time[SIGN_TIME + 1])
{
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    static const char form[] = "xxx, xx xxx xxxx xx:xx:xx GMT";
    const char *p = date.ptr;

    if (date.len != sizeof(form) - 1)
        return false;
    for (size_t i = 0; i < date.len; i++) {
        if (form[i] != 'x' && p[i] != form[i])
            return false;
    }
    for (unsigned month = 0; month < 12; month++) {
        if (memcmp(p + 8, months + 3 * (size_t)month, 3) != 0)
            continue;
        snprintf(time, SIGN_TIME + 1, "%.4s%02u%.2sT%.2s%.2s%.2sZ", p + 12, month + 1, p + 5,
                 p + 17, p + 20, p + 23);
        return true;
    }
    return false;
}

static bool check_date(struct verification *v)
{
    struct hf_str said = v->date_said;

    if (said.len == SIGN_TIME) {
        memcpy(v->time, said.ptr, SIGN_TIME);
        v->time[SIGN_TIME] = '\0';
    } else if (v->claim.in_query || !date_to_time(said, v->time)) {
        v->time[0] = '\0';
    }
    v->claim.time = hf_str_from(v->time);
    if (hf__sign_time(v->claim.time, &v->time_s))
        return true;
    return refuse_incomplete(v, hf_scope_format(v->s,
                                                "Date must be in ISO-8601 'basic format'. Got "
                                                "'%.*s'. See http://en.wikipedia.org/wiki/ISO_8601",
                                                HF_FMT(quote_text(v, said))));
}

/* keyid/date/region/service/term; slashes at the end do not count. */
static bool check_credential(struct verification *v)
{
    struct hf_str rest = v->credential, parts[PARTS];
    size_t len = 0;

    if (!hf_str_equal(v->algorithm, HF_STR(SIGN_ALGORITHM)))
        return refuse_incomplete(
            v, hf_scope_format(v->s,
                               "Unsupported AWS 'algorithm': '%.*s' (only " SIGN_ALGORITHM
                               " for now). ",
                               HF_FMT(quote_text(v, v->algorithm))));
    while (rest.len && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    while (rest.ptr && len <= PARTS) {
        const char *slash = rest.len ? memchr(rest.ptr, '/', rest.len) : NULL;
        size_t part_len = slash ? (size_t)(slash - rest.ptr) : rest.len;

        if (len < PARTS)
            parts[len] = hf_str_of(rest.ptr, part_len);
        len++;
        rest = slash ? hf_str_of(slash + 1, rest.len - part_len - 1) : (struct hf_str){0};
    }
    if (len != PARTS)
        return refuse_incomplete(
            v, hf_scope_format(v->s,
                               "Credential must have exactly 5 slash-delimited elements, e.g. "
                               "keyid/date/region/service/term, got '%.*s'",
                               HF_FMT(quote_text(v, v->credential))));
    v->claim.access_key = parts[0];
    v->claim.date = parts[1];
    v->claim.region = parts[2];
    v->claim.service = parts[3];
    v->terminator = parts[4];
    return true;
}

/* ---- its truth ------------------------------------------------------------------------------ */

/* "(20130609T100015Z - 15 min.)": how the bound of a time came about. */
static struct hf_str time_message(struct verification *v, const char *what, const char *order,
                                  int64_t span_s, char sign)
{
    char bound[SIGN_TIME + 1], now[SIGN_TIME + 1];
    bool minutes = span_s % 60 == 0;

    hf__sign_time_text(v->now_s + (sign == '-' ? -span_s : span_s), bound);
    hf__sign_time_text(v->now_s, now);
    return hf_scope_format(v->s, "%s: %s is %s %s (%s %c %lld %s.)", what, v->time, order, bound,
                           now, sign, (long long)(minutes ? span_s / 60 : span_s),
                           minutes ? "min" : "sec");
}

static bool check_clock(struct verification *v)
{
    int64_t window_s = v->auth->window_s;
    int64_t lasts_s = v->claim.expires_s ? (int64_t)v->claim.expires_s : window_s;

    if (v->time_s < v->now_s - lasts_s)
        return refuse_invalid(v, time_message(v, "Signature expired", "now earlier than", lasts_s,
                                              '-'));
    if (v->time_s > v->now_s + window_s)
        return refuse_invalid(v, time_message(v, "Signature not yet current", "still later than",
                                              window_s, '+'));
    return true;
}

static bool is_signed(const struct verification *v, const char *name)
{
    struct hf_str list = v->claim.signed_headers;
    size_t at = 0;

    while (at < list.len) {
        struct hf_str one = {list.ptr + at, 0};

        while (at + one.len < list.len && one.ptr[one.len] != ';')
            one.len++;
        if (hf__http_is(one, name))
            return true;
        at += one.len + 1;
    }
    return false;
}

static bool check_signed_headers(struct verification *v)
{
    if (!is_signed(v, "host"))
        return refuse_invalid(v, HF_STR("'Host' or ':authority' must be a 'SignedHeader' in the "
                                        "AWS Authorization."));
    if (hf__http_field(v->head, "X-Amz-Target").ptr && !is_signed(v, "x-amz-target"))
        return refuse_invalid(v, HF_STR("'X-Amz-Target' must be a 'SignedHeader' in the AWS "
                                        "Authorization."));
    return true;
}

static bool check_scope(struct verification *v)
{
    struct hf__buf wrong = {.scope = v->s};
    const struct sign_claim *claim = &v->claim;
    const struct auth *auth = v->auth;

    if (auth->region && !hf_str_equal(claim->region, hf_str_of(auth->region, auth->region_len)))
        hf__buf_format(&wrong, "Credential should be scoped to a valid region, not '%.*s'. ",
                       HF_FMT(quote_text(v, claim->region)));
    if (!hf_str_equal(claim->service, HF_STR("dynamodb")))
        hf__buf_put_str(&wrong,
                        HF_STR("Credential should be scoped to correct service: 'dynamodb'. "));
    if (!hf_str_equal(v->terminator, HF_STR(SIGN_TERMINATOR)))
        hf__buf_format(&wrong,
                       "Credential should be scoped with a valid terminator: '" SIGN_TERMINATOR
                       "', not '%.*s'. ",
                       HF_FMT(quote_text(v, v->terminator)));
    if (!hf_str_equal(claim->date, hf_str_of(v->time, SIGN_DATE)))
        hf__buf_format(&wrong,
                       "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of "
                       "date from HTTP: '%.*s' != '%.8s', from '%s'.",
                       HF_FMT(quote_text(v, claim->date)), v->time, v->time);
    return wrong.len || wrong.failed ? refuse_invalid(v, text_of(&wrong)) : true;
}

/* The last line of the canonical request. A claimed hash that is not the body's is refused. */
static enum hf_status payload_hash(struct verification *v, char hex[SIGN_HEX + 1],
                                   struct hf_str *hash)
{
    struct hf_str claimed = hf__http_field(v->head, "X-Amz-Content-Sha256");

    if (!claimed.ptr && v->claim.in_query)
        TRY(hf__sign_param(v->s, v->head->query, "X-Amz-Content-Sha256", &claimed));
    if (hf_str_equal(claimed, HF_STR(SIGN_UNSIGNED))) {
        *hash = HF_STR(SIGN_UNSIGNED);
        return HF_OK;
    }
    hf__sha256_hex(v->auth->signer, v->body.ptr, v->body.len, hex);
    *hash = hf_str_of(hex, SIGN_HEX);
    return HF_OK;
}

/* Did this key make the signature of `string`? */
static bool signed_by(struct verification *v, size_t i, struct hf_str string)
{
    struct auth *auth = v->auth;
    struct kept_key *kept = hf__auth_find_key(auth, i, &v->claim);
    uint8_t key[SIGN_HASH];
    char signature[SIGN_HEX + 1];
    bool equal;

    if (kept)
        memcpy(key, kept->key, SIGN_HASH);
    else
        hf__sign_key(auth->signer, auth->keys[i].secret_key, v->claim.date, v->claim.region,
                     v->claim.service, key);
    hf__sign_signature(auth->signer, key, string, signature);
    equal = hf__sign_equal(hf_str_of(signature, SIGN_HEX), v->claim.signature);
    if (equal && !kept)
        hf__auth_keep_key(auth, i, &v->claim, key);
    OPENSSL_cleanse(key, sizeof(key));
    return equal;
}

static bool check_signature(struct verification *v)
{
    const struct auth *auth = v->auth;
    char hex[SIGN_HEX + 1];
    struct hf_str hash, canonical, string;
    bool known = false, right = false;
    enum hf_status status;

    for (size_t i = 0; i < auth->keys_len && !known; i++)
        known = hf_str_equal(auth->keys[i].access_key, v->claim.access_key);
    if (!known)
        return refuse_with(v, SERVICE "UnrecognizedClientException",
                           HF_STR("The security token included in the request is invalid."));

    status = payload_hash(v, hex, &hash);
    if (status == HF_OK && !auth->unsigned_body && hash.ptr != hex)
        return refuse_invalid(v, HF_STR("X-Amz-Content-Sha256 is " SIGN_UNSIGNED ", but without "
                                        "TLS the body must be signed."));
    if (status == HF_OK)
        status = hf__sign_canonical(v->s, v->head, v->claim.signed_headers, hash, true, &canonical);
    if (status == HF_OK)
        status = hf__sign_string(v->s, auth->signer, &v->claim, canonical, &string);
    if (status != HF_OK)
        return status == HF_INVALID ? refuse_mismatch(v) : refuse_nomem(v);

    for (size_t i = 0; i < auth->keys_len; i++) {
        const struct sign_credentials *key = &auth->keys[i];

        if (!hf_str_equal(key->access_key, v->claim.access_key) || !signed_by(v, i, string))
            continue;
        right = true;
        if (hf__sign_equal(key->session_token, v->claim.session_token))
            return true;
    }
    return right ? refuse_with(v, SERVICE "UnrecognizedClientException",
                               HF_STR("The security token included in the request is invalid"))
                 : refuse_mismatch(v);
}

bool hf__auth_check(struct hf_scope *s, struct auth *auth, const struct http_head *head,
                    struct hf_bytes body, int64_t now_s, struct auth_refusal *refusal)
{
    struct verification v = {
        .s = s, .auth = auth, .head = head, .body = body, .now_s = now_s, .refusal = refusal};
    bool passes;

    *refusal = (struct auth_refusal){0};
    if (!auth->keys_len)
        passes = read_claim(&v) && check_date(&v) && check_credential(&v);
    else
        passes = read_claim(&v) && check_date(&v) && check_clock(&v) && check_signed_headers(&v) &&
                 check_credential(&v) && check_scope(&v) && check_signature(&v);
    assert(passes == (refusal->status == 0)); /* a refusal always has a reason */
    assert(passes || (refusal->type && refusal->message.ptr));
    hf__scope_error_clear(s); /* what went wrong is in the refusal */
    return passes;
}
