/*
 * bind/write.c: a struct as JSON, by its table of fields; an error as JSON.
 *
 * What is absent is left out: a text or an item without a pointer, a pointer that is NULL, a flag
 * that is not set, an enum that is 0 and has no text for it. Numbers, truths and lists are always
 * there.
 */
#include "bind/fields.h"

#include <inttypes.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "wire/wire.h"

/* The largest number that every reader of JSON has exactly. */
#define EXACT_MAX (UINT64_C(1) << 53)

void hf__bind_write_u64(struct hf__buf *buf, uint64_t number)
{
    hf__buf_format(buf, number > EXACT_MAX ? "\"%" PRIu64 "\"" : "%" PRIu64, number);
}

static void write_i64(struct hf__buf *buf, int64_t number)
{
    bool exact = number <= (int64_t)EXACT_MAX && number >= -(int64_t)EXACT_MAX;

    hf__buf_format(buf, exact ? "%" PRId64 : "\"%" PRId64 "\"", number);
}

/* As an item's number is written: the shortest text that reads back as the same, in any locale. */
static void write_double(struct hf__buf *buf, double number)
{
    struct hf_value value = hf_value_make(buf->scope, hf_attr_of_f64(HF_STR(""), number));
    struct hf_str text = hf_value_number(buf->scope, value);

    hf__buf_put_str(buf, text.len ? text : HF_STR("0"));
}

void hf__bind_write_bytes(struct hf__buf *buf, struct hf_bytes bytes)
{
    struct hf_str text = hf_str_of((const char *)bytes.ptr, bytes.len);
    uint8_t *to;

    if (bytes.len == 0 || hf__utf8_valid(text)) {
        hf__wire_write_str(buf, bytes.len ? text : HF_STR(""));
        return;
    }
    hf__buf_put_str(buf, HF_STR("{\"base64\":\""));
    to = hf__buf_reserve(buf, hf__base64_encoded_len(bytes.len));
    if (to)
        buf->len += hf__base64_encode(bytes, (char *)to);
    hf__buf_put_str(buf, HF_STR("\"}"));
}

/* What stands in a database was put there by anybody: it may be no UTF-8, which JSON cannot hold. */
static void write_text(struct hf__buf *buf, struct hf_str text)
{
    hf__bind_write_bytes(buf, hf_bytes_of(text.ptr, text.len));
}

static bool is_absent(const struct bind_field *field, const uint8_t *at)
{
    const void *pointer;
    int number;

    switch (field->kind) {
    case BIND_TEXT:
    case BIND_BYTES:
    case BIND_ITEM:
    case BIND_VALUE:
    case BIND_JSON:
    case BIND_POINTER: /* all of them begin with a pointer */
        memcpy(&pointer, at, sizeof(pointer));
        return pointer == NULL;
    case BIND_FLAG:
        memcpy(&number, at, sizeof(number));
        return number == HF_UNSET;
    case BIND_ENUM:
        memcpy(&number, at, sizeof(number));
        return number == 0 && !field->members[0];
    default:
        return false;
    }
}

static void write_element(struct hf__buf *buf, const struct bind_field *field, const uint8_t *list,
                          size_t i)
{
    const void *pointer;

    switch (field->kind) {
    case BIND_TEXTS:
        write_text(buf, ((const struct hf_str *)(const void *)list)[i]);
        break;
    case BIND_VALUES:
        hf__wire_write_value(buf, ((const struct hf_value *)(const void *)list)[i]);
        break;
    case BIND_COUNTS:
        hf__bind_write_u64(buf, ((const uint64_t *)(const void *)list)[i]);
        break;
    case BIND_POINTERS:
        memcpy(&pointer, list + i * sizeof(pointer), sizeof(pointer));
        hf__bind_write(buf, field->sub, pointer);
        break;
    default:
        assert(field->kind == BIND_STRUCTS);
        hf__bind_write(buf, field->sub, list + i * field->sub->size);
    }
}

static void write_list(struct hf__buf *buf, const struct bind_field *field, const uint8_t *base)
{
    const uint8_t *list;
    size_t len;

    memcpy(&list, base + field->at, sizeof(list));
    memcpy(&len, base + field->count_at, sizeof(len));
    hf__buf_put_byte(buf, '[');
    for (size_t i = 0; i < len && !buf->failed; i++) {
        if (i)
            hf__buf_put_byte(buf, ',');
        write_element(buf, field, list, i);
    }
    hf__buf_put_byte(buf, ']');
}

