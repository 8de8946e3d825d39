/*
 * wire/errors_read.c: a service's exceptions as statuses; the other way round is errors.c.
 *
 * Types are compared without their name space, as services differ there: DynamoDB has three, others
 * have one or none. Beyond the exceptions of the model there are those of the framework in front of
 * it (signatures, throttling of a whole account), and what a proxy or a load balancer answers,
 * which is no JSON at all; of that the HTTP status is all there is.
 *
 * Whether something was done is not for the exception alone to say. A 4xx that names an exception
 * comes from the service itself, before or instead of the effect. What names none comes from
 * something on the way, or was damaged there, and says nothing of the effect unless its status
 * means that nothing was passed on. 5xx may come from anywhere, and DynamoDB's own 500 may come
 * after the effect.
 */
#include "ops/table.h"
#include "wire/private.h"

/* ---- the body ------------------------------------------------------------------------------- */

struct error_body {
    struct hf_str type;
    struct hf_str message;
    struct hf_str Message;
    struct hf_item item;
    const struct hf_cancel_reason *reasons;
    size_t reasons_len;
};

#define T hf_cancel_reason
static const struct field reason_list[] = {
    STR("Code", code, .rules = 0),
    STR("Message", message, .rules = 0),
    ITEM("Item", item, .rules = 0),
};
static TABLE(reason, "CancellationReason");
#undef T

#define T error_body
static const struct field body_list[] = {
    STR("__type", type, .rules = 0),
    STR("message", message, .rules = 0),
    STR("Message", Message, .rules = 0),
    ITEM("Item", item, .rules = 0),
    STRUCTS("CancellationReasons", reasons, reason, .rules = 0),
};
static TABLE(body, "Error");
#undef T

static struct hf_str local_name(struct hf_str type)
{
    assert(type.ptr || !type.len);
    for (size_t i = type.len; i > 0; i--)
        if (type.ptr[i - 1] == '#')
            return hf_str_of(type.ptr + i, type.len - i);
    return type;
}

struct hf_str hf__wire_error_type(struct hf_scope *s, struct hf_str json)
{
    struct error_body error = {.type = {NULL, 0}};

    if (hf__wire_read_answer(s, &body, json, &error) != HF_OK)
        return (struct hf_str){0};
    return local_name(error.type);
}

/* ---- types ---------------------------------------------------------------------------------- */

static const struct {
    const char *type;
    enum hf_status status;
    bool may_retry;
} known[] = {
    {"InternalServerError", HF_INTERNAL, true},
    {"InternalFailure", HF_INTERNAL, true},
    {"InternalServerErrorException", HF_INTERNAL, true},
    {"ServiceUnavailable", HF_INTERNAL, true},
    {"ServiceUnavailableException", HF_INTERNAL, true},
    {"RequestTimeout", HF_INTERNAL, true},
    {"RequestTimeoutException", HF_INTERNAL, true},
    {"ThrottlingException", HF_THROTTLED, true},
    {"Throttling", HF_THROTTLED, true},
    {"ThrottledException", HF_THROTTLED, true},
    {"RequestThrottledException", HF_THROTTLED, true},
    {"RequestThrottled", HF_THROTTLED, true},
    {"RequestLimitExceeded", HF_THROTTLED, true},
    {"TooManyRequestsException", HF_THROTTLED, true},
    {"BandwidthLimitExceeded", HF_THROTTLED, true},
    {"SlowDown", HF_THROTTLED, true},
    {"LimitExceededException", HF_LIMIT, true}, /* too many tables being changed: later it works */
    {"ReplicatedWriteConflictException", HF_TX_CONFLICT, true},
    {"UnrecognizedClientException", HF_DENIED, false},
    {"InvalidSignatureException", HF_DENIED, false},
    {"SignatureDoesNotMatch", HF_DENIED, false},
    {"IncompleteSignatureException", HF_DENIED, false},
    {"IncompleteSignature", HF_DENIED, false},
    {"MissingAuthenticationTokenException", HF_DENIED, false},
    {"MissingAuthenticationToken", HF_DENIED, false},
    {"InvalidClientTokenId", HF_DENIED, false},
    {"ExpiredTokenException", HF_DENIED, false},
    {"ExpiredToken", HF_DENIED, false},
    {"RequestExpired", HF_DENIED, false},
    {"RequestTimeTooSkewed", HF_DENIED, false},
    {"AuthFailure", HF_DENIED, false},
    {"AccessDenied", HF_DENIED, false},
    {"OptInRequired", HF_DENIED, false},
    {"UnauthorizedException", HF_DENIED, false},
    {"RequestEntityTooLargeException", HF_LIMIT, false},
    {"ValidationError", HF_INVALID, false},
};

