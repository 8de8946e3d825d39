/*
 * ops/messages.c: what differs between DynamoDB's older texts and those of its 2026 validation
 * layer.
 *
 * The service moves operations to the newer layer one by one. The older texts are the default;
 * hf__scope_set_wording() switches. This file frames errors of values, expressions and legacy
 * parameters; constraints have a form of their own, in constraints.c.
 */
#include "ops/private.h"

#define ONE_ERROR "1 validation error detected: "

enum newer_wording hf__newer_wording(enum hf_op op)
{
    switch (op) {
    case HF_OP_PUT_ITEM:
    case HF_OP_UPDATE_ITEM:
    case HF_OP_DELETE_ITEM:
        return NEWER_PREFIXED;
    case HF_OP_GET_ITEM:
    case HF_OP_BATCH_GET_ITEM:
    case HF_OP_QUERY:
        return NEWER_BARE;
    default:
        return NEWER_AS_BEFORE;
    }
}

enum hf_status hf__reword(struct hf_scope *s, enum hf_op op, enum hf_status status)
{
    struct hf__buf text = {.scope = s};

    if (status != HF_INVALID || hf__scope_wording(s) != HF__WORDING_2026 ||
        hf__newer_wording(op) != NEWER_PREFIXED)
        return status;
    assert(hf_scope_error(s)->status == HF_INVALID);
    hf__buf_put_str(&text, HF_STR(ONE_ERROR));
    hf__buf_put_str(&text, hf_scope_error(s)->message);
    hf__buf_put_byte(&text, '\0');
    if (text.failed)
        return hf__fail_nomem(s);
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)text.ptr, text.len - 1));
}

static bool has_moved(struct hf_scope *s, enum hf_op op)
{
    return hf__scope_wording(s) == HF__WORDING_2026 && hf__newer_wording(op) != NEWER_AS_BEFORE;
}

struct hf_str hf__poison_text(struct hf_scope *s, enum hf_op op, const struct poison *poison)
{
    assert(poison->status != HF_OK && poison->message.ptr);
    return poison->newer.ptr && has_moved(s, op) ? poison->newer : poison->message;
}

enum hf_status hf__ops_fail_expression_value(struct hf_scope *s, enum hf_op op,
                                             const struct poison *poison)
{
    struct hf__buf text = {.scope = s};

    assert(poison->status != HF_OK && poison->message.ptr);
    if (poison->status != HF_INVALID || !poison->key.ptr || has_moved(s, op))
        return hf__fail_text(s, poison->status, hf__poison_text(s, op, poison));
    hf__buf_put_str(&text, HF_STR("ExpressionAttributeValues contains invalid value: "));
    hf__buf_put_str(&text, poison->message);
    hf__buf_put_str(&text, HF_STR(" for key "));
    hf__buf_put_str(&text, poison->key);
    hf__buf_put_byte(&text, '\0');
    if (text.failed)
        return hf__fail_nomem(s);
    return hf__fail_text(s, HF_INVALID, hf_str_of((const char *)text.ptr, text.len - 1));
}

enum hf_status hf__cancel(struct hf_scope *s, const struct hf_cancel_reason *reasons, size_t len)
{
    struct hf__buf text = {.scope = s};
    enum hf_status status;

    assert(reasons && len > 0);
    hf__buf_put_str(&text, HF_STR("Transaction cancelled, please refer cancellation reasons for "
                                  "specific reasons ["));
    for (size_t i = 0; i < len; i++) {
        if (i > 0)
            hf__buf_put_str(&text, HF_STR(", "));
        assert(reasons[i].code.ptr);
        hf__buf_put_str(&text, reasons[i].code);
    }
    hf__buf_put(&text, "]", 2); /* and its NUL */
    assert(text.failed || text.ptr[text.len - 1] == '\0');
    if (text.failed)
        return hf__fail_nomem(s);
    status = hf__fail_text(s, HF_TX_CANCELED, hf_str_of((const char *)text.ptr, text.len - 1));
    hf__scope_error_edit(s)->reasons = reasons;
    hf__scope_error_edit(s)->reasons_len = len;
    return status;
}