static void write_field(struct hf__buf *buf, const struct bind_field *field, const uint8_t *base)
{
    const uint8_t *at = base + field->at;
    const void *pointer = at;

    switch (field->kind) {
    case BIND_TEXT:
        write_text(buf, *(const struct hf_str *)pointer);
        break;
    case BIND_BYTES:
        hf__bind_write_bytes(buf, *(const struct hf_bytes *)pointer);
        break;
    case BIND_BOOL:
        hf__buf_put_str(buf, *(const bool *)pointer ? HF_STR("true") : HF_STR("false"));
        break;
    case BIND_FLAG:
        hf__buf_put_str(buf, *(const enum hf_flag *)pointer == HF_YES ? HF_STR("true")
                                                                      : HF_STR("false"));
        break;
    case BIND_U32:
        hf__bind_write_u64(buf, *(const uint32_t *)pointer);
        break;
    case BIND_U64:
        hf__bind_write_u64(buf, *(const uint64_t *)pointer);
        break;
    case BIND_I64:
        write_i64(buf, *(const int64_t *)pointer);
        break;
    case BIND_BOUND:
        write_i64(buf, *(const int64_t *)pointer == HF_ZERO ? 0 : *(const int64_t *)pointer);
        break;
    case BIND_DOUBLE:
        write_double(buf, *(const double *)pointer);
        break;
    case BIND_ENUM:
        write_text(buf, hf_str_from(field->members[*(const int *)pointer]));
        break;
    case BIND_ITEM:
        hf__wire_write_item(buf, *(const struct hf_item *)pointer);
        break;
    case BIND_VALUE:
        hf__wire_write_value(buf, *(const struct hf_value *)pointer);
        break;
    case BIND_JSON:
        hf__buf_put_str(buf, *(const struct hf_str *)pointer);
        break;
    case BIND_STRUCT:
        hf__bind_write(buf, field->sub, at);
        break;
    case BIND_POINTER:
        memcpy(&pointer, at, sizeof(pointer));
        hf__bind_write(buf, field->sub, pointer);
        break;
    default:
        write_list(buf, field, base);
    }
}

static void write_members(struct hf__buf *buf, const struct bind_fields *fields,
                          const uint8_t *base, bool *first)
{
    for (size_t i = 0; i < fields->len && !buf->failed; i++) {
        const struct bind_field *field = &fields->list[i];

        if (field->rules & BIND_FLAT) {
            write_members(buf, field->sub, base + field->at, first);
            continue;
        }
        if (is_absent(field, base + field->at))
            continue;
        if (!*first)
            hf__buf_put_byte(buf, ',');
        *first = false;
        hf__wire_write_str(buf, hf_str_from(field->name));
        hf__buf_put_byte(buf, ':');
        write_field(buf, field, base);
    }
}

void hf__bind_write(struct hf__buf *buf, const struct bind_fields *fields, const void *in)
{
    bool first = true;

    hf__buf_put_byte(buf, '{');
    write_members(buf, fields, in, &first);
    hf__buf_put_byte(buf, '}');
}

/* ---- errors --------------------------------------------------------------------------------- */

static void write_named_text(struct hf__buf *buf, const char *name, struct hf_str text)
{
    if (!text.ptr)
        return;
    hf__buf_format(buf, ",\"%s\":", name);
    write_text(buf, text);
}

static void write_reasons(struct hf__buf *buf, const struct hf_error *error)
{
    hf__buf_put_str(buf, HF_STR(",\"reasons\":["));
    for (size_t i = 0; i < error->reasons_len && !buf->failed; i++) {
        const struct hf_cancel_reason *reason = &error->reasons[i];

        hf__buf_put_str(buf, i ? HF_STR(",{\"code\":") : HF_STR("{\"code\":"));
        write_text(buf, reason->code);
        write_named_text(buf, "message", reason->message);
        if (reason->item.ptr) {
            hf__buf_put_str(buf, HF_STR(",\"item\":"));
            hf__wire_write_item(buf, reason->item);
        }
        hf__buf_put_byte(buf, '}');
    }
    hf__buf_put_byte(buf, ']');
}

void hf__bind_write_error_rest(struct hf__buf *buf, const struct hf_error *error)
{
    hf__buf_put_str(buf, error->may_retry ? HF_STR(",\"retryable\":true")
                                          : HF_STR(",\"retryable\":false"));
    hf__buf_put_str(buf, error->may_have_happened ? HF_STR(",\"may_have_happened\":true")
                                                  : HF_STR(",\"may_have_happened\":false"));
    write_named_text(buf, "operation", error->operation);
    write_named_text(buf, "exception", error->exception);
    write_named_text(buf, "table", error->table);
    if (error->retry_after_ms)
        hf__buf_format(buf, ",\"retry_after_ms\":%" PRIu32, error->retry_after_ms);
    if (error->limit.name.ptr) {
        hf__buf_put_str(buf, HF_STR(",\"limit\":{\"name\":"));
        write_text(buf, error->limit.name);
        hf__buf_put_str(buf, HF_STR(",\"max\":"));
        hf__bind_write_u64(buf, error->limit.max);
        hf__buf_put_str(buf, HF_STR(",\"actual\":"));
        hf__bind_write_u64(buf, error->limit.actual);
        hf__buf_put_byte(buf, '}');
    }
    if (error->cause) {
        hf__buf_put_str(buf, HF_STR(",\"cause\":"));
        hf__bind_write_error(buf, error->cause);
    }
}

void hf__bind_write_error(struct hf__buf *buf, const struct hf_error *error)
{
    hf__buf_format(buf, "{\"code\":\"%s\",\"message\":", hf_status_name(error->status));
    write_text(buf,
               error->message.ptr ? error->message : hf_str_from(hf_status_text(error->status)));
    if (error->item.ptr) {
        hf__buf_put_str(buf, HF_STR(",\"item\":"));
        hf__wire_write_item(buf, error->item);
    }
    if (error->reasons)
        write_reasons(buf, error);
    hf__bind_write_error_rest(buf, error);
    hf__buf_put_byte(buf, '}');
}
