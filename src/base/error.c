/*
 * base/error.c: the last error of a scope; errors that say more than a sentence: which limit was passed, what
 * the cause was; and the error of one scope in another.
 *
 * What always holds:
 *
 *  (1) An error, its causes and all their texts live in the scope that has it. Another scope's are
 *      copied, so that one may be reset; a scope's own are there already, and only the struct is.
 *  (2) What there is no memory for is left out. The status stays, and so do the numbers and flags;
 *      a message becomes the text of the status.
 *  (3) An error has at most HF_ERROR_CAUSES_MAX causes, whatever it is made from: what wraps its own
 *      error in a loop does not grow.
 *  (4) Failing for lack of memory needs no memory: (2) of scope.c.
 */
#include "base/scope_private.h"

/* ---- a sentence ----------------------------------------------------------------------------- */

static bool is_transient(enum hf_status status)
{
    switch (status) {
    case HF_TX_CONFLICT:
    case HF_TX_IN_PROGRESS:
    case HF_THROTTLED:
    case HF_TIMEOUT:
    case HF_NO_SPACE:
    case HF_NOMEM:
        return true;
    default:
        return false;
    }
}

enum hf_status hf__fail_text(struct hf_scope *s, enum hf_status status, struct hf_str message)
{
    assert(status != HF_OK);
    s->said_of = NULL;
    s->error_set = true;
    s->error = (struct hf_error){
        .status = status,
        .message = message.ptr ? message : hf_str_from(hf_status_text(status)),
        .may_retry = is_transient(status),
    };
    return status;
}

enum hf_status hf__fail(struct hf_scope *s, enum hf_status status, const char *format, ...)
{
    va_list args;
    struct hf_str text;

    va_start(args, format);
    text = hf__scope_format_args(s, format, args);
    va_end(args);
    return hf__fail_text(s, status, text);
}

enum hf_status hf__fail_as(struct hf_scope *s, enum hf_status status, const char *exception,
                           const char *format, ...)
{
    enum hf_status listed = HF_OK;
    bool is_listed = hf__exception_find(hf_str_from(exception), &listed);
    va_list args;
    struct hf_str text;

    assert(is_listed && listed == status);
    (void)is_listed, (void)listed;
    va_start(args, format);
    text = hf__scope_format_args(s, format, args);
    va_end(args);
    hf__fail_text(s, status, text);
    s->error.exception = hf_str_from(exception);
    return status;
}

enum hf_status hf_scope_fail(struct hf_scope *s, enum hf_status status, const char *format, ...)
{
    va_list args;
    struct hf_str text;

    if (status == HF_OK) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    va_start(args, format);
    text = hf__scope_format_args(s, format, args);
    va_end(args);
    return hf__fail_text(s, status, text);
}

enum hf_status hf_scope_ok(struct hf_scope *s)
{
    hf__scope_error_clear(s);
    return HF_OK;
}

enum hf_status hf_scope_doubt(struct hf_scope *s)
{
    s->error_set = true;
    s->error.may_have_happened = true;
    return s->error.status;
}

enum hf_status hf__fail_nomem(struct hf_scope *s)
{
    return hf__fail_text(s, HF_NOMEM, hf_str_of(NULL, 0));
}

const struct hf_error *hf_scope_error(const struct hf_scope *s)
{
    return &s->error;
}

const char *hf_scope_error_text(const struct hf_scope *s)
{
    if (!s->error.message.ptr)
        return "";
    return s->said_of == s->error.message.ptr ? s->said.ptr : s->error.message.ptr;
}

void hf__scope_error_say(struct hf_scope *s, struct hf_str text)
{
    s->said = text;
    s->said_of = text.ptr ? s->error.message.ptr : NULL;
}

struct hf_error *hf__scope_error_edit(struct hf_scope *s)
{
    s->error_set = true;
    return &s->error;
}

/* Every call clears the error of the one before it, which hardly ever failed. */
void hf__scope_error_clear(struct hf_scope *s)
{
    if (s->error_set) {
        memset(&s->error, 0, sizeof(s->error));
        s->said_of = NULL;
        s->error_set = false;
    }
    assert(s->error.status == HF_OK && !s->error.message.ptr);
}

/* ---- more than that ------------------------------------------------------------------------- */

static struct hf_str text_keep(struct hf_scope *s, struct hf_str text)
{
    return text.ptr ? hf_scope_copy(s, text) : text;
}

static struct hf_item item_keep(struct hf_scope *s, struct hf_item item)
{
    uint8_t *bytes = item.ptr ? hf_scope_alloc(s, item.len) : NULL;

