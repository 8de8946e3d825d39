/*
 * wire/errors.c: statuses as DynamoDB's exceptions.
 *
 * The service has three name spaces: one for validation, one for what the framework in front of it
 * refuses, one for what the model of the operations declares. The sentence is the member "message",
 * but "Message" in two of the framework's; an unknown operation has none, and neither has a body
 * that is not JSON.
 */
#include "wire/private.h"

#define VALIDATE "com.amazon.coral.validate#"
#define SERVICE "com.amazon.coral.service#"
#define MODEL "com.amazonaws.dynamodb.v20120810#"

const char *hf__wire_type(enum hf_status status)
{
    switch (status) {
    case HF_INVALID:
        return VALIDATE "ValidationException";
    case HF_SERIALIZATION:
        return SERVICE "SerializationException";
    case HF_UNKNOWN_OPERATION:
    case HF_UNSUPPORTED:
        return SERVICE "UnknownOperationException";
    case HF_DENIED:
        return SERVICE "AccessDeniedException";
    default:
        break;
    }
    switch (status) {
#define TYPE_CASE(name, number, wire, text)                                                        \
    case HF_##name:                                                                                \
        return MODEL wire;
        HF_STATUS_MAP(TYPE_CASE)
#undef TYPE_CASE
    }
    return MODEL "InternalServerError";
}

/* Has it a name of its own? A service may have called it by any, but only those that are in the
 * model are passed on. */
static bool is_named(const struct hf_error *error)
{
    enum hf_status status;

    assert(error->exception.ptr || !error->exception.len);
    return hf__exception_find(error->exception, &status) && status == error->status;
}

const char *hf__wire_type_of(const struct hf_error *error)
{
    assert(error->status != HF_OK);
    if (!is_named(error))
        return hf__wire_type(error->status);
#define EXCEPTION_TYPE(wire, name)                                                                 \
    if (hf_str_equal(error->exception, HF_STR(wire)))                                              \
        return MODEL wire;
    HF_EXCEPTION_MAP(EXCEPTION_TYPE)
#undef EXCEPTION_TYPE
    return hf__wire_type(error->status);
}

static void write_message(struct hf__buf *buf, const struct hf_error *error)
{
    assert(error->message.ptr || !error->message.len);
    switch (error->status) {
    case HF_UNKNOWN_OPERATION:
    case HF_UNSUPPORTED:
        if (!is_named(error))
            return;
        hf__buf_put_str(buf, HF_STR(",\"message\":"));
        break;
    case HF_SERIALIZATION:
    case HF_DENIED:
        if (error->message.len == 0)
            return;
        hf__buf_put_str(buf, HF_STR(",\"Message\":"));
        break;
    default:
        hf__buf_put_str(buf, HF_STR(",\"message\":"));
        break;
    }
    hf__wire_write_str(buf, error->message);
}

static void write_reasons(struct hf__buf *buf, const struct hf_error *error)
{
    assert(error->reasons);
    hf__buf_put_str(buf, HF_STR(",\"CancellationReasons\":["));
    for (size_t i = 0; i < error->reasons_len; i++) {
        const struct hf_cancel_reason *reason = &error->reasons[i];

        hf__buf_put_str(buf, i ? HF_STR(",{\"Code\":") : HF_STR("{\"Code\":"));
        hf__wire_write_str(buf, reason->code);
        if (reason->item.ptr) {
            hf__buf_put_str(buf, HF_STR(",\"Item\":"));
            hf__wire_write_item(buf, reason->item);
        }
        if (reason->message.ptr) {
            hf__buf_put_str(buf, HF_STR(",\"Message\":"));
            hf__wire_write_str(buf, reason->message);
        }
        hf__buf_put_byte(buf, '}');
    }
    hf__buf_put_byte(buf, ']');
}

void hf__wire_write_error(struct hf__buf *buf, const struct hf_error *error)
{
    assert(error->status != HF_OK);
    hf__buf_put_str(buf, HF_STR("{\"__type\":\""));
    hf__buf_put_str(buf, hf_str_from(hf__wire_type_of(error)));
    hf__buf_put_byte(buf, '"');
    write_message(buf, error);
    if (error->item.ptr) {
        hf__buf_put_str(buf, HF_STR(",\"Item\":"));
        hf__wire_write_item(buf, error->item);
    }
    if (error->reasons)
        write_reasons(buf, error);
    hf__buf_put_byte(buf, '}');
}