static bool is_type(struct hf_str type, const char *name)
{
    return hf_str_equal(type, hf_str_from(name));
}

/* False when the type is not known. */
static bool find_type(struct hf_str type, enum hf_status *status, bool *may_retry)
{
    assert(type.ptr || !type.len);
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (is_type(type, known[i].type)) {
            *status = known[i].status;
            *may_retry = known[i].may_retry;
            return true;
        }
    }
    *may_retry = false;
    if (type.len == 0)
        return false;
#define FIND_STATUS(name, number, wire, text)                                                      \
    if (is_type(type, wire)) {                                                                     \
        *status = HF_##name;                                                                       \
        *may_retry = HF_##name == HF_THROTTLED || HF_##name == HF_TX_CONFLICT ||                   \
                     HF_##name == HF_TX_IN_PROGRESS;                                               \
        return true;                                                                               \
    }
    HF_STATUS_MAP(FIND_STATUS)
#undef FIND_STATUS
    return hf__exception_find(type, status);
}

/* Does the answer say that nothing was done? */
static bool is_refusal(int http_status, bool has_type)
{
    switch (http_status) {
    case 307:
    case 308:
    case 401:
    case 403:
    case 404:
    case 405:
    case 407:
    case 411:
    case 413:
    case 414:
    case 415:
    case 431:
        return true; /* a server that says so did nothing, and passed nothing on */
    default:
        return has_type && http_status >= 400 && http_status < 500;
    }
}

/* What names no exception that we know. A 404 is not about a table, which would be named: it comes
 * from a server that does not have the service, and must not be taken for a deleted table. */
static enum hf_status status_of_http(int http_status, bool has_type, bool *may_retry)
{
    assert(may_retry);
    *may_retry = http_status == 429 || http_status == 408 || http_status >= 500;
    switch (http_status) {
    case 401:
    case 403:
    case 407:
        return HF_DENIED;
    case 413:
        return HF_LIMIT;
    case 429:
        return HF_THROTTLED;
    default:
        if (http_status >= 500 || http_status == 408)
            return HF_INTERNAL;
        if (is_refusal(http_status, has_type))
            return HF_INVALID;
        *may_retry = true; /* no service answers so: it was damaged, or made on the way */
        return HF_IO;
    }
}

/* ---- the error ------------------------------------------------------------------------------ */

/* What to say: the service's sentence, with the type before it where no status stands for that. It
 * is a copy, as messages end with a NUL and what was read is a part of the body. */
static struct hf_str error_sentence(struct hf_scope *s, int http_status,
                                    const struct error_body *error, bool is_known)
{
    struct hf_str message = error->message.ptr ? error->message : error->Message;
    struct hf_str type = local_name(error->type);

    assert(!is_known || error->type.len);
    if (is_known && message.len)
        return hf_scope_copy(s, message);
    if (type.len && message.len)
        return hf_scope_format(s, "%.*s: %.*s", HF_FMT(type), HF_FMT(message));
    if (type.len || message.len)
        return hf_scope_copy(s, type.len ? type : message);
    return hf_scope_format(s, "the service answered with the HTTP status %d", http_status);
}

enum hf_status hf__wire_read_error(struct hf_scope *s, int http_status, struct hf_str json)
{
    struct error_body error = {.type = {NULL, 0}};
    enum hf_status status;
    bool may_retry, is_known;
    struct hf_error *made;

    status = hf__wire_read_answer(s, &body, json, &error);
    if (status == HF_NOMEM) {
        hf__scope_error_edit(s)->may_have_happened = !is_refusal(http_status, false);
        return status;
    }
    if (status != HF_OK)
        error = (struct error_body){.type = {NULL, 0}};
    is_known = find_type(local_name(error.type), &status, &may_retry);
    if (!is_known)
        status = status_of_http(http_status, error.type.len > 0, &may_retry);
    hf__fail_text(s, status, error_sentence(s, http_status, &error, is_known));
    made = hf__scope_error_edit(s);
    assert(made->status == status && status != HF_OK); /* whatever it says, it is an error */
    if (error.type.len)
        made->exception = hf_scope_copy(s, local_name(error.type));
    made->may_retry = may_retry || http_status >= 500;
    made->may_have_happened = !is_refusal(http_status, error.type.len > 0);
    made->item = error.item;
    made->reasons = error.reasons;
    made->reasons_len = error.reasons_len;
    assert(made->reasons || !made->reasons_len);
    return status;
}