    if (!bytes)
        return (struct hf_item){0};
    if (item.len)
        memcpy(bytes, item.ptr, item.len);
    return (struct hf_item){bytes, item.len};
}

static void reasons_keep(struct hf_scope *s, const struct hf_error *from, struct hf_error *to)
{
    struct hf_cancel_reason *reasons =
        from->reasons_len ? hf__scope_array(s, from->reasons_len, sizeof(*reasons)) : NULL;

    to->reasons = reasons;
    to->reasons_len = reasons ? from->reasons_len : 0;
    for (size_t i = 0; i < to->reasons_len; i++)
        reasons[i] = (struct hf_cancel_reason){.code = text_keep(s, from->reasons[i].code),
                                               .message = text_keep(s, from->reasons[i].message),
                                               .item = item_keep(s, from->reasons[i].item)};
}

/* (2) All but the causes. */
static struct hf_error error_keep(struct hf_scope *s, const struct hf_error *from)
{
    struct hf_error to = *from;

    to.message = text_keep(s, from->message);
    if (!to.message.ptr)
        to.message = hf_str_from(hf_status_text(from->status));
    to.operation = text_keep(s, from->operation);
    to.exception = text_keep(s, from->exception);
    to.table = text_keep(s, from->table);
    to.item = item_keep(s, from->item);
    to.limit.name = text_keep(s, from->limit.name);
    to.cause = NULL;
    reasons_keep(s, from, &to);
    return to;
}

/* (3) This error and its causes, to be the causes of another. `own`: they are in the scope. */
static const struct hf_error *causes_keep(struct hf_scope *s, const struct hf_error *from, bool own)
{
    const struct hf_error *first = NULL, **next = &first;

    for (int i = 0; from && from->status != HF_OK && i < HF_ERROR_CAUSES_MAX; i++) {
        struct hf_error *copy = hf_scope_alloc(s, sizeof(*copy));

        if (!copy)
            break;
        *copy = own ? *from : error_keep(s, from);
        copy->cause = NULL;
        *next = copy;
        next = &copy->cause;
        from = from->cause;
    }
    return first;
}

enum hf_status hf_scope_fail_limit(struct hf_scope *s, enum hf_status status,
                                   struct hf_error_limit limit, const char *format, ...)
{
    va_list args;
    struct hf_str text;

    if (status == HF_OK) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    va_start(args, format);
    text = hf__scope_format_args(s, format, args);
    va_end(args);
    hf__fail_text(s, status, text);
    if (limit.actual > limit.max) /* else there was too little, not too much */
        limit.name = text_keep(s, limit.name);
    if (limit.actual > limit.max && limit.name.ptr)
        hf__scope_error_edit(s)->limit = limit;
    return status;
}

/* The scope fails with that text. The cause may be its own error so far. */
static enum hf_status fail_because(struct hf_scope *s, enum hf_status status,
                                   const struct hf_error *cause, struct hf_str text)
{
    struct hf_error below = cause ? *cause : (struct hf_error){.status = HF_OK};
    struct hf_error *error = hf__scope_error_edit(s);
    const struct hf_error *causes = causes_keep(s, cause, cause == error);

    hf__fail_text(s, status, text);
    error->cause = causes;
    error->may_have_happened = below.may_have_happened;
    if (below.status == status) {
        error->may_retry = below.may_retry;
        error->retry_after_ms = below.retry_after_ms;
    }
    return status;
}

enum hf_status hf_scope_fail_because(struct hf_scope *s, enum hf_status status,
                                     const struct hf_error *cause, const char *format, ...)
{
    va_list args;
    struct hf_str text;

    if (status == HF_OK) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    va_start(args, format);
    text = hf__scope_format_args(s, format, args);
    va_end(args);
    return fail_because(s, status, cause, text);
}

enum hf_status hf_scope_fail_from(struct hf_scope *s, enum hf_status status,
                                  const struct hf_scope *other)
{
    const struct hf_error *from = hf_scope_error(other);
    struct hf_error copy;
    const char *said;

    if (status == HF_OK) {
        hf__scope_error_clear(s);
        return HF_OK;
    }
    said = hf_scope_error_text(other);
    if (from->status != status)
        return fail_because(s, status, from,
                            *said ? hf_scope_copy(s, hf_str_from(said)) : hf_str_of(NULL, 0));
    if (s == other)
        return status;
    copy = error_keep(s, from);
    copy.cause = causes_keep(s, from->cause, false);
    hf__fail_text(s, status, copy.message);
    *hf__scope_error_edit(s) = copy;
    if (said != from->message.ptr)
        hf__scope_error_say(s, hf_scope_copy(s, hf_str_from(said)));
    return status;
}
