/*
 * base/scope_error.c: the last error of a scope, and texts that it has for others. Failing for lack of
 * memory needs no memory: (2) of scope.c.
 */
#include "base/scope_private.h"

/* ---- errors --------------------------------------------------------------------------------- */

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

int hf__scope_keep_text(struct hf_scope *s, struct hf_str text)
{
    if (s->kept_len == KEPT_TEXTS_MAX)
        return -KEPT_TEXTS_MAX;
    assert(s->kept_len >= 0 && s->kept_len < KEPT_TEXTS_MAX);
    s->kept[s->kept_len++] = text;
    return -s->kept_len;
}

struct hf_str hf__scope_kept_text(const struct hf_scope *s, int number)
{
    /* A C program can put any number into an enum, so this one may not be ours. */
    return number < 0 && number >= -s->kept_len ? s->kept[-number - 1] : HF_STR("?");
}
